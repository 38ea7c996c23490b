//! Expressions over rows of values, as whoever plans and runs relations sees them.

use super::Chunk;
use super::chunk::each_row;
use nestor_model::statement::Scope;
use nestor_model::vector::{Data, Vector};
use nestor_model::{Result, Value};
use nestor_query::env::OpContext;
use std::cmp::Ordering;
use std::fmt::{Debug, Display};
use std::sync::Arc;

/// A row of values: what relational operators pass up. Column `i` is `row[i]`; SQL's NULL is [`Value::Null`].
pub type Tuple = Vec<Value>;

/// A row of the query around the one that runs.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'e> {
    /// The row.
    pub row: &'e [Value],
    /// The row of the query around that one.
    pub outer: Option<&'e Frame<'e>>,
}

/// What functions do to the database: they take numbers of sequences, named by text or by the number of a relation, and hold rows.
pub trait Effects {
    /// The next number.
    ///
    /// Errors: there is no such sequence, or it has no more numbers.
    fn next(&self, sequence: &Value) -> Result<i64>;

    /// The number that the session got last, of a sequence or of any.
    ///
    /// Errors: it got none.
    fn current(&self, sequence: Option<&Value>) -> Result<i64>;

    /// Sets the last number, or with `is_called` false the next one.
    ///
    /// Errors: there is no such sequence, or it has no such number.
    fn set(&self, sequence: &Value, number: i64, is_called: bool) -> Result<()>;

    /// Holds a record of a collection, given as database and name, until the statement or its transaction has ended: against everybody else, or
    /// `in_common` with others who do so; false when somebody else holds it and nobody is to wait for that.
    ///
    /// Errors: somebody holds it, if that is to fail; the statement cannot hold rows.
    fn hold(&self, collection: (&str, &str), record: &[u8], in_common: bool, waiting: Waiting) -> Result<bool>;

    /// Calls a routine by its number, which may run statements: its value.
    ///
    /// Errors: those of the routine; it cannot be called here.
    fn call(&self, routine: u32, args: &[Value]) -> Result<Value>;

    /// The same for one that gives rows.
    ///
    /// Errors: those of [`Effects::call`].
    fn rows(&self, routine: u32, args: &[Value]) -> Result<Vec<Tuple>>;

    /// The number of the transaction; without `gives` only if it was asked for before, or something was written.
    ///
    /// Errors: the statement has to run within a transaction.
    fn transaction(&self, gives: bool) -> Result<Option<i64>>;
}

/// What becomes of who wants to hold a row that somebody else holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Waiting {
    /// It waits.
    Wait,
    /// It does without the row.
    Skip,
    /// It fails.
    Fail,
}

/// What expressions see besides their row.
#[derive(Clone, Copy)]
pub struct Env<'e> {
    /// The operation's clock and randomness.
    pub op: &'e OpContext,
    /// Values of the statement's parameters.
    pub params: &'e [Value],
    /// Rows of the queries around this one, innermost first.
    pub outer: Option<&'e Frame<'e>>,
    /// What expressions may do besides computing, where they may do anything.
    pub effects: Option<&'e dyn Effects>,
    /// The value that is compared with others, within an expression that does so and computes it once.
    pub compared: Option<&'e Value>,
}

impl Env<'_> {
    /// The row of the query that is so many levels out; 1 is the one directly around.
    pub fn outer(&self, levels: usize) -> Option<&[Value]> {
        let mut frame = self.outer;
        for _ in 1..levels {
            frame = frame?.outer;
        }
        frame.map(|frame| frame.row)
    }
}

/// An expression over a row. Its type is settled; so equality, order and hash of its values are its own.
pub trait Scalar: Clone + Debug + Display + Send + Sync + 'static {
    /// Its value for a row.
    ///
    /// Errors: those of what it computes.
    fn value(&self, row: &[Value], env: &Env<'_>) -> Result<Value>;

    /// The order of two of its values that are not null. Whole numbers of 32 or of 64 bits are in the order of numbers.
    fn compare(&self, a: &Value, b: &Value) -> Ordering;

    /// A value by which [`nestor_model::values_equal`] and [`nestor_model::hash_value`] tell its values apart as its type does.
    fn key(&self, value: Value) -> Value {
        value
    }

    /// Whether [`Scalar::key`] gives each of its values as it is.
    fn is_own_key(&self) -> bool {
        false
    }

    /// Whether its values are texts in the order of their bytes.
    fn is_by_bytes(&self) -> bool {
        false
    }

    /// The column that it is, if it is one as it stands in the row.
    fn place(&self) -> Option<usize> {
        None
    }

    /// Which of the columns of rows of this width it looks at.
    fn columns(&self, width: usize) -> Vec<bool>;

    /// Whether it gives the same for all rows with equal values at `places`: it looks at no other columns, and equal values of these are
    /// the same ones.
    fn follows_from(&self, places: &[usize]) -> bool {
        _ = places;
        false
    }

    /// Whether it is a value that does not depend on the row.
    fn is_literal(&self) -> bool {
        false
    }

    /// Whether it may be another value each time that it is computed for a row.
    fn is_volatile(&self) -> bool {
        true
    }

    /// Whether another thread may compute it: it asks nothing of the session that runs it but what goes along, and does nothing but compute.
    fn is_portable(&self) -> bool {
        false
    }

    /// Whether its values may be much larger than the rows that they are computed of. The values of many rows together are too large
    /// then, and [`Scalar::vector`] is asked for one row at a time.
    fn may_grow(&self) -> bool {
        false
    }

    /// Its values for the rows of a chunk: those that [`Scalar::value`] gives for each.
    ///
    /// Errors: those of what it computes, of any of the rows.
    fn vector(&self, chunk: &Chunk, env: &Env<'_>) -> Result<Arc<Vector>> {
        each_row(chunk.rows, |row| self.value(&chunk.row(row), env)).map(Arc::new)
    }

    /// The places of the rows of a chunk for which it is true, in order; `None` when it is for all of them.
    ///
    /// Errors: those of [`Scalar::vector`].
    fn places(&self, chunk: &Chunk, env: &Env<'_>) -> Result<Option<Vec<u32>>> {
        if self.may_grow() {
            let mut places = Vec::new();
            for at in 0..chunk.rows {
                let _values = Scope::begin();
                if self.holds(&chunk.row(at), env)? {
                    places.push(at as u32);
                }
            }
            return Ok((places.len() < chunk.rows).then_some(places));
        }
        Ok(true_places(&*self.vector(chunk, env)?))
    }

    /// Whether it is true, which null is not.
    fn holds(&self, row: &[Value], env: &Env<'_>) -> Result<bool> {
        Ok(matches!(self.value(row, env)?, Value::Bool(true)))
    }
}

/// The places of the rows that are true, in order; `None` when all are.
pub fn true_places(vector: &Vector) -> Option<Vec<u32>> {
    let len = vector.len();
    match (&vector.data, &vector.nulls) {
        (Data::Bool(values), None) => places_of(len, |row| values[row]),
        (Data::Bool(values), Some(nulls)) => places_of(len, |row| values[row] & !nulls[row]),
        (Data::Same(Value::Bool(true), _), _) => None,
        (Data::Values(values), _) => places_of(len, |row| matches!(values[row], Value::Bool(true))),
        _ => (len > 0).then(Vec::new),
    }
}

/// The rows for which something is true, without a jump for each; `None` when it is for all.
fn places_of(len: usize, is_true: impl Fn(usize) -> bool) -> Option<Vec<u32>> {
    let mut places = vec![0; len];
    let mut count = 0;
    for row in 0..len {
        places[count] = row as u32;
        count += usize::from(is_true(row));
    }
    places.truncate(count);
    (count < len).then_some(places)
}
