//! Text fields and their terms in all segments of a state.

use super::automaton::Automaton;
use super::distance::Distance;
use super::node::Weight;
use crate::operand::{refuse, refused};
use crate::text::analysis::{Analyzer, Token};
use crate::text::ask::{AskedPath, Fuzzy};
use crate::text::definition::{Definition, ROOT, ScopeId};
use crate::text::mapping::{Holds, StringType, Types};
use crate::text::state::Part;
use crate::text::store::{FieldKey, Kind, TextField};
use crate::text::synonyms::Synonyms;
use nestor_model::Result;
use nestor_model::statement::{charge, work};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

/// Terms that a pattern may become.
const EXPANSIONS_MAX: usize = 1_000_000;

/// A state of an index.
#[derive(Clone, Copy)]
pub(in crate::text) struct Context<'a> {
    pub(in crate::text) definition: &'a Definition,
    pub(in crate::text) parts: &'a [Part],
    /// The synonyms that are asked by, by name.
    pub(in crate::text) synonyms: &'a HashMap<String, Synonyms>,
}

/// A text field that is asked for.
pub(in crate::text) struct TextPath<'a> {
    pub(in crate::text) key: FieldKey,
    pub(in crate::text) string: &'a StringType,
}

/// The terms of a word: one, or several in its place.
pub(super) type Word = (u32, Vec<String>);

impl<'a> Context<'a> {
    /// How the field at a path is indexed within a scope.
    ///
    /// Errors: 8 for a path that is outside of the scope.
    pub(in crate::text) fn types(self, scope: ScopeId, path: &str) -> Result<Option<&'a Types>> {
        let own = &self.definition.scope(scope).path;
        let is_inside = path
            .strip_prefix(own.as_str())
            .is_some_and(|rest| rest.starts_with('.'));
        if scope != ROOT && !is_inside {
            refuse!("the path {path:?} is not within {own:?}, in which it is looked for");
        }
        Ok(self.definition.types(scope, path))
    }

    /// The text fields that paths stand for.
    ///
    /// Errors: 8 for a `multi` that is not there.
    pub(in crate::text) fn text_paths(self, scope: ScopeId, paths: &[AskedPath]) -> Result<Vec<TextPath<'a>>> {
        let mut out = Vec::new();
        for path in paths {
            match path {
                AskedPath::Field(path) => {
                    if let Some(string) = self.types(scope, path)?.and_then(|types| types.string.as_ref()) {
                        let key = FieldKey::new(scope, Kind::Text, path);
                        out.push(TextPath { key, string });
                    }
                }
                AskedPath::Multi { path, multi } => {
                    let string = self.types(scope, path)?.and_then(|types| types.string.as_ref());
                    let other = string.and_then(|string| string.multi.iter().find(|(name, _)| name == multi));
                    let Some((_, string)) = other else {
                        refuse!("the field {path:?} has no multi {multi:?}");
                    };
                    let key = FieldKey::new(scope, Kind::Multi(multi.as_str().into()), path);
                    out.push(TextPath { key, string });
                }
                AskedPath::Wildcard(pattern) => self.add_matching(scope, pattern, &mut out)?,
            }
        }
        Ok(out)
    }

    fn add_matching(self, scope: ScopeId, pattern: &str, out: &mut Vec<TextPath<'a>>) -> Result<()> {
        let mut keys = BTreeSet::new();
        for part in self.parts {
            for key in part.segment.text_keys(scope) {
                work(1)?;
                if AskedPath::matches(pattern, &key.path) {
                    keys.insert(key);
                }
            }
        }
        for key in keys {
            let types = self.definition.types(scope, &key.path);
            if let Some(string) = types.and_then(|types| types.string.as_ref()) {
                let key = key.clone();
                out.push(TextPath { key, string });
            }
        }
        Ok(())
    }

    fn fields(self, key: &FieldKey) -> impl Iterator<Item = &'a TextField> {
        self.parts.iter().filter_map(|part| part.segment.text(key))
    }

    /// How many rows have a term.
    pub(super) fn frequency(self, key: &FieldKey, term: &str) -> u64 {
        let own = self
            .fields(key)
            .filter_map(|field| Some(field.frequency(field.find(term)?)));
        own.map(|count| count as u64).sum()
    }

    /// What rows are weighed by that have one of several terms in the place of one, or all of several.
    pub(super) fn weight(self, key: &FieldKey, frequencies: &[u64], has_lengths: bool) -> Weight {
        let (mut rows, mut length) = (0, 0);
        for field in self.fields(key) {
            rows += field.lengths().len() as u64;
            length += field.total_length();
        }
        let idf = |frequency: u64| {
            let (rows, frequency) = (rows as f64, frequency as f64);
            (1.0 + (rows - frequency + 0.5) / (frequency + 0.5)).ln() as f32
        };
        Weight {
            key: key.clone(),
            boost: 1.0,
            idf: frequencies.iter().map(|frequency| idf(*frequency)).sum(),
            rows,
            average: if rows == 0 {
                1.0
            } else {
                (length as f64 / rows as f64) as f32
            },
            frequency: frequencies.iter().copied().max().unwrap_or(0),
            has_lengths,
        }
    }

    /// The terms that an automaton matches.
    pub(super) fn matching(self, key: &FieldKey, automaton: &mut Automaton) -> Result<Vec<String>> {
        let mut terms = BTreeSet::new();
        let prefix = automaton.prefix().to_owned();
        for field in self.fields(key) {
            for term in with_prefix(field, &prefix) {
                work(1)?;
                if !terms.contains(&**term) && automaton.matches(term)? {
                    add(&mut terms, term)?;
                }
            }
        }
        Ok(terms.into_iter().map(str::to_owned).collect())
    }

    /// The terms between two.
    pub(super) fn between(self, key: &FieldKey, low: Bound<&str>, high: Bound<&str>) -> Result<Vec<String>> {
        let mut terms = BTreeSet::new();
        for field in self.fields(key) {
            let all = field.terms();
            let start = match low {
                Bound::Unbounded => 0,
                Bound::Included(low) => all.partition_point(|term| **term < *low),
                Bound::Excluded(low) => all.partition_point(|term| **term <= *low),
            };
            let is_inside = |term: &str| match high {
                Bound::Unbounded => true,
                Bound::Included(high) => term <= high,
                Bound::Excluded(high) => term < high,
            };
            for term in all[start..].iter().take_while(|term| is_inside(term)) {
                work(1)?;
                add(&mut terms, term)?;
            }
        }
        Ok(terms.into_iter().map(str::to_owned).collect())
    }

    /// The terms that are nearest to one, with how many edits they are away.
    pub(super) fn near(self, key: &FieldKey, term: &str, fuzzy: Fuzzy) -> Result<Vec<(String, usize)>> {
        let mut distance = Distance::new(term, fuzzy.edits);
        let prefix = term
            .char_indices()
            .nth(fuzzy.prefix)
            .map_or(term, |(at, _)| &term[..at]);
        let mut near: BTreeMap<&str, usize> = BTreeMap::new();
        let row = 1 + distance.len() / 16;
        for field in self.fields(key) {
            for other in with_prefix(field, prefix) {
                work(row)?;
                if let Some(edits) = distance.to(other) {
                    near.insert(other, edits);
                }
            }
        }
        let mut near: Vec<(String, usize)> = near.into_iter().map(|(term, edits)| (term.to_owned(), edits)).collect();
        near.sort_by_key(|(_, edits)| *edits);
        near.truncate(fuzzy.expansions);
        Ok(near)
    }
}

fn add<'a>(terms: &mut BTreeSet<&'a str>, term: &'a str) -> Result<()> {
    match terms.len() >= EXPANSIONS_MAX {
        true => Err(refused(format!("a pattern matches more than {EXPANSIONS_MAX} terms"))),
        false => {
            charge(64 + term.len())?;
            terms.insert(term);
            Ok(())
        }
    }
}

fn with_prefix<'a>(field: &'a TextField, prefix: &str) -> impl Iterator<Item = &'a Box<str>> {
    let all = field.terms();
    let start = all.partition_point(|term| **term < *prefix);
    all[start..].iter().take_while(move |term| term.starts_with(prefix))
}

/// The words of a text that is asked for, by position.
pub(super) fn words(analyzer: &Analyzer, text: &str) -> Result<Vec<Word>> {
    Ok(grouped(analyzer.tokens(text)?))
}

/// Tokens by position.
pub(super) fn grouped(tokens: Vec<Token>) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    for token in tokens {
        match words.last_mut() {
            Some((position, terms)) if *position == token.position => {
                if !terms.contains(&token.text) {
                    terms.push(token.text);
                }
            }
            _ => words.push((token.position, vec![token.text])),
        }
    }
    words
}

/// Refuses to look for places in a field that does not keep them.
pub(super) fn needs_positions(path: &TextPath<'_>) -> Result<()> {
    match path.string.holds == Holds::Positions {
        true => Ok(()),
        false => refuse!("the field {:?} is indexed without positions", &*path.key.path),
    }
}
