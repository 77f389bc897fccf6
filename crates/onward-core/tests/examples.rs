//! Compares the output of the examples with their transcripts.
//!
//! The examples are compiled into this test, so that the compared code is never out of date.
//! `ONWARD_BLESS=1 cargo test -p onward-core --test examples` rewrites the transcripts.

#![allow(
    clippy::disallowed_methods,
    reason = "reads and writes transcripts, and reads `ONWARD_BLESS`"
)]

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

#[test]
fn drive_a_plan_prints_its_transcript() {
    let mut output = Vec::new();
    drive_a_plan::run(&mut output).unwrap();
    compare("drive_a_plan", &String::from_utf8(output).unwrap()).unwrap();
}

#[test]
fn detect_stalls_prints_its_transcript() {
    let mut output = Vec::new();
    detect_stalls::run(&mut output).unwrap();
    compare("detect_stalls", &String::from_utf8(output).unwrap()).unwrap();
}

#[test]
fn text_only_step_prints_its_transcript() {
    let mut output = Vec::new();
    text_only_step::run(&mut output).unwrap();
    compare("text_only_step", &String::from_utf8(output).unwrap()).unwrap();
}

fn compare(example: &str, output: &str) -> std::io::Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("examples")
        .join(example)
        .with_extension("txt");
    if std::env::var_os("ONWARD_BLESS").is_some() {
        return std::fs::write(&path, output);
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = (1..)
        .zip(output.lines())
        .zip(expected.lines().map(Some).chain(std::iter::repeat(None)))
        .find(|((_, output), expected)| Some(*output) != *expected);
    assert!(
        output == expected,
        "the output of `{example}` differs from {}; first differing line: {differs:?}\n\
         To update it: ONWARD_BLESS=1 cargo test -p onward-core --test examples",
        path.display()
    );
    Ok(())
}
