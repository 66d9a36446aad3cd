//! Packets as octets: reading and building them (section 3).

/// Flag of BEGIN, SD and SDP: the stream ends with this packet.
const FIN: u8 = 1;
/// Flag of BEGIN: cookies made before its own are void.
const VOID: u8 = 2;
/// Flag of END: the connection is aborted.
const ABORT: u8 = 4;
/// Flag of END: the sender knows no such connection.
const UNKNOWN: u8 = 8;
/// The edition spoken here.
const VERSION: u8 = 2;
/// Every peer accepts this many octets of user data.
pub const LEAST_MAX_SD: usize = 512;

/// Reasons of END and BGREJ.
pub mod reason {
    /// Normal release.
    pub const NONE: u8 = 0;
    /// Aborted by the user.
    pub const ABORTED: u8 = 1;
    /// No such connection.
    pub const NO_CONNECTION: u8 = 2;
    /// Nobody listens on this port.
    pub const NOBODY: u8 = 3;
    /// Version not supported.
    pub const VERSION: u8 = 4;
    /// No resources.
    pub const RESOURCES: u8 = 5;
    /// Call anew with this cookie.
    pub const COOKIE: u8 = 6;
    /// The peer does not answer.
    pub const NO_ANSWER: u8 = 7;
}

/// What the options of a packet say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options<'a> {
    /// The sender's MaxSD, at least 512.
    pub max_sd: Option<usize>,
    /// A cookie of 8 to 32 octets.
    pub cookie: Option<&'a [u8]>,
}

/// What an END says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// A flag.
    pub abort: bool,
    /// R flag.
    pub unknown: bool,
    /// N(R).
    pub nr: u32,
    /// Reason.
    pub reason: u8,
    /// CSN of the sender.
    pub sender: u32,
    /// CSN of the recipient.
    pub recipient: u32,
}

/// What a POLL says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Poll {
    /// The next new number.
    pub ns: u32,
    /// Poll number.
    pub nps: u32,
    /// Of the POLL's sender.
    pub timestamp: u32,
    /// CSN of the sender.
    pub csn: u32,
}

/// What a BEGIN says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Begin<'a> {
    /// The stream ends with this packet's data.
    pub fin: bool,
    /// V flag: cookies made before the one it carries are void.
    pub void: bool,
    /// The number of the first SD.
    pub iss: u32,
    /// How many SDs are permitted.
    pub credit: u32,
    /// CSN of the sender.
    pub csn: u32,
    /// Options.
    pub options: Options<'a>,
    /// User data.
    pub data: &'a [u8],
}

/// What a BGAK says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bgak<'a> {
    /// The number of the first SD.
    pub iss: u32,
    /// N(MR).
    pub nmr: u32,
    /// CSN of the sender.
    pub sender: u32,
    /// CSN of the recipient.
    pub recipient: u32,
    /// N(R).
    pub nr: u32,
    /// Options.
    pub options: Options<'a>,
}

/// A packet without its ports and its tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Packet<'a> {
    /// A BEGIN.
    Begin(Begin<'a>),
    /// A BEGIN of another version.
    OtherBegin {
        /// CSN of the sender.
        csn: u32,
    },
    /// A BGAK.
    Bgak(Bgak<'a>),
    /// A BGREJ.
    Bgrej {
        /// Reason.
        reason: u8,
        /// CSN of the recipient.
        recipient: u32,
        /// Options.
        options: Options<'a>,
    },
    /// An END.
    End(End),
    /// An ENDAK.
    Endak {
        /// CSN of the recipient.
        recipient: u32,
    },
    /// An SD, an SDP or a POLL.
    Data {
        /// Number, FIN flag and user data, unless it is a POLL.
        sd: Option<(u32, bool, &'a [u8])>,
        /// The POLL, unless it is an SD.
        poll: Option<Poll>,
    },
    /// A STAT.
    Stat {
        /// N(R).
        nr: u32,
        /// N(MR).
        nmr: u32,
        /// N(PS).
        nps: u32,
        /// As the POLL had it.
        timestamp: u32,
        /// List elements.
        list: Vec<u32>,
    },
    /// A USTAT.
    Ustat {
        /// N(R).
        nr: u32,
        /// N(MR).
        nmr: u32,
        /// The first number missing.
        from: u32,
        /// The bound.
        to: u32,
    },
}

/// A packet with its ports and its tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received<'a> {
    /// The sender's STP port.
    pub source: u16,
    /// The recipient's STP port.
    pub destination: u16,
    /// Low half of a CSN.
    pub tag: u16,
    /// The rest.
    pub packet: Packet<'a>,
}

/// Takes fields from the front of octets.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(front)
    }

    fn number(&mut self, octets: usize) -> Option<u32> {
        let front = self.take(octets)?;
        Some(
            front
                .iter()
                .fold(0, |number, octet| number << 8 | u32::from(*octet)),
        )
    }

    fn octet(&mut self) -> Option<u8> {
        self.number(1).map(|number| number as u8)
    }

    fn short(&mut self) -> Option<u16> {
        self.number(2).map(|number| number as u16)
    }

    /// The low 24 bits of four octets.
    fn reserved_then_number(&mut self) -> Option<u32> {
        self.take(1)?;
        self.number(3)
    }

    fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

/// The one's complement sum of the octets' 16-bit words.
fn sum(octets: &[u8]) -> u16 {
    let words = octets.chunks(2).map(|pair| match pair {
        [high, low] => u64::from(u16::from_be_bytes([*high, *low])),
        [high] => u64::from(*high) << 8,
        _ => 0,
    });
    let mut total: u64 = words.sum();
    while total > 0xffff {
        total = (total >> 16) + (total & 0xffff);
    }
    total as u16
}

/// Reads a packet, unless it is malformed or its checksum is wrong.
pub fn read(octets: &[u8]) -> Option<Received<'_>> {
    if sum(octets) != 0xffff {
        return None;
    }
    let mut reader = Reader(octets);
    let source = reader.short()?;
    let destination = reader.short()?;
    let first = reader.octet()?;
    let sequence = reader.number(3)?;
    reader.number(2)?;
    let tag = reader.short()?;
    let flags = first >> 4;
    let packet = match first & 15 {
        1 => read_begin(reader, flags, sequence)?,
        2 => read_bgak(reader, sequence)?,
        3 => read_end(reader, flags, sequence)?,
        4 => {
            let recipient = reader.number(4)?;
            reader.end()?;
            Packet::Endak { recipient }
        }
        7 => read_bgrej(reader)?,
        8 => Packet::Data {
            sd: Some((sequence, flags & FIN != 0, reader.0)),
            poll: None,
        },
        9 => {
            let poll = read_poll(&mut reader, sequence.wrapping_add(1) & 0xff_ffff)?;
            Packet::Data {
                sd: Some((sequence, flags & FIN != 0, reader.0)),
                poll: Some(poll),
            }
        }
        10 => {
            let poll = Some(read_poll(&mut reader, sequence)?);
            reader.end()?;
            Packet::Data { sd: None, poll }
        }
        11 => read_stat(reader, sequence)?,
        12 => {
            let nmr = reader.reserved_then_number()?;
            let from = reader.reserved_then_number()?;
            let to = reader.reserved_then_number()?;
            reader.end()?;
            let nr = sequence;
            Packet::Ustat { nr, nmr, from, to }
        }
        _ => return None,
    };
    Some(Received {
        source,
        destination,
        tag,
        packet,
    })
}

fn read_begin<'a>(mut reader: Reader<'a>, flags: u8, iss: u32) -> Option<Packet<'a>> {
    let lead = reader.octet()?;
    let credit = reader.number(3)?;
    let csn = reader.number(4)?;
    if lead >> 4 != VERSION {
        return Some(Packet::OtherBegin { csn });
    }
    let options = read_options(reader.take(usize::from(lead & 15) * 4)?)?;
    Some(Packet::Begin(Begin {
        fin: flags & FIN != 0,
        void: flags & VOID != 0,
        iss,
        credit,
        csn,
        options,
        data: reader.0,
    }))
}

fn read_bgak<'a>(mut reader: Reader<'a>, iss: u32) -> Option<Packet<'a>> {
    let optlen = reader.octet()? & 15;
    let nmr = reader.number(3)?;
    let sender = reader.number(4)?;
    let recipient = reader.number(4)?;
    let nr = reader.reserved_then_number()?;
    let options = read_options(reader.take(usize::from(optlen) * 4)?)?;
    reader.end()?;
    Some(Packet::Bgak(Bgak {
        iss,
        nmr,
        sender,
        recipient,
        nr,
        options,
    }))
}

fn read_bgrej<'a>(mut reader: Reader<'a>) -> Option<Packet<'a>> {
    let reason = reader.octet()?;
    let optlen = reader.octet()? & 15;
    reader.take(2)?;
    let recipient = reader.number(4)?;
    let options = read_options(reader.take(usize::from(optlen) * 4)?)?;
    reader.end()?;
    Some(Packet::Bgrej {
        reason,
        recipient,
        options,
    })
}

fn read_end<'a>(mut reader: Reader<'a>, flags: u8, nr: u32) -> Option<Packet<'a>> {
    let reason = reader.octet()?;
    reader.take(3)?;
    let sender = reader.number(4)?;
    let recipient = reader.number(4)?;
    reader.end()?;
    Some(Packet::End(End {
        abort: flags & ABORT != 0,
        unknown: flags & UNKNOWN != 0,
        nr,
        reason,
        sender,
        recipient,
    }))
}

fn read_poll(reader: &mut Reader<'_>, ns: u32) -> Option<Poll> {
    let nps = reader.reserved_then_number()?;
    let timestamp = reader.number(4)?;
    let csn = reader.number(4)?;
    Some(Poll {
        ns,
        nps,
        timestamp,
        csn,
    })
}

fn read_stat<'a>(mut reader: Reader<'a>, nr: u32) -> Option<Packet<'a>> {
    let nmr = reader.reserved_then_number()?;
    let nps = reader.reserved_then_number()?;
    let timestamp = reader.number(4)?;
    let mut list = Vec::with_capacity(reader.0.len() / 4);
    while !reader.0.is_empty() {
        list.push(reader.reserved_then_number()?);
    }
    Some(Packet::Stat {
        nr,
        nmr,
        nps,
        timestamp,
        list,
    })
}

/// Of several options of a kind the first with a right length counts.
fn read_options(octets: &[u8]) -> Option<Options<'_>> {
    let mut reader = Reader(octets);
    let mut options = Options::default();
    while let Some(kind) = reader.octet() {
        if kind == 0 {
            continue;
        }
        let length = usize::from(reader.octet()?);
        let value = reader.take(length.checked_sub(2)?)?;
        match (kind, value) {
            (1, [high, low]) if options.max_sd.is_none() => {
                let most = usize::from(u16::from_be_bytes([*high, *low]));
                options.max_sd = Some(most.max(LEAST_MAX_SD));
            }
            (2, cookie) if (8..=32).contains(&cookie.len()) && options.cookie.is_none() => {
                options.cookie = Some(cookie);
            }
            _ => {}
        }
    }
    Some(options)
}

/// Builds packets from one STP port to another, with a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Writer {
    /// Own STP port.
    pub source: u16,
    /// The peer's STP port.
    pub destination: u16,
    /// Low half of a CSN.
    pub tag: u16,
}

impl Writer {
    /// For an answer to a packet.
    pub fn answer(to: &Received<'_>, tag: u16) -> Self {
        Self {
            source: to.destination,
            destination: to.source,
            tag,
        }
    }

    fn packet(self, kind: u8, flags: u8, sequence: u32, parts: &[&[u8]]) -> Vec<u8> {
        let length = parts.iter().map(|part| part.len()).sum::<usize>();
        let mut octets = Vec::with_capacity(12 + length);
        octets.extend(self.source.to_be_bytes());
        octets.extend(self.destination.to_be_bytes());
        octets.extend(word(flags << 4 | kind, sequence));
        octets.extend([0, 0]);
        octets.extend(self.tag.to_be_bytes());
        for part in parts {
            octets.extend_from_slice(part);
        }
        let checksum = (!sum(&octets)).to_be_bytes();
        for (field, octet) in octets.iter_mut().skip(8).zip(checksum) {
            *field = octet;
        }
        octets
    }

    /// A BEGIN.
    pub fn begin(self, begin: &Begin<'_>) -> Vec<u8> {
        let options = write_options(begin.options);
        let lead = VERSION << 4 | (options.len() / 4) as u8;
        let fin = if begin.fin { FIN } else { 0 };
        let void = if begin.void { VOID } else { 0 };
        self.packet(
            1,
            fin | void,
            begin.iss,
            &[
                &word(lead, begin.credit),
                &begin.csn.to_be_bytes(),
                &options,
                begin.data,
            ],
        )
    }

    /// A BGAK.
    pub fn bgak(self, bgak: &Bgak<'_>) -> Vec<u8> {
        let options = write_options(bgak.options);
        self.packet(
            2,
            0,
            bgak.iss,
            &[
                &word((options.len() / 4) as u8, bgak.nmr),
                &bgak.sender.to_be_bytes(),
                &bgak.recipient.to_be_bytes(),
                &word(0, bgak.nr),
                &options,
            ],
        )
    }

    /// A BGREJ.
    pub fn bgrej(self, reason: u8, recipient: u32, options: Options<'_>) -> Vec<u8> {
        let options = write_options(options);
        let lead = [reason, (options.len() / 4) as u8, 0, 0];
        self.packet(7, 0, 0, &[&lead, &recipient.to_be_bytes(), &options])
    }

    /// An END.
    pub fn end(self, end: &End) -> Vec<u8> {
        let abort = if end.abort { ABORT } else { 0 };
        let unknown = if end.unknown { UNKNOWN } else { 0 };
        self.packet(
            3,
            abort | unknown,
            end.nr,
            &[
                &word(end.reason, 0),
                &end.sender.to_be_bytes(),
                &end.recipient.to_be_bytes(),
            ],
        )
    }

    /// An ENDAK.
    pub fn endak(self, recipient: u32) -> Vec<u8> {
        self.packet(4, 0, 0, &[&recipient.to_be_bytes()])
    }

    /// An SD, or with a POLL an SDP.
    pub fn sd(self, number: u32, fin: bool, data: &[u8], poll: Option<&Poll>) -> Vec<u8> {
        let flags = if fin { FIN } else { 0 };
        match poll {
            None => self.packet(8, flags, number, &[data]),
            Some(poll) => self.packet(9, flags, number, &[&write_poll(poll), data]),
        }
    }

    /// A POLL.
    pub fn poll(self, poll: &Poll) -> Vec<u8> {
        self.packet(10, 0, poll.ns, &[&write_poll(poll)])
    }

    /// A STAT.
    pub fn stat(self, nr: u32, nmr: u32, nps: u32, timestamp: u32, list: &[u32]) -> Vec<u8> {
        let mut elements = Vec::with_capacity(list.len() * 4);
        for element in list {
            elements.extend(word(0, *element));
        }
        self.packet(
            11,
            0,
            nr,
            &[
                &word(0, nmr),
                &word(0, nps),
                &timestamp.to_be_bytes(),
                &elements,
            ],
        )
    }

    /// A USTAT.
    pub fn ustat(self, nr: u32, nmr: u32, from: u32, to: u32) -> Vec<u8> {
        self.packet(12, 0, nr, &[&word(0, nmr), &word(0, from), &word(0, to)])
    }
}

fn word(lead: u8, number: u32) -> [u8; 4] {
    (u32::from(lead) << 24 | number & 0xff_ffff).to_be_bytes()
}

fn write_poll(poll: &Poll) -> [u8; 12] {
    let mut octets = [0; 12];
    let fields = word(0, poll.nps)
        .into_iter()
        .chain(poll.timestamp.to_be_bytes())
        .chain(poll.csn.to_be_bytes());
    for (field, octet) in octets.iter_mut().zip(fields) {
        *field = octet;
    }
    octets
}

fn write_options(options: Options<'_>) -> Vec<u8> {
    let mut octets = Vec::new();
    if let Some(most) = options.max_sd {
        octets.extend([1, 4]);
        octets.extend((most.min(0xffff) as u16).to_be_bytes());
    }
    if let Some(cookie) = options.cookie {
        octets.extend([2, cookie.len() as u8 + 2]);
        octets.extend_from_slice(cookie);
    }
    octets.resize(octets.len().next_multiple_of(4), 0);
    octets
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITER: Writer = Writer {
        source: 7,
        destination: 50_000,
        tag: 0x1234,
    };

    fn packet(octets: &[u8]) -> Option<Packet<'_>> {
        read(octets).map(|received| received.packet)
    }

    fn with_checksum(mut octets: Vec<u8>) -> Vec<u8> {
        octets.splice(8..10, [0, 0]);
        let checksum = (!sum(&octets)).to_be_bytes();
        octets.splice(8..10, checksum);
        octets
    }

    #[test]
    fn a_begin_survives_the_wire() {
        for length in [8, 9, 32] {
            let cookie = vec![5; length];
            let begin = Begin {
                fin: true,
                void: length == 8,
                iss: 0xabcdef,
                credit: 77,
                csn: 0x0102_0304,
                options: Options {
                    max_sd: Some(1448),
                    cookie: Some(&cookie),
                },
                data: b"hello",
            };
            let octets = WRITER.begin(&begin);
            assert_eq!(packet(&octets), Some(Packet::Begin(begin)));
            let optlen = (6 + length).next_multiple_of(4);
            assert_eq!(octets.len(), 20 + optlen + 5);
        }
    }

    #[test]
    fn lengths_are_those_of_the_table() {
        let poll = Poll {
            ns: 1,
            nps: 2,
            timestamp: 3,
            csn: 4,
        };
        let end = End {
            abort: true,
            unknown: false,
            nr: 9,
            reason: 1,
            sender: 2,
            recipient: 3,
        };
        for (octets, length) in [
            (WRITER.end(&end), 24),
            (WRITER.endak(1), 16),
            (WRITER.bgrej(3, 1, Options::default()), 20),
            (WRITER.sd(1, false, b"abc", None), 15),
            (WRITER.sd(1, false, b"abc", Some(&poll)), 27),
            (WRITER.poll(&poll), 24),
            (WRITER.stat(1, 2, 3, 4, &[5, 6, 7]), 36),
            (WRITER.ustat(1, 2, 3, 4), 24),
        ] {
            assert_eq!(octets.len(), length);
            assert!(packet(&octets).is_some());
            let mut longer = octets.clone();
            longer.push(0);
            let kind = octets[4] & 15;
            let sized = !matches!(kind, 8 | 9);
            assert_eq!(packet(&with_checksum(longer)).is_none(), sized);
            let shorter = octets[..11].to_vec();
            assert!(packet(&with_checksum(shorter)).is_none());
            let mut wrong = octets;
            wrong[7] ^= 1;
            assert!(packet(&wrong).is_none());
        }
    }

    #[test]
    fn odd_options_are_skipped_and_bad_ones_refused() {
        let good = [9, 3, 0, 1, 3, 0, 1, 4, 1, 0, 1, 4, 9, 9, 0, 0];
        assert_eq!(read_options(&good).and_then(|o| o.max_sd), Some(512));
        assert_eq!(read_options(&[1, 4, 0]), None);
        assert_eq!(read_options(&[9, 1, 0, 0]), None);
        assert_eq!(read_options(&[0, 0, 0, 9]), None);
    }

    #[test]
    fn another_version_is_examined_no_further() {
        let begin = Begin {
            fin: false,
            void: false,
            iss: 1,
            credit: 4,
            csn: 8,
            options: Options::default(),
            data: &[],
        };
        let mut octets = WRITER.begin(&begin);
        octets[12] = 0x3f;
        assert_eq!(
            packet(&with_checksum(octets)),
            Some(Packet::OtherBegin { csn: 8 })
        );
    }
}
