//! A segment: the index of some records.

use super::column::Column;
use super::geo::GeoField;
use super::key::{FieldKey, Kind, RowId};
use super::terms::TextField;
use crate::text::definition::ScopeId;
use nestor_model::Document;
use std::collections::BTreeMap;

/// The index of some records. It never changes.
#[derive(Debug, Default)]
pub(in crate::text) struct Segment {
    /// The key of each record.
    pub(super) keys: Vec<Box<[u8]>>,
    /// Numbers of records in the order of their keys.
    pub(super) by_key: Vec<u32>,
    /// The row of each record.
    pub(super) roots: Vec<RowId>,
    /// The record of each row.
    pub(super) records: Vec<u32>,
    /// The row that each row is embedded in; of a record, its own.
    pub(super) parents: Vec<RowId>,
    pub(super) scopes: Vec<ScopeId>,
    pub(super) texts: BTreeMap<FieldKey, TextField>,
    pub(super) columns: BTreeMap<FieldKey, Column>,
    pub(super) geometries: BTreeMap<FieldKey, GeoField>,
    /// The rows that have something at a path.
    pub(super) present: BTreeMap<FieldKey, Vec<RowId>>,
    /// What is stored of rows, ascending.
    pub(super) sources: Vec<(RowId, Document)>,
    pub(super) bytes: usize,
}

impl Segment {
    /// The key of the record that a row is of.
    pub(in crate::text) fn key(&self, row: RowId) -> &[u8] {
        &self.keys[self.records[row as usize] as usize]
    }

    /// The number of the record that a row is of.
    pub(in crate::text) fn record(&self, row: RowId) -> u32 {
        self.records[row as usize]
    }

    /// The row that a row is embedded in.
    pub(in crate::text) fn parent(&self, row: RowId) -> RowId {
        self.parents[row as usize]
    }

    /// The scope of a row.
    pub(in crate::text) fn scope(&self, row: RowId) -> ScopeId {
        self.scopes[row as usize]
    }

    /// The row of the record that a row is of.
    pub(in crate::text) fn root(&self, row: RowId) -> RowId {
        self.roots[self.records[row as usize] as usize]
    }

    /// The rows of a record from one on.
    pub(in crate::text) fn rows_of_record_from(&self, row: RowId, record: u32) -> impl Iterator<Item = RowId> {
        let rows = self.records[row as usize..].iter().zip(row..);
        rows.take_while(move |(own, _)| **own == record).map(|(_, row)| row)
    }

    /// The rows of a scope.
    pub(in crate::text) fn rows(&self, scope: ScopeId) -> impl Iterator<Item = RowId> {
        let rows = self.scopes.iter().enumerate();
        rows.filter(move |(_, own)| **own == scope).map(|(row, _)| row as RowId)
    }

    pub(in crate::text) fn text(&self, key: &FieldKey) -> Option<&TextField> {
        self.texts.get(key)
    }

    /// The text fields of a scope.
    pub(in crate::text) fn text_keys(&self, scope: ScopeId) -> impl Iterator<Item = &FieldKey> {
        let low = FieldKey::new(scope, Kind::Text, "");
        let own = self.texts.range(low..).map(|(key, _)| key);
        own.take_while(move |key| key.scope == scope && key.kind == Kind::Text)
    }

    pub(in crate::text) fn column(&self, key: &FieldKey) -> Option<&Column> {
        self.columns.get(key)
    }

    pub(in crate::text) fn geo(&self, key: &FieldKey) -> Option<&GeoField> {
        self.geometries.get(key)
    }

    /// The rows that have something at a path.
    pub(in crate::text) fn present(&self, key: &FieldKey) -> &[RowId] {
        self.present.get(key).map_or(&[], Vec::as_slice)
    }

    /// What is stored of a row.
    pub(in crate::text) fn source(&self, row: RowId) -> Option<&Document> {
        let at = self.sources.binary_search_by_key(&row, |(own, _)| *own).ok()?;
        Some(&self.sources[at].1)
    }

    /// Computes what follows from the rest.
    pub(super) fn close(&mut self) {
        self.by_key = (0..self.keys.len() as u32).collect();
        let keys = &self.keys;
        self.by_key
            .sort_unstable_by(|a, b| keys[*a as usize].cmp(&keys[*b as usize]));
        let keys: usize = self.keys.iter().map(|key| key.len() + 24).sum();
        let texts: usize = self.texts.values().map(TextField::bytes).sum();
        let columns: usize = self.columns.values().map(Column::bytes).sum();
        let geometries: usize = self.geometries.values().map(GeoField::bytes).sum();
        let present: usize = self.present.values().map(|rows| rows.len() * 4 + 64).sum();
        let sources: usize = self.sources.iter().map(|(_, source)| source.weight() + 40).sum();
        self.bytes = keys + texts + columns + geometries + present + sources + self.records.len() * 14;
    }
}
