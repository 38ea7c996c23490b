//! What `$vectorSearch` asks for.

use super::definition::DIMENSIONS_MAX;
use super::read;
use super::values::{Elements, NoVector};
use nestor_model::number::Num;
use nestor_model::{DocRef, Document, Error, ErrorCode, Result, Str, ValueRef, bail};
use nestor_query::env::Scope;
use nestor_query::matcher::{Context, MatchExpr};

/// The largest `numCandidates`.
const CANDIDATES_MAX: i64 = 10_000;

/// A query of `$vectorSearch`.
#[derive(Debug)]
pub struct Nearest {
    pub(super) index: Str,
    pub(super) path: Str,
    pub(super) vector: Elements,
    /// At least 1.
    pub(super) limit: u32,
    pub(super) is_exact: bool,
    /// A filter that parses as one of MQL.
    pub(super) filter: Option<Document>,
    /// Not looked into so far.
    pub(super) parent_filter: Option<Document>,
    /// Given with `nestedOptions`.
    pub(super) score_mode: Option<ScoreMode>,
    pub(super) returns_stored_source: bool,
    pub(super) explain: Option<ExplainOptions>,
    /// It is part of an explain.
    pub(super) is_explained: bool,
}

/// What the score of a document is whose elements have scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScoreMode {
    Max,
    Average,
}

/// `explainOptions`.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExplainOptions {
    /// There are `traceDocumentIds`, and none of them is null.
    pub(super) has_ids: bool,
}

impl Nearest {
    /// Reads the operand of the stage. Options that it does not know are skipped, as MongoDB does.
    ///
    /// Errors: 8575100, 7912700 for `limit`, 10065 for a `filter` that is no document and those of filters, all of which MongoDB itself looks
    /// at first; 8 for all that the server beside it refuses.
    pub fn parse(operand: DocRef<'_>) -> Result<Self> {
        check_limit(operand.get("limit"))?;
        let filter = filter(operand.get("filter"))?;
        let index = name("index", operand)?;
        let path = name("path", operand)?;
        if read::given(operand, "query").is_some() {
            bail!(
                UnknownError,
                "\"query\", for whose text the server computes the vector, is not supported"
            );
        }
        let vector = vector(read::given(operand, "queryVector"))?;
        let limit = limit(read::given(operand, "limit"))?;
        let is_exact = read::flag("exact", read::given(operand, "exact"))?.unwrap_or(false);
        check_candidates(read::given(operand, "numCandidates"), is_exact, limit)?;
        let parent_filter = read::document("parentFilter", read::given(operand, "parentFilter"))?;
        check_preference(read::given(operand, "searchNodePreference"))?;
        Ok(Self {
            index,
            path,
            vector,
            limit,
            is_exact,
            filter,
            parent_filter: parent_filter.map(DocRef::to_document),
            score_mode: score_mode(read::given(operand, "nestedOptions"))?,
            returns_stored_source: read::flag("returnStoredSource", read::given(operand, "returnStoredSource"))?
                .unwrap_or(false),
            explain: explain_options(read::given(operand, "explainOptions"))?,
            is_explained: false,
        })
    }

    /// The index it asks for.
    pub fn index_name(&self) -> &str {
        &self.index
    }

    /// The most documents that it gives.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// The same as a part of an explain, which alone may have `explainOptions`.
    #[must_use]
    pub fn explained(mut self) -> Self {
        self.is_explained = true;
        self
    }
}

/// What MongoDB itself says of `limit`, before it asks for anything.
fn check_limit(value: Option<ValueRef<'_>>) -> Result<()> {
    let Some(value) = value else { return Ok(()) };
    let Some(number) = Num::from_ref(value) else {
        bail!(8575100, "\"limit\" must be a number, not {}", read::kind(value));
    };
    // What is less than one without its fraction; also what is no number.
    if number.is_nan() || number.to_f64() < 1.0 {
        bail!(7912700, "\"limit\" must be positive");
    }
    Ok(())
}

fn limit(value: Option<ValueRef<'_>>) -> Result<u32> {
    match read::whole("limit", value)?.map(u32::try_from) {
        Some(Ok(limit)) => Ok(limit),
        Some(Err(_)) => bail!(UnknownError, "\"limit\" must be positive"),
        None => bail!(UnknownError, "\"limit\" is required"),
    }
}

fn filter(value: Option<ValueRef<'_>>) -> Result<Option<Document>> {
    match value {
        None => Ok(None),
        Some(ValueRef::Document(filter)) => {
            parse_filter(filter)?;
            Ok(Some(filter.to_document()))
        }
        Some(ValueRef::Array(_)) => bail!(UnknownError, "\"filter\" must be a document, not array"),
        Some(value) => bail!(10065, "\"filter\" must be a document, not {}", read::kind(value)),
    }
}

/// A filter of MQL.
pub(super) fn parse_filter(filter: DocRef<'_>) -> Result<MatchExpr> {
    MatchExpr::parse_in(filter, &mut Scope::new(), Context::Validator)
}

fn name(option: &str, operand: DocRef<'_>) -> Result<Str> {
    match read::text(option, read::given(operand, option))? {
        Some("") => bail!(UnknownError, "\"{option}\" must not be empty"),
        Some(name) => Ok(name.into()),
        None => bail!(UnknownError, "\"{option}\" is required"),
    }
}

fn vector(value: Option<ValueRef<'_>>) -> Result<Elements> {
    let Some(value) = value else {
        bail!(UnknownError, "\"queryVector\" is required");
    };
    let problem = match Elements::read(value, DIMENSIONS_MAX) {
        Ok(vector) => return Ok(vector),
        Err(NoVector::Type) => format!("an array of numbers or a binary vector, not {}", read::kind(value)),
        Err(NoVector::Element) => "an array of int, long and double only".to_string(),
        Err(NoVector::Subtype) => "a binary value of subtype 9".to_string(),
        Err(NoVector::Malformed) => "a well-formed binary vector".to_string(),
    };
    Err(Error::new(
        ErrorCode::UnknownError,
        format!("\"queryVector\" must be {problem}"),
    ))
}

fn check_candidates(value: Option<ValueRef<'_>>, is_exact: bool, limit: u32) -> Result<()> {
    match (read::whole("numCandidates", value)?, is_exact) {
        (None, true) => Ok(()),
        (Some(_), true) => bail!(UnknownError, "\"numCandidates\" must not be given with \"exact\" true"),
        (None, false) => bail!(UnknownError, "\"numCandidates\" is required unless \"exact\" is true"),
        (Some(candidates), false) if !(1..=CANDIDATES_MAX).contains(&candidates) => {
            bail!(UnknownError, "\"numCandidates\" must be between 1 and {CANDIDATES_MAX}")
        }
        (Some(candidates), false) if candidates < i64::from(limit) => {
            bail!(UnknownError, "\"limit\" must not be greater than \"numCandidates\"")
        }
        _ => Ok(()),
    }
}

fn check_preference(value: Option<ValueRef<'_>>) -> Result<()> {
    let Some(preference) = read::document("searchNodePreference", value)? else {
        return Ok(());
    };
    match read::text("searchNodePreference.key", read::given(preference, "key"))? {
        Some(_) => Ok(()),
        None => bail!(UnknownError, "\"searchNodePreference.key\" is required"),
    }
}

fn score_mode(value: Option<ValueRef<'_>>) -> Result<Option<ScoreMode>> {
    let Some(options) = read::document("nestedOptions", value)? else {
        return Ok(None);
    };
    read::known("nestedOptions", options, &["scoreMode"])?;
    match read::text("nestedOptions.scoreMode", read::given(options, "scoreMode"))? {
        None | Some("max") => Ok(Some(ScoreMode::Max)),
        Some("avg") => Ok(Some(ScoreMode::Average)),
        Some(other) => bail!(
            UnknownError,
            "\"nestedOptions.scoreMode\" must be one of avg, max: {other}"
        ),
    }
}

fn explain_options(value: Option<ValueRef<'_>>) -> Result<Option<ExplainOptions>> {
    let Some(options) = read::document("explainOptions", value)? else {
        return Ok(None);
    };
    read::known("explainOptions", options, &["traceDocumentIds"])?;
    match read::given(options, "traceDocumentIds") {
        None => Ok(Some(ExplainOptions { has_ids: false })),
        Some(ValueRef::Array(ids)) if ids.is_empty() => {
            bail!(UnknownError, "\"explainOptions.traceDocumentIds\" must not be empty")
        }
        Some(ValueRef::Array(ids)) => Ok(Some(ExplainOptions {
            has_ids: !ids.iter().any(ValueRef::is_nullish),
        })),
        Some(value) => bail!(
            UnknownError,
            "\"explainOptions.traceDocumentIds\" must be an array, not {}",
            read::kind(value)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::extjson;

    #[test]
    fn operands() {
        const GOOD: &str = r#""index": "i", "path": "v", "queryVector": [1, 2.5], "numCandidates": 20"#;
        let with = |options: &str| format!("{{{GOOD}, {options}}}");
        let limited = |options: &str| format!(r#"{{{GOOD}, "limit": 3, {options}}}"#);
        let exact =
            |options: &str| format!(r#"{{"index": "i", "path": "v", "queryVector": [1], "exact": true, {options}}}"#);
        let cases = [
            (with(r#""limit": 3"#), 0),
            (with(r#""limit": 3.0"#), 0),
            (with(r#""limit": {"$numberLong": "20"}"#), 0),
            (with(r#""limit": 21"#), 8),
            (with(r#""limit": 1.5"#), 8),
            (with(r#""limit": {"$numberDecimal": "3"}"#), 8),
            (with(r#""limit": {"$numberDecimal": "0.9"}"#), 7912700),
            (with(r#""limit": {"$numberDouble": "NaN"}"#), 7912700),
            (with(r#""limit": {"$numberDouble": "Infinity"}"#), 8),
            (with(r#""limit": {"$numberDouble": "-Infinity"}"#), 7912700),
            (with(r#""limit": -3"#), 7912700),
            (with(r#""limit": 0.99"#), 7912700),
            (with(r#""limit": null"#), 8575100),
            (with(r#""limit": "3""#), 8575100),
            (with(r#""limit": {"$numberLong": "2147483648"}"#), 8),
            (format!("{{{GOOD}}}"), 8),
            (limited(r#""unknown": 1"#), 0),
            (limited(r#""query": "text""#), 8),
            (limited(r#""filter": {}"#), 0),
            (limited(r#""filter": []"#), 8),
            (limited(r#""filter": null"#), 10065),
            (limited(r#""filter": 3"#), 10065),
            (limited(r#""filter": {"a": {"$near": [0, 0]}}"#), 5626500),
            (limited(r#""filter": {"$text": {"$search": "x"}}"#), 2),
            (limited(r#""filter": {"a": {"$odd": 1}}"#), 2),
            (limited(r#""filter": {"$or": []}"#), 2),
            (limited(r#""filter": {"a": {"$regex": "x"}}"#), 0),
            (limited(r#""parentFilter": {"$or": []}"#), 0),
            (limited(r#""parentFilter": null"#), 0),
            (limited(r#""parentFilter": []"#), 8),
            (limited(r#""exact": null"#), 0),
            (limited(r#""exact": 0"#), 8),
            (limited(r#""exact": true"#), 8),
            (exact(r#""limit": 100000"#), 0),
            (exact(r#""limit": 5, "numCandidates": null"#), 0),
            (exact(r#""limit": 5, "numCandidates": 5"#), 8),
            (limited(r#""returnStoredSource": null"#), 0),
            (limited(r#""returnStoredSource": "yes""#), 8),
            (limited(r#""searchNodePreference": {"key": "a", "more": 1}"#), 0),
            (limited(r#""searchNodePreference": {"more": 1}"#), 8),
            (limited(r#""searchNodePreference": {"key": 1}"#), 8),
            (limited(r#""searchNodePreference": "a""#), 8),
            (limited(r#""nestedOptions": {}"#), 0),
            (limited(r#""nestedOptions": {"scoreMode": "avg"}"#), 0),
            (limited(r#""nestedOptions": {"scoreMode": "Max"}"#), 8),
            (limited(r#""nestedOptions": {"scoreMode": 1}"#), 8),
            (limited(r#""nestedOptions": {"mode": "max"}"#), 8),
            (limited(r#""nestedOptions": []"#), 8),
            (limited(r#""explainOptions": {}"#), 0),
            (limited(r#""explainOptions": {"traceDocumentIds": [1, "a"]}"#), 0),
            (limited(r#""explainOptions": {"traceDocumentIds": []}"#), 8),
            (limited(r#""explainOptions": {"traceDocumentIds": 1}"#), 8),
            (limited(r#""explainOptions": {"ids": [1]}"#), 8),
            (limited(r#""explainOptions": 1"#), 8),
            (
                r#"{"path": "v", "queryVector": [1], "numCandidates": 5, "limit": 5}"#.into(),
                8,
            ),
            (
                r#"{"index": "", "path": "v", "queryVector": [1], "numCandidates": 5, "limit": 5}"#.into(),
                8,
            ),
            (
                r#"{"index": "i", "path": 5, "queryVector": [1], "numCandidates": 5, "limit": 5}"#.into(),
                8,
            ),
            (
                r#"{"index": "i", "path": "v", "queryVector": null, "numCandidates": 5, "limit": 5}"#.into(),
                8,
            ),
            (
                r#"{"index": "i", "path": "v", "queryVector": ["$a"], "numCandidates": 5, "limit": 5}"#.into(),
                8,
            ),
            (
                r#"{"index": "i", "path": "v", "queryVector": [1], "numCandidates": 0, "limit": 5}"#.into(),
                8,
            ),
            (
                r#"{"index": "i", "path": "v", "queryVector": [1], "numCandidates": 10001, "limit": 5}"#.into(),
                8,
            ),
            (
                r#"{"index": "i", "path": "v", "queryVector": [1], "numCandidates": "5", "limit": 5}"#.into(),
                8,
            ),
            (
                r#"{"index": "i", "path": "v", "queryVector": [1], "numCandidates": 5.5, "limit": 5}"#.into(),
                8,
            ),
            (
                r#"{"index": "i", "path": "v", "queryVector": [1], "limit": 5}"#.into(),
                8,
            ),
            ("{}".into(), 8),
        ];
        for (text, expected) in cases {
            let document = extjson::parse_document(&text).expect("a document");
            let code = Nearest::parse(document.as_ref()).map_or_else(|error| error.code().number(), |_| 0);
            assert_eq!(code, expected, "{text}");
        }
    }
}
