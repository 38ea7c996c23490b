//! The update operators, one file each.

mod add_to_set;
mod arithmetic;
mod array;
mod bit;
mod current_date;
mod inc;
mod max;
mod min;
mod mul;
mod pop;
mod pull;
mod pull_all;
mod push;
pub(crate) mod rename;
mod set;
mod set_on_insert;
mod unset;

use super::operand::Encoded;
use super::walk::Context;
use crate::collation::Collator;
use crate::env::Scope;
use nestor_model::{Result, ValueRef};
use std::fmt;

/// An operator at the end of a path.
pub(crate) trait Modifier: fmt::Debug + Send + Sync {
    /// There is a value at the path.
    fn existing<'u>(&'u self, at: &Existing<'u>, site: &Site<'_, 'u>) -> Result<Effect<'u>>;

    /// There is no value but there could be one: what to put there, `None` to leave it missing.
    fn missing<'u>(&'u self, site: &Site<'_, 'u>) -> Result<Option<Encoded<'u>>>;

    /// Whether a path that leads through a scalar (or by a name through an array) is an error (28,
    /// PathNotViable). Otherwise nothing happens there.
    fn needs_path(&self, site: &Site<'_, '_>) -> bool {
        let _ = site;
        true
    }
}

/// The value an operator stands on.
#[derive(Clone, Copy)]
pub(crate) struct Existing<'u> {
    /// BSON type byte.
    pub kind: u8,
    /// Value bytes.
    pub bytes: &'u [u8],
    pub value: ValueRef<'u>,
}

impl Existing<'_> {
    /// Same type and bytes.
    pub fn identical(&self, value: &Encoded<'_>) -> bool {
        self.kind == value.kind && self.bytes == value.bytes.as_slice()
    }

    /// The type's name in messages.
    pub fn type_name(&self) -> &'static str {
        self.value.bson_type().alias()
    }
}

/// The effect of an operator on a value.
#[derive(Debug)]
pub(crate) enum Effect<'u> {
    /// Nothing.
    Keep,
    /// Another value in its place.
    Replace(Encoded<'u>),
    /// The array grows at its end; `from` is its length so far. `whole`: logged as the whole array, not
    /// as the elements added.
    Append {
        from: usize,
        values: Vec<Encoded<'u>>,
        whole: bool,
    },
    /// The field goes. An array element becomes null.
    Remove,
}

impl<'u> Effect<'u> {
    /// `Replace`, or `Keep` when type and bytes are the same.
    pub fn replace(at: &Existing<'_>, value: Encoded<'u>) -> Self {
        if at.identical(&value) {
            Effect::Keep
        } else {
            Effect::Replace(value)
        }
    }
}

/// Where in the document an operator is at work, and the operation's circumstances.
pub(crate) struct Site<'s, 'u> {
    pub context: &'s Context<'u>,
    pub path: &'s [&'u str],
}

impl<'u> Site<'_, 'u> {
    /// The collation that strings compare by.
    pub fn collator(&self) -> Option<&'u Collator> {
        self.context.op.collator.as_ref()
    }

    /// The dotted path, positional operators resolved.
    pub fn path(&self) -> String {
        self.path.join(".")
    }

    /// The last component of the path.
    pub fn field(&self) -> &str {
        self.path.last().copied().unwrap_or("")
    }

    /// The document's `_id` for messages: `{_id: 1}`.
    pub fn id(&self) -> String {
        id_text(self.context.root)
    }
}

/// `{_id: 1}`, or `{}` for a document without.
pub(crate) fn id_text(doc: nestor_model::RawDoc<'_>) -> String {
    match doc.get("_id") {
        Some(id) => format!("{{_id: {id:?}}}"),
        None => "{}".to_owned(),
    }
}

/// Parses the operand of `operator` (one of [`is_operator`] but `$rename`) for the field `field`.
///
/// Errors: as each operator's file says.
pub(crate) fn parse(operator: &str, field: &str, value: ValueRef<'_>, scope: &mut Scope) -> Result<Box<dyn Modifier>> {
    Ok(match operator {
        "$set" => Box::new(set::Set::new(value)),
        "$unset" => Box::new(unset::Unset),
        "$inc" => Box::new(inc::Inc::parse(field, value)?),
        "$mul" => Box::new(mul::Mul::parse(field, value)?),
        "$min" => Box::new(min::Min::new(value)),
        "$max" => Box::new(max::Max::new(value)),
        "$setOnInsert" => Box::new(set_on_insert::SetOnInsert::new(value)),
        "$currentDate" => Box::new(current_date::CurrentDate::parse(value)?),
        "$bit" => Box::new(bit::Bit::parse(field, value)?),
        "$push" => Box::new(push::Push::parse(value)?),
        "$addToSet" => Box::new(add_to_set::AddToSet::parse(value, scope.collator())?),
        "$pop" => Box::new(pop::Pop::parse(field, value)?),
        "$pull" => Box::new(pull::Pull::parse(value, scope)?),
        "$pullAll" => Box::new(pull_all::PullAll::parse(value, scope.collator())?),
        _ => {
            return Err(unknown(operator));
        }
    })
}

/// True for the name of an update operator.
pub(crate) fn is_operator(name: &str) -> bool {
    matches!(
        name,
        "$set"
            | "$unset"
            | "$inc"
            | "$mul"
            | "$min"
            | "$max"
            | "$rename"
            | "$setOnInsert"
            | "$currentDate"
            | "$bit"
            | "$push"
            | "$addToSet"
            | "$pop"
            | "$pull"
            | "$pullAll"
    )
}

/// 9 (FailedToParse).
pub(crate) fn unknown(name: &str) -> nestor_model::Error {
    nestor_model::Error::failed_to_parse(format!(
        "Unknown modifier: {name}. Expected a valid update modifier or pipeline-style update specified as an array"
    ))
}
