//! The document of an event.
//!
//! ```text
//! {_id, operationType, clusterTime, collectionUUID*, wallTime, txnNumber°, lsid°, fullDocument, ns, to, documentKey,
//!  updateDescription, operationDescription*, stateBeforeChange*, fullDocumentBeforeChange}
//! * with showExpandedEvents     ° of transactions
//! ```

use super::change::{Change, Kind, append_namespace};
use super::images::OfEvent;
use nestor_model::{RawDoc, RawDocBuf, RawWriter, Result, Timestamp, ValueRef, bail};
use nestor_query::masking::{self, Key, Masking};
use nestor_query::stage::change_stream::{ChangeStream, Token};
use nestor_query::update::description;
use nestor_storage::log::TransactionId;

/// The commit that an event is of.
#[derive(Clone, Copy)]
pub(super) struct Origin<'e> {
    pub(super) time: Timestamp,
    /// When it was made, in milliseconds since the epoch; 0 if the log does not say.
    pub(super) wall_ms: i64,
    pub(super) transaction: Option<&'e TransactionId>,
}

/// The fields that a condition sees which is evaluated before the event is made.
pub(super) fn header(change: &Change<'_>) -> RawDocBuf {
    let mut out = RawWriter::with_capacity(128);
    out.append("operationType", change.kind.name());
    change.append_ns(&mut out);
    if let Some(key) = change.document_key() {
        out.append_raw("documentKey", key);
    }
    out.into_doc()
}

/// The event of `change`.
///
/// `masking` is what of the documents the reader may not see plain, with the key of hashes.
///
/// Errors: 9 when the log holds an update that is none; 13 when it would be shown as it is and must not be.
pub(super) fn event(
    change: &Change<'_>,
    origin: Origin<'_>,
    token: &Token,
    images: &OfEvent,
    stream: &ChangeStream,
    masking: Option<(&Masking, Option<&Key>)>,
) -> Result<RawDocBuf> {
    let images_len = [&images.before, &images.after].into_iter().flatten().flatten();
    let images_len: usize = images_len.map(|doc| doc.as_bytes().len()).sum();
    let described = if change.kind == Kind::Update { change.o.len() } else { 0 };
    let mut out = RawWriter::with_capacity(512 + images_len + described);
    out.begin_document("_id");
    out.append("_data", token.data().as_str());
    out.end();
    out.append("operationType", change.kind.name());
    out.append("clusterTime", origin.time);
    let of_collection = change.uuid != [0; 16] && change.kind != Kind::Invalidate;
    if stream.expanded && of_collection {
        let bytes = &change.uuid;
        out.append("collectionUUID", ValueRef::Binary { subtype: 4, bytes });
    }
    if origin.wall_ms != 0 {
        out.append("wallTime", ValueRef::DateTime(origin.wall_ms));
    }
    if let Some(transaction) = origin.transaction {
        out.append("txnNumber", transaction.number);
        out.append_raw("lsid", transaction.lsid.as_raw());
    }
    append_image(&mut out, "fullDocument", images.after.as_ref());
    change.append_ns(&mut out);
    if let Some(key) = change.document_key() {
        out.append_raw("documentKey", key);
    }
    match change.kind {
        Kind::Update if stream.raw_updates && masking.is_some() => bail!(
            Unauthorized,
            "{}.{} is masked for you: showRawUpdateDescription would show it plain",
            change.ns.0,
            change.ns.1
        ),
        Kind::Update if stream.raw_updates => out.append_raw("rawUpdateDescription", change.o),
        Kind::Update => match masking {
            None => {
                out.begin_document("updateDescription");
                description::describe(change.o, stream.expanded, &mut out)?;
                out.end();
            }
            Some((masking, key)) => {
                let mut plain = RawWriter::new();
                description::describe(change.o, stream.expanded, &mut plain)?;
                let masked = masking::description(masking, plain.into_doc().as_raw(), key);
                out.append_raw("updateDescription", masked.as_raw());
            }
        },
        Kind::Rename => {
            if let Some(to) = change.to {
                append_namespace(&mut out, "to", to);
            }
        }
        _ => {}
    }
    if stream.expanded {
        describe_operation(&mut out, change);
    }
    append_image(&mut out, "fullDocumentBeforeChange", images.before.as_ref());
    Ok(out.into_doc())
}

fn append_image(out: &mut RawWriter, name: &str, image: Option<&Option<RawDocBuf>>) {
    match image {
        None => {}
        Some(None) => out.append(name, ValueRef::Null),
        Some(Some(doc)) => out.append_raw(name, doc.as_raw()),
    }
}

/// `operationDescription` of commands, and `stateBeforeChange`.
fn describe_operation(out: &mut RawWriter, change: &Change<'_>) {
    match change.kind {
        Kind::Create | Kind::Modify => {
            out.begin_document("operationDescription");
            append_options(out, change.o);
            out.end();
        }
        Kind::CreateIndexes | Kind::DropIndexes => {
            out.begin_document("operationDescription");
            out.begin_array("indexes");
            match (change.kind, change.o2) {
                (Kind::DropIndexes, Some(index)) => out.append_index(0, index.as_doc()),
                _ => {
                    out.begin_document_at(0);
                    append_options(out, change.o);
                    out.end();
                }
            }
            out.end();
            out.end();
        }
        Kind::Rename => {
            out.begin_document("operationDescription");
            if let Some(to) = change.to {
                append_namespace(out, "to", to);
            }
            if let Some(dropped @ ValueRef::Binary { .. }) = change.o.get("dropTarget") {
                out.append("dropTarget", dropped);
            }
            out.end();
        }
        _ => {}
    }
    if let (Kind::Modify, Some(before)) = (change.kind, change.o2) {
        out.begin_document("stateBeforeChange");
        for (name, shown) in [
            ("collectionOptions_old", "collectionOptions"),
            ("indexOptions_old", "indexOptions"),
        ] {
            if let Some(options) = before.get(name) {
                out.append(shown, options);
            }
        }
        out.end();
    }
}

/// The fields behind a command's own.
fn append_options(out: &mut RawWriter, command: RawDoc<'_>) {
    for element in command.elements().skip(1) {
        out.append_element_bytes(element.as_bytes());
    }
}
