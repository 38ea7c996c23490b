//! `$bucket`: groups by the interval a value lies in, in order.

use super::group::Group;
use super::simple::check_output_field;
use super::{ParseContext, Stage};
use crate::Expr;
use crate::Scope;
use crate::collation::{Collator, compare};
use crate::sort::SortSpec;
use crate::stage::AccumulatorSpec;
use nestor_model::order::canonical_class;
use nestor_model::{Document, Error, Result, Str, Value, ValueRef, doc};
use std::cmp::Ordering;
use std::sync::Arc;

/// `{groupBy, boundaries, default, output}`: a `$group` by a `$switch` over the boundaries and a `$sort`.
///
/// Errors: 40191 to 40202, and those of output fields.
pub(super) fn parse(
    stage: &'static str,
    value: ValueRef<'_>,
    context: &mut ParseContext<'_>,
    out: &mut Vec<Stage>,
) -> Result<()> {
    let ValueRef::Document(doc) = value else {
        return Err(Error::location(
            40201,
            format!(
                "argument to $bucket stage must be an object, but found type: {}",
                value.bson_type().alias()
            ),
        ));
    };
    let (mut group_by, mut boundaries, mut default, mut fields) = (None, None, None, None);
    for (name, value) in doc {
        match name {
            "groupBy" => {
                check_group_by(40202, stage, value)?;
                group_by = Some(value);
            }
            "boundaries" => boundaries = Some(parse_boundaries(value, context.scope)?),
            "default" => {
                let default_value = Expr::parse(value, context.scope)?;
                let constant = default_value.constant().cloned();
                default =
                    Some(constant.ok_or_else(|| {
                        Error::location(40195, "the $bucket 'default' field must be a constant value")
                    })?);
            }
            "output" => fields = Some(parse_output(40196, stage, value, context.scope)?),
            _ => {
                return Err(Error::location(
                    40197,
                    format!("unrecognized option to $bucket: {name}"),
                ));
            }
        }
    }
    let (Some(group_by), Some(boundaries)) = (group_by, boundaries) else {
        return Err(Error::location(
            40198,
            "$bucket requires 'groupBy' and 'boundaries' to be specified",
        ));
    };
    check_default(default.as_ref(), &boundaries, context.scope.collator())?;
    let key = switch(group_by, &boundaries, default);
    let id = Expr::parse(Value::Document(key).as_ref(), context.scope)?;
    let fields = match fields {
        Some(fields) => fields,
        None => count_only(context.scope)?,
    };
    out.push(Stage::Group(Arc::new(Group::new(id, fields))));
    out.push(Stage::Sort(Arc::new(
        SortSpec::parse(doc! { "_id": 1 }.as_ref())?.under(context.scope.collator()),
    )));
    Ok(())
}

/// Paths and operators only.
pub(super) fn check_group_by(code: i32, stage: &str, value: ValueRef<'_>) -> Result<()> {
    let good = match value {
        ValueRef::String(path) => path.starts_with('$'),
        ValueRef::Document(_) => true,
        _ => false,
    };
    if good {
        return Ok(());
    }
    Err(Error::location(
        code,
        format!(
            "the {stage} 'groupBy' field must be defined as a $-prefixed path or an expression, but found: {value:?}"
        ),
    ))
}

/// `output: {field: {accumulator: ...}}`.
pub(super) fn parse_output(
    code: i32,
    stage: &str,
    value: ValueRef<'_>,
    scope: &mut Scope,
) -> Result<Vec<(Str, AccumulatorSpec)>> {
    let ValueRef::Document(doc) = value else {
        return Err(Error::location(
            code,
            format!(
                "the {stage} 'output' field must be an object, but found type: {}",
                value.bson_type().alias()
            ),
        ));
    };
    let mut fields = Vec::new();
    for (name, value) in doc {
        if name == "_id" {
            return Err(Error::location(
                15948,
                format!("{stage} cannot output a field named _id"),
            ));
        }
        check_output_field(stage, name)?;
        fields.push((Str::from(name), AccumulatorSpec::parse_object(name, value, scope)?));
    }
    Ok(fields)
}

/// The output when none is given.
pub(super) fn count_only(scope: &mut Scope) -> Result<Vec<(Str, AccumulatorSpec)>> {
    Ok(vec![(
        "count".into(),
        AccumulatorSpec::parse("$sum", ValueRef::Int32(1), scope)?,
    )])
}

/// The `$group` that a `$bucket` which parsed stands for.
pub(super) fn as_group(value: ValueRef<'_>, scope: &mut Scope) -> Result<Document> {
    let option = |name| {
        value
            .as_document()
            .and_then(|doc| doc.get(name))
            .unwrap_or(ValueRef::Missing)
    };
    let boundaries = parse_boundaries(option("boundaries"), scope)?;
    let default = match option("default") {
        ValueRef::Missing => None,
        default => Expr::parse(default, scope)?.constant().cloned(),
    };
    let mut out = doc! { "_id": switch(option("groupBy"), &boundaries, default) };
    match option("output").as_document() {
        Some(fields) => out
            .fields_mut()
            .extend(fields.iter().map(|(name, value)| (name.into(), value.to_value()))),
        None => out.push("count", doc! { "$sum": 1 }),
    }
    Ok(out)
}

fn parse_boundaries(value: ValueRef<'_>, scope: &mut Scope) -> Result<Vec<Value>> {
    let ValueRef::Array(items) = value else {
        return Err(Error::location(
            40200,
            format!(
                "the $bucket 'boundaries' field must be an array, but found type: {}",
                value.bson_type().alias()
            ),
        ));
    };
    let mut boundaries = Vec::new();
    for item in items {
        let constant = Expr::parse(item, scope)?.constant().cloned();
        boundaries.push(constant.ok_or_else(|| {
            Error::location(
                40191,
                format!(
                    "the $bucket 'boundaries' field must be an array of constant values, but found value: {item:?}"
                ),
            )
        })?);
    }
    if boundaries.len() < 2 {
        return Err(Error::location(
            40192,
            "the $bucket 'boundaries' field must have at least 2 values",
        ));
    }
    for pair in boundaries.windows(2) {
        if canonical_class(pair[0].bson_type()) != canonical_class(pair[1].bson_type()) {
            return Err(Error::location(
                40193,
                "all values in the 'boundaries' option to $bucket must have the same type",
            ));
        }
        if compare(pair[0].as_ref(), pair[1].as_ref(), scope.collator()) != Ordering::Less {
            return Err(Error::location(
                40194,
                "the 'boundaries' option to $bucket must be sorted and without duplicates",
            ));
        }
    }
    Ok(boundaries)
}

fn check_default(default: Option<&Value>, boundaries: &[Value], collator: Option<&Collator>) -> Result<()> {
    let (Some(default), Some(first), Some(last)) = (default, boundaries.first(), boundaries.last()) else {
        return Ok(());
    };
    let order = |edge: &Value| compare(default.as_ref(), edge.as_ref(), collator);
    if order(first) != Ordering::Less && order(last) == Ordering::Less {
        return Err(Error::location(
            40199,
            "the $bucket 'default' field must be less than the lowest boundary or greater than or equal to the highest boundary",
        ));
    }
    Ok(())
}

/// `{$switch: {branches: [{case: {$and: [{$gte: [by, low]}, {$lt: [by, high]}]}, then: low}, ...], default}}`.
fn switch(by: ValueRef<'_>, boundaries: &[Value], default: Option<Value>) -> Document {
    let literal = |value: &Value| doc! { "$literal": value.clone() };
    let pair = |value: &Value| Value::from(vec![by.to_value(), literal(value).into()]);
    let branches: Vec<Value> = boundaries
        .windows(2)
        .map(|bounds| {
            let low = Value::from(doc! { "$gte": pair(&bounds[0]) });
            let high = Value::from(doc! { "$lt": pair(&bounds[1]) });
            doc! { "case": doc! { "$and": vec![low, high] }, "then": literal(&bounds[0]) }.into()
        })
        .collect();
    let default = default.map(|value| Value::from(literal(&value)));
    doc! { "$switch": doc! { "branches": branches, "default": default } }
}
