//! Partitions as a state has them: the tree of a table, and whether a scan of a leaf finds nothing.
//!
//! A tree is kept with the catalog entry of its table as long as the tables that it was made of are the same.

use super::find;
use super::reader::row_of;
use super::tables::{Find, Reading};
use crate::bind::Binder;
use crate::bind::entry::{self, Object};
use crate::catalog::partition::{Bound, Child, Keys, Leaf, LeafOf, Level, Node, PartitionOf, Tree};
use crate::catalog::system::partitions::{self, Partition};
use crate::catalog::system::{RELATIONS, Relation};
use crate::catalog::{Kind, Table};
use crate::error::fail;
use crate::expr::{Comparison, Expr, Node as Of};
use crate::types::Type;
use crate::types::style::Style;
use crate::types::zone::Zone;
use nestor_database::read;
use nestor_exec::Step;
use nestor_model::{Document, Error, Namespace, Result, Value};
use nestor_planner::interval::{Interval, IntervalList};
use nestor_planner::relation::Env;
use nestor_storage::{Catalog as Entries, Collection, CollectionId, Derive, View};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Levels of partitions of partitions.
const LEVELS_MAX: usize = 20;

/// The tree of a version of a catalog entry, and the state of the catalog that it was last found to hold in.
#[derive(Default)]
struct OfEntry(Mutex<Option<(Weak<Entries>, Arc<Tree>)>>);

impl Derive for OfEntry {
    type Error = Error;

    fn derive(_: &Collection) -> Result<Self> {
        Ok(Self::default())
    }
}

/// The partitions of the table at `ns`, in no order.
pub fn children(view: &dyn View, ns: &Namespace) -> Vec<(Arc<Collection>, Arc<Table>)> {
    let database = view.catalog().database(&ns.db);
    let collections = database.into_iter().flat_map(|database| database.collections());
    let own = collections.filter_map(|collection| match entry::of(collection) {
        Some(Object::Table(_, table)) => {
            let of = table.partition_of.as_ref()?;
            (*of.parent == *ns.coll).then(|| (collection.clone(), table.clone()))
        }
        _ => None,
    });
    own.collect()
}

/// The declared table at a namespace.
pub fn declared(view: &dyn View, ns: &Namespace) -> Option<Arc<Table>> {
    match view.catalog().get(ns).map(|collection| entry::of(collection)) {
        Some(Some(Object::Table(_, table))) => Some(table.clone()),
        _ => None,
    }
}

/// A table, its partitions, theirs, and so on: those that it stands above, each behind the one that it is of.
pub fn descendants(view: &dyn View, ns: &Namespace) -> Vec<(Arc<Collection>, Arc<Table>)> {
    let mut out = children(view, ns);
    let mut at = 0;
    while let Some((collection, table)) = out.get(at).cloned() {
        at += 1;
        if table.division.is_some() {
            let below = children(view, &collection.ns);
            out.splice(at..at, below);
        }
    }
    out
}

/// The tables that a partition is of, the nearest first.
pub fn ancestors(view: &dyn View, ns: &Namespace) -> Vec<Arc<Table>> {
    let mut out: Vec<Arc<Table>> = Vec::new();
    let mut next = declared(view, ns);
    while let Some(of) = next.as_ref().and_then(|table| table.partition_of.clone()) {
        let parent = Namespace::new(&*ns.db, of.parent.as_str());
        next = declared(view, &parent).filter(|_| out.len() < LEVELS_MAX);
        out.extend(next.clone());
    }
    out
}

/// A leaf with the columns of `root` in their order.
fn in_order(leaf: &Table, root: &Table) -> Result<Table> {
    let columns = root.columns.iter().map(|column| match leaf.column(&column.name) {
        Some(own) => Ok(own.clone()),
        None => fail(
            "XX000",
            format!("partition \"{}\" lacks column \"{}\"", leaf.name, column.name),
        ),
    });
    Ok(Table {
        columns: columns.collect::<Result<_>>()?,
        ..leaf.clone()
    })
}

/// A tree while it is made.
struct Growing<'g, 's, 'r> {
    reading: &'g Reading<'s, 'r>,
    root: &'g Arc<Table>,
    leaves: Vec<Leaf>,
    made_of: Vec<Arc<Table>>,
}

impl Growing<'_, '_, '_> {
    /// The key of a partitioned table, over the columns of the root.
    fn keys(&self, table: &Table) -> Result<Keys> {
        let Some(division) = &table.division else {
            return fail("42809", format!("\"{}\" is not a partitioned table", table.name));
        };
        Binder::new(self.reading, Vec::new()).partition_keys(self.root, division)
    }

    /// The bound of a partition, as it is kept: values are those of no session.
    fn bound(&self, (keys, table): (&Keys, &Table), of: &PartitionOf) -> Result<Bound> {
        let Some(division) = &table.division else {
            return fail("42809", format!("\"{}\" is not a partitioned table", table.name));
        };
        let _style = Style::neutral();
        let _zone = Zone::default().enter();
        let env = Env {
            op: self.reading.op,
            params: &[],
            outer: None,
            effects: None,
            compared: None,
        };
        Binder::new(self.reading, Vec::new()).partition_bound((keys, division), &of.bound, &env)
    }

    /// The partitions of a table in their order, with its key.
    #[allow(clippy::type_complexity)]
    fn parts(&mut self, table: &Table) -> Result<(Arc<Keys>, Vec<(Bound, Arc<Collection>, Arc<Table>)>)> {
        let Kind::Collection(ns) = &table.kind else {
            return fail("XX000", "a partitioned table is no collection");
        };
        let keys = self.keys(table)?;
        let mut parts = Vec::new();
        for (collection, child) in children(self.reading.view, ns) {
            let Some(of) = child.partition_of.clone() else { continue };
            parts.push((self.bound((&keys, table), &of)?, collection, child));
        }
        parts.sort_by(|a, b| keys.order(&a.0, &b.0));
        self.made_of.extend(parts.iter().map(|(_, _, child)| child.clone()));
        Ok((Arc::new(keys), parts))
    }

    fn node(&mut self, table: &Table, above: &[Level]) -> Result<Node> {
        if above.len() >= LEVELS_MAX {
            return fail("54001", "partitions nest too deep");
        }
        let (keys, parts) = self.parts(table)?;
        let bounds = parts.iter().map(|(bound, ..)| bound);
        let others: Arc<[Bound]> = bounds.filter(|own| !matches!(own, Bound::Default)).cloned().collect();
        let mut out = Vec::with_capacity(parts.len());
        for (bound, collection, child) in parts {
            let is_default = matches!(bound, Bound::Default);
            let mut levels = above.to_vec();
            levels.push(Level {
                keys: keys.clone(),
                bound: bound.clone(),
                others: if is_default { others.clone() } else { Arc::default() },
            });
            if child.division.is_some() {
                out.push((bound, Child::Node(Box::new(self.node(&child, &levels)?))));
                continue;
            }
            let mut table = in_order(&child, self.root)?;
            table.leaf = Some(Arc::new(LeafOf {
                oid: RELATIONS.saturating_add(collection.id.0),
                levels,
            }));
            out.push((bound, Child::Leaf(self.leaves.len())));
            self.leaves.push(Leaf {
                ns: collection.ns.clone(),
                table: Arc::new(table),
            });
        }
        let shown = table
            .division
            .as_ref()
            .map_or_else(String::new, |division| division.columns());
        Ok(Node {
            schema: table.schema.clone(),
            name: table.name.clone(),
            shown,
            keys,
            parts: out,
        })
    }

    /// The bounds that a partition has itself, outermost first.
    fn levels(&mut self, ns: &Namespace) -> Result<Vec<Level>> {
        let mut out = Vec::new();
        let mut child = self.root.clone();
        for parent in ancestors(self.reading.view, ns) {
            let (keys, parts) = self.parts(&parent)?;
            let is_it = |own: &&(Bound, Arc<Collection>, Arc<Table>)| {
                Arc::ptr_eq(&own.2, &child) || own.2.name == child.name && own.2.schema == child.schema
            };
            let Some((bound, ..)) = parts.iter().find(is_it) else {
                break;
            };
            let bounds = parts.iter().map(|(bound, ..)| bound);
            let others: Arc<[Bound]> = bounds.filter(|own| !matches!(own, Bound::Default)).cloned().collect();
            let is_default = matches!(bound, Bound::Default);
            out.push(Level {
                keys,
                bound: bound.clone(),
                others: if is_default { others } else { Arc::default() },
            });
            self.made_of.push(parent.clone());
            child = parent;
        }
        out.reverse();
        Ok(out)
    }
}

impl Reading<'_, '_> {
    /// The collection that catalogs know by a number.
    pub(super) fn collection_numbered(&self, oid: u32) -> Option<Arc<Collection>> {
        let id = oid.checked_sub(RELATIONS).map(CollectionId)?;
        self.view.catalog().by_id(id).cloned()
    }

    /// Tells relations what they are partitions of.
    pub(super) fn note_partitions(&self, all: &mut [Relation]) {
        let divided: Vec<(u32, Arc<Table>)> = all
            .iter()
            .filter(|own| own.table.division.is_some())
            .map(|own| (own.oid, own.table.clone()))
            .collect();
        if divided.is_empty() {
            return;
        }
        let mut known: HashMap<u32, Partition> = HashMap::new();
        for (parent, table) in divided {
            let (Some(division), Ok((keys, parts))) = (&table.division, self.parts_of(&table)) else {
                continue;
            };
            let names: Vec<String> = division.parts.iter().map(|part| part.text.clone()).collect();
            let bounds: Vec<Bound> = parts.iter().map(|(bound, ..)| bound.clone()).collect();
            for (bound, collection, _) in &parts {
                let own = Partition {
                    parent,
                    bound: keys.shown(bound),
                    is_default: matches!(bound, Bound::Default),
                    condition: partitions::condition((parent, &names), &keys, bound, &bounds),
                };
                known.insert(RELATIONS.saturating_add(collection.id.0), own);
            }
        }
        for relation in all {
            relation.partition = known.remove(&relation.oid);
        }
    }

    /// The partitions of a table in their order, with its key over its own columns.
    ///
    /// Errors: those of keys and bounds.
    #[allow(clippy::type_complexity)]
    pub(crate) fn parts_of(
        &self,
        table: &Arc<Table>,
    ) -> Result<(Arc<Keys>, Vec<(Bound, Arc<Collection>, Arc<Table>)>)> {
        let mut growing = Growing {
            reading: self,
            root: table,
            leaves: Vec::new(),
            made_of: Vec::new(),
        };
        growing.parts(table)
    }

    /// Whether all rows of a table, or of its leaves, stand where levels let them, which are over its columns.
    ///
    /// Errors: those of reading and of keys.
    pub(crate) fn rows_fit(&self, table: &Arc<Table>, levels: &[Level]) -> Result<bool> {
        let tree = self.tree_of(table)?.filter(|tree| tree.node.is_some());
        let all: Vec<Arc<Table>> = match &tree {
            Some(tree) => tree.leaves.iter().map(|leaf| leaf.table.clone()).collect(),
            None => vec![table.clone()],
        };
        let env = Env {
            op: self.op,
            params: &[],
            outer: None,
            effects: None,
            compared: None,
        };
        for table in &all {
            let Kind::Collection(ns) = &table.kind else { continue };
            let all = Document::new();
            let mut root = self.find(
                ns,
                Find {
                    stored: true,
                    ..Find::all(&all)
                },
            )?;
            let mut batch = read::batch(self.statement, self.view, self.op, true);
            let needed = vec![true; table.columns.len() + 2];
            loop {
                match root.next(&mut batch)? {
                    Step::Row(row) => {
                        let row = row_of(table, &needed, row.as_doc(), None)?;
                        for level in levels {
                            if !level.holds(&row, &env)? {
                                return Ok(false);
                            }
                        }
                    }
                    Step::Pause => {}
                    Step::Eof => break,
                }
            }
        }
        Ok(true)
    }

    /// What partitions make of a table.
    ///
    /// Errors: those of keys and bounds.
    pub(crate) fn tree_of(&self, table: &Table) -> Result<Option<Arc<Tree>>> {
        let Kind::Collection(ns) = &table.kind else {
            return Ok(None);
        };
        if table.division.is_none() && table.partition_of.is_none() || table.leaf.is_some() {
            return Ok(None);
        }
        let entries = self.view.catalog();
        let Some(collection) = entries.get(ns).cloned() else {
            return Ok(None);
        };
        let OfEntry(kept) = collection.derived()?;
        let last = kept.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((state, tree)) = &last
            && state.as_ptr() == Arc::as_ptr(entries)
        {
            return Ok(Some(tree.clone()));
        }
        let root = Arc::new(table.clone());
        let mut growing = Growing {
            reading: self,
            root: &root,
            leaves: Vec::new(),
            made_of: Vec::new(),
        };
        let levels = growing.levels(ns)?;
        let node = match table.division {
            Some(_) => Some(growing.node(table, &[])?),
            None => None,
        };
        let made = Tree {
            levels,
            node,
            leaves: growing.leaves,
            made_of: growing.made_of,
        };
        let is_same = |before: &Tree| {
            let pairs = before.made_of.iter().zip(&made.made_of);
            before.made_of.len() == made.made_of.len() && { pairs }.all(|(a, b)| Arc::ptr_eq(a, b))
        };
        let tree = match last {
            Some((_, before)) if is_same(&before) => before,
            _ => Arc::new(made),
        };
        *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some((Arc::downgrade(entries), tree.clone()));
        Ok(Some(tree))
    }
}

/// Whether a leaf has no rows of which conditions hold.
///
/// Errors: those of the values that columns are compared with.
pub fn is_excluded(table: &Table, conditions: &[Expr], env: &Env<'_>) -> Result<bool> {
    let Some(leaf) = &table.leaf else { return Ok(false) };
    if conditions.is_empty() {
        return Ok(false);
    }
    let said = |expr: &Expr, ty: &Type| {
        let mut all: Option<IntervalList> = None;
        for condition in conditions {
            if let Some(own) = values(condition, (expr, ty), env)? {
                all = Some(all.map_or_else(|| own.clone(), |all| all.intersect(&own)));
            }
        }
        Ok(all)
    };
    for level in &leaf.levels {
        if level.excludes(&said)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The same by what is known without running anything: by constants.
pub fn is_always_excluded(table: &Table, conditions: &[Expr], env: &Env<'_>) -> bool {
    let known: Vec<Expr> = conditions.iter().filter(|own| is_of_constants(own)).cloned().collect();
    is_excluded(table, &known, env).unwrap_or(false)
}

/// Whether what a condition compares with is written down.
fn is_of_constants(condition: &Expr) -> bool {
    let is_const = |expr: &Expr| matches!(expr.node(), Of::Const(..));
    match condition.node() {
        Of::Compare(_, a, b) => is_const(a) || is_const(b),
        Of::InList(_, items, _) => items.iter().all(is_const),
        Of::Quantified { array, .. } => is_const(array),
        Of::Or(any) => any.iter().all(|part| part.conjuncts().iter().all(is_of_constants)),
        Of::IsNull(..) | Of::Column { .. } | Of::Not(_) => true,
        _ => false,
    }
}

/// The values of an expression that a condition leaves; `None` when it says nothing of it.
fn values(condition: &Expr, (expr, ty): (&Expr, &Type), env: &Env<'_>) -> Result<Option<IntervalList>> {
    let is_it = |own: &Expr| own.is_same(expr);
    if let Of::Or(any) = condition.node() {
        let mut all = IntervalList::none();
        for branch in any {
            let mut own: Option<IntervalList> = None;
            for part in branch.conjuncts() {
                if let Some(said) = values(&part, (expr, ty), env)? {
                    own = Some(own.map_or_else(|| said.clone(), |own| own.intersect(&said)));
                }
            }
            let Some(own) = own else { return Ok(None) };
            all = all.union(&own);
        }
        return Ok(Some(all));
    }
    let null = || IntervalList::point(Value::Null);
    match condition.node() {
        Of::IsNull(arg, false) if is_it(arg) => return Ok(Some(null())),
        Of::IsNull(arg, true) if is_it(arg) => return Ok(Some(null().complement())),
        Of::Column { .. } if is_it(condition) && *ty == Type::Bool => {
            return Ok(Some(IntervalList::point(Value::Bool(true))));
        }
        Of::Not(arg) if is_it(arg) && *ty == Type::Bool => {
            return Ok(Some(IntervalList::point(Value::Bool(false))));
        }
        _ => {}
    }
    let Some(said) = find::said(condition, &is_it, env)? else {
        return Ok(None);
    };
    if !goes_with(ty, &said.of.ty()) {
        return Ok(None);
    }
    let mut all = IntervalList::none();
    for value in said.values {
        let within = match value {
            // Nothing compares with null.
            Value::Null => continue,
            Value::Double(_) => return Ok(None),
            Value::Decimal128(number) if !number.is_finite() => return Ok(None),
            value => compared(said.op, value),
        };
        all = all.union(&within);
    }
    Ok(Some(all))
}

/// Whether values of two types are compared as what they are.
fn goes_with(a: &Type, b: &Type) -> bool {
    let is_whole = |ty: &Type| matches!(ty, Type::Int2 | Type::Int4 | Type::Int8);
    let is_text = |ty: &Type| matches!(ty, Type::Text | Type::Varchar);
    a == b || is_whole(a) && is_whole(b) || is_text(a) && is_text(b)
}

fn compared(op: Comparison, value: Value) -> IntervalList {
    let above = |low: Value, is_in: bool| IntervalList::of(Interval::new(low, is_in, Value::MaxKey, true));
    let below = |high: Value, is_in: bool| IntervalList::of(Interval::new(Value::Null, false, high, is_in));
    match op {
        Comparison::Equal => IntervalList::point(value),
        Comparison::Less => below(value, false),
        Comparison::LessEqual => below(value, true),
        Comparison::Greater => above(value, false),
        Comparison::GreaterEqual => above(value, true),
        Comparison::NotEqual => {
            let out = IntervalList::point(value).union(&IntervalList::point(Value::Null));
            out.complement()
        }
    }
}
