package main

// Working off STATs and USTATs (STP/1 section 6.4).

// validReport checks what STAT and USTAT have in common (STP-DT-023, STP-PF-011, STP-PF-013). All
// numbers are taken as distances from N(R), so that none can hide behind the modulus; the work
// that a report causes is then bounded by the SDs in flight (STP-SEC-004).
func (s *sender) validReport(nR, nMR uint32, list []uint32) bool {
	if seqDist(s.vtA, nR) > len(s.sds) {
		return false
	}
	bound := min(seqDist(nR, s.vtS), seqDist(nR, nMR))
	if len(list) > 0 && seqBelow(nMR, nR) {
		return false
	}
	least := 0
	for _, element := range list {
		distance := seqDist(nR, element)
		if distance < least || distance > bound {
			return false
		}
		least = distance + 1
	}
	return len(list) != 1
}

// stat works off a STAT.
func (s *sender) stat(now instant, p *packet) {
	newest := p.nPS != 0 && seqBelow(s.vtPA, p.nPS)
	switch {
	case p.nPS == 0 && len(p.list) > 0, // it only announces credit
		p.nPS != 0 && !newest && p.nPS != s.vtPA,
		p.nPS != 0 && seqBelow(s.vtPS, p.nPS),
		!s.validReport(p.sequence, p.nMR, p.list):
		return
	}
	if newest {
		if seqDist(p.nPS, s.vtPS) < pollRecord {
			s.rtt.measure(now - s.polled[p.nPS%pollRecord])
		}
		s.vtPA = p.nPS
	}
	r := s.begin(p.sequence, p.nMR)
	for i := 1; i < len(p.list); i++ {
		from, to := p.list[i-1], p.list[i]
		for ; from != to; from = seqAdd(from, 1) {
			sd := &s.sds[seqDist(s.vtA, from)]
			if i%2 == 0 {
				r.arrived(sd)
			} else if seqBelow(sd.stamp, p.nPS) {
				r.missing(from, sd)
			}
		}
	}
	r.finish(now, p.sequence)
}

// ustat works off a USTAT: only what was sent exactly once is sent again (STP-DT-014).
func (s *sender) ustat(now instant, p *packet) {
	if !s.validReport(p.sequence, p.nMR, p.list) {
		return
	}
	r := s.begin(p.sequence, p.nMR)
	for n := p.list[0]; n != p.list[1]; n = seqAdd(n, 1) {
		if sd := &s.sds[seqDist(s.vtA, n)]; sd.sent == 1 {
			r.missing(n, sd)
		}
	}
	r.finish(now, p.sequence)
}

// accepted takes N(R) and credit of a BGAK. It is no report, and so the window does not grow.
func (s *sender) accepted(nR, nMR uint32) {
	if smss := s.c.smss(); smss != s.window.smss {
		s.window.start(smss, s.c.ep.cfg.initialWindow, s.c.ep.cfg.window)
	}
	s.begin(nR, nMR).advance(nR)
	s.openSince, s.ask = never, s.unacknowledged() // STP-CC-042
}

// report is a STAT or USTAT being worked off.
type report struct {
	s      *sender
	flight int  // before it
	grown  int  // octets newly arrived
	loss   bool // a transmission made after the last reduction is lost
	closed bool // the window was, before it
}

func (s *sender) begin(nR, nMR uint32) *report {
	r := &report{s: s, flight: s.flight, closed: s.closed()}
	s.vtMS = seqHigher(s.vtMS, nMR)
	for i := range s.sds[:seqDist(s.vtA, nR)] {
		r.arrived(&s.sds[i])
	}
	return r
}

func (r *report) arrived(sd *outgoing) {
	if sd.arrived {
		return
	}
	if !sd.queued {
		r.s.flight -= sd.octets()
	}
	r.grown += sd.octets()
	sd.arrived, sd.queued, sd.data = true, false, nil
}

func (r *report) missing(n uint32, sd *outgoing) {
	if sd.arrived || sd.queued {
		return
	}
	sd.queued = true
	r.s.flight -= sd.octets()
	r.s.again = append(r.s.again, n)
	if sd.serial > r.s.reduced {
		r.loss = true
	}
}

// advance lets go of what lies below N(R).
func (r *report) advance(nR uint32) {
	r.s.sds = r.s.sds[seqDist(r.s.vtA, nR):]
	r.s.vtA = nR
}

func (r *report) finish(now instant, nR uint32) {
	s := r.s
	r.advance(nR)
	if r.loss {
		s.window.lost()
		s.reduced, s.free = s.serial, true
	} else {
		s.window.arrived(r.grown, r.flight)
	}
	s.noResponseAt, s.silences = never, 0
	if !r.closed || !s.closed() { // the doubling goes on while there is no credit (STP-DT-025)
		s.silenceWait = s.silence()
	}
	s.silenceAt = now + s.silenceWait
	if !s.unacknowledged() && !s.lacksCredit() {
		s.silenceAt = never
	}
	s.openSince = never
	for i := range s.sds {
		if sd := &s.sds[i]; sd.stamp == s.vtPS {
			s.openSince = min(s.openSince, sd.at)
		}
	}
}
