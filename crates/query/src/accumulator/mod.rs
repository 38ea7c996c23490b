//! Accumulators: state machines that take the values of a group (or a window) and give one result.
//!
//! ```text
//! Definition ──start──► Accumulator ──add(value)*──► result
//!                            │ ▲
//!                    partial ▼ │ merge      a part of the values, stored or computed elsewhere
//! ```
//!
//! Each has a file with its machine, a [`State`], and its [`Definition`]; the table of them is in `definition`. The same
//! machines serve `$group`, `$bucket`, `$bucketAuto` and `$setWindowFields`, which parse them as
//! [`crate::stage::AccumulatorSpec`], and the operators' expression forms. Those that can take a value back
//! ([`State::remove`]) let a window slide without starting anew. Nothing here knows expressions.
//! Source: manual, "Accumulators".

mod add_to_set;
mod average;
mod concat_arrays;
mod count;
mod definition;
mod first;
mod first_n;
mod held;
mod kept;
mod last;
mod last_n;
mod merge_objects;
mod min_max;
mod min_max_n;
mod percentile;
mod push;
mod scripted;
mod set_union;
mod std_dev;
mod sum;
mod top;

pub use add_to_set::AddToSet;
pub use average::Average;
pub use concat_arrays::ConcatArrays;
pub use definition::{Argument, Definition, Settings};
pub use first::First;
pub use first_n::FirstN;
pub use last::Last;
pub use last_n::LastN;
pub use merge_objects::MergeObjects;
pub use min_max::Extremum;
pub use min_max_n::ExtremumN;
pub(crate) use percentile::probabilities;
pub use percentile::{Percentile, percentile_of_sorted};
pub use push::Push;
pub use scripted::{Scripted, Scripts, Steps};
pub use set_union::SetUnion;
pub use std_dev::StdDev;
pub use sum::Sum;
pub use top::Top;

use crate::env::Val;
use nestor_model::number::Num;
use nestor_model::{ArrayRef, Error, Result, Value, ValueRef};

/// The machine of an accumulator: what was collected from the values so far.
pub trait State {
    /// Takes the next value. Errors: those of accumulators that want arrays or documents.
    fn add(&mut self, value: Val<'_>) -> Result<()>;

    /// Takes the oldest value back out. False when this machine cannot; it is unchanged then.
    fn remove(&mut self, _value: ValueRef<'_>) -> bool {
        false
    }

    /// The result for the values so far; missing counts as null in `$group`'s output.
    fn result(&self) -> Value;

    /// Heap bytes held, roughly. Known without looking at the values.
    fn memory(&self) -> usize;

    /// What was collected, as a value that [`State::merge`] takes: what a group that leaves memory leaves behind. It
    /// holds no missing value. Most machines keep what they give as the result.
    fn partial(&self) -> Value {
        self.result()
    }

    /// Takes what a machine of the same specification collected from values that come after those of this one. The
    /// result is that of one machine that took them all; for doubles within the last digit, as their sums depend on
    /// the order.
    fn merge(&mut self, partial: ValueRef<'_>) -> Result<()>;
}

/// Makes the enum of all machines. An enum rather than a trait object keeps the numbers of a group beside each other,
/// without an allocation for each, and lets the compiler see through [`Accumulator::add`].
macro_rules! machines {
    ($($kind:ident($machine:ty)),+ $(,)?) => {
        /// A running accumulator; each method is that of [`State`].
        #[derive(Clone, Debug)]
        #[allow(missing_docs)]
        pub enum Accumulator {
            $($kind($machine)),+
        }

        #[allow(missing_docs)]
        impl Accumulator {
            #[inline]
            pub fn add(&mut self, value: Val<'_>) -> Result<()> {
                match self { $(Self::$kind(machine) => machine.add(value)),+ }
            }

            pub fn remove(&mut self, value: ValueRef<'_>) -> bool {
                match self { $(Self::$kind(machine) => machine.remove(value)),+ }
            }

            pub fn result(&self) -> Value {
                match self { $(Self::$kind(machine) => machine.result()),+ }
            }

            #[inline]
            pub fn memory(&self) -> usize {
                match self { $(Self::$kind(machine) => machine.memory()),+ }
            }

            pub fn partial(&self) -> Value {
                match self { $(Self::$kind(machine) => machine.partial()),+ }
            }

            pub fn merge(&mut self, partial: ValueRef<'_>) -> Result<()> {
                match self { $(Self::$kind(machine) => machine.merge(partial)),+ }
            }
        }
    };
}

machines! {
    Sum(Sum),
    Average(Average),
    Extremum(Extremum),
    ExtremumN(ExtremumN),
    First(First),
    Last(Last),
    FirstN(FirstN),
    LastN(LastN),
    Push(Push),
    AddToSet(AddToSet),
    StdDev(StdDev),
    MergeObjects(MergeObjects),
    ConcatArrays(ConcatArrays),
    SetUnion(SetUnion),
    Scripted(Box<Scripted>),
    Top(Box<Top>),
    Percentile(Box<Percentile>),
}

/// Many values at once, with what [`Accumulator::add`] of each, one after the other, would have come to.
impl Accumulator {
    /// Takes doubles. Errors: those of [`State::add`].
    pub fn add_doubles(&mut self, values: &[f64]) -> Result<()> {
        match self {
            Self::Sum(sum) => sum.add_doubles(values),
            Self::Average(average) => average.add_doubles(values),
            Self::Extremum(extremum) => match extremum.among(values) {
                Some(value) => extremum.add(Val::Ref(ValueRef::Double(value)))?,
                None => return self.add_each(values.iter().map(|value| ValueRef::Double(*value))),
            },
            other => return other.add_each(values.iter().map(|value| ValueRef::Double(*value))),
        }
        Ok(())
    }

    /// Takes integers, all of them longs or none. Errors: those of [`State::add`].
    pub fn add_integers(&mut self, values: &[i64], are_longs: bool) -> Result<()> {
        let is_done = match self {
            Self::Sum(sum) => {
                sum.add_integers(values, are_longs);
                true
            }
            Self::Average(average) => average.add_integers(values, are_longs),
            _ => false,
        };
        if is_done {
            return Ok(());
        }
        self.add_each(values.iter().map(|value| match are_longs {
            true => ValueRef::Int64(*value),
            false => ValueRef::Int32(*value as i32),
        }))
    }

    /// Takes so many integers by their sum, all of them longs or none; only sums and means do that, others take nothing.
    pub fn add_total(&mut self, total: i128, count: u64, are_longs: bool) {
        match self {
            Self::Sum(sum) => sum.add_total(total, count, are_longs),
            Self::Average(average) => average.add_total(total, count, are_longs),
            _ => {}
        }
    }

    /// Takes a value so many times. Errors: those of [`State::add`].
    pub fn add_times(&mut self, value: ValueRef<'_>, times: usize) -> Result<()> {
        if let Self::Sum(sum) = self
            && sum.add_times(value, times)
        {
            return Ok(());
        }
        self.add_each(std::iter::repeat_n(value, times))
    }

    fn add_each<'v>(&mut self, values: impl Iterator<Item = ValueRef<'v>>) -> Result<()> {
        for value in values {
            self.add(Val::Ref(value))?;
        }
        Ok(())
    }
}

impl Accumulator {
    /// The result. Errors: those of a script that makes it.
    pub fn finish(&self) -> Result<Value> {
        match self {
            Self::Scripted(machine) => machine.finish(),
            other => Ok(other.result()),
        }
    }
}

/// The items of an array, none of anything else.
fn items(value: ValueRef<'_>) -> impl Iterator<Item = ValueRef<'_>> {
    value.as_array().into_iter().flatten()
}

/// Merges a partial result that is an array of values as the machine takes them.
fn add_items(machine: &mut impl State, partial: ValueRef<'_>) -> Result<()> {
    items(partial).try_for_each(|value| machine.add(Val::Ref(value)))
}

/// The array that an accumulator of arrays was given; none for a missing value. Error: 14 for anything else.
fn array_of<'v>(name: &str, value: ValueRef<'v>) -> Result<Option<ArrayRef<'v>>> {
    match value {
        ValueRef::Missing => Ok(None),
        ValueRef::Array(items) => Ok(Some(items)),
        other => Err(Error::type_mismatch(format!(
            "{name} requires array inputs, but input is of type {}",
            other.bson_type().alias()
        ))),
    }
}

/// The value as an item of an array: null when it is missing.
fn present(value: Val<'_>) -> Value {
    if value.is_missing() {
        Value::Null
    } else {
        value.into_value()
    }
}

/// Bytes a value holds, itself included, roughly.
pub fn value_bytes(value: &Value) -> usize {
    value.weight()
}

/// A positive whole number, as the family of `n` takes it. Errors: 7548606.
pub(crate) fn positive_n(value: ValueRef<'_>) -> Result<usize> {
    let whole = Num::from_ref(value).and_then(Num::to_i64_exact);
    match whole {
        Some(n) if n > 0 => Ok(usize::try_from(n).unwrap_or(usize::MAX)),
        _ => Err(Error::location(
            7_548_606,
            format!("'n' must be a positive whole number, found {value:?}"),
        )),
    }
}
