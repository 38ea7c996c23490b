//! The catalog as a statement reads it, and what it finds in collections.

pub use super::facts::{Commits, SYNCHRONOUS, SessionFacts};
use super::held::Holding;
pub use super::index_facts::index_name;
use super::numbers::{Sequence, of_collection};
use super::shown;
use crate::bind::Binder;
use crate::bind::declared::Declared;
use crate::bind::duality::with_etag;
use crate::bind::entry::{self, Object};
use crate::catalog::answers::{Answers, Asked, Current, Kept};
use crate::catalog::documents::{Inference, SAMPLE};
use crate::catalog::files::Named;
use crate::catalog::partition::Tree;
use crate::catalog::routines::Routine;
use crate::catalog::system::{self, Facts, RELATIONS, Relation, Said, SequenceFacts};
use crate::catalog::{Catalog, Column, Kind, Policy, Table, known, schemas};
use crate::error::{fail, unsupported};
use crate::run::said;
use crate::types::Type;
use nestor_database::connections::Slot;
use nestor_database::operation::pipeline::Purpose;
use nestor_database::operation::{Operation, Work};
use nestor_database::read;
use nestor_database::rights::{Action, Resource};
use nestor_database::shape::{Shape, Words};
use nestor_database::statement::Statement;
use nestor_database::users::Account;
use nestor_database::write::begun::{self, Whose};
use nestor_exec::catalog::indexes;
use nestor_exec::summary::totals;
use nestor_exec::{BoxOperator, Step};
use nestor_model::{
    Array, ArrayRef, Document, Error, Namespace, Path, RawDocBuf, Result, Str, Value, ValueRef, bail, doc,
};
use nestor_planner::choose::tells;
use nestor_planner::find::Wanted;
use nestor_planner::pipeline::distinct_scan;
use nestor_planner::{FindQuery, PlanNode};
use nestor_query::env::OpContext;
use nestor_query::matcher::MatchExpr;
use nestor_query::sort::SortSpec;
use nestor_storage::{Collection, Derive, View};
use sqlparser::ast::Query;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// What is to be found in a collection or view.
#[derive(Clone, Debug)]
pub struct Find<'f> {
    /// The condition.
    pub filter: &'f Document,
    /// The order, if any; not for views.
    pub sort: Option<Document>,
    /// How many at most.
    pub limit: Option<u64>,
    /// From the end.
    pub backwards: bool,
    /// The only fields that are looked at, if that is known.
    pub reads: Option<Arc<[Str]>>,
    /// What becomes of the documents.
    pub wanted: Wanted,
    /// All documents are read, whatever indexes there are.
    pub natural: bool,
    /// Documents as they are stored, whoever asks: for the server's own questions, whose answers nobody sees. Not for views.
    pub stored: bool,
}

impl<'f> Find<'f> {
    /// All documents that a filter matches.
    pub fn all(filter: &'f Document) -> Self {
        Self {
            filter,
            sort: None,
            limit: None,
            backwards: false,
            reads: None,
            wanted: Wanted::Documents,
            natural: false,
            stored: false,
        }
    }
}

/// What it costs to read a document that an index found, in documents of a scan: it is looked up, and lies somewhere.
pub(super) const FETCH_COST: f64 = 4.0;

/// Documents of collections of which it is asked what plans cost.
pub(super) const COSTED_MIN: i64 = 1000;

/// The state that a statement reads, and what it is run for.
pub struct Reading<'s, 'r> {
    /// The statement.
    pub statement: &'s Statement<'r>,
    /// The state.
    pub view: &'s dyn View,
    /// The operation's clock.
    pub op: &'s OpContext,
    /// The session.
    pub session: &'s SessionFacts,
    /// Where rows that are held are noted, if any can be.
    pub holding: Option<&'s Holding<'s>>,
    /// Routines that run statements may be called: the state is not that of the transaction itself.
    pub calls: bool,
    /// The views of SQL that were read, without a table as long as that is looked for.
    views: RefCell<HashMap<Namespace, Option<Arc<Table>>>>,
    /// What catalogs show of collections, once one was read.
    relations: RefCell<Option<Arc<Vec<Relation>>>>,
}

impl Reading<'_, '_> {
    /// Whether the session's setting for columns is this.
    pub(super) fn columns_are(&self, setting: &str) -> bool {
        let own = self.session.settings.get(super::columns::SETTING);
        own.is_some_and(|own| own == setting)
    }
}

impl<'s, 'r> Reading<'s, 'r> {
    /// A state as a session reads it.
    pub fn new(statement: &'s Statement<'r>, view: &'s dyn View, op: &'s OpContext, session: &'s SessionFacts) -> Self {
        Self {
            statement,
            view,
            op,
            session,
            holding: None,
            calls: false,
            views: RefCell::default(),
            relations: RefCell::default(),
        }
    }
    /// Whether what is at a namespace is read by a pipeline, so that no index has its rows.
    ///
    /// Errors: those of the view.
    pub(super) fn is_piped(&self, ns: &Namespace) -> Result<bool> {
        match self.view.catalog().get(ns) {
            Some(collection) => self.statement.is_read_by_pipeline(self.view, collection),
            None => Ok(false),
        }
    }

    /// Finds documents at a namespace, view or not.
    ///
    /// Errors: those of the filter and of the view.
    pub fn find(&self, ns: &Namespace, find: Find<'_>) -> Result<BoxOperator> {
        let Find {
            filter,
            sort,
            limit,
            backwards,
            reads,
            wanted,
            natural,
            stored,
        } = find;
        let Some(collection) = self.view.catalog().get(ns).cloned() else {
            return fail("42P01", format!("relation \"{}\" does not exist", ns.coll));
        };
        let statement = self.statement;
        let (_, mut scope) = statement.operation(None)?;
        if !stored && statement.is_read_by_pipeline(self.view, &collection)? {
            let mut stages: Vec<Value> = Vec::new();
            if !filter.is_empty() {
                let mut stage = Document::new();
                stage.push("$match", filter.clone());
                stages.push(stage.into());
            }
            if let Some(limit) = limit {
                let mut stage = Document::new();
                stage.push("$limit", i64::try_from(limit).unwrap_or(i64::MAX));
                stages.push(stage.into());
            }
            let piped = statement.prepare_pipeline(
                self.view,
                ns,
                (ArrayRef::Items(&stages), None),
                &mut scope,
                Purpose::Run,
            )?;
            let operation = Operation {
                shape: Shape {
                    command: "sql",
                    ns: ns.clone(),
                    is_settable: false,
                    words: Words::default(),
                },
                collection: Some(collection),
                op: self.op.with_vars(Vec::new()),
                disk_use: true,
                work: Work::Pipeline(piped),
            };
            let Work::Pipeline(piped) = &operation.work else {
                return fail("XX000", "a view was read as no pipeline");
            };
            return statement.open_pipeline(self.view, &operation, piped);
        }
        let raw = filter.to_raw();
        let order = sort.as_ref().map(Document::to_raw);
        let words = Words {
            filter: Some(raw.as_raw()),
            sort: order.as_ref().map(|order| order.as_raw()),
            ..Words::default()
        };
        let mut query = read::filtered(&words, &Default::default(), &mut scope)?;
        if let Some(sort) = sort {
            query.sort = Some(Arc::new(SortSpec::parse(sort.as_ref())?));
        }
        query.limit = limit;
        query.reads = reads;
        query.natural = (natural || backwards).then_some(!backwards);
        let cache = Some(&*statement.database.plan_cache);
        // SQL reads by columns itself, but for counts.
        let columns = match wanted {
            Wanted::Count if !self.columns_are("off") => statement.columns(self.view),
            _ => None,
        };
        nestor_exec::find(&query, wanted, words.written(), &collection, cache, columns)
    }

    /// About how many documents a filter finds, by what columns tell of their values; `None` when nothing is known.
    ///
    /// Errors: those of the filter.
    pub(super) fn estimated_by_columns(&self, collection: &Collection, filter: &Document) -> Result<Option<f64>> {
        let Some(columns) = self.statement.columns(self.view) else {
            return Ok(None);
        };
        columns.estimated(&*self.parsed(filter)?, collection, self.op)
    }

    /// A filter as documents are tested by it.
    ///
    /// Errors: those of the filter.
    pub(super) fn parsed(&self, filter: &Document) -> Result<Arc<MatchExpr>> {
        let (_, mut scope) = self.statement.operation(None)?;
        let raw = filter.to_raw();
        read::parse_filter(Some(raw.as_raw()), &mut scope)
    }

    /// About how many different values there are at a path, by columns; `None` when nothing is known.
    pub(super) fn different_by_columns(&self, collection: &Collection, path: &str) -> Option<f64> {
        let known = self.statement.columns(self.view)?.statistics(collection, path)?;
        known.are_of_most().then_some(known.distinct.max(1.0))
    }

    /// What columns tell of the values that the elements of an array have at a path, if they hold most of them.
    pub(super) fn statistics_of_elements(
        &self,
        collection: &Collection,
        array: &str,
        path: &str,
    ) -> Option<Arc<nestor_columns::Statistics>> {
        let columns = self.statement.columns(self.view)?;
        let known = columns.statistics_of_elements(collection, array, path)?;
        (known.are_of_most() && known.rows > 0).then_some(known)
    }

    /// About how many different values an index has at `path`, by how often it has the least and the largest of them; `None` in small
    /// collections, and when it has none.
    ///
    /// Errors: those of storage.
    pub(super) fn different(&self, collection: &Collection, path: &str) -> Result<Option<f64>> {
        let documents = collection.state.documents();
        if documents < COSTED_MIN {
            return Ok(None);
        }
        let any = doc! { path: doc! { "$ne": Value::Null } };
        let (mut times, mut ends) = (0.0, 0.0);
        for direction in [1, -1] {
            let mut root = self.find(
                &collection.ns,
                Find {
                    sort: Some(doc! { path: direction }),
                    limit: Some(1),
                    reads: Some([Str::from(path)].into()),
                    stored: true,
                    ..Find::all(&any)
                },
            )?;
            let mut batch = read::batch(self.statement, self.view, self.op, true);
            let value = loop {
                match root.next(&mut batch)? {
                    Step::Row(row) => break row.as_doc().get(path).map(|value| value.to_value()),
                    Step::Pause => {}
                    Step::Eof => break None,
                }
            };
            // Values in arrays are not those of the end.
            let Some(value) = value.filter(|value| !matches!(value, Value::Array(_) | Value::Document(_))) else {
                return Ok(None);
            };
            if let Some(entries) = self.estimated(collection, &doc! { path: doc! { "$eq": value } })? {
                times += entries.max(1) as f64;
                ends += 1.0;
            }
        }
        Ok((ends > 0.0).then(|| documents as f64 * ends / times))
    }

    /// What a filter asks for. `reads` are the fields that are looked at, if an index may have them all.
    ///
    /// Errors: those of the filter.
    pub(super) fn query(&self, words: &Words<'_>, reads: Option<Arc<[Str]>>) -> Result<FindQuery> {
        let (_, mut scope) = self.statement.operation(None)?;
        let mut query = read::filtered(words, &Default::default(), &mut scope)?;
        query.reads = reads;
        Ok(query)
    }

    /// Finds each value of a field once of what `filter` matches, by an index that has several documents for a value; `None` when there
    /// is none.
    pub(super) fn find_distinct(&self, ns: &Namespace, filter: &Document, path: &Str) -> Result<Option<BoxOperator>> {
        let Some(collection) = self.view.catalog().get(ns) else {
            return Ok(None);
        };
        let raw = filter.to_raw();
        let words = words(&raw);
        let query = self.query(&words, Some([path.clone()].into()))?;
        let all = indexes(collection)?;
        let Some(scan) = distinct_scan(&query.filter, &Path::new(path), None, all) else {
            return Ok(None);
        };
        let is_unique = scan.index.parts.len() == 1 && (scan.index.unique || scan.index.is_id());
        if is_unique || !tells(&scan, path) {
            return Ok(None);
        }
        let plan = PlanNode::Covered {
            input: Box::new(PlanNode::IndexScan(scan)),
            projection: None,
        };
        nestor_exec::run_one_of(vec![plan], Wanted::Distinct, &query, words.written(), collection).map(Some)
    }

    /// Whether a filter finds a document.
    ///
    /// Errors: those of [`Reading::find`].
    pub(super) fn finds_any(&self, ns: &Namespace, filter: &Document) -> Result<bool> {
        let mut root = self.find(
            ns,
            Find {
                limit: Some(1),
                ..Find::all(filter)
            },
        )?;
        let mut batch = read::batch(self.statement, self.view, self.op, true);
        let found = loop {
            match root.next(&mut batch)? {
                Step::Row(_) => break true,
                Step::Pause => {}
                Step::Eof => break false,
            }
        };
        self.statement.observe_totals(totals(&*root));
        Ok(found)
    }

    /// The columns of a collection or view, by its documents.
    fn infer(&self, ns: &Namespace) -> Result<Vec<crate::catalog::Column>> {
        let mut inference = Inference::default();
        let collection = self.view.catalog().get(ns);
        let is_view = collection.is_some_and(|collection| collection.is_view());
        for backwards in [false, true] {
            if is_view && backwards {
                continue;
            }
            let all = Document::new();
            let sample = Find {
                limit: Some(SAMPLE),
                backwards,
                ..Find::all(&all)
            };
            let mut root = self.find(ns, sample)?;
            let mut batch = read::batch(self.statement, self.view, self.op, true);
            loop {
                match root.next(&mut batch)? {
                    Step::Row(row) => inference.note(row.as_doc()),
                    Step::Pause => {}
                    Step::Eof => break,
                }
            }
        }
        Ok(inference.columns())
    }

    /// As [`SessionFacts::check_right`].
    ///
    /// Errors: 13.
    pub fn check_right(&self, ns: &Namespace, action: Action) -> Result<()> {
        self.session.check_right(ns, action)
    }

    /// Whether the user may read documents of a collection. Who may not is not told that there is one.
    pub(super) fn may_find(&self, ns: &Namespace) -> bool {
        self.session.may(ns, Action::Find)
    }

    /// Whether an index or a collection of the schema that a collection stands in, or is to stand in, has the name that is its own there.
    pub fn has_relation(&self, ns: &Namespace) -> bool {
        let (schema, name) = schemas::split(self.view, ns);
        let database = self.view.catalog().database(&ns.db);
        let mut collections = database.into_iter().flat_map(|database| database.collections());
        collections.any(|collection| {
            let mut indexes = collection.all_indexes().filter(|index| !index.is_id());
            let is_beside = || schemas::split(self.view, &collection.ns).0 == schema;
            let counts = || of_collection(collection).iter().any(|sequence| sequence.name == name);
            collection.ns == *ns || (indexes.any(|index| *index.name == *name) || counts()) && is_beside()
        })
    }

    /// The table that a view of SQL is.
    fn view_at(&self, ns: &Namespace, text: &str, collection: &Collection) -> Result<Arc<Table>> {
        if *ns.db != *self.session.database {
            return unsupported("a view of another database");
        }
        let known = self.views.borrow().get(ns).cloned();
        match known {
            Some(Some(table)) => return Ok(table),
            Some(None) => {
                let message = format!("infinite recursion detected in rules for relation \"{}\"", ns.coll);
                return fail("42P17", message);
            }
            None => {}
        }
        self.views.borrow_mut().insert(ns.clone(), None);
        match self.view_made(ns, text, collection) {
            Ok(table) => {
                self.views.borrow_mut().insert(ns.clone(), Some(table.clone()));
                Ok(table)
            }
            Err(error) => {
                self.views.borrow_mut().remove(ns);
                Err(error)
            }
        }
    }

    /// The table that a view is, which nobody else of the statement asks for meanwhile: that of another statement if it still holds.
    fn view_made(&self, ns: &Namespace, text: &str, collection: &Collection) -> Result<Arc<Table>> {
        let OfView(kept) = collection.derived()?;
        if let Some(last) = kept.get()
            && last.answers.hold(self)?
        {
            return Ok(last.table.clone());
        }
        let is_duality = entry::is_duality(collection);
        let duality = entry::parsed(text).filter(|_| is_duality);
        let query = match is_duality {
            true => entry::parsed(&with_etag(text)),
            false => entry::parsed(text),
        };
        let Some(query) = query else {
            return fail("42601", format!("the query of view \"{}\" is none", ns.coll));
        };
        let asked = Asked::new(self);
        let table = table_of(&asked, schemas::split(self.view, ns), query)?;
        let (answers, holds) = asked.answers();
        let table = Arc::new(Table {
            check_option: entry::check_option_of(collection),
            storage: entry::view_options(collection),
            triggers: entry::view_triggers(collection)?,
            duality,
            ..table
        });
        if holds {
            let table = table.clone();
            kept.set(Some(Arc::new(Made { answers, table })));
        }
        Ok(table)
    }

    /// The table at a namespace.
    ///
    /// Errors: 13 for who may not read it, those of looking at documents and of a view's query.
    pub(crate) fn table_at(&self, ns: &Namespace) -> Result<Option<Arc<Table>>> {
        if !self.may_find(ns) {
            bail!(Unauthorized, "permission denied for table {}", ns.coll);
        }
        let Some(collection) = self.view.catalog().get(ns).cloned() else {
            return Ok(None);
        };
        match entry::of(&collection) {
            Some(Object::Table(_, table) | Object::Materialized(table)) => return Ok(Some(table.clone())),
            Some(Object::Sequence(..)) => return self.sequence_rows(&collection),
            Some(Object::Schema | Object::Type(_) | Object::Assertion(_) | Object::Function(_)) => return Ok(None),
            None => {}
        }
        if let Some(text) = entry::query_of(&collection) {
            return self.view_at(ns, text, &collection).map(Some);
        }
        // The commit whose state is looked at; none where changes of the statement's own show, or each user sees other fields.
        let lsn = match collection.is_view() || collection.options.masking.is_some() {
            true => None,
            false => self.view.lsn_of(collection.records),
        };
        let (schema, name) = schemas::split(self.view, ns);
        let known = lsn.and_then(|_| known::get(&collection, self.op.now_ms));
        // Schemas come and go.
        if let Some(table) = known.filter(|table| table.schema == schema && table.name == name) {
            return Ok(Some(table));
        }
        let kind = match collection.is_view() {
            true => Kind::View(ns.clone()),
            false => Kind::Collection(ns.clone()),
        };
        let table = Arc::new(Table {
            schema: schema.to_owned(),
            row_security: Arc::new(collection.options.row_security.clone().unwrap_or_default()),
            ..Table::new(name, self.infer(ns)?, kind)
        });
        if let Some(lsn) = lsn {
            known::keep(&collection, lsn, self.op.now_ms, &table);
        }
        Ok(Some(table))
    }
}

impl Reading<'_, '_> {
    /// What a name means in a schema, or without one along the search path, that the user may look at.
    fn entry_of(&self, schema: Option<&str>, name: &str) -> Option<&Arc<Collection>> {
        let catalog = self.view.catalog();
        let all = self.session.candidates(self.view, (schema, name));
        let mut all = all.iter().filter(|ns| self.may_find(ns));
        all.find_map(|ns| catalog.get(ns))
    }

    /// The schemas of the search path that there are.
    fn schemas_of_path(&self) -> Vec<String> {
        let mut path = self.session.path();
        path.retain(|schema| self.is_schema(schema));
        path
    }

    fn is_schema(&self, schema: &str) -> bool {
        schema == schemas::PUBLIC || schemas::exists(self.view, &self.session.database, schema)
    }
}

impl Facts for Reading<'_, '_> {
    fn qualified(&self, schema: &str, text: &str) -> String {
        shown::qualified(self, &self.schemas_of_path(), schema, text)
    }

    fn routines(&self) -> Vec<Arc<Routine>> {
        entry::functions(self.view, &self.session.database)
    }

    fn made_types(&self) -> Vec<(String, Type)> {
        said::made_types(self.view, &self.session.database)
    }

    fn said_of_schemas(&self) -> Result<Vec<(i64, String)>> {
        let comments = self.comments()?;
        let said = Facts::schemas(self).into_iter().filter_map(|(number, name)| {
            let entry = schemas::entry(&self.session.database, &name);
            let of_entry = comments.get(&self.view.catalog().get(&entry)?.uuid)?;
            let text = of_entry.get("comment").and_then(ValueRef::as_str)?;
            Some((number, text.to_owned()))
        });
        Ok(said.collect())
    }

    fn said_of_made(&self) -> Result<Vec<Said>> {
        Ok(said::of_made(self.view, &self.session.database, &self.comments()?))
    }

    fn said_of_shared(&self) -> Result<Vec<system::SaidOfShared>> {
        said::of_shared(self.view, &self.session.database, &self.databases())
    }

    fn schemas(&self) -> Vec<(i64, String)> {
        let own = schemas::all(self.view, &self.session.database).into_iter();
        own.map(|(id, name)| (i64::from(RELATIONS.saturating_add(id)), name))
            .collect()
    }

    fn path(&self) -> Vec<String> {
        let mut path = self.session.path_of_relations();
        path.retain(|schema| self.is_schema(schema));
        path
    }

    fn relations(&self) -> Result<Arc<Vec<Relation>>> {
        if let Some(relations) = &*self.relations.borrow() {
            return Ok(relations.clone());
        }
        let mut out = Vec::new();
        let mut comments: HashMap<_, _> = self.comments()?;
        let database = self.view.catalog().database(&self.session.database);
        for collection in database.into_iter().flat_map(|database| database.collections()) {
            if collection.ns.coll.starts_with("system.")
                || entry::holds_nothing(collection)
                || !self.may_find(&collection.ns)
            {
                continue;
            }
            let table = match self.table_at(&collection.ns) {
                // A view whose tables are gone stays one, without columns that anybody knows.
                Err(_) if entry::query_of(collection).is_some() => {
                    let view = Kind::View(collection.ns.clone());
                    let (schema, name) = schemas::split(self.view, &collection.ns);
                    Some(Arc::new(Table {
                        schema: schema.to_owned(),
                        ..Table::new(name, Vec::new(), view)
                    }))
                }
                table => table?,
            };
            if let Some(table) = table {
                let comments = comments.remove(&collection.uuid);
                let updatable = match table.kind {
                    Kind::Query(_) if table.duality.is_some() => Some(vec![true; table.columns.len()]),
                    Kind::Query(_) => Binder::new(self, Vec::new()).updatable(&table)?,
                    Kind::Collection(_) if table.materialized.is_none() => Some(vec![true; table.columns.len()]),
                    _ => None,
                };
                let relation = self.relation(collection, table, comments);
                out.push(Relation { updatable, ..relation });
            }
        }
        self.note_partitions(&mut out);
        let out = Arc::new(out);
        *self.relations.borrow_mut() = Some(out.clone());
        Ok(out)
    }

    fn is_guarded(&self, table: &Table) -> bool {
        Reading::is_guarded(self, table)
    }

    fn sequences(&self) -> Result<Vec<SequenceFacts>> {
        let comments = self.comments()?;
        let each = Reading::sequences(self).into_iter().map(|sequence| {
            let said = comments.get(&sequence.key().collection);
            let said = said.and_then(|said| said.get("comment")).and_then(ValueRef::as_str);
            let comment = said.filter(|_| sequence.owner.is_none()).map(str::to_owned);
            let state = self.state_of(&sequence)?;
            let owned = sequence.owned_by.as_ref().and_then(|(table, column)| {
                let ns = Namespace::new(self.session.database.as_str(), table.as_str());
                let collection = self.view.catalog().get(&ns)?;
                let declared = Declared::of_collection(collection)?;
                let at = declared.columns.iter().position(|own| own.name == *column)?;
                Some((RELATIONS.saturating_add(collection.id.0), at + 1))
            });
            let Sequence {
                oid,
                schema,
                name,
                counting,
                ty,
                owner,
                is_identity,
                ..
            } = sequence;
            Ok(SequenceFacts {
                oid,
                schema,
                name,
                counting,
                ty,
                last: state.and_then(|(last, is_called)| is_called.then_some(last)),
                owner: owner.or(owned),
                is_identity,
                comment,
            })
        });
        each.collect()
    }

    fn sizes(&self, database: &str, of: Option<i64>) -> Result<Vec<system::Sizes>> {
        self.all_sizes(database, of)
    }

    fn of_session(&self) -> Arc<system::OfSession> {
        self.session.named.clone()
    }

    fn activities(&self) -> Vec<system::Activity> {
        self.all_activities()
    }

    fn assertions(&self) -> Vec<(u32, String, String)> {
        let all = entry::assertions(self.view, &self.session.database).into_iter();
        let shown =
            all.filter(|(name, ..)| self.may_find(&Namespace::new(self.session.database.as_str(), name.as_str())));
        let each = shown.map(|(name, collection, query)| {
            let text = query.to_string();
            let condition = text.strip_prefix("SELECT ").unwrap_or(&text).to_owned();
            (RELATIONS.saturating_add(collection.id.0), name, condition)
        });
        each.collect()
    }

    fn databases(&self) -> Vec<String> {
        let mut out: Vec<String> = self
            .view
            .catalog()
            .databases()
            .map(|database| database.name().to_string())
            .filter(|name| {
                let account = self.session.account.as_ref();
                account.is_none_or(|account| account.grants.any_in(name))
            })
            .collect();
        if !out.contains(&self.session.database) {
            out.push(self.session.database.clone());
        }
        out.sort();
        out
    }

    fn database(&self) -> String {
        self.session.database.clone()
    }

    fn user(&self) -> String {
        self.session.user.clone()
    }

    fn roles(&self) -> Result<Vec<system::Role>> {
        self.all_roles()
    }

    fn begun(&self) -> Result<Vec<(Whose, begun::Settings)>> {
        self.all_begun()
    }

    fn is_superuser(&self) -> bool {
        self.session.is_superuser()
    }

    fn may(&self, schema: &str, name: &str, action: Action) -> bool {
        let own = schemas::collection(schema, name);
        self.session.may(&Namespace::new(&*self.session.database, own), action)
    }

    fn settings(&self) -> Vec<(String, String)> {
        let all = self.session.settings.iter();
        all.map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

impl Catalog for Reading<'_, '_> {
    fn files(&self, named: &Named) -> Result<Arc<Table>> {
        self.files_named(named).map(Arc::new)
    }

    fn table(&self, schema: Option<&str>, name: &str) -> Result<Option<Arc<Table>>> {
        if let Some(own) = self
            .session
            .transition
            .iter()
            .find(|own| schema.is_none() && own.name == name)
        {
            return Ok(Some(own.clone()));
        }
        let of_catalog = match schema {
            None | Some("pg_catalog") => Some("pg_catalog"),
            Some(schema) => Some(schema).filter(|schema| *schema == "information_schema"),
        };
        if let Some(catalog) = of_catalog
            && let Some(table) = system::table(catalog, name, self)?
        {
            return Ok(Some(Arc::new(table)));
        }
        if name.starts_with("system.") || matches!(schema, Some("pg_catalog" | "information_schema")) {
            return Ok(None);
        }
        let db = self.session.database.as_str();
        let setting = self.session.settings.get("search_path").map(String::as_str);
        let is_plain = setting.is_none_or(|setting| setting == schemas::PUBLIC) && !self.session.temporary.is_used();
        if schema.is_none() && is_plain {
            return match self.table_at(&Namespace::new(db, name))? {
                Some(table) => Ok(Some(table)),
                None => self.sequence_of_column(schema, name),
            };
        }
        let all = self.session.candidates(self.view, (schema, name));
        let is_there = |ns: &&Namespace| self.view.catalog().get(ns).is_some() && self.may_find(ns);
        // Who may read none of them is told so.
        let found = match all.iter().find(is_there).or(all.last()) {
            Some(ns) => self.table_at(ns)?,
            None => None,
        };
        match found {
            Some(table) => Ok(Some(table)),
            None => self.sequence_of_column(schema, name),
        }
    }

    fn policies(&self, table: &Table) -> Result<Option<Arc<[Policy]>>> {
        self.policies_of(table)
    }

    fn tree(&self, table: &Table) -> Result<Option<Arc<Tree>>> {
        self.tree_of(table)
    }

    fn routines(&self, schema: Option<&str>, name: &str) -> Vec<Arc<Routine>> {
        self.routines_named(schema, name)
    }

    fn variable(&self, parameter: usize) -> Option<(String, bool)> {
        self.session.routines.parameter(parameter)
    }

    fn made_type(&self, schema: Option<&str>, name: &str) -> Option<Type> {
        entry::type_among(self.view, &self.session.candidates(self.view, (schema, name)))
    }

    fn setting(&self, name: &str) -> Option<String> {
        match name {
            "user" => Some(self.session.user.clone()),
            "session_user" => Some(self.session.session_user.clone()),
            "database" => Some(self.session.database.clone()),
            "schema" => self.schemas_of_path().into_iter().next(),
            "temporary_schema" => {
                let own = self.session.temporary_schema();
                let all = Facts::schemas(self).into_iter();
                all.filter(|_| self.session.temporary.is_used())
                    .find_map(|(number, name)| (name == own).then(|| number.to_string()))
            }
            "schemas" => Some(self.schemas_of_path().join("\n")),
            "pid" => Some(self.session.pid.to_string()),
            "version" => Some(format!("PostgreSQL 15.0 (Nestor {})", env!("CARGO_PKG_VERSION"))),
            name => self.session.settings.get(&name.to_lowercase()).cloned(),
        }
    }

    fn settings(&self) -> Vec<(String, String)> {
        Facts::settings(self)
    }

    fn connections(&self) -> Vec<(Arc<Slot>, bool)> {
        let account = self.session.account.as_ref();
        let may_all = account.is_none_or(|account| account.grants.on(&Resource::Cluster).has(Action::Killop));
        let all = self.statement.database.connections.all().into_iter();
        all.map(|slot| {
            let may = may_all || slot.is_of(account.map(|account| &account.name));
            (slot, may)
        })
        .collect()
    }

    fn sizes(&self, function: &str, of: Option<&str>) -> Result<Vec<(String, i64)>> {
        system::sizes(function, of, self)
    }

    fn descriptions(&self) -> Result<Vec<(String, String)>> {
        system::descriptions(self)
    }

    fn texts(&self, function: &str) -> Result<Option<Vec<(i64, String)>>> {
        system::texts(function, self)
    }

    fn serial_sequences(&self) -> Result<Document> {
        system::serial_sequences(self)
    }

    fn number_of(&self, table: &Table) -> u32 {
        shown::number_of(self.view, &self.session.database, table)
    }

    fn oid_of(&self, schema: Option<&str>, name: &str) -> u32 {
        let path = match schema {
            Some(schema) => vec![schema.to_owned()],
            None => self.session.path_of_relations(),
        };
        // Sequences of columns stand beside what has an entry of its own.
        let of_column = || {
            let mut all = Reading::sequences(self).into_iter();
            all.find(|sequence| sequence.name == name && path.contains(&sequence.schema))
                .map(|sequence| sequence.oid)
        };
        let found = self.entry_of(schema, name);
        let own = found.map(|collection| RELATIONS.saturating_add(collection.id.0));
        let of_index = || {
            let database = self.view.catalog().database(&self.session.database);
            let mut all = database.into_iter().flat_map(|database| database.collections());
            all.find_map(|collection| {
                let mut own = collection.indexes.iter();
                let (schema, _) = schemas::split(self.view, &collection.ns);
                let index = own.find(|index| {
                    let own = index_name(collection, index);
                    own == name && path.iter().any(|own| own == schema)
                })?;
                self.may_find(&collection.ns)
                    .then(|| system::index_oid(u64::from(index.id.0)))
            })
        };
        own.or_else(|| system::oid_of(schema, name))
            .or_else(of_column)
            .or_else(of_index)
            .unwrap_or(0)
    }

    fn name_of(&self, oid: u32) -> Option<String> {
        let id = oid.checked_sub(RELATIONS).map(nestor_storage::CollectionId);
        let own = id.and_then(|id| self.view.catalog().by_id(id));
        own.filter(|collection| self.may_find(&collection.ns))
            .map(|collection| shown::name_of(self.view, &self.session.path_of_relations(), &collection.ns))
            .or_else(|| system::name_of(oid).map(str::to_owned))
            .or_else(|| {
                let mut all = Reading::sequences(self).into_iter();
                all.find(|sequence| sequence.oid == oid).map(|sequence| sequence.name)
            })
    }
}

/// The table that a version of a view was, and of what that was made. Names in views have their schemas, so that it is every session's.
#[derive(Default)]
struct OfView(Kept<Made>);

struct Made {
    answers: Answers,
    table: Arc<Table>,
}

impl Derive for OfView {
    type Error = Error;

    fn derive(_: &Collection) -> Result<Self> {
        Ok(Self::default())
    }
}

impl Current for Reading<'_, '_> {
    fn state(&self) -> &Arc<nestor_storage::Catalog> {
        self.view.catalog()
    }

    fn account(&self) -> Option<&Arc<Account>> {
        self.session.account.as_ref()
    }

    fn own_setting(&self, name: &str) -> Option<&String> {
        self.session.settings.get(name)
    }
}

/// The table that a view of SQL is.
fn table_of(catalog: &dyn Catalog, (schema, name): (&str, &str), query: Arc<Query>) -> Result<Table> {
    let columns = Binder::new(catalog, Vec::new()).of_view(schema).query(&query)?.columns;
    let columns = columns.into_iter().filter(|column| !column.hidden).map(|column| {
        let ty = match column.ty {
            Type::Unknown => Type::Text,
            ty => ty,
        };
        Column {
            modifier: column.modifier,
            fields: column.fields,
            ..Column::new(&column.name, ty)
        }
    });
    Ok(Table {
        schema: schema.to_owned(),
        declared: true,
        ..Table::new(name, columns.collect(), Kind::Query(query))
    })
}

/// The words of a find that has a filter and nothing else.
pub(super) fn words(filter: &RawDocBuf) -> Words<'_> {
    Words {
        filter: Some(filter.as_raw()),
        ..Words::default()
    }
}

/// An array of texts.
pub fn texts(items: impl IntoIterator<Item = String>) -> Value {
    Value::Array(Array::new(
        items.into_iter().map(|item| Value::String(item.into())).collect(),
    ))
}
