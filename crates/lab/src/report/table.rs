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

/// A measurement, and where reports show it.
struct Entry {
    section: String,
    test: String,
    m: Measurement,
}

/// Results by server: rounds of one test are one column's figure, their median by rate.
///
/// A section is a suite; one that ran with several numbers of rows, say, is several sections, because these cannot be compared.
pub struct Board {
    /// The servers, in the order they came.
    pub labels: Vec<String>,
    /// Sections and tests, in the order they came.
    pub tests: Vec<(String, String)>,
    all: Vec<Entry>,
}

impl Board {
    /// Of these results.
    pub fn new(all: Vec<Measurement>) -> Self {
        let sections = sections(&all);
        let (mut labels, mut tests) = (Vec::new(), Vec::new());
        let entry = |(m, section): (Measurement, String)| {
            let test = test_name(&m);
            let key = (section.clone(), test.clone());
            if !labels.contains(&m.label) {
                labels.push(m.label.clone());
            }
            if !tests.contains(&key) {
                tests.push(key);
            }
            Entry { section, test, m }
        };
        let all = all.into_iter().zip(sections).map(entry).collect();
        Self { labels, tests, all }
    }

    /// All rounds of a test on a server.
    pub fn rounds(&self, label: &str, test: &(String, String)) -> Vec<&Measurement> {
        let is_meant = |entry: &&Entry| entry.m.label == label && entry.section == test.0 && entry.test == test.1;
        let mut found: Vec<&Measurement> = self.all.iter().filter(is_meant).map(|entry| &entry.m).collect();
        found.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        found
    }

    /// The round in the middle.
    pub fn middle(&self, label: &str, test: &(String, String)) -> Option<&Measurement> {
        let rounds = self.rounds(label, test);
        rounds.get(rounds.len() / 2).copied()
    }

    /// The sections, in the order they came.
    pub fn suites(&self) -> Vec<String> {
        let mut suites: Vec<String> = Vec::new();
        for (suite, _) in &self.tests {
            if !suites.contains(suite) {
                suites.push(suite.clone());
            }
        }
        suites
    }

    /// The measurements of a section, in the order they came.
    pub fn of_suite<'b>(&'b self, suite: &'b str) -> impl Iterator<Item = &'b Measurement> {
        self.all
            .iter()
            .filter(move |entry| entry.section == suite)
            .map(|entry| &entry.m)
    }

    /// The servers that ran a section, in the order they came.
    pub fn labels_of(&self, suite: &str) -> Vec<String> {
        let ran = |label: &&String| self.of_suite(suite).any(|m| m.label == **label);
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
                if let Some(ratio) = self.ratio(suite, m).filter(|_| m.label != first.label) {
                    // What noise alone could have made has no colour.
                    let tone = match ratio.verdict() {
                        Verdict::Same if !is_void(m) => Tone::Plain,
                        _ => tone(ratio.mean),
                    };
                    let (low, high) = (bound(ratio.low), bound(ratio.high));
                    return Some((format!("{:.2} [{low}–{high}]", ratio.mean), tone));
                }
                let ratio = m.rate / first.rate;
                ratio.is_finite().then(|| (format!("{ratio:.2}"), tone(ratio)))
            },
        )
    }

    /// The ratio of the rounds of this test to those of the first server.
    fn ratio(&self, suite: &str, m: &Measurement) -> Option<Ratio> {
        let test = (suite.to_owned(), test_name(m));
        let ours = self.rounds(&m.label, &test);
        let firsts = self.rounds(&self.first(suite), &test);
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

    pub(super) fn first(&self, suite: &str) -> String {
        self.labels_of(suite).into_iter().next().unwrap_or_default()
    }

    /// A table of a section with one figure for each test and server; `-` where there is none.
    pub(super) fn table(&self, suite: &str, title: String, figure: Show<'_>) -> Table {
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

/// The test, with its clients when it is one of a series over them, and with the delays it had.
pub fn test_name(m: &Measurement) -> String {
    let mut name = m.test.clone();
    if m.config("scaleUp").is_some() {
        name = format!("{name} × {}", m.clients);
    }
    for (what, config) in [("network", "networkDelayMicros"), ("disk", "syncDelayMicros")] {
        if let Some(delay) = m.config(config).filter(|delay| *delay != "0") {
            name = format!("{name}, {what} +{delay} µs");
        }
    }
    name
}

/// The section of each measurement: its suite with the run's note, and what it was told where that is not the same for all of these.
fn sections(all: &[Measurement]) -> Vec<String> {
    const TOLD: [&str; 5] = ["rows", "tables", "rate", "durability", "clients"];
    let noted = |m: &Measurement| match m.config("note") {
        Some(note) => format!("{}, {note}", m.suite),
        None => m.suite.clone(),
    };
    let told = |m: &Measurement, what: &str| match what {
        // Loading takes one client, and a series has its clients in the names of its tests.
        "clients" if m.config("scaleUp").is_some() || m.test == "load" => None,
        "clients" => Some(m.clients.to_string()),
        _ => m.config(what).map(str::to_owned),
    };
    let section = |m: &Measurement| {
        let name = noted(m);
        let differs = |what: &&str| {
            let mine = told(m, what);
            let mut others = all
                .iter()
                .filter(|other| noted(other) == name)
                .filter_map(|other| told(other, what));
            mine.is_some_and(|mine| others.any(|other| other != mine))
        };
        let of = |what: &str| match what {
            "durability" => told(m, what).unwrap_or_default(),
            _ => format!("{} {what}", told(m, what).unwrap_or_default()),
        };
        let parts: Vec<String> = TOLD.iter().filter(|what| differs(what)).map(|what| of(what)).collect();
        std::iter::once(name.clone())
            .chain(parts)
            .collect::<Vec<_>>()
            .join(", ")
    };
    all.iter().map(section).collect()
}

/// An end of an interval; two rounds that differ much leave one that is too wide for digits to mean anything.
fn bound(ratio: f64) -> String {
    match ratio {
        _ if ratio < 0.01 => "<0.01".into(),
        _ if ratio >= 100.0 => ">100".into(),
        _ => format!("{ratio:.2}"),
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
        assert_eq!([1e-9, 0.97, 5e9].map(bound), ["<0.01", "0.97", ">100"]);
    }
}
