//! Making the collection of buckets of a time-series collection.

use super::{buckets_of, first_index};
use crate::index_build;
use crate::statement::Statement;
use crate::write::create_entry;
use nestor_model::{CollectionOptions, Document, IndexSpec, Namespace, Result, TimeSeries, Value, bail, doc};
use nestor_planner::timeseries::key_of_buckets;
use nestor_query::stage::Unpack;
use nestor_storage::{View, WriteSet};

/// Makes the collection of buckets of the time-series collection that is to be made at `ns`, and the index on source and time.
///
/// Errors: 48 when there is one.
pub fn buckets(
    statement: &Statement<'_>,
    ws: &mut WriteSet,
    ns: &Namespace,
    options: &CollectionOptions,
    series: &TimeSeries,
) -> Result<()> {
    let buckets = buckets_of(ns);
    if ws.catalog().get(&buckets).is_some() {
        bail!(NamespaceExists, "a collection {buckets} already exists");
    }
    let mut listed = doc! { "validator": validator(series), "clusteredIndex": true, "timeseries": series.listed() };
    for (name, value) in options.listed().iter() {
        if matches!(
            name,
            "expireAfterSeconds" | "collation" | "storageEngine" | "indexOptionDefaults"
        ) {
            listed.push(name, value);
        }
    }
    let uuid = statement.database.new_uuid();
    let options = CollectionOptions::parse(listed)?;
    ws.create_collection(&buckets, uuid, options.clone())?;
    if statement.origin(&ns.db).is_some() {
        ws.oplog(create_entry(&buckets, uuid, &options))?;
    }
    let Some((name, key)) = first_index(series) else {
        return Ok(());
    };
    let mut spec: Document = doc! { "v": 2, "key": key_of_buckets(key.as_ref(), series)?, "name": name };
    if let Some(collation) = &options.collation {
        spec.push("collation", collation.clone());
    }
    let Some(collection) = ws.catalog().get(&buckets).cloned() else {
        return Ok(());
    };
    let index = index_build::at_once(statement, ws, &buckets, IndexSpec::parse(spec.to_raw())?)?;
    index_build::log(statement, ws, &collection, &index)
}

/// What buckets have to look like, as MongoDB lists it.
fn validator(series: &TimeSeries) -> Document {
    let limit = || {
        let mut times = Document::new();
        times.push(series.time_field.clone(), doc! { "bsonType": "date" });
        let required = vec![Value::from(series.time_field.clone())];
        doc! { "bsonType": "object", "required": required, "properties": times }
    };
    let names = |names: &[&str]| -> Vec<Value> { names.iter().map(|name| Value::from(*name)).collect() };
    let control = doc! {
        "version": doc! { "bsonType": "number" },
        "min": limit(),
        "max": limit(),
        "closed": doc! { "bsonType": "bool" },
        "count": doc! { "bsonType": "number", "minimum": 1 },
    };
    let properties = doc! {
        "_id": doc! { "bsonType": "objectId" },
        "control": doc! {
            "bsonType": "object",
            "required": names(&["version", "min", "max"]),
            "properties": control,
            "additionalProperties": false,
        },
        "data": doc! { "bsonType": "object" },
        "meta": Document::new(),
    };
    doc! { "$jsonSchema": doc! {
        "bsonType": "object",
        "required": names(&["_id", "control", "data"]),
        "properties": properties,
        "additionalProperties": false,
    } }
}

/// Adds to listed options what makes the collection at `ns` a time-series collection.
pub fn as_view(ns: &Namespace, series: &TimeSeries, listed: &mut Document) {
    listed.set("timeseries", series.listed());
    listed.set("viewOn", buckets_of(ns).coll);
    listed.set("pipeline", Value::from(Unpack::view_pipeline(series)));
}
