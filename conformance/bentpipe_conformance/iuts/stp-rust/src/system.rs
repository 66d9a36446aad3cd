//! What the standard library has no calls for: waiting, socket options, the path's MTU, secrets.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

/// No packet is larger, whatever the path permits.
const MOST_MTU: usize = 1500;
/// Octets that the socket may hold in either direction, if the system permits.
const BUFFER: libc::c_int = 1 << 22;

/// What can be read.
pub struct Ready {
    /// The socket.
    pub socket: bool,
    /// Standard input.
    pub input: bool,
}

fn poll(descriptors: &mut [libc::pollfd], timeout: Option<Duration>) -> Result<()> {
    let timeout = timeout.map(|time| libc::timespec {
        tv_sec: time.as_secs() as libc::time_t,
        tv_nsec: time.subsec_nanos().into(),
    });
    let pointer = timeout
        .as_ref()
        .map_or(std::ptr::null(), std::ptr::from_ref);
    let count = descriptors.len() as libc::nfds_t;
    // SAFETY: the descriptors and the time live until the call returns.
    let result = unsafe { libc::ppoll(descriptors.as_mut_ptr(), count, pointer, std::ptr::null()) };
    match result {
        -1 => match Error::last_os_error() {
            error if error.kind() == ErrorKind::Interrupted => Ok(()),
            error => Err(error),
        },
        _ => Ok(()),
    }
}

fn interest(fd: RawFd, events: libc::c_short) -> libc::pollfd {
    libc::pollfd {
        fd,
        events,
        revents: 0,
    }
}

/// Waits until there is something to read or the time has passed.
pub fn wait(socket: &UdpSocket, timeout: Option<Duration>) -> Result<Ready> {
    let mut descriptors = [
        interest(socket.as_raw_fd(), libc::POLLIN),
        interest(0, libc::POLLIN),
    ];
    poll(&mut descriptors, timeout)?;
    let [socket, input] = descriptors.map(|descriptor| descriptor.revents != 0);
    Ok(Ready { socket, input })
}

/// Waits a moment until the socket takes another datagram.
pub fn wait_to_send(socket: &UdpSocket) {
    let mut descriptors = [interest(socket.as_raw_fd(), libc::POLLOUT)];
    let _ = poll(&mut descriptors, Some(Duration::from_millis(2)));
}

fn set(socket: &UdpSocket, level: libc::c_int, name: libc::c_int, value: libc::c_int) {
    let pointer = std::ptr::from_ref(&value).cast();
    let size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the value lives until the call returns. Without these options all goes on, but worse.
    unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, pointer, size) };
}

/// Sets Don't Fragment and large buffers.
pub fn prepare(socket: &UdpSocket, ipv4: bool) {
    if ipv4 {
        set(
            socket,
            libc::IPPROTO_IP,
            libc::IP_MTU_DISCOVER,
            libc::IP_PMTUDISC_DO,
        );
    } else {
        let mode = libc::IPV6_PMTUDISC_DO;
        set(socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, mode);
    }
    set(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, BUFFER);
    set(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, BUFFER);
}

/// The MTU of the path to a peer, as far as the system knows it.
pub fn mtu(local: IpAddr, peer: SocketAddr) -> usize {
    let known = || {
        let socket = UdpSocket::bind((local, 0)).ok()?;
        socket.connect(peer).ok()?;
        let (level, name) = match peer {
            SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_MTU),
            SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_MTU),
        };
        let mut value: libc::c_int = 0;
        let mut size = size_of::<libc::c_int>() as libc::socklen_t;
        let pointer = std::ptr::from_mut(&mut value).cast();
        // SAFETY: the value and its size live until the call returns.
        let result =
            unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, pointer, &mut size) };
        usize::try_from(value).ok().filter(|_| result == 0)
    };
    known().unwrap_or(MOST_MTU).min(MOST_MTU)
}

/// Secrets for one start of the endpoint.
pub fn secrets() -> Result<[u64; 4]> {
    let mut secrets = [0; 4];
    let mut source = File::open("/dev/urandom")?;
    for secret in &mut secrets {
        let mut octets = [0; 8];
        source.read_exact(&mut octets)?;
        *secret = u64::from_ne_bytes(octets);
    }
    Ok(secrets)
}
