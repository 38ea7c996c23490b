//! Catalogs of relations: tables, columns, indexes, constraints, views.

use super::PRETTY_CONSTRAINTDEF;
use super::deparse::{self, Place};
use super::indexes::{
    collation_of, constraint, constraint_oid, constraint_oid_of, constraintdef, included_part, index_row, indexdef,
    keeps_constraint, method, named_part, numbers, part,
};
use super::partitions::index_parents;
use super::roles;
use super::shapes;
use super::{
    DATABASE_OWNER, Facts, INFORMATION_SCHEMA, IndexFacts, OWNER, PG_CATALOG, PUBLIC, RELATIONS, ROW_TYPES, Relation,
    Row, int, is_table, is_view, oid, text,
};
use super::{schema_number, shown};
use crate::catalog::schemas::is_temporary;
use crate::catalog::{Column, Foreign, IdentityKind, Kind, Referential, Table, Timing};
use crate::functions::part_key;
use crate::parse::own::CheckOption;
use crate::types::Type;
pub use crate::types::names::quoted;
use nestor_model::{Array, Result, Value};
use nestor_planner::kinds::expression;
use std::collections::{HashMap, HashSet};

/// The rows of a table of `pg_catalog`, if it is about relations.
///
/// Errors: those of [`Facts::relations`].
pub fn rows(name: &str, facts: &dyn Facts) -> Result<Option<Vec<Row>>> {
    Ok(Some(match name {
        "pg_namespace" => [
            (PG_CATALOG, "pg_catalog"),
            (PUBLIC, "public"),
            (INFORMATION_SCHEMA, "information_schema"),
        ]
        .into_iter()
        .map(|(n, name)| (n, name.to_owned()))
        .chain(facts.schemas())
        .map(|(n, name)| {
            let owner = if n == PUBLIC { DATABASE_OWNER } else { OWNER };
            vec![("oid", oid(n)), ("nspname", text(name)), ("nspowner", oid(owner))]
        })
        .collect(),
        "pg_class" => classes(facts)?,
        "pg_attribute" => attributes(facts)?,
        "pg_index" => each_index(facts, |relation, index| Some(index_row(relation, index)))?,
        "pg_trigger" => super::triggers::rows(facts)?,
        "pg_policy" => super::policies::rows(facts)?,
        "pg_policies" => super::policies::view(facts)?,
        "pg_constraint" => {
            let relations = facts.relations()?;
            let above: HashMap<u32, u32> = index_parents(&relations).into_iter().collect();
            let mut out = each_index(facts, |relation, index| {
                let mut row = constraint(relation, index)?;
                if let Some(parent) = above.get(&index.oid) {
                    inherit(&mut row, Some(constraint_oid_of(*parent)));
                }
                Some(row)
            })?;
            for relation in relations.iter() {
                out.extend(declared_constraints(&facts.path(), relation, &relations)?);
            }
            out.extend(super::triggers::constraints(facts)?);
            out.extend(super::domains::constraints(facts));
            out.extend(facts.assertions().into_iter().map(|(number, name, condition)| {
                vec![
                    ("oid", oid(number)),
                    ("conname", text(name)),
                    ("connamespace", oid(PUBLIC)),
                    ("contype", text("c")),
                    ("convalidated", Value::Bool(true)),
                    ("conrelid", oid(0)),
                    ("conbin", text(condition)),
                ]
            }));
            out
        }
        "pg_attrdef" => {
            let (relations, path) = (facts.relations()?, facts.path());
            let mut out = Vec::new();
            for relation in relations.iter() {
                for (at, column) in (1..).zip(&relation.table.columns) {
                    let place = (relation.table.schema.as_str(), relation.table.name.as_str());
                    let Some(default) = default_of(&path, place, &relation.table.columns, column) else {
                        continue;
                    };
                    out.push(vec![
                        ("oid", oid(default_number(relation, at))),
                        ("adrelid", oid(relation.oid)),
                        ("adnum", int(at)),
                        ("adbin", text(default)),
                    ]);
                }
            }
            out
        }
        "pg_sequence" => {
            let each = facts.sequences()?.into_iter().map(|sequence| {
                vec![
                    ("seqrelid", oid(sequence.oid)),
                    ("seqtypid", oid(sequence.ty.oid())),
                    ("seqstart", Value::Int64(sequence.counting.start)),
                    ("seqincrement", Value::Int64(sequence.counting.increment)),
                    ("seqmax", Value::Int64(sequence.counting.max)),
                    ("seqmin", Value::Int64(sequence.counting.min)),
                    ("seqcache", Value::Int64(sequence.counting.cache)),
                    ("seqcycle", Value::Bool(sequence.counting.cycle)),
                ]
            });
            each.collect()
        }
        "pg_sequences" => {
            let each = facts.sequences()?.into_iter().map(|sequence| {
                vec![
                    ("schemaname", text(&sequence.schema)),
                    ("sequencename", text(&sequence.name)),
                    ("sequenceowner", text(facts.user())),
                    ("data_type", oid(sequence.ty.oid())),
                    ("start_value", Value::Int64(sequence.counting.start)),
                    ("min_value", Value::Int64(sequence.counting.min)),
                    ("max_value", Value::Int64(sequence.counting.max)),
                    ("increment_by", Value::Int64(sequence.counting.increment)),
                    ("cycle", Value::Bool(sequence.counting.cycle)),
                    ("cache_size", Value::Int64(sequence.counting.cache)),
                    ("last_value", sequence.last.map_or(Value::Null, Value::Int64)),
                ]
            });
            each.collect()
        }
        "pg_tables" => {
            let relations = facts.relations()?;
            let tables = relations.iter().filter(|relation| is_table(&relation.table));
            tables
                .map(|relation| {
                    vec![
                        ("schemaname", text(&relation.table.schema)),
                        ("tablename", text(&relation.table.name)),
                        ("tableowner", text(facts.user())),
                        ("hasindexes", Value::Bool(!relation.indexes.is_empty())),
                    ]
                })
                .collect()
        }
        "pg_views" => {
            let relations = facts.relations()?;
            let views = relations.iter().filter(|relation| is_view(&relation.table));
            views
                .map(|relation| {
                    vec![
                        ("schemaname", text(&relation.table.schema)),
                        ("viewname", text(&relation.table.name)),
                        ("viewowner", text(facts.user())),
                        ("definition", relation.definition.as_ref().map_or(Value::Null, text)),
                    ]
                })
                .collect()
        }
        "pg_matviews" => {
            let relations = facts.relations()?;
            let own = relations.iter().filter_map(|relation| {
                let materialized = relation.table.materialized.as_ref()?;
                Some(vec![
                    ("schemaname", text(&relation.table.schema)),
                    ("matviewname", text(&relation.table.name)),
                    ("matviewowner", text(facts.user())),
                    ("hasindexes", Value::Bool(!relation.indexes.is_empty())),
                    ("ispopulated", Value::Bool(materialized.is_populated)),
                    ("definition", relation.definition.as_ref().map_or(Value::Null, text)),
                ])
            });
            own.collect()
        }
        "pg_indexes" => each_index(facts, |relation, index| {
            Some(vec![
                ("schemaname", text(&relation.table.schema)),
                ("tablename", text(&relation.table.name)),
                ("indexname", text(&index.name)),
                ("indexdef", text(indexdef(relation, index))),
            ])
        })?,
        _ => return Ok(None),
    }))
}

fn each_index(facts: &dyn Facts, row: impl Fn(&Relation, &IndexFacts) -> Option<Row>) -> Result<Vec<Row>> {
    let relations = facts.relations()?;
    let all = relations
        .iter()
        .flat_map(|relation| relation.indexes.iter().map(move |index| (relation, index)));
    Ok(all.filter_map(|(relation, index)| row(relation, index)).collect())
}

/// How long what stands in a schema stays.
fn persistence(schema: &str) -> &'static str {
    if is_temporary(schema) { "t" } else { "p" }
}

fn class(number: u32, name: &str, (schema, persistence): (i64, &str), kind: &str, columns: usize) -> Row {
    let has_storage = !matches!(kind, "v" | "p" | "I");
    vec![
        ("oid", oid(number)),
        ("relname", text(name)),
        ("relnamespace", oid(schema)),
        ("relowner", oid(OWNER)),
        (
            "relam",
            oid(match kind {
                "r" | "m" => 2,
                "i" | "I" => 403,
                _ => 0,
            }),
        ),
        ("relfilenode", oid(if has_storage { number } else { 0 })),
        ("reltuples", Value::Double(-1.0)),
        ("relpersistence", text(persistence)),
        ("relkind", text(kind)),
        ("relnatts", int(columns)),
        ("relispopulated", Value::Bool(true)),
        (
            "relreplident",
            text(if matches!(kind, "r" | "m" | "p") { "d" } else { "n" }),
        ),
    ]
}

fn classes(facts: &dyn Facts) -> Result<Vec<Row>> {
    let mut out = Vec::new();
    let (relations, roles) = (facts.relations()?, facts.roles()?);
    let of_indexes = index_parents(&relations);
    let inherited: HashSet<u32> = of_indexes.iter().map(|(own, _)| *own).collect();
    let of_tables = relations.iter().filter_map(|own| Some(own.partition.as_ref()?.parent));
    let parents: HashSet<u32> = of_tables.chain(of_indexes.iter().map(|(_, parent)| *parent)).collect();
    for relation in relations.iter() {
        let table = &relation.table;
        let kind = match &table.materialized {
            Some(_) => "m",
            None if is_view(table) => "v",
            None if table.division.is_some() => "p",
            None => "r",
        };
        let schema = match table.is_unlogged {
            true => (relation.schema, "u"),
            false => (relation.schema, persistence(&table.schema)),
        };
        let mut row = class(relation.oid, &table.name, schema, kind, table.columns.len());
        row.retain(|(name, _)| !matches!(*name, "reltuples" | "relispopulated"));
        let populated = table.materialized.as_ref().is_none_or(|own| own.is_populated);
        row.push(("relispopulated", Value::Bool(populated)));
        row.push(("reltuples", Value::Double(relation.count as f64)));
        row.push(("relhasindex", Value::Bool(!relation.indexes.is_empty())));
        row.push(("relchecks", int(table.checks.len())));
        // Foreign keys are kept by triggers in PostgreSQL, on both sides; clients look for them where there are some.
        // Keys of a table are those of its partitions.
        let refers = |other: &Relation| {
            other
                .table
                .foreign
                .iter()
                .any(|key| key.table == table.name || relation.partition.is_some())
        };
        let has_own = !table.foreign.is_empty() || !table.triggers.is_empty();
        let has_triggers = has_own || relations.iter().any(refers);
        row.push(("relhastriggers", Value::Bool(has_triggers)));
        let checked = table.check_option.map(|option| match option {
            CheckOption::Local => "check_option=local",
            CheckOption::Cascaded => "check_option=cascaded",
        });
        let shown: Vec<Value> = table.storage.iter().map(text).chain(checked.map(text)).collect();
        if !shown.is_empty() {
            row.push(("reloptions", Value::Array(Array::new(shown))));
        }
        row.push(("relrowsecurity", Value::Bool(table.row_security.is_on)));
        row.push(("relforcerowsecurity", Value::Bool(table.row_security.is_forced)));
        row.extend(roles::access_list(facts, &roles, relation).map(|list| ("relacl", list)));
        row.push(("relhasrules", Value::Bool(!matches!(kind, "r" | "p"))));
        row.push(("relhassubclass", Value::Bool(parents.contains(&relation.oid))));
        if let Some(own) = &relation.partition {
            row.push(("relispartition", Value::Bool(true)));
            row.push(("relpartbound", text(&own.bound)));
        }
        row.push(("reltype", oid(relation.oid.saturating_add(ROW_TYPES))));
        out.push(row);
        for index in &relation.indexes {
            let own = if kind == "p" { "I" } else { "i" };
            let mut row = class(index.oid, &index.name, schema, own, index.all().count());
            row.push(("relispartition", Value::Bool(inherited.contains(&index.oid))));
            row.push(("relhassubclass", Value::Bool(parents.contains(&index.oid))));
            row.retain(|(name, _)| *name != "relam");
            row.push(("relam", oid(method(relation, index).1)));
            if !index.storage.is_empty() {
                let shown = index.storage.iter().map(text).collect();
                row.push(("reloptions", Value::Array(Array::new(shown))));
            }
            out.push(row);
        }
    }
    for (schema, own) in facts.made_types() {
        let Type::Composite(own) = own else { continue };
        let number = schema_number(facts, &schema);
        let name = own.name.rsplit('.').next().unwrap_or(&own.name);
        let mut row = class(own.oid, name, (number, persistence(&schema)), "c", own.attributes.len());
        row.retain(|(name, _)| *name != "relfilenode");
        row.push(("reltype", oid(own.oid)));
        out.push(row);
    }
    for sequence in facts.sequences()? {
        let schema = (schema_number(facts, &sequence.schema), persistence(&sequence.schema));
        out.push(class(sequence.oid, &sequence.name, schema, "S", 3));
    }
    Ok(out)
}

/// The rows of `pg_class` that are the catalog's own.
pub(super) fn own_classes() -> Vec<Row> {
    let each = shapes::all().map(|shape| {
        let kind = if shape.is_view { "v" } else { "r" };
        let schema = (shape.namespace(), "p");
        let mut row = class(shape.oid, shape.name, schema, kind, shape.columns().count());
        row.push(("reltype", oid(shape.oid.saturating_add(ROW_TYPES))));
        row
    });
    each.collect()
}

fn attribute(relation: u32, at: usize, name: &str, ty: &Type) -> Row {
    vec![
        ("attrelid", oid(relation)),
        ("attname", text(name)),
        ("atttypid", oid(ty.oid())),
        ("attlen", Value::Int32(i32::from(ty.length()))),
        ("attnum", int(at)),
        ("atttypmod", Value::Int32(-1)),
        ("attndims", Value::Int32(i32::from(matches!(ty, Type::Array(_))))),
        ("attstattarget", Value::Int32(-1)),
        ("attcacheoff", Value::Int32(-1)),
        ("attstorage", text(ty.storage())),
        ("attcollation", oid(ty.collation())),
        ("attislocal", Value::Bool(true)),
    ]
}

fn attributes(facts: &dyn Facts) -> Result<Vec<Row>> {
    let mut out = Vec::new();
    for relation in facts.relations()?.iter() {
        for (at, column) in (1..).zip(&relation.table.columns) {
            let mut row = attribute(relation.oid, at, &column.name, column.declared_type());
            row.retain(|(name, _)| !["atttypmod", "attcollation"].contains(name));
            row.push(("attcollation", oid(column.collation())));
            row.push(("atttypmod", Value::Int32(column.modifier)));
            row.push(("attnotnull", Value::Bool(column.not_null)));
            if relation.partition.is_some() {
                row.retain(|(name, _)| *name != "attislocal");
                row.push(("attislocal", Value::Bool(false)));
                row.push(("attinhcount", Value::Int32(1)));
            }
            row.push((
                "atthasdef",
                Value::Bool(default_of(&[], ("", &relation.table.name), &relation.table.columns, column).is_some()),
            ));
            if let Some(kind) = column.identity.map(|identity| identity.kind) {
                let shown = match kind {
                    IdentityKind::Always => "a",
                    IdentityKind::ByDefault => "d",
                    IdentityKind::Serial => "",
                };
                row.push(("attidentity", text(shown)));
            }
            if column.generated.is_some() {
                row.push(("attgenerated", text("s")));
            }
            out.push(row);
        }
        for index in &relation.indexes {
            for (at, path) in (1..).zip(index.all()) {
                let column = relation.table.columns.iter().find(|column| column.path == *path);
                let ty = column.map_or(Type::Jsonb, |column| column.ty.clone());
                let name = column.map_or(path, |column| &column.name);
                let mut row = attribute(index.oid, at, name, &ty);
                row.retain(|(name, _)| !["atttypmod", "attcollation"].contains(name));
                row.push(("attcollation", oid(collation_of(relation, index, at - 1))));
                row.push(("atttypmod", Value::Int32(column.map_or(-1, |column| column.modifier))));
                out.push(row);
            }
        }
    }
    for (_, own) in facts.made_types() {
        let Type::Composite(composite) = &own else { continue };
        for (at, own) in (1..).zip(&composite.attributes) {
            let mut row = attribute(composite.oid, at, &own.name, &own.ty);
            row.retain(|(name, _)| *name != "atttypmod");
            row.push(("atttypmod", Value::Int32(own.modifier)));
            out.push(row);
        }
    }
    Ok(out)
}

/// The rows of `pg_attribute` that are of the catalog's own tables.
pub(super) fn own_attributes() -> Vec<Row> {
    let each = shapes::all().flat_map(|shape| {
        let columns = (1..).zip(shape.columns());
        columns.map(|(at, (name, ty))| attribute(shape.oid, at, name, &ty))
    });
    each.collect()
}

/// Whether a column has the numbers of a sequence by default.
fn is_serial(column: &Column) -> bool {
    let identity = column.identity;
    identity.is_some_and(|identity| identity.kind == IdentityKind::Serial)
}

/// The text of a column's default, or of the expression that gives its value.
pub(super) fn default_of(
    path: &[String],
    (schema, table): (&str, &str),
    columns: &[Column],
    column: &Column,
) -> Option<String> {
    if let Some(written) = &column.generated {
        return Some(deparse::condition(written, Place::of(columns, path)).unwrap_or_else(|| written.clone()));
    }
    if is_serial(column) {
        let sequence = column.sequence_of(table);
        return Some(format!(
            "nextval('{}'::regclass)",
            shown(path, schema, &sequence).replace('\'', "''")
        ));
    }
    let written = column.default.as_ref()?;
    // Null is the default of all columns; one that is fitted to a modifier is none the less kept.
    if written.eq_ignore_ascii_case("null") && column.modifier < 0 {
        return None;
    }
    Some(deparse::default(written, &column.ty, path).unwrap_or_else(|| written.clone()))
}

/// The OID of what is declared of a table, by its place.
pub(super) fn constraint_number(relation: &Relation, at: usize) -> i64 {
    let place = i64::try_from(at % 1700).unwrap_or(0);
    2_500_000_000 + (i64::from(relation.oid - RELATIONS) * 1700 + place) % 400_000_000
}

/// The OID of the default of a column.
pub(super) fn default_number(relation: &Relation, column: usize) -> i64 {
    constraint_number(relation, column) + 1_000_000_000
}

fn names(columns: &[String]) -> String {
    columns.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ")
}

pub(super) fn column_number(table: &Table, name: &str) -> i32 {
    let at = table.columns.iter().position(|column| column.name == name);
    at.map_or(0, |at| i32::try_from(at + 1).unwrap_or(0))
}

fn action(action: Referential) -> (&'static str, &'static str) {
    match action {
        Referential::Refuse => ("a", ""),
        Referential::Restrict => ("r", "RESTRICT"),
        Referential::Cascade => ("c", "CASCADE"),
        Referential::SetNull => ("n", "SET NULL"),
    }
}

fn foreigndef(path: &[String], foreign: &Foreign, parent: Option<&Table>) -> String {
    let referred = match parent {
        Some(parent) => parent.referred(foreign),
        None => foreign.referred.clone(),
    };
    let mut out = format!(
        "FOREIGN KEY ({}) REFERENCES {}({})",
        names(&foreign.columns),
        match parent {
            Some(parent) => shown(path, &parent.schema, &parent.name),
            None => quoted(&foreign.table),
        },
        names(&referred)
    );
    if foreign.is_full {
        out.push_str(" MATCH FULL");
    }
    for (event, then) in [("UPDATE", foreign.on_update), ("DELETE", foreign.on_delete)] {
        let (_, words) = action(then);
        if !words.is_empty() {
            out.push_str(&format!(" ON {event} {words}"));
        }
    }
    out.push_str(foreign.timing.words());
    out.push_str(if foreign.is_valid { "" } else { " NOT VALID" });
    out
}

/// The checks and foreign keys of a table, with their OIDs and texts.
fn declared_texts(path: &[String], relation: &Relation, all: &[Relation], pretty: bool) -> Vec<(i64, String)> {
    let table = &relation.table;
    let place = Place::of(&table.columns, path);
    let checks = table.checks.iter().map(|check| {
        let valid = if check.is_valid { "" } else { " NOT VALID" };
        let whole = (!pretty).then(|| deparse::condition(&check.text, place)).flatten();
        format!("CHECK ({}){valid}", whole.as_ref().unwrap_or(&check.text))
    });
    let foreign = table.foreign.iter().map(|foreign| {
        let parent = all.iter().find(|other| other.is(&foreign.table));
        foreigndef(path, foreign, parent.map(|parent| &*parent.table))
    });
    let texts = checks.chain(foreign);
    (0..)
        .zip(texts)
        .map(|(at, text)| (constraint_number(relation, at), text))
        .collect()
}

/// The constraints of a relation, with their OIDs.
pub(super) fn constraints(relation: &Relation) -> Vec<(i64, String)> {
    let kept = relation
        .indexes
        .iter()
        .filter(|index| keeps_constraint(relation, index));
    let mut out: Vec<(i64, String)> = kept.map(|index| (constraint_oid(index), index.name.clone())).collect();
    let table = &relation.table;
    let names = table.checks.iter().map(|check| &check.name);
    let names = names.chain(table.foreign.iter().map(|foreign| &foreign.name));
    out.extend(
        (0..)
            .zip(names)
            .map(|(at, name)| (constraint_number(relation, at), name.clone())),
    );
    out
}

fn declared_constraints(path: &[String], relation: &Relation, all: &[Relation]) -> Result<Vec<Row>> {
    let table = &relation.table;
    let above = relation
        .partition
        .as_ref()
        .and_then(|of| all.iter().find(|own| own.oid == of.parent));
    let row = |at: usize, name: &str, kind: &str| {
        vec![
            ("oid", oid(constraint_number(relation, at))),
            ("conname", text(name)),
            ("connamespace", oid(relation.schema)),
            ("contype", text(kind)),
            ("convalidated", Value::Bool(true)),
            ("conrelid", oid(relation.oid)),
            ("conislocal", Value::Bool(true)),
        ]
    };
    let mut out = Vec::new();
    for check in &table.checks {
        let mut own = row(out.len(), &check.name, "c");
        let used = crate::parse::words(&check.text);
        let used = table.columns.iter().filter(|column| used.contains(&column.name));
        own.push(("conkey", numbers(used.map(|column| column_number(table, &column.name)))));
        let place = Place::of(&table.columns, path);
        let whole = deparse::condition(&check.text, place);
        own.push(("conbin", text(whole.as_ref().unwrap_or(&check.text))));
        if !check.is_valid {
            own.retain(|(name, _)| *name != "convalidated");
            own.push(("convalidated", Value::Bool(false)));
        }
        if above.is_some_and(|above| above.table.checks.iter().any(|other| other.name == check.name)) {
            inherit(&mut own, None);
        }
        out.push(own);
    }
    for foreign in &table.foreign {
        let mut own = row(out.len(), &foreign.name, "f");
        if !foreign.is_valid {
            own.retain(|(name, _)| *name != "convalidated");
            own.push(("convalidated", Value::Bool(false)));
        }
        own.push((
            "conkey",
            numbers(foreign.columns.iter().map(|name| column_number(table, name))),
        ));
        if let Some(parent) = all.iter().find(|other| other.is(&foreign.table)) {
            let referred = parent.table.referred(foreign);
            own.push(("confrelid", oid(parent.oid)));
            own.push((
                "confkey",
                numbers(referred.iter().map(|name| column_number(&parent.table, name))),
            ));
            let paths = parent.table.paths(&referred);
            if let Some(index) = parent.index_of_key(&paths) {
                own.push(("conindid", oid(index.oid)));
            }
        }
        let of_above = above.and_then(|above| {
            let at = above
                .table
                .foreign
                .iter()
                .position(|other| other.name == foreign.name)?;
            Some(constraint_number(above, above.table.checks.len() + at))
        });
        if of_above.is_some() {
            inherit(&mut own, of_above);
        }
        own.push(("confupdtype", text(action(foreign.on_update).0)));
        own.push(("confdeltype", text(action(foreign.on_delete).0)));
        own.push(("confmatchtype", text(if foreign.is_full { "f" } else { "s" })));
        own.push(("condeferrable", Value::Bool(foreign.timing != Timing::AtOnce)));
        own.push(("condeferred", Value::Bool(foreign.timing == Timing::Deferred)));
        out.push(own);
    }
    Ok(out)
}

/// Makes a constraint one that a partition has of its table.
fn inherit(row: &mut Row, of: Option<i64>) {
    row.retain(|(name, _)| *name != "conislocal");
    row.push(("conislocal", Value::Bool(false)));
    row.push(("coninhcount", Value::Int32(1)));
    if let Some(of) = of {
        row.retain(|(name, _)| *name != "connoinherit");
        row.push(("conparentid", oid(of)));
    }
}

/// The relations that names without a schema do not find, by OID: those of schemas that are not in `search_path`, and those behind others of
/// their name.
///
/// Errors: those of [`Facts::relations`].
pub fn hidden(facts: &dyn Facts) -> Result<Vec<(i64, String)>> {
    let path = facts.path();
    let mut all: Vec<(usize, String, i64)> = Vec::new();
    let place = |schema: &str| path.iter().position(|own| own == schema).unwrap_or(usize::MAX);
    for relation in facts.relations()?.iter() {
        let at = place(&relation.table.schema);
        all.push((at, relation.table.name.clone(), i64::from(relation.oid)));
        let indexes = relation.indexes.iter();
        all.extend(indexes.map(|index| (at, index.name.clone(), i64::from(index.oid))));
    }
    let sequences = facts.sequences()?.into_iter();
    all.extend(sequences.map(|sequence| (place(&sequence.schema), sequence.name, i64::from(sequence.oid))));
    all.sort();
    let mut seen = std::collections::HashSet::new();
    all.retain(|(at, name, _)| *at == usize::MAX || !seen.insert(name.clone()));
    Ok(all.into_iter().map(|(_, name, number)| (number, name)).collect())
}

/// The names of relations as `regclass` shows them.
///
/// Errors: those of [`Facts::relations`].
pub fn named(facts: &dyn Facts) -> Result<Vec<(i64, String)>> {
    let (mut out, path) = (Vec::new(), facts.path());
    for relation in facts.relations()?.iter() {
        let shown = |name: &str| shown(&path, &relation.table.schema, name);
        out.push((i64::from(relation.oid), shown(&relation.table.name)));
        let indexes = relation.indexes.iter();
        out.extend(indexes.map(|index| (i64::from(index.oid), shown(&index.name))));
    }
    let sequences = facts.sequences()?.into_iter();
    out.extend(sequences.map(|sequence| {
        let name = shown(&path, &sequence.schema, &sequence.name);
        (i64::from(sequence.oid), name)
    }));
    out.extend(shapes::all().map(|shape| {
        let name = match shape.schema {
            "pg_catalog" => shape.name.to_owned(),
            schema => format!("{schema}.{}", shape.name),
        };
        (i64::from(shape.oid), name)
    }));
    Ok(out)
}

/// The names that relations may be called by: with their schemas, and without them those that the search path finds first.
///
/// Errors: those of [`Facts::relations`].
pub fn called(facts: &dyn Facts) -> Result<Vec<(i64, String)>> {
    let (mut out, mut found, path) = (Vec::new(), Vec::new(), facts.path());
    let mut add = |number: u32, schema: &str, name: &str| {
        out.push((i64::from(number), format!("{}.{}", quoted(schema), quoted(name))));
        let rank = match schema {
            "pg_catalog" => Some(0),
            schema => path.iter().position(|own| own == schema).map(|at| at + 1),
        };
        found.extend(rank.map(|rank| (rank, i64::from(number), quoted(name))));
    };
    for relation in facts.relations()?.iter() {
        let schema = &relation.table.schema;
        add(relation.oid, schema, &relation.table.name);
        relation
            .indexes
            .iter()
            .for_each(|index| add(index.oid, schema, &index.name));
    }
    for sequence in facts.sequences()? {
        add(sequence.oid, &sequence.schema, &sequence.name);
    }
    shapes::all().for_each(|shape| add(shape.oid, shape.schema, shape.name));
    found.sort_by_key(|(rank, ..)| *rank);
    out.extend(found.into_iter().map(|(_, number, name)| (number, name)));
    Ok(out)
}

/// What `pg_get_indexdef`, `pg_get_constraintdef` and `pg_get_viewdef` tell of every object, by OID.
///
/// Errors: those of [`Facts::relations`].
pub fn definition(function: &str, facts: &dyn Facts) -> Result<Vec<(i64, String)>> {
    let mut out = Vec::new();
    let pretty = function == PRETTY_CONSTRAINTDEF;
    if pretty || function == "pg_get_constraintdef" {
        let all = facts.assertions().into_iter();
        out.extend(all.map(|(number, _, condition)| (i64::from(number), format!("CHECK {condition}"))));
        out.extend(super::domains::definitions(facts, pretty));
    }
    let (relations, path) = (facts.relations()?, facts.path());
    for relation in relations.iter() {
        match function {
            "pg_get_indexdef" => {
                let all = relation.indexes.iter();
                for index in all {
                    let oid = i64::from(index.oid);
                    out.push((oid, indexdef(relation, index)));
                    let parts = index.parts.iter().map(|each| {
                        let (name, kind) = named_part(relation, each);
                        let kind = if kind == expression::NAME { kind } else { "1".to_owned() };
                        part(&(name, kind))
                    });
                    let included = index.included.iter().map(|path| included_part(relation, path));
                    let all = (1..).zip(parts.chain(included));
                    out.extend(all.map(|(at, text)| (part_key(oid, at), text)));
                }
            }
            "pg_get_constraintdef" | PRETTY_CONSTRAINTDEF => {
                let all = relation
                    .indexes
                    .iter()
                    .filter(|index| keeps_constraint(relation, index));
                out.extend(all.map(|index| (constraint_oid(index), constraintdef(relation, index, pretty))));
                out.extend(declared_texts(&path, relation, &relations, pretty));
            }
            _ => {
                let text = relation.definition.as_deref();
                let text = text.map(|text| match relation.table.kind {
                    // A view of MQL.
                    Kind::View(_) => text.to_owned(),
                    _ => format!("{};", facts.qualified(&relation.table.schema, text)),
                });
                out.extend(text.map(|text| (i64::from(relation.oid), text)));
            }
        }
    }
    Ok(out)
}
