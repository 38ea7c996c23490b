//! Segments as parts of a state: how records are found in them, and several as one, without their dead records.

use super::column::Column;
use super::geo::GeoField;
use super::key::{FieldKey, RowId};
use super::segment::Segment;
use super::terms::TextField;
use crate::dead::Dead;
use crate::parts;
use nestor_model::Result;
use nestor_model::statement::work;
use std::collections::{BTreeMap, BTreeSet};

impl parts::Segment for Segment {
    fn len(&self) -> usize {
        self.keys.len()
    }

    fn find(&self, key: &[u8]) -> Option<u32> {
        // Records are mostly added behind all others.
        let last = self.by_key.last()?;
        if *self.keys[*last as usize] < *key {
            return None;
        }
        let at = self
            .by_key
            .binary_search_by(|record| (*self.keys[*record as usize]).cmp(key));
        at.ok().map(|at| self.by_key[at])
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn merged(parts: &[(&Self, &Dead)]) -> Result<Self> {
        merged(parts)
    }
}

/// The segment that has what is alive in these.
///
/// Errors: those of the statement's interrupt.
fn merged(parts: &[(&Segment, &Dead)]) -> Result<Segment> {
    let mut merged = Segment::default();
    let mut rows: Vec<Vec<Option<RowId>>> = Vec::with_capacity(parts.len());
    for (segment, dead) in parts {
        let own = add_rows(segment, dead, &mut merged)?;
        rows.push(own);
    }
    let places = |number: usize| rows[number].as_slice();
    for (key, fields) in fields_of(parts, |segment| &segment.texts) {
        let fields: Vec<_> = fields
            .into_iter()
            .map(|(number, field)| (field, places(number)))
            .collect();
        let field = TextField::merged(&fields)?;
        if !field.lengths().is_empty() {
            merged.texts.insert(key.clone(), field);
        }
    }
    for (key, fields) in fields_of(parts, |segment| &segment.columns) {
        let mut pairs = Vec::new();
        for (number, column) in fields {
            work(1 + column.len() / 4)?;
            let kept = column.pairs();
            pairs.extend(kept.filter_map(|(value, row)| Some((value.clone(), places(number)[row as usize]?))));
        }
        if !pairs.is_empty() {
            merged.columns.insert(key.clone(), Column::of(pairs));
        }
    }
    for (key, fields) in fields_of(parts, |segment| &segment.geometries) {
        let fields: Vec<_> = fields
            .into_iter()
            .map(|(number, field)| (field, places(number)))
            .collect();
        merged.geometries.insert(key.clone(), GeoField::merged(&fields));
    }
    for (key, fields) in fields_of(parts, |segment| &segment.present) {
        let mut present = Vec::new();
        for (number, own) in fields {
            work(1 + own.len() / 16)?;
            present.extend(own.iter().filter_map(|row| places(number)[*row as usize]));
        }
        if !present.is_empty() {
            merged.present.insert(key.clone(), present);
        }
    }
    for (number, (segment, _)) in parts.iter().enumerate() {
        let sources = segment.sources.iter();
        let kept = sources.filter_map(|(row, source)| Some((places(number)[*row as usize]?, source.clone())));
        merged.sources.extend(kept);
    }
    merged.close();
    Ok(merged)
}

/// Adds the rows of a segment that are alive; the new number of each.
fn add_rows(segment: &Segment, dead: &Dead, merged: &mut Segment) -> Result<Vec<Option<RowId>>> {
    work(1 + segment.records.len() / 8)?;
    let mut rows = vec![None; segment.records.len()];
    for row in 0..segment.records.len() {
        let record = segment.records[row];
        if dead.has(record) {
            continue;
        }
        let own = merged.records.len() as RowId;
        rows[row] = Some(own);
        let parent = segment.parents[row] as usize;
        if parent == row {
            merged.keys.push(segment.keys[record as usize].clone());
            merged.roots.push(own);
        }
        // Parents come before what is embedded in them.
        merged.parents.push(rows[parent].unwrap_or(own));
        merged.records.push(merged.keys.len() as u32 - 1);
        merged.scopes.push(segment.scopes[row]);
    }
    Ok(rows)
}

/// The fields of all segments by their keys, with the numbers of the segments.
fn fields_of<'a, T>(
    parts: &[(&'a Segment, &Dead)],
    fields: impl Fn(&'a Segment) -> &'a BTreeMap<FieldKey, T>,
) -> Vec<(&'a FieldKey, Vec<(usize, &'a T)>)> {
    let keys: BTreeSet<&FieldKey> = parts.iter().flat_map(|(segment, _)| fields(segment).keys()).collect();
    let all = keys.into_iter().map(|key| {
        let numbered = parts.iter().enumerate();
        let own = numbered.filter_map(|(number, (segment, _))| Some((number, fields(segment).get(key)?)));
        (key, own.collect())
    });
    all.collect()
}
