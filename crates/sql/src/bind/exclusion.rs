//! What the grammar has of EXCLUDE constraints, as tables keep it.

use super::declared::timing;
use super::{ident, object_name};
use crate::catalog::exclusion::{Element, Exclusion};
use crate::error::{fail, unsupported};
use crate::parse;
use crate::types::names::quoted;
use nestor_model::Result;
use sqlparser::ast::{ExcludeConstraint, ExcludeConstraintElement, ExcludeConstraintOperator, Expr, OrderByOptions};

/// A constraint; its name is empty where it was given none.
///
/// Errors: 42601 for times that contradict each other, 0A000 for what elements cannot say.
pub(super) fn of(said: &ExcludeConstraint) -> Result<Exclusion> {
    Ok(Exclusion {
        name: said.name.as_ref().map(ident).unwrap_or_default(),
        method: said.index_method.as_ref().map_or_else(|| "btree".to_owned(), ident),
        elements: said.elements.iter().map(element).collect::<Result<_>>()?,
        include: said.include.iter().map(ident).collect(),
        predicate: said.where_clause.as_ref().map(|own| own.to_string()),
        timing: timing(said.characteristics)?,
    })
}

fn element(said: &ExcludeConstraintElement) -> Result<Element> {
    let part = &said.column.column;
    if part.options != OrderByOptions::default() {
        return fail("0A000", "an order of an element of EXCLUDE is not supported");
    }
    let operator = match &said.operator {
        ExcludeConstraintOperator::Token(operator) => operator.clone(),
        ExcludeConstraintOperator::PGOperator(parts) => parts.last().cloned().unwrap_or_default(),
    };
    let class = match &said.column.operator_class {
        Some(class) => object_name(class)?.1,
        None => String::new(),
    };
    let of = match &part.expr {
        Expr::Nested(inner) => inner,
        of => of,
    };
    let (text, column) = match of {
        Expr::Identifier(name) => (quoted(&ident(name)), Some(ident(name))),
        Expr::Collate { .. } => return unsupported("COLLATE of an element of EXCLUDE"),
        of => (of.to_string(), None),
    };
    Ok(Element {
        text,
        called: column.clone().unwrap_or_else(|| called(of)),
        column,
        class,
        operator,
    })
}

/// What an expression is called in the name of an index.
pub fn called(expr: &Expr) -> String {
    match expr {
        Expr::Function(function) => object_name(&function.name).map_or_else(|_| "expr".to_owned(), |(_, name)| name),
        _ => "expr".to_owned(),
    }
}

/// The words in it by which columns may be named.
pub fn columns(said: &ExcludeConstraint) -> Vec<String> {
    let elements = said.elements.iter().map(|element| &element.column.column.expr);
    let all = elements.chain(said.where_clause.as_deref());
    let mut out: Vec<String> = all.flat_map(|expr| parse::columns(&expr.to_string())).collect();
    out.extend(said.include.iter().map(ident));
    out
}
