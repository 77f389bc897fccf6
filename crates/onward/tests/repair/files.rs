//! Repaired files, backups, and files that cannot be repaired.

use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use crate::harness::{Harness, call_line, log, parse_lines, text_line};

fn broken() -> String {
    log(&[
        call_line("u1", "", "m1", &["t1"]),
        text_line("u2", "u1", "Then."),
    ])
}

#[test]
fn writes_a_new_file_without_overwriting_another() {
    let dir = Harness::new("new-file");
    dir.write("a.jsonl", broken());
    let run = dir.run(&["repair", "a.jsonl"]);
    assert!(run.stderr.contains("`a.repaired.jsonl`"), "{run:?}");
    assert!(run.stdout.starts_with("a.jsonl:1: dangling: "), "{run:?}");
    let first = dir.read("a.repaired.jsonl");
    let run = dir.run(&["repair", "a.jsonl"]);
    assert!(run.stderr.contains("`a.repaired1.jsonl`"), "{run:?}");
    assert_eq!(
        dir.names(),
        ["a.jsonl", "a.repaired.jsonl", "a.repaired1.jsonl"]
    );
    assert_eq!(dir.read("a.jsonl"), broken());
    // The repair is deterministic.
    assert_eq!(dir.read("a.repaired1.jsonl"), first);
}

#[test]
fn keeps_the_original_and_earlier_backups_in_place() {
    let dir = Harness::new("backup");
    dir.write("a.jsonl", broken());
    dir.write("a.jsonl.bak", "an earlier backup");
    let run = dir.run(&["repair", "--in-place", "a.jsonl"]);
    assert!(run.stderr.contains("`a.jsonl.bak1`"), "{run:?}");
    assert_eq!(dir.names(), ["a.jsonl", "a.jsonl.bak", "a.jsonl.bak1"]);
    assert_eq!(dir.read("a.jsonl.bak"), "an earlier backup");
    assert_eq!(dir.read("a.jsonl.bak1"), broken());
    assert_eq!(dir.findings("a.jsonl"), []);
    // A second repair changes nothing.
    let run = dir.run(&["repair", "--in-place", "a.jsonl"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(dir.names().len(), 3);
}

#[test]
fn keeps_the_permissions() {
    let dir = Harness::new("permissions");
    dir.write("a.jsonl", broken());
    let path = dir.join("a.jsonl");
    let before = std::fs::metadata(&path).expect("file exists").ino();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))
        .expect("permissions set");
    dir.run(&["repair", "--in-place", "a.jsonl"]);
    dir.run(&["repair", "a.jsonl.bak"]);
    for name in ["a.jsonl", "a.jsonl.bak", "a.jsonl.repaired.bak"] {
        let metadata = std::fs::metadata(dir.join(name)).expect("file exists");
        assert_eq!(metadata.mode() & 0o777, 0o600, "{name}");
        // The backup is the original file itself.
        assert_eq!(metadata.ino() == before, name == "a.jsonl.bak", "{name}");
    }
}

#[test]
fn follows_a_symbolic_link() {
    let dir = Harness::new("link");
    dir.write("a.jsonl", broken());
    symlink("a.jsonl", dir.join("l.jsonl")).expect("link created");
    assert_eq!(dir.run(&["repair", "--in-place", "l.jsonl"]).code, Some(0));
    let link = dir.join("l.jsonl");
    assert!(
        std::fs::symlink_metadata(link)
            .expect("file exists")
            .is_symlink()
    );
    assert_eq!(dir.findings("a.jsonl"), []);
    assert_eq!(dir.read("a.jsonl.bak"), broken());
}

#[test]
fn writes_a_gzip_file_for_a_gzip_file() {
    let dir = Harness::new("gzip");
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder
        .write_all(broken().as_bytes())
        .expect("written to memory");
    dir.write("a.jsonl.gz", encoder.finish().expect("written to memory"));
    assert_eq!(dir.findings("a.jsonl.gz"), [(1, "dangling".to_owned())]);
    assert_eq!(dir.run(&["repair", "a.jsonl.gz"]).code, Some(0));
    assert_eq!(dir.names(), ["a.jsonl.gz", "a.repaired.jsonl.gz"]);
    let bytes = std::fs::read(dir.join("a.repaired.jsonl.gz")).expect("file exists");
    let mut text = String::new();
    GzDecoder::new(&bytes[..])
        .read_to_string(&mut text)
        .expect("gzip file");
    assert_eq!(parse_lines(&text).len(), 3);
}

#[test]
fn reports_and_keeps_a_truncated_last_line() {
    let dir = Harness::new("truncated");
    let truncated = r#"{"parentUuid":"u2","type":"assis"#;
    dir.write("a.jsonl", format!("{}{truncated}", broken()));
    let run = dir.run(&["check", "a.jsonl"]);
    assert_eq!(run.code, Some(10));
    assert!(run.stderr.starts_with("warning: `a.jsonl`, line 3: "));
    dir.run(&["repair", "--in-place", "a.jsonl"]);
    let after = dir.read("a.jsonl");
    assert!(after.ends_with(truncated));
    assert_eq!(after.lines().count(), 4);
}

#[test]
fn accepts_an_empty_file() {
    let dir = Harness::new("empty");
    dir.write("a.jsonl", "");
    let run = dir.run(&["check", "a.jsonl"]);
    assert_eq!(run.code, Some(0));
    assert!(run.stderr.starts_with("warning: `a.jsonl`"), "{run:?}");
    assert_eq!(dir.run(&["repair", "a.jsonl"]).code, Some(0));
    assert_eq!(dir.names(), ["a.jsonl"]);
}

#[test]
fn rejects_a_file_that_is_not_a_session_with_a_hint() {
    let dir = Harness::new("none");
    for text in [
        "not JSON\n",
        "{\"a\":1}\n",
        "{\"id\":\"x\",\"steps\":[]}\n",
        "[1,2",
    ] {
        dir.write("a", text);
        for command in ["check", "repair"] {
            let run = dir.run(&[command, "a"]);
            assert_eq!(run.code, Some(1), "{text}: {run:?}");
            assert!(run.stderr.starts_with("error: "), "{run:?}");
            assert!(run.stderr.contains("\nhint: "), "{run:?}");
            assert_eq!(run.stdout, "");
        }
    }
    assert_eq!(dir.names(), ["a"]);
    assert_eq!(dir.run(&["check", "missing"]).code, Some(3));
    assert_eq!(dir.run(&["check"]).code, Some(2));
}

#[test]
fn keeps_the_original_if_no_new_file_can_be_created() {
    let dir = Harness::new("long-name");
    // Longer names exceed the limit of the file system, so no new file can be created.
    let name = format!("{}.jsonl", "a".repeat(245));
    dir.write(&name, broken());
    let run = dir.run(&["repair", "--in-place", &name]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains(&name), "{run:?}");
    assert_eq!(dir.names(), std::slice::from_ref(&name));
    assert_eq!(dir.read(&name), broken());
}
