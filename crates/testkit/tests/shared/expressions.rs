//! Asks the expressions of `tests/sql/expressions` and compares with what PostgreSQL answered: types of the columns and rows as text, or the
//! SQLSTATE.
//!
//! ```text
//! 7 % 4
//! = integer: 3
//!
//! 7 % 0
//! = ! 22012
//! ```
//!
//! `known.txt` there lists those that Nestor answers otherwise, with their file. Both directions count: what is listed and answers as PostgreSQL
//! does has to leave the list. `NESTOR_BLESS=1` writes it again.

use crate::database::Database;
use crate::session::{Answer, read};
use nestor_sql::protocol::frontend::Message;
use nestor_sql::session::Session;
use nestor_sql::types::Type;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The types of the columns, from the message that describes the rows.
fn types(mut bytes: &[u8]) -> Option<String> {
    while let Some((tag, rest)) = bytes.split_first() {
        let length = u32::from_be_bytes(rest.get(..4)?.try_into().ok()?) as usize;
        let body = rest.get(4..length)?;
        bytes = &rest[length..];
        if *tag != b'T' {
            continue;
        }
        let mut body = &body[2..];
        let mut names = Vec::new();
        while !body.is_empty() {
            let name = body.iter().position(|byte| *byte == 0)?;
            let oid = u32::from_be_bytes(body.get(name + 7..name + 11)?.try_into().ok()?);
            names.push(Type::of_oid(oid).map_or_else(|| oid.to_string(), |ty| ty.to_string()));
            body = &body[name + 19..];
        }
        return Some(names.join(", "));
    }
    None
}

fn statement(line: &str) -> String {
    const WORDS: &[&str] = &[
        "SELECT", "WITH", "VALUES", "TABLE", "SET", "RESET", "CREATE", "DROP", "INSERT",
    ];
    match line.split_whitespace().next() {
        Some(word) if WORDS.contains(&word) => line.to_owned(),
        _ => format!("SELECT {line}"),
    }
}

fn answer(database: &Database, session: &mut Session, line: &str) -> String {
    let mut out = Vec::new();
    session
        .receive(
            &database.service,
            Ok(Message::Query(&statement(line))),
            &mut out,
            &mut |_| Ok(()),
        )
        .expect("the connection goes on");
    match (read(&out), types(&out)) {
        (Answer::Error(state, _), _) => format!("! {state}"),
        (Answer::Rows(..), None) => "ok".to_owned(),
        (Answer::Rows(rows, _), Some(types)) => {
            let rows = rows.join(" / ").replace('\\', "\\\\").replace('\n', "\\n");
            format!("{types}: {rows}")
        }
    }
}

/// What of a file is answered otherwise.
fn differences(path: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(path).expect("a readable file");
    let area = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let database = Database::new();
    let mut session = Session::new(database.service.connections.add("test"), "tester", "test");
    let mut found = BTreeSet::new();
    for block in text.split("\n\n") {
        let mut lines = block.lines();
        let (Some(line), Some(wanted)) = (lines.next(), lines.next()) else {
            continue;
        };
        let given = answer(&database, &mut session, line);
        if wanted.strip_prefix("= ") != Some(given.as_str()) {
            found.insert(format!("{area}\t{line}\t{given}"));
        }
    }
    found
}

#[test]
fn expressions_answer_as_postgresql_does() {
    let folder = Path::new("../../tests/sql/expressions");
    let entries = std::fs::read_dir(folder).expect("the folder can be read").flatten();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "golden"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "there are files");
    let found: BTreeSet<String> = paths.iter().flat_map(|path| differences(path)).collect();
    let list = folder.join("known.txt");
    if std::env::var_os("NESTOR_BLESS").is_some() {
        let text: String = found.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(&list, text).expect("the list can be written");
        return;
    }
    let known = std::fs::read_to_string(&list).expect("the list can be read");
    let known: BTreeSet<String> = known.lines().map(str::to_owned).collect();
    let new: Vec<&String> = found.difference(&known).collect();
    let gone: Vec<&String> = known.difference(&found).collect();
    assert!(
        new.is_empty() && gone.is_empty(),
        "answered otherwise than PostgreSQL and than listed:\n{new:#?}\nlisted and answered in another way:\n{gone:#?}"
    );
}
