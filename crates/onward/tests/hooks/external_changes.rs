//! Changes of the working tree count as progress, regardless of the results of the calls.

use std::process::Command;

use onward_core::turn::{Judgement, Progress};
use onward_testbed::git;

use crate::harness::Harness;

fn write(harness: &Harness, name: &str, text: &str) {
    let path = harness.work_dir().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A checkout with one commit and one modified file.
fn checkout(test: &str) -> Harness {
    let harness = Harness::new(test, "codex");
    git(harness.work_dir(), &["init", "-q", "-b", "main"]);
    write(&harness, "a.txt", "one\n");
    write(&harness, "b.txt", "one\n");
    git(harness.work_dir(), &["add", "."]);
    git(harness.work_dir(), &["commit", "-q", "-m", "first"]);
    write(&harness, "a.txt", "two\n");
    harness.send("prompt").assert_empty();
    harness
}

/// The judgement of one more step.
#[derive(Debug, PartialEq)]
enum Outcome {
    Changed,
    Judged(Judgement),
}

const IDLE: Outcome = Outcome::Judged(Judgement::Idle);

fn judge(harness: &Harness) -> Outcome {
    harness.send("idle");
    let session = harness.session();
    let step = session["turns"][0]["steps"].as_array().unwrap().last();
    let step = step.unwrap();
    if step["why"] == Progress::Changed.to_string() {
        return Outcome::Changed;
    }
    Outcome::Judged(step["verdict"].as_str().unwrap().parse().unwrap())
}

/// Repeats the step while the fingerprint times out, which happens on a loaded machine.
fn judge_in_time(harness: &Harness) -> Outcome {
    for _ in 0..50 {
        let outcome = judge(harness);
        if outcome != Outcome::Judged(Judgement::Unjudged) {
            return outcome;
        }
    }
    panic!("fifty fingerprints timed out")
}

#[test]
fn a_change_of_the_working_tree_is_progress() {
    let harness = checkout("working-tree");
    // This may be the first fingerprint, with nothing to compare to.
    judge_in_time(&harness);
    assert_eq!(judge_in_time(&harness), IDLE);
    let changes: [(&str, &dyn Fn()); 8] = [
        ("second edit of a modified file", &|| {
            write(&harness, "a.txt", "six\n")
        }),
        ("edit with the same size and time", &|| {
            let path = harness.work_dir().join("a.txt");
            let at = std::fs::metadata(&path).unwrap().modified().unwrap();
            write(&harness, "a.txt", "ten\n");
            let file = std::fs::File::options().write(true).open(&path).unwrap();
            file.set_modified(at).unwrap();
        }),
        ("edit of a clean file", &|| {
            write(&harness, "b.txt", "two\n")
        }),
        ("new file", &|| write(&harness, "new/c.txt", "one\n")),
        ("new file in an untracked directory", &|| {
            write(&harness, "new/deep/d.txt", "one\n");
        }),
        ("staged file", &|| {
            git(harness.work_dir(), &["add", "a.txt"]);
        }),
        ("commit", &|| {
            git(harness.work_dir(), &["commit", "-q", "-m", "second"]);
        }),
        ("deleted file", &|| {
            std::fs::remove_file(harness.work_dir().join("new/c.txt")).unwrap();
        }),
    ];
    for (name, change) in changes {
        change();
        assert_eq!(judge_in_time(&harness), Outcome::Changed, "{name}");
        assert_eq!(judge_in_time(&harness), IDLE, "after: {name}");
    }
}

#[test]
fn ignored_files_and_files_outside_a_checkout_do_not_count() {
    let harness = checkout("ignored");
    write(&harness, ".gitignore", "target/\n");
    judge_in_time(&harness);
    judge_in_time(&harness);
    write(&harness, "target/x", "built\n");
    assert_eq!(judge_in_time(&harness), IDLE);

    let harness = Harness::new("no-checkout", "codex").with_env("GIT_CEILING_DIRECTORIES", "/");
    harness.send("prompt").assert_empty();
    judge(&harness);
    write(&harness, "a.txt", "one\n");
    assert_eq!(judge(&harness), IDLE);
}

#[test]
fn the_database_of_onward_in_the_checkout_does_not_count() {
    for database in ["onward.db", "data/onward.db", "data/../onward.db"] {
        let harness = checkout("own-database");
        let path = harness.work_dir().join(database);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let harness = harness.with_database(path.display().to_string());
        harness.send("prompt").assert_empty();
        judge_in_time(&harness);
        for _ in 0..3 {
            assert_eq!(judge_in_time(&harness), IDLE, "{database}");
        }
        write(&harness, "onward.txt", "one\n");
        assert_eq!(judge_in_time(&harness), Outcome::Changed);
    }
}

#[test]
fn a_tree_in_an_earlier_state_is_not_a_change() {
    let harness = checkout("toggled");
    judge_in_time(&harness);
    write(&harness, "a.txt", "three\n");
    assert_eq!(judge_in_time(&harness), Outcome::Changed);
    write(&harness, "a.txt", "two\n");
    assert_eq!(judge_in_time(&harness), IDLE);
    write(&harness, "a.txt", "four\n");
    assert_eq!(judge_in_time(&harness), Outcome::Changed);
}

#[test]
fn pipes_devices_and_large_files_do_not_block_the_fingerprint() {
    let harness = checkout("special-files");
    let mkfifo = Command::new("mkfifo")
        .arg(harness.work_dir().join("pipe"))
        .status();
    assert!(mkfifo.expect("mkfifo is installed").success());
    std::os::unix::fs::symlink("/dev/zero", harness.work_dir().join("link")).unwrap();
    let large = std::fs::File::create(harness.work_dir().join("large")).unwrap();
    large.set_len(8 << 30).unwrap();
    judge_in_time(&harness);
    assert_eq!(judge_in_time(&harness), IDLE);
    // Both ends of a large file are read.
    std::os::unix::fs::FileExt::write_at(&large, b"x", (8 << 30) - 1).unwrap();
    assert_eq!(judge_in_time(&harness), Outcome::Changed);
    // The middle is not read, but the modification time changes.
    std::os::unix::fs::FileExt::write_at(&large, b"x", 4 << 30).unwrap();
    assert_eq!(judge_in_time(&harness), Outcome::Changed);
}
