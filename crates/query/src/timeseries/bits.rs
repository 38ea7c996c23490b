//! Numbers of a fixed width in bits, one after the other, the lowest bits of a byte first; and a reader of bytes that nobody
//! has checked.

/// How many bits a number needs.
pub(super) fn width(value: u64) -> u32 {
    64 - value.leading_zeros()
}

/// Bytes that `count` numbers of `width` bits take.
pub(super) fn packed_len(count: usize, width: u32) -> usize {
    (count * width as usize).div_ceil(8)
}

/// Appends numbers that need at most `width` bits.
pub(super) fn pack(values: impl IntoIterator<Item = u64>, width: u32, out: &mut Vec<u8>) {
    let (mut held, mut bits) = (0u128, 0);
    for value in values {
        held |= u128::from(value) << bits;
        bits += width;
        while bits >= 8 {
            out.push(held as u8);
            held >>= 8;
            bits -= 8;
        }
    }
    if bits > 0 {
        out.push(held as u8);
    }
}

/// Calls back with each of `count` numbers. `bytes` has [`packed_len`] bytes.
pub(super) fn unpack(bytes: &[u8], count: usize, width: u32, mut each: impl FnMut(u64)) {
    if width == 0 {
        (0..count).for_each(|_| each(0));
        return;
    }
    let mask = u64::MAX >> (64 - width);
    if width <= 56 {
        // A number and the bits before it in its first byte fit into a word.
        let whole = bytes.len().saturating_sub(7) * 8 / width as usize;
        let mut bit = 0;
        for _ in 0..whole.min(count) {
            let at = bit >> 3;
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            each((u64::from_le_bytes(word) >> (bit & 7)) & mask);
            bit += width as usize;
        }
        for _ in whole.min(count)..count {
            each(number_at(bytes, bit) & mask);
            bit += width as usize;
        }
        return;
    }
    for index in 0..count {
        each(number_at(bytes, index * width as usize) & mask);
    }
}

/// The 64 bits from `bit` on; zeros where there are no more.
fn number_at(bytes: &[u8], bit: usize) -> u64 {
    let rest = bytes.get(bit >> 3..).unwrap_or_default();
    let mut word = [0; 16];
    let len = rest.len().min(9);
    word[..len].copy_from_slice(&rest[..len]);
    (u128::from_le_bytes(word) >> (bit & 7)) as u64
}

/// Appends a number in groups of 7 bits, the lowest first; the highest bit of a byte says that there are more.
pub(super) fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Bytes that [`put_varint`] appends.
pub(super) fn varint_len(value: u64) -> usize {
    (width(value).max(1) as usize).div_ceil(7)
}

/// Small numbers of either sign as small numbers.
pub(super) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Inverse of [`zigzag`].
pub(super) fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Reads bytes from the front; `None` when there are too few.
pub(super) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(super) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn varint(&mut self) -> Option<u64> {
        let mut out = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            out |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(out);
            }
        }
        None
    }

    /// A number below or equal to `max`.
    pub(super) fn number(&mut self, max: usize) -> Option<usize> {
        let number = usize::try_from(self.varint()?).ok()?;
        (number <= max).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_width_come_back() {
        for width in 0..=64 {
            let mask = if width == 0 { 0 } else { u64::MAX >> (64 - width) };
            for count in [0, 1, 2, 7, 64, 130] {
                let values: Vec<u64> = (0..count)
                    .map(|i| (i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) & mask)
                    .collect();
                let mut bytes = Vec::new();
                pack(values.iter().copied(), width, &mut bytes);
                assert_eq!(bytes.len(), packed_len(count, width));
                let mut back = Vec::new();
                unpack(&bytes, count, width, |value| back.push(value));
                assert_eq!(back, values, "{width} bits");
            }
        }
        for value in [0, 1, -1, i64::MAX, i64::MIN] {
            let mut bytes = Vec::new();
            put_varint(zigzag(value), &mut bytes);
            assert_eq!(bytes.len(), varint_len(zigzag(value)));
            assert_eq!(Reader(&bytes).varint().map(unzigzag), Some(value));
        }
    }
}
