//! The round-trip time, smoothed as RFC 6298 does, and what is derived from it.

use crate::{Time, MILLISECOND, SECOND};

/// What is known of the round-trip time.
#[derive(Debug, Clone)]
pub struct Rtt {
    initial: Time,
    known: Option<(Time, Time)>,
}

impl Rtt {
    /// Nothing is known; `initial` stands for poll interval and silence time.
    pub fn new(initial: Time) -> Self {
        let known = None;
        Self { initial, known }
    }

    /// Takes a measurement.
    pub fn measure(&mut self, sample: Time) {
        let sample = sample.max(1);
        self.known = Some(match self.known {
            None => (sample, sample / 2),
            Some((mean, deviation)) => {
                let error = mean.abs_diff(sample);
                ((7 * mean + sample) / 8, (3 * deviation + error) / 4)
            }
        });
    }

    /// The smoothed round-trip time.
    pub fn smoothed(&self) -> Option<Time> {
        self.known.map(|(mean, _)| mean.max(1))
    }

    /// The poll interval of STP-PL-001.
    pub fn poll_interval(&self) -> Time {
        match self.known {
            None => self.initial,
            Some((mean, _)) => (mean / 3).clamp(20 * MILLISECOND, 2 * SECOND),
        }
    }

    /// The silence time of STP-PL-007.
    pub fn silence(&self) -> Time {
        match self.known {
            None => self.initial,
            Some((mean, deviation)) => {
                (mean + (4 * deviation).max(self.poll_interval())).max(200 * MILLISECOND)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smoothed_like_rfc_6298() {
        let mut rtt = Rtt::new(SECOND);
        assert_eq!((rtt.poll_interval(), rtt.silence()), (SECOND, SECOND));
        rtt.measure(600 * MILLISECOND);
        assert_eq!(rtt.poll_interval(), 200 * MILLISECOND);
        assert_eq!(rtt.silence(), 1800 * MILLISECOND);
        rtt.measure(680 * MILLISECOND);
        assert_eq!(rtt.smoothed(), Some(610 * MILLISECOND));
        rtt = Rtt::new(SECOND);
        rtt.measure(30);
        assert_eq!(rtt.poll_interval(), 20 * MILLISECOND);
        assert_eq!(rtt.silence(), 200 * MILLISECOND);
    }
}
