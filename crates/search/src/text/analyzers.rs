//! The analyzers that a definition can name.

use super::analysis::{Analyzer, built_in, custom};
use crate::operand::{Operand, refuse};
use nestor_model::Result;
use std::collections::HashMap;
use std::sync::Arc;

/// The analyzers of a definition.
pub(super) struct Analyzers {
    own: HashMap<String, Arc<Analyzer>>,
}

impl Analyzers {
    pub(super) fn read(spec: &Operand<'_>) -> Result<Self> {
        let mut own = HashMap::new();
        if let Some(items) = spec.array("analyzers")? {
            for (at, item) in items.iter().enumerate() {
                let analyzer = custom(&Operand::of(format!("analyzers[{at}]"), item)?)?;
                let name = analyzer.name().to_owned();
                if own.insert(name.clone(), Arc::new(analyzer)).is_some() {
                    refuse!("there are two analyzers {name:?}");
                }
            }
        }
        Ok(Self { own })
    }

    /// The analyzer that a field of the definition names.
    pub(super) fn named(&self, field: &str, name: &str) -> Result<Arc<Analyzer>> {
        if let Some(own) = self.own.get(name) {
            return Ok(Arc::clone(own));
        }
        match built_in(name) {
            Some(analyzer) => Ok(Arc::new(analyzer)),
            None => refuse!("\"{field}\" names the analyzer {name:?}, which is not known or not supported"),
        }
    }
}
