//! `rotateCertificates`: reads certificates and lists of revoked ones anew. Without TLS there are none.

use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::rights::Action;
use nestor_model::bail;

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection("rotateCertificates", "Reads certificates anew.")
    .flags(Flags::ADMIN)
    .needs(Needs::server(Action::RotateCertificates))
    .runs(|context, _reply| {
        let args = RotateCertificates::parse(context.body, context.sequences)?;
        if let Some(message) = args.message {
            let ctx = format!("conn{}", context.conn.id);
            let attr = nestor_model::doc! { "message": message };
            context
                .service
                .node
                .log()
                .info("ACCESS", 9_000_002, &ctx, "rotateCertificates", attr);
        }
        if let Some(encryption) = context.service.node.transport.encryption()
            && let Err(error) = encryption.reload()
        {
            bail!(
                InvalidSSLConfiguration,
                "the certificates could not be read anew: {error}"
            );
        }
        Ok(())
    });

crate::args! {
    struct RotateCertificates<'a>: "rotateCertificates" command {
        "message" => message: Option<&'a str>,
    }
}
