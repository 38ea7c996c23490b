//! Which specifications of wildcard indexes make sense.

use super::paths::Wildcard;
use nestor_model::index_spec::{IndexSpec, KeyOrder};
use nestor_model::{DocRef, Document, Result, Value, ValueRef, bail};

/// Options that say something of one field, which a wildcard does not have.
const REFUSED: &[&str] = &["unique", "sparse", "expireAfterSeconds", "prepareUnique"];

/// Checks what goes together with a wildcard.
///
/// Errors: 67, 7246201 for a second wildcard, 7246209 for a projection that keeps another field of the key.
pub(super) fn specification(spec: IndexSpec) -> Result<IndexSpec> {
    let key = &spec.key_pattern;
    let projection = spec.option("wildcardProjection");
    if spec.key.iter().filter(|part| part.is_wildcard()).count() > 1 {
        bail!(7246201, "an index may have one wildcard only: {key:?}");
    }
    if let Some(option) = REFUSED.iter().find(|option| spec.option(option).is_some()) {
        bail!(
            CannotCreateIndex,
            "Index type 'wildcard' does not support the '{option}' option"
        );
    }
    if spec.key.iter().any(|part| matches!(part.order, KeyOrder::Special(_))) {
        bail!(
            CannotCreateIndex,
            "wildcard indexes do not allow parts of other types: {key:?}"
        );
    }
    if spec.key.len() > 1 && projection.is_none() && key.get("$**").is_some() {
        bail!(
            CannotCreateIndex,
            "Compound wildcard indexes over all fields need a wildcardProjection that leaves out the other fields: {key:?}"
        );
    }
    let wildcard = Wildcard::new(&spec);
    let shared = spec
        .key
        .iter()
        .find(|part| !part.is_wildcard() && wildcard.covers(&part.path));
    if let (Some(part), Some(_)) = (shared, projection) {
        bail!(
            7246209,
            "The field '{}' of a compound wildcard index must be left out by the wildcardProjection",
            part.path
        );
    }
    if let Some(part) = shared {
        bail!(
            CannotCreateIndex,
            "The field '{}' of a compound wildcard index must not be among those of the wildcard",
            part.path
        );
    }
    Ok(spec)
}

/// Checks a `wildcardProjection`.
///
/// Errors: 14, 9 where the wildcard is below a path or nothing is projected, 51271 for computed fields, 31249 and 31250 for
/// paths that collide, and 31253 or 31254 when it both keeps and leaves out fields.
pub(super) fn projection(value: ValueRef<'_>, key: &Document) -> Result<Value> {
    let ValueRef::Document(projection) = value else {
        bail!(
            TypeMismatch,
            "The field 'wildcardProjection' must be an object, but got {}",
            value.bson_type().alias()
        );
    };
    if key.get("$**").is_none() {
        bail!(
            FailedToParse,
            "The field 'wildcardProjection' is only allowed when the wildcard is over all fields ('$**')"
        );
    }
    if projection.is_empty() {
        bail!(FailedToParse, "The 'wildcardProjection' field can't be an empty object");
    }
    check_projected("", projection, &mut Projected::default(), 0)?;
    Ok(projection.to_document().into())
}

/// Facts about a projection, from the fields that were read so far.
#[derive(Default)]
struct Projected {
    /// It keeps fields, or leaves fields out.
    keeps: Option<bool>,
    paths: Vec<String>,
}

impl Projected {
    /// Refuses a path that is one of those before, or above or below it.
    fn note(&mut self, path: &str) -> Result<()> {
        for before in &self.paths {
            if let Some(rest) = path
                .strip_prefix(before.as_str())
                .and_then(|rest| rest.strip_prefix('.'))
            {
                bail!(31249, "Path collision at {path} remaining portion {rest}");
            }
            let is_above = before
                .strip_prefix(path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
            if is_above {
                bail!(31250, "Path collision at {path}");
            }
        }
        self.paths.push(path.to_owned());
        Ok(())
    }
}

fn check_projected(prefix: &str, projection: DocRef<'_>, read: &mut Projected, depth: usize) -> Result<()> {
    for (name, value) in projection.iter() {
        let path = format!("{prefix}{name}");
        match value {
            ValueRef::Document(inner) if depth < 100 && !inner.is_empty() => {
                check_projected(&format!("{path}."), inner, read, depth + 1)?;
                continue;
            }
            ValueRef::Bool(_) => {}
            number if number.is_number() => {}
            _ => bail!(
                51271,
                "Bad projection specification, cannot use computed fields here: {path} is neither kept nor left out"
            ),
        }
        read.note(&path)?;
        if path == "_id" {
            continue;
        }
        match read.keeps {
            None => read.keeps = Some(value.truthy()),
            Some(true) if !value.truthy() => {
                bail!(31254, "Cannot do exclusion on field {path} in inclusion projection")
            }
            Some(false) if value.truthy() => {
                bail!(31253, "Cannot do inclusion on field {path} in exclusion projection")
            }
            Some(_) => {}
        }
    }
    Ok(())
}
