//! Preparing commands that do not run themselves: those that are explained, and those whose rights are looked at first.

use crate::commands::query::aggregate::{self, AggregateArgs};
use crate::commands::query::count::{self, CountArgs};
use crate::commands::query::distinct::{self, DistinctArgs};
use crate::commands::query::explain::{self, ExplainArgs};
use crate::commands::query::find::{self, FindArgs};
use crate::commands::query::get_more::GetMoreArgs;
use crate::commands::query::map_reduce;
use crate::commands::write::bulk_write::{self, BulkWriteArgs};
use crate::commands::write::delete::{self, DeleteArgs};
use crate::commands::write::find_and_modify::{self, FindAndModifyArgs};
use crate::commands::write::insert::{self, InsertArgs};
use crate::commands::write::update::{self, UpdateArgs};
use crate::context::Context;
use crate::request::Sequence;
use nestor_database::names;
use nestor_database::operation::pipeline::Purpose;
use nestor_database::operation::{Access, Operation};
use nestor_database::read;
use nestor_database::shape::{Shape, Words};
use nestor_database::write;
use nestor_database::write::prepared::Prepared;
use nestor_database::write::statements::{WriteOp, Writes};
use nestor_model::{RawDoc, Result, bail};
use nestor_storage::View;

/// A command's words.
#[derive(Clone, Copy, Debug)]
pub struct Command<'a> {
    /// The name that its spec has.
    pub name: &'static str,
    /// The document.
    pub body: RawDoc<'a>,
    /// What came beside it.
    pub sequences: &'a [Sequence<'a>],
}

/// Prepares a read, or a write of one statement, as running it would, and hands it to `then`.
///
/// Errors: those of the command; 20 for commands that are no operation on documents, 16 for writes of several statements.
pub fn operation<T>(
    context: &Context<'_>,
    view: &dyn View,
    command: Command<'_>,
    then: impl FnOnce(Operation<'_>) -> Result<T>,
) -> Result<T> {
    let Command { name, body, sequences } = command;
    let purpose = Purpose::Explain;
    match name {
        "find" => {
            let args = FindArgs::parse(body, sequences)?;
            find::check(&args)?;
            let ns = context.namespace(view, args.target)?;
            let collection = view.catalog().get(&ns).cloned();
            let found = (find::shape(&args, ns), collection);
            then(find::prepare(context, view, &args, found, purpose)?)
        }
        "count" => {
            let args = CountArgs::parse(body, sequences)?;
            count::check_read_concern(context)?;
            then(count::prepare(context, view, &args, purpose)?)
        }
        "distinct" => {
            let args = DistinctArgs::parse(body, sequences)?;
            let shape = distinct::shape(context, view, &args)?;
            then(distinct::prepare(context, view, &args, shape, purpose)?)
        }
        "aggregate" => {
            let args = AggregateArgs::parse(body, sequences)?;
            let shape = aggregate::shape(context.db(), &args)?;
            aggregate::cursor(&args)?;
            then(aggregate::prepare(context, view, &args, shape, purpose)?)
        }
        "update" => {
            let args = UpdateArgs::parse(body, sequences)?;
            let ns = names::collection(context.db(), args.coll.0)?;
            then(only(context, view, name, &update::writes(context, args, &ns)?)?)
        }
        "delete" => {
            let args = DeleteArgs::parse(body, sequences)?;
            let ns = names::collection(context.db(), args.coll.0)?;
            then(only(context, view, name, &delete::writes(context, args, &ns)?)?)
        }
        "findAndModify" => {
            let args = FindAndModifyArgs::parse(body, sequences)?;
            then(find_and_modify::prepare(context, view, &args)?)
        }
        "mapReduce" => Err(map_reduce::refusal()),
        // A command without the flag `EXPLAINABLE`: a test of the table of commands holds the two together.
        _ => bail!(IllegalOperation, "Explain cannot explain command: {name}"),
    }
}

/// The operation that the only statement of a write command is.
///
/// Errors: 16 when there are several, 166 on a view, and those of the statement.
fn only<'a>(
    context: &Context<'_>,
    view: &dyn View,
    command: &'static str,
    writes: &Writes<'a>,
) -> Result<Operation<'a>> {
    let [statement] = writes.statements.as_slice() else {
        bail!(InvalidLength, "explained write batches must be of size 1");
    };
    let ns = &writes.namespaces[statement.ns];
    let collection = view.catalog().get(ns).cloned();
    if let Some(collection) = &collection {
        write::check_writable(collection)?;
    }
    let (op, scope) = context.operation(writes.variables)?;
    let (own, mut scope) = read::statement(&op, &scope, statement.op.collation(), collection.as_deref())?;
    let mut prepared = Prepared::new(&statement.op, collection.as_deref(), &mut scope)?;
    prepared.bypass_validation = writes.bypass_validation;
    let (filter, sort, collation) = match &statement.op {
        WriteOp::Insert(_) => (None, None, None),
        WriteOp::Update(update) => (Some(update.filter), update.sort, update.collation),
        WriteOp::Delete(delete) => (Some(delete.filter), delete.sort, delete.collation),
    };
    let shape = Shape {
        command,
        ns: ns.clone(),
        words: Words {
            filter,
            sort,
            collation,
            variables: writes.variables,
            ..Words::default()
        },
    };
    Ok(Operation::of_write(shape, collection, own.unwrap_or(op), prepared))
}

/// What a command reads and writes, and which rights that needs; `None` for commands that are no operation on documents.
/// The batches of a cursor need no rights but having opened it; explaining needs those of what is explained.
///
/// Errors: those of the command.
pub fn access(context: &Context<'_>, view: &dyn View, command: Command<'_>) -> Result<Option<Access>> {
    let Command { name, body, sequences } = command;
    let db = context.db();
    Ok(Some(match name {
        "insert" => {
            let args = InsertArgs::parse(body, sequences)?;
            let ns = names::collection(db, args.coll.0)?;
            Access::of_writes(&insert::writes(context, args, &ns)?, view)?
        }
        "update" => {
            let args = UpdateArgs::parse(body, sequences)?;
            let ns = names::collection(db, args.coll.0)?;
            Access::of_writes(&update::writes(context, args, &ns)?, view)?
        }
        "delete" => {
            let args = DeleteArgs::parse(body, sequences)?;
            let ns = names::collection(db, args.coll.0)?;
            Access::of_writes(&delete::writes(context, args, &ns)?, view)?
        }
        "bulkWrite" => {
            let args = BulkWriteArgs::parse(body, sequences)?;
            let namespaces = bulk_write::namespaces(context, &args)?;
            Access::of_writes(&bulk_write::writes(&args, &namespaces)?, view)?
        }
        "getMore" => {
            let args = GetMoreArgs::parse(body, sequences)?;
            Access::of_cursor(names::cursor_namespace(db, args.coll)?)
        }
        "explain" => {
            let args = ExplainArgs::parse(body, sequences)?;
            let spec = explain::explained(context.service.commands, args.command)?;
            let command = Command {
                name: spec.name,
                body: args.command,
                sequences: &[],
            };
            return access(context, view, command);
        }
        "mapReduce" => return Err(map_reduce::refusal()),
        "find" | "count" | "distinct" | "aggregate" | "findAndModify" => {
            operation(context, view, command, |operation| Access::of(&operation, view))?
        }
        _ => return Ok(None),
    }))
}
