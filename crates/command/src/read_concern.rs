//! `readConcern`, the argument.

use crate::args::{Arg, At, unknown_field, wrong_type};
use nestor_database::concern::read::{Level, ReadConcern};
use nestor_model::{Result, Timestamp, ValueRef, bail};

/// Reads the argument; null is the default.
pub fn parse(value: ValueRef<'_>, at: At<'_>) -> Result<ReadConcern> {
    let doc = match value {
        ValueRef::Document(doc) => doc,
        ValueRef::Null | ValueRef::Undefined => return Ok(ReadConcern::default()),
        other => return Err(wrong_type(at, other.bson_type(), "object")),
    };
    let mut out = ReadConcern::default();
    for (name, value) in doc.iter() {
        let at = At {
            path: "readConcern",
            field: name,
        };
        match name {
            "level" => out.level = <&str as Arg>::parse(value, at)?.map(Level::parse).transpose()?,
            "afterClusterTime" => out.after_cluster_time = Some(timestamp(value, at)?),
            "atClusterTime" => out.at_cluster_time = Some(timestamp(value, at)?),
            "afterOpTime" => {
                if !matches!(value, ValueRef::Document(_)) {
                    return Err(wrong_type(at, value.bson_type(), "object"));
                }
            }
            "provenance" => provenance(value, at)?,
            other => return Err(unknown_field("readConcern", other)),
        }
    }
    out.check()?;
    Ok(out)
}

fn timestamp(value: ValueRef<'_>, at: At<'_>) -> Result<Timestamp> {
    match value {
        ValueRef::Timestamp(time) => Ok(time),
        other => Err(wrong_type(at, other.bson_type(), "timestamp")),
    }
}

/// `provenance` says where a concern came from and changes nothing here.
pub(crate) fn provenance(value: ValueRef<'_>, at: At<'_>) -> Result<()> {
    match <&str as Arg>::parse(value, at)? {
        None
        | Some(
            "clientSupplied" | "customDefault" | "implicitDefault" | "getLastErrorDefaults" | "internalWriteDefault",
        ) => Ok(()),
        Some(other) => bail!(
            BadValue,
            "Enumeration value '{other}' for field '{at}' is not a valid value."
        ),
    }
}
