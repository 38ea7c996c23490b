//! The server under test, as a child process in a directory of its own.

use crate::client::{Client, ClientError, Uri};
use nestor_model::doc;
use nestor_model::namespace::ADMIN;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A directory that is gone when this is dropped.
pub struct Folder(PathBuf);

impl Folder {
    /// Makes one below `parent`.
    pub fn make(parent: &Path) -> Result<Self, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Relaxed);
        let path = parent.join(format!("nestor-bench-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Self(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A running server; killed when dropped.
pub struct Server {
    child: Child,
    /// Where it listens.
    pub uri: Uri,
}

impl Server {
    /// Starts this same program as a server on a free port.
    pub fn start(dbpath: &Path) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|e| e.to_string())?;
        Self::start_program(&program, &[], &[], dbpath)
    }

    /// Starts `program`, another Nestor, as a server on a free port, with these flags and variables of its environment.
    pub fn start_program(
        program: &Path,
        flags: &[String],
        environment: &[(&str, String)],
        dbpath: &Path,
    ) -> Result<Self, String> {
        let mut child = Command::new(program)
            .args(["serve", "--port", "0", "--nounixsocket", "--print-uri", "--dbpath"])
            .arg(dbpath)
            .args(flags)
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .arg("--logpath")
            .arg(dbpath.with_extension("log"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("{} did not start: {e}", program.display()))?;
        let printed = child.stdout.take().map(BufReader::new);
        for line in printed.into_iter().flat_map(BufRead::lines).map_while(Result::ok) {
            if line.starts_with("mongodb://") {
                let uri = line.trim().parse().map_err(|e: ClientError| e.to_string())?;
                return Ok(Self { child, uri });
            }
        }
        let _ = child.kill();
        let log = std::fs::read_to_string(dbpath.with_extension("log")).unwrap_or_default();
        Err(format!("the server ended instead of listening\n{log}"))
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Shuts it down cleanly.
    pub fn stop(&mut self) -> Result<(), String> {
        let mut client = Client::connect(&self.uri).map_err(|e| e.to_string())?;
        // It closes the connection instead of answering. Without force a primary waits for a secondary to take over.
        let shutdown = doc! { "shutdown": 1, "force": true, "$db": ADMIN };
        if let Err(refused @ ClientError::Refused { .. }) = client.command(shutdown.to_raw().as_raw()) {
            return Err(refused.to_string());
        }
        let status = self.child.wait().map_err(|e| e.to_string())?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("the server ended with {status}"))
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
