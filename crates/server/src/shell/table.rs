//! Rows as people and programs read them.

use crate::client::postgres::Column;
use clap::ValueEnum;
use std::io::{self, Write};
use unicode_width::UnicodeWidthStr;

/// Rows that are looked at before the widths of columns are decided: more are printed as they come.
const ROWS_MEASURED: usize = 1000;

/// How rows are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table with a head and a count of rows.
    Table,
    /// A line for each value, for rows that are wide.
    Expanded,
    /// Comma-separated values with a head.
    Csv,
    /// Values separated by tabs with a head; a tab, line or backslash in a value is escaped as COPY does.
    Tsv,
    /// A JSON object for each row, a line each; values are strings, numbers, booleans, JSON or null as their types say.
    Json,
}

/// Prints the rows of one answer.
pub struct Printer {
    format: Format,
    columns: Vec<Column>,
    /// Rows that wait until widths are decided.
    waiting: Vec<Vec<Option<String>>>,
    widths: Option<Vec<usize>>,
    rows: u64,
}

impl Printer {
    /// Prints rows of these columns.
    pub fn new(format: Format, columns: Vec<Column>) -> Self {
        Self {
            format,
            columns,
            waiting: Vec::new(),
            widths: None,
            rows: 0,
        }
    }

    /// Takes a row.
    ///
    /// Errors: those of writing.
    pub fn row(&mut self, out: &mut impl Write, row: Vec<Option<String>>) -> io::Result<()> {
        self.rows += 1;
        match self.format {
            Format::Table if self.widths.is_none() => {
                self.waiting.push(row);
                if self.waiting.len() == ROWS_MEASURED {
                    self.settle(out)
                } else {
                    Ok(())
                }
            }
            Format::Table => self.table_row(out, &row),
            Format::Expanded => self.expanded(out, &row),
            Format::Csv | Format::Tsv => {
                if self.rows == 1 {
                    self.head(out)?;
                }
                self.separated(out, row.iter().map(Option::as_deref))
            }
            Format::Json => self.object(out, &row),
        }
    }

    /// Ends the answer.
    ///
    /// Errors: those of writing.
    pub fn end(mut self, out: &mut impl Write) -> io::Result<()> {
        match self.format {
            Format::Table => {
                if self.widths.is_none() {
                    self.settle(out)?;
                }
                let rows = self.rows;
                writeln!(out, "({rows} row{})\n", if rows == 1 { "" } else { "s" })
            }
            Format::Expanded if self.rows == 0 => writeln!(out, "(0 rows)\n"),
            Format::Expanded => writeln!(out),
            Format::Csv | Format::Tsv if self.rows == 0 => self.head(out),
            Format::Csv | Format::Tsv | Format::Json => Ok(()),
        }
    }

    fn head(&self, out: &mut impl Write) -> io::Result<()> {
        let names: Vec<String> = self.columns.iter().map(|column| column.name.clone()).collect();
        self.separated(out, names.iter().map(|name| Some(name.as_str())))
    }

    /// Decides widths by the rows that wait, and prints these.
    fn settle(&mut self, out: &mut impl Write) -> io::Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        let mut widths: Vec<usize> = self.columns.iter().map(|column| column.name.width()).collect();
        for row in &waiting {
            for (width, value) in widths.iter_mut().zip(row) {
                let lines = value.as_deref().unwrap_or_default().lines();
                *width = lines.map(|line| shown(line).width()).max().unwrap_or(0).max(*width);
            }
        }
        let head: Vec<String> = self
            .columns
            .iter()
            .zip(&widths)
            .map(|(column, &width)| {
                let spare = width - column.name.width();
                let left = spare / 2;
                format!(" {}{}{} ", " ".repeat(left), column.name, " ".repeat(spare - left))
            })
            .collect();
        writeln!(out, "{}", head.join("|").trim_end())?;
        let rule: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
        writeln!(out, "{}", rule.join("+"))?;
        self.widths = Some(widths);
        waiting.iter().try_for_each(|row| self.table_row(out, row))
    }

    fn table_row(&self, out: &mut impl Write, row: &[Option<String>]) -> io::Result<()> {
        let widths = self.widths.as_deref().unwrap_or_default();
        let cells: Vec<Vec<String>> = row
            .iter()
            .map(|value| value.as_deref().unwrap_or_default().split('\n').map(shown).collect())
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(1);
        for line in 0..height {
            let mut text = String::new();
            for (at, ((cell, &width), column)) in cells.iter().zip(widths).zip(&self.columns).enumerate() {
                let value = cell.get(line).map_or("", String::as_str);
                let more = if line + 1 < cell.len() { '+' } else { ' ' };
                let spare = " ".repeat(width.saturating_sub(value.width()));
                if at > 0 {
                    text.push('|');
                }
                text.push(' ');
                match is_number(column.type_oid) {
                    true => text.extend([&spare, value]),
                    false => text.extend([value, &spare]),
                }
                text.push(more);
            }
            writeln!(out, "{}", text.trim_end_matches(' '))?;
        }
        Ok(())
    }

    fn expanded(&self, out: &mut impl Write, row: &[Option<String>]) -> io::Result<()> {
        let width = self.columns.iter().map(|column| column.name.width()).max().unwrap_or(0);
        writeln!(out, "-[ RECORD {} ]{}", self.rows, "-".repeat(width.max(12)))?;
        for (column, value) in self.columns.iter().zip(row) {
            let spare = " ".repeat(width - column.name.width());
            let mut lines = value.as_deref().unwrap_or_default().split('\n').map(shown);
            writeln!(out, "{}{spare} | {}", column.name, lines.next().unwrap_or_default())?;
            for line in lines {
                writeln!(out, "{} | {line}", " ".repeat(width))?;
            }
        }
        Ok(())
    }

    fn separated<'v>(&self, out: &mut impl Write, values: impl Iterator<Item = Option<&'v str>>) -> io::Result<()> {
        let fields: Vec<String> = values.map(|value| self.field(value)).collect();
        let separator = if self.format == Format::Csv { "," } else { "\t" };
        writeln!(out, "{}", fields.join(separator))
    }

    fn field(&self, value: Option<&str>) -> String {
        match (self.format, value) {
            (Format::Csv, None) => String::new(),
            (Format::Csv, Some(value)) => match value.is_empty() || value.contains([',', '"', '\n', '\r']) {
                true => format!("\"{}\"", value.replace('"', "\"\"")),
                false => value.to_owned(),
            },
            (_, None) => "\\N".to_owned(),
            (_, Some(value)) => value
                .replace('\\', "\\\\")
                .replace('\t', "\\t")
                .replace('\n', "\\n")
                .replace('\r', "\\r"),
        }
    }

    fn object(&self, out: &mut impl Write, row: &[Option<String>]) -> io::Result<()> {
        let mut text = String::from("{");
        for (at, (column, value)) in self.columns.iter().zip(row).enumerate() {
            if at > 0 {
                text.push_str(", ");
            }
            text.push_str(&quoted(&column.name));
            text.push_str(": ");
            match value.as_deref() {
                None => text.push_str("null"),
                Some("t") if column.type_oid == BOOL => text.push_str("true"),
                Some("f") if column.type_oid == BOOL => text.push_str("false"),
                Some(value) if JSON.contains(&column.type_oid) => text.push_str(&value.replace('\n', " ")),
                // NaN and infinities are no numbers of JSON.
                Some(value) if is_number(column.type_oid) && value.ends_with(|c: char| c.is_ascii_digit()) => {
                    text.push_str(value)
                }
                Some(value) => text.push_str(&quoted(value)),
            }
        }
        writeln!(out, "{text}}}")
    }
}

const BOOL: u32 = 16;
const JSON: [u32; 2] = [114, 3802];

/// Whether values of the type stand at the right.
fn is_number(oid: u32) -> bool {
    // int8, int2, int4, oid, float4, float8, money, numeric.
    matches!(oid, 20 | 21 | 23 | 26 | 700 | 701 | 790 | 1700)
}

/// A line of a value without what a terminal would obey.
fn shown(line: &str) -> String {
    line.chars().fold(String::with_capacity(line.len()), |mut out, c| {
        match c {
            '\t' => out.push_str("    "),
            '\r' => out.push_str("\\r"),
            c if c.is_control() => out.push_str(&format!("\\x{:02X}", u32::from(c))),
            c => out.push(c),
        }
        out
    })
}

/// A string of JSON.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if u32::from(c) < 0x20 => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(format: Format, rows: &[&[Option<&str>]]) -> String {
        let columns = [("id", 23), ("name", 25), ("is", 16), ("doc", 3802)];
        let columns = columns
            .map(|(name, type_oid)| Column {
                name: name.into(),
                type_oid,
            })
            .to_vec();
        let mut out = Vec::new();
        let mut printer = Printer::new(format, columns);
        for row in rows {
            let row = row.iter().map(|value| value.map(str::to_owned)).collect();
            printer.row(&mut out, row).expect("memory takes it");
        }
        printer.end(&mut out).expect("memory takes it");
        String::from_utf8(out).expect("it is text")
    }

    const ROWS: &[&[Option<&str>]] = &[
        &[Some("1"), Some("ä,\"x\"\ny"), Some("t"), Some("{\"a\": 1}")],
        &[Some("20"), None, Some("f"), None],
    ];

    #[test]
    fn forms_of_rows() {
        assert_eq!(
            printed(Format::Table, ROWS),
            " id | name  | is |   doc\n----+-------+----+----------\n  1 | ä,\"x\"+| t  | {\"a\": 1}\n    | y     |    |\n 20 |       | f  |\n(2 rows)\n\n"
        );
        assert_eq!(
            printed(Format::Expanded, &ROWS[..1]),
            "-[ RECORD 1 ]------------\nid   | 1\nname | ä,\"x\"\n     | y\nis   | t\ndoc  | {\"a\": 1}\n\n"
        );
        assert_eq!(
            printed(Format::Csv, ROWS),
            "id,name,is,doc\n1,\"ä,\"\"x\"\"\ny\",t,\"{\"\"a\"\": 1}\"\n20,,f,\n"
        );
        assert_eq!(
            printed(Format::Tsv, ROWS),
            "id\tname\tis\tdoc\n1\tä,\"x\"\\ny\tt\t{\"a\": 1}\n20\t\\N\tf\t\\N\n"
        );
        assert_eq!(
            printed(Format::Json, ROWS),
            "{\"id\": 1, \"name\": \"ä,\\\"x\\\"\\ny\", \"is\": true, \"doc\": {\"a\": 1}}\n{\"id\": 20, \"name\": null, \"is\": false, \"doc\": null}\n"
        );
    }

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        assert_eq!(shown("a\u{1b}[2Jb"), "a\\x1B[2Jb");
    }
}
