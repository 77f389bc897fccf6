//! The table: one line per measurement, with its ratio to the floor of the same run.

use std::time::Duration;

use crate::floor::Bare;

/// Calls, one after the other.
#[derive(Default)]
pub(crate) struct Timed {
    /// How long each took.
    pub(crate) each: Vec<Duration>,
    /// How long all of them took.
    pub(crate) all: Duration,
    /// How long the processor worked for them in the server.
    pub(crate) cpu: Duration,
}

impl Timed {
    pub(crate) fn per_second(&self) -> f64 {
        self.each.len() as f64 / self.all.as_secs_f64()
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

/// How long the processor has worked for a process, where the system says so.
pub(crate) fn cpu(process: u32) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{process}/task"));
    let worked = threads
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|thread| {
            let figures = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
            figures.split_whitespace().next()?.parse::<u64>().ok()
        });
    Duration::from_nanos(worked.sum())
}

pub(crate) fn heading() {
    println!(
        "{:<26} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8}",
        "one client", "calls/s", "steps/s", "p50 µs", "p99 µs", "cpu µs", "tx/bare"
    );
}

pub(crate) fn line(what: &str, timed: &Timed, steps: Option<usize>, bare: Option<Bare>) {
    let maybe = |number: Option<f64>, digits: usize| {
        number.map_or(String::new(), |number| format!("{number:.digits$}"))
    };
    let steps = steps.map(|steps| steps as f64 / timed.all.as_secs_f64());
    let calls = u32::try_from(timed.each.len()).unwrap_or(u32::MAX).max(1);
    println!(
        "{what:<26} {:>9.0} {:>9} {:>9} {:>9} {:>9} {:>8}",
        timed.per_second(),
        maybe(steps, 0),
        timed.quantile(0.5).as_micros(),
        timed.quantile(0.99).as_micros(),
        (timed.cpu / calls).as_micros(),
        maybe(bare.map(|bare| timed.per_second() / bare.rows), 2),
    );
}
