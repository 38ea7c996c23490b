//! Loads the tables, runs tests on them, and puts back what a test has taken away.

use super::ask::Ask;
use super::client::{Block, Client, View};
use super::model::{Maker, Row};
use super::test::{Choice, Test};
use crate::drive::{Done, Load, Outcome, Pace, Times, Worker, drive};
use crate::random::Random;
use crate::results::Measurement;
use crate::rows::{Arguments, Rows};
use crate::statement::{Role, Statement, aggregate};
use crate::target::{Caller, Target, command};
use crate::wire::Protocol;
use crate::workload::load::run_alone;
use crate::workload::{Settings, Workload, drop_table, settle};
use nestor_model::{Document, Value, doc};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Rows of one insert while loading.
const BATCH: usize = 500;
/// Fewest rows that a client works on: the longest list of keys.
const ROWS_MIN: u64 = 1_000;

/// The tables on a server, and what they have to be.
pub struct Micro {
    target: Target,
    settings: Settings,
    names: Vec<String>,
    makers: Vec<Maker>,
    models: Vec<Vec<Row>>,
}

impl Micro {
    /// Makes the tables anew and loads them; the outcome is that of loading.
    pub fn load(target: &Target, scale: Settings) -> Result<(Self, Measurement), String> {
        if scale.clients == 0 || scale.tables == 0 {
            return Err("at least one client and one table are wanted".into());
        }
        if scale.rows < ROWS_MIN * scale.clients as u64 || scale.rows > i32::MAX as u64 {
            return Err(format!(
                "tables have at least {ROWS_MIN} rows for each client, and at most {}",
                i32::MAX
            ));
        }
        target.configure()?;
        let names: Vec<String> = (1..=scale.tables).map(|number| format!("sbtest{number}")).collect();
        let makers: Vec<Maker> = (0..scale.tables)
            .map(|table| Maker::new(scale.seed, table, scale.rows))
            .collect();
        for name in &names {
            make_table(target, name)?;
        }
        let loader = Loader::new(target, &names, &makers, scale)?;
        let outcome = run_alone(target, &scale, loader);
        if outcome.failure.is_none() {
            for name in &names {
                let sql = format!("CREATE INDEX {name}_k ON {name} (k)");
                let index = doc! { "key": doc! { "k": 1 }, "name": "k" };
                let mongo = doc! { "createIndexes": name.as_str(), "indexes": vec![Value::from(index)] };
                target.run(&[command(mongo, &sql)])?;
            }
        }
        let rows = |maker: &Maker| (1..=scale.rows).map(|id| maker.row(id)).collect();
        let models = makers.iter().map(rows).collect();
        let micro = Self {
            target: target.clone(),
            settings: scale,
            names,
            makers,
            models,
        };
        if outcome.failure.is_none() {
            settle(&micro.target, &micro.names)?;
        }
        Ok((micro, Measurement::of("micro", "load", &outcome, 0)))
    }

    /// Runs `test`; afterwards the tables have the rows that the model has, and no others.
    fn run_test(&mut self, test: &Test, times: Times) -> Result<Outcome, String> {
        let by_k = self.ids_by_k(test);
        let clients = self.settings.clients;
        let added: Vec<Vec<AtomicU32>> = match test.choice {
            Choice::One | Choice::Zipf => self
                .models
                .iter()
                .map(|rows| rows.iter().map(|_| AtomicU32::new(0)).collect())
                .collect(),
            _ => Vec::new(),
        };
        let mut blocks: Vec<Vec<Block<'_>>> = (0..clients).map(|_| Vec::new()).collect();
        for (table, rows) in self.models.iter_mut().enumerate() {
            if let Some(added) = added.get(table) {
                blocks.iter_mut().for_each(|all| all.push(Block::Counted(rows, added)));
            } else if !test.writes() {
                blocks.iter_mut().for_each(|all| all.push(Block::All(rows)));
            } else {
                let each = rows.len().div_ceil(clients);
                for (client, part) in rows.chunks_mut(each).enumerate() {
                    blocks[client].push(Block::Own((client * each) as u64 + 1, part));
                }
            }
        }
        let mut loads = Vec::new();
        for (client, blocks) in blocks.into_iter().enumerate() {
            let view = |(table, block)| View {
                maker: self.makers[table],
                block,
                by_k: by_k.get(table).map(Vec::as_slice),
                next_new: (self.settings.rows + 1 + client as u64, clients as u64),
            };
            let views = blocks.into_iter().enumerate().map(view).collect();
            let random = Random::of_part(self.settings.seed, client as u64);
            let worker = Client::new(self.target.connect()?, test, &self.names, views, random)?;
            loads.push(Load {
                worker: Box::new(worker),
                pace: self
                    .settings
                    .rate
                    .map_or(Pace::Closed, |rate| Pace::Rate(rate / clients as f64)),
                group: 0,
            });
        }
        let processes = self.target.processes();
        let mut outcome = drive(loads, times, processes.as_ref());
        for (rows, added) in self.models.iter_mut().zip(&added) {
            for (row, added) in rows.iter_mut().zip(added) {
                row.k += added.load(Relaxed) as i32;
            }
        }
        if outcome.failure.is_none() && test.writes() {
            let restored = self.audit(test).and_then(|()| self.restore(test));
            outcome.failure = restored.err();
        }
        Ok(outcome)
    }

    /// Ids in the order of `k`, for tests that ask by it.
    fn ids_by_k(&self, test: &Test) -> Vec<Vec<(i32, u32)>> {
        use super::ask::By::Secondary;
        let asks = |ask: &Ask| matches!(ask, Ask::Points(Secondary, ..) | Ask::Range(Secondary, ..));
        if !test.asks.iter().any(asks) {
            return Vec::new();
        }
        let of_table = |rows: &Vec<Row>| {
            let mut all: Vec<(i32, u32)> = rows.iter().zip(1u32..).map(|(row, id)| (row.k, id)).collect();
            all.sort_unstable();
            all
        };
        self.models.iter().map(of_table).collect()
    }

    /// Whether the tables have as many rows as they should, with the right sum of `k`.
    fn audit(&self, test: &Test) -> Result<(), String> {
        let mut caller = self.target.connect()?;
        for (name, rows) in self.names.iter().zip(&self.models) {
            // One figure at a time: servers whose second accumulator is wrong are measured all the same.
            let mut figure = |accumulator: Document, sql: &str| -> Result<i64, String> {
                let filter = doc! { "_id": doc! { "$lte": self.settings.rows as i64 } };
                let stages = vec![
                    doc! { "$match": filter },
                    doc! { "$group": doc! { "_id": Value::Null, "n": accumulator } },
                    doc! { "$project": doc! { "_id": 0 } },
                ];
                let sql = format!("SELECT {sql} FROM {name} WHERE id <= {}", self.settings.rows);
                let statement = Statement::new("the audit", Role::Reads, vec![], aggregate(name, stages), sql);
                let found = caller.once(&statement)?;
                // The sum of no rows is nothing.
                Ok(if found.is_empty() {
                    0
                } else {
                    found.int(0, 0).unwrap_or(0)
                })
            };
            let (count, sum) = (
                figure(doc! { "$sum": 1 }, "COUNT(*)")?,
                figure(doc! { "$sum": "$k" }, "SUM(k)")?,
            );
            let present = || rows.iter().filter(|row| row.is_present);
            let expected: i64 = present().map(|row| i64::from(row.k)).sum();
            if (count, sum) != (present().count() as i64, expected) {
                return Err(format!(
                    "a wrong answer: after {} table {name} has {count} rows with a sum of {sum} in place of {} with {expected}",
                    test.name,
                    present().count()
                ));
            }
        }
        Ok(())
    }

    /// Deleted rows come back, inserted ones go.
    fn restore(&mut self, test: &Test) -> Result<(), String> {
        let mut caller = self.target.connect()?;
        let (mut arguments, mut answer) = (Arguments::default(), Rows::default());
        for (table, name) in self.names.iter().enumerate() {
            if test.choice == Choice::New {
                let beyond = doc! { "q": doc! { "_id": doc! { "$gt": self.settings.rows as i64 } }, "limit": 0 };
                let mongo = doc! { "delete": name.as_str(), "deletes": vec![Value::from(beyond)] };
                caller.once(&command(
                    mongo,
                    &format!("DELETE FROM {name} WHERE id > {}", self.settings.rows),
                ))?;
            }
            let insert = caller.prepare(&Ask::Insert(1).statement(name))?;
            let maker = self.makers[table];
            for (id, row) in (1..).zip(&mut self.models[table]) {
                if !row.is_present {
                    *row = maker.row(id);
                    push_row(&maker, id, arguments.clear());
                    caller.call(insert, &arguments, &mut answer)?;
                }
            }
        }
        Ok(())
    }
}

impl Workload for Micro {
    fn run(&mut self, test: &str, times: Times) -> Result<Measurement, String> {
        let test = Test::named(test).ok_or_else(|| format!("there is no test {test}"))?;
        let outcome = self.run_test(&test, times)?;
        Ok(Measurement::of("micro", test.name, &outcome, 0))
    }

    fn set_clients(&mut self, clients: usize) {
        self.settings.clients = clients;
    }
}

fn make_table(target: &Target, name: &str) -> Result<(), String> {
    drop_table(target, name)?;
    if target.protocol == Protocol::Mongo {
        return Ok(());
    }
    let create = format!(
        "CREATE TABLE {name} (id INTEGER NOT NULL PRIMARY KEY, k INTEGER NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL)"
    );
    target.run(&[command(doc! {}, &create)])
}

fn push_row(maker: &Maker, id: u64, arguments: &mut Arguments) {
    arguments.int(id as i64).int(i64::from(maker.k(id)));
    arguments.text(|out| maker.c(id, 0, out)).text(|out| maker.pad(id, out));
}

/// Inserts the rows of all tables in the order of their ids.
struct Loader {
    caller: Caller,
    makers: Vec<Maker>,
    /// By table: the statements of a whole batch and of one row.
    prepared: Vec<(usize, usize)>,
    rows: u64,
    table: usize,
    next: u64,
    arguments: Arguments,
    answer: Rows,
}

impl Loader {
    fn new(target: &Target, names: &[String], makers: &[Maker], scale: Settings) -> Result<Self, String> {
        let mut caller = target.connect()?;
        let mut prepared = Vec::new();
        for name in names {
            let batch = caller.prepare(&Ask::Insert(BATCH).statement(name))?;
            prepared.push((batch, caller.prepare(&Ask::Insert(1).statement(name))?));
        }
        Ok(Self {
            caller,
            makers: makers.to_vec(),
            prepared,
            rows: scale.rows,
            table: 0,
            next: 1,
            arguments: Arguments::default(),
            answer: Rows::default(),
        })
    }
}

impl Worker for Loader {
    fn step(&mut self) -> Result<Option<Done>, String> {
        if self.next > self.rows {
            self.table += 1;
            self.next = 1;
        }
        let Some(&(batch, single)) = self.prepared.get(self.table) else {
            return Ok(None);
        };
        let is_whole = self.rows - self.next + 1 >= BATCH as u64;
        let (statement, count) = if is_whole { (batch, BATCH as u64) } else { (single, 1) };
        self.arguments.clear();
        for id in self.next..self.next + count {
            push_row(&self.makers[self.table], id, &mut self.arguments);
        }
        self.next += count;
        self.caller.begin_operation();
        self.caller.call(statement, &self.arguments, &mut self.answer)?;
        if self.answer.affected != count {
            return Err(format!(
                "a wrong answer: {} rows of {count} were inserted",
                self.answer.affected
            ));
        }
        Ok(Some(Done {
            busy: self.caller.busy,
            last: self.caller.last,
            work: count,
        }))
    }
}
