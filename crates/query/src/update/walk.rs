//! Applying the tree of touched paths to the bytes of a document.
//!
//! Each level is scanned once for the names it needs; what is not named is skipped by its length and
//! later copied as it is. Results are edits ([`Patch`]) and, from the same walk, the oplog's diff.

use super::Predicate;
use super::diff::{ArrayDiff, DocDiff};
use super::operand::{Bytes, Encoded, close, open, push_element};
use super::operators::{Effect, Existing, Site};
use super::patch::Patch;
use super::tree::{Fields, Name, Node, Nodes, NodesKind, Selector, any_leaf};
use crate::env::OpContext;
use nestor_model::raw::{RawElement, STORED_DEPTH_MAX};
use nestor_model::statement::{BYTES_PER_UNIT, work};
use nestor_model::{ArrayRef, DocRef, Error, ErrorCode, RawDoc, Result, ValueRef, bail};
use std::collections::HashMap;

/// Most nulls that may be filled in before a new array element.
const BACKFILL_MAX: usize = 1_500_000;
/// Up to this many names are looked for one by one.
const LINEAR_MAX: usize = 12;

/// The context that operators may look at besides their own value.
pub(crate) struct Context<'u> {
    /// The document as it was.
    pub root: RawDoc<'u>,
    /// True while the document of an upsert is made.
    pub insert: bool,
    /// Time of the operation.
    pub op: &'u OpContext,
    /// The position that `$` stands for.
    pub position: Option<&'u str>,
    /// Array filters, by number.
    pub filters: &'u [Predicate],
    /// Values moved by `$rename`, by number; `None` where there was none.
    pub renamed: Vec<Option<Encoded<'u>>>,
}

/// The walk's result below one container.
struct Changed {
    /// Change of the container's size in bytes.
    delta: i64,
    /// The container's diff; `None` when nothing changed.
    diff: Option<Vec<u8>>,
    /// Elements changed by `$[]` or `$[identifier]`.
    elements: usize,
}

/// A field of one level that the tree names.
struct Target<'u> {
    name: &'u str,
    index: Option<u32>,
    nodes: Nodes<'u>,
}

pub(crate) struct Walk<'u> {
    pub context: Context<'u>,
    patch: Patch<'u>,
    path: Vec<&'u str>,
}

/// Result of [`Walk::run`].
pub(crate) struct Walked<'u> {
    pub patch: Patch<'u>,
    pub delta: i64,
    pub diff: Vec<u8>,
}

impl<'u> Walk<'u> {
    pub fn new(context: Context<'u>) -> Self {
        Self {
            context,
            patch: Patch::default(),
            path: Vec::new(),
        }
    }

    /// Applies `tree` to the document; `None` when it changes nothing.
    pub fn run(mut self, tree: &'u Node) -> Result<Option<Walked<'u>>> {
        let root = self.context.root;
        let changed = self.fields(root, 0, false, &Nodes::one(tree), 1)?;
        debug_assert_eq!(
            changed.diff.is_some(),
            !self.patch.is_empty(),
            "a change has both an edit and a diff"
        );
        Ok(changed.diff.map(|diff| Walked {
            patch: self.patch,
            delta: changed.delta,
            diff,
        }))
    }

    /// `raw` is the document or array that starts at offset `base`, `depth` levels deep (the top is 1).
    fn container(
        &mut self,
        raw: RawDoc<'u>,
        base: usize,
        is_array: bool,
        nodes: &Nodes<'u>,
        depth: usize,
    ) -> Result<Changed> {
        let changed = match self.kind(nodes)? {
            NodesKind::Elements => self.elements(raw, base, nodes, depth)?,
            _ => self.fields(raw, base, is_array, nodes, depth)?,
        };
        if changed.delta != 0 {
            self.patch.length(base, raw.len() as i64 + changed.delta);
        }
        Ok(changed)
    }

    fn kind(&self, nodes: &Nodes<'u>) -> Result<NodesKind<'u>> {
        nodes.kind().ok_or_else(|| {
            Error::new(
                ErrorCode::ConflictingUpdateOperators,
                format!("Update created a conflict at '{}'", self.path.join(".")),
            )
        })
    }

    fn fields(
        &mut self,
        raw: RawDoc<'u>,
        base: usize,
        is_array: bool,
        nodes: &Nodes<'u>,
        depth: usize,
    ) -> Result<Changed> {
        let targets = self.targets(nodes)?;
        if is_array {
            self.array_fields(raw, base, &targets, depth)
        } else {
            self.document_fields(raw, base, &targets, depth)
        }
    }

    fn document_fields(
        &mut self,
        raw: RawDoc<'u>,
        base: usize,
        targets: &[Target<'u>],
        depth: usize,
    ) -> Result<Changed> {
        let mut found: Vec<Option<RawElement<'u>>> = vec![None; targets.len()];
        let mut left = targets.len();
        let index: HashMap<&str, usize> = if left > LINEAR_MAX {
            targets.iter().enumerate().map(|(i, t)| (t.name, i)).collect()
        } else {
            HashMap::new()
        };
        work(raw.len() / BYTES_PER_UNIT)?;
        for element in raw.elements() {
            let name = element.name();
            let target = if index.is_empty() {
                targets.iter().position(|t| t.name == name)
            } else {
                index.get(name).copied()
            };
            if let Some(i) = target {
                if found[i].is_none() {
                    found[i] = Some(element);
                    left -= 1;
                    if left == 0 {
                        break;
                    }
                }
            }
        }
        let mut diff = DocDiff::default();
        let mut delta = 0;
        for (target, element) in targets.iter().zip(found) {
            self.path.push(target.name);
            match element {
                Some(element) => {
                    delta += self.existing(element, base, false, &target.nodes, depth, &mut |change| {
                        diff.change(target.name, change);
                    })?;
                }
                None => {
                    if let Some(value) = self.create(&target.nodes, depth)? {
                        self.check_name(target.name)?;
                        let mut element = Vec::with_capacity(value.bytes.len() + target.name.len() + 2);
                        push_element(&mut element, value.kind, target.name, value.bytes.as_slice());
                        diff.insert(&element);
                        delta += element.len() as i64;
                        self.patch.append(base + raw.len() - 1, element);
                    }
                }
            }
            self.path.pop();
        }
        Ok(Changed {
            delta,
            diff: diff.finish(),
            elements: 0,
        })
    }

    fn array_fields(&mut self, raw: RawDoc<'u>, base: usize, targets: &[Target<'u>], depth: usize) -> Result<Changed> {
        let mut found: Vec<Option<RawElement<'u>>> = vec![None; targets.len()];
        // Indexes ascend, as targets are in the order of names.
        let mut wanted = targets
            .iter()
            .enumerate()
            .filter_map(|(at, t)| t.index.map(|i| (at, i as usize)))
            .peekable();
        let mut count = 0usize;
        work(raw.len() / BYTES_PER_UNIT)?;
        for (i, element) in raw.elements().enumerate() {
            count = i + 1;
            if let Some((at, _)) = wanted.next_if(|(_, index)| *index == i) {
                found[at] = Some(element);
            }
            if wanted.peek().is_none() {
                break;
            }
        }
        let mut diff = ArrayDiff::default();
        let mut delta = 0;
        let mut appended = Vec::new();
        for (target, element) in targets.iter().zip(found) {
            let Some(index) = target.index else {
                self.not_viable(&target.nodes, target.name, ValueRef::Array(ArrayRef::Raw(raw)))?;
                continue;
            };
            self.path.push(target.name);
            match element {
                Some(element) => {
                    delta += self.existing(element, base, true, &target.nodes, depth, &mut |change| {
                        diff.change(index as usize, change);
                    })?;
                }
                None => {
                    if let Some(value) = self.create(&target.nodes, depth)? {
                        let index = index as usize;
                        if index.saturating_sub(count) > BACKFILL_MAX {
                            bail!(CannotBackfillArray, "can't backfill more than {BACKFILL_MAX} elements");
                        }
                        for gap in count..index {
                            work(1)?;
                            push_element(&mut appended, 0x0A, &super::operand::index_name(gap), &[]);
                        }
                        push_element(&mut appended, value.kind, target.name, value.bytes.as_slice());
                        count = index + 1;
                        diff.change(index, Change::Update(&value));
                    }
                }
            }
            self.path.pop();
        }
        if !appended.is_empty() {
            delta += appended.len() as i64;
            self.patch.append(base + raw.len() - 1, appended);
        }
        Ok(Changed {
            delta,
            diff: diff.finish(),
            elements: 0,
        })
    }

    fn elements(&mut self, raw: RawDoc<'u>, base: usize, nodes: &Nodes<'u>, depth: usize) -> Result<Changed> {
        let mut diff = ArrayDiff::default();
        let mut delta = 0;
        let mut changed = 0;
        for (i, element) in raw.elements().enumerate() {
            work(1)?;
            let mut chosen: Option<Nodes<'u>> = None;
            for node in nodes.iter() {
                let Node::Elements(children) = node else { continue };
                for (selector, child) in children {
                    let selected = match selector {
                        Selector::All => true,
                        Selector::Filtered(n) => self.context.filters[*n].matches(element.value(), self.context.op)?,
                    };
                    match &mut chosen {
                        _ if !selected => {}
                        Some(chosen) => chosen.rest.push(child),
                        None => chosen = Some(Nodes::one(child)),
                    }
                }
            }
            if let Some(chosen) = chosen {
                self.path.push(element.name());
                delta += self.existing(element, base, true, &chosen, depth, &mut |change| {
                    changed += 1;
                    diff.change(i, change);
                })?;
                self.path.pop();
            }
        }
        Ok(Changed {
            delta,
            diff: diff.finish(),
            elements: changed,
        })
    }

    /// Applies `nodes` to an element that is there; returns the change of its size.
    fn existing(
        &mut self,
        element: RawElement<'u>,
        base: usize,
        in_array: bool,
        nodes: &Nodes<'u>,
        depth: usize,
        report: &mut dyn FnMut(Change<'_, 'u>),
    ) -> Result<i64> {
        let start = base + element.offset();
        let value_at = start + element.as_bytes().len() - element.value_bytes().len();
        let kind = self.kind(nodes)?;
        let leaf = match kind {
            NodesKind::Leaf(leaf) => leaf,
            NodesKind::Fields | NodesKind::Elements => {
                let (raw, is_array) = match element.value() {
                    ValueRef::Document(DocRef::Raw(raw)) if matches!(kind, NodesKind::Fields) => (raw, false),
                    ValueRef::Array(ArrayRef::Raw(raw)) => (raw, true),
                    other => {
                        self.no_container(&kind, nodes, other)?;
                        return Ok(0);
                    }
                };
                let edits = self.patch.len();
                let changed = self.container(raw, value_at, is_array, nodes, depth + 1)?;
                match changed.diff {
                    // Several elements changed at once are logged as the whole array.
                    Some(_) if changed.elements > 1 => {
                        let bytes = self.patch.render(edits, raw, value_at, changed.delta);
                        report(Change::Update(&Encoded::container(0x04, 0, bytes)));
                    }
                    Some(diff) => report(Change::Sub(diff)),
                    None => {}
                }
                return Ok(changed.delta);
            }
        };
        let existing = Existing {
            kind: element.kind(),
            bytes: element.value_bytes(),
            value: element.value(),
        };
        let effect = leaf.existing(&existing, &self.site())?;
        match effect {
            Effect::Keep => Ok(0),
            Effect::Remove if in_array => {
                if element.kind() == Encoded::NULL.kind {
                    return Ok(0);
                }
                self.replace(&element, start, value_at, Encoded::NULL, depth, report)
            }
            Effect::Remove => {
                let length = element.as_bytes().len();
                self.patch.edit(start, length, Bytes::Borrowed(&[]));
                report(Change::Delete);
                Ok(-(length as i64))
            }
            Effect::Replace(value) => {
                self.check_name(element.name())?;
                self.replace(&element, start, value_at, value, depth, report)
            }
            Effect::Append { from, values, whole } => {
                let edits = self.patch.len();
                let old = element.value_bytes().len();
                let mut added = Vec::new();
                let mut diff = ArrayDiff::default();
                for (i, value) in values.iter().enumerate() {
                    check_depth(depth + 1, value)?;
                    let name = super::operand::index_name(from + i);
                    push_element(&mut added, value.kind, &name, value.bytes.as_slice());
                    diff.change(from + i, Change::Update(value));
                }
                let Some(diff) = diff.finish() else { return Ok(0) };
                let delta = added.len() as i64;
                self.patch.length(value_at, old as i64 + delta);
                self.patch.append(value_at + old - 1, added);
                match element.value() {
                    ValueRef::Array(ArrayRef::Raw(raw)) if whole => {
                        let bytes = self.patch.render(edits, raw, value_at, delta);
                        report(Change::Update(&Encoded::container(0x04, 0, bytes)));
                    }
                    _ => report(Change::Sub(diff)),
                }
                Ok(delta)
            }
        }
    }

    fn replace(
        &mut self,
        element: &RawElement<'u>,
        start: usize,
        value_at: usize,
        value: Encoded<'u>,
        depth: usize,
        report: &mut dyn FnMut(Change<'_, 'u>),
    ) -> Result<i64> {
        check_depth(depth, &value)?;
        report(Change::Update(&value));
        if value.kind != element.kind() {
            let mut kind = [0; 16];
            kind[0] = value.kind;
            self.patch.edit(start, 1, Bytes::Small(kind, 1));
        }
        let old = element.value_bytes().len();
        let delta = value.bytes.len() as i64 - old as i64;
        self.patch.edit(value_at, old, value.bytes);
        Ok(delta)
    }

    /// The value of a place that is not there yet; `None` when no operator wants it there.
    /// `depth` is that of the container it goes into.
    fn create(&mut self, nodes: &Nodes<'u>, depth: usize) -> Result<Option<Encoded<'u>>> {
        let value = match self.kind(nodes)? {
            NodesKind::Leaf(leaf) => leaf.missing(&self.site())?,
            NodesKind::Elements => bail!(
                BadValue,
                "The path '{}' must exist in the document in order to apply array updates.",
                self.path.join(".")
            ),
            NodesKind::Fields => {
                let mut bytes = Vec::new();
                let start = open(&mut bytes);
                let mut inner = None::<usize>;
                for target in self.targets(nodes)? {
                    self.path.push(target.name);
                    if let Some(value) = self.create(&target.nodes, depth + 1)? {
                        push_element(&mut bytes, value.kind, target.name, value.bytes.as_slice());
                        inner = inner.max(Some(value.depth));
                    }
                    self.path.pop();
                }
                close(&mut bytes, start);
                inner.map(|inner| Encoded::container(0x03, inner + 1, bytes))
            }
        };
        if let Some(value) = &value {
            check_depth(depth, value)?;
        }
        Ok(value)
    }

    /// Merges the fields that `nodes` name, in order.
    fn targets(&self, nodes: &Nodes<'u>) -> Result<Vec<Target<'u>>> {
        let mut targets: Vec<Target<'u>> = Vec::new();
        for node in nodes.iter() {
            let Node::Fields(Fields { named, positional }) = node else {
                continue;
            };
            if targets.is_empty() {
                targets.extend(named.iter().map(|(Name(part), node)| Target {
                    name: &part.name,
                    index: part.index,
                    nodes: Nodes::one(node),
                }));
            } else {
                for (Name(part), node) in named {
                    merge(&mut targets, &part.name, part.index, node);
                }
            }
            if let Some(node) = positional {
                let Some(position) = self.context.position else {
                    bail!(
                        BadValue,
                        "The positional operator did not find the match needed from the query."
                    );
                };
                merge(&mut targets, position, position.parse().ok(), node);
            }
        }
        Ok(targets)
    }

    /// An operator needs a field below a value that has no fields: an error unless all there can do
    /// without.
    fn not_viable(&self, nodes: &Nodes<'u>, name: &str, value: ValueRef<'_>) -> Result<()> {
        let site = self.site();
        if nodes.iter().any(|n| any_leaf(n, &mut |leaf| leaf.needs_path(&site))) {
            let field = self.path.last().copied().unwrap_or("");
            bail!(
                PathNotViable,
                "Cannot create field '{name}' in element {{{field}: {value:?}}}"
            );
        }
        Ok(())
    }

    fn no_container(&self, kind: &NodesKind<'u>, nodes: &Nodes<'u>, value: ValueRef<'_>) -> Result<()> {
        if let NodesKind::Elements = kind {
            let field = self.path.last().copied().unwrap_or("");
            bail!(
                BadValue,
                "Cannot apply array updates to non-array element {field}: {value:?}"
            );
        }
        // The first named child is the one that MongoDB would fail at.
        for target in self.targets(nodes)? {
            self.not_viable(&target.nodes, target.name, value)?;
        }
        Ok(())
    }

    /// New and changed fields of the top level do not start with `$`.
    fn check_name(&self, name: &str) -> Result<()> {
        if self.path.len() == 1 && name.starts_with('$') && !self.context.insert {
            return Err(super::validate::dollar_prefixed(name));
        }
        Ok(())
    }

    fn site(&self) -> Site<'_, 'u> {
        Site {
            context: &self.context,
            path: &self.path,
        }
    }
}

fn merge<'u>(targets: &mut Vec<Target<'u>>, name: &'u str, index: Option<u32>, node: &'u Node) {
    match targets.binary_search_by(|t| super::path::compare_names(t.name, name)) {
        Ok(found) => targets[found].nodes.rest.push(node),
        Err(gap) => targets.insert(
            gap,
            Target {
                name,
                index,
                nodes: Nodes::one(node),
            },
        ),
    }
}

/// `container` is the level of what the value lies in, 1 for the whole document.
fn check_depth(container: usize, value: &Encoded<'_>) -> Result<()> {
    if container - 1 + value.depth > STORED_DEPTH_MAX {
        return Err(super::too_deep());
    }
    Ok(())
}

/// The change of one field, for the diff.
pub(crate) enum Change<'v, 'u> {
    Update(&'v Encoded<'u>),
    Delete,
    Sub(Vec<u8>),
}
