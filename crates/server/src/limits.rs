//! What the operating system allows.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files kept back from connections: data, journal, log, and what the runtime needs.
const FILES_RESERVED: u64 = 64;

/// Raises the soft limit of open files to the hard one, and returns what it is then (`None`: no limit).
pub fn raise_open_files() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    }
}

/// How many connections there may be: what was asked for, as far as open files allow it.
pub fn connections_max(asked: Option<u32>, open_files: Option<u64>) -> u32 {
    let by_files = open_files.map_or(u32::MAX, |files| {
        // A fifth of the files stays for data, as mongod has it.
        let share = (files / 5).max(FILES_RESERVED);
        u32::try_from(files.saturating_sub(share)).unwrap_or(u32::MAX).max(5)
    });
    asked.unwrap_or(1_000_000).min(by_files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_data() {
        assert_eq!(connections_max(None, Some(1024)), 820);
        assert_eq!(connections_max(Some(100), Some(1024)), 100);
        assert_eq!(connections_max(Some(5000), Some(1024)), 820);
        assert_eq!(connections_max(None, Some(100)), 36);
        assert_eq!(connections_max(None, None), 1_000_000);
    }
}
