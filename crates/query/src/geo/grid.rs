//! Grids on the plane: how a coordinate pair becomes a key of a `2d` index, and a shape becomes ranges of keys.
//!
//! Each side of a square is divided into `2^bits` steps; the bits of a pair's two steps take turns in its key, so that all
//! pairs within a quarter of the square, or a quarter of that, lie together.

use super::parse;
use super::planar::{Placed, Shape};
use nestor_model::statement::work;
use nestor_model::{Error, Result, ValueRef};
use std::collections::VecDeque;

/// Most squares for a shape that is looked for.
const SQUARES_MAX: usize = 16;

/// The subtype of the binary values that keys are.
pub const KEY_SUBTYPE: u8 = 128;

/// Ranges of keys, both ends included, ascending and apart.
pub type GridRanges = Vec<([u8; 8], [u8; 8])>;

/// A square of the plane, and how finely it is divided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    /// 1 to 32.
    pub bits: u32,
    /// The least coordinate, of both axes.
    pub min: f64,
    /// The greatest one.
    pub max: f64,
}

impl Grid {
    /// The key of a pair.
    ///
    /// # Errors
    /// 13027 outside of the square.
    pub fn key(&self, (x, y): (f64, f64)) -> Result<[u8; 8]> {
        let inside = |v: f64| self.min <= v && v <= self.max;
        if !(inside(x) && inside(y)) {
            return Err(Error::location(
                13027,
                format!(
                    "point not in interval of [ {}, {} ] :: caused by :: {{ 0: {x:?}, 1: {y:?} }}",
                    self.min, self.max
                ),
            ));
        }
        Ok(interleaved(self.step(x), self.step(y), self.bits).to_be_bytes())
    }

    /// Whether a pair lies in the square.
    pub fn contains(&self, (x, y): (f64, f64)) -> bool {
        let inside = |v: f64| self.min <= v && v <= self.max;
        inside(x) && inside(y)
    }

    /// The pairs that a stored value is: itself, or its elements. What is neither an array nor a document has none.
    ///
    /// # Errors
    /// 13026 for a value that is no pair, 13068 for one with a single coordinate.
    pub fn pairs(value: ValueRef<'_>) -> Result<Vec<(f64, f64)>> {
        let nothing = |value: ValueRef<'_>| {
            Error::location(
                13026,
                format!("geo values must be 'legacy coordinate pairs' for 2d indexes :: caused by :: {value:?}"),
            )
        };
        let single = |value: ValueRef<'_>| match value {
            ValueRef::Array(items) => items.iter().count() == 1,
            ValueRef::Document(doc) => doc.iter().count() == 1,
            _ => false,
        };
        let pair = |value: ValueRef<'_>| match parse::stored_planar(value) {
            Some(pair) => Ok(pair),
            None if single(value) => Err(Error::location(
                13068,
                format!("geo field only has 1 element :: caused by :: {value:?}"),
            )),
            None => Err(nothing(value)),
        };
        match value {
            ValueRef::Array(items) => match items.get(0) {
                None => Ok(Vec::new()),
                Some(first) if first.is_number() => pair(value).map(|pair| vec![pair]),
                Some(_) => items.iter().map(pair).collect(),
            },
            ValueRef::Document(doc) if doc.is_empty() => Ok(Vec::new()),
            ValueRef::Document(_) => pair(value).map(|pair| vec![pair]),
            _ => Ok(Vec::new()),
        }
    }

    fn steps(&self) -> f64 {
        (1_u64 << self.bits) as f64
    }

    fn step(&self, v: f64) -> u64 {
        let step = ((v - self.min) / (self.max - self.min) * self.steps()) as u64;
        step.min((1 << self.bits) - 1)
    }

    /// The pair in the middle of the square that a key stands for, and half of that square's side.
    pub fn middle(&self, key: [u8; 8]) -> ((f64, f64), f64) {
        let (x, y) = apart(u64::from_be_bytes(key), self.bits);
        let side = (self.max - self.min) / self.steps();
        let at = |step: u64| self.min + (step as f64 + 0.5) * side;
        ((at(x), at(y)), side / 2.0)
    }

    /// The ranges in which the keys lie of what is in a shape.
    ///
    /// # Errors
    /// Errors of the statement's interrupt.
    pub fn ranges(&self, shape: &Shape) -> Result<GridRanges> {
        // Rounding when coordinates became steps.
        let pad = (self.max - self.min) * 1e-12;
        let side = |level: u32| (self.max - self.min) / (1_u64 << level) as f64;
        let mut squares: Vec<(u64, u64, u32)> = Vec::new();
        let mut queue = VecDeque::from([(0_u64, 0_u64, 0_u32)]);
        let edges = shape.edges();
        while squares.len() + queue.len() + 3 <= SQUARES_MAX {
            let Some((x, y, level)) = queue.pop_front() else {
                break;
            };
            for (x, y) in [
                (2 * x, 2 * y),
                (2 * x, 2 * y + 1),
                (2 * x + 1, 2 * y),
                (2 * x + 1, 2 * y + 1),
            ] {
                work(1 + edges / 16)?;
                let side = side(level + 1);
                let low = (self.min + x as f64 * side - pad, self.min + y as f64 * side - pad);
                let high = (low.0 + side + 2.0 * pad, low.1 + side + 2.0 * pad);
                match shape.place(low, high) {
                    Placed::Outside => {}
                    Placed::Inside => squares.push((x, y, level + 1)),
                    Placed::Partly if level + 1 == self.bits => squares.push((x, y, level + 1)),
                    Placed::Partly => queue.push_back((x, y, level + 1)),
                }
            }
        }
        squares.extend(queue);
        let mut ranges: Vec<(u64, u64)> = (squares.iter())
            .map(|(x, y, level)| {
                let rest = 64 - 2 * level;
                let low = interleaved(*x, *y, *level);
                (low, if rest == 64 { u64::MAX } else { low | ((1 << rest) - 1) })
            })
            .collect();
        ranges.sort_unstable();
        let mut out: Vec<(u64, u64)> = Vec::with_capacity(ranges.len());
        for (low, high) in ranges {
            match out.last_mut() {
                Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
                _ => out.push((low, high)),
            }
        }
        Ok(out
            .into_iter()
            .map(|(low, high)| (low.to_be_bytes(), high.to_be_bytes()))
            .collect())
    }
}

/// The low `bits` of both numbers in turns, at the top of 64 bits.
fn interleaved(x: u64, y: u64, bits: u32) -> u64 {
    if bits == 0 {
        return 0;
    }
    (spread(x) << 1 | spread(y)) << (64 - 2 * bits)
}

fn apart(key: u64, bits: u32) -> (u64, u64) {
    let key = key >> (64 - 2 * bits);
    (gathered(key >> 1), gathered(key))
}

/// A zero behind each of the low 32 bits.
fn spread(v: u64) -> u64 {
    let mut v = v & 0xFFFF_FFFF;
    for (shift, mask) in [
        (16, 0x0000_FFFF_0000_FFFF),
        (8, 0x00FF_00FF_00FF_00FF),
        (4, 0x0F0F_0F0F_0F0F_0F0F),
        (2, 0x3333_3333_3333_3333),
        (1, 0x5555_5555_5555_5555),
    ] {
        v = (v | v << shift) & mask;
    }
    v
}

/// Every second bit.
fn gathered(v: u64) -> u64 {
    let mut v = v & 0x5555_5555_5555_5555;
    for (shift, mask) in [
        (1, 0x3333_3333_3333_3333),
        (2, 0x0F0F_0F0F_0F0F_0F0F),
        (4, 0x00FF_00FF_00FF_00FF),
        (8, 0x0000_FFFF_0000_FFFF),
        (16, 0x0000_0000_FFFF_FFFF_u64),
    ] {
        v = (v | v >> shift) & mask;
    }
    v
}
