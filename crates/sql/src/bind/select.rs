//! SELECT: from its clauses to a plan, in the order in which they work.

use super::call::AGGREGATE_HERE;
use super::query::sort_key;
use super::{AGGREGATE, Binder, Bound, Level, PENDING, Scope, ScopeColumn, WINDOW, ident, locks, object_name};
use crate::error::{error, fail, unsupported};
use crate::expr::{Expr, Node};
use crate::functions::coerce;
use crate::parse::dialect::BETWEEN_SYMMETRIC;
use crate::parse::queries::{DISTINCT_GROUPS, FIELDS};
use crate::plan::{self, Plan};
use crate::types::Type;
use crate::types::cast::Context;
use nestor_model::Result;
use nestor_planner::relation::{Relation, SortKey};
use sqlparser::ast::{
    ArrayElemTypeDef, DataType, Distinct, Expr as Ast, FunctionArg, FunctionArgExpr, GroupByExpr, LockClause,
    NamedWindowExpr, OrderByExpr, Select, SelectItem, SelectItemQualifiedWildcardKind,
};

/// Grouping sets of a SELECT.
const SETS_MAX: usize = 4096;

/// Columns of a result: messages count them by 16 bits with a sign.
const COLUMNS_MAX: usize = i16::MAX as usize;

/// Names of results.
pub(super) struct Output;

impl Output {
    /// The column of a result that an item of ORDER BY or GROUP BY names, by its place or its name.
    ///
    /// Errors: 42P10 for a place that there is not.
    pub(super) fn place(item: &Ast, columns: &[ScopeColumn], clause: &str) -> Result<Option<usize>> {
        match item {
            Ast::Value(value) => match &value.value {
                sqlparser::ast::Value::Number(text, _) => {
                    let place = text
                        .parse::<usize>()
                        .ok()
                        .and_then(|n| n.checked_sub(1))
                        .filter(|n| *n < columns.len());
                    match place {
                        Some(place) => Ok(Some(place)),
                        None if text.parse::<u64>().is_err() => {
                            fail("42601", format!("non-integer constant in {clause}"))
                        }
                        None => fail("42P10", format!("{clause} position {text} is not in select list")),
                    }
                }
                sqlparser::ast::Value::SingleQuotedString(_)
                | sqlparser::ast::Value::Boolean(_)
                | sqlparser::ast::Value::Null => fail("42601", format!("non-integer constant in {clause}")),
                _ => Ok(None),
            },
            Ast::Identifier(name) => {
                let name = ident(name);
                let found: Vec<usize> = (0..columns.len()).filter(|i| columns[*i].name == name).collect();
                Ok(match found.as_slice() {
                    [] => None,
                    [at, ..] => Some(*at),
                })
            }
            _ => Ok(None),
        }
    }
}

/// The name of what has none.
const UNNAMED: &str = "?column?";

/// The name that an expression has as a column.
fn name_of(expr: &Ast) -> String {
    named(expr).map_or_else(|| UNNAMED.to_owned(), |(name, _)| name)
}

/// The name that an expression has as a column, if it has one, and whether it keeps it within casts and as the last part of `CASE`: those of types give way.
fn named(expr: &Ast) -> Option<(String, bool)> {
    let own = match expr {
        Ast::Identifier(name) => ident(name),
        Ast::CompoundIdentifier(parts) => parts.last().map_or_else(String::new, ident),
        Ast::CompoundFieldAccess { root, access_chain } => match access_chain.last() {
            Some(sqlparser::ast::AccessExpr::Dot(Ast::Identifier(name))) => ident(name),
            _ => return named(root),
        },
        Ast::Function(call) if is_called(call, BETWEEN_SYMMETRIC) => return None,
        Ast::Function(call) => object_name(&call.name).map_or_else(|_| String::new(), |(_, name)| name),
        Ast::Cast { expr, data_type, .. } => {
            let found = named(expr);
            if let Some((_, true)) = found {
                return found;
            }
            // An array has its element's.
            let name = match super::types::data_type(data_type) {
                Ok((ty, _)) => Some(ty.name().trim_start_matches('_').to_owned()),
                Err(_) => made_type(data_type),
            };
            return name.map(|name| (name, false)).or(found);
        }
        Ast::Nested(expr) | Ast::Collate { expr, .. } => return named(expr),
        Ast::Case { else_result, .. } => {
            let last = else_result.as_ref().and_then(|last| named(last));
            return last.filter(|(_, keeps)| *keeps).or(Some(("case".to_owned(), false)));
        }
        Ast::Exists { .. } => "exists".to_owned(),
        Ast::Array(_) => "array".to_owned(),
        Ast::Extract { .. } => "extract".to_owned(),
        Ast::Substring { shorthand: true, .. } => "substr".to_owned(),
        Ast::Substring { .. } => "substring".to_owned(),
        Ast::Position { .. } => "position".to_owned(),
        Ast::Trim { trim_where, .. } => match trim_where {
            Some(sqlparser::ast::TrimWhereField::Leading) => "ltrim".to_owned(),
            Some(sqlparser::ast::TrimWhereField::Trailing) => "rtrim".to_owned(),
            _ => "btrim".to_owned(),
        },
        Ast::Ceil { .. } => "ceil".to_owned(),
        Ast::Floor { .. } => "floor".to_owned(),
        Ast::Overlay { .. } => "overlay".to_owned(),
        Ast::Interval(_) => return Some(("interval".to_owned(), false)),
        Ast::AtTimeZone { .. } => "timezone".to_owned(),
        Ast::TypedString(typed) => {
            let ty = super::types::data_type(&typed.data_type);
            return Some((ty.map_or_else(|_| String::new(), |(ty, _)| ty.name()), false));
        }
        Ast::Value(value) => match value.value {
            sqlparser::ast::Value::Boolean(_) => return Some(("bool".to_owned(), false)),
            _ => return None,
        },
        Ast::Subquery(query) => match &*query.body {
            sqlparser::ast::SetExpr::Select(select) => match select.projection.first() {
                Some(SelectItem::UnnamedExpr(expr)) => name_of(expr),
                Some(SelectItem::ExprWithAlias { alias, .. }) => ident(alias),
                _ => UNNAMED.to_owned(),
            },
            sqlparser::ast::SetExpr::Values(_) => "column1".to_owned(),
            _ => UNNAMED.to_owned(),
        },
        Ast::IsNormalized { .. } => "is_normalized".to_owned(),
        Ast::Tuple(_) => "row".to_owned(),
        _ => return None,
    };
    Some((own, true))
}

/// The name of a type that a statement makes; of an array of such, that of its elements.
fn made_type(ty: &DataType) -> Option<String> {
    match ty {
        DataType::Custom(name, _) => object_name(name).ok().map(|(_, name)| name),
        DataType::Array(
            ArrayElemTypeDef::SquareBracket(ty, _)
            | ArrayElemTypeDef::AngleBracket(ty)
            | ArrayElemTypeDef::Parenthesis(ty),
        ) => made_type(ty),
        _ => None,
    }
}

/// Whether a call is one of a function that no statement names unless it is quoted.
pub(super) fn is_called(call: &sqlparser::ast::Function, name: &str) -> bool {
    matches!(call.name.0.as_slice(), [part] if part.as_ident().is_some_and(|own| own.value == name && own.quote_style.is_some()))
}

/// Columns that stand for what is computed elsewhere; of these kinds.
fn stands_for(expr: &Expr, from: usize, to: usize) -> bool {
    let mut found = false;
    expr.for_each_column(&mut |index| found |= (from..to).contains(&index));
    found
}

impl Binder<'_> {
    /// Binds a SELECT with the ORDER BY and the locks of its query.
    pub(super) fn select(&mut self, select: &Select, order: &[OrderByExpr], locks: &[LockClause]) -> Result<Bound> {
        let refused = select.top.is_some()
            || select.into.is_some()
            || select.qualify.is_some()
            || select.prewhere.is_some()
            || !select.lateral_views.is_empty()
            || !select.cluster_by.is_empty()
            || !select.distribute_by.is_empty()
            || !select.sort_by.is_empty()
            || !select.connect_by.is_empty()
            || select.exclude.is_some();
        if refused {
            return unsupported("a clause of this SELECT");
        }
        let pending = std::mem::take(&mut self.pending);
        self.levels.push(Level::default());
        let out = self.select_level(select, order, locks);
        self.levels.pop();
        self.pending = pending;
        out
    }

    fn select_level(&mut self, select: &Select, order: &[OrderByExpr], locks: &[LockClause]) -> Result<Bound> {
        locks::check_select(select, locks)?;
        let outer = std::mem::replace(&mut self.locks, locks.to_vec());
        let from = match locks.is_empty() {
            true => self.from(&select.from),
            false => locks::passed_on(&select.from, locks).and_then(|from| self.from(&from)),
        };
        self.locks = outer;
        let from = from?;
        let mut scope = Scope { columns: from.columns };
        let mut plan = from.plan;
        if let Some(selection) = &select.selection {
            let condition = self.condition(selection, &scope, "WHERE")?;
            plan = self.filter(plan, condition);
        }
        // Nodes for subqueries of WHERE added columns that have no names.
        while scope.columns.len() < plan.width() {
            scope.columns.push(ScopeColumn {
                hidden: true,
                ..ScopeColumn::new("\u{1}", Type::Unknown)
            });
        }
        for named in &select.named_window {
            let spec = match &named.1 {
                NamedWindowExpr::WindowSpec(spec) => self.window_of(spec)?,
                NamedWindowExpr::NamedWindow(_) => return unsupported("a window that is another one"),
            };
            let name = ident(&named.0);
            if self.level()?.named.insert(name.clone(), spec).is_some() {
                return fail("42P20", format!("window \"{name}\" is already defined"));
            }
        }
        let level = self.level()?;
        (level.allows_aggregates, level.allows_windows) = (true, true);

        let (items, columns) = self.select_list(&select.projection, &scope, select.distinct.is_some())?;
        let having = select
            .having
            .as_ref()
            .map(|having| self.condition(having, &scope, "HAVING"))
            .transpose()?;
        let distinct_on: Vec<Expr> = match &select.distinct {
            Some(Distinct::On(exprs)) if exprs.is_empty() => return fail("42601", "syntax error at or near \")\""),
            Some(Distinct::On(exprs)) => {
                let on = exprs
                    .iter()
                    .map(|expr| match Output::place(expr, &columns, "SELECT DISTINCT ON")? {
                        Some(at) => Ok(items[at].clone()),
                        None => self.expr(expr, &scope),
                    });
                on.collect::<Result<_>>()?
            }
            _ => Vec::new(),
        };
        let mut keys: Vec<SortKey<Expr>> = Vec::new();
        for item in order {
            let by = match Output::place(&item.expr, &columns, "ORDER BY")? {
                Some(at) => {
                    let name = &columns[at].name;
                    let other =
                        (at + 1..columns.len()).any(|i| columns[i].name == *name && !items[i].is_same(&items[at]));
                    if other && matches!(item.expr, Ast::Identifier(_)) {
                        return fail("42702", format!("ORDER BY \"{name}\" is ambiguous"));
                    }
                    items[at].clone()
                }
                None => self.expr(&item.expr, &scope)?,
            };
            let by = if by.ty() == Type::Unknown {
                coerce(by, &Type::Text, Context::Implicit)?
            } else {
                by
            };
            keys.push(sort_key(by, item));
        }

        // All expressions that follow grouping, in one list.
        let mut exprs: Vec<Expr> = items;
        let (select_end, having_at) = (exprs.len(), exprs.len());
        exprs.extend(having.iter().cloned());
        let on_at = exprs.len();
        exprs.extend(distinct_on.iter().cloned());
        let keys_at = exprs.len();
        exprs.extend(keys.iter().map(|key| key.by.clone()));

        let (groups, sets) = self.groups(select, &scope, &exprs[..select_end], &columns)?;
        let aggregates = std::mem::take(&mut self.level()?.aggregates);
        let mut windows = std::mem::take(&mut self.level()?.windows);
        if !aggregates.is_empty() && self.names_recursion(&select.from) {
            return fail(
                "42P19",
                "aggregate functions are not allowed in a recursive query's recursive term",
            );
        }
        if let Some(lock) = locks.first() {
            match (aggregates.is_empty(), windows.is_empty()) {
                (true, true) => {}
                (false, _) => return locks::not_allowed(lock, "aggregate functions"),
                (_, false) => return locks::not_allowed(lock, "window functions"),
            }
        }
        let holds = self.holds(&select.from, locks, &scope)?;
        if !groups.is_empty() || !aggregates.is_empty() || having.is_some() || !sets.is_empty() {
            plan = self.aggregated(plan, (groups, sets, aggregates), &scope, (&mut exprs, &mut windows))?;
        }
        if having.is_some() {
            let mut condition = exprs[having_at].clone();
            let width = plan.width();
            plan = self.flush_condition(plan, &mut condition);
            plan = Relation::Filter {
                input: Box::new(plan),
                condition,
            };
            debug_assert!(plan.width() >= width, "subqueries only add columns");
            exprs[having_at] = Expr::bool(true);
        }
        plan = self.windowed(plan, windows, &mut exprs)?;
        plan = self.flush(plan, &mut exprs);

        let output: Vec<Expr> = exprs[..select_end].to_vec();
        let by: Vec<Expr> = exprs[keys_at..].to_vec();
        let on: Vec<Expr> = exprs[on_at..keys_at].to_vec();
        self.finish(plan, (output, columns), select.distinct.as_ref(), on, (keys, by), holds)
    }

    /// The expressions of a select list, and the columns that they are. Literals of no type stay what they are unless they are `compared`.
    pub(super) fn select_list(
        &mut self,
        projection: &[SelectItem],
        scope: &Scope,
        compared: bool,
    ) -> Result<(Vec<Expr>, Vec<ScopeColumn>)> {
        let begin = self.pending.len();
        let mut items: Vec<Expr> = Vec::new();
        let mut columns: Vec<ScopeColumn> = Vec::new();
        for item in projection {
            match item {
                SelectItem::UnnamedExpr(Ast::Function(call)) if is_called(call, FIELDS) => {
                    for (name, field) in self.fields_of(call, scope)? {
                        columns.push(self.output(name, &field, scope));
                        items.push(field);
                    }
                }
                SelectItem::UnnamedExpr(expr) => {
                    let bound = self.shown_item(expr, scope)?;
                    columns.push(self.output(name_of(expr), &bound, scope));
                    items.push(bound);
                }
                SelectItem::ExprWithAlias { alias, .. } if alias.quote_style == Some('\'') => {
                    return fail("42601", format!("syntax error at or near \"'{}'\"", alias.value));
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    let bound = self.shown_item(expr, scope)?;
                    columns.push(self.output(ident(alias), &bound, scope));
                    items.push(bound);
                }
                SelectItem::Wildcard(_) => {
                    if scope.columns.is_empty() {
                        return fail("42601", "SELECT * with no tables specified is not valid");
                    }
                    for i in (0..scope.columns.len()).filter(|i| !scope.columns[*i].hidden) {
                        items.push(self.column(&scope.columns, i));
                        columns.push(scope.columns[i].clone());
                    }
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                    let (_, table) = object_name(name)?;
                    let around = self.outer.iter().rev();
                    let Some((levels, of)) = std::iter::once(scope)
                        .chain(around)
                        .enumerate()
                        .find(|(_, scope)| !scope.of_table(&table).is_empty())
                    else {
                        return fail("42P01", format!("missing FROM-clause entry for table \"{table}\""));
                    };
                    for i in of.of_table(&table) {
                        let column = &of.columns[i];
                        // Columns that a join shares are hidden for `*` but not for their own table's.
                        if column.hidden && matches!(column.name.as_str(), "_doc" | "tableoid") {
                            continue;
                        }
                        let own = self.column(&of.columns, i);
                        items.push((0..levels).fold(own, |expr, _| plan::outward(&expr)));
                        columns.push(column.clone());
                    }
                }
                _ => return unsupported("a select item of this form"),
            }
        }
        if items.len() > COLUMNS_MAX {
            return fail("54011", format!("target lists can have at most {COLUMNS_MAX} entries"));
        }
        self.in_step(begin);
        for (item, column) in items.iter_mut().zip(&mut columns) {
            column.table = None;
            column.hidden = false;
            if item.ty() == Type::Unknown {
                *item = match item.node() {
                    Node::Const(..) | Node::Param(..) if !compared => item.clone(),
                    _ => coerce(item.clone(), &Type::Text, Context::Implicit)?,
                };
                column.ty = item.ty();
            }
        }
        Ok((items, columns))
    }

    /// An expression of a select list.
    fn shown_item(&mut self, expr: &Ast, scope: &Scope) -> Result<Expr> {
        let bound = self.with_names(expr, scope)?;
        Ok(self.row_of_function(bound))
    }

    /// The fields of a row, each with its name: `(row).*`.
    ///
    /// Errors: 42809 for what is no row whose fields are known.
    fn fields_of(&mut self, call: &sqlparser::ast::Function, scope: &Scope) -> Result<Vec<(String, Expr)>> {
        let args = super::call::arguments(call)?;
        let [FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))] = args.as_slice() else {
            return unsupported("a select item of this form");
        };
        let bound = self.expr(arg, scope)?;
        if let Node::Row(fields) = bound.node()
            && matches!(arg, Ast::Identifier(_) | Ast::CompoundIdentifier(_))
        {
            let named = fields.iter().map(|field| match field.node() {
                Node::Column { name, .. } | Node::Outer { name, .. } => (name.clone(), field.clone()),
                _ => (name_of(arg), field.clone()),
            });
            return Ok(named.collect());
        }
        if let Node::Column { index, .. } = bound.node()
            && let Some(pending) = index.checked_sub(PENDING).and_then(|at| self.pending.get(at))
            && !pending.fields.is_empty()
        {
            let fields = pending.fields.clone();
            let each = fields.into_iter().map(|field| {
                let own = super::rows::field(&bound, &field.name, &field.ty);
                (field.name, own)
            });
            return Ok(each.collect());
        }
        match bound.ty() {
            Type::Composite(own) => {
                let each = own.attributes.iter();
                each.map(|own| Ok((own.name.clone(), super::names::attribute(bound.clone(), &own.name)?)))
                    .collect()
            }
            Type::Record => unsupported("the fields of a row that has no declared type"),
            ty => fail("42809", format!("type {ty} is not composite")),
        }
    }

    /// Projection, DISTINCT and order.
    fn finish(
        &mut self,
        plan: Plan,
        (output, columns): (Vec<Expr>, Vec<ScopeColumn>),
        distinct: Option<&Distinct>,
        on: Vec<Expr>,
        (keys, by): (Vec<SortKey<Expr>>, Vec<Expr>),
        holds: Vec<Expr>,
    ) -> Result<Bound> {
        let width = output.len();
        let mut all = output;
        let place = |all: &mut Vec<Expr>, expr: Expr| match all
            .iter()
            .position(|own| own.is_same(&expr) && !expr.is_volatile())
        {
            Some(at) => at,
            None => {
                all.push(expr);
                all.len() - 1
            }
        };
        let key_places: Vec<usize> = by.into_iter().map(|expr| place(&mut all, expr)).collect();
        let on_places: Vec<usize> = on.into_iter().map(|expr| place(&mut all, expr)).collect();
        // What is held is known to the rows, by columns of their own.
        let holds = holds.into_iter().map(|hold| {
            hold.map(&mut |part| match part.node() {
                Node::Column { .. } => Expr::column(place(&mut all, part.clone()), "held", part.ty()),
                _ => part.clone(),
            })
        });
        let holds: Vec<Expr> = holds.collect();
        let is_plain_distinct = matches!(distinct, Some(Distinct::Distinct));
        if is_plain_distinct && all.len() > width {
            return fail(
                "42P10",
                "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
            );
        }
        let column = |all: &[Expr], at: usize| match columns.get(at) {
            Some(own) => Expr::column(at, &own.name, all[at].ty()),
            // What is not given is called what it is.
            None => Expr::column(at, all[at].to_string(), all[at].ty()),
        };
        let mut plan: Plan = Relation::Project {
            input: Box::new(plan),
            columns: all.clone(),
        };
        if is_plain_distinct {
            plan = Relation::Distinct {
                input: Box::new(plan),
                on: (0..width).map(|at| column(&all, at)).collect(),
            };
        }
        if !keys.is_empty() {
            let keys = keys.into_iter().zip(&key_places).map(|(key, at)| SortKey {
                by: column(&all, *at),
                ..key
            });
            plan = Relation::Sort {
                input: Box::new(plan),
                keys: keys.collect(),
                limit: None,
            };
        }
        if !on_places.is_empty() {
            let shared = on_places.len().min(key_places.len());
            if !key_places[..shared].iter().all(|at| on_places.contains(at)) {
                return fail(
                    "42P10",
                    "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
                );
            }
            plan = Relation::Distinct {
                input: Box::new(plan),
                on: on_places.iter().map(|at| column(&all, *at)).collect(),
            };
        }
        if !holds.is_empty() {
            plan = Relation::Filter {
                input: Box::new(plan),
                condition: Expr::all(holds),
            };
        }
        if all.len() > width {
            plan = Relation::Project {
                columns: (0..width).map(|at| column(&all, at)).collect(),
                input: Box::new(plan),
            };
        }
        Ok(Bound { plan, columns })
    }

    /// A condition. Errors: 42804 when it is no boolean.
    pub(super) fn condition(&mut self, condition: &Ast, scope: &Scope, clause: &str) -> Result<Expr> {
        let rows = self.giving_rows();
        let bound = self.expr(condition, scope).map_err(|e| match e.message() {
            AGGREGATE_HERE => {
                let clause = match clause {
                    "JOIN/ON" => "JOIN conditions",
                    "CHECK" => "check constraints",
                    "MERGE WHEN" => "MERGE WHEN conditions",
                    "POLICY" => "policy expressions",
                    clause => clause,
                };
                let told = error("42803", format!("aggregate functions are not allowed in {clause}"));
                told.with_extra(e.extra().cloned().unwrap_or_default())
            }
            _ => e,
        })?;
        self.check_no_rows(
            rows,
            match clause {
                "JOIN/ON" => "JOIN conditions",
                "CHECK" => "check constraints",
                "MERGE WHEN" => "MERGE WHEN conditions",
                "POLICY" => "policy expressions",
                "CASE/WHEN" => "CASE",
                clause => clause,
            },
        )?;
        match bound.ty() {
            Type::Bool => Ok(bound),
            Type::Unknown => coerce(bound, &Type::Bool, Context::Implicit),
            ty => fail(
                "42804",
                format!("argument of {clause} must be type boolean, not type {ty}"),
            ),
        }
    }

    /// A filter, with nodes for the subqueries of its condition.
    pub(super) fn filter(&mut self, plan: Plan, mut condition: Expr) -> Plan {
        let plan = self.flush_condition(plan, &mut condition);
        Relation::Filter {
            input: Box::new(plan),
            condition,
        }
    }

    fn output(&self, name: String, expr: &Expr, scope: &Scope) -> ScopeColumn {
        let mut column = ScopeColumn::new(name, expr.ty());
        match expr.node() {
            Node::Column { index, .. } => {
                let pending = index.checked_sub(PENDING).and_then(|at| self.pending.get(at));
                if let Some(pending) = pending {
                    column.fields.clone_from(&pending.fields);
                }
                if let Some(from) = scope.columns.get(*index) {
                    column.modifier = from.modifier;
                    column.origin = from.origin;
                    column.fields.clone_from(&from.fields);
                }
            }
            _ => column.modifier = expr.modifier(),
        }
        column
    }

    /// What rows are grouped by, and the grouping sets; none when there is no GROUP BY.
    fn groups(
        &mut self,
        select: &Select,
        scope: &Scope,
        items: &[Expr],
        columns: &[ScopeColumn],
    ) -> Result<(Vec<Expr>, Vec<Vec<usize>>)> {
        let GroupByExpr::Expressions(exprs, modifiers) = &select.group_by else {
            return unsupported("GROUP BY ALL");
        };
        let repeated = |expr: &Ast| {
            let is_same = |item: &SelectItem| match item {
                SelectItem::UnnamedExpr(own) | SelectItem::ExprWithAlias { expr: own, .. } => own == expr,
                _ => false,
            };
            let stars = select.projection.len() != items.len();
            select.projection.iter().position(is_same).filter(|_| !stars)
        };
        if !modifiers.is_empty() {
            return unsupported("a modifier of GROUP BY");
        }
        let mut groups: Vec<Expr> = Vec::new();
        let mut sets: Vec<Vec<usize>> = vec![Vec::new()];
        let mut add = |binder: &mut Self, expr: &Ast| -> Result<usize> {
            let bound = match expr {
                // A name is a column of the input first, and of the output otherwise.
                Ast::Identifier(name) => match binder.expr(expr, scope) {
                    Ok(bound) => bound,
                    Err(error) => match columns.iter().position(|column| column.name == ident(name)) {
                        Some(at) => items[at].clone(),
                        None => return Err(error),
                    },
                },
                _ => match Output::place(expr, columns, "GROUP BY")? {
                    Some(at) => items[at].clone(),
                    None => binder.expr(expr, scope)?,
                },
            };
            if stands_for(&bound, AGGREGATE, WINDOW) {
                return fail("42803", "aggregate functions are not allowed in GROUP BY");
            }
            if stands_for(&bound, WINDOW, usize::MAX) {
                return fail("42P20", "window functions are not allowed in GROUP BY");
            }
            // A subquery that the select list has in the same words is that one.
            let bound = match repeated(expr) {
                Some(at) if stands_for(&bound, PENDING, AGGREGATE) => items[at].clone(),
                _ => bound,
            };
            Ok(match groups.iter().position(|own| own.is_same(&bound)) {
                Some(at) => at,
                None => {
                    groups.push(bound);
                    groups.len() - 1
                }
            })
        };
        let (is_distinct, exprs) = match exprs.split_first() {
            Some((Ast::Function(call), rest)) if is_called(call, DISTINCT_GROUPS) => (true, rest),
            _ => (false, exprs.as_slice()),
        };
        for expr in exprs {
            let options = self.sets_of(expr, &mut add)?;
            if sets.len() * options.len() > SETS_MAX {
                return fail("54001", "too many grouping sets present (maximum 4096)");
            }
            let product = sets.iter().flat_map(|set| {
                options.iter().map(move |option| {
                    let mut out = set.clone();
                    out.extend(option);
                    out
                })
            });
            sets = product.collect();
        }
        if is_distinct {
            let mut seen = std::collections::BTreeSet::new();
            sets.retain(|set| seen.insert(set.iter().copied().collect::<std::collections::BTreeSet<usize>>()));
        }
        match exprs.is_empty() {
            true => Ok((Vec::new(), Vec::new())),
            false => Ok((groups, sets)),
        }
    }

    /// The grouping sets of an item of GROUP BY, or of one within another.
    fn sets_of(
        &mut self,
        expr: &Ast,
        add: &mut dyn FnMut(&mut Self, &Ast) -> Result<usize>,
    ) -> Result<Vec<Vec<usize>>> {
        Ok(match expr {
            Ast::Rollup(parts) => {
                let parts = self.parts(parts, add)?;
                (0..=parts.len()).rev().map(|n| parts[..n].concat()).collect()
            }
            Ast::Cube(parts) => {
                let parts = self.parts(parts, add)?;
                if parts.len() > 10 {
                    return fail("54001", "CUBE has too many elements");
                }
                (0..1usize << parts.len())
                    .rev()
                    .map(|mask| {
                        let chosen = parts
                            .iter()
                            .enumerate()
                            .filter(|(i, _)| mask >> (parts.len() - 1 - i) & 1 == 1);
                        chosen.flat_map(|(_, part)| part.clone()).collect()
                    })
                    .collect()
            }
            Ast::GroupingSets(list) => {
                let mut sets = Vec::new();
                for part in list {
                    match part.as_slice() {
                        [inner @ (Ast::Rollup(_) | Ast::Cube(_) | Ast::GroupingSets(_))] => {
                            sets.extend(self.sets_of(inner, add)?);
                        }
                        part => sets.push(part.iter().map(|item| add(self, item)).collect::<Result<_>>()?),
                    }
                    if sets.len() > SETS_MAX {
                        return fail("54001", "too many grouping sets present (maximum 4096)");
                    }
                }
                sets
            }
            Ast::Tuple(items) => {
                let all: Vec<usize> = items.iter().map(|item| add(self, item)).collect::<Result<_>>()?;
                vec![all]
            }
            expr => vec![vec![add(self, expr)?]],
        })
    }

    fn parts(
        &mut self,
        parts: &[Vec<Ast>],
        add: &mut dyn FnMut(&mut Self, &Ast) -> Result<usize>,
    ) -> Result<Vec<Vec<usize>>> {
        let each = parts
            .iter()
            .map(|part| part.iter().map(|expr| add(self, expr)).collect());
        each.collect()
    }
}
