//! `$accumulator`, and what reduces in mapReduce: machines whose steps are scripts.

use super::{Accumulator, Argument, Definition, State, items, value_bytes};
use crate::env::Val;
use nestor_model::value::EMPTY_DOC;
use nestor_model::{Result, Value, ValueRef, doc};
use nestor_script::{Function, Globals};
use std::sync::Arc;

pub(super) const ACCUMULATOR: Definition = Definition {
    name: "$accumulator",
    argument: Argument::Script,
    start: |settings| Accumulator::Scripted(Box::new(Scripted::new(settings.scripts, settings.initial))),
};

pub(super) const REDUCE: Definition = Definition {
    name: "$_internalJsReduce",
    argument: Argument::Script,
    start: |settings| Accumulator::Scripted(Box::new(Scripted::new(settings.scripts, settings.initial))),
};

/// The functions of a machine.
#[derive(Clone, Debug)]
pub enum Steps {
    /// Of `$accumulator`.
    Accumulate {
        /// Makes the state, of the values of `initArgs`.
        init: Function,
        /// Makes the next state, of the state and the values of `accumulateArgs`.
        accumulate: Function,
        /// Makes one state of two.
        merge: Function,
        /// Makes the result of the state; without it the state is the result.
        finalize: Option<Function>,
    },
    /// Of mapReduce: makes one value of a key and an array of values.
    Reduce(Function),
}

/// The functions of a machine, and the variables they see.
#[derive(Clone, Debug)]
pub struct Scripts {
    /// The functions.
    pub steps: Steps,
    /// The variables.
    pub globals: Option<Arc<Globals>>,
}

impl Scripts {
    fn run(&self, function: &Function, args: &[ValueRef<'_>]) -> Result<Value> {
        function.call(self.globals.as_ref(), ValueRef::Missing, args)
    }
}

/// Values of one key that are kept until they are reduced to one.
const PENDING_MAX: usize = 100;

/// A machine whose steps are scripts.
#[derive(Clone, Debug)]
pub struct Scripted {
    scripts: Option<Arc<Scripts>>,
    /// Of `$accumulator` the state, of mapReduce the key.
    state: Value,
    /// Whether it was given anything yet.
    is_fresh: bool,
    /// Of mapReduce: values that are not reduced yet.
    pending: Vec<Value>,
    bytes: usize,
}

impl Scripted {
    fn new(scripts: Option<Arc<Scripts>>, initial: Value) -> Self {
        Self {
            bytes: value_bytes(&initial),
            scripts,
            state: initial,
            is_fresh: true,
            pending: Vec::new(),
        }
    }

    /// The result. Errors: those of the script.
    pub fn finish(&self) -> Result<Value> {
        let Some(scripts) = &self.scripts else {
            return Ok(Value::Null);
        };
        match &scripts.steps {
            Steps::Accumulate {
                finalize: Some(finalize),
                ..
            } => scripts.run(finalize, &[self.state.as_ref()]),
            Steps::Accumulate { finalize: None, .. } => Ok(self.state.clone()),
            Steps::Reduce(reduce) => match self.pending.as_slice() {
                [one] => Ok(one.clone()),
                many => scripts.run(reduce, &[self.state.as_ref(), Value::from(many.to_vec()).as_ref()]),
            },
        }
    }

    fn set(&mut self, state: Value) {
        self.bytes = self.bytes - value_bytes(&self.state) + value_bytes(&state);
        self.state = state;
    }

    /// One more value of the key.
    fn keep(&mut self, scripts: &Scripts, reduce: &Function, value: Value) -> Result<()> {
        self.bytes += value_bytes(&value);
        self.pending.push(value);
        if self.pending.len() >= PENDING_MAX {
            let values = Value::from(std::mem::take(&mut self.pending));
            let one = scripts.run(reduce, &[self.state.as_ref(), values.as_ref()])?;
            self.bytes = value_bytes(&self.state) + value_bytes(&one);
            self.pending.push(one);
        }
        Ok(())
    }
}

impl State for Scripted {
    fn add(&mut self, value: Val<'_>) -> Result<()> {
        let Some(scripts) = self.scripts.clone() else {
            return Ok(());
        };
        match &scripts.steps {
            Steps::Accumulate { accumulate, .. } => {
                let mut args = vec![self.state.as_ref()];
                args.extend(items(value.as_ref()));
                let state = scripts.run(accumulate, &args)?;
                self.set(state);
            }
            Steps::Reduce(reduce) => {
                let pair = value.into_value();
                let pair = match &pair {
                    Value::Document(pair) => pair.as_ref(),
                    _ => EMPTY_DOC,
                };
                if self.is_fresh {
                    self.set(pair.get("k").map_or(Value::Null, ValueRef::to_value));
                }
                self.keep(
                    &scripts,
                    reduce,
                    pair.get("v").map_or(Value::Undefined, ValueRef::to_value),
                )?;
            }
        }
        self.is_fresh = false;
        Ok(())
    }

    /// Of `$accumulator` the state, which [`Scripted::finish`] makes the result of.
    fn result(&self) -> Value {
        self.state.clone()
    }

    fn memory(&self) -> usize {
        self.bytes
    }

    fn partial(&self) -> Value {
        match self.is_fresh {
            true => Value::Null,
            false => doc! { "state": self.state.clone(), "pending": Value::from(self.pending.clone()) }.into(),
        }
    }

    fn merge(&mut self, partial: ValueRef<'_>) -> Result<()> {
        let (Some(scripts), ValueRef::Document(partial)) = (self.scripts.clone(), partial) else {
            return Ok(());
        };
        let state = partial.get("state").unwrap_or(ValueRef::Undefined);
        match &scripts.steps {
            Steps::Accumulate { merge, .. } if !self.is_fresh => {
                let state = scripts.run(merge, &[self.state.as_ref(), state])?;
                self.set(state);
            }
            _ => self.set(state.to_value()),
        }
        if let Steps::Reduce(reduce) = &scripts.steps {
            for value in items(partial.get("pending").unwrap_or(ValueRef::Missing)) {
                self.keep(&scripts, reduce, value.to_value())?;
            }
        }
        self.is_fresh = false;
        Ok(())
    }
}
