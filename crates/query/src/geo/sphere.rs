//! Points, lines and polygons on the unit sphere.
//!
//! Which side of an edge a point is on, and whether edges cross, is decided exactly by `s2rst`; what is built on it here
//! looks at the statement's interrupt, however many vertices two polygons have.

use nestor_model::statement::work;
use nestor_model::{Result, bail};
use s2rst::r3::Vector;
use s2rst::s2::edge_crossings::{Crossing, crossing_sign};
use s2rst::s2::edge_distances::distance_from_segment;
use s2rst::s2::{LatLng, Loop, Point, Region};
use std::collections::HashSet;

/// Radians within which points count as one and a point counts as on an edge: the rounding error of converting degrees,
/// on earth six nanometres.
pub(super) const TOUCH: f64 = 1e-15;

/// The point at `lng` and `lat` degrees. Each place has one point: -180 is 180, and a pole has one longitude.
///
/// # Errors
/// 2 (BadValue) if they are no longitude and latitude.
pub fn point(lng: f64, lat: f64) -> Result<Point> {
    if !(lng.abs() <= 180.0 && lat.abs() <= 90.0) {
        bail!(BadValue, "longitude/latitude is out of bounds, lng: {lng} lat: {lat}");
    }
    if lat.abs() == 90.0 {
        return Ok(Point::from_coords(0.0, 0.0, lat.signum()));
    }
    let lng = if lng == -180.0 { 180.0 } else { lng };
    Ok(LatLng::from_degrees(lat, lng).to_point())
}

/// A box around edges in space, by which most pairs are told apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) low: [f64; 3],
    pub(super) high: [f64; 3],
}

fn coordinates(p: Point) -> [f64; 3] {
    [p.x(), p.y(), p.z()]
}

impl Bounds {
    pub(super) fn of_edge(a: Point, b: Point) -> Self {
        let (a, b) = (coordinates(a), coordinates(b));
        let chord: f64 = (0..3).map(|i| (a[i] - b[i]).powi(2)).sum();
        // An arc rises above its chord by at most a quarter of the chord's square, as it does at 180 degrees.
        let margin = chord / 4.0 + 4.0 * TOUCH;
        Self {
            low: std::array::from_fn(|i| a[i].min(b[i]) - margin),
            high: std::array::from_fn(|i| a[i].max(b[i]) + margin),
        }
    }

    pub(super) fn of_edges(edges: impl Iterator<Item = (Point, Point)>) -> Self {
        let mut all = Self {
            low: [f64::INFINITY; 3],
            high: [f64::NEG_INFINITY; 3],
        };
        for (a, b) in edges {
            let edge = Self::of_edge(a, b);
            all.low = std::array::from_fn(|i| all.low[i].min(edge.low[i]));
            all.high = std::array::from_fn(|i| all.high[i].max(edge.high[i]));
        }
        all
    }

    pub(super) fn meets(&self, other: &Self) -> bool {
        (0..3).all(|i| self.low[i] <= other.high[i] && other.low[i] <= self.high[i])
    }
}

/// Two or more vertices, neighbours being different and not antipodal.
#[derive(Clone, Debug)]
pub struct Line {
    vertices: Vec<Point>,
    bounds: Bounds,
}

impl Line {
    /// A line through `vertices`, of which repeated ones are dropped.
    ///
    /// # Errors
    /// 2 (BadValue) for fewer than two different vertices or for antipodal neighbours.
    pub fn new(mut vertices: Vec<Point>) -> Result<Self> {
        vertices.dedup();
        if vertices.len() < 2 {
            bail!(BadValue, "GeoJSON LineString must have at least 2 vertices");
        }
        no_antipodes(vertices.windows(2).map(|pair| (pair[0], pair[1])))?;
        let bounds = Bounds::of_edges(vertices.windows(2).map(|pair| (pair[0], pair[1])));
        Ok(Self { vertices, bounds })
    }

    fn edges(&self) -> impl Iterator<Item = (Point, Point)> + '_ {
        self.vertices.windows(2).map(|pair| (pair[0], pair[1]))
    }
}

fn no_antipodes(edges: impl Iterator<Item = (Point, Point)>) -> Result<()> {
    for (at, (a, b)) in edges.enumerate() {
        if a.distance(-b).radians() <= TOUCH {
            bail!(BadValue, "Vertices {at} and {} are antipodal", at + 1);
        }
    }
    Ok(())
}

/// An area with holes.
#[derive(Debug)]
pub struct Polygon {
    shell: Loop,
    holes: Vec<Loop>,
    bounds: Bounds,
    /// Of a convex area with few corners: for each edge the direction in which the area lies, so that a point is in it that is not
    /// behind any.
    sides: Option<Vec<Vector>>,
}

/// Corners of an area for which points are compared with its sides.
const SIDES_MAX: usize = 16;

/// How far from its sides a point is surely in an area or out of it, in radians.
const SIDES_ERROR: f64 = 1e-9;

/// The sides of a ring, if the area to its left is convex. Edges are more than a few metres long, so that their directions are exact.
fn sides_of(ring: &Loop) -> Option<Vec<Vector>> {
    let vertices = ring.vertices();
    if vertices.len() > SIDES_MAX {
        return None;
    }
    let mut sides = Vec::with_capacity(vertices.len());
    for (a, b) in ring_edges(vertices) {
        let side = a.vector().cross(b.vector());
        let length = side.norm2().sqrt();
        let side = side * (1.0 / length);
        let others = vertices.iter().filter(|v| **v != a && **v != b);
        if length < 1e-6 || others.into_iter().any(|v| v.vector().dot(side) < SIDES_ERROR) {
            return None;
        }
        sides.push(side);
    }
    Some(sides)
}

impl Polygon {
    /// The polygon whose outer ring is the first and whose holes are the others; each ring is closed, its first vertex
    /// being its last. Of the two areas that a ring separates the smaller one is meant.
    ///
    /// # Errors
    /// 2 (BadValue) for rings that are too short, touch themselves, cross each other or are not within the first.
    pub fn new(rings: Vec<Vec<Point>>) -> Result<Self> {
        let mut loops = Vec::with_capacity(rings.len());
        let mut edges = Vec::new();
        for (number, ring) in rings.into_iter().enumerate() {
            let ring = checked_ring(ring)?;
            edges.extend(ring_edges(&ring).map(|(a, b)| (number, a, b)));
            loops.push(ring);
        }
        no_crossings(&edges)?;
        no_shared_edges(&edges)?;
        let mut loops = loops.into_iter().map(|ring| {
            let mut ring = Loop::new(ring);
            ring.normalize();
            ring
        });
        let Some(shell) = loops.next() else {
            bail!(BadValue, "Polygon has no loops.");
        };
        let holes: Vec<Loop> = loops.collect();
        for (at, hole) in holes.iter().enumerate() {
            if !ring_within(hole, &shell)? {
                bail!(
                    BadValue,
                    "Secondary loops not contained by first exterior loop - secondary loops must be holes"
                );
            }
            for other in &holes[..at] {
                work(1)?;
                if other.bound().intersects(hole.bound()) && (ring_within(hole, other)? || ring_within(other, hole)?) {
                    bail!(BadValue, "Polygon interior must not be in a hole: holes overlap");
                }
            }
        }
        Ok(Self::of(shell, holes))
    }

    /// The area on the left of a ring, however large.
    ///
    /// # Errors
    /// As [`Polygon::new`].
    pub fn to_the_left(ring: Vec<Point>) -> Result<Self> {
        let ring = checked_ring(ring)?;
        let edges: Vec<_> = ring_edges(&ring).map(|(a, b)| (0, a, b)).collect();
        no_crossings(&edges)?;
        Ok(Self::of(Loop::new(ring), Vec::new()))
    }

    fn of(shell: Loop, holes: Vec<Loop>) -> Self {
        let bounds = Bounds::of_edges(ring_edges(shell.vertices()));
        let sides = match holes.is_empty() {
            true => sides_of(&shell),
            false => None,
        };
        Self {
            shell,
            holes,
            bounds,
            sides,
        }
    }

    /// The edges with the area on their left.
    fn edges(&self) -> impl Iterator<Item = (Point, Point)> + '_ {
        let holes = self.holes.iter().flat_map(|hole| ring_edges(hole.vertices()));
        ring_edges(self.shell.vertices()).chain(holes.map(|(a, b)| (b, a)))
    }

    /// Whether `p` is inside or on the boundary.
    pub fn contains(&self, p: Point) -> Result<bool> {
        Ok(!self.is_behind_a_side(p, 0.0) && (self.surrounds(p) || self.has_on_boundary(p)?))
    }

    /// The least sine of the angle between `p` and a side, negative for sides that it is behind; `None` where nothing follows from it.
    fn least_height(&self, p: Point) -> Option<f64> {
        let heights = self.sides.as_ref()?.iter().map(|side| p.vector().dot(*side));
        heights.reduce(f64::min)
    }

    /// Whether `p` is surely farther than so many radians from the area; `false` promises nothing.
    fn is_behind_a_side(&self, p: Point, radians: f64) -> bool {
        self.least_height(p)
            .is_some_and(|height| height < -radians - SIDES_ERROR)
    }

    /// Whether `p` is inside; on the boundary it may be either.
    pub(super) fn surrounds(&self, p: Point) -> bool {
        match self.least_height(p) {
            Some(height) if height > SIDES_ERROR => return true,
            Some(height) if height < -SIDES_ERROR => return false,
            _ => {}
        }
        self.shell.contains_point(&p) && !self.holes.iter().any(|hole| hole.contains_point(&p))
    }

    fn has_on_boundary(&self, p: Point) -> Result<bool> {
        let holes = self.holes.iter();
        for ring in std::iter::once(&self.shell).chain(holes) {
            work(1 + ring.num_vertices() / 16)?;
            if ring_edges(ring.vertices()).any(|(a, b)| is_on(p, a, b)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether no part of the edges is outside. `directed` edges have an area on their left, which must not lie outside
    /// either.
    fn contains_edges(&self, edges: impl Iterator<Item = (Point, Point)>, directed: bool) -> Result<bool> {
        for (a, b) in edges {
            let bounds = Bounds::of_edge(a, b);
            let mut shared = None;
            for (c, d) in self.edges() {
                work(1)?;
                if (a, b) == (c, d) || (a, b) == (d, c) {
                    shared = Some((a, b) == (c, d));
                } else if bounds.meets(&Bounds::of_edge(c, d)) && properly_cross(a, b, c, d) {
                    return Ok(false);
                }
            }
            match shared {
                Some(same_direction) if same_direction || !directed => {}
                Some(_) => return Ok(false),
                // Nothing crosses the edge, so one point between its ends speaks for all.
                None if self.contains(a)? && self.contains(b)? && self.contains(middle(a, b))? => {}
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    fn contains_polygon(&self, other: &Self) -> Result<bool> {
        if !self.contains_edges(other.edges(), true)? {
            return Ok(false);
        }
        // Neither a hole nor what is outside of this polygon may lie inside of the other.
        for (a, b) in self.edges() {
            for p in [a, middle(a, b)] {
                if other.surrounds(p) && !other.has_on_boundary(p)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn meets_edges(&self, bounds: &Bounds, edges: impl Iterator<Item = (Point, Point)>) -> Result<bool> {
        if !self.bounds.meets(bounds) {
            return Ok(false);
        }
        for (a, b) in edges {
            if !self.bounds.meets(&Bounds::of_edge(a, b)) {
                work(1)?;
                continue;
            }
            for (c, d) in self.edges() {
                work(1)?;
                if touch(a, b, c, d) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// One piece of a geometry.
#[derive(Debug)]
pub enum Part {
    Point(Point),
    Line(Line),
    Polygon(Box<Polygon>),
}

impl Part {
    /// Its edges; a point is one that ends where it starts.
    pub(super) fn edges(&self) -> Box<dyn Iterator<Item = (Point, Point)> + '_> {
        match self {
            Self::Point(p) => Box::new(std::iter::once((*p, *p))),
            Self::Line(line) => Box::new(line.edges()),
            Self::Polygon(area) => Box::new(area.edges()),
        }
    }

    /// The vertex at which no edge starts.
    pub(super) fn last(&self) -> Option<Point> {
        match self {
            Self::Line(line) => line.vertices.last().copied(),
            Self::Point(_) | Self::Polygon(_) => None,
        }
    }

    /// How many edges it has.
    pub(super) fn edge_count(&self) -> usize {
        match self {
            Self::Point(_) => 1,
            Self::Line(line) => line.vertices.len() - 1,
            Self::Polygon(area) => {
                let holes: usize = area.holes.iter().map(Loop::num_vertices).sum();
                area.shell.num_vertices() + holes
            }
        }
    }

    /// Whether a point of this is no farther from `p` than so many radians, which are few.
    pub(super) fn is_nearer(&self, p: Point, radians: f64) -> bool {
        match self {
            Self::Point(at) => are_within(p, *at, radians),
            Self::Polygon(area) if area.is_behind_a_side(p, radians) => false,
            Self::Polygon(area) if area.surrounds(p) => true,
            _ => self.edges().any(|(a, b)| {
                !is_off_circle(p, (a, b), radians) && distance_from_segment(p, a, b).radians() <= radians
            }),
        }
    }

    /// The smallest angle between `p` and a point of this, in radians.
    pub fn distance(&self, p: Point) -> Result<f64> {
        Ok(match self {
            Self::Point(at) => p.distance(*at).radians(),
            Self::Polygon(area) if area.contains(p)? => 0.0,
            _ => {
                let mut nearest = f64::INFINITY;
                for (a, b) in self.edges() {
                    work(1)?;
                    nearest = nearest.min(distance_from_segment(p, a, b).radians());
                }
                nearest
            }
        })
    }

    /// Whether nothing of this lies outside of `area`.
    pub fn is_within(&self, area: &Polygon) -> Result<bool> {
        match self {
            Self::Point(p) => area.contains(*p),
            Self::Line(line) => area.contains_edges(line.edges(), false),
            Self::Polygon(polygon) => area.contains_polygon(polygon),
        }
    }

    /// Whether this and `other` have a point in common.
    pub fn intersects(&self, other: &Self) -> Result<bool> {
        match (self, other) {
            (Self::Point(a), Self::Point(b)) => Ok(a.distance(*b).radians() <= TOUCH),
            (Self::Point(p), Self::Line(line)) | (Self::Line(line), Self::Point(p)) => {
                work(1 + line.vertices.len() / 16)?;
                Ok(line.edges().any(|(a, b)| is_on(*p, a, b)))
            }
            (Self::Point(p), Self::Polygon(area)) | (Self::Polygon(area), Self::Point(p)) => area.contains(*p),
            (Self::Line(line), Self::Line(other)) => {
                if !line.bounds.meets(&other.bounds) {
                    return Ok(false);
                }
                for (a, b) in line.edges() {
                    for (c, d) in other.edges() {
                        work(1)?;
                        if touch(a, b, c, d) {
                            return Ok(true);
                        }
                    }
                }
                Ok(false)
            }
            (Self::Line(line), Self::Polygon(area)) | (Self::Polygon(area), Self::Line(line)) => {
                // Without a common point of boundaries, all of the line is inside or all of it is outside.
                Ok(area.contains(line.vertices[0])? || area.meets_edges(&line.bounds, line.edges())?)
            }
            (Self::Polygon(area), Self::Polygon(other)) => Ok(area.contains(other.shell.vertex(0))?
                || other.contains(area.shell.vertex(0))?
                || area.meets_edges(&other.bounds, other.edges())?),
        }
    }

    /// Whether nothing of this is farther from `center` than `radius` radians.
    pub fn is_within_cap(&self, center: Point, radius: f64) -> Result<bool> {
        if radius >= std::f64::consts::PI {
            return Ok(true);
        }
        let near = |p: Point| are_within(p, center, radius + TOUCH);
        // All of an arc is as near as its ends if the cap is no more than a hemisphere; the complement of a larger one is,
        // and the arc must stay out of it.
        let opposite = -center;
        let large = radius > std::f64::consts::FRAC_PI_2;
        let clear =
            |(a, b)| !large || distance_from_segment(opposite, a, b).radians() >= std::f64::consts::PI - radius - TOUCH;
        Ok(match self {
            Self::Point(p) => near(*p),
            Self::Line(line) => {
                work(1 + line.vertices.len() / 16)?;
                line.vertices.iter().all(|v| near(*v)) && line.edges().all(clear)
            }
            Self::Polygon(area) => {
                work(1 + area.shell.num_vertices() / 16)?;
                area.edges().all(|(a, b)| near(a) && clear((a, b))) && !area.contains(opposite)?
            }
        })
    }
}

/// Whether the angle between two points is at most so many radians; it is only computed where it is close to them.
pub(super) fn are_within(p: Point, q: Point, radians: f64) -> bool {
    let (chord, arc) = ((p.vector() - q.vector()).norm2(), radians * radians);
    let margin = arc * 1e-9 + 1e-18;
    // A chord is shorter than its arc, and by no more than this where the arc is short.
    if chord > arc + margin {
        return false;
    }
    if radians < 1.0 && chord < arc - arc * arc / 12.0 - margin {
        return true;
    }
    p.distance(q).radians() <= radians
}

/// Whether a point is farther than so many radians from the great circle of an edge, and so from the edge; `false` promises nothing.
pub(super) fn is_off_circle(p: Point, (a, b): (Point, Point), radians: f64) -> bool {
    let normal = a.vector().cross(b.vector());
    let (height, length) = (p.vector().dot(normal), normal.norm2());
    // Of edges of more than a few metres the direction of the circle is exact to a tenth of this.
    let least = radians + radians * 1e-9 + 1e-9;
    length > 1e-12 && height * height > least * least * length
}

fn ring_edges(ring: &[Point]) -> impl Iterator<Item = (Point, Point)> + '_ {
    ring.iter().copied().zip(ring.iter().copied().cycle().skip(1))
}

fn middle(a: Point, b: Point) -> Point {
    (a + b).normalize()
}

fn is_on(p: Point, a: Point, b: Point) -> bool {
    let bounds = Bounds::of_edge(a, b);
    let at = coordinates(p);
    (0..3).all(|i| bounds.low[i] <= at[i] && at[i] <= bounds.high[i])
        && distance_from_segment(p, a, b).radians() <= TOUCH
}

/// Whether inner points of both edges meet, and neither merely ends at the other.
fn properly_cross(a: Point, b: Point, c: Point, d: Point) -> bool {
    crossing_sign(a, b, c, d) == Crossing::Cross
        && !(is_on(a, c, d) || is_on(b, c, d) || is_on(c, a, b) || is_on(d, a, b))
}

/// Whether the edges have a point in common.
fn touch(a: Point, b: Point, c: Point, d: Point) -> bool {
    Bounds::of_edge(a, b).meets(&Bounds::of_edge(c, d))
        && (crossing_sign(a, b, c, d) != Crossing::DoNotCross
            || is_on(a, c, d)
            || is_on(b, c, d)
            || is_on(c, a, b)
            || is_on(d, a, b))
}

/// Whether all of `ring` lies in the closed area of `outer`; the rings do not cross and have no edge in common.
fn ring_within(ring: &Loop, outer: &Loop) -> Result<bool> {
    let corners: HashSet<[u64; 3]> = outer.vertices().iter().map(|v| bits(*v)).collect();
    for (a, b) in ring_edges(ring.vertices()) {
        work(1 + outer.num_vertices() / 64)?;
        let inside = |p: Point| outer.contains_point(&p);
        if !(corners.contains(&bits(a)) || inside(a)) || !inside(middle(a, b)) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn bits(p: Point) -> [u64; 3] {
    // Adding zero makes one zero of both.
    coordinates(p).map(|v| (v + 0.0).to_bits())
}

/// A ring's different vertices, the last one not repeating the first.
fn checked_ring(mut ring: Vec<Point>) -> Result<Vec<Point>> {
    if ring.first() != ring.last() {
        bail!(BadValue, "Loop is not closed, first vertex does not equal last vertex");
    }
    ring.dedup();
    if ring.len() > 1 {
        ring.pop();
    }
    if ring.len() < 3 {
        bail!(
            BadValue,
            "Loop must have at least 3 different vertices, {} unique vertices were provided",
            ring.len()
        );
    }
    let mut seen = HashSet::with_capacity(ring.len());
    if let Some(at) = ring.iter().position(|v| !seen.insert(bits(*v))) {
        let first = ring.iter().position(|v| *v == ring[at]).unwrap_or_default();
        bail!(BadValue, "Duplicate vertices: {first} and {at}");
    }
    no_antipodes(ring_edges(&ring))?;
    Ok(ring)
}

/// Refuses edges that cross: a sweep along one axis, comparing edges whose boxes meet.
fn no_crossings(edges: &[(usize, Point, Point)]) -> Result<()> {
    let mut boxes: Vec<(Bounds, usize)> = (edges.iter().enumerate())
        .map(|(at, (_, a, b))| (Bounds::of_edge(*a, *b), at))
        .collect();
    let extent = |axis: usize| {
        let low = boxes.iter().map(|(b, _)| b.low[axis]).fold(f64::INFINITY, f64::min);
        let high = boxes.iter().map(|(b, _)| b.low[axis]).fold(f64::NEG_INFINITY, f64::max);
        high - low
    };
    let axis = (0..3)
        .max_by(|a, b| extent(*a).total_cmp(&extent(*b)))
        .unwrap_or_default();
    boxes.sort_by(|(a, _), (b, _)| a.low[axis].total_cmp(&b.low[axis]));
    for (at, (bounds, first)) in boxes.iter().enumerate() {
        for (other, second) in &boxes[at + 1..] {
            work(1)?;
            if other.low[axis] > bounds.high[axis] {
                break;
            }
            let ((_, a, b), (_, c, d)) = (&edges[*first], &edges[*second]);
            if bounds.meets(other) && crossing_sign(*a, *b, *c, *d) == Crossing::Cross {
                let (low, high) = (first.min(second), first.max(second));
                bail!(BadValue, "Edges {low} and {high} cross");
            }
        }
    }
    Ok(())
}

fn no_shared_edges(edges: &[(usize, Point, Point)]) -> Result<()> {
    let mut seen = HashSet::with_capacity(edges.len());
    for (number, a, b) in edges {
        let (a, b) = (bits(*a), bits(*b));
        if !seen.insert((a.min(b), a.max(b))) {
            bail!(BadValue, "Loop {number} has an edge of another loop");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Areas with equal sides, of all sizes, and points in them, on their edges and around them.
    #[test]
    fn sides_say_what_rings_say() {
        let mut told = 0;
        for corners in 3..20_usize {
            for (place, size) in (0..).zip([1e-9, 1e-6, 1e-4, 0.01, 0.3, 1.2]) {
                let middle = point(f64::from(place) * 60.0 - 170.0, f64::from(place) * 25.0 - 60.0).expect("in range");
                let across = middle.vector().ortho();
                let along = middle.vector().cross(across);
                let at = |angle: f64, radius: f64| {
                    let to =
                        middle.vector() * radius.cos() + (across * angle.cos() + along * angle.sin()) * radius.sin();
                    Point::from_coords(to.x, to.y, to.z)
                };
                let angle = |i: f64| i / corners as f64 * std::f64::consts::TAU;
                let ring: Vec<Point> = (0..=corners).map(|i| at(angle((i % corners) as f64), size)).collect();
                let Ok(area) = Polygon::new(vec![ring]) else { continue };
                told += usize::from(area.sides.is_some());
                let plain = Box::new(Polygon {
                    shell: area.shell.clone(),
                    holes: Vec::new(),
                    bounds: Bounds::of_edges(area.edges()),
                    sides: None,
                });
                let (area, plain) = (Part::Polygon(Box::new(area)), Part::Polygon(plain));
                let (Part::Polygon(one), Part::Polygon(other)) = (&area, &plain) else {
                    panic!("they are polygons");
                };
                for i in 0..400 {
                    let radius = size * [0.0, 0.3, 0.9, 0.999_999, 1.0, 1.000_001, 1.1, 2.0][i % 8];
                    let p = at(angle(i as f64 * 0.37), radius);
                    let contains = |area: &Polygon| area.contains(p).expect("no interrupt");
                    assert_eq!(contains(one), contains(other), "{corners} {size} {i}");
                    assert_eq!(one.surrounds(p), other.surrounds(p), "{corners} {size} {i}");
                    for radians in [1e-9, size / 10.0, size] {
                        let near = |part: &Part| part.is_nearer(p, radians);
                        assert_eq!(near(&area), near(&plain), "{corners} {size} {i}");
                    }
                }
            }
        }
        assert!(told > 30, "{told}");
    }
}
