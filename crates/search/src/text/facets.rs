//! How many of the rows that are found have which values.

use super::ask::{Buckets, Clause, Facet, FacetKind, Operator, Search};
use super::definition::ScopeId;
use super::plan::{Compiler, Context, Evaluation};
use super::store::{Atom, Column, FieldKey, Kind, RowId};
use crate::operand::refuse;
use nestor_model::statement::work;
use nestor_model::{Array, Document, Result, Value};
use std::collections::BTreeMap;

/// The facets of a query that found these rows.
pub(super) fn facets(
    context: Context<'_>,
    search: &Search,
    scope: ScopeId,
    found: &[(usize, RowId)],
) -> Result<Document> {
    let mut out = Document::new();
    for facet in &search.facets {
        let buckets = match is_spared(&search.clause, &facet.name) {
            true => counted(context, scope, facet, &found_for(context, search, scope, &facet.name)?)?,
            false => counted(context, scope, facet, found)?,
        };
        let mut counted = Document::new();
        counted.push("buckets", Value::Array(Array::new(buckets)));
        out.push(facet.name.as_str(), counted);
    }
    Ok(out)
}

/// Whether an operator does not affect a facet.
fn is_spared(clause: &Clause, facet: &str) -> bool {
    clause.spares.iter().any(|name| name == facet)
        || match &clause.operator {
            Operator::Compound(compound) => {
                let all = [&compound.must, &compound.filter, &compound.should, &compound.must_not];
                all.into_iter().flatten().any(|clause| is_spared(clause, facet))
            }
            _ => false,
        }
}

/// The rows that count for a facet which some operators do not affect.
fn found_for(context: Context<'_>, search: &Search, scope: ScopeId, facet: &str) -> Result<Vec<(usize, RowId)>> {
    let node = Compiler::new(context, Some(facet)).clause(scope, &search.clause)?;
    let mut found = Vec::new();
    for (number, part) in context.parts.iter().enumerate() {
        let matches = Evaluation { part, details: false }.matches(&node)?;
        found.extend(matches.into_iter().map(|found| (number, found.row)));
    }
    Ok(found)
}

fn counted(context: Context<'_>, scope: ScopeId, facet: &Facet, found: &[(usize, RowId)]) -> Result<Vec<Value>> {
    let kind = kind(context, scope, facet)?;
    let key = FieldKey::new(scope, kind, &facet.path);
    let columns: Vec<Option<&Column>> = context.parts.iter().map(|part| part.segment.column(&key)).collect();
    match &facet.kind {
        FacetKind::Strings { buckets } => strings(&columns, *buckets, found),
        FacetKind::Numbers(buckets) | FacetKind::Dates(buckets) => ranges(&columns, buckets, found),
    }
}

/// In which way the field is indexed that a facet counts.
fn kind(context: Context<'_>, scope: ScopeId, facet: &Facet) -> Result<Kind> {
    let types = context.types(scope, &facet.path)?;
    let found = types.and_then(|types| match &facet.kind {
        FacetKind::Strings { .. } if types.token.is_some() => Some(Kind::Token),
        FacetKind::Strings { .. } => types.string_facet.then_some(Kind::StringFacet),
        FacetKind::Numbers(_) if types.number.is_some() => Some(Kind::Number),
        FacetKind::Numbers(_) => types.number_facet.map(|_| Kind::NumberFacet),
        FacetKind::Dates(_) if types.date => Some(Kind::Date),
        FacetKind::Dates(_) => types.date_facet.then_some(Kind::DateFacet),
    });
    let wanted = match &facet.kind {
        FacetKind::Strings { .. } => "token",
        FacetKind::Numbers(_) => "number",
        FacetKind::Dates(_) => "date",
    };
    match found {
        Some(kind) => Ok(kind),
        None => refuse!(
            "the field {:?} must be indexed as {wanted} for the facet {:?}",
            facet.path,
            facet.name
        ),
    }
}

fn bucket(id: Value, count: i64) -> Value {
    let mut bucket = Document::new();
    bucket.push("_id", id);
    bucket.push("count", Value::Int64(count));
    Value::Document(bucket)
}

fn strings(columns: &[Option<&Column>], most: usize, found: &[(usize, RowId)]) -> Result<Vec<Value>> {
    let mut counts: Vec<Vec<i64>> = columns
        .iter()
        .map(|column| vec![0; column.map_or(0, |column| column.values().len())])
        .collect();
    for (part, row) in found {
        work(1)?;
        if let Some(column) = columns[*part] {
            for number in column.numbers_at(*row) {
                counts[*part][number] += 1;
            }
        }
    }
    let mut totals: BTreeMap<&Atom, i64> = BTreeMap::new();
    for (column, counts) in columns.iter().zip(&counts) {
        let values = column.map_or(&[][..], |column| column.values());
        work(1 + values.len() / 8)?;
        for (value, count) in values.iter().zip(counts).filter(|(_, count)| **count > 0) {
            *totals.entry(value).or_default() += count;
        }
    }
    let mut totals: Vec<(&Atom, i64)> = totals.into_iter().collect();
    totals.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    totals.truncate(most);
    Ok(totals
        .into_iter()
        .map(|(value, count)| bucket(value.to_value(), count))
        .collect())
}

fn ranges(columns: &[Option<&Column>], buckets: &Buckets, found: &[(usize, RowId)]) -> Result<Vec<Value>> {
    let boundaries = &buckets.boundaries;
    let mut counts = vec![0; boundaries.len() - 1];
    let mut others = 0;
    for (part, row) in found {
        work(1)?;
        let Some(column) = columns[*part] else {
            continue;
        };
        let mut last = None;
        let mut is_outside = false;
        for value in column.values_at(*row) {
            let number = boundaries.partition_point(|boundary| boundary <= value);
            match number.checked_sub(1).filter(|number| *number < counts.len()) {
                // Values ascend: those of one bucket come together, and count once.
                Some(number) if last != Some(number) => {
                    counts[number] += 1;
                    last = Some(number);
                }
                Some(_) => {}
                None => is_outside = true,
            }
        }
        others += i64::from(is_outside);
    }
    let written = buckets.written.iter().cloned();
    let mut out: Vec<Value> = written.zip(counts).map(|(id, count)| bucket(id, count)).collect();
    if let Some(name) = &buckets.others {
        out.push(bucket(Value::String(name.as_str().into()), others));
    }
    Ok(out)
}
