//! Calls of functions that somebody has made.
//!
//! A function that is an expression of its arguments is put in where it is called. Others are subqueries: their query is bound to a row of the
//! arguments and to nothing else of the statement around it. Functions that call functions are put into each other so many times at most.

use super::call::is_built_in;
use super::from::one_row;
use super::made::resolved;
use super::{Binder, Bound, Level, Scope, ScopeColumn, polymorphic};
use crate::catalog::routines::{Argument, Body, Returns, Routine};
use crate::catalog::schemas::PUBLIC;
use crate::error::{Field, error, fail, no_function, unsupported, with};
use crate::expr::{Expr, Node};
use crate::functions::{self, coerce};
use crate::parse::procedural::Block;
use crate::parse::procedural::check::{self, Gives};
use crate::plan::{self, Plan, outward};
use crate::types::Type;
use crate::types::cast::{self, Context};
use crate::types::composite::{Attribute, Composite};
use nestor_model::{Array, Result, Value};
use nestor_planner::relation::{Apply, ApplyKind, Relation};
use sqlparser::ast::{Expr as Ast, Function, FunctionArg, FunctionArgExpr, ObjectName, SelectItem, SetExpr};
use std::sync::Arc;

/// Functions that are put into one statement, one within the other or beside each other.
const ROUTINES_MAX: usize = 500;

/// An argument with the name that it is given by.
type Given = (Option<String>, Expr);

impl Binder<'_> {
    /// The functions of a name that somebody has made, where there is none that was there before.
    pub(super) fn routines(&self, schema: Option<&str>, name: &str) -> Vec<Arc<Routine>> {
        match schema {
            None if functions::is_known(name) || is_built_in(name) => Vec::new(),
            Some("pg_catalog") => Vec::new(),
            // Whoever a policy is for has no say in what it calls.
            None if self.binds_policy() => {
                let own = self.view_schema.as_deref().unwrap_or(PUBLIC);
                let found = self.catalog.routines(Some(own), name);
                match found.is_empty() && own != PUBLIC {
                    true => self.catalog.routines(Some(PUBLIC), name),
                    false => found,
                }
            }
            schema => self.catalog.routines(schema, name),
        }
    }

    /// The one that is chosen, with the columns of types that are rows of tables.
    ///
    /// Errors: 42809 for a procedure, 0A000 for a function of triggers, 42704 for a table that is gone.
    fn callable(&self, routine: Arc<Routine>) -> Result<Arc<Routine>> {
        if routine.is_procedure {
            let shown = routine.shown();
            let error = error("42809", format!("{shown} is a procedure"));
            return Err(with(error, &[(Field::Hint, "To call a procedure, use CALL.")]));
        }
        if matches!(routine.returns, Returns::Trigger) {
            return fail("0A000", "trigger functions can only be called as triggers");
        }
        Ok(resolved(self.catalog, &routine)?.unwrap_or(routine))
    }

    /// A call of a routine that is no query, and what it gives.
    fn run_call(&mut self, routine: &Routine, args: Vec<Expr>, ty: &Type) -> Expr {
        self.calls = true;
        let args = args.into_iter().chain(settled_types(routine)).collect();
        functions::routine::call((&routine.name, routine.oid), routine.is_volatile(), args, ty.clone())
    }

    /// The rows of a routine that is no query, and its columns.
    fn run_rows(&mut self, routine: &Routine, args: Vec<Expr>) -> Result<(Plan, Vec<ScopeColumn>)> {
        self.calls = true;
        let mut row = None;
        let columns: Vec<(String, Type)> = match &routine.returns {
            Returns::One(Type::Composite(own)) => {
                row = Some(own.clone());
                own.attributes
                    .iter()
                    .map(|own| (own.name.clone(), own.ty.clone()))
                    .collect()
            }
            Returns::Row(columns) => {
                let own = row_of(columns);
                row = Some(own);
                columns.clone()
            }
            Returns::One(ty) => vec![(routine.name.clone(), ty.clone())],
            Returns::Nothing => vec![(routine.name.clone(), Type::Void)],
            Returns::Record(_) => match self.defined_for_routine.take() {
                Some(columns) => columns,
                None => {
                    return fail(
                        "42601",
                        "a column definition list is required for functions returning \"record\"",
                    );
                }
            },
            _ => self.routine_columns(routine)?,
        };
        if let Returns::Record(false) = &routine.returns {
            // As the routine is told of them.
            let each = (1..).zip(&columns);
            let each: Vec<(String, Type)> = each.map(|(at, (_, ty))| (format!("column{at}"), ty.clone())).collect();
            row = Some(row_of(&each));
        }
        let mut given = args;
        if let Returns::Record(_) = &routine.returns {
            // Its columns are what the call says.
            if let Some((_, ty)) = columns.iter().find(|(_, ty)| Type::of_oid(ty.oid()).is_none()) {
                return unsupported(format!("a column of the type {ty} that a call defines"));
            }
            let types = columns.iter().map(|(_, ty)| Value::Int64(i64::from(ty.oid())));
            let types = Value::Array(Array::new(types.collect()));
            given.push(Expr::constant(types, Type::Int8.array()));
        }
        given.extend(settled_types(routine));
        let plan = Relation::Function {
            call: Arc::new(functions::routine::Rows {
                name: routine.name.clone(),
                number: routine.oid,
                row,
            }),
            args: given,
            width: columns.len(),
        };
        let columns = columns.into_iter().map(|(name, ty)| ScopeColumn::new(name, ty));
        Ok((plan, columns.collect()))
    }

    /// A call of a function that somebody has made, if it is one.
    ///
    /// Errors: 42883, 42725 for arguments that no such function takes, those of binding it.
    pub(super) fn routine_call(
        &mut self,
        (schema, name): (Option<&str>, &str),
        call: &Function,
        scope: &Scope,
    ) -> Result<Option<Expr>> {
        let all = self.routines(schema, name);
        if all.is_empty() {
            return Ok(None);
        }
        if call.over.is_some() || call.filter.is_some() || !call.within_group.is_empty() {
            return fail(
                "42809",
                format!("OVER specified, but {name} is not a window function nor an aggregate function"),
            );
        }
        self.note_routine(&call.name);
        let args = self.given_args(&super::call::arguments(call)?, scope)?;
        let (routine, args) = self.chosen_routine(name, &all, args)?;
        self.count_routine()?;
        let ty = match &routine.returns {
            Returns::One(ty) => ty.clone(),
            Returns::Nothing => Type::Void,
            Returns::Row(columns) => Type::Composite(row_of(columns)),
            Returns::Record(false) => Type::Record,
            Returns::Record(true) | Returns::Trigger => {
                return unsupported(format!("function {name} in a select list"));
            }
            Returns::RowsOf(_) => return unsupported(format!("function {name} in a select list")),
            Returns::Rows(columns) => match columns.as_slice() {
                [(_, ty)] => {
                    let around: Vec<Expr> = args.iter().map(outward).collect();
                    let (mut plan, _) = self.routine_plan(&routine, around.clone(), scope)?;
                    if let Some(condition) = known(&routine, &around) {
                        plan = Relation::Filter {
                            input: Box::new(plan),
                            condition,
                        };
                    }
                    let found = self.subquery(plan, ApplyKind::Lateral { keeps: false }, ty.clone());
                    if let Some(pending) = self.pending.last_mut() {
                        pending.written = Some(call.to_string());
                    }
                    return Ok(Some(found));
                }
                _ => return unsupported(format!("function {name} in a select list")),
            },
        };
        if routine.query().is_none() {
            return Ok(Some(self.run_call(&routine, args, &ty)));
        }
        if let Some(expr) = self.put_in(&routine, &args, &ty)? {
            return Ok(Some(expr));
        }
        if self.is_default {
            // A default stands where there is no query that a subquery could be a part of.
            return Ok(Some(self.run_call(&routine, args, &ty)));
        }
        let (plan, _) = self.routine_plan(&routine, args.iter().map(outward).collect(), scope)?;
        let first = Relation::Limit {
            input: Box::new(plan),
            limit: Some(Expr::constant(Value::Int64(1), Type::Int8)),
            offset: None,
            ties: Vec::new(),
        };
        let value = self.subquery(first, ApplyKind::Scalar, ty.clone());
        Ok(Some(unless_null(&routine, &args, value, ty)))
    }

    /// The rows of a function that somebody has made and that gives rows, if it is one.
    ///
    /// Errors: those of [`Binder::routine_call`].
    pub(super) fn routine_rows(
        &mut self,
        (schema, name): (Option<&str>, &str),
        args: &[FunctionArg],
    ) -> Result<Option<Bound>> {
        let all = self.routines(schema, name);
        if all.is_empty() {
            return Ok(None);
        }
        let args = self.given_args(args, &Scope::default())?;
        let (routine, mut args) = self.chosen_routine(name, &all, args)?;
        self.count_routine()?;
        let below = self.flush(one_row(), &mut args);
        let width = below.width();
        if let (Returns::One(ty), Some(_)) = (&routine.returns, routine.query()) {
            // One row, with null where the query has none.
            let (plan, _) = self.routine_plan(&routine, args.iter().map(outward).collect(), &Scope::default())?;
            let first = Relation::Limit {
                input: Box::new(plan),
                limit: Some(Expr::constant(Value::Int64(1), Type::Int8)),
                offset: None,
                ties: Vec::new(),
            };
            let plan = Relation::Apply(Box::new(Apply {
                correlated: plan::is_correlated(&first),
                told_by: None,
                input: below,
                inner: first,
                kind: ApplyKind::Scalar,
                when: None,
            }));
            let value = Expr::column(width, name, ty.clone());
            let value = unless_null(&routine, &args, value, ty.clone());
            let plan = Relation::Project {
                input: Box::new(plan),
                columns: vec![value],
            };
            let columns = vec![ScopeColumn::new(name, ty.clone())];
            return Ok(Some(Bound { plan, columns }));
        }
        let (inner, columns) = self.routine_plan(&routine, args.iter().map(outward).collect(), &Scope::default())?;
        let mut input = below;
        let gives_rows = matches!(
            routine.returns,
            Returns::Rows(_) | Returns::RowsOf(_) | Returns::Record(true)
        );
        if let Some(condition) = known(&routine, &args).filter(|_| gives_rows || routine.query().is_some()) {
            input = Relation::Filter {
                input: Box::new(input),
                condition,
            };
        }
        let plan = Relation::Apply(Box::new(Apply {
            correlated: plan::is_correlated(&inner),
            told_by: None,
            input,
            inner,
            kind: ApplyKind::Lateral { keeps: false },
            when: None,
        }));
        let own = columns.iter().enumerate();
        let own = own.map(|(at, column)| Expr::column(width + at, column.name.clone(), column.ty.clone()));
        Ok(Some(Bound {
            plan: Relation::Project {
                columns: own.collect(),
                input: Box::new(plan),
            },
            columns,
        }))
    }

    /// What a function that is being made gives: it is bound once, so that its errors are told.
    ///
    /// Errors: 42P13 for rows of other types, those of its query.
    pub fn check_routine(&mut self, routine: &Arc<Routine>) -> Result<()> {
        for arg in &routine.args {
            if let Some(default) = &arg.default {
                self.levels.push(Level::default());
                let bound = self.expr(default, &Scope::default());
                self.levels.pop();
                let bound = bound?;
                if !matches!(arg.ty, Type::Any(_)) {
                    coerce(bound, &arg.ty, Context::Assignment)?;
                }
            }
        }
        let nulls = routine
            .args
            .iter()
            .map(|arg| Expr::constant(Value::Null, arg.ty.clone()));
        if routine.query().is_none() || routine.is_polymorphic() {
            super::made::check_tables(self.catalog, routine)?;
            return match &routine.body {
                Body::Block(block) => check_block(routine, block),
                _ => Ok(()),
            };
        }
        self.routine_plan(routine, nulls.collect(), &Scope::default()).map(drop)
    }

    /// The procedure that a CALL means, and its arguments.
    ///
    /// Errors: 42883, 42725, 42809 for a function; those of the arguments.
    pub fn procedure(&mut self, call: &Function) -> Result<(Arc<Routine>, Vec<Expr>)> {
        let (schema, name) = super::object_name(&call.name)?;
        let mut all = self.catalog.routines(schema.as_deref(), &name);
        let is_function = !all.is_empty() && all.iter().all(|own| !own.is_procedure);
        all.retain(|own| own.is_procedure || is_function);
        // What a parameter gives stands in its place, too.
        let with_outs: Vec<Arc<Routine>> = all.iter().map(|own| Arc::new(with_outs(own))).collect();
        self.takes_procedures = true;
        self.levels.push(Level::default());
        let args = super::call::arguments(call).and_then(|args| self.given_args(&args, &Scope::default()));
        let chosen = args.and_then(|args| self.chosen_routine(&name, &with_outs, args));
        self.levels.pop();
        let (chosen, args) = chosen.map_err(|told| match told.message().strip_prefix("function ") {
            Some(rest) if !is_function => {
                let told = error(&crate::error::state(&told), format!("procedure {rest}"));
                let hint = "No procedure matches the given name and argument types. You might need to add explicit type casts.";
                with(told, &[(Field::Hint, hint)])
            }
            _ => told,
        })?;
        if is_function {
            let shown = chosen.shown();
            let told = error("42809", format!("{shown} is not a procedure"));
            return Err(with(told, &[(Field::Hint, "To call a function, use SELECT.")]));
        }
        let Some(own) = all.into_iter().find(|own| own.oid == chosen.oid) else {
            return Err(no_function(name));
        };
        let own = polymorphic::called(&own, &chosen.settled.clone().unwrap_or_default())?;
        let own = resolved(self.catalog, &own)?.unwrap_or(own);
        let declared = own.parameters.iter().zip(args);
        let given = declared.filter(|(parameter, _)| parameter.mode.is_given());
        let args: Vec<Expr> = given.map(|(_, arg)| arg).collect();
        Ok((own, args))
    }

    /// Tells whoever asks for the names of a text that this one is that of a function.
    pub(super) fn note_routine(&mut self, name: &ObjectName) {
        if let (Some(named), [part]) = (&mut self.named, name.0.as_slice()) {
            named.extend(part.as_ident().map(|ident| (ident.clone(), PUBLIC.to_owned())));
        }
    }

    fn count_routine(&mut self) -> Result<()> {
        self.routines += 1;
        match self.routines > ROUTINES_MAX {
            true => fail("54001", "functions call each other too often"),
            false => Ok(()),
        }
    }

    fn given_args(&mut self, args: &[FunctionArg], scope: &Scope) -> Result<Vec<Given>> {
        let mut out: Vec<Given> = Vec::with_capacity(args.len());
        for arg in args {
            let (name, value) = match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => (None, value),
                FunctionArg::Named {
                    name,
                    arg: FunctionArgExpr::Expr(value),
                    ..
                } => (Some(super::ident(name)), value),
                FunctionArg::ExprNamed {
                    name: Ast::Identifier(name),
                    arg: FunctionArgExpr::Expr(value),
                    ..
                } => (Some(super::ident(name)), value),
                _ => return unsupported("arguments of this form"),
            };
            if name.is_none() && out.iter().any(|(name, _)| name.is_some()) {
                return fail("42601", "positional argument cannot follow named argument");
            }
            out.push((name, self.expr(value, scope)?));
        }
        Ok(out)
    }

    /// The function that takes arguments, and these in its order and of its types, with defaults where none are given.
    ///
    /// Errors: 42883, 42725.
    fn chosen_routine(
        &mut self,
        name: &str,
        all: &[Arc<Routine>],
        args: Vec<Given>,
    ) -> Result<(Arc<Routine>, Vec<Expr>)> {
        let given = args;
        let mut args = given.clone();
        let mut best: Option<(usize, Arc<Routine>, Vec<Option<usize>>)> = None;
        let mut tied = false;
        for routine in all {
            let own = gathered(routine, &given);
            let Some(places) = placed(routine, own.as_ref().unwrap_or(&given)) else {
                continue;
            };
            let was = std::mem::replace(&mut args, own.unwrap_or_else(|| given.clone()));
            // A literal of no type is a text rather than anything else.
            let is_exact = |given: &Type, wanted: &Type| given == wanted || *given == Type::Unknown && wanted.is_text();
            let exact = places.iter().zip(&routine.args);
            let exact = exact
                .filter(|(place, arg)| place.is_some_and(|at| is_exact(&args[at].1.ty(), &arg.ty)))
                .count();
            match &best {
                Some((most, ..)) if *most > exact => args = was,
                Some((most, ..)) if *most == exact => (tied, args) = (true, was),
                _ => (best, tied) = (Some((exact, routine.clone(), places)), false),
            }
        }
        let shown = || {
            let types = given.iter().map(|(name, arg)| match name {
                Some(name) => format!("{name} => {}", arg.ty()),
                None => arg.ty().to_string(),
            });
            format!("{name}({})", types.collect::<Vec<_>>().join(", "))
        };
        let Some((_, routine, places)) = best else {
            return Err(no_function(shown()));
        };
        if tied {
            return Err(error("42725", format!("function {} is not unique", shown())));
        }
        let routine = polymorphic::called(&routine, &settled_by(&routine, &places, &args).unwrap_or_default())?;
        let routine = match self.takes_procedures {
            true => resolved(self.catalog, &routine)?.unwrap_or(routine),
            false => self.callable(routine)?,
        };
        let mut out = Vec::with_capacity(places.len());
        for (place, arg) in places.iter().zip(&routine.args) {
            let value = match (place, &arg.default) {
                (Some(at), _) => args[*at].1.clone(),
                (None, Some(default)) => self.expr(default, &Scope::default())?,
                (None, None) => return Err(no_function(shown())),
            };
            let context = if place.is_some() {
                Context::Implicit
            } else {
                Context::Assignment
            };
            let value = coerce(value, &arg.ty, context)?;
            self.note_params(&value);
            out.push(value);
        }
        Ok((routine, out))
    }

    /// Binds what sees nothing of the statement around it.
    fn alone<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let outer = (std::mem::take(&mut self.outer), std::mem::take(&mut self.outer_levels));
        let ctes = std::mem::take(&mut self.ctes);
        let pending = std::mem::take(&mut self.pending);
        let levels = std::mem::take(&mut self.levels);
        let within = self.view_schema.take();
        let named = self.named.take();
        let out = self.deeper(work);
        (self.view_schema, self.named) = (within, named);
        ((self.outer, self.outer_levels), self.ctes, self.pending, self.levels) = (outer, ctes, pending, levels);
        out
    }

    fn scope_of(routine: &Routine) -> Scope {
        let columns = (1..).zip(&routine.args).map(|(number, arg)| ScopeColumn {
            table: Some(routine.name.clone()),
            ..ScopeColumn::new(arg.name.clone().unwrap_or_else(|| format!("${number}")), arg.ty.clone())
        });
        Scope {
            columns: columns.collect(),
        }
    }

    /// The value of a function as an expression of its arguments, where it is one and says no argument twice that is computed.
    fn put_in(&mut self, routine: &Routine, args: &[Expr], ty: &Type) -> Result<Option<Expr>> {
        let Some(query) = routine.query() else {
            return Ok(None);
        };
        let is_bare =
            query.with.is_none() && query.order_by.is_none() && query.limit_clause.is_none() && query.fetch.is_none();
        let SetExpr::Select(select) = &*query.body else {
            return Ok(None);
        };
        let is_bare = is_bare
            && select.from.is_empty()
            && select.selection.is_none()
            && select.having.is_none()
            && select.distinct.is_none()
            && matches!(&select.group_by, sqlparser::ast::GroupByExpr::Expressions(all, _) if all.is_empty());
        let [SelectItem::UnnamedExpr(item) | SelectItem::ExprWithAlias { expr: item, .. }] =
            select.projection.as_slice()
        else {
            return Ok(None);
        };
        if !is_bare {
            return Ok(None);
        }
        let scope = Self::scope_of(routine);
        let bound = self.alone(|binder| {
            binder.levels.push(Level::default());
            let bound = binder.expr(item, &scope);
            binder.levels.pop();
            bound
        });
        // What it cannot be as an expression it may be as a query.
        let Ok(bound) = bound else { return Ok(None) };
        let mut uses = vec![0usize; args.len()];
        let mut is_plain = true;
        bound.for_each_column(&mut |index| match uses.get_mut(index) {
            Some(uses) => *uses += 1,
            None => is_plain = false,
        });
        let is_small = |arg: &Expr| {
            matches!(
                arg.node(),
                Node::Const(..) | Node::Column { .. } | Node::Outer { .. } | Node::Param(..)
            )
        };
        let more = usize::from(routine.is_strict);
        is_plain &= args
            .iter()
            .zip(&uses)
            .all(|(arg, uses)| is_small(arg) || uses + more == 1 || uses + more == 0 && !arg.is_volatile());
        if !is_plain || !cast::exists(&bound.ty(), ty, Context::Assignment) {
            return Ok(None);
        }
        let value = match ty {
            Type::Void => Expr::constant(Value::Null, Type::Void),
            ty => coerce(bound, ty, Context::Assignment)?,
        };
        let value = value.with_columns(&|index| args.get(index).cloned());
        Ok(Some(unless_null(routine, args, value, ty.clone())))
    }

    /// The rows of a function's query for arguments, which stand in the row around it, and its columns.
    fn routine_plan(&mut self, routine: &Routine, args: Vec<Expr>, around: &Scope) -> Result<(Plan, Vec<ScopeColumn>)> {
        let Some(query) = routine.query() else {
            return self.run_rows(routine, args);
        };
        let scope = Self::scope_of(routine);
        let bound = self.alone(|binder| binder.within(&scope, |binder| binder.query(query)))?;
        let shown: Vec<usize> = (0..bound.columns.len())
            .filter(|at| !bound.columns[*at].hidden)
            .collect();
        let wanted = self.routine_columns(routine)?;
        let declared = |binder: &Self| {
            let given = shown.iter().map(|at| binder.column(&bound.columns, *at).ty());
            let wanted = wanted.iter().map(|(_, ty)| ty.clone());
            routine.mismatch(&given.collect::<Vec<_>>(), &wanted.collect::<Vec<_>>())
        };
        let (mut values, mut columns) = (Vec::new(), Vec::new());
        match &routine.returns {
            Returns::Nothing => {
                values.push(Expr::constant(Value::Null, Type::Void));
                columns.push(ScopeColumn::new(routine.name.clone(), Type::Void));
            }
            _ => {
                if shown.len() != wanted.len() {
                    return Err(declared(self));
                }
                for (at, (name, ty)) in shown.iter().zip(&wanted) {
                    let value = self.column(&bound.columns, *at);
                    if !cast::exists(&value.ty(), ty, Context::Assignment) {
                        return Err(declared(self));
                    }
                    values.push(coerce(value, ty, Context::Assignment)?);
                    columns.push(ScopeColumn::new(name.clone(), ty.clone()));
                }
            }
        }
        // Literals of no type are read where they stand.
        let inner = Relation::Project {
            input: Box::new(bound.plan),
            columns: values,
        };
        let mut is_volatile = false;
        plan::map(&inner, 0, &mut |expr, _| {
            is_volatile |= expr.is_volatile();
            expr.clone()
        });
        let mut row = args;
        if is_volatile && let Some(column) = around.columns.first() {
            // It is computed for each row, whatever its arguments are.
            row.push(outward(&Expr::column(0, column.name.clone(), column.ty.clone())));
        }
        if row.is_empty() {
            return Ok((inner, columns));
        }
        let width = row.len();
        let applied = Relation::Apply(Box::new(Apply {
            input: Relation::Project {
                input: Box::new(one_row()),
                columns: row,
            },
            correlated: plan::is_correlated(&inner),
            told_by: None,
            inner,
            kind: ApplyKind::Lateral { keeps: false },
            when: None,
        }));
        let own = columns.iter().enumerate();
        let own = own.map(|(at, column)| Expr::column(width + at, column.name.clone(), column.ty.clone()));
        let plan = Relation::Project {
            columns: own.collect(),
            input: Box::new(applied),
        };
        Ok((plan, columns))
    }

    /// The names and types of the columns that a function gives.
    fn routine_columns(&mut self, routine: &Routine) -> Result<Vec<(String, Type)>> {
        Ok(match &routine.returns {
            Returns::One(ty) => vec![(routine.name.clone(), ty.clone())],
            Returns::Row(columns) => columns.clone(),
            Returns::Nothing | Returns::Record(_) | Returns::Trigger => Vec::new(),
            Returns::Rows(columns) => {
                let each = columns.iter().map(|(name, ty)| {
                    let name = name.clone().unwrap_or_else(|| routine.name.clone());
                    (name, ty.clone())
                });
                each.collect()
            }
            Returns::RowsOf(name) => {
                let (schema, plain) = super::object_name(name)?;
                let Some(table) = self.table(schema.as_deref(), &plain)? else {
                    return fail("42704", format!("type \"{plain}\" does not exist"));
                };
                table
                    .columns
                    .iter()
                    .map(|column| (column.name.clone(), column.ty.clone()))
                    .collect()
            }
        })
    }
}

/// The type of a row with these columns.
fn row_of(columns: &[(String, Type)]) -> Arc<Composite> {
    let each = columns.iter().map(|(name, ty)| Attribute {
        name: name.clone(),
        ty: ty.clone(),
        modifier: -1,
    });
    Arc::new(Composite::of_row_type(each.collect()))
}

/// Looks at the block of a routine.
///
/// Errors: those of [`check::check`].
fn check_block(routine: &Routine, block: &Block) -> Result<()> {
    let has_outs = routine.parameters.iter().any(|own| own.mode.is_result());
    let gives = match &routine.returns {
        Returns::Rows(_) | Returns::RowsOf(_) | Returns::Record(true) if has_outs => Gives::OutRows,
        Returns::Rows(_) | Returns::RowsOf(_) | Returns::Record(true) => Gives::Rows,
        _ if has_outs => Gives::Outs,
        Returns::Nothing => Gives::Nothing,
        Returns::Trigger => Gives::Trigger,
        _ => Gives::Value,
    };
    let names = routine.parameters.iter().filter_map(|own| own.name.clone());
    check::check(block, gives, names.chain([routine.name.clone()]).collect())
}

/// A procedure as CALL sees it: all of its parameters are given.
fn with_outs(routine: &Routine) -> Routine {
    let args = routine.parameters.iter().map(|own| Argument {
        name: own.name.clone(),
        ty: own.ty.clone(),
        default: own.default.clone(),
    });
    Routine {
        args: args.collect(),
        ..routine.clone()
    }
}

/// The arguments for a function that takes any number of them as an array: that array stands in the place of those.
fn gathered(routine: &Routine, given: &[Given]) -> Option<Vec<Given>> {
    let (last, before) = routine.args.split_last().filter(|_| routine.is_variadic())?;
    let common;
    let element = match &last.ty {
        Type::Any(_) => {
            let own: Vec<Type> = given.iter().skip(before.len()).map(|(_, arg)| arg.ty()).collect();
            common = cast::common(&own)?;
            &common
        }
        ty => ty.element()?,
    };
    if given.len() < routine.args.len() || given.iter().any(|(name, _)| name.is_some()) {
        return None;
    }
    let (own, more) = given.split_at(before.len());
    if let ([(_, only)], true) = (more, more.len() == 1)
        && (only.ty().element().is_some() || only.ty() == Type::Unknown && *element != Type::Text)
    {
        return None;
    }
    let items = more
        .iter()
        .map(|(_, item)| coerce(item.clone(), element, Context::Implicit));
    let array: Expr = Node::Array(items.collect::<Result<_>>().ok()?, element.clone()).into();
    Some(own.iter().cloned().chain([(None, array)]).collect())
}

/// Which of the arguments that are given each argument of a function is; `None` when they do not fit.
fn placed(routine: &Routine, given: &[Given]) -> Option<Vec<Option<usize>>> {
    let mut places = vec![None; routine.args.len()];
    for (at, (name, _)) in given.iter().enumerate() {
        let place = match name {
            None => at,
            Some(name) => routine.args.iter().position(|arg| arg.name.as_ref() == Some(name))?,
        };
        let place = places.get_mut(place)?;
        if place.replace(at).is_some() {
            return None;
        }
    }
    let fits = places.iter().zip(&routine.args).all(|(place, arg)| match place {
        // Whether it may be given is seen of all of them together.
        _ if matches!(arg.ty, Type::Any(_)) => place.is_some() || arg.default.is_some(),
        Some(at) => cast::exists(&given[*at].1.ty(), &arg.ty, Context::Implicit) || is_row(&given[*at].1.ty(), &arg.ty),
        None => arg.default.is_some(),
    });
    let is_settled = || !routine.is_polymorphic() || settled_by(routine, &places, given).is_some();
    (fits && is_settled()).then_some(places)
}

/// What types of a routine stand for that stand for any, where arguments are given at these places.
fn settled_by(routine: &Routine, places: &[Option<usize>], given: &[Given]) -> Option<polymorphic::Settled> {
    let each = places.iter().zip(&routine.args).map(|(place, arg)| {
        let given = place.and_then(|at| given.get(at));
        (&arg.ty, given.map_or(Type::Unknown, |(_, given)| given.ty()))
    });
    polymorphic::settle(each)
}

/// The types that a routine is told of which a call has settled, by their numbers.
fn settled_types(routine: &Routine) -> Option<Expr> {
    let settled = routine.settled.as_ref()?;
    let each = settled
        .iter()
        .map(|ty| Value::Int64(ty.as_ref().map_or(0, |ty| i64::from(ty.oid()))));
    let types = Value::Array(Array::new(each.collect()));
    Some(Expr::constant(types, Type::Int8.array()))
}

/// Whether a value may be a row of a table whose columns nobody has asked for yet.
fn is_row(given: &Type, wanted: &Type) -> bool {
    match wanted {
        Type::Composite(own) if own.table().is_some() => matches!(given, Type::Composite(_) | Type::Record),
        _ => false,
    }
}

/// What has to be true for a strict function to give rows.
fn known(routine: &Routine, args: &[Expr]) -> Option<Expr> {
    let known = || {
        let each = args.iter().map(|arg| Node::IsNull(arg.clone(), true).into());
        Expr::all(each.collect())
    };
    (routine.is_strict && !args.is_empty()).then(known)
}

/// A value that is null where an argument of a strict function is.
fn unless_null(routine: &Routine, args: &[Expr], value: Expr, ty: Type) -> Expr {
    if !routine.is_strict || args.is_empty() {
        return value;
    }
    let nulls = args.iter().map(|arg| Node::IsNull(arg.clone(), false).into()).collect();
    Node::Case {
        operand: None,
        arms: vec![(Node::Or(nulls).into(), Expr::constant(Value::Null, ty.clone()))],
        otherwise: Some(value),
        ty,
    }
    .into()
}
