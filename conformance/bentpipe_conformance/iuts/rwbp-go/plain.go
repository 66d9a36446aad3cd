package main

// plainSender sends on a connection without RWBP: RFC 9293 with the congestion control of RFC 5681,
// RFC 6582 (NewReno) for several losses, and going back to the first octet after a timeout. It makes
// no use of SACK blocks.
type plainSender struct {
	queue  // unsent begins at una here, with what is outstanding
	c      *connection
	smss   uint32
	una    number
	next   number // what is sent next; behind highest after a timeout
	fin    number // that of the FIN, once the user has closed
	most   number // one above the highest number sent: SND.NXT of RFC 9293
	window uint32
	wl1    number
	wl2    number
	widest uint32 // the widest window of the peer

	cwnd, threshold uint32
	gathered        uint32 // octets acknowledged since cwnd grew, in congestion avoidance
	duplicates      int
	recovering      bool
	recover         number
	repair          bool // the segment at una is due

	rtx, persist timer
	backoff      int
	probes       int
	timed        bool // the round trip of the segment that ends at timedEnd is measured
	timedEnd     number
	timedAt      instant
	sentAt       instant
	expired      number // the segment that the timer expired for last
}

func newPlainSender(c *connection, smss, window uint32, seg *segment) *plainSender {
	first := c.iss + 1
	s := &plainSender{
		c: c, smss: smss, una: first, next: first, most: first, recover: c.iss, expired: c.iss,
		window: window, wl1: seg.seq, wl2: first, widest: window, threshold: 1 << 30,
	}
	s.cwnd = s.initial()
	return s
}

// opened leaves the initial window at one segment if a SYN has been lost (RFC 5681 section 3.1).
func (s *plainSender) opened(repeated bool) {
	if repeated {
		s.cwnd = s.smss
	}
}

// initial is the initial window of RFC 5681.
func (s *plainSender) initial() uint32 {
	switch {
	case s.smss > 2190:
		return 2 * s.smss
	case s.smss > 1095:
		return 3 * s.smss
	default:
		return 4 * s.smss
	}
}

func (s *plainSender) room() int      { return max(0, s.c.endpoint.sendBuffer-len(s.unsent)) }
func (s *plainSender) sentTo() number { return s.most }
func (s *plainSender) finSent() bool  { return s.closed && s.most.above(s.fin) }
func (s *plainSender) done() bool     { return s.closed && s.una.above(s.fin) }

// end is the number behind the last octet that the user has written: that of the FIN, if there is one.
func (s *plainSender) end() number {
	if s.closed {
		return s.fin
	}
	return s.una + number(len(s.unsent))
}

func (s *plainSender) finish() {
	s.fin = s.end()
	s.closed = true
}

// forgo drops what has not been sent; what has been is needed for retransmissions.
func (s *plainSender) forgo() {
	if !s.closed {
		s.unsent = s.unsent[:uint32(s.most-s.una)]
	}
}

func (s *plainSender) flight() uint32 { return uint32(s.most - s.una) }

// cut is the size of the segment at next that may be sent now, and whether it has the FIN.
func (s *plainSender) cut() (size uint32, fin, ok bool) {
	if !s.c.mayTransmit() || s.done() || s.next.above(s.end()) {
		return 0, false, false
	}
	offset := uint32(s.next - s.una)
	waiting := uint32(len(s.unsent)) - offset
	limit := min(s.window, s.cwnd)
	if offset >= limit {
		return 0, false, false
	}
	limit -= offset
	size = min(waiting, s.smss, limit)
	all := size == waiting
	fin = s.closed && all && size < s.window-offset
	switch {
	case size == 0:
		return 0, fin, fin
	case size == s.smss, all && (s.closed || s.next == s.una || s.next.below(s.most)):
		return size, fin, true
	}
	return size, fin, s.next == s.una && size >= (s.widest+1)/2
}

func (s *plainSender) canSend() bool {
	_, _, ok := s.cut()
	return ok || s.repair
}

func (s *plainSender) send(now instant) {
	if s.repair {
		s.repair = false
		size := min(uint32(len(s.unsent)), s.smss, s.flight())
		s.timed = false
		s.put(s.una, size, s.closed && s.una+number(size) == s.end() && s.finSent(), now)
		return
	}
	size, fin, _ := s.cut()
	if s.una == s.most && s.sentAt != 0 && now-s.sentAt > s.c.rtt.rto {
		s.cwnd = min(s.cwnd, s.initial())
		size, fin, _ = s.cut()
	}
	s.advance(size, fin, now)
}

// advance sends the segment at next.
func (s *plainSender) advance(size uint32, fin bool, now instant) {
	start := s.next
	s.next += number(size)
	if fin {
		s.next++
	}
	if s.next.above(s.most) {
		if !s.timed && start == s.most {
			s.timed, s.timedEnd, s.timedAt = true, s.next, now
		}
		s.most = s.next
	}
	s.put(start, size, fin, now)
}

func (s *plainSender) put(start number, size uint32, fin bool, now instant) {
	offset := uint32(start - s.una)
	data := s.unsent[offset : offset+size]
	flags := byte(flagACK)
	if fin {
		flags |= flagFIN
	}
	if size > 0 && int(offset+size) == len(s.unsent) {
		flags |= flagPSH
	}
	s.sentAt = now
	if !s.rtx.running {
		s.rtx.start(now, backedOff(s.c.rtt.rto, s.backoff))
	}
	s.c.transmitData(start, flags, data, true, now)
}

func (s *plainSender) acknowledged(seg *segment, now instant) bool {
	if seg.ack.above(s.most) || seg.ack.below(s.una-number(s.widest)) {
		return false
	}
	if seg.ack.below(s.una) {
		return true
	}
	duplicate := seg.ack == s.una && s.flight() > 0 && !s.persist.running && len(seg.data) == 0 && !seg.has(flagFIN) &&
		uint32(seg.window) == s.window
	if s.wl1.below(seg.seq) || s.wl1 == seg.seq && !seg.ack.below(s.wl2) {
		s.window, s.wl1, s.wl2 = uint32(seg.window), seg.seq, seg.ack
		s.widest = max(s.widest, s.window)
	} else {
		s.window -= min(s.window, uint32(seg.ack-s.una)) // the edge stays
	}
	switch {
	case seg.ack.above(s.una):
		s.progress(seg.ack, now)
	case duplicate:
		s.duplicate(now)
	}
	return true
}

// progress takes what is acknowledged off the stream.
func (s *plainSender) progress(ack number, now instant) {
	fresh := uint32(ack - s.una)
	octets := min(fresh, uint32(len(s.unsent)))
	s.unsent = s.unsent[octets:]
	if len(s.unsent) == 0 {
		s.unsent = nil
	}
	s.una = ack
	s.next = higher(s.next, ack)
	if s.timed && !ack.below(s.timedEnd) {
		s.timed = false
		s.c.rtt.sample(now - s.timedAt)
		s.backoff = 0
	}
	s.duplicates = 0
	partial := s.recovering && ack.below(s.recover)
	s.grow(fresh, partial)
	switch {
	case s.flight() == 0:
		s.rtx.stop()
	default:
		s.rtx.start(now, backedOff(s.c.rtt.rto, s.backoff))
	}
}

// grow lets the congestion window follow an acknowledgment of new octets.
func (s *plainSender) grow(fresh uint32, partial bool) {
	switch {
	case partial:
		s.repair = true
		s.cwnd -= min(s.cwnd, fresh)
		if fresh >= s.smss {
			s.cwnd += s.smss
		}
		s.cwnd = max(s.cwnd, s.smss)
	case s.recovering:
		s.recovering = false
		s.cwnd = min(s.threshold, max(s.flight(), s.smss)+s.smss)
	case s.cwnd < s.threshold:
		s.cwnd += min(fresh, s.smss)
	default:
		s.gathered += fresh
		if s.gathered >= s.cwnd {
			s.gathered -= s.cwnd
			s.cwnd += s.smss
		}
	}
	s.cwnd = min(s.cwnd, 1<<30)
}

func (s *plainSender) duplicate(now instant) {
	s.duplicates++
	switch {
	case s.recovering:
		s.cwnd += s.smss
	case s.duplicates == 3 && s.una.above(s.recover):
		s.threshold = max(s.flight()/2, 2*s.smss)
		s.cwnd = s.threshold + 3*s.smss
		s.recover, s.recovering, s.repair = s.most, true, true
		s.rtx.start(now, backedOff(s.c.rtt.rto, s.backoff))
	}
}

// shut tells whether data or FIN waits, nothing is in flight that would bring an acknowledgment, and
// the peer's window is what is in the way.
func (s *plainSender) shut() bool {
	_, _, ok := s.cut()
	waits := !s.done() && !s.next.above(s.end()) && (len(s.unsent) > 0 || s.closed)
	return s.c.mayTransmit() && waits && s.next == s.una && !ok && !s.repair
}

func (s *plainSender) settle(now instant) {
	switch shut := s.shut(); {
	case shut && !s.persist.running:
		s.rtx.stop()
		s.persist.start(now, backedOff(s.c.rtt.rto, s.probes))
	case !shut:
		s.persist.stop()
		s.probes = 0
	}
}

func (s *plainSender) deadline() instant { return min(s.rtx.deadline(), s.persist.deadline()) }

func (s *plainSender) expire(now instant) {
	if s.rtx.due(now) {
		s.timeout(now)
	}
	if s.persist.due(now) && !s.c.silent(now) {
		s.ask(now)
	}
}

// ask sends what fits into the window, or one number beyond a closed one.
func (s *plainSender) ask(now instant) {
	size := min(uint32(len(s.unsent)), s.smss, max(1, s.window))
	s.timed = false
	s.advance(size, s.closed && len(s.unsent) == 0, now)
	s.timed = false
	s.next = s.una
	s.rtx.stop()
	s.probes++
	s.persist.start(now, backedOff(s.c.rtt.rto, s.probes))
}

func (s *plainSender) timeout(now instant) {
	s.rtx.stop()
	if s.flight() == 0 || s.c.silent(now) {
		return
	}
	if s.una != s.expired {
		s.threshold = max(s.flight()/2, 2*s.smss)
		s.expired = s.una
	}
	s.backoff++
	s.cwnd, s.gathered, s.duplicates = s.smss, 0, 0
	s.recovering, s.recover = false, s.most
	s.repair, s.timed = false, false
	s.next = s.una
	s.rtx.start(now, backedOff(s.c.rtt.rto, s.backoff))
}
