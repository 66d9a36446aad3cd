//! Cookies: those made for callers, and those received from listeners.

use crate::siphash::siphash;
use crate::{Time, SECOND};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

/// A cookie opens connections for so long.
const LIFE: Time = 600 * SECOND;
/// A cookie that has opened one is remembered for so long after it was made.
const MEMORY: Time = 900 * SECOND;
/// As many cookies are remembered, and as many calls answered in that time.
const MOST_USED: usize = 1 << 18;
/// As many peers' cookies are kept.
const MOST_PEERS: usize = 1024;
/// As many cookies of one peer are kept.
const MOST_OF_PEER: usize = 8;
/// Octets of a cookie: its number and a code over number and address.
const LENGTH: usize = 16;

/// What a cookie is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worth {
    /// It may open a connection; the number is its own.
    Good(u64),
    /// It has opened a connection.
    Used,
    /// Neither.
    None,
}

/// Makes cookies and remembers those that were used.
#[derive(Debug)]
pub struct Maker {
    key: [u64; 2],
    last: u64,
    used: BTreeMap<u64, SocketAddr>,
    /// Of an address, the newest used cookie that came with V flag and voids those before.
    voids: HashMap<SocketAddr, u64>,
}

impl Maker {
    /// A maker with a secret key.
    pub fn new(key: [u64; 2]) -> Self {
        Self {
            key,
            last: 0,
            used: BTreeMap::new(),
            voids: HashMap::new(),
        }
    }

    /// A fresh cookie for an address. Its number is a clock's, in thousands of a microsecond.
    pub fn make(&mut self, now: Time, address: SocketAddr) -> [u8; LENGTH] {
        self.last = (self.last + 1).max(now * 1000);
        self.cookie(self.last, address)
    }

    fn cookie(&self, number: u64, address: SocketAddr) -> [u8; LENGTH] {
        let number = number.to_be_bytes();
        let mut text = number.to_vec();
        match address.ip() {
            IpAddr::V4(ip) => text.extend(ip.octets()),
            IpAddr::V6(ip) => text.extend(ip.octets()),
        }
        text.extend(address.port().to_be_bytes());
        let code = siphash(self.key, &text).to_be_bytes();
        let mut cookie = [0; LENGTH];
        for (octet, part) in cookie.iter_mut().zip(number.into_iter().chain(code)) {
            *octet = part;
        }
        cookie
    }

    /// What a cookie from an address is worth.
    pub fn judge(&self, now: Time, address: SocketAddr, cookie: &[u8]) -> Worth {
        let Some(number) = cookie
            .first_chunk()
            .map(|octets| u64::from_be_bytes(*octets))
        else {
            return Worth::None;
        };
        let right = self.cookie(number, address);
        let differs = right
            .iter()
            .zip(cookie)
            .fold(0, |all, (a, b)| all | (a ^ b));
        if cookie.len() != LENGTH || differs != 0 {
            return Worth::None;
        }
        if self.used.contains_key(&number) {
            return Worth::Used;
        }
        let later = self.voids.get(&address).is_none_or(|void| *void < number);
        if later && now <= made(number) + LIFE {
            Worth::Good(number)
        } else {
            Worth::None
        }
    }

    /// Whether one more used cookie can be remembered.
    pub fn has_room(&mut self, now: Time) -> bool {
        while let Some(oldest) = self.used.first_entry() {
            if now <= made(*oldest.key()) + MEMORY {
                break;
            }
            let (number, address) = oldest.remove_entry();
            if self.voids.get(&address) == Some(&number) {
                self.voids.remove(&address);
            }
        }
        self.used.len() < MOST_USED
    }

    /// Remembers a cookie that has opened a connection, and whether its BEGIN had the V flag.
    pub fn remember(&mut self, number: u64, address: SocketAddr, void: bool) {
        self.used.insert(number, address);
        if void {
            self.voids.insert(address, number);
        }
    }
}

fn made(number: u64) -> Time {
    number / 1000
}

/// A cookie with the MaxSD that came with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The octets.
    pub cookie: Vec<u8>,
    /// The peer's MaxSD.
    pub max_sd: usize,
}

/// What is known of a peer's address: its cookies, and what its listener may still have under way.
#[derive(Debug)]
struct Peer {
    /// The last start or failure. Cookies from answers to BEGINs sent before are not used.
    since: Moment,
    /// Connections were opened by BEGINs with V flag of calls made after this start or failure.
    clear: Option<Moment>,
    cookies: VecDeque<(Time, Kept)>,
}

/// Counts the failures: calls that ended before they were answered, though their BEGINs carried
/// cookies. Calls are made between two of those.
pub type Moment = u64;

/// Cookies received, for later calls.
#[derive(Debug, Default)]
pub struct Purse {
    peers: HashMap<SocketAddr, Peer>,
    now: Moment,
    /// What was known of peers before has been forgotten.
    forgotten: Moment,
}

impl Purse {
    /// The present moment.
    pub fn moment(&self) -> Moment {
        self.now
    }

    fn peer(&mut self, address: SocketAddr) -> &mut Peer {
        if self.peers.len() >= MOST_PEERS && !self.peers.contains_key(&address) {
            // As after a start.
            self.peers.clear();
            self.now += 1;
            self.forgotten = self.now;
        }
        let since = self.forgotten;
        self.peers.entry(address).or_insert_with(|| Peer {
            since,
            clear: None,
            cookies: VecDeque::new(),
        })
    }

    /// Keeps a cookie that answers a BEGIN sent at a moment, if there is room.
    pub fn put(&mut self, now: Time, address: SocketAddr, sent: Moment, kept: Kept) {
        let peer = self.peer(address);
        peer.cookies.retain(|(at, _)| now <= at + LIFE);
        if sent >= peer.since && peer.cookies.len() < MOST_OF_PEER {
            peer.cookies.push_back((now, kept));
        }
    }

    /// Takes one of the cookies that may still be used.
    pub fn take(&mut self, now: Time, address: SocketAddr) -> Option<Kept> {
        let peer = self.peers.get_mut(&address)?;
        peer.cookies.retain(|(at, _)| now <= at + LIFE);
        peer.cookies.pop_front().map(|(_, kept)| kept)
    }

    /// The last start or failure for an address.
    pub fn since(&self, address: SocketAddr) -> Moment {
        let peer = self.peers.get(&address);
        peer.map_or(self.forgotten, |peer| peer.since)
    }

    /// Whether a BEGIN with a cookie, of a call made after a start or failure, has to have the V flag.
    pub fn voids(&self, address: SocketAddr, since: Moment) -> bool {
        let peer = self.peers.get(&address);
        peer.and_then(|peer| peer.clear)
            .is_none_or(|clear| clear < since)
    }

    /// A BEGIN with V flag, of a call made after a start or failure, has opened a connection.
    pub fn opened(&mut self, address: SocketAddr, since: Moment) {
        let peer = self.peer(address);
        peer.clear = peer.clear.max(Some(since));
    }

    /// A call whose BEGIN carried a cookie has ended before it was answered.
    pub fn ended(&mut self, address: SocketAddr) {
        self.now += 1;
        let since = self.now;
        let peer = self.peer(address);
        peer.since = since.max(peer.since);
        peer.cookies.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    fn worth(maker: &Maker, now: Time, cookie: &[u8]) -> Worth {
        maker.judge(now, address(1), cookie)
    }

    #[test]
    fn a_cookie_is_good_once_for_one_address_and_not_for_ever() {
        let mut maker = Maker::new([1, 2]);
        let early = maker.make(5 * SECOND, address(1));
        let cookie = maker.make(5 * SECOND, address(1));
        let Worth::Good(number) = worth(&maker, 605 * SECOND, &cookie) else {
            unreachable!()
        };
        assert_eq!(worth(&maker, 606 * SECOND, &cookie), Worth::None);
        assert_eq!(maker.judge(SECOND, address(2), &cookie), Worth::None);
        for bit in 0..128 {
            let mut altered = cookie;
            altered[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(worth(&maker, 6 * SECOND, &altered), Worth::None);
        }
        maker.remember(number, address(1), true);
        assert_eq!(worth(&maker, 6 * SECOND, &cookie), Worth::Used);
        assert_eq!(worth(&maker, 6 * SECOND, &early), Worth::None);
        let later = maker.make(6 * SECOND, address(1));
        assert!(matches!(worth(&maker, 6 * SECOND, &later), Worth::Good(_)));
        assert!(maker.has_room(905 * SECOND));
        assert_eq!(worth(&maker, 905 * SECOND, &cookie), Worth::Used);
        assert!(maker.has_room(906 * SECOND));
        assert_eq!(worth(&maker, 906 * SECOND, &cookie), Worth::None);
        assert!(maker.voids.is_empty());
        assert_eq!(
            Maker::new([1, 3]).judge(SECOND, address(1), &cookie),
            Worth::None
        );
    }

    #[test]
    fn a_cookie_is_void_after_a_later_one_with_the_flag_only() {
        let mut maker = Maker::new([1, 2]);
        let cookies: Vec<_> = (0..4).map(|_| maker.make(SECOND, address(1))).collect();
        let number = |n: usize| u64::from_be_bytes(*cookies[n].first_chunk().unwrap());
        maker.remember(number(2), address(1), false);
        assert_eq!(worth(&maker, SECOND, &cookies[0]), Worth::Good(number(0)));
        maker.remember(number(1), address(1), true);
        assert_eq!(worth(&maker, SECOND, &cookies[0]), Worth::None);
        assert_eq!(worth(&maker, SECOND, &cookies[1]), Worth::Used);
        assert_eq!(worth(&maker, SECOND, &cookies[2]), Worth::Used);
        assert_eq!(worth(&maker, SECOND, &cookies[3]), Worth::Good(number(3)));
    }

    fn kept(octet: u8) -> Kept {
        Kept {
            cookie: vec![octet; 8],
            max_sd: 512,
        }
    }

    #[test]
    fn a_cookie_is_used_once_and_not_for_ever() {
        let mut purse = Purse::default();
        purse.put(0, address(1), 0, kept(1));
        purse.put(SECOND, address(1), 0, kept(2));
        purse.put(2 * SECOND, address(1), 0, kept(3));
        assert_eq!(purse.take(3 * SECOND, address(2)), None);
        assert_eq!(purse.take(3 * SECOND, address(1)), Some(kept(1)));
        assert_eq!(purse.take(602 * SECOND, address(1)), Some(kept(3)));
        assert_eq!(purse.take(602 * SECOND, address(1)), None);
    }

    #[test]
    fn a_call_that_ended_voids_what_it_may_have_left() {
        let mut purse = Purse::default();
        let voids = |purse: &Purse, port| purse.voids(address(port), purse.since(address(port)));
        let start = purse.since(address(1));
        assert!(voids(&purse, 1));
        purse.opened(address(1), start);
        assert!(!voids(&purse, 1) && voids(&purse, 2));
        purse.put(0, address(1), start, kept(1));
        purse.ended(address(1));
        purse.put(0, address(1), start, kept(2));
        assert_eq!(purse.take(0, address(1)), None);
        // A call made before is not concerned, and does not make up for it.
        assert!(!purse.voids(address(1), start));
        purse.opened(address(1), start);
        assert!(voids(&purse, 1));
        let later = purse.since(address(1));
        purse.put(0, address(1), purse.moment(), kept(3));
        assert_eq!(purse.take(0, address(1)), Some(kept(3)));
        purse.opened(address(1), later);
        assert!(!voids(&purse, 1));
        for port in 2..2000 {
            purse.opened(address(port), purse.since(address(port)));
        }
        assert!(voids(&purse, 1) && purse.peers.len() <= MOST_PEERS);
        purse.put(0, address(1), later, kept(4));
        assert_eq!(purse.take(0, address(1)), None);
    }
}
