//! Packet numbers: 24 bits on the wire, 64 bits inside.
//!
//! Inside, numbers never wrap, so that they are compared like any others. A number from the wire is
//! read relative to one that is known.

/// The numbers of a direction begin this far above zero, so that none that is read can fall below it.
pub const BASE: u64 = 1 << 32;
/// Half of the modulus: farther ahead is behind.
pub const HALF: u64 = 1 << 23;
const MASK: u64 = (1 << 24) - 1;
/// Poll numbers leave out zero.
const POLLS: u64 = (1 << 24) - 1;

/// The number that begins a direction.
pub fn first(iss: u32) -> u64 {
    BASE + (u64::from(iss) & MASK)
}

/// A number as it is sent.
pub fn wire(number: u64) -> u32 {
    (number & MASK) as u32
}

/// How far a number from the wire lies ahead of `from`, modulo 2^24.
pub fn ahead(from: u64, number: u32) -> u64 {
    u64::from(number).wrapping_sub(from) & MASK
}

/// Whether wire number `b` is `a` or above it.
pub fn at_or_above(a: u32, b: u32) -> bool {
    (u64::from(b).wrapping_sub(u64::from(a)) & MASK) < HALF
}

/// A poll number as it is sent: 1 follows 2^24 - 1; zero stands for none.
pub fn poll_wire(count: u64) -> u32 {
    match count {
        0 => 0,
        count => ((count - 1) % POLLS + 1) as u32,
    }
}

/// The POLL that a poll number from the wire means, if it is not above the newest.
pub fn poll_count(newest: u64, number: u32) -> Option<u64> {
    if number == 0 || newest == 0 {
        return None;
    }
    let behind = (u64::from(poll_wire(newest)) + POLLS - u64::from(number)) % POLLS;
    if behind >= HALF {
        return None;
    }
    newest.checked_sub(behind).filter(|count| *count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap() {
        let last = first(0xff_ffff);
        assert_eq!(wire(last + 1), 0);
        assert_eq!(ahead(last, 3), 4);
        assert_eq!(ahead(first(5), 4), MASK);
        assert!(at_or_above(0xff_fffe, 1));
        assert!(!at_or_above(1, 0xff_fffe));
    }

    #[test]
    fn poll_numbers_leave_out_zero() {
        assert_eq!(poll_wire(POLLS), 0xff_ffff);
        assert_eq!(poll_wire(POLLS + 1), 1);
        assert_eq!(poll_count(POLLS + 1, 0xff_ffff), Some(POLLS));
        assert_eq!(poll_count(3, 4), None);
        assert_eq!(poll_count(3, 0xff_ffff), None);
        assert_eq!(poll_count(3, 1), Some(1));
        assert_eq!(poll_count(0, 1), None);
    }
}
