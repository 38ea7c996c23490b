//! Loading what is measured: one client, as fast as it goes.

use super::Settings;
use crate::drive::{Done, Load, Outcome, Pace, Times, Worker, drive};
use crate::rows::{Arguments, Rows};
use crate::statement::Statement;
use crate::target::{Caller, Target};
use std::ops::Range;

/// Has a worker do all that it has to.
pub fn run_alone(target: &Target, settings: &Settings, worker: impl Worker) -> Outcome {
    let load = Load {
        worker: Box::new(worker),
        pace: Pace::Closed,
        group: 0,
    };
    let times = Times::until_finished(settings.sample);
    drive(vec![load], times, target.processes().as_ref())
}

/// Inserts rows by a statement of several.
pub struct Loader<P> {
    caller: Caller,
    statement: usize,
    batch: usize,
    ids: Range<u64>,
    push: P,
    arguments: Arguments,
    answer: Rows,
}

impl<P: FnMut(u64, &mut Arguments)> Loader<P> {
    /// Inserts the rows of `ids`, as many at a time as `statement` takes, which is `batch`; `push` pushes the parameters of a row.
    pub fn new(
        target: &Target,
        (statement, batch): (&Statement, usize),
        ids: Range<u64>,
        push: P,
    ) -> Result<Self, String> {
        let mut caller = target.connect()?;
        Ok(Self {
            statement: caller.prepare(statement)?,
            caller,
            batch,
            ids,
            push,
            arguments: Arguments::default(),
            answer: Rows::default(),
        })
    }
}

impl<P: FnMut(u64, &mut Arguments) + Send> Worker for Loader<P> {
    fn step(&mut self) -> Result<Option<Done>, String> {
        if self.ids.is_empty() {
            return Ok(None);
        }
        self.arguments.clear();
        for id in self.ids.by_ref().take(self.batch) {
            (self.push)(id, &mut self.arguments);
        }
        self.caller.begin_operation();
        self.caller.call(self.statement, &self.arguments, &mut self.answer)?;
        Ok(Some(Done {
            busy: self.caller.busy,
            last: self.caller.last,
            work: self.answer.affected,
        }))
    }
}
