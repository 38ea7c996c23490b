//! Names that nothing has yet, of what a statement makes and does not name.

use crate::catalog::schemas;
use crate::run::tables::Reading;
use crate::types::names::made;
use nestor_model::Namespace;

/// The name of an index of a table that nothing has yet.
pub(super) fn of_index(reading: &Reading<'_, '_>, ns: &Namespace, table: &str, parts: &[String]) -> String {
    beside(reading, ns, (table, &parts.join("_"), "idx"), &[])
}

/// A name that nothing has yet of what goes with a table: that of the table, of columns, and a word for what it is. `taken` are about to be given.
pub(super) fn beside(
    reading: &Reading<'_, '_>,
    ns: &Namespace,
    (table, columns, label): (&str, &str, &str),
    taken: &[String],
) -> String {
    let (schema, _) = schemas::split(reading.view, ns);
    let is_free = |name: &String| {
        let own = Namespace::new(&*ns.db, schemas::collection(schema, name));
        !taken.contains(name) && !reading.has_relation(&own)
    };
    let mut all = made(table, Some(columns), label);
    all.find(is_free).unwrap_or_default()
}
