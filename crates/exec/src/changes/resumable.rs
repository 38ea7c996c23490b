//! The top of a stream: sees to it that every event that is given can be resumed behind, and tells where the stream is.

use super::fatal;
use super::shared::Shared;
use crate::batch::Batch;
use crate::operator::{BoxOperator, Operator, Report, Step, Whereabouts};
use nestor_model::{DocRef, Result, ValueRef};
use nestor_query::stage::change_stream::Token;
use nestor_storage::log::LogSignal;

/// Passes on rows that still have their token.
pub(crate) struct Resumable {
    input: BoxOperator,
    shared: Shared,
    /// The event of which a fragment was the last that was given, if so.
    split: Option<Token>,
    at: Token,
    before: Token,
    is_behind: bool,
    is_over: bool,
    signal: Option<LogSignal>,
}

impl Resumable {
    /// The rows of `input`, made of the events of the source with which it has `shared`.
    pub(crate) fn new(input: BoxOperator, shared: Shared) -> Self {
        let start = shared.lock().token;
        Self {
            input,
            shared,
            split: (start.fragment() > 0).then(|| start.whole()),
            at: start,
            before: start,
            is_behind: false,
            is_over: false,
            signal: None,
        }
    }
}

/// Error: 280 for a row whose `_id` is not that of its event.
fn check(row: DocRef<'_>, token: &Token) -> Result<()> {
    let id = row.get("_id");
    let same = match id {
        Some(ValueRef::Document(id)) => {
            let mut fields = id.iter();
            matches!(fields.next(), Some(("_data", ValueRef::String(data))) if data == token.data())
                && fields.next().is_none()
        }
        _ => false,
    };
    if same {
        return Ok(());
    }
    Err(fatal(format!(
        "Encountered an event whose _id field, which contains the resume token, was modified by the pipeline. Modifying the \
         _id field of an event makes it impossible to resume the stream from that point. Only transformations that retain \
         the unmodified _id field are allowed. Expected: {:?} but found: {:?}",
        token.to_document(),
        id.unwrap_or(ValueRef::Missing)
    )))
}

impl Operator for Resumable {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        let step = self.input.next(batch)?;
        let state = self.shared.lock();
        match &step {
            Step::Row(row) => {
                check(row.as_doc(), &state.token)?;
                if self.split.take() == Some(state.token) {
                    return Err(fatal(
                        "cannot resume stream; the event of the resume token is not split",
                    ));
                }
                self.before = self.at;
                self.at = state.token;
                self.is_behind = false;
                self.is_over = state.is_over && !state.in_fragments;
            }
            Step::Eof => {
                self.at = state.mark;
                self.before = state.mark;
                self.is_behind = state.is_behind;
                self.is_over = state.is_over;
                if self.signal.is_none() {
                    self.signal.clone_from(&state.signal);
                }
            }
            Step::Pause => {}
        }
        drop(state);
        Ok(step)
    }

    fn save(&mut self) {
        self.input.save();
    }

    fn report(&self) -> Report<'_> {
        Report {
            stream: Some(Whereabouts {
                at: self.at,
                before: self.before,
                is_over: self.is_over,
                is_behind: self.is_behind,
                signal: self.signal.as_ref(),
            }),
            ..self.input.report()
        }
    }
}
