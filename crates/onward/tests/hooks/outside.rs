//! The working tree counts: what changed there is progress, whatever the calls said.

use std::process::Command;

use crate::desk::Desk;

fn git(desk: &Desk, arguments: &[&str]) {
    let run = Command::new("git")
        .args(["-c", "user.name=me", "-c", "user.email=me@example.org"])
        .args(arguments)
        .current_dir(desk.work())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .expect("git is there");
    assert!(run.status.success(), "{arguments:?}: {run:?}");
}

fn write(desk: &Desk, name: &str, text: &str) {
    let path = desk.work().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A checkout with one commit and one file that is dirty already.
fn checkout(test: &str) -> Desk {
    let desk = Desk::new(test, "codex");
    git(&desk, &["init", "-q", "-b", "main"]);
    write(&desk, "a.txt", "one\n");
    write(&desk, "b.txt", "one\n");
    git(&desk, &["add", "."]);
    git(&desk, &["commit", "-q", "-m", "first"]);
    write(&desk, "a.txt", "two\n");
    desk.tell("prompt").is_silent();
    desk
}

/// How the last step was judged. A machine under load may be too late to look.
fn judged(desk: &Desk) -> (String, String) {
    desk.tell("idle");
    let session = desk.ask(&["session", "show", "019a", "--json"]);
    let steps = session["turns"][0]["steps"].as_array().unwrap().clone();
    let last = steps.last().unwrap();
    let text = |key: &str| last[key].as_str().unwrap_or_default().to_owned();
    (text("verdict"), text("why"))
}

/// Tries until there was time for a look; what is looked at stays the same meanwhile.
fn in_time(desk: &Desk) -> String {
    for _ in 0..50 {
        let (verdict, why) = judged(desk);
        if verdict != "unjudged" {
            return if why == "the outside changed" {
                why
            } else {
                verdict
            };
        }
    }
    panic!("fifty looks were all too late")
}

#[test]
fn what_changes_the_working_tree_is_progress() {
    let desk = checkout("outside");
    // The first look that was in time may be this one.
    in_time(&desk);
    assert_eq!(in_time(&desk), "idle");
    let changes: [(&str, &dyn Fn()); 8] = [
        ("a second edit of a dirty file", &|| {
            write(&desk, "a.txt", "six\n")
        }),
        ("an edit that leaves size and time as they were", &|| {
            let path = desk.work().join("a.txt");
            let at = std::fs::metadata(&path).unwrap().modified().unwrap();
            write(&desk, "a.txt", "ten\n");
            let file = std::fs::File::options().write(true).open(&path).unwrap();
            file.set_modified(at).unwrap();
        }),
        ("an edit of a clean file", &|| {
            write(&desk, "b.txt", "two\n")
        }),
        ("a new file", &|| write(&desk, "new/c.txt", "one\n")),
        ("a file in a directory that git does not know", &|| {
            write(&desk, "new/deep/d.txt", "one\n");
        }),
        ("the index", &|| git(&desk, &["add", "a.txt"])),
        ("a commit", &|| {
            git(&desk, &["commit", "-q", "-m", "second"])
        }),
        ("a file that is gone", &|| {
            std::fs::remove_file(desk.work().join("new/c.txt")).unwrap();
        }),
    ];
    for (what, change) in changes {
        change();
        assert_eq!(in_time(&desk), "the outside changed", "{what}");
        assert_eq!(in_time(&desk), "idle", "after {what}");
    }
}

#[test]
fn what_git_ignores_and_outside_of_a_checkout_there_is_no_signal() {
    let desk = checkout("ignored");
    write(&desk, ".gitignore", "target/\n");
    in_time(&desk);
    in_time(&desk);
    write(&desk, "target/x", "built\n");
    assert_eq!(in_time(&desk), "idle");

    let desk = Desk::new("no-checkout", "codex").set("GIT_CEILING_DIRECTORIES", "/");
    desk.tell("prompt").is_silent();
    judged(&desk);
    write(&desk, "a.txt", "one\n");
    let (verdict, _) = judged(&desk);
    assert_eq!(verdict, "idle");
}

#[test]
fn a_fifo_a_link_into_nowhere_and_a_long_file_hold_up_nobody() {
    let desk = checkout("odd-files");
    let made = Command::new("mkfifo")
        .arg(desk.work().join("pipe"))
        .status();
    assert!(made.expect("mkfifo is there").success());
    std::os::unix::fs::symlink("/dev/zero", desk.work().join("link")).unwrap();
    let long = std::fs::File::create(desk.work().join("long")).unwrap();
    long.set_len(8 << 30).unwrap();
    in_time(&desk);
    assert_eq!(in_time(&desk), "idle");
    // The end of a long file counts.
    std::os::unix::fs::FileExt::write_at(&long, b"x", (8 << 30) - 1).unwrap();
    assert_eq!(in_time(&desk), "the outside changed");
    // In the middle nobody reads, but its time tells.
    std::os::unix::fs::FileExt::write_at(&long, b"x", 4 << 30).unwrap();
    assert_eq!(in_time(&desk), "the outside changed");
}
