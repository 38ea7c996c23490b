//! The input and the outcome of a command.

use nestor_database::statement::Wait;
use nestor_model::RawDoc;
use nestor_storage::log::LogSignal;
use std::time::Instant;

/// A document sequence: a message section of kind 1.
#[derive(Debug)]
pub struct Sequence<'a> {
    /// The argument that it stands for.
    pub name: &'a str,
    /// Its documents.
    pub documents: Vec<RawDoc<'a>>,
}

/// One command as it came from a client.
#[derive(Debug)]
pub struct Request<'a> {
    /// The command document, `$db` included.
    pub body: RawDoc<'a>,
    /// Document sequences.
    pub sequences: &'a [Sequence<'a>],
    /// True when it came as OP_QUERY, which allows `hello` and `isMaster` only and has no `$db`.
    pub legacy: bool,
    /// True when the client allows a stream of replies (exhaust).
    pub exhaust_allowed: bool,
    /// Bytes that the reply is appended to: usually empty, or room for a message header.
    pub buffer: Vec<u8>,
}

impl<'a> Request<'a> {
    /// An ordinary command without sequences.
    pub fn new(body: RawDoc<'a>) -> Self {
        Self {
            body,
            sequences: &[],
            legacy: false,
            exhaust_allowed: false,
            buffer: Vec::new(),
        }
    }
}

/// What to do after a command ran.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The contents of [`Request::buffer`], followed by the reply document.
    pub reply: Vec<u8>,
    /// Where the reply document starts in `reply`.
    pub reply_at: usize,
    /// The reply may be sent only once this is done.
    pub wait: Option<Wait>,
    /// Nothing to say yet: run the same request on the same connection again when the park ends.
    /// `reply` is what to send if that is not possible (an empty batch).
    pub park: Option<Park>,
    /// Send the reply with moreToCome and run the command again; the next request of the stream is this document.
    pub exhaust: Option<nestor_model::RawDocBuf>,
    /// Close the connection after the reply.
    pub close: bool,
}

/// A command that waits for something to happen (`awaitData`, awaitable `hello`).
#[derive(Clone, Debug)]
pub struct Park {
    /// When to run again at the latest.
    pub until: Instant,
    /// Another event that is a reason to run again.
    pub wake: Wake,
}

/// Events that end a park before its time.
#[derive(Clone, Debug)]
pub enum Wake {
    /// Nothing.
    Never,
    /// A commit.
    Commit,
    /// News for a reader of the log.
    Log(LogSignal),
    /// Another topology than that after so many changes.
    Topology(i64),
}
