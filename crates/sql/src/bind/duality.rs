//! Duality views: documents over several tables, read and written as one.
//!
//! ```sql
//! CREATE DUALITY VIEW order_docs AS SELECT jsonb_build_object('_id', o.id, 'customer', o.customer,
//!     'lines', (SELECT jsonb_agg(jsonb_build_object('no', l.no, 'sku', l.sku) ORDER BY l.no) FROM lines l WHERE l.order_id = o.id)) FROM orders o
//! ```
//!
//! The query says the shape ([`Shape`]): which column each field is, and by which columns the rows of another table belong to one. What is read is
//! the document with `_metadata.etag`, which is made of all the rest.

use super::{Binder, ident, object_name};
use crate::catalog::{Kind, Table};
use crate::error::{fail, unsupported};
use nestor_model::Result;
use sqlparser::ast::{
    BinaryOperator, Expr as Ast, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Query, Select,
    SelectItem, SetExpr, TableFactor, Value as Literal,
};
use std::sync::Arc;

/// Levels of tables in documents.
const LEVELS_MAX: usize = 8;

/// What documents, or arrays within them, are made of.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The table.
    pub table: Arc<Table>,
    /// Its name in SQL, with its schema.
    pub name: String,
    /// The names of fields, and the columns that they are.
    pub fields: Vec<(String, String)>,
    /// The columns of its key.
    pub key: Vec<String>,
    /// Columns of this table that are those of the row that it belongs to.
    pub link: Vec<(String, String)>,
    /// The names of arrays, and the rows in them.
    pub children: Vec<(String, Shape)>,
}

/// The query that gives documents with their etags.
pub fn with_etag(text: &str) -> String {
    format!(
        "SELECT doc || jsonb_build_object('_metadata', jsonb_build_object('etag', md5(doc::text))) AS doc FROM ({text}) AS v (doc)"
    )
}

fn no_shape<T>(what: &str) -> Result<T> {
    unsupported(format!("a duality view with {what}"))
}

/// The SELECT of one table that a query is, and what it is called there.
fn select_of(query: &Query) -> Result<(&Select, &TableFactor)> {
    let SetExpr::Select(select) = &*query.body else {
        return no_shape("what is no SELECT");
    };
    let groups = match &select.group_by {
        GroupByExpr::Expressions(exprs, _) => !exprs.is_empty(),
        GroupByExpr::All(_) => true,
    };
    let is_plain = query.with.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && select.distinct.is_none()
        && select.having.is_none()
        && !groups;
    match select.from.as_slice() {
        [only] if is_plain && only.joins.is_empty() => Ok((select, &only.relation)),
        _ => no_shape("a query that is not of the rows of one table"),
    }
}

fn args_of(function: &Function) -> Option<Vec<&Ast>> {
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    let each = list.args.iter().map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    });
    each.collect()
}

/// The arguments of a call of the function `name`.
fn call_of<'a>(expr: &'a Ast, name: &str) -> Option<Vec<&'a Ast>> {
    match expr {
        Ast::Function(function) if object_name(&function.name).is_ok_and(|(_, own)| own == name) => args_of(function),
        Ast::Nested(inner) => call_of(inner, name),
        _ => None,
    }
}

fn only_item(select: &Select) -> Result<&Ast> {
    match select.projection.as_slice() {
        [SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }] => Ok(expr),
        _ => no_shape("more than one column"),
    }
}

/// What a name is called: a table's, or none, and the column's.
fn name_of(expr: &Ast) -> Option<(Option<String>, String)> {
    match expr {
        Ast::Identifier(name) => Some((None, ident(name))),
        Ast::CompoundIdentifier(parts) => match parts.as_slice() {
            [table, name] => Some((Some(ident(table)), ident(name))),
            _ => None,
        },
        Ast::Nested(inner) => name_of(inner),
        _ => None,
    }
}

/// A table of the shape that is being read, as it is called.
struct Level {
    alias: String,
    table: Arc<Table>,
}

impl Level {
    fn column(&self, expr: &Ast) -> Option<String> {
        let (table, name) = name_of(expr)?;
        let is_own = table.is_none_or(|table| table == self.alias);
        (is_own && self.table.column(&name).is_some()).then_some(name)
    }
}

/// The columns that a condition says are equal: this table's, and that of the one around it.
fn links(condition: &Ast, own: &Level, outer: &Level, out: &mut Vec<(String, String)>) -> Result<()> {
    match condition {
        Ast::Nested(inner) => links(inner, own, outer, out),
        Ast::BinaryOp {
            left,
            op: BinaryOperator::And,
            right,
        } => {
            links(left, own, outer, out)?;
            links(right, own, outer, out)
        }
        Ast::BinaryOp {
            left,
            op: BinaryOperator::Eq,
            right,
        } => {
            let pair = |a: &Ast, b: &Ast| Some((own.column(a)?, outer.column(b)?));
            match pair(left, right).or_else(|| pair(right, left)) {
                Some(link) => {
                    out.push(link);
                    Ok(())
                }
                None => no_shape("a condition that is no equality of columns of two tables"),
            }
        }
        _ => no_shape("a condition that is no equality of columns of two tables"),
    }
}

impl Binder<'_> {
    /// The shape of the documents that a query of a view of `schema` gives.
    ///
    /// Errors: 0A000 for what has none; those of its names.
    pub fn shape(&mut self, schema: &str, query: &Query) -> Result<Shape> {
        let before = self.view_schema.replace(schema.to_owned());
        let shape = self.shape_of(query, None, 0);
        self.view_schema = before;
        shape
    }

    fn shape_of(&mut self, query: &Query, outer: Option<&Level>, level: usize) -> Result<Shape> {
        if level >= LEVELS_MAX {
            return fail("54001", "a duality view nests too deep");
        }
        let (select, factor) = select_of(query)?;
        let TableFactor::Table {
            name,
            alias,
            args: None,
            ..
        } = factor
        else {
            return no_shape("a query that is not of the rows of one table");
        };
        let table = self.existing(name)?;
        if !matches!(table.kind, Kind::Collection(_)) || table.materialized.is_some() {
            return no_shape("what is no table");
        }
        let own = Level {
            alias: alias
                .as_ref()
                .map_or_else(|| table.name.clone(), |alias| ident(&alias.name)),
            table: table.clone(),
        };
        let item = only_item(select)?;
        let mut link = Vec::new();
        let object = match outer {
            None => item,
            Some(outer) => {
                match &select.selection {
                    Some(condition) => links(condition, &own, outer, &mut link)?,
                    None => return no_shape("rows that belong to nothing"),
                }
                let whole = call_of(item, "coalesce")
                    .and_then(|args| args.first().copied())
                    .unwrap_or(item);
                let aggregated = call_of(whole, "jsonb_agg");
                match aggregated.as_deref() {
                    Some([object]) => *object,
                    _ => return no_shape("a subquery that is no jsonb_agg"),
                }
            }
        };
        let Some(args) = call_of(object, "jsonb_build_object") else {
            return no_shape("what is no jsonb_build_object");
        };
        let (mut fields, mut children) = (Vec::new(), Vec::new());
        for pair in args.chunks(2) {
            let [Ast::Value(field), value] = pair else {
                return no_shape("fields whose names are not written down");
            };
            let Literal::SingleQuotedString(field) = &field.value else {
                return no_shape("fields whose names are not written down");
            };
            match value {
                Ast::Subquery(inner) => children.push((field.clone(), self.shape_of(inner, Some(&own), level + 1)?)),
                value => match own.column(value) {
                    Some(column) => fields.push((field.clone(), column)),
                    None => return no_shape(&format!("the field \"{field}\", which is no column")),
                },
            }
        }
        let key: Vec<String> = match table.declared {
            true => table.key.clone(),
            false => {
                let own = table.columns.iter().filter(|column| column.path == "_id");
                own.map(|column| column.name.clone()).collect()
            }
        };
        let is_known =
            |column: &String| fields.iter().any(|(_, own)| own == column) || link.iter().any(|(own, _)| own == column);
        if key.is_empty() || !key.iter().all(is_known) {
            return no_shape(&format!("no key of table \"{}\"", table.name));
        }
        let quoted = |name: &str| sqlparser::ast::Ident::with_quote('"', name).to_string();
        Ok(Shape {
            name: format!("{}.{}", quoted(&table.schema), quoted(&table.name)),
            table,
            fields,
            key,
            link,
            children,
        })
    }
}
