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

/// Lets no core file of this process be written, and nobody but the superuser look into its memory: passwords, keys and what is
/// decrypted are in all of it.
///
/// Setting the limit of core files alone would not do, because the system ignores it when it hands cores to a program; excluding single
/// allocations would not do either, because what is typed, sent and derived passes through buffers everywhere.
///
/// Errors: those of the system.
pub fn forbid_core_files() -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    let none = Rlimit {
        current: Some(0),
        maximum: getrlimit(Resource::Core).maximum,
    };
    Ok(setrlimit(Resource::Core, none)?)
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
    fn no_core_files_are_written() {
        forbid_core_files().expect("the system allows it");
        assert_eq!(getrlimit(Resource::Core).current, Some(0));
        #[cfg(target_os = "linux")]
        assert_eq!(
            rustix::process::dumpable_behavior().expect("it is known"),
            rustix::process::DumpableBehavior::NotDumpable
        );
    }

    #[test]
    fn connections_leave_files_for_data() {
        assert_eq!(connections_max(None, Some(1024)), 820);
        assert_eq!(connections_max(Some(100), Some(1024)), 100);
        assert_eq!(connections_max(Some(5000), Some(1024)), 820);
        assert_eq!(connections_max(None, Some(100)), 36);
        assert_eq!(connections_max(None, None), 1_000_000);
    }
}
