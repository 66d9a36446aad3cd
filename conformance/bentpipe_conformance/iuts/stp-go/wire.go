package main

import (
	"encoding/binary"
	"errors"
)

// Packet types (STP/1 section 3.1).
const (
	typeBEGIN = 1
	typeBGAK  = 2
	typeEND   = 3
	typeENDAK = 4
	typeBGREJ = 7
	typeSD    = 8
	typeSDP   = 9
	typePOLL  = 10
	typeSTAT  = 11
	typeUSTAT = 12
)

// Flags (section 3.1).
const (
	flagFIN = 1
	flagV   = 2
	flagA   = 4
	flagR   = 8
)

// Reasons of BGREJ and END (section 3.4).
const (
	reasonNone    = 0
	reasonAborted = 1
	reasonUnknown = 2
	reasonNobody  = 3
	reasonVersion = 4
	reasonBusy    = 5
	reasonAnew    = 6
	reasonSilence = 7
)

const (
	version      = 2
	headerLength = 12
	checksumAt   = 8
	optionMaxSD  = 1
	optionCookie = 2
	leastCookie  = 8 // octets
	mostCookie   = 32
)

// flagsOf names the flags that mean something, by type; all others are reserved (STP-PF-004).
var flagsOf = [16]uint8{
	typeBEGIN: flagFIN | flagV, typeEND: flagA | flagR, typeSD: flagFIN, typeSDP: flagFIN,
}

// fixedLength is the length of each type before options, data or list; 0 is an unused type.
var fixedLength = [16]int{
	typeBEGIN: 20, typeBGAK: 28, typeEND: 24, typeENDAK: 16, typeBGREJ: 20,
	typeSD: 12, typeSDP: 24, typePOLL: 24, typeSTAT: 24, typeUSTAT: 24,
}

var (
	errMalformed = errors.New("malformed packet")
	errChecksum  = errors.New("wrong checksum")
)

// packet holds the fields of any STP packet; which of them count follows from its type.
type packet struct {
	source, destination uint16
	flags, kind         uint8
	sequence            uint32 // 24 bits
	tag                 uint16

	version   uint8
	nMR       uint32 // credit: in BEGIN a number of SDs, else the first number not permitted
	csn       uint32 // of the sender
	peerCSN   uint32 // of the recipient
	nR        uint32 // of a BGAK; STAT, USTAT and END carry theirs as sequence
	reason    uint8
	nPS       uint32
	timestamp uint32
	list      []uint32
	maxSD     int    // of the MaxSD option
	hasMaxSD  bool   // there is one
	cookie    []byte // nil if there is none; aliases the octets parsed
	data      []byte // aliases the octets parsed
}

func word24(b []byte) uint32 { return binary.BigEndian.Uint32(b) & seqMask }

// sum16 adds 16-bit words as RFC 1071 does, without the final complement.
func sum16(octets []byte, sum uint64) uint64 {
	for len(octets) >= 8 {
		words := binary.BigEndian.Uint64(octets)
		sum += words>>48 + words>>32&0xFFFF + words>>16&0xFFFF + words&0xFFFF
		octets = octets[8:]
	}
	for len(octets) >= 2 {
		sum += uint64(binary.BigEndian.Uint16(octets))
		octets = octets[2:]
	}
	if len(octets) == 1 {
		sum += uint64(octets[0]) << 8
	}
	return sum
}

func fold(sum uint64) uint16 {
	for sum > 0xFFFF {
		sum = sum>>16 + sum&0xFFFF
	}
	return uint16(sum)
}

// parse reads a packet; pseudo is the sum of the pseudo-header's words, 0 over UDP (section 3.2).
// Type and length are checked before the checksum (section 4).
func (p *packet) parse(octets []byte, pseudo uint64) error {
	if len(octets) < headerLength {
		return errMalformed
	}
	kind := octets[4] & 15
	fixed := fixedLength[kind]
	if fixed == 0 || len(octets) < fixed {
		return errMalformed
	}
	*p = packet{
		source:      binary.BigEndian.Uint16(octets),
		destination: binary.BigEndian.Uint16(octets[2:]),
		flags:       octets[4] >> 4 & flagsOf[kind],
		kind:        kind,
		sequence:    word24(octets[4:]),
		tag:         binary.BigEndian.Uint16(octets[10:]),
		list:        p.list[:0],
	}
	if err := p.parseBody(octets, fixed); err != nil {
		return err
	}
	if fold(sum16(octets, pseudo)) != 0xFFFF {
		return errChecksum
	}
	return nil
}

func (p *packet) parseBody(octets []byte, fixed int) error {
	body, rest := octets[headerLength:fixed], octets[fixed:]
	switch p.kind {
	case typeBEGIN:
		p.version = body[0] >> 4
		p.nMR = word24(body)
		p.csn = binary.BigEndian.Uint32(body[4:])
		if p.version != version {
			return nil // what follows is laid out as that version likes
		}
		options := int(body[0]&15) * 4
		if len(rest) < options {
			return errMalformed
		}
		p.data = rest[options:]
		return p.parseOptions(rest[:options])
	case typeBGAK:
		p.nMR = word24(body)
		p.csn = binary.BigEndian.Uint32(body[4:])
		p.peerCSN = binary.BigEndian.Uint32(body[8:])
		p.nR = word24(body[12:])
		if len(rest) != int(body[0]&15)*4 {
			return errMalformed
		}
		return p.parseOptions(rest)
	case typeEND:
		p.reason = body[0]
		p.csn = binary.BigEndian.Uint32(body[4:])
		p.peerCSN = binary.BigEndian.Uint32(body[8:])
	case typeENDAK:
		p.peerCSN = binary.BigEndian.Uint32(body)
	case typeBGREJ:
		p.reason = body[0]
		p.peerCSN = binary.BigEndian.Uint32(body[4:])
		if len(rest) != int(body[1]&15)*4 {
			return errMalformed
		}
		return p.parseOptions(rest)
	case typeSD:
		p.data = rest
		return nil
	case typeSDP, typePOLL:
		p.nPS = word24(body)
		p.timestamp = binary.BigEndian.Uint32(body[4:])
		p.csn = binary.BigEndian.Uint32(body[8:])
		if p.kind == typeSDP {
			p.data = rest
			return nil
		}
	case typeSTAT:
		p.nMR = word24(body)
		p.nPS = word24(body[4:])
		p.timestamp = binary.BigEndian.Uint32(body[8:])
		if len(rest)%4 != 0 {
			return errMalformed
		}
		for ; len(rest) > 0; rest = rest[4:] {
			p.list = append(p.list, word24(rest))
		}
		return nil
	case typeUSTAT:
		p.nMR = word24(body)
		p.list = append(p.list, word24(body[4:]), word24(body[8:]))
	}
	if len(rest) != 0 {
		return errMalformed
	}
	return nil
}

// parseOptions reads the options of BEGIN, BGAK and BGREJ (section 3.3).
func (p *packet) parseOptions(options []byte) error {
	for len(options) > 0 {
		if options[0] == 0 {
			options = options[1:]
			continue
		}
		if len(options) < 2 || options[1] < 2 || int(options[1]) > len(options) {
			return errMalformed
		}
		length := int(options[1])
		value := options[2:length]
		switch options[0] {
		case optionMaxSD:
			if len(value) == 2 && !p.hasMaxSD {
				p.maxSD, p.hasMaxSD = int(binary.BigEndian.Uint16(value)), true
			}
		case optionCookie:
			if len(value) >= leastCookie && len(value) <= mostCookie && p.cookie == nil {
				p.cookie = value
			}
		}
		options = options[length:]
	}
	return nil
}

// length is how many octets appendTo writes.
func (p *packet) length() int {
	length := fixedLength[p.kind] + 4*p.optionWords() + len(p.data)
	if p.kind == typeSTAT {
		length += 4 * len(p.list)
	}
	return length
}

// optionWords is how many words of four octets the options fill.
func (p *packet) optionWords() int {
	words := 0
	if p.hasMaxSD {
		words = 1
	}
	if p.cookie != nil {
		words += (2 + len(p.cookie) + 3) / 4
	}
	return words
}

// appendTo writes the packet, with its checksum, behind what is in octets already.
func (p *packet) appendTo(octets []byte, pseudo uint64) []byte {
	start := len(octets)
	put16 := binary.BigEndian.AppendUint16
	put32 := binary.BigEndian.AppendUint32
	octets = put16(octets, p.source)
	octets = put16(octets, p.destination)
	octets = put32(octets, uint32(p.flags)<<28|uint32(p.kind)<<24|p.sequence&seqMask)
	octets = put16(octets, 0)
	octets = put16(octets, p.tag)
	options := uint32(p.optionWords())
	switch p.kind {
	case typeBEGIN:
		octets = put32(octets, uint32(p.version)<<28|options<<24|p.nMR&seqMask)
		octets = put32(octets, p.csn)
	case typeBGAK:
		octets = put32(octets, options<<24|p.nMR&seqMask)
		octets = put32(octets, p.csn)
		octets = put32(octets, p.peerCSN)
		octets = put32(octets, p.nR&seqMask)
	case typeEND:
		octets = put32(octets, uint32(p.reason)<<24)
		octets = put32(octets, p.csn)
		octets = put32(octets, p.peerCSN)
	case typeENDAK:
		octets = put32(octets, p.peerCSN)
	case typeBGREJ:
		octets = put32(octets, uint32(p.reason)<<24|options<<16)
		octets = put32(octets, p.peerCSN)
	case typeSDP, typePOLL:
		octets = put32(octets, p.nPS&seqMask)
		octets = put32(octets, p.timestamp)
		octets = put32(octets, p.csn)
	case typeSTAT, typeUSTAT:
		octets = put32(octets, p.nMR&seqMask)
		if p.kind == typeSTAT {
			octets = put32(octets, p.nPS&seqMask)
			octets = put32(octets, p.timestamp)
		}
		for _, element := range p.list {
			octets = put32(octets, element&seqMask)
		}
	}
	if p.hasMaxSD {
		octets = put32(octets, optionMaxSD<<24|4<<16|uint32(p.maxSD)&0xFFFF)
	}
	if p.cookie != nil {
		octets = append(octets, optionCookie, byte(2+len(p.cookie)))
		octets = append(octets, p.cookie...)
		for padding := -(2 + len(p.cookie)) & 3; padding > 0; padding-- {
			octets = append(octets, 0)
		}
	}
	octets = append(octets, p.data...)
	checksum := ^fold(sum16(octets[start:], pseudo))
	binary.BigEndian.PutUint16(octets[start+checksumAt:], checksum)
	return octets
}
