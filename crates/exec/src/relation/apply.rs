//! Relations that depend on the row of another one: lateral joins and subqueries in expressions.

use super::key::RowKey;
use super::{BoxRows, Rows, Run, build, row_done, weight};
use crate::kept::Kept;
use nestor_model::{Error, Result, Value, doc};
use nestor_planner::relation::{Apply, ApplyKind, Env, Frame, Relation, Scalar, Tuple};
use std::collections::HashSet;

struct Applied<S> {
    input: BoxRows<S>,
    inner: Relation<S>,
    numbering: (usize, bool),
    kind: ApplyKind<S>,
    correlated: bool,
    when: Option<S>,
    kept: Kept,
    /// The outer row and its inner rows, while they are given; whether there were any.
    open: Option<(Tuple, BoxRows<S>, bool)>,
    /// What the inner relation gave, if that is the same for all rows.
    once: Option<Once>,
}

enum Once {
    Value(Value),
    Set(Members),
}

/// Inner rows in which others are looked for.
#[derive(Default)]
struct Members {
    whole: HashSet<RowKey>,
    /// Rows with a null: nobody knows whether they are equal.
    with_nulls: Vec<Vec<Value>>,
}

pub(super) fn apply<S: Scalar>(plan: &Apply<S>, input: BoxRows<S>, numbering: (usize, bool)) -> BoxRows<S> {
    Box::new(Applied {
        input,
        inner: plan.inner.clone(),
        numbering,
        kind: plan.kind.clone(),
        correlated: plan.correlated,
        when: plan.when.clone(),
        kept: Kept::default(),
        open: None,
        once: None,
    })
}

/// Runs `work` where the inner relation sees `row` as its outer one.
fn around<'v, S, T>(run: &Run<'_, 'v, S>, row: &[Value], work: impl FnOnce(&Run<'_, 'v, S>) -> T) -> T {
    let frame = Frame {
        row,
        outer: run.env.outer,
    };
    let inner = Run {
        batch: run.batch,
        env: Env {
            op: run.env.op,
            params: run.env.params,
            outer: Some(&frame),
            effects: run.env.effects,
            compared: None,
        },
        sources: run.sources,
        shared: run.shared,
    };
    work(&inner)
}

impl<S: Scalar> Applied<S> {
    fn begin(&self) -> BoxRows<S> {
        let (mut number, counts) = self.numbering;
        build::node(&self.inner, &mut number, counts)
    }

    /// The value that a subquery in an expression has.
    fn value(&mut self, run: &Run<'_, '_, S>, row: &[Value]) -> Result<Value> {
        if let Some(Once::Value(value)) = &self.once {
            return Ok(value.clone());
        }
        let mut inner = self.begin();
        let kept = &mut self.kept;
        let kind = &self.kind;
        let value = around(run, row, |run| match kind {
            ApplyKind::Exists => Ok(Value::Bool(inner.next(run)?.is_some())),
            ApplyKind::Array => {
                let mut items = Vec::new();
                while let Some(row) = inner.next(run)? {
                    let item = row.into_iter().next().unwrap_or(Value::Null);
                    kept.grow(item.weight())?;
                    items.push(item);
                }
                Ok(Value::Array(nestor_model::Array::new(items)))
            }
            _ => {
                let Some(first) = inner.next(run)? else {
                    return Ok(Value::Null);
                };
                if inner.next(run)?.is_some() {
                    let message = "more than one row returned by a subquery used as an expression";
                    return Err(Error::bad_value(message).with_extra(doc! { "sqlState": "21000" }));
                }
                Ok(first.into_iter().next().unwrap_or(Value::Null))
            }
        })?;
        match self.correlated {
            true => self.kept.clear(),
            false => self.once = Some(Once::Value(value.clone())),
        }
        Ok(value)
    }

    /// Whether the values of `probe` are among the inner rows.
    fn is_in(&mut self, run: &Run<'_, '_, S>, row: &[Value], probe: &[S]) -> Result<Value> {
        if !matches!(self.once, Some(Once::Set(_))) || self.correlated {
            self.kept.clear();
            let mut inner = self.begin();
            let kept = &mut self.kept;
            let members = around(run, row, |run| -> Result<Members> {
                let mut members = Members::default();
                while let Some(row) = inner.next(run)? {
                    kept.grow(weight(&row))?;
                    let row: Vec<Value> = row.into_iter().zip(probe).map(|(value, by)| by.key(value)).collect();
                    match row.iter().any(|value| matches!(value, Value::Null)) {
                        true => members.with_nulls.push(row),
                        false => drop(members.whole.insert(RowKey(row))),
                    }
                }
                Ok(members)
            })?;
            self.once = Some(Once::Set(members));
        }
        let Some(Once::Set(members)) = &self.once else {
            return Ok(Value::Null);
        };
        let wanted: Vec<Value> = probe
            .iter()
            .map(|part| Ok(part.key(part.value(row, &run.env)?)))
            .collect::<Result<_>>()?;
        if members.whole.is_empty() && members.with_nulls.is_empty() {
            return Ok(Value::Bool(false));
        }
        let wanted = RowKey(wanted);
        let may_equal = |a: &[Value], b: &[Value]| {
            a.iter()
                .zip(b)
                .all(|(a, b)| matches!(a, Value::Null) || matches!(b, Value::Null) || nestor_model::values_equal(a, b))
        };
        let has_null = wanted.0.iter().any(|value| matches!(value, Value::Null));
        if !has_null && members.whole.contains(&wanted) {
            return Ok(Value::Bool(true));
        }
        let mut unknown = members.with_nulls.iter().any(|row| may_equal(row, &wanted.0));
        if has_null && !unknown {
            unknown = members.whole.iter().any(|row| may_equal(&row.0, &wanted.0));
        }
        Ok(if unknown { Value::Null } else { Value::Bool(false) })
    }
}

impl<S: Scalar> Rows<S> for Applied<S> {
    fn next(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Tuple>> {
        let ApplyKind::Lateral { keeps } = self.kind else {
            let Some(mut row) = self.input.next(run)? else {
                return Ok(None);
            };
            row_done()?;
            let is_wanted = match &self.when {
                Some(when) => when.holds(&row, &run.env)?,
                None => true,
            };
            let value = match &self.kind {
                _ if !is_wanted => Value::Null,
                ApplyKind::In { probe } => {
                    let probe = probe.clone();
                    self.is_in(run, &row, &probe)?
                }
                _ => self.value(run, &row)?,
            };
            row.push(value);
            return Ok(Some(row));
        };
        loop {
            if let Some((outer, inner, any)) = &mut self.open {
                let found = around(run, outer, |run| inner.next(run))?;
                row_done()?;
                match found {
                    Some(found) => {
                        *any = true;
                        let mut row = outer.clone();
                        row.extend(found);
                        return Ok(Some(row));
                    }
                    None => {
                        let Some((mut row, _, any)) = self.open.take() else {
                            continue;
                        };
                        if keeps && !any {
                            row.resize(row.len() + self.inner.width(), Value::Null);
                            return Ok(Some(row));
                        }
                    }
                }
            }
            let Some(row) = self.input.next(run)? else {
                return Ok(None);
            };
            self.open = Some((row, self.begin(), false));
        }
    }
}
