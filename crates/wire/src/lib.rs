//! Bytes to messages and back (OP_MSG, OP_COMPRESSED, OP_QUERY for hello). No I/O; no input panics it.
