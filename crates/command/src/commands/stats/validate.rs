//! `validate`: checks that every record decodes and that indexes and records agree.

use crate::Context;
use crate::args::{Arg, At, CollectionName};
use crate::dispatch::{CommandSpec, Flags};
use crate::names;
use nestor_exec::write::IndexWriter;
use nestor_model::{Document, RawDoc, RawWriter, Result, Value, ValueRef, bail, doc};
use nestor_query::env::OpContext;
use nestor_storage::{Bytes, Collection, View};

/// The command.
pub const SPEC: CommandSpec = CommandSpec {
    name: "validate",
    aliases: &[],
    flags: Flags::LONG,
    help: "Checks a collection and its indexes.",
    run,
};

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
    check(&args)?;
    let snapshot = context.read_snapshot()?;
    let Some(collection) = snapshot.catalog().get(&ns).cloned() else {
        bail!(NamespaceNotFound, "Collection '{ns}' does not exist to validate.");
    };
    if collection.is_view() {
        bail!(CommandNotSupportedOnView, "Cannot validate a view");
    }
    if args.repair {
        bail!(NotImplemented, "validate with repair is not supported");
    }
    let (op, _) = context.operation(None)?;
    let mut report = Report::default();
    report.records(context, &snapshot, &collection, &op)?;
    reply.append("ns", ns.to_string().as_str());
    reply.append("uuid", &crate::args::Uuid(collection.uuid).to_value());
    reply.append("nInvalidDocuments", report.invalid as i32);
    reply.append("nNonCompliantDocuments", 0);
    reply.append("nrecords", report.records as i32);
    reply.append("nIndexes", collection.indexes.len() as i32);
    let mut keys = Document::new();
    let mut details = Document::new();
    for (index, count) in collection.indexes.iter().zip(&report.keys) {
        keys.push(index.name.clone(), *count as i32);
        details.push(index.name.clone(), doc! { "valid": true, "spec": index.spec.clone() });
    }
    reply.append("keysPerIndex", &keys);
    reply.append("indexDetails", &details);
    reply.append("valid", report.errors.is_empty());
    reply.append("repaired", false);
    reply.append("readTimestamp", snapshot.optime());
    let list = |texts: Vec<String>| Value::from(texts.into_iter().map(Value::from).collect::<Vec<_>>());
    reply.append("warnings", &list(Vec::new()));
    reply.append("errors", &list(report.errors));
    reply.append("extraIndexEntries", &list(Vec::new()));
    reply.append("missingIndexEntries", &list(Vec::new()));
    reply.append("corruptRecords", &list(Vec::new()));
    Ok(())
}

fn check(args: &ValidateArgs<'_>) -> Result<()> {
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

#[derive(Default)]
struct Report {
    records: i64,
    invalid: i64,
    keys: Vec<i64>,
    errors: Vec<String>,
}

impl Report {
    /// Walks all records: each must be BSON and have its entries; then each index must have no others.
    fn records(
        &mut self,
        context: &Context<'_>,
        view: &dyn View,
        collection: &Collection,
        op: &OpContext,
    ) -> Result<()> {
        let writers = IndexWriter::all(collection)?;
        self.keys = vec![0; writers.len()];
        let mut cursor = view.cursor(collection.records);
        let mut more = cursor.first()?;
        let mut interrupt = context.interrupt.paced();
        while more {
            self.records += 1;
            interrupt.check()?;
            let record = Bytes::copy_from(cursor.key());
            let value = cursor.value_bytes()?;
            match RawDoc::validate(&value) {
                Err(error) => {
                    self.invalid += 1;
                    self.errors.push(format!("record {record:?} is not BSON: {error}"));
                }
                Ok(doc) => {
                    for (writer, count) in writers.iter().zip(&mut self.keys) {
                        let (entries, _) = writer.entries(doc.as_doc(), op)?;
                        for (key, type_bits) in &entries {
                            *count += 1;
                            let (entry, expected) = writer.encoder.format.entry(key, type_bits, &record);
                            if view.get(writer.index.tree, &entry)?.as_ref() != Some(&expected) {
                                self.errors.push(format!(
                                    "index {} has no entry for record {record:?}",
                                    writer.index.name
                                ));
                            }
                        }
                    }
                }
            }
            more = cursor.next()?;
        }
        for (writer, expected) in writers.iter().zip(&self.keys) {
            let mut cursor = view.cursor(writer.index.tree);
            let mut more = cursor.first()?;
            let mut found = 0i64;
            while more {
                found += 1;
                more = cursor.next()?;
            }
            if found != *expected {
                self.errors.push(format!(
                    "index {} has {found} entries, the records make {expected}",
                    writer.index.name
                ));
            }
        }
        let counted = collection.state.documents();
        if counted != self.records {
            self.errors.push(format!(
                "the collection counts {counted} documents and has {}",
                self.records
            ));
        }
        Ok(())
    }
}
