package main

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// calls is an endpoint that has called a service of the peer that the test plays; with a cookie, if
// there is one. It returns the BEGIN.
func calls(t *testing.T, service uint16, octets int, cookie []byte) (*script, packet) {
	s := newScript(t)
	if cookie != nil {
		s.ep.purse.put(token{s.w.address(2), cookie, 1000, s.w.now})
	}
	return s, s.calls(service, octets)
}

func (s *script) calls(service uint16, octets int) packet {
	s.said = nil
	s.w.desk(1, &outcome{}).obey(command{to: s.w.address(2), service: service, octets: octets})
	return s.begun()
}

// begun is the BEGIN that the caller has just sent.
func (s *script) begun() packet {
	s.t.Helper()
	if len(s.said) == 0 || s.said[0].kind != typeBEGIN {
		s.t.Fatalf("said %+v", s.said)
	}
	begin := s.said[0]
	s.csn, s.iss = begin.csn, begin.sequence
	return begin
}

// say gives the caller a packet of the called side.
func (s *script) say(p packet) []packet {
	s.t.Helper()
	p.source = s.callers().key.peerPort
	p.destination = firstLocalPort
	return s.hear(p)
}

func (s *script) callers() *conn {
	s.t.Helper()
	for _, c := range s.ep.conns {
		return c
	}
	s.t.Fatal("no connection")
	return nil
}

func (s *script) bgak(covered int) packet {
	return packet{
		kind: typeBGAK, sequence: peerISS, csn: peerCSN, peerCSN: s.csn,
		nR: seqAdd(s.iss, covered), nMR: seqAdd(s.iss, 100), maxSD: 1000, hasMaxSD: true,
		cookie: []byte("next cookie"),
	}
}

func (s *script) anew(cookie string) packet {
	p := packet{kind: typeBGREJ, reason: reasonAnew, peerCSN: s.csn, maxSD: 1000, hasMaxSD: true}
	if cookie != "" {
		p.cookie = []byte(cookie)
	}
	return p
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

func TestCallerWithoutCookieCallsAnewWithTheOneItIsGiven(t *testing.T) {
	s, first := calls(t, portDiscard, 10_000, nil)
	if len(s.said) != 1 || len(first.data) != 0 || first.flags != 0 || first.cookie != nil ||
		!first.hasMaxSD || first.version != 2 {
		t.Fatalf("said %+v", s.said)
	}
	s.w.now += 500 * time.Millisecond
	s.say(s.anew("8 octets"))
	second := s.begun()
	if second.csn == first.csn || second.sequence == first.sequence ||
		string(second.cookie) != "8 octets" || second.source != first.source {
		t.Fatalf("BEGIN %+v", second)
	}
	if !bytes.Equal(second.data, patternAt(0, 1000)) {
		t.Errorf("%d octets in the BEGIN", len(second.data))
	}
	early := s.said[1:]
	if len(early) != 3 || s.callers().snd.rtt.smoothed != 500*time.Millisecond {
		t.Fatalf("said %+v", early)
	}
	for i, p := range early {
		if p.kind != typeSD || p.sequence != seqAdd(s.iss, 1+i) ||
			!bytes.Equal(p.data, patternAt(1000*(i+1), 1000)) {
			t.Errorf("SD %d: %+v", i, p)
		}
	}
	s.said = nil
	s.w.run(time.Second-time.Millisecond, nil)
	s.nothing(s.said)
	s.w.run(2*time.Millisecond, nil)
	if again := s.one(s.said, typeBEGIN); again.csn != second.csn || again.sequence != second.sequence ||
		!bytes.Equal(again.data, second.data) || !bytes.Equal(again.cookie, second.cookie) {
		t.Errorf("repeated as %+v", again)
	}
}

func TestCallAnewBeginsTheStreamAgain(t *testing.T) {
	s, first := calls(t, portDiscard, 3500, []byte("stale cookie"))
	if len(first.data) != 1000 || len(s.said) != 4 || s.said[3].flags != flagFIN {
		t.Fatalf("said %+v", s.said)
	}
	refusal := s.anew("a better one")
	refusal.hasMaxSD = false
	s.say(refusal)
	if second := s.begun(); !bytes.Equal(second.data, patternAt(0, 512)) || second.flags != flagV {
		t.Errorf("BEGIN %+v", second)
	}
	s.said = nil
	s.say(s.bgak(4))
	s.w.run(2*time.Second, nil)
	octets := 4 * 512
	for _, p := range s.said {
		if p.kind == typeSD || p.kind == typeSDP {
			if !bytes.Equal(p.data, patternAt(octets, len(p.data))) {
				t.Errorf("SD %d does not go on at %d", p.sequence, octets)
			}
			octets += len(p.data)
		}
	}
	if octets != 3500 {
		t.Errorf("%d octets", octets)
	}
}

func TestCallAnewFiveTimesAtMost(t *testing.T) {
	s, _ := calls(t, portDiscard, 100, nil)
	csns := map[uint32]bool{s.csn: true}
	for i := range maxAnew {
		s.say(s.anew("cookie number " + string(rune('1'+i))))
		csns[s.begun().csn] = true
	}
	s.nothing(s.say(s.anew("cookie number 6")))
	if len(csns) != 1+maxAnew || len(s.ep.conns) != 0 {
		t.Errorf("%d CSNs, %d connections", len(csns), len(s.ep.conns))
	}
}

func TestRefusalWithoutCookieFailsAndAForgedOneIsIgnored(t *testing.T) {
	for _, reason := range []uint8{reasonNobody, reasonBusy, reasonAnew, 99} {
		s, _ := calls(t, portDiscard, 100, nil)
		refusal := packet{kind: typeBGREJ, reason: reason, peerCSN: s.csn + 1}
		s.nothing(s.say(refusal))
		refusal.peerCSN = s.csn
		s.callers()
		s.nothing(s.say(refusal))
		if len(s.ep.conns) != 0 {
			t.Errorf("reason %d does not end the call", reason)
		}
	}
}

func TestKeptCookiesAreUsedOnceAndTheOldestFirst(t *testing.T) {
	s := newScript(t)
	for i, value := range []string{"too old.", "first...", "second..", "third..."} {
		at := s.w.now + time.Duration(i)*goodFor/3
		s.ep.purse.put(token{s.w.address(2), []byte(value), 1000, at})
	}
	s.ep.purse.put(token{s.w.address(3), []byte("others'."), 1000, s.w.now + goodFor})
	s.w.now += goodFor + time.Second
	for _, value := range []string{"first...", "second..", "third...", ""} {
		if begin := s.calls(portDiscard, 100); string(begin.cookie) != value {
			t.Errorf("cookie %q, not %q", begin.cookie, value)
		}
	}
	if len(s.ep.purse.tokens) != 1 {
		t.Errorf("%d cookies are left", len(s.ep.purse.tokens))
	}
}

func TestCookieOfABGAKServesTheNextCall(t *testing.T) {
	s, _ := calls(t, portDiscard, 100, []byte("one cookie"))
	s.say(s.bgak(1))
	s.say(s.bgak(1)) // a copy is discarded, with its cookie
	for _, value := range []string{"next cookie", ""} {
		if begin := s.calls(portDiscard, 100); string(begin.cookie) != value {
			t.Errorf("cookie %q, not %q", begin.cookie, value)
		}
	}
}

func TestKeptCookiesAreBounded(t *testing.T) {
	s := newScript(t)
	for range 3 * maxKept {
		s.ep.purse.put(token{s.w.address(2), []byte("a cookie"), 1000, s.w.now})
	}
	checkBounds(t, s.ep)
}

func TestBEGINFitsWhereTheLargestSDPFits(t *testing.T) {
	s := newScript(t)
	s.ep.purse.put(token{s.w.address(2), make([]byte, mostCookie), 9000, s.w.now})
	begin := s.calls(portDiscard, 10_000)
	if begin.length() > fixedLength[typeSDP]+s.ep.cfg.maxSD || len(begin.data) < 1100 {
		t.Errorf("a BEGIN of %d octets", begin.length())
	}
}

func TestWhileCallingNothingAsksAndABGAKWithSDsUnacknowledgedDoes(t *testing.T) {
	for covered := 1; covered <= 4; covered++ {
		s, _ := calls(t, portDiscard, 4000, []byte("a cookie"))
		s.w.run(3*time.Second, nil)
		if s.saidKind(typePOLL)+s.saidKind(typeSDP) != 0 || len(s.said) != 6 {
			t.Fatalf("said %+v", s.said)
		}
		said := s.say(s.bgak(covered))
		if covered == 4 {
			s.nothing(said)
			continue
		}
		asks := s.one(said, typePOLL)
		if asks.nPS != 1 || asks.sequence != seqAdd(s.iss, 4) || asks.csn != s.csn {
			t.Errorf("POLL %+v", asks)
		}
	}
}

func TestBGAKThatAcknowledgesWhatWasNotSentIsDiscarded(t *testing.T) {
	s, _ := calls(t, portEcho, 100, []byte("a cookie"))
	for _, covered := range []int{-1, 2} {
		s.nothing(s.say(s.bgak(covered)))
		if s.callers().state != calling {
			t.Fatalf("N(R) = ISS %+d opens the connection", covered)
		}
	}
}

func TestWhileCallingOtherPacketsDoNothing(t *testing.T) {
	s, _ := calls(t, portDiscard, 100, []byte("a cookie"))
	begin := packet{kind: typeBEGIN, version: version, csn: peerCSN}
	if refused := s.one(s.say(begin), typeBGREJ); refused.reason != reasonNobody {
		t.Errorf("BGREJ %+v", refused)
	}
	stranger := s.bgak(0)
	stranger.peerCSN++
	if end := s.one(s.say(stranger), typeEND); end.csn != s.csn+1 || end.peerCSN != peerCSN {
		t.Errorf("END %+v", end)
	}
	for _, p := range []packet{
		{kind: typeSD}, {kind: typeSDP}, {kind: typePOLL}, {kind: typeSTAT}, {kind: typeENDAK},
		{kind: typeUSTAT, list: []uint32{s.iss, s.iss + 1}},
		{kind: typeEND, flags: flagA}, {kind: typeEND, flags: flagA, csn: peerCSN, peerCSN: s.csn + 1},
		{kind: typeEND, flags: flagA | flagR, csn: peerCSN, peerCSN: s.csn},
	} {
		s.nothing(s.say(p))
	}
	if s.callers().state != calling {
		t.Fatal("the call has ended")
	}
	s.nothing(s.say(packet{kind: typeEND, flags: flagA | flagR, peerCSN: s.csn}))
	if len(s.ep.conns) != 0 {
		t.Error("an END that knows the CSN does not end the call")
	}
}

func TestCallWithoutAnswerFailsAndGoesOnAsIfAborted(t *testing.T) {
	s, _ := calls(t, portDiscard, 100, []byte("a cookie"))
	s.w.run(31*time.Second-time.Millisecond, nil)
	if s.saidKind(typeBEGIN) != maxCC || s.saidKind(typeEND) != 0 {
		t.Fatalf("%d BEGINs", s.saidKind(typeBEGIN))
	}
	s.w.run(100*time.Second, nil)
	if s.saidKind(typeBEGIN) != maxCC || s.saidKind(typeEND) != maxCC || len(s.ep.conns) != 0 {
		t.Fatalf("%d BEGINs, %d ENDs", s.saidKind(typeBEGIN), s.saidKind(typeEND))
	}
	if end := s.said[len(s.said)-1]; end.flags != flagA || end.reason != reasonSilence ||
		end.csn != s.csn || end.peerCSN != 0 || end.sequence != 0 {
		t.Errorf("END %+v", end)
	}
}

func TestAbortedWhileCallingBGAKIsDiscarded(t *testing.T) {
	s, _ := calls(t, portChargen, 100, nil)
	s.said = nil
	s.ep.abortCalls(s.w.now)
	s.one(s.said, typeEND)
	s.nothing(s.say(s.bgak(0)))
	if len(s.ep.purse.tokens) != 0 {
		t.Error("its cookie is kept")
	}
	s.nothing(s.say(packet{kind: typeENDAK, peerCSN: s.csn}))
	if len(s.ep.conns) != 0 {
		t.Error("the connection is still there")
	}
}

func TestCallerCompleteReleasesAtOnce(t *testing.T) {
	s, _ := calls(t, portChargen, 100, []byte("a cookie"))
	s.nothing(s.say(s.bgak(0)))
	said := s.say(packet{kind: typeSD, sequence: peerISS, flags: flagFIN, data: patternAt(0, 100)})
	end := s.one(s.say(s.stat(1, s.one(said, typeSDP).nPS)), typeEND)
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

func TestGoodCookieOpensAtOnce(t *testing.T) {
	s := newScript(t)
	begin := s.begin(portEcho)
	begin.data = []byte("early")
	refused := s.one(s.hear(begin), typeBGREJ)
	if refused.reason != reasonAnew || refused.peerCSN != peerCSN || refused.tag != 0 ||
		refused.maxSD != 1200 || len(refused.cookie) != cookieLength || len(s.ep.conns) != 0 {
		t.Fatalf("BGREJ %+v", refused)
	}
	begin.csn++
	begin.tag++
	begin.cookie = refused.cookie
	said := s.hear(begin)
	if len(said) != 2 || said[0].kind != typeBGAK || said[1].kind != typeSDP {
		t.Fatalf("said %+v", said)
	}
	bgak := said[0]
	if bgak.nR != seqAdd(peerISS, 1) || bgak.peerCSN != peerCSN+1 || bgak.cookie == nil ||
		seqDist(peerISS, bgak.nMR) < earlyCredit || bgak.maxSD != 1200 {
		t.Errorf("BGAK %+v", bgak)
	}
	if string(said[1].data) != "early" || said[1].csn != bgak.csn {
		t.Errorf("SDP %+v", said[1])
	}
	again := s.one(s.hear(begin), typeBGAK)
	if again.csn != bgak.csn || again.nR != bgak.nR || bytes.Equal(again.cookie, bgak.cookie) {
		t.Errorf("BGAK %+v", again)
	}
}

func TestCookieIsGoodForItsCallerAndFor600Seconds(t *testing.T) {
	one := netip.MustParseAddrPort("192.0.2.7:1000")
	others := []string{"192.0.2.7:1001", "192.0.2.8:1000", "[2001:db8::1]:1000"}
	i := newScript(t).ep.issuer
	cookie := i.fresh(time.Second, one)
	if i.judge(time.Second, one, cookie) != good || i.judge(601*time.Second, one, cookie) != good {
		t.Error("a good cookie is not good")
	}
	if i.judge(601*time.Second+1, one, cookie) != bad {
		t.Error("too old")
	}
	for _, other := range others {
		if i.judge(time.Second, netip.MustParseAddrPort(other), cookie) != bad {
			t.Errorf("good for %v", other)
		}
	}
	for bit := range 8 * len(cookie) {
		altered := slices.Clone(cookie)
		altered[bit/8] ^= 1 << (bit % 8)
		if i.judge(time.Second, one, altered) != bad {
			t.Errorf("good with bit %d altered", bit)
		}
	}
	for _, short := range [][]byte{nil, cookie[:8], append(slices.Clone(cookie), 0)} {
		if i.judge(time.Second, one, short) != bad {
			t.Errorf("good: %x", short)
		}
	}
	if another := newScript(t).ep.issuer; another.judge(time.Second, one, cookie) != good {
		t.Error("the secret is not the only difference")
	}
	another := issuer{secret: []byte("another"), bars: map[netip.AddrPort]uint64{}}
	if another.judge(time.Second, one, cookie) != bad {
		t.Error("good after a restart")
	}
}

func TestUsedCookieIsRememberedFor900SecondsAndBarsOlderOnesOnlyWithTheVFlag(t *testing.T) {
	one, two := netip.MustParseAddrPort("192.0.2.7:1000"), netip.MustParseAddrPort("192.0.2.8:1000")
	for void, older := range map[bool]verdict{true: bad, false: good} {
		i := issuer{secret: []byte("secret"), bars: map[netip.AddrPort]uint64{}}
		now := time.Second
		first, second, third := i.fresh(now, one), i.fresh(now, one), i.fresh(now, one)
		strange := i.fresh(now, two)
		i.use(one, second, void)
		for name, pair := range map[string]struct{ got, wanted verdict }{
			"older":    {i.judge(now, one, first), older},
			"used":     {i.judge(now, one, second), used},
			"later":    {i.judge(now, one, third), good},
			"another":  {i.judge(now, two, strange), good},
			"at 900 s": {i.judge(now+rememberFor-time.Millisecond, one, second), used},
			"gone":     {i.judge(now+rememberFor+time.Millisecond, one, second), bad},
		} {
			if pair.got != pair.wanted {
				t.Errorf("V flag %v, %s: %v", void, name, pair.got)
			}
		}
		i.forget(now + rememberFor + time.Millisecond)
		if len(i.used) != 0 || len(i.bars) != 0 {
			t.Error("not forgotten")
		}
	}
}

func TestBEGINWithVFlagVoidsTheCookiesBeforeItsOwn(t *testing.T) {
	s := newScript(t)
	earlier, later := s.cookie(), s.cookie()
	begin := s.begin(portDiscard)
	begin.flags, begin.cookie = flagV, later
	s.one(s.hear(begin), typeBGAK)
	begin.flags, begin.cookie, begin.source, begin.csn = 0, earlier, peersPT+1, peerCSN+1
	if refused := s.one(s.hear(begin), typeBGREJ); refused.reason != reasonAnew {
		t.Errorf("BGREJ %+v", refused)
	}
}

func TestVFlagUntilACallHasOpenedAConnection(t *testing.T) {
	s := newScript(t)
	step := func(name string, begin packet, wanted bool) {
		t.Helper()
		if got := begin.flags&flagV != 0; got != wanted {
			t.Errorf("%s: V flag %v", name, got)
		}
	}
	abort := func() {
		s.ep.abortCalls(s.w.now)
		s.w.run(100*time.Second, nil)
	}
	give := func(value string) {
		s.ep.purse.put(token{s.w.address(2), []byte(value), 1000, s.w.now})
	}
	step("without cookie", s.calls(portDiscard, 100), false)
	s.said = nil
	answer := func(p packet) {
		p.source, p.destination = portDiscard, s.ep.nextPort-1
		s.hear(p)
	}
	answer(s.anew("cookie 1"))
	step("first since the start", s.begun(), true)
	answer(s.bgak(1))
	step("after it has opened one", s.calls(portDiscard, 100), false) // with the BGAK's cookie
	give("cookie 2")
	abort() // both, one of them in state 2
	if len(s.ep.purse.tokens) != 0 {
		t.Error("a cookie is kept though a call has ended in state 2")
	}
	s.calls(portDiscard, 100)
	answer(s.anew("cookie 3"))
	step("after a call has ended in state 2", s.begun(), true)
	answer(s.anew("cookie 4"))
	step("once more", s.begun(), true)
	answer(s.bgak(1))
	give("cookie 5")
	step("at last", s.calls(portDiscard, 100), false)
}

func TestCallWithoutCookieThatEndsVoidsNothing(t *testing.T) {
	s, _ := calls(t, portDiscard, 100, []byte("cookie 1"))
	s.say(s.bgak(1)) // with another cookie
	s.ep.purse.put(token{s.w.address(2), []byte("cookie 3"), 1000, s.w.now})
	kept := s.ep.purse.tokens
	s.ep.purse.tokens = nil
	if begin := s.calls(portDiscard, 100); begin.cookie != nil || begin.flags != 0 {
		t.Fatalf("BEGIN %+v", begin)
	}
	s.ep.purse.tokens = kept
	s.ep.abortCalls(s.w.now)
	for _, value := range []string{"next cookie", "cookie 3"} {
		if begin := s.calls(portDiscard, 100); string(begin.cookie) != value || begin.flags&flagV != 0 {
			t.Errorf("BEGIN %+v", begin)
		}
	}
}

func TestCookieOfABEGINFromBeforeAFailedCallIsNotKept(t *testing.T) {
	s, _ := calls(t, portDiscard, 100, []byte("a cookie"))
	s.ep.purse.ended(s.w.address(2)) // another call
	s.say(s.bgak(1))
	if len(s.ep.purse.tokens) != 0 {
		t.Error("it is kept")
	}
	if !s.ep.purse.void(s.w.address(2), s.ep.purse.calls(s.w.address(2))) {
		t.Error("the next call needs no V flag")
	}
}

func TestWithoutRoomForUsedCookiesCallsAreRefused(t *testing.T) {
	s := newScript(t)
	other := netip.MustParseAddrPort("192.0.2.99:1")
	for range maxUsed {
		s.ep.issuer.use(other, s.ep.issuer.fresh(s.w.now, other), false)
	}
	begin := s.begin(portDiscard)
	begin.cookie = s.cookie()
	if refused := s.one(s.hear(begin), typeBGREJ); refused.reason != reasonBusy || refused.cookie != nil {
		t.Errorf("BGREJ %+v", refused)
	}
	s.w.now += rememberFor + time.Second
	s.open(portDiscard)
}

func TestBeyondTheConnectionsCallsAreRefusedButMayReplace(t *testing.T) {
	s := newScript(t)
	s.ep.cfg.connections = 1
	s.open(portDiscard)
	begin := s.begin(portDiscard)
	begin.cookie = s.one(s.hear(s.begin(portDiscard)), typeBGAK).cookie
	begin.csn, begin.tag, begin.source = peerCSN+1, (peerCSN+1)&0xFFFF, peersPT+1
	if refused := s.one(s.hear(begin), typeBGREJ); refused.reason != reasonBusy {
		t.Errorf("BGREJ %+v", refused)
	}
	begin.source = peersPT
	s.one(s.hear(begin), typeBGAK)
}

func TestUsedCookieOpensNothingAgain(t *testing.T) {
	s := newScript(t)
	begin := s.begin(portDiscard)
	begin.cookie = s.cookie()
	s.csn = s.one(s.hear(begin), typeBGAK).csn
	s.one(s.hear(packet{
		kind: typeEND, flags: flagA, destination: portDiscard, csn: peerCSN, peerCSN: s.csn,
	}), typeENDAK)
	for range 2 * endsPerSecond {
		end := s.one(s.hear(begin), typeEND)
		if end.flags != flagA|flagR || end.peerCSN != peerCSN || end.csn != 0 || end.tag != 0 {
			t.Fatalf("END %+v", end)
		}
	}
	s.w.now += rememberFor + time.Second
	if refused := s.one(s.hear(begin), typeBGREJ); refused.reason != reasonAnew {
		t.Errorf("BGREJ %+v", refused)
	}
}

func TestLaterCallReplacesTheConnection(t *testing.T) {
	for _, released := range []bool{false, true} {
		s := newScript(t)
		var outcome error
		s.ep.services[portDiscard] = func() app { return &watched{&discard{}, &outcome} }
		s.open(portDiscard)
		begin := s.begin(portDiscard)
		begin.cookie = s.one(s.hear(begin), typeBGAK).cookie
		begin.csn, begin.tag, begin.data = peerCSN+1, (peerCSN+1)&0xFFFF, []byte("new")
		expected := errReplaced
		if c := s.conn(portDiscard); released {
			expected = errUserAborted
			c.abort(s.w.now)
			s.ep.settle(s.w.now, c)
			same := s.begin(portDiscard)
			same.cookie = begin.cookie
			s.nothing(s.hear(same)) // the peer's CSN in state 4
		}
		bgak := s.one(s.hear(begin), typeBGAK)
		if bgak.csn == s.csn || bgak.peerCSN != peerCSN+1 || outcome != expected ||
			len(s.ep.conns) != 1 {
			t.Errorf("BGAK %+v, ended as %v", bgak, outcome)
		}
		s.said = nil
		s.w.run(20*time.Second, nil)
		if s.saidKind(typeEND) != 0 {
			t.Error("the END of the old connection is repeated")
		}
	}
}

func TestBEGINWithTooMuchDataOpensNothingButIsGivenACookie(t *testing.T) {
	s := newScript(t)
	begin := s.begin(portDiscard)
	begin.data = make([]byte, 1201)
	if refused := s.one(s.hear(begin), typeBGREJ); refused.reason != reasonAnew || refused.maxSD != 1200 {
		t.Errorf("BGREJ %+v", refused)
	}
	begin.cookie = s.cookie()
	s.nothing(s.hear(begin))
	begin.data = begin.data[:1200]
	s.one(s.hear(begin), typeBGAK)
	begin.csn, begin.data = peerCSN+1, make([]byte, 1201)
	s.one(s.hear(begin), typeEND) // the cookie is used
	begin.cookie = s.cookieInVain()
	s.nothing(s.hear(begin))
	if s.conn(portDiscard).peerCSN != peerCSN {
		t.Error("the connection is replaced")
	}
}

// cookieInVain asks for one while the usual connection is open.
func (s *script) cookieInVain() []byte {
	s.t.Helper()
	begin := s.begin(portDiscard)
	begin.source = peersPT + 1
	return s.one(s.hear(begin), typeBGREJ).cookie
}

func TestServerRestartedWithASmallerMaxSDIsCalledAnew(t *testing.T) {
	w, d, o := pair(t, 14)
	expectOK(t, open(w, d, o, portEcho, 3000, 20*time.Second))
	cfg := testConfig(w.random)
	cfg.maxSD = 600
	w.add(1, cfg)
	expectOK(t, open(w, d, o, portEcho, 3000, 20*time.Second))
}

func TestSecondCallNeedsNoRoundTripMore(t *testing.T) {
	w, d, o := pair(t, 8)
	var answers []uint8
	w.seen = func(from, to netip.AddrPort, p *packet) {
		if from == w.address(1) && (p.kind == typeBGAK || p.kind == typeBGREJ) {
			answers = append(answers, p.kind)
		}
	}
	expectOK(t, open(w, d, o, portEcho, 100, 20*time.Second))
	expectOK(t, open(w, d, o, portEcho, 100, 20*time.Second))
	w.run(goodFor+time.Second, nil)
	expectOK(t, open(w, d, o, portEcho, 100, 20*time.Second))
	if !slices.Equal(answers, []uint8{typeBGREJ, typeBGAK, typeBGAK, typeBGREJ, typeBGAK}) {
		t.Fatalf("answers %v", answers)
	}
}

func TestCallerDoesNotAnswerABEGINOfItsPeerWithABGAK(t *testing.T) {
	s, _ := calls(t, portDiscard, 100, []byte("a cookie"))
	s.say(s.bgak(1))
	begin := s.begin(0)
	if refused := s.one(s.say(begin), typeBGREJ); refused.reason != reasonNobody {
		t.Errorf("BGREJ %+v", refused)
	}
}

func TestBGAKOfARepeatedBEGINRepeatsTheCredit(t *testing.T) {
	s := newScript(t)
	begin := s.begin(portDiscard)
	begin.cookie = s.cookie()
	first := s.one(s.hear(begin), typeBGAK)
	s.nothing(s.hear(sd(portDiscard, 0, 0)))
	if again := s.one(s.hear(begin), typeBGAK); again.nMR != first.nMR {
		t.Errorf("credit %d, then %d", first.nMR, again.nMR)
	}
}

func TestRestartedServerGivesANewCookie(t *testing.T) {
	w, d, o := pair(t, 9)
	expectOK(t, open(w, d, o, portEcho, 3000, 20*time.Second))
	w.add(1, testConfig(w.random))
	refusals := 0
	w.seen = func(from, to netip.AddrPort, p *packet) {
		if p.kind == typeBGREJ {
			refusals++
		}
	}
	expectOK(t, open(w, d, o, portEcho, 3000, 20*time.Second))
	expectOK(t, open(w, d, o, portEcho, 3000, 20*time.Second))
	if refusals != 1 {
		t.Errorf("%d refusals", refusals)
	}
}

func TestServerThatForgetsTheConnectionMakesItFail(t *testing.T) {
	w, d, o := pair(t, 10)
	d.obey(command{to: w.address(1), service: portChargen, octets: 1 << 30})
	d.obey(command{to: w.address(1), service: portDiscard, octets: 1 << 30})
	w.run(5*time.Second, nil)
	w.add(1, testConfig(w.random))
	w.run(20*time.Second, nil)
	if len(o.lines) != 1 || !strings.Contains(o.lines[0], errForgotten.Error()) {
		t.Errorf("said %q", o.lines) // the other one learns it by its keep-alive
	}
}

func TestBEGINWithLittleCreditCountsAsFour(t *testing.T) {
	s := newScript(t)
	begin := s.begin(portChargen)
	begin.nMR = 1
	if said := s.accepts(begin); len(said) != earlyCredit || said[3].kind != typeSDP {
		t.Errorf("said %+v", said)
	}
}

func TestMaxSDBelow512CountsAs512(t *testing.T) {
	for announced, most := range map[int]int{0: 512, 100: 512, 511: 512, 600: 600, 2000: 1200} {
		s := newScript(t)
		begin := s.begin(portChargen)
		begin.maxSD = announced
		if said := s.accepts(begin); len(said[0].data) != most {
			t.Errorf("MaxSD %d: SDs of %d octets", announced, len(said[0].data))
		}
	}
}

func TestInitialWindowCountsInTheSMSSOfTheOpenConnection(t *testing.T) {
	s, begin := calls(t, portDiscard, 100_000, []byte("a cookie"))
	early := &s.callers().snd
	if len(begin.data) != 1000 || early.window.cwnd != 4*1000 {
		t.Fatalf("%d octets in the BEGIN, window %+v", len(begin.data), early.window)
	}
	p := s.bgak(1)
	p.maxSD = 1100
	s.say(p)
	if w := s.callers().snd.window; w.smss != 1100 || w.cwnd != 4*1100 {
		t.Errorf("window %+v", w)
	}
}

func TestBGAKAcknowledgesLikeAReportButTheWindowDoesNotGrow(t *testing.T) {
	s, _ := calls(t, portDiscard, 100_000, []byte("a cookie"))
	s.w.now += 600 * time.Millisecond
	p := s.bgak(3)
	said := s.say(p)
	snd := &s.callers().snd
	if snd.window.cwnd != 4000 || snd.flight != 4000 || snd.vtA != seqAdd(s.iss, 3) {
		t.Errorf("%d octets in flight, window %+v", snd.flight, snd.window)
	}
	if len(said) != 3 || said[0].kind != typeSDP || said[0].sequence != seqAdd(s.iss, 4) {
		t.Errorf("%d packets, the first %d of type %d", len(said), said[0].sequence, said[0].kind)
	}
}

func TestCSNsOfOneAddressRiseAndTellNothingAboutOthers(t *testing.T) {
	s := newScript(t)
	one := s.w.address(2)
	two := netip.AddrPortFrom(one.Addr(), one.Port()+1)
	before := s.ep.newCSN(one)
	for range 1000 {
		after := s.ep.newCSN(one)
		if int32(after-before) <= 0 {
			t.Fatalf("%x after %x", after, before)
		}
		before = after
	}
	if apart := int32(s.ep.newCSN(two) - before); apart > -1<<20 && apart < 1<<20 {
		t.Errorf("another port's CSN is only %d away", apart)
	}
}

func TestCallsAtOnceFromOneAddressAllSucceed(t *testing.T) {
	w, d, o := pair(t, 27)
	for range 2 { // without cookies and with those of the first dozen
		for i := range 12 {
			service := []uint16{portEcho, portDiscard, portChargen}[i%3]
			d.obey(command{to: w.address(1), service: service, octets: 3000 * i})
		}
		w.run(60*time.Second, nil)
	}
	if len(o.lines) != 24 {
		t.Fatalf("said %q", o.lines)
	}
	for _, line := range o.lines {
		expectOK(t, line)
	}
}
