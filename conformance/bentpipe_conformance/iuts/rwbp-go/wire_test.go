package main

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

type vector struct {
	Name   string
	Over   struct{ Source, Destination string }
	Octets string
	Fields struct {
		Type   string
		Sport  uint16
		Dport  uint16
		Seq    uint32
		Ack    uint32
		Window uint16
		RWBP   *struct {
			Interval uint8
			Unit     uint16
		}
		Offers bool
		Data   string
	}
	Malformed string
}

func vectors(t *testing.T) []vector {
	text, err := os.ReadFile("../../../../spec/bentpipe_spec/rwbp/vectors.json")
	if err != nil {
		t.Skip(err)
	}
	var read struct{ Packets []vector }
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	return read.Packets
}

func octets(t *testing.T, text string) []byte {
	t.Helper()
	read, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func TestVectorsOfTheSpecification(t *testing.T) {
	left, right := address{192, 0, 2, 1}, address{192, 0, 2, 9}
	read := 0
	for _, each := range vectors(t) {
		if strings.HasPrefix(each.Name, "credit") {
			continue
		}
		read++
		source, destination := left, right
		if each.Over.Source == "192.0.2.9" {
			source, destination = right, left
		}
		s, ok := parseSegment(source, destination, octets(t, each.Octets))
		if ok != (each.Malformed == "") {
			t.Errorf("%s: read: %v", each.Name, ok)
		}
		if !ok {
			continue
		}
		want := each.Fields
		if s.source != want.Sport || s.destination != want.Dport || uint32(s.seq) != want.Seq ||
			uint32(s.ack) != want.Ack || s.window != want.Window || hex.EncodeToString(s.data) != want.Data {
			t.Errorf("%s: %+v", each.Name, s)
		}
		found := s.options.rwbp
		if (found == nil) != (want.RWBP == nil) {
			t.Errorf("%s: option %v", each.Name, found)
		} else if found != nil && (found.interval != want.RWBP.Interval || found.unit != want.RWBP.Unit) {
			t.Errorf("%s: option %v", each.Name, found)
		}
		if offers := found != nil && s.options.sackPermitted && s.has(flagSYN); offers != want.Offers {
			t.Errorf("%s: offers %v", each.Name, offers)
		}
	}
	if read < 40 {
		t.Errorf("only %d vectors", read)
	}
}

func TestCreditFramesOfTheSpecification(t *testing.T) {
	gateway, own := address{192, 0, 2, 254}, address{192, 0, 2, 1}
	read := 0
	for _, each := range vectors(t) {
		if !strings.HasPrefix(each.Name, "credit") {
			continue
		}
		read++
		source := gateway
		if each.Over.Source != "192.0.2.254" {
			source = address{192, 0, 2, 9}
		}
		up := uplink{gateway: &gateway}
		datagram := octets(t, each.Octets)
		packet := append(make([]byte, ipHeader, 64), datagram...)
		packet[0], packet[3], packet[9] = 0x45, byte(len(packet)), protocolUDP
		copy(packet[12:], source[:])
		copy(packet[16:], own[:])
		binary.BigEndian.PutUint16(packet[10:], checksum(packet[:ipHeader]))
		if heard := up.hear(packet, own, 0); heard != (each.Malformed == "") {
			t.Errorf("%s: heard: %v", each.Name, heard)
		}
	}
	if read < 15 {
		t.Errorf("only %d frames", read)
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	wrote := &segment{
		source: 1, destination: 2, seq: 3, ack: 4, flags: flagSYN | flagFIN, window: 5,
		options: options{mss: 1460, sackPermitted: true, rwbp: &offer{8, 1460}, blocks: []block{{6, 7}}},
		data:    []byte("odd"),
	}
	from, to := address{10, 0, 0, 1}, address{10, 0, 0, 2}
	source, destination, bytes, ok := parsePacket(wrote.marshal(from, to))
	if !ok || source != from || destination != to {
		t.Fatal("the packet is not read")
	}
	s, ok := parseSegment(source, destination, bytes)
	if !ok || s.seq != 3 || s.ack != 4 || s.window != 5 || string(s.data) != "odd" ||
		*s.options.rwbp != (offer{8, 1460}) || s.options.blocks[0] != (block{6, 7}) {
		t.Errorf("%+v", s)
	}
}

func TestNumbersWrap(t *testing.T) {
	const last = number(1<<32 - 1)
	if !last.below(0) || number(0).below(last) || number(0).below(0) || number(0).below(1<<31) ||
		number(1<<31).below(0) || higher(last, 5) != 5 || higher(5, last) != 5 {
		t.Error("the order of numbers")
	}
	if !number(2).within(last, 3) || number(3).within(last, 3) {
		t.Error("ranges")
	}
}
