//! `WHERE CURRENT OF`: a cursor that may stand on a row of a table keeps the record of each of its rows behind their columns, and an UPDATE or
//! DELETE of the row that it stands on is one of that record.

use super::Session;
use crate::bind::{ident, object_name};
use crate::error::{error, fail};
use crate::parse::cursors::CURRENT_OF;
use crate::run::query;
use crate::run::tables::{Reading, SessionFacts};
use crate::types::{Type, output};
use nestor_database::Database;
use nestor_database::observe::op_kind::OpKind;
use nestor_database::statement::Statement;
use nestor_model::{Namespace, Result, Value};
use sqlparser::ast::{
    BinaryOperator, Expr, FromTable, GroupByExpr, Ident, ObjectName, Query, SelectItem, SetExpr, Statement as Ast,
    TableFactor, Value as Literal,
};

/// The table on whose rows a cursor stands.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    table: Namespace,
    /// The column that is the key of its records, if it is one, with its type.
    key: Option<(String, Type)>,
}

impl Standing {
    /// The columns that rows have behind those of the query.
    pub(super) fn width(&self) -> usize {
        1 + usize::from(self.key.is_some())
    }
}

/// The cursor that a statement names, if it is to change the row that this stands on.
fn cursor_of(ast: &Ast) -> Option<(&str, &ObjectName, Option<&Ident>)> {
    let (table, selection) = match ast {
        Ast::Update(update) => (&update.table.relation, update.selection.as_ref()),
        Ast::Delete(delete) => {
            let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
            (&from.first()?.relation, delete.selection.as_ref())
        }
        _ => return None,
    };
    let Some(Expr::Function(call)) = selection else {
        return None;
    };
    let named = call.name.0.first().and_then(|part| part.as_ident());
    named.filter(|name| name.value == CURRENT_OF && name.quote_style.is_some())?;
    let TableFactor::Table { name, alias, .. } = table else {
        return None;
    };
    let args = match &call.args {
        sqlparser::ast::FunctionArguments::List(list) => list.args.as_slice(),
        _ => return None,
    };
    match args {
        [sqlparser::ast::FunctionArg::Unnamed(sqlparser::ast::FunctionArgExpr::Expr(Expr::Value(value)))] => {
            match &value.value {
                Literal::SingleQuotedString(cursor) => Some((cursor, name, alias.as_ref().map(|alias| &alias.name))),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The collection that a name means.
fn collection(statement: &Statement<'_>, facts: &SessionFacts, name: &ObjectName) -> Result<Option<Namespace>> {
    let read = statement.read_view()?;
    let view = read.view();
    let (schema, name) = object_name(name)?;
    let candidates = facts.candidates(view, (schema.as_deref(), &name));
    let found = candidates.into_iter().find_map(|ns| view.catalog().get(&ns));
    Ok(found.filter(|found| !found.is_view()).map(|found| found.ns.clone()))
}

/// The table of a query whose rows are rows of it, as it is called there: the one that FROM names, or that is to be locked of several.
fn simple(query: &Query) -> Option<(&ObjectName, Ident)> {
    let SetExpr::Select(select) = &*query.body else {
        return None;
    };
    let is_plain = select.distinct.is_none()
        && select.having.is_none()
        && matches!(&select.group_by, GroupByExpr::Expressions(exprs, _) if exprs.is_empty())
        && query.with.is_none();
    let [item] = select.from.as_slice() else { return None };
    if !is_plain || !item.joins.is_empty() {
        return None;
    }
    match &item.relation {
        TableFactor::Table {
            name,
            alias,
            args: None,
            ..
        } => {
            let own = name.0.last()?.as_ident()?.clone();
            Some((name, alias.as_ref().map_or(own, |alias| alias.name.clone())))
        }
        _ => None,
    }
}

impl Session {
    /// A cursor's query with the record of each row behind its columns, where these are rows of one table.
    pub(super) fn standing(
        &mut self,
        database: &Database,
        text: &str,
        query: &Query,
    ) -> Result<Option<(Query, Standing)>> {
        let Some((name, alias)) = simple(query) else {
            return Ok(None);
        };
        self.statement(database, text, OpKind::Read, |statement, facts| {
            let Some(table) = collection(statement, facts, name)? else {
                return Ok(None);
            };
            let key = {
                let read = statement.read_view()?;
                let (op, _) = statement.operation(None)?;
                let found = Reading::new(statement, read.view(), &op, facts).table_at(&table)?;
                let columns = found.iter().flat_map(|table| &table.columns);
                let mut keys = columns.filter(|column| column.path == "_id");
                keys.next().map(|column| (column.name.clone(), column.ty.clone()))
            };
            let mut with_record = query.clone();
            let SetExpr::Select(select) = &mut *with_record.body else {
                return Ok(None);
            };
            let own = std::iter::once("\u{1}record").chain(key.iter().map(|(name, _)| name.as_str()));
            select.projection.extend(own.map(|name| {
                let column = Ident::with_quote('"', name);
                SelectItem::UnnamedExpr(Expr::CompoundIdentifier(vec![alias.clone(), column]))
            }));
            // Aggregates, for one, have no rows of the table.
            match query::describe(statement, facts, &with_record, Vec::new()) {
                Ok(_) => Ok(Some((with_record, Standing { table, key }))),
                Err(_) => Ok(None),
            }
        })
    }

    /// The statement that changes the row which a cursor stands on, if it is one of these.
    ///
    /// Errors: 34000, 24000.
    pub(super) fn positioned(&mut self, database: &Database, text: &str, ast: &Ast) -> Result<Option<Ast>> {
        let Some((cursor, name, alias)) = cursor_of(ast) else {
            return Ok(None);
        };
        let Some((standing, row)) = self.cursor_row(cursor) else {
            return fail("34000", format!("cursor \"{cursor}\" does not exist"));
        };
        let plain = name.0.last().and_then(|part| part.as_ident());
        let table = self.statement(database, text, OpKind::Read, |statement, facts| {
            collection(statement, facts, name)
        })?;
        let Some(standing) = standing.filter(|standing| table.as_ref() == Some(&standing.table)) else {
            let table = plain.map(ident).unwrap_or_default();
            let message = format!("cursor \"{cursor}\" is not a simply updatable scan of table \"{table}\"");
            return fail("24000", message);
        };
        let Some(row) = row else {
            return fail("24000", format!("cursor \"{cursor}\" is not positioned on a row"));
        };
        let own = alias.or(plain).cloned();
        let own = own.ok_or_else(|| error("42601", "a table has no name"))?;
        let equals = |name: &str, text: String| Expr::BinaryOp {
            left: Box::new(Expr::CompoundIdentifier(vec![
                own.clone(),
                Ident::with_quote('"', name),
            ])),
            op: BinaryOperator::Eq,
            right: Box::new(Expr::value(Literal::SingleQuotedString(text))),
        };
        let first = row.len() - standing.width();
        let record = match &row[first] {
            Value::Binary(key) => output::hex(&key.bytes),
            _ => return fail("XX000", "a row of a cursor has no record"),
        };
        let mut condition = equals("\u{1}record", record);
        if let (Some((name, ty)), Some(value)) = (&standing.key, row.get(first + 1))
            && !matches!(value, Value::Null)
            && *ty != Type::Jsonb
        {
            condition = Expr::BinaryOp {
                left: Box::new(condition),
                op: BinaryOperator::And,
                right: Box::new(equals(name, output::text(ty, value))),
            };
        }
        let mut changed = ast.clone();
        match &mut changed {
            Ast::Update(update) => update.selection = Some(condition),
            Ast::Delete(delete) => delete.selection = Some(condition),
            _ => {}
        }
        Ok(Some(changed))
    }
}
