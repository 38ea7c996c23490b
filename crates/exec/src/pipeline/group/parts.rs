//! What the parts of a key are for rows of columns, by numbers: the same number for the same value.
//!
//! A key that is a document is made of parts, which are paths or expressions. Of arithmetic and of expressions the results are numbered in place of the values at
//! the paths, of which there may be many more; what is no arithmetic is evaluated once for each combination of the values that it reads, if these are few.

use crate::columns::computed::{self, Computed};
use crate::columns::fields::{Fields, paths_of};
use crate::interner::Interner;
use nestor_columns::{Column, Places};
use nestor_model::statement::work;
use nestor_model::vector::Seed;
use nestor_model::{Result, Str, Value, ValueRef};
use nestor_query::Expr;
use nestor_query::env::{Env, OpContext};
use nestor_query::expr::Deps;
use std::collections::HashMap;

/// No number yet.
pub(super) const NONE: u32 = u32::MAX;

/// Bytes of a combination or a value that has a number, about.
pub(super) const ENTRY_BYTES: usize = 48;

/// With more combinations than these of which less than one in [`SAME_PART`] rows had the same, an expression is computed row by row.
const VALUES_MANY: usize = 4096;
const SAME_PART: usize = 4;

/// What tells rows apart: the values of all parts make the key.
pub(super) enum KeyPart {
    /// The value at a path of the key.
    Path(usize),
    /// What arithmetic gives.
    Computed(Expr),
    /// What an expression gives: once for each combination of the values at its paths, if these are few.
    Of(Box<Of>),
}

/// An expression over some paths.
pub(super) struct Of {
    paths: Vec<usize>,
    expr: Expr,
    /// Of each path the numbers of its values.
    values: Vec<Numbers>,
    /// The number of the result by that of the value of the only path.
    single: Vec<u32>,
    /// The same where it reads several paths, or none.
    several: HashMap<Box<[u32]>, u32>,
    rows: usize,
}

/// Of each path of a part, of columns with few values, the number of each by its number in the segment.
pub(super) type Local = Vec<Vec<u32>>;

/// The parts of a key that are no constants.
pub(super) fn leaves(id: &Expr) -> Vec<&Expr> {
    fn add<'e>(expr: &'e Expr, out: &mut Vec<&'e Expr>) {
        match expr.object_fields() {
            Some(fields) => fields.iter().for_each(|(_, field)| add(field, out)),
            None if expr.constant().is_some() => {}
            None => out.push(expr),
        }
    }
    let mut out = Vec::new();
    add(id, &mut out);
    out
}

impl KeyPart {
    /// A part of a key that reads these paths; `None` when it reads others.
    pub(super) fn of(leaf: &Expr, paths: &[Str]) -> Option<Self> {
        let place = |path: &str| paths.iter().position(|own| own == path);
        if let Some(path) = leaf.field_path() {
            return place(path.as_str()).map(Self::Path);
        }
        if computed::is_arithmetic(leaf) {
            return Some(Self::Computed(leaf.clone()));
        }
        let mut deps = Deps::default();
        leaf.dependencies(&mut deps);
        let paths: Vec<usize> = paths_of(&deps)?.iter().map(|path| place(path)).collect::<Option<_>>()?;
        Some(Self::Of(Box::new(Of {
            values: paths.iter().map(|_| Numbers::default()).collect(),
            paths,
            expr: leaf.clone(),
            single: Vec::new(),
            several: HashMap::new(),
            rows: 0,
        })))
    }

    /// Bytes that it holds beside numbers.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Of(of) => (of.single.len() + of.several.len() * of.paths.len()) * size_of::<u32>(),
            Self::Path(_) | Self::Computed(_) => 0,
        }
    }

    /// The number, among `known`, of what each row has. `local` is of the segment; `entries` counts what gets a number.
    ///
    /// Errors: those of the expression, and of the interrupt.
    pub(super) fn numbers(
        &mut self,
        (fields, columns): (&Fields, &[Option<&Column>]),
        (places, rows): (&Places<'_>, &[usize]),
        local: &mut Local,
        (known, entries): (&mut Numbers, &mut usize),
        op: &OpContext,
    ) -> Result<Vec<u32>> {
        match self {
            Self::Path(path) => Ok(numbers_at(columns[*path], (known, entries), places, local_of(local, 0))),
            Self::Computed(expr) => {
                let of_path = |path: &str| {
                    let at = fields.paths().iter().position(|own| own == path);
                    at.and_then(|at| columns[at])
                };
                match computed::numbers(expr, &of_path, places) {
                    Some(values) => Ok(results(known, entries, &values)),
                    // Whatever else it gives, or refuses, it does row by row.
                    None => Results::of(expr, (fields, columns), op).numbers(rows, known, entries),
                }
            }
            Self::Of(of) => of.numbers((fields, columns), (places, rows), local, (known, entries), op),
        }
    }
}

fn local_of(local: &mut Local, at: usize) -> &mut Vec<u32> {
    if local.len() <= at {
        local.resize_with(at + 1, Vec::new);
    }
    &mut local[at]
}

impl Of {
    fn numbers(
        &mut self,
        (fields, columns): (&Fields, &[Option<&Column>]),
        (places, rows): (&Places<'_>, &[usize]),
        local: &mut Local,
        (known, entries): (&mut Numbers, &mut usize),
        op: &OpContext,
    ) -> Result<Vec<u32>> {
        let mut result = Results::of(&self.expr, (fields, columns), op);
        let met = self.single.len().max(self.several.len());
        if met > VALUES_MANY && met * SAME_PART > self.rows {
            return result.numbers(rows, known, entries);
        }
        self.rows += rows.len();
        let each = self.paths.iter().zip(&mut self.values).enumerate();
        let mut numbered: Vec<Vec<u32>> = each
            .map(|(at, (path, values))| numbers_at(columns[*path], (values, entries), places, local_of(local, at)))
            .collect();
        if let [only] = numbered.as_mut_slice() {
            for (number, row) in only.iter_mut().zip(rows) {
                let value = *number as usize;
                if self.single.len() <= value {
                    self.single.resize(value + 1, NONE);
                }
                if self.single[value] == NONE {
                    self.single[value] = result.number(*row, known, entries)?;
                }
                *number = self.single[value];
            }
            return Ok(std::mem::take(only));
        }
        let mut out = Vec::with_capacity(rows.len());
        let mut combination = vec![0; numbered.len()];
        for (at, row) in rows.iter().enumerate() {
            let before = out
                .last()
                .copied()
                .filter(|_| numbered.iter().all(|own| own[at] == own[at - 1]));
            if let Some(before) = before {
                out.push(before);
                continue;
            }
            combination
                .iter_mut()
                .zip(&numbered)
                .for_each(|(own, numbers)| *own = numbers[at]);
            let number = match self.several.get(combination.as_slice()) {
                Some(number) => *number,
                None => {
                    let number = result.number(*row, known, entries)?;
                    self.several.insert(combination.as_slice().into(), number);
                    *entries += 1;
                    number
                }
            };
            out.push(number);
        }
        Ok(out)
    }
}

/// Values by numbers.
#[derive(Default)]
pub(super) struct Numbers {
    texts: Interner,
    seed: Seed,
    /// The number of each text by the one that it has among texts.
    of_texts: Vec<u32>,
    others: HashMap<Known, u32>,
    /// The values, where somebody wants them back.
    kept: Option<Box<Values>>,
}

/// Values by their numbers, and what is known of them.
#[derive(Default)]
struct Values {
    all: Vec<Value>,
    bytes: usize,
    /// Which kinds of them there are, a bit for each.
    kinds: u16,
}

/// Values of one kind are the same, or none equals the other; so are those of different ones, but for these.
mod kind {
    pub(super) const INT32: u16 = 1;
    pub(super) const INT64: u16 = 2;
    pub(super) const DOUBLE: u16 = 4;
    pub(super) const NULL: u16 = 8;
    pub(super) const MISSING: u16 = 16;
    /// Whatever may equal another one.
    pub(super) const OTHER: u16 = 32;
    /// What equals nothing else.
    pub(super) const APART: u16 = 64;
}

/// The kind of a value.
fn kind_of(value: ValueRef<'_>) -> u16 {
    match value {
        ValueRef::Int32(_) => kind::INT32,
        ValueRef::Int64(_) => kind::INT64,
        ValueRef::Double(value) if value.is_nan() || (value == 0.0 && value.is_sign_negative()) => kind::OTHER,
        ValueRef::Double(_) => kind::DOUBLE,
        ValueRef::Null => kind::NULL,
        ValueRef::Missing => kind::MISSING,
        ValueRef::String(_) | ValueRef::Bool(_) | ValueRef::DateTime(_) | ValueRef::ObjectId(_) => kind::APART,
        _ => kind::OTHER,
    }
}

impl Numbers {
    /// None yet, which are kept as they are.
    pub(super) fn keeping() -> Self {
        Self {
            kept: Some(Box::default()),
            ..Self::default()
        }
    }

    /// The value with a number, where they are kept.
    pub(super) fn value(&self, number: u32) -> Value {
        let kept = self.kept.as_ref().and_then(|kept| kept.all.get(number as usize));
        kept.cloned().unwrap_or(Value::Null)
    }

    /// Bytes of the values that are kept.
    pub(super) fn bytes(&self) -> usize {
        self.kept.as_ref().map_or(0, |kept| kept.bytes)
    }

    /// Whether two of the values that are kept may be one key, though they are not the same.
    pub(super) fn have_equals(&self) -> bool {
        let kinds = self.kept.as_ref().map_or(kind::OTHER, |kept| kept.kinds);
        let has_several = |of: u16| (kinds & of).count_ones() > 1;
        let numbers = kind::INT32 | kind::INT64 | kind::DOUBLE;
        kinds & kind::OTHER != 0 || has_several(numbers) || has_several(kind::NULL | kind::MISSING)
    }

    fn keep(&mut self, value: ValueRef<'_>) {
        if let Some(kept) = &mut self.kept {
            let kind = kind_of(value);
            let value = value.to_value();
            kept.bytes += size_of::<Value>() + value.weight();
            kept.kinds |= kind;
            kept.all.push(value);
        }
    }
}

/// A value that is no text and has a number: no two that are told apart by anybody are the same.
#[derive(PartialEq, Eq, Hash)]
enum Known {
    /// Its type, and its bits.
    Bits(u8, u64),
    Other(Box<[u8]>),
}

fn known(value: ValueRef<'_>) -> Known {
    match value {
        ValueRef::Int32(value) => Known::Bits(0, value as u64),
        ValueRef::Int64(value) => Known::Bits(1, value as u64),
        ValueRef::DateTime(value) => Known::Bits(2, value as u64),
        ValueRef::Double(value) => Known::Bits(3, value.to_bits()),
        ValueRef::Bool(value) => Known::Bits(4, u64::from(value)),
        other => {
            let mut document = nestor_model::Document::new();
            if !other.is_missing() {
                document.push("v", other.to_value());
            }
            Known::Other(document.to_raw().as_bytes().into())
        }
    }
}

/// What an expression gives for rows.
struct Results<'r> {
    expr: &'r Expr,
    fields: &'r Fields,
    columns: &'r [Option<&'r Column>],
    op: &'r OpContext,
    buffer: Vec<u8>,
}

impl<'r> Results<'r> {
    fn of(expr: &'r Expr, (fields, columns): (&'r Fields, &'r [Option<&'r Column>]), op: &'r OpContext) -> Self {
        Self {
            expr,
            fields,
            columns,
            op,
            buffer: Vec::new(),
        }
    }

    /// The number of that of each row.
    ///
    /// Errors: those of the expression.
    fn numbers(&mut self, rows: &[usize], known: &mut Numbers, entries: &mut usize) -> Result<Vec<u32>> {
        rows.iter().map(|row| self.number(*row, known, entries)).collect()
    }

    /// The number of that of a row.
    ///
    /// Errors: those of the expression.
    fn number(&mut self, row: usize, known: &mut Numbers, entries: &mut usize) -> Result<u32> {
        work(1)?;
        self.fields
            .with_document(self.columns, row, &mut self.buffer, |document| {
                let value = self.expr.eval_ref(&mut Env::new(document, self.op))?;
                Ok(number(known, entries, value.as_ref()))
            })
    }
}

/// The number of a value.
pub(super) fn number(known_ones: &mut Numbers, entries: &mut usize, value: ValueRef<'_>) -> u32 {
    let next = (known_ones.of_texts.len() + known_ones.others.len()) as u32;
    if let ValueRef::String(text) = value
        && let Some(at) = known_ones.texts.number(text, &known_ones.seed)
    {
        let at = at as usize;
        if at == known_ones.of_texts.len() {
            *entries += 1 + text.len() / ENTRY_BYTES;
            known_ones.of_texts.push(next);
            known_ones.keep(value);
        }
        return known_ones.of_texts[at];
    }
    let number = *known_ones.others.entry(known(value)).or_insert(next);
    if number == next {
        *entries += 1;
        known_ones.keep(value);
    }
    number
}

/// Results whose numbers are looked for here first.
const NEAR: usize = 64;

/// The numbers of results.
fn results(known: &mut Numbers, entries: &mut usize, values: &Computed) -> Vec<u32> {
    let mut near = [(u8::MAX, 0, NONE); NEAR];
    let mut of_value = |value: ValueRef<'_>| {
        let Known::Bits(kind, bits) = self::known(value) else {
            return number(known, entries, value);
        };
        let at = (bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize % NEAR;
        if (near[at].0, near[at].1) != (kind, bits) {
            near[at] = (kind, bits, number(known, entries, value));
        }
        near[at].2
    };
    match values {
        Computed::Numbers(values) => values.iter().map(|value| of_value((*value).into())).collect(),
        Computed::Longs(values) => values.iter().map(|value| of_value(ValueRef::Int64(*value))).collect(),
        Computed::Doubles(values) => values.iter().map(|value| of_value(ValueRef::Double(*value))).collect(),
    }
}

/// The numbers of the values of some rows of a column, or of nothing.
fn numbers_at(
    column: Option<&Column>,
    (known, entries): (&mut Numbers, &mut usize),
    places: &Places<'_>,
    local: &mut Vec<u32>,
) -> Vec<u32> {
    let Some(column) = column else {
        return vec![number(known, entries, ValueRef::Missing); places.len()];
    };
    let Some((count, mut numbers)) = column.numbers(places) else {
        return places.map(|row| number(known, entries, column.value(row)));
    };
    if local.is_empty() {
        local.resize(count, NONE);
    }
    let mut at = 0;
    places.each(|row| {
        let own = &mut local[numbers[at] as usize];
        if *own == NONE {
            *own = number(known, entries, column.value(row));
        }
        numbers[at] = *own;
        at += 1;
    });
    numbers
}
