//! What a text index is about: which texts of a document count, in which language, and what their terms score.
//!
//! Of one text, a term that is its `n`-th part by number scores
//!
//! ```text
//! weight * (1 + 1/2 + 1/4 + ... for each time it comes) * (0.5 + 0.5 * times / terms of the text)
//! ```
//!
//! and a tenth more when the text is nothing but the term itself. A document's score is the sum over its texts.
//!
//! ```text
//! "coffee"                     coffe → 1                 the text is "coffee", not its stem
//! "cake"                       cake → 1.1
//! "cakes and ale"              cake → 0.75, ale → 0.75   "and" is a stop word
//! "apple apple apple"          appl → 1.75
//! ```
//!
//! Source: results that the manual shows ("$meta", "Assign Weights to Text Search Results").

use super::words::{Sensitivity, Words};
use super::{Language, Version};
use nestor_model::index_spec::IndexSpec;
use nestor_model::number::{Num, whole_number};
use nestor_model::statement::{charge, work};
use nestor_model::{ArrayRef, DocRef, Path, Result, Str, ValueRef, bail};
use std::collections::BTreeMap;

/// The language of texts for which nothing else says one.
pub const DEFAULT_LANGUAGE: &str = "english";

/// The path that stands for all texts of a document.
pub const WHOLE_DOCUMENT: &str = "$**";

/// What a term takes in memory beside its text, about.
const TERM_BYTES: usize = 64;

/// Paths that are compared in one unit of work.
const FIELDS_PER_UNIT: usize = 16;

/// What a text index is about.
#[derive(Clone, Debug)]
pub struct TextSpec {
    /// The index's version.
    pub version: Version,
    /// The language of a document that says none.
    pub default_language: Language,
    /// The field by which a document says its language.
    pub override_field: Str,
    /// The fields with texts, and how much each counts.
    fields: Vec<(Path, f64)>,
    /// How much all other texts count, if they do.
    others: Option<f64>,
}

impl TextSpec {
    /// Reads the specification of a text index, in the form in which it is listed.
    pub fn of(spec: &IndexSpec) -> Self {
        let text = |name: &str| spec.option(name).and_then(ValueRef::as_str);
        let version = match spec.option("textIndexVersion").and_then(whole_number) {
            Some(1) => Version::One,
            Some(2) => Version::Two,
            _ => Version::Three,
        };
        let mut out = Self {
            version,
            default_language: text("default_language")
                .and_then(Language::named)
                .unwrap_or(Language::none()),
            override_field: text("language_override").unwrap_or("language").into(),
            fields: Vec::new(),
            others: None,
        };
        let weights = spec.option("weights").and_then(ValueRef::as_document);
        for (path, weight) in weights.into_iter().flatten() {
            let weight = Num::from_ref(weight).map_or(1.0, Num::to_f64);
            match path {
                WHOLE_DOCUMENT => out.others = Some(weight),
                _ => out.fields.push((Path::new(path), weight)),
            }
        }
        out
    }

    /// The paths that decide what is found in a document: of texts, and of languages. `None`: all.
    pub fn paths(&self) -> Option<Vec<Path>> {
        if self.others.is_some() {
            return None;
        }
        let mut paths = vec![Path::new(&self.override_field)];
        for (path, _) in &self.fields {
            paths.push(path.clone());
            let mut outer = String::new();
            for part in path.parts() {
                outer.push_str(&part.name);
                outer.push('.');
                paths.push(Path::new(&format!("{outer}{}", self.override_field)));
            }
        }
        Some(paths)
    }

    /// The terms of a document, and what each scores.
    ///
    /// Errors: 17261 and 17262 for a language that is no text or not known; those of memory and of the statement's interrupt.
    pub fn terms(&self, doc: DocRef<'_>) -> Result<BTreeMap<String, f64>> {
        let mut scores = BTreeMap::new();
        let mut seen: BTreeMap<String, (u32, f64)> = BTreeMap::new();
        self.for_each_text(doc, &mut |text, language, weight| {
            let words = Words {
                version: self.version,
                language,
                sensitivity: Sensitivity::default(),
            };
            let mut count = 0_u32;
            words.for_each_term(text, &mut |term| {
                count += 1;
                match seen.get_mut(&*term) {
                    Some((times, share)) => {
                        *share += 0.5_f64.powi(i32::try_from(*times).unwrap_or(i32::MAX));
                        *times += 1;
                    }
                    None => {
                        charge(TERM_BYTES + term.len())?;
                        seen.insert(term.into_owned(), (1, 1.0));
                    }
                }
                Ok(())
            })?;
            for (term, (times, share)) in std::mem::take(&mut seen) {
                let density = 0.5 * f64::from(times) / f64::from(count) + 0.5;
                let alone = if text.eq_ignore_ascii_case(&term) { 1.1 } else { 1.0 };
                *scores.entry(term).or_insert(0.0) += weight * share * density * alone;
            }
            Ok(())
        })?;
        Ok(scores)
    }

    /// Calls `each` with each text of a document that counts, its language, and how much it counts.
    ///
    /// Errors: those of [`TextSpec::terms`] and of `each`.
    pub(super) fn for_each_text(
        &self,
        doc: DocRef<'_>,
        each: &mut dyn FnMut(&str, Language, f64) -> Result<()>,
    ) -> Result<()> {
        let mut walk = Walk { spec: self, each };
        if self.others.is_some() {
            return walk.all(doc, self.default_language, &mut String::new());
        }
        for (path, weight) in &self.fields {
            walk.path(doc, path, 0, self.default_language, *weight)?;
        }
        Ok(())
    }

    /// The language of what is in a document, which without a word on it has `outer`.
    fn language(&self, doc: DocRef<'_>, outer: Language) -> Result<Language> {
        match doc.get(&self.override_field) {
            None => Ok(outer),
            Some(ValueRef::String(name)) => match Language::named(name) {
                Some(language) => Ok(language),
                None if self.version == Version::One => Ok(Language::none()),
                None => bail!(17262, "language override unsupported: {name}"),
            },
            Some(_) if self.version == Version::One => Ok(outer),
            Some(other) => bail!(
                17261,
                "found language override field in document with non-string type: {}",
                other.bson_type().alias()
            ),
        }
    }

    /// How much the texts at a path count where all texts do.
    fn weight_at(&self, path: &str) -> f64 {
        let given = self.fields.iter().find(|(field, _)| field.as_str() == path);
        given.map_or(self.others.unwrap_or(1.0), |(_, weight)| *weight)
    }
}

struct Walk<'w> {
    spec: &'w TextSpec,
    each: &'w mut dyn FnMut(&str, Language, f64) -> Result<()>,
}

impl Walk<'_> {
    /// The texts at a path, of whose components the first `at` led to `doc`.
    fn path(&mut self, doc: DocRef<'_>, path: &Path, at: usize, outer: Language, weight: f64) -> Result<()> {
        let language = self.language_within(doc, outer, at)?;
        let Some(part) = path.parts().get(at) else {
            return Ok(());
        };
        match doc.get(&part.name) {
            Some(ValueRef::String(text)) if at + 1 == path.parts().len() => (self.each)(text, language, weight),
            Some(ValueRef::Document(inner)) if at + 1 < path.parts().len() => {
                self.path(inner, path, at + 1, language, weight)
            }
            Some(ValueRef::Array(items)) => {
                for item in items {
                    work(1)?;
                    match item {
                        ValueRef::String(text) if at + 1 == path.parts().len() => (self.each)(text, language, weight)?,
                        ValueRef::Document(inner) if at + 1 < path.parts().len() => {
                            self.path(inner, path, at + 1, language, weight)?;
                        }
                        _ => {}
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Every text of a document, which is at `path`.
    fn all(&mut self, doc: DocRef<'_>, outer: Language, path: &mut String) -> Result<()> {
        let depth = usize::from(!path.is_empty());
        let language = self.language_within(doc, outer, depth)?;
        for (name, value) in doc {
            self.count()?;
            if name == self.spec.override_field.as_str() {
                continue;
            }
            let before = path.len();
            if before > 0 {
                path.push('.');
            }
            path.push_str(name);
            match value {
                ValueRef::String(text) => (self.each)(text, language, self.spec.weight_at(path))?,
                ValueRef::Document(inner) => self.all(inner, language, path)?,
                ValueRef::Array(items) => self.items(items, language, path)?,
                _ => {}
            }
            path.truncate(before);
        }
        Ok(())
    }

    /// A value is looked at, and its path among those with weights of their own.
    fn count(&self) -> Result<()> {
        work(1 + self.spec.fields.len() / FIELDS_PER_UNIT)
    }

    fn items(&mut self, items: ArrayRef<'_>, language: Language, path: &mut String) -> Result<()> {
        for item in items {
            self.count()?;
            match item {
                ValueRef::String(text) => (self.each)(text, language, self.spec.weight_at(path))?,
                ValueRef::Document(inner) => self.all(inner, language, path)?,
                ValueRef::Array(inner) => self.items(inner, language, path)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Documents within documents have no language of their own in the first version.
    fn language_within(&self, doc: DocRef<'_>, outer: Language, depth: usize) -> Result<Language> {
        match depth > 0 && self.spec.version == Version::One {
            true => Ok(outer),
            false => self.spec.language(doc, outer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::extjson;

    fn spec(weights: &str, rest: &str) -> TextSpec {
        let listed = format!(r#"{{"key":{{"_fts":"text","_ftsx":1}},"name":"t","weights":{weights}{rest}}}"#);
        let listed = extjson::parse_document(&listed).expect("JSON");
        TextSpec::of(&IndexSpec::parse(listed.to_raw()).expect("a specification"))
    }

    fn terms(spec: &TextSpec, doc: &str) -> Result<String> {
        let doc = extjson::parse_document(doc).expect("JSON");
        let found = spec.terms(doc.as_ref())?;
        let shown: Vec<String> = found.iter().map(|(term, score)| format!("{term} {score:.4}")).collect();
        Ok(shown.join(", "))
    }

    #[test]
    fn what_terms_score() {
        let plain = spec(r#"{"a":1}"#, r#","default_language":"english""#);
        for (doc, expected) in [
            (r#"{"a":"coffee"}"#, "coffe 1.0000"),
            (r#"{"a":"Cake"}"#, "cake 1.1000"),
            (r#"{"a":"cakes and ale"}"#, "ale 0.7500, cake 0.7500"),
            (r#"{"a":"apple apple apple"}"#, "appl 1.7500"),
            (r#"{"a":["ale","ale house"]}"#, "ale 1.8500, hous 0.7500"),
            (r#"{"a":{"b":"ale"},"b":"ale"}"#, ""),
            (r#"{"a":[["ale"],1,null,"x"]}"#, "x 1.1000"),
        ] {
            assert_eq!(terms(&plain, doc).expect("terms"), expected, "{doc}");
        }
        let weighted = spec(r#"{"a":10,"b.c":2}"#, r#","default_language":"english""#);
        let doc = r#"{"a":"ale","b":[{"c":"ale"},{"c":"tea"}]}"#;
        assert_eq!(terms(&weighted, doc).expect("terms"), "ale 13.2000, tea 2.2000");
        let all = spec(r#"{"$**":1,"b.c":2}"#, r#","default_language":"english""#);
        let doc = r#"{"_id":"x","a":{"d":["ale"]},"b":{"c":"tea"},"language":"english"}"#;
        assert_eq!(terms(&all, doc).expect("terms"), "ale 1.1000, tea 2.2000, x 1.1000");
    }

    #[test]
    fn languages_of_documents_and_of_those_within() {
        let spec = |version: i32| {
            let rest = format!(r#","default_language":"english","textIndexVersion":{version}"#);
            spec(r#"{"a":1,"t.a":1}"#, &rest)
        };
        let doc = r#"{"language":"none","a":"foxes","t":[{"language":"english","a":"dogs"},{"a":"cats"}]}"#;
        assert_eq!(
            terms(&spec(3), doc).expect("terms"),
            "cats 1.1000, dog 1.0000, foxes 1.1000"
        );
        assert_eq!(
            terms(&spec(1), doc).expect("terms"),
            "cats 1.1000, dogs 1.1000, foxes 1.1000"
        );
        for (doc, code) in [
            (r#"{"language":"klingon","a":"x"}"#, 17262),
            (r#"{"language":1,"a":"x"}"#, 17261),
        ] {
            assert_eq!(terms(&spec(2), doc).expect_err("refused").code().number(), code);
            assert_eq!(terms(&spec(1), doc).expect("terms"), "x 1.1000");
        }
    }
}
