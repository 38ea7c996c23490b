//! Geography: GeoJSON, legacy coordinate pairs, and which of them lie within or intersect a shape.
//!
//! GeoJSON is geometry on the sphere, whose edges are the shortest arcs between their ends; the shapes `$box`, `$polygon`
//! and `$center` are geometry on the plane. All areas are closed: what lies on an area's boundary lies within the area.
//!
//! Reading order: `sphere` (polygons and lines on the sphere), `planar`, `parse` (BSON to geometry), `cells` and `grid` (keys of
//! indexes), `near` (distances from a point), `query` (the operand of an operator, and the test of a value).

mod cells;
mod grid;
mod near;
mod parse;
mod planar;
mod query;
mod sphere;
#[cfg(test)]
mod tests;

pub use cells::KeyRanges;
pub use grid::{Grid, GridRanges, KEY_SUBTYPE};
pub use near::{EARTH_RADIUS, Metric, NEAR_OPERATORS, Near};
pub use query::{GeoOp, GeoTest};

use nestor_model::{Result, ValueRef};

/// The keys of a `2dsphere` index for a stored value, ascending.
///
/// # Errors
/// 2 (BadValue) if it is no valid geometry; those of the statement's interrupt.
pub fn sphere_keys(value: ValueRef<'_>) -> Result<Vec<i64>> {
    let geometry = parse::indexed(value)?;
    if geometry.strict_winding {
        nestor_model::bail!(BadValue, "big polygons cannot be stored");
    }
    geometry.keys()
}

/// The legacy pair that `$geoNear` measures from.
///
/// # Errors
/// 2 (BadValue).
pub fn near_pair(value: ValueRef<'_>) -> Result<(f64, f64)> {
    match parse::near_pair(value)? {
        (at, None) => Ok(at),
        _ => nestor_model::bail!(BadValue, "near must be a pair of coordinates: {value:?}"),
    }
}
