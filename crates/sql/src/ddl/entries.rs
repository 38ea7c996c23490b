//! Entries of types, which hold no documents.

use super::{hold_schema, new_namespace};
use crate::bind::{entry, object_name};
use crate::error::{fail, unsupported};
use crate::run::tables::SessionFacts;
use crate::types::Type;
use crate::types::composite::Composite;
use nestor_database::rights::Action as Right;
use nestor_database::statement::Statement;
use nestor_database::write::{Progress, catalog};
use nestor_model::{CollectionOptions, Document, Namespace, Result, doc};
use nestor_storage::{View as _, WriteSet};
use sqlparser::ast::{Ident, ObjectName};

/// CREATE TYPE: an entry with the validator that is made for its name.
///
/// Errors: 42710 for a name that a type or a table has; those of `validator`.
pub(super) fn create(
    statement: &Statement<'_>,
    session: &SessionFacts,
    name: &ObjectName,
    progress: &mut Progress,
    validator: impl Fn(&WriteSet, &Namespace) -> Result<Document>,
) -> Result<&'static str> {
    let ns = new_namespace(statement, session, name)?;
    if *ns.db != *session.database {
        return unsupported("a type in another database");
    }
    session.check_right(&ns, Right::CreateCollection)?;
    let (_, plain) = object_name(name)?;
    if Type::of_name(&plain).is_some() {
        return fail("42710", format!("type \"{plain}\" already exists"));
    }
    let uuid = statement.database.new_uuid();
    statement.atomically(progress, |ws| match ws.catalog().get(&ns) {
        // Types and tables share their names.
        Some(_) => fail("42710", format!("type \"{plain}\" already exists")),
        None => {
            let options = CollectionOptions::parse(doc! {
                "validator": validator(ws, &ns)?,
                "validationLevel": "strict",
                "validationAction": "error",
            })?;
            hold_schema(statement, ws, &ns);
            catalog::create(statement, ws, &ns, uuid, &options)
        }
    })?;
    Ok("CREATE TYPE")
}

/// The validator that keeps the declaration of a composite type.
///
/// Errors: those of [`Composite::check_size`].
pub(super) fn composite(own: &Composite) -> Result<Document> {
    own.check_size()?;
    let each = own.attributes.iter().map(|own| {
        let name = Ident::with_quote('"', own.name.as_str());
        format!("{name} {}", own.ty.written(own.modifier))
    });
    let name = Ident::with_quote('"', own.name.as_str());
    let text = format!("CREATE TYPE {name} AS ({})", each.collect::<Vec<_>>().join(", "));
    Ok(entry::validator(entry::COMPOSITE, &text))
}
