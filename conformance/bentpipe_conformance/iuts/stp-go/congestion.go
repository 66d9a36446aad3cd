package main

import "time"

// congestion is the congestion window of STP/1 section 7.3, in octets of user data.
type congestion struct {
	cwnd, ssthresh int
	smss           int
	counted        int  // octets reported as arrived since the last growth in congestion avoidance
	most           int  // the window needs no more
	answered       bool // a valid STAT has shown that an SD has arrived
}

const unlimited = 1 << 40

func (w *congestion) start(smss, initial, most int) {
	*w = congestion{cwnd: initial * smss, ssthresh: unlimited, smss: smss, most: most * smss}
}

// small tells whether every burst has to end with a POLL (STP-PL-003).
func (w *congestion) small() bool { return w.cwnd < 10*w.smss }

// arrived grows the window on octets that were sent while it was used (STP-CG-003, 004, 010).
func (w *congestion) arrived(octets int) {
	if slow := min(octets, w.ssthresh-w.cwnd); slow > 0 {
		w.cwnd += slow
		octets -= slow
	}
	if w.cwnd >= w.ssthresh {
		w.counted += octets
		for w.counted >= w.cwnd {
			w.counted -= w.cwnd
			w.cwnd += w.smss
		}
	}
	w.cwnd = min(w.cwnd, w.most)
}

// limit is how much may be in flight (STP-CG-002): reports are a third of a round trip apart, except
// in a small window.
func (w *congestion) limit() int {
	if w.answered && !w.small() {
		return w.cwnd * 4 / 3
	}
	return w.cwnd
}

// lost halves the window (STP-CG-005); flight is what was in flight before.
func (w *congestion) lost(flight int) {
	w.ssthresh = max(min(flight, w.cwnd)/2, 2*w.smss)
	w.cwnd = w.ssthresh
	w.counted = 0
}

// silent is the answer to a second silence in a row (STP-CG-007).
func (w *congestion) silent(flight int) {
	w.lost(flight)
	w.cwnd = w.smss
}

// spacing is the least time between two SDs of this size (STP-CG-008).
func (w *congestion) spacing(rtt time.Duration, octets int) time.Duration {
	gain := 1.25
	if w.cwnd < w.ssthresh {
		gain = 2
	}
	return time.Duration(float64(rtt) * float64(octets) / (gain * float64(w.cwnd)))
}

// roundTrip is the smoothed round-trip time as RFC 6298 has it (STP-PL-009).
type roundTrip struct {
	smoothed, deviation time.Duration
	known               bool
}

func (r *roundTrip) measure(sample time.Duration) {
	if !r.known {
		r.smoothed, r.deviation, r.known = sample, sample/2, true
		return
	}
	r.deviation += ((r.smoothed - sample).Abs() - r.deviation) / 4
	r.smoothed += (sample - r.smoothed) / 8
}

// cautious is the time within which an answer is to be expected.
func (r *roundTrip) cautious() time.Duration { return r.smoothed + 4*r.deviation }

const (
	paceTick = 10 * time.Millisecond
	// 65,000 SDs a second keep 2^23 SDs within a packet's life of 120 s (STP-DT-013).
	paceMost = 650
)

// pacer spreads SDs: in any time of 10 ms it lets through as many as fall into it.
type pacer struct {
	recent []instant // when the SDs of the last tick left
}

// wait is how long the next SD has to wait if SDs are this far apart.
func (p *pacer) wait(now instant, spacing time.Duration) time.Duration {
	for len(p.recent) > 0 && now-p.recent[0] >= max(paceTick, spacing) {
		p.recent = p.recent[1:]
	}
	if len(p.recent) == 0 {
		return 0
	}
	if spacing > paceTick/4 { // too few in a tick to count
		return max(0, p.recent[len(p.recent)-1]+spacing-now)
	}
	fit := paceMost
	if spacing > 0 {
		fit = min(paceMost, int(paceTick/spacing))
	}
	if len(p.recent) < fit {
		return 0
	}
	return max(0, p.recent[len(p.recent)-fit]+paceTick-now)
}

func (p *pacer) sent(now instant) {
	p.recent = append(p.recent, now)
	if len(p.recent) > paceMost {
		p.recent = p.recent[1:]
	}
}

// rateLimit keeps a rate that the user sets, with four packets of tolerance (STP-CG-009).
type rateLimit struct {
	bitsPerSecond int // 0: none
	clear         instant
}

const rateBurst = 3 // packets ahead of the even spacing; with the one sent now, four

func (r *rateLimit) wait(now instant, octets int) time.Duration {
	if r.bitsPerSecond == 0 {
		return 0
	}
	return max(0, r.clear-rateBurst*r.cost(octets)-now)
}

func (r *rateLimit) sent(now instant, octets int) {
	if r.bitsPerSecond != 0 {
		r.clear = max(r.clear, now) + r.cost(octets)
	}
}

func (r *rateLimit) cost(octets int) time.Duration {
	return time.Duration(float64(octets) * 8 / float64(r.bitsPerSecond) * float64(time.Second))
}
