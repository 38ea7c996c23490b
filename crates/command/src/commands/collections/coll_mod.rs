//! `collMod`: changes options of a collection, view or index.

use super::{DDL_FLAGS, coll_mod_timeseries, options};
use crate::args::{CollectionName, RawArray, RequiredBool};
use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::needs::{self, Needs};
use crate::spec::CommandSpec;
use nestor_database::index_build;
use nestor_database::names;
use nestor_database::operation::pipeline::view_pipeline;
use nestor_database::uuid::Uuid;
use nestor_database::write::Progress;
use nestor_database::write::timeseries;
use nestor_exec::write::oplog::Origin;
use nestor_model::number::safe_i64;
use nestor_model::{
    ArrayRef, CollectionOptions, DocRef, Document, Error, IndexSpec, Namespace, RawDoc, RawWriter, Result, Value,
    ValueRef, bail, doc, values_equal,
};
use nestor_planner::kinds;
use nestor_storage::{Collection, Index, View, WriteSet};
use std::sync::Arc;

/// The command.
pub const SPEC: CommandSpec = Facts::collection("collMod", "Changes options of a collection, view or index.")
    .flags(DDL_FLAGS.and(Flags::API_V1))
    .needs(Needs::Arguments(needs::coll_mod))
    .runs(run);

crate::args! {
    /// Arguments of `collMod`.
    pub struct CollModArgs<'a>: "collMod" command {
        "collMod" => coll: CollectionName<'a>,
        "index" => index: Option<RawDoc<'a>>,
        "viewOn" => view_on: Option<&'a str>,
        "pipeline" => pipeline: Option<RawArray<'a>>,
        "validator" => validator: Option<RawDoc<'a>>,
        "validationLevel" => validation_level: Option<&'a str>,
        "validationAction" => validation_action: Option<&'a str>,
        "expireAfterSeconds" => expire_after_seconds: Option<ValueRef<'a>>,
        "timeseries" => timeseries: Option<RawDoc<'a>>,
        "timeseriesBucketsMayHaveMixedSchemaData" => mixed_buckets: Option<bool>,
        "masking" => masking: Option<RawDoc<'a>>,
        "rowSecurity" => row_security: Option<RawDoc<'a>>,
        "changeStreamPreAndPostImages" => images: Option<RawDoc<'a>>,
        "cappedSize" => capped_size: Option<i64>,
        "cappedMax" => capped_max: Option<i64>,
        "dryRun" => dry_run: bool,
    }
}

crate::args! {
    struct IndexMod<'a>: "collMod.index" nested {
        "name" => name: Option<&'a str>,
        "keyPattern" => key_pattern: Option<RawDoc<'a>>,
        "expireAfterSeconds" => expire_after_seconds: Option<f64>,
        "hidden" => hidden: Option<bool>,
        "unique" => unique: Option<bool>,
        "prepareUnique" => prepare_unique: Option<bool>,
        "forceNonUnique" => force_non_unique: Option<bool>,
    }
}

crate::args! {
    struct Images: "collMod.changeStreamPreAndPostImages" nested {
        "enabled" => enabled: RequiredBool,
    }
}

/// Refuses what no kind of collection takes, before it is known which one it is.
///
/// Error: 14.
fn check_expire_type(value: ValueRef<'_>) -> Result<()> {
    match value.is_number() || value.is_nullish() || matches!(value, ValueRef::String(_)) {
        true => Ok(()),
        false => Err(crate::args::wrong_type(
            "collMod.expireAfterSeconds",
            value.bson_type(),
            "[string, long]",
        )),
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = CollModArgs::parse(context.body, context.sequences)?;
    let ns = names::collection(context.db(), args.coll.0)?;
    if let Some(value) = args.expire_after_seconds {
        check_expire_type(value)?;
    }
    let index = match args.index {
        Some(index) => Some(IndexMod::parse(index, &[])?),
        None => None,
    };
    if let Some(index) = &index {
        check_index(index)?;
    }
    if args.dry_run && index.as_ref().is_none_or(|index| index.unique != Some(true)) {
        bail!(
            InvalidOptions,
            "The 'dryRun' option is only supported with the 'unique' index option"
        );
    }
    options::check_validation(args.validator, args.validation_level, args.validation_action)?;
    // Decided by the name alone: these collections need not be in the catalog here.
    if args.validator.is_some() && ns.coll.starts_with("system.") {
        bail!(
            InvalidOptions,
            "Document validators are not allowed on system collection {ns}"
        );
    }
    if ns.is_oplog() && (args.capped_size.is_some() || args.capped_max.is_some()) {
        bail!(InvalidOptions, "the size of the oplog cannot be changed by collMod");
    }
    if args.view_on == Some("") {
        bail!(BadValue, "'viewOn' cannot be empty");
    }
    if let Some(policy) = args.masking {
        options::masking(&ns.coll, policy)?;
    }
    if let Some(given) = args.row_security {
        options::row_security(&ns.coll, given)?;
    }
    context.check_write_concern()?;
    let mut progress = Progress::default();
    if args.masking.is_some() && !args.dry_run {
        context.keep_masking_key(&mut progress)?;
    }
    let work = |ws: &mut WriteSet| {
        let Some(collection) = ws.catalog().get(&ns).cloned() else {
            bail!(NamespaceNotFound, "ns does not exist: {ns}");
        };
        let mut changed = Document::new();
        // A validator would tell of documents by what it refuses.
        context.check_others(&collection)?;
        if index.is_some() {
            context.check_plain(&collection, "its indexes are changed by who sees it plain")?;
        }
        match timeseries::found(ws, &ns)? {
            Some((_, buckets)) => change_timeseries(ws, &collection, &buckets, &args)?,
            None => change_options(ws, &collection, &args)?,
        }
        if let Some(index) = &index {
            let buckets = timeseries::found(ws, &ns)?.map(|(_, buckets)| buckets.ns.clone());
            change_index(context, ws, buckets.as_ref().unwrap_or(&ns), index, &mut changed)?;
        }
        if !args.dry_run && context.origin(&ns.db).is_some() {
            ws.oplog(oplog_entry(&collection, &changed, context.body))?;
        }
        Ok(changed)
    };
    let changed = if args.dry_run {
        // Tried on a write set that is thrown away; nothing is changed, so nothing is told.
        work(&mut context.service.engine.begin())?;
        Document::new()
    } else {
        context.atomically(&mut progress, work)?
    };
    for (name, value) in changed.iter() {
        reply.append(name, value);
    }
    context.finish_concern(progress.last, reply, false)
}

/// The oplog entry of a change of `collection`, with its options and those of the index as they were before.
fn oplog_entry(collection: &Collection, changed: &Document, body: RawDoc<'_>) -> nestor_model::RawDocBuf {
    let ns = &collection.ns;
    let mut options = doc! { "uuid": Uuid(collection.uuid).to_value() };
    for (name, value) in collection.options.shown().iter() {
        options.push(name, value);
    }
    let mut before = doc! { "collectionOptions_old": options };
    let mut index = Document::new();
    for (name, value) in changed.iter() {
        if let Some(option) = name.strip_suffix("_old") {
            index.push(option, value);
        }
    }
    if !index.is_empty() {
        before.push("indexOptions_old", index);
    }
    if let Some(view) = &collection.options.view {
        before.push("viewOn", view.on.as_str());
    }
    let mut command = doc! { "collMod": ns.coll.clone() };
    for (name, value) in body.iter().skip(1) {
        match value {
            _ if crate::generic_names::is_generic(name) => {}
            ValueRef::Document(index) if name == "index" => command.push(name, logged_index(index)),
            _ => command.push(name, value),
        }
    }
    let now_ms = nestor_database::clock::now_ms();
    Origin::default().command_with(&ns.db, Some(collection.uuid), &command, Some(&before), now_ms)
}

/// The change of an index as the oplog tells it: seconds are a long there, whatever number was given.
fn logged_index(index: DocRef<'_>) -> Document {
    let mut logged = Document::new();
    for (name, value) in index.iter() {
        match safe_i64(value).filter(|_| name == "expireAfterSeconds") {
            Some(seconds) => logged.push(name, seconds),
            None => logged.push(name, value),
        }
    }
    logged
}

/// Changes what listCollections shows.
fn change_options(ws: &mut WriteSet, collection: &Collection, args: &CollModArgs<'_>) -> Result<()> {
    let mut new = collection.options.listed().clone();
    if collection.is_view() {
        view(collection, args, &mut new)?;
        super::view_graph::check(ws, &collection.ns, &CollectionOptions::parse(new.clone())?)?;
    } else {
        validation(collection, args, &mut new)?;
        capped(collection, args, &mut new)?;
        others(collection, args, &mut new)?;
    }
    let same = values_equal(
        ValueRef::Document(new.as_ref()),
        ValueRef::Document(collection.options.listed().as_ref()),
    );
    if !same {
        ws.set_options(collection.id, CollectionOptions::parse(new)?)?;
    }
    Ok(())
}

/// Changes a time-series collection and the collection of its buckets.
fn change_timeseries(
    ws: &mut WriteSet,
    collection: &Collection,
    buckets: &Collection,
    args: &CollModArgs<'_>,
) -> Result<()> {
    let ns = &collection.ns;
    let foreign = args.validator.is_some()
        || args.validation_level.is_some()
        || args.validation_action.is_some()
        || args.view_on.is_some()
        || args.pipeline.is_some()
        || args.images.is_some()
        || args.masking.is_some()
        || args.row_security.is_some();
    if foreign {
        bail!(InvalidOptions, "option not supported on a time-series collection: {ns}");
    }
    // Columns of ours hold values of any types beside each other, so true asks for what always holds.
    if args.mixed_buckets == Some(false) {
        bail!(
            InvalidOptions,
            "Cannot set timeseriesBucketsMayHaveMixedSchemaData to false"
        );
    }
    // Options of capped collections mean nothing here, as in MongoDB.
    let series = match (collection.timeseries(), args.timeseries) {
        (Some(series), Some(change)) => Some(coll_mod_timeseries::widened(series, change)?),
        _ => None,
    };
    for changed in [collection, buckets] {
        let mut new = changed.options.listed().clone();
        if let Some(series) = &series {
            coll_mod_timeseries::store(series, &mut new);
        }
        if let Some(expire) = args.expire_after_seconds {
            coll_mod_timeseries::expire(expire, &mut new)?;
        }
        ws.set_options(changed.id, CollectionOptions::parse(new)?)?;
    }
    Ok(())
}

fn view(collection: &Collection, args: &CollModArgs<'_>, new: &mut Document) -> Result<()> {
    let foreign = args.index.is_some()
        || args.validator.is_some()
        || args.validation_level.is_some()
        || args.validation_action.is_some()
        || args.expire_after_seconds.is_some_and(|v| !v.is_nullish())
        || args.timeseries.is_some()
        || args.mixed_buckets.is_some()
        || args.images.is_some()
        || args.masking.is_some()
        || args.row_security.is_some()
        || args.capped_size.is_some()
        || args.capped_max.is_some();
    if foreign {
        bail!(InvalidOptions, "option not supported on a view: {}", collection.ns);
    }
    if let Some(view_on) = args.view_on {
        if view_on.starts_with(['.', '$']) || view_on.contains('\0') {
            bail!(InvalidNamespace, "invalid name for 'viewOn': {view_on}");
        }
        new.set("viewOn", view_on);
    }
    if let Some(pipeline) = args.pipeline {
        new.set("pipeline", Value::Array(view_pipeline(ArrayRef::Raw(pipeline.0))?));
    }
    Ok(())
}

fn validation(collection: &Collection, args: &CollModArgs<'_>, new: &mut Document) -> Result<()> {
    let ns = &collection.ns;
    if args.view_on.is_some() || args.pipeline.is_some() {
        bail!(
            InvalidOptions,
            "'viewOn' and 'pipeline' are not supported on a collection: {ns}"
        );
    }
    let any = args.validator.is_some() || args.validation_level.is_some() || args.validation_action.is_some();
    if !any {
        return Ok(());
    }
    if args.validator.is_some() && (ns.coll.starts_with("system.") || ns.is_internal()) {
        bail!(
            InvalidOptions,
            "Document validators are not allowed on system collection {ns}"
        );
    }
    if let Some(validator) = args.validator {
        if validator.is_empty() {
            new.remove("validator");
        } else {
            new.set("validator", validator);
        }
    }
    let level = args
        .validation_level
        .or(new.get("validationLevel").and_then(ValueRef::as_str));
    let action = args
        .validation_action
        .or(new.get("validationAction").and_then(ValueRef::as_str));
    let (level, action) = (
        level.unwrap_or("strict").to_owned(),
        action.unwrap_or("error").to_owned(),
    );
    new.set("validationLevel", level);
    new.set("validationAction", action);
    Ok(())
}

fn capped(collection: &Collection, args: &CollModArgs<'_>, new: &mut Document) -> Result<()> {
    if args.capped_size.is_none() && args.capped_max.is_none() {
        return Ok(());
    }
    let is_oplog = collection.ns.is_named_as_oplog();
    if !collection.is_capped() || is_oplog {
        bail!(InvalidOptions, "Collection must be capped.");
    }
    if let Some(size) = args.capped_size {
        new.set("size", options::capped_size(size)?);
    }
    if let Some(max) = args.capped_max {
        new.set("max", options::capped_max(max)?);
    }
    Ok(())
}

fn others(collection: &Collection, args: &CollModArgs<'_>, new: &mut Document) -> Result<()> {
    let foreign = [
        ("timeseries", args.timeseries.is_some()),
        ("timeseriesBucketsMayHaveMixedSchemaData", args.mixed_buckets.is_some()),
    ];
    if let Some((name, _)) = foreign.into_iter().find(|(_, given)| *given) {
        bail!(
            InvalidOptions,
            "option only supported on a time-series collection: {name}"
        );
    }
    match args.expire_after_seconds {
        None | Some(ValueRef::Null | ValueRef::Undefined) => {}
        Some(_) if !collection.is_clustered() => bail!(
            InvalidOptions,
            "'expireAfterSeconds' is only supported on clustered and time-series collections"
        ),
        Some(ValueRef::String("off")) => {
            new.remove("expireAfterSeconds");
        }
        Some(value) => match nestor_model::number::safe_i64(value) {
            Some(secs) if secs >= 0 => new.set("expireAfterSeconds", secs),
            Some(_) => bail!(InvalidOptions, "'expireAfterSeconds' must not be negative"),
            None => bail!(
                InvalidOptions,
                "Invalid string value for the 'clusteredIndex::expireAfterSeconds' option. Got: {value:?}. Accepted value is 'off'"
            ),
        },
    }
    match args.masking {
        Some(policy) if policy.is_empty() => drop(new.remove("masking")),
        Some(policy) => new.set("masking", policy),
        None => {}
    }
    if let Some(given) = args.row_security {
        let own = options::row_security(&collection.ns.coll, given)?;
        match own.is_nothing() {
            true => drop(new.remove("rowSecurity")),
            false => new.set("rowSecurity", own.listed()),
        }
    }
    if let Some(images) = args.images {
        if Images::parse(images, &[])?.enabled.0 {
            new.set("changeStreamPreAndPostImages", doc! { "enabled": true });
        } else {
            new.remove("changeStreamPreAndPostImages");
        }
    }
    Ok(())
}

fn check_index(index: &IndexMod<'_>) -> Result<()> {
    match (index.name, index.key_pattern) {
        (Some(_), Some(_)) => bail!(InvalidOptions, "Cannot specify both key pattern and name."),
        (None, None) => bail!(InvalidOptions, "Must specify either index name or key pattern."),
        _ => {}
    }
    let none = index.expire_after_seconds.is_none()
        && index.hidden.is_none()
        && index.unique.is_none()
        && index.force_non_unique.is_none()
        && index.prepare_unique.is_none();
    if none {
        bail!(
            InvalidOptions,
            "no expireAfterSeconds, hidden, unique, or prepareUnique field"
        );
    }
    if index.unique == Some(false) {
        bail!(BadValue, "Cannot make index non-unique");
    }
    if index.force_non_unique == Some(false) {
        bail!(BadValue, "'forceNonUnique' can only be true");
    }
    if index.force_non_unique.is_some() && (index.unique.is_some() || index.prepare_unique.is_some()) {
        bail!(
            InvalidOptions,
            "collMod does not support 'forceNonUnique' beside 'unique' or 'prepareUnique'"
        );
    }
    Ok(())
}

fn find_index(collection: &Collection, index: &IndexMod<'_>) -> Result<Arc<Index>> {
    let found: Vec<&Arc<Index>> = match (index.name, index.key_pattern) {
        (Some(name), _) => collection.indexes.iter().filter(|i| i.name == name).collect(),
        (None, Some(pattern)) => collection
            .indexes
            .iter()
            .filter(|i| {
                i.key_pattern.len() == pattern.iter().count()
                    && values_equal(
                        ValueRef::Document(i.key_pattern.as_ref()),
                        ValueRef::Document(DocRef::Raw(pattern)),
                    )
            })
            .collect(),
        (None, None) => Vec::new(),
    };
    match found.as_slice() {
        [] => bail!(IndexNotFound, "cannot find index for ns {}", collection.ns),
        [one] => Ok((*one).clone()),
        _ => bail!(
            AmbiguousIndexKeyPattern,
            "index keyPattern matches {} indexes, must use index name",
            found.len()
        ),
    }
}

fn change_index(
    context: &Context<'_>,
    ws: &mut WriteSet,
    ns: &Namespace,
    change: &IndexMod<'_>,
    changed: &mut Document,
) -> Result<()> {
    let Some(collection) = ws.catalog().get(ns).cloned() else {
        bail!(NamespaceNotFound, "ns does not exist: {ns}");
    };
    if collection.is_clustered()
        && collection.buckets().is_none()
        && change.hidden.is_some()
        && change.name.is_some_and(|n| collection.index(n).is_none())
    {
        bail!(6011800, "The 'clusteredIndex' cannot be hidden");
    }
    let index = find_index(&collection, change)?;
    let mut spec = Document::from(index.spec.listed().clone());
    if let Some(secs) = change.expire_after_seconds {
        if index.is_id() {
            bail!(InvalidOptions, "the _id index cannot have expireAfterSeconds");
        }
        if index.key.len() > 1 {
            bail!(
                InvalidOptions,
                "TTL indexes are single-field indexes, compound indexes do not support TTL"
            );
        }
        let new = if secs.is_nan() {
            i64::from(i32::MAX)
        } else {
            secs as i64
        };
        if !(0..=i64::from(i32::MAX)).contains(&new) {
            bail!(
                InvalidOptions,
                "TTL index 'expireAfterSeconds' option must be within an acceptable range"
            );
        }
        if index.expire_after_secs != Some(new) {
            changed.push("expireAfterSeconds_old", index.expire_after_secs);
            changed.push("expireAfterSeconds_new", new);
            // In range, as just checked.
            spec.set("expireAfterSeconds", new as i32);
        }
    }
    if let Some(hidden) = change.hidden {
        if index.is_id() {
            bail!(BadValue, "can't hide _id index");
        }
        if hidden != index.hidden {
            changed.push("hidden_old", index.hidden);
            changed.push("hidden_new", hidden);
            // Counts of its use before the change no longer apply.
            collection
                .state
                .start_index_use(index.id, nestor_database::clock::now_ms());
            if hidden {
                spec.set("hidden", true);
            } else {
                spec.remove("hidden");
            }
        }
    }
    let was_prepared = spec.get("prepareUnique").is_some_and(ValueRef::truthy);
    if let Some(prepare) = change.prepare_unique {
        if prepare != was_prepared && !index.unique {
            if change.hidden.is_some() || change.expire_after_seconds.is_some() {
                bail!(
                    InvalidOptions,
                    "collMod does not change 'prepareUnique' and other options of an index together"
                );
            }
            changed.push("prepareUnique_old", was_prepared);
            changed.push("prepareUnique_new", prepare);
            if prepare {
                spec.set("prepareUnique", true);
            } else {
                spec.remove("prepareUnique");
            }
        }
    }
    // Options that the kind refuses when an index is made cannot be set later either.
    kinds::check(IndexSpec::parse(spec.to_raw())?)?;
    if change.unique == Some(true) && !index.unique {
        if !was_prepared {
            bail!(
                InvalidOptions,
                "Cannot make index unique with 'prepareUnique=false'. Run collMod to set it first."
            );
        }
        changed.push("unique_new", true);
        spec.remove("prepareUnique");
        spec.set("unique", true);
        let violations = violations(ws, &collection, &index)?;
        if !violations.is_empty() {
            return Err(Error::location(
                359,
                "Cannot convert the index to unique. Please resolve conflicting documents before running collMod again.",
            )
            .with_extra(doc! { "violations": violations }));
        }
        ws.drop_index(collection.id, index.id)?;
        return index_build::at_once(context, ws, ns, IndexSpec::parse(spec.to_raw())?).map(drop);
    }
    if change.force_non_unique == Some(true) && index.unique {
        if index.is_id() {
            bail!(InvalidOptions, "the _id index is always unique");
        }
        changed.push("forceNonUnique_new", true);
        spec.remove("unique");
        // Keys of unique indexes are stored in another form.
        ws.drop_index(collection.id, index.id)?;
        return index_build::at_once(context, ws, ns, IndexSpec::parse(spec.to_raw())?).map(drop);
    }
    if !changed.is_empty() {
        ws.set_index_spec(collection.id, index.id, IndexSpec::parse(spec.to_raw())?)?;
    }
    Ok(())
}

/// The documents that keep an index from being unique: `{ids: [..]}` for each key that several have.
fn violations(view: &dyn View, collection: &Collection, index: &Index) -> Result<Vec<Value>> {
    let format = index.entry_format(collection);
    let mut out = Vec::new();
    let mut key: Vec<u8> = Vec::new();
    let mut records: Vec<Vec<u8>> = Vec::new();
    let mut close = |records: &mut Vec<Vec<u8>>| -> Result<()> {
        if records.len() > 1 {
            let mut ids = Vec::with_capacity(records.len());
            for record in records.iter() {
                if let Some(found) = view.get(collection.records, record)? {
                    ids.push(found.document().get("_id").map_or(Value::Null, |id| id.to_value()));
                }
            }
            out.push(Value::from(doc! { "ids": ids }));
        }
        records.clear();
        Ok(())
    };
    let mut cursor = view.cursor(index.tree);
    let mut more = cursor.first()?;
    while more {
        let entry = format.split(cursor.key(), cursor.value()?)?;
        if entry.key != key {
            close(&mut records)?;
            key = entry.key.to_vec();
        }
        records.push(entry.record.to_vec());
        more = cursor.next()?;
    }
    close(&mut records)?;
    Ok(out)
}
