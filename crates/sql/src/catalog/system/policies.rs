//! Policies in `pg_catalog`.

use super::deparse::{self, Place};
use super::{Facts, Relation, Row, oid, roles, text};
use crate::catalog::{Policy, PolicyCommand};
use nestor_model::{Array, Result, Value};

/// The numbers of policies begin here.
const FIRST: u32 = 2_600_000_000;

/// The number of a policy, which follows from its table and its name.
pub(super) fn number(relation: &Relation, policy: &Policy) -> u32 {
    FIRST + super::hash_within(relation, &policy.name) % 300_000_000
}

/// All policies with their tables.
fn each(facts: &dyn Facts, row: impl Fn(&Relation, &Policy) -> Row) -> Result<Vec<Row>> {
    let relations = facts.relations()?;
    let all = relations.iter().flat_map(|relation| {
        relation
            .table
            .row_security
            .policies
            .iter()
            .map(move |own| (relation, own))
    });
    Ok(all.map(|(relation, policy)| row(relation, policy)).collect())
}

/// A condition as it is shown.
fn shown(facts: &dyn Facts, relation: &Relation, condition: Option<&String>) -> Value {
    let Some(condition) = condition else { return Value::Null };
    let path = facts.path();
    let place = Place::of(&relation.table.columns, &path);
    text(deparse::condition(condition, place).unwrap_or_else(|| format!("({condition})")))
}

/// The rows of `pg_policy`.
///
/// Errors: those of [`Facts::relations`] and [`Facts::roles`].
pub fn rows(facts: &dyn Facts) -> Result<Vec<Row>> {
    let known = facts.roles()?;
    each(facts, |relation, policy| {
        let role = |name: &String| {
            let own = known.iter().find(|role| role.name == *name);
            oid(own.map_or_else(|| roles::number(name), |role| role.oid))
        };
        let of: Vec<Value> = match policy.roles.is_empty() {
            true => vec![oid(0)],
            false => policy.roles.iter().map(role).collect(),
        };
        let command = match policy.command {
            PolicyCommand::All => "*",
            PolicyCommand::Select => "r",
            PolicyCommand::Insert => "a",
            PolicyCommand::Update => "w",
            PolicyCommand::Delete => "d",
        };
        vec![
            ("oid", oid(number(relation, policy))),
            ("polname", text(&policy.name)),
            ("polrelid", oid(relation.oid)),
            ("polcmd", text(command)),
            ("polpermissive", Value::Bool(!policy.is_restrictive)),
            ("polroles", Value::Array(Array::new(of))),
            ("polqual", shown(facts, relation, policy.using.as_ref())),
            ("polwithcheck", shown(facts, relation, policy.check.as_ref())),
        ]
    })
}

/// The rows of `pg_policies`.
///
/// Errors: those of [`Facts::relations`].
pub fn view(facts: &dyn Facts) -> Result<Vec<Row>> {
    each(facts, |relation, policy| {
        let of: Vec<Value> = match policy.roles.is_empty() {
            true => vec![text("public")],
            false => policy.roles.iter().map(text).collect(),
        };
        let kind = if policy.is_restrictive {
            "RESTRICTIVE"
        } else {
            "PERMISSIVE"
        };
        vec![
            ("schemaname", text(&relation.table.schema)),
            ("tablename", text(&relation.table.name)),
            ("policyname", text(&policy.name)),
            ("permissive", text(kind)),
            ("roles", Value::Array(Array::new(of))),
            ("cmd", text(policy.command.word())),
            ("qual", shown(facts, relation, policy.using.as_ref())),
            ("with_check", shown(facts, relation, policy.check.as_ref())),
        ]
    })
}
