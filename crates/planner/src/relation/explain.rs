//! Relations as PostgreSQL's EXPLAIN shows plans: as text a line for each node, indented below what it feeds.

use super::{ApplyKind, JoinKind, Relation, Scan, SortKey};
use std::fmt::{Display, Write as _};

/// Rows that each node gave, in the order in which nodes are shown; empty where nothing ran.
pub type Counted<'c> = &'c [u64];

/// A node as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The kind of node, and what it is on.
    pub title: String,
    /// What else is known of it, as `name: text`.
    pub details: Vec<String>,
    /// Rows that it gave, if it ran.
    pub rows: Option<u64>,
    /// Its inputs.
    pub inputs: Vec<Shown>,
}

/// How the find layer reads what a scan wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The indexes that it uses, as `planSummary` says it.
    pub path: String,
    /// Rows come in the order that the scan was asked for.
    pub in_order: bool,
}

/// Tells how the find layer reads what a scan wants, or with `true` how it counts that, as far as it is known.
pub type Accesses<'a, S> = &'a mut dyn FnMut(&Scan<S>, bool) -> Option<Access>;

/// A plan as it is shown.
pub fn show<S: Display>(plan: &Relation<S>, counted: Counted<'_>, access: Accesses<'_, S>) -> Shown {
    node(plan, &mut 0, counted, access)
}

/// The scan whose order a sort of these rows leaves as it is.
fn asked<S>(plan: &Relation<S>) -> Option<&Scan<S>> {
    match plan {
        Relation::Scan(scan) if !scan.order.is_empty() => Some(scan),
        Relation::Filter { input, .. } | Relation::Project { input, .. } => asked(input),
        _ => None,
    }
}

fn node<S: Display>(plan: &Relation<S>, number: &mut usize, counted: Counted<'_>, access: Accesses<'_, S>) -> Shown {
    let (mut title, mut details) = describe(plan);
    match plan {
        Relation::Scan(scan) => {
            let access = access(scan, false);
            if access.as_ref().is_some_and(|access| access.in_order) {
                details.push(format!("Order: {}", keys(&scan.order)));
            }
            details.extend(access.map(|access| format!("Access: {}", access.path)));
        }
        Relation::Count(scan) => details.extend(access(scan, true).map(|access| format!("Access: {}", access.path))),
        Relation::Sort { input, .. } => {
            let scan = asked(input);
            if scan
                .and_then(|scan| access(scan, false))
                .is_some_and(|access| access.in_order)
            {
                title = "Presorted".to_owned();
            }
        }
        _ => {}
    }
    // A node that was never begun gave nothing.
    let rows = (!counted.is_empty()).then(|| counted.get(*number).copied().unwrap_or(0));
    *number += 1;
    Shown {
        title,
        details,
        rows,
        inputs: plan
            .inputs()
            .into_iter()
            .map(|input| node(input, number, counted, access))
            .collect(),
    }
}

impl Shown {
    /// As text.
    pub fn lines(&self) -> Vec<String> {
        let mut out = Vec::new();
        self.print(0, &mut out);
        out
    }

    fn print(&self, depth: usize, out: &mut Vec<String>) {
        let indent = match depth {
            0 => String::new(),
            _ => format!("{}->  ", " ".repeat(depth * 6 - 4)),
        };
        let below = " ".repeat(depth * 6 + 2);
        let mut line = format!("{indent}{}", self.title);
        if let Some(rows) = self.rows {
            // Writing to a string cannot fail.
            let _ = write!(line, "  (actual rows={rows})");
        }
        out.push(line);
        out.extend(self.details.iter().map(|detail| format!("{below}{detail}")));
        for input in &self.inputs {
            input.print(depth + 1, out);
        }
    }
}

fn describe<S: Display>(plan: &Relation<S>) -> (String, Vec<String>) {
    match plan {
        Relation::Values { rows, .. } => match rows.len() {
            1 => ("Result".to_owned(), Vec::new()),
            n => (format!("Values Scan ({n} rows)"), Vec::new()),
        },
        Relation::Scan(scan) | Relation::Count(scan) => {
            let what = if matches!(plan, Relation::Count(_)) {
                "Count"
            } else {
                "Scan"
            };
            let mut details = Vec::new();
            if !scan.conditions.is_empty() {
                details.push(format!("Find: {}", list(&scan.conditions, " AND ")));
            }
            (format!("{what} on {}", scan.name), details)
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
