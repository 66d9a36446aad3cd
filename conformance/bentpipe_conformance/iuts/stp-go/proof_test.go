package main

import (
	"net/netip"
	"testing"
	"time"
)

// trusted is a caller with nothing to send that was accepted at once, and has been heard.
func trusted(t *testing.T, begins int) *script {
	s, _ := calls(t, portChargen, 100)
	if begins > 1 {
		s.w.run(1200*time.Millisecond, nil)
	}
	s.say(s.bgak(0, 0))
	s.say(packet{kind: typePOLL, sequence: peerISS, nPS: 1})
	s.said = nil
	return s
}

func TestTrustedCallerProvesItsAddressUntilAnswered(t *testing.T) {
	s := trusted(t, 1)
	for _, wait := range []time.Duration{1, 2, 4} {
		s.w.run(wait*time.Second-time.Millisecond, nil)
		s.nothing(s.said)
		s.w.run(2*time.Millisecond, nil)
		question := s.one(s.said, typeBGAK)
		if question.flags != flagC || question.csn != s.csn || question.peerCSN != peerCSN {
			t.Fatalf("BGAK %+v", question)
		}
		s.said = nil
		s.w.now -= time.Millisecond
	}
	s.say(packet{kind: typePOLL, sequence: peerISS, nPS: 2})
	s.said = nil
	s.w.run(1100*time.Millisecond, nil)
	s.one(s.said, typeBGAK)
	s.nothing(s.say(s.bgak(0, 0)))
	s.said = nil
	s.w.run(600*time.Second, nil)
	s.nothing(s.said)
}

func TestTrustedCallerExpectsAsManyBGAKsAsItSentBEGINsOnceItHasAsked(t *testing.T) {
	s := trusted(t, 2)
	s.say(s.bgak(0, 0)) // a copy of the one before
	s.w.run(1100*time.Millisecond, nil)
	s.one(s.said, typeBGAK)
	s.say(s.bgak(0, 0))
	s.said = nil
	s.w.run(1100*time.Millisecond, nil)
	s.one(s.said, typeBGAK)
	s.say(s.bgak(0, 0))
	s.said = nil
	s.w.run(600*time.Second, nil)
	s.nothing(s.said)
}

func TestCallerThatWasAskedProvesNothingMore(t *testing.T) {
	s, _ := calls(t, portChargen, 100)
	s.say(s.bgak(flagC, 0))
	s.say(packet{kind: typePOLL, sequence: peerISS, nPS: 1})
	s.said = nil
	s.w.run(600*time.Second, nil)
	s.nothing(s.said)
}

func TestTrustedCallerGivesASilentPeerUp(t *testing.T) {
	s := trusted(t, 1)
	s.w.run(61500*time.Millisecond, nil)
	if len(s.said) == 0 {
		t.Fatal("silent")
	}
	last := s.said[len(s.said)-1]
	if s.saidKind(typeBGAK) != 5 || last.kind != typeEND || last.reason != reasonSilence {
		t.Errorf("%d BGAKs, then %+v", s.saidKind(typeBGAK), last)
	}
}

func TestKnownCallerThatOwesNothingEndsTheSilenceOfItsListener(t *testing.T) {
	w, d, o := pair(t, 23)
	w.delay = 10 * time.Millisecond
	expectOK(t, open(w, d, o, portEcho, 100, 20*time.Second))
	lost := 0
	w.drop = func(from, to netip.AddrPort, p *packet) bool {
		if from == w.address(1) && p.kind == typePOLL && lost < 6 {
			lost++
			return true
		}
		return false
	}
	expectOK(t, open(w, d, o, portChargen, 10_000, 60*time.Second))
	if lost < 2 {
		t.Errorf("%d POLLs lost", lost)
	}
}
