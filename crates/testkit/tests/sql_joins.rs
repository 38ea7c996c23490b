//! Joins of SQL give what the text asks for, in whatever order they are made: random joins are compared with plain loops, and joins of many
//! tables do not go through products.

#[path = "shared/database.rs"]
mod database;
#[path = "shared/session.rs"]
mod session;

use database::Database;
use nestor_model::{Value, doc};
use nestor_sql::session::Session;
use nestor_testkit::random::Random;
use session::{Answer, ask};

fn must(database: &Database, session: &mut Session, sql: &str) -> Vec<String> {
    match ask(database, session, sql) {
        Answer::Rows(rows, tag) => {
            assert!(
                !tag.starts_with("SELECT") || tag == format!("SELECT {}", rows.len()),
                "{tag}"
            );
            rows
        }
        Answer::Error(state, message) => panic!("{sql}: {state} {message}"),
    }
}

type Row = Vec<Option<i64>>;
const COLUMNS: [&str; 3] = ["id", "a", "b"];

/// A column of one of the tables of a query, or a number.
#[derive(Clone, Copy)]
enum Side {
    Column(usize, usize),
    Number(i64),
}

/// A condition: by SQL's three truth values, of which only true counts at its top.
enum Condition {
    Compare(Side, &'static str, Side),
    Not(Box<Condition>),
    Any(Vec<Vec<Condition>>),
}

impl Side {
    fn text(self) -> String {
        match self {
            Self::Column(table, column) => format!("t{table}.{}", COLUMNS[column]),
            Self::Number(n) => n.to_string(),
        }
    }

    fn value(self, rows: &[&Row]) -> Option<i64> {
        match self {
            Self::Column(table, column) => rows[table][column],
            Self::Number(n) => Some(n),
        }
    }
}

impl Condition {
    fn text(&self) -> String {
        match self {
            Self::Compare(a, op, b) => format!("{} {op} {}", a.text(), b.text()),
            Self::Not(of) => format!("NOT ({})", of.text()),
            Self::Any(branches) => {
                let all = |branch: &Vec<Self>| branch.iter().map(Self::text).collect::<Vec<_>>().join(" AND ");
                let branches: Vec<String> = branches.iter().map(|branch| format!("({})", all(branch))).collect();
                format!("({})", branches.join(" OR "))
            }
        }
    }

    fn truth(&self, rows: &[&Row]) -> Option<bool> {
        match self {
            Self::Compare(a, op, b) => {
                let (a, b) = (a.value(rows)?, b.value(rows)?);
                Some(match *op {
                    "=" => a == b,
                    "<" => a < b,
                    _ => a != b,
                })
            }
            Self::Not(of) => of.truth(rows).map(|truth| !truth),
            Self::Any(branches) => {
                let all = branches.iter().map(|branch| {
                    let each: Vec<Option<bool>> = branch.iter().map(|c| c.truth(rows)).collect();
                    match each.contains(&Some(false)) {
                        true => Some(false),
                        false => each.iter().all(Option::is_some).then_some(true),
                    }
                });
                let all: Vec<Option<bool>> = all.collect();
                match all.contains(&Some(true)) {
                    true => Some(true),
                    false => all.iter().all(Option::is_some).then_some(false),
                }
            }
        }
    }

    /// One over the first `tables` tables; mostly an equality.
    fn random(random: &mut Random, tables: usize, depth: usize) -> Self {
        let column = |random: &mut Random| Side::Column(random.below(tables), random.below(3));
        match random.below(if depth > 0 { 14 } else { 11 }) {
            0..=6 => Self::Compare(column(random), "=", column(random)),
            7 | 8 => Self::Compare(column(random), "=", Side::Number(random.below(4) as i64)),
            9 => Self::Compare(column(random), "<", Side::Number(random.below(4) as i64)),
            10 => Self::Compare(column(random), random.pick::<&str>(&["<", "<>"]), column(random)),
            11 => Self::Not(Box::new(Self::random(random, tables, depth - 1))),
            _ => {
                let branch = |random: &mut Random| -> Vec<Self> {
                    (0..1 + random.below(3))
                        .map(|_| Self::random(random, tables, depth - 1))
                        .collect()
                };
                Self::Any((0..2 + random.below(2)).map(|_| branch(random)).collect())
            }
        }
    }
}

/// The rows that plain loops find.
fn loops(tables: &[&[Row]], conditions: &[Condition]) -> Vec<String> {
    fn at<'r>(tables: &[&'r [Row]], picked: &mut Vec<&'r Row>, conditions: &[Condition], out: &mut Vec<String>) {
        let Some((first, rest)) = tables.split_first() else {
            if conditions.iter().all(|condition| condition.truth(picked) == Some(true)) {
                let values = picked.iter().flat_map(|row| row.iter());
                let values: Vec<String> = values.map(|v| v.map_or("NULL".to_owned(), |v| v.to_string())).collect();
                out.push(values.join(" | "));
            }
            return;
        };
        for row in first.iter() {
            picked.push(row);
            at(rest, picked, conditions, out);
            picked.pop();
        }
    }
    let mut out = Vec::new();
    at(tables, &mut Vec::new(), conditions, &mut out);
    out.sort();
    out
}

#[test]
fn joins_in_any_order_give_the_pairs_of_plain_loops() {
    let mut database = Database::new();
    let slot = database.service.connections.add("test");
    let mut session = Session::new(slot, "tester", "test");
    let mut random = Random::new(0x10_1b5);
    let mut all: Vec<Vec<Row>> = Vec::new();
    for table in 0..5 {
        must(
            &database,
            &mut session,
            &format!("CREATE TABLE r{table} (id int PRIMARY KEY, a int, b int)"),
        );
        // One is large enough for its index to be worth a look.
        let count = if table == 0 { 60 } else { 1 + random.below(7) };
        let value = |random: &mut Random| (!random.one_in(6)).then(|| random.below(5) as i64);
        let rows: Vec<Row> = (0..count as i64)
            .map(|id| vec![Some(id), value(&mut random), value(&mut random)])
            .collect();
        let shown = |value: &Option<i64>| value.map_or("NULL".to_owned(), |v| v.to_string());
        let each = rows
            .iter()
            .map(|row| format!("({})", row.iter().map(shown).collect::<Vec<_>>().join(", ")));
        let values = each.collect::<Vec<_>>().join(", ");
        must(
            &database,
            &mut session,
            &format!("INSERT INTO r{table} VALUES {values}"),
        );
        all.push(rows);
    }
    let index = Value::from(doc! { "key": doc! { "a": 1 }, "name": "by a" });
    database.must(doc! { "createIndexes": "r0", "indexes": vec![index] });
    for round in 0..600 {
        let count = 2 + random.below(4);
        // Not the large one more than once.
        let mut picked: Vec<usize> = (0..count).map(|_| 1 + random.below(4)).collect();
        if random.one_in(2) {
            picked[random.below(count)] = 0;
        }
        let conditions: Vec<Condition> = (0..count - 1 + random.below(4))
            .map(|_| Condition::random(&mut random, count, 2))
            .collect();
        let tables: Vec<&[Row]> = picked.iter().map(|table| &*all[*table]).collect();
        let from: Vec<String> = picked
            .iter()
            .enumerate()
            .map(|(i, table)| format!("r{table} t{i}"))
            .collect();
        let text: Vec<String> = conditions.iter().map(|c| format!("({})", c.text())).collect();
        let sql = format!("SELECT * FROM {} WHERE {}", from.join(", "), text.join(" AND "));
        let mut rows = must(&database, &mut session, &sql);
        rows.sort();
        assert!(rows == loops(&tables, &conditions), "round {round}: {sql}");
    }
}

/// What outer joins, EXISTS and NOT EXISTS of two tables give.
fn paired(kind: &str, left: &[Row], right: &[Row], conditions: &[Condition]) -> Vec<String> {
    let shown = |rows: [&Row; 2], width: usize| {
        let values = rows.into_iter().flatten().take(width);
        let values: Vec<String> = values.map(|v| v.map_or("NULL".to_owned(), |v| v.to_string())).collect();
        values.join(" | ")
    };
    let is_pair = |l: &Row, r: &Row| conditions.iter().all(|c| c.truth(&[l, r]) == Some(true));
    let nulls = vec![None; COLUMNS.len()];
    let mut out = Vec::new();
    for l in left {
        let pairs: Vec<&Row> = right.iter().filter(|r| is_pair(l, r)).collect();
        match kind {
            "EXISTS" if !pairs.is_empty() => out.push(shown([l, &nulls], 3)),
            "NOT EXISTS" if pairs.is_empty() => out.push(shown([l, &nulls], 3)),
            "EXISTS" | "NOT EXISTS" => {}
            _ => {
                out.extend(pairs.iter().map(|r| shown([l, r], 6)));
                if pairs.is_empty() && kind != "RIGHT" {
                    out.push(shown([l, &nulls], 6));
                }
            }
        }
    }
    if matches!(kind, "RIGHT" | "FULL") {
        let alone = right.iter().filter(|r| !left.iter().any(|l| is_pair(l, r)));
        out.extend(alone.map(|r| shown([&nulls, r], 6)));
    }
    out.sort();
    out
}

#[test]
fn outer_and_semi_joins_give_what_plain_loops_do() {
    let database = Database::new();
    let slot = database.service.connections.add("test");
    let mut session = Session::new(slot, "tester", "test");
    let mut random = Random::new(0x5e_a1);
    let mut all: Vec<Vec<Row>> = Vec::new();
    for (table, count) in [(0, 9), (1, 14), (2, 0)] {
        must(
            &database,
            &mut session,
            &format!("CREATE TABLE o{table} (id int PRIMARY KEY, a int, b int)"),
        );
        let value = |random: &mut Random| (!random.one_in(5)).then(|| random.below(4) as i64);
        let rows: Vec<Row> = (0..count)
            .map(|id| vec![Some(id), value(&mut random), value(&mut random)])
            .collect();
        for row in &rows {
            let values: Vec<String> = row
                .iter()
                .map(|v| v.map_or("NULL".to_owned(), |v| v.to_string()))
                .collect();
            must(
                &database,
                &mut session,
                &format!("INSERT INTO o{table} VALUES ({})", values.join(", ")),
            );
        }
        all.push(rows);
    }
    for round in 0..500 {
        let kind = *random.pick(&["LEFT", "RIGHT", "FULL", "EXISTS", "NOT EXISTS"]);
        let conditions: Vec<Condition> = (0..1 + random.below(3))
            .map(|_| Condition::random(&mut random, 2, 1))
            .collect();
        let (left, right) = (random.below(3), random.below(3));
        let text: Vec<String> = conditions.iter().map(|c| format!("({})", c.text())).collect();
        let text = text.join(" AND ");
        let sql = match kind {
            "EXISTS" | "NOT EXISTS" => {
                format!("SELECT * FROM o{left} t0 WHERE {kind} (SELECT 1 FROM o{right} t1 WHERE {text})")
            }
            kind => format!("SELECT * FROM o{left} t0 {kind} JOIN o{right} t1 ON {text}"),
        };
        let mut rows = must(&database, &mut session, &sql);
        rows.sort();
        assert!(
            rows == paired(kind, &all[left], &all[right], &conditions),
            "round {round}: {sql}\n{rows:?}"
        );
    }
}

/// Sixty tables in an order of FROM in which neighbours have nothing in common: with products there would be no end.
#[test]
fn many_tables_are_joined_along_their_conditions() {
    let database = Database::new();
    let slot = database.service.connections.add("test");
    let mut session = Session::new(slot, "tester", "test");
    const TABLES: usize = 60;
    let values: Vec<String> = (1..=10).map(|n| format!("({n}, {})", (n * 7) % 10 + 1)).collect();
    for table in 0..TABLES {
        must(
            &database,
            &mut session,
            &format!("CREATE TABLE c{table} (a{table} int PRIMARY KEY, b{table} int)"),
        );
        let sql = format!("INSERT INTO c{table} VALUES {}", values.join(", "));
        must(&database, &mut session, &sql);
    }
    let from: Vec<String> = (0..TABLES).map(|i| format!("c{}", i * 23 % TABLES)).collect();
    let links: Vec<String> = (1..TABLES).map(|i| format!("b{} = a{i}", i - 1)).collect();
    let sql = format!(
        "SELECT a0 FROM {} WHERE {} AND a30 = 4",
        from.join(", "),
        links.join(" AND ")
    );
    let plan = must(&database, &mut session, &format!("EXPLAIN {sql}")).join("\n");
    assert!(!plan.contains("Nested Loop"), "{plan}");
    // b is a permutation of a without cycles that end before: a30 is what b gives of a0 thirty times over.
    let before = (1..=10).find(|a| (0..30).fold(*a, |a, _| (a * 7) % 10 + 1) == 4);
    let before: Vec<String> = before.iter().map(ToString::to_string).collect();
    assert_eq!(must(&database, &mut session, &sql), before);
}

/// A constant goes to all that is equal to it, and every table is read by it.
#[test]
fn constants_spread_over_equalities() {
    let database = Database::new();
    let slot = database.service.connections.add("test");
    let mut session = Session::new(slot, "tester", "test");
    for table in ["x", "y", "z"] {
        must(
            &database,
            &mut session,
            &format!("CREATE TABLE {table} (id int PRIMARY KEY, v int)"),
        );
        must(
            &database,
            &mut session,
            &format!("INSERT INTO {table} SELECT n, n % 3 FROM generate_series(1, 20) AS s(n)"),
        );
    }
    let sql = "SELECT x.v, z.id FROM x, y, z WHERE x.id = y.v AND y.v = z.id AND z.id = 2 AND (x.v = 1 AND y.id > 3 OR x.v = 2 AND y.id > 15)";
    let plan = must(&database, &mut session, &format!("EXPLAIN {sql}")).join("\n");
    for found in ["(v = 2)", "(id = 2)", "(v = 1) OR (v = 2)", "(id > 3) OR (id > 15)"] {
        assert!(plan.contains(found), "{found} in {plan}");
    }
    assert_eq!(must(&database, &mut session, sql).len(), 2);
}
