//! `compactStructuredEncryptionData`: merges what Queryable Encryption has written beside an encrypted collection.
//!
//! There are no encrypted collections ([`super::encrypted_fields`]), so none is ever found: what is wrong with the command
//! is told first.

use crate::args::CollectionName;
use crate::context::Context;
use crate::facts::Facts;
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::names;
use nestor_database::rights::Action;
use nestor_model::{RawDoc, RawWriter, Result, bail};

/// The command.
pub const SPEC: CommandSpec = Facts::collection(
    "compactStructuredEncryptionData",
    "Finds no encrypted collection that it could compact.",
)
.needs(Needs::collection(Action::CompactStructuredEncryptionData))
.runs(run);

crate::args! {
    /// Arguments of `compactStructuredEncryptionData`.
    pub struct CompactEncryptedArgs<'a>: "compactStructuredEncryptionData" command {
        "compactStructuredEncryptionData" => coll: CollectionName<'a>,
        /// Checked for its form only.
        #[allow(dead_code)]
        "compactionTokens" => compaction_tokens: RawDoc<'a>,
        /// Checked for its form only.
        #[allow(dead_code)]
        "encryptionInformation" => encryption_information: Option<RawDoc<'a>>,
        /// Checked for its form only.
        #[allow(dead_code)]
        "anchorPaddingFactor" => anchor_padding_factor: Option<f64>,
    }
}

fn run(context: &mut Context<'_>, _: &mut RawWriter) -> Result<()> {
    let args = CompactEncryptedArgs::parse(context.body, context.sequences)?;
    let ns = names::collection(context.db(), args.coll.0)?;
    let read = context.current_view();
    match read.view().catalog().get(&ns) {
        None => bail!(NamespaceNotFound, "collection does not exist: {ns}"),
        Some(view) if view.is_view() => bail!(CommandNotSupportedOnView, "{ns} is a view, not a collection"),
        Some(_) => bail!(6346807, "{ns} is not a collection with encrypted fields"),
    }
}
