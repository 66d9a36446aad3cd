package main

import (
	"testing"
	"time"
)

// TestLongWaitsEndInTime lets each wait last as much too long as a kernel may make it.
func TestLongWaitsEndInTime(t *testing.T) {
	for _, wait := range []time.Duration{0, time.Millisecond, time.Second, largestRTO, timeWait} {
		left, naps := wait, 0
		for ; left > 0; naps++ {
			rest := nap(left)
			left -= rest + min(rest/200, 100*time.Millisecond)
		}
		if late := -left; late > 10*time.Millisecond {
			t.Errorf("a wait of %v ends %v late", wait, late)
		}
		if naps > 4 {
			t.Errorf("a wait of %v takes %d naps", wait, naps)
		}
	}
}
