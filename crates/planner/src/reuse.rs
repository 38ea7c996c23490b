//! Plans that serve other queries of the same shape: what is kept of them, under which key, and how they are bound to the
//! literals of the next query.
//!
//! ```text
//! {a: 1, b: 2}   trial ──► FETCH, IXSCAN a: [1, 1]      kept: "FETCH(IXSCAN a)" under the key of the shape {a: eq, b: eq}
//! {a: 7, b: 9}   key found, bound ──► FETCH, IXSCAN a: [7, 7]
//! ```
//!
//! Law: a plan that was bound is one of the [candidates] of its query. So it is made as they are, from the indexes alone
//! that the kept plan uses; it is only the other candidates that are not made. Where literals leave no such plan, there is none.

use crate::access::{Search, implies};
use crate::bounds::Part;
use crate::catalog::{IndexInfo, Indexes, PartKind};
use crate::choose::{adapted, candidates_among};
use crate::clustered;
use crate::find::{FindQuery, Wanted};
use crate::finish::id_lookup;
use crate::kind::NodeKind;
pub use crate::plan::{CacheKey, Kept};
use crate::plan::{IndexScan, PlanNode, ScanPurpose};
use crate::shape::Written;
use nestor_model::fnv::Fnv;
use nestor_model::{Path, Value};
use nestor_query::matcher::{MatchExpr, Predicate};
use nestor_query::sort::SortBy;
use std::sync::Arc;

#[cfg(doc)]
use crate::candidates;

/// The part of a plan that is kept for other queries of its shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Solution {
    /// The plan's [`signature`].
    pub signature: u64,
    /// Identities of the indexes that it uses.
    indexes: Box<[u32]>,
}

impl Solution {
    /// The part of `plan` that is kept.
    pub fn of(plan: &PlanNode) -> Self {
        let mut indexes = Vec::new();
        collect_indexes(plan, &mut indexes);
        Self {
            signature: signature(plan),
            indexes: indexes.into(),
        }
    }

    /// The plan that does for `query` what the kept one did for its own. `None` when its literals leave no such plan.
    pub fn bind(&self, query: &FindQuery, wanted: Wanted, indexes: &Indexes) -> Option<PlanNode> {
        let plans = adapted(candidates_among(query, indexes, Some(&self.indexes)), wanted);
        plans.into_iter().find(|plan| signature(plan) == self.signature)
    }
}

fn collect_indexes(plan: &PlanNode, out: &mut Vec<u32>) {
    if let PlanNode::IndexScan(scan) = plan {
        if !out.contains(&scan.index.id) {
            out.push(scan.index.id);
        }
    }
    for input in plan.inputs() {
        collect_indexes(input, out);
    }
}

/// What a plan does apart from literals: its stages, indexes and directions, as a hash. Plans of one query that do
/// different things have different signatures; a plan of the next query of the same shape has the same one.
pub fn signature(plan: &PlanNode) -> u64 {
    let mut hash = Fnv::default();
    sign(plan, &mut hash);
    hash.0
}

fn sign(plan: &PlanNode, hash: &mut Fnv) {
    match plan {
        // Of rows that are only counted, the documents are not fetched: whether they are is no matter of choice.
        PlanNode::IndexScan(scan) if scan.purpose == ScanPurpose::Count => {
            hash.bytes(NodeKind::Fetch.name().as_bytes());
            let mut own = Fnv::default();
            own.bytes(NodeKind::IndexScan.name().as_bytes());
            sign_scan(scan, &mut own);
            own.bytes(b"()");
            hash.bytes(b"(");
            hash.number(own.0);
            hash.bytes(b")");
            return;
        }
        _ => hash.bytes(plan.stage().as_bytes()),
    }
    match plan {
        PlanNode::IndexScan(scan) => sign_scan(scan, hash),
        PlanNode::CollScan(scan) => hash.bytes(&[u8::from(scan.forward)]),
        PlanNode::Sort { limit, .. } => hash.bytes(&[u8::from(limit.is_some())]),
        _ => {}
    }
    hash.bytes(b"(");
    let mut before = None;
    for input in plan.inputs() {
        let own = signature(input);
        // One scan per point of a list: how many there are is a matter of literals.
        if before != Some(own) {
            hash.bytes(&own.to_le_bytes());
        }
        before = Some(own);
    }
    hash.bytes(b")");
}

fn sign_scan(scan: &IndexScan, hash: &mut Fnv) {
    hash.bytes(&scan.index.id.to_le_bytes());
    hash.bytes(&[u8::from(scan.forward)]);
    if let ScanPurpose::Distinct { parts } = scan.purpose {
        hash.bytes(&parts.to_le_bytes());
    }
    // A wildcard index is used for one of several paths.
    if scan.index.kind.needs_condition() {
        for part in &scan.index.parts {
            hash.bytes(part.path.as_str().as_bytes());
            hash.bytes(b",");
        }
    }
}

impl CacheKey {
    /// Under what the choice for `query` is kept, which was parsed from `written`.
    pub fn of(query: &FindQuery, written: Written<'_>, indexes: &Indexes) -> Self {
        let shape = written.shape(query);
        let mut hash = Fnv::default();
        hash.number(shape);
        // These change what plans look like, and are no part of the shape.
        let flags = [
            query.limit.is_some(),
            query.skip > 0,
            query.return_key,
            query.any_otherwise,
        ];
        hash.bytes(&flags.map(u8::from));
        if let Some(paths) = &query.reads {
            hash.bytes(b"reads");
            for path in paths.iter() {
                hash.bytes(path.as_bytes());
                hash.bytes(b"\x00");
            }
        }
        if clustered::competes(query, indexes) {
            hash.bytes(b"clustered");
        }
        for index in usable(query, indexes).filter(|index| is_relevant(index, query)) {
            hash.number(u64::from(index.id));
            hash.number(uses(index, &query.filter));
        }
        Self {
            shape,
            key: hash.mixed(),
        }
    }
}

/// A plan that was kept, bound to a query.
#[derive(Clone, Debug)]
pub struct Reused {
    /// The plan.
    pub plan: PlanNode,
    /// Facts about it.
    pub kept: Kept,
}

/// Whether several plans may compete for `query`, so that a choice between them may have been kept; false when there is
/// certainly just one. It costs less than making the plans.
pub fn may_compete(query: &FindQuery, indexes: &Indexes) -> bool {
    let filter = &query.filter;
    if matches!(**filter, MatchExpr::AlwaysFalse) {
        return false;
    }
    let several = has_or(filter) || {
        // An index that needs a condition may be used for each of several.
        let ways = |index: &Arc<IndexInfo>| if index.kind.needs_condition() { 2 } else { 1 };
        let relevant = usable(query, indexes).filter(|index| is_relevant(index, query));
        let scans = usize::from(clustered::competes(query, indexes));
        let mut sums = relevant.scan(scans, |sum, index| {
            *sum += ways(index);
            Some(*sum)
        });
        sums.any(|sum| sum > 1)
    };
    several && (query.keeps_keys() || id_lookup(filter, indexes.id_collation.as_ref()).is_none())
}

/// The indexes that a query may use.
fn usable<'i>(query: &'i FindQuery, indexes: &'i Indexes) -> impl Iterator<Item = &'i Arc<IndexInfo>> {
    let is_allowed = |index: &IndexInfo| match &query.allowed {
        Some(allowed) => query.any_otherwise || allowed.iter().any(|a| a.names(index)),
        None => true,
    };
    indexes.iter().filter(move |index| !index.hidden && is_allowed(index))
}

/// Whether an index might serve a query; false when it certainly does not.
fn is_relevant(index: &IndexInfo, query: &FindQuery) -> bool {
    let Some(first) = index.parts.first() else {
        return false;
    };
    let sorts = |path: &Path| {
        let mut parts = query.sort.iter().flat_map(|spec| spec.parts());
        parts.any(|part| matches!(&part.by, SortBy::Path(by) if by == path))
    };
    index.kind.needs_condition() || has_condition(&query.filter, first.path.as_str()) || sorts(&first.path)
}

fn has_or(filter: &MatchExpr) -> bool {
    match filter {
        MatchExpr::Or(_) => true,
        MatchExpr::And(all) => all.iter().any(has_or),
        _ => false,
    }
}

/// Whether a test within a filter is about `path`.
fn has_condition(filter: &MatchExpr, path: &str) -> bool {
    match filter {
        MatchExpr::And(all) | MatchExpr::Or(all) => all.iter().any(|one| has_condition(one, path)),
        MatchExpr::Not(inner) => has_condition(inner, path),
        MatchExpr::Leaf(leaf) => match &leaf.predicate {
            Predicate::ElemMatchObject(inner) => match path.strip_prefix(leaf.path.as_str()) {
                Some(rest) => rest.strip_prefix('.').is_some_and(|rest| has_condition(inner, rest)),
                None => false,
            },
            _ => leaf.path.as_str() == path,
        },
        _ => false,
    }
}

/// The literals of a filter on which the use of an index depends, as a hash; clauses count in any order.
fn uses(index: &Arc<IndexInfo>, filter: &MatchExpr) -> u64 {
    let mut sum = branch(index, filter);
    add_uses(index, filter, &mut sum);
    sum
}

/// The part that depends on a whole filter, or on a branch of an `$or` in it.
fn branch(index: &Arc<IndexInfo>, filter: &MatchExpr) -> u64 {
    let mut hash = Fnv::default();
    if let Some(partial) = &index.partial {
        hash.bytes(&[u8::from(implies(filter, partial))]);
    }
    if index.kind.needs_condition() {
        for access in Search::new(filter).accesses(index) {
            for part in &access.index.parts {
                hash.bytes(part.path.as_str().as_bytes());
                hash.bytes(b",");
            }
        }
    }
    hash.mixed()
}

fn add_uses(index: &Arc<IndexInfo>, filter: &MatchExpr, sum: &mut u64) {
    match filter {
        MatchExpr::And(all) => all.iter().for_each(|one| add_uses(index, one, sum)),
        MatchExpr::Or(branches) => {
            for one in branches {
                *sum = sum.wrapping_add(uses(index, one));
            }
        }
        MatchExpr::Leaf(leaf) => add_test(index, &leaf.path, &leaf.predicate, false, sum),
        MatchExpr::Not(inner) => {
            if let MatchExpr::Leaf(leaf) = &**inner {
                add_test(index, &leaf.path, &leaf.predicate, true, sum);
            }
        }
        _ => {}
    }
}

/// Adds whether the parts of an index on `path` have bounds for a test.
fn add_test(index: &IndexInfo, path: &Path, predicate: &Predicate, negated: bool, sum: &mut u64) {
    let tests = match predicate {
        // One element satisfies them all; each is a condition of its own.
        Predicate::ElemMatchObject(inner) => {
            let all = match &**inner {
                MatchExpr::And(all) => all.as_slice(),
                one => std::slice::from_ref(one),
            };
            for one in all {
                if let MatchExpr::Leaf(leaf) = one {
                    let below = Path::new(&format!("{path}.{}", leaf.path));
                    add_test(index, &below, &leaf.predicate, negated, sum);
                }
            }
            return;
        }
        test => test,
    };
    for (at, part) in index.parts.iter().enumerate().filter(|(_, part)| part.path == *path) {
        let properties = Part {
            multikey: part.is_multikey(),
            sparse: index.sparse,
            collation: index.collation.as_ref(),
        };
        let by_position = path.parts().iter().any(|p| p.index.is_some());
        let is_plain = !negated && !index.sparse && !by_position && part.kind != PartKind::Derived;
        if is_plain && compares_by_bytes(tests) && index.collation.is_none() {
            continue;
        }
        let is_of_use =
            index.kind.bounds(at, tests, negated, properties).is_some() && !(by_position && has_null(tests));
        let mut hash = Fnv::default();
        hash.number(at as u64);
        hash.bytes(&[u8::from(negated), u8::from(is_of_use)]);
        *sum = sum.wrapping_add(hash.mixed());
    }
}

/// Whether a test is one that every index without a collation has bounds for, whatever its literals are.
fn compares_by_bytes(predicate: &Predicate) -> bool {
    match predicate {
        Predicate::Compare { collator, .. } => collator.is_none(),
        Predicate::In(set) => set.collator().is_none(),
        _ => false,
    }
}

fn has_null(predicate: &Predicate) -> bool {
    match predicate {
        Predicate::Compare { value, .. } => value.is_nullish(),
        Predicate::In(set) => set.values().iter().any(Value::is_nullish),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidates;
    use crate::plan::CollScan;
    use nestor_model::index_spec::IndexSpec;
    use nestor_model::{Document, doc, extjson};
    use nestor_query::Scope;
    use nestor_query::sort::SortSpec;

    fn document(text: &str) -> Document {
        extjson::parse_document(text).expect("valid JSON")
    }

    fn query(filter: &str) -> FindQuery {
        let parsed = MatchExpr::parse(document(filter).as_ref(), &mut Scope::new()).expect("a filter");
        FindQuery::all(parsed.normalize().into())
    }

    fn indexes(specs: &[&str]) -> Indexes {
        let open = |(at, text): (usize, &&str)| {
            let mut spec = document(text);
            spec.push("name", format!("i{at}"));
            let spec = IndexSpec::parse(spec.to_raw()).expect("a specification");
            Arc::new(crate::kinds::open(at as u32, &spec, &[]).expect("a good index"))
        };
        Indexes {
            all: specs.iter().enumerate().map(open).collect(),
            id_collation: None,
            clustered: false,
        }
    }

    fn key(filter: &str, indexes: &Indexes) -> u64 {
        CacheKey::of(&query(filter), Written::default(), indexes).key
    }

    #[test]
    fn keys_tell_apart_what_literals_let_indexes_do() {
        let on = |specs: &[&str]| indexes(specs);
        let plain = on(&[r#"{"key":{"a":1}}"#, r#"{"key":{"b":1}}"#]);
        let sparse = on(&[r#"{"key":{"a":1},"sparse":true}"#, r#"{"key":{"b":1}}"#]);
        let partial = on(&[
            r#"{"key":{"a":1},"partialFilterExpression":{"b":{"$gt":5}}}"#,
            r#"{"key":{"b":1}}"#,
        ]);
        let collated = on(&[r#"{"key":{"a":1},"collation":{"locale":"en"}}"#, r#"{"key":{"b":1}}"#]);
        let wild = on(&[r#"{"key":{"$**":1}}"#, r#"{"key":{"b":1}}"#]);
        let one = r#"{"a":1,"b":1}"#;
        for (indexes, other, same) in [
            (&plain, r#"{"b":"x","a":null}"#, true),
            (&sparse, r#"{"a":2,"b":null}"#, true),
            (&sparse, r#"{"a":null,"b":1}"#, false),
            (&partial, r#"{"a":2,"b":2}"#, true),
            (&partial, r#"{"a":2,"b":7}"#, false),
            (&collated, r#"{"a":2,"b":"x"}"#, true),
            (&collated, r#"{"a":"x","b":1}"#, false),
            (&wild, r#"{"a":2,"b":2}"#, true),
            (&wild, r#"{"a":null,"b":1}"#, false),
        ] {
            assert_eq!(key(one, indexes) == key(other, indexes), same, "{other} {indexes:?}");
        }
        assert_ne!(key(one, &plain), key(one, &on(&[r#"{"key":{"a":1}}"#])));
        let irrelevant = on(&[r#"{"key":{"a":1}}"#, r#"{"key":{"b":1}}"#, r#"{"key":{"c":1}}"#]);
        assert_eq!(key(one, &plain), key(one, &irrelevant));
    }

    /// Each candidate of a query, kept, is found again among those of another query of its shape; and of what may not compete
    /// there is one plan.
    #[test]
    fn plans_are_bound_to_other_literals() {
        let indexes = indexes(&[
            r#"{"key":{"a":1}}"#,
            r#"{"key":{"a":1,"b":-1}}"#,
            r#"{"key":{"b":1}}"#,
            r#"{"key":{"c":"hashed"}}"#,
            r#"{"key":{"w.$**":1}}"#,
            r#"{"key":{"s":1},"sparse":true}"#,
        ]);
        let mut bound = 0;
        for (one, other, sort) in [
            (r#"{"a":1,"b":2}"#, r#"{"b":7,"a":"x"}"#, None),
            (r#"{"a":{"$gt":1},"b":2}"#, r#"{"a":{"$gt":8},"b":9}"#, Some("b")),
            (
                r#"{"a":{"$in":[1,2]},"c":5}"#,
                r#"{"a":{"$in":[3,4,5]},"c":6}"#,
                Some("b"),
            ),
            (
                r#"{"$or":[{"a":1},{"b":1}],"c":1}"#,
                r#"{"$or":[{"a":2},{"b":2}],"c":3}"#,
                None,
            ),
            (r#"{"w.x":1,"w.y":2,"a":1}"#, r#"{"w.x":3,"w.y":4,"a":2}"#, None),
            (r#"{"a":1}"#, r#"{"a":2}"#, Some("a")),
            (r#"{"d":1}"#, r#"{"d":2}"#, Some("b")),
            (r#"{"s":1,"a":1}"#, r#"{"s":2,"a":2}"#, None),
            (r#"{"d":1}"#, r#"{"d":2}"#, None),
            (r#"{"c":1}"#, r#"{"c":2}"#, None),
        ] {
            let with_sort = |filter| {
                let mut query = query(filter);
                query.sort = sort.map(|path: &str| {
                    let mut spec = Document::new();
                    spec.push(path, 1);
                    Arc::new(SortSpec::parse(spec.as_ref()).expect("a sort"))
                });
                query
            };
            let (one, other) = (with_sort(one), with_sort(other));
            let plans = candidates(&one, &indexes);
            assert!(plans.len() == 1 || may_compete(&one, &indexes), "{plans:?} compete");
            let expected: Vec<u64> = candidates(&other, &indexes).iter().map(signature).collect();
            for plan in &plans {
                let solution = Solution::of(plan);
                assert!(expected.contains(&solution.signature), "{plan:?}");
                for wanted in [Wanted::Documents, Wanted::Count] {
                    let found = solution.bind(&other, wanted, &indexes).expect("the same plan");
                    assert_eq!(Solution::of(&found), solution, "{found:?}");
                    bound += 1;
                }
            }
        }
        assert!(bound > 30, "{bound} plans were bound");
        // A sparse index does not have what lacks the field.
        let sparse = candidates(&query(r#"{"s":1}"#), &indexes);
        let missing = query(r#"{"s":null}"#);
        assert_eq!(
            Solution::of(&sparse[0])
                .bind(&missing, Wanted::Documents, &indexes)
                .map(|p| p.stage()),
            None
        );
    }

    fn scan(forward: bool) -> PlanNode {
        PlanNode::CollScan(CollScan {
            filter: None,
            forward,
            tailable: false,
            clustered: None,
            columns: None,
        })
    }

    #[test]
    fn signatures_tell_plans_apart() {
        let mut query = query("{}");
        query.sort = Some(Arc::new(SortSpec::parse(doc! { "a": 1 }.as_ref()).expect("a sort")));
        let sorted = crate::finish::finish(&query, scan(true), false);
        assert_eq!(signature(&scan(true)), signature(&scan(true)));
        assert_ne!(signature(&scan(true)), signature(&scan(false)));
        assert_ne!(signature(&scan(true)), signature(&sorted));
    }
}
