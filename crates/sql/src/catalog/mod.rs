//! Tables as the binder sees them.
//!
//! A collection is a table whose columns were declared, or those of its [`documents`] as far as they are [`known`], as views are; how its values are spread
//! tells what is [`sampled`]. [`system`] has the
//! tables of `pg_catalog` and `information_schema`, [`files`](mod@files) what is known of files that are read as tables. [`answers`] says whether what was
//! made of them still holds.

pub mod answers;
pub mod documents;
pub mod exclusion;
pub mod files;
pub mod known;
pub mod nothing;
pub mod partial;
pub mod partition;
pub mod routines;
pub mod sampled;
pub mod schemas;
pub mod system;
#[cfg(test)]
mod testing;

use crate::error;
use crate::parse::own::CheckOption;
use crate::parse::trigger::Trigger;
use crate::types::collation::Collation;
pub use crate::types::domain::Check;
use crate::types::{Type, stored};
use nestor_database::connections::Slot;
use nestor_database::write::sequence::Counting;
pub use nestor_model::RowSecurity;
pub use nestor_model::row_security::{Policy, PolicyCommand};
use nestor_model::vector::Builder;
use nestor_model::{Document, Namespace, Result, Value, ValueRef};
use nestor_planner::relation::Tuple;
use sqlparser::ast::Query;
use std::sync::Arc;

/// A column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name in SQL.
    pub name: String,
    /// The field of documents that it is.
    pub path: String,
    /// The type of its values in expressions.
    pub ty: Type,
    /// The modifier of its type, -1 for none.
    pub modifier: i32,
    /// The collation that it was declared with, where it is not that of its type.
    pub collation: Option<&'static Collation>,
    /// The domain, or the array of such, that it was declared as.
    pub domain: Option<Type>,
    /// It is never null.
    pub not_null: bool,
    /// The text of its default.
    pub default: Option<String>,
    /// Who gives it its next number, if somebody does.
    pub identity: Option<Identity>,
    /// The name of the sequence of those numbers, where it is not made of the names of the table and the column.
    pub sequence: Option<String>,
    /// The text of the expression that gives its value, of generated columns.
    pub generated: Option<String>,
    /// Part of the primary key.
    pub is_key: bool,
    /// Fields of the structs that it holds, with their types.
    pub fields: Vec<Column>,
    /// A statement declared it.
    pub declared: bool,
}

impl Column {
    /// A column of a table in memory.
    pub fn new(name: &str, ty: Type) -> Self {
        Self {
            name: name.to_owned(),
            path: name.to_owned(),
            domain: ty.is_constrained().then(|| ty.clone()),
            ty: ty.plain(),
            modifier: -1,
            collation: None,
            not_null: false,
            default: None,
            identity: None,
            sequence: None,
            generated: None,
            is_key: false,
            fields: Vec::new(),
            declared: false,
        }
    }

    /// The name of the sequence that it counts with, as a column of a table of this name.
    pub fn sequence_of(&self, table: &str) -> String {
        let made = || {
            crate::types::names::made(table, Some(&self.name), "seq")
                .next()
                .unwrap_or_default()
        };
        self.sequence.clone().unwrap_or_else(made)
    }

    /// The OID of the collation that its values compare by; 0 for those that compare by none.
    pub fn collation(&self) -> u32 {
        self.collation
            .map_or_else(|| self.declared_type().collation(), |own| own.oid)
    }

    /// The type that it was declared as.
    pub fn declared_type(&self) -> &Type {
        self.domain.as_ref().unwrap_or(&self.ty)
    }

    /// The text of what it holds when nobody gives it: its own default, or that of its domain.
    pub fn given(&self) -> Option<&str> {
        match (&self.default, &self.domain) {
            (Some(own), _) => Some(own),
            (None, Some(Type::Domain(domain))) => domain.default(),
            _ => None,
        }
    }

    /// Whether what it holds when nobody gives it is to be computed, or looked at.
    pub fn is_given(&self) -> bool {
        self.generated.is_none() && (self.given().is_some() || self.domain.is_some())
    }

    /// Whether a null in documents is JSON's, and SQL's is the absence of the field alone: in columns that were declared as `jsonb`.
    pub fn has_json_nulls(&self) -> bool {
        self.declared && self.ty == Type::Jsonb
    }

    /// Its value in a document.
    ///
    /// Errors: those of [`stored::read`].
    #[inline]
    pub fn read(&self, value: ValueRef<'_>) -> Result<Value> {
        match value {
            ValueRef::Null if self.has_json_nulls() => Ok(Value::Undefined),
            value => stored::read(&self.ty, value, &self.path),
        }
    }

    /// As [`Column::read`], to the end of a vector.
    ///
    /// Errors: those of [`stored::read`].
    #[inline]
    pub fn read_into(&self, value: &ValueRef<'_>, into: &mut Builder) -> Result<()> {
        match value {
            ValueRef::Null if self.has_json_nulls() => {
                into.push(Value::Undefined);
                Ok(())
            }
            value => stored::read_into(&self.ty, value, &self.path, into),
        }
    }

    /// Whether a value of a document is SQL's null in it.
    pub fn is_null(&self, value: Option<ValueRef<'_>>) -> bool {
        match value {
            Some(ValueRef::Null) => !self.has_json_nulls(),
            value => value.is_none_or(ValueRef::is_nullish),
        }
    }
}

/// How a column counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// When.
    pub kind: IdentityKind,
    /// By which numbers.
    pub counting: Counting,
}

/// When a column takes its next number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentityKind {
    /// Always: nobody may say another one.
    Always,
    /// When a row says nothing.
    ByDefault,
    /// When a row says nothing, by a default.
    Serial,
}

/// What becomes of rows whose key is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Referential {
    /// The key may not go, unless another row has it in the end.
    Refuse,
    /// The key may not go.
    Restrict,
    /// They go with it, or get the new key.
    Cascade,
    /// They get null.
    SetNull,
}

/// When a constraint is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timing {
    /// At the end of each statement.
    #[default]
    AtOnce,
    /// At the end of each statement, unless the transaction wants it at its own.
    Deferrable,
    /// At the end of the transaction, unless that wants it at once.
    Deferred,
}

impl Timing {
    /// What stands at the end of a constraint.
    pub fn words(self) -> &'static str {
        match self {
            Self::AtOnce => "",
            Self::Deferrable => " DEFERRABLE",
            Self::Deferred => " DEFERRABLE INITIALLY DEFERRED",
        }
    }
}

/// Columns whose values are the key of a row of another table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// The name of the constraint.
    pub name: String,
    /// The columns.
    pub columns: Vec<String>,
    /// The other table, of the same database.
    pub table: String,
    /// Its columns; none for those of its primary key.
    pub referred: Vec<String>,
    /// Its columns are null together or not at all.
    pub is_full: bool,
    /// When the key's row is deleted.
    pub on_delete: Referential,
    /// When it gets another key.
    pub on_update: Referential,
    /// When it is looked at.
    pub timing: Timing,
    /// It is known to hold of all rows, and not of those that were written since it is there alone.
    pub is_valid: bool,
}

/// Columns whose values no two rows share, once the statement or the transaction is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Later {
    /// The name of the constraint and of its index.
    pub name: String,
    /// The columns.
    pub columns: Vec<String>,
    /// When it is looked at.
    pub timing: Timing,
    /// Nulls are values like others.
    pub nulls_equal: bool,
}

/// Where the rows of a table are.
#[derive(Clone, Debug)]
pub enum Kind {
    /// In a collection.
    Collection(Namespace),
    /// A view gives them.
    View(Namespace),
    /// A query gives them, which is a view of SQL.
    Query(Arc<Query>),
    /// In files.
    Files(Arc<files::Source>),
    /// Here.
    Rows(Arc<Vec<Tuple>>),
}

/// What a materialized view is, beside the table of its rows.
#[derive(Clone, Debug)]
pub struct Materialized {
    /// The text of its query.
    pub text: String,
    /// It has the rows of its query, as they were once.
    pub is_populated: bool,
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Where its rows are.
    pub kind: Kind,
    /// Its columns were declared.
    pub declared: bool,
    /// What holds of each row.
    pub checks: Vec<Check>,
    /// The columns of the primary key, in their order.
    pub key: Vec<String>,
    /// The name of the primary key.
    pub key_name: String,
    /// Keys of other tables.
    pub foreign: Vec<Foreign>,
    /// Keys of its own that are looked at when rows have been written.
    pub later: Vec<Later>,
    /// Which of its rows exclude each other.
    pub exclusions: Vec<exclusion::Exclusion>,
    /// Storage parameters, as `name=value`.
    /// Of a view its options, as they are shown.
    pub storage: Vec<String>,
    /// Who may see and write which of its rows.
    pub row_security: Arc<RowSecurity>,
    /// Nobody looks at its foreign keys, and at those of rows that refer to it.
    pub keys_are_off: bool,
    /// It was declared UNLOGGED, which is kept and shown: its rows are on disk as those of others are.
    pub is_unlogged: bool,
    /// Its triggers, by name.
    pub triggers: Arc<[Trigger]>,
    /// What gives its rows, of materialized views.
    pub materialized: Option<Materialized>,
    /// What holds for rows that are written, of views.
    pub check_option: Option<CheckOption>,
    /// The query that says the shape, of duality views.
    pub duality: Option<Arc<Query>>,
    /// Rows that it has beside those of its kind, in memory: those that catalogs have in all databases.
    pub fixed: &'static [Tuple],
    /// Whose elements are the rows, of tables that a plan made of an array in others.
    pub elements: Option<Elements>,
    /// How it divides its rows.
    pub division: Option<Arc<partition::Division>>,
    /// Whose partition it is.
    pub partition_of: Option<Arc<partition::PartitionOf>>,
    /// What it is to the table whose partition it stands in a plan as.
    pub leaf: Option<Arc<partition::LeafOf>>,
}

/// The rows of a table are the elements of an array in the documents of a collection, beside the columns of these.
#[derive(Clone, Copy, Debug)]
pub struct Elements {
    /// The column of the documents that is the array.
    pub array: usize,
    /// The first column that is a field of its elements: [`Column::name`] says which. Those before are the documents'.
    pub first: usize,
    /// A document without elements is a row whose fields are null.
    pub keeps: bool,
}

/// The option of a view beneath whose conditions no others go, as it is shown.
pub const BARRIER: &str = "security_barrier=true";

impl Table {
    /// Whether it is a view beneath whose conditions no others go.
    pub fn is_barrier(&self) -> bool {
        self.storage.iter().any(|own| own == BARRIER)
    }

    /// A table of which nothing was declared.
    pub fn new(name: &str, columns: Vec<Column>, kind: Kind) -> Self {
        Self {
            schema: "public".to_owned(),
            name: name.to_owned(),
            columns,
            kind,
            declared: false,
            checks: Vec::new(),
            key: Vec::new(),
            key_name: format!("{name}_pkey"),
            foreign: Vec::new(),
            later: Vec::new(),
            exclusions: Vec::new(),
            storage: Vec::new(),
            row_security: Arc::default(),
            keys_are_off: false,
            is_unlogged: false,
            triggers: Arc::default(),
            materialized: None,
            check_option: None,
            duality: None,
            fixed: &[],
            elements: None,
            division: None,
            partition_of: None,
            leaf: None,
        }
    }

    /// Refuses to read a materialized view that has no rows yet.
    ///
    /// Errors: 55000.
    pub fn check_populated(&self) -> Result<()> {
        match &self.materialized {
            Some(own) if !own.is_populated => {
                let told = format!("materialized view \"{}\" has not been populated", self.name);
                let hint = "Use the REFRESH MATERIALIZED VIEW command.";
                Err(error::with(error::error("55000", told), &[(error::Field::Hint, hint)]))
            }
            _ => Ok(()),
        }
    }

    /// The column of a name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// The columns of this table that a foreign key refers to.
    pub fn referred(&self, foreign: &Foreign) -> Vec<String> {
        match foreign.referred.is_empty() {
            true => self.key.clone(),
            false => foreign.referred.clone(),
        }
    }

    /// The paths of columns.
    pub fn paths(&self, names: &[String]) -> Vec<String> {
        let path = |name: &String| {
            self.column(name)
                .map_or_else(|| name.clone(), |column| column.path.clone())
        };
        names.iter().map(path).collect()
    }
}

/// Knows tables and the session.
pub trait Catalog {
    /// The table of this name; without a schema, by the search path.
    ///
    /// Errors: those of reading the catalog.
    fn table(&self, schema: Option<&str>, name: &str) -> Result<Option<Arc<Table>>>;

    /// The policies of a table that are for who asks; `None` where none count.
    ///
    /// Errors: 42501 for users of other databases, for who sees masked values, and where `row_security` is off.
    fn policies(&self, table: &Table) -> Result<Option<Arc<[Policy]>>> {
        let _ = table;
        Ok(None)
    }

    /// What partitions make of a table; `None` of one that neither has partitions nor is one.
    ///
    /// Errors: those of keys and bounds.
    fn tree(&self, table: &Table) -> Result<Option<Arc<partition::Tree>>> {
        let _ = table;
        Ok(None)
    }

    /// The table that files of the server are.
    ///
    /// Errors: 42501 for who may not read them, 58P01 when there are none, those of looking at their first rows.
    fn files(&self, named: &files::Named) -> Result<Arc<Table>>;

    /// The type of this name that somebody has made; without a schema, by the search path.
    fn made_type(&self, schema: Option<&str>, name: &str) -> Option<Type>;

    /// The functions of this name that somebody has made.
    fn routines(&self, schema: Option<&str>, name: &str) -> Vec<Arc<routines::Routine>>;

    /// The variable of a routine that a parameter is, and whether a column of its name comes before it.
    fn variable(&self, parameter: usize) -> Option<(String, bool)> {
        let _ = parameter;
        None
    }

    /// The value of a setting, or of what asks for the session (`current_user`, `current_database`, `version`, ...).
    fn setting(&self, name: &str) -> Option<String>;

    /// All settings and their values.
    fn settings(&self) -> Vec<(String, String)>;

    /// The connections that there are, each with whether the user may stop what it does.
    fn connections(&self) -> Vec<(Arc<Slot>, bool)>;

    /// The number by which catalogs know a table that was found; 0 for none.
    fn number_of(&self, table: &Table) -> u32;

    /// The number by which catalogs know a relation of a schema, or one that the search path finds without one; 0 for none.
    fn oid_of(&self, schema: Option<&str>, name: &str) -> u32;

    /// What a function such as `pg_get_indexdef` tells of every object, by number; `None` for functions that ask for nothing of the
    /// catalog.
    ///
    /// Errors: those of reading the catalog.
    fn texts(&self, function: &str) -> Result<Option<Vec<(i64, String)>>>;

    /// The bytes that objects take, as [`system::sizes`] has them.
    ///
    /// Errors: those of reading the catalog.
    fn sizes(&self, function: &str, of: Option<&str>) -> Result<Vec<(String, i64)>>;

    /// What is said of objects, each by its number, the name of its catalog (or nothing) and the number of the column, with slashes between them.
    ///
    /// Errors: those of reading the catalog.
    fn descriptions(&self) -> Result<Vec<(String, String)>>;

    /// The sequences of columns, as [`system::serial_sequences`] has them.
    ///
    /// Errors: those of reading the catalog.
    fn serial_sequences(&self) -> Result<Document>;

    /// The relation with a number.
    fn name_of(&self, oid: u32) -> Option<String>;
}
