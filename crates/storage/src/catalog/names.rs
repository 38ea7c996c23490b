//! Which names are allowed. Source: manual, "MongoDB Limits and Thresholds", naming restrictions.

use crate::{Result, StorageError};
use nestor_model::{ErrorCode, Namespace};

/// Longest database name, in bytes, is one less.
const DATABASE_BYTES_END: usize = 64;
/// Longest namespace, in bytes.
const NAMESPACE_BYTES_MAX: usize = 255;
/// What a database name must not contain (on a system other than Windows). The manual's list also has `$`, but the
/// server takes it in commands and refuses it only where something is created.
const DATABASE_FORBIDDEN: &[char] = &['/', '\\', '.', ' ', '"', '\0'];
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
    "system.sequences",
    "system.comments",
    "system.sqlSettings",
];

/// And the beginnings of such names.
const SYSTEM_PREFIXES: &[&str] = &[
    "system.buckets.",
    "system.schemas.",
    "system.assertions.",
    "system.functions.",
];

/// Refuses a database name that is not allowed: `InvalidNamespace`.
pub fn check_database(db: &str) -> Result<()> {
    if db.is_empty() || db.len() >= DATABASE_BYTES_END || db.contains(DATABASE_FORBIDDEN) {
        return Err(invalid(format!("Invalid database name: '{db}'")));
    }
    Ok(())
}

/// Refuses a namespace that no command takes: `InvalidNamespace`. One that passes may still not be allowed for a new
/// collection; commands that look for it find nothing.
pub fn check_collection(ns: &Namespace) -> Result<()> {
    check_database(&ns.db)?;
    let coll = ns.coll.as_str();
    if coll.is_empty() || coll.starts_with('.') || coll.contains('\0') {
        return Err(invalid(format!("Invalid namespace specified '{ns}'")));
    }
    Ok(())
}

/// As [`check_collection`], for one that a client wants to create: `$` is not allowed, length is limited, and most of
/// `system.` is reserved.
pub fn check_new_collection(ns: &Namespace) -> Result<()> {
    check_collection(ns)?;
    let coll = ns.coll.as_str();
    if ns.db.contains('$') {
        return Err(invalid(format!("Invalid database name: '{}'", ns.db)));
    }
    if coll.contains('$') {
        return Err(invalid(format!("Invalid collection name: {coll}")));
    }
    if ns.db.len() + 1 + coll.len() > NAMESPACE_BYTES_MAX {
        return Err(invalid(format!(
            "Fully qualified namespace is too long. Namespace: {ns} Max: {NAMESPACE_BYTES_MAX}"
        )));
    }
    let is_allowed = SYSTEM_ALLOWED.contains(&coll) || SYSTEM_PREFIXES.iter().any(|prefix| coll.starts_with(prefix));
    let reserved = coll.starts_with("system.") && !is_allowed;
    if reserved {
        return Err(invalid(format!("Invalid system namespace: {ns}")));
    }
    Ok(())
}

/// True for collections whose documents have no `_id`, and that have no index on it: the profiler's.
pub fn has_no_ids(ns: &Namespace) -> bool {
    ns.coll == "system.profile"
}

fn invalid(message: String) -> StorageError {
    StorageError::catalog(ErrorCode::InvalidNamespace, message)
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
        assert!(check_collection(&Namespace::new("te$t", "a$b")).is_ok());
        assert!(ok(&"d".repeat(63), "c"));
        for (db, coll) in [
            ("", "a"),
            ("a.b", "a"),
            ("a b", "a"),
            ("te$t", "a"),
            ("test", ""),
            ("test", ".a"),
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
