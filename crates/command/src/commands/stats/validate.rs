//! `validate`: checks that every record decodes and that indexes and records agree.

use crate::args::{Arg, At, CollectionName};
use crate::context::Context;
use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::names;
use nestor_database::rights::Action;
use nestor_database::write;
use nestor_exec::write::document_keys;
use nestor_model::{Document, RawDoc, RawWriter, Result, Value, ValueRef, bail, doc};
use nestor_storage::{View, check};

/// Faults that are described.
const ERRORS_MAX: usize = 100;

/// The command.
pub const SPEC: CommandSpec = Facts::collection("validate", "Checks a collection and its indexes.")
    .flags(Flags::LONG)
    .needs(Needs::collection(Action::Validate))
    .runs(run);

/// Arguments of `validate`. Each switch is on for what counts as true, and fields it does not know it passes over, as
/// MongoDB does; `fixMultikey` too, because commits keep track of arrays and there is nothing to fix.
struct ValidateArgs<'a> {
    coll: &'a str,
    full: bool,
    repair: bool,
    metadata: bool,
    background: bool,
    check_bson_conformance: bool,
    enforce_fast_count: bool,
}

impl<'a> ValidateArgs<'a> {
    fn parse(body: RawDoc<'a>) -> Result<Self> {
        let is_on = |name: &str| body.get(name).is_some_and(|value| value.truthy());
        let coll = body.iter().next().map_or(ValueRef::Null, |(_, name)| name);
        let at = At {
            path: "validate",
            field: "validate",
        };
        Ok(Self {
            coll: CollectionName::parse(coll, at)?.map_or("", |name| name.0),
            full: is_on("full"),
            repair: is_on("repair"),
            metadata: is_on("metadata"),
            background: is_on("background"),
            check_bson_conformance: is_on("checkBSONConformance"),
            enforce_fast_count: is_on("enforceFastCount"),
        })
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = ValidateArgs::parse(context.body)?;
    let ns = names::collection(context.db(), args.coll)?;
    check_options(&args)?;
    let snapshot = context.read_snapshot()?;
    let Some(mut collection) = snapshot.catalog().get(&ns).cloned() else {
        bail!(NamespaceNotFound, "Collection '{ns}' does not exist to validate.");
    };
    if let Some((_, buckets)) = write::timeseries::found(&snapshot, &ns)? {
        collection = buckets;
    }
    if collection.is_view() {
        bail!(CommandNotSupportedOnView, "Cannot validate a view");
    }
    if args.repair {
        bail!(NotImplemented, "validate with repair is not supported");
    }
    // While others write, the counts are those of another moment.
    let counted = context.service.engine.counts_at(&snapshot, &collection);
    let keys = document_keys(&collection)?;
    let mut errors = Vec::new();
    let mut fault = |text: String| {
        if errors.len() < ERRORS_MAX {
            errors.push(text);
        }
    };
    let mut interrupt = context.interrupt.paced();
    let mut pace = || interrupt.check();
    let report = check::collection(&snapshot, &collection, Some(&*keys), &mut pace, &mut fault)?;
    if let Some(text) = counted.and_then(|counted| report.miscounted(counted)) {
        fault(text);
    }
    reply.append_namespace("ns", &ns);
    reply.append("uuid", &nestor_database::uuid::Uuid(collection.uuid).to_value());
    if !args.metadata {
        reply.append("nInvalidDocuments", report.invalid as i32);
        reply.append("nNonCompliantDocuments", 0);
        reply.append("nrecords", report.documents as i32);
    }
    reply.append("nIndexes", collection.indexes.len() as i32);
    let mut keys = Document::new();
    let mut details = Document::new();
    for (index, found) in collection.indexes.iter().zip(&report.indexes) {
        let valid = found.faults == 0;
        keys.push(index.name.clone(), found.entries as i32);
        details.push(
            index.name.clone(),
            doc! { "valid": valid, "spec": index.spec.listed().clone() },
        );
    }
    reply.append("keysPerIndex", &keys);
    reply.append("indexDetails", &details);
    reply.append("valid", errors.is_empty());
    reply.append("repaired", false);
    reply.append("repairMode", "None");
    reply.append("readTimestamp", snapshot.optime());
    let list = |texts: Vec<String>| Value::from(texts.into_iter().map(Value::from).collect::<Vec<_>>());
    reply.append("warnings", &list(Vec::new()));
    reply.append("errors", &list(errors));
    reply.append("extraIndexEntries", &list(Vec::new()));
    reply.append("missingIndexEntries", &list(Vec::new()));
    reply.append("corruptRecords", &list(Vec::new()));
    Ok(())
}

fn check_options(args: &ValidateArgs<'_>) -> Result<()> {
    let clash = |a: &str, b: &str| -> Result<()> {
        bail!(
            InvalidOptions,
            "Running the validate command with {{ {a}: true }} is not supported with {{ {b}: true }}"
        )
    };
    if args.background && args.full {
        clash("background", "full")?;
    }
    if args.background && args.enforce_fast_count {
        clash("background", "enforceFastCount")?;
    }
    if args.background && args.repair {
        clash("background", "repair")?;
    }
    if args.enforce_fast_count && args.repair {
        clash("enforceFastCount", "repair")?;
    }
    if args.check_bson_conformance && args.repair {
        clash("checkBSONConformance", "repair")?;
    }
    if args.metadata
        && (args.full || args.background || args.repair || args.enforce_fast_count || args.check_bson_conformance)
    {
        bail!(
            InvalidOptions,
            "Running the validate command with {{ metadata: true }} is not supported with any other options"
        );
    }
    if args.background && args.check_bson_conformance && args.full {
        clash("background", "checkBSONConformance")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::Service;
    use crate::tests::Client;
    use nestor_database::DatabaseOptions;
    use nestor_model::Namespace;
    use nestor_storage::{Collection, Engine, EngineOptions, WriteSet};

    /// The answer of validate after a commit that no command makes: `valid`, which indexes are valid, and its errors.
    fn validated(spoil: impl FnOnce(&mut WriteSet, &Collection)) -> (bool, Vec<bool>, String) {
        let engine = Engine::ephemeral(EngineOptions::at_time(1_700_000_000));
        let service = Service::new(DatabaseOptions::default(), engine);
        let mut client = Client::new(&service);
        let index = doc! { "key": doc! { "a": 1 }, "name": "a_1" };
        client.run(doc! { "createIndexes": "c", "indexes": vec![Value::from(index)] });
        let documents: Vec<Value> = (0..3).map(|i| doc! { "_id": i, "a": i }.into()).collect();
        client.run(doc! { "insert": "c", "documents": documents });
        let mut ws = service.engine.begin();
        let found = ws.catalog().get(&Namespace::new("test", "c")).cloned();
        spoil(&mut ws, &found.expect("it was made"));
        service.engine.commit(ws).expect("nobody else writes");
        let reply = client.run(doc! { "validate": "c" });
        let flag = |doc: &Document, name: &str| doc.get(name).is_some_and(ValueRef::truthy);
        let details = reply.get("indexDetails").and_then(ValueRef::as_document);
        let details = details.expect("a document").to_document();
        let valid =
            |(_, index): (&str, ValueRef<'_>)| flag(&index.as_document().expect("a document").to_document(), "valid");
        (
            flag(&reply, "valid"),
            details.iter().map(valid).collect(),
            format!("{:?}", reply.get("errors").expect("errors")),
        )
    }

    #[test]
    fn faults_are_told_and_put_down_to_their_index() {
        assert_eq!(validated(|_, _| {}), (true, vec![true, true], "[]".into()));
        let stray = |ws: &mut WriteSet, c: &Collection| ws.put(c.indexes[1].tree, [7; 12], b"");
        let (valid, indexes, errors) = validated(stray);
        assert_eq!((valid, indexes), (false, vec![true, false]), "{errors}");
        assert!(errors.contains("index a_1 has 4 entries, 3 belong there"), "{errors}");
        let miscounted = |ws: &mut WriteSet, c: &Collection| ws.add_count(c.id, 1, 0);
        let (valid, indexes, errors) = validated(miscounted);
        assert_eq!((valid, indexes), (false, vec![true, true]), "{errors}");
        assert!(
            errors.contains("3 documents of 63 bytes, but counts say 4 of 63"),
            "{errors}"
        );
    }
}
