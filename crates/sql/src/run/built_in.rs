//! Functions of triggers that are there without anybody having made them: those that keep the vector of a row's texts.

use super::procedures::{Fate, Fired};
use crate::error::{error, fail};
use crate::parse::trigger::Event;
use crate::search::words::Words;
use crate::types::Type;
use crate::types::regconfig::{Config, TRIGGER_FUNCTIONS as FUNCTIONS};
use crate::types::{integer, names};
use nestor_model::Result;

/// The schema of such functions.
pub const SCHEMA: &str = "pg_catalog";

/// The function whose second argument is a configuration.
const BY_NAME: &str = FUNCTIONS[0].1;
/// The one whose second argument is a column that has it.
const BY_COLUMN: &str = FUNCTIONS[1].1;

/// Whether there is such a function.
pub fn is_function(schema: Option<&str>, name: &str) -> bool {
    schema.is_none_or(|schema| schema == SCHEMA) && FUNCTIONS.iter().any(|(_, own)| *own == name)
}

/// What becomes of a row by such a function: the vector of some of its texts becomes that of another column.
///
/// Errors: XX000 for a trigger of another kind, 42703, 42804, 22004, 22023 and 42704 for its arguments.
pub fn fire(fired: &Fired<'_>) -> Result<Fate> {
    let wrong = |what: &str| fail("XX000", format!("{BY_NAME}: {what}"));
    let Some(row) = fired.new.as_ref().filter(|_| fired.is_row) else {
        return match fired.is_row {
            true => wrong("must be fired for INSERT or UPDATE"),
            false => wrong("must be fired for row"),
        };
    };
    if fired.when != "BEFORE" {
        return wrong("must be fired BEFORE event");
    }
    if !matches!(fired.event, Event::Insert | Event::Update) {
        return wrong("must be fired for INSERT or UPDATE");
    }
    let [vector, config, texts @ ..] = fired.args else {
        return wrong("arguments must be tsvector_field, ts_config, text_field1, ...)");
    };
    if texts.is_empty() {
        return wrong("arguments must be tsvector_field, ts_config, text_field1, ...)");
    }
    let place = |name: &str, what: &str| {
        let at = fired.columns().iter().position(|column| column.name == name);
        at.ok_or_else(|| error("42703", format!("{what}column \"{name}\" does not exist")))
    };
    let ty = |at: usize| fired.columns()[at].ty.clone().plain();
    let to = place(vector, "tsvector ")?;
    if ty(to) != Type::TsVector {
        return fail("42804", format!("column \"{vector}\" is not of tsvector type"));
    }
    let config = match fired.function == BY_COLUMN {
        true => {
            let at = place(config, "configuration ")?;
            if ty(at) != Type::Regconfig {
                return fail("42804", format!("column \"{config}\" is not of regconfig type"));
            }
            match row.get(at).and_then(integer) {
                Some(oid) => Config::of_oid(oid)?,
                None => {
                    let told = format!("configuration column \"{config}\" must not be null");
                    return fail("22004", told);
                }
            }
        }
        false if names::names_in(config).len() < 2 => {
            let told = format!("text search configuration name \"{config}\" must be schema-qualified");
            return fail("22023", told);
        }
        false => Config::named(config)?,
    };
    let mut words = Words::default();
    let mut changes = fired.event == Event::Insert;
    for name in texts {
        let at = place(name, "")?;
        if !matches!(ty(at), Type::Text | Type::Varchar) {
            return fail("42804", format!("column \"{name}\" is not of a character type"));
        }
        let before = fired.old.as_ref().and_then(|old| old.get(at));
        changes |= before.is_none_or(|before| !before.identical(&row[at]));
        if let Some(text) = row[at].as_str() {
            words.read(config, text)?;
        }
    }
    if !changes {
        return Ok(Fate::Same);
    }
    let mut row = row.clone();
    row[to] = words.into_vector()?.to_value()?;
    Ok(Fate::Row(row))
}
