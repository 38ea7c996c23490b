//! `distinct`: the different values at a path.

use crate::context::Context;
use crate::facts::{Facts, Flags, Preparation};
use crate::needs::{self, Needs};
use crate::spec::CommandSpec;
use nestor_database::names;
use nestor_database::observe::op_kind::OpKind;
use nestor_database::operation::pipeline::{Purpose, stages_over_view};
use nestor_database::operation::{Operation, Work};
use nestor_database::read;
use nestor_database::read::Target;
use nestor_database::shape::{Shape, Words};
use nestor_exec::catalog::indexes;
use nestor_exec::{Step, build, find, run_one_of};
use nestor_model::{
    ArrayRef, DocRef, Namespace, Path, PathPart, RawDoc, RawWriter, Result, Str, Value, ValueRef, bail, doc, raw,
};
use nestor_planner::choose::tells;
use nestor_planner::find::Wanted;
use nestor_planner::interval::{Interval, IntervalList};
use nestor_planner::pipeline::distinct_scan;
use nestor_planner::plan::{IndexScan, ScanPurpose};
use nestor_planner::{FindQuery, PlanNode, candidates};
use nestor_query::collation::{Key, compare};
use nestor_query::projection::{Policy, Projection};
use nestor_query::{OpContext, Scope};
use nestor_storage::{Collection, View};
use std::collections::HashSet;
use std::sync::Arc;

/// The command.
pub const SPEC: CommandSpec = Facts::collection("distinct", "The different values of a field.")
    .flags(
        Flags::TXN
            .and(Flags::LONG)
            .and(Flags::FOR_REPLY)
            .and(Flags::READ_CONCERN)
            .and(Flags::PRIMARY_READ)
            .and(Flags::USUALLY_SHORT)
            .and(Flags::EXPLAINABLE),
    )
    .op(OpKind::Read)
    .prepared_as(Preparation::Distinct)
    .needs(Needs::Usually(needs::find))
    .runs(run);

crate::args! {
    /// Arguments of `distinct`.
    pub struct DistinctArgs<'a>: "distinct" command {
        "distinct" => target: Target<'a>,
        "key" => key: &'a str,
        "query" => query: Option<RawDoc<'a>>,
        "hint" => hint: Option<ValueRef<'a>>,
        "collation" => collation: Option<RawDoc<'a>>,
        "querySettings" => query_settings: Option<RawDoc<'a>>,
        "collectionUUID" => collection_uuid: Option<nestor_database::uuid::Uuid>,
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = DistinctArgs::parse(context.body, context.sequences)?;
    let read = context.read_view()?;
    let view = read.view();
    let shape = shape(context, view, &args)?;
    context.admit_shape(&shape)?;
    context.look_up_settings(&shape)?;
    context.describe(shape.clone());
    let mut operation = prepare(context, view, &args, shape, Purpose::Run)?;
    let is_restricted = context.restrict(&mut operation);
    let root = match (&operation.work, &operation.collection) {
        (Work::Pipeline(piped), _) => Some(context.open_pipeline(view, &operation, piped)?),
        (Work::Distinct { query, .. }, Some(collection)) => {
            let written = operation.shape.words.written();
            let cache = Some(&*context.service.plan_cache);
            Some(match jumping(context, view, &operation, is_restricted)? {
                Some(plan) => run_one_of(vec![plan], Wanted::Distinct, query, written, collection)?,
                None => find(
                    query,
                    Wanted::Distinct,
                    written,
                    collection,
                    cache,
                    context.columns(view),
                )?,
            })
        }
        _ => None,
    };
    let (op, path) = (&operation.op, Path::new(args.key));
    let collator = &op.collator;
    let mut seen: HashSet<Key> = HashSet::new();
    let mut values: Vec<Value> = Vec::new();
    let mut bytes = 0usize;
    if let Some(mut root) = root {
        context.note_plan(&*root);
        let mut batch = read::batch(context, view, op, true);
        loop {
            match root.next(&mut batch)? {
                Step::Row(row) => visit(ValueRef::Document(row.as_doc()), path.parts(), true, &mut |value| {
                    let key = Key::new(value.to_value(), collator.as_ref());
                    if !seen.contains(&key) {
                        values.push(key.value.clone());
                        bytes += 16 + key.value.weight();
                        seen.insert(key);
                    }
                }),
                Step::Pause => {}
                Step::Eof => break,
            }
            if bytes > 2 * raw::DOCUMENT_BYTES_MAX {
                bail!(17217, "distinct too big, 16mb cap");
            }
        }
        context.observe(&*root);
    }
    values.sort_by(|a, b| compare(a.as_ref(), b.as_ref(), collator.as_ref()));
    let before = reply.len();
    reply.begin_array("values");
    for (i, value) in values.iter().enumerate() {
        reply.append_index(i, value);
        if reply.len() - before > raw::DOCUMENT_BYTES_MAX {
            bail!(17217, "distinct too big, 16mb cap");
        }
    }
    reply.end();
    crate::batch::append_time(context, reply);
    Ok(())
}

/// The shape of a distinct, its collection looked up in `view`.
///
/// Errors: 31032 a path with a zero byte, those of namespaces, 361 another UUID.
pub(crate) fn shape<'a>(context: &Context<'_>, view: &dyn View, args: &DistinctArgs<'a>) -> Result<Shape<'a>> {
    if args.key.contains('\0') {
        bail!(31032, "Key field cannot contain an embedded null byte");
    }
    if args.query_settings.is_some() {
        bail!(NotImplemented, "querySettings are not supported");
    }
    let ns = context.namespace(view, args.target)?;
    names::check_readable(&ns)?;
    nestor_database::write::check_uuid(context, &ns, args.collection_uuid)?;
    Ok(shape_on(args, ns))
}

/// The shape of a distinct on `ns`.
pub(crate) fn shape_on<'a>(args: &DistinctArgs<'a>, ns: Namespace) -> Shape<'a> {
    Shape {
        command: SPEC.name,
        ns,
        is_settable: true,
        words: Words {
            filter: args.query,
            collation: args.collation,
            key: Some(args.key),
            ..Words::default()
        },
    }
}

/// Prepares a distinct of that shape; on a view it reads what a pipeline gives.
pub(crate) fn prepare<'a>(
    context: &Context<'_>,
    view: &dyn View,
    args: &DistinctArgs<'a>,
    shape: Shape<'a>,
    purpose: Purpose,
) -> Result<Operation<'a>> {
    let collection = view.catalog().get(&shape.ns).cloned();
    let collator = read::collator(args.collation, collection.as_deref())?;
    let (op, scope) = context.operation_under(None, collator)?;
    let mut scope = scope.without_clock();
    let work = match &collection {
        Some(found) if context.reads_by_pipeline(view, found)? => {
            let stages = stages_over_view(&shape.words, 0, None)?;
            let pipeline = (ArrayRef::Items(&stages), args.hint);
            Work::Pipeline(context.prepare_pipeline(view, &shape.ns, pipeline, &mut scope, purpose)?)
        }
        _ => {
            let mut query = FindQuery::all(read::parse_filter(args.query, &mut scope)?);
            query.collation.clone_from(&op.collator);
            read::check_hint(args.hint, collection.as_deref())?.apply(&mut query);
            read::bind_text(&mut query, collection.as_deref())?;
            query.reads = Some([Str::from(args.key)].into());
            query.reads_exactly = [Str::from(args.key)].into();
            query.reads_shape = false;
            Work::Distinct {
                query,
                path: Path::new(args.key),
                may_jump: args.hint.is_none(),
            }
        }
    };
    Ok(Operation {
        shape,
        collection,
        op,
        disk_use: true,
        work,
    })
}

/// The plans by which the documents of a distinct could be found: one loose scan, if there is an index for it and nothing
/// says which indexes to use.
pub(super) fn plans(
    context: &Context<'_>,
    view: &dyn View,
    operation: &Operation<'_>,
    is_restricted: bool,
) -> Result<Vec<PlanNode>> {
    let (Work::Distinct { query, .. }, Some(collection)) = (&operation.work, &operation.collection) else {
        return Ok(vec![PlanNode::Eof]);
    };
    match jumping(context, view, operation, is_restricted)? {
        Some(plan) => Ok(vec![plan]),
        None => Ok(candidates(query, indexes(collection)?)),
    }
}

/// The plan that reads one entry of an index for each value, if there is such an index.
fn jumping(
    context: &Context<'_>,
    view: &dyn View,
    operation: &Operation<'_>,
    is_restricted: bool,
) -> Result<Option<PlanNode>> {
    let (Work::Distinct { query, path, may_jump }, Some(collection)) = (&operation.work, &operation.collection) else {
        return Ok(None);
    };
    let indexes = indexes(collection)?;
    let scan = match *may_jump && !is_restricted {
        true => distinct_scan(&query.filter, path, query.collation.as_ref(), indexes),
        false => None,
    };
    match scan {
        // One entry for each value. The key of null may stand for missing fields, which needs all their documents.
        Some(scan) if !has_null(context, view, &scan, &operation.op, collection)? => {
            let tells = tells(&scan, path.as_str());
            let input = Box::new(PlanNode::IndexScan(scan));
            Ok(Some(if tells {
                PlanNode::Covered {
                    input,
                    projection: Some(Arc::new(only(path)?)),
                }
            } else {
                PlanNode::Fetch { input, filter: None }
            }))
        }
        _ => Ok(None),
    }
}

/// The projection to the values at `path`.
fn only(path: &Path) -> Result<Projection> {
    let mut spec = doc! {};
    spec.push(path.as_str(), 1);
    if path.parts().first().is_none_or(|first| first.name != "_id") {
        spec.push("_id", 0);
    }
    Projection::parse(spec.as_ref(), &mut Scope::new(), Policy::Find)
}

/// Whether the scan meets the key of null, which stands for missing fields too.
fn has_null(
    context: &Context<'_>,
    view: &dyn View,
    scan: &IndexScan,
    op: &OpContext,
    collection: &Arc<Collection>,
) -> Result<bool> {
    let ScanPurpose::Distinct { parts } = scan.purpose else {
        return Ok(true);
    };
    let mut bounds = scan.bounds.clone();
    let nulls = IntervalList::union_of(vec![Interval::point(Value::Undefined), Interval::point(Value::Null)]);
    bounds.parts[parts - 1] = bounds.parts[parts - 1].intersect(&nulls);
    let scan = IndexScan { bounds, ..scan.clone() };
    let mut root = build(&PlanNode::IndexScan(scan), collection)?;
    let mut batch = read::batch(context, view, op, true);
    loop {
        match root.next(&mut batch)? {
            Step::Row(_) => return Ok(true),
            Step::Pause => {}
            Step::Eof => return Ok(false),
        }
    }
}

/// Calls `found` with each value at the path, arrays on the way and at the end expanded one level. A numeric
/// component is a position in an array and a field name in documents, both if both are there.
fn visit<'d>(value: ValueRef<'d>, parts: &[PathPart], from_document: bool, found: &mut dyn FnMut(ValueRef<'d>)) {
    let Some((part, rest)) = parts.split_first() else {
        match value {
            ValueRef::Array(items) if from_document => items.iter().for_each(found),
            ValueRef::Missing => {}
            other => found(other),
        }
        return;
    };
    match value {
        ValueRef::Document(doc) => {
            let inner = DocRef::get(doc, &part.name).unwrap_or(ValueRef::Missing);
            visit(inner, rest, true, found);
        }
        ValueRef::Array(items) => {
            if let Some(item) = part.index.and_then(|i| items.get(i as usize)) {
                visit(item, rest, true, found);
            }
            if from_document {
                for item in items.iter() {
                    if let ValueRef::Document(doc) = item {
                        let inner = doc.get(&part.name).unwrap_or(ValueRef::Missing);
                        visit(inner, rest, true, found);
                    }
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::Document;

    fn values(doc: Document, path: &str) -> String {
        let mut out = Vec::new();
        visit(
            ValueRef::Document(doc.as_ref()),
            Path::new(path).parts(),
            true,
            &mut |value| out.push(format!("{value:?}")),
        );
        out.join(" ")
    }

    #[test]
    fn arrays_are_expanded_once() {
        let inner = |v: i32| Value::from(doc! { "b": v });
        assert_eq!(values(doc! { "a": 1 }, "a"), "1");
        assert_eq!(values(doc! {}, "a"), "");
        assert_eq!(
            values(doc! { "a": vec![1.into(), Value::from(vec![2.into()])] }, "a"),
            "1 [2]"
        );
        assert_eq!(values(doc! { "a": vec![inner(1), inner(2)] }, "a.b"), "1 2");
        assert_eq!(values(doc! { "a": vec![inner(1), inner(2)] }, "a.1.b"), "2");
    }
}
