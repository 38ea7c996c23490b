//! Geography: GeoJSON, legacy coordinate pairs, and which of them lie within or intersect a shape.
//!
//! GeoJSON is geometry on the sphere, whose edges are the shortest arcs between their ends; the shapes `$box`, `$polygon`
//! and `$center` are geometry on the plane. All areas are closed: what lies on an area's boundary lies within the area.
//!
//! Reading order: `sphere` (polygons and lines on the sphere), `planar`, `parse` (BSON to geometry), `query` (the operand of
//! an operator, and the test of a value).

mod parse;
mod planar;
mod query;
mod sphere;
#[cfg(test)]
mod tests;

pub use query::{GeoOp, GeoTest};
