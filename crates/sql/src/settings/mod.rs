//! Settings of a session: those that change nothing are taken with the value that they have, and no others. [`steering`] has those of plans and
//! memory, [`isolation`] the levels that transactions have.

pub mod isolation;
pub mod steering;

use self::isolation::Isolation;
use crate::catalog::schemas;
use crate::error::{Field, error, fail, unsupported, with};
use crate::parse;
use crate::parse::assigned::{self, text_of};
use crate::run::columns::SETTING as COLUMNS;
use crate::run::tables::{SYNCHRONOUS, SessionFacts};
use crate::types::encoding::Encoding;
use crate::types::names;
use crate::types::regconfig::Config;
use crate::types::style::{Dates, Intervals, Order, Style, Thresholds};
use crate::types::zone::{self, Zone};
use nestor_model::{Error, Result};
use sqlparser::ast::{ContextModifier, Expr, Set};
use std::collections::BTreeMap;
use std::time::Duration;

/// The setting that SET changes, its new value, which is none where it is to have that which sessions begin with, and whether only within the
/// transaction; `None` for forms of SET that are no assignments.
pub fn assigned_by(set: &Set) -> Option<(String, Option<String>, bool)> {
    match set {
        Set::SingleAssignment {
            scope,
            variable,
            values,
            ..
        } => {
            let (name, is_local) = (variable.to_string(), matches!(scope, Some(ContextModifier::Local)));
            if let [value] = values.as_slice()
                && is_default(value)
            {
                return Some((name, None, is_local));
            }
            let is_path = name.eq_ignore_ascii_case("search_path");
            let each = values.iter().map(|value| match is_path {
                // The value is a list of names.
                true => names::quoted(&text_of(value)),
                false => text_of(value),
            });
            let text = each.collect::<Vec<_>>().join(", ");
            Some((name, Some(text), is_local))
        }
        Set::SetTimeZone { local, value } => {
            let zone = (!is_default(value)).then(|| text_of(value));
            Some(("timezone".to_owned(), zone, *local))
        }
        _ => None,
    }
}

fn is_default(value: &Expr) -> bool {
    matches!(value, Expr::Identifier(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("default"))
}

/// What a session begins with.
pub fn initial() -> BTreeMap<String, String> {
    let all = [
        ("application_name", ""),
        ("bytea_output", "hex"),
        ("check_function_bodies", "on"),
        ("autovacuum_naptime", "1min"),
        ("autovacuum_vacuum_scale_factor", "0.2"),
        ("autovacuum_vacuum_threshold", "50"),
        ("client_encoding", "UTF8"),
        ("client_min_messages", "notice"),
        ("datestyle", "ISO, MDY"),
        ("default_table_access_method", "heap"),
        ("default_tablespace", ""),
        ("default_text_search_config", "pg_catalog.english"),
        ("default_transaction_deferrable", "off"),
        ("default_transaction_isolation", "read committed"),
        ("default_transaction_read_only", "off"),
        ("escape_string_warning", "on"),
        ("extra_float_digits", "1"),
        ("idle_in_transaction_session_timeout", "0"),
        ("idle_session_timeout", "0"),
        ("integer_datetimes", "on"),
        ("intervalstyle", "postgres"),
        ("is_superuser", "on"),
        ("jit", "off"),
        ("lc_collate", "C"),
        ("lc_ctype", "C"),
        ("lc_messages", "C"),
        ("lc_monetary", "C"),
        ("lc_numeric", "C"),
        ("lc_time", "C"),
        ("lock_timeout", "0"),
        ("max_identifier_length", "63"),
        ("max_index_keys", "32"),
        ("max_prepared_transactions", "0"),
        ("password_encryption", "scram-sha-256"),
        (COLUMNS, "auto"),
        ("role", "none"),
        ("row_security", "on"),
        ("search_path", "public"),
        ("server_encoding", "UTF8"),
        ("session_authorization", ""),
        ("server_version", "15.0"),
        ("server_version_num", "150000"),
        ("quote_all_identifiers", "off"),
        ("standard_conforming_strings", "on"),
        ("statement_timeout", "0"),
        ("synchronize_seqscans", "off"),
        (SYNCHRONOUS, "on"),
        ("timezone", "UTC"),
        ("transaction_deferrable", "off"),
        ("transaction_isolation", "read committed"),
        ("transaction_read_only", "off"),
        ("xmloption", "content"),
    ];
    all.into_iter()
        .chain(Thresholds::SETTINGS)
        .chain(steering::initial())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Those that nobody can change.
const FIXED: [&str; 8] = [
    "integer_datetimes",
    "is_superuser",
    "lc_collate",
    "lc_ctype",
    "max_identifier_length",
    "max_index_keys",
    "server_version",
    "server_version_num",
];

/// The values of `client_min_messages`.
const LEVELS: [&str; 10] = [
    "debug5", "debug4", "debug3", "debug2", "debug1", "debug", "log", "notice", "warning", "error",
];

/// Those that a client is told of at the start, by the names it knows.
pub const REPORTED: &[(&str, &str)] = &[
    ("application_name", "application_name"),
    ("client_encoding", "client_encoding"),
    ("DateStyle", "datestyle"),
    ("integer_datetimes", "integer_datetimes"),
    ("IntervalStyle", "intervalstyle"),
    ("is_superuser", "is_superuser"),
    ("server_encoding", "server_encoding"),
    ("server_version", "server_version"),
    ("standard_conforming_strings", "standard_conforming_strings"),
    ("TimeZone", "timezone"),
];

/// The settings that the startup packet's `options` name: `-c name=value` and `--name=value`, with backslashes before spaces that do not end
/// one.
///
/// Errors: 0A000 for other options.
pub fn of_options(text: &str) -> Result<Vec<(String, String)>> {
    let (mut words, mut word, mut chars) = (Vec::new(), String::new(), text.chars());
    while let Some(c) = chars.next() {
        match c {
            '\\' => word.extend(chars.next()),
            c if c.is_whitespace() => words.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    words.push(word);
    let mut words = words.into_iter().filter(|word| !word.is_empty());
    let mut out = Vec::new();
    while let Some(word) = words.next() {
        let setting = match (word.strip_prefix("--"), word.strip_prefix("-c")) {
            (Some(long), _) => Some(long.replace('-', "_")),
            (_, Some("")) => words.next(),
            (_, Some(short)) => Some(short.to_owned()),
            _ => None,
        };
        match setting.as_deref().and_then(|setting| setting.split_once('=')) {
            Some((name, value)) => out.push((name.to_owned(), value.to_owned())),
            None => return unsupported(format!("option \"{word}\" of a connection")),
        }
    }
    Ok(out)
}

/// Whether there is such a setting, which is not a client's own.
pub fn is_known(name: &str) -> bool {
    initial().contains_key(name) || steering::is_refused(name)
}

/// Errors: 42704, always: there is no such setting.
pub fn unknown<T>(name: &str) -> Result<T> {
    fail("42704", format!("unrecognized configuration parameter \"{name}\""))
}

/// The value that is set for what begins later, a session or a call of a function, which can take it; `None` where nothing is to be said of it. `current` are
/// the settings of who says so, who may do everything if `is_superuser`.
///
/// Errors: those of [`set`], 42501 for a client's own setting that a superuser has to allow, 0A000 for what does not begin later.
pub fn for_later(
    (current, is_superuser): (&BTreeMap<String, String>, bool),
    name: &str,
    value: &assigned::Value,
) -> Result<Option<String>> {
    let is_own = name.contains('.');
    if name.starts_with("transaction_") || name == "session_authorization" {
        return unsupported(format!("\"{name}\" as a setting of what begins later"));
    }
    if is_own && !is_known(name) && !is_superuser {
        return fail("42501", format!("permission denied to set parameter \"{name}\""));
    }
    let text = match value {
        assigned::Value::Is(values) => assigned::text(name, values)?,
        assigned::Value::Current => match current.get(name) {
            Some(value) => value.clone(),
            None => return unknown(name),
        },
        assigned::Value::First if is_own || is_known(name) => return Ok(None),
        assigned::Value::First => return unknown(name),
    };
    // Which role it may be is looked at when a session begins.
    if name != "role" {
        set(&mut initial(), name, Some(&text))?;
    }
    Ok(Some(text))
}

/// The value of what is assigned, as [`for_later`] has it; `None` also where all settings are meant.
///
/// Errors: those of [`for_later`].
pub fn assigned(given: (&BTreeMap<String, String>, bool), assigned: &assigned::Assigned) -> Result<Option<String>> {
    match &assigned.name {
        Some(name) => for_later(given, name, &assigned.value),
        None => Ok(None),
    }
}

/// Changes one of some settings that are kept for later, which goes without a value; all of them go without a name.
pub fn put(all: &mut Vec<(String, String)>, name: Option<&str>, value: Option<String>) {
    let Some(name) = name else {
        return all.clear();
    };
    let at = all.iter().position(|(own, _)| own == name);
    match (value, at) {
        (Some(value), Some(at)) => all[at].1 = value,
        (Some(value), None) => all.push((name.to_owned(), value)),
        (None, Some(at)) => drop(all.remove(at)),
        (None, None) => {}
    }
}

/// The facts of a session under settings that were kept for later.
///
/// Errors: those of values that cannot be set any more.
pub fn under(facts: &SessionFacts, config: &[(String, String)]) -> Result<SessionFacts> {
    let mut facts = facts.clone();
    for (name, value) in config {
        set(&mut facts.settings, name, Some(value))?;
    }
    facts.switches = steering::switches(&facts.settings);
    Ok(facts)
}

/// Sets one, which has the value that the session began with where none is said.
///
/// Errors: those of [`set`].
pub fn change(
    settings: &mut BTreeMap<String, String>,
    begun: &BTreeMap<String, String>,
    name: &str,
    value: Option<&str>,
) -> Result<()> {
    match (value, begun.get(name)) {
        (None, Some(first)) => {
            settings.insert(name.to_owned(), first.clone());
            Ok(())
        }
        (value, _) => set(settings, name, value),
    }
}

/// Sets one.
///
/// Errors: 42704 for a name that there is not, 0A000 for a value that would change what Nestor cannot, 22023 for one that is none.
pub fn set(settings: &mut BTreeMap<String, String>, name: &str, value: Option<&str>) -> Result<()> {
    let name = name.to_lowercase();
    let first = initial().remove(&name);
    let Some(text) = value else {
        match first {
            Some(first) => settings.insert(name, first),
            None => settings.remove(&name),
        };
        return Ok(());
    };
    if first.is_none() && name.starts_with("pg_trgm.") {
        let wrong = error("42602", format!("invalid configuration parameter name \"{name}\""));
        return Err(with(wrong, &[(Field::Detail, "\"pg_trgm\" is a reserved prefix.")]));
    }
    // Names with a dot are extensions', or the client's own.
    if first.is_none() && name.contains('.') {
        settings.insert(name, text.to_owned());
        return Ok(());
    }
    if let Some(value) = steering::value(&name, text)? {
        settings.insert(name, value);
        return Ok(());
    }
    let Some(old) = settings.get_mut(&name) else {
        return unknown(&name);
    };
    let plain = text.trim().to_lowercase();
    if Thresholds::SETTINGS.iter().any(|(own, _)| *own == name) {
        *old = Thresholds::checked(&name, text)?.to_string();
        return Ok(());
    }
    let same = match name.as_str() {
        "application_name" => {
            let is_shown = |byte: u8| matches!(byte, b' '..=b'~');
            let bytes = parse::names::cut(text).bytes();
            let shown = bytes.map(|byte| if is_shown(byte) { char::from(byte) } else { '?' });
            *old = shown.collect();
            return Ok(());
        }
        "intervalstyle" => match Intervals::of(&plain) {
            Some(_) => {
                *old = plain;
                return Ok(());
            }
            None => return invalid(&name, text),
        },
        "bytea_output" => match plain.as_str() {
            "hex" | "escape" => {
                *old = plain;
                return Ok(());
            }
            _ => return invalid(&name, text),
        },
        "client_min_messages" => match LEVELS.contains(&plain.as_str()) {
            true => {
                *old = plain;
                return Ok(());
            }
            false => return invalid(&name, text),
        },
        // They are about warnings that are not given, and about transactions that only read, which never wait for a snapshot that is safe.
        // `check_function_bodies` is for CREATE FUNCTION, `row_security` for policies, and read-only is what it says.
        "check_function_bodies"
        | "escape_string_warning"
        | "row_security"
        | "default_transaction_deferrable"
        | "default_transaction_read_only" => match switch(&plain) {
            Some(is_on) => {
                shown(is_on).clone_into(old);
                return Ok(());
            }
            None => return no_boolean(&name),
        },
        "xmloption" => match plain.as_str() {
            "content" | "document" => true,
            _ => return invalid(&name, text),
        },
        // Whatever else it says than off, a commit is on disk before it is told.
        SYNCHRONOUS => match plain.as_str() {
            "local" | "remote_write" | "remote_apply" => {
                *old = plain;
                return Ok(());
            }
            _ => match switch(&plain) {
                Some(is_on) => {
                    shown(is_on).clone_into(old);
                    return Ok(());
                }
                None => return invalid(&name, text),
            },
        },
        // Others are settled where it is known who has logged in.
        "role" => plain == "none",
        "client_encoding" => match Encoding::of(&plain) {
            Some(own) => {
                own.name().clone_into(old);
                return Ok(());
            }
            None => false,
        },
        "datestyle" => {
            match date_style(old, &plain) {
                Some(shown) => *old = shown,
                None => return invalid("DateStyle", text),
            }
            return Ok(());
        }
        // The shortest text that reads back as the same number is given for all of these.
        "extra_float_digits" => plain.parse::<i32>().is_ok_and(|n| (1..=3).contains(&n)),
        COLUMNS => match plain.as_str() {
            "auto" | "on" | "off" => {
                *old = plain;
                return Ok(());
            }
            _ => return invalid(&name, text),
        },
        "default_text_search_config" => match Config::named(text.trim()) {
            Ok(config) => {
                *old = format!("pg_catalog.{}", config.name());
                return Ok(());
            }
            Err(_) => return invalid(&name, text),
        },
        "timezone" => {
            *old = zone_name(text)?;
            return Ok(());
        }
        // What is no schema is passed over.
        "search_path" => {
            if schemas::listed(text).is_none() {
                let wrong = error("22023", format!("invalid value for parameter \"{name}\": \"{text}\""));
                return Err(with(wrong, &[(Field::Detail, "List syntax is invalid.")]));
            }
            text.clone_into(old);
            return Ok(());
        }
        "default_transaction_isolation" => match Isolation::of_name(&plain) {
            Some(level) => {
                level.name().clone_into(old);
                return Ok(());
            }
            None => return invalid(&name, text),
        },
        "statement_timeout" | "lock_timeout" | "idle_in_transaction_session_timeout" | "idle_session_timeout" => {
            match signed_milliseconds(text).map(|ms| (ms, u64::try_from(ms))) {
                Some((_, Ok(ms))) => {
                    *old = time_shown(ms);
                    return Ok(());
                }
                Some((ms, Err(_))) => {
                    let range = format!("(0 .. {})", i32::MAX);
                    return fail(
                        "22023",
                        format!("{ms} ms is outside the valid range for parameter \"{name}\" {range}"),
                    );
                }
                None => return invalid(&name, text),
            }
        }
        name if FIXED.contains(&name) => {
            return fail("55P02", format!("parameter \"{name}\" cannot be changed"));
        }
        _ => plain == old.to_lowercase(),
    };
    match same {
        true => {
            text.clone_into(old);
            Ok(())
        }
        false => unsupported(format!("setting \"{name}\" to \"{text}\"")),
    }
}

/// Errors: 22023, always: a setting that is a Boolean has another value.
pub fn no_boolean<T>(name: &str) -> Result<T> {
    fail("22023", format!("parameter \"{name}\" requires a Boolean value"))
}

/// A Boolean setting as it is shown.
pub fn shown(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}

/// The name under which a zone is shown that was asked for by name, or by hours east of Greenwich. Errors: 22023.
fn zone_name(text: &str) -> Result<String> {
    // `INTERVAL '+02:00' HOUR TO MINUTE`
    let interval = text.strip_prefix("INTERVAL").and_then(|rest| rest.split('\'').nth(1));
    let plain = interval.unwrap_or_else(|| text.trim().trim_matches('\''));
    if plain.eq_ignore_ascii_case("local") {
        return Ok("UTC".to_owned());
    }
    let hours = plain.parse::<f64>().ok().filter(|hours| hours.abs() < 168.0);
    let seconds = hours.map(|hours| (hours * 3600.0) as i64);
    let offset = match interval {
        Some(text) => zone::offset(text.trim()).or(seconds),
        None => seconds,
    };
    if let Some(offset) = offset {
        // POSIX counts to the west.
        return Ok(format!(
            "<{}>{}",
            zone::format_offset(offset),
            zone::format_offset(-offset)
        ));
    }
    let invalid = |_| error("22023", format!("invalid value for parameter \"TimeZone\": \"{text}\""));
    Ok(match Zone::named(plain).map_err(invalid)? {
        Zone::Named(zone) => zone.iana_name().unwrap_or(plain).to_owned(),
        Zone::Utc if plain.eq_ignore_ascii_case("gmt") => "GMT".to_owned(),
        Zone::Utc if plain.eq_ignore_ascii_case("etc/utc") => "Etc/UTC".to_owned(),
        _ => plain.to_uppercase(),
    })
}

/// The zone that the setting names.
pub fn zone(settings: &BTreeMap<String, String>) -> Zone {
    let name = settings.get("timezone").map_or("UTC", String::as_str);
    // `<+02>-02`
    let offset = name
        .strip_prefix('<')
        .and_then(|rest| zone::offset(rest.split('>').next()?));
    match offset {
        Some(offset) => Zone::Fixed(offset),
        None => Zone::named(name).unwrap_or_default(),
    }
}

/// The style and the order of dates, of the value of `datestyle`.
fn dates(shown: &str) -> (Dates, Order) {
    let lower = shown.to_lowercase();
    let mut words = lower.split(", ");
    let style = words.next().and_then(Dates::of).unwrap_or_default();
    (style, words.next().and_then(Order::of).unwrap_or_default())
}

/// The value of `datestyle` after words are set that stand for a style, an order or both; nothing where they contradict each other or one
/// is none.
fn date_style(old: &str, words: &str) -> Option<String> {
    let (mut style, mut order) = (None, None);
    let mut is_default = false;
    for word in words.split(',').map(|word| word.trim().trim_matches(['\'', '"'])) {
        match (word, Dates::of(word), Order::of(word)) {
            (_, Some(own), _) if style.is_none_or(|style| style == own) => style = Some(own),
            (_, None, Some(own)) if order.is_none_or(|order| order == own) => order = Some(own),
            ("default", None, None) => is_default = true,
            ("", ..) => {}
            _ => return None,
        }
    }
    let (old_style, old_order) = if is_default { <_>::default() } else { dates(old) };
    let order = order.unwrap_or(match style {
        Some(Dates::German) => Order::DayMonthYear,
        _ => old_order,
    });
    Some(format!("{}, {}", style.unwrap_or(old_style).name(), order.name()))
}

/// What the settings say of how values are read and shown.
pub fn style(settings: &BTreeMap<String, String>) -> Style {
    let value = |name: &str| settings.get(name).map_or("", String::as_str);
    let (dates, order) = dates(value("datestyle"));
    Style {
        order,
        dates,
        intervals: Intervals::of(value("intervalstyle")).unwrap_or_default(),
        escapes: value("bytea_output") == "escape",
        encoding: Encoding::of(value("client_encoding")).unwrap_or_default(),
        config: Config::named(value("default_text_search_config")).unwrap_or_default(),
        thresholds: Thresholds::of(Thresholds::SETTINGS.map(|(name, _)| value(name))),
    }
}

/// How long a session may rest, in a transaction or outside of one, and the error that ends it; `None` for ever.
pub fn rest(settings: &BTreeMap<String, String>, in_transaction: bool) -> Option<(Duration, Error)> {
    let (name, state, told) = match in_transaction {
        true => (
            "idle_in_transaction_session_timeout",
            "25P03",
            "terminating connection due to idle-in-transaction timeout",
        ),
        false => (
            "idle_session_timeout",
            "57P05",
            "terminating connection due to idle-session timeout",
        ),
    };
    Some((time(settings, name)?, error(state, told)))
}

/// The time that a setting says; `None` for none.
pub fn time(settings: &BTreeMap<String, String>, name: &str) -> Option<Duration> {
    let shown = settings.get(name).filter(|shown| *shown != "0")?;
    let ms = milliseconds(shown).filter(|ms| *ms > 0)?;
    Some(Duration::from_millis(ms))
}

/// Units of times, largest first, with their milliseconds.
const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("min", 60_000),
    ("s", 1000),
    ("ms", 1),
];

/// A time in whole milliseconds, which are its unit if it names none; those below 0 are no time that a setting may have.
fn signed_milliseconds(text: &str) -> Option<i64> {
    let text = text.trim();
    let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let n: f64 = text[..at].trim().parse().ok()?;
    let ms = match &text[at..] {
        "" => 1.0,
        "us" => 0.001,
        unit => UNITS.iter().find(|(name, _)| *name == unit)?.1 as f64,
    };
    let ms = (n * ms).round_ties_even();
    (ms.abs() <= f64::from(i32::MAX)).then_some(ms as i64)
}

/// The same of one that a setting may have.
fn milliseconds(text: &str) -> Option<u64> {
    signed_milliseconds(text).and_then(|ms| u64::try_from(ms).ok())
}

/// A time in the largest unit that it is whole in.
fn time_shown(ms: u64) -> String {
    match UNITS.iter().find(|(_, unit)| ms > 0 && ms.is_multiple_of(*unit)) {
        Some((name, unit)) => format!("{}{name}", ms / unit),
        None => "0".to_owned(),
    }
}

/// The values of a switch.
pub fn switch(text: &str) -> Option<bool> {
    match text {
        "on" | "true" | "yes" | "1" => Some(true),
        "off" | "false" | "no" | "0" => Some(false),
        _ => None,
    }
}

/// Errors: 22023, always: a setting has no such value.
pub fn invalid<T>(name: &str, value: &str) -> Result<T> {
    fail("22023", format!("invalid value for parameter \"{name}\": \"{value}\""))
}
