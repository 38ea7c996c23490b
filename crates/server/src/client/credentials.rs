//! Who a tool logs in as, and where its password comes from: the URI, a file, the environment or the terminal.

use nestor_database::login::mechanism::Mechanism;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use std::fmt;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use zeroize::Zeroizing;

/// The variable of the environment that has a password.
pub const VARIABLE: &str = "NESTOR_PASSWORD";

/// How to log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By a password, with this mechanism or that which the server prefers.
    Password(Option<Mechanism>),
    /// By the certificate of the connection.
    Certificate,
}

/// Who to log in as.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The user; of a certificate it may be left to the server.
    pub user: Option<String>,
    /// The password, if it is known already.
    pub password: Option<Zeroizing<String>>,
    /// The database that the user belongs to.
    pub source: String,
    /// By what.
    pub way: Way,
}

/// Passwords are not printed.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("user", &self.user)
            .field("source", &self.source)
            .field("way", &self.way)
            .finish_non_exhaustive()
    }
}

impl Credentials {
    /// Looks for the password, if one is needed and not known: in `file`, in the environment, else it is asked for at the terminal.
    ///
    /// Errors: a file that cannot be read, and no terminal to ask at.
    pub fn complete(&mut self, file: Option<&Path>) -> Result<(), String> {
        let is_needed = matches!(self.way, Way::Password(_));
        if file.is_some() && (!is_needed || self.password.is_some()) {
            return Err("a password file is given, but no password is wanted".to_owned());
        }
        if !is_needed || self.password.is_some() {
            return Ok(());
        }
        let user = self.user.as_deref().unwrap_or_default();
        self.password = Some(match (file, std::env::var(VARIABLE)) {
            (Some(file), _) => of_file(file)?,
            (None, Ok(password)) => Zeroizing::new(password),
            (None, Err(_)) => asked(user)?,
        });
        Ok(())
    }
}

/// The first line of a file.
fn of_file(path: &Path) -> Result<Zeroizing<String>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let text = Zeroizing::new(text);
    Ok(Zeroizing::new(text.lines().next().unwrap_or_default().to_owned()))
}

/// What is typed at the terminal, which does not show it.
fn asked(user: &str) -> Result<Zeroizing<String>, String> {
    /// Lets the terminal show what is typed again.
    struct Silent<'t>(&'t File, rustix::termios::Termios);
    impl Drop for Silent<'_> {
        fn drop(&mut self) {
            let _ = tcsetattr(self.0, OptionalActions::Flush, &self.1);
        }
    }
    let no_terminal = |error: &dyn fmt::Display| {
        format!(
            "the password of {user} is wanted, and there is no terminal to ask at ({error}): give it in {VARIABLE} or in a file"
        )
    };
    let options = File::options().read(true).write(true).open("/dev/tty");
    let mut terminal = options.map_err(|error| no_terminal(&error))?;
    let before = tcgetattr(&terminal).map_err(|error| no_terminal(&error))?;
    let reader = terminal.try_clone().map_err(|error| no_terminal(&error))?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    let mut line = Zeroizing::new(String::new());
    {
        let _silent = Silent(&reader, before);
        tcsetattr(&reader, OptionalActions::Flush, &silent).map_err(|error| no_terminal(&error))?;
        // The echo is off before the prompt: the first letters of somebody who types ahead must not be shown either.
        let _ = write!(terminal, "password of {user}: ");
        BufReader::new(&reader)
            .read_line(&mut line)
            .map_err(|error| no_terminal(&error))?;
    }
    let _ = writeln!(terminal);
    Ok(Zeroizing::new(line.trim_end_matches(['\r', '\n']).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_of_a_file_is_its_first_line_and_is_not_printed() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("password");
        std::fs::write(&path, "s3cret\nmore\n").expect("it is written");
        let mut credentials = Credentials {
            user: Some("u".into()),
            password: None,
            source: "admin".into(),
            way: Way::Password(None),
        };
        credentials.complete(Some(&path)).expect("there is a file");
        assert_eq!(
            credentials.password.as_ref().map(|password| password.as_str()),
            Some("s3cret")
        );
        assert!(!format!("{credentials:?}").contains("s3cret"));
        assert!(credentials.complete(Some(&path)).is_err(), "it is known");
        assert!(credentials.complete(None).is_ok());
        credentials.password = None;
        assert!(credentials.complete(Some(&dir.path().join("none"))).is_err());
    }
}
