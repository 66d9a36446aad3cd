//! smoltcp's view of a TUN descriptor that somebody else opened.

use std::io;
use std::os::fd::RawFd;

use smoltcp::phy::{self, Device, DeviceCapabilities, Medium};
use smoltcp::time::Instant;

const LARGEST_PACKET: usize = 65535;

/// Plain IPv4 packets over a non-blocking descriptor.
pub struct Tun {
    fd: RawFd,
    mtu: usize,
    error: Option<io::Error>,
}

impl Tun {
    /// Take over `fd` and make it non-blocking.
    pub fn new(fd: RawFd, mtu: usize) -> io::Result<Self> {
        let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
        if flags < 0 || unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Tun {
            fd,
            mtu,
            error: None,
        })
    }

    /// What made the interface unusable, if anything did.
    pub fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }
}

/// A received packet.
pub struct Received(Vec<u8>);

/// The right to send one packet.
pub struct Sending(RawFd);

impl phy::RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

impl phy::TxToken for Sending {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut packet = vec![0; len];
        let result = f(&mut packet);
        // A packet the kernel refuses is a lost packet: recovering it is the stack's business.
        unsafe { libc::write(self.0, packet.as_ptr().cast(), packet.len()) };
        result
    }
}

impl Device for Tun {
    type RxToken<'a> = Received;
    type TxToken<'a> = Sending;

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu;
        capabilities
    }

    fn receive(&mut self, _now: Instant) -> Option<(Received, Sending)> {
        let mut packet = vec![0; LARGEST_PACKET];
        let length = unsafe { libc::read(self.fd, packet.as_mut_ptr().cast(), packet.len()) };
        if length > 0 {
            packet.truncate(length as usize);
            return Some((Received(packet), Sending(self.fd)));
        }
        let error = if length == 0 {
            io::ErrorKind::UnexpectedEof.into()
        } else {
            io::Error::last_os_error()
        };
        if !matches!(
            error.kind(),
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
        ) {
            self.error = Some(error);
        }
        None
    }

    fn transmit(&mut self, _now: Instant) -> Option<Sending> {
        Some(Sending(self.fd))
    }
}
