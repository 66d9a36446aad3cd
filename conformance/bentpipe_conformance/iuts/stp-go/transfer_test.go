package main

import (
	"encoding/binary"
	"math/rand"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// pair is a world with a server, number 1, and a caller, number 2.
func pair(t *testing.T, seed int64) (*world, *desk, *outcome) {
	w := newWorld(t, seed)
	w.add(1, testConfig(w.random))
	w.add(2, testConfig(w.random))
	o := &outcome{}
	return w, w.desk(2, o), o
}

// open calls a service of the server and waits for the end.
func open(w *world, d *desk, o *outcome, service uint16, octets int, limit time.Duration) string {
	d.obey(command{to: w.address(1), service: service, octets: octets})
	wanted := len(o.lines) + 1
	w.run(limit, func() bool { return len(o.lines) == wanted })
	if len(o.lines) != wanted {
		w.t.Fatalf("service %d, %d octets: no end within %v", service, octets, limit)
	}
	return o.lines[wanted-1]
}

func expectOK(t *testing.T, line string) {
	t.Helper()
	if !strings.Contains(line, " ok ") {
		t.Fatalf("the connection failed: %s", line)
	}
}

func TestCleanLinkServicesDeliverEverySize(t *testing.T) {
	w, d, o := pair(t, 1)
	for _, service := range []uint16{portEcho, portDiscard, portChargen} {
		for _, octets := range []int{0, 1, 511, 512, 513, 2048, 2049, 100_000} {
			expectOK(t, open(w, d, o, service, octets, 300*time.Second))
		}
	}
	w.run(60*time.Second, nil)
	for address, ep := range w.ends {
		if len(ep.conns) != 0 || ep.deadline() != never {
			t.Errorf("%v keeps %d connections, next timer %v", address, len(ep.conns), ep.deadline())
		}
	}
}

func TestLossyReorderingDuplicatingLinkStreamsArriveIntact(t *testing.T) {
	for seed := int64(1); seed <= 30; seed++ {
		w, d, o := pair(t, seed)
		w.loss, w.twice = 0.05, 0.02
		if seed%2 == 0 {
			w.jitter = 100 * time.Millisecond
		}
		for _, service := range []uint16{portEcho, portDiscard, portChargen} {
			expectOK(t, open(w, d, o, service, 150_000, 900*time.Second))
		}
	}
}

func TestNumbersThatWrapStreamArrivesIntact(t *testing.T) {
	for seed := int64(1); seed <= 5; seed++ {
		w, d, o := pair(t, seed)
		w.loss = 0.03
		for _, ep := range w.ends {
			ep.cfg.random = func() uint32 { return seqMask - 40 }
		}
		expectOK(t, open(w, d, o, portEcho, 200_000, 900*time.Second))
	}
}

func TestSmallCreditClosedAndReopenedStreamArrivesIntact(t *testing.T) {
	w, d, o := pair(t, 3)
	w.loss = 0.02
	for _, ep := range w.ends {
		ep.cfg.credit = 4
	}
	expectOK(t, open(w, d, o, portEcho, 60_000, 900*time.Second))
}

func TestUserThatStopsReadingSenderProbesAndGoesOn(t *testing.T) {
	w, d, o := pair(t, 4)
	reader := &reluctant{}
	w.ends[w.address(1)].services[portDiscard] = func() app { return reader }
	polls := 0
	w.seen = func(from, to netip.AddrPort, p *packet) {
		if from == w.address(2) && p.kind == typePOLL {
			polls++
		}
	}
	d.obey(command{to: w.address(1), service: portDiscard, octets: 2_000_000})
	w.run(60*time.Second, nil)
	before := polls
	w.run(300*time.Second, nil)
	if probes := polls - before; probes < 18 || probes > 21 {
		t.Errorf("%d POLLs in 300 s of a closed window", probes)
	}
	reader.willing = true
	for _, c := range w.ends[w.address(1)].conns {
		c.run(w.now)
	}
	opened := w.now
	w.run(600*time.Second, func() bool { return len(o.lines) == 1 })
	if len(o.lines) != 1 {
		t.Fatal("the stream never ends")
	}
	expectOK(t, o.lines[0])
	if w.now-opened > 30*time.Second {
		t.Errorf("reopening took %v: it is not announced", w.now-opened)
	}
}

type reluctant struct {
	discard
	willing bool
}

func (r *reluctant) step(c *conn) {
	if r.willing {
		r.discard.step(c)
	}
}

func TestSilentPeerIsGivenUp(t *testing.T) {
	w, d, o := pair(t, 5)
	d.obey(command{to: w.address(1), service: portDiscard, octets: 1_000_000})
	w.run(3*time.Second, nil)
	cut := w.now
	var polls []instant
	w.drop = func(from, to netip.AddrPort, p *packet) bool { return true }
	w.seen = func(from, to netip.AddrPort, p *packet) {
		if from == w.address(2) && p.kind == typePOLL {
			polls = append(polls, w.now)
		}
	}
	w.run(90*time.Second, func() bool { return len(o.lines) == 1 })
	if len(o.lines) == 0 || !strings.Contains(o.lines[0], errNoAnswer.Error()) {
		t.Fatalf("said: %q", o.lines)
	}
	if after := w.now - cut; after < 58*time.Second || after > 63*time.Second {
		t.Errorf("given up after %v", after)
	}
	for i := len(polls) - 4; i < len(polls); i++ { // the usual ones before the first silence aside
		if last, before := polls[i]-polls[i-1], polls[i-1]-polls[i-2]; last < min(before*3/2, mostSilence) {
			t.Errorf("POLLs %v and then %v apart", before, last)
		}
	}
	w.run(40*time.Second, nil)
	if n := len(w.ends[w.address(2)].conns); n != 0 {
		t.Errorf("%d connections are left", n)
	}
}

func TestNobodyAnswersCallFails(t *testing.T) {
	w, d, o := pair(t, 6)
	var begins []instant
	w.seen = func(from, to netip.AddrPort, p *packet) {
		if p.kind == typeBEGIN {
			begins = append(begins, w.now)
		}
	}
	w.loss = 1
	start := w.now
	line := open(w, d, o, portEcho, 100, 100*time.Second)
	if !strings.Contains(line, errNoAnswer.Error()) || len(begins) != maxCC {
		t.Fatalf("%d BEGINs, said %q", len(begins), line)
	}
	if w.now-start != 31*time.Second {
		t.Errorf("failed after %v", w.now-start)
	}
}

func TestClosedPortRefuses(t *testing.T) {
	w, d, o := pair(t, 7)
	delete(w.ends[w.address(1)].services, portEcho)
	if line := open(w, d, o, portEcho, 1, 10*time.Second); !strings.Contains(line, errRefused.Error()) {
		t.Fatalf("said %q", line)
	}
}

// both writes 3,000 octets and counts what comes.
type both struct {
	sent, got int
	report    func(string)
}

func (b *both) step(c *conn) {
	for data := c.read(); data != nil; data = c.read() {
		b.got += len(data)
	}
	for b.sent < 3000 && c.room() > 0 {
		data := patternAt(b.sent, min(c.room(), 3000-b.sent))
		c.write(data)
		b.sent += len(data)
	}
	if b.sent == 3000 {
		c.close()
	}
}

func (b *both) over(c *conn, outcome error) {
	if outcome != nil {
		b.report(outcome.Error())
	} else if b.got == 3000 {
		b.report("ok 3000")
	}
}

func TestAbortEndsBothSidesAsFailure(t *testing.T) {
	w, d, o := pair(t, 11)
	d.obey(command{to: w.address(1), service: portChargen, octets: 10_000_000})
	w.run(5*time.Second, nil)
	d.obey(command{abort: true})
	w.run(5*time.Second, nil)
	if len(o.lines) != 1 || !strings.Contains(o.lines[0], errUserAborted.Error()) {
		t.Fatalf("said %q", o.lines)
	}
	for address, ep := range w.ends {
		if len(ep.conns) != 0 {
			t.Errorf("%v keeps a connection", address)
		}
	}
}

func TestSpacingAndRateLimitHold(t *testing.T) {
	w, d, o := pair(t, 12)
	for _, ep := range w.ends {
		ep.rate.bitsPerSecond = 1_000_000
		ep.cfg.overhead = 1240 // as much as an SD, so that it shows
	}
	var times []instant
	w.seen = func(from, to netip.AddrPort, p *packet) {
		if from == w.address(2) && (p.kind == typeSD || p.kind == typeSDP) {
			times = append(times, w.now)
		}
	}
	expectOK(t, open(w, d, o, portDiscard, 1_000_000, 60*time.Second))
	for i := range times {
		in := 0
		for _, other := range times[i:] {
			if other-times[i] < 100*time.Millisecond {
				in++
			}
		}
		if most := int(100_000/8/(1212+1240)) + 4 + 1; in > most {
			t.Fatalf("%d SDs in 0.1 s, at most %d fit", in, most)
		}
	}
}

func TestHostilePacketsHarmNeitherConnectionNorEndpoint(t *testing.T) {
	for seed := int64(1); seed <= 20; seed++ {
		w, d, o := pair(t, seed)
		w.delay = 50 * time.Millisecond
		random := rand.New(rand.NewSource(seed))
		var overheard [][]byte
		w.seen = func(from, to netip.AddrPort, p *packet) {
			overheard = append(overheard, p.appendTo(nil, 0))
		}
		d.obey(command{to: w.address(1), service: portEcho, octets: 300_000})
		server := w.ends[w.address(1)]
		for i := 0; i < 3000; i++ {
			w.run(2*time.Millisecond, nil)
			forged := append([]byte(nil), overheard[random.Intn(len(overheard))]...)
			var p packet
			if p.parse(forged, 0) != nil {
				t.Fatal("an own packet cannot be read")
			}
			if p.cookie != nil {
				random.Read(p.cookie) // nor can this be overheard
			}
			if p.kind == typePOLL || p.kind == typeSDP {
				p.csn += 1 + uint32(random.Int31())
			}
			hostile := mutate(random, &p)
			from := w.address(3 + random.Intn(200))
			if random.Intn(2) == 0 {
				from = w.address(2)
				hostile[10] = ^byte(p.tag >> 8) // guessing the tag wrongly
				fixChecksum(hostile)
				if p.kind <= typeBGREJ && p.kind != typeBEGIN {
					continue // these tell the CSNs, which cannot be overheard off the path
				}
				if hostile[4]&15 == typeBEGIN {
					binary.BigEndian.PutUint32(hostile[16:], p.csn+1+uint32(random.Int31()))
					fixChecksum(hostile)
				}
			}
			server.receive(w.now, from, hostile)
			checkBounds(t, server)
			server.receive(w.now, from, hostile[:random.Intn(len(hostile)+1)])
		}
		w.run(600*time.Second, func() bool { return len(o.lines) == 1 })
		if len(o.lines) != 1 {
			t.Fatal("no end")
		}
		expectOK(t, o.lines[0])
	}
}

// mutate makes a packet of random fields, with a right checksum.
func mutate(random *rand.Rand, p *packet) []byte {
	octets := p.appendTo(nil, 0)
	for range 1 + random.Intn(6) {
		octets[random.Intn(len(octets))] = byte(random.Int())
	}
	fixChecksum(octets)
	return octets
}

func fixChecksum(octets []byte) {
	octets[checksumAt], octets[checksumAt+1] = 0, 0
	sum := ^fold(sum16(octets, 0))
	octets[checksumAt], octets[checksumAt+1] = byte(sum>>8), byte(sum)
}

func TestHostilePeerThatKnowsEverythingBreaksOnlyItsOwnConnection(t *testing.T) {
	for seed := int64(1); seed <= 20; seed++ {
		w, d, o := pair(t, seed)
		w.delay = 50 * time.Millisecond
		random := rand.New(rand.NewSource(seed))
		server := w.ends[w.address(1)]
		var last []byte
		w.seen = func(from, to netip.AddrPort, p *packet) {
			if from == w.address(2) {
				last = p.appendTo(nil, 0)
			}
		}
		for _, service := range []uint16{portEcho, portChargen, portDiscard} {
			d.obey(command{to: w.address(1), service: service, octets: 1 << 30})
		}
		for range 5000 {
			w.run(time.Millisecond, nil)
			server.receive(w.now, w.address(2), last)
			var p packet
			if p.parse(last, 0) == nil {
				server.receive(w.now, w.address(2), mutate(random, &p))
			}
			checkBounds(t, server)
		}
		_ = o
		w.add(3, testConfig(random))
		other := &outcome{}
		expectOK(t, open(w, w.desk(3, other), other, portEcho, 10_000, 60*time.Second))
	}
}

func TestManySpoofedBEGINsLeaveNothing(t *testing.T) {
	w, d, o := pair(t, 13)
	server := w.ends[w.address(1)]
	p := packet{
		kind: typeBEGIN, destination: portEcho, version: version, nMR: 100, maxSD: 1200, hasMaxSD: true,
		cookie: make([]byte, cookieLength),
	}
	answered, most := 0, 0
	w.seen = func(from, to netip.AddrPort, p *packet) {
		answered++
		most = max(most, p.length())
	}
	for i := range 100_000 {
		p.source, p.csn = uint16(i), w.random.Uint32()
		w.random.Read(p.cookie)
		from := netip.AddrPortFrom(w.address(3+i%200).Addr(), uint16(i))
		server.receive(w.now, from, p.appendTo(nil, 0))
	}
	w.flights = nil
	checkBounds(t, server)
	if answered != 100_000 || most > 3*fixedLength[typeBEGIN] {
		t.Errorf("%d answers of at most %d octets", answered, most)
	}
	if len(server.conns) != 0 || len(server.issuer.used) != 0 || len(server.issuer.bars) != 0 {
		t.Error("something is kept")
	}
	expectOK(t, open(w, d, o, portEcho, 1000, 60*time.Second))
}
