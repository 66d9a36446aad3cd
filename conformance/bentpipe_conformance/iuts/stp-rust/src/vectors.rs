//! The test vectors of the specification, read line by line.

use crate::wire::{read, Options, Packet};

const PATH: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../../spec/bentpipe_spec/stp/vectors.json"
);

/// The value of a key in a line of JSON, without quotes.
fn value<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let key = format!("\"{key}\": ");
    let (_, rest) = line.split_once(&key)?;
    match rest.chars().next()? {
        '"' => rest[1..].split('"').next(),
        '[' => rest[1..].split(']').next(),
        _ => rest.split([',', '}']).next(),
    }
}

fn octets(hexadecimal: &str) -> Vec<u8> {
    let digits: Vec<u8> = hexadecimal.bytes().filter(|digit| *digit != b' ').collect();
    let pairs = digits
        .chunks(2)
        .map(|pair| std::str::from_utf8(pair).unwrap());
    pairs
        .map(|pair| u8::from_str_radix(pair, 16).unwrap())
        .collect()
}

struct Line<'a>(&'a str);

impl Line<'_> {
    fn is(&self, key: &str, number: impl Into<u64>) {
        let expected = value(self.0, key).and_then(|text| text.parse::<u64>().ok());
        assert_eq!(expected, Some(number.into()), "{key} in {}", self.0);
    }

    fn has(&self, flag: &str, set: bool) {
        let flags = value(self.0, "flags").unwrap_or_default();
        let expected = flags.split(", ").any(|name| name == format!("\"{flag}\""));
        assert_eq!(expected, set, "{flag} in {}", self.0);
    }

    fn carries(&self, data: &[u8]) {
        assert_eq!(octets(value(self.0, "data").unwrap()), data, "{}", self.0);
    }

    fn lists(&self, list: &[u32]) {
        let text: Vec<String> = list.iter().map(u32::to_string).collect();
        assert_eq!(
            value(self.0, "elements").unwrap(),
            text.join(", "),
            "{}",
            self.0
        );
    }

    fn opts(&self, options: &Options<'_>) {
        let most = value(self.0, "max_sd").and_then(|text| text.parse::<usize>().ok());
        assert_eq!(options.max_sd, most.map(|most| most.max(512)), "{}", self.0);
        let cookie = value(self.0, "cookie").filter(|text| *text != "null");
        let cookie = cookie.map(octets);
        assert_eq!(options.cookie, cookie.as_deref(), "{}", self.0);
    }

    fn packet(&self, packet: &Packet<'_>) -> &'static str {
        match packet {
            Packet::Begin(begin) => {
                self.has("FIN", begin.fin);
                self.has("V", begin.void);
                self.is("iss", begin.iss);
                self.is("n_mr", begin.credit);
                self.is("csn", begin.csn);
                self.opts(&begin.options);
                self.carries(begin.data);
                "BEGIN"
            }
            Packet::OtherBegin { csn } => {
                self.is("csn", *csn);
                assert_ne!(value(self.0, "version"), Some("2"));
                "BEGIN"
            }
            Packet::Bgak(bgak) => {
                self.is("iss", bgak.iss);
                self.is("n_mr", bgak.nmr);
                self.is("csn", bgak.sender);
                self.is("peer_csn", bgak.recipient);
                self.is("n_r", bgak.nr);
                self.opts(&bgak.options);
                "BGAK"
            }
            Packet::Bgrej {
                reason,
                recipient,
                options,
            } => {
                self.is("reason", *reason);
                self.is("peer_csn", *recipient);
                self.opts(options);
                "BGREJ"
            }
            Packet::End(end) => {
                self.has("A", end.abort);
                self.has("R", end.unknown);
                self.is("n_r", end.nr);
                self.is("reason", end.reason);
                self.is("csn", end.sender);
                self.is("peer_csn", end.recipient);
                "END"
            }
            Packet::Endak { recipient } => {
                self.is("peer_csn", *recipient);
                "ENDAK"
            }
            Packet::Data { sd, poll } => {
                if let Some((number, fin, data)) = sd {
                    self.is("n_s", *number);
                    self.has("FIN", *fin);
                    self.carries(data);
                }
                if let Some(poll) = poll {
                    let ns = sd.map_or(poll.ns, |_| poll.ns.wrapping_sub(1) & 0xff_ffff);
                    self.is("n_s", ns);
                    self.is("n_ps", poll.nps);
                    self.is("timestamp", poll.timestamp);
                    self.is("csn", poll.csn);
                }
                match (sd, poll) {
                    (Some(_), Some(_)) => "SDP",
                    (Some(_), None) => "SD",
                    _ => "POLL",
                }
            }
            Packet::Stat {
                nr,
                nmr,
                nps,
                timestamp,
                list,
            } => {
                self.is("n_r", *nr);
                self.is("n_mr", *nmr);
                self.is("n_ps", *nps);
                self.is("timestamp", *timestamp);
                self.lists(list);
                "STAT"
            }
            Packet::Ustat { nr, nmr, from, to } => {
                self.is("n_r", *nr);
                self.is("n_mr", *nmr);
                self.lists(&[*from, *to]);
                "USTAT"
            }
        }
    }
}

#[test]
fn vectors_are_read_as_they_say() {
    let Ok(text) = std::fs::read_to_string(PATH) else {
        eprintln!("skipped: there is no {PATH}");
        return;
    };
    if !text.contains("\"cookie\"") {
        eprintln!("skipped: the vectors are those of the first edition");
        return;
    }
    let mut count = 0;
    for line in text.lines() {
        if value(line, "name").is_none() || value(line, "carrier") != Some("udp") {
            continue;
        }
        // What carries a packet over IP names it.
        if value(line, "packet").is_some() {
            continue;
        }
        count += 1;
        let packet = octets(value(line, "octets").unwrap());
        let received = read(&packet);
        if value(line, "malformed").is_some() {
            assert_eq!(received, None, "{line}");
            continue;
        }
        let received = received.unwrap_or_else(|| panic!("discarded: {line}"));
        let fields = Line(line);
        fields.is("sport", received.source);
        fields.is("dport", received.destination);
        fields.is("tag", received.tag);
        assert_eq!(Some(fields.packet(&received.packet)), value(line, "type"));
    }
    assert!(count > 250, "only {count} vectors");
}
