//! `hostInfo`: the machine.

use super::{system_mib, system_value};
use crate::dispatch::{CommandSpec, Flags};
use nestor_model::{RawWriter, ValueRef};

/// The command.
pub const SPEC: CommandSpec = CommandSpec {
    name: "hostInfo",
    aliases: &["hostinfo"],
    flags: Flags::QUIET,
    help: "Describes the machine the server runs on.",
    run: |context, reply| {
        HostInfo::parse(context.body, context.sequences)?;
        write(reply);
        Ok(())
    },
};

crate::args! {
    struct HostInfo: "hostInfo" command {}
}

/// The machine's name; `localhost` where the system does not say.
pub fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .ok()
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "localhost".to_owned())
}

/// Memory in MiB that the process may use: the machine's, or its control group's limit if that is less.
pub fn usable_memory_mib() -> i64 {
    let memory_mib = system_mib("/proc/meminfo", "MemTotal");
    memory_limit_mib().map_or(memory_mib, |limit| limit.min(memory_mib))
}

fn write(reply: &mut RawWriter) {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as i32);
    let memory_mib = system_mib("/proc/meminfo", "MemTotal");
    let limit_mib = usable_memory_mib();
    reply.begin_document("system");
    reply.append("currentTime", ValueRef::DateTime(crate::clock::now_ms()));
    reply.append("hostname", host_name().as_str());
    reply.append("cpuAddrSize", usize::BITS as i32);
    reply.append("memSizeMB", memory_mib);
    reply.append("memLimitMB", limit_mib);
    reply.append("numCores", cores);
    reply.append("numCoresAvailableToProcess", cores);
    reply.append("numPhysicalCores", cores);
    reply.append("numCpuSockets", 1);
    reply.append("cpuArch", std::env::consts::ARCH);
    reply.append("numaEnabled", false);
    reply.append("numNumaNodes", 1);
    reply.end();
    reply.begin_document("os");
    reply.append(
        "type",
        if cfg!(target_os = "linux") {
            "Linux"
        } else {
            std::env::consts::OS
        },
    );
    reply.append("name", system_value("/etc/os-release", "PRETTY_NAME", '=').as_str());
    reply.append(
        "version",
        std::fs::read_to_string("/proc/sys/kernel/osrelease")
            .unwrap_or_default()
            .trim(),
    );
    reply.end();
    reply.begin_document("extra");
    reply.append("cpuString", system_value("/proc/cpuinfo", "model name", ':').as_str());
    reply.append(
        "versionString",
        std::fs::read_to_string("/proc/version").unwrap_or_default().trim(),
    );
    reply.end();
}

/// The memory a container may use.
fn memory_limit_mib() -> Option<i64> {
    let text = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok()?;
    Some(text.trim().parse::<i64>().ok()? / (1 << 20))
}
