//! Shapes on the plane.

/// A shape of coordinates on the plane.
#[derive(Clone, Debug)]
pub enum Shape {
    /// A rectangle, with its boundary.
    Box {
        /// The lower coordinates.
        low: (f64, f64),
        /// The higher ones.
        high: (f64, f64),
    },
    /// What a line that returns to its start surrounds an odd number of times.
    Polygon(Vec<(f64, f64)>),
    /// What is no farther from a point than a distance.
    Circle {
        /// The point.
        center: (f64, f64),
        /// The distance, not negative, perhaps infinite.
        radius: f64,
    },
}

impl Shape {
    /// Whether the point is in the shape.
    pub fn contains(&self, p: (f64, f64)) -> bool {
        match self {
            Self::Box { low, high } => low.0 <= p.0 && p.0 <= high.0 && low.1 <= p.1 && p.1 <= high.1,
            Self::Polygon(corners) => polygon_contains(corners, p),
            Self::Circle { center, radius } => (p.0 - center.0).hypot(p.1 - center.1) <= *radius,
        }
    }
}

/// Counts the edges to the right. Corners and edges parallel to an axis belong to the polygon; of points on other edges
/// those belong that have the inside on their right.
fn polygon_contains(corners: &[(f64, f64)], p: (f64, f64)) -> bool {
    let mut inside = false;
    for (a, b) in corners.iter().zip(corners.iter().cycle().skip(1)) {
        let (left, right) = (a.0.min(b.0), a.0.max(b.0));
        let (bottom, top) = (a.1.min(b.1), a.1.max(b.1));
        let in_box = left <= p.0 && p.0 <= right && bottom <= p.1 && p.1 <= top;
        if in_box && (left == right || bottom == top || p == *a || p == *b) {
            return true;
        }
        if bottom < p.1 && p.1 <= top {
            let crossing = a.0 + (p.1 - a.1) * (b.0 - a.0) / (b.1 - a.1);
            inside ^= p.0 <= crossing;
        }
    }
    inside
}
