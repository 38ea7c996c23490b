//! What clients ask of the server itself, and of its catalog.

use super::known::look;
use super::{Row, sizes};
use crate::types::interval::Interval;
use crate::types::names::{names_in, quoted};
use crate::types::{Type, integer, output};
use crate::{asked, current};
use nestor_model::interrupt::while_waiting;
use nestor_model::statement::{UNITS, work};
use nestor_model::{Array, Result, Value, ValueRef};
use nestor_planner::relation::{Effects, Env};
use std::time::{Duration, Instant};

fn oid(value: &Value) -> Option<Type> {
    integer(value)
        .and_then(|oid| u32::try_from(oid).ok())
        .and_then(Type::of_oid)
}

/// The OIDs of what is in `information_schema`, which is not found by its name alone.
pub const STANDARD: std::ops::Range<i64> = 12_100..13_000;

/// The key of the text of an index's part, by its place from 1 on, among the texts of all indexes.
pub fn part_key(index: i64, at: i64) -> i64 {
    index + (at << 32)
}

/// A name, with a schema or not, as catalogs have it: what is not quoted in lower case.
pub fn folded(text: &str) -> String {
    let (mut out, mut quoted) = (String::new(), false);
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            c if quoted => out.push(c),
            c => out.extend(c.to_lowercase()),
        }
    }
    out
}

/// The number of the type that a text names.
pub fn type_number(name: &str, made: &Value) -> Option<Value> {
    let name = name.trim();
    if let Ok(oid) = name.parse::<u32>() {
        return Some(Value::Int64(i64::from(oid)));
    }
    if let Some(ty) = Type::named(name) {
        return Some(Value::Int64(i64::from(ty.oid())));
    }
    match made {
        Value::Document(made) => look(made, &crate::types::name_key(name)).map(|number| number.to_value()),
        _ => None,
    }
}

/// What stands for the number of a name that several functions have.
pub const AMBIGUOUS: i64 = -1;

/// The number of the function, schema or role that a text names, or the number that it is; `numbers` are those of the kind `ty` by their names,
/// [`AMBIGUOUS`] where several have one.
///
/// Errors: 42883, 3F000 and 42704 where there is none, 42725 where there are several.
pub fn object_number(ty: &Type, text: &str, numbers: &Value) -> nestor_model::Result<i64> {
    let text = text.trim();
    if text == "-" {
        return Ok(0);
    }
    if let Ok(number) = text.parse::<u32>() {
        return Ok(i64::from(number));
    }
    let (name, arguments) = match (ty, text.find('(')) {
        (Type::Regprocedure, Some(at)) => text.split_at(at),
        _ => (text, ""),
    };
    let parts = names_in(name);
    let name = match parts.as_slice() {
        [schema, name] if matches!(schema.as_str(), "pg_catalog" | "public") => name.clone(),
        parts => parts.join("."),
    };
    let name = match ty {
        Type::Regnamespace | Type::Regrole => quoted(&name),
        _ => format!("{name}{}", spelled_out(arguments)),
    };
    let found = match numbers {
        Value::Document(numbers) => look(numbers, &name).and_then(|number| integer(&number.to_value())),
        _ => None,
    };
    match (found, ty) {
        (Some(AMBIGUOUS), _) => crate::error::fail("42725", format!("more than one function named \"{text}\"")),
        (Some(number), _) => Ok(number),
        (None, Type::Regnamespace) => crate::error::fail("3F000", format!("schema \"{text}\" does not exist")),
        (None, Type::Regrole) => crate::error::fail("42704", format!("role \"{text}\" does not exist")),
        (None, _) => crate::error::fail("42883", format!("function \"{text}\" does not exist")),
    }
}

/// [`object_number`] of a text, a document of numbers and the name of a type.
fn object_of(args: &[Value]) -> nestor_model::Result<Value> {
    let word = |at: usize| args[at].as_str().unwrap_or_default();
    match Type::named(word(2)) {
        Some(ty) => object_number(&ty, word(0), &args[1]).map(Value::Int64),
        None => Ok(Value::Null),
    }
}

/// The arguments of a function with the names of their types as they are shown.
fn spelled_out(arguments: &str) -> String {
    let Some(arguments) = arguments.trim().strip_prefix('(') else {
        return String::new();
    };
    let arguments = arguments.trim_end_matches(')').split(',').map(str::trim);
    let shown: Vec<String> = arguments
        .map(|ty| Type::of_name(ty).map_or_else(|| ty.to_owned(), |ty| ty.to_string()))
        .collect();
    format!("({})", shown.join(","))
}

/// What may be granted in PostgreSQL.
pub(crate) const PRIVILEGES: [&str; 13] = [
    "SELECT",
    "INSERT",
    "UPDATE",
    "DELETE",
    "TRUNCATE",
    "REFERENCES",
    "TRIGGER",
    "USAGE",
    "CREATE",
    "CONNECT",
    "TEMPORARY",
    "TEMP",
    "EXECUTE",
];

/// The parts of a name with dots in it, as catalogs have them.
///
/// Errors: 22023.
fn identifiers(text: &str, is_strict: bool) -> nestor_model::Result<Value> {
    let invalid = || crate::error::error("22023", format!("string is not a valid identifier: \"{text}\""));
    let (mut parts, mut rest) = (Vec::new(), text.trim());
    loop {
        let part;
        if let Some(mut quoted) = rest.strip_prefix('"') {
            let mut name = String::new();
            loop {
                let end = quoted.find('"').ok_or_else(invalid)?;
                name.push_str(&quoted[..end]);
                quoted = &quoted[end + 1..];
                match quoted.strip_prefix('"') {
                    Some(more) => (name, quoted) = (format!("{name}\""), more),
                    None => break,
                }
            }
            (part, rest) = (name, quoted);
        } else {
            let is_in =
                |(at, c): (usize, char)| c == '_' || c.is_alphabetic() || at > 0 && (c.is_ascii_digit() || c == '$');
            let end = rest
                .char_indices()
                .find(|place| !is_in(*place))
                .map_or(rest.len(), |(at, _)| at);
            (part, rest) = (rest[..end].to_lowercase(), &rest[end..]);
        }
        if part.is_empty() {
            return Err(invalid());
        }
        parts.push(Value::String(part.into()));
        rest = rest.trim_start();
        match rest.strip_prefix('.') {
            Some(more) => rest = more.trim_start(),
            None if rest.is_empty() || !is_strict => return Ok(Value::Array(Array::new(parts))),
            None => return Err(invalid()),
        }
    }
}

/// By what the sequences of a table's columns are found: its name, or its schema and its name.
pub fn sequences_key(parts: &[&str]) -> String {
    parts.join("\u{1}")
}

fn yes() -> nestor_model::Result<Value> {
    Ok(Value::Bool(true))
}

/// Whether a privilege is held. What a user may not read is in no catalog, so those of reading are; who may do everything has all.
///
/// Errors: 0A000 for others of writing, which depend on the user's roles; 22023 for what is no privilege.
fn may(privilege: &Value) -> nestor_model::Result<Value> {
    let wanted = privilege.as_str().unwrap_or_default().to_ascii_uppercase();
    let each = || wanted.split(',').map(str::trim);
    if let Some(other) = each().find(|one| !PRIVILEGES.contains(&one.trim_end_matches(" WITH GRANT OPTION"))) {
        return crate::error::fail("22023", format!("unrecognized privilege type: \"{other}\""));
    }
    let has_all = || current::get().is_some_and(|current| current.is_superuser);
    match each().all(|one| matches!(one, "SELECT" | "USAGE" | "CONNECT" | "EXECUTE")) || has_all() {
        true => yes(),
        false => crate::error::unsupported(format!("asking for privilege {wanted}")),
    }
}

/// The function that looks up whether one of some privileges is held on an object of a kind: by the letters of access lists for each number, those of 0
/// for the catalog's own, `*` for all.
pub const HOLDS: &str = "catalog_right";

/// Privileges on objects of a kind, with the letters that they are; some nobody has but who has all.
fn privileges(kind: &str) -> &'static [(&'static str, &'static str)] {
    match kind {
        "table" => &[
            ("SELECT", "r"),
            ("INSERT", "a"),
            ("UPDATE", "w"),
            ("DELETE", "d"),
            ("TRUNCATE", "D"),
            ("REFERENCES", "r"),
            ("TRIGGER", "*"),
            ("RULE", "*"),
        ],
        "column" => &[("SELECT", "r"), ("INSERT", "a"), ("UPDATE", "w"), ("REFERENCES", "r")],
        "sequence" => &[("USAGE", "r"), ("SELECT", "r"), ("UPDATE", "w")],
        "schema" => &[("CREATE", "C"), ("USAGE", "U")],
        _ => &[("USAGE", "*"), ("MEMBER", "*")],
    }
}

/// Whether one of some privileges is held; null where there is no such object.
///
/// Errors: 22023 for what is no privilege.
fn holds(a: &[Value]) -> nestor_model::Result<Value> {
    let kind = a[2].as_str().unwrap_or_default();
    let (Some(oid), Value::Document(held)) = (integer(&a[0]), &a[3]) else {
        return Ok(Value::Null);
    };
    let mut wanted = Vec::new();
    for one in a[1].as_str().unwrap_or_default().split(',').map(str::trim) {
        let upper = one.to_ascii_uppercase();
        let (plain, may_grant) = match upper.strip_suffix(" WITH GRANT OPTION") {
            Some(plain) => (plain, true),
            None => match upper.strip_suffix(" WITH ADMIN OPTION").filter(|_| kind == "role") {
                Some(plain) => (plain, true),
                None => (upper.as_str(), false),
            },
        };
        match privileges(kind).iter().find(|(name, _)| *name == plain) {
            Some(_) if may_grant => wanted.push("*"),
            Some((_, letter)) => wanted.push(*letter),
            None => return crate::error::fail("22023", format!("unrecognized privilege type: \"{one}\"")),
        }
    }
    let letters = look(held, &oid.to_string()).and_then(ValueRef::as_str);
    let letters = match kind {
        "role" => letters.or(Some("")),
        _ => letters.or_else(|| {
            look(held, "0")
                .and_then(ValueRef::as_str)
                .filter(|_| oid < CATALOGS_END)
        }),
    };
    let is_held = |letters: &str| letters == "*" || wanted.iter().any(|letter| letters.contains(letter));
    Ok(letters.map_or(Value::Null, |letters| Value::Bool(is_held(letters))))
}

/// Numbers of relations before this one are those of the catalog's own.
const CATALOGS_END: i64 = 16_384;

/// The sequences of a statement that may take numbers.
fn sequences<'e>(env: &Env<'e>) -> nestor_model::Result<&'e dyn Effects> {
    match env.effects {
        Some(effects) => Ok(effects),
        None => crate::error::unsupported("a sequence in this place"),
    }
}

fn set(env: &Env<'_>, args: &[Value]) -> nestor_model::Result<Value> {
    let number = integer(&args[1]).unwrap_or(0);
    let is_called = !matches!(args.get(2), Some(Value::Bool(false)));
    sequences(env)?.set(&args[0], number, is_called)?;
    Ok(Value::Int64(number))
}

/// Waits, until the statement is stopped.
fn sleep(time: Duration) -> nestor_model::Result<Value> {
    const STEP: Duration = Duration::from_millis(10);
    let until = Instant::now() + time;
    while_waiting(|| {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Value::String("".into()));
            }
            std::thread::sleep(left.min(STEP));
            work(UNITS)?;
        }
    })
}

/// The number of the transaction.
fn transaction(env: &Env<'_>, gives: bool) -> Result<Value> {
    match env.effects {
        Some(effects) => Ok(effects.transaction(gives)?.map_or(Value::Null, Value::Int64)),
        None => crate::error::unsupported("the number of a transaction in this place"),
    }
}

pub(super) const ROWS: &[Row] = &[
    (crate::parse::cursors::CURRENT_OF, "?!text->bool", |_, _, _| {
        crate::error::unsupported("WHERE CURRENT OF here")
    }),
    ("pg_typeof", "?any->regtype", |_, _, args| {
        let oid = match args[0].node() {
            crate::expr::Node::Cast { to, .. } => to.oid(),
            _ => args[0].ty().oid(),
        };
        Ok(Value::Int64(i64::from(oid)))
    }),
    ("format_type", "?oid,int4->text", |a, _, _| {
        Ok(match (&a[0], oid(&a[0])) {
            (Value::Null, _) => Value::Null,
            (_, None) => Value::String("???".into()),
            (_, Some(ty)) => {
                let modifier = integer(&a[1]).and_then(|n| i32::try_from(n).ok()).unwrap_or(-1);
                Value::String(ty.format(modifier).into())
            }
        })
    }),
    ("set_config", "?!text,text,bool->text", |a, _, _| {
        let Some(name) = a[0].as_str() else {
            return crate::error::fail("22004", "SET requires parameter name");
        };
        asked::set((
            name.to_owned(),
            a[1].as_str().map(str::to_owned),
            matches!(a[2], Value::Bool(true)),
        ));
        Ok(a[1].clone())
    }),
    ("pg_sleep", "!float8->void", |a, _, _| {
        let seconds = match a[0] {
            Value::Double(n) if n > 0.0 => n.min(1e9),
            _ => 0.0,
        };
        sleep(Duration::from_secs_f64(seconds))
    }),
    ("pg_sleep_for", "!interval->void", |a, _, _| {
        let us = Interval::of(&a[0]).total_us();
        sleep(Duration::from_micros(u64::try_from(us).unwrap_or(0)))
    }),
    ("txid_current", "!->int8", |_, env, _| transaction(env, true)),
    ("txid_current_if_assigned", "!->int8", |_, env, _| {
        transaction(env, false)
    }),
    ("pg_current_xact_id", "!->int8", |_, env, _| transaction(env, true)),
    ("pg_current_xact_id_if_assigned", "!->int8", |_, env, _| {
        transaction(env, false)
    }),
    ("pg_notify", "?!text,text->void", |a, _, _| {
        if crate::current::get().is_none() {
            return crate::error::unsupported("pg_notify outside of connections that speak SQL");
        }
        let [channel, payload] = [0, 1].map(|at| a[at].as_str().unwrap_or_default().to_owned());
        asked::notify(channel, payload);
        Ok(Value::String("".into()))
    }),
    ("pg_cancel_backend", "!int4->bool", |a, _, _| {
        match asked::cancel(integer(&a[0]).unwrap_or(0)) {
            Some(false) => crate::error::fail("42501", "must be a member of the role whose query is being canceled"),
            found => Ok(Value::Bool(found.is_some())),
        }
    }),
    // The number of a type by its name, which may be a number itself; those that somebody has made stand in what the binder has filled in.
    ("catalog_type", "text,any->regtype", |a, _, _| {
        let name = a[0].as_str().unwrap_or_default();
        match type_number(name, &a[1]) {
            Some(number) => Ok(number),
            None => crate::error::fail("42704", format!("type \"{name}\" does not exist")),
        }
    }),
    // The same; null when there is none.
    ("catalog_type_or_null", "text,any->regtype", |a, _, _| {
        Ok(type_number(a[0].as_str().unwrap_or_default(), &a[1]).unwrap_or(Value::Null))
    }),
    // The number of an object by its name, of the kind that a type stands for.
    ("catalog_object", "text,any,text->oid", |a, _, _| object_of(a)),
    // The same; null when there is none.
    ("catalog_object_or_null", "text,any,text->oid", |a, _, _| {
        Ok(object_of(a).unwrap_or(Value::Null))
    }),
    (
        "pg_terminate_backend",
        "!int4->bool",
        |a, _, _| match asked::terminate(integer(&a[0]).unwrap_or(0)) {
            Some(false) => crate::error::fail(
                "42501",
                "must be a member of the role whose process is being terminated",
            ),
            found => Ok(Value::Bool(found.is_some())),
        },
    ),
    ("inet_server_port", "->int4", |_, _, _| Ok(Value::Null)),
    ("inet_client_port", "->int4", |_, _, _| Ok(Value::Null)),
    ("inet_server_addr", "->inet", |_, _, _| Ok(Value::Null)),
    ("inet_client_addr", "->inet", |_, _, _| Ok(Value::Null)),
    ("pg_encoding_to_char", "int4->name", |_, _, _| {
        Ok(Value::String("UTF8".into()))
    }),
    ("pg_table_is_visible", "oid->bool", |a, _, _| {
        Ok(Value::Bool(!STANDARD.contains(&integer(&a[0]).unwrap_or(0))))
    }),
    ("pg_type_is_visible", "oid->bool", |_, _, _| yes()),
    ("pg_function_is_visible", "oid->bool", |_, _, _| yes()),
    ("pg_relation_is_publishable", "regclass->bool", |_, _, _| {
        Ok(Value::Bool(false))
    }),
    ("pg_get_expr", "?text,oid->text", |a, _, _| Ok(a[0].clone())),
    ("pg_get_expr", "?text,oid,bool->text", |a, _, _| Ok(a[0].clone())),
    ("obj_description", "?any...->text", |_, _, _| Ok(Value::Null)),
    ("col_description", "?any...->text", |_, _, _| Ok(Value::Null)),
    ("shobj_description", "?any...->text", |_, _, _| Ok(Value::Null)),
    // Rights come from roles, so nothing has lists of them.
    ("acldefault", "?any,oid->text[]", |_, _, _| Ok(Value::Null)),
    ("pg_get_statisticsobjdef_columns", "?any...->text", |_, _, _| {
        Ok(Value::Null)
    }),
    ("pg_opclass_is_visible", "oid->bool", |_, _, _| yes()),
    ("pg_opfamily_is_visible", "oid->bool", |_, _, _| yes()),
    ("pg_operator_is_visible", "oid->bool", |_, _, _| yes()),
    ("pg_collation_is_visible", "oid->bool", |_, _, _| yes()),
    ("pg_conversion_is_visible", "oid->bool", |_, _, _| yes()),
    ("pg_ts_config_is_visible", "oid->bool", |_, _, _| yes()),
    ("pg_ts_dict_is_visible", "oid->bool", |_, _, _| yes()),
    ("pg_ts_parser_is_visible", "oid->bool", |_, _, _| yes()),
    ("pg_ts_template_is_visible", "oid->bool", |_, _, _| yes()),
    ("pg_statistics_obj_is_visible", "oid->bool", |_, _, _| yes()),
    ("pg_get_ruledef", "?any...->text", |_, _, _| Ok(Value::Null)),
    ("pg_get_triggerdef", "?any...->text", |_, _, _| Ok(Value::Null)),
    ("pg_get_statisticsobjdef", "?any...->text", |_, _, _| Ok(Value::Null)),
    // Sizes of relations and databases are looked up where functions are bound.
    ("pg_tablespace_size", "?any...->int8", |_, _, _| Ok(Value::Null)),
    ("pg_size_pretty", "int8->text", |a, _, _| {
        Ok(Value::String(
            sizes::pretty(i128::from(integer(&a[0]).unwrap_or(0)), None).into(),
        ))
    }),
    ("pg_size_pretty", "numeric->text", |a, _, _| sizes::pretty_of(&a[0])),
    ("pg_size_bytes", "text->int8", |a, _, _| {
        sizes::bytes(a[0].as_str().unwrap_or_default())
    }),
    ("catalog_text", "text,any->text", |a, _, _| {
        let (Some(name), Value::Document(texts)) = (a[0].as_str(), &a[1]) else {
            return Ok(Value::Null);
        };
        Ok(look(texts, name).map_or(Value::Null, |text| text.to_value()))
    }),
    ("unknown_setting", "!text->text", |a, _, _| {
        let name = a[0].as_str().unwrap_or_default();
        crate::error::fail("42704", format!("unrecognized configuration parameter \"{name}\""))
    }),
    ("pg_tablespace_location", "oid->text", |_, _, _| {
        Ok(Value::String("".into()))
    }),
    ("getdatabaseencoding", "->name", |_, _, _| {
        Ok(Value::String("UTF8".into()))
    }),
    ("pg_is_in_recovery", "->bool", |_, _, _| Ok(Value::Bool(false))),
    ("pg_is_other_temp_schema", "oid->bool", |_, _, _| Ok(Value::Bool(false))),
    ("pg_char_to_encoding", "name->int4", |_, _, _| Ok(Value::Int32(6))),
    (HOLDS, "oid,text,text,jsonb->bool", |a, _, _| holds(a)),
    ("has_table_privilege", "any,any,text->bool", |a, _, _| may(&a[2])),
    ("has_table_privilege", "any,text->bool", |a, _, _| may(&a[1])),
    ("has_any_column_privilege", "any,any,text->bool", |a, _, _| may(&a[2])),
    ("has_column_privilege", "any,any,any,text->bool", |a, _, _| may(&a[3])),
    ("parse_ident", "text->text[]", |a, _, _| {
        identifiers(a[0].as_str().unwrap_or_default(), true)
    }),
    ("parse_ident", "text,bool->text[]", |a, _, _| {
        identifiers(a[0].as_str().unwrap_or_default(), matches!(a[1], Value::Bool(true)))
    }),
    // Reads are not counted by relation.
    ("pg_stat_get_numscans", "?oid->int8", |_, _, _| Ok(Value::Null)),
    ("has_any_column_privilege", "any,text->bool", |a, _, _| may(&a[1])),
    ("has_column_privilege", "any,any,text->bool", |a, _, _| may(&a[2])),
    ("has_schema_privilege", "any,any,text->bool", |a, _, _| may(&a[2])),
    ("has_schema_privilege", "any,text->bool", |a, _, _| may(&a[1])),
    ("has_database_privilege", "any,any,text->bool", |a, _, _| may(&a[2])),
    ("has_database_privilege", "any,text->bool", |a, _, _| may(&a[1])),
    ("has_function_privilege", "any,any,text->bool", |a, _, _| may(&a[2])),
    ("has_function_privilege", "any,text->bool", |a, _, _| may(&a[1])),
    ("has_type_privilege", "any,any,text->bool", |a, _, _| may(&a[2])),
    ("has_type_privilege", "any,text->bool", |a, _, _| may(&a[1])),
    ("has_sequence_privilege", "any,any,text->bool", |a, _, _| may(&a[2])),
    ("has_sequence_privilege", "any,text->bool", |a, _, _| may(&a[1])),
    ("has_language_privilege", "any,any,text->bool", |a, _, _| may(&a[2])),
    ("has_language_privilege", "any,text->bool", |a, _, _| may(&a[1])),
    ("has_tablespace_privilege", "any,any,text->bool", |a, _, _| may(&a[2])),
    ("has_tablespace_privilege", "any,text->bool", |a, _, _| may(&a[1])),
    // The number of a record as a block and a place in it.
    ("record_place", "bytea->tid", |a, _, _| {
        let Value::Binary(key) = &a[0] else {
            return Ok(Value::Null);
        };
        let number = <[u8; 8]>::try_from(&*key.bytes).ok().map(u64::from_be_bytes);
        match number.filter(|number| *number < 1 << 48) {
            Some(number) => Ok(Value::Int64(number.cast_signed())),
            None => crate::error::unsupported("system column \"ctid\" of a clustered collection"),
        }
    }),
    // There are no triggers.
    ("pg_trigger_depth", "->int4", |_, _, _| Ok(Value::Int32(0))),
    ("pg_has_role", "any,text->bool", |_, _, _| yes()),
    ("pg_has_role", "any,any,text->bool", |_, _, _| yes()),
    // A table and a column looked up among their sequences, which the binder has filled in.
    ("catalog_sequence", "text,text,any->text", |a, _, _| {
        let [Value::String(table), Value::String(column), Value::Document(tables)] = a else {
            return Ok(Value::Null);
        };
        let Value::Array(parts) = identifiers(table, true)? else {
            return Ok(Value::Null);
        };
        let parts: Vec<&str> = parts.iter().filter_map(|part| part.as_str()).collect();
        let name = parts.join(".");
        let Some(ValueRef::Document(columns)) = tables.get(&sequences_key(&parts)) else {
            return crate::error::fail("42P01", format!("relation \"{name}\" does not exist"));
        };
        match columns.get(column) {
            Some(sequence) => Ok(sequence.to_value()),
            None => {
                let message = format!("column \"{column}\" of relation \"{name}\" does not exist");
                crate::error::fail("42703", message)
            }
        }
    }),
    // The number of a relation by its name, which may have a schema before it or be a number itself.
    (
        "catalog_number",
        "text,any->regclass",
        |a, _, _| match relation_number(a) {
            Value::Null if !matches!(a[0], Value::Null) => {
                let name = a[0].as_str().unwrap_or_default();
                crate::error::fail("42P01", format!("relation \"{name}\" does not exist"))
            }
            number => Ok(number),
        },
    ),
    // The same; null when there is none.
    ("catalog_relation", "text,any->regclass", |a, _, _| {
        Ok(relation_number(a))
    }),
    ("oidvectortypes", "oidvector->text", |a, _, _| {
        let Value::Array(oids) = &a[0] else {
            return Ok(Value::Null);
        };
        let name = |item: ValueRef<'_>| oid(&item.to_value()).map_or_else(|| "-".to_owned(), |ty| ty.to_string());
        let names: Vec<String> = oids.iter().map(name).collect();
        Ok(Value::String(names.join(", ").into()))
    }),
    // A part of an index, or all of it for 0.
    ("catalog_part", "oid,int4,any->text", |a, _, _| {
        let (Some(oid), Some(at), Value::Document(texts)) = (integer(&a[0]), integer(&a[1]), &a[2]) else {
            return Ok(Value::Null);
        };
        let key = part_key(oid, at).to_string();
        Ok(look(texts, &key).map_or(Value::Null, |text| text.to_value()))
    }),
    // What a part of an index is like, whose order the binder has filled in.
    ("catalog_property", "text,text->bool", |a, _, _| {
        let (Value::String(order), Value::String(property)) = (&a[0], &a[1]) else {
            return Ok(Value::Null);
        };
        let order: i32 = order.parse().unwrap_or(0);
        Ok(match &*property.to_lowercase() {
            "asc" => Value::Bool(order & 1 == 0),
            "desc" => Value::Bool(order & 1 != 0),
            "nulls_first" => Value::Bool(order & 2 != 0),
            "nulls_last" => Value::Bool(order & 2 == 0),
            "orderable" | "returnable" | "search_array" | "search_nulls" => Value::Bool(true),
            "distance_orderable" => Value::Bool(false),
            _ => Value::Null,
        })
    }),
    // A number looked up among texts, which the binder has filled in.
    ("catalog_text", "oid,any->text", |a, _, _| {
        let (Some(oid), Value::Document(texts)) = (integer(&a[0]), &a[1]) else {
            return Ok(Value::Null);
        };
        Ok(look(texts, &oid.to_string()).map_or(Value::Null, |text| text.to_value()))
    }),
    ("nextval", "!text->int8", |a, env, _| {
        sequences(env)?.next(&a[0]).map(Value::Int64)
    }),
    ("nextval", "!regclass->int8", |a, env, _| {
        sequences(env)?.next(&a[0]).map(Value::Int64)
    }),
    ("currval", "!text->int8", |a, env, _| {
        sequences(env)?.current(Some(&a[0])).map(Value::Int64)
    }),
    ("currval", "!regclass->int8", |a, env, _| {
        sequences(env)?.current(Some(&a[0])).map(Value::Int64)
    }),
    ("lastval", "!->int8", |_, env, _| {
        sequences(env)?.current(None).map(Value::Int64)
    }),
    ("setval", "!text,int8->int8", |a, env, _| set(env, a)),
    ("setval", "!regclass,int8->int8", |a, env, _| set(env, a)),
    ("setval", "!text,int8,bool->int8", |a, env, _| set(env, a)),
    ("setval", "!regclass,int8,bool->int8", |a, env, _| set(env, a)),
    // What it means the query decides that groups (`bind/select.rs`); elsewhere there are no groups.
    ("grouping", "?any...->int4", |_, _, _| {
        crate::error::fail("42803", "GROUPING needs a GROUP BY")
    }),
    ("num_nulls", "?any...->int4", |a, _, _| {
        Ok(Value::Int32(
            a.iter().filter(|v| matches!(v, Value::Null)).count() as i32
        ))
    }),
    ("num_nonnulls", "?any...->int4", |a, _, _| {
        Ok(Value::Int32(
            a.iter().filter(|v| !matches!(v, Value::Null)).count() as i32
        ))
    }),
    ("pg_column_size", "any->int4", |a, _, args| {
        Ok(Value::Int32(output::text(&args[0].ty(), &a[0]).len() as i32))
    }),
];

/// The number of the relation whose name comes first, by the numbers that come second.
fn relation_number(a: &[Value]) -> Value {
    let (Some(name), Value::Document(numbers)) = (a[0].as_str(), &a[1]) else {
        return Value::Null;
    };
    if let Ok(oid) = name.parse::<u32>() {
        return Value::Int64(i64::from(oid));
    }
    // A database before them is that of the connection.
    let parts = names_in(name);
    let parts = match parts.as_slice() {
        [_, rest @ ..] if parts.len() == 3 => rest,
        parts => parts,
    };
    let parts = match parts {
        [schema, name] if schema == "pg_temp" => std::slice::from_ref(name),
        parts => parts,
    };
    let shown: Vec<String> = parts.iter().map(|part| quoted(part)).collect();
    let number = look(numbers, &shown.join("."));
    number.map_or(Value::Null, |number| number.to_value())
}
