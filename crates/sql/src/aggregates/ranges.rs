//! Ranges and strings of bits taken together.

use super::{Bound, plain};
use crate::expr::Expr;
use crate::types::range::{self, Range};
use crate::types::{Type, bits};
use nestor_model::{Error, Result, Value};
use nestor_planner::relation::Accumulator;

/// The union or the intersection of ranges or multiranges.
struct Ranges {
    ty: Type,
    element: Type,
    intersects: bool,
    found: Option<Vec<Range>>,
    weight: usize,
}

impl Accumulator for Ranges {
    fn add(&mut self, args: &[Value]) -> Result<()> {
        let Some(value @ Value::Array(_)) = args.first() else {
            return Ok(());
        };
        let own = range::parts(&self.ty, value);
        self.found = Some(match self.found.take() {
            None => own,
            Some(found) if self.intersects => range::common(&found, &own, &self.element),
            Some(mut found) => {
                self.weight += value.weight();
                found.extend(own);
                found
            }
        });
        Ok(())
    }

    fn result(&self) -> Result<Value> {
        Ok(
            match (&self.found, self.intersects && self.ty.range_element().is_some()) {
                (None, _) => Value::Null,
                (Some(found), true) => found.first().cloned().unwrap_or(Range::NOTHING).to_value(),
                (Some(found), false) => range::multi(range::joined(found.clone(), &self.element)),
            },
        )
    }

    fn weight(&self) -> usize {
        self.weight
    }
}

/// A sign between the bits of all strings.
struct Strings {
    sign: fn(bool, bool) -> bool,
    found: Option<String>,
}

impl Accumulator for Strings {
    fn add(&mut self, args: &[Value]) -> Result<()> {
        let Some(own) = args.first().and_then(Value::as_str) else {
            return Ok(());
        };
        self.found = Some(match self.found.take() {
            None => own.to_owned(),
            Some(found) => bits::combined(&found, own, self.sign)?,
        });
        Ok(())
    }

    fn result(&self) -> Result<Value> {
        Ok(self
            .found
            .as_ref()
            .map_or(Value::Null, |bits| Value::String(bits.as_str().into())))
    }

    fn weight(&self) -> usize {
        self.found.as_ref().map_or(0, String::len)
    }
}

/// `range_agg` and `range_intersect_agg`.
pub(super) fn bind(name: &str, arg: Expr, wrong: &dyn Fn() -> Error) -> Result<Bound> {
    let ty = arg.ty();
    let element = ty
        .range_element()
        .or_else(|| ty.multirange_element())
        .ok_or_else(wrong)?;
    let intersects = name == "range_intersect_agg";
    let result = match intersects {
        true => ty.clone(),
        false => element.multirange_of().ok_or_else(wrong)?,
    };
    let start = move || -> Box<dyn Accumulator> {
        Box::new(Ranges {
            ty: ty.clone(),
            element: element.clone(),
            intersects,
            found: None,
            weight: 0,
        })
    };
    let name = if intersects { "range_intersect_agg" } else { "range_agg" };
    plain(name, start, vec![arg], result)
}

/// `bit_and`, `bit_or` and `bit_xor` of strings of bits.
pub(super) fn of_bits(name: &str, arg: Expr) -> Result<Bound> {
    let (name, sign): (_, fn(bool, bool) -> bool) = match name {
        "bit_and" => ("bit_and", |a, b| a && b),
        "bit_or" => ("bit_or", |a, b| a || b),
        _ => ("bit_xor", |a, b| a != b),
    };
    let start = move || -> Box<dyn Accumulator> { Box::new(Strings { sign, found: None }) };
    plain(name, start, vec![arg], Type::Bit)
}
