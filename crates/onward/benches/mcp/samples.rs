//! Measured latencies and CPU time.

use std::time::Duration;

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
