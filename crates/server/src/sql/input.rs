//! Messages cut out of what a client sends. A connection that waits for its client owns no buffer.

use super::Ended;
use crate::buffers;
use crate::stream::Stream;

/// A message that is not here yet gets memory for this much at a time, whatever length it claims.
const GROWTH_BYTES: usize = 1 << 20;

/// Bytes that were read and not looked at.
#[derive(Default)]
pub struct Input {
    bytes: Vec<u8>,
    at: usize,
}

impl Input {
    /// Whether nothing is left of what was read.
    pub fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// Bytes that are left of what was read.
    #[cfg(test)]
    fn rest(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    /// Has at least `count` bytes behind what was looked at.
    async fn fill(&mut self, stream: &mut Stream, count: usize) -> Result<(), Ended> {
        if self.is_empty() {
            buffers::give_back(std::mem::take(&mut self.bytes));
            self.at = 0;
            self.bytes = stream.read_fresh().await?;
            if self.bytes.is_empty() {
                return Err(Ended);
            }
        }
        self.compact(count);
        while self.bytes.len() - self.at < count {
            let missing = count - (self.bytes.len() - self.at);
            self.bytes.reserve(missing.min(GROWTH_BYTES));
            if stream.read_more(&mut self.bytes).await? == 0 {
                return Err(Ended);
            }
        }
        Ok(())
    }

    /// Forgets what was looked at when more has to be read behind it.
    fn compact(&mut self, count: usize) {
        if self.bytes.len() - self.at < count && self.at > 0 {
            self.bytes.drain(..self.at);
            self.at = 0;
        }
    }

    /// The next four bytes as a number, which stay where they are.
    pub async fn peek_length(&mut self, stream: &mut Stream) -> Result<i32, Ended> {
        self.fill(stream, 4).await?;
        let head: [u8; 4] = self.bytes[self.at..self.at + 4].try_into().map_err(|_| Ended)?;
        Ok(i32::from_be_bytes(head))
    }

    /// The next `count` bytes.
    pub async fn take(&mut self, stream: &mut Stream, count: usize) -> Result<&[u8], Ended> {
        self.fill(stream, count).await?;
        self.at += count;
        Ok(&self.bytes[self.at - count..self.at])
    }

    /// The length of the body that the next message claims to have, once its first bytes have come.
    fn claimed(&self) -> Option<(u8, usize)> {
        let head: [u8; 5] = self.bytes.get(self.at..self.at + 5)?.try_into().ok()?;
        let [tag, a, b, c, d] = head;
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        Some((tag, length.checked_sub(4)?))
    }

    /// Whether the next message has a body of less than `below` bytes.
    pub fn has_below(&self, below: usize) -> bool {
        self.claimed().is_some_and(|(_, length)| length < below)
    }

    /// Waits until the next message has come, with a body of at most `most` bytes.
    ///
    /// Errors: the client is gone, or claims a length that no message has.
    pub async fn come(&mut self, stream: &mut Stream, most: usize) -> Result<(), Ended> {
        self.fill(stream, 5).await?;
        let Some((_, length)) = self.claimed().filter(|(_, length)| *length <= most) else {
            let error = nestor_sql::error::error("08P01", "invalid message length");
            return Err(super::fatal(stream, &error).await);
        };
        self.fill(stream, 5 + length).await
    }

    /// The next message if all of it has come and its body is of less than `below` bytes: its type, its body, and the type of the one
    /// behind it if that has come.
    pub fn whole(&mut self, below: usize) -> Option<(u8, &[u8], Option<u8>)> {
        let (tag, length) = self.claimed().filter(|(_, length)| *length < below)?;
        let (from, to) = (self.at + 5, (self.at + 5).checked_add(length)?);
        if to > self.bytes.len() {
            return None;
        }
        self.at = to;
        Some((tag, &self.bytes[from..to], self.bytes.get(to).copied()))
    }

    /// Waits for the next message: its type and its body.
    ///
    /// Errors: those of [`Input::come`].
    pub async fn message(&mut self, stream: &mut Stream, most: usize) -> Result<(u8, &[u8]), Ended> {
        self.come(stream, most).await?;
        let (tag, body, _) = self.whole(usize::MAX).ok_or(Ended)?;
        Ok((tag, body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_messages_are_taken_at_once() {
        let mut input = Input {
            bytes: b"S\0\0\0\x04B\0\0\0\x06xyD\0\0\0\x05".to_vec(),
            at: 0,
        };
        assert_eq!(input.whole(100), Some((b'S', [].as_slice(), Some(b'B'))));
        assert_eq!(input.whole(2), None, "it is too long");
        assert_eq!(input.whole(3), Some((b'B', b"xy".as_slice(), Some(b'D'))));
        assert_eq!(input.whole(100), None, "its body has not come");
        assert_eq!(input.at, 12);
    }

    #[test]
    fn what_was_looked_at_makes_room_for_more() {
        let mut input = Input {
            bytes: b"abcdef".to_vec(),
            at: 4,
        };
        input.compact(2);
        assert_eq!((input.rest(), input.at), (b"ef".as_slice(), 4), "it is all here");
        input.compact(3);
        assert_eq!((input.rest(), input.at), (b"ef".as_slice(), 0));
    }
}
