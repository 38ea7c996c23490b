//! Queries have the same answers by columns as by documents, by one thread and by several, while rows are written, deleted and changed, and checkpoints come.

#[allow(dead_code)] // It is asked by SQL only.
#[path = "shared/database.rs"]
mod database;
#[allow(dead_code)] // Tags are not looked at.
#[path = "shared/session.rs"]
mod session;

use database::Database;
use nestor_sql::session::Session;
use nestor_testkit::random::Random;
use session::{Answer, ask};
use std::path::Path;

fn must(database: &Database, session: &mut Session, sql: &str) -> Vec<String> {
    match ask(database, session, sql) {
        Answer::Rows(rows, _) => rows,
        Answer::Error(state, message) => panic!("{sql}: {state} {message}"),
    }
}

/// Rows with numbers `from` up to `to`: values of all types that columns know, nulls, and few or many different ones.
fn rows(table: &str, from: usize, to: usize) -> String {
    format!(
        "INSERT INTO {table} SELECT n, n % 7 - 3, CASE WHEN n % 5 > 0 THEN n::bigint * 3000000001 END, n / 4.0, CASE n % 8 WHEN 0 THEN 'NaN' WHEN 1 THEN NULL ELSE n / 7.0 END,
         n / 100.0, chr(97 + n % 26) || n % 40, repeat('é', n % 3), n % 3 = 0, CASE WHEN n % 11 > 0 THEN date '2020-02-20' + n % 400 END, timestamp '2024-01-01' + n * interval '1 minute'
         FROM generate_series({from}, {to}) n"
    )
}

const COLUMNS: &str = "id int PRIMARY KEY, a int, b bigint, c double precision, d double precision, e numeric(9,2), f text, g text, h boolean, i date, j timestamp";

/// A condition that holds for some rows.
fn condition(random: &mut Random) -> String {
    match random.below(13) {
        11 => format!(
            "{} {} '{}'",
            random.pick(&["f", "g"]),
            random.pick(&["LIKE", "NOT LIKE", "ILIKE", "~"]),
            random.pick(&["%a%", "%", "%1_", "b%2", "%é%", "%éé%", "", "A%", "^[ab]", "%z39%"])
        ),
        12 => format!(
            "i < timestamp '2020-02-20 12:00' + interval '{} days'",
            random.below(420)
        ),
        0 => format!(
            "a {} {}",
            random.pick(&["=", "<", ">=", "<>"]),
            random.below(8) as i64 - 3
        ),
        1 => format!("b > {}", random.below(9000) * 3_000_000_000),
        2 => format!("c <= {}", random.below(2500)),
        3 => "d = 'NaN'".to_owned(),
        4 => format!("e BETWEEN {} AND {}", random.below(40), random.below(90)),
        5 => format!("f LIKE '{}%'", random.pick(&["a", "b1", "c", "%3"])),
        6 => format!("f IN ('a{}', 'z{}', 'none')", random.below(40), random.below(40)),
        7 => "g = 'éé'".to_owned(),
        8 => random.pick(&["h", "NOT h", "b IS NULL", "i IS NOT NULL"]).to_string(),
        9 => format!("i < date '2020-02-20' + {}", random.below(420)),
        _ => format!("j >= timestamp '2024-01-01' + interval '{} hours'", random.below(160)),
    }
}

fn query(random: &mut Random) -> String {
    let mut filter = condition(random);
    while random.one_in(2) {
        filter = format!("{filter} {} {}", random.pick(&["AND", "AND", "OR"]), condition(random));
    }
    match random.below(10) {
        9 => format!(
            "SELECT extract(hour FROM j::timestamptz AT TIME ZONE 'UTC') h, count(*), min(i::text), max(j::timestamptz::text), count(DISTINCT upper(f) || a)
             FROM t WHERE {filter} GROUP BY 1 ORDER BY 1"
        ),
        5 => format!(
            "SELECT extract(minute FROM j), extract(dow FROM i), date_trunc('hour', j), count(*), count(DISTINCT b), count(DISTINCT f), min(d), max(c)
             FROM t WHERE {filter} GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
        ),
        6 => format!("SELECT d, count(*), sum(length(g)), min(f), max(f), avg(a) FROM t WHERE {filter} GROUP BY d ORDER BY d"),
        7 => format!(
            "SELECT min(a), max(b), min(c), max(d), min(d), min(e), max(f), min(g), min(i), max(j), sum(c), sum(d), avg(b) FROM t WHERE {filter}"
        ),
        8 => format!("SELECT i, f, e, count(*) FROM t WHERE {filter} GROUP BY ROLLUP (i, f, e) ORDER BY 1, 2, 3, 4"),
        0 => format!("SELECT count(*), sum(a), sum(b), sum(c), max(e), min(f), max(j), count(i) FROM t WHERE {filter}"),
        1 => format!(
            "SELECT a, h, count(*), sum(e), avg(c), min(i), max(g) FROM t WHERE {filter} GROUP BY a, h ORDER BY a, h"
        ),
        2 => format!("SELECT f, count(*), count(DISTINCT g), sum(id) FROM t WHERE {filter} GROUP BY f ORDER BY f"),
        3 => format!("SELECT * FROM t WHERE {filter} ORDER BY id % 1000, id LIMIT 30"),
        _ => {
            let mut own = filter;
            for name in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"] {
                own = prefixed(&own, name);
            }
            let on = random.pick(&["x.id = y.id + 1", "x.f = y.f AND x.i = y.i", "x.f = y.f AND x.a = y.a AND x.id < y.id + 90"]);
            match random.below(4) {
                0 => format!("SELECT x.a, count(*), count(y.id), sum(y.e), min(y.f) FROM t x LEFT JOIN t y ON {on} AND ({own}) GROUP BY x.a ORDER BY 1"),
                1 => format!("SELECT count(*), sum(x.id), min(x.f) FROM t x WHERE x.a <> 1 AND EXISTS (SELECT 1 FROM t y WHERE {on} AND ({own}))"),
                2 => format!("SELECT x.h, count(*), sum(x.id) FROM t x WHERE NOT EXISTS (SELECT 1 FROM t y WHERE {on} AND ({own})) GROUP BY x.h ORDER BY 1"),
                _ => format!("SELECT x.a, count(*), sum(y.c), max(y.e) FROM t x JOIN t y ON {on} WHERE x.a > 0 AND ({own}) GROUP BY x.a ORDER BY 1"),
            }
        }
    }
}

/// The condition with a column named as one of `y`.
fn prefixed(text: &str, name: &str) -> String {
    let words: Vec<String> = text
        .split(' ')
        .map(|word| {
            if word == name {
                format!("y.{word}")
            } else {
                word.to_owned()
            }
        })
        .collect();
    words.join(" ")
}

#[test]
fn answers_are_the_same_by_columns_as_by_documents() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = Database::within(directory.path());
    let slot = database.service.connections.add("test");
    let mut session = Session::new(slot, "tester", "test");
    let mut random = Random::new(5);
    must(&database, &mut session, &format!("CREATE TABLE t ({COLUMNS})"));
    must(&database, &mut session, &rows("t", 1, 9000));
    database.service.engine.checkpoint().expect("a checkpoint");
    must(&database, &mut session, "SET nestor.columns = 'on'");
    // What a thread knows of its session is what a helper knows.
    must(&database, &mut session, "SET TimeZone = 'America/New_York'");
    must(&database, &mut session, "SET DateStyle = 'German'");
    must(&database, &mut session, "SELECT count(f) FROM t");
    let mut next = 9001;
    let (mut by_columns, mut helped, mut of) = (0, 0, 0);
    for round in 0..40 {
        database.service.columns.settle();
        for _ in 0..3 {
            let sql = query(&mut random);
            must(&database, &mut session, "SET nestor.columns = 'on'");
            let plan = must(&database, &mut session, &format!("EXPLAIN {sql}"));
            by_columns += usize::from(plan.iter().any(|line| line.contains("Access: COLUMN_SCAN")));
            of += 1;
            let columns = must(&database, &mut session, &sql);
            let plan = must(&database, &mut session, &format!("EXPLAIN ANALYZE {sql}"));
            helped += usize::from(plan.iter().any(|line| line.contains("Helpers: ")));
            must(&database, &mut session, "SET max_parallel_workers_per_gather = 0");
            let by_one = must(&database, &mut session, &sql);
            let plan_of_one = must(&database, &mut session, &format!("EXPLAIN ANALYZE {sql}"));
            must(&database, &mut session, "RESET max_parallel_workers_per_gather");
            assert_eq!(columns, by_one, "{round}: {sql}");
            assert_eq!(counted(&plan), counted(&plan_of_one), "{round}: {sql}");
            must(&database, &mut session, "SET nestor.columns = 'off'");
            let documents = must(&database, &mut session, &sql);
            assert_eq!(columns, documents, "{round}: {sql}");
        }
        must(&database, &mut session, "SET nestor.columns = 'on'");
        let change = match random.below(4) {
            0 => {
                next += 50;
                rows("t", next - 50, next - 1)
            }
            1 => format!("DELETE FROM t WHERE id % 900 = {}", random.below(900)),
            2 => format!(
                "UPDATE t SET a = a + 1, f = 'changed', d = NULL WHERE id % 700 = {}",
                random.below(700)
            ),
            _ => format!(
                "UPDATE t SET e = e + 1, j = j + interval '1 day' WHERE id BETWEEN {0} AND {0} + 30",
                random.below(9000)
            ),
        };
        must(&database, &mut session, &change);
        if random.one_in(3) {
            database.service.engine.checkpoint().expect("a checkpoint");
            // Whoever reads next wants what is stale made anew.
            must(&database, &mut session, "SELECT count(f) FROM t");
        }
    }
    // Changes that are scattered leave too little of the columns until the next checkpoint.
    assert!(by_columns * 4 > of * 3, "{by_columns} of {of} by columns");
    let has_idle = std::thread::available_parallelism().is_ok_and(|processors| processors.get() > 1);
    assert!(!has_idle || helped > 0, "none of {of} by several threads");
}

/// A table of 20,000 rows that has columns, which are read.
fn by_columns(directory: &Path) -> (Database, Session) {
    let database = Database::within(directory);
    let slot = database.service.connections.add("test");
    let mut session = Session::new(slot, "tester", "test");
    must(&database, &mut session, &format!("CREATE TABLE t ({COLUMNS})"));
    must(&database, &mut session, &rows("t", 1, 20_000));
    database.service.engine.checkpoint().expect("a checkpoint");
    must(&database, &mut session, "SET nestor.columns = 'on'");
    must(&database, &mut session, "SELECT count(f) FROM t");
    database.service.columns.settle();
    (database, session)
}

/// What fails or takes too long on one thread ends on all, and whoever comes next has helpers again.
#[test]
fn threads_that_read_together_end_together() {
    let directory = tempfile::tempdir().expect("a directory");
    let (database, mut session) = by_columns(directory.path());
    let fails = |session: &mut Session, sql: &str| match ask(&database, session, sql) {
        Answer::Rows(rows, _) => panic!("{sql}: {rows:?}"),
        Answer::Error(state, _) => state,
    };
    for round in 0..20 {
        let at = 1 + round * 1000;
        for sql in [
            format!("SELECT count(*) FROM t WHERE 1 / (id - {at}) = 0"),
            format!("SELECT a, sum(1 / (id - {at})) FROM t GROUP BY a"),
            format!("SELECT sum(c / (id - {at})) FROM t"),
            format!("SELECT id / (id - {at}) FROM t WHERE f LIKE '%1%' OR id = {at}"),
            format!(
                "SELECT count(*) FROM t x JOIN (SELECT 1 / (id - {at}) AS b FROM t WHERE id % 2 = 1) y ON x.a = y.b"
            ),
        ] {
            assert_eq!(fails(&mut session, &sql), "22012", "{sql}");
        }
    }
    must(&database, &mut session, "SET statement_timeout = 100");
    for sql in [
        "SELECT count(*) FROM t WHERE md5(repeat(f, 300000)) = 'no'",
        "SELECT a, max(md5(repeat(f, 300000))) FROM t GROUP BY a",
        "SELECT id FROM t WHERE md5(repeat(f, 300000)) = 'no'",
    ] {
        assert_eq!(fails(&mut session, sql), "57014", "{sql}");
    }
    must(&database, &mut session, "RESET statement_timeout");
    let has_idle = std::thread::available_parallelism().is_ok_and(|processors| processors.get() > 1);
    // Another test may have the helper just then.
    let helped = (0..1000).any(|_| {
        let plan = must(
            &database,
            &mut session,
            "EXPLAIN ANALYZE SELECT count(*), sum(a) FROM t WHERE f <> 'a1'",
        );
        plan.iter().any(|line| line.contains("Helpers: "))
    });
    assert_eq!(helped, has_idle);
}

/// Rows come in the order of the table, and what is computed of them is the same each time, whoever reads them.
#[test]
fn what_depends_on_the_order_of_rows_is_the_same() {
    let directory = tempfile::tempdir().expect("a directory");
    let (database, mut session) = by_columns(directory.path());
    must(
        &database,
        &mut session,
        "UPDATE t SET f = 'changed' WHERE id % 3000 = 5",
    );
    let mut random = Random::new(17);
    for _ in 0..40 {
        let filter = condition(&mut random);
        let own = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]
            .iter()
            .fold(filter.clone(), |own, name| prefixed(&own, name));
        for sql in [
            format!("SELECT sum(d), avg(c / 3), string_agg(f, ','), array_agg(id) FROM t WHERE {filter}"),
            format!("SELECT id, upper(f), d * 2 FROM t WHERE {filter}"),
            format!(
                "SELECT sum(x.d), string_agg(y.f, ',') FROM t x JOIN t y ON x.i = y.i AND x.id > y.id + 7000 WHERE {own}"
            ),
            format!("SELECT x.id, y.id FROM t x LEFT JOIN t y ON x.id = y.id AND ({own}) WHERE x.h"),
        ] {
            must(&database, &mut session, "SET max_parallel_workers_per_gather = 0");
            let by_one = must(&database, &mut session, &sql);
            must(&database, &mut session, "RESET max_parallel_workers_per_gather");
            let by_all = must(&database, &mut session, &sql);
            assert!(by_one == by_all, "{sql}");
        }
    }
}

/// Many groups are the same ones whoever makes them, with keys of all types and computed ones, and where they do not fit into memory.
#[test]
fn many_groups_of_several_threads_are_those_of_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let (database, mut session) = by_columns(directory.path());
    must(
        &database,
        &mut session,
        "UPDATE t SET f = 'changed', b = 5 WHERE id % 3000 = 5",
    );
    let keys = [
        "id",
        "f, j",
        "b % 1000, f",
        "d",
        "date_trunc('hour', j), id % 50",
        "extract(minute FROM j), f",
        "upper(f) || a, h",
        "e, g",
    ];
    let calls = [
        "count(*), sum(b), min(j), max(f)",
        "count(*) FILTER (WHERE h), avg(a), max(e), count(b)",
        "count(DISTINCT a), min(i)",
        "sum(id) FILTER (WHERE a > 0), bool_or(h)",
    ];
    for (pass, memory) in ["1GB", "64kB"].iter().enumerate() {
        must(&database, &mut session, &format!("SET work_mem = '{memory}'"));
        for (at, key) in keys.iter().enumerate() {
            let calls = calls[(at + pass) % calls.len()];
            let sql = format!("SELECT {key}, {calls} FROM t WHERE id > 100 GROUP BY {key}");
            let mut answers = ["0", "2"].map(|helpers| {
                must(
                    &database,
                    &mut session,
                    &format!("SET max_parallel_workers_per_gather = {helpers}"),
                );
                let mut rows = must(&database, &mut session, &sql);
                rows.sort();
                rows
            });
            let by_all = std::mem::take(&mut answers[1]);
            assert!(
                answers[0] == by_all,
                "{sql}: {} and {} groups",
                answers[0].len(),
                by_all.len()
            );
        }
    }
}

/// What scans counted, whoever ran them.
fn counted(plan: &[String]) -> Vec<&str> {
    let words = ["Column ", "Examined", "Bytes", "Removed"];
    let is_count = |line: &&String| words.iter().any(|word| line.contains(word));
    plan.iter().filter(is_count).map(|line| line.trim()).collect()
}

/// A join that an index serves only as long as there are no columns wants them made.
#[test]
fn what_is_looked_up_for_want_of_columns_gets_them() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = Database::within(directory.path());
    let slot = database.service.connections.add("test");
    let mut session = Session::new(slot, "tester", "test");
    must(
        &database,
        &mut session,
        "CREATE TABLE wanted (id int PRIMARY KEY, w int)",
    );
    must(
        &database,
        &mut session,
        "CREATE TABLE many (id int PRIMARY KEY, k int, n int)",
    );
    must(&database, &mut session, "CREATE INDEX ON many (k)");
    must(
        &database,
        &mut session,
        "INSERT INTO wanted SELECT n, n % 15 FROM generate_series(1, 300) n",
    );
    must(
        &database,
        &mut session,
        "INSERT INTO many SELECT n, n % 300, n FROM generate_series(1, 9000) n",
    );
    database.service.engine.checkpoint().expect("a checkpoint");
    let join = "SELECT sum(n) FROM wanted, many WHERE k = wanted.id AND w = 3";
    let access = |session: &mut Session| {
        let plan = must(&database, session, &format!("EXPLAIN ANALYZE {join}"));
        let by = |word: &str| plan.iter().any(|line| line.contains(word));
        (by("Lookup Join"), by("COLUMN_SCAN"))
    };
    // Whoever reads without columns does not want them made.
    must(&database, &mut session, "SET nestor.columns = 'off'");
    let before = must(&database, &mut session, join);
    database.service.columns.settle();
    must(&database, &mut session, "SET nestor.columns = 'auto'");
    assert_eq!(access(&mut session), (true, false));
    database.service.columns.settle();
    assert_eq!(access(&mut session), (false, true));
    assert_eq!(must(&database, &mut session, join), before);
}

#[test]
fn a_transaction_sees_its_own_rows_by_columns() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = Database::within(directory.path());
    let sessions = ["one", "two"].map(|name| Session::new(database.service.connections.add(name), "tester", "test"));
    let [mut one, mut two] = sessions;
    must(&database, &mut one, &format!("CREATE TABLE t ({COLUMNS})"));
    must(&database, &mut one, &rows("t", 1, 6000));
    database.service.engine.checkpoint().expect("a checkpoint");
    must(&database, &mut one, "SELECT sum(a) FROM t");
    database.service.columns.settle();
    let before = must(&database, &mut two, "SELECT count(f), sum(id) FROM t");
    must(&database, &mut one, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    must(&database, &mut one, "DELETE FROM t WHERE id <= 100");
    must(&database, &mut one, "UPDATE t SET f = NULL WHERE id = 200");
    assert_eq!(
        must(&database, &mut one, "SELECT count(f), sum(id) FROM t"),
        ["5899 | 17997950"]
    );
    assert_eq!(must(&database, &mut two, "SELECT count(f), sum(id) FROM t"), before);
    must(&database, &mut one, "ROLLBACK");
    assert_eq!(must(&database, &mut one, "SELECT count(f), sum(id) FROM t"), before);
    must(&database, &mut one, "BEGIN ISOLATION LEVEL SERIALIZABLE");
    must(&database, &mut two, "BEGIN ISOLATION LEVEL SERIALIZABLE");
    for session in [&mut one, &mut two] {
        must(&database, session, "SELECT sum(a) FROM t");
    }
    must(&database, &mut one, "UPDATE t SET a = 100 WHERE id = 1");
    must(&database, &mut two, "UPDATE t SET a = 100 WHERE id = 5000");
    must(&database, &mut one, "COMMIT");
    match ask(&database, &mut two, "COMMIT") {
        Answer::Error(state, _) => assert_eq!(state, "40001"),
        Answer::Rows(..) => panic!("both transactions read what the other wrote"),
    }
}

/// What calls and orders make of rows is what they make of them one by one: first rows and all of them, distinct values and groups of these.
#[test]
fn first_rows_and_distinct_values_are_those_of_all() {
    let directory = tempfile::tempdir().expect("a directory");
    let database = Database::within(directory.path());
    let slot = database.service.connections.add("test");
    let mut session = Session::new(slot, "tester", "test");
    let mut random = Random::new(11);
    must(&database, &mut session, &format!("CREATE TABLE t ({COLUMNS})"));
    must(&database, &mut session, &rows("t", 1, 6000));
    database.service.engine.checkpoint().expect("a checkpoint");
    must(&database, &mut session, "SELECT count(f) FROM t");
    database.service.columns.settle();
    const NAMES: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    for _ in 0..60 {
        let mut keys = Vec::new();
        for _ in 0..1 + random.below(3) {
            let ends = ["", " DESC", " NULLS FIRST", " DESC NULLS LAST"];
            keys.push(format!("{}{}", random.pick(&NAMES), random.pick(&ends)));
        }
        let columns = random.pick(&["on", "off"]).to_owned();
        must(&database, &mut session, &format!("SET nestor.columns = '{columns}'"));
        let sql = format!(
            "SELECT id, {} FROM t WHERE {} ORDER BY {}, id{}",
            random.pick(&NAMES),
            condition(&mut random),
            keys.join(", "),
            random.pick(&["", " DESC"])
        );
        let all = must(&database, &mut session, &sql);
        let (skip, limit) = (random.below(4) * 10, random.pick(&[1, 3, 40, 700]));
        let first = must(&database, &mut session, &format!("{sql} LIMIT {limit} OFFSET {skip}"));
        let expected: Vec<String> = all.into_iter().skip(skip).take(*limit).collect();
        assert_eq!(first, expected, "{sql} LIMIT {limit} OFFSET {skip}");
    }
    for name in NAMES {
        for by in ["a", "h", "f"] {
            let numbers = matches!(name, "a" | "b" | "e");
            let sum = if numbers {
                format!("sum(DISTINCT {name})")
            } else {
                "0".to_owned()
            };
            let plain = if numbers {
                format!("sum({name})")
            } else {
                "0".to_owned()
            };
            let once = format!(
                "SELECT {by}, count(DISTINCT {name}), {sum}, count(DISTINCT {name}) FILTER (WHERE id > 3000), max({name}::text) FROM t GROUP BY {by} ORDER BY {by}"
            );
            let twice = format!(
                "SELECT {by}, count({name}), {plain}, count({name}) FILTER (WHERE late), max({name}::text) FROM
                 (SELECT {by}, {name}, max(id) > 3000 AS late FROM t GROUP BY {by}, {name}) AS x({by}, {name}_, late) GROUP BY {by} ORDER BY {by}"
            );
            // A column that is named twice is one.
            let twice = twice.replace(&format!("x({by}, {name}_,"), &format!("x({by}_, {name},"));
            let twice = twice.replace(&format!("SELECT {by}, count"), &format!("SELECT {by}_, count"));
            let twice = twice.replace(
                &format!("GROUP BY {by} ORDER BY {by}"),
                &format!("GROUP BY {by}_ ORDER BY {by}_"),
            );
            assert_eq!(
                must(&database, &mut session, &once),
                must(&database, &mut session, &twice),
                "{once}"
            );
        }
    }
}
