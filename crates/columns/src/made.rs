//! Segments of rows that were computed, in memory.

use crate::column::{Column, State, Values};
use crate::memory::Memory;
use crate::packed::Packed;
use crate::segment::{Field, Head, Rows, Segment, Source};
use nestor_model::vector::{Data, NO_ROW, Texts, Vector};
use nestor_model::{Str, Value};
use std::sync::{Arc, OnceLock};

impl Segment {
    /// A segment of so many rows that have what these columns have at their paths, and nothing else. No path is below another.
    pub fn made(rows: usize, made: Vec<(Str, Arc<Column>)>) -> Self {
        let mut fields = vec![of_documents()];
        let mut columns: Vec<OnceLock<Arc<Column>>> = vec![OnceLock::new()];
        for (path, column) in made {
            let mut at = 0;
            for name in path.split('.') {
                let known = fields[at].below.iter().find(|(below, _)| below == name);
                at = match known {
                    Some((_, below)) => *below,
                    None => {
                        let below = fields.len();
                        fields[at].below.push((name.into(), below));
                        fields.push(of_documents());
                        columns.push(OnceLock::new());
                        below
                    }
                };
            }
            fields[at] = Field::of_values();
            columns[at] = OnceLock::from(column);
        }
        let head = Arc::new(Head::new(Rows::Made, rows, fields, false));
        let memory = Arc::new(Memory::default());
        Self::new(head, (columns.into(), Box::default()), Source::Memory, memory)
    }

    /// What a segment was made of that was computed ([`Segment::made`]), in the order of its fields.
    pub fn parts(&self) -> Vec<(Str, Arc<Column>)> {
        let mut parts = Vec::new();
        self.add_parts(0, "", &mut parts);
        parts
    }

    fn add_parts(&self, field: usize, path: &str, parts: &mut Vec<(Str, Arc<Column>)>) {
        for (name, below) in &self.head().fields[field].below {
            let path = match path {
                "" => name.clone(),
                _ => format!("{path}.{name}").into(),
            };
            match self.held(*below) {
                Some(column) => parts.push((path, column.clone())),
                None => self.add_parts(*below, &path, parts),
            }
        }
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

impl Column {
    /// The values of a vector, null where there are none; whole numbers may be dates, in milliseconds. `None` where a column has no form for some of them.
    pub fn made(values: &Vector, are_dates: bool) -> Option<Self> {
        let rows = values.len();
        let nulls = values.nulls.as_deref();
        let numbers = |all: &[i64]| Packed::new(all);
        let values = match &values.data {
            Data::Same(Value::Null, _) => Values::Nothing,
            Data::Bool(values) => Values::Bool(numbers(
                &values.iter().map(|value| i64::from(*value)).collect::<Vec<_>>(),
            )),
            Data::Int32(values) => Values::Int32(numbers(
                &values.iter().map(|value| i64::from(*value)).collect::<Vec<_>>(),
            )),
            Data::Int64(values) if are_dates => Values::Date(numbers(values)),
            Data::Int64(values) => Values::Int64(numbers(values)),
            Data::Double(values) => Values::Double(values.as_slice().into()),
            Data::Decimal { digits, scale } => Values::Decimal(numbers(digits), *scale),
            Data::Text(texts) => {
                let (pool, of_rows) = texts.shared()?;
                let number = |number: &u32| if *number == NO_ROW { 0 } else { i64::from(*number) };
                Values::Text(
                    numbers(&of_rows.iter().map(number).collect::<Vec<_>>()),
                    Texts::of_pool(pool.clone()),
                )
            }
            Data::Values(_) | Data::Same(..) => return None,
        };
        let is_null = |row: usize| matches!(values, Values::Nothing) || nulls.is_some_and(|nulls| nulls[row]);
        let state = |row: usize| if is_null(row) { State::Null } else { State::Value };
        let states: Vec<State> = (0..rows).map(state).collect();
        let has_gaps = states.contains(&State::Null);
        Some(Self::whole(values, has_gaps.then(|| states.into()), None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Found;
    use nestor_model::ValueRef;
    use nestor_model::vector::Builder;

    #[test]
    fn rows_have_what_they_were_made_of() {
        let made = |path: &str, values: &[Value], are_dates| {
            let mut builder = Builder::default();
            values.iter().for_each(|value| builder.push(value.clone()));
            let column = Column::made(&builder.finish(), are_dates).expect("it has a form");
            (Str::from(path), Arc::new(column))
        };
        let columns = vec![
            made("_id.a", &[Value::Int32(-3), Value::Null, Value::Int32(70_000)], false),
            made("_id.b.c", &[Value::Int64(5), Value::Int64(6), Value::Int64(7)], true),
            made("n", &[Value::Null, Value::Null, Value::Null], false),
            made("d", &[Value::Double(0.5), Value::Double(-0.0), Value::Null], false),
        ];
        let segment = Segment::made(3, columns);
        let value = |path: &str, row: usize| match segment.find(path.split('.')) {
            Found::Column(column) => column.value(row),
            other => panic!("{path}: {other:?}"),
        };
        assert!(matches!(value("_id.a", 0), ValueRef::Int32(-3)));
        assert!(matches!(value("_id.a", 1), ValueRef::Null));
        assert!(matches!(value("_id.b.c", 2), ValueRef::DateTime(7)));
        assert!(matches!(value("n", 2), ValueRef::Null));
        assert!(matches!(value("d", 1), ValueRef::Double(zero) if zero.is_sign_negative()));
        assert!(matches!(value("d", 2), ValueRef::Null));
        assert!(matches!(segment.find(["_id"]), Found::Unknown), "a document");
        assert!(matches!(segment.find(["m"]), Found::Nothing));
        assert!(segment.records().is_none());
        let parts: Vec<Str> = segment.parts().into_iter().map(|(path, _)| path).collect();
        assert_eq!(parts, ["_id.a", "_id.b.c", "n", "d"]);
        let mixed = Vector::from(Data::Values(vec![Value::Int32(1), Value::Bool(true)]));
        assert!(Column::made(&mixed, false).is_none());
    }
}
