//! The table: one line per measurement, with its ratio to the floor of the same run.

use std::time::Duration;

/// Transactions, or calls, one after the other or beside each other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Timed {
    /// How long each took.
    pub(crate) each: Vec<Duration>,
    /// How many steps they have completed.
    pub(crate) steps: u32,
    /// How long all of them took.
    pub(crate) all: Duration,
    /// How long the processor worked for them, all threads together.
    pub(crate) cpu: Duration,
}

/// How long the processor has worked for this process, where the system says so.
pub(crate) fn cpu() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let worked = threads.flatten().filter_map(|thread| {
        let figures = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        figures.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(worked.sum())
}

/// The one in the middle.
pub(crate) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}

impl Timed {
    pub(crate) fn per_second(&self) -> f64 {
        self.each.len() as f64 / self.all.as_secs_f64()
    }

    pub(crate) fn cpu_each(&self) -> Duration {
        self.cpu / u32::try_from(self.each.len()).unwrap_or(u32::MAX).max(1)
    }

    /// The duration that this share of them did not exceed.
    pub(crate) fn quantile(&self, share: f64) -> Duration {
        let mut sorted = self.each.clone();
        sorted.sort_unstable();
        let place = (sorted.len() as f64 * share) as usize;
        let last = sorted.len().saturating_sub(1);
        sorted.get(place.min(last)).copied().unwrap_or_default()
    }
}

/// One line of the table.
pub(crate) struct Measured {
    what: String,
    callers: usize,
    steps: Option<f64>,
    transactions: f64,
    p50: Duration,
    p99: Duration,
    cpu: Duration,
    ratio: Option<(f64, f64)>,
    syncs: Option<f64>,
}

impl Measured {
    pub(crate) fn floor(what: &str, callers: usize, bare: &Timed) -> Self {
        Self {
            what: what.to_owned(),
            callers,
            steps: None,
            transactions: bare.per_second(),
            p50: bare.quantile(0.5),
            p99: bare.quantile(0.99),
            cpu: bare.cpu_each(),
            ratio: None,
            syncs: None,
        }
    }

    /// With the syncs that the database has counted meanwhile, per step.
    pub(crate) fn synced(mut self, syncs: i64, driven: &Timed) -> Self {
        self.syncs = Some(syncs as f64 / f64::from(driven.steps));
        self
    }

    /// Calls of the engine: two a step; or one where the next step is claimed with the result, and one
    /// more for the first step of each plan.
    pub(crate) fn driven(
        database: &str,
        callers: usize,
        fused: bool,
        driven: &Timed,
        bare: &Timed,
    ) -> Self {
        let calls = driven.per_second();
        let steps = f64::from(driven.steps) / driven.all.as_secs_f64();
        let how = if fused { ", claimNext" } else { "" };
        Self {
            what: format!("{database}, engine{how}"),
            callers,
            steps: Some(steps),
            transactions: calls,
            p50: driven.quantile(0.5),
            p99: driven.quantile(0.99),
            cpu: driven.cpu_each(),
            ratio: Some((calls / bare.per_second(), steps / bare.per_second())),
            syncs: None,
        }
    }
}

pub(crate) fn heading() {
    println!(
        "{:<30} {:>7} {:>9} {:>9} {:>9} {:>9} {:>7} {:>8} {:>8} {:>8}",
        "what",
        "callers",
        "steps/s",
        "tx/s",
        "p50 µs",
        "p99 µs",
        "cpu µs",
        "tx/bare",
        "st/bare",
        "syncs/st"
    );
}

pub(crate) fn line(measured: &Measured) {
    let maybe = |number: Option<f64>, digits: usize| {
        number.map_or(String::new(), |number| format!("{number:.digits$}"))
    };
    println!(
        "{:<30} {:>7} {:>9} {:>9.0} {:>9} {:>9} {:>7} {:>8} {:>8} {:>8}",
        measured.what,
        measured.callers,
        maybe(measured.steps, 0),
        measured.transactions,
        measured.p50.as_micros(),
        measured.p99.as_micros(),
        measured.cpu.as_micros(),
        maybe(measured.ratio.map(|ratio| ratio.0), 2),
        maybe(measured.ratio.map(|ratio| ratio.1), 2),
        maybe(measured.syncs, 2),
    );
}
