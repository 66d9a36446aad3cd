package main

import "time"

// outgoing is one SD that has been sent and is kept until it is known to have arrived.
type outgoing struct {
	data    []byte
	fin     bool
	stamp   uint32  // VT(PS) at its last transmission
	sent    int     // transmissions
	at      instant // of the last one
	serial  uint64  // of its last transmission, among all of the connection
	arrived bool
	queued  bool // awaits retransmission
}

// octets is what the SD counts for in the congestion window.
func (o *outgoing) octets() int { return max(1, len(o.data)) }

const (
	pollRecord = 64                    // POLLs whose times are remembered for the round-trip time
	rideTime   = 10 * time.Millisecond // a POLL due within it goes with a new SD (STP-PL-005)
	mostRate   = 65_000                // SDs a second: 2^23 within a packet's life of 120 s (STP-DT-013)
)

// sender is the sending half of one direction (STP/1 sections 6.1, 6.4 and 7).
type sender struct {
	c *conn

	vtS, vtA, vtMS, vtPS, vtPA uint32

	sds    []outgoing // from vtA up to, not including, vtS
	again  []uint32   // numbers that await retransmission, and some that no longer do
	flight int        // octets in flight
	serial uint64

	buffer  []byte // what the user has written and no SD carries yet
	closing bool   // the user has closed
	finSent bool
	fin     uint32

	window  congestion
	rtt     roundTrip
	pace    pacer
	most    rateLimit // keeps numbers apart (STP-DT-013)
	reduced uint64    // serial of the last transmission before the last reduction
	free    bool      // the next retransmission need not wait (STP-CG-006)
	gate    instant   // when pacing or a rate lets the next SD pass

	polled    [pollRecord]instant // when a POLL was sent, by N(PS) modulo pollRecord
	lastPoll  instant             // never, if there was none
	openSince instant             // when the first unacknowledged SD without POLL left; else never
	ask       bool                // a POLL is due at once (STP-CC-042, STP-PL-004)
	pollAt    instant             // when the next POLL is due

	silenceAt    instant // expiry of Timer_SILENCE; never while it does not run
	silenceWait  time.Duration
	silences     int     // since the last valid report
	noResponseAt instant // expiry of Timer_NO-RESPONSE; never while it does not run
}

// start begins a stream. What a call before has sent of it in vain is to be sent once more
// (STP-CC-037), and the round-trip time that it has shown counts.
func (s *sender) start(c *conn, iss uint32) {
	var buffer []byte
	for i := range s.sds {
		buffer = append(buffer, s.sds[i].data...)
	}
	*s = sender{
		c: c, vtS: iss, vtA: iss, vtMS: seqAdd(iss, earlyCredit), rtt: s.rtt,
		buffer: append(buffer, s.buffer...), closing: s.closing,
		most: rateLimit{bitsPerSecond: 8 * mostRate}, // of one octet for each SD
		gate: never, lastPoll: never, openSince: never, pollAt: never,
		silenceAt: never, noResponseAt: never,
	}
	s.window.start(c.smss(), c.ep.cfg.initialWindow, c.ep.cfg.window)
}

// room is how many more octets the user may write.
func (s *sender) room() int {
	if s.closing {
		return 0
	}
	return max(0, 2*s.window.smss-len(s.buffer))
}

func (s *sender) unacknowledged() bool { return len(s.sds) > 0 }

// waiting tells whether there is something new to send.
func (s *sender) waiting() bool { return len(s.buffer) > 0 || s.closing && !s.finSent }

// finAcknowledged tells whether the peer has acknowledged the end of the stream.
func (s *sender) finAcknowledged() bool { return s.finSent && !s.unacknowledged() }

// closed tells whether only credit is missing (STP-DT-025).
func (s *sender) closed() bool {
	return !s.unacknowledged() && s.lacksCredit()
}

// lacksCredit tells whether data waits for credit.
func (s *sender) lacksCredit() bool { return s.waiting() && !seqBelow(s.vtS, s.vtMS) }

// cut makes the next SD of at most most octets and gives it its number.
func (s *sender) cut(most int) *outgoing {
	size := min(len(s.buffer), most)
	s.sds = append(s.sds, outgoing{
		data: append([]byte(nil), s.buffer[:size]...),
		fin:  s.closing && size == len(s.buffer),
	})
	s.buffer = s.buffer[size:]
	sd := &s.sds[len(s.sds)-1]
	if sd.fin {
		s.finSent, s.fin = true, s.vtS
	}
	s.vtS = seqAdd(s.vtS, 1)
	return sd
}

// note books a transmission: it is in flight, with the number of the last POLL as its stamp.
func (s *sender) note(now instant, sd *outgoing) {
	s.serial++
	s.flight += sd.octets()
	sd.serial, sd.stamp, sd.queued, sd.at = s.serial, s.vtPS, false, now
	sd.sent++
}

// stopped tells whether window, credit or lack of data forbids the next SD (STP-PL-003).
func (s *sender) stopped() bool {
	if again := s.nextAgain(); again != nil {
		return !s.free && !s.fits(again.octets())
	}
	return !s.waiting() || !seqBelow(s.vtS, s.vtMS) || len(s.sds) >= s.c.ep.cfg.window ||
		!s.fits(max(1, min(len(s.buffer), s.window.smss)))
}

// fits tells whether the window lets one more SD pass. One that was cut before the peer announced a
// smaller MaxSD may be larger than any window.
func (s *sender) fits(octets int) bool { return s.flight == 0 || s.flight+octets <= s.window.cwnd }

// nextAgain is the first SD that awaits retransmission.
func (s *sender) nextAgain() *outgoing {
	for len(s.again) > 0 {
		offset := seqDist(s.vtA, s.again[0])
		if offset < len(s.sds) && s.sds[offset].queued {
			return &s.sds[offset]
		}
		s.again = s.again[1:]
	}
	return nil
}

// transmit sends what may be sent now, and the POLLs that go with it.
func (s *sender) transmit(now instant) {
	s.gate = never
	for s.refill(); !s.stopped(); s.refill() {
		sd := s.nextAgain()
		if !s.passes(now, sd) {
			break
		}
		s.send(now, sd)
	}
	if s.pollAt = s.pollDue(); s.pollAt <= now {
		s.poll(now)
		s.pollAt = never
	}
	if s.c.state == ready && s.lacksCredit() {
		s.startSilence(now)
	}
}

// refill lets the user write before the sender runs out of data.
func (s *sender) refill() {
	if len(s.buffer) < s.window.smss {
		s.c.supply()
	}
}

// passes tells whether an SD, sd again or else a new one, may leave now; if not, gate is when to ask
// again.
func (s *sender) passes(now instant, sd *outgoing) bool {
	smss := s.window.smss
	size := max(1, min(smss, len(s.buffer))) // an empty SD counts as one octet (section 7.3)
	if sd != nil {
		size = sd.octets()
	}
	limits := &s.c.ep.rate
	wait := max(limits.wait(now, s.c.ep.cfg.overhead+fixedLength[typeSDP]+size), s.most.wait(now, 1))
	if s.rtt.known && (sd == nil || !s.free) {
		wait = max(wait, s.pace.wait(now, size, smss, s.window.pace(s.rtt.smoothed)))
	}
	if wait > 0 {
		s.gate = now + wait
	}
	return wait == 0
}

// send transmits one SD, sd again or else a new one.
func (s *sender) send(now instant, sd *outgoing) {
	n, fresh := s.vtS, sd == nil
	if fresh {
		sd = s.cut(s.window.smss)
	} else {
		n = s.again[0]
		s.again = s.again[1:]
	}
	s.note(now, sd)
	if fresh || !s.free { // STP-CG-006's does not count
		s.pace.sent(sd.octets())
	}
	s.free = s.free && fresh
	p := packet{kind: typeSD, sequence: n, data: sd.data}
	if sd.fin {
		p.flags = flagFIN
	}
	s.openSince = min(s.openSince, now)
	if fresh {
		s.ask = s.ask || sd.fin // STP-PL-004
		s.refill()
		if s.pollDue() <= now+rideTime { // STP-PL-005
			p.kind = typeSDP
			s.nextPoll(now, &p)
		}
	}
	s.most.sent(now, 1)
	s.c.ep.rate.sent(now, s.c.ep.cfg.overhead+fixedLength[p.kind]+len(p.data))
	s.c.emit(&p)
}

// pollDue is when the next POLL has to leave if nothing changes until then, but for those of silence
// and of an idle connection (section 7.1).
func (s *sender) pollDue() instant {
	switch {
	case s.c.state != ready: // STP-CC-042
		return never
	case s.ask:
		return 0
	case s.openSince == never:
		return never
	}
	since := s.openSince // STP-PL-001
	if s.stopped() {     // STP-PL-003
		if s.lastPoll == never {
			return 0
		}
		since = s.lastPoll
	}
	return since + s.interval()
}

// nextPoll makes a packet the next POLL and starts the timers that want to see it answered.
func (s *sender) nextPoll(now instant, p *packet) {
	s.vtPS = max(1, seqAdd(s.vtPS, 1)) // STP-PL-006
	s.polled[s.vtPS%pollRecord] = now
	p.nPS, p.timestamp, p.csn = s.vtPS, uint32(now/time.Microsecond), s.c.csn
	s.lastPoll, s.openSince, s.ask = now, never, false
	s.noResponseAt = min(s.noResponseAt, now+noResponse)
	s.startSilence(now)
}

func (s *sender) poll(now instant) {
	p := packet{kind: typePOLL, sequence: s.vtS}
	s.nextPoll(now, &p)
	s.c.emit(&p)
}

// interval is the poll interval (STP-PL-001).
func (s *sender) interval() time.Duration {
	if !s.rtt.known {
		return s.c.ep.cfg.initialInterval
	}
	return min(max(s.rtt.smoothed/3, leastPollInterval), mostPollInterval)
}

// silence is the silence time, not doubled (STP-PL-007).
func (s *sender) silence() time.Duration {
	if !s.rtt.known {
		return s.c.ep.cfg.initialInterval
	}
	return max(s.rtt.smoothed+max(4*s.rtt.deviation, s.interval()), leastSilence)
}

func (s *sender) startSilence(now instant) {
	if s.silenceAt == never {
		s.silenceWait = s.silence()
		s.silenceAt = now + s.silenceWait
	}
}

// keepAliveAt is the expiry of Timer_KEEP-ALIVE; never if there is something to send, or a POLL was
// sent when it expired (STP-PL-010).
func (s *sender) keepAliveAt() instant {
	at := s.c.heard + s.c.ep.cfg.keepAlive
	if s.unacknowledged() || s.waiting() || s.lastPoll != never && s.lastPoll >= at {
		return never
	}
	return at
}

// deadline is when the sender wants to be called again.
func (s *sender) deadline() instant {
	return min(s.gate, s.pollAt, s.silenceAt, s.noResponseAt, s.keepAliveAt())
}

// expire does what the timers want that ask again; false means that the peer is given up (STP-PL-008).
func (s *sender) expire(now instant) bool {
	switch {
	case now >= s.noResponseAt:
		return false
	case now >= s.silenceAt:
		s.silences++
		if s.silences == 2 && s.unacknowledged() {
			s.window.silent()
			s.reduced = s.serial
		}
		s.silenceWait = min(2*s.silenceWait, max(mostSilence, s.silence()))
		s.silenceAt = now + s.silenceWait
		s.poll(now)
	case now >= s.keepAliveAt():
		s.poll(now)
	}
	return true
}
