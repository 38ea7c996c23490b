//! What a window function computed for the rows of a partition: in memory as long as there is room beside those rows, else in
//! a file.

use crate::batch::Batch;
use crate::pipeline::row_store::RowStore;
use crate::row::RowDoc;
use crate::spill::Spilled;
use nestor_model::{Result, Value, ValueRef, doc};

pub(super) enum Column {
    Memory(Vec<Value>),
    /// Rows `{v: value}`.
    Disk(RowStore),
}

impl Column {
    /// Keeps `values` in memory, or in a file if the rows they belong to are in one or `held` bytes are in memory already, of
    /// the rows and other columns; counts them. What values hold beyond their own size is counted elsewhere.
    ///
    /// Errors: 292 when there is no room and disk is not allowed.
    pub(super) fn beside(
        rows: &RowStore,
        values: Vec<Value>,
        held: &mut usize,
        batch: &Batch<'_>,
        spilled: &mut Spilled,
    ) -> Result<Self> {
        let bytes = values.len() * size_of::<Value>();
        if rows.bytes_on_disk().is_none() && *held + bytes <= batch.memory_bytes_max {
            *held += bytes;
            return Ok(Self::Memory(values));
        }
        let mut store = RowStore::on_disk("$setWindowFields", batch)?;
        for value in values {
            let row = doc! { "v": value };
            store.push(RowDoc::Raw(row.to_raw()), "$setWindowFields", batch)?;
        }
        store.seal()?;
        spilled.add(store.len() as u64, store.bytes_on_disk().unwrap_or(0));
        Ok(Self::Disk(store))
    }

    /// The value of row `at`, to be asked for once.
    pub(super) fn take(&mut self, at: usize) -> Result<Value> {
        match self {
            Self::Memory(values) => Ok(std::mem::replace(&mut values[at], Value::Null)),
            Self::Disk(store) => {
                let row = store.get(at)?;
                Ok(row.as_doc().get("v").map_or(Value::Null, ValueRef::to_value))
            }
        }
    }
}
