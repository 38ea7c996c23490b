//! The way from a member of a replica set to its primary, for what a secondary has the primary do. The server goes it; a library user has
//! none.

use crate::users::UserName;
use nestor_exec::interrupt::while_waiting;
use nestor_model::{RawDoc, RawDocBuf, Result, bail};
use std::fmt::Debug;
use std::sync::OnceLock;

/// The part of the process that sends commands to other members.
pub trait Forward: Debug + Send + Sync {
    /// Has the member of that name run a command, as that user if users log in, and returns its reply, whatever that says.
    ///
    /// `check` is asked several times a second whether to go on waiting. Errors: its own; 6 (`HostUnreachable`) if the member cannot be reached or the
    /// connection breaks; 10107 if users log in and this process has no key by which to log in for them.
    fn run(
        &self,
        member: &str,
        user: Option<&UserName>,
        command: RawDoc<'_>,
        check: &mut dyn FnMut() -> Result<()>,
    ) -> Result<RawDocBuf>;
}

/// The way, if there is one.
#[derive(Debug, Default)]
pub struct ToPrimary(OnceLock<Box<dyn Forward>>);

impl ToPrimary {
    /// From now on this is the way.
    pub fn set(&self, forward: Box<dyn Forward>) {
        // Once, when the process starts.
        let _ = self.0.set(forward);
    }

    /// Goes it, as [`Forward::run`] says; whoever waits for turns of long operations may go on meanwhile.
    ///
    /// Errors: 10107 if there is none.
    pub fn run(
        &self,
        member: &str,
        user: Option<&UserName>,
        command: RawDoc<'_>,
        check: &mut dyn FnMut() -> Result<()>,
    ) -> Result<RawDocBuf> {
        let Some(forward) = self.0.get() else {
            bail!(NotWritablePrimary, "not primary");
        };
        while_waiting(|| forward.run(member, user, command, check))
    }
}
