//! `$getField`, `$setField`, `$unsetField`, `$mergeObjects`: fields by name, whatever the name.

use crate::env::{Env, Scope, Val};
use crate::expr::Expr;
use crate::expr::args::{Named, error};
use crate::expr::parse::OpDef;
use nestor_model::statement::{charge, work};
use nestor_model::{DocRef, Document, Result, Str, Value, ValueRef};
use std::collections::HashMap;

pub(crate) const OPERATORS: &[OpDef] = &[
    OpDef::custom("$getField", parse_get_field),
    OpDef::custom("$setField", parse_set_field),
    OpDef::custom("$unsetField", parse_set_field),
    OpDef::variadic("$mergeObjects", merge_objects),
];

/// Arguments: name, input.
fn parse_get_field(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let named = match value {
        ValueRef::Document(doc) => !doc.iter().next().is_some_and(|(field, _)| field.starts_with('$')),
        _ => false,
    };
    let (field, input) = if named {
        let args = Named {
            not_object: 3_041_701,
            unknown: 3_041_701,
            fields: &[("field", Some(3_041_702)), ("input", Some(3_041_703))],
        }
        .split(name, value)?;
        (Expr::parse(args[0], scope)?, Expr::parse(args[1], scope)?)
    } else {
        // The short form reads from the current document.
        let current = Expr::parse(ValueRef::String("$$CURRENT"), scope)?;
        (Expr::parse(value, scope)?, current)
    };
    // A name that is constant and no string is refused at once.
    if let Some(value) = field.constant() {
        field_name(value.as_ref())?;
    }
    Expr::call_of(name, get_field, Box::new([field, input]))
}

fn field_name(value: ValueRef<'_>) -> Result<&str> {
    match value {
        ValueRef::String(name) => Ok(name),
        other => Err(error(
            3_041_704,
            format!(
                "$getField requires 'field' to evaluate to type String, but got {}",
                other.bson_type().alias()
            ),
        )),
    }
}

fn get_field<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let name = args[0].eval_ref(env)?;
    let name = field_name(name.as_ref())?;
    let input = args[1].eval_ref(env)?;
    if let Val::Ref(ValueRef::Document(doc)) = input {
        return Ok(doc.get(name).map_or(Val::MISSING, Val::Ref));
    }
    Ok(match input.as_ref() {
        ValueRef::Document(doc) => doc.get(name).map_or(Val::MISSING, |v| v.to_value().into()),
        other if other.is_missing() => Val::MISSING,
        other if other.is_nullish() => Val::NULL,
        _ => Val::MISSING,
    })
}

/// Arguments: name (a constant), input, value. `$unsetField` sets the value to missing.
fn parse_set_field(name: &'static str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Expr> {
    let unset = name == "$unsetField";
    let with_value: &[(&'static str, Option<i32>)] = &[
        ("field", Some(4_161_102)),
        ("value", Some(4_161_103)),
        ("input", Some(4_161_109)),
    ];
    let without_value = [with_value[0], with_value[2]];
    let args = Named {
        not_object: 4_161_100,
        unknown: 4_161_101,
        fields: if unset { &without_value } else { with_value },
    }
    .split(name, value)?;
    if let ValueRef::String(text) = args[0]
        && text.starts_with('$')
        && Expr::parse(args[0], scope)?.constant().is_none()
    {
        return Err(error(
            4_161_108,
            format!("{name}: 'field' cannot be a field path reference; use $literal for a name that starts with '$'"),
        ));
    }
    let field = Expr::parse(args[0], scope)?;
    // Arrays, objects and operators are evaluated, even over constants; only `$literal` is a constant itself.
    let built = match args[0] {
        ValueRef::Array(_) => true,
        ValueRef::Document(doc) => doc
            .iter()
            .next()
            .is_some_and(|(name, _)| !matches!(name, "$literal" | "$const")),
        _ => false,
    };
    match field.constant().filter(|_| !built) {
        Some(Value::String(text)) if text.contains('\0') => {
            return Err(error(
                9_534_700,
                format!("{name}: a field name cannot contain a null byte"),
            ));
        }
        Some(Value::String(_)) => {}
        Some(other) => {
            return Err(error(
                4_161_107,
                format!(
                    "{name} requires 'field' to evaluate to type String, but got {}",
                    other.bson_type().alias()
                ),
            ));
        }
        None => {
            return Err(error(
                4_161_106,
                format!("{name} requires 'field' to evaluate to a constant"),
            ));
        }
    }
    let (value, input) = match args[..] {
        [_, value, input] => (Expr::parse(value, scope)?, Expr::parse(input, scope)?),
        _ => (Expr::constant_of(Value::Missing), Expr::parse(args[1], scope)?),
    };
    Expr::call_of(name, set_field, Box::new([field, input, value]))
}

fn set_field<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let input = args[1].eval_ref(env)?;
    if input.is_nullish() {
        return Ok(Val::NULL);
    }
    let name = args[0].eval_ref(env)?;
    let ValueRef::String(name) = name.as_ref() else {
        return Ok(Val::NULL);
    };
    let mut doc = match input.into_value() {
        Value::Document(doc) => doc,
        other => {
            return Err(error(
                4_161_105,
                format!(
                    "$setField requires 'input' to evaluate to type Object, but got {}",
                    other.bson_type().alias()
                ),
            ));
        }
    };
    doc.set(name, args[2].eval(env)?);
    Ok(doc.into())
}

fn merge_objects<'a>(args: &'a [Expr], env: &mut Env<'a>) -> Result<Val<'a>> {
    let mut merged = Merged::default();
    for arg in args {
        let value = arg.eval_ref(env)?;
        match value.as_ref() {
            // A single argument that is an array is the list of objects.
            ValueRef::Array(items) if args.len() == 1 => {
                for item in items {
                    work(1)?;
                    merge_one(&mut merged, item)?;
                }
            }
            other => merge_one(&mut merged, other)?,
        }
    }
    Ok(merged.document().into())
}

fn merge_one(into: &mut Merged, value: ValueRef<'_>) -> Result<()> {
    match value {
        ValueRef::Document(doc) => into.add(doc)?,
        other if other.is_nullish() => {}
        other => {
            return Err(error(
                40400,
                format!(
                    "$mergeObjects requires object inputs, but input {other:?} is of type {}",
                    other.bson_type().alias()
                ),
            ));
        }
    }
    Ok(())
}

/// Documents laid over one another: a name that is there keeps its place and takes the new value.
#[derive(Default)]
struct Merged {
    fields: Vec<(Str, Value)>,
    /// Where a name stands, once there are many.
    places: HashMap<Str, usize>,
}

/// Up to this many fields are looked through one by one.
const LINEAR_MAX: usize = 32;

impl Merged {
    fn add(&mut self, doc: DocRef<'_>) -> Result<()> {
        let before = self.fields.len();
        if before > LINEAR_MAX {
            let names = self.fields.iter().enumerate().skip(self.places.len());
            self.places.extend(names.map(|(at, (name, _))| (name.clone(), at)));
        }
        for (name, value) in doc {
            work(1)?;
            let value = value.to_value();
            charge(size_of::<Str>() + value.weight())?;
            let known = match before > LINEAR_MAX {
                true => self.places.get(name).copied(),
                false => self.fields[..before].iter().position(|(n, _)| n == name),
            };
            match known {
                Some(at) => self.fields[at].1 = value,
                None => self.fields.push((name.into(), value)),
            }
        }
        Ok(())
    }

    fn document(self) -> Document {
        Document::from_iter(self.fields)
    }
}

#[cfg(test)]
mod tests {
    use crate::expr::testing::check;

    #[test]
    fn fields() {
        check(
            r#"{"a": 1, "o": {"a.b": 2, "$c": 3}, "n": null}"#,
            &[
                (r#"{"$getField": "a"}"#, "1"),
                (r#"{"$getField": {"field": "a.b", "input": "$o"}}"#, "2"),
                (r#"{"$getField": {"field": {"$literal": "$c"}, "input": "$o"}}"#, "3"),
                (r#"{"$getField": {"field": "x", "input": "$n"}}"#, "null"),
                (r#"{"$getField": {"field": "x", "input": "$a"}}"#, "missing"),
                (r#"{"$getField": {"field": 5, "input": "$o"}}"#, "error 3041704"),
                (
                    r#"{"$setField": {"field": "x.y", "input": "$o", "value": "$a"}}"#,
                    r#"{"a.b": 2, "$c": 3, "x.y": 1}"#,
                ),
                (
                    r#"{"$setField": {"field": "a.b", "input": "$o", "value": "$$REMOVE"}}"#,
                    r#"{"$c": 3}"#,
                ),
                (
                    r#"{"$unsetField": {"field": {"$literal": "$c"}, "input": "$o"}}"#,
                    r#"{"a.b": 2}"#,
                ),
                (
                    r#"{"$setField": {"field": "$a", "input": "$o", "value": 1}}"#,
                    "error 4161108",
                ),
                (
                    r#"{"$setField": {"field": "a", "input": "$a", "value": 1}}"#,
                    "error 4161105",
                ),
                (
                    r#"{"$mergeObjects": [{"a": 1, "b": 2}, null, {"a": 3, "c": 4}]}"#,
                    r#"{"a": 3, "b": 2, "c": 4}"#,
                ),
                (r#"{"$mergeObjects": "$a"}"#, "error 40400"),
                (r#"{"$mergeObjects": [[{"a": 1}, {"b": 2}]]}"#, r#"{"a": 1, "b": 2}"#),
            ],
        );
    }
}
