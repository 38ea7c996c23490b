//! How often an interpreter asks whether to stop: by time instead of by steps.
//!
//! The interpreter counts calls and turns of loops, and asks after ten thousand of them. That is often enough for steps of some nanoseconds, but
//! one comparison of two texts of tens of megabytes takes milliseconds, and ten thousand of them a minute. The interpreter has no function to
//! say how many steps it may take, so its counter is found: it is the one word of the context that falls with each turn of a loop, by the same number.
//! After each question it is set to what takes about [`AIM`].
#![allow(unsafe_code)]

use crate::heap::Heap;
use rquickjs::{Ctx, Function};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// The time between two questions that is aimed at.
const AIM: Duration = Duration::from_millis(2);

/// The most steps between two questions: steps may be long after many that were short.
const STEPS_MAX: i32 = 64;

/// The time that has to pass until a question is passed on, which costs more than to ask for the time.
const PATIENCE: Duration = Duration::from_micros(500);

/// The steps of an interpreter.
pub(crate) struct Pace {
    /// The interpreter's counter, which goes down; it asks at zero. Null if it was not found.
    counter: *mut i32,
    steps: Cell<i32>,
    asked: Cell<Instant>,
    looked: Cell<Instant>,
}

impl Pace {
    /// Of the interpreter that has this context, whose memory is `heap`.
    pub(crate) fn of(ctx: &Ctx<'_>, heap: &Heap) -> rquickjs::Result<Self> {
        let turns: Function<'_> = ctx.eval("(function(n) { for (let i = 0; i < n; i++) ; })")?;
        let context = ctx.as_raw().as_ptr().cast::<i32>();
        let words = || -> Vec<i32> {
            (0..heap.behind(context.cast()) / size_of::<i32>())
                // SAFETY: the context lies in a piece that reaches so far behind where it begins, and is aligned for words.
                .map(|at| unsafe { context.add(at).read() })
                .collect()
        };
        let fallen = |n: i32| -> rquickjs::Result<Vec<i32>> {
            let before = words();
            turns.call::<_, ()>((n,))?;
            let fallen = before
                .iter()
                .zip(words())
                .map(|(before, after)| before.wrapping_sub(after));
            Ok(fallen.collect())
        };
        // Once for what only the first call does.
        fallen(1)?;
        // What a loop of 100 turns takes more than one of 37.
        let differences = fallen(100)?
            .into_iter()
            .zip(fallen(37)?)
            .map(|(a, b)| a.wrapping_sub(b));
        let mut found = differences
            .enumerate()
            .filter(|(_, difference)| *difference > 0 && difference % (100 - 37) == 0);
        let counter = match (found.next(), found.next()) {
            // SAFETY: the word is one of those that were read.
            (Some((at, _)), None) => unsafe { context.add(at) },
            _ => std::ptr::null_mut(),
        };
        Ok(Self {
            counter,
            steps: Cell::new(STEPS_MAX),
            asked: Cell::new(Instant::now()),
            looked: Cell::new(Instant::now()),
        })
    }

    /// Whether the counter was found.
    #[cfg(test)]
    pub(crate) fn is_known(&self) -> bool {
        !self.counter.is_null()
    }

    /// A statement begins.
    pub(crate) fn begin(&self) {
        self.asked.set(Instant::now());
        self.set(STEPS_MAX);
    }

    /// The interpreter has asked; says when it is to ask again. Whether it is time to look.
    pub(crate) fn asked(&self) -> bool {
        let now = Instant::now();
        let took = now.duration_since(self.asked.replace(now));
        let steps = self.steps.get();
        self.set(match took < AIM {
            true => (steps * 2).min(STEPS_MAX),
            false => (f64::from(steps) * AIM.div_duration_f64(took)).max(1.0) as i32,
        });
        let looks = now.duration_since(self.looked.get()) >= PATIENCE;
        if looks {
            self.looked.set(now);
        }
        looks
    }

    fn set(&self, steps: i32) {
        self.steps.set(steps);
        // SAFETY: the word lies in the context, which lives as long as the interpreter that this is of; nobody holds a reference to it.
        if let Some(counter) = std::ptr::NonNull::new(self.counter) {
            unsafe { counter.write(steps) };
        }
    }
}
