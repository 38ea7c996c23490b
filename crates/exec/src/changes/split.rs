//! `$changeStreamSplitLargeEvent`: an event too large for one document becomes several, the fragments.
//!
//! Top-level fields stay whole. The small ones come first, so that the first fragment has as many as possible.
//! Source: manual, "$changeStreamSplitLargeEvent".

use super::fatal;
use super::shared::Shared;
use crate::batch::Batch;
use crate::operator::{BoxOperator, Counters, Operator, Report, Step};
use crate::row::{Row, RowDoc};
use nestor_model::raw::{DOCUMENT_BYTES_MAX, RawElement};
use nestor_model::{Error, ErrorCode, RawDoc, RawDocBuf, RawWriter, Result};
use nestor_planner::NodeKind;
use nestor_query::stage::change_stream::Token;
use std::collections::VecDeque;

/// Bytes that a fragment has beside the fields of its event: its token, its number and lengths.
const FRAME_BYTES: usize = 256;
/// How much more a fragment of one field may have: what results may have beyond documents.
const SLACK_BYTES: usize = 8 * 1024;

/// Splits events.
pub(crate) struct Split {
    input: BoxOperator,
    shared: Shared,
    /// Fragments that are still to be given, with their tokens.
    fragments: VecDeque<(Token, RawDocBuf)>,
    /// The fragment behind which the stream resumes.
    resumes: Option<Token>,
    /// Bytes of an event that is not split, and of a fragment of several fields.
    bytes_max: usize,
    counters: Counters,
}

impl Split {
    /// Splits the large ones of the events of `input`, which stands on the source with which it has `shared`.
    pub(crate) fn new(input: BoxOperator, shared: Shared) -> Self {
        let start = shared.lock().token;
        Self {
            input,
            shared,
            fragments: VecDeque::new(),
            resumes: (start.fragment() > 0).then_some(start),
            bytes_max: DOCUMENT_BYTES_MAX,
            counters: Counters::default(),
        }
    }

    fn give(&mut self) -> Option<Step> {
        let (token, doc) = self.fragments.pop_front()?;
        let mut state = self.shared.lock();
        state.token = token;
        state.in_fragments = !self.fragments.is_empty();
        self.counters.advanced += 1;
        Some(Step::Row(RowDoc::Raw(doc).into()))
    }

    /// The row as it is, or `None` if it was split.
    fn take(&mut self, row: Row) -> Result<Option<Row>> {
        let token = self.shared.lock().token;
        let resumes = self.resumes.take_if(|resumes| resumes.whole() == token);
        if row.doc.size() <= self.bytes_max / 2 {
            return Ok(Some(row));
        }
        let doc = row.doc.to_raw();
        if doc.as_bytes().len() <= self.bytes_max {
            return Ok(Some(row));
        }
        let parts = divide(doc.as_raw(), self.bytes_max)?;
        let of = parts.len() as u32;
        let given = resumes.map_or(0, |resumes| resumes.fragment());
        if given > of {
            return Err(fatal(
                "cannot resume stream; the event has no fragment as the resume token names it",
            ));
        }
        for (number, fields) in (1..).zip(parts).skip(given as usize) {
            let token = token.of_fragment(number);
            self.fragments
                .push_back((token, fragment(&token, (number, of), &fields)));
        }
        Ok(None)
    }
}

/// The fields of each fragment; `_id` is that of the fragment.
fn divide(doc: RawDoc<'_>, bytes_max: usize) -> Result<Vec<Vec<RawElement<'_>>>> {
    let mut fields: Vec<RawElement<'_>> = doc.elements().filter(|field| field.name() != "_id").collect();
    fields.sort_by_key(|field| field.as_bytes().len());
    let mut parts: Vec<Vec<RawElement<'_>>> = Vec::new();
    let mut bytes = usize::MAX;
    for field in fields {
        let len = field.as_bytes().len();
        if len > bytes_max + SLACK_BYTES {
            return Err(Error::new(
                ErrorCode::BSONObjectTooLarge,
                format!(
                    "Splitting change event failed: field '{}' of {len} bytes is too large for a fragment",
                    field.name()
                ),
            ));
        }
        if bytes.saturating_add(len) > bytes_max {
            parts.push(Vec::new());
            bytes = FRAME_BYTES;
        }
        bytes += len;
        if let Some(part) = parts.last_mut() {
            part.push(field);
        }
    }
    Ok(parts)
}

fn fragment(token: &Token, (number, of): (u32, u32), fields: &[RawElement<'_>]) -> RawDocBuf {
    let len: usize = fields.iter().map(|field| field.as_bytes().len()).sum();
    let mut out = RawWriter::with_capacity(len + FRAME_BYTES);
    out.append("_id", &token.to_document());
    out.begin_document("splitEvent");
    out.append("fragment", number as i32);
    out.append("of", of as i32);
    out.end();
    for field in fields {
        out.append_element_bytes(field.as_bytes());
    }
    out.into_doc()
}

impl Operator for Split {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        loop {
            if let Some(step) = self.give() {
                return Ok(step);
            }
            let step = self.input.next(batch)?;
            self.counters.pulled(&step);
            let Step::Row(row) = step else {
                return Ok(self.counters.gave(step));
            };
            if let Some(row) = self.take(row)? {
                return Ok(self.counters.gave(Step::Row(row)));
            }
        }
    }

    fn save(&mut self) {
        self.input.save();
    }

    fn report(&self) -> Report<'_> {
        let held = self.fragments.iter().map(|(_, doc)| doc.as_bytes().len()).sum();
        Report::new(NodeKind::SplitLargeEvent, &self.counters)
            .over(&*self.input)
            .holding(held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::{Timestamp, doc};

    #[test]
    fn small_fields_come_first_and_large_ones_alone() {
        let large = "x".repeat(3000);
        let event = doc! { "_id": 0, "a": large.as_str(), "b": large.as_str(), "c": 1, "d": 2 }.to_raw();
        let parts = divide(event.as_raw(), 4000).expect("it can be split");
        let names: Vec<Vec<&str>> = parts
            .iter()
            .map(|part| part.iter().map(RawElement::name).collect())
            .collect();
        assert_eq!(names, [vec!["c", "d", "a"], vec!["b"]]);
        let token = Token::mark(Timestamp::default());
        let shown = fragment(&token, (1, 2), &parts[1]);
        assert_eq!(
            shown,
            doc! { "_id": token.to_document(), "splitEvent": doc! { "fragment": 1, "of": 2 }, "b": large.as_str() }
                .to_raw()
        );
        let event = doc! { "a": "x".repeat(20_000) }.to_raw();
        let error = divide(event.as_raw(), 4000);
        assert_eq!(
            error.map(|_| ()).expect_err("too large").code(),
            ErrorCode::BSONObjectTooLarge
        );
    }
}
