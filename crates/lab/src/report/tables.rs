//! Which tables a section of a report has, and its remarks.

use super::table::{Board, Figure, Table, Tone, number, test_name};
use crate::results::Measurement;

/// What the hardware did, in the order of reports: who, what of it, the title, and what a figure is multiplied by.
const HARDWARE: [(&str, &str, &str, f64); 13] = [
    ("server", "cpuMicros", "server CPU, µs", 1.0),
    ("server", "userMicros", "server CPU in user space, µs", 1.0),
    ("server", "systemMicros", "server CPU in the kernel, µs", 1.0),
    ("client", "cpuMicros", "client CPU, µs", 1.0),
    ("server", "switches", "context switches of the server", 1.0),
    ("host", "switches", "context switches of the host", 1.0),
    ("server", "faultsMinor", "page faults of the server", 1.0),
    ("server", "readBytes", "KB the server read from storage", 1.0 / 1024.0),
    ("server", "writeBytes", "KB the server wrote", 1.0 / 1024.0),
    ("host", "diskReads", "reads of the host's disks", 1.0),
    ("host", "diskReadBytes", "KB read by the host's disks", 1.0 / 1024.0),
    ("host", "diskWrites", "writes of the host's disks", 1.0),
    ("host", "diskFlushes", "flushes of the host's disks (fsync)", 1.0),
];

/// A sample that did less than this part of the middle one was a stall.
const STALL: f64 = 0.1;
/// Fewest samples that tell of stalls.
const SAMPLES_MIN: usize = 5;

impl Board {
    /// All tables of a section that have something in them.
    pub fn tables(&self, suite: &str) -> Vec<Table> {
        let mut tables = vec![self.throughput(suite)];
        if self.labels_of(suite).len() > 1 {
            tables.push(self.relative(suite));
        }
        tables.push(self.background(suite));
        tables.extend(self.figures(suite));
        for (who, what, title, factor) in HARDWARE {
            let title = format!("{title}, for each operation (relative to the first)");
            tables.push(self.used(suite, who, what, &title, factor));
        }
        for name in ["p50", "p99", "p999", "max"] {
            tables.push(self.latency(suite, name));
        }
        tables.push(self.stalls(suite));
        let memory = self.table(
            suite,
            format!("{suite}: resident memory of the server, MiB"),
            &|m, _| (m.resident_bytes > 0.0).then(|| (number(m.resident_bytes / 1_048_576.0), Tone::Plain)),
        );
        tables.push(memory);
        let has_figures = |table: &Table| {
            table
                .rows
                .iter()
                .any(|(_, row)| row.iter().any(|figure| !matches!(&*figure.text, "-" | "0")))
        };
        tables.retain(has_figures);
        tables
    }

    /// Figures that only this suite has.
    pub fn figures(&self, suite: &str) -> Vec<Table> {
        if self.of_suite(suite).any(|m| m.suite == "concerns") {
            return vec![self.concerns(suite)];
        }
        let of_name = |name: &String| {
            self.table(suite, format!("{suite}: {name}"), &|m, _| {
                m.figure(name).map(|value| (number(value), Tone::Plain))
            })
        };
        self.figure_names(suite).iter().map(of_name).collect()
    }

    /// The names of such figures, in the order they came.
    pub fn figure_names(&self, suite: &str) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for (name, _) in self.of_suite(suite).flat_map(|m| &m.figures) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }

    /// What each write concern takes beside what arithmetic says, and what made the network longer.
    fn concerns(&self, suite: &str) -> Table {
        const FIGURES: [&str; 2] = ["median, µs", "what arithmetic says, µs"];
        let by: Vec<&str> = self
            .of_suite(suite)
            .filter_map(|m| m.config("networkDelayBy"))
            .collect();
        let by = match by.first() {
            Some(first) if by.iter().all(|other| other == first) => {
                format!("; the network is longer by the run's {first}")
            }
            Some(_) => "; the network is longer by netem in some runs, by the load generator in others".to_owned(),
            None => String::new(),
        };
        let labels = self.labels_of(suite);
        let figure = |m: Option<&Measurement>, name: &str| {
            let text = m.and_then(|m| m.figure(name)).map_or("-".to_owned(), number);
            Figure {
                text,
                tone: Tone::Plain,
            }
        };
        let row = |test: &(String, String)| {
            let of = |label: &String| {
                let m = self.middle(label, test);
                let ratio = m.and_then(|m| Some(m.figure(FIGURES[0])? / m.figure(FIGURES[1])?));
                let ratio = ratio.filter(|ratio| ratio.is_finite());
                let mut figures = FIGURES.map(|name| figure(m, name)).to_vec();
                let text = ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
                figures.push(Figure {
                    text,
                    tone: Tone::Plain,
                });
                figures
            };
            (test.1.clone(), labels.iter().flat_map(of).collect())
        };
        let is_shown = |test: &&(String, String)| test.0 == suite && !test.1.starts_with("load");
        let of_label = |label: &String| ["measured", "arithmetic", "of it"].map(|what| format!("{label}: {what}"));
        Table {
            title: format!("{suite}: median in µs beside what arithmetic says{by}"),
            columns: labels.iter().flat_map(of_label).collect(),
            rows: self.tests.iter().filter(is_shown).map(row).collect(),
        }
    }

    /// Samples in which next to nothing was done, and the longest answer.
    fn stalls(&self, suite: &str) -> Table {
        let title =
            format!("{suite}: samples that did less than a tenth of the middle one, of all; longest answer, ms");
        self.table(suite, title, &|m, _| {
            let (stalls, samples) = stalls(m)?;
            let longest = number(m.latency("max").unwrap_or(0.0) / 1e3);
            Some((format!("{stalls} of {samples}; {longest}"), Tone::Plain))
        })
    }

    /// What failed, what was measured before it was steady, and what else a reader has to know.
    pub fn remarks(&self) -> Vec<String> {
        let mut out = Vec::new();
        let all = || {
            self.tests
                .iter()
                .flat_map(|test| self.labels.iter().flat_map(|label| self.rounds(label, test)))
        };
        for m in all() {
            if let Some(failure) = &m.failure {
                out.push(format!("{}, {} {} failed: {failure}", m.label, m.suite, test_name(m)));
            }
        }
        for label in &self.labels {
            let is_early = |m: &&Measurement| m.label == *label && m.warmed > 0.0 && !m.is_steady;
            let mut tests: Vec<String> = all().filter(is_early).map(test_name).collect();
            tests.dedup();
            if !tests.is_empty() {
                out.push(format!(
                    "{label} was not steady when measuring began: {}",
                    tests.join(", ")
                ));
            }
        }
        let mut machines: Vec<String> = Vec::new();
        for m in all().filter(|m| !m.machine.is_empty()) {
            let facts = m.machine.iter().filter(|(name, _)| name != "fileSystem");
            let machine = facts.map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(", ");
            if !machines.contains(&machine) {
                machines.push(machine);
            }
        }
        if machines.len() > 1 {
            out.push(format!(
                "These results are of {} machines: {}",
                machines.len(),
                machines.join("; ")
            ));
        }
        out
    }
}

/// How many samples of how many, once warm, did less than [`STALL`] of the middle one; `None` when they are too few to tell.
fn stalls(m: &Measurement) -> Option<(usize, usize)> {
    let is_measured = |sample: &&Vec<f64>| sample.first().is_some_and(|at| *at > m.warmed);
    let rates: Vec<f64> = m
        .series
        .iter()
        .filter(is_measured)
        .filter_map(|sample| sample.get(1).copied())
        .collect();
    if rates.len() < SAMPLES_MIN {
        return None;
    }
    let mut sorted = rates.clone();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted[sorted.len() / 2];
    Some((rates.iter().filter(|rate| **rate < STALL * middle).count(), rates.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(label: &str, test: &str, config: &[(&str, &str)], figures: &[(&str, f64)]) -> Measurement {
        Measurement {
            label: label.into(),
            suite: "concerns".into(),
            test: test.into(),
            rate: 100.0,
            config: config
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into()))
                .collect(),
            figures: figures.iter().map(|(name, value)| ((*name).into(), *value)).collect(),
            ..Measurement::default()
        }
    }

    #[test]
    fn a_pause_is_a_stall_and_noise_is_none() {
        let mut m = measured("A", "insert", &[], &[]);
        m.warmed = 1.0;
        // The first sample belongs to warming up.
        let rates = [3.0, 100.0, 130.0, 2.0, 90.0, 60.0, 110.0, 0.0];
        m.series = (1..)
            .zip(rates)
            .map(|(at, rate)| vec![f64::from(at), rate, 0.0, 0.0, 0.0])
            .collect();
        assert_eq!(stalls(&m), Some((2, 7)));
        m.series.truncate(4);
        assert_eq!(stalls(&m), None);
    }

    #[test]
    fn concerns_stand_beside_arithmetic_by_delay() {
        let figures = [("median, µs", 300.0), ("what arithmetic says, µs", 250.0)];
        let slow = [
            ("networkDelayMicros", "1000"),
            ("networkDelayBy", "netem"),
            ("syncDelayMicros", "0"),
        ];
        let board = Board::new(vec![
            measured("A", "w:1", &[], &figures),
            measured("A", "w:1", &slow, &figures),
        ]);
        let tables = board.figures("concerns");
        assert!(tables[0].title.ends_with("the run's netem"), "{}", tables[0].title);
        let names: Vec<&str> = tables[0].rows.iter().map(|(test, _)| test.as_str()).collect();
        assert_eq!(names, ["w:1", "w:1, network +1000 µs"]);
        let texts: Vec<&str> = tables[0].rows[0].1.iter().map(|figure| figure.text.as_str()).collect();
        assert_eq!(texts, ["300.0", "250.0", "1.20"]);
    }

    #[test]
    fn what_cannot_be_compared_is_apart() {
        let of_rows = |label, rows| measured(label, "scan", &[("rows", rows), ("tables", "1")], &[]);
        let board = Board::new(vec![of_rows("A", "1000"), of_rows("B", "1000"), of_rows("A", "5000")]);
        assert_eq!(board.suites(), ["concerns, 1000 rows", "concerns, 5000 rows"]);
        assert_eq!(board.labels_of("concerns, 5000 rows"), ["A"]);
    }
}
