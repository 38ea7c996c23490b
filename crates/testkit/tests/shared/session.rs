//! Statements of SQL sent through a session, and its messages taken apart.

use crate::database::Database;
use nestor_sql::protocol::frontend::Message;
use nestor_sql::session::Session;

/// What a statement answered.
pub enum Answer {
    /// Its rows, each as a line, and its tag.
    Rows(Vec<String>, String),
    /// The state and the message.
    Error(String, String),
}

/// Takes the messages of an answer apart.
pub fn read(mut bytes: &[u8]) -> Answer {
    let (mut rows, mut failed, mut tag_of) = (Vec::new(), None, String::new());
    while let Some((tag, rest)) = bytes.split_first() {
        let length = u32::from_be_bytes(rest[..4].try_into().expect("four bytes")) as usize;
        let body = &rest[4..length];
        bytes = &rest[length..];
        match tag {
            b'D' => rows.push(row(body)),
            b'C' => tag_of = String::from_utf8_lossy(body).trim_end_matches('\0').to_owned(),
            b'E' => {
                let part = |name: u8| {
                    let parts = body.split(|byte| *byte == 0);
                    let found = parts
                        .filter_map(|part| part.split_first())
                        .find(|(own, _)| **own == name);
                    found.map_or_else(String::new, |(_, text)| String::from_utf8_lossy(text).into_owned())
                };
                failed = Some((part(b'C'), part(b'M')));
            }
            _ => {}
        }
    }
    match failed {
        Some((state, message)) => Answer::Error(state, message),
        None => Answer::Rows(rows, tag_of),
    }
}

fn row(body: &[u8]) -> String {
    let mut rest = &body[2..];
    let mut values = Vec::new();
    while !rest.is_empty() {
        let length = i32::from_be_bytes(rest[..4].try_into().expect("four bytes"));
        rest = &rest[4..];
        match usize::try_from(length) {
            Err(_) => values.push("NULL".to_owned()),
            Ok(length) => {
                values.push(String::from_utf8_lossy(&rest[..length]).into_owned());
                rest = &rest[length..];
            }
        }
    }
    values.join(" | ")
}

/// What a session answers to a statement.
pub fn ask(database: &Database, session: &mut Session, sql: &str) -> Answer {
    let mut out = Vec::new();
    let mut flush = |_: &mut Vec<u8>| Ok(());
    session
        .receive(&database.service, Ok(Message::Query(sql)), &mut out, &mut flush)
        .expect("the connection goes on");
    read(&out)
}
