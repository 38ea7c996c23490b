//! Updates by operators: `{$set: {...}, $inc: {...}}`.

use super::array_filters::ArrayFilters;
use super::operators::rename::{Rename, Source, Target};
use super::operators::{self, Modifier};
use super::path::UpdatePath;
use super::tree::{Fields, Node};
use super::walk::{Context, Walk, Walked};
use super::{Predicate, Touched};
use crate::env::{OpContext, Scope};
use nestor_model::{DocRef, RawDoc, Result, ValueRef, bail};

/// The compiled operators.
#[derive(Debug)]
pub(crate) struct Modifiers {
    tree: Node,
    filters: Vec<Predicate>,
    renames: Vec<Rename>,
    touched: Touched,
    positional: bool,
}

impl Modifiers {
    /// Errors: 9 (FailedToParse) for unknown operators, operands that are no documents, unused array
    /// filters; 40 (ConflictingUpdateOperators); those of paths, operators and array filters.
    pub fn parse(update: DocRef<'_>, filters: ArrayFilters, scope: &mut Scope) -> Result<Self> {
        let mut fields = Fields::default();
        let mut renames = Vec::new();
        let mut touched = Vec::new();
        let mut positional = false;
        let mut used = vec![false; filters.len()];
        let mut number = |id: &str| -> Result<usize> {
            let found = filters.number(id)?;
            used[found] = true;
            Ok(found)
        };
        for (operator, operand) in update {
            if !operators::is_operator(operator) {
                return Err(operators::unknown(operator));
            }
            let ValueRef::Document(operand) = operand else {
                bail!(
                    FailedToParse,
                    "Modifiers operate on fields but we found type {} instead. For example: {{$mod: {{<field>: ...}}}} not {{{operator}: {operand:?}}}",
                    operand.bson_type().alias()
                );
            };
            for (field, value) in operand {
                let mut add = |path: &UpdatePath, leaf: Box<dyn Modifier>| -> Result<()> {
                    positional |= path.has_positional();
                    touched.push(path.canonical());
                    fields.insert(path, leaf, &mut number)
                };
                if operator == "$rename" {
                    let rename = Rename::parse(field, value)?;
                    add(&rename.from, Box::new(Source))?;
                    add(&rename.to, Box::new(Target(renames.len())))?;
                    renames.push(rename);
                } else {
                    let path = UpdatePath::parse(field)?;
                    let leaf = operators::parse(operator, field, value, scope)?;
                    add(&path, leaf)?;
                }
            }
        }
        if let Some(unused) = used.iter().position(|used| !used) {
            bail!(
                FailedToParse,
                "The array filter for identifier '{}' was not used in the update {update:?}",
                filters.name(unused)
            );
        }
        Ok(Self {
            tree: Node::Fields(fields),
            filters: filters.into_predicates(),
            renames,
            touched: Touched::Paths(touched),
            positional,
        })
    }

    /// The paths that may change.
    pub fn touched(&self) -> &Touched {
        &self.touched
    }

    /// True when a path has `$`, so that applying needs the position of the match.
    pub fn needs_position(&self) -> bool {
        self.positional
    }

    /// Applies the operators to `root`. `insert` for the document of an upsert.
    pub fn walk<'u>(
        &'u self,
        root: RawDoc<'u>,
        position: Option<&'u str>,
        op: &'u OpContext,
        insert: bool,
    ) -> Result<Option<Walked<'u>>> {
        let mut renamed = Vec::with_capacity(self.renames.len());
        for rename in &self.renames {
            let value = rename.value(root)?;
            // Even when the value is the same: the field is removed and set anew.
            if value.is_some() && rename.touches_id() && root.get("_id").is_some() {
                return Err(super::validate::immutable_id());
            }
            renamed.push(value);
        }
        Walk::new(Context {
            root,
            insert,
            op,
            position,
            filters: &self.filters,
            renamed,
        })
        .run(&self.tree)
    }
}
