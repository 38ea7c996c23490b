//! `nestor sql`: a shell for SQL, at a terminal or for files, of any server that speaks PostgreSQL's protocol.

mod backslash;
mod editor;
mod statements;
mod table;
mod watch;

pub use table::Format;

use crate::client::ClientError;
use crate::client::postgres::{Event, Postgres, Report, Target};
use clap::Args;
use editor::Editor;
use statements::Splitter;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, IsTerminal as _, Read as _, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;
use table::Printer;
use watch::Watch;

/// Arguments of `nestor sql`.
#[derive(Args, Debug)]
pub struct SqlArgs {
    /// Server, with the user to log in as and the database; sslmode=verify-full and sslrootcert for an encrypted connection
    #[arg(long, default_value = "postgres://127.0.0.1:5432/test")]
    pub uri: String,
    /// File whose first line is the password. Without it the password is that of the URI or of the environment (NESTOR_PASSWORD), else it
    /// is asked for
    #[arg(long = "passwordFile", value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// Statements to run instead of asking for some; may be given several times
    #[arg(long, short, value_name = "SQL")]
    pub command: Vec<String>,
    /// How rows are printed
    #[arg(long, value_enum, default_value = "table")]
    pub format: Format,
    /// Go on after a statement that failed
    #[arg(long = "keepGoing")]
    pub keep_going: bool,
    /// Files of statements to run instead of asking for some; `-` is standard input
    #[arg(value_name = "FILE", conflicts_with = "command")]
    pub files: Vec<PathBuf>,
}

/// What happens to what is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// It was carried out.
    Done,
    /// The server refused it, and said so.
    Failed,
    /// The shell is to end.
    Quit,
}

/// A shell that is connected.
struct Shell {
    target: Target,
    server: Postgres,
    watch: Watch,
    format: Format,
    /// Tell how long statements take.
    timing: bool,
    /// The server's transaction: `I`, `T` or `E`.
    status: u8,
    is_interactive: bool,
    /// A statement that fails does not end the file that it stands in.
    keep_going: bool,
}

/// Connects, and runs what is given or asked for. The error is for people to read.
pub fn run(args: &SqlArgs) -> Result<(), String> {
    let mut target: Target = args.uri.parse().map_err(|error: ClientError| error.to_string())?;
    if args.password_file.is_some() || target.password.is_none() && std::env::var_os("NESTOR_PASSWORD").is_some() {
        target.ask_password(args.password_file.as_deref())?;
    }
    let server = match Postgres::connect(&target) {
        Err(ClientError::Uri(_)) if target.password.is_none() => {
            target.ask_password(None)?;
            Postgres::connect(&target)
        }
        connected => connected,
    }
    .map_err(|error| error.to_string())?;
    let is_interactive = args.command.is_empty() && args.files.is_empty() && io::stdin().is_terminal();
    let mut shell = Shell {
        watch: Watch::start(io::stderr().is_terminal() && io::stdout().is_terminal())?,
        target,
        server,
        format: args.format,
        timing: false,
        status: b'I',
        is_interactive,
        keep_going: args.keep_going || is_interactive,
    };
    let outcome = if is_interactive {
        shell.talk()?
    } else if !args.command.is_empty() {
        shell.each(&args.command, |shell, text| shell.lines(text.as_bytes()))?
    } else if args.files.is_empty() {
        shell.file(Path::new("-"))?
    } else {
        shell.each(&args.files, |shell, file| shell.file(file))?
    };
    match outcome {
        Outcome::Failed if !is_interactive => Err("a statement failed".to_owned()),
        _ => Ok(()),
    }
}

impl Shell {
    /// Asks at the terminal until its user has enough.
    fn talk(&mut self) -> Result<Outcome, String> {
        let version = self.server.version.clone();
        println!(
            "{}, PostgreSQL's protocol {version}. \\? for help, \\q to end.",
            self.target.host
        );
        let mut editor = Editor::new()?;
        let mut splitter = Splitter::default();
        loop {
            let prompt = self.prompt(&splitter);
            let Some(line) = editor.line(&prompt, self)? else {
                if splitter.is_empty() {
                    return Ok(Outcome::Done);
                }
                // Ctrl-C forgets what was begun.
                splitter = Splitter::default();
                continue;
            };
            if self.line(&line, &mut splitter)? == Outcome::Quit {
                return Ok(Outcome::Quit);
            }
        }
    }

    /// Runs texts one after the other, up to the first that fails unless the shell is to go on.
    fn each<T>(
        &mut self,
        texts: &[T],
        mut run: impl FnMut(&mut Self, &T) -> Result<Outcome, String>,
    ) -> Result<Outcome, String> {
        let mut outcome = Outcome::Done;
        for text in texts {
            match run(self, text)? {
                Outcome::Done => {}
                Outcome::Failed if self.keep_going => outcome = Outcome::Failed,
                ended => return Ok(ended),
            }
        }
        Ok(outcome)
    }

    fn prompt(&self, splitter: &Splitter) -> String {
        let mark = match self.status {
            b'T' => "*",
            b'E' => "!",
            _ => "",
        };
        format!("{}{}{mark}> ", self.target.database, splitter.waits_for())
    }

    /// Runs a file. Statements end with it.
    fn file(&mut self, path: &Path) -> Result<Outcome, String> {
        if path == Path::new("-") {
            return self.lines(io::stdin().lock());
        }
        let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
        self.lines(BufReader::new(file))
    }

    fn lines(&mut self, lines: impl BufRead) -> Result<Outcome, String> {
        let mut splitter = Splitter::default();
        let mut outcome = Outcome::Done;
        for line in lines.lines() {
            let line = line.map_err(|error| error.to_string())?;
            match self.line(&line, &mut splitter)? {
                Outcome::Done => {}
                Outcome::Failed if self.keep_going => outcome = Outcome::Failed,
                ended => return Ok(ended),
            }
        }
        if let Some(rest) = splitter.finish()
            && self.statement(&rest, None)? == Outcome::Failed
        {
            outcome = Outcome::Failed;
        }
        Ok(outcome)
    }

    /// Takes a line: a command of the shell, or a part of a statement.
    fn line(&mut self, line: &str, splitter: &mut Splitter) -> Result<Outcome, String> {
        if splitter.is_empty() && line.trim_start().starts_with('\\') {
            return self.backslash(line.trim());
        }
        let mut outcome = Outcome::Done;
        for statement in splitter.line(line) {
            if self.statement(&statement, None)? == Outcome::Failed {
                outcome = Outcome::Failed;
                if !self.keep_going {
                    break;
                }
            }
        }
        Ok(outcome)
    }

    /// Runs a statement and prints what comes of it. `file`: where the data of COPY comes from or goes to.
    ///
    /// Errors: the connection is lost, and cannot be had again.
    fn statement(&mut self, text: &str, file: Option<&Path>) -> Result<Outcome, String> {
        let begun = Instant::now();
        let outcome = match self.exchange(text, file) {
            Ok(outcome) => outcome,
            Err(Trouble::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(Outcome::Quit),
            Err(Trouble::Output(error)) => return Err(error.to_string()),
            Err(Trouble::Server(error)) if self.is_interactive => {
                eprintln!("{error}");
                self.server = Postgres::connect(&self.target).map_err(|error| error.to_string())?;
                self.status = b'I';
                eprintln!("connected again");
                Outcome::Failed
            }
            Err(Trouble::Server(error)) => return Err(error.to_string()),
        };
        if self.timing {
            println!("time: {:.3} ms", begun.elapsed().as_secs_f64() * 1000.0);
        }
        Ok(outcome)
    }

    fn exchange(&mut self, text: &str, file: Option<&Path>) -> Result<Outcome, Trouble> {
        self.server.send(text)?;
        let watched = self.watch.statement(self.server.canceller());
        let mut out = BufWriter::new(io::stdout().lock());
        let mut outcome = Outcome::Done;
        let mut to = None;
        let mut printer: Option<Printer> = None;
        loop {
            let event = self.server.next()?;
            if !matches!(event, Event::Row(_)) {
                watched.quiet();
            }
            match event {
                Event::Columns(columns) => printer = Some(Printer::new(self.format, columns)),
                Event::Row(row) => {
                    watched.row();
                    if let Some(printer) = &mut printer {
                        printer.row(&mut out, row)?;
                    }
                }
                Event::Data(bytes) => match file {
                    None => out.write_all(&bytes)?,
                    Some(path) => {
                        if to.is_none() {
                            to = Some(BufWriter::new(File::create(path)?));
                        }
                        if let Some(to) = &mut to {
                            to.write_all(&bytes)?;
                        }
                    }
                },
                Event::WantsData => give(&mut self.server, file)?,
                Event::Done(tag) => match printer.take() {
                    Some(printer) => printer.end(&mut out)?,
                    None if self.format == Format::Table => writeln!(out, "{tag}")?,
                    None => {}
                },
                Event::Nothing => {}
                Event::Notice(report) => eprintln!("{}: {}", report.severity, report.message),
                Event::Failed(report) => {
                    drop(printer.take());
                    out.flush()?;
                    eprint!("{}", told(&report, text));
                    outcome = Outcome::Failed;
                    if report.severity == "FATAL" {
                        return Err(Trouble::Server(ClientError::Protocol(
                            "the server ended the connection".into(),
                        )));
                    }
                }
                Event::Ready(status) => {
                    self.status = status;
                    if let Some(mut to) = to {
                        to.flush()?;
                    }
                    out.flush()?;
                    return Ok(outcome);
                }
            }
            if printer.is_none() {
                out.flush()?;
            }
        }
    }

    /// The first column of an answer that nobody sees; empty when there is none.
    fn ask(&mut self, text: &str) -> Vec<String> {
        let mut values = Vec::new();
        if self.server.send(text).is_err() {
            return values;
        }
        while let Ok(event) = self.server.next() {
            match event {
                Event::Row(row) => values.extend(row.into_iter().next().flatten()),
                Event::Ready(status) => {
                    self.status = status;
                    break;
                }
                _ => {}
            }
        }
        values
    }
}

/// Sends a file to a COPY that waits for it, or says that there is none.
fn give(server: &mut Postgres, file: Option<&Path>) -> Result<(), ClientError> {
    let opened = match file {
        Some(path) => File::open(path).map_err(|error| format!("{}: {error}", path.display())),
        None => Err("data comes from a file: \\copy TABLE FROM FILE".to_owned()),
    };
    let mut opened = match opened {
        Ok(opened) => opened,
        Err(reason) => return server.end_data(Some(&reason)),
    };
    let mut part = vec![0; 256 << 10];
    loop {
        match opened.read(&mut part) {
            Ok(0) => return server.end_data(None),
            Ok(bytes) => server.data(&part[..bytes])?,
            Err(error) => return server.end_data(Some(&error.to_string())),
        }
    }
}

/// Why an answer could not be read to its end.
enum Trouble {
    /// The connection.
    Server(ClientError),
    /// What was to be written, or read from a file.
    Output(io::Error),
}

impl From<ClientError> for Trouble {
    fn from(error: ClientError) -> Self {
        Self::Server(error)
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// An error as it is shown, with the line of the statement that it is about.
fn told(report: &Report, text: &str) -> String {
    let mut out = format!("{}: {}: {}\n", report.severity, report.code, report.message);
    if let Some(position) = report.position {
        let before: String = text.chars().take(position.saturating_sub(1)).collect();
        let number = before.matches('\n').count();
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
        if let Some(line) = text.split('\n').nth(number) {
            let head = format!("LINE {}: ", number + 1);
            out.push_str(&format!("{head}{line}\n{}^\n", " ".repeat(head.len() + column)));
        }
    }
    for (name, more) in [("DETAIL", &report.detail), ("HINT", &report.hint)] {
        if let Some(more) = more {
            out.push_str(&format!("{name}: {more}\n"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_its_place() {
        let report = Report {
            severity: "ERROR".into(),
            code: "42703".into(),
            message: "column \"x\" does not exist".into(),
            hint: Some("look".into()),
            position: Some(11),
            ..Report::default()
        };
        assert_eq!(
            told(&report, "select 1,\nx from t"),
            "ERROR: 42703: column \"x\" does not exist\nLINE 2: x from t\n        ^\nHINT: look\n"
        );
    }
}
