//! Tables for a terminal.

use super::table::{Board, Table, Tone};
use std::fmt::Write;

/// Prints all tables of all suites; with colours for terminals that want them.
pub fn print(board: &Board, with_colours: bool) -> String {
    let mut out = String::new();
    for suite in board.suites() {
        for table in board.tables(&suite) {
            print_table(&table, with_colours, &mut out);
        }
    }
    for remark in board.remarks() {
        let _ = writeln!(out, "{remark}");
    }
    out
}

/// Prints one table.
pub fn print_table(table: &Table, with_colours: bool, out: &mut String) {
    let width = |text: &str| text.chars().count();
    let first = table.rows.iter().map(|(test, _)| width(test)).max().unwrap_or(0);
    let widths: Vec<usize> = (0..table.columns.len())
        .map(|at| {
            let figures = table.rows.iter().map(|(_, row)| mark(&row[at].text, row[at].tone));
            let longest = figures.map(|text| width(&text)).max().unwrap_or(0);
            longest.max(width(&table.columns[at]))
        })
        .collect();
    let _ = writeln!(out, "{}", table.title);
    let _ = write!(out, "{:first$}", "");
    for (column, width) in table.columns.iter().zip(&widths) {
        let _ = write!(out, "  {column:>width$}");
    }
    out.push('\n');
    for (test, row) in &table.rows {
        let _ = write!(out, "{test:first$}");
        for (figure, width) in row.iter().zip(&widths) {
            let text = format!("  {:>width$}", mark(&figure.text, figure.tone));
            match colour(figure.tone).filter(|_| with_colours) {
                Some(code) => {
                    let _ = write!(out, "\x1b[{code}m{text}\x1b[0m");
                }
                None => out.push_str(&text),
            }
        }
        out.push('\n');
    }
    out.push('\n');
}

/// What is grey in colours has a mark without them.
fn mark(text: &str, tone: Tone) -> String {
    match tone {
        Tone::Void => format!("({text})"),
        _ => text.to_owned(),
    }
}

fn colour(tone: Tone) -> Option<&'static str> {
    match tone {
        Tone::Plain => None,
        Tone::MuchWorse => Some("1;31"),
        Tone::Worse => Some("31"),
        Tone::Better => Some("32"),
        Tone::MuchBetter => Some("1;32"),
        Tone::Void => Some("90"),
    }
}
