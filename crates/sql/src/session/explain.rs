//! The words of EXPLAIN, and its answer as text and as JSON.

use crate::error::{fail, unsupported};
use nestor_model::extjson::{self, Form};
use nestor_model::{Array, Document, Result, Value};
use nestor_planner::relation::explain::Shown;
use sqlparser::ast::{AnalyzeFormat, AnalyzeFormatKind, Expr, UtilityOption, Value as Literal};

/// How a plan is to be explained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// After it has run.
    pub analyze: bool,
    /// As JSON.
    pub json: bool,
}

/// What the words of EXPLAIN ask for. Options that are on unless they are turned off show what is never shown here, so turning them off
/// is all that can be done.
///
/// Errors: 0A000 for options that there are not, 22023 for values that are none.
pub fn wanted(analyze: bool, format: Option<&AnalyzeFormatKind>, options: &[UtilityOption]) -> Result<Wanted> {
    let mut out = Wanted { analyze, json: false };
    match format {
        None => {}
        Some(AnalyzeFormatKind::Keyword(format) | AnalyzeFormatKind::Assignment(format)) => match format {
            AnalyzeFormat::TEXT => {}
            AnalyzeFormat::JSON => out.json = true,
            other => return unsupported(format!("EXPLAIN in the format {other}")),
        },
    }
    for option in options {
        let name = option.name.value.to_lowercase();
        let value = option.arg.as_ref().map(ToString::to_string);
        let value = value.as_deref().map(|value| value.trim_matches('\'').to_lowercase());
        let is_on = || match (&option.arg, value.as_deref()) {
            (None, _) | (_, Some("true" | "on" | "1")) => Ok(true),
            (Some(Expr::Value(value)), _) if matches!(value.value, Literal::Boolean(true)) => Ok(true),
            (_, Some("false" | "off" | "0")) => Ok(false),
            _ => fail("22023", format!("{name} requires a Boolean value")),
        };
        match (name.as_str(), value.as_deref()) {
            ("format", Some("text")) => {}
            ("format", Some("json")) => out.json = true,
            ("format", _) => return unsupported("EXPLAIN in this format"),
            ("analyze", _) => out.analyze = is_on()?,
            ("costs" | "timing" | "summary" | "verbose" | "settings" | "buffers" | "wal", _) => {
                if is_on()? {
                    return unsupported(format!("option {} of EXPLAIN", name.to_uppercase()));
                }
            }
            _ => return fail("42601", format!("unrecognized EXPLAIN option \"{name}\"")),
        }
    }
    Ok(out)
}

fn document(shown: &Shown) -> Document {
    let mut out = Document::new();
    out.push("Node Type", shown.title.as_str());
    for detail in &shown.details {
        let (name, text) = detail.split_once(": ").unwrap_or(("Detail", detail));
        out.push(name, text);
    }
    if let Some(rows) = shown.rows {
        out.push("Actual Rows", i64::try_from(rows).unwrap_or(i64::MAX));
    }
    if !shown.inputs.is_empty() {
        let inputs = shown.inputs.iter().map(|input| Value::from(document(input)));
        out.push("Plans", Value::Array(Array::new(inputs.collect())));
    }
    out
}

/// The answer as JSON.
pub fn json(shown: &Shown) -> String {
    let mut plan = Document::new();
    plan.push("Plan", document(shown));
    let all = Value::Array(Array::new(vec![plan.into()]));
    extjson::to_string(&all, Form::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_are_fields() {
        let shown = Shown {
            title: "Scan on t".to_owned(),
            details: vec!["Access: IXSCAN { a: 1 }".to_owned()],
            rows: Some(3),
            inputs: Vec::new(),
        };
        assert_eq!(
            json(&shown).replace(' ', ""),
            r#"[{"Plan":{"NodeType":"Scanont","Access":"IXSCAN{a:1}","ActualRows":3}}]"#
        );
    }
}
