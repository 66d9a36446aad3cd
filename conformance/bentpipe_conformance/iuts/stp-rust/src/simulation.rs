//! Two endpoints over a path that loses, repeats and reorders, on a clock of its own; and packets at
//! random.

use crate::endpoint::{Config, Endpoint, Outgoing};
use crate::user::{pattern, Outcome, Service, User};
use crate::wire::{read, Begin, Options, Packet, Poll, Writer};
use crate::{Time, MILLISECOND, SECOND};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::rc::Rc;

/// Xorshift.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// What a user has seen, kept after its connection has gone.
#[derive(Debug, Default)]
struct Seen {
    received: Vec<u8>,
    closed: bool,
    outcomes: Vec<Outcome>,
}

struct Watched {
    service: Service,
    seen: Rc<RefCell<Seen>>,
}

impl User for Watched {
    fn takes(&self) -> bool {
        self.service.takes()
    }

    fn receive(&mut self, data: &[u8]) {
        let mut seen = self.seen.borrow_mut();
        assert!(!seen.closed, "data after the end");
        seen.received.extend(data);
        self.service.receive(data);
    }

    fn peer_closed(&mut self) {
        let before = std::mem::replace(&mut self.seen.borrow_mut().closed, true);
        assert!(!before, "the end twice");
        self.service.peer_closed();
    }

    fn produce(&mut self, most: usize, into: &mut VecDeque<u8>) {
        self.service.produce(most, into);
    }

    fn closes(&self) -> bool {
        self.service.closes()
    }

    fn outcome(&mut self, outcome: Outcome) {
        self.seen.borrow_mut().outcomes.push(outcome);
    }
}

type Log = Rc<RefCell<Vec<Rc<RefCell<Seen>>>>>;

fn endpoint(secret: u64, log: &Log) -> Endpoint<Watched> {
    let log = log.clone();
    let listen = move |port| {
        let service = Service::on(port)?;
        let seen = Rc::new(RefCell::new(Seen::default()));
        // A listener is asked for every good cookie; only one that hears something is looked at.
        log.borrow_mut().push(seen.clone());
        Some(Watched { service, seen })
    };
    Endpoint::new(Config {
        secrets: [secret, 2, secret ^ 3, 4],
        listen: Box::new(listen),
        mtu: Box::new(|_| 1500),
        keep_alive: 600 * SECOND,
    })
}

struct Path {
    delay: Time,
    jitter: Time,
    loss: u64,
    repeat: u64,
}

const CLEAN: Path = Path {
    delay: 250 * MILLISECOND,
    jitter: 0,
    loss: 0,
    repeat: 0,
};

struct World {
    now: Time,
    random: Random,
    path: Path,
    ends: [Endpoint<Watched>; 2],
    listeners: Log,
    flying: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
    count: u64,
    sent: Vec<(Time, usize, Vec<u8>)>,
}

fn address(end: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, end as u8 + 1], 7253))
}

impl World {
    fn new(seed: u64, path: Path) -> Self {
        let listeners = Log::default();
        Self {
            now: SECOND,
            random: Random(seed + 1),
            path,
            ends: [
                endpoint(seed + 1, &Log::default()),
                endpoint(seed + 2, &listeners),
            ],
            listeners,
            flying: BTreeMap::new(),
            count: 0,
            sent: Vec::new(),
        }
    }

    fn send(&mut self, from: usize, out: Outgoing) {
        for (to, packet) in out {
            assert_eq!(to, address(1 - from));
            assert!(packet.len() <= 1472);
            assert!(read(&packet).is_some());
            self.sent.push((self.now, from, packet.clone()));
            let copies = if self.random.chance(self.path.repeat) {
                2
            } else {
                1
            };
            for _ in 0..copies {
                if self.random.chance(self.path.loss) {
                    continue;
                }
                let jitter = match self.path.jitter {
                    0 => 0,
                    jitter => self.random.below(jitter),
                };
                let at = self.now + self.path.delay + jitter;
                self.count += 1;
                self.flying
                    .insert((at, self.count), (1 - from, packet.clone()));
            }
        }
    }

    fn call(&mut self, port: u16, octets: u64) -> Rc<RefCell<Seen>> {
        self.call_with(port, Service::caller(octets))
    }

    fn call_with(&mut self, port: u16, service: Service) -> Rc<RefCell<Seen>> {
        let seen = Rc::new(RefCell::new(Seen::default()));
        let user = Watched {
            service,
            seen: seen.clone(),
        };
        let mut out = Vec::new();
        let [caller, _] = &mut self.ends;
        assert!(caller.call(self.now, address(1), port, user, &mut out));
        self.send(0, out);
        seen
    }

    /// Runs until nothing is left to do or the time has come.
    fn run(&mut self, until: Time) {
        let mut steps = 0;
        loop {
            let flying = self.flying.keys().next().map(|(at, _)| *at);
            let timers = self.ends.iter().filter_map(Endpoint::deadline);
            let Some(next) = timers.chain(flying).min().filter(|next| *next <= until) else {
                self.now = until;
                return;
            };
            steps += 1;
            assert!(steps < 3_000_000, "no end at {}", self.now);
            self.now = self.now.max(next);
            let now = self.now;
            while let Some(entry) = self.flying.first_entry().filter(|e| e.key().0 <= now) {
                let (to, packet) = entry.remove();
                let mut out = Vec::new();
                self.ends[to].datagram(now, address(1 - to), &packet, &mut out);
                self.send(to, out);
            }
            for end in 0..2 {
                let mut out = Vec::new();
                self.ends[end].tick(now, &mut out);
                self.send(end, out);
                for (connection, _) in self.ends[end].users() {
                    let deadline = connection.deadline();
                    assert!(deadline.is_none_or(|at| at > now), "busy: {connection:?}");
                }
            }
        }
    }

    fn count(&self, from: usize, wanted: impl Fn(&Packet<'_>) -> bool) -> usize {
        let packets = self.sent.iter().filter(|(_, end, _)| *end == from);
        packets
            .filter(|(_, _, octets)| read(octets).is_some_and(|r| wanted(&r.packet)))
            .count()
    }
}

/// Of octets to be sent, so many that a connection does not end.
const FOREVER: u64 = 1 << 60;

fn stream(octets: u64) -> Vec<u8> {
    (0..octets).map(pattern).collect()
}

fn succeeded(seen: &Rc<RefCell<Seen>>) -> bool {
    seen.borrow().outcomes == [Outcome::Success]
}

#[test]
fn a_call_a_second_call_and_their_release() {
    let mut world = World::new(1, CLEAN);
    let first = world.call(7, 5000);
    world.run(100 * SECOND);
    assert!(succeeded(&first));
    assert_eq!(first.borrow().received, stream(5000));
    assert_eq!(world.count(0, |p| matches!(p, Packet::Begin(_))), 2);
    let before = world.sent.len();
    let second = world.call(7, 1000);
    world.run(200 * SECOND);
    assert!(succeeded(&second));
    assert_eq!(second.borrow().received, stream(1000));
    let begin = world.sent[before].2.clone();
    assert!(matches!(
        read(&begin).map(|r| r.packet),
        Some(Packet::Begin(begin)) if begin.fin && begin.data.len() == 1000
    ));
    assert_eq!(world.ends.each_ref().map(Endpoint::connections), [0, 0]);
    assert_eq!(world.count(0, |p| matches!(p, Packet::End(_))), 2);
    assert_eq!(world.count(1, |p| matches!(p, Packet::End(_))), 0);
    // The same BEGIN again, though late, opens nothing.
    let listeners = world.listeners.borrow().len();
    world.send(0, vec![(address(1), begin)]);
    world.run(300 * SECOND);
    assert_eq!(world.listeners.borrow().len(), listeners + 1);
    assert_eq!(world.ends[1].connections(), 0);
    assert_eq!(world.count(1, |p| matches!(p, Packet::End(_))), 1);
}

#[test]
fn nothing_is_lost_where_the_path_loses() {
    for seed in 0..80 {
        let path = Path {
            delay: [1, 20, 250][seed as usize % 3] * MILLISECOND,
            jitter: (seed % 5) * 30 * MILLISECOND,
            loss: [0, 2, 10, 25][seed as usize % 4],
            repeat: (seed % 7) * 3,
        };
        let mut world = World::new(seed, path);
        let mut calls = Vec::new();
        for n in 0..4 {
            let octets = world.random.below(200_000);
            calls.push((octets, world.call([7, 9][n % 2], octets)));
            let until = world.now + world.random.below(3000) * MILLISECOND;
            world.run(until);
        }
        world.run(4000 * SECOND);
        for (n, (octets, seen)) in calls.iter().enumerate() {
            let seen = seen.borrow();
            assert_eq!(seen.outcomes.len(), 1, "seed {seed}");
            if seen.outcomes == [Outcome::Success] {
                let expected = if n % 2 == 0 {
                    stream(*octets)
                } else {
                    Vec::new()
                };
                assert!(seen.received == expected, "seed {seed}");
                assert!(seen.closed);
            } else {
                assert!(world.path.loss >= 25, "seed {seed}");
            }
        }
        for seen in world.listeners.borrow().iter() {
            let seen = seen.borrow();
            assert!(seen.received == stream(seen.received.len() as u64));
            assert!(seen.outcomes.len() <= 1);
        }
        check(&world);
        assert_eq!(world.ends.each_ref().map(Endpoint::connections), [0, 0]);
    }
}

#[test]
fn loss_free_and_fast() {
    let mut world = World::new(5, CLEAN);
    let call = world.call(9, 3_000_000);
    let start = world.now;
    while call.borrow().outcomes.is_empty() {
        let until = world.now + 100 * MILLISECOND;
        world.run(until);
    }
    check(&world);
    assert!(succeeded(&call));
    // 256 SDs of credit a round trip would take 6 s, from slow start on a few more.
    assert!(world.now - start < 16 * SECOND, "{}", world.now - start);
    let sds = world.count(0, |p| matches!(p, Packet::Data { sd: Some(_), .. }));
    // The first 1428 octets go out with the BEGIN.
    assert_eq!(sds, (3_000_000_usize - 1428).div_ceil(1448));
}

#[test]
fn hundreds_at_once() {
    for (seed, jitter) in (6..).zip([0, 10, 100]) {
        let jitter = jitter * MILLISECOND;
        let loss = 3;
        let mut world = World::new(
            seed,
            Path {
                jitter,
                loss,
                ..CLEAN
            },
        );
        let calls: Vec<_> = (0..500).map(|_| world.call(7, 6000)).collect();
        world.run(600 * SECOND);
        check(&world);
        let good = calls.iter().filter(|call| succeeded(call)).count();
        let begins = world.count(0, |p| matches!(p, Packet::Begin(_)));
        let given = world.count(1, |p| matches!(p, Packet::Bgrej { .. }));
        println!("{jitter} us: {good} of 500 calls, {begins} BEGINs, {given} BGREJs");
        assert_eq!(good, 500);
        assert!(calls
            .iter()
            .all(|call| call.borrow().received == stream(6000)));
    }
}

#[test]
fn a_dead_peer_is_given_up() {
    let mut world = World::new(7, CLEAN);
    let call = world.call(19, FOREVER);
    world.run(20 * SECOND);
    world.path.loss = 100;
    world.run(300 * SECOND);
    assert_eq!(call.borrow().outcomes, [Outcome::Failure]);
    let call = world.call(19, FOREVER);
    world.run(400 * SECOND);
    assert_eq!(call.borrow().outcomes, [Outcome::Failure]);
    assert_eq!(world.ends.each_ref().map(Endpoint::connections), [0, 0]);
}

#[test]
fn silence_is_doubled_and_the_window_collapses_once() {
    let mut world = World::new(8, CLEAN);
    world.call(19, FOREVER);
    world.run(30 * SECOND);
    world.path.loss = 100;
    world.run(31 * SECOND);
    let polls = world.count(1, |p| matches!(p, Packet::Data { poll: Some(_), .. }));
    world.run(75 * SECOND);
    let after = world.count(1, |p| matches!(p, Packet::Data { poll: Some(_), .. }));
    assert!((4..9).contains(&(after - polls)), "{}", after - polls);
    for (connection, _) in world.ends[1].users() {
        assert_eq!(connection.sender().flight_and_window().1, 1448);
    }
}

#[test]
fn an_idle_connection_outlives_a_lost_poll() {
    let mut world = World::new(10, CLEAN);
    let call = world.call_with(7, Service::on(7).unwrap());
    world.run(590 * SECOND);
    world.path.loss = 100;
    world.run(620 * SECOND);
    world.path.loss = 0;
    let polls = |world: &World| world.count(0, |p| matches!(p, Packet::Data { .. }));
    assert!(polls(&world) > 1, "the POLL is repeated");
    world.run(1200 * SECOND);
    assert!(call.borrow().outcomes.is_empty());
    assert_eq!(world.ends.each_ref().map(Endpoint::connections), [1, 1]);
    world.path.loss = 100;
    world.run(2000 * SECOND);
    assert_eq!(call.borrow().outcomes, [Outcome::Failure]);
    assert_eq!(world.ends.each_ref().map(Endpoint::connections), [0, 0]);
}

#[test]
fn the_v_flag_is_set_until_a_connection_is_open() {
    let mut world = World::new(12, CLEAN);
    let flags = |world: &World| -> Vec<bool> {
        let sent = world.sent.iter();
        let packets = sent.filter_map(|(_, _, octets)| match read(octets)?.packet {
            Packet::Begin(begin) if begin.options.cookie.is_some() => Some(begin.void),
            _ => None,
        });
        packets.collect()
    };
    for _ in 0..2 {
        world.call(7, 10);
        world.run(world.now + 10 * SECOND);
    }
    assert_eq!(flags(&world), [true, false]);
    // Nobody listens there, so that the calls end in state 2. The first spends the last cookie; the
    // second has none, so that it leaves nothing behind.
    for _ in 0..2 {
        world.call(8, 10);
        world.run(world.now + 10 * SECOND);
    }
    for _ in 0..2 {
        world.call(7, 10);
        world.run(world.now + 10 * SECOND);
    }
    assert_eq!(flags(&world), [true, false, false, true, false]);
    for _ in 0..3 {
        world.call(7, 10);
    }
    world.call(8, 10);
    world.run(world.now + 10 * SECOND);
    world.call(7, 10);
    world.run(world.now + 10 * SECOND);
    assert_eq!(flags(&world)[5..], [false; 4]);
}

#[test]
fn what_cannot_be_is_discarded_whole() {
    let mut world = World::new(13, CLEAN);
    world.call_with(7, Service::on(7).unwrap());
    world.run(20 * SECOND);
    let (begin, source, destination) = world
        .sent
        .iter()
        .find_map(|(_, _, octets)| {
            let received = read(octets)?;
            match received.packet {
                Packet::Begin(begin) if begin.options.cookie.is_some() => {
                    Some((begin, received.source, received.destination))
                }
                _ => None,
            }
        })
        .unwrap();
    let writer = Writer {
        source,
        destination,
        tag: begin.csn as u16,
    };
    let poll = Poll {
        ns: (begin.iss + 1) & 0xff_ffff,
        nps: 1,
        timestamp: 5,
        csn: begin.csn,
    };
    let sdp = |poll: Poll| writer.sd(begin.iss, false, b"x", Some(&poll));
    let another = Poll {
        csn: begin.csn ^ 0x1_0000,
        ..poll
    };
    let elsewhere = Writer {
        source: 9,
        ..writer
    };
    let big = Begin {
        data: &[0; 1449],
        ..begin
    };
    let packets = [
        (sdp(another), 0),
        (sdp(Poll { nps: 0, ..poll }), 0),
        (writer.poll(&another), 0),
        // The cookie is used.
        (elsewhere.begin(&big), 1),
        // A STAT, and the octet with a POLL.
        (sdp(poll), 2),
    ];
    for (packet, answers) in packets {
        let mut out = Vec::new();
        world.ends[1].datagram(world.now, address(0), &packet, &mut out);
        assert_eq!(out.len(), answers, "{packet:?}");
    }
}

#[test]
fn a_begin_with_too_much_data_is_discarded_if_its_cookie_is_good() {
    let mut world = World::new(14, CLEAN);
    let writer = Writer {
        source: 9,
        destination: 7,
        tag: 1,
    };
    let mut ask = |cookie: Option<&[u8]>| {
        let options = Options {
            max_sd: None,
            cookie,
        };
        let begin = writer.begin(&Begin {
            fin: false,
            void: false,
            iss: 5,
            credit: 4,
            csn: 1,
            options,
            data: &[0; 1449],
        });
        let mut out = Vec::new();
        world.ends[1].datagram(world.now, address(0), &begin, &mut out);
        out.pop().map(|(_, packet)| packet)
    };
    let refusal = ask(None).unwrap();
    let Some(Packet::Bgrej { options, .. }) = read(&refusal).map(|r| r.packet) else {
        unreachable!()
    };
    assert_eq!(ask(options.cookie), None);
}

#[test]
fn a_user_that_writes_little_by_little_does_not_poll_with_every_sd() {
    let mut world = World::new(15, CLEAN);
    world.call_with(7, Service::on(7).unwrap());
    world.run(20 * SECOND);
    let (begin, writer) = world
        .sent
        .iter()
        .find_map(|(_, _, octets)| {
            let received = read(octets)?;
            let Packet::Begin(begin) = received.packet else {
                return None;
            };
            let (source, destination) = (received.source, received.destination);
            let tag = begin.csn as u16;
            let writer = Writer {
                source,
                destination,
                tag,
            };
            begin.options.cookie.map(|_| ((begin.iss, tag), writer))
        })
        .unwrap();
    let (iss, _) = begin;
    let start = world.now;
    let listener = &mut world.ends[1];
    let mut give = |at: Time, packet: Option<Vec<u8>>| -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        if let Some(packet) = packet {
            listener.datagram(at, address(0), &packet, &mut out);
        }
        listener.tick(at, &mut out);
        out.into_iter().map(|(_, packet)| packet).collect()
    };
    let polls = |packets: &[Vec<u8>]| {
        let is_poll = |packet: &&Vec<u8>| {
            matches!(
                read(packet).map(|r| r.packet),
                Some(Packet::Data { poll: Some(_), .. })
            )
        };
        (packets.len(), packets.iter().filter(is_poll).count())
    };
    let sd = |n: u32, fin| Some(writer.sd((iss + n) & 0xff_ffff, fin, b"x", None));
    // No POLL was sent before; then one an interval of 1 s after the other.
    let first = give(start, sd(0, false));
    assert_eq!(polls(&first), (1, 1));
    let Some(Packet::Data {
        sd: Some((number, ..)),
        ..
    }) = read(&first[0]).map(|r| r.packet)
    else {
        unreachable!()
    };
    let mut now = start;
    for n in 1..20 {
        now += 20 * MILLISECOND;
        assert_eq!(polls(&give(now, sd(n, false))), (1, 0));
    }
    let report = |n: u32| Some(writer.stat(number + n, number + 100, 1, start as u32, &[]));
    // What is acknowledged need not be asked about.
    assert_eq!(polls(&give(start + 500 * MILLISECOND, report(20))), (0, 0));
    assert_eq!(polls(&give(start + 900 * MILLISECOND, None)), (0, 0));
    // The end of the stream does not wait.
    let at = start + 901 * MILLISECOND;
    assert_eq!(polls(&give(at, sd(20, false))), (1, 1));
    assert_eq!(polls(&give(at + MILLISECOND, sd(21, false))), (1, 0));
    assert_eq!(polls(&give(at + 2 * MILLISECOND, sd(22, true))), (1, 1));
}

#[test]
fn a_restarted_listener_is_found_out() {
    let mut world = World::new(9, CLEAN);
    let call = world.call(19, FOREVER);
    world.run(20 * SECOND);
    world.ends[1] = endpoint(77, &world.listeners);
    let calls = world.call(7, 100);
    world.run(900 * SECOND);
    assert_eq!(call.borrow().outcomes, [Outcome::Failure]);
    assert!(succeeded(&calls));
}

#[test]
fn packets_at_random_do_no_harm() {
    let mut random = Random(11);
    for seed in 0..20 {
        let mut world = World::new(seed, CLEAN);
        world.path.delay = 20 * MILLISECOND;
        let calls = [
            world.call(7, 50_000),
            world.call(9, 50_000),
            world.call(19, 10),
        ];
        let mut now = world.now;
        for _ in 0..400 {
            now += random.below(20) * MILLISECOND;
            world.run(now);
            for _ in 0..10 {
                let to = random.below(2) as usize;
                let packet = forge(&mut random, &world.sent);
                let mut out = Vec::new();
                world.ends[to].datagram(now, address(1 - to), &packet, &mut out);
                assert!(out.len() < 40);
                world.send(to, out);
            }
        }
        for call in &calls {
            let seen = call.borrow();
            assert!(seen.received.len() < 5_000_000);
        }
        world.path.loss = 100;
        world.run(now + 800 * SECOND);
        assert_eq!(world.ends.each_ref().map(Endpoint::connections), [0, 0]);
    }
}

/// Octets at random, or a packet sent before with a few of them changed, mostly with a right
/// checksum.
fn forge(random: &mut Random, sent: &[(Time, usize, Vec<u8>)]) -> Vec<u8> {
    let mut packet = if sent.is_empty() || random.chance(20) {
        (0..random.below(80)).map(|_| random.next() as u8).collect()
    } else {
        let recent = sent.len().saturating_sub(60);
        let index = recent + random.below((sent.len() - recent) as u64) as usize;
        sent[index].2.clone()
    };
    for _ in 0..random.below(4) {
        if !packet.is_empty() {
            let index = random.below(packet.len().min(44) as u64) as usize;
            packet[index] = random.next() as u8;
        }
    }
    if random.chance(10) {
        packet.truncate(random.below(60) as usize);
    }
    if packet.len() >= 12 && random.chance(90) {
        if random.chance(50) {
            packet[4] =
                (packet[4] & 0xf0) | [1, 2, 3, 4, 7, 8, 9, 10, 11, 12][random.below(10) as usize];
        }
        packet[8] = 0;
        packet[9] = 0;
        let mut sum = 0u64;
        for pair in packet.chunks(2) {
            sum += u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u64::from(*low));
        }
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        let checksum = (!(sum as u16)).to_be_bytes();
        packet[8] = checksum[0];
        packet[9] = checksum[1];
    }
    packet
}

/// What one endpoint has sent on one connection so far.
#[derive(Default)]
struct Trace {
    begin: Vec<u8>,
    next: Option<u32>,
    sds: BTreeMap<u32, (bool, Vec<u8>)>,
    fin: Option<u32>,
    polls: u32,
    progress: Option<(u32, u32)>,
    ended: bool,
}

impl Trace {
    fn sd(&mut self, number: u32, fin: bool, data: &[u8]) {
        assert!(data.len() <= 1448);
        let sd = (fin, data.to_vec());
        if let Some(before) = self.sds.get(&number) {
            assert!(*before == sd, "another SD under the same number");
            return;
        }
        assert!(
            self.next.is_none_or(|next| next == number),
            "a number left out"
        );
        assert_eq!(self.fin, None, "an SD after the FIN");
        self.next = Some(number.wrapping_add(1) & 0xff_ffff);
        self.fin = fin.then_some(number);
        self.sds.insert(number, sd);
    }

    fn report(&mut self, nr: u32, nmr: u32, list: &[u32]) {
        use crate::seq::at_or_above;
        if let Some((last_nr, last_nmr)) = self.progress {
            assert!(at_or_above(last_nr, nr) && at_or_above(last_nmr, nmr));
        }
        self.progress = Some((nr, nmr));
        assert!(list.len() != 1 && list.len() <= 67);
        for pair in list.windows(2) {
            assert!(pair[0] != pair[1] && at_or_above(pair[0], pair[1]));
        }
        if let [first, .., bound] = list {
            assert!(at_or_above(nr, *first) && at_or_above(*bound, nmr));
        }
    }

    fn packet(&mut self, packet: &Packet<'_>, octets: &[u8]) {
        match packet {
            Packet::Begin(begin) => {
                assert!(self.begin.is_empty() || self.begin == octets);
                self.begin = octets.to_vec();
                assert!(begin.options.cookie.is_some() || begin.data.is_empty() && !begin.fin);
                self.next.get_or_insert(begin.iss);
                if begin.fin || !begin.data.is_empty() {
                    self.sd(begin.iss, begin.fin, begin.data);
                }
            }
            Packet::Bgak(bgak) => {
                self.next.get_or_insert(bgak.iss);
                self.report(bgak.nr, bgak.nmr, &[]);
            }
            Packet::Data { sd, poll } => {
                assert!(!self.ended);
                if let Some((number, fin, data)) = sd {
                    self.sd(*number, *fin, data);
                }
                if let Some(poll) = poll {
                    assert_eq!(poll.nps, self.polls + 1);
                    assert_eq!(Some(poll.ns), self.next);
                    self.polls = poll.nps;
                }
            }
            Packet::Stat { nr, nmr, list, .. } => {
                assert!(!self.ended);
                self.report(*nr, *nmr, list);
            }
            Packet::Ustat { nr, nmr, from, to } => {
                assert!(!self.ended);
                self.report(*nr, *nmr, &[*from, *to]);
            }
            Packet::End(_) => self.ended = true,
            _ => {}
        }
    }
}

/// Looks at all packets sent for what rules forbid whatever happens.
fn check(world: &World) {
    let mut traces: BTreeMap<(usize, u16, u16, u16), Trace> = BTreeMap::new();
    for (_, from, octets) in &world.sent {
        let received = read(octets).unwrap();
        let unbound = match &received.packet {
            Packet::End(end) => end.unknown,
            packet => matches!(packet, Packet::Endak { .. } | Packet::Bgrej { .. }),
        };
        if !unbound {
            let key = (*from, received.source, received.destination, received.tag);
            traces
                .entry(key)
                .or_default()
                .packet(&received.packet, octets);
        }
    }
}
