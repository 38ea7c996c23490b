//! Conditions on one array element: what `$pull` and array filters test.

use super::array_filters::check_identifier;
use super::operand::Operand;
use crate::collation::equal;
use crate::env::{OpContext, Scope};
use crate::matcher::MatchExpr;
use nestor_model::{DocRef, Document, Result, Str, Value, ValueRef, bail};

/// A condition on one value.
#[derive(Debug)]
pub(crate) enum Predicate {
    /// `$pull` of a value: equality in BSON order, arrays as wholes.
    Equal(Operand),
    /// `$pull` of a document of conditions: elements that are documents and match.
    Object(MatchExpr),
    /// A match expression on the document `{name: element}`: array filters, and `$pull` of operators or
    /// of a regular expression (under the empty name).
    Field(Str, MatchExpr),
}

impl Predicate {
    /// The operand of `$pull`. Errors: those of match expressions.
    pub fn for_pull(value: ValueRef<'_>, scope: &mut Scope) -> Result<Self> {
        match value {
            ValueRef::Document(doc) if !starts_with_operator(doc) => {
                MatchExpr::parse_for_element(doc, scope).map(Self::Object)
            }
            ValueRef::Document(_) | ValueRef::Regex { .. } => {
                let mut wrapped = Document::new();
                wrapped.push("", Value::from(value));
                MatchExpr::parse_for_element(wrapped.as_ref(), scope).map(|m| Self::Field("".into(), m))
            }
            value => Ok(Self::Equal(Operand::new(value))),
        }
    }

    /// One of `arrayFilters`, with its identifier.
    ///
    /// Errors: 9 (FailedToParse) unless all paths start with one identifier; 2 (BadValue) for a
    /// malformed identifier; those of match expressions.
    pub fn for_array_filter(filter: DocRef<'_>, scope: &mut Scope) -> Result<(Str, Self)> {
        let context = "Error parsing array filter :: caused by :";
        let expr = MatchExpr::parse_for_element(filter, scope).map_err(|e| e.context(context))?;
        let mut name = None;
        identifier(filter, &mut name)?;
        let Some(name) = name else {
            bail!(
                FailedToParse,
                "Cannot use an expression without a top-level field name in arrayFilters"
            );
        };
        check_identifier(&name)?;
        Ok((name.clone(), Self::Field(name, expr)))
    }

    /// Tests one value.
    pub fn matches(&self, value: ValueRef<'_>, op: &OpContext) -> Result<bool> {
        match (self, value) {
            (Self::Equal(operand), value) => Ok(equal(operand.value(), value, op.collator.as_ref())),
            (Self::Object(expr), ValueRef::Document(doc)) => expr.matches(doc, op),
            (Self::Object(_), _) => Ok(false),
            (Self::Field(name, expr), value) => expr.matches_field(name, value, op),
        }
    }
}

/// True for `{$gt: 1}`, conditions on the element itself; false for `{a: {$gt: 1}}` and for `{$or: [...]}`,
/// conditions on its fields.
fn starts_with_operator(doc: DocRef<'_>) -> bool {
    matches!(
        doc.iter().next(),
        Some((
            "$eq"
                | "$ne"
                | "$gt"
                | "$gte"
                | "$lt"
                | "$lte"
                | "$in"
                | "$nin"
                | "$all"
                | "$elemMatch"
                | "$size"
                | "$type"
                | "$exists"
                | "$mod"
                | "$regex"
                | "$options"
                | "$bitsAllSet"
                | "$bitsAllClear"
                | "$bitsAnySet"
                | "$bitsAnyClear"
                | "$geoIntersects"
                | "$geoWithin"
                | "$within"
                | "$near"
                | "$nearSphere"
                | "$maxDistance"
                | "$minDistance",
            _
        ))
    )
}

/// Finds the first component that all paths of `filter` share.
fn identifier(filter: DocRef<'_>, found: &mut Option<Str>) -> Result<()> {
    for (name, value) in filter {
        match (name, value) {
            ("$and" | "$or" | "$nor", ValueRef::Array(branches)) => {
                for branch in branches.iter().filter_map(ValueRef::as_document) {
                    identifier(branch, found)?;
                }
            }
            (name, _) if name.starts_with('$') => {}
            (name, _) => {
                let head = name.split('.').next().unwrap_or(name);
                match found {
                    Some(found) if found != head => bail!(
                        FailedToParse,
                        "Error parsing array filter :: caused by :: Expected a single top-level field name, found '{found}' and '{head}'"
                    ),
                    Some(_) => {}
                    None => *found = Some(head.into()),
                }
            }
        }
    }
    Ok(())
}
