//! `client` of the first hello: driver, operating system, platform and application.
//!
//! Source: driver specification "MongoDB Handshake".

use crate::args::wrong_type;
use crate::context::Context;
use nestor_model::value::DocRef;
use nestor_model::{Result, ValueRef, bail};

/// Largest metadata document, in bytes.
const BYTES_MAX: usize = 512;
/// Longest application name, in bytes.
const APP_NAME_BYTES_MAX: usize = 128;

/// Checks the metadata and keeps it with the connection. It may be sent once.
pub fn set(context: &mut Context<'_>, value: ValueRef<'_>) -> Result<()> {
    if context.conn.parked.is_some() {
        // The same request again, after it waited.
        return Ok(());
    }
    let ValueRef::Document(doc) = value else {
        return Err(wrong_type("hello.client", value.bson_type(), "object"));
    };
    let mut client = crate::lock(&context.conn.slot.client);
    if client.is_some() {
        bail!(
            ClientMetadataCannotBeMutated,
            "The client metadata document may only be sent in the first hello"
        );
    }
    check(doc)?;
    let document = doc.to_document();
    context.service.node.log().info(
        "NETWORK",
        51800,
        &format!("conn{}", context.conn.id),
        "client metadata",
        nestor_model::doc! { "remote": context.conn.peer.clone(), "doc": document.clone() },
    );
    *client = Some(document.clone());
    drop(client);
    let local = nestor_database::audit::end(context.conn.host);
    let param = || nestor_model::doc! { "localEndpoint": local, "clientMetadata": document };
    context.note("clientMetadata", param, None);
    Ok(())
}

fn check(doc: DocRef<'_>) -> Result<()> {
    if doc.to_raw().as_bytes().len() > BYTES_MAX {
        bail!(
            ClientMetadataDocumentTooLarge,
            "The client metadata document must be less then or equal to {BYTES_MAX} bytes"
        );
    }
    if let Some(application) = part(doc, "application")? {
        if let Some(name) = text(application, "application", "name")? {
            if name.len() > APP_NAME_BYTES_MAX {
                bail!(
                    ClientMetadataAppNameTooLarge,
                    "The 'client.application.name' field must be less then or equal to {APP_NAME_BYTES_MAX} bytes in the client metadata document"
                );
            }
        }
    }
    for (section, fields) in [("driver", &["name", "version"][..]), ("os", &["type"])] {
        let Some(doc) = part(doc, section)? else {
            bail!(
                ClientMetadataMissingField,
                "Missing required sub-document '{section}' in the client metadata document"
            );
        };
        for field in fields {
            if text(doc, section, field)?.is_none() {
                bail!(
                    ClientMetadataMissingField,
                    "Missing required field '{field}' in the 'client.{section}' part of the client metadata document"
                );
            }
        }
    }
    Ok(())
}

fn part<'a>(doc: DocRef<'a>, name: &str) -> Result<Option<DocRef<'a>>> {
    match doc.get(name) {
        None => Ok(None),
        Some(ValueRef::Document(part)) => Ok(Some(part)),
        Some(_) => bail!(
            TypeMismatch,
            "The '{name}' field is required to be a BSON document in the client metadata document"
        ),
    }
}

fn text<'a>(doc: DocRef<'a>, section: &str, name: &str) -> Result<Option<&'a str>> {
    match doc.get(name) {
        None => Ok(None),
        Some(ValueRef::String(text)) => Ok(Some(text)),
        Some(_) => bail!(
            TypeMismatch,
            "The 'client.{section}.{name}' field must be a string in the client metadata document"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::{Document, doc};

    #[test]
    fn rules_of_the_handshake() {
        let driver = doc! { "name": "d", "version": "1" };
        let os = doc! { "type": "Linux" };
        let with =
            |application: Document| doc! { "application": application, "driver": driver.clone(), "os": os.clone() };
        let cases: &[(Document, i32)] = &[
            (with(doc! { "name": "x".repeat(128) }), 0),
            (
                doc! { "driver": driver.clone(), "os": os.clone(), "platform": "p", "env": doc! {} },
                0,
            ),
            (with(doc! { "name": "x".repeat(129) }), 184),
            (with(doc! { "name": 1 }), 14),
            (
                doc! { "driver": driver.clone(), "os": os.clone(), "pad": "x".repeat(500) },
                185,
            ),
            (doc! { "os": os.clone() }, 183),
            (doc! { "driver": doc! { "name": "d" }, "os": os.clone() }, 183),
            (doc! { "driver": driver.clone(), "os": doc! {} }, 183),
            (doc! { "driver": "d", "os": os.clone() }, 14),
        ];
        for (doc, code) in cases {
            let got = check(doc.as_ref()).err().map_or(0, |e| e.code().number());
            assert_eq!(got, *code, "{doc:?}");
        }
    }
}
