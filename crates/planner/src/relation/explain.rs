//! Relations as PostgreSQL's EXPLAIN prints plans: a line for each node, indented below what it feeds.

use super::{ApplyKind, JoinKind, Relation, SortKey};
use std::fmt::{Display, Write as _};

/// Rows that each node gave, in the order in which [`lines`] prints nodes; empty where nothing ran.
pub type Counted<'c> = &'c [u64];

/// The lines of a plan.
pub fn lines<S: Display>(plan: &Relation<S>, counted: Counted<'_>) -> Vec<String> {
    let mut out = Vec::new();
    let mut number = 0;
    print(plan, 0, &mut number, counted, &mut out);
    out
}

fn print<S: Display>(
    plan: &Relation<S>,
    depth: usize,
    number: &mut usize,
    counted: Counted<'_>,
    out: &mut Vec<String>,
) {
    let indent = match depth {
        0 => String::new(),
        _ => format!("{}->  ", " ".repeat(depth * 6 - 4)),
    };
    let below = " ".repeat(depth * 6 + 2);
    let (title, details) = describe(plan);
    let mut line = format!("{indent}{title}");
    if let Some(rows) = counted.get(*number) {
        // Writing to a string cannot fail.
        let _ = write!(line, "  (actual rows={rows})");
    }
    *number += 1;
    out.push(line);
    out.extend(details.into_iter().map(|detail| format!("{below}{detail}")));
    for input in plan.inputs() {
        print(input, depth + 1, number, counted, out);
    }
}

fn describe<S: Display>(plan: &Relation<S>) -> (String, Vec<String>) {
    match plan {
        Relation::Values { rows, .. } => match rows.len() {
            1 => ("Result".to_owned(), Vec::new()),
            n => (format!("Values Scan ({n} rows)"), Vec::new()),
        },
        Relation::Scan(scan) => {
            let mut details = scan.access.clone();
            if !scan.conditions.is_empty() {
                details.push(format!("Find: {}", list(&scan.conditions, " AND ")));
            }
            (format!("Scan on {}", scan.name), details)
        }
        Relation::Function { call, args, .. } => (
            format!("Function Scan on {}", call.name()),
            vec![format!("Function Call: {}({})", call.name(), list(args, ", "))],
        ),
        Relation::Filter { condition, .. } => ("Filter".to_owned(), vec![format!("Filter: {condition}")]),
        Relation::Project { columns, .. } => ("Project".to_owned(), vec![format!("Output: {}", list(columns, ", "))]),
        Relation::Join(join) => {
            let kind = match join.kind {
                JoinKind::Inner => "",
                JoinKind::Left => " Left",
                JoinKind::Right => " Right",
                JoinKind::Full => " Full",
                JoinKind::Semi => " Semi",
                JoinKind::Anti => " Anti",
            };
            let mut details = Vec::new();
            if !join.keys.is_empty() {
                let keys: Vec<String> = join.keys.iter().map(|(l, r)| format!("{l} = {r}")).collect();
                details.push(format!("Hash Cond: ({})", keys.join(" AND ")));
            }
            details.extend(join.condition.as_ref().map(|c| format!("Join Filter: {c}")));
            let method = if join.keys.is_empty() { "Nested Loop" } else { "Hash" };
            let suffix = if join.keys.is_empty() && join.kind == JoinKind::Inner {
                ""
            } else {
                " Join"
            };
            (format!("{method}{kind}{suffix}"), details)
        }
        Relation::Apply(apply) => {
            let kind = match &apply.kind {
                ApplyKind::Lateral { keeps: true } => "Nested Loop Left Join",
                ApplyKind::Lateral { keeps: false } => "Nested Loop",
                ApplyKind::Scalar => "Scalar",
                ApplyKind::Exists => "Exists",
                ApplyKind::In { .. } => "In",
                ApplyKind::Array => "Array",
            };
            let how = if apply.correlated { "SubPlan" } else { "InitPlan" };
            (format!("{how} ({kind})"), Vec::new())
        }
        Relation::Aggregate {
            groups, sets, calls, ..
        } => {
            let title = match (groups.is_empty(), sets.len()) {
                (true, _) => "Aggregate",
                (false, 1) => "HashAggregate",
                _ => "MixedAggregate",
            };
            let mut details = Vec::new();
            if !groups.is_empty() {
                details.push(format!("Group Key: {}", list(groups, ", ")));
            }
            for call in calls {
                let distinct = if call.distinct { "DISTINCT " } else { "" };
                let filter = call
                    .filter
                    .as_ref()
                    .map_or(String::new(), |f| format!(" FILTER (WHERE {f})"));
                details.push(format!(
                    "Call: {}({distinct}{}){filter}",
                    call.function.name(),
                    list(&call.args, ", ")
                ));
            }
            (title.to_owned(), details)
        }
        Relation::Window { window, .. } => {
            let mut details = Vec::new();
            if !window.partition.is_empty() {
                details.push(format!("Partition: {}", list(&window.partition, ", ")));
            }
            if !window.order.is_empty() {
                details.push(format!("Order: {}", keys(&window.order)));
            }
            ("WindowAgg".to_owned(), details)
        }
        Relation::Sort { keys: by, limit, .. } => {
            let title = if limit.is_some() { "Sort (top-N)" } else { "Sort" };
            (title.to_owned(), vec![format!("Sort Key: {}", keys(by))])
        }
        Relation::Limit { limit, offset, .. } => {
            let mut details = Vec::new();
            details.extend(limit.as_ref().map(|n| format!("Limit: {n}")));
            details.extend(offset.as_ref().map(|n| format!("Offset: {n}")));
            ("Limit".to_owned(), details)
        }
        Relation::Distinct { on, .. } => ("Unique".to_owned(), vec![format!("On: {}", list(on, ", "))]),
        Relation::Append { .. } => ("Append".to_owned(), Vec::new()),
        Relation::Intersect(both) => {
            let name = if both.except { "Except" } else { "Intersect" };
            let all = if both.all { " All" } else { "" };
            (format!("HashSetOp {name}{all}"), Vec::new())
        }
        Relation::Recursive(recursive) => (format!("Recursive Union {}", recursive.id), Vec::new()),
        Relation::Working { id, .. } => (format!("WorkTable Scan {id}"), Vec::new()),
        Relation::Shared { id, .. } => (format!("CTE Scan {id}"), Vec::new()),
    }
}

fn list<S: Display>(items: &[S], between: &str) -> String {
    let items: Vec<String> = items.iter().map(ToString::to_string).collect();
    items.join(between)
}

fn keys<S: Display>(keys: &[SortKey<S>]) -> String {
    let shown = keys.iter().map(|key| {
        let mut text = key.by.to_string();
        if key.descending {
            text.push_str(" DESC");
        }
        if key.nulls_first != key.descending {
            text.push_str(if key.nulls_first { " NULLS FIRST" } else { " NULLS LAST" });
        }
        text
    });
    shown.collect::<Vec<_>>().join(", ")
}
