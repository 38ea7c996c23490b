//! `dropDatabase`: removes all collections and views of a database.

use super::DDL_FLAGS;
use crate::args::InRange;
use crate::audited::{self, Audited};
use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::rights::Action;
use nestor_database::write::Progress;
use nestor_model::namespace::is_internal_database;
use nestor_model::{RawWriter, Result, bail};

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection("dropDatabase", "Removes a database.")
    .flags(DDL_FLAGS.and(Flags::API_V1).and(Flags::DROPS))
    .needs(Needs::database(Action::DropDatabase))
    .audited(Audited::Attempts(audited::drop_database))
    .runs(run);

crate::args! {
    /// Arguments of `dropDatabase`.
    pub struct DropDatabaseArgs: "dropDatabase" command {
        "dropDatabase" => marker: InRange<1, 1>,
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = DropDatabaseArgs::parse(context.body, context.sequences);
    if let Err(error) = args {
        // MongoDB has its own code for a marker other than 1.
        if error.code() == nestor_model::ErrorCode::BadValue {
            bail!(5255100, "dropDatabase expects 1 as its argument");
        }
        return Err(error);
    }
    let db = context.db();
    if is_internal_database(db) {
        bail!(IllegalOperation, "Dropping the '{db}' database is prohibited.");
    }
    context.check_write_concern()?;
    let mut progress = Progress::default();
    context.atomically(&mut progress, |ws| {
        nestor_database::write::catalog::drop_database(context, ws, db)
    })?;
    context.service.profiler.forget(db);
    context.finish_concern(progress.last, reply, false)
}
