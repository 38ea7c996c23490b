//! The identity of a connection: the user who is logged in, and the state of an exchange that logs in.

use nestor_database::connections::Slot;
use nestor_database::login::mechanism::Mechanism;
use nestor_database::login::scram::Challenge;
use nestor_database::session_id::Owner;
use nestor_database::users::restriction::Ends;
use nestor_database::users::{Account, UserName, Users};
use nestor_model::Result;
use std::sync::Arc;

/// A user who is logged in.
#[derive(Clone, Debug)]
pub struct Login {
    /// The account of the user.
    pub account: Arc<Account>,
    /// The generation of [`Users`] that this is of.
    pub(crate) generation: u64,
}

/// The identity of a connection.
#[derive(Debug, Default)]
pub struct Identity {
    pub(crate) login: Option<Login>,
    /// Whose its sessions are.
    pub(crate) owner: Owner,
    pub(crate) exchange: Option<Exchange>,
    /// The client has failed to log in and is told so later.
    pub(crate) has_failed: bool,
}

/// An exchange that has begun.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// The user who wants to log in.
    pub name: UserName,
    /// By what.
    pub mechanism: Mechanism,
    /// How far it is.
    pub step: Step,
    /// The client wants no empty messages at the end.
    pub skips_empty: bool,
}

/// How far an exchange is.
#[derive(Debug)]
pub(crate) enum Step {
    /// The proof is waited for.
    Challenged(Challenge),
    /// The client has proved itself and has not said that it believes us; who it is, is settled then.
    Proved,
}

impl Identity {
    /// The user who is logged in.
    pub fn login(&self) -> Option<&Login> {
        self.login.as_ref()
    }

    /// The account of the user who is logged in.
    pub fn account(&self) -> Option<&Arc<Account>> {
        self.login.as_ref().map(|login| &login.account)
    }

    /// Is who that account is of, without a proof.
    #[cfg(test)]
    pub(crate) fn assume(&mut self, account: Arc<Account>, generation: u64) {
        self.login = Some(Login { account, generation });
    }

    /// Whose its sessions are: nobody's where nobody has to log in.
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// Logs out.
    pub fn log_out(&mut self, slot: &Slot) {
        *self = Self::default();
        *crate::lock(&slot.user) = None;
    }

    /// Brings what is known of who is logged in up to date. A user who is gone, in whose place there is another one, or who may not come
    /// over this connection any more, is logged in no more. Costs a few loads while no user or role changes.
    ///
    /// Errors: those of reading users.
    pub fn refresh(&mut self, users: &Users, slot: &Slot, host: &str) -> Result<()> {
        let Some(login) = &mut self.login else {
            return Ok(());
        };
        if login.generation == users.generation() {
            return Ok(());
        }
        let (account, generation) = users.account(&login.account.name)?;
        let ends = Ends::parse(&slot.peer, host);
        match account.filter(|account| account.id == login.account.id && account.may_come_by(ends)) {
            Some(account) => *login = Login { account, generation },
            None => self.log_out(slot),
        }
        Ok(())
    }
}
