//! Statements of blocks, which run as parts of the statement that runs the block.

use super::super::named::{Named as Uses, Names};
use super::{Place, Rows, Running, called, context, run_block, run_call};
use crate::bind::write::writes;
use crate::error::{fail, state, unsupported};
use crate::parse::own::{self, Own};
use crate::parse::procedural::Conflict;
use crate::run::deferred::Waiting;
use crate::run::planned::PlanCell;
use crate::run::query::{self, Field};
use crate::settings;
use crate::types::Type;
use crate::write::{WriteCell, deferred};
use crate::{asked, ddl, write};
use nestor_database::parameters::Param;
use nestor_model::{Error, Namespace, Result, Value};
use sqlparser::ast::{self, Set, Statement as Ast};
use std::sync::Arc;
use std::time::Duration;

/// A statement that blocks run again.
struct Prepared {
    ast: Arc<Ast>,
    types: Vec<Type>,
    plan: PlanCell,
    writes: WriteCell,
    uses: Arc<Uses>,
}

/// Where a part of a block began that may be taken back.
pub(super) struct Mark {
    asked: (usize, usize),
    settings: Option<std::collections::BTreeMap<String, String>>,
    deferred: usize,
}

impl Running<'_, '_> {
    /// Begins a part of a block that may be taken back.
    pub(super) fn begin_part(&mut self, name: &str) -> Mark {
        if let Some(txn) = self.statement.txn.borrow_mut().as_mut() {
            txn.set_savepoint(name);
        }
        let deferred = self.facts.deferred.savepoints();
        self.facts.deferred.set_savepoint();
        Mark {
            asked: asked::mark(),
            settings: Some(self.facts.settings.clone()),
            deferred,
        }
    }

    /// Ends it, and takes back what it did if that is wanted.
    pub(super) fn end_part(&mut self, name: &str, mark: &Mark, takes_back: bool) {
        if let Some(txn) = self.statement.txn.borrow_mut().as_mut() {
            if takes_back {
                txn.roll_back_to(name);
            }
            txn.release_savepoint(name);
        }
        if takes_back {
            self.facts.deferred.roll_back_to(mark.deferred);
            asked::back_to(mark.asked);
            self.asked = self.asked.min(mark.asked.0);
            if let Some(settings) = &mark.settings {
                self.facts.settings.clone_from(settings);
            }
        }
        self.facts.deferred.release(mark.deferred);
    }

    /// Runs a statement with the variables, or with what is given in their place, and gathers what it gives.
    pub(super) fn rows(&mut self, text: &str, given: &[(Type, Value)]) -> Result<Rows> {
        if !given.is_empty() {
            return self.computed(text, given);
        }
        let named = self.with_parameters(text)?;
        self.places = named.places;
        let ran = self.run(&named.text, named.given, named.names);
        ran.map_err(|told| match named.missing.first() {
            Some((record, field)) if matches!(state(&told).as_str(), "42P01" | "42703") => {
                crate::error::error("42703", format!("record \"{record}\" has no field \"{field}\""))
            }
            _ => told,
        })
    }

    /// Runs a statement whose text was computed, without the variables.
    pub(super) fn computed(&mut self, text: &str, given: &[(Type, Value)]) -> Result<Rows> {
        self.places.clear();
        self.run(text, given.to_vec(), Vec::new())
    }

    /// The statement of a text, read once.
    fn prepared(&mut self, text: &str, types: &[Type]) -> Result<Arc<Prepared>> {
        let is_it = |own: &Prepared| own.types == types;
        // What names mean depends on which trigger calls the function.
        let keeps = self.facts.transition.is_empty();
        if let Some(known) = self.facts.routines.kept(text, is_it).filter(|_| keeps) {
            return Ok(known);
        }
        let mut statements = crate::parse::parse(text)?;
        let (Some(ast), true) = (statements.pop(), statements.is_empty()) else {
            return fail("42601", "a step of a block is one statement");
        };
        let prepared = Arc::new(Prepared {
            ast: Arc::new(ast),
            types: types.to_vec(),
            plan: PlanCell::default(),
            writes: WriteCell::default(),
            uses: Names::default().of(text),
        });
        if keeps {
            self.facts.routines.keep(text, prepared.clone());
        }
        Ok(prepared)
    }

    /// Has nobody drop or alter the collections that a statement names.
    fn share(&self, uses: &Uses) -> Result<()> {
        let statement = self.statement;
        let limit_ms = statement.database.node.parameters.number(Param::TransactionLockMillis);
        let at_most = u64::try_from(limit_ms).ok().map(Duration::from_millis);
        let mut txn = statement.txn.borrow_mut();
        match txn.as_mut() {
            Some(txn) => {
                let ids = uses.collections(&txn.ws, statement.db());
                txn.collections.share(&ids, at_most, &statement.interrupt)
            }
            None => fail("25P01", "there is no transaction in progress"),
        }
    }

    /// Whether its routine may change something.
    fn check_volatile(&self, verb: &str) -> Result<()> {
        match self.routine.as_ref().is_some_and(|routine| !routine.is_volatile()) {
            true => fail("0A000", format!("{verb} is not allowed in a non-volatile function")),
            false => Ok(()),
        }
    }

    /// Whether it may change something.
    fn check_writes(&self, verb: &str) -> Result<()> {
        self.check_volatile(verb)?;
        match self.facts.is_read_only() {
            true => fail("25006", format!("cannot execute {verb} in a read-only transaction")),
            false => Ok(()),
        }
    }

    fn run(&mut self, text: &str, given: Vec<(Type, Value)>, names: Vec<Option<String>>) -> Result<Rows> {
        self.settle_settings();
        let (types, params): (Vec<Type>, Vec<Value>) = given.into_iter().unzip();
        let prepared = self.prepared(text, &types)?;
        self.share(&prepared.uses)?;
        if self.routine.as_ref().is_none_or(|routine| routine.is_volatile()) {
            self.statement.refresh();
        }
        let names = match self.conflict {
            Conflict::Variable => Vec::new(),
            _ => names,
        };
        self.facts
            .routines
            .name_parameters(names, self.conflict == Conflict::Column);
        let ran = self.ran(text, &prepared, &params);
        self.facts.routines.name_parameters(Vec::new(), false);
        self.settle_settings();
        ran.map_err(unplaced)
    }

    fn ran(&mut self, text: &str, prepared: &Prepared, params: &[Value]) -> Result<Rows> {
        let mut out = Rows::default();
        let mut bytes = 0usize;
        let (fields, rows) = (&mut out.fields, &mut out.rows);
        let mut begin = |of: &[Field]| {
            *fields = of.to_vec();
            Ok(())
        };
        let mut give = |row: Vec<Value>| {
            bytes += row.iter().map(Value::weight).sum::<usize>();
            if bytes > super::ROWS_BYTES_MAX {
                return fail("53200", "the rows of a statement of a block take too much memory");
            }
            rows.push(row);
            Ok(())
        };
        let types = &prepared.types;
        match &*prepared.ast {
            ast if writes(ast) => {
                self.check_volatile(write::tag(ast).trim_end_matches(" 0"))?;
                let given = (types.as_slice(), params);
                let of = (ast, Some(&prepared.writes));
                out.count = write::run(
                    self.statement,
                    &self.facts,
                    of,
                    given,
                    (&|_| Ok(()), &mut begin),
                    &mut give,
                )?;
            }
            Ast::Query(query) => {
                if let Some(lock) = query.locks.first() {
                    self.check_writes(&format!("SELECT FOR {}", lock.lock_type))?;
                }
                let mut to = query::Takers {
                    begin: &mut begin,
                    give: &mut give,
                };
                let query = (&**query, &prepared.plan);
                out.count = query::run(self.statement, &self.facts, query, (types, params), &mut to)?;
            }
            ast => out = self.other(text, ast, (types, params))?,
        }
        Ok(out)
    }

    /// Statements that are no queries and write no rows.
    fn other(&mut self, text: &str, ast: &Ast, given: (&[Type], &[Value])) -> Result<Rows> {
        let own = own::of(ast)?;
        match (ast, own) {
            (_, Some(Own::Do { language, code })) => run_block(
                self.statement,
                &self.facts,
                (&language, &code),
                self.may_end && self.parts == 0,
            )?,
            (_, Some(Own::SetConstraints { names, waits })) => self.set_constraints(names.as_deref(), waits)?,
            (_, Some(Own::Maintain(_) | Own::TwoPhase { .. })) => {
                return unsupported(format!("{} within a block", first_word(text)));
            }
            (Ast::Call(call), None) => {
                let gave = run_call(
                    self.statement,
                    &self.facts,
                    call,
                    given,
                    self.may_end && self.parts == 0,
                )?;
                let Some((fields, row)) = gave else {
                    return Ok(Rows::default());
                };
                self.assign_outs(call, &fields, &row)?;
                return Ok(Rows::default());
            }
            (ast, _) if ddl::is_ddl(ast) => {
                self.check_writes(&ddl::verb(text))?;
                self.check_alone(text)?;
                let tag = ddl::run(self.statement, &self.facts, ast, given)?;
                let count = tag.strip_prefix("SELECT ").and_then(|count| count.parse().ok());
                return Ok(Rows {
                    count: count.unwrap_or(0),
                    ..Rows::default()
                });
            }
            (Ast::CreateExtension(create), None) => drop(ddl::extension::create(create)?),
            (Ast::DropExtension(dropped), None) => drop(ddl::extension::drop(dropped)?),
            (Ast::Lock(lock), None) => {
                let tables = ddl::lock::tables(self.statement, &self.facts, lock)?;
                ddl::lock::wait(lock, &tables)?;
                ddl::lock::keep(self.statement, lock, &tables)?;
            }
            (Ast::Truncate(truncate), None) => {
                self.check_writes("TRUNCATE TABLE")?;
                self.check_alone(text)?;
                super::super::truncated(self.statement, &self.facts, truncate)?;
            }
            (Ast::Set(set), None) => self.set_setting(set)?,
            (Ast::Reset(reset), None) => match &reset.reset {
                ast::Reset::ConfigurationParameter(name) => self.ask(&name.to_string(), None, false)?,
                _ => return unsupported("RESET ALL within a block"),
            },
            (Ast::NOTIFY { channel, payload }, None) => {
                let payload = payload.clone().unwrap_or_default();
                asked::notify(crate::bind::ident(channel), payload);
            }
            (
                Ast::StartTransaction { .. }
                | Ast::Commit { .. }
                | Ast::Rollback { .. }
                | Ast::Savepoint { .. }
                | Ast::ReleaseSavepoint { .. },
                _,
            ) => return unsupported("the end of a transaction within a block"),
            _ => return unsupported(format!("{} within a block", first_word(text))),
        }
        Ok(Rows::default())
    }

    /// What a procedure gives goes to the variables that stand in the places of its parameters.
    fn assign_outs(&mut self, call: &ast::Function, fields: &[Field], row: &[Value]) -> Result<()> {
        let Some(targets) = self.call_targets(call) else {
            return Ok(());
        };
        for ((field, value), target) in fields.iter().zip(row).zip(targets) {
            match target {
                Some((at, None)) => self.put(at, (field.clone(), value.clone()))?,
                Some((at, Some(name))) => self.put_field(at, &name, (field.clone(), value.clone()))?,
                None => {
                    let name = &field.name;
                    let message = format!(
                        "procedure parameter \"{name}\" is an output parameter but corresponding argument is not writable"
                    );
                    return fail("42601", message);
                }
            }
        }
        Ok(())
    }

    /// Refuses to change what there is while a statement around this one writes rows.
    fn check_alone(&self, text: &str) -> Result<()> {
        match self.statement.is_within() {
            true => unsupported(format!(
                "{} by a function while a statement writes rows",
                first_words(text)
            )),
            false => Ok(()),
        }
    }

    fn set_constraints(&mut self, names: Option<&[ast::ObjectName]>, waits: bool) -> Result<()> {
        self.check_alone("SET CONSTRAINTS")?;
        let which = names
            .map(|names| deferred::named(self.statement, &self.facts, names, waits))
            .transpose()?;
        self.facts.deferred.choose(which.clone(), waits);
        let is_due = |waiting: &Waiting| {
            let is_named = |(table, name): &(Namespace, String)| *table == waiting.table && *name == waiting.constraint;
            which.as_ref().is_none_or(|which| which.iter().any(is_named))
        };
        match waits {
            true => Ok(()),
            false => deferred::settle(self.statement, &self.facts, &is_due),
        }
    }

    fn set_setting(&mut self, set: &Set) -> Result<()> {
        match settings::assigned_by(set) {
            Some((name, value, is_local)) => self.ask(&name, value, is_local),
            None => unsupported("SET of this form within a block"),
        }
    }

    /// Has the session change a setting when the statement has ended, and the block at once.
    fn ask(&mut self, name: &str, value: Option<String>, is_local: bool) -> Result<()> {
        let name = name.replace('"', "").to_lowercase();
        if name.starts_with("transaction_") || matches!(name.as_str(), "role" | "session_authorization") {
            return unsupported(format!("SET {name} within a block"));
        }
        settings::change(
            &mut self.facts.settings.clone(),
            &self.facts.begun,
            &name,
            value.as_deref(),
        )?;
        asked::set((name, value, is_local));
        Ok(())
    }

    /// Takes note of the settings that were asked for.
    fn settle_settings(&mut self) {
        let all = asked::settings_behind(self.asked);
        if all.is_empty() {
            return;
        }
        self.asked += all.len();
        for (name, value, _) in all {
            // They were looked at when they were asked for, or are when the statement ends.
            let _ = settings::change(&mut self.facts.settings, &self.facts.begun, &name, value.as_deref());
        }
        self.enter_settings();
    }

    /// Runs the statements of a function in SQL; the rows of the last one.
    pub(super) fn statements(&mut self, texts: &[String]) -> Result<Rows> {
        let mut last = Rows::default();
        let name = self
            .routine
            .as_ref()
            .map(|routine| routine.name.clone())
            .unwrap_or_default();
        for (number, text) in (1..).zip(texts) {
            self.statement.interrupt.check()?;
            let done = self.rows(text, &[]);
            last = done.map_err(|told| context::of_statement(told, &name, number))?;
        }
        Ok(last)
    }

    /// The variables in the places of a call's parameters that give something.
    fn call_targets(&self, call: &ast::Function) -> Option<Vec<Option<Place>>> {
        let places = &self.places;
        called::targets(call, &self.facts, self.statement, &|name| {
            let number: usize = name.strip_prefix('$')?.parse().ok()?;
            places.get(number.checked_sub(1)?).cloned()
        })
    }
}

/// An error without a place: that was one in the text of a statement within.
fn unplaced(error: Error) -> Error {
    let Some(extra) = error.extra() else { return error };
    let mut extra = extra.clone();
    for name in ["line", "column_of_line", "word", "before", "position"] {
        extra.remove(name);
    }
    error.with_extra(extra)
}

fn first_word(text: &str) -> String {
    text.split_whitespace().next().unwrap_or("statement").to_uppercase()
}

fn first_words(text: &str) -> String {
    let words: Vec<String> = text.split_whitespace().take(2).map(str::to_uppercase).collect();
    words.join(" ")
}
