//! The process, from `/proc`: what `prometheus_client` tells of its own. Where there is no `/proc`, nothing.

use precipice_wire::prometheus::{Family, PageWriter};
use std::fs;

/// Clock ticks a second in `/proc/self/stat`: 100 on every Linux, whatever the kernel's own rate.
const TICKS: f64 = 100.0;

/// Writes the `process_` series; `start` is in seconds since the Unix epoch.
pub(super) fn write(page: &mut PageWriter, start: f64) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix(" kB")?.trim().parse::<f64>().ok().map(|kib| kib * 1024.0)
    };
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program, in parentheses, may hold blanks; utime and stime are 12th and 13th after it.
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    let mut ticks = after.split_whitespace().skip(11).map(|word| word.parse::<f64>().ok());
    let cpu =
        ticks.next().flatten().zip(ticks.next().flatten()).map(|(user, system)| (user + system) / TICKS);
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let max_fds = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))
        .and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    let open_fds = fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count() as f64);
    for (name, help, family, value) in [
        ("process_virtual_memory_bytes", "Virtual memory size in bytes.", Family::Gauge, bytes("VmSize:")),
        ("process_resident_memory_bytes", "Resident memory size in bytes.", Family::Gauge, bytes("VmRSS:")),
        (
            "process_start_time_seconds",
            "Start time of the process since unix epoch in seconds.",
            Family::Gauge,
            Some(start),
        ),
        (
            "process_cpu_seconds_total",
            "Total user and system CPU time spent in seconds.",
            Family::Counter,
            cpu,
        ),
        ("process_open_fds", "Number of open file descriptors.", Family::Gauge, open_fds),
        ("process_max_fds", "Maximum number of open file descriptors.", Family::Gauge, max_fds),
    ] {
        if let Some(value) = value {
            page.header(name, help, family);
            page.sample(name, &[], value);
        }
    }
}
