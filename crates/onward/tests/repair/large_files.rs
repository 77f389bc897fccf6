//! Repair of a large session in bounded memory. Ignored by default, because it writes 200 MB:
//! `cargo test -p onward --test repair -- --ignored`.

use std::io::{BufWriter, Write};
use std::process::Command;

use crate::harness::{Harness, call_line, result_line, text_line, user_line};

/// The maximum virtual memory of the process, with the binary and its libraries, in KiB.
const MAX_MEMORY_KIB: u64 = 400 * 1024;
const BYTES: usize = 200_000_000;

#[test]
#[ignore = "writes 200 MB"]
fn repairs_200_mb_in_bounded_memory() {
    let dir = Harness::new("long");
    let file = std::fs::File::create(dir.join("a.jsonl")).expect("file created");
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
            user_line(&id(0), &parent, "Continue."),
            call_line(&id(1), &id(0), &format!("msg_{number:020}"), &[&call]),
        ];
        // One call in a thousand has no result.
        let is_dangling = number % 4000 == 0;
        let last = if is_dangling { id(1) } else { id(2) };
        if !is_dangling {
            lines.push(result_line(&id(2), &id(1), &call, &page));
        }
        lines.push(text_line(&id(3), &last, "Then."));
        for line in lines {
            let text = format!("{line}\n");
            written += text.len();
            file.write_all(text.as_bytes()).expect("file written");
        }
        number += 4;
    }
    file.into_inner().expect("file written");
    let command =
        format!("ulimit -v {MAX_MEMORY_KIB} && exec \"$0\" transcript repair --in-place a.jsonl");
    let run = Command::new("sh")
        .args(["-c", &command, env!("CARGO_BIN_EXE_onward")])
        .current_dir(dir.path())
        .output()
        .expect("shell started");
    let stderr = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(0), "{stderr}");
    assert_eq!(dir.findings("a.jsonl"), []);
}
