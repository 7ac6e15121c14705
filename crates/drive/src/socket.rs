//! A socket of the load path: TCP without blocking, TLS on top where asked.

use crate::target::Origin;
use mio::net::TcpStream;
use rustls::ClientConnection;
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;

/// One connection's socket. It never blocks: [`ErrorKind::WouldBlock`] says to wait for the next event.
#[derive(Debug)]
pub(crate) struct Socket {
    tcp: TcpStream,
    tls: Option<Box<ClientConnection>>,
}

impl Socket {
    /// Begins to connect.
    ///
    /// The receive buffer is left to the kernel: setting SO_RCVBUF would pin it at `rmem_max` and switch off the
    /// tuning that lets it grow to `tcp_rmem[2]`, which is larger.
    pub(crate) fn open(origin: &Origin, address: SocketAddr) -> io::Result<Self> {
        let tcp = TcpStream::connect(address)?;
        let tls = match &origin.tls {
            Some(peer) => Some(Box::new(peer.session().map_err(io::Error::other)?)),
            None => None,
        };
        Ok(Self { tcp, tls })
    }

    pub(crate) fn tcp(&mut self) -> &mut TcpStream {
        &mut self.tcp
    }

    /// Whether TCP is connected by now; its error if it failed.
    pub(crate) fn connected(&self) -> io::Result<bool> {
        if let Some(error) = self.tcp.take_error()? {
            return Err(error);
        }
        match self.tcp.peer_addr() {
            Ok(_) => {
                self.tcp.set_nodelay(true)?;
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::NotConnected => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Goes on with the handshake; true once it is done.
    pub(crate) fn handshake(&mut self) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else { return Ok(true) };
        while tls.is_handshaking() {
            let moved =
                if tls.wants_write() { tls.write_tls(&mut self.tcp) } else { tls.read_tls(&mut self.tcp) };
            match moved {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) => {
                    if let Err(error) = tls.process_new_packets() {
                        // The alert tells the server why; if it cannot be sent, the reason stands all the same.
                        tls.write_tls(&mut self.tcp).ok();
                        return Err(io::Error::new(ErrorKind::InvalidData, error));
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Hands bytes to the socket (or to TLS) and says how many it took.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            None => self.tcp.write(bytes),
            Some(tls) => {
                let taken = tls.writer().write(bytes)?;
                if taken == 0 && tls.wants_write() {
                    tls.write_tls(&mut self.tcp)?;
                }
                Ok(taken)
            }
        }
    }

    /// Sends what TLS holds back; true when nothing is left.
    pub(crate) fn flush(&mut self) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else { return Ok(true) };
        while tls.wants_write() {
            match tls.write_tls(&mut self.tcp) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Reads once. Zero is the end of the stream.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return self.tcp.read(buffer) };
        loop {
            match tls.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // No close_notify: the framing of HTTP tells whether the response was whole.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            let read = tls.read_tls(&mut self.tcp)?;
            tls.process_new_packets().map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
            if read == 0 && !tls.wants_read() {
                return Ok(0);
            }
        }
    }
}
