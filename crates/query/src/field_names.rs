//! Field names and dotted paths, as expressions, stages and sort orders accept them.

use nestor_model::{Error, ErrorCode, Result};

/// Most components a path may have.
const COMPONENTS_MAX: usize = 200;

/// Checks a dotted path as stages accept it; names of a DBRef's fields may stand in it. Errors: 40352 empty, 40353 ends in a dot,
/// 15998 empty component, 16410 component starting with `$`, 16411 zero byte, 15 too deep.
pub(crate) fn validate_path(text: &str) -> Result<()> {
    if text.is_empty() {
        return Err(Error::location(40352, "a field path cannot be the empty string"));
    }
    if text.ends_with('.') {
        return Err(Error::location(40353, "a field path must not end with a '.'"));
    }
    let mut count = 0;
    for part in text.split('.') {
        count += 1;
        if part.is_empty() {
            return Err(Error::location(
                15998,
                "field path components must not be empty strings",
            ));
        }
        check_part(part)?;
    }
    if count > COMPONENTS_MAX {
        return Err(Error::new(ErrorCode::Overflow, "field path is nested too deep"));
    }
    Ok(())
}

fn check_part(part: &str) -> Result<()> {
    if part.starts_with('$') && !matches!(part, "$ref" | "$id" | "$db") {
        return Err(Error::location(
            16410,
            "field path components may not start with '$'; consider $getField or $setField",
        ));
    }
    if part.contains('\0') {
        return Err(Error::location(
            16411,
            "field path components may not contain null bytes",
        ));
    }
    Ok(())
}

/// Checks the name of an output field. Errors: 16410, 16411, 16412 (dot).
pub(crate) fn check_field_name(name: &str) -> Result<()> {
    check_part(name)?;
    if name.contains('.') {
        return Err(Error::location(
            16412,
            "field names of an object expression may not contain '.'; consider $getField or $setField",
        ));
    }
    Ok(())
}
