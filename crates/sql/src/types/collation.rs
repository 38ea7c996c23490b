//! Collations: texts are in the order of their characters, and these names stand for that.

use super::Type;
use super::names::ident;
use crate::error::fail;
use nestor_model::Result;
use sqlparser::ast::{ObjectName, ObjectNamePart};

/// A collation.
#[derive(Debug, PartialEq, Eq)]
pub struct Collation {
    /// Its OID.
    pub oid: u32,
    /// Its name.
    pub name: &'static str,
    /// Who provides it: the database's own (`d`), or the C library (`c`).
    pub provider: &'static str,
    /// The encoding that it is for; -1 for all.
    pub encoding: i32,
    /// The locale that it is; none for that of the database.
    pub locale: Option<&'static str>,
}

/// All of them.
pub const COLLATIONS: &[Collation] = &[
    of(100, "default", "d", -1, None),
    of(950, "C", "c", -1, Some("C")),
    of(951, "POSIX", "c", -1, Some("POSIX")),
    of(12_340, "ucs_basic", "c", 6, Some("C")),
];

const fn of(
    oid: u32,
    name: &'static str,
    provider: &'static str,
    encoding: i32,
    locale: Option<&'static str>,
) -> Collation {
    Collation {
        oid,
        name,
        provider,
        encoding,
        locale,
    }
}

/// The collation of a name.
///
/// Errors: 42704.
pub fn named(name: &ObjectName) -> Result<&'static Collation> {
    let parts = name.0.iter().filter_map(ObjectNamePart::as_ident).map(ident);
    let parts: Vec<String> = parts.collect();
    let found = match parts.as_slice() {
        [own] => COLLATIONS.iter().find(|known| known.name == own),
        [schema, own] if schema == "pg_catalog" => COLLATIONS.iter().find(|known| known.name == own),
        _ => None,
    };
    match found {
        Some(found) => Ok(found),
        None => fail(
            "42704",
            format!("collation \"{}\" for encoding \"UTF8\" does not exist", parts.join(".")),
        ),
    }
}

/// The collation of a name, for values of a type.
///
/// Errors: those of [`named`], 42804 for types whose values have no order of texts.
pub fn of_type(name: &ObjectName, ty: &Type) -> Result<&'static Collation> {
    let found = named(name)?;
    if *ty != Type::Unknown {
        check_type(ty)?;
    }
    Ok(found)
}

/// Refuses a collation of values that have none.
///
/// Errors: 42804.
pub fn check_type(ty: &Type) -> Result<()> {
    match ty.collation() {
        0 => fail("42804", format!("collations are not supported by type {ty}")),
        _ => Ok(()),
    }
}
