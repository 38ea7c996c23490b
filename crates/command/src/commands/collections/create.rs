//! `create`: makes a collection or a view.

use super::{DDL_FLAGS, encrypted_fields, options, view_graph};
use crate::args::{CollectionName, RawArray};
use crate::audited::{self, Audited};
use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::needs::{self, Needs};
use crate::spec::CommandSpec;
use nestor_database::names;
use nestor_database::operation::pipeline::view_pipeline;
use nestor_database::write;
use nestor_database::write::Progress;
use nestor_database::write::create_entry;
use nestor_database::write::timeseries;
use nestor_model::collection_options::{ValidationAction, ValidationLevel};
use nestor_model::namespace::LOCAL;
use nestor_model::timeseries::{BUCKETS_PREFIX, Bucketing, Granularity};
use nestor_model::value::ArrayRef;
use nestor_model::{
    CollectionOptions, DocRef, Document, Namespace, RawDoc, RawWriter, Result, TimeSeries, ValueRef, bail, doc,
    values_equal,
};
use nestor_query::collation::Collation;
use nestor_storage::{Collection, View};

/// The command.
pub const SPEC: CommandSpec = Facts::collection("create", "Makes a collection or a view.")
    .flags(DDL_FLAGS.and(Flags::API_V1).and(Flags::TXN))
    .outside_api(&[
        "autoIndexId",
        "capped",
        "indexOptionDefaults",
        "masking",
        "max",
        "rowSecurity",
        "size",
        "storageEngine",
    ])
    .needs(Needs::Arguments(needs::create))
    .audited(Audited::Attempts(audited::create))
    .runs(run);

crate::args! {
    /// Arguments of `create`.
    pub struct CreateArgs<'a>: "create" command {
        "create" => coll: CollectionName<'a>,
        "capped" => capped: bool,
        "autoIndexId" => auto_index_id: Option<bool>,
        "idIndex" => id_index: Option<RawDoc<'a>>,
        "size" => size: Option<i64>,
        "max" => max: Option<i64>,
        "storageEngine" => storage_engine: Option<RawDoc<'a>>,
        "validator" => validator: Option<RawDoc<'a>>,
        "validationLevel" => validation_level: Option<&'a str>,
        "validationAction" => validation_action: Option<&'a str>,
        "indexOptionDefaults" => index_option_defaults: Option<RawDoc<'a>>,
        "viewOn" => view_on: Option<&'a str>,
        "pipeline" => pipeline: Option<RawArray<'a>>,
        "collation" => collation: Option<RawDoc<'a>>,
        "changeStreamPreAndPostImages" => images: Option<RawDoc<'a>>,
        "timeseries" => timeseries: Option<RawDoc<'a>>,
        "clusteredIndex" => clustered_index: Option<ValueRef<'a>>,
        "expireAfterSeconds" => expire_after_seconds: Option<ValueRef<'a>>,
        "masking" => masking: Option<RawDoc<'a>>,
        "rowSecurity" => row_security: Option<RawDoc<'a>>,
        "encryptedFields" => encrypted_fields: Option<RawDoc<'a>>,
        "temp" => temp: bool,
        "flags" => flags: Option<i64>,
        "recordIdsReplicated" => record_ids_replicated: bool,
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = CreateArgs::parse(context.body, context.sequences)?;
    let ns = names::collection(context.db(), args.coll.0)?;
    check_system(&ns, &args)?;
    check_auto_index(&ns, &args)?;
    let options = CollectionOptions::parse(collection_options(&args)?)?;
    write::check_namespace(&ns)?;
    context.check_write_concern()?;
    let uuid = context.service.new_uuid();
    let mut progress = Progress::default();
    if options.masking.is_some() {
        context.keep_masking_key(&mut progress)?;
    }
    make(context, &ns, &options, uuid, &mut progress)?;
    context.finish_concern(progress.last, reply, false)
}

/// Makes the collection that an entry of an oplog made, `{create: name, ...}`, with the UUID that it had. It is no error when
/// it is there with that UUID.
pub(crate) fn with_uuid(
    context: &Context<'_>,
    db: &str,
    command: RawDoc<'_>,
    uuid: [u8; 16],
    progress: &mut Progress,
) -> Result<()> {
    let args = CreateArgs::parse(command, &[])?;
    let ns = names::collection(db, args.coll.0)?;
    check_system(&ns, &args)?;
    check_auto_index(&ns, &args)?;
    let options = CollectionOptions::parse(collection_options(&args)?)?;
    write::check_namespace(&ns)?;
    let existing = context.current_view().view().catalog().by_uuid(&uuid).cloned();
    match existing {
        Some(existing) if existing.ns == ns => Ok(()),
        Some(existing) => bail!(
            NamespaceExists,
            "the collection {} has the UUID of the one to be created, {ns}",
            existing.ns
        ),
        None => {
            if context.current_view().view().catalog().get(&ns).is_some() {
                bail!(NamespaceExists, "the collection {ns} exists with another UUID");
            }
            make(context, &ns, &options, uuid, progress)
        }
    }
}

fn make(
    context: &Context<'_>,
    ns: &Namespace,
    options: &CollectionOptions,
    uuid: [u8; 16],
    progress: &mut Progress,
) -> Result<()> {
    context.atomically(progress, |ws| {
        if let Some(existing) = ws.catalog().get(ns) {
            if context.in_transaction() {
                // Within a transaction there is no doubt who made it, as there is when a command is sent again.
                bail!(NamespaceExists, "Collection already exists. NS: {ns}");
            }
            return same_or_error(existing, options);
        }
        if options.view.is_some() && options.timeseries.is_none() {
            view_graph::check(ws, ns, options)?;
        }
        if let Some(series) = &options.timeseries {
            timeseries::create::buckets(context, ws, ns, options, series)?;
        }
        ws.create_collection(ns, uuid, options.clone())?;
        if context.origin(&ns.db).is_some() {
            let entry = create_entry(ns, uuid, options);
            ws.oplog(entry)?;
        }
        Ok(())
    })
}

/// Only collections of `local` may say that they want no index on `_id`; they have one all the same, as finding a document by
/// its `_id` costs nothing then.
fn check_auto_index(ns: &Namespace, args: &CreateArgs<'_>) -> Result<()> {
    if args.auto_index_id == Some(false) && ns.db != LOCAL {
        bail!(InvalidOptions, "the autoIndexId option cannot be false");
    }
    Ok(())
}

fn check_system(ns: &Namespace, args: &CreateArgs<'_>) -> Result<()> {
    if ns.coll.starts_with(BUCKETS_PREFIX) {
        bail!(
            IllegalOperation,
            "a collection of time-series buckets is made with its time-series collection: {ns}"
        );
    }
    let reserved = ns.coll.starts_with("system.") || ns.is_internal();
    if args.validator.is_some() && reserved {
        bail!(
            InvalidOptions,
            "Document validators are not allowed on {} collection {}",
            if ns.coll.starts_with("system.") {
                "system"
            } else {
                "internal"
            },
            ns
        );
    }
    Ok(())
}

crate::args! {
    /// `timeseries`.
    struct TimeSeriesArgs<'a>: "create.timeseries" nested {
        "timeField" => time_field: Option<&'a str>,
        "metaField" => meta_field: Option<&'a str>,
        "granularity" => granularity: Option<&'a str>,
        "bucketMaxSpanSeconds" => span_secs: Option<i64>,
        "bucketRoundingSeconds" => rounding_secs: Option<i64>,
    }
}

fn timeseries_options(args: &CreateArgs<'_>) -> Result<Option<TimeSeries>> {
    let Some(spec) = args.timeseries else { return Ok(None) };
    let spec = TimeSeriesArgs::parse(spec, &[])?;
    let Some(time_field) = spec.time_field else {
        bail!(
            40414,
            "BSON field 'create.timeseries.timeField' is missing but a required field"
        );
    };
    let bucketing = Bucketing {
        granularity: spec.granularity.map(Granularity::parse).transpose()?,
        span_secs: spec.span_secs,
        rounding_secs: spec.rounding_secs,
    };
    TimeSeries::new(time_field, spec.meta_field, bucketing)?
        .check()
        .map(Some)
}

/// Checks the arguments and brings them into the form that the catalog keeps and listCollections shows.
fn collection_options(args: &CreateArgs<'_>) -> Result<Document> {
    let mut out = Document::new();
    let clustered = match args.clustered_index {
        Some(value) => options::clustered_index(value)?,
        None => None,
    };
    if args.clustered_index.is_some_and(|v| !v.is_nullish()) {
        if args.capped {
            bail!(6049200, "clusteredIndex is not supported on capped collections");
        }
        if args.view_on.is_some() {
            bail!(6026500, "The 'clusteredIndex' option is not supported with views");
        }
        if args.timeseries.is_some() || args.id_index.is_some() {
            bail!(
                InvalidOptions,
                "The 'clusteredIndex' option is not allowed with these options"
            );
        }
        if args.max.is_some() {
            bail!(6049204, "The 'max' option is not supported with clusteredIndex");
        }
    }
    if args.capped {
        let Some(size) = args.size else {
            bail!(InvalidOptions, "the 'size' field is required when 'capped' is true");
        };
        out.push("capped", true);
        out.push("size", number(options::capped_size(size)?));
        if let Some(max) = args.max {
            out.push("max", number(options::capped_max(max)?));
        }
    } else if args.size.is_some() || args.max.is_some() {
        bail!(
            InvalidOptions,
            "the 'capped' field needs to be true when either the 'size' or 'max' fields are present"
        );
    }
    let series = timeseries_options(args)?;
    let expire = args.expire_after_seconds.filter(|value| !value.is_nullish());
    let expire = expire.map(|value| options::expire_after_secs(value, nestor_database::clock::now_ms()));
    let expire = expire.transpose()?;
    if expire.is_some() && clustered.is_none() && args.timeseries.is_none() {
        bail!(
            InvalidOptions,
            "'expireAfterSeconds' is only supported on time-series collections or when the 'clusteredIndex' option is specified"
        );
    }
    refuse_unsupported(args)?;
    // The names of levels and actions are checked even where they are not allowed.
    if let Some(level) = args.validation_level {
        ValidationLevel::parse(level)?;
    }
    if let Some(action) = args.validation_action {
        ValidationAction::parse(action)?;
    }
    if let Some(view_on) = args.view_on {
        return view_options(args, view_on);
    }
    if args.pipeline.is_some() {
        bail!(InvalidOptions, "'pipeline' requires 'viewOn' to also be specified");
    }
    let collation = default_collation(args)?;
    if let Some(id_index) = args.id_index {
        options::check_id_index(id_index, collation.as_ref())?;
    }
    if let Some(defaults) = args.index_option_defaults {
        check_index_option_defaults(defaults)?;
    }
    options::check_validation(args.validator, args.validation_level, args.validation_action)?;
    if let Some(validator) = args.validator {
        out.push("validator", validator);
    }
    if args.validator.is_some() || args.validation_level.is_some() {
        out.push("validationLevel", args.validation_level.unwrap_or("strict"));
    }
    if args.validator.is_some() || args.validation_action.is_some() {
        out.push("validationAction", args.validation_action.unwrap_or("error"));
    }
    for (name, given) in [
        ("storageEngine", args.storage_engine),
        ("indexOptionDefaults", args.index_option_defaults),
    ] {
        if let Some(given) = given.filter(|given| !given.is_empty()) {
            out.push(name, given);
        }
    }
    if let Some(given) = args.auto_index_id {
        out.push("autoIndexId", given);
    }
    if let Some(clustered) = clustered {
        out.push("clusteredIndex", clustered);
    }
    if let Some(secs) = expire {
        out.push("expireAfterSeconds", secs);
    }
    if let Some(series) = &series {
        timeseries::create::as_view(&Namespace::new("", args.coll.0), series, &mut out);
    }
    if args
        .images
        .is_some_and(|images| images.get("enabled").is_some_and(ValueRef::truthy))
    {
        out.push("changeStreamPreAndPostImages", doc! { "enabled": true });
    }
    if let Some(policy) = args.masking.filter(|policy| !policy.is_empty()) {
        out.push("masking", options::masking(args.coll.0, policy)?);
    }
    if let Some(given) = args.row_security {
        let own = options::row_security(args.coll.0, given)?;
        if !own.is_nothing() {
            out.push("rowSecurity", own.listed());
        }
    }
    if let Some(collation) = collation {
        out.push("collation", collation.to_document());
    }
    Ok(out)
}

/// A size or count as the catalog keeps it: an int when it fits.
fn number(value: i64) -> nestor_model::Value {
    match i32::try_from(value) {
        Ok(small) => small.into(),
        Err(_) => value.into(),
    }
}

fn refuse_unsupported(args: &CreateArgs<'_>) -> Result<()> {
    if args.timeseries.is_some() {
        let clash = args.capped
            || args.validator.is_some()
            || args.validation_level.is_some()
            || args.validation_action.is_some()
            || args.id_index.is_some()
            || args.view_on.is_some()
            || args.masking.is_some()
            || args.row_security.is_some()
            || args
                .images
                .is_some_and(|images| images.get("enabled").is_some_and(ValueRef::truthy));
        if clash {
            bail!(InvalidOptions, "these options are not allowed with timeseries");
        }
    }
    if let Some(description) = args.encrypted_fields {
        encrypted_fields::check(description)?;
        bail!(NotImplemented, "encryptedFields are not supported");
    }
    if let Some(images) = args.images {
        for (name, value) in images.iter() {
            match (name, value) {
                ("enabled", ValueRef::Bool(_)) => {}
                ("enabled", other) => {
                    return Err(crate::args::wrong_type(
                        "create.changeStreamPreAndPostImages.enabled",
                        other.bson_type(),
                        "bool",
                    ));
                }
                (other, _) => {
                    return Err(crate::args::unknown_field("create.changeStreamPreAndPostImages", other));
                }
            }
        }
    }
    if let Some(engine) = args.storage_engine {
        options::check_storage_engine(DocRef::Raw(engine))?;
    }
    Ok(())
}

fn check_index_option_defaults(defaults: RawDoc<'_>) -> Result<()> {
    for (name, value) in defaults.iter() {
        match name {
            "storageEngine" => {
                if let Some(engines) = value.as_document() {
                    options::check_storage_engine(engines)?;
                    continue;
                }
                return Err(crate::args::wrong_type(
                    "create.indexOptionDefaults.storageEngine",
                    value.bson_type(),
                    "object",
                ));
            }
            other => return Err(crate::args::unknown_field("create.indexOptionDefaults", other)),
        }
    }
    Ok(())
}

fn view_options(args: &CreateArgs<'_>, view_on: &str) -> Result<Document> {
    if view_on.is_empty() {
        bail!(BadValue, "'viewOn' cannot be empty");
    }
    let forbidden = args.validator.is_some()
        || args.validation_level.is_some()
        || args.validation_action.is_some()
        || args.id_index.is_some()
        || args.capped
        || args.storage_engine.is_some()
        || args.masking.is_some()
        || args.row_security.is_some()
        || args.index_option_defaults.is_some();
    if forbidden {
        bail!(InvalidOptions, "these options are not allowed with viewOn");
    }
    let collation = default_collation(args)?;
    let pipeline = args.pipeline.map_or(ArrayRef::Items(&[]), |p| ArrayRef::Raw(p.0));
    let mut out = doc! { "viewOn": view_on, "pipeline": view_pipeline(pipeline)? };
    if let Some(collation) = collation {
        out.push("collation", collation.to_document());
    }
    Ok(out)
}

/// The default collation of what is made; `None` for simple. Errors: those of [`Collation::parse`], an empty document's among
/// them.
fn default_collation(args: &CreateArgs<'_>) -> Result<Option<Collation>> {
    match args.collation {
        Some(collation) => Collation::parse(DocRef::Raw(collation)),
        None => Ok(None),
    }
}

/// Making what exists already is no error when it is the same.
fn same_or_error(existing: &Collection, options: &CollectionOptions) -> Result<()> {
    let same = values_equal(
        ValueRef::Document(existing.options.shown().as_ref()),
        ValueRef::Document(options.listed().as_ref()),
    );
    if same {
        return Ok(());
    }
    let what = if existing.is_view() { "view" } else { "collection" };
    bail!(
        NamespaceExists,
        "{what} already exists with different options. NS: {}",
        existing.ns
    )
}
