//! Views that one writes through: of the rows of one table, one by one.
//!
//! Such a view is a SELECT over one table, or over another such view, without what makes one row of several. What is read of it is
//! planned like any query, with the record that each row is of behind its columns; what is written goes to the columns of the table that
//! its columns are. Each column is known as an expression of the table's as well ([`Through::values`]), for RETURNING and conditions,
//! which see the documents that were written.

use super::policies::Finds;
use super::write::{Element, Target};
use super::{Binder, Bound, Level, PENDING, Scope, ScopeColumn, ident, instead, object_name};
use crate::catalog::{Column, Kind, Table, schemas};
use crate::error::{Field, about, error, fail, unsupported, with};
use crate::expr::{Expr, Node};
use crate::functions::element;
use crate::parse::own::CheckOption;
use crate::plan::Plan;
use crate::types::Type;
use nestor_model::{Error, Result};
use nestor_planner::relation::{ApplyKind, Relation};
use sqlparser::ast::{
    Distinct, Expr as Ast, FunctionArg, FunctionArgExpr, GroupByExpr, Ident, Join, JoinConstraint, JoinOperator,
    ObjectName, ObjectNamePart, Query, Select, SelectItem, SetExpr, TableFactor, TableWithJoins, Value as Literal,
};
use std::sync::Arc;

/// What a statement writes to.
pub(super) struct Written {
    /// The table.
    pub(super) table: Arc<Table>,
    /// The view that it is written through, if there is one.
    pub(super) view: Option<Through>,
    /// The rows of the view that `table` is, if triggers do what is wanted.
    instead: Option<Bound>,
    /// What becomes of the rows of the table.
    finds: Finds,
}

/// A condition of a view.
#[derive(Clone)]
struct Condition {
    /// The view, and the collection that it is.
    view: String,
    collection: String,
    /// Over the table; `None` where it asks for more than the row.
    holds: Option<Expr>,
    /// What is written has to fulfil it.
    checked: bool,
}

/// A view over one table. Vectors have an item for each of its columns, and two more for the document and its record.
pub(super) struct Through {
    name: String,
    /// Its columns, as a query sees them.
    columns: Vec<ScopeColumn>,
    /// Its rows.
    plan: Plan,
    /// What each column is over the table; `None` where that needs more than the row.
    values: Vec<Option<Expr>>,
    /// Which column of the table each is.
    targets: Vec<Option<usize>>,
    conditions: Vec<Condition>,
    /// The array whose elements are its rows, if these are not the documents.
    element: Option<Element>,
    /// The collections that this view and those below it are.
    views: Vec<String>,
}

/// Why nobody writes through a view: its name, and what PostgreSQL says of it.
pub(super) type Reason = (String, &'static str);

const NO_TABLE: &str = "Views that do not select from a single table or view";
const SETS: &str = "Views containing UNION, INTERSECT, or EXCEPT";

/// What somebody wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Insert,
    Update,
    Delete,
    Merge,
}

impl Verb {
    fn shown(self) -> &'static str {
        match self {
            Self::Insert => "insert into",
            Self::Update => "update",
            Self::Delete => "delete from",
            Self::Merge => "merge into",
        }
    }
}

/// 55000.
fn refused(verb: Verb, (name, reason): Reason) -> Error {
    let told = error("55000", format!("cannot {} view \"{name}\"", verb.shown()));
    with(
        told,
        &[(Field::Detail, &format!("{reason} are not automatically updatable."))],
    )
}

impl Written {
    /// What one calls it.
    pub(super) fn name(&self) -> &str {
        self.view.as_ref().map_or(&self.table.name, |view| &view.name)
    }

    /// Whether the statement reads the rows that it changes.
    pub(super) fn reads(&self) -> bool {
        !matches!(self.finds, Finds::Update(false) | Finds::Delete(false))
    }

    /// How many columns a row of it has in plans: its own, the document and the record.
    pub(super) fn width(&self) -> usize {
        let own = |view: &Through| view.columns.len();
        match &self.instead {
            Some(bound) => bound.columns.len(),
            None => self.view.as_ref().map_or(self.table.columns.len() + 2, own),
        }
    }

    /// How many columns rows have that were written: those of the table, the document and the record, and those of an element and its place.
    pub(super) fn table_width(&self) -> usize {
        if let Some(bound) = &self.instead {
            return bound.columns.len();
        }
        let of_element = self.view.as_ref().and_then(|view| view.element.as_ref());
        self.table.columns.len() + 2 + of_element.map_or(0, |element| element.fields.len() + 1)
    }

    /// The array whose elements are written.
    pub(super) fn element(&self) -> Option<Element> {
        self.view.as_ref()?.element.clone()
    }

    /// The names of its columns.
    pub(super) fn names(&self) -> Vec<String> {
        match &self.view {
            None => self.table.columns.iter().map(|column| column.name.clone()).collect(),
            Some(view) => {
                let shown = view.columns.iter().filter(|column| !column.hidden);
                shown.map(|column| column.name.clone()).collect()
            }
        }
    }

    /// An expression over its columns, `copies` of them beside each other, as one over those of the table.
    ///
    /// Errors: 0A000 for a column of a view that is a subquery.
    pub(super) fn over_table(&self, expr: &Expr, copies: usize) -> Result<Expr> {
        let Some(view) = &self.view else {
            return Ok(expr.clone());
        };
        let (own, base) = (view.columns.len(), self.table_width());
        view.check_known(&[expr], copies)?;
        Ok(expr.with_columns(&|index| {
            let copy = index / own;
            let value = view.values.get(index % own).cloned().flatten();
            match copy < copies {
                true => value.map(|value| value.shifted((copy * base).cast_signed())),
                false => Some(Expr::column(
                    index - own * copies + base * copies,
                    "column",
                    Type::Unknown,
                )),
            }
        }))
    }

    /// The rows of the table as its own, with those of other tables behind them.
    ///
    /// Errors: those of [`Written::over_table`], if `exprs`, which are computed of them, need such a column.
    pub(super) fn shown(&self, plan: Plan, exprs: &[Expr], width: usize) -> Result<Plan> {
        let Some(view) = &self.view else { return Ok(plan) };
        view.check_known(&exprs.iter().collect::<Vec<_>>(), 1)?;
        let base = self.table_width();
        let null = Expr::constant(nestor_model::Value::Null, Type::Unknown);
        let mut columns: Vec<Expr> = view
            .values
            .iter()
            .map(|value| value.clone().unwrap_or_else(|| null.clone()))
            .collect();
        columns.extend(
            (view.columns.len()..width).map(|at| Expr::column(at - view.columns.len() + base, "column", Type::Unknown)),
        );
        Ok(Relation::Project {
            input: Box::new(plan),
            columns,
        })
    }

    /// What rows have to fulfil that are written through views, in their order, with the names of the views.
    ///
    /// Errors: 0A000 for conditions with subqueries.
    pub(super) fn options(&self) -> Result<Vec<(String, Expr)>> {
        let all = self.view.iter().flat_map(|view| &view.conditions);
        let checked = all
            .filter(|condition| condition.checked)
            .map(|condition| match &condition.holds {
                Some(holds) => Ok((condition.view.clone(), holds.clone())),
                None => unsupported(format!("a subquery in view \"{}\" WITH CHECK OPTION", condition.view)),
            });
        checked.collect()
    }

    /// The collections that the views are through which is written.
    pub(super) fn views(&self) -> Vec<String> {
        self.view.iter().flat_map(|view| view.views.iter().cloned()).collect()
    }
}

/// Where the elements of a view's array are.
struct Address {
    /// The place of the document among the columns; its record is behind it.
    document: usize,
    /// The record and the place in the array.
    address: Expr,
}

impl Through {
    /// The rows of a table.
    fn of_table(table: &Table, bound: Bound) -> Self {
        let columns = bound.columns.iter().enumerate();
        let own = columns.map(|(at, column)| Some(Expr::column(at, column.name.clone(), column.ty.clone())));
        let width = bound.columns.len();
        Self {
            name: table.name.clone(),
            values: own.collect(),
            targets: (0..width).map(|at| (at < table.columns.len()).then_some(at)).collect(),
            columns: bound.columns,
            plan: bound.plan,
            conditions: Vec::new(),
            element: None,
            views: Vec::new(),
        }
    }

    fn check_known(&self, exprs: &[&Expr], copies: usize) -> Result<()> {
        let own = self.columns.len();
        let mut unknown = None;
        for expr in exprs {
            expr.for_each_column(&mut |index| {
                if index < own * copies && self.values.get(index % own).is_some_and(Option::is_none) {
                    unknown = Some(index % own);
                }
            });
        }
        match unknown.and_then(|at| self.columns.get(at)) {
            Some(column) => unsupported(format!(
                "column \"{}\", which is a subquery, of rows that are written",
                column.name
            )),
            None => Ok(()),
        }
    }

    /// Its columns are called otherwise.
    fn rename(&mut self, names: &[Ident]) {
        let shown = self.columns.iter_mut().filter(|column| !column.hidden);
        for (column, name) in shown.zip(names) {
            column.name = ident(name);
        }
    }
}

/// The SELECT that a query is, if that is all that it is.
fn plain(query: &Query) -> std::result::Result<&Select, &'static str> {
    if query.with.is_some() {
        return Err("Views containing WITH");
    }
    if query.limit_clause.is_some() || query.fetch.is_some() {
        return Err("Views containing LIMIT or OFFSET");
    }
    let select = match &*query.body {
        SetExpr::Select(select) => select,
        SetExpr::Query(inner) => return plain(inner),
        SetExpr::SetOperation { .. } => return Err(SETS),
        _ => return Err(NO_TABLE),
    };
    let groups = match &select.group_by {
        GroupByExpr::Expressions(exprs, modifiers) => !exprs.is_empty() || !modifiers.is_empty(),
        GroupByExpr::All(_) => true,
    };
    match &select.distinct {
        None | Some(Distinct::All) => {}
        Some(_) => return Err("Views containing DISTINCT"),
    }
    match (groups, select.having.is_some(), select.from.as_slice()) {
        (true, ..) => Err("Views containing GROUP BY"),
        (_, true, _) => Err("Views containing HAVING"),
        _ if parts(&select.from).is_some() => Ok(select),
        _ => Err(NO_TABLE),
    }
}

/// The table of a FROM clause, and the function of its rows that may stand behind it.
fn parts(from: &[TableWithJoins]) -> Option<(&TableFactor, Option<&TableFactor>)> {
    let is_open = |join: &Join| match &join.join_operator {
        JoinOperator::CrossJoin(_) => true,
        JoinOperator::Join(on) | JoinOperator::Inner(on) => {
            matches!(on, JoinConstraint::On(Ast::Value(value)) if value.value == Literal::Boolean(true))
        }
        _ => false,
    };
    match from {
        [only] => match only.joins.as_slice() {
            [] => Some((&only.relation, None)),
            [join] if is_open(join) => Some((&only.relation, Some(&join.relation))),
            _ => None,
        },
        [first, second] if first.joins.is_empty() && second.joins.is_empty() => {
            Some((&first.relation, Some(&second.relation)))
        }
        _ => None,
    }
}

/// The array that a function in FROM has the elements of, and whether their fields are its columns.
fn unnested(factor: &TableFactor) -> Option<(&Ast, bool)> {
    let (name, args) = match factor {
        TableFactor::UNNEST { array_exprs, .. } => return array_exprs.first().map(|array| (array, false)),
        TableFactor::Table {
            name, args: Some(args), ..
        } => (name, &args.args),
        TableFactor::Function { name, args, .. } => (name, args),
        _ => return None,
    };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(array))] = args.as_slice() else {
        return None;
    };
    match object_name(name).ok()?.1.as_str() {
        "unnest" | "jsonb_array_elements" => Some((array, false)),
        "jsonb_to_recordset" => Some((array, true)),
        _ => None,
    }
}

const NO_ARRAY: &str = "Views that read something else beside a table than the elements of a column of it";
const NO_KEY: &str = "Views of the elements of an array that do not have the key of the table";

impl Binder<'_> {
    /// What a statement writes to.
    ///
    /// Errors: 42P01; 55000 for views that one cannot write through, 42809 for materialized ones, 42501 for catalogs.
    pub(super) fn written(&mut self, name: &ObjectName, (verb, reads): (Verb, bool)) -> Result<Written> {
        let finds = Finds::of(verb, reads);
        let before = std::mem::replace(&mut self.writes, finds);
        let written = self.what_is_written(name, verb);
        self.writes = before;
        written
    }

    fn what_is_written(&mut self, name: &ObjectName, verb: Verb) -> Result<Written> {
        let finds = self.writes;
        let table = self.existing(name)?;
        let name = &table.name;
        match table.kind {
            Kind::Collection(_) if table.materialized.is_some() => {
                fail("42809", format!("cannot change materialized view \"{name}\""))
            }
            Kind::Collection(_) => Ok(Written {
                table,
                view: None,
                instead: None,
                finds,
            }),
            Kind::Query(_) if instead::is_meant(&table, verb) => Ok(Written {
                instead: Some(self.rows_with_themselves(&table)?),
                table,
                view: None,
                finds,
            }),
            Kind::Query(_) if table.duality.is_some() => {
                self.duality = Some(table.clone());
                unsupported("a statement of this form on a duality view")
            }
            Kind::Query(_) if table.is_barrier() => unsupported("to write through a view with security_barrier"),
            Kind::View(_) => Err(refused(verb, (name.clone(), NO_TABLE))),
            Kind::Query(_) => match self.through(&table)? {
                Ok((table, view)) => {
                    if view.targets.iter().all(Option::is_none) && verb != Verb::Delete {
                        return Err(refused(verb, (name.clone(), "Views that have no updatable columns")));
                    }
                    Ok(Written {
                        table,
                        view: Some(view),
                        instead: None,
                        finds,
                    })
                }
                Err(reason) => Err(refused(verb, reason)),
            },
            Kind::Rows(_) | Kind::Files(_) => fail("42501", format!("permission denied for table {name}")),
        }
    }

    /// Which columns of a view can be written to; `None` where nobody writes through it.
    ///
    /// Errors: those of binding its query.
    pub fn updatable(&mut self, table: &Arc<Table>) -> Result<Option<Vec<bool>>> {
        let Ok((base, view)) = self.through(table)? else {
            return Ok(None);
        };
        let mut own = view.targets;
        if view.element.is_some() {
            let columns = base.columns.len();
            own.iter_mut()
                .for_each(|target| *target = target.filter(|at| *at >= columns));
        }
        own.truncate(table.columns.len());
        let can = own.iter().any(Option::is_some);
        Ok(can.then(|| own.iter().map(Option::is_some).collect()))
    }

    /// Why nobody writes through a view.
    ///
    /// Errors: those of binding its query.
    pub fn why_not_updatable(&mut self, table: &Arc<Table>) -> Result<Option<String>> {
        let reason = match self.through(table)? {
            Ok((table, view)) => {
                let written = Written {
                    table,
                    view: Some(view),
                    instead: None,
                    finds: Finds::Read,
                };
                written.options()?;
                None
            }
            Err(reason) => Some(reason),
        };
        Ok(reason.map(|(_, reason)| format!("{reason} are not automatically updatable.")))
    }

    /// The table and the way to it through the view that `table` is.
    fn through(&mut self, table: &Arc<Table>) -> Result<std::result::Result<(Arc<Table>, Through), Reason>> {
        let Kind::Query(query) = &table.kind else {
            return Ok(Err((table.name.clone(), NO_TABLE)));
        };
        if table.is_barrier() {
            return Ok(Err((table.name.clone(), "Views with security_barrier")));
        }
        let found = self.in_view(table, |binder| {
            binder.deeper(|binder| binder.through_query(query, table))
        })?;
        let (base, mut view) = match found {
            Ok(found) => found,
            Err(reason) => return Ok(Err(reason)),
        };
        view.name.clone_from(&table.name);
        for column in &mut view.columns {
            column.table = Some(table.name.clone());
        }
        let collection = schemas::collection(&table.schema, &table.name);
        for condition in &mut view.conditions {
            condition.checked |= match table.check_option {
                None => false,
                Some(CheckOption::Local) => condition.collection == collection,
                Some(CheckOption::Cascaded) => true,
            };
        }
        view.views.push(collection);
        Ok(Ok((base, view)))
    }

    fn through_query(
        &mut self,
        query: &Query,
        view: &Table,
    ) -> Result<std::result::Result<(Arc<Table>, Through), Reason>> {
        let not = |reason| Ok(Err((view.name.clone(), reason)));
        let select = match plain(query) {
            Ok(select) => select,
            Err(reason) => return not(reason),
        };
        let Some((first, second)) = parts(&select.from) else {
            return not(NO_TABLE);
        };
        let (name, alias) = match first {
            TableFactor::Table { sample: Some(_), .. } => return not("Views containing TABLESAMPLE"),
            TableFactor::Table {
                name,
                alias,
                args: None,
                ..
            } => (name, alias.as_ref()),
            // A view whose columns have names of their own is kept so.
            TableFactor::Derived {
                lateral: false,
                subquery,
                alias: Some(alias),
                ..
            } if matches!(select.projection.as_slice(), [SelectItem::Wildcard(_)]) && select.selection.is_none() => {
                let mut found = self.through_query(subquery, view)?;
                if let Ok((_, inner)) = &mut found {
                    let names: Vec<Ident> = alias.columns.iter().map(|column| column.name.clone()).collect();
                    inner.rename(&names);
                }
                return Ok(found);
            }
            _ => return not(NO_TABLE),
        };
        let (_, plain_name) = object_name(name)?;
        let base = self.existing(name)?;
        let (base, mut inner) = match base.kind {
            Kind::Collection(_) if base.materialized.is_none() => {
                let bound = self.scan(&base)?;
                let bound = self.guarded(&base, bound, self.writes)?;
                let inner = Through::of_table(&base, bound);
                (base, inner)
            }
            Kind::Query(_) if instead::is_any(&base) => {
                return unsupported("to write through a view of a view with triggers");
            }
            Kind::Query(_) => match self.through(&base)? {
                Ok(found) => found,
                Err(reason) => return Ok(Err(reason)),
            },
            _ => return not(NO_TABLE),
        };
        let own = alias.map_or(plain_name, |alias| ident(&alias.name));
        for column in &mut inner.columns {
            column.table = Some(own.clone());
        }
        if let Some(alias) = alias {
            let names: Vec<Ident> = alias.columns.iter().map(|column| column.name.clone()).collect();
            inner.rename(&names);
        }
        let mut address = None;
        if let Some(second) = second {
            address = match self.unnest(&base, &mut inner, second)? {
                Ok(address) => Some(address),
                Err(reason) => return not(reason),
            };
        }
        let scope = Scope {
            columns: inner.columns.clone(),
        };
        self.levels.push(Level {
            allows_aggregates: true,
            allows_windows: true,
            ..Level::default()
        });
        let bound = self.select_list(&select.projection, &scope, true);
        let level = self.levels.pop().unwrap_or_default();
        let (mut items, mut columns) = bound?;
        if !level.aggregates.is_empty() {
            return not("Views that return aggregate functions");
        }
        if !level.windows.is_empty() {
            return not("Views that return window functions");
        }
        if self
            .pending
            .iter()
            .any(|pending| matches!(pending.kind, ApplyKind::Lateral { .. }))
        {
            return not("Views that return set-returning functions");
        }
        let over_table = |expr: &Expr| -> Option<Expr> {
            let mut known = true;
            expr.for_each_column(&mut |index| known &= inner.values.get(index).is_some_and(Option::is_some));
            let over = known.then(|| expr.with_columns(&|index| inner.values.get(index).cloned().flatten()));
            over.filter(|over| !over.is_large())
        };
        let target = |expr: &Expr| match expr.node() {
            Node::Column { index, .. } if *index < PENDING => inner.targets.get(*index).copied().flatten(),
            _ => None,
        };
        let mut targets: Vec<Option<usize>> = items.iter().map(target).collect();
        let mut values: Vec<Option<Expr>> = items.iter().map(over_table).collect();
        // The document and the record stay behind the columns.
        let document = match address {
            Some(Address { document, .. }) => document,
            None => inner.columns.len() - 2,
        };
        for at in document..document + 2 {
            items.push(self.column(&inner.columns, at));
            values.push(inner.values[at].clone());
            targets.push(None);
            columns.push(inner.columns[at].clone());
        }
        if let (Some(Address { address, .. }), Some(last)) = (address, items.last_mut()) {
            *last = address;
            let key = inner.element.iter().flat_map(|element| &element.key);
            let has = |key: &Column| {
                let of_table = |target: &usize| base.columns.get(*target).is_some_and(|own| own.name == key.name);
                targets.iter().flatten().any(of_table)
            };
            if !{ key }.all(has) {
                return not(NO_KEY);
            }
        }
        let mut plan = inner.plan.clone();
        let mut conditions = std::mem::take(&mut inner.conditions);
        if let Some(selection) = &select.selection {
            let pending = std::mem::take(&mut self.pending);
            self.levels.push(Level::default());
            let condition = self.condition(selection, &scope, "WHERE");
            self.levels.pop();
            let condition = condition?;
            conditions.push(Condition {
                view: view.name.clone(),
                collection: schemas::collection(&view.schema, &view.name),
                holds: over_table(&condition),
                checked: false,
            });
            let asked = plan.width();
            plan = self.filter(plan, condition);
            debug_assert!(plan.width() >= asked, "columns for subqueries come behind the others");
            self.pending = pending;
        }
        plan = self.flush(plan, &mut items);
        let through = Through {
            name: view.name.clone(),
            plan: Relation::Project {
                input: Box::new(plan),
                columns: items,
            },
            columns,
            values,
            targets,
            conditions,
            element: inner.element,
            views: inner.views,
        };
        Ok(Ok((base, through)))
    }

    /// Puts the elements that a function in FROM gives beside the rows of a view; where each of them is.
    fn unnest(
        &mut self,
        base: &Table,
        inner: &mut Through,
        factor: &TableFactor,
    ) -> Result<std::result::Result<Address, &'static str>> {
        let (Some((array, by_fields)), None) = (unnested(factor), &inner.element) else {
            return Ok(Err(NO_ARRAY));
        };
        let scope = Scope {
            columns: inner.columns.clone(),
        };
        self.levels.push(Level::default());
        let array = self.expr(array, &scope);
        self.levels.pop();
        let column = match array?.node() {
            Node::Column { index, .. } => inner.targets.get(*index).copied().flatten(),
            _ => None,
        };
        let Some(column) = column.and_then(|at| base.columns.get(at)) else {
            return Ok(Err(NO_ARRAY));
        };
        let key: Vec<Column> = match base.declared {
            true => base.key.iter().filter_map(|name| base.column(name).cloned()).collect(),
            false => base
                .columns
                .iter()
                .filter(|column| column.path == "_id")
                .cloned()
                .collect(),
        };
        if key.is_empty() {
            return Ok(Err(NO_KEY));
        }
        let path = column.path.clone();
        let document = inner.columns.len() - 2;
        let before = Bound {
            plan: inner.plan.clone(),
            columns: inner.columns.clone(),
        };
        let bound = self.numbered(before, factor)?;
        let of_element = &bound.columns[document + 2..bound.columns.len() - 1];
        let first = base.columns.len() + 2;
        for (at, column) in bound.columns[document + 2..].iter().enumerate() {
            inner
                .values
                .push(Some(Expr::column(first + at, column.name.clone(), column.ty.clone())));
            inner.targets.push((at < of_element.len()).then_some(first + at));
        }
        let field = |column: &ScopeColumn| by_fields.then(|| column.name.clone());
        inner.element = Some(Element {
            path,
            fields: of_element.iter().map(field).collect(),
            types: of_element.iter().map(|column| column.ty.clone()).collect(),
            key,
        });
        let address = Node::Call {
            function: &element::FUNCTION,
            args: vec![
                self.column(&bound.columns, document + 1),
                self.column(&bound.columns, bound.columns.len() - 1),
            ],
            ty: Type::Bytea,
        };
        inner.plan = bound.plan;
        inner.columns = bound.columns;
        Ok(Ok(Address {
            document,
            address: address.into(),
        }))
    }

    /// The rows of what is written to, its columns called by `name`.
    ///
    /// Errors: those of finding partitions.
    pub(super) fn rows_of_written(&mut self, written: &Written, name: &str) -> Result<Bound> {
        let mut bound = match (&written.view, &written.instead) {
            (None, Some(bound)) => bound.clone(),
            (None, None) => {
                let bound = self.scan(&written.table)?;
                self.guarded(&written.table, bound, written.finds)?
            }
            (Some(view), _) => Bound {
                plan: view.plan.clone(),
                columns: view.columns.clone(),
            },
        };
        for column in &mut bound.columns {
            column.table = Some(name.to_owned());
        }
        Ok(bound)
    }

    /// The columns of the rows of what is written to, called by `name`.
    pub(super) fn columns_of_written(&mut self, written: &Written, name: &str) -> Vec<ScopeColumn> {
        let mut columns = match (&written.view, &written.instead) {
            (None, Some(bound)) => bound.columns.clone(),
            (None, None) => self.columns_of(&written.table),
            (Some(view), _) => view.columns.clone(),
        };
        for column in &mut columns {
            column.table = Some(name.to_owned());
        }
        columns
    }

    /// What is written by a name.
    ///
    /// Errors: 42703; 0A000 for a column of a view that is none of the table.
    pub(super) fn target_of(&self, written: &Written, name: &ObjectName, verb: Verb) -> Result<Target> {
        let first = name.0.first().and_then(ObjectNamePart::as_ident);
        let found = self.target_through(written, name, verb);
        found.map_err(|e| first.map_or(e.clone(), |first| about(e, first)))
    }

    fn target_through(&self, written: &Written, name: &ObjectName, verb: Verb) -> Result<Target> {
        let Some(view) = &written.view else {
            return self.target(&written.table, name);
        };
        let Some(ObjectNamePart::Identifier(first)) = name.0.first() else {
            return unsupported("a column of this form");
        };
        let first = ident(first);
        let place = view
            .columns
            .iter()
            .position(|column| !column.hidden && column.name == first);
        let Some(place) = place else {
            return fail(
                "42703",
                format!("column \"{first}\" of relation \"{}\" does not exist", view.name),
            );
        };
        let target = view.targets[place];
        if let (Some(element), Some(at)) = (&view.element, target) {
            let own = at
                .checked_sub(written.table.columns.len() + 2)
                .and_then(|at| element.fields.get(at));
            if let Some(field) = own {
                let names = name.0[1..].iter().map(|part| match part {
                    ObjectNamePart::Identifier(part) => Ok(ident(part)),
                    ObjectNamePart::Function(_) => unsupported("a column of this form"),
                });
                let mut path: Vec<String> = field.iter().cloned().collect();
                path.extend(names.collect::<Result<Vec<_>>>()?);
                return Ok(Target::of_element(path, &view.columns[place], name.0.len() > 1));
            }
            let of_table = written.table.columns.get(at);
            let is_key = of_table.is_some_and(|own| element.key.iter().any(|key| key.name == own.name));
            if verb != Verb::Insert || !is_key {
                let verb = if verb == Verb::Insert { "insert into" } else { "update" };
                let told = error(
                    "0A000",
                    format!("cannot {verb} column \"{first}\" of view \"{}\"", view.name),
                );
                let detail =
                    "The rows of the view are the elements of an array; the column is one of the table that has it.";
                return Err(with(told, &[(Field::Detail, detail)]));
            }
        }
        let column = target.and_then(|at| written.table.columns.get(at));
        let Some(column) = column else {
            let verb = match verb {
                Verb::Insert => "insert into",
                _ => "update",
            };
            let told = error(
                "0A000",
                format!("cannot {verb} column \"{first}\" of view \"{}\"", view.name),
            );
            let detail = "View columns that are not columns of their base relation are not updatable.";
            return Err(with(told, &[(Field::Detail, detail)]));
        };
        let mut of_table = name.clone();
        of_table.0[0] = ObjectNamePart::Identifier(Ident::with_quote('"', column.name.as_str()));
        self.target(&written.table, &of_table)
    }
}
