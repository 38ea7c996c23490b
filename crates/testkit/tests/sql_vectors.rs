//! Expressions give the same values column by column as row by row: random ones over a table, as rows of a query, and as what an aggregate
//! takes; and joins and groups over several chunks.

#[path = "shared/database.rs"]
mod database;
#[path = "shared/session.rs"]
mod session;

use database::Database;
use nestor_model::{Value, doc};
use nestor_sql::session::Session;
use nestor_testkit::random::Random;
use session::{Answer, ask};

/// A type with columns of it and literals.
struct Kind {
    name: &'static str,
    columns: &'static [&'static str],
    literals: &'static [&'static str],
}

const KINDS: &[Kind] = &[
    Kind {
        name: "int",
        columns: &["a", "b"],
        literals: &["0", "1", "-3", "2147483647"],
    },
    Kind {
        name: "smallint",
        columns: &["l"],
        literals: &["2::smallint", "32767::smallint", "0::smallint"],
    },
    Kind {
        name: "bigint",
        columns: &["c"],
        literals: &["7::bigint", "-9223372036854775807"],
    },
    Kind {
        name: "double precision",
        columns: &["d"],
        literals: &["0.5::float8", "'NaN'::float8", "'-infinity'::float8", "1e300::float8"],
    },
    Kind {
        name: "numeric",
        columns: &["e", "f"],
        literals: &["1.50", "0.1", "'NaN'::numeric", "123456789012345678901.5", "-0.001"],
    },
    Kind {
        name: "text",
        columns: &["g", "h"],
        literals: &["''", "'ab'", "'B%'"],
    },
    Kind {
        name: "character(4)",
        columns: &["k"],
        literals: &["'ab'::character(4)", "''::character(4)"],
    },
    Kind {
        name: "boolean",
        columns: &["i"],
        literals: &["true", "false", "null::boolean"],
    },
    Kind {
        name: "date",
        columns: &["j"],
        literals: &["date '2020-02-29'", "date 'infinity'"],
    },
];

fn kind(name: &str) -> &'static Kind {
    KINDS.iter().find(|kind| kind.name == name).expect("a kind")
}

/// An expression of a type.
fn expression(random: &mut Random, of: &Kind, depth: usize) -> String {
    if depth == 0 || random.one_in(6) {
        return match random.one_in(4) {
            true => (*random.pick(of.literals)).to_owned(),
            false => (*random.pick(of.columns)).to_owned(),
        };
    }
    let mut part = |of: &Kind| expression(random, of, depth - 1);
    let boolean = kind("boolean");
    let common = |part: &mut dyn FnMut(&Kind) -> String, turn: usize| match turn {
        0 => format!("CASE WHEN {} THEN {} ELSE {} END", part(boolean), part(of), part(of)),
        1 => format!(
            "CASE WHEN {} THEN {} WHEN {} THEN {} END",
            part(boolean),
            part(of),
            part(boolean),
            part(of)
        ),
        2 => format!("coalesce({}, {}, {})", part(of), part(of), part(of)),
        3 => format!("nullif({}, {})", part(of), part(of)),
        _ => format!("greatest({}, {})", part(of), part(of)),
    };
    let (x, y) = (part(of), part(of));
    let other = &KINDS[random.below(KINDS.len())];
    match (of.name, random.below(11)) {
        (_, turn @ 0..=2) => common(&mut |of| expression(random, of, depth - 1), turn),
        ("boolean", turn) => {
            let mut part = |of: &Kind| expression(random, of, depth - 1);
            match turn {
                3 => format!("({x} AND {y})"),
                4 => format!("({x} OR {y} OR {})", part(boolean)),
                5 => format!("(NOT {x})"),
                6 => format!("({} IS NULL)", part(other)),
                7 => {
                    let value = part(other);
                    let items = [other.literals[0], other.literals[other.literals.len() - 1]].join(", ");
                    format!("({value} IN ({items}))")
                }
                8 => format!(
                    "({} {} '{}')",
                    part(kind("text")),
                    random.pick(&["LIKE", "NOT LIKE", "ILIKE"]),
                    random.pick(&["%b%", "a%", "%", "_b%", ""])
                ),
                9 => {
                    let date = part(kind("date"));
                    let unit = random.pick(&["month", "day", "hour"]);
                    format!("(date_trunc('{unit}', ({date})::timestamp) > timestamp '2020-03-01')")
                }
                _ => {
                    let sides = (part(other), part(other));
                    let sign = *random.pick(&["=", "<>", "<", "<=", ">", ">="]);
                    format!("({} {sign} {})", sides.0, sides.1)
                }
            }
        }
        ("text", turn) => match turn {
            3 | 4 => format!("({x} || {y})"),
            5 => format!("upper({x})"),
            6 => format!("({})::text", expression(random, kind("numeric"), depth - 1)),
            7 => format!(
                "regexp_replace({x}, '{}', '<\\1>', 'g')",
                random.pick(&["(b|é)", "^(.)", "[0-9]+"])
            ),
            _ => common(&mut |of| expression(random, of, depth - 1), turn % 5),
        },
        ("date", turn) => match turn {
            3 | 4 => format!("({x} + {})", random.below(9)),
            _ => common(&mut |of| expression(random, of, depth - 1), turn % 5),
        },
        ("int", 3) => format!("length({})", expression(random, kind("text"), depth - 1)),
        ("numeric", 4) => format!(
            "extract({} FROM {})",
            random.pick(&[
                "year", "month", "day", "quarter", "dow", "isodow", "doy", "week", "epoch"
            ]),
            expression(random, kind("date"), depth - 1)
        ),
        ("numeric", 5) => format!(
            "extract({} FROM ({})::timestamp + interval '7 hours 12.5 s')",
            random.pick(&["hour", "minute", "second", "microsecond", "day"]),
            expression(random, kind("date"), depth - 1)
        ),
        (_, 3) if of.name != "int" => format!("({})::{}", expression(random, kind("int"), depth - 1), of.name),
        (_, 4) => format!("(- {x})"),
        (_, 5) => format!("({x} / {y})"),
        (_, 6) => common(&mut |of| expression(random, of, depth - 1), 4),
        (_, 7) if of.name != "double precision" => format!("({x} % {y})"),
        _ => format!("({x} {} {y})", random.pick(&["+", "-", "*"])),
    }
}

fn must(database: &Database, session: &mut Session, sql: &str) -> Vec<String> {
    match ask(database, session, sql) {
        Answer::Rows(rows, _) => rows,
        Answer::Error(state, message) => panic!("{sql}: {state} {message}"),
    }
}

fn filled(rows: usize) -> (Database, Session) {
    let mut database = Database::new();
    let slot = database.service.connections.add("test");
    let mut session = Session::new(slot, "tester", "test");
    must(
        &database,
        &mut session,
        "CREATE TABLE t (id int PRIMARY KEY, a int, b int, c bigint, d double precision, e numeric(9,2), f numeric, g text, h text, i boolean, j date, k character(4), l smallint)",
    );
    let fill = format!(
        "INSERT INTO t SELECT n, CASE WHEN n % 7 > 0 THEN n % 5 - 2 END, n::bigint * 300001 % 2147483, CASE n % 9 WHEN 0 THEN NULL ELSE n::bigint * 1000000007 END,
         CASE n % 8 WHEN 0 THEN 'NaN' WHEN 1 THEN NULL ELSE n / 4.0 END, CASE WHEN n % 6 > 0 THEN n / 3.0 END,
         CASE n % 10 WHEN 0 THEN NULL WHEN 1 THEN n * 1234567890123456789.5 WHEN 2 THEN n / 8.0 ELSE n % 3 END,
         CASE WHEN n % 4 > 0 THEN chr(97 + n % 4) || 'b' || n % 3 END, repeat('é', n % 3), CASE n % 5 WHEN 0 THEN NULL ELSE n % 2 = 0 END,
         CASE WHEN n % 11 > 0 THEN date '2020-02-20' + n % 40 END,
         CASE WHEN n % 3 > 0 THEN substr('abcab', n % 3, n % 4) END, CASE WHEN n % 13 > 0 THEN n % 300 - 100 END FROM generate_series(1, {rows}) n"
    );
    must(&database, &mut session, &fill);
    let index = doc! { "key": doc! { "a": 1 }, "name": "a" };
    database.must(doc! { "createIndexes": "t", "indexes": vec![Value::from(index)] });
    (database, session)
}

#[test]
fn expressions_give_the_same_by_columns_as_by_rows() {
    let (database, mut session) = filled(90);
    let (mut errors, mut answers) = (0, 0);
    for seed in 1..=700 {
        let mut random = Random::new(seed);
        let of = &KINDS[random.below(KINDS.len())];
        let expression = expression(&mut random, of, 3);
        let filter = expression_filter(&mut random);
        // Rows of a query are computed one by one, what an aggregate takes by chunks.
        let by_rows = ask(
            &database,
            &mut session,
            &format!("SELECT ({expression})::text FROM t WHERE {filter} ORDER BY id"),
        );
        let by_columns = ask(
            &database,
            &mut session,
            &format!("SELECT unnest(array_agg(({expression})::text ORDER BY id)) FROM t WHERE {filter}"),
        );
        match (by_rows, by_columns) {
            (Answer::Rows(rows, tag), Answer::Rows(columns, same)) => {
                assert_eq!((rows, tag), (columns, same), "{seed}: {expression} where {filter}");
                answers += 1;
            }
            (Answer::Error(..), Answer::Error(..)) => errors += 1,
            (Answer::Rows(..), Answer::Error(state, message)) => {
                panic!("{seed}: {expression} where {filter}: {state} {message} by columns alone")
            }
            (Answer::Error(state, message), Answer::Rows(..)) => {
                panic!("{seed}: {expression} where {filter}: {state} {message} by rows alone")
            }
        }
    }
    assert!(answers > 400 && errors > 20, "{answers} answers and {errors} errors");
}

fn expression_filter(random: &mut Random) -> String {
    match random.one_in(3) {
        true => "true".to_owned(),
        // No conditions that may end with an error, which depends on who looks first.
        false => format!(
            "{} IS NOT NULL AND id > {}",
            random.pick(&["a", "d", "g", "i"]),
            random.below(60)
        ),
    }
}

#[test]
fn joins_and_groups_of_many_chunks_are_those_of_rows() {
    let (database, mut session) = filled(2600);
    let mut check = |by_chunks: &str, by_rows: &str| {
        let found = must(&database, &mut session, by_chunks);
        let wanted = must(&database, &mut session, by_rows);
        assert!(!wanted.is_empty(), "{by_rows}");
        assert_eq!(found, wanted, "{by_chunks}");
    };
    // An OR has no key for a table: its join tries all rows.
    for kind in ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"] {
        for extra in ["", " AND x.id % 3 < y.id % 5"] {
            let query = |on: &str| {
                format!(
                    "SELECT count(*), sum(x.id * 7 + y.id), count(x.id), count(y.id), min(y.g), max(x.j) FROM
                     (SELECT * FROM t WHERE id <= 1200 AND id % 3 > 0) x {kind} (SELECT * FROM t WHERE id > 2540 AND id % 5 > 0) y ON {on}{extra}"
                )
            };
            check(
                &query("x.a = y.a AND x.g = y.g"),
                &query("(x.a = y.a AND x.g = y.g OR false)"),
            );
        }
        // Keys of each type, of two widths, with several scales, with what is no number, and with nulls.
        let keys = [
            "x.b = y.c",
            "x.c = y.b",
            "x.e = y.f",
            "x.f = y.e",
            "x.d = y.d",
            "x.d = y.b",
            "x.g = y.g",
            "x.g = y.h",
            "x.j = y.j",
            "x.k = y.k",
            "x.i = y.i AND x.a = y.a",
            "x.j = y.j AND x.f = y.f AND x.k = y.k",
        ];
        for on in keys {
            let query = |on: &str| {
                format!(
                    "SELECT count(*), sum(x.id * 7 + y.id), count(x.id), count(y.id), min(y.g), max(x.j) FROM
                     (SELECT * FROM t WHERE id % 9 = 0) x {kind} (SELECT * FROM t WHERE id % 31 < 2) y ON {on}"
                )
            };
            check(&query(on), &query(&format!("({on} OR false)")));
        }
    }
    for sign in ["IN", "NOT IN"] {
        let query = |on: &str| {
            format!(
                "SELECT count(*), sum(id) FROM t x WHERE x.b IS NOT NULL AND x.id < 1300 AND x.b {sign} (SELECT y.b FROM t y WHERE y.id > 1200 AND y.id < 1400 AND y.b IS NOT NULL{on})"
            )
        };
        check(&query(""), &query(" AND x.id > 0"));
    }
    // What follows from other columns of a group, and different values of all rows.
    check(
        "SELECT a, a - 1, l * 2, 'x', upper(g), l, g, count(*), max(b) FROM t GROUP BY 1, 2, 3, 4, 5, 6, 7 ORDER BY a, l, g",
        "SELECT a, a - 1, l * 2, 'x', upper(g), l, g, count(*), max(b) FROM (SELECT * FROM t ORDER BY random() LIMIT 100000) t GROUP BY a, l, g ORDER BY a, l, g",
    );
    check(
        "SELECT count(DISTINCT a), count(DISTINCT e), count(DISTINCT g), sum(DISTINCT l), count(DISTINCT k), avg(DISTINCT d) FROM t",
        "SELECT (SELECT count(*) FROM (SELECT a FROM t WHERE a IS NOT NULL GROUP BY a) x), (SELECT count(*) FROM (SELECT e FROM t WHERE e IS NOT NULL GROUP BY e) x),
         (SELECT count(*) FROM (SELECT g FROM t WHERE g IS NOT NULL GROUP BY g) x), (SELECT sum(l) FROM (SELECT l FROM t GROUP BY l) x),
         (SELECT count(*) FROM (SELECT k FROM t WHERE k IS NOT NULL GROUP BY k) x), (SELECT avg(d) FROM (SELECT d FROM t GROUP BY d) x)",
    );
    // The first by an order whose first key is the same for many.
    for order in [
        "a, g DESC, l NULLS FIRST",
        "g DESC NULLS LAST, a DESC, l",
        "l, d DESC, id",
    ] {
        let limited =
            |filter: &str| format!("SELECT a, g, l, d FROM t WHERE {filter} ORDER BY {order}, id LIMIT 9 OFFSET 400");
        let all = format!(
            "SELECT a, g, l, d FROM (SELECT a, g, l, d, row_number() OVER (ORDER BY {order}, id) n FROM t) x WHERE n > 400 AND n <= 409 ORDER BY n"
        );
        check(&limited("true"), &all);
    }
    check(
        "SELECT a, g, i, count(*), sum(e), avg(c), min(h), max(j), count(DISTINCT b % 10), sum(e) FILTER (WHERE i) FROM t GROUP BY a, g, i ORDER BY 1, 2, 3",
        "SELECT a, g, i, count(*), sum(e), avg(c), min(h), max(j), count(DISTINCT b % 10), sum(e) FILTER (WHERE i) FROM (SELECT * FROM t ORDER BY random() LIMIT 100000) t GROUP BY a, g, i ORDER BY 1, 2, 3",
    );
}
