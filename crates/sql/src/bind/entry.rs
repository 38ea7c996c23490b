//! What a catalog entry is in SQL: the validator of a collection says so with the title of its `$jsonSchema`, whose description is the
//! text of the statements that made it.
//!
//! So what SQL makes is as durable as any collection, is changed with it, and stands in the same transactions. What is no table has a
//! validator that no document fits. Whoever sets another validator makes a table of documents of it again.

use super::declared::{self, Declared};
use super::{made, types};
use crate::catalog::BARRIER;
use crate::catalog::routines::Routine;
use crate::catalog::{Materialized, Table};
use crate::error::{fail, unsupported};
use crate::parse::own::{self, CheckOption, Own};
use crate::parse::trigger::Trigger;
use crate::types::Type;
use crate::types::composite::{Attribute, Composite};
use crate::types::domain::Domain;
use crate::types::enums::Enum;
use nestor_database::write::assertions::ENTRIES;
use nestor_database::write::sequence::Counting;
use nestor_model::{DocRef, Document, Error, Namespace, Result, Value as ModelValue, ValueRef, doc};
use nestor_storage::{Collection, Derive, View};
use sqlparser::ast::UserDefinedTypeRepresentation;
use sqlparser::ast::{CreateTable, Expr, Ident, Query, SequenceOptions, Statement, UnaryOperator, Value as Literal};
use std::sync::Arc;

/// The title of a declared table.
pub const TABLE: &str = "SQL table";
/// The title of a sequence.
pub const SEQUENCE: &str = "SQL sequence";

/// The title of a schema.
pub const SCHEMA: &str = "SQL schema";

/// The title of an enum.
pub const ENUM: &str = "SQL enum";

/// The title of a composite type.
pub const COMPOSITE: &str = "SQL composite type";

/// The title of a domain.
pub const DOMAIN: &str = "SQL domain";

/// The title of a function.
pub const FUNCTION: &str = "SQL function";

/// The beginning of the names of functions' entries.
const FUNCTIONS: &str = "system.functions.";

/// The title of a materialized view, and that of one without rows.
pub const MATERIALIZED: &str = "SQL materialized view";
/// The title of a materialized view that was not populated.
pub const UNPOPULATED: &str = "SQL materialized view without data";

/// The title of an assertion.
pub const ASSERTION: &str = "SQL assertion";

/// What an entry is.
pub enum Object {
    /// An assertion.
    Assertion(Arc<Query>),
    /// A function.
    Function(Arc<Routine>),
    /// A materialized view.
    Materialized(Arc<Table>),
    /// An enum, a composite type or a domain.
    Type(Type),
    /// A schema.
    Schema,
    /// A declared table.
    Table(Arc<Declared>, Arc<Table>),
    /// A sequence, the type of its numbers, its schema, if that is not `public`, and the collection and the column that it goes with.
    Sequence(Counting, Type, Option<String>, Option<(String, String)>),
}

/// What the catalog entry of a collection says.
struct OfEntry(Option<Object>);

impl Derive for OfEntry {
    type Error = Error;

    fn derive(collection: &Collection) -> Result<Self> {
        let schema = match collection.options.validator.as_ref().and_then(|v| v.get("$jsonSchema")) {
            Some(ValueRef::Document(schema)) => schema,
            _ => return Ok(Self(None)),
        };
        let title = schema.get("title").and_then(ValueRef::as_str).unwrap_or_default();
        if !matches!(
            title,
            TABLE | SEQUENCE | SCHEMA | ENUM | COMPOSITE | DOMAIN | MATERIALIZED | UNPOPULATED | ASSERTION | FUNCTION
        ) {
            return Ok(Self(None));
        }
        let text = schema.get("description").and_then(ValueRef::as_str).unwrap_or_default();
        let statements = crate::parse::parse(text)?;
        Ok(Self(match (title, statements.first()) {
            (TABLE, Some(Statement::CreateTable(create))) => {
                let name = declared::name_in_schema(&create.name, &collection.ns.coll).1;
                let mut declared = Declared::of(create, name)?;
                declared.triggers = triggers(&statements)?;
                let all = collection
                    .options
                    .validator
                    .iter()
                    .flat_map(|validator| validator.iter());
                for (name, condition) in all.filter(|(name, _)| *name != "$jsonSchema") {
                    declared.guard.push(name, condition.to_value());
                }
                if let Some(own) = &collection.options.row_security {
                    declared.row_security = Arc::new(own.clone());
                }
                let declared = Arc::new(declared);
                let (schema, name) = declared::name_in_schema(&create.name, &collection.ns.coll);
                let table = Arc::new(declared.table(&collection.ns, (schema.as_deref(), name)));
                Some(Object::Table(declared, table))
            }
            (
                SEQUENCE,
                Some(Statement::CreateSequence {
                    name,
                    data_type,
                    sequence_options,
                    owned_by,
                    ..
                }),
            ) => {
                let ty = match data_type {
                    None => Type::Int8,
                    Some(ty) => types::data_type(ty)?.0,
                };
                let (schema, _) = declared::name_in_schema(name, &collection.ns.coll);
                let owner = owned_by
                    .as_ref()
                    .and_then(|owner| match super::names::parts(owner).as_slice() {
                        [table, column] => Some((table.clone(), column.clone())),
                        _ => None,
                    });
                Some(Object::Sequence(counting(sequence_options, &ty)?, ty, schema, owner))
            }
            (
                ENUM,
                Some(Statement::CreateType {
                    representation: Some(UserDefinedTypeRepresentation::Enum { labels }),
                    ..
                }),
            ) => Some(Object::Type(Type::Enum(Arc::new(Enum {
                oid: made_oid(collection),
                name: collection.ns.coll.to_string(),
                labels: labels.iter().map(|label| label.value.clone()).collect(),
            })))),
            (
                COMPOSITE,
                Some(Statement::CreateType {
                    representation: Some(UserDefinedTypeRepresentation::Composite { attributes }),
                    ..
                }),
            ) => {
                let each = attributes.iter().map(|own| {
                    let (ty, modifier) = types::data_type(&own.data_type)?;
                    let name = super::ident(&own.name);
                    Ok(Attribute { name, ty, modifier })
                });
                Some(Object::Type(Type::Composite(Arc::new(Composite {
                    oid: made_oid(collection),
                    name: collection.ns.coll.to_string(),
                    attributes: each.collect::<Result<_>>()?,
                }))))
            }
            (
                DOMAIN,
                Some(Statement::CreateType {
                    representation: Some(UserDefinedTypeRepresentation::Composite { attributes }),
                    ..
                }),
            ) => match attributes.first().map(|own| types::data_type(&own.data_type)) {
                Some(Ok((Type::Domain(own), _))) => Some(Object::Type(Type::Domain(Arc::new(Domain {
                    oid: made_oid(collection),
                    name: collection.ns.coll.to_string(),
                    ..(*own).clone()
                })))),
                _ => None,
            },
            (MATERIALIZED | UNPOPULATED, Some(Statement::Query(query))) => match statements.get(1) {
                Some(Statement::CreateTable(create)) => {
                    let own = Materialized {
                        text: query.to_string(),
                        is_populated: title == MATERIALIZED,
                    };
                    Some(Object::Materialized(Arc::new(materialized(collection, create, own)?)))
                }
                _ => None,
            },
            (ASSERTION, Some(Statement::Query(query))) => Some(Object::Assertion(Arc::new((**query).clone()))),
            (FUNCTION, Some(Statement::CreateFunction(create))) => {
                let mut routine = made::routine(create, made_oid(collection))?;
                routine.schema = schema_of_function(&collection.ns.coll).map(str::to_owned);
                Some(Object::Function(Arc::new(routine)))
            }
            (SCHEMA, Some(Statement::CreateSchema { .. })) => Some(Object::Schema),
            _ => None,
        }))
    }
}

/// The triggers that are declared behind a table, by name.
fn triggers(statements: &[Statement]) -> Result<Arc<[Trigger]>> {
    let mut out = Vec::new();
    for ast in statements {
        if let Some(Own::CreateTrigger { trigger, .. }) = own::of(ast)? {
            out.push(*trigger);
        }
    }
    out.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(out.into())
}

/// The table of a materialized view. Documents have an `_id` of their own, so a column of that name is another field.
fn materialized(collection: &Collection, create: &CreateTable, own: Materialized) -> Result<Table> {
    const ELSEWHERE: &str = "_id_";
    let mut create = create.clone();
    let found = create.columns.iter().position(|def| super::ident(&def.name) == "_id");
    let mut field = ELSEWHERE.to_owned();
    while create.columns.iter().any(|def| super::ident(&def.name) == field) {
        field.push('_');
    }
    if let Some(at) = found {
        create.columns[at].name = Ident::with_quote('"', field);
    }
    let (schema, name) = declared::name_in_schema(&create.name, &collection.ns.coll);
    let mut table = Declared::of(&create, name)?.table(&collection.ns, (schema.as_deref(), name));
    if let Some(at) = found {
        "_id".clone_into(&mut table.columns[at].name);
    }
    table.materialized = Some(own);
    table.row_security = Arc::new(collection.options.row_security.clone().unwrap_or_default());
    Ok(table)
}

/// The materialized view that a collection is.
pub fn materialized_of(collection: &Collection) -> Option<&Arc<Table>> {
    match of(collection) {
        Some(Object::Materialized(table)) => Some(table),
        _ => None,
    }
}

/// What a collection is in SQL, if something was declared. Text that is no declaration any more declares nothing.
pub fn of(collection: &Collection) -> Option<&Object> {
    collection.derived::<OfEntry>().ok()?.0.as_ref()
}

/// The table that a collection was declared as.
pub fn table_of(collection: &Collection) -> Option<&Arc<Table>> {
    match of(collection) {
        Some(Object::Table(_, table) | Object::Materialized(table)) => Some(table),
        _ => None,
    }
}

/// The OID of the type or the function that a collection is.
fn made_oid(collection: &Collection) -> u32 {
    // Numbers from 16384 on are those of what users have made.
    20_000u32.saturating_add(collection.id.0)
}

/// The type that a collection is.
pub fn type_of(collection: &Collection) -> Option<&Type> {
    match of(collection)? {
        Object::Type(ty) => Some(ty),
        _ => None,
    }
}

/// The first of the collections that is a type.
pub fn type_among(view: &dyn View, all: &[Namespace]) -> Option<Type> {
    all.iter().find_map(|ns| type_of(view.catalog().get(ns)?).cloned())
}

/// The assertions of a database, by name.
pub fn assertions(view: &dyn View, db: &str) -> Vec<(String, Arc<Collection>, Arc<Query>)> {
    let database = view.catalog().database(db);
    let collections = database.into_iter().flat_map(|database| database.collections());
    let own = collections.filter_map(|collection| {
        let name = collection.ns.coll.strip_prefix(ENTRIES)?;
        match of(collection) {
            Some(Object::Assertion(query)) => Some((name.to_owned(), collection.clone(), query.clone())),
            _ => None,
        }
    });
    own.collect()
}

/// The functions of a database.
pub fn functions(view: &dyn View, db: &str) -> Vec<Arc<Routine>> {
    let database = view.catalog().database(db);
    let collections = database.into_iter().flat_map(|database| database.collections());
    let own = collections.filter(|collection| collection.ns.coll.contains(FUNCTIONS));
    let own = own.filter_map(|collection| match of(collection) {
        Some(Object::Function(routine)) => Some(routine.clone()),
        _ => None,
    });
    own.collect()
}

/// The entry of a function of a schema; `None` stands for `public`.
pub fn function(db: &str, schema: Option<&str>, key: &str) -> Namespace {
    let schema = schema.map_or_else(String::new, |schema| format!("{schema}."));
    Namespace::new(db, format!("{schema}{FUNCTIONS}{key}"))
}

/// The schema of a function's entry, if it is not `public`.
fn schema_of_function(collection: &str) -> Option<&str> {
    collection.split_once(FUNCTIONS)?.0.strip_suffix('.')
}

/// The entry of an assertion.
pub fn assertion(db: &str, name: &str) -> Namespace {
    Namespace::new(db, format!("{ENTRIES}{name}"))
}

/// Whether a collection is an entry of SQL's that holds no documents.
pub fn holds_nothing(collection: &Collection) -> bool {
    matches!(
        of(collection),
        Some(Object::Sequence(..) | Object::Schema | Object::Type(_) | Object::Assertion(_) | Object::Function(_))
    )
}

/// Stands behind the query of a duality view.
pub const DUALITY: &str = " WITH DUALITY";

/// Whether a view is a duality view.
pub fn is_duality(collection: &Collection) -> bool {
    let mut stages = collection.options.view.iter().flat_map(|view| view.pipeline.iter());
    match stages.next() {
        Some(ValueRef::Document(stage)) => {
            let text = stage_text(stage);
            text.is_some_and(|text| text.ends_with(DUALITY))
        }
        _ => false,
    }
}

/// The title of an entry, which says what it is.
pub fn title(collection: &Collection) -> Option<&str> {
    match collection.options.validator.as_ref()?.get("$jsonSchema")? {
        ValueRef::Document(schema) => schema.get("title").and_then(ValueRef::as_str),
        _ => None,
    }
}

/// The text of the query of a stage.
fn stage_text(stage: DocRef<'_>) -> Option<&str> {
    match stage.get("$sql")? {
        ValueRef::Document(whole) => whole.get("query").and_then(ValueRef::as_str),
        text => text.as_str(),
    }
}

/// The stage that a view of SQL is, with triggers that are called in the place of what is done with its rows.
pub fn view_stage(text: &str, triggers: &[Trigger]) -> Document {
    if triggers.is_empty() {
        return doc! { "$sql": text };
    }
    let kept: Vec<ModelValue> = triggers
        .iter()
        .map(|own| ModelValue::from(own.kept().as_str()))
        .collect();
    doc! { "$sql": doc! { "query": text, "triggers": kept } }
}

/// The triggers of a view, by name.
///
/// Errors: 42601 for what is no trigger.
pub fn view_triggers(collection: &Collection) -> Result<Arc<[Trigger]>> {
    let mut stages = collection.options.view.iter().flat_map(|view| view.pipeline.iter());
    let Some(ValueRef::Document(stage)) = stages.next() else {
        return Ok(Arc::default());
    };
    let Some(ValueRef::Document(whole)) = stage.get("$sql") else {
        return Ok(Arc::default());
    };
    let Some(ValueRef::Array(texts)) = whole.get("triggers") else {
        return Ok(Arc::default());
    };
    let texts: Vec<&str> = texts.iter().filter_map(ValueRef::as_str).collect();
    triggers(&crate::parse::parse(&texts.join("; "))?)
}

/// The text of a view's stage, as it is kept.
pub fn view_text(collection: &Collection) -> Option<&str> {
    match collection.options.view.as_ref()?.pipeline.iter().next()? {
        ValueRef::Document(stage) => stage_text(stage),
        _ => None,
    }
}

/// Options of views, as they are shown and, each behind `WITH` in parentheses, stand behind the text of a view's query.
pub const VIEW_OPTIONS: [&str; 3] = ["security_invoker=true", BARRIER, "security_barrier=false"];

/// An option of a view as it stands behind its query.
pub fn view_option(shown: &str) -> String {
    format!(" WITH ({shown})")
}

/// The options of a view, as they are shown.
pub fn view_options(collection: &Collection) -> Vec<String> {
    view_of(collection).map_or_else(Vec::new, |(_, options, _)| options)
}

/// The text of the query that a view is, its options, and what is checked behind it, if it is one of SQL.
fn view_of(collection: &Collection) -> Option<(&str, Vec<String>, Option<CheckOption>)> {
    let pipeline = &collection.options.view.as_ref()?.pipeline;
    let text = match pipeline.iter().next() {
        Some(ValueRef::Document(stage)) if pipeline.len() == 1 => stage_text(stage)?,
        _ => return None,
    };
    if let Some(text) = text.strip_suffix(DUALITY) {
        return Some((text, Vec::new(), None));
    }
    let mut all = [CheckOption::Local, CheckOption::Cascaded].into_iter();
    let found = all.find_map(|option| Some((text.strip_suffix(option.text())?, Some(option))));
    let (mut text, check) = found.unwrap_or((text, None));
    let mut options = Vec::new();
    while let Some((rest, option)) = VIEW_OPTIONS
        .iter()
        .find_map(|option| Some((text.strip_suffix(&view_option(option))?, option)))
    {
        text = rest;
        options.insert(0, (*option).to_owned());
    }
    Some((text, options, check))
}

/// The text of the query that a view is, if it is one of SQL.
pub fn query_of(collection: &Collection) -> Option<&str> {
    view_of(collection).map(|(text, ..)| text)
}

/// What holds for rows that are written through a view.
pub fn check_option_of(collection: &Collection) -> Option<CheckOption> {
    view_of(collection)?.2
}

/// The query that a text is.
pub fn parsed(text: &str) -> Option<Arc<Query>> {
    match crate::parse::parse(text).ok()?.pop() {
        Some(Statement::Query(query)) => Some(Arc::from(query)),
        _ => None,
    }
}

/// The validator of an entry that holds no documents.
pub fn validator(title: &str, text: &str) -> Document {
    doc! { "$jsonSchema": doc! { "title": title, "description": text, "bsonType": "null" } }
}

/// The text of the statements that made an entry, if SQL made it.
pub fn text(collection: &Collection) -> Option<String> {
    of(collection)?;
    match collection.options.validator.as_ref()?.get("$jsonSchema") {
        Some(ValueRef::Document(schema)) => schema.get("description").and_then(ValueRef::as_str).map(str::to_owned),
        _ => None,
    }
}

/// The number that an expression is.
///
/// Errors: 42601.
pub fn number(expr: &Expr) -> Result<i64> {
    let (digits, sign) = match expr {
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => (&**expr, "-"),
        Expr::UnaryOp {
            op: UnaryOperator::Plus,
            expr,
        } => (&**expr, ""),
        expr => (expr, ""),
    };
    let parsed = match digits {
        Expr::Value(value) => match &value.value {
            Literal::Number(digits, _) => format!("{sign}{digits}").parse().ok(),
            _ => None,
        },
        _ => None,
    };
    match parsed {
        Some(number) => Ok(number),
        None => fail("42601", format!("a number is wanted and not {expr}")),
    }
}

/// The least and the largest number of a sequence's type.
///
/// Errors: 22023.
pub fn limits(ty: &Type) -> Result<(i64, i64)> {
    match ty {
        Type::Int2 => Ok((i64::from(i16::MIN), i64::from(i16::MAX))),
        Type::Int4 => Ok((i64::from(i32::MIN), i64::from(i32::MAX))),
        Type::Int8 => Ok((i64::MIN, i64::MAX)),
        _ => fail("22023", "sequence type must be smallint, integer, or bigint"),
    }
}

/// The numbers that a sequence is to reserve.
///
/// Errors: 22023, 42601.
pub fn cached(size: &Expr) -> Result<i64> {
    match number(size)? {
        ..1 => fail("22023", format!("CACHE ({size}) must be greater than zero")),
        size => Ok(size),
    }
}

/// How a sequence of numbers of a type counts.
///
/// Errors: 22023, 42601.
pub fn counting(options: &[SequenceOptions], ty: &Type) -> Result<Counting> {
    let (least, most) = limits(ty)?;
    let (mut start, mut increment, mut min, mut max, mut cycle, mut cache) = (None, 1, None, None, false, 1);
    for option in options {
        match option {
            SequenceOptions::IncrementBy(by, _) => increment = number(by)?,
            SequenceOptions::MinValue(value) => min = value.as_ref().map(number).transpose()?,
            SequenceOptions::MaxValue(value) => max = value.as_ref().map(number).transpose()?,
            SequenceOptions::StartWith(value, _) => start = Some(number(value)?),
            SequenceOptions::Cache(size) => cache = cached(size)?,
            SequenceOptions::Cycle(no) => cycle = !no,
        }
    }
    if increment == 0 {
        return fail("22023", "INCREMENT must not be zero");
    }
    let (low, high) = if increment > 0 { (1, most) } else { (least, -1) };
    let (min, max) = (min.unwrap_or(low), max.unwrap_or(high));
    if min < least || max > most {
        return fail(
            "22023",
            format!("MINVALUE or MAXVALUE is out of range for sequence data type {ty}"),
        );
    }
    if min >= max {
        return fail("22023", format!("MINVALUE ({min}) must be less than MAXVALUE ({max})"));
    }
    let start = start.unwrap_or(if increment > 0 { min } else { max });
    if start < min {
        return fail(
            "22023",
            format!("START value ({start}) cannot be less than MINVALUE ({min})"),
        );
    }
    if start > max {
        return fail(
            "22023",
            format!("START value ({start}) cannot be greater than MAXVALUE ({max})"),
        );
    }
    Ok(Counting {
        start,
        increment,
        min,
        max,
        cycle,
        cache,
    })
}

/// Refuses what cannot stand in a declaration whose text has to be read again.
///
/// Errors: 0A000.
pub fn check_text(text: &str) -> Result<()> {
    match crate::parse::parse(text).is_ok_and(|statements| statements.len() == 1) {
        true => Ok(()),
        false => unsupported("a declaration of this form"),
    }
}
