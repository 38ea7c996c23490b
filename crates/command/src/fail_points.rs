//! Fail points: faults that a test asks for with `configureFailPoint`.
//!
//! Source: driver specification "Transactions", section "Fail Point"; the specification tests use
//! `failCommand`, `failGetMoreAfterCursorCheckout` and `onPrimaryTransactionalWrite`; drivers' own suites also
//! `maxTimeAlwaysTimeOut`.

use crate::commands::replication::client_metadata::app_name;
use crate::context::Context;
use crate::facts::Flags;
use crate::failures;
use crate::gate::Verdict;
use crate::op_kind::OpKind;
use crate::request::Park;
use nestor_model::value::DocRef;
use nestor_model::{Document, Error, ErrorCode, Result, ValueRef, bail};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

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

/// What a command that hit a fail point does once it has waited.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Close the connection instead of answering.
    pub hang_up: bool,
    /// Answer this error.
    pub error: Option<Error>,
    /// The error's labels are these and not those that it has on its own account.
    pub labels: Option<Vec<&'static str>>,
    /// Run the command and add this to its reply.
    pub write_concern_error: Option<Document>,
}

/// A fault that waits to happen on a connection.
#[derive(Clone, Debug)]
pub struct Pending {
    until: Instant,
    fault: Fault,
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

    /// Looks whether `context`'s command is to fail, and how.
    pub fn check(&self, context: &mut Context<'_>) -> Result<Verdict> {
        let pending = match context.conn.fault.take() {
            Some(pending) => pending,
            // A command that runs again after waiting on its own account has passed here before.
            None if context.conn.parked.is_some() => return Ok(Verdict::Run),
            None => match self.hit(context)? {
                Some(pending) => pending,
                None => return Ok(Verdict::Run),
            },
        };
        if Instant::now() < pending.until {
            context.after.park = Some(Park {
                until: pending.until,
                on_commit: false,
            });
            context.conn.fault = Some(pending);
            return Ok(Verdict::Wait);
        }
        // The command begins now: what it waits for on its own account is not shorter for the fault.
        context.conn.parked = None;
        let fault = pending.fault;
        if fault.hang_up {
            return Ok(Verdict::HangUp);
        }
        if let Some(error) = fault.error {
            context.after.by_fail_point = true;
            context.after.labels_given = fault.labels.is_some();
            return Err(fault.labels.into_iter().flatten().fold(error, Error::with_label));
        }
        context.after.write_concern_error = fault.write_concern_error;
        Ok(Verdict::Run)
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
        let code = data
            .get("failBeforeCommitExceptionCode")
            .and_then(crate::args::safe_i64);
        let error = code.map(|code| {
            let code = ErrorCode::location(code.clamp(0, i32::MAX.into()) as i32);
            Error::new(code, "onPrimaryTransactionalWrite fail point enabled")
        });
        let closes = data.get("closeConnection").is_none_or(|value| value.truthy());
        (closes, error)
    }

    /// The data of a fail point that is on and fires.
    fn fires(&self, name: &'static str) -> Option<Document> {
        let mut on = crate::lock(&self.on);
        let point = on.get_mut(name)?;
        if !point.fires() {
            return None;
        }
        *crate::lock(&self.entered).entry(name).or_default() += 1;
        Some(point.data.clone())
    }

    fn hit(&self, context: &Context<'_>) -> Result<Option<Pending>> {
        let mut on = crate::lock(&self.on);
        for (name, point) in on.iter_mut() {
            let applies = match *name {
                "failCommand" => fails_command(context, point.data.as_ref()),
                "failGetMoreAfterCursorCheckout" => context.spec.op == OpKind::GetMore,
                "maxTimeAlwaysTimeOut" => context.interrupt.deadline().is_some(),
                // It is for commits, not for commands.
                _ => false,
            };
            if !applies || !point.fires() {
                continue;
            }
            *crate::lock(&self.entered).entry(name).or_default() += 1;
            return match *name {
                "maxTimeAlwaysTimeOut" => bail!(MaxTimeMSExpired, "operation exceeded time limit"),
                _ => Ok(Some(fault(context, point.data.as_ref()))),
            };
        }
        Ok(None)
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

fn fails_command(context: &Context<'_>, data: DocRef<'_>) -> bool {
    let Some(ValueRef::Array(commands)) = data.get("failCommands") else {
        return false;
    };
    let names = |name: &str| name == context.spec.name || context.spec.aliases.contains(&name);
    if !commands.iter().any(|item| item.as_str().is_some_and(names)) {
        return false;
    }
    if let Some(ValueRef::String(wanted)) = data.get("appName") {
        let known = crate::lock(&context.conn.slot.client);
        // The handshake says itself who comes.
        let name = match (context.body.get("client"), &*known) {
            (Some(ValueRef::Document(client)), _) if context.spec.flags.has(Flags::LEGACY) => app_name(client),
            (_, client) => client.as_ref().and_then(|client| app_name(client.as_ref())),
        };
        if name != Some(wanted) {
            return false;
        }
    }
    if let Some(ValueRef::String(wanted)) = data.get("namespace") {
        let (db, coll) = context.named_collection().unwrap_or((context.db(), ""));
        if format!("{db}.{coll}") != wanted {
            return false;
        }
    }
    true
}

fn fault(context: &Context<'_>, data: DocRef<'_>) -> Pending {
    let truthy = |name: &str| data.get(name).is_some_and(|value| value.truthy());
    let number = |name: &str| data.get(name).and_then(crate::args::safe_i64);
    let block_ms = if truthy("blockConnection") {
        number("blockTimeMS").unwrap_or(0)
    } else {
        0
    };
    let error = number("errorCode").filter(|code| *code != 0).map(|code| {
        let code = ErrorCode::location(code.clamp(0, i32::MAX.into()) as i32);
        Error::new(code, "Failing command via 'failCommand' failpoint")
    });
    let mut write_concern_error = match data.get("writeConcernError") {
        Some(ValueRef::Document(doc)) => Some(doc.to_document()),
        _ => None,
    };
    let labels = match data.get("errorLabels") {
        Some(ValueRef::Array(labels)) => Some(labels.iter().filter_map(known_label).collect::<Vec<_>>()),
        _ => None,
    };
    if let Some(doc) = &mut write_concern_error {
        let code = doc.as_ref().get("code").and_then(crate::args::safe_i64).unwrap_or(0);
        let code = ErrorCode::location(code.clamp(0, i32::MAX.into()) as i32);
        let labels = labels
            .clone()
            .unwrap_or_else(|| failures::concern_labels(context, code));
        let labels: Vec<_> = labels.into_iter().map(Into::into).collect();
        if !labels.is_empty() {
            doc.push("errorLabels", labels);
        }
    }
    Pending {
        until: Instant::now() + Duration::from_millis(u64::try_from(block_ms).unwrap_or(0)),
        fault: Fault {
            hang_up: truthy("closeConnection"),
            error,
            labels,
            write_concern_error,
        },
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

fn known_label(value: ValueRef<'_>) -> Option<&'static str> {
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
    let number = |name: &str| doc.get(name).and_then(crate::args::safe_i64);
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

/// Checks `data` of `failCommand`: what it does not know it would silently not do.
pub fn check_data(data: DocRef<'_>) -> Result<()> {
    const FIELDS: [&str; 13] = [
        "failCommands",
        "errorCode",
        "closeConnection",
        "errorLabels",
        "writeConcernError",
        "blockConnection",
        "blockTimeMS",
        "appName",
        "namespace",
        "failInternalCommands",
        "failAllCommands",
        "failBeforeCommitExceptionCode",
        "threadName",
    ];
    for (name, _) in data.iter() {
        if !FIELDS.contains(&name) || matches!(name, "failAllCommands" | "threadName") {
            bail!(BadValue, "fail point data has the unsupported field '{name}'");
        }
    }
    if let Some(ValueRef::Array(labels)) = data.get("errorLabels") {
        if let Some(other) = labels.iter().find(|label| known_label(*label).is_none()) {
            bail!(BadValue, "unknown error label {other:?}");
        }
    }
    if data.get("blockConnection").is_some_and(|v| v.truthy()) && data.get("blockTimeMS").is_none() {
        bail!(
            InvalidOptions,
            "must specify 'blockTimeMS' when 'blockConnection' is true"
        );
    }
    Ok(())
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
