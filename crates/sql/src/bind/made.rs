//! From CREATE FUNCTION to the function that it makes.

use super::types::data_type;
use super::write::{is_writing, modifying};
use super::{ident, object_name};
use crate::catalog::routines::{Argument, Body, Mode, Parameter, Returns, Routine};
use crate::catalog::{Catalog, Table};
use crate::error::{fail, state, unsupported};
use crate::parse;
use crate::parse::assigned;
use crate::parse::triggers::PROCEDURE;
use crate::types::Type;
use crate::types::any::{Any, Shape};
use crate::types::composite::{Attribute, Composite};
use nestor_model::Result;
use sqlparser::ast::{
    ArgMode, ArrayElemTypeDef, CreateFunction, CreateFunctionBody, DataType, Expr, FunctionBehavior,
    FunctionCalledOnNull, FunctionParallel, FunctionReturnType, ObjectName, OperateFunctionArg, Statement,
    Value as Literal,
};
use std::sync::Arc;

/// Arguments of a function at most, as in PostgreSQL.
const ARGUMENTS_MAX: usize = 100;
/// Bytes of a body.
const BODY_BYTES_MAX: usize = 64 << 10;

/// Types of arguments and the result. A name that is none of a type is one of a table, whose rows are meant.
///
/// Errors: those of types; 0A000 for ones that say what any argument is.
pub fn known(ty: &DataType) -> Result<Type> {
    let error = match data_type(ty) {
        Ok((ty, _)) => return Ok(ty),
        Err(error) if state(&error) != "42704" => return Err(error),
        Err(error) => error,
    };
    match ty {
        DataType::Array(ArrayElemTypeDef::SquareBracket(of, _)) => match known(of)? {
            ty @ Type::Composite(_) => Ok(ty.array()),
            _ => Err(error),
        },
        DataType::Custom(name, modifiers) if modifiers.is_empty() => {
            let (schema, name) = object_name(name)?;
            if let (None, Some(any)) = (&schema, Any::of_name(&name)) {
                return Ok(Type::Any(any));
            }
            if schema.is_none() && (name == "any" || name == "internal" || name == "event_trigger") {
                return unsupported(format!("a function with the type {name}"));
            }
            let whole = schema.map_or(name.clone(), |schema| format!("{schema}.{name}"));
            Ok(Type::Composite(Arc::new(Composite::of_table(&whole))))
        }
        _ => Err(error),
    }
}

/// Refuses tables that there are not, where names of types are none.
///
/// Errors: 42704.
pub fn check_tables(catalog: &dyn Catalog, routine: &Routine) -> Result<()> {
    resolved(catalog, routine).map(drop)
}

/// The type of the rows of a table.
///
/// Errors: 42704 when there is none.
pub fn row_type(catalog: &dyn Catalog, name: &str) -> Result<Type> {
    let (schema, plain) = match name.split_once('.') {
        Some((schema, plain)) => (Some(schema), plain),
        None => (None, name),
    };
    match catalog.table(schema, plain)? {
        Some(table) => Ok(rows(&table)),
        None => fail("42704", format!("type \"{name}\" does not exist")),
    }
}

/// The type of a table's rows.
pub fn rows(table: &Table) -> Type {
    let attributes = table.columns.iter().map(|column| Attribute {
        name: column.name.clone(),
        ty: column.declared_type().clone(),
        modifier: column.modifier,
    });
    Type::Composite(Arc::new(Composite::of_row_type(attributes.collect())))
}

/// A type whose columns are known.
fn whole(catalog: &dyn Catalog, ty: &Type) -> Result<Type> {
    let table = |own: &Composite| own.table().map(|table| row_type(catalog, table));
    match ty {
        Type::Composite(own) => table(own).unwrap_or_else(|| Ok(ty.clone())),
        Type::Array(of) => match &**of {
            Type::Composite(own) => table(own).map_or_else(|| Ok(ty.clone()), |of| of.map(Type::array)),
            _ => Ok(ty.clone()),
        },
        ty => Ok(ty.clone()),
    }
}

/// A routine whose types of tables' rows have their columns; `None` where it has no such types.
///
/// Errors: 42704 for a table that is gone.
pub fn resolved(catalog: &dyn Catalog, routine: &Routine) -> Result<Option<Arc<Routine>>> {
    let open = |ty: &Type| match ty.element().unwrap_or(ty) {
        Type::Composite(own) => own.table().is_some(),
        _ => false,
    };
    let is_open = routine.parameters.iter().any(|own| open(&own.ty))
        || match &routine.returns {
            Returns::One(ty) => open(ty),
            Returns::Rows(columns) => columns.iter().any(|(_, ty)| open(ty)),
            Returns::RowsOf(_) => routine.query().is_none(),
            _ => false,
        };
    if !is_open {
        return Ok(None);
    }
    let mut out = routine.clone();
    for arg in &mut out.args {
        arg.ty = whole(catalog, &arg.ty)?;
    }
    for own in &mut out.parameters {
        own.ty = whole(catalog, &own.ty)?;
    }
    out.returns = match &routine.returns {
        Returns::One(ty) => Returns::One(whole(catalog, ty)?),
        Returns::Rows(columns) => {
            let each = columns.iter().map(|(name, ty)| Ok((name.clone(), whole(catalog, ty)?)));
            Returns::Rows(each.collect::<Result<_>>()?)
        }
        Returns::Row(columns) => {
            let each = columns.iter().map(|(name, ty)| Ok((name.clone(), whole(catalog, ty)?)));
            Returns::Row(each.collect::<Result<_>>()?)
        }
        Returns::RowsOf(name) if routine.query().is_none() => {
            let (schema, name) = object_name(name)?;
            let whole = schema.map_or(name.clone(), |schema| format!("{schema}.{name}"));
            match row_type(catalog, &whole)? {
                Type::Composite(own) => {
                    let each = own
                        .attributes
                        .iter()
                        .map(|own| (Some(own.name.clone()), own.ty.clone()));
                    Returns::Rows(each.collect())
                }
                ty => Returns::Rows(vec![(None, ty)]),
            }
        }
        other => other.clone(),
    };
    Ok(Some(Arc::new(out)))
}

fn parameter(arg: &OperateFunctionArg) -> Result<Parameter> {
    Ok(Parameter {
        mode: match arg.mode {
            None | Some(ArgMode::In) => Mode::In,
            Some(ArgMode::Out) => Mode::Out,
            Some(ArgMode::InOut) => Mode::InOut,
            Some(ArgMode::Variadic) => Mode::Variadic,
        },
        name: arg.name.as_ref().map(ident),
        ty: known(&arg.data_type)?,
        default: arg.default_expr.clone(),
    })
}

/// Refuses parameters that do not go together.
///
/// Errors: 42P13, 54023.
fn check_parameters(all: &[Parameter]) -> Result<()> {
    if all.len() > ARGUMENTS_MAX {
        return fail(
            "54023",
            format!("functions cannot have more than {ARGUMENTS_MAX} arguments"),
        );
    }
    let mut has_default = false;
    for (at, own) in all.iter().enumerate() {
        if let Some(name) = &own.name {
            // What goes in and what comes out may share a name only where it is one.
            if all[..at].iter().any(|other| other.name.as_ref() == Some(name)) {
                return fail("42P13", format!("parameter name \"{name}\" used more than once"));
            }
        }
        if own.default.is_some() && !own.mode.is_given() {
            return fail("42P13", "only input parameters can have default values");
        }
        if own.mode.is_given() {
            if own.default.is_none() && has_default && own.mode != Mode::Variadic {
                return fail(
                    "42P13",
                    "input parameters after one with a default value must also have defaults",
                );
            }
            has_default |= own.default.is_some();
        }
        if own.mode == Mode::Variadic {
            let is_any = matches!(own.ty, Type::Any(any) if any.shape == Shape::Array);
            if own.ty.element().is_none() && !is_any {
                return fail("42P13", "VARIADIC parameter must be an array");
            }
            if all[at + 1..].iter().any(|other| other.mode.is_given()) {
                return fail("42P13", "VARIADIC parameter must be the last input parameter");
            }
        }
    }
    Ok(())
}

/// The function or procedure that a statement makes.
///
/// Errors: 42P13, 42601, those of its types; 0A000.
pub fn routine(create: &CreateFunction, oid: u32) -> Result<Routine> {
    let language = create.language.as_ref().map(|language| language.value.to_lowercase());
    let is_block = match language.as_deref() {
        Some("sql") => false,
        Some("plpgsql") => true,
        None if matches!(create.function_body, Some(CreateFunctionBody::Return(_))) => false,
        None => return fail("42P13", "no language specified"),
        Some(other) => return fail("42704", format!("language \"{other}\" does not exist")),
    };
    if create.temporary || create.or_alter || create.if_not_exists {
        return unsupported("a clause of this CREATE FUNCTION");
    }
    if matches!(create.security, Some(sqlparser::ast::FunctionSecurity::Definer)) {
        return unsupported("SECURITY DEFINER");
    }
    let name = plain(&create.name)?;
    let mut parameters = create
        .args
        .iter()
        .flatten()
        .map(parameter)
        .collect::<Result<Vec<_>>>()?;
    check_parameters(&parameters)?;
    let args: Vec<Argument> = parameters
        .iter()
        .filter(|own| own.mode.is_given())
        .map(|own| Argument {
            name: own.name.clone(),
            ty: own.ty.clone(),
            default: own.default.clone(),
        })
        .collect();
    let is_procedure = matches!(&create.return_type, Some(FunctionReturnType::DataType(DataType::Custom(name, _))) if name.to_string() == format!("\"{PROCEDURE}\""));
    let outs: Vec<(String, Type)> = (1..)
        .zip(parameters.iter().filter(|own| own.mode.is_result()))
        .map(|(number, own)| {
            let name = own.name.clone().unwrap_or_else(|| format!("column{number}"));
            (name, own.ty.clone())
        })
        .collect();
    let declared = create.return_type.as_ref().filter(|_| !is_procedure);
    let returns = returns((declared, is_procedure), &outs)?;
    if let Returns::Rows(columns) = &returns
        && matches!(declared, Some(FunctionReturnType::DataType(DataType::Table(_))))
    {
        if !outs.is_empty() {
            return fail("42P13", "OUT and INOUT arguments aren't allowed in TABLE functions");
        }
        let each = columns.iter().map(|(name, ty)| Parameter {
            mode: Mode::Table,
            name: name.clone(),
            ty: ty.clone(),
            default: None,
        });
        parameters.extend(each);
        for (at, own) in parameters.iter().enumerate().filter(|(_, own)| own.mode == Mode::Table) {
            if let Some(name) = &own.name
                && parameters[..at].iter().any(|other| other.name.as_ref() == Some(name))
            {
                return fail("42P13", format!("parameter name \"{name}\" used more than once"));
            }
        }
    }
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
    if !is_block && matches!(returns, Returns::Trigger) {
        return fail("42P13", "SQL functions cannot return type trigger");
    }
    if matches!(returns, Returns::Trigger) && !args.is_empty() {
        return fail("42P13", "trigger functions cannot have declared arguments");
    }
    let mut out = Routine {
        oid,
        schema: None,
        name,
        is_procedure,
        args,
        parameters,
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
        parallel: match create.parallel {
            Some(FunctionParallel::Safe) => "s",
            Some(FunctionParallel::Restricted) => "r",
            _ => "u",
        },
        body: Body::Statements(Arc::default()),
        source,
        returned: match &create.function_body {
            Some(CreateFunctionBody::Return(expr)) => Some(format!("RETURN {expr}")),
            _ => None,
        },
        config: create
            .set_params
            .iter()
            .map(assigned::of_function)
            .collect::<Result<Vec<_>>>()?
            .into_iter()
            .flatten()
            .collect(),
        settled: None,
    };
    super::polymorphic::check(&out)?;
    out.body = match is_block {
        true => Body::Block(Arc::new(parse::procedural::parse(&text)?)),
        false => body(&out, &text)?,
    };
    Ok(out)
}

/// The statements of a function in SQL: a query that can be put in where it is called, or others.
fn body(routine: &Routine, text: &str) -> Result<Body> {
    let is_open = |ty: &Type| matches!(ty.element().unwrap_or(ty), Type::Composite(own) if own.table().is_some());
    let is_plain = !routine.is_procedure
        && routine
            .parameters
            .iter()
            .all(|own| own.mode == Mode::In || own.mode == Mode::Table)
        && !routine.parameters.iter().any(|own| is_open(&own.ty))
        && match &routine.returns {
            Returns::One(ty) => !matches!(ty, Type::Composite(_)),
            Returns::Rows(columns) => !columns.iter().any(|(_, ty)| matches!(ty, Type::Composite(_))),
            Returns::Nothing | Returns::RowsOf(_) => true,
            _ => false,
        };
    let (plain, args) = (routine.name.clone(), &routine.args);
    let named = parse::with_placeholders(text, &|number| {
        let arg = args.get(number.checked_sub(1)?)?;
        Some((plain.clone(), arg.name.clone().unwrap_or_else(|| format!("${number}"))))
    })?;
    let mut statements = parse::parse(&named)?;
    if statements.is_empty() && !matches!(routine.returns, Returns::Nothing) {
        return Err(routine.mismatch(&[], &[]));
    }
    // What is put into the statement that calls it ends there, so what calls itself is run.
    let calls_itself = parse::calls(text).contains(&routine.name);
    if let ([Statement::Query(query)], true) = (statements.as_slice(), is_plain && !calls_itself)
        && !is_writing(query)
        && query.locks.is_empty()
        && modifying(&Statement::Query(query.clone())).is_none()
        && let Some(Statement::Query(query)) = statements.pop()
    {
        return Ok(Body::Query(Arc::from(query)));
    }
    Ok(Body::Statements(Arc::new(parse::statements(text))))
}

fn returns((declared, is_procedure): (Option<&FunctionReturnType>, bool), outs: &[(String, Type)]) -> Result<Returns> {
    let of_outs = || match outs {
        [] => Returns::Nothing,
        [(_, ty)] if !is_procedure => Returns::One(ty.clone()),
        outs => Returns::Row(outs.to_vec()),
    };
    let agrees = |ty: &Type| match outs {
        [] => true,
        [(_, own)] => own == ty,
        _ => *ty == Type::Record,
    };
    let differs = || {
        let wanted = match outs {
            [(_, own)] => own.to_string(),
            _ => "record".to_owned(),
        };
        fail(
            "42P13",
            format!("function result type must be {wanted} because of OUT parameters"),
        )
    };
    match declared {
        None if is_procedure || !outs.is_empty() => Ok(of_outs()),
        None => fail("42P13", "function result type must be specified"),
        Some(FunctionReturnType::DataType(DataType::Table(Some(columns)))) => {
            let each = columns
                .iter()
                .map(|column| Ok((Some(ident(&column.name)), known(&column.data_type)?)));
            Ok(Returns::Rows(each.collect::<Result<_>>()?))
        }
        Some(FunctionReturnType::DataType(DataType::Trigger)) => Ok(Returns::Trigger),
        Some(FunctionReturnType::DataType(ty)) => {
            if matches!(ty, DataType::Custom(name, _) if name.to_string().to_lowercase() == "trigger") {
                return Ok(Returns::Trigger);
            }
            match known(ty)? {
                ty if !agrees(&ty) => differs(),
                Type::Record if outs.is_empty() => Ok(Returns::Record(false)),
                _ if !outs.is_empty() => Ok(of_outs()),
                Type::Void => Ok(Returns::Nothing),
                ty => Ok(Returns::One(ty)),
            }
        }
        Some(FunctionReturnType::SetOf(ty)) => match (known(ty)?, ty) {
            (ty, _) if !agrees(&ty) => differs(),
            (Type::Record, _) if outs.is_empty() => Ok(Returns::Record(true)),
            _ if !outs.is_empty() => Ok(Returns::Rows(
                outs.iter().map(|(name, ty)| (Some(name.clone()), ty.clone())).collect(),
            )),
            (Type::Void, _) => unsupported("a function that returns SETOF void"),
            (Type::Composite(own), DataType::Custom(name, _)) if own.table().is_some() => {
                Ok(Returns::RowsOf(name.clone()))
            }
            (ty, _) => Ok(Returns::Rows(vec![(None, ty)])),
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

/// The name of a function, without its schema.
///
/// Errors: 0A000 for names that entries cannot have.
pub fn plain(name: &ObjectName) -> Result<String> {
    let (_, name) = object_name(name)?;
    match name.is_empty() || name.len() > 63 || name.contains(['.', '$', '\0']) {
        true => unsupported("a function of this name"),
        false => Ok(name),
    }
}
