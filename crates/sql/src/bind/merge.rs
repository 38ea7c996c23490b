//! MERGE: the rows of a source beside those of the table that they meet, and the first clause that wants each of them.
//!
//! The plan gives rows of three parts: the record that is met, the number of the clause, and a value for each target of any clause. Values
//! of other clauses than the row's own are null and never computed, but for subqueries, which are asked for every row.

use super::always::check_identity;
use super::through::{Verb, Written};
use super::write::{Action, Target, Write, check_distinct, check_width};
use super::{Binder, PENDING, Scope, ident};
use crate::error::{Field, error, fail, unsupported, with};
use crate::expr::{Expr, Node};
use crate::plan::Plan;
use crate::types::Type;
use nestor_model::{Result, Value};
use nestor_planner::relation::{Join, JoinKind, Relation};
use sqlparser::ast::{
    Merge, MergeAction, MergeClause as Clause, MergeClauseKind, MergeInsertExpr, MergeInsertKind, MergeUpdateExpr,
    MergeUpdateKind, TableFactor,
};

/// What a clause of MERGE does with its rows. Its values are columns of the plan from `first` on, one for each target.
#[derive(Clone, Debug)]
pub enum Merging {
    /// Each becomes a document.
    Insert {
        /// What the values are written to.
        targets: Vec<Target>,
        /// The column of the first value.
        first: usize,
    },
    /// The document that is met is changed.
    Update {
        /// What the values are written to.
        targets: Vec<Target>,
        /// The column of the first value.
        first: usize,
    },
    /// The document that is met is deleted.
    Delete,
    /// Nothing.
    Nothing,
}

/// A clause with its expressions: the condition, if there is one, is followed by the values.
struct Parts {
    is_matched: bool,
    has_condition: bool,
    exprs: Vec<Expr>,
    merging: Merging,
}

/// The columns of [`Write::plan`] before the values: record and clause.
pub const BEFORE_VALUES: usize = 2;

impl Binder<'_> {
    pub(super) fn merge(&mut self, merge: &Merge) -> Result<Write> {
        if merge.output.is_some() || !merge.optimizer_hints.is_empty() {
            return unsupported("a clause of this MERGE");
        }
        let TableFactor::Table { name, alias, .. } = &merge.table else {
            return unsupported("writing to what is no table");
        };
        let written = self.written(name, (Verb::Merge, true))?;
        let own = alias
            .as_ref()
            .map_or_else(|| written.name().to_owned(), |alias| ident(&alias.name));
        let source = self.source(&merge.source)?;
        if source.columns.iter().any(|column| column.table.as_ref() == Some(&own)) {
            let told = error("42712", format!("name \"{own}\" specified more than once"));
            let detail = "The name is used both as MERGE target table and data source.";
            return Err(with(told, &[(Field::Detail, detail)]));
        }
        let met = self.rows_of_written(&written, &own)?;
        let theirs = Scope {
            columns: source.columns.clone(),
        };
        let mut both = theirs.clone();
        both.columns.extend(met.columns);
        let on = self.condition(&merge.on, &both, "JOIN/ON")?;
        let mut asks = false;
        on.for_each_column(&mut |index| asks |= index >= PENDING);
        if asks {
            return unsupported("a subquery in the condition of MERGE");
        }
        let parts = self.clauses(&written, &merge.clauses, &theirs, &both)?;
        let plan = Relation::Join(Box::new(Join {
            // Rows that meet none are wanted by clauses that insert.
            kind: match parts.iter().all(|part| part.is_matched) {
                true => JoinKind::Inner,
                false => JoinKind::Left,
            },
            left: source.plan,
            right: met.plan,
            keys: Vec::new(),
            condition: Some(on),
            left_first: false,
        }));
        let record = self.column(&both.columns, both.columns.len() - 1);
        let (plan, clauses) = self.chosen(plan, parts, record);
        self.written_by(&written, plan, Action::Merge { clauses }, None)
    }

    fn clauses(&mut self, written: &Written, clauses: &[Clause], theirs: &Scope, both: &Scope) -> Result<Vec<Parts>> {
        if clauses.is_empty() {
            return fail("42601", "syntax error: MERGE has no WHEN clause");
        }
        let mut out: Vec<Parts> = Vec::with_capacity(clauses.len());
        for clause in clauses {
            let is_matched = match clause.clause_kind {
                MergeClauseKind::Matched => true,
                MergeClauseKind::NotMatched => false,
                _ => return unsupported("WHEN NOT MATCHED BY"),
            };
            if out
                .iter()
                .any(|part| part.is_matched == is_matched && !part.has_condition)
            {
                return fail(
                    "42601",
                    "unreachable WHEN clause specified after unconditional WHEN clause",
                );
            }
            let scope = if is_matched { both } else { theirs };
            let mut exprs = Vec::new();
            if let Some(condition) = &clause.predicate {
                exprs.push(self.condition(condition, scope, "MERGE WHEN")?);
            }
            let merging = match &clause.action {
                MergeAction::Insert(insert) => {
                    let (targets, values) = self.merged_insert(written, insert, scope)?;
                    exprs.extend(values);
                    Merging::Insert { targets, first: 0 }
                }
                MergeAction::Update(update) => {
                    let (targets, values) = self.merged_update(written, update, scope)?;
                    exprs.extend(values);
                    Merging::Update { targets, first: 0 }
                }
                MergeAction::Delete { .. } => Merging::Delete,
                MergeAction::DoNothing { .. } => Merging::Nothing,
            };
            out.push(Parts {
                is_matched,
                has_condition: clause.predicate.is_some(),
                exprs,
                merging,
            });
        }
        Ok(out)
    }

    fn merged_insert(
        &mut self,
        written: &Written,
        insert: &MergeInsertExpr,
        scope: &Scope,
    ) -> Result<(Vec<Target>, Vec<Expr>)> {
        let MergeInsertKind::Values(given) = &insert.kind else {
            return fail("42601", "syntax error: MERGE inserts values");
        };
        let [row] = given.rows.as_slice() else {
            return fail("42601", "syntax error: MERGE inserts one row of values");
        };
        if insert.insert_predicate.is_some() {
            return fail("42601", "syntax error: WHERE stands in no clause of MERGE");
        }
        let is_listed = !insert.columns.is_empty();
        let table = &*written.table;
        let mut targets = self.targets(written, &insert.columns, Some(row.content.len()))?;
        check_distinct(&targets)?;
        check_width(&mut targets, row.content.len(), is_listed)?;
        let mut values = Vec::with_capacity(targets.len());
        for (target, value) in targets.iter_mut().zip(&row.content) {
            let mut value = match self.given(value, scope)? {
                Some(value) => value,
                None => self.default_of(table, target)?,
            };
            self.assigned(target, &mut [&mut value])?;
            values.push(value);
        }
        let rows = Relation::Values {
            width: values.len(),
            rows: vec![values.clone()],
        };
        check_identity(table, &targets, &rows, false)?;
        if written.element().is_none() {
            values.extend(self.missing(table, &mut targets)?);
        }
        Ok((targets, values))
    }

    fn merged_update(
        &mut self,
        written: &Written,
        update: &MergeUpdateExpr,
        scope: &Scope,
    ) -> Result<(Vec<Target>, Vec<Expr>)> {
        match &update.kind {
            MergeUpdateKind::Set(set) if set.iter().any(has_subscripts) => {
                unsupported("an assignment to a part of a column in MERGE")
            }
            MergeUpdateKind::Set(set) if update.update_predicate.is_none() && update.delete_predicate.is_none() => {
                self.assignments(written, set, scope)
            }
            _ => fail("42601", "syntax error: an UPDATE of MERGE is SET and its assignments"),
        }
    }

    /// The rows that a clause wants, as [`Write::plan`] has them, and the clauses, which know where their values are.
    fn chosen(&mut self, plan: Plan, mut parts: Vec<Parts>, record: Expr) -> (Plan, Vec<Merging>) {
        let mut exprs: Vec<Expr> = parts.iter().flat_map(|part| part.exprs.iter().cloned()).collect();
        let plan = self.flush(plan, &mut exprs);
        let mut exprs = exprs.into_iter();
        for part in &mut parts {
            part.exprs = exprs.by_ref().take(part.exprs.len()).collect();
        }
        let number = |at: usize| Expr::constant(Value::Int32(i32::try_from(at).unwrap_or(i32::MAX)), Type::Int4);
        let mut choices = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            let mut condition: Expr = Node::IsNull(record.clone(), part.is_matched).into();
            if part.has_condition {
                condition = condition.and(part.exprs[0].clone());
            }
            choices.push((condition, number(at)));
        }
        let width = plan.width();
        let mut columns: Vec<Expr> = (0..width).map(|i| Expr::column(i, "column", Type::Unknown)).collect();
        columns.push(
            Node::Case {
                operand: None,
                arms: choices,
                otherwise: None,
                ty: Type::Int4,
            }
            .into(),
        );
        let plan = Relation::Project {
            input: Box::new(plan),
            columns,
        };
        let clause = Expr::column(width, "clause", Type::Int4);
        let plan = Relation::Filter {
            input: Box::new(plan),
            condition: Node::IsNull(clause.clone(), true).into(),
        };
        let mut columns = vec![record, clause.clone()];
        let mut clauses = Vec::with_capacity(parts.len());
        for (at, part) in parts.into_iter().enumerate() {
            let mut merging = part.merging;
            if let Merging::Insert { first, .. } | Merging::Update { first, .. } = &mut merging {
                *first = columns.len();
            }
            let is_own: Expr = Node::Compare(crate::expr::Comparison::Equal, clause.clone(), number(at)).into();
            let values = part.exprs.into_iter().skip(usize::from(part.has_condition));
            columns.extend(values.map(|value| {
                let ty = value.ty();
                Expr::from(Node::Case {
                    operand: None,
                    arms: vec![(is_own.clone(), value)],
                    otherwise: None,
                    ty,
                })
            }));
            clauses.push(merging);
        }
        let plan = Relation::Project {
            input: Box::new(plan),
            columns,
        };
        (plan, clauses)
    }
}

/// Whether a part of a column is assigned to.
fn has_subscripts(assignment: &sqlparser::ast::Assignment) -> bool {
    let names = match &assignment.target {
        sqlparser::ast::AssignmentTarget::ColumnName(name) => std::slice::from_ref(name),
        sqlparser::ast::AssignmentTarget::Tuple(names) => names.as_slice(),
    };
    names
        .iter()
        .any(|name| crate::parse::subscripts::taken(name).is_ok_and(|(_, steps)| !steps.is_empty()))
}
