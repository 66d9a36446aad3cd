//! STP/1 over one UDP socket: echo, discard and chargen, and calls by lines on standard input.

mod system;

use std::env;
use std::io::{ErrorKind, Read};
use std::mem::ManuallyDrop;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::FromRawFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use stp::endpoint::{Config, Endpoint, Outgoing};
use stp::user::Service;
use stp::{Time, SECOND};

const USAGE: &str = "usage: stp-rust --listen ADDRESS[:UDP_PORT] [--keep-alive SECONDS]

Serves echo (7), discard (9) and chargen (19) over STP/1 in UDP, on port 7253 unless told otherwise.
Lines on standard input call: open ADDRESS UDP_PORT STP_PORT OCTETS sends so many octets of chargen's
pattern and closes. The program ends with its standard input.";

const UDP_PORT: u16 = 7253;
/// Datagrams taken before the timers get their turn.
const BATCH: usize = 32;
/// A line on standard input is no longer.
const LONGEST_LINE: usize = 4096;

struct Arguments {
    listen: SocketAddr,
    keep_alive: Time,
}

fn arguments() -> Option<Arguments> {
    let mut listen = None;
    let mut keep_alive = 600;
    let mut words = env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next()?;
        match word.as_str() {
            "--listen" => listen = Some(address(&value)?),
            "--keep-alive" => {
                keep_alive = value.parse().ok().filter(|s| (15..=7200).contains(s))?;
            }
            _ => return None,
        }
    }
    Some(Arguments {
        listen: listen?,
        keep_alive: keep_alive * SECOND,
    })
}

fn address(text: &str) -> Option<SocketAddr> {
    text.parse().ok().or_else(|| {
        let ip: IpAddr = text.parse().ok()?;
        Some(SocketAddr::new(ip, UDP_PORT))
    })
}

/// What a line on standard input asks for.
fn call(line: &str) -> Option<(SocketAddr, u16, u64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let ["open", address, udp_port, port, octets] = words.as_slice() else {
        return None;
    };
    let to = SocketAddr::new(address.parse().ok()?, udp_port.parse().ok()?);
    Some((to, port.parse().ok()?, octets.parse().ok()?))
}

struct Driver {
    socket: UdpSocket,
    endpoint: Endpoint<Service>,
    start: Instant,
    out: Outgoing,
    line: Vec<u8>,
}

impl Driver {
    fn new(arguments: &Arguments) -> std::io::Result<Self> {
        let socket = UdpSocket::bind(arguments.listen)?;
        socket.set_nonblocking(true)?;
        system::prepare(&socket, arguments.listen.is_ipv4());
        let local = arguments.listen.ip();
        let endpoint = Endpoint::new(Config {
            secrets: system::secrets()?,
            listen: Box::new(Service::on),
            mtu: Box::new(move |peer| system::mtu(local, peer)),
            keep_alive: arguments.keep_alive,
        });
        Ok(Self {
            socket,
            endpoint,
            start: Instant::now(),
            out: Vec::new(),
            line: Vec::new(),
        })
    }

    fn now(&self) -> Time {
        self.start.elapsed().as_micros() as Time
    }

    /// Serves until standard input ends.
    fn serve(&mut self) -> std::io::Result<()> {
        // Not closed when it is dropped, for it was not opened here.
        let mut input = ManuallyDrop::new(unsafe { std::fs::File::from_raw_fd(0) });
        loop {
            let now = self.now();
            let wait = self
                .endpoint
                .deadline()
                .map(|at| Duration::from_micros(at.saturating_sub(now)));
            let ready = system::wait(&self.socket, wait)?;
            if ready.socket {
                self.receive();
            }
            if ready.input && !self.read(&mut input)? {
                return Ok(());
            }
            let now = self.now();
            self.endpoint.tick(now, &mut self.out);
            self.flush();
        }
    }

    fn receive(&mut self) {
        let mut octets = [0; 65_536];
        for _ in 0..BATCH {
            match self.socket.recv_from(&mut octets) {
                Ok((count, from)) => {
                    let now = self.now();
                    let datagram = octets.get(..count).unwrap_or_default();
                    self.endpoint.datagram(now, from, datagram, &mut self.out);
                    self.flush();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // Errors of earlier datagrams, such as an unreachable port.
                Err(_) => {}
            }
        }
    }

    fn flush(&mut self) {
        for (to, packet) in self.out.drain(..) {
            let sent = self.socket.send_to(&packet, to);
            if sent.is_err_and(|error| error.kind() == ErrorKind::WouldBlock) {
                system::wait_to_send(&self.socket);
                // What cannot be sent even now is lost, like packets on the way.
                let _ = self.socket.send_to(&packet, to);
            }
        }
    }

    /// Reads standard input. Returns whether there may be more.
    fn read(&mut self, input: &mut std::fs::File) -> std::io::Result<bool> {
        let mut octets = [0; 4096];
        let count = match input.read(&mut octets) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(true),
            Err(error) => return Err(error),
        };
        for octet in octets.iter().take(count) {
            if *octet != b'\n' {
                if self.line.len() < LONGEST_LINE {
                    self.line.push(*octet);
                }
                continue;
            }
            let line = std::mem::take(&mut self.line);
            let line = String::from_utf8_lossy(&line);
            let now = self.now();
            match call(&line) {
                None => eprintln!("stp-rust: not understood: {line}"),
                Some((to, port, octets)) => {
                    let user = Service::caller(octets);
                    if !self.endpoint.call(now, to, port, user, &mut self.out) {
                        eprintln!("stp-rust: no room for a call");
                    }
                    self.flush();
                }
            }
        }
        Ok(count > 0)
    }
}

fn main() -> ExitCode {
    let Some(arguments) = arguments() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let served = Driver::new(&arguments).and_then(|mut driver| {
        // Whoever started the program waits for this.
        println!("ready");
        driver.serve()
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("stp-rust: {error}");
            ExitCode::FAILURE
        }
    }
}
