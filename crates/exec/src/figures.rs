//! What a tree of operators counted, kept when the operators are gone: executionStats of explain, and of the plan
//! cache.

use crate::counters::Counters;
use nestor_model::{Document, Value, doc};
use nestor_planner::NodeKind;

/// The figures of one operator and of those below it. [`Figures::of`] takes them.
#[derive(Clone, Debug)]
pub struct Figures {
    /// The kind of operator.
    pub kind: NodeKind,
    /// Its counters.
    pub counters: Counters,
    /// Fields of its own.
    pub fields: Document,
    /// Its inputs' figures.
    pub inputs: Vec<Figures>,
}

impl Figures {
    /// Units of work: a unit that brought an input no row is also one of the operator that waited for it.
    pub fn works(&self) -> u64 {
        let waited: u64 = self.inputs.iter().map(Self::need_time).sum();
        self.counters.works + waited
    }

    /// Units of work that brought no row and were not the end.
    fn need_time(&self) -> u64 {
        let Counters { advanced, is_eof, .. } = self.counters;
        self.works().saturating_sub(advanced + u64::from(is_eof))
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
            "stage": self.kind.name(),
            "nReturned": advanced as i32,
            "works": works as i32,
            "advanced": advanced as i32,
            "needTime": self.need_time() as i32,
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
