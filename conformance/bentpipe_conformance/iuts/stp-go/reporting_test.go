package main

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

func TestSDThatContradictsTheEndOrIsTooLargeIsDiscarded(t *testing.T) {
	s := newScript(t)
	s.open(portDiscard)
	s.hear(sd(portDiscard, 5, 0))
	s.nothing(s.hear(sd(portDiscard, 3, flagFIN))) // below an SD already held
	large := sd(portDiscard, 3, 0)
	large.data = make([]byte, 1201)
	s.nothing(s.hear(large))
	stat := s.one(s.hear(poll(portDiscard, 6, 1)), typeSTAT)
	if got := offsets(stat.list); !slices.Equal(got, []int{0, 5, 6}) {
		t.Fatalf("list %v", got)
	}
	s.hear(sd(portDiscard, 7, flagFIN))
	s.nothing(s.hear(sd(portDiscard, 8, 0))) // above a known FIN
	s.nothing(s.hear(sd(portDiscard, 6, flagFIN)))
	stat = s.one(s.hear(poll(portDiscard, 8, 2)), typeSTAT)
	if got := offsets(stat.list); !slices.Equal(got, []int{0, 5, 6, 7, 8}) {
		t.Errorf("list %v", got)
	}
	large.sequence, large.data = seqAdd(peerISS, 6), large.data[:1200]
	s.nothing(s.hear(large))
	stat = s.one(s.hear(poll(portDiscard, 8, 3)), typeSTAT)
	if got := offsets(stat.list); !slices.Equal(got, []int{0, 5, 8}) {
		t.Errorf("list %v", got)
	}
}

func TestSTATWithACutListHeldIsOnlyWhatItShows(t *testing.T) {
	s := sending(t)
	snd := &s.conn(portChargen).snd
	s.hear(s.stat(0, snd.vtPS, 0, 1, 2)) // 0 is missing, 1 is held, nothing is said of 2 and 3
	var arrived []bool
	for i := range snd.sds[:4] {
		arrived = append(arrived, snd.sds[i].arrived)
	}
	if !slices.Equal(arrived, []bool{false, true, false, false}) {
		t.Errorf("arrived: %v", arrived)
	}
}

// stuck is a script with a user that does not read, and a buffer of four SDs that are filled.
func stuck(t *testing.T) (*script, *reluctant) {
	s := newScript(t)
	s.ep.cfg.credit = 4
	reader := &reluctant{}
	s.ep.services[portDiscard] = func() app { return reader }
	s.open(portDiscard)
	return s, reader
}

func TestReportOfALossHalvesTheWindowAndLetsNothingGrow(t *testing.T) {
	s := newScript(t)
	s.ep.cfg.initialWindow = 10
	s.open(portChargen)
	s.w.run(time.Millisecond, nil)
	snd := &s.conn(portChargen).snd
	ustat := s.stat(4, 0, 4, 8) // it acknowledges four
	ustat.kind = typeUSTAT
	s.hear(ustat)
	if snd.window.ssthresh != 5000 || snd.window.cwnd != 5000 {
		t.Errorf("%+v", snd.window)
	}
}

func TestReopenedWindowIsAnnounced(t *testing.T) {
	s, reader := stuck(t)
	for i := range 4 {
		s.nothing(s.hear(sd(portDiscard, i, 0)))
	}
	c := s.conn(portDiscard)
	full := s.one(s.hear(poll(portDiscard, 4, 3)), typeSTAT)
	if full.sequence != full.nMR || seqDist(peerISS, full.nMR) != 4 {
		t.Fatalf("STAT %+v", full)
	}
	s.nothing(s.hear(sd(portDiscard, 4, 0)))
	s.said = nil
	c.rcv.read() // one SD is less than half the buffer
	c.run(s.w.now)
	s.nothing(s.said)
	s.nothing(s.hear(sd(portDiscard, 4, 0))) // nor has it been announced
	reader.willing = true
	s.said = nil
	c.run(s.w.now)
	stat := s.one(s.said, typeSTAT)
	if stat.nPS != 0 || stat.timestamp != 0 || len(stat.list) != 0 ||
		seqDist(stat.sequence, stat.nMR) != 4 {
		t.Errorf("STAT %+v", stat)
	}
	s.said = nil
	c.run(s.w.now)
	s.nothing(s.said)
}

func TestNothingIsAnnouncedAfterTheFIN(t *testing.T) {
	s, reader := stuck(t)
	for i := range 4 {
		s.nothing(s.hear(sd(portDiscard, i, uint8(i/3)*flagFIN)))
	}
	s.one(s.hear(poll(portDiscard, 4, 1)), typeSTAT)
	reader.willing = true
	s.said = nil
	s.conn(portDiscard).run(s.w.now)
	if s.saidKind(typeSTAT) != 0 {
		t.Errorf("said %+v", s.said)
	}
}

func TestSDAcknowledgedBeforeNeedsNoPOLL(t *testing.T) {
	s := newScript(t)
	s.open(portChargen)
	s.w.run(2*time.Second, func() bool { return s.conn(portChargen).snd.vtPS == 1 })
	s.hear(s.stat(3, 1))
	s.w.run(time.Millisecond, nil)
	snd := &s.conn(portChargen).snd
	if snd.openSince == never {
		t.Fatal("no SD is without POLL")
	}
	s.hear(s.stat(4, 0))
	for i := range snd.sds {
		if snd.sds[i].stamp == snd.vtPS && snd.sds[i].at < snd.openSince {
			t.Error("one that is unacknowledged is older")
		}
	}
	r := snd.begin(snd.vtS, snd.vtMS)
	r.finish(s.w.now, snd.vtS)
	if snd.openSince != never || snd.silenceAt != never {
		t.Errorf("POLL for SDs since %v, silence at %v", snd.openSince, snd.silenceAt)
	}
}

func TestAnnouncementIsNoAnswerToAPOLL(t *testing.T) {
	s := sending(t)
	snd := &s.conn(portChargen).snd
	announcement := s.stat(1, 0)
	announcement.nMR = seqAdd(s.iss, 200)
	s.hear(announcement)
	if snd.vtA != seqAdd(s.iss, 1) || snd.vtMS != seqAdd(s.iss, 200) || snd.vtPA != 0 ||
		snd.rtt.known || snd.noResponseAt != never {
		t.Errorf("VT(A) %d, VT(MS) %d, VT(PA) %d", snd.vtA, snd.vtMS, snd.vtPA)
	}
	s.hear(s.stat(1, 0, 1, 2, 4))
	if len(s.again()) != 0 {
		t.Error("one with a list is valid")
	}
}

func TestPollNumbersSkipZero(t *testing.T) {
	s := sending(t)
	snd := &s.conn(portChargen).snd
	snd.vtPS = seqMask - 1
	var numbers []uint32
	for range 3 {
		var p packet
		snd.nextPoll(s.w.now, &p)
		numbers = append(numbers, p.nPS)
	}
	if !slices.Equal(numbers, []uint32{seqMask, 1, 2}) {
		t.Errorf("numbers %v", numbers)
	}
}

func TestSecondSilenceIsAReductionSoThatOlderLossesDoNotHalveAgain(t *testing.T) {
	s := sending(t)
	snd := &s.conn(portChargen).snd
	s.w.run(20*time.Second, func() bool { return snd.silences == 2 })
	if snd.window.cwnd != 1000 || snd.window.ssthresh != 2000 {
		t.Fatalf("after two silences: %+v", snd.window)
	}
	ustat := s.stat(0, 0, 0, 1)
	ustat.kind = typeUSTAT
	s.hear(ustat) // it was sent before
	if snd.window.ssthresh != 2000 || snd.window.cwnd != 1000 {
		t.Errorf("after the report: %+v", snd.window)
	}
	if snd.sds[0].sent != 1 {
		t.Error("a retransmission leaves with 3,000 octets in flight (STP-CG-002)")
	}
	s.hear(s.stat(0, snd.vtPS, 0, 4))
	if snd.sds[0].sent != 2 || snd.flight != 1000 {
		t.Errorf("%d octets in flight after a report of everything as lost", snd.flight)
	}
}

func TestFirstRetransmissionAfterALossDoesNotWait(t *testing.T) {
	s := sending(t)
	snd := &s.conn(portChargen).snd
	s.w.run(time.Millisecond, nil)
	snd.rtt.measure(600 * time.Millisecond)
	snd.pace = pacer{missing: 4000, at: s.w.now}
	ustat := s.stat(0, 0, 0, 2)
	ustat.kind = typeUSTAT
	said := s.hear(ustat)
	if again := s.one(said, typeSD); again.sequence != s.iss || snd.pace.missing != 4000 {
		t.Errorf("SD %+v, bucket %+v", again, snd.pace)
	}
}

func TestWindowGrowsOnlyIfHalfOfItWasInFlight(t *testing.T) {
	for _, test := range []struct{ cwnd, flight, octets, grown int }{
		{10_000, 10_000, 4000, 4000}, {10_000, 5000, 5000, 5000}, {10_000, 4999, 4999, 0},
		{20_000, 20_000, 19_999, 0}, {20_000, 20_000, 20_000, 2000}, {18_000, 18_000, 4000, 2000},
	} {
		w := congestion{}
		w.start(1000, 4, 1000)
		w.cwnd, w.ssthresh = test.cwnd, 20_000
		w.arrived(test.octets, test.flight)
		if w.cwnd != test.cwnd+test.grown {
			t.Errorf("%+v: window %d", test, w.cwnd)
		}
	}
}

func TestPollIntervalAndSilenceTimeFollowTheRoundTripTime(t *testing.T) {
	for _, test := range []struct{ smoothed, deviation, interval, silence time.Duration }{
		{600, 0, 200, 800}, {600, 100, 200, 1000}, {30, 0, 20, 200}, {90, 0, 30, 200}, {9000, 0, 2000, 11000},
	} {
		s := sender{rtt: roundTrip{
			smoothed: test.smoothed * time.Millisecond, deviation: test.deviation * time.Millisecond,
			known: true,
		}}
		if s.interval() != test.interval*time.Millisecond || s.silence() != test.silence*time.Millisecond {
			t.Errorf("%+v: %v and %v", test, s.interval(), s.silence())
		}
	}
}

func TestUserThatWritesLittleByLittleMakesNotEverySDPoll(t *testing.T) {
	s := newScript(t)
	s.ep.services[portDiscard] = func() app { return &mute{} }
	s.open(portDiscard)
	c := s.conn(portDiscard)
	c.snd.rtt.measure(600 * time.Millisecond) // the poll interval is 200 ms
	write := func(after time.Duration, close bool, kinds ...uint8) {
		t.Helper()
		s.w.run(after, nil)
		if close {
			c.close()
		}
		c.write([]byte("x"))
		s.ep.settle(s.w.now, c)
		var said []uint8
		for _, p := range s.said {
			said = append(said, p.kind)
		}
		if !slices.Equal(said, kinds) {
			t.Errorf("said %v, not %v", said, kinds)
		}
		s.said = nil
	}
	s.said = nil
	write(0, false, typeSDP) // the first
	write(50*time.Millisecond, false, typeSD)
	write(50*time.Millisecond, false, typeSD)
	write(50*time.Millisecond, false, typeSD)
	write(150*time.Millisecond, false, typePOLL, typeSD) // 200 ms after the first, and one more SD
	seen := s.stat(5, c.snd.vtPS)
	seen.destination = portDiscard
	s.nothing(s.hear(seen)) // the fifth is acknowledged before its POLL
	write(150*time.Millisecond, false, typeSDP)
	write(50*time.Millisecond, true, typeSDP) // the end
}

func TestPOLLsFollowSDsWithinAnIntervalAndKeepTheirDistance(t *testing.T) {
	for _, loss := range []float64{0, 0.02} {
		w, d, o := pair(t, 24)
		w.loss = loss
		open := instant(never) // the first SD without a POLL
		var lastPoll instant
		sds, polls, interval := 0, 0, instant(0)
		w.seen = func(from, to netip.AddrPort, p *packet) {
			if from != w.address(2) {
				return
			}
			for _, c := range w.ends[from].conns {
				if c.snd.rtt.known {
					interval = c.snd.interval()
				}
			}
			switch p.kind {
			case typeSD, typeSDP:
				sds++
				open = min(open, w.now)
			}
			if p.kind == typeSDP || p.kind == typePOLL {
				if loss == 0 && lastPoll > 5*time.Second && w.now-lastPoll < interval/2 && w.now < 20*time.Second {
					t.Errorf("POLLs %v apart at %v", w.now-lastPoll, w.now)
				}
				lastPoll, open = w.now, never
				polls++
			} else if open != never && lastPoll > 5*time.Second && w.now-open > interval+rideTime {
				t.Errorf("no POLL %v after an SD at %v", w.now-open, w.now)
			}
		}
		d.obey(command{to: w.address(1), service: portDiscard, octets: 3_000_000})
		w.run(600*time.Second, func() bool { return len(o.lines) == 1 })
		expectOK(t, o.lines[0])
		if polls < 20 || polls*4 > sds {
			t.Errorf("%d POLLs for %d SDs", polls, sds)
		}
	}
}

func TestSilenceDoublesUpTo15SecondsAndAnyReportEndsThat(t *testing.T) {
	for _, kind := range []uint8{typeSTAT, typeUSTAT} {
		s := sending(t)
		snd := &s.conn(portChargen).snd
		last := s.w.now
		for _, seconds := range []int{1, 2, 4, 8, 15, 15} {
			newest := snd.vtPS
			s.w.run(20*time.Second, func() bool { return snd.vtPS != newest })
			if s.w.now-last != time.Duration(seconds)*time.Second {
				t.Fatalf("a POLL %v after the one before, not %d s", s.w.now-last, seconds)
			}
			last = s.w.now
		}
		report := s.stat(0, 0, 0, 1)
		if report.kind = kind; kind == typeSTAT {
			report.nPS, report.list = snd.vtPS, nil
			snd.polled[snd.vtPS%pollRecord] = s.w.now - 600*time.Millisecond
		}
		s.hear(report)
		if snd.silences != 0 || snd.silenceAt != s.w.now+snd.silence() {
			t.Errorf("type %d: the next POLL after %v", kind, snd.silenceAt-s.w.now)
		}
	}
}

func TestProbesOfAClosedWindowNeverComeFasterAgain(t *testing.T) {
	s := newScript(t)
	begin := s.begin(portChargen)
	begin.nMR = 4
	s.accepts(begin)
	snd := &s.conn(portChargen).snd
	closed := s.stat(4, snd.vtPS)
	closed.nMR = closed.sequence
	s.hear(closed)
	if !snd.closed() {
		t.Fatal("the window is not closed")
	}
	last, before := s.w.now, instant(0)
	for range 12 {
		newest := snd.vtPS
		s.w.run(200*time.Second, func() bool { return snd.vtPS != newest })
		after := s.w.now - last
		if after < min(before*19/10, 15*time.Second) || after > 15*time.Second+1 {
			t.Errorf("%v and then %v between answer and POLL", before, after)
		}
		before = after
		s.w.run(600*time.Millisecond, nil)
		last = s.w.now
		closed.nPS = snd.vtPS
		s.hear(closed)
	}
	closed.nMR, closed.nPS = seqAdd(closed.nMR, 10), 0
	if said := s.hear(closed); len(said) != 4 {
		t.Errorf("said %+v", said)
	}
	if snd.silenceWait != snd.silence() {
		t.Error("credit does not end the doubling")
	}
}

func TestDataThatMeetsNoCreditIsAskedFor(t *testing.T) {
	s := newScript(t)
	user := &reluctant{}
	s.ep.services[portDiscard] = func() app { return user }
	begin := s.begin(portDiscard)
	begin.nMR = 4
	s.nothing(s.accepts(begin))
	c := s.conn(portDiscard)
	for range 4 {
		c.write([]byte("x"))
		s.ep.settle(s.w.now, c)
	}
	full := s.stat(4, c.snd.vtPS)
	full.destination, full.nMR = portDiscard, full.sequence
	s.hear(full)
	c.write([]byte("y")) // only now is there something that waits for credit
	s.said = nil
	s.ep.settle(s.w.now, c)
	s.nothing(s.said)
	s.w.run(1500*time.Millisecond, nil)
	if s.saidKind(typePOLL) == 0 {
		t.Error("nobody asks")
	}
}

func TestBucketHoldsFourSMSSAndWhatFlowsInWithinTenMilliseconds(t *testing.T) {
	w, d, o := pair(t, 25)
	type sent struct {
		at     instant
		octets int
	}
	var all []sent
	largest := 0.0
	again := map[uint32]bool{}
	w.seen = func(from, to netip.AddrPort, p *packet) {
		if from != w.address(2) || p.kind != typeSD && p.kind != typeSDP {
			return
		}
		for _, c := range w.ends[from].conns {
			if c.state == ready && c.snd.rtt.known {
				largest = max(largest, c.snd.window.pace(c.snd.rtt.smoothed))
				if !again[p.sequence] {
					all = append(all, sent{w.now, len(p.data)})
				}
				again[p.sequence] = true
			}
		}
	}
	expectOK(t, open(w, d, o, portDiscard, 1_000_000, 60*time.Second))
	for i := range all {
		octets := 0
		for _, other := range all[i:] {
			octets += other.octets
			if most := largest*(other.at-all[i].at+bucketTime).Seconds() + 4*1200 + 1; float64(octets) > most {
				t.Fatalf("%d octets within %v, not %.0f", octets, other.at-all[i].at, most)
			}
		}
	}
}

func TestNewSDsLeaveWithinTheWindowAndTheCredit(t *testing.T) {
	w, d, o := pair(t, 26)
	w.loss, w.jitter = 0.01, 50*time.Millisecond
	seen := map[uint32]bool{}
	w.seen = func(from, to netip.AddrPort, p *packet) {
		if from != w.address(2) || p.kind != typeSD && p.kind != typeSDP || seen[p.sequence] {
			return
		}
		seen[p.sequence] = true
		for _, c := range w.ends[from].conns {
			if s := &c.snd; s.flight > s.window.cwnd || !seqBelow(p.sequence, s.vtMS) {
				t.Errorf("%d octets in flight, window %d", s.flight, s.window.cwnd)
			}
		}
	}
	expectOK(t, open(w, d, o, portDiscard, 500_000, 300*time.Second))
}
