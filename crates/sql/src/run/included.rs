//! The columns that INCLUDE of CREATE INDEX names, and orders that are not those of the entries: what the option `sql` of an index says of them.
//!
//! ```text
//! {key: {a: 1}, unique: true, sql: {keys: 1, include: ["b"]}}                                          (a) INCLUDE (b), unique
//! {key: {a: 1, b: 1}, sql: {keys: 1, include: ["b"]}}                                                  (a) INCLUDE (b)
//! {key: {"lower(a)": "expression"}, sql: {table: …, paths: …, parts: …, keys: 1, include: ["b"]}}      (lower(a)) INCLUDE (b), unique
//! {key: {a: 1}, sql: {orders: [2]}}                                                                    (a NULLS FIRST)
//! {key: {a: 1}, sql: {classes: ["text_pattern_ops"]}}                                                  (a text_pattern_ops)
//! {key: {a: 1}, sql: {storage: ["fillfactor=70"]}}                                                     (a) WITH (fillfactor = 70)
//! ```
//!
//! Those of constraints stand in the declaration of their table.

use nestor_model::number::safe_i64;
use nestor_model::{Array, DocRef, Document, IndexSpec, Value, ValueRef};
use nestor_planner::kinds::expression;

/// Says of an index that the first `keys` of its parts are its key, and which paths it includes.
pub fn say(option: &mut Document, keys: usize, include: &[String]) {
    option.push("keys", i32::try_from(keys).unwrap_or(i32::MAX));
    option.push("include", paths(include));
}

fn paths(include: &[String]) -> Value {
    Value::Array(Array::new(include.iter().map(|path| path.as_str().into()).collect()))
}

/// How many parts of an index are its key in SQL, and the paths that it includes.
pub fn of(spec: &IndexSpec) -> (usize, Vec<String>) {
    let option = spec.option(expression::OPTION).and_then(ValueRef::as_document);
    let keys = option.and_then(|option| safe_i64(option.get("keys")?));
    let keys = keys.and_then(|keys| usize::try_from(keys).ok());
    let include = option.map_or_else(Vec::new, said);
    (keys.unwrap_or(spec.key.len()), include)
}

fn said(option: DocRef<'_>) -> Vec<String> {
    match option.get("include") {
        Some(ValueRef::Array(paths)) => paths
            .iter()
            .filter_map(|path| path.as_str().map(str::to_owned))
            .collect(),
        _ => Vec::new(),
    }
}

/// Says of the parts of an index how SQL has them in order, as `pg_index.indoption` does.
pub fn say_orders(option: &mut Document, orders: &[i32]) {
    option.push(
        ORDERS,
        Value::Array(Array::new(orders.iter().map(|order| Value::Int32(*order)).collect())),
    );
}

/// The name of orders in the option.
const ORDERS: &str = "orders";

/// How SQL has the parts of an index in order, `None` where their entries say it.
pub fn orders_of(spec: &IndexSpec) -> Option<Vec<i32>> {
    let option = spec.option(expression::OPTION).and_then(ValueRef::as_document)?;
    match option.get(ORDERS)? {
        ValueRef::Array(orders) => {
            let orders = orders
                .iter()
                .map(|order| safe_i64(order).and_then(|order| i32::try_from(order).ok()));
            orders.collect()
        }
        _ => None,
    }
}

/// The name of classes of operators in the option.
const CLASSES: &str = "classes";

/// Says of the parts of an index which class of operators each has, empty for that of its type.
pub fn say_classes(option: &mut Document, classes: &[&str]) {
    option.push(CLASSES, texts(classes));
}

/// The classes of operators that were said of the parts of an index.
pub fn classes_of(spec: &IndexSpec) -> Vec<String> {
    texts_of(spec, CLASSES)
}

/// The name of collations in the option.
const COLLATIONS: &str = "collations";

/// Says of the parts of an index which collation each was given, empty for that of its column or expression.
pub fn say_collations(option: &mut Document, collations: &[&str]) {
    option.push(COLLATIONS, texts(collations));
}

/// The collations that were said of the parts of an index.
pub fn collations_of(spec: &IndexSpec) -> Vec<String> {
    texts_of(spec, COLLATIONS)
}

/// What says in the option that an index on expressions was asked for by hash.
const HASH: &str = "hash";

/// Says that an index was asked for by hash: it finds values that are equal, which one in order does as well.
pub fn say_hash(option: &mut Document) {
    option.push(HASH, true);
}

/// Whether an index was asked for by hash that has its values in order.
pub fn is_hash(spec: &IndexSpec) -> bool {
    let option = spec.option(expression::OPTION).and_then(ValueRef::as_document);
    option.is_some_and(|option| option.get(HASH).is_some())
}

/// The name of storage parameters in the option.
const STORAGE: &str = "storage";

/// Says which storage parameters an index has.
pub fn say_storage(option: &mut Document, parameters: &[&str]) {
    option.push(STORAGE, texts(parameters));
}

/// The storage parameters of an index, each with its value.
pub fn storage_of(spec: &IndexSpec) -> Vec<String> {
    texts_of(spec, STORAGE)
}

fn texts(all: &[&str]) -> Value {
    Value::Array(Array::new(all.iter().map(|text| Value::from(*text)).collect()))
}

fn texts_of(spec: &IndexSpec, name: &str) -> Vec<String> {
    let option = spec.option(expression::OPTION).and_then(ValueRef::as_document);
    match option.and_then(|option| option.get(name)) {
        Some(ValueRef::Array(all)) => all
            .iter()
            .map(|text| text.as_str().unwrap_or_default().to_owned())
            .collect(),
        _ => Vec::new(),
    }
}

/// The option with its paths as `now` has them; `None` when one of them is gone.
pub fn moved(mut option: Document, now: &dyn Fn(&str) -> Option<String>) -> Option<Document> {
    let before = said(option.as_ref());
    if !before.is_empty() {
        let all: Option<Vec<String>> = before.iter().map(|path| now(path)).collect();
        option.set("include", paths(&all?));
    }
    Some(option)
}
