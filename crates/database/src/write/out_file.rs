//! `$out` to a file of the server.
//!
//! Who may write files, and where, is what COPY TO of SQL has (`docs/decisions/0015-files.md`): below one directory that the server was started with, and
//! with access control for users with the role `root` of `admin` alone. The file has its name once it is whole and on disk.

use crate::read;
use crate::statement::Statement;
use crate::users::{RoleName, UserName};
use nestor_exec::{BoxOperator, Step};
use nestor_files::Format;
use nestor_files::folder::{Folder, NewFile};
use nestor_files::output::{Failed, Output, WORDS};
use nestor_model::memory::Held;
use nestor_model::namespace::ADMIN;
use nestor_model::{Error, ErrorCode, Result, bail};
use nestor_query::env::OpContext;
use nestor_query::stage::OutFile;
use nestor_storage::View;
use std::io::{self, BufWriter};
use std::path::Path;

/// Bytes that are written at once.
const BUFFER_BYTES: usize = 1 << 20;

/// Writes what `root` gives to a file.
///
/// Errors: 13 for who may not write files, and when the server writes none; 2 for a path or format that cannot be; 14 for a document that does
/// not fit the columns of the file; 238 for formats that this build or documents do not have; 176, 39 and 14031 when the file cannot be written.
pub fn write_out_file(
    statement: &Statement<'_>,
    view: &dyn View,
    mut root: BoxOperator,
    op: &OpContext,
    out: &OutFile,
) -> Result<()> {
    let folder = folder(statement)?;
    let format = format(out)?;
    let file = folder
        .create(Path::new(&*out.path))
        .map_err(|failed| opening(&failed, out))?;
    let failed = |failed: Failed| told(failed, out);
    let mut file = Output::new(format, BufWriter::with_capacity(BUFFER_BYTES, file)).map_err(failed)?;
    let mut held = Held::by_this_statement();
    let mut batch = read::batch(statement, view, op, true);
    statement.note_plan(&*root);
    loop {
        match root.next(&mut batch)? {
            Step::Row(row) => {
                file.add(row.doc.to_raw().as_raw()).map_err(failed)?;
                held.set(file.waiting());
                nestor_model::statement::look()?;
            }
            Step::Pause => {}
            Step::Eof => break,
        }
    }
    let whole: BufWriter<NewFile> = file.finish().map_err(failed)?;
    let whole = whole
        .into_inner()
        .map_err(|error| told(error.into_error().into(), out))?;
    whole.finish().map_err(|error| told(error.into(), out))
}

/// The directory of the files that the caller may write.
fn folder(statement: &Statement<'_>) -> Result<Folder> {
    let database = statement.database;
    let is_allowed = match &statement.caller {
        Some(caller) => {
            let account = database.users.account(&UserName::new(&caller.user, &caller.db))?.0;
            account.is_some_and(|account| account.all_roles.contains(&RoleName::new("root", ADMIN)))
        }
        None => !database.options.authorization,
    };
    if !is_allowed {
        bail!(
            Unauthorized,
            "$out to a file: only users with the role root of the database admin may write files of the server"
        );
    }
    let Some(path) = &database.options.sql_files else {
        bail!(
            Unauthorized,
            "$out to a file: this server writes no files; start it with --sql-files DIR to have files of a directory written"
        );
    };
    Folder::open(path).map_err(|failed| Error::new(ErrorCode::FileOpenFailed, format!("{}: {failed}", path.display())))
}

fn format(out: &OutFile) -> Result<Format> {
    let named = match &out.format {
        Some(word) => word.parse().ok(),
        None => Format::of_name(Path::new(&*out.path)),
    };
    match named {
        Some(format) => Ok(format),
        None => bail!(
            BadValue,
            "$out to a file: the format has to be one of {}, given as format or by the file's name",
            WORDS.join(", ")
        ),
    }
}

fn opening(failed: &io::Error, out: &OutFile) -> Error {
    let code = match failed.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::IsADirectory => ErrorCode::BadValue,
        io::ErrorKind::StorageFull => ErrorCode::OutOfDiskSpace,
        _ => ErrorCode::FileOpenFailed,
    };
    Error::new(code, format!("$out to the file {}: {failed}", out.path))
}

fn told(failed: Failed, out: &OutFile) -> Error {
    let code = match &failed {
        Failed::Misfit { .. } => ErrorCode::TypeMismatch,
        Failed::NeedsColumns | Failed::NotBuilt => ErrorCode::NotImplemented,
        Failed::Io(failed) if failed.kind() == io::ErrorKind::StorageFull => ErrorCode::OutOfDiskSpace,
        Failed::Io(_) | Failed::Format(_) => ErrorCode::FileStreamFailed,
    };
    Error::new(code, format!("$out to the file {}: {failed}", out.path))
}
