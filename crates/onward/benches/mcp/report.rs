//! The result table: one row per measurement, with its ratio to the floor of the same run.

use crate::floor::Floor;
use crate::samples::Samples;

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
