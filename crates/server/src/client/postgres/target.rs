//! `postgres://` connection strings, as far as our tools need them.
//!
//! Source: PostgreSQL's manual, "Connection Strings" and "Parameter Key Words" of libpq.

use super::super::credentials::{Credentials, Way};
use super::super::secure::TlsClient;
use super::super::uri::percent_decoded;
use super::super::{ClientError, Host, Result};
use nestor_database::login::mechanism::Mechanism;
use std::str::FromStr;
use zeroize::Zeroizing;

/// The port of PostgreSQL.
pub const PORT: u16 = 5432;

/// A server that speaks PostgreSQL's protocol, the database there, and who one is. Every option has its effect or is refused by name.
#[derive(Clone, Debug)]
pub struct Target {
    /// Where it listens.
    pub host: Host,
    /// The database to begin in.
    pub database: String,
    /// Who to log in as.
    pub user: String,
    /// What proves it; `None` until it is asked for.
    pub password: Option<Zeroizing<String>>,
    /// How the connection is encrypted, if it is.
    pub tls: Option<TlsClient>,
    /// What the server's logs call us.
    pub application: String,
}

impl Target {
    /// Looks for the password in `file`, in the environment, else asks for it at the terminal.
    ///
    /// Errors: those of [`Credentials::complete`].
    pub fn ask_password(&mut self, file: Option<&std::path::Path>) -> std::result::Result<(), String> {
        let mut credentials = Credentials {
            user: Some(self.user.clone()),
            password: self.password.take(),
            source: self.database.clone(),
            way: Way::Password(Some(Mechanism::ScramSha256)),
        };
        credentials.complete(file)?;
        self.password = credentials.password;
        Ok(())
    }
}

impl FromStr for Target {
    type Err = ClientError;

    fn from_str(text: &str) -> Result<Self> {
        // The text itself may have a password.
        parse(text).map_err(|reason| ClientError::Uri(format!("the connection string: {reason}")))
    }
}

fn parse(text: &str) -> std::result::Result<Target, String> {
    let rest = text
        .strip_prefix("postgres://")
        .or_else(|| text.strip_prefix("postgresql://"))
        .ok_or("it begins with postgres://")?;
    let decode = |text: &str| percent_decoded(text).ok_or("it is not percent-encoded");
    let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
    let (place, database) = rest.split_once('/').unwrap_or((rest, ""));
    let (login, place) = match place.rsplit_once('@') {
        Some((login, place)) => (Some(login), place),
        None => (None, place),
    };
    let (user, password) = match login.map(|login| login.split_once(':').map_or((login, None), |(u, p)| (u, Some(p)))) {
        Some((user, password)) => (Some(decode(user)?), password.map(decode).transpose()?),
        None => (None, None),
    };
    if place.contains(',') {
        return Err("a single host is wanted".into());
    }
    let database = decode(database)?;
    let mut target = Target {
        host: host(&decode(place)?)?,
        database: if database.is_empty() {
            "test".to_owned()
        } else {
            database
        },
        user: user.filter(|user| !user.is_empty()).unwrap_or_else(nobody),
        password: password.map(Zeroizing::new),
        tls: None,
        application: "nestor sql".to_owned(),
    };
    let mut mode = None;
    let mut files = TlsClient::default();
    for option in options.split('&').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let value = decode(value)?;
        match name {
            "sslmode" => mode = Some(value),
            "sslrootcert" => files.ca_file = Some(value.into()),
            "application_name" => target.application = value,
            "user" => target.user = value,
            "password" => target.password = Some(Zeroizing::new(value)),
            "dbname" => target.database = value,
            _ => return Err(format!("the option {name} is not supported")),
        }
    }
    target.tls = match mode.as_deref() {
        None if files == TlsClient::default() => None,
        None | Some("verify-full") => Some(files),
        Some("disable") if files == TlsClient::default() => None,
        Some("disable") => return Err("there are files for TLS, and sslmode=disable".into()),
        Some(mode @ ("allow" | "prefer" | "require" | "verify-ca")) => {
            return Err(format!(
                "sslmode={mode} does not verify who the server is: disable or verify-full is wanted"
            ));
        }
        Some(mode) => return Err(format!("there is no sslmode {mode}")),
    };
    Ok(target)
}

/// Who uses this machine, as other clients of PostgreSQL take it.
fn nobody() -> String {
    std::env::var("USER")
        .ok()
        .filter(|user| !user.is_empty())
        .unwrap_or_else(|| "nestor".to_owned())
}

fn host(place: &str) -> std::result::Result<Host, String> {
    if place.is_empty() {
        return Ok(Host::Tcp("127.0.0.1".to_owned(), PORT));
    }
    let with_port = match place.rsplit_once(':') {
        Some((_, port)) if !port.ends_with(']') => place.to_owned(),
        _ => format!("{place}:{PORT}"),
    };
    match with_port.parse() {
        Ok(host @ Host::Tcp(..)) => Ok(host),
        _ => Err("a host is written name:port or [address]:port".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_and_as_whom() {
        for (text, expected) in [
            ("postgres://u@a/db", "a:5432 db u"),
            ("postgresql://u:p%40@[::1]:7/x?application_name=y", "[::1]:7 x u"),
            ("postgres://u@/?dbname=z", "127.0.0.1:5432 z u"),
            ("postgres://u@a?sslmode=disable", "a:5432 test u"),
        ] {
            let target: Target = text.parse().expect(text);
            assert_eq!(format!("{} {} {}", target.host, target.database, target.user), expected);
        }
        let target: Target = "postgres://u:p%40@a".parse().expect("a target");
        assert_eq!(target.password.as_ref().map(|p| p.as_str()), Some("p@"));
        assert!(!format!("{:?}", "postgres://u:geheim@a,b".parse::<Target>()).contains("geheim"));
    }

    #[test]
    fn what_has_no_effect_is_refused() {
        for text in [
            "mysql://a",
            "postgres://a,b",
            "postgres://a:port",
            "postgres://a?sslmode=require",
            "postgres://a?sslmode=x",
            "postgres://a?sslmode=disable&sslrootcert=f",
            "postgres://a?target_session_attrs=any",
            "postgres://a/%zz",
        ] {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
        assert!(
            "postgres://a?sslmode=verify-full"
                .parse::<Target>()
                .is_ok_and(|target| target.tls.is_some())
        );
    }
}
