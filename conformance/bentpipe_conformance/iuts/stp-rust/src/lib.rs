//! STP/1, second edition: an endpoint without input and output of its own.
//!
//! Octets and times go in, octets and the time of the next timer come out: [`endpoint::Endpoint`].

// Tests may fail by a panic.
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::expect_used
    )
)]

pub mod congestion;
pub mod connection;
pub mod cookie;
pub mod endpoint;
pub mod receiver;
pub mod rtt;
pub mod sender;
pub mod seq;
pub mod siphash;
pub mod user;
pub mod wire;

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod vectors;

/// A time, in microseconds since the start of the endpoint.
pub type Time = u64;
/// A millisecond.
pub const MILLISECOND: Time = 1000;
/// A second.
pub const SECOND: Time = 1_000_000;
