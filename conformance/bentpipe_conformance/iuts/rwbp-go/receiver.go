package main

import "slices"

const plainInterval = 2

// receiver puts the stream of the peer together (sections 6.1 and 7), on connections with RWBP and,
// with the differences that plain TCP has, on those without.
type receiver struct {
	rwbp  bool
	sack  bool   // blocks are sent
	unit  uint32 // UNIT.OWN; the own MSS in plain TCP
	every int    // N
	size  uint32 // BUF

	next  number // RCV.NXT
	user  number // RCV.USER
	edge  number // RCV.EDGE
	top   number // RCV.TOP
	last  number // RCV.LAST
	began bool   // there is a RCV.LAST
	turn  number // RCV.ROT

	store []byte  // a ring of size octets, as long as it holds any
	head  uint32  // where in it the octet user is
	runs  []block // in ascending order, all above next

	fin     number
	finHeld bool // a FIN has arrived: it is number fin

	unacked  int
	due      bool // an acknowledgment is called for, and data may carry it
	ackTimer timer
}

// newReceiver begins after the peer's SYN, to which the window field advertised was sent in octets.
func newReceiver(irs number, size, unit uint32, advertised uint16) receiver {
	first := irs + 1
	return receiver{
		unit: unit, every: plainInterval, size: size,
		next: first, user: first, top: first, turn: irs, edge: first + number(advertised),
	}
}

// ended tells whether everything has arrived, the FIN included.
func (r *receiver) ended() bool { return r.finHeld && r.next == r.fin+1 }

// readable is how many octets the user can read now.
func (r *receiver) readable() uint32 {
	octets := uint32(r.next - r.user)
	if r.ended() {
		octets--
	}
	return octets
}

// read gives the user what has arrived in order, as far as it fits into into.
func (r *receiver) read(into []byte) int {
	count := min(uint32(len(into)), r.readable())
	if count == 0 {
		return 0
	}
	copied := copy(into[:count], r.store[r.head:])
	copy(into[copied:count], r.store)
	r.skip(count)
	return int(count)
}

// skip lets count octets, which are readable, count as read.
func (r *receiver) skip(count uint32) {
	r.user += number(count)
	r.head = (r.head + count) % r.size
	if r.readable() == 0 && len(r.runs) == 0 {
		r.store, r.head = nil, 0
	}
}

// room is how many octets from RCV.NXT on the buffer could hold.
func (r *receiver) room() uint32 { return r.size - uint32(r.next-r.user) }

// offered is the window field that could be sent now, and the edge that it would name.
func (r *receiver) offered() (uint16, number) {
	if r.rwbp {
		field := min(65535, (1<<30)/r.unit, r.room()/r.unit)
		return uint16(field), higher(r.edge, r.next+number(field*r.unit))
	}
	field := min(65535, r.room())
	edge := r.next + number(field)
	// Silly window avoidance: the edge moves by a segment or half the buffer, or stays.
	if !r.edge.below(edge) || uint32(edge-r.edge) < min(r.unit, r.size/2) {
		edge = r.edge
	}
	return uint16(edge - r.next), edge
}

// window returns the field of a segment that is being sent.
func (r *receiver) window() uint16 {
	field, edge := r.offered()
	r.edge = edge
	return field
}

// wantsUpdate tells whether the edge could rise so far that the peer must know (RWBP-WN-007).
func (r *receiver) wantsUpdate() bool {
	_, edge := r.offered()
	rise := uint32(edge - r.edge)
	if rise == 0 {
		return false
	}
	size := r.size
	if !r.rwbp {
		size = min(size, 65535)
	}
	return rise >= (size+1)/2 || uint32(r.edge-r.next) < r.unit && rise >= 2*r.unit
}

// acceptable is the first check of RFC 9293 section 3.10.7.4, with RWBP-WN-004 and RWBP-WN-013.
func (r *receiver) acceptable(s *segment) bool {
	length, window := s.length(), uint32(r.edge-r.next)
	offset := uint32(s.seq - r.next)
	if length == 0 {
		if r.rwbp && !s.has(flagRST) {
			return offset <= window
		}
		return offset < window || offset == 0
	}
	// One that covers the whole window begins below and ends above it (RWBP-WN-004).
	covers := window > 0 && offset > 1<<31 && offset+length > window && offset+length < 1<<31
	return offset < window || offset+length-1 < window || r.rwbp && covers
}

// take does what section 7.1 says in steps 1 to 3. It tells whether the segment, which has data, was
// orderly; in plain TCP, whether it need not be acknowledged at once.
func (r *receiver) take(s *segment) (orderly bool) {
	end := s.seq + number(s.length())
	if r.rwbp {
		orderly = s.seq == r.top && !end.above(r.edge) && !r.finHeld
	} else {
		orderly = s.seq == r.next && len(r.runs) == 0 && !r.finHeld && !end.above(r.edge)
	}
	r.last, r.began = s.seq, true

	limit := r.edge
	if r.finHeld {
		limit = r.fin
	}
	r.hold(s.seq, s.data, limit)
	if fin := end - 1; s.has(flagFIN) && !r.finHeld && fin.below(r.edge) && !fin.below(r.top) {
		r.fin, r.finHeld = fin, true
	}
	r.advance()
	return orderly
}

// hold keeps those of the octets that are not held yet and lie in [RCV.NXT, limit).
func (r *receiver) hold(first number, data []byte, limit number) {
	if first.below(r.next) {
		old := uint32(r.next - first)
		if old >= uint32(len(data)) {
			return
		}
		first, data = r.next, data[old:]
	}
	if !first.below(limit) {
		return
	}
	data = data[:min(uint32(len(data)), uint32(limit-first))]
	if len(data) == 0 {
		return
	}
	whole := block{first, first + number(len(data))}

	// The runs from begin to end touch the block, and become one with it.
	begin, _ := slices.BinarySearchFunc(r.runs, whole.left, func(run block, left number) int {
		return int(int32(run.right - left))
	})
	end, at := begin, whole.left
	merged := whole
	for ; end < len(r.runs) && !r.runs[end].left.above(whole.right); end++ {
		run := r.runs[end]
		if at.below(run.left) {
			r.keep(at, data[at-first:run.left-first])
		}
		at = higher(at, run.right)
		if run.left.below(merged.left) {
			merged.left = run.left
		}
		merged.right = higher(merged.right, run.right)
	}
	if at.below(whole.right) {
		r.keep(at, data[at-first:])
	}
	r.runs = slices.Replace(r.runs, begin, end, merged)
}

// keep stores octets that have not arrived before.
func (r *receiver) keep(first number, data []byte) {
	if r.store == nil {
		r.store = make([]byte, r.size)
	}
	where := (r.head + uint32(first-r.user)) % r.size
	copied := copy(r.store[where:], data)
	copy(r.store, data[copied:])
	r.top = higher(r.top, first+number(len(data)))
}

// advance lets RCV.NXT rise over all that follows without a gap.
func (r *receiver) advance() {
	if len(r.runs) > 0 && r.runs[0].left == r.next {
		r.next = r.runs[0].right
		r.runs = slices.Delete(r.runs, 0, 1)
	}
	if r.finHeld && r.next == r.fin {
		r.next++
	}
	if r.turn.below(r.next) {
		r.turn = r.next
	}
}

// count does step 5 of section 7.1 for an orderly segment. It tells whether an acknowledgment is
// called for at once.
func (r *receiver) count(now instant) bool {
	r.unacked++
	if r.unacked >= r.every {
		return true
	}
	if !r.ackTimer.running {
		r.ackTimer.start(now, ackDelay)
	}
	return false
}

// acknowledged notes that a complete acknowledgment is sent.
func (r *receiver) acknowledged() {
	r.unacked, r.due = 0, false
	r.ackTimer.stop()
}

// blocks lists the runs that a pure acknowledgment tells of (section 7.2), and turns the rotation.
func (r *receiver) blocks() []block {
	if !r.sack || len(r.runs) == 0 {
		return nil
	}
	listed := make([]block, 0, mostBlocks)
	newest, highest := -1, len(r.runs)-1
	if r.began {
		newest = slices.IndexFunc(r.runs, func(run block) bool {
			return r.last.within(run.left, run.right)
		})
	}
	if newest >= 0 {
		listed = append(listed, r.runs[newest])
	}
	if highest == newest {
		highest--
	}
	if highest < 0 {
		return listed
	}
	listed = append(listed, r.runs[highest])

	start := max(0, slices.IndexFunc(r.runs, func(run block) bool { return run.left.above(r.turn) }))
	lowest := -1
	for index := range r.runs {
		if index != newest && index != highest && (lowest < 0 || lowest < start && index >= start) {
			lowest = index
		}
	}
	if lowest < 0 {
		return listed
	}
	turn := r.turn
	for step := 0; step < len(r.runs) && len(listed) < mostBlocks; step++ {
		index := (lowest + step) % len(r.runs)
		if index == newest || index == highest {
			continue
		}
		listed = append(listed, r.runs[index])
		turn = r.runs[index].left
	}
	r.turn = turn
	return listed
}
