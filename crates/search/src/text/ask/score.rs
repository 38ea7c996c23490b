//! What an operator makes of scores.

use crate::operand::{Operand, double, refuse};
use nestor_model::{Result, ValueRef};

/// Expressions within expressions.
const DEPTH_MAX: usize = 64;

/// What becomes of the score of what an operator finds.
#[derive(Clone, Debug)]
pub(in crate::text) enum Score {
    /// Times a number.
    Boost(f64),
    /// Times the number at a path, or another one where there is none.
    BoostBy {
        path: String,
        undefined: f64,
    },
    Constant(f64),
    Function(Expression),
    /// How the scores of embedded documents become one, and what becomes of that.
    Embedded {
        aggregate: Aggregate,
        outer: Option<Box<Score>>,
    },
}

/// How scores become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::text) enum Aggregate {
    Sum,
    Maximum,
    Minimum,
    Mean,
}

/// What a score is computed by.
#[derive(Clone, Debug)]
pub(in crate::text) enum Expression {
    Relevance,
    Constant(f64),
    Path {
        path: String,
        undefined: f64,
    },
    Add(Vec<Expression>),
    Multiply(Vec<Expression>),
    Gauss {
        path: String,
        undefined: f64,
        origin: f64,
        scale: f64,
        offset: f64,
        decay: f64,
    },
    Log(Box<Expression>),
    LogOnePlus(Box<Expression>),
}

impl Score {
    /// The `score` of an operator; only `embeddedDocument` may have `embedded`.
    pub(super) fn read(spec: &Operand<'_>, is_embedded: bool) -> Result<Option<Self>> {
        match spec.document("score")? {
            Some(score) => Self::of(&score, is_embedded).map(Some),
            None => Ok(None),
        }
    }

    fn of(spec: &Operand<'_>, is_embedded: bool) -> Result<Self> {
        match is_embedded {
            true => spec.only(&["boost", "constant", "function", "embedded"])?,
            false => spec.only(&["boost", "constant", "function"])?,
        }
        let given = ["boost", "constant", "function", "embedded"].map(|name| spec.get(name).is_some());
        if given.iter().filter(|given| **given).count() != 1 {
            refuse!(
                "\"{}\" must have exactly one of boost, constant and function",
                spec.name()
            );
        }
        if let Some(boost) = spec.document("boost")? {
            boost.only(&["value", "path", "undefined"])?;
            return match (boost.number("value")?, boost.string("path")?) {
                (Some(value), None) if boost.get("undefined").is_none() => {
                    Ok(Self::Boost(positive(&boost, "value", value)?))
                }
                (None, Some(path)) => Ok(Self::BoostBy {
                    path: path.to_owned(),
                    undefined: boost.number("undefined")?.unwrap_or(0.0),
                }),
                _ => refuse!("\"{}\" must have either value or path", boost.name()),
            };
        }
        if let Some(constant) = spec.document("constant")? {
            constant.only(&["value"])?;
            constant.required("value")?;
            let value = constant.number("value")?.unwrap_or_default();
            return Ok(Self::Constant(positive(&constant, "value", value)?));
        }
        if let Some(embedded) = spec.document("embedded")? {
            embedded.only(&["aggregate", "outerScore"])?;
            let aggregates = [
                ("sum", Aggregate::Sum),
                ("maximum", Aggregate::Maximum),
                ("minimum", Aggregate::Minimum),
                ("mean", Aggregate::Mean),
            ];
            return Ok(Self::Embedded {
                aggregate: embedded.choice("aggregate", &aggregates)?.unwrap_or(Aggregate::Sum),
                outer: match embedded.document("outerScore")? {
                    Some(outer) => Some(Box::new(Self::of(&outer, false)?)),
                    None => None,
                },
            });
        }
        Ok(Self::Function(Expression::read(
            &spec.name_of("function"),
            spec.required("function")?,
            0,
        )?))
    }
}

fn positive(spec: &Operand<'_>, field: &str, value: f64) -> Result<f64> {
    match value.is_finite() && value >= 0.0 {
        true => Ok(value),
        false => refuse!("\"{}\" must be a number that is not negative", spec.name_of(field)),
    }
}

impl Expression {
    fn read(name: &str, value: ValueRef<'_>, depth: usize) -> Result<Self> {
        if depth > DEPTH_MAX {
            refuse!("\"{name}\" lies deeper than {DEPTH_MAX} levels");
        }
        let spec = Operand::of(name, value)?;
        let mut fields = spec.doc().iter();
        let (Some((kind, operand)), None) = (fields.next(), fields.next()) else {
            refuse!("\"{name}\" must have exactly one expression");
        };
        let name = spec.name_of(kind);
        Ok(match kind {
            "score" => match operand {
                ValueRef::String("relevance") => Self::Relevance,
                _ => refuse!("\"{name}\" must be \"relevance\""),
            },
            "constant" => match double(operand) {
                Some(number) => Self::Constant(number),
                None => refuse!("\"{name}\" must be a number"),
            },
            "path" => {
                let (path, undefined) = path(&name, operand)?;
                Self::Path { path, undefined }
            }
            "add" | "multiply" => {
                let ValueRef::Array(items) = operand else {
                    refuse!("\"{name}\" must be an array");
                };
                if items.len() < 2 {
                    refuse!("\"{name}\" must have at least two expressions");
                }
                let items = items.iter().map(|item| Self::read(&name, item, depth + 1));
                let items = items.collect::<Result<Vec<Self>>>()?;
                match kind {
                    "add" => Self::Add(items),
                    _ => Self::Multiply(items),
                }
            }
            "log" => Self::Log(Box::new(Self::read(&name, operand, depth + 1)?)),
            "log1p" => Self::LogOnePlus(Box::new(Self::read(&name, operand, depth + 1)?)),
            "gauss" => gauss(&Operand::of(name, operand)?)?,
            _ => refuse!("\"{name}\" is no expression that is known"),
        })
    }
}

/// A path, and the number that counts where there is none.
fn path(name: &str, value: ValueRef<'_>) -> Result<(String, f64)> {
    if let ValueRef::String(path) = value {
        return Ok((path.to_owned(), 0.0));
    }
    let spec = Operand::of(name, value)?;
    spec.only(&["value", "undefined"])?;
    let undefined = spec.number("undefined")?.unwrap_or(0.0);
    Ok((spec.required_string("value")?.to_owned(), undefined))
}

fn gauss(spec: &Operand<'_>) -> Result<Expression> {
    spec.only(&["path", "origin", "scale", "offset", "decay"])?;
    let (path, undefined) = path(&spec.name_of("path"), spec.required("path")?)?;
    let required = |field: &str| -> Result<f64> {
        spec.required(field)?;
        Ok(spec.number(field)?.unwrap_or_default())
    };
    let (origin, scale) = (required("origin")?, required("scale")?);
    let offset = spec.number("offset")?.unwrap_or(0.0);
    let decay = spec.number("decay")?.unwrap_or(0.5);
    if !(decay > 0.0 && decay < 1.0) {
        refuse!("\"{}\" must be greater than 0 and less than 1", spec.name_of("decay"));
    }
    if !(scale.is_finite() && scale > 0.0 && offset >= 0.0) {
        refuse!(
            "\"{}\" must have a positive scale and an offset that is not negative",
            spec.name()
        );
    }
    Ok(Expression::Gauss {
        path,
        undefined,
        origin,
        scale,
        offset,
        decay,
    })
}
