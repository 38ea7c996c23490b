//! Bytes of a file that are read one after the other, and numbers byte by byte.

/// What is left to be read.
pub(crate) struct Reader<'b>(pub(crate) &'b [u8]);

impl<'b> Reader<'b> {
    pub(crate) fn take(&mut self, len: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(*self.take(8)?.first_chunk()?))
    }
}

/// The `width` lowest bytes of numbers, all lowest first.
pub(crate) fn scatter(values: &[u64], width: usize, out: &mut Vec<u8>) {
    for byte in 0..width {
        out.extend(values.iter().map(|value| (value >> (8 * byte)) as u8));
    }
}

/// The inverse of [`scatter`].
pub(crate) fn gather(reader: &mut Reader<'_>, width: usize, count: usize) -> Option<Vec<u64>> {
    let bytes = reader.take(width.checked_mul(count)?)?;
    let mut out = vec![0u64; count];
    for (byte, plane) in bytes.chunks_exact(count.max(1)).enumerate() {
        for (value, part) in out.iter_mut().zip(plane) {
            *value |= u64::from(*part) << (8 * byte);
        }
    }
    Some(out)
}
