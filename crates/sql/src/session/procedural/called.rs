//! Routines that are called: what they are given and what they give.

use super::values::{Variable, assigned};
use super::{Flow, Place, Running, configured};
use crate::bind::polymorphic::{self, Settled};
use crate::bind::{Binder, object_name, resolved};
use crate::catalog::Catalog as _;
use crate::catalog::routines::{Body, Mode, Returns, Routine};
use crate::error::{error, fail};
use crate::parse::procedural::Block;
use crate::run::built_in;
use crate::run::procedures::{Fate, Fired, Procedures, Returned, check_transaction};
use crate::run::query::{self, Field};
use crate::run::tables::{Reading, SessionFacts};
use crate::types::Type;
use crate::types::cast::{Context, exists};
use crate::types::composite::{Attribute, Composite};
use nestor_database::statement::Statement;
use nestor_model::{Array, Result, Value, ValueRef};
use nestor_planner::relation::{Env, Scalar as _};
use sqlparser::ast::{Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments};
use std::sync::Arc;

/// Runs routines for whoever computes rows.
#[derive(Debug)]
pub(in crate::session) struct Blocks;

impl Procedures for Blocks {
    fn call(
        &self,
        statement: &Statement<'_>,
        session: &SessionFacts,
        routine: &Arc<Routine>,
        args: Vec<Value>,
    ) -> Result<Returned> {
        call(statement, session, routine, args, false)
    }

    fn fire(&self, statement: &Statement<'_>, session: &SessionFacts, fired: &Fired<'_>) -> Result<Fate> {
        fire(statement, session, fired)
    }
}

/// The columns of the rows that a routine gives; `None` for one that gives no rows.
pub(super) fn columns(routine: &Routine) -> Option<Vec<(String, Type)>> {
    match &routine.returns {
        Returns::Rows(columns) => {
            let each = columns
                .iter()
                .map(|(name, ty)| (name.clone().unwrap_or_default(), ty.clone()));
            Some(each.collect())
        }
        _ => None,
    }
}

/// The type of a row with these columns.
pub(super) fn row_type(columns: &[(String, Type)]) -> Arc<Composite> {
    let each = columns.iter().map(|(name, ty)| Attribute {
        name: name.clone(),
        ty: ty.clone(),
        modifier: -1,
    });
    Arc::new(Composite::of_row_type(each.collect()))
}

/// A value as a row with these columns: that of the only one, or a row itself.
///
/// Errors: 42804.
pub(super) fn fitted(ty: &Type, value: Value, columns: &[(String, Type)]) -> Result<Vec<Value>> {
    let given: Vec<(Type, Value)> = match (ty, &value) {
        (Type::Composite(own), value) if columns.len() != 1 || !matches!(columns[0].1, Type::Composite(_)) => own
            .attributes
            .iter()
            .map(|own| own.ty.clone())
            .zip(own.values(value))
            .collect(),
        (Type::Record, Value::Array(items)) => items
            .iter()
            .map(|item| crate::types::record::field(item.to_value()))
            .collect(),
        _ => vec![(ty.clone(), value)],
    };
    if given.len() != columns.len() {
        let (given, wanted) = (given.len(), columns.len());
        let told = error("42804", "returned record type does not match expected record type");
        let detail = format!("Number of returned columns ({given}) does not match expected column count ({wanted}).");
        return Err(crate::error::with(told, &[(crate::error::Field::Detail, &detail)]));
    }
    let each = given.into_iter().zip(columns);
    each.map(|((from, value), (_, to))| assigned(value, &from, (to, -1)))
        .collect()
}

/// Calls a routine.
///
/// Errors: those of what it does; 2F005 for one that ends without a value.
pub(super) fn call(
    statement: &Statement<'_>,
    facts: &SessionFacts,
    routine: &Arc<Routine>,
    mut args: Vec<Value>,
    may_end: bool,
) -> Result<Returned> {
    check_transaction(statement)?;
    let _deeper = Running::deeper(facts)?;
    let mut routine = routine.clone();
    // What types stand for that stand for any, and before it the columns that the call says, stand behind the arguments.
    if routine.is_polymorphic() {
        let settled = settled(statement, facts, args.pop())?;
        routine = polymorphic::called(&routine, &settled)?;
    }
    if let Returns::Record(many) = routine.returns
        && args.len() > routine.args.len()
    {
        let defined = defined(args.get(routine.args.len()));
        args.truncate(routine.args.len());
        let mut own = (*routine).clone();
        own.returns = match many {
            true => Returns::Rows(defined.into_iter().map(|(name, ty)| (Some(name), ty)).collect()),
            false => Returns::One(Type::Composite(row_type(&defined))),
        };
        routine = Arc::new(own);
    }
    let gives_rows = matches!(
        routine.returns,
        Returns::Rows(_) | Returns::RowsOf(_) | Returns::Record(true)
    );
    if routine.is_strict && args.iter().any(Value::is_nullish) {
        return Ok(match gives_rows {
            true => Returned::Rows(Vec::new()),
            false => Returned::Value(Value::Null),
        });
    }
    if let Returns::RowsOf(_) = routine.returns {
        routine = whole(statement, facts, &routine)?;
    }
    let mut running = Running::new(statement, facts, Some(routine.clone()));
    running.may_end = may_end;
    running.parameters(&routine, args);
    configured::under(&mut running, &routine, |running| running.of_routine(&routine))
}

/// What types stand for in a call, by their numbers.
fn settled(statement: &Statement<'_>, facts: &SessionFacts, types: Option<Value>) -> Result<Settled> {
    let Some(Value::Array(types)) = types else {
        return Ok(Settled::default());
    };
    let number = |value: ValueRef<'_>| crate::types::integer(&value.to_value()).and_then(|oid| u32::try_from(oid).ok());
    let oids: Vec<u32> = types.iter().map(|oid| number(oid).unwrap_or(0)).collect();
    let mut found = query::types_of(statement, facts, &oids)?.into_iter();
    let mut next = || found.next().filter(|ty| *ty != Type::Unknown);
    Ok([next(), next()])
}

/// The columns that a call of a function defines, by the numbers of their types.
fn defined(types: Option<&Value>) -> Vec<(String, Type)> {
    let Some(Value::Array(types)) = types else {
        return Vec::new();
    };
    let each = (1..).zip(types.iter()).map(|(number, oid)| {
        let oid = crate::types::integer(&oid.to_value()).and_then(|oid| u32::try_from(oid).ok());
        (
            format!("column{number}"),
            oid.and_then(Type::of_oid).unwrap_or(Type::Unknown),
        )
    });
    each.collect()
}

/// A routine with the columns of the tables whose rows it takes and gives.
fn whole(statement: &Statement<'_>, facts: &SessionFacts, routine: &Arc<Routine>) -> Result<Arc<Routine>> {
    let read = statement.read_view()?;
    let (op, _) = statement.operation(None)?;
    let reading = Reading::new(statement, read.view(), &op, facts);
    Ok(resolved(&reading, routine)?.unwrap_or_else(|| routine.clone()))
}

impl Running<'_, '_> {
    /// Runs the body of a routine.
    fn of_routine(&mut self, routine: &Routine) -> Result<Returned> {
        match &routine.body {
            Body::Block(block) => {
                self.conflict = block.conflict;
                let done = self.of_block(routine, block);
                if done.is_ok() {
                    self.hand_cursors();
                }
                done.map_err(|told| {
                    let doing = match crate::error::state(&told).as_str() {
                        "2F005" => "",
                        _ => " while casting return value to function's return type",
                    };
                    self.at_end(told, doing)
                })
            }
            Body::Statements(texts) => self.of_statements(routine, texts),
            Body::Query(query) => self.of_statements(routine, &[query.to_string()]),
        }
    }

    /// Declares the parameters of a routine.
    fn parameters(&mut self, routine: &Routine, args: Vec<Value>) {
        let mut args = args.into_iter();
        for own in &routine.parameters {
            let value = match own.mode.is_given() {
                true => args.next().unwrap_or(Value::Null),
                false => Value::Null,
            };
            let name = own.name.as_deref().unwrap_or_default();
            let mut made = Variable::of(name, own.ty.clone(), value);
            made.label = Some(routine.name.clone());
            self.variables.push(made);
            if own.mode != Mode::Table {
                self.args.push(self.variables.len() - 1);
            }
        }
    }

    /// What the OUT parameters and the columns of TABLE have.
    pub(super) fn outs(&self) -> Result<Vec<Value>> {
        let Some(routine) = &self.routine else {
            return fail("42601", "RETURN NEXT must have a parameter");
        };
        let all = routine.parameters.iter().zip(&self.variables[1..]);
        let outs = all.filter(|(own, _)| own.mode.is_result());
        let values = outs.map(|(_, own)| match &own.record {
            Some(record) if record.fields.is_empty() => Ok(Value::Null),
            Some(record) => record.value(&own.ty).map(|(_, value)| value),
            None => Ok(own.value.clone()),
        });
        values.collect()
    }

    fn of_block(&mut self, routine: &Routine, block: &Block) -> Result<Returned> {
        let flow = self.block(block)?;
        if let Flow::Leave { continues, .. } = flow {
            let word = if continues { "CONTINUE" } else { "EXIT" };
            return fail("42601", format!("{word} cannot be used outside a loop"));
        }
        let has_returned = matches!(flow, Flow::Return);
        let has_outs = routine.parameters.iter().any(|own| own.mode.is_result());
        let value = self.results.value.take();
        Ok(match &routine.returns {
            Returns::Rows(_) | Returns::RowsOf(_) | Returns::Record(true) => {
                Returned::Rows(std::mem::take(&mut self.results.rows))
            }
            // As PostgreSQL has it of blocks, and not of functions in SQL.
            Returns::Nothing => Returned::Value(Value::String("".into())),
            Returns::Row(columns) => {
                let values = self.outs()?;
                Returned::Value(made_row(columns, values)?)
            }
            Returns::One(_) if has_outs => Returned::Value(self.outs()?.pop().unwrap_or(Value::Null)),
            _ if !has_returned => return fail("2F005", "control reached end of function without RETURN"),
            Returns::One(ty) => {
                let (field, value) = value.unwrap_or((Field::new("", Type::Unknown), Value::Null));
                Returned::Value(one(ty, &field.ty, value)?)
            }
            Returns::Record(false) => {
                let (field, value) = value.unwrap_or((Field::new("", Type::Unknown), Value::Null));
                Returned::Value(match (&field.ty, value) {
                    (_, Value::Null) => Value::Null,
                    (Type::Composite(own), value) => own.to_row(&value),
                    (Type::Record, value) => value,
                    _ => {
                        return fail(
                            "42804",
                            "cannot return non-composite value from function returning composite type",
                        );
                    }
                })
            }
            Returns::Trigger => return fail("0A000", "trigger functions can only be called as triggers"),
        })
    }

    fn of_statements(&mut self, routine: &Routine, texts: &[String]) -> Result<Returned> {
        let rows = self.statements(texts)?;
        if matches!(routine.returns, Returns::Nothing) {
            return Ok(Returned::Value(Value::Null));
        }
        if rows.fields.is_empty() && rows.rows.is_empty() {
            return Err(routine.mismatch(&[], &[]));
        }
        let types: Vec<Type> = rows.fields.iter().map(|field| field.ty.clone()).collect();
        let mismatch = |columns: &[(String, Type)]| {
            let wanted: Vec<Type> = columns.iter().map(|(_, ty)| ty.clone()).collect();
            routine.mismatch(&types, &wanted)
        };
        let fit = |row: Vec<Value>, columns: &[(String, Type)]| -> Result<Vec<Value>> {
            if let ([ty @ Type::Composite(_)], true) = (types.as_slice(), columns.len() != 1) {
                return fitted(ty, row.into_iter().next().unwrap_or(Value::Null), columns);
            }
            if row.len() != columns.len() {
                return Err(mismatch(columns));
            }
            let each = row.into_iter().zip(&types).zip(columns);
            each.map(
                |((value, from), (_, to))| match from == to || exists(from, to, Context::Assignment) {
                    true => assigned(value, from, (to, -1)),
                    false => Err(mismatch(columns)),
                },
            )
            .collect()
        };
        let first = |columns: &[(String, Type)]| match rows.rows.first() {
            Some(row) => fit(row.clone(), columns).map(Some),
            None => Ok(None),
        };
        Ok(match &routine.returns {
            Returns::Rows(_) => {
                let columns = columns(routine).unwrap_or_default();
                let each = rows.rows.iter().map(|row| fit(row.clone(), &columns));
                Returned::Rows(each.collect::<Result<_>>()?)
            }
            Returns::Record(true) => Returned::Rows(rows.rows),
            Returns::One(ty @ Type::Composite(own)) if types.len() != 1 || types[0] != *ty => {
                let columns: Vec<(String, Type)> = own
                    .attributes
                    .iter()
                    .map(|own| (own.name.clone(), own.ty.clone()))
                    .collect();
                match first(&columns)? {
                    Some(row) => Returned::Value(made_row(&columns, row)?),
                    None => Returned::Value(Value::Null),
                }
            }
            Returns::One(ty) => {
                let row = first(&[(String::new(), ty.clone())])?;
                Returned::Value(row.into_iter().flatten().next().unwrap_or(Value::Null))
            }
            Returns::Row(columns) => match first(columns)? {
                Some(row) => Returned::Value(made_row(columns, row)?),
                None => Returned::Value(Value::Null),
            },
            Returns::Record(false) => {
                let row = rows.rows.into_iter().next();
                Returned::Value(match row {
                    Some(row) => {
                        let items = types.iter().zip(row);
                        let items = items.map(|(ty, value)| crate::types::record::held(ty, value));
                        Value::Array(Array::new(items.collect()))
                    }
                    None => Value::Null,
                })
            }
            Returns::Nothing | Returns::RowsOf(_) | Returns::Trigger => return Err(mismatch(&[])),
        })
    }
}

/// A row of values as one value.
fn made_row(columns: &[(String, Type)], values: Vec<Value>) -> Result<Value> {
    let mut values = values.into_iter();
    let values = std::cell::RefCell::new(&mut values);
    row_type(columns).filled(|_| Ok(values.borrow_mut().next().unwrap_or(Value::Null)))
}

/// What RETURN gives, as one of the type that is declared.
fn one(ty: &Type, from: &Type, value: Value) -> Result<Value> {
    match (ty, from, &value) {
        (ty, _, Value::Null) if !ty.is_constrained() => Ok(Value::Null),
        (Type::Composite(own), from @ (Type::Composite(_) | Type::Record), _) => {
            let columns: Vec<(String, Type)> = own
                .attributes
                .iter()
                .map(|own| (own.name.clone(), own.ty.clone()))
                .collect();
            let row = fitted(from, value, &columns)?;
            let mut values = row.into_iter();
            let values = std::cell::RefCell::new(&mut values);
            own.filled(|_| Ok(values.borrow_mut().next().unwrap_or(Value::Null)))
        }
        (Type::Composite(_), from, _) if *from != Type::Unknown => fail(
            "42804",
            "cannot return non-composite value from function returning composite type",
        ),
        _ => assigned(value, from, (ty, -1)),
    }
}

/// The procedure that a CALL means, and what it is given.
///
/// Errors: 42883, 42809, those of the arguments.
pub(super) fn procedure(
    statement: &Statement<'_>,
    facts: &SessionFacts,
    call: &Function,
    (types, params): (&[Type], &[Value]),
) -> Result<(Arc<Routine>, Vec<Value>)> {
    check_transaction(statement)?;
    let state = statement.state(false)?;
    let (op, _) = statement.operation(None)?;
    let mut reading = Reading::new(statement, &state, &op, facts);
    reading.calls = true;
    let mut binder = Binder::new(&reading, types.to_vec());
    let (routine, args) = binder.procedure(call)?;
    let env = Env {
        op: &op,
        params,
        outer: None,
        effects: Some(&reading),
        compared: None,
    };
    let values = args.iter().map(|arg| arg.value(&[], &env));
    Ok((routine, values.collect::<Result<_>>()?))
}

/// For each parameter of a procedure that gives something the variable that stands in its place, if it is one.
pub(super) fn targets(
    call: &Function,
    facts: &SessionFacts,
    statement: &Statement<'_>,
    place: &dyn Fn(&str) -> Option<Place>,
) -> Option<Vec<Option<Place>>> {
    let (schema, name) = object_name(&call.name).ok()?;
    let FunctionArguments::List(list) = &call.args else {
        return None;
    };
    let given: Vec<Option<String>> = list
        .args
        .iter()
        .map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))
            | FunctionArg::Named {
                arg: FunctionArgExpr::Expr(expr),
                ..
            } => match expr {
                Expr::Value(_) | Expr::Identifier(_) | Expr::CompoundIdentifier(_) => Some(expr.to_string()),
                _ => None,
            },
            _ => None,
        })
        .collect();
    let read = statement.read_view().ok()?;
    let (op, _) = statement.operation(None).ok()?;
    let reading = Reading::new(statement, read.view(), &op, facts);
    let all = reading.routines(schema.as_deref(), &name);
    let routine = all.iter().find(|own| own.is_procedure)?;
    let declared = routine.parameters.iter().enumerate();
    let outs = declared.filter(|(_, own)| own.mode.is_result());
    let each = outs.map(|(at, _)| place(given.get(at)?.as_deref()?));
    Some(each.collect())
}

/// Calls the function of a trigger.
fn fire(statement: &Statement<'_>, facts: &SessionFacts, fired: &Fired<'_>) -> Result<Fate> {
    check_transaction(statement)?;
    let _deeper = Running::deeper(facts)?;
    if fired.schema == Some(built_in::SCHEMA) {
        let mut running = Running::new(statement, facts, None);
        running.of_trigger(fired);
        return match fired.condition {
            Some(condition) if !running.holds(condition)? => Ok(Fate::Same),
            _ => built_in::fire(fired),
        };
    }
    let routine = {
        let read = statement.read_view()?;
        let (op, _) = statement.operation(None)?;
        let reading = Reading::new(statement, read.view(), &op, facts);
        let all = reading.routines(fired.schema, fired.function);
        all.into_iter().find(|own| own.args.is_empty())
    };
    let Some(routine) = routine else {
        return fail("42883", format!("function {}() does not exist", fired.function));
    };
    let (Body::Block(block), Returns::Trigger) = (&routine.body, &routine.returns) else {
        return fail("42P17", format!("function {} must return type trigger", fired.function));
    };
    let mut running = Running::new(statement, facts, Some(routine.clone()));
    running.facts.transition = fired.tables.clone();
    running.of_trigger(fired);
    if let Some(condition) = fired.condition
        && !running.holds(condition)?
    {
        return Ok(Fate::Same);
    }
    running.conflict = block.conflict;
    let Flow::Return = configured::under(&mut running, &routine, |running| running.block(block))? else {
        return fail("2F005", "control reached end of trigger procedure without RETURN");
    };
    let Some((field, value)) = running.results.value.take() else {
        return Ok(Fate::Gone);
    };
    if value.is_nullish() {
        return Ok(Fate::Gone);
    }
    if !fired.is_row {
        return Ok(Fate::Same);
    }
    let columns: Vec<(String, Type)> = fired
        .columns()
        .iter()
        .map(|column| (column.name.clone(), column.declared_type().clone()))
        .collect();
    match &field.ty {
        Type::Composite(_) | Type::Record => {}
        _ => {
            let told = "cannot return non-composite value from function returning composite type";
            return fail("42804", told);
        }
    }
    match fitted(&field.ty, value, &columns) {
        Ok(row) => Ok(Fate::Row(row)),
        Err(told) if crate::error::state(&told) == "42804" => {
            let told = error(
                "42804",
                "returned row structure does not match the structure of the triggering table",
            );
            Err(told)
        }
        Err(told) => Err(told),
    }
}

impl Running<'_, '_> {
    /// Declares what the function of a trigger knows.
    fn of_trigger(&mut self, fired: &Fired<'_>) {
        let attributes = fired.columns().iter().map(|column| Attribute {
            name: column.name.clone(),
            ty: column.declared_type().clone(),
            modifier: column.modifier,
        });
        let ty = Arc::new(Composite::of_row_type(attributes.collect()));
        for (name, row) in [("new", &fired.new), ("old", &fired.old)] {
            let mut own = Variable::of(name, Type::Composite(ty.clone()), Value::Null);
            match (row, &mut own.record) {
                (Some(row), Some(record)) => {
                    for ((_, held), value) in record.fields.iter_mut().zip(row) {
                        held.clone_from(value);
                    }
                    record.is_null = false;
                }
                _ => {
                    // There is none for this event.
                    own.record.iter_mut().for_each(|record| record.is_null = true);
                }
            }
            self.variables.push(own);
        }
        let text = |text: &str| Value::String(text.into());
        let level = if fired.is_row { "ROW" } else { "STATEMENT" };
        let args = Value::Array(Array::new(fired.args.iter().map(|arg| text(arg)).collect()));
        let all = [
            ("tg_name", Type::Name, text(fired.name)),
            ("tg_op", Type::Text, text(fired.event.name())),
            ("tg_when", Type::Text, text(fired.when)),
            ("tg_level", Type::Text, text(level)),
            ("tg_relid", Type::Oid, Value::Int64(i64::from(fired.oid))),
            ("tg_relname", Type::Name, text(&fired.table.name)),
            ("tg_table_name", Type::Name, text(&fired.table.name)),
            ("tg_table_schema", Type::Name, text(&fired.table.schema)),
            (
                "tg_nargs",
                Type::Int4,
                Value::Int32(i32::try_from(fired.args.len()).unwrap_or(0)),
            ),
            ("tg_argv", Type::Text.array(), args),
        ];
        for (name, ty, value) in all {
            self.variables.push(Variable::new(name, ty, value));
        }
    }
}
