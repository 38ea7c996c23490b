//! What nodes find in a segment.

use super::bm25::Lengths;
use super::node::{Boolean, Details, Match, Node, Phrase, SpanNode, Term, Weight};
use super::{phrase, scoring, spans};
use crate::text::ask::{GeoAsk, Origin, Relation};
use crate::text::definition::ScopeId;
use crate::text::state::Part;
use crate::text::store::{Atom, FieldKey, GeoField, RowId, TextField};
use nestor_model::statement::{charge, work};
use nestor_model::{Document, Result, ValueRef};
use nestor_query::geo::{GeoOp, GeoTest};
use std::ops::Bound;

/// A segment that is looked through.
pub(in crate::text) struct Evaluation<'a> {
    pub(in crate::text) part: &'a Part,
    /// Scores are to be explained.
    pub(in crate::text) details: bool,
}

impl Evaluation<'_> {
    /// The rows that a node finds, ascending.
    ///
    /// Errors: those of the statement's interrupt and memory.
    pub(in crate::text) fn matches(&self, node: &Node<'_>) -> Result<Vec<Match>> {
        let found = self.found(node)?;
        work(1 + found.len() / 16)?;
        charge(found.len() * size_of::<Match>())?;
        debug_assert!(
            found.is_sorted_by(|a, b| a.row < b.row),
            "nodes find rows in their order"
        );
        Ok(found)
    }

    fn found(&self, node: &Node<'_>) -> Result<Vec<Match>> {
        match node {
            Node::Nothing => Ok(Vec::new()),
            Node::All(scope) => Ok(self.constant(self.part.segment.rows(*scope))),
            Node::Term(term) => Ok(self.term(term)),
            Node::Terms { key, terms } => self.terms(key, terms),
            Node::Phrase(phrase) => self.phrase(phrase),
            Node::Sum(nodes) => self.sum(nodes),
            Node::Boolean(boolean) => self.boolean(boolean),
            Node::Values { key, bounds } => self.values(key, bounds),
            Node::Near { key, origin, pivot } => self.near(key, origin, *pivot),
            Node::Present(key) => Ok(self.constant(self.part.segment.present(key).iter().copied())),
            Node::Geo { key, ask } => self.geo(key, ask),
            Node::Embedded {
                inner,
                levels,
                aggregate,
            } => {
                let found = self.matches(inner)?;
                Ok(self.joined(found, *levels, *aggregate))
            }
            Node::Within { inner, scope, levels } => self.within(inner, *scope, *levels),
            Node::Span(span) => self.span(span),
            Node::Scored { inner, by } => {
                let mut found = self.matches(inner)?;
                by.apply(&self.part.segment, &mut found)?;
                Ok(found)
            }
        }
    }

    fn is_alive(&self, row: RowId) -> bool {
        self.part.dead.len() == 0 || !self.part.dead.has(self.part.segment.record(row))
    }

    fn one(&self, row: RowId, score: f32, details: impl FnOnce() -> Details) -> Match {
        Match {
            row,
            score,
            details: self.details.then(|| Box::new(details())),
        }
    }

    /// Rows that have the score 1.
    fn constant(&self, rows: impl Iterator<Item = RowId>) -> Vec<Match> {
        let alive = rows.filter(|row| self.is_alive(*row));
        alive
            .map(|row| self.one(row, 1.0, || Details::new(1.0, "ConstantScore", Vec::new())))
            .collect()
    }

    fn weighed(
        &self,
        row: RowId,
        frequency: f32,
        length: u32,
        weight: &Weight,
        name: impl FnOnce() -> String,
    ) -> Match {
        let score = weight.score(frequency, length);
        self.one(row, score, || weight.details(&name(), frequency, length))
    }

    fn term(&self, term: &Term) -> Vec<Match> {
        let Some(field) = self.part.segment.text(&term.weight.key) else {
            return Vec::new();
        };
        let Some(number) = field.find(&term.text) else {
            return Vec::new();
        };
        let mut lengths = Lengths::of(field, &term.weight);
        let alive = field.postings(number).filter(|posting| self.is_alive(posting.row));
        alive
            .map(|posting| {
                let length = lengths.of_row(posting.row);
                let frequency = posting.positions.len() as f32;
                self.weighed(posting.row, frequency, length, &term.weight, || term.text.clone())
            })
            .collect()
    }

    fn terms(&self, key: &FieldKey, terms: &[String]) -> Result<Vec<Match>> {
        let Some(field) = self.part.segment.text(key) else {
            return Ok(Vec::new());
        };
        let mut rows = Vec::new();
        for term in terms {
            if let Some(number) = field.find(term) {
                let own = field.rows_of(number);
                work(1 + own.len() / 16)?;
                rows.extend_from_slice(own);
            }
        }
        rows.sort_unstable();
        rows.dedup();
        Ok(self.constant(rows.into_iter()))
    }

    fn phrase(&self, asked: &Phrase) -> Result<Vec<Match>> {
        let Some(field) = self.part.segment.text(&asked.weight.key) else {
            return Ok(Vec::new());
        };
        let mut words: Vec<(u32, Vec<usize>)> = Vec::new();
        for (offset, terms) in &asked.words {
            let own: Vec<usize> = terms.iter().filter_map(|term| field.find(term)).collect();
            if own.is_empty() {
                return Ok(Vec::new());
            }
            words.push((*offset, own));
        }
        let mut lengths = Lengths::of(field, &asked.weight);
        let mut found = Vec::new();
        for row in common_rows(field, &words)? {
            if !self.is_alive(row) {
                continue;
            }
            let places: Vec<(u32, Vec<u32>)> = words
                .iter()
                .map(|(offset, terms)| (*offset, positions(field, terms, row)))
                .collect();
            work(1 + places.iter().map(|(_, own)| own.len()).sum::<usize>() / 4)?;
            let frequency = phrase::frequency(&places, asked.slop);
            if frequency > 0.0 {
                let length = lengths.of_row(row);
                let name = || {
                    let words: Vec<&str> = asked.words.iter().map(|(_, terms)| terms[0].as_str()).collect();
                    format!("\"{}\"", words.join(" "))
                };
                found.push(self.weighed(row, frequency, length, &asked.weight, name));
            }
        }
        Ok(found)
    }

    fn span(&self, asked: &SpanNode) -> Result<Vec<Match>> {
        let Some(field) = self.part.segment.text(&asked.weight.key) else {
            return Ok(Vec::new());
        };
        let mut terms = Vec::new();
        asked.tree.for_each_term(&mut |term| terms.extend(field.find(term)));
        let mut rows: Vec<RowId> = terms.iter().flat_map(|term| field.rows_of(*term)).copied().collect();
        work(1 + rows.len() / 4)?;
        rows.sort_unstable();
        rows.dedup();
        let mut lengths = Lengths::of(field, &asked.weight);
        let mut found = Vec::new();
        for row in rows.into_iter().filter(|row| self.is_alive(*row)) {
            let mut positions = |term: &str| field.find(term).map_or(&[][..], |term| field.positions(term, row));
            let places = spans::places(&asked.tree, &mut positions)?;
            if !places.is_empty() {
                let frequency = places.iter().map(|place| 1.0 / (1.0 + place.gap as f32)).sum();
                let length = lengths.of_row(row);
                found.push(self.weighed(row, frequency, length, &asked.weight, || "span".to_owned()));
            }
        }
        Ok(found)
    }

    fn sum(&self, nodes: &[Node<'_>]) -> Result<Vec<Match>> {
        let mut lists = Vec::with_capacity(nodes.len());
        for node in nodes {
            lists.push(self.matches(node)?);
        }
        Ok(self.added(lists, 1))
    }

    /// The rows that are in so many of the lists at least, by the sum of their scores.
    fn added(&self, mut lists: Vec<Vec<Match>>, least: usize) -> Vec<Match> {
        if lists.len() == 1 {
            return lists.remove(0);
        }
        let mut all: Vec<Match> = lists.into_iter().flatten().collect();
        // Rows that are the same stay in the order of their lists.
        all.sort_by_key(|found| found.row);
        let mut out = Vec::new();
        let mut own: Vec<Match> = Vec::new();
        for found in all {
            if own.last().is_some_and(|last| last.row != found.row) {
                self.push_sum(&mut own, least, &mut out);
            }
            own.push(found);
        }
        self.push_sum(&mut own, least, &mut out);
        out
    }

    fn push_sum(&self, own: &mut Vec<Match>, least: usize, out: &mut Vec<Match>) {
        if own.len() >= least.max(1) {
            let row = own[0].row;
            out.push(self.total(row, own.drain(..)));
        }
        own.clear();
    }

    /// A row by the sum of its scores.
    fn total(&self, row: RowId, own: impl Iterator<Item = Match>) -> Match {
        let (mut score, mut details) = (0.0, Vec::new());
        for found in own {
            score += f64::from(found.score);
            details.extend(found.details.map(|details| *details));
        }
        let score = score as f32;
        self.one(row, score, || Details::new(score, "sum of:", details))
    }

    fn boolean(&self, asked: &Boolean<'_>) -> Result<Vec<Match>> {
        let lists =
            |nodes: &[Node<'_>]| -> Result<Vec<Vec<Match>>> { nodes.iter().map(|node| self.matches(node)).collect() };
        let (must, filter) = (lists(&asked.must)?, lists(&asked.filter)?);
        let is_bound = !(must.is_empty() && filter.is_empty());
        let should = self.added(lists(&asked.should)?, asked.least);
        let mut found = match is_bound {
            false if asked.least > 0 => should,
            false => {
                let mut all = self.constant(self.part.segment.rows(asked.scope));
                all.iter_mut().for_each(|found| found.score = 0.0);
                all
            }
            true => {
                let mut found = self.in_all(must, &filter)?;
                if !should.is_empty() || asked.least > 0 {
                    found = self.with_optional(found, should, asked.least > 0);
                }
                found
            }
        };
        for node in &asked.must_not {
            let without = self.matches(node)?;
            let mut at = 0;
            found.retain(|found| {
                while without.get(at).is_some_and(|other| other.row < found.row) {
                    at += 1;
                }
                without.get(at).is_none_or(|other| other.row != found.row)
            });
        }
        Ok(found)
    }

    /// The rows that are in all lists; those of filters count nothing.
    fn in_all(&self, must: Vec<Vec<Match>>, filter: &[Vec<Match>]) -> Result<Vec<Match>> {
        let all = must.iter().chain(filter);
        let Some(shortest) = all.min_by_key(|list| list.len()) else {
            return Ok(Vec::new());
        };
        let mut rows: Vec<RowId> = shortest.iter().map(|found| found.row).collect();
        for list in must.iter().chain(filter) {
            let mut rest = list.as_slice();
            rows.retain(|row| {
                rest = &rest[distance_to(rest, *row)..];
                rest.first().is_some_and(|found| found.row == *row)
            });
            work(1 + rows.len() / 4)?;
        }
        let mut lists: Vec<std::iter::Peekable<std::vec::IntoIter<Match>>> =
            must.into_iter().map(|list| list.into_iter().peekable()).collect();
        let single = lists.len() == 1;
        let mut out = Vec::with_capacity(rows.len());
        for row in rows {
            let own = lists.iter_mut().filter_map(|list| {
                while list.next_if(|found| found.row < row).is_some() {}
                list.next_if(|found| found.row == row)
            });
            let own: Vec<Match> = own.collect();
            match own.into_iter() {
                mut own if single => out.extend(own.next()),
                own => out.push(self.total(row, own)),
            }
        }
        Ok(out)
    }

    /// Rows with what more they have; only those that have it, if so.
    fn with_optional(&self, found: Vec<Match>, should: Vec<Match>, needs: bool) -> Vec<Match> {
        let mut should = should.into_iter().peekable();
        let mut out = Vec::with_capacity(found.len());
        for own in found {
            while should.next_if(|other| other.row < own.row).is_some() {}
            match should.next_if(|other| other.row == own.row) {
                Some(more) => out.push(self.total(own.row, [own, more].into_iter())),
                None if needs => {}
                None => out.push(own),
            }
        }
        out
    }

    fn values(&self, key: &FieldKey, bounds: &[(Bound<Atom>, Bound<Atom>)]) -> Result<Vec<Match>> {
        let Some(column) = self.part.segment.column(key) else {
            return Ok(Vec::new());
        };
        let mut rows: Vec<RowId> = Vec::new();
        for (low, high) in bounds {
            let numbers = column.range(low.as_ref(), high.as_ref());
            let own = column.rows_of(numbers);
            work(1 + own.len() / 8)?;
            rows.extend_from_slice(own);
        }
        rows.sort_unstable();
        rows.dedup();
        Ok(self.constant(rows.into_iter()))
    }

    fn near(&self, key: &FieldKey, origin: &Origin, pivot: f64) -> Result<Vec<Match>> {
        let segment = &self.part.segment;
        let mut distances: Vec<(RowId, f64)> = Vec::new();
        match origin {
            Origin::Point(near) => {
                for (row, value) in segment.geo(key).map_or(&[][..], GeoField::values) {
                    if let Some(distance) = near.distance(value.as_ref())? {
                        distances.push((*row, distance));
                    }
                }
            }
            Origin::Number(_) | Origin::Date(_) => {
                let Some(column) = segment.column(key) else {
                    return Ok(Vec::new());
                };
                for (number, value) in column.values().iter().enumerate() {
                    let distance = match (origin, value) {
                        (Origin::Number(origin), Atom::Number(value)) => (origin - value).abs(),
                        (Origin::Date(origin), Atom::Date(value)) => (*origin as f64 - *value as f64).abs(),
                        _ => continue,
                    };
                    let own = column.rows_of(number..number + 1);
                    work(1 + own.len() / 8)?;
                    distances.extend(own.iter().map(|row| (*row, distance)));
                }
            }
        }
        distances.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        distances.dedup_by_key(|(row, _)| *row);
        let alive = distances.into_iter().filter(|(row, _)| self.is_alive(*row));
        let found = alive.map(|(row, distance)| {
            let score = (pivot / (pivot + distance)) as f32;
            // What is no number is as far away as can be.
            let score = if score.is_nan() { 0.0 } else { score };
            self.one(row, score, || {
                let part = |value: f64, name: &str| Details::new(value, name, Vec::new());
                let parts = vec![part(pivot, "pivot"), part(distance, "distance")];
                Details::new(
                    score,
                    "Distance score, computed as pivot / (pivot + abs(value - origin)) from:",
                    parts,
                )
            })
        });
        Ok(found.collect())
    }

    fn geo(&self, key: &FieldKey, ask: &GeoAsk) -> Result<Vec<Match>> {
        let Some(field) = self.part.segment.geo(key) else {
            return Ok(Vec::new());
        };
        let mut rows = Vec::new();
        match ask.relation {
            Relation::Within | Relation::Intersects => {
                for test in &ask.tests {
                    let candidates = match test.sphere_ranges()? {
                        Some(ranges) => field.within(ranges),
                        None => field.values().iter().collect(),
                    };
                    for (row, value) in candidates {
                        let value = value.as_ref();
                        if (!ask.is_of_points || is_point(value)) && test.matches(value)? {
                            rows.push(*row);
                        }
                    }
                }
            }
            Relation::Disjoint => {
                for (row, value) in field.values() {
                    if !any_holds(&ask.tests, value.as_ref())? {
                        rows.push(*row);
                    }
                }
            }
            Relation::Contains => {
                // What contains another has a point in common with it.
                for test in &ask.tests {
                    let candidates = match test.sphere_ranges()? {
                        Some(ranges) => field.within(ranges),
                        None => field.values().iter().collect(),
                    };
                    for (row, value) in candidates {
                        if contains(value.as_ref(), ask.geometry.as_ref())? {
                            rows.push(*row);
                        }
                    }
                }
            }
        }
        rows.sort_unstable();
        rows.dedup();
        Ok(self.constant(rows.into_iter()))
    }

    /// The row that one is embedded in, so many levels up.
    fn outer(&self, row: RowId, levels: usize) -> RowId {
        (0..levels).fold(row, |row, _| self.part.segment.parent(row))
    }

    fn joined(&self, found: Vec<Match>, levels: usize, aggregate: crate::text::ask::Aggregate) -> Vec<Match> {
        let mut out: Vec<Match> = Vec::new();
        let groups = found.chunk_by(|a, b| self.outer(a.row, levels) == self.outer(b.row, levels));
        for group in groups {
            let scores: Vec<f32> = group.iter().map(|found| found.score).collect();
            let score = scoring::aggregated(aggregate, &scores);
            let row = self.outer(group[0].row, levels);
            out.push(self.one(row, score, || {
                let details = group.iter().filter_map(|found| found.details.as_deref().cloned());
                Details::new(score, "scores of embedded documents, combined from:", details.collect())
            }));
        }
        out
    }

    fn within(&self, inner: &Node<'_>, scope: ScopeId, levels: usize) -> Result<Vec<Match>> {
        let segment = &self.part.segment;
        let mut out = Vec::new();
        for found in self.matches(inner)? {
            if levels == 0 {
                out.push(found);
                continue;
            }
            // What is embedded in a row follows it.
            let record = segment.record(found.row);
            let rows = segment.rows_of_record_from(found.row + 1, record);
            for row in rows {
                work(1)?;
                if segment.scope(row) == scope && self.outer(row, levels) == found.row {
                    out.push(Match { row, ..found.clone() });
                }
            }
        }
        out.sort_by_key(|found| found.row);
        Ok(out)
    }
}

/// How many matches at the beginning are before a row.
fn distance_to(list: &[Match], row: RowId) -> usize {
    let mut step = 1;
    while list.get(step).is_some_and(|found| found.row < row) {
        step *= 2;
    }
    list[..list.len().min(step + 1)].partition_point(|found| found.row < row)
}

/// The rows that have a term of each word, ascending.
fn common_rows(field: &TextField, words: &[(u32, Vec<usize>)]) -> Result<Vec<RowId>> {
    let mut lists: Vec<Vec<RowId>> = Vec::new();
    for (_, terms) in words {
        let mut rows: Vec<RowId> = terms.iter().flat_map(|term| field.rows_of(*term)).copied().collect();
        work(1 + rows.len() / 16)?;
        if terms.len() > 1 {
            rows.sort_unstable();
            rows.dedup();
        }
        lists.push(rows);
    }
    lists.sort_by_key(Vec::len);
    let mut lists = lists.into_iter();
    let mut rows = lists.next().unwrap_or_default();
    for other in lists {
        work(1 + rows.len() / 4)?;
        rows.retain(|row| other.binary_search(row).is_ok());
    }
    Ok(rows)
}

/// Where one of several terms is in a row.
fn positions(field: &TextField, terms: &[usize], row: RowId) -> Vec<u32> {
    let mut all: Vec<u32> = terms
        .iter()
        .flat_map(|term| field.positions(*term, row))
        .copied()
        .collect();
    if terms.len() > 1 {
        all.sort_unstable();
        all.dedup();
    }
    all
}

fn is_point(value: ValueRef<'_>) -> bool {
    let kind = value.as_document().and_then(|doc| doc.get("type"));
    matches!(kind, Some(ValueRef::String("Point")))
}

fn any_holds(tests: &[GeoTest], value: ValueRef<'_>) -> Result<bool> {
    for test in tests {
        if test.matches(value)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a geometry that is an area has all of another in it.
fn contains(value: ValueRef<'_>, geometry: Option<&Document>) -> Result<bool> {
    let Some(geometry) = geometry else {
        return Ok(false);
    };
    let mut operand = Document::new();
    operand.push("$geometry", value.to_value());
    match GeoTest::parse(GeoOp::Within, ValueRef::Document((&operand).into())) {
        Ok(test) => test.matches(ValueRef::Document(geometry.into())),
        // Points and lines contain nothing.
        Err(error) if error.code() == nestor_model::ErrorCode::BadValue => Ok(false),
        Err(error) => Err(error),
    }
}
