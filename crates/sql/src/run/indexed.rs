//! Indexes on expressions: what the option `sql` of their specifications says, and how their keys are computed.
//!
//! ```text
//! {table: "CREATE TABLE t (email TEXT, n INT)", paths: ["email", "_id"], parts: ["lower(email)", "n"], where: ["length(email) < 50"]}
//! ```
//!
//! `table` has the columns that the expressions name, `paths` the fields that these are; `where` has what no filter can say of the rows that the
//! index has, condition by condition. So an index can be opened without the catalog that it
//! stands in, and its keys do not depend on a session.

use super::included;
use super::inverted::{self, Items};
use super::reader::row_of;
use crate::bind::types::data_type;
use crate::bind::{Binder, ident};
use crate::catalog::nothing::Nothing;
use crate::catalog::system::classes;
use crate::catalog::{Column, Kind, Table};
use crate::error::{Field, error, fail, with};
use crate::expr::{Expr, Node};
use crate::parse::with_column_renamed;
use crate::types::{Type, compare, json, stored};
use nestor_model::fnv::Fnv;
use nestor_model::{
    Array, DocRef, Document, IndexSpec, Namespace, Result, Str, Timestamp, Value, ValueRef, hash_value,
};
use nestor_planner::catalog::{Computed, IndexInfo};
use nestor_planner::kinds::expression;
use nestor_planner::relation::{Env, Scalar};
use nestor_query::env::OpContext;
use sqlparser::ast::{Expr as Ast, Statement};
use std::any::Any;
use std::hash::Hasher as _;
use std::sync::Arc;

/// Computes the keys of an index.
#[derive(Debug)]
pub struct Indexed {
    /// The columns that the expressions name.
    pub table: Arc<Table>,
    /// The expressions, over these.
    pub parts: Vec<Expr>,
    /// Each as it is written.
    pub texts: Vec<String>,
    /// Each as [`normal`] has it.
    normal: Vec<String>,
    /// What holds of the rows that the index has.
    conditions: Vec<Expr>,
    /// What it has of the values of each part, if that is what is within them.
    pub items: Vec<Items>,
}

/// Lets indexes on expressions be computed in this process.
pub fn install() {
    expression::install(|spec| Ok(Arc::new(Indexed::of(spec)?)));
}

/// What an index computes, if it is on expressions.
pub fn of(index: &IndexInfo) -> Option<&Indexed> {
    index.kind.computed()?.as_any().downcast_ref()
}

/// An expression as the same one is written over every table: columns are their paths.
pub fn normal(expr: &Expr, columns: &[Column]) -> String {
    let named = expr.with_columns(&|index| {
        let column = columns.get(index)?;
        Some(Expr::column(0, column.path.clone(), column.ty.clone()))
    });
    format!("{named:?}")
}

/// What says in the option that nulls of documents are JSON's in columns of `jsonb`.
const JSON_NULLS: &str = "jsonNulls";

/// The name of the conditions in the option.
const CONDITIONS: &str = "where";

/// The name of the access method in the option of an inverted index. Those of lexemes were the first ones.
const INVERTED: &str = "lexemes";

/// Says in the option by which access method an index has what is within values.
pub fn say_inverted(option: &mut Document, method: &str) {
    option.push(INVERTED, method);
}

/// The access method of an inverted index, as it was asked for.
pub fn method_of_inverted(spec: &IndexSpec) -> Option<String> {
    let option = spec.option(expression::OPTION).and_then(ValueRef::as_document)?;
    option.get(INVERTED)?.as_str().map(str::to_owned)
}

/// The option `sql` of an index on expressions over a table, with the conditions that hold of the rows that it has.
pub fn option(
    table: &Table,
    used: &[usize],
    types: &[String],
    (texts, conditions): (&[String], &[String]),
) -> Document {
    let quote = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let columns = used.iter().zip(types);
    let columns: Vec<String> = columns
        .map(|(at, ty)| format!("{} {ty}", quote(&table.columns[*at].name)))
        .collect();
    let list = |texts: Vec<&str>| Value::Array(Array::new(texts.into_iter().map(Value::from).collect()));
    let mut out = Document::new();
    out.push("table", format!("CREATE TABLE t ({})", columns.join(", ")));
    out.push(
        "paths",
        list(used.iter().map(|at| table.columns[*at].path.as_str()).collect()),
    );
    out.push("parts", list(texts.iter().map(String::as_str).collect()));
    if !conditions.is_empty() {
        out.push(CONDITIONS, list(conditions.iter().map(String::as_str).collect()));
    }
    if used.iter().any(|at| table.columns[*at].has_json_nulls()) {
        out.push(JSON_NULLS, true);
    }
    out
}

/// The parts of an index as they are written; none of one that is not on expressions.
pub fn texts_of(spec: &IndexSpec) -> Vec<String> {
    let option = spec.option(expression::OPTION).and_then(ValueRef::as_document);
    option.map_or_else(Vec::new, |option| texts(option, "parts").unwrap_or_default())
}

/// The types of the parts of an index; none of one that is not on expressions.
pub fn types_of(spec: &IndexSpec) -> Vec<Type> {
    let parts = match texts_of(spec).is_empty() {
        true => Vec::new(),
        false => Indexed::of(spec).map_or_else(|_| Vec::new(), |own| own.parts),
    };
    parts.iter().map(Expr::ty).collect()
}

/// What no filter says of the rows that an index has, as it is written.
pub fn conditions_of(spec: &IndexSpec) -> Vec<String> {
    let option = spec.option(expression::OPTION).and_then(ValueRef::as_document);
    option.map_or_else(Vec::new, |option| texts(option, CONDITIONS).unwrap_or_default())
}

/// The texts that an array of a specification has.
fn texts(option: DocRef<'_>, name: &str) -> Result<Vec<String>> {
    let items = match option.get(name) {
        Some(ValueRef::Array(items)) => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        _ => None,
    };
    items.ok_or_else(|| error("22023", format!("an index on expressions says no {name}")))
}

/// The option of an index whose columns are elsewhere now, as `now` says by their paths; `None` when one of them is gone.
///
/// Errors: those of reading the option.
pub fn moved(before: &Document, now: &dyn Fn(&str) -> Option<Column>) -> Result<Option<Document>> {
    let option = before.as_ref();
    let table = option.get("table").and_then(ValueRef::as_str).unwrap_or_default();
    let (paths, mut parts) = (texts(option, "paths")?, texts(option, "parts")?);
    let mut conditions = texts(option, CONDITIONS).unwrap_or_default();
    let Some(Statement::CreateTable(create)) = crate::parse::parse(table)?.pop() else {
        return fail("22023", "the option sql of an index says no table");
    };
    let mut columns = Vec::new();
    for (def, path) in create.columns.iter().zip(paths) {
        let Some(column) = now(&path) else { return Ok(None) };
        let before = ident(&def.name);
        if before != column.name {
            for part in parts.iter_mut().chain(&mut conditions) {
                *part = with_column_renamed(part, &before, &column.name);
            }
        }
        columns.push(column);
    }
    let types: Vec<String> = columns
        .iter()
        .map(|column| column.ty.written(column.modifier))
        .collect();
    let used: Vec<usize> = (0..columns.len()).collect();
    let table = Table::new("t", columns, Kind::Collection(Namespace::new("", "t")));
    let anew = self::option(&table, &used, &types, (&parts, &conditions));
    let mut out = before.clone();
    anew.iter().for_each(|(name, value)| out.set(name, value.to_value()));
    Ok(Some(out))
}

impl Indexed {
    /// What a specification says.
    ///
    /// Errors: 22023 for one that says something else, those of its expressions, 42P17 for those whose values change.
    fn of(spec: &IndexSpec) -> Result<Self> {
        let wrong = || error("22023", "the option sql of an index says no expressions of a table");
        let option = spec
            .option(expression::OPTION)
            .and_then(ValueRef::as_document)
            .ok_or_else(wrong)?;
        let table = option.get("table").and_then(ValueRef::as_str).ok_or_else(wrong)?;
        let paths = texts(option, "paths")?;
        let Some(Statement::CreateTable(create)) = crate::parse::parse(table)?.pop() else {
            return Err(wrong());
        };
        if create.columns.len() != paths.len() {
            return Err(wrong());
        }
        let mut columns = Vec::new();
        let declared = option.get(JSON_NULLS).is_some();
        for (def, path) in create.columns.iter().zip(paths) {
            let (ty, modifier) = data_type(&def.data_type)?;
            columns.push(Column {
                path,
                modifier,
                declared,
                ..Column::new(&ident(&def.name), ty)
            });
        }
        let table = Table::new("t", columns, Kind::Collection(Namespace::new("", "t")));
        let conditions = texts(option, CONDITIONS).unwrap_or_default();
        let own = Self::over(Arc::new(table), texts(option, "parts")?, &conditions)?;
        let Some(method) = method_of_inverted(spec) else {
            return Ok(own);
        };
        let method = classes::method(&method).ok_or_else(wrong)?;
        let said = included::classes_of(spec);
        let items = own.parts.iter().enumerate().map(|(at, part)| {
            let class = said.get(at).map_or("", String::as_str);
            Items::of(method, class, &part.ty()).ok_or_else(wrong)
        });
        let items = items.collect::<Result<_>>()?;
        Ok(Self { items, ..own })
    }

    /// Expressions over a table.
    ///
    /// Errors: those of binding them, 42P17 for those whose values change, 0A000 for types that have no order in indexes.
    fn over(table: Arc<Table>, texts: Vec<String>, conditions: &[String]) -> Result<Self> {
        let mut parts = Vec::new();
        for text in &texts {
            let ast = crate::parse::expression(text)?;
            parts.push(bound(&table, &ast)?);
        }
        let conditions = conditions
            .iter()
            .map(|text| condition(&table, &crate::parse::expression(text)?));
        let conditions = conditions.collect::<Result<_>>()?;
        let normal = parts.iter().map(|part| normal(part, &table.columns)).collect();
        Ok(Self {
            conditions,
            table,
            parts,
            texts,
            normal,
            items: Vec::new(),
        })
    }

    /// Whether it has what is within values.
    pub fn is_inverted(&self) -> bool {
        !self.items.is_empty()
    }

    /// The parts as [`normal`] has them.
    pub fn normals(&self) -> &[String] {
        &self.normal
    }

    /// Whether the index has all rows of which these conditions hold, as far as its own conditions say; they are as [`normal`] has them.
    pub fn serves(&self, asked: &[String]) -> bool {
        let own = self.conditions.iter().map(|own| normal(own, &self.table.columns));
        own.into_iter().all(|own| asked.contains(&own))
    }

    /// Whether a part is an expression as [`normal`] has it.
    pub fn is_part(&self, at: usize, expr: &str) -> bool {
        self.normal.get(at).is_some_and(|own| own == expr)
    }

    /// What expressions give for a row.
    ///
    /// Errors: those of the expressions.
    fn of_row<'e>(&self, exprs: &'e [Expr], doc: DocRef<'_>) -> Result<Vec<(&'e Expr, Value)>> {
        let row = row_of(&self.table, &vec![true; self.table.columns.len()], doc, None)?;
        exprs.iter().map(|expr| Ok((expr, value(expr, &row)?))).collect()
    }

    /// The values of a row's key, as documents would hold them.
    ///
    /// Errors: those of the expressions.
    fn key(&self, doc: DocRef<'_>) -> Result<Vec<Value>> {
        let each = self.of_row(&self.parts, doc)?;
        if self.is_inverted() {
            // All of them are in the first part of entries.
            let mut out = vec![Value::Null; self.parts.len()];
            out[0] = inverted::keys(&self.items, each)?;
            return Ok(out);
        }
        Ok(each.into_iter().map(|(part, value)| entry(part, value)).collect())
    }
}

impl Computed for Indexed {
    fn values(&self, doc: DocRef<'_>) -> Result<Vec<Value>> {
        self.key(doc)
    }

    fn has(&self, doc: DocRef<'_>) -> Result<bool> {
        let all = self.of_row(&self.conditions, doc)?;
        Ok(all.iter().all(|(_, value)| matches!(value, Value::Bool(true))))
    }

    fn spreads(&self) -> bool {
        self.is_inverted()
    }

    fn paths(&self) -> Vec<Str> {
        self.table
            .columns
            .iter()
            .map(|column| column.path.as_str().into())
            .collect()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// What an expression gives that depends on neither time nor chance nor the session.
///
/// Errors: those of the expression.
pub fn value(expr: &Expr, row: &[Value]) -> Result<Value> {
    let op = OpContext::new(0, Timestamp::default(), 0);
    let env = Env {
        op: &op,
        params: &[],
        outer: None,
        effects: None,
        compared: None,
    };
    expr.value(row, &env)
}

/// The expression of an index over a table.
///
/// Errors: as [`Indexed::of`].
pub fn bound(table: &Arc<Table>, ast: &Ast) -> Result<Expr> {
    let expr = same(table, ast)?;
    let ty = expr.ty();
    if by_hash(&ty) && classes::of(classes::BTREE, &ty) == 0 {
        let told = error(
            "42704",
            format!("data type {ty} has no default operator class for access method \"btree\""),
        );
        let hint =
            "You must specify an operator class for the index or define a default operator class for the data type.";
        return Err(with(told, &[(Field::Hint, hint)]));
    }
    Ok(expr)
}

/// The same of whatever type.
///
/// Errors: those of binding it, 42P17 where its values change.
pub fn same(table: &Arc<Table>, ast: &Ast) -> Result<Expr> {
    let expr = Binder::new(&Nothing, Vec::new()).indexed(table, ast)?;
    check(&expr)?;
    Ok(expr)
}

/// Whether entries have hashes of a type's values, as these have another order in SQL than in entries, or several entries: such a part finds
/// values that are equal, and no two values are told apart by it.
pub fn by_hash(ty: &Type) -> bool {
    !matches!(
        ty,
        Type::Bool
            | Type::Int2
            | Type::Int4
            | Type::Int8
            | Type::Float4
            | Type::Float8
            | Type::Numeric
            | Type::Text
            | Type::Varchar
            | Type::Citext
            | Type::Uuid
            | Type::Date
            | Type::Timestamp
            | Type::Timestamptz
            | Type::ObjectId
            | Type::Bytea
    )
}

/// Whether a part of an index is kept by hashes: a column of an enum is by its labels, which tell its values apart and have another order.
pub fn is_hashed(part: &Expr) -> bool {
    let ty = part.ty();
    let is_label = matches!(ty, Type::Enum(_)) && matches!(part.node(), Node::Column { .. });
    by_hash(&ty) && !is_label
}

/// A value of a part as entries have it.
pub fn entry(part: &Expr, value: Value) -> Value {
    let ty = part.ty();
    match value {
        Value::Null => Value::Null,
        value if is_hashed(part) => {
            // Entries on disk depend on this hash.
            let mut hash = Fnv::default();
            let value = match ty {
                Type::Jsonb => json::order::in_order(value.as_ref()),
                _ => value,
            };
            hash_value(&part.key(value), &mut hash);
            Value::Int64(hash.finish().cast_signed())
        }
        // In small letters, whose order is that of the values.
        value if ty == Type::Citext => compare::key(&ty, value),
        value => stored::write(&ty, value),
    }
}

/// A condition of the rows that an index has.
///
/// Errors: as [`Indexed::of`]; 42804 for what is no condition.
pub fn condition(table: &Arc<Table>, ast: &Ast) -> Result<Expr> {
    let expr = Binder::new(&Nothing, Vec::new()).predicate(table, ast)?;
    check(&expr)?;
    Ok(expr)
}

/// Functions whose results depend on the session or on time.
const CHANGING: [&str; 15] = [
    "current_timestamp",
    "now",
    "statement_timestamp",
    "transaction_timestamp",
    "current_date",
    "current_time",
    "localtime",
    "localtimestamp",
    "to_char",
    "to_date",
    "to_timestamp",
    "to_number",
    "age",
    "concat",
    "format",
];

/// Values are the same whoever asks, and whenever.
///
/// Errors: 42P17.
pub fn check(expr: &Expr) -> Result<()> {
    let is_of_zone = |ty: &Type| matches!(ty, Type::Timestamptz | Type::Timetz);
    let changes = match expr.node() {
        Node::Call { function, args, .. } => {
            let at_zone = function.name == "timezone"
                || matches!(
                    function.name,
                    "date_part" | "extract" | "tstzrange" | "=" | "<" | ">" | "<=" | ">=" | "<>"
                );
            let depends = args.iter().any(|arg| is_of_zone(&arg.ty())) && !at_zone;
            function.volatile || function.of_session || depends || CHANGING.contains(&function.name)
        }
        Node::Cast { arg, to, .. } => {
            let (from, is_constant) = (arg.ty(), arg.is_constant());
            let reads_style = |ty: &Type| {
                matches!(
                    ty,
                    Type::Date | Type::Time | Type::Timetz | Type::Timestamp | Type::Timestamptz | Type::Interval
                )
            };
            let turns = from != *to && (is_of_zone(&from) || is_of_zone(to));
            turns || from.is_text() && reads_style(to) && !is_constant || reads_style(&from) && to.is_text()
        }
        Node::Param(..) | Node::Outer { .. } => true,
        _ => false,
    };
    if changes {
        return fail("42P17", "functions in index expression must be marked IMMUTABLE");
    }
    expr.parts().into_iter().try_for_each(check)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries that are on disk were made with these hashes.
    #[test]
    fn hashes_stay_as_they_are() {
        let hash = |value: Value| {
            let part = Expr::constant(Value::Null, Type::Jsonb);
            match entry(&part, value) {
                Value::Int64(hash) => hash,
                other => panic!("{other:?}"),
            }
        };
        let doc =
            |number: Value| Value::Document(Document::from_iter([("p".into(), number), ("q".into(), "x".into())]));
        assert_eq!(hash(doc(Value::Int32(3))), hash(doc(Value::Double(3.0))));
        assert_eq!(hash(doc(Value::Int32(3))), 3_506_725_223_161_312_691);
        assert_eq!(
            hash(Value::Array(Array::new(vec![Value::Bool(true), Value::Null]))),
            1_264_127_082_764_327_290
        );
    }
}
