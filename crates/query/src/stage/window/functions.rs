//! The functions that can be computed over a window.

use super::bounds::Bounds;
use crate::expr::Unit;
use crate::sort::{SortBy, SortSpec};
use crate::stage::AccumulatorSpec;
use crate::{Expr, Scope};
use nestor_model::number::Num;
use nestor_model::{DocRef, Error, ErrorCode, Path, Result, Value, ValueRef};

/// A window function of one output field.
#[derive(Debug)]
pub enum WindowFunction {
    /// An accumulator over the window.
    Accumulate(AccumulatorSpec, Bounds),
    /// `$rank` (ties share, gaps follow).
    Rank,
    /// `$denseRank` (ties share, no gaps).
    DenseRank,
    /// `$documentNumber`.
    DocumentNumber,
    /// `$shift`: the value of the document `by` places further.
    Shift {
        /// Evaluated there.
        output: Expr,
        /// May be negative.
        by: i64,
        /// When there is no such document.
        default: Value,
    },
    /// `$derivative`: slope between the ends of the window.
    Derivative {
        /// y.
        input: Expr,
        /// x.
        sort: Path,
        /// Unit of x when it is a date.
        unit: Option<Unit>,
        /// The window.
        bounds: Bounds,
    },
    /// `$integral`: area under the window by trapezoids.
    Integral {
        /// y.
        input: Expr,
        /// x.
        sort: Path,
        /// Unit of x when it is a date.
        unit: Option<Unit>,
        /// The window.
        bounds: Bounds,
    },
    /// `$expMovingAvg`, from the start of the partition.
    ExpMovingAvg {
        /// The values averaged.
        input: Expr,
        /// Weight of the newest value.
        alpha: Value,
    },
    /// `$covariancePop` and `$covarianceSamp`.
    Covariance {
        /// First variable.
        x: Expr,
        /// Second variable.
        y: Expr,
        /// Of a sample.
        sample: bool,
        /// The window.
        bounds: Bounds,
    },
    /// `$linearFill`: nulls get values on the line between their neighbours.
    LinearFill {
        /// The values.
        input: Expr,
        /// Where they stand.
        sort: Path,
    },
    /// `$locf`: nulls get the last value that was none.
    Locf(Expr),
    /// `$minMaxScaler`: the place of the value between the window's extremes.
    MinMaxScaler {
        /// The values.
        input: Expr,
        /// The value that the least becomes.
        min: f64,
        /// The value that the greatest becomes.
        max: f64,
        /// The window.
        bounds: Bounds,
    },
}

impl WindowFunction {
    /// Parses `{$function: argument, window: {...}}`.
    pub fn parse(field: &str, value: ValueRef<'_>, sort: Option<&SortSpec>, scope: &mut Scope) -> Result<Self> {
        let ValueRef::Document(doc) = value else {
            return Err(Error::failed_to_parse(format!("the field '{field}' must be an object")));
        };
        let (mut function, mut window) = (None, None);
        for (name, value) in doc {
            if name == "window" {
                let ValueRef::Document(spec) = value else {
                    return Err(Error::failed_to_parse("'window' field must be an object"));
                };
                window = Some(spec);
            } else if function.is_some_and(|(function, _)| is_rank_style(function)) {
                return Err(rank_style_argument(name));
            } else if name.starts_with('$') {
                if function.is_some() {
                    return Err(Error::failed_to_parse(
                        "cannot specify multiple functions in window function spec",
                    ));
                }
                function = Some((name, value));
            } else {
                return Err(Error::failed_to_parse(format!(
                    "window function found an unknown argument: {name}"
                )));
            }
        }
        let (name, argument) =
            function.ok_or_else(|| Error::failed_to_parse("must specify a window function in output field"))?;
        Self::parse_function(name, argument, window, sort, scope)
    }

    fn parse_function(
        name: &str,
        argument: ValueRef<'_>,
        window: Option<DocRef<'_>>,
        sort: Option<&SortSpec>,
        scope: &mut Scope,
    ) -> Result<Self> {
        let bounds = || window.map_or(Ok(Bounds::ALL), |spec| Bounds::parse(spec, sort));
        match name {
            _ if is_rank_style(name) => Self::parse_rank(name, argument, window, sort),
            "$shift" => {
                no_window(name, window)?;
                Self::parse_shift(argument, sort, scope)
            }
            "$derivative" | "$integral" => {
                if window.is_none() && name == "$derivative" {
                    return Err(Error::failed_to_parse(format!(
                        "{name} requires explicit window bounds"
                    )));
                }
                let (input, unit) = input_and_unit(name, argument, scope)?;
                let sort_path = single_sort(name, sort)?;
                let bounds = bounds()?;
                Ok(match name {
                    "$derivative" => Self::Derivative {
                        input,
                        sort: sort_path,
                        unit,
                        bounds,
                    },
                    _ => Self::Integral {
                        input,
                        sort: sort_path,
                        unit,
                        bounds,
                    },
                })
            }
            "$expMovingAvg" => {
                no_window(name, window)?;
                Self::parse_moving_average(argument, sort, scope)
            }
            "$covariancePop" | "$covarianceSamp" => {
                let bounds = bounds()?;
                let pair: Option<Vec<ValueRef<'_>>> = argument.as_array().map(|items| items.iter().collect());
                match pair.as_deref() {
                    Some([x, y]) => Ok(Self::Covariance {
                        x: Expr::parse(*x, scope)?,
                        y: Expr::parse(*y, scope)?,
                        sample: name == "$covarianceSamp",
                        bounds,
                    }),
                    _ => {
                        // A constant or path of the wrong shape gives null for every window.
                        let expr = Expr::parse(argument, scope)?;
                        Ok(Self::Covariance {
                            x: expr.clone(),
                            y: Expr::constant_of(Value::Null),
                            sample: name == "$covarianceSamp",
                            bounds,
                        })
                    }
                }
            }
            "$linearFill" => {
                no_window(name, window)?;
                Ok(Self::LinearFill {
                    input: Expr::parse(argument, scope)?,
                    sort: single_sort(name, sort)?,
                })
            }
            "$locf" => {
                no_window(name, window)?;
                Ok(Self::Locf(Expr::parse(argument, scope)?))
            }
            "$minMaxScaler" => Self::parse_scaler(argument, bounds()?, scope),
            _ if AccumulatorSpec::is_known(name) && name != "$accumulator" => {
                let bounds = bounds()?;
                // Unlike in $group, an array argument is an array expression here.
                let spec = match argument {
                    ValueRef::Array(_) => AccumulatorSpec::of_expression(name, Expr::parse(argument, scope)?)?,
                    _ => AccumulatorSpec::parse(name, argument, scope)?,
                };
                Ok(Self::Accumulate(spec, bounds))
            }
            _ => Err(Error::failed_to_parse(format!("unrecognized window function, {name}"))),
        }
    }

    /// Errors: 5371601 a window, 5371602 `sortBy` of other than one field, 5371603 an argument.
    fn parse_rank(
        name: &str,
        argument: ValueRef<'_>,
        window: Option<DocRef<'_>>,
        sort: Option<&SortSpec>,
    ) -> Result<Self> {
        if window.is_some() {
            return Err(rank_style_argument("window"));
        }
        if !matches!(argument, ValueRef::Document(doc) if doc.is_empty()) {
            return Err(Error::location(
                5_371_603,
                format!("{name} must be specified with '{{}}' as the value"),
            ));
        }
        let one = sort.is_some_and(|s| s.parts().len() == 1);
        if !one {
            return Err(Error::location(
                5_371_602,
                format!("{name} must be specified with a top level sortBy expression with exactly one element"),
            ));
        }
        Ok(match name {
            "$rank" => Self::Rank,
            "$denseRank" => Self::DenseRank,
            _ => Self::DocumentNumber,
        })
    }

    fn parse_shift(argument: ValueRef<'_>, sort: Option<&SortSpec>, scope: &mut Scope) -> Result<Self> {
        if sort.is_none() {
            return Err(Error::failed_to_parse("$shift requires a sortBy"));
        }
        let ValueRef::Document(doc) = argument else {
            return Err(Error::failed_to_parse("argument to $shift must be an object"));
        };
        let (mut output, mut by, mut default) = (None, None, Value::Null);
        for (name, value) in doc {
            match name {
                "output" => output = Some(Expr::parse(value, scope)?),
                "by" => {
                    let whole = Num::from_ref(value).and_then(Num::to_i64_exact);
                    by = Some(whole.ok_or_else(|| Error::failed_to_parse("'$shift:by' field must be an integer"))?);
                }
                "default" => {
                    let constant = Expr::parse(value, scope)?.constant().cloned();
                    default = constant.ok_or_else(|| {
                        Error::failed_to_parse("'$shift:default' expression must yield a constant value")
                    })?;
                }
                _ => return Err(Error::failed_to_parse(format!("unknown argument in $shift: {name}"))),
            }
        }
        let output = output.ok_or_else(|| Error::failed_to_parse("$shift requires an 'output' expression"))?;
        let by = by.ok_or_else(|| Error::failed_to_parse("$shift requires 'by' as an integer value"))?;
        Ok(Self::Shift { output, by, default })
    }

    fn parse_moving_average(argument: ValueRef<'_>, sort: Option<&SortSpec>, scope: &mut Scope) -> Result<Self> {
        if sort.is_none() {
            return Err(Error::failed_to_parse("$expMovingAvg requires an explicit 'sortBy'"));
        }
        let ValueRef::Document(doc) = argument else {
            return Err(Error::failed_to_parse(
                "$expMovingAvg must have exactly one argument that is an object",
            ));
        };
        let (mut input, mut alpha) = (None, None);
        for (name, value) in doc {
            match name {
                "input" => input = Some(Expr::parse(value, scope)?),
                "N" => {
                    let n = match value {
                        ValueRef::Int32(n) => Some(i64::from(n)),
                        ValueRef::Int64(n) => Some(n),
                        _ => None,
                    };
                    let n = n
                        .filter(|n| *n > 0)
                        .ok_or_else(|| Error::failed_to_parse("'N' field must be an integer greater than zero"))?;
                    set_alpha(&mut alpha, Value::Double(2.0 / (n as f64 + 1.0)))?;
                }
                "alpha" => {
                    let number =
                        Num::from_ref(value).ok_or_else(|| Error::failed_to_parse("'alpha' must be a number"))?;
                    let share = number.to_f64();
                    if share <= 0.0 || share >= 1.0 {
                        return Err(Error::failed_to_parse("'alpha' must be between 0 and 1 (exclusive)"));
                    }
                    set_alpha(&mut alpha, number.into())?;
                }
                _ => {
                    return Err(Error::failed_to_parse(format!(
                        "unknown argument in $expMovingAvg: {name}"
                    )));
                }
            }
        }
        match (input, alpha) {
            (Some(input), Some(alpha)) => Ok(Self::ExpMovingAvg { input, alpha }),
            _ => Err(Error::failed_to_parse(
                "$expMovingAvg requires an 'input' expression and one of 'N' or 'alpha'",
            )),
        }
    }

    fn parse_scaler(argument: ValueRef<'_>, bounds: Bounds, scope: &mut Scope) -> Result<Self> {
        let ValueRef::Document(doc) = argument else {
            return Err(Error::failed_to_parse(
                "$minMaxScaler expects an object that specifies 'input'",
            ));
        };
        let (mut input, mut min, mut max) = (None, 0.0, 1.0);
        for (name, value) in doc {
            let number = || {
                Num::from_ref(value)
                    .map(Num::to_f64)
                    .ok_or_else(|| Error::failed_to_parse(format!("$minMaxScaler '{name}' must be a number")))
            };
            match name {
                "input" => input = Some(Expr::parse(value, scope)?),
                "min" => min = number()?,
                "max" => max = number()?,
                _ => {
                    return Err(Error::failed_to_parse(format!(
                        "$minMaxScaler got an unexpected argument: {name}"
                    )));
                }
            }
        }
        if min >= max {
            return Err(Error::failed_to_parse("$minMaxScaler 'max' must be greater than 'min'"));
        }
        let input = input.ok_or_else(|| Error::failed_to_parse("$minMaxScaler requires an 'input' expression"))?;
        Ok(Self::MinMaxScaler {
            input,
            min,
            max,
            bounds,
        })
    }
}

fn set_alpha(alpha: &mut Option<Value>, value: Value) -> Result<()> {
    if alpha.replace(value).is_some() {
        return Err(Error::failed_to_parse(
            "$expMovingAvg takes either 'N' or 'alpha', not both",
        ));
    }
    Ok(())
}

fn no_window(name: &str, window: Option<DocRef<'_>>) -> Result<()> {
    match window {
        None => Ok(()),
        Some(_) => Err(Error::failed_to_parse(format!(
            "{name} does not accept a 'window' field"
        ))),
    }
}

fn is_rank_style(name: &str) -> bool {
    matches!(name, "$rank" | "$denseRank" | "$documentNumber")
}

fn rank_style_argument(name: &str) -> Error {
    Error::location(
        5_371_601,
        format!("rank style window functions take no other arguments, found '{name}'"),
    )
}

fn input_and_unit(name: &str, argument: ValueRef<'_>, scope: &mut Scope) -> Result<(Expr, Option<Unit>)> {
    let ValueRef::Document(doc) = argument else {
        return Err(Error::failed_to_parse(format!(
            "{name} expects an object that specifies 'input'"
        )));
    };
    let (mut input, mut unit) = (None, None);
    for (option, value) in doc {
        match (option, value) {
            ("input", _) => input = Some(Expr::parse(value, scope)?),
            ("unit", ValueRef::String(text)) => {
                let named = Unit::parse(text)
                    .ok_or_else(|| Error::failed_to_parse(format!("unknown time unit value: {text}")))?;
                if named.ms().is_none() {
                    return Err(Error::location(
                        5_490_710,
                        format!("unit must be 'week' or smaller for {name}"),
                    ));
                }
                unit = Some(named);
            }
            ("unit", _) => return Err(Error::failed_to_parse(format!("{name} 'unit' must be a string"))),
            _ => {
                return Err(Error::failed_to_parse(format!(
                    "{name} got unexpected argument: {option}"
                )));
            }
        }
    }
    let input = input.ok_or_else(|| Error::failed_to_parse(format!("{name} requires an 'input' expression")))?;
    Ok((input, unit))
}

fn single_sort(name: &str, sort: Option<&SortSpec>) -> Result<Path> {
    match sort.map(SortSpec::parts) {
        Some([part]) => match &part.by {
            SortBy::Path(path) => Ok(path.clone()),
            SortBy::Meta(_) => Err(Error::new(
                ErrorCode::FailedToParse,
                format!("{name} requires a sortBy over a field"),
            )),
        },
        Some(_) => Err(Error::location(
            6_050_100,
            format!("{name} requires a sortBy over exactly one field"),
        )),
        None => Err(Error::failed_to_parse(format!("{name} requires a sortBy"))),
    }
}
