//! The query that the words of a read are.

use crate::read;
use crate::shape::Words;
use nestor_model::{DocRef, Result, bail};
use nestor_planner::FindQuery;
use nestor_query::env::Scope;
use nestor_query::matcher::MatchExpr;
use nestor_query::projection::{Policy, Projection};
use nestor_query::sort::SortSpec;
use std::sync::Arc;

/// Refuses the positional operator beside an expression, which does not say which element of an array it is about.
///
/// Errors: 224.
pub fn check_positional(projection: &Projection, filter: &MatchExpr) -> Result<()> {
    if projection.needs_match_details() && filter.has_expr() {
        bail!(
            QueryFeatureNotAllowed,
            "Cannot use $expr and the positional projection operator in one query"
        );
    }
    Ok(())
}

/// Adds order and projection.
///
/// Errors: theirs, and 2 for a natural order with other fields.
pub fn ordered(words: &Words<'_>, query: &mut FindQuery, scope: &mut Scope) -> Result<()> {
    if let Some(sort) = words.sort.filter(|sort| !sort.is_empty()) {
        match read::natural(DocRef::Raw(sort))? {
            Some(forward) => {
                if sort.iter().count() > 1 {
                    bail!(
                        BadValue,
                        "$natural sort cannot be set to a value other than -1 or 1 with other fields"
                    );
                }
                query.natural = Some(forward);
            }
            None => {
                query.sort = Some(Arc::new(SortSpec::parse(DocRef::Raw(sort))?.under(scope.collator())));
                query.check_scores()?;
            }
        }
    }
    if let Some(projection) = words.projection.filter(|projection| !projection.is_empty()) {
        let projection = Projection::parse(DocRef::Raw(projection), scope, Policy::Find)?;
        projection.check_find_metadata(
            query.sort.is_some(),
            query.filter.near().is_some(),
            query.filter.text().is_some(),
        )?;
        check_positional(&projection, &query.filter)?;
        query.projection = Some(Arc::new(projection));
    }
    Ok(())
}
