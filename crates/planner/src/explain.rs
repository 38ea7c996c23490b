//! Plans as explain prints them.

use crate::catalog::{IndexInfo, PartKind};
use crate::interval::Strings;
use crate::plan::{CollScan, ColumnAccess, ColumnReads, GeoNear, IndexScan, PlanNode, TextMatch};
use nestor_model::{Document, Value, doc};
use nestor_query::sort::SortSpec;

/// The records of a clustered collection that a scan reads, if it does not read them all.
pub fn id_range_fields(scan: &CollScan, out: &mut Document) {
    if let Some(range) = scan.range() {
        out.push("minRecord", range.low.clone());
        out.push("maxRecord", range.high.clone());
    }
}

/// What the consumer of a scan by columns looks at, and how many rows are expected.
pub fn column_fields(access: &ColumnAccess, out: &mut Document) {
    match &access.reads {
        ColumnReads::Documents => out.push("columns", "of the filter"),
        ColumnReads::Paths { paths, .. } | ColumnReads::Rows(paths) => {
            let paths: Vec<Value> = paths.iter().map(|path| Value::String(path.clone())).collect();
            out.push("columns", paths);
        }
    }
    if let Some(unwinds) = &access.unwinds {
        out.push("unwinds", Value::String(unwinds.array.clone()));
        if let Some(index) = &unwinds.index {
            out.push("includeArrayIndex", Value::String(index.clone()));
        }
        if unwinds.preserves {
            out.push("preserveNullAndEmptyArrays", true);
        }
    }
    if let Some(estimated) = access.estimated {
        out.push("estimatedRows", Value::count(estimated));
    }
}

/// A plan as a document: stage, its own fields, then its inputs.
pub fn plan_document(plan: &PlanNode) -> Document {
    let mut out = doc! { "stage": plan.stage() };
    match plan {
        PlanNode::CollScan(scan) => {
            if let Some(filter) = &scan.filter {
                out.push("filter", filter.serialize());
            }
            out.push("direction", if scan.forward { "forward" } else { "backward" });
            id_range_fields(scan, &mut out);
            if let Some(access) = &scan.columns {
                column_fields(access, &mut out);
            }
        }
        PlanNode::IdLookup(lookup) => {
            out.push("keyPattern", doc! { "_id": 1 });
            out.push("indexName", "_id_");
            if let Some(filter) = &lookup.filter {
                out.push("filter", filter.serialize());
            }
        }
        PlanNode::IndexScan(scan) => index_scan_fields(scan, &mut out),
        PlanNode::GeoNear(near) => near.fields(&mut out),
        PlanNode::TextMatch(text) => text.fields(&mut out),
        PlanNode::TextOr(text) => {
            if let Some(filter) = &text.filter {
                out.push("filter", filter.serialize());
            }
        }
        PlanNode::Fetch { filter, .. } => {
            if let Some(filter) = filter {
                out.push("filter", filter.serialize());
            }
        }
        PlanNode::Filter { filter, .. } => out.push("filter", filter.serialize()),
        PlanNode::Sort { spec, limit, .. } => sort_fields(spec, *limit, &mut out),
        PlanNode::SortMerge { spec, .. } => out.push("sortPattern", spec.serialize()),
        PlanNode::Limit { limit, .. } => out.push("limitAmount", Value::count(*limit)),
        PlanNode::Skip { skip, .. } => out.push("skipAmount", Value::count(*skip)),
        PlanNode::Project { projection, .. }
        | PlanNode::Covered {
            projection: Some(projection),
            ..
        } => out.push("transformBy", projection.specification().to_buf()),
        PlanNode::Eof
        | PlanNode::ReturnKey { .. }
        | PlanNode::Covered { .. }
        | PlanNode::Or { .. }
        | PlanNode::Count { .. }
        | PlanNode::Find(_)
        | PlanNode::Made { .. }
        | PlanNode::Changes { .. }
        | PlanNode::Given
        | PlanNode::Pipeline(_) => {}
    }
    let inputs: Vec<Value> = plan
        .inputs()
        .into_iter()
        .map(|input| plan_document(input).into())
        .collect();
    match (plan, inputs.len()) {
        (PlanNode::Or { .. } | PlanNode::SortMerge { .. } | PlanNode::Find(_), _) => out.push("inputStages", inputs),
        (_, 0) => {}
        (PlanNode::TextOr(_), 2..) => out.push("inputStages", inputs),
        _ => out.push("inputStage", inputs.into_iter().next()),
    }
    out
}

/// Appends the fields of a SORT.
pub fn sort_fields(spec: &SortSpec, limit: Option<u64>, out: &mut Document) {
    out.push("sortPattern", spec.serialize());
    out.push("memLimit", 100 * 1024 * 1024);
    if let Some(limit) = limit {
        out.push("limitAmount", Value::count(limit));
    }
    out.push("type", "simple");
}

/// Appends the fields of a scan of an index.
pub fn index_scan_fields(scan: &IndexScan, out: &mut Document) {
    let index = &scan.index;
    if let Some(filter) = &scan.key_filter {
        out.push("filter", filter.serialize());
    }
    out.push("keyPattern", index.key_pattern.clone());
    out.push("indexName", index.name.clone());
    if let Some(collation) = &index.collation {
        out.push("collation", collation.collation().to_document());
    }
    out.push("isMultiKey", index.is_multikey());
    let is_text = index.kind.text().is_some();
    if !is_text {
        out.push("multiKeyPaths", multikey_paths(index));
    }
    out.push("isUnique", index.unique);
    out.push("isSparse", index.declared_sparse);
    out.push("isPartial", index.partial.is_some());
    out.push("indexVersion", 2);
    out.push("direction", if scan.forward { "forward" } else { "backward" });
    // MongoDB shows none of a text index: its terms are shown above.
    out.push(
        "indexBounds",
        if is_text { Document::new() } else { index_bounds(scan) },
    );
}

impl GeoNear {
    /// Appends the fields of a search around a point.
    pub fn fields(&self, out: &mut Document) {
        out.push("keyPattern", self.index.key_pattern.clone());
        out.push("indexName", self.index.name.clone());
        out.push("indexVersion", 2);
    }
}

impl TextMatch {
    /// What is searched for in a text index.
    pub fn fields(&self, out: &mut Document) {
        out.push("indexPrefix", self.prefix.clone());
        out.push("indexName", self.index.name.clone());
        out.push("parsedTextQuery", self.search.parsed());
        out.push("textIndexVersion", self.search.spec.version as i32);
    }
}

/// For each part the prefixes of its path that held arrays.
fn multikey_paths(index: &IndexInfo) -> Document {
    let mut out = Document::new();
    for part in &index.parts {
        let names: Vec<&str> = part.path.parts().iter().map(|p| p.name.as_str()).collect();
        let prefixes: Vec<Value> = (0..names.len())
            .filter(|at| part.multikey >> at & 1 == 1)
            .map(|at| names[..=at].join(".").into())
            .collect();
        out.push(part.path.as_str(), prefixes);
    }
    out
}

/// For each part its intervals, in the order the scan visits them.
fn index_bounds(scan: &IndexScan) -> Document {
    let mut out = Document::new();
    for (part, list) in scan.index.parts.iter().zip(&scan.bounds.parts) {
        let ascending = (part.kind != PartKind::Descending) == scan.forward;
        let strings = match scan.index.collation {
            Some(_) if part.collated => Strings::SortKeys,
            _ => Strings::Plain,
        };
        let texts: Vec<Value> = list.explain(ascending, strings).into_iter().map(Value::from).collect();
        out.push(part.path.as_str(), texts);
    }
    out
}
