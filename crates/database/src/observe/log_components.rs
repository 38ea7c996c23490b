//! The debug levels of the log's components, as clients write and read them.

use nestor_model::number::safe_i64;
use nestor_model::{Document, Result, ValueRef, bail, doc};

/// Components whose debug level can be set, dotted where one is part of another.
pub const COMPONENTS: [&str; 31] = [
    "accessControl",
    "command",
    "control",
    "executor",
    "ftdc",
    "geo",
    "index",
    "network",
    "network.asio",
    "network.bridge",
    "network.connectionPool",
    "query",
    "query.optimizer",
    "query.planner",
    "queryStats",
    "replication",
    "replication.election",
    "replication.heartbeats",
    "replication.initialSync",
    "replication.rollback",
    "sharding",
    "sharding.rangeDeleter",
    "sharding.migration",
    "storage",
    "storage.journal",
    "storage.recovery",
    "tenantMigration",
    "test",
    "transaction",
    "write",
    "assert",
];

/// The debug levels of a document like `{command: 2, network: {verbosity: 1, asio: {verbosity: 3}}}`, by
/// dotted name of the component; the empty name is the default level.
pub fn component_levels(doc: nestor_model::DocRef<'_>) -> Result<Vec<(String, i32)>> {
    let mut levels = Vec::new();
    read_levels(doc, "", &mut levels)?;
    Ok(levels)
}

fn read_levels(doc: nestor_model::DocRef<'_>, path: &str, levels: &mut Vec<(String, i32)>) -> Result<()> {
    for (name, value) in doc.iter() {
        if name == "verbosity" {
            levels.push((path.to_owned(), level(value)?));
            continue;
        }
        let component = if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        };
        if !COMPONENTS.contains(&component.as_str()) {
            bail!(BadValue, "Invalid component name {component}");
        }
        match value {
            ValueRef::Document(inner) => read_levels(inner, &component, levels)?,
            other => levels.push((component, level(other)?)),
        }
    }
    Ok(())
}

fn level(value: ValueRef<'_>) -> Result<i32> {
    match safe_i64(value) {
        Some(level) if i32::try_from(level).is_ok() && !is_nan(value) => Ok(level.clamp(-1, 5) as i32),
        Some(_) => bail!(BadValue, "Expected a 32-bit number for verbosity, not {value:?}"),
        None => bail!(
            BadValue,
            "Expected a number for verbosity, not {}",
            value.bson_type().alias()
        ),
    }
}

fn is_nan(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Double(v) => v.is_nan(),
        ValueRef::Decimal128(v) => v.is_nan(),
        _ => false,
    }
}

/// The document of the levels of all components.
pub fn component_document(level_of: &dyn Fn(&str) -> i32) -> Document {
    fn children(parent: &str, level_of: &dyn Fn(&str) -> i32) -> Document {
        let mut doc = doc! { "verbosity": level_of(parent) };
        for component in COMPONENTS {
            let name = match (parent.is_empty(), component.strip_prefix(parent)) {
                (true, _) => component,
                (false, Some(rest)) => match rest.strip_prefix('.') {
                    Some(name) => name,
                    None => continue,
                },
                (false, None) => continue,
            };
            if !name.contains('.') {
                doc.push(name, children(component, level_of));
            }
        }
        doc
    }
    children("", level_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_of_the_log() {
        let levels = component_levels(
            doc! { "verbosity": 1, "command": 2, "network": doc! { "verbosity": 3, "asio": doc! { "verbosity": -1 } } }
                .as_ref(),
        )
        .unwrap();
        let text: Vec<String> = levels.iter().map(|(name, level)| format!("{name}={level}")).collect();
        assert_eq!(text, ["=1", "command=2", "network=3", "network.asio=-1"]);
        assert!(component_levels(doc! { "nothing": 1 }.as_ref()).is_err());
        let shown = component_document(&|name| if name == "network.asio" { 4 } else { -1 });
        assert_eq!(
            format!("{:?}", shown.as_ref().get("network").map(|v| v.to_value())),
            r#"Some({"verbosity": -1, "asio": {"verbosity": 4}, "bridge": {"verbosity": -1}, "connectionPool": {"verbosity": -1}})"#
        );
    }
}
