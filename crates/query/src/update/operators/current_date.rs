//! `{$currentDate: {a: true}}` or `{a: {$type: "date" | "timestamp"}}`: sets the time of the operation.

use super::{Effect, Existing, Modifier, Site};
use crate::update::operand::Encoded;
use nestor_model::{Result, Timestamp, ValueRef, bail};

#[derive(Debug)]
pub(super) enum CurrentDate {
    Date,
    Timestamp,
}

impl CurrentDate {
    /// Errors: 2 (BadValue) for anything but a boolean or `{$type: "date"}`, `{$type: "timestamp"}`.
    pub fn parse(value: ValueRef<'_>) -> Result<Self> {
        let doc = match value {
            ValueRef::Bool(_) => return Ok(Self::Date),
            ValueRef::Document(doc) => doc,
            other => bail!(
                BadValue,
                "{} is not valid type for $currentDate. Please use a boolean ('true') or a $type expression ({{$type: 'timestamp/date'}}).",
                other.bson_type().alias()
            ),
        };
        let mut kind = None;
        for (name, value) in doc {
            if name != "$type" {
                bail!(BadValue, "Unrecognized $currentDate option: {name}");
            }
            kind = match value.as_str() {
                Some("date") => Some(Self::Date),
                Some("timestamp") => Some(Self::Timestamp),
                _ => None,
            };
            if kind.is_none() {
                break;
            }
        }
        match kind {
            Some(kind) => Ok(kind),
            None => bail!(
                BadValue,
                "The '$type' string field is required to be 'date' or 'timestamp': {{$currentDate: {{field : {{$type: 'date'}}}}}}"
            ),
        }
    }

    fn now(&self, site: &Site<'_, '_>) -> Encoded<'static> {
        let op = site.context.op;
        match self {
            Self::Date => Encoded::new(ValueRef::DateTime(op.now_ms)),
            Self::Timestamp if op.cluster_time == Timestamp::default() => Encoded::new(Timestamp {
                secs: (op.now_ms / 1000) as u32,
                inc: 1,
            }),
            Self::Timestamp => Encoded::new(op.cluster_time),
        }
    }
}

impl Modifier for CurrentDate {
    fn existing<'u>(&'u self, at: &Existing<'u>, site: &Site<'_, 'u>) -> Result<Effect<'u>> {
        Ok(Effect::replace(at, self.now(site)))
    }

    fn missing<'u>(&'u self, site: &Site<'_, 'u>) -> Result<Option<Encoded<'u>>> {
        Ok(Some(self.now(site)))
    }
}
