//! `setQuerySettings` and `removeQuerySettings`.

use crate::Context;
use crate::commands::query::aggregate::{self, AggregateArgs};
use crate::commands::query::distinct::{self, DistinctArgs};
use crate::commands::query::find::{self, FindArgs};
use crate::dispatch::{self, CommandSpec};
use crate::facts::{Facts, Flags};
use crate::operation::shape::{self, Shape};
use crate::query_settings::{Entry, SettingsArgs};
use crate::read::{self, Target};
use crate::write::Progress;
use nestor_model::{ArrayRef, DocRef, Document, RawDoc, RawWriter, Result, ValueRef, bail};
use nestor_query::stage::{ParseContext, Pipeline, Place};
use std::sync::Arc;

/// Sets.
pub const SET: CommandSpec = Facts::no_collection("setQuerySettings", "Sets what holds for all queries of a shape.")
    .flags(Flags::ADMIN.and(Flags::WRITE).and(Flags::LONG))
    .runs(set);

/// Removes.
pub const REMOVE: CommandSpec =
    Facts::no_collection("removeQuerySettings", "Removes what was set for queries of a shape.")
        .flags(Flags::ADMIN.and(Flags::WRITE).and(Flags::LONG))
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
    let entry = settings.change(context, &mut progress, |entries| {
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
        let entry = Arc::new(Entry::new(which.hash().to_owned(), shape, representative, merged)?);
        if entry.is_default() {
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
    // Nothing can be set for some queries, and nothing is there to be removed.
    let which = Which::parse(args.which, "removeQuerySettings", stored_shape)?;
    let mut progress = Progress::default();
    let settings = &context.service.query_settings;
    if settings.all().contains_key(which.hash()) {
        settings.change(context, &mut progress, |entries| Ok(entries.remove(which.hash())))?;
    }
    context.finish_concern(progress.last, reply, false)
}

/// The shape of a query, once it is known to be a good query.
///
/// Errors: 7746402 for other commands, 7746606 for lookups by `_id`, which nothing can be set for, 8584900 and 8584901
/// for the server's own databases and collections, and those of the query.
fn shape_of(context: &Context<'_>, query: RawDoc<'_>) -> Result<Document> {
    let query = Representative::parse(query)?;
    let ns = &query.shape.ns;
    if matches!(ns.db.as_str(), "admin" | "config" | "local") {
        bail!(
            8_584_900,
            "{} queries on the internal database '{}' cannot have query settings",
            query.shape.command,
            ns.db
        );
    }
    if ns.coll.starts_with("system.") {
        bail!(
            8_584_901,
            "queries on the system collection '{}' cannot have query settings",
            ns.coll
        );
    }
    query.check(context)?;
    Ok(query.shape.document())
}

/// The shape of a query that settings were stored for.
///
/// Errors: those of its arguments.
pub(crate) fn stored_shape(query: RawDoc<'_>) -> Result<Document> {
    Ok(Representative::parse(query)?.shape.document())
}

/// A query with its `$db`, which stands for all of its shape.
struct Representative<'a> {
    shape: Shape<'a>,
    /// It is a lookup by `_id`.
    is_express: bool,
}

impl<'a> Representative<'a> {
    fn parse(query: RawDoc<'a>) -> Result<Self> {
        let Some((name, _)) = query.iter().next() else {
            bail!(7_746_402, "QueryShape can not be computed for an empty command");
        };
        if !dispatch::lookup(name).is_some_and(|spec| spec.flags.has(Flags::SHAPED)) {
            bail!(7_746_402, "QueryShape can not be computed for command: {name}");
        }
        let Some(db) = query.get("$db").filter(|db| !db.is_nullish()) else {
            bail!(40414, "BSON field '{name}.$db' is missing but a required field");
        };
        let ValueRef::String(db) = db else {
            return Err(crate::args::wrong_type(
                format_args!("{name}.$db"),
                db.bson_type(),
                "string",
            ));
        };
        crate::names::check_database(db)?;
        let by_name = |target| match target {
            Target::Name(coll) => crate::names::collection(db, coll),
            Target::Uuid(_) => bail!(InvalidNamespace, "collection name has invalid type binData"),
        };
        let mut is_express = false;
        let shape = match name {
            "find" => {
                let args = FindArgs::parse(query, &[])?;
                is_express = find::express_id(&args).is_some();
                find::shape(&args, by_name(args.target)?)
            }
            "distinct" => {
                let args = DistinctArgs::parse(query, &[])?;
                distinct::shape_on(&args, by_name(args.target)?)
            }
            _ => aggregate::shape(db, &AggregateArgs::parse(query, &[])?)?,
        };
        Ok(Self { shape, is_express })
    }

    /// Parses the filter or pipeline, to find what is wrong with it.
    fn check(&self, context: &Context<'_>) -> Result<()> {
        if self.is_express {
            bail!(
                7_746_606,
                "setQuerySettings command cannot be used on find queries that are lookups by _id"
            );
        }
        let words = &self.shape.words;
        let (_, mut scope) = context.operation(words.variables)?;
        match words.pipeline {
            Some(pipeline) => {
                let mut place = ParseContext::new(&mut scope, self.shape.ns.clone(), Place::Top);
                Pipeline::parse(ArrayRef::Raw(pipeline), &mut place)?;
            }
            None => {
                read::parse_filter(words.filter, &mut scope)?;
            }
        }
        Ok(())
    }
}
