//! `$function` and what `$where` and mapReduce become: expressions whose value a script computes.

use crate::env::{Env, OpContext, Scope, Val};
use crate::expr::args::Named;
use crate::expr::parse::OpDef;
use crate::expr::{Expr, Operator};
use nestor_model::{Array, Document, Error, Result, Value, ValueRef, doc};
use nestor_script::{Form, Function, Globals};
use std::sync::{Arc, OnceLock};

pub(crate) const OPERATORS: &[OpDef] = &[
    OpDef::custom("$function", parse),
    OpDef::custom("$_internalJsEmit", parse_emit),
];

/// How a call uses the function.
enum Use {
    /// Its value for these arguments.
    Call(Expr),
    /// Whether it holds for the document.
    Holds,
    /// The values it emits for the document: an array of documents `{k, v}`.
    Emit,
}

struct Call {
    function: Function,
    globals: Option<Arc<Globals>>,
    /// The functions that the database stores for `$where`, once they were looked up.
    stored: OnceLock<Option<Arc<Globals>>>,
    with: Use,
    root: Expr,
}

/// `{body, args, lang: "js"}`.
///
/// Errors: 9 (FailedToParse) for another field, one that is missing, or another language; 14 for a body that is neither text nor
/// code; 238 when scripts are not run.
fn parse(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    const FAILED: i32 = 9;
    scope.check_scripts(name)?;
    let named = Named {
        not_object: FAILED,
        unknown: FAILED,
        fields: &[("body", Some(FAILED)), ("args", Some(FAILED)), ("lang", Some(FAILED))],
    };
    let fields = named.split(name, value)?;
    check_language(name, fields[2])?;
    let function = function(name, "body", fields[0])?;
    let args = match fields[1] {
        args @ ValueRef::Array(_) => Expr::parse(args, scope)?,
        other => {
            let args = Expr::parse(other, scope)?;
            match args.constant() {
                Some(_) => return Err(Error::failed_to_parse(format!("{name} requires 'args' to be an array"))),
                None => args,
            }
        }
    };
    Ok(Expr::operator(Call {
        function,
        globals: scope.script_globals(),
        stored: OnceLock::new(),
        with: Use::Call(args),
        root: Expr::ROOT,
    }))
}

/// A map function, in the pipeline of a mapReduce: what it emits for the document.
///
/// Errors: 40324 anywhere else.
fn parse_emit(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    if !scope.is_map_reduce() {
        return Err(Error::location(
            40_324,
            format!("{name} is a part of mapReduce, and is not for use outside of it"),
        ));
    }
    Ok(Expr::operator(Call {
        function: function(name, "map", value)?,
        globals: scope.script_globals(),
        stored: OnceLock::new(),
        with: Use::Emit,
        root: Expr::ROOT,
    }))
}

/// Only JavaScript is run. Errors: 9 (FailedToParse).
pub(crate) fn check_language(name: &str, lang: ValueRef<'_>) -> Result<()> {
    match lang {
        ValueRef::String("js") => Ok(()),
        _ => Err(Error::failed_to_parse(format!(
            "the {name} 'lang' field must be \"js\", the only language that is run"
        ))),
    }
}

/// A function given as text or as code.
///
/// Errors: 14 for another type; 238 when scripts are not run.
pub(crate) fn function(name: &str, field: &str, value: ValueRef<'_>) -> Result<Function> {
    match value {
        ValueRef::String(source) | ValueRef::Code(source) => Function::new(source, Form::Function),
        other => Err(Error::type_mismatch(format!(
            "the '{field}' of {name} must be a string or code, found {}",
            other.bson_type().alias()
        ))),
    }
}

/// The test of `$where`, and how it is printed.
///
/// Errors: 2 for an operand that is neither text nor code (code with a scope is none since MongoDB 4.4); 323 outside of version 1 of the API; 238 when scripts are not run.
pub(crate) fn of_where(value: ValueRef<'_>, scope: &Scope) -> Result<(Expr, Value)> {
    scope.check_scripts("$where")?;
    let (ValueRef::String(source) | ValueRef::Code(source)) = value else {
        return Err(Error::bad_value("$where got bad type"));
    };
    let expr = Expr::operator(Call {
        function: Function::new(source, Form::Where)?,
        globals: scope.script_globals(),
        stored: OnceLock::new(),
        with: Use::Holds,
        root: Expr::ROOT,
    });
    let args = Array::new(vec![Value::from("$$CURRENT")]);
    let printed = doc! { "$function": doc! { "body": source, "args": Value::Array(args), "lang": "js" } };
    Ok((expr, printed.into()))
}

impl Call {
    /// The functions that the operation's database stores.
    fn stored(&self, op: &OpContext) -> Result<Option<&Arc<Globals>>> {
        if let Some(known) = self.stored.get() {
            return Ok(known.as_ref());
        }
        let values = match &op.library {
            Some((db, library)) => library.values(db)?,
            None => Document::new(),
        };
        let found = (!values.is_empty()).then(|| Globals::new(values, Document::new()));
        Ok(self.stored.get_or_init(|| found).as_ref())
    }
}

impl Operator for Call {
    fn eval<'a>(&'a self, env: &mut Env<'a>) -> Result<Val<'a>> {
        let globals = self.globals.as_ref();
        match &self.with {
            Use::Call(args) => {
                let args = args.eval_ref(env)?;
                let ValueRef::Array(args) = args.as_ref() else {
                    return Err(Error::failed_to_parse("$function requires 'args' to be an array"));
                };
                let args: Vec<ValueRef<'_>> = args.iter().collect();
                Ok(self.function.call(globals, ValueRef::Missing, &args)?.into())
            }
            Use::Holds => {
                let globals = globals.or(self.stored(env.op)?);
                Ok(self.function.holds(globals, ValueRef::Document(env.root))?.into())
            }
            Use::Emit => {
                let emitted = self.function.emitted(globals, ValueRef::Document(env.root))?;
                let pairs = emitted.into_iter().map(|(k, v)| Value::from(doc! { "k": k, "v": v }));
                Ok(Value::Array(Array::new(pairs.collect())).into())
            }
        }
    }

    fn visit(&self, visit: &mut dyn FnMut(&Expr)) {
        match &self.with {
            Use::Call(args) => visit(args),
            Use::Holds | Use::Emit => visit(&self.root),
        }
    }

    fn name(&self) -> &'static str {
        "$function"
    }

    fn is_volatile(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::expr::testing::check;

    #[test]
    fn functions_see_their_arguments() {
        check(
            r#"{"a": 2, "b": [1, 2]}"#,
            &[
                (
                    r#"{"$function": {"body": "function(a, b) { return a + b.length }", "args": ["$a", "$b"], "lang": "js"}}"#,
                    "4.0",
                ),
                (
                    r#"{"$function": {"body": "return arguments.length", "args": "$b", "lang": "js"}}"#,
                    "2.0",
                ),
                (
                    r#"{"$function": {"body": "function() { return no }", "args": [], "lang": "js"}}"#,
                    "error 139",
                ),
                (
                    r#"{"$function": {"body": "x => x", "args": "$a", "lang": "js"}}"#,
                    "error 9",
                ),
                (
                    r#"{"$function": {"body": "x => x", "args": [], "lang": "py"}}"#,
                    "error 9",
                ),
                (r#"{"$function": {"body": "x => x", "lang": "js"}}"#, "error 9"),
                (r#"{"$function": {"body": 1, "args": [], "lang": "js"}}"#, "error 14"),
                (r#"{"$function": "x => x"}"#, "error 9"),
                (r#"{"$_internalJsEmit": {}}"#, "error 40324"),
            ],
        );
    }
}
