//! SET ROLE and SET SESSION AUTHORIZATION: a session goes on as another role, with the rights of that role and no others.
//!
//! Whom it acts as is what the settings `session_authorization` and `role` say, so that it ends with a transaction as they do, and
//! `set_config` changes it as well. Who may become whom depends on who has logged in.

use super::Session;
use crate::error::fail;
use nestor_database::Database;
use nestor_database::users::{Account, RoleName, UserName};
use nestor_model::Result;
use nestor_model::namespace::ADMIN;
use std::sync::Arc;

/// The setting of SET ROLE.
pub(super) const ROLE: &str = "role";
/// The setting of SET SESSION AUTHORIZATION.
pub(super) const AUTHORIZATION: &str = "session_authorization";

/// Whom a session acts as.
#[derive(Debug, Default)]
pub(super) struct Acting {
    /// The settings may say somebody else than the facts.
    pub(super) is_stale: bool,
    /// What is known of users and roles since the role's rights were looked up; `None` where it acts as who has logged in.
    generation: Option<u64>,
}

/// The rights of a role, or of the user who has them: of those of `admin`, whose members may become it. Who else has its name elsewhere is somebody else.
///
/// Errors: 22023.
fn role(database: &Database, name: &str) -> Result<Arc<Account>> {
    if let Some(account) = database.users.account(&UserName::new(name, ADMIN))?.0 {
        return Ok(account);
    }
    match database.users.account_of_role(name)? {
        Some(account) => Ok(Arc::new(account)),
        None => fail("22023", format!("role \"{name}\" does not exist")),
    }
}

impl Session {
    fn own_account(&self) -> Option<Arc<Account>> {
        self.login.as_ref().map(|login| login.account.clone())
    }

    fn said(&self, setting: &str) -> Option<&str> {
        let said = self.facts.settings.get(setting).map(String::as_str);
        said.filter(|said| !said.is_empty() && *said != "none")
    }

    /// The value of one of the two settings, as it is to be kept.
    ///
    /// Errors: 22023 for what is no role, 42501 for one that who has logged in may not become.
    pub(super) fn asked_for(&self, database: &Database, setting: &str, value: Option<&str>) -> Result<String> {
        let own = self.begun_by.as_str();
        let text = value.unwrap_or_default();
        let is_default = value.is_none();
        if setting == ROLE && (is_default || text == "none") {
            return Ok("none".to_owned());
        }
        if is_default || text == own {
            return Ok(own.to_owned());
        }
        let other = self.said(AUTHORIZATION).filter(|session| *session != own);
        let account = match other.filter(|_| setting == ROLE) {
            Some(session) if session == text => return Ok(text.to_owned()),
            Some(session) => Some(self.user(database, session)?),
            None => self.own_account(),
        };
        match setting == ROLE {
            true => role(database, text)?,
            false => self.user(database, text)?,
        };
        let may = account.is_none_or(|account| {
            let has = |role: &str| account.all_roles.contains(&RoleName::new(role, ADMIN));
            has("root") || setting == ROLE && has(text)
        });
        match may {
            true => Ok(text.to_owned()),
            false if setting == ROLE => fail("42501", format!("permission denied to set role \"{text}\"")),
            false => fail("42501", "permission denied to set session authorization"),
        }
    }

    /// The rights of another user: as whoever logs in with this name.
    ///
    /// Errors: 22023.
    fn user(&self, database: &Database, name: &str) -> Result<Arc<Account>> {
        match database.users.account(&UserName::new(name, &self.facts.database))?.0 {
            Some(account) => Ok(account),
            None => role(database, name),
        }
    }

    /// Goes on as the settings say, with the rights that this role has now. Costs nothing as long as that is who has logged in.
    ///
    /// Errors: 22023 for a role that is gone.
    pub(super) fn act(&mut self, database: &Database) -> Result<()> {
        let generation = self.acting.generation;
        let is_new = generation.is_some_and(|known| known != database.users.generation());
        if !self.acting.is_stale && !is_new {
            return Ok(());
        }
        let own = self.begun_by.clone();
        let session = self.said(AUTHORIZATION).map_or_else(|| own.clone(), str::to_owned);
        let role = self.said(ROLE).map_or_else(|| session.clone(), str::to_owned);
        let (account, generation) = match role == own {
            true => (self.own_account(), None),
            false => {
                let generation = database.users.generation();
                let account = match role == session {
                    true => self.user(database, &role)?,
                    false => self::role(database, &role)?,
                };
                (Some(account), Some(generation))
            }
        };
        (self.facts.user, self.facts.session_user) = (role, session);
        self.facts.account = account;
        self.acting = Acting {
            is_stale: false,
            generation,
        };
        let shown = if self.facts.is_superuser() { "on" } else { "off" };
        let before = self.facts.settings.insert("is_superuser".to_owned(), shown.to_owned());
        self.tells |= before.is_none_or(|before| before != shown);
        Ok(())
    }

    /// Who has logged in has other rights now, or the settings changed.
    pub(super) fn acts_anew(&mut self) {
        let says = |name: &str| self.said(name).is_some_and(|said| said != self.begun_by);
        self.acting.is_stale |= self.acting.generation.is_some() || says(ROLE) || says(AUTHORIZATION);
    }
}
