package main

// handle looks a packet up in the state table of STP/1 section 9; one that belongs to no connection
// is the endpoint's (endpoint.unconnected).
func (c *conn) handle(now instant, p *packet) {
	switch p.kind {
	case typeSD, typeSDP, typePOLL, typeSTAT, typeUSTAT:
		if c.state != calling && p.tag != uint16(c.peerCSN) {
			return
		}
	}
	c.heard = now
	if p.kind == typeBEGIN && p.version != version {
		c.ep.refuse(c.key, p.csn, reasonVersion)
		return
	}
	switch c.state {
	case calling:
		c.whileCalling(now, p)
	case ready:
		c.whileReady(now, p)
	case releasing:
		c.whileReleasing(now, p)
	}
}

// validEND is section 5.5 for an END with or without R flag.
func (c *conn) validEND(p *packet) bool {
	own := p.peerCSN == c.csn
	switch {
	case p.flags&flagR != 0:
		return own && (p.csn == 0 || c.peerKnown && p.csn == c.peerCSN)
	case !c.peerKnown:
		return own
	}
	return p.csn == c.peerCSN && (own || p.flags&flagA != 0 && p.peerCSN == 0)
}

func (c *conn) whileCalling(now instant, p *packet) {
	switch p.kind {
	case typeBEGIN:
		c.ep.refuse(c.key, p.csn, reasonNobody) // STP-CC-043
	case typeBGAK:
		if p.peerCSN != c.csn {
			c.ep.unknown(now, c.key, p)
		} else if seqWithin(c.iss, p.nR, c.snd.vtS) {
			c.accepted(now, p)
		}
	case typeBGREJ:
		if p.peerCSN == c.csn {
			c.refused(now, p)
		}
	case typeEND:
		if !c.validEND(p) {
			return
		}
		if p.flags&flagR != 0 {
			c.end(errForgotten)
			return
		}
		c.ep.acknowledgeEND(c.key, p)
		c.end(errAborted)
	}
}

// answered measures the round-trip time if the BEGIN was sent once (STP-PL-009).
func (c *conn) answered(now instant) {
	if c.vtCC == 1 {
		c.snd.rtt.measure(now - c.asked)
	}
}

// accepted is the BGAK that a caller has waited for.
func (c *conn) accepted(now instant, p *packet) {
	c.answered(now)
	c.state, c.ccAt, c.repeated = ready, never, packet{}
	c.peerCSN, c.peerKnown = p.csn, true
	if p.hasMaxSD {
		c.peerMaxSD = p.maxSD
	}
	c.ep.purse.opened(c.key.peer, c.made)
	c.keep(now, p)
	c.snd.accepted(p.nR, p.nMR)
	c.rcv.start(p.sequence, c.ep.cfg.credit)
}

// keep puts a cookie that the peer has given away for a later call, unless a call has ended in state
// 2 since the BEGIN that it answers was sent (STP-CC-039).
func (c *conn) keep(now instant, p *packet) {
	if p.cookie != nil && c.begun == c.ep.purse.calls(c.key.peer) {
		c.ep.purse.put(newToken(now, c.key.peer, c.peerMaxSD, p.cookie))
	}
}

// refused is a BGREJ; with a cookie it makes the caller call anew (STP-CC-037).
func (c *conn) refused(now instant, p *packet) {
	if p.reason != reasonAnew || p.cookie == nil || c.anew == maxAnew {
		c.end(errRefused)
		return
	}
	c.answered(now)
	c.anew++
	c.call(now, newToken(now, c.key.peer, p.maxSD, p.cookie))
}

func (c *conn) whileReady(now instant, p *packet) {
	switch p.kind {
	case typeBEGIN:
		if p.csn == c.peerCSN && !c.caller {
			c.accept(now)
		} else {
			c.ep.called(now, c.key, p, c)
		}
	case typeEND:
		if c.validEND(p) {
			c.endWhileReady(p)
		}
	case typeSD:
		c.take(p.sequence, p.data, p.flags&flagFIN != 0)
	case typeSDP:
		if c.validPOLL(p) {
			c.take(p.sequence, p.data, p.flags&flagFIN != 0)
			c.answerPOLL(seqAdd(p.sequence, 1), p)
		}
	case typePOLL:
		if c.validPOLL(p) {
			c.answerPOLL(p.sequence, p)
		}
	case typeSTAT:
		c.snd.stat(now, p)
	case typeUSTAT:
		c.snd.ustat(now, p)
	}
}

func (c *conn) endWhileReady(p *packet) {
	if p.flags&flagR != 0 {
		c.end(errForgotten)
		return
	}
	c.ep.acknowledgeEND(c.key, p)
	switch {
	case p.flags&flagA != 0:
		c.end(errAborted)
	case c.snd.finSent && seqBelow(c.snd.fin, p.sequence) && c.rcv.finished:
		c.end(nil)
	default:
		c.end(errPremature)
	}
}

func (c *conn) whileReleasing(now instant, p *packet) {
	switch p.kind {
	case typeBEGIN:
		if !c.peerKnown || p.csn != c.peerCSN {
			c.ep.called(now, c.key, p, c)
		}
	case typeEND:
		if c.validEND(p) {
			if p.flags&flagR == 0 {
				c.ep.acknowledgeEND(c.key, p)
			}
			c.end(nil)
		}
	case typeENDAK:
		if p.peerCSN == c.csn {
			c.end(nil)
		}
	}
}

// take receives an SD and reports the gap that it opens (section 6.2).
func (c *conn) take(n uint32, data []byte, fin bool) {
	if len(data) > c.ep.cfg.maxSD {
		return // STP-DT-028
	}
	if from, gap := c.rcv.take(n, data, fin); gap {
		c.report(&packet{kind: typeUSTAT, list: []uint32{from, n}})
	}
}

// validPOLL tells whether a POLL or SDP is the peer's (STP-DT-008).
func (c *conn) validPOLL(p *packet) bool { return p.nPS != 0 && p.csn == c.peerCSN }

// answerPOLL sends the STATs that a POLL, or the POLL of an SDP, asks for (section 6.3).
func (c *conn) answerPOLL(nS uint32, p *packet) {
	c.supply() // the credit should count what the user takes at once
	c.rcv.polled(nS)
	for _, piece := range cut(c.rcv.list(), c.ep.cfg.maxSTAT) {
		c.report(&packet{kind: typeSTAT, nPS: p.nPS, timestamp: p.timestamp, list: piece})
	}
}

// report sends a STAT or USTAT with N(R) and N(MR) of now.
func (c *conn) report(p *packet) {
	c.rcv.announce()
	c.rcv.shut = !seqBelow(c.rcv.vrH, c.rcv.vrMR)
	p.sequence, p.nMR = c.rcv.vrR, c.rcv.vrMR
	c.emit(p)
}
