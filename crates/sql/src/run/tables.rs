//! The catalog as a statement reads it, and tables opened.

use super::find;
use super::numbers::{Got, Sequence};
use super::ordered::Order;
use super::reader::Documents;
use crate::bind::Binder;
use crate::bind::declared::Declared;
use crate::bind::entry::{self, Object};
use crate::catalog::documents::{Inference, SAMPLE};
use crate::catalog::system::{self, Facts, IndexFacts, RELATIONS, Relation, SequenceFacts};
use crate::catalog::{Catalog, Column, Kind, Table, known};
use crate::error::{fail, unsupported};
use crate::expr::Expr;
use crate::types::Type;
use nestor_database::connections::Slot;
use nestor_database::operation::pipeline::Purpose;
use nestor_database::operation::{Operation, Work};
use nestor_database::oplog::is_oplog;
use nestor_database::read;
use nestor_database::rights::{Action, Resource};
use nestor_database::shape::{Shape, Words};
use nestor_database::statement::Statement;
use nestor_database::users::{Account, RoleName};
use nestor_exec::relation::{Opened, Sources};
use nestor_exec::summary::totals;
use nestor_exec::{Batch, BoxOperator, Step, count_rows};
use nestor_model::extjson::{self, Form};
use nestor_model::{Array, ArrayRef, Document, Namespace, Result, Value, ValueRef, bail};
use nestor_planner::find::Wanted;
use nestor_planner::relation::explain::Access;
use nestor_planner::relation::{Env, Scan};
use nestor_query::env::OpContext;
use nestor_query::sort::SortSpec;
use nestor_storage::{Collection, Index, View};
use sqlparser::ast::Query;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

/// What a statement knows of its session.
#[derive(Clone, Debug, Default)]
pub struct SessionFacts {
    /// The user.
    pub user: String,
    /// The database.
    pub database: String,
    /// Number of the connection.
    pub pid: i32,
    /// The user's account; `None` where nobody has to log in.
    pub account: Option<Arc<Account>>,
    /// Settings that clients read.
    pub settings: BTreeMap<String, String>,
    /// The numbers that it got from sequences.
    pub got: Arc<Mutex<Got>>,
}

impl SessionFacts {
    /// Refuses what the user may not do with a collection.
    ///
    /// Errors: 13.
    pub fn check_right(&self, ns: &Namespace, action: Action) -> Result<()> {
        let account = self.account.as_ref();
        match account.is_none_or(|account| account.grants.on_collection(ns).has(action)) {
            true => Ok(()),
            false => bail!(Unauthorized, "permission denied for table {}", ns.coll),
        }
    }
}

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
    /// The views of SQL that were read, without a table as long as that is looked for.
    views: RefCell<HashMap<Namespace, Option<Arc<Table>>>>,
    /// What catalogs show of collections, once one was read.
    relations: RefCell<Option<Arc<Vec<Relation>>>>,
}

impl<'s, 'r> Reading<'s, 'r> {
    /// A state as a session reads it.
    pub fn new(statement: &'s Statement<'r>, view: &'s dyn View, op: &'s OpContext, session: &'s SessionFacts) -> Self {
        Self {
            statement,
            view,
            op,
            session,
            views: RefCell::default(),
            relations: RefCell::default(),
        }
    }
    /// Whether what is at a namespace is read by a pipeline, so that no index has its rows.
    ///
    /// Errors: those of the view.
    fn is_piped(&self, ns: &Namespace) -> Result<bool> {
        match self.view.catalog().get(ns) {
            Some(collection) => self.statement.reads_by_pipeline(self.view, collection),
            None => Ok(false),
        }
    }

    /// Finds what `filter` matches at a namespace, view or not; at most `limit`, from the end if `backwards`, in the order of `sort` if that
    /// is no view.
    ///
    /// Errors: those of the filter and of the view.
    pub fn find(
        &self,
        ns: &Namespace,
        filter: &Document,
        sort: Option<&Document>,
        ends: (Option<u64>, bool),
    ) -> Result<BoxOperator> {
        self.find_for(Wanted::Documents, ns, filter, sort, ends)
    }

    /// As [`Reading::find`], for what becomes of the documents.
    fn find_for(
        &self,
        wanted: Wanted,
        ns: &Namespace,
        filter: &Document,
        sort: Option<&Document>,
        (limit, backwards): (Option<u64>, bool),
    ) -> Result<BoxOperator> {
        let Some(collection) = self.view.catalog().get(ns).cloned() else {
            return fail("42P01", format!("relation \"{}\" does not exist", ns.coll));
        };
        let statement = self.statement;
        let (_, mut scope) = statement.operation(None)?;
        if statement.reads_by_pipeline(self.view, &collection)? {
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
        let order = sort.map(Document::to_raw);
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
        query.natural = backwards.then_some(false);
        let cache = Some(&*statement.database.plan_cache);
        nestor_exec::find(&query, wanted, words.written(), &collection, cache)
    }

    /// Whether a filter finds a document.
    ///
    /// Errors: those of [`Reading::find`].
    fn finds_any(&self, ns: &Namespace, filter: &Document) -> Result<bool> {
        let mut root = self.find(ns, filter, None, (Some(1), false))?;
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
            let mut root = self.find(ns, &Document::new(), None, (Some(SAMPLE), backwards))?;
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
        let account = self.session.account.as_ref();
        account.is_none_or(|account| account.grants.on_collection(ns).has(Action::Find))
    }

    /// Whether an index or a collection of the database has this name.
    pub fn has_relation(&self, name: &str) -> bool {
        let database = self.view.catalog().database(&self.session.database);
        let mut collections = database.into_iter().flat_map(|database| database.collections());
        collections.any(|collection| {
            let mut indexes = collection.all_indexes().filter(|index| !index.is_id());
            *collection.ns.coll == *name || indexes.any(|index| *index.name == *name)
        })
    }

    /// The table that a view of SQL is.
    fn view_at(&self, ns: &Namespace, text: &str) -> Result<Arc<Table>> {
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
        let Some(query) = entry::parsed(text) else {
            return fail("42601", format!("the query of view \"{}\" is none", ns.coll));
        };
        self.views.borrow_mut().insert(ns.clone(), None);
        let table = table_of(self, &ns.coll, query);
        match table {
            Ok(table) => {
                let table = Arc::new(table);
                self.views.borrow_mut().insert(ns.clone(), Some(table.clone()));
                Ok(table)
            }
            Err(error) => {
                self.views.borrow_mut().remove(ns);
                Err(error)
            }
        }
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
            Some(Object::Table(_, table)) => return Ok(Some(table.clone())),
            Some(Object::Sequence(..)) => return self.sequence_rows(&collection),
            None => {}
        }
        if let Some(text) = entry::query_of(&collection) {
            return self.view_at(ns, text).map(Some);
        }
        // The commit whose state is looked at; none where changes of the statement's own show, or each user sees other fields.
        let lsn = match collection.is_view() || collection.options.masking.is_some() {
            true => None,
            false => self.view.lsn_of(collection.records),
        };
        if let Some(table) = lsn.and_then(|_| known::get(&collection, self.op.now_ms)) {
            return Ok(Some(table));
        }
        let kind = match collection.is_view() {
            true => Kind::View(ns.clone()),
            false => Kind::Collection(ns.clone()),
        };
        let table = Arc::new(Table::new(&ns.coll, self.infer(ns)?, kind));
        if let Some(lsn) = lsn {
            known::keep(&collection, lsn, self.op.now_ms, &table);
        }
        Ok(Some(table))
    }
}

impl Facts for Reading<'_, '_> {
    fn relations(&self) -> Result<Arc<Vec<Relation>>> {
        if let Some(relations) = &*self.relations.borrow() {
            return Ok(relations.clone());
        }
        let mut out = Vec::new();
        let database = self.view.catalog().database(&self.session.database);
        for collection in database.into_iter().flat_map(|database| database.collections()) {
            let is_sequence = matches!(entry::of(collection), Some(Object::Sequence(..)));
            if collection.ns.coll.starts_with("system.") || is_sequence || !self.may_find(&collection.ns) {
                continue;
            }
            let table = match self.table_at(&collection.ns) {
                // A view whose tables are gone stays one, without columns that anybody knows.
                Err(_) if entry::query_of(collection).is_some() => {
                    let view = Kind::View(collection.ns.clone());
                    Some(Arc::new(Table::new(&collection.ns.coll, Vec::new(), view)))
                }
                table => table?,
            };
            if let Some(table) = table {
                out.push(self.relation(collection, table));
            }
        }
        let out = Arc::new(out);
        *self.relations.borrow_mut() = Some(out.clone());
        Ok(out)
    }

    fn sequences(&self) -> Result<Vec<SequenceFacts>> {
        let each = Reading::sequences(self).into_iter().map(|sequence| {
            let state = self.state_of(&sequence)?;
            let Sequence {
                oid,
                name,
                counting,
                ty,
                owner,
                ..
            } = sequence;
            Ok(SequenceFacts {
                oid,
                name,
                counting,
                ty,
                last: state.and_then(|(last, is_called)| is_called.then_some(last)),
                owner,
            })
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

    fn is_superuser(&self) -> bool {
        let account = self.session.account.as_ref();
        account.is_none_or(|account| account.all_roles.contains(&RoleName::new("root", "admin")))
    }

    fn settings(&self) -> Vec<(String, String)> {
        let all = self.session.settings.iter();
        all.map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

impl Reading<'_, '_> {
    /// A collection or view as catalogs show it: without indexes and a view's pipeline to who may not list them.
    fn relation(&self, collection: &Collection, table: Arc<Table>) -> Relation {
        let mut out = relation(collection, table);
        if let Some(account) = &self.session.account {
            let ns = &collection.ns;
            if !account.grants.on_collection(ns).has(Action::ListIndexes) {
                out.indexes.clear();
            }
            let on = Resource::Database(ns.db.clone());
            if !account.grants.on(&on).has(Action::ListCollections) {
                out.definition = None;
            }
        }
        out
    }
}

/// The name of an index in SQL. Names of indexes are their collections' own, and those of SQL stand beside those of tables: where SQL
/// did not give it, the collection's name stands before that of the index.
pub fn index_name(collection: &Collection, index: &Index) -> String {
    let (table, name) = (&collection.ns.coll, &index.name);
    let is_beside = || name.strip_prefix(&**table).is_some_and(|rest| rest.starts_with('_'));
    let is_declared = || matches!(entry::of(collection), Some(Object::Table(..)));
    match index.is_id() {
        true => format!("{table}_pkey"),
        false if is_beside() || is_declared() => name.to_string(),
        false => format!("{table}_{name}"),
    }
}

fn relation(collection: &Collection, table: Arc<Table>) -> Relation {
    let index = |index: &Arc<Index>| {
        let parts = index.key_pattern.iter().map(|(path, direction)| {
            let direction = match direction {
                ValueRef::String(kind) => kind.to_owned(),
                ValueRef::Int32(n) if n < 0 => "-1".to_owned(),
                ValueRef::Int64(n) if n < 0 => "-1".to_owned(),
                ValueRef::Double(n) if n < 0.0 => "-1".to_owned(),
                _ => "1".to_owned(),
            };
            (path.to_owned(), direction)
        });
        let primary = index.name == "_id_";
        IndexFacts {
            oid: system::index_oid(u64::from(index.id.0)),
            name: index_name(collection, index),
            parts: parts.collect(),
            unique: index.unique || primary,
            primary,
            partial: index
                .partial_filter
                .as_ref()
                .map(|filter| extjson::to_string(filter.as_ref(), Form::Relaxed)),
        }
    };
    let view = collection.options.view.as_ref();
    Relation {
        oid: RELATIONS.saturating_add(collection.id.0),
        indexes: collection.indexes.iter().map(index).collect(),
        keys: Declared::of_collection(collection)
            .map(|declared| declared.unique.iter().map(|key| key.name.clone()).collect())
            .unwrap_or_default(),
        count: collection.state.documents(),
        definition: view.map(|view| {
            if let Some(text) = entry::query_of(collection) {
                return text.to_owned();
            }
            let stages = extjson::to_string(&Value::Array(view.pipeline.clone()), Form::Relaxed);
            format!("db.{}.aggregate({stages})", view.on)
        }),
        table,
    }
}

impl Catalog for Reading<'_, '_> {
    fn table(&self, schema: Option<&str>, name: &str) -> Result<Option<Arc<Table>>> {
        let schemas: &[&str] = match &schema {
            Some(schema) => std::slice::from_ref(schema),
            None => &["pg_catalog", "public"],
        };
        for schema in schemas {
            if matches!(*schema, "pg_catalog" | "information_schema") {
                if let Some(table) = system::table(schema, name, self)? {
                    return Ok(Some(Arc::new(table)));
                }
                continue;
            }
            if name.starts_with("system.") {
                continue;
            }
            let db = if *schema == "public" {
                self.session.database.as_str()
            } else {
                schema
            };
            let ns = Namespace::new(db, name);
            if let Some(table) = self.table_at(&ns)? {
                return Ok(Some(table));
            }
        }
        Ok(None)
    }

    fn setting(&self, name: &str) -> Option<String> {
        match name {
            "user" => Some(self.session.user.clone()),
            "database" => Some(self.session.database.clone()),
            "schema" => Some("public".to_owned()),
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

    fn texts(&self, function: &str) -> Result<Option<Vec<(i64, String)>>> {
        system::texts(function, self)
    }

    fn oid_of(&self, name: &str) -> u32 {
        // Sequences of columns stand beside what has an entry of its own.
        let of_column = || {
            let mut all = Reading::sequences(self).into_iter();
            all.find(|sequence| sequence.name == name).map(|sequence| sequence.oid)
        };
        let ns = Namespace::new(self.session.database.as_str(), name);
        let found = self.view.catalog().get(&ns).filter(|_| self.may_find(&ns));
        let own = found.map(|collection| RELATIONS.saturating_add(collection.id.0));
        own.or_else(|| system::oid_of(name)).or_else(of_column).unwrap_or(0)
    }

    fn name_of(&self, oid: u32) -> Option<String> {
        let id = oid.checked_sub(RELATIONS).map(nestor_storage::CollectionId);
        let own = id.and_then(|id| self.view.catalog().by_id(id));
        own.filter(|collection| self.may_find(&collection.ns))
            .map(|collection| collection.ns.coll.to_string())
            .or_else(|| system::name_of(oid).map(str::to_owned))
            .or_else(|| {
                let mut all = Reading::sequences(self).into_iter();
                all.find(|sequence| sequence.oid == oid).map(|sequence| sequence.name)
            })
    }
}

/// The table that a view of SQL is.
fn table_of(reading: &Reading<'_, '_>, name: &str, query: Arc<Query>) -> Result<Table> {
    let columns = Binder::new(reading, Vec::new()).query(&query)?.columns;
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
        declared: true,
        ..Table::new(name, columns.collect(), Kind::Query(query))
    })
}

/// The tables of a statement that runs.
pub struct Tables<'s, 'r> {
    /// What is read.
    pub reading: &'s Reading<'s, 'r>,
    /// The tables that scans name by number.
    pub tables: Vec<Arc<Table>>,
}

impl Tables<'_, '_> {
    /// How the find layer reads what a scan wants; `None` of tables that are no collections.
    ///
    /// Errors: those of opening the scan.
    pub fn access(&self, scan: &Scan<Expr>, env: &Env<'_>) -> Result<Option<Access>> {
        match self.opened(scan, 0, env)? {
            Opened::Rows(_) => Ok(None),
            Opened::Documents { mut root, in_order, .. } => Ok(Some(Access {
                path: self.path(&mut root)?,
                in_order,
            })),
        }
    }

    /// The indexes that the find layer reads by.
    fn path(&self, root: &mut BoxOperator) -> Result<String> {
        let path = |root: &BoxOperator| {
            let mut leaves = Vec::new();
            nestor_exec::summary::leaves(&**root, &mut leaves);
            nestor_exec::summary::plan_summary(&leaves)
        };
        let known = path(root);
        if !known.is_empty() {
            return Ok(known);
        }
        // Between several plans their trial decides, which the first row is part of.
        let reading = self.reading;
        let mut batch = read::batch(reading.statement, reading.view, reading.op, true);
        while let Step::Pause = root.next(&mut batch)? {}
        Ok(path(root))
    }
}

impl Sources<Expr> for Tables<'_, '_> {
    fn open(&self, scan: &Scan<Expr>, part: usize, _: &Batch<'_>, env: &Env<'_>) -> Result<Opened> {
        let opened = self.opened(scan, part, env)?;
        if let Opened::Documents { root, .. } = &opened {
            self.reading.statement.note_plan(&**root);
        }
        Ok(opened)
    }

    fn count(&self, scan: &Scan<Expr>, _: &Batch<'_>, env: &Env<'_>) -> Result<Option<u64>> {
        match self.counting(scan, env)? {
            Counting::Rows => Ok(None),
            Counting::Known(rows) => Ok(Some(rows)),
            Counting::Found(mut root) => {
                let reading = self.reading;
                let mut batch = read::batch(reading.statement, reading.view, reading.op, true);
                reading.statement.note_plan(&*root);
                let rows = count_rows(&mut *root, &mut batch);
                reading.statement.observe_totals(totals(&*root));
                rows.map(Some)
            }
        }
    }
}

/// How the rows of a scan are counted.
enum Counting {
    /// One by one.
    Rows,
    /// They have been counted.
    Known(u64),
    /// The find layer gives as many as there are, and nothing of them.
    Found(BoxOperator),
}

impl Tables<'_, '_> {
    fn opened(&self, scan: &Scan<Expr>, part: usize, env: &Env<'_>) -> Result<Opened> {
        let Some(table) = self.tables.get(scan.table) else {
            return fail("XX000", "a scan names no table");
        };
        match &table.kind {
            Kind::Rows(rows) => {
                let width = scan.needed.len();
                let rows: Vec<Vec<Value>> = rows
                    .iter()
                    .map(|row| {
                        let mut row = row.clone();
                        row.resize(width, Value::Null);
                        row
                    })
                    .collect();
                Ok(Opened::Rows(rows.into_iter()))
            }
            Kind::Query(_) => fail("XX000", "a view was read as a table"),
            Kind::Collection(ns) | Kind::View(ns) => {
                let filter = find::filter(&scan.conditions, table, env)?;
                let order = self.order(scan, table, part, &filter)?;
                let (filter, sort, parts) = match &order {
                    Some(order) => (order.filter(part, filter), Some(order.sort()), order.parts()),
                    None => (filter, None, 1),
                };
                Ok(Opened::Documents {
                    root: self.reading.find(ns, &filter, sort.as_ref(), (None, false))?,
                    reader: Box::new(Documents::new(table, &scan.needed)),
                    exact: find::is_exact(&scan.conditions, table),
                    in_order: order.is_some(),
                    more: part + 1 < parts,
                })
            }
        }
    }

    /// How to count what a scan wants. Conditions are left to the find layer only where columns were declared: in other tables a value that
    /// is none of its column's type is told of.
    fn counting(&self, scan: &Scan<Expr>, env: &Env<'_>) -> Result<Counting> {
        let table = self.tables.get(scan.table);
        let Some((table, Kind::Collection(ns))) = table.map(|table| (table, &table.kind)) else {
            return Ok(Counting::Rows);
        };
        let is_all = scan.conditions.is_empty();
        let reading = self.reading;
        let settles = is_all || table.declared && find::is_exact(&scan.conditions, table);
        if !settles || reading.is_piped(ns)? {
            return Ok(Counting::Rows);
        }
        let known = || {
            let collection = reading.view.catalog().get(ns).filter(|own| !is_oplog(own))?;
            let (documents, _) = reading.statement.database.engine.counts_at(reading.view, collection)?;
            u64::try_from(documents).ok()
        };
        // What a transaction has read is noted record by record.
        if let Some(rows) = (is_all && reading.view.is_fixed()).then(known).flatten() {
            return Ok(Counting::Known(rows));
        }
        let filter = find::filter(&scan.conditions, table, env)?;
        let found = reading.find_for(Wanted::Count, ns, &filter, None, (None, false))?;
        Ok(Counting::Found(found))
    }

    /// How the rows of a scan are counted, for EXPLAIN.
    ///
    /// Errors: those of the scan's conditions.
    pub fn counts(&self, scan: &Scan<Expr>, env: &Env<'_>) -> Result<Option<Access>> {
        let path = match self.counting(scan, env)? {
            Counting::Rows => return self.access(scan, env),
            Counting::Known(_) => "RECORD_STORE_FAST_COUNT".to_owned(),
            Counting::Found(mut root) => self.path(&mut root)?,
        };
        Ok(Some(Access { path, in_order: false }))
    }

    /// The order in which the find layer gives what a scan wants; `None` for any. What the first part was read in, all others are.
    fn order(&self, scan: &Scan<Expr>, table: &Table, part: usize, filter: &Document) -> Result<Option<Order>> {
        let Kind::Collection(ns) = &table.kind else {
            return Ok(None);
        };
        if scan.order.is_empty() || self.reading.is_piped(ns)? {
            return Ok(None);
        }
        let order = Order::of(scan, table);
        if part == 0
            && let Some(elsewhere) = order.as_ref().and_then(|order| order.elsewhere(filter.clone()))
            && self.reading.finds_any(ns, &elsewhere)?
        {
            return Ok(None);
        }
        Ok(order)
    }
}

/// An array of texts.
pub fn texts(items: impl IntoIterator<Item = String>) -> Value {
    Value::Array(Array::new(
        items.into_iter().map(|item| Value::String(item.into())).collect(),
    ))
}
