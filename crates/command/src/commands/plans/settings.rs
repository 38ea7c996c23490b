//! `setQuerySettings` and `removeQuerySettings`.

use crate::Context;
use crate::commands::query::aggregate::AggregateArgs;
use crate::commands::query::distinct::DistinctArgs;
use crate::commands::query::find::{FindArgs, express_id};
use crate::dispatch::{CommandSpec, Flags};
use crate::query_settings::Entry;
use crate::query_shape;
use crate::read::{self, Target};
use crate::write::Progress;
use nestor_model::{ArrayRef, DocRef, Document, Namespace, RawDoc, RawWriter, Result, ValueRef, bail};
use nestor_query::stage::{ParseContext, Pipeline, Place};
use std::sync::Arc;

/// Sets.
pub const SET: CommandSpec = CommandSpec {
    name: "setQuerySettings",
    aliases: &[],
    flags: Flags::ADMIN.and(Flags::WRITE).and(Flags::LONG),
    help: "Sets what holds for all queries of a shape.",
    run: set,
};

/// Removes.
pub const REMOVE: CommandSpec = CommandSpec {
    name: "removeQuerySettings",
    aliases: &[],
    flags: Flags::ADMIN.and(Flags::WRITE).and(Flags::LONG),
    help: "Removes what was set for queries of a shape.",
    run: remove,
};

crate::args! {
    struct Set<'a>: "setQuerySettings" command {
        "setQuerySettings" => which: ValueRef<'a>,
        "settings" => settings: RawDoc<'a>,
    }
}

crate::args! {
    struct Remove<'a>: "removeQuerySettings" command {
        "removeQuerySettings" => which: ValueRef<'a>,
    }
}

/// A shape as the commands take it.
enum Which {
    /// By a query that has it, with its hash.
    Query(String, Document),
    /// By its hash.
    Hash(String),
}

impl Which {
    fn parse(context: &Context<'_>, which: ValueRef<'_>, command: &str) -> Result<Self> {
        match which {
            ValueRef::String(hash) => {
                if hash.len() != 64 || !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                    bail!(FailedToParse, "a query shape hash has 64 hexadecimal digits: '{hash}'");
                }
                Ok(Self::Hash(hash.to_ascii_uppercase()))
            }
            ValueRef::Document(DocRef::Raw(query)) => {
                let hash = hash_of(context, query)?;
                Ok(Self::Query(hash, query.as_doc().to_document()))
            }
            other => Err(crate::args::wrong_type(
                format_args!("{command}.{command}"),
                other.bson_type(),
                "[object, string]",
            )),
        }
    }

    fn hash(&self) -> &str {
        match self {
            Self::Query(hash, _) | Self::Hash(hash) => hash,
        }
    }
}

/// Sets what is given; what was set for the shape before and is not given now stays.
fn set(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = Set::parse(context.body, context.sequences)?;
    if args.settings.is_empty() {
        bail!(8_727_502, "settings field in setQuerySettings command cannot be empty");
    }
    let which = Which::parse(context, args.which, "setQuerySettings")?;
    let mut progress = Progress::default();
    let settings = &context.service.query_settings;
    let entry = settings.change(context, &mut progress, |entries| {
        let old = entries.get(which.hash());
        let representative = match (&which, old) {
            (Which::Query(_, query), _) => query.clone(),
            (_, Some(old)) => old.representative.clone(),
            (_, None) => bail!(
                7_746_401,
                "New query settings can only be created with a query instance, but a query hash was given."
            ),
        };
        let mut merged = old.map_or_else(Document::new, |old| old.settings.clone());
        for (name, value) in args.settings.iter() {
            merged.set(name, value.to_value());
        }
        if merged.get("reject").is_some_and(|reject| !reject.truthy()) {
            // That is what holds anyway.
            merged.remove("reject");
        }
        let is_default = merged.iter().all(|(name, value)| match (name, value) {
            ("comment", _) => true,
            ("indexHints", ValueRef::Array(hints)) => hints.is_empty(),
            _ => false,
        });
        let entry = Arc::new(Entry::new(which.hash().to_owned(), representative, merged)?);
        if is_default {
            bail!(
                7_746_604,
                "the resulting settings cannot be empty or contain only default values"
            );
        }
        entries.insert(entry.hash.clone(), entry.clone());
        Ok(entry)
    })?;
    for (name, value) in entry.to_document().iter() {
        reply.append(name, value);
    }
    context.finish_concern(progress.last, reply, false)
}

/// Succeeds, too, when nothing was set.
fn remove(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = Remove::parse(context.body, context.sequences)?;
    let which = Which::parse(context, args.which, "removeQuerySettings")?;
    let mut progress = Progress::default();
    let settings = &context.service.query_settings;
    if settings.all().contains_key(which.hash()) {
        settings.change(context, &mut progress, |entries| Ok(entries.remove(which.hash())))?;
    }
    context.finish_concern(progress.last, reply, false)
}

/// The hash of a query's shape, once it is known to be a good query.
///
/// Errors: 7746402 for other commands, 7746606 for lookups by `_id`, which nothing can be set for, 8584900 and 8584901
/// for the server's own databases and collections, and those of the query.
fn hash_of(context: &Context<'_>, query: RawDoc<'_>) -> Result<String> {
    let Some((name, first)) = query.iter().next() else {
        bail!(7_746_402, "QueryShape can not be computed for an empty command");
    };
    if !matches!(name, "find" | "aggregate" | "distinct") {
        bail!(7_746_402, "QueryShape can not be computed for command: {name}");
    }
    let Some(db) = query.get("$db") else {
        bail!(40414, "BSON field '{name}.$db' is missing but a required field");
    };
    let ValueRef::String(db) = db else {
        return Err(crate::args::wrong_type(
            format_args!("{name}.$db"),
            db.bson_type(),
            "string",
        ));
    };
    let coll = match first {
        ValueRef::String(coll) => crate::names::collection(db, coll)?.coll,
        _ if name == "aggregate" => nestor_model::Str::default(),
        other => bail!(
            InvalidNamespace,
            "collection name has invalid type {}",
            other.bson_type().alias()
        ),
    };
    if matches!(db, "admin" | "config" | "local") {
        bail!(
            8_584_900,
            "{name} queries on the internal database '{db}' cannot have query settings"
        );
    }
    if coll.starts_with("system.") {
        bail!(
            8_584_901,
            "queries on the system collection '{coll}' cannot have query settings"
        );
    }
    let ns = Namespace::new(db, coll);
    check(context, name, &ns, query)?;
    Ok(query_shape::hash(&query_shape::of_command(name, &ns, query)))
}

/// Parses the query, to find what is wrong with it.
fn check(context: &Context<'_>, name: &str, ns: &Namespace, query: RawDoc<'_>) -> Result<()> {
    match name {
        "find" => {
            let args = FindArgs::parse(query, &[])?;
            debug_assert!(matches!(args.target, Target::Name(_)), "the collection is named");
            if express_id(&args).is_some() {
                bail!(
                    7_746_606,
                    "setQuerySettings command cannot be used on find queries that are lookups by _id"
                );
            }
            let (_, mut scope) = context.operation(args.variables)?;
            read::parse_filter(args.filter, &mut scope)?;
        }
        "distinct" => {
            let args = DistinctArgs::parse(query, &[])?;
            let (_, mut scope) = context.operation(None)?;
            read::parse_filter(args.query, &mut scope)?;
        }
        _ => {
            let args = AggregateArgs::parse(query, &[])?;
            let (_, mut scope) = context.operation(args.variables)?;
            let mut place = ParseContext::new(&mut scope, ns.clone(), Place::Top);
            Pipeline::parse(ArrayRef::Raw(args.pipeline.0.0), &mut place)?;
        }
    }
    Ok(())
}
