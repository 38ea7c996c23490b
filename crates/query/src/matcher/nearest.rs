//! The location of a document that is nearest to a point.

use super::path::{Leaves, walk};
use crate::geo::Near;
use nestor_model::{DocRef, Path, Result, ValueRef};

/// The least distance that counts among those of the locations at `path`, and the location; `None` if there is none.
///
/// # Errors
/// Errors of the statement's interrupt.
pub fn nearest<'d>(near: &Near, doc: DocRef<'d>, path: &Path) -> Result<Option<(f64, ValueRef<'d>)>> {
    let mut found: Option<(f64, ValueRef<'d>)> = None;
    walk(ValueRef::Document(doc), path.parts(), Leaves::Elements, &mut |value| {
        if let Some(distance) = near.distance(value)?.filter(|distance| near.counts(*distance)) {
            if found.is_none_or(|(least, _)| distance < least) {
                found = Some((distance, value));
            }
        }
        Ok(false)
    })?;
    Ok(found)
}
