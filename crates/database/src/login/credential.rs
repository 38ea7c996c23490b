//! Stored credentials: enough to verify that somebody knows the password, not enough to log in with.
//!
//! A user's document holds one for each mechanism, in MongoDB's form:
//!
//! ```text
//! {iterationCount: 15000, salt: base64, storedKey: base64, serverKey: base64}
//! ```

use super::mechanism::{ITERATIONS_MIN, Mechanism};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ctutils::CtEq;
use nestor_model::number::safe_i64;
use nestor_model::{DocRef, Document, Result, ValueRef, doc};
use std::fmt;

/// The stored credential of one password for one mechanism.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// Rounds of PBKDF2.
    pub iterations: u32,
    /// Salt.
    pub salt: Vec<u8>,
    /// Hash of the client's key.
    pub(super) stored_key: Vec<u8>,
    /// The key by which the server proves that it has a credential.
    pub(super) server_key: Vec<u8>,
    /// It belongs to nobody and stands in for the credential of a user that does not exist.
    pub(super) is_decoy: bool,
}

/// Keys are not printed.
impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Credential");
        out.field("mechanism", &self.mechanism)
            .field("iterations", &self.iterations);
        out.finish_non_exhaustive()
    }
}

impl Credential {
    /// The credential of a password. `password` is what [`Mechanism::password`] makes of it, or MongoDB's digest that a client made.
    pub fn new(mechanism: Mechanism, password: &str, salt: &[u8], iterations: u32) -> Self {
        let salted = mechanism.salted(password.as_bytes(), salt, iterations);
        let client_key = mechanism.hmac(&salted, b"Client Key");
        Self {
            mechanism,
            iterations,
            salt: salt.to_vec(),
            stored_key: mechanism.hash(&client_key),
            server_key: mechanism.hmac(&salted, b"Server Key"),
            is_decoy: false,
        }
    }

    /// What is shown in place of the credential of a user that has none. The same name gets the same salt as long as `secret` stays
    /// the same, as that of a real user would; no password fits.
    pub fn decoy((mechanism, iterations): (Mechanism, u32), secret: &[u8; 32], db: &str, user: &str) -> Self {
        let derive = |what: &str| {
            // Lengths keep `a.b` + `c` apart from `a` + `b.c`.
            let name = format!("{what} {} {db} {user}", db.len());
            Mechanism::ScramSha256.hmac(secret, name.as_bytes())
        };
        let mut salt = derive(&format!("salt {}", mechanism.name()));
        salt.truncate(mechanism.salt_bytes());
        Self {
            mechanism,
            iterations,
            salt,
            stored_key: mechanism.hash(&derive("stored key")),
            server_key: mechanism.hash(&derive("server key")),
            is_decoy: true,
        }
    }

    /// Reads a verifier as PostgreSQL writes it, `SCRAM-SHA-256$iterations:salt$storedKey:serverKey`; `Some(None)` when it has too few iterations
    /// or is damaged, `None` for what is none.
    pub fn of_verifier(text: &str) -> Option<Option<Self>> {
        let rest = text.strip_prefix("SCRAM-SHA-256$")?;
        let (beginning, keys) = rest.split_once('$')?;
        let ((iterations, salt), (stored, server)) = (beginning.split_once(':')?, keys.split_once(':')?);
        let document = doc! {
            "iterationCount": iterations.parse::<i64>().ok()?,
            "salt": salt,
            "storedKey": stored,
            "serverKey": server,
        };
        Some(Self::from_document(Mechanism::ScramSha256, document.as_ref()))
    }

    /// Whether nobody has it.
    pub fn is_decoy(&self) -> bool {
        self.is_decoy
    }

    /// Whether the credential is that of this password. It takes as long for a credential that belongs to nobody.
    pub fn is_of(&self, user: &str, password: &str) -> bool {
        let prepared = self.mechanism.password(user, password);
        let is_prepared = prepared.is_ok();
        let made = Self::new(
            self.mechanism,
            &prepared.unwrap_or_default(),
            &self.salt,
            self.iterations,
        );
        let is_same = made.stored_key.ct_eq(&self.stored_key);
        is_same.to_bool() && is_prepared && !self.is_decoy
    }

    /// As it is stored.
    pub fn to_document(&self) -> Document {
        doc! {
            "iterationCount": i32::try_from(self.iterations).unwrap_or(i32::MAX),
            "salt": STANDARD.encode(&self.salt),
            "storedKey": STANDARD.encode(&self.stored_key),
            "serverKey": STANDARD.encode(&self.server_key),
        }
    }

    /// Reads what [`Credential::to_document`] wrote, or MongoDB did; `None` when it is anything else.
    pub fn from_document(mechanism: Mechanism, doc: DocRef<'_>) -> Option<Self> {
        let bytes = |name: &str| STANDARD.decode(doc.get(name)?.as_str()?).ok();
        let key = |name: &str| bytes(name).filter(|key| key.len() == mechanism.hash_bytes());
        let iterations = doc.get("iterationCount").and_then(safe_i64)?;
        Some(Self {
            mechanism,
            iterations: u32::try_from(iterations).ok().filter(|n| *n >= ITERATIONS_MIN)?,
            salt: bytes("salt").filter(|salt| !salt.is_empty())?,
            stored_key: key("storedKey")?,
            server_key: key("serverKey")?,
            is_decoy: false,
        })
    }
}

/// The credentials of a user's document, each under the name of its mechanism. Those that cannot be read are left out.
pub fn of_user(credentials: Option<ValueRef<'_>>) -> Vec<Credential> {
    let Some(credentials) = credentials.and_then(ValueRef::as_document) else {
        return Vec::new();
    };
    let read = |mechanism: Mechanism| {
        let stored = credentials.get(mechanism.name())?.as_document()?;
        Credential::from_document(mechanism, stored)
    };
    Mechanism::ALL.into_iter().filter_map(read).collect()
}

/// Credentials for a password, one for each mechanism. `digested` is set when `password` is MongoDB's digest already.
///
/// Errors: 2 for a password that cannot be prepared, 1 when there is no randomness.
pub fn make(mechanisms: &[(Mechanism, u32)], user: &str, password: &str, digested: bool) -> Result<Vec<Credential>> {
    let mut out = Vec::new();
    for &(mechanism, iterations) in mechanisms {
        let salt: [u8; 28] = super::secret_bytes()?;
        let password = match digested {
            true => password.to_owned(),
            false => mechanism.password(user, password)?,
        };
        let salt = &salt[..mechanism.salt_bytes().min(salt.len())];
        out.push(Credential::new(mechanism, &password, salt, iterations));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verifiers_of_postgresql() {
        let made = Credential::new(Mechanism::ScramSha256, "p", &[7; 16], ITERATIONS_MIN);
        let [salt, stored, server] =
            [&made.salt, &made.stored_key, &made.server_key].map(|bytes| STANDARD.encode(bytes));
        let text = |iterations: u32| format!("SCRAM-SHA-256${iterations}:{salt}${stored}:{server}");
        assert_eq!(Credential::of_verifier(&text(ITERATIONS_MIN)), Some(Some(made)));
        assert_eq!(Credential::of_verifier(&text(4096)), Some(None));
        assert_eq!(Credential::of_verifier("SCRAM-SHA-256$1:a"), None);
    }

    #[test]
    fn credentials_are_read_back_and_nothing_else_is() {
        let credential = Credential::new(Mechanism::ScramSha256, "p", &[7; 28], ITERATIONS_MIN);
        let stored = credential.to_document();
        let read = |doc: &Document| Credential::from_document(Mechanism::ScramSha256, doc.as_ref());
        assert_eq!(read(&stored), Some(credential));
        for (field, value) in [
            ("iterationCount", 4_999.into()),
            ("storedKey", "AA==".into()),
            ("salt", "?".into()),
        ] {
            let mut wrong = stored.clone();
            let value: nestor_model::Value = value;
            wrong.set(field, value);
            assert_eq!(read(&wrong), None, "{field}");
        }
    }

    #[test]
    fn decoys_keep_their_salt_and_differ_by_name() {
        let secret = [1; 32];
        let of = |db: &str, user: &str| Credential::decoy((Mechanism::ScramSha1, 10_000), &secret, db, user);
        assert_eq!(of("a", "u"), of("a", "u"));
        assert_ne!(of("a", "u").salt, of("a", "v").salt);
        assert_ne!(of("a", "b c").salt, of("a b", "c").salt);
        assert_eq!(of("a", "u").salt.len(), Mechanism::ScramSha1.salt_bytes());
    }

    #[test]
    fn keys_are_not_printed() {
        let credential = Credential::decoy((Mechanism::ScramSha256, 15_000), &[3; 32], "d", "u");
        let printed = format!("{credential:?}");
        assert_eq!(printed, "Credential { mechanism: ScramSha256, iterations: 15000, .. }");
    }
}
