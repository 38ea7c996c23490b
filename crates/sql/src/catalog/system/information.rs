//! `information_schema`.

use super::described::{described, truth};
use super::indexes::{is_primary, keeps_constraint};
use super::relations::{self, default_of};
use super::{Facts, IndexFacts, Relation, Row, int, is_view, text};
use super::{deparse, domains, shapes};
use crate::catalog::routines::{Returns, Routine};
use crate::catalog::{Column, IdentityKind, Referential, Table, Timing, schemas};
use crate::parse::own::CheckOption;
use crate::parse::trigger::Event;
use crate::types::Type;
use crate::types::collation::COLLATIONS;
use crate::types::composite::{Attribute, Composite};
use nestor_model::{Result, Value};
use std::sync::Arc;

/// The columns of a table that are never null, with the names that the standard's views have for that.
fn not_nulls(relation: &Relation) -> impl Iterator<Item = (String, &str)> {
    let numbered = (1..).zip(&relation.table.columns);
    numbered.filter(|(_, column)| column.not_null).map(|(at, column)| {
        let name = format!("{}_{}_{at}_not_null", relation.schema, relation.oid);
        (name, column.name.as_str())
    })
}

/// A function that somebody has made.
fn routine(db: &str, own: &Routine) -> Row {
    let own_name = format!("{}_{}", own.name, own.oid);
    let schema = own.schema.as_deref().unwrap_or("public");
    let returned = match &own.returns {
        Returns::One(ty) => Some(ty.clone()),
        Returns::Nothing => Some(Type::Void),
        Returns::Rows(columns) => match columns.as_slice() {
            [(None, ty)] => Some(ty.clone()),
            _ => Some(Type::Record),
        },
        Returns::RowsOf(_) => None,
        Returns::Row(_) | Returns::Record(_) => Some(Type::Record),
        Returns::Trigger => None,
    };
    let mut row: Row = vec![
        ("specific_catalog", text(db)),
        ("specific_schema", text(schema)),
        ("specific_name", text(own_name)),
        ("routine_catalog", text(db)),
        ("routine_schema", text(schema)),
        ("routine_name", text(&own.name)),
        ("routine_type", text(own.kind())),
        (
            "routine_body",
            text(if own.language() == "sql" { "SQL" } else { "EXTERNAL" }),
        ),
        ("routine_definition", text(&own.source)),
        ("external_language", text(own.language().to_uppercase())),
        ("parameter_style", text("GENERAL")),
        ("is_deterministic", truth(own.volatility == "i")),
        ("sql_data_access", text("MODIFIES")),
        ("is_null_call", truth(own.is_strict)),
        ("schema_level_routine", truth(true)),
        ("max_dynamic_result_sets", int(0)),
        ("security_type", text("INVOKER")),
        ("as_locator", truth(false)),
        ("is_udt_dependent", truth(false)),
        ("dtd_identifier", text("0")),
    ];
    if let Returns::RowsOf(table) = &own.returns {
        let name = table.0.last().and_then(|part| part.as_ident());
        let name = name.map(|name| name.value.clone()).unwrap_or_default();
        row.push(("data_type", text("USER-DEFINED")));
        row.push(("type_udt_catalog", text(db)));
        row.push(("type_udt_schema", text("public")));
        row.push(("type_udt_name", text(name)));
    }
    if let Some(ty) = returned {
        let (shown, schema) = match &ty {
            Type::Array(_) => ("ARRAY".to_owned(), "pg_catalog"),
            ty if ty.made().is_some() => ("USER-DEFINED".to_owned(), ty.schema()),
            ty => (ty.to_string(), "pg_catalog"),
        };
        row.push(("data_type", text(shown)));
        row.push(("type_udt_catalog", text(db)));
        row.push(("type_udt_schema", text(schema)));
        row.push(("type_udt_name", text(ty.name())));
    }
    row
}

/// The rows of a table of `information_schema`; none of one that stands for what there is not.
///
/// Errors: those of [`Facts::relations`].
pub fn rows(name: &str, facts: &dyn Facts) -> Result<Vec<Row>> {
    let db = facts.database();
    Ok(match name {
        "information_schema_catalog_name" => vec![vec![("catalog_name", text(&db))]],
        "enabled_roles" => vec![vec![("role_name", text(facts.user()))]],
        "schemata" => ["information_schema", "pg_catalog", "public"]
            .map(str::to_owned)
            .into_iter()
            .chain(facts.schemas().into_iter().map(|(_, name)| name))
            .map(|name| {
                vec![
                    ("catalog_name", text(&db)),
                    ("schema_name", text(name)),
                    ("schema_owner", text(facts.user())),
                ]
            })
            .collect(),
        "character_sets" => vec![vec![
            ("character_set_name", text("UTF8")),
            ("character_repertoire", text("UCS")),
            ("form_of_use", text("UTF8")),
        ]],
        "collations" => COLLATIONS
            .iter()
            .map(|own| {
                vec![
                    ("collation_catalog", text(&db)),
                    ("collation_schema", text("pg_catalog")),
                    ("collation_name", text(own.name)),
                    ("pad_attribute", text("NO PAD")),
                ]
            })
            .collect(),
        "tables" => {
            let table = |schema: &str, name: &str, (is_view, can_insert): (bool, bool)| {
                vec![
                    ("table_catalog", text(&db)),
                    ("table_schema", text(schema)),
                    ("table_name", text(name)),
                    ("table_type", text(table_type(schema, is_view))),
                    ("is_insertable_into", truth(can_insert)),
                    ("is_typed", truth(false)),
                ]
            };
            let relations = facts.relations()?;
            let shown = relations
                .iter()
                .filter(|relation| relation.table.materialized.is_none());
            let own = shown.map(|relation| {
                let facts = (is_view(&relation.table), relation.updatable.is_some());
                table(&relation.table.schema, &relation.table.name, facts)
            });
            let catalogs = shapes::all().map(|shape| table(shape.schema, shape.name, (shape.is_view, !shape.is_view)));
            own.chain(catalogs).collect()
        }
        "columns" => {
            let mut out = Vec::new();
            let (relations, path) = (facts.relations()?, facts.path());
            for relation in relations.iter().filter(|own| own.table.materialized.is_none()) {
                for (at, own) in (1..).zip(&relation.table.columns) {
                    let place = (relation.table.schema.as_str(), relation.table.name.as_str());
                    out.push(column(
                        &db,
                        place,
                        (at, default_of(&path, place, &relation.table.columns, own)),
                        own,
                        relation
                            .updatable
                            .as_ref()
                            .is_some_and(|own| own.get(at - 1) == Some(&true)),
                    ));
                }
            }
            for shape in shapes::all() {
                for (at, (name, ty)) in (1..).zip(shape.columns()) {
                    let own = Column::new(name, ty);
                    out.push(column(&db, (shape.schema, shape.name), (at, None), &own, false));
                }
            }
            out
        }
        "views" => {
            let relations = facts.relations()?;
            let views = relations.iter().filter(|relation| is_view(&relation.table));
            views
                .map(|relation| {
                    vec![
                        ("table_catalog", text(&db)),
                        ("table_schema", text(&relation.table.schema)),
                        ("table_name", text(&relation.table.name)),
                        (
                            "view_definition",
                            relation.definition.as_ref().map_or(Value::Null, text),
                        ),
                        (
                            "check_option",
                            text(match relation.table.check_option {
                                None => "NONE",
                                Some(CheckOption::Local) => "LOCAL",
                                Some(CheckOption::Cascaded) => "CASCADED",
                            }),
                        ),
                        ("is_updatable", truth(relation.updatable.is_some())),
                        ("is_insertable_into", truth(relation.updatable.is_some())),
                        ("is_trigger_updatable", has_instead(&relation.table, Event::Update)),
                        ("is_trigger_deletable", has_instead(&relation.table, Event::Delete)),
                        (
                            "is_trigger_insertable_into",
                            has_instead(&relation.table, Event::Insert),
                        ),
                    ]
                })
                .collect()
        }
        "table_constraints" => {
            let row = |name: &str, table: &Table, kind: &str, timing: Timing| {
                let mut row = named(&db, table, name);
                row.extend([
                    ("table_catalog", text(&db)),
                    ("table_schema", text(&table.schema)),
                    ("table_name", text(&table.name)),
                    ("constraint_type", text(kind)),
                    ("is_deferrable", truth(timing != Timing::AtOnce)),
                    ("initially_deferred", truth(timing == Timing::Deferred)),
                    ("enforced", truth(true)),
                ]);
                row
            };
            let mut out = constraints(facts, |relation, index| {
                let kind = if is_primary(relation, index) {
                    "PRIMARY KEY"
                } else {
                    "UNIQUE"
                };
                vec![row(&index.name, &relation.table, kind, Timing::AtOnce)]
            })?;
            for relation in facts.relations()?.iter() {
                let table = &relation.table;
                let checks = table.checks.iter();
                out.extend(checks.map(|check| row(&check.name, table, "CHECK", Timing::AtOnce)));
                let filled = not_nulls(relation);
                out.extend(filled.map(|(name, _)| row(&name, table, "CHECK", Timing::AtOnce)));
                let keys = table.foreign.iter();
                out.extend(keys.map(|key| row(&key.name, table, "FOREIGN KEY", key.timing)));
            }
            out
        }
        "key_column_usage" | "constraint_column_usage" => {
            let has_places = name == "key_column_usage";
            let mut out = constraints(facts, |relation, index| {
                let each = (1..).zip(&index.parts).map(|(at, (path, _))| {
                    let mut row = named(&db, &relation.table, &index.name);
                    row.extend([
                        ("table_catalog", text(&db)),
                        ("table_schema", text(&relation.table.schema)),
                        ("table_name", text(&relation.table.name)),
                        ("column_name", text(column_of(relation, path))),
                    ]);
                    if has_places {
                        row.push(("ordinal_position", int(at)));
                    }
                    row
                });
                each.collect()
            })?;
            let relations = facts.relations()?;
            for relation in relations.iter() {
                let table = &relation.table;
                for check in table.checks.iter().filter(|_| !has_places) {
                    let used = crate::parse::words(&check.text);
                    for column in table.columns.iter().filter(|column| used.contains(&column.name)) {
                        let mut row = named(&db, table, &check.name);
                        row.extend([
                            ("table_catalog", text(&db)),
                            ("table_schema", text(&table.schema)),
                            ("table_name", text(&table.name)),
                            ("column_name", text(&column.name)),
                        ]);
                        out.push(row);
                    }
                }
                for key in &relation.table.foreign {
                    let parent = relations.iter().find(|other| other.is(&key.table));
                    // What uses a column of a constraint: its own ones, and for the other view those that it refers to.
                    let (table, columns) = match (has_places, parent) {
                        (true, _) => (&relation.table, key.columns.clone()),
                        (false, Some(parent)) => (&parent.table, parent.table.referred(key)),
                        (false, None) => continue,
                    };
                    for (at, column) in (1..).zip(&columns) {
                        let mut row = named(&db, &relation.table, &key.name);
                        row.extend([
                            ("table_catalog", text(&db)),
                            ("table_schema", text(&table.schema)),
                            ("table_name", text(&table.name)),
                            ("column_name", text(column)),
                        ]);
                        if has_places {
                            row.push(("ordinal_position", int(at)));
                            row.push(("position_in_unique_constraint", int(at)));
                        }
                        out.push(row);
                    }
                }
            }
            out
        }
        "routines" => facts.routines().iter().map(|own| routine(&db, own)).collect(),
        "domains" | "domain_constraints" | "column_domain_usage" => domains::rows(name, &db, facts),
        "check_constraints" => {
            let (mut out, path) = (domains::rows(name, &db, facts), facts.path());
            for relation in facts.relations()?.iter() {
                for check in &relation.table.checks {
                    let mut row = named(&db, &relation.table, &check.name);
                    let place = deparse::Place::of(&relation.table.columns, &path);
                    let whole = deparse::condition(&check.text, place);
                    let clause = whole.as_ref().unwrap_or(&check.text);
                    row.push(("check_clause", text(format!("({clause})"))));
                    out.push(row);
                }
                for (name, column) in not_nulls(relation) {
                    let mut row = named(&db, &relation.table, &name);
                    row.push((
                        "check_clause",
                        text(format!("{} IS NOT NULL", relations::quoted(column))),
                    ));
                    out.push(row);
                }
            }
            out
        }
        "referential_constraints" => {
            let relations = facts.relations()?;
            let mut out = Vec::new();
            for relation in relations.iter() {
                for foreign in &relation.table.foreign {
                    let rule = |action: Referential| match action {
                        Referential::Refuse => "NO ACTION",
                        Referential::Restrict => "RESTRICT",
                        Referential::Cascade => "CASCADE",
                        Referential::SetNull => "SET NULL",
                    };
                    let parent = relations.iter().find(|other| other.is(&foreign.table));
                    let key = parent.and_then(|parent| {
                        let paths = parent.table.paths(&parent.table.referred(foreign));
                        let keeps = |index: &&IndexFacts| {
                            index.unique
                                && index.partial.is_none()
                                && index.parts.iter().map(|(path, _)| path).eq(&paths)
                        };
                        parent.indexes.iter().find(keeps)
                    });
                    let mut row = named(&db, &relation.table, &foreign.name);
                    row.extend([
                        ("unique_constraint_catalog", text(&db)),
                        (
                            "unique_constraint_schema",
                            parent.map_or(Value::Null, |parent| text(&parent.table.schema)),
                        ),
                        (
                            "unique_constraint_name",
                            key.map_or(Value::Null, |index| text(&index.name)),
                        ),
                        ("match_option", text(if foreign.is_full { "FULL" } else { "NONE" })),
                        ("update_rule", text(rule(foreign.on_update))),
                        ("delete_rule", text(rule(foreign.on_delete))),
                    ]);
                    out.push(row);
                }
            }
            out
        }
        "triggers" => super::triggers::standard(facts, &db)?,
        "parameters" => super::triggers::parameters(facts, &db),
        "sequences" => {
            let each = facts
                .sequences()?
                .into_iter()
                .filter(|sequence| !sequence.is_identity)
                .map(|sequence| {
                    vec![
                        ("sequence_catalog", text(&db)),
                        ("sequence_schema", text(&sequence.schema)),
                        ("sequence_name", text(&sequence.name)),
                        ("data_type", text(sequence.ty.to_string())),
                        ("numeric_precision", Value::Int32(i32::from(sequence.ty.length()) * 8)),
                        ("start_value", text(sequence.counting.start.to_string())),
                        ("minimum_value", text(sequence.counting.min.to_string())),
                        ("maximum_value", text(sequence.counting.max.to_string())),
                        ("increment", text(sequence.counting.increment.to_string())),
                        ("cycle_option", truth(sequence.counting.cycle)),
                    ]
                });
            each.collect()
        }
        "user_defined_types" => {
            let each = composites(facts).into_iter().map(|(schema, own)| {
                vec![
                    ("user_defined_type_catalog", text(&db)),
                    ("user_defined_type_schema", text(schema)),
                    ("user_defined_type_name", text(Type::Composite(own).name())),
                    ("user_defined_type_category", text("STRUCTURED")),
                    ("is_instantiable", truth(true)),
                ]
            });
            each.collect()
        }
        "attributes" => {
            let each = composites(facts).into_iter().flat_map(|(schema, own)| {
                let name = Type::Composite(own.clone()).name();
                let rows = (1..)
                    .zip(&own.attributes)
                    .map(|(at, own)| attribute(&db, (&schema, &name), at, own));
                rows.collect::<Vec<_>>()
            });
            each.collect()
        }
        _ => Vec::new(),
    })
}

/// The name of the column that a path is.
fn column_of<'r>(relation: &'r Relation, path: &'r str) -> &'r str {
    let column = relation.table.columns.iter().find(|column| column.path == path);
    column.map_or(path, |column| &column.name)
}

fn named(db: &str, table: &Table, name: &str) -> Row {
    vec![
        ("constraint_catalog", text(db)),
        ("constraint_schema", text(&table.schema)),
        ("constraint_name", text(name)),
    ]
}

fn constraints(facts: &dyn Facts, rows: impl Fn(&Relation, &IndexFacts) -> Vec<Row>) -> Result<Vec<Row>> {
    let relations = facts.relations()?;
    let mut out = Vec::new();
    for relation in relations.iter() {
        for index in relation
            .indexes
            .iter()
            .filter(|index| keeps_constraint(relation, index) && index.exclusion.is_none())
        {
            out.extend(rows(relation, index));
        }
    }
    Ok(out)
}

fn column(
    db: &str,
    (schema, table): (&str, &str),
    (at, default): (usize, Option<String>),
    column: &Column,
    is_updatable: bool,
) -> Row {
    let identity = column.identity.map(|identity| (identity.kind, identity.counting));
    let identity = identity.filter(|(kind, _)| *kind != IdentityKind::Serial);
    let default = default.filter(|_| column.generated.is_none());
    let mut row: Row = vec![
        ("table_catalog", text(db)),
        ("table_schema", text(schema)),
        ("table_name", text(table)),
        ("column_name", text(&column.name)),
        ("ordinal_position", int(at)),
        ("column_default", default.map_or(Value::Null, text)),
        ("is_nullable", truth(!column.not_null && !is_never_null(column))),
        ("dtd_identifier", text(at.to_string())),
        ("is_self_referencing", truth(false)),
        ("is_identity", truth(identity.is_some())),
        ("identity_cycle", truth(false)),
        (
            "is_generated",
            text(if column.generated.is_some() { "ALWAYS" } else { "NEVER" }),
        ),
        (
            "generation_expression",
            column.generated.as_ref().map_or(Value::Null, text),
        ),
        ("is_updatable", truth(is_updatable)),
    ];
    row.extend(described(db, column));
    let collation = COLLATIONS.iter().find(|own| own.oid == column.collation());
    if let Some(collation) = collation.filter(|own| own.locale.is_some()) {
        row.push(("collation_catalog", text(db)));
        row.push(("collation_schema", text("pg_catalog")));
        row.push(("collation_name", text(collation.name)));
    }
    if let Some((kind, counting)) = identity {
        let shown = if kind == IdentityKind::Always {
            "ALWAYS"
        } else {
            "BY DEFAULT"
        };
        row.push(("identity_generation", text(shown)));
        row.push(("identity_start", text(counting.start.to_string())));
        row.push(("identity_increment", text(counting.increment.to_string())));
        row.push(("identity_maximum", text(counting.max.to_string())));
        row.push(("identity_minimum", text(counting.min.to_string())));
    }
    row
}

/// Whether a trigger stands in the place of what is done with rows of a view.
fn has_instead(table: &Table, event: Event) -> Value {
    truth(
        table
            .triggers
            .iter()
            .any(|own| own.is_instead && own.events.contains(&event)),
    )
}

/// Whether a domain lets no null be in a column.
fn is_never_null(column: &Column) -> bool {
    matches!(&column.domain, Some(Type::Domain(own)) if own.has_no_nulls())
}

/// The composite types, each with its schema.
fn composites(facts: &dyn Facts) -> Vec<(String, Arc<Composite>)> {
    let own = facts.made_types().into_iter().filter_map(|(schema, own)| match own {
        Type::Composite(own) => Some((schema, own)),
        _ => None,
    });
    own.collect()
}

/// A column of a composite type: what is said of it is what is said of a table's.
fn attribute(db: &str, of: (&str, &str), at: usize, own: &Attribute) -> Row {
    let declared = Column {
        modifier: own.modifier,
        ..Column::new(&own.name, own.ty.clone())
    };
    let said = column(db, of, (at, None), &declared, false).into_iter();
    let renamed = said.filter_map(|(name, value)| {
        let name = match name {
            "table_catalog" => "udt_catalog",
            "table_schema" => "udt_schema",
            "table_name" => "udt_name",
            "column_name" => "attribute_name",
            "column_default" => "attribute_default",
            "udt_catalog" => "attribute_udt_catalog",
            "udt_schema" => "attribute_udt_schema",
            "udt_name" => "attribute_udt_name",
            "is_self_referencing"
            | "is_identity"
            | "identity_cycle"
            | "is_generated"
            | "generation_expression"
            | "is_updatable"
            | "domain_catalog"
            | "domain_schema"
            | "domain_name" => {
                return None;
            }
            name => name,
        };
        Some((name, value))
    });
    renamed
        .chain([("is_derived_reference_attribute", truth(false))])
        .collect()
}

fn table_type(schema: &str, is_view: bool) -> &'static str {
    match is_view {
        true => "VIEW",
        false if schemas::is_temporary(schema) => "LOCAL TEMPORARY",
        false => "BASE TABLE",
    }
}
