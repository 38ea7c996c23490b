//! The steps of the Insert Benchmark.
//!
//! Inserts count keys up and deletes follow at the other end, so the table keeps its size. What queries return is checked as far as
//! it is known while rows come and go: points are asked for in the middle, where all rows are there; ranges have to be in order, within their
//! bounds and whole. After each step the number of rows is counted.

use super::table::{self, DATA_BYTES, Index, NAME, QUERY_ROWS, Row};
use crate::drive::{Done, Load, Outcome, Pace, Times, Worker, drive};
use crate::random::Random;
use crate::results::{Measurement, Sla};
use crate::rows::{Arguments, Rows};
use crate::statement::{Role, Statement, aggregate};
use crate::target::{Caller, Target, command};
use crate::workload::load::run_alone;
use crate::workload::{Settings, Workload, drop_table, settle};
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
    /// The first key that is there.
    first: u64,
    /// The first that is not there yet.
    next: u64,
}

/// Where the table begins and ends while writers move it.
struct Bounds {
    first: AtomicU64,
    next: AtomicU64,
}

impl Insert {
    /// Makes the table anew and loads it in key order: l.i0.
    pub fn load(target: &Target, settings: Settings) -> Result<(Self, Measurement), String> {
        if settings.rows < 1_000 {
            return Err("the Insert Benchmark wants at least 1000 rows".into());
        }
        target.configure()?;
        drop_table(target, NAME)?;
        if target.protocol != crate::wire::Protocol::Mongo {
            target.run(&[command(doc! {}, &table::create())])?;
        }
        let bounds = Bounds {
            first: AtomicU64::new(1),
            next: AtomicU64::new(1),
        };
        let writer = Writer::new(target, &settings, &bounds, LOAD_ROWS, Some(settings.rows), false)?;
        let outcome = run_alone(target, &settings, writer);
        let measurement = Measurement::of("insert", "l.i0", &outcome, 0);
        let insert = Self {
            target: target.clone(),
            settings,
            first: 1,
            next: bounds.next.load(Relaxed),
        };
        Ok((insert, measurement))
    }

    /// l.x: the rate is that of rows.
    fn indexes(&mut self) -> Result<Measurement, String> {
        let mut builder = Builder {
            caller: self.target.connect()?,
            left: Index::ALL.to_vec(),
            rows: self.settings.rows,
        };
        builder.left.reverse();
        let outcome = run_alone(&self.target, &self.settings, builder);
        settle(&self.target, &[NAME.to_owned()])?;
        Ok(Measurement::of("insert", "l.x", &outcome, 0))
    }

    fn bounds(&self) -> Bounds {
        Bounds {
            first: AtomicU64::new(self.first),
            next: AtomicU64::new(self.next),
        }
    }

    /// l.i1 and l.i2: one connection inserts and one deletes, as much as the other.
    fn writes(&mut self, step: &str, rows: u64, times: Times) -> Result<Measurement, String> {
        let bounds = self.bounds();
        let inserter = Writer::new(&self.target, &self.settings, &bounds, rows, None, false)?;
        let deleter = Writer::new(&self.target, &self.settings, &bounds, rows, None, true)?;
        let load = |worker, group| Load {
            worker: Box::new(worker),
            pace: Pace::Closed,
            group,
        };
        let loads = vec![load(inserter, 0), load(deleter, 1)];
        let outcome = drive(loads, times, self.target.processes().as_ref());
        self.finish(&bounds, step, outcome)
    }

    fn queries(&mut self, step: &str, rate: f64, times: Times) -> Result<Measurement, String> {
        let bounds = self.bounds();
        let mut loads = Vec::new();
        for client in 0..self.settings.clients {
            let worker = Asker::new(
                &self.target,
                &self.settings,
                &bounds,
                client as u64,
                step.starts_with("qp"),
            )?;
            loads.push(Load {
                worker: Box::new(worker),
                pace: Pace::Closed,
                group: 0,
            });
        }
        for (group, deletes) in [(1, false), (2, true)] {
            let worker = Writer::new(&self.target, &self.settings, &bounds, BESIDE_ROWS, None, deletes)?;
            loads.push(Load {
                worker: Box::new(worker),
                pace: Pace::Rate(rate / BESIDE_ROWS as f64),
                group,
            });
        }
        let outcome = drive(loads, times, self.target.processes().as_ref());
        // A transaction more or less at the ends of the time is none that was missed.
        let slack = 2.0 * BESIDE_ROWS as f64 / outcome.spent.seconds.max(1e-9);
        let sla = Sla {
            wanted: rate,
            reached: (outcome.rate(1).min(outcome.rate(2)) + slack).min(rate),
        };
        let mut measurement = self.finish(&bounds, step, outcome)?;
        measurement.sla = Some(sla);
        Ok(measurement)
    }

    /// Lets the server clean up, and counts.
    fn finish(&mut self, bounds: &Bounds, step: &str, outcome: Outcome) -> Result<Measurement, String> {
        self.first = bounds.first.load(Relaxed);
        self.next = bounds.next.load(Relaxed);
        let mut measurement = Measurement::of("insert", step, &outcome, 0);
        if measurement.failure.is_none() {
            // Inserts may be ahead of deletes by a transaction, and the next step begins with as many rows as this one.
            let surplus = (self.next - self.first).saturating_sub(self.settings.rows / LOAD_ROWS * LOAD_ROWS);
            if surplus > 0 {
                let mut caller = self.target.connect()?;
                let number = caller.prepare(&table::delete())?;
                let mut arguments = Arguments::default();
                arguments.int(self.first as i64).int((self.first + surplus - 1) as i64);
                caller.call(number, &arguments, &mut Rows::default())?;
                self.first += surplus;
            }
            measurement.failure = self.count().err();
            settle(&self.target, &[NAME.to_owned()])?;
        }
        Ok(measurement)
    }

    fn count(&self) -> Result<(), String> {
        let group = doc! { "_id": Value::Null, "n": doc! { "$sum": 1 } };
        let stages = vec![doc! { "$group": group }, doc! { "$project": doc! { "_id": 0, "n": 1 } }];
        let sql = format!("SELECT COUNT(*) FROM {NAME}");
        let statement = Statement::new("the count", Role::Reads, vec![], aggregate(NAME, stages), sql);
        let found = self.target.once(&statement)?.int(0, 0)? as u64;
        match self.next - self.first {
            expected if expected == found => Ok(()),
            expected => Err(format!(
                "a wrong answer: the table has {found} rows in place of {expected}"
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
        self.settings.clients = clients;
    }
}

/// Inserts at the end, or deletes at the beginning.
struct Writer<'b> {
    caller: Caller,
    statement: usize,
    seed: u64,
    bounds: &'b Bounds,
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
    fn new(
        target: &Target,
        settings: &Settings,
        bounds: &'b Bounds,
        rows: u64,
        until: Option<u64>,
        deletes: bool,
    ) -> Result<Self, String> {
        let mut caller = target.connect()?;
        let statement = if deletes {
            table::delete()
        } else {
            table::insert(rows as usize)
        };
        Ok(Self {
            statement: caller.prepare(&statement)?,
            caller,
            seed: settings.seed,
            bounds,
            rows,
            until: until.map(|all| all / rows * rows),
            deletes,
            kept: settings.rows / LOAD_ROWS * LOAD_ROWS,
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
                let first = self.bounds.first.load(Relaxed);
                // One that is quicker than the inserts waits for them, so that the table keeps its rows.
                if self.bounds.next.load(Relaxed) - first < self.kept + self.rows {
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
                let next = self.bounds.next.load(Relaxed);
                if self.until.is_some_and(|until| next > until) {
                    return Ok(None);
                }
                for id in next..next + self.rows {
                    table::push(self.seed, id, &mut self.arguments);
                }
                next + self.rows
            }
        };
        if self.deletes {
            // Queries stop to ask for rows before they go.
            self.bounds.first.store(end, Relaxed);
        }
        self.caller.begin_operation();
        self.caller.call(self.statement, &self.arguments, &mut self.answer)?;
        if !self.deletes {
            self.bounds.next.store(end, Relaxed);
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
    left: Vec<Index>,
    rows: u64,
}

impl Worker for Builder {
    fn step(&mut self) -> Result<Option<Done>, String> {
        let Some(index) = self.left.pop() else { return Ok(None) };
        self.caller.begin_operation();
        self.caller.once(&index.create())?;
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
    seed: u64,
    bounds: &'b Bounds,
    random: Random,
    arguments: Arguments,
    answer: Rows,
    text: Vec<u8>,
}

impl<'b> Asker<'b> {
    fn new(
        target: &Target,
        settings: &Settings,
        bounds: &'b Bounds,
        client: u64,
        points: bool,
    ) -> Result<Self, String> {
        let mut caller = target.connect()?;
        let mut by_index = Vec::new();
        for index in Index::ALL {
            by_index.push((index, caller.prepare(&index.query())?));
        }
        Ok(Self {
            point: caller.prepare(&table::point())?,
            caller,
            by_index,
            asks_for_points: points,
            seed: settings.seed,
            bounds,
            random: Random::of_part(settings.seed, 1_000 + client),
            arguments: Arguments::default(),
            answer: Rows::default(),
            text: Vec::new(),
        })
    }

    fn ask_point(&mut self) -> Result<(), String> {
        // The newest half: deletes are far away.
        let (first, next) = (self.bounds.first.load(Relaxed), self.bounds.next.load(Relaxed));
        let half = (next - first) / 2;
        let id = next - 1 - self.random.below(half);
        self.arguments.int(id as i64);
        self.caller.call(self.point, &self.arguments, &mut self.answer)?;
        let row = Row::of(self.seed, id);
        self.text.clear();
        table::data(self.seed, id, &mut self.text);
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
        let row = Row::of(self.seed, self.random.next());
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
        let rows = self.bounds.next.load(Relaxed) - self.bounds.first.load(Relaxed);
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
