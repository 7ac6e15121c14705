//! CPU time and memory of the process. What the system does not tell is absent.

use rustix::time::{ClockId, clock_gettime};

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// CPU seconds of all threads of the process.
pub(crate) fn cpu_seconds() -> f64 {
    seconds(ClockId::ProcessCPUTime)
}

/// CPU seconds of the calling thread.
pub(crate) fn thread_cpu_seconds() -> f64 {
    seconds(ClockId::ThreadCPUTime)
}

/// Largest resident memory so far, where `/proc` tells it.
pub(crate) fn peak_rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Lets the process open as many files as the system allows it: the soft limit (1,024 as a rule) is for programs that
/// use `select`.
pub(crate) fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        // Where the system refuses, the lower limit holds and is checked.
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).ok();
    }
}

/// Files that the process may have open, and how many local ports it may use; `None` where there is no limit or
/// none is told.
pub(crate) fn socket_limits() -> (Option<u64>, Option<u64>) {
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let ports = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok().and_then(|range| {
        let mut ends = range.split_whitespace().map(str::parse::<u64>);
        let (low, high) = (ends.next()?.ok()?, ends.next()?.ok()?);
        Some(high.saturating_sub(low) + 1)
    });
    (files, ports)
}
