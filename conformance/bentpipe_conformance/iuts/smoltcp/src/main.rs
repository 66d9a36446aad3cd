//! The standard services on smoltcp, over a TUN descriptor inherited from the test bed.
//!
//! One thread, blocked in `ppoll` until a packet arrives or the stack's next timer is due: a
//! virtual clock only moves while everything sleeps.

mod services;
mod tun;

use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::os::fd::RawFd;
use std::process::exit;

use smoltcp::iface::{Config, Interface, PollResult};
use smoltcp::socket::tcp::CongestionControl;
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};

use services::Services;
use tun::Tun;

const USAGE: &str = "usage: smoltcp-responder --fd N --address A.B.C.D --gateway A.B.C.D \
                     [--mtu N] [--congestion reno|cubic|none]";

struct Options {
    fd: RawFd,
    address: Ipv4Addr,
    gateway: Ipv4Addr,
    mtu: usize,
    congestion: CongestionControl,
}

fn usage(problem: &str) -> ! {
    eprintln!("smoltcp-responder: {problem}; {USAGE}");
    exit(2)
}

fn parse<T: std::str::FromStr>(option: &str, value: &str) -> T {
    value
        .parse()
        .unwrap_or_else(|_| usage(&format!("{option} cannot be {value:?}")))
}

fn options() -> Options {
    let (mut fd, mut address, mut gateway) = (None, None, None);
    let mut mtu = 1500;
    let mut congestion = CongestionControl::Reno;
    let mut arguments = std::env::args().skip(1);
    while let Some(option) = arguments.next() {
        let Some(value) = arguments.next() else {
            usage(&format!("{option} needs a value"))
        };
        match option.as_str() {
            "--fd" => fd = Some(parse(&option, &value)),
            "--address" => address = Some(parse(&option, &value)),
            "--gateway" => gateway = Some(parse(&option, &value)),
            "--mtu" => mtu = parse(&option, &value),
            "--congestion" => {
                congestion = match value.as_str() {
                    "reno" => CongestionControl::Reno,
                    "cubic" => CongestionControl::Cubic,
                    "none" => CongestionControl::None,
                    _ => usage(&format!("--congestion cannot be {value:?}")),
                }
            }
            _ => usage(&format!("there is no option {option:?}")),
        }
    }
    match (fd, address, gateway) {
        (Some(fd), Some(address), Some(gateway)) => Options {
            fd,
            address,
            gateway,
            mtu,
            congestion,
        },
        _ => usage("--fd, --address and --gateway are required"),
    }
}

fn random_seed() -> u64 {
    let mut seed = [0u8; 8];
    // A short read leaves zeros, which only makes the sequence numbers less random.
    unsafe { libc::getrandom(seed.as_mut_ptr().cast(), seed.len(), libc::GRND_NONBLOCK) };
    u64::from_ne_bytes(seed)
}

/// Standard input when it is a pipe, whose end means that the owner is gone; else nothing.
fn owner_pipe() -> Option<RawFd> {
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    if unsafe { libc::fstat(libc::STDIN_FILENO, &mut status) } != 0 {
        return None;
    }
    let kind = status.st_mode & libc::S_IFMT;
    (kind == libc::S_IFIFO || kind == libc::S_IFSOCK).then_some(libc::STDIN_FILENO)
}

/// Block until the TUN or the owner's pipe is readable or `timeout` has passed; true when the
/// pipe has ended.
fn wait(tun: RawFd, owner: Option<RawFd>, timeout: Option<Duration>) -> bool {
    // ppoll does not look at a negative descriptor.
    let owner = owner.unwrap_or(-1);
    let mut watched = [
        libc::pollfd {
            fd: tun,
            events: libc::POLLIN,
            revents: 0,
        },
        libc::pollfd {
            fd: owner,
            events: libc::POLLIN,
            revents: 0,
        },
    ];
    let limit = timeout.map(|left| libc::timespec {
        tv_sec: left.secs() as libc::time_t,
        tv_nsec: (left.total_micros() % 1_000_000 * 1000) as libc::c_long,
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let ready = unsafe { libc::ppoll(watched.as_mut_ptr(), 2, limit, std::ptr::null()) };
    if ready <= 0 || watched[1].revents == 0 {
        return false;
    }
    let mut ignored = [0u8; 256];
    unsafe {
        libc::read(
            owner,
            ignored.as_mut_ptr().cast(),
            ignored.len(),
        ) <= 0
    }
}

fn main() -> io::Result<()> {
    let options = options();
    let owner = owner_pipe();
    let mut tun = Tun::new(options.fd, options.mtu)?;
    let started = std::time::Instant::now();
    let now = || Instant::from_micros(started.elapsed().as_micros() as i64);

    let mut config = Config::new(HardwareAddress::Ip);
    config.random_seed = random_seed();
    let mut interface = Interface::new(config, &mut tun, now());
    interface.update_ip_addrs(|addresses| {
        let own = IpCidr::new(IpAddress::Ipv4(options.address), 24);
        addresses.push(own).expect("room for one address");
    });
    interface
        .routes_mut()
        .add_default_ipv4_route(options.gateway)
        .expect("room for one route");

    let mut services = Services::new(options.congestion);
    println!("ready");
    io::stdout().flush()?;

    loop {
        let changed = interface.poll(now(), &mut tun, services.sockets()) != PollResult::None;
        if let Some(error) = tun.take_error() {
            return Err(error);
        }
        if services.serve() {
            continue;
        }
        let mut timeout = interface.poll_delay(now(), services.sockets());
        if !changed && timeout == Some(Duration::ZERO) {
            // The stack is due but has nothing it may send. Asking again at once would spin, and
            // under a virtual clock no deadline would ever come nearer.
            timeout = Some(Duration::from_millis(1));
        }
        if wait(options.fd, owner, timeout) {
            return Ok(());
        }
    }
}
