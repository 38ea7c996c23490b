//! Tables as the binder sees them.
//!
//! A collection is a table whose columns were declared, or those of its [`documents`] as far as they are [`known`], as views are. [`system`] has the
//! tables of `pg_catalog` and `information_schema`.

pub mod documents;
pub mod known;
pub mod system;

use crate::types::Type;
use nestor_model::{Namespace, Result};
use nestor_planner::relation::Tuple;
use std::sync::Arc;

/// A column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name in SQL.
    pub name: String,
    /// The field of documents that it is.
    pub path: String,
    /// Its type.
    pub ty: Type,
    /// The modifier of its type, -1 for none.
    pub modifier: i32,
    /// It is never null.
    pub not_null: bool,
    /// The text of its default.
    pub default: Option<String>,
    /// Who gives it its next number, if somebody does.
    pub identity: Option<Identity>,
    /// Part of the primary key.
    pub is_key: bool,
    /// Fields of the structs that it holds, with their types.
    pub fields: Vec<Column>,
}

impl Column {
    /// A column of a table in memory.
    pub fn new(name: &str, ty: Type) -> Self {
        Self {
            name: name.to_owned(),
            path: name.to_owned(),
            ty,
            modifier: -1,
            not_null: false,
            default: None,
            identity: None,
            is_key: false,
            fields: Vec::new(),
        }
    }
}

/// Who gives a column its next number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// The sequence alone.
    Always,
    /// The sequence, when a row says nothing.
    ByDefault,
}

/// A condition that no row may make false.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The name of the constraint.
    pub name: String,
    /// The condition.
    pub text: String,
}

/// Where the rows of a table are.
#[derive(Clone, Debug)]
pub enum Kind {
    /// In a collection.
    Collection(Namespace),
    /// A view gives them.
    View(Namespace),
    /// Here.
    Rows(Arc<Vec<Tuple>>),
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
}

/// Knows tables and the session.
pub trait Catalog {
    /// The table of this name; without a schema, by the search path.
    ///
    /// Errors: those of reading the catalog.
    fn table(&self, schema: Option<&str>, name: &str) -> Result<Option<Arc<Table>>>;

    /// The value of a setting, or of what asks for the session (`current_user`, `current_database`, `version`, ...).
    fn setting(&self, name: &str) -> Option<String>;

    /// All settings and their values.
    fn settings(&self) -> Vec<(String, String)>;

    /// The number by which catalogs know a relation; 0 for none.
    fn oid_of(&self, name: &str) -> u32;

    /// What a function such as `pg_get_indexdef` tells of every object, by number; `None` for functions that ask for nothing of the
    /// catalog.
    ///
    /// Errors: those of reading the catalog.
    fn texts(&self, function: &str) -> Result<Option<Vec<(i64, String)>>>;

    /// The relation with a number.
    fn name_of(&self, oid: u32) -> Option<String>;
}
