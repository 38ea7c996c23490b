//! Temporary files of blocking operators.

use nestor_model::{Error, ErrorCode, Result};
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

static COUNT: AtomicU64 = AtomicU64::new(0);

/// An open file in `dir` (made if missing) that has no name any more: it is gone when it is closed.
pub fn temporary_file(dir: &Path) -> Result<File> {
    std::fs::create_dir_all(dir).map_err(io_error)?;
    let name = format!("spill-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let path = dir.join(name);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)
        .map_err(io_error)?;
    std::fs::remove_file(&path).map_err(io_error)?;
    Ok(file)
}

/// A failure of a temporary file as an error of the command.
pub fn io_error(error: io::Error) -> Error {
    let code = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorCode::OutOfDiskSpace,
        _ => ErrorCode::FileStreamFailed,
    };
    Error::new(code, format!("temporary file: {error}"))
}
