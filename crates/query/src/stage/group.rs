//! `$group` and `$sortByCount`.

use super::simple::check_output_field;
use super::{ParseContext, Stage};
use crate::Expr;
use crate::sort::SortSpec;
use crate::stage::AccumulatorSpec;
use nestor_model::{Error, Result, Str, ValueRef, doc};
use std::sync::Arc;

/// A parsed `$group`.
#[derive(Debug)]
pub struct Group {
    /// The group's key; a missing one counts as null.
    pub id: Expr,
    /// Output fields, in order.
    pub fields: Vec<GroupField>,
}

/// An output field and what computes it.
#[derive(Debug)]
pub struct GroupField {
    /// Name of the field.
    pub name: Str,
    /// Its accumulator.
    pub accumulator: AccumulatorSpec,
}

impl Group {
    /// A group of these parts.
    pub fn new(id: Expr, fields: Vec<(Str, AccumulatorSpec)>) -> Self {
        let fields = fields
            .into_iter()
            .map(|(name, accumulator)| GroupField { name, accumulator })
            .collect();
        Self { id, fields }
    }
}

/// `{_id: expression, field: {accumulator: expression}, ...}`.
///
/// Errors: 15947 no document, 15955 no `_id`, 17390 `_id: {x: 1}`, and those of output fields.
pub(super) fn parse(
    stage: &'static str,
    value: ValueRef<'_>,
    context: &mut ParseContext<'_>,
    out: &mut Vec<Stage>,
) -> Result<()> {
    let ValueRef::Document(doc) = value else {
        return Err(Error::location(
            15947,
            "a group's fields must be specified in an object",
        ));
    };
    let (mut id, mut fields) = (None, Vec::new());
    for (name, value) in doc {
        match name {
            "_id" => {
                refuse_inclusion(value)?;
                id = Some(Expr::parse(value, context.scope)?);
            }
            // Hints for MongoDB's own mergers, without meaning for one node.
            "$doingMerge" | "$willBeMerged" => {
                return Err(Error::location(17030, format!("{name} should be true if present")));
            }
            _ => {
                check_output_field(stage, name)?;
                fields.push((
                    Str::from(name),
                    AccumulatorSpec::parse_object(name, value, context.scope).map_err(AccumulatorSpec::group_error)?,
                ));
            }
        }
    }
    let id = id.ok_or_else(|| Error::location(15955, "a group specification must include an _id"))?;
    out.push(Stage::Group(Arc::new(Group::new(id, fields))));
    Ok(())
}

/// `{_id: {x: 1}}` is almost always a projection by mistake.
fn refuse_inclusion(id: ValueRef<'_>) -> Result<()> {
    let ValueRef::Document(doc) = id else {
        return Ok(());
    };
    for (name, value) in doc {
        if !name.starts_with('$') && (value.is_number() || matches!(value, ValueRef::Bool(_))) {
            return Err(Error::location(
                17390,
                "$group does not support inclusion-style expressions",
            ));
        }
    }
    Ok(())
}

/// `"$path"` or `{$operator: ...}`: counts, most frequent first. Errors: 40147 to 40149.
pub(super) fn parse_sort_by_count(
    _: &'static str,
    value: ValueRef<'_>,
    context: &mut ParseContext<'_>,
    out: &mut Vec<Stage>,
) -> Result<()> {
    match value {
        ValueRef::Document(doc) => {
            if !doc.iter().next().is_some_and(|(name, _)| name.starts_with('$')) {
                return Err(Error::location(
                    40147,
                    "the sortByCount field must be defined as a $-prefixed path or an expression inside an object",
                ));
            }
        }
        ValueRef::String(path) if path.starts_with('$') => {}
        ValueRef::String(_) => {
            return Err(Error::location(
                40148,
                "the sortByCount field must be defined as a $-prefixed path or an expression inside an object",
            ));
        }
        _ => {
            return Err(Error::location(
                40149,
                "the sortByCount field must be specified as a string or as an object",
            ));
        }
    }
    let id = Expr::parse(value, context.scope)?;
    let count = AccumulatorSpec::parse("$sum", ValueRef::Int32(1), context.scope)?;
    out.push(Stage::Group(Arc::new(Group::new(id, vec![("count".into(), count)]))));
    out.push(Stage::Sort(Arc::new(SortSpec::parse(doc! { "count": -1 }.as_ref())?)));
    Ok(())
}
