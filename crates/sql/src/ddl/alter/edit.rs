//! From the text that declares a table and what ALTER TABLE says to the text that declares it anew, without a look at its rows.

use super::found::{Found, depends};
use crate::bind::alter::Source;
use crate::bind::declared::names;
use crate::bind::types::data_type;
use crate::bind::{exclusion, ident, storage};
use crate::ddl::policies;
use crate::error::{Field, error, fail, unsupported, with};
use crate::notices::pass_over;
use crate::parse;
use crate::parse::altered::{self, Altered};
use crate::types::Type;
use crate::types::names::quoted;
use nestor_database::write::sequence::Counting;
use nestor_model::Result;
use sqlparser::ast::{
    AlterColumnOperation, AlterTableOperation, ColumnDef, ColumnOption, ColumnOptionDef, ConstraintCharacteristics,
    CreateTable, DataType, DeferrableInitial, DropBehavior, Expr, GeneratedAs, Ident, IndexColumn, ObjectName,
    SequenceOptions, TableConstraint, Value,
};
use std::collections::BTreeSet;

/// A table that is declared anew.
pub(in crate::ddl) struct Edit {
    /// What declares it.
    pub(in crate::ddl) create: CreateTable,
    /// Where its columns come from.
    pub(in crate::ddl) sources: Vec<Source>,
    /// What depends on what goes may go with it.
    pub(in crate::ddl) cascades: bool,
}

/// A table while it is edited.
struct Editing<'t> {
    name: &'t str,
    edit: Edit,
}

/// The table `name`, which `create` declares, after `operations`.
///
/// Errors: 42701, 42703, 42704, 42P16, 55000 for what is there or is not; 0A000.
pub(in crate::ddl) fn edited(create: CreateTable, name: &str, operations: &[AlterTableOperation]) -> Result<Edit> {
    let sources = (0..create.columns.len()).map(Source::Kept).collect();
    let mut editing = Editing {
        name,
        edit: Edit {
            create,
            sources,
            cascades: false,
        },
    };
    operations.iter().try_for_each(|operation| editing.apply(operation))?;
    Ok(editing.edit)
}

/// A table without the columns at places, and without what depends on them.
///
/// Errors: those of dropping columns.
pub(in crate::ddl) fn without_columns(table: &Found, places: &[usize]) -> Result<Edit> {
    let operations = places.iter().map(|at| AlterTableOperation::DropColumn {
        has_column_keyword: true,
        column_names: vec![table.create.columns[*at].name.clone()],
        if_exists: false,
        drop_behavior: Some(DropBehavior::Cascade),
    });
    let operations: Vec<AlterTableOperation> = operations.collect();
    edited(table.create.clone(), &table.name, &operations)
}

/// The columns that a constraint is about: those of its key and of INCLUDE, and of a condition those that it names.
fn columns_of(constraint: &TableConstraint) -> Vec<String> {
    let with = |columns: &[IndexColumn], include: &[Ident]| {
        let mut out = names(columns).unwrap_or_default();
        out.extend(include.iter().map(ident));
        out
    };
    match constraint {
        TableConstraint::PrimaryKey(key) => with(&key.columns, &key.include),
        TableConstraint::Unique(key) => with(&key.columns, &key.include),
        TableConstraint::ForeignKey(key) => key.columns.iter().map(ident).collect(),
        TableConstraint::Check(check) => parse::columns(&check.expr.to_string()),
        TableConstraint::Exclude(own) => exclusion::columns(own),
        _ => Vec::new(),
    }
}

pub(in crate::ddl) fn name_of(constraint: &TableConstraint) -> Option<String> {
    let name = match constraint {
        TableConstraint::PrimaryKey(key) => &key.name,
        TableConstraint::Unique(key) => &key.name,
        TableConstraint::ForeignKey(key) => &key.name,
        TableConstraint::Check(check) => &check.name,
        TableConstraint::Exclude(own) => &own.name,
        _ => &None,
    };
    name.as_ref().map(ident)
}

fn option(option: ColumnOption) -> ColumnOptionDef {
    ColumnOptionDef { name: None, option }
}

impl Editing<'_> {
    fn apply(&mut self, operation: &AlterTableOperation) -> Result<()> {
        use AlterTableOperation as Op;
        match operation {
            Op::SetOptionsParens { options } => {
                let create = &mut self.edit.create;
                create.table_options = storage::with(&create.table_options, options)?;
                Ok(())
            }
            Op::AddColumn {
                if_not_exists,
                column_def,
                column_position: None,
                ..
            } => self.add_column(column_def, *if_not_exists),
            Op::DropColumn {
                column_names,
                if_exists,
                drop_behavior,
                ..
            } => {
                self.note(drop_behavior);
                column_names
                    .iter()
                    .try_for_each(|column| self.drop_column(&ident(column), *if_exists))
            }
            Op::AddConstraint {
                constraint: TableConstraint::Check(check),
                not_valid: true,
            } if check.enforced.is_none() => {
                let mut check = check.clone();
                check.enforced = Some(false);
                self.edit.create.constraints.push(TableConstraint::Check(check));
                Ok(())
            }
            Op::AddConstraint {
                constraint: TableConstraint::Check(check),
                ..
            } if check.enforced.is_some() => unsupported("a constraint that is ENFORCED or not"),
            Op::AddConstraint {
                constraint: TableConstraint::ForeignKey(key),
                ..
            } if key.characteristics.is_some_and(|said| said.enforced.is_some()) => {
                unsupported("a constraint that is ENFORCED or not")
            }
            Op::AddConstraint {
                constraint: TableConstraint::ForeignKey(key),
                not_valid: true,
            } => {
                let mut key = key.clone();
                let mut said = key.characteristics.unwrap_or(ConstraintCharacteristics {
                    deferrable: None,
                    initially: None,
                    enforced: None,
                });
                said.enforced = Some(false);
                key.characteristics = Some(said);
                self.edit.create.constraints.push(TableConstraint::ForeignKey(key));
                Ok(())
            }
            Op::SetLogged | Op::SetUnlogged => {
                self.edit.create.unlogged = *operation == Op::SetUnlogged;
                Ok(())
            }
            // What the options of the collection say, and not its declaration.
            own if policies::is_switch(own) => Ok(()),
            Op::AddConstraint {
                constraint: TableConstraint::Exclude(_),
                not_valid: true,
            } => fail("0A000", "EXCLUDE constraints cannot be marked NOT VALID"),
            Op::AddConstraint {
                constraint,
                not_valid: false,
            } => {
                self.edit.create.constraints.push(constraint.clone());
                Ok(())
            }
            // What stands there holds of all rows, unless it was added as one that need not.
            Op::ValidateConstraint { name } => {
                let mut constraints = self.edit.create.constraints.iter_mut();
                let name = ident(name);
                match constraints.find(|constraint| name_of(constraint).as_deref() == Some(&name)) {
                    Some(TableConstraint::Check(check)) => {
                        check.enforced = None;
                        Ok(())
                    }
                    Some(TableConstraint::ForeignKey(key)) => {
                        if let Some(said) = &mut key.characteristics {
                            said.enforced = None;
                        }
                        Ok(())
                    }
                    Some(_) => Ok(()),
                    None => {
                        let message = format!("constraint \"{name}\" of relation \"{}\" does not exist", self.name);
                        Err(error("42704", message))
                    }
                }
            }
            Op::DropConstraint {
                if_exists,
                name,
                drop_behavior,
            } => {
                self.note(drop_behavior);
                self.drop_constraint(&ident(name), *if_exists)
            }
            Op::AlterColumn {
                column_name,
                op: AlterColumnOperation::SetDefault { value },
            } if altered::timing_of(value)?.is_some() => {
                let (later, deferred) = altered::timing_of(value)?.unwrap_or_default();
                self.alter_constraint(&ident(column_name), (later, deferred))
            }
            Op::AlterColumn { column_name, op } => self.alter_column(&ident(column_name), op),
            _ => unsupported("this form of ALTER TABLE"),
        }
    }

    /// ALTER CONSTRAINT: a foreign key is looked at another time.
    ///
    /// Errors: 42704, 42809 for another constraint.
    fn alter_constraint(&mut self, name: &str, (later, deferred): (bool, bool)) -> Result<()> {
        let mut constraints = self.edit.create.constraints.iter_mut();
        match constraints.find(|constraint| name_of(constraint).as_deref() == Some(name)) {
            Some(TableConstraint::ForeignKey(key)) => {
                let enforced = key.characteristics.and_then(|said| said.enforced);
                let initially = match deferred {
                    true => DeferrableInitial::Deferred,
                    false => DeferrableInitial::Immediate,
                };
                key.characteristics = Some(ConstraintCharacteristics {
                    deferrable: Some(later),
                    initially: Some(initially),
                    enforced,
                });
                Ok(())
            }
            Some(_) => {
                let message = format!(
                    "constraint \"{name}\" of relation \"{}\" is not a foreign key constraint",
                    self.name
                );
                Err(error("42809", message))
            }
            None => {
                let message = format!("constraint \"{name}\" of relation \"{}\" does not exist", self.name);
                Err(error("42704", message))
            }
        }
    }

    fn note(&mut self, behaviour: &Option<DropBehavior>) {
        self.edit.cascades |= *behaviour == Some(DropBehavior::Cascade);
    }

    fn place(&self, column: &str) -> Option<usize> {
        let mut columns = self.edit.create.columns.iter();
        columns.position(|def| ident(&def.name) == column)
    }

    /// The place of a column.
    ///
    /// Errors: 42703.
    fn found(&self, column: &str) -> Result<usize> {
        match self.place(column) {
            Some(at) => Ok(at),
            None => fail(
                "42703",
                format!("column \"{column}\" of relation \"{}\" does not exist", self.name),
            ),
        }
    }

    fn add_column(&mut self, def: &ColumnDef, if_not_exists: bool) -> Result<()> {
        let column = ident(&def.name);
        if self.place(&column).is_some() {
            let message = format!("column \"{column}\" of relation \"{}\" already exists", self.name);
            return pass_over(if_not_exists, error("42701", message));
        }
        self.edit.create.columns.push(def.clone());
        self.edit.sources.push(Source::Added);
        Ok(())
    }

    /// Constraints that a column is in go with it; what else is computed of it has to be said to.
    fn drop_column(&mut self, column: &str, if_exists: bool) -> Result<()> {
        let at = match self.found(column) {
            Ok(at) => at,
            Err(missing) => return pass_over(if_exists, missing),
        };
        let is_of = |constraint: &TableConstraint| columns_of(constraint).iter().any(|own| own == column);
        while let Some(of) = self.edit.create.constraints.iter().position(is_of) {
            self.remove_constraint(of)?;
        }
        self.edit.create.columns.remove(at);
        self.edit.sources.remove(at);
        let computed: Vec<String> = self.computed_of(column);
        if let (Some(other), false) = (computed.first(), self.edit.cascades) {
            return Err(depends(
                &format!("column {column} of table {}", self.name),
                &format!(
                    "column {other} of table {} depends on column {column} of table {}",
                    self.name, self.name
                ),
            ));
        }
        computed.iter().try_for_each(|other| self.drop_column(other, true))
    }

    /// The generated columns that are computed of a column.
    fn computed_of(&self, column: &str) -> Vec<String> {
        let uses = |def: &&ColumnDef| {
            def.options.iter().any(|option| match &option.option {
                ColumnOption::Generated {
                    generation_expr: Some(expr),
                    ..
                } => parse::columns(&expr.to_string()).iter().any(|word| word == column),
                _ => false,
            })
        };
        let columns = self.edit.create.columns.iter().filter(uses);
        columns.map(|def| ident(&def.name)).collect()
    }

    fn drop_constraint(&mut self, name: &str, if_exists: bool) -> Result<()> {
        let constraints = &self.edit.create.constraints;
        let at = constraints
            .iter()
            .position(|constraint| name_of(constraint).as_deref() == Some(name));
        let Some(at) = at else {
            let message = format!("constraint \"{name}\" of relation \"{}\" does not exist", self.name);
            return pass_over(if_exists, error("42704", message));
        };
        self.remove_constraint(at)
    }

    fn remove_constraint(&mut self, at: usize) -> Result<()> {
        let gone = self.edit.create.constraints.remove(at);
        if let TableConstraint::PrimaryKey(key) = &gone {
            // Its columns still have no nulls.
            let columns: BTreeSet<String> = names(&key.columns)?.into_iter().collect();
            for def in &mut self.edit.create.columns {
                if columns.contains(&ident(&def.name)) {
                    set_not_null(def);
                }
            }
        }
        Ok(())
    }

    fn is_key(&self, column: &str) -> bool {
        let mut constraints = self.edit.create.constraints.iter();
        constraints.any(|constraint| {
            let TableConstraint::PrimaryKey(key) = constraint else {
                return false;
            };
            names(&key.columns).is_ok_and(|columns| columns.iter().any(|own| own == column))
        })
    }

    /// Refuses another type for a column that a computed one is made of: its values would have to be computed anew.
    ///
    /// Errors: 0A000.
    fn check_uses(&self, column: &str) -> Result<()> {
        let uses = |def: &&ColumnDef| {
            let mut options = def.options.iter().map(|option| &option.option);
            options.any(|option| match option {
                ColumnOption::Generated {
                    generation_expr: Some(expr),
                    ..
                } => parse::words(&expr.to_string()).iter().any(|word| word == column),
                _ => false,
            })
        };
        let Some(user) = self.edit.create.columns.iter().find(uses) else {
            return Ok(());
        };
        let error = error("0A000", "cannot alter type of a column used by a generated column");
        let detail = format!(
            "Column \"{column}\" is used by generated column \"{}\".",
            ident(&user.name)
        );
        Err(crate::error::with(error, &[(crate::error::Field::Detail, &detail)]))
    }

    fn alter_column(&mut self, column: &str, operation: &AlterColumnOperation) -> Result<()> {
        use AlterColumnOperation as Op;
        let at = self.found(column)?;
        let (is_key, table) = (self.is_key(column), self.name);
        if let Op::SetDataType { .. } = operation {
            self.check_uses(column)?;
        }
        let def = &mut self.edit.create.columns[at];
        let is = |wanted: fn(&ColumnOption) -> bool| def.options.iter().any(|option| wanted(&option.option));
        let is_computed = is(|option| {
            matches!(
                option,
                ColumnOption::Generated {
                    generation_expr: Some(_),
                    ..
                }
            )
        });
        let counts = is(|option| {
            matches!(
                option,
                ColumnOption::Generated {
                    generation_expr: None,
                    ..
                }
            )
        });
        let is_null = is(|option| matches!(option, ColumnOption::NotNull));
        let is_serial = is_serial(&def.data_type);
        let lacks = |what: &str| {
            error(
                "55000",
                format!("column \"{column}\" of relation \"{table}\" is not {what}"),
            )
        };
        let altered = match operation {
            Op::SetDefault { value } => Altered::of(value),
            _ => None,
        };
        match altered {
            Some(Altered::DropIdentity { if_exists }) => {
                if !counts {
                    return pass_over(if_exists, lacks("an identity column"));
                }
                def.options.retain(|option| !is_generated(&option.option));
                set_not_null(def);
                return Ok(());
            }
            Some(Altered::DropExpression { if_exists }) => {
                if !is_computed {
                    return pass_over(if_exists, lacks("a stored generated column"));
                }
                def.options.retain(|option| !is_generated(&option.option));
                return Ok(());
            }
            Some(Altered::SetGenerated { always }) => {
                let mut options = def.options.iter_mut().map(|option| &mut option.option);
                let kind = options.find_map(|option| match option {
                    ColumnOption::Generated {
                        generated_as,
                        generation_expr: None,
                        ..
                    } => Some(generated_as),
                    _ => None,
                });
                let Some(kind) = kind else {
                    return Err(lacks("an identity column"));
                };
                *kind = if always {
                    GeneratedAs::Always
                } else {
                    GeneratedAs::ByDefault
                };
                return Ok(());
            }
            None => {}
        }
        match operation {
            Op::SetNotNull => set_not_null(def),
            Op::DropNotNull if is_key => {
                return fail("42P16", format!("column \"{column}\" is in a primary key"));
            }
            Op::DropNotNull if counts => {
                return fail(
                    "42601",
                    format!("column \"{column}\" of relation \"{table}\" is an identity column"),
                );
            }
            Op::DropNotNull => def
                .options
                .retain(|option| !matches!(option.option, ColumnOption::NotNull)),
            Op::SetDefault { .. } | Op::DropDefault if is_computed => {
                return fail(
                    "42601",
                    format!("column \"{column}\" of relation \"{table}\" is a generated column"),
                );
            }
            Op::SetDefault { .. } | Op::DropDefault if counts => {
                return fail(
                    "42601",
                    format!("column \"{column}\" of relation \"{table}\" is an identity column"),
                );
            }
            Op::SetDefault { value } => match altered::collation_of(value) {
                Some(collation) => def.options.push(option(ColumnOption::Collation(collation))),
                None => {
                    uncount(def);
                    set_default(def, Some(value));
                }
            },
            Op::DropDefault => {
                uncount(def);
                set_default(def, None);
            }
            Op::SetDataType { data_type, using, .. } => {
                def.options
                    .retain(|option| !matches!(option.option, ColumnOption::Collation(_)));
                def.data_type = match is_serial {
                    true => serial_of(data_type)?,
                    false => data_type.clone(),
                };
                let source = &mut self.edit.sources[at];
                match source.before() {
                    Some(_) if is_computed && using.is_some() => {
                        let refused = error("42611", "cannot specify USING when altering type of generated column");
                        let detail = format!("Column \"{column}\" is a generated column.");
                        return Err(with(refused, &[(Field::Detail, &detail)]));
                    }
                    Some(before) => *source = Source::Turned(before, using.clone().map(Box::new)),
                    None => return unsupported("another type for a column that is added"),
                }
            }
            Op::AddGenerated {
                generated_as,
                sequence_options,
            } => {
                if counts || is_serial {
                    let what = if counts {
                        "an identity column"
                    } else {
                        "a column with a default value"
                    };
                    return fail(
                        "55000",
                        format!("column \"{column}\" of relation \"{table}\" is already {what}"),
                    );
                }
                if !is_null && !is_key {
                    return fail(
                        "55000",
                        format!(
                            "column \"{column}\" of relation \"{table}\" must be declared NOT NULL before identity can be added"
                        ),
                    );
                }
                def.options.push(option(ColumnOption::Generated {
                    generated_as: generated_as.unwrap_or(GeneratedAs::Always),
                    sequence_options: sequence_options.clone(),
                    generation_expr: None,
                    generation_expr_mode: None,
                    generated_keyword: true,
                }));
            }
        }
        Ok(())
    }
}

pub(in crate::ddl) fn set_not_null(def: &mut ColumnDef) {
    def.options
        .retain(|option| !matches!(option.option, ColumnOption::NotNull | ColumnOption::Null));
    def.options.push(option(ColumnOption::NotNull));
}

fn set_default(def: &mut ColumnDef, value: Option<&Expr>) {
    def.options
        .retain(|option| !matches!(option.option, ColumnOption::Default(_)));
    if let Some(value) = value {
        def.options.push(option(ColumnOption::Default(value.clone())));
    }
}

/// The type of the numbers of a serial column, by its name.
fn serial(ty: &DataType) -> Option<DataType> {
    let DataType::Custom(name, _) = ty else { return None };
    Some(match name.to_string().to_lowercase().as_str() {
        "serial" | "serial4" => DataType::Integer(None),
        "bigserial" | "serial8" => DataType::BigInt(None),
        "smallserial" | "serial2" => DataType::SmallInt(None),
        _ => return None,
    })
}

/// The serial type of numbers of a type: the column counts on.
///
/// Errors: 0A000 for what is no whole number.
fn serial_of(ty: &DataType) -> Result<DataType> {
    let name = match data_type(ty)?.0 {
        Type::Int2 => "smallserial",
        Type::Int4 => "serial",
        Type::Int8 => "bigserial",
        _ => return unsupported("a type for a serial column that does not count"),
    };
    Ok(DataType::Custom(ObjectName::from(vec![Ident::new(name)]), Vec::new()))
}

/// Whether a column counts, or is computed.
fn is_generated(option: &ColumnOption) -> bool {
    matches!(option, ColumnOption::Generated { .. })
}

fn is_serial(ty: &DataType) -> bool {
    serial(ty).is_some()
}

/// Makes a serial column one of plain numbers.
pub(in crate::ddl) fn uncount(def: &mut ColumnDef) {
    if let Some(ty) = serial(&def.data_type) {
        def.data_type = ty;
        set_not_null(def);
    }
}

/// Has an identity column count in another way.
///
/// Errors: 0A000 for one that is serial.
pub(super) fn with_counting(create: &CreateTable, column: &str, counting: &Counting) -> Result<CreateTable> {
    let mut out = create.clone();
    let def = out.columns.iter_mut().find(|def| ident(&def.name) == column);
    let options = def.into_iter().flat_map(|def| &mut def.options);
    let found = options
        .filter_map(|option| match &mut option.option {
            ColumnOption::Generated {
                sequence_options,
                generation_expr: None,
                ..
            } => Some(sequence_options),
            _ => None,
        })
        .next();
    let Some(found) = found else {
        return unsupported("to change how a serial column counts");
    };
    let number = |n: i64| Expr::value(Value::Number(n.to_string(), false));
    *found = Some(vec![
        SequenceOptions::IncrementBy(number(counting.increment), true),
        SequenceOptions::MinValue(Some(number(counting.min))),
        SequenceOptions::MaxValue(Some(number(counting.max))),
        SequenceOptions::StartWith(number(counting.start), true),
        SequenceOptions::Cycle(!counting.cycle),
    ]);
    Ok(out)
}

/// Has a serial column take its numbers by its default, of a sequence in a schema.
///
/// Errors: 42601 for names that no text has.
pub(super) fn with_sequence_asked(
    create: &CreateTable,
    column: &str,
    (schema, sequence): (&str, &str),
) -> Result<CreateTable> {
    let mut out = create.clone();
    let name = format!("{}.{}", quoted(schema), quoted(sequence)).replace('\'', "''");
    let default = parse::expression(&format!("nextval('{name}')"))?;
    for def in out.columns.iter_mut().filter(|def| ident(&def.name) == column) {
        uncount(def);
        set_default(def, Some(&default));
    }
    Ok(out)
}

/// Gives a column another name, wherever its table names it.
///
/// Errors: 42701, 42703; 0A000 for an expression that cannot be written anew.
pub(in crate::ddl) fn with_column_renamed(
    create: &CreateTable,
    (table, collection): (&str, &str),
    from: &str,
    to: &Ident,
) -> Result<CreateTable> {
    let mut out = create.clone();
    let new = ident(to);
    if out.columns.iter().any(|def| ident(&def.name) == new) {
        return fail(
            "42701",
            format!("column \"{new}\" of relation \"{table}\" already exists"),
        );
    }
    let Some(def) = out.columns.iter_mut().find(|def| ident(&def.name) == from) else {
        return fail("42703", format!("column \"{from}\" does not exist"));
    };
    let quoted = Ident::with_quote('"', new.as_str());
    def.name = quoted.clone();
    let anew = |expr: &Expr| parse::expression(&parse::with_column_renamed(&expr.to_string(), from, &new));
    if let Some(by) = &mut out.partition_by {
        **by = anew(by)?;
    }
    for option in out.columns.iter_mut().flat_map(|def| &mut def.options) {
        if let ColumnOption::Generated {
            generation_expr: Some(expr),
            ..
        } = &mut option.option
        {
            *expr = anew(expr)?;
        }
    }
    let renamed = |name: &mut Ident| {
        if ident(name) == from {
            *name = quoted.clone();
        }
    };
    for constraint in &mut out.constraints {
        let (parts, include) = match constraint {
            TableConstraint::PrimaryKey(key) => (&mut key.columns, &mut key.include),
            TableConstraint::Unique(key) => (&mut key.columns, &mut key.include),
            TableConstraint::ForeignKey(key) => {
                key.columns.iter_mut().for_each(renamed);
                if crate::bind::object_name(&key.foreign_table).is_ok_and(|(_, own)| own == collection) {
                    key.referred_columns.iter_mut().for_each(renamed);
                }
                continue;
            }
            TableConstraint::Check(check) => {
                *check.expr = anew(&check.expr)?;
                continue;
            }
            TableConstraint::Exclude(own) => {
                for element in &mut own.elements {
                    let expr = &mut element.column.column.expr;
                    *expr = anew(expr)?;
                }
                if let Some(predicate) = &mut own.where_clause {
                    **predicate = anew(predicate)?;
                }
                own.include.iter_mut().for_each(renamed);
                continue;
            }
            _ => continue,
        };
        include.iter_mut().for_each(renamed);
        for part in parts {
            if let Expr::Identifier(name) = &mut part.column.expr {
                renamed(name);
            }
        }
    }
    Ok(out)
}

/// Gives a constraint another name.
///
/// Errors: 42704; 42710 for a name that another one has.
pub(in crate::ddl) fn with_constraint_renamed(
    create: &CreateTable,
    table: &str,
    from: &str,
    to: &Ident,
) -> Result<CreateTable> {
    let mut out = create.clone();
    let new = ident(to);
    let named = |constraint: &&mut TableConstraint| name_of(constraint).as_deref() == Some(from);
    if out.constraints.iter().any(|own| name_of(own).as_deref() == Some(&*new)) {
        return fail(
            "42710",
            format!("constraint \"{new}\" for relation \"{table}\" already exists"),
        );
    }
    let Some(constraint) = out.constraints.iter_mut().find(named) else {
        return fail(
            "42704",
            format!("constraint \"{from}\" for table \"{table}\" does not exist"),
        );
    };
    let name = Some(Ident::with_quote('"', new));
    match constraint {
        TableConstraint::PrimaryKey(key) => key.name = name,
        TableConstraint::Unique(key) => key.name = name,
        TableConstraint::ForeignKey(key) => key.name = name,
        TableConstraint::Check(check) => check.name = name,
        TableConstraint::Exclude(own) => own.name = name,
        _ => {}
    }
    Ok(out)
}
