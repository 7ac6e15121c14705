//! How far a profile's prediction is expected to be off.

use super::profile::Profile;
use crate::batch::StepTime;

/// Standard deviation between starts of the same server, relative: two starts of the recorded H200 server gave 1,994.5 and
/// 2,020.6 output tokens/s under the same load, 1.3 % apart.
const BETWEEN_STARTS: f64 = 0.0092;
/// Standard deviation of a run's step times where no run was predicted from others.
const UNKNOWN: f64 = 0.02;
/// Region of the residuals that holds the spread of the host's time in piecewise graphs.
const HOST_PIECEWISE: &str = "host, piecewise graphs";
/// Half-width of an interval that holds 19 of 20, in standard deviations.
const NINETEEN_OF_TWENTY: f64 = 1.96;
/// Standard error of a median over that of a mean, of normal values.
const OF_MEDIAN: f64 = 1.2533;

/// The error of a run's time, gathered while its steps are timed.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpectedError {
    /// Of step times, from residuals between runs: one standard deviation, relative.
    pub residuals: f64,
    /// Between starts of a server: one standard deviation, relative.
    pub starts: f64,
    /// Of the host's time in piecewise graphs: one standard error, relative; absent where it is not known.
    pub host_piecewise: Option<f64>,
    seconds: f64,
    at_the_hosts_pace: f64,
}

impl ExpectedError {
    /// Nothing timed so far.
    pub(super) fn of(profile: &Profile) -> Self {
        let host = profile.host_piecewise_s.filter(|seconds| *seconds > 0.0);
        let spread = profile.residuals.iter().find(|region| region.region == HOST_PIECEWISE);
        let host_piecewise = spread
            .zip(host)
            .map(|(spread, host)| OF_MEDIAN * spread.rms_s / (spread.n.max(1) as f64).sqrt() / host);
        Self {
            residuals: profile.left_out_rms.unwrap_or(UNKNOWN),
            starts: BETWEEN_STARTS,
            host_piecewise,
            seconds: 0.0,
            at_the_hosts_pace: 0.0,
        }
    }

    /// Takes in a step; an asynchronous engine goes at the pace of the slower of host and device.
    pub(super) fn take(&mut self, time: StepTime, piecewise: bool) {
        let pace = time.gpu.max(time.host).secs();
        self.seconds += pace;
        if piecewise && time.host > time.gpu {
            self.at_the_hosts_pace += pace;
        }
    }

    /// Half-width that 19 of 20 predictions of throughput should keep, relative.
    pub fn relative(&self) -> f64 {
        let share = if self.seconds > 0.0 { self.at_the_hosts_pace / self.seconds } else { 0.0 };
        let host = self.host_piecewise.unwrap_or(0.0) * share;
        NINETEEN_OF_TWENTY * (self.residuals.powi(2) + self.starts.powi(2) + host.powi(2)).sqrt()
    }

    /// Share of the time in which the host's part of piecewise graphs set the pace, 0..1.
    pub fn piecewise_share(&self) -> f64 {
        if self.seconds > 0.0 { self.at_the_hosts_pace / self.seconds } else { 0.0 }
    }
}
