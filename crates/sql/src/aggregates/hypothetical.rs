//! Where a row would stand among those of a group, if it were one of them.

use super::{Bound, plain};
use crate::error::{error, fail};
use crate::expr::Expr;
use crate::functions::coerce;
use crate::types::cast::{self, Context};
use crate::types::{Type, compare};
use nestor_model::{Result, Value};
use nestor_planner::relation::{Accumulator, SortKey};
use std::cmp::Ordering;

/// What is told of the place.
#[derive(Clone, Copy)]
enum Gives {
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
}

/// How a part of the rows is ordered.
#[derive(Clone)]
struct Key {
    ty: Type,
    descending: bool,
    nulls_first: bool,
}

/// The names, which window functions have as well.
pub fn is_hypothetical(name: &str) -> bool {
    gives(name).is_some()
}

fn gives(name: &str) -> Option<(&'static str, Gives)> {
    Some(match name {
        "rank" => ("rank", Gives::Rank),
        "dense_rank" => ("dense_rank", Gives::DenseRank),
        "percent_rank" => ("percent_rank", Gives::PercentRank),
        "cume_dist" => ("cume_dist", Gives::CumeDist),
        _ => return None,
    })
}

/// Counts of rows that come in their order.
struct Place {
    gives: Gives,
    keys: Vec<Key>,
    before: i64,
    groups_before: i64,
    peers: i64,
    rows: i64,
    last: Option<Vec<Value>>,
}

impl Place {
    fn order(&self, a: &[Value], b: &[Value]) -> Ordering {
        for ((a, b), key) in a.iter().zip(b).zip(&self.keys) {
            let order = match (a, b) {
                (Value::Null, Value::Null) => Ordering::Equal,
                (Value::Null, _) if key.nulls_first => Ordering::Less,
                (Value::Null, _) => Ordering::Greater,
                (_, Value::Null) if key.nulls_first => Ordering::Greater,
                (_, Value::Null) => Ordering::Less,
                (a, b) if key.descending => compare::compare(&key.ty, b, a),
                (a, b) => compare::compare(&key.ty, a, b),
            };
            if order.is_ne() {
                return order;
            }
        }
        Ordering::Equal
    }
}

impl Accumulator for Place {
    fn add(&mut self, args: &[Value]) -> Result<()> {
        let (own, row) = args.split_at(self.keys.len());
        self.rows += 1;
        match self.order(row, own) {
            Ordering::Less => {
                self.before += 1;
                if self.last.as_ref().is_none_or(|last| self.order(last, row).is_ne()) {
                    self.groups_before += 1;
                    self.last = Some(row.to_vec());
                }
            }
            Ordering::Equal => self.peers += 1,
            Ordering::Greater => {}
        }
        Ok(())
    }

    fn result(&self) -> Result<Value> {
        let share = |part: i64, whole: i64| Value::Double(if whole == 0 { 0.0 } else { part as f64 / whole as f64 });
        Ok(match self.gives {
            Gives::Rank => Value::Int64(self.before + 1),
            Gives::DenseRank => Value::Int64(self.groups_before + 1),
            Gives::PercentRank => share(self.before, self.rows),
            Gives::CumeDist => share(self.before + self.peers + 1, self.rows + 1),
        })
    }
}

/// The function `name` for the row of `own` values among rows in an order.
///
/// Errors: 42883 unless there is a value for each part of the order, 42804 when their types do not go together.
pub fn bind(name: &str, own: &[Expr], order: &[SortKey<Expr>]) -> Result<Bound> {
    let Some((name, gives)) = gives(name) else {
        return fail("42883", format!("function {name} does not exist"));
    };
    if own.len() != order.len() {
        return fail(
            "42883",
            format!("function {name} takes as many values as its order has parts"),
        );
    }
    let (mut values, mut rows, mut keys) = (Vec::new(), Vec::new(), Vec::new());
    for (own, key) in own.iter().zip(order) {
        let types = [key.by.ty(), own.ty()];
        let ty = cast::common(&types).ok_or_else(|| {
            error(
                "42804",
                format!("WITHIN GROUP types {} and {} cannot be matched", types[1], types[0]),
            )
        })?;
        values.push(coerce(own.clone(), &ty, Context::Implicit)?);
        rows.push(coerce(key.by.clone(), &ty, Context::Implicit)?);
        keys.push(Key {
            ty,
            descending: key.descending,
            nulls_first: key.nulls_first,
        });
    }
    values.extend(rows);
    let start = move || -> Box<dyn Accumulator> {
        Box::new(Place {
            gives,
            keys: keys.clone(),
            before: 0,
            groups_before: 0,
            peers: 0,
            rows: 0,
            last: None,
        })
    };
    let ty = match gives {
        Gives::Rank | Gives::DenseRank => Type::Int8,
        Gives::PercentRank | Gives::CumeDist => Type::Float8,
    };
    plain(name, start, values, ty)
}
