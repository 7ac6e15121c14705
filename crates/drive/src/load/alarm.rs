//! Waking up for a send, precisely.
//!
//! The poll's own time-out counts whole milliseconds. Where the system has timers that are files (Linux), one of
//! them ends the poll a little before the send is due and the loop spins for the rest; elsewhere the loop spins
//! for up to a millisecond.

use precipice_record::Ns;
use std::io;
use std::time::Duration;

/// How long before a send the loop stops sleeping: the usual latency of a wake-up.
pub(crate) const SPIN: Ns = Ns(60_000);

#[cfg(target_os = "linux")]
pub(crate) use linux::Alarm;
#[cfg(not(target_os = "linux"))]
pub(crate) use portable::Alarm;

#[cfg(target_os = "linux")]
mod linux {
    use super::{Duration, Ns, SPIN, io};
    use mio::unix::SourceFd;
    use mio::{Interest, Registry, Token};
    use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
    use std::os::fd::{AsRawFd, OwnedFd};

    /// Two timers that end the poll: one for the next send, one for the heartbeat. With both the poll needs no
    /// time-out of its own, which the kernel would arm and disarm for every token.
    #[derive(Debug)]
    pub(crate) struct Alarm {
        timer: OwnedFd,
        beat: OwnedFd,
        set_for: Ns,
    }

    impl Alarm {
        pub(crate) fn new(registry: &Registry, token: Token) -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags)?;
            registry.register(&mut SourceFd(&timer.as_raw_fd()), token, Interest::READABLE)?;
            let beat = rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags)?;
            registry.register(&mut SourceFd(&beat.as_raw_fd()), token, Interest::READABLE)?;
            Ok(Self { timer, beat, set_for: Ns::ZERO })
        }

        /// Ends a poll at the heartbeat that is due then. (A timer with a period would have to be read each time.)
        pub(crate) fn beat(&self, now: Ns, due: Ns) -> io::Result<()> {
            let once = Itimerspec { it_interval: span(Ns::ZERO), it_value: span(due.since(now).max(Ns(1))) };
            rustix::time::timerfd_settime(&self.beat, TimerfdTimerFlags::empty(), &once)?;
            Ok(())
        }

        /// How long the poll may sleep: until a timer ends it.
        #[allow(clippy::unused_self)]
        pub(crate) fn sleep(&self, _now: Ns, _beat: Ns) -> Option<Duration> {
            None
        }

        /// Ends the poll shortly before `due`. True when it is too close for sleeping.
        pub(crate) fn set(&mut self, now: Ns, due: Ns) -> io::Result<bool> {
            let ahead = due.since(now);
            if ahead <= SPIN {
                return Ok(true);
            }
            if self.set_for != due {
                let once = Itimerspec { it_interval: span(Ns::ZERO), it_value: span(ahead.since(SPIN)) };
                rustix::time::timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
                self.set_for = due;
            }
            Ok(false)
        }
    }

    fn span(time: Ns) -> Timespec {
        Timespec { tv_sec: (time.0 / 1_000_000_000) as i64, tv_nsec: (time.0 % 1_000_000_000) as _ }
    }
}

#[cfg(not(target_os = "linux"))]
mod portable {
    use super::{Duration, Ns, SPIN, io};
    use mio::{Registry, Token};

    /// No timer: the last millisecond is spun.
    #[derive(Debug)]
    pub(crate) struct Alarm;

    impl Alarm {
        pub(crate) fn new(_registry: &Registry, _token: Token) -> io::Result<Self> {
            Ok(Self)
        }

        /// Nothing to set: the poll's time-out does it.
        pub(crate) fn beat(&self, _now: Ns, _due: Ns) -> io::Result<()> {
            Ok(())
        }

        /// How long the poll may sleep: until the heartbeat.
        pub(crate) fn sleep(&self, now: Ns, beat: Ns) -> Option<Duration> {
            Some(Duration::from_nanos(beat.since(now).0))
        }

        /// True when `due` is too close for sleeping.
        pub(crate) fn set(&mut self, now: Ns, due: Ns) -> io::Result<bool> {
            Ok(due.since(now) <= Ns(1_000_000) + SPIN)
        }
    }
}
