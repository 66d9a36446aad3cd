package main

// Packet and poll numbers count modulo 2^24 (STP/1 section 2).

const (
	seqMask = 1<<24 - 1
	seqHalf = 1 << 23
)

// seqAdd is a + n; n may be negative.
func seqAdd(a uint32, n int) uint32 { return (a + uint32(n)) & seqMask }

// seqDist is how far one has to count upwards from one number to another, 0..2^24-1.
func seqDist(from, to uint32) int { return int((to - from) & seqMask) }

// seqBelow tells whether a is below b.
func seqBelow(a, b uint32) bool {
	distance := seqDist(a, b)
	return distance >= 1 && distance < seqHalf
}

// seqWithin tells whether n lies in low..high, both included.
func seqWithin(low, n, high uint32) bool { return seqDist(low, n) <= seqDist(low, high) }

// seqHigher is the higher of two packet numbers.
func seqHigher(a, b uint32) uint32 {
	if seqBelow(a, b) {
		return b
	}
	return a
}
