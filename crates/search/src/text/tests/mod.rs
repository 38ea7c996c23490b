//! What queries find, as tables: a query, and the `_id`s that it gives in their order.

mod analysis;
mod fields;
mod operators;
mod options;
mod refused;
mod states;
mod synonyms;

use super::{Definition, Index, Search};
use crate::found::Found;
use nestor_model::extjson::{Form, parse_document, to_string};
use nestor_model::{Document, RawDoc, Result};

/// A document written with single quotes.
pub(super) fn doc(text: &str) -> Document {
    parse_document(&text.replace('\'', "\"")).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

/// An index with documents, under keys that are their places as bytes.
pub(super) struct Fixture {
    pub(super) definition: Definition,
    pub(super) index: Index,
    docs: Vec<Document>,
    pub(super) synonyms: Vec<&'static str>,
}

impl Fixture {
    pub(super) fn new(definition: &str, docs: &[&str]) -> Self {
        let definition = Definition::parse((&doc(definition)).into()).expect("a good definition");
        let docs: Vec<Document> = docs.iter().map(|text| doc(text)).collect();
        let mut change = Index::default().change();
        for (key, doc) in docs.iter().enumerate() {
            let raw = doc.to_raw();
            change
                .record(&definition, &[key as u8], Some(raw.as_raw()))
                .expect("no interrupt");
        }
        let index = change.finish().expect("no interrupt");
        Self {
            definition,
            index,
            docs,
            synonyms: Vec::new(),
        }
    }

    /// What a query finds; all collections of synonyms have the documents of the fixture.
    pub(super) fn ask(&self, search: &Search) -> Result<Found> {
        let mut synonyms = |_: &str, each: &mut dyn FnMut(RawDoc<'_>) -> Result<()>| {
            let documents = self.synonyms.iter().map(|text| doc(text).to_raw());
            documents.into_iter().try_for_each(|document| each(document.as_raw()))
        };
        self.index.search(&self.definition, search, &mut synonyms)
    }

    pub(super) fn search(&self, query: &str) -> Result<Found> {
        let query = doc(query);
        self.ask(&Search::parse((&query).into())?)
    }

    /// The `_id`s that are found, or the error.
    pub(super) fn ids(&self, query: &str) -> String {
        match self.search(query) {
            Ok(found) => {
                let ids = found.hits.all().into_iter().map(|hit| {
                    let id = self.docs[usize::from(hit.key[0])].get("_id").expect("an _id");
                    to_string(id, Form::Relaxed)
                });
                ids.collect::<Vec<_>>().join(" ")
            }
            Err(error) => format!("{}: {}", error.code(), error.message()),
        }
    }

    /// Ids with their scores.
    pub(super) fn scores(&self, query: &str) -> String {
        let found = self.search(query).unwrap_or_else(|error| panic!("{query}: {error}"));
        let scored = found.hits.all().into_iter().map(|hit| {
            let id = self.docs[usize::from(hit.key[0])].get("_id").expect("an _id");
            format!("{}={:.4}", to_string(id, Form::Relaxed), hit.score)
        });
        scored.collect::<Vec<_>>().join(" ")
    }

    /// What `$searchMeta` gives.
    pub(super) fn meta(&self, query: &str) -> String {
        let query = doc(query);
        let found = Search::parse_meta((&query).into()).and_then(|search| self.ask(&search));
        match found {
            Ok(found) => to_string(
                &nestor_model::Value::Document(found.meta.expect("always there")),
                Form::Relaxed,
            ),
            Err(error) => format!("{}: {}", error.code(), error.message()),
        }
    }

    /// Checks a table of queries and what they find.
    pub(super) fn check(&self, table: &[(&str, &str)]) {
        for (query, expected) in table {
            assert_eq!(self.ids(query), *expected, "{query}");
        }
    }

    /// Checks that queries are refused, with messages that say this.
    pub(super) fn check_refused(&self, table: &[(&str, &str)]) {
        for (query, expected) in table {
            let answer = self.ids(query);
            assert!(
                answer.starts_with("UnknownError") || answer.starts_with('8'),
                "{query}: {answer}"
            );
            assert!(answer.contains(expected), "{query}: {answer}");
        }
    }
}

/// Boats, in an index that is dynamic.
pub(super) fn boats() -> Fixture {
    Fixture::new(
        "{'mappings': {'dynamic': true}}",
        &[
            "{'_id': 1, 'name': 'The grey heron', 'about': 'A heron of grey steel. She sails at dawn.', 'tons': 12}",
            "{'_id': 2, 'name': 'Grey seal', 'about': 'Nothing swims like a seal', 'tons': 7.5, 'crew': {'mate': 'Heron Smith'}}",
            "{'_id': 3, 'name': 'heron heron', 'tags': ['old barge', 'grey ferry'], 'tons': 30}",
            "{'_id': 4, 'name': 'Crème brûlée', 'about': 'sweet', 'tons': null}",
            "{'_id': 5, 'name': 'herons of the north', 'built': {'$date': '2001-02-03T00:00:00Z'}, 'fast': true}",
        ],
    )
}
