//! Parts of queries in the place of others.

use crate::types::tsquery::{Node, TsQuery};
use nestor_model::Result;
use nestor_model::statement::work;

/// A query with `new` wherever it has `old`: as a part, or among the operands of the same `&` or `|`. Nothing in the place of a part takes it out.
/// The operands of all `&` and `|` come in an order of their own ([`arranged`]).
///
/// Errors: those of queries and of the statement's limits.
pub fn rewritten(query: TsQuery, old: &TsQuery, new: &TsQuery) -> Result<TsQuery> {
    match (query.root, &old.root) {
        (Some(root), Some(old)) => {
            let (old, new) = (ordered(old.clone()), new.root.as_ref());
            TsQuery::new(replaced(ordered(root), &old, new)?)
        }
        (root, _) => Ok(TsQuery { root }),
    }
}

/// A part whose operands are in order.
fn ordered(node: Node) -> Node {
    match node {
        Node::And(parts) => Node::And(in_order(parts)),
        Node::Or(parts) => Node::Or(in_order(parts)),
        Node::Not(part) => Node::Not(Box::new(ordered(*part))),
        Node::Phrase(first, more) => {
            let more = more.into_iter().map(|(distance, part)| (distance, ordered(part)));
            Node::Phrase(Box::new(ordered(*first)), more.collect())
        }
        node => node,
    }
}

fn in_order(parts: Vec<Node>) -> Vec<Node> {
    let mut parts: Vec<Node> = parts.into_iter().map(ordered).collect();
    parts.sort_by(|a, b| b.compare(a));
    parts
}

fn replaced(node: Node, old: &Node, new: Option<&Node>) -> Result<Option<Node>> {
    work(1)?;
    if node.compare(old).is_eq() {
        return Ok(new.cloned());
    }
    Ok(match node {
        Node::And(parts) => {
            let wanted = if let Node::And(wanted) = old {
                wanted.as_slice()
            } else {
                &[]
            };
            arranged(operands(parts, wanted, (old, new))?).reduce(Node::and)
        }
        Node::Or(parts) => {
            let wanted = if let Node::Or(wanted) = old {
                wanted.as_slice()
            } else {
                &[]
            };
            arranged(operands(parts, wanted, (old, new))?).reduce(Node::or)
        }
        Node::Not(part) => replaced(*part, old, new)?.map(|part| Node::Not(Box::new(part))),
        Node::Phrase(first, more) => phrase(*first, more, old, new)?,
        node => Some(node),
    })
}

/// Operands as a query has them in the end: all but the last two the other way round.
fn arranged(mut parts: Vec<Node>) -> std::vec::IntoIter<Node> {
    let turned = parts.len().saturating_sub(2);
    parts[..turned].reverse();
    parts.into_iter()
}

/// The operands of an operator, some of which are replaced together if they are all that are `wanted`.
fn operands(parts: Vec<Node>, wanted: &[Node], (old, new): (&Node, Option<&Node>)) -> Result<Vec<Node>> {
    let mut left: Vec<&Node> = wanted.iter().collect();
    let (mut together, mut kept) = (Vec::new(), Vec::new());
    for part in parts {
        work(1 + left.len())?;
        match left.iter().position(|one| part.compare(one).is_eq()) {
            Some(at) => {
                left.swap_remove(at);
                together.push(part);
            }
            None => kept.push(part),
        }
    }
    let all_are_there = !wanted.is_empty() && left.is_empty();
    if !all_are_there {
        kept.append(&mut together);
        kept.sort_by(|a, b| b.compare(a));
    }
    let mut out = Vec::new();
    for part in kept {
        out.extend(replaced(part, old, new)?);
    }
    if all_are_there {
        out.extend(new.cloned());
        out = in_order(out);
    }
    Ok(out)
}

/// What stands one behind the other, of which a beginning may be replaced.
fn phrase(first: Node, more: Vec<(i32, Node)>, old: &Node, new: Option<&Node>) -> Result<Option<Node>> {
    let beginning = match old {
        Node::Phrase(_, wanted) if wanted.len() < more.len() => wanted.len(),
        _ => 0,
    };
    let whole = Node::Phrase(Box::new(first.clone()), more[..beginning].to_vec());
    let is_there = beginning > 0 && whole.compare(old).is_eq();
    let (mut out, skipped) = match is_there {
        true => (new.cloned(), beginning),
        false => (replaced(first, old, new)?, 0),
    };
    for (distance, part) in more.into_iter().skip(skipped) {
        out = match (out, replaced(part, old, new)?) {
            (Some(so_far), Some(part)) => Some(Node::phrase(so_far, distance, part)),
            (so_far, part) => so_far.or(part),
        };
    }
    Ok(out)
}
