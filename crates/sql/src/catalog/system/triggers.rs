//! Triggers in `pg_catalog` and `information_schema`.

use super::{Facts, Relation, Row, int, oid, searched, text};
use crate::parse::trigger::{Event, Trigger, quoted};
use crate::types::Type;
use nestor_model::{Array, Binary, Result, Value};

/// The numbers of triggers begin here.
const FIRST: u32 = 1_500_000_000;

/// The number of a trigger, which follows from its table and its name.
pub(super) fn number(relation: &Relation, trigger: &Trigger) -> u32 {
    FIRST + super::hash_within(relation, &trigger.name) % 500_000_000
}

/// The number of the constraint that a trigger is.
fn constraint(relation: &Relation, trigger: &Trigger) -> u32 {
    number(relation, trigger) + 500_000_000
}

/// The rows of `pg_constraint` that triggers are.
///
/// Errors: those of [`Facts::relations`].
pub fn constraints(facts: &dyn Facts) -> Result<Vec<Row>> {
    each(facts, |relation, trigger| {
        let own = trigger.constraint.map(|(may_wait, waits)| {
            vec![
                ("oid", oid(constraint(relation, trigger))),
                ("conname", text(&trigger.name)),
                ("connamespace", oid(relation.schema)),
                ("contype", text("t")),
                ("convalidated", Value::Bool(true)),
                ("conrelid", oid(relation.oid)),
                ("condeferrable", Value::Bool(may_wait)),
                ("condeferred", Value::Bool(waits)),
                ("conislocal", Value::Bool(true)),
            ]
        });
        own.into_iter().collect()
    })
}

/// All triggers with their tables.
fn each<T>(facts: &dyn Facts, row: impl Fn(&Relation, &Trigger) -> Vec<T>) -> Result<Vec<T>> {
    let relations = facts.relations()?;
    let all = relations
        .iter()
        .flat_map(|relation| relation.table.triggers.iter().map(move |trigger| (relation, trigger)));
    Ok(all.flat_map(|(relation, trigger)| row(relation, trigger)).collect())
}

/// The rows of `pg_trigger`.
///
/// Errors: those of [`Facts::relations`].
pub fn rows(facts: &dyn Facts) -> Result<Vec<Row>> {
    let routines = facts.routines();
    each(facts, |relation, trigger| {
        let function = routines.iter().find(|own| {
            let schema = own.schema.as_deref().unwrap_or("public");
            own.name == trigger.function && trigger.schema.as_deref().unwrap_or(schema) == schema
        });
        let numbered = |column: &String| {
            let at = relation.table.columns.iter().position(|own| own.name == *column);
            int(at.map_or(0, |at| at + 1))
        };
        let args: Vec<u8> = trigger.args.iter().flat_map(|arg| arg.bytes().chain([0])).collect();
        let mut row: Row = vec![
            ("oid", oid(number(relation, trigger))),
            ("tgrelid", oid(relation.oid)),
            ("tgparentid", oid(0)),
            ("tgname", text(&trigger.name)),
            (
                "tgfoid",
                function.map_or_else(
                    || oid(searched::trigger_function(&trigger.function)),
                    |own| oid(own.oid),
                ),
            ),
            ("tgtype", Value::Int32(i32::from(trigger.bits()))),
            ("tgenabled", text(if trigger.is_off { "D" } else { "O" })),
            ("tgisinternal", Value::Bool(false)),
            ("tgconstrrelid", oid(0)),
            ("tgconstrindid", oid(0)),
            (
                "tgconstraint",
                oid(trigger.constraint.map_or(0, |_| constraint(relation, trigger))),
            ),
            (
                "tgdeferrable",
                Value::Bool(trigger.constraint.is_some_and(|(may_wait, _)| may_wait)),
            ),
            (
                "tginitdeferred",
                Value::Bool(trigger.constraint.is_some_and(|(_, waits)| waits)),
            ),
            ("tgoldtable", trigger.tables.0.as_ref().map_or(Value::Null, text)),
            ("tgnewtable", trigger.tables.1.as_ref().map_or(Value::Null, text)),
            ("tgnargs", int(trigger.args.len())),
            (
                "tgattr",
                Value::Array(Array::new(trigger.columns.iter().map(numbered).collect())),
            ),
            (
                "tgargs",
                Value::Binary(Binary {
                    subtype: 0,
                    bytes: args.into(),
                }),
            ),
        ];
        row.extend(
            trigger
                .condition
                .as_ref()
                .map(|condition| ("tgqual", text(condition.to_string()))),
        );
        vec![row]
    })
}

/// The rows of `information_schema.triggers`.
///
/// Errors: those of [`Facts::relations`].
pub fn standard(facts: &dyn Facts, db: &str) -> Result<Vec<Row>> {
    let path = facts.path();
    each(facts, |relation, trigger| {
        let table = &relation.table;
        let events = trigger.events.iter().map(|event| {
            let like = |own: &&Trigger| {
                own.events.contains(event) && own.is_row == trigger.is_row && own.is_before == trigger.is_before
            };
            let before = table
                .triggers
                .iter()
                .filter(|own| like(own) && own.name <= trigger.name);
            let orientation = if trigger.is_row { "ROW" } else { "STATEMENT" };
            let mut row: Row = vec![
                ("trigger_catalog", text(db)),
                ("trigger_schema", text(&table.schema)),
                ("trigger_name", text(&trigger.name)),
                ("event_manipulation", text(event.name())),
                ("event_object_catalog", text(db)),
                ("event_object_schema", text(&table.schema)),
                ("event_object_table", text(&table.name)),
                ("action_order", int(before.count())),
                ("action_statement", text(trigger.call(&path))),
                ("action_orientation", text(orientation)),
                ("action_timing", text(trigger.when())),
                (
                    "action_reference_old_table",
                    trigger.tables.0.as_ref().map_or(Value::Null, text),
                ),
                (
                    "action_reference_new_table",
                    trigger.tables.1.as_ref().map_or(Value::Null, text),
                ),
            ];
            let condition = trigger.shown_condition();
            row.extend(condition.map(|condition| ("action_condition", text(format!("({condition})")))));
            (*event, row)
        });
        // TRUNCATE is none of the standard's.
        events
            .filter(|(event, _)| *event != Event::Truncate)
            .map(|(_, row)| row)
            .collect()
    })
}

/// The statements that make triggers, by number; with `pretty` tables that `search_path` finds have no schema.
///
/// Errors: those of [`Facts::relations`].
pub fn definitions(facts: &dyn Facts, pretty: bool) -> Result<Vec<(i64, String)>> {
    let path = facts.path();
    each(facts, |relation, trigger| {
        let (schema, name) = (quoted(&relation.table.schema), quoted(&relation.table.name));
        let table = match pretty && path.contains(&relation.table.schema) {
            true => name,
            false => format!("{schema}.{name}"),
        };
        vec![(
            i64::from(number(relation, trigger)),
            trigger.shown(&table, pretty, &path),
        )]
    })
}

/// The rows of `information_schema.parameters`.
pub fn parameters(facts: &dyn Facts, db: &str) -> Vec<Row> {
    let mut out = Vec::new();
    for own in &facts.routines() {
        let schema = own.schema.as_deref().unwrap_or("public");
        for (at, parameter) in (1..).zip(&own.parameters) {
            let mode = match parameter.mode.letter() {
                "o" | "t" => "OUT",
                "b" => "INOUT",
                _ => "IN",
            };
            let (shown, of) = match &parameter.ty {
                Type::Array(_) => ("ARRAY".to_owned(), "pg_catalog"),
                ty @ Type::Composite(_) => ("USER-DEFINED".to_owned(), ty.schema()),
                ty if ty.made().is_some() => ("USER-DEFINED".to_owned(), ty.schema()),
                ty => (ty.to_string(), "pg_catalog"),
            };
            let mut row: Row = vec![
                ("specific_catalog", text(db)),
                ("specific_schema", text(schema)),
                ("specific_name", text(format!("{}_{}", own.name, own.oid))),
                ("ordinal_position", int(at)),
                ("parameter_mode", text(mode)),
                ("is_result", text("NO")),
                ("as_locator", text("NO")),
                ("data_type", text(shown)),
                ("udt_catalog", text(db)),
                ("udt_schema", text(of)),
                ("udt_name", text(parameter.ty.name())),
                ("dtd_identifier", text(at.to_string())),
            ];
            row.extend(parameter.name.as_ref().map(|name| ("parameter_name", text(name))));
            let default = parameter.default.as_ref();
            row.extend(default.map(|default| ("parameter_default", text(default.to_string()))));
            out.push(row);
        }
    }
    out
}
