//! Page views of a web site: one table of numbers and short texts.

use super::{Dataset, Expected, Question, ranked};
use crate::random::mix;
use crate::rows::Arguments;
use crate::statement::{Kind, Role, Statement, aggregate, mark, placeholders, text_mark};
use crate::wire::Protocol;
use nestor_model::{Document, Regex, Value, doc};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of `searchphrase`, which is all dots when nothing was searched for.
const PHRASE_BYTES: usize = 16;
const NO_PHRASE: &str = "................";
const URL_BYTES: usize = 40;
const COLUMNS: [&str; 10] = [
    "eventtime",
    "userid",
    "regionid",
    "counterid",
    "advengineid",
    "resolutionwidth",
    "isrefresh",
    "os",
    "searchphrase",
    "url",
];

pub struct Hits;

struct Hit {
    numbers: [i64; 8],
    phrase: String,
    url: String,
}

impl Hit {
    fn of(seed: u64, rows: u64, id: u64) -> Self {
        let random = mix(!seed ^ id.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let more = mix(random);
        // The lower of two is the more frequent one.
        let skewed = |n: u64, below: u64| ((n & 0xFFFF) % below).min((n >> 16 & 0xFFFF) % below) as i64;
        let phrase = match more >> 60 {
            0..4 => format!("search{:010}", skewed(more, 300)),
            _ => NO_PHRASE.to_owned(),
        };
        let host = if more >> 56 & 15 == 0 { "google" } else { "example" };
        Self {
            numbers: [
                1_372_000_000 + id as i64,
                ((random >> 8) % (rows / 8 + 1)).min((random >> 20) % (rows / 4 + 1)) as i64,
                skewed(random >> 30, 200),
                skewed(more >> 8, 100),
                if random & 31 == 0 { 1 + skewed(more >> 4, 20) } else { 0 },
                [1366, 1920, 1280, 1024][(more >> 40 & 3) as usize],
                i64::from(more >> 44 & 7 == 0),
                skewed(more >> 12, 40),
            ],
            phrase,
            url: format!(
                "{:.<URL_BYTES$}",
                format!("http://{host}.test/{}", skewed(random >> 3, 5_000))
            ),
        }
    }
}

impl Dataset for Hits {
    const NAME: &'static str = "hits";

    fn create(_: Protocol) -> String {
        let numbers: Vec<String> = COLUMNS[..8]
            .iter()
            .map(|name| format!("{name} INTEGER NOT NULL"))
            .collect();
        format!(
            "CREATE TABLE hits (id INTEGER NOT NULL PRIMARY KEY, {}, searchphrase VARCHAR(100) NOT NULL, url VARCHAR(200) NOT NULL)",
            numbers.join(", ")
        )
    }

    fn insert(_: Protocol, count: usize) -> Statement {
        let mut kinds = vec![Kind::Int; 9];
        kinds.extend([Kind::Text(PHRASE_BYTES), Kind::Text(URL_BYTES)]);
        let width = kinds.len();
        let rows: Vec<String> = (0..count)
            .map(|row| format!("({})", placeholders(row * width, width)))
            .collect();
        let document = |row: usize| {
            let at = row * width;
            let mut document = doc! { "_id": mark(at) };
            for (i, name) in COLUMNS[..8].iter().enumerate() {
                document.push(*name, mark(at + 1 + i));
            }
            document.push("searchphrase", text_mark(at + 9, PHRASE_BYTES));
            document.push("url", text_mark(at + 10, URL_BYTES));
            Value::from(document)
        };
        let mongo = doc! { "insert": "hits", "documents": (0..count).map(document).collect::<Vec<_>>() };
        let sql = format!(
            "INSERT INTO hits (id, {}) VALUES {}",
            COLUMNS.join(", "),
            rows.join(", ")
        );
        Statement::new("an insert", Role::Writes, kinds.repeat(count), mongo, sql)
    }

    fn push(_: Protocol, seed: u64, rows: u64, id: u64, arguments: &mut Arguments) {
        let hit = Hit::of(seed, rows, id);
        arguments.int(id as i64);
        for number in hit.numbers {
            arguments.int(number);
        }
        for text in [&hit.phrase, &hit.url] {
            arguments.text(|out| out.extend_from_slice(text.as_bytes()));
        }
    }

    fn questions(seed: u64, rows: u64) -> Vec<Question> {
        let all: Vec<Hit> = (0..rows).map(|id| Hit::of(seed, rows, id)).collect();
        let int = Expected::Int;
        let [time, user, region, adv, width] = [0, 1, 2, 4, 5];
        let sum = |column: usize| all.iter().map(|hit| hit.numbers[column]).sum::<i64>();
        let count = |keep: &dyn Fn(&Hit) -> bool| all.iter().filter(|hit| keep(hit)).count() as i64;
        let users: BTreeSet<i64> = all.iter().map(|hit| hit.numbers[user]).collect();
        let mut by_adv: BTreeMap<i64, i64> = BTreeMap::new();
        let mut by_phrase: BTreeMap<&str, i64> = BTreeMap::new();
        let mut by_region: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
        let mut by_user: BTreeMap<i64, i64> = BTreeMap::new();
        for hit in &all {
            if hit.numbers[adv] != 0 {
                *by_adv.entry(hit.numbers[adv]).or_default() += 1;
            }
            if hit.phrase != NO_PHRASE {
                *by_phrase.entry(&hit.phrase).or_default() += 1;
            }
            by_region
                .entry(hit.numbers[region])
                .or_default()
                .insert(hit.numbers[user]);
            *by_user.entry(hit.numbers[user]).or_default() += 1;
        }
        let pairs = |all: Vec<(i64, i64)>| -> Vec<Vec<Expected>> {
            all.into_iter()
                .take(10)
                .map(|(key, n)| vec![int(key), int(n)])
                .collect()
        };
        let phrases = ranked(by_phrase)
            .into_iter()
            .take(10)
            .map(|(key, n)| vec![Expected::Text(key.to_owned()), int(n)]);
        let some_user = all[all.len() / 2].numbers[user];
        let group = |by: &str, rest: Document, filter: Document| {
            let mut group = doc! { "_id": by };
            rest.iter().for_each(|(name, value)| group.push(name, value.to_value()));
            vec![doc! { "$match": filter }, doc! { "$group": group }]
        };
        let one = || doc! { "n": doc! { "$sum": 1 } };
        let whole = |fields: Document, filter: Document| {
            let mut group = doc! { "_id": Value::Null };
            fields
                .iter()
                .for_each(|(name, value)| group.push(name, value.to_value()));
            vec![
                doc! { "$match": filter },
                doc! { "$group": group },
                doc! { "$project": doc! { "_id": 0 } },
            ]
        };
        let top = |mut stages: Vec<Document>| {
            stages.extend([doc! { "$sort": doc! { "n": -1, "_id": 1 } }, doc! { "$limit": 10 }]);
            stages
        };
        let distinct = |by: Document, again: Value| {
            let mut stages = vec![
                doc! { "$group": doc! { "_id": by } },
                doc! { "$group": doc! { "_id": again, "n": doc! { "$sum": 1 } } },
            ];
            stages.push(doc! { "$sort": doc! { "n": -1, "_id": 1 } });
            stages.push(doc! { "$limit": 10 });
            stages
        };
        let mut regions = distinct(doc! { "r": "$regionid", "u": "$userid" }, "$_id.r".into());
        regions.push(doc! { "$project": doc! { "_id": 1, "n": 1 } });
        let mut all_users = distinct(doc! { "u": "$userid" }, Value::Null);
        all_users.push(doc! { "$project": doc! { "_id": 0, "n": 1 } });
        let first = |hit: &Hit| vec![int(hit.numbers[time]), Expected::Text(hit.phrase.clone())];
        let searches: Vec<Vec<Expected>> = all
            .iter()
            .filter(|hit| hit.phrase != NO_PHRASE)
            .take(10)
            .map(first)
            .collect();
        let sort = doc! { "$sort": doc! { "eventtime": 1 } };
        let project = doc! { "$project": doc! { "_id": 0, "eventtime": 1, "searchphrase": 1 } };
        let found = doc! { "$match": doc! { "searchphrase": doc! { "$ne": NO_PHRASE } } };
        let question = |name, sql: &str, stages, rows| Question {
            name,
            statement: Statement::new(name, Role::Reads, vec![], aggregate("hits", stages), sql.to_owned()),
            rows,
        };
        let google = Value::Regex(Box::new(Regex {
            pattern: "google".into(),
            options: "".into(),
        }));
        let with_adv = || doc! { "advengineid": doc! { "$ne": 0 } };
        let sums = doc! { "a": doc! { "$sum": "$advengineid" }, "n": doc! { "$sum": 1 }, "w": doc! { "$sum": "$resolutionwidth" } };
        let ends = doc! { "a": doc! { "$min": "$eventtime" }, "b": doc! { "$max": "$eventtime" } };
        let phrase_filter = doc! { "searchphrase": doc! { "$ne": NO_PHRASE } };
        vec![
            question(
                "h1-count",
                "SELECT COUNT(*) FROM hits",
                whole(one(), doc! {}),
                vec![vec![int(rows as i64)]],
            ),
            question(
                "h2-filter",
                "SELECT COUNT(*) FROM hits WHERE advengineid <> 0",
                whole(one(), with_adv()),
                vec![vec![int(count(&|hit| hit.numbers[adv] != 0))]],
            ),
            question(
                "h3-sums",
                "SELECT SUM(advengineid), COUNT(*), SUM(resolutionwidth) FROM hits",
                whole(sums, doc! {}),
                vec![vec![int(sum(adv)), int(rows as i64), int(sum(width))]],
            ),
            question(
                "h5-distinct",
                "SELECT COUNT(DISTINCT userid) FROM hits",
                all_users,
                vec![vec![int(users.len() as i64)]],
            ),
            question(
                "h7-ends",
                "SELECT MIN(eventtime), MAX(eventtime) FROM hits",
                whole(ends, doc! {}),
                vec![vec![int(all[0].numbers[time]), int(all[all.len() - 1].numbers[time])]],
            ),
            question(
                "h8-group",
                "SELECT advengineid, COUNT(*) AS n FROM hits WHERE advengineid <> 0 GROUP BY advengineid ORDER BY n DESC, advengineid LIMIT 10",
                top(group("$advengineid", one(), with_adv())),
                pairs(ranked(by_adv)),
            ),
            question(
                "h9-group-distinct",
                "SELECT regionid, COUNT(DISTINCT userid) AS n FROM hits GROUP BY regionid ORDER BY n DESC, regionid LIMIT 10",
                regions,
                pairs(ranked(
                    by_region
                        .into_iter()
                        .map(|(region, users)| (region, users.len() as i64)),
                )),
            ),
            question(
                "h13-phrases",
                "SELECT searchphrase, COUNT(*) AS n FROM hits WHERE searchphrase <> '................' \
                 GROUP BY searchphrase ORDER BY n DESC, searchphrase LIMIT 10",
                top(group("$searchphrase", one(), phrase_filter)),
                phrases.collect(),
            ),
            question(
                "h16-users",
                "SELECT userid, COUNT(*) AS n FROM hits GROUP BY userid ORDER BY n DESC, userid LIMIT 10",
                top(group("$userid", one(), doc! {})),
                pairs(ranked(by_user.clone())),
            ),
            question(
                "h20-one-user",
                &format!("SELECT COUNT(*) FROM hits WHERE userid = {some_user}"),
                whole(one(), doc! { "userid": some_user }),
                vec![vec![int(by_user[&some_user])]],
            ),
            question(
                "h21-like",
                "SELECT COUNT(*) FROM hits WHERE url LIKE '%google%'",
                whole(one(), doc! { "url": google }),
                vec![vec![int(count(&|hit| hit.url.contains("google")))]],
            ),
            question(
                "h25-sort",
                "SELECT eventtime, searchphrase FROM hits WHERE searchphrase <> '................' ORDER BY eventtime LIMIT 10",
                vec![found, sort, doc! { "$limit": 10 }, project],
                searches,
            ),
        ]
    }
}
