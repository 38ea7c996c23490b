//! Tables opened: what a scan wants as a find, and how rows come from it.

use super::columns::ByColumns;
use super::element_index;
use super::files::ByFile;
use super::find;
use super::lookup;
use super::ordered::Order;
use super::partitions;
use super::planned::Sizes;
use super::probe;
use super::reader::Documents;
use super::tables::{COSTED_MIN, FETCH_COST, Find, Reading};
use crate::catalog::{Kind, Table};
use crate::error::fail;
use crate::expr::Expr;
use crate::plan::estimate::{self, LOOKUP_COST, Statistics as _};
use crate::types::{Type, style, zone};
use nestor_database::read;
use nestor_exec::catalog::{id_collation, masked};
use nestor_exec::estimate::reads_at_most;
use nestor_exec::relation::{Abroad, Opened, Sources};
use nestor_exec::summary::{Totals, has_kind, totals};
use nestor_exec::{Batch, BoxOperator, Step, count_rows};
use nestor_model::statement::{ROW, Scope, work};
use nestor_model::vector::{Builder, Vector};
use nestor_model::{Document, Namespace, Result, Str, Value};
use nestor_planner::find::Wanted;
use nestor_planner::relation::explain::Access;
use nestor_planner::relation::{Env, Scalar, Scan, Tuple};
use nestor_planner::{NodeKind, PlanNode};
use nestor_storage::{Collection, Index};
use std::sync::Arc;

/// What it costs to read a document that an index found, in rows of columns.
const COLUMN_COST: f64 = 40.0;

/// With more columns than these no index is looked at for all of them.
const READ_MAX: usize = 8;

/// Documents that an index on fields of elements finds, and no other way is looked for.
const FOUND_FEW: u64 = 16;

/// The tables of a statement that runs.
pub struct Tables<'s, 'r> {
    /// What is read.
    pub reading: &'s Reading<'s, 'r>,
    /// The tables that scans name by number.
    pub tables: &'s [Arc<Table>],
}

impl Tables<'_, '_> {
    /// How the find layer reads what a scan wants; `None` of tables that are no collections.
    ///
    /// Errors: those of opening the scan.
    pub fn access(&self, scan: &Scan<Expr>, env: &Env<'_>) -> Result<Option<Access>> {
        if let Some(table) = self.tables.get(scan.table)
            && self.passes_over(scan, table, env)?
        {
            return Ok(Some(Access {
                path: "none, its bound excludes the rows".to_owned(),
                in_order: false,
                index_only: false,
            }));
        }
        match self.opened(scan, 0, env)? {
            Opened::Rows { .. } => Ok(None),
            Opened::Columns(source) => Ok(Some(source.access())),
            Opened::Documents { mut root, in_order, .. } => Ok(Some(Access {
                path: self.path(&mut root)?,
                in_order,
                index_only: has_kind(&*root, NodeKind::Covered)
                    || has_kind(&*root, NodeKind::IdLookup) && self.is_of_ids(scan),
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

    fn look_up(
        &self,
        scan: &Scan<Expr>,
        columns: &[usize],
        keys: &[Arc<Vector>],
        _: &Batch<'_>,
    ) -> Result<Option<Opened>> {
        let Some(table) = self.tables.get(scan.table) else {
            return Ok(None);
        };
        let Kind::Collection(ns) = &table.kind else {
            return Ok(None);
        };
        let Some(collection) = self.reading.view.catalog().get(ns) else {
            return Ok(None);
        };
        if !scan.settles || self.reading.is_piped(ns)? {
            return Ok(None);
        }
        let root = match lookup::look_up(scan, (table, collection), columns, keys, self.reading.view)? {
            None => return Ok(None),
            Some(lookup::Found::Rows(rows, path)) => {
                self.reading.statement.observe_totals(Totals {
                    keys_examined: rows.len() as u64,
                    ..Totals::default()
                });
                return Ok(Some(Opened::Rows {
                    rows: rows.into_iter(),
                    exact: false,
                    access: Some(Access {
                        path,
                        in_order: false,
                        index_only: true,
                    }),
                }));
            }
            Some(lookup::Found::Documents(root)) => root,
        };
        self.reading.statement.note_plan(&*root);
        Ok(Some(documents(scan, table, root, (false, false))))
    }

    fn among(&self, scan: &Scan<Expr>, column: usize, numbers: &[i64], batch: &Batch<'_>) -> Result<Option<Opened>> {
        let Some(table) = self.tables.get(scan.table) else {
            return Ok(None);
        };
        let is_number =
            matches!(table.columns.get(column), Some(own) if matches!(own.ty, Type::Int2 | Type::Int4 | Type::Int8));
        let sizes = Sizes::new(self.tables, self.reading);
        let (Some(each), true) = (sizes.found_cost(scan.table, column), is_number) else {
            return Ok(None);
        };
        let keys = numbers.len() as f64;
        let found = keys * sizes.rows(scan.table) / sizes.distinct(scan.table, column).unwrap_or(1.0);
        let all = estimate::reads(
            scan,
            sizes.found(scan.table, &scan.conditions).unwrap_or(f64::MAX),
            &sizes,
        );
        if keys * LOOKUP_COST + found * each >= all {
            return Ok(None);
        }
        let mut values = Builder::default();
        numbers.iter().for_each(|number| values.push(Value::Int64(*number)));
        self.look_up(scan, &[column], &[Arc::new(values.finish())], batch)
    }

    fn abroad(&self) -> Abroad {
        let (zone, style) = (zone::current(), style::current());
        Arc::new(move |run| {
            let _zone = zone.enter();
            let _style = style.enter();
            run();
        })
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
        table.check_populated()?;
        match &table.kind {
            Kind::Rows(rows) => Ok(Opened::Rows {
                rows: wanted(scan, rows.iter().chain(table.fixed), env)?.into_iter(),
                exact: true,
                access: None,
            }),
            Kind::Files(source) => Ok(Opened::Columns(Box::new(ByFile::new(scan, table, source, env)?))),
            Kind::Query(_) => fail("XX000", "a view was read as a table"),
            Kind::Collection(_) if self.passes_over(scan, table, env)? => Ok(Opened::Rows {
                rows: Vec::new().into_iter(),
                exact: true,
                access: None,
            }),
            Kind::Collection(ns) | Kind::View(ns) => {
                if self.columns_are("on") && scan.order.is_empty() {
                    if let Some(columns) = self.columns(scan, (table, ns), env)? {
                        return Ok(Opened::Columns(Box::new(columns)));
                    }
                }
                if let Some(root) = self.looked_up(scan, table, env)? {
                    return Ok(documents(scan, table, root, (scan.conditions.len() == 1, false)));
                }
                if let Some((root, exact)) = self.probed(scan, table, env)? {
                    return Ok(documents(scan, table, root, (exact, false)));
                }
                if let Some(root) = self.read_in_order(scan, table, env)? {
                    return Ok(documents(scan, table, root, (true, true)));
                }
                let find::Found { filter, exact } = find::filter(&scan.conditions, table, env)?;
                if let Some(root) = self.jumping(scan, table, &filter)? {
                    return Ok(documents(scan, table, root, (exact, false)));
                }
                let order = self.order(scan, table, part, &filter)?;
                let (filter, sort, parts) = match &order {
                    Some(order) => (order.filter(part, filter), Some(order.sort()), order.parts()),
                    None => (filter, None, 1),
                };
                let switches = &self.reading.session.switches;
                let reads = self.fields_read(scan, table);
                let collection = self.reading.view.catalog().get(ns);
                let (costed, per_found) = match collection {
                    Some(_) if sort.is_none() && filter.is_empty() => (None, 0.0),
                    Some(collection) if sort.is_none() && !self.reading.is_piped(ns)? => {
                        let costed = self.reading.costed(collection, &filter, reads.clone())?;
                        let per_found = costed.as_ref().map_or(f64::INFINITY, |costed| costed.per_found);
                        (costed, per_found)
                    }
                    _ => (None, f64::INFINITY),
                };
                // Tables are read as a whole where no index serves, or that is not avoided.
                let may_read_all = switches.seqscan || per_found == 0.0;
                if per_found < COLUMN_COST * switches.found_cost
                    && may_read_all
                    && let Some(columns) = self.columns(scan, (table, ns), env)?
                {
                    return Ok(Opened::Columns(Box::new(columns)));
                }
                let is_dear = per_found < FETCH_COST * switches.found_cost && may_read_all;
                let natural = is_dear && !filter.is_empty() || !switches.indexscan;
                // Of declared columns the conditions are looked at here, where documents become rows.
                let whole = natural && !filter.is_empty() && table.declared && scan.settles;
                let (filter, exact) = match whole {
                    true => (Document::new(), false),
                    false => (filter, exact),
                };
                let found = match (costed.filter(|_| !natural), collection) {
                    (Some(costed), Some(collection)) => costed.open(collection)?,
                    _ => None,
                };
                let mut root = match found {
                    Some(root) => root,
                    None => {
                        let find = Find {
                            sort,
                            reads,
                            natural,
                            ..Find::all(&filter)
                        };
                        self.reading.find(ns, find)?
                    }
                };
                let has_ids = |collection: &Arc<Collection>| !collection.is_clustered() && !collection.ns.is_oplog();
                if order.is_none() && collection.is_some_and(has_ids) {
                    root.in_any_order();
                }
                Ok(Opened::Documents {
                    root,
                    reader: Box::new(Documents::new(table, &scan.needed)),
                    exact,
                    in_order: order.is_some(),
                    more: part + 1 < parts,
                    whole: whole || table.elements.is_some(),
                })
            }
        }
    }

    /// Whether a scan is one of a partition that has none of the rows which are wanted.
    fn passes_over(&self, scan: &Scan<Expr>, table: &Table, env: &Env<'_>) -> Result<bool> {
        let prunes = table.leaf.is_some() && self.reading.session.switches.pruning;
        Ok(prunes && partitions::is_excluded(table, &scan.conditions, env)?)
    }

    /// The fields that a scan looks at, where entries of an index may be read in place of documents.
    fn fields_read(&self, scan: &Scan<Expr>, table: &Table) -> Option<Arc<[Str]>> {
        match self.reading.session.switches.indexonlyscan {
            true => fields_read(scan, table),
            false => None,
        }
    }

    /// Whether the session's setting for columns is this.
    fn columns_are(&self, setting: &str) -> bool {
        self.reading.columns_are(setting)
    }

    /// What reads a scan by columns, where there are any.
    fn columns(
        &self,
        scan: &Scan<Expr>,
        (table, ns): (&Arc<Table>, &Namespace),
        env: &Env<'_>,
    ) -> Result<Option<ByColumns>> {
        let reading = self.reading;
        let Some(collection) = reading
            .view
            .catalog()
            .get(ns)
            .filter(|_| ByColumns::serves(scan, table))
        else {
            return Ok(None);
        };
        if reading.is_piped(ns)? || masked(collection, reading.op.caller.as_deref())?.is_some() {
            return Ok(None);
        }
        if self.columns_are("off") || collection.is_clustered() {
            return Ok(None);
        }
        let records = collection.records;
        let Some(found) = reading.statement.database.columns.read(reading.view, records)? else {
            return Ok(None);
        };
        ByColumns::new(scan, table, found.pieces, (reading.view, records), env).map(Some)
    }

    /// Whether the index of `_id` has all that a scan looks at: no column but that, of a type of which equal values are the same. Clustered
    /// collections have their documents by it.
    fn is_of_ids(&self, scan: &Scan<Expr>) -> bool {
        let Some(table) = self.tables.get(scan.table).filter(|table| table.elements.is_none()) else {
            return false;
        };
        let Kind::Collection(ns) = &table.kind else {
            return false;
        };
        let collection = self.reading.view.catalog().get(ns);
        let has_index =
            collection.is_some_and(|collection| collection.id_index().is_some() && !collection.is_clustered());
        let needed = || (0..scan.needed.len()).filter(|at| scan.needed[*at]);
        let is_id = |at: usize| {
            let column = table.columns.get(at);
            column.is_some_and(|column| column.path == "_id" && find::is_one_form(&column.ty))
        };
        has_index && needed().count() == 1 && needed().all(is_id)
    }

    /// What looks up the `_id`s that one of the conditions names, without asking the planner.
    fn looked_up(&self, scan: &Scan<Expr>, table: &Table, env: &Env<'_>) -> Result<Option<BoxOperator>> {
        let Kind::Collection(ns) = &table.kind else {
            return Ok(None);
        };
        let settles = scan.settles || scan.conditions.len() == 1;
        let Some(collection) = self.reading.view.catalog().get(ns).filter(|_| settles) else {
            return Ok(None);
        };
        let finds = collection.is_clustered() || collection.id_index().is_some();
        let finds = finds && self.reading.session.switches.indexscan;
        if !scan.order.is_empty() || !finds || id_collation(collection)?.is_some() || self.reading.is_piped(ns)? {
            return Ok(None);
        }
        for condition in &scan.conditions {
            if let Some(ids) = find::ids(condition, table, env)? {
                return Ok(Some(nestor_exec::look_up(collection, ids, self.is_of_ids(scan))));
            }
        }
        Ok(None)
    }

    /// What finds the documents by values of an index, without asking the planner; whether the conditions hold of all of them.
    fn probed(&self, scan: &Scan<Expr>, table: &Arc<Table>, env: &Env<'_>) -> Result<Option<(BoxOperator, bool)>> {
        let (Kind::Collection(ns), reading) = (&table.kind, self.reading) else {
            return Ok(None);
        };
        let Some(collection) = reading.view.catalog().get(ns).filter(|_| scan.settles) else {
            return Ok(None);
        };
        let is_plain = scan.order.is_empty() && !scan.distinct && !scan.conditions.is_empty();
        if !is_plain || !reading.session.switches.indexscan || reading.is_piped(ns)? {
            return Ok(None);
        }
        if let Some(root) = self.by_elements(scan, table, collection, env)? {
            return Ok(Some((root, false)));
        }
        let fields = self.fields_read(scan, table);
        // What else indexes have: expressions, and elements of arrays.
        let may_spare = fields.as_ref().is_some_and(|fields| covers(collection, fields));
        if !may_spare && table.elements.is_none() {
            if let Some(root) = probe::computed(&scan.conditions, table, collection, (env, reading.view))? {
                return Ok(Some((root, false)));
            }
            if let Some(root) = probe::within(&scan.conditions, table, collection, env)? {
                return Ok(Some((root, false)));
            }
        }
        let Some(probe) = probe::probe(&scan.conditions, table, collection, env, fields.as_deref())? else {
            return Ok(None);
        };
        let is_covered = matches!(probe.plan, PlanNode::Covered { .. } | PlanNode::Eof);
        // Another index that has all that is looked at spares the documents.
        if !is_covered && may_spare {
            return Ok(None);
        }
        let documents = collection.state.documents();
        if probe.is_range && !is_covered && documents >= COSTED_MIN {
            // What else there is to be thought of is thought of by whoever plans for longer.
            let most = documents as f64 / (COLUMN_COST * reading.session.switches.found_cost);
            if reads_at_most(&probe.plan, collection, reading.view, most as u64)? != Some(true) {
                return Ok(None);
            }
        }
        let mut root = nestor_exec::build(&probe.plan, collection)?;
        if !collection.is_clustered() {
            root.in_any_order();
        }
        Ok(Some((root, probe.exact)))
    }

    /// What reads an index in the order that a scan is asked for, where it is plain that this one serves best, without asking the planner.
    fn read_in_order(&self, scan: &Scan<Expr>, table: &Table, env: &Env<'_>) -> Result<Option<BoxOperator>> {
        let (Kind::Collection(ns), reading) = (&table.kind, self.reading) else {
            return Ok(None);
        };
        let is_plain = !scan.order.is_empty() && !scan.distinct && table.elements.is_none();
        let settles = scan.settles || scan.conditions.is_empty();
        if !is_plain || !settles || !reading.session.switches.indexscan || reading.is_piped(ns)? {
            return Ok(None);
        }
        let collection = reading.view.catalog().get(ns).filter(|own| !own.is_clustered());
        let order = Order::of(scan, table);
        let (Some(collection), Some(by)) = (collection, order.as_ref().and_then(Order::plain)) else {
            return Ok(None);
        };
        let fields = self.fields_read(scan, table);
        let plan = probe::in_order(by, &scan.conditions, (table, collection), env, fields.as_deref())?;
        plan.map(|plan| nestor_exec::build(&plan, collection)).transpose()
    }

    /// What finds the documents by an index on fields of the elements that are the rows, where that reads less than other ways.
    fn by_elements(
        &self,
        scan: &Scan<Expr>,
        table: &Arc<Table>,
        collection: &Arc<Collection>,
        env: &Env<'_>,
    ) -> Result<Option<BoxOperator>> {
        let reading = self.reading;
        if collection.is_clustered() {
            return Ok(None);
        }
        let Some(found) = element_index::fewest(&scan.conditions, table, collection, env, reading.view)? else {
            return Ok(None);
        };
        // Documents that do not count are not read further, whatever their elements hold.
        let find::Found { filter, .. } = find::filter(&scan.conditions, table, env)?;
        let documents = collection.state.documents();
        // So few are read before it is known whether there are fewer.
        if documents >= COSTED_MIN && found.count > FOUND_FEW {
            let costed = reading.costed(collection, &filter, None)?;
            let per_found = costed.map_or(0.0, |costed| costed.per_found).max(FETCH_COST);
            if found.count as f64 * per_found > documents as f64 {
                return Ok(None);
            }
            let least = COLUMN_COST * reading.session.switches.found_cost;
            let is_dear = documents as f64 / found.count.max(1) as f64 <= least && reading.session.switches.seqscan;
            if is_dear && self.columns(scan, (table, &collection.ns), env)?.is_some() {
                return Ok(None);
            }
        }
        let mut root = nestor_exec::build(&found.plan(&filter)?, collection)?;
        root.in_any_order();
        Ok(Some(root))
    }

    /// What reads one index entry for each value of the only column that a scan looks at, if one of each is enough.
    fn jumping(&self, scan: &Scan<Expr>, table: &Table, filter: &Document) -> Result<Option<BoxOperator>> {
        let Kind::Collection(ns) = &table.kind else {
            return Ok(None);
        };
        let may = scan.distinct && self.reading.session.switches.indexscan;
        let fields = if may { self.fields_read(scan, table) } else { None };
        match fields.as_deref() {
            Some([path]) if !self.reading.is_piped(ns)? => self.reading.find_distinct(ns, filter, path),
            _ => Ok(None),
        }
    }

    /// How to count what a scan wants. Conditions are left to the find layer only where columns were declared: in other tables a value that
    /// is none of its column's type is told of.
    fn counting(&self, scan: &Scan<Expr>, env: &Env<'_>) -> Result<Counting> {
        let table = self.tables.get(scan.table);
        let Some((table, Kind::Collection(ns))) = table.map(|table| (table, &table.kind)) else {
            return Ok(Counting::Rows);
        };
        table.check_populated()?;
        let is_all = scan.conditions.is_empty();
        let reading = self.reading;
        if !is_all && !table.declared || table.elements.is_some() || reading.is_piped(ns)? {
            return Ok(Counting::Rows);
        }
        let known = || {
            let collection = reading.view.catalog().get(ns).filter(|own| !own.ns.is_oplog())?;
            let (documents, _) = reading.statement.database.engine.counts_at(reading.view, collection)?;
            u64::try_from(documents).ok()
        };
        // What a transaction has read is noted record by record.
        if let Some(rows) = (is_all && reading.view.is_fixed()).then(known).flatten() {
            return Ok(Counting::Known(rows));
        }
        let find::Found { filter, exact } = find::filter(&scan.conditions, table, env)?;
        if !exact {
            return Ok(Counting::Rows);
        }
        // Conditions that no index serves are looked at column by column where there are columns.
        if let Some(collection) = reading.view.catalog().get(ns).filter(|_| !is_all)
            && let Some(costed) = reading.costed(collection, &filter, None)?
            && costed.per_found < COLUMN_COST * reading.session.switches.found_cost
            && (reading.session.switches.seqscan || costed.per_found == 0.0)
            && self.columns(scan, (table, ns), env)?.is_some()
        {
            return Ok(Counting::Rows);
        }
        let find = Find {
            wanted: Wanted::Count,
            natural: !reading.session.switches.indexscan,
            ..Find::all(&filter)
        };
        let found = reading.find(ns, find)?;
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
        Ok(Some(Access {
            path,
            in_order: false,
            index_only: false,
        }))
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

/// What `root` finds of a table for a scan: whether the conditions hold of all of it, and whether it comes in the order that is asked for.
fn documents(scan: &Scan<Expr>, table: &Arc<Table>, root: BoxOperator, (exact, in_order): (bool, bool)) -> Opened {
    Opened::Documents {
        root,
        reader: Box::new(Documents::new(table, &scan.needed)),
        exact,
        in_order,
        more: false,
        whole: table.elements.is_some(),
    }
}

/// Of rows in memory those that a scan wants, with the columns that it looks at.
fn wanted<'r>(scan: &Scan<Expr>, rows: impl Iterator<Item = &'r Tuple>, env: &Env<'_>) -> Result<Vec<Tuple>> {
    let width = scan.needed.len();
    let (mut out, mut whole) = (Vec::new(), Vec::new());
    for row in rows {
        let row: &[Value] = match row.len() >= width {
            true => row,
            false => {
                whole.clone_from(row);
                whole.resize(width, Value::Null);
                &whole
            }
        };
        work(ROW / 2)?;
        if scan.settles && !hold(&scan.conditions, row, env)? {
            continue;
        }
        let each = row.iter().zip(&scan.needed);
        out.push(
            each.map(|(value, is_needed)| if *is_needed { value.clone() } else { Value::Null })
                .collect(),
        );
    }
    Ok(out)
}

fn hold(conditions: &[Expr], row: &[Value], env: &Env<'_>) -> Result<bool> {
    let _values = Scope::begin();
    for condition in conditions {
        if !condition.holds(row, env)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether an index has all of some fields.
fn covers(collection: &Collection, fields: &[Str]) -> bool {
    let has = |index: &Arc<Index>, field: &Str| index.key_pattern.iter().any(|(path, _)| path == field.as_str());
    let mut indexes = collection.indexes.iter();
    indexes.any(|index| fields.iter().all(|field| has(index, field)))
}

/// The fields that a scan looks at, where so few are that an index may have them all.
fn fields_read(scan: &Scan<Expr>, table: &Table) -> Option<Arc<[Str]>> {
    if table.elements.is_some() {
        return None;
    }
    let columns = scan
        .needed
        .iter()
        .zip(&table.columns)
        .filter(|(is_needed, _)| **is_needed);
    // Entries of indexes do not tell a null from the absence of the field.
    let plain = columns
        .clone()
        .all(|(_, column)| !column.has_json_nulls() && find::usable(&column.path));
    let whole = scan.needed.iter().skip(table.columns.len()).any(|is_needed| *is_needed);
    let paths: Vec<Str> = columns
        .map(|(_, column)| column.path.as_str().into())
        .take(READ_MAX + 1)
        .collect();
    (!whole && plain && paths.len() <= READ_MAX).then(|| paths.into())
}
