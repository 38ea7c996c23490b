//! `$search`, `$searchMeta` and `$vectorSearch`: what a search index finds, as rows.

use super::PipelineSource;
use crate::batch::Batch;
use crate::catalog::{masked, refuse_guarded};
use crate::kept::Kept;
use crate::operator::{BoxOperator, Counters, Explain, Operator, Report, Step};
use crate::ops::Eof;
use crate::row::{Row, RowDoc};
use crate::search::{Searches, definition, for_each_record};
use nestor_model::{Document, Namespace, RawDoc, Result, SearchIndex, Value, bail};
use nestor_planner::NodeKind;
use nestor_query::env::{Caller, DocMeta};
use nestor_query::stage::{SearchKind, SearchStage};
use nestor_search::{Found, Hits, Index, Nearest, ReadSynonyms, Search};
use nestor_storage::{Bytes, Collection, RecordReader, View};
use std::sync::Arc;

/// What an index is asked for, read.
enum Asked {
    Search(Box<Search>),
    Nearest(Nearest),
}

impl Asked {
    fn index_name(&self) -> &str {
        match self {
            Self::Search(search) => search.index_name(),
            Self::Nearest(nearest) => nearest.index_name(),
        }
    }

    fn of(&self, index: &Index, synonyms: &mut ReadSynonyms<'_>) -> Result<Found> {
        match self {
            Self::Search(search) => index.search(search, synonyms),
            Self::Nearest(nearest) => index.nearest(nearest),
        }
    }

    fn without_index(&self) -> Found {
        match self {
            Self::Search(search) => search.without_index(),
            Self::Nearest(_) => Found::default(),
        }
    }
}

/// The rows of a stage on the namespace of `context`.
///
/// Errors: those of reading its operand, 13 for who may not see the collection plain; of one that is explained, also those of asking its index.
pub(super) fn open(
    stage: &Arc<SearchStage>,
    is_explained: bool,
    view: &dyn View,
    context: &PipelineSource,
) -> Result<BoxOperator> {
    let Some(collection) = view.catalog().get(&context.namespace) else {
        return Ok(Box::new(Eof::default()));
    };
    refuse_guarded(collection, context.caller.as_deref())?;
    if masked(collection, context.caller.as_deref())?.is_some() {
        bail!(Unauthorized, "{} is for who sees the collection plain", stage.name());
    }
    let asked = match stage.kind {
        SearchKind::Nearest => {
            let nearest = Nearest::parse(stage.operand.as_ref())?;
            Asked::Nearest(if is_explained { nearest.explained() } else { nearest })
        }
        SearchKind::Documents => Asked::Search(Box::new(Search::parse(stage.operand.as_ref())?)),
        SearchKind::Meta => Asked::Search(Box::new(Search::parse_meta(stage.operand.as_ref())?)),
    };
    let name = asked.index_name();
    let indexes = &collection.options.search_indexes;
    let index = indexes.iter().find(|index| index.name == name).cloned();
    if let (Asked::Nearest(nearest), Some(index), true) = (&asked, &index, is_explained) {
        definition(index)?.check_nearest(nearest)?;
    }
    let Some(searches) = context.searches.clone() else {
        bail!(CommandNotSupported, "{} needs a server", stage.name());
    };
    Ok(Box::new(SearchOp {
        kind: stage.kind,
        asked,
        index,
        searches,
        collection: collection.clone(),
        caller: context.caller.clone(),
        reader: RecordReader::new(collection.records),
        rows: None,
        meta: None,
        is_noted: false,
        kept: Kept::default(),
        counters: Counters::default(),
    }))
}

/// Asks at the first pull and reads the documents found one by one.
struct SearchOp {
    kind: SearchKind,
    asked: Asked,
    /// `None`: there is none of the name.
    index: Option<SearchIndex>,
    searches: Arc<Searches>,
    collection: Arc<Collection>,
    caller: Option<Arc<Caller>>,
    reader: RecordReader,
    rows: Option<Hits>,
    /// What `$$SEARCH_META` is, and whether the operation of this batch knows.
    meta: Option<Arc<Value>>,
    is_noted: bool,
    kept: Kept,
    counters: Counters,
}

impl SearchOp {
    fn ask(&mut self, batch: &Batch<'_>) -> Result<()> {
        let found = match &self.index {
            None => self.asked.without_index(),
            Some(index) => {
                let held = self.searches.at(batch.view, &self.collection, index)?;
                let mut synonyms = |name: &str, each: &mut dyn FnMut(RawDoc<'_>) -> Result<()>| {
                    self.read_synonyms(batch.view, name, each)
                };
                self.asked.of(&held, &mut synonyms)?
            }
        };
        self.kept.grow(found.hits.bytes())?;
        self.meta = found.meta.map(|meta| Arc::new(Value::from(meta)));
        self.rows = Some(found.hits);
        Ok(())
    }

    /// Calls `each` with the documents of a collection of the same database; of one that is not there with none.
    fn read_synonyms(&self, view: &dyn View, name: &str, each: &mut dyn FnMut(RawDoc<'_>) -> Result<()>) -> Result<()> {
        let ns = Namespace::new(self.collection.ns.db.clone(), name);
        let Some(collection) = view.catalog().get(&ns) else {
            return Ok(());
        };
        if collection.is_view() {
            bail!(UnknownError, "synonyms are read of collections, and {ns} is a view");
        }
        refuse_guarded(collection, self.caller.as_deref())?;
        if masked(collection, self.caller.as_deref())?.is_some() {
            bail!(Unauthorized, "synonyms in {ns} are for who sees the collection plain");
        }
        for_each_record(view, collection.records, &mut |_, document| each(document))
    }

    /// The next document that the view has.
    fn next_hit(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        loop {
            if !batch.spend()? {
                return Ok(Step::Pause);
            }
            self.counters.works += 1;
            let next = self.rows.as_mut().map(Hits::take_next).transpose()?.flatten();
            let Some(hit) = next else {
                self.rows = Some(Hits::default());
                self.kept.set(0)?;
                return Ok(Step::Eof);
            };
            let highlights = match &hit.highlights {
                Some(highlights) => Some(highlights.value()?),
                None => None,
            };
            let sequence_token = hit.sequence_token();
            let (doc, record) = match hit.stored {
                Some(stored) => (RowDoc::Owned(stored), None),
                None => {
                    self.counters.docs_examined += 1;
                    // A later batch may be of a newer state.
                    let Some(found) = self.reader.get(batch.view, &hit.key)? else {
                        continue;
                    };
                    (RowDoc::Stored(found), Some(Bytes::copy_from(&hit.key)))
                }
            };
            let score = |kind: SearchKind| (self.kind == kind).then_some(hit.score);
            let meta = DocMeta {
                search_score: score(SearchKind::Documents),
                vector_search_score: score(SearchKind::Nearest),
                highlights,
                search_score_details: hit.details,
                sequence_token,
                ..DocMeta::default()
            };
            return Ok(Step::Row(Row {
                doc,
                record,
                meta: Some(Box::new(meta)),
            }));
        }
    }
}

impl Operator for SearchOp {
    fn next(&mut self, batch: &mut Batch<'_>) -> Result<Step> {
        let is_first = self.rows.is_none();
        if is_first {
            self.ask(batch)?;
        }
        if let (Some(meta), false) = (&self.meta, self.is_noted) {
            batch.op.note_search(meta);
            self.is_noted = true;
        }
        let step = match (self.kind, is_first) {
            (SearchKind::Meta, true) => {
                self.counters.works += 1;
                match self.meta.as_deref() {
                    Some(Value::Document(meta)) => Step::Row(meta.clone().into()),
                    _ => Step::Eof,
                }
            }
            (SearchKind::Meta, false) => Step::Eof,
            _ => self.next_hit(batch)?,
        };
        Ok(self.counters.gave(step))
    }

    fn save(&mut self) {
        self.reader.save();
        self.is_noted = false;
        self.kept.rest();
    }

    fn report(&self) -> Report<'_> {
        Report::new(NodeKind::Documents, &self.counters)
            .holding(self.kept.bytes())
            .explained_by(self)
    }
}

impl Explain for SearchOp {
    fn plan_fields(&self, out: &mut Document) {
        match &self.index {
            Some(index) => out.push("searchIndex", index.name.clone()),
            None => out.push("searchIndex", Value::Null),
        }
    }
}
