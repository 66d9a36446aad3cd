package main

import (
	"encoding/binary"
)

// number is a sequence number (section 2).
type number uint32

// below tells whether a is below b.
func (a number) below(b number) bool {
	distance := uint32(b - a)
	return distance != 0 && distance < 1<<31
}

// above tells whether a is above b.
func (a number) above(b number) bool { return b.below(a) }

// higher returns the higher of two numbers: the one that is not below the other.
func higher(a, b number) number {
	if a.below(b) {
		return b
	}
	return a
}

// within tells whether a lies in the range [first, end).
func (a number) within(first, end number) bool {
	return uint32(a-first) < uint32(end-first)
}

// address is an IPv4 address.
type address [4]byte

func (a address) unicast() bool { return a[0] != 0 && a[0] < 224 && a[0] != 127 }

const (
	flagFIN = 1 << iota
	flagSYN
	flagRST
	flagPSH
	flagACK
)

const (
	ipHeader     = 20
	tcpHeader    = 20
	headers      = ipHeader + tcpHeader
	protocolTCP  = 6
	smallestUnit = 48
	defaultMSS   = 536

	kindEnd           = 0
	kindNothing       = 1
	kindMSS           = 2
	kindSACKPermitted = 4
	kindSACK          = 5
	kindExperiment    = 253

	exID        = 0x52574250
	rwbpLength  = 10
	rwbpVersion = 1
	mostBlocks  = 4
)

// block is a range [left, right) of octets: a run of the receiver, or a SACK block of a segment.
type block struct{ left, right number }

// offer is what an RWBP option that counts says.
type offer struct {
	interval uint8
	unit     uint16
}

// options are the options of a segment; what is absent is zero.
type options struct {
	mss           uint16
	sackPermitted bool
	rwbp          *offer
	blocks        []block
}

// segment is a TCP segment. Its data is only valid until the next packet is read.
type segment struct {
	source, destination uint16
	seq, ack            number
	flags               byte
	window              uint16
	options             options
	data                []byte
}

func (s *segment) has(flag byte) bool { return s.flags&flag != 0 }

// length is SEG.LEN.
func (s *segment) length() uint32 {
	length := uint32(len(s.data))
	if s.has(flagSYN) {
		length++
	}
	if s.has(flagFIN) {
		length++
	}
	return length
}

// carries tells whether it is a segment with data, in the sense of section 2.
func (s *segment) carries() bool {
	return (len(s.data) > 0 || s.has(flagFIN)) && !s.has(flagSYN|flagRST)
}

// checksum is the Internet checksum over parts, of which all but the last have an even length.
func checksum(parts ...[]byte) uint16 {
	var sum uint64
	for _, part := range parts {
		for len(part) > 1 {
			sum += uint64(binary.BigEndian.Uint16(part))
			part = part[2:]
		}
		if len(part) == 1 {
			sum += uint64(part[0]) << 8
		}
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

func tcpChecksum(source, destination address, bytes []byte) uint16 {
	var pseudo [12]byte
	copy(pseudo[0:], source[:])
	copy(pseudo[4:], destination[:])
	pseudo[9] = protocolTCP
	binary.BigEndian.PutUint16(pseudo[10:], uint16(len(bytes)))
	return checksum(pseudo[:], bytes)
}

// parsePacket takes the TCP segment out of an IPv4 packet. Fragments are not put together: no
// segment is larger than the MTU that both ends of the link have.
func parsePacket(packet []byte) (source, destination address, bytes []byte, ok bool) {
	if len(packet) < ipHeader || packet[0]>>4 != 4 {
		return
	}
	header := int(packet[0]&15) * 4
	total := int(binary.BigEndian.Uint16(packet[2:]))
	if header < ipHeader || total < header || total > len(packet) {
		return
	}
	const moreFragmentsAndOffset = 0x3fff
	fragment := binary.BigEndian.Uint16(packet[6:]) & moreFragmentsAndOffset
	if packet[9] != protocolTCP || fragment != 0 || checksum(packet[:header]) != 0 {
		return
	}
	copy(source[:], packet[12:])
	copy(destination[:], packet[16:])
	return source, destination, packet[header:total], source.unicast()
}

// parseSegment reads a segment; it is not ok if it is malformed or its checksum wrong.
func parseSegment(source, destination address, bytes []byte) (*segment, bool) {
	if len(bytes) < tcpHeader {
		return nil, false
	}
	header := int(bytes[12]>>4) * 4
	if header < tcpHeader || header > len(bytes) || tcpChecksum(source, destination, bytes) != 0 {
		return nil, false
	}
	options, ok := parseOptions(bytes[tcpHeader:header])
	if !ok {
		return nil, false
	}
	if bytes[13]&flagSYN == 0 {
		options.rwbp = nil
	}
	return &segment{
		source:      binary.BigEndian.Uint16(bytes[0:]),
		destination: binary.BigEndian.Uint16(bytes[2:]),
		seq:         number(binary.BigEndian.Uint32(bytes[4:])),
		ack:         number(binary.BigEndian.Uint32(bytes[8:])),
		flags:       bytes[13],
		window:      binary.BigEndian.Uint16(bytes[14:]),
		options:     options,
		data:        bytes[header:],
	}, true
}

// parseOptions walks the list. Of each kind the first option whose length suits it is read.
func parseOptions(list []byte) (options, bool) {
	var found options
	var mss bool
	for len(list) > 0 && list[0] != kindEnd {
		if list[0] == kindNothing {
			list = list[1:]
			continue
		}
		if len(list) < 2 || list[1] < 2 || int(list[1]) > len(list) {
			return found, false
		}
		kind, body := list[0], list[2:list[1]]
		list = list[list[1]:]
		switch {
		case kind == kindMSS && len(body) == 2 && !mss:
			mss = true
			found.mss = max(binary.BigEndian.Uint16(body), smallestUnit)
		case kind == kindSACKPermitted && len(body) == 0:
			found.sackPermitted = true
		case kind == kindSACK && len(body) > 0 && len(body)%8 == 0 && found.blocks == nil:
			for ; len(body) > 0; body = body[8:] {
				found.blocks = append(found.blocks, block{
					number(binary.BigEndian.Uint32(body)), number(binary.BigEndian.Uint32(body[4:])),
				})
			}
		case kind == kindExperiment && found.rwbp == nil:
			found.rwbp = parseOffer(body)
		}
	}
	return found, true
}

// parseOffer reads the body of an option of kind 253: nil if it is void or none of RWBP.
func parseOffer(body []byte) *offer {
	if len(body) != rwbpLength-2 || binary.BigEndian.Uint32(body) != exID {
		return nil
	}
	read := &offer{interval: body[5], unit: binary.BigEndian.Uint16(body[6:])}
	if body[4]>>4 != rwbpVersion || read.interval == 0 || read.unit < smallestUnit {
		return nil
	}
	return read
}

// marshal writes the options, padded to a multiple of four octets.
func (o *options) marshal() []byte {
	var list []byte
	if o.mss != 0 {
		list = append(list, kindMSS, 4)
		list = binary.BigEndian.AppendUint16(list, o.mss)
	}
	if o.sackPermitted {
		list = append(list, kindSACKPermitted, 2)
	}
	if o.rwbp != nil {
		list = append(list, kindExperiment, rwbpLength)
		list = binary.BigEndian.AppendUint32(list, exID)
		list = append(list, rwbpVersion<<4, o.rwbp.interval)
		list = binary.BigEndian.AppendUint16(list, o.rwbp.unit)
	}
	if len(o.blocks) > 0 {
		list = append(list, kindNothing, kindNothing, kindSACK, byte(2+8*len(o.blocks)))
		for _, each := range o.blocks {
			list = binary.BigEndian.AppendUint32(list, uint32(each.left))
			list = binary.BigEndian.AppendUint32(list, uint32(each.right))
		}
	}
	for len(list)%4 != 0 {
		list = append(list, kindEnd)
	}
	return list
}

// marshal writes the segment as an IPv4 packet, Not-ECT and not to be fragmented.
func (s *segment) marshal(source, destination address) []byte {
	list := s.options.marshal()
	packet := make([]byte, headers, headers+len(list)+len(s.data))
	packet = append(packet, list...)
	packet = append(packet, s.data...)

	packet[0] = 4<<4 | ipHeader/4
	binary.BigEndian.PutUint16(packet[2:], uint16(len(packet)))
	const dontFragment = 0x4000
	binary.BigEndian.PutUint16(packet[6:], dontFragment)
	packet[8] = 64
	packet[9] = protocolTCP
	copy(packet[12:], source[:])
	copy(packet[16:], destination[:])
	binary.BigEndian.PutUint16(packet[10:], checksum(packet[:ipHeader]))

	bytes := packet[ipHeader:]
	binary.BigEndian.PutUint16(bytes[0:], s.source)
	binary.BigEndian.PutUint16(bytes[2:], s.destination)
	binary.BigEndian.PutUint32(bytes[4:], uint32(s.seq))
	binary.BigEndian.PutUint32(bytes[8:], uint32(s.ack))
	bytes[12] = byte((tcpHeader + len(list)) / 4 << 4)
	bytes[13] = s.flags
	binary.BigEndian.PutUint16(bytes[14:], s.window)
	binary.BigEndian.PutUint16(bytes[16:], tcpChecksum(source, destination, bytes))
	return packet
}
