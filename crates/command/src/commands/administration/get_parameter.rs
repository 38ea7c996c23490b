//! `getParameter`: values of server parameters, some or all, with or without when they may be set.

use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::generic_names::is_generic;
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::parameters;
use nestor_database::parameters::Param;
use nestor_database::rights::Action;
use nestor_model::value::DocRef;
use nestor_model::{RawDoc, RawWriter, Result, ValueRef, bail};

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection(
    "getParameter",
    "Answers server parameters: some by name, or all of them.",
)
.flags(Flags::ADMIN.and(Flags::QUIET).and(Flags::BEFORE_API))
.needs(Needs::server(Action::GetParameter))
.runs(|context, reply| {
    let options = match context.body.iter().next() {
        Some((_, ValueRef::Document(DocRef::Raw(doc)))) => Options::parse(doc, &[])?,
        Some((_, ValueRef::String("*"))) => Options {
            all_parameters: true,
            ..Options::default()
        },
        _ => Options::default(),
    };
    write(context, reply, &options)
});

crate::args! {
    #[derive(Default)]
    struct Options<'a>: "getParameter" nested {
        "showDetails" => show_details: bool,
        "allParameters" => all_parameters: bool,
        "setAt" => set_at: Option<&'a str>,
    }
}

fn write(context: &Context<'_>, reply: &mut RawWriter, options: &Options<'_>) -> Result<()> {
    let mut found = 0;
    let is_wanted = |parameter: Param| {
        let set_at = parameters::set_at(parameter);
        match options.set_at {
            Some("runtime") => set_at.runtime(),
            Some("startup") => set_at.startup(),
            _ => true,
        }
    };
    if !matches!(options.set_at, None | Some("runtime" | "startup")) {
        bail!(BadValue, "setAt must be either startup or runtime");
    }
    for (parameter, name) in parameters::all() {
        let is_named = || named(context.body, name);
        if (options.all_parameters && is_wanted(parameter)) || (!options.all_parameters && is_named()) {
            write_one(context, reply, parameter, name, options.show_details);
            found += 1;
        }
    }
    if found == 0 {
        bail!(InvalidOptions, "no option found to get");
    }
    Ok(())
}

fn named(body: RawDoc<'_>, parameter: &str) -> bool {
    body.iter()
        .enumerate()
        .any(|(i, (name, _))| i > 0 && name == parameter && !is_generic(name))
}

fn write_one(context: &Context<'_>, reply: &mut RawWriter, parameter: Param, name: &str, details: bool) {
    let node = &context.service.node;
    let value = node.parameters.value(parameter, node.log());
    if !details {
        reply.append(name, value.as_ref());
        return;
    }
    let set_at = parameters::set_at(parameter);
    reply.begin_document(name);
    reply.append("value", value.as_ref());
    reply.append("settableAtRuntime", set_at.runtime());
    reply.append("settableAtStartup", set_at.startup());
    reply.end();
}
