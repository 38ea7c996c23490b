//! Whole numbers in as few bytes as their range needs.

use crate::reader::{Reader, gather, scatter};
use std::ops::Range;

/// Whole numbers as their distances from the least of them, all of one width, so that any of them is read by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    least: i64,
    distances: Distances,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Distances {
    /// So many numbers are the least.
    Same(usize),
    U8(Box<[u8]>),
    U16(Box<[u16]>),
    U32(Box<[u32]>),
    U64(Box<[u64]>),
}

/// Which rows are wanted.
#[derive(Debug, Clone)]
pub enum Places<'p> {
    /// Those from one on up to another.
    Range(Range<usize>),
    /// Those that stand so far behind a row.
    At(usize, &'p [u32]),
}

impl Places<'_> {
    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Self::Range(range) => range.len(),
            Self::At(_, places) => places.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls back with each row.
    #[inline]
    pub fn each(&self, mut f: impl FnMut(usize)) {
        match self {
            Self::Range(range) => range.clone().for_each(f),
            Self::At(from, places) => places.iter().for_each(|place| f(from + *place as usize)),
        }
    }

    /// What `value` says of each row.
    #[inline]
    pub fn map<T>(&self, value: impl FnMut(usize) -> T) -> Vec<T> {
        match self {
            Self::Range(range) => range.clone().map(value).collect(),
            Self::At(from, places) => places.iter().map(|place| from + *place as usize).map(value).collect(),
        }
    }

    /// What `make` makes of the values of the rows: a loop over neighbours where they are.
    #[inline]
    pub fn pick<V: Copy, T>(&self, values: &[V], make: impl Fn(V) -> T) -> Vec<T> {
        match self {
            Self::Range(range) => values[range.clone()].iter().map(|value| make(*value)).collect(),
            Self::At(from, places) => {
                let values = &values[*from..];
                places.iter().map(|place| make(values[*place as usize])).collect()
            }
        }
    }
}

impl Packed {
    /// These numbers.
    pub fn new(values: &[i64]) -> Self {
        let least = values.iter().copied().min().unwrap_or(0);
        let most = values.iter().copied().max().unwrap_or(0);
        let distance = |value: &i64| value.wrapping_sub(least) as u64;
        let distances = match distance(&most) {
            0 => Distances::Same(values.len()),
            1..=0xff => Distances::U8(values.iter().map(|value| distance(value) as u8).collect()),
            0x100..=0xffff => Distances::U16(values.iter().map(|value| distance(value) as u16).collect()),
            0x1_0000..=0xffff_ffff => Distances::U32(values.iter().map(|value| distance(value) as u32).collect()),
            _ => Distances::U64(values.iter().map(distance).collect()),
        };
        Self { least, distances }
    }

    /// What `make` makes of the numbers of some rows.
    #[inline]
    pub fn pick<T>(&self, places: &Places<'_>, make: impl Fn(i64) -> T) -> Vec<T> {
        let least = self.least;
        let at = |distance: u64| make(least.wrapping_add(distance as i64));
        match &self.distances {
            Distances::Same(_) => places.map(|_| make(least)),
            Distances::U8(values) => places.pick(values, |distance| at(u64::from(distance))),
            Distances::U16(values) => places.pick(values, |distance| at(u64::from(distance))),
            Distances::U32(values) => places.pick(values, |distance| at(u64::from(distance))),
            Distances::U64(values) => places.pick(values, at),
        }
    }

    /// Those of some rows, in the same width.
    pub(crate) fn picked(&self, rows: &[u32]) -> Self {
        fn of<D: Copy>(values: &[D], rows: &[u32]) -> Box<[D]> {
            rows.iter().map(|row| values[*row as usize]).collect()
        }
        let distances = match &self.distances {
            Distances::Same(_) => Distances::Same(rows.len()),
            Distances::U8(values) => Distances::U8(of(values, rows)),
            Distances::U16(values) => Distances::U16(of(values, rows)),
            Distances::U32(values) => Distances::U32(of(values, rows)),
            Distances::U64(values) => Distances::U64(of(values, rows)),
        };
        let least = self.least;
        Self { least, distances }
    }

    /// A number.
    pub fn get(&self, row: usize) -> i64 {
        let distance = match &self.distances {
            Distances::Same(_) => 0,
            Distances::U8(values) => u64::from(values[row]),
            Distances::U16(values) => u64::from(values[row]),
            Distances::U32(values) => u64::from(values[row]),
            Distances::U64(values) => values[row],
        };
        self.least.wrapping_add(distance as i64)
    }

    /// The same with others in the place of those of some rows; `None` where these need more bytes.
    pub(crate) fn replaced(&self, rows: &[usize], with: &Self) -> Option<Self> {
        let mut replaced = self.clone();
        for (at, row) in rows.iter().enumerate() {
            let distance = with.get(at).wrapping_sub(self.least);
            // One before the least is beyond all distances that are narrower than a number.
            let distance = distance.cast_unsigned();
            match &mut replaced.distances {
                Distances::Same(_) => (distance == 0).then_some(())?,
                Distances::U8(values) => values[*row] = distance.try_into().ok()?,
                Distances::U16(values) => values[*row] = distance.try_into().ok()?,
                Distances::U32(values) => values[*row] = distance.try_into().ok()?,
                Distances::U64(values) => values[*row] = distance,
            }
        }
        Some(replaced)
    }

    /// The least and the largest number; `None` where there are none.
    pub(crate) fn ends(&self) -> Option<(i64, i64)> {
        fn of<D: Copy + Ord + Into<u64>>(values: &[D]) -> Option<(u64, u64)> {
            let (least, most) = (values.iter().min()?, values.iter().max()?);
            Some(((*least).into(), (*most).into()))
        }
        let (least, most) = match &self.distances {
            Distances::Same(rows) => (*rows > 0).then_some((0, 0))?,
            Distances::U8(values) => of(values)?,
            Distances::U16(values) => of(values)?,
            Distances::U32(values) => of(values)?,
            // Distances do not tell which of these is less.
            Distances::U64(_) => {
                let numbers = || (0..self.len()).map(|row| self.get(row));
                return numbers().min().zip(numbers().max());
            }
        };
        let number = |distance: u64| self.least.wrapping_add(distance as i64);
        Some((number(least), number(most)))
    }

    /// How many different distances there may be, if they are few enough for a table of them.
    pub fn span(&self) -> Option<usize> {
        match &self.distances {
            Distances::Same(_) => Some(1),
            Distances::U8(_) => Some(1 << 8),
            Distances::U16(_) => Some(1 << 16),
            Distances::U32(_) | Distances::U64(_) => None,
        }
    }

    /// How far the numbers of some rows are from the least of all.
    pub fn distances(&self, places: &Places<'_>) -> Vec<u32> {
        let least = self.least;
        self.pick(places, |value| value.wrapping_sub(least) as u32)
    }

    /// The largest number; `None` where there are none.
    pub(crate) fn most(&self) -> Option<i64> {
        (0..self.len()).map(|row| self.get(row)).max()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        match &self.distances {
            Distances::Same(len) => *len,
            Distances::U8(values) => values.len(),
            Distances::U16(values) => values.len(),
            Distances::U32(values) => values.len(),
            Distances::U64(values) => values.len(),
        }
    }

    /// Bytes of a distance.
    fn width(&self) -> u8 {
        match &self.distances {
            Distances::Same(_) => 0,
            Distances::U8(_) => 1,
            Distances::U16(_) => 2,
            Distances::U32(_) => 4,
            Distances::U64(_) => 8,
        }
    }

    /// Adds their bytes, as [`crate::codec`] has them.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let numbers: Vec<i64> = (0..self.len()).map(|row| self.get(row)).collect();
        let steps: Vec<i64> = numbers.windows(2).map(|two| two[1].wrapping_sub(two[0])).collect();
        let steps = Self::new(&steps);
        out.extend(self.least.to_le_bytes());
        out.push(self.width());
        let differ = self.width() > 1 && steps.width() < self.width();
        out.push(u8::from(differ));
        if differ {
            out.extend(numbers[0].to_le_bytes());
            return steps.encode(out);
        }
        let distance = |number: &i64| number.wrapping_sub(self.least) as u64;
        let distances: Vec<u64> = numbers.iter().map(distance).collect();
        scatter(&distances, usize::from(self.width()), out);
    }

    /// So many numbers; `None` when these are not their bytes.
    pub(crate) fn decode(reader: &mut Reader<'_>, count: usize) -> Option<Self> {
        Self::decode_narrower(reader, count, 9)
    }

    /// As [`Packed::decode`], with distances of fewer bytes.
    fn decode_narrower(reader: &mut Reader<'_>, count: usize, than: u8) -> Option<Self> {
        let least = reader.number()?.cast_signed();
        let width = reader.byte().filter(|width| *width < than)?;
        let distances: Vec<u64> = match (width, reader.byte()?) {
            (0, 0) => {
                let distances = Distances::Same(count);
                return Some(Self { least, distances });
            }
            (2 | 4 | 8, 1) => {
                let mut number = reader.number()?.cast_signed();
                let steps = Self::decode_narrower(reader, count.checked_sub(1)?, width)?;
                let first = std::iter::once(number);
                let rest = (0..count - 1).map(|row| {
                    number = number.wrapping_add(steps.get(row));
                    number
                });
                first
                    .chain(rest)
                    .map(|number| number.wrapping_sub(least) as u64)
                    .collect()
            }
            (1 | 2 | 4 | 8, 0) => gather(reader, usize::from(width), count)?,
            _ => return None,
        };
        let distances = match width {
            1 => Distances::U8(distances.into_iter().map(|distance| distance as u8).collect()),
            2 => Distances::U16(distances.into_iter().map(|distance| distance as u16).collect()),
            4 => Distances::U32(distances.into_iter().map(|distance| distance as u32).collect()),
            _ => Distances::U64(distances.into()),
        };
        Some(Self { least, distances })
    }

    /// Bytes that they take.
    pub fn bytes(&self) -> usize {
        match &self.distances {
            Distances::Same(_) => 8,
            Distances::U8(values) => values.len(),
            Distances::U16(values) => values.len() * 2,
            Distances::U32(values) => values.len() * 4,
            Distances::U64(values) => values.len() * 8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_numbers_are_replaced_where_they_fit() {
        for (top, beyond) in [
            (0, 1),
            (200, 256),
            (65_000, 65_536),
            (1 << 20, 1 << 32),
            (i64::MAX, i64::MIN),
        ] {
            for least in [0, -5] {
                let values: Vec<i64> = [0, top / 3, top].map(|value: i64| value.wrapping_add(least)).to_vec();
                let packed = Packed::new(&values);
                let replaced = packed.replaced(&[1, 2], &Packed::new(&[values[2], values[0]]));
                let replaced = replaced.expect("they are numbers that were there");
                assert_eq!(
                    [0, 1, 2].map(|row| replaced.get(row)),
                    [values[0], values[2], values[0]]
                );
                let (least, most) = (*values.iter().min().expect("some"), *values.iter().max().expect("some"));
                assert_eq!(replaced.ends(), Some((least, most)));
                let beyond = Packed::new(&[least.wrapping_add(beyond)]);
                assert_eq!(packed.replaced(&[1], &beyond).is_some(), top == i64::MAX);
            }
        }
        assert_eq!(Packed::new(&[]).ends(), None);
    }

    #[test]
    fn numbers_come_back_from_every_width() {
        for top in [0, 1, 200, 255, 256, 65_535, 65_536, u32::MAX as i64, 1 << 40, i64::MAX] {
            for least in [0, -5, i64::MIN] {
                let values = [least, least.wrapping_add(top), least.wrapping_add(top / 2)];
                let (low, high) = (values.iter().min().copied(), values.iter().max().copied());
                let packed = Packed::new(&values);
                assert_eq!(
                    packed.pick(&Places::Range(0..3), |value| value),
                    values,
                    "{low:?} {high:?}"
                );
                assert_eq!(
                    packed.pick(&Places::At(1, &[1, 0]), |value| value),
                    [values[2], values[1]]
                );
                assert_eq!([0, 1, 2].map(|row| packed.get(row)), values);
            }
        }
        assert_eq!(Packed::new(&[7; 100]).bytes(), 8);
        assert_eq!(Packed::new(&[7, 8, 9]).bytes(), 3);
    }
}
