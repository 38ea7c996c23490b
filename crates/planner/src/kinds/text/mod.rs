//! `text` indexes: the terms of a document's texts, each with what it scores.
//!
//! ```text
//! {a: 1, title: "text", b: -1}   is stored as   {a: 1, _fts: "text", _ftsx: 1, b: -1} with weights {title: 1}
//!
//! {a: 5, title: "Brown foxes", b: 7}   →   (5, "brown", 0.75, 7) (5, "fox", 0.75, 7)
//! ```
//!
//! So the entries of one term lie together, in the order of their scores, and a search adds scores up without reading a
//! document. What terms are and what they score says [`nestor_query::text`]. A document without terms has no key.
//!
//! A search needs one value for each field before the texts. Fields behind them are only stored: documents decide.
//! Source: manual, "Text Indexes", "Compound Text Indexes", "Text Index Versions".

mod options;

use super::{KindDef, OptionDef, ordered};
use crate::catalog::{EmitKey, IndexKind, IndexPart, PartKind};
use nestor_model::index_spec::IndexSpec;
use nestor_model::statement::Scope;
use nestor_model::{DocRef, Error, ErrorCode, Path, Result, ValueRef, bail};
use nestor_query::keys::{KeyPaths, MultikeyPaths};
use nestor_query::text::{TextSpec, stored_term};
use nestor_query::update::Touched;
use std::borrow::Cow;
use std::sync::Arc;

/// The kind.
pub const KIND: KindDef = KindDef {
    name: "text",
    options_anywhere: false,
    options: &[
        OptionDef {
            name: "weights",
            parse: options::weights,
            shown: None,
        },
        OptionDef {
            name: "default_language",
            parse: options::default_language,
            shown: None,
        },
        OptionDef {
            name: "language_override",
            parse: options::language_override,
            shown: None,
        },
        OptionDef {
            name: "textIndexVersion",
            parse: options::version,
            shown: None,
        },
    ],
    misplaced_option: ErrorCode::CannotCreateIndex,
    is_single: true,
    is_outside_api: true,
    refused_on_series: Some("Text indexes are not supported on time-series collections"),
    check: options::check,
    open: |spec, _| Arc::new(Text::new(spec)),
};

/// The part of the stored key that holds terms.
const TERM: &str = "_fts";
/// The part that holds what they score.
const SCORE: &str = "_ftsx";

/// Most keys of one document.
const KEYS_MAX: usize = 400_000;

/// A text index.
#[derive(Debug)]
struct Text {
    spec: Arc<TextSpec>,
    /// The fields beside the texts: those before them first.
    others: KeyPaths,
    /// The position of the terms in a stored key.
    at: usize,
    /// What decides keys; `None`: the whole document.
    paths: Option<Vec<Path>>,
}

impl Text {
    fn new(spec: &IndexSpec) -> Self {
        let at = spec.key.iter().position(|part| part.path == TERM).unwrap_or(0);
        let others = spec.key.iter().filter(|part| part.path != TERM && part.path != SCORE);
        let others = KeyPaths::new(others.map(|part| Path::new(&part.path)));
        let spec = Arc::new(TextSpec::of(spec));
        let paths = spec.paths().map(|mut paths| {
            paths.extend(others.paths().iter().cloned());
            paths
        });
        Self {
            spec,
            others,
            at,
            paths,
        }
    }
}

impl IndexKind for Text {
    fn parts(&self, spec: &IndexSpec, multikey: &[u64]) -> Vec<IndexPart> {
        let mut parts = ordered::parts(spec, multikey);
        for part in parts.iter_mut().skip(self.at).take(2) {
            part.kind = PartKind::Derived;
            part.collated = false;
        }
        parts
    }

    fn for_each_key(&self, doc: DocRef<'_>, emit: &mut EmitKey<'_>) -> Result<MultikeyPaths> {
        let mut multikey = MultikeyPaths {
            components: vec![0; self.others.paths().len() + 2],
        };
        // Terms are counted in memory as long as this document is looked at: a statement may write any number of them.
        let _scope = Scope::begin();
        let terms = self.spec.terms(doc)?;
        if terms.is_empty() {
            return Ok(multikey);
        }
        if terms.len() > KEYS_MAX {
            bail!(
                CannotBuildIndexKeys,
                "a document has more than {KEYS_MAX} terms for a text index"
            );
        }
        if terms.len() > 1 {
            multikey.components[self.at] = 1;
        }
        let mut others = Vec::new();
        let arrays = self.others.for_each_key(doc, &mut |values: &[ValueRef<'_>]| {
            others = values.iter().map(|value| value.to_value()).collect();
            Ok(())
        })?;
        if let Some(part) = arrays.components.iter().position(|components| *components != 0) {
            let path = &self.others.paths()[part];
            return Err(Error::location(
                16675,
                format!("cannot have a multi-key as a prefix or suffix to a text index: '{path}'"),
            ));
        }
        let terms: Vec<(Cow<'_, str>, f64)> = terms.iter().map(|(term, score)| (stored_term(term), *score)).collect();
        let mut key: Vec<ValueRef<'_>> = others.iter().map(ValueRef::from).collect();
        key.splice(self.at..self.at, [ValueRef::Null, ValueRef::Null]);
        for (term, score) in &terms {
            key[self.at] = ValueRef::String(term);
            key[self.at + 1] = ValueRef::Double(*score);
            emit(&key)?;
        }
        Ok(multikey)
    }

    fn is_touched_by(&self, touched: &Touched) -> bool {
        let paths = self.paths.as_ref();
        paths.is_none_or(|paths| paths.iter().any(|path| touched.affects(path)))
    }

    fn needs_condition(&self) -> bool {
        true
    }

    fn covers(&self) -> bool {
        false
    }

    fn text(&self) -> Option<&Arc<TextSpec>> {
        Some(&self.spec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::{doc, statement};

    /// Whoever builds an index over millions of documents counts the memory of one of them at a time.
    #[test]
    fn a_document_that_was_looked_at_takes_no_memory() {
        let spec = doc! { "key": doc! { "a": "text" }, "name": "t" };
        let spec = options::check(IndexSpec::parse(spec.to_raw()).expect("a specification")).expect("valid");
        let document = doc! { "a": "brown foxes" };
        let before = format!("{:?}", statement::mark());
        let mut keys = 0;
        let mut during = String::new();
        Text::new(&spec)
            .for_each_key(document.as_ref(), &mut |_| {
                keys += 1;
                during = format!("{:?}", statement::mark());
                Ok(())
            })
            .expect("valid");
        assert_eq!(keys, 2);
        assert_ne!(during, before);
        assert_eq!(format!("{:?}", statement::mark()), before);
    }
}
