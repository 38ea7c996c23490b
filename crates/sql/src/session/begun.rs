//! What a session begins with: the settings of its database and its role, and above them those that its client gives.

use super::{Session, acting};
use crate::error::state;
use crate::notices;
use crate::settings;
use nestor_database::Database;
use nestor_database::users::{UserName, user_document};
use nestor_database::write::begun;
use nestor_model::namespace::ADMIN;
use nestor_model::{Error, Result};
use std::sync::Arc;

impl Session {
    /// Begins with the settings that are kept for the user and the database, of which those that cannot be set are told of, and those that the client
    /// gives. Call it once it is known who has logged in.
    ///
    /// Errors: those of the client's settings, and of reading.
    pub fn begin_with(&mut self, database: &Database, given: &[(String, String)], out: &mut Vec<u8>) -> Result<()> {
        let snapshot = database.engine.snapshot();
        let user = match &self.login {
            Some(login) => login.account.name.clone(),
            None => {
                let own = UserName::new(&self.facts.user, &self.facts.database);
                match user_document(&snapshot, &own)? {
                    Some(_) => own,
                    None => UserName::new(&self.facts.user, ADMIN),
                }
            }
        };
        let before = self.facts.settings.clone();
        let mut role = None;
        for (name, value) in begun::of_session(&snapshot, &user, &self.facts.database)? {
            if name == acting::ROLE {
                role = Some(value);
            } else if let Err(wrong) = settings::set(&mut self.facts.settings, &name, Some(&value)) {
                warn(&wrong);
            }
        }
        for (name, value) in given {
            match name.to_lowercase() == acting::ROLE {
                true => role = Some(value.clone()),
                false => settings::set(&mut self.facts.settings, name, Some(value))?,
            }
        }
        self.settings_changed();
        if let Some(role) = role
            && let Err(wrong) = self.change_setting(database, acting::ROLE, Some(&role), false)
        {
            warn(&wrong);
        }
        let is_other = |(name, value): &(&String, &String)| before.get(*name) != Some(*value);
        let own = self.facts.settings.iter().filter(is_other);
        let own = own.filter(|(name, _)| *name != "is_superuser" && !name.starts_with("transaction_"));
        self.facts.begun = Arc::new(own.map(|(name, value)| (name.clone(), value.clone())).collect());
        self.tell(out);
        Ok(())
    }
}

/// A setting that is kept and cannot be set any more keeps nobody from coming in.
fn warn(wrong: &Error) {
    notices::warn(&state(wrong), wrong.message());
}
