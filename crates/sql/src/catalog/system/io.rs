//! The functions that read and write the values of types, of which catalogs tell by names and numbers: drivers know types by them.

use super::pseudo::{PSEUDO_TYPES, Pseudo};
use super::{OWNER, PG_CATALOG, Row, int, oid, text};
use crate::types::Type;
use nestor_model::{Array, Value};

/// OIDs of these functions, by the place of their type among all.
const FIRST: u32 = 80_000;

/// What a function does.
#[derive(Clone, Copy)]
pub enum Way {
    /// Reads text.
    In,
    /// Writes text.
    Out,
    /// Reads binary.
    Receive,
    /// Writes binary.
    Send,
}

impl Way {
    const ALL: [Self; 4] = [Self::In, Self::Out, Self::Receive, Self::Send];

    fn name(self) -> &'static str {
        match self {
            Self::In => "in",
            Self::Out => "out",
            Self::Receive => "recv",
            Self::Send => "send",
        }
    }
}

/// What the names of a type's functions begin with. Types that are made of others have theirs together.
fn beginning(ty: &Type) -> String {
    match ty {
        Type::Array(_) => "array_".to_owned(),
        Type::Enum(_) => "enum_".to_owned(),
        Type::Composite(_) => "record_".to_owned(),
        Type::Refcursor => "text".to_owned(),
        Type::Domain(own) => beginning(own.bottom().0),
        ty if ty.range_element().is_some() => "range_".to_owned(),
        ty if ty.multirange_element().is_some() => "multirange_".to_owned(),
        ty => {
            let name = ty.name();
            let apart = [
                "inet",
                "cidr",
                "macaddr",
                "date",
                "time",
                "timetz",
                "timestamp",
                "timestamptz",
                "interval",
                "numeric",
                "bit",
                "varbit",
                "json",
                "jsonb",
                "jsonpath",
                "uuid",
                "record",
                "void",
            ];
            match apart.contains(&name.as_str()) {
                true => format!("{name}_"),
                false => name,
            }
        }
    }
}

/// The beginnings of all names, each once.
fn beginnings() -> Vec<String> {
    let mut out: Vec<String> = vec!["array_".to_owned(), "enum_".to_owned()];
    for ty in Type::all() {
        let own = beginning(&ty);
        if !out.contains(&own) {
            out.push(own);
        }
    }
    out.extend(PSEUDO_TYPES.iter().map(|pseudo| format!("{}_", pseudo.name)));
    out
}

/// Whether there are functions of these names for values in binary.
fn is_binary(beginning: &str) -> bool {
    let mut pseudo = PSEUDO_TYPES.iter();
    let own = pseudo.find(|pseudo| beginning.strip_suffix('_') == Some(pseudo.name));
    own.is_none_or(|own| own.is_binary)
}

/// The functions that there are, by OID: what they do, and their names.
fn all() -> impl Iterator<Item = (u32, Way, String)> {
    let each = beginnings().into_iter().flat_map(|beginning| {
        let is_binary = is_binary(&beginning);
        Way::ALL.map(|way| (way, format!("{beginning}{}", way.name()), is_binary))
    });
    let each = (FIRST..).zip(each);
    each.filter(|(_, (way, _, is_binary))| *is_binary || matches!(way, Way::In | Way::Out))
        .map(|(n, (way, name, _))| (n, way, name))
}

/// The numbers of the functions of a pseudo-type.
pub(super) fn of_pseudo(pseudo: &Pseudo, all: &Beginnings) -> [(&'static str, Value); 4] {
    numbers(&format!("{}_", pseudo.name), all)
}

/// The numbers of the four functions of a type.
pub fn of_type(ty: &Type, all: &Beginnings) -> [(&'static str, Value); 4] {
    numbers(&beginning(ty), all)
}

fn numbers(own: &str, all: &Beginnings) -> [(&'static str, Value); 4] {
    let at = all.0.iter().position(|beginning| beginning == own).unwrap_or(0);
    let is_binary = is_binary(own);
    let number = |way: Way| match way {
        Way::Receive | Way::Send if !is_binary => oid(0),
        way => oid(FIRST + 4 * u32::try_from(at).unwrap_or(0) + way as u32),
    };
    [
        ("typinput", number(Way::In)),
        ("typoutput", number(Way::Out)),
        ("typreceive", number(Way::Receive)),
        ("typsend", number(Way::Send)),
    ]
}

/// The order that the functions are numbered by.
pub struct Beginnings(Vec<String>);

impl Beginnings {
    /// That of all types.
    pub fn new() -> Self {
        Self(beginnings())
    }
}

/// The names of these functions, and the types of their arguments as they are shown, by OID.
pub fn names() -> Vec<(i64, String, String)> {
    let each = all().map(|(n, way, name)| {
        let shown = arguments(way, &name).into_iter().map(|ty| match ty {
            CSTRING => "cstring",
            INTERNAL => "internal",
            OID => "oid",
            INTEGER => "integer",
            _ => "\"any\"",
        });
        let shown = shown.collect::<Vec<_>>().join(",");
        (i64::from(n), name, shown)
    });
    each.collect()
}

const INTEGER: u32 = 23;
const OID: u32 = 26;
const CSTRING: u32 = 2275;
const ANY: u32 = 2276;
const INTERNAL: u32 = 2281;

/// What the names of types' functions begin with that are told the type, and the modifier, beside the value.
const TOLD: [&str; 15] = [
    "array_",
    "bit_",
    "bpchar",
    "domain_",
    "interval_",
    "multirange_",
    "numeric_",
    "range_",
    "record_",
    "time_",
    "timestamp_",
    "timestamptz_",
    "timetz_",
    "varbit_",
    "varchar",
];

/// The types of the arguments of a function.
fn arguments(way: Way, name: &str) -> Vec<u32> {
    let first = match way {
        Way::In => CSTRING,
        Way::Receive => INTERNAL,
        Way::Out | Way::Send => return vec![ANY],
    };
    match name.strip_suffix(way.name()) {
        Some("enum_") => vec![first, OID],
        Some(beginning) if TOLD.contains(&beginning) => vec![first, OID, INTEGER],
        _ => vec![first],
    }
}

/// Their rows in `pg_proc`.
pub fn procedures() -> Vec<Row> {
    let row = |(n, way, name): (u32, Way, String)| -> Row {
        let result = match way {
            Way::In | Way::Receive => ANY,
            Way::Out => CSTRING,
            Way::Send => Type::Bytea.oid(),
        };
        let arguments: Vec<Value> = arguments(way, &name).into_iter().map(oid).collect();
        vec![
            ("oid", oid(n)),
            ("proname", text(&name)),
            ("pronamespace", oid(PG_CATALOG)),
            ("proowner", oid(OWNER)),
            ("prolang", oid(12)),
            ("procost", Value::Double(1.0)),
            ("prokind", text("f")),
            ("proisstrict", Value::Bool(true)),
            ("provolatile", text("i")),
            ("proparallel", text("s")),
            ("pronargs", int(arguments.len())),
            ("prorettype", oid(result)),
            ("proargtypes", Value::Array(Array::new(arguments))),
            ("prosrc", text(&name)),
        ]
    };
    all().map(row).collect()
}
