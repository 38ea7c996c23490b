//! Words that stand for others, as a collection has them.
//!
//! ```text
//! {mappingType: "equivalent", synonyms: ["car", "motor vehicle"]}          each stands for all
//! {mappingType: "explicit", input: ["beer"], synonyms: ["beer", "pint"]}   what is asked for, and what is looked for in its place
//! ```
//!
//! Source: manual, "Define Synonym Mappings".

use super::analysis::Analyzer;
use crate::operand::{Operand, refuse};
use nestor_model::statement::{charge, work};
use nestor_model::{DocRef, RawDoc, Result};
use std::collections::HashMap;
use std::sync::Arc;

/// Ways to read a phrase by synonyms that are looked for.
const READINGS_MAX: usize = 256;

/// A set of synonyms of a definition.
#[derive(Debug)]
pub(super) struct Mapping {
    pub(super) name: String,
    pub(super) collection: String,
    pub(super) analyzer: Arc<Analyzer>,
}

/// Terms one behind the other.
type Sequence = Vec<String>;

/// Synonyms that were read.
#[derive(Debug, Default)]
pub(super) struct Synonyms {
    analyzer: String,
    /// By the first term: what is asked for, and what is looked for in its place. The longest first.
    rules: HashMap<String, Vec<(Sequence, Vec<Sequence>)>>,
}

impl Synonyms {
    /// None yet, of a mapping.
    pub(super) fn of(mapping: &Mapping) -> Self {
        Self {
            analyzer: mapping.analyzer.name().to_owned(),
            rules: HashMap::new(),
        }
    }

    /// Adds those of a document.
    ///
    /// Errors: 8 for one that is not as it must be, those of the statement's interrupt and memory.
    pub(super) fn add(&mut self, mapping: &Mapping, document: RawDoc<'_>) -> Result<()> {
        let spec = Operand::new(format!("synonyms of {:?}", mapping.collection), DocRef::from(document));
        let types = [("equivalent", true), ("explicit", false)];
        spec.required("mappingType")?;
        let all_are_asked = spec.choice("mappingType", &types)?.unwrap_or(true);
        let sequences = |field: &str| -> Result<Vec<Sequence>> {
            spec.required(field).and_then(|_| spec.array(field))?;
            let texts = spec.strings(field)?.unwrap_or_default();
            texts
                .into_iter()
                .map(|text| sequence(&mapping.analyzer, text))
                .collect()
        };
        let meant = sequences("synonyms")?;
        let asked = match all_are_asked {
            true => meant.clone(),
            false => sequences("input")?,
        };
        for asked in asked {
            let Some(first) = asked.first().cloned() else {
                continue;
            };
            work(meant.len())?;
            charge(64 + meant.iter().map(|meant| 24 + 32 * meant.len()).sum::<usize>())?;
            let rules = self.rules.entry(first).or_default();
            match rules.iter_mut().find(|(own, _)| *own == asked) {
                Some((_, others)) => others.extend(meant.iter().filter(|meant| !meant.is_empty()).cloned()),
                None => {
                    let meant = meant.iter().filter(|meant| !meant.is_empty()).cloned().collect();
                    rules.push((asked, meant));
                    rules.sort_by_key(|(own, _)| std::cmp::Reverse(own.len()));
                }
            }
        }
        Ok(())
    }

    /// What is looked for in the place of terms: for each word, or for several together, the sequences that may stand there.
    pub(super) fn read(&self, terms: &[String]) -> Vec<Vec<Sequence>> {
        let mut out = Vec::new();
        let mut rest = terms;
        while let Some(first) = rest.first() {
            let rules = self.rules.get(first).map_or(&[][..], Vec::as_slice);
            let (length, mut sequences) = match rules.iter().find(|(own, _)| rest.starts_with(own)) {
                Some((own, meant)) => (own.len(), meant.clone()),
                None => (1, vec![vec![first.clone()]]),
            };
            sequences.sort_unstable();
            sequences.dedup();
            out.push(sequences);
            rest = &rest[length..];
        }
        out
    }

    /// Refuses fields of another analyzer.
    pub(super) fn check(&self, analyzer: &Analyzer, path: &str) -> Result<()> {
        match analyzer.name() == self.analyzer {
            true => Ok(()),
            false => refuse!(
                "the field {path:?} has the analyzer {:?}, its synonyms have {:?}",
                analyzer.name(),
                self.analyzer
            ),
        }
    }
}

/// All sequences that one of each place makes.
pub(super) fn readings(places: &[Vec<Sequence>]) -> Result<Vec<Sequence>> {
    let mut out: Vec<Sequence> = vec![Vec::new()];
    for place in places {
        if out.len() * place.len() > READINGS_MAX {
            refuse!("a phrase can be read in more than {READINGS_MAX} ways by its synonyms");
        }
        let longer = |before: &Sequence| -> Vec<Sequence> {
            let with = |sequence: &Sequence| before.iter().chain(sequence).cloned().collect();
            place.iter().map(with).collect()
        };
        out = out.iter().flat_map(longer).collect();
    }
    Ok(out)
}

/// The terms of a text.
pub(super) fn sequence(analyzer: &Analyzer, text: &str) -> Result<Sequence> {
    let mut terms: Vec<String> = Vec::new();
    let mut last = None;
    for token in analyzer.tokens(text)? {
        // Of several tokens in one place the first one counts.
        if last != Some(token.position) {
            last = Some(token.position);
            terms.push(token.text);
        }
    }
    Ok(terms)
}
