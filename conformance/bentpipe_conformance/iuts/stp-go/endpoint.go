package main

import (
	"container/heap"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"
	"net/netip"
	"slices"
	"time"
)

// instant is a time since the program's start; the core has no clock of its own.
type instant = time.Duration

const never instant = math.MaxInt64

const (
	maxPending     = 64 // connections that wait for confirmation (STP-SEC-002)
	maxBeside      = 8  // those between the same addresses and ports
	maxPeers       = 4096
	peerLife       = 600 * time.Second // STP-CC-013
	endsPerSecond  = 10                // STP-CC-020
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
	keepAlive       time.Duration // 0: off
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

type knownPeer struct {
	csn  uint32
	last instant
}

// endpoint is everything behind one address: octets and times in, octets out.
type endpoint struct {
	cfg      config
	send     func(to netip.AddrPort, octets []byte)
	pseudo   func(peer netip.Addr, length int) uint64
	services map[uint16]func() app

	conns   map[key]*conn // but for those in state 3
	timers  timers
	pending []*conn // in state 3, the oldest first
	peers   map[netip.AddrPort]knownPeer
	rate    rateLimit

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
		conns:  map[key]*conn{}, peers: map[netip.AddrPort]knownPeer{},
		rate: rateLimit{bitsPerSecond: cfg.rate}, nextPort: firstLocalPort,
	}
	for i := 0; i < len(ep.secret); i += 4 {
		binary.BigEndian.PutUint32(ep.secret[i:], cfg.random())
	}
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
		var others int
		c, others = ep.waiting(k, p)
		switch {
		case c != nil:
		case others == 0:
			ep.unconnected(now, k, p, len(octets))
			return
		default:
			if p.kind == typeBEGIN { // STP-CC-033
				ep.called(now, k, p, len(octets))
			}
			return
		}
	}
	if !c.proven {
		c.received += len(octets)
	}
	c.handle(now, p)
	ep.settle(now, c)
}

// waiting is the newest call in state 3 that a packet belongs to, and how many wait between the same
// addresses and ports (section 5.2).
func (ep *endpoint) waiting(k key, p *packet) (*conn, int) {
	var found *conn
	count := 0
	for _, c := range ep.pending {
		if c.key == k {
			count++
			if c.owns(p) {
				found = c
			}
		}
	}
	return found, count
}

// settle lets a connection go on after something happened to it, and drops one that is over.
func (ep *endpoint) settle(now instant, c *conn) {
	if c.state != idle {
		c.run(now)
	}
	if c.state != called && ep.noLongerPending(c) && c.state != idle {
		ep.conns[c.key] = c
		ep.forgetCalls(now, c.key)
	}
	if c.state != idle {
		heap.Fix(&ep.timers, c.index)
		return
	}
	if ep.conns[c.key] == c {
		if c.peerKnown && c.heard > 0 {
			ep.refresh(now, c)
		}
		delete(ep.conns, c.key)
	}
	if c.index >= 0 {
		heap.Remove(&ep.timers, c.index)
		c.index = -1
	}
}

// forgetCalls drops what waits where another call has been confirmed (STP-CC-033).
func (ep *endpoint) forgetCalls(now instant, k key) {
	for _, c := range slices.Clone(ep.pending) {
		if c.key == k {
			c.end(errNotConfirmed)
			ep.settle(now, c)
		}
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

func (ep *endpoint) add(c *conn) {
	c.deadline, c.lastChallenge = never, -time.Hour
	heap.Push(&ep.timers, c)
}

// unconnected answers a packet in state 1 (section 9).
func (ep *endpoint) unconnected(now instant, k key, p *packet, length int) {
	switch p.kind {
	case typeBEGIN:
		ep.called(now, k, p, length)
	case typeBGAK, typeSD, typeSDP, typePOLL:
		ep.unknown(now, k, p)
	case typeEND:
		if p.flags&flagR == 0 {
			ep.acknowledgeEND(k, p)
		}
	}
}

func (ep *endpoint) called(now instant, k key, p *packet, length int) {
	switch {
	case p.version != version:
		ep.refuse(k, p.csn, reasonVersion)
		return
	case ep.services[k.port] == nil:
		ep.refuse(k, p.csn, reasonNobody)
		return
	case len(p.data) > ep.cfg.maxSD:
		return
	case len(ep.conns) >= ep.cfg.connections:
		ep.refuse(k, p.csn, reasonBusy)
		return
	}
	known, ok := ep.peers[k.peer]
	_, others := ep.waiting(k, p)
	trusted := ok && others == 0 && now-known.last <= peerLife && csnNewer(p.csn, known.csn)
	c := &conn{
		ep: ep, key: k, csn: ep.newCSN(k.peer), iss: ep.cfg.random() & seqMask,
		received: length,
	}
	ep.add(c)
	c.beCalled(now, p, trusted)
	if c.state == called {
		ep.makeRoom(now, k, others)
		ep.pending = append(ep.pending, c)
	} else {
		ep.conns[k] = c
	}
	ep.settle(now, c)
}

// makeRoom drops the oldest call to which a bound applies, if it is reached (STP-SEC-002).
func (ep *endpoint) makeRoom(now instant, k key, beside int) {
	if beside < maxBeside && len(ep.pending) < maxPending {
		return
	}
	for _, c := range ep.pending {
		if beside < maxBeside || c.key == k {
			c.end(errNotConfirmed)
			ep.settle(now, c)
			return
		}
	}
}

// replace lets a new call take the place of a connection that is over.
func (ep *endpoint) replace(now instant, c *conn, p *packet) {
	ep.settle(now, c)
	ep.called(now, c.key, p, fixedLength[typeBEGIN]+len(p.data))
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
	c := &conn{
		ep: ep, key: k, csn: ep.newCSN(to), iss: ep.cfg.random() & seqMask, app: user,
	}
	ep.add(c)
	ep.conns[k] = c
	c.call(now)
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

// noLongerPending tells whether it was.
func (ep *endpoint) noLongerPending(c *conn) bool {
	i := slices.Index(ep.pending, c)
	if i >= 0 {
		ep.pending = slices.Delete(ep.pending, i, i+1)
	}
	return i >= 0
}

// remember keeps the newest CSN of an address; the oldest memory makes room for a new one.
func (ep *endpoint) remember(now instant, peer netip.AddrPort, csn uint32) {
	known, ok := ep.peers[peer]
	if !ok && len(ep.peers) >= maxPeers {
		var oldest netip.AddrPort
		least := never
		for address, entry := range ep.peers {
			if entry.last < least {
				oldest, least = address, entry.last
			}
		}
		delete(ep.peers, oldest)
	}
	if !ok || now-known.last > peerLife || csnNewer(csn, known.csn) {
		known.csn = csn
	}
	known.last = now
	ep.peers[peer] = known
}

// refresh counts the life of a memory from the last packet of the connection.
func (ep *endpoint) refresh(now instant, c *conn) {
	if known, ok := ep.peers[c.key.peer]; ok && c.heard > known.last {
		known.last = c.heard
		ep.peers[c.key.peer] = known
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

// acknowledgeEND answers an END; nothing is needed for that but the END (section 5.5).
func (ep *endpoint) acknowledgeEND(k key, p *packet) {
	ep.transmit(k, &packet{kind: typeENDAK, peerCSN: p.csn, tag: uint16(p.peerCSN)})
}

// unknown sends the END out of the blue of section 5.6, at most ten in a second.
func (ep *endpoint) unknown(now instant, k key, p *packet) {
	if now-ep.ends[ep.endsAt] < time.Second {
		return
	}
	ep.ends[ep.endsAt] = now
	ep.endsAt = (ep.endsAt + 1) % endsPerSecond
	end := packet{kind: typeEND, flags: flagA | flagR, reason: reasonUnknown}
	if p.kind == typeBGAK {
		end.csn, end.peerCSN, end.tag = p.peerCSN, p.csn, uint16(p.peerCSN)
	} else {
		end.peerCSN = uint32(p.tag)
	}
	ep.transmit(k, &end)
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
