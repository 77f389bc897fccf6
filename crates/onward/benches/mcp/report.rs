//! The result table: one row per measurement, with its ratio to the floor of the same run.

use onward_testbed::bench::Samples;

pub(crate) fn print_heading() {
    println!(
        "{:<26} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "one client", "calls/s", "steps/s", "p50 µs", "p99 µs", "cpu µs", "tx/floor", "p50 ratio"
    );
}

/// Prints a row. With a floor: the calls per second relative to the floor, and the median latency of
/// the floor relative to that of the calls.
pub(crate) fn print_row(name: &str, samples: &Samples, floor: Option<&Samples>) {
    let format = |number: Option<f64>, digits: usize| {
        number.map_or(String::new(), |number| format!("{number:.digits$}"))
    };
    let steps =
        (samples.steps > 0).then(|| f64::from(samples.steps) / samples.elapsed.as_secs_f64());
    let median = |of: &Samples| of.quantile(0.5).as_secs_f64();
    println!(
        "{name:<26} {:>9.0} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        samples.per_second(),
        format(steps, 0),
        samples.quantile(0.5).as_micros(),
        samples.quantile(0.99).as_micros(),
        samples.cpu_each().as_micros(),
        format(
            floor.map(|floor| samples.per_second() / floor.per_second()),
            2
        ),
        format(floor.map(|floor| median(floor) / median(samples)), 2),
    );
}
