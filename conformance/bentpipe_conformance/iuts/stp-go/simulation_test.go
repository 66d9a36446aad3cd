package main

import (
	"container/heap"
	"fmt"
	"math/rand"
	"net/netip"
	"testing"
	"time"
)

// world is two endpoints, and whoever else, on links with delay and loss, in virtual time.
type world struct {
	t       *testing.T
	now     instant
	random  *rand.Rand
	ends    map[netip.AddrPort]*endpoint
	flights flights
	counter int

	delay, jitter time.Duration
	loss, twice   float64
	// drop decides the fate of single packets; seen is told of every packet sent.
	drop func(from, to netip.AddrPort, p *packet) bool
	seen func(from, to netip.AddrPort, p *packet)
}

type flying struct {
	at       instant
	order    int
	from, to netip.AddrPort
	octets   []byte
}

type flights []flying

func (f flights) Len() int { return len(f) }
func (f flights) Less(i, j int) bool {
	return f[i].at < f[j].at || f[i].at == f[j].at && f[i].order < f[j].order
}
func (f flights) Swap(i, j int) { f[i], f[j] = f[j], f[i] }
func (f *flights) Push(x any)   { *f = append(*f, x.(flying)) }
func (f *flights) Pop() any {
	last := (*f)[len(*f)-1]
	*f = (*f)[:len(*f)-1]
	return last
}

func newWorld(t *testing.T, seed int64) *world {
	t.Logf("seed %d", seed)
	return &world{
		t: t, random: rand.New(rand.NewSource(seed)), ends: map[netip.AddrPort]*endpoint{},
		delay: 300 * time.Millisecond, now: time.Second,
	}
}

func testConfig(random *rand.Rand) config {
	return config{
		maxSD: 1200, maxSTAT: 67, credit: 256, window: 256, initialWindow: 4,
		initialInterval: time.Second, connections: 64, keepAlive: 600 * time.Second,
		random: random.Uint32,
	}
}

func (w *world) address(number int) netip.AddrPort {
	return netip.MustParseAddrPort(fmt.Sprintf("192.0.2.%d:9899", number))
}

func (w *world) add(number int, cfg config) *endpoint {
	own := w.address(number)
	ep := newEndpoint(cfg, standardServices(nil), func(to netip.AddrPort, octets []byte) {
		w.send(own, to, octets)
	})
	w.ends[own] = ep
	return ep
}

func (w *world) send(from, to netip.AddrPort, octets []byte) {
	var p packet
	if err := p.parse(octets, 0); err != nil {
		w.t.Fatalf("%v sends a packet that is no packet: %v", from, err)
	}
	if len(octets) != p.length() && p.kind != typeBEGIN {
		w.t.Fatalf("length() of type %d is %d, not %d", p.kind, p.length(), len(octets))
	}
	if w.seen != nil {
		w.seen(from, to, &p)
	}
	if w.drop != nil && w.drop(from, to, &p) || w.random.Float64() < w.loss {
		return
	}
	w.fly(from, to, octets)
	if w.random.Float64() < w.twice {
		w.fly(from, to, octets)
	}
}

func (w *world) fly(from, to netip.AddrPort, octets []byte) {
	at := w.now + w.delay
	if w.jitter > 0 {
		at += time.Duration(w.random.Int63n(int64(w.jitter)))
	}
	w.counter++
	heap.Push(&w.flights, flying{at, w.counter, from, to, append([]byte(nil), octets...)})
}

// run lets time pass until nothing is left to do, done says so, or the time is over.
func (w *world) run(limit time.Duration, done func() bool) {
	end := w.now + limit
	for steps := 0; done == nil || !done(); steps++ {
		if steps > 5_000_000 {
			w.t.Fatal("the endpoints never rest")
		}
		next := never
		if len(w.flights) > 0 {
			next = w.flights[0].at
		}
		for _, ep := range w.ends {
			next = min(next, ep.deadline())
		}
		if next > end {
			w.now = min(end, next)
			return
		}
		if next < w.now {
			next = w.now
		}
		w.now = next
		for len(w.flights) > 0 && w.flights[0].at <= w.now {
			arriving := heap.Pop(&w.flights).(flying)
			if ep := w.ends[arriving.to]; ep != nil {
				ep.receive(w.now, arriving.from, arriving.octets)
				checkBounds(w.t, ep)
			}
		}
		for _, number := range []int{1, 2, 3} {
			if ep := w.ends[w.address(number)]; ep != nil {
				ep.tick(w.now)
				if ep.deadline() <= w.now {
					w.t.Fatalf("a deadline stays in the past: %v, now %v", ep.deadline(), w.now)
				}
			}
		}
	}
}

// checkBounds looks at what no packet may break: memory, timers, and the order of the variables.
func checkBounds(t *testing.T, ep *endpoint) {
	if len(ep.conns) > ep.cfg.connections || len(ep.timers) != len(ep.conns) {
		t.Fatalf("%d connections, %d timers", len(ep.conns), len(ep.timers))
	}
	if i := &ep.issuer; len(i.used) > maxUsed || len(i.bars) > len(i.used) || len(ep.purse.tokens) > maxKept {
		t.Fatalf("%d used cookies of %d addresses, %d kept", len(i.used), len(i.bars), len(ep.purse.tokens))
	}
	for _, c := range ep.conns {
		if c.state != ready {
			continue
		}
		r, s := &c.rcv, &c.snd
		if seqDist(r.vrR, r.vrH) > seqDist(r.vrR, r.vrMR) || seqDist(r.vrR, r.vrMR) > r.window ||
			len(r.queue) > r.window {
			t.Fatalf("receiver: %d %d %d, %d queued", r.vrR, r.vrH, r.vrMR, len(r.queue))
		}
		flight := 0
		for i := range s.sds {
			if !s.sds[i].arrived && !s.sds[i].queued {
				flight += s.sds[i].octets()
			}
		}
		if flight != s.flight || len(s.sds) != seqDist(s.vtA, s.vtS) ||
			len(s.sds) > ep.cfg.window || len(s.again) > len(s.sds)+ep.cfg.window {
			t.Fatalf("sender: %d in flight, not %d; %d SDs", flight, s.flight, len(s.sds))
		}
		if c.ccAt == never && s.openSince != never && s.stopped() && s.pollAt == never {
			t.Fatal("no POLL is going to follow the last SD (STP-PL-003)")
		}
		if c.ccAt == never && s.unacknowledged() && min(s.silenceAt, s.pollAt, s.gate) == never {
			t.Fatal("no timer asks for what is unacknowledged (STP-DT-004)")
		}
		if len(s.buffer) > 3*ep.cfg.maxSD {
			t.Fatalf("%d octets wait to be sent", len(s.buffer))
		}
	}
}

// outcome collects what callers report.
type outcome struct{ lines []string }

func (o *outcome) report(line string) { o.lines = append(o.lines, line) }

func (w *world) desk(number int, o *outcome) *desk {
	ep := w.ends[w.address(number)]
	return &desk{ep: ep, clock: func() instant { return w.now }, report: o.report}
}
