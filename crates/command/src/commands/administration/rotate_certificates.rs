//! `rotateCertificates`: reads certificates anew. Without TLS there are none.

use crate::facts::{Facts, Flags};
use crate::spec::CommandSpec;

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection(
    "rotateCertificates",
    "Reads certificates anew; there are none without TLS.",
)
.flags(Flags::ADMIN)
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
    Ok(())
});

crate::args! {
    struct RotateCertificates<'a>: "rotateCertificates" command {
        "message" => message: Option<&'a str>,
    }
}
