package main

// Working off STATs and USTATs (STP/1 sections 6.4 and 6.5).

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

// stat works off a STAT and tells whether it was valid.
func (s *sender) stat(now instant, p *packet) bool {
	newest := seqBelow(s.vtPA, p.nPS)
	if seqBelow(s.vtPS, p.nPS) || !newest && p.nPS != s.vtPA ||
		!s.validReport(p.sequence, p.nMR, p.list) {
		return false
	}
	if newest && seqDist(p.nPS, s.vtPS) < pollRecord {
		s.rtt.measure(now - s.polled[p.nPS%pollRecord])
	}
	s.vtPA = p.nPS
	s.unanswered, s.unheard = never, false
	s.silences, s.inRow, s.silentFrom = 0, 0, never
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
	s.window.answered = s.window.answered || r.shown
	r.finish(p.sequence)
	return true
}

// ustat works off a USTAT: only what was sent exactly once is sent again (STP-DT-014).
func (s *sender) ustat(now instant, p *packet) bool {
	if !s.validReport(p.sequence, p.nMR, p.list) {
		return false
	}
	// It ends the silence; only a STAT ends the doubling (STP-PL-007).
	s.inRow, s.silentFrom = 0, never
	if s.silences > 0 {
		s.silentFrom = now
	}
	r := s.begin(p.sequence, p.nMR)
	for n := p.list[0]; n != p.list[1]; n = seqAdd(n, 1) {
		if sd := &s.sds[seqDist(s.vtA, n)]; sd.sent == 1 {
			r.missing(n, sd)
		}
	}
	r.finish(p.sequence)
	return true
}

// acknowledged takes N(R) and credit of a BGAK.
func (s *sender) acknowledged(nR, nMR uint32) {
	r := s.begin(nR, nMR)
	r.finish(nR)
}

// report is a STAT or USTAT being worked off.
type report struct {
	s      *sender
	flight int  // before it
	grown  int  // octets newly arrived that may grow the window
	shown  bool // it shows an SD as arrived that no report had
	loss   bool // a transmission made after the last reduction is lost
}

func (s *sender) begin(nR, nMR uint32) *report {
	r := &report{s: s, flight: s.flight}
	if seqBelow(s.vtMS, nMR) {
		s.vtMS, s.probe = nMR, 0
	}
	for i := range s.sds[:seqDist(s.vtA, nR)] {
		r.arrived(&s.sds[i])
	}
	return r
}

func (r *report) arrived(sd *outgoing) {
	if sd.arrived {
		return
	}
	sd.arrived, r.shown = true, true
	if !sd.queued {
		r.s.flight -= sd.octets()
	}
	sd.queued = false
	if !sd.idle {
		r.grown += sd.octets()
	}
	sd.data = nil
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

func (r *report) finish(nR uint32) {
	s := r.s
	if r.loss {
		s.window.lost(r.flight)
		s.reduced, s.free = s.serial, true
	} else {
		s.window.arrived(r.grown)
	}
	s.sds = s.sds[seqDist(s.vtA, nR):]
	s.vtA = nR
}
