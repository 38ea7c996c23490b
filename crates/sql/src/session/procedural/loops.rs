//! Loops.

use super::steps::is_query;
use super::values::Variable;
use super::{Flow, Rows, Running};
use crate::error::{error, fail};
use crate::parse::procedural::Step;
use crate::run::query::Field;
use crate::types::Type;
use nestor_model::{Result, Value};

/// How a round of a loop ended.
pub(super) enum Round {
    Next,
    Done,
    /// It is a matter of what is around the loop.
    Beyond(Flow),
}

impl Running<'_, '_> {
    pub(super) fn round(&mut self, steps: &[Step], label: Option<&str>) -> Result<Round> {
        Ok(match self.steps(steps)? {
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

    pub(super) fn over_numbers(&mut self, step: &Step) -> Result<Flow> {
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
        let from = self.number(&bounds.0, "lower bound of FOR loop")?;
        let to = self.number(&bounds.1, "upper bound of FOR loop")?;
        let by = match by {
            Some(by) => self.number(by, "BY value of FOR loop")?,
            None => 1,
        };
        if by <= 0 {
            return fail("22023", "BY value of FOR loop must be greater than zero");
        }
        let by = if *reverses { -by } else { by };
        let (mut at, mut any) = (from, false);
        let mut over = Ok(Flow::Next);
        while if *reverses { at >= to } else { at <= to } {
            self.statement.interrupt.check()?;
            any = true;
            let number = i32::try_from(at).map_err(|_| error("22003", "integer out of range"))?;
            let mut own = Variable::new(name, Type::Int4, Value::Int32(number));
            own.label.clone_from(label);
            self.variables.push(own);
            let round = self.round(steps, label.as_deref());
            self.variables.pop();
            match round {
                Ok(Round::Next) => at += by,
                Ok(Round::Done) => break,
                Ok(Round::Beyond(flow)) => {
                    over = Ok(flow);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        self.found(any);
        over
    }

    pub(super) fn over_rows(&mut self, step: &Step) -> Result<Flow> {
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
        let rows = match is_computed {
            true => {
                let text = self.text(query)?;
                let given = self.values(using)?;
                self.computed(&text, &given)?
            }
            false => self.rows(query, &[])?,
        };
        if rows.fields.is_empty() && !*is_computed && !is_query(query) {
            return fail("42601", "query does not return tuples");
        }
        self.each_row((label.as_deref(), names, steps), rows)
    }

    pub(super) fn each_row(
        &mut self,
        (label, names, steps): (Option<&str>, &[String], &[Step]),
        rows: Rows,
    ) -> Result<Flow> {
        let Rows { fields, rows, .. } = rows;
        let any = !rows.is_empty();
        if !any {
            self.set_row(names, fields, None)?;
            self.found(false);
            return Ok(Flow::Next);
        }
        let mut over = Flow::Next;
        for row in rows {
            self.statement.interrupt.check()?;
            self.set_row(names, fields.clone(), Some(row))?;
            match self.round(steps, label)? {
                Round::Next => {}
                Round::Done => break,
                Round::Beyond(flow) => {
                    over = flow;
                    break;
                }
            }
        }
        self.found(any);
        Ok(over)
    }

    pub(super) fn over_elements(&mut self, step: &Step) -> Result<Flow> {
        let Step::ForEach {
            label,
            names,
            slice,
            array,
            steps,
        } = step
        else {
            return Ok(Flow::Next);
        };
        let (field, value) = self.rows(&format!("SELECT {array}"), &[])?.only(array)?;
        let Some(element) = field.ty.element().cloned() else {
            return fail(
                "42804",
                "FOREACH expression must yield an array, not type ".to_owned() + &field.ty.to_string(),
            );
        };
        let Value::Array(items) = value else {
            return fail("22004", "FOREACH expression must not be null");
        };
        let mut parts: Vec<Value> = Vec::new();
        flat(&Value::Array(items), depth_of_array(*slice)?, &mut parts);
        let ty = if *slice == 0 { element } else { field.ty.clone() };
        let rows = Rows {
            fields: vec![Field::new("", ty)],
            count: parts.len() as u64,
            rows: parts.into_iter().map(|part| vec![part]).collect(),
        };
        self.each_row((label.as_deref(), names, steps), rows)
    }
}

/// Refuses slices of several dimensions.
fn depth_of_array(slice: usize) -> Result<usize> {
    match slice {
        0 | 1 => Ok(slice),
        _ => crate::error::unsupported("SLICE of several dimensions"),
    }
}

/// The elements of an array of any dimensions, or its innermost arrays.
fn flat(value: &Value, depth: usize, out: &mut Vec<Value>) {
    let Value::Array(items) = value else {
        out.push(value.clone());
        return;
    };
    let is_innermost = !items.iter().any(|item| matches!(item.to_value(), Value::Array(_)));
    if depth == 1 && is_innermost {
        out.push(value.clone());
        return;
    }
    for item in items.iter() {
        flat(&item.to_value(), depth, out);
    }
}
