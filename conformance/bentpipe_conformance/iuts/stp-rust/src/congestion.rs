//! The congestion window and the spreading of packets (sections 7.3 and 7.4).

use crate::{Time, MILLISECOND, SECOND};

/// SDs of SMSS in the initial window.
const INITIAL: usize = 4;
/// SDs of SMSS that may leave at once. The text permits four; one is left for clocks that differ.
const BURST: usize = 3;
/// What the rate permits in so long may leave at once as well. The text permits 0.01 s; half of it is
/// left for the same reason.
const TICK: Time = 5 * MILLISECOND;

/// Bounds what is in flight, and how fast it leaves.
#[derive(Debug)]
pub struct Congestion {
    smss: usize,
    window: usize,
    threshold: usize,
    /// Octets reported in congestion avoidance towards the next growth.
    reported: usize,
    /// The transmission before which the last reduction was made.
    reduced: Option<u64>,
    /// The first retransmission after a reduction waits for nothing.
    free: bool,
    /// Octets that may leave now.
    tokens: f64,
    filled: Time,
}

impl Congestion {
    /// The initial window.
    pub fn new(smss: usize) -> Self {
        Self {
            smss,
            window: INITIAL * smss,
            threshold: usize::MAX,
            reported: 0,
            reduced: None,
            free: false,
            tokens: (BURST * smss) as f64,
            filled: 0,
        }
    }

    /// Most user data of an SD.
    pub fn smss(&self) -> usize {
        self.smss
    }

    /// Whether an SD fits into the window beside what is in flight.
    pub fn fits(&self, flight: usize, size: usize) -> bool {
        flight + size <= self.window
    }

    /// Whether a retransmission waits for nothing.
    pub fn is_free(&self) -> bool {
        self.free
    }

    /// That retransmission was made.
    pub fn free_used(&mut self) {
        self.free = false;
    }

    fn rate(&self, rtt: Time) -> f64 {
        let gain = if self.window < self.threshold {
            2.0
        } else {
            0.9
        };
        gain * self.window as f64 / rtt as f64
    }

    fn fill(&mut self, now: Time, rtt: Option<Time>) {
        let most = (BURST * self.smss) as f64;
        self.tokens = match rtt {
            None => most,
            Some(rtt) => {
                let span = now.saturating_sub(self.filled).min(60 * SECOND) as f64;
                let rate = self.rate(rtt);
                (self.tokens + span * rate).min(most + TICK as f64 * rate)
            }
        };
        self.filled = now;
    }

    /// Until when an SD has to wait so that packets are spread, if it has to.
    pub fn wait(&mut self, now: Time, rtt: Option<Time>, size: usize) -> Option<Time> {
        self.fill(now, rtt);
        let lacks = size.min(BURST * self.smss) as f64 - self.tokens;
        match rtt {
            Some(rtt) if lacks > 0.0 => Some(now + (lacks / self.rate(rtt)).ceil() as Time + 1),
            _ => None,
        }
    }

    /// An SD leaves.
    pub fn sent(&mut self, size: usize) {
        self.tokens -= size as f64;
    }

    /// Whether the loss of a transmission calls for a reduction.
    pub fn calls_for_reduction(&self, transmission: u64) -> bool {
        self.reduced.is_none_or(|last| transmission > last)
    }

    /// Reduces the window for a loss; `last` is the newest transmission.
    pub fn reduce(&mut self, last: u64) {
        self.halve(last);
        self.window = self.threshold;
        self.free = true;
    }

    /// Two silences. The window takes at least the largest SD kept.
    pub fn collapse(&mut self, last: u64, largest: usize) {
        self.halve(last);
        self.window = self.smss.max(largest);
    }

    fn halve(&mut self, last: u64) {
        self.threshold = (self.window / 2).max(2 * self.smss);
        self.reported = 0;
        self.reduced = Some(last);
    }

    /// A report without a loss: `octets` are newly reported, `flight` were in flight before.
    pub fn arrived(&mut self, octets: usize, flight: usize) {
        if flight * 2 < self.window {
            return;
        }
        if self.window < self.threshold {
            self.window = (self.window + octets).min(self.threshold);
            return;
        }
        self.reported += octets;
        if self.reported >= self.window {
            self.reported -= self.window;
            self.window += 2 * self.smss;
        }
    }

    /// The window, for tests.
    #[cfg(test)]
    pub fn window(&self) -> usize {
        self.window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_and_shrinks() {
        let mut congestion = Congestion::new(1000);
        assert!(congestion.fits(3000, 1000) && !congestion.fits(3000, 1001));
        congestion.arrived(4000, 1999);
        assert_eq!(congestion.window(), 4000);
        congestion.arrived(4000, 4000);
        assert_eq!(congestion.window(), 8000);
        assert!(congestion.calls_for_reduction(7));
        congestion.reduce(9);
        assert!(congestion.is_free());
        assert!(!congestion.calls_for_reduction(9));
        assert_eq!(congestion.window(), 4000);
        congestion.arrived(3999, 4000);
        assert_eq!(congestion.window(), 4000);
        congestion.arrived(1, 4000);
        assert_eq!(congestion.window(), 6000);
        congestion.collapse(20, 0);
        assert_eq!((congestion.window(), congestion.threshold), (1000, 3000));
        congestion.arrived(5000, 1000);
        assert_eq!(congestion.window(), 3000);
    }

    #[test]
    fn spreads() {
        let mut congestion = Congestion::new(1000);
        let rtt = Some(100 * MILLISECOND);
        let mut now = SECOND;
        let mut sent = 0;
        while now < 2 * SECOND {
            match congestion.wait(now, rtt, 1000) {
                Some(later) => now = later,
                None => {
                    congestion.sent(1000);
                    sent += 1000;
                }
            }
            assert!(sent as u64 <= 4000 + 80 * (now - SECOND + TICK) / MILLISECOND);
        }
        assert!(sent > 79_000);
        assert_eq!(Congestion::new(1000).wait(0, None, 1000), None);
    }
}
