//! Documents before they are inserted: `_id` first, no empty timestamps, within limits.

use nestor_model::{Error, ErrorCode, RawDoc, RawDocBuf, RawWriter, Result, Timestamp, ValueRef, raw};
use nestor_query::env::OpContext;
use nestor_query::update::check_id;

/// Checks a document that a client inserts and brings it into stored form: `_id` is made if missing and
/// stands first; top-level timestamps of zero become the present time, if `fill_times`.
///
/// Errors: 2 for size, 53 and 52 for bad `_id` values.
pub fn for_insert(doc: RawDoc<'_>, op: &OpContext, fill_times: bool) -> Result<RawDocBuf> {
    if doc.len() > raw::DOCUMENT_BYTES_MAX {
        return Err(Error::new(
            ErrorCode::BSONObjectTooLarge,
            format!(
                "object to insert too large. size in bytes: {}, max size: {}",
                doc.len(),
                raw::DOCUMENT_BYTES_MAX
            ),
        ));
    }
    let mut first = true;
    let mut id = None;
    let mut id_is_first = false;
    let mut has_empty_time = false;
    for element in doc.elements() {
        if element.name() == "_id" {
            if id.is_some() {
                return Err(Error::bad_value("can't have multiple _id fields in one document"));
            }
            check_id(element.value())?;
            id = Some(element);
            id_is_first = first;
        } else if fill_times && is_empty_time(element.value()) {
            has_empty_time = true;
        }
        first = false;
    }
    if id_is_first && !has_empty_time {
        return Ok(doc.to_buf());
    }
    let mut writer = RawWriter::with_capacity(doc.len() + 24);
    match &id {
        Some(element) => writer.append_element_bytes(element.as_bytes()),
        None => writer.append("_id", op.object_id()),
    }
    for element in doc.elements() {
        if element.name() == "_id" {
            continue;
        }
        if fill_times && is_empty_time(element.value()) {
            writer.append(element.name(), op.timestamp());
        } else {
            writer.append_element_bytes(element.as_bytes());
        }
    }
    Ok(writer.into_doc())
}

fn is_empty_time(value: ValueRef<'_>) -> bool {
    matches!(value, ValueRef::Timestamp(time) if time == Timestamp::default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::{Document, Value, doc};

    fn prepared(doc: Document) -> String {
        let op = OpContext::new(1_000, Timestamp { secs: 7, inc: 3 }, 1);
        match for_insert(doc.to_raw().as_raw(), &op, true) {
            Ok(doc) => format!("{doc:?}"),
            Err(e) => format!("error {}", e.code().number()),
        }
    }

    #[test]
    fn id_comes_first_and_time_is_filled_in() {
        assert_eq!(prepared(doc! { "a": 1, "_id": 2 }), r#"{"_id": 2, "a": 1}"#);
        assert_eq!(
            prepared(doc! { "_id": 2, "t": Timestamp::default(), "d": doc! { "t": Timestamp::default() } }),
            r#"{"_id": 2, "t": Timestamp(7, 3), "d": {"t": Timestamp(0, 0)}}"#
        );
        assert!(prepared(doc! { "a": 1 }).starts_with(r#"{"_id": ObjectId("00000001"#));
    }

    #[test]
    fn ids_that_cannot_be() {
        assert_eq!(prepared(doc! { "_id": vec![Value::from(1)] }), "error 53");
        assert_eq!(prepared(doc! { "_id": Value::Undefined }), "error 53");
    }
}
