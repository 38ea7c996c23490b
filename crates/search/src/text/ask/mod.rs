//! What `$search` and `$searchMeta` ask for, as it is written.
//!
//! Reading order: `path`, `value`, `score`, `operator`, `span`, `geo`, `query_string`, `facet`, `options` (the whole operand).

mod facet;
mod geo;
mod operator;
mod options;
mod path;
mod query_string;
mod score;
mod span;
mod value;

pub(super) use facet::{Buckets, Facet, FacetKind};
pub(super) use geo::{GeoAsk, Relation};
pub(super) use operator::{Asked, Clause, Compound, Fuzzy, Operator, Pattern};
pub use options::Search;
pub(super) use options::{Highlight, SortBy, SortKey, Token};
pub(super) use path::AskedPath;
pub(super) use query_string::{Occur, QueryNode};
pub(super) use score::{Aggregate, Expression, Score};
pub(super) use span::{Span, SpanClause};
pub(super) use value::{CLAUSES_MAX, Limits, Origin};
