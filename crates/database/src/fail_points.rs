//! Fail points: faults that a test asks for with `configureFailPoint`.
//!
//! Source: driver specification "Transactions", section "Fail Point"; the specification tests use
//! `failCommand`, `failGetMoreAfterCursorCheckout` and `onPrimaryTransactionalWrite`; drivers' own suites also
//! `maxTimeAlwaysTimeOut`.

use nestor_model::number::safe_i64;
use nestor_model::value::DocRef;
use nestor_model::{Document, Error, ErrorCode, Result, ValueRef, bail};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// The fail points there are.
pub const NAMES: [&str; 4] = [
    "failCommand",
    "failGetMoreAfterCursorCheckout",
    "maxTimeAlwaysTimeOut",
    "onPrimaryTransactionalWrite",
];

/// How often a fail point fires.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// Never.
    Off,
    /// Always.
    AlwaysOn,
    /// This often, then never.
    Times(i64),
    /// Not for this often, then always.
    Skip(i64),
    /// With this probability each time.
    Probability(f64),
}

#[derive(Debug)]
struct FailPoint {
    mode: Mode,
    data: Document,
    /// State of the generator behind [`Mode::Probability`].
    random: u64,
}

/// The fail points that are on, and how often each was entered.
#[derive(Debug, Default)]
pub struct FailPoints {
    on: Mutex<BTreeMap<&'static str, FailPoint>>,
    entered: Mutex<BTreeMap<&'static str, i64>>,
}

impl FailPoints {
    /// True when one is on.
    pub fn any(&self) -> bool {
        !crate::lock(&self.on).is_empty()
    }

    /// Turns a fail point on or off; returns how often it was entered so far.
    pub fn configure(&self, name: &'static str, mode: Mode, data: Document) -> i64 {
        let mut on = crate::lock(&self.on);
        if mode == Mode::Off {
            on.remove(name);
        } else {
            let random = 0x9E37_79B9_7F4A_7C15;
            on.insert(name, FailPoint { mode, data, random });
        }
        crate::lock(&self.entered).get(name).copied().unwrap_or(0)
    }

    /// Whether an operation that has a time limit is to exceed it.
    pub fn times_out(&self) -> bool {
        self.fires("maxTimeAlwaysTimeOut").is_some()
    }

    /// `onPrimaryTransactionalWrite`: whether the connection is to be closed after the commit of a statement of a retryable
    /// write, and the error with which that commit is to fail.
    pub fn on_retryable_write(&self) -> (bool, Option<Error>) {
        let Some(data) = self.fires("onPrimaryTransactionalWrite") else {
            return (false, None);
        };
        let code = data.get("failBeforeCommitExceptionCode").and_then(safe_i64);
        let error = code.map(|code| {
            let code = ErrorCode::location(code.clamp(0, i32::MAX.into()) as i32);
            Error::new(code, "onPrimaryTransactionalWrite fail point enabled")
        });
        let closes = data.get("closeConnection").is_none_or(|value| value.truthy());
        (closes, error)
    }

    /// The data of a fail point that is on and fires.
    fn fires(&self, name: &'static str) -> Option<Document> {
        self.first(|on, _| on == name).map(|(_, data)| data)
    }

    /// The first fail point that is on, applies, and fires, with its data.
    pub fn first(&self, applies: impl Fn(&'static str, DocRef<'_>) -> bool) -> Option<(&'static str, Document)> {
        let mut on = crate::lock(&self.on);
        let mut candidates = on.iter_mut().filter(|(name, point)| applies(name, point.data.as_ref()));
        let (name, point) = candidates.find_map(|(name, point)| point.fires().then_some((*name, point)))?;
        *crate::lock(&self.entered).entry(name).or_default() += 1;
        Some((name, point.data.clone()))
    }
}

impl FailPoint {
    fn fires(&mut self) -> bool {
        match &mut self.mode {
            Mode::Off => false,
            Mode::AlwaysOn => true,
            Mode::Times(left) if *left > 0 => {
                *left -= 1;
                true
            }
            Mode::Times(_) => false,
            Mode::Skip(left) if *left > 0 => {
                *left -= 1;
                false
            }
            Mode::Skip(_) => true,
            Mode::Probability(p) => {
                // xorshift: good enough to fail some commands and not others.
                self.random ^= self.random << 13;
                self.random ^= self.random >> 7;
                self.random ^= self.random << 17;
                ((self.random >> 11) as f64) < *p * (1u64 << 53) as f64
            }
        }
    }
}

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
/// true and false of the same commands.
///
/// Errors: `BadValue`, `TypeMismatch`, `InvalidOptions`.
pub fn check_data(name: &str, mode: Mode, data: DocRef<'_>) -> Result<()> {
    for (name, value) in data.iter() {
        check_field(name, value)?;
    }
    let blocks = data.get("blockConnection").is_some_and(|value| value.truthy());
    if blocks && data.get("blockTimeMS").is_none() {
        bail!(
            InvalidOptions,
            "must specify 'blockTimeMS' when 'blockConnection' is true"
        );
    }
    if name == "failCommand" && mode != Mode::Off && data.get("failCommands").is_none() {
        bail!(
            BadValue,
            "failCommand needs 'failCommands', the names of the commands that fail"
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
        ("appName" | "namespace", ValueRef::String(_)) | ("writeConcernError", ValueRef::Document(_)) => return Ok(()),
        ("appName" | "namespace", _) => "a string",
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

    #[test]
    fn firing() {
        let fired = |mode: Mode| {
            let mut point = FailPoint {
                mode,
                data: Document::new(),
                random: 1,
            };
            (0..5)
                .map(|_| if point.fires() { 'x' } else { '.' })
                .collect::<String>()
        };
        assert_eq!(fired(Mode::AlwaysOn), "xxxxx");
        assert_eq!(fired(Mode::Times(2)), "xx...");
        assert_eq!(fired(Mode::Skip(2)), "..xxx");
        assert_eq!(fired(Mode::Probability(0.0)), ".....");
        assert_eq!(fired(Mode::Probability(1.0)), "xxxxx");
    }
}
