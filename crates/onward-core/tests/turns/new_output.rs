//! New output under the default rule: new lines, echoes of the input, errors and short outputs.

use onward_core::turn::{ExternalChange, OUTPUT_NOT_REPORTED, Progress};
use serde_json::json;

use crate::harness::{Harness, Step, read, sentence, shell, tool};

fn page(from: usize, to: usize) -> String {
    (from..to).map(|nth| sentence(nth) + "\n").collect()
}

#[test]
fn an_output_with_known_lines_is_judged_by_its_new_lines() {
    let mut harness = Harness::default();
    harness.observe(&read("a", &page(0, 20)));
    assert_eq!(harness.idle_halves(&read("b", &page(3, 17))), Some(2));
    assert_eq!(harness.idle_halves(&read("b", &page(3, 17))), Some(2));
    let one_new = format!("{}{}", page(3, 17), sentence(99));
    assert!(harness.progress(&read("c", &one_new)).is_some());
    let short_new = format!("{}and this", page(3, 17));
    assert_eq!(harness.idle_halves(&read("d", &short_new)), Some(1));

    let mut off = Harness::with_parts(|parts| parts.lines = false);
    off.observe(&read("a", &page(0, 20)));
    assert!(off.progress(&read("b", &page(3, 17))).is_some());
}

#[test]
fn ignores_line_numbers() {
    let mut harness = Harness::default();
    let numbered = |start: usize, separator: &str| -> String {
        (0..10)
            .map(|nth| format!("{:>6}{separator}{}\n", start + nth, sentence(nth)))
            .collect()
    };
    harness.observe(&read("a", &numbered(1, "\t")));
    for again in [numbered(900, "\t"), numbered(7, ":"), numbered(7, " | ")] {
        assert!(harness.idle_halves(&read("a", &again)).is_some());
    }
}

#[test]
fn searches_without_matches_are_idle() {
    let search = |query: &str| {
        let output = format!("No matches found for \"{query}\" in the directory /srv/repository.");
        tool(
            "search_dir",
            json!(format!("search_dir \"{query}\"")),
            &output,
        )
    };
    let queries = [
        "install guide",
        "how to build",
        "setup.md",
        "prerequisites",
        "environment",
    ];
    let searches = || {
        queries.iter().cycle().enumerate().map(|(nth, query)| {
            let letter = char::from(b'a' + u8::try_from(nth % 26).unwrap());
            search(&format!("{query} {letter}"))
        })
    };
    assert_eq!(
        Harness::default().stalls_after(searches().take(20)),
        Some(9)
    );

    let mut off = Harness::with_parts(|parts| (parts.echoes, parts.refusals) = (false, false));
    assert_eq!(off.stalls_after(searches().take(20)), None);
}

#[test]
fn another_table_of_numbers_is_progress() {
    let table = |nth: u64| {
        let rows = (0..20).map(|row| format!("{},{}\n", nth * 7919 + row, nth * row * 31));
        read(&format!("data-{nth}.csv"), &rows.collect::<String>())
    };
    assert_eq!(Harness::default().stalls_after((1..20).map(table)), None);
    // The same table in other files is not.
    let copies = (1..20).map(|nth| read(&format!("copy-{nth}.csv"), &page(0, 5)));
    assert!(Harness::default().stalls_after(copies).is_some());
}

#[test]
fn reading_back_written_text_is_not_progress() {
    let text = page(0, 5);
    let write = tool(
        "Write",
        json!({ "file_path": "a", "content": text }),
        "Done.",
    )
    .changed();
    let mut harness = Harness::default();
    harness.observe(&write);
    assert!(harness.idle_halves(&read("a", &text)).is_some());

    let mut off = Harness::with_parts(|parts| parts.echoes = false);
    off.observe(&write);
    assert!(off.progress(&read("a", &text)).is_some());
}

#[test]
fn output_of_a_program_is_new_even_if_its_words_are_in_the_input() {
    let program = |verdict: &str| {
        let code = format!(
            "{}\nprint('all of the checks of the second stage', verdict)",
            page(0, 4)
        );
        tool(
            "python",
            json!({ "code": code }),
            &format!("all of the checks of the second stage {verdict}, as it seems to be"),
        )
    };
    let mut harness = Harness::default();
    assert!(harness.progress(&program("passed")).is_some());
    assert!(harness.progress(&program("failed")).is_some());
}

#[test]
fn a_new_error_is_progress_once() {
    let error = |name: &str| shell("make", &format!("error: cannot find `{name}`")).failed();
    let mut harness = Harness::default();
    assert_eq!(
        harness.progress(&error("alpha")),
        Some(Progress::NewError { call: 0 })
    );
    assert_eq!(harness.idle_halves(&error("alpha")), Some(2));
    assert_eq!(
        harness.progress(&error("beta")),
        Some(Progress::NewError { call: 0 })
    );
    assert_eq!(harness.idle_halves(&error("alpha")), Some(2));

    let mut off = Harness::with_parts(|parts| parts.errors = false);
    assert_eq!(off.idle_halves(&error("alpha")), Some(2));
}

#[test]
fn errors_that_differ_only_in_the_echoed_input_are_equal() {
    let missing = |name: &str| {
        let output = format!("/bin/sh: line {}: {name}: command not found", name.len());
        tool(name, json!(format!("{name} --version")), &output).failed()
    };
    let mut harness = Harness::default();
    assert!(harness.progress(&missing("javac")).is_some());
    for name in ["mvn", "gradle", "ant", "bazel"] {
        assert_eq!(harness.idle_halves(&missing(name)), Some(2), "{name}");
    }
}

#[test]
fn errors_with_the_same_cause_are_equal() {
    let attempts = [
        (
            "apt-get install x",
            "E: Could not open lock file: Permission denied",
        ),
        ("sudo apt-get install x", "sudo: a password is required"),
        ("su -c 'apt install x'", "su: Authentication failure"),
        ("doas apt install x", "doas: Operation not permitted"),
    ];
    let mut harness = Harness::default();
    for (at, (command, error)) in attempts.into_iter().enumerate() {
        let call = shell(command, error).failed();
        let idle = harness.idle_halves(&call);
        assert_eq!(idle.is_none(), at == 0, "{command}");
    }
}

#[test]
fn an_error_of_which_most_lines_are_known_is_not_new() {
    let known = "gyp ERR! find Python Python is not set from command line or configuration\n\
                 gyp ERR! stack Error: not found: make\ngyp ERR! not ok";
    let mut harness = Harness::default();
    assert!(harness.progress(&shell("npm ci", known).failed()).is_some());
    let framed = shell("yarn install", &format!("error: Command failed.\n{known}")).failed();
    assert!(harness.idle_halves(&framed).is_some());
}

#[test]
fn a_failed_check_of_something_else_counts_half() {
    let lint = |file: &str, line: u32| {
        let found = format!(
            "{file}\n  {line}:3  error  Unexpected any  no-explicit-any\n\n✖ {line} problems"
        );
        shell(&format!("eslint {file}"), &found).failed()
    };
    let mut harness = Harness::default();
    assert!(harness.progress(&lint("src/ada.ts", 77)).is_some());
    assert_eq!(harness.idle_halves(&lint("src/bob.ts", 38)), Some(1));
    assert_eq!(harness.idle_halves(&lint("src/bob.ts", 38)), Some(2));
}

#[test]
fn short_answers_to_new_questions_are_progress() {
    let commands =
        || (0..20).map(|nth| shell(&format!("wc -l file{nth}"), &format!("{}", 7 * nth + 100)));
    assert_eq!(Harness::default().stalls_after(commands()), None);

    let mut off = Harness::with_parts(|parts| parts.answers = false);
    assert_eq!(off.stalls_after(commands()), Some(8));
}

#[test]
fn the_same_answer_is_progress_if_the_question_is_about_something_else() {
    let mut harness = Harness::default();
    let learned = Some(Progress::Learned { call: 0 });
    for (command, progress) in [
        ("pytest -q", learned),
        ("pytest -q tests", learned),
        ("pytest --verbose tests", None),
        ("pytest -x --no-header", None),
        ("pytest -q moon", learned),
    ] {
        assert_eq!(
            harness.progress(&shell(command, "40 passed")),
            progress,
            "{command}"
        );
    }
}

#[test]
fn a_different_answer_is_progress_even_if_it_is_an_address() {
    let mut harness = Harness::default();
    for nth in 0..12_u64 {
        let commit = format!("{:040x}", (nth + 7) * 0x9e37_79b9_7f4a);
        let step = shell(&format!("git rev-parse branch-{nth}"), &commit);
        assert!(harness.progress(&step).is_some(), "{commit}");
    }
}

#[test]
fn actions_with_equal_acknowledgements_are_progress() {
    let mut harness = Harness::default();
    for nth in 0..20 {
        for step in [
            tool(
                "TaskUpdate",
                json!({ "taskId": nth, "status": "completed" }),
                "Updated",
            ),
            tool(
                "mcp__onward__modify_plan",
                json!({ "step": nth }),
                "{\"ok\": true}",
            ),
            shell(
                &format!("psql -c \"update a set b = 1 where id = {nth}\""),
                "UPDATE 1",
            ),
            shell(&format!("ssh host{nth} 'sudo systemctl restart web'"), ""),
            tool(
                "browser_click",
                json!({ "ref": format!("e{nth}") }),
                "Clicked",
            ),
        ] {
            assert_ne!(harness.idle_halves(&step), Some(2), "{step:?}");
        }
        // The same action again is not exempt.
        let again = tool(
            "TaskUpdate",
            json!({ "taskId": 0, "status": "completed" }),
            "Updated",
        );
        assert_eq!(harness.idle_halves(&again), Some(2));
    }
    let mut off = Harness::with_parts(|parts| (parts.actions, parts.answers) = (false, false));
    let update = |nth: usize| tool("TaskUpdate", json!({ "taskId": nth }), "Updated");
    assert_eq!(off.stalls_after((0..20).map(update)), Some(8));
}

#[test]
fn a_message_to_the_same_recipient_needs_something_to_say() {
    let send = |text: &str| tool("SendMessage", json!({ "to": "b", "text": text }), "Sent.");
    let mut harness = Harness::default();
    harness.observe(&send("What is the status of task 2?"));
    assert_eq!(
        harness.idle_halves(&send("Is that the status of task 2?")),
        Some(0)
    );
    assert_eq!(
        harness.idle_halves(&send("What is that task status?")),
        Some(2)
    );
    let other = send("Please add a test for leap years to the importer before you finish.");
    assert!(harness.progress(&other).is_some());
}

#[test]
fn refusals_in_plain_text_are_a_loop() {
    let refusals = [
        "BLOCKED: reading is disabled in this directory",
        "Please provide exactly one action.",
    ];
    let steps = |flag: Option<bool>| {
        (0..20).map(move |nth| {
            let name = ["Bash", "Read", "Grep"][nth % 3];
            let step = tool(
                name,
                json!({ "what": format!("x{nth}") }),
                refusals[nth % 2],
            );
            if flag.is_none() {
                step.unflagged()
            } else {
                step
            }
        })
    };
    assert_eq!(Harness::default().stalls_after(steps(None)), Some(10));
    assert_eq!(Harness::default().stalls_after(steps(Some(true))), Some(10));
    let mut off = Harness::with_parts(|parts| parts.refusals = false);
    assert_ne!(off.stalls_after(steps(None)), Some(10));
}

#[test]
fn the_same_output_of_different_tools_is_not_an_answer() {
    let steps = (0..20).map(|nth| {
        let name = ["Bash", "Read", "Grep"][nth % 3];
        tool(
            name,
            json!({ "what": format!("x{nth}") }),
            "Zugriff verweigert",
        )
    });
    assert!(
        Harness::default()
            .stalls_after(steps)
            .is_some_and(|steps| steps <= 12)
    );
}

#[test]
fn the_second_empty_search_result_counts_as_a_full_idle_step() {
    let mut harness = Harness::default();
    assert_eq!(harness.idle_halves(&shell("rg omega src", "")), Some(0));
    for command in [
        "grep -rn alpha src",
        "find / -name beta 2>/dev/null",
        "cd src && rg gamma | head",
    ] {
        assert_eq!(
            harness.idle_halves(&shell(command, "")),
            Some(2),
            "{command}"
        );
    }
    assert_eq!(
        harness.idle_halves(&tool("Grep", json!({ "pattern": "delta" }), "")),
        Some(2)
    );
}

#[test]
fn a_new_command_without_output_does_not_count_as_idle() {
    let send = |nth: usize| shell(&format!("./ring --bell {nth}"), "");
    let unknown = |step: Step| step.external(ExternalChange::Unknown);
    // The effect is unknown: the step neither counts nor resets.
    let mut harness = Harness::default();
    harness.observe(&shell("true", ""));
    assert_eq!(harness.idle_halves(&unknown(send(1))), Some(0));
    // Nothing changed here, but the command may have had an effect elsewhere.
    assert_eq!(harness.idle_halves(&send(2)), Some(0));
    // The same command again is a loop.
    assert_eq!(harness.idle_halves(&unknown(send(1))), Some(2));

    let mut off = Harness::with_parts(|parts| parts.answers = false);
    assert_eq!(off.idle_halves(&unknown(send(1))), Some(2));
}

#[test]
fn an_unreported_output_counts_only_for_a_repeated_call() {
    let mut harness = Harness::default();
    for file in ["a", "b", "c"] {
        assert_eq!(
            harness.idle_halves(&read(file, OUTPUT_NOT_REPORTED)),
            Some(0)
        );
    }
    assert_eq!(
        harness.idle_halves(&read("b", OUTPUT_NOT_REPORTED)),
        Some(2)
    );

    let mut off = Harness::with_parts(|parts| parts.answers = false);
    off.observe(&read("a", OUTPUT_NOT_REPORTED));
    assert_eq!(off.idle_halves(&read("b", OUTPUT_NOT_REPORTED)), Some(2));
}
