//! Edits and no-ops under the default rule.

use onward_core::turn::{ExternalChange, Progress};
use serde_json::json;

use crate::harness::{Harness, Step, sentence, shell, tool};

fn edit(old: &str, new: &str) -> Step {
    let input = json!({ "file_path": "/repo/a.rs", "old_string": old, "new_string": new });
    tool("Edit", input, "The file was updated.")
}

const EDITED: Option<Progress> = Some(Progress::Edited { call: 0 });

#[test]
fn a_new_successful_edit_is_progress_with_any_output() {
    let mut harness = Harness::default();
    for nth in 0..20 {
        assert_eq!(
            harness.progress(&edit(&format!("v{nth}"), &format!("v{}", nth + 1))),
            EDITED
        );
    }
    let mut off = Harness::with_parts(|parts| parts.edits = false);
    assert_ne!(off.progress(&edit("a", "b")), EDITED);
}

#[test]
fn recognizes_the_edit_tools_of_all_agents() {
    let mut harness = Harness::default();
    for name in [
        "Write",
        "MultiEdit",
        "NotebookEdit",
        "write_file",
        "replace",
        "apply_patch",
        "edit",
        "str_replace_editor",
        "StrReplaceFile",
        "create",
    ] {
        assert_eq!(
            harness.progress(&tool(name, json!({ "path": "a" }), "ok")),
            EDITED,
            "{name}"
        );
    }
    for name in ["TodoWrite", "TaskCreate", "write_stdin", "Bash", "Read"] {
        assert_ne!(
            harness.progress(&tool(name, json!({ "path": "b" }), "ok")),
            EDITED,
            "{name}"
        );
    }
    let view = json!({ "command": "view", "path": "a" });
    assert_ne!(
        harness.progress(&tool("str_replace_editor", view, "ok")),
        EDITED
    );
}

#[test]
fn a_failed_or_repeated_edit_is_not_progress() {
    let mut harness = Harness::default();
    harness.observe(&edit("a", "b").failed());
    assert_eq!(harness.idle_halves(&edit("a", "b").failed()), Some(2));
    assert_eq!(harness.progress(&edit("b", "c")), EDITED);
    assert_eq!(harness.idle_halves(&edit("b", "c")), Some(2));
}

#[test]
fn a_writing_shell_command_is_an_edit_without_a_fingerprint() {
    let mut harness = Harness::default();
    for command in [
        "sed -i s/a/b/ a.txt",
        "mv a.txt b.txt",
        "echo hello > c.txt",
        "mkdir -p d",
        "git add e",
        "cat <<'END' > f.txt\nrm -rf nothing\nEND",
    ] {
        let step = shell(command, "");
        assert_eq!(
            harness.idle_halves(&step.clone()),
            Some(0),
            "{command}: unchanged"
        );
        assert_eq!(
            harness.idle_halves(&step.external(ExternalChange::Unknown)),
            Some(2),
            "{command}: repeated"
        );
        let elsewhere = shell(&format!("cd /x && {command}"), "").external(ExternalChange::Unknown);
        assert_eq!(harness.progress(&elsewhere), EDITED, "{command}");
    }
    for command in [
        "ls > /dev/null",
        "grep a b 2>&1",
        "git status",
        "git log | head",
    ] {
        let step = shell(command, "").external(ExternalChange::Unknown);
        assert_ne!(harness.progress(&step), EDITED, "{command}");
    }
}

#[test]
fn a_writing_command_with_known_output_is_not_an_edit() {
    let update = |nth: usize| {
        let line = format!("cp draft{nth}.txt /srv/out");
        shell(&line, "cp: cannot write")
            .unflagged()
            .external(ExternalChange::Unknown)
    };
    let mut harness = Harness::default();
    assert_ne!(harness.progress(&update(1)), EDITED);
    assert_eq!(harness.idle_halves(&update(2)), Some(2));
}

#[test]
fn the_content_of_a_here_document_is_not_a_command() {
    let search = shell("grep tide <<'END'\nrm moon\nEND\n", "").external(ExternalChange::Unknown);
    assert_ne!(Harness::default().progress(&search), EDITED);
}

#[test]
fn a_repeated_edit_is_not_progress_even_if_the_file_changes() {
    let insert = || {
        tool(
            "edit",
            json!("edit 4:4\nfn twice() {}\nend_of_edit"),
            "1:\n4:fn twice() {}",
        )
        .changed()
    };
    let mut harness = Harness::default();
    assert_eq!(harness.progress(&insert()), Some(Progress::Changed));
    assert_eq!(harness.idle_halves(&insert()), Some(2));
    assert_eq!(harness.stalls_after((0..20).map(|_| insert())), Some(7));

    let mut off = Harness::with_parts(|parts| parts.repeats = false);
    off.observe(&insert());
    assert_eq!(off.progress(&insert()), Some(Progress::Changed));
}

#[test]
fn alternating_between_two_changes_is_not_progress() {
    let steps = || {
        ["touch marker", "rm marker"]
            .into_iter()
            .cycle()
            .map(|command| shell(command, "").changed())
    };
    assert_eq!(Harness::default().stalls_after(steps().take(30)), Some(10));
    let mut off = Harness::with_parts(|parts| parts.repeats = false);
    assert_eq!(off.stalls_after(steps().take(30)), None);
}

#[test]
fn a_tree_that_returns_to_an_earlier_state_is_not_progress() {
    let run = |command: &str| shell(command, "");
    let mut harness = Harness::default();
    assert!(harness.progress(&run("./format").tree("a", "b")).is_some());
    // The same command leaves another state.
    assert!(harness.progress(&run("./format").tree("b", "c")).is_some());
    // Other commands restore earlier states.
    assert_eq!(
        harness.idle_halves(&run("git stash").tree("c", "a")),
        Some(2)
    );
    for nth in 0..8 {
        let other = run(&format!("git checkout {}", ["c", "a"][nth % 2]));
        harness.observe(&other.tree(["a", "c"][nth % 2], ["c", "a"][nth % 2]));
    }
    assert!(harness.detector.idle_steps() >= 6);

    let mut off = Harness::with_parts(|parts| parts.repeats = false);
    off.observe(&run("make").tree("a", "b"));
    assert!(off.progress(&run("make clean").tree("b", "a")).is_some());
}

#[test]
fn a_change_with_a_new_command_or_a_build_is_progress() {
    let mut harness = Harness::default();
    let repeated = || shell("rm -f out.txt", "");
    harness.observe(&repeated().changed());
    let with_new_command = repeated().and(shell("./generate --fresh", "")).changed();
    assert_eq!(harness.progress(&with_new_command), Some(Progress::Changed));
    // A repeated build may have changed something else than before.
    harness.observe(&shell("make", "").changed());
    assert_eq!(
        harness.progress(&shell("make", "").changed()),
        Some(Progress::Changed)
    );
}

#[test]
fn known_no_ops_are_idle_with_any_output() {
    let long = sentence(1);
    let echoed = sentence(2);
    for command in [
        ":",
        "true",
        "",
        "# only a comment",
        "sleep 2",
        "sleep 1; true",
        "cat /dev/null",
        "cat < /dev/null",
        "echo 'all good' && true",
        "printf 'a\\n'",
        "true\ntrue",
        "true > /dev/null 2>&1",
        &format!("echo \"{echoed}\""),
    ] {
        let mut harness = Harness::default();
        assert_eq!(
            harness.idle_halves(&shell(command, &long)),
            Some(2),
            "{command}"
        );
        let mut off = Harness::with_parts(|parts| (parts.no_ops, parts.echoes) = (false, false));
        assert!(
            off.progress(&shell(command, &long)).is_some(),
            "{command}, parts off"
        );
    }
}

#[test]
fn reading_nothing_and_thinking_are_no_ops() {
    let mut harness = Harness::default();
    for (name, input) in [
        ("ReadFile", json!({ "path": "/dev/null" })),
        ("read_file", json!({ "path": "" })),
        (
            "think",
            json!({ "thought": "What if the Moon were nearer?" }),
        ),
    ] {
        assert_eq!(
            harness.idle_halves(&tool(name, input, &sentence(1))),
            Some(2),
            "{name}"
        );
    }
}

#[test]
fn commands_that_read_or_write_are_not_no_ops() {
    let long = sentence(1);
    for command in [
        "echo $PATH",
        "echo `date`",
        "echo $(date)",
        "echo a > b",
        "echo *",
        "cat a",
        "sleep 5; tail log",
        "truely",
    ] {
        let mut harness = Harness::default();
        assert!(
            harness.progress(&shell(command, &long)).is_some(),
            "{command}"
        );
    }
}

#[test]
fn the_command_can_be_the_whole_input_or_the_last_list_item() {
    for (name, input) in [
        ("echo", json!("echo done")),
        ("shell", json!({ "command": ["bash", "-lc", "echo done"] })),
        ("exec_command", json!({ "cmd": "echo done" })),
        ("run_shell_command", json!({ "command": "echo done" })),
    ] {
        let mut harness = Harness::default();
        assert_eq!(
            harness.idle_halves(&tool(name, input, &sentence(1))),
            Some(2),
            "{name}"
        );
    }
}
