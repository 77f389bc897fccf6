//! What the default rule takes for doing something: edits, the same edit again, and known no-ops.

use onward_core::turn::{Outside, Progress};
use serde_json::json;

use crate::desk::{Desk, Step, sentence, shell, tool};

fn edit(old: &str, new: &str) -> Step {
    let input = json!({ "file_path": "/repo/a.rs", "old_string": old, "new_string": new });
    tool("Edit", input, "The file was updated.")
}

const EDITED: Option<Progress> = Some(Progress::Edited { call: 0 });

#[test]
fn a_different_edit_that_succeeded_is_progress_whatever_its_acknowledgement() {
    let mut desk = Desk::default();
    for nth in 0..20 {
        assert_eq!(
            desk.why(&edit(&format!("v{nth}"), &format!("v{}", nth + 1))),
            EDITED
        );
    }
    let mut off = Desk::parts(|parts| parts.edits = false);
    assert_eq!(off.halves(&edit("a", "b")), Some(1));
}

#[test]
fn every_agents_tool_for_edits_is_known_as_one() {
    let mut desk = Desk::default();
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
            desk.why(&tool(name, json!({ "path": "a" }), "ok")),
            EDITED,
            "{name}"
        );
    }
    for name in ["TodoWrite", "TaskCreate", "write_stdin", "Bash", "Read"] {
        assert_eq!(
            desk.why(&tool(name, json!({ "path": "b" }), "ok")),
            None,
            "{name}"
        );
    }
    let view = json!({ "command": "view", "path": "a" });
    assert_eq!(desk.why(&tool("str_replace_editor", view, "ok")), None);
}

#[test]
fn an_edit_that_failed_or_was_made_before_is_none() {
    let mut desk = Desk::default();
    desk.see(&edit("a", "b").failed());
    assert_eq!(desk.halves(&edit("a", "b").failed()), Some(2));
    assert_eq!(desk.why(&edit("b", "c")), EDITED);
    assert_eq!(desk.halves(&edit("b", "c")), Some(2));
}

#[test]
fn a_shell_command_that_writes_is_an_edit_where_nobody_sees_the_outside() {
    let mut desk = Desk::default();
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
            desk.halves(&step.clone()),
            Some(1),
            "{command}: nothing changed"
        );
        assert_eq!(
            desk.halves(&step.outside(Outside::Unknown)),
            Some(2),
            "{command}: again"
        );
        let elsewhere = shell(&format!("cd /x && {command}"), "").outside(Outside::Unknown);
        assert_eq!(desk.why(&elsewhere), EDITED, "{command}");
    }
    for command in [
        "ls > /dev/null",
        "grep a b 2>&1",
        "git status",
        "git log | head",
    ] {
        let step = shell(command, "").outside(Outside::Unknown);
        assert_eq!(desk.halves(&step), Some(2), "{command}");
    }
}

#[test]
fn a_command_that_writes_and_says_what_was_said_before_is_no_edit() {
    let update = |nth: usize| {
        let line = format!("cp draft{nth}.txt /srv/out");
        shell(&line, "cp: cannot write")
            .unflagged()
            .outside(Outside::Unknown)
    };
    let mut desk = Desk::default();
    assert_eq!(desk.why(&update(1)), EDITED);
    assert_eq!(desk.halves(&update(2)), Some(1));
}

#[test]
fn what_stands_in_a_here_document_is_no_command() {
    let search = shell("grep tide <<'END'\nrm moon\nEND\n", "").outside(Outside::Unknown);
    assert_eq!(Desk::default().halves(&search), Some(2));
}

#[test]
fn the_same_edit_once_more_is_no_progress_although_the_file_changes() {
    let insert = || {
        tool(
            "edit",
            json!("edit 4:4\nfn twice() {}\nend_of_edit"),
            "1:\n4:fn twice() {}",
        )
        .changed()
    };
    let mut desk = Desk::default();
    assert_eq!(desk.why(&insert()), Some(Progress::Changed));
    assert_eq!(desk.halves(&insert()), Some(2));
    assert_eq!(desk.stalls_after((0..20).map(|_| insert())), Some(7));

    let mut off = Desk::parts(|parts| parts.repeats = false);
    off.see(&insert());
    assert_eq!(off.why(&insert()), Some(Progress::Changed));
}

#[test]
fn to_and_fro_is_no_progress() {
    let steps = || {
        ["touch marker", "rm marker"]
            .into_iter()
            .cycle()
            .map(|command| shell(command, "").changed())
    };
    assert_eq!(Desk::default().stalls_after(steps().take(30)), Some(10));
    let mut off = Desk::parts(|parts| parts.repeats = false);
    assert_eq!(off.stalls_after(steps().take(30)), None);
}

#[test]
fn a_change_beside_a_repeated_edit_is_progress() {
    let mut desk = Desk::default();
    let repeated = || shell("rm -f out.txt", "");
    desk.see(&repeated().changed());
    let with_a_new_one = repeated().and(shell("./generate --fresh", "")).changed();
    assert_eq!(desk.why(&with_a_new_one), Some(Progress::Changed));
    // A build that is run again may well have changed something else than before.
    desk.see(&shell("make", "").changed());
    assert_eq!(
        desk.why(&shell("make", "").changed()),
        Some(Progress::Changed)
    );
}

#[test]
fn known_no_ops_are_idle_whatever_they_print() {
    let long = sentence(1);
    let said = sentence(2);
    for command in [
        ":",
        "true",
        "",
        "# only a thought",
        "sleep 5",
        "sleep 1; true",
        "cat /dev/null",
        "cat < /dev/null",
        "echo 'all is well' && true",
        "printf 'a\\n'",
        "true\ntrue",
        "true > /dev/null 2>&1",
        &format!("echo \"{said}\""),
    ] {
        let mut desk = Desk::default();
        assert_eq!(desk.halves(&shell(command, &long)), Some(2), "{command}");
        let mut off = Desk::parts(|parts| (parts.no_ops, parts.echoes) = (false, false));
        assert!(
            off.why(&shell(command, &long)).is_some(),
            "{command}, switched off"
        );
    }
}

#[test]
fn reading_nothing_and_thinking_aloud_are_no_ops_too() {
    let mut desk = Desk::default();
    for (name, input) in [
        ("ReadFile", json!({ "path": "/dev/null" })),
        ("read_file", json!({ "path": "" })),
        (
            "think",
            json!({ "thought": "What if the Moon were nearer?" }),
        ),
    ] {
        assert_eq!(
            desk.halves(&tool(name, input, &sentence(1))),
            Some(2),
            "{name}"
        );
    }
}

#[test]
fn what_asks_or_writes_is_no_no_op() {
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
        let mut desk = Desk::default();
        assert!(desk.why(&shell(command, &long)).is_some(), "{command}");
    }
}

#[test]
fn a_command_may_be_the_whole_input_or_the_end_of_a_list() {
    for (name, input) in [
        ("echo", json!("echo done")),
        ("shell", json!({ "command": ["bash", "-lc", "echo done"] })),
        ("exec_command", json!({ "cmd": "echo done" })),
        ("run_shell_command", json!({ "command": "echo done" })),
    ] {
        let mut desk = Desk::default();
        assert_eq!(
            desk.halves(&tool(name, input, &sentence(1))),
            Some(2),
            "{name}"
        );
    }
}
