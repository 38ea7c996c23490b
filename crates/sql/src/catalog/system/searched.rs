//! Catalogs of text search: configurations, dictionaries, and the one parser.

use super::{OWNER, PG_CATALOG, Row, Said, int, oid, text};
use crate::search::tokens::KINDS;
use crate::types::regconfig::{Config, Dictionary, PARSER, SNOWBALL, TEMPLATES, TRIGGER_FUNCTIONS};
use nestor_model::{Array, Value};

const TEMPLATE: (i64, &str) = (3764, "pg_ts_template");
const DICTIONARY: (i64, &str) = (3600, "pg_ts_dict");
const CONFIG: (i64, &str) = (3602, "pg_ts_config");
const PARSERS: (i64, &str) = (3601, "pg_ts_parser");

/// OIDs of the functions of parser and templates, by their place among [`functions`].
const FIRST: i64 = 85_000;

/// The functions that parser and templates consist of, in the order of the columns that name them.
fn functions() -> Vec<&'static str> {
    let parser = [
        "prsd_start",
        "prsd_nexttoken",
        "prsd_end",
        "prsd_headline",
        "prsd_lextype",
    ];
    let templates = TEMPLATES.iter().flat_map(|(_, _, init, lexize, _)| [*init, *lexize]);
    parser.into_iter().chain(templates).collect()
}

/// The OIDs of these functions and of those of triggers, and their names.
pub fn names() -> impl Iterator<Item = (i64, &'static str)> {
    (FIRST..).zip(functions()).chain(TRIGGER_FUNCTIONS)
}

/// The OID of a function of triggers; 0 of others.
pub fn trigger_function(name: &str) -> i64 {
    let found = TRIGGER_FUNCTIONS.iter().find(|(_, own)| *own == name);
    found.map_or(0, |(number, _)| *number)
}

/// The number of the type that functions of triggers give, and of that which others take and give.
const TRIGGER: u32 = 2279;
const INTERNAL: u32 = 2281;

fn number(function: &str) -> Value {
    let at = names().find(|(_, name)| *name == function);
    Value::Int64(at.map_or(0, |(number, _)| number))
}

/// The rows of `pg_proc` of these functions.
pub fn procedures() -> Vec<Row> {
    let row = |(number, name): (i64, &'static str)| -> Row {
        let of_trigger = trigger_function(name) != 0;
        let (result, arguments) = match of_trigger {
            true => (oid(TRIGGER), Vec::new()),
            false => (oid(INTERNAL), vec![oid(INTERNAL)]),
        };
        vec![
            ("oid", oid(number)),
            ("proname", text(name)),
            ("pronamespace", oid(PG_CATALOG)),
            ("proowner", oid(OWNER)),
            ("prolang", oid(12)),
            ("procost", Value::Double(1.0)),
            ("prokind", text("f")),
            ("proisstrict", Value::Bool(true)),
            ("provolatile", text("i")),
            ("proparallel", text("s")),
            ("pronargs", int(arguments.len())),
            ("prorettype", result),
            ("proargtypes", Value::Array(Array::new(arguments))),
            ("prosrc", text(name)),
        ]
    };
    names().map(row).collect()
}

/// The rows of a catalog of text search; none of others.
pub fn rows(catalog: &str) -> Vec<Row> {
    let config = |own: Config| -> Row {
        vec![
            ("oid", oid(own.oid())),
            ("cfgname", text(own.name())),
            ("cfgnamespace", oid(PG_CATALOG)),
            ("cfgowner", oid(OWNER)),
            ("cfgparser", oid(PARSER)),
        ]
    };
    let dictionary = |own: Dictionary| -> Row {
        let template = if own == Dictionary::Simple {
            TEMPLATES[1].0
        } else {
            SNOWBALL
        };
        vec![
            ("oid", oid(own.oid())),
            ("dictname", text(own.name())),
            ("dictnamespace", oid(PG_CATALOG)),
            ("dictowner", oid(OWNER)),
            ("dicttemplate", oid(template)),
            ("dictinitoption", own.options().map_or(Value::Null, text)),
        ]
    };
    let template = |(number, name, init, lexize, _): &(i64, &str, &str, &str, &str)| -> Row {
        vec![
            ("oid", oid(*number)),
            ("tmplname", text(*name)),
            ("tmplnamespace", oid(PG_CATALOG)),
            ("tmplinit", self::number(init)),
            ("tmpllexize", self::number(lexize)),
        ]
    };
    match catalog {
        "pg_ts_config" => Config::all().map(config).collect(),
        "pg_ts_config_map" => Config::all().flat_map(mapped).collect(),
        "pg_ts_dict" => Dictionary::all().map(dictionary).collect(),
        "pg_ts_template" => TEMPLATES.iter().map(template).collect(),
        "pg_ts_parser" => {
            let columns = ["prsstart", "prstoken", "prsend", "prsheadline", "prslextype"];
            let mut row = vec![
                ("oid", oid(PARSER)),
                ("prsname", text("default")),
                ("prsnamespace", oid(PG_CATALOG)),
            ];
            row.extend(columns.into_iter().zip(names().map(|(number, _)| Value::Int64(number))));
            vec![row]
        }
        _ => Vec::new(),
    }
}

/// Which dictionaries a configuration looks parts of each kind up in.
fn mapped(config: Config) -> Vec<Row> {
    let each = KINDS
        .iter()
        .filter_map(|(kind, ..)| Some((*kind, config.dictionary(*kind)?)));
    let row = |(kind, dictionary): (_, Dictionary)| -> Row {
        vec![
            ("mapcfg", oid(config.oid())),
            ("maptokentype", Value::Int32(kind as i32)),
            ("mapseqno", Value::Int32(1)),
            ("mapdict", oid(dictionary.oid())),
        ]
    };
    each.map(row).collect()
}

/// What is said of each of them.
pub fn descriptions() -> Vec<Said> {
    let mut out = vec![(PARSER, PARSERS, "default word parser".to_owned())];
    let templates = TEMPLATES.iter();
    out.extend(templates.map(|(number, .., said)| (*number, TEMPLATE, (*said).to_owned())));
    out.extend(Dictionary::all().map(|own| (own.oid(), DICTIONARY, own.description())));
    out.extend(Config::all().map(|own| (own.oid(), CONFIG, own.description())));
    out
}
