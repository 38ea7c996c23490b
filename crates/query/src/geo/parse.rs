//! BSON to geometry.

use super::sphere::{Line, Part, Polygon, point};
use nestor_model::number::Num;
use nestor_model::{ArrayRef, DocRef, Result, ValueRef, bail};
use s2rst::s2::{LatLng, Point};

/// A GeoJSON geometry, or a legacy pair read as a point on the sphere.
#[derive(Debug)]
pub struct Geometry {
    /// The pieces that it consists of; one for each type but the collections.
    pub parts: Vec<Part>,
    /// GeoJSON's `type`, `None` for a legacy pair.
    pub kind: Option<Kind>,
    /// Its polygon is what its ring has on the left, not the smaller side.
    pub strict_winding: bool,
}

/// GeoJSON's types of geometry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Kind {
    Point,
    LineString,
    Polygon,
    MultiPoint,
    MultiLineString,
    MultiPolygon,
    GeometryCollection,
}

impl Kind {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "Point" => Self::Point,
            "LineString" => Self::LineString,
            "Polygon" => Self::Polygon,
            "MultiPoint" => Self::MultiPoint,
            "MultiLineString" => Self::MultiLineString,
            "MultiPolygon" => Self::MultiPolygon,
            "GeometryCollection" => Self::GeometryCollection,
            _ => return None,
        })
    }
}

const STRICT_WINDING: &str = "urn:x-mongodb:crs:strictwinding:EPSG:4326";

/// The geometry that a value stands for: a GeoJSON object, or a legacy pair within longitudes and latitudes.
///
/// # Errors
/// 2 (BadValue) if it is none, or not a valid one.
pub fn geometry(value: ValueRef<'_>) -> Result<Geometry> {
    match value {
        ValueRef::Document(doc) if is_geojson(doc) => geojson(doc),
        _ => {
            let (lng, lat) = exact_pair(value)?;
            Ok(Geometry {
                parts: vec![Part::Point(point(lng, lat)?)],
                kind: None,
                strict_winding: false,
            })
        }
    }
}

/// The geometry stored in a field, where a legacy pair may have more numbers; `None` if it is none.
///
/// # Errors
/// Only errors of the statement's interrupt.
pub fn stored(value: ValueRef<'_>) -> Result<Option<Geometry>> {
    match indexed(value) {
        // A polygon whose ring's direction counts is for queries; in a document it has no projection to the sphere.
        Ok(geometry) if geometry.strict_winding => Ok(None),
        Ok(geometry) => Ok(Some(geometry)),
        Err(error) if error.code() == nestor_model::ErrorCode::BadValue => Ok(None),
        Err(error) => Err(error),
    }
}

/// The geometry that a field stores for an index, where a legacy pair may have more numbers.
///
/// # Errors
/// 2 (BadValue) if it is none, or not a valid one; those of the statement's interrupt.
pub fn indexed(value: ValueRef<'_>) -> Result<Geometry> {
    match value {
        ValueRef::Document(doc) if is_geojson(doc) => geojson(doc),
        ValueRef::Document(_) | ValueRef::Array(_) => match stored_pair(value) {
            Some((lng, lat)) => Ok(Geometry {
                parts: vec![Part::Point(point(lng, lat)?)],
                kind: None,
                strict_winding: false,
            }),
            None => bail!(BadValue, "Point must only contain numeric elements"),
        },
        _ => bail!(BadValue, "geo element must be an array or object: {value:?}"),
    }
}

/// The place that a legacy pair or a GeoJSON point stands for, its coordinates being taken as they are: there are several for
/// a pole. `None` for all else.
pub fn stored_lng_lat(value: ValueRef<'_>) -> Option<Point> {
    let (lng, lat) = stored_planar(value)?;
    let _ = point(lng, lat).ok()?;
    Some(LatLng::from_degrees(lat, lng).to_point())
}

/// Longitude and latitude of the GeoJSON point that a distance is measured from, whose type may be left out; `None` for
/// GeoJSON of other types.
///
/// # Errors
/// 2 (BadValue).
pub fn near_point(doc: DocRef<'_>) -> Result<Option<(f64, f64)>> {
    match doc.get("type") {
        None | Some(ValueRef::String("Point")) => {}
        Some(_) => return geojson(doc).map(|_| None),
    }
    strict_winding(doc)?;
    let coordinates = doc.get("coordinates").unwrap_or(ValueRef::Missing);
    let (lng, lat) = lng_lat(coordinates)?;
    let _ = point(lng, lat)?;
    Ok(Some((lng, lat)))
}

/// The legacy pair that a distance is measured from, and the number behind it.
///
/// # Errors
/// 2 (BadValue).
pub fn near_pair(value: ValueRef<'_>) -> Result<((f64, f64), Option<ValueRef<'_>>)> {
    let Some(mut members) = members(value) else {
        bail!(BadValue, "near requires a point, given {value:?}");
    };
    let (Some(x), Some(y)) = (members.next(), members.next()) else {
        bail!(BadValue, "Point must contain at least two coordinates: {value:?}");
    };
    let at = finite_pair(x, y)?;
    let max = members.next();
    match members.next() {
        Some(_) => bail!(
            BadValue,
            "Point must not have more than a greatest distance behind it: {value:?}"
        ),
        None => Ok((at, max)),
    }
}

/// Coordinates on the plane that are stored in a field: those of a legacy pair or of a GeoJSON point.
pub fn stored_planar(value: ValueRef<'_>) -> Option<(f64, f64)> {
    match value {
        ValueRef::Document(doc) if is_geojson(doc) => match doc.get("type") {
            Some(ValueRef::String("Point")) => {
                let (lng, lat) = stored_pair(doc.get("coordinates")?)?;
                point(lng, lat).is_ok().then_some((lng, lat))
            }
            _ => None,
        },
        _ => stored_pair(value),
    }
}

/// Whether a document means GeoJSON, and no legacy pair with names of its own.
pub fn is_geojson(doc: DocRef<'_>) -> bool {
    doc.get("type").is_some() || doc.get("coordinates").is_some()
}

/// The first two numbers of an array or a document.
fn stored_pair(value: ValueRef<'_>) -> Option<(f64, f64)> {
    let mut first = members(value)?.take(2);
    let (x, y) = (number(first.next()?)?, number(first.next()?)?);
    (x.is_finite() && y.is_finite()).then_some((x, y))
}

/// Two finite numbers and no more, in an array or a document.
///
/// # Errors
/// 2 (BadValue) for anything else.
pub fn exact_pair(value: ValueRef<'_>) -> Result<(f64, f64)> {
    let Some(mut members) = members(value) else {
        bail!(
            BadValue,
            "Point must be an array or object, instead got type {}",
            value.bson_type().alias()
        );
    };
    let (Some(x), Some(y), None) = (members.next(), members.next(), members.next()) else {
        bail!(BadValue, "Point must contain exactly two coordinates: {value:?}");
    };
    finite_pair(x, y)
}

fn finite_pair(x: ValueRef<'_>, y: ValueRef<'_>) -> Result<(f64, f64)> {
    let (Some(x), Some(y)) = (number(x), number(y)) else {
        bail!(BadValue, "Point must only contain numeric elements");
    };
    if !(x.is_finite() && y.is_finite()) {
        bail!(BadValue, "Point coordinates must be finite numbers");
    }
    Ok((x, y))
}

fn members<'a>(value: ValueRef<'a>) -> Option<Box<dyn Iterator<Item = ValueRef<'a>> + 'a>> {
    match value {
        ValueRef::Array(items) => Some(Box::new(items.iter())),
        ValueRef::Document(doc) => Some(Box::new(doc.iter().map(|(_, value)| value))),
        _ => None,
    }
}

/// A number of any type.
pub fn number(value: ValueRef<'_>) -> Option<f64> {
    Num::from_ref(value).map(Num::to_f64)
}

fn geojson(doc: DocRef<'_>) -> Result<Geometry> {
    let kind = match doc.get("type") {
        Some(ValueRef::String(name)) => match Kind::of(name) {
            Some(kind) => kind,
            None => bail!(BadValue, "unknown GeoJSON type: {doc:?}"),
        },
        _ => bail!(BadValue, "GeoJSON type must be a string: {doc:?}"),
    };
    let strict_winding = strict_winding(doc)?;
    if strict_winding && kind != Kind::Polygon {
        bail!(
            BadValue,
            "Strict winding order CRS is only supported for Polygon geometries"
        );
    }
    let coordinates = doc.get("coordinates").unwrap_or(ValueRef::Missing);
    let parts = match kind {
        Kind::Point => vec![Part::Point(position(coordinates)?)],
        Kind::LineString => vec![line(coordinates)?],
        Kind::Polygon => vec![polygon(coordinates, strict_winding)?],
        Kind::MultiPoint => each(coordinates, "MultiPoint", |item| position(item).map(Part::Point))?,
        Kind::MultiLineString => each(coordinates, "MultiLineString", line)?,
        Kind::MultiPolygon => each(coordinates, "MultiPolygon", |item| polygon(item, false))?,
        Kind::GeometryCollection => {
            let ValueRef::Array(items) = doc.get("geometries").unwrap_or(ValueRef::Missing) else {
                bail!(BadValue, "GeometryCollection geometries must be an array");
            };
            let mut parts = Vec::new();
            for item in items {
                match item {
                    // One within another has no use and would only nest.
                    ValueRef::Document(inner)
                        if matches!(inner.get("type"), Some(ValueRef::String("GeometryCollection"))) =>
                    {
                        bail!(BadValue, "GeometryCollections cannot be nested: {inner:?}")
                    }
                    ValueRef::Document(inner) => parts.extend(geojson(inner)?.parts),
                    _ => bail!(BadValue, "Element {item:?} of \"geometries\" must be an object"),
                }
            }
            if parts.is_empty() {
                bail!(BadValue, "GeometryCollection geometries must have at least 1 element");
            }
            parts
        }
    };
    Ok(Geometry {
        parts,
        kind: Some(kind),
        strict_winding,
    })
}

/// Whether `crs` names the system in which a ring's direction counts.
fn strict_winding(doc: DocRef<'_>) -> Result<bool> {
    let Some(crs) = doc.get("crs") else {
        return Ok(false);
    };
    let ValueRef::Document(crs) = crs else {
        bail!(BadValue, "GeoJSON CRS must be an object");
    };
    if !matches!(crs.get("type"), Some(ValueRef::String("name"))) {
        bail!(BadValue, "GeoJSON CRS must have field \"type\": \"name\"");
    }
    let Some(ValueRef::Document(properties)) = crs.get("properties") else {
        bail!(BadValue, "CRS must have field \"properties\" which is an object");
    };
    match properties.get("name") {
        Some(ValueRef::String("urn:ogc:def:crs:OGC:1.3:CRS84" | "EPSG:4326")) => Ok(false),
        Some(ValueRef::String(STRICT_WINDING)) => Ok(true),
        Some(ValueRef::String(name)) => bail!(BadValue, "Unknown CRS name: {name}"),
        _ => bail!(BadValue, "In CRS, \"properties.name\" must be a string"),
    }
}

/// A GeoJSON position, whose elements after the second (altitude) are of no interest.
fn position(value: ValueRef<'_>) -> Result<Point> {
    let (lng, lat) = lng_lat(value)?;
    point(lng, lat)
}

fn lng_lat(value: ValueRef<'_>) -> Result<(f64, f64)> {
    let Some(mut members) = members(value) else {
        bail!(
            BadValue,
            "Point must be an array or object, instead got type {}",
            value.bson_type().alias()
        );
    };
    let (Some(lng), Some(lat)) = (members.next(), members.next()) else {
        bail!(BadValue, "Point must contain at least two coordinates: {value:?}");
    };
    finite_pair(lng, lat)
}

fn array<'a>(value: ValueRef<'a>, what: &str) -> Result<ArrayRef<'a>> {
    match value {
        ValueRef::Array(items) => Ok(items),
        _ => bail!(BadValue, "{what} coordinates must be an array"),
    }
}

fn positions(value: ValueRef<'_>, what: &str) -> Result<Vec<Point>> {
    let mut points = Vec::new();
    for item in array(value, what)? {
        if !matches!(item, ValueRef::Array(_)) {
            bail!(BadValue, "{what} coordinates must be an array of coordinates");
        }
        points.push(position(item)?);
    }
    Ok(points)
}

fn line(value: ValueRef<'_>) -> Result<Part> {
    Line::new(positions(value, "LineString")?).map(Part::Line)
}

fn polygon(value: ValueRef<'_>, strict_winding: bool) -> Result<Part> {
    let mut rings = Vec::new();
    for ring in array(value, "Polygon")? {
        rings.push(positions(ring, "Polygon")?);
    }
    let polygon = if strict_winding {
        match (rings.pop(), rings.is_empty()) {
            (Some(ring), true) => Polygon::to_the_left(ring)?,
            _ => bail!(BadValue, "Only one simple loop is allowed in a big polygon"),
        }
    } else {
        Polygon::new(rings)?
    };
    Ok(Part::Polygon(Box::new(polygon)))
}

fn each(value: ValueRef<'_>, what: &str, parse: impl Fn(ValueRef<'_>) -> Result<Part>) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    for item in array(value, what)? {
        parts.push(parse(item)?);
    }
    if parts.is_empty() {
        bail!(BadValue, "{what} coordinates must have at least 1 element");
    }
    Ok(parts)
}
