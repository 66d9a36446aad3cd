package main

// sender sends the stream of the user. There are two: that of RWBP, and that of plain TCP.
type sender interface {
	// room is how many octets the user may write.
	room() int
	write(octets []byte)
	// finish lets a FIN follow what has been written.
	finish()
	// forgo drops what has been written and not been sent.
	forgo()

	// opened is called when the connection opens; the own SYN may have had to be repeated.
	opened(repeated bool)
	// canSend tells whether a segment with data or FIN can leave now, and send lets it leave.
	canSend() bool
	send(now instant)
	// acknowledged learns from a segment that is acceptable and has an ACK flag. It is false if the
	// segment has to be answered and discarded.
	acknowledged(s *segment, now instant) bool
	// settle is called when everything that can be sent has been.
	settle(now instant)

	// sentTo is SND.NXT, and done tells whether everything up to the FIN has been acknowledged.
	sentTo() number
	finSent() bool
	done() bool

	deadline() instant
	expire(now instant)
}

// queue is what the user has written and what has not been cut into segments.
type queue struct {
	unsent []byte
	closed bool
}

func (q *queue) write(octets []byte) { q.unsent = append(q.unsent, octets...) }
func (q *queue) finish()             { q.closed = true }
func (q *queue) forgo()              { q.unsent = nil }

// perSegment is what the bookkeeping of an outstanding segment takes from the send buffer.
const perSegment = 128

// sent is an outstanding segment (section 2).
type sent struct {
	start, end  number
	data        []byte
	flags       byte
	first, last uint64 // FT, LT
	at          instant
	copies      int
	suspect     bool
	repaired    instant
	isRepaired  bool
}

// rwbpSender sends by sections 6 and 8.
type rwbpSender struct {
	queue
	c    *connection
	smss uint32
	unit uint64 // UNIT.PEER

	una, next, edge number
	fin             bool // FIN has been sent
	outstanding     []*sent
	octets          int // of outstanding segments, bookkeeping included

	tx         uint64
	firsts     [3]uint64 // F1, F2, F3
	falseLoss  int
	backoff    int
	txTimeout  uint64
	probes     int
	rtx, probe timer
}

const falseLosses = 3

// newRWBPSender begins behind the own SYN, when the edge has been named in octets.
func newRWBPSender(c *connection, smss uint32, unit uint16, edge number) *rwbpSender {
	return &rwbpSender{c: c, smss: smss, unit: uint64(unit), una: c.iss + 1, next: c.iss + 1, edge: edge}
}

func (s *rwbpSender) room() int {
	return max(0, s.c.endpoint.sendBuffer-s.octets-len(s.unsent))
}

func (s *rwbpSender) opened(bool) {}

func (s *rwbpSender) sentTo() number { return s.next }
func (s *rwbpSender) finSent() bool  { return s.fin }
func (s *rwbpSender) done() bool     { return s.fin && s.una == s.next }

// highest is H: F1 while K is 1, F3 while K is 3.
func (s *rwbpSender) highest() uint64 {
	if s.falseLoss >= falseLosses {
		return s.firsts[2]
	}
	return s.firsts[0]
}

// waits tells whether data or FIN has not been sent yet.
func (s *rwbpSender) waits() bool {
	return s.c.mayTransmit() && (len(s.unsent) > 0 || s.closed && !s.fin)
}

// nextEnd is the END of the next segment, without a FIN that rides on data.
func (s *rwbpSender) nextEnd() number {
	if len(s.unsent) == 0 {
		return s.next + 1
	}
	return s.next + number(min(uint32(len(s.unsent)), s.smss))
}

func (s *rwbpSender) fits() bool { return !s.nextEnd().above(s.edge) }

// awaiting is the lowest segment that awaits retransmission, or nil.
func (s *rwbpSender) awaiting() *sent {
	for _, each := range s.outstanding {
		if each.copies > 0 {
			return each
		}
	}
	return nil
}

func (s *rwbpSender) canSend() bool {
	return s.waits() && s.fits() || s.awaiting() != nil
}

// send transmits a segment (section 8.2).
func (s *rwbpSender) send(now instant) {
	s.tx++
	chosen := s.awaiting()
	isNew := chosen == nil
	if isNew {
		chosen = s.cut()
		chosen.first = s.tx
		s.outstanding = append(s.outstanding, chosen)
		s.octets += len(chosen.data) + perSegment
	} else {
		chosen.copies--
		if chosen.suspect && !chosen.isRepaired {
			chosen.repaired, chosen.isRepaired = now, true
		}
	}
	chosen.last = s.tx
	chosen.at = now
	if !s.rtx.running {
		s.rtx.start(now, backedOff(s.c.rtt.rto, s.backoff))
	}
	s.c.transmitData(chosen.start, chosen.flags, chosen.data, isNew, now)
}

// cut takes the next segment off the stream.
func (s *rwbpSender) cut() *sent {
	end := s.nextEnd()
	made := &sent{start: s.next, flags: flagACK}
	if count := len(s.unsent); count > 0 {
		count = min(count, int(s.smss))
		made.data = append([]byte(nil), s.unsent[:count]...)
		s.unsent = s.unsent[count:]
		if len(s.unsent) == 0 {
			s.unsent = nil
			made.flags |= flagPSH
		}
	}
	if s.closed && len(s.unsent) == 0 {
		rides := len(made.data) > 0
		if rides && !(end + 1).above(s.edge) {
			end++
		}
		if !rides || end == s.next+number(len(made.data))+1 {
			made.flags |= flagFIN
			s.fin = true
		}
	}
	made.end = end
	s.next = end
	return made
}

// acknowledged does what section 8.3 says.
func (s *rwbpSender) acknowledged(seg *segment, now instant) bool {
	const oldest = 1 << 30
	if !seg.ack.within(s.una-oldest, s.next+1) {
		return false
	}
	before := s.highest()
	s.edge = higher(s.edge, seg.ack+number(min(uint64(seg.window)*s.unit, 1<<30)))

	arrived := s.release(seg.ack, s.trueBlocks(seg))
	s.una = higher(s.una, seg.ack)
	if len(arrived) == 0 {
		return true
	}
	newest := arrived[len(arrived)-1]
	if newest.first == newest.last && newest.first > s.txTimeout {
		s.c.rtt.sample(now - newest.at)
	}
	raised := false
	for _, each := range arrived {
		raised = s.judge(each, now) || raised
	}
	for _, each := range arrived {
		s.rank(each.first)
	}
	s.backoff = 0
	if len(s.outstanding) > 0 {
		s.rtx.start(now, backedOff(s.c.rtt.rto, 0))
	} else {
		s.rtx.stop()
	}
	if !raised && s.highest() > before {
		s.suspect()
	}
	return true
}

// trueBlocks are the SACK blocks that count (RWBP-EC-013).
func (s *rwbpSender) trueBlocks(seg *segment) []block {
	var counting []block
	for _, each := range seg.options.blocks {
		if each.left.above(s.una) && each.left.above(seg.ack) && each.right.above(each.left) &&
			!each.right.above(s.next) {
			counting = append(counting, each)
		}
	}
	return counting
}

// release takes the segments that have arrived out of those that are outstanding.
func (s *rwbpSender) release(ack number, blocks []block) (arrived []*sent) {
	rest := s.outstanding[:0]
	for _, each := range s.outstanding {
		if !each.end.above(ack) || each.covered(blocks) {
			arrived = append(arrived, each)
			s.octets -= len(each.data) + perSegment
		} else {
			rest = append(rest, each)
		}
	}
	clear(s.outstanding[len(rest):])
	s.outstanding = rest
	return arrived
}

// covered tells whether the data, of which there is some, lies within one of the blocks.
func (o *sent) covered(blocks []block) bool {
	end := o.start + number(len(o.data))
	for _, each := range blocks {
		if len(o.data) > 0 && !o.start.below(each.left) && !end.above(each.right) {
			return true
		}
	}
	return false
}

// judge finds out whether the loss of a segment that has arrived was false (section 8.5). It tells
// whether that has raised K.
func (s *rwbpSender) judge(arrived *sent, now instant) bool {
	rtt := &s.c.rtt
	wasFalse := arrived.suspect &&
		(!arrived.isRepaired || rtt.measured && now-arrived.repaired < rtt.smallest/2)
	if !wasFalse {
		return false
	}
	s.falseLoss++
	return s.falseLoss == falseLosses
}

// rank gives FT its place among F1, F2 and F3.
func (s *rwbpSender) rank(first uint64) {
	for place, have := range s.firsts {
		if first > have {
			copy(s.firsts[place+1:], s.firsts[place:])
			s.firsts[place] = first
			return
		}
	}
}

// suspect takes for lost what was transmitted before the right edge and has not arrived.
func (s *rwbpSender) suspect() {
	for _, each := range s.outstanding {
		if each.copies == 0 && each.last < s.highest() {
			each.copies, each.suspect, each.isRepaired = 1, true, false
		}
	}
}

// settle starts and stops the probe timer (section 6.3).
func (s *rwbpSender) settle(now instant) {
	closed := s.waits() && len(s.outstanding) == 0 && !s.fits()
	switch {
	case closed && !s.probe.running:
		s.probe.start(now, backedOff(s.c.rtt.rto, s.probes))
	case !closed:
		s.probe.stop()
		s.probes = 0
	}
}

func (s *rwbpSender) deadline() instant { return min(s.rtx.deadline(), s.probe.deadline()) }

func (s *rwbpSender) expire(now instant) {
	if s.rtx.due(now) {
		s.timeout(now)
	}
	if s.probe.due(now) && !s.c.silent(now) {
		s.c.transmitProbe(now)
		s.probes++
		s.probe.start(now, backedOff(s.c.rtt.rto, s.probes))
	}
}

// timeout does what section 8.4 says.
func (s *rwbpSender) timeout(now instant) {
	s.rtx.stop()
	if len(s.outstanding) == 0 || s.c.silent(now) {
		return
	}
	if s.awaiting() == nil {
		s.outstanding[0].copies = 2
		s.backoff++
		s.txTimeout = s.tx
	}
	s.rtx.start(now, backedOff(s.c.rtt.rto, s.backoff))
}
