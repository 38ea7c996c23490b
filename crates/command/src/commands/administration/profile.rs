//! `profile`: what of a database's operations is recorded in `system.profile`, and what the log calls slow.

use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::document_filter::DocumentFilter;
use nestor_database::profiler::Settings;
use nestor_database::rights::Action;
use nestor_database::system_profile;
use nestor_model::{Document, RawWriter, Result, ValueRef, bail, doc};
use std::sync::Arc;

/// Part of the reply when a filter is set.
const NOTE: &str =
    "When a filter expression is set, slowms and sampleRate are not used for profiling and slow-query log lines.";

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection("profile", "Shows and sets which operations are recorded.")
    .flags(Flags::LONG.and(Flags::UNRECORDED))
    .needs(Needs::database(Action::EnableProfiler))
    .runs(run);

crate::args! {
    struct Profile<'a>: "profile" command {
        "profile" => level: i64,
        "slowms" => slow_ms: Option<i32>,
        "sampleRate" => sample_rate: Option<f64>,
        "filter" => filter: Option<ValueRef<'a>>,
    }
}

/// Answers what was set before. A level that does not exist changes no level.
fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = Profile::parse(context.body, context.sequences)?;
    if args.sample_rate.is_some_and(|rate| !(0.0..=1.0).contains(&rate)) {
        bail!(BadValue, "'sampleRate' must be between 0.0 and 1.0 inclusive");
    }
    let filter = match args.filter {
        None => None,
        Some(ValueRef::String("unset")) => Some(None),
        Some(ValueRef::Document(filter)) => Some(Some(Arc::new(DocumentFilter::parse(filter)?))),
        Some(_) => bail!(BadValue, "Expected an object, or the string 'unset'."),
    };
    let service = context.service;
    let old = service.profiler.settings(context.db());
    let mut new = old.clone();
    if let Ok(level @ 0..=2) = u8::try_from(args.level) {
        new.database.level = level;
    }
    new.slow_ms = args.slow_ms.unwrap_or(old.slow_ms);
    new.sample_rate = args.sample_rate.unwrap_or(old.sample_rate);
    if let Some(filter) = filter {
        new.database.filter = filter;
    }
    if new.database.level > 0 {
        system_profile::prepare(service, context.db(), &context.interrupt)?;
    }
    let is_set = args.slow_ms.is_some() || args.sample_rate.is_some() || args.filter.is_some();
    if is_set || new.database.level != old.database.level {
        service.profiler.set(context.db(), new.clone());
        let attr = doc! { "from": describe(&old), "to": describe(&new), "db": context.db() };
        let ctx = format!("conn{}", context.conn.id);
        service
            .node
            .log()
            .info("COMMAND", 48_742, &ctx, "Profiler settings changed", attr);
    }
    reply.append("was", i32::from(old.database.level));
    reply.append("slowms", old.slow_ms);
    reply.append("sampleRate", old.sample_rate);
    if let Some(filter) = &old.database.filter {
        reply.append("filter", &filter.written_out());
        reply.append("note", NOTE);
    }
    Ok(())
}

fn describe(settings: &Settings) -> Document {
    let mut out = doc! {
        "level": i32::from(settings.database.level),
        "slowms": settings.slow_ms,
        "sampleRate": settings.sample_rate,
    };
    if let Some(filter) = &settings.database.filter {
        out.push("filter", filter.written_out());
    }
    out
}
