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
    /// The points that a closed line surrounds an odd number of times.
    Polygon(Vec<(f64, f64)>),
    /// The points no farther from a point than a distance.
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

/// The relation of a rectangle to a shape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placed {
    /// They have no point in common.
    Outside,
    /// All of the rectangle is in the shape.
    Inside,
    /// Perhaps some of it is.
    Partly,
}

impl Shape {
    /// How many edges placing a rectangle looks at.
    pub fn edges(&self) -> usize {
        match self {
            Self::Polygon(corners) => corners.len(),
            Self::Box { .. } | Self::Circle { .. } => 1,
        }
    }

    /// Where the rectangle between two corners is.
    pub fn place(&self, low: (f64, f64), high: (f64, f64)) -> Placed {
        let within = |a: (f64, f64), b: (f64, f64)| a.0 <= low.0 && high.0 <= b.0 && a.1 <= low.1 && high.1 <= b.1;
        let apart = |a: (f64, f64), b: (f64, f64)| b.0 < low.0 || high.0 < a.0 || b.1 < low.1 || high.1 < a.1;
        match self {
            Self::Box { low: a, high: b } if apart(*a, *b) => Placed::Outside,
            Self::Box { low: a, high: b } if within(*a, *b) => Placed::Inside,
            Self::Box { .. } => Placed::Partly,
            Self::Circle { center, radius } => {
                let nearest = (center.0.clamp(low.0, high.0), center.1.clamp(low.1, high.1));
                let farthest = |c: f64, a: f64, b: f64| (c - a).abs().max((c - b).abs());
                let slack = radius * 1e-12;
                if (nearest.0 - center.0).hypot(nearest.1 - center.1) > radius + slack {
                    return Placed::Outside;
                }
                let (x, y) = (farthest(center.0, low.0, high.0), farthest(center.1, low.1, high.1));
                match x.hypot(y) <= radius - slack {
                    true => Placed::Inside,
                    false => Placed::Partly,
                }
            }
            Self::Polygon(corners) => {
                let meets = |(a, b): (&(f64, f64), &(f64, f64))| {
                    !apart((a.0.min(b.0), a.1.min(b.1)), (a.0.max(b.0), a.1.max(b.1)))
                };
                if corners.iter().zip(corners.iter().cycle().skip(1)).any(meets) {
                    return Placed::Partly;
                }
                // No edge runs through it: one point speaks for all of them.
                match polygon_contains(corners, ((low.0 + high.0) / 2.0, (low.1 + high.1) / 2.0)) {
                    true => Placed::Inside,
                    false => Placed::Outside,
                }
            }
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
