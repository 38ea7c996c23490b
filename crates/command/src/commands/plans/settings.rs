//! `setQuerySettings` and `removeQuerySettings`.

use super::representative::{shape_of, stored_shape};
use super::stored::{SettingsArgs, entry, store};
use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::rights::Action;
use nestor_database::shape;
use nestor_database::write::Progress;
use nestor_model::{DocRef, Document, RawDoc, RawWriter, Result, ValueRef, bail};
use std::sync::Arc;

/// Sets.
pub const SET: CommandSpec = Facts::no_collection("setQuerySettings", "Sets what holds for all queries of a shape.")
    .flags(Flags::ADMIN.and(Flags::WRITE).and(Flags::LONG))
    .needs(Needs::server(Action::QuerySettings))
    .runs(set);

/// Removes.
pub const REMOVE: CommandSpec =
    Facts::no_collection("removeQuerySettings", "Removes what was set for queries of a shape.")
        .flags(Flags::ADMIN.and(Flags::WRITE).and(Flags::LONG))
        .needs(Needs::server(Action::QuerySettings))
        .runs(remove);

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
    /// By a query that has it.
    Query {
        /// The hash of the shape.
        hash: String,
        /// The shape.
        shape: Document,
        /// The query.
        query: Document,
    },
    /// By its hash.
    Hash(String),
}

impl Which {
    /// `shape_of` gives the shape of a query once it accepts it.
    fn parse(
        which: ValueRef<'_>,
        command: &str,
        shape_of: impl FnOnce(RawDoc<'_>) -> Result<Document>,
    ) -> Result<Self> {
        match which {
            ValueRef::String(hash) => {
                if !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                    bail!(BadValue, "a query shape hash has hexadecimal digits only: '{hash}'");
                }
                if hash.len() != 64 {
                    bail!(InvalidLength, "a query shape hash has 64 hexadecimal digits: '{hash}'");
                }
                Ok(Self::Hash(hash.to_ascii_uppercase()))
            }
            ValueRef::Document(DocRef::Raw(query)) => {
                let shape = shape_of(query)?;
                Ok(Self::Query {
                    hash: shape::hash(&shape),
                    shape,
                    query: query.as_doc().to_document(),
                })
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
            Self::Query { hash, .. } | Self::Hash(hash) => hash,
        }
    }
}

/// Sets what is given; what was set for the shape before and is not given now stays.
fn set(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = Set::parse(context.body, context.sequences)?;
    if args.settings.is_empty() {
        bail!(8_727_502, "settings field in setQuerySettings command cannot be empty");
    }
    let which = Which::parse(args.which, "setQuerySettings", |query| shape_of(context, query))?;
    SettingsArgs::parse(args.settings, &[])?;
    let mut progress = Progress::default();
    let settings = &context.service.query_settings;
    let entry = settings.change(
        |entries| {
            let old = entries.get(which.hash());
            let (shape, representative) = match (&which, old) {
                (Which::Query { shape, query, .. }, _) => (shape.clone(), query.clone()),
                (_, Some(old)) => (old.shape.clone(), old.representative.clone()),
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
            let entry = Arc::new(entry(which.hash().to_owned(), shape, representative, merged)?);
            if entry.is_default() {
                bail!(
                    7_746_604,
                    "the resulting settings cannot be empty or contain only default values"
                );
            }
            entries.insert(entry.hash.clone(), entry.clone());
            Ok(entry)
        },
        |entries| store(context, entries, &mut progress),
    )?;
    for (name, value) in entry.to_document().iter() {
        reply.append(name, value);
    }
    context.finish_concern(progress.last, reply, false)
}

/// Succeeds, too, when nothing was set.
fn remove(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = Remove::parse(context.body, context.sequences)?;
    // Nothing can be set for some queries, and nothing is there to be removed.
    let which = Which::parse(args.which, "removeQuerySettings", stored_shape)?;
    let mut progress = Progress::default();
    let settings = &context.service.query_settings;
    if settings.all().contains_key(which.hash()) {
        settings.change(
            |entries| Ok(entries.remove(which.hash())),
            |entries| store(context, entries, &mut progress),
        )?;
    }
    context.finish_concern(progress.last, reply, false)
}
