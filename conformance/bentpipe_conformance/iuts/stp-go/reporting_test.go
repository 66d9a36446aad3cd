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

func TestReopenedWindowIsAnnouncedWithTheNewestPOLLOrZeros(t *testing.T) {
	for _, polls := range [][]uint32{nil, {3, 2}} {
		s, reader := stuck(t)
		for i := range 3 {
			s.hear(sd(portDiscard, i, 0))
		}
		s.hear(sd(portDiscard, 3, 0))
		for _, nPS := range polls {
			s.one(s.hear(poll(portDiscard, 4, nPS)), typeSTAT)
		}
		if len(polls) == 0 {
			s.hear(sd(portDiscard, 3, 0))
			// A USTAT would do as well; here it is a BGAK that has shown the end of the credit.
			s.hear(s.begin(portDiscard))
		}
		reader.willing = true
		s.said = nil
		c := s.conn(portDiscard)
		c.run(s.w.now)
		stat := s.one(s.said, typeSTAT)
		nPS, timestamp := uint32(0), uint32(0)
		if len(polls) > 0 {
			nPS, timestamp = 3, 80
		}
		if stat.nPS != nPS || stat.timestamp != timestamp || seqDist(stat.sequence, stat.nMR) != 4 {
			t.Errorf("after POLLs %v: STAT %+v", polls, stat)
		}
		s.said = nil
		c.run(s.w.now)
		s.nothing(s.said)
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
	if snd.sds[0].sent != 2 { // 3,000 octets are still in flight
		t.Error("the first retransmission waits for the window (STP-CG-006)")
	}
}

func TestLossHalvesWhatWasInFlightBeforeTheReport(t *testing.T) {
	s := newScript(t)
	s.ep.cfg.initialWindow = 10
	s.open(portChargen)
	snd := &s.conn(portChargen).snd
	ustat := s.stat(4, 0, 4, 8) // it acknowledges four
	ustat.kind = typeUSTAT
	s.hear(ustat)
	if snd.window.ssthresh != 5000 {
		t.Errorf("%+v", snd.window)
	}
}

func TestFirstRetransmissionAfterALossWaitsForPacingOnly(t *testing.T) {
	s := sending(t)
	snd := &s.conn(portChargen).snd
	snd.rtt = roundTrip{}
	snd.rtt.measure(600 * time.Millisecond)
	snd.pace.sent(s.w.now)
	ustat := s.stat(0, 0, 0, 1)
	ustat.kind = typeUSTAT
	for _, p := range s.hear(ustat) {
		if p.kind == typeSD || p.kind == typeSDP {
			t.Fatal("sent together with the SD before")
		}
	}
	snd.window.cwnd = 1000 // full
	heard := s.w.now
	s.w.run(5*time.Second, func() bool { return len(snd.sds) > 0 && snd.sds[0].sent == 2 })
	if waited := s.w.now - heard; waited > time.Second {
		t.Errorf("it waits %v", waited)
	}
}

func TestWindowGrowsIfPacingHasKeptItEmptyAndNotIfDataHas(t *testing.T) {
	s := newScript(t)
	s.open(portChargen)
	snd := &s.conn(portChargen).snd
	snd.rtt = roundTrip{}
	snd.rtt.measure(600 * time.Millisecond)
	snd.window.cwnd = 100_000
	s.hear(packet{kind: typePOLL, destination: portChargen, sequence: peerISS, nPS: 1})
	s.w.run(50*time.Millisecond, nil)
	out := len(snd.sds)
	if out < 10 || snd.halfFull() || snd.gate == never {
		t.Fatalf("%d SDs are out: not paced", out)
	}
	s.hear(s.stat(out, snd.vtPS))
	if snd.window.cwnd != 100_000+1000*out {
		t.Errorf("window %d after %d SDs of a paced stream", snd.window.cwnd, out)
	}

	s = newScript(t)
	s.open(portEcho)
	snd = &s.conn(portEcho).snd
	snd.window.cwnd = 100_000
	for i := range 4 {
		s.hear(sd(portEcho, i, 0)) // each comes back at once, and then there is no more
	}
	p := s.stat(4, snd.vtPS)
	p.destination = portEcho
	s.hear(p)
	if snd.vtA != seqAdd(s.iss, 4) || snd.window.cwnd != 100_000 {
		t.Errorf("window %d after an echo of little data", snd.window.cwnd)
	}
}

func TestIntervalThatChangesCountsFromTheLastPOLL(t *testing.T) {
	s := sending(t)
	c := s.conn(portChargen)
	c.snd.rtt = roundTrip{smoothed: 600 * time.Millisecond, known: true} // no deviation
	last := c.snd.pollBase
	c.run(s.w.now)
	if c.snd.pollAt != last+600*time.Millisecond {
		t.Errorf("expires %v after the last POLL", c.snd.pollAt-last)
	}
	c.snd.window.cwnd = 10 * c.snd.window.smss
	c.snd.armPoll(s.w.now)
	if c.snd.pollAt != last+200*time.Millisecond {
		t.Errorf("expires %v after the last POLL", c.snd.pollAt-last)
	}
}

func TestBurstThatPacingStretchesEndsWithAPOLL(t *testing.T) {
	w, d, o := pair(t, 24)
	var lastSD, lastPoll instant // of a window that is full
	bursts := 0
	w.seen = func(from, to netip.AddrPort, p *packet) {
		if from != w.address(2) {
			return
		}
		switch p.kind {
		case typeSD:
			lastSD = w.now
		case typeSDP, typePOLL:
			lastPoll = w.now
			bursts++
		}
	}
	d.obey(command{to: w.address(1), service: portDiscard, octets: 1_000_000})
	for range 300 {
		w.run(10*time.Millisecond, nil)
		for _, c := range w.ends[w.address(2)].conns {
			if c.state == ready && c.snd.window.small() && c.snd.obstacle() == noWindow &&
				lastSD > lastPoll {
				t.Fatalf("the last SD at %v has no POLL at %v", lastSD, w.now)
			}
		}
	}
	if bursts < 3 || len(o.lines) != 0 {
		t.Errorf("%d bursts, said %q", bursts, o.lines)
	}
}

func TestProbesOfAClosedWindowNeverComeFasterAgain(t *testing.T) {
	s := newScript(t)
	begin := s.begin(portChargen)
	begin.nMR = 4
	asked := s.one(s.hear(begin), typeBGAK)
	s.csn, s.iss = asked.csn, asked.sequence
	s.hear(packet{
		kind: typeBGAK, destination: portChargen, sequence: peerISS, csn: peerCSN,
		peerCSN: s.csn, nR: s.iss, nMR: seqAdd(s.iss, 4),
	})
	closed := s.stat(4, s.conn(portChargen).snd.vtPS)
	closed.nMR = closed.sequence
	s.hear(closed)
	if !s.conn(portChargen).snd.closed() {
		t.Fatal("the window is not closed")
	}
	var at []instant
	newest, answering := uint32(0), false
	s.w.seen = func(from, to netip.AddrPort, p *packet) {
		if p.kind == typePOLL {
			at, newest, answering = append(at, s.w.now), p.nPS, true
		}
	}
	s.w.run(5*time.Second, nil) // silence, which has a rhythm of its own (STP-PL-007)
	at = at[len(at)-2:]
	for range 20 {
		s.w.run(200*time.Second, func() bool { return answering })
		s.w.run(600*time.Millisecond, nil)
		answer := closed
		answer.nPS, answering = newest, false
		s.hear(answer)
	}
	if len(at) < 10 {
		t.Fatalf("%d POLLs", len(at))
	}
	for i := 2; i < len(at); i++ {
		before, after := at[i-1]-at[i-2], at[i]-at[i-1]
		if after < min(before*19/10, 15*time.Second) || after > 16*time.Second {
			t.Errorf("%v and then %v between POLLs", before, after)
		}
	}
}

func TestUSTATInSilenceDoesNotEndTheDoublingAndSTATDoes(t *testing.T) {
	s := sending(t)
	snd := &s.conn(portChargen).snd
	s.w.run(100*time.Second, func() bool { return snd.silences == 3 })
	wait, newest, heard := snd.silence(), snd.vtPS, s.w.now+time.Second
	s.w.run(time.Second, nil)
	ustat := s.stat(0, 0, 0, 1)
	ustat.kind = typeUSTAT
	s.hear(ustat)
	if wait < 4*time.Second || snd.vtPS > newest+1 { // one for the burst, which is STP-PL-003's
		t.Fatalf("%v of silence, %d POLLs", wait, snd.vtPS-newest)
	}
	newest = snd.vtPS
	s.w.run(100*time.Second, func() bool { return snd.vtPS != newest })
	if s.w.now-heard != wait {
		t.Errorf("the next POLL comes after %v, not %v", s.w.now-heard, wait)
	}
	if snd.inRow != 1 {
		t.Errorf("%d silences in a row", snd.inRow)
	}
	s.hear(s.stat(0, newest, 0, 4))
	if snd.silences != 0 {
		t.Error("a STAT does not end the silence")
	}
}
