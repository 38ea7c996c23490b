//! `2dsphere` indexes: of one field or more the cells of the sphere in which its geometry lies.
//!
//! ```text
//! {a: 1, loc: "2dsphere"}    {a: 5, loc: {type: "Point", ...}}     →   (5, number of the smallest cell)
//!                            {a: 5, loc: {type: "Polygon", ...}}   →   (5, number) (5, number) ..., a few cells that cover it
//! ```
//!
//! What cells are and how an area becomes ranges of their numbers says [`nestor_query::geo`]. Cells only narrow a search down:
//! documents always decide. A document without any geometry has no key, unless the index is of version 1.
//! Source: manual, "2dsphere Indexes", "2dsphere Index Properties".

use super::{KindDef, OptionDef, ordered, refuse_wildcard_parts};
use crate::bounds::{Part, Tightness, condition_bounds};
use crate::catalog::{Condition, EmitKey, IndexInfo, IndexKind, IndexPart, IndexUse, KeyTest, Nearest};
use crate::interval::{Interval, IntervalList};
use crate::kind::NodeKind;
use nestor_model::index_spec::{IndexSpec, KeyOrder};
use nestor_model::number::whole_number;
use nestor_model::{DocRef, Document, Error, ErrorCode, Path, Result, Value, ValueRef, bail};
use nestor_query::geo::{GeoTest, KeyRanges, Metric, Near, sphere_keys};
use nestor_query::keys::{KeyPaths, MultikeyPaths};
use nestor_query::matcher::Predicate;
use nestor_query::update::Touched;
use std::sync::Arc;

/// The kind.
pub const KIND: KindDef = KindDef {
    name: "2dsphere",
    options_anywhere: true,
    options: &[OptionDef {
        name: VERSION,
        parse: version,
        shown: None,
    }],
    misplaced_option: ErrorCode::BadValue,
    is_single: false,
    is_outside_api: false,
    refused_on_series: None,
    check,
    open: |spec, _| Arc::new(Sphere::new(spec)),
};

const VERSION: &str = "2dsphereIndexVersion";

/// The version of new indexes.
const CURRENT: i32 = 3;

/// Most keys of one document: several fields with several cells each.
const KEYS_MAX: usize = 10_000;

fn version(value: ValueRef<'_>, _: &Document) -> Result<Value> {
    if !value.is_number() {
        bail!(
            TypeMismatch,
            "The field '{VERSION}' must be a number, but got {}",
            value.bson_type().alias()
        );
    }
    match whole_number(value) {
        Some(version @ 1..=3) if !matches!(value, ValueRef::Decimal128(_)) => Ok(Value::Int32(version as i32)),
        _ => bail!(
            CannotCreateIndex,
            "unsupported geo index version {{ {VERSION}: {value:?} }}, only support versions: [1,2,3]"
        ),
    }
}

fn check(spec: IndexSpec) -> Result<IndexSpec> {
    refuse_wildcard_parts(&spec)?;
    if spec.option(VERSION).is_some() {
        return Ok(spec);
    }
    let mut listed = Document::from(spec.listed().clone());
    listed.push(VERSION, CURRENT);
    IndexSpec::parse(listed.to_raw())
}

/// A `2dsphere` index.
#[derive(Debug)]
struct Sphere {
    paths: KeyPaths,
    /// The parts that are geometry.
    geo: Vec<usize>,
    /// Documents without geometry have no key.
    sparse: bool,
}

impl Sphere {
    fn new(spec: &IndexSpec) -> Self {
        let is_geo = |at: usize| matches!(spec.key[at].order, KeyOrder::Special(_));
        Self {
            paths: KeyPaths::new(spec.key.iter().map(|part| Path::new(&part.path))).with_whole(is_geo),
            geo: (0..spec.key.len()).filter(|at| is_geo(*at)).collect(),
            sparse: spec.option(VERSION).and_then(whole_number) != Some(1),
        }
    }

    /// The keys of one geometry: null for none.
    fn cells(value: ValueRef<'_>, doc: DocRef<'_>) -> Result<Vec<Option<i64>>> {
        if value.is_nullish() {
            return Ok(vec![None]);
        }
        let keys = sphere_keys(value).map_err(|error| match error.code() {
            ErrorCode::BadValue => {
                Error::location(16755, format!("Can't extract geo keys: {doc:?}  {}", error.message()))
            }
            _ => error,
        })?;
        Ok(keys.into_iter().map(Some).collect())
    }

    fn emit(&self, values: &[ValueRef<'_>], cells: &[Vec<Option<i64>>], emit: &mut EmitKey<'_>) -> Result<()> {
        let mut key = values.to_vec();
        let count = cells.iter().map(Vec::len).product();
        for number in 0..count {
            let mut rest = number;
            for (at, of_part) in self.geo.iter().zip(cells) {
                key[*at] = of_part[rest % of_part.len()].map_or(ValueRef::Null, ValueRef::Int64);
                rest /= of_part.len();
            }
            emit(&key)?;
        }
        Ok(())
    }
}

impl IndexKind for Sphere {
    fn parts(&self, spec: &IndexSpec, multikey: &[u64]) -> Vec<IndexPart> {
        let mut parts = ordered::parts(spec, multikey);
        for at in &self.geo {
            parts[*at].collated = false;
        }
        parts
    }

    fn for_each_key(&self, doc: DocRef<'_>, emit: &mut EmitKey<'_>) -> Result<MultikeyPaths> {
        let mut several = 0_u64;
        let mut keys = 0;
        let mut multikey = self.paths.for_each_key(doc, &mut |values: &[ValueRef<'_>]| {
            let lacks_geometry = self.geo.iter().all(|at| values[*at].is_nullish());
            if self.sparse && lacks_geometry {
                return Ok(());
            }
            let mut cells = Vec::with_capacity(self.geo.len());
            for (number, at) in self.geo.iter().enumerate() {
                let of_part = Self::cells(values[*at], doc)?;
                several |= u64::from(of_part.len() > 1) << number;
                cells.push(of_part);
            }
            keys += cells.iter().map(Vec::len).product::<usize>();
            if keys > KEYS_MAX {
                bail!(
                    CannotBuildIndexKeys,
                    "a document has more than {KEYS_MAX} keys of a 2dsphere index"
                );
            }
            self.emit(values, &cells, emit)
        })?;
        for (number, at) in self.geo.iter().enumerate() {
            if several >> number & 1 == 1 {
                multikey.components[*at] |= 1 << (self.paths.paths()[*at].parts().len() - 1).min(63);
            }
        }
        Ok(multikey)
    }

    fn is_touched_by(&self, touched: &Touched) -> bool {
        touched.affects_any(self.paths.paths())
    }

    fn bounds(
        &self,
        part: usize,
        predicate: &Predicate,
        negated: bool,
        properties: Part<'_>,
    ) -> Option<(IntervalList, Tightness)> {
        if !self.geo.contains(&part) {
            return condition_bounds(predicate, negated, properties);
        }
        match predicate {
            // When the statement is to stop, the next operator says so.
            Predicate::Geo(test) if !negated => {
                let ranges = test.sphere_ranges().ok()??;
                Some((list(ranges), Tightness::InexactFetch))
            }
            _ => None,
        }
    }

    fn uses<'f>(&self, index: &IndexInfo, conditions: &[Condition<'f>]) -> Vec<IndexUse<'f>> {
        super::geo_uses(&self.geo, index, conditions)
    }

    fn key_test(&self, index: &IndexInfo, conditions: &[Condition<'_>]) -> Option<KeyTest> {
        super::geo_key_test(&self.geo, index, conditions)
    }

    fn may_pass(&self, test: &GeoTest, key: ValueRef<'_>) -> bool {
        match key {
            ValueRef::Int64(key) => test.may_be_in_cell(key),
            _ => true,
        }
    }

    fn needs_condition(&self) -> bool {
        true
    }

    fn scans_whole(&self) -> bool {
        true
    }

    fn covers(&self) -> bool {
        false
    }

    fn nearest(&self) -> Option<&dyn Nearest> {
        Some(self)
    }
}

fn list(ranges: &KeyRanges) -> IntervalList {
    let interval = |(low, high): &(i64, i64)| Interval::new(Value::Int64(*low), true, Value::Int64(*high), true);
    IntervalList::union_of(ranges.iter().map(interval).collect())
}

impl Nearest for Sphere {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn node(&self) -> NodeKind {
        NodeKind::GeoNear2dSphere
    }

    fn part(&self, path: &Path, near: &Near) -> Option<usize> {
        let measures = near.metric() != Metric::Flat;
        let mut parts = self.geo.iter().copied();
        parts.find(|at| measures && self.paths.paths()[*at] == *path)
    }

    fn within(&self, near: &Near, distance: f64) -> Result<IntervalList> {
        Ok(near
            .sphere_ranges(distance)?
            .as_ref()
            .map_or_else(IntervalList::all, list))
    }

    fn around(&self, near: &Near) -> Result<Option<Value>> {
        Ok(near.cell().map(Value::Int64))
    }

    fn lower_bound(&self, near: &Near, key: ValueRef<'_>) -> f64 {
        match key {
            ValueRef::Int64(key) => near.to_cell(key),
            _ => 0.0,
        }
    }

    fn farthest(&self, near: &Near) -> f64 {
        near.max()
    }
}
