//! The tables of `pg_catalog` and `information_schema`: rows made of the catalog when a statement names them.
//!
//! A relation's OID is made of its collection's number; other OIDs are PostgreSQL's.

use super::{Column, Kind, Table};
use crate::types::Type;
use nestor_model::{Result, Value};
use nestor_planner::relation::Tuple;
use std::sync::Arc;

/// OID of the schema `pg_catalog`.
pub const PG_CATALOG: i64 = 11;
/// OID of the schema `public`.
pub const PUBLIC: i64 = 2200;
/// OID of the schema `information_schema`.
pub const INFORMATION_SCHEMA: i64 = 13_000;
/// What is added to a collection's number to make an OID that PostgreSQL uses for nothing of its own.
pub const RELATIONS: u32 = 20_000;

/// What tables of the catalog are made of.
pub trait Facts {
    /// The tables of the database, without those of the catalog, and their OIDs.
    ///
    /// Errors: those of reading documents whose columns are inferred.
    fn tables(&self) -> Result<Vec<(u32, Arc<Table>)>>;
    /// The databases.
    fn databases(&self) -> Vec<String>;
    /// The database of the connection.
    fn database(&self) -> String;
    /// The user of the connection.
    fn user(&self) -> String;
}

fn text(s: impl AsRef<str>) -> Value {
    Value::String(s.as_ref().into())
}

fn oid(n: impl Into<i64>) -> Value {
    Value::Int64(n.into())
}

fn columns(list: &[(&str, Type)]) -> Vec<Column> {
    list.iter().map(|(name, ty)| Column::new(name, ty.clone())).collect()
}

fn is_view(table: &Table) -> bool {
    matches!(table.kind, Kind::View(_))
}

/// The table of this name, if it is one of the catalog's.
///
/// Errors: those of [`Facts::tables`].
pub fn table(schema: &str, name: &str, facts: &dyn Facts) -> Result<Option<Table>> {
    use Type::{Bool, Char, Int2, Int4, Name, Oid, Text};
    let (columns, rows): (Vec<Column>, Vec<Tuple>) = match (schema, name) {
        ("pg_catalog", "pg_namespace") => {
            let row = |n: i64, name: &str| vec![oid(n), text(name), oid(10), Value::Null];
            (
                columns(&[
                    ("oid", Oid),
                    ("nspname", Name),
                    ("nspowner", Oid),
                    ("nspacl", Text.array()),
                ]),
                vec![
                    row(PG_CATALOG, "pg_catalog"),
                    row(PUBLIC, "public"),
                    row(INFORMATION_SCHEMA, "information_schema"),
                ],
            )
        }
        ("pg_catalog", "pg_database") => {
            let rows = (16_384i64..).zip(facts.databases()).map(|(n, name)| {
                vec![
                    oid(n),
                    text(name),
                    oid(10),
                    Value::Int32(6),
                    text("C"),
                    text("C"),
                    text("c"),
                    Value::Null,
                    Value::Null,
                    Value::Bool(false),
                    Value::Bool(true),
                    Value::Null,
                ]
            });
            (
                columns(&[
                    ("oid", Oid),
                    ("datname", Name),
                    ("datdba", Oid),
                    ("encoding", Int4),
                    ("datcollate", Text),
                    ("datctype", Text),
                    ("datlocprovider", Char),
                    ("daticulocale", Text),
                    ("daticurules", Text),
                    ("datistemplate", Bool),
                    ("datallowconn", Bool),
                    ("datacl", Text.array()),
                ]),
                rows.collect(),
            )
        }
        ("pg_catalog", "pg_roles" | "pg_user") => (
            columns(&[
                ("oid", Oid),
                ("rolname", Name),
                ("rolsuper", Bool),
                ("rolinherit", Bool),
                ("rolcreaterole", Bool),
                ("rolcreatedb", Bool),
                ("rolcanlogin", Bool),
                ("rolconnlimit", Int4),
                ("rolvaliduntil", Type::Timestamptz),
                ("rolreplication", Bool),
                ("rolbypassrls", Bool),
            ]),
            vec![vec![
                oid(10),
                text(facts.user()),
                Value::Bool(true),
                Value::Bool(true),
                Value::Bool(true),
                Value::Bool(true),
                Value::Bool(true),
                Value::Int32(-1),
                Value::Null,
                Value::Bool(false),
                Value::Bool(false),
            ]],
        ),
        ("pg_catalog", "pg_auth_members") => (
            columns(&[
                ("roleid", Oid),
                ("member", Oid),
                ("grantor", Oid),
                ("admin_option", Bool),
            ]),
            Vec::new(),
        ),
        ("pg_catalog", "pg_am") => (
            columns(&[("oid", Oid), ("amname", Name), ("amtype", Char)]),
            vec![
                vec![oid(2), text("heap"), text("t")],
                vec![oid(403), text("btree"), text("i")],
            ],
        ),
        ("pg_catalog", "pg_class") => {
            let rows = facts.tables()?.into_iter().map(|(number, table)| {
                vec![
                    oid(number),
                    text(&table.name),
                    oid(PUBLIC),
                    oid(0),
                    oid(10),
                    oid(2),
                    oid(number),
                    Value::Double(-1.0),
                    Value::Bool(false),
                    Value::Bool(false),
                    text("p"),
                    text(if is_view(&table) { "v" } else { "r" }),
                    Value::Int32(table.columns.len() as i32),
                    Value::Int32(0),
                    Value::Bool(false),
                    Value::Bool(false),
                    Value::Bool(false),
                    Value::Bool(false),
                    text("d"),
                    Value::Bool(false),
                    oid(0),
                    Value::Null,
                    Value::Null,
                    oid(0),
                    oid(0),
                    Value::Null,
                ]
            });
            (
                columns(&[
                    ("oid", Oid),
                    ("relname", Name),
                    ("relnamespace", Oid),
                    ("reltype", Oid),
                    ("relowner", Oid),
                    ("relam", Oid),
                    ("relfilenode", Oid),
                    ("reltuples", Type::Float4),
                    ("relhasindex", Bool),
                    ("relisshared", Bool),
                    ("relpersistence", Char),
                    ("relkind", Char),
                    ("relnatts", Int2),
                    ("relchecks", Int2),
                    ("relhasrules", Bool),
                    ("relhastriggers", Bool),
                    ("relrowsecurity", Bool),
                    ("relforcerowsecurity", Bool),
                    ("relreplident", Char),
                    ("relispartition", Bool),
                    ("reltablespace", Oid),
                    ("relacl", Text.array()),
                    ("reloptions", Text.array()),
                    ("reloftype", Oid),
                    ("reltoastrelid", Oid),
                    ("relpartbound", Text),
                ]),
                rows.collect(),
            )
        }
        ("pg_catalog", "pg_attribute") => {
            let mut rows = Vec::new();
            for (number, table) in facts.tables()? {
                for (at, column) in (1..).zip(&table.columns) {
                    rows.push(vec![
                        oid(number),
                        text(&column.name),
                        oid(column.ty.oid()),
                        Value::Int32(i32::from(column.ty.length())),
                        Value::Int32(at),
                        Value::Int32(column.modifier),
                        Value::Bool(column.not_null),
                        Value::Bool(column.default.is_some()),
                        text(""),
                        text(""),
                        Value::Bool(false),
                        oid(0),
                        Value::Int32(i32::from(matches!(column.ty, Type::Array(_)))),
                        Value::Null,
                    ]);
                }
            }
            (
                columns(&[
                    ("attrelid", Oid),
                    ("attname", Name),
                    ("atttypid", Oid),
                    ("attlen", Int2),
                    ("attnum", Int2),
                    ("atttypmod", Int4),
                    ("attnotnull", Bool),
                    ("atthasdef", Bool),
                    ("attidentity", Char),
                    ("attgenerated", Char),
                    ("attisdropped", Bool),
                    ("attcollation", Oid),
                    ("attndims", Int4),
                    ("attacl", Text.array()),
                ]),
                rows,
            )
        }
        ("pg_catalog", "pg_type") => {
            let row = |ty: &Type| {
                let element = ty.element().map_or(0, Type::oid);
                let array = match ty {
                    Type::Array(_) => 0,
                    ty => ty.clone().array().oid(),
                };
                vec![
                    oid(ty.oid()),
                    text(ty.name()),
                    oid(PG_CATALOG),
                    oid(10),
                    Value::Int32(i32::from(ty.length())),
                    text("b"),
                    text(ty.category().to_string()),
                    oid(0),
                    oid(element),
                    oid(array),
                    Value::Bool(false),
                    oid(0),
                    Value::Int32(-1),
                    oid(0),
                    text(","),
                ]
            };
            let all: Vec<Type> = Type::all().collect();
            let arrays = all.iter().cloned().map(Type::array).filter(|ty| ty.oid() != 0);
            let rows = all.iter().cloned().chain(arrays).map(|ty| row(&ty)).collect();
            (
                columns(&[
                    ("oid", Oid),
                    ("typname", Name),
                    ("typnamespace", Oid),
                    ("typowner", Oid),
                    ("typlen", Int2),
                    ("typtype", Char),
                    ("typcategory", Char),
                    ("typrelid", Oid),
                    ("typelem", Oid),
                    ("typarray", Oid),
                    ("typnotnull", Bool),
                    ("typbasetype", Oid),
                    ("typtypmod", Int4),
                    ("typcollation", Oid),
                    ("typdelim", Char),
                ]),
                rows,
            )
        }
        ("pg_catalog", "pg_attrdef") => (
            columns(&[("oid", Oid), ("adrelid", Oid), ("adnum", Int2), ("adbin", Text)]),
            Vec::new(),
        ),
        ("pg_catalog", "pg_collation") => (
            columns(&[("oid", Oid), ("collname", Name), ("collnamespace", Oid)]),
            Vec::new(),
        ),
        ("pg_catalog", "pg_index") => (
            columns(&[
                ("indexrelid", Oid),
                ("indrelid", Oid),
                ("indnatts", Int2),
                ("indisunique", Bool),
                ("indisprimary", Bool),
                ("indisclustered", Bool),
                ("indisvalid", Bool),
                ("indisreplident", Bool),
                ("indkey", Int2.array()),
                ("indexprs", Text),
                ("indpred", Text),
                ("indnkeyatts", Int2),
                ("indoption", Int2.array()),
            ]),
            Vec::new(),
        ),
        ("pg_catalog", "pg_constraint") => (
            columns(&[
                ("oid", Oid),
                ("conname", Name),
                ("connamespace", Oid),
                ("contype", Char),
                ("condeferrable", Bool),
                ("condeferred", Bool),
                ("convalidated", Bool),
                ("conrelid", Oid),
                ("conindid", Oid),
                ("confrelid", Oid),
                ("conkey", Int2.array()),
                ("confkey", Int2.array()),
                ("conparentid", Oid),
            ]),
            Vec::new(),
        ),
        ("pg_catalog", "pg_inherits") => (
            columns(&[
                ("inhrelid", Oid),
                ("inhparent", Oid),
                ("inhseqno", Int4),
                ("inhdetachpending", Bool),
            ]),
            Vec::new(),
        ),
        ("pg_catalog", "pg_description") => (
            columns(&[
                ("objoid", Oid),
                ("classoid", Oid),
                ("objsubid", Int4),
                ("description", Text),
            ]),
            Vec::new(),
        ),
        ("pg_catalog", "pg_enum") => (
            columns(&[
                ("oid", Oid),
                ("enumtypid", Oid),
                ("enumsortorder", Type::Float4),
                ("enumlabel", Name),
            ]),
            Vec::new(),
        ),
        ("pg_catalog", "pg_policy") => (
            columns(&[
                ("oid", Oid),
                ("polname", Name),
                ("polrelid", Oid),
                ("polcmd", Char),
                ("polpermissive", Bool),
                ("polroles", Oid.array()),
                ("polqual", Text),
                ("polwithcheck", Text),
            ]),
            Vec::new(),
        ),
        ("pg_catalog", "pg_trigger") => (
            columns(&[
                ("oid", Oid),
                ("tgrelid", Oid),
                ("tgname", Name),
                ("tgenabled", Char),
                ("tgisinternal", Bool),
                ("tgparentid", Oid),
                ("tgconstraint", Oid),
            ]),
            Vec::new(),
        ),
        ("pg_catalog", "pg_rewrite") => (
            columns(&[
                ("oid", Oid),
                ("rulename", Name),
                ("ev_class", Oid),
                ("ev_enabled", Char),
            ]),
            Vec::new(),
        ),
        ("pg_catalog", "pg_statistic_ext") => (
            columns(&[
                ("oid", Oid),
                ("stxrelid", Oid),
                ("stxnamespace", Oid),
                ("stxname", Name),
                ("stxkind", Char.array()),
                ("stxstattarget", Int4),
            ]),
            Vec::new(),
        ),
        ("pg_catalog", "pg_publication") => (
            columns(&[("oid", Oid), ("pubname", Name), ("puballtables", Bool)]),
            Vec::new(),
        ),
        ("pg_catalog", "pg_publication_rel") => (
            columns(&[
                ("oid", Oid),
                ("prpubid", Oid),
                ("prrelid", Oid),
                ("prqual", Text),
                ("prattrs", Int2.array()),
            ]),
            Vec::new(),
        ),
        ("pg_catalog", "pg_publication_namespace") => {
            (columns(&[("oid", Oid), ("pnpubid", Oid), ("pnnspid", Oid)]), Vec::new())
        }
        ("pg_catalog", "pg_tablespace") => (columns(&[("oid", Oid), ("spcname", Name)]), Vec::new()),
        ("pg_catalog", "pg_proc") => (
            columns(&[("oid", Oid), ("proname", Name), ("pronamespace", Oid)]),
            Vec::new(),
        ),
        ("pg_catalog", "pg_tables") => {
            let rows = facts.tables()?.into_iter().filter(|(_, table)| !is_view(table));
            (
                columns(&[("schemaname", Name), ("tablename", Name), ("tableowner", Name)]),
                rows.map(|(_, table)| vec![text("public"), text(&table.name), text(facts.user())])
                    .collect(),
            )
        }
        ("information_schema", "schemata") => {
            let row = |name: &str| vec![text(facts.database()), text(name), text(facts.user())];
            (
                columns(&[("catalog_name", Name), ("schema_name", Name), ("schema_owner", Name)]),
                vec![row("pg_catalog"), row("public"), row("information_schema")],
            )
        }
        ("information_schema", "tables") => {
            let rows = facts.tables()?.into_iter().map(|(_, table)| {
                let kind = if is_view(&table) { "VIEW" } else { "BASE TABLE" };
                vec![text(facts.database()), text("public"), text(&table.name), text(kind)]
            });
            (
                columns(&[
                    ("table_catalog", Name),
                    ("table_schema", Name),
                    ("table_name", Name),
                    ("table_type", Text),
                ]),
                rows.collect(),
            )
        }
        ("information_schema", "columns") => {
            let mut rows = Vec::new();
            for (_, table) in facts.tables()? {
                for (at, column) in (1..).zip(&table.columns) {
                    let shown = match column.ty {
                        Type::Array(_) => "ARRAY".to_owned(),
                        ref ty => ty.to_string(),
                    };
                    rows.push(vec![
                        text(facts.database()),
                        text("public"),
                        text(&table.name),
                        text(&column.name),
                        Value::Int32(at),
                        column.default.as_ref().map_or(Value::Null, text),
                        text(if column.not_null { "NO" } else { "YES" }),
                        text(shown),
                        text(column.ty.name()),
                    ]);
                }
            }
            (
                columns(&[
                    ("table_catalog", Name),
                    ("table_schema", Name),
                    ("table_name", Name),
                    ("column_name", Name),
                    ("ordinal_position", Int4),
                    ("column_default", Text),
                    ("is_nullable", Text),
                    ("data_type", Text),
                    ("udt_name", Name),
                ]),
                rows,
            )
        }
        _ => return Ok(None),
    };
    Ok(Some(Table {
        schema: schema.to_owned(),
        name: name.to_owned(),
        columns,
        kind: Kind::Rows(Arc::new(rows)),
        declared: true,
    }))
}
