//! Compares the cost of a decision on plans of 10 and 10,000 steps:
//! `cargo bench -p onward-core --bench decide`.
//!
//! Both sizes are measured alternately in the same run. The ratio is the median of the ratios of
//! adjacent measurements, so that other load on the machine affects both sides; the times are
//! medians. With `--count` it prints the executed cases instead of times, for
//! `bench/decide-instructions`, which counts instructions. Without an argument (`cargo test
//! --benches`) each case runs once, on small plans.
//!
//! Every case is checked before it is measured: both sizes must give the same events.

#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    reason = "a benchmark needs a clock, arguments and output, and cannot run if its setup fails"
)]

mod cases;

use std::hint::black_box;
use std::time::{Duration, Instant};

use cases::Case;
use onward_core::decide;

const SMALL: u32 = 10;
const LARGE: u32 = 10_000;

/// The titles of the two tables: cost independent of the plan's size, and cost that depends on it.
const FEW: &str = "one step or a few";
const WHOLE: &str = "all steps";

fn main() {
    let has_flag = |flag: &str| std::env::args().any(|argument| argument == flag);
    if has_flag("--count") {
        count(FEW, cases::few_steps, 100);
        count(WHOLE, cases::whole_list, 2);
    } else if has_flag("--bench") {
        compare(FEW, cases::few_steps);
        compare(WHOLE, cases::whole_list);
    } else {
        for size in [SMALL, 10 * SMALL] {
            cases::few_steps(size).iter().for_each(check);
            cases::whole_list(size).iter().for_each(check);
        }
    }
}

/// Checks that every command of the case gives the expected events.
fn check(case: &Case) {
    for command in &case.commands {
        let events = decide(&case.plan, command, case.now).expect(case.name);
        let mut names: Vec<&str> = events.iter().map(|event| event.name()).collect();
        names.dedup();
        assert_eq!(names, case.events, "{}", case.name);
    }
}

/// The measured code. `bench/decide-instructions` refers to this function by name.
#[inline(never)]
fn measured(case: &Case, times: u32) {
    for command in case.commands.iter().cycle().take(times as usize) {
        drop(black_box(decide(
            black_box(&case.plan),
            black_box(command),
            case.now,
        )));
    }
}

fn compare(title: &str, cases: fn(u32) -> Vec<Case>) {
    const ROUNDS: u32 = 400;
    println!("\n{}", row(title, "10 steps", "10,000 steps", "ratio"));
    for (small, large) in cases(SMALL).iter().zip(&cases(LARGE)) {
        check(small);
        check(large);
        let (small_times, large_times) = (batch(small), batch(large));
        let rounds: Vec<(f64, f64)> = (0..ROUNDS)
            .map(|_| {
                (
                    nanos_per_call(small, small_times),
                    nanos_per_call(large, large_times),
                )
            })
            .collect();
        let median = |figure: fn(&(f64, f64)) -> f64| {
            let mut figures: Vec<f64> = rounds.iter().map(figure).collect();
            figures.sort_by(f64::total_cmp);
            figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
        };
        let nanos = |nanos: f64| format!("{nanos:.0} ns");
        let at_small = nanos(median(|round| round.0));
        let at_large = nanos(median(|round| round.1));
        let ratio = format!("{:.2}", median(|round| round.1 / round.0));
        println!("{}", row(small.name, &at_small, &at_large, &ratio));
    }
}

/// The number of calls per measurement: long enough for the clock, short enough to avoid
/// interference.
fn batch(case: &Case) -> u32 {
    let mut times = 1;
    while times < 1_000 && time(case, times) < Duration::from_micros(50) {
        times *= 2;
    }
    // Run every command of the case equally often.
    times.next_multiple_of(u32::try_from(case.commands.len()).unwrap_or(1))
}

fn time(case: &Case, times: u32) -> Duration {
    let begin = Instant::now();
    measured(case, times);
    begin.elapsed()
}

fn nanos_per_call(case: &Case, times: u32) -> f64 {
    time(case, times).as_secs_f64() * 1e9 / f64::from(times)
}

/// Runs each case at both sizes and prints it.
fn count(title: &str, cases: fn(u32) -> Vec<Case>, times: u32) {
    println!("# {title}");
    for (small, large) in cases(SMALL).iter().zip(&cases(LARGE)) {
        for case in [small, large] {
            check(case);
            measured(case, times);
            counted(case, times);
        }
    }
}

/// Prints the case. `bench/decide-instructions` dumps its count when this function is called.
#[inline(never)]
fn counted(case: &Case, times: u32) {
    println!("{}\t{}\t{times}", case.name, case.size);
}

fn row(what: &str, small: &str, large: &str, ratio: &str) -> String {
    format!("{what:<50} {small:>11} {large:>13} {ratio:>8}")
}
