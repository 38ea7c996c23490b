//! Domains in `pg_constraint` and `information_schema`.

use super::deparse::{self, Place};
use super::described::{described, truth};
use super::{Facts, Row, oid, schema_number, text};
use crate::catalog::Column;
use crate::types::Type;
use crate::types::domain::{Check, Domain};
use nestor_model::Value;
use std::sync::Arc;

/// The OID of the first condition of a domain of this OID: between those of tables' constraints and of defaults.
const CONSTRAINTS: i64 = 2_900_000_000;

/// The domains, each with its schema.
fn all(facts: &dyn Facts) -> Vec<(String, Arc<Domain>)> {
    let own = facts.made_types().into_iter().filter_map(|(schema, own)| match own {
        Type::Domain(own) => Some((schema, own)),
        _ => None,
    });
    own.collect()
}

/// The name of a domain in its schema.
fn name(own: &Arc<Domain>) -> String {
    Type::Domain(own.clone()).name()
}

/// The number of the first condition of a domain, which those of the others follow.
pub fn constraint(domain: u32) -> i64 {
    CONSTRAINTS + i64::from(domain) * 100 % 99_000_000
}

/// The conditions of all domains with their schemas and numbers.
fn conditions(facts: &dyn Facts) -> Vec<(String, Arc<Domain>, i64, Check)> {
    let each = all(facts).into_iter().flat_map(|(schema, own)| {
        let rows = (constraint(own.oid)..).zip(own.checks.clone());
        let rows = rows.map(|(number, check)| (schema.clone(), own.clone(), number, check));
        rows.collect::<Vec<_>>()
    });
    each.collect()
}

/// A condition as catalogs have it.
fn shown(own: &Domain, check: &Check, path: &[String]) -> String {
    let ty = own.base.clone().plain();
    let place = Place {
        columns: &[],
        path,
        value: Some(&ty),
    };
    deparse::condition(&check.text, place).unwrap_or_else(|| check.text.clone())
}

/// The rows of `pg_constraint`.
pub(super) fn constraints(facts: &dyn Facts) -> Vec<Row> {
    let path = facts.path();
    let each = conditions(facts).into_iter().map(|(schema, own, number, check)| {
        vec![
            ("oid", oid(number)),
            ("conname", text(&check.name)),
            ("connamespace", oid(schema_number(facts, &schema))),
            ("contype", text("c")),
            ("convalidated", Value::Bool(check.is_valid)),
            ("contypid", oid(own.oid)),
            ("conislocal", Value::Bool(true)),
            ("conbin", text(shown(&own, &check, &path))),
        ]
    });
    each.collect()
}

/// What `pg_get_constraintdef` tells of conditions; easy to read or with all parentheses.
pub(super) fn definitions(facts: &dyn Facts, pretty: bool) -> Vec<(i64, String)> {
    let path = facts.path();
    let each = conditions(facts).into_iter().map(|(_, own, number, check)| {
        let valid = if check.is_valid { "" } else { " NOT VALID" };
        let whole = match pretty {
            true => check.text.clone(),
            false => shown(&own, &check, &path),
        };
        (number, format!("CHECK ({whole}){valid}"))
    });
    each.collect()
}

/// What `pg_type` has of a domain beside what it has of other types.
pub(super) fn of_type(own: &Domain, path: &[String]) -> Row {
    let default = own.default.as_ref().map(|text| {
        let shown = deparse::default(text, &own.base.clone().plain(), path);
        shown.unwrap_or_else(|| text.clone())
    });
    vec![
        ("typbasetype", oid(own.base.oid())),
        ("typnotnull", Value::Bool(own.not_null)),
        ("typndims", Value::Int32(i32::from(own.base.element().is_some()))),
        ("typdefault", default.as_ref().map_or(Value::Null, text)),
        ("typdefaultbin", default.as_ref().map_or(Value::Null, text)),
    ]
}

/// The rows of a view of `information_schema` that is about domains.
pub(super) fn rows(view: &str, db: &str, facts: &dyn Facts) -> Vec<Row> {
    let path = facts.path();
    match view {
        "domains" => {
            let each = all(facts).into_iter().map(|(schema, own)| {
                let column = Column {
                    modifier: own.modifier,
                    ..Column::new("", own.base.clone())
                };
                // What it is over may be a domain itself, of which it is told as of a type.
                let column = Column {
                    domain: None,
                    ty: own.base.clone(),
                    ..column
                };
                let mut row = described(db, &column);
                row.retain(|(name, _)| !name.starts_with("domain_"));
                row.extend([
                    ("domain_catalog", text(db)),
                    ("domain_schema", text(schema)),
                    ("domain_name", text(name(&own))),
                    ("dtd_identifier", text("1")),
                ]);
                let said = of_type(&own, &path);
                let default = said.into_iter().find(|(name, _)| *name == "typdefault");
                row.extend(default.map(|(_, value)| ("domain_default", value)));
                row
            });
            each.collect()
        }
        "domain_constraints" => {
            let each = conditions(facts).into_iter().map(|(schema, own, _, check)| {
                vec![
                    ("constraint_catalog", text(db)),
                    ("constraint_schema", text(&schema)),
                    ("constraint_name", text(&check.name)),
                    ("domain_catalog", text(db)),
                    ("domain_schema", text(&schema)),
                    ("domain_name", text(name(&own))),
                    ("is_deferrable", truth(false)),
                    ("initially_deferred", truth(false)),
                ]
            });
            each.collect()
        }
        "check_constraints" => {
            let each = conditions(facts).into_iter().map(|(schema, own, _, check)| {
                vec![
                    ("constraint_catalog", text(db)),
                    ("constraint_schema", text(schema)),
                    ("constraint_name", text(&check.name)),
                    ("check_clause", text(format!("({})", shown(&own, &check, &path)))),
                ]
            });
            each.collect()
        }
        _ => {
            // `column_domain_usage`
            let relations = facts.relations().unwrap_or_default();
            let each = relations.iter().flat_map(|relation| {
                let table = &relation.table;
                let columns = table.columns.iter().filter_map(|column| match &column.domain {
                    Some(ty @ Type::Domain(_)) => Some(vec![
                        ("domain_catalog", text(db)),
                        ("domain_schema", text(ty.schema())),
                        ("domain_name", text(ty.name())),
                        ("table_catalog", text(db)),
                        ("table_schema", text(&table.schema)),
                        ("table_name", text(&table.name)),
                        ("column_name", text(&column.name)),
                    ]),
                    _ => None,
                });
                columns.collect::<Vec<_>>()
            });
            each.collect()
        }
    }
}
