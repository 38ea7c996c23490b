//! The tree of joins that costs least.
//!
//! For a few inputs each set of them is looked at, from the small ones on, and of each the cheapest way to join two parts of it is remembered. For
//! many, the two trees whose join gives the fewest rows are joined, again and again: the cost is that of the square of the number of
//! inputs, with a factor for the length of a set.

use super::graph::{Graph, Mask};
use crate::plan::estimate::LOOKUP_COST;

/// A tree of joins. The right input of each is kept in memory.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// An input.
    Input(usize),
    /// A join.
    Join(Box<Tree>, Box<Tree>),
}

/// Inputs of which all trees are looked at.
const ALL_MAX: usize = 9;
/// What keeping a row costs, in rows that are looked up among those kept.
const KEEP_COST: f64 = 2.0;

/// What is known of a set of inputs.
#[derive(Clone, Copy)]
struct Set {
    mask: Mask,
    rows: f64,
    cost: f64,
}

/// The tree for a graph, which has at least one input.
pub fn best(graph: &Graph) -> Tree {
    match graph.inputs.len() <= ALL_MAX {
        true => among_all(graph),
        false => from_smallest(graph),
    }
}

fn input(graph: &Graph, i: usize) -> Set {
    let input = &graph.inputs[i];
    Set {
        mask: 1 << i,
        rows: input.rows,
        cost: input.read,
    }
}

/// What a join of two sets costs, with the rows that it gives.
fn cost(graph: &Graph, left: &Set, right: &Set, rows: f64) -> f64 {
    let mut kept = right.cost + right.rows * KEEP_COST + left.rows;
    let only = right.mask.trailing_zeros() as usize;
    let each = graph.found_cost(only, left.mask);
    if let Some(each) = each.filter(|_| right.mask.count_ones() == 1) {
        // All that have the key are fetched, whatever the table's own conditions say of them then.
        let input = &graph.inputs[only];
        let found = rows * (input.read / input.rows.max(1.0)).max(1.0);
        kept = kept.min(left.rows * LOOKUP_COST + found * each);
    }
    left.cost + kept + rows
}

fn among_all(graph: &Graph) -> Tree {
    let inputs = graph.inputs.len();
    let neighbours: Vec<usize> = (0..1usize << inputs)
        .map(|set| graph.neighbours(set as Mask) as usize)
        .collect();
    let mut known: Vec<Option<(Set, usize)>> = vec![None; 1 << inputs];
    for i in 0..inputs {
        known[1 << i] = Some((input(graph, i), 0));
    }
    for set in 1..1usize << inputs {
        if set.count_ones() < 2 {
            continue;
        }
        let rows = graph.rows(set as Mask);
        // Products are looked at where there is nothing else.
        for product in [false, true] {
            let mut best: Option<(Set, usize)> = None;
            // The parts, each pair in both orders.
            let mut right = set & (set - 1);
            while right != 0 {
                let left = set & !right;
                if let (Some((l, _)), Some((r, _))) = (&known[left], &known[right])
                    && (product || neighbours[left] & right != 0)
                {
                    for (l, r, of_left) in [(l, r, left), (r, l, right)] {
                        let cost = cost(graph, l, r, rows);
                        if best.is_none_or(|(best, _)| cost < best.cost) {
                            let mask = set as Mask;
                            best = Some((Set { mask, rows, cost }, of_left));
                        }
                    }
                }
                right = (right - 1) & set & (set - 1);
            }
            known[set] = best;
            // Sets that nothing connects are made only for the whole, or where they have to be parts of it.
            if best.is_some() || !is_needed(graph, set) {
                break;
            }
        }
    }
    tree_of(&known, (1 << inputs) - 1)
}

/// Whether a set that conditions do not connect may have to be joined by a product: it consists of whole components.
fn is_needed(graph: &Graph, set: usize) -> bool {
    graph.neighbours(set as Mask) & !(set as Mask) == 0
}

fn tree_of(known: &[Option<(Set, usize)>], set: usize) -> Tree {
    match known.get(set) {
        Some(Some((_, left))) if *left != 0 => {
            let (left, right) = (tree_of(known, *left), tree_of(known, set & !left));
            Tree::Join(Box::new(left), Box::new(right))
        }
        _ => Tree::Input(set.trailing_zeros() as usize),
    }
}

fn from_smallest(graph: &Graph) -> Tree {
    let inputs = graph.inputs.len();
    let mut trees: Vec<Option<(Set, Tree)>> = (0..inputs).map(|i| Some((input(graph, i), Tree::Input(i)))).collect();
    let joined = |a: &Option<(Set, Tree)>, b: &Option<(Set, Tree)>| {
        let (Some((a, _)), Some((b, _))) = (a, b) else {
            return None;
        };
        (graph.neighbours(a.mask) & b.mask != 0).then(|| graph.rows(a.mask | b.mask))
    };
    // Rows of the joins of trees `i < j`.
    let mut rows: Vec<Vec<Option<f64>>> = (0..inputs)
        .map(|j| (0..j).map(|i| joined(&trees[i], &trees[j])).collect())
        .collect();
    for _ in 1..inputs {
        let mut least: Option<(f64, usize, usize)> = None;
        for (j, row) in rows.iter().enumerate() {
            for (i, rows) in row.iter().enumerate() {
                if let Some(rows) = rows
                    && least.is_none_or(|(least, ..)| *rows < least)
                {
                    least = Some((*rows, i, j));
                }
            }
        }
        let pair = least.map(|(_, i, j)| (i, j)).or_else(|| smallest(&trees));
        let Some((i, j)) = pair else { break };
        let (Some((a, of_a)), Some((b, of_b))) = (trees[i].take(), trees[j].take()) else {
            break;
        };
        let mask = a.mask | b.mask;
        let rows_made = graph.rows(mask);
        let (forth, back) = (cost(graph, &a, &b, rows_made), cost(graph, &b, &a, rows_made));
        let (cost, tree) = match forth <= back {
            true => (forth, Tree::Join(Box::new(of_a), Box::new(of_b))),
            false => (back, Tree::Join(Box::new(of_b), Box::new(of_a))),
        };
        let rows_of = Set {
            mask,
            rows: rows_made,
            cost,
        };
        trees[i] = Some((rows_of, tree));
        for other in 0..inputs {
            let (low, high) = (other.min(i), other.max(i));
            if low != high {
                rows[high][low] = joined(&trees[low], &trees[high]);
            }
            let (low, high) = (other.min(j), other.max(j));
            if low != high {
                rows[high][low] = None;
            }
        }
    }
    let left = trees.into_iter().flatten().next();
    left.map_or(Tree::Input(0), |(_, tree)| tree)
}

/// The two trees with the fewest rows, for a product.
fn smallest(trees: &[Option<(Set, Tree)>]) -> Option<(usize, usize)> {
    let each = trees.iter().enumerate();
    let mut sizes: Vec<(f64, usize)> = each.filter_map(|(i, tree)| Some((tree.as_ref()?.0.rows, i))).collect();
    sizes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    match sizes[..] {
        [(_, a), (_, b), ..] => Some((a.min(b), a.max(b))),
        _ => None,
    }
}
