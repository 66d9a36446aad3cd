//! The program itself, over UDP: many calls at once, and calls that it makes.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};
use stp::endpoint::{Config, Endpoint};
use stp::user::{pattern, Outcome, Service, User};
use stp::SECOND;

#[derive(Default)]
struct Seen {
    received: Vec<u8>,
    outcome: Option<Outcome>,
}

struct Watched(Service, Rc<RefCell<Seen>>);

impl User for Watched {
    fn takes(&self) -> bool {
        self.0.takes()
    }
    fn receive(&mut self, data: &[u8]) {
        self.1.borrow_mut().received.extend(data);
        self.0.receive(data);
    }
    fn peer_closed(&mut self) {
        self.0.peer_closed();
    }
    fn produce(&mut self, most: usize, into: &mut VecDeque<u8>) {
        self.0.produce(most, into);
    }
    fn closes(&self) -> bool {
        self.0.closes()
    }
    fn outcome(&mut self, outcome: Outcome) {
        self.1.borrow_mut().outcome = Some(outcome);
    }
}

struct Program(Child, SocketAddr);

impl Program {
    fn start() -> Self {
        let free = UdpSocket::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_stp-rust"))
            .args(["--listen", &free.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = child.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self(child, free)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let end = Instant::now() + Duration::from_secs(5);
        while self.0.try_wait().unwrap().is_none() {
            if Instant::now() > end {
                self.0.kill().unwrap();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

struct Peer {
    socket: UdpSocket,
    endpoint: Endpoint<Watched>,
    start: Instant,
    listened: Rc<RefCell<Vec<Rc<RefCell<Seen>>>>>,
}

impl Peer {
    fn new() -> Self {
        let listened: Rc<RefCell<Vec<Rc<RefCell<Seen>>>>> = Rc::default();
        let log = listened.clone();
        let listen = move |port| {
            let seen = Rc::default();
            log.borrow_mut().push(Rc::clone(&seen));
            Service::on(port).map(|service| Watched(service, seen))
        };
        let endpoint = Endpoint::new(Config {
            secrets: [5, 6, 7, 8],
            listen: Box::new(listen),
            mtu: Box::new(|_| 1500),
            keep_alive: 600 * SECOND,
        });
        Self {
            socket: UdpSocket::bind("127.0.0.1:0").unwrap(),
            endpoint,
            start: Instant::now(),
            listened,
        }
    }

    fn call(&mut self, to: SocketAddr, port: u16, octets: u64) -> Rc<RefCell<Seen>> {
        let seen = Rc::default();
        let user = Watched(Service::caller(octets), Rc::clone(&seen));
        let now = self.start.elapsed().as_micros() as u64;
        let mut out = Vec::new();
        assert!(self.endpoint.call(now, to, port, user, &mut out));
        for (to, packet) in out {
            self.socket.send_to(&packet, to).unwrap();
        }
        seen
    }

    fn run(&mut self, done: impl Fn() -> bool) {
        let mut octets = [0; 65_536];
        let step = Duration::from_millis(1);
        self.socket.set_read_timeout(Some(step)).unwrap();
        let end = Instant::now() + Duration::from_secs(60);
        while !done() {
            assert!(Instant::now() < end, "too slow");
            let mut out = Vec::new();
            let result = self.socket.recv_from(&mut octets);
            let now = self.start.elapsed().as_micros() as u64;
            if let Ok((count, from)) = result {
                let datagram = octets.get(..count).unwrap();
                self.endpoint.datagram(now, from, datagram, &mut out);
            }
            self.endpoint.tick(now, &mut out);
            for (to, packet) in out {
                self.socket.send_to(&packet, to).unwrap();
            }
        }
    }
}

fn stream(octets: u64) -> Vec<u8> {
    (0..octets).map(pattern).collect()
}

#[test]
fn echo_to_hundreds_of_calls() {
    let program = Program::start();
    let mut peer = Peer::new();
    let calls: Vec<_> = (0..300).map(|_| peer.call(program.1, 7, 10_000)).collect();
    peer.run(|| calls.iter().all(|call| call.borrow().outcome.is_some()));
    for call in calls {
        let call = call.borrow();
        assert_eq!(call.outcome, Some(Outcome::Success));
        assert!(call.received == stream(10_000));
    }
}

#[test]
fn a_line_makes_it_call() {
    let mut program = Program::start();
    let mut peer = Peer::new();
    let port = peer.socket.local_addr().unwrap().port();
    let line = format!("nonsense\nopen 127.0.0.1 {port} 9 200000\n");
    let input = program.0.stdin.as_mut().unwrap();
    input.write_all(line.as_bytes()).unwrap();
    let listened = peer.listened.clone();
    let ended = |seen: &Rc<RefCell<Seen>>| seen.borrow().outcome.is_some();
    peer.run(|| listened.borrow().iter().any(ended));
    let listened = listened.borrow();
    let seen = listened.iter().find(|seen| ended(seen)).unwrap().borrow();
    assert_eq!(seen.outcome, Some(Outcome::Success));
    assert!(seen.received == stream(200_000));
}
