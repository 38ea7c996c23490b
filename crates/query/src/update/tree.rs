//! The tree of paths an update touches, compiled once.
//!
//! `{$set: {"a.b": 1, "a.c": 2}, $inc: {"d.$[].n": 1}}` becomes
//!
//! ```text
//! Fields ── a ── Fields ── b ── Leaf $set 1
//!        │              └─ c ── Leaf $set 2
//!        └─ d ── Elements ── all ── Fields ── n ── Leaf $inc 1
//! ```
//!
//! Two operators on one path, or on a path and a path below it, conflict (code 40) when the tree is
//! built. Paths with `$` or array filters may still meet in one array element; that is found when the
//! tree is applied (see [`Nodes`]).

use super::operators::Modifier;
use super::path::{Step, UpdatePath, compare_names};
use nestor_model::{ErrorCode, PathPart, Result};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// One node of the tree.
#[derive(Debug)]
pub(crate) enum Node {
    /// An operator that ends here.
    Leaf(Box<dyn Modifier>),
    /// Named fields (or indexes) below.
    Fields(Fields),
    /// `$[]` and `$[identifier]` below.
    Elements(Vec<(Selector, Node)>),
}

/// Fields below a node.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    /// By name, in the order of [`compare_names`].
    pub named: BTreeMap<Name, Node>,
    /// The child that `$` leads to.
    pub positional: Option<Box<Node>>,
}

/// A field name that orders as [`compare_names`] says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name(pub PathPart);

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        compare_names(&self.0.name, &other.0.name)
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Which elements of an array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Selector {
    /// `$[]`.
    All,
    /// The elements that the array filter of this number accepts.
    Filtered(usize),
}

impl Fields {
    /// Hangs `leaf` into the tree. `filter` gives the number of an array filter's identifier.
    ///
    /// Errors: 40 (ConflictingUpdateOperators); those of `filter`.
    pub fn insert(
        &mut self,
        path: &UpdatePath,
        leaf: Box<dyn Modifier>,
        filter: &mut dyn FnMut(&str) -> Result<usize>,
    ) -> Result<()> {
        insert_field(self, path, 0, leaf, filter)
    }
}

fn conflict(path: &UpdatePath, at: usize) -> nestor_model::Error {
    nestor_model::Error::new(
        ErrorCode::ConflictingUpdateOperators,
        format!(
            "Updating the path '{}' would create a conflict at '{}'",
            path.text,
            path.prefix(at + 1)
        ),
    )
}

/// `fields` stands before step `at` of `path`.
fn insert_field(
    fields: &mut Fields,
    path: &UpdatePath,
    at: usize,
    leaf: Box<dyn Modifier>,
    filter: &mut dyn FnMut(&str) -> Result<usize>,
) -> Result<()> {
    match &path.steps[at] {
        Step::Field(part) => match fields.named.entry(Name(part.clone())) {
            Entry::Occupied(mut found) => descend(found.get_mut(), path, at, leaf, filter),
            Entry::Vacant(gap) => {
                gap.insert(grow(path, at, leaf, filter)?);
                Ok(())
            }
        },
        Step::Positional => match &mut fields.positional {
            Some(node) => descend(node, path, at, leaf, filter),
            None => {
                fields.positional = Some(Box::new(grow(path, at, leaf, filter)?));
                Ok(())
            }
        },
        Step::All | Step::Filtered(_) => Err(conflict(path, at.saturating_sub(1))),
    }
}

fn insert_selector(
    elements: &mut Vec<(Selector, Node)>,
    path: &UpdatePath,
    at: usize,
    leaf: Box<dyn Modifier>,
    filter: &mut dyn FnMut(&str) -> Result<usize>,
) -> Result<()> {
    let selector = match &path.steps[at] {
        Step::All => Selector::All,
        Step::Filtered(id) => Selector::Filtered(filter_number(path, id, filter)?),
        Step::Field(_) | Step::Positional => return Err(conflict(path, at.saturating_sub(1))),
    };
    match elements.iter_mut().find(|(s, _)| *s == selector) {
        Some((_, node)) => descend(node, path, at, leaf, filter),
        None => {
            let node = grow(path, at, leaf, filter)?;
            elements.push((selector, node));
            Ok(())
        }
    }
}

/// A node for step `at` is there already.
fn descend(
    node: &mut Node,
    path: &UpdatePath,
    at: usize,
    leaf: Box<dyn Modifier>,
    filter: &mut dyn FnMut(&str) -> Result<usize>,
) -> Result<()> {
    if at + 1 == path.steps.len() {
        return Err(conflict(path, at));
    }
    match node {
        Node::Leaf(_) => Err(conflict(path, at)),
        Node::Fields(fields) => insert_field(fields, path, at + 1, leaf, filter),
        Node::Elements(elements) => insert_selector(elements, path, at + 1, leaf, filter),
    }
}

/// A new chain of nodes for the steps after `at`.
fn grow(
    path: &UpdatePath,
    at: usize,
    leaf: Box<dyn Modifier>,
    filter: &mut dyn FnMut(&str) -> Result<usize>,
) -> Result<Node> {
    // The filter of step `at` itself is looked up by whoever hangs the chain in.
    let mut node = Node::Leaf(leaf);
    for step in path.steps[at + 1..].iter().rev() {
        node = match step {
            Step::Field(part) => Node::Fields(Fields {
                named: BTreeMap::from([(Name(part.clone()), node)]),
                positional: None,
            }),
            Step::Positional => Node::Fields(Fields {
                named: BTreeMap::new(),
                positional: Some(Box::new(node)),
            }),
            Step::All => Node::Elements(vec![(Selector::All, node)]),
            Step::Filtered(id) => {
                let number = filter_number(path, id, filter)?;
                Node::Elements(vec![(Selector::Filtered(number), node)])
            }
        };
    }
    Ok(node)
}

fn filter_number(path: &UpdatePath, id: &str, filter: &mut dyn FnMut(&str) -> Result<usize>) -> Result<usize> {
    filter(id).map_err(|e| {
        let message = format!("{} in path '{}'", e.message(), path.text);
        nestor_model::Error::new(e.code(), message)
    })
}

/// The nodes that apply at one place of a document: nearly always one, more when `$` or array filters
/// lead two paths to the same element.
#[derive(Clone, Debug)]
pub(crate) struct Nodes<'u> {
    pub first: &'u Node,
    pub rest: Vec<&'u Node>,
}

/// The kind of a set of nodes.
pub(crate) enum NodesKind<'u> {
    Leaf(&'u dyn Modifier),
    Fields,
    Elements,
}

impl<'u> Nodes<'u> {
    pub fn one(node: &'u Node) -> Self {
        Self {
            first: node,
            rest: Vec::new(),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &'u Node> + '_ {
        std::iter::once(self.first).chain(self.rest.iter().copied())
    }

    /// `None` when the nodes cannot stand together: an operator with anything else, fields with elements.
    pub fn kind(&self) -> Option<NodesKind<'u>> {
        match self.first {
            Node::Leaf(leaf) => self.rest.is_empty().then_some(NodesKind::Leaf(leaf.as_ref())),
            Node::Fields(_) => self
                .rest
                .iter()
                .all(|n| matches!(n, Node::Fields(_)))
                .then_some(NodesKind::Fields),
            Node::Elements(_) => self
                .rest
                .iter()
                .all(|n| matches!(n, Node::Elements(_)))
                .then_some(NodesKind::Elements),
        }
    }
}

/// The operators at and below `node`, in path order.
pub(crate) fn any_leaf(node: &Node, test: &mut dyn FnMut(&dyn Modifier) -> bool) -> bool {
    match node {
        Node::Leaf(leaf) => test(leaf.as_ref()),
        Node::Fields(fields) => {
            fields.named.iter().any(|(_, n)| any_leaf(n, test))
                || fields.positional.as_deref().is_some_and(|n| any_leaf(n, test))
        }
        Node::Elements(elements) => elements.iter().any(|(_, n)| any_leaf(n, test)),
    }
}
