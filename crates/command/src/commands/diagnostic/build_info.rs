//! `buildInfo`: the version. Clients choose what they may ask for by it, so it is the version of
//! MongoDB whose behaviour this is; Nestor's own stands beside it.

use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_model::{RawWriter, ValueRef};

/// Version of MongoDB that is spoken here.
pub const VERSION: &str = "8.0.4";
/// [`VERSION`] as numbers.
pub const VERSION_ARRAY: [i32; 4] = [8, 0, 4, 0];
/// `featureCompatibilityVersion`.
pub const FEATURE_VERSION: &str = "8.0";

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection("buildInfo", "Says which version this is.")
    .aliases(&["buildinfo"])
    .flags(Flags::QUIET.and(Flags::API_V1).and(Flags::BEFORE_API))
    .needs(Needs::Nothing)
    .runs(|context, reply| {
        BuildInfo::parse(context.body, context.sequences)?;
        write(reply, context.service.node.options.allocator);
        Ok(())
    });

crate::args! {
    struct BuildInfo: "buildInfo" command {}
}

/// `gitVersion` wherever it is asked for.
pub const GIT_VERSION: &str = "nestor";

/// Appends the fields of the reply. `allocator` names the memory allocator, unless it is the system's.
pub fn write(reply: &mut RawWriter, allocator: Option<&str>) {
    reply.append("version", VERSION);
    reply.append("gitVersion", GIT_VERSION);
    reply.begin_document("nestor");
    reply.append("version", env!("CARGO_PKG_VERSION"));
    reply.end();
    reply.begin_array("modules");
    reply.end();
    reply.append("allocator", allocator.unwrap_or("system"));
    reply.append("javascriptEngine", "none");
    reply.append("sysInfo", "deprecated");
    reply.begin_array("versionArray");
    for (i, part) in VERSION_ARRAY.into_iter().enumerate() {
        reply.append_index(i, part);
    }
    reply.end();
    reply.begin_document("buildEnvironment");
    reply.append("target_arch", std::env::consts::ARCH);
    reply.append("target_os", std::env::consts::OS);
    reply.end();
    reply.append("bits", usize::BITS as i32);
    reply.append("debug", cfg!(debug_assertions));
    reply.append("maxBsonObjectSize", nestor_model::raw::DOCUMENT_BYTES_MAX as i32);
    reply.begin_array("storageEngines");
    reply.append_index(0, ValueRef::String("nestor"));
    reply.end();
}
