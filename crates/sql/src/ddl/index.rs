//! CREATE INDEX and DROP INDEX.

use super::keys::limit;
use super::{namespace, partial};
use crate::bind::declared::Declared;
use crate::bind::{ident, object_name};
use crate::catalog::schemas;
use crate::error::{error, fail, unsupported};
use crate::notices::pass_over;
use crate::run::tables::{Reading, SessionFacts, index_name};
use crate::types::Type;
use nestor_database::index_build;
use nestor_database::parameters::Param;
use nestor_database::rights::Action as Right;
use nestor_database::statement::Statement;
use nestor_database::write::{Progress, catalog, comments};
use nestor_model::{Document, IndexSpec, Namespace, Result, doc};
use nestor_storage::View as _;
use sqlparser::ast::{CreateIndex, Expr, IndexType, ObjectName, OrderBySort};

/// How a look at the collection ended.
enum Step {
    /// The index is there.
    Done,
    /// It is to be filled beside writers, for which a place is needed.
    Enter,
    /// It has been started.
    Started(nestor_storage::CollectionId, std::sync::Arc<nestor_storage::Index>),
}

/// CREATE INDEX.
pub(super) fn create(
    statement: &Statement<'_>,
    session: &SessionFacts,
    create: &CreateIndex,
    progress: &mut Progress,
) -> Result<&'static str> {
    let refused = !create.include.is_empty()
        || create.nulls_distinct == Some(false)
        || !create.with.is_empty()
        || !create.index_options.is_empty()
        || !create.alter_options.is_empty()
        || create.r#async
        || !matches!(create.using, None | Some(IndexType::BTree));
    if refused {
        return unsupported("a clause of this CREATE INDEX");
    }
    if create.concurrently && statement.in_transaction() {
        return fail(
            "25001",
            "CREATE INDEX CONCURRENTLY cannot run inside a transaction block",
        );
    }
    let ns = namespace(statement, session, &create.table_name)?;
    session.check_right(&ns, Right::CreateIndex)?;
    let mut parts: Vec<(String, bool, Option<&ObjectName>)> = Vec::new();
    for column in &create.columns {
        let order = &column.column;
        let Expr::Identifier(name) = &order.expr else {
            return unsupported("an index on an expression");
        };
        let descending = match &order.options.sort {
            None | Some(OrderBySort::Asc) => false,
            Some(OrderBySort::Desc) => true,
            Some(_) => return unsupported("an index in this order"),
        };
        // Absent fields come first in indexes; which nulls come first is settled where rows are sorted.
        parts.push((ident(name), descending, column.operator_class.as_ref()));
    }
    let names: Vec<&str> = parts.iter().map(|(name, ..)| name.as_str()).collect();
    let name = match &create.name {
        Some(name) => object_name(name)?.1,
        None => {
            let table = schemas::split(statement.current_view().view(), &ns).1.to_owned();
            format!("{table}_{}_idx", names.join("_"))
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
            let mut key = Document::new();
            let mut nullable = Vec::new();
            for (part, descending, class) in &parts {
                let column = table.columns.iter().find(|column| column.name == *part);
                let path = match column {
                    Some(column) => column.path.clone(),
                    None => return fail("42703", format!("column \"{part}\" does not exist")),
                };
                if column.is_some_and(|column| !column.not_null) {
                    nullable.push(path.clone());
                }
                if let (Some(class), Some(column)) = (class, column) {
                    check_class(class, &column.ty)?;
                }
                key.push(path, if *descending { -1 } else { 1 });
            }
            let mut listed = doc! { "v": 2, "key": key, "name": name.as_str() };
            if create.unique {
                listed.push("unique", true);
            }
            if let Some(predicate) = &create.predicate {
                let reading = Reading::new(statement, &*ws, &op, session);
                let filter = partial::filter(&reading, &table, predicate)?;
                listed.push("partialFilterExpression", filter);
            }
            if create.unique {
                limit(&mut listed, nullable);
            }
            let spec = IndexSpec::parse(listed.to_raw())?;
            statement.check_index(&collection, &spec)?;
            if statement.in_transaction() || (index_build::is_small(ws, &collection) && attempts <= 3) {
                catalog::create_index(statement, ws, &ns, &spec)?;
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

/// A class of operators by which an index is in the order that it has anyway: the type's own, and the one that compares texts by their
/// characters.
///
/// Errors: 42704 for classes that there are not, 42804 for those of other types.
fn check_class(class: &ObjectName, ty: &Type) -> Result<()> {
    let (_, class) = object_name(class)?;
    let is_text = |ty: &Type| matches!(ty, Type::Text | Type::Varchar | Type::Name);
    let fits = match class.as_str() {
        "text_pattern_ops" | "varchar_pattern_ops" | "text_ops" | "varchar_ops" => is_text(ty),
        "bpchar_pattern_ops" | "bpchar_ops" => *ty == Type::Bpchar,
        "int2_ops" => *ty == Type::Int2,
        "int4_ops" => *ty == Type::Int4,
        "int8_ops" => *ty == Type::Int8,
        "float4_ops" => *ty == Type::Float4,
        "float8_ops" => *ty == Type::Float8,
        "numeric_ops" => *ty == Type::Numeric,
        "bool_ops" => *ty == Type::Bool,
        "date_ops" => *ty == Type::Date,
        "timestamp_ops" => *ty == Type::Timestamp,
        "timestamptz_ops" => *ty == Type::Timestamptz,
        "time_ops" => *ty == Type::Time,
        "uuid_ops" => *ty == Type::Uuid,
        "bytea_ops" => *ty == Type::Bytea,
        _ => {
            let message = format!("operator class \"{class}\" does not exist for access method \"btree\"");
            return fail("42704", message);
        }
    };
    match fits {
        true => Ok(()),
        false => fail(
            "42804",
            format!("operator class \"{class}\" does not accept data type {ty}"),
        ),
    }
}

/// DROP INDEX.
pub(super) fn drop(
    statement: &Statement<'_>,
    session: &SessionFacts,
    (names, if_exists): (&[ObjectName], bool),
    progress: &mut Progress,
) -> Result<&'static str> {
    let names: Vec<String> = names
        .iter()
        .map(|name| object_name(name).map(|(_, name)| name))
        .collect::<Result<_>>()?;
    statement.atomically(progress, |ws| {
        for name in &names {
            let database = ws.catalog().database(&session.database).cloned();
            let found = database
                .iter()
                .flat_map(|database| database.collections())
                .find_map(|collection| {
                    let named = |index: &&std::sync::Arc<nestor_storage::Index>| {
                        *index.name == **name || index_name(collection, index) == *name
                    };
                    let index = collection.indexes.iter().find(named)?;
                    Some((collection.clone(), index.clone()))
                });
            if let Some((collection, _)) = &found {
                session.check_right(&collection.ns, Right::DropIndex)?;
            }
            match found {
                Some((collection, index)) if !index.is_id() => {
                    let declared = Declared::of_collection(&collection);
                    let mut keys = declared.iter().flat_map(|declared| &declared.unique);
                    if keys.any(|key| *key.name == *index.name) {
                        return fail(
                            "2BP01",
                            format!(
                                "cannot drop index {name} because a constraint on table {} requires it",
                                collection.ns.coll
                            ),
                        );
                    }
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
