//! The client's side of logging in: SCRAM, and X.509 where the connection's certificate says who one is.
//!
//! Source: driver specification "Authentication".

use super::credentials::{Credentials, Way};
use super::message::command_message;
use super::scram::Exchange;
use super::{ClientError, Connection, Result, refusal};
use nestor_database::login::mechanism::Mechanism;
use nestor_database::login::nonce;
use nestor_model::{Document, RawDocBuf, Value, ValueRef, doc};

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
