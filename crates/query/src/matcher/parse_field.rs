//! Parsing conditions on one field: implicit equality and field operators.

use super::parse::{Context, Parser, and};
use super::predicate::truncated;
use super::{BitOp, BitTest, CompareOp, InSet, MatchExpr, ModTest, Predicate};
use crate::geo::{GeoOp, GeoTest, NEAR_OPERATORS, Near};
use crate::regex::Regex;
use crate::types::TypeSet;
use nestor_model::number::whole_number;
use nestor_model::{DocRef, Path, Result, ValueRef, bail};
use std::sync::Arc;

/// Whether a document under a field is read as operators: its first name starts with `$` and it is no
/// DBRef (`$ref` and `$id` for sure; inside `$elemMatch`, where single fields of one are conditions,
/// `incomplete` DBRefs count too).
pub(crate) fn is_operator_document(doc: DocRef<'_>, incomplete: bool) -> bool {
    let starts = doc.iter().next().is_some_and(|(name, _)| name.starts_with('$'));
    starts && !is_dbref(doc, incomplete)
}

fn is_dbref(doc: DocRef<'_>, incomplete: bool) -> bool {
    let is_text = |name| matches!(doc.get(name), Some(ValueRef::String(_)));
    let (has_ref, has_id, has_db) = (is_text("$ref"), doc.get("$id").is_some(), is_text("$db"));
    if incomplete {
        has_ref || has_id || has_db
    } else {
        has_ref && has_id
    }
}

impl Parser<'_> {
    /// Appends the conditions that `{path: value}` states.
    pub(super) fn field(&mut self, path: &Path, value: ValueRef<'_>, out: &mut Vec<MatchExpr>) -> Result<()> {
        match value {
            ValueRef::Document(doc) if is_operator_document(doc, false) => self.operators(path, doc, out),
            ValueRef::Regex { pattern, options } => {
                out.push(regex(path, pattern, options)?);
                Ok(())
            }
            _ => {
                out.push(self.comparison(path, CompareOp::Eq, value)?);
                Ok(())
            }
        }
    }

    /// Appends one condition for each operator of `doc`.
    pub(super) fn operators(&mut self, path: &Path, doc: DocRef<'_>, out: &mut Vec<MatchExpr>) -> Result<()> {
        if doc.iter().any(|(name, _)| NEAR_OPERATORS.contains(&name)) {
            out.push(self.near(path, doc)?);
            return Ok(());
        }
        for (name, value) in doc {
            let condition = match name {
                // $options belongs to $regex, wherever it stands.
                "$options" if doc.get("$regex").is_some() => continue,
                "$options" => bail!(BadValue, "$options needs a $regex"),
                "$regex" => self.regex_operator(path, value, doc)?,
                "$geoWithin" | "$within" | "$geoIntersects" => {
                    GeoTest::check_alone(doc)?;
                    self.operator(path, name, value)?
                }
                _ => self.operator(path, name, value)?,
            };
            out.push(condition);
        }
        Ok(())
    }

    fn operator(&mut self, path: &Path, name: &str, value: ValueRef<'_>) -> Result<MatchExpr> {
        let leaf = |predicate| MatchExpr::leaf(path.clone(), predicate);
        let not = |expr| MatchExpr::Not(Box::new(expr));
        Ok(match name {
            "$eq" => self.comparison(path, CompareOp::Eq, value)?,
            "$lt" => self.comparison(path, CompareOp::Lt, value)?,
            "$lte" => self.comparison(path, CompareOp::Lte, value)?,
            "$gt" => self.comparison(path, CompareOp::Gt, value)?,
            "$gte" => self.comparison(path, CompareOp::Gte, value)?,
            "$ne" => {
                if matches!(value, ValueRef::Regex { .. }) {
                    bail!(BadValue, "can't have regex as arg to $ne");
                }
                not(self.comparison(path, CompareOp::Eq, value)?)
            }
            "$in" => leaf(Predicate::In(self.in_set("$in", value)?)),
            "$nin" => not(leaf(Predicate::In(self.in_set("$nin", value)?))),
            "$not" => not(self.not(path, value)?),
            "$exists" if value.truthy() => leaf(Predicate::Exists),
            "$exists" => not(leaf(Predicate::Exists)),
            "$type" => leaf(Predicate::Type(TypeSet::parse(value)?)),
            "$size" => leaf(Predicate::Size(size(value)?)),
            "$mod" => leaf(Predicate::Mod(modulus(value)?)),
            "$all" => self.all(path, value)?,
            "$elemMatch" => leaf(self.elem_match(value)?),
            "$bitsAllSet" => leaf(Predicate::Bits(BitTest::parse(BitOp::AllSet, value)?)),
            "$bitsAnySet" => leaf(Predicate::Bits(BitTest::parse(BitOp::AnySet, value)?)),
            "$bitsAllClear" => leaf(Predicate::Bits(BitTest::parse(BitOp::AllClear, value)?)),
            "$bitsAnyClear" => leaf(Predicate::Bits(BitTest::parse(BitOp::AnyClear, value)?)),
            "$geoWithin" | "$within" => leaf(Predicate::Geo(Arc::new(GeoTest::parse(GeoOp::Within, value)?))),
            "$geoIntersects" => leaf(Predicate::Geo(Arc::new(GeoTest::parse(GeoOp::Intersects, value)?))),
            _ => bail!(BadValue, "unknown operator: {name}"),
        })
    }

    /// `{$near: ..., $minDistance: ..., $maxDistance: ...}`, which only one condition of a filter may be, beside others.
    fn near(&mut self, path: &Path, doc: DocRef<'_>) -> Result<MatchExpr> {
        if self.context != Context::Find {
            bail!(
                5626500,
                "$geoNear, $near, and $nearSphere are not allowed in this context"
            );
        }
        let near = Near::parse(doc)?;
        self.nears += 1;
        Ok(MatchExpr::leaf(path.clone(), Predicate::Near(Arc::new(near))))
    }

    fn comparison(&mut self, path: &Path, op: CompareOp, value: ValueRef<'_>) -> Result<MatchExpr> {
        if matches!(value, ValueRef::Undefined) {
            bail!(BadValue, "cannot compare to undefined");
        }
        if op != CompareOp::Eq && matches!(value, ValueRef::Regex { .. }) {
            bail!(BadValue, "can't have RegEx as arg to predicate over field '{path}'");
        }
        Ok(MatchExpr::leaf(
            path.clone(),
            Predicate::Compare {
                op,
                value: value.to_value(),
                collator: self.scope.collator().cloned(),
            },
        ))
    }

    fn in_set(&mut self, name: &str, value: ValueRef<'_>) -> Result<InSet> {
        let ValueRef::Array(items) = value else {
            bail!(BadValue, "{name} needs an array");
        };
        let (mut values, mut regexes) = (Vec::new(), Vec::new());
        for item in items {
            match item {
                ValueRef::Document(doc) if is_operator_document(doc, false) => {
                    bail!(BadValue, "cannot nest $ under {name}")
                }
                ValueRef::Undefined => bail!(BadValue, "cannot compare to undefined"),
                ValueRef::Regex { pattern, options } => regexes.push(Regex::new(pattern, options)?),
                _ => values.push(item.to_value()),
            }
        }
        Ok(InSet::new(values, regexes, self.scope.collator().cloned()))
    }

    fn not(&mut self, path: &Path, value: ValueRef<'_>) -> Result<MatchExpr> {
        match value {
            ValueRef::Regex { pattern, options } => regex(path, pattern, options),
            ValueRef::Document(doc) => {
                if doc.is_empty() {
                    bail!(BadValue, "$not cannot be empty");
                }
                let mut children = Vec::new();
                self.operators(path, doc, &mut children)?;
                Ok(and(children))
            }
            _ => bail!(BadValue, "$not needs a regex or a document"),
        }
    }

    fn all(&mut self, path: &Path, value: ValueRef<'_>) -> Result<MatchExpr> {
        let ValueRef::Array(items) = value else {
            bail!(BadValue, "$all needs an array");
        };
        let first_operator = |item: ValueRef<'_>| match item {
            ValueRef::Document(doc) => doc.iter().next().map(|(name, _)| name.to_owned()),
            _ => None,
        };
        let by_element = items.iter().next().and_then(first_operator).as_deref() == Some("$elemMatch");
        let mut children = Vec::new();
        for item in items {
            let operator = first_operator(item);
            match item {
                ValueRef::Document(doc) if by_element && operator.as_deref() == Some("$elemMatch") => {
                    if let Some((name, _)) = doc.iter().nth(1) {
                        bail!(BadValue, "$all/$elemMatch cannot have another field: {name}");
                    }
                    let condition = doc.get("$elemMatch").unwrap_or(ValueRef::Missing);
                    children.push(MatchExpr::leaf(path.clone(), self.elem_match(condition)?));
                }
                _ if by_element => bail!(BadValue, "$all/$elemMatch has to be consistent"),
                _ if operator.as_deref().is_some_and(is_field_operator) => {
                    bail!(BadValue, "no $ expressions in $all")
                }
                ValueRef::Regex { pattern, options } => children.push(regex(path, pattern, options)?),
                _ => children.push(self.comparison(path, CompareOp::Eq, item)?),
            }
        }
        if children.is_empty() {
            return Ok(MatchExpr::AlwaysFalse);
        }
        Ok(and(children))
    }

    /// The predicate of an `$elemMatch`.
    pub(crate) fn elem_match(&mut self, value: ValueRef<'_>) -> Result<Predicate> {
        let ValueRef::Document(doc) = value else {
            bail!(BadValue, "$elemMatch needs an Object");
        };
        let outer = std::mem::replace(&mut self.at_top, false);
        // An operator that stands without a path makes it an object $elemMatch; any other is on the value.
        let pathless = doc.iter().next().is_some_and(|(name, _)| is_pathless_operator(name));
        let predicate = if is_operator_document(doc, true) && !pathless {
            let mut children = Vec::new();
            self.operators(&Path::new(""), doc, &mut children)
                .map(|()| Predicate::ElemMatchValue(Box::new(and(children))))
        } else {
            self.document(doc)
                .map(|inner| Predicate::ElemMatchObject(Box::new(inner)))
        };
        self.at_top = outer;
        predicate
    }

    fn regex_operator(&mut self, path: &Path, value: ValueRef<'_>, doc: DocRef<'_>) -> Result<MatchExpr> {
        let (pattern, flags) = match value {
            ValueRef::String(pattern) => (pattern, ""),
            ValueRef::Regex { pattern, options } => (pattern, options),
            _ => bail!(BadValue, "$regex has to be a string"),
        };
        let options = match doc.get("$options") {
            None => flags,
            Some(ValueRef::String(options)) => {
                if !flags.is_empty() {
                    let options_first = doc.iter().find_map(|(name, _)| match name {
                        "$options" => Some(true),
                        "$regex" => Some(false),
                        _ => None,
                    });
                    let code = if options_first == Some(true) { 51074 } else { 51075 };
                    return Err(nestor_model::Error::location(
                        code,
                        "options set in both $regex and $options",
                    ));
                }
                options
            }
            Some(_) => bail!(BadValue, "$options has to be a string"),
        };
        regex(path, pattern, options)
    }
}

fn regex(path: &Path, pattern: &str, options: &str) -> Result<MatchExpr> {
    Ok(MatchExpr::leaf(
        path.clone(),
        Predicate::Regex(Regex::new(pattern, options)?),
    ))
}

fn size(value: ValueRef<'_>) -> Result<i64> {
    if !value.is_number() {
        bail!(
            BadValue,
            "failed to parse $size; expected a number in: $size: {value:?}"
        );
    }
    match whole_number(value) {
        Some(size @ 0..) if i32::try_from(size).is_ok() => Ok(size),
        Some(0..) => bail!(
            BadValue,
            "failed to parse $size; expected an integer that fits an int: $size: {value:?}"
        ),
        Some(_) => bail!(
            BadValue,
            "failed to parse $size; expected a non-negative number in: $size: {value:?}"
        ),
        None => bail!(BadValue, "failed to parse $size; expected an integer: $size: {value:?}"),
    }
}

fn modulus(value: ValueRef<'_>) -> Result<ModTest> {
    let ValueRef::Array(items) = value else {
        bail!(BadValue, "malformed mod, needs to be an array");
    };
    let mut items = items.iter();
    let (Some(divisor), Some(remainder)) = (items.next(), items.next()) else {
        bail!(BadValue, "malformed mod, not enough elements");
    };
    if items.next().is_some() {
        bail!(BadValue, "malformed mod, too many elements");
    }
    for (what, value) in [("divisor", divisor), ("remainder", remainder)] {
        if !value.is_number() {
            bail!(BadValue, "malformed mod, {what} not a number");
        }
    }
    let (Some(divisor), Some(remainder)) = (truncated(divisor), truncated(remainder)) else {
        bail!(
            BadValue,
            "malformed mod, divisor or remainder is not a number that fits 64 bits"
        );
    };
    if divisor == 0 {
        bail!(BadValue, "divisor cannot be 0");
    }
    Ok(ModTest { divisor, remainder })
}

fn is_pathless_operator(name: &str) -> bool {
    matches!(
        name,
        "$and"
            | "$or"
            | "$nor"
            | "$where"
            | "$expr"
            | "$text"
            | "$jsonSchema"
            | "$comment"
            | "$sampleRate"
            | "$alwaysTrue"
            | "$alwaysFalse"
    )
}

fn is_field_operator(name: &str) -> bool {
    matches!(
        name,
        "$eq"
            | "$ne"
            | "$gt"
            | "$gte"
            | "$lt"
            | "$lte"
            | "$in"
            | "$nin"
            | "$all"
            | "$size"
            | "$exists"
            | "$type"
            | "$mod"
            | "$regex"
            | "$options"
            | "$elemMatch"
            | "$not"
            | "$near"
            | "$nearSphere"
            | "$geoNear"
            | "$geoWithin"
            | "$within"
            | "$geoIntersects"
            | "$bitsAllSet"
            | "$bitsAnySet"
            | "$bitsAllClear"
            | "$bitsAnyClear"
            | "$maxDistance"
            | "$minDistance"
    )
}
