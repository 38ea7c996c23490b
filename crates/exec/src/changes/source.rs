//! The source of a stream: reads the log from the stream's place on and gives the events.
//!
//! A stream that resumes behind an event first finds that event again: without it nobody could say that nothing was missed.
//! Conditions that the planner moved in here are looked at before an event is made; they decide what is given and nothing else.

use super::change::{Change, change};
use super::event::{Entry, event, header};
use super::place::{Place, Shared};
use super::{fatal, history_lost, images};
use crate::batch::Batch;
use crate::operator::{Counters, Explain, Operator, Report, Step};
use crate::row::RowDoc;
use nestor_model::{
    ArrayRef, DocRef, Document, Error, ErrorCode, RawDoc, RawDocBuf, Result, Timestamp, Value, ValueRef,
};
use nestor_planner::NodeKind;
use nestor_query::matcher::{Filter, MatchExpr};
use nestor_query::stage::change_stream::{ChangeStream, EventId, Start, Token};
use nestor_storage::StorageError;
use nestor_storage::oplog::OplogCursor;
use std::sync::Arc;

/// Entries that are read in one pull although nothing is given: then the reader hears where the stream is.
const ENTRIES_MAX: u64 = 200_000;
/// Where the first element of a document stands: behind its length.
const FIRST_ELEMENT: usize = 4;

/// Reads the log for one stream.
pub(crate) struct Source {
    stream: Arc<ChangeStream>,
    filter: Option<Filter>,
    shared: Shared,
    cursor: Option<OplogCursor>,
    /// What is looked at next.
    place: Place,
    /// The entry at that place, if it was read already.
    entry: Option<Read>,
    /// The event behind which the stream resumes, until it was found.
    resumes: Option<Token>,
    /// An `invalidate` was reached, behind which nothing is read.
    is_over: bool,
    counters: Counters,
}

/// An entry of the log whose operations are being looked at.
struct Read {
    doc: RawDocBuf,
    time: Timestamp,
    is_transaction: bool,
    next: Next,
}

/// The operation of an entry that is looked at next.
#[derive(Clone, Copy)]
enum Next {
    /// The entry itself.
    Itself,
    /// One of a transaction: where it starts within the array of them, and which it is.
    Within { at: usize, number: u32 },
    /// None is left.
    End,
}

/// An operation of an entry.
struct Operation<'e> {
    doc: RawDoc<'e>,
    number: u32,
    /// What follows it.
    next: Next,
}

impl Source {
    /// The events of `stream` for which `filter` holds. Error: an internal one for a stream whose start is not a place yet.
    pub(crate) fn new(stream: Arc<ChangeStream>, filter: Option<Arc<MatchExpr>>) -> Result<(Self, Shared)> {
        let (place, token, resumes) = match stream.start {
            Start::Now => {
                return Err(Error::new(
                    ErrorCode::InternalError,
                    "where a change stream starts was not decided",
                ));
            }
            Start::At(time) => (Place::at(time), Token::mark(time), None),
            Start::After(token) => (Place::of(&token), token, token.event.map(|_| token)),
        };
        let shared = Shared::new(token);
        let source = Self {
            stream,
            filter: filter.map(Filter::new),
            shared: shared.clone(),
            cursor: None,
            place,
            entry: None,
            resumes,
            is_over: false,
            counters: Counters::default(),
        };
        Ok((source, shared))
    }

    /// Reads the entry that the place is in, or the next one. `false` when there is none yet.
    fn read(&mut self, batch: &Batch<'_>) -> Result<bool> {
        let cursor = match (&mut self.cursor, batch.oplog) {
            (Some(cursor), _) => cursor,
            (None, Some(open)) => self.cursor.insert(open(self.place.read_behind())),
            (None, None) => return Ok(false),
        };
        let entry = match cursor.next() {
            Ok(entry) => entry,
            Err(StorageError::OplogHistoryLost) => return Err(history_lost()),
            Err(error) => return Err(error.into()),
        };
        let time = cursor.position();
        let Some(doc) = entry else { return Ok(false) };
        self.counters.docs_examined += 1;
        if time > self.place.time {
            self.place = Place::at(time);
        }
        let is_transaction = operations(doc.as_raw()).is_some();
        let next = match is_transaction {
            true => Next::Within {
                at: FIRST_ELEMENT,
                number: 0,
            },
            false => Next::Itself,
        };
        self.entry = Some(Read {
            doc,
            time,
            is_transaction,
            next,
        });
        Ok(true)
    }

    /// The next event of the entry that was read; `None` when all its operations were looked at, or the stream has ended.
    fn next_of_entry(&mut self, batch: &Batch<'_>) -> Result<Option<RawDocBuf>> {
        let Some(mut read) = self.entry.take() else {
            return Ok(None);
        };
        let doc = read.doc.clone();
        while let Some(op) = read.operation(doc.as_raw()) {
            let found = match op.number < self.place.operation {
                true => None,
                false => change(op.doc, &self.stream),
            };
            let is_invalidate = self.place.is_invalidate;
            let found = match found {
                Some(found) if is_invalidate => found.invalidates.then(|| found.invalidate()),
                found => found,
            };
            let Some(found) = found else {
                self.pass(&mut read, &op);
                continue;
            };
            let token = token(&found, read.time, op.number, is_invalidate);
            if found.invalidates {
                self.place.is_invalidate = true;
            } else {
                self.pass(&mut read, &op);
            }
            if !self.is_new(&token)? {
                continue;
            }
            let entry = Entry {
                time: read.time,
                doc: doc.as_raw(),
                is_transaction: read.is_transaction,
            };
            self.is_over = is_invalidate;
            let event = self.make(&found, entry, token, op.number, batch)?;
            if event.is_some() || self.is_over {
                self.entry = Some(read);
                return Ok(event);
            }
        }
        self.place = Place::behind(read.time);
        Ok(None)
    }

    /// Goes behind an operation, and behind the `invalidate` that it may have.
    fn pass(&mut self, read: &mut Read, op: &Operation<'_>) {
        read.next = op.next;
        self.place = self.place.max(Place {
            time: read.time,
            operation: op.number.saturating_add(1),
            is_invalidate: false,
        });
    }

    /// Whether an event was not given before: it is not the one that the stream resumes behind.
    ///
    /// Error: 280 when that one was passed without having been met.
    fn is_new(&mut self, token: &Token) -> Result<bool> {
        let Some(resumes) = self.resumes else {
            return Ok(true);
        };
        if *token == resumes.whole() {
            self.resumes = None;
            // Of an event that was split, the fragments behind the one named are still to be given.
            return Ok(resumes.fragment() > 0);
        }
        if *token < resumes.whole() {
            return Ok(false);
        }
        Err(fatal(format!(
            "cannot resume stream; the resume token was not found. {:?}",
            resumes.to_document()
        )))
    }

    /// The event, if it satisfies the condition.
    fn make(
        &mut self,
        found: &Change<'_>,
        entry: Entry<'_>,
        token: Token,
        number: u32,
        batch: &Batch<'_>,
    ) -> Result<Option<RawDocBuf>> {
        if self.is_over {
            let mut state = self.shared.lock();
            (state.token, state.is_over) = (token, true);
        }
        if let Some(filter) = &self.filter {
            if !filter.matches(header(found).as_raw().as_doc(), batch.op)? {
                return Ok(None);
            }
        }
        let images = images::of_event(found, &self.stream, (entry.time, number), batch)?;
        self.shared.lock().token = token;
        event(found, entry, &token, &images, &self.stream).map(Some)
    }

    /// Notes where the stream is, for a reader to whom nothing is given.
    fn note(&self, is_behind: bool) {
        let mut state = self.shared.lock();
        state.is_behind = is_behind;
        state.is_over = self.is_over;
        let is_at_token = self.resumes.is_some() || self.is_over || Place::behind(state.token.time) >= self.place;
        state.mark = match is_at_token {
            true => state.token,
            false => Token::mark(self.place.time),
        };
    }
}

impl Read {
    /// The operation to look at.
    fn operation<'e>(&self, doc: RawDoc<'e>) -> Option<Operation<'e>> {
        let (at, number) = match self.next {
            Next::End => return None,
            Next::Itself => {
                return Some(Operation {
                    doc,
                    number: 0,
                    next: Next::End,
                });
            }
            Next::Within { at, number } => (at, number),
        };
        let element = operations(doc)?.elements_from(at).next()?;
        let ValueRef::Document(DocRef::Raw(doc)) = element.value() else {
            return None;
        };
        let next = Next::Within {
            at: at + element.as_bytes().len(),
            number: number + 1,
        };
        Some(Operation { doc, number, next })
    }
}

fn token(found: &Change<'_>, time: Timestamp, operation: u32, is_invalidate: bool) -> Token {
    Token {
        time,
        event: Some(EventId {
            operation,
            is_invalidate,
            fragment: 0,
            uuid: found.uuid,
        }),
    }
}

/// The operations of a transaction.
fn operations(entry: RawDoc<'_>) -> Option<RawDoc<'_>> {
    let Some(ValueRef::String("admin.$cmd")) = entry.get("ns") else {
        return None;
    };
    let Some(ValueRef::Document(DocRef::Raw(o))) = entry.get("o") else {
        return None;
    };
    match o.get("applyOps") {
        Some(ValueRef::Array(ArrayRef::Raw(operations))) => Some(operations),
        _ => None,
    }
}

impl Operator for Source {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        let begun = self.counters.docs_examined;
        loop {
            if self.is_over {
                self.note(false);
                self.counters.is_eof = true;
                return Ok(Step::Eof);
            }
            if !batch.spend()? {
                return Ok(Step::Pause);
            }
            self.counters.works += 1;
            if self.entry.is_none() {
                let is_behind = self.counters.docs_examined - begun >= ENTRIES_MAX;
                if is_behind || !self.read(batch)? {
                    self.note(is_behind);
                    return Ok(Step::Eof);
                }
            }
            if let Some(event) = self.next_of_entry(batch)? {
                self.counters.advanced += 1;
                return Ok(Step::Row(RowDoc::Raw(event).into()));
            }
        }
    }

    fn is_done(&self) -> bool {
        self.is_over
    }

    /// What was read of a transaction is read again.
    fn save(&mut self) {
        self.cursor = None;
        self.entry = None;
    }

    fn report(&self) -> Report<'_> {
        Report::new(NodeKind::ChangeStream, &self.counters).explained_by(self)
    }
}

impl Explain for Source {
    fn stage_fields(&self, out: &mut Document) {
        out.push("docsExamined", Value::count(self.counters.docs_examined));
    }
}
