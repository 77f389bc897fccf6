//! Hooks of one session that run at once, each in a process of its own.

use std::io::Write;

use crate::desk::{Answer, Desk};

#[test]
fn steps_that_are_told_of_at_once_are_all_counted() {
    let desk = Desk::new("steps-at-once", "codex");
    desk.tell("prompt").is_silent();
    let hooks: Vec<_> = (0..16)
        .map(|_| {
            let payload = desk.payload("idle");
            let mut child = desk.onward(&["hook", "codex"]).spawn().unwrap();
            child
                .stdin
                .take()
                .unwrap()
                .write_all(payload.as_bytes())
                .unwrap();
            child
        })
        .collect();
    let mut told = 0;
    for hook in hooks {
        let answer = Answer::of(hook.wait_with_output().unwrap());
        assert_eq!((answer.code, answer.stderr.as_str()), (Some(0), ""));
        told += usize::from(!answer.stdout.is_empty());
    }
    assert_eq!(told, 2, "one nudge and one reminder");
    let session = desk.ask(&["session", "show", "019a", "--json"]);
    let turn = &session["turns"][0];
    assert_eq!(
        (&turn["stepCount"], &turn["idleSteps"]),
        (&16.into(), &16.into())
    );
    assert_eq!(turn["steps"].as_array().unwrap().len(), 16);
}

#[test]
fn calls_that_are_asked_for_at_once_are_all_refused() {
    let desk = Desk::new("calls-at-once", "claude-code");
    desk.tell("prompt").is_silent();
    desk.idle(8);
    let hooks: Vec<_> = (0..8)
        .map(|_| {
            let payload = desk.payload("before");
            let mut child = desk.onward(&["hook", "claude-code"]).spawn().unwrap();
            child
                .stdin
                .take()
                .unwrap()
                .write_all(payload.as_bytes())
                .unwrap();
            child
        })
        .collect();
    let answers: Vec<Answer> = hooks
        .into_iter()
        .map(|hook| Answer::of(hook.wait_with_output().unwrap()))
        .collect();
    assert!(
        answers
            .iter()
            .all(|answer| answer.stdout.contains("\"deny\""))
    );
    let stopped = |answer: &&Answer| answer.stdout.contains("\"continue\":false");
    assert_eq!(
        answers.iter().filter(stopped).count(),
        6,
        "all but the first two"
    );
}

fn log(desk: &Desk) -> u64 {
    let log = desk.folder.join("onward.db-wal");
    std::fs::metadata(log).map_or(0, |about| about.len())
}

#[test]
fn the_log_that_the_next_hook_reads_is_copied_back_when_the_turn_is_over() {
    let desk = Desk::new("log", "claude-code");
    desk.tell("prompt").is_silent();
    for _ in 0..12 {
        desk.tell("news").is_silent();
    }
    let length = log(&desk);
    assert!(
        length > 300_000,
        "the file is not closed after every step: {length}"
    );
    desk.tell("stop").is_silent();
    assert_eq!(log(&desk), 0);
}

#[test]
fn the_log_of_a_turn_that_does_not_end_stays_short_all_the_same() {
    let desk = Desk::new("long-log", "claude-code");
    desk.tell("prompt").is_silent();
    // Words, which are remembered one by one: what is kept of the turn is as long as it can be.
    let word = |number: u32| {
        let letter = |place: u32| char::from_u32(97 + number / 26_u32.pow(place) % 26);
        (0..4).filter_map(letter).collect::<String>()
    };
    let lines: Vec<String> = (0..8_000).map(word).collect();
    let much = desk
        .payload("news")
        .replace("A long enough line", &lines.join("\\n"));
    desk.send(&["hook", "claude-code"], much.as_bytes())
        .is_silent();
    let mut longest = 0;
    let copied_back = (0..90).any(|_| {
        desk.tell("news").is_silent();
        let length = log(&desk);
        let shrank = length < longest;
        longest = longest.max(length);
        shrank
    });
    assert!(copied_back, "{longest}");
    assert!((1 << 20..9 << 20).contains(&longest), "{longest}");
}
