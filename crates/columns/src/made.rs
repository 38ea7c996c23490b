//! Segments of rows that were computed, in memory.

use crate::column::{Column, State, Values};
use crate::memory::Memory;
use crate::packed::Packed;
use crate::segment::{Field, Head, Rows, Segment, Source};
use nestor_model::vector::{Data, NO_ROW, Texts, Vector};
use nestor_model::{Str, Value};
use std::sync::{Arc, OnceLock};

/// The values of one path of rows that were computed.
#[derive(Debug)]
pub struct Made {
    /// The path, none of which is below another.
    pub path: Str,
    /// The values, null where there are none.
    pub values: Arc<Vector>,
    /// Numbers are dates, in milliseconds.
    pub are_dates: bool,
}

impl Segment {
    /// A segment of so many rows that have these values and nothing else; `None` where a column has no form for some of them.
    pub fn made(rows: usize, made: &[Made]) -> Option<Self> {
        let mut fields = vec![of_documents()];
        let mut columns: Vec<Option<Column>> = vec![None];
        for own in made {
            let mut at = 0;
            let mut names = own.path.split('.').peekable();
            while let Some(name) = names.next() {
                let known = fields[at].below.iter().find(|(below, _)| below == name);
                at = match known {
                    Some((_, below)) => *below,
                    None => {
                        let below = fields.len();
                        fields[at].below.push((name.into(), below));
                        fields.push(of_documents());
                        columns.push(None);
                        below
                    }
                };
                if names.peek().is_none() {
                    fields[at] = Field::of_values();
                    columns[at] = Some(column(own, rows)?);
                }
            }
        }
        let held = columns.into_iter().map(|column| match column {
            Some(column) => OnceLock::from(Arc::new(column)),
            None => OnceLock::new(),
        });
        let head = Arc::new(Head::new(Rows::Made, rows, fields, false));
        let memory = Arc::new(Memory::default());
        Some(Self::new(
            head,
            (held.collect(), Box::default()),
            Source::Memory,
            memory,
        ))
    }
}

/// A field whose documents have others below.
fn of_documents() -> Field {
    Field {
        has_documents: true,
        is_held: false,
        ..Field::of_values()
    }
}

fn column(made: &Made, rows: usize) -> Option<Column> {
    let nulls = made.values.nulls.as_deref();
    let numbers = |all: &[i64]| Packed::new(all);
    let values = match &made.values.data {
        Data::Same(Value::Null, _) => Values::Nothing,
        Data::Bool(values) => Values::Bool(numbers(
            &values.iter().map(|value| i64::from(*value)).collect::<Vec<_>>(),
        )),
        Data::Int32(values) => Values::Int32(numbers(
            &values.iter().map(|value| i64::from(*value)).collect::<Vec<_>>(),
        )),
        Data::Int64(values) if made.are_dates => Values::Date(numbers(values)),
        Data::Int64(values) => Values::Int64(numbers(values)),
        Data::Decimal { digits, scale } => Values::Decimal(numbers(digits), *scale),
        Data::Text(texts) => {
            let (pool, of_rows) = texts.shared()?;
            let number = |number: &u32| if *number == NO_ROW { 0 } else { i64::from(*number) };
            Values::Text(
                numbers(&of_rows.iter().map(number).collect::<Vec<_>>()),
                Texts::of_pool(pool.clone()),
            )
        }
        Data::Double(_) | Data::Values(_) | Data::Same(..) => return None,
    };
    let is_null = |row: usize| matches!(values, Values::Nothing) || nulls.is_some_and(|nulls| nulls[row]);
    let state = |row: usize| if is_null(row) { State::Null } else { State::Value };
    let states: Vec<State> = (0..rows).map(state).collect();
    let has_gaps = states.contains(&State::Null);
    Some(Column::whole(values, has_gaps.then(|| states.into()), None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Found;
    use nestor_model::ValueRef;
    use nestor_model::vector::Builder;

    #[test]
    fn rows_have_what_they_were_made_of() {
        let vector = |values: &[Value]| {
            let mut builder = Builder::default();
            values.iter().for_each(|value| builder.push(value.clone()));
            Arc::new(builder.finish())
        };
        let made = |path: &str, values: &[Value], are_dates| Made {
            path: path.into(),
            values: vector(values),
            are_dates,
        };
        let columns = [
            made("_id.a", &[Value::Int32(-3), Value::Null, Value::Int32(70_000)], false),
            made("_id.b.c", &[Value::Int64(5), Value::Int64(6), Value::Int64(7)], true),
            made("n", &[Value::Null, Value::Null, Value::Null], false),
        ];
        let segment = Segment::made(3, &columns).expect("all have a form");
        let value = |path: &str, row: usize| match segment.find(path.split('.')) {
            Found::Column(column) => column.value(row),
            other => panic!("{path}: {other:?}"),
        };
        assert!(matches!(value("_id.a", 0), ValueRef::Int32(-3)));
        assert!(matches!(value("_id.a", 1), ValueRef::Null));
        assert!(matches!(value("_id.b.c", 2), ValueRef::DateTime(7)));
        assert!(matches!(value("n", 2), ValueRef::Null));
        assert!(matches!(segment.find(["_id"]), Found::Unknown), "a document");
        assert!(matches!(segment.find(["m"]), Found::Nothing));
        assert!(segment.records().is_none());
        let doubles = [made("d", &[Value::Double(0.5)], false)];
        assert!(Segment::made(1, &doubles).is_none());
    }
}
