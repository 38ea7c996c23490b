//! The session whose numbers let a server know a repeated write again.

use nestor_model::value::Binary;
use nestor_model::{Document, Value, doc};
use std::hash::{BuildHasher as _, RandomState};

/// A session.
pub struct Session {
    id: [u8; 16],
    number: i64,
}

impl Session {
    /// A new one, with a random UUID (version 4).
    pub fn new() -> Self {
        // The standard library seeds its hashes from the operating system.
        let random = |n: u64| RandomState::new().hash_one(n).to_le_bytes();
        let mut id = [0; 16];
        id[..8].copy_from_slice(&random(1));
        id[8..].copy_from_slice(&random(2));
        id[6] = (id[6] & 0x0F) | 0x40;
        id[8] = (id[8] & 0x3F) | 0x80;
        Self { id, number: 0 }
    }

    /// Makes `command` the session's next write.
    pub fn number(&mut self, command: &mut Document) {
        self.number += 1;
        self.append(command);
    }

    /// Makes `command` part of the session's transaction, or with `begins` the first of the next one.
    pub fn in_transaction(&mut self, command: &mut Document, begins: bool) {
        self.number += i64::from(begins);
        self.append(command);
        command.push("autocommit", false);
        if begins {
            command.push("startTransaction", true);
        }
    }

    fn append(&self, command: &mut Document) {
        let id = Binary {
            subtype: 4,
            bytes: self.id.into(),
        };
        command.push("lsid", doc! { "id": Value::Binary(id) });
        command.push("txnNumber", self.number);
    }
}
