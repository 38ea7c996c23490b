//! The source of a stream: reads the log from the stream's place on and gives the events.
//!
//! A stream that resumes behind an event first finds that event again: without it nobody could say that nothing was missed.
//! Conditions that the planner moved in here are looked at before an event is made; they decide what is given and nothing else.

use super::change::{Change, change};
use super::event::{Origin, event, header};
use super::images;
use super::shared::Shared;
use super::{fatal, history_lost};
use crate::batch::Batch;
use crate::catalog::{masked, refuse_guarded};
use crate::operator::{Counters, Explain, Operator, Report, Step};
use crate::row::RowDoc;
use nestor_model::{Document, Error, ErrorCode, RawDocBuf, Result, Timestamp, Value};
use nestor_planner::NodeKind;
use nestor_query::masking::Masking;
use nestor_query::matcher::{Filter, MatchExpr};
use nestor_query::stage::change_stream::{BeforeChange, ChangeStream, EventId, FullDocument, Start, Token, Watched};
use nestor_storage::log::{self, Interest, Kinds, LogPosition, LogReader, LogStep, Scope, Upto};
use nestor_storage::{StorageError, View as _};
use std::sync::Arc;

/// How often the reader may come upon nothing that is wanted, a millisecond each time, in one pull: then whoever pulls hears where
/// the stream is.
const STEPS_MAX: u32 = 500;

/// Reads the log for one stream.
pub(crate) struct Source {
    stream: Arc<ChangeStream>,
    filter: Option<Filter>,
    shared: Shared,
    /// Where the log is read from, before it is read.
    from: LogPosition,
    reader: Option<LogReader>,
    /// The event that ended the stream, which was given; its `invalidate` was not.
    ends: Option<Box<log::Change>>,
    /// The event behind which the stream resumes, until it was found.
    resumes: Option<Token>,
    /// The `invalidate` was reached, behind which nothing is read.
    is_over: bool,
    counters: Counters,
}

impl Source {
    /// The events of `stream` for which `filter` holds. Error: an internal one for a stream whose start is not a place yet.
    pub(crate) fn new(stream: Arc<ChangeStream>, filter: Option<Arc<MatchExpr>>) -> Result<(Self, Shared)> {
        let token = match stream.start {
            Start::Now => {
                return Err(Error::new(
                    ErrorCode::InternalError,
                    "where a change stream starts was not decided",
                ));
            }
            Start::At(time) => Token::mark(time),
            Start::After(token) => token,
        };
        let from = match token.event {
            None => LogPosition::before(token.time),
            // The event is to be found again.
            Some(event) => LogPosition {
                optime: token.time,
                index: event.operation,
            }
            .just_before(),
        };
        let shared = Shared::new(token);
        let source = Self {
            stream,
            filter: filter.map(Filter::new),
            shared: shared.clone(),
            from,
            reader: None,
            ends: None,
            resumes: token.event.map(|_| token),
            is_over: false,
            counters: Counters::default(),
        };
        Ok((source, shared))
    }

    fn reader(&mut self, batch: &Batch<'_>) -> Option<&mut LogReader> {
        if self.reader.is_none() {
            let scope = match &self.stream.watched {
                Watched::Collection(ns) => Scope::Collection(ns.clone()),
                Watched::Database(ns) => Scope::Database(ns.db.to_string()),
                Watched::Cluster => Scope::Everything,
            };
            let mut interest = Interest::new(scope, Kinds::CHANGES, Upto::Committed);
            let stream = &self.stream;
            if stream.before_change != BeforeChange::Off
                || matches!(
                    stream.full_document,
                    FullDocument::WhenAvailable | FullDocument::Required
                )
            {
                interest = interest.with_images();
            }
            self.reader = Some(batch.log?(self.from, interest));
        }
        self.reader.as_mut()
    }

    /// The event that the log tells of, if it is this stream's, was not given before and satisfies the condition.
    fn take(&mut self, logged: Box<log::Change>, is_invalidate: bool, batch: &Batch<'_>) -> Result<Option<RawDocBuf>> {
        let Some(found) = change(logged.operation.as_raw(), &self.stream) else {
            return Ok(None);
        };
        let found = if is_invalidate { found.invalidate() } else { found };
        let token = Token {
            time: logged.position.optime,
            event: Some(EventId {
                operation: logged.position.index,
                is_invalidate,
                fragment: 0,
                uuid: found.uuid,
            }),
        };
        let given = match self.is_new(&token)? {
            true => {
                self.is_over = is_invalidate;
                self.make(&found, &logged, token, batch)?
            }
            false => None,
        };
        if found.invalidates {
            self.ends = Some(logged);
        }
        Ok(given)
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
            // If an event was split, the fragments behind the one named are still to be given.
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
        logged: &log::Change,
        token: Token,
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
        // An image whose time of keeping is over is no longer there.
        let kept = logged
            .before
            .as_ref()
            .filter(|_| logged.wall_ms >= batch.images_since_ms);
        // The state that the batch reads may be older than what the log has by now.
        let now = || self.reader.as_ref().map(LogReader::snapshot);
        let mut images = images::of_event(found, &self.stream, kept, now)?;
        let masking = self.masking_of(found, batch)?;
        let key = batch.op.caller.as_ref().and_then(|caller| caller.sight.key());
        if let Some(masking) = &masking {
            images.mask(masking, key);
        }
        self.shared.lock().token = token;
        let origin = Origin {
            time: logged.position.optime,
            wall_ms: logged.wall_ms,
            transaction: logged.transaction.as_ref(),
        };
        let masking = masking.as_deref().map(|masking| (masking, key));
        event(found, origin, &token, &images, &self.stream, masking).map(Some)
    }

    /// What of the documents of a change is masked for who reads the stream: by the policy that the collection has now, whatever its name
    /// was then.
    fn masking_of(&self, found: &Change<'_>, batch: &Batch<'_>) -> Result<Option<Arc<Masking>>> {
        let Some(caller) = batch.op.caller.as_deref() else {
            return Ok(None);
        };
        // The state that the batch reads may be older than what the log has by now.
        let newest = self.reader.as_ref().map(LogReader::snapshot);
        let catalog = newest.as_ref().map_or(batch.view.catalog(), |newest| newest.catalog());
        let named = catalog.collection(found.ns.0, found.ns.1);
        let collection = named
            .filter(|collection| collection.uuid == found.uuid)
            .or_else(|| catalog.by_uuid(&found.uuid));
        Ok(match collection {
            Some(collection) => {
                refuse_guarded(collection, Some(caller))?;
                masked(collection, Some(caller))?.map(|masked| masked.masking.clone())
            }
            None => None,
        })
    }

    /// Notes where the stream is, for a reader to whom nothing is given.
    fn note(&mut self, is_behind: bool) {
        let mut state = self.shared.lock();
        state.is_behind = is_behind;
        state.is_over = self.is_over;
        state.mark = state.token;
        let position = self.reader.as_ref().map_or(self.from, LogReader::position);
        // Within a commit there is no mark: behind the last event of it that was given is as good.
        let is_at_token = self.resumes.is_some() || self.is_over || position.optime <= state.token.time;
        if !is_at_token {
            let behind = u64::from(position.index == LogPosition::LAST);
            let time = position.optime.to_u64().saturating_add(behind);
            state.mark = Token::mark(Timestamp::from_u64(time)).max(state.token);
        }
        if let (Some(reader), false) = (&mut self.reader, self.is_over || is_behind) {
            if state.signal.is_none() {
                state.signal = Some(reader.signal());
            }
        }
    }
}

impl Operator for Source {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        let mut steps = 0;
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
            let (logged, is_invalidate) = match self.ends.take() {
                Some(ends) => (ends, true),
                None => {
                    let Some(reader) = self.reader(batch) else {
                        return Ok(Step::Eof);
                    };
                    match reader.next() {
                        Ok(LogStep::Change(logged)) => (logged, false),
                        Ok(LogStep::Passed) if steps < STEPS_MAX => {
                            steps += 1;
                            continue;
                        }
                        Ok(step) => {
                            self.note(step == LogStep::Passed);
                            return Ok(Step::Eof);
                        }
                        Err(StorageError::OplogHistoryLost) => return Err(history_lost()),
                        Err(error) => return Err(error.into()),
                    }
                }
            };
            self.counters.docs_examined += 1;
            if let Some(event) = self.take(logged, is_invalidate, batch)? {
                self.counters.advanced += 1;
                return Ok(Step::Row(RowDoc::Raw(event).into()));
            }
        }
    }

    /// The reader stays, so that commits can wake it, and holds nothing.
    fn save(&mut self) {
        if let Some(reader) = &mut self.reader {
            reader.rest();
        }
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
