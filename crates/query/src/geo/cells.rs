//! Cells of the sphere: how a geometry becomes keys of an index, and an area becomes ranges of them.
//!
//! S2 divides the sphere into cells by levels, 0 (a sixth of it) to 30 (a square centimetre). The number of a cell lies in the
//! middle of the numbers of all cells that it contains, so that an area is some ranges of numbers. A key of an index is a cell
//! that its geometry lies in: of a point the cell of level 30, of anything else some cells of even levels up to [`FINEST_KEY`].
//! The keys of what meets an area are those within its cells, and the cells of even levels around these.

use super::parse::Geometry;
use super::sphere::{Bounds, Part, TOUCH};
use nestor_model::Result;
use nestor_model::statement::work;
use s2rst::s1::Angle;
use s2rst::s2::{Cap, Cell, CellId, CellVertex, Face, Level, Point};
use std::collections::VecDeque;

/// Most cells for the keys of one geometry.
const KEYS_MAX: usize = 20;

/// Most cells for an area that is looked for: those of a circle are then two thirds larger than it. Fewer cells take less time to
/// find, and more documents that are not in the area have to be read.
pub const AREA_CELLS_MAX: usize = 32;

/// The level of the smallest cells that are keys of anything but points: half a metre.
const FINEST_KEY: u8 = 24;

/// Ranges of keys, both ends included, ascending and apart. Numbers of cells are signed in keys.
pub type KeyRanges = Vec<(i64, i64)>;

/// The relation of a cell to an area.
enum Judged<S> {
    Outside,
    Inside,
    /// Perhaps some of it lies inside; what of the area matters for cells in it.
    Partly(S),
}

/// Cells that cover an area: those of `roots`, divided until there are `limit` of them or they are of the `finest` level.
fn cover<S>(
    roots: Vec<CellId>,
    whole: S,
    limit: usize,
    finest: u8,
    mut judge: impl FnMut(CellId, &S) -> Result<Judged<S>>,
) -> Result<Vec<CellId>> {
    let mut out = Vec::new();
    let mut queue: VecDeque<(CellId, S)> = VecDeque::new();
    let mut place =
        |cell: CellId, within: &S, queue: &mut VecDeque<(CellId, S)>, out: &mut Vec<CellId>| -> Result<()> {
            match judge(cell, within)? {
                Judged::Outside => {}
                Judged::Inside => out.push(cell),
                Judged::Partly(_) if cell.level().as_u8() >= finest => out.push(cell),
                Judged::Partly(rest) => queue.push_back((cell, rest)),
            }
            Ok(())
        };
    for root in roots {
        place(root, &whole, &mut queue, &mut out)?;
    }
    // The coarsest cells are first in the queue.
    while out.len() + queue.len() + 3 <= limit {
        let Some((cell, within)) = queue.pop_front() else {
            break;
        };
        for child in cell.children() {
            place(child, &within, &mut queue, &mut out)?;
        }
    }
    out.extend(queue.into_iter().map(|(cell, _)| cell));
    Ok(out)
}

impl Geometry {
    /// The cells that are the geometry's keys, ascending.
    ///
    /// # Errors
    /// Errors of the statement's interrupt.
    pub fn keys(&self) -> Result<Vec<i64>> {
        if let [Part::Point(p)] = self.parts.as_slice() {
            return Ok(vec![key_of(CellId::from_point(p))]);
        }
        let cells = self.cells(KEYS_MAX, FINEST_KEY)?;
        let mut keys: Vec<CellId> = (cells.into_iter())
            .map(|cell| cell.parent_at_level(Level::new(cell.level().as_u8() & !1)))
            .collect();
        keys.sort_unstable();
        // If one cell lies within another, the outer one is enough.
        let outer: Vec<CellId> = (keys.iter())
            .filter(|cell| !keys.iter().any(|other| *other != **cell && other.contains(**cell)))
            .copied()
            .collect();
        let mut keys: Vec<i64> = outer.into_iter().map(key_of).collect();
        keys.sort_unstable();
        keys.dedup();
        Ok(keys)
    }

    /// The ranges in which the keys of all geometries lie that this one meets.
    ///
    /// # Errors
    /// Errors of the statement's interrupt.
    pub fn ranges(&self) -> Result<KeyRanges> {
        Ok(ranges_of(&self.cells(AREA_CELLS_MAX, Level::MAX.as_u8())?))
    }

    fn cells(&self, limit: usize, finest: u8) -> Result<Vec<CellId>> {
        let mut boxes = Vec::new();
        for part in &self.parts {
            for (a, b) in part.edges() {
                if boxes.len() % 64 == 0 {
                    work(8)?;
                }
                boxes.push(Bounds::of_edge(a, b));
            }
        }
        let contains = |p: Point| -> bool {
            let mut areas = self.parts.iter().filter_map(|part| match part {
                Part::Polygon(area) => Some(area),
                _ => None,
            });
            areas.any(|area| area.surrounds(p))
        };
        let roots = match self.bounding_cap() {
            Some(cap) => cap.cell_union_bound(),
            None => faces(),
        };
        let all: Vec<u32> = (0..boxes.len() as u32).collect();
        cover(roots, all, limit, finest, |cell, edges| {
            work(4 + edges.len() / 32)?;
            let cell = Cell::from_cell_id(cell);
            let bounds = Bounds::of_cell(cell);
            let near: Vec<u32> = (edges.iter().copied())
                .filter(|edge| boxes[*edge as usize].meets(&bounds))
                .collect();
            // No edge runs through it: one point speaks for all of them.
            Ok(match near.is_empty() {
                false => Judged::Partly(near),
                true if contains(cell.center()) => Judged::Inside,
                true => Judged::Outside,
            })
        })
    }

    /// A cap around all of it, if that is smaller than a hemisphere and no area lies outside of its own ring's cap.
    fn bounding_cap(&self) -> Option<Cap> {
        if self.strict_winding {
            return None;
        }
        let vertices = || {
            self.parts
                .iter()
                .flat_map(|part| part.edges().map(|(a, _)| a).chain(part.last()))
        };
        let sum = vertices().map(|p| p.vector()).reduce(|a, b| a + b)?;
        if sum.norm2() < 1e-12 {
            return None;
        }
        let center = Point::from_coords(sum.x, sum.y, sum.z);
        let farthest = vertices().map(|p| center.chord_angle(p).length2()).fold(0.0, f64::max);
        // The chord of 80 degrees: what is nearer has its arcs within the cap too.
        (farthest < 1.65).then(|| {
            let radius = 2.0 * (farthest.sqrt() / 2.0).asin();
            Cap::from_center_angle(center, Angle::from_radians(radius + 1e-9))
        })
    }
}

impl Bounds {
    /// A box around a cell: the surface bulges by less than a quarter of the square of the diagonal.
    fn of_cell(cell: Cell) -> Self {
        let corners = CellVertex::ALL.map(|corner| cell.vertex(corner));
        let diagonal = (corners[0].chord_angle(corners[2]).length2()).max(corners[1].chord_angle(corners[3]).length2());
        let margin = diagonal / 4.0 + 4.0 * TOUCH;
        let mut out = Self::of_edges(corners.iter().map(|p| (*p, *p)));
        for axis in 0..3 {
            out.low[axis] -= margin;
            out.high[axis] += margin;
        }
        out
    }
}

/// The ranges in which keys of geometries lie that are no farther from `center` than `radius` radians, made of about `limit`
/// cells.
pub fn ranges_around(center: Point, radius: f64, limit: usize) -> Result<KeyRanges> {
    if radius >= std::f64::consts::PI {
        return Ok(ranges_of(&faces()));
    }
    // Rounding of degrees and of squares of chords.
    let cap = Cap::from_center_angle(center, Angle::from_radians(radius + radius * 1e-9 + 1e-14));
    let farthest = cap.chord_radius();
    let cells = cover(cap.cell_union_bound(), (), limit, Level::MAX.as_u8(), |cell, ()| {
        work(1)?;
        let cell = Cell::from_cell_id(cell);
        Ok(
            if cell.distance_to_point(center).length2() > farthest.length2() + 1e-15 {
                Judged::Outside
            } else if cell.max_distance_to_point(center) <= farthest {
                Judged::Inside
            } else {
                Judged::Partly(())
            },
        )
    })?;
    Ok(ranges_of(&cells))
}

fn faces() -> Vec<CellId> {
    Face::ALL.into_iter().map(CellId::from_face).collect()
}

/// The key of the smallest cell that a point is in.
pub fn key_of_point(p: Point) -> i64 {
    key_of(CellId::from_point(&p))
}

/// Radians between a point and [`point_of_key`]: more than from the middle of a cell of level 30 to its corners.
pub const POINT_ERROR: f64 = 2e-9;

/// Where a point is that has this key; `None` for keys of anything else.
pub fn point_of_key(key: i64) -> Option<Point> {
    let cell = CellId(key as u64);
    cell.is_leaf().then(|| cell.to_point())
}

/// No geometry in the cell with this key is nearer to `p`; radians.
pub fn distance_to_key(p: Point, key: i64) -> f64 {
    if let Some(at) = point_of_key(key) {
        return (p.stable_angle(at).radians() - POINT_ERROR).max(0.0);
    }
    let cell = CellId(key as u64);
    (Cell::from_cell_id(cell).distance_to_point(p).radians() - 1e-12).max(0.0)
}

fn key_of(cell: CellId) -> i64 {
    cell.id() as i64
}

fn ranges_of(cells: &[CellId]) -> KeyRanges {
    let mut ranges: KeyRanges = Vec::with_capacity(cells.len() * 4);
    for cell in cells {
        ranges.push((key_of(cell.range_min()), key_of(cell.range_max())));
        let level = cell.level().as_u8();
        // Only geometries other than points have keys of these cells.
        let around = (0..=FINEST_KEY).step_by(2).take_while(|outer| *outer < level);
        ranges.extend(around.map(|outer| {
            let key = key_of(cell.parent_at_level(Level::new(outer)));
            (key, key)
        }));
    }
    ranges.sort_unstable();
    let mut out: KeyRanges = Vec::with_capacity(ranges.len());
    for (low, high) in ranges {
        match out.last_mut() {
            // Numbers of cells of level 30 are odd: between neighbours lies no point.
            Some(last) if low <= last.1.saturating_add(2) => last.1 = last.1.max(high),
            _ => out.push((low, high)),
        }
    }
    out
}
