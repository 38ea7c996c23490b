//! LISTEN, UNLISTEN and NOTIFY. What a transaction says is heard when it has committed, and what a session hears it is told between two
//! transactions.

use super::Session;
use crate::error::fail;
use crate::protocol::backend;
use crate::settings;
use nestor_database::Database;
use nestor_database::channels::{Mailbox, Notification, WAITING_BYTES_MAX};
use nestor_model::{Error, Result};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of the name of a channel, as of all names.
const NAME_BYTES: usize = 64;
/// Bytes of what is said.
const PAYLOAD_BYTES: usize = 8000;

/// What is to be done when the transaction commits.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Listen(String),
    /// On one channel, or on all.
    Unlisten(Option<String>),
    Notify(Notification),
}

impl Act {
    fn weight(&self) -> usize {
        match self {
            Self::Listen(channel) | Self::Unlisten(Some(channel)) => channel.len() + size_of::<Self>(),
            Self::Unlisten(None) => size_of::<Self>(),
            Self::Notify(notification) => notification.weight(),
        }
    }
}

/// The name of a channel, shortened as all names are.
fn shortened(channel: &str) -> String {
    let end = (0..NAME_BYTES).rev().find(|at| channel.is_char_boundary(*at));
    channel[..end.unwrap_or(0).min(channel.len())].to_owned()
}

impl Session {
    /// LISTEN, and UNLISTEN of one channel or of all.
    ///
    /// Errors: 146.
    pub(super) fn listen(&mut self, database: &Database, channel: Option<&str>, listens: bool) -> Result<()> {
        let channel = channel.map(shortened);
        self.at_commit(
            database,
            match (channel, listens) {
                (Some(channel), true) => Act::Listen(channel),
                (channel, _) => Act::Unlisten(channel),
            },
        )
    }

    /// NOTIFY, and `pg_notify`.
    ///
    /// Errors: 22023 for names and texts of other lengths, 54000 if those who listen do not read.
    pub(super) fn notify(&mut self, database: &Database, channel: &str, payload: &str) -> Result<()> {
        match (channel.len(), payload.len()) {
            (0, _) => return fail("22023", "channel name cannot be empty"),
            (NAME_BYTES.., _) => return fail("22023", "channel name too long"),
            (_, PAYLOAD_BYTES..) => return fail("22023", "payload string too long"),
            _ => {}
        }
        let notification = Notification {
            pid: self.facts.pid,
            channel: channel.into(),
            payload: payload.into(),
        };
        if !database
            .channels
            .has_room((&self.facts.database, channel), notification.weight())
        {
            return fail("54000", "too many notifications in the NOTIFY queue");
        }
        self.at_commit(database, Act::Notify(notification))
    }

    /// Does something at once, or when the transaction that the session is in commits.
    fn at_commit(&mut self, database: &Database, act: Act) -> Result<()> {
        match &mut self.block {
            Some(block) => {
                block.said_bytes += act.weight();
                if block.said_bytes > WAITING_BYTES_MAX {
                    return fail("54000", "too many notifications in one transaction");
                }
                block.said.push((block.savepoints.len(), act));
                Ok(())
            }
            None => self.settle_said(database, vec![act]),
        }
    }

    /// Does what a transaction that has committed wants to be heard, and to hear. What it says twice is said once.
    pub(super) fn settle_said(&mut self, database: &Database, acts: Vec<Act>) -> Result<()> {
        self.facts.settle(database)?;
        let (db, id) = (self.facts.database.clone(), self.slot.id);
        let (mut said, mut once) = (Vec::new(), HashSet::new());
        for act in acts {
            match act {
                Act::Listen(channel) => {
                    let mailbox = self.mailbox.get_or_insert_with(Arc::default);
                    database.channels.listen((&db, &channel), id, mailbox)?;
                }
                Act::Unlisten(channel) => database.channels.unlisten(&db, channel.as_deref(), id),
                Act::Notify(notification) => {
                    if once.insert(notification.clone()) {
                        said.push(notification);
                    }
                }
            }
        }
        database.channels.notify(&db, said);
        Ok(())
    }

    /// The session hears nothing any more.
    pub(super) fn listen_no_more(&mut self, database: &Database) {
        if self.mailbox.take().is_some() {
            database.channels.unlisten(&self.facts.database, None, self.slot.id);
        }
    }

    /// Sends what the session was told, unless it is in a transaction.
    pub fn tell_heard(&mut self, out: &mut Vec<u8>) {
        let mailbox = self.mailbox.as_ref().filter(|_| self.block.is_none());
        for own in mailbox.into_iter().flat_map(|mailbox| mailbox.take()) {
            backend::notification(out, own.pid, &own.channel, &own.payload);
        }
    }

    /// How long the session may rest now, and the error that ends it then; `None` for ever.
    pub fn may_rest(&self) -> Option<(Duration, Error)> {
        // Between the messages of a statement, and while a file comes, it does not rest.
        if !self.rests {
            return None;
        }
        settings::rest(&self.facts.settings, self.block.is_some())
    }

    /// The mailbox of a session that is to be told at once what comes: it listens, and is in no transaction.
    pub fn hears(&self) -> Option<&Mailbox> {
        self.mailbox.as_deref().filter(|_| self.block.is_none())
    }
}
