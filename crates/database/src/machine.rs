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
    let memory_mib = system_mib("/proc/meminfo", "MemTotal");
    let limits = [memory_limit_mib(), half_address_space_mib()];
    limits.into_iter().flatten().fold(memory_mib, i64::min)
}

/// Half of what the process may map (`ulimit -v`), if that is limited.
fn half_address_space_mib() -> Option<i64> {
    Some(soft_limit(&std::fs::read_to_string("/proc/self/limits").ok()?, "Max address space")? >> 21)
}

/// A limit of the process by the name it has in `/proc/self/limits`: the soft one, which is the first of the two there.
pub fn soft_limit(limits: &str, name: &str) -> Option<i64> {
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The memory a container may use.
fn memory_limit_mib() -> Option<i64> {
    let text = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok()?;
    Some(text.trim().parse::<i64>().ok()? / (1 << 20))
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
    fn the_limit_is_the_soft_one() {
        let limits = "Limit  Soft Limit  Hard Limit  Units\nMax open files            1024                 524288               files\n";
        assert_eq!(soft_limit(limits, "Max open files"), Some(1024));
        assert_eq!(
            soft_limit("Max open files unlimited unlimited files", "Max open files"),
            None
        );
    }
}
