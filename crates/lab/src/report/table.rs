//! The tables of reports: a row for each test, a column for each server.

use crate::results::Measurement;
use crate::statistics::ratio::{Ratio, Verdict};

/// How a figure is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Nothing to see.
    Plain,
    /// Below 0.95 of the first.
    MuchWorse,
    /// Below 0.97.
    Worse,
    /// Above 1.03.
    Better,
    /// Above 1.05.
    MuchBetter,
    /// Its rate beside it was missed, or it failed: it counts for nothing.
    Void,
}

impl Tone {
    /// Of a ratio where more is better.
    pub fn of_ratio(ratio: f64) -> Self {
        match ratio {
            _ if ratio < 0.95 => Self::MuchWorse,
            _ if ratio < 0.97 => Self::Worse,
            _ if ratio > 1.05 => Self::MuchBetter,
            _ if ratio > 1.03 => Self::Better,
            _ => Self::Plain,
        }
    }
}

/// A figure of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// As it is printed.
    pub text: String,
    /// Its colour.
    pub tone: Tone,
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// What it shows, with its unit.
    pub title: String,
    /// The columns, without that of the tests.
    pub columns: Vec<String>,
    /// Test and figures.
    pub rows: Vec<(String, Vec<Figure>)>,
}

/// A figure of a measurement and its tone; the first server's measurement of the same test is what it may be compared with.
type Show<'s> = &'s dyn Fn(&Measurement, Option<&Measurement>) -> Option<(String, Tone)>;

/// Results by server: rounds of one test are one column's figure, their median by rate.
pub struct Board {
    /// The servers, in the order they came.
    pub labels: Vec<String>,
    /// Suites and tests, in the order they came.
    pub tests: Vec<(String, String)>,
    all: Vec<Measurement>,
}

impl Board {
    /// Of these results.
    pub fn new(all: Vec<Measurement>) -> Self {
        let (mut labels, mut tests) = (Vec::new(), Vec::new());
        for m in &all {
            let test = (m.suite.clone(), test_name(m));
            if !labels.contains(&m.label) {
                labels.push(m.label.clone());
            }
            if !tests.contains(&test) {
                tests.push(test);
            }
        }
        Self { labels, tests, all }
    }

    /// All rounds of a test on a server.
    pub fn rounds(&self, label: &str, test: &(String, String)) -> Vec<&Measurement> {
        let mut found: Vec<&Measurement> = self
            .all
            .iter()
            .filter(|m| m.label == label && m.suite == test.0 && test_name(m) == test.1)
            .collect();
        found.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        found
    }

    /// The round in the middle.
    pub fn middle(&self, label: &str, test: &(String, String)) -> Option<&Measurement> {
        let rounds = self.rounds(label, test);
        rounds.get(rounds.len() / 2).copied()
    }

    /// The suites, in the order they came.
    pub fn suites(&self) -> Vec<String> {
        let mut suites: Vec<String> = Vec::new();
        for (suite, _) in &self.tests {
            if !suites.contains(suite) {
                suites.push(suite.clone());
            }
        }
        suites
    }

    /// The servers that ran a suite, in the order they came.
    pub fn labels_of(&self, suite: &str) -> Vec<String> {
        let ran = |label: &&String| self.all.iter().any(|m| m.label == **label && m.suite == suite);
        self.labels.iter().filter(ran).cloned().collect()
    }

    /// Throughput of each test of `suite`.
    pub fn throughput(&self, suite: &str) -> Table {
        self.table(
            suite,
            format!("{suite}: throughput, operations or rows a second"),
            &|m, _| {
                let tone = if is_void(m) { Tone::Void } else { Tone::Plain };
                Some((number(m.rate), tone))
            },
        )
    }

    /// The same relative to the first server; of several rounds the mean ratio of those that were neighbours, and where it lies with 95 %
    /// confidence.
    pub fn relative(&self, suite: &str) -> Table {
        self.table(
            suite,
            format!("{suite}: throughput relative to {}", self.first(suite)),
            &|m, first| {
                let first = first?;
                let tone = |ratio| if is_void(m) { Tone::Void } else { Tone::of_ratio(ratio) };
                if let Some(ratio) = self.ratio(m).filter(|_| m.label != first.label) {
                    // What noise alone could have made has no colour.
                    let tone = match ratio.verdict() {
                        Verdict::Same if !is_void(m) => Tone::Plain,
                        _ => tone(ratio.mean),
                    };
                    return Some((format!("{:.2} [{:.2}–{:.2}]", ratio.mean, ratio.low, ratio.high), tone));
                }
                let ratio = m.rate / first.rate;
                ratio.is_finite().then(|| (format!("{ratio:.2}"), tone(ratio)))
            },
        )
    }

    /// The ratio of the rounds of this test to those of the first server.
    fn ratio(&self, m: &Measurement) -> Option<Ratio> {
        let test = (m.suite.clone(), test_name(m));
        let ours = self.rounds(&m.label, &test);
        let firsts = self.rounds(&self.first(&m.suite), &test);
        let pair = |b: &&Measurement| {
            let a = firsts.iter().find(|a| a.round == b.round)?;
            Some((a.rate, b.rate))
        };
        Ratio::of(&ours.iter().filter_map(pair).collect::<Vec<_>>())
    }

    /// Rates that had to be kept beside the steps of `suite`.
    pub fn background(&self, suite: &str) -> Table {
        self.table(
            suite,
            format!("{suite}: background rate reached, of that wanted"),
            &|m, _| {
                let sla = m.sla?;
                let tone = if sla.is_kept() { Tone::Plain } else { Tone::Void };
                Some((format!("{} of {}", number(sla.reached), number(sla.wanted)), tone))
            },
        )
    }

    /// What `who` used of `what` for one unit of work, times `factor`.
    pub fn used(&self, suite: &str, who: &str, what: &str, title: &str, factor: f64) -> Table {
        self.table(suite, format!("{suite}: {title}"), &|m, first| {
            let value = m.used(who, what)?;
            let base = first.and_then(|first| first.used(who, what)).filter(|base| *base > 0.0);
            let tone = match base {
                // What is used is better when it is less.
                Some(base) if value > 0.0 && !is_void(m) => Tone::of_ratio(base / value),
                _ => Tone::Plain,
            };
            let relative = base.map_or(String::new(), |base| format!(" ({:.2})", value / base));
            Some((format!("{}{relative}", number(value * factor)), tone))
        })
    }

    /// Response times of `name`, in µs.
    pub fn latency(&self, suite: &str, name: &str) -> Table {
        self.table(suite, format!("{suite}: response time, {name}, µs"), &|m, _| {
            Some((
                number(m.latency(name)?),
                if is_void(m) { Tone::Void } else { Tone::Plain },
            ))
        })
    }

    /// Figures that only this suite has.
    pub fn figures(&self, suite: &str) -> Vec<Table> {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in self.all.iter().filter(|m| m.suite == suite).flat_map(|m| &m.figures) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        let of_name = |name: &&str| {
            self.table(suite, format!("{suite}: {name}"), &|m, _| {
                let (_, value) = m.figures.iter().find(|(other, _)| other == name)?;
                Some((number(*value), Tone::Plain))
            })
        };
        names.iter().map(of_name).collect()
    }

    /// All tables of a suite that have something in them.
    pub fn tables(&self, suite: &str) -> Vec<Table> {
        let used = |who: &str, what: &str, title: &str, factor: f64| self.used(suite, who, what, title, factor);
        let mut tables = vec![self.throughput(suite)];
        if self.labels_of(suite).len() > 1 {
            tables.push(self.relative(suite));
        }
        tables.push(self.background(suite));
        tables.extend(self.figures(suite));
        tables.push(used(
            "server",
            "cpuMicros",
            "server CPU, µs for each operation (relative to the first)",
            1.0,
        ));
        tables.push(used(
            "client",
            "cpuMicros",
            "client CPU, µs for each operation (relative to the first)",
            1.0,
        ));
        tables.push(used(
            "host",
            "switches",
            "context switches of the host for each operation (relative)",
            1.0,
        ));
        tables.push(used(
            "server",
            "faultsMinor",
            "page faults of the server for each operation (relative)",
            1.0,
        ));
        tables.push(used(
            "server",
            "readBytes",
            "KB the server read from storage for each operation (relative)",
            1.0 / 1024.0,
        ));
        tables.push(used(
            "server",
            "writeBytes",
            "KB the server wrote for each operation (relative)",
            1.0 / 1024.0,
        ));
        tables.push(used(
            "host",
            "diskReads",
            "reads of the host's disks for each operation (relative)",
            1.0,
        ));
        tables.push(used(
            "host",
            "diskWrites",
            "writes of the host's disks for each operation (relative)",
            1.0,
        ));
        tables.push(used(
            "host",
            "diskFlushes",
            "flushes of the host's disks for each operation (relative)",
            1.0,
        ));
        for name in ["p50", "p99", "p999", "max"] {
            tables.push(self.latency(suite, name));
        }
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

    /// What failed, and what was measured before it was steady.
    pub fn remarks(&self) -> Vec<String> {
        let mut out = Vec::new();
        for m in &self.all {
            if let Some(failure) = &m.failure {
                out.push(format!("{}, {} {} failed: {failure}", m.label, m.suite, test_name(m)));
            }
        }
        for label in &self.labels {
            let is_early = |m: &&Measurement| m.label == *label && m.warmed > 0.0 && !m.is_steady;
            let mut tests: Vec<String> = self.all.iter().filter(is_early).map(test_name).collect();
            tests.dedup();
            if !tests.is_empty() {
                out.push(format!(
                    "{label} was not steady when measuring began: {}",
                    tests.join(", ")
                ));
            }
        }
        out
    }

    fn first(&self, suite: &str) -> String {
        self.labels_of(suite).into_iter().next().unwrap_or_default()
    }

    fn table(&self, suite: &str, title: String, figure: Show<'_>) -> Table {
        let (labels, name_of_first) = (self.labels_of(suite), self.first(suite));
        let row = |test: &(String, String)| {
            let first = self.middle(&name_of_first, test);
            let figure = |label: &String| {
                let found = self.middle(label, test).and_then(|m| figure(m, first));
                let (text, tone) = found.unwrap_or_else(|| ("-".to_owned(), Tone::Plain));
                Figure { text, tone }
            };
            (test.1.clone(), labels.iter().map(figure).collect())
        };
        let rows = self.tests.iter().filter(|(of, _)| of == suite).map(row).collect();
        Table {
            title,
            rows,
            columns: labels,
        }
    }
}

/// The test, with its clients when it is one of a series over them.
pub fn test_name(m: &Measurement) -> String {
    match m.config.iter().any(|(name, _)| name == "scaleUp") {
        true => format!("{} × {}", m.test, m.clients),
        false => m.test.clone(),
    }
}

/// Whether its rate counts for nothing.
pub fn is_void(m: &Measurement) -> bool {
    m.failure.is_some() || m.sla.is_some_and(|sla| !sla.is_kept())
}

/// Three digits that matter, and no more than one behind the point of large numbers.
pub fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        0.0..0.1 => format!("{value:.4}"),
        0.1..1.0 => format!("{value:.3}"),
        1.0..10.0 => format!("{value:.2}"),
        10.0..1_000.0 => format!("{value:.1}"),
        _ => {
            let digits = format!("{value:.0}");
            let mut out = String::new();
            for (i, digit) in digits.chars().enumerate() {
                if i > 0 && (digits.len() - i) % 3 == 0 && !out.ends_with('-') {
                    out.push(',');
                }
                out.push(digit);
            }
            out
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Sla;

    fn measured(label: &str, rate: f64) -> Measurement {
        Measurement {
            label: label.into(),
            suite: "s".into(),
            test: "t".into(),
            rate,
            ..Measurement::default()
        }
    }

    #[test]
    fn the_middle_round_is_shown_and_compared() {
        let mut late = measured("B", 50.0);
        late.test = "u".into();
        late.sla = Some(Sla {
            wanted: 100.0,
            reached: 90.0,
        });
        let all = vec![
            measured("A", 90.0),
            measured("A", 100.0),
            measured("A", 400.0),
            measured("B", 94.0),
            late,
        ];
        let board = Board::new(all);
        let relative = board.relative("s");
        assert_eq!(relative.columns, ["A", "B"]);
        let texts: Vec<&str> = relative.rows[0].1.iter().map(|figure| figure.text.as_str()).collect();
        assert_eq!(texts, ["1.00", "0.94"]);
        assert_eq!(relative.rows[0].1[1].tone, Tone::MuchWorse);
        assert_eq!(board.throughput("s").rows[1].1[1].tone, Tone::Void);
        assert_eq!(board.background("s").rows[1].1[1].text, "90.0 of 100.0");
    }

    #[test]
    fn tones_and_numbers() {
        let tones = [0.94, 0.96, 1.0, 1.04, 1.06].map(Tone::of_ratio);
        assert_eq!(
            tones,
            [
                Tone::MuchWorse,
                Tone::Worse,
                Tone::Plain,
                Tone::Better,
                Tone::MuchBetter
            ]
        );
        let texts = [0.0, 0.01234, 0.5, 3.219, 512.34, 1234567.8].map(number);
        assert_eq!(texts, ["0", "0.0123", "0.500", "3.22", "512.3", "1,234,568"]);
    }
}
