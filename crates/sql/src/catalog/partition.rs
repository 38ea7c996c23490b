//! How a partitioned table divides its rows: keys, bounds, which bound a row meets, and which bounds no row meets of which conditions hold.
//!
//! [`Node::route`] is the one place that finds the partition of a row, [`Level::holds`] the one that says whether a row may stand in a partition, and
//! [`Level::excludes`] the one that passes partitions over. A row of a HASH partition is found by the hash that hashed indexes have of its key, as it
//! stands in documents: it is the same wherever and whenever it is computed.

use super::Table;
use crate::error::{self, Field, error, fail, unsupported};
use crate::expr::Expr;
use crate::types::compare::{compare, key as key_of};
use crate::types::{Type, output, stored};
use nestor_model::{Array, Error, Namespace, Result, Value};
use nestor_planner::interval::{Interval, IntervalList};
use nestor_planner::relation::{Env, Scalar as _};
use nestor_query::expr::hashed_index_key;
use sqlparser::ast::{Expr as Ast, ForValues, FunctionArg, FunctionArgExpr, FunctionArguments};
use std::cmp::Ordering;
use std::sync::Arc;

/// By what rows are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Each partition has the keys from one on, up to and without another one.
    Range,
    /// Each partition has some keys.
    List,
    /// Each partition has the keys with a remainder of their hash.
    Hash,
}

impl Strategy {
    /// As `pg_partitioned_table` has it.
    pub fn letter(self) -> &'static str {
        match self {
            Self::Range => "r",
            Self::List => "l",
            Self::Hash => "h",
        }
    }

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Range => "RANGE",
            Self::List => "LIST",
            Self::Hash => "HASH",
        }
    }
}

/// A part of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The column, if it is one.
    pub column: Option<String>,
    /// How it is written.
    pub text: String,
}

/// What PARTITION BY says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Division {
    /// By what.
    pub strategy: Strategy,
    /// The key.
    pub parts: Vec<Part>,
}

/// What PARTITION OF says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionOf {
    /// The collection of the table whose partition it is.
    pub parent: String,
    /// Its bound, as it is written.
    pub bound: ForValues,
}

impl Division {
    /// What the expression behind PARTITION BY says.
    ///
    /// Errors: 42601 for what is no strategy, 0A000.
    pub fn of(by: &Ast) -> Result<Self> {
        let Ast::Function(call) = by else {
            return fail("42601", "PARTITION BY takes RANGE, LIST or HASH");
        };
        let word = call.name.to_string();
        let strategy = match word.to_uppercase().as_str() {
            "RANGE" => Strategy::Range,
            "LIST" => Strategy::List,
            "HASH" => Strategy::Hash,
            _ => {
                let word = word.to_lowercase();
                return fail("22023", format!("unrecognized partitioning strategy \"{word}\""));
            }
        };
        let FunctionArguments::List(list) = &call.args else {
            return fail("42601", "PARTITION BY takes a key");
        };
        let parts = list.args.iter().map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Part::of(expr),
            _ => unsupported("a partition key of this form"),
        });
        let parts: Vec<Part> = parts.collect::<Result<_>>()?;
        if strategy == Strategy::List && parts.len() > 1 {
            return fail(
                "42P17",
                "cannot use \"list\" partition strategy with more than one column",
            );
        }
        Ok(Self { strategy, parts })
    }

    /// As PARTITION BY has it.
    pub fn shown(&self) -> String {
        format!("{} ({})", self.strategy.word(), self.columns())
    }

    /// Its key, with commas between the parts.
    pub fn columns(&self) -> String {
        let parts: Vec<String> = self.parts.iter().map(Part::shown).collect();
        parts.join(", ")
    }
}

impl Part {
    fn of(expr: &Ast) -> Result<Self> {
        Ok(match expr {
            Ast::Identifier(name) => {
                let column = crate::types::names::ident(name);
                Self {
                    text: crate::types::names::quoted(&column),
                    column: Some(column),
                }
            }
            Ast::Nested(inner) => Self::of(inner)?,
            // Texts have one order, whatever it is called.
            Ast::Collate { expr, collation } => {
                crate::types::collation::named(collation)?;
                Self::of(expr)?
            }
            expr => Self {
                column: None,
                text: expr.to_string(),
            },
        })
    }

    /// As it stands in a list: what is neither a column nor a call is in parentheses.
    fn shown(&self) -> String {
        let is_call = || {
            let ast = crate::parse::expression(&self.text);
            matches!(ast, Ok(Ast::Function(_)))
        };
        match self.column.is_some() || is_call() {
            true => self.text.clone(),
            false => format!("({})", self.text),
        }
    }
}

/// An end of a range.
#[derive(Clone, Debug)]
pub enum End {
    /// Before all values.
    Min,
    /// At a value.
    At(Value),
    /// Behind all values.
    Max,
}

/// Which rows a partition has.
#[derive(Clone, Debug)]
pub enum Bound {
    /// Those that no other partition has.
    Default,
    /// Those with one of these keys.
    List {
        /// The keys.
        values: Vec<Value>,
        /// Null is one, too.
        null: bool,
    },
    /// Those with a key in a range.
    Range {
        /// The first key.
        from: Vec<End>,
        /// The one behind the last.
        to: Vec<End>,
    },
    /// Those the hash of whose key leaves a remainder.
    Hash {
        /// What the hash is divided by.
        modulus: u64,
        /// The remainder.
        remainder: u64,
    },
}

/// A key, ready to be computed of rows.
#[derive(Debug)]
pub struct Keys {
    /// By what.
    pub strategy: Strategy,
    /// Its parts, over the columns of the table that a statement names.
    pub exprs: Vec<Expr>,
    /// Their types.
    pub types: Vec<Type>,
}

fn compare_ends(types: &[Type], a: &[End], b: &[End]) -> Ordering {
    for ((ty, a), b) in types.iter().zip(a).zip(b) {
        let order = match (a, b) {
            // What stands behind an end without a value does not count.
            (End::Min, End::Min) | (End::Max, End::Max) => return Ordering::Equal,
            (End::Min, _) | (_, End::Max) => Ordering::Less,
            (End::Max, _) | (_, End::Min) => Ordering::Greater,
            (End::At(a), End::At(b)) => compare(ty, a, b),
        };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

fn compare_key(types: &[Type], key: &[Value], end: &[End]) -> Ordering {
    for ((ty, key), end) in types.iter().zip(key).zip(end) {
        let order = match end {
            End::Min => return Ordering::Greater,
            End::Max => return Ordering::Less,
            End::At(end) => compare(ty, key, end),
        };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

/// The hash of a key as documents have it.
fn hash(types: &[Type], key: &[Value]) -> u64 {
    let mut parts: Vec<Value> = types
        .iter()
        .zip(key)
        .map(|(ty, value)| match value {
            Value::Null => Value::Null,
            // What is equal has one hash.
            value if *ty == Type::Citext => key_of(ty, value.clone()),
            value => stored::write(ty, value.clone()),
        })
        .collect();
    let hashed = match parts.len() {
        1 => parts.swap_remove(0),
        _ => Value::Array(Array::new(parts)),
    };
    hash_of(&hashed)
}

/// The hash of a value in a document, without its sign.
fn hash_of(value: &Value) -> u64 {
    (hashed_index_key(value.as_ref()) & i64::MAX).cast_unsigned()
}

impl Keys {
    /// The key of a row.
    ///
    /// Errors: those of its expressions.
    pub fn of(&self, row: &[Value], env: &Env<'_>) -> Result<Vec<Value>> {
        self.exprs.iter().map(|expr| expr.value(row, env)).collect()
    }

    /// Whether a key meets a bound that is not DEFAULT.
    fn meets(&self, key: &[Value], bound: &Bound) -> bool {
        match bound {
            Bound::Default => false,
            Bound::List { values, null } => match (key.first(), self.types.first()) {
                (Some(Value::Null) | None, _) => *null,
                (Some(key), Some(ty)) => values.iter().any(|own| compare(ty, own, key).is_eq()),
                (Some(_), None) => false,
            },
            Bound::Range { from, to } => {
                let is_null = key.iter().any(|value| matches!(value, Value::Null));
                let (types, is_behind) = (&self.types, compare_key(&self.types, key, to).is_ge());
                !is_null && !is_behind && compare_key(types, key, from).is_ge()
            }
            Bound::Hash { modulus, remainder } => hash(&self.types, key) % modulus == *remainder,
        }
    }

    /// Whether a key meets one of two bounds that are not DEFAULT, and may meet the other.
    pub fn overlap(&self, a: &Bound, b: &Bound) -> bool {
        match (a, b) {
            (
                Bound::List { values, null },
                Bound::List {
                    values: others,
                    null: other,
                },
            ) => {
                let is_there = |value: &Value| self.meets(std::slice::from_ref(value), b);
                (*null && *other) || !others.is_empty() && values.iter().any(is_there)
            }
            (Bound::Range { from, to }, Bound::Range { from: first, to: last }) => {
                compare_ends(&self.types, from, last).is_lt() && compare_ends(&self.types, first, to).is_lt()
            }
            (
                Bound::Hash { modulus, remainder },
                Bound::Hash {
                    modulus: other,
                    remainder: rest,
                },
            ) => {
                let least = (*modulus).min(*other).max(1);
                remainder % least == rest % least
            }
            _ => false,
        }
    }

    /// Whether no key meets a range.
    pub fn is_empty(&self, from: &[End], to: &[End]) -> bool {
        compare_ends(&self.types, from, to).is_ge()
    }

    /// The order in which partitions are listed.
    pub fn order(&self, a: &Bound, b: &Bound) -> Ordering {
        match (a, b) {
            (Bound::Default, Bound::Default) => Ordering::Equal,
            (Bound::Default, _) => Ordering::Greater,
            (_, Bound::Default) => Ordering::Less,
            (Bound::Range { from, .. }, Bound::Range { from: other, .. }) => compare_ends(&self.types, from, other),
            (
                Bound::Hash { modulus, remainder },
                Bound::Hash {
                    modulus: other,
                    remainder: rest,
                },
            ) => (modulus, remainder).cmp(&(other, rest)),
            (Bound::List { values, .. }, Bound::List { values: others, .. }) => {
                let ty = self.types.first().cloned().unwrap_or(Type::Unknown);
                let least = |all: &[Value]| all.iter().min_by(|a, b| compare(&ty, a, b)).cloned();
                match (least(values), least(others)) {
                    (Some(a), Some(b)) => compare(&ty, &a, &b),
                    (a, b) => b.is_some().cmp(&a.is_some()),
                }
            }
            _ => Ordering::Equal,
        }
    }

    /// A bound as catalogs show it.
    pub fn shown(&self, bound: &Bound) -> String {
        let ty = |at: usize| self.types.get(at).unwrap_or(&Type::Unknown);
        let ends = |ends: &[End]| -> String {
            let each = ends.iter().enumerate().map(|(at, end)| match end {
                End::Min => "MINVALUE".to_owned(),
                End::Max => "MAXVALUE".to_owned(),
                End::At(value) => literal(ty(at), value),
            });
            each.collect::<Vec<_>>().join(", ")
        };
        match bound {
            Bound::Default => "DEFAULT".to_owned(),
            Bound::List { values, null } => {
                let each = values.iter().map(|value| literal(ty(0), value));
                let all: Vec<String> = each.chain(null.then(|| "NULL".to_owned())).collect();
                format!("FOR VALUES IN ({})", all.join(", "))
            }
            Bound::Range { from, to } => format!("FOR VALUES FROM ({}) TO ({})", ends(from), ends(to)),
            Bound::Hash { modulus, remainder } => {
                format!("FOR VALUES WITH (modulus {modulus}, remainder {remainder})")
            }
        }
    }
}

/// A value as a bound has it.
pub fn literal(ty: &Type, value: &Value) -> String {
    let text = output::text(ty, value);
    let is_bare = match ty {
        Type::Int2 | Type::Int4 | Type::Numeric => text.chars().all(|c| c.is_ascii_digit() || c == '.'),
        Type::Bool => return if text == "t" { "true" } else { "false" }.to_owned(),
        _ => false,
    };
    match is_bare {
        true => text,
        false => format!("'{}'", text.replace('\'', "''")),
    }
}

/// One level of a partition: the key and the bound that it has there.
#[derive(Clone, Debug)]
pub struct Level {
    /// The key.
    pub keys: Arc<Keys>,
    /// The bound.
    pub bound: Bound,
    /// Those of all others there, of a default partition.
    pub others: Arc<[Bound]>,
}

/// Types whose values BSON has in SQL's order.
fn is_ordered(ty: &Type) -> bool {
    matches!(
        ty,
        Type::Int2
            | Type::Int4
            | Type::Int8
            | Type::Numeric
            | Type::Text
            | Type::Varchar
            | Type::Bool
            | Type::Date
            | Type::Timestamp
            | Type::Timestamptz
            | Type::Uuid
            | Type::Enum(_)
    )
}

fn not_null() -> IntervalList {
    IntervalList::of(Interval::new(Value::Null, false, Value::MaxKey, true))
}

impl Level {
    /// Whether a row may stand there.
    ///
    /// Errors: those of the key.
    pub fn holds(&self, row: &[Value], env: &Env<'_>) -> Result<bool> {
        let key = self.keys.of(row, env)?;
        Ok(match &self.bound {
            Bound::Default => !self.others.iter().any(|other| self.keys.meets(&key, other)),
            bound => self.keys.meets(&key, bound),
        })
    }

    /// Whether no row that stands there fulfils conditions: `said` tells which values they leave of a part of the key, if they say something of it.
    pub fn excludes(&self, said: &dyn Fn(&Expr, &Type) -> Result<Option<IntervalList>>) -> Result<bool> {
        let mut all = Vec::with_capacity(self.keys.exprs.len());
        for (expr, ty) in self.keys.exprs.iter().zip(&self.keys.types) {
            let own = match is_ordered(ty) {
                true => said(expr, ty)?,
                false => None,
            };
            all.push(own);
        }
        if all.iter().all(Option::is_none) {
            return Ok(false);
        }
        Ok(match &self.bound {
            Bound::Default => match all.as_slice() {
                [Some(said)] => {
                    let taken = self
                        .others
                        .iter()
                        .map(|other| self.values(other))
                        .collect::<Option<Vec<_>>>();
                    let taken = taken.map(|all| all.iter().fold(IntervalList::none(), |a, b| a.union(b)));
                    taken.is_some_and(|taken| said.intersect(&taken.complement()).is_empty())
                }
                _ => false,
            },
            Bound::Hash { .. } => self.excludes_hashes(&all),
            Bound::Range { from, to } => !may_lie(&all, from, to, (true, true)),
            bound => match (&all[0], self.values(bound)) {
                (Some(said), Some(own)) => said.intersect(&own).is_empty(),
                _ => false,
            },
        })
    }

    /// The values of a key of one part that meet a bound.
    fn values(&self, bound: &Bound) -> Option<IntervalList> {
        match bound {
            Bound::List { values, null } => {
                let points = values
                    .iter()
                    .cloned()
                    .chain(null.then_some(Value::Null))
                    .map(Interval::point);
                Some(IntervalList::union_of(points.collect()))
            }
            Bound::Range { from, to } => {
                let low = match from.first()? {
                    End::Min => (Value::Null, false),
                    End::At(value) => (value.clone(), true),
                    End::Max => return Some(IntervalList::none()),
                };
                let high = match to.first()? {
                    End::Min => return Some(IntervalList::none()),
                    End::At(value) => (value.clone(), false),
                    End::Max => (Value::MaxKey, true),
                };
                Some(IntervalList::of(Interval::new(low.0, low.1, high.0, high.1)))
            }
            Bound::Default | Bound::Hash { .. } => None,
        }
    }

    fn excludes_hashes(&self, said: &[Option<IntervalList>]) -> bool {
        const KEYS_MAX: usize = 1000;
        let mut keys: Vec<Vec<Value>> = vec![Vec::new()];
        for own in said {
            let Some(own) = own.as_ref().filter(|own| own.is_points() || own.is_empty()) else {
                return false;
            };
            if keys.len() * own.intervals().len() > KEYS_MAX {
                return false;
            }
            let with = |key: &Vec<Value>| {
                let key = key.clone();
                let points: Vec<Value> = own.intervals().iter().map(|interval| interval.low.clone()).collect();
                points.into_iter().map(move |value| {
                    let mut key = key.clone();
                    key.push(value);
                    key
                })
            };
            keys = keys.iter().flat_map(with).collect();
        }
        !keys.iter().any(|key| self.keys.meets(key, &self.bound))
    }
}

/// Whether a key may lie in a range whose parts have values of these: as long as those before are the first (or the last) of the range, the
/// next one is limited by it.
fn may_lie(said: &[Option<IntervalList>], from: &[End], to: &[End], (is_first, is_last): (bool, bool)) -> bool {
    let (Some(own), Some(low), Some(high)) = (said.first(), from.first(), to.first()) else {
        // The end is not in the range.
        return !is_last;
    };
    let own = own.as_ref().map_or_else(not_null, |own| own.intersect(&not_null()));
    let is_only = said.len() == 1;
    let low = if is_first { low } else { &End::Min };
    let high = if is_last { high } else { &End::Max };
    let from_value = match low {
        End::Min => (Value::Null, false),
        End::Max => return false,
        End::At(value) => (value.clone(), true),
    };
    let to_value = match high {
        End::Min => return false,
        End::Max => (Value::MaxKey, true),
        End::At(value) => (value.clone(), !is_only),
    };
    let within = Interval::new(from_value.0, from_value.1, to_value.0, to_value.1);
    let left = own.intersect(&IntervalList::of(within));
    if left.is_empty() || is_only {
        return !left.is_empty();
    }
    let at = |end: &End| match end {
        End::At(value) => Some(IntervalList::point(value.clone())),
        _ => None,
    };
    let (first, last) = (at(low), at(high));
    let ends = first
        .iter()
        .chain(&last)
        .fold(IntervalList::none(), |all, own| all.union(own));
    if !left.intersect(&ends.complement()).is_empty() {
        return true;
    }
    let meets = |point: &Option<IntervalList>| point.as_ref().is_some_and(|point| !left.intersect(point).is_empty());
    let is_one = match (&first, &last) {
        (Some(a), Some(b)) => !a.intersect(b).is_empty(),
        _ => false,
    };
    meets(&first) && may_lie(&said[1..], &from[1..], &to[1..], (true, is_one && is_last))
        || meets(&last) && !is_one && may_lie(&said[1..], &from[1..], &to[1..], (false, true))
}

/// A partition that holds rows itself.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// Its collection.
    pub ns: Namespace,
    /// It, with columns in the order of the table that a statement names, and [`Table::leaf`].
    pub table: Arc<Table>,
}

/// What a partition is to the table that a statement names.
#[derive(Debug)]
pub struct LeafOf {
    /// The number by which catalogs know it.
    pub oid: u32,
    /// Its bounds below that table, outermost first.
    pub levels: Vec<Level>,
}

/// Where rows of a partition go.
#[derive(Debug)]
pub enum Child {
    /// To one that holds them, by its number.
    Leaf(usize),
    /// To one of its own partitions.
    Node(Box<Node>),
}

/// A partitioned table whose rows are to be found partitions for.
#[derive(Debug)]
pub struct Node {
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// How its key is shown.
    pub shown: String,
    /// The key.
    pub keys: Arc<Keys>,
    /// Its partitions, in order; that for all other rows last.
    pub parts: Vec<(Bound, Child)>,
}

impl Node {
    /// The leaf of a row.
    ///
    /// Errors: 23514 where there is none; those of keys.
    pub fn route(&self, row: &[Value], env: &Env<'_>) -> Result<usize> {
        let key = self.keys.of(row, env)?;
        let is_default = self
            .parts
            .last()
            .is_some_and(|(bound, _)| matches!(bound, Bound::Default));
        let own = &self.parts[..self.parts.len() - usize::from(is_default)];
        let found = match self.keys.strategy {
            Strategy::Range => {
                let is_before = |(bound, _): &(Bound, Child)| match bound {
                    Bound::Range { to, .. } => compare_key(&self.keys.types, &key, to).is_ge(),
                    _ => false,
                };
                let has_null = key.iter().any(|value| matches!(value, Value::Null));
                let at = if has_null {
                    own.len()
                } else {
                    own.partition_point(is_before)
                };
                own.get(at).filter(|(bound, _)| self.keys.meets(&key, bound))
            }
            Strategy::List | Strategy::Hash => own.iter().find(|(bound, _)| self.keys.meets(&key, bound)),
        };
        match found.or_else(|| self.parts.last().filter(|_| is_default)) {
            Some((_, Child::Leaf(leaf))) => Ok(*leaf),
            Some((_, Child::Node(node))) => node.route(row, env),
            None => Err(self.missing(&key)),
        }
    }

    fn missing(&self, key: &[Value]) -> Error {
        let shown = self.keys.types.iter().zip(key).map(|(ty, value)| match value {
            Value::Null => "null".to_owned(),
            value => output::text(ty, value),
        });
        let shown: Vec<String> = shown.collect();
        let detail = format!(
            "Partition key of the failing row contains ({}) = ({}).",
            self.shown,
            shown.join(", ")
        );
        let message = format!("no partition of relation \"{}\" found for row", self.name);
        error::with(
            error("23514", message),
            &[
                (Field::Detail, &detail),
                (Field::Schema, &self.schema),
                (Field::Table, &self.name),
            ],
        )
    }
}

/// What partitions make of a table: one that is divided, or is a part of one.
#[derive(Debug)]
pub struct Tree {
    /// Its own bounds, outermost first: none of one that is no partition.
    pub levels: Vec<Level>,
    /// How its rows find their leaves, of one that is divided.
    pub node: Option<Node>,
    /// The leaves.
    pub leaves: Vec<Leaf>,
    /// What it was made of: the tables above it and their partitions, and its own.
    pub made_of: Vec<Arc<Table>>,
}
