package main

import "errors"

type state int

const (
	synSent state = iota
	synReceived
	established
	finWait1
	finWait2
	closeWait
	closing
	lastAck
	timeWaiting
	closed
)

var (
	errRefused = errors.New("refused")
	errReset   = errors.New("reset by the peer")
	errSilent  = errors.New("the peer has been silent for too long")
	errEvicted = errors.New("given up for a new connection")
)

// user is what reads from and writes to a connection.
type user interface {
	// pump is called when there may be something to read, room to write, or the end.
	pump(c *connection)
	// gone is called when the connection has ended otherwise than by closing.
	gone(err error)
}

// flow names a connection.
type flow struct {
	remote     address
	remotePort uint16
	localPort  uint16
}

// connection is one connection, in the states of RFC 9293. What it does on its own is opening,
// checking what arrives, and closing; the stream is a matter of its sender and its receiver.
type connection struct {
	endpoint *endpoint
	flow     flow
	user     user
	state    state

	called     bool
	crossed    bool // SYNs have crossed
	agreed     bool // RWBP is agreed
	iss, irs   number
	synOptions options
	syns       int // how often SYN or SYN-ACK has been sent
	synAt      instant
	synTimer   timer
	waitTimer  timer // 2 MSL
	rtt        estimator
	sender     sender
	receiver   receiver
	userClosed bool

	heard   instant // when the peer's last segment arrived
	asks    bool    // something has been sent since then that the peer has to answer
	askedAt instant

	reminded   bool // a reminder has been sent
	remindedAt instant
}

// call opens a connection.
func (c *connection) call(now instant) {
	c.state = synSent
	c.synOptions = options{mss: c.endpoint.mss(), sackPermitted: true}
	if c.endpoint.rwbp {
		c.synOptions.rwbp = c.endpoint.offer()
	}
	c.sendSYN(now)
}

// answer answers a SYN.
func (c *connection) answer(syn *segment, now instant) {
	c.state = synReceived
	c.called = true
	c.learn(syn, c.endpoint.rwbp)
	c.sendSYN(now)
}

// learn takes from the first SYN or SYN-ACK of the peer what it says, and decides on RWBP.
func (c *connection) learn(syn *segment, offered bool) {
	own := c.endpoint.mss()
	said := &syn.options
	c.irs = syn.seq
	c.agreed = offered && said.rwbp != nil && said.sackPermitted
	c.receiver = newReceiver(c.irs, c.endpoint.receiveBuffer, uint32(own), c.endpoint.firstWindow())
	c.receiver.sack = said.sackPermitted

	smss := uint32(defaultMSS)
	if said.mss != 0 {
		smss = uint32(said.mss)
	}
	smss = min(smss, uint32(own))
	if c.agreed {
		c.receiver.rwbp = true
		c.receiver.every = int(said.rwbp.interval)
		smss = min(smss, uint32(said.rwbp.unit))
		c.sender = newRWBPSender(c, smss, said.rwbp.unit, c.iss+1+number(syn.window))
	} else {
		c.sender = newPlainSender(c, smss, uint32(syn.window), syn)
	}
	if c.state != synSent || !syn.has(flagACK) {
		c.synOptions = options{mss: own, sackPermitted: said.sackPermitted}
		if c.agreed {
			c.synOptions.rwbp = c.endpoint.offer()
		}
	}
}

func (c *connection) sendSYN(now instant) {
	syn := &segment{
		seq: c.iss, flags: flagSYN, window: c.endpoint.firstWindow(), options: c.synOptions,
	}
	if c.state == synReceived {
		syn.flags |= flagACK
		syn.ack = c.irs + 1
	}
	c.synTimer.start(now, backedOff(firstRTO, c.syns))
	c.syns++
	c.synAt = now
	c.asking(now)
	c.put(syn)
}

// opened is called when the own SYN has been acknowledged.
func (c *connection) opened(now instant) {
	c.state = established
	c.synTimer.stop()
	if c.syns == 1 {
		c.rtt.sample(now - c.synAt)
	} else {
		c.rtt.rto = rtoAfterSYNs
	}
	c.sender.opened(c.syns > 1)
}

func (c *connection) put(s *segment) {
	s.source, s.destination = c.flow.localPort, c.flow.remotePort
	c.endpoint.send(c.flow, s)
}

// asking notes that the peer has to answer what is sent now.
func (c *connection) asking(now instant) {
	if !c.asks {
		c.asks, c.askedAt = true, now
	}
}

// silent ends the connection if the peer has owed an answer for too long, and tells whether it has.
func (c *connection) silent(now instant) bool {
	if !c.asks || now-c.askedAt < giveUp {
		return false
	}
	c.end(errSilent)
	return true
}

// acknowledge sends a pure acknowledgment.
func (c *connection) acknowledge() { c.sendPure(c.sender.sentTo()) }

// remind sends a reminder (section 7.1), but not more than one a second.
func (c *connection) remind(now instant) {
	if !c.reminded || now-c.remindedAt >= reminderInterval {
		c.reminded, c.remindedAt = true, now
		c.acknowledge()
	}
}

func (c *connection) transmitProbe(now instant) {
	c.asking(now)
	c.sendPure(c.sender.sentTo() - 1)
}

func (c *connection) sendPure(seq number) {
	r := &c.receiver
	r.acknowledged()
	c.put(&segment{
		seq: seq, ack: r.next, flags: flagACK, window: r.window(),
		options: options{blocks: r.blocks()},
	})
}

// transmitData sends a segment with data or FIN. If it is new, it may do for an acknowledgment.
func (c *connection) transmitData(seq number, flags byte, data []byte, isNew bool, now instant) {
	r := &c.receiver
	if isNew && len(r.runs) == 0 {
		r.acknowledged()
	}
	c.asking(now)
	if flags&flagFIN != 0 {
		switch c.state {
		case established:
			c.state = finWait1
		case closeWait:
			c.state = lastAck
		}
	}
	c.put(&segment{seq: seq, ack: r.next, flags: flags, window: r.window(), data: data})
}

// mayTransmit tells whether the state permits data and FIN to be sent, or sent again.
func (c *connection) mayTransmit() bool {
	switch c.state {
	case established, closeWait, finWait1, closing, lastAck:
		return true
	}
	return false
}

// end forgets the connection, and tells its user why.
func (c *connection) end(why error) {
	if c.state == closed {
		return
	}
	c.state = closed
	c.endpoint.forget(c)
	if c.user != nil && why != nil {
		c.user.gone(why)
	}
}

// abort sends one RST, unless the peer knows nothing of the connection or has closed it too.
func (c *connection) abort(why error) {
	switch c.state {
	case synReceived, established, finWait1, finWait2, closeWait:
		c.put(&segment{
			seq: c.sender.sentTo(), ack: c.receiver.next, flags: flagRST | flagACK,
			window: c.receiver.window(),
		})
	}
	c.end(why)
}

// arrive processes a segment by RFC 9293 section 3.10.7.
func (c *connection) arrive(s *segment, now instant) {
	c.heard, c.asks = now, false
	switch {
	case c.state == synSent:
		c.arriveSYNSent(s, now)
	case s.has(flagRST):
		c.arriveRST(s)
	case !c.receiver.acceptable(s):
		c.arriveUnacceptable(s, now)
	case s.has(flagSYN):
		if c.state == synReceived && c.called && !c.agreed {
			c.end(nil) // back to LISTEN
			return
		}
		c.acknowledge()
	case s.has(flagACK) && c.arriveACK(s, now) && s.carries():
		c.arriveData(s, now)
	}
}

func (c *connection) arriveSYNSent(s *segment, now instant) {
	if s.has(flagACK) && s.ack != c.iss+1 {
		if !s.has(flagRST) {
			c.put(&segment{seq: s.ack, flags: flagRST})
		}
		return
	}
	if s.has(flagRST) {
		if s.has(flagACK) {
			c.end(errRefused)
		}
		return
	}
	if !s.has(flagSYN) {
		return
	}
	c.learn(s, c.endpoint.rwbp)
	if s.has(flagACK) {
		c.opened(now)
		c.acknowledge()
		return
	}
	c.crossed = true
	c.state = synReceived
	c.sendSYN(now)
}

func (c *connection) arriveRST(s *segment) {
	r := &c.receiver
	switch {
	case s.seq == r.next:
		switch c.state {
		case synReceived:
			c.end(errRefused)
		case closing, lastAck, timeWaiting:
			c.end(nil)
		default:
			c.end(errReset)
		}
	case s.seq.within(r.next, r.edge):
		c.acknowledge()
	}
}

// arriveUnacceptable answers a segment that does not lie in the window.
func (c *connection) arriveUnacceptable(s *segment, now instant) {
	r := &c.receiver
	if s.carries() {
		r.last, r.began = s.seq, true
	}
	if c.state == synReceived && c.crossed && s.flags&(flagSYN|flagACK) == flagSYN|flagACK &&
		s.seq == c.irs && s.ack == c.iss+1 {
		c.opened(now) // the SYN-ACK that belongs to crossing SYNs (RFC 9293 figure 7)
	}
	if c.state == synReceived && c.called && s.flags&(flagSYN|flagACK) == flagSYN && s.seq == c.irs {
		c.sendSYN(now)
		return
	}
	shut := r.edge == r.next && s.seq == r.next
	if shut && s.carries() && s.has(flagACK) && !c.arriveACK(s, now) {
		return
	}
	if c.state == timeWaiting && s.has(flagFIN) {
		c.endpoint.restartWait(c, now)
	}
	switch {
	case c.state == closed:
	case s.carries() || s.has(flagSYN):
		c.acknowledge()
	default:
		c.remind(now)
	}
}

// arriveACK is the fifth check. It tells whether the processing of the segment goes on.
func (c *connection) arriveACK(s *segment, now instant) bool {
	if c.state == synReceived {
		if s.ack != c.iss+1 {
			c.put(&segment{seq: s.ack, flags: flagRST})
			return false
		}
		c.opened(now)
	}
	if !c.sender.acknowledged(s, now) {
		c.remind(now)
		return false
	}
	if c.sender.done() {
		switch c.state {
		case finWait1:
			c.state = finWait2
		case closing:
			c.endpoint.wait(c, now)
		case lastAck:
			c.end(nil)
		}
	}
	return c.state != closed
}

// arriveData does what section 7.1 says.
func (c *connection) arriveData(s *segment, now instant) {
	r := &c.receiver
	before := r.ended()
	orderly := r.take(s)
	if r.ended() && !before {
		switch c.state {
		case established:
			c.state = closeWait
		case finWait1:
			c.state = closing
		case finWait2:
			c.endpoint.wait(c, now)
		}
	}
	c.pump()
	if !orderly || s.has(flagFIN) {
		c.acknowledge()
	} else if r.count(now) {
		r.due = true
	}
}

// pump lets the user read and write.
func (c *connection) pump() {
	switch c.state {
	case synSent, synReceived, closed:
	default:
		if c.user != nil {
			c.user.pump(c)
		}
	}
}

// settle is called when the event has been processed and everything that can be sent has been.
func (c *connection) settle(now instant) {
	switch c.state {
	case synSent, synReceived, timeWaiting, closed:
		return
	}
	if c.receiver.due || c.receiver.wantsUpdate() {
		c.acknowledge()
	}
	c.sender.settle(now)
}

func (c *connection) deadline() instant {
	earliest := min(c.synTimer.deadline(), c.waitTimer.deadline())
	if c.sender != nil {
		earliest = min(earliest, c.receiver.ackTimer.deadline(), c.sender.deadline())
	}
	return earliest
}

// expire does what timers call for that have expired.
func (c *connection) expire(now instant) {
	if c.waitTimer.due(now) {
		c.end(nil)
	}
	if c.synTimer.due(now) && !c.silent(now) {
		c.sendSYN(now)
	}
	if c.state == closed || c.sender == nil {
		return
	}
	if c.receiver.ackTimer.due(now) {
		c.acknowledge()
	}
	c.sender.expire(now)
}

// What follows is for users.

func (c *connection) read(into []byte) int { return c.receiver.read(into) }

// skip reads everything that has arrived, and forgets it.
func (c *connection) skip() { c.receiver.skip(c.receiver.readable()) }

// drained tells whether the peer has closed and everything has been read.
func (c *connection) drained() bool { return c.receiver.ended() && c.receiver.readable() == 0 }

func (c *connection) room() int { return c.sender.room() }

func (c *connection) write(octets []byte) {
	if !c.userClosed && len(octets) > 0 {
		c.sender.write(octets)
	}
}

func (c *connection) forgo() {
	if !c.userClosed {
		c.sender.forgo()
	}
}

func (c *connection) close() {
	if !c.userClosed {
		c.userClosed = true
		c.sender.finish()
	}
}
