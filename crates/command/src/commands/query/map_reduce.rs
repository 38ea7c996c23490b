//! `mapReduce`: a pipeline whose stages run the functions it is given.
//!
//! ```text
//! query, sort, limit ─► $project emits ─► $unwind ─► $group (reduce) ─► $project (finalize) ─► reply, $out or $merge
//! ```

use crate::args::NonNegative;
use crate::context::Context;
use crate::facts::{Facts, Flags, Preparation};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::observe::op_kind::OpKind;
use nestor_database::operation::pipeline::Purpose;
use nestor_database::operation::{Operation, Work};
use nestor_database::shape::{Shape, Words};
use nestor_database::write::Progress;
use nestor_database::write::merge::write_merge;
use nestor_database::write::out::write_out;
use nestor_database::{names, read};
use nestor_exec::Step;
use nestor_model::{Array, ArrayRef, DocRef, Document, RawDoc, RawWriter, Result, Value, ValueRef, bail, doc, raw};
use nestor_query::stage::Stage;
use nestor_script::Globals;
use nestor_storage::View;

/// The command.
pub const SPEC: CommandSpec = Facts::collection(
    "mapReduce",
    "Reduces what is emitted for documents, by functions in JavaScript.",
)
.aliases(&["mapreduce"])
.flags(
    Flags::LONG
        .and(Flags::FOR_REPLY)
        .and(Flags::READ_CONCERN)
        .and(Flags::PRIMARY_READ)
        .and(Flags::WRITE_CONCERN)
        .and(Flags::EXPLAINABLE),
)
.op(OpKind::Read)
.prepared_as(Preparation::MapReduce)
.needs(Needs::Operation)
.runs(run);

crate::args! {
    /// Arguments of `mapReduce`.
    pub struct MapReduceArgs<'a>: "mapReduce" command {
        "mapReduce" => collection: &'a str,
        "map" => map: ValueRef<'a>,
        "reduce" => reduce: ValueRef<'a>,
        "out" => out: ValueRef<'a>,
        "query" => query: Option<RawDoc<'a>>,
        "sort" => sort: Option<RawDoc<'a>>,
        "limit" => limit: Option<NonNegative>,
        "finalize" => finalize: Option<ValueRef<'a>>,
        "scope" => scope: Option<RawDoc<'a>>,
        "jsMode" => js_mode: bool,
        "verbose" => verbose: bool,
        "collation" => collation: Option<RawDoc<'a>>,
        "bypassDocumentValidation" => bypass_document_validation: bool,
    }
}

crate::args! {
    /// `out` of `mapReduce`.
    pub struct OutArgs<'a>: "mapReduce.out" nested {
        "inline" => inline: Option<f64>,
        "replace" => replace: Option<&'a str>,
        "merge" => merge: Option<&'a str>,
        "reduce" => reduce: Option<&'a str>,
        "db" => db: Option<&'a str>,
        "sharded" => sharded: bool,
        "nonAtomic" => non_atomic: Option<bool>,
    }
}

/// Where the results go.
enum Out<'a> {
    /// They are the reply.
    Inline,
    /// They take the place of what is in the collection.
    Replace(OutTarget<'a>),
    /// They take the place of what has their key.
    Merge(OutTarget<'a>),
    /// They are reduced with what has their key.
    Reduce(OutTarget<'a>),
}

/// A collection, of another database if that is given.
struct OutTarget<'a> {
    db: Option<&'a str>,
    collection: &'a str,
}

impl<'a> Out<'a> {
    /// Errors: 2 (BadValue) for what says nothing or two things, 72 for options of sharded clusters.
    fn parse(value: ValueRef<'a>) -> Result<Self> {
        let args = match value {
            ValueRef::String(collection) => return Ok(Self::Replace(OutTarget { db: None, collection })),
            ValueRef::Document(DocRef::Raw(raw)) => OutArgs::parse(raw, &[])?,
            other => bail!(
                TypeMismatch,
                "'out' has to be a string or an object, found {}",
                other.bson_type().alias()
            ),
        };
        if args.sharded {
            bail!(
                InvalidOptions,
                "the 'sharded' option of mapReduce's out is not supported"
            );
        }
        if args.non_atomic == Some(false) {
            bail!(
                InvalidOptions,
                "mapReduce does not support 'nonAtomic: false': the results become visible as they are written"
            );
        }
        let into = |collection| OutTarget {
            db: args.db,
            collection,
        };
        match (args.inline, args.replace, args.merge, args.reduce) {
            (Some(_), None, None, None) if args.db.is_none() => Ok(Self::Inline),
            (None, Some(name), None, None) => Ok(Self::Replace(into(name))),
            (None, None, Some(name), None) => Ok(Self::Merge(into(name))),
            (None, None, None, Some(name)) => Ok(Self::Reduce(into(name))),
            _ => bail!(
                BadValue,
                "'out' of mapReduce takes exactly one of inline, replace, merge and reduce, and 'db' only with the last three"
            ),
        }
    }

    fn target(&self) -> Option<&OutTarget<'a>> {
        match self {
            Self::Inline => None,
            Self::Replace(into) | Self::Merge(into) | Self::Reduce(into) => Some(into),
        }
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = MapReduceArgs::parse(context.body, context.sequences)?;
    let out = Out::parse(args.out)?;
    if out.target().is_some() {
        context.interrupt.outlive_client();
    }
    context.check_write_concern()?;
    let read = context.read_view()?;
    let view = read.view();
    let operation = prepare(context, view, &args, Purpose::Run)?;
    context.admit_shape(&operation.shape)?;
    context.describe(operation.shape.clone());
    let Work::Pipeline(piped) = &operation.work else {
        unreachable!("a mapReduce is prepared as a pipeline");
    };
    let mut root = context.open_pipeline(view, &operation, piped)?;
    let Some(into) = out.target() else {
        context.note_plan(&*root);
        let mut batch = read::batch(context, view, &operation.op, operation.disk_use);
        let before = reply.len();
        reply.begin_array("results");
        let mut count = 0;
        loop {
            match root.next(&mut batch)? {
                Step::Row(row) => {
                    reply.append_index(count, ValueRef::Document(row.as_doc()));
                    count += 1;
                }
                Step::Pause => {}
                Step::Eof => break,
            }
            if reply.len() - before > raw::DOCUMENT_BYTES_MAX {
                bail!(
                    BSONObjectTooLarge,
                    "the results of mapReduce are larger than a document may be: name a collection in 'out'"
                );
            }
        }
        reply.end();
        context.observe(&*root);
        crate::batch::append_time(context, reply);
        return Ok(());
    };
    let mut progress = Progress::default();
    let (op, bypass) = (&operation.op, args.bypass_document_validation);
    match piped.pipeline.stages.last() {
        Some(Stage::Out(out)) => {
            context.service.node.gates.check_user_write(&out.target.db)?;
            write_out(context, view, root, op, out, bypass, &mut progress)?;
        }
        Some(Stage::Merge(merge)) => {
            context.service.node.gates.check_user_write(&merge.into.db)?;
            write_merge(context, view, root, op, merge, bypass, &mut progress)?;
        }
        _ => {}
    }
    drop(read);
    match into.db {
        None => reply.append("result", into.collection),
        Some(db) => {
            let result = doc! { "db": db, "collection": into.collection };
            reply.append("result", ValueRef::Document(result.as_ref()));
        }
    }
    context.finish_concern(progress.last, reply, false)
}

/// Refuses what is no function. An array would be taken for the arguments of one.
///
/// Error: 14.
fn check_function(name: &str, function: Option<ValueRef<'_>>) -> Result<()> {
    match function {
        None | Some(ValueRef::String(_) | ValueRef::Code(_) | ValueRef::CodeWithScope { .. }) => Ok(()),
        Some(other) => Err(crate::args::wrong_type(
            format_args!("mapReduce.{name}"),
            other.bson_type(),
            "[string, javascript, javascriptWithScope]",
        )),
    }
}

/// Prepares a mapReduce.
///
/// Errors: those of its arguments; 238 when scripts are not run.
pub(crate) fn prepare<'a>(
    context: &Context<'_>,
    view: &dyn View,
    args: &MapReduceArgs<'a>,
    purpose: Purpose,
) -> Result<Operation<'a>> {
    for (name, function) in [
        ("map", Some(args.map)),
        ("reduce", Some(args.reduce)),
        ("finalize", args.finalize.filter(|value| !value.is_nullish())),
    ] {
        check_function(name, function)?;
    }
    let out = Out::parse(args.out)?;
    let ns = names::collection(context.db(), args.collection)?;
    let collection = view.catalog().get(&ns).cloned();
    let (op, scope) = context.operation_under(None, read::collator(args.collation, collection.as_deref())?)?;
    let given = (args.scope).map_or_else(Document::new, |scope| DocRef::Raw(scope).to_document());
    let globals = Globals::new(context.service.script_library.values(context.db())?, given);
    let mut scope = scope.of_map_reduce(globals);
    let stages = stages(context.db(), args, &out);
    let mut piped = context.prepare_pipeline(view, &ns, (ArrayRef::Items(&stages), None), &mut scope, purpose)?;
    piped.bypass_validation = args.bypass_document_validation;
    Ok(Operation {
        shape: Shape {
            command: SPEC.name,
            ns,
            is_settable: false,
            words: Words {
                filter: args.query,
                sort: args.sort,
                collation: args.collation,
                ..Words::default()
            },
        },
        collection,
        op,
        disk_use: true,
        work: Work::Pipeline(piped),
    })
}

/// The pipeline.
fn stages(db: &str, args: &MapReduceArgs<'_>, out: &Out<'_>) -> Vec<Value> {
    let raw = |doc: RawDoc<'_>| Value::from(DocRef::Raw(doc).to_document());
    let mut stages: Vec<Document> = Vec::new();
    if let Some(query) = args.query {
        stages.push(doc! { "$match": raw(query) });
    }
    if let Some(sort) = args.sort.filter(|sort| !sort.is_empty()) {
        stages.push(doc! { "$sort": raw(sort) });
    }
    if let Some(limit) = args.limit.filter(|limit| limit.0 > 0) {
        stages.push(doc! { "$limit": limit.0 });
    }
    stages.push(doc! { "$project": doc! { "_id": 0, "emits": doc! { "$_internalJsEmit": args.map.to_value() } } });
    stages.push(doc! { "$unwind": "$emits" });
    let reduce = doc! { "$_internalJsReduce": args.reduce.to_value() };
    stages.push(doc! { "$group": doc! { "_id": "$emits.k", "value": reduce } });
    let call = |body: ValueRef<'_>, args: Vec<Value>| {
        let function = doc! { "body": body.to_value(), "args": Value::Array(Array::new(args)), "lang": "js" };
        doc! { "$project": doc! { "value": doc! { "$function": function } } }
    };
    let finalize = args
        .finalize
        .filter(|finalize| !finalize.is_nullish())
        .map(|finalize| call(finalize, vec!["$_id".into(), "$value".into()]));
    let into = |into: &OutTarget<'_>| doc! { "db": into.db.unwrap_or(db), "coll": into.collection };
    let merge = |target: &OutTarget<'_>, when_matched: Value| {
        let merge = doc! { "into": into(target), "on": "_id", "whenMatched": when_matched, "whenNotMatched": "insert" };
        doc! { "$merge": merge }
    };
    // Results are reduced with the stored ones first and finalized after that.
    if !matches!(out, Out::Reduce(_)) {
        stages.extend(finalize.clone());
    }
    match out {
        Out::Inline => {}
        Out::Replace(target) => stages.push(doc! { "$out": into(target) }),
        Out::Merge(target) => stages.push(merge(target, "replace".into())),
        Out::Reduce(target) => {
            let both = Value::from(vec![Value::from("$value"), Value::from("$$new.value")]);
            let mut update = vec![Value::from(call(args.reduce, vec!["$_id".into(), both]))];
            update.extend(finalize.map(Value::from));
            stages.push(merge(target, Value::Array(Array::new(update))));
        }
    }
    stages.into_iter().map(Value::from).collect()
}
