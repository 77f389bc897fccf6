//! Shared parts of the benchmarks: measured latencies, and the bare SQLite file that they are compared
//! with.

mod same_rows;
mod samples;

pub use same_rows::{JobSource, PAYLOAD, SameRows, Transition, execute, open};
pub use samples::{Samples, cpu, median, sync_time};
