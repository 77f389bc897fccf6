//! The result table: one row per measurement, with its ratio to the floor of the same run.

use std::time::Duration;

use crate::floor::Floor;

/// Latencies of sequential calls.
#[derive(Default)]
pub(crate) struct Samples {
    /// Latency of each call.
    pub(crate) latencies: Vec<Duration>,
    /// Total duration.
    pub(crate) elapsed: Duration,
    /// CPU time of the server.
    pub(crate) cpu: Duration,
}

impl Samples {
    pub(crate) fn per_second(&self) -> f64 {
        self.latencies.len() as f64 / self.elapsed.as_secs_f64()
    }

    /// The given quantile of the latencies.
    pub(crate) fn quantile(&self, quantile: f64) -> Duration {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        let index = (sorted.len() as f64 * quantile) as usize;
        let last = sorted.len().saturating_sub(1);
        sorted.get(index.min(last)).copied().unwrap_or_default()
    }
}

/// CPU time of a process. Zero if the system does not report it.
pub(crate) fn cpu(process: u32) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{process}/task"));
    let cpu_times = threads
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|thread| {
            let stat = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
            stat.split_whitespace().next()?.parse::<u64>().ok()
        });
    Duration::from_nanos(cpu_times.sum())
}

pub(crate) fn print_heading() {
    println!(
        "{:<26} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8}",
        "one client", "calls/s", "steps/s", "p50 µs", "p99 µs", "cpu µs", "tx/floor"
    );
}

pub(crate) fn print_row(name: &str, samples: &Samples, steps: Option<usize>, floor: Option<Floor>) {
    let format_optional = |number: Option<f64>, digits: usize| {
        number.map_or(String::new(), |number| format!("{number:.digits$}"))
    };
    let steps = steps.map(|steps| steps as f64 / samples.elapsed.as_secs_f64());
    let calls = u32::try_from(samples.latencies.len())
        .unwrap_or(u32::MAX)
        .max(1);
    println!(
        "{name:<26} {:>9.0} {:>9} {:>9} {:>9} {:>9} {:>8}",
        samples.per_second(),
        format_optional(steps, 0),
        samples.quantile(0.5).as_micros(),
        samples.quantile(0.99).as_micros(),
        (samples.cpu / calls).as_micros(),
        format_optional(
            floor.map(|floor| samples.per_second() / floor.transactions),
            2
        ),
    );
}
