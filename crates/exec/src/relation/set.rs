//! INTERSECT and EXCEPT.

use super::key::{self, RowKey};
use super::{BoxRows, Drained, Rows, Run, row_done, weight};
use crate::kept::Kept;
use nestor_model::Result;
use nestor_planner::relation::{Intersect, Scalar, Tuple};
use std::collections::HashMap;

struct SetOperation<S> {
    left: BoxRows<S>,
    right: BoxRows<S>,
    on: Vec<S>,
    except: bool,
    all: bool,
    /// How often the right input has each row; made by the first pull.
    counts: Option<HashMap<RowKey, u64>>,
    kept: Kept,
}

pub(super) fn intersect<S: Scalar>(plan: &Intersect<S>, left: BoxRows<S>, right: BoxRows<S>) -> BoxRows<S> {
    Box::new(SetOperation {
        left,
        right,
        on: plan.on.clone(),
        except: plan.except,
        all: plan.all,
        counts: None,
        kept: Kept::default(),
    })
}

impl<S: Scalar> Rows<S> for SetOperation<S> {
    fn next(&mut self, run: &Run<'_, '_, S>) -> Result<Option<Tuple>> {
        if self.counts.is_none() {
            let mut counts = HashMap::new();
            let mut right = Drained::default();
            while let Some(row) = right.next(|| self.right.next_chunk(run))? {
                row_done()?;
                let key = key::of(&self.on, &row, &run.env)?;
                self.kept.grow(weight(&key.0) + 8)?;
                *counts.entry(key).or_insert(0) += 1;
            }
            self.counts = Some(counts);
        }
        let Some(counts) = &mut self.counts else {
            return Ok(None);
        };
        while let Some(row) = self.left.next(run)? {
            row_done()?;
            let key = key::of(&self.on, &row, &run.env)?;
            let gives = match (self.except, self.all) {
                (false, true) => match counts.get_mut(&key) {
                    Some(count) if *count > 0 => {
                        *count -= 1;
                        true
                    }
                    _ => false,
                },
                // The first of equal rows takes the entry.
                (false, false) => counts.remove(&key).is_some(),
                (true, true) => match counts.get_mut(&key) {
                    Some(count) if *count > 0 => {
                        *count -= 1;
                        false
                    }
                    _ => true,
                },
                (true, false) => match counts.contains_key(&key) {
                    true => false,
                    false => {
                        self.kept.grow(weight(&key.0) + 8)?;
                        counts.insert(key, 1);
                        true
                    }
                },
            };
            if gives {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }
}
