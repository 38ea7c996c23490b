//! What clients may ask of fail points with `configureFailPoint`: their names, modes and data.
//!
//! Source: driver specification "Transactions", section "Fail Point"; the specification tests use
//! `failCommand`, `failGetMoreAfterCursorCheckout` and `onPrimaryTransactionalWrite`; drivers' own suites also
//! `maxTimeAlwaysTimeOut` and `maxTimeNeverTimeOut`.

use nestor_database::fail_points::{Mode, NEVER_TIMES_OUT, ON_RETRYABLE_WRITE, TIMES_OUT};
use nestor_model::number::safe_i64;
use nestor_model::value::DocRef;
use nestor_model::{ErrorCode, Result, ValueRef, bail};

/// The fail point of commands that its data names.
pub const FAIL_COMMAND: &str = "failCommand";

/// The fail point of getMores.
pub const FAIL_GET_MORE: &str = "failGetMoreAfterCursorCheckout";

/// The fail points there are.
const NAMES: [&str; 5] = [
    FAIL_COMMAND,
    FAIL_GET_MORE,
    TIMES_OUT,
    NEVER_TIMES_OUT,
    ON_RETRYABLE_WRITE,
];

const LABELS: [&str; 9] = [
    "RetryableWriteError",
    "TransientTransactionError",
    "UnknownTransactionCommitResult",
    "ResumableChangeStreamError",
    "NonResumableChangeStreamError",
    "NoWritesPerformed",
    "SystemOverloadedError",
    "RetryableError",
    "StreamProcessorUserError",
];

/// The error label of that name, with a lifetime that outlasts the request.
pub fn known_label(value: ValueRef<'_>) -> Option<&'static str> {
    let text = value.as_str()?;
    LABELS.into_iter().find(|label| *label == text)
}

/// Reads `mode`.
pub fn parse_mode(value: ValueRef<'_>) -> Result<Mode> {
    let doc = match value {
        ValueRef::String("off") => return Ok(Mode::Off),
        ValueRef::String("alwaysOn") => return Ok(Mode::AlwaysOn),
        ValueRef::String(other) => bail!(BadValue, "unknown mode: {other}"),
        ValueRef::Document(doc) => doc,
        _ => bail!(TypeMismatch, "'mode' must be a string or JSON object"),
    };
    let number = |name: &str| doc.get(name).and_then(safe_i64);
    if let Some(times) = number("times") {
        if times < 0 {
            bail!(BadValue, "'times' option to 'mode' must be positive");
        }
        return Ok(Mode::Times(times));
    }
    if let Some(skip) = number("skip") {
        if skip < 0 {
            bail!(BadValue, "'skip' option to 'mode' must be positive");
        }
        return Ok(Mode::Skip(skip));
    }
    match doc.get("activationProbability") {
        Some(ValueRef::Double(p)) if (0.0..=1.0).contains(&p) => Ok(Mode::Probability(p)),
        Some(_) => bail!(BadValue, "activationProbability must be a double between 0.0 and 1.0"),
        None => bail!(
            BadValue,
            "'mode' must be one of ['off', 'alwaysOn', 'times', 'skip', 'activationProbability']"
        ),
    }
}

/// The fail point of that name, with a lifetime that outlasts the request.
pub fn known(name: &str) -> Option<&'static str> {
    NAMES.into_iter().find(|known| *known == name)
}

/// Checks `data`: a field that is not known, or of a type that is not understood, would silently do nothing.
///
/// `failInternalCommands` says whether commands that other nodes of the cluster send fail as well. This node is alone, so it is
/// true and false of the same commands. `codeName` changes nothing: the code has its name anyway, and this must be it.
///
/// Errors: `BadValue`, `TypeMismatch`, `InvalidOptions`.
pub fn check_data(data: DocRef<'_>) -> Result<()> {
    for (name, value) in data.iter() {
        check_field(name, value)?;
    }
    if let Some(given) = data.get("codeName").and_then(ValueRef::as_str) {
        let number = data
            .get("errorCode")
            .and_then(safe_i64)
            .and_then(|code| code.try_into().ok());
        let name = number.map(|number| ErrorCode::location(number).name());
        if name.as_deref() != Some(given) {
            bail!(BadValue, "'codeName' must be the name of 'errorCode', but is {given}");
        }
    }
    let blocks = data.get("blockConnection").is_some_and(|value| value.truthy());
    if blocks && data.get("blockTimeMS").is_none() {
        bail!(
            InvalidOptions,
            "must specify 'blockTimeMS' when 'blockConnection' is true"
        );
    }
    Ok(())
}

fn check_field(name: &str, value: ValueRef<'_>) -> Result<()> {
    let expected = match (name, value) {
        ("closeConnection" | "blockConnection" | "failInternalCommands", ValueRef::Bool(_)) => return Ok(()),
        ("closeConnection" | "blockConnection" | "failInternalCommands", _) => "a boolean",
        ("errorCode" | "failBeforeCommitExceptionCode" | "blockTimeMS", _) => match safe_i64(value) {
            Some(number) if number >= 0 => return Ok(()),
            Some(_) => bail!(BadValue, "'{name}' must not be negative"),
            None => "a number",
        },
        ("appName" | "namespace" | "errmsg" | "codeName", ValueRef::String(_))
        | ("writeConcernError", ValueRef::Document(_)) => {
            return Ok(());
        }
        ("appName" | "namespace" | "errmsg" | "codeName", _) => "a string",
        ("writeConcernError", _) => "a document",
        ("failCommands", ValueRef::Array(commands)) if commands.iter().all(|name| name.as_str().is_some()) => {
            return Ok(());
        }
        ("failCommands", _) => "an array of names of commands",
        ("errorLabels", ValueRef::Array(labels)) => match labels.iter().find(|label| known_label(*label).is_none()) {
            Some(other) => bail!(BadValue, "unknown error label {other:?}"),
            None => return Ok(()),
        },
        ("errorLabels", _) => "an array of error labels",
        _ => bail!(BadValue, "fail point data has the unsupported field '{name}'"),
    };
    bail!(TypeMismatch, "'{name}' of a fail point's data must be {expected}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::{Value, doc};

    #[test]
    fn modes() {
        let cases: &[(Value, Result<Mode, i32>)] = &[
            ("off".into(), Ok(Mode::Off)),
            ("alwaysOn".into(), Ok(Mode::AlwaysOn)),
            (doc! { "times": 2 }.into(), Ok(Mode::Times(2))),
            (doc! { "skip": 1.0 }.into(), Ok(Mode::Skip(1))),
            (doc! { "activationProbability": 0.5 }.into(), Ok(Mode::Probability(0.5))),
            (doc! { "times": -1 }.into(), Err(2)),
            (doc! {}.into(), Err(2)),
            ("sometimes".into(), Err(2)),
            (1.into(), Err(14)),
        ];
        for (value, expected) in cases {
            assert_eq!(
                parse_mode(value.as_ref()).map_err(|e| e.code().number()),
                *expected,
                "{value:?}"
            );
        }
    }
}
