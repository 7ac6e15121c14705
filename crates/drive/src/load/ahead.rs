//! Connections that are open before the load begins.

use crate::clock::ns;
use crate::handle::{Order, Shared};
use crate::load::connection::{Bench, Stage, Turn};
use crate::load::lane::Lane;
use crate::socket::Socket;
use crate::target::Origin;
use mio::Events;
use std::io::{self, ErrorKind};
use std::time::Duration;

/// Connections that are being opened at once: fewer than the usual backlog of a listener.
const OPENING: usize = 64;

impl Lane {
    /// Opens connections ahead of the load, until so many are open or for at most `limit`: the first wave of a closed
    /// loop measures the server's answers and not its listener. One that can't be opened is met by its request.
    ///
    /// # Errors
    /// The poll of the system failed.
    pub(crate) fn open_ahead(
        &mut self,
        origin: &Origin,
        count: usize,
        limit: Duration,
        shared: &Shared,
    ) -> io::Result<()> {
        let until = self.clock.now() + ns(limit);
        let mut events = Events::with_capacity(1024);
        let mut wanted = count.saturating_sub(self.idle.len());
        let mut opening = 0;
        loop {
            while wanted > 0 && opening < OPENING {
                wanted -= 1;
                let now = self.clock.now();
                let Ok(socket) = Socket::open(origin, origin.addresses[0]) else { return Ok(()) };
                opening += usize::from(self.enter(socket, now, None).is_ok());
            }
            if opening == 0 || self.clock.now() >= until || shared.order() != Order::Go {
                return Ok(());
            }
            match self.poll.poll(&mut events, Some(Duration::from_millis(20))) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            for event in &events {
                let key = event.token().0;
                let Some(connection) = self.connections.get_mut(key) else { continue };
                let was_opening = matches!(connection.stage, Stage::Connecting | Stage::Handshaking);
                let mut bench = Bench {
                    clock: &self.clock,
                    buffer: &mut self.buffer,
                    outlet: &mut self.outlet,
                    tally: &mut self.tally,
                };
                let closed = event.is_read_closed() || event.is_error();
                match connection.turn(event.is_readable(), closed, &mut bench) {
                    Turn::Goes => continue,
                    Turn::Rests => self.idle.push(key),
                    Turn::More => {
                        self.unread.push(key);
                        continue;
                    }
                    // The server hung up, or TLS failed.
                    _ => {
                        self.idle.retain(|idle| *idle != key);
                        self.hang_up(key);
                    }
                }
                opening -= usize::from(was_opening);
            }
        }
    }
}
