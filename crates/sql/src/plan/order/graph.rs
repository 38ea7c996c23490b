//! Inputs of joins and what connects them.

use super::implied;
use super::input::Input;
use crate::expr::{Comparison, Expr, Node};
use crate::plan::estimate::{self, Statistics};
use crate::plan::{Plan, pushdown};
use nestor_planner::relation::Relation;

/// A set of inputs: bit `i` is input `i`.
pub type Mask = u128;

/// A column, or what is computed of columns, of an input.
pub struct Member {
    /// Which input.
    pub input: usize,
    /// It, over columns of all inputs.
    pub expr: Expr,
    /// How many different values it has.
    pub distinct: f64,
    /// No two rows of its table have the same.
    pub is_unique: bool,
    /// What a row of the input costs that an index finds by it; `None` where no index does.
    pub found_cost: Option<f64>,
}

/// What is equal by the conditions: of each input one member, since members of one input are equal by a condition on it.
pub struct Class {
    /// The members.
    pub members: Vec<Member>,
    /// Their inputs.
    pub mask: Mask,
}

/// A condition over several inputs that is no equality of two of them.
pub struct Condition {
    /// The condition, over columns of all inputs.
    pub expr: Expr,
    /// The inputs that it uses.
    pub mask: Mask,
    /// For an equality: what its sides use.
    equal: Option<(Mask, Mask)>,
}

impl Condition {
    /// The condition as a key of a join of two sets of inputs.
    pub fn sides(&self, left: Mask, right: Mask) -> Option<(Expr, Expr)> {
        let Node::Compare(Comparison::Equal, a, b) = self.expr.node() else {
            return None;
        };
        let (of_a, of_b) = self.equal?;
        let within = |part: Mask, whole: Mask| part & !whole == 0;
        match (
            within(of_a, left) && within(of_b, right),
            within(of_b, left) && within(of_a, right),
        ) {
            (true, _) => Some((a.clone(), b.clone())),
            (_, true) => Some((b.clone(), a.clone())),
            _ => None,
        }
    }
}

/// Inputs and what connects them.
pub struct Graph {
    /// The inputs.
    pub inputs: Vec<Input>,
    /// What is equal.
    pub classes: Vec<Class>,
    /// The other conditions.
    pub rest: Vec<Condition>,
    /// The inputs that input `i` is connected with.
    neighbours: Vec<Mask>,
}

/// The inputs whose columns an expression uses.
fn mask_of(inputs: &[Input], expr: &Expr) -> Mask {
    let mut mask = 0;
    expr.for_each_column(&mut |column| {
        let at = inputs.partition_point(|input| input.first <= column);
        // Of inputs without columns that begin at the same place, the last has it.
        mask |= 1 << at.saturating_sub(1);
    });
    mask
}

fn single(mask: Mask) -> Option<usize> {
    (mask.count_ones() == 1).then(|| mask.trailing_zeros() as usize)
}

/// Whether two expressions are the same; those of columns are compared without being written down.
fn is_same(a: &Expr, b: &Expr) -> bool {
    match (a.node(), b.node()) {
        (Node::Column { index: a, .. }, Node::Column { index: b, .. }) => a == b,
        (Node::Column { .. }, _) | (_, Node::Column { .. }) => false,
        _ => a.is_same(b),
    }
}

/// Sets of expressions that are equal.
#[derive(Default)]
struct Equal {
    sets: Vec<Vec<(usize, Expr)>>,
}

impl Equal {
    fn find(&mut self, member: (usize, Expr)) -> usize {
        let same = |(input, expr): &(usize, Expr)| *input == member.0 && is_same(expr, &member.1);
        match self.sets.iter().position(|set| set.iter().any(same)) {
            Some(at) => at,
            None => {
                self.sets.push(vec![member]);
                self.sets.len() - 1
            }
        }
    }

    fn join(&mut self, a: (usize, Expr), b: (usize, Expr)) {
        let (a, b) = (self.find(a), self.find(b));
        if a != b {
            let (low, high) = (a.min(b), a.max(b));
            let moved = self.sets.swap_remove(high);
            self.sets[low].extend(moved);
        }
    }
}

impl Graph {
    /// The graph of inputs and of conditions over them. What the conditions say of single inputs goes into these, and they are rewritten
    /// by `rewrite`.
    pub fn new(
        mut inputs: Vec<Input>,
        conditions: Vec<Expr>,
        statistics: &dyn Statistics,
        rewrite: &dyn Fn(Plan) -> Plan,
    ) -> Self {
        let mut own: Vec<Vec<Expr>> = inputs.iter().map(|_| Vec::new()).collect();
        let (mut equal, mut rest) = (Equal::default(), Vec::new());
        for expr in conditions {
            let mask = mask_of(&inputs, &expr);
            if mask.count_ones() < 2 {
                let input = single(mask).unwrap_or(0);
                own[input].push(inputs[input].own(&expr));
                continue;
            }
            let sides = match expr.node() {
                Node::Compare(Comparison::Equal, a, b) => Some((mask_of(&inputs, a), mask_of(&inputs, b), a, b)),
                _ => None,
            };
            if let Some((of_a, of_b, a, b)) = sides
                && let (Some(x), Some(y)) = (single(of_a), single(of_b))
            {
                equal.join((x, a.clone()), (y, b.clone()));
                continue;
            }
            let sides = sides.map(|(a, b, ..)| (a, b));
            // A side of constants is none of a key.
            let equal = sides.filter(|(a, b)| *a != 0 && *b != 0);
            rest.push(Condition { expr, mask, equal });
        }
        for condition in &rest {
            for (i, input) in inputs.iter().enumerate() {
                if condition.mask & (1 << i) != 0
                    && let Some(part) = implied::by_branches(&condition.expr, &|e| mask_of(&inputs, e) == 1 << i)
                {
                    own[i].push(input.own(&part));
                }
            }
        }
        for set in &equal.sets {
            implied::by_equality(set, &inputs, &mut own);
        }
        for (input, own) in inputs.iter_mut().zip(own) {
            let nothing = Relation::Values {
                rows: Vec::new(),
                width: 0,
            };
            let mut plan = std::mem::replace(&mut input.plan, nothing);
            if !own.is_empty() {
                plan = pushdown::push(plan, own, statistics);
            }
            input.plan = rewrite(plan);
            input.rows = estimate::rows(&input.plan, statistics).max(1.0);
            input.read = match estimate::scan_of(&input.plan) {
                Some(scan) => estimate::reads(scan, input.rows, statistics),
                None => input.rows,
            };
        }
        let classes = equal
            .sets
            .into_iter()
            .map(|set| class(set, &inputs, statistics))
            .collect();
        let mut out = Self {
            neighbours: vec![0; inputs.len()],
            inputs,
            classes,
            rest,
        };
        let connected = out.classes.iter().map(|class| class.mask);
        let connected: Vec<Mask> = connected
            .chain(out.rest.iter().filter(|c| c.equal.is_some()).map(|c| c.mask))
            .collect();
        for mask in connected {
            for (i, neighbours) in out.neighbours.iter_mut().enumerate() {
                if mask & (1 << i) != 0 {
                    *neighbours |= mask & !(1 << i);
                }
            }
        }
        out
    }

    /// Number of columns of all inputs.
    pub fn width(&self) -> usize {
        self.inputs.last().map_or(0, |last| last.first + last.width)
    }

    /// The inputs that are connected with one of a set.
    pub fn neighbours(&self, mut of: Mask) -> Mask {
        let mut out = 0;
        while of != 0 {
            out |= self.neighbours[of.trailing_zeros() as usize];
            of &= of - 1;
        }
        out
    }

    /// The equalities of classes that a join of two sets of inputs has to see to.
    pub fn keys(&self, left: Mask, right: Mask) -> Vec<(Expr, Expr)> {
        let of = |class: &Class, mask: Mask| {
            let member = class.members.iter().find(|member| mask & (1 << member.input) != 0);
            member.map(|member| member.expr.clone())
        };
        let each = self.classes.iter();
        each.filter_map(|class| Some((of(class, left)?, of(class, right)?)))
            .collect()
    }

    /// What a row of an input costs that an index finds by what a class says of it and of `others`; `None` where no index does.
    pub fn found_cost(&self, input: usize, others: Mask) -> Option<f64> {
        let classes = self.classes.iter().filter(|class| class.mask & others != 0);
        let members = classes.flat_map(|class| &class.members);
        let own = members.filter(|member| member.input == input);
        own.filter_map(|member| member.found_cost).min_by(f64::total_cmp)
    }

    /// How many rows the join of a set of inputs gives, in whatever order.
    pub fn rows(&self, set: Mask) -> f64 {
        let inputs = self.inputs.iter().enumerate();
        let mut rows: f64 = inputs
            .filter(|(i, _)| set & (1 << i) != 0)
            .map(|(_, input)| input.rows)
            .product();
        let mut parts: Vec<(f64, Mask)> = Vec::new();
        for class in &self.classes {
            let mask = class.mask & set;
            if mask.count_ones() < 2 {
                continue;
            }
            let (mut all, mut least) = (1.0, f64::MAX);
            for member in &class.members {
                if set & (1 << member.input) != 0 {
                    all *= member.distinct;
                    least = member.distinct.min(least);
                }
            }
            parts.push((all / least, mask));
        }
        parts.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (at, (part, mask)) in parts.iter().enumerate() {
            // Of keys of several parts, each further one is less telling.
            let further = parts[..at].iter().any(|(_, before)| (before & mask).count_ones() > 1);
            rows /= match further {
                true => part.min(10.0),
                false => *part,
            };
        }
        for condition in self.rest.iter().filter(|condition| condition.mask & !set == 0) {
            rows *= match condition.equal {
                Some(_) => 0.1,
                None => 0.4,
            };
        }
        rows.max(1.0)
    }
}

/// The class that equal expressions are, one of each input.
fn class(set: Vec<(usize, Expr)>, inputs: &[Input], statistics: &dyn Statistics) -> Class {
    let mut out = Class {
        members: Vec::new(),
        mask: 0,
    };
    // What refers to rows of a table has no more values than that has rows.
    let mut most = f64::MAX;
    for (at, expr) in set {
        if out.mask & (1 << at) != 0 {
            continue;
        }
        let input = &inputs[at];
        let own = input.own(&expr);
        let source = estimate::scan_of(&input.plan).and_then(|_| estimate::source(&input.plan, &own));
        let is_unique = estimate::is_unique(&input.plan, &own, statistics);
        let distinct = match implied::is_fixed(&input.plan, &own) {
            true => 1.0,
            false => estimate::distinct(&input.plan, &own, statistics).max(1.0),
        };
        if is_unique {
            most = most.min(distinct);
        }
        out.mask |= 1 << at;
        out.members.push(Member {
            input: at,
            expr,
            distinct,
            is_unique,
            found_cost: source.and_then(|(table, column)| statistics.found_cost(table, column)),
        });
    }
    for member in &mut out.members {
        if !member.is_unique {
            member.distinct = member.distinct.min(most);
        }
    }
    out
}
