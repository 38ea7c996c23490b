//! `$densify`: documents for the values that are missing in a sequence.

use super::args::Options;
use super::{ParseContext, Stage};
use crate::expr::Unit;
use crate::field_names::validate_path;
use nestor_model::number::Num;
use nestor_model::{ArrayRef, Error, Path, Result, Value, ValueRef};
use std::sync::Arc;

/// A parsed `$densify`.
#[derive(Debug)]
pub struct Densify {
    /// The field whose values form the sequence.
    pub field: Path,
    /// Documents with the same values here form a sequence of their own.
    pub partition_by: Vec<Path>,
    /// Distance of two values; positive.
    pub step: Num,
    /// Unit of the step when the values are dates.
    pub unit: Option<Unit>,
    /// Where sequences start and end.
    pub bounds: DensifyBounds,
}

/// Where sequences start and end.
#[derive(Debug)]
pub enum DensifyBounds {
    /// From the least to the greatest value of all documents.
    Full,
    /// From the least to the greatest value of the partition.
    Partition,
    /// From the first (inclusive) to the second (exclusive): numbers or dates.
    Between(Value, Value),
}

/// `{field, partitionByFields, range: {step, unit, bounds}}`.
///
/// Errors: 9, 14, 40414, 40415, 5733401 a step that is not positive, 5733402 and 5733403 bad bounds, 5733404 a step
/// of dates that is no whole number, 5946804 and 5946805 fields that contain one another.
pub(super) fn parse(
    stage: &'static str,
    value: ValueRef<'_>,
    _: &mut ParseContext<'_>,
    out: &mut Vec<Stage>,
) -> Result<()> {
    let ValueRef::Document(doc) = value else {
        return Err(Error::location(
            5_733_200,
            format!(
                "the {stage} stage specification must be an object, found {}",
                value.bson_type().alias()
            ),
        ));
    };
    let options = Options::read(stage, doc, &["field", "partitionByFields", "range"])?;
    let field = options.string("field")?.ok_or_else(|| options.missing("field"))?;
    validate_path(field)?;
    let field = Path::new(field);
    let partition_by = match options.array("partitionByFields")? {
        Some(items) => partition_fields(items, &field)?,
        None => Vec::new(),
    };
    let range = options.document("range")?.ok_or_else(|| options.missing("range"))?;
    let range = Options::read("$densify.range", range, &["step", "unit", "bounds"])?;
    let step = range.get("step").ok_or_else(|| range.missing("step"))?;
    let step = Num::from_ref(step).ok_or_else(|| range.wrong_type("step", step, "number"))?;
    if step.to_f64() <= 0.0 || step.is_nan() {
        return Err(Error::location(
            5_733_401,
            "the step parameter in a range statement must be a strictly positive numeric value",
        ));
    }
    let unit = match range.string("unit")? {
        Some(name) => {
            Some(Unit::parse(name).ok_or_else(|| Error::failed_to_parse(format!("unknown time unit value: {name}")))?)
        }
        None => None,
    };
    let bounds = range.get("bounds").ok_or_else(|| range.missing("bounds"))?;
    let bounds = parse_bounds(bounds, unit, !partition_by.is_empty())?;
    if unit.is_some() && step.to_i64_exact().is_none() {
        return Err(Error::location(
            5_733_404,
            "the step parameter in a range statement must be a whole number when densifying a date range",
        ));
    }
    out.push(Stage::Densify(Arc::new(Densify {
        field,
        partition_by,
        step,
        unit,
        bounds,
    })));
    Ok(())
}

fn partition_fields(items: ArrayRef<'_>, field: &Path) -> Result<Vec<Path>> {
    let mut out = Vec::new();
    for item in items {
        let ValueRef::String(text) = item else {
            return Err(Error::type_mismatch(format!(
                "$densify 'partitionByFields' must hold strings, found {}",
                item.bson_type().alias()
            )));
        };
        validate_path(text)?;
        let path = Path::new(text);
        if path.is_prefix_of(field) || field.is_prefix_of(&path) {
            return Err(Error::location(
                8_993_000,
                format!("the densified field '{field}' and the partition field '{path}' must not contain one another"),
            ));
        }
        out.push(path);
    }
    Ok(out)
}

fn parse_bounds(value: ValueRef<'_>, unit: Option<Unit>, partitioned: bool) -> Result<DensifyBounds> {
    match value {
        ValueRef::String("full") => Ok(DensifyBounds::Full),
        ValueRef::String("partition") if partitioned => Ok(DensifyBounds::Partition),
        ValueRef::String("partition") => Err(Error::location(
            5_733_408,
            "one may not specify the bounds as 'partition' without specifying a non-empty array of partitionByFields",
        )),
        ValueRef::String(other) => Err(Error::location(
            5_946_802,
            format!("bounds string must either be 'full' or 'partition', not '{other}'"),
        )),
        ValueRef::Array(items) => {
            let pair: Vec<ValueRef<'_>> = items.iter().collect();
            let [low, high] = pair.as_slice() else {
                return Err(Error::location(
                    5_733_403,
                    "a bounding array in a range statement must have exactly two elements",
                ));
            };
            let dates = matches!((low, high), (ValueRef::DateTime(_), ValueRef::DateTime(_)));
            let numbers = low.is_number() && high.is_number();
            match unit {
                Some(_) if !dates => Err(Error::location(
                    5_733_402,
                    "a bounding array must be an ascending array of either two dates or two numbers",
                )),
                None if !numbers => Err(Error::location(
                    5_733_402,
                    "a bounding array must contain numbers, or dates with a unit",
                )),
                _ if nestor_model::compare(*low, *high).is_gt() => Err(Error::location(
                    5_733_402,
                    "a bounding array must be an ascending array of either two dates or two numbers",
                )),
                _ => Ok(DensifyBounds::Between(low.to_value(), high.to_value())),
            }
        }
        other => Err(Error::location(
            5_733_409,
            format!(
                "the bounds in a range statement must be the string 'full' or 'partition' or an ascending array, found {}",
                other.bson_type().alias()
            ),
        )),
    }
}
