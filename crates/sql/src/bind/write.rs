//! INSERT, UPDATE and DELETE: from their clauses to a plan of the rows that they write, and to what is done with each.
//!
//! A column is a field of documents. Null is the absence of the field: an insert leaves it out, and `SET x = NULL` removes it. In a
//! table that is not declared, a column of type `jsonb` takes values of any type and keeps them as what they are, `column.field` names a
//! field within one, `_doc` is the document, and the columns of an insert into a collection without documents become its fields.

pub use super::conflict::{Conflict, Inferred, Replacing};

use super::always::{check_identity, is_always, why_always};
use super::from::check_names;
use super::merge::Merging;
use super::names::{RECORD, RETURNED};
use super::partitions::{check_elements, meant};
use super::policies::{self, Guards};
use super::query::is_default;
use super::subscripts::{check_no_default, check_parts, part_type};
use super::through::{Verb, Written};
use super::{Binder, Bound, Level, Scope, ScopeColumn, ident, object_name};
use crate::catalog::partition::Tree;
use crate::catalog::{Column, Table};
use crate::error::{Field, error, fail, unsupported, with};
use crate::expr::{Expr, Node};
use crate::functions::coerce;
use crate::parse::subscripts;
use crate::plan::Plan;
use crate::types::Type;
use crate::types::cast::{self, Context};
use nestor_model::{Result, Value};
use nestor_planner::relation::{ApplyKind, Relation};
use sqlparser::ast::{
    Assignment, AssignmentTarget, Delete, Expr as Ast, FromTable, Insert, ObjectName, ObjectNamePart, OnInsert, Query,
    SelectItem, SetExpr, Statement, TableFactor, TableObject, TableWithJoins, Update, UpdateTableFromKind, With,
};
use std::sync::Arc;

/// Stands for the next number of a column that counts, and for the value of a generated one.
pub const NEXT_NUMBER: Value = Value::MinKey;

/// A place in documents that a statement writes.
#[derive(Clone, Debug)]
pub struct Target {
    /// The names on the way; none for the whole document.
    pub path: Vec<String>,
    /// The column's name.
    pub column: String,
    /// The type of what is written.
    pub ty: Type,
    modifier: i32,
    /// The domain, or the array of such, whose conditions are looked at.
    pub(super) domain: Option<Type>,
    /// What is written may have any type.
    open: bool,
    /// It is a place in an element of an array, and not in the document.
    pub is_of_element: bool,
}

/// The elements of an array, which are the rows of a child table.
#[derive(Clone, Debug)]
pub struct Element {
    /// The field of documents that is the array.
    pub path: String,
    /// The fields of elements that are columns; `None` for the whole element.
    pub fields: Vec<Option<String>>,
    /// Their types.
    pub types: Vec<Type>,
    /// The columns of the key of documents.
    pub key: Vec<Column>,
}

impl Target {
    /// A column of a declared table, whole.
    pub(super) fn of(column: &Column) -> Self {
        Self {
            path: vec![column.path.clone()],
            column: column.name.clone(),
            ty: column.ty.clone(),
            modifier: column.modifier,
            domain: column.domain.clone(),
            open: false,
            is_of_element: false,
        }
    }

    /// A field of documents, as it is.
    pub fn of_field(path: &str) -> Self {
        Self {
            path: vec![path.to_owned()],
            column: path.to_owned(),
            ty: Type::Jsonb,
            modifier: -1,
            domain: None,
            open: false,
            is_of_element: false,
        }
    }

    /// The same place for values of another type.
    pub(super) fn of_type(&self, ty: Type) -> Self {
        Self {
            ty,
            modifier: -1,
            domain: None,
            open: false,
            ..self.clone()
        }
    }

    /// A place in an element: a column, or a field within it.
    pub(super) fn of_element(path: Vec<String>, column: &ScopeColumn, is_within: bool) -> Self {
        Self {
            ty: if is_within { Type::Jsonb } else { column.ty.clone() },
            path,
            column: column.name.clone(),
            modifier: if is_within { -1 } else { column.modifier },
            domain: None,
            open: is_within,
            is_of_element: true,
        }
    }
}

/// What is done with rows.
#[derive(Clone, Debug)]
pub enum Action {
    /// Each becomes a document. Column `i` of the plan is the value of target `i`.
    Insert {
        /// What the values are written to.
        targets: Vec<Target>,
        /// What happens to those that are there already.
        conflict: Option<Box<Conflict>>,
    },
    /// The record in the first column of the plan is changed. Column `1 + i` is the value of target `i`; the columns of FROM follow.
    Update {
        /// What the values are written to.
        targets: Vec<Target>,
    },
    /// The record in the first column of the plan is deleted. The columns of USING follow.
    Delete,
    /// Column 0 of the plan is a record, or null where none was met, column 1 the number of a clause that decides.
    Merge {
        /// The clauses.
        clauses: Vec<Merging>,
    },
}

/// RETURNING: a query over the rows that were written, which it reads as those of number `id`: the columns of the table as
/// [`Binder::scan`] gives them, then those of FROM or USING.
#[derive(Clone, Debug)]
pub struct Returning {
    /// The rows' number.
    pub id: usize,
    /// The query.
    pub plan: Plan,
    /// Its columns.
    pub columns: Vec<ScopeColumn>,
    /// It reads tables, in the state before the statement.
    pub reads: bool,
}

/// A statement that writes, bound.
#[derive(Clone, Debug)]
pub struct Write {
    /// The table.
    pub table: Arc<Table>,
    /// The rows.
    pub plan: Plan,
    /// What is done with them.
    pub action: Action,
    /// The columns whose values are computed, by their numbers. The expressions see the columns of the table.
    pub generated: Vec<(usize, Expr)>,
    /// What holds of each row that is written, with the names of the constraints. Conditions see the columns of the table as
    /// [`Binder::scan`] gives them.
    pub checks: Vec<(String, Expr)>,
    /// What has to be true of each row that is written through a view, with the names of the views; over the same columns.
    pub options: Vec<(String, Expr)>,
    /// The array whose elements are written, and not the documents.
    pub element: Option<Element>,
    /// The views that are written through: the names of their collections.
    pub views: Vec<String>,
    /// What the statement gives.
    pub returning: Option<Returning>,
    /// What policies say of the rows that are written, if some count.
    pub guards: Option<Arc<Guards>>,
    /// What partitions make of the table.
    pub tree: Option<Arc<Tree>>,
}

/// The statement that writes within a statement, and its WITH clause.
pub fn writing(statement: &Statement) -> Option<(&Statement, Option<&With>)> {
    match statement {
        Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) | Statement::Merge(_) => {
            Some((statement, None))
        }
        Statement::Query(query) => match &*query.body {
            SetExpr::Insert(inner) | SetExpr::Update(inner) | SetExpr::Delete(inner) | SetExpr::Merge(inner) => {
                Some((inner, query.with.as_ref()))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Whether a query writes itself.
pub fn is_writing(query: &Query) -> bool {
    matches!(
        &*query.body,
        SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_)
    )
}

/// The WITH of a statement some part of which writes.
pub fn modifying(statement: &Statement) -> Option<&With> {
    let with = match statement {
        Statement::Query(query) => query.with.as_ref(),
        Statement::Insert(insert) => insert.source.as_ref().and_then(|source| source.with.as_ref()),
        _ => None,
    };
    with.filter(|with| with.cte_tables.iter().any(|cte| is_writing(&cte.query)))
}

/// Whether a statement writes, or a part of its WITH does.
pub fn writes(statement: &Statement) -> bool {
    writing(statement).is_some() || modifying(statement).is_some()
}

impl Binder<'_> {
    /// Binds a statement that writes.
    ///
    /// Errors: those of its names, types and queries; 42601, 42P10, 55000 for views, 0A000.
    pub fn write(&mut self, statement: &Statement, with: Option<&With>) -> Result<Write> {
        if let Some(with) = with {
            self.with(with)?;
        }
        self.levels.push(Level::default());
        let write = match statement {
            Statement::Insert(insert) => self.insert(insert),
            Statement::Update(update) => self.update(update),
            Statement::Delete(delete) => self.delete(delete),
            Statement::Merge(merge) => self.merge(merge),
            _ => unsupported("a statement of this form"),
        };
        self.levels.pop();
        write
    }

    /// What a column of a declared table holds when nobody says it, as its type has it.
    ///
    /// Errors: those of binding its default.
    pub(super) fn default_value(&mut self, table: &Table, column: &Column) -> Result<Expr> {
        let mut target = Target::of(column);
        let mut value = self.default_of(table, &target)?;
        self.assigned(&mut target, &mut [&mut value])?;
        Ok(value)
    }

    /// The table of a name.
    pub(super) fn existing(&mut self, name: &ObjectName) -> Result<Arc<Table>> {
        let (schema, plain) = object_name(name)?;
        match self.table(schema.as_deref(), &plain)? {
            Some(table) => Ok(meant(name, table)),
            None => fail("42P01", format!("relation \"{plain}\" does not exist")),
        }
    }

    pub(super) fn target(&self, table: &Table, name: &ObjectName) -> Result<Target> {
        let parts = name.0.iter().map(|part| match part {
            ObjectNamePart::Identifier(part) => Ok(ident(part)),
            ObjectNamePart::Function(_) => unsupported("a column of this form"),
        });
        let parts: Vec<String> = parts.collect::<Result<_>>()?;
        let Some((first, rest)) = parts.split_first() else {
            return fail("42601", "a column has no name");
        };
        let Some(column) = table.columns.iter().find(|column| column.name == *first) else {
            let open = !table.declared && (first == "_doc" || table.columns.is_empty());
            if !open {
                return fail(
                    "42703",
                    format!("column \"{first}\" of relation \"{}\" does not exist", table.name),
                );
            }
            let whole = first == "_doc" && rest.is_empty();
            return Ok(Target {
                path: if whole { Vec::new() } else { parts.clone() },
                column: first.clone(),
                ty: if whole { Type::Jsonb } else { Type::Unknown },
                modifier: -1,
                domain: None,
                open: !whole,
                is_of_element: false,
            });
        };
        let declared = column.declared_type().clone();
        let (mut ty, mut modifier, mut fields) = (declared, column.modifier, &column.fields);
        for name in rest {
            if let Type::Composite(own) = &ty {
                let Some(found) = own.attribute(name) else {
                    let message = format!(
                        "cannot assign to field \"{name}\" of column \"{first}\" because there is no such column in data type {ty}"
                    );
                    return fail("42703", message);
                };
                (ty, modifier, fields) = (found.ty.clone(), found.modifier, const { &Vec::new() });
                continue;
            }
            if ty != Type::Jsonb {
                return fail(
                    "42804",
                    format!(
                        "cannot assign to field \"{name}\" of column \"{first}\" because its type {ty} is not a composite type"
                    ),
                );
            }
            (ty, modifier, fields) = match fields.iter().find(|field| field.name == *name) {
                Some(field) => (field.ty.clone(), field.modifier, &field.fields),
                None => (Type::Jsonb, -1, const { &Vec::new() }),
            };
        }
        let mut path = vec![column.path.clone()];
        path.extend(rest.iter().cloned());
        Ok(Target {
            open: ty == Type::Jsonb && !table.declared,
            is_of_element: false,
            path,
            column: first.clone(),
            domain: ty.is_constrained().then(|| ty.clone()),
            ty: ty.plain(),
            modifier,
        })
    }

    /// Values of one target as its type has them: one for each row of VALUES, or the one of a column. An open target gets the type of
    /// its values.
    pub(super) fn assigned(&mut self, target: &mut Target, values: &mut [&mut Expr]) -> Result<()> {
        if target.open {
            let own: Vec<Type> = values.iter().map(|value| value.ty()).collect();
            let known = own.iter().any(|ty| *ty != Type::Unknown);
            // Literals are JSON where documents have JSON, and text where there is nothing yet.
            if known || target.ty == Type::Unknown {
                match cast::common(&own) {
                    Some(Type::Unknown) => target.ty = Type::Text,
                    Some(ty) => target.ty = ty,
                    None => return fail("42804", "VALUES types cannot be matched"),
                }
            }
        }
        for value in values {
            let from = value.ty();
            if !cast::exists(&from, &target.ty, Context::Assignment) {
                let message = format!(
                    "column \"{}\" is of type {} but expression is of type {from}",
                    target.column, target.ty
                );
                let hint = "You will need to rewrite or cast the expression.";
                // Drivers know by the routine that they may try with other types.
                let told = [(Field::Hint, hint), (Field::Routine, "transformAssignedExpr")];
                return Err(with(error("42804", message), &told));
            }
            let mut expr = coerce(value.clone(), &target.ty, Context::Assignment)?;
            if target.modifier >= 0 {
                expr = Node::Cast {
                    arg: expr,
                    to: target.ty.clone(),
                    modifier: target.modifier,
                    explicit: false,
                }
                .into();
            }
            // A number that is still to come is one of the domain once it is there.
            let is_to_come = matches!(expr.node(), Node::Const(value, _) if value.identical(&NEXT_NUMBER));
            if let Some(domain) = target.domain.as_ref().filter(|_| !is_to_come) {
                expr = coerce(expr, domain, Context::Assignment)?;
            }
            self.note_params(&expr);
            **value = expr;
        }
        Ok(())
    }

    /// The value of a target that is not given.
    pub(super) fn default_of(&mut self, table: &Table, target: &Target) -> Result<Expr> {
        let column = table.columns.iter().find(|column| column.name == target.column);
        let is_made = column.is_some_and(|column| column.identity.is_some() || column.generated.is_some());
        if target.path.len() == 1 && is_made {
            return Ok(Expr::constant(NEXT_NUMBER, target.ty.clone()));
        }
        match column.and_then(Column::given) {
            Some(text) if target.path.len() == 1 => {
                let ast = crate::parse::expression(text)?;
                let is_default = std::mem::replace(&mut self.is_default, true);
                let value = self.expr(&ast, &Scope::default());
                self.is_default = is_default;
                let value = value?;
                let mut is_computed_elsewhere = false;
                value.for_each_column(&mut |_| is_computed_elsewhere = true);
                match is_computed_elsewhere {
                    true => fail("0A000", "cannot use subquery in DEFAULT expression"),
                    false => Ok(value),
                }
            }
            _ => Ok(Expr::constant(Value::Null, target.ty.clone())),
        }
    }

    /// A query's rows as those of columns, by their names.
    ///
    /// Errors: 42804.
    pub fn as_columns(&mut self, bound: Bound, columns: &[Column]) -> Result<Bound> {
        let mut values = Vec::with_capacity(columns.len());
        for column in columns {
            let given = bound
                .columns
                .iter()
                .position(|own| !own.hidden && own.name == column.name);
            let mut value = match given {
                Some(at) => self.column(&bound.columns, at),
                None => Expr::constant(Value::Null, column.ty.clone()),
            };
            self.assigned(&mut Target::of(column), &mut [&mut value])?;
            values.push(value);
        }
        let named = |column: &Column| ScopeColumn {
            modifier: column.modifier,
            ..ScopeColumn::new(column.name.clone(), column.ty.clone())
        };
        Ok(Bound {
            plan: Relation::Project {
                input: Box::new(bound.plan),
                columns: values,
            },
            columns: columns.iter().map(named).collect(),
        })
    }

    fn insert(&mut self, insert: &Insert) -> Result<Write> {
        let refused = insert.or.is_some()
            || insert.ignore
            || insert.partitioned.is_some()
            || !insert.after_columns.is_empty()
            || !insert.assignments.is_empty()
            || insert.output.is_some()
            || insert.replace_into
            || insert.priority.is_some()
            || insert.insert_alias.is_some()
            || insert.settings.is_some()
            || insert.format_clause.is_some()
            || insert.multi_table_insert_type.is_some();
        if refused {
            return unsupported("a clause of this INSERT");
        }
        let TableObject::TableName(name) = &insert.table else {
            return unsupported("INSERT into what is no table");
        };
        let written = self.written(name, (Verb::Insert, true))?;
        let table = written.table.clone();
        let is_listed = !insert.columns.is_empty();
        let taken = insert.columns.iter().map(subscripts::taken);
        let (names, steps): (Vec<ObjectName>, Vec<_>) = taken.collect::<Result<Vec<_>>>()?.into_iter().unzip();
        let mut targets = self.targets(&written, &names, insert_width(insert))?;
        let has_parts = steps.iter().any(|steps| !steps.is_empty());
        let whole = targets.clone();
        match has_parts {
            true => {
                for (target, steps) in targets.iter_mut().zip(&steps).filter(|(_, steps)| !steps.is_empty()) {
                    *target = target.of_type(part_type(&target.ty, steps)?);
                }
                check_parts(&whole, &steps)?;
                check_no_default(insert, &steps)?;
            }
            false => check_distinct(&targets)?,
        }
        let plan = match &insert.source {
            None => {
                targets.clear();
                super::from::one_row()
            }
            Some(query) => match values_of(query) {
                Some(rows) => self.inserted_values(&table, &mut targets, rows, is_listed)?,
                None => self.inserted_query(&mut targets, query, is_listed)?,
            },
        };
        let plan = match has_parts {
            true => {
                let all = whole.into_iter().zip(steps).collect();
                let (of_whole, plan) = self.with_parts(all, plan)?;
                targets = of_whole;
                plan
            }
            false => plan,
        };
        // OVERRIDING SYSTEM VALUE.
        check_identity(&table, &targets, &plan, insert.overwrite)?;
        let plan = match written.element() {
            Some(_) => plan,
            None => self.with_defaults(&table, &mut targets, plan)?,
        };
        let alias = insert.table_alias.as_ref().map(|alias| ident(&alias.alias));
        let columns = self.columns_of_written(&written, alias.as_deref().unwrap_or(written.name()));
        let scope = Scope { columns };
        let conflict = match &insert.on {
            None => None,
            Some(OnInsert::OnConflict(_)) if written.element().is_some() => {
                return unsupported("ON CONFLICT of the elements of an array");
            }
            Some(OnInsert::OnConflict(conflict)) => Some(Box::new(self.conflict(&written, conflict, &scope)?)),
            Some(_) => return unsupported("ON DUPLICATE KEY"),
        };
        let returning = self.returning(&written, insert.returning.as_deref(), scope)?;
        self.written_by(&written, plan, Action::Insert { targets, conflict }, returning)
    }

    /// What is done with the rows of `plan`, and what has to be true of those that come of it.
    pub(super) fn written_by(
        &mut self,
        written: &Written,
        plan: Plan,
        action: Action,
        returning: Option<Returning>,
    ) -> Result<Write> {
        let table = &written.table;
        // Of rows that go nothing has to be true.
        let (generated, checks, options) = match action {
            Action::Delete => (Vec::new(), Vec::new(), Vec::new()),
            _ => (self.generated(table)?, self.checks(table)?, written.options()?),
        };
        let tree = self.catalog.tree(table)?;
        check_elements(written)?;
        let guards = self.guards(written, &action, returning.is_some())?;
        Ok(Write {
            table: table.clone(),
            tree,
            plan,
            action,
            generated,
            checks,
            options,
            element: written.element(),
            views: written.views(),
            returning,
            guards,
        })
    }

    /// The columns that an insert names; where it names none the first ones, as many as there are values.
    pub(super) fn targets(
        &mut self,
        written: &Written,
        names: &[ObjectName],
        width: Option<usize>,
    ) -> Result<Vec<Target>> {
        if !names.is_empty() {
            return names
                .iter()
                .map(|name| self.target_of(written, name, Verb::Insert))
                .collect();
        }
        let own = written.names();
        let count = width.unwrap_or(own.len()).min(own.len());
        let names = own.into_iter().take(count).map(|name| {
            let quoted = sqlparser::ast::Ident::with_quote('"', name);
            ObjectName::from(vec![quoted])
        });
        names.map(|name| self.target_of(written, &name, Verb::Insert)).collect()
    }

    fn inserted_values(
        &mut self,
        table: &Table,
        targets: &mut Vec<Target>,
        rows: &[sqlparser::ast::Parens<Vec<Ast>>],
        is_listed: bool,
    ) -> Result<Plan> {
        let width = rows.first().map_or(0, |row| row.content.len());
        check_width(targets, width, is_listed)?;
        let scope = Scope::default();
        let mut bound: Vec<Vec<Expr>> = Vec::with_capacity(rows.len());
        let mut defaults: Vec<(usize, usize)> = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            if row.content.len() != width {
                return fail("42601", "VALUES lists must all be the same length");
            }
            let mut exprs = Vec::with_capacity(width);
            for (i, expr) in row.content.iter().enumerate() {
                exprs.push(match is_default(expr) {
                    true => {
                        defaults.push((at, i));
                        self.default_of(table, &targets[i])?
                    }
                    false => self.expr(expr, &scope)?,
                });
            }
            bound.push(exprs);
        }
        for (i, target) in targets.iter_mut().enumerate() {
            let mut column: Vec<&mut Expr> = bound.iter_mut().map(|row| &mut row[i]).collect();
            self.assigned(target, &mut column)?;
        }
        let has_subquery = bound.iter().flatten().any(|expr| {
            let mut found = false;
            expr.for_each_column(&mut |_| found = true);
            found
        });
        if !has_subquery {
            return Ok(Relation::Values { rows: bound, width });
        }
        let inputs = bound.into_iter().map(|mut row| {
            let input = self.flush(super::from::one_row(), &mut row);
            Relation::Project {
                input: Box::new(input),
                columns: row,
            }
        });
        Ok(Relation::Append {
            inputs: inputs.collect(),
        })
    }

    fn inserted_query(&mut self, targets: &mut Vec<Target>, query: &Query, is_listed: bool) -> Result<Plan> {
        let mut bound = self.query(query)?;
        check_width(targets, bound.columns.len(), is_listed)?;
        // Literals of unknown type are still to be read, where the query has them.
        let mut exprs: Vec<Expr> = (0..targets.len()).map(|i| self.column(&bound.columns, i)).collect();
        if let Relation::Project { input, columns } = &bound.plan {
            exprs.clone_from(columns);
            bound.plan = (**input).clone();
        }
        for (target, expr) in targets.iter_mut().zip(&mut exprs) {
            self.assigned(target, &mut [expr])?;
        }
        Ok(Relation::Project {
            input: Box::new(bound.plan),
            columns: exprs,
        })
    }

    /// Rows with the defaults of the columns that are not given.
    fn with_defaults(&mut self, table: &Table, targets: &mut Vec<Target>, plan: Plan) -> Result<Plan> {
        let mut columns: Vec<Expr> = targets
            .iter()
            .enumerate()
            .map(|(i, target)| Expr::column(i, target.column.clone(), target.ty.clone()))
            .collect();
        let missing = self.missing(table, targets)?;
        if missing.is_empty() {
            return Ok(plan);
        }
        columns.extend(missing);
        Ok(Relation::Project {
            input: Box::new(plan),
            columns,
        })
    }

    /// The defaults of the columns that are not given, which become targets.
    pub(super) fn missing(&mut self, table: &Table, targets: &mut Vec<Target>) -> Result<Vec<Expr>> {
        let given: Vec<String> = targets.iter().map(|target| target.column.clone()).collect();
        if given.iter().any(|name| name == "_doc") {
            return Ok(Vec::new());
        }
        let mut columns = Vec::new();
        for column in &table.columns {
            if !column.is_given() || given.contains(&column.name) {
                continue;
            }
            columns.push(self.default_value(table, column)?);
            targets.push(Target::of(column));
        }
        Ok(columns)
    }

    /// The columns of a table and what stands behind them, under a name.
    pub(super) fn table_scope(&mut self, table: &Arc<Table>, alias: Option<&str>) -> Scope {
        let mut columns = self.columns_of(table);
        for column in &mut columns {
            column.table = Some(alias.unwrap_or(&table.name).to_owned());
        }
        Scope { columns }
    }

    pub(super) fn assignments(
        &mut self,
        written: &Written,
        assignments: &[Assignment],
        scope: &Scope,
    ) -> Result<(Vec<Target>, Vec<Expr>)> {
        let table = &*written.table;
        let (mut targets, mut values): (Vec<Target>, Vec<Expr>) = (Vec::new(), Vec::new());
        // The columns of which parts are assigned, and the places of their values.
        let mut parts: Vec<(Vec<String>, usize)> = Vec::new();
        for assignment in assignments {
            let names = match &assignment.target {
                AssignmentTarget::ColumnName(name) => std::slice::from_ref(name),
                AssignmentTarget::Tuple(names) => names.as_slice(),
            };
            let is_one = matches!(assignment.target, AssignmentTarget::ColumnName(_));
            let taken = names.iter().map(subscripts::taken).collect::<Result<Vec<_>>>()?;
            let own = taken
                .iter()
                .map(|(name, _)| self.target_of(written, name, Verb::Update));
            let mut own: Vec<Target> = own.collect::<Result<_>>()?;
            let given: Vec<Option<Expr>> = match &assignment.value {
                value if is_one => vec![self.given(value, scope)?],
                Ast::Tuple(items) => items
                    .iter()
                    .map(|item| self.given(item, scope))
                    .collect::<Result<_>>()?,
                Ast::Subquery(query) => self.row_subquery(query, scope)?.into_iter().map(Some).collect(),
                Ast::Nested(inner) => vec![self.given(inner, scope)?],
                _ => {
                    return unsupported("a source of several columns that is neither a row nor a subquery");
                }
            };
            if given.len() != own.len() {
                return fail("42601", "number of columns does not match number of values");
            }
            let mut kept = Vec::with_capacity(own.len());
            for ((target, (_, steps)), value) in own.iter_mut().zip(&taken).zip(given) {
                if !steps.is_empty() {
                    let Some(value) = value else {
                        return fail("0A000", "cannot set an array element to DEFAULT");
                    };
                    if column_is_always(table, target) {
                        return unsupported("an assignment to a part of a generated column");
                    }
                    let found = parts.iter().find(|(at, _)| *at == target.path).map(|(_, at)| *at);
                    let old = match found {
                        Some(at) => values[at].clone(),
                        None => self.before(target, written.width(), scope)?,
                    };
                    let new = self.with_part((old, &target.column), steps, value, scope)?;
                    match found {
                        Some(at) => values[at] = new,
                        None => {
                            parts.push((target.path.clone(), values.len()));
                            *target = Target {
                                domain: target.domain.clone(),
                                ..target.of_type(new.ty())
                            };
                            values.push(new);
                            kept.push(target.clone());
                        }
                    }
                    continue;
                }
                let mut value = match value {
                    Some(value) => value,
                    None => self.default_of(table, target)?,
                };
                let column = table.column(&target.column);
                let is_default = matches!(value.node(), Node::Const(value, _) if value.identical(&NEXT_NUMBER));
                if let Some(column) = column.filter(|column| is_always(column) && !is_default) {
                    let name = &target.column;
                    let told = error("428C9", format!("column \"{name}\" can only be updated to DEFAULT"));
                    return Err(with(told, &[(Field::Detail, &why_always(column))]));
                }
                self.assigned(target, &mut [&mut value])?;
                values.push(value);
                kept.push(target.clone());
            }
            targets.append(&mut kept);
        }
        for (_, at) in &parts {
            if let Some(domain) = &targets[*at].domain {
                values[*at] = coerce(values[*at].clone(), domain, Context::Assignment)?;
            }
        }
        check_distinct(&targets).map_err(|e| {
            let column = e.message().split('"').nth(1).unwrap_or_default();
            error("42601", format!("multiple assignments to same column \"{column}\""))
        })?;
        Ok((targets, values))
    }

    /// A value, or `None` for the default.
    pub(super) fn given(&mut self, value: &Ast, scope: &Scope) -> Result<Option<Expr>> {
        match is_default(value) {
            true => Ok(None),
            false => self.expr(value, scope).map(Some),
        }
    }

    /// The columns of the only row of a subquery.
    fn row_subquery(&mut self, query: &Query, scope: &Scope) -> Result<Vec<Expr>> {
        let bound = self.within(scope, |binder| binder.query(query))?;
        let each = (0..bound.columns.len()).map(|i| {
            let column = self.column(&bound.columns, i);
            let ty = column.ty();
            let one = Relation::Project {
                input: Box::new(bound.plan.clone()),
                columns: vec![column],
            };
            self.subquery(one, ApplyKind::Scalar, ty)
        });
        Ok(each.collect())
    }

    fn update(&mut self, update: &Update) -> Result<Write> {
        if update.output.is_some() || update.or.is_some() || !update.order_by.is_empty() || update.limit.is_some() {
            return unsupported("a clause of this UPDATE");
        }
        let others = match &update.from {
            None => &[],
            Some(UpdateTableFromKind::AfterSet(from)) => from.as_slice(),
            Some(UpdateTableFromKind::BeforeSet(_)) => return unsupported("FROM before SET"),
        };
        let verb = (Verb::Update, policies::update_reads(update));
        let (written, mut plan, scope) = self.rows(&update.table, others, verb)?;
        let (targets, mut values) = self.assignments(&written, &update.assignments, &scope)?;
        plan = self.selected(plan, update.selection.as_ref(), &scope)?;
        plan = self.flush(plan, &mut values);
        let own = written.width();
        let mut columns = vec![self.column(&scope.columns, own - 1)];
        columns.extend(values);
        columns.extend((own..scope.columns.len()).map(|i| self.column(&scope.columns, i)));
        let returning = self.returning(&written, update.returning.as_deref(), scope)?;
        let plan = Relation::Project {
            input: Box::new(plan),
            columns,
        };
        self.written_by(&written, plan, Action::Update { targets }, returning)
    }

    fn delete(&mut self, delete: &Delete) -> Result<Write> {
        if delete.output.is_some() || !delete.tables.is_empty() || !delete.order_by.is_empty() || delete.limit.is_some()
        {
            return unsupported("a clause of this DELETE");
        }
        let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
        let [target] = from.as_slice() else {
            return fail("42601", "DELETE takes one table");
        };
        let others = delete.using.as_deref().unwrap_or_default();
        let verb = (Verb::Delete, policies::delete_reads(delete));
        let (written, mut plan, scope) = self.rows(target, others, verb)?;
        plan = self.selected(plan, delete.selection.as_ref(), &scope)?;
        let own = written.width();
        let columns = (own - 1..scope.columns.len()).map(|i| self.column(&scope.columns, i));
        let plan = Relation::Project {
            columns: columns.collect(),
            input: Box::new(plan),
        };
        let returning = self.returning(&written, delete.returning.as_deref(), scope)?;
        self.written_by(&written, plan, Action::Delete, returning)
    }

    /// The rows of the table that is written to beside those of other ones.
    fn rows(
        &mut self,
        target: &TableWithJoins,
        others: &[TableWithJoins],
        verb: (Verb, bool),
    ) -> Result<(Written, Plan, Scope)> {
        let TableFactor::Table { name, alias, .. } = &target.relation else {
            return unsupported("writing to what is no table");
        };
        if !target.joins.is_empty() {
            return fail("42601", "the table that is written to cannot be joined there");
        }
        let written = self.written(name, verb)?;
        let own = alias
            .as_ref()
            .map_or_else(|| written.name().to_owned(), |alias| ident(&alias.name));
        if others.iter().any(|other| is_called(other, &own)) {
            return fail("42712", format!("table name \"{own}\" specified more than once"));
        }
        check_names(others)?;
        let first = self.rows_of_written(&written, &own)?;
        let bound = self.beside(first, others)?;
        Ok((written, bound.plan, Scope { columns: bound.columns }))
    }

    fn selected(&mut self, plan: Plan, selection: Option<&Ast>, scope: &Scope) -> Result<Plan> {
        match selection {
            None => Ok(plan),
            Some(selection) => {
                let condition = self.condition(selection, scope, "WHERE")?;
                Ok(self.filter(plan, condition))
            }
        }
    }

    fn returning(
        &mut self,
        written: &Written,
        items: Option<&[SelectItem]>,
        mut scope: Scope,
    ) -> Result<Option<Returning>> {
        let Some(items) = items else { return Ok(None) };
        // The rows that were written come without the keys of their records.
        for column in scope.columns.iter_mut().take(written.width()) {
            if column.name == RECORD {
                RETURNED.clone_into(&mut column.name);
            }
        }
        let id = self.id();
        let width = scope.columns.len();
        let of_table = width - written.width() + written.table_width();
        let tables = self.tables.len();
        let (mut exprs, columns) = self.select_list(items, &scope, true)?;
        let reads = self.tables.len() > tables;
        let rows = Relation::Working { id, width: of_table };
        let rows = written.shown(rows, &exprs, width)?;
        let plan = self.flush(rows, &mut exprs);
        Ok(Some(Returning {
            id,
            plan: Relation::Project {
                input: Box::new(plan),
                columns: exprs,
            },
            columns,
            reads,
        }))
    }
}

fn column_is_always(table: &Table, target: &Target) -> bool {
    table.column(&target.column).is_some_and(is_always)
}

/// How many values each row of an insert has, if they are written down.
fn insert_width(insert: &Insert) -> Option<usize> {
    let rows = insert.source.as_ref().and_then(|query| values_of(query))?;
    rows.first().map(|row| row.content.len())
}

/// Whether an item of FROM has this name.
fn is_called(item: &TableWithJoins, own: &str) -> bool {
    let factors = std::iter::once(&item.relation).chain(item.joins.iter().map(|join| &join.relation));
    let mut names = factors.filter_map(|factor| match factor {
        TableFactor::Table { alias: Some(alias), .. } => Some(ident(&alias.name)),
        TableFactor::Table { name, alias: None, .. } => object_name(name).ok().map(|(_, name)| name),
        _ => None,
    });
    names.any(|name| name == own)
}

/// The rows of a query that is VALUES and nothing else.
pub(super) fn values_of(query: &Query) -> Option<&[sqlparser::ast::Parens<Vec<Ast>>]> {
    let plain = query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && query.locks.is_empty();
    match &*query.body {
        SetExpr::Values(values) if plain => Some(&values.rows),
        _ => None,
    }
}

pub(super) fn check_width(targets: &mut Vec<Target>, width: usize, is_listed: bool) -> Result<()> {
    if width > targets.len() {
        return fail("42601", "INSERT has more expressions than target columns");
    }
    if width < targets.len() && is_listed {
        return fail("42601", "INSERT has more target columns than expressions");
    }
    targets.truncate(width);
    Ok(())
}

/// No place is written twice.
pub(super) fn check_distinct(targets: &[Target]) -> Result<()> {
    for (i, target) in targets.iter().enumerate() {
        for other in &targets[..i] {
            let shorter = target.path.len().min(other.path.len());
            let beside = target.is_of_element == other.is_of_element;
            if beside && target.path[..shorter] == other.path[..shorter] {
                let column = &target.column;
                return Err(error("42701", format!("column \"{column}\" specified more than once")));
            }
        }
    }
    Ok(())
}
