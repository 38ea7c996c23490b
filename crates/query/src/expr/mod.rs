//! Aggregation expressions: parsed once into a tree, evaluated on each document.
//!
//! ```text
//! value ──parse──► Expr (names resolved, operators looked up, constants folded) ──eval(Env)──► Val
//! ```
//!
//! Most operators are plain functions over their argument expressions ([`EvalFn`]); an operator with
//! state made at parse (a regular expression, a sort order, a bound variable) is an [`Operator`]. Each
//! family has a file with its functions and a table of `OpDef`s; [`parse`] joins the tables.
//! Source: manual, "Expression Operators".

pub(crate) mod args;
mod bindings;
mod deps;
mod families;
mod parse;
mod path;
mod substitute;

pub use bindings::bind_variables;
pub use deps::Deps;
pub(crate) use families::arithmetic::DIVIDE_BY_ZERO;
pub use families::compare::Comparison;
pub use families::date::Unit;
pub use families::hashing::hashed_index_key;
pub(crate) use families::percentile::PercentileOptions;
pub(crate) use families::script;
pub use families::text::double_six;

use crate::env::{Env, OpContext, Scope, Val, Var};
use crate::field_names::validate_path;
use nestor_model::statement::{effort, step};
use nestor_model::value::EMPTY_DOC;
use nestor_model::{Array, Document, Error, Path, Result, Str, Value, ValueRef, bail, raw};
use path::FieldPath;
use std::fmt;
use std::sync::{Arc, LazyLock};

/// Evaluates an operator on its argument expressions. An argument that was not given is
/// [`Expr::is_absent`] and evaluates to missing.
pub(crate) type EvalFn = for<'a> fn(&'a [Expr], &mut Env<'a>) -> Result<Val<'a>>;

/// An operator with state of its own.
pub(crate) trait Operator: Send + Sync {
    /// The value for one document.
    fn eval<'a>(&'a self, env: &mut Env<'a>) -> Result<Val<'a>>;
    /// Shows each argument expression to `visit`.
    fn visit(&self, visit: &mut dyn FnMut(&Expr));
    /// `$name`, for printing.
    fn name(&self) -> &'static str;
    /// It may give another value each time.
    fn is_volatile(&self) -> bool {
        false
    }
}

/// A compiled expression.
#[derive(Clone)]
pub struct Expr(Node);

#[derive(Clone)]
enum Node {
    Constant(Value),
    Absent,
    Variable(Var),
    Path(Var, FieldPath),
    Object(Box<[(Str, Expr)]>),
    Array(Box<[Expr]>),
    Call {
        name: &'static str,
        eval: EvalFn,
        args: Box<[Expr]>,
    },
    Operator(Arc<dyn Operator>),
    /// A constant subexpression whose evaluation failed. The error is raised once all is parsed, since MongoDB folds
    /// constants after parsing; in an update by pipeline when it is evaluated.
    Failing(Box<Error>),
}

/// Refuses a value that is nested deeper than any document may be, before it gets so deep that nothing which walks down it has
/// the stack for it.
///
/// Errors: 15.
pub fn check_depth(value: &Value) -> Result<()> {
    match value.is_deeper_than(raw::DEPTH_MAX + 1) {
        true => too_deep(),
        false => Ok(()),
    }
}

/// As [`check_depth`], for a document.
pub fn check_document_depth(doc: &Document) -> Result<()> {
    match doc.is_deeper_than(raw::DEPTH_MAX + 1) {
        true => too_deep(),
        false => Ok(()),
    }
}

fn too_deep() -> Result<()> {
    bail!(Overflow, "exceeded maximum nested object depth: {}", raw::DEPTH_MAX)
}

/// The context in which constants are folded.
static FOLDING: LazyLock<OpContext> = LazyLock::new(OpContext::default);

impl Expr {
    /// Evaluates to an owned value.
    pub fn eval<'a>(&'a self, env: &mut Env<'a>) -> Result<Value> {
        self.eval_ref(env).map(Val::into_value)
    }

    /// Evaluates, borrowing from the document where the result lies in it.
    pub fn eval_ref<'a>(&'a self, env: &mut Env<'a>) -> Result<Val<'a>> {
        match &self.0 {
            Node::Constant(value) => Ok(Val::Ref(value.as_ref())),
            Node::Path(Var::Root, path) => Ok(path.read(env.root)),
            Node::Call { eval, args, .. } => {
                effort::made();
                // The memory of the operator's result takes the place of that of its arguments.
                let mark = step()?;
                let value = eval(args, env)?;
                mark.settle(value.weight())?;
                Ok(value)
            }
            Node::Operator(operator) => {
                effort::made();
                let mark = step()?;
                let value = operator.eval(env)?;
                mark.settle(value.weight())?;
                Ok(value)
            }
            Node::Variable(var) => Ok(read_variable(*var, env)),
            Node::Path(var, path) => {
                if let Var::Local(slot) = *var {
                    return Ok(path.read_val(env.local(slot)));
                }
                let value = read_variable(*var, env);
                Ok(path.read_val(&value))
            }
            Node::Object(fields) => {
                let mark = step()?;
                let mut doc = Document::with_capacity(fields.len());
                let mut held = 0;
                for (name, expr) in fields {
                    let value = expr.eval(env)?;
                    held += name.len() + value.weight();
                    mark.settle(held)?;
                    doc.push(name.clone(), value);
                }
                Ok(Val::Owned(Value::Document(doc)))
            }
            Node::Array(items) => {
                let mark = step()?;
                let mut held = 0;
                let mut out = Vec::with_capacity(items.len());
                for item in items {
                    let value = item.eval(env)?;
                    held += value.weight();
                    mark.settle(held)?;
                    out.push(if value.is_missing() { Value::Null } else { value });
                }
                Ok(Val::Owned(Value::Array(Array::new(out))))
            }
            Node::Absent => Ok(Val::MISSING),
            Node::Failing(error) => Err((**error).clone()),
        }
    }

    /// The truth of the value.
    pub fn eval_bool<'a>(&'a self, env: &mut Env<'a>) -> Result<bool> {
        Ok(self.eval_ref(env)?.truthy())
    }

    /// Evaluates without a document: for constants and for values given by `let`.
    pub fn eval_without_document(&self, op: &OpContext) -> Result<Value> {
        // The tree outlives the environment only within this call, which is all that is needed.
        self.eval(&mut Env::new(EMPTY_DOC, op))
    }

    /// An expression that always has this value.
    pub fn constant_of(value: impl Into<Value>) -> Self {
        Self(Node::Constant(value.into()))
    }

    /// The field `path` of the document, as `$path` reads it.
    pub fn field(path: &str) -> Result<Self> {
        validate_path(path)?;
        Ok(Self(Node::Path(Var::Root, FieldPath::new(path))))
    }

    /// The value when it does not depend on anything.
    pub fn constant(&self) -> Option<&Value> {
        match &self.0 {
            Node::Constant(value) => Some(value),
            _ => None,
        }
    }

    /// The path when this is a plain field path of the document.
    pub fn field_path(&self) -> Option<&Path> {
        match &self.0 {
            Node::Path(Var::Root, path) => Some(path.path()),
            _ => None,
        }
    }

    /// True for `$$ROOT` (and `$$CURRENT` where it is the same).
    pub fn is_root(&self) -> bool {
        matches!(self.0, Node::Variable(Var::Root))
    }

    /// The slot when this is a variable given from outside.
    pub fn global_variable(&self) -> Option<usize> {
        match self.0 {
            Node::Variable(Var::Global(slot)) => Some(slot),
            _ => None,
        }
    }

    /// Name (with `$`) and arguments when this is a call of an operator that is a plain function.
    pub fn call(&self) -> Option<(&'static str, &[Expr])> {
        match &self.0 {
            Node::Call { name, args, .. } => Some((name, args)),
            _ => None,
        }
    }

    /// The fields when this is an object expression with at least one field that is not constant.
    pub fn object_fields(&self) -> Option<&[(Str, Expr)]> {
        match &self.0 {
            Node::Object(fields) => Some(fields),
            _ => None,
        }
    }

    /// An optional argument that was not given.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self.0, Node::Absent)
    }

    pub(crate) const ABSENT: Expr = Expr(Node::Absent);
    /// The document.
    pub(crate) const ROOT: Expr = Expr(Node::Variable(Var::Root));

    pub(crate) fn operator(operator: impl Operator + 'static) -> Self {
        Self(Node::Operator(Arc::new(operator)))
    }

    /// A call; one of constants only is evaluated here, and its error is raised before a document is read.
    pub(crate) fn call_of(name: &'static str, eval: EvalFn, args: Box<[Expr]>) -> Result<Self> {
        let constant = args.iter().all(|a| matches!(a.0, Node::Constant(_) | Node::Absent));
        let call = Self(Node::Call { name, eval, args });
        Ok(if constant { call.folded() } else { call })
    }

    /// A call that is never folded: its value differs from call to call, or depends on more than its arguments.
    pub(crate) fn call_unfolded(name: &'static str, eval: EvalFn, args: Box<[Expr]>) -> Self {
        Self(Node::Call { name, eval, args })
    }

    /// As [`Expr::call_of`], for operators that compare values: strings by the scope's collator.
    pub(crate) fn call_in(scope: &Scope, name: &'static str, eval: EvalFn, args: Box<[Expr]>) -> Result<Self> {
        let constant = args.iter().all(|a| matches!(a.0, Node::Constant(_) | Node::Absent));
        let call = Self(Node::Call { name, eval, args });
        Ok(if constant { call.folded_in(scope) } else { call })
    }

    /// As [`Expr::folded`], for operators that compare values.
    pub(crate) fn folded_in(&self, scope: &Scope) -> Self {
        match scope.collator() {
            None => self.folded(),
            collator => self.folded_by(&OpContext::default().with_collator(collator.cloned())),
        }
    }

    /// Evaluates now; the result, or the error, takes the expression's place.
    pub(crate) fn folded(&self) -> Self {
        self.folded_by(&FOLDING)
    }

    fn folded_by(&self, op: &OpContext) -> Self {
        match self.eval_without_document(op) {
            Ok(value) => Self(Node::Constant(value)),
            Err(error) => Self(Node::Failing(Box::new(error))),
        }
    }

    /// The first error of folding within.
    pub(crate) fn failure(&self) -> Option<Error> {
        if let Node::Failing(error) = &self.0 {
            return Some((**error).clone());
        }
        let mut found = None;
        self.visit(&mut |e| {
            if found.is_none() {
                found = e.failure();
            }
        });
        found
    }

    /// Object expression; folded when all fields are constant.
    pub(crate) fn object_of(fields: Vec<(Str, Expr)>) -> Result<Self> {
        let constant = fields.iter().all(|(_, e)| e.constant().is_some());
        let object = Self(Node::Object(fields.into()));
        Ok(if constant { object.folded() } else { object })
    }

    /// Array expression; folded when all items are constant.
    pub(crate) fn array_of(items: Vec<Expr>) -> Result<Self> {
        let constant = items.iter().all(|e| e.constant().is_some());
        let array = Self(Node::Array(items.into()));
        Ok(if constant { array.folded() } else { array })
    }
}

fn read_variable<'a>(var: Var, env: &Env<'a>) -> Val<'a> {
    match var {
        Var::Root => Val::Ref(ValueRef::Document(env.root)),
        Var::Local(slot) => env.local(slot).clone(),
        Var::Global(slot) => env.op.vars.get(slot).map_or(Val::MISSING, |v| Val::Ref(v.as_ref())),
        Var::Now => Val::Ref(ValueRef::DateTime(env.op.now_ms)),
        Var::ClusterTime => Val::Ref(ValueRef::Timestamp(env.op.cluster_time)),
        Var::UserRoles => Val::Ref(env.op.user_roles()),
        Var::SearchMeta => env.op.search().map_or(Val::MISSING, |meta| Val::Ref(meta.as_ref())),
        Var::Missing => Val::MISSING,
    }
}

impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Node::Constant(value) => write!(f, "{value:?}"),
            Node::Absent => f.write_str("absent"),
            Node::Failing(error) => write!(f, "{error}"),
            Node::Variable(var) => write!(f, "$${var:?}"),
            Node::Path(Var::Root, path) => write!(f, "${}", path.path()),
            Node::Path(var, path) => write!(f, "$${var:?}.{}", path.path()),
            Node::Object(fields) => f.debug_map().entries(fields.iter().map(|(n, e)| (n, e))).finish(),
            Node::Array(items) => f.debug_list().entries(items.iter()).finish(),
            Node::Call { name, args, .. } => {
                f.write_str(name)?;
                f.debug_list().entries(args.iter()).finish()
            }
            Node::Operator(operator) => {
                let mut args = Vec::new();
                operator.visit(&mut |e| args.push(format!("{e:?}")));
                write!(f, "{}({})", operator.name(), args.join(", "))
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
