//! Names: what is not quoted is in lower case.

use super::{Binder, Scope, ScopeColumn, places};
use crate::error::{error, fail};
use crate::expr::{Expr, Node};
use crate::functions::leaves;
use crate::types::Type;
pub use crate::types::names::ident;
use crate::types::names::with_all;
use nestor_model::{Result, Value};
use sqlparser::ast::{ObjectName, ObjectNamePart};

/// Schema and name of an object. A database before them is left out.
///
/// Errors: 0A000 for names of other forms.
pub fn object_name(name: &ObjectName) -> Result<(Option<String>, String)> {
    let parts = name.0.iter().map(|part| match part {
        ObjectNamePart::Identifier(part) => Ok(ident(part)),
        ObjectNamePart::Function(_) => fail("0A000", "names of this form are not supported"),
    });
    let mut parts: Vec<String> = parts.collect::<Result<_>>()?;
    let last = parts.pop().ok_or_else(|| error("42601", "a name is missing"))?;
    Ok((parts.pop(), with_all(last)))
}

/// Whether a name means a table without its partitions.
pub fn is_only(name: &ObjectName) -> bool {
    let last = name.0.last().and_then(ObjectNamePart::as_ident);
    last.is_some_and(|last| crate::types::names::is_only(&last.value))
}

/// The parts of a name, all of them.
pub fn parts(name: &ObjectName) -> Vec<String> {
    let each = name.0.iter().filter_map(ObjectNamePart::as_ident);
    each.map(ident).collect()
}

impl Scope {
    /// Columns of a name, of a table if that is given.
    fn find(&self, table: Option<&str>, name: &str) -> Vec<usize> {
        let matches = |column: &ScopeColumn| {
            column.name == name
                && match table {
                    Some(table) => column.table.as_deref() == Some(table),
                    None => !column.hidden || matches!(column.name.as_str(), "_doc" | "tableoid"),
                }
        };
        let numbered = self.columns.iter().enumerate();
        numbered.filter(|(_, column)| matches(column)).map(|(i, _)| i).collect()
    }

    /// The columns that can be named, of one table or of all, each with its table.
    fn named(&self, table: Option<&str>) -> Vec<(String, String)> {
        let wanted = |column: &&ScopeColumn| {
            !column.hidden && !column.name.starts_with('\u{1}') && (table.is_none() || column.table.as_deref() == table)
        };
        let named = |column: &ScopeColumn| Some((column.table.clone()?, column.name.clone()));
        self.columns.iter().filter(wanted).filter_map(named).collect()
    }

    /// Whether a table is called so.
    fn has_table(&self, name: &str) -> bool {
        self.columns.iter().any(|column| column.table.as_deref() == Some(name))
    }

    /// The columns of a table.
    pub(super) fn of_table(&self, name: &str) -> Vec<usize> {
        let numbered = self.columns.iter().enumerate();
        let own =
            numbered.filter(|(_, column)| column.table.as_deref() == Some(name) && !column.name.starts_with('\u{1}'));
        own.map(|(i, _)| i).collect()
    }
}

impl Binder<'_> {
    /// Whether a name alone is one of a column here or around.
    pub(super) fn is_column(&self, name: &str, scope: &Scope) -> bool {
        let has = |scope: &Scope| !scope.find(None, name).is_empty();
        has(scope) || self.outer.iter().any(has)
    }

    /// The column, field of a struct, or row that a name means.
    ///
    /// Errors: 42703, 42702.
    pub(super) fn name(&mut self, parts: &[String], scope: &Scope) -> Result<Expr> {
        let depth = self.outer.len();
        for levels in 0..=depth {
            let at = match levels {
                0 => scope,
                levels => &self.outer[depth - levels],
            };
            if let Some((index, rest)) = resolve(at, parts)? {
                let column = &at.columns[index];
                let (name, ty) = (column.name.clone(), column.ty.clone());
                let expr = match levels {
                    0 => Expr::column(index, name, ty),
                    levels => Node::Outer {
                        levels,
                        index,
                        name,
                        ty,
                    }
                    .into(),
                };
                return match rest {
                    [] => Ok(expr),
                    rest => field(expr, column, rest),
                };
            }
            // The name of a table alone is its row.
            if let [name] = parts
                && at.has_table(name)
            {
                let items = at
                    .of_table(name)
                    .into_iter()
                    .filter(|i| {
                        // What a join shares is hidden, and none the less a column of its table.
                        let column = &at.columns[*i];
                        !column.hidden || !matches!(column.name.as_str(), "_doc" | "tableoid")
                    })
                    .map(|index| {
                        let column = &at.columns[index];
                        match levels {
                            0 => Expr::column(index, column.name.clone(), column.ty.clone()),
                            levels => Node::Outer {
                                levels,
                                index,
                                name: column.name.clone(),
                                ty: column.ty.clone(),
                            }
                            .into(),
                        }
                    });
                return Ok(Node::Row(items.collect()).into());
            }
        }
        if let Some(own) = self.system_column(parts, scope)? {
            return Ok(own);
        }
        let known =
            parts.len() > 1 && (scope.has_table(&parts[0]) || self.outer.iter().any(|s| s.has_table(&parts[0])));
        match parts {
            [table, _, ..] if !known => fail("42P01", format!("missing FROM-clause entry for table \"{table}\"")),
            [name] => {
                let error = error("42703", format!("column \"{name}\" does not exist"));
                Err(places::with_likely(error, name, &scope.named(None)))
            }
            parts => {
                let error = error("42703", format!("column {} does not exist", parts.join(".")));
                let columns = scope.named(parts.first().map(String::as_str));
                Err(places::with_likely(error, &parts[1], &columns))
            }
        }
    }
}

/// The name of the column that has the keys of records, of tables whose rows are documents of a collection.
pub(super) const RECORD: &str = "\u{1}record";

/// Its modifier where records are those of several tables: they begin with the number of theirs ([`crate::functions::leaves`]).
pub(super) const PARTITIONED: i32 = 1;

/// The same of rows that were written, which come without it.
pub(super) const RETURNED: &str = "\u{1}returned";

impl Binder<'_> {
    /// What PostgreSQL knows of every row of a table: where it is, and in which table.
    ///
    /// Errors: 0A000 for the numbers of transactions and statements, which rows do not have; 42702.
    fn system_column(&mut self, parts: &[String], scope: &Scope) -> Result<Option<Expr>> {
        let (table, name) = match parts {
            [name] => (None, name.as_str()),
            [.., table, name] => (Some(table.as_str()), name.as_str()),
            [] => return Ok(None),
        };
        if !matches!(name, "ctid" | "tableoid" | "xmin" | "xmax" | "cmin" | "cmax") {
            return Ok(None);
        }
        for levels in 0..=self.outer.len() {
            let at = match levels {
                0 => scope,
                levels => &self.outer[self.outer.len() - levels],
            };
            let is_it = |column: &ScopeColumn| {
                matches!(column.name.as_str(), RECORD | RETURNED)
                    && (table.is_none() || column.table.as_deref() == table)
            };
            let mut found = at.columns.iter().enumerate().filter(|(_, column)| is_it(column));
            let Some((index, record)) = found.next() else { continue };
            if found.next().is_some() {
                return fail("42702", format!("column reference \"{name}\" is ambiguous"));
            }
            let key = match levels {
                0 => Expr::column(index, name, Type::Bytea),
                levels => Node::Outer {
                    levels,
                    index,
                    name: name.to_owned(),
                    ty: Type::Bytea,
                }
                .into(),
            };
            return match name {
                "tableoid" if record.modifier == PARTITIONED => {
                    crate::functions::call(leaves::TABLE, vec![key]).map(Some)
                }
                "ctid" if record.name == RECORD => {
                    let key = match record.modifier {
                        PARTITIONED => crate::functions::call(leaves::RECORD, vec![key])?,
                        _ => key,
                    };
                    crate::functions::call("record_place", vec![key]).map(Some)
                }
                "tableoid" => {
                    let is_returned = record.name == RETURNED;
                    let of_table = |column: &&ScopeColumn| column.table == record.table && column.origin.0 > 0;
                    let oid = at.columns.iter().find(of_table).map_or(0, |column| column.origin.0);
                    let oid = Expr::constant(Value::Int64(i64::from(oid)), Type::Oid);
                    if is_returned {
                        return Ok(Some(oid));
                    }
                    // A row of nulls is of no table.
                    let is_there = Node::IsNull(key, true).into();
                    Ok(Some(
                        Node::Case {
                            operand: None,
                            arms: vec![(is_there, oid)],
                            otherwise: None,
                            ty: Type::Oid,
                        }
                        .into(),
                    ))
                }
                name => fail("0A000", format!("system column \"{name}\" is not supported")),
            };
        }
        Ok(None)
    }
}

/// The column that a name begins with, and what is left of the name.
fn resolve<'p>(scope: &Scope, parts: &'p [String]) -> Result<Option<(usize, &'p [String])>> {
    let ambiguous = |name: &str| error("42702", format!("column reference \"{name}\" is ambiguous"));
    // `table.column`, also with a schema or a database and a schema before it, then `column.field`.
    for (at, table) in parts.iter().enumerate().take(3) {
        let Some(name) = parts.get(at + 1) else { break };
        match scope.find(Some(table), name).as_slice() {
            [index] => return Ok(Some((*index, &parts[at + 2..]))),
            [] => {}
            _ => return Err(ambiguous(name)),
        }
    }
    let [name, rest @ ..] = parts else { return Ok(None) };
    match scope.find(None, name).as_slice() {
        [index] if rest.is_empty() || matches!(scope.columns[*index].ty, Type::Jsonb | Type::Composite(_)) => {
            Ok(Some((*index, rest)))
        }
        [] | [_] => Ok(None),
        _ => Err(ambiguous(name)),
    }
}

/// A field of a struct. What its documents say it is decides its type; a field that none has is `jsonb`.
pub(super) fn field(expr: Expr, column: &ScopeColumn, path: &[String]) -> Result<Expr> {
    if let Type::Composite(_) = column.ty {
        return path.iter().try_fold(expr, attribute);
    }
    let mut fields = &column.fields;
    let mut ty = Type::Jsonb;
    for (i, name) in path.iter().enumerate() {
        match fields.iter().find(|field| field.name == *name) {
            Some(found) => {
                ty = found.ty.clone();
                fields = &found.fields;
            }
            None if i > 0 && ty != Type::Jsonb => {
                return fail(
                    "42703",
                    format!("field \"{name}\" of column \"{}\" does not exist", column.name),
                );
            }
            None => {
                ty = Type::Jsonb;
                fields = const { &Vec::new() };
            }
        }
    }
    Ok(Node::Field(expr, path.to_vec(), ty).into())
}

/// An attribute of a composite type, or a field of a struct within one.
///
/// Errors: 42703 for what is none, 42809 for what has none.
pub(super) fn attribute(of: Expr, name: &String) -> Result<Expr> {
    let ty = match of.ty() {
        Type::Jsonb => Type::Jsonb,
        Type::Composite(own) => match own.attribute(name) {
            Some(own) => own.ty.clone(),
            None => {
                let message = format!("column \"{name}\" not found in data type {}", own.shown());
                return fail("42703", message);
            }
        },
        ty => {
            let message = format!("column notation .{name} applied to type {ty}, which is not a composite type");
            return fail("42809", message);
        }
    };
    let (of, mut path) = match of.node() {
        Node::Field(of, path, Type::Jsonb | Type::Composite(_)) => (of.clone(), path.clone()),
        _ => (of, Vec::new()),
    };
    path.push(name.clone());
    Ok(Node::Field(of, path, ty).into())
}
