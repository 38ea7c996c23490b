//! CREATE INDEX and DROP INDEX.

use super::keys::{check_is_whole, is_by_value, limit};
use super::{free, namespace, partition};
use crate::bind::declared::{Declared, distinct};
use crate::bind::exclusion::called;
use crate::bind::{ident, is_only, object_name, storage};
use crate::catalog::system::classes::{self, Named};
use crate::catalog::system::quoted;
use crate::catalog::{Column, Table, schemas};
use crate::error::{Field, error, fail, unsupported, with};
use crate::expr::Expr as BoundExpr;
use crate::notices::pass_over;
use crate::run::inverted::Items;
use crate::run::partitions::declared;
use crate::run::predicate::{self, Predicate};
use crate::run::procedures::check_transaction;
use crate::run::tables::{Reading, SessionFacts, index_name};
use crate::run::{included, indexed};
use crate::types::Type;
use crate::types::collation::{self, Collation};
use nestor_database::index_build;
use nestor_database::parameters::Param;
use nestor_database::rights::Action as Right;
use nestor_database::statement::Statement;
use nestor_database::write::{Progress, catalog, comments};
use nestor_model::{DocRef, Document, IndexSpec, Namespace, Result, ValueRef, doc};
use nestor_planner::kinds::expression;
use nestor_storage::{Collection, Index, View, WriteSet};
use sqlparser::ast::{CreateIndex, Expr, Ident, IndexType, ObjectName, ObjectNamePart, OrderByOptions, OrderBySort};
use std::sync::Arc;

/// How a look at the collection ended.
enum Step {
    /// The index is there.
    Done,
    /// It is to be filled beside writers, for which a place is needed.
    Enter,
    /// It has been started.
    Started(nestor_storage::CollectionId, Arc<Index>),
}

/// CREATE INDEX.
pub(super) fn create(
    statement: &Statement<'_>,
    session: &SessionFacts,
    create: &CreateIndex,
    progress: &mut Progress,
) -> Result<&'static str> {
    let refused = !create.index_options.is_empty() || !create.alter_options.is_empty() || create.r#async;
    if refused {
        return unsupported("a clause of this CREATE INDEX");
    }
    let method = Method::of(create)?;
    let storage = storage::of_index(&create.with, method.named().1)?;
    if create.concurrently && statement.in_transaction() {
        return fail(
            "25001",
            "CREATE INDEX CONCURRENTLY cannot run inside a transaction block",
        );
    }
    let ns = namespace(statement, session, &create.table_name)?;
    session.check_right(&ns, Right::CreateIndex)?;
    let is_divided = declared(statement.current_view().view(), &ns).is_some_and(|table| table.division.is_some());
    if is_divided && create.concurrently {
        let message = format!("cannot create index on partitioned table \"{}\" concurrently", ns.coll);
        return fail("0A000", message);
    }
    let is_divided = is_divided && !is_only(&create.table_name);
    if is_divided {
        // Those of partitions are made with it or not at all.
        check_transaction(statement)?;
    }
    let parts = parts(create)?;
    let include: Vec<String> = create.include.iter().map(ident).collect();
    let name = match &create.name {
        Some(name) => object_name(name)?.1,
        None => {
            let table = schemas::split(statement.current_view().view(), &ns).1.to_owned();
            let include = include.iter().map(String::as_str);
            let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).chain(include).collect();
            let read = statement.current_view();
            let (op, _) = statement.operation(None)?;
            let reading = Reading::new(statement, read.view(), &op, session);
            let names: Vec<String> = distinct(&names).iter().map(ToString::to_string).collect();
            free::of_index(&reading, &ns, &table, &names)
        }
    };
    let mut slot = None;
    loop {
        let mut attempts = 0;
        let step = statement.atomically(progress, |ws| {
            attempts += 1;
            let (op, _) = statement.operation(None)?;
            let (table, indexed) = {
                let reading = Reading::new(statement, &*ws, &op, session);
                let table = reading.table_at(&ns)?;
                let (schema, _) = schemas::split(reading.view, &ns);
                let own = Namespace::new(&*ns.db, schemas::collection(schema, &name));
                let taken = reading.has_relation(&own);
                (table, taken)
            };
            let (Some(table), Some(collection)) = (table, ws.catalog().get(&ns).cloned()) else {
                return fail("42P01", format!("relation \"{}\" does not exist", ns.coll));
            };
            if collection.is_view() {
                return fail("42809", format!("cannot create index on relation \"{}\"", ns.coll));
            }
            if indexed {
                let taken = error("42P07", format!("relation \"{name}\" already exists"));
                return pass_over(create.if_not_exists, taken).map(|()| Step::Done);
            }
            let predicate = match &create.predicate {
                Some(predicate) => predicate::of(&Reading::new(statement, &*ws, &op, session), &table, predicate)?,
                None => Predicate::default(),
            };
            let by_value = |part: &Part<'_>| match part.expr {
                Some(_) => true,
                None => table.column(&part.name).is_some_and(is_by_value),
            };
            let is_computed = !predicate.conditions.is_empty() || parts.iter().any(by_value);
            let is_inverted = method.inverts(&table, &parts, is_computed)?;
            let is_computed = is_computed || is_inverted;
            let included = included_columns(&table, &include)?;
            // In a unique index they would be part of what is unique.
            let read = readable(&parts, &included, create.unique);
            let all: Vec<&Part<'_>> = parts.iter().chain(&read).collect();
            let is_hash = is_computed && method == Method::Hash;
            let (mut listed, nullable, mut classes) = match is_computed {
                true => {
                    let method = if is_inverted { method } else { Method::Ordered };
                    computed(&table, &all, method, (&name, create.unique), predicate.conditions)?
                }
                false => plain(&table, &all, method, &name)?,
            };
            classes.truncate(parts.len());
            let collations: Vec<&str> = parts
                .iter()
                .map(|part| part.collation.map_or("", |own| own.name))
                .collect();
            let has_collations = collations.iter().any(|own| !own.is_empty());
            let has_classes = classes.iter().any(|class| !class.is_empty());
            let orders: Vec<i32> = parts.iter().map(Part::order).collect();
            let is_said = parts
                .iter()
                .any(|part| part.order() != if part.descends { 3 } else { 0 } || part.descends && is_computed);
            let says_more = is_said || has_classes || has_collations || is_hash || is_inverted;
            if !included.is_empty() || says_more || !storage.is_empty() {
                let mut option = listed
                    .get(expression::OPTION)
                    .and_then(ValueRef::as_document)
                    .map(DocRef::to_document);
                let paths: Vec<String> = included.iter().map(|column| column.path.clone()).collect();
                if !included.is_empty() {
                    included::say(option.get_or_insert_default(), parts.len(), &paths);
                }
                if is_said {
                    included::say_orders(option.get_or_insert_default(), &orders);
                }
                if has_classes {
                    included::say_classes(option.get_or_insert_default(), &classes);
                }
                if is_hash {
                    included::say_hash(option.get_or_insert_default());
                }
                if is_inverted {
                    indexed::say_inverted(option.get_or_insert_default(), method.named().1);
                }
                if has_collations {
                    included::say_collations(option.get_or_insert_default(), &collations);
                }
                if !storage.is_empty() {
                    let storage: Vec<&str> = storage.iter().map(String::as_str).collect();
                    included::say_storage(option.get_or_insert_default(), &storage);
                }
                listed.set(expression::OPTION, option.unwrap_or_default());
            }
            if create.unique && is_computed && create.nulls_distinct == Some(false) {
                return unsupported(
                    "NULLS NOT DISTINCT of an index on expressions, or with conditions that no filter says",
                );
            }
            if create.unique {
                let columns = parts.iter().filter_map(|part| table.column(&part.name));
                check_is_whole(columns)?;
                if let Some(division) = &table.division {
                    let columns: Vec<String> = parts.iter().map(|part| part.name.clone()).collect();
                    partition::check_key((&table.name, division), "UNIQUE", &columns)?;
                }
                listed.push("unique", true);
            }
            if !predicate.filter.is_empty() {
                listed.push("partialFilterExpression", predicate.filter);
            }
            if create.unique && !is_computed && create.nulls_distinct != Some(false) {
                limit(&mut listed, nullable);
            }
            let spec = IndexSpec::parse(listed.to_raw())?;
            statement.check_index(&collection, &spec)?;
            if statement.in_transaction() || (index_build::is_small(ws, &collection) && attempts <= 3) {
                catalog::create_index(statement, ws, &ns, &spec)?;
                if is_divided {
                    partition::create_indexes(statement, session, ws, &ns)?;
                }
                return Ok(Step::Done);
            }
            if slot.is_none() {
                return Ok(Step::Enter);
            }
            Ok(Step::Started(collection.id, ws.start_index(collection.id, spec)?))
        });
        let step = step.map_err(|error| match error.code() {
            nestor_model::ErrorCode::DuplicateKey => {
                crate::error::error("23505", format!("could not create unique index \"{name}\""))
            }
            _ => error,
        })?;
        match step {
            Step::Done => return Ok("CREATE INDEX"),
            Step::Enter => {
                let most = statement.database.node.parameters.number(Param::IndexBuildsMax);
                slot = Some(statement.database.index_builds.enter(most, &statement.interrupt)?);
            }
            Step::Started(collection, index) => {
                let commit = index_build::beside_writers(statement, collection, &[index])?;
                progress.last = Some((commit.lsn, commit.optime));
                return Ok("CREATE INDEX");
            }
        }
    }
}

/// How an index finds its entries.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    /// By values in order.
    Ordered,
    /// By hashes of values.
    Hash,
    /// By the elements of arrays, by what is anywhere in JSON, by the lexemes or the trigrams of texts.
    Inverted,
    /// By the lexemes or the trigrams of texts.
    Searched,
}

impl Method {
    /// Its OID and its name.
    fn named(self) -> (i64, &'static str) {
        match self {
            Self::Ordered => (classes::BTREE, "btree"),
            Self::Hash => (classes::HASH, "hash"),
            Self::Inverted => (classes::GIN, "gin"),
            Self::Searched => (classes::GIST, "gist"),
        }
    }

    /// The method that a statement asks for.
    ///
    /// Errors: 0A000, also for what its indexes cannot be.
    fn of(create: &CreateIndex) -> Result<Self> {
        let method = match &create.using {
            None | Some(IndexType::BTree) => return Ok(Self::Ordered),
            Some(IndexType::Hash) => Self::Hash,
            Some(IndexType::GIN) => Self::Inverted,
            Some(IndexType::GiST) => Self::Searched,
            Some(other) => return unsupported(format!("the access method {other}")),
        };
        let (_, word) = method.named();
        let cannot = |what: &str| fail("0A000", format!("access method \"{word}\" does not support {what}"));
        if create.unique {
            return cannot("unique indexes");
        }
        if !create.include.is_empty() {
            return cannot("included columns");
        }
        if create.columns.len() > 1 && method == Self::Hash {
            return cannot("multicolumn indexes");
        }
        match create
            .columns
            .iter()
            .any(|part| part.column.options != OrderByOptions::default())
        {
            true => cannot("ASC/DESC options"),
            false => Ok(method),
        }
    }

    /// Whether an index has what is within values and is none that commands read, too: those are of one column of arrays or JSON, without conditions.
    ///
    /// Errors: those of the expressions; 42704 and 42804 for classes that there are not and for types that have none, 0A000 for those of the method
    /// which the index does not have.
    fn inverts(self, table: &Arc<Table>, parts: &[Part<'_>], is_computed: bool) -> Result<bool> {
        if !matches!(self, Self::Inverted | Self::Searched) {
            return Ok(false);
        }
        let (number, word) = self.named();
        let mut is_plain = parts.len() == 1 && !is_computed && self == Self::Inverted;
        for part in parts {
            let ty = match (part.expr, table.column(&part.name)) {
                (Some(expr), _) => indexed::same(table, expr)?.ty(),
                (None, Some(column)) => column.ty.clone(),
                (None, None) => return missing(&part.name),
            };
            let class = class_of(part.class, self, &ty)?;
            if class.is_empty() && classes::default_of(number, &ty).is_none() {
                let told = error(
                    "42704",
                    format!("data type {ty} has no default operator class for access method \"{word}\""),
                );
                let hint = "You must specify an operator class for the index or define a default operator class for the data type.";
                return Err(with(told, &[(Field::Hint, hint)]));
            }
            if Items::of(number, class, &ty).is_none() {
                return unsupported(format!(
                    "an index of the access method \"{word}\" on values of type {ty}"
                ));
            }
            is_plain &= matches!(ty, Type::Array(_) | Type::Jsonb);
        }
        Ok(!is_plain)
    }
}

/// A part of an index.
pub(super) struct Part<'c> {
    /// The column, or what an index without a name is called by.
    name: String,
    descends: bool,
    /// Where its nulls are, if that was said.
    nulls_first: Option<bool>,
    class: Option<&'c ObjectName>,
    /// The collation that was said.
    collation: Option<&'static Collation>,
    /// What it is, if it is no column.
    expr: Option<&'c Expr>,
}

impl<'c> Part<'c> {
    /// A column of this name, or an expression that is called so, in ascending order.
    pub(super) fn of(name: &str, expr: Option<&'c Expr>) -> Self {
        Self {
            name: name.to_owned(),
            descends: false,
            nulls_first: None,
            class: None,
            collation: None,
            expr,
        }
    }

    /// Whether it is an expression.
    pub(super) fn is_computed(&self) -> bool {
        self.expr.is_some()
    }

    /// Whether it descends (1) and nulls come first (2), as they do in descending order where nothing is said of them.
    fn order(&self) -> i32 {
        let nulls_first = self.nulls_first.unwrap_or(self.descends);
        i32::from(self.descends) + 2 * i32::from(nulls_first)
    }
}

/// The parts that a statement names.
///
/// Errors: 0A000.
fn parts(create: &CreateIndex) -> Result<Vec<Part<'_>>> {
    let mut parts = Vec::new();
    for column in &create.columns {
        let order = &column.column;
        let (of, collation) = match &order.expr {
            Expr::Collate { expr, collation } => (&**expr, Some(collation::named(collation)?)),
            of => (of, None),
        };
        let (name, expr) = match of {
            Expr::Identifier(name) => (ident(name), None),
            Expr::Nested(inner) => match &**inner {
                Expr::Identifier(name) => (ident(name), None),
                inner => (called(inner), Some(inner)),
            },
            expr => (called(expr), Some(expr)),
        };
        let descends = match &order.options.sort {
            None | Some(OrderBySort::Asc) => false,
            Some(OrderBySort::Desc) => true,
            Some(_) => return unsupported("an index in this order"),
        };
        // Absent fields come first in indexes; which nulls come first is settled where rows are sorted.
        parts.push(Part {
            name,
            descends,
            nulls_first: order.options.nulls_first,
            class: column.operator_class.as_ref(),
            collation,
            expr,
        });
    }
    Ok(parts)
}

/// The columns that INCLUDE names.
///
/// Errors: 42703.
fn included_columns<'t>(table: &'t Table, include: &[String]) -> Result<Vec<&'t Column>> {
    let each = include.iter().map(|name| match table.column(name) {
        Some(column) => Ok(column),
        None => missing(name),
    });
    each.collect()
}

/// The parts that an index has beyond its key, so that included columns are read from entries: those that the key has not and that are one
/// value, as an array would make an entry for each element.
fn readable(parts: &[Part<'_>], included: &[&Column], unique: bool) -> Vec<Part<'static>> {
    let mut out: Vec<Part<'static>> = Vec::new();
    for column in included.iter().filter(|_| !unique) {
        let is_there = |part: &Part<'_>| part.expr.is_none() && part.name == column.name;
        let is_nested = matches!(column.ty, Type::Array(_) | Type::Jsonb | Type::Json);
        if is_nested || parts.iter().any(is_there) || out.iter().any(|part| part.name == column.name) {
            continue;
        }
        out.push(Part::of(&column.name, None));
    }
    out
}

fn missing<T>(column: &str) -> Result<T> {
    fail("42703", format!("column \"{column}\" does not exist"))
}

/// The specification of an index, the paths of columns of it that may be null, and the classes of operators of its parts.
pub(super) type Specified<'p> = (Document, Vec<String>, Vec<&'p str>);

/// An index on columns.
pub(super) fn plain<'p>(table: &Table, parts: &[&Part<'p>], method: Method, name: &str) -> Result<Specified<'p>> {
    let (mut key, mut nullable, mut classes) = (Document::new(), Vec::new(), Vec::new());
    for part in parts {
        let Some(column) = table.column(&part.name) else {
            return missing(&part.name);
        };
        check_collation(part, &column.ty)?;
        let path = column.path.clone();
        if !column.not_null {
            nullable.push(path.clone());
        }
        match (method, &column.ty) {
            (Method::Hash, _) => key.push(path, "hashed"),
            (Method::Inverted, Type::Array(_)) => key.push(path, 1),
            (Method::Inverted, Type::Jsonb) => key.push(format!("{path}.$**"), 1),
            (Method::Inverted | Method::Searched, ty) => {
                return unsupported(format!("an index on values of type {ty} alone"));
            }
            (Method::Ordered, _) => key.push(path, if part.descends { -1 } else { 1 }),
        }
        classes.push(class_of(part.class, method, &column.ty)?);
    }
    Ok((doc! { "v": 2, "key": key, "name": name }, nullable, classes))
}

/// An index some parts of which are computed, or whose rows are those of which conditions hold that no filter says.
///
/// One of columns alone computes the first of them.
pub(super) fn computed<'p>(
    table: &Arc<Table>,
    parts: &[&Part<'p>],
    method: Method,
    (name, create_unique): (&str, bool),
    conditions: Vec<(String, BoundExpr)>,
) -> Result<Specified<'p>> {
    let mut classes = Vec::new();
    let (mut key, mut texts, mut used) = (Document::new(), Vec::new(), Vec::new());
    let has_expressions = parts.iter().any(|part| part.expr.is_some());
    let mut use_columns = |bound: &BoundExpr| {
        bound.for_each_column(&mut |at| {
            if !used.contains(&at) {
                used.push(at);
            }
        });
    };
    for part in parts {
        let (text, bound) = match part.expr {
            Some(expr) => (expr.to_string(), indexed::bound(table, expr)?),
            None => {
                let column = Ident::with_quote('"', part.name.clone());
                let Some(column) = table.column(&part.name).map(|_| Expr::Identifier(column)) else {
                    return missing(&part.name);
                };
                let bound = indexed::bound(table, &column)?;
                if indexed::is_hashed(&bound) && method == Method::Ordered {
                    let ty = bound.ty();
                    return unsupported(format!(
                        "a column of type {ty} in an index beside expressions or conditions"
                    ));
                }
                (quoted(&part.name), bound)
            }
        };
        if create_unique && indexed::is_hashed(&bound) {
            return unsupported(format!("an expression of type {} in a unique index", bound.ty()));
        }
        check_collation(part, &bound.ty())?;
        classes.push(class_of(part.class, method, &bound.ty())?);
        use_columns(&bound);
        let is_computed = part.expr.is_some() || !has_expressions && texts.is_empty();
        match is_computed {
            true => {
                let plain = text.replace(['.', '$'], "_");
                let mut all = std::iter::once(plain.clone()).chain((2..).map(|n| format!("{plain} {n}")));
                let free = all.find(|name| key.get(name).is_none()).unwrap_or(plain);
                key.push(free, expression::NAME);
            }
            false => {
                let path = table.column(&part.name).map(|column| column.path.clone());
                key.push(path.unwrap_or_default(), if part.descends { -1 } else { 1 });
            }
        }
        texts.push(text);
    }
    let (conditions, bound): (Vec<String>, Vec<BoundExpr>) = conditions.into_iter().unzip();
    bound.iter().for_each(use_columns);
    let types: Vec<String> = used
        .iter()
        .map(|at| table.columns[*at].ty.written(table.columns[*at].modifier))
        .collect();
    let option = indexed::option(table, &used, &types, (&texts, &conditions));
    let specification = doc! { "v": 2, "key": key, "name": name, "sql": option };
    Ok((specification, Vec::new(), classes))
}

/// Refuses a collation that was said of values that have none.
///
/// Errors: 42804.
fn check_collation(part: &Part<'_>, ty: &Type) -> Result<()> {
    part.collation.map_or(Ok(()), |_| collation::check_type(ty))
}

/// The class of operators that a statement names for a part of this type; empty for the type's own. All of them are in the order that the index
/// has anyway: the type's own, and those that compare texts by their characters.
///
/// Errors: 42704 for classes that there are not, 42804 for those of other types.
fn class_of<'c>(class: Option<&'c ObjectName>, method: Method, ty: &Type) -> Result<&'c str> {
    let Some(class) = class else { return Ok("") };
    let [.., ObjectNamePart::Identifier(class)] = class.0.as_slice() else {
        return unsupported("a class of operators of this form");
    };
    let (number, word) = method.named();
    match classes::named(number, &class.value, ty) {
        Some(Named::Default) => Ok(""),
        Some(Named::Other) => Ok(&class.value),
        Some(Named::Unfit) => fail(
            "42804",
            format!("operator class \"{}\" does not accept data type {ty}", class.value),
        ),
        None => fail(
            "42704",
            format!(
                "operator class \"{}\" does not exist for access method \"{word}\"",
                class.value
            ),
        ),
    }
}

/// The index of a name, and what it is an index of.
pub(super) fn find(view: &dyn View, session: &SessionFacts, name: &str) -> Option<(Arc<Collection>, Arc<Index>)> {
    let database = view.catalog().database(&session.database)?;
    database.collections().find_map(|collection| {
        let named = |index: &&Arc<Index>| *index.name == *name || index_name(collection, index) == *name;
        let index = collection.indexes.iter().find(named)?;
        Some((collection.clone(), index.clone()))
    })
}

/// Refuses an index to go that something needs.
pub(super) type Unneeded<'r> = dyn Fn(&WriteSet, &Collection, &Index) -> Result<()> + 'r;

/// DROP INDEX.
pub(super) fn drop(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (names, if_exists): (&[ObjectName], bool),
    unneeded: &Unneeded<'_>,
    progress: &mut Progress,
) -> Result<&'static str> {
    let names: Vec<String> = names
        .iter()
        .map(|name| object_name(name).map(|(_, name)| name))
        .collect::<Result<_>>()?;
    statement.atomically(progress, |ws| {
        for name in &names {
            let found = find(ws, session, name);
            if let Some((collection, _)) = &found {
                session.check_right(&collection.ns, Right::DropIndex)?;
            }
            match found {
                Some((collection, index)) if !index.is_id() => {
                    let declared = Declared::of_collection(&collection);
                    let table = &collection.ns.coll;
                    if declared.is_some_and(|declared| declared.keeps_by_index(&index.name)) {
                        let message =
                            format!("cannot drop index {name} because constraint {name} on table {table} requires it");
                        let hint = format!("You can drop constraint {name} on table {table} instead.");
                        return Err(with(error("2BP01", message), &[(Field::Hint, &hint)]));
                    }
                    unneeded(ws, &collection, &index)?;
                    partition::check_index(&*ws, &collection, &index)?;
                    partition::drop_indexes(statement, ws, &collection, &index)?;
                    catalog::drop_index(statement, ws, &collection, &index)?;
                    comments::keep(statement, ws, &collection, &|kind, name| {
                        (kind != "indexes" || *name != *index.name).then(|| name.to_owned())
                    })?;
                }
                Some((collection, _)) => {
                    return fail(
                        "2BP01",
                        format!(
                            "cannot drop index {name} because table {} requires it",
                            collection.ns.coll
                        ),
                    );
                }
                None => pass_over(if_exists, error("42704", format!("index \"{name}\" does not exist")))?,
            }
        }
        Ok(())
    })?;
    Ok("DROP INDEX")
}
