//! ON CONFLICT: what it infers an index from, and what becomes of the document that is there.

use super::through::{Verb, Written};
use super::write::Target;
use super::{Binder, Scope, object_name};
use crate::error::{error, fail, unsupported};
use crate::expr::Expr;
use crate::parse;
use crate::plan::Plan;
use nestor_model::Result;
use nestor_planner::relation::Relation;
use sqlparser::ast::{ConflictTarget, ObjectName, OnConflict, OnConflictAction};

/// What to do with rows of documents that an insert would double.
#[derive(Clone, Debug)]
pub struct Conflict {
    /// The columns that a unique index has to have, as paths; `None` for any index.
    pub paths: Option<Vec<String>>,
    /// The name of the index, if that was given instead.
    pub constraint: Option<String>,
    /// What the index is on, if that is not said by columns alone.
    pub inferred: Option<Inferred>,
    /// What the document that is there becomes; `None` leaves it as it is. Expressions see the columns of the table, as
    /// [`Binder::scan`] gives them, twice: of the document that is there, and of the one that was to be inserted.
    pub update: Option<Replacing>,
}

impl Conflict {
    /// Whether it says which index it means.
    pub fn names_target(&self) -> bool {
        self.paths.is_some() || self.constraint.is_some() || self.inferred.is_some()
    }
}

/// What an index is inferred from.
#[derive(Clone, Debug)]
pub struct Inferred {
    /// Its parts, over the columns of the table.
    pub parts: Vec<Expr>,
    /// What holds of the rows that it has, or of others as well.
    pub predicate: Vec<Expr>,
}

/// `DO UPDATE`.
#[derive(Clone, Debug)]
pub struct Replacing {
    /// What is written.
    pub targets: Vec<Target>,
    /// The values, one for each.
    pub values: Vec<Expr>,
    /// Only if this holds.
    pub condition: Option<Expr>,
    /// A query that gives the values and, if there is one, the condition, where they have subqueries. It reads both documents as rows of this
    /// number, and tables in the state before the statement.
    pub query: Option<(usize, Plan)>,
}

impl Binder<'_> {
    pub(super) fn conflict(&mut self, written: &Written, conflict: &OnConflict, scope: &Scope) -> Result<Conflict> {
        let (mut paths, mut constraint, mut inferred) = (None, None, None);
        match &conflict.conflict_target {
            None => {}
            Some(ConflictTarget::Columns(names)) => {
                let targets = names
                    .iter()
                    .map(|name| self.target_of(written, &ObjectName::from(vec![name.clone()]), Verb::Update));
                let targets: Vec<Target> = targets.collect::<Result<_>>()?;
                paths = Some(targets.iter().map(|target| target.path.join(".")).collect());
            }
            Some(ConflictTarget::OnConstraint(name)) => {
                let name = object_name(name)?.1;
                match parse::conflict::of(&name) {
                    None => constraint = Some(name),
                    Some(target) => inferred = Some(self.inferred(written, target, scope)?),
                }
            }
        }
        let OnConflictAction::DoUpdate(update) = &conflict.action else {
            return Ok(Conflict {
                paths,
                constraint,
                inferred,
                update: None,
            });
        };
        if paths.is_none() && constraint.is_none() && inferred.is_none() {
            return fail(
                "42601",
                "ON CONFLICT DO UPDATE requires inference specification or constraint name",
            );
        }
        let mut both = scope.clone();
        both.columns.extend(self.columns_of_written(written, "excluded"));
        // A name alone is the table's.
        for column in &mut both.columns[scope.columns.len()..] {
            column.hidden = true;
        }
        let (targets, values) = self.assignments(written, &update.assignments, &both)?;
        let condition = update
            .selection
            .as_ref()
            .map(|condition| self.condition(condition, &both, "WHERE"))
            .transpose()?;
        let width = both.columns.len();
        let mut beyond = false;
        for expr in values.iter().chain(&condition) {
            expr.for_each_column(&mut |index| beyond |= index >= width);
        }
        let (values, condition, query) = match beyond {
            false => {
                let over_table = |expr: &Expr| written.over_table(expr, 2);
                let values = values.iter().map(over_table).collect::<Result<_>>()?;
                (values, condition.as_ref().map(over_table).transpose()?, None)
            }
            true if !written.views().is_empty() => {
                return unsupported("a subquery in ON CONFLICT DO UPDATE of a view");
            }
            true => {
                let id = self.id();
                let mut exprs: Vec<Expr> = values.iter().chain(&condition).cloned().collect();
                let input = self.flush(Relation::Working { id, width }, &mut exprs);
                let plan = Relation::Project {
                    input: Box::new(input),
                    columns: exprs,
                };
                (values, condition, Some((id, plan)))
            }
        };
        Ok(Conflict {
            paths,
            constraint,
            inferred,
            update: Some(Replacing {
                targets,
                values,
                condition,
                query,
            }),
        })
    }

    /// What ON CONFLICT says of an index beside columns.
    fn inferred(
        &mut self,
        written: &Written,
        target: std::result::Result<parse::conflict::Target, sqlparser::parser::ParserError>,
        scope: &Scope,
    ) -> Result<Inferred> {
        let target = target.map_err(|e| error("42601", e.to_string()))?;
        let mut parts = Vec::new();
        for part in &target.parts {
            let part = self.expr(part, scope)?;
            parts.push(written.over_table(&part, 1)?);
        }
        let predicate = match &target.predicate {
            None => Vec::new(),
            Some(predicate) => {
                let condition = self.condition(predicate, scope, "ON CONFLICT")?;
                written.over_table(&condition, 1)?.conjuncts()
            }
        };
        let mut beyond = false;
        for expr in parts.iter().chain(&predicate) {
            expr.for_each_column(&mut |index| beyond |= index >= written.table.columns.len());
        }
        match beyond {
            true => unsupported("a subquery in the target of ON CONFLICT"),
            false => Ok(Inferred { parts, predicate }),
        }
    }
}
