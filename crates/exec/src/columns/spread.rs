//! Paths that lead through arrays: a condition on such a path holds for a document when it holds for one of the elements.

use nestor_columns::{Column, Elements, Found, Segment, elements};
use nestor_model::{Result, Value};
use nestor_query::matcher::Predicate;
use std::ops::Range;

/// What a segment has at a path.
pub(super) enum Spread<'s> {
    /// One value of each row; nothing of any without a column.
    Column(Option<&'s Column>),
    /// Those of the elements of arrays.
    Elements(Elements<'s>, Box<Spread<'s>>),
}

/// What a segment has at a path, whose arrays are spread; `None` where documents have to be looked at.
pub(super) fn spread<'s>(segment: &'s Segment, path: &[&str]) -> Option<Spread<'s>> {
    match segment.find(path.iter().copied()) {
        Found::Column(column) => return Some(Spread::Column(Some(column))),
        Found::Nothing => return Some(Spread::Column(None)),
        Found::Unknown => {}
    }
    for count in 1..=path.len() {
        let (array, rest) = path.split_at(count);
        if let elements::Found::Elements(found) = segment.elements(array.iter().copied()) {
            // A number is a place in the array as well.
            let is_place = rest
                .first()
                .is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
            return match is_place {
                true => None,
                false => Some(Spread::Elements(found, Box::new(spread(found.segment(), rest)?))),
            };
        }
    }
    None
}

/// Whether a test of an array comes down to that of its elements, and holds neither of null nor of nothing.
pub(super) fn is_of_elements(predicate: &Predicate) -> bool {
    let is_plain = |value: &Value| {
        let is_number = value.as_ref().bson_type().is_number();
        is_number
            || matches!(
                value,
                Value::String(_) | Value::Bool(_) | Value::DateTime(_) | Value::ObjectId(_)
            )
    };
    match predicate {
        Predicate::Compare { value, .. } => is_plain(value),
        Predicate::In(set) => set.values().iter().all(is_plain),
        Predicate::Regex(_) | Predicate::Mod(_) | Predicate::Bits(_) => true,
        _ => false,
    }
}

/// Leaves those of some rows for one of whose elements a test holds: it leaves those of the elements that it is given.
///
/// Errors: those of the test.
pub(super) fn any(
    found: &Elements<'_>,
    rows: &Range<usize>,
    left: &mut [bool],
    test: impl FnOnce(&Range<usize>, &mut [bool]) -> Result<()>,
) -> Result<()> {
    let all = found.of_rows(rows);
    let mut holds = vec![true; all.len()];
    test(&all, &mut holds)?;
    let mut begin = all.start;
    for (row, left) in rows.clone().zip(left) {
        let end = found.of_rows(&(row..row + 1)).end;
        *left &= holds[begin - all.start..end - all.start].contains(&true);
        begin = end;
    }
    Ok(())
}
