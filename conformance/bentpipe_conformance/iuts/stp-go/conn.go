package main

import (
	"errors"
	"time"
)

type state int

// The states of STP/1 section 4, with SSCOP's numbers.
const (
	idle      state = 1
	calling   state = 2
	releasing state = 4
	ready     state = 10
)

// Section 8.
const (
	maxCC             = 5
	maxAnew           = 5 // BGREJs with reason 6 that make a caller call anew
	noResponse        = 60 * time.Second
	earlyCredit       = 4
	leastPollInterval = 20 * time.Millisecond
	mostPollInterval  = 2 * time.Second
	leastSilence      = 200 * time.Millisecond
	mostSilence       = 15 * time.Second
)

var (
	errNoAnswer    = errors.New("the peer does not answer")
	errRefused     = errors.New("the peer refuses")
	errAborted     = errors.New("the peer has aborted")
	errPremature   = errors.New("the peer has released before everything was delivered")
	errForgotten   = errors.New("the peer does not know the connection any more")
	errReplaced    = errors.New("the peer has begun another connection")
	errUserAborted = errors.New("aborted here")
)

// conn is one connection: the procedures of section 5 and the state table of section 9.
type conn struct {
	ep    *endpoint
	key   key
	state state
	app   app

	csn, peerCSN uint32
	peerKnown    bool // peerCSN is
	iss          uint32
	peerMaxSD    int // 0 while none has been received

	snd sender
	rcv receiver

	repeated packet // BEGIN or END
	vtCC     int
	ccWait   time.Duration
	ccAt     instant // expiry of Timer_CC; in state 10 of the release wait
	asked    instant // when the BEGIN or END was first sent (STP-PL-009)
	caller   bool    // this endpoint has called
	known    bool    // and its BEGIN carries a cookie
	anew     int     // times it has called anew
	made     int     // purse.calls when the call was made
	begun    int     // and when its BEGIN was first sent

	heard    instant // when the last packet arrived
	deadline instant
	index    int // in the endpoint's heap
}

// emit sends a packet of this connection.
func (c *conn) emit(p *packet) {
	p.tag = uint16(c.csn)
	c.ep.transmit(c.key, p)
}

// accept sends a BGAK.
func (c *conn) accept(now instant) {
	c.emit(&packet{
		kind: typeBGAK, sequence: c.iss, nMR: c.rcv.vrMR, csn: c.csn, peerCSN: c.peerCSN,
		nR: c.rcv.vrR, maxSD: c.ep.cfg.maxSD, hasMaxSD: true,
		cookie: c.ep.issuer.fresh(now, c.key.peer),
	})
}

// startTimer sends a BEGIN or END for the first time and starts Timer_CC.
func (c *conn) startTimer(now instant, p packet) {
	c.repeated, c.vtCC, c.asked = p, 1, now
	c.ccWait = c.ep.cfg.initialInterval
	c.ccAt = now + c.ccWait
	c.emit(&p)
}

// call sends a BEGIN of a new CSN: with a cookie, together with as much of the user's data as fits,
// and without one alone (section 5.1).
func (c *conn) call(now instant, with token) {
	c.state, c.caller, c.known = calling, true, with.cookie != nil
	c.csn, c.iss = c.ep.newCSN(c.key.peer), c.ep.cfg.random()&seqMask
	c.peerMaxSD, c.begun = with.maxSD, c.ep.purse.calls(c.key.peer)
	c.snd.start(c, c.iss)
	c.supply()
	p := packet{
		kind: typeBEGIN, sequence: c.iss, version: version, csn: c.csn,
		nMR: uint32(c.ep.cfg.credit), maxSD: c.ep.cfg.maxSD, hasMaxSD: true, cookie: with.cookie,
	}
	if c.known && c.snd.waiting() {
		// Whatever path carries the largest SDP carries this as well.
		sd := c.snd.cut(min(c.smss(), fixedLength[typeSDP]+c.ep.cfg.maxSD-p.length()))
		c.snd.note(now, sd)
		p.data = sd.data
		if sd.fin {
			p.flags = flagFIN
		}
	}
	if c.known && c.ep.purse.void(c.key.peer, c.made) {
		p.flags |= flagV
	}
	c.startTimer(now, p)
}

// beCalled opens a connection by a BEGIN with a good cookie (section 5.2).
func (c *conn) beCalled(now instant, p *packet) {
	c.state, c.ccAt, c.heard = ready, never, now
	c.csn, c.iss = c.ep.newCSN(c.key.peer), c.ep.cfg.random()&seqMask
	c.peerCSN, c.peerKnown, c.peerMaxSD = p.csn, true, p.maxSD
	c.app = c.ep.services[c.key.port]()
	c.snd.start(c, c.iss)
	// Less than the early credit counts as that (section 3.3).
	c.snd.vtMS = seqAdd(c.iss, min(max(int(p.nMR), earlyCredit), seqHalf-1))
	c.rcv.start(p.sequence, c.ep.cfg.credit)
	if len(p.data) > 0 || p.flags&flagFIN != 0 {
		c.rcv.take(p.sequence, p.data, p.flags&flagFIN != 0)
	}
	c.rcv.announce()
	c.accept(now)
}

// smss is the most user data in one SD.
func (c *conn) smss() int {
	return min(c.ep.cfg.maxSD, max(c.peerMaxSD, leastMaxSD))
}

// over tells the user how the connection ended; only the first word counts.
func (c *conn) over(outcome error) {
	if c.app != nil {
		c.app.over(c, outcome)
		c.app = nil
	}
}

// leave tells the user the outcome. A call that ends in state 2 may have left BEGINs under way; those
// without a cookie open nothing.
func (c *conn) leave(outcome error) {
	if c.state == calling && c.known {
		c.ep.purse.ended(c.key.peer)
	}
	c.over(outcome)
}

// end leaves the connection for state 1.
func (c *conn) end(outcome error) {
	c.leave(outcome)
	c.state = idle
}

// release sends an END, enters state 4 and lets go of all data.
func (c *conn) release(now instant, flags, reason uint8, outcome error) {
	p := packet{kind: typeEND, flags: flags, reason: reason, csn: c.csn}
	if c.peerKnown {
		p.peerCSN, p.sequence = c.peerCSN, c.rcv.vrR
	}
	c.leave(outcome)
	c.state = releasing
	c.snd, c.rcv = sender{}, receiver{}
	c.startTimer(now, p)
}

// abort ends the connection by the user's wish.
func (c *conn) abort(now instant) {
	if c.state == ready && c.ccAt == never || c.state == calling {
		c.release(now, flagA, reasonAborted, errUserAborted)
	}
}

// supply lets the user read and write.
func (c *conn) supply() {
	if c.app != nil {
		c.app.step(c)
	}
}

// run does what has become possible, and sets the deadline.
func (c *conn) run(now instant) {
	c.deadline = c.ccAt
	switch {
	case c.state == calling && c.known:
		c.snd.transmit(now) // early SDs, within the early credit
		c.deadline = min(c.ccAt, c.snd.gate)
	case c.state == ready && c.ccAt == never:
		c.supply()
		c.snd.transmit(now)
		if c.rcv.reopened() {
			c.report(&packet{kind: typeSTAT})
		}
		if c.snd.finAcknowledged() && c.rcv.finished {
			c.complete(now)
			c.deadline = c.ccAt
			return
		}
		c.deadline = c.snd.deadline()
	}
}

// complete reports success and releases the connection, or leaves that to the caller (section 5.4).
func (c *conn) complete(now instant) {
	if c.caller {
		c.release(now, 0, reasonNone, nil) // STP-CC-025
		return
	}
	c.ccAt = now + max(c.snd.silence(), c.ep.cfg.initialInterval) // STP-CC-031
	c.over(nil)
}

// expire does what the timers want.
func (c *conn) expire(now instant) {
	switch {
	case c.state == ready && c.ccAt == never:
		if !c.snd.expire(now) {
			c.release(now, flagA, reasonSilence, errNoAnswer)
		}
	case now < c.ccAt:
	case c.state == ready:
		c.release(now, 0, reasonNone, nil)
	case c.vtCC < maxCC:
		c.vtCC++
		c.ccWait *= 2
		c.ccAt = now + c.ccWait
		c.emit(&c.repeated)
	case c.state == calling:
		c.release(now, flagA, reasonSilence, errNoAnswer) // as if the user had aborted
	default:
		c.end(nil)
	}
}
