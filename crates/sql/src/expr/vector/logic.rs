//! Truth values and choices: each part is computed only for the rows that need it.

use super::super::Expr;
use super::vector;
use nestor_model::vector::{Builder, Data, Vector};
use nestor_model::{Result, Value};
use nestor_planner::relation::scalar::true_places;
use nestor_planner::relation::{Chunk, Env, Scalar};
use std::sync::Arc;

/// The rows at `places` as an expression looks at them.
fn part(expr: &Expr, chunk: &Chunk, places: &[u32]) -> Chunk {
    let used = expr.columns(chunk.columns.len());
    chunk.gather_used(places, &|column| used[column])
}

/// The values of an expression at `places`, or for all rows without them.
fn at(expr: &Expr, chunk: &Chunk, places: Option<&[u32]>, env: &Env<'_>) -> Result<Arc<Vector>> {
    match places {
        None => vector(expr, chunk, env),
        Some(places) => vector(expr, &part(expr, chunk, places), env),
    }
}

fn truth(vector: &Vector, row: usize) -> Option<bool> {
    if vector.is_null(row) {
        return None;
    }
    match &vector.data {
        Data::Bool(values) => Some(values[row]),
        Data::Same(Value::Bool(value), _) => Some(*value),
        Data::Values(values) => match values[row] {
            Value::Bool(value) => Some(value),
            _ => None,
        },
        _ => None,
    }
}

/// The vector of these truth values.
fn truths(values: impl Iterator<Item = Option<bool>>) -> Vector {
    let mut out = Builder::default();
    values.for_each(|value| match value {
        Some(value) => out.push_bool(value),
        None => out.push_null(),
    });
    out.finish()
}

/// AND and OR: conditions one after the other until one is `end`.
pub(super) fn until(conditions: &[Expr], end: bool, chunk: &Chunk, env: &Env<'_>) -> Result<Vector> {
    let mut found = vec![Some(!end); chunk.rows];
    // The rows that are not settled; `None` for all.
    let mut open: Option<Vec<u32>> = None;
    for condition in conditions {
        if open.as_ref().is_some_and(Vec::is_empty) {
            break;
        }
        let values = at(condition, chunk, open.as_deref(), env)?;
        let mut left = Vec::new();
        for row in 0..values.len() {
            let place = open.as_ref().map_or(row as u32, |open| open[row]);
            match truth(&values, row) {
                Some(value) if value == end => found[place as usize] = Some(end),
                Some(_) => left.push(place),
                None => {
                    found[place as usize] = None;
                    left.push(place);
                }
            }
        }
        open = (left.len() < chunk.rows).then_some(left);
    }
    Ok(truths(found.into_iter()))
}

/// NOT.
pub(super) fn not(values: &Vector) -> Vector {
    match &values.data {
        Data::Bool(found) => Vector {
            data: Data::Bool(found.iter().map(|found| !found).collect()),
            nulls: values.nulls.clone(),
        },
        _ => truths((0..values.len()).map(|row| truth(values, row).map(|value| !value))),
    }
}

/// IS NULL, or IS NOT NULL.
pub(super) fn is_null(values: &Vector, negated: bool) -> Vector {
    Data::Bool((0..values.len()).map(|row| values.is_null(row) != negated).collect()).into()
}

/// CASE.
pub(super) fn case(arms: &[(Expr, Expr)], otherwise: Option<&Expr>, chunk: &Chunk, env: &Env<'_>) -> Result<Vector> {
    let mut results = Choice::new(chunk.rows);
    for (condition, result) in arms {
        let Some(open) = results.open() else { break };
        let holds = at(condition, chunk, Some(&open), env)?;
        let chosen: Vec<u32> = match true_places(&holds) {
            None => open,
            Some(places) => places.into_iter().map(|at| open[at as usize]).collect(),
        };
        if !chosen.is_empty() {
            results.choose(&chosen, at(result, chunk, Some(&chosen), env)?, |_| true);
        }
    }
    if let (Some(otherwise), Some(open)) = (otherwise, results.open()) {
        results.choose(&open, at(otherwise, chunk, Some(&open), env)?, |_| true);
    }
    Ok(results.finish())
}

/// COALESCE.
pub(super) fn coalesce(items: &[Expr], chunk: &Chunk, env: &Env<'_>) -> Result<Vector> {
    let mut results = Choice::new(chunk.rows);
    for item in items {
        let Some(open) = results.open() else { break };
        let values = at(item, chunk, Some(&open), env)?;
        let found = values.clone();
        results.choose(&open, values, |row| !found.is_null(row));
    }
    Ok(results.finish())
}

/// Results that come from several vectors.
struct Choice {
    vectors: Vec<Arc<Vector>>,
    /// The vector and the row of it that each row has; `None` until it has one.
    chosen: Vec<Option<(u32, u32)>>,
}

impl Choice {
    fn new(rows: usize) -> Self {
        Self {
            vectors: Vec::new(),
            chosen: vec![None; rows],
        }
    }

    /// The rows without a result, if there are any.
    fn open(&self) -> Option<Vec<u32>> {
        let open: Vec<u32> = (0u32..)
            .zip(&self.chosen)
            .filter(|(_, chosen)| chosen.is_none())
            .map(|(row, _)| row)
            .collect();
        (!open.is_empty()).then_some(open)
    }

    /// The rows at `places` get the values of a vector, in order, those of its rows for which `is_result` says so.
    fn choose(&mut self, places: &[u32], vector: Arc<Vector>, is_result: impl Fn(usize) -> bool) {
        let number = self.vectors.len() as u32;
        self.vectors.push(vector);
        for (row, place) in places.iter().enumerate() {
            if is_result(row) {
                self.chosen[*place as usize] = Some((number, row as u32));
            }
        }
    }

    fn finish(self) -> Vector {
        let mut out = Builder::default();
        for chosen in self.chosen {
            match chosen {
                Some((number, row)) => out.push_from(&self.vectors[number as usize], row as usize),
                None => out.push_null(),
            }
        }
        out.finish()
    }
}
