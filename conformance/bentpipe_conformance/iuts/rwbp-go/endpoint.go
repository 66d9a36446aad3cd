package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"time"
)

const (
	mostConnections = 128
	mostWaiting     = 1024
	// idleEnough is how long a connection has to have been idle to be given up for a new one.
	idleEnough = 60 * time.Second
	firstPort  = 49152
)

// endpoint is a host on the link: the connections, and what listens for new ones. It does nothing by
// itself; a loop tells it what arrives and what time it is.
type endpoint struct {
	address       address
	mtu           int
	rwbp          bool // RWBP is offered and accepted on this link (RWBP-SEC-001)
	interval      uint8
	receiveBuffer uint32
	sendBuffer    int
	listeners     map[uint16]func() user
	uplink        uplink

	connections map[flow]*connection
	ring        []*connection // in the order of opening
	turn        int           // where in the ring the scheduler goes on
	waiting     []*connection // those in TIME-WAIT, the one that ends first first
	secret      [32]byte
	port        uint16 // the last one a call was made from
	now         instant
	scratch     []byte // for users
}

func newEndpoint(own address, mtu int, output func([]byte)) *endpoint {
	e := &endpoint{
		address: own, mtu: mtu, rwbp: true, interval: 8,
		receiveBuffer: 1 << 19, sendBuffer: 1 << 20,
		listeners: services(), uplink: uplink{leave: output},
		connections: make(map[flow]*connection),
		scratch:     make([]byte, 1<<16),
	}
	_, _ = rand.Read(e.secret[:])
	e.port = binary.BigEndian.Uint16(e.secret[:])
	return e
}

// mss is the own MSS option, and with RWBP UNIT.OWN.
func (e *endpoint) mss() uint16 { return uint16(min(e.mtu-headers, 65535)) }

func (e *endpoint) offer() *offer { return &offer{interval: e.interval, unit: e.mss()} }

func (e *endpoint) firstWindow() uint16 { return uint16(min(e.receiveBuffer, 65535)) }

// firstNumber is an initial sequence number by RFC 6528.
func (e *endpoint) firstNumber(f flow, now instant) number {
	text := append(e.secret[:len(e.secret):len(e.secret)], f.remote[:]...)
	text = binary.BigEndian.AppendUint16(text, f.remotePort)
	text = binary.BigEndian.AppendUint16(text, f.localPort)
	digest := sha256.Sum256(text)
	const tick = 4 * time.Microsecond
	return number(binary.BigEndian.Uint32(digest[:])) + number(now/tick)
}

// receive takes a packet from the link.
func (e *endpoint) receive(packet []byte, now instant) {
	e.now = now
	if e.uplink.hear(packet, e.address, now) {
		e.schedule(now)
		return
	}
	source, destination, bytes, ok := parsePacket(packet)
	if !ok || destination != e.address || source == e.address {
		return
	}
	s, ok := parseSegment(source, destination, bytes)
	if !ok {
		return
	}
	f := flow{source, s.source, s.destination}
	if c := e.connections[f]; c != nil {
		c.arrive(s, now)
		e.follow(c, now)
		return
	}
	e.arriveUnknown(f, s, now)
}

// arriveUnknown answers a segment of no connection: a SYN by a connection, if its port is listened
// to, anything else by a RST.
func (e *endpoint) arriveUnknown(f flow, s *segment, now instant) {
	listener := e.listeners[f.localPort]
	switch {
	case s.has(flagRST):
	case s.has(flagACK):
		e.refuse(f, &segment{seq: s.ack, flags: flagRST})
	case listener == nil:
		e.refuse(f, &segment{flags: flagRST | flagACK, ack: s.seq + number(s.length())})
	case s.has(flagSYN) && f.remotePort != 0 && e.admits(now):
		e.add(f, listener(), now).answer(s, now)
	}
}

func (e *endpoint) refuse(f flow, reset *segment) {
	reset.source, reset.destination = f.localPort, f.remotePort
	if e.uplink.hasRoom() {
		e.send(f, reset)
	}
}

// send puts a segment into the IP queue.
func (e *endpoint) send(f flow, s *segment) {
	bare := len(s.data) == 0 && !s.has(flagSYN|flagFIN|flagRST)
	e.uplink.put(waitingPacket{s.marshal(e.address, f.remote), f, bare})
	e.uplink.drain(e.now)
}

// admits makes room for a new connection, if there is none, and tells whether there is.
func (e *endpoint) admits(now instant) bool {
	if len(e.ring) < mostConnections {
		return true
	}
	oldest := e.ring[0]
	for _, c := range e.ring {
		if c.state == synReceived {
			c.end(errEvicted)
			return true
		}
		if c.heard < oldest.heard {
			oldest = c
		}
	}
	if now-oldest.heard < idleEnough {
		return false
	}
	oldest.abort(errEvicted)
	return true
}

func (e *endpoint) add(f flow, owner user, now instant) *connection {
	c := &connection{
		endpoint: e, flow: f, user: owner, iss: e.firstNumber(f, now), rtt: newEstimator(), heard: now,
	}
	e.connections[f] = c
	e.ring = append(e.ring, c)
	return c
}

// call opens a connection to a port of a peer.
func (e *endpoint) call(peer address, port uint16, owner user, now instant) (*connection, error) {
	e.now = now
	if port == 0 || !peer.unicast() || peer == e.address {
		return nil, errors.New("there is no such peer")
	}
	if !e.admits(now) {
		return nil, errors.New("there are too many connections")
	}
	f := flow{remote: peer, remotePort: port}
	for range 1 << 14 {
		e.port = max(e.port+1, firstPort)
		f.localPort = e.port
		if e.connections[f] == nil && e.listeners[f.localPort] == nil {
			c := e.add(f, owner, now)
			c.call(now)
			return c, nil
		}
	}
	return nil, errors.New("there is no free port")
}

// wait lets a connection enter TIME-WAIT.
func (e *endpoint) wait(c *connection, now instant) {
	c.state = timeWaiting
	c.receiver.ackTimer.stop()
	e.leaveRing(c)
	for len(e.waiting) >= mostWaiting {
		e.waiting[0].end(nil)
	}
	e.waiting = append(e.waiting, c)
	c.waitTimer.start(now, timeWait)
}

// restartWait starts the 2 MSL anew.
func (e *endpoint) restartWait(c *connection, now instant) {
	e.waiting = remove(e.waiting, c)
	e.waiting = append(e.waiting, c)
	c.waitTimer.start(now, timeWait)
}

func (e *endpoint) forget(c *connection) {
	delete(e.connections, c.flow)
	e.leaveRing(c)
	e.waiting = remove(e.waiting, c)
}

func (e *endpoint) leaveRing(c *connection) {
	if place := slices.Index(e.ring, c); place >= 0 {
		e.ring = slices.Delete(e.ring, place, place+1)
		if place < e.turn {
			e.turn--
		}
	}
}

func remove(from []*connection, c *connection) []*connection {
	if place := slices.Index(from, c); place >= 0 {
		return slices.Delete(from, place, place+1)
	}
	return from
}

// follow does what an event of a connection permits: its user reads and writes, segments leave.
func (e *endpoint) follow(c *connection, now instant) {
	c.pump()
	e.schedule(now)
	c.settle(now)
}

// schedule serves the connections that can send, one segment each in turn, while the IP queue has
// room (section 9.2).
func (e *endpoint) schedule(now instant) {
	e.uplink.drain(now)
	for idle := 0; idle < len(e.ring) && e.uplink.hasRoom(); {
		if e.turn >= len(e.ring) {
			e.turn = 0
		}
		c := e.ring[e.turn]
		e.turn++
		if c.sender != nil && c.sender.canSend() {
			c.sender.send(now)
			idle = 0
		} else {
			idle++
		}
	}
}

// deadline is when the endpoint wants to be told the time, at the latest.
func (e *endpoint) deadline() instant {
	earliest := e.uplink.deadline(e.now)
	for _, c := range e.ring {
		earliest = min(earliest, c.deadline())
	}
	if len(e.waiting) > 0 {
		earliest = min(earliest, e.waiting[0].deadline())
	}
	return earliest
}

// advance tells the endpoint the time.
func (e *endpoint) advance(now instant) {
	e.now = now
	for len(e.waiting) > 0 && e.waiting[0].waitTimer.due(now) {
		e.waiting[0].end(nil)
	}
	for _, c := range slices.Clone(e.ring) {
		if c.state != closed && c.deadline() <= now {
			c.expire(now)
			e.follow(c, now)
		}
	}
	e.schedule(now)
}
