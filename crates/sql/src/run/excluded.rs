//! What an EXCLUDE constraint compares, bound to the columns of its table.

use super::indexed::{self, value};
use super::reader::whole_row;
use crate::bind::Binder;
use crate::catalog::exclusion::Exclusion;
use crate::catalog::nothing::Nothing;
use crate::catalog::system::shown_part;
use crate::catalog::{Column, Kind, Table};
use crate::expr::Expr;
use crate::parse;
use crate::types::{Type, output, stored};
use nestor_model::{DocRef, Namespace, Result, Value};
use std::sync::Arc;

/// A column or an expression of a constraint, and how two of its values are compared.
pub(crate) struct Element {
    /// The expression, over the columns of the table.
    pub(crate) of: Expr,
    /// The operator, over two of its values.
    pub(crate) compares: Expr,
    /// The path of the column whose values are equal where the operator is true, if documents have those as filters find them.
    pub(crate) equal: Option<String>,
}

/// A constraint.
pub(crate) struct Excluded {
    pub(crate) elements: Vec<Element>,
    predicate: Option<Expr>,
    /// The paths of all columns that it names.
    pub(crate) paths: Vec<String>,
}

/// Whether values of a type are equal when documents have equal values.
fn is_by_filter(ty: &Type) -> bool {
    matches!(ty, Type::Enum(_) | Type::Oid | Type::Name | Type::Time) || !indexed::by_hash(ty) && *ty != Type::Citext
}

/// A value and another one of a type, as the columns of a table.
fn pair(ty: &Type) -> Arc<Table> {
    let columns = ["a", "b"].map(|name| Column::new(name, ty.clone()));
    let kind = Kind::Collection(Namespace::new("", "t"));
    Arc::new(Table::new("t", columns.to_vec(), kind))
}

/// What two values of a type say with an operator between them.
///
/// Errors: 42883 and others of binding it.
pub(crate) fn compared(ty: &Type, operator: &str) -> Result<Expr> {
    let ast = parse::expression(&format!("a {operator} b"))?;
    Binder::new(&Nothing, Vec::new()).indexed(&pair(ty), &ast)
}

impl Excluded {
    /// A constraint of a table.
    ///
    /// Errors: those of binding it, 42P17 for what is not always the same.
    pub(crate) fn of(table: &Arc<Table>, exclusion: &Exclusion) -> Result<Self> {
        let mut elements = Vec::new();
        for element in &exclusion.elements {
            let of = indexed::bound(table, &parse::expression(&element.text)?)?;
            let ty = of.ty();
            let column = element.column.as_ref().and_then(|name| table.column(name));
            let is_equal = element.operator == "=" && is_by_filter(&ty);
            elements.push(Element {
                compares: compared(&ty, &element.operator)?,
                equal: column.filter(|_| is_equal).map(|column| column.path.clone()),
                of,
            });
        }
        let predicate = match &exclusion.predicate {
            Some(text) => Some(indexed::condition(table, &parse::expression(text)?)?),
            None => None,
        };
        let mut paths = Vec::new();
        for expr in elements.iter().map(|element| &element.of).chain(&predicate) {
            expr.for_each_column(&mut |at| {
                let path = table.columns.get(at).map(|column| column.path.clone());
                paths.extend(path.filter(|path| !paths.contains(path)));
            });
        }
        Ok(Self {
            elements,
            predicate,
            paths,
        })
    }

    /// The values of a row that the constraint is about: `None` where its predicate is not true, or one of them is null.
    ///
    /// Errors: those of the expressions.
    pub(crate) fn key(&self, table: &Table, doc: DocRef<'_>) -> Result<Option<Vec<Value>>> {
        let row = whole_row(table, doc)?;
        if let Some(predicate) = &self.predicate
            && !matches!(value(predicate, &row)?, Value::Bool(true))
        {
            return Ok(None);
        }
        let mut key = Vec::with_capacity(self.elements.len());
        for element in &self.elements {
            match value(&element.of, &row)? {
                Value::Null => return Ok(None),
                own => key.push(own),
            }
        }
        Ok(Some(key))
    }

    /// Whether rows with these values exclude each other.
    ///
    /// Errors: those of the operators.
    pub(crate) fn excludes(&self, one: &[Value], other: &[Value]) -> Result<bool> {
        for (element, (one, other)) in self.elements.iter().zip(one.iter().zip(other)) {
            let both = [one.clone(), other.clone()];
            if !matches!(value(&element.compares, &both)?, Value::Bool(true)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The fields that are equal in rows which exclude each other, and what they are in one with this key.
    pub(crate) fn equal(&self, key: &[Value]) -> (Vec<String>, Vec<Value>) {
        let each = self.elements.iter().zip(key).filter_map(|(element, value)| {
            let path = element.equal.clone()?;
            Some((path, stored::write(&element.of.ty(), value.clone())))
        });
        each.unzip()
    }

    /// A key as errors show it.
    pub(crate) fn shown(&self, (table, exclusion): (&Table, &Exclusion), key: &[Value]) -> String {
        let names = exclusion.elements.iter().map(|element| match &element.column {
            Some(name) => name.clone(),
            None => shown_part(&table.columns, &element.text),
        });
        let values = self.elements.iter().zip(key);
        let values: Vec<String> = values
            .map(|(element, value)| output::text(&element.of.ty(), value))
            .collect();
        format!("({})=({})", names.collect::<Vec<_>>().join(", "), values.join(", "))
    }
}
