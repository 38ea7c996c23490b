//! `$setWindowFields`: values computed over a window of neighbouring documents.

mod bounds;
mod functions;

pub use bounds::{Bound, Bounds};
pub use functions::WindowFunction;

use super::args::Options;
use super::{ParseContext, Stage};
use crate::Expr;
use crate::field_names::validate_path;
use crate::sort::SortSpec;
use nestor_model::{DocRef, Document, Error, Path, Result, Str, Value, ValueRef, doc};
use std::sync::Arc;

/// A parsed `$setWindowFields`.
#[derive(Debug)]
pub struct SetWindowFields {
    /// Documents of one value form a partition; all one partition when not given.
    pub partition_by: Option<Expr>,
    /// The order within a partition.
    pub sort_by: Option<Arc<SortSpec>>,
    /// Output fields, in order.
    pub output: Vec<(Path, WindowFunction)>,
}

/// `{partitionBy, sortBy, output}`. Errors: 9, 14, 40414, 40415, and those of functions and bounds.
pub(super) fn parse(
    stage: &'static str,
    value: ValueRef<'_>,
    context: &mut ParseContext<'_>,
    out: &mut Vec<Stage>,
) -> Result<()> {
    let options = Options::read(
        stage,
        specification(stage, value)?,
        &["partitionBy", "sortBy", "output"],
    )?;
    let output = options.document("output")?.ok_or_else(|| options.missing("output"))?;
    let partition_by = options
        .get("partitionBy")
        .map(|v| Expr::parse(v, context.scope))
        .transpose()?;
    // An empty order is one for the functions that demand one, and sorts nothing.
    let sort_by = options
        .document("sortBy")?
        .map(|spec| match spec.is_empty() {
            true => Ok(SortSpec::of(Vec::new())),
            false => SortSpec::parse(spec).map(|spec| spec.under(context.scope.collator())),
        })
        .transpose()?
        .map(Arc::new);
    let mut functions = Vec::new();
    for (name, value) in output {
        validate_path(name)?;
        functions.push((
            Path::new(name),
            WindowFunction::parse(name, value, sort_by.as_deref(), context.scope)?,
        ));
    }
    out.push(Stage::SetWindowFields(Arc::new(SetWindowFields {
        partition_by: partition_by.filter(|e| e.constant().is_none()),
        sort_by: sort_by.filter(|spec| !spec.parts().is_empty()),
        output: functions,
    })));
    Ok(())
}

/// `$fill`: `$setWindowFields` for the methods, `$addFields` for the values.
///
/// Errors: 9, 14, 40414, 40415, 6050200 to 6050204.
pub(super) fn parse_fill(
    _: &'static str,
    value: ValueRef<'_>,
    context: &mut ParseContext<'_>,
    out: &mut Vec<Stage>,
) -> Result<()> {
    let (windows, values) = desugar_fill(value)?;
    if let Some(windows) = windows {
        parse("$setWindowFields", Value::Document(windows).as_ref(), context, out)?;
    }
    if !values.is_empty() {
        super::simple::parse_projection("$addFields", Value::Document(values).as_ref(), context, out)?;
    }
    Ok(())
}

/// The specifications of the `$setWindowFields` (if there are methods) and of the `$addFields` (empty without values)
/// that a `$fill` stands for.
pub(super) fn desugar_fill(value: ValueRef<'_>) -> Result<(Option<Document>, Document)> {
    let allowed = ["partitionBy", "partitionByFields", "sortBy", "output"];
    let options = Options::read("$fill", specification("$fill", value)?, &allowed)?;
    let output = options.document("output")?.ok_or_else(|| options.missing("output"))?;
    let by = options.given("partitionBy");
    let by_fields = options.array("partitionByFields")?;
    if by.is_some() && by_fields.is_some() {
        return Err(Error::location(
            6_050_204,
            "maximum one of 'partitionBy' and 'partitionByFields' can be specified in '$fill'",
        ));
    }
    if output.is_empty() {
        return Err(Error::location(
            6_050_203,
            "$fill 'output' field must be a non-empty object",
        ));
    }
    let partition = match (by, by_fields) {
        (Some(by), _) => by.to_value(),
        (None, Some(fields)) => partition_of_fields(fields)?,
        (None, None) => Value::Missing,
    };
    let (mut windows, mut values) = (Document::new(), Document::new());
    for (name, spec) in output {
        fill_output(name, spec, &mut windows, &mut values)?;
    }
    if windows.is_empty() {
        return Ok((None, values));
    }
    let sort_by = options.given("sortBy").map_or(Value::Missing, ValueRef::to_value);
    // The last value before a gap is known without an order; a line through it is not.
    let linear =
        |(_, window): (&str, ValueRef<'_>)| window.as_document().is_some_and(|w| w.get("$linearFill").is_some());
    if sort_by.is_missing() && windows.iter().any(linear) {
        return Err(Error::location(
            6_050_202,
            "$fill with the method 'linear' requires 'sortBy'",
        ));
    }
    let windows = doc! { "partitionBy": partition, "sortBy": sort_by, "output": windows };
    Ok((Some(windows), values))
}

/// The specification of a stage that must be a document. Error: 9.
fn specification<'v>(stage: &str, value: ValueRef<'v>) -> Result<DocRef<'v>> {
    value.as_document().ok_or_else(|| {
        Error::failed_to_parse(format!(
            "the {stage} stage specification must be an object, found {}",
            value.bson_type().alias()
        ))
    })
}

fn partition_of_fields(fields: nestor_model::ArrayRef<'_>) -> Result<Value> {
    let mut object = Document::new();
    for field in fields {
        let ValueRef::String(name) = field else {
            return Err(Error::type_mismatch(format!(
                "$fill 'partitionByFields' must hold strings, found {}",
                field.bson_type().alias()
            )));
        };
        if name.starts_with('$') {
            return Err(Error::location(
                6_050_201,
                format!("fields in 'partitionByFields' cannot begin with '$': {name}"),
            ));
        }
        validate_path(name)?;
        // Dots may not stand in names of an object expression.
        object.push(name.replace('.', "\u{ff0e}"), format!("${name}"));
    }
    Ok(Value::Document(object))
}

fn fill_output(name: &str, spec: ValueRef<'_>, windows: &mut Document, values: &mut Document) -> Result<()> {
    let bad = || {
        Error::failed_to_parse("each output field of $fill must be an object with exactly one of 'value' and 'method'")
    };
    let ValueRef::Document(spec) = spec else {
        return Err(bad());
    };
    let mut fields = spec.iter();
    let (Some((kind, value)), None) = (fields.next(), fields.next()) else {
        return Err(bad());
    };
    let path = Str::from(format!("${name}"));
    match (kind, value) {
        ("value", value) => values.push(name, doc! { "$ifNull": vec![Value::String(path), value.to_value()] }),
        ("method", ValueRef::String("linear")) => windows.push(name, doc! { "$linearFill": path }),
        ("method", ValueRef::String("locf")) => windows.push(name, doc! { "$locf": path }),
        ("method", ValueRef::String(_)) => {
            return Err(Error::location(6_050_200, "method must be either 'locf' or 'linear'"));
        }
        ("method", other) => {
            return Err(Error::type_mismatch(format!(
                "$fill 'method' must be a string, found {}",
                other.bson_type().alias()
            )));
        }
        _ => return Err(bad()),
    }
    Ok(())
}
