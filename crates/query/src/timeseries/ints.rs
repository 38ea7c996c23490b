//! Whole numbers: as they are, their differences, or the differences of those, whichever takes fewest bytes.
//!
//! ```text
//! order        1 byte    0, 1 or 2: how often differences were taken
//! first        varints   zigzag: the first number of each of the `order` lists that differences were taken of
//! blocks       for each 128 of the numbers left, which are as many as there were less `order`:
//!   base       varint    zigzag: the smallest number of the block
//!   width      1 byte    0 to 64
//!   numbers    width bits each, what they are more than the base
//! ```
//!
//! All arithmetic wraps, so every list of 64-bit numbers has this form. Times that are equally far apart take two bytes for each 128.
//!
//! ```text
//! [1000, 2000, 3000]   01 d0 0f d0 0f 00     order 1, 1000, one block: base 1000, width 0
//! ```

use super::bits::{Reader, pack, packed_len, put_varint, unpack, unzigzag, varint_len, width, zigzag};

const BLOCK: usize = 128;
const ORDER_MAX: usize = 2;

/// Appends the numbers in the form that takes fewest bytes.
pub(super) fn encode(values: &[i64], out: &mut Vec<u8>) {
    let mut numbers = values.to_vec();
    let mut first = Vec::with_capacity(ORDER_MAX);
    let (mut best, mut best_len) = (0, usize::MAX);
    for order in 0..=ORDER_MAX.min(values.len()) {
        if order > 0 {
            first.push(subtract_neighbours(&mut numbers));
        }
        let first_len: usize = first.iter().map(|value| varint_len(zigzag(*value))).sum();
        let len = first_len
            + numbers
                .chunks(BLOCK)
                .map(|block| Packing::of(block).len())
                .sum::<usize>();
        if len < best_len {
            (best, best_len) = (order, len);
        }
    }
    numbers.clear();
    numbers.extend_from_slice(values);
    for _ in 0..best {
        subtract_neighbours(&mut numbers);
    }
    out.reserve(1 + best_len);
    out.push(best as u8);
    first
        .iter()
        .take(best)
        .for_each(|value| put_varint(zigzag(*value), out));
    for block in numbers.chunks(BLOCK) {
        encode_block(block, out);
    }
}

/// Puts the differences of neighbours in the place of the numbers; returns the first number.
fn subtract_neighbours(numbers: &mut Vec<i64>) -> i64 {
    let first = numbers[0];
    for at in 1..numbers.len() {
        numbers[at - 1] = numbers[at].wrapping_sub(numbers[at - 1]);
    }
    numbers.pop();
    first
}

/// How a block is packed.
struct Packing {
    base: i64,
    width: u32,
    count: usize,
}

impl Packing {
    fn of(block: &[i64]) -> Self {
        let base = block.iter().copied().min().unwrap_or(0);
        let highest = block.iter().copied().max().unwrap_or(0);
        Self {
            base,
            // The distance of the two is below 2^64.
            width: width(highest.wrapping_sub(base) as u64),
            count: block.len(),
        }
    }

    /// Bytes of the block.
    fn len(&self) -> usize {
        varint_len(zigzag(self.base)) + 1 + packed_len(self.count, self.width)
    }
}

fn encode_block(block: &[i64], out: &mut Vec<u8>) {
    let Packing { base, width, .. } = Packing::of(block);
    put_varint(zigzag(base), out);
    out.push(width as u8);
    pack(block.iter().map(|value| value.wrapping_sub(base) as u64), width, out);
}

/// Reads `count` numbers; `None` for bytes that are no such form.
pub(super) fn decode(bytes: &mut Reader<'_>, count: usize) -> Option<Vec<i64>> {
    let order = usize::from(bytes.byte()?);
    if order > ORDER_MAX || order > count {
        return None;
    }
    let mut first = [0; ORDER_MAX];
    for slot in first.iter_mut().take(order) {
        *slot = unzigzag(bytes.varint()?);
    }
    // The sums are begun with what the differences were taken of: the number at `order - 1` is the last of the first ones.
    let mut out = Vec::with_capacity(count);
    let (mut sum, mut step) = (first[0], first[1]);
    if order > 0 {
        out.push(sum);
    }
    if order > 1 {
        sum = sum.wrapping_add(step);
        out.push(sum);
    }
    while out.len() < count {
        let len = (count - out.len()).min(BLOCK);
        let base = unzigzag(bytes.varint()?);
        let width = u32::from(bytes.byte()?);
        if width > 64 {
            return None;
        }
        let packed = bytes.take(packed_len(len, width))?;
        match order {
            0 => unpack(packed, len, width, |above| out.push(base.wrapping_add(above as i64))),
            1 => unpack(packed, len, width, |above| {
                sum = sum.wrapping_add(base.wrapping_add(above as i64));
                out.push(sum);
            }),
            _ => unpack(packed, len, width, |above| {
                step = step.wrapping_add(base.wrapping_add(above as i64));
                sum = sum.wrapping_add(step);
                out.push(sum);
            }),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(values: &[i64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(values, &mut bytes);
        let mut reader = Reader(&bytes);
        assert_eq!(decode(&mut reader, values.len()).as_deref(), Some(values));
        assert!(reader.0.is_empty(), "all bytes are read");
        bytes
    }

    #[test]
    fn the_example_of_the_format() {
        assert_eq!(round_trip(&[1000, 2000, 3000]), [1, 0xd0, 0x0f, 0xd0, 0x0f, 0]);
    }

    #[test]
    fn all_lists_come_back() {
        round_trip(&[]);
        round_trip(&[i64::MIN]);
        round_trip(&[i64::MIN, i64::MAX, 0, -1]);
        let noisy: Vec<i64> = (0..1000).map(|i| i * 60_000 + (i * i) % 17).collect();
        assert!(round_trip(&noisy).len() < 1000);
        let even: Vec<i64> = (0..1000).map(|i| 1_700_000_000_000 + i * 1000).collect();
        assert!(round_trip(&even).len() < 30);
    }

    #[test]
    fn what_was_cut_off_is_refused() {
        let mut bytes = Vec::new();
        encode(&[5, 900, -4, 7], &mut bytes);
        for len in 0..bytes.len() {
            assert!(decode(&mut Reader(&bytes[..len]), 4).is_none(), "{len} bytes");
        }
    }
}
