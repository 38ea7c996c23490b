//! `nestor import`: files of documents into a collection, through the wire protocol.
//!
//! One thread reads and encodes records into batches, the calling thread sends them in order, so that natural
//! order is the order of the file. A record that cannot be read ends the import with its place and the
//! reason; what stood before it is in. A document the server refuses is named, and the rest goes on.

mod batch;
mod target;

use crate::client::Uri;
use batch::{Batch, BatchBuilder};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use nestor_files::format::{is_gzip, unpacked};
use nestor_files::records::{BadRecord, Place, Records, Skipped};
use nestor_files::{Format, bson_dump, csv, json};
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use target::Target;

/// Refused documents that are named one by one; the rest is only counted.
const REFUSALS_SHOWN: usize = 10;

/// What happens to a document whose `_id` is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// It is refused and named.
    Insert,
    /// It replaces the one that is there.
    Upsert,
}

/// Arguments of `nestor import`.
#[derive(Args, Debug)]
pub struct ImportArgs {
    /// File to read; `-` is standard input
    pub file: PathBuf,
    /// Collection to write to, as database.collection
    #[arg(long, value_name = "DB.COLLECTION")]
    pub into: String,
    /// Server to write to; each option of the connection string has its effect or is refused
    #[arg(long, default_value = "mongodb://127.0.0.1:27017")]
    pub uri: String,
    /// Format; by default told from the file's name
    #[arg(long = "type", value_parser = PossibleValuesParser::new(Format::WORDS).try_map(|word| word.parse::<Format>()))]
    pub format: Option<Format>,
    /// Read through gzip, as files are whose name ends in .gz
    #[arg(long)]
    pub gzip: bool,
    /// Drop the collection first
    #[arg(long)]
    pub drop: bool,
    /// Do nothing when the collection exists; else it appears only when the whole file is in
    #[arg(long, conflicts_with_all = ["drop", "mode"])]
    pub if_missing: bool,
    /// What to do with a document whose _id is there already
    #[arg(long, value_enum, default_value = "insert")]
    pub mode: Mode,
    /// CSV and TSV: names of the fields; by default the first line has them
    #[arg(long, value_delimiter = ',')]
    pub fields: Vec<String>,
    /// CSV: the character between fields, a comma if not given
    #[arg(long, value_name = "CHARACTER")]
    pub delimiter: Option<char>,
    /// CSV and TSV: names are followed by types, as in name.string(),born.date(2006-01-02). Types are auto, binary(base32|base64|hex), boolean, date, date_go, date_ms, date_oracle, decimal, double, int32, int64, string
    #[arg(long = "columnsHaveTypes")]
    pub columns_have_types: bool,
    /// With --columnsHaveTypes: what becomes of a field that is not of its type
    #[arg(
        long = "parseGrace",
        value_parser = PossibleValuesParser::new(csv::Grace::WORDS).try_map(|word| word.parse::<csv::Grace>()),
        default_value = "stop",
        requires = "columns_have_types"
    )]
    pub parse_grace: csv::Grace,
    /// CSV and TSV: leave out empty fields
    #[arg(long = "ignoreBlanks")]
    pub ignore_blanks: bool,
}

impl ImportArgs {
    fn format(&self) -> Result<Format, String> {
        if let Some(format) = self.format {
            return Ok(format);
        }
        Format::of_name(&self.file)
            .ok_or_else(|| format!("{}: the name does not tell the format: say --type", self.file.display()))
    }
}

/// Imports as `args` say; an error is a message for the user.
pub fn run(args: &ImportArgs) -> Result<(), String> {
    let uri: Uri = args
        .uri
        .parse()
        .map_err(|e: crate::client::ClientError| e.to_string())?;
    let is_of_columns = matches!(args.format()?, Format::Parquet | Format::Arrow);
    let (input, size) = match is_of_columns {
        true => (Box::new(io::empty()) as Input, None),
        false => open(&args.file)?,
    };
    let read = Arc::new(AtomicU64::new(0));
    // Progress is that of the file, whatever comes out of it.
    let counted = Counted {
        inner: input,
        read: read.clone(),
    };
    let records = if is_of_columns {
        columns(args)?
    } else if args.gzip || is_gzip(&args.file) {
        records(args, Box::new(unpacked(counted)))?
    } else {
        records(args, Box::new(counted))?
    };
    let Some(mut target) = Target::open(args, &uri)? else {
        println!("{} is there already: nothing imported", args.into);
        return Ok(());
    };

    let begun = Instant::now();
    let bar = progress_bar(size, &args.into);
    let (sender, receiver) = sync_channel(2);
    let outcome = std::thread::scope(|scope| {
        let reader = scope.spawn(|| read_batches(records, args, sender));
        let sent = send_batches(&mut target, receiver, &bar, &read);
        let finished = reader.join().expect("the reading thread does not panic");
        sent.and_then(|outcome| {
            let skipped = finished.map_err(|bad| bad.named(&args.file))?;
            Ok((outcome, skipped))
        })
    });
    bar.finish_and_clear();
    let written = target.written();
    let (outcome, skipped) = outcome.map_err(|e| format!("{e}\n{}", target.left_behind()))?;
    if outcome.refused > 0 {
        for (place, reason) in &outcome.shown {
            eprintln!("{}: {place}: {reason}", args.file.display());
        }
        let more = outcome.refused - outcome.shown.len() as u64;
        if more > 0 {
            eprintln!("and {more} more");
        }
    }
    for bad in &skipped.shown {
        eprintln!("{}: skipped", bad.named(&args.file));
    }
    if skipped.count > 0 {
        eprintln!("{} rows were skipped", skipped.count);
    }
    target.finish()?;
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{written} documents into {} in {seconds:.1} s ({:.0} a second)",
        args.into,
        written as f64 / seconds.max(1e-9)
    );
    if outcome.refused > 0 {
        return Err(format!("{} documents were refused", outcome.refused));
    }
    Ok(())
}

/// What the server refused.
#[derive(Default)]
struct Outcome {
    refused: u64,
    /// Place and reason of the first ones.
    shown: Vec<(Place, String)>,
}

fn read_batches(
    mut records: Box<dyn Records + Send>,
    args: &ImportArgs,
    out: SyncSender<Batch>,
) -> Result<Skipped, BadRecord> {
    let mut builder = BatchBuilder::new(args.mode);
    loop {
        let record = records.next_record();
        let last = !matches!(record, Ok(Some(_)));
        let full = match &record {
            Ok(Some(record)) => builder.push(record)?,
            _ => builder.take(),
        };
        if let Some(batch) = full {
            if out.send(batch).is_err() {
                return Ok(Skipped::default()); // the sending side failed and says why
            }
        }
        if last {
            return record.map(|_| records.skipped());
        }
    }
}

fn send_batches(
    target: &mut Target,
    batches: Receiver<Batch>,
    bar: &ProgressBar,
    read: &AtomicU64,
) -> Result<Outcome, String> {
    let mut outcome = Outcome::default();
    for batch in batches {
        for (index, reason) in target.send(&batch)? {
            outcome.refused += 1;
            if outcome.shown.len() < REFUSALS_SHOWN {
                outcome.shown.push((batch.places[index], reason));
            }
        }
        bar.set_position(read.load(Relaxed));
        bar.set_message(format!("{} documents", target.written()));
    }
    Ok(outcome)
}

/// Refuses options of a format that the file does not have.
fn check_options(args: &ImportArgs, format: Format) -> Result<(), String> {
    let is_table = matches!(format, Format::Csv | Format::Tsv);
    let table_options = [
        ("--fields", !args.fields.is_empty()),
        ("--columnsHaveTypes", args.columns_have_types),
        ("--ignoreBlanks", args.ignore_blanks),
    ];
    match table_options.into_iter().find(|(_, given)| *given && !is_table) {
        Some((option, _)) => Err(format!("{option} is for CSV and TSV files")),
        None if args.delimiter.is_some() && format != Format::Csv => Err("--delimiter is for CSV files".into()),
        None => Ok(()),
    }
}

fn records(args: &ImportArgs, input: Input) -> Result<Box<dyn Records + Send>, String> {
    let format = args.format()?;
    check_options(args, format)?;
    Ok(match format {
        Format::Ndjson => Box::new(json::Lines::new(input)),
        Format::Json => Box::new(json::Values::new(input)),
        Format::Bson => Box::new(bson_dump::Dump::new(input)),
        Format::Csv => Box::new(csv::Rows::new(input, &table(args, args.delimiter.unwrap_or(',')))?),
        Format::Tsv => Box::new(csv::Rows::new(input, &table(args, '\t'))?),
        Format::Parquet | Format::Arrow => return columns(args),
    })
}

/// The rows of a file that has columns, which is read at any place of it.
#[cfg(feature = "parquet")]
fn columns(args: &ImportArgs) -> Result<Box<dyn Records + Send>, String> {
    use nestor_files::arrow::records::Rows;
    let format = args.format()?;
    check_options(args, format)?;
    if args.gzip || is_gzip(&args.file) || args.file == Path::new("-") {
        return Err("a file of columns is read as it is: neither packed nor from standard input".to_owned());
    }
    let file = File::open(&args.file).map_err(|e| format!("{}: {e}", args.file.display()))?;
    let rows = match format {
        Format::Parquet => Rows::of_parquet(file),
        _ => Rows::of_ipc(file),
    };
    Ok(Box::new(rows.map_err(|bad| bad.named(&args.file))?))
}

#[cfg(not(feature = "parquet"))]
fn columns(_: &ImportArgs) -> Result<Box<dyn Records + Send>, String> {
    Err("this build has no Parquet and Arrow: it was made without the feature \"parquet\"".to_owned())
}

fn table(args: &ImportArgs, delimiter: char) -> csv::Options {
    csv::Options {
        delimiter,
        fields: args.fields.clone(),
        have_types: args.columns_have_types,
        grace: args.parse_grace,
        ignore_blanks: args.ignore_blanks,
    }
}

type Input = Box<dyn Read + Send>;

/// Counts what was read, for the progress bar.
struct Counted {
    inner: Input,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.read.fetch_add(count as u64, Relaxed);
        Ok(count)
    }
}

fn open(path: &Path) -> Result<(Input, Option<u64>), String> {
    if path == Path::new("-") {
        return Ok((Box::new(io::stdin()), None));
    }
    let failed = |e: io::Error| format!("{}: {e}", path.display());
    let file = File::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    Ok((Box::new(file), Some(size)))
}

fn progress_bar(size: Option<u64>, name: &str) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = match size {
        Some(size) => ProgressBar::new(size),
        None => ProgressBar::new_spinner(),
    };
    let template = if size.is_some() {
        "{prefix} {bar:30} {percent:>3}% {bytes}/{total_bytes} {msg} eta {eta}"
    } else {
        "{prefix} {spinner} {bytes} {msg} {elapsed}"
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_prefix(name.to_owned());
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: ImportArgs,
    }

    #[test]
    fn formats_are_told_from_names() {
        for (name, expected) in [
            ("a.json", Some(Format::Json)),
            ("a.b.NDJSON", Some(Format::Ndjson)),
            ("dump/a.bson.gz", Some(Format::Bson)),
            ("a.CSV.GZ", Some(Format::Csv)),
            ("a.gz", None),
            ("a.tsv.gz.gz", None),
            ("-", None),
        ] {
            let line = Line::parse_from(["import", name, "--into", "a.b"]);
            assert_eq!(line.args.format().ok(), expected, "{name}");
        }
    }
}
