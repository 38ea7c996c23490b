//! `trafficControl` of `serverStatus`: what the limits for operations let in and refused.

use crate::context::Context;
use nestor_model::RawWriter;

pub(super) fn write(context: &Context<'_>, reply: &mut RawWriter) {
    let traffic = &context.service.traffic;
    reply.append("refused", traffic.refused.get());
    reply.begin_array("limits");
    for (i, limit) in traffic.all().iter().enumerate() {
        reply.append_index(i, &limit.to_document());
    }
    reply.end();
}
