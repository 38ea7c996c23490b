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

use super::bits::{Reader, pack, packed_len, put_varint, unpack, unzigzag, width, zigzag};

const BLOCK: usize = 128;
const ORDER_MAX: usize = 2;

/// Appends the numbers in the form that takes fewest bytes.
pub(super) fn encode(values: &[i64], out: &mut Vec<u8>) {
    let mut best: Vec<u8> = Vec::new();
    let mut numbers = values.to_vec();
    let mut first = Vec::new();
    for order in 0..=ORDER_MAX.min(values.len()) {
        if order > 0 {
            first.push(numbers[0]);
            numbers = numbers.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
        }
        let mut bytes = vec![order as u8];
        first.iter().for_each(|value| put_varint(zigzag(*value), &mut bytes));
        for block in numbers.chunks(BLOCK) {
            encode_block(block, &mut bytes);
        }
        if best.is_empty() || bytes.len() < best.len() {
            best = bytes;
        }
    }
    out.extend_from_slice(&best);
}

fn encode_block(block: &[i64], out: &mut Vec<u8>) {
    let base = block.iter().copied().min().unwrap_or(0);
    let above = |value: &i64| value.wrapping_sub(base) as u64;
    let width = width(block.iter().map(above).max().unwrap_or(0));
    put_varint(zigzag(base), out);
    out.push(width as u8);
    pack(block.iter().map(above), width, out);
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
