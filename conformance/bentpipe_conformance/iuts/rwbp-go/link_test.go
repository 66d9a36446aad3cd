package main

import (
	"container/heap"
	"math/rand"
	"testing"
	"time"
)

// event is a packet that arrives, or something a test does.
type event struct {
	at    instant
	order int
	do    func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// world is two endpoints and a link between them, in a time of their own.
type world struct {
	t     *testing.T
	now   instant
	queue events
	order int
	hosts [2]*endpoint
	// Of the link, in both directions: latency, and the time from one packet to the next.
	latency, spacing time.Duration
	free             [2]instant
	// lost decides on a packet that leaves host from; watch sees it before.
	lost  func(from int, s *segment) bool
	watch func(from int, s *segment)
	// delay is added to the latency of a packet.
	delay func() time.Duration
}

var (
	upstream   = address{192, 0, 2, 1}
	downstream = address{192, 0, 2, 9}
)

func newWorld(t *testing.T, mtu int, latency time.Duration) *world {
	w := &world{t: t, latency: latency}
	w.hosts[0] = newEndpoint(upstream, mtu, func(packet []byte) { w.carry(0, packet) })
	w.hosts[1] = newEndpoint(downstream, mtu, func(packet []byte) { w.carry(1, packet) })
	return w
}

func (w *world) at(when instant, do func()) {
	w.order++
	heap.Push(&w.queue, event{when, w.order, do})
}

func (w *world) carry(from int, packet []byte) {
	source, destination, bytes, ok := parsePacket(packet)
	if !ok {
		w.t.Fatal("a packet that cannot be read")
	}
	s, ok := parseSegment(source, destination, bytes)
	if !ok {
		w.t.Fatal("a segment that cannot be read")
	}
	if w.watch != nil {
		w.watch(from, s)
	}
	leaves := max(w.now, w.free[from])
	if s.carries() {
		w.free[from] = leaves + w.spacing
	}
	if w.lost != nil && w.lost(from, s) {
		return
	}
	arrives := leaves + w.latency
	if w.delay != nil {
		arrives += w.delay()
	}
	w.at(arrives, func() { w.hosts[1-from].receive(packet, w.now) })
}

// run lets time pass until it is over, or nothing happens any more.
func (w *world) run(until instant) {
	for {
		next := min(w.hosts[0].deadline(), w.hosts[1].deadline())
		if len(w.queue) > 0 {
			next = min(next, w.queue[0].at)
		}
		if next > until {
			w.now = until
			return
		}
		w.now = max(w.now, next)
		if len(w.queue) > 0 && w.queue[0].at <= w.now {
			heap.Pop(&w.queue).(event).do()
			continue
		}
		for _, host := range w.hosts {
			host.advance(w.now)
		}
	}
}

func (w *world) call(port uint16, owner user) *connection {
	w.t.Helper()
	c, err := w.hosts[0].call(downstream, port, owner, w.now)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// lossy loses packets of both directions at random.
func lossy(random *rand.Rand, data, bare float64) func(int, *segment) bool {
	return func(_ int, s *segment) bool {
		if s.carries() {
			return random.Float64() < data
		}
		return random.Float64() < bare
	}
}
