//! Rows that are elements of arrays are the same with indexes on their fields and without, and by columns as by documents, whatever the fields hold.

#[path = "shared/database.rs"]
mod database;
#[path = "shared/session.rs"]
#[allow(dead_code)] // Nobody looks at tags.
mod session;

use database::Database;
use nestor_model::{Array, Decimal128, Document, Value, doc};
use nestor_sql::session::Session;
use nestor_storage::View;
use nestor_testkit::random::Random;
use session::{Answer, ask};

const DAY_MS: i64 = 86_400_000;

/// The columns of elements, and the values that they are compared with.
const COLUMNS: [(&str, &[&str]); 6] = [
    ("part", &["0", "3", "7", "11"]),
    ("name", &["'a'", "'b'", "'3'", "'[1]'", "'{}'"]),
    ("price", &["0.1", "1", "2.5"]),
    ("score", &["0.1", "1", "9007199254740992"]),
    ("ship", &["'1970-01-02'", "'1970-01-05'"]),
    ("at", &["'1970-01-02 12:00:00Z'", "'1970-01-05 00:00:00.0005Z'"]),
];

/// A value of a field: mostly one of its column's type, else mostly one that can be read as that.
fn value(random: &mut Random, column: usize) -> Value {
    // Of parts there are so many that few are looked up.
    let n = random.below(if column == 0 { 60 } else { 12 }) as i64;
    if random.one_in(600) {
        return Value::Bool(true);
    }
    if random.one_in(6) {
        return match (column, random.below(5)) {
            (_, 0) => Value::Null,
            (1, 1) => Value::Int64(n),
            (1, 2) => Value::Array(Array::new(vec![Value::Int64(n % 2)])),
            (1, 3) => Value::Document(Document::new()),
            (1, _) => Value::DateTime(n * DAY_MS / 2),
            (4 | 5, _) => Value::from(format!("1970-01-0{} 12:00Z", 1 + n % 6).as_str()),
            _ => Value::from(n.to_string().as_str()),
        };
    }
    match column {
        0 => match random.below(3) {
            0 => Value::Int32(n as i32),
            1 => Value::Int64(n),
            _ => Value::Double(n as f64),
        },
        1 => Value::from(*random.pick(&["a", "b", "c"])),
        2 => match random.below(2) {
            0 => Value::Decimal128(Decimal128::from_i64(n % 4)),
            _ => Value::Double(n as f64 / 10.0),
        },
        3 => match random.below(2) {
            0 => Value::Double(n as f64 / 10.0),
            _ => Value::Int64((1 << 53) + n % 3),
        },
        _ => Value::DateTime(n * DAY_MS / 2),
    }
}

/// Documents of arrays of elements. `plain` columns hold nothing that is no value of their type.
fn documents(random: &mut Random, count: usize, is_plain: bool) -> Vec<Value> {
    let mut docs = Vec::new();
    for id in 0..count {
        let mut lines = Vec::new();
        for _ in 0..random.below(4) {
            let mut line = Document::new();
            for (column, (name, _)) in COLUMNS.iter().enumerate() {
                let value = match (is_plain, column) {
                    (true, 0) => Value::Int32(random.below(60) as i32),
                    (true, 1) => Value::from(*random.pick(&["a", "b", "3"])),
                    _ => value(random, column),
                };
                if !random.one_in(10) {
                    line.push(*name, value);
                }
            }
            lines.push(Value::Document(line));
        }
        let mut doc = doc! { "_id": id as i32, "kind": (id % 3) as i32 };
        if !random.one_in(20) {
            doc.push("lines", Value::Array(Array::new(lines)));
        }
        docs.push(Value::Document(doc));
    }
    docs
}

fn condition(random: &mut Random) -> String {
    let (name, values) = *random.pick(&COLUMNS);
    let value = *random.pick(values);
    match random.below(6) {
        0 | 1 => format!("l.{name} = {value}"),
        2 => format!("l.{name} IN ({value}, {})", random.pick(values)),
        3 => format!("{value} >= l.{name}"),
        4 => format!("l.{name} > {value}"),
        _ => format!("o.kind = {}", random.below(3)),
    }
}

/// A session, and a table that elements are joined with.
fn with_keys(database: &Database) -> Session {
    let slot = database.service.connections.add("test");
    let mut session = Session::new(slot, "tester", "test");
    ask(database, &mut session, "CREATE TABLE keys (n int, word text)");
    ask(
        database,
        &mut session,
        "INSERT INTO keys VALUES (3, 'a'), (7, '3'), (NULL, NULL), (3, 'none')",
    );
    session
}

#[test]
fn indexes_on_fields_of_elements_find_what_reading_finds() {
    let (mut used, mut looked_up, mut given, mut unread) = (0, 0, 0, 0);
    for seed in 0..12 {
        let mut random = Random::new(seed);
        let mut database = Database::new();
        let docs = documents(&mut random, 120, seed % 2 == 0);
        for name in ["plain", "indexed"] {
            database.must(doc! { "insert": name, "documents": Value::Array(Array::new(docs.clone())) });
        }
        for (column, (name, _)) in COLUMNS.iter().enumerate() {
            let mut key = Document::new();
            key.push(format!("lines.{name}").as_str(), 1);
            // The next field behind it, in half of the runs.
            if seed % 4 < 2 {
                let (next, _) = COLUMNS[(column + 1) % COLUMNS.len()];
                key.push(format!("lines.{next}").as_str(), *random.pick(&[1, -1]));
            }
            let index = Value::from(doc! { "key": key, "name": *name });
            database.must(doc! { "createIndexes": "indexed", "indexes": vec![index] });
        }
        let mut session = with_keys(&database);
        for _ in 0..60 {
            let mut conditions: Vec<String> = (0..1 + random.below(3)).map(|_| condition(&mut random)).collect();
            let join = match random.below(4) {
                0 => ", keys k",
                _ => "",
            };
            if !join.is_empty() {
                conditions.push(random.pick(&["k.n = l.part", "k.word = l.name"]).to_string());
            }
            let text = |table: &str| {
                format!(
                    "SELECT o._id, l.* FROM {table} o, jsonb_to_recordset(o.lines) AS l (part int, name text, price numeric, score float8, \
                     ship date, at timestamptz){join} WHERE {} ORDER BY o._id, l::text",
                    conditions.join(" AND ")
                )
            };
            // What cannot be read ends a statement only where it is read.
            let (plain, indexed) = (text("plain"), text("indexed"));
            let Answer::Rows(wanted, _) = ask(&database, &mut session, &plain) else {
                continue;
            };
            match ask(&database, &mut session, &indexed) {
                Answer::Rows(rows, _) => assert_eq!(rows, wanted, "seed {seed}: {indexed}"),
                // A join without an index reads fewer rows where it knows the keys of the other side.
                Answer::Error(state, _) if state == "22P02" && !join.is_empty() => unread += 1,
                Answer::Error(state, message) => panic!("seed {seed}: {indexed}: {state} {message}"),
            }
            given += wanted.len();
            if let Answer::Rows(plan, _) = ask(&database, &mut session, &format!("EXPLAIN {indexed}")) {
                used += usize::from(plan.iter().any(|line| line.contains("IXSCAN")));
                looked_up += usize::from(plan.iter().any(|line| line.contains("Lookup")));
            }
        }
    }
    assert!(unread < 5, "{unread} joins by indexes read what others did not");
    assert!(used > 50 && looked_up > 3 && given > 200, "{used} {looked_up} {given}");
}

/// A value of a field that columns hold: of one type in most segments, or of several.
fn held(random: &mut Random, column: usize, is_odd: bool) -> Value {
    let n = random.below(60) as i64;
    match (column, is_odd && random.one_in(5)) {
        (_, true) if random.one_in(3) => Value::Null,
        (0, true) => Value::Double(n as f64),
        (1, true) => Value::Int64(n),
        (2 | 3, true) => Value::from(n.to_string().as_str()),
        (_, true) => Value::from(format!("1970-01-0{} 12:00Z", 1 + n % 6).as_str()),
        (0, _) => Value::Int32(n as i32),
        (1, _) => Value::from(*random.pick(&["a", "b", "3", "[1]"])),
        (2, _) => Value::Decimal128(Decimal128::from_i64(n % 4)),
        (3, _) => Value::Double(n as f64 / 10.0),
        _ => Value::DateTime(n * DAY_MS / 2),
    }
}

/// Documents from one number up to another.
fn held_documents(random: &mut Random, (from, to): (i32, i32), is_odd: bool) -> Vec<Value> {
    let document = |id: i32| {
        let count = random.below(5);
        let line = |random: &mut Random| {
            let mut line = Document::new();
            for (column, (name, _)) in COLUMNS.iter().enumerate() {
                if !random.one_in(12) {
                    line.push(*name, held(random, column, is_odd));
                }
            }
            Value::Document(line)
        };
        let lines: Vec<Value> = (0..count).map(|_| line(random)).collect();
        let mut doc = doc! { "_id": id, "kind": id % 3, "who": format!("name {}", id % 40) };
        match random.below(30) {
            0 => {}
            1 => doc.push("lines", Value::Null),
            _ => doc.push("lines", Value::Array(Array::new(lines))),
        }
        Value::Document(doc)
    };
    (from..to).map(document).collect()
}

fn query(random: &mut Random) -> String {
    let all: Vec<String> = (0..random.below(3)).map(|_| condition(random)).collect();
    let filter = if all.is_empty() {
        "true".to_owned()
    } else {
        all.join(" AND ")
    };
    let lines = "jsonb_to_recordset(o.lines) AS l (part int, name text, price numeric, score float8, ship date, at timestamptz)";
    match random.below(6) {
        0 => format!("SELECT o._id, l.* FROM docs o, {lines} WHERE {filter} ORDER BY o._id, l::text LIMIT 200"),
        1 => format!(
            "SELECT l.name, l.ship, count(*), sum(l.price), max(l.score), min(l.at) FROM docs o, {lines} WHERE {filter} GROUP BY 1, 2 ORDER BY 1, 2"
        ),
        2 => format!(
            "SELECT o.who, count(*), count(l.part), sum(l.part) FROM docs o LEFT JOIN LATERAL {lines} ON true WHERE {filter} GROUP BY 1 ORDER BY 1"
        ),
        3 => format!(
            "SELECT k.word, o.kind, count(*), sum(l.score) FROM docs o, {lines}, keys k WHERE k.n = l.part AND {filter} GROUP BY 1, 2 ORDER BY 1, 2"
        ),
        4 => format!("SELECT count(*), min(o.who), max(l.name), sum(l.price) FROM docs o, {lines} WHERE {filter}"),
        _ => format!(
            "SELECT o._id, l.part FROM docs o, {lines} WHERE {filter} ORDER BY l.part DESC NULLS LAST, o._id, l::text LIMIT 20"
        ),
    }
}

#[test]
fn elements_are_the_same_by_columns_as_by_documents() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut database = Database::within(directory.path());
    let mut random = Random::new(31);
    let insert = |database: &mut Database, docs: Vec<Value>| {
        database.must(doc! { "insert": "docs", "documents": Value::Array(Array::new(docs)) });
    };
    insert(&mut database, held_documents(&mut random, (0, 7000), false));
    insert(&mut database, held_documents(&mut random, (7000, 9000), true));
    let mut session = with_keys(&database);
    ask(&database, &mut session, "SET TimeZone = 'America/New_York'");
    database.service.engine.checkpoint().expect("a checkpoint");
    ask(&database, &mut session, "SET nestor.columns = 'on'");
    ask(&database, &mut session, "SELECT count(_id) FROM docs");
    let (mut by_columns, mut given) = (0, 0);
    for round in 0..20 {
        database.service.columns.settle();
        for _ in 0..4 {
            let sql = query(&mut random);
            ask(&database, &mut session, "SET nestor.columns = 'off'");
            // What cannot be read ends a statement only where it is read.
            let Answer::Rows(wanted, _) = ask(&database, &mut session, &sql) else {
                continue;
            };
            ask(&database, &mut session, "SET nestor.columns = 'on'");
            match ask(&database, &mut session, &sql) {
                Answer::Rows(rows, _) => assert_eq!(rows, wanted, "{round}: {sql}"),
                Answer::Error(state, message) => panic!("{round}: {sql}: {state} {message}"),
            }
            given += wanted.len();
            if let Answer::Rows(plan, _) = ask(&database, &mut session, &format!("EXPLAIN (ANALYZE, BUFFERS) {sql}")) {
                let has = |word: &str| plan.iter().any(|line| line.contains(word));
                by_columns += usize::from(has("Column Segments: ") && !has("Column Segments: 0"));
            }
        }
        let id = random.below(9000) as i32;
        match random.below(3) {
            0 => {
                let docs = held_documents(&mut random, (10_000 + round * 50, 10_050 + round * 50), round % 2 == 0);
                insert(&mut database, docs);
            }
            1 => {
                let change = doc! { "q": doc! { "_id": doc! { "$gte": id, "$lt": id + 20 }, "lines.0": doc! { "$exists": true } }, "u": doc! { "$set": doc! { "lines.0.name": "changed", "who": "nobody" } }, "multi": true };
                database.must(doc! { "update": "docs", "updates": vec![Value::from(change)] });
            }
            _ => {
                let gone = doc! { "q": doc! { "_id": doc! { "$gte": id, "$lt": id + 20 } }, "limit": 0 };
                database.must(doc! { "delete": "docs", "deletes": vec![Value::from(gone)] });
            }
        }
        if random.one_in(3) {
            database.service.engine.checkpoint().expect("a checkpoint");
            ask(&database, &mut session, "SELECT count(_id) FROM docs");
        }
    }
    assert!(by_columns > 40 && given > 1000, "{by_columns} by columns, {given} rows");
}

/// What columns tell of fields of elements is how many there are, and what they are; the planner knows it of views of elements.
#[test]
fn fields_of_elements_have_statistics() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut database = Database::within(directory.path());
    for from in (0..6000).step_by(1000) {
        let line = |id: i32, at: i32| {
            let price = if (id + at) % 4 == 0 {
                Value::Null
            } else {
                Value::Int32(id % 500)
            };
            Value::from(doc! { "part": (id * 3 + at) % 40, "price": price, "name": format!("name {}", id % 7) })
        };
        let lines = |id: i32| Value::Array(Array::new((0..id % 5).map(|at| line(id, at)).collect()));
        let docs = (from..from + 1000).map(|id| Value::from(doc! { "_id": id, "lines": lines(id) }));
        database.must(doc! { "insert": "docs", "documents": Value::Array(Array::new(docs.collect())) });
    }
    database.service.engine.checkpoint().expect("a checkpoint");
    let mut session = with_keys(&database);
    let asked = "SELECT count(*) FROM docs, jsonb_to_recordset(lines) AS l(part int, price int, name text)";
    ask(
        &database,
        &mut session,
        "CREATE TABLE parts (id int PRIMARY KEY, word text)",
    );
    ask(
        &database,
        &mut session,
        "INSERT INTO parts SELECT n, 'word' FROM generate_series(1, 2000) n",
    );
    let planned = |session: &mut Session, condition: &str| -> String {
        let from = asked.replace("count(*)", "count(p.word)");
        match ask(
            &database,
            session,
            &format!("EXPLAIN {from} JOIN parts p ON p.id = part WHERE {condition}"),
        ) {
            Answer::Rows(plan, _) => plan.join("\n"),
            Answer::Error(state, message) => panic!("{state} {message}"),
        }
    };
    ask(&database, &mut session, "SET nestor.columns = 'on'");
    ask(&database, &mut session, asked);
    database.service.columns.settle();
    let records = {
        let snapshot = database.service.engine.snapshot();
        let docs = nestor_model::Namespace::parse("test.docs");
        snapshot.catalog().get(&docs).expect("a collection").records
    };
    let columns = &database.service.columns;
    let of = |path: &str| columns.statistics_of_elements(records, "lines", path).expect("known");
    let part = of("part");
    // Two elements a document on average.
    assert!((11_500.0..12_500.0).contains(&part.all), "{}", part.all);
    assert!((36.0..44.0).contains(&part.distinct), "{}", part.distinct);
    assert_eq!(
        format!("{:?}", part.range),
        format!("{:?}", Some((Value::Int32(0), Value::Int32(39))))
    );
    let price = of("price");
    assert!((0.2..0.3).contains(&price.nulls), "{}", price.nulls);
    assert!(of("nothing").missing > 0.99);
    assert!(columns.statistics_of_elements(records, "none", "part").is_none());
    // The table of a join is made of the fewer rows, whichever these are by what is known of the field.
    let (few, many) = (
        planned(&mut session, "price >= 499"),
        planned(&mut session, "price >= 0"),
    );
    let is_first = |plan: &str| plan.find("Scan on docs") < plan.find("Scan on parts");
    assert!(!is_first(&few) && is_first(&many), "{few}\n{many}");
}
