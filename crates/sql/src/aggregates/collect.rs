//! Aggregates that keep all values: arrays, JSON, joined text.

use super::grouped::State;
use super::{Bound, plain};
use crate::error::fail;
use crate::expr::Expr;
use crate::functions::coerce;
use crate::types::cast::Context;
use crate::types::{Type, arrays, json, output, stored};
use nestor_model::{Array, Document, Error, Result, Value};
use nestor_planner::relation::Accumulator;

struct Items {
    /// Made JSON of, from this type.
    json: Option<Type>,
    /// Printed.
    prints: bool,
    /// Arrays, which become one of a dimension more.
    nests: bool,
    items: Vec<Value>,
    weight: usize,
}

impl Accumulator for Items {
    fn add(&mut self, args: &[Value]) -> Result<()> {
        let mut value = args.first().cloned().unwrap_or(Value::Null);
        if let Some(ty) = &self.json {
            value = match stored::to_json(ty, value) {
                Value::Undefined => Value::Null,
                value => value,
            };
        }
        if self.nests {
            match &value {
                Value::Null => return fail("22004", "cannot accumulate null arrays"),
                Value::Array(items) if items.is_empty() => return fail("2202E", "cannot accumulate empty arrays"),
                _ => {}
            }
        }
        self.weight += value.weight();
        self.items.push(value);
        Ok(())
    }

    fn result(&self) -> Result<Value> {
        if self.items.is_empty() {
            return Ok(Value::Null);
        }
        if self.nests {
            return arrays::of_arrays(self.items.clone());
        }
        let array = Value::Array(Array::new(self.items.clone()));
        Ok(if self.prints { print(&array) } else { array })
    }

    fn weight(&self) -> usize {
        self.weight
    }
}

fn print(value: &Value) -> Value {
    let mut out = String::new();
    json::print(value.as_ref(), &mut out);
    Value::String(out.into())
}

struct Joined {
    text: Option<String>,
}

impl State for Joined {}

impl Accumulator for Joined {
    fn add(&mut self, args: &[Value]) -> Result<()> {
        let Some(value) = args.first().and_then(Value::as_str) else {
            return Ok(());
        };
        match &mut self.text {
            Some(text) => {
                text.push_str(args.get(1).and_then(Value::as_str).unwrap_or_default());
                text.push_str(value);
            }
            None => self.text = Some(value.to_owned()),
        }
        Ok(())
    }

    fn result(&self) -> Result<Value> {
        Ok(self
            .text
            .as_ref()
            .map_or(Value::Null, |text| Value::String(text.as_str().into())))
    }

    fn weight(&self) -> usize {
        self.text.as_ref().map_or(0, String::len)
    }
}

struct Object {
    types: (Type, Type),
    prints: bool,
    doc: Option<Document>,
    weight: usize,
}

/// Bytes with others between them.
struct JoinedBytes(Option<Vec<u8>>);

impl Accumulator for JoinedBytes {
    fn add(&mut self, args: &[Value]) -> Result<()> {
        let bytes = |at: usize| match args.get(at) {
            Some(Value::Binary(binary)) => Some(binary.bytes.to_vec()),
            _ => None,
        };
        if let Some(own) = bytes(0) {
            match &mut self.0 {
                None => self.0 = Some(own),
                Some(all) => {
                    all.extend(bytes(1).unwrap_or_default());
                    all.extend(own);
                }
            }
        }
        Ok(())
    }

    fn result(&self) -> Result<Value> {
        Ok(match &self.0 {
            None => Value::Null,
            Some(all) => Value::Binary(nestor_model::value::Binary {
                subtype: 0,
                bytes: all.as_slice().into(),
            }),
        })
    }

    fn weight(&self) -> usize {
        self.0.as_ref().map_or(0, Vec::len)
    }
}

impl Accumulator for Object {
    fn add(&mut self, args: &[Value]) -> Result<()> {
        let [name, value] = args else { return Ok(()) };
        if matches!(name, Value::Null) {
            return fail("22023", "field name must not be null");
        }
        let name = output::text(&self.types.0, name);
        let value = match stored::to_json(&self.types.1, value.clone()) {
            Value::Undefined => Value::Null,
            value => value,
        };
        self.weight += name.len() + value.weight();
        let doc = self.doc.get_or_insert_with(Document::new);
        match !self.prints && doc.get(&name).is_some() {
            true => doc.set(&name, value),
            false => doc.push(name, value),
        }
        Ok(())
    }

    fn result(&self) -> Result<Value> {
        Ok(match &self.doc {
            None => Value::Null,
            Some(doc) if self.prints => print(&doc.clone().into()),
            Some(doc) => doc.clone().into(),
        })
    }

    fn weight(&self) -> usize {
        self.weight
    }
}

pub(super) fn bind(name: &str, args: Vec<Expr>, wrong: &dyn Fn() -> Error) -> Result<Bound> {
    let prints = name.starts_with("json_");
    match (name, args.as_slice()) {
        ("string_agg", [text, between]) if text.ty() == Type::Bytea => {
            let args = vec![text.clone(), coerce(between.clone(), &Type::Bytea, Context::Implicit)?];
            plain(
                "string_agg",
                || -> Box<dyn Accumulator> { Box::new(JoinedBytes(None)) },
                args,
                Type::Bytea,
            )
        }
        ("string_agg", [text, _]) if !text.ty().is_text() && text.ty() != Type::Unknown => Err(wrong()),
        ("string_agg", [text, between]) => {
            let args = vec![
                coerce(text.clone(), &Type::Text, Context::Implicit)?,
                coerce(between.clone(), &Type::Text, Context::Implicit)?,
            ];
            plain("string_agg", || Joined { text: None }, args, Type::Text)
        }
        ("array_agg" | "json_agg" | "jsonb_agg", [arg]) => {
            let arg = match arg.ty() {
                Type::Unknown => coerce(arg.clone(), &Type::Text, Context::Implicit)?,
                _ => arg.clone(),
            };
            let ty = arg.ty();
            let json = (name != "array_agg").then(|| ty.clone());
            let nests = json.is_none() && ty.element().is_some_and(arrays::nests);
            let start = move || -> Box<dyn Accumulator> {
                Box::new(Items {
                    json: json.clone(),
                    prints,
                    nests,
                    items: Vec::new(),
                    weight: 0,
                })
            };
            match name {
                "array_agg" => plain("array_agg", start, vec![arg], ty.array()),
                "json_agg" => plain("json_agg", start, vec![arg], Type::Json),
                _ => plain("jsonb_agg", start, vec![arg], Type::Jsonb),
            }
        }
        ("json_object_agg" | "jsonb_object_agg", [field, value]) => {
            let types = (field.ty(), value.ty());
            let start = move || -> Box<dyn Accumulator> {
                Box::new(Object {
                    types: types.clone(),
                    prints,
                    doc: None,
                    weight: 0,
                })
            };
            let ty = if prints { Type::Json } else { Type::Jsonb };
            plain(
                if prints { "json_object_agg" } else { "jsonb_object_agg" },
                start,
                args,
                ty,
            )
        }
        _ => Err(wrong()),
    }
}
