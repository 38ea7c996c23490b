//! The steps of the Insert Benchmark.
//!
//! Inserts count keys up and deletes follow at the other end, so the table keeps its size. What queries return is checked as far as
//! it is known while rows come and go: points are asked for in the middle, where all rows are there; ranges have to be in order, within their
//! bounds and whole. After each step the number of rows is counted.

use super::table::{self, DATA_BYTES, Index, QUERY_ROWS, Row};
use crate::drive::{Done, Load, Outcome, Pace, Times, Worker, drive};
use crate::random::{Random, mix};
use crate::results::{Measurement, Sla};
use crate::rows::{Arguments, Rows};
use crate::statement::{Role, Statement, aggregate};
use crate::target::{Caller, Target, command};
use crate::workload::{Settings, Workload, drop_table, settle, wait_until_idle};
use nestor_model::{Value, doc};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The steps after loading, in order.
pub const STEPS: [&str; 9] = [
    "l.x", "l.i1", "l.i2", "qr100", "qp100", "qr500", "qp500", "qr1000", "qp1000",
];

/// Rows of a transaction while loading in key order.
const LOAD_ROWS: u64 = 100;
/// Rows of a transaction beside queries.
const BESIDE_ROWS: u64 = 50;

/// The benchmark on one server.
pub struct Insert {
    target: Target,
    settings: Settings,
    tables: Vec<Table>,
}

/// A user's table.
struct Table {
    name: String,
    /// What its rows are made from.
    seed: u64,
    /// The first key that is there.
    first: AtomicU64,
    /// The first that is not there yet; writers move both.
    next: AtomicU64,
}

impl Table {
    fn first(&self) -> u64 {
        self.first.load(Relaxed)
    }

    fn next(&self) -> u64 {
        self.next.load(Relaxed)
    }
}

impl Insert {
    /// Makes the tables anew and loads them in key order: l.i0.
    pub fn load(target: &Target, settings: Settings) -> Result<(Self, Measurement), String> {
        if settings.rows < 1_000 {
            return Err("the Insert Benchmark wants at least 1000 rows".into());
        }
        target.configure()?;
        let table = |user: usize| Table {
            name: table::name(user),
            seed: mix(settings.seed.wrapping_add(user as u64)),
            first: AtomicU64::new(1),
            next: AtomicU64::new(1),
        };
        let insert = Self {
            target: target.clone(),
            settings,
            tables: (0..settings.clients).map(table).collect(),
        };
        for table in &insert.tables {
            drop_table(target, &table.name)?;
            if target.protocol != crate::wire::Protocol::Mongo {
                target.run(&[command(doc! {}, &table::create(&table.name))])?;
            }
        }
        let writer = |table| Writer::new(&insert, table, LOAD_ROWS, Some(settings.rows), false);
        let outcome = insert.until_finished(&writer)?;
        let measurement = Measurement::of("insert", "l.i0", &outcome, 0);
        Ok((insert, measurement))
    }

    /// Has one worker for each table do all that it has to.
    fn until_finished<'t, W: Worker + 't>(
        &'t self,
        worker: &dyn Fn(&'t Table) -> Result<W, String>,
    ) -> Result<Outcome, String> {
        let mut loads = Vec::new();
        for table in &self.tables {
            loads.push(Load {
                worker: Box::new(worker(table)?),
                pace: Pace::Closed,
                group: 0,
            });
        }
        let times = Times::until_finished(self.settings.sample);
        Ok(drive(loads, times, self.target.processes().as_ref()))
    }

    /// l.x: the rate is that of rows.
    fn indexes(&mut self) -> Result<Measurement, String> {
        let builder = |table: &Table| {
            Ok(Builder {
                caller: self.target.connect()?,
                table: table.name.clone(),
                left: Index::ALL.into_iter().rev().collect(),
                rows: table.next() - table.first(),
            })
        };
        let outcome = self.until_finished(&builder)?;
        self.finish("l.x", &outcome)
    }

    /// l.i1 and l.i2: of each user one connection inserts and one deletes, as much as the other.
    fn writes(&mut self, step: &str, rows: u64, times: Times) -> Result<Measurement, String> {
        let mut loads: Vec<Load<'_>> = Vec::new();
        for table in &self.tables {
            for (group, deletes) in [(0, false), (1, true)] {
                loads.push(Load {
                    worker: Box::new(Writer::new(self, table, rows, None, deletes)?),
                    pace: Pace::Closed,
                    group,
                });
            }
        }
        let outcome = drive(loads, times, self.target.processes().as_ref());
        self.finish(step, &outcome)
    }

    fn queries(&mut self, step: &str, rate: f64, times: Times) -> Result<Measurement, String> {
        let mut loads: Vec<Load<'_>> = Vec::new();
        for (user, table) in self.tables.iter().enumerate() {
            loads.push(Load {
                worker: Box::new(Asker::new(self, table, user as u64, step.starts_with("qp"))?),
                pace: Pace::Closed,
                group: 0,
            });
            for (group, deletes) in [(1, false), (2, true)] {
                loads.push(Load {
                    worker: Box::new(Writer::new(self, table, BESIDE_ROWS, None, deletes)?),
                    pace: Pace::Rate(rate / BESIDE_ROWS as f64),
                    group,
                });
            }
        }
        let users = self.tables.len() as f64;
        let outcome = drive(loads, times, self.target.processes().as_ref());
        // A transaction more or less at the ends of the time is none that was missed.
        let slack = 2.0 * users * BESIDE_ROWS as f64 / outcome.spent.seconds.max(1e-9);
        let sla = Sla {
            wanted: users * rate,
            reached: (outcome.rate(1).min(outcome.rate(2)) + slack).min(users * rate),
        };
        let mut measurement = self.finish(step, &outcome)?;
        measurement.sla = Some(sla);
        Ok(measurement)
    }

    /// Counts, and lets the server clean up: how long that took stands beside the step.
    fn finish(&self, step: &str, outcome: &Outcome) -> Result<Measurement, String> {
        let mut measurement = Measurement::of("insert", step, outcome, 0);
        if measurement.failure.is_none() {
            for table in &self.tables {
                self.even_out(table)?;
                measurement.failure = measurement.failure.or(self.count(table).err());
            }
            let begun = Instant::now();
            let names: Vec<String> = self.tables.iter().map(|table| table.name.clone()).collect();
            settle(&self.target, &names)?;
            wait_until_idle(&self.target);
            let cleaned = begun.elapsed().as_secs_f64();
            measurement.figures.push(("clean-up after the step, s".into(), cleaned));
        }
        Ok(measurement)
    }

    /// Inserts may be ahead of deletes by a transaction, and the next step begins with as many rows as this one.
    fn even_out(&self, table: &Table) -> Result<(), String> {
        let first = table.first();
        let surplus = (table.next() - first).saturating_sub(self.settings.rows / LOAD_ROWS * LOAD_ROWS);
        if surplus > 0 {
            let mut caller = self.target.connect()?;
            let number = caller.prepare(&table::delete(&table.name))?;
            let mut arguments = Arguments::default();
            arguments.int(first as i64).int((first + surplus - 1) as i64);
            caller.call(number, &arguments, &mut Rows::default())?;
            table.first.store(first + surplus, Relaxed);
        }
        Ok(())
    }

    fn count(&self, table: &Table) -> Result<(), String> {
        let name = table.name.as_str();
        let group = doc! { "_id": Value::Null, "n": doc! { "$sum": 1 } };
        let stages = vec![doc! { "$group": group }, doc! { "$project": doc! { "_id": 0, "n": 1 } }];
        let sql = format!("SELECT COUNT(*) FROM {name}");
        let statement = Statement::new("the count", Role::Reads, vec![], aggregate(name, stages), sql);
        let found = self.target.once(&statement)?.int(0, 0)? as u64;
        match table.next() - table.first() {
            expected if expected == found => Ok(()),
            expected => Err(format!(
                "a wrong answer: {name} has {found} rows in place of {expected}"
            )),
        }
    }
}

impl Workload for Insert {
    fn run(&mut self, step: &str, times: Times) -> Result<Measurement, String> {
        match step {
            "l.x" => self.indexes(),
            "l.i1" => self.writes(step, 50, times),
            "l.i2" => self.writes(step, 5, times),
            _ => {
                let rate = step.get(2..).and_then(|rate| rate.parse().ok());
                self.queries(step, rate.ok_or_else(|| format!("there is no step {step}"))?, times)
            }
        }
    }

    fn set_clients(&mut self, clients: usize) {
        debug_assert_eq!(
            clients, self.settings.clients,
            "a sequence is loaded anew for other users"
        );
    }
}

/// Inserts at the end, or deletes at the beginning.
struct Writer<'b> {
    caller: Caller,
    statement: usize,
    table: &'b Table,
    rows: u64,
    /// Ends with this key.
    until: Option<u64>,
    deletes: bool,
    /// Rows the table keeps.
    kept: u64,
    arguments: Arguments,
    answer: Rows,
}

impl<'b> Writer<'b> {
    fn new(insert: &Insert, table: &'b Table, rows: u64, until: Option<u64>, deletes: bool) -> Result<Self, String> {
        let mut caller = insert.target.connect()?;
        let statement = if deletes {
            table::delete(&table.name)
        } else {
            table::insert(&table.name, rows as usize)
        };
        Ok(Self {
            statement: caller.prepare(&statement)?,
            caller,
            table,
            rows,
            until: until.map(|all| all / rows * rows),
            deletes,
            kept: insert.settings.rows / LOAD_ROWS * LOAD_ROWS,
            arguments: Arguments::default(),
            answer: Rows::default(),
        })
    }
}

impl Worker for Writer<'_> {
    fn step(&mut self) -> Result<Option<Done>, String> {
        self.arguments.clear();
        let end = match self.deletes {
            true => {
                let first = self.table.first();
                // One that is quicker than the inserts waits for them, so that the table keeps its rows.
                if self.table.next() - first < self.kept + self.rows {
                    std::thread::sleep(Duration::from_micros(200));
                    return Ok(Some(Done {
                        busy: Duration::ZERO,
                        last: Instant::now(),
                        work: 0,
                    }));
                }
                self.arguments.int(first as i64).int((first + self.rows - 1) as i64);
                first + self.rows
            }
            false => {
                let next = self.table.next();
                if self.until.is_some_and(|until| next > until) {
                    return Ok(None);
                }
                for id in next..next + self.rows {
                    table::push(self.table.seed, id, &mut self.arguments);
                }
                next + self.rows
            }
        };
        if self.deletes {
            // Queries stop to ask for rows before they go.
            self.table.first.store(end, Relaxed);
        }
        self.caller.begin_operation();
        self.caller.call(self.statement, &self.arguments, &mut self.answer)?;
        if !self.deletes {
            self.table.next.store(end, Relaxed);
        }
        if self.answer.affected != self.rows {
            return Err(format!(
                "a wrong answer: {} rows were changed in place of {}",
                self.answer.affected, self.rows
            ));
        }
        Ok(Some(Done {
            busy: self.caller.busy,
            last: self.caller.last,
            work: self.rows,
        }))
    }
}

/// Builds the indexes, one after the other.
struct Builder {
    caller: Caller,
    table: String,
    left: Vec<Index>,
    rows: u64,
}

impl Worker for Builder {
    fn step(&mut self) -> Result<Option<Done>, String> {
        let Some(index) = self.left.pop() else { return Ok(None) };
        self.caller.begin_operation();
        self.caller.once(&index.create(&self.table))?;
        Ok(Some(Done {
            busy: self.caller.busy,
            last: self.caller.last,
            work: self.rows,
        }))
    }
}

/// Asks for ranges of an index or for rows by their key.
struct Asker<'b> {
    caller: Caller,
    by_index: Vec<(Index, usize)>,
    point: usize,
    asks_for_points: bool,
    table: &'b Table,
    random: Random,
    arguments: Arguments,
    answer: Rows,
    text: Vec<u8>,
}

impl<'b> Asker<'b> {
    fn new(insert: &Insert, table: &'b Table, user: u64, asks_for_points: bool) -> Result<Self, String> {
        let mut caller = insert.target.connect()?;
        let mut by_index = Vec::new();
        for index in Index::ALL {
            by_index.push((index, caller.prepare(&index.query(&table.name))?));
        }
        Ok(Self {
            point: caller.prepare(&table::point(&table.name))?,
            caller,
            by_index,
            asks_for_points,
            table,
            random: Random::of_part(insert.settings.seed, 1_000 + user),
            arguments: Arguments::default(),
            answer: Rows::default(),
            text: Vec::new(),
        })
    }

    fn ask_point(&mut self) -> Result<(), String> {
        // The newest half: deletes are far away.
        let (first, next) = (self.table.first(), self.table.next());
        let half = (next - first) / 2;
        let id = next - 1 - self.random.below(half);
        self.arguments.int(id as i64);
        self.caller.call(self.point, &self.arguments, &mut self.answer)?;
        let row = Row::of(self.table.seed, id);
        self.text.clear();
        table::data(self.table.seed, id, &mut self.text);
        let expected = [
            id as i64,
            row.dateandtime,
            row.cashregisterid,
            row.customerid,
            row.productid,
            row.price,
        ];
        let is_right = self.answer.len() == 1
            && expected
                .iter()
                .enumerate()
                .all(|(at, value)| self.answer.int(0, at) == Ok(*value))
            && self
                .answer
                .bytes(0, 6)
                .is_ok_and(|data| data.len() == DATA_BYTES && data == self.text);
        if is_right {
            Ok(())
        } else {
            Err(format!("a wrong answer: row {id} is not what was written"))
        }
    }

    fn ask_range(&mut self) -> Result<(), String> {
        let (index, statement) = self.by_index[self.random.below(self.by_index.len() as u64) as usize];
        let row = Row::of(self.table.seed, self.random.next());
        // Where the last rows of an index lie too few may follow.
        let price = row.price / 2;
        let register = (index == Index::RegisterSegment).then_some(row.cashregisterid);
        if let Some(register) = register {
            self.arguments.int(register);
        }
        self.arguments.int(price);
        self.caller.call(statement, &self.arguments, &mut self.answer)?;
        let columns = index.columns();
        let key = |row: usize| -> Result<Vec<i64>, String> {
            (0..columns.len()).map(|column| self.answer.int(row, column)).collect()
        };
        let mut last: Option<Vec<i64>> = None;
        for at in 0..self.answer.len() {
            let found = key(at)?;
            let of = |name: &str| columns.iter().position(|column| *column == name).map(|at| found[at]);
            let is_within = of("price").is_some_and(|found| found >= price)
                && (register.is_none() || of("cashregisterid") == register);
            if !is_within || last.as_ref().is_some_and(|last| *last > found) {
                return Err(format!(
                    "a wrong answer: {found:?} by {columns:?} from {register:?} {price}"
                ));
            }
            last = Some(found);
        }
        // Half of all rows cost as much or more; a register has only a thousandth of these.
        let rows = self.table.next() - self.table.first();
        let wanted = if register.is_some() && rows < 200_000 {
            0
        } else {
            QUERY_ROWS as usize
        };
        match self.answer.len() >= wanted && self.answer.len() <= QUERY_ROWS as usize {
            true => Ok(()),
            false => Err(format!("a wrong answer: {} rows by {columns:?}", self.answer.len())),
        }
    }
}

impl Worker for Asker<'_> {
    fn step(&mut self) -> Result<Option<Done>, String> {
        self.arguments.clear();
        self.caller.begin_operation();
        if self.asks_for_points {
            self.ask_point()?;
        } else {
            self.ask_range()?;
        }
        Ok(Some(Done {
            busy: self.caller.busy,
            last: self.caller.last,
            work: 1,
        }))
    }
}
