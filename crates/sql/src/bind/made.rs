//! From CREATE FUNCTION to the function that it makes.

use super::types::data_type;
use super::write::{is_writing, modifying};
use super::{ident, object_name};
use crate::catalog::routines::{Argument, Returns, Routine};
use crate::catalog::schemas::PUBLIC;
use crate::error::{fail, unsupported};
use crate::parse;
use crate::types::Type;
use nestor_model::Result;
use sqlparser::ast::{
    ArgMode, CreateFunction, CreateFunctionBody, DataType, Expr, FunctionBehavior, FunctionCalledOnNull,
    FunctionReturnType, ObjectName, OperateFunctionArg, Statement, Value as Literal,
};
use std::sync::Arc;

/// Arguments of a function at most, as in PostgreSQL.
const ARGUMENTS_MAX: usize = 100;
/// Bytes of a body.
const BODY_BYTES_MAX: usize = 64 << 10;

/// Types of arguments and the result.
///
/// Errors: those of types; 0A000 for ones that say what any argument is.
fn known(ty: &DataType) -> Result<Type> {
    let (ty, _) = data_type(ty)?;
    Ok(ty)
}

fn argument(arg: &OperateFunctionArg) -> Result<Argument> {
    match arg.mode {
        None | Some(ArgMode::In) => Ok(Argument {
            name: arg.name.as_ref().map(ident),
            ty: known(&arg.data_type)?,
            default: arg.default_expr.clone(),
        }),
        Some(_) => unsupported("a function with arguments that are OUT, INOUT or VARIADIC"),
    }
}

/// The function that a statement makes.
///
/// Errors: 42P13, 42601, those of its types; 0A000.
pub fn routine(create: &CreateFunction, oid: u32) -> Result<Routine> {
    let language = create.language.as_ref().map(|language| language.value.to_lowercase());
    match language.as_deref() {
        Some("sql") => {}
        None if matches!(create.function_body, Some(CreateFunctionBody::Return(_))) => {}
        None => return fail("42P13", "no language specified"),
        Some("plpgsql") => return unsupported("a function in PL/pgSQL"),
        Some(other) => return fail("42704", format!("language \"{other}\" does not exist")),
    }
    if create.temporary || !create.set_params.is_empty() || create.or_alter || create.if_not_exists {
        return unsupported("a clause of this CREATE FUNCTION");
    }
    if matches!(create.security, Some(sqlparser::ast::FunctionSecurity::Definer)) {
        return unsupported("SECURITY DEFINER");
    }
    let name = last(&create.name)?;
    let args = create.args.iter().flatten().map(argument).collect::<Result<Vec<_>>>()?;
    if args.len() > ARGUMENTS_MAX {
        return fail(
            "54023",
            format!("functions cannot have more than {ARGUMENTS_MAX} arguments"),
        );
    }
    for (at, arg) in args.iter().enumerate() {
        if arg.name.is_some() && args[..at].iter().any(|other| other.name == arg.name) {
            let name = arg.name.as_deref().unwrap_or_default();
            return fail("42P13", format!("parameter name \"{name}\" used more than once"));
        }
        if arg.default.is_none() && args[..at].iter().any(|other| other.default.is_some()) {
            return fail(
                "42P13",
                "input parameters after one with a default value must also have defaults",
            );
        }
    }
    let returns = returns(create.return_type.as_ref())?;
    let (source, text) = match &create.function_body {
        Some(CreateFunctionBody::Return(expr)) => (String::new(), format!("SELECT {expr}")),
        Some(CreateFunctionBody::AsBeforeOptions {
            body,
            link_symbol: None,
        }) => match body {
            Expr::Value(value) => match &value.value {
                Literal::DollarQuotedString(text) => (text.value.clone(), text.value.clone()),
                Literal::SingleQuotedString(text) | Literal::EscapedStringLiteral(text) => (text.clone(), text.clone()),
                _ => return fail("42P13", "no function body specified"),
            },
            _ => return fail("42P13", "no function body specified"),
        },
        None => return fail("42P13", "no function body specified"),
        _ => return unsupported("a function with a body of this form"),
    };
    if text.len() > BODY_BYTES_MAX {
        return fail("54000", "the body of a function is too long");
    }
    let plain = name.clone();
    let text = parse::with_placeholders(&text, &|number| {
        let arg = args.get(number.checked_sub(1)?)?;
        Some((plain.clone(), arg.name.clone().unwrap_or_else(|| format!("${number}"))))
    })?;
    let mut statements = parse::parse(&text)?;
    let query = match (statements.pop(), statements.is_empty()) {
        (Some(Statement::Query(query)), true)
            if !is_writing(&query)
                && query.locks.is_empty()
                && modifying(&Statement::Query(query.clone())).is_none() =>
        {
            query
        }
        _ => return unsupported("a function whose body is not one query that only reads"),
    };
    Ok(Routine {
        oid,
        name,
        args,
        returns,
        is_strict: matches!(
            create.called_on_null,
            Some(FunctionCalledOnNull::Strict | FunctionCalledOnNull::ReturnsNullOnNullInput)
        ),
        volatility: match create.behavior {
            Some(FunctionBehavior::Immutable) => "i",
            Some(FunctionBehavior::Stable) => "s",
            _ => "v",
        },
        query: Arc::from(query),
        source,
        returned: match &create.function_body {
            Some(CreateFunctionBody::Return(expr)) => Some(format!("RETURN {expr}")),
            _ => None,
        },
    })
}

fn returns(declared: Option<&FunctionReturnType>) -> Result<Returns> {
    match declared {
        None => fail("42P13", "function result type must be specified"),
        Some(FunctionReturnType::DataType(DataType::Table(Some(columns)))) => {
            let each = columns
                .iter()
                .map(|column| Ok((Some(ident(&column.name)), known(&column.data_type)?)));
            Ok(Returns::Rows(each.collect::<Result<_>>()?))
        }
        Some(FunctionReturnType::DataType(ty)) => match known(ty)? {
            Type::Void => Ok(Returns::Nothing),
            Type::Record => unsupported("a function that returns a record"),
            ty => Ok(Returns::One(ty)),
        },
        Some(FunctionReturnType::SetOf(ty)) => match (known(ty), ty) {
            (Ok(Type::Record | Type::Void), _) => unsupported("a function that returns records"),
            (Ok(ty), _) => Ok(Returns::Rows(vec![(None, ty)])),
            (Err(_), DataType::Custom(name, modifiers)) if modifiers.is_empty() => Ok(Returns::RowsOf(name.clone())),
            (Err(error), _) => Err(error),
        },
    }
}

/// The types that a function is declared to return.
pub fn returned(declared: &mut Option<FunctionReturnType>) -> Vec<&mut DataType> {
    match declared {
        None => Vec::new(),
        Some(FunctionReturnType::DataType(DataType::Table(Some(columns)))) => {
            columns.iter_mut().map(|column| &mut column.data_type).collect()
        }
        Some(FunctionReturnType::DataType(ty) | FunctionReturnType::SetOf(ty)) => vec![ty],
    }
}

/// The name of a function, which stands in the schema `public`.
///
/// Errors: 0A000 for other schemas and for names that entries cannot have.
pub fn last(name: &ObjectName) -> Result<String> {
    let (schema, name) = object_name(name)?;
    match schema.as_deref() {
        None | Some(PUBLIC) => {}
        Some(_) => return unsupported("a function in a schema other than public"),
    }
    match name.is_empty() || name.len() > 63 || name.contains(['.', '$', '\0']) {
        true => unsupported("a function of this name"),
        false => Ok(name),
    }
}
