//! What a database asserts holds whatever is written side by side: by statements, transactions of all levels, and commands.

#[path = "shared/database.rs"]
mod database;
#[path = "shared/session.rs"]
mod session;

use database::Database;
use nestor_command::{Connection, Request};
use nestor_model::{RawDoc, Value, ValueRef, doc};
use nestor_sql::session::Session;
use nestor_testkit::random::Random;
use session::{Answer, ask};

fn session(database: &Database) -> Session {
    Session::new(database.service.connections.add("test"), "tester", "test")
}

/// The state of the error, or the rows.
fn told(database: &Database, session: &mut Session, sql: &str) -> String {
    match ask(database, session, sql) {
        Answer::Error(state, message) => {
            assert!(!message.is_empty());
            state
        }
        Answer::Rows(rows, tag) => {
            assert!(!tag.is_empty(), "{sql}");
            rows.join(",")
        }
    }
}

/// Doctors, of whom one at least is on call.
fn on_call() -> Database {
    let mut database = Database::new();
    let mut session = session(&database);
    for sql in [
        "CREATE TABLE doctors (id int PRIMARY KEY, on_call bool)",
        "CREATE TABLE nurses (id int PRIMARY KEY, on_call bool)",
        "INSERT INTO doctors VALUES (1, true), (2, true)",
        "CREATE ASSERTION somebody CHECK ((SELECT count(*) FROM doctors WHERE on_call) + (SELECT count(*) FROM nurses WHERE on_call) > 0)",
    ] {
        assert_eq!(told(&database, &mut session, sql), "", "{sql}");
    }
    let nurse = doc! { "_id": 1, "on_call": false };
    database.must(doc! { "insert": "nurses", "documents": vec![Value::from(nurse)] });
    database
}

#[test]
fn two_transactions_do_not_break_together_what_each_leaves_true() {
    for (level, state) in [
        ("READ COMMITTED", "23514"),
        ("REPEATABLE READ", "23514"),
        ("SERIALIZABLE", "40001"),
    ] {
        let database = on_call();
        let (mut a, mut b) = (session(&database), session(&database));
        for (session, id) in [(&mut a, 1), (&mut b, 2)] {
            assert_eq!(told(&database, session, &format!("BEGIN ISOLATION LEVEL {level}")), "");
            let update = format!("UPDATE doctors SET on_call = false WHERE id = {id}");
            assert_eq!(told(&database, session, &update), "");
        }
        assert_eq!(told(&database, &mut a, "COMMIT"), "");
        assert_eq!(told(&database, &mut b, "COMMIT"), state, "{level}");
        let left = "SELECT count(*) FROM doctors WHERE on_call";
        assert_eq!(told(&database, &mut b, left), "1", "{level}");
    }
}

#[test]
fn whoever_writes_while_an_assertion_comes_to_be_conflicts() {
    let database = Database::new();
    let (mut a, mut b) = (session(&database), session(&database));
    assert_eq!(told(&database, &mut a, "CREATE TABLE t (id int PRIMARY KEY)"), "");
    assert_eq!(told(&database, &mut b, "BEGIN"), "");
    assert_eq!(told(&database, &mut b, "SELECT count(*) FROM t"), "0");
    // An open transaction that uses the table is waited for by whoever changes its entry.
    assert_eq!(told(&database, &mut b, "COMMIT"), "");
    assert_eq!(told(&database, &mut a, "BEGIN"), "");
    let create = "CREATE ASSERTION few CHECK ((SELECT count(*) FROM t) < 2)";
    assert_eq!(told(&database, &mut a, create), "");
    assert_eq!(told(&database, &mut b, "INSERT INTO t VALUES (1), (2)"), "");
    assert_ne!(told(&database, &mut a, "COMMIT"), "");
    assert_eq!(told(&database, &mut a, create), "23514");
    assert_eq!(told(&database, &mut b, "DELETE FROM t WHERE id = 2"), "");
    assert_eq!(told(&database, &mut a, create), "");
    assert_eq!(told(&database, &mut b, "INSERT INTO t VALUES (3)"), "23514");
}

/// Threads of statements, transactions and commands move doctors and nurses on and off call; nobody ever sees that none is.
#[test]
fn assertions_hold_among_writers_of_both_languages() {
    const ROUNDS: u64 = 60;
    let database = on_call();
    let mut first = session(&database);
    for id in 3..6 {
        let sql = format!("INSERT INTO doctors VALUES ({id}, false); INSERT INTO nurses VALUES ({id}, false)");
        assert_eq!(told(&database, &mut first, &sql), "");
    }
    let worked = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let (database, worked) = (&database, &worked);
            scope.spawn(move || {
                let mut random = Random::new(seed);
                let mut session = session(database);
                for _ in 0..ROUNDS {
                    let table = ["doctors", "nurses"][random.below(2)];
                    let (id, on) = (1 + random.below(5), random.one_in(3));
                    let update = format!("UPDATE {table} SET on_call = {on} WHERE id = {id}");
                    let sql = match random.below(3) {
                        0 => update,
                        1 => format!("BEGIN; {update}; COMMIT"),
                        _ => format!("BEGIN ISOLATION LEVEL SERIALIZABLE; {update}; COMMIT"),
                    };
                    match told(database, &mut session, &sql).as_str() {
                        "" => drop(worked.fetch_add(1, std::sync::atomic::Ordering::Relaxed)),
                        state => {
                            assert!(["23514", "40001", "40P01"].contains(&state), "{state}");
                            told(database, &mut session, "ROLLBACK");
                        }
                    }
                    let seen = "SELECT (SELECT count(*) FROM doctors WHERE on_call) + (SELECT count(*) FROM nurses WHERE on_call) > 0";
                    assert_eq!(told(database, &mut session, seen), "t");
                }
            });
            scope.spawn(move || {
                let mut random = Random::new(100 + seed);
                let mut connection = Connection::new(&database.service, "test");
                for _ in 0..ROUNDS {
                    let table = ["doctors", "nurses"][random.below(2)];
                    let (id, on) = (1 + random.below(5) as i32, random.one_in(3));
                    let update = doc! { "q": doc! { "_id": id }, "u": doc! { "$set": doc! { "on_call": on } } };
                    let command = doc! { "update": table, "updates": vec![Value::from(update)], "$db": "test" };
                    let raw = command.to_raw();
                    let outcome = database.service.run(&mut connection, Request::new(raw.as_raw()));
                    let reply = RawDoc::validate(&outcome.reply).expect("a reply is BSON");
                    if reply.get("ok").is_some_and(ValueRef::truthy) && reply.get("writeErrors").is_none() {
                        worked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert!(worked.into_inner() > 20, "some were allowed");
}
