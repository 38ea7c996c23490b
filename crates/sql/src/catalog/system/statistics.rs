//! What connections are at, and what was counted of tables: nothing but their rows, as Nestor counts by collections elsewhere.

use super::{Facts, Named, OWNER, Relation, Row, int, is_view, oid, text};
use crate::types::{Type, network};
use nestor_model::{Array, Result, Value};

/// The rows of a table of statistics, if it is one.
///
/// Errors: those of [`Facts::relations`].
pub fn rows(name: &str, facts: &dyn Facts) -> Result<Option<Vec<Row>>> {
    Ok(Some(match name {
        "pg_stat_activity" => activities(facts),
        "pg_prepared_statements" => {
            let own = facts.of_session();
            let row = |one: &Named| -> Row {
                let types = one.types.iter().map(|ty| oid(ty.oid()));
                vec![
                    ("name", text(&one.name)),
                    ("statement", text(&one.text)),
                    ("prepare_time", Value::Int64(one.made_ms * 1000)),
                    ("parameter_types", Value::Array(Array::new(types.collect()))),
                    ("from_sql", Value::Bool(one.by_sql)),
                    ("generic_plans", Value::Int64(0)),
                    ("custom_plans", Value::Int64(0)),
                ]
            };
            own.prepared.iter().map(row).collect()
        }
        "pg_cursors" => {
            let own = facts.of_session();
            let row = |one: &Named| -> Row {
                vec![
                    ("name", text(&one.name)),
                    ("statement", text(&one.text)),
                    ("is_holdable", Value::Bool(one.holds)),
                    ("is_binary", Value::Bool(one.is_binary)),
                    ("is_scrollable", Value::Bool(one.scrolls)),
                    ("creation_time", Value::Int64(one.made_ms * 1000)),
                ]
            };
            own.cursors.iter().map(row).collect()
        }
        "pg_stat_database" => {
            let activities = facts.activities();
            let each = databases(facts).into_iter().map(|(n, name)| {
                let here = activities.iter().filter(|one| one.database.as_deref() == Some(&name));
                vec![
                    ("datid", oid(n)),
                    ("datname", text(&name)),
                    ("numbackends", int(here.count())),
                ]
            });
            each.collect()
        }
        "pg_stat_user_tables" | "pg_stat_all_tables" => {
            of_tables(facts, |relation| vec![("n_live_tup", Value::Int64(relation.count))])?
        }
        "pg_statio_user_tables" | "pg_statio_all_tables" => of_tables(facts, |_| Vec::new())?,
        "pg_stat_database_conflicts" => {
            let each = databases(facts).into_iter();
            each.map(|(n, name)| vec![("datid", oid(n)), ("datname", text(&name))])
                .collect()
        }
        "pg_stat_user_indexes" | "pg_stat_all_indexes" | "pg_statio_user_indexes" | "pg_statio_all_indexes" => {
            let mut out = Vec::new();
            for relation in facts.relations()?.iter() {
                for index in &relation.indexes {
                    out.push(vec![
                        ("relid", oid(relation.oid)),
                        ("indexrelid", oid(index.oid)),
                        ("schemaname", text(&relation.table.schema)),
                        ("relname", text(&relation.table.name)),
                        ("indexrelname", text(&index.name)),
                    ]);
                }
            }
            out
        }
        _ => return Ok(None),
    }))
}

/// The databases with their OIDs.
pub(super) fn databases(facts: &dyn Facts) -> Vec<(i64, String)> {
    (16_384i64..).zip(facts.databases()).collect()
}

fn of_tables(facts: &dyn Facts, more: impl Fn(&Relation) -> Row) -> Result<Vec<Row>> {
    let relations = facts.relations()?;
    let tables = relations.iter().filter(|relation| !is_view(&relation.table));
    let row = |relation: &Relation| {
        let mut row: Row = vec![
            ("relid", oid(relation.oid)),
            ("schemaname", text(&relation.table.schema)),
            ("relname", text(&relation.table.name)),
        ];
        row.extend(more(relation));
        row
    };
    Ok(tables.map(row).collect())
}

fn activities(facts: &dyn Facts) -> Vec<Row> {
    let databases = databases(facts);
    let all = facts.activities().into_iter().map(|one| {
        let or_null = |value: &Option<String>| value.as_ref().map_or(Value::Null, text);
        let number = |name: &String| databases.iter().find(|(_, own)| own == name).map(|(n, _)| *n);
        let (address, port) = one.peer.rsplit_once(':').unwrap_or((&one.peer, ""));
        let address = address.trim_start_matches('[').trim_end_matches(']');
        let since = one.since_us.map_or(Value::Null, Value::Int64);
        let row: Row = vec![
            ("datid", one.database.as_ref().and_then(number).map_or(Value::Null, oid)),
            ("datname", or_null(&one.database)),
            ("pid", Value::Int32(one.pid)),
            ("usesysid", oid(OWNER)),
            ("usename", or_null(&one.user)),
            ("application_name", text(one.application.as_deref().unwrap_or_default())),
            (
                "client_addr",
                network::parse(&Type::Inet, address).unwrap_or(Value::Null),
            ),
            ("client_port", port.parse().map_or(Value::Null, Value::Int32)),
            ("query_start", since.clone()),
            ("state_change", since),
            ("state", text(if one.runs { "active" } else { "idle" })),
            ("query", text(one.query.as_deref().unwrap_or_default())),
            ("backend_type", text("client backend")),
        ];
        row
    });
    all.collect()
}
