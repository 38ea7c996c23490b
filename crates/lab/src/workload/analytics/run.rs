//! Loads a data set and asks its questions.

use super::events::Events;
use super::hits::{self, Hits};
use super::{Dataset, Question};
use crate::drive::{Done, Load, Pace, Times, Worker, drive};
use crate::results::Measurement;
use crate::rows::{Arguments, Rows};
use crate::target::{Caller, Target, command};
use crate::wire::Protocol;
use crate::workload::load::{Loader, run_alone};
use crate::workload::{Settings, Workload, drop_table, settle};
use nestor_model::doc;
use std::sync::LazyLock;

/// Rows of an insert while loading.
const BATCH: usize = 200;
/// Fewest rows.
const ROWS_MIN: u64 = 1_000;

/// Which data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// JSONBench's.
    Events,
    /// ClickBench's.
    Hits,
}

impl Shape {
    /// The queries, in the order they run.
    pub const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Events => &["q1", "q2", "q3", "q4", "q5"],
            Self::Hits => &hits::NAMES,
        }
    }

    fn suite(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Hits => "hits",
        }
    }
}

/// A data set on a server.
pub struct Analytics {
    target: Target,
    settings: Settings,
    suite: &'static str,
    questions: Vec<Question>,
}

impl Analytics {
    /// Makes the table anew.
    pub fn load(target: &Target, settings: Settings, shape: Shape) -> Result<(Self, Measurement), String> {
        match shape {
            Shape::Events => load::<Events>(target, settings, shape.suite()),
            Shape::Hits => load::<Hits>(target, settings, shape.suite()),
        }
    }
}

fn load<D: Dataset>(
    target: &Target,
    settings: Settings,
    suite: &'static str,
) -> Result<(Analytics, Measurement), String> {
    if settings.rows < ROWS_MIN || settings.rows > i32::MAX as u64 {
        return Err(format!("between {ROWS_MIN} and {} rows are wanted", i32::MAX));
    }
    target.configure()?;
    drop_table(target, D::NAME)?;
    if target.protocol != Protocol::Mongo {
        target.run(&[command(doc! {}, &D::create(target.protocol))])?;
    }
    let rows = settings.rows / BATCH as u64 * BATCH as u64;
    let (protocol, seed) = (target.protocol, settings.seed);
    let insert = D::insert(protocol, BATCH);
    let push = move |id, arguments: &mut Arguments| D::push(protocol, seed, rows, id, arguments);
    let loader = Loader::new(target, (&insert, BATCH), 0..rows, push)?;
    let outcome = run_alone(target, &settings, loader);
    if outcome.failure.is_none() {
        settle(target, &[D::NAME.to_owned()])?;
    }
    let analytics = Analytics {
        target: target.clone(),
        settings,
        suite,
        questions: D::questions(settings.seed, rows),
    };
    Ok((analytics, Measurement::of(suite, "load", &outcome, 0)))
}

impl Workload for Analytics {
    fn run(&mut self, test: &str, times: Times) -> Result<Measurement, String> {
        let question = self.questions.iter().find(|question| question.name == test);
        let question = question.ok_or_else(|| format!("there is no query {test}"))?;
        // Not while a server is measured.
        LazyLock::force(&question.rows);
        let mut loads = Vec::new();
        for _ in 0..self.settings.clients {
            let mut caller = self.target.connect()?;
            let asker = Asker {
                statement: caller.prepare(&question.statement)?,
                caller,
                question,
                rows: Rows::default(),
            };
            loads.push(Load {
                worker: Box::new(asker),
                pace: self
                    .settings
                    .rate
                    .map_or(Pace::Closed, |rate| Pace::Rate(rate / self.settings.clients as f64)),
                group: 0,
            });
        }
        let outcome = drive(loads, times, self.target.processes().as_ref());
        Ok(Measurement::of(self.suite, question.name, &outcome, 0))
    }

    fn set_clients(&mut self, clients: usize) {
        self.settings.clients = clients;
    }
}

struct Asker<'q> {
    caller: Caller,
    statement: usize,
    question: &'q Question,
    rows: Rows,
}

impl Worker for Asker<'_> {
    fn step(&mut self) -> Result<Option<Done>, String> {
        self.caller.begin_operation();
        self.caller
            .call(self.statement, &Arguments::default(), &mut self.rows)?;
        let expected = &self.question.rows;
        let mut is_right = self.rows.len() == expected.len();
        for (at, row) in expected.iter().enumerate().take(self.rows.len()) {
            let mut values = row.iter().enumerate();
            is_right &= values.all(|(column, value)| value.is_in(&self.rows, at, column));
        }
        if !is_right {
            let name = self.question.name;
            return Err(format!(
                "a wrong answer: {name} has {} rows, and {} of its own are expected",
                self.rows.len(),
                expected.len()
            ));
        }
        Ok(Some(Done {
            busy: self.caller.busy,
            last: self.caller.last,
            work: 1,
        }))
    }
}
