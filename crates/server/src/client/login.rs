//! The client's side of logging in: SCRAM, and X.509 where the connection's certificate says who one is.
//!
//! Source: RFC 5802, RFC 7677; driver specification "Authentication".

use super::credentials::{Credentials, Way};
use super::message::command_message;
use super::{ClientError, Connection, Result, refusal};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nestor_database::login::mechanism::Mechanism;
use nestor_database::login::nonce;
use nestor_model::{Document, RawDocBuf, Value, ValueRef, doc};

/// Fewest iterations that a server may ask for: with fewer the proof would give the password away.
const ITERATIONS_MIN: u32 = 4096;

/// Logs in. `offered`: the mechanisms that the server has for the user.
pub fn log_in(connection: &mut Connection, credentials: &Credentials, offered: &[Mechanism]) -> Result<()> {
    let fixed = match credentials.way {
        Way::Certificate => {
            let mut command = doc! { "authenticate": 1, "mechanism": "MONGODB-X509" };
            command.push("user", credentials.user.as_deref().map(Value::from));
            command.push("$db", "$external");
            send(connection, &command)?;
            return Ok(());
        }
        Way::Password(fixed) => fixed,
    };
    let best = [Mechanism::ScramSha256, Mechanism::ScramSha1]
        .into_iter()
        .find(|mechanism| offered.contains(mechanism));
    let mechanism = fixed.or(best).unwrap_or(Mechanism::ScramSha256);
    let (user, password) = match (&credentials.user, &credentials.password) {
        (Some(user), Some(password)) => (user.as_str(), password.as_str()),
        _ => return Err(ClientError::Uri("a user and a password are wanted".into())),
    };
    let secret = mechanism.password(user, password);
    let secret = secret.map_err(|error| ClientError::Uri(error.to_string()))?;
    let nonce = nonce().map_err(|error| ClientError::Uri(error.to_string()))?;
    let exchange = Exchange::begin(mechanism, user, &secret, &nonce);
    let start = doc! {
        "saslStart": 1,
        "mechanism": mechanism.name(),
        "payload": binary(exchange.first()),
        "options": doc! { "skipEmptyExchange": true },
        "$db": credentials.source.as_str(),
    };
    let reply = send(connection, &start)?;
    let (proof, expected) = exchange.prove(&payload(&reply)?).ok_or_else(distrusted)?;
    let go_on = |reply: &RawDocBuf, payload: String| {
        let id = reply.as_raw().get("conversationId").map(Value::from);
        let mut command = doc! { "saslContinue": 1 };
        command.push("conversationId", id);
        command.push("payload", binary(payload));
        command.push("$db", credentials.source.as_str());
        command
    };
    let reply = send(connection, &go_on(&reply, proof))?;
    if payload(&reply)? != expected {
        return Err(distrusted());
    }
    let is_done = |reply: &RawDocBuf| reply.as_raw().get("done").is_some_and(|done| done.truthy());
    if !is_done(&reply) {
        let reply = send(connection, &go_on(&reply, String::new()))?;
        if !is_done(&reply) {
            return Err(distrusted());
        }
    }
    Ok(())
}

/// The server does not know the password either, or does not keep to the protocol.
fn distrusted() -> ClientError {
    ClientError::Protocol("it did not prove that it knows the user".into())
}

fn send(connection: &mut Connection, command: &Document) -> Result<RawDocBuf> {
    let reply = connection.exchange(&mut command_message(command.to_raw().as_raw(), None))?;
    match refusal(reply.as_raw()) {
        Some(error) => Err(error),
        None => Ok(reply),
    }
}

fn binary(text: String) -> Value {
    let bytes = text.into_bytes();
    Value::from(ValueRef::Binary {
        subtype: 0,
        bytes: &bytes,
    })
}

fn payload(reply: &RawDocBuf) -> Result<String> {
    match reply.as_raw().get("payload") {
        Some(ValueRef::Binary { bytes, .. }) => {
            String::from_utf8(bytes.to_vec()).map_err(|error| ClientError::Protocol(error.to_string()))
        }
        _ => Err(ClientError::Protocol("there is no payload".into())),
    }
}

/// The client's first message has been made.
struct Exchange<'s> {
    mechanism: Mechanism,
    secret: &'s str,
    nonce: &'s str,
    /// The first message without its header, which both sides sign.
    bare: String,
}

impl<'s> Exchange<'s> {
    fn begin(mechanism: Mechanism, user: &str, secret: &'s str, nonce: &'s str) -> Self {
        let user = user.replace('=', "=3D").replace(',', "=2C");
        Self {
            mechanism,
            secret,
            nonce,
            bare: format!("n={user},r={nonce}"),
        }
    }

    fn first(&self) -> String {
        format!("n,,{}", self.bare)
    }

    /// The proof, and what the server then has to answer; `None` for a challenge that one does not answer.
    fn prove(&self, challenge: &str) -> Option<(String, String)> {
        let mut parts = challenge.split(',');
        let nonce = parts.next()?.strip_prefix("r=")?;
        let salt = STANDARD.decode(parts.next()?.strip_prefix("s=")?).ok()?;
        let iterations: u32 = parts.next()?.strip_prefix("i=")?.parse().ok()?;
        if !nonce.starts_with(self.nonce) || nonce == self.nonce || iterations < ITERATIONS_MIN {
            return None;
        }
        let mechanism = self.mechanism;
        let salted = mechanism.salted(self.secret.as_bytes(), &salt, iterations);
        let client_key = mechanism.hmac(&salted, b"Client Key");
        let without_proof = format!("c=biws,r={nonce}");
        let signed = format!("{},{challenge},{without_proof}", self.bare);
        let signature = mechanism.hmac(&mechanism.hash(&client_key), signed.as_bytes());
        let proof: Vec<u8> = client_key.iter().zip(&signature).map(|(a, b)| a ^ b).collect();
        let server_key = mechanism.hmac(&salted, b"Server Key");
        let answer = mechanism.hmac(&server_key, signed.as_bytes());
        Some((
            format!("{without_proof},p={}", STANDARD.encode(proof)),
            format!("v={}", STANDARD.encode(answer)),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 5802, section 5, and RFC 7677, section 3.
    #[test]
    fn vectors_of_the_rfcs() {
        let sha1 = Exchange::begin(Mechanism::ScramSha1, "user", "pencil", "fyko+d2lbbFgONRv9qkxdawL");
        assert_eq!(sha1.first(), "n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL");
        let challenge = "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096";
        let (proof, answer) = sha1.prove(challenge).expect("a good challenge");
        assert!(proof.ends_with(",p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts="), "{proof}");
        assert_eq!(answer, "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=");
        let sha256 = Exchange::begin(Mechanism::ScramSha256, "user", "pencil", "rOprNGfwEbeRWgbNEkqO");
        let challenge = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        let (proof, answer) = sha256.prove(challenge).expect("a good challenge");
        assert!(
            proof.ends_with(",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="),
            "{proof}"
        );
        assert_eq!(answer, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    }

    #[test]
    fn challenges_that_are_not_answered() {
        let exchange = Exchange::begin(Mechanism::ScramSha256, "a,b=c", "pencil", "abc");
        assert_eq!(exchange.first(), "n,,n=a=2Cb=3Dc,r=abc");
        for challenge in [
            "",
            "r=abc,s=QSXCR+Q6sek8bf92,i=4096",
            "r=abX1,s=QSXCR+Q6sek8bf92,i=4096",
            "r=abc1,s=?,i=4096",
            "r=abc1,s=QSXCR+Q6sek8bf92,i=1",
            "r=abc1,s=QSXCR+Q6sek8bf92",
        ] {
            assert!(exchange.prove(challenge).is_none(), "{challenge}");
        }
    }
}
