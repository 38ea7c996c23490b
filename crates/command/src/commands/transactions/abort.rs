//! `abortTransaction`.

use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::observe::op_kind::OpKind;
use nestor_database::sessions::transaction::State;
use nestor_model::{RawDoc, RawWriter, Result, ValueRef, bail};

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection("abortTransaction", "Aborts a transaction.")
    .flags(
        Flags::API_V1
            .and(Flags::ADMIN)
            .and(Flags::TXN)
            .and(Flags::WRITE_CONCERN)
            .and(Flags::ENDS_TXN),
    )
    .op(OpKind::EndTransaction)
    .needs(Needs::Login)
    .runs(run);

crate::args! {
    /// Arguments of `abortTransaction`.
    pub struct AbortArgs<'a>: "abortTransaction" command {
        "abortTransaction" => marker: Option<ValueRef<'a>>,
        "recoveryToken" => recovery_token: Option<RawDoc<'a>>,
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    AbortArgs::parse(context.body, context.sequences)?;
    if !context.terms.in_transaction {
        bail!(CommandFailed, "abortTransaction must be run within a transaction");
    }
    drop(context.txn.borrow_mut().take());
    context.effects.transaction = Some(State::Aborted);
    context.finish_concern(None, reply, false)
}
