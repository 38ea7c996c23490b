//! What a tree of operators counted, kept when the operators are gone: executionStats of explain, and of the plan
//! cache.

use crate::operator::{Counters, Operator};
use nestor_model::{Document, Value, doc};

/// The figures of one operator and of those below it.
#[derive(Clone, Debug)]
pub struct Figures {
    /// Name of the stage.
    pub stage: &'static str,
    /// Its counters.
    pub counters: Counters,
    /// Fields of its own.
    pub fields: Document,
    /// Its inputs' figures.
    pub inputs: Vec<Figures>,
}

impl Figures {
    /// The figures of `operator` as they are now.
    pub fn of(operator: &dyn Operator) -> Self {
        let mut fields = Document::new();
        operator.explain_fields(&mut fields);
        Self {
            stage: operator.stage(),
            counters: *operator.counters(),
            fields,
            inputs: operator.inputs().into_iter().map(Self::of).collect(),
        }
    }

    /// Units of work: a unit that brought an input no row is also one of the operator that waited for it.
    pub fn works(&self) -> u64 {
        let below: u64 = self.inputs.iter().map(Self::works).sum();
        self.counters.works.max(below)
    }

    /// Index keys read by the whole tree.
    pub fn keys_examined(&self) -> u64 {
        let below: u64 = self.inputs.iter().map(Self::keys_examined).sum();
        self.counters.keys_examined + below
    }

    /// Records read by the whole tree.
    pub fn docs_examined(&self) -> u64 {
        let below: u64 = self.inputs.iter().map(Self::docs_examined).sum();
        self.counters.docs_examined + below
    }

    /// A stage of `executionStages`, with its inputs.
    pub fn document(&self) -> Document {
        let Counters { advanced, is_eof, .. } = self.counters;
        let works = self.works();
        let mut out = doc! {
            "stage": self.stage,
            "nReturned": advanced as i32,
            "works": works as i32,
            "advanced": advanced as i32,
            "needTime": works.saturating_sub(advanced + u64::from(is_eof)) as i32,
            "needYield": 0,
            "isEOF": i32::from(is_eof),
        };
        for (name, value) in self.fields.iter() {
            out.push(name, value);
        }
        let mut inputs: Vec<Value> = self.inputs.iter().map(|input| input.document().into()).collect();
        match inputs.len() {
            0 => {}
            1 => out.push("inputStage", inputs.pop()),
            _ => out.push("inputStages", inputs),
        }
        out
    }
}
