//! FOR UPDATE and its kin: a condition above the order of a SELECT and below its limit, which holds the rows that pass.

use super::files::file_of;
use super::policies::Finds;
use super::{Binder, Scope, ident, object_name};
use crate::catalog::Kind;
use crate::error::{fail, unsupported};
use crate::expr::{Expr, Node};
use crate::functions::hold;
use crate::types::Type;
use nestor_model::{Result, Value};
use nestor_planner::relation::Waiting;
use sqlparser::ast::{
    Distinct, GroupByExpr, JoinOperator, LockClause, LockType, NonBlock, Query, Select, SetExpr, TableAlias,
    TableFactor, TableWithJoins,
};

/// A row that a lock is for: where it comes from, and whether an outer join may leave it out.
struct Factor<'f> {
    factor: &'f TableFactor,
    is_nullable: bool,
}

fn shown(lock: &LockClause) -> &'static str {
    match lock.lock_type {
        LockType::Update => "FOR UPDATE",
        LockType::Share => "FOR SHARE",
    }
}

fn waiting(lock: &LockClause) -> Waiting {
    match lock.nonblock {
        None => Waiting::Wait,
        Some(NonBlock::SkipLocked) => Waiting::Skip,
        Some(NonBlock::Nowait) => Waiting::Fail,
    }
}

fn alias_of(factor: &TableFactor) -> Option<&TableAlias> {
    match factor {
        TableFactor::Table { alias, .. }
        | TableFactor::Derived { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::TableFunction { alias, .. }
        | TableFactor::UNNEST { alias, .. }
        | TableFactor::NestedJoin { alias, .. } => alias.as_ref(),
        _ => None,
    }
}

/// What a factor is called.
fn name_of(factor: &TableFactor) -> Option<String> {
    match (alias_of(factor), factor) {
        (Some(alias), _) => Some(ident(&alias.name)),
        (None, TableFactor::Table { name, .. }) => object_name(name).ok().map(|(_, name)| name),
        _ => None,
    }
}

fn is_wanted(lock: &LockClause, factor: &TableFactor) -> Result<bool> {
    match &lock.of {
        None => Ok(true),
        Some(name) => Ok(name_of(factor) == Some(object_name(name)?.1)),
    }
}

fn is_values(query: &Query) -> bool {
    matches!(&*query.body, SetExpr::Values(_))
}

/// The rows that stand side by side in FROM.
fn factors<'f>(item: &'f TableWithJoins, is_nullable: bool, out: &mut Vec<Factor<'f>>) {
    let begin = out.len();
    add(&item.relation, is_nullable, out);
    for join in &item.joins {
        let (left, right) = match &join.join_operator {
            JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => (false, true),
            JoinOperator::Right(_) | JoinOperator::RightOuter(_) => (true, false),
            JoinOperator::FullOuter(_) => (true, true),
            _ => (false, false),
        };
        for factor in &mut out[begin..] {
            factor.is_nullable |= left;
        }
        add(&join.relation, is_nullable || right, out);
    }
}

fn add<'f>(factor: &'f TableFactor, is_nullable: bool, out: &mut Vec<Factor<'f>>) {
    match factor {
        TableFactor::NestedJoin {
            table_with_joins,
            alias: None,
        } => factors(table_with_joins, is_nullable, out),
        factor => out.push(Factor { factor, is_nullable }),
    }
}

fn add_to_subqueries(item: &mut TableWithJoins, lock: &LockClause) -> Result<()> {
    let joined = item.joins.iter_mut().map(|join| &mut join.relation);
    for factor in std::iter::once(&mut item.relation).chain(joined) {
        let is_wanted = is_wanted(lock, factor)?;
        match factor {
            TableFactor::Derived { subquery, .. } if is_wanted && !is_values(subquery) => {
                subquery.locks.push(LockClause {
                    of: None,
                    ..lock.clone()
                })
            }
            TableFactor::NestedJoin { table_with_joins, .. } => add_to_subqueries(table_with_joins, lock)?,
            _ => {}
        }
    }
    Ok(())
}

/// FROM with the locks of the query in its subqueries as well.
pub(super) fn passed_on(from: &[TableWithJoins], locks: &[LockClause]) -> Result<Vec<TableWithJoins>> {
    let mut from = from.to_vec();
    for lock in locks {
        for item in &mut from {
            add_to_subqueries(item, lock)?;
        }
    }
    Ok(from)
}

/// Refuses locks of what is not made of rows of tables one by one.
pub(super) fn check_select(select: &Select, locks: &[LockClause]) -> Result<()> {
    let Some(lock) = locks.first() else { return Ok(()) };
    let groups = match &select.group_by {
        GroupByExpr::Expressions(exprs, _) => !exprs.is_empty(),
        GroupByExpr::All(_) => true,
    };
    let refused = match () {
        () if matches!(select.distinct, Some(Distinct::Distinct | Distinct::On(_))) => "DISTINCT clause",
        () if groups => "GROUP BY clause",
        () if select.having.is_some() => "HAVING clause",
        () => return Ok(()),
    };
    not_allowed(lock, refused)
}

/// Refuses a lock where something else stands.
pub(super) fn not_allowed<T>(lock: &LockClause, what: &str) -> Result<T> {
    fail("0A000", format!("{} is not allowed with {what}", shown(lock)))
}

impl Binder<'_> {
    /// The conditions that hold the rows of FROM which the locks of a query are for.
    ///
    /// Errors: 42P01 for names that are not there, 0A000 for what cannot be held, 42501.
    pub(super) fn holds(&mut self, from: &[TableWithJoins], locks: &[LockClause], scope: &Scope) -> Result<Vec<Expr>> {
        let mut all = Vec::new();
        for item in from {
            factors(item, false, &mut all);
        }
        let mut out: Vec<(usize, (String, String), bool, Waiting)> = Vec::new();
        for lock in locks {
            let mut found = false;
            for Factor { factor, is_nullable } in &all {
                if !is_wanted(lock, factor)? {
                    continue;
                }
                found = true;
                let Some((db, coll)) = self.held(factor, lock)? else {
                    continue;
                };
                if *is_nullable {
                    let shown = shown(lock);
                    return fail(
                        "0A000",
                        format!("{shown} cannot be applied to the nullable side of an outer join"),
                    );
                }
                let name = name_of(factor);
                let record = scope
                    .columns
                    .iter()
                    .position(|column| column.table == name && column.name == "\u{1}record");
                let Some(record) = record else {
                    return unsupported("FOR UPDATE of a table in this place");
                };
                let in_common = lock.lock_type == LockType::Share;
                match out.iter_mut().find(|(own, ..)| *own == record) {
                    // The stronger of two is meant.
                    Some((.., common, own)) => (*common, *own) = (*common && in_common, waiting(lock).max(*own)),
                    None => out.push((record, (db, coll), in_common, waiting(lock))),
                }
            }
            if let (Some(name), false) = (&lock.of, found) {
                let (name, shown) = (object_name(name)?.1, shown(lock));
                return fail(
                    "42P01",
                    format!("relation \"{name}\" in {shown} clause not found in FROM clause"),
                );
            }
        }
        let conditions = out.into_iter().map(|(record, (db, coll), in_common, waiting)| {
            let text = |text: String| Expr::constant(Value::String(text.into()), Type::Text);
            let waiting = match waiting {
                Waiting::Wait => 0,
                Waiting::Skip => 1,
                Waiting::Fail => 2,
            };
            let call = Node::Call {
                function: &hold::FUNCTION,
                args: vec![
                    text(db),
                    text(coll),
                    Expr::column(record, "record", Type::Bytea),
                    Expr::constant(Value::Bool(in_common), Type::Bool),
                    Expr::constant(Value::Int32(waiting), Type::Int4),
                ],
                ty: Type::Bool,
            };
            Expr::from(call)
        });
        Ok(conditions.collect())
    }

    /// What becomes of the rows of a factor of the FROM that is bound.
    ///
    /// Errors: those of names.
    pub(super) fn finds(&self, factor: &TableFactor) -> Result<Finds> {
        for lock in &self.locks {
            if is_wanted(lock, factor)? {
                return Ok(Finds::Hold);
            }
        }
        Ok(Finds::Read)
    }

    /// The collection whose rows a factor has, by database and name; `None` for what is not rows of a table and need not be.
    fn held(&mut self, factor: &TableFactor, lock: &LockClause) -> Result<Option<(String, String)>> {
        let none = |what: &str| match lock.of {
            None => Ok(None),
            Some(_) => fail("0A000", format!("{} cannot be applied to {what}", shown(lock))),
        };
        let name = match factor {
            TableFactor::Table { name, args: None, .. } => name,
            TableFactor::Derived { subquery, .. } if is_values(subquery) => return none("VALUES"),
            // Its query has the lock.
            TableFactor::Derived { .. } => return Ok(None),
            TableFactor::NestedJoin { .. } => return none("a join"),
            _ => return none("a function"),
        };
        if file_of(name).is_some() {
            return none("a file");
        }
        let (schema, table) = object_name(name)?;
        if schema.is_none() && self.cte(&table)?.is_some() {
            return none("a WITH query");
        }
        let Some(table) = self.catalog.table(schema.as_deref(), &table)? else {
            return fail("42P01", format!("relation \"{table}\" does not exist"));
        };
        match &table.kind {
            Kind::Collection(_) if table.materialized.is_some() => fail(
                "42809",
                format!("cannot lock rows in materialized view \"{}\"", table.name),
            ),
            Kind::Collection(ns) => {
                self.held.push(ns.clone());
                // Records of partitions tell which ones they are of.
                let coll = if table.division.is_some() { "" } else { &*ns.coll };
                Ok(Some((ns.db.to_string(), coll.to_owned())))
            }
            Kind::View(_) | Kind::Query(_) => unsupported("FOR UPDATE of a view"),
            Kind::Rows(_) | Kind::Files(_) => fail("42501", format!("permission denied for table {}", table.name)),
        }
    }
}
