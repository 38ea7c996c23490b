//! Which rules of a schema a value does not satisfy, in the form of `schemaRulesNotSatisfied`.
//!
//! Source: manual, "Improved error messages for schema validation" and the examples of error 121.

use super::eval::{above, below, duplicate, is_multiple};
use super::{Additional, Bound, Dependency, Items, Schema};
use nestor_model::{Array, ArrayRef, DocRef, Document, Result, Str, Value, ValueRef, doc};

impl Schema {
    /// One document for each keyword that `value` does not satisfy; empty when it satisfies all.
    pub fn failures(&self, value: ValueRef<'_>) -> Result<Vec<Document>> {
        let mut out = Vec::new();
        if let ValueRef::Document(doc) = value {
            self.object_failures(doc, &mut out)?;
        }
        self.combination_failures(value, &mut out)?;
        self.value_failures(value, &mut out)?;
        if let ValueRef::Array(items) = value {
            self.array_failures(items, &mut out)?;
        }
        Ok(out)
    }

    /// Title and description, which stand before the details of a failed schema.
    pub(crate) fn annotations(&self) -> Document {
        let mut out = Document::new();
        for (name, text) in [("title", &self.title), ("description", &self.description)] {
            if let Some(text) = text {
                out.push(name, text.clone());
            }
        }
        out
    }

    fn specified_as(&self, keyword: &str) -> Document {
        let mut out = Document::new();
        if let Some(value) = self.source.get(keyword) {
            out.push(keyword, value);
        }
        out
    }

    /// `{operatorName, specifiedAs, reason, consideredValue}`.
    fn reasoned(&self, keyword: &str, reason: &str, value: ValueRef<'_>) -> Document {
        doc! {
            "operatorName": keyword,
            "specifiedAs": self.specified_as(keyword),
            "reason": reason,
            "consideredValue": value,
        }
    }

    fn value_failures(&self, value: ValueRef<'_>, out: &mut Vec<Document>) -> Result<()> {
        if let Some(types) = self.types.filter(|t| !t.contains(value.bson_type())) {
            debug_assert!(!types.is_empty(), "parsing refuses an empty set of types");
            let keyword = if self.source.get("bsonType").is_some() {
                "bsonType"
            } else {
                "type"
            };
            let mut failure = self.reasoned(keyword, "type did not match", value);
            failure.push("consideredType", value.bson_type().alias());
            out.push(failure);
        }
        if !self.is_encrypted_as_wanted(value) {
            out.push(self.reasoned("encrypt", "value was not encrypted", value));
        }
        if !self.enum_allows(value) {
            out.push(self.reasoned("enum", "value was not found in enum", value));
        }
        if value.is_number() {
            self.number_failures(value, out);
        }
        if let ValueRef::String(text) = value {
            let length = text.chars().count() as u64;
            let reason = "specified string length was not satisfied";
            if self.min_length.is_some_and(|n| length < n) {
                out.push(self.reasoned("minLength", reason, value));
            }
            if self.max_length.is_some_and(|n| length > n) {
                out.push(self.reasoned("maxLength", reason, value));
            }
            if let Some(pattern) = &self.pattern {
                if !pattern.is_match(text)? {
                    out.push(self.reasoned("pattern", "regular expression did not match", value));
                }
            }
        }
        Ok(())
    }

    fn number_failures(&self, value: ValueRef<'_>, out: &mut Vec<Document>) {
        type Within = fn(&Bound, ValueRef<'_>) -> bool;
        let bounds: [(&str, &str, &Option<Bound>, Within); 2] = [
            ("minimum", "exclusiveMinimum", &self.minimum, above),
            ("maximum", "exclusiveMaximum", &self.maximum, below),
        ];
        for (keyword, exclusive, bound, within) in bounds {
            if bound.as_ref().is_some_and(|b| !within(b, value)) {
                let mut specified = self.specified_as(keyword);
                specified.push(
                    exclusive,
                    self.source.get(exclusive).map_or(Value::Missing, ValueRef::to_value),
                );
                out.push(doc! {
                    "operatorName": keyword,
                    "specifiedAs": specified,
                    "reason": "comparison failed",
                    "consideredValue": value,
                });
            }
        }
        if self.multiple_of.as_ref().is_some_and(|n| !is_multiple(value, n)) {
            let reason = "considered value is not a multiple of the specified value";
            out.push(self.reasoned("multipleOf", reason, value));
        }
    }

    fn array_failures(&self, items: ArrayRef<'_>, out: &mut Vec<Document>) -> Result<()> {
        let value = ValueRef::Array(items);
        let length = items.len() as u64;
        let reason = "array did not match specified length";
        if self.min_items.is_some_and(|n| length < n) {
            out.push(self.reasoned("minItems", reason, value));
        }
        if self.max_items.is_some_and(|n| length > n) {
            out.push(self.reasoned("maxItems", reason, value));
        }
        if let Some(twice) = duplicate(items)?.filter(|_| self.unique_items) {
            let mut failure = self.reasoned("uniqueItems", "found a duplicate item", value);
            failure.push("duplicatedValue", twice);
            out.push(failure);
        }
        let failing = |index: usize, schema: &Schema, item| -> Result<Option<(usize, Vec<Document>)>> {
            let failures = schema.failures(item)?;
            Ok((!failures.is_empty()).then_some((index, failures)))
        };
        for (i, item) in items.iter().enumerate() {
            let Some(schema) = self.item_schema(i) else { break };
            if let Some((index, failures)) = failing(i, schema, item)? {
                out.push(item_failure(
                    "items",
                    "At least one item did not match the sub-schema",
                    index,
                    failures,
                ));
                break;
            }
        }
        let Some(Items::ByPosition(schemas)) = &self.items else {
            return Ok(());
        };
        let rest = || items.iter().enumerate().skip(schemas.len());
        match &self.additional_items {
            Some(Additional::Allowed(false)) if rest().next().is_some() => out.push(doc! {
                "operatorName": "additionalItems",
                "specifiedAs": self.specified_as("additionalItems"),
                "reason": "found additional items",
                "additionalItems": rest().map(|(_, v)| v.to_value()).collect::<Array>(),
            }),
            Some(Additional::Schema(schema)) => {
                for (i, item) in rest() {
                    if let Some((index, failures)) = failing(i, schema, item)? {
                        let reason = "At least one additional item did not match the sub-schema";
                        out.push(item_failure("additionalItems", reason, index, failures));
                        break;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn object_failures(&self, doc: DocRef<'_>, out: &mut Vec<Document>) -> Result<()> {
        let mut unsatisfied = Vec::new();
        for (name, schema) in &self.properties {
            let Some(value) = doc.get(name) else { continue };
            let failures = schema.failures(value)?;
            if !failures.is_empty() {
                let mut failure = doc! { "propertyName": name.clone() };
                for (key, text) in schema.annotations().iter() {
                    failure.push(key, text);
                }
                failure.push("details", documents(failures));
                unsatisfied.push(failure);
            }
        }
        if !unsatisfied.is_empty() {
            out.push(doc! { "operatorName": "properties", "propertiesNotSatisfied": documents(unsatisfied) });
        }
        self.pattern_failures(doc, out)?;
        self.additional_property_failures(doc, out)?;
        let missing: Vec<&Str> = self.required.iter().filter(|name| doc.get(name).is_none()).collect();
        if !missing.is_empty() {
            out.push(doc! {
                "operatorName": "required",
                "specifiedAs": self.specified_as("required"),
                "missingProperties": texts(missing),
            });
        }
        let count = doc.iter().count() as u64;
        for (keyword, failed) in [
            ("minProperties", self.min_properties.is_some_and(|n| count < n)),
            ("maxProperties", self.max_properties.is_some_and(|n| count > n)),
        ] {
            if failed {
                out.push(doc! {
                    "operatorName": keyword,
                    "specifiedAs": self.specified_as(keyword),
                    "reason": "specified number of properties was not satisfied",
                    "numberOfProperties": i32::try_from(count).unwrap_or(i32::MAX),
                });
            }
        }
        self.dependency_failures(doc, out)
    }

    fn pattern_failures(&self, doc: DocRef<'_>, out: &mut Vec<Document>) -> Result<()> {
        let mut failed = Vec::new();
        for (name, value) in doc {
            for (pattern, schema) in &self.pattern_properties {
                if !pattern.is_match(name)? {
                    continue;
                }
                let failures = schema.failures(value)?;
                if !failures.is_empty() {
                    failed.push(doc! {
                        "propertyName": name,
                        "regexMatched": pattern.pattern(),
                        "details": documents(failures),
                    });
                }
            }
        }
        if !failed.is_empty() {
            out.push(doc! { "operatorName": "patternProperties", "details": documents(failed) });
        }
        Ok(())
    }

    fn additional_property_failures(&self, doc: DocRef<'_>, out: &mut Vec<Document>) -> Result<()> {
        let Some(additional) = &self.additional_properties else {
            return Ok(());
        };
        let mut names = Vec::new();
        for (name, value) in doc {
            if !self.is_additional_property(name)? {
                continue;
            }
            match additional {
                Additional::Allowed(true) => return Ok(()),
                Additional::Allowed(false) => names.push(Value::from(name)),
                Additional::Schema(schema) => {
                    let failures = schema.failures(value)?;
                    if !failures.is_empty() {
                        out.push(doc! {
                            "operatorName": "additionalProperties",
                            "reason": "at least one additional property did not match the subschema",
                            "failingProperty": name,
                            "details": documents(failures),
                        });
                        return Ok(());
                    }
                }
            }
        }
        if !names.is_empty() {
            out.push(doc! {
                "operatorName": "additionalProperties",
                "specifiedAs": self.specified_as("additionalProperties"),
                "additionalProperties": names,
            });
        }
        Ok(())
    }

    fn dependency_failures(&self, doc: DocRef<'_>, out: &mut Vec<Document>) -> Result<()> {
        let mut failed = Vec::new();
        for (name, demand) in &self.dependencies {
            if doc.get(name).is_none() {
                continue;
            }
            match demand {
                Dependency::Properties(names) => {
                    let missing: Vec<&Str> = names.iter().filter(|n| doc.get(n).is_none()).collect();
                    if !missing.is_empty() {
                        failed.push(doc! { "conditionalProperty": name.clone(), "missingProperties": texts(missing) });
                    }
                }
                Dependency::Schema(schema) => {
                    let failures = schema.failures(ValueRef::Document(doc))?;
                    if !failures.is_empty() {
                        failed.push(doc! { "conditionalProperty": name.clone(), "details": documents(failures) });
                    }
                }
            }
        }
        if !failed.is_empty() {
            out.push(doc! { "operatorName": "dependencies", "failingDependencies": documents(failed) });
        }
        Ok(())
    }

    fn combination_failures(&self, value: ValueRef<'_>, out: &mut Vec<Document>) -> Result<()> {
        let not_satisfied = |keyword: &str, failed: Vec<Document>| {
            doc! { "operatorName": keyword, "schemasNotSatisfied": documents(failed) }
        };
        let failed = failed_schemas(&self.all_of, value)?;
        if !failed.is_empty() {
            out.push(not_satisfied("allOf", failed));
        }
        let failed = failed_schemas(&self.any_of, value)?;
        if !self.any_of.is_empty() && failed.len() == self.any_of.len() {
            out.push(not_satisfied("anyOf", failed));
        }
        if !self.one_of.is_empty() {
            let failed = failed_schemas(&self.one_of, value)?;
            if failed.len() == self.one_of.len() {
                out.push(not_satisfied("oneOf", failed));
            } else if failed.len() + 1 < self.one_of.len() {
                let mut indexes = Vec::new();
                for (i, schema) in self.one_of.iter().enumerate() {
                    if schema.matches(value)? {
                        indexes.push(index_value(i));
                    }
                }
                out.push(doc! {
                    "operatorName": "oneOf",
                    "reason": "more than one subschema matched",
                    "matchingSchemaIndexes": indexes,
                });
            }
        }
        if let Some(schema) = &self.not {
            if schema.matches(value)? {
                out.push(doc! { "operatorName": "not", "reason": "child expression matched" });
            }
        }
        Ok(())
    }
}

/// `{index, title, description, details}` of each schema that `value` does not satisfy.
fn failed_schemas(schemas: &[Schema], value: ValueRef<'_>) -> Result<Vec<Document>> {
    let mut out = Vec::new();
    for (i, schema) in schemas.iter().enumerate() {
        let failures = schema.failures(value)?;
        if !failures.is_empty() {
            let mut failure = doc! { "index": index_value(i) };
            for (key, text) in schema.annotations().iter() {
                failure.push(key, text);
            }
            failure.push("details", documents(failures));
            out.push(failure);
        }
    }
    Ok(out)
}

fn item_failure(keyword: &str, reason: &str, index: usize, failures: Vec<Document>) -> Document {
    doc! {
        "operatorName": keyword,
        "reason": reason,
        "itemIndex": index_value(index),
        "details": documents(failures),
    }
}

pub(crate) fn index_value(index: usize) -> Value {
    Value::Int32(i32::try_from(index).unwrap_or(i32::MAX))
}

pub(crate) fn documents(docs: Vec<Document>) -> Value {
    Value::Array(docs.into_iter().map(Value::Document).collect())
}

fn texts(names: Vec<&Str>) -> Value {
    Value::Array(names.into_iter().map(|n| Value::from(n.clone())).collect())
}
