//! `$geoWithin` and `$geoIntersects`: their operand, and the test of a value.

use super::cells::{self, KeyRanges};
use super::grid::{Grid, GridRanges};
use super::near;
use super::parse::{self, Geometry, Kind};
use super::planar::{Placed, Shape};
use super::sphere::{Part, Polygon, are_within, point};
use nestor_model::statement::work;
use nestor_model::{ArrayRef, DocRef, Document, Result, Value, ValueRef, bail};
use s2rst::s2::Point;
use std::sync::OnceLock;

/// Edges of a shape with which keys are compared.
const EDGES_MAX: usize = 64;

/// Which relation a value must have to the shape.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum GeoOp {
    /// `$geoWithin`: no part of the value is outside.
    Within,
    /// `$geoIntersects`: a part of the value is inside.
    Intersects,
}

impl GeoOp {
    /// The operator's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Within => "$geoWithin",
            Self::Intersects => "$geoIntersects",
        }
    }
}

/// A shape, and the relation to it that a value must have.
#[derive(Debug)]
pub struct GeoTest {
    op: GeoOp,
    region: Region,
    source: Document,
    /// The covering that indexes are asked for, once it was computed.
    sphere_ranges: OnceLock<KeyRanges>,
}

#[derive(Debug)]
enum Region {
    Sphere(Geometry),
    Cap { center: Point, radius: f64 },
    Plane(Shape),
}

impl GeoTest {
    /// Parses the operand: `{$geometry: ...}` or, for `$geoWithin`, one of the legacy shapes.
    ///
    /// # Errors
    /// 2 (BadValue).
    pub fn parse(op: GeoOp, operand: ValueRef<'_>) -> Result<Self> {
        let ValueRef::Document(operand) = operand else {
            bail!(BadValue, "{} must be an object", op.name());
        };
        let mut fields = operand.iter();
        let (Some((name, value)), None) = (fields.next(), fields.next()) else {
            bail!(BadValue, "{} takes exactly one shape: {operand:?}", op.name());
        };
        let region = match (op, name) {
            (_, "$geometry") => Region::Sphere(geometry_operand(op, value)?),
            (GeoOp::Within, "$box") => Region::Plane(rectangle(value)?),
            (GeoOp::Within, "$polygon") => Region::Plane(polygon(value)?),
            (GeoOp::Within, "$center") => {
                let (center, radius) = circle(value)?;
                Region::Plane(Shape::Circle { center, radius })
            }
            (GeoOp::Within, "$centerSphere") => {
                let ((lng, lat), radius) = circle(value)?;
                let center = point(lng, lat)?;
                Region::Cap { center, radius }
            }
            _ => bail!(BadValue, "unknown geo specifier: {name}: {value:?}"),
        };
        Ok(Self {
            op,
            region,
            source: operand.to_document(),
            sphere_ranges: OnceLock::new(),
        })
    }

    /// The relation.
    pub fn op(&self) -> GeoOp {
        self.op
    }

    /// Whether a value may have the relation that has this key of a `2dsphere` index. Only keys of points say more than the
    /// ranges of keys do, and only where looking at them is cheaper than reading a document.
    pub fn may_be_in_cell(&self, key: i64) -> bool {
        let Some(at) = cells::point_of_key(key) else {
            return true;
        };
        let is_near = |part: &Part| part.edge_count() > EDGES_MAX || part.is_nearer(at, cells::POINT_ERROR);
        match &self.region {
            Region::Cap { center, radius } => are_within(*center, at, radius + cells::POINT_ERROR),
            Region::Sphere(geometry) => geometry.parts.len() > EDGES_MAX || geometry.parts.iter().any(is_near),
            Region::Plane(_) => true,
        }
    }

    /// Whether a pair may have the relation that has this key of a `2d` index.
    pub fn may_be_in_square(&self, grid: &Grid, key: [u8; 8]) -> bool {
        let Region::Plane(shape) = &self.region else {
            return true;
        };
        let ((x, y), half) = grid.middle(key);
        // Rounding when coordinates became steps.
        let half = half + (grid.max - grid.min) * 1e-12;
        shape.edges() > EDGES_MAX || shape.place((x - half, y - half), (x + half, y + half)) != Placed::Outside
    }

    /// The operand as it was written.
    pub fn source(&self) -> &Document {
        &self.source
    }

    /// The ranges in which the keys of a `2dsphere` index lie of all values that may have the relation; `None` if the shape
    /// is flat.
    ///
    /// # Errors
    /// Errors of the statement's interrupt.
    pub fn sphere_ranges(&self) -> Result<Option<&KeyRanges>> {
        if let Some(known) = self.sphere_ranges.get() {
            return Ok(Some(known));
        }
        let ranges = match &self.region {
            Region::Sphere(geometry) => geometry.ranges()?,
            Region::Cap { center, radius } => cells::ranges_around(*center, *radius, cells::AREA_CELLS_MAX)?,
            Region::Plane(_) => return Ok(None),
        };
        Ok(Some(self.sphere_ranges.get_or_init(|| ranges)))
    }

    /// The ranges in which the keys of a `2d` index lie of all values that may have the relation; `None` if the shape is
    /// GeoJSON.
    ///
    /// # Errors
    /// Errors of the statement's interrupt.
    pub fn grid_ranges(&self, grid: &Grid) -> Result<Option<GridRanges>> {
        match &self.region {
            Region::Plane(shape) => grid.ranges(shape).map(Some),
            Region::Cap { center, radius } => grid.ranges(&near::rectangle_around(*center, *radius)).map(Some),
            Region::Sphere(_) => Ok(None),
        }
    }

    /// Whether `value` is a geometry that has the relation to the shape.
    ///
    /// # Errors
    /// Errors of the statement's interrupt.
    pub fn matches(&self, value: ValueRef<'_>) -> Result<bool> {
        if !matches!(value, ValueRef::Document(_) | ValueRef::Array(_)) {
            return Ok(false);
        }
        work(1)?;
        let region = match &self.region {
            Region::Plane(shape) => return Ok(parse::stored_planar(value).is_some_and(|at| shape.contains(at))),
            region => region,
        };
        let Some(stored) = parse::stored(value)? else {
            return Ok(false);
        };
        match (self.op, region) {
            (GeoOp::Within, region) => {
                for part in &stored.parts {
                    if !region.has_within(part)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (GeoOp::Intersects, Region::Sphere(geometry)) => {
                for part in &stored.parts {
                    for other in &geometry.parts {
                        if part.intersects(other)? {
                            return Ok(true);
                        }
                    }
                }
                Ok(false)
            }
            // Parsing gives $geoIntersects a geometry only.
            (GeoOp::Intersects, _) => Ok(false),
        }
    }
}

impl Region {
    fn has_within(&self, part: &Part) -> Result<bool> {
        match self {
            Self::Sphere(geometry) => {
                for area in geometry.parts.iter().filter_map(as_polygon) {
                    if part.is_within(area)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Self::Cap { center, radius } => part.is_within_cap(*center, *radius),
            // Tested by coordinates before.
            Self::Plane(_) => Ok(false),
        }
    }
}

fn as_polygon(part: &Part) -> Option<&Polygon> {
    match part {
        Part::Polygon(polygon) => Some(polygon),
        Part::Point(_) | Part::Line(_) => None,
    }
}

fn geometry_operand(op: GeoOp, value: ValueRef<'_>) -> Result<Geometry> {
    if !matches!(value, ValueRef::Document(_) | ValueRef::Array(_)) {
        bail!(
            BadValue,
            "$geometry must be an object or an array, instead got type {}",
            value.bson_type().alias()
        );
    }
    let geometry = parse::geometry(value)?;
    let has_area = matches!(geometry.kind, Some(Kind::Polygon | Kind::MultiPolygon));
    if op == GeoOp::Within && !has_area {
        bail!(BadValue, "$geoWithin not supported with provided geometry: {value:?}");
    }
    Ok(geometry)
}

fn shape_array<'a>(value: ValueRef<'a>, name: &str) -> Result<ArrayRef<'a>> {
    match value {
        ValueRef::Array(items) => Ok(items),
        _ => bail!(BadValue, "{name} must be an array"),
    }
}

fn rectangle(value: ValueRef<'_>) -> Result<Shape> {
    let mut corners = shape_array(value, "$box")?.iter();
    let (Some(a), Some(b), None) = (corners.next(), corners.next(), corners.next()) else {
        bail!(BadValue, "$box takes exactly two corners");
    };
    let (a, b) = (parse::exact_pair(a)?, parse::exact_pair(b)?);
    Ok(Shape::Box {
        low: (a.0.min(b.0), a.1.min(b.1)),
        high: (a.0.max(b.0), a.1.max(b.1)),
    })
}

fn polygon(value: ValueRef<'_>) -> Result<Shape> {
    let mut corners = Vec::new();
    for corner in shape_array(value, "$polygon")? {
        corners.push(parse::exact_pair(corner)?);
    }
    if corners.len() < 3 {
        bail!(BadValue, "Polygon must have at least 3 points");
    }
    Ok(Shape::Polygon(corners))
}

fn circle(value: ValueRef<'_>) -> Result<((f64, f64), f64)> {
    let mut items = shape_array(value, "a circle")?.iter();
    let (Some(center), Some(radius), None) = (items.next(), items.next(), items.next()) else {
        bail!(BadValue, "a circle takes its center and its radius");
    };
    let center = parse::exact_pair(center)?;
    match parse::number(radius) {
        Some(radius) if radius >= 0.0 => Ok((center, radius)),
        _ => bail!(BadValue, "radius must be a non-negative number"),
    }
}

impl GeoTest {
    /// Refuses conditions beside a geographic operator in one document of operators.
    ///
    /// # Errors
    /// 2 (BadValue).
    pub fn check_alone(doc: DocRef<'_>) -> Result<()> {
        match doc.iter().nth(1) {
            Some((name, _)) => bail!(BadValue, "can't parse extra field: {name}"),
            None => Ok(()),
        }
    }

    /// `{$geoWithin: ...}`.
    pub fn serialize(&self) -> Document {
        let mut out = Document::new();
        out.push(self.op.name(), Value::Document(self.source.clone()));
        out
    }
}
