//! A hook in a project whose `onward.toml` is not trusted.

use crate::harness::Harness;

#[test]
fn a_hook_does_not_write_to_the_database_of_an_untrusted_project() {
    let harness = Harness::new("untrusted-project", "claude-code").with_env("ONWARD_DATABASE", "");
    let file = harness.work_dir().join("onward.toml");
    std::fs::write(file, "database = \"theirs.db\"\n").unwrap();
    let theirs = harness.work_dir().join("theirs.db");
    let run = harness.send("prompt");
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), ""));
    assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
    assert!(
        run.stderr.contains("`database`") && run.stderr.contains("onward trust"),
        "{run:?}"
    );
    assert!(!theirs.exists());
    let default = harness
        .program
        .dir
        .join("home/.local/share/onward/onward.db");
    assert!(default.exists());
    assert_eq!(harness.run(&["trust"], b"").code, Some(0));
    harness.send("prompt").assert_empty();
    assert!(theirs.exists());
}
