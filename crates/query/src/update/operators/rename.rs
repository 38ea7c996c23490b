//! `{$rename: {from: "to"}}`: moves a field. Two operators in the tree: one takes the source away, one
//! sets the target. The value is looked up in the document before the walk, as either may come first.

use super::{Effect, Existing, Modifier, Site};
use crate::update::operand::{Bytes, Encoded};
use crate::update::path::{Step, UpdatePath};
use nestor_model::{ArrayRef, DocRef, Error, ErrorCode, RawDoc, Result, ValueRef, bail};

/// Removes the source.
#[derive(Debug)]
pub(crate) struct Source;

/// Sets the target of rename number `.0`.
#[derive(Debug)]
pub(crate) struct Target(pub usize);

impl Modifier for Source {
    fn existing<'u>(&'u self, _: &Existing<'u>, _: &Site<'_, 'u>) -> Result<Effect<'u>> {
        Ok(Effect::Remove)
    }

    fn missing<'u>(&'u self, _: &Site<'_, 'u>) -> Result<Option<Encoded<'u>>> {
        Ok(None)
    }

    fn needs_path(&self, _: &Site<'_, '_>) -> bool {
        true
    }
}

impl Modifier for Target {
    fn existing<'u>(&'u self, _: &Existing<'u>, site: &Site<'_, 'u>) -> Result<Effect<'u>> {
        Ok(match &site.context.renamed[self.0] {
            Some(value) => Effect::Replace(value.clone()),
            None => Effect::Keep,
        })
    }

    fn missing<'u>(&'u self, site: &Site<'_, 'u>) -> Result<Option<Encoded<'u>>> {
        Ok(site.context.renamed[self.0].clone())
    }

    fn needs_path(&self, site: &Site<'_, '_>) -> bool {
        site.context.renamed[self.0].is_some()
    }
}

/// Both ends of a rename.
#[derive(Debug)]
pub(crate) struct Rename {
    pub from: UpdatePath,
    pub to: UpdatePath,
}

impl Rename {
    /// Errors: 2 (BadValue) when the target is not a string, is or lies on the same path, or either is
    /// positional; 9867600 for a zero byte; those of the paths.
    pub fn parse(field: &str, value: ValueRef<'_>) -> Result<Self> {
        let ValueRef::String(to) = value else {
            bail!(
                BadValue,
                "The 'to' field for $rename must be a string: {field}: {value:?}"
            );
        };
        if to.contains('\0') {
            bail!(
                9867600,
                "The 'to' field for $rename cannot contain an embedded null byte"
            );
        }
        let rename = Self {
            from: UpdatePath::parse(field)?,
            to: UpdatePath::parse(to)?,
        };
        if field == to {
            bail!(
                BadValue,
                "The source and target field for $rename must differ: {field}: {value:?}"
            );
        }
        if rename.from.steps.starts_with(&rename.to.steps) || rename.to.steps.starts_with(&rename.from.steps) {
            bail!(
                BadValue,
                "The source and target field for $rename must not be on the same path: {field}: {value:?}"
            );
        }
        for (end, path) in [("source", &rename.from), ("destination", &rename.to)] {
            if path.is_dynamic() {
                bail!(
                    BadValue,
                    "The {end} field for $rename may not be dynamic: {}",
                    path.text
                );
            }
        }
        Ok(rename)
    }

    /// True when either end is `_id` or lies in it.
    pub fn touches_id(&self) -> bool {
        [&self.from, &self.to].iter().any(|path| path.prefix(1) == "_id")
    }

    /// The value to move, if there is one.
    ///
    /// Errors: 2 (BadValue) when the value or its target lies in an array; 28 (PathNotViable) when the source
    /// leads through a scalar, or through an array by a name.
    pub fn value<'u>(&self, root: RawDoc<'u>) -> Result<Option<Encoded<'u>>> {
        let Some(element) = walk(root, &self.from, "source")? else {
            return Ok(None);
        };
        walk(root, &self.to, "destination")?;
        Ok(Some(element))
    }
}

/// Follows `path`, and refuses what lies in an array. A source that leads nowhere through an array is not there, and one that can lead
/// nowhere is refused for that.
fn walk<'u>(root: RawDoc<'u>, path: &UpdatePath, end: &str) -> Result<Option<Encoded<'u>>> {
    let mut place = root;
    let mut in_array = false;
    let mut array = None;
    for (i, step) in path.steps.iter().enumerate() {
        let Step::Field(part) = step else { return Ok(None) };
        let element = match (in_array, part.index) {
            (false, _) => place.elements().find(|e| e.name() == part.name),
            (true, Some(index)) => place.elements().nth(index as usize),
            (true, None) => None,
        };
        let Some(element) = element else { return Ok(None) };
        if let (Some(name), true) = (array, i + 1 == path.steps.len()) {
            return Err(in_an_array(root, path, end, name));
        }
        if i + 1 == path.steps.len() {
            let encoded = Encoded {
                kind: element.kind(),
                depth: crate::update::operand::depth_of(element.value()),
                bytes: Bytes::Borrowed(element.value_bytes()),
            };
            return Ok(Some(encoded));
        }
        let is_index = matches!(&path.steps[i + 1], Step::Field(next) if next.index.is_some());
        match element.value() {
            ValueRef::Document(DocRef::Raw(raw)) => (place, in_array) = (raw, false),
            ValueRef::Array(ArrayRef::Raw(_)) if end != "source" => {
                return Err(in_an_array(root, path, end, &part.name));
            }
            ValueRef::Array(ArrayRef::Raw(raw)) if is_index => {
                (place, in_array) = (raw, true);
                array.get_or_insert(part.name.as_str());
            }
            other if end == "source" => bail!(
                PathNotViable,
                "cannot use the part ({} of {}) to traverse the element ({{{}: {other:?}}})",
                part.name,
                path.text,
                part.name
            ),
            // The walk over the tree refuses it, with the words of any other operator.
            _ => return Ok(None),
        }
    }
    Ok(None)
}

/// The error 2 of an end that lies in the array of that name.
fn in_an_array(root: RawDoc<'_>, path: &UpdatePath, end: &str, name: &str) -> Error {
    Error::new(
        ErrorCode::BadValue,
        format!(
            "The {end} field cannot be an array element, '{}' in doc with {} has an array field called '{name}'",
            path.text,
            super::id_text(root),
        ),
    )
}
