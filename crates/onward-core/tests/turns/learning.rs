//! What the default rule takes for news: by the line, without the question, errors, short answers.

use onward_core::turn::{NOT_TOLD, Outside, Progress};
use serde_json::json;

use crate::desk::{Desk, Step, read, sentence, shell, tool};

fn page(from: usize, to: usize) -> String {
    (from..to).map(|nth| sentence(nth) + "\n").collect()
}

#[test]
fn an_output_that_repeats_known_lines_is_judged_by_the_new_one() {
    let mut desk = Desk::default();
    desk.see(&read("a", &page(0, 20)));
    assert_eq!(desk.halves(&read("b", &page(3, 17))), Some(1));
    assert_eq!(desk.halves(&read("b", &page(3, 17))), Some(2));
    let one_new = format!("{}{}", page(3, 17), sentence(99));
    assert!(desk.why(&read("c", &one_new)).is_some());
    let short_new = format!("{}and this", page(3, 17));
    assert_eq!(desk.halves(&read("d", &short_new)), Some(1));

    let mut off = Desk::parts(|parts| parts.lines = false);
    off.see(&read("a", &page(0, 20)));
    assert!(off.why(&read("b", &page(3, 17))).is_some());
}

#[test]
fn a_line_is_known_under_another_line_number() {
    let mut desk = Desk::default();
    let numbered = |start: usize, sign: &str| -> String {
        (0..10)
            .map(|nth| format!("{:>6}{sign}{}\n", start + nth, sentence(nth)))
            .collect()
    };
    desk.see(&read("a", &numbered(1, "\t")));
    for again in [numbered(900, "\t"), numbered(7, ":"), numbered(7, " | ")] {
        assert!(desk.halves(&read("a", &again)).is_some());
    }
}

#[test]
fn one_search_after_another_that_finds_nothing_is_idle() {
    let search = |what: &str| {
        let output = format!("No matches found for \"{what}\" in the directory /srv/repository.");
        tool(
            "search_dir",
            json!(format!("search_dir \"{what}\"")),
            &output,
        )
    };
    let words = [
        "install guide",
        "how to build",
        "setup.md",
        "prerequisites",
        "environment",
    ];
    let searches = || {
        words.iter().cycle().enumerate().map(|(nth, what)| {
            let letter = char::from(b'a' + u8::try_from(nth % 26).unwrap());
            search(&format!("{what} {letter}"))
        })
    };
    assert_eq!(Desk::default().stalls_after(searches().take(20)), Some(9));

    let mut off = Desk::parts(|parts| parts.echoes = false);
    assert_eq!(off.stalls_after(searches().take(20)), None);
}

#[test]
fn what_the_agent_wrote_itself_is_no_news_when_it_is_shown_to_it() {
    let text = page(0, 5);
    let write = tool(
        "Write",
        json!({ "file_path": "a", "content": text }),
        "Done.",
    )
    .changed();
    let mut desk = Desk::default();
    desk.see(&write);
    assert!(desk.halves(&read("a", &text)).is_some());

    let mut off = Desk::parts(|parts| parts.echoes = false);
    off.see(&write);
    assert!(off.why(&read("a", &text)).is_some());
}

#[test]
fn what_a_program_prints_is_an_answer_although_its_words_stand_in_it() {
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
    let mut desk = Desk::default();
    assert!(desk.why(&program("passed")).is_some());
    assert!(desk.why(&program("failed")).is_some());
}

#[test]
fn a_new_error_is_news_and_the_same_error_is_not() {
    let error = |name: &str| shell("make", &format!("error: cannot find `{name}`")).failed();
    let mut desk = Desk::default();
    assert_eq!(
        desk.why(&error("alpha")),
        Some(Progress::NewError { call: 0 })
    );
    assert_eq!(desk.halves(&error("alpha")), Some(2));
    assert_eq!(
        desk.why(&error("beta")),
        Some(Progress::NewError { call: 0 })
    );
    assert_eq!(desk.halves(&error("alpha")), Some(2));

    let mut off = Desk::parts(|parts| parts.errors = false);
    assert_eq!(off.halves(&error("alpha")), Some(2));
}

#[test]
fn an_error_that_only_quotes_the_call_is_the_same_error() {
    let missing = |name: &str| {
        let output = format!("/bin/sh: line {}: {name}: command not found", name.len());
        tool(name, json!(format!("{name} --version")), &output).failed()
    };
    let mut desk = Desk::default();
    assert!(desk.why(&missing("javac")).is_some());
    for name in ["mvn", "gradle", "ant", "bazel"] {
        assert_eq!(desk.halves(&missing(name)), Some(2), "{name}");
    }
}

#[test]
fn short_answers_to_new_questions_count_half() {
    let questions =
        || (0..20).map(|nth| shell(&format!("wc -l file{nth}"), &format!("{}", 7 * nth + 100)));
    assert_eq!(Desk::default().stalls_after(questions()), Some(16));

    let mut off = Desk::parts(|parts| parts.short_answers = false);
    assert_eq!(off.stalls_after(questions()), Some(8));
}

#[test]
fn the_same_short_answer_to_another_question_counts_whole() {
    let mut desk = Desk::default();
    assert_eq!(desk.halves(&shell("test -f a.txt; echo $?", "1")), Some(1));
    assert_eq!(desk.halves(&shell("test -f b.txt; echo $?", "1")), Some(2));
}

#[test]
fn an_empty_answer_to_a_search_counts_whole() {
    let mut desk = Desk::default();
    for command in [
        "grep -rn alpha src",
        "find / -name beta 2>/dev/null",
        "cd src && rg gamma | head",
    ] {
        assert_eq!(desk.halves(&shell(command, "")), Some(2), "{command}");
    }
    assert_eq!(
        desk.halves(&tool("Grep", json!({ "pattern": "delta" }), "")),
        Some(2)
    );
}

#[test]
fn a_new_command_that_says_nothing_is_not_held_against_the_agent() {
    let send = |nth: usize| shell(&format!("tmux send-keys -t main 'key {nth}' Enter"), "");
    let unknown = |step: Step| step.outside(Outside::Unknown);
    // Nobody can see what it did: it neither counts nor resets.
    let mut desk = Desk::default();
    desk.see(&shell("true", ""));
    assert_eq!(desk.halves(&unknown(send(1))), Some(0));
    // Seen to have changed nothing here, it may have done something elsewhere.
    assert_eq!(desk.halves(&send(2)), Some(1));
    // The same once more is a circle.
    assert_eq!(desk.halves(&unknown(send(1))), Some(2));

    let mut off = Desk::parts(|parts| parts.short_answers = false);
    assert_eq!(off.halves(&unknown(send(1))), Some(2));
}

#[test]
fn what_is_not_told_counts_only_where_it_is_asked_again() {
    let mut desk = Desk::default();
    for file in ["a", "b", "c"] {
        assert_eq!(desk.halves(&read(file, NOT_TOLD)), Some(0));
    }
    assert_eq!(desk.halves(&read("b", NOT_TOLD)), Some(2));

    let mut off = Desk::parts(|parts| parts.short_answers = false);
    off.see(&read("a", NOT_TOLD));
    assert_eq!(off.halves(&read("b", NOT_TOLD)), Some(2));
}
