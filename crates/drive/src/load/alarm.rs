//! Waking up for a send, precisely.
//!
//! The poll's own time-out counts whole milliseconds. Where the system has timers that are files (Linux), one of
//! them ends the poll a little before the send is due and the loop spins for the rest; elsewhere the loop spins
//! for up to a millisecond.

use precipice_record::Ns;
use std::io;

/// How long before a send the loop stops sleeping: the usual latency of a wake-up.
pub(crate) const SPIN: Ns = Ns(60_000);

#[cfg(target_os = "linux")]
pub(crate) use linux::Alarm;
#[cfg(not(target_os = "linux"))]
pub(crate) use portable::Alarm;

#[cfg(target_os = "linux")]
mod linux {
    use super::{Ns, SPIN, io};
    use mio::unix::SourceFd;
    use mio::{Interest, Registry, Token};
    use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
    use std::os::fd::{AsRawFd, OwnedFd};

    /// A timer that ends the poll.
    #[derive(Debug)]
    pub(crate) struct Alarm {
        timer: OwnedFd,
        set_for: Ns,
    }

    impl Alarm {
        pub(crate) fn new(registry: &Registry, token: Token) -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags)?;
            registry.register(&mut SourceFd(&timer.as_raw_fd()), token, Interest::READABLE)?;
            Ok(Self { timer, set_for: Ns::ZERO })
        }

        /// Ends the poll shortly before `due`. True when it is too close for sleeping.
        pub(crate) fn set(&mut self, now: Ns, due: Ns) -> io::Result<bool> {
            let ahead = due.since(now);
            if ahead <= SPIN {
                return Ok(true);
            }
            if self.set_for != due {
                let wait = ahead.since(SPIN).0.max(1);
                let at =
                    Timespec { tv_sec: (wait / 1_000_000_000) as i64, tv_nsec: (wait % 1_000_000_000) as _ };
                let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: at };
                rustix::time::timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
                self.set_for = due;
            }
            Ok(false)
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod portable {
    use super::{Ns, SPIN, io};
    use mio::{Registry, Token};

    /// No timer: the last millisecond is spun.
    #[derive(Debug)]
    pub(crate) struct Alarm;

    impl Alarm {
        pub(crate) fn new(_registry: &Registry, _token: Token) -> io::Result<Self> {
            Ok(Self)
        }

        /// True when `due` is too close for sleeping.
        pub(crate) fn set(&mut self, now: Ns, due: Ns) -> io::Result<bool> {
            Ok(due.since(now) <= Ns(1_000_000) + SPIN)
        }
    }
}
