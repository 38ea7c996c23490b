//! Storage parameters of tables: `WITH (fillfactor = 70)`. They tune what PostgreSQL's pages and its vacuum do, of which there is nothing here: they are
//! kept with the table and shown (`pg_class.reloptions`, dumps), and change nothing.

use super::ident;
use crate::catalog::RowSecurity;
use crate::error::{self, Field, error, fail, unsupported};
use nestor_model::Result;
use sqlparser::ast::{BinaryOperator, CreateTableOptions, Expr, Ident, SqlOption, UnaryOperator, Value};

/// Parameters with whole numbers, and the least and the largest of these.
const NUMBERS: &[(&str, i64, i64)] = &[
    ("fillfactor", 10, 100),
    ("parallel_workers", 0, 1024),
    ("toast_tuple_target", 128, 8160),
    ("autovacuum_vacuum_threshold", 0, i32::MAX as i64),
    ("autovacuum_vacuum_insert_threshold", -1, i32::MAX as i64),
    ("autovacuum_analyze_threshold", 0, i32::MAX as i64),
    ("autovacuum_vacuum_cost_limit", 1, 10_000),
    ("autovacuum_freeze_min_age", 0, 1_000_000_000),
    ("autovacuum_freeze_max_age", 100_000, 2_000_000_000),
    ("autovacuum_freeze_table_age", 0, 2_000_000_000),
    ("log_autovacuum_min_duration", -1, i32::MAX as i64),
];

/// Parameters with numbers of any kind.
const FRACTIONS: &[&str] = &[
    "autovacuum_vacuum_scale_factor",
    "autovacuum_vacuum_insert_scale_factor",
    "autovacuum_analyze_scale_factor",
    "autovacuum_vacuum_cost_delay",
];

/// Parameters that are true or false.
const TRUTHS: &[&str] = &[
    "autovacuum_enabled",
    "vacuum_truncate",
    "deduplicate_items",
    "fastupdate",
];

/// Those that tables do not have.
const OF_INDEXES: [&str; 2] = ["deduplicate_items", "fastupdate"];

/// An option's name and its value as it is shown.
///
/// Errors: 0A000 for one of another form.
pub fn pair(option: &SqlOption) -> Result<(String, String)> {
    let value = |value: &Value| match value {
        Value::Number(number, _) => Some(number.clone()),
        Value::SingleQuotedString(text) => Some(text.clone()),
        Value::Boolean(truth) => Some(truth.to_string()),
        _ => None,
    };
    let found = match option {
        SqlOption::Ident(name) => Some((ident(name), "true".to_owned())),
        SqlOption::KeyValue { key, value: given } => {
            let shown = match given {
                Expr::Value(own) => value(&own.value),
                Expr::Identifier(word) => Some(ident(word)),
                Expr::UnaryOp {
                    op: UnaryOperator::Minus,
                    expr,
                } => match &**expr {
                    Expr::Value(own) => value(&own.value).map(|number| format!("-{number}")),
                    _ => None,
                },
                _ => None,
            };
            shown.map(|shown| (ident(key), shown))
        }
        _ => None,
    };
    match found {
        Some(found) => Ok(found),
        None => unsupported("a storage parameter of this form"),
    }
}

/// Whether a parameter is known, and has a value that it takes.
///
/// Errors: 22023.
fn check(name: &str, value: &str) -> Result<()> {
    if let Some((_, least, most)) = NUMBERS.iter().find(|(own, ..)| *own == name) {
        return match value.parse::<i64>() {
            Ok(number) if (*least..=*most).contains(&number) => Ok(()),
            Ok(number) => {
                let error = error("22023", format!("value {number} out of bounds for option \"{name}\""));
                let detail = format!("Valid values are between \"{least}\" and \"{most}\".");
                Err(error::with(error, &[(Field::Detail, &detail)]))
            }
            Err(_) => fail("22023", format!("invalid value for integer option \"{name}\": {value}")),
        };
    }
    let (kind, fits) = if FRACTIONS.contains(&name) {
        ("floating point", value.parse::<f64>().is_ok())
    } else if TRUTHS.contains(&name) {
        let known = ["true", "false", "on", "off", "yes", "no", "1", "0"];
        ("boolean", known.contains(&value))
    } else {
        return fail("22023", format!("unrecognized parameter \"{name}\""));
    };
    match fits {
        true => Ok(()),
        false => fail("22023", format!("invalid value for {kind} option \"{name}\": {value}")),
    }
}

/// What a table keeps beside its parameters: names that no parameter has.
const ROW_SECURITY: [&str; 2] = ["row security", "row security of the owner"];
const KEYS_ARE_OFF: &str = "foreign keys are off";

fn is_beside(name: &str) -> bool {
    ROW_SECURITY.contains(&name) || name == KEYS_ARE_OFF
}

/// Whether a table keeps one of these.
fn keeps(options: &CreateTableOptions, wanted: &str) -> Result<bool> {
    let CreateTableOptions::With(given) = options else {
        return Ok(false);
    };
    let names = given.iter().map(pair).collect::<Result<Vec<_>>>()?;
    Ok(names.iter().any(|(name, _)| name == wanted))
}

/// The options of a table that keeps these, as far as they are so, beside its others.
fn keeping(before: &CreateTableOptions, said: &[(&str, bool)]) -> Result<CreateTableOptions> {
    let mut all: Vec<SqlOption> = Vec::new();
    if let CreateTableOptions::With(before) = before {
        for option in before {
            let name = pair(option)?.0;
            if said.iter().all(|(own, _)| *own != name) {
                all.push(option.clone());
            }
        }
    }
    let kept = said.iter().filter(|(_, is_so)| *is_so);
    all.extend(kept.map(|(name, _)| SqlOption::KeyValue {
        key: Ident::with_quote('"', *name),
        value: Expr::value(Value::Boolean(true)),
    }));
    Ok(match all.is_empty() {
        true => CreateTableOptions::None,
        false => CreateTableOptions::With(all),
    })
}

/// Whether nobody looks at the foreign keys of a table's rows, and at those of rows that refer to it.
///
/// Errors: those of [`parameters`].
pub fn keys_are_off(options: &CreateTableOptions) -> Result<bool> {
    keeps(options, KEYS_ARE_OFF)
}

/// The options of a table whose foreign keys are looked at from now on, or no more.
///
/// Errors: those of [`parameters`].
pub fn with_keys(before: &CreateTableOptions, are_off: bool) -> Result<CreateTableOptions> {
    keeping(before, &[(KEYS_ARE_OFF, are_off)])
}

/// What an earlier version said of row security here, before it was an option of the collection.
///
/// Errors: those of [`parameters`].
pub fn row_security(options: &CreateTableOptions) -> Result<RowSecurity> {
    let [is_on, is_forced] = ROW_SECURITY.map(|own| keeps(options, own));
    Ok(RowSecurity {
        is_on: is_on?,
        is_forced: is_forced?,
        policies: Vec::new(),
    })
}

/// Refuses options of a statement that are what tables keep beside them.
///
/// Errors: 22023.
pub fn check_given(options: &CreateTableOptions) -> Result<()> {
    let CreateTableOptions::With(given) = options else {
        return Ok(());
    };
    for option in given {
        let (name, _) = pair(option)?;
        if is_beside(&name) {
            return fail("22023", format!("unrecognized parameter \"{name}\""));
        }
    }
    Ok(())
}

/// The parameters of a table, as `name=value`.
///
/// Errors: 22023, 0A000.
pub fn parameters(options: &CreateTableOptions) -> Result<Vec<String>> {
    let given = match options {
        CreateTableOptions::None => return Ok(Vec::new()),
        CreateTableOptions::With(given) => given,
        _ => return unsupported("a clause of this CREATE TABLE"),
    };
    let mut all = Vec::new();
    for option in given {
        let (name, value) = pair(option)?;
        match (name.as_str(), value.as_str()) {
            // Rows had numbers of their own once.
            ("oids", "false" | "off" | "no" | "0") => {}
            (name, _) if is_beside(name) => {}
            ("oids", _) => return unsupported("a table declared WITH OIDS"),
            (name, _) if OF_INDEXES.contains(&name) => {
                return fail("22023", format!("unrecognized parameter \"{name}\""));
            }
            _ => {
                check(&name, &value)?;
                all.push(format!("{name}={value}"));
            }
        }
    }
    Ok(all)
}

/// The parameters of an index of an access method, as a statement has them: what PostgreSQL's pages of it are tuned by.
///
/// Errors: 22023 for parameters that the method has not, and for values that they do not take.
pub fn of_index(given: &[Expr], method: &str) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for option in given {
        let Expr::BinaryOp {
            left,
            op: BinaryOperator::Eq,
            right,
        } = option
        else {
            return unsupported("a storage parameter of this form");
        };
        let Expr::Identifier(key) = &**left else {
            return unsupported("a storage parameter of this form");
        };
        let (name, value) = pair(&SqlOption::KeyValue {
            key: key.clone(),
            value: (**right).clone(),
        })?;
        let is_known = match name.as_str() {
            "fillfactor" => method != "gin",
            "deduplicate_items" => method == "btree",
            "fastupdate" => method == "gin",
            "buffering" => method == "gist",
            _ => false,
        };
        if !is_known {
            return fail("22023", format!("unrecognized parameter \"{name}\""));
        }
        check(&name, &value)?;
        all.push(format!("{name}={value}"));
    }
    Ok(all)
}

/// The parameters with others set: those go behind them.
///
/// Errors: those of [`parameters`].
pub fn with(before: &CreateTableOptions, set: &[SqlOption]) -> Result<CreateTableOptions> {
    let mut all: Vec<SqlOption> = Vec::new();
    let new: Vec<(String, String)> = set.iter().map(pair).collect::<Result<_>>()?;
    if let CreateTableOptions::With(before) = before {
        for option in before {
            let (name, _) = pair(option)?;
            if new.iter().all(|(own, _)| *own != name) {
                all.push(option.clone());
            }
        }
    }
    all.extend(new.into_iter().map(|(name, value)| SqlOption::KeyValue {
        key: Ident::new(name),
        value: Expr::value(Value::SingleQuotedString(value)),
    }));
    let out = CreateTableOptions::With(all);
    parameters(&out)?;
    Ok(out)
}
