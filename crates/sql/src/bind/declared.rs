//! Tables whose columns were declared.
//!
//! A declared table is a collection whose validator ([`entry`]) has the text of its CREATE TABLE: types and NOT NULL hold for whoever writes, and the text says what JSON Schema cannot, such as the length of a
//! `varchar`, defaults and CHECK, which hold for SQL.
//!
//! A primary key of one column is the `_id` of documents; other columns are the fields of their names.

use super::entry::{self, Object};
use super::exclusion;
use super::ident;
use super::numbers;
use super::storage;
use super::types::{check_column, data_type};
use crate::catalog::exclusion::Exclusion;
use crate::catalog::partition::{Division, PartitionOf};
use crate::catalog::schemas::PUBLIC;
use crate::catalog::{
    Check, Column, Foreign, Identity, IdentityKind, Kind, Later, Referential, RowSecurity, Table, Timing,
};
use crate::error::{fail, unsupported};
use crate::parse::trigger::Trigger;
use crate::types::names::made;
use crate::types::{Type, collation};
use nestor_model::{Document, Namespace, Result, Value};
use nestor_storage::Collection;
use sqlparser::ast::{
    ColumnDef, ColumnOption, ConstraintCharacteristics, ConstraintReferenceMatchKind, CreateTable, DataType,
    DeferrableInitial, Expr, ForeignKeyConstraint, GeneratedAs, GeneratedExpressionMode, Ident, IndexColumn,
    NullsDistinctOption, ObjectName, ReferentialAction, Statement, TableConstraint,
};
use std::sync::Arc;

/// Columns whose values no two rows share, nulls aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unique {
    /// The name of the constraint and of its index.
    pub name: String,
    /// The paths.
    pub paths: Vec<String>,
    /// When it is looked at.
    pub timing: Timing,
    /// Nulls are values like others.
    pub nulls_equal: bool,
    /// The paths of columns that INCLUDE names.
    pub include: Vec<String>,
}

/// A key while its table is read: as [`Unique`], by the names of columns, and with the name of its constraint if it was given one.
struct Key {
    name: Option<String>,
    columns: Vec<String>,
    timing: Timing,
    nulls_equal: bool,
    include: Vec<String>,
}

impl Key {
    /// What a constraint of this form is called by: its columns, INCLUDE's too.
    fn called(&self) -> String {
        let all: Vec<&str> = self.columns.iter().chain(&self.include).map(String::as_str).collect();
        distinct(&all).join("_")
    }
}

/// The names of columns as those of indexes have them: one that is there twice gets a number.
pub fn distinct(columns: &[&str]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for column in columns {
        let mut all = std::iter::once((*column).to_owned()).chain((1..).map(|n| format!("{column}{n}")));
        let free = all.find(|name| !out.contains(name));
        out.extend(free);
    }
    out
}

/// What was declared of a table.
#[derive(Clone, Debug, Default)]
pub struct Declared {
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its checks.
    pub checks: Vec<Check>,
    /// Its keys, but `_id`.
    pub unique: Vec<Unique>,
    /// The columns of its primary key.
    pub key: Vec<String>,
    /// The name of the primary key.
    pub key_name: String,
    /// When the primary key is looked at.
    pub key_timing: Timing,
    /// The columns that INCLUDE of the primary key names.
    pub key_include: Vec<String>,
    /// Keys of other tables.
    pub foreign: Vec<Foreign>,
    /// Which of its rows exclude each other.
    pub exclusions: Vec<Exclusion>,
    /// Storage parameters, as `name=value`.
    pub storage: Vec<String>,
    /// What was said of policies.
    pub row_security: Arc<RowSecurity>,
    /// Nobody looks at its foreign keys, and at those of rows that refer to it.
    pub keys_are_off: bool,
    /// It was declared UNLOGGED.
    pub is_unlogged: bool,
    /// Its triggers, by name.
    pub triggers: Arc<[Trigger]>,
    /// How it divides its rows.
    pub division: Option<Arc<Division>>,
    /// Whose partition it is.
    pub partition_of: Option<Arc<PartitionOf>>,
    /// What its documents have to match beside the types of columns: the bound of a partition, as far as a filter says it.
    pub guard: Document,
}

/// Names of constraints, which no two of a table share.
#[derive(Default)]
struct Names(Vec<String>);

impl Names {
    /// Takes a name that was given.
    ///
    /// Errors: 42710.
    fn give(&mut self, name: &str, table: &str) -> Result<()> {
        if self.0.iter().any(|own| own == name) {
            let message = format!("constraint \"{name}\" for relation \"{table}\" already exists");
            return fail("42710", message);
        }
        self.0.push(name.to_owned());
        Ok(())
    }

    /// The name that was given, or else one that is made of those of the table and of columns.
    fn choose(&mut self, given: Option<String>, (table, columns, label): (&str, Option<&str>, &str)) -> String {
        if let Some(given) = given {
            return given;
        }
        let free = made(table, columns, label).find(|name| !self.0.contains(name));
        let free = free.unwrap_or_default();
        self.0.push(free.clone());
        free
    }
}

impl Declared {
    /// What a collection declares, if it is a declared table.
    pub fn of_collection(collection: &Collection) -> Option<Arc<Self>> {
        match entry::of(collection)? {
            Object::Table(declared, _) => Some(declared.clone()),
            Object::Sequence(..)
            | Object::Schema
            | Object::Type(_)
            | Object::Materialized(_)
            | Object::Function(_)
            | Object::Assertion(_) => None,
        }
    }

    /// The names of its constraints.
    pub fn constraint_names(&self) -> Vec<String> {
        let key = (!self.key.is_empty()).then(|| self.key_name.clone());
        let mut out: Vec<String> = key.into_iter().collect();
        out.extend(self.unique.iter().map(|unique| unique.name.clone()));
        out.extend(self.checks.iter().map(|check| check.name.clone()));
        out.extend(self.foreign.iter().map(|foreign| foreign.name.clone()));
        out.extend(self.exclusions.iter().map(|own| own.name.clone()));
        out
    }

    /// Whether the primary key is the `_id` of documents.
    pub fn has_id_key(&self) -> bool {
        let is_id = |column: &Column| self.key.contains(&column.name) && column.path == "_id";
        self.key.len() == 1 && self.columns.iter().any(is_id)
    }

    /// Whether an index of this name keeps a constraint.
    pub fn keeps_by_index(&self, index: &str) -> bool {
        self.unique.iter().any(|own| own.name == index) || self.exclusions.iter().any(|own| own.name == index)
    }

    /// The table that is declared for a namespace, by its schema, if it has one, and its name there.
    pub fn table(&self, ns: &Namespace, (schema, name): (Option<&str>, &str)) -> Table {
        Table {
            schema: schema.unwrap_or(PUBLIC).to_owned(),
            declared: true,
            checks: self.checks.clone(),
            key: self.key.clone(),
            key_name: self.key_name.clone(),
            foreign: self.foreign.clone(),
            later: self.later(),
            exclusions: self.exclusions.clone(),
            storage: self.storage.clone(),
            row_security: self.row_security.clone(),
            keys_are_off: self.keys_are_off,
            is_unlogged: self.is_unlogged,
            triggers: self.triggers.clone(),
            division: self.division.clone(),
            partition_of: self.partition_of.clone(),
            ..Table::new(name, self.columns.clone(), Kind::Collection(ns.clone()))
        }
    }

    /// The keys that are looked at when rows have been written.
    fn later(&self) -> Vec<Later> {
        let later = self.unique.iter().filter(|unique| unique.timing != Timing::AtOnce);
        let name = |path: &String| {
            let column = self.columns.iter().find(|column| column.path == *path);
            column.map_or_else(|| path.clone(), |column| column.name.clone())
        };
        let each = later.map(|unique| Later {
            name: unique.name.clone(),
            columns: unique.paths.iter().map(name).collect(),
            timing: unique.timing,
            nulls_equal: unique.nulls_equal,
        });
        each.collect()
    }

    /// What a CREATE TABLE for the table `name` declares.
    ///
    /// Errors: 42701, 42703, 42P16, 42704; 0A000 for what is not supported.
    pub fn of(create: &CreateTable, name: &str) -> Result<Self> {
        let mut out = Self {
            storage: storage::parameters(&create.table_options)?,
            row_security: Arc::new(storage::row_security(&create.table_options)?),
            keys_are_off: storage::keys_are_off(&create.table_options)?,
            is_unlogged: create.unlogged,
            division: create
                .partition_by
                .as_deref()
                .map(Division::of)
                .transpose()?
                .map(Arc::new),
            partition_of: partition_of(create)?,
            ..Self::default()
        };
        let mut keys: Vec<Vec<String>> = Vec::new();
        let mut key_name: Option<String> = None;
        let mut unique: Vec<Key> = Vec::new();
        let mut checks: Vec<(Option<String>, Option<String>, String, bool)> = Vec::new();
        let mut foreign: Vec<(Option<String>, Vec<String>, ForeignKeyConstraint)> = Vec::new();
        for def in &create.columns {
            let column = ident(&def.name);
            if out.columns.iter().any(|own| own.name == column) {
                return fail("42701", format!("column \"{column}\" specified more than once"));
            }
            if column.is_empty() || column.starts_with('$') || column.contains('.') || column == "_doc" {
                return unsupported(format!("a column of the name \"{column}\""));
            }
            out.columns.push(declared(def)?);
            for option in &def.options {
                let constraint = option.name.as_ref().map(ident);
                match &option.option {
                    ColumnOption::PrimaryKey(key) => {
                        out.key_timing = timing(key.characteristics)?;
                        key_name = constraint;
                        keys.push(vec![column.clone()]);
                    }
                    ColumnOption::Unique(key) => {
                        unique.push(Key {
                            name: constraint,
                            columns: vec![column.clone()],
                            timing: timing(key.characteristics)?,
                            nulls_equal: key.nulls_distinct == NullsDistinctOption::NotDistinct,
                            include: Vec::new(),
                        });
                    }
                    ColumnOption::Check(check) if check.enforced != Some(false) => {
                        checks.push((constraint, Some(column.clone()), check.expr.to_string(), true));
                    }
                    ColumnOption::ForeignKey(key) => foreign.push((constraint, vec![column.clone()], key.clone())),
                    ColumnOption::Check(_) => {
                        return unsupported("a constraint of this form");
                    }
                    _ => {}
                }
            }
        }
        for constraint in &create.constraints {
            match constraint {
                TableConstraint::PrimaryKey(key) => {
                    out.key_timing = timing(key.characteristics)?;
                    key_name = key.name.as_ref().map(ident);
                    out.key_include = key.include.iter().map(ident).collect();
                    keys.push(names(&key.columns)?);
                }
                TableConstraint::Unique(key) => unique.push(Key {
                    name: key.name.as_ref().map(ident),
                    columns: names(&key.columns)?,
                    timing: timing(key.characteristics)?,
                    nulls_equal: key.nulls_distinct == NullsDistinctOption::NotDistinct,
                    include: key.include.iter().map(ident).collect(),
                }),
                // One that is NOT VALID is kept as NOT ENFORCED, which nobody may say.
                TableConstraint::Check(check) => {
                    let is_valid = check.enforced != Some(false);
                    checks.push((check.name.as_ref().map(ident), None, check.expr.to_string(), is_valid));
                }
                TableConstraint::ForeignKey(key) => {
                    let columns = key.columns.iter().map(ident).collect();
                    foreign.push((key.name.as_ref().map(ident), columns, key.clone()));
                }
                TableConstraint::Exclude(_) if out.division.is_some() => {
                    return fail("0A000", "exclusion constraints are not supported on partitioned tables");
                }
                TableConstraint::Exclude(said) => out.exclusions.push(exclusion::of(said)?),
                _ => return unsupported("a constraint of this form"),
            }
        }
        if keys.len() > 1 {
            return fail(
                "42P16",
                format!("multiple primary keys for table \"{name}\" are not allowed"),
            );
        }
        let known = |column: &String| match out.columns.iter().any(|own| own.name == *column) {
            true => Ok(()),
            false => fail("42703", format!("column \"{column}\" named in key does not exist")),
        };
        keys.iter().flatten().chain(&out.key_include).try_for_each(known)?;
        let of_unique = unique.iter().flat_map(|key| key.columns.iter().chain(&key.include));
        of_unique.into_iter().try_for_each(known)?;
        let of_exclusions = out.exclusions.iter().flat_map(|own| {
            let columns = own.elements.iter().filter_map(|element| element.column.as_ref());
            columns.chain(&own.include)
        });
        of_exclusions.into_iter().try_for_each(known)?;
        foreign.iter().flat_map(|(_, columns, _)| columns).try_for_each(known)?;
        let mut given = Names::default();
        let all = [&key_name].into_iter().chain(unique.iter().map(|key| &key.name));
        let all = all.chain(checks.iter().map(|(constraint, ..)| constraint));
        let all = all.chain(foreign.iter().map(|(constraint, ..)| constraint));
        all.flatten().try_for_each(|constraint| given.give(constraint, name))?;
        let mut excluding = out.exclusions.iter().filter(|own| !own.name.is_empty());
        excluding.try_for_each(|own| given.give(&own.name, name))?;
        for (constraint, columns, key) in foreign {
            let constraint = given.choose(constraint, (name, Some(&columns.join("_")), "fkey"));
            out.foreign.push(foreign_key(constraint, columns, &key)?);
        }
        out.key_name = given.choose(key_name, (name, None, "pkey"));
        if let Some(key) = keys.pop() {
            out.key.clone_from(&key);
            for column in out.columns.iter_mut().filter(|column| key.contains(&column.name)) {
                (column.is_key, column.not_null) = (true, true);
            }
            match key.as_slice() {
                // An `_id` is looked at when a document is written, and is another one where letters are small.
                [only] if out.key_timing == Timing::AtOnce && !has_citext(&out.columns, std::slice::from_ref(only)) => {
                    for column in out.columns.iter_mut().filter(|column| column.name == *only) {
                        "_id".clone_into(&mut column.path);
                    }
                }
                _ => {
                    let key = Key {
                        name: Some(out.key_name.clone()),
                        columns: key,
                        timing: out.key_timing,
                        nulls_equal: false,
                        include: out.key_include.clone(),
                    };
                    unique.insert(0, key);
                }
            }
        }
        // Documents have one `_id`.
        let is_apart = |column: &Column| {
            let is_key = column.is_key && out.key_timing == Timing::AtOnce;
            column.name == "_id" && (!is_key || column.ty.clone().plain() == Type::Citext)
        };
        if out.columns.iter().any(is_apart) {
            return unsupported("a column \"_id\" that is not the primary key, or one that is looked at later");
        }
        for key in unique {
            let called = key.called();
            let constraint = given.choose(key.name, (name, Some(&called), "key"));
            let path = |column: &String| {
                let found = out.columns.iter().find(|own| own.name == *column);
                found.map_or_else(|| column.clone(), |column| column.path.clone())
            };
            out.unique.push(Unique {
                name: constraint,
                paths: key.columns.iter().map(path).collect(),
                timing: key.timing,
                nulls_equal: key.nulls_equal,
                include: key.include.iter().map(path).collect(),
            });
        }
        for own in out.exclusions.iter_mut().filter(|own| own.name.is_empty()) {
            let called = distinct(&own.called()).join("_");
            own.name = given.choose(None, (name, Some(&called), "excl"));
        }
        for (constraint, column, text, is_valid) in checks {
            // The name tells the column, if it is about one.
            let used = crate::parse::columns(&text);
            let mut used = out.columns.iter().filter(|column| used.contains(&column.name));
            let column = column.or_else(|| match (used.next(), used.next()) {
                (Some(only), None) => Some(only.name.clone()),
                _ => None,
            });
            let own = given.choose(constraint, (name, column.as_deref(), "check"));
            out.checks.push(Check {
                name: own,
                text,
                is_valid,
            });
        }
        Ok(out)
    }

    /// A CREATE TABLE that declares the same, with every constraint behind the columns and by its name: names that were made of that of
    /// the table stay when it gets another one.
    pub fn named(&self, create: &CreateTable) -> CreateTable {
        let mut out = create.clone();
        for def in &mut out.columns {
            def.options.retain(|option| {
                !matches!(
                    option.option,
                    ColumnOption::PrimaryKey(_)
                        | ColumnOption::Unique(_)
                        | ColumnOption::Check(_)
                        | ColumnOption::ForeignKey(_)
                )
            });
        }
        let quote = |name: &str| Ident::with_quote('"', name).to_string();
        let list = |names: &[String]| names.iter().map(|name| quote(name)).collect::<Vec<_>>().join(", ");
        let named = |path: &String| {
            let column = self.columns.iter().find(|column| column.path == *path);
            column.map_or_else(|| path.clone(), |column| column.name.clone())
        };
        let including = |names: &[String]| match names.is_empty() {
            true => String::new(),
            false => format!(" INCLUDE ({})", list(names)),
        };
        let mut texts = Vec::new();
        if !self.key.is_empty() {
            texts.push(format!(
                "CONSTRAINT {} PRIMARY KEY ({}){}{}",
                quote(&self.key_name),
                list(&self.key),
                including(&self.key_include),
                self.key_timing.words()
            ));
        }
        let is_key = |unique: &&Unique| !self.key.is_empty() && unique.name == self.key_name;
        let key = self.unique.iter().position(|unique| is_key(&unique));
        for (at, unique) in self.unique.iter().enumerate() {
            if Some(at) == key {
                continue;
            }
            let names: Vec<String> = unique.paths.iter().map(named).collect();
            let include: Vec<String> = unique.include.iter().map(named).collect();
            texts.push(format!(
                "CONSTRAINT {} UNIQUE{} ({}){}{}",
                quote(&unique.name),
                if unique.nulls_equal { " NULLS NOT DISTINCT" } else { "" },
                list(&names),
                including(&include),
                unique.timing.words()
            ));
        }
        for check in &self.checks {
            let enforced = if check.is_valid { "" } else { " NOT ENFORCED" };
            texts.push(format!(
                "CONSTRAINT {} CHECK ({}){enforced}",
                quote(&check.name),
                check.text
            ));
        }
        for foreign in &self.foreign {
            let referred = match foreign.referred.is_empty() {
                true => String::new(),
                false => format!(" ({})", list(&foreign.referred)),
            };
            let mut text = format!(
                "CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {}{referred}",
                quote(&foreign.name),
                list(&foreign.columns),
                quote(&foreign.table)
            );
            text.push_str(if foreign.is_full { " MATCH FULL" } else { "" });
            for (event, action) in [("DELETE", foreign.on_delete), ("UPDATE", foreign.on_update)] {
                match action {
                    Referential::Refuse => {}
                    Referential::Restrict => text.push_str(&format!(" ON {event} RESTRICT")),
                    Referential::Cascade => text.push_str(&format!(" ON {event} CASCADE")),
                    Referential::SetNull => text.push_str(&format!(" ON {event} SET NULL")),
                }
            }
            text.push_str(foreign.timing.words());
            text.push_str(if foreign.is_valid { "" } else { " NOT ENFORCED" });
            texts.push(text);
        }
        texts.extend(self.exclusions.iter().map(Exclusion::written));
        let whole = format!(
            "CREATE TABLE t (x int{}{})",
            if texts.is_empty() { "" } else { ", " },
            texts.join(", ")
        );
        // It is put together of what was parsed before.
        if let Some(Statement::CreateTable(parsed)) = crate::parse::parse(&whole).ok().and_then(|mut all| all.pop()) {
            out.constraints = parsed.constraints;
        }
        out
    }

    /// The validator that keeps the declaration, whose text is `text`.
    pub fn validator(&self, text: &str) -> Document {
        let mut properties = Document::new();
        let mut required = Vec::new();
        for column in &self.columns {
            if column.not_null {
                required.push(Value::from(column.path.as_str()));
            }
            if let Some(property) = property(&column.ty, column.not_null) {
                properties.push(column.path.as_str(), property);
            }
        }
        let mut schema = Document::new();
        schema.push("title", entry::TABLE);
        let triggers = self.triggers.iter().map(Trigger::kept);
        let texts: Vec<String> = [text.to_owned()].into_iter().chain(triggers).collect();
        schema.push("description", texts.join("; "));
        // A partitioned table has no rows of its own.
        let holds = if self.division.is_some() { "null" } else { "object" };
        schema.push("bsonType", holds);
        if !required.is_empty() {
            schema.push("required", required);
        }
        schema.push("properties", properties);
        let mut validator = Document::new();
        validator.push("$jsonSchema", schema);
        for (name, condition) in self.guard.iter() {
            validator.push(name, condition.to_value());
        }
        validator
    }
}

/// The schema and the name of what was declared by a name for a collection. The text keeps the schema, and the collection its name, which
/// may be another one by now.
pub fn name_in_schema<'c>(declared: &ObjectName, collection: &'c str) -> (Option<String>, &'c str) {
    let schema = super::object_name(declared).ok().and_then(|(schema, _)| schema);
    let schema = schema.filter(|schema| schema != PUBLIC);
    let name = schema
        .as_deref()
        .and_then(|schema| collection.strip_prefix(schema)?.strip_prefix('.'));
    match name {
        Some(name) => (schema, name),
        None => (None, collection),
    }
}

/// Whose partition a table is declared to be, by the name of a collection.
fn partition_of(create: &CreateTable) -> Result<Option<Arc<PartitionOf>>> {
    let (Some(parent), Some(bound)) = (&create.partition_of, &create.for_values) else {
        return Ok(None);
    };
    Ok(Some(Arc::new(PartitionOf {
        parent: super::object_name(parent)?.1,
        bound: bound.clone(),
    })))
}

/// The names of a key's columns.
///
/// Errors: 0A000 for expressions and orders.
pub fn names(columns: &[IndexColumn]) -> Result<Vec<String>> {
    let each = columns.iter().map(|column| match &column.column.expr {
        Expr::Identifier(name)
            if column.operator_class.is_none()
                && column.column.options.sort.is_none()
                && column.column.options.nulls_first.is_none() =>
        {
            Ok(ident(name))
        }
        _ => unsupported("a key of this form"),
    });
    each.collect()
}

/// When a constraint is looked at.
///
/// Errors: 42601 for what contradicts itself, 0A000 for one that does not hold.
pub(super) fn timing(said: Option<ConstraintCharacteristics>) -> Result<Timing> {
    let Some(said) = said else { return Ok(Timing::AtOnce) };
    let is_deferred = said.initially == Some(DeferrableInitial::Deferred);
    match (said.deferrable, is_deferred) {
        (Some(false), true) => fail("42601", "constraint declared INITIALLY DEFERRED must be DEFERRABLE"),
        (_, true) => Ok(Timing::Deferred),
        (Some(true), false) => Ok(Timing::Deferrable),
        (_, false) => Ok(Timing::AtOnce),
    }
}

fn foreign_key(constraint: String, columns: Vec<String>, key: &ForeignKeyConstraint) -> Result<Foreign> {
    let is_full = match key.match_kind {
        None | Some(ConstraintReferenceMatchKind::Simple) => false,
        Some(ConstraintReferenceMatchKind::Full) => true,
        Some(ConstraintReferenceMatchKind::Partial) => return unsupported("MATCH PARTIAL"),
    };
    let timing = timing(key.characteristics)?;
    if is_full && timing != Timing::AtOnce {
        return unsupported("MATCH FULL of a foreign key that is DEFERRABLE");
    }
    let (schema, referred) = super::object_name(&key.foreign_table)?;
    if schema.is_some_and(|schema| schema != PUBLIC) {
        return unsupported("a foreign key to a table of another database");
    }
    let action = |action: Option<ReferentialAction>| match action {
        None | Some(ReferentialAction::NoAction) => Ok(Referential::Refuse),
        Some(ReferentialAction::Restrict) => Ok(Referential::Restrict),
        Some(ReferentialAction::Cascade) => Ok(Referential::Cascade),
        Some(ReferentialAction::SetNull) => Ok(Referential::SetNull),
        Some(ReferentialAction::SetDefault) => unsupported("SET DEFAULT of a foreign key"),
    };
    Ok(Foreign {
        name: constraint,
        table: referred,
        referred: key.referred_columns.iter().map(ident).collect(),
        on_delete: action(key.on_delete)?,
        on_update: action(key.on_update)?,
        is_full,
        timing,
        is_valid: key.characteristics.is_none_or(|said| said.enforced != Some(false)),
        columns,
    })
}

/// What a schema says of a column's values in documents; `None` for all.
fn property(ty: &Type, not_null: bool) -> Option<Document> {
    let mut out = Document::new();
    if let Type::Enum(own) = ty {
        let labels = own.labels.iter().map(|label| Value::from(label.as_str()));
        let null = (!not_null).then_some(Value::Null);
        out.push("enum", labels.chain(null).collect::<Vec<Value>>());
        return Some(out);
    }
    let types = bson_types(ty)?;
    let null = (!not_null).then_some(&"null");
    let types = types.iter().chain(null).map(|ty| Value::from(*ty));
    out.push("bsonType", types.collect::<Vec<Value>>());
    if let Type::Composite(own) = ty {
        let mut properties = Document::new();
        for own in &own.attributes {
            if let Some(property) = property(&own.ty, false) {
                properties.push(own.name.as_str(), property);
            }
        }
        out.push("properties", properties);
    }
    Some(out)
}

/// Whether columns are among these that compare without regard to case, by their names.
fn has_citext(columns: &[Column], names: &[String]) -> bool {
    let is_one = |column: &&Column| column.ty.clone().plain() == Type::Citext;
    columns.iter().filter(is_one).any(|column| names.contains(&column.name))
}

/// The types in documents of a column's values; `None` for all.
fn bson_types(ty: &Type) -> Option<&'static [&'static str]> {
    Some(match ty {
        Type::Bool => &["bool"],
        Type::Int2 | Type::Int4 => &["int"],
        Type::Int8 | Type::Oid | Type::Tid | Type::Regconfig | Type::Regdictionary => &["long", "int"],
        Type::Float4 | Type::Float8 => &["double", "int", "long"],
        Type::Numeric => &["decimal", "int", "long", "double"],
        Type::Text | Type::Varchar | Type::Bpchar | Type::Name | Type::Char | Type::Interval => &["string"],
        Type::Citext => &["string"],
        Type::Bit | Type::Varbit | Type::Timetz | Type::Jsonpath | Type::Refcursor => &["string"],
        Type::TsVector | Type::TsQuery => &["string"],
        ty if ty.is_address() => &["string"],
        ty if ty.is_ranges() => &["string"],
        Type::Bytea | Type::Uuid => &["binData"],
        Type::Date | Type::Timestamp | Type::Timestamptz => &["date"],
        Type::Time => &["long"],
        Type::ObjectId => &["objectId"],
        Type::Array(_) => &["array"],
        Type::Composite(_) => &["object"],
        _ => return None,
    })
}

fn declared(def: &ColumnDef) -> Result<Column> {
    let name = ident(&def.name);
    let serial = match &def.data_type {
        DataType::Custom(custom, _) => match custom.to_string().to_lowercase().as_str() {
            "serial" | "serial4" => Some(Type::Int4),
            "bigserial" | "serial8" => Some(Type::Int8),
            "smallserial" | "serial2" => Some(Type::Int2),
            _ => None,
        },
        _ => None,
    };
    let (ty, modifier) = match &serial {
        Some(ty) => (ty.clone(), -1),
        None => data_type(&def.data_type)?,
    };
    check_column(&name, &ty)?;
    let mut column = Column {
        modifier,
        not_null: serial.is_some(),
        identity: match &serial {
            Some(ty) => Some(Identity {
                kind: IdentityKind::Serial,
                counting: entry::counting(&[], ty)?,
            }),
            None => None,
        },
        declared: true,
        ..Column::new(&name, ty)
    };
    for option in &def.options {
        match &option.option {
            ColumnOption::Null | ColumnOption::ForeignKey(_) => {}
            ColumnOption::NotNull => column.not_null = true,
            ColumnOption::Default(expr) => column.default = Some(expr.to_string()),
            ColumnOption::Generated {
                generated_as,
                sequence_options,
                generation_expr: None,
                ..
            } => {
                if !column.ty.is_integer() {
                    return fail("22023", "identity column type must be smallint, integer, or bigint");
                }
                column.not_null = true;
                column.identity = Some(Identity {
                    kind: match generated_as {
                        GeneratedAs::Always => IdentityKind::Always,
                        GeneratedAs::ByDefault => IdentityKind::ByDefault,
                        GeneratedAs::ExpStored => return unsupported("a generated column of this form"),
                    },
                    counting: entry::counting(sequence_options.as_deref().unwrap_or_default(), &column.ty)?,
                });
            }
            ColumnOption::Generated {
                generated_as: GeneratedAs::Always | GeneratedAs::ExpStored,
                generation_expr: Some(expr),
                generation_expr_mode: None | Some(GeneratedExpressionMode::Stored),
                ..
            } => column.generated = Some(expr.to_string()),
            ColumnOption::Generated { .. } => return unsupported("a generated column of this form"),
            ColumnOption::PrimaryKey(_) | ColumnOption::Unique(_) | ColumnOption::Check(_) => {}
            ColumnOption::Collation(name) => {
                let found = collation::of_type(name, &column.ty)?;
                column.collation = (found.oid != column.ty.collation()).then_some(found);
            }
            option if numbers::said(option).is_some() => column.sequence = numbers::said(option),
            other => return unsupported(format!("the option {other} of a column")),
        }
    }
    if column.generated.is_some() && (column.default.is_some() || column.identity.is_some()) {
        return fail(
            "42601",
            format!("both default and generation expression specified for column \"{name}\""),
        );
    }
    if column.identity.is_some() && column.default.is_some() {
        return fail(
            "42601",
            format!("both default and identity specified for column \"{name}\""),
        );
    }
    Ok(column)
}
