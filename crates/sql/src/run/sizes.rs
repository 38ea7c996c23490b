//! What collections and their indexes take, as `pg_table_size` and its family tell it.

use super::tables::Reading;
use crate::bind::entry;
use crate::catalog::system::{self, RELATIONS, Sizes};
use nestor_database::sizes::{collection_bytes, index_bytes};
use nestor_model::Result;

impl Reading<'_, '_> {
    /// The collections of a database that the user may read; with `of`, just the one that has this OID or an index with it.
    ///
    /// Errors: those of storage.
    pub(super) fn all_sizes(&self, database: &str, of: Option<i64>) -> Result<Vec<Sizes>> {
        let mut out = Vec::new();
        let database = self.view.catalog().database(database);
        for collection in database.into_iter().flat_map(|database| database.collections()) {
            let oid = i64::from(RELATIONS.saturating_add(collection.id.0));
            let indexes = || {
                let all = collection.indexes.iter();
                all.map(|index| (i64::from(system::index_oid(u64::from(index.id.0))), index))
            };
            let is_asked = of.is_none_or(|of| of == oid || indexes().any(|(oid, _)| oid == of));
            let holds = !collection.is_view() && !entry::holds_nothing(collection);
            if !is_asked || !holds || !self.may_find(&collection.ns) {
                continue;
            }
            let bytes = collection.state.bytes().max(0);
            let each = indexes().map(|(oid, index)| Ok((oid, index_bytes(self.view, index)?)));
            out.push(Sizes {
                oid,
                records: collection_bytes(self.view, collection, bytes)?,
                indexes: each.collect::<Result<_>>()?,
            });
        }
        Ok(out)
    }
}
