package main

// arrival is one SD that has come and is not yet with the user.
type arrival struct {
	data []byte
	fin  bool
	held bool
}

// receiver is the receiving half of one direction (STP/1 sections 6.2, 6.3 and 6.5). It holds at
// most window SDs, whatever arrives.
type receiver struct {
	vrR, vrH, vrMR uint32 // vrMR is what has been announced (STP-DT-020)
	top            uint32 // just above the highest SD taken
	window         int

	ring []arrival // the SD numbered vrR+i is at (head+i) mod window
	head int

	queue    [][]byte // delivered in order, not yet taken by the user
	fin      uint32   // number of the SD with the FIN
	finKnown bool
	finished bool // the FIN and all before it have been delivered
	shut     bool // the last report showed no credit beyond vrH (STP-DT-024)
}

func (r *receiver) start(iss uint32, window int) {
	*r = receiver{vrR: iss, vrH: iss, top: iss, window: window, ring: make([]arrival, window)}
	r.vrMR = seqAdd(iss, window)
}

// take receives an SD. If it opens a gap, [from, n) is what a USTAT has to report (STP-DT-001).
func (r *receiver) take(n uint32, data []byte, fin bool) (from uint32, gap bool) {
	offset := seqDist(r.vrR, n)
	if offset >= seqDist(r.vrR, r.vrMR) || r.finished || r.finKnown && seqBelow(r.fin, n) {
		return 0, false
	}
	above := seqAdd(n, 1)
	if fin && seqBelow(above, r.top) {
		return 0, false // the stream goes on already (STP-DT-028)
	}
	place := &r.ring[(r.head+offset)%r.window]
	if place.held {
		return 0, false
	}
	from, gap = r.vrH, seqBelow(r.vrH, n)
	*place = arrival{append([]byte(nil), data...), fin, true}
	if fin {
		r.fin, r.finKnown = n, true
	}
	r.vrH, r.top = seqHigher(r.vrH, above), seqHigher(r.top, above)
	r.deliver()
	return from, gap
}

func (r *receiver) deliver() {
	for next := &r.ring[r.head]; next.held && !r.finished; next = &r.ring[r.head] {
		if len(next.data) > 0 {
			r.queue = append(r.queue, next.data)
		}
		r.finished = next.fin
		*next = arrival{}
		r.head = (r.head + 1) % r.window
		r.vrR = seqAdd(r.vrR, 1)
	}
}

// credit is what could be announced.
func (r *receiver) credit() uint32 {
	return seqHigher(r.vrMR, seqAdd(r.vrR, r.window-len(r.queue)))
}

// announce raises VR(MR) just before it is sent.
func (r *receiver) announce() { r.vrMR = r.credit() }

// read takes the next octets in order, nil if there are none yet.
func (r *receiver) read() []byte {
	if len(r.queue) == 0 {
		return nil
	}
	data := r.queue[0]
	r.queue[0] = nil
	r.queue = r.queue[1:]
	return data
}

// ended tells whether the user has taken everything up to the peer's FIN (STP-CC-004).
func (r *receiver) ended() bool { return r.finished && len(r.queue) == 0 }

// polled takes note of a POLL's N(S); one beyond the credit or the end raises nothing (STP-DT-008).
func (r *receiver) polled(nS uint32) {
	last := r.vrMR
	if r.finKnown {
		last = seqAdd(r.fin, 1)
	}
	// A POLL before the FIN may have raised VR(H) above last: count from VR(R), as all are above it.
	offset := seqDist(r.vrR, nS)
	if offset > seqDist(r.vrR, r.vrH) && offset <= seqDist(r.vrR, last) {
		r.vrH = nS
	}
}

// list is the uncut list of a STAT (section 3.5).
func (r *receiver) list() []uint32 {
	span := seqDist(r.vrR, r.vrH)
	if span == 0 {
		return nil
	}
	var list []uint32
	held := true
	for offset := 0; offset < span; offset++ {
		if now := r.ring[(r.head+offset)%r.window].held; now != held {
			list = append(list, seqAdd(r.vrR, offset))
			held = now
		}
	}
	return append(list, r.vrH)
}

// cut splits a list into those of several STATs (STP-PF-012).
func cut(list []uint32, most int) [][]uint32 {
	var pieces [][]uint32
	for len(list) > most {
		pieces = append(pieces, list[:most])
		list = list[most-1:]
	}
	return append(pieces, list)
}

// reopened tells whether a closed window must be announced as open now (STP-DT-024).
func (r *receiver) reopened() bool {
	return r.shut && !r.finKnown && seqDist(r.vrH, r.credit()) >= max(1, min(16, r.window/2))
}
