package main

import "time"

// instant is a time: how long ago the endpoint was started. The endpoint never asks for the time; it
// is told, so that tests have a clock of their own.
type instant = time.Duration

// never is later than every deadline.
const never = instant(1<<63 - 1)

const (
	smallestRTO  = time.Second
	largestRTO   = 60 * time.Second
	firstRTO     = time.Second
	rtoAfterSYNs = 3 * time.Second
	granularity  = time.Millisecond
	ackDelay     = 100 * time.Millisecond
	// reminderInterval keeps two ends from answering each other for ever (RWBP-AK-003).
	reminderInterval = time.Second
	timeWait         = 240 * time.Second
	// giveUp is how long the peer may be silent while it owes an answer. RFC 9293 wants 100 s, and
	// three minutes for a SYN.
	giveUp = 200 * time.Second
)

// timer is a deadline, or none.
type timer struct {
	at      instant
	running bool
}

func (t *timer) start(now instant, wait time.Duration) { *t = timer{now + wait, true} }
func (t *timer) stop()                                 { t.running = false }
func (t *timer) due(now instant) bool                  { return t.running && t.at <= now }

func (t *timer) deadline() instant {
	if t.running {
		return t.at
	}
	return never
}

// backedOff is the smaller of 60 s and rto doubled so many times.
func backedOff(rto time.Duration, times int) time.Duration {
	for ; times > 0 && rto < largestRTO; times-- {
		rto *= 2
	}
	return min(rto, largestRTO)
}

// estimator computes RTO by RFC 6298, and RTTMIN.
type estimator struct {
	srtt, variance, smallest time.Duration
	measured                 bool
	rto                      time.Duration
}

func newEstimator() estimator { return estimator{rto: firstRTO} }

func (e *estimator) sample(rtt time.Duration) {
	if !e.measured {
		e.srtt, e.variance, e.smallest = rtt, rtt/2, rtt
		e.measured = true
	} else {
		e.variance = (3*e.variance + (e.srtt - rtt).Abs()) / 4
		e.srtt = (7*e.srtt + rtt) / 8
		e.smallest = min(e.smallest, rtt)
	}
	e.rto = min(max(e.srtt+max(granularity, 4*e.variance), smallestRTO), largestRTO)
}
