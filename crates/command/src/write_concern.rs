//! `writeConcern`, the argument.

use crate::args::{Arg, At, unknown_field, wrong_type};
use crate::read_concern::provenance;
use nestor_database::concern::write::{Acknowledgement, WriteConcern};
use nestor_model::number::safe_i64;
use nestor_model::{Result, ValueRef, bail};
use std::time::Duration;

/// Reads the argument; null and `{}` are the default.
pub fn parse(value: ValueRef<'_>, at: At<'_>) -> Result<Option<WriteConcern>> {
    let doc = match value {
        ValueRef::Document(doc) => doc,
        ValueRef::Null | ValueRef::Undefined => return Ok(None),
        other => return Err(wrong_type(at, other.bson_type(), "object")),
    };
    if doc.is_empty() {
        return Ok(None);
    }
    let mut out = WriteConcern::default();
    let mut fsync = false;
    for (name, value) in doc.iter() {
        let at = At {
            path: "writeConcern",
            field: name,
        };
        match name {
            "w" => {
                out.w = acknowledgement(value)?;
                out.has_w = true;
            }
            "j" => out.journal = optional_bool(value, at)?,
            "fsync" => fsync = optional_bool(value, at)? == Some(true),
            "wtimeout" => out.timeout = wtimeout(value)?,
            "provenance" => provenance(value, at)?,
            "getLastError" | "wElectionId" | "wOpTime" => {}
            other => return Err(unknown_field("writeConcern", other)),
        }
    }
    if fsync && out.journal == Some(true) {
        bail!(FailedToParse, "fsync and j options cannot be used together");
    }
    if fsync {
        out.journal = Some(true);
    }
    Ok(Some(out))
}

fn acknowledgement(value: ValueRef<'_>) -> Result<Acknowledgement> {
    match value {
        ValueRef::String("majority") => Ok(Acknowledgement::Majority),
        ValueRef::String(name) => Ok(Acknowledgement::Mode(name.into())),
        // The name of no mode, as other servers take it: it is refused by what would wait for it.
        ValueRef::Null => Ok(Acknowledgement::Mode("".into())),
        ValueRef::Double(v) if v.is_nan() => bail!(FailedToParse, "w cannot be NaN"),
        ValueRef::Decimal128(v) if v.is_nan() => bail!(FailedToParse, "w cannot be NaN"),
        ValueRef::Document(tags) => {
            if tags.is_empty() {
                bail!(FailedToParse, "tagged write concern requires tags");
            }
            let tags = tags.iter().map(|(name, value)| match safe_i64(value) {
                Some(count) => Ok((name.to_owned(), u32::try_from(count.max(0)).unwrap_or(u32::MAX))),
                None => bail!(
                    FailedToParse,
                    "tags must be a single level document with only number values; found: {} at {name}",
                    value.bson_type().alias()
                ),
            });
            Ok(Acknowledgement::Tags(tags.collect::<Result<_>>()?))
        }
        other => match safe_i64(other) {
            Some(n) if (0..=50).contains(&n) => Ok(Acknowledgement::Nodes(n as u32)),
            Some(_) => bail!(
                FailedToParse,
                "w has to be a non-negative number and not greater than 50"
            ),
            None => bail!(
                FailedToParse,
                "w has to be a number, string, or object; found: {}",
                other.bson_type().alias()
            ),
        },
    }
}

fn optional_bool(value: ValueRef<'_>, at: At<'_>) -> Result<Option<bool>> {
    <bool as Arg>::parse(value, at)
}

/// Anything is taken; what is no number means no limit.
fn wtimeout(value: ValueRef<'_>) -> Result<Option<Duration>> {
    match safe_i64(value) {
        Some(ms) if ms > i64::from(i32::MAX) => {
            bail!(FailedToParse, "wtimeout must be a 32-bit integer, but found: {ms}")
        }
        Some(ms) if ms > 0 => Ok(Some(Duration::from_millis(ms as u64))),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestor_model::{Document, Value, doc};
    use nestor_storage::Guarantee;

    fn parsed(doc: Document) -> Result<Option<WriteConcern>> {
        parse(
            doc.as_ref().into(),
            At {
                path: "insert",
                field: "writeConcern",
            },
        )
    }

    #[test]
    fn who_waits_for_the_journal() {
        let waits = |doc| parsed(doc).expect("good concern").unwrap_or_default().guarantee(false);
        assert_eq!(waits(doc! {}), Some(Guarantee::Committed));
        assert_eq!(waits(doc! { "w": 1 }), None);
        assert_eq!(waits(doc! { "w": 1, "j": true }), Some(Guarantee::Durable));
        assert_eq!(waits(doc! { "w": "majority" }), Some(Guarantee::Committed));
        assert_eq!(waits(doc! { "w": "majority", "j": false }), None);
        assert_eq!(waits(doc! { "w": 0, "j": true }), Some(Guarantee::Durable));
    }

    /// Source: functional tests of DocumentDB, "w: null is coerced to the empty string".
    #[test]
    fn null_is_a_mode_without_a_name() {
        let concern = parsed(doc! { "w": Value::Null }).expect("a concern").expect("one");
        assert_eq!(concern.w, Acknowledgement::Mode("".into()));
        assert!(
            nestor_database::concern::write::unsatisfiable(&concern, || nestor_storage::Topology::alone().into())
                .is_some()
        );
    }

    #[test]
    fn refusals() {
        let code = |doc| parsed(doc).expect_err("bad concern").code().number();
        assert_eq!(code(doc! { "w": 51 }), 9);
        assert_eq!(code(doc! { "w": f64::NAN }), 9);
        assert_eq!(code(doc! { "w": true }), 9);
        assert_eq!(code(doc! { "w": doc! {} }), 9);
        assert_eq!(code(doc! { "w": Value::Undefined }), 9);
        assert_eq!(code(doc! { "j": "x" }), 14);
        assert_eq!(code(doc! { "wtimeout": f64::INFINITY }), 9);
        assert_eq!(code(doc! { "x": 1 }), 40415);
    }
}
