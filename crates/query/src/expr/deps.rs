//! The fields and variables that an expression reads.

use super::{Expr, Node};
use crate::env::Var;
use nestor_model::Path;
use std::collections::BTreeSet;

/// The dependencies of one or more expressions.
#[derive(Clone, Debug, Default)]
pub struct Deps {
    /// Paths of the document that are read, as written.
    pub paths: BTreeSet<String>,
    /// The whole document is read.
    pub whole_document: bool,
    /// Slots of variables given from outside.
    pub variables: BTreeSet<usize>,
    /// Names of the metadata that `$meta` reads.
    pub metadata: BTreeSet<&'static str>,
    /// Gives another value each time: `$rand` and the like.
    pub volatile: bool,
}

impl Deps {
    /// Notes that a path is read.
    pub fn add_path(&mut self, path: &Path) {
        if !self.paths.contains(path.as_str()) {
            self.paths.insert(path.as_str().to_owned());
        }
    }

    /// True when neither the document nor its metadata matter.
    pub fn is_independent_of_document(&self) -> bool {
        self.paths.is_empty() && !self.whole_document && self.metadata.is_empty()
    }
}

impl Expr {
    /// Adds what this expression reads.
    pub fn dependencies(&self, deps: &mut Deps) {
        match &self.0 {
            Node::Variable(Var::Root) => deps.whole_document = true,
            Node::Path(Var::Root, path) => deps.add_path(path.path()),
            Node::Variable(Var::Global(slot)) | Node::Path(Var::Global(slot), _) => {
                deps.variables.insert(*slot);
            }
            Node::Call { name, args, .. } => {
                match *name {
                    "$rand" | "$sampleRate" | "$createObjectId" | "$createUUID" | "$currentDate" => {
                        deps.volatile = true
                    }
                    "$meta" => {
                        if let Some(kind) = args.first().and_then(Expr::constant).and_then(|v| v.as_str()) {
                            deps.metadata.extend(super::families::meta::known(kind));
                        }
                    }
                    _ => {}
                }
                args.iter().for_each(|e| e.dependencies(deps));
            }
            Node::Operator(operator) => {
                deps.volatile |= operator.is_volatile();
                operator.visit(&mut |e| e.dependencies(deps));
            }
            _ => self.visit(&mut |e| e.dependencies(deps)),
        }
    }

    /// Shows each direct subexpression to `visit`.
    pub fn visit(&self, visit: &mut dyn FnMut(&Expr)) {
        match &self.0 {
            Node::Object(fields) => fields.iter().for_each(|(_, e)| visit(e)),
            Node::Array(items) => items.iter().for_each(visit),
            Node::Call { args, .. } => args.iter().for_each(visit),
            Node::Operator(operator) => operator.visit(visit),
            Node::Constant(_) | Node::Absent | Node::Failing(_) | Node::Variable(_) | Node::Path(..) => {}
        }
    }
}
