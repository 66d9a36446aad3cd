package main

import "time"

// proof is how a caller that was not asked makes sure that its listener may speak (STP-CC-032).
type proof struct {
	missing int           // BGAKs without C flag that have to come once it has asked; 0: nothing to do
	asked   bool          // a question has been sent
	wait    time.Duration // until the next question
	at      instant       // when it is due
	silent  instant       // the first one since the last packet of the peer
}

// start begins the wait. BEGINs but the one that opened the connection may be answered late.
func (pr *proof) start(now instant, begins int, initial time.Duration) {
	pr.missing, pr.asked = begins, false
	pr.heard(now, initial)
}

// heard is any packet of the peer.
func (pr *proof) heard(now instant, initial time.Duration) {
	pr.wait, pr.at, pr.silent = initial, now+initial, never
}

// answered is a BGAK without C flag: before the first question it answers none.
func (pr *proof) answered() {
	if pr.asked {
		pr.missing--
	}
}

// deadline is when expire has something to do.
func (pr *proof) deadline() instant {
	if pr.missing <= 0 {
		return never
	}
	if pr.silent != never {
		return min(pr.at, pr.silent+noResponse)
	}
	return pr.at
}

// expire tells whether a question is due now, and whether the peer is to be given up (STP-PL-008).
func (pr *proof) expire(now instant) (ask, hopeless bool) {
	if now < pr.deadline() {
		return false, false
	}
	if pr.silent != never && now-pr.silent >= noResponse {
		return false, true
	}
	pr.asked = true
	pr.silent = min(pr.silent, now)
	pr.wait *= 2
	pr.at = now + pr.wait
	return true, false
}
