//! The sending half of a connection: SDs, reports and what may leave (sections 6.1 and 6.4).

use crate::congestion::Congestion;
use crate::rtt::Rtt;
use crate::seq;
use crate::user::User;
use crate::{Time, SECOND};
use std::collections::{BTreeSet, VecDeque};

/// As many new SDs are counted in a lap; seven laps have to last longer than a packet lives.
const LAP: u64 = 1 << 20;
const LAPS: usize = 7;
/// The longest life of a packet.
const MSL: Time = 120 * SECOND;

/// An SD that was sent, until it has arrived.
#[derive(Debug)]
struct Sd {
    data: Vec<u8>,
    fin: bool,
    /// POLLs sent before its last transmission.
    stamp: u64,
    /// Number of its last transmission among all.
    transmission: u64,
    once: bool,
    arrived: bool,
    awaiting: bool,
}

impl Sd {
    fn size(&self) -> usize {
        self.data.len().max(1)
    }
}

/// What may leave next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// A retransmission.
    Again(u64),
    /// A new SD.
    New,
    /// Something waits, for window or credit.
    Forbidden,
    /// Something waits for this time.
    Later(Time),
    /// Nothing.
    Nothing,
}

/// An SD to be sent.
#[derive(Debug, PartialEq, Eq)]
pub struct Outgoing<'a> {
    /// Its number.
    pub number: u32,
    /// FIN flag.
    pub fin: bool,
    /// User data.
    pub data: &'a [u8],
}

/// What a report says, as it stood in the packet.
#[derive(Debug)]
pub struct Report<'a> {
    /// N(R).
    pub nr: u32,
    /// N(MR).
    pub nmr: u32,
    /// Of a STAT: N(PS) and timestamp.
    pub poll: Option<(u32, u32)>,
    /// List elements.
    pub list: &'a [u32],
}

/// The sending half of a connection.
#[derive(Debug)]
pub struct Sender {
    /// VT(A).
    acknowledged: u64,
    /// VT(MS).
    credit: u64,
    /// VT(PS).
    polls: u64,
    /// VT(PA).
    answered: u64,
    /// SDs from VT(A) up to VT(S).
    sds: VecDeque<Sd>,
    again: BTreeSet<u64>,
    flight: usize,
    transmissions: u64,
    /// As many SDs are kept at most.
    limit: u64,
    unsent: VecDeque<u8>,
    closing: bool,
    fin: Option<u64>,
    laps: VecDeque<Time>,
    /// The window.
    pub congestion: Congestion,
    /// The round-trip time.
    pub rtt: Rtt,
}

impl Sender {
    /// Nothing has been sent.
    pub fn new(iss: u32, limit: u64, smss: usize, rtt: Rtt) -> Self {
        let first = seq::first(iss);
        Self {
            acknowledged: first,
            credit: first + 4,
            polls: 0,
            answered: 0,
            sds: VecDeque::new(),
            again: BTreeSet::new(),
            flight: 0,
            transmissions: 0,
            limit,
            unsent: VecDeque::new(),
            closing: false,
            fin: None,
            laps: VecDeque::new(),
            congestion: Congestion::new(smss),
            rtt,
        }
    }

    /// Begins again with another ISS and the whole stream.
    pub fn restart(&mut self, iss: u32, smss: usize) {
        let mut again = Self::new(iss, self.limit, smss, self.rtt.clone());
        again.unsent = self.sds.drain(..).flat_map(|sd| sd.data).collect();
        again.unsent.append(&mut self.unsent);
        *self = again;
    }

    /// The initial window, in the SMSS of the open connection.
    pub fn opened(&mut self, smss: usize) {
        self.congestion = Congestion::new(smss);
    }

    fn next_number(&self) -> u64 {
        self.acknowledged + self.sds.len() as u64
    }

    /// VT(S).
    pub fn ns(&self) -> u32 {
        seq::wire(self.next_number())
    }

    /// Whether any SD is unacknowledged.
    pub fn unacknowledged(&self) -> bool {
        !self.sds.is_empty()
    }

    /// Whether an SD that was sent is acknowledged.
    pub fn is_acknowledged(&self, number: u64) -> bool {
        number < self.acknowledged
    }

    /// Whether the end of the stream was sent and acknowledged.
    pub fn ended(&self) -> bool {
        self.fin.is_some_and(|fin| fin < self.acknowledged)
    }

    /// Whether N(R) is above the end of the stream.
    pub fn end_is_below(&self, nr: u32) -> bool {
        self.fin
            .is_some_and(|fin| (1..seq::HALF).contains(&seq::ahead(fin, nr)))
    }

    /// Whether there is anything that has not been sent, or is to be sent again.
    pub fn has_work(&self) -> bool {
        !self.again.is_empty() || self.has_new()
    }

    fn has_new(&self) -> bool {
        self.fin.is_none() && (self.closing || !self.unsent.is_empty())
    }

    /// Whether data waits for credit.
    pub fn starved(&self) -> bool {
        self.has_new() && self.next_number() >= self.credit
    }

    /// VT(MS), for comparisons.
    pub fn credit(&self) -> u64 {
        self.credit
    }

    /// Learns of credit.
    pub fn permit(&mut self, nmr: u32) {
        let rise = seq::ahead(self.credit, nmr);
        if rise < seq::HALF {
            self.credit += rise;
        }
    }

    /// Takes data from the user until there is more than `most` or no more.
    pub fn refill(&mut self, user: &mut dyn User, most: usize) {
        if self.fin.is_some() {
            return;
        }
        let want = (most + 1).saturating_sub(self.unsent.len());
        if want > 0 {
            user.produce(want, &mut self.unsent);
        }
        self.closing = user.closes();
    }

    /// What may leave now. New data has to be there already.
    pub fn next(&mut self, now: Time) -> Next {
        let rtt = self.rtt.smoothed();
        if let Some(number) = self.again.first().copied() {
            let size = self.get(number).map_or(1, Sd::size);
            if self.congestion.is_free() {
                return Next::Again(number);
            }
            if !self.congestion.fits(self.flight, size) {
                return Next::Forbidden;
            }
            let wait = self.congestion.wait(now, rtt, size);
            return wait.map_or(Next::Again(number), Next::Later);
        }
        if !self.has_new() {
            return Next::Nothing;
        }
        let size = self.unsent.len().clamp(1, self.congestion.smss());
        let number = self.next_number();
        let allowed = self.credit.min(self.acknowledged + self.limit);
        if number >= allowed || !self.congestion.fits(self.flight, size) {
            return Next::Forbidden;
        }
        if let Some(oldest) = self.laps.front().filter(|_| number.is_multiple_of(LAP)) {
            let end = oldest + MSL;
            if self.laps.len() >= LAPS && now < end {
                return Next::Later(end);
            }
        }
        let wait = self.congestion.wait(now, rtt, size);
        wait.map_or(Next::New, Next::Later)
    }

    fn get(&self, number: u64) -> Option<&Sd> {
        let index = number.checked_sub(self.acknowledged)?;
        self.sds.get(usize::try_from(index).ok()?)
    }

    /// An SD as it is sent.
    pub fn outgoing(&self, number: u64) -> Option<Outgoing<'_>> {
        self.get(number).map(|sd| Outgoing {
            number: seq::wire(number),
            fin: sd.fin,
            data: &sd.data,
        })
    }

    /// Cuts a new SD of at most `most` octets, to be sent now.
    pub fn cut(&mut self, now: Time, most: usize) -> u64 {
        let number = self.next_number();
        let count = most.min(self.unsent.len());
        let data: Vec<u8> = self.unsent.drain(..count).collect();
        let fin = self.closing && self.unsent.is_empty();
        if fin {
            self.fin = Some(number);
        }
        if number.is_multiple_of(LAP) {
            self.laps.push_back(now);
            if self.laps.len() > LAPS {
                self.laps.pop_front();
            }
        }
        self.transmissions += 1;
        let sd = Sd {
            data,
            fin,
            stamp: self.polls,
            transmission: self.transmissions,
            once: true,
            arrived: false,
            awaiting: false,
        };
        self.flight += sd.size();
        self.congestion.sent(sd.size());
        self.sds.push_back(sd);
        number
    }

    /// An SD is to be sent again now.
    pub fn repeat(&mut self, number: u64) {
        self.again.remove(&number);
        let index = number.saturating_sub(self.acknowledged);
        let Some(sd) = self.sds.get_mut(index as usize) else {
            return;
        };
        self.transmissions += 1;
        sd.stamp = self.polls;
        sd.transmission = self.transmissions;
        sd.once = false;
        sd.awaiting = false;
        self.flight += sd.size();
        if self.congestion.is_free() {
            self.congestion.free_used();
        } else {
            self.congestion.sent(sd.size());
        }
    }

    /// The number of a new POLL.
    pub fn count_poll(&mut self) -> u32 {
        self.polls += 1;
        seq::poll_wire(self.polls)
    }

    /// Two silences since the last valid report.
    pub fn collapse(&mut self) {
        let largest = self.sds.iter().map(Sd::size).max().unwrap_or(1);
        self.congestion.collapse(self.transmissions, largest);
    }

    /// Takes N(R) of a BGAK as that of a report, if it can be one; the window does not grow.
    pub fn accept(&mut self, nr: u32) -> bool {
        let Some(number) = self.read_nr(nr) else {
            return false;
        };
        self.release(number);
        true
    }

    fn read_nr(&self, nr: u32) -> Option<u64> {
        let offset = seq::ahead(self.acknowledged, nr);
        (offset <= self.sds.len() as u64).then(|| self.acknowledged + offset)
    }

    /// Everything below `number` has arrived. Returns the octets newly known to have.
    fn release(&mut self, number: u64) -> usize {
        let mut octets = 0;
        while self.acknowledged < number {
            octets += self.mark_arrived(self.acknowledged);
            self.sds.pop_front();
            self.acknowledged += 1;
        }
        octets
    }

    fn mark_arrived(&mut self, number: u64) -> usize {
        let Some(index) = number.checked_sub(self.acknowledged) else {
            return 0;
        };
        let Some(sd) = self.sds.get_mut(index as usize) else {
            return 0;
        };
        if sd.arrived {
            return 0;
        }
        let size = sd.size();
        sd.arrived = true;
        sd.data = Vec::new();
        if sd.awaiting {
            sd.awaiting = false;
            self.again.remove(&number);
        } else {
            self.flight = self.flight.saturating_sub(size);
        }
        size
    }

    /// Reads the list of a report; `None` if the report is invalid.
    fn read_list(&self, report: &Report<'_>, nr: u64) -> Option<Vec<u64>> {
        if report.list.len() == 1 {
            return None;
        }
        let mut least = nr;
        let mut list = Vec::with_capacity(report.list.len());
        for element in report.list {
            let number = self.read_nr(*element).filter(|number| *number >= least)?;
            least = number + 1;
            list.push(number);
        }
        match report.list.last() {
            Some(bound) if !seq::at_or_above(*bound, report.nmr) => None,
            _ => Some(list),
        }
    }

    /// Takes a report in; `clock` has the unit of timestamps. Returns whether it was valid and not
    /// old.
    pub fn report(&mut self, clock: u32, report: &Report<'_>) -> bool {
        let Some(nr) = self.read_nr(report.nr) else {
            return false;
        };
        let Some(list) = self.read_list(report, nr) else {
            return false;
        };
        let mut poll = None;
        match report.poll {
            None => {}
            Some((0, _)) if list.is_empty() => {}
            Some((0, _)) => return false,
            Some((number, timestamp)) => {
                let Some(count) = seq::poll_count(self.polls, number) else {
                    return false;
                };
                if count < self.answered {
                    return false;
                }
                if count > self.answered {
                    let sample = Time::from(clock.wrapping_sub(timestamp));
                    if sample < MSL {
                        self.rtt.measure(sample);
                    }
                }
                self.answered = count;
                poll = Some(count);
            }
        }
        let before = self.flight;
        self.permit(report.nmr);
        let mut octets = self.release(nr);
        let mut reduction = false;
        for (index, run) in list.windows(2).enumerate() {
            let [from, to] = *run else { continue };
            for number in from..to {
                if index % 2 == 1 {
                    octets += self.mark_arrived(number);
                } else {
                    reduction |= self.mark_missing(number, report.poll.is_some(), poll);
                }
            }
        }
        if reduction {
            self.congestion.reduce(self.transmissions);
        } else if octets > 0 {
            self.congestion.arrived(octets, before);
        }
        true
    }

    /// An SD is missing, by a STAT with a poll number or by a USTAT. Returns whether its loss calls
    /// for a reduction of the window.
    fn mark_missing(&mut self, number: u64, stat: bool, poll: Option<u64>) -> bool {
        let Some(index) = number.checked_sub(self.acknowledged) else {
            return false;
        };
        let Some(sd) = self.sds.get_mut(index as usize) else {
            return false;
        };
        let due = if stat {
            poll.is_some_and(|poll| sd.stamp < poll)
        } else {
            sd.once
        };
        if sd.arrived || sd.awaiting || !due {
            return false;
        }
        sd.awaiting = true;
        self.flight = self.flight.saturating_sub(sd.size());
        self.again.insert(number);
        self.congestion.calls_for_reduction(sd.transmission)
    }

    /// Octets in flight and window, for tests.
    #[cfg(test)]
    pub fn flight_and_window(&self) -> (usize, usize) {
        (self.flight, self.congestion.window())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user::Service;

    fn sender(octets: u64) -> (Sender, Service) {
        let sender = Sender::new(0, 512, 1000, Rtt::new(SECOND));
        (sender, Service::caller(octets))
    }

    fn send(sender: &mut Sender, user: &mut Service, count: usize) {
        for _ in 0..count {
            sender.refill(user, 1000);
            assert!(matches!(sender.next(0), Next::New | Next::Later(_)));
            sender.cut(0, 1000);
        }
    }

    fn stat(sender: &mut Sender, nr: u32, nps: u32, list: &[u32]) -> bool {
        let poll = Some((nps, 0));
        let nmr = 100;
        let report = Report {
            nr,
            nmr,
            poll,
            list,
        };
        sender.report(0, &report)
    }

    fn ustat(sender: &mut Sender, nr: u32, from: u32, to: u32) -> bool {
        let report = Report {
            nr,
            nmr: 100,
            poll: None,
            list: &[from, to],
        };
        sender.report(0, &report)
    }

    #[test]
    fn the_example_of_appendix_a() {
        let (mut sender, mut user) = sender(11_000);
        sender.permit(100);
        sender.congestion.arrived(40_000, 4000);
        send(&mut sender, &mut user, 5);
        assert_eq!(sender.count_poll(), 1);
        assert!(stat(&mut sender, 5, 1, &[]));
        send(&mut sender, &mut user, 4);
        assert!(ustat(&mut sender, 7, 7, 8));
        assert_eq!(sender.next(0), Next::Again(seq::first(7)));
        send_again_after_poll(&mut sender, &mut user);
        assert!(stat(&mut sender, 7, 2, &[7, 8, 10]));
        assert!(sender.again.is_empty());
        send(&mut sender, &mut user, 1);
        assert!(sender.outgoing(seq::first(10)).is_some_and(|sd| sd.fin));
        assert_eq!(sender.count_poll(), 3);
        assert!(stat(&mut sender, 7, 3, &[7, 8, 11]));
        assert_eq!(sender.again.len(), 1);
        assert!(!stat(&mut sender, 11, 2, &[]));
        assert!(stat(&mut sender, 11, 3, &[]));
        assert!(sender.ended() && !sender.unacknowledged());
        assert_eq!(sender.flight_and_window().0, 0);
    }

    fn send_again_after_poll(sender: &mut Sender, user: &mut Service) {
        sender.refill(user, 1000);
        sender.cut(0, 1000);
        assert_eq!(sender.count_poll(), 2);
        assert!(!ustat(sender, 6, 7, 8), "below VT(A)");
        sender.repeat(seq::first(7));
        assert!(ustat(sender, 7, 7, 8), "sent twice");
        assert!(sender.again.is_empty());
    }

    #[test]
    fn invalid_reports_change_nothing() {
        let (mut sender, mut user) = sender(11_000);
        send(&mut sender, &mut user, 4);
        sender.count_poll();
        let before = format!("{sender:?}");
        for (nr, nps, list) in [
            (5, 1, &[][..]),
            (0xff_ffff, 1, &[]),
            (0, 2, &[]),
            (0, 1, &[1]),
            (1, 1, &[0, 2]),
            (0, 1, &[1, 1]),
            (0, 1, &[2, 1, 3]),
            (0, 1, &[1, 5]),
            (0, 0, &[1, 2]),
        ] {
            assert!(!stat(&mut sender, nr, nps, list), "{nr} {nps} {list:?}");
        }
        assert!(!ustat(&mut sender, 0, 2, 2));
        assert!(!ustat(&mut sender, 0, 0, 5));
        let beyond_credit = Report {
            nr: 0,
            nmr: 1,
            poll: None,
            list: &[0, 2],
        };
        assert!(!sender.report(0, &beyond_credit));
        assert_eq!(format!("{sender:?}"), before);
    }

    #[test]
    fn one_retransmission_goes_out_beyond_the_window() {
        let (mut sender, mut user) = sender(100_000);
        sender.permit(100);
        sender.congestion.arrived(4000, 4000);
        send(&mut sender, &mut user, 8);
        sender.refill(&mut user, 1000);
        assert_eq!(sender.next(0), Next::Forbidden);
        assert!(ustat(&mut sender, 0, 0, 2));
        assert_eq!(sender.flight_and_window(), (6000, 4000));
        assert_eq!(sender.next(0), Next::Again(seq::first(0)));
        sender.repeat(seq::first(0));
        assert_eq!(sender.next(0), Next::Forbidden);
        sender.count_poll();
        assert!(stat(&mut sender, 1, 1, &[1, 2, 8]));
        assert_eq!(sender.flight_and_window(), (0, 6000));
        assert!(sender.again.contains(&seq::first(1)));
    }

    #[test]
    fn no_number_is_used_twice_while_a_packet_lives() {
        let (mut sender, mut user) = sender(1 << 40);
        sender.rtt.measure(1);
        let mut now = 0;
        let mut sent = 0;
        while now < MSL {
            sender.refill(&mut user, 1);
            match sender.next(now) {
                Next::New => sender.cut(now, 1),
                Next::Later(time) => {
                    now = time;
                    continue;
                }
                other => unreachable!("{other:?}"),
            };
            sent += 1;
            assert!(sent < seq::HALF);
            let nr = sender.ns();
            sender.permit((nr + 64) & 0xff_ffff);
            assert!(sender.accept(nr));
        }
        assert!(sent > 6 * LAP);
    }
}
