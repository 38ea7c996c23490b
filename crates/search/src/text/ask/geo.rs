//! `geoWithin` and `geoShape`.

use crate::operand::{Operand, double, refuse, refused};
use nestor_model::{Array, DocRef, Document, Error, Result, Value, ValueRef};
use nestor_query::geo::{EARTH_RADIUS, GeoOp, GeoTest};

/// What a geometry must be to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::text) enum Relation {
    Within,
    Intersects,
    Disjoint,
    Contains,
}

/// Geometries that are asked for.
#[derive(Debug)]
pub(in crate::text) struct GeoAsk {
    pub(in crate::text) relation: Relation,
    /// Of all that are found one of these holds, or none if the relation is that.
    pub(in crate::text) tests: Vec<GeoTest>,
    /// What is to be contained.
    pub(in crate::text) geometry: Option<Document>,
    /// Only points are found.
    pub(in crate::text) is_of_points: bool,
}

fn of(name: &str, error: &Error) -> Error {
    refused(format!("\"{name}\": {}", error.message()))
}

fn test(name: &str, op: GeoOp, shape: &str, value: Value) -> Result<GeoTest> {
    let mut operand = Document::new();
    operand.push(shape, value);
    GeoTest::parse(op, ValueRef::Document((&operand).into())).map_err(|error| of(name, &error))
}

impl GeoAsk {
    /// The operand of `geoWithin`.
    pub(super) fn within(spec: &Operand<'_>) -> Result<Self> {
        let given = ["box", "circle", "geometry"].map(|shape| spec.get(shape).is_some());
        if given.iter().filter(|given| **given).count() != 1 {
            refuse!("\"{}\" must have exactly one of box, circle and geometry", spec.name());
        }
        let tests = if let Some(rectangle) = spec.document("box")? {
            in_box(&rectangle)?
        } else if let Some(circle) = spec.document("circle")? {
            circle.only(&["center", "radius"])?;
            let center = point(&circle, "center")?;
            circle.required("radius")?;
            let radius = circle.number("radius")?.unwrap_or(f64::NAN);
            if !(radius.is_finite() && radius >= 0.0) {
                refuse!("\"{}\" must be a number that is not negative", circle.name_of("radius"));
            }
            let operand = vec![pair(center), Value::Double(radius / EARTH_RADIUS)];
            let operand = Value::Array(Array::new(operand));
            vec![test(circle.name(), GeoOp::Within, "$centerSphere", operand)?]
        } else {
            let geometry = spec.required_document("geometry")?;
            areas(&geometry)?;
            let value = Value::Document(geometry.doc().to_document());
            vec![test(geometry.name(), GeoOp::Within, "$geometry", value)?]
        };
        Ok(Self {
            relation: Relation::Within,
            tests,
            geometry: None,
            is_of_points: true,
        })
    }

    /// The operand of `geoShape`.
    pub(super) fn shape(spec: &Operand<'_>) -> Result<Self> {
        let relations = [
            ("contains", Relation::Contains),
            ("disjoint", Relation::Disjoint),
            ("intersects", Relation::Intersects),
            ("within", Relation::Within),
        ];
        spec.required("relation")?;
        let relation = spec.choice("relation", &relations)?.unwrap_or(Relation::Intersects);
        let geometry = spec.required_document("geometry")?;
        let value = Value::Document(geometry.doc().to_document());
        let op = match relation {
            Relation::Within => {
                areas(&geometry)?;
                GeoOp::Within
            }
            _ => {
                is_geojson(&geometry, geometry.doc())?;
                GeoOp::Intersects
            }
        };
        let tests = vec![test(geometry.name(), op, "$geometry", value)?];
        Ok(Self {
            relation,
            tests,
            geometry: Some(geometry.doc().to_document()),
            is_of_points: false,
        })
    }
}

fn is_geojson<'a>(spec: &Operand<'_>, doc: DocRef<'a>) -> Result<&'a str> {
    match doc.get("type") {
        Some(ValueRef::String(kind)) => Ok(kind),
        _ => refuse!("\"{}\" must be GeoJSON with a type", spec.name()),
    }
}

fn areas(spec: &Operand<'_>) -> Result<()> {
    match is_geojson(spec, spec.doc())? {
        "Polygon" | "MultiPolygon" => Ok(()),
        kind => refuse!("\"{}\" must be a Polygon or a MultiPolygon, not {kind:?}", spec.name()),
    }
}

/// The box of two corners; one that goes over the line where longitudes begin is two.
fn in_box(spec: &Operand<'_>) -> Result<Vec<GeoTest>> {
    spec.only(&["bottomLeft", "topRight"])?;
    let (low, high) = (point(spec, "bottomLeft")?, point(spec, "topRight")?);
    if low.1 > high.1 {
        refuse!("\"{}\" must have its bottomLeft below its topRight", spec.name());
    }
    let part = |low, high| {
        let corners = Value::Array(Array::new(vec![pair(low), pair(high)]));
        test(spec.name(), GeoOp::Within, "$box", corners)
    };
    match low.0 <= high.0 {
        true => Ok(vec![part(low, high)?]),
        false => Ok(vec![part(low, (180.0, high.1))?, part((-180.0, low.1), high)?]),
    }
}

fn pair((lng, lat): (f64, f64)) -> Value {
    Value::Array(Array::new(vec![Value::Double(lng), Value::Double(lat)]))
}

/// Longitude and latitude of a GeoJSON point.
fn point(spec: &Operand<'_>, field: &str) -> Result<(f64, f64)> {
    let at = spec.required_document(field)?;
    if at.required_string("type")? != "Point" {
        refuse!("\"{}\" must be a GeoJSON point", at.name());
    }
    let coordinates = at.required("coordinates").and_then(|_| at.array("coordinates"))?;
    let numbers: Option<Vec<f64>> = coordinates.map(|items| items.iter().filter_map(double).collect());
    match numbers.as_deref() {
        Some([lng, lat, ..]) if lng.abs() <= 180.0 && lat.abs() <= 90.0 => Ok((*lng, *lat)),
        _ => refuse!("\"{}\" must be a longitude and a latitude", at.name_of("coordinates")),
    }
}
