//! Users of a connection: the services of section 11, and a caller that sends their pattern.

use std::collections::VecDeque;

/// Octets that echo keeps at most, apart from the last SD.
const ECHO_ROOM: usize = 1 << 16;

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Everything was delivered, both ways.
    Success,
    /// It was not, or it is not known.
    Failure,
}

/// What uses a connection.
pub trait User {
    /// Whether it takes more data.
    fn takes(&self) -> bool;
    /// Takes data.
    fn receive(&mut self, data: &[u8]);
    /// The peer's stream has ended.
    fn peer_closed(&mut self);
    /// Appends up to `most` octets of its stream.
    fn produce(&mut self, most: usize, into: &mut VecDeque<u8>);
    /// Whether its stream ends with what it has produced.
    fn closes(&self) -> bool;
    /// The connection has ended.
    fn outcome(&mut self, outcome: Outcome);
}

/// The octet at an offset of chargen's stream.
pub fn pattern(offset: u64) -> u8 {
    ((offset ^ (offset >> 8)) & 255) as u8
}

/// A service, or a caller.
#[derive(Debug)]
pub enum Service {
    /// Returns what it receives.
    Echo {
        /// Received and not yet returned.
        kept: VecDeque<u8>,
        /// The peer has closed.
        closed: bool,
    },
    /// Reads.
    Discard {
        /// The peer has closed.
        closed: bool,
    },
    /// Sends, to the end of a caller's stream or without end.
    Chargen {
        /// Octets produced.
        offset: u64,
        /// Where the stream ends.
        end: Option<u64>,
    },
}

impl Service {
    /// The service on a port.
    pub fn on(port: u16) -> Option<Self> {
        match port {
            7 => Some(Self::Echo {
                kept: VecDeque::new(),
                closed: false,
            }),
            9 => Some(Self::Discard { closed: false }),
            19 => Some(Self::Chargen {
                offset: 0,
                end: None,
            }),
            _ => None,
        }
    }

    /// A caller that sends so many octets and closes.
    pub fn caller(octets: u64) -> Self {
        Self::Chargen {
            offset: 0,
            end: Some(octets),
        }
    }
}

impl User for Service {
    fn takes(&self) -> bool {
        match self {
            Self::Echo { kept, .. } => kept.len() < ECHO_ROOM,
            Self::Discard { .. } | Self::Chargen { .. } => true,
        }
    }

    fn receive(&mut self, data: &[u8]) {
        if let Self::Echo { kept, .. } = self {
            kept.extend(data);
        }
    }

    fn peer_closed(&mut self) {
        match self {
            Self::Echo { closed, .. } | Self::Discard { closed } => *closed = true,
            Self::Chargen { offset, end } => {
                end.get_or_insert(*offset);
            }
        }
    }

    fn produce(&mut self, most: usize, into: &mut VecDeque<u8>) {
        match self {
            Self::Echo { kept, .. } => into.extend(kept.drain(..most.min(kept.len()))),
            Self::Discard { .. } => {}
            Self::Chargen { offset, end } => {
                let mut stop = offset.saturating_add(most as u64);
                if let Some(end) = end {
                    stop = stop.min(*end);
                }
                into.extend((*offset..stop).map(pattern));
                *offset = stop.max(*offset);
            }
        }
    }

    fn closes(&self) -> bool {
        match self {
            Self::Echo { kept, closed } => *closed && kept.is_empty(),
            Self::Discard { closed } => *closed,
            Self::Chargen { offset, end } => end.is_some_and(|end| *offset >= end),
        }
    }

    fn outcome(&mut self, _outcome: Outcome) {}
}
