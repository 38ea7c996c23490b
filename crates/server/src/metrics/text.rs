//! `serverStatus` as Prometheus' text format.
//!
//! Names are those of mongodb_exporter, so that its dashboards work: `mongodb_ss_` and the path of the field, its parts joined by `_`;
//! where fields of a section are alike but for what they count, their names become a label ([`LABELS`]).

use nestor_model::{DocRef, ValueRef};
use std::fmt::Write as _;

/// Sections whose fields become values of a label.
const LABELS: [(&str, &str); 12] = [
    ("asserts", "assert_type"),
    ("connections", "conn_type"),
    ("globalLock_activeClients", "count_type"),
    ("globalLock_currentQueue", "count_type"),
    ("metrics_commands", "cmd_name"),
    ("metrics_cursor_open", "csr_type"),
    ("metrics_document", "doc_op_type"),
    ("opLatencies", "op_type"),
    ("opcounters", "legacy_op_type"),
    ("opcountersRepl", "legacy_op_type"),
    ("queues_execution", "txn_rw_type"),
    ("transactions_commitTypes", "commit_type"),
];

/// A sample: name, label and value as they are printed.
#[derive(Debug, PartialEq)]
struct Sample {
    name: String,
    label: Option<(&'static str, String)>,
    value: String,
}

/// The numbers of a `serverStatus` document as samples, those of a name together, as the format asks for.
pub fn of_status(status: DocRef<'_>) -> String {
    let mut samples = Vec::new();
    walk(status, "", None, &mut samples);
    // Stable: in the order of the document.
    samples.sort_by(|a, b| a.name.cmp(&b.name));
    let mut text = String::from("# TYPE mongodb_up gauge\nmongodb_up 1\n");
    let mut last = "";
    for sample in &samples {
        if sample.name != last {
            // Writing to a String does not fail.
            let _ = writeln!(text, "# TYPE {} untyped", sample.name);
            last = &sample.name;
        }
        let _ = match &sample.label {
            Some((name, value)) => writeln!(text, "{}{{{name}=\"{}\"}} {}", sample.name, escape(value), sample.value),
            None => writeln!(text, "{} {}", sample.name, sample.value),
        };
    }
    text
}

fn walk(doc: DocRef<'_>, path: &str, label: Option<(&'static str, &str)>, samples: &mut Vec<Sample>) {
    for (field, value) in doc.iter() {
        let becomes = LABELS.iter().find(|(section, _)| label.is_none() && *section == path);
        let (inner, label) = match becomes {
            Some((_, label)) => (path.to_owned(), Some((*label, field))),
            None if path.is_empty() => (word(field), label),
            None => (format!("{path}_{}", word(field)), label),
        };
        if let Some(doc) = value.as_document() {
            walk(doc, &inner, label, samples);
        } else if let Some(value) = number(value) {
            samples.push(Sample {
                name: format!("mongodb_ss_{inner}"),
                label: label.map(|(name, value)| (name, value.to_owned())),
                value,
            });
        }
    }
}

/// What can be counted. Times and texts cannot.
fn number(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Int32(n) => Some(n.to_string()),
        ValueRef::Int64(n) => Some(n.to_string()),
        ValueRef::Double(n) if n.is_nan() => Some("NaN".to_owned()),
        ValueRef::Double(n) if n.is_infinite() => Some(if n > 0.0 { "+Inf" } else { "-Inf" }.to_owned()),
        ValueRef::Double(n) => Some(n.to_string()),
        ValueRef::Bool(is) => Some(i32::from(is).to_string()),
        _ => None,
    }
}

/// A field's name as a part of a metric's: letters, digits and `_`.
fn word(field: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    field.chars().map(fits).collect()
}

fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::doc;

    #[test]
    fn fields_become_samples() {
        let status = doc! {
            "host": "here",
            "uptime": 1.5,
            "connections": doc! { "current": 3, "available": 997 },
            "network": doc! { "bytesIn": 10i64 },
            "opLatencies": doc! { "reads": doc! { "latency": 5i64, "ops": 2i64 }, "writes": doc! { "latency": 7i64, "ops": 1i64 } },
            "metrics": doc! { "commands": doc! { "find": doc! { "total": 4i64 }, "<UNKNOWN>": 0i64 } },
            "ok": true,
            "odd name\"": doc! { "1.2": f64::INFINITY },
        };
        let text = of_status(status.as_ref());
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            lines,
            [
                "mongodb_up 1",
                "mongodb_ss_connections{conn_type=\"current\"} 3",
                "mongodb_ss_connections{conn_type=\"available\"} 997",
                "mongodb_ss_metrics_commands{cmd_name=\"<UNKNOWN>\"} 0",
                "mongodb_ss_metrics_commands_total{cmd_name=\"find\"} 4",
                "mongodb_ss_network_bytesIn 10",
                "mongodb_ss_odd_name__1_2 +Inf",
                "mongodb_ss_ok 1",
                "mongodb_ss_opLatencies_latency{op_type=\"reads\"} 5",
                "mongodb_ss_opLatencies_latency{op_type=\"writes\"} 7",
                "mongodb_ss_opLatencies_ops{op_type=\"reads\"} 2",
                "mongodb_ss_opLatencies_ops{op_type=\"writes\"} 1",
                "mongodb_ss_uptime 1.5",
            ]
        );
        let types = text.lines().filter(|line| line.starts_with("# TYPE")).count();
        assert_eq!(types, 10, "{text}");
    }
}
