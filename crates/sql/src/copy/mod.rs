//! COPY's files: what their options mean, and rows from bytes and back.
//!
//! Source: PostgreSQL's manual, "COPY", with its section "File Formats".

#[cfg(feature = "parquet")]
pub mod arrow;
#[cfg(not(feature = "parquet"))]
#[path = "without_arrow.rs"]
pub mod arrow;
pub mod read;
pub mod write;

use crate::bind::ident;
use crate::error::{fail, unsupported};
use crate::parse::copying;
use crate::types::encoding::Encoding;
use nestor_model::Result;
use sqlparser::ast::{CopyLegacyCsvOption, CopyLegacyOption, CopyOption, Ident};

/// The first bytes of a binary file.
pub const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";

/// The form of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Lines of fields with backslash escapes.
    #[default]
    Text,
    /// Comma-separated values.
    Csv,
    /// Lengths and values in the protocol's binary form.
    Binary,
    /// Parquet.
    Parquet,
    /// A stream of Arrow's IPC.
    Arrow,
}

impl Format {
    /// Whether a file has no lines, and no options that say how these are written.
    pub fn is_binary(self) -> bool {
        !matches!(self, Self::Text | Self::Csv)
    }

    /// Whether a file has rows column by column.
    pub fn has_columns(self) -> bool {
        matches!(self, Self::Parquet | Self::Arrow)
    }
}

/// Columns that an option is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Columns {
    /// None.
    #[default]
    None,
    /// All.
    All,
    /// These.
    Some(Vec<String>),
}

impl Columns {
    fn of(names: &[Ident]) -> Self {
        match names {
            [] => Self::All,
            [only] if only.quote_style.is_some() && only.value == copying::ALL => Self::All,
            names => Self::Some(names.iter().map(ident).collect()),
        }
    }

    /// Whether a column is one of them.
    pub fn has(&self, name: &str) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Some(names) => names.iter().any(|own| own == name),
        }
    }

    fn check(&self, option: &str, columns: &[&str]) -> Result<()> {
        let Self::Some(names) = self else { return Ok(()) };
        match names.iter().find(|name| !columns.contains(&name.as_str())) {
            Some(name) => fail("42P10", format!("{option} column \"{name}\" not referenced by COPY")),
            None => Ok(()),
        }
    }
}

/// The options of a COPY.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The form.
    pub format: Format,
    /// What stands between fields.
    pub delimiter: u8,
    /// What stands for null.
    pub null: String,
    /// The first line has names.
    pub header: bool,
    /// These names have to be those of the columns.
    pub matches: bool,
    /// What has to be true of rows that come.
    pub condition: Option<String>,
    /// What stands around fields of CSV.
    pub quote: u8,
    /// What stands before a quote within quotes.
    pub escape: u8,
    /// Columns whose values are always quoted.
    pub force_quote: Columns,
    /// Columns in which nothing stands for null.
    pub force_not_null: Columns,
    /// Columns in which a quoted field may stand for null.
    pub force_null: Columns,
    /// What texts are in, if not in the client's encoding.
    pub encoding: Option<Encoding>,
}

#[derive(Default)]
struct Given {
    format: Option<Format>,
    delimiter: Option<char>,
    null: Option<String>,
    header: Option<bool>,
    matches: bool,
    condition: Option<String>,
    quote: Option<char>,
    escape: Option<char>,
    force_quote: Columns,
    force_not_null: Columns,
    force_null: Columns,
    encoding: Option<Encoding>,
}

fn once<T>(place: &mut Option<T>, value: T) -> Result<()> {
    match place.replace(value) {
        Some(_) => fail("42601", "conflicting or redundant options"),
        None => Ok(()),
    }
}

impl Given {
    fn option(&mut self, option: &CopyOption) -> Result<()> {
        match option {
            CopyOption::Format(name) => {
                let format = match ident(name).as_str() {
                    "text" => Format::Text,
                    "csv" => Format::Csv,
                    "binary" => Format::Binary,
                    "parquet" => Format::Parquet,
                    "arrow" => Format::Arrow,
                    other => return fail("22023", format!("COPY format \"{other}\" not recognized")),
                };
                once(&mut self.format, format)
            }
            // There is nothing to freeze.
            CopyOption::Freeze(_) => Ok(()),
            CopyOption::Delimiter(c) => once(&mut self.delimiter, *c),
            CopyOption::Null(text) => once(&mut self.null, text.clone()),
            CopyOption::Header(on) => once(&mut self.header, *on),
            CopyOption::Quote(c) => once(&mut self.quote, *c),
            CopyOption::Escape(c) => once(&mut self.escape, *c),
            CopyOption::ForceQuote(names) => {
                self.force_quote = Columns::of(names);
                Ok(())
            }
            CopyOption::ForceNotNull(names) => {
                self.force_not_null = Columns::of(names);
                Ok(())
            }
            CopyOption::ForceNull(names) => {
                self.force_null = Columns::of(names);
                Ok(())
            }
            CopyOption::Encoding(name) if name == copying::MATCH => {
                self.matches = true;
                Ok(())
            }
            CopyOption::Encoding(name) if copying::condition(name).is_some() => {
                self.condition = copying::condition(name).map(str::to_owned);
                Ok(())
            }
            CopyOption::Encoding(name) => match Encoding::of(name) {
                Some(own) => once(&mut self.encoding, own),
                None => unsupported(format!("encoding {name}")),
            },
        }
    }

    fn legacy(&mut self, option: &CopyLegacyOption) -> Result<()> {
        match option {
            CopyLegacyOption::Binary => once(&mut self.format, Format::Binary),
            CopyLegacyOption::Delimiter(c) => once(&mut self.delimiter, *c),
            CopyLegacyOption::Null(text) => once(&mut self.null, text.clone()),
            CopyLegacyOption::Csv(options) => {
                once(&mut self.format, Format::Csv)?;
                options.iter().try_for_each(|option| match option {
                    CopyLegacyCsvOption::Header => once(&mut self.header, true),
                    CopyLegacyCsvOption::Quote(c) => once(&mut self.quote, *c),
                    CopyLegacyCsvOption::Escape(c) => once(&mut self.escape, *c),
                    CopyLegacyCsvOption::ForceQuote(names) => {
                        self.force_quote = Columns::of(names);
                        Ok(())
                    }
                    CopyLegacyCsvOption::ForceNotNull(names) => {
                        self.force_not_null = Columns::of(names);
                        Ok(())
                    }
                })
            }
            other => fail("42601", format!("syntax error: {other} is no option of COPY")),
        }
    }
}

/// One byte that may stand there.
fn byte(what: &str, c: char) -> Result<u8> {
    match u8::try_from(c) {
        Ok(byte) if byte.is_ascii() && !matches!(byte, b'\n' | b'\r' | 0) => Ok(byte),
        _ => fail("0A000", format!("COPY {what} must be a single one-byte character")),
    }
}

impl Options {
    /// The options that a statement gives, for these columns; `usual` is the form when it says none.
    ///
    /// Errors: 42601 for what is there twice, 22023 and 0A000 for what does not go together.
    pub fn new(options: &[CopyOption], legacy: &[CopyLegacyOption], columns: &[&str], usual: Format) -> Result<Self> {
        let mut given = Given::default();
        options.iter().try_for_each(|option| given.option(option))?;
        legacy.iter().try_for_each(|option| given.legacy(option))?;
        let format = given.format.unwrap_or(usual);
        let is_csv = format == Format::Csv;
        if format.is_binary() {
            let named = [
                ("DELIMITER", given.delimiter.is_some()),
                ("NULL", given.null.is_some()),
                ("HEADER", given.header.is_some()),
            ];
            if let Some((name, _)) = named.iter().find(|(_, is_given)| *is_given) {
                let mode = format!("{format:?}").to_uppercase();
                return fail("42601", format!("cannot specify {name} in {mode} mode"));
            }
        }
        let of_csv = [
            ("quote", given.quote.is_some()),
            ("escape", given.escape.is_some()),
            ("force quote", given.force_quote != Columns::None),
            ("force not null", given.force_not_null != Columns::None),
            ("force null", given.force_null != Columns::None),
        ];
        if let Some((name, _)) = of_csv.iter().find(|(_, is_given)| *is_given && !is_csv) {
            return fail("0A000", format!("COPY {name} available only in CSV mode"));
        }
        let usual = if is_csv { ',' } else { '\t' };
        let delimiter = byte("delimiter", given.delimiter.unwrap_or(usual))?;
        if !is_csv && (delimiter.is_ascii_alphanumeric() || matches!(delimiter, b'\\' | b'.')) {
            return fail(
                "22023",
                format!("COPY delimiter cannot be \"{}\"", char::from(delimiter)),
            );
        }
        let quote = byte("quote", given.quote.unwrap_or('"'))?;
        let escape = byte("escape", given.escape.unwrap_or(char::from(quote)))?;
        if is_csv && quote == delimiter {
            return fail("22023", "COPY delimiter and quote must be different");
        }
        let null = given
            .null
            .unwrap_or_else(|| if is_csv { String::new() } else { "\\N".to_owned() });
        if null.contains(['\n', '\r']) {
            return fail(
                "22023",
                "COPY null representation cannot use newline or carriage return",
            );
        }
        if null.as_bytes().contains(&delimiter) {
            return fail("22023", "COPY delimiter must not appear in the NULL specification");
        }
        if is_csv && null.as_bytes().contains(&quote) {
            return fail("22023", "CSV quote character must not appear in the NULL specification");
        }
        given.force_quote.check("FORCE_QUOTE", columns)?;
        given.force_not_null.check("FORCE_NOT_NULL", columns)?;
        given.force_null.check("FORCE_NULL", columns)?;
        Ok(Self {
            format,
            delimiter,
            null,
            header: given.header.unwrap_or(false),
            matches: given.matches,
            condition: given.condition,
            quote,
            escape,
            force_quote: given.force_quote,
            force_not_null: given.force_not_null,
            force_null: given.force_null,
            encoding: given.encoding,
        })
    }
}
