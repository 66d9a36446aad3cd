//! The receiving half of a connection (sections 6.2, 6.3 and 6.5).

use crate::seq;
use crate::wire::Writer;
use std::collections::VecDeque;

/// What has arrived of the peer's stream, and what is permitted.
#[derive(Debug)]
pub struct Receiver {
    /// VR(R).
    next: u64,
    /// VR(H).
    high: u64,
    /// VR(MR).
    credit: u64,
    /// Everything below has been taken by the user.
    taken: u64,
    /// As many SDs may be held, delivered or not.
    window: u64,
    max_sd: usize,
    max_stat: usize,
    /// SDs from VR(R) on, with their FIN flags.
    held: VecDeque<Option<(Vec<u8>, bool)>>,
    /// Delivered, and not yet taken by the user.
    ready: VecDeque<Vec<u8>>,
    fin: Option<u64>,
    /// The last report showed no credit beyond VR(H).
    closed: bool,
}

impl Receiver {
    /// Nothing has arrived from a peer with this ISS. MaxSTAT is odd.
    pub fn new(iss: u32, window: u64, max_sd: usize, max_stat: usize) -> Self {
        let first = seq::first(iss);
        Self {
            next: first,
            high: first,
            credit: first + window,
            taken: first,
            window,
            max_sd,
            max_stat,
            held: VecDeque::new(),
            ready: VecDeque::new(),
            fin: None,
            closed: false,
        }
    }

    /// N(R).
    pub fn nr(&self) -> u32 {
        seq::wire(self.next)
    }

    /// N(MR), as last promised.
    pub fn nmr(&self) -> u32 {
        seq::wire(self.credit)
    }

    /// Whether the peer's stream has ended, and all of it was delivered.
    pub fn ended(&self) -> bool {
        self.fin.is_some_and(|fin| fin < self.next)
    }

    /// Hands the next SD's data to the user.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        let data = self.ready.pop_front()?;
        self.taken += 1;
        Some(data)
    }

    /// Takes an SD in. Returns the run that a USTAT has to report.
    pub fn sd(&mut self, number: u32, fin: bool, data: &[u8]) -> Option<(u64, u64)> {
        let offset = seq::ahead(self.next, number);
        if offset >= self.credit - self.next || data.len() > self.max_sd {
            return None;
        }
        let number = self.next + offset;
        let index = offset as usize;
        let known = self.held.get(index).is_some_and(Option::is_some);
        let beyond = self.fin.is_some_and(|last| number > last);
        if known || beyond || (fin && self.held.len() > index + 1) {
            return None;
        }
        let gap = (number > self.high).then_some((self.high, number));
        self.high = self.high.max(number + 1);
        if self.held.len() <= index {
            self.held.resize(index + 1, None);
        }
        if let Some(slot) = self.held.get_mut(index) {
            *slot = Some((data.to_vec(), fin));
        }
        if fin {
            self.fin = Some(number);
        }
        while let Some(Some((data, _))) = self.held.front_mut().map(Option::take) {
            self.held.pop_front();
            self.ready.push_back(data);
            self.next += 1;
        }
        gap
    }

    /// A POLL's N(S) raises VR(H), within the credit and up to the end of the stream.
    pub fn poll(&mut self, ns: u32) {
        let most = self.fin.map_or(self.credit, |fin| fin + 1).min(self.credit);
        let rise = seq::ahead(self.high, ns);
        if most.checked_sub(self.high).is_some_and(|most| rise <= most) {
            self.high += rise;
        }
    }

    /// Promises what there is room for, on the occasion of a report.
    fn promise(&mut self) {
        self.credit = self.credit.max(self.taken + self.window);
        self.closed = self.credit <= self.high;
    }

    /// The STATs that answer a POLL.
    pub fn stats(&mut self, writer: Writer, nps: u32, timestamp: u32, out: &mut Vec<Vec<u8>>) {
        self.promise();
        let list = self.list();
        let mut rest = list.as_slice();
        loop {
            let (part, more) = match rest.split_at_checked(self.max_stat) {
                Some((part, after)) if !after.is_empty() => {
                    let last = self.max_stat - 1;
                    (part, rest.split_at_checked(last).map(|(_, after)| after))
                }
                _ => (rest, None),
            };
            out.push(writer.stat(self.nr(), self.nmr(), nps, timestamp, part));
            match more {
                Some(more) => rest = more,
                None => return,
            }
        }
    }

    /// The list of section 3.5, not cut.
    fn list(&self) -> Vec<u32> {
        let mut list = Vec::new();
        if self.next == self.high {
            return list;
        }
        let mut missing = false;
        for number in self.next..self.high {
            let index = (number - self.next) as usize;
            let lacks = !self.held.get(index).is_some_and(Option::is_some);
            if lacks != missing {
                list.push(seq::wire(number));
                missing = lacks;
            }
        }
        list.push(seq::wire(self.high));
        list
    }

    /// The USTAT for a run.
    pub fn ustat(&mut self, writer: Writer, run: (u64, u64)) -> Vec<u8> {
        self.promise();
        let (from, to) = (seq::wire(run.0), seq::wire(run.1));
        writer.ustat(self.nr(), self.nmr(), from, to)
    }

    /// Announces credit, where the last report showed none, there is enough again, and the stream
    /// has not ended.
    pub fn announce(&mut self, writer: Writer, out: &mut Vec<Vec<u8>>) {
        let enough = 16.min(self.window.div_ceil(2));
        if self.closed && self.fin.is_none() && self.taken + self.window >= self.high + enough {
            self.promise();
            out.push(writer.stat(self.nr(), self.nmr(), 0, 0, &[]));
        }
    }

    /// SDs kept, for tests.
    #[cfg(test)]
    pub fn kept(&self) -> usize {
        self.held.len() + self.ready.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{read, Packet};

    const WRITER: Writer = Writer {
        source: 1,
        destination: 2,
        tag: 3,
    };

    fn lists(receiver: &mut Receiver, nps: u32) -> Vec<Vec<u32>> {
        let mut out = Vec::new();
        receiver.stats(WRITER, nps, 0, &mut out);
        let parts = out
            .iter()
            .map(|octets| match read(octets).map(|r| r.packet) {
                Some(Packet::Stat { list, .. }) => list,
                _ => unreachable!(),
            });
        parts.collect()
    }

    #[test]
    fn the_example_of_section_3_5() {
        let mut receiver = Receiver::new(7, 64, 1448, 67);
        assert_eq!(
            receiver.sd(9, false, b"x"),
            Some((seq::first(7), seq::first(9)))
        );
        assert_eq!(receiver.sd(10, false, b"y"), None);
        receiver.poll(12);
        assert_eq!(lists(&mut receiver, 1), [[7, 9, 11, 12]]);
        assert_eq!(receiver.sd(11, false, b"z"), None);
        assert_eq!(lists(&mut receiver, 1), [[7, 9, 12]]);
        assert_eq!(receiver.sd(9, false, b"other"), None);
        receiver.sd(8, false, b"");
        receiver.sd(7, false, b"a");
        assert_eq!(receiver.nr(), 12);
        assert_eq!(lists(&mut receiver, 1), [[]]);
        let data: Vec<u8> = std::iter::from_fn(|| receiver.take()).flatten().collect();
        assert_eq!(data, b"axyz");
    }

    #[test]
    fn a_long_list_is_cut_with_an_overlap() {
        let mut receiver = Receiver::new(0xff_fffe, 64, 1448, 5);
        for n in [1, 3, 5, 7] {
            receiver.sd(n, false, b"x");
        }
        let expected = [vec![0xff_fffe, 1, 2, 3, 4], vec![4, 5, 6, 7, 8]];
        assert_eq!(lists(&mut receiver, 1), expected);
        receiver.poll(9);
        let expected = [vec![0xff_fffe, 1, 2, 3, 4], vec![4, 5, 6, 7, 8], vec![8, 9]];
        assert_eq!(lists(&mut receiver, 1), expected);
    }

    #[test]
    fn the_credit_bounds_everything() {
        let mut receiver = Receiver::new(0, 4, 10, 67);
        assert_eq!(receiver.sd(4, false, b"x"), None);
        receiver.poll(5);
        assert_eq!(receiver.high, seq::first(0));
        assert_eq!(receiver.sd(0, false, &[0; 11]), None);
        assert_eq!(receiver.kept(), 0);
        for n in 0..4 {
            receiver.sd(n, false, b"x");
        }
        let mut out = Vec::new();
        receiver.announce(WRITER, &mut out);
        assert!(out.is_empty());
        assert_eq!(lists(&mut receiver, 1), [[]]);
        receiver.take();
        receiver.announce(WRITER, &mut out);
        assert!(out.is_empty());
        receiver.take();
        receiver.announce(WRITER, &mut out);
        receiver.announce(WRITER, &mut out);
        assert_eq!(out.len(), 1);
        assert_eq!(receiver.nmr(), 6);
    }

    #[test]
    fn a_fin_ends_the_stream() {
        let mut receiver = Receiver::new(0, 8, 10, 67);
        receiver.sd(2, false, b"c");
        receiver.sd(1, true, b"b");
        assert_eq!(receiver.fin, None);
        receiver.sd(3, true, b"d");
        receiver.sd(4, false, b"e");
        assert_eq!(receiver.held.len(), 4);
        receiver.sd(0, false, b"a");
        assert!(!receiver.ended());
        receiver.sd(1, false, b"b");
        assert!(receiver.ended());
    }

    #[test]
    fn nothing_is_expected_beyond_a_fin() {
        let mut receiver = Receiver::new(0, 4, 10, 67);
        receiver.sd(2, true, b"c");
        receiver.poll(4);
        assert_eq!(lists(&mut receiver, 1), [[0, 2, 3]]);
        receiver.poll(3);
        receiver.sd(1, false, b"b");
        receiver.sd(0, false, b"a");
        assert_eq!(lists(&mut receiver, 2), [[]]);
        // All is taken: there would be credit to announce, were there anything to come.
        receiver.closed = true;
        while receiver.take().is_some() {}
        let mut out = Vec::new();
        receiver.announce(WRITER, &mut out);
        assert!(out.is_empty());
    }
}
