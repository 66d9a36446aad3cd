package main

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

const (
	peerCSN = 0xAAAA1234
	peerISS = seqMask - 2 // numbers wrap at once
	peersPT = 50000
)

// script is an endpoint and a peer that is played by the test.
type script struct {
	t    *testing.T
	w    *world
	ep   *endpoint
	said []packet
	csn  uint32 // of the endpoint
	iss  uint32
}

func newScript(t *testing.T) *script {
	s := &script{t: t, w: newWorld(t, 1)}
	s.ep = s.w.add(1, testConfig(s.w.random))
	s.w.seen = func(from, to netip.AddrPort, p *packet) {
		copied := *p
		copied.list, copied.data = slices.Clone(p.list), slices.Clone(p.data)
		copied.cookie = slices.Clone(p.cookie)
		s.said = append(s.said, copied)
	}
	return s
}

// hear gives the endpoint a packet and returns what it says at once.
func (s *script) hear(p packet) []packet {
	s.t.Helper()
	s.said = nil
	if p.source == 0 {
		p.source = peersPT
	}
	if p.kind != typeEND && p.kind != typeBGREJ && p.tag == 0 {
		p.tag = peerCSN & 0xFFFF
	}
	if (p.kind == typePOLL || p.kind == typeSDP) && p.csn == 0 {
		p.csn = peerCSN
	}
	s.ep.receive(s.w.now, s.w.address(2), p.appendTo(nil, 0))
	checkBounds(s.t, s.ep)
	return s.said
}

// begin is a BEGIN without cookie.
func (s *script) begin(port uint16) packet {
	return packet{
		kind: typeBEGIN, destination: port, version: version, sequence: peerISS, nMR: 100,
		csn: peerCSN, tag: peerCSN & 0xFFFF, maxSD: 1000, hasMaxSD: true,
	}
}

// cookie asks for one.
func (s *script) cookie() []byte {
	s.t.Helper()
	refused := s.one(s.hear(s.begin(portDiscard)), typeBGREJ)
	if refused.reason != reasonAnew || refused.cookie == nil {
		s.t.Fatalf("BGREJ %+v", refused)
	}
	return refused.cookie
}

// accepts gives the endpoint a BEGIN with a good cookie, and returns what follows the BGAK.
func (s *script) accepts(begin packet) []packet {
	s.t.Helper()
	begin.cookie = s.cookie()
	said := s.hear(begin)
	if len(said) == 0 || said[0].kind != typeBGAK {
		s.t.Fatalf("said %+v", said)
	}
	s.csn, s.iss = said[0].csn, said[0].sequence
	return said[1:]
}

// open brings a connection to a service into state 10.
func (s *script) open(port uint16) []packet {
	s.t.Helper()
	return s.accepts(s.begin(port))
}

func (s *script) conn(port uint16) *conn {
	return s.ep.conns[key{s.w.address(2), peersPT, port}]
}

func (s *script) one(said []packet, kind uint8) packet {
	s.t.Helper()
	if len(said) != 1 || said[0].kind != kind {
		s.t.Fatalf("said %+v, not one packet of type %d", said, kind)
	}
	return said[0]
}

func (s *script) nothing(said []packet) {
	s.t.Helper()
	if len(said) != 0 {
		s.t.Fatalf("said %+v", said)
	}
}

func sd(port uint16, offset int, flags uint8) packet {
	return packet{
		kind: typeSD, destination: port, sequence: seqAdd(peerISS, offset), flags: flags,
		data: []byte{byte(offset)},
	}
}

func poll(port uint16, offset int, nPS uint32) packet {
	return packet{
		kind: typePOLL, destination: port, sequence: seqAdd(peerISS, offset), nPS: nPS,
		timestamp: 77 + nPS,
	}
}

// offsets counts numbers from the peer's ISS.
func offsets(list []uint32) []int {
	var counted []int
	for _, n := range list {
		counted = append(counted, seqDist(peerISS, n))
	}
	return counted
}

func TestExampleOfSection35ListIsTheSame(t *testing.T) {
	s := newScript(t)
	s.open(portDiscard)
	for i := range 7 {
		s.nothing(s.hear(sd(portDiscard, i, 0)))
	}
	gap := s.one(s.hear(sd(portDiscard, 9, 0)), typeUSTAT)
	if got := offsets(gap.list); !slices.Equal(got, []int{7, 9}) {
		t.Errorf("USTAT of %v", got)
	}
	s.nothing(s.hear(sd(portDiscard, 10, 0)))
	stat := s.one(s.hear(poll(portDiscard, 12, 1)), typeSTAT)
	if got := offsets(stat.list); !slices.Equal(got, []int{7, 9, 11, 12}) {
		t.Errorf("list %v", got)
	}
	if seqDist(peerISS, stat.sequence) != 7 || stat.nPS != 1 || stat.timestamp != 78 {
		t.Errorf("STAT %+v", stat)
	}
	s.nothing(s.hear(sd(portDiscard, 11, 0)))
	stat = s.one(s.hear(poll(portDiscard, 12, 2)), typeSTAT)
	if got := offsets(stat.list); !slices.Equal(got, []int{7, 9, 12}) {
		t.Errorf("list %v", got)
	}
	s.nothing(s.hear(sd(portDiscard, 9, 0))) // a duplicate
	s.nothing(s.hear(sd(portDiscard, 7, 0)))
	s.nothing(s.hear(sd(portDiscard, 8, 0)))
	stat = s.one(s.hear(poll(portDiscard, 11, 1)), typeSTAT) // an old POLL is answered as well
	if len(stat.list) != 0 || seqDist(peerISS, stat.sequence) != 12 {
		t.Errorf("STAT %+v", stat)
	}
}

func TestLongListIsCutWhereTheNextBegins(t *testing.T) {
	s := newScript(t)
	s.open(portDiscard)
	for i := 1; i < 200; i += 2 {
		s.hear(sd(portDiscard, i, 0))
	}
	stats := s.hear(poll(portDiscard, 200, 1))
	if len(stats) != 4 {
		t.Fatalf("%d STATs", len(stats))
	}
	whole := stats[0].list
	for i, stat := range stats {
		if i < len(stats)-1 && len(stat.list) != 67 || stat.nPS != 1 || stat.timestamp != 78 {
			t.Errorf("STAT %d has %d elements", i, len(stat.list))
		}
		if i > 0 {
			if stat.list[0] != whole[len(whole)-1] {
				t.Errorf("STAT %d begins elsewhere", i)
			}
			whole = append(whole, stat.list[1:]...)
		}
	}
	for i, n := range whole {
		if seqDist(peerISS, n) != i {
			t.Fatalf("list %v", offsets(whole))
		}
	}
}

func TestPOLLBeyondTheCreditRaisesNothing(t *testing.T) {
	s := newScript(t)
	s.open(portDiscard)
	s.nothing(s.hear(sd(portDiscard, 256, 0))) // the credit is 256
	for nPS, offset := range []int{257, 1 << 22, -1} {
		stat := s.one(s.hear(poll(portDiscard, offset, uint32(nPS+1))), typeSTAT)
		if len(stat.list) != 0 {
			t.Errorf("POLL %d: list %v", offset, offsets(stat.list))
		}
	}
	stat := s.one(s.hear(poll(portDiscard, 256, 9)), typeSTAT)
	if got := offsets(stat.list); !slices.Equal(got, []int{0, 256}) {
		t.Errorf("list %v", got)
	}
}

// sending is a script with chargen, whose initial window of four SDs is out.
func sending(t *testing.T) *script {
	s := newScript(t)
	s.open(portChargen)
	s.w.run(2*time.Second, func() bool { return s.conn(portChargen).snd.flight == 4000 })
	if c := s.conn(portChargen); seqDist(s.iss, c.snd.vtS) != 4 || c.snd.vtPS == 0 {
		t.Fatalf("%d SDs, %d POLLs", seqDist(s.iss, c.snd.vtS), c.snd.vtPS)
	}
	return s
}

func (s *script) stat(nR int, nPS uint32, list ...int) packet {
	p := packet{
		kind: typeSTAT, destination: portChargen, sequence: seqAdd(s.iss, nR),
		nMR: seqAdd(s.iss, 100), nPS: nPS,
	}
	for _, element := range list {
		p.list = append(p.list, seqAdd(s.iss, element))
	}
	return p
}

// again are the offsets of SDs that await retransmission or have been sent again.
func (s *script) again() (offsets []int) {
	snd := &s.conn(portChargen).snd
	for i := range snd.sds {
		if snd.sds[i].queued || snd.sds[i].sent > 1 {
			offsets = append(offsets, seqDist(s.iss, snd.vtA)+i)
		}
	}
	return offsets
}

func TestInvalidReportsChangeNothing(t *testing.T) {
	s := sending(t)
	snd := &s.conn(portChargen).snd
	newest := snd.vtPS
	before := []any{snd.vtA, snd.vtMS, snd.vtPA, snd.flight, snd.window}
	ustat := s.stat(0, 0, 3, 2)
	ustat.kind = typeUSTAT
	beyond := s.stat(0, 0, 2, 5)
	beyond.kind = typeUSTAT
	creditless := s.stat(0, newest, 0, 2)
	creditless.nMR = seqAdd(s.iss, 1)
	for name, p := range map[string]packet{
		"N(R) above VT(S)":          s.stat(5, newest),
		"N(R) below VT(A)":          s.stat(-1, newest),
		"N(PS) above VT(PS)":        s.stat(1, newest+1),
		"one element":               s.stat(0, newest, 0),
		"list below N(R)":           s.stat(2, newest, 1, 3),
		"not rising":                s.stat(0, newest, 0, 0),
		"bound above VT(S)":         s.stat(0, newest, 0, 5),
		"bound above N(MR)":         creditless,
		"falling run":               ustat,
		"run above VT(S)":           beyond,
		"far round the modulus":     s.stat(0, newest, 0, seqHalf+1),
		"huge run of held and lost": s.stat(0, newest, 1, 2, seqMask-1),
	} {
		s.hear(p)
		after := []any{snd.vtA, snd.vtMS, snd.vtPA, snd.flight, snd.window}
		if !slices.Equal(before, after) || len(s.again()) > 0 {
			t.Errorf("%s: %v became %v", name, before, after)
		}
	}
	s.hear(s.stat(4, newest))
	if snd.vtA != seqAdd(s.iss, 4) || snd.vtPA != newest {
		t.Error("a valid STAT is not accepted")
	}
	s.hear(s.stat(4, newest-1))
	if snd.vtPA != newest {
		t.Error("VT(PA) has moved backwards")
	}
}

func TestLossHalvesTheWindowOnce(t *testing.T) {
	s := newScript(t)
	s.ep.cfg.initialWindow = 10
	s.open(portChargen)
	s.w.run(time.Millisecond, nil)
	snd := &s.conn(portChargen).snd
	if snd.flight != 10_000 {
		t.Fatalf("%d octets in flight", snd.flight)
	}
	ustat := s.stat(0, 0, 0, 1)
	ustat.kind = typeUSTAT
	if again := s.one(s.hear(ustat), typeSD); again.sequence != s.iss {
		t.Errorf("said %+v", again)
	}
	if snd.sds[0].sent != 2 {
		t.Error("the first retransmission waits")
	}
	if snd.window.cwnd != 5000 || snd.window.ssthresh != 5000 {
		t.Fatalf("window %+v", snd.window)
	}
	ustat = s.stat(0, 0, 1, 3)
	ustat.kind = typeUSTAT
	s.nothing(s.hear(ustat)) // the window is full
	if snd.window.cwnd != 5000 {
		t.Fatalf("window %+v after a loss from before the reduction", snd.window)
	}
	s.hear(s.stat(1, snd.vtPS, 1, 3, 10))
	if snd.sds[0].sent != 2 || snd.sds[1].sent != 2 || snd.window.ssthresh != 5000 {
		t.Fatalf("sent %d and %d times", snd.sds[0].sent, snd.sds[1].sent)
	}
}

// complete ends both streams of a connection that the endpoint was called for; what it says then.
func (s *script) complete() []packet {
	s.t.Helper()
	s.open(portDiscard)
	last := s.hear(sd(portDiscard, 0, flagFIN))
	fin := s.one(last, typeSDP)
	if fin.flags != flagFIN || fin.sequence != s.iss || len(fin.data) != 0 {
		s.t.Fatalf("FIN %+v", fin)
	}
	p := s.stat(1, fin.nPS)
	p.destination = portDiscard
	return s.hear(p)
}

func TestCalledCompleteLeavesTheReleaseToTheCaller(t *testing.T) {
	s := newScript(t)
	outcome := errNoAnswer
	s.ep.services[portDiscard] = func() app { return &watched{&discard{}, &outcome} }
	s.nothing(s.complete())
	if outcome != nil {
		t.Error("success waits for the END")
	}
	s.conn(portDiscard).abort(s.w.now) // of a user that has been told
	s.one(s.hear(poll(portDiscard, 1, 1)), typeSTAT)
	forged := s.begin(portDiscard)
	forged.csn++
	s.one(s.hear(forged), typeBGREJ)
	s.one(s.hear(packet{
		kind: typeEND, destination: portDiscard, csn: peerCSN, peerCSN: s.csn,
		sequence: seqAdd(s.iss, 1), tag: peerCSN & 0xFFFF,
	}), typeENDAK)
	if len(s.ep.conns) != 0 {
		t.Error("the connection is still there")
	}
}

func TestCalledCompleteWhoseCallerIsSilentReleases(t *testing.T) {
	s := newScript(t)
	s.nothing(s.complete())
	s.w.run(990*time.Millisecond, nil)
	s.nothing(s.said)
	s.w.run(20*time.Millisecond, nil)
	end := s.one(s.said, typeEND)
	if end.flags != 0 || end.reason != 0 || seqDist(peerISS, end.sequence) != 1 ||
		end.csn != s.csn || end.peerCSN != peerCSN {
		t.Fatalf("END %+v", end)
	}
	s.nothing(s.hear(poll(portDiscard, 1, 1))) // STP-CC-028
	s.nothing(s.hear(packet{kind: typeENDAK, destination: portDiscard, peerCSN: s.csn}))
	if len(s.ep.conns) != 0 {
		t.Error("the connection is still there")
	}
}

func TestPrematureENDIsAcknowledgedAndAFailure(t *testing.T) {
	s := newScript(t)
	seen := &both{report: func(string) {}}
	var result error
	s.ep.services[portEcho] = func() app { return &watched{seen, &result} }
	s.open(portEcho)
	s.one(s.hear(packet{
		kind: typeEND, destination: portEcho, csn: peerCSN, peerCSN: s.csn, sequence: s.iss,
		tag: peerCSN & 0xFFFF,
	}), typeENDAK)
	if result != errPremature || len(s.ep.conns) != 0 {
		t.Errorf("ended as %v", result)
	}
}

func TestENDWhoseNRDoesNotCoverTheOwnFINIsAnAbort(t *testing.T) {
	for covered, expected := range map[int]error{0: errPremature, 1: nil} {
		s := newScript(t)
		result := errNoAnswer
		s.ep.services[portEcho] = func() app { return &watched{&echo{}, &result} }
		s.open(portEcho)
		empty := sd(portEcho, 0, flagFIN)
		empty.data = nil
		s.one(s.hear(empty), typeSDP) // the own FIN
		s.one(s.hear(packet{
			kind: typeEND, destination: portEcho, csn: peerCSN, peerCSN: s.csn,
			sequence: seqAdd(s.iss, covered), tag: peerCSN & 0xFFFF,
		}), typeENDAK)
		if result != expected || len(s.ep.conns) != 0 {
			t.Errorf("N(R) = ISS + %d: ended as %v", covered, result)
		}
	}
}

type watched struct {
	app
	result *error
}

func (w *watched) over(c *conn, outcome error) { *w.result = outcome }

// mute neither writes nor closes.
type mute struct{ quiet }

func (mute) step(*conn) {}

func TestSDTakesAPOLLAlongThatIsSoonDue(t *testing.T) {
	w, d, o := pair(t, 23)
	var last instant // when a new SD left that was no SDP
	polls := 0
	w.seen = func(from, to netip.AddrPort, p *packet) {
		switch {
		case from != w.address(2):
		case p.kind == typePOLL:
			polls++
			for _, c := range w.ends[from].conns {
				if !c.snd.stopped() && w.now-last < rideTime {
					t.Errorf("a POLL left alone %v after an SD, at %v", w.now-last, w.now)
				}
			}
		case p.kind == typeSD:
			last = w.now
		}
	}
	expectOK(t, open(w, d, o, portDiscard, 1_000_000, 60*time.Second))
	if polls == 0 {
		t.Error("no POLL was sent alone")
	}
}

func TestPOLLBeyondTheFINRaisesNothing(t *testing.T) {
	s := newScript(t)
	s.open(portEcho)
	s.hear(sd(portEcho, 3, flagFIN))
	for offset, bound := range map[int]int{5: 4, 4: 4} {
		stat := s.one(s.hear(poll(portEcho, offset, uint32(offset))), typeSTAT)
		if got := offsets(stat.list); !slices.Equal(got, []int{0, 3, bound}) {
			t.Errorf("list %v", got)
		}
	}
}

func TestPOLLThatContradictsTheFINMovesNothingBackwards(t *testing.T) {
	s := newScript(t)
	s.open(portEcho)
	s.one(s.hear(poll(portEcho, 6, 1)), typeSTAT)
	s.hear(sd(portEcho, 3, flagFIN)) // not the end, says the POLL
	for nPS, offset := range []int{3, 4, 5, 7, -1, seqHalf - 1, seqHalf + 3} {
		stat := s.one(s.hear(poll(portEcho, offset, uint32(nPS+2))), typeSTAT)
		if got := offsets(stat.list); !slices.Equal(got, []int{0, 3, 4, 6}) {
			t.Errorf("POLL %d: list %v", offset, got)
		}
	}
}

func TestMissingSDIsSentAgainOnlyIfItsStampIsBelowTheSTATs(t *testing.T) {
	s := sending(t)
	snd := &s.conn(portChargen).snd
	if snd.vtPS != 1 || snd.sds[1].stamp != 0 {
		t.Fatalf("stamp %d, newest POLL %d", snd.sds[1].stamp, snd.vtPS)
	}
	snd.sds[1].stamp = 1
	s.hear(s.stat(0, 1, 1, 2, 4))
	if again := s.again(); len(again) != 0 {
		t.Fatalf("%v sent again on an equal stamp", again)
	}
	snd.sds[1].stamp = 0
	s.hear(s.stat(0, 1, 1, 2, 4))
	if again := s.again(); !slices.Equal(again, []int{1}) {
		t.Fatalf("%v sent again", again)
	}
	s.hear(s.stat(0, 1, 1, 2, 4)) // once more: the retransmission is later than its POLL
	ustat := s.stat(1, 0, 1, 2)
	ustat.kind = typeUSTAT
	s.hear(ustat)
	s.w.run(200*time.Millisecond, nil)
	if sent := snd.sds[0].sent; sent != 2 {
		t.Fatalf("sent %d times", sent)
	}
}

func TestNoConnectionIsAnsweredAsTheTableSays(t *testing.T) {
	s := newScript(t)
	for _, kind := range []uint8{typeSDP, typePOLL} {
		end := s.one(s.hear(packet{kind: kind, destination: portEcho}), typeEND)
		if end.flags != flagA|flagR || end.reason != reasonUnknown || end.csn != 0 ||
			end.peerCSN != peerCSN || end.tag != 0 || end.sequence != 0 {
			t.Errorf("type %d: END %+v", kind, end)
		}
	}
	bgak := packet{kind: typeBGAK, destination: portEcho, csn: peerCSN, peerCSN: 0x12345678}
	end := s.one(s.hear(bgak), typeEND)
	if end.flags != flagA|flagR || end.csn != 0x12345678 || end.peerCSN != peerCSN || end.tag != 0x5678 {
		t.Errorf("END %+v", end)
	}
	endak := s.one(s.hear(packet{
		kind: typeEND, destination: portEcho, csn: peerCSN, peerCSN: 0x12345678, tag: 0x1234,
	}), typeENDAK)
	if endak.peerCSN != peerCSN || endak.tag != 0x5678 {
		t.Errorf("ENDAK %+v", endak)
	}
	s.nothing(s.hear(packet{kind: typeEND, destination: portEcho, flags: flagA | flagR}))
	for _, kind := range []uint8{typeENDAK, typeBGREJ, typeSD, typeSTAT} {
		s.nothing(s.hear(packet{kind: kind, destination: portEcho}))
	}
	refused := s.one(s.hear(s.begin(99)), typeBGREJ)
	if refused.reason != reasonNobody || refused.peerCSN != peerCSN || refused.tag != 0 ||
		refused.hasMaxSD || refused.cookie != nil {
		t.Errorf("BGREJ %+v", refused)
	}
	other := s.begin(portEcho)
	other.version = 1
	if refused := s.one(s.hear(other), typeBGREJ); refused.reason != reasonVersion {
		t.Errorf("BGREJ %+v", refused)
	}
	for range 20 {
		s.hear(packet{kind: typePOLL, destination: portEcho})
	}
	s.nothing(s.hear(packet{kind: typePOLL, destination: portEcho}))
	s.w.now += time.Second
	s.one(s.hear(packet{kind: typePOLL, destination: portEcho}), typeEND)
}

func TestOpenConnectionSurvivesForgedPackets(t *testing.T) {
	s := newScript(t)
	s.open(portDiscard)
	begin := s.begin(portDiscard)
	again := s.one(s.hear(begin), typeBGAK) // whatever cookie it carries
	if again.csn != s.csn || again.nR != peerISS || again.cookie == nil || !again.hasMaxSD {
		t.Errorf("BGAK %+v", again)
	}
	begin.csn++
	begin.cookie = make([]byte, cookieLength)
	if refused := s.one(s.hear(begin), typeBGREJ); refused.reason != reasonAnew {
		t.Errorf("BGREJ %+v", refused)
	}
	begin.version = 3
	if refused := s.one(s.hear(begin), typeBGREJ); refused.reason != reasonVersion {
		t.Errorf("BGREJ %+v", refused)
	}
	wrong := sd(portDiscard, 0, 0)
	wrong.tag = 0x4321
	asks := poll(portDiscard, 3, 1)
	asks.csn = peerCSN + 1<<16
	unknown := packet{
		kind: typeEND, destination: portDiscard, flags: flagA | flagR, csn: peerCSN - 1, peerCSN: s.csn,
	}
	hint := unknown
	hint.csn, hint.peerCSN = 0, s.csn&0xFFFF
	for _, p := range []packet{
		wrong, asks, unknown, hint,
		{kind: typeBGAK, destination: portDiscard, csn: peerCSN + 1, peerCSN: s.csn},
		{kind: typeBGAK, destination: portDiscard, csn: peerCSN, peerCSN: s.csn},
		{kind: typeEND, destination: portDiscard, csn: peerCSN, peerCSN: s.csn + 1},
		{kind: typeEND, destination: portDiscard, csn: peerCSN},
		{kind: typeBGREJ, destination: portDiscard, peerCSN: s.csn},
		{kind: typeENDAK, destination: portDiscard, peerCSN: s.csn},
	} {
		s.nothing(s.hear(p))
	}
	if c := s.conn(portDiscard); c == nil || c.state != ready || c.rcv.vrR != peerISS ||
		c.rcv.vrH != peerISS {
		t.Fatal("the connection has changed")
	}
	asks.kind, asks.sequence, asks.data = typeSDP, peerISS, []byte{0}
	s.nothing(s.hear(asks))
	asks.csn, asks.nPS = peerCSN, 0
	s.nothing(s.hear(asks))
	s.nothing(s.hear(poll(portDiscard, 3, 0)))
	if c := s.conn(portDiscard); c.rcv.vrR != peerISS || c.rcv.vrH != peerISS {
		t.Error("an SDP of another CSN, or without a number, is taken")
	}
}

func TestValidENDsEndTheConnection(t *testing.T) {
	for _, sender := range []uint32{0, peerCSN} {
		s := newScript(t)
		s.open(portDiscard)
		s.nothing(s.hear(packet{
			kind: typeEND, flags: flagA | flagR, destination: portDiscard, csn: sender, peerCSN: s.csn,
		}))
		if s.conn(portDiscard) != nil {
			t.Errorf("an END with R flag and %x as the sender's CSN is ignored", sender)
		}
	}
	s := newScript(t)
	s.open(portDiscard)
	// An abort of a caller that has had no BGAK yet.
	s.one(s.hear(packet{
		kind: typeEND, flags: flagA, destination: portDiscard, csn: peerCSN,
	}), typeENDAK)
	if s.conn(portDiscard) != nil {
		t.Error("the connection is still there")
	}
}

func TestKeepAliveAsksOnceAndNoticesADeadPeer(t *testing.T) {
	w, d, o := pair(t, 22)
	w.ends[w.address(2)].cfg.keepAlive = 15 * time.Second
	w.ends[w.address(1)].services[portChargen] = func() app { return &mute{} }
	d.obey(command{to: w.address(1), service: portChargen, octets: 1})
	w.run(10*time.Second, nil)
	var polls []instant
	w.seen = func(from, to netip.AddrPort, p *packet) {
		if p.kind == typePOLL {
			polls = append(polls, w.now)
		}
	}
	w.run(100*time.Second, nil)
	if len(polls) != 7 || len(o.lines) != 0 { // 15 s after the STAT before, each
		t.Fatalf("%d POLLs in 100 s, said %q", len(polls), o.lines)
	}
	for i := 1; i < len(polls); i++ {
		if apart := polls[i] - polls[i-1]; apart < 15*time.Second {
			t.Errorf("POLLs %v apart", apart)
		}
	}
	w.run(5*time.Second, nil) // the last answer has come
	drop := true
	w.drop = func(from, to netip.AddrPort, p *packet) bool {
		lost := drop && p.kind == typePOLL
		drop = drop && !lost
		return lost
	}
	polls = nil
	w.run(20*time.Second, nil)
	if len(o.lines) != 0 || len(polls) != 2 {
		t.Fatalf("%d POLLs after the loss of one, said %q", len(polls), o.lines)
	}
	w.loss, polls = 1, nil
	w.run(80*time.Second, nil)
	if len(o.lines) != 1 || len(polls) < 5 || len(polls) > 9 {
		t.Fatalf("%d POLLs, said %q", len(polls), o.lines)
	}
}
