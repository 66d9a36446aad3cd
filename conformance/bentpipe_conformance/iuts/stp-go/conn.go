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
	called    state = 3
	releasing state = 4
	ready     state = 10
)

// Section 8.
const (
	maxCC             = 5
	confirmation      = 32 * time.Second
	noResponse        = 60 * time.Second
	earlyCredit       = 4
	leastPollInterval = 50 * time.Millisecond
	mostPollInterval  = 2 * time.Second
	leastSilence      = time.Second
	mostSilence       = 60 * time.Second
	mostProbing       = 15 * time.Second
	challengeInterval = time.Second // STP-CC-018, STP-CC-021
	earlyOctets       = 512         // in an SD before a MaxSD is known, and the least MaxSD
)

var (
	errNoAnswer     = errors.New("the peer does not answer")
	errRefused      = errors.New("the peer refuses")
	errAborted      = errors.New("the peer has aborted")
	errPremature    = errors.New("the peer has released before everything was delivered")
	errForgotten    = errors.New("the peer does not know the connection any more")
	errRestarted    = errors.New("the peer has begun another connection")
	errUserAborted  = errors.New("aborted here")
	errNotConfirmed = errors.New("never confirmed")
)

// conn is one connection: the procedures of section 5 and the state table of section 9.
type conn struct {
	ep    *endpoint
	key   key
	state state
	app   app

	csn, peerCSN uint32
	peerKnown    bool // peerCSN is
	iss, peerISS uint32
	peerMaxSD    int
	credit       uint32 // N(MR) of the peer's BEGIN

	snd sender
	rcv receiver

	early [earlyCredit]arrival // what is held back until the connection is confirmed

	repeated packet // BEGIN or END
	vtCC     int
	ccWait   time.Duration
	ccAt     instant // expiry of Timer_CC; in state 3 of the confirmation, in 10 of the release wait
	caller   bool    // this endpoint has called

	asks  int     // BGAKs sent in state 3
	asked instant // when the last one was, or the BEGIN (STP-PL-009)

	lastChallenge    instant
	heard            instant // when the last packet arrived
	proof            proof   // of the own address, where the peer did not ask for one
	proven           bool    // the peer's address is (STP-SEC-001)
	received, spoken int     // octets, as long as it is not

	deadline instant
	index    int // in the endpoint's heap
}

// allowance is how many octets may be sent to the peer's address (STP-SEC-001).
func (c *conn) allowance() int {
	if c.proven {
		return 1 << 30
	}
	return 3*c.received - c.spoken
}

// emit sends a packet of this connection.
func (c *conn) emit(p *packet) {
	p.tag = uint16(c.csn)
	if !c.proven {
		length := p.length()
		if length > c.allowance() {
			return
		}
		c.spoken += length
	}
	c.ep.transmit(c.key, p)
}

func (c *conn) sendBGAK(flags uint8, peerCSN, nR, nMR uint32) {
	c.emit(&packet{
		kind: typeBGAK, flags: flags, sequence: c.iss, nMR: nMR, csn: c.csn, peerCSN: peerCSN,
		nR: nR, maxSD: c.ep.cfg.maxSD, hasMaxSD: true,
	})
}

// ask sends the BGAK with C flag that waits for confirmation in state 3.
func (c *conn) ask(now instant) {
	c.asks++
	c.asked = now
	c.sendBGAK(flagC, c.peerCSN, c.peerISS, seqAdd(c.peerISS, c.ep.cfg.credit))
}

// accept sends the BGAK of an open connection; with C flag it is a challenge (section 5.3).
func (c *conn) accept(flags uint8) {
	c.sendBGAK(flags, c.peerCSN, c.rcv.vrR, c.rcv.vrMR)
	c.rcv.lastMR = c.rcv.vrMR
}

func (c *conn) challenge(now instant) {
	if now-c.lastChallenge >= challengeInterval {
		c.lastChallenge = now
		c.accept(flagC)
	}
}

// startTimer sends a BEGIN or END for the first time and starts Timer_CC.
func (c *conn) startTimer(now instant, p packet) {
	c.repeated, c.vtCC, c.asked = p, 1, now
	c.ccWait = c.ep.cfg.initialInterval
	c.ccAt = now + c.ccWait
	c.emit(&p)
}

// call sends the BEGIN with as much of the user's data as fits (section 5.1).
func (c *conn) call(now instant) {
	c.state, c.proven, c.caller = calling, true, true
	c.snd.start(c, c.iss, min(c.ep.cfg.maxSD, earlyOctets))
	c.supply()
	p := packet{
		kind: typeBEGIN, sequence: c.iss, version: version, csn: c.csn,
		nMR: uint32(c.ep.cfg.credit), maxSD: c.ep.cfg.maxSD, hasMaxSD: true,
	}
	if c.snd.waiting() {
		n, sd := c.snd.cut(earlyOctets)
		c.snd.note(n, sd)
		p.data = sd.data
		if sd.fin {
			p.flags = flagFIN
		}
	}
	c.startTimer(now, p)
}

// beCalled enters state 3 or, if the peer is known, state 10 at once (section 5.2).
func (c *conn) beCalled(now instant, p *packet, trusted bool) {
	c.peerCSN, c.peerKnown, c.peerISS, c.credit = p.csn, true, p.sequence, p.nMR
	c.peerMaxSD = p.maxSD
	c.state = called
	c.ccAt = now + confirmation
	if len(p.data) > 0 || p.flags&flagFIN != 0 {
		c.hold(p)
	}
	if trusted {
		c.open(now)
		c.accept(0)
		return
	}
	c.ask(now)
}

// hold keeps an early SD until the connection is confirmed.
func (c *conn) hold(p *packet) {
	if offset := seqDist(c.peerISS, p.sequence); offset < earlyCredit && !c.early[offset].held {
		c.early[offset] = arrival{append([]byte(nil), p.data...), p.flags&flagFIN != 0, true}
	}
}

// open makes a called connection ready for data, and takes what was held back.
func (c *conn) open(now instant) {
	c.state, c.ccAt = ready, never
	c.app = c.ep.services[c.key.port]()
	c.snd.start(c, c.iss, c.smss())
	// The peer has not yet been promised anything but its BEGIN's credit, from its ISS here.
	// Less than the early credit counts as that (section 3.3).
	c.snd.vtMS = seqAdd(c.iss, min(max(int(c.credit), earlyCredit), seqHalf-1))
	c.startReceiver()
	c.ep.remember(now, c.key.peer, c.peerCSN)
}

func (c *conn) startReceiver() {
	c.rcv.start(c.peerISS, c.ep.cfg.credit)
	for i := range c.early {
		if c.early[i].held {
			c.take(seqAdd(c.peerISS, i), c.early[i].data, c.early[i].fin)
		}
	}
	c.early = [earlyCredit]arrival{}
}

// smss is the most user data in one SD.
func (c *conn) smss() int {
	return min(c.ep.cfg.maxSD, max(c.peerMaxSD, earlyOctets))
}

// over tells the user how the connection ended; only the first word counts.
func (c *conn) over(outcome error) {
	if c.app != nil {
		c.app.over(c, outcome)
		c.app = nil
	}
}

// end leaves the connection for state 1.
func (c *conn) end(outcome error) {
	c.over(outcome)
	c.state = idle
}

// release sends an END, enters state 4 and lets go of all data.
func (c *conn) release(now instant, flags, reason uint8, outcome error) {
	p := packet{kind: typeEND, flags: flags, reason: reason, csn: c.csn}
	if c.peerKnown {
		p.peerCSN, p.sequence = c.peerCSN, c.rcv.vrR
	}
	c.over(outcome)
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
	if c.state == calling {
		c.snd.transmit(now) // early SDs, within the early credit
		c.deadline = min(c.ccAt, c.snd.gate)
	}
	if c.state != ready || c.ccAt != never {
		return
	}
	c.supply()
	c.snd.transmit(now)
	if c.rcv.reopened() {
		c.sendSTATs(c.rcv.lastPS, c.rcv.lastTimestamp)
	}
	if c.snd.finAcknowledged() && c.rcv.finished {
		c.complete(now)
		c.deadline = c.ccAt
		return
	}
	c.deadline = min(c.snd.deadline(), c.proof.deadline())
}

// complete reports success and releases the connection, or leaves that to the caller (section 5.5).
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
	case c.state == ready && c.ccAt != never:
		if now >= c.ccAt {
			c.release(now, 0, reasonNone, nil)
		}
	case c.state == ready:
		ask, hopeless := c.proof.expire(now)
		if !c.snd.expire(now) || hopeless {
			c.release(now, flagA, reasonSilence, errNoAnswer)
		} else if ask {
			c.accept(flagC)
		}
	case now < c.ccAt:
	case c.state == called:
		c.end(errNotConfirmed)
	case c.vtCC == maxCC:
		c.end(errNoAnswer)
	default:
		c.vtCC++
		c.ccWait *= 2
		c.ccAt = now + c.ccWait
		c.emit(&c.repeated)
	}
}
