//! One connection: its states, its timers and what its packets do (sections 4 to 9).

use crate::cookie::Kept;
use crate::receiver::Receiver;
use crate::rtt::Rtt;
use crate::sender::{Next, Report, Sender};
use crate::user::{Outcome, User};
use crate::wire::{
    reason, Begin, Bgak, End, Options, Packet, Poll, Received, Writer, LEAST_MAX_SD,
};
use crate::{Time, MILLISECOND, SECOND};
use std::collections::VecDeque;

/// First time of Timer_CC.
const TIMER_CC: Time = SECOND;
/// Transmissions of a BEGIN or END.
const MAX_CC: u32 = 5;
/// Poll interval and silence time before the first measurement.
const INITIAL: Time = SECOND;
/// Timer_SILENCE is doubled up to this time, or the silence time if that is longer.
const MOST_SILENCE: Time = 15 * SECOND;
/// Timer_NO-RESPONSE.
const NO_RESPONSE: Time = 60 * SECOND;
/// A POLL that is due so soon rides on a new SD.
const RIDE: Time = 10 * MILLISECOND;
/// A caller is given so many cookies in a row.
const MOST_COOKIES: u32 = 5;
/// No credit is larger: half of the modulus.
const MOST_CREDIT: u32 = 1 << 23;
/// What an SDP has more than its data.
const SDP_HEADER: usize = 24;
/// What a BEGIN has more than its options and data.
const BEGIN_HEADER: usize = 20;

/// The states of section 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Outgoing connection pending.
    Calling,
    /// Data transfer ready.
    Open,
    /// Outgoing disconnection pending.
    Releasing,
    /// Idle: the connection is gone.
    Gone,
}

/// What a connection is given at its start.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Own STP port.
    pub source: u16,
    /// The peer's STP port.
    pub destination: u16,
    /// Own CSN.
    pub csn: u32,
    /// Own ISS.
    pub iss: u32,
    /// SDs that may be held for the user.
    pub window: u64,
    /// SDs that may be kept until they are acknowledged.
    pub limit: u64,
    /// Own MaxSD.
    pub max_sd: usize,
    /// Octets of STP that fit into a packet of the path.
    pub room: usize,
    /// Elements of a STAT.
    pub max_stat: usize,
    /// Timer_KEEP-ALIVE.
    pub keep_alive: Time,
}

/// What a BEGIN carries to prove the caller's address.
#[derive(Debug, Clone)]
pub struct Proof {
    /// The cookie.
    pub kept: Kept,
    /// V flag: cookies made before are void.
    pub void: bool,
}

/// What the endpoint has to do for a connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    None,
    /// Keep a cookie for a later call.
    Keep(Kept),
    /// Choose a new CSN and a new ISS, and call anew.
    CallAnew(Kept),
}

/// A timer that repeats a packet.
#[derive(Debug)]
struct Repetition {
    packet: Vec<u8>,
    at: Time,
    span: Time,
    sent: u32,
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    setup: Setup,
    state: State,
    calls: bool,
    peer: Option<u32>,
    peer_max_sd: usize,
    sender: Sender,
    receiver: Option<Receiver>,
    /// The BEGIN carries a cookie, so that data may go out.
    early: bool,
    /// The BEGIN has the V flag.
    void: bool,
    cookies: u32,
    begun: Time,
    repetition: Option<Repetition>,
    last_poll: Option<Time>,
    /// When SDs were sent that no POLL has followed, and their numbers; the first is unacknowledged.
    unpolled: VecDeque<(Time, u64)>,
    poll_now: bool,
    silence: Option<(Time, Time)>,
    silences: u32,
    no_response: Option<Time>,
    keep_alive: Option<Time>,
    release: Option<Time>,
    complete: bool,
    reported: bool,
    told_end: bool,
    /// When pacing or a POLL wants attention.
    wake: Option<Time>,
}

type Out = Vec<Vec<u8>>;

impl Connection {
    fn new(setup: Setup, calls: bool, peer_max_sd: usize) -> Self {
        let smss = smss(&setup, peer_max_sd);
        let sender = Sender::new(setup.iss, setup.limit, smss, Rtt::new(INITIAL));
        Self {
            setup,
            state: State::Open,
            calls,
            peer: None,
            peer_max_sd,
            sender,
            receiver: None,
            early: false,
            void: false,
            cookies: 0,
            begun: 0,
            repetition: None,
            last_poll: None,
            unpolled: VecDeque::new(),
            poll_now: false,
            silence: None,
            silences: 0,
            no_response: None,
            keep_alive: None,
            release: None,
            complete: false,
            reported: false,
            told_end: false,
            wake: None,
        }
    }

    /// Calls, with a cookie if one is held.
    pub fn call(
        now: Time,
        setup: Setup,
        proof: Option<&Proof>,
        user: &mut dyn User,
        out: &mut Out,
    ) -> Self {
        let max_sd = proof.map_or(LEAST_MAX_SD, |proof| proof.kept.max_sd);
        let mut connection = Self::new(setup, true, max_sd);
        connection.state = State::Calling;
        connection.begin(now, proof, user, out);
        connection
    }

    /// Calls anew, with the cookie that was given.
    pub fn call_anew(
        &mut self,
        now: Time,
        (csn, iss): (u32, u32),
        proof: &Proof,
        user: &mut dyn User,
        out: &mut Out,
    ) {
        self.setup.csn = csn;
        self.setup.iss = iss;
        self.peer_max_sd = proof.kept.max_sd;
        let smss = smss(&self.setup, proof.kept.max_sd);
        self.sender.restart(iss, smss);
        self.unpolled.clear();
        self.begin(now, Some(proof), user, out);
    }

    fn begin(&mut self, now: Time, proof: Option<&Proof>, user: &mut dyn User, out: &mut Out) {
        let kept = proof.map(|proof| &proof.kept);
        self.early = kept.is_some();
        self.void = proof.is_some_and(|proof| proof.void);
        self.begun = now;
        let options = Options {
            max_sd: Some(self.setup.max_sd),
            cookie: kept.map(|kept| kept.cookie.as_slice()),
        };
        let mut first = None;
        if let Some(kept) = kept {
            let used = BEGIN_HEADER + (6 + kept.cookie.len()).next_multiple_of(4);
            let most = self.setup.room.saturating_sub(used).min(kept.max_sd);
            self.sender.refill(user, most);
            if self.sender.has_work() {
                let number = self.sender.cut(now, most);
                self.unpolled.push_back((now, number));
                first = Some(number);
            }
        }
        let sd = first.and_then(|number| self.sender.outgoing(number));
        let packet = self.writer().begin(&Begin {
            fin: sd.as_ref().is_some_and(|sd| sd.fin),
            void: self.void,
            iss: self.setup.iss,
            credit: self.setup.window as u32,
            csn: self.setup.csn,
            options,
            data: sd.as_ref().map_or(&[], |sd| sd.data),
        });
        self.repeat(now, packet, out);
    }

    /// Is called, by a BEGIN with a good cookie.
    pub fn accept(
        now: Time,
        setup: Setup,
        begin: &Begin<'_>,
        cookie: &[u8],
        out: &mut Out,
    ) -> Self {
        let max_sd = begin.options.max_sd.unwrap_or(LEAST_MAX_SD);
        let mut receiver = Receiver::new(begin.iss, setup.window, setup.max_sd, setup.max_stat);
        if begin.fin || !begin.data.is_empty() {
            receiver.sd(begin.iss, begin.fin, begin.data);
        }
        let mut connection = Self::new(setup, false, max_sd);
        connection.peer = Some(begin.csn);
        connection.receiver = Some(receiver);
        let credit = begin.credit.clamp(4, MOST_CREDIT);
        let first_forbidden = connection.setup.iss.wrapping_add(credit) & 0xff_ffff;
        connection.sender.permit(first_forbidden);
        connection.keep_alive = Some(now + connection.setup.keep_alive);
        connection.bgak(cookie, out);
        connection
    }

    /// Sends a BGAK with a fresh cookie.
    pub fn bgak(&self, cookie: &[u8], out: &mut Out) {
        if let (Some(receiver), Some(peer)) = (&self.receiver, self.peer) {
            out.push(self.writer().bgak(&Bgak {
                iss: self.setup.iss,
                nmr: receiver.nmr(),
                sender: self.setup.csn,
                recipient: peer,
                nr: receiver.nr(),
                options: Options {
                    max_sd: Some(self.setup.max_sd),
                    cookie: Some(cookie),
                },
            }));
        }
    }

    /// The state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether the BEGIN has the V flag.
    pub fn voids(&self) -> bool {
        self.void
    }

    /// Whether the BEGIN carries a cookie.
    pub fn proves(&self) -> bool {
        self.early
    }

    /// Whether this endpoint was called.
    pub fn was_called(&self) -> bool {
        !self.calls
    }

    /// Whether a CSN is the peer's.
    pub fn is_peer(&self, csn: u32) -> bool {
        self.peer == Some(csn)
    }

    fn writer(&self) -> Writer {
        Writer {
            source: self.setup.source,
            destination: self.setup.destination,
            tag: self.setup.csn as u16,
        }
    }

    /// Sends a packet and repeats it by Timer_CC.
    fn repeat(&mut self, now: Time, packet: Vec<u8>, out: &mut Out) {
        out.push(packet.clone());
        self.repetition = Some(Repetition {
            packet,
            at: now + TIMER_CC,
            span: TIMER_CC,
            sent: 1,
        });
    }

    fn report(&mut self, outcome: Outcome, user: &mut dyn User) {
        if !self.reported {
            self.reported = true;
            user.outcome(outcome);
        }
    }

    /// The connection is gone, and has failed unless an outcome was reported.
    pub fn fail(&mut self, user: &mut dyn User) {
        self.report(Outcome::Failure, user);
        self.state = State::Gone;
    }

    /// Sends an END and enters state 4.
    fn end(&mut self, now: Time, abort: bool, reason: u8, out: &mut Out) {
        let packet = self.writer().end(&End {
            abort,
            unknown: false,
            nr: self.receiver.as_ref().map_or(0, Receiver::nr),
            reason,
            sender: self.setup.csn,
            recipient: self.peer.unwrap_or(0),
        });
        self.state = State::Releasing;
        self.receiver = None;
        self.sender.restart(0, LEAST_MAX_SD);
        self.repeat(now, packet, out);
    }

    /// A packet of an open connection has arrived.
    pub fn heard(&mut self, now: Time) {
        if self.state == State::Open {
            self.keep_alive = Some(now + self.setup.keep_alive);
        }
    }

    /// Takes a packet that is not a BEGIN.
    pub fn handle(
        &mut self,
        now: Time,
        received: &Received<'_>,
        user: &mut dyn User,
        out: &mut Out,
    ) -> Action {
        let tagged = matches!(
            received.packet,
            Packet::Data { .. } | Packet::Stat { .. } | Packet::Ustat { .. }
        );
        if tagged && self.peer.is_some_and(|peer| peer as u16 != received.tag) {
            return Action::None;
        }
        self.heard(now);
        match (&received.packet, self.state) {
            (Packet::End(end), _) => self.on_end(received, end, user, out),
            (Packet::Bgak(bgak), State::Calling) => return self.on_bgak(now, received, bgak, out),
            (
                Packet::Bgrej {
                    reason,
                    recipient,
                    options,
                },
                State::Calling,
            ) if *recipient == self.setup.csn => {
                return self.on_bgrej(now, *reason, options, user);
            }
            (Packet::Endak { recipient }, State::Releasing) if *recipient == self.setup.csn => {
                self.state = State::Gone;
            }
            (Packet::Data { sd, poll }, State::Open) => {
                if poll.is_some_and(|poll| poll.nps == 0 || !self.is_peer(poll.csn)) {
                    return Action::None;
                }
                if let Some((number, fin, data)) = sd {
                    self.on_sd(*number, *fin, data, user, out);
                }
                if let Some(poll) = poll {
                    self.on_poll(poll, out);
                }
            }
            (
                Packet::Stat {
                    nr,
                    nmr,
                    nps,
                    timestamp,
                    list,
                },
                State::Open,
            ) => self.on_report(
                now,
                &Report {
                    nr: *nr,
                    nmr: *nmr,
                    poll: Some((*nps, *timestamp)),
                    list,
                },
            ),
            (Packet::Ustat { nr, nmr, from, to }, State::Open) => self.on_report(
                now,
                &Report {
                    nr: *nr,
                    nmr: *nmr,
                    poll: None,
                    list: &[*from, *to],
                },
            ),
            _ => {}
        }
        Action::None
    }

    fn on_bgak(
        &mut self,
        now: Time,
        received: &Received<'_>,
        bgak: &Bgak<'_>,
        out: &mut Out,
    ) -> Action {
        if bgak.recipient != self.setup.csn {
            out.extend(no_connection(received));
            return Action::None;
        }
        if !self.sender.accept(bgak.nr) {
            return Action::None;
        }
        self.measure_call(now);
        self.state = State::Open;
        self.repetition = None;
        self.peer = Some(bgak.sender);
        self.peer_max_sd = bgak.options.max_sd.unwrap_or(self.peer_max_sd);
        self.sender.opened(smss(&self.setup, self.peer_max_sd));
        self.sender.permit(bgak.nmr);
        let Setup {
            window,
            max_sd,
            max_stat,
            keep_alive,
            ..
        } = self.setup;
        self.receiver = Some(Receiver::new(bgak.iss, window, max_sd, max_stat));
        self.keep_alive = Some(now + keep_alive);
        self.poll_now = self.sender.unacknowledged();
        self.forget_acknowledged();
        match bgak.options.cookie {
            None => Action::None,
            Some(cookie) => Action::Keep(Kept {
                cookie: cookie.to_vec(),
                max_sd: self.peer_max_sd,
            }),
        }
    }

    fn measure_call(&mut self, now: Time) {
        if self
            .repetition
            .as_ref()
            .is_some_and(|begin| begin.sent == 1)
        {
            self.sender.rtt.measure(now.saturating_sub(self.begun));
        }
    }

    fn on_bgrej(
        &mut self,
        now: Time,
        reason: u8,
        options: &Options<'_>,
        user: &mut dyn User,
    ) -> Action {
        match options.cookie {
            Some(cookie) if reason == reason::COOKIE && self.cookies < MOST_COOKIES => {
                self.cookies += 1;
                self.measure_call(now);
                Action::CallAnew(Kept {
                    cookie: cookie.to_vec(),
                    max_sd: options.max_sd.unwrap_or(self.peer_max_sd),
                })
            }
            _ => {
                self.fail(user);
                Action::None
            }
        }
    }

    /// Whether an END is valid by section 5.5.
    fn knows(&self, end: &End) -> bool {
        let own = end.recipient == self.setup.csn;
        match self.peer {
            _ if end.unknown => own && (end.sender == 0 || self.is_peer(end.sender)),
            Some(peer) => end.sender == peer && (own || end.abort && end.recipient == 0),
            None => own,
        }
    }

    fn on_end(&mut self, received: &Received<'_>, end: &End, user: &mut dyn User, out: &mut Out) {
        if !self.knows(end) {
            return;
        }
        if !end.unknown {
            out.push(endak(received, end));
        }
        let delivered = self.receiver.as_ref().is_some_and(Receiver::ended);
        let normal = !end.unknown && !end.abort;
        if self.state == State::Open && normal && delivered && self.sender.end_is_below(end.nr) {
            self.deliver(user);
            self.report(Outcome::Success, user);
        }
        self.fail(user);
    }

    fn on_sd(&mut self, number: u32, fin: bool, data: &[u8], user: &mut dyn User, out: &mut Out) {
        let writer = self.writer();
        let Some(receiver) = &mut self.receiver else {
            return;
        };
        let gap = receiver.sd(number, fin, data);
        self.deliver(user);
        if let (Some(run), Some(receiver)) = (gap, &mut self.receiver) {
            out.push(receiver.ustat(writer, run));
        }
    }

    fn on_poll(&mut self, poll: &Poll, out: &mut Out) {
        let writer = self.writer();
        if let Some(receiver) = &mut self.receiver {
            receiver.poll(poll.ns);
            receiver.stats(writer, poll.nps, poll.timestamp, out);
        }
    }

    fn on_report(&mut self, now: Time, report: &Report<'_>) {
        let probing = self.is_probing();
        let credit = self.sender.credit();
        if !self.sender.report(now as u32, report) {
            return;
        }
        self.no_response = None;
        self.silences = 0;
        self.forget_acknowledged();
        let shut = probing && self.sender.credit() == credit;
        self.silence = match self.silence {
            _ if !self.needs_silence() => None,
            Some((_, span)) if shut => Some((now + span, span)),
            _ => {
                let span = self.sender.rtt.silence();
                Some((now + span, span))
            }
        };
    }

    /// Nobody need be asked any more about SDs that are acknowledged.
    fn forget_acknowledged(&mut self) {
        while let Some((_, number)) = self.unpolled.front() {
            if !self.sender.is_acknowledged(*number) {
                break;
            }
            self.unpolled.pop_front();
        }
    }

    /// All is acknowledged, and data waits for credit.
    fn is_probing(&self) -> bool {
        !self.sender.unacknowledged() && self.sender.starved()
    }

    fn needs_silence(&self) -> bool {
        self.sender.unacknowledged() || self.sender.starved()
    }

    /// Does what is possible now: delivers, announces credit, sends, polls and releases.
    pub fn run(&mut self, now: Time, user: &mut dyn User, out: &mut Out) {
        self.wake = None;
        match self.state {
            State::Calling if self.early => {
                self.transmit(now, user, out);
            }
            State::Open => {
                let next = loop {
                    let taken = self.deliver(user);
                    let sent = out.len();
                    let next = self.transmit(now, user, out);
                    // What was sent may have made room for more to take.
                    if !taken || out.len() == sent {
                        break next;
                    }
                };
                let writer = self.writer();
                if let Some(receiver) = &mut self.receiver {
                    receiver.announce(writer, out);
                }
                self.poll_if_due(now, next, out);
                self.finish(now, user, out);
            }
            _ => {}
        }
    }

    /// Hands data to the user. Returns whether there was any.
    fn deliver(&mut self, user: &mut dyn User) -> bool {
        let Some(receiver) = &mut self.receiver else {
            return false;
        };
        let mut any = false;
        while user.takes() {
            let Some(data) = receiver.take() else {
                if receiver.ended() && !self.told_end {
                    self.told_end = true;
                    any = true;
                    user.peer_closed();
                }
                break;
            };
            any = true;
            user.receive(&data);
        }
        any
    }

    /// Sends what window, credit and pacing permit. Returns what holds the next SD back.
    fn transmit(&mut self, now: Time, user: &mut dyn User, out: &mut Out) -> Next {
        let smss = self.sender.congestion.smss();
        loop {
            self.sender.refill(user, smss);
            let next = self.sender.next(now);
            let number = match next {
                Next::Again(number) => {
                    self.sender.repeat(number);
                    number
                }
                Next::New => self.sender.cut(now, smss),
                held => {
                    if let Next::Later(time) = held {
                        self.wake = Some(time);
                    }
                    return held;
                }
            };
            self.unpolled.push_back((now, number));
            let end = self.sender.outgoing(number).is_some_and(|sd| sd.fin);
            if self.state == State::Open && next == Next::New && end {
                self.poll_now = true;
            }
            self.sender.refill(user, smss);
            let newest = self.sender.outgoing(number + 1).is_none();
            let poll = (newest && self.rides(now)).then(|| self.count_poll(now));
            if let Some(sd) = self.sender.outgoing(number) {
                out.push(self.writer().sd(sd.number, sd.fin, sd.data, poll.as_ref()));
            }
        }
    }

    /// Whether a POLL rides on the SD that leaves now.
    fn rides(&mut self, now: Time) -> bool {
        if self.state != State::Open {
            return false;
        }
        let next = self.sender.next(now);
        self.poll_due(now, next)
            .is_some_and(|due| due <= now + RIDE)
            && self.distant(now)
    }

    /// Whether a POLL keeps its distance, or need not.
    fn distant(&self, now: Time) -> bool {
        self.poll_now || self.soonest_poll().is_none_or(|soonest| soonest <= now)
    }

    /// Half an interval after the last POLL, and a little more, lest that one be late on the wire.
    fn soonest_poll(&self) -> Option<Time> {
        let interval = self.sender.rtt.poll_interval();
        self.last_poll.map(|last| last + interval * 11 / 20)
    }

    /// When a POLL is due, given what holds the next SD back.
    fn poll_due(&self, now: Time, next: Next) -> Option<Time> {
        if self.poll_now {
            return Some(now);
        }
        let (since, _) = *self.unpolled.front()?;
        let interval = self.sender.rtt.poll_interval();
        // A little before the interval is over, lest a slow clock make it late.
        let timer = (since + interval - interval / 20).max(self.soonest_poll().unwrap_or(now));
        Some(match next {
            Next::Forbidden | Next::Nothing => self
                .last_poll
                .map_or(now, |last| timer.min(last + interval)),
            _ => timer,
        })
    }

    /// Whether a POLL that is due rides on the next SD: early enough, though pacing holds it back.
    fn waits_for_ride(&self, next: Next) -> bool {
        let last = self
            .unpolled
            .front()
            .map(|(since, _)| since + self.sender.rtt.poll_interval());
        match next {
            Next::Later(time) => !self.poll_now && last.is_some_and(|last| time <= last),
            _ => false,
        }
    }

    fn poll_if_due(&mut self, now: Time, next: Next, out: &mut Out) {
        match self.poll_due(now, next) {
            Some(due) if due <= now && !self.waits_for_ride(next) => self.send_poll(now, out),
            Some(due) if due <= now => {}
            Some(due) => self.wake = Some(self.wake.map_or(due, |wake| wake.min(due))),
            None => {}
        }
        if self.sender.starved() {
            self.start_silence(now);
        }
    }

    /// Starts Timer_SILENCE if it does not run.
    fn start_silence(&mut self, now: Time) {
        let span = self.sender.rtt.silence();
        self.silence.get_or_insert((now + span, span));
    }

    fn count_poll(&mut self, now: Time) -> Poll {
        self.last_poll = Some(now);
        self.unpolled.clear();
        self.poll_now = false;
        self.no_response.get_or_insert(now + NO_RESPONSE);
        self.start_silence(now);
        Poll {
            ns: self.sender.ns(),
            nps: self.sender.count_poll(),
            timestamp: now as u32,
            csn: self.setup.csn,
        }
    }

    fn send_poll(&mut self, now: Time, out: &mut Out) {
        let poll = self.count_poll(now);
        out.push(self.writer().poll(&poll));
    }

    /// Reports success when the connection is complete, and releases it.
    fn finish(&mut self, now: Time, user: &mut dyn User, out: &mut Out) {
        let delivered = self.receiver.as_ref().is_some_and(Receiver::ended);
        if self.complete || !delivered || !self.sender.ended() {
            return;
        }
        self.complete = true;
        self.report(Outcome::Success, user);
        if self.calls {
            self.end(now, false, reason::NONE, out);
        } else {
            self.release = Some(now + TIMER_CC.max(self.sender.rtt.silence()));
        }
    }

    /// Lets the timers expire whose time has come.
    pub fn tick(&mut self, now: Time, user: &mut dyn User, out: &mut Out) {
        if self
            .repetition
            .as_ref()
            .is_some_and(|timer| timer.at <= now)
        {
            self.expire_cc(now, user, out);
        }
        if self.state != State::Open {
            return;
        }
        if expired(self.no_response, now) {
            self.report(Outcome::Failure, user);
            self.end(now, true, reason::NO_ANSWER, out);
            return;
        }
        if expired(self.release, now) {
            self.end(now, false, reason::NONE, out);
            return;
        }
        if let Some((at, span)) = self.silence {
            if at <= now {
                self.silences += 1;
                if self.silences == 2 && self.sender.unacknowledged() {
                    self.sender.collapse();
                }
                let most = MOST_SILENCE.max(self.sender.rtt.silence());
                let span = (2 * span).min(most);
                self.silence = Some((now + span, span));
                self.send_poll(now, out);
            }
        }
        if expired(self.keep_alive, now) {
            self.keep_alive = None;
            if !self.sender.unacknowledged() && !self.sender.has_work() {
                self.send_poll(now, out);
            }
        }
    }

    fn expire_cc(&mut self, now: Time, user: &mut dyn User, out: &mut Out) {
        let Some(timer) = &mut self.repetition else {
            return;
        };
        if timer.sent < MAX_CC {
            timer.sent += 1;
            timer.span *= 2;
            timer.at = now + timer.span;
            out.push(timer.packet.clone());
        } else if self.state == State::Calling {
            self.report(Outcome::Failure, user);
            self.end(now, true, reason::NO_ANSWER, out);
        } else {
            self.state = State::Gone;
        }
    }

    /// When [`tick`](Self::tick) and [`run`](Self::run) are wanted next.
    pub fn deadline(&self) -> Option<Time> {
        let repetition = self.repetition.as_ref().map(|timer| timer.at);
        let silence = self.silence.map(|(at, _)| at);
        let open = [
            self.wake,
            silence,
            self.no_response,
            self.keep_alive,
            self.release,
        ];
        let open = open.into_iter().filter(|_| self.state == State::Open);
        open.chain([
            repetition,
            self.wake.filter(|_| self.state == State::Calling),
        ])
        .flatten()
        .min()
    }

    /// The sender, for tests.
    #[cfg(test)]
    pub fn sender(&self) -> &Sender {
        &self.sender
    }
}

fn expired(timer: Option<Time>, now: Time) -> bool {
    timer.is_some_and(|at| at <= now)
}

/// Most user data that is put into an SD.
fn smss(setup: &Setup, peer_max_sd: usize) -> usize {
    peer_max_sd
        .min(setup.room.saturating_sub(SDP_HEADER))
        .max(1)
}

/// The answer to a packet of an unknown connection, if it is to have one.
pub fn no_connection(received: &Received<'_>) -> Option<Vec<u8>> {
    let (sender, recipient) = match &received.packet {
        Packet::Begin(begin) => (0, begin.csn),
        Packet::Bgak(bgak) => (bgak.recipient, bgak.sender),
        Packet::Data {
            poll: Some(poll), ..
        } => (0, poll.csn),
        Packet::End(end) if !end.unknown => return Some(endak(received, end)),
        _ => return None,
    };
    let end = End {
        abort: true,
        unknown: true,
        nr: 0,
        reason: reason::NO_CONNECTION,
        sender,
        recipient,
    };
    Some(Writer::answer(received, sender as u16).end(&end))
}

fn endak(received: &Received<'_>, end: &End) -> Vec<u8> {
    Writer::answer(received, end.recipient as u16).endak(end.sender)
}
