//! Rows as values: those of tables as a whole, which outer joins may leave out, and those of functions.

use super::{Binder, PENDING, Scope, object_name};
use crate::error::{error, unsupported};
use crate::expr::{Expr, Node};
use crate::functions::{self, coerce};
use crate::types::Type;
use crate::types::cast::Context;
use crate::types::composite::{Attribute, Composite};
use nestor_model::Result;
use sqlparser::ast::{DataType, Expr as Ast, FunctionArg, FunctionArgExpr, ObjectName, Value as Literal};
use std::sync::Arc;

/// What `json_populate_record` gives: its columns, and the composite type that they are of, if that is declared.
pub(super) struct Columns {
    pub(super) columns: Vec<(String, Type)>,
    composite: Option<Arc<Composite>>,
}

impl Columns {
    /// The type of a whole row.
    pub(super) fn whole(&self) -> Arc<Composite> {
        self.composite.clone().unwrap_or_else(|| {
            let each = self.columns.iter().map(|(name, ty)| Attribute {
                name: name.clone(),
                ty: ty.clone(),
                modifier: -1,
            });
            Arc::new(Composite::of_row_type(each.collect()))
        })
    }
}

/// What names a table alone, of `t.*`.
pub(super) fn whole_row(name: &ObjectName) -> Option<Ast> {
    let mut parts = Vec::new();
    for part in &name.0 {
        parts.push(part.as_ident()?.clone());
    }
    match parts.len() {
        1 => parts.pop().map(Ast::Identifier),
        _ => Some(Ast::CompoundIdentifier(parts)),
    }
}

/// A row, or null where all of it is.
pub(super) fn row_or_null(row: Expr, whole: Expr) -> Expr {
    let ty = whole.ty();
    Node::Case {
        operand: None,
        arms: vec![(Node::Not(Node::IsNull(row, false).into()).into(), whole)],
        otherwise: None,
        ty,
    }
    .into()
}

/// A row whose columns have names as one of a type that has them; any other expression as it is.
pub(super) fn named_row(bound: &Expr) -> Expr {
    let Node::Row(items) = bound.node() else {
        return bound.clone();
    };
    let mut attributes: Vec<Attribute> = Vec::with_capacity(items.len());
    for item in items {
        let (Node::Column { name, .. } | Node::Outer { name, .. }) = item.node() else {
            return bound.clone();
        };
        let is_plain = item.ty() != Type::Void && !item.ty().is_row();
        if !is_plain || attributes.iter().any(|own| own.name == *name) {
            return bound.clone();
        }
        attributes.push(Attribute {
            name: name.to_string(),
            ty: match item.ty() {
                Type::Unknown => Type::Text,
                ty => ty,
            },
            modifier: -1,
        });
    }
    Node::Cast {
        arg: bound.clone(),
        to: Type::Composite(Arc::new(Composite::of_row_type(attributes))),
        modifier: -1,
        explicit: true,
    }
    .into()
}

/// A field of a function's row, which holds it as a document.
pub(super) fn field(row: &Expr, name: &str, ty: &Type) -> Expr {
    let own = || Node::Field(row.clone(), vec![name.to_owned()], ty.clone()).into();
    if *ty != Type::Jsonb {
        return own();
    }
    // It may be JSON's null.
    let key = Expr::constant(nestor_model::Value::String(name.into()), Type::Text);
    functions::call("->", vec![row.clone(), key]).unwrap_or_else(|_| own())
}

impl Binder<'_> {
    /// Whether an expression is the row of a table for which an outer join may give null.
    pub(super) fn is_optional_row(&self, arg: &Ast, bound: &Expr, scope: &Scope) -> bool {
        let Node::Row(items) = bound.node() else { return false };
        let is_optional = |item: &Expr| match item.node() {
            Node::Column { index, .. } => scope.columns.get(*index).is_some_and(|column| column.optional),
            _ => false,
        };
        matches!(arg, Ast::Identifier(_) | Ast::CompoundIdentifier(_)) && items.iter().any(is_optional)
    }

    /// An expression; the row of a table has the names of its columns, and is null where an outer join has left it out.
    pub(super) fn with_names(&mut self, arg: &Ast, scope: &Scope) -> Result<Expr> {
        let bound = self.expr(arg, scope)?;
        let is_name = matches!(arg, Ast::Identifier(_) | Ast::CompoundIdentifier(_));
        Ok(match (is_name, self.is_optional_row(arg, &bound, scope)) {
            (true, true) => row_or_null(bound.clone(), named_row(&bound)),
            (true, false) => named_row(&bound),
            (false, _) => bound,
        })
    }

    /// A value that becomes JSON: numbers of objects are their names there, or texts.
    ///
    /// Errors: those of the catalog.
    pub(super) fn with_names_of_numbers(&mut self, value: Expr) -> Result<Expr> {
        let ty = value.ty();
        match value.node() {
            Node::Row(items) => {
                let each = items.iter().map(|item| self.with_names_of_numbers(item.clone()));
                Ok(Node::Row(each.collect::<Result<_>>()?).into())
            }
            Node::Array(items, element) if element.is_reg() || *element == Type::Oid => {
                let each = items.iter().map(|item| self.with_names_of_numbers(item.clone()));
                Ok(Node::Array(each.collect::<Result<_>>()?, Type::Text).into())
            }
            _ if ty.is_reg() || ty == Type::Oid => self.cast(value, &Type::Text, -1),
            _ if ty == Type::Oidvector => coerce(value, &Type::Text.array(), Context::Explicit),
            _ if ty == Type::Int2vector => coerce(value, &Type::Int2.array(), Context::Implicit),
            _ => Ok(value),
        }
    }

    /// A function's row of several columns where the statement's rows have it; queries around it ask for its fields.
    pub(super) fn row_of_function(&self, bound: Expr) -> Expr {
        if self.levels.len() > 1 || !self.outer.is_empty() {
            return bound;
        }
        let Node::Column { index, .. } = bound.node() else {
            return bound;
        };
        let pending = index.checked_sub(PENDING).and_then(|at| self.pending.get(at));
        let Some(pending) = pending.filter(|pending| !pending.fields.is_empty()) else {
            return bound;
        };
        let fields = pending.fields.iter();
        Node::Row(fields.map(|column| field(&bound, &column.name, &column.ty)).collect()).into()
    }

    /// A call of `json_populate_record` and its like whose row is null of a table's type or of none: the function that gives columns of
    /// these names, the columns if the table has them, and the JSON.
    ///
    /// Errors: 42704 where there is no such table.
    pub(super) fn populated<'a>(
        &mut self,
        name: &str,
        args: &'a [FunctionArg],
    ) -> Result<Option<(&'static str, Option<Columns>, &'a Ast)>> {
        let name = match name {
            "json_populate_record" => "json_to_record",
            "jsonb_populate_record" => "jsonb_to_record",
            "json_populate_recordset" => "json_to_recordset",
            "jsonb_populate_recordset" => "jsonb_to_recordset",
            _ => return Ok(None),
        };
        let [
            FunctionArg::Unnamed(FunctionArgExpr::Expr(row)),
            FunctionArg::Unnamed(FunctionArgExpr::Expr(json)),
        ] = args
        else {
            return Ok(None);
        };
        let ty = match row {
            Ast::Cast { expr, data_type, .. } if matches!(&**expr, Ast::Value(value) if value.value == Literal::Null) => {
                data_type
            }
            _ => return unsupported("a row that is not null of a table's type"),
        };
        let DataType::Custom(table, _) = ty else {
            return unsupported("a row of this type");
        };
        let (schema, table) = object_name(table)?;
        if schema.is_none() && table == "record" {
            return Ok(Some((name, None, json)));
        }
        if let Some(Type::Composite(own)) = self.catalog.made_type(schema.as_deref(), &table) {
            let columns = own.attributes.iter().map(|own| (own.name.clone(), own.ty.clone()));
            let columns = columns.collect();
            let composite = Some(own);
            return Ok(Some((name, Some(Columns { columns, composite }), json)));
        }
        let Some(found) = self.table(schema.as_deref(), &table)? else {
            return Err(error("42704", format!("type \"{table}\" does not exist")));
        };
        let columns = found
            .columns
            .iter()
            .map(|column| (column.name.clone(), column.ty.clone()));
        let columns = columns.collect();
        let composite = None;
        Ok(Some((name, Some(Columns { columns, composite }), json)))
    }
}
