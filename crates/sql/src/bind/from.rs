//! FROM: tables, subqueries, functions and joins.

use super::files::{file_of, of_call, of_file};
use super::partitions::meant;
use super::select::is_called;
use super::{Binder, Bound, Cte, CtePlan, PENDING, Scope, ScopeColumn, ident, object_name};
use crate::catalog::files::Named;
use crate::catalog::{Kind, Table};
use crate::error::{about, error, fail, unsupported};
use crate::expr::{Comparison, Expr, Node};
use crate::functions;
use crate::parse::dialect::ROWS_FROM;
use crate::parse::queries::{DEFINITIONS, ONE_ROW, definitions, using_alias};
use crate::plan::{self, Plan, cross, fenced, outward};
use crate::types::Type;
use nestor_model::Result;
use nestor_planner::relation::{Apply, ApplyKind, Join, JoinKind, Relation};
use sqlparser::ast::{
    Expr as Ast, FunctionArg, FunctionArgExpr, JoinConstraint, JoinOperator, TableAlias, TableAliasColumnDef,
    TableFactor, TableSampleKind, TableWithJoins,
};

const NO_SAMPLE: &str = "TABLESAMPLE clause can only be applied to tables and materialized views";
const NO_DEFINITIONS: &str = "a column definition list is required for functions returning \"record\"";

/// One row without columns: what a SELECT without FROM reads.
pub(super) fn one_row() -> Plan {
    Relation::Values {
        rows: vec![Vec::new()],
        width: 0,
    }
}

impl Binder<'_> {
    /// The rows of a FROM clause.
    pub(super) fn from(&mut self, from: &[TableWithJoins]) -> Result<Bound> {
        let Some((first, rest)) = from.split_first() else {
            return Ok(Bound {
                plan: one_row(),
                columns: Vec::new(),
            });
        };
        check_names(from)?;
        let first = self.joined(None, first)?;
        self.beside(first, rest)
    }

    /// The rows of further items beside those of the first one.
    pub(super) fn beside(&mut self, first: Bound, rest: &[TableWithJoins]) -> Result<Bound> {
        rest.iter()
            .try_fold(first, |before, item| self.joined(Some(&before), item))
    }

    /// An item of FROM behind those before it, which it may refer to when it is lateral.
    fn joined(&mut self, before: Option<&Bound>, item: &TableWithJoins) -> Result<Bound> {
        let first = self.item(before, &item.relation, None)?;
        // Joins of this item see it alone, and those before it when they are lateral.
        let (mut left, prefix) = match before {
            None => (first, 0),
            Some(before) => (first, before.columns.len()),
        };
        for join in &item.joins {
            left = self.join(left, prefix, &join.relation, &join.join_operator)?;
        }
        Ok(left)
    }

    /// `factor` beside `before`.
    fn item(&mut self, before: Option<&Bound>, factor: &TableFactor, keeps: Option<bool>) -> Result<Bound> {
        let empty = Scope::default();
        let scope = before.map_or(empty, |before| Scope {
            columns: before.columns.clone(),
        });
        let lateral = is_lateral(factor);
        let item = match (before, lateral) {
            (Some(_), true) => self.within(&scope, |binder| binder.factor(factor))?,
            _ => self.factor(factor)?,
        };
        let Some(before) = before else { return Ok(item) };
        let mut columns = before.columns.clone();
        columns.extend(item.columns);
        let correlated = lateral && plan::is_correlated(&item.plan);
        let plan = match correlated || (lateral && plan::reaches_out(&item.plan, 1)) {
            true => Relation::Apply(Box::new(Apply {
                input: before.plan.clone(),
                inner: item.plan,
                kind: ApplyKind::Lateral {
                    keeps: keeps.unwrap_or(false),
                },
                correlated,
                told_by: None,
                when: None,
            })),
            false => cross(before.plan.clone(), item.plan),
        };
        Ok(Bound { plan, columns })
    }

    /// The rows of a function of the columns before it, beside these, with their numbers in a last column that no name means.
    pub(super) fn numbered(&mut self, before: Bound, factor: &TableFactor) -> Result<Bound> {
        let scope = Scope {
            columns: before.columns.clone(),
        };
        let item = self.within(&scope, |binder| binder.factor(factor))?;
        let mut columns = before.columns;
        columns.extend(item.columns);
        columns.push(ScopeColumn {
            hidden: true,
            ..ScopeColumn::new("\u{1}place", Type::Int8)
        });
        let inner = super::window::numbered(item.plan);
        let plan = Relation::Apply(Box::new(Apply {
            correlated: plan::is_correlated(&inner),
            told_by: None,
            input: before.plan,
            inner,
            kind: ApplyKind::Lateral { keeps: false },
            when: None,
        }));
        Ok(Bound { plan, columns })
    }

    /// The rows that a statement takes its own from.
    pub(super) fn source(&mut self, factor: &TableFactor) -> Result<Bound> {
        self.item(None, factor, None)
    }

    fn join(&mut self, left: Bound, prefix: usize, factor: &TableFactor, operator: &JoinOperator) -> Result<Bound> {
        let (kind, constraint) = match operator {
            JoinOperator::Join(c) | JoinOperator::Inner(c) => (JoinKind::Inner, c),
            JoinOperator::Left(c) | JoinOperator::LeftOuter(c) => (JoinKind::Left, c),
            JoinOperator::Right(c) | JoinOperator::RightOuter(c) => (JoinKind::Right, c),
            JoinOperator::FullOuter(c) => (JoinKind::Full, c),
            JoinOperator::CrossJoin(c) => (JoinKind::Inner, c),
            _ => return unsupported("a join of this kind"),
        };
        let width = left.columns.len();
        let scope = Scope {
            columns: left.columns.clone(),
        };
        let lateral = is_lateral(factor);
        let right = match lateral {
            true => self.within(&scope, |binder| binder.factor(factor))?,
            false => self.factor(factor)?,
        };
        let mut columns = left.columns.clone();
        columns.extend(right.columns.iter().cloned());
        let (ours, theirs) = columns.split_at_mut(width);
        let gives_null = match kind {
            JoinKind::Left => [false, true],
            JoinKind::Right => [true, false],
            JoinKind::Full => [true, true],
            _ => [false, false],
        };
        for (side, gives_null) in [&mut ours[prefix..], theirs].into_iter().zip(gives_null) {
            side.iter_mut().for_each(|column| column.optional |= gives_null);
        }
        let mut alias = None;
        let shared = match constraint {
            JoinConstraint::Using(names) => {
                let names = names.iter().map(|name| object_name(name).map(|(_, name)| name));
                let mut names = names.collect::<Result<Vec<String>>>()?;
                alias = using_alias(&mut names);
                names
            }
            JoinConstraint::Natural => {
                let visible = |columns: &[ScopeColumn]| -> Vec<String> {
                    columns.iter().filter(|c| !c.hidden).map(|c| c.name.clone()).collect()
                };
                let theirs = visible(&right.columns);
                visible(&left.columns[prefix..])
                    .into_iter()
                    .filter(|name| theirs.contains(name))
                    .collect()
            }
            _ => Vec::new(),
        };
        let mut condition = match constraint {
            JoinConstraint::On(on) => {
                let scope = Scope {
                    columns: columns.clone(),
                };
                self.condition(on, &scope, "JOIN/ON")?
            }
            _ => Expr::bool(true),
        };
        let mut merged = Vec::new();
        for name in &shared {
            let place = |columns: &[ScopeColumn], from: usize| -> Result<usize> {
                let found: Vec<usize> = (from..columns.len())
                    .filter(|i| columns[*i].name == *name && !columns[*i].hidden)
                    .collect();
                match found.as_slice() {
                    [at] => Ok(*at),
                    [] => fail(
                        "42703",
                        format!("column \"{name}\" specified in USING clause does not exist"),
                    ),
                    _ => fail("42702", format!("common column name \"{name}\" appears more than once")),
                }
            };
            let (a, b) = (place(&left.columns, prefix)?, width + place(&right.columns, 0)?);
            let (x, y) = (self.column(&columns, a), self.column(&columns, b));
            let equal = self.comparison(Comparison::Equal, x.clone(), y.clone())?;
            condition = condition.and(equal);
            let ty = crate::types::cast::common([&x.ty(), &y.ty()]).unwrap_or_else(|| x.ty());
            let both = [x, y].map(|side| functions::coerce(side, &ty, crate::types::cast::Context::Implicit));
            let [x, y] = both;
            merged.push((name.clone(), a, b, x?, y?, ty));
        }
        let conditions = [condition];
        let pending = self.pending.len();
        let plan = match lateral && plan::reaches_out(&right.plan, 1) {
            true => {
                let keeps = match kind {
                    JoinKind::Inner => false,
                    JoinKind::Left => true,
                    _ => return fail("42P10", "a lateral reference cannot stand in a RIGHT or FULL JOIN"),
                };
                let correlated = plan::is_correlated(&right.plan);
                let [condition] = conditions;
                let (inner, above) = match keeps {
                    true => {
                        // The condition decides which inner rows there are, so it stands within.
                        let inside = inward(&outward(&condition), width);
                        let filtered = Relation::Filter {
                            input: Box::new(right.plan),
                            condition: inside,
                        };
                        (filtered, None)
                    }
                    false => (right.plan, Some(condition)),
                };
                let applied = Relation::Apply(Box::new(Apply {
                    input: left.plan,
                    inner,
                    kind: ApplyKind::Lateral { keeps },
                    correlated: correlated || keeps,
                    told_by: None,
                    when: None,
                }));
                match above {
                    Some(condition) => Relation::Filter {
                        input: Box::new(applied),
                        condition,
                    },
                    None => applied,
                }
            }
            false => {
                let uses_subquery = pending > 0 && {
                    let mut found = false;
                    conditions[0].for_each_column(&mut |index| found |= index >= PENDING);
                    found
                };
                if uses_subquery && kind != JoinKind::Inner {
                    let [condition] = conditions;
                    self.outer_join(kind, (left.plan, width), (right.plan, right.columns.len()), condition)?
                } else if uses_subquery {
                    let crossed = cross(left.plan, right.plan);
                    let [mut condition] = conditions;
                    let crossed = self.flush_condition(crossed, &mut condition);
                    let filtered = Relation::Filter {
                        input: Box::new(crossed),
                        condition,
                    };
                    let kept = (0..columns.len()).map(|i| self.column(&columns, i)).collect();
                    Relation::Project {
                        input: Box::new(filtered),
                        columns: kept,
                    }
                } else {
                    let [condition] = conditions;
                    let is_open = matches!(condition.node(), Node::Const(nestor_model::Value::Bool(true), _));
                    Relation::Join(Box::new(Join {
                        kind,
                        left: left.plan,
                        right: right.plan,
                        keys: Vec::new(),
                        condition: (!is_open).then_some(condition),
                        left_first: false,
                    }))
                }
            }
        };
        if merged.is_empty() {
            return Ok(Bound { plan, columns });
        }
        // Columns that both sides share stand once, before the others of this join; their own are there by name of their table.
        let mut out: Vec<Expr> = Vec::new();
        let mut scope: Vec<ScopeColumn> = Vec::new();
        for i in 0..prefix {
            out.push(self.column(&columns, i));
            scope.push(columns[i].clone());
        }
        for (name, a, b, x, y, ty) in &merged {
            let value = match kind {
                JoinKind::Right => y.clone(),
                JoinKind::Full => Node::Coalesce(vec![x.clone(), y.clone()], ty.clone()).into(),
                _ => x.clone(),
            };
            out.push(value);
            scope.push(ScopeColumn {
                table: alias.clone(),
                ..ScopeColumn::new(name.clone(), ty.clone())
            });
            columns[*a].hidden = true;
            columns[*b].hidden = true;
        }
        for i in prefix..columns.len() {
            out.push(self.column(&columns, i));
            scope.push(columns[i].clone());
        }
        Ok(Bound {
            plan: Relation::Project {
                input: Box::new(plan),
                columns: out,
            },
            columns: scope,
        })
    }

    /// A join that keeps rows of one side and whose condition has subqueries: for each row of that side, those of the other one that meet it.
    ///
    /// Errors: 0A000 for FULL.
    fn outer_join(
        &mut self,
        kind: JoinKind,
        (left, left_width): (Plan, usize),
        (right, right_width): (Plan, usize),
        condition: Expr,
    ) -> Result<Plan> {
        let is_left = match kind {
            JoinKind::Left => true,
            JoinKind::Right => false,
            _ => return unsupported("a subquery in the condition of a FULL JOIN"),
        };
        let (kept, inner) = if is_left { (left, right) } else { (right, left) };
        let (from, to) = if is_left {
            (0, left_width)
        } else {
            (left_width, left_width + right_width)
        };
        // Columns of the side that is kept are those of the row around, the others the inner row's own.
        let moved = |index: usize| match index {
            index if index >= PENDING => (0, index),
            index if (from..to).contains(&index) => (1, index - from),
            index => (0, if is_left { index - left_width } else { index }),
        };
        for pending in &mut self.pending {
            pending.inner = plan::map(&pending.inner, 0, &mut |expr, depth| split(expr, depth + 1, &moved));
            if let ApplyKind::In { probe } = &mut pending.kind {
                for expr in probe {
                    *expr = split(expr, 0, &moved);
                }
            }
        }
        let inner = plan::map(&inner, 0, &mut |expr, at| lift(expr, at, 1));
        let inner = self.filter(inner, split(&condition, 0, &moved));
        let applied = Relation::Apply(Box::new(Apply {
            input: kept,
            inner,
            kind: ApplyKind::Lateral { keeps: true },
            correlated: true,
            told_by: None,
            when: None,
        }));
        let behind = to - from;
        let own = |from: usize, width: usize| (from..from + width).map(|i| Expr::column(i, "", Type::Unknown));
        let columns = match is_left {
            true => own(0, left_width).chain(own(behind, right_width)),
            false => own(behind, left_width).chain(own(0, right_width)),
        };
        Ok(Relation::Project {
            input: Box::new(applied),
            columns: columns.collect(),
        })
    }

    /// Column `index` of rows.
    pub(super) fn column(&self, columns: &[ScopeColumn], index: usize) -> Expr {
        let column = &columns[index];
        Expr::column(index, column.name.clone(), column.ty.clone())
    }

    fn factor(&mut self, factor: &TableFactor) -> Result<Bound> {
        match factor {
            TableFactor::Table { name, alias: None, .. } if matches!(name.0.as_slice(), [part] if part.as_ident().is_some_and(|own| own.value == ONE_ROW && own.quote_style.is_some())) => {
                self.from(&[])
            }
            TableFactor::Table {
                name,
                alias,
                args,
                with_ordinality,
                sample,
                ..
            } => {
                let sample = match sample {
                    Some(TableSampleKind::BeforeTableAlias(sample) | TableSampleKind::AfterTableAlias(sample)) => {
                        Some(sample)
                    }
                    None => None,
                };
                if let (None, None, [part]) = (args, sample, name.0.as_slice())
                    && let Some(word) = part.as_ident().filter(|word| word.quote_style.is_none())
                    && super::expr::is_word(&ident(word))
                {
                    return self.function((None, &ident(word)), &[], alias.as_ref(), *with_ordinality);
                }
                if let (Some(path), None) = (file_of(name), args) {
                    return self.files(&of_file(path), alias.as_ref());
                }
                let (schema, table) = object_name(name)?;
                if let Some(args) = args {
                    if !self.routines(schema.as_deref(), &table).is_empty() {
                        self.note_routine(name);
                    }
                    return self.function(
                        (schema.as_deref(), &table),
                        &args.args,
                        alias.as_ref(),
                        *with_ordinality,
                    );
                }
                let bound = match schema {
                    None => self.cte(&table)?,
                    Some(_) => None,
                };
                let bound = match bound {
                    Some(bound) => match sample {
                        Some(_) => return fail("0A000", NO_SAMPLE),
                        None => bound,
                    },
                    None => match self.table(schema.as_deref(), &table)? {
                        Some(found) => {
                            let found = meant(name, found);
                            if let (Some(named), None, [part]) = (&mut self.named, &schema, name.0.as_slice()) {
                                named.extend(part.as_ident().map(|ident| (ident.clone(), found.schema.clone())));
                            }
                            match (&found.kind, sample) {
                                (Kind::Query(_), Some(_)) => return fail("0A000", NO_SAMPLE),
                                (Kind::Query(query), None) => self.view(query, &found)?,
                                (_, Some(sample)) => {
                                    let bound = self.sampled(&found, sample)?;
                                    let finds = self.finds(factor)?;
                                    self.guarded(&found, bound, finds)?
                                }
                                (_, None) => {
                                    let bound = self.scan(&found)?;
                                    let finds = self.finds(factor)?;
                                    self.guarded(&found, bound, finds)?
                                }
                            }
                        }
                        None => {
                            let shown = schema.map_or(table.clone(), |schema| format!("{schema}.{table}"));
                            let gone = error("42P01", format!("relation \"{shown}\" does not exist"));
                            let first = name.0.first().and_then(|part| part.as_ident());
                            return Err(first.map_or(gone.clone(), |first| about(gone, first)));
                        }
                    },
                };
                named(bound, alias.as_ref(), &table)
            }
            TableFactor::Derived { sample: Some(_), .. } => fail("42601", "syntax error at or near \"tablesample\""),
            TableFactor::Derived { subquery, alias, .. } => {
                let bound = self.deeper(|binder| binder.query(subquery))?;
                named(bound, alias.as_ref(), "")
            }
            TableFactor::Function {
                name,
                args,
                alias,
                with_ordinality,
                ..
            } => {
                let (schema, name) = object_name(name)?;
                self.function((schema.as_deref(), &name), args, alias.as_ref(), *with_ordinality)
            }
            TableFactor::TableFunction { expr, alias } => match expr {
                Ast::Function(call) => {
                    let (_, name) = object_name(&call.name)?;
                    let args = super::call::arguments(call)?;
                    self.function((None, &name), &args, alias.as_ref(), false)
                }
                _ => unsupported("a table function of this form"),
            },
            TableFactor::UNNEST {
                alias,
                array_exprs,
                with_ordinality,
                ..
            } => {
                let args: Vec<FunctionArg> = array_exprs
                    .iter()
                    .map(|expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr.clone())))
                    .collect();
                self.function((None, "unnest"), &args, alias.as_ref(), *with_ordinality)
            }
            TableFactor::NestedJoin {
                table_with_joins,
                alias,
            } => {
                let bound = self.joined(None, table_with_joins)?;
                match alias {
                    Some(_) => named(super::query::visible(bound), alias.as_ref(), ""),
                    None => Ok(bound),
                }
            }
            _ => unsupported("a table of this form"),
        }
    }

    /// The rows of files.
    fn files(&mut self, named: &Named, alias: Option<&TableAlias>) -> Result<Bound> {
        let table = self.catalog.files(named)?;
        let bound = self.scan(&table)?;
        self::named(bound, alias, &table.name)
    }

    /// Binds what is a view's own, which sees nothing of the query around it.
    pub(super) fn in_view<T>(&mut self, view: &Table, work: impl FnOnce(&mut Self) -> T) -> T {
        let outer = (std::mem::take(&mut self.outer), std::mem::take(&mut self.outer_levels));
        let ctes = std::mem::take(&mut self.ctes);
        let pending = std::mem::take(&mut self.pending);
        let levels = std::mem::take(&mut self.levels);
        let within = self.view_schema.replace(view.schema.clone());
        let named = self.named.take();
        let out = work(self);
        (self.view_schema, self.named) = (within, named);
        ((self.outer, self.outer_levels), self.ctes, self.pending, self.levels) = (outer, ctes, pending, levels);
        out
    }

    /// The rows of a view.
    pub(super) fn view(&mut self, query: &sqlparser::ast::Query, table: &Table) -> Result<Bound> {
        let bound = self.in_view(table, |binder| binder.deeper(|binder| binder.query(query)));
        let bound = bound?;
        let (mut exprs, mut columns) = (Vec::new(), Vec::new());
        let oid = self.catalog.number_of(table);
        for (at, mut column) in bound.columns.iter().cloned().enumerate() {
            if column.hidden {
                continue;
            }
            let mut own = self.column(&bound.columns, at);
            if column.ty == Type::Unknown {
                own = functions::coerce(own, &Type::Text, crate::types::cast::Context::Implicit)?;
                column.ty = Type::Text;
            }
            column.table = Some(table.name.clone());
            exprs.push(own);
            column.origin = (oid, u16::try_from(exprs.len()).unwrap_or(0));
            columns.push(column);
        }
        Ok(Bound {
            plan: Relation::Project {
                // What others ask of its rows is asked of those that it shows.
                input: Box::new(if table.is_barrier() {
                    fenced(bound.plan)
                } else {
                    bound.plan
                }),
                columns: exprs,
            },
            columns,
        })
    }

    /// What a name of WITH stands for.
    ///
    /// Errors: 0A000 for what returns nothing.
    pub(super) fn cte(&mut self, name: &str) -> Result<Option<Bound>> {
        let Some(Cte { columns, plan, .. }) = self.ctes.iter().rev().find(|cte| cte.name == name).cloned() else {
            return Ok(None);
        };
        let plan = match plan {
            CtePlan::Working(id) => Relation::Working {
                id,
                width: columns.len(),
            },
            CtePlan::Nothing => {
                let message = format!("WITH query \"{name}\" does not have a RETURNING clause");
                return fail("0A000", message);
            }
            CtePlan::Refused(state, message) => return fail(state, message),
            CtePlan::Inline(plan, depth) => {
                // It may stand deeper than where it was bound; what it refers to is that much further out.
                let deeper = self.outer.len().saturating_sub(depth);
                plan::map(&plan, 0, &mut |expr, at| lift(expr, at, deeper))
            }
        };
        Ok(Some(Bound { plan, columns }))
    }

    fn function(
        &mut self,
        (schema, name): (Option<&str>, &str),
        args: &[FunctionArg],
        alias: Option<&TableAlias>,
        with_ordinality: bool,
    ) -> Result<Bound> {
        let args = &*self.without_void(args);
        if let Some(files) = of_call(name, args)? {
            return match with_ordinality {
                true => unsupported("WITH ORDINALITY of files"),
                false => self.files(&files, alias),
            };
        }
        let defines = alias.is_some_and(|alias| alias.columns.iter().any(|column| column.data_type.is_some()));
        if defines && !self.routines(schema, name).is_empty() {
            self.defined_for_routine = Some(self.defined(alias.map_or(&[][..], |alias| &alias.columns))?);
        }
        if let Some(bound) = self.routine_rows((schema, name), args)? {
            if self.defined_for_routine.take().is_some() {
                return fail(
                    "42601",
                    "a column definition list is only allowed for functions returning \"record\"",
                );
            }
            return Self::beneath(bound.plan, bound.columns, name, alias, with_ordinality);
        }
        let scope = Scope::default();
        if let Some((name, columns, arg)) = self.populated(name, args)? {
            let columns = match columns {
                Some(found) => found.columns,
                None => self.defined(alias.map_or(&[][..], |alias| &alias.columns))?,
            };
            let arg = self.expr(arg, &scope)?;
            let table = functions::records(name, &[arg], columns)?;
            return self.rows_of(table, name, alias, with_ordinality);
        }
        if name == ROWS_FROM {
            let parts = args.iter().map(|arg| self.part_of_rows(arg, &scope));
            let table = functions::side_by_side(parts.collect::<Result<_>>()?);
            return self.rows_of(table, "", alias, with_ordinality);
        }
        let mut bound = Vec::with_capacity(args.len());
        for arg in args {
            match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) => bound.push(self.expr(arg, &scope)?),
                _ => return unsupported("arguments of this form"),
            }
        }
        if functions::is_of_records(name) {
            let columns = self.defined(alias.map_or(&[][..], |alias| &alias.columns))?;
            let table = functions::records(name, &bound, columns)?;
            return self.rows_of(table, name, alias, with_ordinality);
        }
        match self.table_function(name, &bound)? {
            Some(table) => self.rows_of(table, name, alias, with_ordinality),
            None => {
                // Any function gives one row of its value.
                let mut value = [self.function_call(name, bound)?];
                let below = self.flush(one_row(), &mut value);
                let ty = value[0].ty();
                let plan = Relation::Project {
                    input: Box::new(below),
                    columns: value.to_vec(),
                };
                let columns = vec![ScopeColumn::new(name, ty)];
                Self::beneath(plan, columns, name, alias, with_ordinality)
            }
        }
    }

    /// Names and types of the columns that the statement defines for a function.
    ///
    /// Errors: 42601 where there are none; those of types.
    fn defined(&self, columns: &[TableAliasColumnDef]) -> Result<Vec<(String, Type)>> {
        let columns = columns.iter().map(|column| match &column.data_type {
            Some(ty) => Ok((ident(&column.name), self.data_type(ty)?.0)),
            None => fail("42601", NO_DEFINITIONS),
        });
        let columns: Vec<_> = columns.collect::<Result<_>>()?;
        match columns.is_empty() {
            true => fail("42601", NO_DEFINITIONS),
            false => Ok(columns),
        }
    }

    /// A function of `ROWS FROM`.
    fn part_of_rows(&mut self, arg: &FunctionArg, scope: &Scope) -> Result<functions::Table> {
        let FunctionArg::Unnamed(FunctionArgExpr::Expr(Ast::Function(call))) = arg else {
            return fail("42601", "ROWS FROM takes calls of functions");
        };
        let (_, name) = object_name(&call.name)?;
        if !self.routines(None, &name).is_empty() {
            return unsupported(format!("function {name} in ROWS FROM"));
        }
        let (mut bound, mut defined) = (Vec::new(), None);
        for arg in super::call::arguments(call)? {
            match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(Ast::Function(call))) if is_called(&call, DEFINITIONS) => {
                    let text = call.args.to_string();
                    let text = text.trim_start_matches("('").trim_end_matches("')").replace("''", "'");
                    defined = Some(self.defined(&definitions(&text)?)?);
                }
                FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) => bound.push(self.expr(&arg, scope)?),
                _ => return unsupported("arguments of this form"),
            }
        }
        match (functions::is_of_records(&name), defined) {
            (true, Some(columns)) => return functions::records(&name, &bound, columns),
            (true, None) => return fail("42601", NO_DEFINITIONS),
            (false, Some(_)) => {
                return fail(
                    "42601",
                    "a column definition list is only allowed for functions returning \"record\"",
                );
            }
            (false, None) => {}
        }
        match self.table_function(&name, &bound)? {
            Some(table) => Ok(table),
            None => Ok(functions::once(&name, self.function_call(&name, bound)?)),
        }
    }

    /// The rows of a function that gives rows.
    fn rows_of(
        &mut self,
        table: functions::Table,
        name: &str,
        alias: Option<&TableAlias>,
        with_ordinality: bool,
    ) -> Result<Bound> {
        table.args.iter().for_each(|arg| self.note_params(arg));
        let columns: Vec<ScopeColumn> = table
            .columns
            .iter()
            .map(|(name, ty)| ScopeColumn::new(name.clone(), ty.clone()))
            .collect();
        let rows = |args: Vec<Expr>| Relation::Function {
            call: table.call.clone(),
            args,
            width: columns.len(),
        };
        let mut args = table.args.clone();
        let below = self.flush(one_row(), &mut args);
        let plan = match below.width() {
            0 => rows(args),
            // Subqueries of arguments are columns of a row before it.
            width => Relation::Project {
                input: Box::new(Relation::Apply(Box::new(Apply {
                    input: below,
                    inner: plan::map(&rows(args), 0, &mut |expr, _| outward(expr)),
                    kind: ApplyKind::Lateral { keeps: false },
                    correlated: true,
                    told_by: None,
                    when: None,
                }))),
                columns: (0..columns.len())
                    .map(|i| Expr::column(width + i, columns[i].name.clone(), columns[i].ty.clone()))
                    .collect(),
            },
        };
        Self::beneath(plan, columns, name, alias, with_ordinality)
    }

    /// What a function in FROM gives, under its name or its alias, with numbers if these are asked for.
    fn beneath(
        mut plan: Plan,
        mut columns: Vec<ScopeColumn>,
        name: &str,
        alias: Option<&TableAlias>,
        with_ordinality: bool,
    ) -> Result<Bound> {
        if with_ordinality {
            let width = columns.len();
            plan = super::window::numbered(plan);
            columns.push(ScopeColumn::new("ordinality", Type::Int8));
            debug_assert_eq!(plan.width(), width + 1, "the number is one column");
        }
        let single = columns.len() == 1;
        let mut out = named(Bound { plan, columns }, alias, name)?;
        // A function of one column has its alias for a name.
        if let (true, Some(alias)) = (single, alias)
            && alias.columns.is_empty()
        {
            out.columns[0].name = ident(&alias.name);
        }
        Ok(out)
    }
}

fn is_lateral(factor: &TableFactor) -> bool {
    match factor {
        TableFactor::Derived { lateral, .. } => *lateral,
        TableFactor::Table { args, .. } => args.is_some(),
        TableFactor::Function { .. } | TableFactor::UNNEST { .. } | TableFactor::TableFunction { .. } => true,
        _ => false,
    }
}

/// What an item of FROM is called, and the whole name of a table that has no alias.
type Called = (String, Option<String>);

fn called(factor: &TableFactor, out: &mut Vec<Called>) {
    let (alias, name) = match factor {
        TableFactor::Table { name, alias, args, .. } => {
            let plain = object_name(name).ok();
            if let (None, None, Some((schema, table))) = (alias, args, &plain) {
                let whole = format!("{}.{table}", schema.as_deref().unwrap_or_default());
                out.push((table.clone(), Some(whole)));
                return;
            }
            (alias, plain.map(|(_, name)| name))
        }
        TableFactor::Function { name, alias, .. } => (alias, object_name(name).ok().map(|(_, name)| name)),
        TableFactor::UNNEST { alias, .. } => (alias, Some("unnest".to_owned())),
        TableFactor::Derived { alias, .. } => (alias, None),
        TableFactor::NestedJoin {
            table_with_joins,
            alias: None,
        } => return called_in(table_with_joins, out),
        TableFactor::NestedJoin { alias, .. } => (alias, None),
        _ => return,
    };
    let name = alias.as_ref().map(|alias| ident(&alias.name)).or(name);
    out.extend(name.map(|name| (name, None)));
}

fn called_in(item: &TableWithJoins, out: &mut Vec<Called>) {
    called(&item.relation, out);
    item.joins.iter().for_each(|join| called(&join.relation, out));
}

/// Refuses to call two items of FROM the same, unless they are tables of different schemas.
///
/// Errors: 42712.
pub(super) fn check_names(from: &[TableWithJoins]) -> Result<()> {
    let mut all: Vec<Called> = Vec::new();
    from.iter().for_each(|item| called_in(item, &mut all));
    for (at, (name, whole)) in all.iter().enumerate() {
        let same = |(other, of): &Called| other == name && (whole.is_none() || of.is_none() || whole == of);
        if all[..at].iter().any(same) {
            return fail("42712", format!("table name \"{name}\" specified more than once"));
        }
    }
    Ok(())
}

/// Rows under the name of an alias.
pub(super) fn named(mut bound: Bound, alias: Option<&TableAlias>, name: &str) -> Result<Bound> {
    let name = alias.map_or_else(|| name.to_owned(), |alias| ident(&alias.name));
    for column in &mut bound.columns {
        column.table = (!name.is_empty()).then(|| name.clone());
    }
    if let Some(alias) = alias {
        let visible: Vec<usize> = (0..bound.columns.len()).filter(|i| !bound.columns[*i].hidden).collect();
        if alias.columns.len() > visible.len() {
            return fail(
                "42P10",
                format!(
                    "table \"{name}\" has {} columns available but {} columns specified",
                    visible.len(),
                    alias.columns.len()
                ),
            );
        }
        for (given, at) in alias.columns.iter().zip(visible) {
            bound.columns[at].name = ident(&given.name);
        }
    }
    Ok(bound)
}

/// What a plan refers to outside of itself is so many levels further out.
pub(super) fn lift(expr: &Expr, at: usize, by: usize) -> Expr {
    match expr.node() {
        Node::Outer {
            levels,
            index,
            name,
            ty,
        } if *levels > at => Node::Outer {
            levels: levels + by,
            index: *index,
            name: name.clone(),
            ty: ty.clone(),
        }
        .into(),
        _ => expr.map(&mut |part| lift(part, at, by)),
    }
}

/// Outer columns from `width` on are the inner relation's own.
fn inward(expr: &Expr, width: usize) -> Expr {
    match expr.node() {
        Node::Outer {
            levels: 1,
            index,
            name,
            ty,
        } if *index >= width => Expr::column(index - width, name.clone(), ty.clone()),
        _ => expr.map(&mut |part| inward(part, width)),
    }
}

/// An expression over the rows of a join, `depth` queries within it, as one over the rows of its inner side alone: `moved` says how many
/// levels further out a column stands, and where there.
fn split(expr: &Expr, depth: usize, moved: &dyn Fn(usize) -> (usize, usize)) -> Expr {
    let at = |levels: usize, index: usize, name: &str, ty: &Type| match levels {
        0 => Expr::column(index, name, ty.clone()),
        levels => Node::Outer {
            levels,
            index,
            name: name.to_owned(),
            ty: ty.clone(),
        }
        .into(),
    };
    match expr.node() {
        Node::Column { index, name, ty } if depth == 0 => {
            let (further, index) = moved(*index);
            at(further, index, name, ty)
        }
        Node::Outer {
            levels,
            index,
            name,
            ty,
        } if *levels == depth => {
            let (further, index) = moved(*index);
            at(levels + further, index, name, ty)
        }
        Node::Outer {
            levels,
            index,
            name,
            ty,
        } if *levels > depth => at(levels + 1, *index, name, ty),
        _ => expr.map(&mut |part| split(part, depth, moved)),
    }
}
