//! What numbered groups have of their rows, as numbers in vectors.

use super::key::{Kind, Path, integers};
use crate::columns::fields::column;
use nestor_columns::{Places, Segment};
use nestor_model::vector::{Data, Vector};
use nestor_model::{Result, Value};
use nestor_query::accumulator::Accumulator;
use nestor_query::env::Val;
use nestor_query::stage::AccumulatorSpec;

/// What an output field has of all groups.
pub(super) enum Field {
    /// The same value for each row.
    Times(Value),
    /// The sum of integers, and how many they are.
    Sum {
        of: Path,
        sums: Vec<i128>,
        counts: Vec<u64>,
    },
    /// The least or the largest of integers or dates, where there is one.
    End {
        of: Path,
        is_largest: bool,
        ends: Vec<i64>,
        are_there: Vec<bool>,
    },
}

impl Field {
    pub(super) fn of(spec: &AccumulatorSpec) -> Option<Self> {
        let input = spec.only_input()?;
        let of = || input.field_path().and_then(|path| Path::new(path.as_str()));
        let end = |is_largest| {
            Some(Self::End {
                of: of()?,
                is_largest,
                ends: Vec::new(),
                are_there: Vec::new(),
            })
        };
        match (spec.name(), input.constant()) {
            ("$sum" | "$count", Some(value @ (Value::Int32(_) | Value::Int64(_)))) => Some(Self::Times(value.clone())),
            ("$sum" | "$avg", None) => Some(Self::Sum {
                of: of()?,
                sums: Vec::new(),
                counts: Vec::new(),
            }),
            ("$min", None) => end(false),
            ("$max", None) => end(true),
            _ => None,
        }
    }

    pub(super) fn empty(&self) -> Self {
        match self {
            Self::Times(value) => Self::Times(value.clone()),
            Self::Sum { of, .. } => Self::Sum {
                of: of.clone(),
                sums: Vec::new(),
                counts: Vec::new(),
            },
            Self::End { of, is_largest, .. } => Self::End {
                of: of.clone(),
                is_largest: *is_largest,
                ends: Vec::new(),
                are_there: Vec::new(),
            },
        }
    }

    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Times(_) => None,
            Self::Sum { of, .. } | Self::End { of, .. } => Some(of),
        }
    }

    pub(super) fn path_mut(&mut self) -> Option<&mut Path> {
        match self {
            Self::Times(_) => None,
            Self::Sum { of, .. } | Self::End { of, .. } => Some(of),
        }
    }

    /// Whether it can have values of a type.
    pub(super) fn takes(&self, kind: Kind) -> bool {
        match self {
            Self::Times(_) => true,
            Self::Sum { .. } => kind.is_integer(),
            Self::End { .. } => kind.is_integer() || kind == Kind::Date,
        }
    }

    /// There are so many groups now.
    pub(super) fn resize(&mut self, groups: usize) {
        match self {
            Self::Times(_) => {}
            Self::Sum { sums, counts, .. } => {
                sums.resize(groups, 0);
                counts.resize(groups, 0);
            }
            Self::End {
                ends,
                are_there,
                is_largest,
                ..
            } => {
                ends.resize(groups, if *is_largest { i64::MIN } else { i64::MAX });
                are_there.resize(groups, false);
            }
        }
    }

    /// Bytes of a group.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Times(_) => 0,
            Self::Sum { .. } => size_of::<i128>() + size_of::<u64>(),
            Self::End { .. } => size_of::<i64>() + size_of::<bool>(),
        }
    }

    /// Takes what rows of a segment have, which belong to these groups.
    pub(super) fn add(&mut self, segment: &Segment, places: &Places<'_>, groups: &[u32]) {
        let Some(column) = self.path().and_then(|of| column(segment, &of.path)) else {
            return;
        };
        let Some(values) = integers(column, places) else {
            return;
        };
        let nulls = column.nulls(places);
        let is_null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls[row]);
        let rows = groups.iter().map(|group| *group as usize).zip(values).enumerate();
        let rows = rows.filter(|(row, _)| !is_null(*row)).map(|(_, pair)| pair);
        match self {
            Self::Times(_) => {}
            Self::Sum { sums, counts, .. } => rows.for_each(|(group, value)| {
                sums[group] += i128::from(value);
                counts[group] += 1;
            }),
            Self::End {
                ends,
                are_there,
                is_largest,
                ..
            } => rows.for_each(|(group, value)| {
                let end = &mut ends[group];
                *end = if *is_largest { value.max(*end) } else { value.min(*end) };
                are_there[group] = true;
            }),
        }
    }

    /// Takes what some groups of others have, which are those here.
    pub(super) fn merge(&mut self, other: &Self, (places, groups): (&[u32], &[u32])) {
        let groups = places
            .iter()
            .zip(groups)
            .map(|(at, group)| (*at as usize, *group as usize));
        match (self, other) {
            (
                Self::Sum { sums, counts, .. },
                Self::Sum {
                    sums: more,
                    counts: with,
                    ..
                },
            ) => groups.for_each(|(at, group)| {
                sums[group] += more[at];
                counts[group] += with[at];
            }),
            (
                Self::End {
                    ends,
                    are_there,
                    is_largest,
                    ..
                },
                Self::End {
                    ends: others,
                    are_there: there,
                    ..
                },
            ) => groups.filter(|(at, _)| there[*at]).for_each(|(at, group)| {
                let (end, other) = (&mut ends[group], others[at]);
                *end = if *is_largest { other.max(*end) } else { other.min(*end) };
                are_there[group] = true;
            }),
            _ => {}
        }
    }

    /// The results of groups of so many rows as a vector of integers, and whether these are dates; `None` where they are something else.
    pub(super) fn vector(&self, name: &str, rows: &[u64]) -> Option<(Vector, bool)> {
        let sums: Vec<(i128, bool)> = match self {
            Self::Times(Value::Int32(value)) => rows
                .iter()
                .map(|rows| (times(i64::from(*value), *rows), false))
                .collect(),
            Self::Times(Value::Int64(value)) => rows.iter().map(|rows| (times(*value, *rows), *rows > 0)).collect(),
            Self::Sum { of, sums, counts } if name == "$sum" => {
                let is_long = |count: &u64| of.kind == Kind::Int64 && *count > 0;
                sums.iter()
                    .zip(counts)
                    .map(|(sum, count)| (*sum, is_long(count)))
                    .collect()
            }
            Self::Times(_) | Self::Sum { .. } => return None,
            Self::End {
                of, ends, are_there, ..
            } => {
                let data = match of.kind {
                    Kind::Int32 => Data::Int32(ends.iter().map(|end| *end as i32).collect()),
                    _ => Data::Int64(ends.clone()),
                };
                let nulls: Vec<bool> = are_there.iter().map(|is_there| !is_there).collect();
                let nulls = nulls.contains(&true).then_some(nulls);
                return Some((Vector { data, nulls }, of.kind == Kind::Date));
            }
        };
        let is_int = |(sum, is_long): &(i128, bool)| !is_long && i32::try_from(*sum).is_ok();
        let data = match sums.iter().all(is_int) {
            true => Data::Int32(sums.iter().map(|(sum, _)| *sum as i32).collect()),
            false if sums.iter().any(is_int) => return None,
            false => Data::Int64(
                sums.iter()
                    .map(|(sum, _)| i64::try_from(*sum).ok())
                    .collect::<Option<_>>()?,
            ),
        };
        Some((data.into(), false))
    }

    /// Lets an accumulator take what a group of so many rows has.
    ///
    /// Errors: those of the accumulator.
    pub(super) fn give(&self, group: usize, rows: u64, to: &mut Accumulator) -> Result<()> {
        match self {
            Self::Times(value) => to.add_times(value.as_ref(), rows as usize),
            Self::Sum { of, sums, counts } => {
                to.add_total(sums[group], counts[group], of.kind == Kind::Int64);
                Ok(())
            }
            Self::End {
                of, ends, are_there, ..
            } => match are_there[group] {
                true => to.add(Val::Ref(of.kind.integer(ends[group]))),
                false => Ok(()),
            },
        }
    }
}

fn times(value: i64, times: u64) -> i128 {
    i128::from(value) * i128::from(times)
}
