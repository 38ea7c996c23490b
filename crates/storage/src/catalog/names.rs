//! Which names are allowed. Source: manual, "MongoDB Limits and Thresholds", naming restrictions.

use crate::{Result, StorageError};
use nestor_model::{ErrorCode, Namespace};

/// Longest database name, in bytes, is one less.
const DATABASE_BYTES_END: usize = 64;
/// Longest namespace, in bytes.
const NAMESPACE_BYTES_MAX: usize = 255;
/// What a database name must not contain (on a system other than Windows).
const DATABASE_FORBIDDEN: &[char] = &['/', '\\', '.', ' ', '"', '$', '\0'];
/// `system.` collections that clients may create or that exist for good.
const SYSTEM_ALLOWED: &[&str] = &[
    "system.js",
    "system.users",
    "system.roles",
    "system.version",
    "system.profile",
    "system.views",
    "system.replset",
    "system.sessions",
];

/// Refuses a database name that is not allowed: `InvalidNamespace`.
pub fn check_database(db: &str) -> Result<()> {
    if db.is_empty() || db.len() >= DATABASE_BYTES_END || db.contains(DATABASE_FORBIDDEN) {
        return Err(StorageError::catalog(
            ErrorCode::InvalidNamespace,
            format!("Invalid database name: '{db}'"),
        ));
    }
    Ok(())
}

/// Refuses a collection name that no collection can have: `InvalidNamespace`.
pub fn check_collection(ns: &Namespace) -> Result<()> {
    check_database(&ns.db)?;
    let coll = ns.coll.as_str();
    let bad = |reason: &str| {
        Err(StorageError::catalog(
            ErrorCode::InvalidNamespace,
            format!("{reason}: {ns}"),
        ))
    };
    if coll.is_empty() {
        return bad("Invalid namespace specified");
    }
    if coll.contains('\0') {
        return bad("Collection names cannot contain the null character");
    }
    if coll.starts_with('.') || coll.ends_with('.') {
        return bad("Collection names cannot start or end with '.'");
    }
    if coll.contains('$') {
        return bad("Collection names cannot contain '$'");
    }
    if ns.db.len() + 1 + coll.len() > NAMESPACE_BYTES_MAX {
        return bad(&format!(
            "Fully qualified namespace is too long (longest is {NAMESPACE_BYTES_MAX} bytes)"
        ));
    }
    Ok(())
}

/// As [`check_collection`], for one that a client wants to create: most of `system.` is reserved.
pub fn check_new_collection(ns: &Namespace) -> Result<()> {
    check_collection(ns)?;
    let coll = ns.coll.as_str();
    let reserved =
        coll.starts_with("system.") && !coll.starts_with("system.buckets.") && !SYSTEM_ALLOWED.contains(&coll);
    if reserved {
        return Err(StorageError::catalog(
            ErrorCode::InvalidNamespace,
            format!("Invalid system namespace: {ns}"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowed_and_refused() {
        let ok = |db: &str, coll: &str| check_new_collection(&Namespace::new(db, coll)).is_ok();
        assert!(ok("test", "a"));
        assert!(ok("test", "a.b c"));
        assert!(ok("test", "system.profile"));
        assert!(ok(&"d".repeat(63), "c"));
        for (db, coll) in [
            ("", "a"),
            ("a.b", "a"),
            ("a b", "a"),
            ("te$t", "a"),
            ("test", ""),
            ("test", ".a"),
            ("test", "a."),
            ("test", "a$b"),
            ("test", "a\0b"),
            ("test", "system.foo"),
        ] {
            assert!(!ok(db, coll), "{db:?} {coll:?}");
        }
        assert!(!ok(&"d".repeat(64), "c"));
        assert!(ok("test", &"c".repeat(250)));
        assert!(!ok("test", &"c".repeat(251)));
        let code = check_database("").map_err(|e| e.code());
        assert_eq!(code, Err(ErrorCode::InvalidNamespace));
    }
}
