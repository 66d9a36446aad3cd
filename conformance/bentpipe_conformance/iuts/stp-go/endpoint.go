package main

import (
	"container/heap"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"
	"net/netip"
	"time"
)

// instant is a time since the program's start; the core has no clock of its own.
type instant = time.Duration

const never instant = math.MaxInt64

const (
	endsPerSecond  = 10 // STP-CC-020
	firstLocalPort = 49152
)

// config is what a user may choose.
type config struct {
	maxSD           int // octets; what is announced, and the most in an SD sent
	maxSTAT         int // elements
	credit          int // SDs received and not yet taken by the user
	window          int // SDs sent and not yet acknowledged, at most
	initialWindow   int // SDs
	initialInterval time.Duration
	keepAlive       time.Duration
	connections     int
	rate            int // bit/s, 0: none
	overhead        int // octets of IP and UDP in front of every packet
	random          func() uint32
}

// key names a connection from this side (section 4); over IP the peer's own port is 0.
type key struct {
	peer           netip.AddrPort
	peerPort, port uint16
}

// endpoint is everything behind one address: octets and times in, octets out.
type endpoint struct {
	cfg      config
	send     func(to netip.AddrPort, octets []byte)
	pseudo   func(peer netip.Addr, length int) uint64
	services map[uint16]func() app

	conns  map[key]*conn
	timers timers
	issuer issuer
	purse  purse
	rate   rateLimit

	secret   [32]byte
	opened   uint32 // CSNs given out
	nextPort uint16
	ends     [endsPerSecond]instant // when the last ENDs out of the blue were sent
	endsAt   int

	space   []byte
	arrived packet
}

func newEndpoint(
	cfg config, services map[uint16]func() app, send func(netip.AddrPort, []byte),
) *endpoint {
	ep := &endpoint{
		cfg: cfg, send: send, services: services,
		pseudo: func(netip.Addr, int) uint64 { return 0 },
		conns:  map[key]*conn{}, nextPort: firstLocalPort,
		rate: rateLimit{bitsPerSecond: cfg.rate}, purse: newPurse(),
	}
	for i := 0; i < len(ep.secret); i += 4 {
		binary.BigEndian.PutUint32(ep.secret[i:], cfg.random())
	}
	ep.issuer = issuer{secret: ep.secret[:], bars: map[netip.AddrPort]uint64{}}
	for i := range ep.ends {
		ep.ends[i] = -time.Hour
	}
	return ep
}

// newCSN is newer than every one before for this address, IP and UDP port (section 2), and tells
// another address nothing about it, as RFC 6528 does for TCP (STP-CC-010, STP-CC-011, section 10).
func (ep *endpoint) newCSN(peer netip.AddrPort) uint32 {
	address := peer.Addr().As16()
	named := binary.BigEndian.AppendUint16(append(ep.secret[:], address[:]...), peer.Port())
	hash := sha256.Sum256(named)
	ep.opened += 1 + ep.cfg.random()&0xFF
	return binary.BigEndian.Uint32(hash[:]) + ep.opened
}

// receive takes in one packet.
func (ep *endpoint) receive(now instant, from netip.AddrPort, octets []byte) {
	p := &ep.arrived
	if p.parse(octets, ep.pseudo(from.Addr(), len(octets))) != nil {
		return
	}
	k := key{from, p.source, p.destination}
	c := ep.conns[k]
	if c == nil {
		ep.unconnected(now, k, p)
		return
	}
	c.handle(now, p)
	ep.settle(now, c)
}

// settle lets a connection go on after something happened to it, and drops one that is over.
func (ep *endpoint) settle(now instant, c *conn) {
	if c.state != idle {
		c.run(now)
	}
	switch {
	case c.state != idle:
		heap.Fix(&ep.timers, c.index)
	case c.index >= 0:
		delete(ep.conns, c.key)
		heap.Remove(&ep.timers, c.index)
		c.index = -1
	}
}

// deadline is when tick has to be called, if nothing arrives before.
func (ep *endpoint) deadline() instant {
	if len(ep.timers) == 0 {
		return never
	}
	return ep.timers[0].deadline
}

// tick does what has become due.
func (ep *endpoint) tick(now instant) {
	for range len(ep.timers) { // each connection once, so that no mistake can spin here
		if ep.deadline() > now {
			return
		}
		c := ep.timers[0]
		c.expire(now)
		ep.settle(now, c)
	}
}

// add makes a connection; its state is to be set before it is settled.
func (ep *endpoint) add(k key, user app) *conn {
	c := &conn{ep: ep, key: k, app: user, deadline: never}
	ep.conns[k] = c
	heap.Push(&ep.timers, c)
	return c
}

// unconnected answers a packet in state 1 (section 9).
func (ep *endpoint) unconnected(now instant, k key, p *packet) {
	switch p.kind {
	case typeBEGIN:
		if p.version != version {
			ep.refuse(k, p.csn, reasonVersion)
		} else {
			ep.called(now, k, p, nil)
		}
	case typeBGAK, typeSDP, typePOLL:
		ep.unknown(now, k, p)
	case typeEND:
		if p.flags&flagR == 0 {
			ep.acknowledgeEND(k, p)
		}
	}
}

// called goes through the rows for a BEGIN in state 1. If it opens a connection, that replaces the
// one between the same ports, if there is one (STP-CC-041).
func (ep *endpoint) called(now instant, k key, p *packet, old *conn) {
	if ep.services[k.port] == nil {
		ep.refuse(k, p.csn, reasonNobody)
		return
	}
	switch ep.issuer.judge(now, k.peer, p.cookie) {
	case used:
		ep.transmit(k, unknownTo(p)) // STP-CC-038
		return
	case bad:
		ep.transmit(k, &packet{
			kind: typeBGREJ, peerCSN: p.csn, reason: reasonAnew, maxSD: ep.cfg.maxSD,
			hasMaxSD: true, cookie: ep.issuer.fresh(now, k.peer),
		})
		return
	}
	if len(p.data) > ep.cfg.maxSD {
		return // STP-DT-028
	}
	if old == nil && len(ep.conns) >= ep.cfg.connections || !ep.issuer.room() {
		ep.refuse(k, p.csn, reasonBusy)
		return
	}
	if old != nil {
		old.end(errReplaced)
		ep.settle(now, old)
	}
	ep.issuer.use(k.peer, p.cookie, p.flags&flagV != 0)
	c := ep.add(k, nil)
	c.beCalled(now, p)
	ep.settle(now, c)
}

// call opens a connection; it fails when no port is free or too many connections are open.
func (ep *endpoint) call(now instant, to netip.AddrPort, port uint16, user app) error {
	if len(ep.conns) >= ep.cfg.connections {
		return errors.New("too many connections")
	}
	k := key{to, port, ep.nextPort}
	for ep.conns[k] != nil {
		k.port = max(k.port+1, firstLocalPort)
	}
	ep.nextPort = max(k.port+1, firstLocalPort)
	c := ep.add(k, user)
	c.made = ep.purse.calls(to)
	c.call(now, ep.purse.take(now, to))
	ep.settle(now, c)
	return nil
}

// abortCalls aborts every connection that was opened here.
func (ep *endpoint) abortCalls(now instant) {
	for k, c := range ep.conns {
		if k.port >= firstLocalPort {
			c.abort(now)
			ep.settle(now, c)
		}
	}
}

// transmit sends a packet of a connection, or of none.
func (ep *endpoint) transmit(k key, p *packet) {
	p.source, p.destination = k.port, k.peerPort
	ep.space = p.appendTo(ep.space[:0], ep.pseudo(k.peer.Addr(), p.length()))
	ep.send(k.peer, ep.space)
}

func (ep *endpoint) refuse(k key, csn uint32, reason uint8) {
	ep.transmit(k, &packet{kind: typeBGREJ, peerCSN: csn, reason: reason})
}

// acknowledgeEND answers an END; nothing is needed for that but the END (section 5.4).
func (ep *endpoint) acknowledgeEND(k key, p *packet) {
	ep.transmit(k, &packet{kind: typeENDAK, peerCSN: p.csn, tag: uint16(p.peerCSN)})
}

// unknown answers a packet that belongs to no connection, at most ten in a second (STP-CC-020).
func (ep *endpoint) unknown(now instant, k key, p *packet) {
	if now-ep.ends[ep.endsAt] < time.Second {
		return
	}
	ep.ends[ep.endsAt] = now
	ep.endsAt = (ep.endsAt + 1) % endsPerSecond
	ep.transmit(k, unknownTo(p))
}

// unknownTo is the END that says "I know no such connection" (section 5.5).
func unknownTo(p *packet) *packet {
	end := packet{kind: typeEND, flags: flagA | flagR, reason: reasonUnknown, peerCSN: p.csn}
	if p.kind == typeBGAK {
		end.csn, end.tag = p.peerCSN, uint16(p.peerCSN)
	}
	return &end
}

// timers is the heap of connections by deadline.
type timers []*conn

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].deadline < t[j].deadline }
func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].index, t[j].index = i, j
}

func (t *timers) Push(item any) {
	c := item.(*conn)
	c.index = len(*t)
	*t = append(*t, c)
}

func (t *timers) Pop() any {
	last := len(*t) - 1
	c := (*t)[last]
	(*t)[last] = nil
	*t = (*t)[:last]
	return c
}
