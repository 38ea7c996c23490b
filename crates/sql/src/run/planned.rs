//! The plan of a query, and under which facts it holds: a prepared statement keeps its plan until one of them changes.
//!
//! A plan was made of what the binder was told: which table has a name, and what settings are. [`Asked`] writes that down, and a kept plan is
//! used again when the same questions get the same answers, of a table the very same version. So asking checks the user's rights
//! each time as well. What was made of facts that are not asked again (numbers of relations, the list of settings) is not kept.

use super::find;
use super::ordered;
use super::tables::Reading;
use crate::bind::{Binder, Bound, ScopeColumn};
use crate::catalog::files::Named;
use crate::catalog::{Catalog, Column, Kind, Table};
use crate::expr::Expr;
use crate::functions::coerce;
use crate::plan::Plan;
use crate::plan::estimate::{Given, Statistics};
use crate::plan::rewrite::rewrite;
use crate::types::Type;
use crate::types::cast::Context;
use crate::types::enums::Enum;
use nestor_database::connections::Slot;
use nestor_model::{Document, Namespace, Result, ValueRef};
use nestor_planner::kinds::expression;
use nestor_planner::relation::{Env, Relation, Scan};
use nestor_storage::Collection;
use sqlparser::ast::Query;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A column of a result.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// The modifier of its type.
    pub modifier: i32,
    /// The OID of the table that it is a column of, and its number there; zeros where it is computed. Where a column comes from makes no other
    /// result of it.
    pub origin: (u32, u16),
}

impl Field {
    /// The column of a result that a column of a query is.
    pub fn of(column: &ScopeColumn) -> Self {
        Self {
            name: column.name.clone(),
            ty: column.ty.clone(),
            modifier: column.modifier,
            origin: column.origin,
        }
    }

    /// A column of no table.
    pub fn new(name: impl Into<String>, ty: Type) -> Self {
        Self {
            name: name.into(),
            ty,
            modifier: -1,
            origin: (0, 0),
        }
    }
}

impl PartialEq for Field {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.ty, self.modifier) == (&other.name, &other.ty, other.modifier)
    }
}

/// What collections and their indexes tell of the tables of a statement.
pub struct Sizes<'s, 'r> {
    /// The tables, by number.
    tables: &'s [Arc<Table>],
    /// The state that they are read in.
    reading: &'s Reading<'s, 'r>,
    /// What was asked of indexes, by table and conditions.
    found: RefCell<HashMap<(usize, String), Option<f64>>>,
    /// How many different values columns have, by table and column.
    distinct: RefCell<HashMap<(usize, usize), Option<f64>>>,
}

impl<'s, 'r> Sizes<'s, 'r> {
    /// For the tables of a statement.
    pub fn new(tables: &'s [Arc<Table>], reading: &'s Reading<'s, 'r>) -> Self {
        Self {
            tables,
            reading,
            found: RefCell::default(),
            distinct: RefCell::default(),
        }
    }

    fn collection(&self, table: usize) -> Option<&Collection> {
        match &self.tables.get(table)?.kind {
            Kind::Collection(ns) => self.reading.view.catalog().get(ns).map(|collection| &**collection),
            _ => None,
        }
    }

    /// Whether an index begins with a column and finds all documents by it: the only part of its key, if `alone`.
    fn has_index(&self, table: usize, column: usize, alone: bool) -> bool {
        let path = self.tables.get(table).and_then(|table| table.columns.get(column));
        let (Some(column), Some(collection)) = (path, self.collection(table)) else {
            return false;
        };
        collection.all_indexes().any(|index| {
            let mut parts = index.key_pattern.iter();
            let first = parts.next();
            let orders = |kind| matches!(kind, ValueRef::Int32(_) | ValueRef::Int64(_) | ValueRef::Double(_));
            let begins = first.is_some_and(|(path, kind)| path == column.path && orders(kind));
            let finds = !index.hidden && index.partial_filter.is_none() && index.collation.is_none();
            let only = index.is_id() || index.unique && parts.next().is_none();
            begins && finds && (only || !alone)
        })
    }
}

/// Bytes of a row of a file, about.
const FILE_ROW_BYTES: f64 = 100.0;

/// What a row costs that is read by columns, in rows that are documents.
const COLUMN_COST: f64 = 0.15;

impl Statistics for Sizes<'_, '_> {
    fn rows(&self, table: usize) -> f64 {
        match (self.tables.get(table).map(|table| &table.kind), self.collection(table)) {
            (Some(Kind::Rows(rows)), _) => rows.len() as f64,
            (Some(Kind::Files(source)), _) => source.bytes as f64 / FILE_ROW_BYTES,
            (_, Some(collection)) if !collection.is_view() => collection.state.documents() as f64,
            _ => 1000.0,
        }
    }

    fn reads(&self, table: usize) -> f64 {
        let database = &self.reading.statement.database;
        let by_columns = |collection: &Collection| database.columns.has(collection.records);
        match self.collection(table).is_some_and(by_columns) {
            true => self.rows(table) * COLUMN_COST,
            false => self.rows(table),
        }
    }

    fn is_unique(&self, table: usize, column: usize) -> bool {
        self.has_index(table, column, true)
    }

    fn is_indexed(&self, table: usize, column: usize) -> bool {
        self.has_index(table, column, false)
    }

    fn found(&self, table: usize, conditions: &[Expr]) -> Option<f64> {
        let text: Vec<String> = conditions.iter().map(ToString::to_string).collect();
        let at = (table, text.join(" AND "));
        if let Some(known) = self.found.borrow().get(&at) {
            return *known;
        }
        let find = || {
            let collection = self.collection(table)?;
            let env = Env {
                op: self.reading.op,
                params: &[],
                outer: None,
                effects: None,
            };
            // What cannot be computed ends the statement when it runs.
            let found = find::filter(conditions, self.tables.get(table)?, &env).ok()?;
            self.reading.estimated(collection, &found.filter).ok()?
        };
        let found = find().map(|found| found as f64);
        self.found.borrow_mut().insert(at, found);
        found
    }

    fn distinct(&self, table: usize, column: usize) -> Option<f64> {
        if !self.has_index(table, column, false) {
            return None;
        }
        if let Some(known) = self.distinct.borrow().get(&(table, column)) {
            return *known;
        }
        let column_of = self.tables.get(table).and_then(|table| table.columns.get(column));
        let find = |column: &Column| self.reading.different(self.collection(table)?, &column.path).ok()?;
        let found = column_of.and_then(find);
        self.distinct.borrow_mut().insert((table, column), found);
        found
    }

    fn computes(&self, table: usize) -> bool {
        let collection = self.collection(table);
        collection.is_some_and(|collection| {
            let mut all = collection.indexes.iter();
            all.any(|index| index.spec.kind() == expression::NAME)
        })
    }

    fn gives_order(&self, scan: &Scan<Expr>) -> Given {
        match (self.tables.get(scan.table), self.collection(scan.table)) {
            (Some(table), Some(collection)) if !collection.is_view() => ordered::given(scan, table, collection),
            _ => Given::No,
        }
    }
}

/// A query whose names and types are settled and whose plan is rewritten.
#[derive(Debug)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// The tables that its scans name by number.
    pub tables: Vec<Arc<Table>>,
    /// Its columns.
    pub fields: Vec<Field>,
    /// The types of its parameters.
    pub params: Vec<Type>,
    /// The collections whose rows it holds.
    pub held: Vec<Namespace>,
    answers: Answers,
}

/// Where a prepared statement keeps its plan. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct PlanCell(Arc<Mutex<Option<Arc<Planned>>>>);

/// What the binder was told.
#[derive(Debug, Default)]
struct Answers {
    tables: Vec<(Option<String>, String, Option<Arc<Table>>)>,
    settings: Vec<(String, Option<String>)>,
}

/// A catalog that writes down what it is asked.
struct Asked<'c> {
    catalog: &'c dyn Catalog,
    answers: RefCell<Answers>,
    /// Something was asked that is not asked again.
    once: Cell<bool>,
}

impl Catalog for Asked<'_> {
    fn table(&self, schema: Option<&str>, name: &str) -> Result<Option<Arc<Table>>> {
        let table = self.catalog.table(schema, name)?;
        let answer = (schema.map(str::to_owned), name.to_owned(), table.clone());
        self.answers.borrow_mut().tables.push(answer);
        Ok(table)
    }

    fn files(&self, named: &Named) -> Result<Arc<Table>> {
        self.once.set(true);
        self.catalog.files(named)
    }

    fn setting(&self, name: &str) -> Option<String> {
        let setting = self.catalog.setting(name);
        let answer = (name.to_owned(), setting.clone());
        self.answers.borrow_mut().settings.push(answer);
        setting
    }

    fn enum_of(&self, schema: Option<&str>, name: &str) -> Option<Arc<Enum>> {
        self.once.set(true);
        self.catalog.enum_of(schema, name)
    }

    fn settings(&self) -> Vec<(String, String)> {
        self.once.set(true);
        self.catalog.settings()
    }

    fn connections(&self) -> Vec<(Arc<Slot>, bool)> {
        self.once.set(true);
        self.catalog.connections()
    }

    fn number_of(&self, table: &Table) -> u32 {
        self.catalog.number_of(table)
    }

    fn oid_of(&self, name: &str) -> u32 {
        self.once.set(true);
        self.catalog.oid_of(name)
    }

    fn texts(&self, function: &str) -> Result<Option<Vec<(i64, String)>>> {
        let texts = self.catalog.texts(function)?;
        // Most functions ask for nothing of the catalog.
        self.once.set(self.once.get() || texts.is_some());
        Ok(texts)
    }

    fn sizes(&self, function: &str, of: Option<&str>) -> Result<Vec<(String, i64)>> {
        self.once.set(true);
        self.catalog.sizes(function, of)
    }

    fn descriptions(&self) -> Result<Vec<(String, String)>> {
        self.once.set(true);
        self.catalog.descriptions()
    }

    fn serial_sequences(&self) -> Result<Document> {
        self.once.set(true);
        self.catalog.serial_sequences()
    }

    fn name_of(&self, oid: u32) -> Option<String> {
        self.once.set(true);
        self.catalog.name_of(oid)
    }
}

impl Answers {
    /// Whether a catalog gives them still.
    ///
    /// Errors: those of [`Catalog::table`], that the user may not read a table any more among them.
    fn hold(&self, catalog: &dyn Catalog) -> Result<bool> {
        for (schema, name, before) in &self.tables {
            let same = match (before, catalog.table(schema.as_deref(), name)?) {
                (Some(before), Some(now)) => Arc::ptr_eq(before, &now),
                (None, None) => true,
                _ => false,
            };
            if !same {
                return Ok(false);
            }
        }
        let mut settings = self.settings.iter();
        Ok(settings.all(|(name, before)| catalog.setting(name) == *before))
    }

    /// Whether they can be the same again: rows in memory and the columns of views are made anew each time.
    fn may_hold(&self) -> bool {
        let mut tables = self.tables.iter().filter_map(|(_, _, table)| table.as_ref());
        tables.all(|table| matches!(table.kind, Kind::Collection(_)))
    }
}

impl Planned {
    /// Plans a query whose parameters have these types; says whether the plan may be kept.
    ///
    /// Errors: those of binding.
    fn make(reading: &Reading<'_, '_>, query: &Query, types: Vec<Type>) -> Result<(Self, bool)> {
        let asked = Asked {
            catalog: reading,
            answers: RefCell::default(),
            once: Cell::new(false),
        };
        let mut binder = Binder::new(&asked, types);
        let bound = finished(binder.query(query)?)?;
        let (tables, params) = (std::mem::take(&mut binder.tables), std::mem::take(&mut binder.params));
        let held = std::mem::take(&mut binder.held);
        let fields = fields(&bound);
        // Literals of a plan were read in the session's zone.
        asked.setting("timezone");
        asked.setting("datestyle");
        let once = asked.once.get();
        let answers = asked.answers.into_inner();
        let keeps = !once && answers.may_hold();
        let sizes = Sizes::new(&tables, reading);
        let planned = Self {
            plan: rewrite(bound.plan, &sizes),
            tables,
            fields,
            params,
            held,
            answers,
        };
        Ok((planned, keeps))
    }
}

impl PlanCell {
    /// The plan of `query`, which is always the same one for a cell, as are `types`: the one that is kept if it still holds.
    ///
    /// Errors: those of binding.
    pub fn plan(&self, reading: &Reading<'_, '_>, query: &Query, types: &[Type]) -> Result<Arc<Planned>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(kept) = kept
            && kept.answers.hold(reading)?
        {
            return Ok(kept);
        }
        let (planned, keeps) = Planned::make(reading, query, types.to_vec())?;
        let planned = Arc::new(planned);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = keeps.then(|| planned.clone());
        Ok(planned)
    }
}

pub(super) fn fields(bound: &Bound) -> Vec<Field> {
    bound.columns.iter().map(Field::of).collect()
}

/// A query whose columns all have types: literals that nobody read are text.
pub(crate) fn finished(mut bound: Bound) -> Result<Bound> {
    if bound.columns.iter().all(|column| column.ty != Type::Unknown) {
        return Ok(bound);
    }
    let columns = bound.columns.iter().enumerate().map(|(i, column)| {
        let own = Expr::column(i, column.name.clone(), column.ty.clone());
        match column.ty {
            Type::Unknown => coerce(own, &Type::Text, Context::Implicit),
            _ => Ok(own),
        }
    });
    let columns = columns.collect::<Result<_>>()?;
    bound.plan = Relation::Project {
        input: Box::new(bound.plan),
        columns,
    };
    for column in &mut bound.columns {
        if column.ty == Type::Unknown {
            column.ty = Type::Text;
        }
    }
    Ok(bound)
}
