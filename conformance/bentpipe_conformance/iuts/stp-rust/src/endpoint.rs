//! All connections of an address, and the answers to packets that belong to none.

use crate::connection::{no_connection, Action, Connection, Proof, Setup, State};
use crate::cookie::{Maker, Moment, Purse, Worth};
use crate::siphash::siphash;
use crate::user::User;
use crate::wire::{read, reason, Begin, Options, Packet, Received, Writer};
use crate::Time;
use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;

/// As many connections are kept.
const MOST_CONNECTIONS: usize = 1024;
/// While there are no more than these, a connection may hold and send much.
const FEW_CONNECTIONS: usize = 128;
/// SDs that a connection holds for its user, and those that it sends ahead: among few, among many.
const WINDOWS: [(u64, u64); 2] = [(256, 512), (32, 64)];
/// Own MaxSD.
const MAX_SD: usize = 1448;
/// Elements of a STAT.
const MAX_STAT: usize = 67;
/// The first port that calls.
const FIRST_PORT: u16 = 49_152;

/// What an endpoint is given at its start.
pub struct Config<U> {
    /// Secrets of this start.
    pub secrets: [u64; 4],
    /// Who listens on a port.
    pub listen: Box<dyn Fn(u16) -> Option<U>>,
    /// The MTU of the path to an address.
    pub mtu: Box<dyn Fn(SocketAddr) -> usize>,
    /// Timer_KEEP-ALIVE.
    pub keep_alive: Time,
}

/// A connection is identified by the peer's address and both STP ports.
type Key = (SocketAddr, u16, u16);

struct Slot<U> {
    connection: Connection,
    user: U,
    deadline: Option<Time>,
    /// The last start or failure for the address before the call was made.
    since: Moment,
    /// When the last BEGIN of the call was first sent.
    sent: Moment,
}

/// Packets to be sent, with their destinations.
pub type Outgoing = Vec<(SocketAddr, Vec<u8>)>;

/// What a BEGIN would do in state 1.
enum Verdict<U> {
    Discard,
    Refuse(u8),
    GiveCookie,
    NoConnection,
    Open(u64, U),
}

/// An endpoint.
pub struct Endpoint<U> {
    config: Config<U>,
    slots: HashMap<Key, Slot<U>>,
    timers: BTreeSet<(Time, Key)>,
    maker: Maker,
    purse: Purse,
    /// Connections so far.
    count: u32,
}

impl<U: User> Endpoint<U> {
    /// An endpoint without connections.
    pub fn new(config: Config<U>) -> Self {
        let [first, second, ..] = config.secrets;
        Self {
            config,
            slots: HashMap::new(),
            timers: BTreeSet::new(),
            maker: Maker::new([first, second]),
            purse: Purse::default(),
            count: 0,
        }
    }

    /// A datagram has arrived.
    pub fn datagram(&mut self, now: Time, from: SocketAddr, octets: &[u8], out: &mut Outgoing) {
        let Some(received) = read(octets) else {
            return;
        };
        let key = (from, received.source, received.destination);
        let mut packets = Vec::new();
        match &received.packet {
            Packet::OtherBegin { csn } => {
                let writer = Writer::answer(&received, 0);
                packets.push(writer.bgrej(reason::VERSION, *csn, Options::default()));
            }
            Packet::Begin(begin) => self.begin(now, key, &received, begin, &mut packets),
            _ => self.packet(now, key, &received, &mut packets),
        }
        out.extend(packets.into_iter().map(|packet| (from, packet)));
    }

    fn packet(&mut self, now: Time, key: Key, received: &Received<'_>, out: &mut Vec<Vec<u8>>) {
        let Some(slot) = self.slots.get_mut(&key) else {
            out.extend(no_connection(received));
            return;
        };
        let calling = slot.connection.state() == State::Calling;
        let action = slot.connection.handle(now, received, &mut slot.user, out);
        let (state, voids) = (slot.connection.state(), slot.connection.voids());
        let (since, sent) = (slot.since, slot.sent);
        let proves = slot.connection.proves();
        match action {
            Action::None => {}
            Action::Keep(kept) => self.purse.put(now, key.0, sent, kept),
            Action::CallAnew(kept) => {
                let numbers = self.numbers(key.0);
                let void = self.purse.voids(key.0, since);
                let proof = Proof { kept, void };
                if let Some(slot) = self.slots.get_mut(&key) {
                    slot.sent = self.purse.moment();
                    let connection = &mut slot.connection;
                    connection.call_anew(now, numbers, &proof, &mut slot.user, out);
                }
            }
        }
        match state {
            State::Open if calling && voids => self.purse.opened(key.0, since),
            State::Gone | State::Releasing if calling && proves => self.purse.ended(key.0),
            _ => {}
        }
        self.settle(now, key, out);
    }

    fn begin(
        &mut self,
        now: Time,
        key: Key,
        received: &Received<'_>,
        begin: &Begin<'_>,
        out: &mut Vec<Vec<u8>>,
    ) {
        if let Some(slot) = self.slots.get_mut(&key) {
            let connection = &slot.connection;
            match connection.state() {
                State::Calling => {
                    let writer = Writer::answer(received, 0);
                    out.push(writer.bgrej(reason::NOBODY, begin.csn, Options::default()));
                    return;
                }
                State::Open if connection.was_called() && connection.is_peer(begin.csn) => {
                    connection.bgak(&self.maker.make(now, key.0), out);
                    slot.connection.heard(now);
                    self.settle(now, key, out);
                    return;
                }
                State::Releasing if connection.is_peer(begin.csn) => return,
                _ => {}
            }
        }
        let writer = Writer::answer(received, 0);
        match self.judge(now, key, begin) {
            Verdict::Discard => {}
            Verdict::Refuse(reason) => {
                out.push(writer.bgrej(reason, begin.csn, Options::default()));
            }
            Verdict::NoConnection => out.extend(no_connection(received)),
            Verdict::GiveCookie => {
                let cookie = self.maker.make(now, key.0);
                let options = Options {
                    max_sd: Some(MAX_SD),
                    cookie: Some(&cookie),
                };
                out.push(writer.bgrej(reason::COOKIE, begin.csn, options));
            }
            Verdict::Open(number, user) => self.open(now, key, begin, number, user, out),
        }
    }

    fn judge(&mut self, now: Time, key: Key, begin: &Begin<'_>) -> Verdict<U> {
        let Some(user) = (self.config.listen)(key.2) else {
            return Verdict::Refuse(reason::NOBODY);
        };
        let has_room = self.maker.has_room(now);
        let cookie = begin.options.cookie.unwrap_or(&[]);
        let number = match self.maker.judge(now, key.0, cookie) {
            Worth::Used => return Verdict::NoConnection,
            Worth::None => return Verdict::GiveCookie,
            Worth::Good(number) => number,
        };
        if begin.data.len() > MAX_SD {
            return Verdict::Discard;
        }
        let replaced = usize::from(self.slots.contains_key(&key));
        if self.slots.len() - replaced >= MOST_CONNECTIONS || !has_room {
            return Verdict::Refuse(reason::RESOURCES);
        }
        Verdict::Open(number, user)
    }

    fn open(
        &mut self,
        now: Time,
        key: Key,
        begin: &Begin<'_>,
        number: u64,
        user: U,
        out: &mut Vec<Vec<u8>>,
    ) {
        if let Some(mut old) = self.slots.remove(&key) {
            old.connection.fail(&mut old.user);
            self.forget_timer(key, old.deadline);
        }
        self.maker.remember(number, key.0, begin.void);
        let cookie = self.maker.make(now, key.0);
        let setup = self.setup(key);
        let connection = Connection::accept(now, setup, begin, &cookie, out);
        self.insert(key, connection, user);
        self.settle(now, key, out);
    }

    /// Calls an STP port of an address. Returns whether there is room for the connection.
    pub fn call(
        &mut self,
        now: Time,
        to: SocketAddr,
        port: u16,
        mut user: U,
        out: &mut Outgoing,
    ) -> bool {
        if self.slots.len() >= MOST_CONNECTIONS {
            return false;
        }
        let span = u32::from(u16::MAX - FIRST_PORT) + 1;
        let start = self.count;
        let ports = (0..span).map(|n| FIRST_PORT + (start.wrapping_add(n) % span) as u16);
        let mut keys = ports.map(|own| (to, port, own));
        let Some(key) = keys.find(|key| !self.slots.contains_key(key)) else {
            return false;
        };
        let void = self.purse.voids(to, self.purse.since(to));
        let proof = self.purse.take(now, to).map(|kept| Proof { kept, void });
        let setup = self.setup(key);
        let mut packets = Vec::new();
        let connection = Connection::call(now, setup, proof.as_ref(), &mut user, &mut packets);
        self.insert(key, connection, user);
        self.settle(now, key, &mut packets);
        out.extend(packets.into_iter().map(|packet| (to, packet)));
        true
    }

    fn insert(&mut self, key: Key, connection: Connection, user: U) {
        let deadline = None;
        let slot = Slot {
            connection,
            user,
            deadline,
            since: self.purse.since(key.0),
            sent: self.purse.moment(),
        };
        self.slots.insert(key, slot);
    }

    /// A CSN newer than all before for the same address, and an ISS.
    fn numbers(&mut self, address: SocketAddr) -> (u32, u32) {
        let [.., third, fourth] = self.config.secrets;
        let text = address.to_string();
        let offset = siphash([third, fourth], text.as_bytes()) as u32;
        self.count = self.count.wrapping_add(1);
        // Zero stands for a CSN that is not known.
        if offset.wrapping_add(self.count) == 0 {
            self.count = self.count.wrapping_add(1);
        }
        let iss = siphash([fourth, third], &self.count.to_be_bytes()) as u32;
        (offset.wrapping_add(self.count), iss & 0xff_ffff)
    }

    fn setup(&mut self, key: Key) -> Setup {
        let (csn, iss) = self.numbers(key.0);
        let headers = if key.0.is_ipv4() { 20 } else { 40 };
        let mtu = (self.config.mtu)(key.0).clamp(576, 65_535);
        let elements = (mtu - headers - 24) / 4 - 2;
        let [few, many] = WINDOWS;
        let is_few = self.slots.len() < FEW_CONNECTIONS;
        let (window, limit) = if is_few { few } else { many };
        Setup {
            source: key.2,
            destination: key.1,
            csn,
            iss,
            window,
            limit,
            max_sd: MAX_SD,
            room: mtu - headers - 8,
            max_stat: MAX_STAT.min((elements - 1) | 1),
            keep_alive: self.config.keep_alive,
        }
    }

    fn forget_timer(&mut self, key: Key, deadline: Option<Time>) {
        if let Some(deadline) = deadline {
            self.timers.remove(&(deadline, key));
        }
    }

    /// Lets a connection do what it can, and sets its timer.
    fn settle(&mut self, now: Time, key: Key, out: &mut Vec<Vec<u8>>) {
        let Some(slot) = self.slots.get_mut(&key) else {
            return;
        };
        slot.connection.run(now, &mut slot.user, out);
        let before = slot.deadline.take();
        if slot.connection.state() == State::Gone {
            self.slots.remove(&key);
        } else {
            slot.deadline = slot.connection.deadline();
            if slot.deadline == before {
                return;
            }
            if let Some(deadline) = slot.deadline {
                self.timers.insert((deadline, key));
            }
        }
        self.forget_timer(key, before);
    }

    /// When [`tick`](Self::tick) is wanted next.
    pub fn deadline(&self) -> Option<Time> {
        self.timers.first().map(|(deadline, _)| *deadline)
    }

    /// Lets all timers expire whose time has come.
    pub fn tick(&mut self, now: Time, out: &mut Outgoing) {
        let due = self.timers.iter().take_while(|(at, _)| *at <= now);
        for key in due.map(|(_, key)| *key).collect::<Vec<_>>() {
            let Some(slot) = self.slots.get_mut(&key) else {
                continue;
            };
            let mut packets = Vec::new();
            let calling = slot.connection.state() == State::Calling;
            slot.connection.tick(now, &mut slot.user, &mut packets);
            let connection = &slot.connection;
            if calling && connection.proves() && connection.state() != State::Calling {
                self.purse.ended(key.0);
            }
            self.settle(now, key, &mut packets);
            out.extend(packets.into_iter().map(|packet| (key.0, packet)));
        }
    }

    /// How many connections there are.
    pub fn connections(&self) -> usize {
        self.slots.len()
    }

    /// All users, for tests.
    #[cfg(test)]
    pub fn users(&self) -> impl Iterator<Item = (&Connection, &U)> {
        self.slots
            .values()
            .map(|slot| (&slot.connection, &slot.user))
    }
}
