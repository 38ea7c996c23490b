//! `distinct`: the different values at a path.

use crate::Context;
use crate::dispatch::{CommandSpec, Flags};
use crate::read::{self, Target};
use nestor_exec::catalog::indexes;
use nestor_exec::{BoxOperator, Step, build, run_one_of};
use nestor_model::{ArrayRef, DocRef, Path, PathPart, RawDoc, RawWriter, Result, Value, ValueRef, bail, doc, raw};
use nestor_planner::choose::tells;
use nestor_planner::interval::{Interval, IntervalList};
use nestor_planner::pipeline::distinct_scan;
use nestor_planner::plan::{IndexScan, ScanPurpose};
use nestor_planner::shape::Written;
use nestor_planner::{FindQuery, PlanNode, candidates};
use nestor_query::collation::{Key, compare};
use nestor_query::projection::{Policy, Projection};
use nestor_query::{OpContext, Scope};
use nestor_storage::{Collection, View};
use std::collections::HashSet;
use std::sync::Arc;

/// The command.
pub const SPEC: CommandSpec = CommandSpec {
    name: "distinct",
    aliases: &[],
    flags: Flags::TXN
        .and(Flags::LONG)
        .and(Flags::FOR_REPLY)
        .and(Flags::READ_CONCERN),
    help: "The different values of a field.",
    run,
};

crate::args! {
    /// Arguments of `distinct`.
    pub struct DistinctArgs<'a>: "distinct" command {
        "distinct" => target: Target<'a>,
        "key" => key: &'a str,
        "query" => query: Option<RawDoc<'a>>,
        "hint" => hint: Option<ValueRef<'a>>,
        "collation" => collation: Option<RawDoc<'a>>,
        "querySettings" => query_settings: Option<RawDoc<'a>>,
        "collectionUUID" => collection_uuid: Option<crate::args::Uuid>,
    }
}

fn run(context: &mut Context<'_>, reply: &mut RawWriter) -> Result<()> {
    let args = DistinctArgs::parse(context.body, context.sequences)?;
    if args.key.contains('\0') {
        bail!(31032, "Key field cannot contain an embedded null byte");
    }
    let read = context.read_view()?;
    let view = read.view();
    let ns = context.namespace(view, args.target)?;
    crate::write::check_uuid(context, &ns, args.collection_uuid)?;
    context.look_up_settings(&ns)?;
    let collection = view.catalog().get(&ns).cloned();
    let collator = read::collator(args.collation, collection.as_deref())?;
    let (op, scope) = context.operation_under(None, collator.clone())?;
    let mut scope = scope.without_clock();
    let filter = read::parse_filter(args.query, &mut scope)?;
    let path = Path::new(args.key);
    let mut root: Option<BoxOperator> = None;
    if let Some(collection) = collection {
        root = Some(if collection.is_view() {
            let query = args.query.map_or(Value::Document(Default::default()), Value::from);
            let stages = [Value::from(doc! { "$match": query })];
            context
                .plan_pipeline_hinted(view, &ns, ArrayRef::Items(&stages), &mut scope, args.hint)?
                .root
        } else {
            let mut query = FindQuery::all(filter);
            query.collation.clone_from(&collator);
            read::check_hint(args.hint, Some(&collection))?.apply(&mut query);
            let written = Written {
                filter: args.query.map(DocRef::Raw),
                collation: args.collation.map(DocRef::Raw),
                ..Written::default()
            };
            let is_free = !context.restrict_indexes(&ns, &mut query, written) && args.hint.is_none();
            let plans = match is_free {
                true => plans(context, view, &query, &path, &collection)?,
                false => candidates(&query, &indexes(&collection)?),
            };
            run_one_of(plans, &query, written, &collection)?
        });
    }
    let mut seen: HashSet<Key> = HashSet::new();
    let mut values: Vec<Value> = Vec::new();
    let mut bytes = 0usize;
    if let Some(mut root) = root {
        context.note_plan(&*root);
        let mut batch = read::batch(context, view, &op, true);
        loop {
            match root.next(&mut batch)? {
                Step::Row(row) => visit(ValueRef::Document(row.as_doc()), path.parts(), true, &mut |value| {
                    let key = Key::new(value.to_value(), collator.as_ref());
                    if !seen.contains(&key) {
                        values.push(key.value.clone());
                        bytes += 16 + nestor_query::accumulator::value_bytes(&key.value);
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

/// The plans by which the documents of a query could be found whose values at `path` are wanted: one loose scan, if
/// there is an index for it.
pub(super) fn plans(
    context: &Context<'_>,
    view: &dyn View,
    query: &FindQuery,
    path: &Path,
    collection: &Arc<Collection>,
) -> Result<Vec<PlanNode>> {
    let indexes = indexes(collection)?;
    let (op, _) = context.operation(None)?;
    match distinct_scan(&query.filter, path, query.collation.as_ref(), &indexes) {
        // One entry for each value. The key of null may stand for missing fields, which needs all their documents.
        Some(scan) if !has_null(context, view, &scan, &op, collection)? => {
            let tells = tells(&scan, path.as_str());
            let input = Box::new(PlanNode::IndexScan(scan));
            Ok(vec![if tells {
                PlanNode::Covered {
                    input,
                    projection: Some(Arc::new(only(path)?)),
                }
            } else {
                PlanNode::Fetch { input, filter: None }
            }])
        }
        _ => Ok(candidates(query, &indexes)),
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
