package main

import "time"

// congestion is the congestion window of STP/1 section 7.3, in octets of user data.
type congestion struct {
	cwnd, ssthresh int
	smss           int
	counted        int // octets reported as arrived since the last growth in congestion avoidance
	most           int // the window needs no more
}

const unlimited = 1 << 40

func (w *congestion) start(smss, initial, most int) {
	*w = congestion{cwnd: initial * smss, ssthresh: unlimited, smss: smss, most: most * smss}
}

// arrived grows the window on octets newly reported as arrived, if at least half of it was in flight
// before the report (STP-CG-003, STP-CG-004, STP-CG-010).
func (w *congestion) arrived(octets, flight int) {
	if 2*flight < w.cwnd {
		return
	}
	if slow := min(octets, w.ssthresh-w.cwnd); slow > 0 {
		w.cwnd += slow
		octets -= slow
	}
	if w.cwnd >= w.ssthresh {
		w.counted += octets
		for w.counted >= w.cwnd {
			w.counted -= w.cwnd
			w.cwnd += 2 * w.smss
		}
	}
	w.cwnd = min(w.cwnd, w.most)
}

// lost halves the window (STP-CG-005).
func (w *congestion) lost() {
	w.ssthresh = max(w.cwnd/2, 2*w.smss)
	w.cwnd = w.ssthresh
	w.counted = 0
}

// silent is the answer to a second silence (STP-CG-007).
func (w *congestion) silent() {
	w.lost()
	w.cwnd = w.smss
}

// pace is how many octets a second may leave (STP-CG-008).
func (w *congestion) pace(rtt time.Duration) float64 {
	gain := 0.9
	if w.cwnd < w.ssthresh {
		gain = 2
	}
	return gain * float64(w.cwnd) / max(rtt, time.Microsecond).Seconds()
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

// The token bucket of STP-CG-008 holds bucketSize SMSS and what flows into it within bucketTime.
const (
	bucketSize = 4
	bucketTime = 10 * time.Millisecond
)

// pacer is that bucket: missing is what it lacks of being full.
type pacer struct {
	missing float64
	at      instant
}

// wait is how long an SD has to wait, if the bucket fills at a rate of octets a second.
func (p *pacer) wait(now instant, octets, smss int, rate float64) time.Duration {
	p.missing = max(0, p.missing-rate*(now-p.at).Seconds())
	p.at = now
	holds := float64(bucketSize*smss) + rate*bucketTime.Seconds()
	if short := p.missing + float64(octets) - holds; short > 0 {
		return time.Duration(short/rate*float64(time.Second)) + 1
	}
	return 0
}

func (p *pacer) sent(octets int) { p.missing += float64(octets) }

// rateLimit keeps a rate, with four packets of tolerance (STP-CG-009).
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
