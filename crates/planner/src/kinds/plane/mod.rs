//! `2d` indexes: of the first field the square of a grid in which its coordinate pair lies, then values of other fields.
//!
//! ```text
//! {loc: "2d", a: 1}    {loc: [3, 4], a: 5}               →   (the bits of both steps in turns, 5)
//!                      {loc: [[3, 4], [5, 6]], a: 5}     →   two keys
//! ```
//!
//! Keys are binary values of the user-defined subtype. A document without the field has no key.
//! Source: manual, "2d Indexes", "2d Index Internals".

use super::{KindDef, OptionDef, ordered, refuse_wildcard_parts};
use crate::bounds::{Part, Tightness, condition_bounds};
use crate::catalog::{Condition, EmitKey, IndexInfo, IndexKind, IndexPart, IndexUse, KeyTest, Nearest};
use crate::interval::{Interval, IntervalList};
use crate::kind::NodeKind;
use nestor_model::index_spec::{IndexSpec, KeyOrder};
use nestor_model::number::{Num, whole_number};
use nestor_model::statement::work;
use nestor_model::{Binary, DocRef, Document, Error, ErrorCode, Path, Result, Value, ValueRef, bail};
use nestor_query::geo::{GeoTest, Grid, GridRanges, KEY_SUBTYPE, Metric, Near};
use nestor_query::keys::{KeyPaths, MultikeyPaths};
use nestor_query::matcher::Predicate;
use nestor_query::update::Touched;
use std::sync::Arc;

/// The kind.
pub const KIND: KindDef = KindDef {
    name: "2d",
    options_anywhere: true,
    options: &[
        OptionDef {
            name: "bits",
            parse: bits,
            shown: None,
        },
        OptionDef {
            name: "min",
            parse: |value, _| bound("min", value),
            shown: Some(as_double),
        },
        OptionDef {
            name: "max",
            parse: |value, _| bound("max", value),
            shown: Some(as_double),
        },
    ],
    misplaced_option: ErrorCode::BadValue,
    is_single: false,
    is_outside_api: false,
    refused_on_series: None,
    check,
    open: |spec, _| Arc::new(Plane::new(spec)),
};

fn bits(value: ValueRef<'_>, _: &Document) -> Result<Value> {
    let bits = number("bits", value)?;
    if !(1.0..33.0).contains(&bits.trunc()) {
        bail!(
            InvalidOptions,
            "bits for hash must be > 0 and <= 32, but {value:?} bits were specified"
        );
    }
    Ok(value.to_value())
}

fn bound(name: &str, value: ValueRef<'_>) -> Result<Value> {
    number(name, value)?;
    Ok(value.to_value())
}

/// Whatever number was given.
fn as_double(value: ValueRef<'_>) -> Value {
    match Num::from_ref(value) {
        Some(number) => Value::Double(number.to_f64()),
        None => value.to_value(),
    }
}

fn number(name: &str, value: ValueRef<'_>) -> Result<f64> {
    match Num::from_ref(value) {
        Some(number) => Ok(number.to_f64()),
        None => bail!(
            TypeMismatch,
            "The field '{name}' must be a number, but got {}",
            value.bson_type().alias()
        ),
    }
}

/// Errors: 67 for a collation, 72 for an empty region, 16800 and 16801 for a part at the wrong place.
fn check(spec: IndexSpec) -> Result<IndexSpec> {
    let is_geo = |at: usize| matches!(spec.key[at].order, KeyOrder::Special(_));
    if (1..spec.key.len()).any(is_geo) {
        match is_geo(0) {
            true => return Err(Error::location(16800, "can't have 2 geo fields")),
            false => return Err(Error::location(16801, "2d has to be first in index")),
        }
    }
    refuse_wildcard_parts(&spec)?;
    let simple = |collation: &Document| collation.get("locale").and_then(ValueRef::as_str) == Some("simple");
    if let Some(collation) = spec.collation.as_ref().filter(|collation| !simple(collation)) {
        bail!(
            CannotCreateIndex,
            "Index type '2d' does not support collation: {collation:?}"
        );
    }
    let grid = grid(&spec);
    if !(grid.min < grid.max && (grid.max - grid.min).is_finite()) {
        bail!(
            InvalidOptions,
            "region for hash must be valid and have positive area, but [{}, {}] was specified",
            grid.min,
            grid.max
        );
    }
    Ok(spec)
}

fn grid(spec: &IndexSpec) -> Grid {
    let option = |name: &str| spec.option(name).and_then(Num::from_ref).map(Num::to_f64);
    Grid {
        bits: spec
            .option("bits")
            .and_then(|bits| whole_number(bits).or_else(|| Num::from_ref(bits).map(|bits| bits.to_f64() as i64)))
            .map_or(26, |bits| bits.clamp(1, 32) as u32),
        min: option("min").unwrap_or(-180.0),
        max: option("max").unwrap_or(180.0),
    }
}

/// A `2d` index.
#[derive(Debug)]
struct Plane {
    paths: KeyPaths,
    grid: Grid,
}

impl Plane {
    fn new(spec: &IndexSpec) -> Self {
        Self {
            paths: KeyPaths::new(spec.key.iter().map(|part| Path::new(&part.path))).with_whole(|at| at == 0),
            grid: grid(spec),
        }
    }
}

impl IndexKind for Plane {
    fn parts(&self, spec: &IndexSpec, multikey: &[u64]) -> Vec<IndexPart> {
        let mut parts = ordered::parts(spec, multikey);
        parts[0].collated = false;
        parts
    }

    fn for_each_key(&self, doc: DocRef<'_>, emit: &mut EmitKey<'_>) -> Result<MultikeyPaths> {
        let mut several = false;
        let mut multikey = self.paths.for_each_key(doc, &mut |values: &[ValueRef<'_>]| {
            if values[0].is_nullish() {
                return Ok(());
            }
            let pairs = Grid::pairs(values[0])?;
            several |= pairs.len() > 1;
            for pair in pairs {
                work(1)?;
                let square = self.grid.key(pair)?;
                let mut key = values.to_vec();
                key[0] = ValueRef::Binary {
                    subtype: KEY_SUBTYPE,
                    bytes: &square,
                };
                emit(&key)?;
            }
            Ok(())
        })?;
        if several {
            multikey.components[0] |= 1 << (self.paths.paths()[0].parts().len() - 1).min(63);
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
        if part != 0 {
            return condition_bounds(predicate, negated, properties);
        }
        match predicate {
            // When the statement is to stop, the next operator says so.
            Predicate::Geo(test) if !negated => {
                let ranges = test.grid_ranges(&self.grid).ok()??;
                Some((list(&ranges), Tightness::InexactFetch))
            }
            _ => None,
        }
    }

    fn uses<'f>(&self, index: &IndexInfo, conditions: &[Condition<'f>]) -> Vec<IndexUse<'f>> {
        super::geo_uses(&[0], index, conditions)
    }

    fn key_test(&self, index: &IndexInfo, conditions: &[Condition<'_>]) -> Option<KeyTest> {
        super::geo_key_test(&[0], index, conditions)
    }

    fn may_pass(&self, test: &GeoTest, key: ValueRef<'_>) -> bool {
        match key {
            ValueRef::Binary { bytes, .. } => bytes
                .try_into()
                .map_or(true, |key| test.may_be_in_square(&self.grid, key)),
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

fn square(key: [u8; 8]) -> Value {
    Value::Binary(Binary {
        subtype: KEY_SUBTYPE,
        bytes: Arc::from(key.as_slice()),
    })
}

fn list(ranges: &GridRanges) -> IntervalList {
    let interval = |(low, high): &([u8; 8], [u8; 8])| Interval::new(square(*low), true, square(*high), true);
    IntervalList::union_of(ranges.iter().map(interval).collect())
}

impl Nearest for Plane {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn node(&self) -> NodeKind {
        NodeKind::GeoNear2d
    }

    fn part(&self, path: &Path, near: &Near) -> Option<usize> {
        let measures = near.metric() != Metric::Metres && self.paths.paths()[0] == *path;
        measures.then_some(0)
    }

    fn within(&self, near: &Near, distance: f64) -> Result<IntervalList> {
        Ok(list(&near.grid_ranges(&self.grid, distance)?))
    }

    /// Error: 16433 for a point outside of the grid.
    fn around(&self, near: &Near) -> Result<Option<Value>> {
        match self.grid.key(near.at()) {
            Ok(key) => Ok(Some(square(key))),
            Err(error) => Err(Error::location(16433, error.message().to_owned())),
        }
    }

    fn lower_bound(&self, near: &Near, key: ValueRef<'_>) -> f64 {
        match key {
            ValueRef::Binary { bytes, .. } => match bytes.try_into() {
                Ok(key) => near.to_square(&self.grid, key),
                Err(_) => 0.0,
            },
            _ => 0.0,
        }
    }

    fn farthest(&self, near: &Near) -> f64 {
        let (x, y) = near.at();
        let to_side = |v: f64| (v - self.grid.min).abs().max((v - self.grid.max).abs());
        match near.metric() {
            Metric::Flat => near.max().min(to_side(x).hypot(to_side(y)) * (1.0 + 1e-9)),
            Metric::Metres | Metric::Radians => near.max(),
        }
    }
}
