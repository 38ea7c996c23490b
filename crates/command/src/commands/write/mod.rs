//! Commands that write documents.

pub mod bulk_write;
pub mod delete;
pub mod find_and_modify;
pub mod insert;
pub mod update;

use crate::context::Context;
use crate::facts::Flags;
use crate::spec::CommandSpec;
use nestor_database::uuid::Uuid;
use nestor_database::{names, write};
use nestor_model::{Document, Namespace, RawDoc, Result, ValueRef, doc};

/// The family.
pub const SPECS: &[&CommandSpec] = &[
    &insert::SPEC,
    &update::SPEC,
    &delete::SPEC,
    &find_and_modify::SPEC,
    &bulk_write::SPEC,
];

/// Properties that the write commands share.
pub(crate) const WRITE_FLAGS: Flags = Flags::API_V1
    .and(Flags::WRITE)
    .and(Flags::LONG)
    .and(Flags::TXN)
    .and(Flags::WRITE_CONCERN)
    .and(Flags::TXN_READ_CONCERN)
    .and(Flags::RETRYABLE);

/// The collection that a command writes to.
///
/// Errors: 73 (InvalidNamespace), also of collections that nobody writes to; that it does not have the UUID that the client expects.
fn written(context: &Context<'_>, name: &str, uuid: Option<Uuid>) -> Result<Namespace> {
    let ns = names::collection(context.db(), name)?;
    write::check_document_namespace(&ns)?;
    write::check_uuid(context, &ns, uuid)?;
    Ok(ns)
}

/// A statement of `update` or `delete` as the profiler shows it: as it was sent, with the name of an index marked as one.
///
/// Source: `system.profile` of MongoDB 4.4 and later, `hint: {$hint: "a_1"}`.
fn profiled(statement: RawDoc<'_>) -> Document {
    let mut out = statement.as_doc().to_document();
    if let Some(ValueRef::String(name)) = statement.get("hint") {
        out.set("hint", doc! { "$hint": name });
    }
    out
}
