//! Stages of one line: `$match`, `$project` and its kin, `$sort`, `$limit`, `$skip`, `$count`, `$sample`.

use super::args::long_of;
use super::group::Group;
use super::{ParseContext, Stage};
use crate::field_names::check_field_name;
use crate::matcher::{self, MatchExpr};
use crate::projection::{Policy, Projection};
use crate::sort::SortSpec;
use crate::stage::AccumulatorSpec;
use crate::{Expr, Scope};
use nestor_model::number::Num;
use nestor_model::{Error, Result, Str, Value, ValueRef, doc};
use std::sync::Arc;

type Context<'a, 'b> = &'a mut ParseContext<'b>;

/// Error: 15959 for anything but a document, and those of filters.
pub(super) fn parse_match(
    _: &'static str,
    value: ValueRef<'_>,
    context: Context<'_, '_>,
    out: &mut Vec<Stage>,
) -> Result<()> {
    let ValueRef::Document(filter) = value else {
        return Err(Error::location(
            15959,
            "the match filter must be an expression in an object",
        ));
    };
    let filter = MatchExpr::parse_in(filter, context.scope, matcher::Context::Pipeline)?;
    out.push(Stage::Match(Arc::new(filter)));
    Ok(())
}

/// `$project`, `$addFields`, `$set`, `$unset`. Errors: 15969 and 40272 for anything but a document.
pub(super) fn parse_projection(
    name: &'static str,
    value: ValueRef<'_>,
    context: Context<'_, '_>,
    out: &mut Vec<Stage>,
) -> Result<()> {
    let projection = match (name, value) {
        ("$unset", _) => Projection::parse_unset(value)?,
        ("$project", ValueRef::Document(spec)) => Projection::parse(spec, context.scope, Policy::Project)?,
        ("$project", _) => return Err(Error::location(15969, "$project specification must be an object")),
        (_, ValueRef::Document(spec)) => Projection::parse(spec, context.scope, Policy::AddFields)?,
        _ => {
            return Err(Error::location(
                40272,
                format!(
                    "{name} specification stage must be an object, got {}",
                    value.bson_type().alias()
                ),
            ));
        }
    };
    out.push(Stage::Project {
        name,
        projection: Arc::new(projection),
    });
    Ok(())
}

/// Error: 15973 for anything but a document, and those of [`SortSpec::parse`].
pub(super) fn parse_sort(
    _: &'static str,
    value: ValueRef<'_>,
    context: Context<'_, '_>,
    out: &mut Vec<Stage>,
) -> Result<()> {
    let ValueRef::Document(spec) = value else {
        return Err(Error::location(15973, "the $sort key specification must be an object"));
    };
    let spec = SortSpec::parse(spec)?;
    out.push(Stage::Sort(Arc::new(spec.under(context.scope.collator()))));
    Ok(())
}

/// A whole number that is not negative.
fn count_argument(name: &str, code: i32, value: ValueRef<'_>) -> Result<u64> {
    let bad = |what: &str| {
        Error::location(
            code,
            format!("invalid argument to {name} stage: {what} in: {name}: {value:?}"),
        )
    };
    let number = Num::from_ref(value).ok_or_else(|| bad("Expected a number"))?;
    let whole = number.to_i64_exact().ok_or_else(|| bad("Expected an integer"))?;
    u64::try_from(whole).map_err(|_| bad("Expected a non-negative number"))
}

/// Errors: 5107201 no whole number, 15958 zero.
pub(super) fn parse_limit(
    name: &'static str,
    value: ValueRef<'_>,
    _: Context<'_, '_>,
    out: &mut Vec<Stage>,
) -> Result<()> {
    match count_argument(name, 5_107_201, value)? {
        0 => Err(Error::location(15958, "the limit must be positive")),
        limit => {
            out.push(Stage::Limit(limit));
            Ok(())
        }
    }
}

/// Error: 5107200 no whole number.
pub(super) fn parse_skip(
    name: &'static str,
    value: ValueRef<'_>,
    _: Context<'_, '_>,
    out: &mut Vec<Stage>,
) -> Result<()> {
    out.push(Stage::Skip(count_argument(name, 5_107_200, value)?));
    Ok(())
}

/// A group of everything and a projection that drops its key. Errors: 40156 to 40160, 9039800.
pub(super) fn parse_count(
    _: &'static str,
    value: ValueRef<'_>,
    _: Context<'_, '_>,
    out: &mut Vec<Stage>,
) -> Result<()> {
    let ValueRef::String(name) = value else {
        return Err(Error::location(40156, "the count field must be a non-empty string"));
    };
    let refuse = |code, what: &str| Err(Error::location(code, format!("the count field {what}")));
    match name {
        "" => return refuse(40157, "must be a non-empty string"),
        _ if name.starts_with('$') => return refuse(40158, "cannot be a $-prefixed path"),
        _ if name.contains('\0') => return refuse(40159, "cannot contain a null byte"),
        _ if name.contains('.') => return refuse(40160, "cannot contain '.'"),
        "_id" => return refuse(9_039_800, "cannot be '_id'"),
        _ => {}
    }
    let mut scope = Scope::new();
    let sum = AccumulatorSpec::parse("$sum", ValueRef::Int32(1), &mut scope)?;
    out.push(Stage::Group(Arc::new(Group::new(
        Expr::constant_of(Value::Null),
        vec![(Str::from(name), sum)],
    ))));
    let spec = doc! { "_id": false };
    let projection = Projection::parse(spec.as_ref(), &mut scope, Policy::Project)?;
    out.push(Stage::Project {
        name: "$project",
        projection: Arc::new(projection),
    });
    Ok(())
}

/// `{size: n}`. Errors: 28745 to 28749.
pub(super) fn parse_sample(
    _: &'static str,
    value: ValueRef<'_>,
    _: Context<'_, '_>,
    out: &mut Vec<Stage>,
) -> Result<()> {
    let ValueRef::Document(doc) = value else {
        return Err(Error::location(
            28745,
            "the $sample stage specification must be an object",
        ));
    };
    let mut size = None;
    for (name, value) in doc {
        if name != "size" {
            return Err(Error::location(
                28748,
                format!("unrecognized option to $sample: {name}"),
            ));
        }
        let number =
            Num::from_ref(value).ok_or_else(|| Error::location(28746, "size argument to $sample must be a number"))?;
        size = Some(number);
    }
    let size = size.ok_or_else(|| Error::location(28749, "$sample stage must specify a size"))?;
    match u64::try_from(long_of(size)) {
        Ok(size) if size > 0 => {
            out.push(Stage::Sample(size));
            Ok(())
        }
        _ => Err(Error::location(
            28747,
            "size argument to $sample must be a positive integer",
        )),
    }
}

/// The name of an output field of `$group` and its kin. Errors: 40235 a dot, 40236 a dollar.
pub(super) fn check_output_field(stage: &str, name: &str) -> Result<()> {
    if name.contains('.') {
        return Err(Error::location(
            40235,
            format!("The field name '{name}' in {stage} cannot contain '.'"),
        ));
    }
    if name.starts_with('$') {
        return Err(Error::location(
            40236,
            format!("The field name '{name}' in {stage} cannot be an operator name"),
        ));
    }
    check_field_name(name)
}
