//! Whether a vector has what a query looks for.
//!
//! Of what stands one behind the other, each part tells the places at which it ends. A part that must not be there tells where it is, and that it
//! is meant everywhere else.

use crate::types::tsquery::{Node, Operand, TsQuery};
use crate::types::tsvector::{Entry, TsVector};
use nestor_model::Result;
use nestor_model::statement::work;

/// Where a part of a query is in a text.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Where it ends, in ascending order.
    pub at: Vec<u16>,
    /// It is everywhere but there.
    pub elsewhere: bool,
    /// How many places it takes, without the last one.
    width: i32,
}

impl Places {
    fn is_somewhere(&self) -> bool {
        self.elsewhere || !self.at.is_empty()
    }
}

/// What is known of a lexeme in a text.
#[derive(Clone, Debug)]
pub enum Found {
    /// It is not there.
    No,
    /// It is somewhere.
    Somewhere,
    /// It is at these places, in ascending order.
    At(Vec<u16>),
}

/// What says which lexemes there are.
pub trait Text {
    /// Whether a lexeme is there; its places only where they are asked for.
    fn find(&self, operand: &Operand, wants_places: bool) -> Found;
}

/// Whether a text has what a part of a query looks for.
///
/// Errors: those of the statement's limits.
pub fn holds(node: &Node, text: &dyn Text) -> Result<bool> {
    work(1)?;
    Ok(match node {
        Node::Operand(operand) => !matches!(text.find(operand, false), Found::No),
        Node::Nothing => false,
        Node::Not(part) => !holds(part, text)?,
        Node::And(parts) => {
            for part in parts {
                if !holds(part, text)? {
                    return Ok(false);
                }
            }
            true
        }
        Node::Or(parts) => {
            for part in parts {
                if holds(part, text)? {
                    return Ok(true);
                }
            }
            false
        }
        // Where places are not known nothing is behind anything.
        Node::Phrase(..) => places(node, text)?.is_some_and(|places| places.is_somewhere()),
    })
}

/// Where a part of a phrase is; `None` where places are not known.
fn places(node: &Node, text: &dyn Text) -> Result<Option<Places>> {
    Ok(match node {
        Node::Nothing => Some(Places::default()),
        Node::Operand(operand) => match text.find(operand, true) {
            Found::No => Some(Places::default()),
            Found::Somewhere => None,
            Found::At(at) => {
                work(at.len() / 8)?;
                Some(Places {
                    at,
                    ..Places::default()
                })
            }
        },
        Node::Not(part) => places(part, text)?.map(|places| Places {
            elsewhere: !places.elsewhere,
            ..places
        }),
        Node::Phrase(first, more) => {
            let mut so_far = places(first, text)?;
            for (distance, part) in more {
                if so_far.as_ref().is_some_and(|places| !places.is_somewhere()) {
                    return Ok(Some(Places::default()));
                }
                let next = places(part, text)?;
                if next.as_ref().is_some_and(|places| !places.is_somewhere()) {
                    return Ok(Some(Places::default()));
                }
                so_far = match (so_far, next) {
                    (Some(left), Some(right)) => {
                        let offset = distance + right.width;
                        let width = distance + left.width + right.width;
                        Some(both((left, offset), (right, 0), width)?)
                    }
                    _ => None,
                };
            }
            so_far
        }
        Node::And(parts) => fold(parts, text, true)?,
        Node::Or(parts) => fold(parts, text, false)?,
    })
}

/// Where all of some parts are, or any of them; their ends are those of the widest.
fn fold(parts: &[Node], text: &dyn Text, all: bool) -> Result<Option<Places>> {
    let mut so_far: Option<Option<Places>> = None;
    for part in parts {
        let gone = |places: &Option<Places>| places.as_ref().is_some_and(|places| !places.is_somewhere());
        if all && so_far.as_ref().is_some_and(gone) {
            return Ok(Some(Places::default()));
        }
        let next = places(part, text)?;
        so_far = Some(match (so_far, next) {
            (None, next) => next,
            (Some(left), next) if all && (gone(&left) || gone(&next)) => Some(Places::default()),
            (Some(Some(mut left)), Some(mut right)) => {
                for side in [&mut left, &mut right] {
                    if !side.is_somewhere() {
                        side.width = 0;
                    }
                }
                let width = left.width.max(right.width);
                let (left, right) = ((left.clone(), width - left.width), (right.clone(), width - right.width));
                Some(match all {
                    true => both(left, right, width)?,
                    false => either(left, right, width)?,
                })
            }
            _ => None,
        });
    }
    Ok(so_far.flatten())
}

/// Which places of two lists are wanted.
#[derive(Clone, Copy)]
struct Wanted {
    left: bool,
    both: bool,
    right: bool,
}

fn both(left: (Places, i32), right: (Places, i32), width: i32) -> Result<Places> {
    let (wanted, elsewhere) = match (left.0.elsewhere, right.0.elsewhere) {
        (true, true) => ((true, true, true), true),
        (true, false) => ((false, false, true), false),
        (false, true) => ((true, false, false), false),
        (false, false) => ((false, true, false), false),
    };
    merged(left, right, wanted, (elsewhere, width))
}

fn either(left: (Places, i32), right: (Places, i32), width: i32) -> Result<Places> {
    let (wanted, elsewhere) = match (left.0.elsewhere, right.0.elsewhere) {
        (true, true) => ((false, true, false), true),
        (true, false) => ((true, false, false), true),
        (false, true) => ((false, false, true), true),
        (false, false) => ((true, true, true), false),
    };
    merged(left, right, wanted, (elsewhere, width))
}

/// Places of two lists, each moved by an offset.
fn merged(
    (left, left_offset): (Places, i32),
    (right, right_offset): (Places, i32),
    (only_left, in_both, only_right): (bool, bool, bool),
    (elsewhere, width): (bool, i32),
) -> Result<Places> {
    let wanted = Wanted {
        left: only_left,
        both: in_both,
        right: only_right,
    };
    work((left.at.len() + right.at.len()) / 8)?;
    let moved = |places: Vec<u16>, offset| places.into_iter().map(move |at| i32::from(at) + offset).peekable();
    let (mut a, mut b) = (moved(left.at, left_offset), moved(right.at, right_offset));
    let mut at: Vec<u16> = Vec::new();
    loop {
        let (x, y) = (a.peek().copied(), b.peek().copied());
        let (place, keeps) = match (x, y) {
            (None, None) => break,
            (Some(x), Some(y)) if x == y => (x, wanted.both),
            (Some(x), y) if y.is_none_or(|y| x < y) => (x, wanted.left),
            (_, Some(y)) => (y, wanted.right),
            (Some(x), None) => (x, wanted.left),
        };
        if x == Some(place) {
            a.next();
        }
        if y == Some(place) {
            b.next();
        }
        if keeps && place > 0 {
            at.push(u16::try_from(place).unwrap_or(u16::MAX));
        }
    }
    Ok(Places { at, elsewhere, width })
}

/// Whether a vector has what a query looks for.
///
/// Errors: those of the statement's limits.
pub fn matches(vector: &TsVector, query: &TsQuery) -> Result<bool> {
    query.root.as_ref().map_or(Ok(false), |root| holds(root, vector))
}

impl TsVector {
    /// The entries that a lexeme of a query means.
    pub fn meant(&self, operand: &Operand) -> &[Entry] {
        match operand.is_prefix {
            true => self.entries_with(&operand.lexeme),
            false => self.entry(&operand.lexeme).map_or(&[], std::slice::from_ref),
        }
    }
}

impl Text for TsVector {
    fn find(&self, operand: &Operand, wants_places: bool) -> Found {
        let all = self.meant(operand);
        let has_weight = |weight: u8| operand.weights == 0 || operand.weights & (1 << weight) != 0;
        // A lexeme without places is there whatever weight is asked for.
        let is_meant = |entry: &&Entry| {
            let mut weights = entry.places.iter().map(|place| place.weight());
            entry.places.is_empty() || weights.any(has_weight)
        };
        let mut meant = all.iter().filter(is_meant);
        if !wants_places {
            return match meant.next() {
                Some(_) => Found::Somewhere,
                None => Found::No,
            };
        }
        let mut at = Vec::new();
        let mut known = false;
        for entry in meant {
            if entry.places.is_empty() {
                return Found::Somewhere;
            }
            known = true;
            let places = entry.places.iter().filter(|place| has_weight(place.weight()));
            at.extend(places.map(|place| place.at()));
        }
        if all.len() > 1 {
            at.sort_unstable();
            at.dedup();
        }
        if known { Found::At(at) } else { Found::No }
    }
}
