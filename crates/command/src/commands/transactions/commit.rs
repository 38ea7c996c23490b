//! `commitTransaction`.

use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::observe::op_kind::OpKind;
use nestor_database::sessions::transaction::State;
use nestor_database::statement::transaction::commit;
use nestor_model::{RawDoc, RawWriter, Result, ValueRef, bail};

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection("commitTransaction", "Commits a transaction.")
    .flags(
        Flags::API_V1
            .and(Flags::ADMIN)
            .and(Flags::WRITE)
            .and(Flags::LONG)
            .and(Flags::USUALLY_SHORT)
            .and(Flags::TXN)
            .and(Flags::WRITE_CONCERN)
            .and(Flags::ENDS_TXN)
            .and(Flags::COMMITS),
    )
    .op(OpKind::EndTransaction)
    .needs(Needs::Login)
    .runs(run);

crate::args! {
    /// Arguments of `commitTransaction`.
    pub struct CommitArgs<'a>: "commitTransaction" command {
        "commitTransaction" => marker: Option<ValueRef<'a>>,
        "recoveryToken" => recovery_token: Option<RawDoc<'a>>,
        "commitTimestamp" => commit_timestamp: Option<ValueRef<'a>>,
        "durableTimestamp" => durable_timestamp: Option<ValueRef<'a>>,
        "prepareTimestamp" => prepare_timestamp: Option<ValueRef<'a>>,
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    CommitArgs::parse(context.body, context.sequences)?;
    if !context.terms.in_transaction {
        bail!(CommandFailed, "commitTransaction must be run within a transaction");
    }
    let txn = context.txn.borrow_mut().take();
    let last = match txn {
        Some(txn) => {
            let last = commit(context, txn)?;
            context.effects.transaction = Some(State::Committed(last));
            last
        }
        // Committed before: the same answer again.
        None => context.committed_before,
    };
    context.finish_concern(last, reply, false)
}
