//! What the catalog knows of objects by their names and numbers, as constants of plans.

use super::Binder;
use crate::error::fail;
use crate::expr::{Expr, Node};
use crate::functions::{self, coerce, known};
use crate::types::Type;
use crate::types::cast::Context;
use crate::types::names::names_in;
use nestor_model::{Result, Value};
use std::collections::BTreeMap;

impl Binder<'_> {
    /// The bytes that a function tells of an object, by its number or its name.
    pub(super) fn size(&self, function: &str, of: Expr) -> Result<Expr> {
        let asked = match of.node() {
            Node::Const(Value::String(name), _) => Some(name.to_string()),
            Node::Const(Value::Int64(number), _) => Some(number.to_string()),
            _ => None,
        };
        let of = match of.ty() {
            Type::Regclass => coerce(of, &Type::Oid, Context::Explicit)?,
            _ => of,
        };
        let of = coerce(of, &Type::Text, Context::Explicit)?;
        let sizes = self.catalog.sizes(function, asked.as_deref())?.into_iter();
        let bytes = Expr::constant(known(sizes.map(|(key, size)| (key, size.to_string()))), Type::Jsonb);
        let size = functions::call("catalog_text", vec![of, bytes])?;
        coerce(size, &Type::Int8, Context::Explicit)
    }

    /// The texts that the catalog has for objects, by number, as a constant.
    pub(super) fn catalog_texts(&self, of: &str) -> Result<Expr> {
        let texts = self.catalog.texts(of)?.unwrap_or_default().into_iter();
        let texts = known(texts.map(|(oid, text)| (oid.to_string(), text)));
        Ok(Expr::constant(texts, Type::Jsonb))
    }

    /// The number of a schema, role or function by its name. One that stands there is looked up at once: a mistake is one of the statement.
    pub(super) fn object(&self, arg: Expr, ty: &Type) -> Result<Expr> {
        let numbers = self.object_numbers(ty)?;
        if let Node::Const(Value::String(name), _) = arg.node() {
            let number = functions::object_number(ty, name, &numbers)?;
            return Ok(Expr::constant(Value::Int64(number), ty.clone()));
        }
        self.object_by("catalog_object", arg, (ty, numbers))
    }

    /// The number that a function finds when it is run.
    pub(super) fn object_by(&self, function: &str, name: Expr, (ty, numbers): (&Type, Value)) -> Result<Expr> {
        let name = coerce(name, &Type::Text, Context::Implicit)?;
        let numbers = Expr::constant(numbers, Type::Jsonb);
        let kind = Expr::constant(Value::String(ty.name().into()), Type::Text);
        let number = functions::call(function, vec![name, numbers, kind])?;
        coerce(number, ty, Context::Explicit)
    }

    /// The numbers of objects of a kind by their names.
    pub(super) fn object_numbers(&self, ty: &Type) -> Result<Value> {
        let mut numbers = BTreeMap::new();
        for (oid, name) in self.catalog.texts(&ty.name())?.unwrap_or_default() {
            let number = numbers.entry(name).or_insert(oid);
            if *number != oid {
                *number = functions::AMBIGUOUS;
            }
        }
        Ok(known(numbers))
    }

    /// The numbers of types that somebody has made, by their names.
    pub(super) fn type_numbers(&self) -> Result<Expr> {
        self.numbers_by_name("type_key")
    }

    /// The numbers of relations by their names.
    pub(super) fn relation_numbers(&self) -> Result<Expr> {
        self.numbers_by_name("relations")
    }

    /// The numbers of what the catalog tells of, by its names; of several of a name that of the first one.
    pub(super) fn numbers_by_name(&self, of: &str) -> Result<Expr> {
        let texts = self.catalog.texts(of)?.unwrap_or_default().into_iter();
        Ok(Expr::constant(known(texts.map(|(oid, name)| (name, oid))), Type::Jsonb))
    }

    /// The number of a relation whose name is a constant.
    pub(super) fn regclass(&mut self, arg: Expr) -> Result<Expr> {
        match arg.node() {
            Node::Const(Value::String(name), _) => {
                if let Ok(oid) = name.parse::<u32>() {
                    return Ok(Expr::constant(Value::Int64(i64::from(oid)), Type::Regclass));
                }
                let parts = names_in(name);
                let (schema, plain) = match parts.as_slice() {
                    [.., schema, name] => (Some(schema.as_str()), name.as_str()),
                    [name] => (None, name.as_str()),
                    [] => (None, ""),
                };
                match self.catalog.oid_of(schema, plain) {
                    0 => fail("42P01", format!("relation \"{name}\" does not exist")),
                    oid => Ok(Expr::constant(Value::Int64(i64::from(oid)), Type::Regclass)),
                }
            }
            // What is asked for by a parameter comes as a name.
            _ if arg.ty().is_text() || arg.ty() == Type::Unknown => {
                let arg = coerce(arg, &Type::Text, Context::Implicit)?;
                functions::call("catalog_number", vec![arg, self.relation_numbers()?])
            }
            _ => coerce(arg, &Type::Regclass, Context::Explicit),
        }
    }
}
