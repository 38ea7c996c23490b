//! Settings that steer plans and the memory and threads of statements.
//!
//! Each has an effect, or says of a way that plans do not have that they may or may not take it; what would want another effect is refused.

use crate::error::{fail, unsupported};
use crate::plan::switches::{INPUTS_MAX, Switches};
use nestor_model::Result;
use std::collections::BTreeMap;

/// What the values of a setting are.
#[derive(Clone, Copy)]
enum Kind {
    Switch,
    /// A number from 0 on.
    Cost,
    /// A whole number, from the first to the second.
    Count(i64, i64),
    /// Kilobytes, from so many on.
    Memory(i64),
    Words(&'static [&'static str]),
    /// This value alone.
    Only,
}

/// Kilobytes at most.
const KILOBYTES_MAX: i64 = 2_147_483_647;

/// All of them with their first values.
const ALL: &[(&str, &str, Kind)] = &[
    ("enable_async_append", "on", Kind::Switch),
    ("enable_bitmapscan", "on", Kind::Switch),
    ("enable_gathermerge", "on", Kind::Switch),
    ("enable_hashagg", "on", Kind::Switch),
    ("enable_hashjoin", "on", Kind::Switch),
    ("enable_incremental_sort", "on", Kind::Switch),
    ("enable_indexonlyscan", "on", Kind::Switch),
    ("enable_indexscan", "on", Kind::Switch),
    ("enable_material", "on", Kind::Switch),
    ("enable_memoize", "on", Kind::Switch),
    ("enable_mergejoin", "on", Kind::Switch),
    ("enable_nestloop", "on", Kind::Switch),
    ("enable_parallel_append", "on", Kind::Switch),
    ("enable_parallel_hash", "on", Kind::Switch),
    ("enable_partition_pruning", "on", Kind::Switch),
    ("enable_partitionwise_aggregate", "off", Kind::Switch),
    ("enable_partitionwise_join", "off", Kind::Switch),
    ("enable_seqscan", "on", Kind::Switch),
    ("enable_sort", "on", Kind::Switch),
    ("enable_tidscan", "on", Kind::Switch),
    ("force_parallel_mode", "off", Kind::Only),
    ("from_collapse_limit", "128", Kind::Count(1, INPUTS_MAX as i64)),
    ("geqo", "off", Kind::Only),
    ("join_collapse_limit", "128", Kind::Count(1, INPUTS_MAX as i64)),
    ("maintenance_work_mem", "200MB", Kind::Memory(1024)),
    ("max_parallel_workers_per_gather", "1", Kind::Count(0, 1024)),
    (
        "plan_cache_mode",
        "auto",
        Kind::Words(&["auto", "force_generic_plan", "force_custom_plan"]),
    ),
    ("random_page_cost", "4", Kind::Cost),
    ("seq_page_cost", "1", Kind::Cost),
    ("work_mem", "2147483647kB", Kind::Memory(64)),
];

/// Settings of PostgreSQL's planner that stand for nothing here: no value of them may be set.
const OTHERS: &[&str] = &[
    "constraint_exclusion",
    "cpu_index_tuple_cost",
    "cpu_operator_cost",
    "cpu_tuple_cost",
    "cursor_tuple_fraction",
    "default_statistics_target",
    "effective_cache_size",
    "effective_io_concurrency",
    "geqo_effort",
    "geqo_generations",
    "geqo_pool_size",
    "geqo_seed",
    "geqo_selection_bias",
    "geqo_threshold",
    "hash_mem_multiplier",
    "jit_above_cost",
    "jit_inline_above_cost",
    "jit_optimize_above_cost",
    "logical_decoding_work_mem",
    "max_parallel_maintenance_workers",
    "max_parallel_workers",
    "min_parallel_index_scan_size",
    "min_parallel_table_scan_size",
    "parallel_leader_participation",
    "parallel_setup_cost",
    "parallel_tuple_cost",
    "recursive_worktable_factor",
    "temp_buffers",
];

/// Their names with their first values.
pub fn initial() -> impl Iterator<Item = (&'static str, &'static str)> {
    ALL.iter().map(|(name, first, _)| (*name, *first))
}

/// Whether a setting of this name is PostgreSQL's, and may not be set.
pub fn is_refused(name: &str) -> bool {
    OTHERS.contains(&name)
}

/// Those that are others than a session begins with.
pub fn changed(settings: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let is_other = |(name, first, _): &&(&str, &str, Kind)| settings.get(*name).is_some_and(|own| own != first);
    let all = ALL.iter().filter(is_other);
    all.map(|(name, ..)| (name.to_string(), settings[*name].clone()))
        .collect()
}

/// The value of one as it is shown; `None` for the name of another setting.
///
/// Errors: 22023 for a value that is none, 0A000 for one that would want another effect.
pub fn value(name: &str, text: &str) -> Result<Option<String>> {
    if OTHERS.contains(&name) {
        return unsupported(format!("setting \"{name}\" to \"{text}\""));
    }
    let Some((_, first, kind)) = ALL.iter().find(|(own, ..)| *own == name) else {
        return Ok(None);
    };
    let plain = text.to_lowercase();
    Ok(Some(match kind {
        Kind::Switch => match super::switch(&plain) {
            Some(is_on) => super::shown(is_on).to_owned(),
            None => return super::no_boolean(name),
        },
        Kind::Cost => match plain.parse::<f64>() {
            Ok(cost) if cost < 0.0 => {
                return fail(
                    "22023",
                    format!("{cost} is outside the valid range for parameter \"{name}\" (0 .. 1.79769e+308)"),
                );
            }
            Ok(cost) if cost.is_finite() => cost.to_string(),
            _ => return super::invalid(name, text),
        },
        Kind::Count(least, most) => match plain.parse::<i64>() {
            Ok(count) if (*least..=*most).contains(&count) => count.to_string(),
            Ok(count) => return outside(name, count, "", (*least, *most)),
            Err(_) => return super::invalid(name, text),
        },
        Kind::Memory(least) => match kilobytes(text) {
            Some(size) if (*least..=KILOBYTES_MAX).contains(&size) => size_shown(size),
            Some(size) => return outside(name, size, " kB", (*least, KILOBYTES_MAX)),
            None => return super::invalid(name, text),
        },
        Kind::Words(words) if words.contains(&plain.as_str()) => plain,
        Kind::Words(_) => return super::invalid(name, text),
        Kind::Only => match (super::switch(&plain), super::switch(first)) {
            (None, _) => return super::no_boolean(name),
            (own, only) if own == only => (*first).to_owned(),
            _ => return unsupported(format!("setting \"{name}\" to \"{text}\"")),
        },
    }))
}

fn outside<T>(name: &str, value: i64, unit: &str, (least, most): (i64, i64)) -> Result<T> {
    fail(
        "22023",
        format!("{value}{unit} is outside the valid range for parameter \"{name}\" ({least}{unit} .. {most}{unit})"),
    )
}

/// Units of sizes, largest first, with their kilobytes.
const UNITS: [(&str, i64); 4] = [("TB", 1 << 30), ("GB", 1 << 20), ("MB", 1 << 10), ("kB", 1)];

/// A size in kilobytes, which are its unit if it names none.
fn kilobytes(text: &str) -> Option<i64> {
    let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let number: f64 = text[..at].trim().parse().ok()?;
    let unit = match &text[at..] {
        "" => 1.0,
        "B" => 1.0 / 1024.0,
        unit => UNITS.iter().find(|(name, _)| *name == unit)?.1 as f64,
    };
    let size = (number * unit).round();
    size.is_finite().then_some(size as i64)
}

/// A size in the largest unit that it is whole in.
fn size_shown(size: i64) -> String {
    match UNITS.iter().find(|(_, unit)| size > 0 && size % unit == 0) {
        Some((name, unit)) => format!("{}{name}", size / unit),
        None => "0".to_owned(),
    }
}

/// What they say.
pub fn switches(settings: &BTreeMap<String, String>) -> Switches {
    let value = |name: &str| settings.get(name).map_or("", String::as_str);
    let is_on = |name: &str| value(name) != "off";
    let cost = |name: &str, first: f64| value(name).parse().unwrap_or(first);
    let (found, read) = (cost("random_page_cost", 4.0), cost("seq_page_cost", 1.0));
    let inputs = |name: &str| value(name).parse().unwrap_or(INPUTS_MAX);
    let bytes = |name: &str| {
        let first = initial().find(|(own, _)| *own == name).map(|(_, first)| first);
        let own = Some(value(name)).filter(|own| first != Some(*own));
        let size = own.and_then(kilobytes).and_then(|size| size.checked_mul(1024));
        size.and_then(|size| usize::try_from(size).ok())
    };
    Switches {
        seqscan: is_on("enable_seqscan"),
        indexscan: is_on("enable_indexscan"),
        indexonlyscan: is_on("enable_indexonlyscan"),
        hashjoin: is_on("enable_hashjoin"),
        nestloop: is_on("enable_nestloop"),
        pruning: is_on("enable_partition_pruning"),
        sort: is_on("enable_sort"),
        found_cost: match read > 0.0 {
            true => found / read / 4.0,
            false if found > 0.0 => f64::MAX,
            false => 1.0,
        },
        ordered_inputs: inputs("from_collapse_limit").min(inputs("join_collapse_limit")),
        plans_anew: value("plan_cache_mode") == "force_custom_plan",
        operator_bytes: bytes("work_mem").unwrap_or(usize::MAX),
        build_bytes: bytes("maintenance_work_mem"),
        has_helpers: value("max_parallel_workers_per_gather") != "0",
    }
}
