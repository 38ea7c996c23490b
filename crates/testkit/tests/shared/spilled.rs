//! Queries over random tables give the same rows with hardly any memory for their operators, which go to files then, as with enough of it.

use crate::database::Database;
use crate::session::{Answer, ask};
use nestor_sql::session::Session;

/// Queries over tables `a` and `b` of the columns `id`, `k`, `t` (short) and `w` (long).
const QUERIES: [&str; 25] = [
    "SELECT a.id, b.id, b.w FROM a JOIN b ON a.k = b.k AND a.t = b.t",
    "SELECT a.id, b.id FROM a JOIN b ON a.k = b.k AND a.id % 7 = b.id % 7",
    "SELECT a.id, b.id, b.w FROM a LEFT JOIN b ON a.k + 1 = b.k AND length(b.w) > a.id % 99",
    "SELECT a.id, b.id, a.w FROM a RIGHT JOIN b ON a.k = b.k AND a.id % 31 = b.id % 31",
    "SELECT a.id, b.id, b.w FROM a FULL JOIN b ON a.t = b.t AND a.id % 13 = b.id % 17",
    "SELECT id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
    "SELECT id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.w > a.w)",
    "SELECT a.id, b.id FROM (SELECT * FROM a WHERE id % 60 = 1) a FULL JOIN b ON a.k > b.k AND b.id % 40 = a.id % 40",
    "SELECT k, t FROM a INTERSECT SELECT k, t FROM b",
    "SELECT k, t FROM a INTERSECT ALL SELECT k, t FROM b",
    "SELECT k, w FROM a EXCEPT SELECT k, w FROM b",
    "SELECT k, w FROM a EXCEPT ALL SELECT k, w FROM b",
    "SELECT k, w FROM a UNION SELECT k, w FROM b",
    "SELECT id FROM a WHERE w NOT IN (SELECT w FROM b)",
    "SELECT id FROM a WHERE w NOT IN (SELECT CASE WHEN id < 1490 THEN w END FROM b)",
    "SELECT id, (k, w) IN (SELECT k, w FROM b) FROM a ORDER BY id LIMIT 700",
    "SELECT id, k IN (SELECT b.k FROM b WHERE b.id > a.id) FROM a WHERE id % 50 = 0",
    "WITH c AS MATERIALIZED (SELECT * FROM a) SELECT x.id, y.id, x.w FROM c x LEFT JOIN c y ON x.id = y.id + 1",
    "WITH RECURSIVE r AS (SELECT id, w, 0 AS n FROM a UNION ALL SELECT id, w, n + 1 FROM r WHERE n < 3) SELECT * FROM r",
    "WITH RECURSIVE r AS (SELECT id, w, 0 AS n FROM a UNION SELECT id / 2, w, n + 1 FROM r WHERE id > 5) SELECT * FROM r",
    "SELECT id, row_number() OVER (ORDER BY w DESC, id), sum(id) OVER (PARTITION BY k ORDER BY id), lag(w, 3) OVER (ORDER BY id) FROM a",
    "SELECT id, rank() OVER v, dense_rank() OVER v, cume_dist() OVER v, percent_rank() OVER v, ntile(7) OVER v, count(w) OVER v FROM a WINDOW v AS (PARTITION BY k % 3 ORDER BY t)",
    "SELECT id, first_value(w) OVER v, last_value(w) OVER v, nth_value(w, 40) OVER v, max(w) OVER v FROM a WINDOW v AS (ORDER BY id ROWS BETWEEN 90 PRECEDING AND 30 FOLLOWING EXCLUDE CURRENT ROW)",
    "SELECT id, w, sum(id) OVER (ORDER BY k RANGE BETWEEN 3 PRECEDING AND 2 FOLLOWING), count(*) OVER (ORDER BY k DESC NULLS LAST GROUPS BETWEEN 2 PRECEDING AND 1 FOLLOWING EXCLUDE GROUP) FROM a",
    "SELECT id, min(w) OVER v, avg(id) OVER v, max(t) OVER v FROM a WINDOW v AS (PARTITION BY id % 2 ORDER BY id ROWS BETWEEN 200 PRECEDING AND 10 PRECEDING)",
];

/// Queries over two tables of many rows, with the node that goes to files.
const SPILLING: [(&str, &str); 7] = [
    ("Hash Join", "SELECT * FROM a JOIN b ON a.t = b.t AND a.k < b.id"),
    (
        "Nested Loop",
        "SELECT count(*) FROM (SELECT * FROM a WHERE id < 9) a LEFT JOIN b ON a.w > b.w",
    ),
    ("WindowAgg", "SELECT id, lag(w, 700) OVER (ORDER BY w) FROM a"),
    ("InitPlan (In)", "SELECT id FROM a WHERE w NOT IN (SELECT w FROM b)"),
    (
        "CTE Scan",
        "WITH c AS MATERIALIZED (SELECT * FROM a) SELECT count(*) FROM c x, (SELECT id FROM c LIMIT 1) y",
    ),
    (
        "Recursive Union",
        "WITH RECURSIVE r AS (SELECT w, 0 AS n FROM a UNION ALL SELECT w, 1 FROM r WHERE n < 1) SELECT count(*) FROM r",
    ),
    (
        "HashSetOp Except",
        "SELECT w FROM a EXCEPT SELECT w FROM b WHERE id > 3",
    ),
];

/// Numbers that look random, the same for a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn among<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

#[test]
fn rows_in_files_are_those_in_memory() {
    for seed in [2, 3, 4, 6, 7] {
        let random = &mut Random(seed);
        let database = Database::new();
        let slot = database.service.connections.add("test");
        let mut session = Session::new(slot, "tester", "test");
        let mut ask = |sql: &str| match ask(&database, &mut session, sql) {
            Answer::Error(state, message) => panic!("seed {seed}, {sql}: {state}: {message}"),
            Answer::Rows(mut rows, _) => {
                rows.sort();
                rows
            }
        };
        for table in ["a", "b"] {
            ask(&format!(
                "CREATE TABLE {table} (id int PRIMARY KEY, k int, t text, w text)"
            ));
            let (rows, keys) = (random.among(&[0, 40, 900, 1500]), random.among(&[2, 60, 700]));
            let nulls = random.among(&[3, 100, 100_000]);
            ask(&format!(
                "INSERT INTO {table} SELECT i, CASE WHEN i % {nulls} <> 1 THEN (i * 7919) % {keys} END, md5((i % {keys})::text), \
                 repeat(md5((i % 450)::text), 1 + i % 9) FROM generate_series(1, {rows}) i"
            ));
        }
        for query in QUERIES {
            ask("RESET work_mem");
            let wanted = ask(query);
            ask("SET work_mem = '64kB'");
            assert!(ask(query) == wanted, "seed {seed}: {query}");
        }
    }
}

/// EXPLAIN ANALYZE tells which operators wrote files, and how much.
#[test]
fn plans_tell_of_files() {
    let database = Database::new();
    let slot = database.service.connections.add("test");
    let mut session = Session::new(slot, "tester", "test");
    let mut lines = |sql: &str| match ask(&database, &mut session, sql) {
        Answer::Error(state, message) => panic!("{sql}: {state}: {message}"),
        Answer::Rows(rows, _) => rows,
    };
    lines("CREATE TABLE a (id int PRIMARY KEY, k int, t text, w text)");
    lines("INSERT INTO a SELECT i, i % 50, md5(i::text), repeat(md5(i::text), 9) FROM generate_series(1, 1500) i");
    lines("CREATE TABLE b AS SELECT * FROM a");
    for (node, query) in SPILLING {
        for (memory, spills) in [("1GB", false), ("64kB", true)] {
            lines(&format!("SET work_mem = '{memory}'"));
            let plan = lines(&format!("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {query}"));
            let depth = |line: &str| line.len() - line.trim_start().len();
            // What stands below the nodes of this name, before their inputs.
            let mut own: Vec<&str> = Vec::new();
            for at in (0..plan.len()).filter(|at| plan[*at].contains(node)) {
                let below = plan[at + 1..].iter().take_while(|line| !line.contains("->"));
                own.extend(
                    below
                        .filter(|line| depth(line) > depth(&plan[at]))
                        .map(|line| line.trim()),
                );
            }
            assert_eq!(own.contains(&"Storage: Disk"), spills, "{query}: {plan:?}");
            let has_size = own.iter().any(|line| line.starts_with("Disk Usage: "));
            assert_eq!(has_size, spills, "{query}: {plan:?}");
        }
    }
}

/// What a frame costs does not depend on how many rows it has, where rows can be taken back.
#[test]
fn frames_move_by_what_is_new() {
    let database = Database::new();
    let slot = database.service.connections.add("test");
    let mut session = Session::new(slot, "tester", "test");
    let mut work = |sql: &str| {
        let before = nestor_model::statement::looks();
        match ask(&database, &mut session, sql) {
            Answer::Error(state, message) => panic!("{sql}: {state}: {message}"),
            Answer::Rows(..) => nestor_model::statement::looks() - before,
        }
    };
    let calls = "sum(i) OVER v, avg(i / 3.0) OVER v, count(*) OVER v, min(i * 7919 % 4001) OVER v, max(i::text) FILTER (WHERE i % 3 = 1) OVER v";
    for units in ["ROWS", "RANGE", "GROUPS"] {
        for end in ["CURRENT ROW", "10 FOLLOWING", "2 PRECEDING"] {
            let mut of = |rows: u32| {
                work(&format!(
                    "SELECT {calls} FROM generate_series(1, 6000) i WINDOW v AS (ORDER BY i {units} BETWEEN {rows} PRECEDING AND {end})"
                ))
            };
            let (narrow, wide) = (of(3), of(2000));
            assert!(narrow > 5 && wide < narrow * 2, "{units} to {end}: {narrow} and {wide}");
        }
    }
}
