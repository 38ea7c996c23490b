//! What `$text` asks for.
//!
//! ```text
//! coffee -tea "fair trade" -"instant coffee"
//! ```
//!
//! asks for documents with one of the terms `coffe`, `fair`, `trade`, without the term `tea`, with the text `fair trade` in one
//! of their texts and without `instant coffee` in any. A minus negates a word that begins right behind it, if it is the first of a word itself:
//! `pre-market` are two words.

use super::words::{Sensitivity, Words};
use super::{Language, TextSpec, Version};
use nestor_model::statement::{BYTES_PER_UNIT, Scope, charge, work};
use nestor_model::{DocRef, Document, Error, ErrorCode, Result, Str, Value, ValueRef, bail, doc};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a term that is looked for takes in memory, about: plans have a scan for each.
const SCANNED_TERM_BYTES: usize = 2048;
/// What another term or a phrase takes beside its text, about.
const KEPT_TERM_BYTES: usize = 64;

/// The operand of `$text`.
#[derive(Clone, PartialEq, Debug)]
pub struct TextQuery {
    search: Str,
    /// Empty: that of the index.
    language: Str,
    sensitivity: Sensitivity,
}

/// A `$text`, first by itself and then for the index that it searches.
#[derive(Clone, Debug)]
pub struct TextTest {
    /// The operand.
    pub query: Arc<TextQuery>,
    /// What it means to the text index of the collection; `None` before the collection is known.
    pub search: Option<Arc<TextSearch>>,
}

/// What a `$text` means to a text index.
#[derive(Debug)]
pub struct TextSearch {
    query: Arc<TextQuery>,
    /// The index.
    pub spec: Arc<TextSpec>,
    language: Language,
    /// As the index has them.
    terms: BTreeSet<String>,
    /// As documents have to have them, where case or diacritics count; else empty.
    exact_terms: BTreeSet<String>,
    negated_terms: BTreeSet<String>,
    phrases: BTreeSet<String>,
    negated_phrases: BTreeSet<String>,
}

impl TextQuery {
    /// Parses the operand of `$text`.
    ///
    /// Errors: 2 for no document, unknown fields and languages; 4 without `$search`; 14 for types.
    pub fn parse(value: ValueRef<'_>) -> Result<Self> {
        let ValueRef::Document(doc) = value else {
            bail!(BadValue, "$text expects an object");
        };
        let mut search = None;
        let mut out = Self {
            search: Str::default(),
            language: Str::default(),
            sensitivity: Sensitivity::default(),
        };
        for (name, value) in doc {
            match name {
                "$search" => search = Some(text(name, value)?),
                "$language" => out.language = text(name, value)?,
                "$caseSensitive" => out.sensitivity.case = flag(name, value)?,
                "$diacriticSensitive" => out.sensitivity.diacritics = flag(name, value)?,
                _ => bail!(BadValue, "extra fields in $text"),
            }
        }
        let Some(search) = search else {
            return Err(Error::new(ErrorCode::NoSuchKey, "Missing expected field \"$search\""));
        };
        out.search = search;
        if !out.language.is_empty() && Language::named(&out.language).is_none() {
            bail!(
                BadValue,
                "unsupported language: \"{}\" for text index version 3",
                out.language
            );
        }
        Ok(out)
    }
}

fn text(name: &str, value: ValueRef<'_>) -> Result<Str> {
    match value {
        ValueRef::String(text) => Ok(text.into()),
        other => Err(wrong(name, "string", other)),
    }
}

fn flag(name: &str, value: ValueRef<'_>) -> Result<bool> {
    match value {
        ValueRef::Bool(flag) => Ok(flag),
        other => Err(wrong(name, "bool", other)),
    }
}

fn wrong(name: &str, wanted: &str, value: ValueRef<'_>) -> Error {
    Error::new(
        ErrorCode::TypeMismatch,
        format!(
            "\"{name}\" had the wrong type. Expected {wanted}, found {}",
            value.bson_type().alias()
        ),
    )
}

impl TextTest {
    /// A `$text` whose collection is not known yet.
    pub fn new(query: TextQuery) -> Self {
        Self {
            query: Arc::new(query),
            search: None,
        }
    }

    /// The same for a text index. Errors: those of the statement's interrupt.
    pub fn bound(&self, spec: &Arc<TextSpec>) -> Result<Self> {
        Ok(Self {
            query: self.query.clone(),
            search: Some(Arc::new(TextSearch::new(&self.query, spec)?)),
        })
    }

    /// Whether a document has what is asked for.
    ///
    /// Errors: 1 before the collection is known, 17261 and 17262, those of the statement's interrupt.
    pub fn matches(&self, doc: DocRef<'_>) -> Result<bool> {
        match &self.search {
            Some(search) => search.matches(doc),
            None => Err(Error::new(ErrorCode::InternalError, "a $text that knows no index")),
        }
    }

    /// As explain prints it.
    pub fn serialize(&self) -> Document {
        let language = match &self.search {
            Some(search) => search.language.name(),
            None => &self.query.language,
        };
        doc! {
            "$text": doc! {
                "$search": self.query.search.clone(),
                "$language": language,
                "$caseSensitive": self.query.sensitivity.case,
                "$diacriticSensitive": self.query.sensitivity.diacritics,
            },
        }
    }
}

impl TextSearch {
    fn new(query: &Arc<TextQuery>, spec: &Arc<TextSpec>) -> Result<Self> {
        let language = match query.language.is_empty() {
            true => spec.default_language,
            false => Language::named(&query.language).unwrap_or(Language::none()),
        };
        let mut search = Self {
            query: query.clone(),
            spec: spec.clone(),
            language,
            terms: BTreeSet::new(),
            exact_terms: BTreeSet::new(),
            negated_terms: BTreeSet::new(),
            phrases: BTreeSet::new(),
            negated_phrases: BTreeSet::new(),
        };
        search.read(&query.search.clone())?;
        Ok(search)
    }

    /// Reads the words and phrases of the search.
    fn read(&mut self, text: &str) -> Result<()> {
        let words = self.words(self.language);
        // Where the phrase began that is open, and whether it is negated.
        let mut phrase: Option<usize> = None;
        let mut phrase_negated = false;
        let mut negated = false;
        let mut after_space = true;
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            if words.is_part(c) {
                let rest = &text[at..];
                let end = words.run(rest, true)?;
                let in_negation = if phrase.is_some() { phrase_negated } else { negated };
                self.word(&rest[..end], words, in_negation, phrase.is_some())?;
                at += end;
                after_space = false;
                continue;
            }
            work(1)?;
            match c {
                '"' => match phrase.take() {
                    Some(start) => {
                        self.phrase(&text[start..at], phrase_negated)?;
                        (negated, phrase_negated) = (false, false);
                    }
                    None => {
                        phrase = Some(at + 1);
                        phrase_negated = negated;
                    }
                },
                '-' if phrase.is_none() && after_space => negated = true,
                c if c.is_whitespace() && phrase.is_none() => negated = false,
                _ => {}
            }
            after_space = c.is_whitespace();
            at += c.len_utf8();
        }
        Ok(())
    }

    fn word(&mut self, word: &str, words: Words, negated: bool, in_phrase: bool) -> Result<()> {
        let stored = Words {
            sensitivity: Sensitivity::default(),
            ..words
        };
        match (negated, in_phrase) {
            // The words of a phrase that must not be there may well be.
            (true, true) => {}
            (true, false) => add(words.term(word)?, KEPT_TERM_BYTES, &mut self.negated_terms)?,
            (false, _) => {
                add(stored.term(word)?, SCANNED_TERM_BYTES, &mut self.terms)?;
                if words.sensitivity != Sensitivity::default() {
                    add(words.term(word)?, KEPT_TERM_BYTES, &mut self.exact_terms)?;
                }
            }
        }
        Ok(())
    }

    fn phrase(&mut self, phrase: &str, negated: bool) -> Result<()> {
        let phrases = match negated {
            true => &mut self.negated_phrases,
            false => &mut self.phrases,
        };
        let phrase = (!phrase.is_empty()).then_some(Cow::Borrowed(phrase));
        add(phrase, KEPT_TERM_BYTES, phrases)
    }

    fn words(&self, language: Language) -> Words {
        // Versions before the third tell letters with diacritics apart anyway.
        let diacritics = self.query.sensitivity.diacritics && self.spec.version == Version::Three;
        Words {
            version: self.spec.version,
            language,
            sensitivity: Sensitivity {
                case: self.query.sensitivity.case,
                diacritics,
            },
        }
    }

    /// The terms of which a document has to have one, as an index has them.
    pub fn terms(&self) -> impl Iterator<Item = &str> {
        self.terms.iter().map(String::as_str)
    }

    /// Whether documents that an index has under one of the terms may still not be wanted.
    pub fn needs_document(&self) -> bool {
        !(self.exact_terms.is_empty()
            && self.negated_terms.is_empty()
            && self.phrases.is_empty()
            && self.negated_phrases.is_empty())
    }

    /// What was understood, as explain prints it.
    pub fn parsed(&self) -> Document {
        let list = |items: &mut dyn Iterator<Item = &String>| -> Vec<Value> {
            items.map(|item| item.as_str().into()).collect()
        };
        doc! {
            "terms": list(&mut self.terms.iter()),
            "negatedTerms": list(&mut self.negated_terms.iter()),
            "phrases": list(&mut self.phrases.iter()),
            "negatedPhrases": list(&mut self.negated_phrases.iter()),
        }
    }

    /// Whether a document has what is asked for. Errors: 17261 and 17262, those of the statement's interrupt.
    pub fn matches(&self, doc: DocRef<'_>) -> Result<bool> {
        Ok(self.matches_phrases(doc)? && self.matches_terms(doc)?)
    }

    /// The same of a document that an index has under one of the terms. Errors: those of [`TextSearch::matches`].
    pub fn matches_found(&self, doc: DocRef<'_>) -> Result<bool> {
        // Phrases first: looking for one in a text takes less than taking the text apart.
        let is_decided = self.exact_terms.is_empty() && self.negated_terms.is_empty();
        Ok(self.matches_phrases(doc)? && (is_decided || self.matches_terms(doc)?))
    }

    /// Whether a document has one of the terms, and none of those that are negated.
    fn matches_terms(&self, doc: DocRef<'_>) -> Result<bool> {
        let _scope = Scope::begin();
        let wanted = match self.exact_terms.is_empty() {
            true => &self.terms,
            false => &self.exact_terms,
        };
        let (mut has_term, mut has_negated) = (false, false);
        self.spec.for_each_text(doc, &mut |text, language, _| {
            if has_negated || has_term && self.negated_terms.is_empty() {
                return Ok(());
            }
            self.words(language).for_each_term(text, &mut |term| {
                has_term |= wanted.contains(&*term);
                has_negated |= self.negated_terms.contains(&*term);
                Ok(())
            })
        })?;
        Ok(has_term && !has_negated)
    }

    /// Whether a document has the phrases, and none of those that are negated.
    fn matches_phrases(&self, doc: DocRef<'_>) -> Result<bool> {
        if self.phrases.is_empty() && self.negated_phrases.is_empty() {
            return Ok(true);
        }
        let _scope = Scope::begin();
        let mut has_negated = false;
        let mut phrases = vec![false; self.phrases.len()];
        self.spec.for_each_text(doc, &mut |text, language, _| {
            if has_negated {
                return Ok(());
            }
            let words = self.words(language);
            let folded = words.folded(text)?;
            let has = |phrase: &str| -> Result<bool> {
                work(1 + folded.len() / BYTES_PER_UNIT)?;
                Ok(folded.contains(&*words.folded(phrase)?))
            };
            for (phrase, found) in self.phrases.iter().zip(&mut phrases) {
                *found = *found || has(phrase)?;
            }
            for phrase in &self.negated_phrases {
                has_negated = has_negated || has(phrase)?;
            }
            Ok(())
        })?;
        Ok(!has_negated && phrases.iter().all(|found| *found))
    }
}

/// Keeps a term, or a phrase, that takes so many bytes beside its text.
fn add(term: Option<Cow<'_, str>>, bytes: usize, to: &mut BTreeSet<String>) -> Result<()> {
    if let Some(term) = term
        && !to.contains(&*term)
    {
        charge(bytes + term.len())?;
        to.insert(term.into_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::extjson::{self, Form};
    use nestor_model::index_spec::IndexSpec;

    fn search(query: &str) -> TextSearch {
        let listed = doc! {
            "key": doc! { "_fts": "text", "_ftsx": 1 }, "name": "t", "weights": doc! { "a": 1 }, "default_language": "english",
        };
        let spec = TextSpec::of(&IndexSpec::parse(listed.to_raw()).expect("a specification"));
        let query = extjson::parse_document(query).expect("JSON");
        let query = TextQuery::parse(ValueRef::Document(query.as_ref())).expect("a query");
        TextSearch::new(&Arc::new(query), &Arc::new(spec)).expect("no interrupt")
    }

    #[test]
    fn words_phrases_and_negations() {
        for (text, expected) in [
            ("coffee -tea", r#"[["coffe"],["tea"],[],[]]"#),
            (
                "well-known -pre-market - cake",
                r#"[["cake","known","well"],["market","pre"],[],[]]"#,
            ),
            (
                r#"\"fair Trade\" -\"instant tea\" x"#,
                r#"[["fair","trade","x"],[],["fair Trade"],["instant tea"]]"#,
            ),
            (r#"a \"brown fox"#, r#"[["brown","fox"],[],[],[]]"#),
            (r#"-\"a b\"c -d"#, r#"[["c"],["d"],[],["a b"]]"#),
            ("the", "[[],[],[],[]]"),
        ] {
            let parsed = search(&format!(r#"{{"$search":"{text}"}}"#)).parsed();
            let values: Vec<Value> = parsed.iter().map(|(_, value)| value.to_value()).collect();
            let shown = extjson::to_string(&doc! { "v": values }, Form::Relaxed);
            assert_eq!(shown, format!(r#"{{"v":{expected}}}"#), "{text}");
        }
    }

    #[test]
    fn documents_have_what_is_asked_for_or_not() {
        for (query, doc, expected) in [
            (r#"{"$search":"fox"}"#, r#"{"a":"Foxes"}"#, true),
            (r#"{"$search":"-fox"}"#, r#"{"a":"dog"}"#, false),
            (r#"{"$search":"dog -fox"}"#, r#"{"a":["dog","foxes"]}"#, false),
            (r#"{"$search":"\"brown fox\""}"#, r#"{"a":"the BROWN foxes"}"#, true),
            (r#"{"$search":"\"brown fox\""}"#, r#"{"a":["brown","fox"]}"#, false),
            (r#"{"$search":"fox -\"brown fox\""}"#, r#"{"a":"brown fox"}"#, false),
            (r#"{"$search":"Café"}"#, r#"{"a":"cafe"}"#, true),
            (
                r#"{"$search":"Café","$diacriticSensitive":true}"#,
                r#"{"a":"cafe"}"#,
                false,
            ),
            (
                r#"{"$search":"Café","$diacriticSensitive":true}"#,
                r#"{"a":"CAFÉ"}"#,
                true,
            ),
            (r#"{"$search":"Fox","$caseSensitive":true}"#, r#"{"a":"fox"}"#, false),
            (
                r#"{"$search":"\"a Fox\"","$caseSensitive":true}"#,
                r#"{"a":"a Fox"}"#,
                true,
            ),
            (
                r#"{"$search":"\"a Fox\"","$caseSensitive":true}"#,
                r#"{"a":"A Fox"}"#,
                false,
            ),
        ] {
            let doc = extjson::parse_document(doc).expect("JSON");
            assert_eq!(
                search(query).matches(doc.as_ref()).expect("no error"),
                expected,
                "{query}"
            );
        }
    }
}
