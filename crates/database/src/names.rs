//! Which names databases and collections may have.

use nestor_model::{Namespace, Result, bail};

/// Longest name of a database, in bytes.
pub const DATABASE_BYTES_MAX: usize = 63;
/// Longest namespace (`db.collection`), in bytes.
pub const NAMESPACE_BYTES_MAX: usize = 255;

/// Checks a database name.
pub fn check_database(db: &str) -> Result<()> {
    let bad = |c: u8| matches!(c, b'/' | b'\\' | b'.' | b' ' | b'"' | b'$' | 0);
    // `$external` is where users of other systems live.
    if db != "$external" && (db.is_empty() || db.bytes().any(bad) || db.len() > DATABASE_BYTES_MAX) {
        bail!(InvalidNamespace, "Invalid database name: '{db}'");
    }
    Ok(())
}

/// Checks the namespace that `getMore` and `killCursors` name: that of a cursor, which need not be a collection's.
pub fn cursor_namespace(db: &str, coll: &str) -> Result<Namespace> {
    if coll.is_empty() {
        bail!(InvalidNamespace, "Invalid namespace specified '{db}.'");
    }
    collection(db, coll)
}

/// Checks the name of a collection that is to be read: `$` is in no name of one. Errors: 73.
pub fn check_readable(ns: &Namespace) -> Result<()> {
    if ns.coll.contains('$') {
        bail!(InvalidNamespace, "Invalid collection name: '{}'", ns.coll);
    }
    Ok(())
}

/// Checks the collection that a command names and joins it to its database.
pub fn collection(db: &str, coll: &str) -> Result<Namespace> {
    if coll.is_empty() || coll.starts_with('.') || coll.bytes().any(|b| b == 0) {
        bail!(InvalidNamespace, "Invalid namespace specified '{db}.{coll}'");
    }
    Ok(Namespace::new(db, coll))
}
