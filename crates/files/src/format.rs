//! What a file is by its name.

use flate2::read::MultiGzDecoder;
use std::io::{BufReader, Read};
use std::path::Path;
use std::str::FromStr;

/// How a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// An array of documents, or documents one after the other.
    Json,
    /// One document per line.
    Ndjson,
    /// Comma-separated values; types are inferred.
    Csv,
    /// Tab-separated values; types are inferred.
    Tsv,
    /// BSON documents one after the other, as mongodump writes them.
    Bson,
    /// Parquet.
    Parquet,
    /// Arrow's IPC, a file or a stream.
    Arrow,
}

impl Format {
    /// The words by which formats are asked for.
    pub const WORDS: [&str; 7] = ["json", "ndjson", "csv", "tsv", "bson", "parquet", "arrow"];

    /// The format that a name tells; that of `events.bson.gz` is what it is within.
    pub fn of_name(path: &Path) -> Option<Self> {
        let named = match is_gzip(path) {
            true => path.with_extension(""),
            false => path.to_owned(),
        };
        match extension(&named).as_str() {
            "geojson" => Some(Self::Json),
            "jsonl" => Some(Self::Ndjson),
            "arrows" | "feather" | "ipc" => Some(Self::Arrow),
            word => word.parse().ok(),
        }
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        Ok(match word {
            "json" => Self::Json,
            "ndjson" => Self::Ndjson,
            "csv" => Self::Csv,
            "tsv" => Self::Tsv,
            "bson" => Self::Bson,
            "parquet" => Self::Parquet,
            "arrow" => Self::Arrow,
            _ => return Err(format!("{word} is none of {}", Self::WORDS.join(", "))),
        })
    }
}

/// The letters after the last dot of a name, in lower case.
fn extension(path: &Path) -> String {
    let extension = path.extension().and_then(|e| e.to_str());
    extension.unwrap_or_default().to_ascii_lowercase()
}

/// Whether a name says that gzip has packed the file.
pub fn is_gzip(path: &Path) -> bool {
    extension(path) == "gz"
}

/// What is within a packed file. Members one after the other are one file, as gzip has it.
pub fn unpacked(packed: impl Read) -> impl Read {
    MultiGzDecoder::new(BufReader::with_capacity(1 << 16, packed))
}
