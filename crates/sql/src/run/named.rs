//! The names that `regclass` and its like are shown by.

use super::planned::Field;
use super::tables::Reading;
use crate::catalog::Catalog;
use crate::types::{Type, integer};
use nestor_model::{Array, Result, Value};
use std::collections::HashMap;

/// The names of objects that columns of an answer are numbers of.
#[derive(Default)]
pub struct Names(Vec<(usize, bool, HashMap<i64, String>)>);

impl Names {
    /// Those of a query's columns.
    ///
    /// Errors: those of reading the catalog.
    pub fn of(reading: &Reading<'_, '_>, fields: &[Field]) -> Result<Self> {
        let mut out = Vec::new();
        for (at, field) in fields.iter().enumerate() {
            if field.ty.is_reg() && !field.ty.has_fixed_names() {
                // Types that nobody made have names anyway.
                let names = reading.texts(&field.ty.name())?.unwrap_or_default();
                if field.ty != Type::Regtype || !names.is_empty() {
                    out.push((at, field.ty == Type::Regtype, names.into_iter().collect()));
                }
            }
        }
        Ok(Self(out))
    }

    /// Whether no column is such a number.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts the names beside the numbers of a row. A number that is nothing's stands for itself.
    pub fn add_to(&self, row: &mut [Value]) {
        for (at, are_types, names) in &self.0 {
            let Some(number) = row.get(*at).and_then(integer) else {
                continue;
            };
            let name = match names.get(&number) {
                Some(name) => name.clone(),
                None if *are_types => continue,
                None if number == 0 => "-".to_owned(),
                None => number.to_string(),
            };
            let both = vec![Value::Int64(number), Value::String(name.into())];
            row[*at] = Value::Array(Array::new(both));
        }
    }
}
