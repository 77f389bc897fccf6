//! The result table: one row per measurement, with its ratio to the floor of the same run.

use std::time::Duration;

/// Latencies of transactions or calls, sequential or concurrent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Samples {
    /// Latency of each call.
    pub(crate) latencies: Vec<Duration>,
    /// Number of completed steps.
    pub(crate) steps: u32,
    /// Total duration.
    pub(crate) elapsed: Duration,
    /// CPU time of all threads.
    pub(crate) cpu: Duration,
}

/// CPU time of this process. Zero if the system does not report it.
pub(crate) fn cpu() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let cpu_times = threads.flatten().filter_map(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        stat.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(cpu_times.sum())
}

/// The upper median.
pub(crate) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}

impl Samples {
    pub(crate) fn per_second(&self) -> f64 {
        self.latencies.len() as f64 / self.elapsed.as_secs_f64()
    }

    pub(crate) fn cpu_each(&self) -> Duration {
        self.cpu
            / u32::try_from(self.latencies.len())
                .unwrap_or(u32::MAX)
                .max(1)
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

/// A row of the table.
pub(crate) struct Row {
    name: String,
    callers: usize,
    steps: Option<f64>,
    transactions: f64,
    p50: Duration,
    p99: Duration,
    cpu: Duration,
    ratio: Option<(f64, f64)>,
    syncs: Option<f64>,
}

impl Row {
    pub(crate) fn floor(name: &str, callers: usize, floor: &Samples) -> Self {
        Self {
            name: name.to_owned(),
            callers,
            steps: None,
            transactions: floor.per_second(),
            p50: floor.quantile(0.5),
            p99: floor.quantile(0.99),
            cpu: floor.cpu_each(),
            ratio: None,
            syncs: None,
        }
    }

    /// Adds the number of disk syncs per step.
    pub(crate) fn with_syncs(mut self, syncs: i64, run: &Samples) -> Self {
        self.syncs = Some(syncs as f64 / f64::from(run.steps));
        self
    }

    /// A run of the engine. It makes two calls per step, or with `claim_next` one call per step and
    /// one more for the first step of each plan.
    pub(crate) fn engine_run(
        database: &str,
        callers: usize,
        claim_next: bool,
        run: &Samples,
        floor: &Samples,
    ) -> Self {
        let calls_per_second = run.per_second();
        let steps_per_second = f64::from(run.steps) / run.elapsed.as_secs_f64();
        let suffix = if claim_next { ", claimNext" } else { "" };
        Self {
            name: format!("{database}, engine{suffix}"),
            callers,
            steps: Some(steps_per_second),
            transactions: calls_per_second,
            p50: run.quantile(0.5),
            p99: run.quantile(0.99),
            cpu: run.cpu_each(),
            ratio: Some((
                calls_per_second / floor.per_second(),
                steps_per_second / floor.per_second(),
            )),
            syncs: None,
        }
    }
}

pub(crate) fn print_heading() {
    println!(
        "{:<30} {:>7} {:>9} {:>9} {:>9} {:>9} {:>7} {:>8} {:>8} {:>8}",
        "measurement",
        "callers",
        "steps/s",
        "tx/s",
        "p50 µs",
        "p99 µs",
        "cpu µs",
        "tx/floor",
        "st/floor",
        "syncs/st"
    );
}

pub(crate) fn print_row(row: &Row) {
    let format_optional = |number: Option<f64>, digits: usize| {
        number.map_or(String::new(), |number| format!("{number:.digits$}"))
    };
    println!(
        "{:<30} {:>7} {:>9} {:>9.0} {:>9} {:>9} {:>7} {:>8} {:>8} {:>8}",
        row.name,
        row.callers,
        format_optional(row.steps, 0),
        row.transactions,
        row.p50.as_micros(),
        row.p99.as_micros(),
        row.cpu.as_micros(),
        format_optional(row.ratio.map(|ratio| ratio.0), 2),
        format_optional(row.ratio.map(|ratio| ratio.1), 2),
        format_optional(row.syncs, 2),
    );
}
