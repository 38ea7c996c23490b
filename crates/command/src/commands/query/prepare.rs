//! Preparing commands that do not run themselves: those that are explained, and those whose rights are looked at first.

use crate::commands::query::aggregate::{self, AggregateArgs};
use crate::commands::query::count::{self, CountArgs};
use crate::commands::query::distinct::{self, DistinctArgs};
use crate::commands::query::explain::{self, ExplainArgs};
use crate::commands::query::find::{self, FindArgs};
use crate::commands::query::map_reduce::MapReduceArgs;
use crate::commands::query::{get_more, map_reduce};
use crate::commands::write::find_and_modify::{self, FindAndModifyArgs};
use crate::commands::write::{bulk_write, delete, insert, update};
use crate::context::Context;
use crate::facts::{Facts, Flags, Preparation};
use crate::request::Sequence;
use nestor_database::operation::pipeline::Purpose;
use nestor_database::operation::{Intent, Operation};
use nestor_model::{RawDoc, Result, bail};
use nestor_storage::View;

/// A command's words.
#[derive(Clone, Copy, Debug)]
pub struct Command<'a> {
    /// Its row of the table of commands.
    pub facts: &'static Facts,
    /// The document.
    pub body: RawDoc<'a>,
    /// Document sequences that came with it.
    pub sequences: &'a [Sequence<'a>],
}

/// What a command wants, prepared as running it would; `None` for commands that are no operation on documents. Explain
/// wants what it explains.
///
/// Errors: those of the command.
pub fn intent<'a>(context: &Context<'_>, view: &dyn View, command: Command<'a>) -> Result<Option<Intent<'a>>> {
    let Command { facts, body, sequences } = command;
    let purpose = Purpose::Explain;
    let Some(preparation) = facts.preparation else {
        return Ok(None);
    };
    let operation = match preparation {
        Preparation::Find => {
            let args = FindArgs::parse(body, sequences)?;
            find::check(&args)?;
            let ns = context.namespace(view, args.target)?;
            let collection = view.catalog().get(&ns).cloned();
            let found = (find::shape(&args, ns), collection);
            find::prepare(context, view, &args, found, purpose)?
        }
        Preparation::Count => {
            let args = CountArgs::parse(body, sequences)?;
            count::check_read_concern(context)?;
            count::prepare(context, view, &args, purpose)?
        }
        Preparation::Distinct => {
            let args = DistinctArgs::parse(body, sequences)?;
            let shape = distinct::shape(context, view, &args)?;
            distinct::prepare(context, view, &args, shape, purpose)?
        }
        Preparation::Aggregate => {
            let args = AggregateArgs::parse(body, sequences)?;
            let shape = aggregate::shape(context.db(), &args)?;
            aggregate::cursor(&args)?;
            aggregate::prepare(context, view, &args, shape, purpose)?
        }
        Preparation::FindAndModify => {
            let args = FindAndModifyArgs::parse(body, sequences)?;
            find_and_modify::prepare(context, view, &args)?
        }
        Preparation::Insert => return Ok(Some(Intent::Writes(insert::prepare(context, body, sequences)?))),
        Preparation::Update => return Ok(Some(Intent::Writes(update::prepare(context, body, sequences)?))),
        Preparation::Delete => return Ok(Some(Intent::Writes(delete::prepare(context, body, sequences)?))),
        Preparation::BulkWrite => return Ok(Some(Intent::Writes(bulk_write::prepare(body, sequences)?))),
        Preparation::GetMore => {
            let (_, ns) = get_more::prepare(context, body, sequences)?;
            return Ok(Some(Intent::Batch(ns)));
        }
        Preparation::Explain => {
            let args = ExplainArgs::parse(body, sequences)?;
            let command = Command {
                facts: explain::explained(context.service.commands, args.command)?,
                body: args.command,
                sequences: &[],
            };
            return intent(context, view, command);
        }
        Preparation::MapReduce => {
            let args = MapReduceArgs::parse(body, sequences)?;
            map_reduce::prepare(context, view, &args, purpose)?
        }
    };
    Ok(Some(Intent::Operation(Box::new(operation))))
}

/// The operation that a command is to be explained as: a read, or a write of one statement.
///
/// Errors: those of the command; 20 for commands that explain does not take, 16 for writes of several statements.
pub fn explained<'a>(context: &Context<'_>, view: &dyn View, command: Command<'a>) -> Result<Operation<'a>> {
    let name = command.facts.name;
    let intent = match name {
        _ if command.facts.flags.has(Flags::EXPLAINABLE) => intent(context, view, command)?,
        _ => None,
    };
    match intent {
        Some(Intent::Operation(operation)) => Ok(*operation),
        Some(Intent::Writes(writes)) => Operation::of_only(context, view, &writes),
        Some(Intent::Batch(_)) | None => bail!(IllegalOperation, "Explain cannot explain command: {name}"),
    }
}
