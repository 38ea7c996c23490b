//! The tests: what one operation asks, and what its answer has to be.

use super::data::{self, ACCOUNTS, ACCOUNTS_MAX, BATCH, GROUPS, LARGE, LARGE_DOCUMENTS, NAME, NEW, TEAM, WORDS_MAX};
use crate::drive::{Done, Worker};
use crate::random::{Random, Zipf};
use crate::rows::{Arguments, Rows};
use crate::statement::{Kind, Role, Statement, aggregate, find, mark, text_mark};
use crate::target::Caller;
use crate::wire::{Stream, mongo_command};
use nestor_model::{Document, Value, ValueRef, doc};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// All of them, in the order they run.
pub const NAMES: [&str; 13] = [
    "insert-many",
    "inc",
    "set-in-large",
    "array-filters",
    "aggregate-by-id",
    "match-group",
    "lookup",
    "loose-scan",
    "text",
    "near",
    "two-document-transaction",
    "change-stream",
    "transfer-zipf",
];

/// Teams of a `$match` before a `$group`.
const TEAMS: u64 = 100;
/// Bytes of the field that is set in a large document.
const FIELD_BYTES: usize = 64;
/// Documents that searches by text and place return.
const FOUND: usize = 10;
/// How long a change stream may take to tell of a write.
const TOLD_MAX: Duration = Duration::from_secs(30);
/// MongoDB's codes of a transaction that met another one and is to be done again.
const CONFLICTS: [&str; 2] = ["(code 112)", "(code 251)"];

/// The statements of a test.
pub fn statements(test: &str) -> Result<Vec<Statement>, String> {
    use Kind::{Long, Text};
    let reads = |kinds, mongo| vec![Statement::new("a query", Role::Reads, kinds, mongo, String::new())];
    let update = |collection: &str, kinds, change: Document| {
        let mongo = doc! { "update": collection, "updates": vec![Value::from(change)] };
        vec![Statement::new("an update", Role::Writes, kinds, mongo, String::new())]
    };
    let by_id = || doc! { "_id": mark(0) };
    let add = || doc! { "q": by_id(), "u": doc! { "$inc": doc! { "visits": mark(1) } } };
    Ok(match test {
        "insert-many" => vec![data::insert(NEW, BATCH)],
        "inc" | "two-document-transaction" => update(NAME, vec![Long, Long], add()),
        "transfer-zipf" => update(ACCOUNTS, vec![Long, Long], add()),
        "set-in-large" => {
            let set = doc! { "$set": doc! { "inner.field": text_mark(1, FIELD_BYTES) } };
            update(LARGE, vec![Long, Text(FIELD_BYTES)], doc! { "q": by_id(), "u": set })
        }
        "array-filters" => {
            let change = doc! { "$inc": doc! { "items.$[one].n": 1i64 } };
            let filters = vec![Value::from(doc! { "one.k": mark(1) })];
            update(
                NAME,
                vec![Long, Long],
                doc! { "q": by_id(), "u": change, "arrayFilters": filters },
            )
        }
        "aggregate-by-id" => {
            let sum = doc! { "$add": vec![Value::from("$number"), Value::from("$team")] };
            let project = doc! { "$project": doc! { "_id": 1, "sum": sum } };
            reads(vec![Long], aggregate(NAME, vec![doc! { "$match": by_id() }, project]))
        }
        "match-group" => {
            let range = doc! { "$match": doc! { "team": doc! { "$gte": mark(0), "$lt": mark(1) } } };
            let group = doc! { "_id": "$group", "n": doc! { "$sum": 1 }, "sum": doc! { "$sum": "$number" } };
            reads(vec![Long, Long], aggregate(NAME, vec![range, doc! { "$group": group }]))
        }
        "lookup" => {
            let join = doc! { "from": NAME, "localField": "number", "foreignField": "_id", "as": "found" };
            let number = doc! { "$first": "$found.number" };
            let project = doc! { "_id": 1, "n": doc! { "$size": "$found" }, "number": number };
            let team = doc! { "$match": doc! { "team": mark(0) } };
            reads(
                vec![Long],
                aggregate(NAME, vec![team, doc! { "$lookup": join }, doc! { "$project": project }]),
            )
        }
        "loose-scan" => {
            let sort = doc! { "$sort": doc! { "group": 1, "number": 1 } };
            let group = doc! { "$group": doc! { "_id": "$group", "number": doc! { "$first": "$number" } } };
            reads(vec![], aggregate(NAME, vec![sort, group]))
        }
        "text" => (0..WORDS_MAX)
            .flat_map(|id| reads(vec![], search(data::word(id))))
            .collect(),
        "near" => {
            let point = doc! { "type": "Point", "coordinates": vec![mark(0), mark(1)] };
            let near = doc! { "$near": doc! { "$geometry": point, "$maxDistance": 200_000i64 } };
            let mut command = find(NAME, doc! { "place": near }, doc! { "_id": 1 });
            command.push("limit", FOUND as i64);
            reads(vec![Long, Long], command)
        }
        "change-stream" => {
            let document = Value::from(doc! { "_id": mark(0), "seen": 0i64 });
            let mongo = doc! { "insert": NEW, "documents": vec![document] };
            vec![Statement::new(
                "an insert",
                Role::Writes,
                vec![Long],
                mongo,
                String::new(),
            )]
        }
        _ => return Err(format!("there is no test {test}")),
    })
}

fn search(word: &str) -> Document {
    let mut command = find(NAME, doc! { "$text": doc! { "$search": word } }, doc! { "_id": 1 });
    command.push("limit", FOUND as i64);
    command
}

/// What clients of a test have in common.
pub struct Shared {
    /// Documents of the collection.
    pub documents: u64,
    /// The next `_id` of what is inserted.
    pub next: AtomicU64,
    /// Writes or transactions that were committed.
    pub committed: AtomicU64,
    /// Transactions that had to be done again.
    pub wasted: AtomicU64,
}

/// A connection with a change stream: its cursor and database.
pub struct Watcher {
    pub stream: Box<dyn Stream>,
    pub cursor: i64,
    pub database: String,
}

impl Watcher {
    /// Whether the next events have that of document `id`.
    fn tells_of(&mut self, id: i64) -> Result<bool, String> {
        let database = self.database.as_str();
        let more = doc! { "getMore": self.cursor, "collection": NEW, "maxTimeMS": 5_000i64, "$db": database };
        let reply = mongo_command(&mut *self.stream, &more)?;
        let cursor = reply.get("cursor").and_then(ValueRef::as_document);
        let batch = cursor
            .and_then(|cursor| cursor.get("nextBatch"))
            .and_then(ValueRef::as_array);
        let key = |event: ValueRef<'_>| {
            let key = event.as_document()?.get("documentKey")?.as_document()?;
            match key.get("_id") {
                Some(ValueRef::Int64(id)) => Some(id),
                _ => None,
            }
        };
        let mut events = batch.into_iter().flat_map(|batch| batch.iter());
        Ok(events.any(|event| key(event) == Some(id)))
    }
}

/// One client.
pub struct Asker<'s> {
    pub caller: Caller,
    pub test: &'static str,
    /// Its statements, prepared.
    pub numbers: Vec<usize>,
    pub shared: &'s Shared,
    /// The documents that only this client changes.
    pub own: Range<u64>,
    pub random: Random,
    pub zipf: Zipf,
    pub watcher: Option<Watcher>,
    pub arguments: Arguments,
    pub rows: Rows,
}

/// The error of an answer that is not right.
fn wrong(what: impl std::fmt::Display) -> Result<(), String> {
    Err(format!("a wrong answer: {what}"))
}

impl Asker<'_> {
    fn call(&mut self, statement: usize) -> Result<(), String> {
        self.caller
            .call(self.numbers[statement], &self.arguments, &mut self.rows)
    }

    fn write(&mut self, affected: u64) -> Result<(), String> {
        self.call(0)?;
        match self.rows.affected {
            found if found == affected => Ok(()),
            found => wrong(format!("{found} documents were changed in place of {affected}")),
        }
    }

    /// One operation; what it counts as.
    fn ask(&mut self) -> Result<u64, String> {
        self.arguments.clear();
        let own = self.own.start + self.random.below(self.own.end - self.own.start);
        match self.test {
            "insert-many" => {
                let first = self.shared.next.fetch_add(BATCH as u64, Relaxed);
                (first..first + BATCH as u64).for_each(|id| data::push(id, &mut self.arguments));
                self.write(BATCH as u64)?;
                return Ok(BATCH as u64);
            }
            "inc" => {
                self.arguments.int(own as i64).int(1);
                self.write(1)?;
                self.shared.committed.fetch_add(1, Relaxed);
            }
            "array-filters" => {
                self.arguments.int(own as i64).int(self.random.below(3) as i64);
                self.write(1)?;
                self.shared.committed.fetch_add(1, Relaxed);
            }
            "set-in-large" => {
                let id = self.random.below(LARGE_DOCUMENTS);
                let value = format!("{:0FIELD_BYTES$}", self.random.next());
                self.arguments
                    .int(id as i64)
                    .text(|out| out.extend_from_slice(value.as_bytes()));
                self.write(1)?;
            }
            "two-document-transaction" => {
                let other = self.own.start + self.random.below(self.own.end - self.own.start);
                self.transfer(own, other)?;
            }
            "transfer-zipf" => self.contended_transfer()?,
            "change-stream" => self.change()?,
            _ => self.query()?,
        }
        Ok(1)
    }

    fn query(&mut self) -> Result<(), String> {
        let documents = self.shared.documents;
        match self.test {
            "aggregate-by-id" => {
                let id = self.random.below(documents);
                self.arguments.int(id as i64);
                self.call(0)?;
                if self.rows.len() != 1 || self.rows.int(0, 1)? != (id + id / TEAM) as i64 {
                    return wrong(format!("the sum of document {id}"));
                }
            }
            "match-group" => {
                let teams = TEAMS.min(documents / TEAM);
                let first = self.random.below(documents / TEAM - teams + 1);
                self.arguments.int(first as i64).int((first + teams) as i64);
                self.call(0)?;
                let ids = first * TEAM..(first + teams) * TEAM;
                let (mut count, mut sum) = (0, 0);
                for row in 0..self.rows.len() {
                    count += self.rows.int(row, 1)?;
                    sum += self.rows.int(row, 2)?;
                }
                let expected = (TEAM * teams, ids.sum::<u64>(), GROUPS as usize);
                if (count as u64, sum as u64, self.rows.len()) != expected {
                    return wrong(format!(
                        "{} groups of {count} documents with a sum of {sum}",
                        self.rows.len()
                    ));
                }
            }
            "lookup" => {
                let team = self.random.below(documents / TEAM);
                self.arguments.int(team as i64);
                self.call(0)?;
                for row in 0..self.rows.len() {
                    let (id, count, number) = (self.rows.int(row, 0)?, self.rows.int(row, 1)?, self.rows.int(row, 2)?);
                    if count != 1 || number != id || id as u64 / TEAM != team {
                        return wrong(format!("what joins document {id}"));
                    }
                }
                if self.rows.len() as u64 != TEAM {
                    return wrong(format!("{} documents of team {team}", self.rows.len()));
                }
            }
            "loose-scan" => {
                self.call(0)?;
                for row in 0..self.rows.len() {
                    // The first number of a group is the group itself.
                    if self.rows.int(row, 0)? != self.rows.int(row, 1)? {
                        return wrong("the first of a group");
                    }
                }
                if self.rows.len() as u64 != GROUPS {
                    return wrong(format!("{} groups", self.rows.len()));
                }
            }
            "text" => {
                let which = self.random.below(WORDS_MAX);
                self.call(which as usize)?;
                for row in 0..self.rows.len() {
                    let id = self.rows.int(row, 0)? as u64;
                    if !data::words(id).contains(data::word(which)) {
                        return wrong(format!("document {id} does not have {}", data::word(which)));
                    }
                }
                if self.rows.len() != FOUND {
                    return wrong(format!("{} documents have {}", self.rows.len(), data::word(which)));
                }
            }
            _ => {
                let at = data::place(self.random.below(documents));
                self.arguments.int(at.0).int(at.1);
                self.call(0)?;
                // One is there, so it is the nearest.
                let first = self.rows.int(0, 0).map(|id| data::place(id as u64));
                if first != Ok(at) {
                    return wrong(format!("the nearest to {at:?} is {first:?}"));
                }
            }
        }
        Ok(())
    }

    /// A write, and how long until the change stream tells of it.
    fn change(&mut self) -> Result<(), String> {
        let id = self.shared.next.fetch_add(1, Relaxed) as i64;
        self.arguments.int(id);
        let begun = Instant::now();
        self.write(1)?;
        let watcher = self.watcher.as_mut().ok_or("there is no change stream")?;
        while !watcher.tells_of(id)? {
            if begun.elapsed() > TOLD_MAX {
                return wrong(format!("the change stream does not tell of document {id}"));
            }
        }
        self.caller.last = Instant::now();
        self.caller.busy = self.caller.last - begun;
        Ok(())
    }

    fn transfer(&mut self, from: u64, to: u64) -> Result<(), String> {
        self.caller.begin()?;
        for (id, amount) in [(from, -1), (to, 1)] {
            self.arguments.clear().int(id as i64).int(amount);
            self.write(1)?;
        }
        self.caller.commit()
    }

    /// From an account that others want too; done again until it is committed.
    fn contended_transfer(&mut self) -> Result<(), String> {
        let from = self.zipf.rank(&mut self.random);
        let to = (from + 1 + self.random.below(ACCOUNTS_MAX - 1)) % ACCOUNTS_MAX;
        while let Err(error) = self.transfer(from, to) {
            if !CONFLICTS.iter().any(|code| error.contains(code)) {
                return Err(error);
            }
            self.shared.wasted.fetch_add(1, Relaxed);
        }
        self.shared.committed.fetch_add(1, Relaxed);
        Ok(())
    }
}

impl Worker for Asker<'_> {
    fn step(&mut self) -> Result<Option<Done>, String> {
        self.caller.begin_operation();
        let work = self.ask()?;
        Ok(Some(Done {
            busy: self.caller.busy,
            last: self.caller.last,
            work,
        }))
    }
}
