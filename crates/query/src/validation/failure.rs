//! Why a document does not match a validator: `errInfo` of error 121.

use crate::env::{Env, OpContext};
use crate::geo::GeoOp;
use crate::json_schema::explain::{documents, index_value};
use crate::matcher::{Leaf, Leaves, MatchExpr, Predicate, walk};
use nestor_model::{DocRef, Document, Error, ErrorCode, Path, Result, Value, ValueRef, doc};

/// Longest value that is repeated in the details, in bytes; longer ones are left out.
const CONSIDERED_BYTES_MAX: usize = 64 * 1024;

/// The error for `document`, which `validator` does not match: `errInfo` holds `failingDocumentId` and `details`.
pub fn validation_error(validator: &MatchExpr, document: DocRef<'_>, op: &OpContext) -> Error {
    let mut info = Document::new();
    info.push(
        "failingDocumentId",
        document.get("_id").map_or(Value::Missing, ValueRef::to_value),
    );
    // Details are a courtesy: whatever keeps them from being found does not hide the failure itself.
    if let Ok(details) = details(validator, document, op) {
        info.push("details", details);
    }
    Error::new(ErrorCode::DocumentValidationFailure, "Document failed validation").with_extra(doc! { "errInfo": info })
}

/// Why `document` does not match `validator`, in the form of `details`.
pub fn details(validator: &MatchExpr, document: DocRef<'_>, op: &OpContext) -> Result<Document> {
    Explain { document, op }.expr(validator, true)
}

struct Explain<'a> {
    document: DocRef<'a>,
    op: &'a OpContext,
}

impl Explain<'_> {
    /// Details of `expr`, which failed; or, when not `wanted`, which matched and should not have.
    fn expr(&self, expr: &MatchExpr, wanted: bool) -> Result<Document> {
        Ok(match expr {
            MatchExpr::And(children) => self.clauses("$and", children, wanted, wanted)?,
            MatchExpr::Or(children) => self.clauses("$or", children, wanted, wanted)?,
            MatchExpr::Nor(children) => self.clauses("$nor", children, wanted, !wanted)?,
            MatchExpr::Not(child) => match (&**child, wanted) {
                (MatchExpr::Leaf(leaf), true) => self.leaf(leaf, false)?,
                _ => doc! { "operatorName": "$not", "details": self.expr(child, !wanted)? },
            },
            MatchExpr::Leaf(leaf) => self.leaf(leaf, wanted)?,
            MatchExpr::Expr(test) => doc! {
                "operatorName": "$expr",
                "specifiedAs": expr.serialize(),
                "reason": if wanted { "expression did not match" } else { "expression did match" },
                "expressionResult": test.expr.eval(&mut Env::new(self.document, self.op))?,
            },
            MatchExpr::JsonSchema(schema) => {
                let mut out = doc! { "operatorName": "$jsonSchema" };
                for (key, text) in schema.annotations().iter() {
                    out.push(key, text);
                }
                if wanted {
                    out.push(
                        "schemaRulesNotSatisfied",
                        documents(schema.failures(ValueRef::Document(self.document))?),
                    );
                } else {
                    out.push("reason", "schema matched");
                }
                out
            }
            MatchExpr::AlwaysFalse => doc! {
                "operatorName": "$alwaysFalse",
                "specifiedAs": expr.serialize(),
                "reason": "expression always evaluates to false",
            },
            MatchExpr::AlwaysTrue => doc! {
                "operatorName": "$alwaysTrue",
                "specifiedAs": doc! { "$alwaysTrue": 1 },
                "reason": "expression always evaluates to true",
            },
            MatchExpr::SampleRate(_) => doc! {
                "operatorName": "$sampleRate",
                "specifiedAs": expr.serialize(),
                "reason": "document was not sampled",
            },
            // Validators have none.
            MatchExpr::Text(_) => doc! {
                "operatorName": "$text",
                "specifiedAs": expr.serialize(),
                "reason": "document lacks what was searched for",
            },
        })
    }

    /// `wanted`: the whole should have matched. `children_wanted`: its clauses should have.
    fn clauses(&self, name: &str, children: &[MatchExpr], wanted: bool, children_wanted: bool) -> Result<Document> {
        let mut clauses = Vec::new();
        for (i, child) in children.iter().enumerate() {
            if child.matches(self.document, self.op)? != children_wanted {
                clauses.push(doc! { "index": index_value(i), "details": self.expr(child, children_wanted)? });
            }
        }
        debug_assert!(
            wanted != children_wanted || !clauses.is_empty(),
            "a failed list has a clause to blame"
        );
        let list = if children_wanted {
            "clausesNotSatisfied"
        } else {
            "clausesSatisfied"
        };
        let mut out = doc! { "operatorName": name };
        out.push(list, documents(clauses));
        Ok(out)
    }

    fn leaf(&self, leaf: &Leaf, wanted: bool) -> Result<Document> {
        let considered = considered(self.document, &leaf.path)?;
        let (name, specified) = name_and_operand(leaf, wanted);
        let mut on_path = Document::new();
        on_path.push(leaf.path.as_str(), specified);
        let mut out = doc! { "operatorName": name, "specifiedAs": on_path };
        if let Predicate::Exists = leaf.predicate {
            out.push(
                "reason",
                if wanted {
                    "path does not exist"
                } else {
                    "path does exist"
                },
            );
            return Ok(out);
        }
        if considered.is_empty() && wanted {
            out.push("reason", "field was missing");
            return Ok(out);
        }
        let fits = |v: &Value| {
            expected_types(&leaf.predicate).is_empty()
                || expected_types(&leaf.predicate).contains(&v.bson_type().alias())
        };
        if wanted && !considered.iter().any(fits) {
            out.push("reason", "type did not match");
        } else {
            out.push("reason", reason(&leaf.predicate, wanted));
        }
        let types: Vec<&str> = considered.iter().map(|v| v.bson_type().alias()).collect();
        let show_types = wanted && (matches!(leaf.predicate, Predicate::Type(_)) || !considered.iter().any(fits));
        let expected = expected_types(&leaf.predicate);
        match considered.len() {
            0 => {}
            1 => {
                let kind = types.first().copied().unwrap_or_default();
                push_considered(
                    &mut out,
                    "consideredValue",
                    considered.into_iter().next().unwrap_or(Value::Missing),
                );
                if show_types {
                    out.push("consideredType", kind);
                }
            }
            _ => {
                push_considered(&mut out, "consideredValues", Value::from(considered));
                if show_types {
                    let mut distinct = types;
                    distinct.sort_unstable();
                    distinct.dedup();
                    out.push(
                        "consideredTypes",
                        distinct.into_iter().map(Value::from).collect::<Vec<_>>(),
                    );
                }
            }
        }
        if show_types && !expected.is_empty() {
            match expected {
                [one] => out.push("expectedType", *one),
                many => out.push(
                    "expectedTypes",
                    many.iter().map(|t| Value::from(*t)).collect::<Vec<_>>(),
                ),
            }
        }
        Ok(out)
    }
}

fn push_considered(out: &mut Document, name: &str, value: Value) {
    let mut probe = Document::new();
    probe.push("", value.clone());
    if probe.to_raw().as_bytes().len() <= CONSIDERED_BYTES_MAX {
        out.push(name, value);
    } else {
        out.push("consideredValuesTruncated", true);
    }
}

/// The values the path reaches, an array as a whole being one.
fn considered(doc: DocRef<'_>, path: &Path) -> Result<Vec<Value>> {
    let mut values = Vec::new();
    walk(ValueRef::Document(doc), path.parts(), Leaves::Whole, &mut |v| {
        if !v.is_missing() {
            values.push(v.to_value());
        }
        Ok(false)
    })?;
    Ok(values)
}

/// The operator's name and operand as they were written: `$ne` rather than a negated `$eq`.
fn name_and_operand(leaf: &Leaf, wanted: bool) -> (&'static str, Document) {
    let positive = leaf.predicate.serialize();
    let operand = positive.iter().next().map_or(Value::Missing, |(_, v)| v.to_value());
    let name = operator_name(&leaf.predicate);
    let negative = match name {
        _ if wanted => return (name, positive),
        "$eq" => "$ne",
        "$in" => "$nin",
        "$exists" => return (name, doc! { "$exists": false }),
        _ => return ("$not", doc! { "$not": positive }),
    };
    let mut out = Document::new();
    out.push(negative, operand);
    (negative, out)
}

fn operator_name(predicate: &Predicate) -> &'static str {
    match predicate {
        Predicate::Compare { op, .. } => op.name(),
        Predicate::In(_) => "$in",
        Predicate::Regex(_) => "$regex",
        Predicate::Exists => "$exists",
        Predicate::Type(_) => "$type",
        Predicate::Size(_) => "$size",
        Predicate::Mod(_) => "$mod",
        Predicate::Bits(test) => test.op().name(),
        Predicate::Geo(test) => test.op().name(),
        Predicate::Near(near) => near.name(),
        Predicate::ElemMatchObject(_) | Predicate::ElemMatchValue(_) => "$elemMatch",
    }
}

fn reason(predicate: &Predicate, wanted: bool) -> &'static str {
    match (predicate, wanted) {
        (Predicate::Compare { .. }, true) => "comparison failed",
        (Predicate::Compare { .. }, false) => "comparison succeeded",
        (Predicate::In(_), true) => "no matching value found in array",
        (Predicate::In(_), false) => "matching value found in array",
        (Predicate::Regex(_), true) => "regular expression did not match",
        (Predicate::Regex(_), false) => "regular expression did match",
        (Predicate::Exists, true) => "path does not exist",
        (Predicate::Exists, false) => "path does exist",
        (Predicate::Type(_), true) => "type did not match",
        (Predicate::Type(_), false) => "type did match",
        (Predicate::Size(_), true) => "array length was not equal to given size",
        (Predicate::Size(_), false) => "array length was equal to given size",
        (Predicate::Mod(_), true) => "$mod did not evaluate to expected remainder",
        (Predicate::Mod(_), false) => "$mod did evaluate to expected remainder",
        (Predicate::Bits(_), true) => "bitwise operator failed to match",
        (Predicate::Bits(_), false) => "bitwise operator matched successfully",
        (Predicate::Geo(test), wanted) => match (test.op(), wanted) {
            (GeoOp::Within, true) => "none of the considered geometries was contained within the expression's geometry",
            (GeoOp::Within, false) => {
                "at least one of the considered geometries was contained within the expression's geometry"
            }
            (GeoOp::Intersects, true) => "none of the considered geometries intersected the expression's geometry",
            (GeoOp::Intersects, false) => {
                "at least one of the considered geometries intersected the expression's geometry"
            }
        },
        (_, true) => "array did not satisfy the child predicate",
        (_, false) => "array did satisfy the child predicate",
    }
}

/// Types the operator can match at all; empty for any.
fn expected_types(predicate: &Predicate) -> &'static [&'static str] {
    match predicate {
        Predicate::Mod(_) => &["decimal", "double", "int", "long", "array"],
        Predicate::Bits(_) => &["binData", "decimal", "double", "int", "long", "array"],
        Predicate::Regex(_) => &["regex", "string", "symbol", "array"],
        Predicate::Geo(_) | Predicate::Near(_) => &["array", "object"],
        Predicate::Size(_) | Predicate::ElemMatchObject(_) | Predicate::ElemMatchValue(_) => &["array"],
        _ => &[],
    }
}
