//! Measured latencies and CPU time.

use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// Latencies of transactions or calls, sequential or concurrent.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    /// Latency of each call.
    pub latencies: Vec<Duration>,
    /// Number of completed steps.
    pub steps: u32,
    /// Total duration.
    pub elapsed: Duration,
    /// CPU time of all threads.
    pub cpu: Duration,
}

impl Samples {
    /// Adds the samples of another round.
    pub fn add(&mut self, round: Self) {
        self.latencies.extend(round.latencies);
        self.steps += round.steps;
        self.elapsed += round.elapsed;
        self.cpu += round.cpu;
    }

    /// Calls per second.
    pub fn per_second(&self) -> f64 {
        self.latencies.len() as f64 / self.elapsed.as_secs_f64()
    }

    /// CPU time per call.
    pub fn cpu_each(&self) -> Duration {
        let calls = u32::try_from(self.latencies.len()).unwrap_or(u32::MAX);
        self.cpu / calls.max(1)
    }

    /// The given quantile of the latencies.
    pub fn quantile(&self, quantile: f64) -> Duration {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        let index = (sorted.len() as f64 * quantile) as usize;
        let last = sorted.len().saturating_sub(1);
        sorted.get(index.min(last)).copied().unwrap_or_default()
    }
}

/// CPU time of a process. Zero if the system does not report it.
pub fn cpu(process: u32) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{process}/task"));
    let threads = threads.into_iter().flatten().flatten();
    let cpu_times = threads.filter_map(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        stat.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(cpu_times.sum())
}

/// The upper median.
pub fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Measures and formats the duration of a disk sync.
pub fn sync_time(folder: &Path) -> String {
    let mut file = std::fs::File::create(folder.join("sync")).expect("file created");
    let mut samples = Samples::default();
    for _ in 0..200 {
        file.write_all(&[0; 4096]).expect("file written");
        let began = Instant::now();
        file.sync_data().expect("file synced");
        samples.latencies.push(began.elapsed());
    }
    format!(
        "disk sync: p50 {} µs, p99 {} µs",
        samples.quantile(0.5).as_micros(),
        samples.quantile(0.99).as_micros()
    )
}
