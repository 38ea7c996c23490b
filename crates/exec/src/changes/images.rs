//! Documents as they were before and after a change.

use super::change::{Change, Kind};
use crate::point;
use nestor_model::{Error, ErrorCode, Namespace, RawDocBuf, RawWriter, Result, ValueRef};
use nestor_query::masking::{Key, Masking};
use nestor_query::stage::change_stream::{BeforeChange, ChangeStream, FullDocument};
use nestor_query::update::diff;
use nestor_storage::{Snapshot, View};

/// The document before a change, as an event shows it: `None` for no field, `Some(None)` for null.
type Image = Option<Option<RawDocBuf>>;

/// `fullDocumentBeforeChange` and `fullDocument` of an event.
#[derive(Debug, Default)]
pub(super) struct OfEvent {
    pub(super) before: Image,
    pub(super) after: Image,
}

impl OfEvent {
    /// Masks them.
    pub(super) fn mask(&mut self, masking: &Masking, key: Option<&Key>) {
        for image in [&mut self.before, &mut self.after].into_iter().flatten().flatten() {
            *image = masking.apply(image.as_raw().as_doc(), key);
        }
    }
}

/// The images that `stream` wants of `change`, before which the document was `kept`, if it was kept. `now` is a state that has the
/// change: documents are looked up there.
///
/// Errors: 47 (NoMatchingDocument) for one that is required and not kept.
pub(super) fn of_event(
    change: &Change<'_>,
    stream: &ChangeStream,
    kept: Option<&RawDocBuf>,
    now: impl FnOnce() -> Option<Snapshot>,
) -> Result<OfEvent> {
    let is_change = matches!(change.kind, Kind::Update | Kind::Replace | Kind::Delete);
    let wants_before = is_change && stream.before_change != BeforeChange::Off;
    let after = match (change.kind, stream.full_document) {
        (Kind::Insert | Kind::Replace, _) => Some(Some(change.o.to_buf())),
        (Kind::Update, FullDocument::UpdateLookup) => match now() {
            Some(now) => Some(look_up(change, stream, &now)?),
            None => Some(None),
        },
        (Kind::Update, FullDocument::WhenAvailable | FullDocument::Required) => {
            let after = kept.map(|before| diff::apply(before.as_raw(), change.o)).transpose()?;
            if after.is_none() && stream.full_document == FullDocument::Required {
                return Err(missing("post-image for all update events", "post-image", change));
            }
            Some(after)
        }
        _ => None,
    };
    if wants_before && kept.is_none() && stream.before_change == BeforeChange::Required {
        return Err(missing(
            "pre-image for all update, delete and replace events",
            "pre-image",
            change,
        ));
    }
    Ok(OfEvent {
        before: wants_before.then(|| kept.cloned()),
        after,
    })
}

fn missing(required: &str, image: &str, change: &Change<'_>) -> Error {
    let mut event = RawWriter::new();
    event.append("operationType", change.kind.name());
    change.append_ns(&mut event);
    if let Some(key) = change.document_key() {
        event.append_raw("documentKey", key);
    }
    Error::new(
        ErrorCode::NoMatchingDocument,
        format!(
            "Change stream was configured to require a {required}, but the {image} was not found for event: {:?}",
            ValueRef::Document(event.into_doc().as_raw().as_doc())
        ),
    )
}

/// The document as it is now.
fn look_up(change: &Change<'_>, stream: &ChangeStream, view: &dyn View) -> Result<Option<RawDocBuf>> {
    let Some(collection) = view.catalog().get(&Namespace::new(change.ns.0, change.ns.1)) else {
        return Ok(None);
    };
    if collection.is_view() || (stream.lookup_by_uuid && collection.uuid != change.uuid) {
        return Ok(None);
    }
    let Some(id) = change.document_key().and_then(|key| key.get("_id")) else {
        return Ok(None);
    };
    let found = point::by_id(view, collection, id)?;
    Ok(found.map(|(_, document)| document.document().to_buf()))
}
