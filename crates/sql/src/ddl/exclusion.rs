//! EXCLUDE constraints mean something, and have indexes.

use super::index::{Method, Part, computed, plain};
use crate::bind::Binder;
use crate::catalog::Table;
use crate::catalog::exclusion::{Element, Exclusion};
use crate::catalog::nothing::Nothing;
use crate::catalog::system::classes::{self, Named};
use crate::error::{Field, error, fail, unsupported, with};
use crate::parse;
use crate::run::excluded::compared;
use crate::run::indexed;
use crate::types::Type;
use nestor_model::{IndexSpec, Result};
use std::sync::Arc;

/// Operators whose sides change places.
const COMMUTATIVE: [&str; 9] = ["=", "<>", "&&", "-|-", "+", "*", "&", "|", "#"];

/// The number of the access method of a constraint.
///
/// Errors: 42704, 0A000.
fn method_of(exclusion: &Exclusion) -> Result<i64> {
    let name = exclusion.method.as_str();
    let number = classes::method(name);
    let is_single = exclusion.elements.len() == 1;
    match (name, number) {
        ("brin" | "gin", _) => fail(
            "0A000",
            format!("access method \"{name}\" does not support exclusion constraints"),
        ),
        (_, None) => fail("42704", format!("access method \"{name}\" does not exist")),
        ("hash" | "spgist", _) if !is_single => fail(
            "0A000",
            format!("access method \"{name}\" does not support multicolumn indexes"),
        ),
        ("hash", _) if !exclusion.include.is_empty() => fail(
            "0A000",
            format!("access method \"{name}\" does not support included columns"),
        ),
        (_, Some(number)) => Ok(number),
    }
}

/// The operators of a class that exclude.
fn members(method: &str, class: &str) -> &'static [&'static str] {
    match (method, class) {
        ("gist" | "spgist", "range_ops" | "multirange_ops") => &["&&", "=", "-|-"],
        ("gist" | "spgist", "inet_ops") => &["&&", "=", "<>"],
        ("gist", _) => &["=", "<>"],
        _ => &["="],
    }
}

/// What a type is called in an operator that takes others like it.
fn taken(ty: &Type) -> String {
    match ty {
        Type::Enum(_) => "anyenum".to_owned(),
        Type::Array(_) => "anyarray".to_owned(),
        ty if ty.range_element().is_some() => "anyrange".to_owned(),
        ty if ty.multirange_element().is_some() => "anymultirange".to_owned(),
        ty => ty.to_string(),
    }
}

fn check_element(element: &Element, ty: &Type, (method, number): (&str, i64)) -> Result<()> {
    let class = match element.class.as_str() {
        "" => classes::default_of(number, ty),
        class => match classes::named(number, class, ty) {
            Some(Named::Default | Named::Other) => Some(class),
            Some(Named::Unfit) => {
                let message = format!("operator class \"{class}\" does not accept data type {ty}");
                return fail("42804", message);
            }
            None => {
                let message = format!("operator class \"{class}\" does not exist for access method \"{method}\"");
                return fail("42704", message);
            }
        },
    };
    let Some(class) = class else {
        let message = format!("data type {ty} has no default operator class for access method \"{method}\"");
        let hint =
            "You must specify an operator class for the index or define a default operator class for the data type.";
        return Err(with(error("42704", message), &[(Field::Hint, hint)]));
    };
    compared(ty, &element.operator)?;
    let operator = element.operator.as_str();
    let shown = format!("operator {operator}({0},{0})", taken(ty));
    let (message, detail) = if !COMMUTATIVE.contains(&operator) {
        (
            format!("{shown} is not commutative"),
            "Only commutative operators can be used in exclusion constraints.",
        )
    } else if !members(method, class).contains(&operator) {
        (
            format!(
                "{shown} is not a member of operator family \"{}\"",
                classes::family(number, class)
            ),
            "The exclusion operator must be related to the index operator class for the constraint.",
        )
    } else {
        return Ok(());
    };
    Err(with(error("42809", message), &[(Field::Detail, detail)]))
}

/// The constraints of a table compare what can be compared.
///
/// Errors: 42704, 42804, 42809, 42883, 42P17, 0A000.
pub(super) fn check(table: &Arc<Table>) -> Result<()> {
    for exclusion in &table.exclusions {
        let number = method_of(exclusion)?;
        for element in &exclusion.elements {
            let ast = parse::expression(&element.text)?;
            let expr = Binder::new(&Nothing, Vec::new()).indexed(table, &ast)?;
            indexed::check(&expr)?;
            check_element(element, &expr.ty(), (&exclusion.method, number))?;
        }
        if let Some(predicate) = &exclusion.predicate {
            indexed::condition(table, &parse::expression(predicate)?)?;
        }
    }
    Ok(())
}

/// The index of a constraint: its elements that are compared by `=`, as far as one index has them, or else the first one. It has the rows that are
/// looked through.
///
/// Errors: those of indexes.
pub(super) fn spec(table: &Arc<Table>, exclusion: &Exclusion) -> Result<IndexSpec> {
    let mut asts = Vec::new();
    for element in &exclusion.elements {
        let ast = parse::expression(&element.text)?;
        let bound = indexed::bound(table, &ast)?;
        if bound.ty() == Type::Citext {
            return unsupported("an exclusion constraint on values of type citext");
        }
        let is_whole = !indexed::is_hashed(&bound);
        asts.push((element, ast, is_whole));
    }
    let by_columns = asts
        .iter()
        .filter(|(element, _, is_whole)| element.operator == "=" && element.column.is_some() && *is_whole);
    let mut chosen: Vec<_> = by_columns.collect();
    if chosen.is_empty() {
        let equal = asts.iter().find(|(element, ..)| element.operator == "=");
        chosen.extend(equal.or(asts.first()));
    }
    let parts: Vec<Part<'_>> = chosen
        .iter()
        .map(|(element, ast, _)| Part::of(&element.called, element.column.is_none().then_some(ast)))
        .collect();
    let parts: Vec<&Part<'_>> = parts.iter().collect();
    // Of other rows an expression may be an error.
    let mut conditions = Vec::new();
    if let Some(text) = &exclusion.predicate {
        let bound = indexed::condition(table, &parse::expression(text)?)?;
        conditions.push((text.clone(), bound));
    }
    let (listed, ..) = match parts.iter().any(|part| part.is_computed()) {
        true => computed(table, &parts, Method::Ordered, (&exclusion.name, false), conditions)?,
        false => plain(table, &parts, Method::Ordered, &exclusion.name)?,
    };
    IndexSpec::parse(listed.to_raw())
}
