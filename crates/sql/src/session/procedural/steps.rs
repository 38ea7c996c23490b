//! What blocks do, step by step.

use super::loops::Round;
use super::values::{Variable, assigned};
use super::{Flow, Running};
use crate::error::{Field as ErrorField, error, fail, fields, state, with};
use crate::parse::procedural::{Block, Step};
use crate::run::query::Field;
use crate::types::Type;
use crate::types::cast::{self, Context};
use nestor_model::{ErrorCode, Result, Value};

impl Running<'_, '_> {
    pub(super) fn block(&mut self, block: &Block) -> Result<Flow> {
        let outside = self.variables.len();
        let result = self.declared(block);
        self.variables.truncate(outside);
        result
    }

    fn declared(&mut self, block: &Block) -> Result<Flow> {
        let own = self.variables.len();
        for variable in &block.variables {
            if self.variables[own..].iter().any(|other| other.name == variable.name) {
                return fail(
                    "42601",
                    format!("duplicate declaration at or near \"{}\"", variable.name),
                );
            }
            self.declare(variable, block.label.as_deref())
                .map_err(|told| self.at_declaration(told, block.line))?;
        }
        if block.handlers.is_empty() {
            return self.labeled(block);
        }
        self.savepoints += 1;
        let name = format!("block {}.{}", self.facts.routines.depth(), self.savepoints);
        let mark = self.begin_part(&name);
        self.parts += 1;
        let done = self.labeled(block);
        self.parts -= 1;
        let told = match done {
            Ok(flow) => {
                self.end_part(&name, &mark, false);
                return Ok(flow);
            }
            Err(told) => told,
        };
        let happened = state(&told);
        let handler = block
            .handlers
            .iter()
            .find(|(conditions, _)| conditions.iter().any(|condition| condition.takes(&happened)));
        // A conflict is one of the statement around, which begins again.
        let is_beyond = told.code() == ErrorCode::WriteConflict && self.statement.is_within();
        let Some((_, steps)) = handler.filter(|_| !is_beyond) else {
            self.end_part(&name, &mark, false);
            return Err(told);
        };
        self.end_part(&name, &mark, true);
        self.is_told = false;
        // What was declared within the block is seen by its handlers.
        let outside = self.variables.len();
        for (name, text) in [("sqlstate", happened.as_str()), ("sqlerrm", told.message())] {
            self.variables
                .push(Variable::new(name, Type::Text, Value::String(text.into())));
        }
        self.handled.push(told);
        let result = self.steps(steps);
        self.handled.pop();
        self.variables.truncate(outside);
        result
    }

    /// The steps of a block, which EXIT with its label leaves.
    fn labeled(&mut self, block: &Block) -> Result<Flow> {
        match self.steps(&block.steps)? {
            Flow::Leave {
                label: Some(label),
                continues: false,
            } if block.label.as_ref() == Some(&label) => Ok(Flow::Next),
            flow => Ok(flow),
        }
    }

    pub(super) fn steps(&mut self, steps: &[Step]) -> Result<Flow> {
        let mut line = 0;
        for step in steps {
            if let Step::Line(next) = step {
                line = *next;
                continue;
            }
            self.statement.interrupt.check()?;
            let done = self.step(step);
            self.place_notices((line, step));
            match done.map_err(|told| self.at_step(told, (line, step)))? {
                Flow::Next => {}
                other => return Ok(other),
            }
        }
        Ok(Flow::Next)
    }

    fn step(&mut self, step: &Step) -> Result<Flow> {
        match step {
            Step::Sql { text, into } => {
                let rows = self.rows(text, &[])?;
                (self.count, self.variables[0].value) = (rows.count, Value::Bool(rows.count > 0));
                match into {
                    Some(into) => self.store(into, rows)?,
                    None if !rows.fields.is_empty() && is_query(text) => {
                        let error = error("42601", "query has no destination for result data");
                        let hint = "If you want to discard the results of a SELECT, use PERFORM instead.";
                        return Err(with(error, &[(ErrorField::Hint, hint)]));
                    }
                    None if rows.count > 0 && !rows.fields.is_empty() => {
                        return fail("42601", "query has no destination for result data");
                    }
                    None => {}
                }
            }
            Step::Perform(text) => {
                let rows = self.rows(text, &[])?;
                self.count = rows.count;
                self.found(rows.count > 0);
            }
            Step::Execute { text, into, using } => {
                self.computes = None;
                let text = self.text(text)?;
                let given = self.values(using)?;
                self.computes = Some(text.clone());
                let rows = self.computed(&text, &given)?;
                self.computes = None;
                self.count = rows.count;
                if let Some(into) = into {
                    self.store(into, rows)?;
                }
            }
            Step::Assign(name, value) => self.assign(name, value)?,
            Step::AssignElement {
                name,
                subscripts,
                value,
            } => self.set_element(name, subscripts, value)?,
            Step::If { branches, otherwise } => {
                for (condition, steps) in branches {
                    if self.holds(condition)? {
                        return self.steps(steps);
                    }
                }
                return self.steps(otherwise);
            }
            Step::Case {
                operand,
                arms,
                otherwise,
            } => return self.case(operand.as_deref(), arms, otherwise.as_deref()),
            Step::Loop {
                label,
                condition,
                steps,
            } => loop {
                self.statement.interrupt.check()?;
                if let Some(condition) = condition
                    && !self.holds(condition)?
                {
                    break;
                }
                match self.round(steps, label.as_deref())? {
                    Round::Next => {}
                    Round::Done => break,
                    Round::Beyond(flow) => return Ok(flow),
                }
            },
            Step::ForNumbers { .. } => return self.over_numbers(step),
            Step::ForRows { .. } => return self.over_rows(step),
            Step::ForEach { .. } => return self.over_elements(step),
            Step::ForCursor {
                label,
                name,
                cursor,
                args,
                steps,
            } => return self.over_cursor((label.as_deref(), name, steps), (cursor, args)),
            Step::End { commits } => self.end_transaction(*commits)?,
            Step::Leave {
                label,
                condition,
                continues,
            } => {
                let leaves = match condition {
                    Some(condition) => self.holds(condition)?,
                    None => true,
                };
                if leaves {
                    return Ok(Flow::Leave {
                        label: label.clone(),
                        continues: *continues,
                    });
                }
            }
            Step::Raise(raise) => self.raise(raise)?,
            Step::Assert { condition, message } => self.assert(condition, message.as_deref())?,
            Step::Diagnostics { stacked, items } => self.diagnose(*stacked, items)?,
            Step::Open { cursor, query } => self.open(cursor, query)?,
            Step::Fetch {
                cursor,
                direction,
                into,
            } => self.fetch(cursor, direction, into.as_ref())?,
            Step::Close(cursor) => self.close(cursor)?,
            Step::Return(value) => return self.returns(value.as_deref()),
            Step::ReturnNext(value) => self.returns_next(value.as_deref())?,
            Step::ReturnQuery {
                text,
                is_computed,
                using,
            } => self.returns_query(text, *is_computed, using)?,
            Step::Block(block) => return self.block(block),
            Step::Line(_) => {}
        }
        Ok(Flow::Next)
    }

    fn case(
        &mut self,
        operand: Option<&str>,
        arms: &[(Vec<String>, Vec<Step>)],
        otherwise: Option<&[Step]>,
    ) -> Result<Flow> {
        let outside = self.variables.len();
        if let Some(operand) = operand {
            let (field, value) = self.rows(&format!("SELECT {operand}"), &[])?.only(operand)?;
            // No statement can name it otherwise.
            let mut own = Variable::new(CASE, field.ty, value);
            own.modifier = field.modifier;
            self.variables.push(own);
        }
        let mut found = None;
        'arms: for (values, steps) in arms {
            for value in values {
                let holds = match operand {
                    Some(_) => self.holds(&format!("\"{CASE}\" = ({value})")),
                    None => self.holds(value),
                };
                match holds {
                    Ok(true) => {
                        found = Some(steps.as_slice());
                        break 'arms;
                    }
                    Ok(false) => {}
                    Err(error) => {
                        self.variables.truncate(outside);
                        return Err(error);
                    }
                }
            }
        }
        self.variables.truncate(outside);
        match found.or(otherwise) {
            Some(steps) => self.steps(steps),
            None => {
                let error = error("20000", "case not found");
                Err(with(
                    error,
                    &[(ErrorField::Hint, "CASE statement is missing ELSE part.")],
                ))
            }
        }
    }

    /// GET DIAGNOSTICS.
    fn diagnose(&mut self, stacked: bool, items: &[(String, String)]) -> Result<()> {
        let told = match (stacked, self.handled.last()) {
            (true, None) => {
                return fail(
                    "0Z002",
                    "GET STACKED DIAGNOSTICS cannot be used outside an exception handler",
                );
            }
            (_, told) => told.cloned(),
        };
        for (name, item) in items {
            let field = |wanted: ErrorField| {
                let all = told.as_ref().map_or_else(Vec::new, fields);
                all.into_iter()
                    .find(|(own, _)| *own == wanted)
                    .map(|(_, text)| text.to_owned())
            };
            let text = match item.as_str() {
                "ROW_COUNT" => {
                    let count = i64::try_from(self.count).unwrap_or(i64::MAX);
                    self.set(name, (Field::new("", Type::Int8), Value::Int64(count)))?;
                    continue;
                }
                "RETURNED_SQLSTATE" => told.as_ref().map(state),
                "MESSAGE_TEXT" => told.as_ref().map(|told| told.message().to_owned()),
                "PG_EXCEPTION_DETAIL" => field(ErrorField::Detail),
                "PG_EXCEPTION_HINT" => field(ErrorField::Hint),
                "PG_EXCEPTION_CONTEXT" => field(ErrorField::Context),
                "COLUMN_NAME" => field(ErrorField::Column),
                "CONSTRAINT_NAME" => field(ErrorField::Constraint),
                "TABLE_NAME" => field(ErrorField::Table),
                "SCHEMA_NAME" => field(ErrorField::Schema),
                _ => field(ErrorField::DataType),
            };
            let value = Value::String(text.unwrap_or_default().into());
            self.set(name, (Field::new("", Type::Text), value))?;
        }
        Ok(())
    }

    /// RETURN.
    fn returns(&mut self, value: Option<&str>) -> Result<Flow> {
        if let Some(value) = value {
            let is_row = self.place(value).is_some_and(|at| self.variables[at].record.is_some());
            self.results.value = Some(match is_row {
                // Nothing was assigned to it, or it is a row.
                true => {
                    let own = &self.variables[self.place(value).unwrap_or_default()];
                    let (ty, value) = own.seen()?;
                    (Field::new("", ty), value)
                }
                false => self.rows(&format!("SELECT {value}"), &[])?.whole(value)?,
            });
        }
        Ok(Flow::Return)
    }

    /// The columns of the rows that the routine gives.
    fn columns(&self) -> Result<Vec<(String, Type)>> {
        match self
            .routine
            .as_ref()
            .and_then(|routine| super::called::columns(routine))
        {
            Some(columns) => Ok(columns),
            None => fail("42804", "cannot use RETURN NEXT in a non-SETOF function"),
        }
    }

    /// RETURN NEXT: a value, a row, or what the OUT parameters have.
    fn returns_next(&mut self, value: Option<&str>) -> Result<()> {
        let columns = self.columns()?;
        let Some(value) = value else {
            let row = self.outs()?;
            return self.results.add(row);
        };
        let row = match self.place(value).map(|at| self.variables[at].clone()) {
            Some(own) if own.record.is_some() => {
                let (ty, value) = own.seen()?;
                super::called::fitted(&ty, value, &columns)?
            }
            _ => {
                let (field, value) = self.rows(&format!("SELECT {value}"), &[])?.whole(value)?;
                super::called::fitted(&field.ty, value, &columns)?
            }
        };
        self.results.add(row)
    }

    /// RETURN QUERY.
    fn returns_query(&mut self, text: &str, is_computed: bool, using: &[String]) -> Result<()> {
        if self
            .routine
            .as_ref()
            .and_then(|routine| super::called::columns(routine))
            .is_none()
        {
            return fail("42804", "cannot use RETURN QUERY in a non-SETOF function");
        }
        let columns = self.columns()?;
        let rows = match is_computed {
            true => {
                let text = self.text(text)?;
                let given = self.values(using)?;
                self.computed(&text, &given)?
            }
            false => self.rows(text, &[])?,
        };
        if rows.fields.is_empty() && !columns.is_empty() && rows.rows.is_empty() && !is_query(text) && !is_computed {
            return fail("42601", "query does not return tuples");
        }
        let as_rows = match (rows.fields.as_slice(), columns.as_slice()) {
            ([field], [(_, wanted)]) if field.ty == *wanted => false,
            ([field], _) => matches!(field.ty, Type::Composite(_)) && columns.len() != 1,
            _ => false,
        };
        if !as_rows && rows.fields.len() != columns.len() {
            let (given, wanted) = (rows.fields.len(), columns.len());
            let detail =
                format!("Number of returned columns ({given}) does not match expected column count ({wanted}).");
            return mismatch(&detail);
        }
        if !as_rows {
            for (number, (field, (_, wanted))) in (1..).zip(rows.fields.iter().zip(&columns)) {
                let is_same = field.ty == *wanted || field.ty == Type::Unknown;
                if !is_same && !cast::exists(&field.ty, wanted, Context::Implicit) || is_other(&field.ty, wanted) {
                    let detail = format!(
                        "Returned type {} does not match expected type {} in column {number}.",
                        field.ty, wanted
                    );
                    return mismatch(&detail);
                }
            }
        }
        let count = rows.rows.len();
        for row in rows.rows {
            let row = match as_rows {
                true => {
                    let ty = rows.fields[0].ty.clone();
                    super::called::fitted(&ty, row.into_iter().next().unwrap_or(Value::Null), &columns)?
                }
                false => {
                    let each = row.into_iter().zip(&rows.fields).zip(&columns);
                    each.map(|((value, field), (_, ty))| assigned(value, &field.ty, (ty, -1)))
                        .collect::<Result<_>>()?
                }
            };
            self.results.add(row)?;
        }
        self.count = count as u64;
        self.found(count > 0);
        Ok(())
    }
}

/// Whether PostgreSQL tells types apart that are cast where values are assigned.
fn is_other(given: &Type, wanted: &Type) -> bool {
    given != wanted && *given != Type::Unknown && !(given.is_text() && wanted.is_text())
}

fn mismatch<T>(detail: &str) -> Result<T> {
    let error = error("42804", "structure of query does not match function result type");
    Err(with(error, &[(ErrorField::Detail, detail)]))
}

/// The variable that holds what CASE compares.
const CASE: &str = "what CASE compares";

impl super::Rows {
    /// The value of an expression, or its columns as one row.
    fn whole(self, text: &str) -> Result<(Field, Value)> {
        self.only(text)
    }
}

pub(super) fn is_query(text: &str) -> bool {
    let first = text
        .trim_start_matches(['(', ' ', '\n', '\t'])
        .split_whitespace()
        .next();
    let first = first.unwrap_or_default().to_uppercase();
    matches!(first.as_str(), "SELECT" | "WITH" | "VALUES" | "TABLE")
}
