//! Results by release, kept in the repository: what each release does relative to the first, and what the last one lost.
//!
//! The file has lines as results have, one for each test of a release, without series and with the functions of a profile instead of its stacks, so
//! that it stays small; their label is the release.

use crate::report::flame::{Shares, grown, shares};
use crate::report::table::Board;
use crate::report::text;
use crate::results::{Measurement, Sink, read};
use std::fmt::Write;
use std::path::Path;

/// A test that keeps less than this of its rate is named.
const LOSS: f64 = 0.95;
/// Functions that have less than this part of the samples are not kept.
const SHARE_MIN: f64 = 0.01;

/// Adds the results of `file` as those of `release`; those of `server`, if there are several.
///
/// Errors: files that cannot be read or written, several servers in the results and none named, none of that name, a release that is there already.
pub fn add(history: &Path, release: &str, file: &Path, server: Option<&str>) -> Result<(), String> {
    let board = Board::new(read(file)?.0);
    let label = match (server, board.labels.as_slice()) {
        (None, [label]) => label,
        (None, _) => {
            return Err(format!(
                "{} has results of several servers: name one by --server",
                file.display()
            ));
        }
        (Some(name), labels) => {
            let found = labels.iter().find(|label| *label == name);
            found.ok_or_else(|| format!("{} has no results of {name}", file.display()))?
        }
    };
    if history.exists() && read(history)?.0.iter().any(|m| m.label == release) {
        return Err(format!("{} has release {release} already", history.display()));
    }
    let mut sink = Sink::open(history)?;
    for test in &board.tests {
        let Some(middle) = board.middle(label, test) else {
            continue;
        };
        let profiled = board.rounds(label, test).into_iter().find(|m| !m.profile.is_empty());
        let functions = profiled.map(|m| shares(&m.profile)).unwrap_or_default();
        let mut kept = middle.clone();
        release.clone_into(&mut kept.label);
        kept.series.clear();
        kept.profile.clear();
        kept.functions = functions.into_iter().filter(|(_, share)| *share >= SHARE_MIN).collect();
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
        let of = |m: &Measurement| m.functions.iter().cloned().collect::<Shares>();
        if !a.functions.is_empty() && !b.functions.is_empty() {
            for (name, was, is) in grown(&of(a), cpu(a), &of(b), cpu(b)) {
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

    fn measured(label: &str, rate: f64, cpu: f64, functions: &[(&str, f64)]) -> Measurement {
        Measurement {
            label: label.into(),
            suite: "micro".into(),
            test: "scan".into(),
            rate,
            used: vec![("server".into(), vec![("cpuMicros".into(), cpu)])],
            functions: functions
                .iter()
                .map(|(name, share)| ((*name).to_owned(), *share))
                .collect(),
            ..Measurement::default()
        }
    }

    #[test]
    fn a_loss_is_named_with_its_function() {
        let a = measured("1.0", 100.0, 10.0, &[("run", 1.0), ("find", 1.0)]);
        let b = measured("1.1", 80.0, 20.0, &[("run", 1.0), ("find", 0.5), ("sort", 0.5)]);
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
        let mut profiled = measured("x", 5.0, 1.0, &[]);
        profiled.profile = vec![("run;find".into(), 999.0), ("run;seldom".into(), 1.0)];
        sink.write(&profiled).expect("written");
        add(&history, "1.0", &results, None).expect("added");
        assert!(
            add(&history, "1.0", &results, None)
                .expect_err("twice")
                .contains("already")
        );
        let kept = read(&history).expect("results").0.remove(0);
        let names: Vec<&str> = kept.functions.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            (kept.label.as_str(), names, kept.profile.len()),
            ("1.0", vec!["find", "run"], 0)
        );
        sink.write(&measured("y", 5.0, 1.0, &[])).expect("written");
        assert!(
            add(&history, "1.1", &results, None)
                .expect_err("two servers")
                .contains("several")
        );
        add(&history, "1.1", &results, Some("y")).expect("one of them");
        assert!(add(&history, "1.2", &results, Some("z")).is_err());
        std::fs::remove_dir_all(&folder).expect("it is ours");
    }
}
