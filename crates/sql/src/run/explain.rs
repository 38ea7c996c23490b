//! The words of EXPLAIN, and its answer as text and with fields.

use super::explain_formats;
use super::query::Explained;
use crate::error::{fail, unsupported};
use crate::types::Type;
use nestor_model::extjson::{self, Form};
use nestor_model::{Array, Document, Result, Value};
use nestor_planner::relation::explain::{ColumnFigures, Ran, Shown};
use sqlparser::ast::{AnalyzeFormat, AnalyzeFormatKind, Expr, UtilityOption, Value as Literal};
use std::fmt::Write as _;
use std::time::Duration;

/// What an explanation is written as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Lines for people.
    #[default]
    Text,
    /// JSON.
    Json,
    /// XML.
    Xml,
    /// YAML.
    Yaml,
}

impl Format {
    /// The type of the answer. XML is text, as there is no type for it.
    pub fn ty(self) -> Type {
        match self {
            Self::Json => Type::Json,
            _ => Type::Text,
        }
    }

    /// The format of a name.
    ///
    /// Errors: 22023.
    fn of(name: &str) -> Result<Self> {
        Ok(match name {
            "text" => Self::Text,
            "json" => Self::Json,
            "xml" => Self::Xml,
            "yaml" => Self::Yaml,
            other => {
                return fail(
                    "22023",
                    format!("unrecognized value for EXPLAIN option \"format\": \"{other}\""),
                );
            }
        })
    }
}

/// How a plan is to be explained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// After it has run.
    pub analyze: bool,
    /// As what.
    pub format: Format,
    /// With the time of each node.
    pub timing: bool,
    /// With what was read.
    pub buffers: bool,
    /// With the time of planning, and of running.
    pub summary: bool,
    /// With the settings that are others than sessions begin with.
    pub settings: bool,
}

/// What the words of EXPLAIN ask for. COSTS can be turned off only.
///
/// Errors: 0A000 for options that there are not, 22023 for values that are none, and for TIMING and BUFFERS without ANALYZE.
pub fn wanted(analyze: bool, format: Option<&AnalyzeFormatKind>, options: &[UtilityOption]) -> Result<Wanted> {
    let mut out = Wanted {
        analyze,
        ..Wanted::default()
    };
    let (mut timing, mut summary, mut wal) = (None, None, false);
    match format {
        None => {}
        Some(AnalyzeFormatKind::Keyword(format) | AnalyzeFormatKind::Assignment(format)) => match format {
            AnalyzeFormat::TEXT => {}
            AnalyzeFormat::JSON => out.format = Format::Json,
            other => out.format = Format::of(&other.to_string().to_lowercase())?,
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
            ("format", Some(format)) => out.format = Format::of(format)?,
            ("format", None) => return fail("42601", "format requires a parameter"),
            ("analyze", _) => out.analyze = is_on()?,
            ("timing", _) => timing = Some(is_on()?),
            ("summary", _) => summary = Some(is_on()?),
            ("buffers", _) => out.buffers = is_on()?,
            // What nodes give is always shown.
            ("verbose", _) => {
                is_on()?;
            }
            ("settings", _) => out.settings = is_on()?,
            // What is explained while it runs writes nothing.
            ("wal", _) => wal = is_on()?,
            ("costs", _) => {
                if is_on()? {
                    return unsupported("option COSTS of EXPLAIN");
                }
            }
            _ => return fail("42601", format!("unrecognized EXPLAIN option \"{name}\"")),
        }
    }
    if timing == Some(true) && !out.analyze {
        return fail("22023", "EXPLAIN option TIMING requires ANALYZE");
    }
    if out.buffers && !out.analyze {
        return fail("22023", "EXPLAIN option BUFFERS requires ANALYZE");
    }
    if wal && !out.analyze {
        return fail("22023", "EXPLAIN option WAL requires ANALYZE");
    }
    out.timing = out.analyze && timing.unwrap_or(true);
    out.summary = summary.unwrap_or(out.analyze);
    Ok(out)
}

fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// What a node read, and where it put rows, as names with numbers.
fn reads(ran: &Ran, wanted: Wanted) -> Vec<(&'static str, u64)> {
    let mut out = Vec::new();
    if wanted.buffers && ran.columns != ColumnFigures::default() {
        out.push(("Column Segments", ran.columns.segments));
        out.push(("Column Segments Skipped", ran.columns.skipped));
        out.push(("Column Rows", ran.columns.rows));
        out.push(("Column Bytes", ran.columns.bytes));
        out.push(("Column Bytes Skipped", ran.columns.bytes_skipped));
    }
    if wanted.buffers && ran.keys + ran.documents > 0 {
        out.push(("Keys Examined", ran.keys));
        out.push(("Documents Examined", ran.documents));
        out.push(("Bytes Read", ran.bytes));
    }
    out
}

fn document(shown: &Shown, wanted: Wanted) -> Document {
    let mut out = Document::new();
    out.push("Node Type", shown.title.as_str());
    for detail in &shown.details {
        let (name, text) = detail.split_once(": ").unwrap_or(("Detail", detail));
        out.push(name, text);
    }
    if let Some(ran) = &shown.ran {
        let average = ran.average();
        if wanted.timing {
            out.push("Actual Startup Time", milliseconds(average.startup));
            out.push("Actual Total Time", milliseconds(average.total));
        }
        out.push("Actual Rows", number(average.rows));
        out.push("Actual Loops", number(ran.loops));
        if let Some(removed) = shown.removed {
            out.push("Rows Removed by Filter", number(removed / ran.loops.max(1)));
        }
        for (name, count) in reads(ran, wanted) {
            out.push(name, number(count));
        }
        if ran.helpers > 0 {
            out.push("Helpers", number(ran.helpers));
        }
        if ran.spilled {
            out.push("Storage", "Disk");
        }
        if ran.spilled_bytes > 0 {
            out.push("Disk Usage", number(ran.spilled_bytes.div_ceil(1024)));
        }
    }
    if !shown.inputs.is_empty() {
        let inputs = shown.inputs.iter().map(|input| Value::from(document(input, wanted)));
        out.push("Plans", Value::Array(Array::new(inputs.collect())));
    }
    out
}

/// The answer as one text with fields.
pub fn fields(explained: &Explained, wanted: Wanted) -> String {
    let plan = query(explained, wanted);
    match wanted.format {
        Format::Xml => explain_formats::xml(&plan),
        Format::Yaml => explain_formats::yaml(&plan),
        Format::Json | Format::Text => {
            let all = Value::Array(Array::new(vec![plan.into()]));
            extjson::to_string(&all, Form::Relaxed)
        }
    }
}

fn query(explained: &Explained, wanted: Wanted) -> Document {
    let mut plan = Document::new();
    plan.push("Plan", document(&explained.shown, wanted));
    if wanted.settings {
        let mut settings = Document::new();
        for (name, value) in &explained.settings {
            settings.push(name.as_str(), value.as_str());
        }
        plan.push("Settings", settings);
    }
    if wanted.summary {
        plan.push("Planning Time", milliseconds(explained.planning));
        if let Some(execution) = explained.execution {
            plan.push("Execution Time", milliseconds(execution));
        }
    }
    plan
}

/// The answer as lines of text: one for each node, indented below what it feeds, then what is known of it.
pub fn text(explained: &Explained, wanted: Wanted) -> Vec<String> {
    let mut out = Vec::new();
    print(&explained.shown, wanted, 0, &mut out);
    if !explained.settings.is_empty() {
        let each = explained.settings.iter();
        let each: Vec<String> = each.map(|(name, value)| format!("{name} = '{value}'")).collect();
        out.push(format!("Settings: {}", each.join(", ")));
    }
    if wanted.summary {
        out.push(format!("Planning Time: {:.3} ms", milliseconds(explained.planning)));
        out.extend(
            explained
                .execution
                .map(|took| format!("Execution Time: {:.3} ms", milliseconds(took))),
        );
    }
    out
}

fn print(shown: &Shown, wanted: Wanted, depth: usize, out: &mut Vec<String>) {
    let indent = match depth {
        0 => String::new(),
        _ => format!("{}->  ", " ".repeat(depth * 6 - 4)),
    };
    let below = " ".repeat(depth * 6 + 2);
    let mut line = format!("{indent}{}", shown.title);
    // Writing to a string cannot fail.
    let _ = match &shown.ran {
        None => Ok(()),
        Some(ran) if ran.loops == 0 => write!(line, "  (never executed)"),
        Some(ran) => {
            let average = ran.average();
            let time = match wanted.timing {
                true => format!(
                    "time={:.3}..{:.3} ",
                    milliseconds(average.startup),
                    milliseconds(average.total)
                ),
                false => String::new(),
            };
            write!(line, "  (actual {time}rows={} loops={})", average.rows, ran.loops)
        }
    };
    out.push(line);
    out.extend(shown.details.iter().map(|detail| format!("{below}{detail}")));
    if let Some(ran) = &shown.ran {
        let removed = shown.removed.map_or(0, |removed| removed / ran.loops.max(1));
        if removed > 0 {
            out.push(format!("{below}Rows Removed by Filter: {removed}"));
        }
        out.extend(
            reads(ran, wanted)
                .into_iter()
                .map(|(name, count)| format!("{below}{name}: {count}")),
        );
        if ran.helpers > 0 {
            out.push(format!("{below}Helpers: {}", ran.helpers));
        }
        if ran.spilled {
            out.push(format!("{below}Storage: Disk"));
        }
        if ran.spilled_bytes > 0 {
            out.push(format!("{below}Disk Usage: {}kB", ran.spilled_bytes.div_ceil(1024)));
        }
    }
    for input in &shown.inputs {
        print(input, wanted, depth + 1, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_are_fields() {
        let ran = Ran {
            loops: 2,
            rows: 6,
            keys: 8,
            documents: 7,
            bytes: 100,
            ..Ran::default()
        };
        let explained = Explained {
            shown: Shown {
                title: "Scan on t".to_owned(),
                details: vec!["Access: IXSCAN { a: 1 }".to_owned()],
                ran: Some(ran),
                removed: None,
                in_order: false,
                inputs: Vec::new(),
            },
            planning: Duration::from_micros(1500),
            execution: None,
            settings: Vec::new(),
        };
        let wanted = Wanted {
            buffers: true,
            summary: true,
            ..Wanted::default()
        };
        assert_eq!(
            fields(&explained, wanted).replace(' ', ""),
            r#"[{"Plan":{"NodeType":"Scanont","Access":"IXSCAN{a:1}","ActualRows":3,"ActualLoops":2,"KeysExamined":8,"DocumentsExamined":7,"BytesRead":100},"PlanningTime":1.5}]"#
        );
        assert_eq!(
            text(&explained, wanted),
            [
                "Scan on t  (actual rows=3 loops=2)",
                "  Access: IXSCAN { a: 1 }",
                "  Keys Examined: 8",
                "  Documents Examined: 7",
                "  Bytes Read: 100",
                "Planning Time: 1.500 ms",
            ]
        );
    }
}
