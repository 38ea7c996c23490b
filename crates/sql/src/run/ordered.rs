//! The order of rows as the find layer's order of documents.
//!
//! SQL has nulls behind all else or, when asked to, before it, and not a number behind the numbers; the order of BSON begins with
//! what is null or missing, and its numbers with what is none. So an ordered scan consists of parts that are read one after the other, each of them
//! in the order of an index:
//!
//! ```text
//! a integer              ORDER BY a            a is not null, a is null
//!                        ORDER BY a DESC       a is null, a is not null
//!                        ORDER BY a NULLS FIRST   all
//! b double precision     ORDER BY b            b is a number, b is NaN, b is null
//! c text, inferred       ORDER BY c            as a, unless some document has another type there
//! ```
//!
//! Columns of types whose order is another one in BSON (`numeric`, whose digits documents may hold in two ways, `jsonb`, arrays, `uuid`,
//! `char`) are not ordered so. Only the first column may need parts, and only the last one may have a type by which documents that
//! differ look the same.

use crate::catalog::{Column, Table};
use crate::expr::{Comparison, Expr, Node};
use crate::plan::estimate::Given;
use crate::types::Type;
use nestor_model::{Array, Document, Value, ValueRef};
use nestor_planner::relation::{Scan, SortKey};
use nestor_storage::{Collection, Index};

/// A part of an ordered scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// All documents.
    All,
    /// Those with a value.
    Values,
    /// Those with not a number.
    NotNumbers,
    /// Those without a value.
    Nulls,
}

/// An order that documents can be read in.
#[derive(Debug)]
pub struct Order {
    /// The paths, and whether they ascend.
    by: Vec<(String, bool)>,
    parts: Vec<Part>,
    /// Documents with other values than text at the first path are in another place in BSON.
    text: bool,
}

impl Order {
    /// The order that a scan is asked for; `None` when documents cannot be read in it.
    pub fn of(scan: &Scan<Expr>, table: &Table) -> Option<Self> {
        let mut by = Vec::new();
        let (mut parts, mut text) = (vec![Part::All], false);
        for (i, key) in scan.order.iter().enumerate() {
            let column = column_of(&key.by, table)?;
            let is_last = i + 1 == scan.order.len();
            if !is_ordered(&column.ty) || is_coarse(&column.ty) && !is_last {
                return None;
            }
            if i == 0 {
                parts = parts_of(key, column, &scan.conditions);
                text = column.ty.is_text() && !table.declared;
            } else {
                let strict = parts_of(key, column, &scan.conditions).len() > 1;
                if strict || column.ty.is_text() && !table.declared {
                    return None;
                }
            }
            by.push((column.path.clone(), !key.descending));
        }
        (!by.is_empty()).then_some(Self { by, parts, text })
    }

    /// The paths, and whether they ascend, where the order is that of BSON for all documents.
    pub fn plain(&self) -> Option<&[(String, bool)]> {
        (self.parts == [Part::All] && !self.text).then_some(&self.by)
    }

    /// The order as a sort of the find layer.
    pub fn sort(&self) -> Document {
        let mut out = Document::new();
        for (path, ascending) in &self.by {
            // A column that comes twice decides nothing the second time.
            if out.get(path).is_none() {
                out.push(path.as_str(), if *ascending { 1 } else { -1 });
            }
        }
        out
    }

    /// How many parts there are.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// The filter of a part, of the rows that `filter` finds.
    pub fn filter(&self, part: usize, filter: Document) -> Document {
        let Some((path, _)) = self.by.first() else {
            return filter;
        };
        let nan = || Value::Double(f64::NAN);
        let own = match self.parts.get(part) {
            None | Some(Part::All) => return filter,
            Some(Part::Values) if self.parts.contains(&Part::NotNumbers) => {
                let mut test = Document::new();
                let mut none = vec![nan()];
                if self.parts.contains(&Part::Nulls) {
                    none.push(Value::Null);
                }
                test.push("$nin", Value::Array(Array::new(none)));
                Value::from(test)
            }
            Some(Part::Values) => {
                let mut test = Document::new();
                test.push("$ne", Value::Null);
                Value::from(test)
            }
            Some(Part::NotNumbers) => nan(),
            Some(Part::Nulls) => Value::Null,
        };
        both(filter, path, own)
    }

    /// A filter that finds what of the rows that `filter` finds is in another place than its text.
    pub fn elsewhere(&self, filter: Document) -> Option<Document> {
        let (path, _) = self.by.first().filter(|_| self.text)?;
        let mut text = Document::new();
        text.push("$gte", "");
        let mut test = Document::new();
        test.push("$not", text);
        test.push("$ne", Value::Null);
        Some(both(filter, path, test.into()))
    }
}

/// What `filter` finds and passes a test at a path.
fn both(filter: Document, path: &str, test: Value) -> Document {
    let mut own = Document::new();
    own.push(path, test);
    if filter.is_empty() {
        return own;
    }
    let mut out = Document::new();
    out.push("$and", Value::Array(Array::new(vec![filter.into(), own.into()])));
    out
}

fn column_of<'t>(expr: &Expr, table: &'t Table) -> Option<&'t Column> {
    match expr.node() {
        Node::Column { index, .. } => {
            let column = table.columns.get(*index)?;
            super::find::usable(&column.path).then_some(column)
        }
        _ => None,
    }
}

/// Whether values of a type that are not null have the order of BSON, but for not a number.
fn is_ordered(ty: &Type) -> bool {
    matches!(
        ty,
        Type::Int2
            | Type::Int4
            | Type::Int8
            | Type::Float4
            | Type::Float8
            | Type::Bool
            | Type::Text
            | Type::Varchar
            | Type::ObjectId
            | Type::Date
            | Type::Timestamp
            | Type::Timestamptz
    )
}

/// Whether values that differ in documents may be one value of the type.
fn is_coarse(ty: &Type) -> bool {
    matches!(ty, Type::Float4 | Type::Float8 | Type::Date)
}

fn parts_of(key: &SortKey<Expr>, column: &Column, conditions: &[Expr]) -> Vec<Part> {
    let is_float = matches!(column.ty, Type::Float4 | Type::Float8);
    let has_nulls = !column.not_null && !conditions.iter().any(|condition| excludes_null(condition, &key.by));
    let mut parts = match is_float {
        true => vec![Part::Values, Part::NotNumbers],
        // The order of BSON begins with nulls.
        false if !has_nulls || key.nulls_first != key.descending => return vec![Part::All],
        false => vec![Part::Values],
    };
    if key.descending {
        parts.reverse();
    }
    match (has_nulls, key.nulls_first) {
        (true, true) => parts.insert(0, Part::Nulls),
        (true, false) => parts.push(Part::Nulls),
        (false, _) => {}
    }
    parts
}

/// The column that a condition compares with what is the same for all rows, and whether it is for equality.
fn compared(condition: &Expr) -> Option<(&Expr, bool)> {
    let column = |expr: &Expr| matches!(expr.node(), Node::Column { .. });
    match condition.node() {
        Node::Compare(op, a, b) => match (column(a), column(b)) {
            (true, _) if b.is_constant() => Some((a, *op == Comparison::Equal)),
            (_, true) if a.is_constant() => Some((b, *op == Comparison::Equal)),
            _ => None,
        },
        Node::InList(a, _, false) | Node::Quantified { arg: a, all: false, .. } => Some((a, false)),
        Node::Match(like) => Some((&like.text, false)),
        _ => None,
    }
}

fn excludes_null(condition: &Expr, column: &Expr) -> bool {
    match condition.node() {
        Node::IsNull(arg, true) => same(arg, column),
        // A pattern may be negated, which null is not true of either.
        _ => compared(condition).is_some_and(|(compared, _)| same(compared, column)),
    }
}

fn same(a: &Expr, b: &Expr) -> bool {
    match (a.node(), b.node()) {
        (Node::Column { index: a, .. }, Node::Column { index: b, .. }) => a == b,
        _ => false,
    }
}

/// How an index of a collection has the order that a scan is asked for.
pub fn given(scan: &Scan<Expr>, table: &Table, collection: &Collection) -> Given {
    let Some(order) = Order::of(scan, table) else {
        return Given::No;
    };
    let compared: Vec<(&str, bool)> = scan
        .conditions
        .iter()
        .filter_map(|condition| {
            let (column, is_equal) = compared(condition)?;
            Some((column_of(column, table)?.path.as_str(), is_equal))
        })
        .collect();
    let mut best = Given::No;
    for index in collection.all_indexes() {
        match fit(index, &order, &compared) {
            Given::Part => return Given::Part,
            Given::Whole => best = Given::Whole,
            Given::No => {}
        }
    }
    best
}

fn fit(index: &Index, order: &Order, compared: &[(&str, bool)]) -> Given {
    let is_multikey = index.multikey.iter().any(|parts| *parts != 0);
    if is_multikey || index.hidden || index.sparse || index.partial_filter.is_some() || index.collation.is_some() {
        return Given::No;
    }
    let mut parts = Vec::new();
    for (path, kind) in index.key_pattern.iter() {
        match kind {
            ValueRef::Int32(_) | ValueRef::Int64(_) | ValueRef::Double(_) => {
                parts.push((path, nestor_model::number::safe_i64(kind).is_none_or(|kind| kind >= 0)))
            }
            _ => return Given::No,
        }
    }
    let is_fixed = |path: &str| compared.iter().any(|(own, is_equal)| *own == path && *is_equal);
    let (mut at, mut forward) = (0, None);
    for (path, ascending) in &order.by {
        if is_fixed(path) {
            continue;
        }
        while parts.get(at).is_some_and(|(own, _)| own != path && is_fixed(own)) {
            at += 1;
        }
        let Some((_, stored)) = parts.get(at).filter(|(own, _)| own == path) else {
            return Given::No;
        };
        let same = stored == ascending;
        if forward.is_some_and(|forward| forward != same) {
            return Given::No;
        }
        forward = Some(same);
        at += 1;
    }
    let is_bounded = parts
        .first()
        .is_some_and(|(path, _)| compared.iter().any(|(own, _)| own == path));
    if is_bounded { Given::Part } else { Given::Whole }
}
