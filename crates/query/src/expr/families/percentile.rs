//! `$median` and `$percentile` over the elements of an array.

use crate::accumulator::{Percentile, State, probabilities};
use crate::env::{Env, Scope, Val};
use crate::expr::parse::OpDef;
use crate::expr::{Expr, Operator};
use nestor_model::statement::{charge, work};
use nestor_model::{Error, ErrorCode, Result, Value, ValueRef};

pub(crate) const OPERATORS: &[OpDef] = &[
    OpDef::custom("$median", |name, value, scope| parse(name, false, value, scope)),
    OpDef::custom("$percentile", |name, value, scope| parse(name, true, value, scope)),
];

/// The options that both take, as operators and as accumulators.
pub(crate) struct PercentileOptions {
    pub(crate) input: Expr,
    /// Only of `$percentile`.
    pub(crate) p: Option<Expr>,
}

impl PercentileOptions {
    /// `{input, method}` and, for `$percentile`, `p`. Errors: 7436100 and 7436199 no document, 40414, 40415, 2 for a
    /// method that is not `approximate`, 7750301 to 7750303 for bad `p`.
    pub(crate) fn parse(name: &str, with_p: bool, value: ValueRef<'_>, scope: &mut Scope) -> Result<Self> {
        let ValueRef::Document(doc) = value else {
            return Err(Error::location(
                if with_p { 7_436_199 } else { 7_436_100 },
                format!("specification must be an object; found {name}: {value:?}"),
            ));
        };
        let (mut input, mut p, mut method) = (None, None, None);
        for (option, value) in doc {
            match option {
                "input" => input = Some(Expr::parse(value, scope)?),
                "p" if with_p => p = Some(Expr::parse(value, scope)?),
                "method" => method = Some(value),
                _ => {
                    return Err(Error::location(
                        40415,
                        format!("BSON field '{name}.{option}' is an unknown field."),
                    ));
                }
            }
        }
        let missing = |option: &str| {
            Error::location(
                40414,
                format!("BSON field '{name}.{option}' is missing but a required field"),
            )
        };
        let input = input.ok_or_else(|| missing("input"))?;
        if with_p && p.is_none() {
            return Err(missing("p"));
        }
        match method.ok_or_else(|| missing("method"))? {
            ValueRef::String("approximate") => {}
            ValueRef::String("discrete" | "continuous") => {
                return Err(Error::new(
                    ErrorCode::InternalErrorNotSupported,
                    "only the method 'approximate' is supported for percentiles",
                ));
            }
            ValueRef::String(other) => {
                return Err(Error::bad_value(format!(
                    "currently only 'approximate' can be used as percentile 'method', not '{other}'"
                )));
            }
            other => {
                return Err(Error::type_mismatch(format!(
                    "BSON field '{name}.method' is the wrong type '{}', expected type 'string'",
                    other.bson_type().alias()
                )));
            }
        }
        if let Some(constant) = p.as_ref().and_then(Expr::constant) {
            probabilities(constant)?;
        }
        Ok(Self { input, p })
    }
}

struct OfArray {
    name: &'static str,
    options: PercentileOptions,
}

fn parse(name: &'static str, with_p: bool, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    // As for the accumulators, an array is no list of arguments.
    if matches!(value, ValueRef::Array(_)) {
        return Err(Error::location(
            40237,
            format!("The {name} accumulator is a unary operator"),
        ));
    }
    let options = PercentileOptions::parse(name, with_p, value, scope)?;
    Ok(Expr::operator(OfArray { name, options }))
}

impl Operator for OfArray {
    fn eval<'a>(&'a self, env: &mut Env<'a>) -> Result<Val<'a>> {
        let mut state = match &self.options.p {
            Some(p) => Percentile::new(probabilities(&p.eval_without_document(env.op)?)?),
            None => Percentile::median(),
        };
        let input = self.options.input.eval_ref(env)?;
        match input.items() {
            Some(items) => {
                for item in items {
                    work(1)?;
                    charge(size_of::<Value>())?;
                    state.add(item)?;
                }
            }
            None => state.add(input)?,
        }
        Ok(state.result().into())
    }

    fn visit(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(&self.options.input);
    }

    fn name(&self) -> &'static str {
        self.name
    }
}

#[cfg(test)]
mod tests {
    use crate::expr::testing::check;

    #[test]
    fn over_elements() {
        check(
            r#"{"a": [3, 1, "x", 2]}"#,
            &[
                (r#"{"$median": {"input": "$a", "method": "approximate"}}"#, "2.0"),
                (
                    r#"{"$percentile": {"input": [1, 2, 3, 4], "p": [0.5], "method": "approximate"}}"#,
                    "[2.0]",
                ),
                (r#"{"$median": ["$a"]}"#, "error 40237"),
                (r#"{"$median": 1}"#, "error 7436100"),
                (r#"{"$percentile": 1}"#, "error 7436199"),
            ],
        );
    }
}
