//! Queries of SQL answer the same whatever indexes there are: random queries over two collections, and over two tables, with the same rows
//! of which one has indexes.

#[path = "shared/database.rs"]
mod database;
#[path = "shared/session.rs"]
mod session;

use database::Database;
use nestor_model::{Array, Document, Value, doc};
use nestor_sql::session::Session;
use nestor_testkit::random::Random;
use session::{Answer, ask};

/// Indexes as key patterns.
const INDEXES: &[&[(&str, i32)]] = &[
    &[("a", 1)],
    &[("b", -1)],
    &[("c", 1)],
    &[("d", 1)],
    &[("e", 1), ("a", -1)],
    &[("c", 1), ("e", -1)],
    &[("e", 1), ("b", 1), ("c", 1)],
];

const COLUMNS: &[&str] = &["a", "b", "c", "d", "e"];

/// Values of a field, null among them; documents also lack it.
fn value(random: &mut Random, column: &str, mixed: bool) -> Option<Value> {
    if random.one_in(6) {
        return None;
    }
    if column != "e" && random.one_in(6) {
        return Some(Value::Null);
    }
    let n = random.below(12) as i32 - 4;
    Some(match column {
        "a" if mixed && random.one_in(3) => Value::Int64(i64::from(n)),
        "a" => Value::Int32(n),
        "b" => match random.below(8) {
            0 => Value::Double(f64::NAN),
            1 => Value::Double(f64::INFINITY),
            2 => Value::Double(f64::NEG_INFINITY),
            3 if mixed => Value::Int32(n),
            _ => Value::Double(f64::from(n) / 2.0),
        },
        "c" => Value::String(["", "a", "ab", "b", "B", "é", "zz", "10"][random.below(8)].into()),
        "d" => Value::DateTime(i64::from(n) * 50_000_000),
        _ => Value::Int32(n / 3),
    })
}

fn documents(random: &mut Random, count: usize, mixed: bool) -> Vec<Document> {
    let document = |id: usize| {
        let mut doc = doc! { "_id": id as i32 };
        for column in COLUMNS {
            match value(random, column, mixed) {
                Some(value) => doc.push(*column, value),
                None if *column == "e" => doc.push("e", 1),
                None => {}
            }
        }
        // Texts of inferred columns are what any value shows. What the sample at either end has decides the type.
        if mixed && (120..count - 120).contains(&id) && random.one_in(25) {
            doc.set("c", 7);
        }
        doc
    };
    (0..count).map(document).collect()
}

/// A query over `{t}`. What it gives does not depend on the order of rows that are equal in what it orders by.
fn query(random: &mut Random) -> String {
    let mut condition = Vec::new();
    for _ in 0..random.below(3) {
        let column = *random.pick(COLUMNS);
        let literal = match column {
            "c" => format!("'{}'", ["", "a", "b", "zz"][random.below(4)]),
            "d" => {
                let day = 1 + random.below(4);
                match random.below(3) {
                    0 => format!("{{moment}} '1970-01-0{day} 12:00'"),
                    1 => format!("{{moment}} '1970-01-0{day}' - interval '1 day'"),
                    _ => format!("'1970-01-0{day}'"),
                }
            }
            "b" => ["0", "1.5", "'NaN'", "'infinity'"][random.below(4)].to_owned(),
            _ => (random.below(8) as i32 - 3).to_string(),
        };
        condition.push(match random.below(7) {
            6 => [
                "{id} IN (3, 90, 5, NULL, 3, 1000)",
                "{id} = ANY ('{7,8,9,10,NULL,60,61,62}')",
                "{id} = 11",
            ][random.below(3)]
            .to_owned(),
            0 => format!("{column} IS NOT NULL"),
            1 => format!("{column} IS NULL"),
            2 => format!("{column} > {literal}"),
            3 => format!("{column} <= {literal}"),
            _ => format!("{column} = {literal}"),
        });
    }
    let filter = match condition.is_empty() {
        true => String::new(),
        false => format!(" WHERE ({}){{plainly}}", condition.join(" AND ")),
    };
    match random.below(10) {
        0 => return format!("SELECT count(*) FROM {{t}}{filter}"),
        1 | 2 => {
            let calls =
                (0..1 + random.below(3)).map(|_| format!("{}({})", random.pick(&["min", "max"]), random.pick(COLUMNS)));
            return format!("SELECT {} FROM {{t}}{filter}", calls.collect::<Vec<_>>().join(", "));
        }
        3 => {
            let columns = [*random.pick(COLUMNS), *random.pick(COLUMNS)][..1 + random.below(2)].join(", ");
            return format!("SELECT DISTINCT {columns} FROM {{t}}{filter} ORDER BY {columns}");
        }
        4 => {
            let (on, by) = (random.pick(COLUMNS), random.pick(COLUMNS));
            return format!("SELECT DISTINCT ON ({on}) {on}, {by} FROM {{t}}{filter} ORDER BY {on}, {by} DESC");
        }
        _ => {}
    }
    let mut order: Vec<String> = Vec::new();
    let mut columns: Vec<&str> = Vec::new();
    for _ in 0..1 + random.below(3) {
        let column = *random.pick(COLUMNS);
        let direction = ["", " DESC"][random.below(2)];
        let nulls = ["", "", " NULLS FIRST", " NULLS LAST"][random.below(4)];
        columns.push(column);
        order.push(format!("{column}{direction}{nulls}"));
    }
    let (columns, order) = (columns.join(", "), order.join(", "));
    let limit = match random.below(4) {
        0 => String::new(),
        _ => format!(
            " LIMIT {} OFFSET {}",
            random.below(15),
            random.below(3) * random.below(9)
        ),
    };
    format!("SELECT {columns} FROM {{t}}{filter} ORDER BY {order}{limit}")
}

fn rows(database: &Database, session: &mut Session, sql: &str) -> Vec<String> {
    match ask(database, session, sql) {
        Answer::Rows(rows, tag) => {
            assert!(
                !tag.starts_with("SELECT") || tag == format!("SELECT {}", rows.len()),
                "{sql}: {tag}"
            );
            rows
        }
        Answer::Error(state, message) => panic!("{sql}: {state} {message}"),
    }
}

/// Compares queries over `plain` and `indexed`, whose key is `id` and whose moments are of type `moment`; returns how many of them an index
/// gave the order of. Behind conditions on `plain` stands `plainly`: of one that `IS TRUE` the find layer knows nothing.
fn compare(
    (database, session): (&Database, &mut Session),
    random: &mut Random,
    (id, moment): (&str, &str),
    plainly: &str,
) -> usize {
    let mut presorted = 0;
    for _ in 0..60 {
        let sql = query(random).replace("{id}", id).replace("{moment}", moment);
        let plain = sql.replace("{t}", "plain").replace("{plainly}", plainly);
        let indexed = sql.replace("{t}", "indexed").replace("{plainly}", "");
        let wanted = rows(database, session, &plain);
        let plan = rows(database, session, &format!("EXPLAIN {indexed}"));
        let found = rows(database, session, &indexed);
        assert_eq!(found, wanted, "{indexed}\n{}", plan.join("\n"));
        presorted += usize::from(plan.iter().any(|line| line.contains("Presorted")));
    }
    presorted
}

fn indexes(database: &mut Database, count: usize, random: &mut Random) {
    for (i, key) in INDEXES.iter().enumerate() {
        if i >= count && random.one_in(2) {
            continue;
        }
        let mut pattern = Document::new();
        key.iter().for_each(|(path, direction)| pattern.push(*path, *direction));
        let index = doc! { "key": pattern, "name": format!("i{i}") };
        database.must(doc! { "createIndexes": "indexed", "indexes": vec![Value::from(index)] });
    }
}

#[test]
fn queries_over_collections_do_not_depend_on_indexes() {
    let mut presorted = 0;
    for seed in 1..=12 {
        let mut random = Random::new(seed);
        let mut database = Database::new();
        let slot = database.service.connections.add("test");
        let mut session = Session::new(slot, "tester", "test");
        let docs = documents(&mut random, 100 + 30 * seed as usize, seed > 8);
        let docs = Value::Array(Array::new(docs.into_iter().map(Value::from).collect()));
        for name in ["plain", "indexed"] {
            database.must(doc! { "insert": name, "documents": docs.clone() });
        }
        indexes(&mut database, 4, &mut random);
        // Conditions find values of the column's type, even where others show as texts when they are read.
        let plainly = if seed > 8 { "" } else { " IS TRUE" };
        presorted += compare((&database, &mut session), &mut random, ("_id", "timestamptz"), plainly);
    }
    assert!(presorted > 100, "indexes gave the order of {presorted} queries");
}

#[test]
fn queries_over_tables_do_not_depend_on_indexes() {
    let mut presorted = 0;
    for seed in 21..=30 {
        let mut random = Random::new(seed);
        let mut database = Database::new();
        let slot = database.service.connections.add("test");
        let mut session = Session::new(slot, "tester", "test");
        let docs = documents(&mut random, 100, false);
        let docs = Value::Array(Array::new(docs.into_iter().map(Value::from).collect()));
        let (ty, moment) = [
            ("timestamptz", "timestamptz"),
            ("date", "timestamp"),
            ("timestamp", "timestamp"),
        ][seed as usize % 3];
        let columns = format!("(id int PRIMARY KEY, a int, b double precision, c text, d {ty}, e int NOT NULL)");
        for name in ["plain", "indexed"] {
            rows(&database, &mut session, &format!("CREATE TABLE {name} {columns}"));
            database.must(doc! { "insert": name, "documents": docs.clone() });
        }
        indexes(&mut database, 4, &mut random);
        presorted += compare((&database, &mut session), &mut random, ("id", moment), " IS TRUE");
    }
    assert!(presorted > 100, "indexes gave the order of {presorted} queries");
}
