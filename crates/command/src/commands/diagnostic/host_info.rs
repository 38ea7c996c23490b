//! `hostInfo`: the machine.

use crate::facts::{Facts, Flags};
use crate::needs::Needs;
use crate::spec::CommandSpec;
use nestor_database::machine::{host_name, soft_limit, system_mib, system_value, usable_memory_mib};
use nestor_database::rights::Action;
use nestor_model::{RawWriter, ValueRef};

/// The command.
pub const SPEC: CommandSpec = Facts::no_collection("hostInfo", "Describes the machine the server runs on.")
    .aliases(&["hostinfo"])
    .flags(Flags::QUIET)
    .needs(Needs::server(Action::HostInfo))
    .runs(|context, reply| {
        HostInfo::parse(context.body, context.sequences)?;
        write(reply);
        Ok(())
    });

crate::args! {
    struct HostInfo: "hostInfo" command {}
}

fn write(reply: &mut RawWriter) {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as i32);
    let memory_mib = system_mib("/proc/meminfo", "MemTotal");
    let limit_mib = usable_memory_mib();
    reply.begin_document("system");
    reply.append("currentTime", ValueRef::DateTime(nestor_database::clock::now_ms()));
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
    write_extra(reply, memory_mib);
    reply.end();
}

/// Further facts that the system gives; those that it does not give are left out.
fn write_extra(reply: &mut RawWriter, memory_mib: i64) {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    for (name, text) in [
        ("cpuString", system_value("/proc/cpuinfo", "model name", ':')),
        ("versionString", read("/proc/version")),
        ("kernelVersion", read("/proc/sys/kernel/osrelease")),
        ("cpuFrequencyMHz", system_value("/proc/cpuinfo", "cpu MHz", ':')),
        ("cpuFeatures", system_value("/proc/cpuinfo", "flags", ':')),
    ] {
        if !text.trim().is_empty() {
            reply.append(name, text.trim());
        }
    }
    let page_bytes = rustix::param::page_size() as i64;
    reply.append("pageSize", page_bytes);
    reply.append("numPages", memory_mib * (1 << 20) / page_bytes.max(1));
    if let Some(files) = soft_limit(&read("/proc/self/limits"), "Max open files") {
        reply.append("maxOpenFiles", files);
    }
}
