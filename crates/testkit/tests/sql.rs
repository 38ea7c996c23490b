//! Runs the files of `tests/sql`, in the form of sqllogictest, through sessions and their messages.
//!
//! ```text
//! # Documents of a collection, in the shell's notation.
//! documents people
//! {_id: 1, name: "Ada"}
//!
//! query rowsort
//! SELECT name FROM people
//! ----
//! Ada
//!
//! statement error 42703
//! SELECT nobody FROM people
//! ```
//!
//! `command CODE` wants that a command of MQL is answered by the error of that code, 0 for none.
//!
//! `file NAME` writes a file that statements can read, the lines below it. Words behind the STATE of an error have to stand in its message.
//!
//! `statement count N` wants a statement that wrote so many rows, `statement tag TAG` one that is answered so.
//!
//! A row is a line, its values are separated by ` | `, null is NULL. `query error STATE` is the same as `statement error STATE`.

#[path = "shared/database.rs"]
mod database;
#[path = "shared/expressions.rs"]
mod expressions;
#[path = "shared/session.rs"]
mod session;
#[path = "shared/spilled.rs"]
mod spilled;

use database::Database;
use nestor_model::{Array, DocRef, Document, Value, ValueRef, doc};
use nestor_sql::protocol::frontend::Message;
use nestor_sql::session::Session;
use nestor_testkit::shell;
use session::{Answer, ask, read};
use std::path::Path;

/// The code of a reply's error, or of its first write error; 0 without one.
fn code_of(reply: &Document) -> i32 {
    let of = |doc: DocRef<'_>| match doc.get("code") {
        Some(ValueRef::Int32(code)) => Some(code),
        _ => None,
    };
    let first = match reply.get("writeErrors") {
        Some(ValueRef::Array(errors)) => errors.iter().next().and_then(|error| error.as_document().and_then(of)),
        _ => None,
    };
    first.or_else(|| of(reply.as_ref())).unwrap_or(0)
}

/// Runs one file; what went wrong.
fn run(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).expect("a readable file");
    let directory = tempfile::tempdir().expect("a directory");
    let mut database = Database::reading(directory.path());
    let slot = database.service.connections.add("test");
    let mut session = Session::new(slot, "tester", "test");
    let mut failures = Vec::new();
    for block in text.split("\n\n") {
        let lines: Vec<&str> = block.lines().filter(|line| !line.starts_with('#')).collect();
        let [head, rest @ ..] = lines.as_slice() else { continue };
        let words: Vec<&str> = head.split_whitespace().collect();
        let wrong = |what: String| format!("{}: {}\n{what}", path.display(), rest.join("\n"));
        match words.as_slice() {
            [] => {}
            ["documents", name] => {
                let docs = rest
                    .iter()
                    .map(|line| Value::from(shell::document(line).expect("a document")));
                let docs = Value::Array(Array::new(docs.collect()));
                database.must(doc! { "insert": *name, "documents": docs });
            }
            ["file", name] => {
                let path = directory.path().join(name);
                std::fs::create_dir_all(path.parent().expect("a directory")).expect("it can be made");
                std::fs::write(path, rest.iter().map(|line| format!("{line}\n")).collect::<String>()).expect("a file");
            }
            ["index", name, field] => {
                let mut key = nestor_model::Document::new();
                key.push(*field, 1);
                let index = Value::from(doc! { "key": key, "name": *field });
                database.must(doc! { "createIndexes": *name, "indexes": vec![index] });
            }
            ["command", wanted] => {
                let reply = database.run(shell::document(&rest.join(" ")).expect("a command"));
                let found = code_of(&reply);
                if found.to_string() != *wanted {
                    failures.push(wrong(format!("{reply:?}")));
                }
            }
            ["view", name, on] => {
                let stages = rest
                    .iter()
                    .map(|line| Value::from(shell::document(line).expect("a stage")));
                let stages = Value::Array(Array::new(stages.collect()));
                database.must(doc! { "create": *name, "viewOn": *on, "pipeline": stages });
            }
            ["statement" | "query", "error", state, words @ ..] => match ask(&database, &mut session, &rest.join("\n"))
            {
                Answer::Error(found, message) if found != *state || !message.contains(&words.join(" ")) => {
                    failures.push(wrong(format!("error {found}: {message}")))
                }
                Answer::Error(..) => {}
                Answer::Rows(rows, _) => failures.push(wrong(format!("no error, but {rows:?}"))),
            },
            ["statement", "ok"] => {
                if let Answer::Error(state, message) = ask(&database, &mut session, &rest.join("\n")) {
                    failures.push(wrong(format!("error {state}: {message}")));
                }
            }
            ["statement", "count", count] => match ask(&database, &mut session, &rest.join("\n")) {
                Answer::Error(state, message) => failures.push(wrong(format!("error {state}: {message}"))),
                Answer::Rows(_, tag) if tag.split(' ').next_back() != Some(count) => failures.push(wrong(tag)),
                Answer::Rows(..) => {}
            },
            ["statement", "tag", wanted @ ..] => match ask(&database, &mut session, &rest.join("\n")) {
                Answer::Error(state, message) => failures.push(wrong(format!("error {state}: {message}"))),
                Answer::Rows(_, tag) if tag != wanted.join(" ") => failures.push(wrong(tag)),
                Answer::Rows(..) => {}
            },
            ["query", sort @ ..] => {
                let at = rest.iter().position(|line| *line == "----").expect("a query has ----");
                let mut wanted: Vec<String> = rest[at + 1..].iter().map(|line| (*line).to_owned()).collect();
                match ask(&database, &mut session, &rest[..at].join("\n")) {
                    Answer::Error(state, message) => failures.push(wrong(format!("error {state}: {message}"))),
                    Answer::Rows(mut rows, _) => {
                        if sort.first() == Some(&"rowsort") {
                            rows.sort();
                            wanted.sort();
                        }
                        if rows != wanted {
                            failures.push(wrong(format!("gave\n{}", rows.join("\n"))));
                        }
                    }
                }
            }
            _ => failures.push(format!("{}: not understood: {head}", path.display())),
        }
    }
    failures
}

/// As the server's threads have it.
const STACK_BYTES: usize = 32 << 20;

#[test]
fn files() {
    let ran = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(all_files);
    ran.expect("a thread").join().expect("all files are right");
}

fn all_files() {
    let folder = Path::new("../../tests/sql");
    let entries = std::fs::read_dir(folder).expect("the folder can be read").flatten();
    let mut paths: Vec<_> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "slt"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "there are files");
    let failures: Vec<String> = paths.iter().flat_map(|path| run(path)).collect();
    assert!(
        failures.is_empty(),
        "{} failed\n\n{}",
        failures.len(),
        failures.join("\n\n")
    );
}

/// Statements that would make trees too deep end in an error and not in an exhausted stack.
#[test]
fn deep_statements_are_refused() {
    let database = Database::new();
    let slot = database.service.connections.add("test");
    let mut session = Session::new(slot, "tester", "test");
    let sum = format!("SELECT 1{}", " + 1".repeat(100_000));
    let parentheses = format!("SELECT {}1{}", "(".repeat(10_000), ")".repeat(10_000));
    let negations = format!("SELECT {} true", "NOT ".repeat(10_000));
    for sql in [sum, parentheses, negations] {
        match ask(&database, &mut session, &sql) {
            Answer::Error(state, _) => assert!(state == "54001" || state == "42601", "{state}"),
            Answer::Rows(rows, _) => panic!("{rows:?}"),
        }
    }
    let all = format!("SELECT {} AS x", vec!["true"; 500].join(" AND "));
    assert!(matches!(ask(&database, &mut session, &all), Answer::Rows(rows, _) if rows == ["t"]));
}

/// Runs a prepared statement with one value, as text.
fn execute(database: &Database, session: &mut Session, name: &str, value: &str) -> Answer {
    let mut out = Vec::new();
    let bind = Message::Bind {
        portal: "",
        statement: name,
        formats: Vec::new(),
        values: vec![Some(value.as_bytes())],
        results: Vec::new(),
    };
    for message in [bind, Message::Execute { portal: "", rows: 0 }, Message::Sync] {
        session
            .receive(&database.service, Ok(message), &mut out, &mut |_| Ok(()))
            .expect("the connection goes on");
    }
    read(&out)
}

/// A portal gives its rows in parts, by messages and by FETCH and MOVE, each of them once.
#[test]
fn rows_of_a_portal_come_once_in_parts() {
    let database = Database::new();
    let slot = database.service.connections.add("test");
    let mut session = Session::new(slot, "tester", "test");
    let mut send = |messages: Vec<Message<'_>>| {
        let mut out = Vec::new();
        for message in messages {
            session
                .receive(&database.service, Ok(message), &mut out, &mut |_| Ok(()))
                .expect("the connection goes on");
        }
        match read(&out) {
            Answer::Rows(rows, tag) => format!("{} {tag}", rows.join(",")),
            Answer::Error(state, _) => state,
        }
    };
    let part = |rows| vec![Message::Execute { portal: "p", rows }];
    let text = "SELECT * FROM generate_series(1, 9)";
    let bind = Message::Bind {
        portal: "p",
        statement: "",
        formats: Vec::new(),
        values: Vec::new(),
        results: Vec::new(),
    };
    let parse = Message::Parse {
        name: "",
        text,
        types: Vec::new(),
    };
    send(vec![Message::Query("BEGIN")]);
    send(vec![parse, bind]);
    assert_eq!(send(vec![Message::Query("MOVE 1 IN p")]), " MOVE 1");
    assert_eq!(send(part(2)), "2,3 ");
    assert_eq!(send(vec![Message::Query("FETCH 2 FROM p")]), "4,5 FETCH 2");
    assert_eq!(send(part(0)), "6,7,8,9 SELECT 4");
    assert_eq!(send(part(0)), " SELECT 0");
    assert_eq!(send(vec![Message::Query("FETCH PRIOR FROM p")]), "55000");
    send(vec![Message::Query("ROLLBACK")]);
    assert_eq!(send(vec![Message::Query("FETCH 1 FROM p")]), "34000");
}

/// A prepared statement keeps its plan, and gives it up when a table or a setting is another one.
#[test]
fn plans_of_prepared_statements_end_with_their_tables() {
    let mut database = Database::new();
    let slot = database.service.connections.add("test");
    let mut session = Session::new(slot, "tester", "test");
    let must = |session: &mut Session, sql: &str, database: &Database| match ask(database, session, sql) {
        Answer::Rows(rows, _) => rows,
        Answer::Error(state, message) => panic!("{sql}: {state} {message}"),
    };
    must(&mut session, "CREATE TABLE p (id int PRIMARY KEY, v text)", &database);
    must(&mut session, "INSERT INTO p VALUES (1, 'one'), (2, 'two')", &database);
    database.must(doc! { "insert": "d", "documents": Value::from(vec![doc! { "_id": 1, "v": 5 }.into()]) });
    let statements = [
        ("v", "SELECT v FROM p WHERE id = $1"),
        ("all", "SELECT * FROM p WHERE id = $1"),
        ("doc", "SELECT v FROM d WHERE _id = $1"),
        (
            "setting",
            "SELECT current_setting('application_name') FROM p WHERE id = $1",
        ),
    ];
    for (name, text) in statements {
        let parse = Message::Parse {
            name,
            text,
            types: Vec::new(),
        };
        let mut out = Vec::new();
        let result = session.receive(&database.service, Ok(parse), &mut out, &mut |_| Ok(()));
        assert!(result.is_ok() && out.first() == Some(&b'1'), "{text}");
    }
    let rows = |session: &mut Session, name: &str, value: &str, database: &Database| match execute(
        database, session, name, value,
    ) {
        Answer::Rows(rows, _) => rows.join(","),
        Answer::Error(state, _) => state,
    };
    for _ in 0..2 {
        assert_eq!(rows(&mut session, "v", "2", &database), "two");
        assert_eq!(rows(&mut session, "v", "1", &database), "one");
        assert_eq!(rows(&mut session, "all", "1", &database), "1 | one");
        assert_eq!(rows(&mut session, "doc", "1", &database), "5");
    }
    let before = rows(&mut session, "setting", "1", &database);
    must(&mut session, "SET application_name = 'second'", &database);
    assert_ne!(rows(&mut session, "setting", "1", &database), before);
    assert_eq!(rows(&mut session, "setting", "1", &database), "second");
    // The columns stand at other places now.
    must(&mut session, "DROP TABLE p", &database);
    assert_eq!(rows(&mut session, "v", "1", &database), "42P01");
    must(
        &mut session,
        "CREATE TABLE p (v text, w int, id int PRIMARY KEY)",
        &database,
    );
    must(&mut session, "INSERT INTO p VALUES ('new', 3, 1)", &database);
    assert_eq!(rows(&mut session, "v", "1", &database), "new");
    assert_eq!(rows(&mut session, "all", "1", &database), "0A000");
    // The column is `jsonb` now, and a client was told `integer`.
    database.must(doc! { "insert": "d", "documents": Value::from(vec![doc! { "_id": 2, "v": "x" }.into()]) });
    assert_eq!(rows(&mut session, "doc", "1", &database), "0A000");
}

/// Two connections to one table of accounts.
struct Bank {
    database: Database,
    sessions: [std::sync::Mutex<Session>; 2],
}

impl Bank {
    fn new() -> Self {
        let mut database = Database::new();
        let docs = Value::from(vec![
            doc! { "_id": 1, "amount": 100 }.into(),
            doc! { "_id": 2, "amount": 100 }.into(),
        ]);
        database.must(doc! { "insert": "accounts", "documents": docs });
        let session = || {
            let slot = database.service.connections.add("test");
            std::sync::Mutex::new(Session::new(slot, "tester", "test"))
        };
        let sessions = [session(), session()];
        Self { database, sessions }
    }

    /// The state of the error, or the rows, one after the other.
    fn ask(&self, who: usize, sql: &str) -> String {
        let mut session = self.sessions[who].lock().expect("no statement panics");
        match ask(&self.database, &mut session, sql) {
            Answer::Error(state, _) => state,
            Answer::Rows(rows, _) => rows.join(","),
        }
    }
}

#[test]
fn read_committed_statements_read_the_newest_state_and_wait_for_writers() {
    let bank = Bank::new();
    assert_eq!(bank.ask(0, "BEGIN"), "");
    assert_eq!(bank.ask(0, "SELECT amount FROM accounts WHERE _id = 1"), "100");
    assert_eq!(bank.ask(1, "UPDATE accounts SET amount = 150 WHERE _id = 1"), "");
    assert_eq!(bank.ask(0, "SELECT amount FROM accounts WHERE _id = 1"), "150");
    // The other one waits until this one has committed, and works on what that wrote.
    assert_eq!(bank.ask(0, "UPDATE accounts SET amount = amount + 1 WHERE _id = 1"), "");
    assert_eq!(bank.ask(1, "BEGIN"), "");
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            bank.ask(
                1,
                "UPDATE accounts SET amount = amount * 2 WHERE _id = 1 RETURNING amount",
            )
        });
        assert_eq!(bank.ask(0, "COMMIT"), "");
        assert_eq!(waits.join().expect("it does not panic"), "302");
    });
    assert_eq!(bank.ask(1, "COMMIT"), "");
    assert_eq!(bank.ask(0, "SELECT amount FROM accounts ORDER BY _id"), "302,100");
}

#[test]
fn transactions_that_wait_for_each_other_are_told() {
    let bank = Bank::new();
    for (who, id) in [(0, 1), (1, 2)] {
        assert_eq!(bank.ask(who, "BEGIN"), "");
        assert_eq!(
            bank.ask(who, &format!("UPDATE accounts SET amount = 0 WHERE _id = {id}")),
            ""
        );
    }
    let answers = std::thread::scope(|scope| {
        let first = scope.spawn(|| {
            let answer = bank.ask(0, "UPDATE accounts SET amount = 1 WHERE _id = 2");
            bank.ask(0, "COMMIT");
            answer
        });
        let answer = bank.ask(1, "UPDATE accounts SET amount = 1 WHERE _id = 1");
        bank.ask(1, "COMMIT");
        [first.join().expect("it does not panic"), answer]
    });
    let told = answers.iter().filter(|answer| *answer == "40P01").count();
    let done = answers.iter().filter(|answer| answer.is_empty()).count();
    assert_eq!((told, done), (1, 1), "{answers:?}");
}

#[test]
fn snapshots_conflict_and_serializable_transactions_do_not_skew() {
    let bank = Bank::new();
    let begin = |level: &str| {
        for who in [0, 1] {
            assert_eq!(bank.ask(who, &format!("BEGIN ISOLATION LEVEL {level}")), "");
            assert_eq!(bank.ask(who, "SELECT sum(amount) FROM accounts"), "200");
        }
    };
    begin("REPEATABLE READ");
    let transfer = "UPDATE accounts SET amount = amount + 3 - 2 * _id";
    assert_eq!(bank.ask(0, transfer), "");
    assert_eq!(bank.ask(0, "COMMIT"), "");
    assert_eq!(bank.ask(1, transfer), "40001");
    assert_eq!(bank.ask(1, "COMMIT"), "");
    // Each has read what the other one writes.
    begin("SERIALIZABLE");
    assert_eq!(
        bank.ask(0, "UPDATE accounts SET amount = amount - 150 WHERE _id = 1"),
        ""
    );
    assert_eq!(
        bank.ask(1, "UPDATE accounts SET amount = amount - 150 WHERE _id = 2"),
        ""
    );
    assert_eq!(bank.ask(0, "COMMIT"), "");
    assert_eq!(bank.ask(1, "COMMIT"), "40001");
    assert_eq!(bank.ask(1, "SELECT amount FROM accounts ORDER BY _id"), "-49,99");
}

/// Of two transactions, one that deletes a key and one that writes a row which has it, only one comes through, whoever is first.
#[test]
fn foreign_keys_hold_between_transactions() {
    let bank = Bank::new();
    for sql in [
        "CREATE TABLE parents (id int PRIMARY KEY)",
        "CREATE TABLE children (id int PRIMARY KEY, parent int REFERENCES parents)",
        "INSERT INTO parents VALUES (1), (2), (3)",
    ] {
        assert_eq!(bank.ask(1, sql), "", "{sql}");
    }
    let begin = || {
        assert_eq!(bank.ask(0, "BEGIN ISOLATION LEVEL REPEATABLE READ"), "");
        assert_eq!(bank.ask(0, "SELECT count(*) FROM parents"), "3");
    };
    // The state that it reads has no child yet.
    begin();
    assert_eq!(bank.ask(1, "INSERT INTO children VALUES (1, 1)"), "");
    assert_eq!(bank.ask(0, "DELETE FROM parents WHERE id = 1"), "40001");
    assert_eq!(bank.ask(0, "ROLLBACK"), "");
    // The state that it reads still has the parent.
    begin();
    assert_eq!(bank.ask(1, "DELETE FROM parents WHERE id = 2"), "");
    assert_eq!(bank.ask(0, "INSERT INTO children VALUES (2, 2)"), "40001");
    assert_eq!(bank.ask(0, "ROLLBACK"), "");
    // Who may wait waits, and sees what the other one has done.
    assert_eq!(bank.ask(0, "BEGIN"), "");
    assert_eq!(bank.ask(0, "INSERT INTO children VALUES (3, 3)"), "");
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| bank.ask(1, "DELETE FROM parents WHERE id = 3"));
        assert_eq!(bank.ask(0, "COMMIT"), "");
        assert_eq!(waits.join().expect("it does not panic"), "23503");
    });
    let orphans = "SELECT count(*) FROM children c LEFT JOIN parents p ON p.id = c.parent WHERE p.id IS NULL";
    assert_eq!(bank.ask(0, orphans), "0");
}

/// A table that a transaction has looked through to declare it otherwise has no rows at its commit that it has not seen, also when its
/// statements have read newer states since.
#[test]
fn tables_are_altered_for_all_rows_or_not_at_all() {
    let bank = Bank::new();
    for alter in [
        "ALTER TABLE t ADD CHECK (a > 0)",
        "ALTER TABLE t ADD COLUMN b int DEFAULT 5",
        "CREATE UNIQUE INDEX t_a ON t (a)",
    ] {
        assert_eq!(bank.ask(1, "DROP TABLE IF EXISTS t"), "");
        assert_eq!(bank.ask(1, "CREATE TABLE t (id int PRIMARY KEY, a int)"), "");
        assert_eq!(bank.ask(1, "INSERT INTO t VALUES (1, 1)"), "");
        assert_eq!(bank.ask(0, "BEGIN"), "");
        assert_eq!(bank.ask(0, alter), "");
        assert_eq!(bank.ask(1, "INSERT INTO t VALUES (2, -1), (3, 1)"), "");
        assert_eq!(bank.ask(0, "SELECT count(*) FROM t"), "3");
        assert_eq!(bank.ask(0, "COMMIT"), "40001", "{alter}");
        // Whoever has written in a transaction that is still open does not come through instead.
        assert_eq!(bank.ask(1, "DELETE FROM t WHERE id > 1"), "");
        assert_eq!(bank.ask(1, "BEGIN"), "");
        assert_eq!(bank.ask(1, "INSERT INTO t VALUES (2, -1), (3, 1)"), "");
        assert_eq!(bank.ask(0, "BEGIN"), "");
        assert_eq!(bank.ask(0, alter), "");
        assert_eq!(bank.ask(0, "COMMIT"), "");
        assert_eq!(bank.ask(1, "COMMIT"), "40001", "{alter}");
    }
    assert_eq!(bank.ask(0, "SELECT count(*) FROM t"), "1");
}

/// Of two statements that write the same document the second conflicts, whichever rows of it they change.
#[test]
fn documents_of_duality_views_are_written_one_after_the_other() {
    let bank = Bank::new();
    for sql in [
        "CREATE TABLE parents (id int PRIMARY KEY)",
        "CREATE TABLE children (id int PRIMARY KEY, parent int)",
        "CREATE DUALITY VIEW docs AS SELECT jsonb_build_object('id', p.id, 'children', (SELECT jsonb_agg(jsonb_build_object('id', c.id)) FROM children c WHERE c.parent = p.id)) FROM parents p",
        r#"INSERT INTO docs VALUES ('{"id": 1, "children": [{"id": 1}]}')"#,
    ] {
        assert_eq!(bank.ask(1, sql), "", "{sql}");
    }
    assert_eq!(bank.ask(0, "BEGIN ISOLATION LEVEL REPEATABLE READ"), "");
    assert_eq!(bank.ask(0, "SELECT count(*) FROM docs"), "1");
    let update = |id: i32| format!(r#"UPDATE docs SET doc = '{{"id": 1, "children": [{{"id": {id}}}]}}'"#);
    assert_eq!(bank.ask(1, &update(2)), "");
    assert_eq!(bank.ask(0, &update(3)), "40001");
    assert_eq!(bank.ask(0, "ROLLBACK"), "");
    assert_eq!(bank.ask(0, "SELECT id FROM children"), "2");
}
