//! What catalogs show of relations: texts of views, names, numbers.

use crate::bind::Binder;
use crate::bind::entry;
use crate::catalog::system::{self, RELATIONS, quoted};
use crate::catalog::{Catalog, Kind, Table, schemas};
use crate::error;
use nestor_model::Namespace;
use nestor_storage::View;

/// The text of the query of a view in a schema, with schemas before the names of tables that are in none of `path`.
pub(super) fn qualified(catalog: &dyn Catalog, path: &[String], schema: &str, text: &str) -> String {
    let (Some(query), false) = (entry::parsed(text), path.iter().any(|own| own == schema)) else {
        return text.to_owned();
    };
    let mut binder = Binder::new(catalog, Vec::new()).of_view(schema);
    binder.named = Some(Vec::new());
    // A view whose tables are gone is shown as it was written.
    if binder.query(&query).is_err() {
        return text.to_owned();
    }
    let found = binder.named.unwrap_or_default().into_iter();
    let mut places: Vec<(usize, String)> = found
        .filter(|(_, schema)| !path.contains(schema))
        .filter_map(|(name, schema)| {
            let place = name.span.start;
            let at = error::position_of(
                text,
                usize::try_from(place.line).ok()?,
                usize::try_from(place.column).ok()?,
            )?;
            let byte = text.char_indices().nth(at.checked_sub(1)?)?.0;
            Some((byte, format!("{}.", quoted(&schema))))
        })
        .collect();
    places.sort();
    places.dedup();
    let mut out = text.to_owned();
    for (at, schema) in places.into_iter().rev() {
        out.insert_str(at, &schema);
    }
    out
}

/// The number by which catalogs know a table of a database; 0 for none.
pub(super) fn number_of(view: &dyn View, db: &str, table: &Table) -> u32 {
    let catalog = view.catalog();
    let found = match &table.kind {
        Kind::Collection(ns) | Kind::View(ns) => catalog.get(ns),
        Kind::Query(_) => {
            let coll = schemas::collection(&table.schema, &table.name);
            catalog.get(&Namespace::new(db, coll))
        }
        Kind::Rows(_) => return system::oid_of(Some(&table.schema), &table.name).unwrap_or(0),
        Kind::Files(_) => None,
    };
    found.map_or(0, |collection| RELATIONS.saturating_add(collection.id.0))
}

/// The name of a collection, with its schema if names that say none would not find it.
pub(super) fn name_of(view: &dyn View, path: &[String], ns: &Namespace) -> String {
    let (schema, name) = schemas::split(view, ns);
    let found = schemas::candidates(view, &ns.db, path, (None, name));
    let first = found.iter().find(|ns| view.catalog().get(ns).is_some());
    match first == Some(ns) {
        true => name.to_owned(),
        false => format!("{schema}.{name}"),
    }
}
