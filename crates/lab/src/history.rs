//! Results by release, kept in the repository: what each release does relative to the first, and what the last one lost.
//!
//! The file has lines as results have, one for each test of a release, without series; their label is the release.

use crate::report::flame::grown;
use crate::report::table::Board;
use crate::report::text;
use crate::results::{Measurement, Sink, read};
use std::fmt::Write;
use std::path::Path;

/// A test that keeps less than this of its rate is named.
const LOSS: f64 = 0.95;

/// Adds the results of `file` as those of `release`.
///
/// Errors: files that cannot be read or written, several servers in the results, and a release that is there already.
pub fn add(history: &Path, release: &str, file: &Path) -> Result<(), String> {
    let board = Board::new(read(file)?.0);
    let [label] = board.labels.as_slice() else {
        return Err(format!(
            "{} has results of several servers: a release is one",
            file.display()
        ));
    };
    if history.exists() && read(history)?.0.iter().any(|m| m.label == release) {
        return Err(format!("{} has release {release} already", history.display()));
    }
    let mut sink = Sink::open(history)?;
    for test in &board.tests {
        let Some(middle) = board.middle(label, test) else {
            continue;
        };
        let mut kept = middle.clone();
        release.clone_into(&mut kept.label);
        kept.series.clear();
        if kept.profile.is_empty() {
            let profiled = board.rounds(label, test).into_iter().find(|m| !m.profile.is_empty());
            kept.profile = profiled.map(|m| m.profile.clone()).unwrap_or_default();
        }
        sink.write(&kept)?;
    }
    Ok(())
}

/// All releases relative to the first, and what the last lost against the one before it.
///
/// Errors: a file that cannot be read.
pub fn show(history: &Path, with_colours: bool) -> Result<String, String> {
    let board = Board::new(read(history)?.0);
    let mut out = String::new();
    for suite in board.suites() {
        text::print_table(&board.relative(&suite), with_colours, &mut out);
    }
    out.push_str(&losses(&board));
    Ok(out)
}

/// The tests that the last release lost more than a twentieth of, with the functions that grew.
fn losses(board: &Board) -> String {
    let mut out = String::new();
    let [.., before, last] = board.labels.as_slice() else {
        return out;
    };
    for test in &board.tests {
        let (Some(a), Some(b)) = (board.middle(before, test), board.middle(last, test)) else {
            continue;
        };
        let kept = b.rate / a.rate.max(1e-9);
        if kept >= LOSS {
            continue;
        }
        let _ = writeln!(
            out,
            "{} {}: {last} does {:.2} of what {before} did",
            test.0, test.1, kept
        );
        let cpu = |m: &Measurement| m.used("server", "cpuMicros").unwrap_or(0.0);
        if !a.profile.is_empty() && !b.profile.is_empty() {
            for (name, was, is) in grown(&a.profile, cpu(a), &b.profile, cpu(b)) {
                let _ = writeln!(out, "    {name}: {was:.2} µs of CPU for each operation, now {is:.2}");
            }
        }
    }
    if out.is_empty() {
        let _ = writeln!(out, "{last} lost no more than a twentieth of any test of {before}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(label: &str, rate: f64, cpu: f64, profile: &[(&str, f64)]) -> Measurement {
        Measurement {
            label: label.into(),
            suite: "micro".into(),
            test: "scan".into(),
            rate,
            used: vec![("server".into(), vec![("cpuMicros".into(), cpu)])],
            profile: profile
                .iter()
                .map(|(stack, count)| ((*stack).to_owned(), *count))
                .collect(),
            ..Measurement::default()
        }
    }

    #[test]
    fn a_loss_is_named_with_its_function() {
        let a = measured("1.0", 100.0, 10.0, &[("run;find", 10.0)]);
        let b = measured("1.1", 80.0, 20.0, &[("run;find", 10.0), ("run;sort", 10.0)]);
        let lost = losses(&Board::new(vec![a.clone(), b]));
        assert!(
            lost.contains("1.1 does 0.80") && lost.contains("sort: 0.00 µs"),
            "{lost}"
        );
        let same = losses(&Board::new(vec![a.clone(), measured("1.1", 96.0, 10.0, &[])]));
        assert!(same.contains("lost no more"), "{same}");
    }

    #[test]
    fn a_release_is_added_once() {
        let folder = std::env::temp_dir().join(format!("nestor-lab-history-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let (results, history) = (folder.join("r"), folder.join("h"));
        let mut sink = Sink::open(&results).expect("a file");
        sink.write(&measured("x", 5.0, 1.0, &[])).expect("written");
        add(&history, "1.0", &results).expect("added");
        assert!(add(&history, "1.0", &results).expect_err("twice").contains("already"));
        assert_eq!(read(&history).expect("results").0[0].label, "1.0");
        sink.write(&measured("y", 5.0, 1.0, &[])).expect("written");
        assert!(
            add(&history, "1.1", &results)
                .expect_err("two servers")
                .contains("several")
        );
        std::fs::remove_dir_all(&folder).expect("it is ours");
    }
}
