package main

import (
	"encoding/binary"
	"time"
)

const (
	ipQueue     = 10 // IPQ
	creditPort  = 1021
	creditLife  = time.Second
	frameOctets = 12
	udpHeader   = 8
	protocolUDP = 17
)

// waitingPacket is a packet in the IP queue.
type waitingPacket struct {
	bytes []byte
	flow  flow
	pure  bool // a pure acknowledgment
}

// uplink is the IP queue of a link, with the link's rate and the gateway's credit (sections 9.3 and
// 9.4). Without either, packets leave it at once.
type uplink struct {
	rate    float64  // bit/s, or 0
	gateway *address // or nil
	leave   func(packet []byte)

	queue  []waitingPacket
	freeAt instant
	credit credit
}

// credit is what the proxy keeps of its gateway's credit.
type credit struct {
	known         bool
	epoch         uint16
	passed, limit number
	heardAt       instant
	passedAt      instant
	hasPassed     bool
}

// hasRoom tells whether the queue takes a packet with data or FIN.
func (u *uplink) hasRoom() bool { return len(u.queue) < ipQueue }

// put takes a packet, one without data even if the queue is full; of acknowledgments of a connection
// a full queue keeps the last (RWBP-SC-005).
func (u *uplink) put(packet waitingPacket) {
	if packet.pure && !u.hasRoom() {
		kept := u.queue[:0]
		for _, each := range u.queue {
			if !each.pure || each.flow != packet.flow {
				kept = append(kept, each)
			}
		}
		clear(u.queue[len(kept):])
		u.queue = kept
	}
	u.queue = append(u.queue, packet)
}

// drain lets leave what may.
func (u *uplink) drain(now instant) {
	for len(u.queue) > 0 && now >= u.freeAt && u.mayPass(now) {
		packet := u.queue[0].bytes
		u.queue[0] = waitingPacket{}
		u.queue = u.queue[1:]
		u.credit.passed++
		u.credit.passedAt, u.credit.hasPassed = now, true
		if u.rate > 0 {
			u.freeAt = now + instant(float64(8*len(packet))/u.rate*float64(time.Second)) + 1
		}
		u.leave(packet)
	}
}

func (u *uplink) mayPass(now instant) bool {
	c := &u.credit
	return u.gateway == nil || c.known && now-c.heardAt <= creditLife && c.passed.below(c.limit)
}

// deadline is when the link is free for what waits for nothing else.
func (u *uplink) deadline(now instant) instant {
	if len(u.queue) == 0 || !u.mayPass(now) {
		return never
	}
	return u.freeAt
}

// hear takes a credit frame, if the packet is a valid one, and tells whether it is.
func (u *uplink) hear(packet []byte, own address, now instant) bool {
	payload, ok := u.frame(packet, own)
	if !ok {
		return false
	}
	epoch := binary.BigEndian.Uint16(payload[2:])
	arrived := number(binary.BigEndian.Uint32(payload[4:]))
	limit := number(binary.BigEndian.Uint32(payload[8:]))
	if uint32(limit-arrived) >= 1<<31 {
		return false
	}
	c := &u.credit
	switch ahead := epoch - c.epoch; {
	case !c.known || ahead >= 1 && ahead < 1<<15:
		c.known, c.epoch, c.passed, c.limit = true, epoch, arrived, limit
	case ahead != 0:
		return true // of an older epoch: discarded
	default:
		c.limit = higher(c.limit, limit)
		if !c.hasPassed || now-c.passedAt >= creditLife {
			c.passed = arrived
		}
	}
	c.heardAt = now
	return true
}

// frame takes the payload out of a datagram of the gateway's that is a credit frame.
func (u *uplink) frame(packet []byte, own address) ([]byte, bool) {
	if u.gateway == nil || len(packet) < ipHeader || packet[0]>>4 != 4 || packet[9] != protocolUDP {
		return nil, false
	}
	header, total := int(packet[0]&15)*4, int(binary.BigEndian.Uint16(packet[2:]))
	if header < ipHeader || total < header+udpHeader || total > len(packet) ||
		binary.BigEndian.Uint16(packet[6:])&0x3fff != 0 || checksum(packet[:header]) != 0 {
		return nil, false
	}
	source, destination := address(packet[12:16]), address(packet[16:20])
	datagram := packet[header:total]
	length := int(binary.BigEndian.Uint16(datagram[4:]))
	if source != *u.gateway || destination != own || length < udpHeader || length > len(datagram) {
		return nil, false
	}
	datagram = datagram[:length]
	payload := datagram[udpHeader:]
	if binary.BigEndian.Uint16(datagram[2:]) != creditPort || len(payload) != frameOctets ||
		payload[0] != 0x11 || payload[1] != 0 || !udpIntact(source, destination, datagram) {
		return nil, false
	}
	return payload, true
}

// udpIntact tells whether a datagram has a checksum, and the right one.
func udpIntact(source, destination address, datagram []byte) bool {
	var pseudo [12]byte
	copy(pseudo[0:], source[:])
	copy(pseudo[4:], destination[:])
	pseudo[9] = protocolUDP
	binary.BigEndian.PutUint16(pseudo[10:], uint16(len(datagram)))
	return binary.BigEndian.Uint16(datagram[6:]) != 0 && checksum(pseudo[:], datagram) == 0
}
