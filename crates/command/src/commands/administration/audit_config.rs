//! `setAuditConfig` and `getAuditConfig`: which records the audit log wants. Both are an older face of the cluster parameter
//! `auditConfig`, as in MongoDB.
//!
//! Source: manual, "setAuditConfig", "getAuditConfig", "auditConfig".

use super::cluster_parameter;
use crate::args::StrictBool;
use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::rights::Action;
use nestor_model::{RawDoc, Result, bail, doc};

/// `setAuditConfig`.
pub const SET: CommandSpec = Facts::no_collection("setAuditConfig", "Changes what is audited.")
    .flags(Flags::ADMIN.and(Flags::WRITE).and(Flags::LONG))
    .needs(Needs::server(Action::AuditConfigure))
    .runs(|context, reply| {
        let args = Set::parse(context.body, context.sequences)?;
        check_runtime(context)?;
        let value = doc! { "filter": args.filter.to_buf(), "auditAuthorizationSuccess": args.success.0 };
        cluster_parameter::put(context, "auditConfig", value.as_ref(), reply)
    });

/// `getAuditConfig`.
pub const GET: CommandSpec = Facts::no_collection("getAuditConfig", "Answers what is audited.")
    .flags(Flags::ADMIN)
    .needs(Needs::server(Action::AuditConfigure))
    .runs(|context, reply| {
        Get::parse(context.body, context.sequences)?;
        let node = &context.service.node;
        if !node.audit().is_on() {
            bail!(
                IllegalOperation,
                "auditing is not enabled: start with --auditDestination"
            );
        }
        for (name, value) in node.audit().config().to_document().iter() {
            reply.append(name, value);
        }
        if let Some((_, time)) = node.cluster_parameters.get("auditConfig") {
            reply.append("clusterParameterTime", time);
        }
        Ok(())
    });

fn check_runtime(context: &Context<'_>) -> Result<()> {
    if !context.service.node.audit().is_runtime() {
        bail!(
            IllegalOperation,
            "the audit configuration cannot be changed at run time: start with --auditRuntimeConfiguration"
        );
    }
    Ok(())
}

crate::args! {
    struct Set<'a>: "setAuditConfig" command {
        "filter" => filter: RawDoc<'a>,
        "auditAuthorizationSuccess" => success: StrictBool,
    }
}

crate::args! {
    struct Get: "getAuditConfig" command {
    }
}
