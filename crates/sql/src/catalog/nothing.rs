//! A catalog that has nothing: for expressions that are the same whoever asks, of indexes and of domains.

use super::files::Named;
use super::routines::Routine;
use super::{Catalog, Table};
use crate::error::unsupported;
use crate::types::Type;
use nestor_database::connections::Slot;
use nestor_model::{Document, Result};
use std::sync::Arc;

/// It has no tables, types, functions and settings.
pub struct Nothing;

impl Catalog for Nothing {
    fn table(&self, _: Option<&str>, _: &str) -> Result<Option<Arc<Table>>> {
        Ok(None)
    }

    fn files(&self, _: &Named) -> Result<Arc<Table>> {
        unsupported("a file in an expression that is kept")
    }

    fn routines(&self, _: Option<&str>, _: &str) -> Vec<Arc<Routine>> {
        Vec::new()
    }

    fn made_type(&self, _: Option<&str>, _: &str) -> Option<Type> {
        None
    }

    fn setting(&self, _: &str) -> Option<String> {
        None
    }

    fn settings(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn connections(&self) -> Vec<(Arc<Slot>, bool)> {
        Vec::new()
    }

    fn number_of(&self, _: &Table) -> u32 {
        0
    }

    fn oid_of(&self, _: Option<&str>, _: &str) -> u32 {
        0
    }

    fn texts(&self, _: &str) -> Result<Option<Vec<(i64, String)>>> {
        Ok(None)
    }

    fn sizes(&self, _: &str, _: Option<&str>) -> Result<Vec<(String, i64)>> {
        Ok(Vec::new())
    }

    fn descriptions(&self) -> Result<Vec<(String, String)>> {
        Ok(Vec::new())
    }

    fn serial_sequences(&self) -> Result<Document> {
        Ok(Document::new())
    }

    fn name_of(&self, _: u32) -> Option<String> {
        None
    }
}
