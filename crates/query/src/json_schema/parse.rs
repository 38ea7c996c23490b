//! Parsing `$jsonSchema`.

use super::encrypt::{self, Encrypted};
use super::operand::{object, string, types, wrong};
use super::{Additional, Bound, Dependency, Items, Schema};
use crate::json_schema::eval::duplicate;
use crate::regex::Regex;
use crate::types::TypeSet;
use nestor_model::number::whole_number;
use nestor_model::{ArrayRef, BsonType, DocRef, Error, Result, Str, ValueRef, bail};
use std::collections::HashSet;

impl Schema {
    /// Parses a schema.
    ///
    /// # Errors
    /// 14 for an operand of the wrong type; 9 for unknown keywords, unsupported ones, and operands out of
    /// range; 2 for unknown type names, empty `allOf` and its like, and malformed patterns.
    pub fn parse(doc: DocRef<'_>) -> Result<Self> {
        let mut schema = Self {
            source: doc.to_document(),
            ..Self::default()
        };
        for (i, (keyword, value)) in doc.iter().enumerate() {
            if doc.iter().take(i).any(|(earlier, _)| earlier == keyword) {
                bail!(FailedToParse, "duplicate $jsonSchema keyword: {keyword}");
            }
            schema.keyword(keyword, value)?;
        }
        if doc.get("type").is_some() && doc.get("bsonType").is_some() {
            bail!(
                FailedToParse,
                "cannot specify both $jsonSchema keywords 'type' and 'bsonType'"
            );
        }
        if schema.encrypted.is_some() && schema.types.is_some() {
            bail!(
                FailedToParse,
                "$jsonSchema keyword 'encrypt' says the type itself: it cannot stand beside 'type' or 'bsonType'"
            );
        }
        for (exclusive, bound) in [
            ("exclusiveMinimum", &mut schema.minimum),
            ("exclusiveMaximum", &mut schema.maximum),
        ] {
            let Some(value) = doc.get(exclusive) else { continue };
            let Some(bound) = bound else {
                bail!(
                    FailedToParse,
                    "$jsonSchema keyword '{exclusive}' needs the keyword it modifies"
                );
            };
            bound.exclusive = value.truthy();
        }
        Ok(schema)
    }

    fn keyword(&mut self, keyword: &str, value: ValueRef<'_>) -> Result<()> {
        match keyword {
            "title" => self.title = Some(string(keyword, value)?),
            "description" => self.description = Some(string(keyword, value)?),
            "bsonType" => self.types = Some(types(keyword, value, TypeSet::alias)?),
            "type" => self.types = Some(types(keyword, value, json_type)?),
            "enum" => {
                let items = array(keyword, value)?;
                if items.is_empty() {
                    bail!(FailedToParse, "$jsonSchema keyword 'enum' cannot be an empty array");
                }
                if let Some(twice) = duplicate(items)? {
                    bail!(
                        FailedToParse,
                        "$jsonSchema keyword 'enum' array cannot contain duplicate values: {twice:?}"
                    );
                }
                self.allowed = Some(items.iter().map(ValueRef::to_value).collect());
            }
            "minimum" => self.minimum = Some(bound(keyword, value)?),
            "maximum" => self.maximum = Some(bound(keyword, value)?),
            "exclusiveMinimum" | "exclusiveMaximum" => {
                boolean(keyword, value)?;
            }
            "multipleOf" => {
                let limit = bound(keyword, value)?.value;
                let positive = nestor_model::compare(&limit, &nestor_model::Value::Int32(0)).is_gt();
                let finite = nestor_model::number::Num::from_ref(value).is_some_and(|n| n.is_finite());
                if !positive || !finite {
                    bail!(
                        FailedToParse,
                        "$jsonSchema keyword 'multipleOf' must have a positive value"
                    );
                }
                self.multiple_of = Some(limit);
            }
            "minLength" => self.min_length = Some(count(keyword, value)?),
            "maxLength" => self.max_length = Some(count(keyword, value)?),
            "pattern" => {
                let pattern = string(keyword, value)?;
                self.pattern = Some(Regex::new(&pattern, "")?);
            }
            "minItems" => self.min_items = Some(count(keyword, value)?),
            "maxItems" => self.max_items = Some(count(keyword, value)?),
            "uniqueItems" => self.unique_items = boolean(keyword, value)?,
            "items" => {
                self.items = Some(match value {
                    ValueRef::Array(items) => Items::ByPosition(schemas(keyword, items)?),
                    _ => Items::Each(Box::new(sub_schema(keyword, value)?)),
                });
            }
            "additionalItems" => self.additional_items = Some(additional(keyword, value)?),
            "required" => self.required = names(keyword, array(keyword, value)?)?,
            "properties" => {
                self.properties = by_name(keyword, value)?;
                let names = self.properties.iter().enumerate();
                self.property_index = names.map(|(i, (name, _))| (name.clone(), i)).collect();
            }
            "patternProperties" => {
                for (pattern, schema) in by_name(keyword, value)? {
                    let regex = Regex::new(&pattern, "").map_err(|e| {
                        Error::bad_value(format!(
                            "invalid regular expression '{pattern}' in $jsonSchema: {}",
                            e.message()
                        ))
                    })?;
                    self.pattern_properties.push((regex, schema));
                }
            }
            "additionalProperties" => self.additional_properties = Some(additional(keyword, value)?),
            "minProperties" => self.min_properties = Some(count(keyword, value)?),
            "maxProperties" => self.max_properties = Some(count(keyword, value)?),
            "dependencies" => {
                for (name, demand) in object(keyword, value)? {
                    let demand = match demand {
                        ValueRef::Array(items) => Dependency::Properties(names(keyword, items)?),
                        other => Dependency::Schema(Box::new(sub_schema(keyword, other)?)),
                    };
                    self.dependencies.push((name.into(), demand));
                }
            }
            "allOf" => self.all_of = some_schemas(keyword, value)?,
            "anyOf" => self.any_of = some_schemas(keyword, value)?,
            "oneOf" => self.one_of = some_schemas(keyword, value)?,
            "encrypt" => self.encrypted = Some(Encrypted::parse(value)?),
            "encryptMetadata" => encrypt::check_metadata(value)?,
            "not" => self.not = Some(Box::new(sub_schema(keyword, value)?)),
            "$ref" | "$schema" | "default" | "definitions" | "format" | "id" => {
                bail!(
                    FailedToParse,
                    "$jsonSchema keyword '{keyword}' is not currently supported"
                )
            }
            _ => bail!(FailedToParse, "unknown $jsonSchema keyword: {keyword}"),
        }
        Ok(())
    }
}

fn array<'a>(keyword: &str, value: ValueRef<'a>) -> Result<ArrayRef<'a>> {
    value.as_array().ok_or_else(|| wrong(keyword, "an array", value))
}

fn boolean(keyword: &str, value: ValueRef<'_>) -> Result<bool> {
    match value {
        ValueRef::Bool(v) => Ok(v),
        _ => Err(wrong(keyword, "a boolean", value)),
    }
}

fn bound(keyword: &str, value: ValueRef<'_>) -> Result<Bound> {
    if !value.is_number() {
        return Err(wrong(keyword, "a number", value));
    }
    Ok(Bound {
        value: value.to_value(),
        exclusive: false,
    })
}

fn count(keyword: &str, value: ValueRef<'_>) -> Result<u64> {
    match whole_number(value).map(u64::try_from) {
        Some(Ok(n)) => Ok(n),
        _ => bail!(
            FailedToParse,
            "$jsonSchema keyword '{keyword}' must be a whole number that is not negative, but found {value:?}"
        ),
    }
}

fn sub_schema(keyword: &str, value: ValueRef<'_>) -> Result<Schema> {
    Schema::parse(object(keyword, value)?)
}

fn schemas(keyword: &str, items: ArrayRef<'_>) -> Result<Vec<Schema>> {
    items.iter().map(|item| sub_schema(keyword, item)).collect()
}

fn some_schemas(keyword: &str, value: ValueRef<'_>) -> Result<Vec<Schema>> {
    let items = array(keyword, value)?;
    if items.is_empty() {
        bail!(BadValue, "$jsonSchema keyword '{keyword}' must be a non-empty array");
    }
    schemas(keyword, items)
}

fn by_name(keyword: &str, value: ValueRef<'_>) -> Result<Vec<(Str, Schema)>> {
    object(keyword, value)?
        .iter()
        .map(|(name, schema)| Ok((name.into(), sub_schema(keyword, schema)?)))
        .collect()
}

fn additional(keyword: &str, value: ValueRef<'_>) -> Result<Additional> {
    match value {
        ValueRef::Bool(allowed) => Ok(Additional::Allowed(allowed)),
        ValueRef::Document(doc) => Ok(Additional::Schema(Box::new(Schema::parse(doc)?))),
        _ => Err(wrong(keyword, "an object or a boolean", value)),
    }
}

fn names(keyword: &str, items: ArrayRef<'_>) -> Result<Vec<Str>> {
    let mut out: Vec<Str> = Vec::new();
    let mut seen = HashSet::new();
    for item in items {
        let name = string(keyword, item)?;
        if !seen.insert(name.clone()) {
            bail!(
                FailedToParse,
                "$jsonSchema keyword '{keyword}' array cannot contain duplicate values"
            );
        }
        out.push(name);
    }
    if out.is_empty() {
        bail!(
            FailedToParse,
            "$jsonSchema keyword '{keyword}' cannot be an empty array"
        );
    }
    Ok(out)
}

fn json_type(name: &str) -> Option<TypeSet> {
    Some(match name {
        "number" => TypeSet::numbers(),
        "boolean" => TypeSet::of(&[BsonType::Bool]),
        "object" => TypeSet::of(&[BsonType::Object]),
        "array" => TypeSet::of(&[BsonType::Array]),
        "string" => TypeSet::of(&[BsonType::String]),
        "null" => TypeSet::of(&[BsonType::Null]),
        _ => return None,
    })
}
