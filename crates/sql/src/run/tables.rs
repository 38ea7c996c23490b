//! The catalog as a statement reads it, and tables opened.

use super::find;
use crate::catalog::documents::{Inference, SAMPLE};
use crate::catalog::system::{self, Facts, RELATIONS};
use crate::catalog::{Catalog, Kind, Table};
use crate::error::fail;
use crate::expr::Expr;
use crate::types::stored;
use nestor_database::operation::pipeline::Purpose;
use nestor_database::operation::{Operation, Work};
use nestor_database::read;
use nestor_database::rights::Action;
use nestor_database::shape::{Shape, Words};
use nestor_database::statement::Statement;
use nestor_database::users::Account;
use nestor_exec::relation::{Opened, Reader, Sources};
use nestor_exec::{Batch, BoxOperator, Step};
use nestor_model::{Array, ArrayRef, Binary, DocRef, Document, Namespace, Result, Value, ValueRef, bail};
use nestor_planner::find::Wanted;
use nestor_planner::relation::{Env, Scan};
use nestor_query::env::OpContext;
use nestor_storage::View;
use std::collections::BTreeMap;
use std::sync::Arc;

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
}

impl Reading<'_, '_> {
    /// Finds what `filter` matches at a namespace, view or not; at most `limit`, from the end if `backwards`.
    ///
    /// Errors: those of the filter and of the view.
    pub fn find(&self, ns: &Namespace, filter: &Document, limit: Option<u64>, backwards: bool) -> Result<BoxOperator> {
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
        let words = Words {
            filter: Some(raw.as_raw()),
            ..Words::default()
        };
        let mut query = read::filtered(&words, &Default::default(), &mut scope)?;
        query.limit = limit;
        query.natural = backwards.then_some(false);
        let cache = Some(&*statement.database.plan_cache);
        nestor_exec::find(&query, Wanted::Documents, words.written(), &collection, cache)
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
            let mut root = self.find(ns, &Document::new(), Some(SAMPLE), backwards)?;
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

    /// Refuses what the user may not do with a collection.
    ///
    /// Errors: 13.
    pub fn check_right(&self, ns: &Namespace, action: Action) -> Result<()> {
        let account = self.session.account.as_ref();
        match account.is_none_or(|account| account.grants.on_collection(ns).has(action)) {
            true => Ok(()),
            false => bail!(Unauthorized, "permission denied for table {}", ns.coll),
        }
    }

    /// Whether the user may read documents of a collection. Who may not is not told that there is one.
    fn may_find(&self, ns: &Namespace) -> bool {
        let account = self.session.account.as_ref();
        account.is_none_or(|account| account.grants.on_collection(ns).has(Action::Find))
    }

    fn table_at(&self, ns: &Namespace) -> Result<Option<Table>> {
        if !self.may_find(ns) {
            bail!(Unauthorized, "permission denied for table {}", ns.coll);
        }
        let Some(collection) = self.view.catalog().get(ns).cloned() else {
            return Ok(None);
        };
        let is_view = collection.is_view();
        Ok(Some(Table {
            schema: "public".to_owned(),
            name: ns.coll.to_string(),
            columns: self.infer(ns)?,
            kind: if is_view {
                Kind::View(ns.clone())
            } else {
                Kind::Collection(ns.clone())
            },
            declared: false,
        }))
    }
}

impl Facts for Reading<'_, '_> {
    fn tables(&self) -> Result<Vec<(u32, Arc<Table>)>> {
        let mut out = Vec::new();
        let Some(database) = self.view.catalog().database(&self.session.database) else {
            return Ok(out);
        };
        for collection in database
            .collections()
            .filter(|collection| !collection.ns.coll.starts_with("system.") && self.may_find(&collection.ns))
        {
            if let Some(table) = self.table_at(&collection.ns)? {
                out.push((RELATIONS.saturating_add(collection.id.0), Arc::new(table)));
            }
        }
        Ok(out)
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
                return Ok(Some(Arc::new(table)));
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

    fn oid_of(&self, name: &str) -> u32 {
        let ns = Namespace::new(self.session.database.as_str(), name);
        let found = self.view.catalog().get(&ns).filter(|_| self.may_find(&ns));
        found.map_or(0, |collection| RELATIONS.saturating_add(collection.id.0))
    }

    fn name_of(&self, oid: u32) -> Option<String> {
        let id = nestor_storage::CollectionId(oid.checked_sub(RELATIONS)?);
        self.view
            .catalog()
            .by_id(id)
            .filter(|collection| self.may_find(&collection.ns))
            .map(|collection| collection.ns.coll.to_string())
    }
}

/// The tables of a statement that runs.
pub struct Tables<'s, 'r> {
    /// What is read.
    pub reading: &'s Reading<'s, 'r>,
    /// The tables that scans name by number.
    pub tables: Vec<Arc<Table>>,
}

impl Sources<Expr> for Tables<'_, '_> {
    fn open(&self, scan: &Scan<Expr>, _: &Batch<'_>, env: &Env<'_>) -> Result<Opened> {
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
            Kind::Collection(ns) | Kind::View(ns) => {
                let filter = find::filter(&scan.conditions, table, env)?;
                Ok(Opened::Documents {
                    root: self.reading.find(ns, &filter, None, false)?,
                    reader: Box::new(Documents {
                        table: table.clone(),
                        needed: scan.needed.clone(),
                    }),
                })
            }
        }
    }
}

/// Makes rows of documents.
struct Documents {
    table: Arc<Table>,
    needed: Vec<bool>,
}

impl Reader for Documents {
    fn read(&mut self, row: &nestor_exec::Row) -> Result<Vec<Value>> {
        let record = row.record.as_deref();
        row_of(&self.table, &self.needed, row.as_doc(), record)
    }
}

/// The row that a document is: the columns that are `needed`, and behind them the document and the key of its record.
///
/// Errors: 22P02 and 22003 when a value is not of its column's type.
pub fn row_of(table: &Table, needed: &[bool], doc: DocRef<'_>, record: Option<&[u8]>) -> Result<Vec<Value>> {
    let mut out = vec![Value::Null; needed.len()];
    for (i, column) in table.columns.iter().enumerate() {
        if needed.get(i) == Some(&true) {
            let value = doc.get(&column.path).unwrap_or(ValueRef::Missing);
            out[i] = stored::read(&column.ty, value, &column.path)?;
        }
    }
    let behind = table.columns.len();
    if needed.get(behind) == Some(&true) {
        out[behind] = Value::Document(doc.to_document());
    }
    if let (Some(true), Some(record)) = (needed.get(behind + 1), record) {
        out[behind + 1] = Value::Binary(Binary {
            subtype: 0,
            bytes: record.into(),
        });
    }
    Ok(out)
}

/// An array of texts.
pub fn texts(items: impl IntoIterator<Item = String>) -> Value {
    Value::Array(Array::new(
        items.into_iter().map(|item| Value::String(item.into())).collect(),
    ))
}
