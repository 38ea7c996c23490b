//! The answer of EXPLAIN as XML and YAML, from the document that its JSON is.

use crate::types::json;
use nestor_model::{Document, Value, ValueRef};

/// A value that stands alone, as JSON would have it but for its quotes.
fn plain(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::String(text) => text.to_owned(),
        value => json::text(value),
    }
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('\r', "&#x0d;")
}

/// The name of an element.
fn element(name: &str) -> String {
    let sign = |c: char| {
        if c.is_ascii_alphanumeric() || "-_.".contains(c) {
            c
        } else {
            '-'
        }
    };
    name.chars().map(sign).collect()
}

fn xml_fields(fields: &Document, depth: usize, out: &mut Vec<String>) {
    let indent = "  ".repeat(depth);
    for (name, value) in fields.iter() {
        let name = element(name);
        match value.to_value() {
            Value::Document(inner) => {
                out.push(format!("{indent}<{name}>"));
                xml_fields(&inner, depth + 1, out);
                out.push(format!("{indent}</{name}>"));
            }
            // Of several of the same kind each has the name of one.
            Value::Array(items) => {
                let one = name.strip_suffix('s').unwrap_or(&name);
                out.push(format!("{indent}<{name}>"));
                for item in items.iter() {
                    if let Value::Document(inner) = item.to_value() {
                        out.push(format!("{indent}  <{one}>"));
                        xml_fields(&inner, depth + 2, out);
                        out.push(format!("{indent}  </{one}>"));
                    }
                }
                out.push(format!("{indent}</{name}>"));
            }
            _ => out.push(format!("{indent}<{name}>{}</{name}>", escaped(&plain(value)))),
        }
    }
}

/// As XML.
pub fn xml(query: &Document) -> String {
    let mut out = vec![
        "<explain xmlns=\"http://www.postgresql.org/2009/explain\">".to_owned(),
        "  <Query>".to_owned(),
    ];
    xml_fields(query, 2, &mut out);
    out.extend(["  </Query>".to_owned(), "</explain>".to_owned()]);
    out.join("\n")
}

fn yaml_fields(fields: &Document, depth: usize, out: &mut Vec<String>) {
    let indent = "  ".repeat(depth);
    for (name, value) in fields.iter() {
        match value.to_value() {
            Value::Document(inner) => {
                out.push(format!("{indent}{name}:"));
                yaml_fields(&inner, depth + 1, out);
            }
            Value::Array(items) => {
                out.push(format!("{indent}{name}:"));
                items
                    .iter()
                    .for_each(|item| yaml_item(&item.to_value(), depth + 1, out));
            }
            Value::String(text) => {
                let mut line = format!("{indent}{name}: ");
                json::quote(&text, &mut line);
                out.push(line);
            }
            _ => out.push(format!("{indent}{name}: {}", plain(value))),
        }
    }
}

/// An item of a list: the sign stands before its first field.
fn yaml_item(item: &Value, depth: usize, out: &mut Vec<String>) {
    let Value::Document(fields) = item else { return };
    let first = out.len();
    yaml_fields(fields, depth + 1, out);
    if let Some(line) = out.get_mut(first) {
        line.replace_range(depth * 2..depth * 2 + 2, "- ");
    }
}

/// As YAML.
pub fn yaml(query: &Document) -> String {
    let mut out = Vec::new();
    yaml_item(&Value::Document(query.clone()), 0, &mut out);
    out.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::{Array, doc};

    #[test]
    fn fields_nest_as_in_json() {
        let inner = doc! { "Node Type": "Result", "Output": "a < \"b\"" };
        let plans = Value::Array(Array::new(vec![inner.into()]));
        let query = doc! { "Plan": doc! { "Node Type": "Project", "Plans": plans }, "Planning Time": 1.5 };
        assert_eq!(
            yaml(&query),
            "- Plan:\n    Node Type: \"Project\"\n    Plans:\n      - Node Type: \"Result\"\n        Output: \"a < \\\"b\\\"\"\n  Planning Time: 1.5"
        );
        assert!(xml(&query).ends_with(
            "    <Plan>\n      <Node-Type>Project</Node-Type>\n      <Plans>\n        <Plan>\n          <Node-Type>Result</Node-Type>\n          <Output>a &lt; \"b\"</Output>\n        </Plan>\n      </Plans>\n    </Plan>\n    <Planning-Time>1.5</Planning-Time>\n  </Query>\n</explain>"
        ));
    }
}
