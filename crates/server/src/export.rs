//! `nestor export`: the documents of a collection as a file, through the wire protocol.
//!
//! What is read is one state, the snapshot of the find if the server has such reads. The file has its name once it is whole.

use crate::client::{Client, Uri};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use nestor_files::Format;
use nestor_model::extjson::{self, Form};
use nestor_model::{Document, RawDoc, Value, ValueRef, doc};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Bytes that are written at once.
const BUFFER_BYTES: usize = 1 << 20;

/// Arguments of `nestor export`.
#[derive(Args, Debug)]
pub struct ExportArgs {
    /// Collection to read, as database.collection
    #[arg(value_name = "DB.COLLECTION")]
    pub from: String,
    /// File to write; one that is there is replaced once all is written
    pub file: PathBuf,
    /// Server to read from
    #[arg(long, default_value = "mongodb://127.0.0.1:27017")]
    pub uri: String,
    /// Format; by default told from the file's name
    #[arg(long = "type", value_parser = PossibleValuesParser::new(FORMATS).try_map(|word| word.parse::<Format>()))]
    pub format: Option<Format>,
    /// Only documents that this filter matches, in Extended JSON
    #[arg(long, value_name = "FILTER", default_value = "{}")]
    pub query: String,
}

/// The formats that are written.
const FORMATS: [&str; 5] = ["json", "ndjson", "bson", "parquet", "arrow"];

/// Takes documents.
trait Documents {
    fn add(&mut self, doc: RawDoc<'_>) -> Result<(), String>;
    fn finish(self: Box<Self>) -> Result<BufWriter<File>, String>;
}

struct Json {
    out: BufWriter<File>,
    /// Documents stand in an array, of which there is nothing yet.
    array: Option<bool>,
}

impl Documents for Json {
    fn add(&mut self, doc: RawDoc<'_>) -> Result<(), String> {
        let text = extjson::to_string(ValueRef::Document(doc.as_doc()), Form::Canonical);
        let (before, behind) = match &mut self.array {
            Some(is_empty) => (if std::mem::take(is_empty) { "[\n" } else { ",\n" }, ""),
            None => ("", "\n"),
        };
        write!(self.out, "{before}{text}{behind}").map_err(|e| e.to_string())
    }

    fn finish(mut self: Box<Self>) -> Result<BufWriter<File>, String> {
        let end = match self.array {
            Some(true) => "[]\n",
            Some(false) => "\n]\n",
            None => "",
        };
        self.out.write_all(end.as_bytes()).map_err(|e| e.to_string())?;
        Ok(self.out)
    }
}

struct Bson(BufWriter<File>);

impl Documents for Bson {
    fn add(&mut self, doc: RawDoc<'_>) -> Result<(), String> {
        self.0.write_all(doc.as_bytes()).map_err(|e| e.to_string())
    }

    fn finish(self: Box<Self>) -> Result<BufWriter<File>, String> {
        Ok(self.0)
    }
}

#[cfg(feature = "parquet")]
mod columns {
    use super::{BufWriter, File, RawDoc};
    use nestor_files::arrow::file::{Documents, Failed, Kind};

    pub(super) struct Columns(Documents<BufWriter<File>>);

    fn told(failed: Failed) -> String {
        match failed {
            Failed::Misfit(misfit) => format!(
                "field {} cannot hold {}: the first documents decide what the columns are",
                misfit.path, misfit.found
            ),
            Failed::File(failed) => failed.to_string(),
        }
    }

    impl Columns {
        pub(super) fn new(is_parquet: bool, out: BufWriter<File>) -> Self {
            let kind = if is_parquet { Kind::Parquet } else { Kind::Stream };
            Self(Documents::new(kind, out))
        }
    }

    impl super::Documents for Columns {
        fn add(&mut self, doc: RawDoc<'_>) -> Result<(), String> {
            self.0.add(doc).map_err(told)
        }

        fn finish(self: Box<Self>) -> Result<BufWriter<File>, String> {
            self.0.finish().map_err(told)
        }
    }
}

#[cfg(feature = "parquet")]
fn columns(format: Format, out: BufWriter<File>) -> Result<Box<dyn Documents>, String> {
    Ok(Box::new(columns::Columns::new(format == Format::Parquet, out)))
}

#[cfg(not(feature = "parquet"))]
fn columns(_: Format, _: BufWriter<File>) -> Result<Box<dyn Documents>, String> {
    Err("this build has no Parquet and Arrow: it was made without the feature \"parquet\"".to_owned())
}

/// A file that goes away unless it becomes whole.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.0.as_os_str().is_empty() {
            // Why there is no file has been told.
            let _ = fs::remove_file(&self.0);
        }
    }
}

/// Exports as `args` say; an error is a message for the user.
pub fn run(args: &ExportArgs) -> Result<(), String> {
    let begun = Instant::now();
    let Some((db, collection)) = args
        .from
        .split_once('.')
        .filter(|(db, coll)| !db.is_empty() && !coll.is_empty())
    else {
        return Err(format!("{}: write it as database.collection", args.from));
    };
    let format = args
        .format
        .or_else(|| Format::of_name(&args.file))
        .ok_or_else(|| format!("{}: the name does not tell the format: say --type", args.file.display()))?;
    let filter = match extjson::parse(&args.query) {
        Ok(Value::Document(filter)) => filter,
        Ok(_) => return Err("--query: a document is wanted".to_owned()),
        Err(error) => return Err(format!("--query: {error}")),
    };
    let uri: Uri = args
        .uri
        .parse()
        .map_err(|e: crate::client::ClientError| e.to_string())?;
    let mut client = Client::connect(&uri).map_err(|e| e.to_string())?;
    let failed = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
    let mut unfinished = Unfinished(unfinished(&args.file));
    let file = File::create(&unfinished.0).map_err(|e| failed(&unfinished.0, e))?;
    let out = BufWriter::with_capacity(BUFFER_BYTES, file);
    let mut documents: Box<dyn Documents> = match format {
        Format::Json => Box::new(Json { out, array: Some(true) }),
        Format::Ndjson => Box::new(Json { out, array: None }),
        Format::Bson => Box::new(Bson(out)),
        Format::Parquet | Format::Arrow => columns(format, out)?,
        Format::Csv | Format::Tsv => {
            return Err(
                "CSV has columns, which SQL knows: COPY ... TO STDOUT (FORMAT csv), or \\copy in nestor sql".to_owned(),
            );
        }
    };
    let mut command = doc! { "find": collection, "filter": filter, "$db": db };
    let (mut written, mut batch) = (0u64, "firstBatch");
    loop {
        let reply = client.read(command.to_raw().as_raw()).map_err(|e| e.to_string())?;
        let cursor = reply.as_raw().get("cursor").and_then(ValueRef::as_document);
        let cursor = cursor.ok_or("a reply without a cursor")?;
        let docs = cursor
            .get(batch)
            .and_then(ValueRef::as_array)
            .ok_or("a cursor without its batch")?;
        for doc in docs.iter().filter_map(ValueRef::as_document) {
            documents.add(doc.to_raw().as_raw())?;
            written += 1;
        }
        let id = match cursor.get("id") {
            Some(ValueRef::Int64(0)) | None => break,
            Some(id) => id.to_value(),
        };
        command = Document::new();
        command.push("getMore", id);
        command.push("collection", collection);
        command.push("$db", db);
        batch = "nextBatch";
    }
    let out = documents.finish()?;
    let file = out.into_inner().map_err(|e| failed(&args.file, e.into_error()))?;
    file.sync_all().map_err(|e| failed(&args.file, e))?;
    fs::rename(&unfinished.0, &args.file).map_err(|e| failed(&args.file, e))?;
    unfinished.0 = PathBuf::new();
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{written} documents of {} in {seconds:.1} s ({:.0} a second)",
        args.from,
        written as f64 / seconds.max(1e-9)
    );
    Ok(())
}

/// What the file is called until it is whole.
fn unfinished(file: &Path) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    file.with_file_name(format!(".{name}.{}.new", std::process::id()))
}
