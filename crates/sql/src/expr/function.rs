//! What an expression calls: a function with its signature.

use super::Expr;
use crate::types::Type;
use nestor_model::{Result, Value};
use nestor_planner::relation::Env;

/// What a function does; the expressions are those of its arguments, whose types matter to few.
pub type Run = fn(&[Value], &Env<'_>, &[Expr]) -> Result<Value>;

/// The name of the function whose calls call routines. No statement can name it.
pub const ROUTINE: &str = "call of a routine";

/// A function.
#[derive(Debug)]
pub struct Function {
    /// Its name; of operators the sign.
    pub name: &'static str,
    /// Types of its arguments.
    pub args: Vec<Param>,
    /// The last of them may come more often, also never.
    pub variadic: bool,
    /// Its result.
    pub result: Param,
    /// Null if an argument is.
    pub strict: bool,
    /// It may be another value each time.
    pub volatile: bool,
    /// It asks the session that runs it for something, or has the statement do something, which only the statement's own thread can.
    pub of_session: bool,
    /// What it does.
    pub run: Run,
}

/// The type of an argument or result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Param {
    /// This one.
    Type(Type),
    /// Any.
    Any,
    /// Any, the same in all such places.
    Element,
    /// The array of that.
    Array,
    /// The range of that.
    Range,
    /// The multirange of that.
    Multirange,
}

impl Function {
    /// Whether its name is a sign.
    pub fn is_operator(&self) -> bool {
        !self.name.starts_with(|c: char| c.is_alphabetic() || c == '_')
    }
}
