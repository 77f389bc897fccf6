//! The examples say what their transcripts say.
//!
//! They are compiled into this test rather than started, so that what is compared is never an older
//! binary. `ONWARD_BLESS=1 cargo test -p onward-core --test examples` writes the transcripts again;
//! the difference then shows in the diff, for somebody to read.

#![allow(
    clippy::disallowed_methods,
    reason = "a transcript is a file, and the environment says whether to write it again"
)]

#[allow(dead_code, reason = "its `main` is for `cargo run`")]
#[path = "../examples/detect_stalls.rs"]
mod detect_stalls;

#[allow(dead_code, reason = "its `main` is for `cargo run`")]
#[path = "../examples/drive_a_plan/main.rs"]
mod drive_a_plan;

#[allow(dead_code, reason = "its `main` is for `cargo run`")]
#[path = "../examples/text_only_step.rs"]
mod text_only_step;

use std::path::Path;

#[test]
fn driving_a_plan_prints_its_transcript() {
    let mut said = Vec::new();
    drive_a_plan::run(&mut said).unwrap();
    compare("drive_a_plan", &String::from_utf8(said).unwrap()).unwrap();
}

#[test]
fn detecting_stalls_prints_its_transcript() {
    let mut said = Vec::new();
    detect_stalls::run(&mut said).unwrap();
    compare("detect_stalls", &String::from_utf8(said).unwrap()).unwrap();
}

#[test]
fn a_text_only_step_prints_its_transcript() {
    let mut said = Vec::new();
    text_only_step::run(&mut said).unwrap();
    compare("text_only_step", &String::from_utf8(said).unwrap()).unwrap();
}

fn compare(example: &str, said: &str) -> std::io::Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("examples")
        .join(example)
        .with_extension("txt");
    if std::env::var_os("ONWARD_BLESS").is_some() {
        return std::fs::write(&path, said);
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = (1..)
        .zip(said.lines())
        .zip(expected.lines().map(Some).chain(std::iter::repeat(None)))
        .find(|((_, said), expected)| Some(*said) != *expected);
    assert!(
        said == expected,
        "`{example}` does not say what {} says; the first line that differs: {differs:?}\n\
         If that is meant: ONWARD_BLESS=1 cargo test -p onward-core --test examples",
        path.display()
    );
    Ok(())
}
