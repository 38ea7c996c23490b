//! Events of a social network: who did what when, as nested documents.

use super::{Dataset, Expected, Question, ranked};
use crate::random::mix;
use crate::rows::Arguments;
use crate::statement::{Kind, Role, Statement, aggregate, mark, text_mark};
use crate::wire::Protocol;
use nestor_model::{Document, Value, doc};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// What happens, of one length; the first more often than the second, and so on.
const COLLECTIONS: [&str; 5] = [
    "app.feed.like",
    "app.feed.post",
    "app.user.join",
    "app.feed.link",
    "app.user.mute",
];
/// Which of them `q3` counts by the hour, and `q4` and `q5` look at.
const POST: &str = COLLECTIONS[1];
const DID_BYTES: usize = 32;
const RKEY_BYTES: usize = 13;
const TEXT_BYTES: usize = 80;
/// The time of the first event, in µs, and how long all of them take.
const BEGIN: i64 = 1_700_000_000_000_000;
const SPAN: u64 = 3 * 24 * 3_600_000_000;
const HOUR: i64 = 3_600_000_000;

pub struct Events;

struct Event {
    did: String,
    time_us: i64,
    operation: &'static str,
    collection: &'static str,
    rkey: String,
    text: String,
}

fn letters(seed: u64, bytes: usize) -> String {
    let mut state = seed;
    (0..bytes)
        .map(|i| {
            if i % 16 == 0 {
                state = mix(state);
            }
            char::from(b'a' + (state >> (i % 16 * 4) & 15) as u8)
        })
        .collect()
}

impl Event {
    fn of(seed: u64, rows: u64, id: u64) -> Self {
        let random = mix(seed ^ id.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        // The lower of two is the more frequent one.
        let which = (random % 5).min(random / 5 % 5) as usize;
        let user = random >> 20 & 0xFFFF_FFFF;
        let user = (user % (rows / 20 + 3)).min((user >> 7) % (rows / 10 + 3));
        let step = SPAN / rows.max(1);
        Self {
            did: format!("did:plc:{}", letters(user ^ seed, DID_BYTES - 8)),
            // No two events have one time.
            time_us: BEGIN + (id * step + (random >> 52) % step.max(1)) as i64,
            operation: if random >> 40 & 7 == 0 { "delete" } else { "create" },
            collection: COLLECTIONS[which],
            rkey: letters(random, RKEY_BYTES),
            text: letters(!random, TEXT_BYTES),
        }
    }

    fn json(&self) -> String {
        format!(
            "{{\"did\":\"{}\",\"time_us\":{},\"kind\":\"commit\",\"commit\":{{\"rev\":1,\"operation\":\"{}\",\"collection\":\"{}\",\
             \"rkey\":\"{}\",\"record\":{{\"text\":\"{}\",\"langs\":[\"en\"]}}}}}}",
            self.did, self.time_us, self.operation, self.collection, self.rkey, self.text
        )
    }
}

impl Dataset for Events {
    const NAME: &'static str = "events";

    fn create(protocol: Protocol) -> String {
        let json = if protocol == Protocol::Postgres {
            "JSONB"
        } else {
            "JSON"
        };
        format!("CREATE TABLE events (id INTEGER NOT NULL PRIMARY KEY, data {json} NOT NULL)")
    }

    fn insert(protocol: Protocol, count: usize) -> Statement {
        if protocol != Protocol::Mongo {
            let cast = if protocol == Protocol::Postgres { "::jsonb" } else { "" };
            let row = |row: usize| format!("(${}, ${}{cast})", 2 * row + 1, 2 * row + 2);
            let rows: Vec<String> = (0..count).map(row).collect();
            let sql = format!("INSERT INTO events (id, data) VALUES {}", rows.join(", "));
            let bytes = Event::of(0, 100, 0).json().len();
            let kinds = [Kind::Int, Kind::Text(bytes)].repeat(count);
            return Statement::new("an insert", Role::Writes, kinds, doc! {}, sql);
        }
        let kinds = [
            Kind::Long,
            Kind::Text(DID_BYTES),
            Kind::Long,
            Kind::Text(6),
            Kind::Text(COLLECTIONS[0].len()),
            Kind::Text(RKEY_BYTES),
            Kind::Text(TEXT_BYTES),
        ];
        let document = |row: usize| {
            let at = row * kinds.len();
            let langs = vec![Value::from("en")];
            let commit = doc! {
                "rev": 1,
                "operation": text_mark(at + 3, 6),
                "collection": text_mark(at + 4, COLLECTIONS[0].len()),
                "rkey": text_mark(at + 5, RKEY_BYTES),
                "record": doc! { "text": text_mark(at + 6, TEXT_BYTES), "langs": langs },
            };
            Value::from(doc! {
                "_id": mark(at), "did": text_mark(at + 1, DID_BYTES), "time_us": mark(at + 2), "kind": "commit", "commit": commit,
            })
        };
        let mongo = doc! { "insert": "events", "documents": (0..count).map(document).collect::<Vec<_>>() };
        Statement::new("an insert", Role::Writes, kinds.repeat(count), mongo, String::new())
    }

    fn push(protocol: Protocol, seed: u64, rows: u64, id: u64, arguments: &mut Arguments) {
        let event = Event::of(seed, rows, id);
        arguments.int(id as i64);
        if protocol != Protocol::Mongo {
            arguments.text(|out| out.extend_from_slice(event.json().as_bytes()));
            return;
        }
        arguments
            .text(|out| out.extend_from_slice(event.did.as_bytes()))
            .int(event.time_us);
        for text in [event.operation, event.collection, &event.rkey, &event.text] {
            arguments.text(|out| out.extend_from_slice(text.as_bytes()));
        }
    }

    fn questions(seed: u64, rows: u64) -> Vec<Question> {
        let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
        let mut created: BTreeMap<&str, (i64, BTreeSet<String>)> = BTreeMap::new();
        let mut hours: BTreeMap<(i64, &str), i64> = BTreeMap::new();
        let mut posts: BTreeMap<String, (i64, i64)> = BTreeMap::new();
        for event in (0..rows).map(|id| Event::of(seed, rows, id)) {
            *counts.entry(event.collection).or_default() += 1;
            if event.operation != "create" {
                continue;
            }
            let of = created.entry(event.collection).or_default();
            of.0 += 1;
            of.1.insert(event.did.clone());
            if event.collection.starts_with("app.feed") {
                *hours.entry((event.time_us / HOUR % 24, event.collection)).or_default() += 1;
            }
            if event.collection == POST {
                let of = posts.entry(event.did).or_insert((event.time_us, event.time_us));
                *of = (of.0.min(event.time_us), of.1.max(event.time_us));
            }
        }
        let users: BTreeMap<&str, i64> = created
            .iter()
            .map(|(name, (_, users))| (*name, users.len() as i64))
            .collect();
        let text = |text: &str| Expected::Text(text.to_owned());
        let q1 = ranked(counts)
            .into_iter()
            .map(|(name, n)| vec![text(name), Expected::Int(n)]);
        let q2 = ranked(created.iter().map(|(name, (n, _))| (*name, *n)));
        let q2 = q2
            .into_iter()
            .map(|(name, n)| vec![text(name), Expected::Int(n), Expected::Int(users[name])]);
        let q3 = hours
            .iter()
            .map(|((hour, name), n)| vec![text(name), Expected::Int(*hour), Expected::Int(*n)]);
        let firsts = ranked(posts.iter().map(|(did, (first, _))| (did.clone(), -first)));
        let spans = ranked(posts.iter().map(|(did, (first, last))| (did.clone(), last - first)));
        let top = |all: Vec<(String, i64)>, sign: i64| -> Vec<Vec<Expected>> {
            all.into_iter()
                .take(3)
                .map(|(did, n)| vec![Expected::Text(did), Expected::Int(sign * n)])
                .collect()
        };
        let expected = [q1.collect(), q2.collect(), q3.collect(), top(firsts, -1), top(spans, 1)];
        statements()
            .into_iter()
            .zip(expected)
            .map(|((name, statement), rows): (_, Vec<Vec<Expected>>)| Question {
                name,
                statement,
                rows: LazyLock::new(Box::new(move || rows)),
            })
            .collect()
    }
}

/// The five queries.
fn statements() -> Vec<(&'static str, Statement)> {
    let event = "data->'commit'->>'collection'";
    let time = "(data->>'time_us')::bigint";
    let created = "data->>'kind' = 'commit' AND data->'commit'->>'operation' = 'create'";
    let feed = "('app.feed.like', 'app.feed.link', 'app.feed.post')";
    let posts = format!("{created} AND {event} = '{POST}'");
    let post_filter = || doc! { "kind": "commit", "commit.operation": "create", "commit.collection": POST };
    let stage = |name: &'static str, body: Document| doc! { name: body };
    let query = |name: &'static str, sql: String, stages: Vec<Document>| {
        // MySQL takes paths from the document's root, and JSON's texts with their quotes unless it is told otherwise.
        let mysql = sql
            .replace("data->'commit'->>'collection'", "data->>'$.commit.collection'")
            .replace("data->'commit'->>'operation'", "data->>'$.commit.operation'")
            .replace(
                "(data->>'time_us')::bigint / 3600000000",
                "CAST(data->>'$.time_us' AS SIGNED) DIV 3600000000",
            )
            .replace("(data->>'time_us')::bigint", "CAST(data->>'$.time_us' AS SIGNED)")
            .replace("data->>'did'", "data->>'$.did'")
            .replace("data->>'kind'", "data->>'$.kind'");
        (
            name,
            Statement::new(name, Role::Reads, vec![], aggregate("events", stages), sql).mysql(unquoted(&mysql)),
        )
    };
    let one = || doc! { "$sum": 1 };
    let created_filter = || doc! { "kind": "commit", "commit.operation": "create" };
    let names: Vec<Value> = ["app.feed.like", "app.feed.link", "app.feed.post"]
        .map(Value::from)
        .to_vec();
    let hour = doc! { "$mod": vec![Value::from(doc! { "$floor": doc! { "$divide": vec![Value::from("$time_us"), Value::from(HOUR)] } }), Value::from(24)] };
    vec![
        query(
            "q1",
            format!("SELECT {event} AS event, COUNT(*) AS n FROM events GROUP BY {event} ORDER BY n DESC, event"),
            vec![
                stage("$group", doc! { "_id": "$commit.collection", "n": one() }),
                stage("$sort", doc! { "n": -1, "_id": 1 }),
            ],
        ),
        query(
            "q2",
            format!(
                "SELECT {event} AS event, COUNT(*) AS n, COUNT(DISTINCT data->>'did') AS users FROM events WHERE {created} \
                 GROUP BY {event} ORDER BY n DESC, event"
            ),
            vec![
                stage("$match", created_filter()),
                stage(
                    "$group",
                    doc! { "_id": doc! { "event": "$commit.collection", "did": "$did" }, "n": one() },
                ),
                stage(
                    "$group",
                    doc! { "_id": "$_id.event", "n": doc! { "$sum": "$n" }, "users": one() },
                ),
                stage("$sort", doc! { "n": -1, "_id": 1 }),
            ],
        ),
        query(
            "q3",
            format!(
                "SELECT {event} AS event, {time} / 3600000000 % 24 AS hour, COUNT(*) AS n FROM events WHERE {created} AND {event} IN {feed} \
                 GROUP BY {event}, {time} / 3600000000 % 24 ORDER BY hour, event"
            ),
            vec![
                stage("$match", {
                    let mut filter = created_filter();
                    filter.push("commit.collection", doc! { "$in": names });
                    filter
                }),
                stage(
                    "$group",
                    doc! { "_id": doc! { "hour": hour, "event": "$commit.collection" }, "n": one() },
                ),
                stage("$sort", doc! { "_id.hour": 1, "_id.event": 1 }),
                stage(
                    "$project",
                    doc! { "_id": 0, "event": "$_id.event", "hour": "$_id.hour", "n": "$n" },
                ),
            ],
        ),
        query(
            "q4",
            format!(
                "SELECT data->>'did' AS did, MIN({time}) AS t FROM events WHERE {posts} GROUP BY data->>'did' ORDER BY t, did LIMIT 3"
            ),
            vec![
                stage("$match", post_filter()),
                stage("$group", doc! { "_id": "$did", "t": doc! { "$min": "$time_us" } }),
                stage("$sort", doc! { "t": 1, "_id": 1 }),
                doc! { "$limit": 3 },
            ],
        ),
        query(
            "q5",
            format!(
                "SELECT data->>'did' AS did, MAX({time}) - MIN({time}) AS t FROM events WHERE {posts} GROUP BY data->>'did' \
                 ORDER BY t DESC, did LIMIT 3"
            ),
            vec![
                stage("$match", post_filter()),
                stage(
                    "$group",
                    doc! { "_id": "$did", "a": doc! { "$min": "$time_us" }, "b": doc! { "$max": "$time_us" } },
                ),
                stage(
                    "$project",
                    doc! { "t": doc! { "$subtract": vec![Value::from("$b"), Value::from("$a")] } },
                ),
                stage("$sort", doc! { "t": -1, "_id": 1 }),
                doc! { "$limit": 3 },
            ],
        ),
    ]
}

/// MariaDB has no `->>`: functions do the same on both.
fn unquoted(sql: &str) -> String {
    let mut out = String::new();
    let mut rest = sql;
    while let Some((before, after)) = rest.split_once("data->>'") {
        let (path, after) = after.split_once('\'').unwrap_or((after, ""));
        out.push_str(before);
        out.push_str(&format!("JSON_UNQUOTE(JSON_EXTRACT(data, '{path}'))"));
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_of_one_length() {
        let bytes = |id| Event::of(1, 1_000, id).json().len();
        assert!((0..1_000).all(|id| bytes(id) == bytes(0)));
    }

    #[test]
    fn questions_have_answers() {
        for question in Events::questions(1, 2_000) {
            assert!(!question.rows.is_empty(), "{}", question.name);
        }
    }
}
