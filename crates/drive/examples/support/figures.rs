//! One line of the table: latencies, and what they cost.

use std::time::Duration;

#[derive(Default)]
pub(crate) struct Figures {
    ttft: Vec<f64>,
    itl: Vec<f64>,
}

impl Figures {
    pub(crate) fn ttft(&mut self, time: Duration) {
        self.ttft.push(time.as_secs_f64() * 1e3);
    }

    pub(crate) fn itl(&mut self, time: Duration) {
        self.itl.push(time.as_secs_f64() * 1e3);
    }

    pub(crate) fn line(&mut self, name: &str) -> String {
        let tokens = self.ttft.len() + self.itl.len();
        let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let cpu = cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9;
        let rss = std::fs::read_to_string("/proc/self/status").ok().and_then(|status| {
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.to_owned();
            line.trim().trim_end_matches("kB").trim().parse::<f64>().ok()
        });
        self.ttft.sort_by(f64::total_cmp);
        self.itl.sort_by(f64::total_cmp);
        format!(
            "{name:<12} {tokens:>8} tokens  TTFT p50 {:.2} p99 {:.2}  ITL p50 {:.2} p99 {:.2} p99.9 {:.2} p99.99 {:.2} max {:.2} ms  {:.0} tokens a CPU second  {:.0} MiB",
            at(&self.ttft, 0.5),
            at(&self.ttft, 0.99),
            at(&self.itl, 0.5),
            at(&self.itl, 0.99),
            at(&self.itl, 0.999),
            at(&self.itl, 0.9999),
            at(&self.itl, 1.0),
            tokens as f64 / cpu,
            rss.unwrap_or(f64::NAN) / 1024.0
        )
    }
}

/// Linear interpolation between order statistics.
fn at(sorted: &[f64], quantile: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = quantile * last as f64;
    let low = place.floor() as usize;
    let high = (low + 1).min(last);
    sorted[low] + (sorted[high] - sorted[low]) * place.fract()
}
