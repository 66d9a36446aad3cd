package main

import (
	"bytes"
	"math/rand"
	"slices"
	"testing"
)

func rwbpReceiver(irs number, size, unit uint32) receiver {
	r := newReceiver(irs, size, unit, uint16(min(size, 65535)))
	r.rwbp, r.sack, r.every = true, true, 8
	return r
}

// TestExampleOfTheBlocks is that of section 7.2.
func TestExampleOfTheBlocks(t *testing.T) {
	r := rwbpReceiver(0, 4000, 48)
	for left := number(20); left <= 70; left += 10 {
		r.runs = append(r.runs, block{left, left + 5})
	}
	r.last, r.began, r.turn = 42, true, 30
	for _, want := range [][]number{{40, 70, 50, 60}, {40, 70, 20, 30}, {40, 70, 50, 60}} {
		var lefts []number
		for _, each := range r.blocks() {
			lefts = append(lefts, each.left)
		}
		if !slices.Equal(lefts, want) {
			t.Errorf("blocks %v, not %v", lefts, want)
		}
	}
	if r.turn != 60 {
		t.Errorf("the rotation stands at %d", r.turn)
	}
}

// TestExampleOfTheEdge is that of section 6.1.
func TestExampleOfTheEdge(t *testing.T) {
	r := rwbpReceiver(0, 4000, 1000)
	if field := r.window(); field != 4 || r.edge != 4001 {
		t.Fatalf("field %d, edge %d", field, r.edge)
	}
	r.take(&segment{seq: 1, flags: flagACK, data: make([]byte, 100)})
	if field := r.window(); field != 3 || r.edge != 4001 {
		t.Fatalf("field %d, edge %d", field, r.edge)
	}
	r.skip(100)
	if field := r.window(); field != 4 || r.edge != 4101 {
		t.Fatalf("field %d, edge %d", field, r.edge)
	}
}

// TestPiecesInAnyOrder puts a stream together from overlapping pieces, across the end of the numbers
// and that of the ring; what arrives twice differs, and what came first counts.
func TestPiecesInAnyOrder(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	for range 200 {
		const size, total = 1000, 5000
		first := number(1<<32 - 2000)
		r := rwbpReceiver(first-1, size, 48)
		first = r.next
		var stream, want []byte
		for len(want) < total {
			want = append(want, byte(random.Intn(200)))
		}
		known := make([]bool, total)
		for steps := 0; !r.ended(); steps++ {
			if steps > 1e5 {
				t.Fatal("no end")
			}
			r.window()
			at := int(uint32(r.next-first)) + random.Intn(size+100) - 50
			at = min(max(at, 0), total-1)
			length := min(1+random.Intn(300), total-at)
			piece := slices.Clone(want[at : at+length])
			for index := range piece {
				if known[at+index] {
					piece[index] = 255
				}
			}
			s := &segment{seq: first + number(at), flags: flagACK, data: piece}
			if at+length == total {
				s.flags |= flagFIN
			}
			if r.acceptable(s) {
				limit := int(uint32(r.edge - first))
				r.take(s)
				for index := at; index < min(at+length, limit); index++ {
					known[index] = true
				}
			}
			for index := 1; index < len(r.runs); index++ {
				if !r.runs[index-1].right.below(r.runs[index].left) {
					t.Fatalf("runs %v", r.runs)
				}
			}
			space := make([]byte, random.Intn(400))
			stream = append(stream, space[:r.read(space)]...)
		}
		space := make([]byte, size)
		stream = append(stream, space[:r.read(space)]...)
		if !bytes.Equal(stream, want) {
			t.Fatal("another stream")
		}
		if r.store != nil {
			t.Fatal("the ring is kept")
		}
	}
}

func TestFINBelowHeldOctetsIsNotTaken(t *testing.T) {
	r := rwbpReceiver(0, 4000, 1000)
	r.take(&segment{seq: 11, flags: flagACK, data: make([]byte, 10)})
	if r.take(&segment{seq: 1, flags: flagACK | flagFIN, data: make([]byte, 5)}) || r.finHeld {
		t.Error("a FIN below held octets was taken")
	}
	if r.next != 6 {
		t.Errorf("RCV.NXT %d", r.next)
	}
}
