//! `top`: time and number of operations by collection.

use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::observe::top::KINDS;
use nestor_database::rights::Action;
use nestor_model::RawWriter;

/// The command. Fields it does not know it passes over, as MongoDB does.
pub const SPEC: CommandSpec = Facts::no_collection("top", "Answers time and number of operations by collection.")
    .flags(Flags::ADMIN.and(Flags::QUIET))
    .needs(Needs::server(Action::Top))
    .runs(|context, reply| {
        reply.begin_document("totals");
        reply.append("note", "all times in microseconds");
        for (namespace, usage) in context.service.node.top.all() {
            reply.begin_document(&namespace);
            let sum = |wanted: &dyn Fn(bool) -> bool| {
                KINDS
                    .iter()
                    .filter(|(kind, _)| wanted(kind.writes()))
                    .map(|(kind, _)| usage.get(*kind))
                    .fold((0, 0), |(time, count), (t, c)| (time + t, count + c))
            };
            write(reply, "total", sum(&|_| true));
            write(reply, "readLock", sum(&|writes| !writes));
            write(reply, "writeLock", sum(&|writes| writes));
            for (kind, name) in KINDS {
                write(reply, name, usage.get(kind));
            }
            reply.end();
        }
        reply.end();
        Ok(())
    });

fn write(reply: &mut RawWriter, name: &str, (time, count): (i64, i64)) {
    reply.begin_document(name);
    reply.append("time", time);
    reply.append("count", count);
    reply.end();
}
