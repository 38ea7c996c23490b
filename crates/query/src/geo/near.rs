//! `$near`, `$nearSphere` and the point of `$geoNear`: from where distances are measured, how, and which count.

use super::cells::{self, KeyRanges};
use super::grid::{Grid, GridRanges};
use super::parse;
use super::planar::Shape;
use super::sphere::point;
use nestor_model::statement::work;
use nestor_model::{DocRef, Document, Error, Result, Value, ValueRef, bail};
use s2rst::s1::Angle;
use s2rst::s2::{Cap, LatLng, Point};
use std::f64::consts::PI;

/// Most cells for a ring that is searched, in which keys are looked at, and no documents that are too far.
const RING_CELLS_MAX: usize = 20;

/// Metres of the earth's radius.
pub const EARTH_RADIUS: f64 = 6_378_100.0;

/// How distances are measured.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Metric {
    /// On the sphere, in metres.
    Metres,
    /// On the sphere, in radians.
    Radians,
    /// On the plane, in units of the coordinates.
    Flat,
}

/// A point, and the distances from it that count.
#[derive(Debug)]
pub struct Near {
    name: &'static str,
    at: (f64, f64),
    /// On the sphere, unless distances are flat.
    center: Option<Point>,
    metric: Metric,
    /// The least distance, and the greatest: both count.
    min: f64,
    max: f64,
    source: Document,
}

/// The names of operators that give the nearest first.
pub const NEAR_OPERATORS: [&str; 3] = ["$near", "$nearSphere", "$geoNear"];

/// A distance beside GeoJSON.
fn distance(name: &str, value: ValueRef<'_>) -> Result<f64> {
    match parse::number(value) {
        Some(distance) if distance >= 0.0 && distance.is_finite() => Ok(distance),
        Some(_) => bail!(BadValue, "{name} must be non-negative"),
        None => bail!(BadValue, "{name} must be a number"),
    }
}

/// A distance beside a legacy pair, which has errors of its own.
fn legacy_distance(name: &str, value: ValueRef<'_>) -> Result<f64> {
    let is_min = name == "$minDistance";
    let (code, fault) = match parse::number(value) {
        Some(distance) if distance >= 0.0 => return Ok(distance),
        Some(_) => (if is_min { 16894 } else { 16896 }, "must be non-negative"),
        None => (if is_min { 16893 } else { 16895 }, "must be a number"),
    };
    Err(Error::location(code, format!("{name} {fault}")))
}

impl Near {
    /// Parses the document of operators that has one of [`NEAR_OPERATORS`].
    ///
    /// # Errors
    /// 2 (BadValue), 34413 for another operator beside it.
    pub fn parse(operators: DocRef<'_>) -> Result<Self> {
        let mut found = None;
        let (mut min, mut max) = (None, None);
        for (name, value) in operators {
            match name {
                "$near" | "$nearSphere" | "$geoNear" if found.is_some() => {
                    bail!(BadValue, "Too many geoNear expressions")
                }
                "$near" => found = Some(("$near", value)),
                "$nearSphere" => found = Some(("$nearSphere", value)),
                "$geoNear" => found = Some(("$geoNear", value)),
                "$minDistance" => min = Some(legacy_distance(name, value)?),
                "$maxDistance" => max = Some(legacy_distance(name, value)?),
                "$geoWithin" | "$within" | "$geoIntersects" => bail!(BadValue, "can't parse extra field: {name}"),
                _ => bail!(34413, "invalid argument in geo near query: {name}"),
            }
        }
        let Some((name, value)) = found else {
            bail!(BadValue, "$minDistance and $maxDistance need a $near or $nearSphere");
        };
        let near = match value {
            ValueRef::Document(doc) if doc.iter().next().is_some_and(|(name, _)| name.starts_with('$')) => {
                Self::of_geometry(name, doc)?
            }
            ValueRef::Document(doc) if parse::is_geojson(doc) => Self::of_geojson(name, doc)?,
            value => Self::of_pair(name, value)?,
        };
        let source: Document = (operators.iter())
            .map(|(name, value)| (name.into(), value.to_value()))
            .collect();
        Ok(Self {
            min: min.unwrap_or(near.min),
            max: max.unwrap_or(near.max),
            source,
            ..near
        })
    }

    /// `{$geometry: {...}, $minDistance: n, $maxDistance: n}`.
    fn of_geometry(name: &'static str, doc: DocRef<'_>) -> Result<Self> {
        let mut geometry = None;
        let (mut min, mut max) = (0.0, f64::INFINITY);
        for (field, value) in doc {
            match field {
                "$geometry" => geometry = Some(value),
                "$minDistance" => min = distance(field, value)?,
                "$maxDistance" => max = distance(field, value)?,
                _ => bail!(BadValue, "invalid argument in geo near query: {field}"),
            }
        }
        let Some(geometry) = geometry else {
            bail!(BadValue, "{name} requires a point, given {doc:?}");
        };
        let ValueRef::Document(geometry) = geometry else {
            if let (ValueRef::Array(_), "$nearSphere") = (geometry, name) {
                let near = Self::of_pair(name, geometry)?;
                return Ok(Self { min, max, ..near });
            }
            bail!(
                BadValue,
                "$geometry must be an object, instead got type {}",
                geometry.bson_type().alias()
            );
        };
        let near = Self::of_geojson(name, geometry)?;
        Ok(Self { min, max, ..near })
    }

    /// A GeoJSON point, from which distances are metres.
    ///
    /// # Errors
    /// 2 (BadValue).
    pub fn of_geojson(name: &'static str, doc: DocRef<'_>) -> Result<Self> {
        let Some(at) = parse::near_point(doc)? else {
            bail!(BadValue, "$near requires a point, given {doc:?}");
        };
        Self::on_sphere(name, at, Metric::Metres)
    }

    fn on_sphere(name: &'static str, at: (f64, f64), metric: Metric) -> Result<Self> {
        // Of places with several coordinates the one that is meant counts for rounding.
        let _ = point(at.0, at.1)?;
        Ok(Self {
            name,
            at,
            center: Some(LatLng::from_degrees(at.1, at.0).to_point()),
            metric,
            min: 0.0,
            max: f64::INFINITY,
            source: Document::new(),
        })
    }

    /// A legacy pair, from which distances are radians (`$nearSphere`) or flat; a third number is the greatest distance.
    fn of_pair(name: &'static str, value: ValueRef<'_>) -> Result<Self> {
        let (at, max) = parse::near_pair(value)?;
        let near = Self::of_legacy(name, at, name == "$nearSphere")?;
        match max {
            Some(max) => Ok(Self {
                max: legacy_distance("$maxDistance", max)?,
                ..near
            }),
            None => Ok(near),
        }
    }

    /// A legacy pair, from which distances are radians if `spherical`, else flat.
    ///
    /// # Errors
    /// 2 (BadValue) for what is no longitude and latitude, if `spherical`.
    pub fn of_legacy(name: &'static str, at: (f64, f64), spherical: bool) -> Result<Self> {
        if spherical {
            return Self::on_sphere(name, at, Metric::Radians);
        }
        Ok(Self {
            name,
            at,
            center: None,
            metric: Metric::Flat,
            min: 0.0,
            max: f64::INFINITY,
            source: Document::new(),
        })
    }

    /// The same with other distances, and an operand to show.
    #[must_use]
    pub fn within(self, min: f64, max: f64, source: Document) -> Self {
        Self {
            min,
            max,
            source,
            ..self
        }
    }

    /// The operator's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The operators as they were written.
    pub fn source(&self) -> &Document {
        &self.source
    }

    /// How distances are measured.
    pub fn metric(&self) -> Metric {
        self.metric
    }

    /// The coordinates of the point.
    pub fn at(&self) -> (f64, f64) {
        self.at
    }

    /// The least distance that counts.
    pub fn min(&self) -> f64 {
        self.min
    }

    /// The greatest distance that was asked for.
    pub fn max_given(&self) -> Option<f64> {
        self.max.is_finite().then_some(self.max)
    }

    /// The greatest distance that counts, and that there is: on the sphere half of its circumference.
    pub fn max(&self) -> f64 {
        match self.metric {
            Metric::Metres => self.max.min(PI * EARTH_RADIUS),
            Metric::Radians => self.max.min(PI),
            Metric::Flat => self.max,
        }
    }

    /// The distance to a stored value; `None` if that is no location.
    ///
    /// # Errors
    /// Errors of the statement's interrupt.
    pub fn distance(&self, value: ValueRef<'_>) -> Result<Option<f64>> {
        if !matches!(value, ValueRef::Document(_) | ValueRef::Array(_)) {
            return Ok(None);
        }
        work(1)?;
        let Some(center) = self.center else {
            let (x, y) = self.at;
            return Ok(parse::stored_planar(value).map(|at| (at.0 - x).hypot(at.1 - y)));
        };
        if let Some(at) = parse::stored_lng_lat(value) {
            return Ok(Some(self.unit(center.distance(at).radians())));
        }
        let Some(stored) = parse::stored(value)? else {
            return Ok(None);
        };
        let mut nearest = f64::INFINITY;
        for part in &stored.parts {
            nearest = nearest.min(part.distance(center)?);
        }
        Ok(Some(self.unit(nearest)))
    }

    /// Whether a distance counts.
    pub fn counts(&self, distance: f64) -> bool {
        self.min <= distance && distance <= self.max
    }

    fn unit(&self, radians: f64) -> f64 {
        match self.metric {
            Metric::Metres => radians * EARTH_RADIUS,
            Metric::Radians | Metric::Flat => radians,
        }
    }

    fn radians(&self, distance: f64) -> f64 {
        match self.metric {
            Metric::Metres => distance / EARTH_RADIUS,
            Metric::Radians | Metric::Flat => distance,
        }
    }

    /// The ranges of keys of a `2dsphere` index for what is no farther than `distance`; `None` if distances are flat.
    ///
    /// # Errors
    /// Errors of the statement's interrupt.
    pub fn sphere_ranges(&self, distance: f64) -> Result<Option<KeyRanges>> {
        match self.center {
            Some(center) => cells::ranges_around(center, self.radians(distance), RING_CELLS_MAX).map(Some),
            None => Ok(None),
        }
    }

    /// No geometry with this key of a `2dsphere` index is nearer.
    pub fn to_cell(&self, key: i64) -> f64 {
        self.center
            .map_or(0.0, |center| self.unit(cells::distance_to_key(center, key)))
    }

    /// The key of a `2dsphere` index for the point itself.
    pub fn cell(&self) -> Option<i64> {
        self.center.map(cells::key_of_point)
    }

    /// The ranges of keys of a `2d` index for what is no farther than `distance`.
    ///
    /// # Errors
    /// Errors of the statement's interrupt.
    pub fn grid_ranges(&self, grid: &Grid, distance: f64) -> Result<GridRanges> {
        let shape = match self.center {
            None => Shape::Circle {
                center: self.at,
                radius: distance,
            },
            Some(center) => rectangle_around(center, self.radians(distance)),
        };
        grid.ranges(&shape)
    }

    /// No pair with this key of a `2d` index is nearer.
    pub fn to_square(&self, grid: &Grid, key: [u8; 8]) -> f64 {
        let (middle, half) = grid.middle(key);
        match self.center {
            None => {
                let (x, y) = ((middle.0 - self.at.0).abs() - half, (middle.1 - self.at.1).abs() - half);
                (x.max(0.0).hypot(y.max(0.0)) * (1.0 - 1e-12)).max(0.0)
            }
            Some(center) => {
                // Coordinates of the plane need not be longitudes and latitudes.
                let (lng, lat) = (middle.0.clamp(-180.0, 180.0), middle.1.clamp(-90.0, 90.0));
                let to_middle = center.distance(LatLng::from_degrees(lat, lng).to_point()).radians();
                self.unit((to_middle - (2.0 * half).to_radians() * 1.5 - 1e-12).max(0.0))
            }
        }
    }
}

/// Longitudes and latitudes around a cap.
pub(super) fn rectangle_around(center: Point, radius: f64) -> Shape {
    if radius >= PI {
        return Shape::Box {
            low: (-180.0, -90.0),
            high: (180.0, 90.0),
        };
    }
    let cap = Cap::from_center_angle(center, Angle::from_radians(radius));
    let bound = cap.rect_bound();
    let margin = 1e-9;
    let (low, high) = (bound.lo(), bound.hi());
    let (south, north) = (low.lat.degrees() - margin, high.lat.degrees() + margin);
    let (west, east) = match bound.lng.is_inverted() || bound.lng.is_full() {
        true => (-180.0, 180.0),
        false => (low.lng.degrees() - margin, high.lng.degrees() + margin),
    };
    Shape::Box {
        low: (west, south),
        high: (east, north),
    }
}

impl Near {
    /// The operators as they were written, or as the point alone.
    pub fn serialize(&self) -> Document {
        match self.source.is_empty() {
            true => {
                let (x, y) = self.at;
                let mut out = Document::new();
                out.push(self.name, vec![Value::Double(x), Value::Double(y)]);
                out
            }
            false => self.source.clone(),
        }
    }
}
