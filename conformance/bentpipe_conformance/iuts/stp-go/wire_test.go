package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math/rand"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
)

// vectorFile is in the source tree; a copy of this directory elsewhere names it by STP_VECTORS.
const vectorFile = "../../../../spec/bentpipe_spec/stp/vectors.json"

type vector struct {
	Name string
	Over struct {
		Carrier, Source, Destination string
		Protocol                     int
	}
	Octets      string
	Malformed   string
	Unspecified string
	Defects     []any
	Fields      *struct {
		Type              string
		Flags             []string
		Sport, Dport, Tag uint16
		ISS               *uint32 `json:"iss"`
		NR                *uint32 `json:"n_r"`
		NS                *uint32 `json:"n_s"`
		NMR               *uint32 `json:"n_mr"`
		NPS               *uint32 `json:"n_ps"`
		CSN, Timestamp    *uint32
		PeerCSN           *uint32 `json:"peer_csn"`
		Version, Reason   *uint8
		MaxSD             *int `json:"max_sd"`
		Cookie            *string
		Elements          []uint32
		Data              *string
		Options           [][]any
	}
}

func vectors(t *testing.T) []vector {
	path := vectorFile
	if other := os.Getenv("STP_VECTORS"); other != "" {
		path = other
	}
	octets, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("the vectors are missing; set STP_VECTORS to their file: %v", err)
	}
	var file struct{ Packets []vector }
	if err := json.Unmarshal(octets, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Packets) < 300 {
		t.Fatalf("only %d vectors", len(file.Packets))
	}
	return file.Packets
}

func (v *vector) raw(t *testing.T) []byte {
	octets, err := hex.DecodeString(strings.ReplaceAll(v.Octets, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return octets
}

func (v *vector) pseudo(length int) uint64 {
	if v.Over.Carrier == "udp" {
		return 0
	}
	l := ipLink{own: netip.MustParseAddr(v.Over.Destination), protocol: v.Over.Protocol}
	return l.pseudo(netip.MustParseAddr(v.Over.Source), length)
}

var typeNames = map[string]uint8{
	"BEGIN": typeBEGIN, "BGAK": typeBGAK, "END": typeEND, "ENDAK": typeENDAK, "BGREJ": typeBGREJ,
	"SD": typeSD, "SDP": typeSDP, "POLL": typePOLL, "STAT": typeSTAT, "USTAT": typeUSTAT,
}

var flagNames = map[string]uint8{"FIN": flagFIN, "V": flagV, "A": flagA, "R": flagR}

func TestVectorsAreReadAsTheySay(t *testing.T) {
	for _, v := range vectors(t) {
		octets := v.raw(t)
		var p packet
		err := p.parse(octets, v.pseudo(len(octets)))
		if v.Malformed != "" {
			if err == nil || errors.Is(err, errChecksum) != (v.Malformed == "checksum") {
				t.Errorf("%s: %v, but its %s is wrong", v.Name, err, v.Malformed)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", v.Name, err)
			continue
		}
		compare(t, &v, &p)
	}
}

func compare(t *testing.T, v *vector, p *packet) {
	f := v.Fields
	var flags uint8
	for _, flag := range f.Flags {
		flags |= flagNames[flag]
	}
	if p.kind != typeNames[f.Type] || p.flags != flags || p.source != f.Sport ||
		p.destination != f.Dport || p.tag != f.Tag {
		t.Errorf("%s: common header read as %+v", v.Name, p)
	}
	var sequence *uint32
	switch p.kind {
	case typeBEGIN, typeBGAK:
		sequence = f.ISS
	case typeSD, typeSDP, typePOLL:
		sequence = f.NS
	case typeEND, typeSTAT, typeUSTAT:
		sequence = f.NR
	}
	for name, pair := range map[string]struct {
		wanted *uint32
		got    uint32
	}{
		"sequence": {sequence, p.sequence}, "N(MR)": {f.NMR, p.nMR}, "N(PS)": {f.NPS, p.nPS},
		"CSN": {f.CSN, p.csn}, "CSN of the recipient": {f.PeerCSN, p.peerCSN},
		"timestamp": {f.Timestamp, p.timestamp},
	} {
		if pair.wanted != nil && *pair.wanted != pair.got {
			t.Errorf("%s: %s is %d, not %d", v.Name, name, *pair.wanted, pair.got)
		}
	}
	if p.kind == typeBGAK && *f.NR != p.nR {
		t.Errorf("%s: N(R) is %d, not %d", v.Name, *f.NR, p.nR)
	}
	if f.Version != nil && *f.Version != p.version || f.Reason != nil && *f.Reason != p.reason {
		t.Errorf("%s: version or reason read as %d, %d", v.Name, p.version, p.reason)
	}
	if !slices.Equal(f.Elements, p.list) {
		t.Errorf("%s: list read as %v", v.Name, p.list)
	}
	if p.kind == typeBEGIN && p.version != version {
		return // here options and data of another version are left alone
	}
	if f.MaxSD != nil != p.hasMaxSD || f.MaxSD != nil && *f.MaxSD != p.maxSD {
		t.Errorf("%s: MaxSD read as %d", v.Name, p.maxSD)
	}
	if f.Cookie != nil != (p.cookie != nil) ||
		f.Cookie != nil && *f.Cookie != hex.EncodeToString(p.cookie) {
		t.Errorf("%s: cookie read as %x", v.Name, p.cookie)
	}
	if f.Data != nil && *f.Data != hex.EncodeToString(p.data) {
		t.Errorf("%s: data read as %x", v.Name, p.data)
	}
}

func TestVectorsWithoutDefectAreWrittenAgainOctetByOctet(t *testing.T) {
	written := 0
	for _, v := range vectors(t) {
		octets := v.raw(t)
		var p packet
		if v.Malformed != "" || v.Unspecified != "" || v.Defects != nil {
			continue
		}
		if err := p.parse(octets, v.pseudo(len(octets))); err != nil {
			t.Fatal(err)
		}
		if len(v.Fields.Options) > 0 || !usual(octets, &p) {
			continue // options that this endpoint never sends
		}
		if bytes.Equal(octets[checksumAt:checksumAt+2], []byte{0xFF, 0xFF}) {
			continue // right, but this endpoint sends zero
		}
		if again := p.appendTo(nil, v.pseudo(len(octets))); !bytes.Equal(again, octets) {
			t.Errorf("%s: written as\n%x, not\n%x", v.Name, again, octets)
		}
		if p.length() != len(octets) {
			t.Errorf("%s: length() is %d", v.Name, p.length())
		}
		written++
	}
	if written < 40 {
		t.Errorf("only %d vectors were written", written)
	}
}

// usual tells whether the options are in the order and with the padding that this endpoint sends.
func usual(octets []byte, p *packet) bool {
	at, words := fixedLength[p.kind], 0
	switch p.kind {
	case typeBEGIN, typeBGAK:
		words = int(octets[headerLength] & 15)
	case typeBGREJ:
		words = int(octets[headerLength+1] & 15)
	}
	ours := words == p.optionWords() && (!p.hasMaxSD || octets[at] == optionMaxSD)
	return ours && (p.kind != typeBEGIN || p.version == version)
}

func TestPacketsOfTheSecondEdition(t *testing.T) {
	cookie := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	common := packet{source: 40000, destination: 9, sequence: 7, tag: 0x5678, csn: 0x12345678}
	make := func(kind uint8, change func(p *packet)) packet {
		p := common
		p.kind = kind
		change(&p)
		return p
	}
	for octets, wanted := range map[string]packet{
		"9c400009010000077bee5678210000201234567801040578": make(typeBEGIN, func(p *packet) {
			p.version, p.nMR, p.maxSD, p.hasMaxSD = 2, 32, 1400, true
		}),
		"9c4000091100000712fe5678240000201234567801040578020a0102030405060708000068656c6c6f": make(
			typeBEGIN, func(p *packet) {
				p.flags, p.version, p.nMR, p.maxSD, p.hasMaxSD = flagFIN, 2, 32, 1400, true
				p.cookie, p.data = cookie, []byte("hello")
			}),
		"9c400009020000070f72567804000047123456789abcdef00000000201040200020a01020304050607080000": make(
			typeBGAK, func(p *packet) {
				p.nMR, p.peerCSN, p.nR, p.maxSD, p.hasMaxSD = 71, 0x9abcdef0, 2, 512, true
				p.cookie = cookie
			}),
		"00099c4007000000b50800000605000012345678010404b002100102030405060708090a0b0c0d0e": {
			kind: typeBGREJ, source: 9, destination: 40000, reason: reasonAnew, peerCSN: 0x12345678,
			maxSD: 1200, hasMaxSD: true, cookie: append(cookie, 9, 10, 11, 12, 13, 14),
		},
		"00099c4007000000f10900000300000012345678": {
			kind: typeBGREJ, source: 9, destination: 40000, reason: reasonNobody, peerCSN: 0x12345678,
		},
		"9c4000090a0000075838567800000003000f424012345678": make(typePOLL, func(p *packet) {
			p.nPS, p.timestamp = 3, 1_000_000
		}),
		"9c40000919000007dfd2567800ffffff000f4240123456786869": make(typeSDP, func(p *packet) {
			p.flags, p.nPS, p.timestamp, p.data = flagFIN, seqMask, 1_000_000, []byte("hi")
		}),
	} {
		if written := hex.EncodeToString(wanted.appendTo(nil, 0)); written != octets {
			t.Errorf("written as %s, not %s", written, octets)
		}
		raw, _ := hex.DecodeString(octets)
		var p packet
		if err := p.parse(raw, 0); err != nil {
			t.Errorf("%s: %v", octets, err)
		}
		if written := hex.EncodeToString(p.appendTo(nil, 0)); written != octets {
			t.Errorf("%s: read as %+v", octets, p)
		}
	}
}

func TestCookiesOfOtherLengthsAreNone(t *testing.T) {
	for length := range 40 {
		sent := packet{kind: typeBGREJ, reason: reasonAnew, cookie: bytes.Repeat([]byte{7}, length)}
		var p packet
		if err := p.parse(sent.appendTo(nil, 0), 0); err != nil {
			t.Fatal(err)
		}
		if fits := length >= 8 && length <= 32; fits != (p.cookie != nil) || fits && len(p.cookie) != length {
			t.Errorf("%d octets read as %x", length, p.cookie)
		}
	}
}

func TestBEGINOfAnotherVersionIsReadUpTo20Octets(t *testing.T) {
	raw := (&packet{kind: typeBEGIN, version: 9, csn: 77}).appendTo(nil, 0)
	raw[12] |= 15 // options that the packet does not hold
	fixChecksum(raw)
	var p packet
	if err := p.parse(raw, 0); err != nil || p.version != 9 || p.csn != 77 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestRandomOctetsAreReadOrRefused(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	var p packet
	read := 0
	for range 300_000 {
		octets := make([]byte, random.Intn(80))
		random.Read(octets)
		if len(octets) > 12 {
			octets[4] = octets[4]&0xF0 | byte(random.Intn(13))
			octets[12] &= 0xF3
			fixChecksum(octets)
		}
		if p.parse(octets, 0) == nil {
			read++
			again := p.appendTo(nil, 0)
			var q packet
			if err := q.parse(again, 0); err != nil {
				t.Fatalf("%x read, written as %x: %v", octets, again, err)
			}
		}
	}
	if read < 10_000 {
		t.Errorf("only %d packets could be read", read)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte{0x9c, 0x40, 0, 9, 8, 0, 0, 7, 5, 0x37, 0x56, 0x78})
	f.Fuzz(func(t *testing.T, octets []byte) {
		var p packet
		_ = p.parse(octets, 0)
	})
}
