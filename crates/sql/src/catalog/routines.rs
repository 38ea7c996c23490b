//! Functions and procedures that somebody has made.

use super::schemas;
use crate::error::{Field, error, with};
use crate::parse::procedural::Block;
use crate::parse::trigger::quoted;
use crate::types::Type;
use crate::types::cast::{self, Context};
use crate::types::composite::Composite;
use crate::types::names::{ident, spelled};
use nestor_model::Error;
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
    /// A row of its OUT parameters.
    Row(Vec<(String, Type)>),
    /// A row whose columns the call says, or rows of them with `true`.
    Record(bool),
    /// What a trigger does with its row.
    Trigger,
}

/// What a parameter is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It is given.
    In,
    /// It is what the routine gives.
    Out,
    /// Both.
    InOut,
    /// All that are given behind the others, as an array.
    Variadic,
    /// A column of the rows that the routine gives.
    Table,
}

impl Mode {
    /// As `pg_proc` has it.
    pub fn letter(self) -> &'static str {
        match self {
            Self::In => "i",
            Self::Out => "o",
            Self::InOut => "b",
            Self::Variadic => "v",
            Self::Table => "t",
        }
    }

    /// Whether whoever calls gives it.
    pub fn is_given(self) -> bool {
        matches!(self, Self::In | Self::InOut | Self::Variadic)
    }

    /// Whether it is a part of what the routine gives.
    pub fn is_result(self) -> bool {
        matches!(self, Self::Out | Self::InOut | Self::Table)
    }
}

/// A parameter as it is declared.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// What it is for.
    pub mode: Mode,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Its type.
    pub ty: Type,
    /// What it is where nobody says it.
    pub default: Option<Expr>,
}

/// What a routine does.
#[derive(Clone, Debug)]
pub enum Body {
    /// A query, which names its arguments by the name of the function and their own. It is put into the statement that calls it.
    Query(Arc<Query>),
    /// Statements, one after the other, of which the last one may give what the function gives.
    Statements(Arc<Vec<String>>),
    /// A block of PL/pgSQL.
    Block(Arc<Block>),
}

/// A function.
#[derive(Clone, Debug)]
pub struct Routine {
    /// Its number in `pg_proc`.
    pub oid: u32,
    /// The schema, if it is not `public`.
    pub schema: Option<String>,
    /// Its name.
    pub name: String,
    /// It is called by CALL.
    pub is_procedure: bool,
    /// The parameters that are given, in their order.
    pub args: Vec<Argument>,
    /// All of them, and the columns of TABLE.
    pub parameters: Vec<Parameter>,
    /// What it gives.
    pub returns: Returns,
    /// It is null where an argument is.
    pub is_strict: bool,
    /// `i`, `s` or `v`, as `pg_proc` has it.
    pub volatility: &'static str,
    /// `u`, `r` or `s`, as `pg_proc` has it.
    pub parallel: &'static str,
    /// What it does.
    pub body: Body,
    /// The body as it is written; nothing where it is RETURN and an expression.
    pub source: String,
    /// RETURN and an expression, if it is that.
    pub returned: Option<String>,
    /// Settings that hold while it runs, by their names in lower case.
    pub config: Vec<(String, String)>,
    /// What types that stand for any do in a call: those that are alike, and those that have one in common.
    pub settled: Option<[Option<Type>; 2]>,
}

/// The type of the rows of a table.
pub fn rows_type(name: &ObjectName) -> Type {
    let parts = name.0.iter().filter_map(|part| part.as_ident());
    let parts: Vec<String> = parts.map(ident).collect();
    Type::Composite(Arc::new(Composite::of_table(&parts.join("."))))
}

impl Routine {
    /// Whether types of its arguments stand for whichever type is given.
    pub fn is_polymorphic(&self) -> bool {
        self.args.iter().any(|own| matches!(own.ty, Type::Any(_)))
    }

    /// Whether an argument or what it gives is of a type, or of one that is made of it.
    pub fn uses(&self, oid: u32) -> bool {
        let returned = match &self.returns {
            Returns::One(ty) => ty.is_of(oid),
            Returns::Rows(columns) => columns.iter().any(|(_, ty)| ty.is_of(oid)),
            _ => false,
        };
        returned || self.parameters.iter().any(|own| own.ty.is_of(oid))
    }

    /// Its name with the types of its arguments, as errors show it.
    pub fn shown(&self) -> String {
        let types: Vec<String> = self.args.iter().map(|arg| arg.ty.to_string()).collect();
        format!("{}({})", self.name, types.join(", "))
    }

    /// The end of the name of its entry: functions of the same name differ in the types of their arguments.
    pub fn key(&self) -> String {
        let types = self.args.iter().map(|arg| match &arg.ty {
            Type::Composite(own) if own.table().is_some() => own.name.replace('.', "-"),
            ty => ty.oid().to_string(),
        });
        let types = types.collect::<Vec<_>>().join("_");
        format!("{}.{types}", self.name)
    }

    /// Whether the last argument is an array of all that are given behind the others.
    pub fn is_variadic(&self) -> bool {
        self.parameters.iter().any(|own| own.mode == Mode::Variadic)
    }

    /// Whether it is a query that is put into the statement that calls it.
    pub fn query(&self) -> Option<&Arc<Query>> {
        match &self.body {
            Body::Query(query) if self.config.is_empty() => Some(query),
            _ => None,
        }
    }

    /// `plpgsql` or `sql`.
    pub fn language(&self) -> &'static str {
        match self.body {
            Body::Block(_) => "plpgsql",
            _ => "sql",
        }
    }

    /// Whether it may change something, or tell something else each time.
    pub fn is_volatile(&self) -> bool {
        self.volatility == "v"
    }

    /// The names and types of what its OUT parameters and the columns of TABLE give.
    pub fn outs(&self) -> Vec<(String, Type)> {
        let all = self.parameters.iter().filter(|own| own.mode.is_result());
        let named = (1..).zip(all).map(|(number, own)| {
            let name = own.name.clone().unwrap_or_else(|| format!("column{number}"));
            (name, own.ty.clone())
        });
        named.collect()
    }

    /// `FUNCTION` or `PROCEDURE`.
    pub fn kind(&self) -> &'static str {
        match self.is_procedure {
            true => "PROCEDURE",
            false => "FUNCTION",
        }
    }

    /// Its arguments as they are declared, with types by what `shown` names them.
    pub fn arguments(&self, has_defaults: bool, shown: &dyn Fn(&Type) -> String) -> String {
        let declared = self.parameters.iter().filter(|own| own.mode != Mode::Table);
        let each = declared.map(|own| {
            let mode = match own.mode {
                Mode::In if self.is_procedure => "IN ",
                Mode::Out => "OUT ",
                Mode::InOut => "INOUT ",
                Mode::Variadic => "VARIADIC ",
                _ => "",
            };
            let name = own
                .name
                .as_ref()
                .map_or_else(String::new, |name| format!("{} ", quoted(name)));
            let default = own.default.as_ref().filter(|_| has_defaults);
            let default = default.map_or_else(String::new, |default| format!(" DEFAULT {default}"));
            format!("{mode}{name}{}{default}", shown(&own.ty))
        });
        each.collect::<Vec<_>>().join(", ")
    }

    /// Why what its last statement gives, which is of these types, is not what it is declared to return.
    pub fn mismatch(&self, given: &[Type], wanted: &[Type]) -> Error {
        let detail = match (given, wanted) {
            ([], _) => "Function's final statement must be SELECT or INSERT/UPDATE/DELETE RETURNING.".to_owned(),
            ([given], [_]) => format!("Actual return type is {given}."),
            (_, [_]) => "Final statement must return exactly one column.".to_owned(),
            (given, wanted) if given.len() > wanted.len() => "Final statement returns too many columns.".to_owned(),
            (given, wanted) if given.len() < wanted.len() => "Final statement returns too few columns.".to_owned(),
            (given, wanted) => {
                let mut both = (1..).zip(given.iter().zip(wanted));
                let other = both.find(|(_, (given, wanted))| !cast::exists(given, wanted, Context::Assignment));
                other.map_or_else(String::new, |(number, (given, wanted))| {
                    format!("Final statement returns {given} instead of {wanted} at column {number}.")
                })
            }
        };
        let declared = self.result(&Type::to_string);
        let declared = match declared.strip_prefix("SETOF ").unwrap_or(&declared) {
            table if table.starts_with("TABLE(") => "record",
            ty => ty,
        };
        let message = format!("return type mismatch in function declared to return {declared}");
        let context = format!("SQL function \"{}\"", self.name);
        with(
            error("42P13", message),
            &[(Field::Detail, &detail), (Field::Context, &context)],
        )
    }

    /// What it returns, as it is declared, with types by what `shown` names them.
    pub fn result(&self, shown: &dyn Fn(&Type) -> String) -> String {
        match &self.returns {
            Returns::One(ty) => shown(ty),
            Returns::Nothing => "void".to_owned(),
            Returns::RowsOf(name) => format!("SETOF {}", shown(&rows_type(name))),
            Returns::Row(_) | Returns::Record(false) => "record".to_owned(),
            Returns::Record(true) => "SETOF record".to_owned(),
            Returns::Trigger => "trigger".to_owned(),
            Returns::Rows(columns) => match columns.as_slice() {
                [(None, ty)] => format!("SETOF {}", shown(ty)),
                _ if self.parameters.iter().any(|own| own.mode == Mode::Out) => "SETOF record".to_owned(),
                columns => {
                    let each = columns
                        .iter()
                        .map(|(name, ty)| format!("{} {}", quoted(name.as_deref().unwrap_or_default()), shown(ty)));
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
        let parallel = match self.parallel {
            "s" => " PARALLEL SAFE",
            "r" => " PARALLEL RESTRICTED",
            _ => "",
        };
        let words = match volatility.len() + strict.len() + parallel.len() {
            0 => String::new(),
            _ => format!("\n{volatility}{parallel}{strict}"),
        };
        let config = self.config.iter().map(|(name, value)| {
            let values = match schemas::listed(value).filter(|_| name == "search_path") {
                Some(names) => names,
                None => vec![value.clone()],
            };
            let shown: Vec<String> = values.iter().map(|own| crate::functions::quote_literal(own)).collect();
            let name = quoted(spelled(name));
            format!("\n SET {name} TO {}", shown.join(", "))
        });
        let config: String = config.collect();
        let body = match &self.returned {
            Some(returned) => returned.clone(),
            None => {
                let mut tag = format!("${}$", self.kind().to_lowercase());
                while self.source.contains(&tag) {
                    tag.insert(1, 'x');
                }
                format!("AS {tag}{}{tag}", self.source)
            }
        };
        let returns = match self.is_procedure {
            true => String::new(),
            false => format!("\n RETURNS {}", self.result(&Type::to_string)),
        };
        format!(
            "CREATE OR REPLACE {} {}.{}({}){returns}\n LANGUAGE {}{words}{config}\n{body}\n",
            self.kind(),
            quoted(self.schema.as_deref().unwrap_or("public")),
            quoted(&self.name),
            self.arguments(true, &Type::to_string),
            self.language(),
        )
    }
}
