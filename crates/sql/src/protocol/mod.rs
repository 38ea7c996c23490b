//! PostgreSQL's wire protocol, version 3: bytes to messages and back. No I/O.
//!
//! A message is a byte that names it, a length of four bytes (itself included), and a body; the first message of a connection has no name.
//! Source: PostgreSQL manual, "Message Formats".

pub mod backend;
pub mod frontend;
