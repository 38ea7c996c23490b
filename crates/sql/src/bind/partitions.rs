//! Scans of tables: of a partitioned one those of its leaves, one after the other, each with its columns in the order of the table's. What keys and
//! bounds of partitions are.

use super::from::one_row;
use super::names::{PARTITIONED, RECORD, is_only};
use super::through::Written;
use super::write::{Action, Write};
use super::{Binder, Bound, Scope, ScopeColumn};
use crate::catalog::files::Form;
use crate::catalog::partition::{Bound as PartitionBound, Division, End, Keys, Strategy};
use crate::catalog::{Kind, Table};
use crate::error::{Field, error, fail, unsupported, with};
use crate::functions::coerce;
use crate::plan::Plan;
use crate::types::Type;
use crate::types::cast::{self, Context};
use nestor_model::{Result, Value};
use nestor_planner::relation::{Env, Relation, Scalar as _, Scan};
use sqlparser::ast::{Expr as Ast, ForValues, ObjectName, PartitionBoundValue};
use std::sync::Arc;

/// A table as a name means it: without its partitions, of which all rows are, where the name says so.
pub(super) fn meant(name: &ObjectName, table: Arc<Table>) -> Arc<Table> {
    match is_only(name) && table.division.is_some() {
        true => Arc::new(Table {
            division: None,
            ..(*table).clone()
        }),
        false => table,
    }
}

impl Binder<'_> {
    /// The columns of a table's rows, and behind them the document (or nothing) that a row is, and its record.
    pub(super) fn columns_of(&self, table: &Table) -> Vec<ScopeColumn> {
        let oid = self.catalog.number_of(table);
        let mut columns: Vec<ScopeColumn> = (1..)
            .zip(&table.columns)
            .map(|(at, column)| ScopeColumn {
                table: Some(table.name.clone()),
                name: column.name.clone(),
                ty: column.ty.clone(),
                modifier: column.modifier,
                fields: column.fields.clone(),
                hidden: false,
                optional: false,
                origin: (oid, at),
            })
            .collect();
        // The document itself; the number of its record comes with it, for writes. Rows of catalogs know which catalog's they are.
        let own = match &table.kind {
            Kind::Rows(_) => ("tableoid", Type::Oid),
            // Rows of tables are no documents, and have no name to ask for them by.
            Kind::Files(source) if !matches!(source.form, Form::Json(_)) => ("\u{1}doc", Type::Jsonb),
            _ => ("_doc", Type::Jsonb),
        };
        let record = match &table.kind {
            Kind::Collection(_) => RECORD,
            _ => "\u{1}norecord",
        };
        for (name, ty) in [own, (record, Type::Bytea)] {
            columns.push(ScopeColumn {
                table: Some(table.name.clone()),
                hidden: true,
                ..ScopeColumn::new(name, ty)
            });
        }
        if let (Some(_), Some(record)) = (&table.division, columns.last_mut()) {
            record.modifier = PARTITIONED;
        }
        columns
    }

    /// A scan of a table: its columns, and behind them the document (or nothing) that a row is.
    ///
    /// Errors: those of finding its partitions.
    pub(super) fn scan(&mut self, table: &Arc<Table>) -> Result<Bound> {
        let columns = self.columns_of(table);
        let width = columns.len();
        let plan = match (&table.division, self.catalog.tree(table)?) {
            (Some(_), Some(tree)) => {
                let mut inputs: Vec<Plan> = tree
                    .leaves
                    .iter()
                    .map(|leaf| self.scan_one(&leaf.table, width))
                    .collect();
                match (inputs.len(), inputs.pop()) {
                    (1, Some(only)) => only,
                    (_, None) => Relation::Values {
                        rows: Vec::new(),
                        width,
                    },
                    (_, Some(last)) => {
                        inputs.push(last);
                        Relation::Append { inputs }
                    }
                }
            }
            _ => self.scan_one(table, width),
        };
        Ok(Bound { plan, columns })
    }

    fn scan_one(&mut self, table: &Arc<Table>, width: usize) -> Plan {
        let number = self.tables.len();
        self.tables.push(table.clone());
        Relation::Scan(Scan {
            table: number,
            name: table.name.clone(),
            needed: vec![true; width],
            conditions: Vec::new(),
            distinct: false,
            settles: false,
            order: Vec::new(),
            looked_up: false,
        })
    }

    /// The key that divides rows, over the columns of `table`, which may be those of another one in their order.
    ///
    /// Errors: 42703, 42P17 for what is not always the same, those of binding expressions.
    pub fn partition_keys(&mut self, table: &Arc<Table>, division: &Division) -> Result<Keys> {
        let mut keys = Keys {
            strategy: division.strategy,
            exprs: Vec::new(),
            types: Vec::new(),
        };
        for part in &division.parts {
            if let Some(column) = part.column.as_ref().filter(|column| table.column(column).is_none()) {
                let message = format!("column \"{column}\" named in partition key does not exist");
                return fail("42703", message);
            }
            let expr = self.indexed(table, &crate::parse::expression(&part.text)?)?;
            if expr.is_volatile() {
                return fail(
                    "42P17",
                    "functions in partition key expression must be marked IMMUTABLE",
                );
            }
            if part.column.is_none() && !has_columns(&expr) {
                return fail("42P17", "cannot use constant expression as partition key");
            }
            let mut generated = None;
            expr.for_each_column(&mut |at| {
                let own = table.columns.get(at).filter(|own| own.generated.is_some());
                generated = generated.take().or(own.map(|own| own.name.clone()));
            });
            if let Some(name) = generated {
                let told = error("42P17", "cannot use generated column in partition key");
                let detail = format!("Column \"{name}\" is a generated column.");
                return Err(with(told, &[(Field::Detail, &detail)]));
            }
            let ty = expr.ty();
            if matches!(
                ty,
                Type::Json | Type::Jsonb | Type::Unknown | Type::Array(_) | Type::Composite(_)
            ) {
                return unsupported(format!("a partition key of type {ty}"));
            }
            keys.types.push(ty);
            keys.exprs.push(expr);
        }
        Ok(keys)
    }

    /// The bound that is said of a partition by a key.
    ///
    /// Errors: 42P16, 42804, those of the values.
    pub fn partition_bound(
        &mut self,
        (keys, division): (&Keys, &Division),
        said: &ForValues,
        env: &Env<'_>,
    ) -> Result<PartitionBound> {
        let wrong = || {
            let kind = keys.strategy.word().to_lowercase();
            error("42P16", format!("invalid bound specification for a {kind} partition"))
        };
        match (keys.strategy, said) {
            (_, ForValues::Default) if keys.strategy == Strategy::Hash => {
                fail("42P16", "a hash-partitioned table may not have a default partition")
            }
            (_, ForValues::Default) => Ok(PartitionBound::Default),
            (Strategy::List, ForValues::In(items)) => {
                let (mut values, mut null) = (Vec::new(), false);
                for item in items {
                    match self.bound_value(item, (keys, division, env), 0)? {
                        Value::Null => null = true,
                        value => values.push(value),
                    }
                }
                Ok(PartitionBound::List { values, null })
            }
            (Strategy::Range, ForValues::From { from, to }) => {
                for (word, ends) in [("FROM", from), ("TO", to)] {
                    if ends.len() != keys.types.len() {
                        let message = format!("{word} must specify exactly one value per partitioning column");
                        return fail("42P16", message);
                    }
                }
                Ok(PartitionBound::Range {
                    from: self.bound_ends(from, (keys, division, env))?,
                    to: self.bound_ends(to, (keys, division, env))?,
                })
            }
            (Strategy::Hash, ForValues::With { modulus, remainder }) => match (*modulus, *remainder) {
                (0, _) => fail(
                    "42P16",
                    "modulus for hash partition must be an integer value greater than zero",
                ),
                (modulus, remainder) if remainder >= modulus => {
                    fail("42P16", "remainder for hash partition must be less than modulus")
                }
                (modulus, remainder) => Ok(PartitionBound::Hash { modulus, remainder }),
            },
            _ => Err(wrong()),
        }
    }

    fn bound_ends(&mut self, said: &[PartitionBoundValue], of: (&Keys, &Division, &Env<'_>)) -> Result<Vec<End>> {
        let mut out: Vec<End> = Vec::with_capacity(said.len());
        for (at, end) in said.iter().enumerate() {
            let end = match end {
                PartitionBoundValue::MinValue => End::Min,
                PartitionBoundValue::MaxValue => End::Max,
                PartitionBoundValue::Expr(value) => match self.bound_value(value, of, at)? {
                    Value::Null => return fail("42P17", "cannot specify NULL in range bound"),
                    value => End::At(value),
                },
            };
            let word = match (out.last(), &end) {
                (Some(End::Min), End::At(_) | End::Max) => Some("MINVALUE"),
                (Some(End::Max), End::At(_) | End::Min) => Some("MAXVALUE"),
                _ => None,
            };
            if let Some(word) = word {
                return fail("42804", format!("every bound following {word} must also be {word}"));
            }
            out.push(end);
        }
        Ok(out)
    }

    /// A value of a bound, as the part of the key has it.
    fn bound_value(
        &mut self,
        said: &Ast,
        (keys, division, env): (&Keys, &Division, &Env<'_>),
        at: usize,
    ) -> Result<Value> {
        let ty = keys.types.get(at).cloned().unwrap_or(Type::Unknown);
        if let Ast::Identifier(_) | Ast::CompoundIdentifier(_) = said {
            return fail("0A000", "cannot use column reference in partition bound expression");
        }
        self.levels.push(super::Level::default());
        let value = self.expr(said, &Scope::default());
        self.levels.pop();
        let value = value?;
        if has_columns(&value) {
            return fail("0A000", "cannot use subquery in partition bound");
        }
        if !cast::exists(&value.ty(), &ty, Context::Assignment) {
            let name = division.parts.get(at).map_or("", |part| &part.text);
            let message = format!("specified value cannot be cast to type {ty} for column \"{name}\"");
            return fail("42804", message);
        }
        let value = coerce(value, &ty, Context::Assignment)?;
        let [value] = &mut [value];
        let below = self.flush(one_row(), std::slice::from_mut(value));
        if below.width() > 0 {
            return fail("0A000", "cannot use subquery in partition bound");
        }
        value.value(&[], env)
    }
}

impl Binder<'_> {
    /// What a statement that writes to a partitioned table writes to one of its leaves.
    ///
    /// Errors: those of its checks and generated columns.
    pub fn written_leaf(&mut self, write: &Write, leaf: &Arc<Table>) -> Result<Write> {
        self.levels.push(super::Level::default());
        let bound = match write.action {
            Action::Delete => Ok((Vec::new(), Vec::new())),
            _ => self
                .generated(leaf)
                .and_then(|generated| Ok((generated, self.checks(leaf)?))),
        };
        self.levels.pop();
        let (generated, checks) = bound?;
        Ok(Write {
            table: leaf.clone(),
            plan: one_row(),
            action: Action::Delete,
            generated,
            checks,
            options: write.options.clone(),
            element: None,
            views: Vec::new(),
            returning: None,
            guards: write.guards.clone(),
            tree: None,
        })
    }
}

/// Refuses to write elements of the documents of a partitioned table.
///
/// Errors: 0A000.
pub(super) fn check_elements(written: &Written) -> Result<()> {
    match (written.element(), &written.table.division) {
        (Some(_), Some(_)) => unsupported("to write elements of the rows of a partitioned table"),
        _ => Ok(()),
    }
}

fn has_columns(expr: &crate::expr::Expr) -> bool {
    let mut found = false;
    expr.for_each_column(&mut |_| found = true);
    found
}
