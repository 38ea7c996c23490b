//! Facts about the machine and the process, as the operating system reports them.

/// The machine's name; `localhost` where the system does not say.
pub fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .ok()
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "localhost".to_owned())
}

/// Memory in MiB that the process may use: the machine's, or the limit of its control group or half of that of its address
/// space if that is less: the allocator keeps addresses of pieces it has given back, so that it never fills the whole.
pub fn usable_memory_mib() -> i64 {
    let half_address_space = address_space_max().map(|bytes| mib(bytes / 2));
    [half_address_space]
        .into_iter()
        .flatten()
        .fold(mib(memory_max()), i64::min)
}

fn mib(bytes: u64) -> i64 {
    i64::try_from(bytes >> 20).unwrap_or(i64::MAX)
}

/// Bytes of memory that the process may fill: the machine's, or what its control group may have if that is less; 0 where the system
/// does not say.
pub fn memory_max() -> u64 {
    let machine = u64::try_from(system_mib("/proc/meminfo", "MemTotal")).unwrap_or(0) << 20;
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = group_limit_files(&groups)
        .into_iter()
        .filter_map(|file| std::fs::read_to_string(file).ok()?.trim().parse::<u64>().ok());
    limits.fold(machine, u64::min)
}

/// The files that may hold a limit of memory, by what `/proc/self/cgroup` says: those of the group and of all it lies in, in version 2
/// of control groups and in version 1. The group is often not visible from inside a container, whose own limit is then at the top.
fn group_limit_files(groups: &str) -> Vec<String> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else {
            continue;
        };
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let mut group = group.trim_end_matches('/');
        loop {
            files.push(format!("{root}{group}/{file}"));
            match group.rfind('/') {
                Some(end) => group = &group[..end],
                None => break,
            }
        }
    }
    files
}

/// Bytes that the process may map (`ulimit -v`), if that is limited.
pub fn address_space_max() -> Option<u64> {
    let limit = soft_limit(&std::fs::read_to_string("/proc/self/limits").ok()?, "Max address space")?;
    u64::try_from(limit).ok()
}

/// What the process takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Bytes of its address space.
    pub mapped: u64,
    /// Bytes of memory that are no pages of files.
    pub resident: u64,
}

/// What the process takes now; `None` where the system does not say.
pub fn taken() -> Option<Taken> {
    pages_taken(&std::fs::read_to_string("/proc/self/statm").ok()?)
}

/// The line of `/proc/self/statm`: pages mapped, resident, and of these those of files.
fn pages_taken(statm: &str) -> Option<Taken> {
    /// Bytes of a page wherever this server is built for.
    const PAGE: u64 = 4096;
    let mut pages = statm.split_whitespace().map_while(|pages| pages.parse::<u64>().ok());
    let (mapped, resident, of_files) = (pages.next()?, pages.next()?, pages.next()?);
    Some(Taken {
        mapped: mapped * PAGE,
        resident: resident.saturating_sub(of_files) * PAGE,
    })
}

/// A limit of the process by the name it has in `/proc/self/limits`: the soft one, which is the first of the two there.
pub fn soft_limit(limits: &str, name: &str) -> Option<i64> {
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// A line of `/proc` or `/etc` of the form `name: value` or `NAME=value`; empty where there is none.
pub fn system_value(path: &str, name: &str, separator: char) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .filter_map(|line| line.split_once(separator))
        .find(|(left, _)| left.trim() == name)
        .map_or(String::new(), |(_, right)| right.trim().trim_matches('"').to_owned())
}

/// A value in kB of `/proc`, as MiB.
pub fn system_mib(path: &str, name: &str) -> i64 {
    let text = system_value(path, name, ':');
    text.split(' ')
        .next()
        .and_then(|kb| kb.parse::<i64>().ok())
        .unwrap_or(0)
        / 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_all_groups_around_the_process_count() {
        assert_eq!(
            group_limit_files("0::/system.slice/nestor.service\n"),
            [
                "/sys/fs/cgroup/system.slice/nestor.service/memory.max",
                "/sys/fs/cgroup/system.slice/memory.max",
                "/sys/fs/cgroup/memory.max"
            ]
        );
        assert_eq!(group_limit_files("0::/\n"), ["/sys/fs/cgroup/memory.max"]);
        assert_eq!(
            group_limit_files("5:cpu,cpuacct:/a\n4:memory:/a\n"),
            [
                "/sys/fs/cgroup/memory/a/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes"
            ]
        );
    }

    #[test]
    fn what_the_process_takes_is_without_pages_of_files() {
        let taken = Taken {
            mapped: 1000 << 12,
            resident: 200 << 12,
        };
        assert_eq!(pages_taken("1000 300 100 5 0 400 0"), Some(taken));
        assert_eq!(pages_taken(""), None);
    }

    #[test]
    fn the_limit_is_the_soft_one() {
        let limits = "Limit  Soft Limit  Hard Limit  Units\nMax open files            1024                 524288               files\n";
        assert_eq!(soft_limit(limits, "Max open files"), Some(1024));
        assert_eq!(
            soft_limit("Max open files unlimited unlimited files", "Max open files"),
            None
        );
    }
}
