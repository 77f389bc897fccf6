//! Compares the output of the examples with their transcripts.
//!
//! The examples are compiled into this test, so that the compared code is never out of date.
//! `ONWARD_BLESS=1 cargo test -p onward-core --test examples` rewrites the transcripts.

#[allow(dead_code, reason = "`main` is for `cargo run`")]
#[path = "../examples/detect_stalls.rs"]
mod detect_stalls;

#[allow(dead_code, reason = "`main` is for `cargo run`")]
#[path = "../examples/drive_a_plan/main.rs"]
mod drive_a_plan;

#[allow(dead_code, reason = "`main` is for `cargo run`")]
#[path = "../examples/text_only_step.rs"]
mod text_only_step;

use std::path::Path;

use onward_testbed::golden;

#[test]
fn drive_a_plan_prints_its_transcript() {
    let mut output = Vec::new();
    drive_a_plan::run(&mut output).unwrap();
    compare("drive_a_plan", &String::from_utf8(output).unwrap());
}

#[test]
fn detect_stalls_prints_its_transcript() {
    let mut output = Vec::new();
    detect_stalls::run(&mut output).unwrap();
    compare("detect_stalls", &String::from_utf8(output).unwrap());
}

#[test]
fn text_only_step_prints_its_transcript() {
    let mut output = Vec::new();
    text_only_step::run(&mut output).unwrap();
    compare("text_only_step", &String::from_utf8(output).unwrap());
}

fn compare(example: &str, output: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("examples")
        .join(example)
        .with_extension("txt");
    golden::assert_matches(path, output);
}
