//! Functions that somebody has made: CREATE FUNCTION … LANGUAGE sql.

use crate::types::Type;
use sqlparser::ast::{Expr, ObjectName, Query};
use std::sync::Arc;

/// An argument.
#[derive(Clone, Debug)]
pub struct Argument {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Its type.
    pub ty: Type,
    /// What it is where nobody says it.
    pub default: Option<Expr>,
}

/// What a function gives.
#[derive(Clone, Debug)]
pub enum Returns {
    /// A value.
    One(Type),
    /// Nothing.
    Nothing,
    /// Rows of one column, or of those that have names.
    Rows(Vec<(Option<String>, Type)>),
    /// Rows of a table.
    RowsOf(ObjectName),
}

/// A function.
#[derive(Clone, Debug)]
pub struct Routine {
    /// Its number in `pg_proc`.
    pub oid: u32,
    /// Its name.
    pub name: String,
    /// Its arguments.
    pub args: Vec<Argument>,
    /// What it gives.
    pub returns: Returns,
    /// It is null where an argument is.
    pub is_strict: bool,
    /// `i`, `s` or `v`, as `pg_proc` has it.
    pub volatility: &'static str,
    /// The query that it is, which names its arguments by the name of the function and their own.
    pub query: Arc<Query>,
    /// The body as it is written; nothing where it is RETURN and an expression.
    pub source: String,
    /// RETURN and an expression, if it is that.
    pub returned: Option<String>,
}

impl Routine {
    /// Whether an argument or what it gives is of a type, or of one that is made of it.
    pub fn uses(&self, oid: u32) -> bool {
        let returned = match &self.returns {
            Returns::One(ty) => ty.is_of(oid),
            Returns::Rows(columns) => columns.iter().any(|(_, ty)| ty.is_of(oid)),
            Returns::Nothing | Returns::RowsOf(_) => false,
        };
        returned || self.args.iter().any(|arg| arg.ty.is_of(oid))
    }

    /// Its name with the types of its arguments, as errors show it.
    pub fn shown(&self) -> String {
        let types: Vec<String> = self.args.iter().map(|arg| arg.ty.to_string()).collect();
        format!("{}({})", self.name, types.join(", "))
    }

    /// The end of the name of its entry: functions of the same name differ in the types of their arguments.
    pub fn key(&self) -> String {
        let types: Vec<String> = self.args.iter().map(|arg| arg.ty.oid().to_string()).collect();
        format!("{}.{}", self.name, types.join("_"))
    }

    /// Its arguments as they are declared, with types by what `shown` names them.
    pub fn arguments(&self, has_defaults: bool, shown: &dyn Fn(&Type) -> String) -> String {
        let each = self.args.iter().map(|arg| {
            let name = arg.name.as_ref().map_or_else(String::new, |name| format!("{name} "));
            let default = arg.default.as_ref().filter(|_| has_defaults);
            let default = default.map_or_else(String::new, |default| format!(" DEFAULT {default}"));
            format!("{name}{}{default}", shown(&arg.ty))
        });
        each.collect::<Vec<_>>().join(", ")
    }

    /// What it returns, as it is declared, with types by what `shown` names them.
    pub fn result(&self, shown: &dyn Fn(&Type) -> String) -> String {
        match &self.returns {
            Returns::One(ty) => shown(ty),
            Returns::Nothing => "void".to_owned(),
            Returns::RowsOf(name) => format!("SETOF {name}"),
            Returns::Rows(columns) => match columns.as_slice() {
                [(None, ty)] => format!("SETOF {}", shown(ty)),
                columns => {
                    let each = columns
                        .iter()
                        .map(|(name, ty)| format!("{} {}", name.as_deref().unwrap_or_default(), shown(ty)));
                    format!("TABLE({})", each.collect::<Vec<_>>().join(", "))
                }
            },
        }
    }

    /// The statement that makes it.
    pub fn definition(&self) -> String {
        let volatility = match self.volatility {
            "i" => " IMMUTABLE",
            "s" => " STABLE",
            _ => "",
        };
        let strict = if self.is_strict { " STRICT" } else { "" };
        let words = match volatility.len() + strict.len() {
            0 => String::new(),
            _ => format!("\n{volatility}{strict}"),
        };
        let body = match &self.returned {
            Some(returned) => returned.clone(),
            None => {
                let mut tag = "$function$".to_owned();
                while self.source.contains(&tag) {
                    tag.insert(1, 'x');
                }
                format!("AS {tag}{}{tag}", self.source)
            }
        };
        format!(
            "CREATE OR REPLACE FUNCTION public.{}({})\n RETURNS {}\n LANGUAGE sql{words}\n{body}\n",
            self.name,
            self.arguments(true, &Type::to_string),
            self.result(&Type::to_string)
        )
    }
}
