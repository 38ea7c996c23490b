//! The tables of `pg_catalog` and `information_schema`: rows made of the catalog when a statement names them.
//!
//! [`shapes`] has the columns of all of them, with PostgreSQL's names and OIDs. [`relations`], [`roles`], [`server`] and [`information`] make the
//! rows of those that have some; the others stand for what Nestor does not have (rules, publications, ...) and are empty. A column that
//! a row says nothing of is null, or what is the rule in PostgreSQL where it cannot be null: false, 0, the empty text.

pub mod classes;
mod comments;
mod deparse;
mod depends;
mod described;
mod domains;
mod indexes;
mod information;
mod io;
pub mod partitions;
mod policies;
mod pseudo;
mod relations;
mod roles;
mod searched;
mod server;
mod shapes;
mod statistics;
mod triggers;

pub use crate::types::names::spelled;
pub use domains::constraint as domain_constraint;
pub use indexes::{index_oid, shown_part};
pub use relations::quoted;
pub use roles::{BYPASSES, MAKES_DATABASES, Role, number as role_number};
pub use shapes::{name_of, oid_of};

use super::exclusion::Exclusion;
use super::routines::Routine;
use super::{Column, Kind, Table, Timing, schemas};
use crate::functions::part_key;
use crate::functions::sequences_key;
use crate::types::Type;
use nestor_database::rights::Action;
use nestor_database::write::begun::{self, Whose};
use nestor_database::write::sequence::Counting;
use nestor_model::{Document, Result, Value};
use nestor_planner::relation::Tuple;
use pseudo::PSEUDO_TYPES;
use shapes::Shape;
use std::sync::{Arc, LazyLock};

/// OID of the schema `pg_catalog`.
pub const PG_CATALOG: i64 = 11;
/// OID of the schema `public`.
pub const PUBLIC: i64 = 2200;
/// OID of the schema `information_schema`.
pub const INFORMATION_SCHEMA: i64 = 13_000;
/// OID of the user of the connection.
pub const OWNER: i64 = 10;
/// OID of the role whose member is who the database belongs to, by which the schema `public` is its.
pub const DATABASE_OWNER: i64 = 6171;
/// What is added to a collection's number to make an OID that PostgreSQL uses for nothing of its own.
pub const RELATIONS: u32 = 20_000;
/// What is added for the sequences of columns.
pub const SEQUENCES: u32 = 3_000_000_000;
/// What is added to an index's number.
pub const INDEXES: u32 = 1_000_000_000;
/// `pg_get_constraintdef` where it is to be easy to read.
pub const PRETTY_CONSTRAINTDEF: &str = "pg_get_constraintdef pretty";
/// Asks for the tables whose policies count for the user.
pub const ROW_SECURITY_ACTIVE: &str = "row_security_active";
/// What stands before the name of a catalog in the keys of [`descriptions`] where all databases share it.
pub const SHARED: &str = "shared ";
/// What `pg_get_triggerdef` asks for when it is to be pretty.
pub const PRETTY_TRIGGERDEF: &str = "pg_get_triggerdef pretty";
/// What is added to a relation's OID for that of the type of its rows.
pub const ROW_TYPES: u32 = 1_500_000_000;
/// What is added for the type of arrays of its rows.
pub const ROW_ARRAYS: u32 = 1_750_000_000;
/// OIDs of functions, by their place among all.
pub const FUNCTIONS: u32 = 60_000;

/// What is said of something: its number, the number and name of the catalog that has it, and the text.
pub type Said = (i64, (i64, &'static str), String);

/// What is said of a database or a role: its name, the number of the catalog that has it, and the text.
pub type SaidOfShared = (String, i64, String);

/// An index as catalogs show it.
#[derive(Clone, Debug)]
pub struct IndexFacts {
    /// Its OID.
    pub oid: u32,
    /// Its name, which is one of its collection in Nestor; here that of the collection stands before it.
    pub name: String,
    /// Its parts: the path, and the direction or kind as the key pattern has it.
    pub parts: Vec<(String, String)>,
    /// Of each part, whether it descends (1) and whether nulls come first (2).
    pub orders: Vec<i32>,
    /// The classes of operators that were said of its parts, where they are not those of the types; empty where it is.
    pub classes: Vec<String>,
    /// It was asked for by hash, and has its values in order.
    pub is_hash: bool,
    /// The access method by which it has what is within values.
    pub inverted: Option<String>,
    /// The collations that were said of its parts, by name, where they are not those of the parts; empty where it is.
    pub collations: Vec<String>,
    /// Its storage parameters, each with its value.
    pub storage: Vec<String>,
    /// The constraint that it is of, if rows exclude each other by it.
    pub exclusion: Option<Exclusion>,
    /// The types of its parts, if one of them is an expression.
    pub computed: Vec<Type>,
    /// The paths of the columns that it includes beside its key.
    pub included: Vec<String>,
    /// No two documents have the same values.
    pub unique: bool,
    /// When its uniqueness is looked at.
    pub timing: Timing,
    /// Nulls are values that no two documents share.
    pub nulls_equal: bool,
    /// It is the one of `_id`.
    pub primary: bool,
    /// The predicate of a partial index: what its filter says, then conditions that no filter says, as they were written.
    pub partial: Option<(Option<String>, Vec<String>)>,
    /// What is said of it.
    pub comment: Option<String>,
}

impl IndexFacts {
    /// The paths of its parts, then of what it includes.
    fn all(&self) -> impl Iterator<Item = &String> {
        self.parts.iter().map(|(path, _)| path).chain(&self.included)
    }
}

/// A collection or view as catalogs show it.
#[derive(Clone, Debug)]
pub struct Relation {
    /// The number of its schema.
    pub schema: i64,
    /// Its OID.
    pub oid: u32,
    /// Name and columns.
    pub table: Arc<Table>,
    /// Its indexes.
    pub indexes: Vec<IndexFacts>,
    /// The names of the declared keys that indexes keep.
    pub keys: Vec<String>,
    /// Documents, of collections.
    pub count: i64,
    /// What a view is made of.
    pub definition: Option<String>,
    /// What is said of it, its columns and constraints.
    pub comments: Option<Document>,
    /// What it is a partition of.
    pub partition: Option<partitions::Partition>,
    /// Which columns can be written to, of tables and the views that one can write through.
    pub updatable: Option<Vec<bool>>,
}

impl Relation {
    /// The index by which a key of these paths is unique.
    fn index_of_key(&self, paths: &[String]) -> Option<&IndexFacts> {
        let keeps = |index: &&IndexFacts| {
            index.unique && index.partial.is_none() && index.parts.iter().map(|(path, _)| path).eq(paths)
        };
        self.indexes.iter().find(keeps)
    }

    /// Whether it is the collection of a name.
    fn is(&self, collection: &str) -> bool {
        schemas::collection(&self.table.schema, &self.table.name) == collection
    }
}

/// A sequence as catalogs show it.
#[derive(Clone, Debug)]
pub struct SequenceFacts {
    /// Its OID.
    pub oid: u32,
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// How it counts.
    pub counting: Counting,
    /// The type of its numbers.
    pub ty: Type,
    /// The last number, if one was given.
    pub last: Option<i64>,
    /// The table whose column counts with it, and the number of the column.
    pub owner: Option<(u32, usize)>,
    /// It is a part of an IDENTITY column.
    pub is_identity: bool,
    /// What is said of it.
    pub comment: Option<String>,
}

/// An extension that is built in.
#[derive(Debug)]
pub struct Extension {
    /// Its name.
    pub name: &'static str,
    version: &'static str,
    /// What it is for.
    pub about: &'static str,
    oid: i64,
}

impl Extension {
    /// Its OID.
    pub fn number(&self) -> i64 {
        self.oid
    }
}

/// All of them. Their functions are in `pg_catalog`.
pub const EXTENSIONS: &[Extension] = &[
    Extension {
        name: "uuid-ossp",
        version: "1.1",
        about: "generate universally unique identifiers (UUIDs)",
        oid: 13_800,
    },
    Extension {
        name: "pgcrypto",
        version: "1.3",
        about: "cryptographic functions",
        oid: 13_801,
    },
    Extension {
        name: "btree_gist",
        version: "1.7",
        about: "support for indexing common datatypes in GiST",
        oid: 13_803,
    },
    Extension {
        name: "btree_gin",
        version: "1.3",
        about: "support for indexing common datatypes in GIN",
        oid: 13_804,
    },
    Extension {
        name: "pg_trgm",
        version: "1.6",
        about: "text similarity measurement and index searching based on trigrams",
        oid: 13_805,
    },
    Extension {
        name: "citext",
        version: "1.6",
        about: "data type for case-insensitive character strings",
        oid: 13_806,
    },
    Extension {
        name: "plpgsql",
        version: "1.0",
        about: "PL/pgSQL procedural language",
        oid: 13_802,
    },
];

/// What a connection is at.
#[derive(Clone, Debug)]
pub struct Activity {
    /// Its number.
    pub pid: i32,
    /// Who is logged in, if that is known.
    pub user: Option<String>,
    /// Its database.
    pub database: Option<String>,
    /// The client's application.
    pub application: Option<String>,
    /// The client's address.
    pub peer: String,
    /// The statement that it runs or ran last.
    pub query: Option<String>,
    /// When that began, in microseconds since 1970.
    pub since_us: Option<i64>,
    /// The statement runs.
    pub runs: bool,
}

/// What tables of the catalog are made of.
pub trait Facts {
    /// The collections and views of the database that the user may read.
    ///
    /// Errors: those of reading documents whose columns are inferred.
    fn relations(&self) -> Result<Arc<Vec<Relation>>>;
    /// Whether policies of a table count for the user.
    fn is_guarded(&self, table: &Table) -> bool;
    /// The sequences of the database that the user may read.
    ///
    /// Errors: those of reading their states.
    fn sequences(&self) -> Result<Vec<SequenceFacts>>;
    /// The schemas of the database's own, with their numbers.
    fn schemas(&self) -> Vec<(i64, String)>;
    /// The schemas of `search_path` that there are, in its order.
    fn path(&self) -> Vec<String>;
    /// The enums and composite types of the database, each with its schema.
    fn made_types(&self) -> Vec<(String, Type)>;
    /// The functions of the database that somebody has made.
    fn routines(&self) -> Vec<Arc<Routine>>;
    /// What is said of them, by their numbers.
    ///
    /// Errors: those of reading.
    fn said_of_schemas(&self) -> Result<Vec<(i64, String)>>;
    /// What is said of types and functions that somebody has made and of what is built in, by their numbers, with the catalog.
    ///
    /// Errors: those of reading.
    fn said_of_made(&self) -> Result<Vec<Said>>;
    /// What is said of databases and roles: the name, the number of the catalog that has it, and the text.
    ///
    /// Errors: those of reading.
    fn said_of_shared(&self) -> Result<Vec<SaidOfShared>>;
    /// The text of the query of a view in a schema, with schemas before the names of tables that names without one do not find.
    fn qualified(&self, schema: &str, query: &str) -> String;
    /// What the collections of a database take, of those that the user may read; with `of`, just the one that has this OID or an index with it.
    ///
    /// Errors: those of storage.
    fn sizes(&self, database: &str, of: Option<i64>) -> Result<Vec<Sizes>>;
    /// What connections are at, of those that the user may see.
    fn activities(&self) -> Vec<Activity>;
    /// What the session has by names of its own.
    fn of_session(&self) -> Arc<OfSession>;
    /// The assertions of the database: number, name and condition.
    fn assertions(&self) -> Vec<(u32, String, String)>;
    /// The databases.
    fn databases(&self) -> Vec<String>;
    /// The database of the connection.
    fn database(&self) -> String;
    /// The user of the connection.
    fn user(&self) -> String;
    /// The roles that the user may see.
    ///
    /// Errors: those of reading them.
    fn roles(&self) -> Result<Vec<Role>>;
    /// What sessions of roles and databases begin with, of roles of this database and of `admin`.
    ///
    /// Errors: those of reading them.
    fn begun(&self) -> Result<Vec<(Whose, begun::Settings)>>;
    /// The user may do everything.
    fn is_superuser(&self) -> bool;
    /// The user may do something with a relation of a schema, or with whichever there may be.
    fn may(&self, schema: &str, name: &str, action: Action) -> bool;
    /// Settings and their values.
    fn settings(&self) -> Vec<(String, String)>;
}

/// What the texts are asked for by that say what a user may do: behind it `relations`, `schemas` or `roles`, and, behind a space, the user if it is
/// not the session's.
pub const RIGHTS: &str = "rights of ";

/// What a session has by names of its own, as it was when its statement began.
#[derive(Clone, Debug, Default)]
pub struct OfSession {
    /// Its prepared statements.
    pub prepared: Vec<Named>,
    /// Its cursors.
    pub cursors: Vec<Named>,
}

/// A prepared statement or a cursor.
#[derive(Clone, Debug)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// The statement that made it.
    pub text: String,
    /// When, in milliseconds.
    pub made_ms: i64,
    /// The types of the parameters of a prepared statement.
    pub types: Vec<Type>,
    /// PREPARE made it, or DECLARE.
    pub by_sql: bool,
    /// A cursor that outlives its transaction.
    pub holds: bool,
    /// A cursor that gives values in binary format.
    pub is_binary: bool,
    /// A cursor that may go back.
    pub scrolls: bool,
}

/// What a collection takes, in bytes.
#[derive(Clone, Debug)]
pub struct Sizes {
    /// The OID of its relation.
    pub oid: i64,
    /// Its documents.
    pub records: i64,
    /// Its indexes, by their OIDs.
    pub indexes: Vec<(i64, i64)>,
}

impl Sizes {
    fn all_indexes(&self) -> i64 {
        self.indexes.iter().map(|(_, bytes)| bytes).sum()
    }
}

/// The bytes that a function such as `pg_table_size` tells of relations and indexes, by their OIDs, or of databases, by OID and by name; of
/// nothing but `of`, if there is one.
///
/// Errors: those of [`Facts::sizes`].
pub fn sizes(function: &str, of: Option<&str>, facts: &dyn Facts) -> Result<Vec<(String, i64)>> {
    let is_asked = |key: &str| of.is_none_or(|of| of == key);
    let mut out = Vec::new();
    if function == "pg_database_size" {
        for (oid, name) in statistics::databases(facts) {
            let oid = oid.to_string();
            if !is_asked(&oid) && !is_asked(&name) {
                continue;
            }
            let all = facts.sizes(&name, None)?;
            let bytes = all.iter().map(|one| one.records + one.all_indexes()).sum();
            out.extend([(oid, bytes), (name, bytes)]);
        }
        return Ok(out);
    }
    let number = of.and_then(|of| of.parse().ok());
    for one in facts.sizes(&facts.database(), number)? {
        let bytes = match function {
            "pg_indexes_size" => one.all_indexes(),
            "pg_total_relation_size" => one.records + one.all_indexes(),
            _ => one.records,
        };
        out.push((one.oid.to_string(), bytes));
        let of_index = |bytes: i64| if function == "pg_indexes_size" { 0 } else { bytes };
        out.extend(
            one.indexes
                .iter()
                .map(|(oid, bytes)| (oid.to_string(), of_index(*bytes))),
        );
    }
    Ok(out)
}

/// A row that is being made: columns by name.
type Row = Vec<(&'static str, Value)>;

fn text(s: impl AsRef<str>) -> Value {
    Value::String(s.as_ref().into())
}

/// A number that follows from a name within a relation, by FNV-1a, as that is the same in every process.
fn hash_within(relation: &Relation, name: &str) -> u32 {
    let begin = 0x811c_9dc5_u32 ^ relation.oid;
    name.bytes()
        .fold(begin, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

fn oid(n: impl Into<i64>) -> Value {
    Value::Int64(n.into())
}

fn int(n: usize) -> Value {
    Value::Int32(i32::try_from(n).unwrap_or(i32::MAX))
}

fn is_view(table: &Table) -> bool {
    matches!(table.kind, Kind::View(_) | Kind::Query(_))
}

/// Neither a view nor a materialized one.
fn is_table(table: &Table) -> bool {
    !is_view(table) && table.materialized.is_none()
}

/// What a column has of which a row says nothing.
fn usual(name: &str, ty: &Type) -> Value {
    match ty {
        // `aclitem[]`, expressions and dates are null where there are none.
        Type::Bool => Value::Bool(false),
        Type::Int2 | Type::Int4 => Value::Int32(0),
        Type::Oid => Value::Int64(0),
        Type::Float4 => Value::Double(0.0),
        Type::Char if name.starts_with("att") => text(""),
        _ => Value::Null,
    }
}

fn columns(shape: &Shape) -> Vec<Column> {
    shape.columns().map(|(name, ty)| Column::new(name, ty)).collect()
}

fn tuple(columns: &[Column], row: Row) -> Tuple {
    let mut out: Tuple = columns.iter().map(|column| usual(&column.name, &column.ty)).collect();
    for (name, value) in row {
        let at = columns.iter().position(|column| column.name == name);
        debug_assert!(at.is_some(), "{name} is a column");
        if let Some(at) = at {
            out[at] = value;
        }
    }
    out
}

/// The name of something in a schema, with that unless names are looked for there.
fn shown(path: &[String], schema: &str, name: &str) -> String {
    match path.iter().any(|own| own == schema) {
        true => relations::quoted(name),
        false => format!("{}.{}", relations::quoted(schema), relations::quoted(name)),
    }
}

/// The number of a schema.
fn schema_number(facts: &dyn Facts, schema: &str) -> i64 {
    let own = facts.schemas();
    let found = own.iter().find(|(_, name)| name == schema);
    found.map_or(PUBLIC, |(number, _)| *number)
}

/// What a function of the catalog tells of every object that it can be asked of, by OID; `None` for other functions.
///
/// Errors: those of [`Facts::relations`].
pub fn texts(function: &str, facts: &dyn Facts) -> Result<Option<Vec<(i64, String)>>> {
    Ok(Some(match function {
        "regclass" => relations::named(facts)?,
        "relations" => relations::called(facts)?,
        "pg_table_is_visible" => relations::hidden(facts)?,
        "pg_type_is_visible" => {
            let (types, path) = (facts.made_types(), facts.path());
            let all = types.iter().filter(|(schema, _)| !path.contains(schema));
            all.flat_map(|(_, own)| [own.oid(), own.clone().array().oid()])
                .map(|number| (i64::from(number), "hidden".to_owned()))
                .collect()
        }
        "regproc" | "regprocedure" => {
            let with_arguments = function == "regprocedure";
            let mut all = server::function_names(with_arguments);
            all.extend(facts.routines().iter().map(|own| match with_arguments {
                true => (i64::from(own.oid), own.shown().replace(", ", ",")),
                false => (i64::from(own.oid), own.name.clone()),
            }));
            all
        }
        "regnamespace" => {
            let own = [
                (PG_CATALOG, "pg_catalog".to_owned()),
                (PUBLIC, "public".to_owned()),
                (INFORMATION_SCHEMA, "information_schema".to_owned()),
            ];
            let all = own.into_iter().chain(facts.schemas());
            all.map(|(n, name)| (n, relations::quoted(&name))).collect()
        }
        ROW_SECURITY_ACTIVE => {
            let relations = facts.relations()?;
            let guarded = relations.iter().filter(|own| facts.is_guarded(&own.table));
            guarded.map(|own| (i64::from(own.oid), String::new())).collect()
        }
        rights if rights.starts_with(RIGHTS) => roles::rights(rights, facts)?,
        "regrole" => {
            let all = facts.roles()?.into_iter().map(|role| (role.oid, role.name));
            let all = all.filter(|(_, name)| !name.is_empty());
            all.chain([(DATABASE_OWNER, "pg_database_owner".to_owned())]).collect()
        }
        "pg_get_indexdef" | "pg_get_constraintdef" | PRETTY_CONSTRAINTDEF | "pg_get_viewdef" => {
            relations::definition(function, facts)?
        }
        "format_type" | "regtype" | "type_key" => {
            let path = facts.path();
            let mut made: Vec<(String, String, [u32; 2])> = Vec::new();
            for (schema, own) in facts.made_types() {
                let types = [own.oid(), own.clone().array().oid()];
                made.push((schema, own.name(), types));
            }
            for relation in facts.relations()?.iter() {
                let (schema, name) = (relation.table.schema.clone(), relation.table.name.clone());
                let types = [ROW_TYPES, ROW_ARRAYS].map(|of| relation.oid.saturating_add(of));
                made.push((schema, name, types));
            }
            for shape in shapes::all() {
                let types = [ROW_TYPES, ROW_ARRAYS].map(|of| shape.oid.saturating_add(of));
                made.push((shape.schema.to_owned(), shape.name.to_owned(), types));
            }
            let mut out = Vec::new();
            for (schema, name, types) in &made {
                let [number, of_arrays] = types.map(i64::from);
                let is_visible = schema == "pg_catalog" || path.contains(schema);
                if function == "type_key" {
                    let before = [format!("{schema}."), String::new()];
                    for before in before.into_iter().take(1 + usize::from(is_visible)) {
                        out.push((of_arrays, format!("{before}{name}[]")));
                        out.push((of_arrays, format!("{before}_{name}")));
                        out.push((number, format!("{before}{name}")));
                    }
                    continue;
                }
                let before = match is_visible {
                    true => String::new(),
                    false => format!("{}.", relations::quoted(schema)),
                };
                let shown = format!("{before}{}", relations::quoted(name));
                out.push((of_arrays, format!("{shown}[]")));
                out.push((number, shown));
            }
            for pseudo in PSEUDO_TYPES {
                let (number, name) = (i64::from(pseudo.oid), pseudo.name);
                match function {
                    "type_key" => {
                        out.push((number, name.to_owned()));
                        out.push((number, format!("pg_catalog.{name}")));
                    }
                    // A word of the grammar.
                    _ if name == "any" => out.push((number, "\"any\"".to_owned())),
                    _ => out.push((number, name.to_owned())),
                }
            }
            out
        }
        // Of each part of an index in order how it is, as `indoption`; of the columns that it includes nothing.
        "pg_index_column_has_property" => {
            let relations = facts.relations()?;
            let mut out = Vec::new();
            for index in relations.iter().flat_map(|relation| &relation.indexes) {
                let in_order =
                    |(_, kind): &(String, String)| !matches!(kind.as_str(), "hashed" | "text" | "2dsphere" | "2d");
                if index.parts.iter().all(in_order) {
                    let each = (1..).zip(&index.orders);
                    out.extend(each.map(|(at, order)| (part_key(i64::from(index.oid), at), order.to_string())));
                }
            }
            out
        }
        // Bits for UPDATE, INSERT and DELETE; of what is not among them none.
        "pg_relation_is_updatable" => {
            let relations = facts.relations()?;
            let takes = |relation: &&Relation| match relation.table.kind {
                Kind::Query(_) => relation.updatable.is_some(),
                Kind::Collection(_) => relation.table.materialized.is_none(),
                _ => false,
            };
            let all = relations.iter().filter(takes);
            all.map(|relation| (i64::from(relation.oid), "28".to_owned())).collect()
        }
        "pg_get_partkeydef" | "pg_get_partition_constraintdef" | "pg_partition_tree" => {
            partitions::texts(function, facts)?
        }
        "pg_sequence_last_value" => {
            let all = facts.sequences()?.into_iter();
            all.filter_map(|sequence| Some((i64::from(sequence.oid), sequence.last?.to_string())))
                .collect()
        }
        "pg_get_triggerdef" | PRETTY_TRIGGERDEF => triggers::definitions(facts, function == PRETTY_TRIGGERDEF)?,
        "pg_get_functiondef" => {
            let all = facts.routines();
            all.iter().map(|own| (i64::from(own.oid), own.definition())).collect()
        }
        "pg_get_function_sqlbody" => {
            let all = facts.routines();
            let own = all.iter();
            own.filter_map(|own| Some((i64::from(own.oid), own.returned.clone()?)))
                .collect()
        }
        "pg_get_function_result" | "pg_get_function_arguments" | "pg_get_function_identity_arguments" => {
            let path = facts.path();
            let place = deparse::Place::of(&[], &path);
            let name_of = |ty: &Type| place.name(ty);
            let mut all = server::signature(function == "pg_get_function_result");
            let routines = facts.routines();
            let gives = |own: &&Arc<Routine>| function != "pg_get_function_result" || !own.is_procedure;
            all.extend(routines.iter().filter(gives).map(|own| {
                let shown = match function {
                    "pg_get_function_result" => own.result(&name_of),
                    name => own.arguments(name == "pg_get_function_arguments", &name_of),
                };
                (i64::from(own.oid), shown)
            }));
            all
        }
        _ => return Ok(None),
    }))
}

/// What is said of each object, by its number, the name of its catalog (or nothing) and the number of the column, with slashes between them.
///
/// Errors: those of [`Facts::relations`].
pub fn descriptions(facts: &dyn Facts) -> Result<Vec<(String, String)>> {
    let all = comments::all(facts)?;
    let each = all.iter();
    let each = each.flat_map(|comment| comment.keys().map(|key| (key, comment.text.clone())));
    let shared = comments::shared(facts)?.into_iter();
    let shared = shared.map(|(number, (_, class), text)| (format!("{number}/{SHARED}{class}/0"), text));
    Ok(each.chain(shared).collect())
}

/// The sequences of columns, by table and column, which are null where they count by none.
///
/// Errors: those of [`Facts::relations`].
pub fn serial_sequences(facts: &dyn Facts) -> Result<Document> {
    let (sequences, path) = (facts.sequences()?, facts.path());
    let mut out = Document::new();
    // The first schema of the search path comes first where none is said.
    let mut plain: Vec<(usize, &str, Document)> = Vec::new();
    let relations = facts.relations()?;
    for relation in relations.iter() {
        let mut columns = Document::new();
        for (at, column) in (1..).zip(&relation.table.columns) {
            let owned = sequences
                .iter()
                .find(|sequence| sequence.owner == Some((relation.oid, at)));
            let name = owned.map(|sequence| format!("{}.{}", relation.table.schema, relations::quoted(&sequence.name)));
            columns.push(column.name.as_str(), name.map_or(Value::Null, text));
        }
        let (schema, name) = (relation.table.schema.as_str(), relation.table.name.as_str());
        out.push(sequences_key(&[schema, name]), columns.clone());
        if let Some(place) = path.iter().position(|own| own == schema) {
            plain.push((place, name, columns));
        }
    }
    plain.sort_by_key(|(place, ..)| *place);
    for (_, name, columns) in plain {
        let key = sequences_key(&[name]);
        if out.get(&key).is_none() {
            out.push(key, columns);
        }
    }
    Ok(out)
}

/// The rows that a table of the catalog has in all databases, which are made once.
fn fixed(schema: &str, name: &str) -> &'static [Tuple] {
    static CLASSES: LazyLock<Vec<Tuple>> = LazyLock::new(|| made("pg_class", relations::own_classes()));
    static ATTRIBUTES: LazyLock<Vec<Tuple>> = LazyLock::new(|| made("pg_attribute", relations::own_attributes()));
    static TYPES: LazyLock<Vec<Tuple>> = LazyLock::new(|| made("pg_type", server::own_types()));
    static PROCEDURES: LazyLock<Vec<Tuple>> = LazyLock::new(|| made("pg_proc", server::procedures()));
    static OPERATORS: LazyLock<Vec<Tuple>> = LazyLock::new(|| made("pg_operator", server::operators()));
    static CLASSES_OF_OPERATORS: LazyLock<Vec<Tuple>> = LazyLock::new(|| made("pg_opclass", classes::rows()));
    static CONFIGS: LazyLock<Vec<Tuple>> = LazyLock::new(|| searched("pg_ts_config"));
    static CONFIG_MAPS: LazyLock<Vec<Tuple>> = LazyLock::new(|| searched("pg_ts_config_map"));
    static DICTIONARIES: LazyLock<Vec<Tuple>> = LazyLock::new(|| searched("pg_ts_dict"));
    static PARSERS: LazyLock<Vec<Tuple>> = LazyLock::new(|| searched("pg_ts_parser"));
    static TEMPLATES: LazyLock<Vec<Tuple>> = LazyLock::new(|| searched("pg_ts_template"));
    match (schema, name) {
        ("pg_catalog", "pg_class") => &CLASSES,
        ("pg_catalog", "pg_attribute") => &ATTRIBUTES,
        ("pg_catalog", "pg_type") => &TYPES,
        ("pg_catalog", "pg_proc") => &PROCEDURES,
        ("pg_catalog", "pg_operator") => &OPERATORS,
        ("pg_catalog", "pg_opclass") => &CLASSES_OF_OPERATORS,
        ("pg_catalog", "pg_ts_config") => &CONFIGS,
        ("pg_catalog", "pg_ts_config_map") => &CONFIG_MAPS,
        ("pg_catalog", "pg_ts_dict") => &DICTIONARIES,
        ("pg_catalog", "pg_ts_parser") => &PARSERS,
        ("pg_catalog", "pg_ts_template") => &TEMPLATES,
        _ => &[],
    }
}

fn searched(name: &str) -> Vec<Tuple> {
    made(name, searched::rows(name))
}

/// The rows of a table of `pg_catalog`, whole.
fn made(name: &str, rows: Vec<Row>) -> Vec<Tuple> {
    match shapes::find("pg_catalog", name) {
        Some(shape) => whole(shape, &columns(shape), rows),
        None => Vec::new(),
    }
}

/// Rows with all columns of their table, and what scans of it see behind these: whose they are, `tableoid`, and nothing.
fn whole(shape: &Shape, columns: &[Column], rows: Vec<Row>) -> Vec<Tuple> {
    let each = rows.into_iter().map(|row| {
        let mut out = tuple(columns, row);
        out.extend([oid(shape.oid), Value::Null]);
        out
    });
    each.collect()
}

/// The table of this name, if it is one of the catalog's.
///
/// Errors: those of [`Facts::relations`].
pub fn table(schema: &str, name: &str, facts: &dyn Facts) -> Result<Option<Table>> {
    let Some(shape) = shapes::find(schema, name) else {
        return Ok(None);
    };
    let columns = columns(shape);
    let rows = match (roles::rows(name, facts)?, schema) {
        (Some(rows), _) => rows,
        (None, "pg_catalog") => match relations::rows(name, facts)? {
            Some(rows) => rows,
            None if name == "pg_description" => comments::rows(facts)?,
            None if name == "pg_shdescription" => comments::shared_rows(facts)?,
            None if name == "pg_depend" => depends::rows(facts)?,
            None if matches!(name, "pg_inherits" | "pg_partitioned_table") => {
                partitions::rows(name, facts)?.unwrap_or_default()
            }
            None => match statistics::rows(name, facts)? {
                Some(rows) => rows,
                None => server::rows(name, facts)?,
            },
        },
        (None, _) => information::rows(name, facts)?,
    };
    let rows = whole(shape, &columns, rows);
    Ok(Some(Table {
        schema: schema.to_owned(),
        declared: true,
        fixed: fixed(schema, name),
        ..Table::new(name, columns, Kind::Rows(Arc::new(rows)))
    }))
}
