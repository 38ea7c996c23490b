//! Projections of rows of columns that were computed.

use super::ColumnRows;
use super::computed::{Computed, is_arithmetic, numbers};
use nestor_columns::{Column, Segment};
use nestor_model::number::Num;
use nestor_model::statement::work;
use nestor_model::vector::Builder;
use nestor_model::{Result, Str};
use nestor_query::Expr;
use nestor_query::projection::Projection;
use std::sync::Arc;

/// Rows in a loop that count as a unit of work.
const ROWS_PER_UNIT: usize = 16;

/// What becomes of a path.
enum Source<'p> {
    /// What stands at a place among the paths.
    Kept(usize),
    Computed(&'p Expr),
}

/// The paths of what a projection makes of rows that have just these, without one below another; `None` when it computes more than columns can have.
pub(crate) fn paths_of(projection: &Projection, paths: &[Str]) -> Option<Vec<Str>> {
    let paths: Vec<&str> = paths.iter().map(|path| &**path).collect();
    Some(sources(projection, &paths)?.into_iter().map(|(path, _)| path).collect())
}

fn sources<'p>(projection: &'p Projection, paths: &[&'p str]) -> Option<Vec<(Str, Source<'p>)>> {
    let mut fields: Vec<&str> = paths.iter().filter_map(|path| path.split('.').next()).collect();
    fields.dedup();
    let mut sources = Vec::new();
    for (name, expr) in projection.makes(&fields)? {
        let at = |path: &str| paths.iter().position(|own| *own == path);
        match (expr, expr.and_then(Expr::field_path)) {
            (None, _) => {
                let is_of = |path: &str| path.split('.').next() == Some(name);
                let kept = paths.iter().enumerate().filter(|(_, path)| is_of(path));
                sources.extend(kept.map(|(at, path)| (Str::from(*path), Source::Kept(at))));
            }
            (Some(_), Some(path)) => sources.push((name.into(), Source::Kept(at(path.as_str())?))),
            (Some(expr), None) if is_arithmetic(expr) => sources.push((name.into(), Source::Computed(expr))),
            (Some(_), None) => return None,
        }
    }
    Some(sources)
}

/// The rows that a projection makes of others, of a segment that was computed; `None` where columns do not hold what they have, or something is refused.
///
/// Errors: those of the interrupt.
pub(crate) fn projected(projection: &Projection, rows: &ColumnRows) -> Result<Option<ColumnRows>> {
    let parts = rows.segment.parts();
    let paths: Vec<&str> = parts.iter().map(|(path, _)| &**path).collect();
    let Some(sources) = sources(projection, &paths) else {
        return Ok(None);
    };
    let mut columns = Vec::with_capacity(sources.len());
    for (path, source) in sources {
        let column = match source {
            Source::Kept(at) => parts[at].1.clone(),
            Source::Computed(expr) => match computed(expr, &parts, &rows.segment)? {
                Some(column) => column.into(),
                None => return Ok(None),
            },
        };
        columns.push((path, column));
    }
    Ok(Some(ColumnRows {
        segment: Segment::made(rows.segment.rows(), columns).into(),
        ..rows.clone()
    }))
}

/// What an expression makes of all rows of a segment with these columns.
fn computed(expr: &Expr, parts: &[(Str, Arc<Column>)], segment: &Arc<Segment>) -> Result<Option<Column>> {
    let all = ColumnRows {
        segment: segment.clone(),
        rows: 0..segment.rows(),
        picked: None,
    };
    let column = |path: &str| parts.iter().find(|(own, _)| own == path).map(|(_, column)| &**column);
    let mut values = Builder::default();
    for places in all.chunks() {
        work(1 + places.len() / ROWS_PER_UNIT)?;
        match numbers(expr, &column, &places) {
            None => return Ok(None),
            Some(Computed::Numbers(found)) => found.into_iter().for_each(|value| values.push(value.into())),
            Some(Computed::Longs(found)) => found
                .into_iter()
                .for_each(|value| values.push(Num::Int64(value).into())),
            Some(Computed::Doubles(found)) => {
                found
                    .into_iter()
                    .for_each(|value| values.push(Num::Double(value).into()));
            }
        }
    }
    Ok(Column::made(&values.finish(), false))
}
