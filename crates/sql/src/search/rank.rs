//! How well a vector has what a query looks for.
//!
//! `ts_rank` counts lexemes by their weights, and for `&` and `<->` how near to each other they are; `ts_rank_cd` counts the shortest parts of
//! the text that match, and what stands within them.
//!
//! Source: manual, chapter 12.3.3; figures as PostgreSQL 15 has them, to the last bit of a `real`.

use super::matching::{Found, Text, holds};
use crate::error::fail;
use crate::types::tsquery::{Node, Operand, TsQuery};
use crate::types::tsvector::{PLACE_MAX, Place, TsVector};
use nestor_model::statement::{charge, work};
use nestor_model::{Result, Value};
use std::collections::{HashMap, HashSet};

/// What the weights from `D` to `A` count if nothing else is said.
const WEIGHTS: [f32; 4] = [0.1, 0.2, 0.4, 1.0];
/// What sums of squares of inverse numbers come to.
const SUM_OF_SQUARES: f64 = 1.644_934_066_85;

/// How ranks are divided by what texts have.
#[derive(Clone, Copy)]
pub struct Norm(pub i64);

impl Norm {
    const LOG_OF_LENGTH: i64 = 1;
    const LENGTH: i64 = 2;
    const DISTANCE: i64 = 4;
    const LEXEMES: i64 = 8;
    const LOG_OF_LEXEMES: i64 = 16;
    const ITSELF: i64 = 32;

    fn has(self, bit: i64) -> bool {
        self.0 & bit != 0
    }
}

/// The weights that an array says, whose negative numbers stand for those that are anyway.
///
/// Errors: 2202E, 22004, 22023.
pub fn weights(value: Option<&Value>) -> Result<[f32; 4]> {
    let mut out = WEIGHTS;
    let Some(Value::Array(items)) = value else {
        return Ok(out);
    };
    let items: Vec<Value> = items.iter().map(|item| item.to_value()).collect();
    if items.iter().any(|item| matches!(item, Value::Array(_))) || items.is_empty() {
        return fail("2202E", "array of weight must be one-dimensional");
    }
    if items.len() < out.len() {
        return fail("2202E", "array of weight is too short");
    }
    if items.iter().any(|item| matches!(item, Value::Null)) {
        return fail("22004", "array of weight must not contain nulls");
    }
    for (own, item) in out.iter_mut().zip(&items) {
        if let Value::Double(said) = item {
            *own = if *said >= 0.0 { *said as f32 } else { *own };
        }
        if *own > 1.0 {
            return fail("22023", "weight out of range");
        }
    }
    Ok(out)
}

/// How much nearness counts.
fn of_distance(distance: i32) -> f32 {
    match distance > 100 {
        true => 1e-30,
        false => (1.0 / (1.005 + 0.05 * (f64::from(distance as f32) / 1.5 - 2.0).exp())) as f32,
    }
}

/// The lexemes of a query, each once.
fn distinct(query: &TsQuery) -> Vec<&Operand> {
    let mut out = query.operands();
    // Of those that are the same the last one counts.
    out.reverse();
    out.sort_by(|a, b| a.lexeme.cmp(&b.lexeme));
    out.dedup_by(|again, first| again.lexeme == first.lexeme);
    out
}

/// `ts_rank`. Errors: those of the statement's limits.
pub fn rank(weights: &[f32; 4], vector: &TsVector, query: &TsQuery, norm: Norm) -> Result<f64> {
    let Some(root) = &query.root else { return Ok(0.0) };
    if vector.entries.is_empty() {
        return Ok(0.0);
    }
    let operands = distinct(query);
    let mut out = match root {
        Node::And(_) | Node::Phrase(..) if operands.len() > 1 => together(weights, vector, &operands)?,
        _ => each(weights, vector, &operands)?,
    };
    if out < 0.0 {
        out = 1e-20;
    }
    let (length, lexemes) = (vector.places_counted() as f64, vector.entries.len() as f64);
    let divided = |out: f32, by: f64| (f64::from(out) / by) as f32;
    if norm.has(Norm::LOG_OF_LENGTH) {
        out = divided(out, (length + 1.0).ln() / 2f64.ln());
    }
    if norm.has(Norm::LENGTH) {
        out /= length as f32;
    }
    if norm.has(Norm::LEXEMES) {
        out /= lexemes as f32;
    }
    if norm.has(Norm::LOG_OF_LEXEMES) {
        out = divided(out, (lexemes + 1.0).ln() / 2f64.ln());
    }
    if norm.has(Norm::ITSELF) {
        out /= out + 1.0;
    }
    Ok(f64::from(out))
}

/// What lexemes count each for itself.
fn each(weights: &[f32; 4], vector: &TsVector, operands: &[&Operand]) -> Result<f32> {
    let mut sum: f32 = 0.0;
    for operand in operands {
        for entry in vector.meant(operand) {
            work(1 + entry.places.len() / 8)?;
            let unknown = [Place::new(0, 0)];
            let places = if entry.places.is_empty() {
                &unknown[..]
            } else {
                &entry.places
            };
            let (mut all, mut most, mut most_at): (f32, f32, usize) = (0.0, -1.0, 0);
            for (at, place) in places.iter().enumerate() {
                let weight = weights[usize::from(place.weight())];
                all += weight / ((at + 1) * (at + 1)) as f32;
                if weight > most {
                    (most, most_at) = (weight, at);
                }
            }
            let own = most + all - most / ((most_at + 1) * (most_at + 1)) as f32;
            sum = (f64::from(sum) + f64::from(own) / SUM_OF_SQUARES) as f32;
        }
    }
    Ok(match operands.len() {
        0 => sum,
        count => sum / count as f32,
    })
}

/// What lexemes count by how near to each other they are; negative when no two are there.
fn together(weights: &[f32; 4], vector: &TsVector, operands: &[&Operand]) -> Result<f32> {
    let unknown = [Place::new(usize::from(PLACE_MAX), 0)];
    let mut seen: Vec<Option<(&[Place], bool)>> = vec![None; operands.len()];
    let mut out: f32 = -1.0;
    for (i, operand) in operands.iter().enumerate() {
        for entry in vector.meant(operand) {
            let own = match entry.places.is_empty() {
                true => (&unknown[..], false),
                false => (entry.places.as_slice(), true),
            };
            seen[i] = Some(own);
            for other in seen[..i].iter().flatten() {
                work(1 + own.0.len() * other.0.len() / 16)?;
                for a in own.0 {
                    for b in other.0 {
                        let mut distance = (i32::from(a.at()) - i32::from(b.at())).abs();
                        if distance == 0 && own.1 && other.1 {
                            continue;
                        }
                        if distance == 0 {
                            distance = i32::from(PLACE_MAX) + 1;
                        }
                        let weight = |place: &Place| weights[usize::from(place.weight())];
                        let near = weight(a) * weight(b) * of_distance(distance);
                        let near = f64::from(near).sqrt() as f32;
                        out = match out < 0.0 {
                            true => near,
                            false => (1.0 - (1.0 - f64::from(out)) * (1.0 - f64::from(near))) as f32,
                        };
                    }
                }
            }
        }
    }
    Ok(out)
}

/// A place of a text, and which lexemes of the query are there.
struct Spot {
    place: Place,
    operands: Vec<usize>,
}

/// A part of a text that matches, as places from the first to the last.
struct Cover {
    first: usize,
    last: usize,
}

/// What has been met of a text.
struct Met<'q> {
    numbers: HashMap<&'q Operand, usize>,
    places: Vec<Vec<u16>>,
    exists: Vec<bool>,
    /// Places come from the last one.
    backwards: bool,
}

impl Met<'_> {
    fn clear(&mut self, backwards: bool) {
        self.places.iter_mut().for_each(Vec::clear);
        self.exists.fill(false);
        self.backwards = backwards;
    }

    fn add(&mut self, spot: &Spot) {
        for operand in &spot.operands {
            self.exists[*operand] = true;
            let places = &mut self.places[*operand];
            if places.last() != Some(&spot.place.at()) {
                places.push(spot.place.at());
            }
        }
    }
}

impl Text for Met<'_> {
    fn find(&self, operand: &Operand, wants_places: bool) -> Found {
        let Some(number) = self.numbers.get(operand) else {
            return Found::No;
        };
        match (self.exists[*number], wants_places) {
            (false, _) => Found::No,
            (true, false) => Found::Somewhere,
            (true, true) if self.backwards => Found::At(self.places[*number].iter().rev().copied().collect()),
            (true, true) => Found::At(self.places[*number].clone()),
        }
    }
}

/// The places of a text at which lexemes of a query are.
fn spots(vector: &TsVector, operands: &[&Operand]) -> Result<Vec<Spot>> {
    let mut all: Vec<(Place, &str, usize)> = Vec::new();
    for (number, operand) in operands.iter().enumerate() {
        for entry in vector.meant(operand) {
            work(1 + entry.places.len() / 8)?;
            charge(entry.places.len() * std::mem::size_of::<(Place, &str, usize)>())?;
            let is_meant = |place: &&Place| operand.weights == 0 || operand.weights & (1 << place.weight()) != 0;
            let places = entry.places.iter().filter(is_meant);
            all.extend(places.map(|place| (*place, entry.lexeme.as_str(), number)));
        }
    }
    all.sort_by_key(|(place, entry, number)| (place.at(), place.weight(), *entry, *number));
    let mut out: Vec<(Spot, &str)> = Vec::new();
    for (place, entry, number) in all {
        match out.last_mut() {
            Some((spot, own)) if spot.place.at() == place.at() && *own == entry => spot.operands.push(number),
            _ => {
                let operands = vec![number];
                out.push((Spot { place, operands }, entry));
            }
        }
    }
    Ok(out.into_iter().map(|(spot, _)| spot).collect())
}

/// The next part of a text from a place on that matches, and where the one behind it may begin.
fn cover(root: &Node, spots: &[Spot], met: &mut Met<'_>, from: &mut usize) -> Result<Option<Cover>> {
    while *from < spots.len() {
        met.clear(false);
        let mut last = None;
        for (at, spot) in spots.iter().enumerate().skip(*from) {
            met.add(spot);
            if holds(root, met)? {
                last = Some(at);
                break;
            }
        }
        let Some(last) = last else { return Ok(None) };
        met.clear(true);
        for at in (*from..=last).rev() {
            met.add(&spots[at]);
            if holds(root, met)? {
                *from = at + 1;
                return Ok(Some(Cover { first: at, last }));
            }
        }
        *from += 1;
    }
    Ok(None)
}

/// `ts_rank_cd`. Errors: those of the statement's limits.
pub fn rank_covers(weights: &[f32; 4], vector: &TsVector, query: &TsQuery, norm: Norm) -> Result<f64> {
    let Some(root) = &query.root else { return Ok(0.0) };
    let mut operands = query.operands();
    let mut seen = HashSet::new();
    operands.retain(|operand| seen.insert(*operand));
    let spots = spots(vector, &operands)?;
    if spots.is_empty() {
        return Ok(0.0);
    }
    let inverse = weights.map(|weight| 1.0 / f64::from(weight));
    let mut met = Met {
        numbers: operands
            .iter()
            .enumerate()
            .map(|(number, own)| (*own, number))
            .collect(),
        places: vec![Vec::new(); operands.len()],
        exists: vec![false; operands.len()],
        backwards: false,
    };
    let (mut sum, mut distances, mut covers) = (0.0, 0.0, 0u32);
    let (mut from, mut before) = (0, 0.0);
    while let Some(Cover { first, last }) = cover(root, &spots, &mut met, &mut from)? {
        let within = &spots[first..=last];
        let of_weights: f64 = within
            .iter()
            .map(|spot| inverse[usize::from(spot.place.weight())])
            .sum();
        let count = within.len() as f64;
        let (begin, end) = (spots[first].place.at(), spots[last].place.at());
        let steps = (last - first) as i32;
        let noise = match i32::from(end) - i32::from(begin) - steps {
            noise if noise < 0 => steps / 2,
            noise => noise,
        };
        sum += count / of_weights / f64::from(1 + noise);
        let middle = f64::from(i32::from(begin) + i32::from(end)) / 2.0;
        if covers > 0 && middle > before {
            distances += 1.0 / (middle - before);
        }
        before = middle;
        covers += 1;
    }
    let (length, lexemes) = (vector.places_counted() as f64, vector.entries.len() as f64);
    if norm.has(Norm::LOG_OF_LENGTH) {
        sum /= (length + 1.0).ln();
    }
    if norm.has(Norm::LENGTH) {
        sum /= length;
    }
    if norm.has(Norm::DISTANCE) && covers > 0 && distances > 0.0 {
        sum /= f64::from(covers) / distances;
    }
    if norm.has(Norm::LEXEMES) {
        sum /= lexemes;
    }
    if norm.has(Norm::LOG_OF_LEXEMES) {
        sum /= (lexemes + 1.0).ln() / 2f64.ln();
    }
    if norm.has(Norm::ITSELF) {
        sum /= sum + 1.0;
    }
    Ok(f64::from(sum as f32))
}
