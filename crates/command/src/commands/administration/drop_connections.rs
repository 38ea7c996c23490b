//! `dropConnections`: closes connections to other nodes. A single node has none.

use crate::args::{Arg, At, wrong_type};
use crate::facts::{Facts, Flags};
use crate::spec::CommandSpec;
use nestor_model::{Result, ValueRef};

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection(
    "dropConnections",
    "Closes connections to other nodes; a single node has none.",
)
.flags(Flags::ADMIN)
.runs(|context, _reply| {
    DropConnections::parse(context.body, context.sequences)?;
    Ok(())
});

crate::args! {
    struct DropConnections: "dropConnections" command {
        /// Checked for its form only.
        #[allow(dead_code)]
        "hostAndPort" => hosts: Hosts,
    }
}

/// An array of strings; null items are passed over.
#[derive(Debug)]
struct Hosts;

impl<'a> Arg<'a> for Hosts {
    fn parse(value: ValueRef<'a>, at: At<'_>) -> Result<Option<Self>> {
        let array = match value {
            ValueRef::Array(array) => array,
            ValueRef::Null | ValueRef::Undefined => return Ok(None),
            other => return Err(wrong_type(at, other.bson_type(), "array")),
        };
        for (i, item) in array.iter().enumerate() {
            if !matches!(item, ValueRef::String(_) | ValueRef::Null | ValueRef::Undefined) {
                return Err(wrong_type(format_args!("{at}.{i}"), item.bson_type(), "string"));
            }
        }
        Ok(Some(Self))
    }
}
