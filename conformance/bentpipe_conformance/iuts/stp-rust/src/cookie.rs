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
    newest: HashMap<SocketAddr, u64>,
}

impl Maker {
    /// A maker with a secret key.
    pub fn new(key: [u64; 2]) -> Self {
        Self {
            key,
            last: 0,
            used: BTreeMap::new(),
            newest: HashMap::new(),
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
        let later = self.newest.get(&address).is_none_or(|used| *used < number);
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
            if self.newest.get(&address) == Some(&number) {
                self.newest.remove(&address);
            }
        }
        self.used.len() < MOST_USED
    }

    /// Remembers a cookie that has opened a connection.
    pub fn remember(&mut self, number: u64, address: SocketAddr) {
        self.used.insert(number, address);
        self.newest.insert(address, number);
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

/// Cookies received, for later calls.
#[derive(Debug, Default)]
pub struct Purse(HashMap<SocketAddr, VecDeque<(Time, Kept)>>);

impl Purse {
    /// Keeps a cookie, if there is room.
    pub fn put(&mut self, now: Time, address: SocketAddr, kept: Kept) {
        if self.0.len() >= MOST_PEERS && !self.0.contains_key(&address) {
            self.0.retain(|_, cookies| {
                cookies.retain(|(at, _)| now <= at + LIFE);
                !cookies.is_empty()
            });
            if self.0.len() >= MOST_PEERS {
                return;
            }
        }
        let cookies = self.0.entry(address).or_default();
        cookies.retain(|(at, _)| now <= at + LIFE);
        if cookies.len() < MOST_OF_PEER {
            cookies.push_back((now, kept));
        }
    }

    /// Takes the one received first of those that may still be used.
    pub fn take(&mut self, now: Time, address: SocketAddr) -> Option<Kept> {
        let cookies = self.0.get_mut(&address)?;
        cookies.retain(|(at, _)| now <= at + LIFE);
        let kept = cookies.pop_front();
        if cookies.is_empty() {
            self.0.remove(&address);
        }
        kept.map(|(_, kept)| kept)
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
        maker.remember(number, address(1));
        assert_eq!(worth(&maker, 6 * SECOND, &cookie), Worth::Used);
        assert_eq!(worth(&maker, 6 * SECOND, &early), Worth::None);
        let later = maker.make(6 * SECOND, address(1));
        assert!(matches!(worth(&maker, 6 * SECOND, &later), Worth::Good(_)));
        assert!(maker.has_room(905 * SECOND));
        assert_eq!(worth(&maker, 905 * SECOND, &cookie), Worth::Used);
        assert!(maker.has_room(906 * SECOND));
        assert_eq!(worth(&maker, 906 * SECOND, &cookie), Worth::None);
        assert!(maker.newest.is_empty());
        assert_eq!(
            Maker::new([1, 3]).judge(SECOND, address(1), &cookie),
            Worth::None
        );
    }

    #[test]
    fn the_cookie_received_first_is_used_first() {
        let mut purse = Purse::default();
        let kept = |octet| Kept {
            cookie: vec![octet; 8],
            max_sd: 512,
        };
        purse.put(0, address(1), kept(1));
        purse.put(SECOND, address(1), kept(2));
        purse.put(2 * SECOND, address(1), kept(3));
        assert_eq!(purse.take(3 * SECOND, address(2)), None);
        assert_eq!(purse.take(3 * SECOND, address(1)), Some(kept(1)));
        assert_eq!(purse.take(602 * SECOND, address(1)), Some(kept(3)));
        assert_eq!(purse.take(602 * SECOND, address(1)), None);
        assert!(purse.0.is_empty());
    }
}
