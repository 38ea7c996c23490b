//! OP_COMPRESSED.
//!
//! ```text
//! content    int32 original opcode | int32 uncompressed size (without header) | uint8 compressor | bytes
//! ```

use crate::WireError;
use crate::header::{HEADER_BYTES, Header, MESSAGE_BYTES_MAX, OpCode, read_i32};
use std::io::{Read, Write};

/// Bytes before the compressed ones.
pub(crate) const PREFIX_BYTES: usize = 9;

/// The compressors of the wire protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Compressor {
    /// Not compressed at all; for tests of drivers.
    Noop = 0,
    /// Snappy, one block.
    Snappy = 1,
    /// Zlib.
    Zlib = 2,
    /// Zstandard.
    Zstd = 3,
}

impl Compressor {
    /// The compressor of that name, as drivers offer it in hello. `noop` is not for negotiation.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "snappy" => Some(Self::Snappy),
            "zlib" => Some(Self::Zlib),
            "zstd" => Some(Self::Zstd),
            _ => None,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Noop => "noop",
            Self::Snappy => "snappy",
            Self::Zlib => "zlib",
            Self::Zstd => "zstd",
        }
    }

    fn from_number(number: u8) -> Option<Self> {
        [Self::Noop, Self::Snappy, Self::Zlib, Self::Zstd]
            .into_iter()
            .find(|compressor| *compressor as u8 == number)
    }
}

/// Bytes that a message claims to have once it is inflated; those that it has if it is not compressed. Whoever limits the length of
/// messages asks for it first, so that no memory is taken for one that is refused.
pub fn inflated_length(message: &[u8]) -> usize {
    let claimed = match Header::parse(message) {
        Ok(header) if header.op_code == OpCode::Compressed => read_i32(message, HEADER_BYTES + 4),
        _ => None,
    };
    let claimed = claimed.and_then(|size| usize::try_from(size).ok());
    claimed.map_or(message.len(), |size| {
        size.saturating_add(HEADER_BYTES).max(message.len())
    })
}

/// Inflates the content of an OP_COMPRESSED message into `out` (untouched for [`Compressor::Noop`]).
/// The claimed size bounds what is allocated, and must be met exactly.
pub(crate) fn inflate(content: &[u8], out: &mut Vec<u8>) -> Result<(OpCode, Compressor), WireError> {
    let (Some(op_code), Some(size), Some(compressor)) = (read_i32(content, 0), read_i32(content, 4), content.get(8))
    else {
        return Err(WireError::Fatal("compressed message cut off"));
    };
    let op_code = OpCode::from_number(op_code).ok_or(WireError::Fatal("unknown opcode in a compressed message"))?;
    let size = usize::try_from(size)
        .ok()
        .filter(|size| *size <= MESSAGE_BYTES_MAX - HEADER_BYTES)
        .ok_or(WireError::Fatal("uncompressed size out of range"))?;
    let compressor = Compressor::from_number(*compressor).ok_or(WireError::Fatal("unknown compressor"))?;
    let packed = content.get(PREFIX_BYTES..).unwrap_or_default();
    let inflated = match compressor {
        Compressor::Noop => (packed.len() == size).then_some(size),
        Compressor::Snappy => inflate_snappy(packed, size, out),
        Compressor::Zlib => inflate_reader(flate2::read::ZlibDecoder::new(packed), size, out),
        Compressor::Zstd => inflate_zstd(packed, size, out),
    };
    if inflated != Some(size) {
        return Err(WireError::Fatal("compressed message does not inflate to its size"));
    }
    Ok((op_code, compressor))
}

fn inflate_snappy(packed: &[u8], size: usize, out: &mut Vec<u8>) -> Option<usize> {
    // The block repeats its size, so a wrong one is found before anything is allocated.
    if snap::raw::decompress_len(packed).ok()? != size {
        return None;
    }
    out.clear();
    out.resize(size, 0);
    snap::raw::Decoder::new().decompress(packed, out).ok()
}

fn inflate_zstd(packed: &[u8], size: usize, out: &mut Vec<u8>) -> Option<usize> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(packed).ok()?;
    // No window larger than the largest message is of use.
    decoder.window_log_max(26).ok()?;
    inflate_reader(decoder.single_frame(), size, out)
}

/// Reads at most one byte more than `size`, so that a stream that goes on is noticed. Memory grows with
/// what really comes out, not with what was claimed.
fn inflate_reader(reader: impl Read, size: usize, out: &mut Vec<u8>) -> Option<usize> {
    out.clear();
    reader.take(size as u64 + 1).read_to_end(out).ok()
}

/// `message`, a whole one of opcode OP_MSG, as a client sends it compressed.
pub fn compressed(message: &[u8], compressor: Compressor) -> Vec<u8> {
    let mut out = Vec::with_capacity(message.len() / 2 + HEADER_BYTES);
    let id = |at| read_i32(message, at).unwrap_or_default();
    let content = message.get(HEADER_BYTES..).unwrap_or_default();
    write(&mut out, id(4), id(8), OpCode::Msg, content, compressor);
    out
}

/// Appends a compressed message whose content (without header) is `content`.
pub(crate) fn write(
    out: &mut Vec<u8>,
    request_id: i32,
    response_to: i32,
    op_code: OpCode,
    content: &[u8],
    compressor: Compressor,
) {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    out.extend_from_slice(&(op_code as i32).to_le_bytes());
    out.extend_from_slice(&(content.len() as i32).to_le_bytes());
    out.push(compressor as u8);
    deflate(out, content, compressor);
    let header = Header {
        length: out.len() - start,
        request_id,
        response_to,
        op_code: OpCode::Compressed,
    };
    out[start..start + HEADER_BYTES].copy_from_slice(&header.to_bytes());
}

fn deflate(out: &mut Vec<u8>, content: &[u8], compressor: Compressor) {
    const IN_MEMORY: &str = "writing into memory does not fail";
    match compressor {
        Compressor::Noop => out.extend_from_slice(content),
        Compressor::Snappy => {
            let at = out.len();
            out.resize(at + snap::raw::max_compress_len(content.len()), 0);
            let written = snap::raw::Encoder::new()
                .compress(content, &mut out[at..])
                .expect("the buffer has the size the encoder asked for");
            out.truncate(at + written);
        }
        Compressor::Zlib => {
            let mut encoder = flate2::write::ZlibEncoder::new(out, flate2::Compression::new(6));
            encoder.write_all(content).expect(IN_MEMORY);
            encoder.finish().expect(IN_MEMORY);
        }
        Compressor::Zstd => {
            let mut encoder = zstd::stream::write::Encoder::new(out, 3).expect(IN_MEMORY);
            encoder.write_all(content).expect(IN_MEMORY);
            encoder.finish().expect(IN_MEMORY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Content, parse};
    use nestor_model::doc;

    const ALL: [Compressor; 4] = [Compressor::Noop, Compressor::Snappy, Compressor::Zlib, Compressor::Zstd];

    fn packed(compressor: Compressor) -> (Vec<u8>, Vec<u8>) {
        let body = doc! { "ping": 1, "pad": "abcabcabcabcabcabcabcabcabcabc".repeat(20) }.to_raw();
        let mut content = vec![0; 5];
        content.extend_from_slice(body.as_bytes());
        let mut out = Vec::new();
        write(&mut out, 1, 2, OpCode::Msg, &content, compressor);
        (out, body.as_bytes().to_vec())
    }

    #[test]
    fn every_compressor_round_trips() {
        for compressor in ALL {
            let (bytes, body) = packed(compressor);
            let mut scratch = vec![1, 2, 3];
            let message = parse(&bytes, &mut scratch).unwrap();
            assert_eq!(message.compressor, Some(compressor));
            match message.content {
                Content::Msg(msg) => assert_eq!(msg.body.as_bytes(), body),
                other => panic!("{other:?}"),
            }
            assert_eq!(bytes.len() < body.len(), compressor != Compressor::Noop);
        }
    }

    #[test]
    fn a_whole_message_keeps_its_ids() {
        for compressor in ALL {
            let body = doc! { "ping": 1 }.to_raw();
            let mut plain = Vec::new();
            crate::msg::write_request(&mut plain, 7, 0, body.as_raw(), &[]);
            let packed = compressed(&plain, compressor);
            let mut scratch = Vec::new();
            let message = parse(&packed, &mut scratch).unwrap();
            assert_eq!((message.header.request_id, message.compressor), (7, Some(compressor)));
            assert_eq!(
                Compressor::from_name(compressor.name()),
                (compressor != Compressor::Noop).then_some(compressor)
            );
        }
    }

    #[test]
    fn a_wrong_size_is_refused_without_large_allocations() {
        for compressor in ALL {
            for size in [0, 1, 700, 100_000, 47_999_984, 47_999_985, -1, i32::MAX] {
                let (mut bytes, _) = packed(compressor);
                bytes[20..24].copy_from_slice(&size.to_le_bytes());
                let mut scratch = Vec::new();
                let error = parse(&bytes, &mut scratch).unwrap_err();
                assert!(matches!(error, WireError::Fatal(_)), "{compressor:?} {size}");
                assert!(scratch.capacity() < 1 << 20, "{compressor:?} {size}");
            }
        }
    }

    #[test]
    fn no_bytes_panic_an_inflater() {
        for compressor in ALL {
            let (good, _) = packed(compressor);
            for at in HEADER_BYTES..good.len() {
                let mut bytes = good.clone();
                bytes[at] ^= 0x55;
                let _ = parse(&bytes, &mut Vec::new());
                bytes.truncate(at);
                let length = (bytes.len() as i32).to_le_bytes();
                bytes[..4].copy_from_slice(&length);
                assert!(parse(&bytes, &mut Vec::new()).is_err(), "{compressor:?} cut at {at}");
            }
        }
    }

    #[test]
    fn compression_does_not_nest() {
        let (inner, _) = packed(Compressor::Snappy);
        let mut out = Vec::new();
        write(
            &mut out,
            1,
            2,
            OpCode::Compressed,
            &inner[HEADER_BYTES..],
            Compressor::Snappy,
        );
        assert!(matches!(parse(&out, &mut Vec::new()), Err(WireError::Fatal(_))));
    }
}
