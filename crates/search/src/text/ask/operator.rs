//! Operators.

use super::super::store::Atom;
use super::geo::GeoAsk;
use super::path::AskedPath;
use super::query_string::{self, QueryNode};
use super::score::Score;
use super::span::SpanClause;
use super::value::{self, CLAUSES_MAX, Limits, Origin, query};
use crate::operand::{Operand, refuse};
use nestor_model::{Document, Result};

/// Operators within operators.
const DEPTH_MAX: usize = 100;

/// The names of the operators; those that are only refused are among them.
pub(super) const OPERATORS: [&str; 22] = [
    "autocomplete",
    "compound",
    "embeddedDocument",
    "equals",
    "exists",
    "geoShape",
    "geoWithin",
    "hasAncestor",
    "hasRoot",
    "in",
    "knnBeta",
    "moreLikeThis",
    "near",
    "phrase",
    "queryString",
    "range",
    "regex",
    "search",
    "span",
    "text",
    "vectorSearch",
    "wildcard",
];

/// An operator, and what becomes of its score.
#[derive(Debug)]
pub(in crate::text) struct Clause {
    pub(in crate::text) operator: Operator,
    pub(in crate::text) score: Option<Score>,
    /// Facets that count as if the operator were not there.
    pub(in crate::text) spares: Vec<String>,
}

/// What an operator looks for, and in which fields.
#[derive(Debug)]
pub(in crate::text) struct Asked {
    pub(in crate::text) query: Vec<String>,
    pub(in crate::text) path: Vec<AskedPath>,
}

/// An operator.
#[derive(Debug)]
pub(in crate::text) enum Operator {
    Text {
        asked: Asked,
        /// All terms, not any.
        all: bool,
        fuzzy: Option<Fuzzy>,
        synonyms: Option<String>,
    },
    Phrase {
        asked: Asked,
        slop: u32,
        synonyms: Option<String>,
    },
    Pattern {
        asked: Asked,
        pattern: Pattern,
        allow_analyzed: bool,
    },
    Autocomplete {
        query: Vec<String>,
        path: String,
        sequential: bool,
        fuzzy: Option<Fuzzy>,
    },
    Compound(Compound),
    Equals {
        path: String,
        value: Atom,
    },
    In {
        paths: Vec<String>,
        values: Vec<Atom>,
    },
    Range {
        paths: Vec<String>,
        limits: Limits,
    },
    Near {
        paths: Vec<String>,
        origin: Origin,
        pivot: f64,
    },
    Exists {
        path: String,
    },
    Geo {
        paths: Vec<String>,
        ask: GeoAsk,
    },
    QueryString {
        default_path: String,
        query: QueryNode,
    },
    MoreLikeThis {
        like: Vec<Document>,
    },
    Embedded {
        path: String,
        operator: Box<Clause>,
    },
    HasAncestor {
        path: String,
        operator: Box<Clause>,
    },
    HasRoot {
        operator: Box<Clause>,
    },
    Span(Box<SpanClause>),
    /// All documents: a facet collector without an operator.
    All,
}

/// How terms are compared with a pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::text) enum Pattern {
    Regex,
    Wildcard,
}

/// How far terms may be from those that are asked for.
#[derive(Clone, Copy, Debug)]
pub(in crate::text) struct Fuzzy {
    pub(in crate::text) edits: usize,
    /// Characters at the beginning that must be the same.
    pub(in crate::text) prefix: usize,
    pub(in crate::text) expansions: usize,
}

/// `compound`.
#[derive(Debug)]
pub(in crate::text) struct Compound {
    pub(in crate::text) must: Vec<Clause>,
    pub(in crate::text) must_not: Vec<Clause>,
    pub(in crate::text) should: Vec<Clause>,
    pub(in crate::text) filter: Vec<Clause>,
    /// How many of `should` must hold.
    pub(in crate::text) least: usize,
}

impl Clause {
    /// All documents.
    pub(super) fn all() -> Self {
        Self {
            operator: Operator::All,
            score: None,
            spares: Vec::new(),
        }
    }

    /// Calls `each` with the names of the synonyms that operators ask by.
    pub(in crate::text) fn for_each_synonyms<'s>(&'s self, each: &mut dyn FnMut(&'s str) -> Result<()>) -> Result<()> {
        match &self.operator {
            Operator::Text { synonyms, .. } | Operator::Phrase { synonyms, .. } => {
                synonyms.as_deref().map_or(Ok(()), each)
            }
            Operator::Compound(compound) => {
                let groups = [&compound.must, &compound.must_not, &compound.should, &compound.filter];
                let mut clauses = groups.into_iter().flatten();
                clauses.try_for_each(|clause| clause.for_each_synonyms(each))
            }
            Operator::Embedded { operator, .. }
            | Operator::HasAncestor { operator, .. }
            | Operator::HasRoot { operator } => operator.for_each_synonyms(each),
            _ => Ok(()),
        }
    }

    /// The one operator that a document has.
    fn only_one(spec: &Operand<'_>, depth: usize) -> Result<Self> {
        spec.only(&OPERATORS)?;
        match Self::among(spec, depth)? {
            Some(clause) => Ok(clause),
            None => refuse!("\"{}\" must have one of [{}]", spec.name(), OPERATORS.join(", ")),
        }
    }

    /// The operator of a facet collector.
    pub(super) fn read(spec: &Operand<'_>) -> Result<Self> {
        Self::only_one(spec, 0)
    }

    /// The operator among the fields of a document, if there is one.
    pub(super) fn among(spec: &Operand<'_>, depth: usize) -> Result<Option<Self>> {
        if depth > DEPTH_MAX {
            refuse!("\"{}\" lies deeper than {DEPTH_MAX} levels", spec.name());
        }
        let mut given = OPERATORS.iter().filter(|name| spec.get(name).is_some());
        match (given.next(), given.next()) {
            (None, _) => Ok(None),
            (Some(name), None) => Self::of(name, &spec.required_document(name)?, depth).map(Some),
            (Some(one), Some(other)) => refuse!("{one} and {other} are two operators where there can be one"),
        }
    }

    fn of(name: &str, spec: &Operand<'_>, depth: usize) -> Result<Self> {
        let score = Score::read(spec, name == "embeddedDocument")?;
        let spares = match name {
            "equals" | "in" | "range" | "compound" => spec.strings("doesNotAffect")?.unwrap_or_default(),
            _ => Vec::new(),
        };
        let spares = spares.into_iter().map(str::to_owned).collect();
        Ok(Self {
            operator: operator(name, spec, depth)?,
            score,
            spares,
        })
    }
}

fn operator(name: &str, spec: &Operand<'_>, depth: usize) -> Result<Operator> {
    Ok(match name {
        "text" => text(spec)?,
        "phrase" => {
            spec.only(&["query", "path", "slop", "synonyms", "score"])?;
            Operator::Phrase {
                asked: asked(spec, true)?,
                slop: spec.integer_within("slop", 0..=i32::MAX)?.unwrap_or(0) as u32,
                synonyms: synonyms(spec)?,
            }
        }
        "regex" | "wildcard" => {
            spec.only(&["query", "path", "allowAnalyzedField", "score"])?;
            Operator::Pattern {
                asked: asked(spec, false)?,
                pattern: if name == "regex" {
                    Pattern::Regex
                } else {
                    Pattern::Wildcard
                },
                allow_analyzed: spec.boolean("allowAnalyzedField")?.unwrap_or(false),
            }
        }
        "autocomplete" => {
            spec.only(&["query", "path", "tokenOrder", "fuzzy", "score"])?;
            let orders = [("any", false), ("sequential", true)];
            Operator::Autocomplete {
                query: some_text(spec, query(spec)?)?,
                path: spec.required_string("path")?.to_owned(),
                sequential: spec.choice("tokenOrder", &orders)?.unwrap_or(false),
                fuzzy: fuzzy(spec)?,
            }
        }
        "compound" => Operator::Compound(compound(spec, depth)?),
        "equals" => {
            spec.only(&["path", "value", "score", "doesNotAffect"])?;
            let path = spec.required_string("path")?.to_owned();
            let Some(value) = spec.doc().get("value") else {
                refuse!("\"{}\" is required", spec.name_of("value"));
            };
            Operator::Equals {
                path,
                value: value::equal(&spec.name_of("value"), value)?,
            }
        }
        "in" => {
            spec.only(&["path", "value", "score", "doesNotAffect"])?;
            Operator::In {
                paths: paths(spec)?,
                values: value::listed_values(spec, "value")?,
            }
        }
        "range" => {
            spec.only(&["path", "gt", "gte", "lt", "lte", "score", "doesNotAffect"])?;
            Operator::Range {
                paths: paths(spec)?,
                limits: Limits::read(spec)?,
            }
        }
        "near" => {
            spec.only(&["path", "origin", "pivot", "score"])?;
            let (paths, origin) = (paths(spec)?, Origin::read(spec, "origin")?);
            spec.required("pivot")?;
            let pivot = spec.number("pivot")?.unwrap_or_default();
            if !(pivot.is_finite() && pivot > 0.0) {
                refuse!("\"{}\" must be a positive number", spec.name_of("pivot"));
            }
            Operator::Near { paths, origin, pivot }
        }
        "exists" => {
            spec.only(&["path", "score"])?;
            Operator::Exists {
                path: spec.required_string("path")?.to_owned(),
            }
        }
        "geoWithin" => {
            spec.only(&["path", "box", "circle", "geometry", "score"])?;
            Operator::Geo {
                paths: paths(spec)?,
                ask: GeoAsk::within(spec)?,
            }
        }
        "geoShape" => {
            spec.only(&["path", "relation", "geometry", "score"])?;
            Operator::Geo {
                paths: paths(spec)?,
                ask: GeoAsk::shape(spec)?,
            }
        }
        "queryString" => {
            spec.only(&["defaultPath", "query", "score"])?;
            let default_path = spec.required_string("defaultPath")?.to_owned();
            let written = spec.required_string("query")?;
            Operator::QueryString {
                query: query_string::parse(&spec.name_of("query"), written)?,
                default_path,
            }
        }
        "moreLikeThis" => {
            spec.only(&["like", "score"])?;
            spec.required("like")?;
            let like = spec.documents("like")?.unwrap_or_default();
            Operator::MoreLikeThis {
                like: like.iter().map(|doc| doc.doc().to_document()).collect(),
            }
        }
        "embeddedDocument" => {
            spec.only(&["path", "operator", "score"])?;
            Operator::Embedded {
                path: spec.required_string("path")?.to_owned(),
                operator: inner(spec, depth)?,
            }
        }
        "hasAncestor" => {
            spec.only(&["ancestorPath", "operator", "score"])?;
            Operator::HasAncestor {
                path: spec.required_string("ancestorPath")?.to_owned(),
                operator: inner(spec, depth)?,
            }
        }
        "hasRoot" => {
            spec.only(&["operator", "score"])?;
            Operator::HasRoot {
                operator: inner(spec, depth)?,
            }
        }
        "span" => Operator::Span(Box::new(SpanClause::read(spec, depth)?)),
        _ => refuse!("{name} is not supported within $search"),
    })
}

fn inner(spec: &Operand<'_>, depth: usize) -> Result<Box<Clause>> {
    let operator = spec.required_document("operator")?;
    Ok(Box::new(Clause::only_one(&operator, depth + 1)?))
}

fn text(spec: &Operand<'_>) -> Result<Operator> {
    spec.only(&["query", "path", "fuzzy", "matchCriteria", "synonyms", "score"])?;
    let criteria = [("all", true), ("any", false)];
    let (fuzzy, synonyms) = (fuzzy(spec)?, synonyms(spec)?);
    if fuzzy.is_some() && synonyms.is_some() {
        refuse!("\"{}\" cannot have both fuzzy and synonyms", spec.name());
    }
    Ok(Operator::Text {
        asked: asked(spec, true)?,
        all: spec.choice("matchCriteria", &criteria)?.unwrap_or(false),
        fuzzy,
        synonyms,
    })
}

fn synonyms(spec: &Operand<'_>) -> Result<Option<String>> {
    match spec.string("synonyms")? {
        Some("") => refuse!("\"{}\" cannot be empty", spec.name_of("synonyms")),
        name => Ok(name.map(str::to_owned)),
    }
}

fn asked(spec: &Operand<'_>, is_text: bool) -> Result<Asked> {
    let query = query(spec)?;
    Ok(Asked {
        query: match is_text {
            true => some_text(spec, query)?,
            false => query,
        },
        path: AskedPath::read(spec, "path")?,
    })
}

fn some_text(spec: &Operand<'_>, query: Vec<String>) -> Result<Vec<String>> {
    match query.iter().any(String::is_empty) {
        true => refuse!("\"{}\" cannot be empty", spec.name_of("query")),
        false => Ok(query),
    }
}

/// The paths of operators that take no other forms of them.
fn paths(spec: &Operand<'_>) -> Result<Vec<String>> {
    spec.required("path")?;
    let paths = spec.strings("path")?.unwrap_or_default();
    Ok(paths.into_iter().map(str::to_owned).collect())
}

fn fuzzy(spec: &Operand<'_>) -> Result<Option<Fuzzy>> {
    let Some(fuzzy) = spec.document("fuzzy")? else {
        return Ok(None);
    };
    fuzzy.only(&["maxEdits", "prefixLength", "maxExpansions"])?;
    Ok(Some(Fuzzy {
        edits: fuzzy.integer_within("maxEdits", 1..=2)?.unwrap_or(2) as usize,
        prefix: fuzzy.integer_within("prefixLength", 0..=i32::MAX)?.unwrap_or(0) as usize,
        expansions: fuzzy.integer_within("maxExpansions", 1..=1000)?.unwrap_or(50) as usize,
    }))
}

fn compound(spec: &Operand<'_>, depth: usize) -> Result<Compound> {
    spec.only(&[
        "must",
        "mustNot",
        "should",
        "filter",
        "minimumShouldMatch",
        "score",
        "doesNotAffect",
    ])?;
    let clauses = |field: &str| -> Result<Vec<Clause>> {
        let clauses = spec.documents(field)?.unwrap_or_default();
        if clauses.len() > CLAUSES_MAX {
            refuse!("\"{}\" has more than {CLAUSES_MAX} clauses", spec.name_of(field));
        }
        clauses
            .iter()
            .map(|clause| Clause::only_one(clause, depth + 1))
            .collect()
    };
    let should = clauses("should")?;
    let least = spec.integer_within("minimumShouldMatch", 0..=should.len() as i32)?;
    let compound = Compound {
        must: clauses("must")?,
        must_not: clauses("mustNot")?,
        filter: clauses("filter")?,
        should,
        least: least.unwrap_or(0) as usize,
    };
    let groups = [&compound.must, &compound.must_not, &compound.should, &compound.filter];
    match groups.iter().all(|group| group.is_empty()) {
        true => refuse!("\"{}\" must have one of must, mustNot, should and filter", spec.name()),
        false => Ok(compound),
    }
}
