//! Relations as PostgreSQL's EXPLAIN shows plans: as text a line for each node, indented below what it feeds.

use super::{ApplyKind, JoinKind, Relation, Scan, SortKey};
use std::fmt::Display;
use std::time::Duration;

/// What a node did while it ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// How often it was begun: once for each row of the other side where it is run for each of them.
    pub loops: u64,
    /// Rows that it gave, in all loops.
    pub rows: u64,
    /// Until the first row of each loop, or its end, with what its inputs took.
    pub startup: Duration,
    /// In all, with what its inputs took.
    pub total: Duration,
    /// Index keys that it read.
    pub keys: u64,
    /// Documents that it read.
    pub documents: u64,
    /// Bytes of the documents that it made rows of.
    pub bytes: u64,
    /// What it read column by column.
    pub columns: ColumnFigures,
    /// It wrote temporary files.
    pub spilled: bool,
    /// Bytes of those whose size is known.
    pub spilled_bytes: u64,
    /// Threads that helped, in all loops.
    pub helpers: u64,
    /// How the find layer read, the last time that it did.
    pub access: Option<Access>,
}

impl Ran {
    /// In a loop, on average, as PostgreSQL shows it.
    pub fn average(&self) -> Ran {
        let loops = self.loops.max(1);
        let of = |time: Duration| time.div_f64(loops as f64);
        Ran {
            rows: (self.rows + loops / 2) / loops,
            startup: of(self.startup),
            total: of(self.total),
            ..self.clone()
        }
    }

    /// Adds what the same node did on the thread of a helper, whose time is that of the others.
    pub fn add_help(&mut self, helped: &Ran) {
        self.rows += helped.rows;
        self.keys += helped.keys;
        self.documents += helped.documents;
        self.bytes += helped.bytes;
        self.columns.add(&helped.columns);
    }
}

/// What a scan read column by column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ColumnFigures {
    /// Segments of which rows were read.
    pub segments: u64,
    /// Segments that had no row of which the conditions could hold.
    pub skipped: u64,
    /// Rows read by columns.
    pub rows: u64,
    /// Bytes of the columns of these rows, as they are stored.
    pub bytes: u64,
    /// The same of those rows that were passed over.
    pub bytes_skipped: u64,
    /// Documents read one by one, because they are newer than the columns.
    pub documents: u64,
    /// Bytes of these.
    pub document_bytes: u64,
}

impl ColumnFigures {
    /// What was read since `before`.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            segments: self.segments - before.segments,
            skipped: self.skipped - before.skipped,
            rows: self.rows - before.rows,
            bytes: self.bytes - before.bytes,
            bytes_skipped: self.bytes_skipped - before.bytes_skipped,
            documents: self.documents - before.documents,
            document_bytes: self.document_bytes - before.document_bytes,
        }
    }

    /// With what another scan read.
    pub fn add(&mut self, other: &Self) {
        self.segments += other.segments;
        self.skipped += other.skipped;
        self.rows += other.rows;
        self.bytes += other.bytes;
        self.bytes_skipped += other.bytes_skipped;
        self.documents += other.documents;
        self.document_bytes += other.document_bytes;
    }
}

/// What each node did, in the order in which nodes are shown; empty where nothing ran.
pub type Counted<'c> = &'c [Ran];

/// A node as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The kind of node, and what it is on.
    pub title: String,
    /// What else is known of it, as `name: text`.
    pub details: Vec<String>,
    /// What it did, if the plan ran.
    pub ran: Option<Ran>,
    /// Rows of its input that it did not let pass, in all loops; `None` for nodes that are no filters.
    pub removed: Option<u64>,
    /// Its rows come in the order that the scan below it was asked for.
    pub in_order: bool,
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
    /// Only index entries are read, and no documents.
    pub index_only: bool,
}

impl Access {
    /// Columns are read.
    pub fn columns() -> Self {
        Self {
            path: "COLUMN_SCAN".to_owned(),
            in_order: false,
            index_only: false,
        }
    }
}

/// Tells how the find layer reads what a scan wants, or with `true` how it counts that, as far as it is known.
pub type Accesses<'a, S> = &'a mut dyn FnMut(&Scan<S>, bool) -> Option<Access>;

/// A plan as it is shown.
pub fn show<S: Display>(plan: &Relation<S>, counted: Counted<'_>, access: Accesses<'_, S>) -> Shown {
    node(plan, &mut 0, counted, access)
}

fn node<S: Display>(plan: &Relation<S>, number: &mut usize, counted: Counted<'_>, access: Accesses<'_, S>) -> Shown {
    let (mut title, mut details) = describe(plan);
    // A node that was never begun is not counted.
    let ran = (!counted.is_empty()).then(|| counted.get(*number).cloned().unwrap_or_default());
    *number += 1;
    let inputs: Vec<Shown> = plan
        .inputs()
        .into_iter()
        .map(|input| node(input, number, counted, access))
        .collect();
    let mut in_order = false;
    match plan {
        Relation::Scan(scan) | Relation::Count(scan) => {
            let read = ran.as_ref().and_then(|ran| ran.access.clone());
            if let Some(access) = read.or_else(|| access(scan, matches!(plan, Relation::Count(_)))) {
                in_order = access.in_order;
                if access.index_only {
                    title = format!("Index Only {title}");
                }
                if in_order {
                    details.push(format!("Order: {}", keys(&scan.order)));
                }
                details.push(format!("Access: {}", access.path));
            }
        }
        Relation::Filter { .. } | Relation::Project { .. } => in_order = inputs.iter().all(|input| input.in_order),
        Relation::Sort { .. } if inputs.iter().all(|input| input.in_order) => title = "Presorted".to_owned(),
        _ => {}
    }
    let removed = match (plan, &ran, inputs.first().and_then(|input| input.ran.as_ref())) {
        (Relation::Filter { .. }, Some(ran), Some(input)) => Some(input.rows.saturating_sub(ran.rows)),
        _ => None,
    };
    Shown {
        title,
        details,
        ran,
        removed,
        in_order,
        inputs,
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
                let name = match &join.right {
                    right if is_looked_up(right) => "Index Cond",
                    _ => "Hash Cond",
                };
                details.push(format!("{name}: ({})", keys.join(" AND ")));
            }
            details.extend(join.condition.as_ref().map(|c| format!("Join Filter: {c}")));
            let method = match &join.right {
                right if is_looked_up(right) => "Lookup",
                _ if join.keys.is_empty() => "Nested Loop",
                _ => "Hash",
            };
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
            groups,
            sets,
            calls,
            limit,
            ..
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
            if let Some((skip, limit)) = limit {
                let skip = skip.as_ref().map_or(String::new(), |skip| format!(" + {skip}"));
                details.push(format!("Groups Wanted: {limit}{skip}"));
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

/// Whether the rows of a relation are looked up by keys.
fn is_looked_up<S>(plan: &Relation<S>) -> bool {
    match plan {
        Relation::Scan(scan) => scan.looked_up,
        Relation::Append { inputs } => !inputs.is_empty() && inputs.iter().all(is_looked_up),
        _ => false,
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
