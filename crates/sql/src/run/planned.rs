//! The plan of a query, and under which facts it holds: a prepared statement keeps its plan until one of them changes.
//!
//! A plan was made of what the binder was told: [`Asked`] writes that down, and a kept plan is used again when the same questions get the same answers.

use super::constants::broken;
use super::element_index;
use super::find;
use super::ordered;
use super::partitions;
use super::tables::{Find, Reading};
use crate::bind::{Binder, Bound, ScopeColumn};
use crate::catalog::answers::{Answers, Asked, Kept};
use crate::catalog::sampled::{self, Sample};
use crate::catalog::{Column, Kind, Table};
use crate::error::fail;
use crate::expr::{Comparison, Expr, Node};
use crate::functions::coerce;
use crate::plan::estimate::{FOUND_COST, Given, Statistics};
use crate::plan::rewrite::rewrite;
use crate::plan::switches::Switches;
use crate::plan::{Plan, elements};
use crate::types::Type;
use crate::types::cast::Context;
use nestor_columns::Statistics as Known;
use nestor_database::read;
use nestor_exec::Step;
use nestor_model::{Document, Error, Namespace, Result, Value, ValueRef};
use nestor_planner::interval::IntervalList;
use nestor_planner::kinds::expression;
use nestor_planner::relation::{Env, Relation, Scan};
use nestor_storage::{Collection, Index};
use sqlparser::ast::Query;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

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
    /// How many elements the documents of tables of such have, by table.
    elements: RefCell<HashMap<usize, f64>>,
}

impl<'s, 'r> Sizes<'s, 'r> {
    /// For the tables of a statement.
    pub fn new(tables: &'s [Arc<Table>], reading: &'s Reading<'s, 'r>) -> Self {
        Self {
            tables,
            reading,
            found: RefCell::default(),
            distinct: RefCell::default(),
            elements: RefCell::default(),
        }
    }

    /// How many rows of a table each document is, about.
    fn rows_each(&self, table: usize) -> f64 {
        let Some(Table {
            columns,
            elements: Some(elements),
            ..
        }) = self.tables.get(table).map(|table| &**table)
        else {
            return 1.0;
        };
        if let Some(known) = self.elements.borrow().get(&table) {
            return *known;
        }
        let collection = self.collection(table);
        if let Some(each) = self.known_elements(table) {
            self.elements.borrow_mut().insert(table, each);
            return each;
        }
        let sampled = collection.map(|collection| self.sampled_elements(&collection.ns, &columns[elements.array].path));
        let each = sampled.and_then(Result::ok).flatten().unwrap_or(ELEMENTS_UNKNOWN);
        self.elements.borrow_mut().insert(table, each);
        each
    }

    /// How many elements the arrays have in a document on average, by columns.
    fn known_elements(&self, table: usize) -> Option<f64> {
        let own = self.tables.get(table)?;
        let columns = own.columns.iter().skip(own.elements?.first);
        let mut names = columns
            .map(|column| column.name.as_str())
            .filter(|name| find::usable(name));
        let known = self.of_elements(table, names.next()?)?;
        let documents = self.collection(table)?.state.documents().max(1) as f64;
        Some((known.all / documents).max(0.1))
    }

    /// What columns tell of a field of the elements that are the rows of a table.
    fn of_elements(&self, table: usize, field: &str) -> Option<Arc<Known>> {
        let (collection, array) = (self.collection(table)?, self.array(table)?);
        self.reading.statistics_of_elements(collection, array, field)
    }

    /// About how many documents' worth of elements some conditions leave, by what columns tell of the fields of elements.
    fn found_in_elements(&self, table: usize, conditions: &[Expr], env: &Env<'_>) -> Option<f64> {
        let own = self.tables.get(table)?;
        let mut part = None;
        for column in own.elements?.first..own.columns.len() {
            let field = &own.columns[column];
            let said = element_index::values(conditions, column, &field.ty, env).ok().flatten();
            let Some((said, known)) = said.zip(self.of_elements(table, &field.name)) else {
                continue;
            };
            let is_of_one = said.intervals().iter().filter(|interval| interval.is_point()).count() == 1;
            let holds = |value: &Value| !said.intersect(&IntervalList::point(value.clone())).is_empty();
            part = Some(part.unwrap_or(1.0) * known.part(holds, is_of_one));
        }
        let documents = self.collection(table)?.state.documents().max(0) as f64;
        Some(part? * documents)
    }

    /// A few documents of a table.
    fn sample(&self, table: usize) -> Option<Arc<Sample>> {
        let collection = self.collection(table).filter(|_| !self.is_of_elements(table))?;
        sampled::of(collection, &self.reading.statement.database.engine).ok()?
    }

    /// About how many documents of a table some conditions hold of, of which this is the filter, by a few of its documents.
    fn found_in_sample(&self, table: usize, conditions: &[Expr], filter: &Document) -> Option<f64> {
        let sample = self.sample(table).filter(|_| !filter.is_empty())?;
        let filter = self.reading.parsed(filter).ok()?;
        let part = sample.part(&filter, self.reading.op).ok()?;
        let documents = self.collection(table)?.state.documents().max(0) as f64;
        let found = part * documents;
        // A value that is not in the sample is as frequent as others are.
        let [condition] = conditions else { return Some(found) };
        let Node::Compare(Comparison::Equal, a, b) = condition.node() else {
            return Some(found);
        };
        let own = if a.is_known() { b } else { a };
        let Node::Column { index, .. } = own.as_moment().node() else {
            return Some(found);
        };
        let each = documents / self.distinct(table, *index)?.max(1.0);
        Some(if sample.is_of_none(part) { each } else { found })
    }

    /// How many elements the array at `path` has in a document, about; `None` when there are no documents.
    ///
    /// Errors: those of storage.
    fn sampled_elements(&self, ns: &Namespace, path: &str) -> Result<Option<f64>> {
        let reading = self.reading;
        let all = Document::new();
        let sample = Find {
            limit: Some(ELEMENTS_SAMPLE),
            stored: true,
            ..Find::all(&all)
        };
        let mut root = reading.find(ns, sample)?;
        let mut batch = read::batch(reading.statement, reading.view, reading.op, true);
        let (mut documents, mut elements) = (0, 0);
        loop {
            match root.next(&mut batch)? {
                Step::Row(row) => {
                    documents += 1;
                    if let Some(ValueRef::Array(items)) = row.as_doc().get(path) {
                        elements += items.iter().count();
                    }
                }
                Step::Pause => {}
                Step::Eof => break,
            }
        }
        Ok((documents > 0).then(|| (elements as f64 / f64::from(documents)).max(0.1)))
    }

    /// Whether the rows of a table are elements of arrays.
    fn is_of_elements(&self, table: usize) -> bool {
        self.tables.get(table).is_some_and(|table| table.elements.is_some())
    }

    /// The path of the array whose elements are the rows of a table.
    fn array(&self, table: usize) -> Option<&str> {
        let own = self.tables.get(table)?;
        Some(&own.columns[own.elements?.array].path)
    }

    fn collection(&self, table: usize) -> Option<&Collection> {
        match &self.tables.get(table)?.kind {
            Kind::Collection(ns) => self.reading.view.catalog().get(ns).map(|collection| &**collection),
            _ => None,
        }
    }

    /// Whether an index begins with a column and finds all documents by it: the only part of its key, if `alone`.
    fn has_index(&self, table: usize, column: usize, alone: bool) -> bool {
        let path = self.tables.get(table).and_then(|table| {
            let own = table.columns.get(column)?;
            element_index::path(table, column).or_else(|| Some(own.path.clone()))
        });
        let (Some(path), Some(collection)) = (path, self.collection(table)) else {
            return false;
        };
        collection.all_indexes().any(|index| {
            let only = index.is_id() || index.unique && index.key_pattern.len() == 1;
            begins_with(index, &path) && (only || !alone)
        })
    }

    /// How many different values the field of elements at a path has, by an index on it.
    fn different_in_elements(&self, table: usize, path: &str) -> Option<f64> {
        let mut indexes = self.collection(table)?.all_indexes();
        let index = indexes.find(|index| begins_with(index, path))?;
        element_index::different(index, self.reading.view).ok()?
    }
}

/// Whether an index finds all documents by what they have at a path.
fn begins_with(index: &Index, path: &str) -> bool {
    let orders = |kind| matches!(kind, ValueRef::Int32(_) | ValueRef::Int64(_) | ValueRef::Double(_));
    let first = index.key_pattern.iter().next();
    let begins = first.is_some_and(|(own, kind)| own == path && orders(kind));
    begins && !index.hidden && index.partial_filter.is_none() && index.collation.is_none()
}

/// Bytes of a row of a file, about.
const FILE_ROW_BYTES: f64 = 100.0;

/// Documents that are looked at to know how long their arrays are.
const ELEMENTS_SAMPLE: u64 = 64;

/// Elements of arrays of which nothing is known.
const ELEMENTS_UNKNOWN: f64 = 4.0;

/// What an element costs that is read with its document, in documents.
const ELEMENT_COST: f64 = 0.5;

/// What a row costs that is read by columns, in rows that are documents.
const COLUMN_COST: f64 = 0.15;

impl Statistics for Sizes<'_, '_> {
    fn switches(&self) -> Switches {
        self.reading.session.switches
    }

    fn rows(&self, table: usize) -> f64 {
        match (self.tables.get(table).map(|table| &table.kind), self.collection(table)) {
            (Some(Kind::Rows(rows)), _) => (rows.len() + self.tables[table].fixed.len()) as f64,
            (Some(Kind::Files(source)), _) => source.bytes as f64 / FILE_ROW_BYTES,
            (_, Some(collection)) if !collection.is_view() => {
                collection.state.documents() as f64 * self.rows_each(table)
            }
            _ => 1000.0,
        }
    }

    fn reads(&self, table: usize) -> f64 {
        let database = &self.reading.statement.database;
        let columns = &database.columns;
        let by_columns = |collection: &Collection| match self.array(table) {
            Some(array) => columns.has_elements(collection.records, array),
            None => columns.has(collection.records),
        };
        if self.collection(table).is_some_and(by_columns) {
            return self.rows(table) * COLUMN_COST;
        }
        match self.is_of_elements(table) {
            true => {
                let each = self.rows_each(table);
                self.rows(table) / each * (1.0 + each * ELEMENT_COST)
            }
            false => self.rows(table),
        }
    }

    fn note_cost(&self, table: usize, cost: f64) {
        let Some(collection) = self.collection(table) else {
            return;
        };
        let columns = &self.reading.statement.database.columns;
        let may_be_made =
            !collection.is_clustered() && !columns.has(collection.records) && !self.reading.columns_are("off");
        if may_be_made && self.rows(table) * COLUMN_COST < cost {
            // It is a wish: what cannot be read now is found out by whoever reads it.
            let _ = columns.read(self.reading.view, collection.records);
        }
    }

    fn is_unique(&self, table: usize, column: usize) -> bool {
        !self.is_of_elements(table) && self.has_index(table, column, true)
    }

    fn is_indexed(&self, table: usize, column: usize) -> bool {
        self.switches().indexscan && self.has_index(table, column, false)
    }

    fn found_cost(&self, table: usize, column: usize) -> Option<f64> {
        let own = self.tables.get(table)?;
        let cost = match own.elements {
            None => 1.0,
            // With a document all of its elements are read, of which a field finds one and the document's own columns all.
            Some(_) => {
                let rows = self.rows_each(table);
                let document = 1.0 + rows * ELEMENT_COST;
                match element_index::path(own, column) {
                    Some(_) => document,
                    None => document / rows,
                }
            }
        };
        let switches = self.switches();
        (switches.looks_up() && self.is_indexed(table, column)).then_some(cost * FOUND_COST * switches.found_cost)
    }

    fn is_told(&self, table: usize, column: usize) -> bool {
        self.has_index(table, column, false) || self.distinct(table, column).is_some()
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
                compared: None,
            };
            let own = self.tables.get(table)?;
            let by_elements = element_index::fewest(conditions, own, collection, &env, self.reading.view).ok();
            if let Some(entries) = by_elements.flatten() {
                return Some(entries.count as f64 / self.rows_each(table));
            }
            if let Some(found) = self.found_in_elements(table, conditions, &env) {
                return Some(found);
            }
            // What cannot be computed ends the statement when it runs.
            let found = find::filter(conditions, own, &env).ok()?;
            let by_index = self.reading.estimated(collection, &found.filter).ok()?;
            if let Some(entries) = by_index {
                return Some(entries as f64);
            }
            match self.reading.estimated_by_columns(collection, &found.filter).ok()? {
                None => self.found_in_sample(table, conditions, &found.filter),
                known => known,
            }
        };
        let found = find().map(|found| found * self.rows_each(table));
        self.found.borrow_mut().insert(at, found);
        found
    }

    fn distinct(&self, table: usize, column: usize) -> Option<f64> {
        if let Some(known) = self.distinct.borrow().get(&(table, column)) {
            return *known;
        }
        let column_of = self.tables.get(table).and_then(|table| table.columns.get(column));
        let is_indexed = self.has_index(table, column, false);
        let find = |own: &Column| {
            if let Some(path) = element_index::path(&self.tables[table], column) {
                let by_index = self.different_in_elements(table, &path);
                return by_index.or_else(|| Some(self.of_elements(table, &own.name)?.distinct.max(1.0)));
            }
            let collection = self.collection(table)?;
            // Of elements each document has several.
            if self.has_index(table, column, true) {
                return Some(collection.state.documents().max(1) as f64);
            }
            if let Some(known) = self.reading.different_by_columns(collection, &own.path) {
                return Some(known);
            }
            let by_index = match is_indexed {
                true => self.reading.different(collection, &own.path).ok()?,
                false => None,
            };
            by_index.or_else(|| self.sample(table)?.distinct(&own.path))
        };
        let found = column_of.and_then(find);
        self.distinct.borrow_mut().insert((table, column), found);
        found
    }

    fn excludes(&self, scan: &Scan<Expr>) -> bool {
        let leaf = self.tables.get(scan.table).filter(|table| table.leaf.is_some());
        let Some(table) = leaf.filter(|_| self.switches().pruning) else {
            return false;
        };
        let env = Env {
            op: self.reading.op,
            params: &[],
            outer: None,
            effects: None,
            compared: None,
        };
        partitions::is_always_excluded(table, &scan.conditions, &env)
    }

    fn computes(&self, table: usize) -> bool {
        let leaf = self.tables.get(table).and_then(|table| table.leaf.as_ref());
        let is_computed = |key: &Expr| !matches!(key.node(), Node::Column { .. });
        let mut keys = leaf
            .iter()
            .flat_map(|leaf| &leaf.levels)
            .flat_map(|level| &level.keys.exprs);
        if keys.any(is_computed) {
            return true;
        }
        let collection = self.collection(table);
        collection.is_some_and(|collection| {
            let mut all = collection.indexes.iter();
            all.any(|index| index.spec.kind() == expression::NAME)
        })
    }

    fn elements_of(&self, elements: usize, table: usize) -> Option<usize> {
        let (of_elements, whole) = (self.tables.get(elements)?, self.tables.get(table)?);
        let first = of_elements.elements?.first;
        match (&of_elements.kind, &whole.kind) {
            (Kind::Collection(a), Kind::Collection(b)) if a == b && whole.elements.is_none() => {
                (whole.columns.len() == first).then_some(first)
            }
            _ => None,
        }
    }

    fn is_never_null(&self, table: usize, column: usize) -> bool {
        let table = self.tables.get(table).filter(|table| table.declared);
        let column = table.and_then(|table| table.columns.get(column));
        column.is_some_and(|column| column.not_null || column.is_key)
    }

    fn gives_order(&self, scan: &Scan<Expr>) -> Given {
        match (self.tables.get(scan.table), self.collection(scan.table)) {
            (Some(table), Some(collection)) if !collection.is_view() && self.switches().indexscan => {
                ordered::given(scan, table, collection)
            }
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
    /// It calls routines that run statements.
    pub calls: bool,
    /// What it ends with, before it sees a row.
    pub broken: Option<Error>,
    answers: Answers,
    switches: Switches,
}

impl Planned {
    /// Refuses to tell what was read of tables whose policies count for the user: how many rows an index found beneath them.
    ///
    /// Errors: 42501.
    pub fn check_may_count(&self) -> Result<()> {
        match self.answers.have_policies() {
            true => fail(
                "42501",
                "permission denied for EXPLAIN ANALYZE of a table with row security",
            ),
            false => Ok(()),
        }
    }
}

/// Where a prepared query keeps its plan.
pub type PlanCell = Kept<Planned>;

impl Planned {
    /// Plans a query whose parameters have these types; says whether the plan may be kept.
    ///
    /// Errors: those of binding.
    fn make(reading: &Reading<'_, '_>, query: &Query, types: Vec<Type>) -> Result<(Self, bool)> {
        let asked = Asked::new(reading);
        let mut binder = Binder::new(&asked, types);
        let bound = finished(binder.query(query)?)?;
        let (mut tables, params) = (std::mem::take(&mut binder.tables), std::mem::take(&mut binder.params));
        let held = std::mem::take(&mut binder.held);
        let calls = binder.calls;
        let fields = fields(&bound);
        // Rows that are held are documents.
        let plan = match held.is_empty() {
            true => elements::rewrite(bound.plan, &mut tables),
            false => bound.plan,
        };
        let (answers, keeps) = asked.answers();
        let sizes = Sizes::new(&tables, reading);
        let plan = rewrite(plan, &sizes);
        let planned = Self {
            broken: broken(&plan),
            plan,
            tables,
            fields,
            params,
            held,
            calls,
            answers,
            switches: reading.session.switches,
        };
        Ok((planned, keeps))
    }
}

impl PlanCell {
    /// The plan of `query`, which is always the same one for a cell, as are `types`: the one that is kept if it still holds.
    ///
    /// Errors: those of binding.
    pub fn plan(&self, reading: &Reading<'_, '_>, query: &Query, types: &[Type]) -> Result<Arc<Planned>> {
        let switches = &reading.session.switches;
        if let Some(kept) = self.get()
            && kept.switches == *switches
            && !switches.plans_anew
            && kept.answers.hold(reading)?
        {
            return Ok(kept);
        }
        let (planned, keeps) = Planned::make(reading, query, types.to_vec())?;
        let planned = Arc::new(planned);
        self.set(keeps.then(|| planned.clone()));
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
