//! Access paths: the ways in which indexes can find the documents of a filter.
//!
//! A conjunction offers each index the conditions on its paths. A part gets the intersection of its
//! conditions' bounds when its path never ran through an array; with arrays two conditions may be met by
//! two elements, so only one of them bounds the scan, unless `$elemMatch` ties them to one element. What the
//! bounds do not prove stays as a filter.
//!
//! Example, index `{a: 1, b: 1}`:
//!
//! ```text
//! {a: 5, b: {$gt: 1}, c: 2}      a: [5, 5], b: (1, inf.0]; left over: c = 2
//! {a: {$gt: 1, $lt: 9}}, a array a: (1, inf.0]; left over: a < 9
//! ```

use crate::bounds::{Part, Tightness, bounds};
use crate::catalog::{Condition, IndexInfo, IndexPart, IndexUse, KeyTest, PartKind};
use crate::interval::IntervalList;
use nestor_model::statement::{ROW, note};
use nestor_model::{Document, Path, Value, values_equal};
use nestor_query::collation::Collator;
use nestor_query::geo::Near;
use nestor_query::matcher::{CompareOp, Leaf, MatchExpr, Predicate};
use nestor_query::text::{TextSearch, stored_term};
use std::sync::Arc;

/// The bounds of a scan, a list per index part: an entry is in when each of its values is in the part's list.
#[derive(Clone, Debug)]
pub struct IndexBounds {
    /// `parts[i]` belongs to part `i` of the index; in the order of values, whatever the part's direction.
    pub parts: Vec<IntervalList>,
}

impl IndexBounds {
    /// Every entry.
    pub fn all(index: &IndexInfo) -> Self {
        Self {
            parts: index.parts.iter().map(|_| IntervalList::all()).collect(),
        }
    }

    /// How many leading parts are single values each.
    pub fn equality_prefix(&self) -> usize {
        self.parts.iter().take_while(|list| list.is_point()).count()
    }

    /// True when no entry can be in.
    pub fn is_empty(&self) -> bool {
        self.parts.iter().any(IntervalList::is_empty)
    }
}

/// A way to use one index.
#[derive(Clone, Debug)]
pub struct IndexAccess {
    /// The index.
    pub index: Arc<IndexInfo>,
    /// The bounds of the scan.
    pub bounds: IndexBounds,
    /// Conditions that the key's values can decide; only on paths without arrays.
    pub key_filter: Option<Arc<MatchExpr>>,
    /// Which entries are passed over.
    pub key_test: Option<KeyTest>,
    /// Conditions that need the document.
    pub filter: Option<Arc<MatchExpr>>,
    /// How many parts got bounds from conditions.
    pub bounded_parts: usize,
}

/// A filter, taken apart into what access paths are made of.
pub(crate) struct Search<'f> {
    /// All of it, normalized.
    filter: &'f MatchExpr,
    /// The conditions that all have to hold.
    conjuncts: Vec<&'f MatchExpr>,
    /// The conditions that are about one path.
    conditions: Vec<Condition<'f>>,
}

/// The ways in which each of the indexes can find what `filter` matches.
pub fn index_accesses(filter: &MatchExpr, indexes: &[Arc<IndexInfo>]) -> Vec<IndexAccess> {
    let search = Search::new(filter);
    indexes
        .iter()
        .filter(|index| may_serve(index, filter))
        .flat_map(|index| search.accesses(index))
        .collect()
}

/// The scan of all of an index, with everything left to the document.
pub fn full_access(index: &Arc<IndexInfo>, filter: &Arc<MatchExpr>) -> IndexAccess {
    IndexAccess {
        bounds: IndexBounds::all(index),
        index: index.clone(),
        key_filter: None,
        key_test: None,
        filter: (!matches!(**filter, MatchExpr::AlwaysTrue)).then(|| filter.clone()),
        bounded_parts: 0,
    }
}

fn collect<'f>(at: usize, conjunct: &'f MatchExpr, out: &mut Vec<Condition<'f>>) {
    match conjunct {
        MatchExpr::Leaf(leaf) => {
            if let Predicate::ElemMatchObject(inner) = &leaf.predicate {
                collect_elem_match(at, leaf, inner, out);
            } else {
                out.push(Condition {
                    at,
                    path: leaf.path.clone(),
                    predicate: &leaf.predicate,
                    negated: false,
                    tied_to: None,
                });
            }
        }
        MatchExpr::Not(inner) => {
            if let MatchExpr::Leaf(leaf) = &**inner {
                out.push(Condition {
                    at,
                    path: leaf.path.clone(),
                    predicate: &leaf.predicate,
                    negated: true,
                    tied_to: None,
                });
            }
        }
        _ => {}
    }
}

/// `{a: {$elemMatch: {b: 1, c: 2}}}` gives conditions on `a.b` and `a.c` that one element of `a` satisfies.
fn collect_elem_match<'f>(at: usize, leaf: &Leaf, inner: &'f MatchExpr, out: &mut Vec<Condition<'f>>) {
    let conditions: Vec<&MatchExpr> = match inner {
        MatchExpr::And(all) => all.iter().collect(),
        one => vec![one],
    };
    for condition in conditions {
        if let MatchExpr::Leaf(inner) = condition {
            let path = Path::new(&format!("{}.{}", leaf.path, inner.path));
            out.push(Condition {
                at,
                path,
                predicate: &inner.predicate,
                negated: false,
                tied_to: Some(leaf.path.parts().len()),
            });
        }
    }
}

impl<'f> Search<'f> {
    /// The search for what `filter` matches.
    pub(crate) fn new(filter: &'f MatchExpr) -> Self {
        let conjuncts: Vec<&MatchExpr> = match filter {
            MatchExpr::And(all) => all.iter().collect(),
            one => vec![one],
        };
        let mut conditions = Vec::new();
        for (at, conjunct) in conjuncts.iter().enumerate() {
            collect(at, conjunct, &mut conditions);
        }
        Self {
            filter,
            conjuncts,
            conditions,
        }
    }

    /// The ways in which an index finds what the filter matches.
    pub(crate) fn accesses(&self, index: &Arc<IndexInfo>) -> Vec<IndexAccess> {
        if !index.kind.needs_condition() {
            // Most indexes are of no use for most filters: that is to cost next to nothing.
            let first = index.parts.first().map(|part| &part.path);
            if !self.conditions.iter().any(|condition| Some(&condition.path) == first) {
                return Vec::new();
            }
            let found = access(index, &self.conjuncts, &self.conditions, None);
            return found.into_iter().collect();
        }
        let uses = index.kind.uses(index, &self.conditions);
        let access = |IndexUse {
                          index,
                          conditions,
                          fixed,
                      }| {
            let found = access(&index, &self.conjuncts, &conditions, fixed)?;
            Some(IndexAccess {
                key_filter: None,
                key_test: index.kind.key_test(&index, &conditions),
                filter: Some(Arc::new(self.filter.clone())),
                ..found
            })
        };
        uses.into_iter().filter_map(access).collect()
    }
}

/// A search of an index around a point.
pub(crate) struct NearAccess {
    /// The index.
    pub index: Arc<IndexInfo>,
    /// The stored part that tells of distances.
    pub at: usize,
    /// Which entries, by the other parts.
    pub bounds: IndexBounds,
}

impl Search<'_> {
    /// How an index finds what is nearest first, if it does: parts before the one that tells of distances have to have bounds.
    /// The other conditions of the filter are left to the document.
    pub(crate) fn near_access(&self, index: &Arc<IndexInfo>, path: &Path, near: &Near) -> Option<NearAccess> {
        let at = index.kind.nearest()?.part(path, near)?;
        // Documents without a location have no entry, but they are not asked for.
        let mut info = IndexInfo::clone(index);
        info.sparse = false;
        let found = access(
            &Arc::new(info),
            &self.conjuncts,
            &self.conditions,
            Some((at, IntervalList::all())),
        )?;
        Some(NearAccess {
            index: found.index,
            at,
            bounds: found.bounds,
        })
    }

    /// Whether the filter demands null at a path.
    fn demands_null(&self, path: &Path) -> bool {
        let mut conditions = self.conditions.iter();
        conditions.any(|condition| {
            let is_null = |predicate: &Predicate| match predicate {
                Predicate::Compare { op, value, .. } => *op == CompareOp::Eq && value.is_nullish(),
                _ => false,
            };
            condition.path == *path && !condition.negated && is_null(condition.predicate)
        })
    }

    /// The conditions of the filter beside the `$near`.
    pub(crate) fn beside_near(&self) -> Option<Arc<MatchExpr>> {
        let others = self.conjuncts.iter().filter(|one| one.near().is_none());
        conjunction(others.map(|one| (*one).clone()).collect())
    }
}

/// A search of a text index.
pub(crate) struct TextAccess {
    /// The index.
    pub index: Arc<IndexInfo>,
    /// What is searched for.
    pub search: Arc<TextSearch>,
    /// One scan for each term.
    pub scans: Vec<IndexBounds>,
    /// The values of the fields before the texts.
    pub prefix: Document,
    /// What else the filter says and the prefix does not prove.
    pub filter: Option<Arc<MatchExpr>>,
}

impl Search<'_> {
    /// How a text index finds what the filter's own `$text` asks for: fields before the texts have to have one value each.
    pub(crate) fn text_access(&self, index: &Arc<IndexInfo>) -> Option<TextAccess> {
        let spec = index.kind.text()?;
        let (text, search) = self.conjuncts.iter().enumerate().find_map(|(at, one)| match one {
            MatchExpr::Text(text) => Some((at, text.search.as_ref()?)),
            _ => None,
        })?;
        if !Arc::ptr_eq(&search.spec, spec) {
            return None;
        }
        // Documents without texts have no entry, but they are not asked for.
        let mut info = IndexInfo::clone(index);
        info.sparse = false;
        let mut proved: Vec<Option<Tightness>> = vec![None; self.conjuncts.len()];
        proved[text] = Some(Tightness::Exact);
        let (mut bounds, mut prefix) = (IndexBounds::all(&info), Document::new());
        let terms = info.parts.iter().position(|part| part.kind == PartKind::Derived)?;
        for (at, list) in bounds.parts.iter_mut().enumerate().take(terms) {
            let found = part_bounds(&info, at, &self.conditions, &mut proved, &mut None)?;
            *list = match found.is_point() {
                true => found,
                // Null is several values, of which entries have one.
                false => self
                    .demands_null(&info.parts[at].path)
                    .then(|| IntervalList::point(Value::Null))?,
            };
            let value = list.intervals().first()?.low.clone();
            prefix.push(info.parts[at].path.as_str(), value);
        }
        let scan = |term: &str| {
            note(ROW);
            let mut bounds = bounds.clone();
            bounds.parts[terms] = IntervalList::point(stored_term(term).as_ref().into());
            bounds
        };
        let filters = self.conjuncts.iter().zip(&proved);
        let filters = filters.filter(|(_, proved)| !matches!(proved, Some(Tightness::Exact)));
        Some(TextAccess {
            search: search.clone(),
            scans: search.terms().map(scan).collect(),
            prefix,
            filter: conjunction(filters.map(|(one, _)| (*one).clone()).collect()),
            index: Arc::new(info),
        })
    }
}

fn access(
    index: &Arc<IndexInfo>,
    conjuncts: &[&MatchExpr],
    conditions: &[Condition<'_>],
    fixed: Option<(usize, IntervalList)>,
) -> Option<IndexAccess> {
    let mut lists = Vec::with_capacity(index.parts.len());
    // How well each conjunct is proved so far.
    let mut proved: Vec<Option<Tightness>> = vec![None; conjuncts.len()];
    let mut bounded_parts = 0;
    // Arrays whose element is already tied down: prefix length and the conjunct that did it.
    let mut tied: Option<(Path, usize, usize)> = None;
    for i in 0..index.parts.len() {
        if let Some((_, list)) = fixed.as_ref().filter(|(at, _)| *at == i) {
            lists.push(list.clone());
            continue;
        }
        let list = part_bounds(index, i, conditions, &mut proved, &mut tied);
        match list {
            Some(list) => {
                bounded_parts += 1;
                lists.push(list);
            }
            // The leading part decides where the scan starts: without bounds the index is of no use.
            None if i == 0 => return None,
            None => lists.push(IntervalList::all()),
        }
    }
    let (mut key_filters, mut filters) = (Vec::new(), Vec::new());
    for (conjunct, proved) in conjuncts.iter().zip(&proved) {
        match proved {
            Some(Tightness::Exact) => {}
            Some(Tightness::InexactCovered) if !index.is_multikey() => key_filters.push((*conjunct).clone()),
            _ if matches!(conjunct, MatchExpr::AlwaysTrue) => {}
            _ => filters.push((*conjunct).clone()),
        }
    }
    Some(IndexAccess {
        index: index.clone(),
        bounds: IndexBounds { parts: lists },
        key_filter: conjunction(key_filters),
        key_test: None,
        filter: conjunction(filters),
        bounded_parts,
    })
}

fn conjunction(mut all: Vec<MatchExpr>) -> Option<Arc<MatchExpr>> {
    match all.len() {
        0 => None,
        1 => all.pop().map(Arc::new),
        _ => Some(Arc::new(MatchExpr::And(all))),
    }
}

fn part_bounds(
    index: &IndexInfo,
    at: usize,
    conditions: &[Condition<'_>],
    proved: &mut [Option<Tightness>],
    tied: &mut Option<(Path, usize, usize)>,
) -> Option<IntervalList> {
    let part = &index.parts[at];
    let properties = Part {
        multikey: part.is_multikey(),
        sparse: index.sparse,
        collation: index.collation.as_ref(),
    };
    // An array that is an element picked by its position is one value to a filter, but has a key per element.
    let by_position = part.path.parts().iter().any(|p| p.index.is_some());
    let picks_elements = part.is_multikey() && by_position;
    let mut list: Option<IntervalList> = None;
    let mut candidates: Vec<(&Condition<'_>, IntervalList, Tightness)> = conditions
        .iter()
        .filter(|c| c.path.as_str() == part.path.as_str() && !(c.negated && picks_elements))
        // To a filter such a component is also a field name, which other elements lack.
        .filter(|c| !(by_position && is_about_null(c.predicate)))
        .filter_map(|condition| {
            let (predicate, negated) = (condition.predicate, condition.negated);
            let (bounds, tightness) = index.kind.bounds(at, predicate, negated, properties)?;
            // One element satisfies all conditions of an $elemMatch: the key alone cannot prove that.
            // An entry of a sparse index with several parts may be there for another field.
            let may_lack = index.parts.len() > 1 && matches!(condition.predicate, Predicate::Exists);
            let tightness = if condition.tied_to.is_some() || picks_elements || may_lack {
                Tightness::InexactFetch
            } else {
                tightness
            };
            Some((condition, bounds, tightness))
        })
        .collect();
    // Points first: with arrays only one condition bounds the scan.
    candidates.sort_by_key(|(_, bounds, _)| !bounds.is_points());
    let mut chosen: Option<&Condition<'_>> = None;
    for (condition, bounds, tightness) in &candidates {
        if part.is_multikey() {
            let same_element = chosen.is_some_and(|c| c.at == condition.at && c.tied_to.is_some());
            if chosen.is_some() && !same_element {
                continue;
            }
            if !fits_tie(part, condition, tied) {
                continue;
            }
        }
        list = Some(list.map_or_else(|| bounds.clone(), |list| list.intersect(bounds)));
        let before = proved[condition.at];
        proved[condition.at] = Some(before.map_or(*tightness, |b| b.max(*tightness)));
        chosen = Some(condition);
    }
    list
}

/// Whether null passes or fails a test unlike every other value.
fn is_about_null(predicate: &Predicate) -> bool {
    match predicate {
        Predicate::Compare { value, .. } => value.is_nullish(),
        Predicate::In(set) => set.values().iter().any(Value::is_nullish),
        _ => false,
    }
}

/// Two parts below one array (`a.b` and `a.c`) may both be bounded only when one element has to satisfy both.
fn fits_tie(part: &IndexPart, condition: &Condition<'_>, tied: &mut Option<(Path, usize, usize)>) -> bool {
    let first_array = part.multikey.trailing_zeros() as usize;
    let shared = |path: &Path, len: usize| {
        len <= path.parts().len()
            && len <= part.path.parts().len()
            && path.parts()[..len]
                .iter()
                .zip(&part.path.parts()[..len])
                .all(|(a, b)| a.name == b.name)
    };
    if let Some((path, len, at)) = tied {
        // An array held by the last component only (scalars) is not shared with other paths.
        if shared(path, *len) && first_array < *len {
            return *at == condition.at && condition.tied_to.is_some_and(|t| t >= *len);
        }
    }
    *tied = Some((part.path.clone(), first_array + 1, condition.at));
    true
}

/// Whether an index may be used for what `filter` matches: it is not hidden, and has all of that.
pub fn may_serve(index: &IndexInfo, filter: &MatchExpr) -> bool {
    !index.hidden && has_all(index, filter)
}

/// Whether an index, if it is a partial one, surely has every document that matches `filter`.
pub fn has_all(index: &IndexInfo, filter: &MatchExpr) -> bool {
    index.partial.as_deref().is_none_or(|partial| implies(filter, partial))
}

/// Whether every document that matches `filter` matches `wanted`: enough for partial indexes. Careful rather than
/// complete: false means "not known".
pub fn implies(filter: &MatchExpr, wanted: &MatchExpr) -> bool {
    match wanted {
        MatchExpr::AlwaysTrue => return true,
        MatchExpr::And(all) => return all.iter().all(|w| implies(filter, w)),
        MatchExpr::Or(any) if any.iter().any(|w| implies(filter, w)) => return true,
        _ => {}
    }
    match filter {
        MatchExpr::AlwaysFalse => true,
        MatchExpr::And(all) => all.iter().any(|f| implies(f, wanted)),
        MatchExpr::Or(any) => any.iter().all(|f| implies(f, wanted)),
        MatchExpr::Leaf(have) => match wanted {
            MatchExpr::Leaf(want) => leaf_implies(have, want),
            _ => false,
        },
        // What is not null exists. A path through an array of no elements is neither there nor null.
        MatchExpr::Not(have) => match (&**have, wanted) {
            (MatchExpr::Leaf(have), MatchExpr::Leaf(want)) => {
                is_null(&have.predicate)
                    && matches!(want.predicate, Predicate::Exists)
                    && have.path == want.path
                    && have.path.parts().len() == 1
            }
            _ => false,
        },
        _ => false,
    }
}

/// Whether a test is `{$eq: null}`.
fn is_null(predicate: &Predicate) -> bool {
    matches!(predicate, Predicate::Compare { op: CompareOp::Eq, value, .. } if matches!(value, Value::Null))
}

/// The collation by which a test compares strings.
fn collation_of(predicate: &Predicate) -> Option<&Collator> {
    match predicate {
        Predicate::Compare { collator, .. } => collator.as_ref(),
        Predicate::In(set) => set.collator(),
        _ => None,
    }
}

fn leaf_implies(have: &Leaf, want: &Leaf) -> bool {
    if have.path != want.path {
        return false;
    }
    // Both are compared by what they would find in one index of their collation.
    let part = Part {
        multikey: true,
        sparse: false,
        collation: collation_of(&want.predicate).or_else(|| collation_of(&have.predicate)),
    };
    match (&have.predicate, &want.predicate) {
        (Predicate::Exists, Predicate::Exists) => true,
        // Bounds say less: null and what is missing are one value to an index.
        (have, want) if is_null(have) && is_null(want) => true,
        // Whatever equals or compares to a value other than null exists.
        (Predicate::Compare { .. } | Predicate::In(_) | Predicate::Regex(_) | Predicate::Mod(_), Predicate::Exists) => {
            let null = IntervalList::point(nestor_model::Value::Null);
            bounds(&have.predicate, part).is_some_and(|(b, _)| b.intersect(&null).is_empty())
        }
        (
            have @ (Predicate::Compare { .. } | Predicate::In(_)),
            want @ (Predicate::Compare { .. } | Predicate::In(_)),
        ) => {
            let (Some((inner, Tightness::Exact)), Some((outer, Tightness::Exact))) =
                (bounds(have, part), bounds(want, part))
            else {
                return false;
            };
            // Inside when nothing of it lies outside.
            inner.intersect(&outer.complement()).is_empty()
        }
        (Predicate::Type(have), Predicate::Type(want)) => have.all().all(|kind| want.contains(kind)),
        // Whether one area is within another is not asked.
        (Predicate::Geo(have), Predicate::Geo(want)) => {
            have.op() == want.op() && values_equal(have.source(), want.source())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::Strings;
    use nestor_model::index_spec::IndexSpec;
    use nestor_model::{Document, doc, extjson};
    use nestor_query::Scope;

    fn filter(text: &str) -> MatchExpr {
        filter_under(text, None)
    }

    fn filter_under(text: &str, collation: Option<&Collator>) -> MatchExpr {
        let doc = extjson::parse_document(text).expect("valid JSON");
        MatchExpr::parse(doc.as_ref(), &mut Scope::new().with_collator(collation.cloned()))
            .expect("a valid filter")
            .normalize()
    }

    fn collator(strength: i32) -> Collator {
        let spec = nestor_model::doc! { "locale": "en", "strength": strength };
        Collator::parse(spec.as_ref())
            .expect("is a collation")
            .expect("is not simple")
    }

    fn index(parts: &[(&str, u64)]) -> Arc<IndexInfo> {
        let key: Document = parts.iter().map(|(path, _)| ((*path).into(), 1.into())).collect();
        let spec = IndexSpec::parse(doc! { "key": key, "name": "i" }.to_raw()).expect("a specification");
        let multikey: Vec<u64> = parts.iter().map(|(_, bits)| *bits).collect();
        Arc::new(crate::kinds::open(1, &spec, &multikey).expect("a good index"))
    }

    fn show(parts: &[(&str, u64)], text: &str) -> String {
        match index_accesses(&filter(text), &[index(parts)]).first() {
            None => "none".into(),
            Some(access) => {
                let lists: Vec<String> = access
                    .bounds
                    .parts
                    .iter()
                    .map(|l| l.explain(true, Strings::Plain).join(" "))
                    .collect();
                let fetch = if access.filter.is_some() { " fetch" } else { "" };
                let key = if access.key_filter.is_some() { " key" } else { "" };
                format!("{}{key}{fetch}", lists.join("; "))
            }
        }
    }

    #[test]
    fn conditions_become_bounds() {
        let a = [("a", 0)];
        for (text, expected) in [
            (r#"{"a":5}"#, "[5, 5]"),
            (r#"{"b":5}"#, "none"),
            (r#"{"a":{"$gt":1,"$lte":9}}"#, "(1, 9]"),
            (r#"{"a":{"$gt":"x"}}"#, r#"("x", {})"#),
            (r#"{"a":{"$lt":5},"b":1}"#, "[-inf.0, 5) fetch"),
            (r#"{"a":{"$in":[3,1,2]}}"#, "[1, 1] [2, 2] [3, 3]"),
            (r#"{"a":{"$ne":3}}"#, "[MinKey, 3) (3, MaxKey]"),
            (r#"{"a":{"$exists":true}}"#, "[MinKey, MaxKey] fetch"),
            (
                r#"{"a":{"$regularExpression":{"pattern":"^ab","options":""}}}"#,
                r#"["ab", "ac") [/^ab/, /^ab/]"#,
            ),
            (
                r#"{"a":{"$regularExpression":{"pattern":"b","options":""}}}"#,
                r#"["", {}) [/b/, /b/] key"#,
            ),
            (r#"{"a":{"$mod":[2,0]}}"#, "[-inf.0, inf.0] key"),
            (r#"{"a":{"$type":"number"}}"#, "[nan.0, inf.0] key"),
            (r#"{"a":[1,2]}"#, "[1, 1] [[ 1, 2 ], [ 1, 2 ]] fetch"),
        ] {
            assert_eq!(show(&a, text), expected, "{text}");
        }
    }

    #[test]
    fn other_collations_allow_what_no_string_satisfies() {
        let show = |of_index: Option<Collator>, text: &str, of_query: Option<Collator>| {
            let mut index = IndexInfo::clone(&index(&[("a", 0)]));
            index.collation = of_index;
            let strings = index.collation.as_ref().map_or(Strings::Plain, |_| Strings::SortKeys);
            let filter = filter_under(text, of_query.as_ref());
            match index_accesses(&filter, &[Arc::new(index)]).first() {
                None => "none".into(),
                Some(access) => {
                    let fetch = if access.filter.is_some() { " fetch" } else { "" };
                    format!("{}{fetch}", access.bounds.parts[0].explain(true, strings).join(" "))
                }
            }
        };
        let (ci, cs) = (|| Some(collator(1)), || Some(collator(3)));
        let key = |text: &str| {
            let stored = crate::collation::stored(&text.into(), ci().as_ref()).into_owned();
            stored
                .as_ref()
                .as_str()
                .map(nestor_query::collation::sort_key_text)
                .expect("a string")
        };
        let (a, b) = (key("a"), key("b"));
        assert_eq!(show(ci(), r#"{"a":"A"}"#, ci()), format!("[{a}, {a}]"));
        assert_eq!(show(ci(), r#"{"a":{"$gt":"a"}}"#, ci()), format!("({a}, {{}})"));
        assert_eq!(
            show(ci(), r#"{"a":{"$in":["b",1,"A","a"]}}"#, ci()),
            format!("[1, 1] [{a}, {a}] [{b}, {b}]")
        );
        assert_eq!(
            show(ci(), r#"{"a":{"x":"A"}}"#, ci()),
            format!("[{{ x: {a} }}, {{ x: {a} }}]")
        );
        assert_eq!(
            show(
                ci(),
                r#"{"a":{"$regularExpression":{"pattern":"^a","options":""}}}"#,
                ci()
            ),
            r#"["", {}) [/^a/, /^a/] fetch"#
        );
        for (of_index, of_query) in [(ci(), cs()), (ci(), None), (None, ci())] {
            for (text, expected) in [
                (r#"{"a":"A"}"#, "none"),
                (r#"{"a":{"x":1}}"#, "none"),
                (r#"{"a":[1]}"#, "none"),
                (r#"{"a":{"$ne":"A"}}"#, "none"),
                (r#"{"a":{"$in":[1,"A"]}}"#, "none"),
                (
                    r#"{"a":{"$in":[1,null]}}"#,
                    "[undefined, undefined] [null, null] [1, 1] fetch",
                ),
                (r#"{"a":{"$gt":5}}"#, "(5, inf.0]"),
                (r#"{"a":{"$ne":5}}"#, "[MinKey, 5) (5, MaxKey]"),
                (r#"{"a":{"$exists":true}}"#, "[MinKey, MaxKey] fetch"),
                (r#"{"a":{"$elemMatch":{"$gt":5,"$lt":"A"}}}"#, "(5, inf.0] fetch"),
            ] {
                assert_eq!(show(of_index.clone(), text, of_query.clone()), expected, "{text}");
            }
        }
    }

    #[test]
    fn implication_is_within_one_collation() {
        let (ci, cs) = (collator(1), collator(3));
        for (have, have_under, want, expected) in [
            (r#"{"a":"B"}"#, Some(&ci), r#"{"a":"b"}"#, true),
            (r#"{"a":"b"}"#, Some(&cs), r#"{"a":"b"}"#, false),
            (r#"{"a":"b"}"#, None, r#"{"a":"b"}"#, false),
            (r#"{"a":"b"}"#, Some(&ci), r#"{"a":{"$gt":"A"}}"#, true),
            (r#"{"a":5}"#, None, r#"{"a":{"$gt":1}}"#, true),
            (r#"{"a":"b"}"#, None, r#"{"a":{"$exists":true}}"#, true),
        ] {
            assert_eq!(
                implies(&filter_under(have, have_under), &filter_under(want, Some(&ci))),
                expected,
                "{have} implies {want}"
            );
        }
        assert!(!implies(
            &filter_under(r#"{"a":"b"}"#, Some(&ci)),
            &filter(r#"{"a":"b"}"#)
        ));
    }

    #[test]
    fn a_sparse_index_does_not_answer_what_missing_fields_satisfy() {
        let mut sparse = IndexInfo::clone(&index(&[("a", 0)]));
        sparse.sparse = true;
        let sparse = [Arc::new(sparse)];
        for (text, answered) in [
            (r#"{"a":1}"#, true),
            (r#"{"a":{"$exists":true}}"#, true),
            (r#"{"a":null}"#, false),
            (r#"{"a":{"$ne":1}}"#, false),
            (r#"{"a":{"$lte":{"$maxKey":1}}}"#, false),
            (r#"{"a":{"$gt":{"$minKey":1}}}"#, false),
            (r#"{"a":{"$gte":{"$maxKey":1}}}"#, true),
        ] {
            assert_eq!(!index_accesses(&filter(text), &sparse).is_empty(), answered, "{text}");
        }
    }

    #[test]
    fn arrays_allow_one_condition_only() {
        assert_eq!(show(&[("a", 1)], r#"{"a":{"$gt":1,"$lt":9}}"#), "[-inf.0, 9) fetch");
        assert_eq!(
            show(&[("a", 1)], r#"{"a":{"$elemMatch":{"$gt":1,"$lt":9}}}"#),
            "(1, 9) fetch"
        );
        let below = [("a.b", 1), ("a.c", 1)];
        assert_eq!(show(&below, r#"{"a.b":1,"a.c":2}"#), "[1, 1]; [MinKey, MaxKey] fetch");
        assert_eq!(
            show(&below, r#"{"a":{"$elemMatch":{"b":1,"c":2}}}"#),
            "[1, 1]; [2, 2] fetch"
        );
        assert_eq!(
            show(&[("a", 1), ("b", 0)], r#"{"a":1,"b":{"$gt":1,"$lt":5}}"#),
            "[1, 1]; (1, 5)"
        );
    }

    #[test]
    fn implication_is_careful() {
        for (have, want, expected) in [
            (r#"{"a":5}"#, r#"{"a":{"$gt":1}}"#, true),
            (r#"{"a":{"$gt":1}}"#, r#"{"a":5}"#, false),
            (r#"{"a":{"$in":[2,3]}}"#, r#"{"a":{"$gte":2}}"#, true),
            (r#"{"a":5,"b":1}"#, r#"{"b":1,"a":5}"#, true),
            (r#"{"a":5}"#, r#"{"a":{"$exists":true}}"#, true),
            (r#"{"a":null}"#, r#"{"a":{"$exists":true}}"#, false),
            (r#"{"a":null}"#, r#"{"a":null}"#, true),
            (r#"{"a":null}"#, r#"{"b":null}"#, false),
            (r#"{"a":{"$ne":null}}"#, r#"{"a":{"$exists":true}}"#, true),
            (r#"{"a":{"$ne":null}}"#, r#"{"b":{"$exists":true}}"#, false),
            (r#"{"a":{"$ne":1}}"#, r#"{"a":{"$exists":true}}"#, false),
            (r#"{"a.b":{"$ne":null}}"#, r#"{"a.b":{"$exists":true}}"#, false),
            (r#"{"$or":[{"a":5},{"a":6}]}"#, r#"{"a":{"$gt":1}}"#, true),
        ] {
            assert_eq!(implies(&filter(have), &filter(want)), expected, "{have} implies {want}");
        }
    }
}
