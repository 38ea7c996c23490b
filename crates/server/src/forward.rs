//! Commands that a secondary has the primary run: over a connection of their own, which logs in with the set's key and goes on as the user who asked.

use crate::client::{ClientError, Connection, Credentials, Host, TlsClient, Uri, Way, command_message, refusal};
use crate::serve::ServeOptions;
use crate::tls::TlsMode;
use nestor_database::forward::Forward;
use nestor_database::login::mechanism::Mechanism;
use nestor_database::users::UserName;
use nestor_model::{Error, ErrorCode, RawDoc, RawDocBuf, Result, bail, doc};
use std::time::Duration;
use zeroize::Zeroizing;

/// How long a member may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// How often it is looked whether to go on waiting.
const LOOK: Duration = Duration::from_millis(200);

/// How members reach each other.
pub struct ToMembers {
    key: Option<Zeroizing<String>>,
    needs_login: bool,
    tls: Option<TlsClient>,
}

/// The key is not printed.
impl std::fmt::Debug for ToMembers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToMembers")
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

impl ToMembers {
    /// As the options of this member say; others have the same.
    pub fn new(options: &ServeOptions, key: Option<&str>) -> Self {
        let encrypts = |mode: TlsMode| matches!(mode, TlsMode::Require | TlsMode::Prefer);
        let tls = options.tls.as_ref().filter(|tls| encrypts(tls.mode));
        Self {
            key: key.map(|key| Zeroizing::new(key.to_owned())),
            needs_login: options.auth,
            tls: tls.map(|tls| TlsClient {
                ca_file: tls.ca_file.clone(),
                certificate_key_file: Some(tls.certificate_key_file.clone()),
            }),
        }
    }

    fn connect(&self, member: &str, user: Option<&UserName>) -> Result<Connection> {
        let mut uri: Uri = format!("mongodb://{member}/?directConnection=true")
            .parse()
            .map_err(unreachable)?;
        uri.connect_timeout = Some(CONNECT);
        uri.socket_timeout = Some(CONNECT);
        uri.tls.clone_from(&self.tls);
        if self.needs_login {
            let Some(key) = &self.key else {
                bail!(
                    NotWritablePrimary,
                    "not primary: where users log in, $out and $merge on a secondary need --keyFile, by which members log in"
                );
            };
            uri.credentials = Some(Credentials {
                user: Some("__system".into()),
                password: Some(key.clone()),
                source: "local".into(),
                way: Way::Password(Some(Mechanism::ScramSha256)),
            });
        }
        let host: Host = member
            .parse()
            .map_err(|_| unreachable(ClientError::Uri(member.into())))?;
        let (mut connection, _) = Connection::open(&uri, &host).map_err(unreachable)?;
        if let (true, Some(user)) = (self.needs_login, user) {
            let assume = doc! { "assumeUser": user.user.as_str(), "db": user.db.as_str(), "$db": "admin" };
            let reply = connection.exchange(&mut command_message(assume.to_raw().as_raw(), None));
            if let Some(error) = refusal(reply.map_err(unreachable)?.as_raw()) {
                return Err(unreachable(error));
            }
        }
        Ok(connection)
    }
}

fn unreachable(error: ClientError) -> Error {
    Error::new(
        ErrorCode::HostUnreachable,
        format!("the primary cannot be asked: {error}"),
    )
}

impl Forward for ToMembers {
    fn run(
        &self,
        member: &str,
        user: Option<&UserName>,
        command: RawDoc<'_>,
        check: &mut dyn FnMut() -> Result<()>,
    ) -> Result<RawDocBuf> {
        let mut connection = self.connect(member, user)?;
        connection
            .send(&mut command_message(command, None))
            .map_err(unreachable)?;
        while !connection.has_answer(LOOK).map_err(unreachable)? {
            check()?;
        }
        connection.receive().map_err(unreachable)
    }
}
