//! The order of inner joins, by how many rows they give.
//!
//! `a JOIN b JOIN c` gives the same rows in any order. The inputs and conditions of joins that stand directly above one another are a
//! [`graph`]: what is equal by them, and what follows for single inputs. A [`tree`] of joins is looked for among all for a few inputs, and
//! built from the smallest joins for many. No tree has a product where conditions connect its inputs. A projection above
//! gives the columns the places that they had.
//!
//! Reading order: this file (from a plan to a graph, from a tree to a plan), [`same`], [`input`], [`implied`],
//! [`graph`], [`tree`].

mod graph;
mod implied;
mod input;
mod same;
mod tree;

use self::graph::{Graph, Mask};
use self::input::Input;
use self::tree::Tree;
use super::Plan;
use super::estimate::Statistics;
use super::switches::INPUTS_MAX;
use super::unnest::placed;
use crate::expr::{Comparison, Expr, Node};
use crate::types::Type;
use nestor_planner::relation::{Join, JoinKind, Relation};

const _: () = assert!(INPUTS_MAX <= Mask::BITS as usize, "a set of inputs is a mask");

/// Puts the inner joins of a plan in order.
pub fn rewrite(plan: Plan, statistics: &dyn Statistics) -> Plan {
    match plan {
        Relation::Join(join) if is_inner(&join) => ordered(*join, statistics),
        other => super::with_inputs(other, &mut |input| rewrite(input, statistics)),
    }
}

fn is_inner(join: &Join<Expr>) -> bool {
    join.kind == JoinKind::Inner
}

/// Inputs and conditions of the inner joins at the top of a plan; columns are numbered through all inputs.
fn flatten(
    plan: Plan,
    (first, others, most): (usize, usize, usize),
    inputs: &mut Vec<Plan>,
    conditions: &mut Vec<Expr>,
) {
    match plan {
        Relation::Join(join) if is_inner(&join) && inputs.len() + others + 2 <= most => {
            let width = join.left.width();
            let keys = join.keys.into_iter();
            let keys = keys.map(|(a, b)| Node::Compare(Comparison::Equal, a, b).into());
            let own = keys.chain(join.condition.iter().flat_map(Expr::conjuncts));
            conditions.extend(own.map(|c: Expr| c.shifted(first as isize)));
            flatten(join.left, (first, others + 1, most), inputs, conditions);
            flatten(join.right, (first + width, others, most), inputs, conditions);
        }
        other => inputs.push(other),
    }
}

fn ordered(join: Join<Expr>, statistics: &dyn Statistics) -> Plan {
    let whole = Relation::Join(Box::new(join));
    let (mut plans, mut conditions) = (Vec::new(), Vec::new());
    // As they are written, if that is wanted.
    let most = statistics.switches().ordered_inputs;
    if most < 2 {
        return super::with_inputs(whole, &mut |input| rewrite(input, statistics));
    }
    flatten(whole.clone(), (0, 0, most), &mut plans, &mut conditions);
    if conditions.iter().any(Expr::is_volatile) {
        return super::with_inputs(whole, &mut |input| rewrite(input, statistics));
    }
    if let Some(places) = same::without(&mut plans, &mut conditions, statistics) {
        let Some(joined) = plans.into_iter().reduce(super::cross) else {
            return whole;
        };
        let column = |(i, at): (usize, usize)| Expr::column(at, format!("column{}", i + 1), Type::Unknown);
        return Relation::Project {
            input: Box::new(rewrite(
                super::pushdown::push(joined, conditions, statistics),
                statistics,
            )),
            columns: places.into_iter().enumerate().map(column).collect(),
        };
    }
    let mut first = 0;
    let inputs = plans.into_iter().map(|plan| {
        let width = plan.width();
        first += width;
        Input::new(plan, first - width, width)
    });
    let inputs: Vec<Input> = inputs.collect();
    let mut graph = Graph::new(inputs, conditions, statistics, &|plan| rewrite(plan, statistics));
    let tree = tree::best(&graph);
    let made = Made::of(&tree, &mut graph);
    if made.places.iter().copied().eq(0..first) {
        return made.plan;
    }
    let at = inverse(&made.places, first);
    let columns = at.into_iter().enumerate().map(|(column, at)| {
        let name = format!("column{}", column + 1);
        Expr::column(at.unwrap_or(column), name, Type::Unknown)
    });
    let columns = columns.collect();
    Relation::Project {
        input: Box::new(made.plan),
        columns,
    }
}

/// Where each column stands.
fn inverse(places: &[usize], columns: usize) -> Vec<Option<usize>> {
    let mut at = vec![None; columns];
    for (place, column) in places.iter().enumerate() {
        at[*column] = Some(place);
    }
    at
}

/// The joins of a tree.
struct Made {
    plan: Plan,
    /// Which column of all inputs stands at each place.
    places: Vec<usize>,
    mask: Mask,
}

impl Made {
    /// The plan of a tree; takes the inputs and the conditions out of the graph.
    fn of(tree: &Tree, graph: &mut Graph) -> Self {
        match tree {
            Tree::Input(i) => {
                let input = &mut graph.inputs[*i];
                let nothing = Relation::Values {
                    rows: Vec::new(),
                    width: 0,
                };
                Self {
                    plan: std::mem::replace(&mut input.plan, nothing),
                    places: (input.first..input.first + input.width).collect(),
                    mask: 1 << i,
                }
            }
            Tree::Join(left, right) => {
                let (left, right) = (Self::of(left, graph), Self::of(right, graph));
                left.join(right, graph)
            }
        }
    }

    fn join(self, right: Self, graph: &mut Graph) -> Self {
        let places: Vec<usize> = self.places.iter().chain(&right.places).copied().collect();
        let at = inverse(&places, graph.width());
        let here = |expr: &Expr| placed(expr, &|column| at[column]);
        let mut keys = graph.keys(self.mask, right.mask);
        let mask = self.mask | right.mask;
        let mut rest = Vec::new();
        graph.rest.retain(|condition| {
            if condition.mask & !mask != 0 {
                return true;
            }
            match condition.sides(self.mask, right.mask) {
                Some(key) => keys.push(key),
                None => rest.push(here(&condition.expr)),
            }
            false
        });
        let keys = keys.iter().map(|(a, b)| (here(a), here(b))).collect();
        Self {
            plan: Relation::Join(Box::new(Join {
                kind: JoinKind::Inner,
                left: self.plan,
                right: right.plan,
                keys,
                condition: (!rest.is_empty()).then(|| Expr::all(rest)),
                left_first: false,
            })),
            places,
            mask,
        }
    }
}
