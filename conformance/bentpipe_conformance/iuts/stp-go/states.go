package main

// handle looks a packet up in the state table of STP/1 section 9; one that belongs to no connection
// is the endpoint's (endpoint.unconnected).
func (c *conn) handle(now instant, p *packet) {
	switch p.kind {
	case typeSD, typeSDP, typePOLL, typeSTAT, typeUSTAT:
		// These carry no CSN but the tag (section 4).
		if c.state != calling && p.tag != uint16(c.peerCSN) {
			return
		}
		c.snd.unheard = false // STP-CC-030
		c.proof.heard(now, c.ep.cfg.initialInterval)
	case typeBEGIN:
		if p.version != version {
			c.ep.refuse(c.key, p.csn, reasonVersion)
			return
		}
	}
	c.heard = now
	switch c.state {
	case calling:
		c.whileCalling(now, p)
	case called:
		c.whileCalled(now, p)
	case ready:
		c.whileReady(now, p)
	case releasing:
		c.whileReleasing(now, p)
	}
}

// validEND is section 5.6 for an END with or without R flag.
func (c *conn) validEND(p *packet) bool {
	switch {
	case !c.peerKnown:
		return p.flags&flagR == 0 && p.peerCSN == c.csn
	case p.csn != c.peerCSN:
		return false
	case c.state == called && p.flags&flagR == 0 && p.peerCSN == 0:
		return true
	}
	return p.peerCSN == c.csn
}

func (c *conn) whileCalling(now instant, p *packet) {
	switch p.kind {
	case typeBEGIN:
		// Both have called; the data of a BEGIN that crosses is not taken (section 5.2).
		c.sendBGAK(flagC, p.csn, p.sequence, seqAdd(p.sequence, c.ep.cfg.credit))
	case typeBGAK:
		if p.peerCSN != c.csn {
			c.ep.unknown(now, c.key, p)
		} else if seqWithin(c.iss, p.nR, c.snd.vtS) {
			c.accepted(now, p)
		}
	case typeBGREJ:
		if p.peerCSN == c.csn {
			c.end(errRefused)
		}
	case typeEND:
		if p.flags&flagR == 0 && c.validEND(p) {
			c.ep.acknowledgeEND(c.key, p)
			c.end(errAborted)
		}
	}
}

// accepted is the BGAK that a caller has waited for.
func (c *conn) accepted(now instant, p *packet) {
	c.state, c.ccAt = ready, never
	c.peerCSN, c.peerKnown, c.peerISS, c.peerMaxSD = p.csn, true, p.sequence, p.maxSD
	c.repeated = packet{}
	if c.vtCC == 1 {
		c.snd.rtt.measure(now - c.asked)
	}
	c.snd.setSMSS(c.smss())
	c.snd.acknowledged(p.nR, p.nMR)
	c.snd.silentFrom, c.snd.unanswered = never, never
	c.snd.unheard, c.snd.ask = true, true // STP-CC-030
	c.startReceiver()
	c.ep.remember(now, c.key.peer, c.peerCSN)
	if p.flags&flagC != 0 {
		c.accept(0)
	} else {
		c.proof.start(now, c.vtCC, c.ep.cfg.initialInterval)
	}
}

// owns tells whether a packet belongs to this call among those that wait beside it (section 5.2).
func (c *conn) owns(p *packet) bool {
	switch p.kind {
	case typeBEGIN:
		return p.csn == c.peerCSN
	case typeBGAK:
		return p.csn == c.peerCSN && p.peerCSN == c.csn
	case typeEND:
		return c.validEND(p)
	}
	return p.tag == uint16(c.peerCSN)
}

// whileCalled is told only of packets that it owns.
func (c *conn) whileCalled(now instant, p *packet) {
	switch p.kind {
	case typeBEGIN:
		c.ask(now)
	case typeBGAK:
		if p.nR == c.iss {
			c.proven = true
			if p.maxSD != 0 {
				c.peerMaxSD = p.maxSD
			}
			c.open(now)
			if c.asks == 1 {
				c.snd.rtt.measure(now - c.asked)
			}
			c.snd.vtMS = seqHigher(c.snd.vtMS, p.nMR)
			if p.flags&flagC != 0 {
				c.accept(0)
			}
		}
	case typeEND:
		if c.validEND(p) {
			if p.flags&flagR == 0 {
				c.ep.acknowledgeEND(c.key, p)
			}
			c.end(errAborted)
		}
	case typeSD:
		c.hold(p)
	case typeSDP:
		c.hold(p)
		c.ask(now)
	case typePOLL:
		c.ask(now)
	}
}

func (c *conn) whileReady(now instant, p *packet) {
	switch p.kind {
	case typeBEGIN:
		if p.csn == c.peerCSN {
			c.accept(0)
		} else {
			c.challenge(now)
		}
	case typeBGAK:
		switch {
		case p.peerCSN != c.csn:
		case p.csn == c.peerCSN:
			c.proven = true
			c.proof.heard(now, c.ep.cfg.initialInterval)
			if p.flags&flagC != 0 {
				c.accept(0)
			} else {
				c.proof.answered()
			}
		case csnNewer(p.csn, c.peerCSN):
			c.emit(&packet{
				kind: typeEND, flags: flagA, reason: reasonUnknown, sequence: c.rcv.vrR,
				csn: c.csn, peerCSN: p.csn,
			})
			c.end(errRestarted)
		}
	case typeEND:
		c.endWhileReady(now, p)
	case typeSD:
		c.take(p.sequence, p.data, p.flags&flagFIN != 0)
	case typeSDP:
		c.take(p.sequence, p.data, p.flags&flagFIN != 0)
		c.answerPOLL(seqAdd(p.sequence, 1), p)
	case typePOLL:
		c.answerPOLL(p.sequence, p)
	case typeSTAT:
		if c.snd.stat(now, p) {
			c.proven = true
		}
	case typeUSTAT:
		c.snd.ustat(now, p)
	}
}

func (c *conn) endWhileReady(now instant, p *packet) {
	switch {
	case p.flags&flagR != 0:
		if c.validEND(p) {
			c.end(errForgotten)
		} else if p.csn == 0 && p.peerCSN == c.csn&0xFFFF {
			c.challenge(now)
		}
		return
	case !c.validEND(p):
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
		if c.peerKnown && csnNewer(p.csn, c.peerCSN) {
			c.end(nil)
			c.ep.replace(now, c, p)
		}
	case typeBGAK:
		if !c.peerKnown && p.peerCSN == c.csn {
			// Aborted while calling; now the END can name the peer's connection (section 5.5).
			c.peerCSN, c.peerKnown, c.repeated.peerCSN = p.csn, true, p.csn
			if c.vtCC < maxCC {
				c.vtCC++
				c.emit(&c.repeated)
			}
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
		return // more than this endpoint has said it accepts
	}
	from, gap := c.rcv.take(n, data, fin)
	if gap {
		c.emit(&packet{
			kind: typeUSTAT, sequence: c.rcv.vrR, nMR: c.rcv.vrMR, list: []uint32{from, n},
		})
		c.rcv.lastMR = c.rcv.vrMR
	}
}

// answerPOLL sends the STAT that a POLL, or the POLL of an SDP, asks for (section 6.3).
func (c *conn) answerPOLL(nS uint32, p *packet) {
	c.supply() // the credit should count what the user takes at once
	shown := c.rcv.lastMR
	inWindow := c.rcv.polled(nS, p.nPS, p.timestamp)
	c.sendSTATs(p.nPS, p.timestamp)
	if !inWindow {
		c.rcv.lastMR = shown // no report: the peer may never have sent that POLL (STP-DT-024)
	}
}

func (c *conn) sendSTATs(nPS, timestamp uint32) {
	for _, piece := range cut(c.rcv.list(), c.ep.cfg.maxSTAT) {
		c.emit(&packet{
			kind: typeSTAT, sequence: c.rcv.vrR, nMR: c.rcv.vrMR, nPS: nPS, timestamp: timestamp,
			list: piece,
		})
	}
	c.rcv.lastMR = c.rcv.vrMR
}
