//! Objects of JSON as rows whose columns the statement names: `json_to_record` and the like.

use super::tables::Table;
use crate::error::fail;
use crate::expr::Expr;
use crate::functions::coerce;
use crate::types::cast::{Context, cast};
use crate::types::composite::Composite;
use crate::types::{Type, input, json, zone};
use nestor_model::statement::work;
use nestor_model::vector::{self, Builder};
use nestor_model::{Array, Result, Value, ValueRef};
use nestor_planner::relation::{Env, TableFunction, Tuple};
use std::any::Any;
use std::sync::Arc;

/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;
/// Moments less far from 1970 than this have years of four digits.
pub(crate) const DATES_MS: u64 = 1_900 * 365 * DAY_MS as u64;

#[derive(Debug)]
struct Records {
    columns: Vec<(String, Type)>,
    several: bool,
    /// A row is one value of a composite type.
    whole: bool,
}

/// A value of JSON as one of a type. Errors: those of reading its text.
pub(crate) fn typed(value: ValueRef<'_>, ty: &Type) -> Result<Value> {
    match (ty, value) {
        (Type::Domain(own), value) => cast(typed(value, own.bottom().0)?, own.bottom().0, ty, -1, false),
        (_, value) if value.is_nullish() => Ok(match ty {
            Type::Jsonb if !matches!(value, ValueRef::Missing) => Value::Undefined,
            _ => Value::Null,
        }),
        (Type::Jsonb, value) => Ok(value.to_value()),
        (Type::Array(element), ValueRef::Array(items)) => {
            let items = items.iter().map(|item| match item {
                inner @ ValueRef::Array(_) if crate::types::arrays::nests(element) => typed(inner, ty),
                item => typed(item, element),
            });
            let items: Vec<Value> = items.collect::<Result<_>>()?;
            let nested = items.iter().filter(|item| matches!(item, Value::Array(_))).count();
            match nested {
                _ if !crate::types::arrays::nests(element) => {}
                0 => {}
                count if count < items.len() => return fail("22P02", "expected JSON array"),
                _ if !crate::types::arrays::are_alike(&items) => return fail("22P02", "malformed JSON array"),
                _ => {}
            }
            Ok(Value::Array(Array::new(items)))
        }
        (Type::Composite(own), whole @ ValueRef::Document(_)) => own.filled(|own| typed(own.of(&whole), &own.ty)),
        (Type::Json, value) => {
            let mut out = String::new();
            json::compact(value, &mut out);
            Ok(Value::String(out.into()))
        }
        (ty, value) => input::text(ty, &json::text(value)),
    }
}

impl Records {
    fn row(&self, value: ValueRef<'_>) -> Result<Tuple> {
        work(1)?;
        let ValueRef::Document(doc) = value else {
            return fail("22023", "cannot call this function on a scalar");
        };
        let columns = self.columns.iter();
        if self.whole {
            return columns.map(|(_, ty)| typed(value, ty)).collect();
        }
        columns
            .map(|(name, ty)| typed(doc.get(name).unwrap_or(ValueRef::Missing), ty))
            .collect()
    }
}

impl TableFunction for Records {
    fn name(&self) -> &str {
        if self.several {
            "jsonb_to_recordset"
        } else {
            "jsonb_to_record"
        }
    }

    fn rows(&self, args: &[Value], _: &Env<'_>) -> Result<Box<dyn Iterator<Item = Result<Tuple>> + Send>> {
        let rows: Vec<Tuple> = match (&args[0], self.several) {
            (Value::Null, _) => Vec::new(),
            (Value::Array(items), true) => items.iter().map(|item| self.row(item)).collect::<Result<_>>()?,
            (_, true) => return fail("22023", "cannot call this function on a non-array"),
            (value, false) => vec![self.row(value.as_ref())?],
        };
        Ok(Box::new(rows.into_iter().map(Ok)))
    }

    fn fields(&self) -> Option<&dyn Any> {
        (self.several && !self.whole).then_some(&self.columns as &dyn Any)
    }
}

/// Adds a value of JSON as one of a type to a vector. Values that are of the type as they stand are what their text would be read as.
///
/// Errors: those of reading its text.
pub(crate) fn typed_into(value: &ValueRef<'_>, ty: &Type, into: &mut Builder) -> Result<()> {
    use ValueRef as V;
    match (ty, value) {
        (Type::Bool, V::Bool(b)) => into.push_bool(*b),
        (Type::Int4, V::Int32(n)) => into.push_int32(*n),
        (Type::Int8, V::Int32(n)) => into.push_int64(i64::from(*n)),
        (Type::Int8, V::Int64(n)) => into.push_int64(*n),
        (Type::Float8, V::Double(n)) => into.push_double(*n),
        (Type::Numeric, V::Decimal128(n)) if vector::digits(*n).is_some() => into.push_decimal(*n),
        (Type::Text, V::String(text)) => into.push_text(text),
        (Type::Date, V::DateTime(ms)) if ms.unsigned_abs() < DATES_MS => {
            // Text has moments as the clocks of the session's zone show them.
            let ms = *ms;
            let local = ms + zone::current_offset(ms * 1000) * 1000;
            into.push_int32(i32::try_from(local.div_euclid(DAY_MS)).unwrap_or_default())
        }
        (ty, value) => into.push(typed(*value, ty)?),
    }
    Ok(())
}

/// Whether a function's columns are those that the statement defines.
pub fn is_of_records(name: &str) -> bool {
    matches!(
        name,
        "json_to_record" | "jsonb_to_record" | "json_to_recordset" | "jsonb_to_recordset"
    )
}

/// The function for rows that each are a value of a composite type. Errors: 42883.
pub fn whole_records(name: &str, args: &[Expr], composite: Arc<Composite>) -> Result<Table> {
    made(name, args, (vec![("row".to_owned(), Type::Composite(composite))], true))
}

/// The function for columns of these names and types. Errors: 42883.
pub fn records(name: &str, args: &[Expr], columns: Vec<(String, Type)>) -> Result<Table> {
    made(name, args, (columns, false))
}

fn made(name: &str, args: &[Expr], (columns, whole): (Vec<(String, Type)>, bool)) -> Result<Table> {
    let [arg] = args else {
        return fail("42883", format!("function {name} takes one argument"));
    };
    let json = if name.starts_with("jsonb") {
        Type::Jsonb
    } else {
        Type::Json
    };
    let arg = coerce(arg.clone(), &json, Context::Implicit)?;
    let arg = coerce(arg, &Type::Jsonb, Context::Assignment)?;
    Ok(Table {
        call: Arc::new(Records {
            columns: columns.clone(),
            several: name.ends_with("set"),
            whole,
        }),
        args: vec![arg],
        columns,
    })
}
