package main

import "time"

// outgoing is one SD that has been sent and is kept until it is known to have arrived.
type outgoing struct {
	data    []byte
	fin     bool
	stamp   uint32 // VT(PS) at its last transmission
	sent    int    // transmissions
	serial  uint64 // of its last transmission, among all of the connection
	arrived bool
	queued  bool // awaits retransmission
	idle    bool // sent while data or credit lacked to fill half the window (STP-CG-010)
}

// octets is what the SD counts for in the congestion window.
func (o *outgoing) octets() int { return max(1, len(o.data)) }

// pollRecord is how many POLLs' times are remembered for the round-trip time.
const pollRecord = 64

// sender is the sending half of one direction (STP/1 sections 6.1, 6.4, 6.5 and 7).
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
	reduced uint64   // serial of the last transmission before the last reduction
	free    bool     // the next retransmission need not wait (STP-CG-006)
	open    bool     // an SD was sent that no POLL follows yet
	doubted []uint32 // sent while less than half the window was in flight, it is not known yet why

	polled     [pollRecord]instant // when a POLL was sent, by N(PS) modulo pollRecord
	pollBase   instant             // when the timer for POLLs was started
	pollAt     instant             // when it expires; never while it does not run
	ask        bool                // a POLL is due, on the next new SD or alone
	unheard    bool                // the peer may not have the confirmation yet (STP-CC-030)
	probe      time.Duration       // time between POLLs to a closed window (STP-DT-025)
	silentFrom instant             // first POLL since the last valid STAT or USTAT
	silences   int                 // since the last valid STAT
	inRow      int                 // since the last valid STAT or USTAT
	unanswered instant             // first POLL since the last valid STAT
	gate       instant             // when pacing or the rate limit lets the next SD pass
}

func (s *sender) start(c *conn, iss uint32, smss int) {
	*s = sender{c: c, vtS: iss, vtA: iss, vtMS: seqAdd(iss, earlyCredit)}
	s.window.start(smss, c.ep.cfg.initialWindow, c.ep.cfg.window)
	s.pollAt, s.silentFrom, s.unanswered, s.gate = never, never, never, never
}

// setSMSS fixes the size of SDs once the peer's MaxSD is known, before anything was measured.
func (s *sender) setSMSS(smss int) {
	if smss != s.window.smss {
		s.window.start(smss, s.c.ep.cfg.initialWindow, s.c.ep.cfg.window)
	}
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

// cut makes the next SD of at most most octets and gives it its number.
func (s *sender) cut(most int) (uint32, *outgoing) {
	size := min(len(s.buffer), most)
	n := s.vtS
	s.sds = append(s.sds, outgoing{
		data: append([]byte(nil), s.buffer[:size]...),
		fin:  s.closing && size == len(s.buffer),
	})
	s.buffer = s.buffer[size:]
	sd := &s.sds[len(s.sds)-1]
	if sd.fin {
		s.finSent, s.fin = true, n
	}
	s.vtS = seqAdd(s.vtS, 1)
	return n, sd
}

// note books a transmission: it is in flight, with the number of the last POLL as its stamp.
func (s *sender) note(n uint32, sd *outgoing) {
	s.serial++
	s.flight += sd.octets()
	sd.serial, sd.stamp, sd.queued = s.serial, s.vtPS, false
	sd.sent++
	sd.idle = false
	if s.halfFull() {
		s.doubted = s.doubted[:0]
	} else {
		s.doubted = append(s.doubted, n)
	}
}

func (s *sender) halfFull() bool { return 2*s.flight >= s.window.cwnd }

// judge decides what has kept the window from filling, once it is known that nothing more is to be
// sent now: lack of data or credit makes it idle, the window itself and pacing do not (STP-CG-010).
func (s *sender) judge() {
	if why := s.obstacle(); why != noData && why != noCredit || s.halfFull() {
		return
	}
	for _, n := range s.doubted {
		if offset := seqDist(s.vtA, n); offset < len(s.sds) {
			s.sds[offset].idle = true
		}
	}
	s.doubted = s.doubted[:0]
}

type obstacle int

const (
	none obstacle = iota
	noData
	noCredit
	noWindow
)

// obstacle tells what keeps the sender from sending, apart from time.
func (s *sender) obstacle() obstacle {
	if again := s.nextAgain(); again != nil {
		if !s.free && s.flight+again.octets() > s.window.limit() {
			return noWindow
		}
		return none
	}
	if !s.waiting() {
		return noData
	}
	if !seqBelow(s.vtS, s.vtMS) {
		return noCredit
	}
	size := max(1, min(len(s.buffer), s.window.smss))
	if len(s.sds) >= s.c.ep.cfg.window || s.flight+size > s.window.limit() {
		return noWindow
	}
	return none
}

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
	for {
		if len(s.buffer) < s.window.smss {
			s.c.supply()
		}
		if s.obstacle() != none {
			break
		}
		sd := s.nextAgain()
		size := s.window.smss
		if sd != nil {
			size = sd.octets()
		} else {
			size = min(size, len(s.buffer))
		}
		if !s.passes(now, size) {
			break
		}
		s.send(now, sd)
	}
	s.judge()
	if s.open && s.unacknowledged() && s.ends() || s.ask && !s.soon(now) {
		s.poll(now)
	}
	s.armPoll(now)
}

// soon tells whether a new SD leaves so soon that a POLL that is due can ride on it (STP-PL-005).
func (s *sender) soon(now instant) bool {
	return s.gate != never && s.gate-now <= paceTick && s.nextAgain() == nil
}

// passes tells whether an SD of this size may leave now; if not, gate is when to ask again.
func (s *sender) passes(now instant, size int) bool {
	length := fixedLength[typeSDP] + size
	if s.c.allowance() < fixedLength[typeSD]+size+fixedLength[typePOLL] {
		// The peer's address is not proven, and a STAT would prove it (STP-SEC-001).
		if s.unanswered == never && s.c.state == ready {
			s.poll(now)
		}
		return false
	}
	wait := s.c.ep.rate.wait(now, s.c.ep.cfg.overhead+length)
	if s.rtt.known {
		wait = max(wait, s.pace.wait(now, s.window.spacing(s.rtt.smoothed, max(1, size))))
	}
	if wait > 0 {
		s.gate = now + wait
	}
	return wait == 0
}

// ends tells whether the SD just sent has to be followed by a POLL (STP-PL-003, STP-PL-004).
func (s *sender) ends() bool {
	if len(s.buffer) < s.window.smss {
		s.c.supply()
	}
	switch s.obstacle() {
	case none:
		return false
	case noData:
		return true
	}
	return s.window.small()
}

// send transmits one SD, sd again or else a new one.
func (s *sender) send(now instant, sd *outgoing) {
	var n uint32
	fresh := sd == nil
	if fresh {
		n, sd = s.cut(s.window.smss)
	} else {
		n = s.again[0]
		s.again = s.again[1:]
		s.free = false
	}
	s.note(n, sd)
	s.pace.sent(now)
	p := packet{kind: typeSD, sequence: n, data: sd.data}
	if sd.fin {
		p.flags = flagFIN
	}
	// A POLL that is due within 10 ms rides on the SD (STP-PL-005); never on a retransmission.
	due := s.ask || s.silences == 0 && s.pollAt-now <= paceTick
	ride := fresh && (due || s.ends())
	if ride {
		p.kind = typeSDP
		p.nPS, p.timestamp = s.nextPoll(now)
	}
	s.open = !ride
	s.c.ep.rate.sent(now, s.c.ep.cfg.overhead+fixedLength[p.kind]+len(p.data))
	s.c.emit(&p)
}

// nextPoll takes the number and the timestamp of the next POLL and starts the timers anew.
func (s *sender) nextPoll(now instant) (uint32, uint32) {
	s.vtPS = seqAdd(s.vtPS, 1)
	s.polled[s.vtPS%pollRecord] = now
	s.silentFrom = min(s.silentFrom, now)
	s.unanswered = min(s.unanswered, now)
	s.startPollTimer(now)
	s.ask, s.open = false, false
	return s.vtPS, uint32(now / time.Microsecond)
}

func (s *sender) startPollTimer(now instant) {
	s.pollBase, s.pollAt = now, now+s.interval()
}

func (s *sender) poll(now instant) {
	if s.c.allowance() < fixedLength[typePOLL] {
		s.startPollTimer(now)
		s.ask = false
		return
	}
	p := packet{kind: typePOLL, sequence: s.vtS}
	p.nPS, p.timestamp = s.nextPoll(now)
	s.c.emit(&p)
}

// interval is the time between POLLs (section 7.1).
func (s *sender) interval() time.Duration {
	usual := s.c.ep.cfg.initialInterval
	switch {
	case s.rtt.known && s.window.small():
		usual = max(s.rtt.cautious(), leastPollInterval)
	case s.rtt.known:
		usual = s.pollInterval()
	}
	return max(usual, s.probe)
}

func (s *sender) pollInterval() time.Duration {
	if !s.rtt.known {
		return s.c.ep.cfg.initialInterval
	}
	return min(max(s.rtt.smoothed/3, leastPollInterval), mostPollInterval)
}

// silence is for how long a POLL may remain without an answer (STP-PL-007).
func (s *sender) silence() time.Duration {
	expected := s.c.ep.cfg.initialInterval
	if s.rtt.known {
		expected = s.rtt.cautious()
	}
	first := max(expected+s.pollInterval(), leastSilence)
	return min(first<<min(max(s.silences-1, 0), 10), mostSilence)
}

// closed tells whether only credit is missing (STP-DT-025).
func (s *sender) closed() bool {
	return !s.unacknowledged() && s.waiting() && !seqBelow(s.vtS, s.vtMS)
}

// lengthenProbe doubles the time between POLLs to a closed window, also in silence, which ends
// earlier (STP-DT-025).
func (s *sender) lengthenProbe() {
	if s.closed() {
		s.probe = min(2*s.interval(), mostProbing)
	}
}

// armPoll starts or stops the timer for POLLs as section 7.1 says.
func (s *sender) armPoll(now instant) {
	if s.c.state != ready {
		s.pollAt = never
		return
	}
	unproven := s.waiting() && s.unanswered != never
	if s.unacknowledged() || s.closed() || s.unheard || unproven {
		if s.pollAt == never {
			s.pollBase = now
		}
		s.pollAt = s.pollBase + s.interval() // which may have changed
		return
	}
	s.pollAt, s.silentFrom, s.silences, s.inRow = never, never, 0, 0
	if keepAlive := s.c.ep.cfg.keepAlive; keepAlive > 0 {
		// One in 15 s, answered or not; 60 s without an answer end the connection all the same.
		s.pollAt = max(s.c.heard, s.polled[s.vtPS%pollRecord]) + keepAlive
	} else {
		s.unanswered = never
	}
}

// deadline is when the sender wants to be called again.
func (s *sender) deadline() instant {
	next := s.gate
	if s.silences == 0 && !s.ask { // if a POLL is asked for, the next SD takes it along
		next = min(next, s.pollAt)
	}
	if s.silentFrom != never {
		next = min(next, s.silentFrom+s.silence())
	}
	if s.unanswered != never {
		next = min(next, s.unanswered+noResponse)
	}
	return next
}

// expire does what the timers want; false means that the peer is given up (STP-PL-008).
func (s *sender) expire(now instant) bool {
	if s.unanswered != never && now-s.unanswered >= noResponse {
		return false
	}
	if s.silentFrom != never && now-s.silentFrom >= s.silence() {
		s.silences++
		s.inRow++
		if s.inRow == 2 {
			s.window.silent(s.flight)
			s.reduced, s.free = s.serial, true
		}
		s.silentFrom = now
		s.lengthenProbe()
		s.poll(now)
	} else if s.silences == 0 && now >= s.pollAt {
		s.lengthenProbe()
		s.ask = true
	}
	return true
}
