//! The analyzers that a definition makes.

use super::Analyzer;
use super::characters::{CharFilter, Form};
use super::filter::Filter;
use super::grams::Grams;
use super::tokenizer::{TOKEN_CHARS_MAX, Tokenizer};
use super::word_parts::WordParts;
use crate::operand::{Operand, refuse};
use nestor_model::{Result, ValueRef};
use nestor_query::regex::Regex;
use nestor_query::text::Language;
use std::collections::HashSet;

/// The longest pieces of texts that a definition may ask for.
const GRAM_CHARS_MAX: i32 = 255;

/// The analyzer of an element of `analyzers`.
pub(in crate::text) fn custom(spec: &Operand<'_>) -> Result<Analyzer> {
    spec.only(&["name", "charFilters", "tokenizer", "tokenFilters"])?;
    let name = spec.required_string("name")?;
    if name.is_empty() || name.starts_with("lucene.") || name.starts_with("builtin.") || name.starts_with("mongodb.") {
        refuse!("\"{}\" cannot be {name:?}", spec.name_of("name"));
    }
    let characters = each(spec, "charFilters", char_filter)?;
    let tokenizer = tokenizer(&spec.required_document("tokenizer")?)?;
    let filters = each(spec, "tokenFilters", filter)?;
    Ok(Analyzer::new(
        name,
        characters,
        tokenizer,
        filters.into_iter().flatten().collect(),
    ))
}

fn each<T>(spec: &Operand<'_>, field: &str, read: impl Fn(&Operand<'_>) -> Result<T>) -> Result<Vec<T>> {
    let Some(items) = spec.array(field)? else {
        return Ok(Vec::new());
    };
    let name = spec.name_of(field);
    let items = items.iter().enumerate();
    items
        .map(|(at, item)| read(&Operand::of(format!("{name}[{at}]"), item)?))
        .collect()
}

fn char_filter(spec: &Operand<'_>) -> Result<CharFilter> {
    let kind = spec.required_string("type")?;
    Ok(match kind {
        "htmlStrip" => {
            spec.only(&["type", "ignoredTags"])?;
            CharFilter::HtmlStrip {
                kept: words(spec, "ignoredTags")?.unwrap_or_default(),
            }
        }
        "icuNormalize" => {
            spec.only(&["type"])?;
            CharFilter::Normalize
        }
        "persian" => {
            spec.only(&["type"])?;
            CharFilter::Persian
        }
        "mapping" => {
            spec.only(&["type", "mappings"])?;
            let mut mappings = Vec::new();
            let written = spec.required_document("mappings")?;
            for (from, to) in written.doc() {
                let ValueRef::String(to) = to else {
                    refuse!("\"{}\" must be a string", written.name_of(from));
                };
                if from.is_empty() {
                    refuse!("\"{}\" cannot map nothing", written.name());
                }
                mappings.push((from.to_owned(), to.to_owned()));
            }
            mappings.sort_by_key(|(from, _)| std::cmp::Reverse(from.len()));
            CharFilter::Mapping(mappings)
        }
        _ => refuse!("character filter {kind:?} of \"{}\" is not supported", spec.name()),
    })
}

fn tokenizer(spec: &Operand<'_>) -> Result<Tokenizer> {
    let kind = spec.required_string("type")?;
    let longest = |spec: &Operand<'_>| -> Result<usize> {
        spec.only(&["type", "maxTokenLength"])?;
        let longest = spec.integer_within("maxTokenLength", 1..=i32::MAX)?;
        Ok(longest.map_or(TOKEN_CHARS_MAX, |longest| longest as usize))
    };
    Ok(match kind {
        "standard" => Tokenizer::Standard {
            longest: longest(spec)?,
        },
        "uaxUrlEmail" => Tokenizer::Addresses {
            longest: longest(spec)?,
        },
        "whitespace" => Tokenizer::Whitespace {
            longest: longest(spec)?,
        },
        "keyword" => {
            spec.only(&["type"])?;
            Tokenizer::Keyword
        }
        "edgeGram" => Tokenizer::EdgeGrams(grams(spec, &[])?),
        "nGram" => Tokenizer::Grams(grams(spec, &[])?),
        "regexSplit" => {
            spec.only(&["type", "pattern"])?;
            Tokenizer::Split(pattern(spec)?)
        }
        "regexCaptureGroup" => {
            spec.only(&["type", "pattern", "group"])?;
            let Some(group) = spec.integer_within("group", 0..=i32::MAX)? else {
                refuse!("\"{}\" is required", spec.name_of("group"));
            };
            Tokenizer::Group(pattern(spec)?, group as usize)
        }
        _ => refuse!("tokenizer {kind:?} of \"{}\" is not supported", spec.name()),
    })
}

fn grams(spec: &Operand<'_>, others: &[&str]) -> Result<Grams> {
    let mut known = vec!["type", "minGram", "maxGram"];
    known.extend(others);
    spec.only(&known)?;
    let min = spec.integer_within("minGram", 1..=GRAM_CHARS_MAX)?;
    let max = spec.integer_within("maxGram", 1..=GRAM_CHARS_MAX)?;
    match (min, max) {
        (Some(min), Some(max)) if min <= max => Ok(Grams {
            min: min as usize,
            max: max as usize,
        }),
        (Some(_), Some(_)) => refuse!("\"{}\" has a minGram greater than its maxGram", spec.name()),
        _ => refuse!("\"{}\" must have minGram and maxGram", spec.name()),
    }
}

fn pattern(spec: &Operand<'_>) -> Result<Regex> {
    let written = spec.required_string("pattern")?;
    match Regex::new(written, "") {
        Ok(pattern) => Ok(pattern),
        Err(error) => refuse!("\"{}\": {}", spec.name_of("pattern"), error.message()),
    }
}

fn words(spec: &Operand<'_>, field: &str) -> Result<Option<HashSet<String>>> {
    let name = spec.name_of(field);
    let Some(items) = spec.array(field)? else {
        return Ok(None);
    };
    let word = |item: ValueRef<'_>| match item {
        ValueRef::String(word) => Ok(word.to_owned()),
        _ => refuse!("\"{name}\" must be an array of strings"),
    };
    items.iter().map(word).collect::<Result<_>>().map(Some)
}

fn original(spec: &Operand<'_>, field: &str) -> Result<bool> {
    let choices = [("include", true), ("omit", false)];
    Ok(spec.choice(field, &choices)?.unwrap_or(false))
}

fn filter(spec: &Operand<'_>) -> Result<Option<Filter>> {
    let kind = spec.required_string("type")?;
    let plain = |filter| {
        spec.only(&["type"])?;
        Ok(Some(filter))
    };
    match kind {
        "lowercase" => plain(Filter::Lowercase { is_turkish: false }),
        "englishPossessive" => plain(Filter::Possessive),
        "porterStemming" => plain(Filter::PorterStem),
        "spanishPluralStemming" => plain(Filter::SpanishPlural),
        "reverse" => plain(Filter::Reverse),
        "trim" => plain(Filter::Trim),
        "icuFolding" => plain(Filter::Folded),
        // Here tokens have no graph that could be made flat.
        "flattenGraph" => {
            spec.only(&["type"])?;
            Ok(None)
        }
        "asciiFolding" => {
            spec.only(&["type", "originalTokens"])?;
            let original = original(spec, "originalTokens")?;
            Ok(Some(Filter::Unmarked { original }))
        }
        "icuNormalizer" => {
            spec.only(&["type", "normalizationForm"])?;
            let forms = [
                ("nfc", Form::Composed),
                ("nfd", Form::Decomposed),
                ("nfkc", Form::CompatibleComposed),
                ("nfkd", Form::CompatibleDecomposed),
            ];
            let form = spec.choice("normalizationForm", &forms)?;
            Ok(Some(Filter::Form(form.unwrap_or(Form::Composed))))
        }
        "length" => {
            spec.only(&["type", "min", "max"])?;
            let min = spec.integer_within("min", 0..=i32::MAX)?.unwrap_or(0);
            let max = spec.integer_within("max", 0..=i32::MAX)?.unwrap_or(255);
            if min > max {
                refuse!("\"{}\" has a min greater than its max", spec.name());
            }
            Ok(Some(Filter::Length {
                min: min as usize,
                max: max as usize,
            }))
        }
        "edgeGram" | "nGram" => {
            let grams = grams(spec, &["termNotInBounds"])?;
            Ok(Some(Filter::Grams {
                grams,
                is_edge: kind == "edgeGram",
                keeps_others: original(spec, "termNotInBounds")?,
            }))
        }
        "shingle" => {
            spec.only(&["type", "minShingleSize", "maxShingleSize"])?;
            let min = spec.integer_within("minShingleSize", 2..=GRAM_CHARS_MAX)?;
            let max = spec.integer_within("maxShingleSize", 2..=GRAM_CHARS_MAX)?;
            match (min, max) {
                (Some(min), Some(max)) if min <= max => Ok(Some(Filter::Shingles {
                    min: min as usize,
                    max: max as usize,
                })),
                _ => refuse!(
                    "\"{}\" must have a minShingleSize up to its maxShingleSize",
                    spec.name()
                ),
            }
        }
        "regex" => {
            spec.only(&["type", "pattern", "replacement", "matches"])?;
            let by = spec.required("replacement").and_then(|_| spec.string("replacement"))?;
            let Some(all) = spec.choice("matches", &[("all", true), ("first", false)])? else {
                refuse!("\"{}\" is required", spec.name_of("matches"));
            };
            Ok(Some(Filter::Replace {
                pattern: pattern(spec)?,
                by: by.unwrap_or_default().to_owned(),
                all,
            }))
        }
        "snowballStemming" => {
            spec.only(&["type", "stemmerName"])?;
            let name = spec.required_string("stemmerName")?;
            match name {
                "porter" => Ok(Some(Filter::PorterStem)),
                _ => match Language::named(name).filter(|language| *language != Language::none()) {
                    Some(language) => Ok(Some(Filter::Stem(language))),
                    None => refuse!("stemmer {name:?} of \"{}\" is not supported", spec.name()),
                },
            }
        }
        "stopword" => {
            spec.only(&["type", "tokens", "ignoreCase"])?;
            let Some(words) = words(spec, "tokens")? else {
                refuse!("\"{}\" is required", spec.name_of("tokens"));
            };
            let ignores_case = spec.boolean("ignoreCase")?.unwrap_or(true);
            let words = match ignores_case {
                true => words.iter().map(|word| word.to_lowercase()).collect(),
                false => words,
            };
            Ok(Some(Filter::Stop { words, ignores_case }))
        }
        "wordDelimiterGraph" => word_parts(spec).map(|parts| Some(Filter::WordParts(parts))),
        _ => refuse!("token filter {kind:?} of \"{}\" is not supported", spec.name()),
    }
}

fn word_parts(spec: &Operand<'_>) -> Result<WordParts> {
    spec.only(&["type", "delimiterOptions", "protectedWords"])?;
    let options = match spec.document("delimiterOptions")? {
        Some(options) => options,
        None => Operand::new(spec.name_of("delimiterOptions"), (&*EMPTY).into()),
    };
    options.only(&[
        "generateWordParts",
        "generateNumberParts",
        "concatenateWords",
        "concatenateNumbers",
        "concatenateAll",
        "preserveOriginal",
        "splitOnCaseChange",
        "splitOnNumerics",
        "stemEnglishPossessive",
        "ignoreKeywords",
    ])?;
    if options.boolean("ignoreKeywords")? == Some(true) {
        refuse!("\"{}\" is not supported", options.name_of("ignoreKeywords"));
    }
    let option = |name: &str, otherwise: bool| -> Result<bool> { Ok(options.boolean(name)?.unwrap_or(otherwise)) };
    let (mut kept, mut kept_ignores_case) = (HashSet::new(), false);
    if let Some(protected) = spec.document("protectedWords")? {
        protected.only(&["words", "ignoreCase"])?;
        kept = words(&protected, "words")?.unwrap_or_default();
        kept_ignores_case = protected.boolean("ignoreCase")?.unwrap_or(true);
        if kept_ignores_case {
            kept = kept.iter().map(|word| word.to_lowercase()).collect();
        }
    }
    Ok(WordParts {
        words: option("generateWordParts", true)?,
        numbers: option("generateNumberParts", true)?,
        join_words: option("concatenateWords", false)?,
        join_numbers: option("concatenateNumbers", false)?,
        join_all: option("concatenateAll", false)?,
        original: option("preserveOriginal", false)?,
        by_case: option("splitOnCaseChange", true)?,
        by_digits: option("splitOnNumerics", true)?,
        possessive: option("stemEnglishPossessive", true)?,
        kept,
        kept_ignores_case,
    })
}

static EMPTY: std::sync::LazyLock<nestor_model::Document> = std::sync::LazyLock::new(nestor_model::Document::new);
