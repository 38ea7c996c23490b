//! Calls of routines that are no queries: what runs them is whoever runs the statement.

use super::Function;
use crate::error::unsupported;
use crate::expr::function::ROUTINE;
use crate::expr::{Expr, Node};
use crate::types::composite::Composite;
use crate::types::{Type, integer};
use nestor_model::{Result, Value};
use nestor_planner::relation::{Effects, Env, TableFunction, Tuple};
use std::sync::{Arc, LazyLock};

fn effects<'e>(env: &Env<'e>) -> Result<&'e dyn Effects> {
    match env.effects {
        Some(effects) => Ok(effects),
        None => unsupported("a call of a function in PL/pgSQL in this place"),
    }
}

/// The number of the routine, and what it is given.
fn parted(args: &[Value]) -> (u32, &[Value]) {
    let number = args.get(1).and_then(integer).and_then(|n| u32::try_from(n).ok());
    (number.unwrap_or(0), args.get(2..).unwrap_or_default())
}

fn function(volatile: bool) -> Function {
    Function {
        name: ROUTINE,
        args: Vec::new(),
        variadic: true,
        result: super::Param::Any,
        strict: false,
        volatile,
        of_session: true,
        run: |args, env, _| {
            let (number, args) = parted(args);
            effects(env)?.call(number, args)
        },
    }
}

static VOLATILE: LazyLock<Function> = LazyLock::new(|| function(true));
static STABLE: LazyLock<Function> = LazyLock::new(|| function(false));

/// A call of a routine of this name and number, which gives a value of `ty`.
pub fn call((name, number): (&str, u32), is_volatile: bool, args: Vec<Expr>, ty: Type) -> Expr {
    let first = [
        Expr::constant(Value::String(name.into()), Type::Text),
        Expr::constant(Value::Int64(i64::from(number)), Type::Int8),
    ];
    Node::Call {
        function: if is_volatile { &VOLATILE } else { &STABLE },
        args: first.into_iter().chain(args).collect(),
        ty,
    }
    .into()
}

/// A routine as a function that gives rows.
#[derive(Debug)]
pub struct Rows {
    /// Its name.
    pub name: String,
    /// Its number.
    pub number: u32,
    /// What its value is of, if it is a row.
    pub row: Option<Arc<Composite>>,
}

impl TableFunction for Rows {
    fn name(&self) -> &str {
        &self.name
    }

    fn rows(&self, args: &[Value], env: &Env<'_>) -> Result<Box<dyn Iterator<Item = Result<Tuple>> + Send>> {
        let mut rows = effects(env)?.rows(self.number, args)?;
        if let Some(row) = &self.row {
            for own in &mut rows {
                if let [value] = own.as_slice() {
                    *own = row.values(value);
                }
            }
        }
        Ok(Box::new(rows.into_iter().map(Ok)))
    }
}
