//! Results: one JSON document on a line for each test, appended as soon as it was measured.

use crate::drive::{Outcome, Sample};
use crate::measure::histogram::Latencies;
use crate::measure::host::{file_system, machine};
use crate::target::Target;
use nestor_model::date::format_iso;
use nestor_model::extjson::{self, Form};
use nestor_model::{Document, Value, ValueRef, doc};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// The version of the format; results of another one are refused.
pub const FORMAT: i64 = 1;

/// A rate that had to be kept beside what was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sla {
    /// Work a second that was wanted.
    pub wanted: f64,
    /// Work a second that was done.
    pub reached: f64,
}

impl Sla {
    /// A rate within a twentieth of what was wanted is kept.
    pub fn is_kept(&self) -> bool {
        self.reached >= 0.95 * self.wanted
    }
}

/// Names and values that belong together, in order.
pub type Pairs<T> = Vec<(String, T)>;

/// What one test on one server came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measurement {
    /// The server, as reports call it.
    pub label: String,
    /// The workload.
    pub suite: String,
    /// The test or step of it.
    pub test: String,
    /// Which round of several, from 0.
    pub round: i64,
    /// Clients.
    pub clients: i64,
    /// What the workload was told: rows, seed, durability …
    pub config: Pairs<String>,
    /// The server: version, program, its arguments, settings that decide what it waits for and keeps in memory.
    pub server: Pairs<String>,
    /// The machine, and the file system of the server's data.
    pub machine: Pairs<String>,
    /// Operations while measured.
    pub operations: i64,
    /// What they count as: rows, where an operation works on many.
    pub work: i64,
    /// How long it was measured.
    pub seconds: f64,
    /// Work a second.
    pub rate: f64,
    /// Whether the series had levelled when measuring began.
    pub is_steady: bool,
    /// Seconds of warming up.
    pub warmed: f64,
    /// p50, p99, p999 and max, in µs.
    pub latency: Pairs<f64>,
    /// Response times in powers of two from 256 µs.
    pub buckets: Vec<f64>,
    /// `server`, `client` and `host`: what each used for one unit of work.
    pub used: Pairs<Pairs<f64>>,
    /// Resident memory of the server at the end, in bytes.
    pub resident_bytes: f64,
    /// Per sample: seconds, rate, longest answer in µs, resident bytes, page faults a second.
    pub series: Vec<Vec<f64>>,
    /// The rate that had to be kept beside it.
    pub sla: Option<Sla>,
    /// Other figures of this workload.
    pub figures: Pairs<f64>,
    /// Samples of the profile by stack, frames from the outermost, joined by semicolons.
    pub profile: Pairs<f64>,
    /// Of a profile that is kept without its stacks: the part of all samples in each function and in what it calls.
    pub functions: Pairs<f64>,
    /// Why it ended too early.
    pub failure: Option<String>,
}

impl Measurement {
    /// What group `group` of `outcome` came to.
    pub fn of(suite: &str, test: &str, outcome: &Outcome, group: usize) -> Self {
        let part = &outcome.groups[group];
        let work = (part.work as f64).max(1.0);
        let per = |fields: &[(&str, f64)]| {
            fields
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value / work))
                .collect()
        };
        let spent = &outcome.spent;
        let mut used: Pairs<Pairs<f64>> = Vec::new();
        if let Some(server) = &spent.server {
            used.push(("server".into(), per(&server.fields())));
        }
        used.push(("client".into(), per(&spent.client.fields())));
        used.push(("host".into(), per(&spent.host.fields())));
        let latencies: &Latencies = &part.latencies;
        let latency = match latencies.count() {
            0 => Vec::new(),
            _ => vec![
                ("p50".to_owned(), latencies.quantile_us(0.5)),
                ("p99".to_owned(), latencies.quantile_us(0.99)),
                ("p999".to_owned(), latencies.quantile_us(0.999)),
                ("max".to_owned(), latencies.max_us()),
            ],
        };
        let line = |s: &Sample| {
            let rate = s.rates.get(group).copied().unwrap_or(0.0);
            vec![s.at, rate, s.longest_us, s.resident_bytes, s.faults]
        };
        Self {
            suite: suite.to_owned(),
            test: test.to_owned(),
            operations: part.operations as i64,
            work: part.work as i64,
            seconds: spent.seconds,
            rate: outcome.rate(group),
            is_steady: outcome.is_steady,
            warmed: outcome.warmed,
            latency,
            buckets: latencies.buckets().iter().map(|count| *count as f64).collect(),
            used,
            resident_bytes: outcome.samples.last().map_or(0.0, |s| s.resident_bytes),
            series: outcome.samples.iter().map(line).collect(),
            failure: outcome.failure.clone(),
            ..Self::default()
        }
    }

    /// A test that failed before anything of it was measured.
    pub fn failed(suite: &str, test: &str, reason: String) -> Self {
        Self {
            suite: suite.to_owned(),
            test: test.to_owned(),
            failure: Some(reason),
            ..Self::default()
        }
    }

    /// What `who` used of `what` for one unit of work; `switches` of a process are those of both kinds.
    pub fn used(&self, who: &str, what: &str) -> Option<f64> {
        let (_, fields) = self.used.iter().find(|(name, _)| name == who)?;
        if what == "switches" && who != "host" {
            return Some(self.used(who, "switchesVoluntary")? + self.used(who, "switchesForced")?);
        }
        fields.iter().find(|(name, _)| name == what).map(|(_, value)| *value)
    }

    /// What the workload was told of `name`.
    pub fn config(&self, name: &str) -> Option<&str> {
        self.config
            .iter()
            .find(|(other, _)| other == name)
            .map(|(_, value)| value.as_str())
    }

    /// The figure of that name.
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.figures
            .iter()
            .find(|(other, _)| other == name)
            .map(|(_, value)| *value)
    }

    /// The response time of that name, in µs.
    pub fn latency(&self, name: &str) -> Option<f64> {
        self.latency
            .iter()
            .find(|(other, _)| other == name)
            .map(|(_, value)| *value)
    }

    /// As one line of JSON, without its end.
    pub fn to_line(&self) -> String {
        let mut out = doc! {
            "format": FORMAT,
            "label": self.label.as_str(),
            "suite": self.suite.as_str(),
            "test": self.test.as_str(),
            "round": self.round,
            "clients": self.clients,
            "config": texts(&self.config),
            "server": texts(&self.server),
            "machine": texts(&self.machine),
            "operations": self.operations,
            "work": self.work,
            "seconds": self.seconds,
            "rate": self.rate,
            "steady": self.is_steady,
            "warmed": self.warmed,
            "latency": numbers(&self.latency),
            "buckets": list(&self.buckets),
        };
        let mut used = Document::default();
        for (who, fields) in &self.used {
            used.push(who.as_str(), numbers(fields));
        }
        out.push("used", used);
        out.push("residentBytes", rounded(self.resident_bytes));
        out.push(
            "series",
            self.series.iter().map(|sample| list(sample)).collect::<Vec<Value>>(),
        );
        if let Some(sla) = &self.sla {
            out.push("sla", doc! { "wanted": sla.wanted, "reached": sla.reached });
        }
        if !self.figures.is_empty() {
            out.push("figures", numbers(&self.figures));
        }
        if !self.profile.is_empty() {
            out.push("profile", numbers(&self.profile));
        }
        if !self.functions.is_empty() {
            out.push("functions", numbers(&self.functions));
        }
        if let Some(failure) = &self.failure {
            out.push("failure", failure.as_str());
        }
        extjson::to_string(&out, Form::Relaxed)
    }

    /// Reads a line; an error says what is wrong with it.
    pub fn from_line(line: &str) -> Result<Self, String> {
        let document = extjson::parse_document(line).map_err(|error| error.to_string())?;
        match document.get("format").and_then(as_number) {
            Some(format) if format == FORMAT as f64 => {}
            Some(format) => return Err(format!("it is of format {format}, and this program reads {FORMAT}")),
            None => return Err("it is no result of nestor bench".into()),
        }
        let text = |name: &str| {
            let text = document.get(name).and_then(ValueRef::as_str).map(str::to_owned);
            text.ok_or_else(|| format!("its {name} is no text"))
        };
        let number = |name: &str| {
            document
                .get(name)
                .and_then(as_number)
                .ok_or_else(|| format!("its {name} is no number"))
        };
        let pairs = |name: &str| document.get(name).map(number_pairs).unwrap_or_default();
        let used = document.get("used").into_iter().flat_map(fields);
        let series = document.get("series").and_then(ValueRef::as_array);
        Ok(Self {
            label: text("label")?,
            suite: text("suite")?,
            test: text("test")?,
            round: number("round")? as i64,
            clients: number("clients")? as i64,
            config: document.get("config").map(text_pairs).unwrap_or_default(),
            server: document.get("server").map(text_pairs).unwrap_or_default(),
            machine: document.get("machine").map(text_pairs).unwrap_or_default(),
            operations: number("operations")? as i64,
            work: number("work")? as i64,
            seconds: number("seconds")?,
            rate: number("rate")?,
            is_steady: matches!(document.get("steady"), Some(ValueRef::Bool(true))),
            warmed: number("warmed")?,
            latency: pairs("latency"),
            buckets: document.get("buckets").map(number_list).unwrap_or_default(),
            used: used.map(|(who, value)| (who.to_owned(), number_pairs(value))).collect(),
            resident_bytes: number("residentBytes")?,
            series: series.into_iter().flat_map(|all| all.iter()).map(number_list).collect(),
            sla: document.get("sla").map(|sla| {
                let sla = number_pairs(sla);
                let field = |name: &str| {
                    sla.iter()
                        .find(|(other, _)| other == name)
                        .map_or(0.0, |(_, value)| *value)
                };
                Sla {
                    wanted: field("wanted"),
                    reached: field("reached"),
                }
            }),
            figures: pairs("figures"),
            profile: pairs("profile"),
            functions: pairs("functions"),
            failure: text("failure").ok(),
        })
    }
}

/// What is true of all tests on a server.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    server: Pairs<String>,
    machine: Pairs<String>,
}

impl Surroundings {
    /// Asks the server and the machine.
    pub fn of(target: &Target) -> Result<Self, String> {
        let mut server = vec![("version".to_owned(), target.version()?)];
        let mut machine: Pairs<String> = machine()
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        if let Some(processes) = target.processes() {
            server.push(("arguments".into(), processes.command_line()));
            if let Some(program) = processes.program() {
                server.push(("program".into(), program.display().to_string()));
                // Builds of one version differ in these.
                if let Ok(meta) = std::fs::metadata(&program) {
                    server.push(("programBytes".into(), meta.len().to_string()));
                    let built = meta
                        .modified()
                        .ok()
                        .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
                    let built = built.map_or(String::new(), |since| format_iso(since.as_millis() as i64));
                    server.push(("programBuilt".into(), built));
                }
            }
            if let Some(folder) = processes.data_folder() {
                machine.push(("fileSystem".into(), file_system(&folder)));
            }
        }
        server.push(("durability".into(), target.commits().into()));
        server.extend(target.settings());
        Ok(Self { server, machine })
    }

    /// Writes them into a measurement.
    pub fn describe(&self, measurement: &mut Measurement) {
        measurement.server.clone_from(&self.server);
        measurement.machine.clone_from(&self.machine);
    }
}

/// The file that results are appended to.
pub struct Sink {
    file: File,
    path: String,
}

impl Sink {
    /// Opens it, and makes it when it is not there.
    pub fn open(path: &Path) -> Result<Self, String> {
        let name = path.display().to_string();
        let file = OpenOptions::new().create(true).append(true).open(path);
        Ok(Self {
            file: file.map_err(|error| format!("{name}: {error}"))?,
            path: name,
        })
    }

    /// Appends one; it is in the file when this returns.
    pub fn write(&mut self, measurement: &Measurement) -> Result<(), String> {
        let line = measurement.to_line() + "\n";
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.flush());
        written.map_err(|error| format!("{}: {error}; what was measured before is in it", self.path))
    }
}

/// The results of a file, and what was left out of it.
pub fn read(path: &Path) -> Result<(Vec<Measurement>, Vec<String>), String> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
    let (mut all, mut left_out) = (Vec::new(), Vec::new());
    let is_whole = text.ends_with('\n');
    let lines: Vec<&str> = text.lines().collect();
    for (number, line) in lines.iter().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match Measurement::from_line(line) {
            Ok(measurement) => all.push(measurement),
            // A run that was killed or whose disk was full may have cut its last line.
            Err(error) if number + 1 == lines.len() && !is_whole && !error.contains("format") => {
                left_out.push(format!("{name}: the last line is cut off and was left out"));
            }
            Err(error) => return Err(format!("{name}, line {}: {error}", number + 1)),
        }
    }
    if all.is_empty() {
        return Err(format!("{name} has no results"));
    }
    Ok((all, left_out))
}

fn rounded(number: f64) -> f64 {
    if !number.is_finite() {
        return 0.0;
    }
    // Six digits: more are noise, and lines get long.
    let digits = 10f64.powi(5 - number.abs().max(1e-9).log10().floor() as i32);
    (number * digits).round() / digits
}

fn texts(pairs: &[(String, String)]) -> Document {
    let mut out = Document::default();
    for (name, value) in pairs {
        out.push(name.as_str(), value.as_str());
    }
    out
}

fn numbers(pairs: &[(String, f64)]) -> Document {
    let mut out = Document::default();
    for (name, value) in pairs {
        out.push(name.as_str(), rounded(*value));
    }
    out
}

fn list(numbers: &[f64]) -> Value {
    Value::from(
        numbers
            .iter()
            .map(|number| Value::Double(rounded(*number)))
            .collect::<Vec<_>>(),
    )
}

fn as_number(value: ValueRef<'_>) -> Option<f64> {
    match value {
        ValueRef::Int32(number) => Some(f64::from(number)),
        ValueRef::Int64(number) => Some(number as f64),
        ValueRef::Double(number) => Some(number),
        _ => None,
    }
}

fn fields(value: ValueRef<'_>) -> impl Iterator<Item = (&str, ValueRef<'_>)> {
    value.as_document().into_iter().flat_map(|document| document.iter())
}

fn text_pairs(value: ValueRef<'_>) -> Pairs<String> {
    fields(value)
        .filter_map(|(name, value)| Some((name.to_owned(), value.as_str()?.to_owned())))
        .collect()
}

fn number_pairs(value: ValueRef<'_>) -> Pairs<f64> {
    fields(value)
        .filter_map(|(name, value)| Some((name.to_owned(), as_number(value)?)))
        .collect()
}

fn number_list(value: ValueRef<'_>) -> Vec<f64> {
    value
        .as_array()
        .into_iter()
        .flat_map(|all| all.iter())
        .filter_map(as_number)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Measurement {
        Measurement {
            label: "A".into(),
            suite: "micro".into(),
            test: "point-query".into(),
            clients: 2,
            rate: 1234.5,
            config: vec![("rows".into(), "1000".into())],
            latency: vec![("p50".into(), 81.5)],
            buckets: vec![1.0, 2.0],
            used: vec![("server".into(), vec![("cpuMicros".into(), 9.5)])],
            series: vec![vec![1.0, 1000.0, 300.0, 1e8, 2.0]],
            sla: Some(Sla {
                wanted: 100.0,
                reached: 94.0,
            }),
            failure: Some("the server closed the connection".into()),
            ..Measurement::default()
        }
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let line = example().to_line();
        assert!(!line.contains('\n'));
        assert_eq!(Measurement::from_line(&line), Ok(example()));
        assert!(!example().sla.expect("one").is_kept());
    }

    #[test]
    fn other_lines_are_refused() {
        let other = example()
            .to_line()
            .replace("\"format\":1", "\"format\":9")
            .replace("\"format\": 1", "\"format\": 9");
        let reason = Measurement::from_line(&other).expect_err("another format");
        assert!(reason.contains("format 9"), "{reason}");
        assert!(
            Measurement::from_line("{\"a\": 1}")
                .expect_err("no result")
                .contains("no result")
        );
        assert!(Measurement::from_line("{").is_err());
    }

    #[test]
    fn a_line_that_was_cut_is_left_out() {
        let folder = std::env::temp_dir().join(format!("nestor-lab-results-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("r.json");
        let line = example().to_line();
        std::fs::write(&path, format!("{line}\n{}", &line[..100])).expect("a file");
        let (all, left_out) = read(&path).expect("results");
        assert_eq!((all.len(), left_out.len()), (1, 1));
        std::fs::write(&path, format!("{}\n{line}\n", &line[..100])).expect("a file");
        assert!(read(&path).expect_err("a broken line").contains("line 1"));
        assert!(read(&folder.join("none")).is_err());
        std::fs::remove_dir_all(&folder).expect("it is ours");
    }
}
