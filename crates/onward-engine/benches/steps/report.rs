//! The result table: one row per measurement, with its ratio to the floor of the same run.

use std::time::Duration;

use onward_testbed::bench::Samples;

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
