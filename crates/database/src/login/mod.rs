//! Logging in: mechanisms, what is stored of passwords, and the exchange of messages by which a client proves that it knows one.
//!
//! Reading order: [`mechanism`], [`saslprep`], [`credential`] (what is stored), [`scram`] (the exchange). All of it is computation on
//! bytes: randomness is handed in, users are looked up by whoever asks.

pub mod credential;
pub mod mechanism;
pub mod saslprep;
pub mod scram;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use nestor_model::{Error, ErrorCode};

/// The one error of every attempt to log in that fails, whatever the reason: who tries does not learn which part was wrong.
pub fn failed() -> Error {
    Error::new(ErrorCode::AuthenticationFailed, "Authentication failed.")
}

/// Bytes that nobody can guess, from the operating system.
///
/// Errors: 1 when it has none to give.
pub fn secret_bytes<const N: usize>() -> nestor_model::Result<[u8; N]> {
    let mut bytes = [0; N];
    match getrandom::fill(&mut bytes) {
        Ok(()) => Ok(bytes),
        Err(error) => nestor_model::bail!(InternalError, "no randomness: {error}"),
    }
}

/// The server's part of the nonce of an exchange.
///
/// Errors: 1 when there is no randomness.
pub fn nonce() -> nestor_model::Result<String> {
    Ok(STANDARD.encode(secret_bytes::<24>()?))
}
