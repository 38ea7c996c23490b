//! What specifications of text indexes may say, and how they are stored.

use super::{KIND, SCORE, TERM};
use nestor_model::index_spec::{IndexSpec, KeyOrder};
use nestor_model::number::{Num, whole_number};
use nestor_model::{Document, Result, Value, ValueRef, bail};
use nestor_query::text::{DEFAULT_LANGUAGE, Language, WHOLE_DOCUMENT};
use std::collections::BTreeMap;

/// The version of new indexes.
const CURRENT: i32 = 3;

/// Weights are smaller.
const WEIGHT_END: f64 = 1_000_000_000.0;

/// `weights`. Errors: 14 for a type, 67 for a path or a weight.
pub(super) fn weights(value: ValueRef<'_>, _: &Document) -> Result<Value> {
    let weights = match value {
        ValueRef::Document(weights) => weights,
        ValueRef::String(_) | ValueRef::Array(_) => {
            bail!(CannotCreateIndex, "text index option 'weights' must be an object")
        }
        other => return wrong("weights", "an object", other),
    };
    for (path, weight) in weights {
        check_weight(path, weight)?;
    }
    Ok(weights.to_document().into())
}

fn check_weight(path: &str, weight: ValueRef<'_>) -> Result<()> {
    let Some(number) = Num::from_ref(weight).map(Num::to_f64) else {
        bail!(
            CannotCreateIndex,
            "text index weight must be numeric, but '{path}' has a value of type {}",
            weight.bson_type().alias()
        );
    };
    if !(number > 0.0 && number < WEIGHT_END) {
        bail!(
            CannotCreateIndex,
            "text index weight must be in the exclusive interval (0,1000000000) but found: {number}"
        );
    }
    let is_field = |path: &str| path.split('.').all(|part| !part.is_empty() && !part.starts_with('$'));
    if path != WHOLE_DOCUMENT && !is_field(path) {
        bail!(
            CannotCreateIndex,
            "text index weights cannot be on a path like '{path}'"
        );
    }
    Ok(())
}

/// `default_language`. Error: 14; whether there is such a language depends on the version.
pub(super) fn default_language(value: ValueRef<'_>, _: &Document) -> Result<Value> {
    string("default_language", value)
}

/// `language_override`. Errors: 14, 67 for what is no name of a field.
pub(super) fn language_override(value: ValueRef<'_>, _: &Document) -> Result<Value> {
    let field = string("language_override", value)?;
    let is_name = |name: &str| !(name.is_empty() || name.starts_with('$') || name.contains('.'));
    if !field.as_str().is_some_and(is_name) {
        bail!(CannotCreateIndex, "language_override is not valid");
    }
    Ok(field)
}

fn string(name: &str, value: ValueRef<'_>) -> Result<Value> {
    match value {
        ValueRef::String(_) => Ok(value.to_value()),
        other => wrong(name, "a string", other),
    }
}

/// `textIndexVersion`. Errors: 14, 67 for a version that there is not.
pub(super) fn version(value: ValueRef<'_>, _: &Document) -> Result<Value> {
    if !value.is_number() {
        return wrong("textIndexVersion", "a number", value);
    }
    match whole_number(value) {
        Some(version @ 1..=3) if !matches!(value, ValueRef::Decimal128(_)) => Ok(Value::Int32(version as i32)),
        _ => bail!(
            CannotCreateIndex,
            "bad textIndexVersion: {value:?}, only versions 1, 2 and 3 are supported"
        ),
    }
}

fn wrong<T>(name: &str, wanted: &str, value: ValueRef<'_>) -> Result<T> {
    bail!(
        TypeMismatch,
        "The field '{name}' must be {wanted}, but got {}",
        value.bson_type().alias()
    )
}

/// Checks a specification and brings it into the form in which it is stored. One that has that form stays as it is.
///
/// Error: 67.
pub(super) fn check(spec: IndexSpec) -> Result<IndexSpec> {
    let simple = |collation: &Document| collation.get("locale").and_then(ValueRef::as_str) == Some("simple");
    if let Some(collation) = spec.collation.as_ref().filter(|collation| !simple(collation)) {
        bail!(
            CannotCreateIndex,
            "Index type 'text' does not support collation: {collation:?}"
        );
    }
    let mut weights: BTreeMap<String, Value> = BTreeMap::new();
    let key = stored_key(&spec, &mut weights)?;
    let given = spec.option("weights").and_then(ValueRef::as_document);
    for (path, weight) in given.into_iter().flatten() {
        check_weight(path, weight)?;
        weights.insert(path.to_owned(), listed_weight(weight));
    }
    if weights.is_empty() {
        bail!(CannotCreateIndex, "a text index needs fields, or weights of fields");
    }
    let version = spec
        .option("textIndexVersion")
        .and_then(whole_number)
        .unwrap_or(CURRENT.into());
    let language = spec.option("default_language").and_then(ValueRef::as_str);
    let language = language
        .filter(|language| !language.is_empty())
        .unwrap_or(DEFAULT_LANGUAGE);
    if version > 1 && Language::named(language).is_none() {
        bail!(
            CannotCreateIndex,
            "default_language is not valid: unsupported language: \"{language}\""
        );
    }
    let field = spec
        .option("language_override")
        .and_then(ValueRef::as_str)
        .unwrap_or("language");
    let mut listed = Document::new();
    for (name, value) in spec.listed().as_raw().iter() {
        match name {
            "key" => listed.push("key", key.clone()),
            name if KIND.options.iter().any(|option| option.name == name) => {}
            name => listed.push(name, value.to_value()),
        }
    }
    let weights: Document = weights
        .into_iter()
        .map(|(path, weight)| (path.as_str().into(), weight))
        .collect();
    listed.push("weights", weights);
    listed.push("default_language", language);
    listed.push("language_override", field);
    listed.push("textIndexVersion", version as i32);
    IndexSpec::parse(listed.to_raw())
}

/// A whole weight is listed as an int.
fn listed_weight(weight: ValueRef<'_>) -> Value {
    match whole_number(weight).and_then(|weight| i32::try_from(weight).ok()) {
        Some(weight) => Value::Int32(weight),
        None => weight.to_value(),
    }
}

/// The key pattern with one part for the terms of all texts, and one for what they score. Texts get the weight 1.
fn stored_key(spec: &IndexSpec, weights: &mut BTreeMap<String, Value>) -> Result<Document> {
    let mut key = Document::new();
    // Whether texts have been seen, and something else behind them.
    let (mut texts, mut behind) = (false, false);
    let mut score = false;
    for ((path, direction), part) in spec.key_pattern.iter().zip(&spec.key) {
        let is_text = matches!(part.order, KeyOrder::Special(_));
        if path == SCORE {
            score = texts && !behind && key.get(TERM).is_some();
            if !score {
                bail!(
                    CannotCreateIndex,
                    "'{SCORE}' is a part of text indexes, behind '{TERM}'"
                );
            }
            continue;
        }
        if is_text {
            if behind || score {
                bail!(
                    CannotCreateIndex,
                    "'text' fields in index must all be adjacent: {:?}",
                    spec.key_pattern
                );
            }
            if !texts {
                key.push(TERM, "text");
                key.push(SCORE, 1);
            }
            texts = true;
            if path != TERM {
                weights.insert(path.to_owned(), Value::Int32(1));
            }
            continue;
        }
        if path == TERM || part.is_wildcard() {
            bail!(
                CannotCreateIndex,
                "'{path}' cannot be a field of a text index beside its texts"
            );
        }
        behind = texts;
        key.push(path, direction.to_value());
    }
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::extjson::{self, Form};

    fn checked(spec: &str) -> Result<String> {
        let spec = extjson::parse_document(spec).expect("JSON");
        let spec = check(IndexSpec::parse(spec.to_raw())?)?;
        let again = check(spec.clone())?;
        assert_eq!(again.listed(), spec.listed());
        Ok(extjson::to_string(
            ValueRef::Document(spec.listed().as_raw().as_doc()),
            Form::Relaxed,
        ))
    }

    #[test]
    fn texts_become_one_part_with_weights() {
        let rest = r#""default_language":"english","language_override":"language","textIndexVersion":3}"#;
        for (spec, key, weights) in [
            (
                r#"{"key":{"a":"text"},"name":"t"}"#,
                r#"{"_fts":"text","_ftsx":1}"#,
                r#"{"a":1}"#,
            ),
            (
                r#"{"key":{"x":1,"b":"text","a":"text","y":-1},"name":"t","weights":{"b":10,"c":2.5}}"#,
                r#"{"x":1,"_fts":"text","_ftsx":1,"y":-1}"#,
                r#"{"a":1,"b":10,"c":2.5}"#,
            ),
            (
                r#"{"key":{"$**":"text"},"name":"t"}"#,
                r#"{"_fts":"text","_ftsx":1}"#,
                r#"{"$**":1}"#,
            ),
        ] {
            let expected = format!(r#"{{"key":{key},"name":"t","weights":{weights},{rest}"#);
            assert_eq!(checked(spec).expect(spec), expected, "{spec}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for spec in [
            r#"{"key":{"a":"text","b":1,"c":"text"},"name":"t"}"#,
            r#"{"key":{"a":"text","$**":1},"name":"t"}"#,
            r#"{"key":{"_fts":"text","_ftsx":1},"name":"t"}"#,
            r#"{"key":{"_ftsx":1,"a":"text"},"name":"t"}"#,
            r#"{"key":{"a":"text","_ftsx":1},"name":"t","weights":{"a":0}}"#,
            r#"{"key":{"a":"text"},"name":"t","default_language":"klingon"}"#,
            r#"{"key":{"a":"text"},"name":"t","collation":{"locale":"en"}}"#,
            r#"{"key":{"a":"text"},"name":"t","weights":{"$a":1}}"#,
        ] {
            assert_eq!(checked(spec).expect_err(spec).code().number(), 67, "{spec}");
        }
        let old = r#"{"key":{"a":"text"},"name":"t","default_language":"klingon","textIndexVersion":1}"#;
        assert!(checked(old).is_ok());
    }
}
