//! The cluster parameter `trafficControl`: limits for operations.
//!
//! ```text
//! {limits: [{
//!     name: "reports",
//!     match: {appName: "reports", user: {user: "r", db: "admin"}, comment: "nightly", queryShapeHash: "EE..."},
//!     operationsPerSecond: 50, concurrent: 4, cpuMillisPerSecond: 500, priority: "low"
//! }]}
//! ```
//!
//! An operation is one that a limit is for when all that `match` gives fits. [`nestor_database::traffic`] says what a limit does.

use crate::args::{InRange, NotNull, unknown_field, wrong_type};
use nestor_database::traffic::gauge::{Bound, Bounds};
use nestor_database::traffic::limit::{Definition, Subject};
use nestor_database::turns::Priority;
use nestor_database::users::UserName;
use nestor_model::order::Key;
use nestor_model::value::DocRef;
use nestor_model::{Document, RawDoc, Result, Value, ValueRef, bail, doc};

/// Most limits there may be: each operation is compared with all of them.
const LIMITS_MAX: usize = 1_000;
/// Longest name of a limit, in bytes.
const NAME_BYTES_MAX: usize = 128;

crate::args! {
    struct LimitArgs<'a>: "trafficControl.limits" nested {
        "name" => name: &'a str,
        "match" => subject: RawDoc<'a>,
        "operationsPerSecond" => operations: Option<NotNull<f64>>,
        "concurrent" => concurrent: Option<NotNull<InRange<0, { u32::MAX as i64 }>>>,
        "cpuMillisPerSecond" => cpu_millis: Option<NotNull<f64>>,
        "priority" => priority: Option<NotNull<&'a str>>,
    }
}

crate::args! {
    struct SubjectArgs<'a>: "trafficControl.limits.match" nested {
        "queryShapeHash" => shape: Option<NotNull<&'a str>>,
        "appName" => app_name: Option<NotNull<&'a str>>,
        "user" => user: Option<NotNull<RawDoc<'a>>>,
        "comment" => comment: Option<ValueRef<'a>>,
    }
}

/// Reads limits.
///
/// Errors: 2 for limits without a name, with a name that another has, for nobody in particular, or that limit nothing; those of
/// wrong, missing and unknown fields.
pub(super) fn parse(parameter: DocRef<'_>) -> Result<Vec<Definition>> {
    let raw = parameter.to_raw();
    let mut limits: Vec<Definition> = Vec::new();
    for (name, value) in raw.as_raw().iter() {
        match (name, value) {
            ("limits", ValueRef::Array(given)) => {
                if given.len() > LIMITS_MAX {
                    bail!(BadValue, "trafficControl may have at most {LIMITS_MAX} limits");
                }
                for limit in given.iter() {
                    let ValueRef::Document(DocRef::Raw(limit)) = limit else {
                        return Err(wrong_type("trafficControl.limits", limit.bson_type(), "object"));
                    };
                    let limit = definition(LimitArgs::parse(limit, &[])?)?;
                    if limits.iter().any(|other| other.name == limit.name) {
                        bail!(BadValue, "two limits are called '{}'", limit.name);
                    }
                    limits.push(limit);
                }
            }
            ("limits", other) => return Err(wrong_type("trafficControl.limits", other.bson_type(), "array")),
            (other, _) => return Err(unknown_field("trafficControl", other)),
        }
    }
    Ok(limits)
}

fn definition(args: LimitArgs<'_>) -> Result<Definition> {
    let name = args.name;
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        bail!(
            BadValue,
            "the name of a limit has between 1 and {NAME_BYTES_MAX} bytes, not {}",
            name.len()
        );
    }
    let rate = |given: Option<NotNull<f64>>, bound: Bound, is_zero_one: bool| match given.map(|given| given.0) {
        Some(rate) if !rate.is_finite() || rate < 0.0 || (rate == 0.0 && !is_zero_one) => {
            let least = if is_zero_one { "not negative" } else { "greater than 0" };
            bail!(
                BadValue,
                "'{}' of limit '{name}' has to be a number that is {least}",
                bound.name()
            )
        }
        rate => Ok(rate),
    };
    let bounds = Bounds {
        operations_per_second: rate(args.operations, Bound::OperationsPerSecond, true)?,
        concurrent: args.concurrent.and_then(|most| u32::try_from(most.0.0).ok()),
        cpu_millis_per_second: rate(args.cpu_millis, Bound::CpuMillisPerSecond, false)?,
    };
    let priority = args.priority.map(|given| priority(name, given.0)).transpose()?;
    if bounds == Bounds::default() && priority.is_none() {
        bail!(
            BadValue,
            "limit '{name}' has none of operationsPerSecond, concurrent, cpuMillisPerSecond and priority"
        );
    }
    Ok(Definition {
        name: name.into(),
        subject: subject(name, SubjectArgs::parse(args.subject, &[])?)?,
        bounds,
        priority,
    })
}

fn priority(limit: &str, name: &str) -> Result<Priority> {
    match Priority::ALL.into_iter().find(|priority| priority.name() == name) {
        Some(priority) => Ok(priority),
        None => bail!(
            BadValue,
            "'priority' of limit '{limit}' has to be low, normal or high, not '{name}'"
        ),
    }
}

fn subject(limit: &str, args: SubjectArgs<'_>) -> Result<Subject> {
    if let Some(NotNull(hash)) = args.shape {
        if hash.len() != 64 || !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            bail!(
                BadValue,
                "'queryShapeHash' of limit '{limit}' has to be 64 hexadecimal digits"
            );
        }
    }
    let user = match args.user {
        Some(NotNull(user)) => {
            let others = |(name, _): &(&str, ValueRef<'_>)| !matches!(*name, "user" | "db");
            if let Some((other, _)) = user.iter().find(others) {
                return Err(unknown_field("trafficControl.limits.match.user", other));
            }
            Some(UserName::parse(ValueRef::Document(DocRef::Raw(user)), "")?)
        }
        None => None,
    };
    let subject = Subject {
        shape: args.shape.map(|hash| hash.0.to_ascii_uppercase().into()),
        app_name: args.app_name.map(|name| name.0.into()),
        user,
        comment: args.comment.map(|comment| Key(comment.to_value())),
    };
    if subject == Subject::default() {
        bail!(
            BadValue,
            "'match' of limit '{limit}' has none of queryShapeHash, appName, user and comment"
        );
    }
    Ok(subject)
}

/// Limits as they are stored and shown.
pub(super) fn to_document(limits: &[Definition]) -> Document {
    let limits: Vec<Value> = limits.iter().map(|limit| shown(limit).into()).collect();
    doc! { "limits": limits }
}

fn shown(limit: &Definition) -> Document {
    let of = &limit.subject;
    let mut subject = Document::new();
    subject.push("queryShapeHash", of.shape.clone().map(Value::from));
    subject.push("appName", of.app_name.clone().map(Value::from));
    subject.push("user", of.user.as_ref().map(|user| Value::from(user.to_document())));
    subject.push("comment", of.comment.as_ref().map(|comment| comment.0.clone()));
    let mut out = doc! { "name": limit.name.clone(), "match": subject };
    for bound in Bound::ALL {
        out.push(bound.name(), limit.bounds.get(bound));
    }
    out.push("priority", limit.priority.map(|priority| Value::from(priority.name())));
    out
}
