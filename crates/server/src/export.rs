//! `nestor export`: the documents of a collection as a file, through the wire protocol.
//!
//! What is read is one state, the snapshot of the find if the server has such reads. The file has its name once it is whole.

use crate::client::{Client, Uri};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use nestor_files::Format;
use nestor_files::output::{Output, WORDS};
use nestor_model::{Document, Value, ValueRef, doc, extjson};
use std::fs::{self, File};
use std::io::BufWriter;
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
    #[arg(long = "type", value_parser = PossibleValuesParser::new(WORDS).try_map(|word| word.parse::<Format>()))]
    pub format: Option<Format>,
    /// Only documents that this filter matches, in Extended JSON
    #[arg(long, value_name = "FILTER", default_value = "{}")]
    pub query: String,
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
    let mut documents = Output::new(format, out).map_err(|e| e.to_string())?;
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
            documents.add(doc.to_raw().as_raw()).map_err(|e| e.to_string())?;
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
    let out = documents.finish().map_err(|e| e.to_string())?;
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
