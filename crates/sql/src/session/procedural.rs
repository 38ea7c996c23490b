//! DO: a block of PL/pgSQL runs within one transaction, everything or nothing.
//!
//! What stands in it is run as statements of the session. Variables are parameters of these: a name of a variable that stands where a column
//! could, and not behind a dot, is replaced. A part that has handlers begins a savepoint; to handle an error is to go back to it.

use super::{Prepared, Session, Sink};
use crate::bind::write::writes;
use crate::error::{Field as ErrorField, error, fail, state, unsupported, with};
use crate::parse::own;
use crate::parse::procedural::{Block, Destination, Raise, Step, parse, state_of};
use crate::run::planned::PlanCell;
use crate::run::query::{self, Field};
use crate::types::cast::cast;
use crate::types::{Type, output};
use crate::{ddl, notices, write};
use nestor_database::Database;
use nestor_database::observe::op_kind::OpKind;
use nestor_exec::Interrupt;
use nestor_model::{Error, Result, Value};
use sqlparser::ast::Statement as Ast;
use sqlparser::tokenizer::Token;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Blocks that may run within blocks, by EXECUTE.
const NESTED_MAX: usize = 8;
/// Bytes that the rows of a loop may take.
const ROWS_BYTES_MAX: usize = 64 << 20;

/// A variable.
struct Variable {
    name: String,
    ty: Type,
    modifier: i32,
    value: Value,
    is_constant: bool,
    not_null: bool,
    /// The fields of a record, which has no value of its own.
    record: Option<Vec<(Field, Value)>>,
}

impl Variable {
    fn new(name: &str, ty: Type, value: Value) -> Self {
        Self {
            name: name.to_owned(),
            ty,
            modifier: -1,
            value,
            is_constant: false,
            not_null: false,
            record: None,
        }
    }
}

/// What comes after a step.
enum Flow {
    /// The next one.
    Next,
    /// The end of a loop, or its next round.
    Leave { label: Option<String>, continues: bool },
    /// The end.
    Return,
}

/// A block that runs.
struct Running<'d> {
    database: &'d Database,
    variables: Vec<Variable>,
    /// What the handler that runs handles.
    handled: Vec<Error>,
    savepoints: usize,
    interrupt: Interrupt,
}

/// The rows of a statement.
struct Rows {
    fields: Vec<Field>,
    rows: Vec<Vec<Value>>,
    /// How many rows it was about.
    count: u64,
}

impl Session {
    /// Runs a block.
    ///
    /// Errors: those of reading it and of its statements; 0A000 for other languages.
    pub(super) fn run_block(&mut self, database: &Database, language: &str, code: &str) -> Result<()> {
        if language != "plpgsql" {
            return fail("42704", format!("language \"{language}\" does not exist"));
        }
        let block = parse(code)?;
        if self.nested >= NESTED_MAX {
            return fail("54001", "blocks run within blocks too deep");
        }
        let begins = self.block.is_none();
        if begins {
            self.block = Some(self.new_block(true));
        }
        let timeout = self.timeout().map(|ms| Instant::now() + Duration::from_millis(ms));
        let mut running = Running {
            database,
            variables: vec![Variable::new("found", Type::Bool, Value::Bool(false))],
            handled: Vec::new(),
            savepoints: 0,
            interrupt: Interrupt::new(self.slot.kill.clone(), timeout),
        };
        self.nested += 1;
        let result = running.block(self, &block).and_then(|flow| match flow {
            Flow::Next | Flow::Return => Ok(()),
            Flow::Leave { .. } => fail("42601", "EXIT cannot be used outside a loop"),
        });
        self.nested -= 1;
        match (begins, result) {
            (false, result) => result,
            (true, Ok(())) => self.commit(database, false).map(drop),
            (true, Err(error)) => {
                self.roll_back(database, false)?;
                Err(error)
            }
        }
    }
}

impl Running<'_> {
    fn block(&mut self, session: &mut Session, block: &Block) -> Result<Flow> {
        let outside = self.variables.len();
        let result = self.declared(session, block);
        self.variables.truncate(outside);
        result
    }

    fn declared(&mut self, session: &mut Session, block: &Block) -> Result<Flow> {
        for variable in &block.variables {
            let mut own = Variable::new(&variable.name, Type::Unknown, Value::Null);
            if variable.ty.eq_ignore_ascii_case("record") {
                own.record = Some(Vec::new());
                self.variables.push(own);
                continue;
            }
            let text = format!("SELECT CAST(NULL AS {})", variable.ty);
            let rows = self.rows(session, &text, &[])?;
            if let Some(field) = rows.fields.first() {
                (own.ty, own.modifier) = (field.ty.clone(), field.modifier);
            }
            if let Some(value) = &variable.value {
                own.value = self.value(session, value, Some(&variable.ty))?;
            }
            if variable.not_null && own.value.is_nullish() {
                return not_null(&variable.name);
            }
            (own.is_constant, own.not_null) = (variable.is_constant, variable.not_null);
            self.variables.push(own);
        }
        if block.handlers.is_empty() {
            return self.steps(session, &block.steps);
        }
        self.savepoints += 1;
        let name = format!("block {}.{}", session.nested, self.savepoints);
        session.savepoint_here(self.database, &name)?;
        let told = match self.steps(session, &block.steps) {
            Ok(flow) => {
                session.release_here(self.database, &name)?;
                return Ok(flow);
            }
            Err(told) => told,
        };
        let happened = state(&told);
        let handler = block
            .handlers
            .iter()
            .find(|(conditions, _)| conditions.iter().any(|condition| condition.takes(&happened)));
        let Some((_, steps)) = handler else { return Err(told) };
        session.roll_back_here(self.database, &name)?;
        session.release_here(self.database, &name)?;
        let outside = self.variables.len();
        for (name, text) in [("sqlstate", happened.as_str()), ("sqlerrm", told.message())] {
            self.variables
                .push(Variable::new(name, Type::Text, Value::String(text.into())));
        }
        self.handled.push(told);
        let result = self.steps(session, steps);
        self.handled.pop();
        self.variables.truncate(outside);
        result
    }

    fn steps(&mut self, session: &mut Session, steps: &[Step]) -> Result<Flow> {
        for step in steps {
            self.interrupt.check()?;
            match self.step(session, step)? {
                Flow::Next => {}
                other => return Ok(other),
            }
        }
        Ok(Flow::Next)
    }

    fn step(&mut self, session: &mut Session, step: &Step) -> Result<Flow> {
        match step {
            Step::Sql { text, into } => {
                let rows = self.rows(session, text, &[])?;
                match into {
                    Some(into) => self.store(into, rows)?,
                    None if !rows.fields.is_empty() && is_query(text) => {
                        let error = error("42601", "query has no destination for result data");
                        let hint = "If you want to discard the results of a SELECT, use PERFORM instead.";
                        return Err(with(error, &[(ErrorField::Hint, hint)]));
                    }
                    None => self.found(rows.count > 0),
                }
            }
            Step::Perform(text) => {
                let rows = self.rows(session, text, &[])?;
                self.found(rows.count > 0);
            }
            Step::Execute { text, into, using } => {
                let text = self.text(session, text)?;
                let given = self.values(session, using)?;
                let rows = self.rows(session, &text, &given)?;
                if let Some(into) = into {
                    self.store(into, rows)?;
                }
            }
            Step::Assign(name, value) => self.assign(session, name, value)?,
            Step::If { branches, otherwise } => {
                for (condition, steps) in branches {
                    if self.holds(session, condition)? {
                        return self.steps(session, steps);
                    }
                }
                return self.steps(session, otherwise);
            }
            Step::Loop {
                label,
                condition,
                steps,
            } => loop {
                self.interrupt.check()?;
                if let Some(condition) = condition
                    && !self.holds(session, condition)?
                {
                    break;
                }
                match self.round(session, steps, label.as_deref())? {
                    Round::Next => {}
                    Round::Done => break,
                    Round::Beyond(flow) => return Ok(flow),
                }
            },
            Step::ForNumbers { .. } => return self.over_numbers(session, step),
            Step::ForRows { .. } => return self.over_rows(session, step),
            Step::Leave {
                label,
                condition,
                continues,
            } => {
                let leaves = match condition {
                    Some(condition) => self.holds(session, condition)?,
                    None => true,
                };
                if leaves {
                    return Ok(Flow::Leave {
                        label: label.clone(),
                        continues: *continues,
                    });
                }
            }
            Step::Raise(raise) => self.raise(session, raise)?,
            Step::Return => return Ok(Flow::Return),
            Step::Block(block) => return self.block(session, block),
        }
        Ok(Flow::Next)
    }

    fn round(&mut self, session: &mut Session, steps: &[Step], label: Option<&str>) -> Result<Round> {
        Ok(match self.steps(session, steps)? {
            Flow::Next => Round::Next,
            Flow::Leave {
                label: named,
                continues,
            } if named.is_none() || named.as_deref() == label => match continues {
                true => Round::Next,
                false => Round::Done,
            },
            flow => Round::Beyond(flow),
        })
    }

    fn over_numbers(&mut self, session: &mut Session, step: &Step) -> Result<Flow> {
        let Step::ForNumbers {
            label,
            name,
            bounds,
            by,
            reverses,
            steps,
        } = step
        else {
            return Ok(Flow::Next);
        };
        let (from, to) = (self.number(session, &bounds.0)?, self.number(session, &bounds.1)?);
        let by = by.as_ref().map_or(Ok(1), |by| self.number(session, by))?;
        if by <= 0 {
            return fail("22023", "BY value of FOR loop must be greater than zero");
        }
        let by = if *reverses { -by } else { by };
        let (mut at, mut any) = (from, false);
        while if *reverses { at >= to } else { at <= to } {
            self.interrupt.check()?;
            any = true;
            let number = i32::try_from(at).map_err(|_| error("22003", "integer out of range"))?;
            self.variables
                .push(Variable::new(name, Type::Int4, Value::Int32(number)));
            let round = self.round(session, steps, label.as_deref());
            self.variables.pop();
            match round? {
                Round::Next => at += by,
                Round::Done => break,
                Round::Beyond(flow) => return Ok(flow),
            }
        }
        self.found(any);
        Ok(Flow::Next)
    }

    fn over_rows(&mut self, session: &mut Session, step: &Step) -> Result<Flow> {
        let Step::ForRows {
            label,
            names,
            query,
            is_computed,
            using,
            steps,
        } = step
        else {
            return Ok(Flow::Next);
        };
        let text = match is_computed {
            true => self.text(session, query)?,
            false => query.clone(),
        };
        let given = self.values(session, using)?;
        let Rows { fields, rows, .. } = self.rows(session, &text, &given)?;
        let any = !rows.is_empty();
        for row in rows {
            self.interrupt.check()?;
            self.set_row(names, fields.clone(), Some(row))?;
            match self.round(session, steps, label.as_deref())? {
                Round::Next => {}
                Round::Done => break,
                Round::Beyond(flow) => return Ok(flow),
            }
        }
        self.found(any);
        Ok(Flow::Next)
    }

    fn found(&mut self, is: bool) {
        if let Some(found) = self.variables.first_mut() {
            found.value = Value::Bool(is);
        }
    }

    /// Where a name is that of a variable, or of a field of a record.
    fn variable(&mut self, name: &str) -> Option<&mut Variable> {
        self.variables.iter_mut().rev().find(|own| own.name == name)
    }

    fn assign(&mut self, session: &mut Session, name: &str, value: &str) -> Result<()> {
        let rows = self.rows(session, &format!("SELECT {value}"), &[])?;
        let (Some(field), Some(mut row)) = (rows.fields.into_iter().next(), rows.rows.into_iter().next()) else {
            return fail("42601", format!("query \"{value}\" returned no rows"));
        };
        let value = row.pop().unwrap_or(Value::Null);
        self.set(name, (field, value))
    }

    /// Gives a variable a value, as its type has it.
    fn set(&mut self, name: &str, (field, value): (Field, Value)) -> Result<()> {
        let (first, within) = name.split_once('.').map_or((name, None), |(a, b)| (a, Some(b)));
        let Some(variable) = self.variable(first) else {
            return fail("42601", format!("\"{name}\" is not a known variable"));
        };
        if variable.is_constant {
            return fail("22005", format!("variable \"{name}\" is declared CONSTANT"));
        }
        if let Some(fields) = &mut variable.record {
            let own = within.and_then(|within| fields.iter_mut().find(|(field, _)| field.name == within));
            let Some((of, own)) = own else {
                return fail(
                    "42703",
                    format!("record \"{first}\" has no field \"{}\"", within.unwrap_or("")),
                );
            };
            (*of, *own) = (
                Field {
                    name: of.name.clone(),
                    ..field
                },
                value,
            );
            return Ok(());
        }
        let (ty, modifier) = (variable.ty.clone(), variable.modifier);
        let value = cast(value, &field.ty, &ty, modifier, false)?;
        if variable.not_null && value.is_nullish() {
            return not_null(name);
        }
        variable.value = value;
        Ok(())
    }

    fn store(&mut self, into: &Destination, rows: Rows) -> Result<()> {
        self.found(!rows.rows.is_empty());
        if into.is_strict && rows.rows.is_empty() {
            return fail("P0002", "query returned no rows");
        }
        if into.is_strict && rows.rows.len() > 1 {
            return fail("P0003", "query returned more than one row");
        }
        self.set_row(&into.names, rows.fields, rows.rows.into_iter().next())
    }

    /// A row goes to variables; they become null where there is none.
    fn set_row(&mut self, names: &[String], fields: Vec<Field>, row: Option<Vec<Value>>) -> Result<()> {
        let row = row.unwrap_or_else(|| vec![Value::Null; fields.len()]);
        if let [name] = names
            && let Some(variable) = self.variable(name)
            && variable.record.is_some()
        {
            variable.record = Some(fields.into_iter().zip(row).collect());
            return Ok(());
        }
        let mut all = fields.into_iter().zip(row);
        for name in names {
            let value = all.next().unwrap_or((Field::new("", Type::Unknown), Value::Null));
            self.set(name, value)?;
        }
        Ok(())
    }

    fn value(&mut self, session: &mut Session, text: &str, ty: Option<&str>) -> Result<Value> {
        let text = match ty {
            Some(ty) => format!("SELECT CAST(({text}) AS {ty})"),
            None => format!("SELECT ({text})"),
        };
        let rows = self.rows(session, &text, &[])?;
        Ok(rows.rows.into_iter().flatten().next().unwrap_or(Value::Null))
    }

    fn values(&mut self, session: &mut Session, texts: &[String]) -> Result<Vec<(Type, Value)>> {
        let mut out = Vec::new();
        for text in texts {
            let rows = self.rows(session, &format!("SELECT ({text})"), &[])?;
            let ty = rows.fields.into_iter().next().map_or(Type::Unknown, |field| field.ty);
            out.push((ty, rows.rows.into_iter().flatten().next().unwrap_or(Value::Null)));
        }
        Ok(out)
    }

    fn holds(&mut self, session: &mut Session, text: &str) -> Result<bool> {
        Ok(matches!(self.value(session, text, Some("boolean"))?, Value::Bool(true)))
    }

    fn number(&mut self, session: &mut Session, text: &str) -> Result<i64> {
        match self.value(session, text, Some("integer"))? {
            Value::Int32(n) => Ok(i64::from(n)),
            _ => fail("22004", "a bound of FOR loop cannot be null"),
        }
    }

    fn text(&mut self, session: &mut Session, text: &str) -> Result<String> {
        match self.value(session, text, Some("text"))? {
            Value::String(text) => Ok(text.to_string()),
            _ => fail("22004", "query string argument of EXECUTE is null"),
        }
    }

    fn raise(&mut self, session: &mut Session, raise: &Raise) -> Result<()> {
        if raise.level.is_empty() {
            return match self.handled.last() {
                Some(told) => Err(told.clone()),
                None => fail(
                    "0Z002",
                    "RAISE without parameters cannot be used outside an exception handler",
                ),
            };
        }
        let mut args = Vec::new();
        for (ty, value) in self.values(session, &raise.args)? {
            args.push(match value.is_nullish() {
                true => "<NULL>".to_owned(),
                false => output::text(&ty, &value),
            });
        }
        let mut message = match &raise.message {
            Some(format) => filled(format, args)?,
            None => raise.state.clone().unwrap_or_else(|| "P0001".to_owned()),
        };
        let mut code = raise.state.clone();
        let mut told = Vec::new();
        for (name, text) in &raise.options {
            let text = self.text(session, text)?;
            let field = match name.as_str() {
                "MESSAGE" => {
                    message = text;
                    continue;
                }
                "ERRCODE" => {
                    let is_state =
                        text.len() == 5 && text.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase());
                    code = Some(match is_state {
                        true => text,
                        false => state_of(&text)?.to_owned(),
                    });
                    continue;
                }
                "DETAIL" => ErrorField::Detail,
                "HINT" => ErrorField::Hint,
                "TABLE" => ErrorField::Table,
                "COLUMN" => ErrorField::Column,
                "CONSTRAINT" => ErrorField::Constraint,
                _ => return fail("42601", format!("unrecognized RAISE option {name}")),
            };
            told.push((field, text));
        }
        let told: Vec<(ErrorField, &str)> = told.iter().map(|(field, text)| (*field, text.as_str())).collect();
        let made = |code: &str| with(error(code, message.clone()), &told);
        if raise.level == "EXCEPTION" {
            return Err(made(code.as_deref().unwrap_or("P0001")));
        }
        let plain = match raise.level.as_str() {
            "WARNING" => "01000",
            _ => "00000",
        };
        notices::raise(&raise.level, made(code.as_deref().unwrap_or(plain)));
        Ok(())
    }

    /// Runs a statement with the variables, or with what is given in their place, and gathers what it gives.
    fn rows(&mut self, session: &mut Session, text: &str, given: &[(Type, Value)]) -> Result<Rows> {
        let (text, given) = match given {
            [] => self.with_parameters(text),
            given => (text.to_owned(), given.to_vec()),
        };
        let mut statements = crate::parse::parse(&text)?;
        let (Some(ast), true) = (statements.pop(), statements.is_empty()) else {
            return fail("42601", "a step of a block is one statement");
        };
        let (types, params): (Vec<Type>, Vec<Value>) = given.into_iter().unzip();
        let mut out = Rows {
            fields: Vec::new(),
            rows: Vec::new(),
            count: 0,
        };
        let mut bytes = 0usize;
        let (fields, rows) = (&mut out.fields, &mut out.rows);
        let mut begin = |of: &[Field]| {
            *fields = of.to_vec();
            Ok(())
        };
        let mut give = |row: Vec<Value>| {
            bytes += row.iter().map(Value::weight).sum::<usize>();
            if bytes > ROWS_BYTES_MAX {
                return fail("53200", "the rows of a statement of a block take too much memory");
            }
            rows.push(row);
            Ok(())
        };
        match &ast {
            ast if writes(ast) && !session.is_read_only() => {
                out.count = session.statement(self.database, &text, OpKind::Update, |statement, facts| {
                    write::run(statement, facts, (ast, None), (&types, &params), &mut begin, &mut give)
                })?;
                session.do_asked(self.database)?;
            }
            Ast::Query(query) if !writes(&ast) && query.locks.is_empty() => {
                let query = (&**query, &PlanCell::default());
                let mut to = query::Takers {
                    begin: &mut begin,
                    give: &mut give,
                };
                out.count = session.statement(self.database, &text, OpKind::Read, |statement, facts| {
                    query::run(statement, facts, query, (&types, &params), &mut to)
                })?;
                session.do_asked(self.database)?;
            }
            Ast::StartTransaction { .. }
            | Ast::Commit { .. }
            | Ast::Rollback { .. }
            | Ast::Savepoint { .. }
            | Ast::ReleaseSavepoint { .. } => return unsupported("the end of a transaction within a block"),
            Ast::Copy { .. } => return unsupported("COPY within a block"),
            ast => {
                let (mut sent, mut flush) = (Vec::new(), |sent: &mut Vec<u8>| {
                    sent.clear();
                    Ok(())
                });
                let mut sink = Sink {
                    out: &mut sent,
                    flush: &mut flush,
                    describes: true,
                    formats: &[],
                    fields: Cow::Borrowed(&[]),
                };
                let has_text = !ddl::is_ddl(ast) && own::of(ast)?.is_none();
                let types = if has_text { types } else { Vec::new() };
                let prepared = Prepared::new(text.as_str(), Some(Arc::new(ast.clone())), types);
                session.run(self.database, &prepared, &params, &mut sink)?;
            }
        }
        Ok(out)
    }

    /// The text of a statement with parameters in place of variables, and their values. Statements that are no queries and write nothing
    /// have no parameters.
    fn with_parameters(&self, text: &str) -> (String, Vec<(Type, Value)>) {
        let tokens = own::tokens(text);
        let is_space = |token: &Token| matches!(token, Token::Whitespace(_));
        let solid: Vec<usize> = (0..tokens.len()).filter(|at| !is_space(&tokens[*at])).collect();
        let word = |at: usize| match solid.get(at).map(|at| &tokens[*at]) {
            Some(Token::Word(word)) => Some((
                match word.quote_style {
                    Some(_) => word.value.clone(),
                    None => word.value.to_lowercase(),
                },
                word.quote_style.is_some(),
            )),
            _ => None,
        };
        let first = word(0).map_or_else(String::new, |(word, _)| word);
        let takes = [
            "select", "with", "values", "insert", "update", "delete", "merge", "table",
        ];
        if !takes.contains(&first.as_str()) && solid.first().map(|at| &tokens[*at]) != Some(&Token::LParen) {
            return (text.to_owned(), Vec::new());
        }
        let is = |at: usize, token: &Token| solid.get(at).is_some_and(|at| tokens[*at] == *token);
        let mut given: Vec<(Type, Value)> = Vec::new();
        let mut out: Vec<String> = tokens.iter().map(own::shown).collect();
        let (mut at, mut columns) = (0, false);
        while at < solid.len() {
            // The columns of INSERT, and what SET assigns to, are columns.
            if word(at).is_some_and(|(word, _)| word == "into") {
                columns = true;
            }
            if columns
                && (is(at, &Token::RParen) || word(at).is_some_and(|(word, _)| word == "values" || word == "select"))
            {
                columns = false;
            }
            let Some((name, _)) = word(at) else {
                at += 1;
                continue;
            };
            let behind_dot = at > 0 && is(at - 1, &Token::Period);
            let is_call = is(at + 1, &Token::LParen);
            let is_alias = at > 0 && word(at - 1).is_some_and(|(word, quoted)| word == "as" && !quoted);
            let is_target = is(at + 1, &Token::Eq)
                && at > 0
                && (word(at - 1).is_some_and(|(word, quoted)| word == "set" && !quoted));
            if behind_dot || is_call || is_alias || is_target || columns {
                at += 1;
                continue;
            }
            let Some(variable) = self.variables.iter().rev().find(|own| own.name == name) else {
                at += 1;
                continue;
            };
            let (value, length) = match &variable.record {
                None if is(at + 1, &Token::Period) => {
                    at += 1;
                    continue;
                }
                None => ((variable.ty.clone(), variable.value.clone()), 1),
                Some(fields) => {
                    let field = word(at + 2).filter(|_| is(at + 1, &Token::Period));
                    let found = field.and_then(|(name, _)| fields.iter().find(|(own, _)| own.name == name));
                    let Some((field, value)) = found else {
                        at += 1;
                        continue;
                    };
                    ((field.ty.clone(), value.clone()), 3)
                }
            };
            given.push(value);
            out[solid[at]] = format!("${}", given.len());
            for other in 1..length {
                out[solid[at + other]].clear();
            }
            at += length;
        }
        match given.is_empty() {
            true => (text.to_owned(), given),
            false => (out.concat(), given),
        }
    }
}

/// How a round of a loop ended.
enum Round {
    Next,
    Done,
    /// It is a matter of what is around the loop.
    Beyond(Flow),
}

fn not_null<T>(name: &str) -> Result<T> {
    fail(
        "22004",
        format!("null value cannot be assigned to variable \"{name}\" declared NOT NULL"),
    )
}

fn is_query(text: &str) -> bool {
    let first = text
        .trim_start_matches(['(', ' ', '\n', '\t'])
        .split_whitespace()
        .next();
    let first = first.unwrap_or_default().to_uppercase();
    matches!(first.as_str(), "SELECT" | "WITH" | "VALUES" | "TABLE")
}

/// A message whose `%` are the arguments; `%%` is one.
///
/// Errors: 42601 for too many and too few of them.
fn filled(format: &str, args: Vec<String>) -> Result<String> {
    let (mut out, mut args, mut chars) = (String::new(), args.into_iter(), format.chars().peekable());
    while let Some(c) = chars.next() {
        match c {
            '%' if chars.peek() == Some(&'%') => {
                chars.next();
                out.push('%');
            }
            '%' => match args.next() {
                Some(arg) => out.push_str(&arg),
                None => return fail("42601", "too few parameters specified for RAISE"),
            },
            c => out.push(c),
        }
    }
    match args.next() {
        None => Ok(out),
        Some(_) => fail("42601", "too many parameters specified for RAISE"),
    }
}
