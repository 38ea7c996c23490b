//! Projections: `projection` of find, `fields` of findAndModify, and the core of `$project`,
//! `$addFields`/`$set` and `$unset`.
//!
//! A specification becomes a tree of [`Node`]s by field name, plus what find alone has: `$slice` and the
//! positional `$`, applied to the result, and `$elemMatch`, a computed field.
//!
//! | | listed fields | other fields | computed fields |
//! |---|---|---|---|
//! | inclusion | kept, in the document's order | left out | after the kept ones, in the specification's order |
//! | exclusion | left out | kept | (only `$meta`, `$elemMatch`) as below |
//! | `$addFields` | – | kept | in place when the field exists, else appended |
//!
//! [`Projection::apply_raw`] copies bytes and works when nothing is computed ([`Projection::is_simple`]), [`Projection::write`] when
//! fields are computed too ([`Projection::is_written`]); [`Projection::apply`] does everything.

mod apply;
mod effect;
mod find_only;
mod parse;
mod raw;
#[cfg(test)]
mod tests;
mod tree;
mod written;

pub use effect::Effect;
pub use find_only::Slice;

use crate::expr::{Deps, Expr};
use crate::matcher::Predicate;
use nestor_model::{Path, RawDoc, RawDocBuf, Result, Str, bail};
use std::collections::HashMap;

/// Whose rules and error codes a specification is parsed by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// find and findAndModify: `$slice`, `$elemMatch`, positional `$`; may be empty.
    Find,
    /// `$project`: must not be empty; find's own operators are refused or are expressions.
    Project,
    /// `$addFields` and `$set`: every value is an expression, all other fields stay.
    AddFields,
}

/// How fields that are not listed are treated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// They are left out.
    Inclusion,
    /// They stay.
    Exclusion,
}

/// A compiled projection.
#[derive(Clone, Debug)]
pub struct Projection {
    mode: Mode,
    root: Node,
    slices: Vec<(Path, Slice)>,
    positional: Option<Path>,
    spec: RawDocBuf,
}

/// How the fields of one document, or of the documents in one array, are treated.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    /// In the order of the specification.
    children: Vec<(Str, Child)>,
    /// Positions in `children` by name, once there are many.
    index: HashMap<Str, usize>,
    /// Some child, at any depth, is computed.
    has_computed: bool,
    /// Some child, at any depth, keeps or drops.
    has_plain: bool,
}

/// How one field is treated.
#[derive(Clone, Debug)]
pub(crate) enum Child {
    /// Kept (inclusion) or left out (exclusion): whichever the mode says of listed fields.
    Listed,
    /// Kept whatever the mode (`_id: 1` in an exclusion).
    Kept,
    /// Left out whatever the mode (`_id: 0` in an inclusion).
    Dropped,
    /// Its own fields.
    Nested(Node),
    /// A computed value.
    Computed(Compute),
}

/// How a computed field gets its value.
#[derive(Clone, Debug)]
pub(crate) enum Compute {
    Expr(Expr),
    /// `$elemMatch`: an array of the first element of the field that matches; missing if none does.
    ElemMatch {
        field: Str,
        predicate: Predicate,
    },
}

/// Names from which on a map is faster than comparing them one by one.
const INDEX_FROM: usize = 16;

impl Node {
    pub(crate) fn child(&self, name: &str) -> Option<&Child> {
        self.position(name).map(|at| &self.children[at].1)
    }

    fn position(&self, name: &str) -> Option<usize> {
        if self.index.is_empty() {
            return self.children.iter().position(|(n, _)| n == name);
        }
        self.index.get(name).copied()
    }

    /// Appends a child whose name is not among the others.
    fn push(&mut self, name: Str, child: Child) {
        self.children.push((name, child));
        let count = self.children.len();
        if count == INDEX_FROM {
            let names = self.children.iter().enumerate();
            self.index = names.map(|(i, (n, _))| (n.clone(), i)).collect();
        } else if let Some((name, _)) = self.children.last().filter(|_| count > INDEX_FROM) {
            self.index.insert(name.clone(), count - 1);
        }
    }

    /// Sets the summary fields of this node and those below, once the tree is complete.
    fn finish(&mut self) {
        for (_, child) in &mut self.children {
            match child {
                Child::Nested(node) => {
                    node.finish();
                    self.has_computed |= node.has_computed;
                    self.has_plain |= node.has_plain;
                }
                Child::Computed(_) => self.has_computed = true,
                _ => self.has_plain = true,
            }
        }
    }
}

impl Projection {
    /// Whether fields that are not listed are left out or stay.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// True when documents come out as they went in: an empty find projection.
    pub fn is_identity(&self) -> bool {
        self.mode == Mode::Exclusion
            && self.slices.is_empty()
            && self.positional.is_none()
            && self.root.children.iter().all(|(_, c)| matches!(c, Child::Kept))
    }

    /// True when nothing is computed, so that [`Projection::apply_raw`] works.
    pub fn is_simple(&self) -> bool {
        !self.root.has_computed && self.slices.is_empty() && self.positional.is_none()
    }

    /// True when [`Projection::write`] does all of it.
    pub fn is_written(&self) -> bool {
        self.slices.is_empty() && self.positional.is_none()
    }

    /// True when it only keeps or leaves out top-level fields.
    pub fn is_top_level(&self) -> bool {
        let is_plain = |child: &Child| matches!(child, Child::Listed | Child::Kept | Child::Dropped);
        self.is_simple() && self.root.children.iter().all(|(_, child)| is_plain(child))
    }

    /// As it was given.
    pub fn specification(&self) -> RawDoc<'_> {
        self.spec.as_raw()
    }

    /// True when [`Projection::apply`] needs to know where the filter matched.
    pub fn needs_match_details(&self) -> bool {
        self.positional.is_some()
    }

    /// The kept paths of an inclusion without computed values: what a covered plan has to deliver.
    /// `None` for other projections.
    pub fn included_paths(&self) -> Option<Vec<String>> {
        if self.mode == Mode::Exclusion || !self.is_simple() {
            return None;
        }
        let mut out = Vec::new();
        // `_id` is kept without being listed.
        let kept = self
            .root
            .children
            .iter()
            .filter(|(_, child)| matches!(child, Child::Kept));
        out.extend(kept.map(|(name, _)| name.to_string()));
        listed_paths(&self.root, "", &mut out);
        Some(out)
    }

    /// The paths an exclusion leaves out, `_id` among them; empty for an inclusion.
    pub fn excluded_paths(&self) -> Vec<String> {
        let mut out = Vec::new();
        if self.mode == Mode::Exclusion {
            listed_paths(&self.root, "", &mut out);
        }
        out
    }

    /// Checks that a find can give the metadata that `$meta` asks for. `sorted`: it sorts by something
    /// other than `$natural`; `measured`: its filter has a `$near`; `searched`: it has a `$text`. Errors: 2 for a sort key without a sort, 40218 for what text, search and
    /// geospatial queries alone give.
    pub fn check_find_metadata(&self, sorted: bool, measured: bool, searched: bool) -> Result<()> {
        let mut deps = Deps::default();
        self.dependencies(&mut deps);
        for name in deps.metadata {
            match name {
                "recordId" | "indexKey" => {}
                "sortKey" if sorted => {}
                "geoNearDistance" | "geoNearPoint" if measured => {}
                "textScore" | "score" if searched => {}
                "sortKey" => bail!(BadValue, "cannot use sortKey $meta projection without a sort"),
                _ => bail!(40218, "query requires {name} metadata, but it is not available"),
            }
        }
        Ok(())
    }

    /// Adds what computing and keeping fields reads. An exclusion reads the whole document.
    pub fn dependencies(&self, deps: &mut Deps) {
        if self.mode == Mode::Exclusion || self.positional.is_some() {
            deps.whole_document = true;
        }
        self.fields_read(deps);
    }

    /// Adds what computing fields reads, those that are listed, and those that fields are computed below of.
    pub fn fields_read(&self, deps: &mut Deps) {
        node_dependencies(&self.root, "", deps);
    }
}

fn joined(prefix: &str, name: &str) -> String {
    if prefix.is_empty() {
        name.to_owned()
    } else {
        format!("{prefix}.{name}")
    }
}

fn listed_paths(node: &Node, prefix: &str, out: &mut Vec<String>) {
    for (name, child) in &node.children {
        match child {
            Child::Listed => out.push(joined(prefix, name)),
            Child::Nested(node) => listed_paths(node, &joined(prefix, name), out),
            Child::Kept | Child::Dropped | Child::Computed(_) => {}
        }
    }
}

fn node_dependencies(node: &Node, prefix: &str, deps: &mut Deps) {
    for (name, child) in &node.children {
        match child {
            Child::Listed | Child::Kept => deps.add_path(&Path::new(&joined(prefix, name))),
            Child::Dropped => {}
            Child::Nested(node) => {
                let path = joined(prefix, name);
                // A computed field below may have to be placed into arrays and documents that exist.
                if node.has_computed {
                    deps.add_path(&Path::new(&path));
                }
                node_dependencies(node, &path, deps);
            }
            Child::Computed(Compute::Expr(expr)) => expr.dependencies(deps),
            Child::Computed(Compute::ElemMatch { field, .. }) => deps.add_path(&Path::new(field)),
        }
    }
}
