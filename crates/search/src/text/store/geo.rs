//! Geometries of a field.

use super::key::RowId;
use nestor_model::Value;

/// The geometries of one field.
#[derive(Debug, Default)]
pub(in crate::text) struct GeoField {
    /// Rows and their geometries as GeoJSON, rows ascending.
    values: Vec<(RowId, Value)>,
    /// Cells that geometries are in, and the numbers of these in `values`; ascending.
    cells: Vec<(i64, u32)>,
}

impl GeoField {
    pub(super) fn push(&mut self, row: RowId, value: Value, cells: Vec<i64>) {
        let number = self.values.len() as u32;
        self.cells.extend(cells.into_iter().map(|cell| (cell, number)));
        self.values.push((row, value));
    }

    pub(super) fn close(&mut self) {
        self.cells.sort_unstable();
    }

    /// Rows and geometries, rows ascending.
    pub(in crate::text) fn values(&self) -> &[(RowId, Value)] {
        &self.values
    }

    /// The geometries with a cell within one of these ranges, rows ascending.
    pub(in crate::text) fn within(&self, ranges: &[(i64, i64)]) -> Vec<&(RowId, Value)> {
        let mut numbers: Vec<u32> = Vec::new();
        for (low, high) in ranges {
            let start = self.cells.partition_point(|(cell, _)| cell < low);
            let own = self.cells[start..].iter().take_while(|(cell, _)| cell <= high);
            numbers.extend(own.map(|(_, number)| *number));
        }
        numbers.sort_unstable();
        numbers.dedup();
        numbers
            .into_iter()
            .map(|number| &self.values[number as usize])
            .collect()
    }

    pub(super) fn merged(fields: &[(&GeoField, &[Option<RowId>])]) -> Self {
        let mut merged = Self::default();
        for (field, rows) in fields {
            let mut numbers = vec![None; field.values.len()];
            for (number, (row, value)) in field.values.iter().enumerate() {
                if let Some(row) = rows[*row as usize] {
                    numbers[number] = Some(merged.values.len() as u32);
                    merged.values.push((row, value.clone()));
                }
            }
            let cells = field.cells.iter();
            merged
                .cells
                .extend(cells.filter_map(|(cell, number)| Some((*cell, numbers[*number as usize]?))));
        }
        merged.close();
        merged
    }

    pub(super) fn bytes(&self) -> usize {
        let values: usize = self.values.iter().map(|(_, value)| value.weight() + 40).sum();
        values + self.cells.len() * 16
    }
}
