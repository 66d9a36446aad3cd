package main

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

// calls is an endpoint that has called a service of the peer that the test plays.
func calls(t *testing.T, service uint16, octets int) (*script, packet) {
	s := newScript(t)
	s.w.desk(1, &outcome{}).obey(command{to: s.w.address(2), service: service, octets: octets})
	begin := s.said[0]
	s.csn, s.iss = begin.csn, begin.sequence
	return s, begin
}

// say gives the caller a packet of the called side.
func (s *script) say(p packet) []packet {
	s.t.Helper()
	if p.source == 0 {
		p.source = portChargen
	}
	p.destination = firstLocalPort
	return s.hear(p)
}

func (s *script) callers() *conn {
	for _, c := range s.ep.conns {
		return c
	}
	s.t.Fatal("no connection")
	return nil
}

func (s *script) bgak(flags uint8, covered int) packet {
	return packet{
		kind: typeBGAK, flags: flags, sequence: peerISS, csn: peerCSN, peerCSN: s.csn,
		nR: seqAdd(s.iss, covered), nMR: seqAdd(s.iss, 100), maxSD: 1000, hasMaxSD: true,
	}
}

func (s *script) saidKind(kind uint8) int {
	count := 0
	for _, p := range s.said {
		if p.kind == kind {
			count++
		}
	}
	return count
}

func TestCallerWithNothingToSendPollsUntilAnyPacketOfThePeer(t *testing.T) {
	for _, flags := range []uint8{0, flagC} {
		for _, kind := range []uint8{typeSD, typeSDP, typePOLL, typeSTAT, typeUSTAT} {
			s, _ := calls(t, portChargen, 100)
			s.say(s.bgak(flags, 0))
			if s.saidKind(typePOLL) != 1 || s.saidKind(typeBGAK) != int(flags/flagC) {
				t.Fatalf("on BGAK: said %+v", s.said)
			}
			s.said = nil
			s.w.run(5*time.Second, nil)
			if s.saidKind(typePOLL) == 0 {
				t.Fatal("not repeated")
			}
			forged := packet{kind: kind, sequence: peerISS, tag: 1, list: []uint32{1, 2}}
			s.say(forged)
			s.said = nil
			s.w.run(5*time.Second, nil)
			if s.saidKind(typePOLL) == 0 {
				t.Errorf("type %d with another tag ends the POLLs", kind)
			}
			heard := packet{kind: kind, sequence: peerISS, data: []byte{0}, nPS: 1}
			if kind != typeSD && kind != typeSDP {
				heard.data = nil
			}
			if kind == typeSTAT || kind == typeUSTAT {
				heard.sequence = s.iss
			}
			if kind == typeUSTAT {
				heard.list = []uint32{s.iss, s.iss}
			}
			s.say(heard)
			s.said = nil
			s.w.run(60*time.Second, nil)
			if s.saidKind(typePOLL) != 0 {
				t.Errorf("after type %d: %d POLLs", kind, s.saidKind(typePOLL))
			}
		}
	}
}

func TestCallingBGAKThatAcknowledgesWhatWasNotSentIsDiscarded(t *testing.T) {
	s, begin := calls(t, portEcho, 100)
	if len(begin.data) != 100 {
		t.Fatalf("BEGIN %+v", begin)
	}
	for _, covered := range []int{-1, 2} {
		s.nothing(s.say(func() packet { p := s.bgak(0, covered); p.source = portEcho; return p }()))
		if s.callers().state != calling {
			t.Fatalf("N(R) = ISS %+d opens the connection", covered)
		}
	}
}

func TestCallingBEGINThatCrossesItsDataIsNotTaken(t *testing.T) {
	s, _ := calls(t, portChargen, 100)
	crossing := packet{
		kind: typeBEGIN, version: version, sequence: peerISS, nMR: 100, csn: peerCSN,
		data: []byte("early"), maxSD: 1000, hasMaxSD: true,
	}
	answer := s.one(s.say(crossing), typeBGAK)
	if answer.flags != flagC || answer.nR != peerISS || answer.peerCSN != peerCSN {
		t.Fatalf("BGAK %+v", answer)
	}
	s.say(s.bgak(flagC, 0))
	stat := packet{}
	for _, p := range s.say(packet{kind: typePOLL, sequence: seqAdd(peerISS, 1), nPS: 1}) {
		if p.kind == typeSTAT {
			stat = p
		}
	}
	if stat.sequence != peerISS || !slices.Equal(offsets(stat.list), []int{0, 1}) {
		t.Errorf("STAT %+v", stat)
	}
}

// confirms is the BGAK that a question asks for.
func confirms(asked packet, csn uint32) packet {
	return packet{
		kind: typeBGAK, destination: portEcho, tag: uint16(csn), sequence: peerISS, csn: csn,
		peerCSN: asked.csn, nR: asked.sequence, nMR: seqAdd(asked.sequence, 100),
	}
}

// asks gives the endpoint a BEGIN with a CSN and returns the question that it draws.
func (s *script) asks(csn uint32, data string) packet {
	s.t.Helper()
	begin := s.begin(portEcho)
	begin.csn, begin.tag, begin.data = csn, uint16(csn), []byte(data)
	asked := s.one(s.hear(begin), typeBGAK)
	if asked.flags != flagC || asked.peerCSN != csn || asked.nR != peerISS {
		s.t.Fatalf("BGAK %+v", asked)
	}
	return asked
}

func TestPendingCallsWaitSideBySideAndTheFirstConfirmedOpens(t *testing.T) {
	for confirmed := range 3 {
		s := newScript(t)
		csns := []uint32{peerCSN, peerCSN + 1, peerCSN - 1}
		questions := []packet{}
		for i, csn := range csns {
			questions = append(questions, s.asks(csn, string(rune('a'+i))))
		}
		again := s.asks(csns[0], "a")
		if again.csn != questions[0].csn {
			t.Errorf("BGAK %+v", again)
		}
		asks := poll(portEcho, 1, 1)
		asks.tag = uint16(csns[1])
		if said := s.one(s.hear(asks), typeBGAK); said.csn != questions[1].csn {
			t.Errorf("BGAK %+v", said)
		}
		mixed := confirms(questions[0], csns[1])
		s.nothing(s.hear(mixed))
		said := s.hear(confirms(questions[confirmed], csns[confirmed]))
		if len(said) != 1 || said[0].kind != typeSDP || said[0].data[0] != byte('a'+confirmed) {
			t.Fatalf("said %+v", said)
		}
		if len(s.ep.pending) != 0 || len(s.ep.conns) != 1 || len(s.ep.timers) != 1 {
			t.Error("the others are still there")
		}
		other := (confirmed + 1) % 3
		s.nothing(s.hear(confirms(questions[other], csns[other])))
		if c := s.conn(portEcho); c.state != ready || c.peerCSN != csns[confirmed] {
			t.Errorf("state %v", c.state)
		}
	}
}

func TestPendingBEGINOfAKnownPeerIsAskedBesideAnother(t *testing.T) {
	s := newScript(t)
	s.open(portEcho)
	s.hear(packet{kind: typeEND, flags: flagA, destination: portEcho, csn: peerCSN, peerCSN: s.csn})
	older := s.asks(peerCSN-5, "old")
	s.asks(peerCSN+5, "new")
	s.hear(confirms(older, peerCSN-5))
	if c := s.conn(portEcho); c == nil || c.peerCSN != peerCSN-5 {
		t.Error("not open")
	}
}

func TestPendingENDForgetsOnlyTheCallThatItNames(t *testing.T) {
	s := newScript(t)
	first, second := s.asks(peerCSN, "a"), s.asks(peerCSN+1, "b")
	end := packet{kind: typeEND, flags: flagA, destination: portEcho, csn: peerCSN + 1, peerCSN: first.csn}
	s.nothing(s.hear(end))
	end.peerCSN = second.csn
	s.one(s.hear(end), typeENDAK)
	if len(s.ep.pending) != 1 || s.conn(portEcho).peerCSN != peerCSN {
		t.Error("the other call is gone")
	}
}

func TestPendingCallsBetweenTheSamePortsAreBounded(t *testing.T) {
	s := newScript(t)
	first := s.asks(peerCSN, "a")
	elsewhere := s.begin(portDiscard)
	s.one(s.hear(elsewhere), typeBGAK)
	for i := range maxBeside {
		s.asks(peerCSN+1+uint32(i), "b")
	}
	s.nothing(s.hear(confirms(first, peerCSN)))
	if s.conn(portDiscard) == nil || len(s.ep.pending) != maxBeside+1 {
		t.Errorf("%d pending", len(s.ep.pending))
	}
	s.w.run(40*time.Second, nil)
	if len(s.ep.pending) != 0 || s.ep.deadline() != never {
		t.Error("not forgotten in time")
	}
}

func TestAbortedWhileCallingBGAKMakesTheENDNameThePeer(t *testing.T) {
	s, _ := calls(t, portChargen, 100)
	s.said = nil
	s.ep.abortCalls(s.w.now)
	end := s.one(s.said, typeEND)
	if end.peerCSN != 0 || end.sequence != 0 || end.flags != flagA || end.reason != reasonAborted {
		t.Fatalf("END %+v", end)
	}
	named := s.one(s.say(s.bgak(flagC, 0)), typeEND)
	if named.peerCSN != peerCSN || named.csn != end.csn || named.flags != flagA {
		t.Errorf("END %+v", named)
	}
	s.nothing(s.say(s.bgak(flagC, 0))) // it knows already
	s.said = nil
	s.w.run(60*time.Second, nil)
	if s.saidKind(typeEND) != maxCC-2 || s.said[0].peerCSN != peerCSN || len(s.ep.conns) != 0 {
		t.Errorf("%d more ENDs, %d connections", s.saidKind(typeEND), len(s.ep.conns))
	}
}

func TestCallerCompleteReleasesAtOnce(t *testing.T) {
	s, _ := calls(t, portChargen, 100)
	s.say(s.bgak(0, 0))
	s.say(packet{kind: typeSD, sequence: peerISS, flags: flagFIN, data: patternAt(0, 100)})
	nPS := s.callers().snd.vtPS
	end := s.one(s.say(s.stat(1, nPS)), typeEND)
	if end.flags != 0 || end.reason != 0 || seqDist(peerISS, end.sequence) != 1 ||
		end.csn != s.csn || end.peerCSN != peerCSN {
		t.Errorf("END %+v", end)
	}
}

func TestAbortWithoutAnswerIsRepeatedFiveTimes(t *testing.T) {
	s := newScript(t)
	s.open(portChargen)
	s.conn(portChargen).abort(s.w.now)
	s.ep.settle(s.w.now, s.conn(portChargen))
	s.w.run(60*time.Second, nil)
	if s.saidKind(typeEND) != maxCC || len(s.ep.conns) != 0 {
		t.Errorf("%d ENDs, %d connections", s.saidKind(typeEND), len(s.ep.conns))
	}
}

func TestPeerGivenUpENDIsRepeated(t *testing.T) {
	s := sending(t)
	s.said = nil
	s.w.run(200*time.Second, nil)
	if s.saidKind(typeEND) != maxCC || s.said[len(s.said)-1].reason != reasonSilence {
		t.Errorf("%d ENDs", s.saidKind(typeEND))
	}
}

func TestBEGINWithLittleCreditCountsAsFour(t *testing.T) {
	s := newScript(t)
	begin := s.begin(portChargen)
	begin.nMR = 1
	asked := s.one(s.hear(begin), typeBGAK)
	s.hear(packet{
		kind: typeBGAK, destination: portChargen, sequence: peerISS, csn: peerCSN,
		peerCSN: asked.csn, nR: asked.sequence, nMR: seqAdd(asked.sequence, 1),
	})
	s.w.run(5*time.Second, nil)
	if snd := &s.conn(portChargen).snd; seqDist(asked.sequence, snd.vtS) != earlyCredit {
		t.Errorf("%d SDs sent", seqDist(asked.sequence, snd.vtS))
	}
}

func TestMaxSDBelow512CountsAs512(t *testing.T) {
	for announced, most := range map[int]int{0: 512, 100: 512, 511: 512, 600: 600, 2000: 1200} {
		s := newScript(t)
		begin := s.begin(portChargen)
		begin.maxSD = announced
		asked := s.one(s.hear(begin), typeBGAK)
		s.hear(packet{
			kind: typeBGAK, destination: portChargen, sequence: peerISS, csn: peerCSN,
			peerCSN: asked.csn, nR: asked.sequence, nMR: seqAdd(asked.sequence, 100),
		})
		if smss := s.conn(portChargen).snd.window.smss; smss != most {
			t.Errorf("MaxSD %d: SDs of %d octets", announced, smss)
		}
	}
}

func TestInitialWindowCountsInTheSMSSOfTheOpenConnection(t *testing.T) {
	s, begin := calls(t, portDiscard, 100_000)
	early := &s.callers().snd
	if len(begin.data) != 512 || early.window.cwnd != 4*512 {
		t.Fatalf("%d octets in the BEGIN, window %+v", len(begin.data), early.window)
	}
	p := s.bgak(0, 1)
	p.source = portDiscard
	s.say(p)
	if w := s.callers().snd.window; w.smss != 1000 || w.cwnd != 4*1000+512 { // the BGAK reports 512 as arrived

		t.Errorf("window %+v", w)
	}
}

func TestCSNsOfOneAddressRiseAndTellNothingAboutOthers(t *testing.T) {
	s := newScript(t)
	one := s.w.address(2)
	two := netip.AddrPortFrom(one.Addr(), one.Port()+1)
	before := s.ep.newCSN(one)
	for range 1000 {
		after := s.ep.newCSN(one)
		if !csnNewer(after, before) {
			t.Fatalf("%x after %x", after, before)
		}
		before = after
	}
	if apart := int32(s.ep.newCSN(two) - before); apart > -1<<20 && apart < 1<<20 {
		t.Errorf("another port's CSN is only %d away", apart)
	}
}

func TestPendingConfirmationOfWhatWasNotSentIsDiscarded(t *testing.T) {
	s := newScript(t)
	asked := s.asks(peerCSN, "a")
	for _, step := range []int{1, -1} {
		wrong := confirms(asked, peerCSN)
		wrong.nR = seqAdd(wrong.nR, step)
		s.nothing(s.hear(wrong))
	}
	if said := s.hear(confirms(asked, peerCSN)); len(said) != 1 || said[0].kind != typeSDP {
		t.Errorf("said %+v", said)
	}
}
