package main

import (
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"testing"
	"time"
)

// client sends a stream, checks that it gets back the same, and closes.
type client struct {
	size, written, read int
	early               bool // closes when everything is written, not when it has been read
	wrong               bool
	failure             error
	done                bool
}

func (u *client) gone(err error) { u.failure = err }

func (u *client) pump(c *connection) {
	space := c.endpoint.scratch
	for count := c.read(space); count > 0; count = c.read(space) {
		for index, octet := range space[:count] {
			u.wrong = u.wrong || octet != stream[(u.read+index)%len(stream)]
		}
		u.read += count
	}
	for room := c.room(); room > 0 && u.written < u.size; room = c.room() {
		from := u.written % len(stream)
		count := min(room, u.size-u.written, len(stream)-from)
		c.write(stream[from : from+count])
		u.written += count
	}
	if u.written == u.size && (u.early || u.read == u.size) {
		c.close()
	}
	u.done = u.done || u.read == u.size && c.drained()
}

func (u *client) check(t *testing.T, w *world, c *connection) {
	t.Helper()
	if u.failure != nil || u.wrong || !u.done {
		t.Fatalf("failure %v, wrong %v, read %d of %d, state %d", u.failure, u.wrong, u.read, u.size, c.state)
	}
	w.run(w.now + 2*timeWait)
	for _, host := range w.hosts {
		if len(host.connections) > 0 || len(host.ring) > 0 || len(host.waiting) > 0 {
			t.Fatalf("connections are left: %d", len(host.connections))
		}
	}
}

// TestTransfers sends streams forth and back under losses, with RWBP and without.
func TestTransfers(t *testing.T) {
	for seed := range int64(120) {
		random := rand.New(rand.NewSource(seed))
		w := newWorld(t, []int{88, 576, 1500}[seed%3], 300*time.Millisecond)
		w.spacing = time.Duration(random.Intn(5)) * time.Millisecond
		losses := []float64{0, 0.01, 0.1, 0.3}[seed/3%4]
		w.lost = lossy(random, losses, losses*random.Float64())
		for _, host := range w.hosts {
			host.receiveBuffer = 1 << (13 + random.Intn(6))
			host.sendBuffer = 1 << (13 + random.Intn(6))
			host.interval = uint8(1 + random.Intn(20))
		}
		w.hosts[1].rwbp = seed%5 != 0
		if !w.hosts[1].rwbp && losses > 0.1 {
			w.lost = lossy(random, 0.1, 0.1) // with more, plain TCP gives up now and then
		}
		if seed%7 == 0 {
			w.delay = func() time.Duration { return time.Duration(random.Intn(40)) * time.Millisecond }
		}
		u := &client{size: random.Intn(100000), early: seed%2 == 0}
		c := w.call(7, u)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w.run(10 * time.Hour)
			if c.agreed != w.hosts[1].rwbp {
				t.Errorf("RWBP agreed: %v", c.agreed)
			}
			u.check(t, w, c)
		})
	}
}

// TestOrderedPathLosesNothingTwice: without reordering and losses of acknowledgments nothing that has
// arrived is sent again before a timeout, and K stays 1.
func TestOrderedPathLosesNothingTwice(t *testing.T) {
	for seed := range int64(20) {
		random := rand.New(rand.NewSource(seed))
		w := newWorld(t, 576, 250*time.Millisecond)
		w.spacing = 4 * time.Millisecond
		w.lost = lossy(random, 0.05, 0)
		u := &client{size: 200000}
		c := w.call(7, u)
		w.run(time.Hour)
		if k := c.sender.(*rwbpSender).falseLoss; k > 0 {
			t.Errorf("seed %d: %d false losses", seed, k)
		}
		u.check(t, w, c)
	}
}

func TestReorderingRaisesTheThreshold(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	w := newWorld(t, 576, 250*time.Millisecond)
	w.spacing = time.Millisecond
	w.delay = func() time.Duration { return time.Duration(random.Intn(10)) * time.Millisecond }
	u := &client{size: 300000}
	c := w.call(7, u)
	w.run(time.Hour)
	if k := c.sender.(*rwbpSender).falseLoss; k < falseLosses {
		t.Errorf("%d false losses", k)
	}
	u.check(t, w, c)
}

// script writes whole segments at times that the test chooses.
type script struct{ quiet }

func (script) pump(*connection) {}

// TestFigure3 is the second exchange of appendix A.
func TestFigure3(t *testing.T) {
	const size, ms = 1000, time.Millisecond
	w := newWorld(t, size+headers, 250*ms)
	w.spacing = 10 * ms
	c := w.call(9, script{})
	w.run(2 * time.Second)
	began, first := w.now, c.sender.sentTo()
	count := 0
	w.lost = func(from int, s *segment) bool {
		if !s.carries() {
			return false
		}
		count++
		return slices.Contains([]int{2, 4, 8, 13, 15}, count)
	}
	var left, right []string
	name := func(of number) int { return int(of-first)/size + 1 }
	w.watch = func(from int, s *segment) {
		if from == 0 {
			left = append(left, fmt.Sprint(name(s.seq)))
			return
		}
		line := fmt.Sprintf("%d: %d", (w.now-began)/ms, name(s.ack))
		for _, each := range s.options.blocks {
			line += fmt.Sprintf(" [%d,%d)", name(each.left), name(each.right))
		}
		right = append(right, line)
	}
	for when, segments := range map[time.Duration]int{0: 6, 700 * ms: 4, 1400 * ms: 4} {
		w.at(began+when, func() {
			c.write(make([]byte, segments*size))
			w.hosts[0].follow(c, w.now)
		})
	}
	w.run(began + 4*time.Second)
	wantLeft := []string{
		"1", "2", "3", "4", "5", "6", "2", "4", "7", "8", "9", "10", "4", "11", "12", "13", "14", "4", "12",
	}
	wantRight := []string{
		"270: 2 [3,4)", "290: 2 [5,6) [3,4)", "400: 2 [5,7) [3,4)", "770: 4 [5,7)", "1050: 4 [5,11)",
		"1670: 4 [13,14) [5,12)", "1780: 4 [13,15) [5,12)", "2170: 12 [13,15)", "2180: 15",
	}
	if !reflect.DeepEqual(left, wantLeft) {
		t.Errorf("sent %v, not %v", left, wantLeft)
	}
	if !reflect.DeepEqual(right, wantRight) {
		t.Errorf("acknowledged\n%q, not\n%q", right, wantRight)
	}
}

// TestHandshake is the first exchange of appendix A.
func TestHandshake(t *testing.T) {
	w := newWorld(t, 1500, 250*time.Millisecond)
	for _, host := range w.hosts {
		host.receiveBuffer = 292000
	}
	var windows []uint16
	w.watch = func(_ int, s *segment) { windows = append(windows, s.window) }
	w.call(9, script{})
	w.run(10 * time.Second)
	if !slices.Equal(windows, []uint16{65535, 65535, 200, 200}) {
		t.Errorf("windows %v", windows)
	}
}

// stubborn reads only when it is told to.
type stubborn struct {
	quiet
	reads bool
}

func (u *stubborn) pump(c *connection) {
	if u.reads {
		c.skip()
	}
}

func TestClosedWindowIsProbed(t *testing.T) {
	for _, rwbp := range []bool{true, false} {
		w := newWorld(t, 1500, 250*time.Millisecond)
		w.hosts[1].rwbp = rwbp
		u := &stubborn{}
		w.hosts[1].listeners[4000] = func() user { return u }
		c := w.call(4000, &chargen{})
		w.run(time.Hour)
		if c.state != established {
			t.Fatalf("state %d with RWBP %v", c.state, rwbp)
		}
		// The update is lost, a probe finds the window open.
		u.reads = true
		w.lost = func(int, *segment) bool { return true }
		peer := w.hosts[1].connections[flow{upstream, c.flow.localPort, 4000}]
		w.hosts[1].follow(peer, w.now)
		w.lost = nil
		before := c.sender.sentTo()
		w.run(w.now + 2*time.Minute)
		if sent := uint32(c.sender.sentTo() - before); sent < 1<<20 {
			t.Errorf("%d octets were sent with RWBP %v", sent, rwbp)
		}
	}
}

func TestSilenceEndsTheConnection(t *testing.T) {
	w := newWorld(t, 1500, 250*time.Millisecond)
	u := &client{size: 1000}
	w.lost = func(int, *segment) bool { return w.now > 400*time.Millisecond }
	w.call(7, u)
	w.run(90 * time.Second)
	if u.failure != nil {
		t.Fatalf("%v after %v", u.failure, w.now)
	}
	w.run(5 * time.Minute)
	if u.failure != errSilent || len(w.hosts[0].connections) > 0 {
		t.Errorf("failure %v", u.failure)
	}
}

func TestAbortAndChallenge(t *testing.T) {
	w := newWorld(t, 1500, 250*time.Millisecond)
	c := w.call(19, &discard{})
	w.run(5 * time.Second)
	resets := 0
	w.watch = func(_ int, s *segment) {
		if s.has(flagRST) && s.seq == c.sender.sentTo() {
			resets++
		}
	}
	c.abort(nil)
	w.watch = nil
	if resets != 1 {
		t.Errorf("%d RSTs", resets)
	}
	w.run(w.now + time.Minute)
	if len(w.hosts[1].connections) > 0 {
		t.Error("the peer did not take the RST")
	}
}

func TestCrossingSYNs(t *testing.T) {
	for _, rwbp := range []bool{true, false} {
		w := newWorld(t, 1500, 250*time.Millisecond)
		w.hosts[1].rwbp = rwbp
		w.hosts[0].port, w.hosts[1].port = 59999, 60000
		left := w.call(60001, script{})
		right, err := w.hosts[1].call(upstream, left.flow.localPort, script{}, 0)
		if err != nil || right.flow.localPort != 60001 {
			t.Fatal(err, right.flow)
		}
		w.run(time.Minute)
		if left.state != established || right.state != established || left.agreed != rwbp || right.agreed != rwbp {
			t.Errorf("states %d %d, agreed %v %v", left.state, right.state, left.agreed, right.agreed)
		}
	}
}

// TestHostilePackets throws segments at an endpoint that are nearly right, and wants it to serve on,
// within its memory.
func TestHostilePackets(t *testing.T) {
	for seed := range int64(60) {
		random := rand.New(rand.NewSource(seed))
		w := newWorld(t, 576, 50*time.Millisecond)
		w.spacing = 20 * time.Millisecond
		w.hosts[1].rwbp = seed%4 != 0
		w.hosts[1].receiveBuffer = 1 << 14
		c := w.call([]uint16{7, 9, 19}[seed%3], &client{size: 1 << 20, early: true})
		w.run(time.Second)
		peer := w.hosts[1]
		// Forged data sets the numbers of the two ends apart, and every answer then calls for another.
		w.lost = lossy(random, 0.5, 0.5)
		for range 3000 {
			forged := forge(random, peer, c)
			packet := forged.marshal(upstream, downstream)
			if random.Intn(10) == 0 {
				packet[random.Intn(len(packet))] ^= byte(1 << random.Intn(8))
			}
			if random.Intn(30) == 0 {
				packet = packet[:random.Intn(len(packet))]
			}
			peer.receive(packet, w.now)
			if random.Intn(20) == 0 {
				w.run(w.now + time.Duration(random.Intn(3000))*time.Millisecond)
			}
			bounded(t, peer)
		}
		w.lost, w.free = nil, [2]instant{w.now, w.now}
		for _, host := range w.hosts {
			for _, attacked := range slices.Clone(host.ring) {
				attacked.abort(nil)
			}
		}
		w.run(w.now + time.Minute)
		u := &client{size: 5000}
		again := w.call(7, u)
		w.run(w.now + time.Hour)
		if u.failure != nil || !u.done || u.wrong {
			t.Fatalf("seed %d: after hostile packets: %v, %d octets, state %d", seed, u.failure, u.read, again.state)
		}
	}
}

// forge makes a segment of connection c, or of none, whose numbers are near those that count.
func forge(random *rand.Rand, peer *endpoint, c *connection) *segment {
	near := func(of number) number {
		if random.Intn(20) == 0 {
			return number(random.Uint32())
		}
		return of + number(random.Intn(4000)-1000)
	}
	f := flow{upstream, c.flow.localPort, c.flow.remotePort}
	forged := &segment{source: f.remotePort, destination: f.localPort, flags: flagACK}
	if random.Intn(30) == 0 {
		forged.source = uint16(random.Intn(1 << 16))
	}
	if random.Intn(8) == 0 {
		forged.flags = byte(random.Intn(256))
		if random.Intn(10) > 0 {
			forged.flags &^= flagRST
		}
	}
	forged.window = uint16(random.Intn(1 << uint(random.Intn(17))))
	var next, una number
	if attacked := peer.connections[f]; attacked != nil && attacked.sender != nil {
		next, una = attacked.receiver.next, attacked.sender.sentTo()-number(random.Intn(3000))
	}
	forged.seq, forged.ack = near(next), near(una)
	if random.Intn(2) == 0 {
		forged.data = make([]byte, random.Intn(40))
	}
	for range random.Intn(4) {
		left := near(una)
		forged.options.blocks = append(forged.options.blocks, block{left, left + number(random.Intn(600))})
	}
	if random.Intn(10) == 0 {
		forged.options = options{
			mss: uint16(random.Intn(70000)), sackPermitted: true,
			rwbp: &offer{uint8(random.Intn(256)), uint16(random.Intn(65536))},
		}
	}
	return forged
}

func bounded(t *testing.T, e *endpoint) {
	t.Helper()
	if len(e.ring) > mostConnections || len(e.waiting) > mostWaiting {
		t.Fatal("too many connections")
	}
	for _, c := range e.ring {
		if len(c.receiver.runs) > int(c.receiver.size) || uint32(len(c.receiver.store)) > c.receiver.size {
			t.Fatal("the receiver has too much")
		}
		switch s := c.sender.(type) {
		case *rwbpSender:
			octets := len(s.unsent)
			for _, each := range s.outstanding {
				octets += len(each.data) + perSegment
			}
			if octets > e.sendBuffer+perSegment*(e.sendBuffer/int(s.smss)+2) {
				t.Fatalf("the sender has %d octets", octets)
			}
		case *plainSender:
			if len(s.unsent) > e.sendBuffer {
				t.Fatal("the sender has too much")
			}
		}
	}
}

func TestManyConnectionsInTurn(t *testing.T) {
	w := newWorld(t, 1500, 50*time.Millisecond)
	w.lost = lossy(rand.New(rand.NewSource(3)), 0.02, 0.02)
	for round := range 30 {
		var users []*client
		for range 10 {
			u := &client{size: 20000 + round}
			w.call(7, u)
			users = append(users, u)
		}
		w.run(w.now + 10*time.Minute)
		for _, u := range users {
			if !u.done || u.wrong || u.failure != nil {
				t.Fatalf("round %d: %+v", round, u)
			}
		}
	}
}

func TestChargenEndsWithThePeer(t *testing.T) {
	for _, rwbp := range []bool{true, false} {
		w := newWorld(t, 1500, 250*time.Millisecond)
		w.hosts[1].rwbp = rwbp
		c := w.call(19, &take{left: 500000})
		w.run(10 * time.Minute)
		if len(w.hosts[0].connections)+len(w.hosts[1].connections) > 0 {
			t.Errorf("state %d with RWBP %v", c.state, rwbp)
		}
	}
}
