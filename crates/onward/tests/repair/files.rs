//! Where the new file goes, what stays of the old one, and files that are no sessions.

use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use crate::desk::{Scratch, answers, calls, log, values};

fn broken() -> String {
    log(&[calls("u1", "", "m1", &["t1"]), answers("u2", "u1", "Then.")])
}

#[test]
fn a_new_file_stands_beside_the_old_one_and_never_in_the_place_of_another() {
    let scratch = Scratch::new("beside");
    scratch.write("a.jsonl", broken());
    let run = scratch.run(&["repair", "a.jsonl"]);
    assert_eq!(run.stderr, "1 thing put right in `a.repaired.jsonl`\n");
    assert_eq!(
        run.stdout,
        "a.jsonl:1: dangling: the call `t1` of `Bash` has no result\n"
    );
    let first = scratch.read("a.repaired.jsonl");
    let run = scratch.run(&["repair", "a.jsonl"]);
    assert_eq!(run.stderr, "1 thing put right in `a.repaired1.jsonl`\n");
    assert_eq!(
        scratch.names(),
        ["a.jsonl", "a.repaired.jsonl", "a.repaired1.jsonl"]
    );
    assert_eq!(scratch.read("a.jsonl"), broken());
    // The same session gives the same bytes.
    assert_eq!(scratch.read("a.repaired1.jsonl"), first);
}

#[test]
fn in_place_the_old_file_is_kept_and_an_earlier_backup_too() {
    let scratch = Scratch::new("backup");
    scratch.write("a.jsonl", broken());
    scratch.write("a.jsonl.bak", "an earlier one");
    let run = scratch.run(&["repair", "--in-place", "a.jsonl"]);
    assert_eq!(
        run.stderr,
        "1 thing put right; the old file is kept as `a.jsonl.bak1`\n"
    );
    assert_eq!(scratch.names(), ["a.jsonl", "a.jsonl.bak", "a.jsonl.bak1"]);
    assert_eq!(scratch.read("a.jsonl.bak"), "an earlier one");
    assert_eq!(scratch.read("a.jsonl.bak1"), broken());
    assert_eq!(scratch.found("a.jsonl"), []);
    // Once more, and there is nothing to do.
    let run = scratch.run(&["repair", "--in-place", "a.jsonl"]);
    assert_eq!(
        run.stderr,
        "nothing is wrong with `a.jsonl`; it stays as it is\n"
    );
    assert_eq!(scratch.names().len(), 3);
}

#[test]
fn the_new_file_has_the_permissions_of_the_old_one() {
    let scratch = Scratch::new("permissions");
    scratch.write("a.jsonl", broken());
    let path = scratch.0.join("a.jsonl");
    let before = std::fs::metadata(&path).expect("it is there").ino();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("it is mine");
    scratch.run(&["repair", "--in-place", "a.jsonl"]);
    scratch.run(&["repair", "a.jsonl.bak"]);
    for name in ["a.jsonl", "a.jsonl.bak", "a.jsonl.repaired.bak"] {
        let metadata = std::fs::metadata(scratch.0.join(name)).expect("it is there");
        assert_eq!(metadata.mode() & 0o777, 0o600, "{name}");
        // The old file itself is the backup; the new one was whole before it took its name.
        assert_eq!(metadata.ino() == before, name == "a.jsonl.bak", "{name}");
    }
}

#[test]
fn a_link_stays_a_link() {
    let scratch = Scratch::new("link");
    scratch.write("a.jsonl", broken());
    symlink("a.jsonl", scratch.0.join("l.jsonl")).expect("a link can be made");
    assert_eq!(
        scratch.run(&["repair", "--in-place", "l.jsonl"]).code,
        Some(0)
    );
    let link = scratch.0.join("l.jsonl");
    assert!(
        std::fs::symlink_metadata(link)
            .expect("it is there")
            .is_symlink()
    );
    assert_eq!(scratch.found("a.jsonl"), []);
    assert_eq!(scratch.read("a.jsonl.bak"), broken());
}

#[test]
fn what_was_packed_is_packed_again() {
    let scratch = Scratch::new("packed");
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed
        .write_all(broken().as_bytes())
        .expect("it is in memory");
    scratch.write("a.jsonl.gz", packed.finish().expect("it is in memory"));
    assert_eq!(scratch.found("a.jsonl.gz"), [(1, "dangling".to_owned())]);
    assert_eq!(scratch.run(&["repair", "a.jsonl.gz"]).code, Some(0));
    assert_eq!(scratch.names(), ["a.jsonl.gz", "a.repaired.jsonl.gz"]);
    let bytes = std::fs::read(scratch.0.join("a.repaired.jsonl.gz")).expect("it is there");
    let mut text = String::new();
    GzDecoder::new(&bytes[..])
        .read_to_string(&mut text)
        .expect("it is packed");
    assert_eq!(values(&text).len(), 3);
}

#[test]
fn a_torn_last_line_is_told_and_kept() {
    let scratch = Scratch::new("torn");
    let torn = r#"{"parentUuid":"u2","type":"assis"#;
    scratch.write("a.jsonl", format!("{}{torn}", broken()));
    let run = scratch.run(&["check", "a.jsonl"]);
    assert_eq!(run.code, Some(10));
    assert!(
        run.stderr
            .starts_with("warning: `a.jsonl`, line 3: the last line is torn\n")
    );
    scratch.run(&["repair", "--in-place", "a.jsonl"]);
    let after = scratch.read("a.jsonl");
    assert!(after.ends_with(torn));
    assert_eq!(after.lines().count(), 4);
}

#[test]
fn an_empty_file_has_nothing_wrong() {
    let scratch = Scratch::new("empty");
    scratch.write("a.jsonl", "");
    let run = scratch.run(&["check", "a.jsonl"]);
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (Some(0), "warning: `a.jsonl` is empty\nnothing is wrong\n")
    );
    assert_eq!(scratch.run(&["repair", "a.jsonl"]).code, Some(0));
    assert_eq!(scratch.names(), ["a.jsonl"]);
}

#[test]
fn what_is_no_session_is_refused_with_a_hint() {
    let scratch = Scratch::new("none");
    for (text, says) in [
        ("not JSON\n", "error: `a`, line 1: not JSON"),
        ("{\"a\":1}\n", "error: `a` is in no format that can be read"),
        (
            "{\"id\":\"x\",\"steps\":[]}\n",
            "error: `a` holds `turns`, in which there is nothing to repair",
        ),
        ("[1,2", "error: `a`, line 1: not JSON"),
    ] {
        scratch.write("a", text);
        for command in ["check", "repair"] {
            let run = scratch.run(&[command, "a"]);
            assert_eq!(run.code, Some(1), "{text}: {run:?}");
            assert!(run.stderr.starts_with(says), "{run:?}");
            assert!(run.stderr.contains("\nhint: "), "{run:?}");
            assert_eq!(run.stdout, "");
        }
    }
    assert_eq!(scratch.names(), ["a"]);
    assert_eq!(scratch.run(&["check", "gone"]).code, Some(3));
    assert_eq!(scratch.run(&["check"]).code, Some(2));
}

#[test]
fn a_folder_that_cannot_be_written_loses_nothing() {
    let scratch = Scratch::new("long-name");
    // No name that is longer fits, so no new file can be made.
    let name = format!("{}.jsonl", "a".repeat(245));
    scratch.write(&name, broken());
    let run = scratch.run(&["repair", "--in-place", &name]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("cannot be repaired"), "{run:?}");
    assert_eq!(scratch.names(), std::slice::from_ref(&name));
    assert_eq!(scratch.read(&name), broken());
}
