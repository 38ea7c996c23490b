//! `killCursors`: closes cursors.

use crate::args::CollectionName;
use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::privileges;
use crate::spec::CommandSpec;
use nestor_database::names;
use nestor_database::rights::Action;
use nestor_model::{RawWriter, Result, bail};

/// The command.
pub const SPEC: CommandSpec = Facts::collection("killCursors", "Closes cursors by id.")
    .flags(Flags::API_V1.and(Flags::TXN).and(Flags::SESSION_READ_CONCERN))
    .needs(Needs::Login)
    .runs(run);

crate::args! {
    /// Arguments of `killCursors`.
    pub struct KillCursorsArgs<'a>: "killCursors" command {
        "killCursors" => coll: CollectionName<'a>,
        "cursors" => cursors: Vec<i64>,
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = KillCursorsArgs::parse(context.body, context.sequences)?;
    if context.terms.start_transaction {
        // A transaction that this command would begin has no cursors yet.
        bail!(
            OperationNotSupportedInTransaction,
            "Cannot run 'killCursors' as the first operation in a multi-document transaction."
        );
    }
    // The namespace must be one; MongoDB kills cursors of others too.
    let ns = names::cursor_namespace(context.db(), args.coll.0)?;
    // Everybody may close their own.
    let may_kill_any =
        privileges::grants(context).is_none_or(|grants| grants.on_collection(&ns).has(Action::KillAnyCursor));
    let user = privileges::user(context);
    let cursors = &context.service.cursors;
    if !may_kill_any && args.cursors.iter().any(|id| cursors.is_of_another(*id, user)) {
        bail!(Unauthorized, "not authorized to kill cursors of other users");
    }
    let (killed, not_found): (Vec<i64>, Vec<i64>) = args
        .cursors
        .into_iter()
        .partition(|id| context.service.cursors.kill(*id, None));
    let mut list = |name: &str, ids: &[i64]| {
        reply.begin_array(name);
        for (i, id) in ids.iter().enumerate() {
            reply.append_index(i, *id);
        }
        reply.end();
    };
    list("cursorsKilled", &killed);
    list("cursorsNotFound", &not_found);
    list("cursorsAlive", &[]);
    list("cursorsUnknown", &[]);
    Ok(())
}
