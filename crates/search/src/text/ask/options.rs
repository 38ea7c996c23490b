//! The operand of `$search` and `$searchMeta`: an operator or a facet collector, and options beside it.

use super::super::store::Atom;
use super::facet::{self, Facet};
use super::operator::{Clause, OPERATORS};
use super::path::AskedPath;
use crate::found::{self, Found};
use crate::operand::{Operand, refuse};
use nestor_model::{DocRef, Document, Result, Value, ValueRef};

const OPTIONS: [&str; 13] = [
    "index",
    "count",
    "highlight",
    "sort",
    "searchAfter",
    "searchBefore",
    "scoreDetails",
    "returnStoredSource",
    "returnScope",
    "concurrent",
    "tracking",
    "searchNodePreference",
    "facet",
];

/// A query of `$search` or `$searchMeta`.
#[derive(Debug)]
pub struct Search {
    index: String,
    pub(in crate::text) clause: Clause,
    pub(in crate::text) facets: Vec<Facet>,
    /// `count` is exact by name.
    pub(in crate::text) counts_all: bool,
    pub(in crate::text) highlight: Option<Highlight>,
    pub(in crate::text) sort: Vec<SortKey>,
    pub(in crate::text) after: Option<Token>,
    pub(in crate::text) before: Option<Token>,
    pub(in crate::text) details: bool,
    pub(in crate::text) stored: bool,
    pub(in crate::text) scope: Option<String>,
    pub(in crate::text) is_meta: bool,
}

/// `highlight`.
#[derive(Debug)]
pub(in crate::text) struct Highlight {
    pub(in crate::text) path: Vec<AskedPath>,
    pub(in crate::text) chars: usize,
    pub(in crate::text) passages: usize,
}

/// What results are sorted by.
#[derive(Clone, Debug)]
pub(in crate::text) struct SortKey {
    pub(in crate::text) by: SortBy,
    pub(in crate::text) descending: bool,
}

/// What a part of an order compares.
#[derive(Clone, Debug)]
pub(in crate::text) enum SortBy {
    Score,
    Path {
        path: String,
        /// What has no value is higher than all that has.
        missing_is_highest: bool,
    },
}

/// A place in results, as `searchSequenceToken` tells it.
#[derive(Debug)]
pub(in crate::text) struct Token {
    pub(in crate::text) score: f32,
    /// The values that were sorted by.
    pub(in crate::text) values: Vec<Option<Atom>>,
    pub(in crate::text) key: Box<[u8]>,
    /// The number of the row within the record, where embedded documents are results.
    pub(in crate::text) row: i32,
}

impl Search {
    /// Reads the operand of `$search`.
    ///
    /// Errors: 8 for all that the server beside MongoDB refuses.
    pub fn parse(operand: DocRef<'_>) -> Result<Self> {
        let search = Self::read(operand, false)?;
        if search.scope.is_some() && !search.stored {
            refuse!("\"returnScope\" needs \"returnStoredSource\" to be true");
        }
        Ok(search)
    }

    /// Reads the operand of `$searchMeta`.
    ///
    /// Errors: 8 for all that the server beside MongoDB refuses.
    pub fn parse_meta(operand: DocRef<'_>) -> Result<Self> {
        Self::read(operand, true)
    }

    fn read(operand: DocRef<'_>, is_meta: bool) -> Result<Self> {
        let spec = Operand::new("", operand);
        let known: Vec<&str> = OPERATORS.iter().chain(&OPTIONS).copied().collect();
        spec.only(&known)?;
        let operator = Clause::among(&spec, 0)?;
        let (clause, facets) = match (operator, spec.document("facet")?) {
            (Some(operator), None) => (operator, Vec::new()),
            (None, Some(collector)) => {
                collector.only(&["operator", "facets"])?;
                let facets = facet::read(&collector)?;
                match collector.document("operator")? {
                    Some(operator) => (Clause::read(&operator)?, facets),
                    None => (Clause::all(), facets),
                }
            }
            (Some(_), Some(_)) => refuse!("there can be an operator or facet, not both"),
            (None, None) => refuse!("one of [{}, facet] must be present", OPERATORS.join(", ")),
        };
        let index = spec.string("index")?.unwrap_or("default");
        if index.is_empty() {
            refuse!("\"index\" cannot be empty");
        }
        no_effect(&spec)?;
        let (after, before) = (token(&spec, "searchAfter")?, token(&spec, "searchBefore")?);
        if after.is_some() && before.is_some() {
            refuse!("there can be searchAfter or searchBefore, not both");
        }
        Ok(Self {
            index: index.to_owned(),
            clause,
            facets,
            counts_all: counts_all(&spec)?,
            highlight: highlight(&spec)?,
            sort: sort(&spec)?,
            after,
            before,
            details: spec.boolean("scoreDetails")?.unwrap_or(false),
            stored: spec.boolean("returnStoredSource")?.unwrap_or(false),
            scope: scope(&spec)?,
            is_meta,
        })
    }

    /// What it finds where there is no index of the name that it asks for.
    pub fn without_index(&self) -> Found {
        let mut count = Document::new();
        count.push("total", Value::Int64(0));
        let mut meta = Document::new();
        meta.push("count", count);
        Found {
            hits: Default::default(),
            meta: Some(meta),
        }
    }

    /// The index it asks for: `index`, or `default`.
    pub fn index_name(&self) -> &str {
        &self.index
    }

    /// Whether it asks for `searchScoreDetails`.
    pub fn has_details(&self) -> bool {
        self.details
    }

    /// Whether it asks for `searchHighlights`.
    pub fn has_highlights(&self) -> bool {
        self.highlight.is_some()
    }

    /// Whether it asks for what the index has stored in the place of documents.
    pub fn has_stored_source(&self) -> bool {
        self.stored
    }
}

/// Options that change nothing here: there is one server, which does not tell others what was looked for.
fn no_effect(spec: &Operand<'_>) -> Result<()> {
    spec.boolean("concurrent")?;
    if let Some(preference) = spec.document("searchNodePreference")? {
        preference.only(&["key"])?;
        preference.required_string("key")?;
    }
    if let Some(tracking) = spec.document("tracking")? {
        tracking.only(&["searchTerms"])?;
        tracking.required("searchTerms")?;
        tracking.strings("searchTerms")?;
    }
    Ok(())
}

fn counts_all(spec: &Operand<'_>) -> Result<bool> {
    let Some(count) = spec.document("count")? else {
        return Ok(false);
    };
    count.only(&["type", "threshold"])?;
    // All are found anyway, so what is counted is exact whatever the threshold.
    count.integer_within("threshold", 0..=i32::MAX)?;
    let types = [("lowerBound", false), ("total", true)];
    Ok(count.choice("type", &types)?.unwrap_or(false))
}

fn highlight(spec: &Operand<'_>) -> Result<Option<Highlight>> {
    let Some(highlight) = spec.document("highlight")? else {
        return Ok(None);
    };
    highlight.only(&["path", "maxCharsToExamine", "maxNumPassages"])?;
    let positive = |field: &str, otherwise: usize| -> Result<usize> {
        let number = highlight.integer_within(field, 1..=i32::MAX)?;
        Ok(number.map_or(otherwise, |number| number as usize))
    };
    Ok(Some(Highlight {
        path: AskedPath::read(&highlight, "path")?,
        chars: positive("maxCharsToExamine", 500_000)?,
        passages: positive("maxNumPassages", 5)?,
    }))
}

fn scope(spec: &Operand<'_>) -> Result<Option<String>> {
    let Some(scope) = spec.document("returnScope")? else {
        return Ok(None);
    };
    scope.only(&["path"])?;
    Ok(Some(scope.required_string("path")?.to_owned()))
}

fn sort(spec: &Operand<'_>) -> Result<Vec<SortKey>> {
    let Some(sort) = spec.document("sort")? else {
        return Ok(Vec::new());
    };
    let keys = sort.doc().iter().map(|(name, value)| sort_key(&sort, name, value));
    let keys: Vec<SortKey> = keys.collect::<Result<_>>()?;
    match keys.is_empty() {
        true => refuse!("\"sort\" cannot be empty"),
        false => Ok(keys),
    }
}

fn sort_key(sort: &Operand<'_>, path: &str, value: ValueRef<'_>) -> Result<SortKey> {
    let ValueRef::Document(doc) = value else {
        // An order may stand by itself: it reads as the only field of a document does.
        return Ok(SortKey {
            descending: order(&sort.name_of(path), value)?,
            by: SortBy::Path {
                path: path.to_owned(),
                missing_is_highest: false,
            },
        });
    };
    let key = Operand::new(sort.name_of(path), doc);
    if let Some(meta) = key.string("$meta")? {
        key.only(&["$meta", "order"])?;
        if meta != "searchScore" {
            refuse!("\"{}\" must be \"searchScore\"", key.name_of("$meta"));
        }
        return Ok(SortKey {
            by: SortBy::Score,
            descending: match key.get("order") {
                Some(value) => order(&key.name_of("order"), value)?,
                None => true,
            },
        });
    }
    key.only(&["order", "noData"])?;
    let missing = [("lowest", false), ("highest", true)];
    Ok(SortKey {
        descending: order(&key.name_of("order"), key.required("order")?)?,
        by: SortBy::Path {
            path: path.to_owned(),
            missing_is_highest: key.choice("noData", &missing)?.unwrap_or(false),
        },
    })
}

/// Whether an order descends.
fn order(name: &str, value: ValueRef<'_>) -> Result<bool> {
    match value {
        ValueRef::Int32(1) | ValueRef::Int64(1) => Ok(false),
        ValueRef::Int32(-1) | ValueRef::Int64(-1) => Ok(true),
        ValueRef::Double(1.0) => Ok(false),
        ValueRef::Double(-1.0) => Ok(true),
        _ => refuse!("\"{name}\" must be 1 or -1"),
    }
}

fn token(spec: &Operand<'_>, field: &str) -> Result<Option<Token>> {
    let Some(written) = spec.string(field)? else {
        return Ok(None);
    };
    match found::Token::read(written).and_then(Token::of) {
        Some(token) => Ok(Some(token)),
        None => refuse!("\"{field}\" is no token of a search"),
    }
}

impl Token {
    fn of(token: found::Token) -> Option<Self> {
        let values = token.place.values.iter();
        Some(Self {
            score: token.score as f32,
            values: values
                .map(|value| Atom::sorted(value.as_ref()))
                .collect::<Option<_>>()?,
            key: token.key,
            row: token.place.row,
        })
    }
}
