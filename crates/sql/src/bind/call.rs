//! Functions: plain ones, aggregates, window functions, and those that ask for the session.

use super::operators;
use super::query::sort_key;
use super::rows::{row_or_null, whole_row};
use super::{AGGREGATE, Binder, Scope, object_name};
use crate::aggregates;
use crate::catalog::Column;
use crate::catalog::system::{PRETTY_CONSTRAINTDEF, PRETTY_TRIGGERDEF, SHARED};
use crate::error::{fail, state, unsupported};
use crate::expr::{Comparison, Expr, Node};
use crate::functions::{self, coerce, known};
use crate::parse::dialect::BETWEEN_SYMMETRIC;
use crate::parse::prefixes::VARIADIC;
use crate::plan::outward;
use crate::types::Type;
use crate::types::cast::{self, Context};
use nestor_model::{Result, Value};
use nestor_planner::relation::{ApplyKind, Call, Relation, SortKey};
use sqlparser::ast::{
    DuplicateTreatment, Expr as Ast, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments,
    Value as Literal,
};
use std::borrow::Cow;

/// The arguments of a call.
pub(super) fn arguments(call: &Function) -> Result<Vec<FunctionArg>> {
    match &call.args {
        FunctionArguments::None => Ok(Vec::new()),
        FunctionArguments::List(list) => Ok(list.args.clone()),
        FunctionArguments::Subquery(_) => unsupported("a subquery as the argument of a function"),
    }
}

/// Whether the binder itself knows a function of this name, or it is an aggregate, a window function or one that gives rows.
pub(super) fn is_built_in(name: &str) -> bool {
    aggregates::is_aggregate(name)
        || aggregates::is_hypothetical(name)
        || functions::is_of_records(name)
        || !matches!(functions::table(name, &[]), Ok(None))
        || matches!(
            name,
            "row"
                | "array"
                | "coalesce"
                | "greatest"
                | "least"
                | "nullif"
                | "grouping"
                | "row_number"
                | "rank"
                | "dense_rank"
                | "percent_rank"
                | "cume_dist"
                | "ntile"
                | "lag"
                | "lead"
                | "first_value"
                | "last_value"
                | "nth_value"
                | "all"
                | "any"
        )
}

/// What is said of an aggregate where there can be none; who knows the clause says that.
pub(super) const AGGREGATE_HERE: &str = "aggregate functions are not allowed here";

/// The number of an object, or null when there is none of the name.
fn or_null(found: Result<Expr>, ty: Type) -> Result<Expr> {
    match found {
        Err(missing) if matches!(&*state(&missing), "42P01" | "42725" | "42883" | "42704" | "3F000") => {
            Ok(Expr::constant(Value::Null, ty))
        }
        found => found,
    }
}

impl Binder<'_> {
    /// The arguments of a call but for parameters without a type: a client has a place for what a function returns among them.
    pub(super) fn without_void<'a>(&self, args: &'a [FunctionArg]) -> Cow<'a, [FunctionArg]> {
        let is_void = |arg: &FunctionArg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(Ast::Value(value))) => match &value.value {
                Literal::Placeholder(name) => {
                    let number = name.strip_prefix('$').and_then(|number| number.parse::<usize>().ok());
                    let ty = number.and_then(|number| self.params.get(number.checked_sub(1)?));
                    ty == Some(&Type::Void)
                }
                _ => false,
            },
            _ => false,
        };
        match args.iter().any(is_void) {
            true => args.iter().filter(|arg| !is_void(arg)).cloned().collect(),
            false => Cow::Borrowed(args),
        }
    }

    /// Binds a call.
    pub(super) fn call(&mut self, call: &Function, scope: &Scope) -> Result<Expr> {
        let mut given: Function;
        let mut call = call;
        if let FunctionArguments::List(list) = &call.args
            && let Cow::Owned(args) = self.without_void(&list.args)
        {
            given = call.clone();
            if let FunctionArguments::List(list) = &mut given.args {
                list.args = args;
            }
            call = &given;
        }
        let (schema, name) = object_name(&call.name)?;
        if let Some(found) = self.routine_call((schema.as_deref(), &name), call, scope)? {
            return Ok(found);
        }
        if let FunctionArguments::Subquery(query) = &call.args {
            if name == "array" {
                return self.array_subquery(query, scope);
            }
        }
        let (mut distinct, mut order_by) = (false, Vec::new());
        let mut star = false;
        let mut asts: Vec<&Ast> = Vec::new();
        let ordered;
        let wholes = rows_of_tables(call);
        if let FunctionArguments::List(list) = &call.args {
            distinct = matches!(list.duplicate_treatment, Some(DuplicateTreatment::Distinct));
            for clause in &list.clauses {
                match clause {
                    FunctionArgumentClause::OrderBy(order) => order_by.clone_from(order),
                    _ => return unsupported("a clause within the arguments of a function"),
                }
            }
            ordered = super::named::in_order(&name, &list.args)?;
            let given = if ordered.is_some() { &[][..] } else { &list.args };
            asts.extend(ordered.iter().flatten());
            for (arg, whole) in given.iter().zip(&wholes) {
                match arg {
                    _ if name != "row" && whole.is_some() => asts.extend(whole),
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => asts.push(expr),
                    FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => star = true,
                    FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(_)) if name == "row" => {}
                    FunctionArg::Named { .. } | FunctionArg::ExprNamed { .. }
                        if !functions::is_known(&name) && !is_built_in(&name) =>
                    {
                        return Err(crate::error::no_function(format!("{name}(…)")));
                    }
                    _ => return unsupported("arguments of this form"),
                }
            }
        }
        if name == "row"
            && call.over.is_none()
            && let FunctionArguments::List(list) = &call.args
            && list.args.iter().any(is_of_table)
        {
            return self.row_of_tables(&list.args, scope);
        }
        if let Some((array, leading)) = asts.split_last()
            && let Some(array) = variadic_argument(array)
        {
            let leading = leading.iter().map(|arg| self.expr(arg, scope)).collect::<Result<_>>()?;
            let array = self.expr(array, scope)?;
            return functions::spread::call(&name, leading, array);
        }
        if name == "row" && call.over.is_none() && !star {
            let items = asts.iter().map(|item| self.expr(item, scope)).collect::<Result<_>>()?;
            return Ok(Node::Row(items).into());
        }
        if call.null_treatment.is_some() {
            return unsupported("IGNORE NULLS");
        }
        let is_window = matches!(
            name.as_str(),
            "row_number"
                | "rank"
                | "dense_rank"
                | "percent_rank"
                | "cume_dist"
                | "ntile"
                | "lag"
                | "lead"
                | "first_value"
                | "last_value"
                | "nth_value"
        );
        let is_hypothetical = !call.within_group.is_empty() && aggregates::is_hypothetical(&name);
        if is_hypothetical || aggregates::is_aggregate(&name) {
            let before = std::mem::replace(&mut self.level()?.in_aggregate, call.over.is_none());
            let rows = self.giving_rows();
            let bound = self.aggregate(&name, &asts, star, (distinct, &order_by), call, scope);
            self.level()?.in_aggregate = before;
            let (bound, ty) = bound?;
            if self.giving_rows() > rows {
                return fail(
                    "0A000",
                    "aggregate function calls cannot contain set-returning function calls",
                );
            }
            return match &call.over {
                Some(_) if before => fail("42803", "aggregate function calls cannot contain window function calls"),
                Some(over) => self.window(call, Vec::new(), Some((bound, ty)), over, scope),
                None => self.collected(&name, call.to_string(), bound, ty),
            };
        }
        if distinct || !order_by.is_empty() || call.filter.is_some() || !call.within_group.is_empty() {
            return fail("42809", format!("{name} is not an aggregate function"));
        }
        let mut populated = None;
        if let FunctionArguments::List(list) = &call.args
            && let Some((name, columns, arg)) = self.populated(&name, &list.args)?
        {
            let Some(columns) = columns else {
                return fail("0A000", format!("could not determine row type for result of {name}"));
            };
            asts = vec![arg];
            populated = Some((name, columns));
        }
        let by_name = matches!(name.as_str(), "row_to_json" | "to_json" | "to_jsonb");
        let keeps_names = name == "coalesce" || name.starts_with("json");
        let rows = self.giving_rows();
        let args: Vec<Expr> = asts
            .iter()
            .map(|arg| match (by_name, keeps_names) {
                (true, _) => self.object_of_row(arg, scope),
                (false, true) => self.with_names(arg, scope),
                (false, false) => self.expr(arg, scope),
            })
            .collect::<Result<_>>()?;
        if name == "coalesce" {
            self.check_no_rows(rows, "COALESCE")?;
        }
        if let Some(over) = &call.over {
            if !is_window {
                return fail(
                    "42809",
                    format!("OVER specified, but {name} is not a window function nor an aggregate function"),
                );
            }
            return self.window(call, args, None, over, scope);
        }
        if is_window {
            return fail("42809", format!("window function {name} requires an OVER clause"));
        }
        // A function that gives rows stands beside the row, once for each.
        let table = match populated {
            Some((name, columns)) => Some(functions::whole_records(name, &args, columns.whole())?),
            None => self.table_function(&name, &args)?,
        };
        if let Some(table) = table {
            table.args.iter().for_each(|arg| self.note_params(arg));
            let fields: Vec<Column> = match table.columns.as_slice() {
                [_] => Vec::new(),
                columns => columns.iter().map(|(name, ty)| Column::new(name, ty.clone())).collect(),
            };
            let table = match fields.is_empty() {
                true => table,
                false => functions::as_documents(table),
            };
            let ty = table.columns[0].1.clone();
            let inner = Relation::Function {
                call: table.call,
                args: table.args.iter().map(outward).collect(),
                width: 1,
            };
            // The same function of a select list and its order gives its rows once.
            let (shown, written) = (format!("{inner:?}"), Some(call.to_string()));
            let is_volatile = table.args.iter().any(Expr::is_volatile);
            let same = |own: &super::Pending| own.written == written && format!("{:?}", own.inner) == shown;
            if let Some(at) = self.pending.iter().position(same).filter(|_| !is_volatile) {
                return Ok(Expr::column(super::PENDING + at, "subquery", ty));
            }
            let found = self.subquery(inner, ApplyKind::Lateral { keeps: false }, ty);
            if let Some(pending) = self.pending.last_mut() {
                (pending.fields, pending.written) = (fields, written);
            }
            return Ok(found);
        }
        self.function_call(&name, args)
    }

    /// `ROW(t.*, x)`: the columns of a table are ones of the row.
    fn row_of_tables(&mut self, args: &[FunctionArg], scope: &Scope) -> Result<Expr> {
        let mut items = Vec::new();
        for arg in args {
            match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => items.push(self.expr(expr, scope)?),
                FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name)) => {
                    let table = super::parts(name);
                    let bound = self.name(&table[table.len().saturating_sub(1)..], scope)?;
                    match bound.node() {
                        Node::Row(columns) => items.extend(columns.iter().cloned()),
                        _ => return unsupported("a row of this form"),
                    }
                }
                _ => return unsupported("arguments of this form"),
            }
        }
        Ok(Node::Row(items).into())
    }

    /// A column that stands for an aggregate of the query whose columns it is of: this one or, when it names columns of outer queries
    /// alone, the nearest of these.
    ///
    /// Errors: 42803 where that query takes no aggregates.
    fn collected(&mut self, name: &str, written: String, call: Call<Expr>, ty: Type) -> Result<Expr> {
        let (mut own, mut nearest) = (false, None);
        let exprs = || {
            call.args
                .iter()
                .chain(&call.filter)
                .chain(call.order.iter().map(|key| &key.by))
        };
        for expr in exprs() {
            expr.for_each_column(&mut |_| own = true);
            expr.for_each_outer(&mut |levels, _| {
                nearest = Some(nearest.map_or(levels, |least: usize| least.min(levels)))
            });
        }
        let levels = if own { 0 } else { nearest.unwrap_or(0) };
        let own_level = self.levels.len().checked_sub(1);
        let at = match levels {
            // VALUES and what else is no SELECT has no level of its own.
            0 if self.outer_levels.last().is_some_and(|around| *around == own_level) => None,
            0 => own_level,
            levels => self.outer_levels[self.outer_levels.len() - levels],
        };
        let Some(level) = at.and_then(|at| self.levels.get_mut(at)) else {
            return fail("42803", AGGREGATE_HERE);
        };
        if level.in_aggregate {
            return fail("42803", "aggregate function calls cannot be nested");
        }
        if !level.allows_aggregates {
            return fail("42803", AGGREGATE_HERE);
        }
        let outside = |expr: &Expr| match levels {
            0 => expr.clone(),
            levels => inside_out(expr, levels),
        };
        let by = |key: &SortKey<Expr>| SortKey {
            by: outside(&key.by),
            ..key.clone()
        };
        let is_volatile = exprs().any(Expr::is_volatile);
        let call = Call {
            args: call.args.iter().map(outside).collect(),
            filter: call.filter.as_ref().map(outside),
            order: call.order.iter().map(by).collect(),
            ..call
        };
        // The same aggregate, of the same columns and written in the same way, is computed once.
        let shown = format!("{call:?}");
        let is_same = |(own, text): (&Call<Expr>, &String)| *text == written && format!("{own:?}") == shown;
        let found = level.aggregates.iter().zip(&level.written).position(is_same);
        let found = found.filter(|_| !is_volatile);
        let place = AGGREGATE + found.unwrap_or(level.aggregates.len());
        if found.is_none() {
            level.aggregates.push(call);
            level.written.push(written);
        }
        Ok(match levels {
            0 => Expr::column(place, name, ty),
            levels => Node::Outer {
                levels,
                index: place,
                name: name.to_owned(),
                ty,
            }
            .into(),
        })
    }

    /// An expression; a row of a table as an object whose fields are its columns.
    fn object_of_row(&mut self, arg: &Ast, scope: &Scope) -> Result<Expr> {
        let bound = self.expr(arg, scope)?;
        let (Ast::Identifier(_), Node::Row(items)) = (arg, bound.node()) else {
            return Ok(bound);
        };
        let mut fields = Vec::with_capacity(items.len() * 2);
        for item in items {
            let name = match item.node() {
                Node::Column { name, .. } | Node::Outer { name, .. } => name.as_str(),
                _ => return Ok(bound),
            };
            fields.push(Expr::constant(Value::String(name.into()), Type::Text));
            fields.push(self.with_names_of_numbers(item.clone())?);
        }
        let is_optional = self.is_optional_row(arg, &bound, scope);
        let object = functions::call("jsonb_build_object", fields)?;
        Ok(if is_optional {
            row_or_null(bound, object)
        } else {
            object
        })
    }

    fn aggregate(
        &mut self,
        name: &str,
        asts: &[&Ast],
        star: bool,
        (distinct, order_by): (bool, &[sqlparser::ast::OrderByExpr]),
        call: &Function,
        scope: &Scope,
    ) -> Result<(Call<Expr>, Type)> {
        check_order_within(name, call, distinct || !order_by.is_empty(), distinct)?;
        let by_name = matches!(name, "json_agg" | "jsonb_agg");
        let mut args: Vec<Expr> = asts
            .iter()
            .map(|arg| match by_name {
                true => self.object_of_row(arg, scope),
                false if name == "array_agg" || name.starts_with("json") => self.with_names(arg, scope),
                false => self
                    .expr(arg, scope)
                    .map(|bound| match self.is_optional_row(arg, &bound, scope) {
                        true => row_or_null(bound.clone(), bound),
                        false => bound,
                    }),
            })
            .collect::<Result<_>>()?;
        let mut order = Vec::new();
        for item in order_by.iter().chain(&call.within_group) {
            let by = self.expr(&item.expr, scope)?;
            order.push(sort_key(by, item));
        }
        let written = args.clone();
        let hypothetical = match !call.within_group.is_empty() && aggregates::is_hypothetical(name) {
            true => Some(aggregates::bind_hypothetical(name, &args, &order)?),
            false => None,
        };
        args.extend(call.within_group.iter().zip(&order).map(|(_, key)| key.by.clone()));
        let filter = call
            .filter
            .as_ref()
            .map(|filter| self.condition(filter, scope, "FILTER"))
            .transpose()?;
        let bound = match hypothetical {
            Some(bound) => bound,
            None => aggregates::bind(name, args, star)?,
        };
        // PostgreSQL finds what is distinct by sorting, so that what is collected comes in order.
        let collects = name.ends_with("_agg");
        let is_argument = |key: &SortKey<Expr>| written.iter().any(|arg| arg.is_same(&key.by));
        if distinct && !order_by.is_empty() && !order.iter().all(is_argument) {
            return fail(
                "42P10",
                "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list",
            );
        }
        if distinct && collects && order.is_empty() {
            order.extend(bound.args.iter().map(|by| SortKey {
                by: by.clone(),
                descending: false,
                nulls_first: false,
            }));
        }
        let call = Call {
            function: bound.function,
            args: bound.args,
            distinct,
            filter,
            order,
        };
        Ok((call, bound.ty))
    }

    /// A function applied to bound arguments.
    pub(super) fn function_call(&mut self, name: &str, mut args: Vec<Expr>) -> Result<Expr> {
        if let Some(found) = self.operator_function(name, &args)? {
            return Ok(found);
        }
        if let Some(found) = self.right_asked(name, &args)? {
            return Ok(found);
        }
        let makes_json = matches!(name, "to_json" | "to_jsonb" | "row_to_json")
            || name.starts_with("json_build_")
            || name.starts_with("jsonb_build_");
        if makes_json {
            let each = args.into_iter().map(|arg| self.with_names_of_numbers(arg));
            args = each.collect::<Result<_>>()?;
        }
        let text = |value: Option<String>| match value {
            Some(value) => Expr::constant(Value::String(value.into()), Type::Text),
            None => Expr::constant(Value::Null, Type::Text),
        };
        let name_of = |value: Option<String>| {
            let value = value.map_or(Value::Null, |value| Value::String(value.into()));
            Expr::constant(value, Type::Name)
        };
        // What drivers register for results of procedures comes as a parameter of no type.
        args.retain(|arg| !matches!(arg.node(), Node::Param(_, Type::Void)));
        match (name, args.len()) {
            ("coalesce", 1..) => {
                let (args, ty) = self.unified(args, "COALESCE")?;
                Ok(Node::Coalesce(args, ty).into())
            }
            ("greatest" | "least", 1..) => {
                let (args, _) = self.unified(args, "GREATEST/LEAST")?;
                Ok(Node::Extreme(args, name == "greatest").into())
            }
            (BETWEEN_SYMMETRIC, 3) => {
                let args: Vec<Expr> = args.into_iter().map(operators::repeated).collect::<Result<_>>()?;
                let mut between = |low: &Expr, high: &Expr| -> Result<Expr> {
                    let from = self.comparison(Comparison::GreaterEqual, args[0].clone(), low.clone())?;
                    Ok(from.and(self.comparison(Comparison::LessEqual, args[0].clone(), high.clone())?))
                };
                let ways = vec![between(&args[1], &args[2])?, between(&args[2], &args[1])?];
                Ok(Node::Or(ways).into())
            }
            ("nullif", 2) => {
                let second = args.pop().unwrap_or_else(|| Expr::bool(false));
                let mut first = args.pop().unwrap_or_else(|| Expr::bool(false));
                if first.ty() == Type::Unknown {
                    first = self.alike(first, second.clone(), "=")?.0;
                }
                let ty = first.ty();
                if first.is_volatile() || first.is_large() {
                    // Its value is asked for once.
                    let (first, second) = self.alike(first, second, "=")?;
                    let found = functions::call("null if equal", vec![first, second])?;
                    return coerce(found, &ty, Context::Explicit);
                }
                let equal = self.comparison(Comparison::Equal, first.clone(), second)?;
                Ok(Node::Case {
                    operand: None,
                    arms: vec![(equal, Expr::constant(Value::Null, ty.clone()))],
                    otherwise: Some(first),
                    ty,
                }
                .into())
            }
            ("row_to_json", 1) if matches!(args[0].ty(), Type::Composite(_)) => functions::call("to_json", args),
            ("enum_first" | "enum_last" | "enum_range", 1 | 2)
                if args.iter().any(|arg| matches!(arg.ty(), Type::Enum(_))) =>
            {
                labels_of(name, args)
            }
            ("current_user" | "user" | "current_role", 0) => Ok(name_of(self.catalog.setting("user"))),
            ("session_user", 0) => Ok(name_of(self.catalog.setting("session_user"))),
            ("current_catalog" | "current_database", 0) => Ok(name_of(self.catalog.setting("database"))),
            ("current_schema", 0) => Ok(name_of(self.catalog.setting("schema"))),
            ("pg_my_temp_schema", 0) => {
                let oid = self
                    .catalog
                    .setting("temporary_schema")
                    .and_then(|oid| oid.parse().ok());
                Ok(Expr::constant(Value::Int64(oid.unwrap_or(0)), Type::Oid))
            }
            ("version", 0) => Ok(text(self.catalog.setting("version"))),
            ("pg_client_encoding", 0) => Ok(name_of(self.catalog.setting("client_encoding"))),
            ("txid_current" | "pg_current_xact_id", 0) => {
                // As a routine it takes a transaction.
                self.calls = true;
                functions::call(name, args)
            }
            ("pg_backend_pid", 0) => {
                let pid = self.catalog.setting("pid").and_then(|pid| pid.parse().ok());
                Ok(Expr::constant(pid.map_or(Value::Null, Value::Int32), Type::Int4))
            }
            ("current_schemas", 1) => {
                let implicit = !matches!(args[0].node(), Node::Const(Value::Bool(false), _));
                let path = self.catalog.setting("schemas").unwrap_or_default();
                let own = path.lines().map(str::to_owned);
                let names = implicit.then(|| "pg_catalog".to_owned()).into_iter().chain(own);
                let names = names.map(|name| Value::String(name.into()));
                Ok(Expr::constant(
                    Value::Array(nestor_model::Array::new(names.collect())),
                    Type::Name.array(),
                ))
            }
            ("current_setting", 1 | 2) => match args[0].node() {
                Node::Const(Value::String(name), _) => match self.catalog.setting(name) {
                    Some(value) => Ok(text(Some(value))),
                    None if args.len() == 2 => Ok(text(None)),
                    // It may be there when somebody asks: in a default, in a view, in a branch that is never taken.
                    None => functions::call("unknown_setting", vec![args.swap_remove(0)]),
                },
                _ => {
                    let name = functions::call("lower", vec![args.swap_remove(0)])?;
                    let texts = Expr::constant(known(self.catalog.settings()), Type::Jsonb);
                    functions::call("catalog_text", vec![name, texts])
                }
            },
            ("pg_cancel_backend" | "pg_terminate_backend", 1) => {
                crate::asked::offer(self.catalog.connections());
                functions::call(name, args)
            }
            ("to_regclass", 1) => match args[0].node() {
                Node::Const(Value::String(_), _) => or_null(self.regclass(args.swap_remove(0)), Type::Regclass),
                _ => {
                    let arg = coerce(args.swap_remove(0), &Type::Text, Context::Implicit)?;
                    functions::call("catalog_relation", vec![arg, self.relation_numbers()?])
                }
            },
            ("to_regproc" | "to_regnamespace" | "to_regrole" | "to_regprocedure", 1) => {
                let ty = match name {
                    "to_regproc" => Type::Regproc,
                    "to_regnamespace" => Type::Regnamespace,
                    "to_regrole" => Type::Regrole,
                    _ => Type::Regprocedure,
                };
                match args[0].node() {
                    Node::Const(Value::String(_), _) => or_null(self.object(args.swap_remove(0), &ty), ty),
                    _ => {
                        let numbers = self.object_numbers(&ty)?;
                        self.object_by("catalog_object_or_null", args.swap_remove(0), (&ty, numbers))
                    }
                }
            }
            ("pg_get_userbyid", 1) => {
                args[0] = coerce(args[0].clone(), &Type::Oid, Context::Explicit)?;
                args.push(self.catalog_texts("regrole")?);
                let name = functions::call("catalog_text", args)?;
                coerce(name, &Type::Name, Context::Explicit)
            }
            ("pg_get_serial_sequence", 2) => {
                args.push(Expr::constant(
                    Value::Document(self.catalog.serial_sequences()?),
                    Type::Jsonb,
                ));
                functions::call("catalog_sequence", args)
            }
            ("pg_get_indexdef", 3) => {
                args.truncate(2);
                args.push(self.catalog_texts(name)?);
                functions::call("catalog_part", args)
            }
            (
                "pg_get_indexdef"
                | "pg_get_constraintdef"
                | "pg_get_viewdef"
                | "pg_get_functiondef"
                | "pg_get_triggerdef"
                | "pg_get_function_sqlbody"
                | "pg_get_function_result"
                | "pg_get_function_arguments"
                | "pg_get_function_identity_arguments"
                | "pg_get_partkeydef"
                | "pg_get_partition_constraintdef",
                1..=3,
            ) => {
                let is_pretty = |arg: &Expr| matches!(arg.node(), Node::Const(Value::Bool(true), _));
                let texts = match (name, args.get(1).is_some_and(is_pretty)) {
                    ("pg_get_constraintdef", true) => PRETTY_CONSTRAINTDEF,
                    ("pg_get_triggerdef", true) => PRETTY_TRIGGERDEF,
                    _ => name,
                };
                args.truncate(1);
                args.push(self.catalog_texts(texts)?);
                functions::call("catalog_text", args)
            }
            ("pg_partition_root", 1) => {
                let of = self.regclass(args.swap_remove(0))?;
                functions::call("catalog_root", vec![of, self.catalog_texts("pg_partition_tree")?])
            }
            ("pg_index_column_has_property", 3) => {
                let property = args.remove(2);
                args.push(self.catalog_texts(name)?);
                let order = functions::call("catalog_part", args)?;
                functions::call("catalog_property", vec![order, property])
            }
            ("pg_relation_is_updatable", 2) => {
                args.truncate(1);
                args[0] = coerce(args[0].clone(), &Type::Oid, Context::Explicit)?;
                args.push(self.catalog_texts(name)?);
                let known = coerce(functions::call("catalog_text", args)?, &Type::Int4, Context::Explicit)?;
                let none = Expr::constant(Value::Int32(0), Type::Int4);
                self.function_call("coalesce", vec![known, none])
            }
            ("pg_sequence_last_value", 1) => {
                args[0] = coerce(args[0].clone(), &Type::Oid, Context::Explicit)?;
                args.push(self.catalog_texts(name)?);
                coerce(functions::call("catalog_text", args)?, &Type::Int8, Context::Explicit)
            }
            ("pg_relation_size", 1 | 2) | ("pg_table_size" | "pg_total_relation_size" | "pg_indexes_size", 1) => {
                if let Some(fork) = args.get(1)
                    && !matches!(fork.node(), Node::Const(Value::String(fork), _) if **fork == *"main")
                {
                    return unsupported("a fork of a relation other than main");
                }
                let of = self.regclass(args.swap_remove(0))?;
                self.size(name, of)
            }
            ("pg_database_size", 1) => self.size(name, args.swap_remove(0)),
            ("pg_table_is_visible" | "pg_type_is_visible", 1) => {
                let number = coerce(args.swap_remove(0), &Type::Oid, Context::Explicit)?;
                let key = coerce(number.clone(), &Type::Text, Context::Explicit)?;
                let hidden = functions::call("catalog_text", vec![key, self.catalog_texts(name)?])?;
                let plain = functions::call(name, vec![number])?;
                Ok(plain.and(Node::IsNull(hidden, false).into()))
            }
            ("to_regtype", 1) => {
                let asked = coerce(args.swap_remove(0), &Type::Text, Context::Implicit)?;
                functions::call("catalog_type_or_null", vec![asked, self.type_numbers()?])
            }
            ("format_type", 2) => {
                let plain = args.clone();
                let number = coerce(args.swap_remove(0), &Type::Oid, Context::Explicit)?;
                let key = coerce(number, &Type::Text, Context::Explicit)?;
                let plain = functions::call(name, plain)?;
                let own = functions::call("catalog_text", vec![key, self.catalog_texts(name)?])?;
                Ok(Node::Coalesce(vec![own, plain], Type::Text).into())
            }
            ("obj_description", 1 | 2) | ("col_description" | "shobj_description", 2) => {
                let constant = |text: &str| Expr::constant(Value::String(text.into()), Type::Text);
                let second = args.get(1).cloned();
                let (class, column) = match (name, second) {
                    ("col_description", Some(column)) => (constant("pg_class"), column),
                    ("shobj_description", Some(class)) => {
                        let class = coerce(class, &Type::Text, Context::Implicit)?;
                        (functions::call("concat", vec![constant(SHARED), class])?, constant("0"))
                    }
                    (_, Some(class)) => (class, constant("0")),
                    (_, None) => (constant(""), constant("0")),
                };
                let number = coerce(args.swap_remove(0), &Type::Oid, Context::Explicit)?;
                let key = functions::call("concat_ws", vec![constant("/"), number, class, column])?;
                let texts = Expr::constant(known(self.catalog.descriptions()?), Type::Jsonb);
                functions::call("catalog_text", vec![key, texts])
            }
            ("grouping", 1..) => functions::call("grouping", args),
            _ => functions::call(name, args),
        }
    }

    /// A function whose value are rows, if that is one of the name.
    ///
    /// Errors: those of its arguments.
    pub(super) fn table_function(&mut self, name: &str, args: &[Expr]) -> Result<Option<functions::Table>> {
        let table = match (name, args) {
            ("aclexplode", [list]) => {
                let numbers = self.numbers_by_name("regrole")?;
                functions::table(name, &[list.clone(), numbers])?
            }
            ("pg_partition_tree" | "pg_partition_ancestors", [of]) => {
                let of = self.regclass(of.clone())?;
                functions::table(name, &[of, self.catalog_texts("pg_partition_tree")?])?
            }
            _ => functions::table(name, args)?,
        };
        if let Some(table) = &table {
            table.args.iter().for_each(|arg| self.note_params(arg));
        }
        Ok(table)
    }

    /// Expressions as ones of a common type.
    ///
    /// Errors: 42804.
    pub(super) fn unified(&mut self, args: Vec<Expr>, what: &str) -> Result<(Vec<Expr>, Type)> {
        let types: Vec<Type> = args.iter().map(Expr::ty).collect();
        let Some(ty) = cast::common(&types) else {
            let [a, .., b] = types.as_slice() else {
                return fail("42804", format!("{what} types cannot be matched"));
            };
            return fail("42804", format!("{what} types {a} and {b} cannot be matched"));
        };
        let args = args
            .into_iter()
            .map(|arg| coerce(arg, &ty, Context::Implicit))
            .collect::<Result<_>>()?;
        Ok((args, ty))
    }
}

/// Rows of tables among arguments, as `t.*`: what names the table alone.
fn rows_of_tables(call: &Function) -> Vec<Option<Ast>> {
    let FunctionArguments::List(list) = &call.args else {
        return Vec::new();
    };
    let whole = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name)) => whole_row(name),
        _ => None,
    };
    list.args.iter().map(whole).collect()
}

/// The array of the last arguments.
fn variadic_argument(arg: &Ast) -> Option<&Ast> {
    let Ast::Function(call) = arg else { return None };
    match (object_name(&call.name).ok()?.1.as_str(), &call.args) {
        (VARIADIC, FunctionArguments::List(list)) => match list.args.as_slice() {
            [FunctionArg::Unnamed(FunctionArgExpr::Expr(array))] => Some(array),
            _ => None,
        },
        _ => None,
    }
}

fn is_of_table(arg: &FunctionArg) -> bool {
    matches!(arg, FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(_)))
}

/// An expression of a query as one of the query so many levels around it, on whose columns alone it depends.
fn inside_out(expr: &Expr, by: usize) -> Expr {
    match expr.node() {
        Node::Outer {
            levels,
            index,
            name,
            ty,
        } if *levels == by => Expr::column(*index, name.clone(), ty.clone()),
        Node::Outer {
            levels,
            index,
            name,
            ty,
        } => Node::Outer {
            levels: levels - by,
            index: *index,
            name: name.clone(),
            ty: ty.clone(),
        }
        .into(),
        _ => expr.map(&mut |part| inside_out(part, by)),
    }
}

/// The labels of an enum: the first, the last, those from one to another. Values of enums are the places of their labels.
///
/// Errors: 42883 for two enums.
fn labels_of(name: &str, args: Vec<Expr>) -> Result<Expr> {
    let ty = args.iter().map(Expr::ty).find(|ty| matches!(ty, Type::Enum(_)));
    let Some(Type::Enum(own)) = ty else {
        return unsupported("labels of what is no enum");
    };
    let ty = Type::Enum(own.clone());
    let last = i32::try_from(own.labels.len()).unwrap_or(i32::MAX) - 1;
    let place = |at: i32| Expr::constant(Value::Int32(at), ty.clone());
    match (name, args.as_slice()) {
        ("enum_first", [_]) => Ok(place(0)),
        ("enum_last", [_]) => Ok(place(last)),
        ("enum_range", args) => {
            let all = (0..=last).map(Value::Int32).collect();
            let all = Expr::constant(Value::Array(nestor_model::Array::new(all)), ty.clone().array());
            if args.len() < 2 {
                return Ok(all);
            }
            let mut out = vec![all];
            for arg in args {
                out.push(coerce(arg.clone(), &ty, Context::Implicit)?);
            }
            functions::call("enum_range", out)
        }
        _ => Err(crate::error::no_function(format!("{name}({ty}, {ty})"))),
    }
}

/// Refuses WITHIN GROUP of functions that take none, and those that want one without it.
///
/// Errors: 42809, 42601 for other clauses beside it.
fn check_order_within(name: &str, call: &Function, has_others: bool, distinct: bool) -> Result<()> {
    let wants = matches!(name, "percentile_cont" | "percentile_disc" | "mode");
    match (call.within_group.is_empty(), wants) {
        (true, true) => fail(
            "42809",
            format!("WITHIN GROUP is required for ordered-set aggregate {name}"),
        ),
        (false, _) if distinct => fail("42601", "cannot use DISTINCT with WITHIN GROUP"),
        (false, _) if has_others => fail("42601", "cannot use multiple ORDER BY clauses with WITHIN GROUP"),
        (false, false) if !aggregates::is_hypothetical(name) => fail(
            "42809",
            format!("{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP"),
        ),
        _ => Ok(()),
    }
}
