//! What a member drops, kept in files: `rollback/<UUID of the collection>/removed.<commit>.bson` below the data directory, the documents as
//! the dropped commits left them, one after the other, as `bsondump` and `mongorestore` read them. The name of the collection
//! stands beside them in `namespace`.

use super::MemberError;
use nestor_storage::{Engine, Lsn};
use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::path::Path;

/// Writes the documents of the commits after `kept`. Returns how many files there are.
pub(super) fn write(engine: &Engine, dir: &Path, kept: Lsn) -> Result<usize, MemberError> {
    let failed = |path: &Path, e: std::io::Error| {
        MemberError::Refused(format!("dropped documents cannot be kept in {}: {e}", path.display()))
    };
    let collections = engine.tail(kept)?;
    for ((ns, uuid), documents) in &collections {
        let folder = dir.join("rollback").join(text_of(uuid));
        fs::create_dir_all(&folder).map_err(|e| failed(&folder, e))?;
        let name = folder.join("namespace");
        fs::write(&name, ns.to_string()).map_err(|e| failed(&name, e))?;
        let path = folder.join(format!("removed.{}.bson", kept.0 + 1));
        let mut file = fs::File::create(&path).map_err(|e| failed(&path, e))?;
        for document in documents {
            file.write_all(document.as_bytes()).map_err(|e| failed(&path, e))?;
        }
        file.sync_all().map_err(|e| failed(&path, e))?;
    }
    Ok(collections.len())
}

/// A UUID as people write it.
fn text_of(uuid: &[u8; 16]) -> String {
    let mut out = String::new();
    for (i, byte) in uuid.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        // Writing to a string never fails.
        let _ = write!(out, "{byte:02x}");
    }
    out
}
