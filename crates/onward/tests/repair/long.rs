//! A long session in little memory. Ignored by default, for it writes 200 MB and takes its time:
//! `cargo test -p onward --test repair -- --ignored`.

use std::io::{BufWriter, Write};
use std::process::Command;

use crate::desk::{Scratch, answers, calls, result, says};

/// What the whole process may map, the binary and its libraries included, in KiB.
const MOST: u64 = 400 * 1024;
const BYTES: usize = 200_000_000;

#[test]
#[ignore = "writes 200 MB"]
fn a_session_of_200_mb_is_repaired_in_bounded_memory() {
    let scratch = Scratch::new("long");
    let file = std::fs::File::create(scratch.0.join("a.jsonl")).expect("a file can be made");
    let mut file = BufWriter::new(file);
    let mut written = 0;
    let mut number = 0;
    let page = "All the tides of a year. ".repeat(60);
    while written < BYTES {
        let id = |offset: u64| format!("{:08x}-0000-4000-8000-000000000000", number + offset);
        let parent = if number == 0 {
            String::new()
        } else {
            format!("{:08x}-0000-4000-8000-000000000000", number - 1)
        };
        let call = format!("toolu_{number:020}");
        let mut lines = vec![
            says(&id(0), &parent, "Go on."),
            calls(&id(1), &id(0), &format!("msg_{number:020}"), &[&call]),
        ];
        // One in a thousand died.
        let died = number % 4000 == 0;
        let last = if died { id(1) } else { id(2) };
        if !died {
            lines.push(result(&id(2), &id(1), &call, &page));
        }
        lines.push(answers(&id(3), &last, "Then."));
        for line in lines {
            let text = format!("{line}\n");
            written += text.len();
            file.write_all(text.as_bytes()).expect("it can be written");
        }
        number += 4;
    }
    file.into_inner().expect("it can be written");
    let command = format!("ulimit -v {MOST} && exec \"$0\" transcript repair --in-place a.jsonl");
    let run = Command::new("sh")
        .args(["-c", &command, env!("CARGO_BIN_EXE_onward")])
        .current_dir(&scratch.0)
        .output()
        .expect("a shell starts");
    let stderr = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(0), "{stderr}");
    assert!(stderr.contains("put right"), "{stderr}");
    assert_eq!(scratch.found("a.jsonl"), []);
}
