//! The messages of a login.

use super::input::Input;
use super::{Ended, fatal};
use crate::serve::Server;
use crate::stream::Stream;
use nestor_command::Connection;
use nestor_database::parameters::Param;
use nestor_sql::protocol::{backend, frontend};
use nestor_sql::session::login::{self, Login, MECHANISM, Peers};
use std::time::Duration;

/// Longest message of a login, in bytes.
const MESSAGE_BYTES_MAX: usize = 10_000;

/// Has the client prove that it is `user`, before it may say anything else. Failures are told after `authFailedDelayMs`, so that
/// passwords cannot be guessed quickly.
pub async fn log_in(
    server: &Server,
    conn: &Connection,
    stream: &mut Stream,
    input: &mut Input,
    (user, db): (&str, &str),
) -> Result<Login, Ended> {
    let mut out = Vec::new();
    backend::login(&mut out, 10, format!("{MECHANISM}\0\0").as_bytes());
    stream.write_whole(&out).await?;
    let peers = Peers {
        host: &conn.host,
        peer: &conn.peer,
    };
    let (tag, body) = input.message(stream, MESSAGE_BYTES_MAX).await?;
    let begun = frontend::login_begins(tag, body, MECHANISM)
        .and_then(|message| login::begin(&server.service, (user, db), message));
    let (exchange, challenge) = match begun {
        Ok(begun) => begun,
        Err(error) => return Err(fatal(stream, &error).await),
    };
    out.clear();
    backend::login(&mut out, 11, challenge.as_bytes());
    stream.write_whole(&out).await?;
    let (tag, body) = input.message(stream, MESSAGE_BYTES_MAX).await?;
    let finished = frontend::login_goes_on(tag, body)
        .and_then(|message| login::finish(&server.service, &conn.slot, peers, exchange, message));
    match finished {
        Ok((login, proof)) => {
            out.clear();
            backend::login(&mut out, 12, proof.as_bytes());
            stream.write_whole(&out).await?;
            Ok(login)
        }
        Err(error) => {
            let delay_ms = server.service.node.parameters.number(Param::AuthFailedDelayMillis);
            let delay = Duration::from_millis(u64::try_from(delay_ms).unwrap_or(0));
            tokio::time::sleep(delay).await;
            Err(fatal(stream, &error).await)
        }
    }
}
