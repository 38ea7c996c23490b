//! Writes to a partitioned table: which partition a row goes to, and what a statement writes there.
//!
//! Rows are computed and read with the columns of the table that the statement names. Documents of a partition may have fields of other names (that of a
//! primary key of one column is `_id`), so places are looked up by columns.

use super::apply::Applying;
use crate::bind::Binder;
use crate::bind::write::{Action, Conflict, Replacing, Target, Write};
use crate::catalog::partition::Level;
use crate::catalog::{Kind, Table};
use crate::error::{Field, error, fail, with};
use crate::functions::leaves;
use crate::run::reader::whole_row;
use crate::run::tables::Reading;
use crate::write::{foreign, refused};
use nestor_model::{DocRef, Document, Result, Value};
use nestor_planner::relation::Env;
use nestor_storage::{Bytes, View as _};
use std::borrow::Cow;
use std::sync::Arc;

/// A leaf that a statement writes to.
pub(super) struct Entered {
    /// What it writes there.
    pub(super) write: Arc<Write>,
    /// Keys of tables, and triggers, depend on its rows.
    pub(super) is_noted: bool,
    /// Its documents have the fields that those of the table would have.
    is_alike: bool,
    /// The columns that its place depends on.
    columns: Vec<String>,
}

/// The bounds of the table that is written to, if that is a partition.
pub(super) fn levels(write: &Write) -> &[Level] {
    match (&write.table.leaf, &write.tree) {
        (Some(leaf), _) => &leaf.levels,
        (None, Some(tree)) => &tree.levels,
        (None, None) => &[],
    }
}

/// The row of a document that is to stand in a table may stand there.
///
/// Errors: 23514; 0A000 for a row of another partition, which triggers have made it.
pub(super) fn check(write: &Write, env: &Env<'_>, doc: DocRef<'_>) -> Result<()> {
    let levels = levels(write);
    if levels.is_empty() {
        return Ok(());
    }
    let table = &write.table;
    let row = whole_row(table, doc)?;
    for level in levels {
        if level.holds(&row, env)? {
            continue;
        }
        return Err(match table.leaf {
            Some(_) => error(
                "0A000",
                "moving row to another partition during a BEFORE FOR EACH ROW trigger is not supported",
            ),
            None => refused::bound(table, write.guards.is_none().then_some(doc)),
        });
    }
    Ok(())
}

/// A document with the fields that one of another table has, which has the same columns.
fn turned(doc: &mut Document, from: &Table, to: &Table) {
    let moved: Vec<(&str, Option<Value>)> = from
        .columns
        .iter()
        .zip(&to.columns)
        .filter(|(from, to)| from.path != to.path)
        .map(|(from, to)| (to.path.as_str(), doc.remove(&from.path)))
        .collect();
    for (path, value) in moved {
        if let Some(value) = value {
            doc.set(path, value);
        }
    }
}

impl Applying<'_, '_, '_> {
    /// Whether rows are those of partitions.
    pub(super) fn is_divided(&self) -> bool {
        self.root.tree.as_ref().is_some_and(|tree| tree.node.is_some())
    }

    /// Goes on with the table that the statement names.
    pub(super) fn leave(&mut self) {
        if self.leaf.take().is_some() {
            self.write = self.root.clone();
        }
    }

    /// Goes on with a leaf.
    ///
    /// Errors: those of what it computes of its rows; 13 for rows with masked fields.
    pub(super) fn enter(&mut self, at: usize) -> Result<()> {
        if self.leaf == Some(at) {
            return Ok(());
        }
        let Some(leaf) = self.root.tree.as_ref().and_then(|tree| tree.leaves.get(at)).cloned() else {
            return fail("XX000", "a row is of a partition that is not there");
        };
        if !self.entered.contains_key(&at) {
            let statement = self.calling.statement;
            let changes = match &self.root.action {
                Action::Insert { conflict, .. } => conflict.as_ref().is_some_and(|own| own.update.is_some()),
                _ => true,
            };
            if let Some(collection) = self.writer.view().catalog().get(&leaf.ns)
                && changes
            {
                statement.check_unmasked(collection, "SQL does not change its rows")?;
            }
            let reading = Reading::new(statement, self.writer.view(), self.op, self.calling.session);
            let write = Binder::new(&reading, Vec::new()).written_leaf(&self.root, &leaf.table)?;
            let is_noted = foreign::Changes::are_wanted(self.writer.view(), &leaf.table, &leaf.ns);
            let keys = leaf
                .table
                .leaf
                .iter()
                .flat_map(|own| &own.levels)
                .map(|level| &level.keys);
            let mut columns = Vec::new();
            for expr in keys.flat_map(|keys| &keys.exprs) {
                expr.for_each_column(&mut |at| {
                    columns.extend(leaf.table.columns.get(at).map(|column| column.name.clone()));
                });
            }
            let pairs = self.root.table.columns.iter().zip(&leaf.table.columns);
            let is_alike = { pairs }.all(|(a, b)| a.path == b.path);
            let entered = Entered {
                write: Arc::new(write),
                is_noted,
                is_alike,
                columns,
            };
            self.entered.insert(at, Arc::new(entered));
        }
        self.writer.turn_to(&leaf.ns)?;
        self.leaf = Some(at);
        self.write = self.entered[&at].write.clone();
        Ok(())
    }

    /// The leaf that is written to.
    pub(super) fn entered(&self) -> Option<&Arc<Entered>> {
        self.entered.get(&self.leaf?)
    }

    /// The record of a row that was read, whose leaf is entered.
    ///
    /// Errors: those of [`Applying::enter`].
    pub(super) fn found(&mut self, address: &Bytes) -> Result<Bytes> {
        if !self.is_divided() {
            return Ok(address.clone());
        }
        let (oid, record) = leaves::taken(address)?;
        let tree = self.root.tree.clone();
        let mut all = tree.iter().flat_map(|tree| &tree.leaves);
        let at = all.position(|leaf| leaf.table.leaf.as_ref().is_some_and(|own| own.oid == oid));
        self.enter(at.unwrap_or(usize::MAX))?;
        Ok(record)
    }

    /// Enters the leaf of a new row, a document of the table that the statement names, which becomes one of the leaf.
    ///
    /// Errors: 23514 where there is none.
    pub(super) fn route(&mut self, doc: &mut Document) -> Result<()> {
        if !self.is_divided() {
            return Ok(());
        }
        let root = self.root.clone();
        let Some((tree, node)) = root.tree.as_ref().and_then(|tree| Some((tree, tree.node.as_ref()?))) else {
            return Ok(());
        };
        let row = whole_row(&root.table, doc.as_ref())?;
        for level in &tree.levels {
            if !level.holds(&row, &self.env)? {
                return Err(refused::bound(&root.table, root.guards.is_none().then(|| doc.as_ref())));
            }
        }
        let at = node.route(&row, &self.env)?;
        self.enter(at)?;
        turned(doc, &root.table, &self.write.table);
        Ok(())
    }

    /// Whether a row that was in the leaf which is written to stands elsewhere now; its document becomes one of the table that the statement names.
    ///
    /// Errors: those of keys.
    pub(super) fn has_left(&self, doc: &mut Document) -> Result<bool> {
        let Some(leaf) = &self.write.table.leaf else {
            return Ok(false);
        };
        let table = &self.write.table;
        let row = whole_row(table, doc.as_ref())?;
        for level in &leaf.levels {
            if !level.holds(&row, &self.env)? {
                turned(doc, table, &self.root.table);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// As [`Applying::has_left`], of a row that goes for another reason.
    pub(super) fn turn_back(&self, doc: &mut Document) {
        if self.leaf.is_some() {
            turned(doc, &self.write.table, &self.root.table);
        }
    }

    /// Whether the place of a row depends on what is assigned.
    pub(super) fn may_leave(&self, targets: &[Target]) -> bool {
        let of_key = |target: &Target, own: &Entered| target.path.is_empty() || own.columns.contains(&target.column);
        let entered = self.entered();
        entered.is_some_and(|own| targets.iter().any(|target| of_key(target, own)))
    }

    /// Targets with the places that they have in the leaf which is written to.
    pub(super) fn placed<'t>(&self, targets: &'t [Target]) -> Cow<'t, [Target]> {
        match self.entered().filter(|own| !own.is_alike) {
            None => Cow::Borrowed(targets),
            Some(_) => Cow::Owned(targets.iter().map(|target| self.placed_one(target)).collect()),
        }
    }

    fn placed_one(&self, target: &Target) -> Target {
        let mut out = target.clone();
        if let Some(first) = out.path.first_mut() {
            *first = self.path_there(first);
        }
        out
    }

    /// The path in the leaf of what is at a path of the table.
    fn path_there(&self, path: &str) -> String {
        let all = &self.root.table.columns;
        let at = all.iter().position(|column| column.path == path);
        let there = at.and_then(|at| self.write.table.columns.get(at));
        there.map_or_else(|| path.to_owned(), |column| column.path.clone())
    }

    /// What ON CONFLICT says, for the leaf which is written to: a constraint of the table is one of the same columns there.
    ///
    /// Errors: 42704.
    pub(super) fn conflict_there(&self, conflict: &Conflict) -> Result<Conflict> {
        let mut out = conflict.clone();
        if self.leaf.is_none() {
            return Ok(out);
        }
        if let Some(name) = &conflict.constraint {
            out.paths = Some(self.paths_of(name)?);
            out.constraint = None;
        }
        if let Some(paths) = &mut out.paths {
            paths.iter_mut().for_each(|path| *path = self.path_there(path));
        }
        if let Some(Replacing { targets, .. }) = &mut out.update {
            *targets = self.placed(targets).into_owned();
        }
        Ok(out)
    }

    /// The paths of a unique index of the table, by name.
    fn paths_of(&self, name: &str) -> Result<Vec<String>> {
        let table = &self.root.table;
        if name == table.key_name && !table.key.is_empty() {
            return Ok(table.paths(&table.key));
        }
        let own = match &table.kind {
            Kind::Collection(ns) => self.writer.view().catalog().get(ns),
            _ => None,
        };
        let mut indexes = own.into_iter().flat_map(|own| own.indexes.iter());
        match indexes.find(|index| index.unique && *index.name == *name) {
            Some(index) => Ok(index.key_pattern.iter().map(|(path, _)| path.to_owned()).collect()),
            None => fail(
                "42704",
                format!("constraint \"{name}\" for table \"{}\" does not exist", table.name),
            ),
        }
    }

    /// 0A000: a row that ON CONFLICT changes would leave its partition.
    pub(super) fn left_by_conflict<T>(&self) -> Result<T> {
        let told = error("0A000", "invalid ON UPDATE specification");
        let detail = "The result tuple would appear in a different partition than the original tuple.";
        Err(with(told, &[(Field::Detail, detail)]))
    }
}
