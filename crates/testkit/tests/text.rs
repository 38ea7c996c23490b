//! Text indexes find what the reference finds, with its scores and the best first: random texts in several languages, random
//! weights, versions and writes, and searches with phrases, negations, case and diacritics.

#[path = "shared/database.rs"]
mod database;

use database::Database;
use nestor_model::{Document, Value, ValueRef, doc};
use nestor_testkit::random::Random;
use nestor_testkit::reference::text::{Part, Search, TONGUES, Text, Tongue, capitalized};
use std::collections::BTreeMap;

/// An index, and the documents that it is of.
struct Case {
    random: Random,
    version: i32,
    default: &'static Tongue,
    /// Whether all texts count.
    whole: bool,
    /// Whether a field stands before the texts and another one behind them.
    compound: bool,
    weights: BTreeMap<&'static str, f64>,
    /// The texts of documents by `_id`, with what stands in `shelf`.
    documents: BTreeMap<i32, (i32, Vec<Text>)>,
}

impl Case {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut weights = BTreeMap::new();
        for path in ["title", "body", "inner.note"] {
            if random.below(2) == 0 {
                weights.insert(path, *random.pick(&[1.0, 2.0, 10.0, 0.5]));
            }
        }
        Self {
            version: *random.pick(&[3, 3, 3, 2, 1]),
            default: random.pick(&TONGUES),
            whole: random.one_in(3),
            compound: random.one_in(3),
            weights,
            documents: BTreeMap::new(),
            random,
        }
    }

    fn index(&self) -> Document {
        let mut key = Document::new();
        if self.compound {
            key.push("shelf", 1);
        }
        match self.whole {
            true => key.push("$**", "text"),
            false => ["title", "body", "inner.note"]
                .iter()
                .for_each(|path| key.push(*path, "text")),
        }
        if self.compound {
            key.push("n", -1);
        }
        let weights: Document = self
            .weights
            .iter()
            .map(|(path, weight)| ((*path).into(), Value::from(*weight)))
            .collect();
        doc! {
            "key": key, "name": "t", "weights": weights, "default_language": self.default.name,
            "textIndexVersion": self.version,
        }
    }

    /// A word, its first letters or all of them sometimes capitals. Versions before the third know no other capitals than
    /// those of ASCII, so texts for them have no others.
    fn word(&mut self, tongue: &Tongue) -> String {
        let word = match self.random.below(5) {
            0 if !tongue.stop_words.is_empty() => *self.random.pick(tongue.stop_words),
            _ => self.random.pick(tongue.words).0,
        };
        let has_capitals = self.version == 3 || word.is_ascii();
        match self.random.below(5) {
            // Some stemmers use capitals themselves.
            0 if has_capitals && matches!(tongue.name, "english" | "none") => word.to_uppercase(),
            1 if has_capitals && !word.starts_with('é') => capitalized(word),
            _ => word.to_owned(),
        }
    }

    fn text(&mut self, tongue: &'static Tongue) -> String {
        let between: &[&str] = match self.version {
            3 => &[" ", " ", " ", ", ", "-", "\n", " — ", "» «", "!? "],
            _ => &[" ", " ", " ", ", ", "-", "\n", "!? "],
        };
        let mut text = String::new();
        for n in 0..self.random.below(7) {
            if n > 0 {
                let between: &str = self.random.pick::<&str>(between);
                text.push_str(between);
            }
            text.push_str(&self.word(tongue));
        }
        text
    }

    /// Something that says a language, or does not.
    fn language(&mut self, within: &mut Document, outer: &'static Tongue) -> &'static Tongue {
        if self.random.below(2) == 0 {
            return outer;
        }
        let tongue = self.random.pick(&TONGUES);
        let name = if self.random.one_in(2) {
            tongue.name
        } else {
            tongue.code
        };
        within.push("language", name);
        tongue
    }

    fn weight(&self, path: &str) -> f64 {
        self.weights.get(path).copied().unwrap_or(1.0)
    }

    /// A new document under this identifier.
    fn document(&mut self, id: i32) -> Document {
        let shelf = self.random.below(2) as i32;
        let mut doc = doc! { "_id": id, "shelf": shelf, "n": self.random.below(3) as i32 };
        let mut texts = Vec::new();
        let tongue = self.language(&mut doc, self.default);
        let mut new = |case: &mut Self, path: &str, tongue| {
            let text = case.text(tongue);
            let weight = case.weight(path);
            texts.push(Text {
                text: text.clone(),
                tongue,
                weight,
            });
            Value::from(text)
        };
        if self.random.below(4) > 0 {
            let title = new(self, "title", tongue);
            doc.push("title", title);
        }
        if self.random.below(2) > 0 {
            let body: Vec<Value> = (0..self.random.below(4)).map(|_| new(self, "body", tongue)).collect();
            doc.push("body", body);
        }
        if self.random.below(2) > 0 {
            let inner: Vec<Value> = (0..1 + self.random.below(2))
                .map(|_| {
                    let mut inner = Document::new();
                    let own = self.language(&mut inner, tongue);
                    let own = if self.version == 1 { tongue } else { own };
                    let note = new(self, "inner.note", own);
                    inner.push("note", note);
                    inner.into()
                })
                .collect();
            doc.push("inner", inner);
        }
        if self.whole {
            let other = new(self, "other", tongue);
            doc.push("other", doc! { "deep": other });
        }
        self.documents.insert(id, (shelf, texts));
        doc
    }

    fn search(&mut self) -> Search {
        let tongue = self.random.pick(&TONGUES);
        let mut parts = Vec::new();
        for _ in 0..1 + self.random.below(4) {
            let phrase = |case: &mut Self| format!("{} {}", case.word(tongue), case.word(tongue));
            parts.push(match self.random.below(8) {
                0 => Part::NotWord(self.word(tongue)),
                1 => Part::Phrase(phrase(self)),
                2 => Part::NotPhrase(phrase(self)),
                _ => Part::Word(self.word(tongue)),
            });
        }
        Search {
            version: self.version,
            parts,
            tongue,
            case: self.random.one_in(4),
            diacritics: self.random.one_in(4),
        }
    }

    fn check(&mut self, database: &mut Database) -> usize {
        let search = self.search();
        let mut operand = doc! { "$search": search.text(), "$language": search.tongue.name };
        if search.case {
            operand.push("$caseSensitive", true);
        }
        if search.diacritics {
            operand.push("$diacriticSensitive", true);
        }
        let mut filter = doc! { "$text": operand };
        let shelf = self.compound.then(|| self.random.below(2) as i32);
        if let Some(shelf) = shelf {
            filter.push("shelf", shelf);
        }
        let expected: BTreeMap<i32, f64> = self
            .documents
            .iter()
            .filter(|(_, (own, _))| shelf.is_none_or(|shelf| *own == shelf))
            .filter_map(|(id, (_, texts))| Some((*id, search.score(texts)?)))
            .collect();
        let score = doc! { "score": doc! { "$meta": "textScore" } };
        let find = doc! { "find": "c", "filter": filter.clone(), "batchSize": 10_000 };
        let bare: Vec<i32> = sorted(rows(database, find.clone()).into_iter().map(|(id, _)| id));
        assert_eq!(bare, Vec::from_iter(expected.keys().copied()), "{filter:?}");
        let mut scored = find.clone();
        scored.push("projection", score.clone());
        for (id, score) in rows(database, scored.clone()) {
            assert!(is_near(score, expected.get(&id).copied()), "{filter:?}: {id} {score:?}");
        }
        let (limit, skip) = (1 + self.random.below(8), self.random.below(3));
        scored.push("sort", score);
        scored.push("limit", limit as i32);
        scored.push("skip", skip as i32);
        let best = rows(database, scored);
        let mut scores: Vec<f64> = expected.values().copied().collect();
        scores.sort_by(|a, b| b.total_cmp(a));
        let scores: Vec<f64> = scores.into_iter().skip(skip).take(limit).collect();
        assert_eq!(best.len(), scores.len(), "{filter:?}");
        for ((id, score), at_place) in best.iter().zip(scores) {
            assert!(is_near(*score, expected.get(id).copied()), "{filter:?}: {best:?}");
            assert!(is_near(*score, Some(at_place)), "{filter:?}: {best:?}");
        }
        let counted = database.must(doc! { "count": "c", "query": filter.clone() });
        let n = expected.len() as i32;
        assert!(
            matches!(counted.get("n"), Some(ValueRef::Int32(found)) if found == n),
            "{filter:?}"
        );
        expected.len()
    }
}

fn is_near(score: Option<f64>, expected: Option<f64>) -> bool {
    matches!((score, expected), (Some(score), Some(expected)) if (score - expected).abs() <= 1e-9 * expected)
}

fn sorted(ids: impl Iterator<Item = i32>) -> Vec<i32> {
    let mut ids: Vec<i32> = ids.collect();
    ids.sort_unstable();
    ids
}

/// Identifiers and scores in the order in which they come.
fn rows(database: &mut Database, find: Document) -> Vec<(i32, Option<f64>)> {
    let reply = database.must(find);
    let batch = reply.get("cursor").and_then(ValueRef::as_document);
    let batch = batch
        .and_then(|cursor| cursor.get("firstBatch"))
        .and_then(ValueRef::as_array);
    let row = |doc: ValueRef<'_>| {
        let doc = doc.as_document()?;
        let score = match doc.get("score") {
            Some(ValueRef::Double(score)) => Some(score),
            _ => None,
        };
        match doc.get("_id") {
            Some(ValueRef::Int32(id)) => Some((id, score)),
            _ => None,
        }
    };
    batch.expect("a batch").iter().filter_map(row).collect()
}

#[test]
fn searches_find_what_the_reference_finds() {
    let mut found = 0;
    for seed in 0..24 {
        let mut case = Case::new(20_261_100 + seed);
        let mut database = Database::new();
        let index = case.index();
        let create = doc! { "createIndexes": "c", "indexes": vec![index.into()] };
        // The index is there before half of the documents, and built over the others.
        for half in 0..2 {
            let documents: Vec<Value> = (0..25).map(|n| case.document(half * 25 + n).into()).collect();
            database.must(doc! { "insert": "c", "documents": documents });
            database.must(create.clone());
        }
        for round in 0..40 {
            found += case.check(&mut database);
            let id = case.random.below(60) as i32;
            if round % 4 == 3 {
                case.documents.remove(&id);
                let deletes = vec![doc! { "q": doc! { "_id": id }, "limit": 1 }.into()];
                database.must(doc! { "delete": "c", "deletes": deletes });
            } else {
                let document = case.document(id);
                let update = doc! { "q": doc! { "_id": id }, "u": document, "upsert": true };
                database.must(doc! { "update": "c", "updates": vec![update.into()] });
            }
        }
        let valid = database.must(doc! { "validate": "c", "full": true });
        assert!(valid.get("valid").is_some_and(ValueRef::truthy), "{valid:?}");
    }
    assert!(found > 1_500, "only {found} documents were found");
}
