//! Relations that depend on the row of another one: lateral joins and subqueries in expressions.
//!
//! Of the rows in which others are looked for those for which there is no room go to a file. All outer rows wait then until each block of them has been looked at.

use super::key::RowKey;
use super::spilled::{self, Written};
use super::store::Store;
use super::{BoxRows, Rows, Run, build, row_done, weight};
use crate::kept::Kept;
use nestor_model::{Error, RawWriter, Result, Value, doc};
use nestor_planner::relation::{Apply, ApplyKind, Env, Frame, Relation, Scalar, Tuple};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

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
    /// What it gave for rows before, if some columns of these tell.
    memo: Option<Memo>,
    /// Outer rows that waited for their answers.
    answered: Option<Answered>,
}

enum Once {
    Value(Value),
    Set(Members),
}

/// The values of a subquery by those of the columns of the outer row that they depend on.
struct Memo {
    columns: Arc<[usize]>,
    values: HashMap<Box<[u8]>, Value>,
    /// How often one was looked for, and how often it was there.
    asked: usize,
    found: usize,
    kept: Kept,
}

/// Bytes of a memo, at most.
const MEMO_BYTES: usize = 1 << 20;

/// When so often a value was looked for in a memo, and for one in [`MEMO_PART`] it was not there, it costs more than it spares.
const MEMO_TRIES: usize = 512;
const MEMO_PART: usize = 8;

impl Memo {
    fn new(columns: Arc<[usize]>) -> Self {
        Self {
            columns,
            values: HashMap::new(),
            asked: 0,
            found: 0,
            kept: Kept::default(),
        }
    }

    /// The bits of what tells the value for a row.
    fn key(&self, row: &[Value]) -> Box<[u8]> {
        let mut writer = RawWriter::with_capacity(64);
        for (at, column) in self.columns.iter().enumerate() {
            writer.append_index(at, row[*column].as_ref());
        }
        writer.into_doc().as_bytes().into()
    }

    fn get(&mut self, key: &[u8]) -> Option<Value> {
        self.asked += 1;
        let found = self.values.get(key).cloned();
        self.found += usize::from(found.is_some());
        found
    }

    /// Whether it has been of little use.
    fn is_idle(&self) -> bool {
        self.asked >= MEMO_TRIES && self.found * MEMO_PART < self.asked
    }

    fn add(&mut self, key: Box<[u8]>, value: &Value) -> Result<()> {
        let bytes = key.len() + value.weight() + 2 * size_of::<(Box<[u8]>, Value)>();
        if self.kept.bytes() + bytes <= MEMO_BYTES {
            self.kept.grow_spilling(bytes)?;
            self.values.insert(key, value.clone());
        }
        Ok(())
    }
}

/// Inner rows in which others are looked for.
#[derive(Default)]
struct Members {
    whole: HashSet<RowKey>,
    /// Rows with a null: nobody knows whether they are equal.
    with_nulls: Vec<Vec<Value>>,
    /// Those for which there is no room.
    others: Option<Written>,
}

/// Whether a row is among others, of which those that count more are known later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Answer {
    No,
    Unknown,
    Yes,
    /// Nobody wants to know.
    Unasked,
}

impl Answer {
    fn value(self) -> Value {
        match self {
            Self::No => Value::Bool(false),
            Self::Yes => Value::Bool(true),
            Self::Unknown | Self::Unasked => Value::Null,
        }
    }
}

/// Outer rows, each with what it looks for behind it, and their answers.
struct Answered {
    rows: Store,
    answers: Vec<Answer>,
    /// The columns of a row.
    width: usize,
    next: usize,
    kept: Kept,
}

/// Whether two rows may be equal, as far as they are known.
fn may_equal(a: &[Value], b: &[Value]) -> bool {
    a.iter()
        .zip(b)
        .all(|(a, b)| matches!(a, Value::Null) || matches!(b, Value::Null) || nestor_model::values_equal(a, b))
}

fn has_null(row: &[Value]) -> bool {
    row.iter().any(|value| matches!(value, Value::Null))
}

impl Members {
    fn add(&mut self, row: Vec<Value>) {
        match has_null(&row) {
            true => self.with_nulls.push(row),
            false => drop(self.whole.insert(RowKey(row))),
        }
    }

    /// Whether a row is among them.
    fn have(&self, wanted: &RowKey) -> Answer {
        if self.whole.is_empty() && self.with_nulls.is_empty() {
            return Answer::No;
        }
        let has_null = has_null(&wanted.0);
        if !has_null && self.whole.contains(wanted) {
            return Answer::Yes;
        }
        let mut unknown = self.with_nulls.iter().any(|row| may_equal(row, &wanted.0));
        if has_null && !unknown {
            unknown = self.whole.iter().any(|row| may_equal(&row.0, &wanted.0));
        }
        if unknown { Answer::Unknown } else { Answer::No }
    }
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
        memo: match (&plan.told_by, plan.correlated) {
            (Some(columns), true) => Some(Memo::new(columns.clone())),
            _ => None,
        },
        answered: None,
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
        self.memo = self.memo.take().filter(|memo| !memo.is_idle());
        let Some(memo) = &mut self.memo else {
            return self.computed(run, row);
        };
        let key = memo.key(row);
        if let Some(value) = memo.get(&key) {
            return Ok(value);
        }
        let value = self.computed(run, row)?;
        if let Some(memo) = &mut self.memo {
            memo.add(key, &value)?;
        }
        Ok(value)
    }

    /// The same, as the inner relation gives it.
    fn computed(&mut self, run: &Run<'_, '_, S>, row: &[Value]) -> Result<Value> {
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

    /// What is looked for with a row.
    fn wanted(&self, run: &Run<'_, '_, S>, row: &[Value]) -> Result<RowKey> {
        let ApplyKind::In { probe } = &self.kind else {
            return Ok(RowKey(Vec::new()));
        };
        let each = probe.iter().map(|part| Ok(part.key(part.value(row, &run.env)?)));
        each.collect::<Result<_>>().map(RowKey)
    }

    /// An inner row as it is compared.
    fn member(&self, row: Tuple) -> Vec<Value> {
        match &self.kind {
            ApplyKind::In { probe } => row.into_iter().zip(probe).map(|(value, by)| by.key(value)).collect(),
            _ => row,
        }
    }

    /// Reads the inner rows, as far as there is room for them.
    fn read_members(&mut self, run: &Run<'_, '_, S>, row: &[Value]) -> Result<Members> {
        let mut inner = self.begin();
        let room = run.batch.room();
        let mut kept = std::mem::take(&mut self.kept);
        let members = around(run, row, |run| -> Result<Members> {
            let mut members = Members::default();
            while let Some(row) = inner.next(run)? {
                let bytes = weight(&row);
                let row = self.member(row);
                match room {
                    None => kept.grow(bytes)?,
                    Some(room) if kept.bytes() + bytes > room && kept.bytes() > 0 => {
                        let next = || Ok(inner.next(run)?.map(|row| self.member(row)));
                        members.others = Some(spilled::rest(row, next, run)?);
                        break;
                    }
                    Some(_) => kept.grow_spilling(bytes)?,
                }
                members.add(row);
            }
            Ok(members)
        })?;
        self.kept = kept;
        Ok(members)
    }

    /// Whether the values of a row are among the inner rows that depend on it.
    fn is_in_own(&self, run: &Run<'_, '_, S>, row: &[Value]) -> Result<Answer> {
        let wanted = self.wanted(run, row)?;
        let mut inner = self.begin();
        around(run, row, |run| {
            let mut answer = Answer::No;
            while let Some(row) = inner.next(run)? {
                let row = self.member(row);
                if !has_null(&row) && !has_null(&wanted.0) {
                    if RowKey(row) == wanted {
                        return Ok(Answer::Yes);
                    }
                } else if may_equal(&row, &wanted.0) {
                    answer = Answer::Unknown;
                }
            }
            Ok(answer)
        })
    }

    /// Whether the values of a row are among the inner rows, which are the same for all; `None` when there is no room for these.
    fn is_in(&mut self, run: &Run<'_, '_, S>, row: &[Value]) -> Result<Option<Answer>> {
        if !matches!(self.once, Some(Once::Set(_))) {
            let members = self.read_members(run, row)?;
            self.once = Some(Once::Set(members));
        }
        let wanted = self.wanted(run, row)?;
        Ok(match &self.once {
            Some(Once::Set(members)) if members.others.is_none() => Some(members.have(&wanted)),
            _ => None,
        })
    }

    /// Whether the value is wanted for a row.
    fn is_wanted(&self, run: &Run<'_, '_, S>, row: &[Value]) -> Result<bool> {
        self.when.as_ref().map_or(Ok(true), |when| when.holds(row, &run.env))
    }

    /// The answers of all rows from this one on, for each of which all blocks of the inner rows are looked at.
    fn answer_all(&mut self, run: &Run<'_, '_, S>, first: Tuple) -> Result<Answered> {
        let mut all = Answered {
            rows: Store::default(),
            answers: Vec::new(),
            width: first.len(),
            next: 0,
            kept: Kept::default(),
        };
        let mut next = Some((first, true));
        while let Some((mut row, is_wanted)) = next {
            row_done()?;
            if is_wanted {
                let wanted = self.wanted(run, &row)?;
                row.extend(wanted.0);
            }
            all.rows.push(row, run)?;
            all.kept.grow_spilling(1)?;
            all.answers.push(if is_wanted { Answer::No } else { Answer::Unasked });
            next = match self.input.next(run)? {
                None => None,
                Some(row) => {
                    let is_wanted = self.is_wanted(run, &row)?;
                    Some((row, is_wanted))
                }
            };
        }
        all.rows.finish(run)?;
        let Some(Once::Set(mut members)) = self.once.take() else {
            return Ok(all);
        };
        let room = run.batch.room().unwrap_or(usize::MAX);
        loop {
            for (at, answer) in all.answers.iter_mut().enumerate() {
                row_done()?;
                if *answer < Answer::Yes
                    && let Some(row) = all.rows.get(at)?
                {
                    *answer = members.have(&RowKey(row[all.width..].to_vec())).max(*answer);
                }
            }
            let Some(mut others) = members.others.take().filter(|others| !others.is_over()) else {
                return Ok(all);
            };
            self.kept.clear();
            members = Members::default();
            while self.kept.bytes() <= room {
                let Some(row) = others.next()? else { break };
                self.kept.grow_spilling(weight(&row))?;
                members.add(row);
            }
            members.others = Some(others);
        }
    }
}

impl Answered {
    /// The next row with its answer.
    fn next(&mut self) -> Result<Option<Tuple>> {
        let Some(row) = self.rows.get(self.next)? else {
            return Ok(None);
        };
        row_done()?;
        let mut row = row[..self.width].to_vec();
        row.push(self.answers[self.next].value());
        self.next += 1;
        Ok(Some(row))
    }
}

impl<S: Scalar> Rows<S> for Applied<S> {
    fn next(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Tuple>> {
        let ApplyKind::Lateral { keeps } = self.kind else {
            if let Some(answered) = &mut self.answered {
                return answered.next();
            }
            let Some(mut row) = self.input.next(run)? else {
                return Ok(None);
            };
            row_done()?;
            let value = match &self.kind {
                _ if !self.is_wanted(run, &row)? => Value::Null,
                ApplyKind::In { .. } if self.correlated => self.is_in_own(run, &row)?.value(),
                ApplyKind::In { .. } => match self.is_in(run, &row)? {
                    Some(answer) => answer.value(),
                    None => {
                        let answered = self.answer_all(run, row)?;
                        return self.answered.insert(answered).next();
                    }
                },
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
