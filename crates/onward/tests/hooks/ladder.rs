//! What counts for the ladder, and what does not.

use crate::desk::Desk;

#[test]
fn what_brings_news_is_never_held_against_the_agent() {
    let desk = Desk::new("news", "claude-code");
    desk.tell("prompt").is_silent();
    for _ in 0..12 {
        desk.tell("news").is_silent();
        desk.tell("before").is_silent();
    }
}

#[test]
fn the_echo_of_a_refusal_feeds_no_count_and_tools_work_after_an_answer() {
    let desk = Desk::new("echo", "claude-code");
    desk.tell("prompt").is_silent();
    desk.idle(8);
    assert!(desk.tell("before").stdout.contains("\"deny\""));
    for _ in 0..3 {
        desk.tell("refused_batch").is_silent();
    }
    let session = desk.ask(&["session", "show", "7d0c", "--json"]);
    assert_eq!(session["turns"][0]["stepCount"], 8);
    desk.tell("stop").is_silent();
    desk.tell("before").is_silent();
}

#[test]
fn subagents_are_judged_by_themselves() {
    let desk = Desk::new("subagents", "claude-code");
    desk.tell("prompt").is_silent();
    for _ in 0..8 {
        desk.tell("sub_idle");
    }
    assert!(desk.tell("sub_before").stdout.contains("\"deny\""));
    desk.tell("before").is_silent();
    desk.tell("sub_stop").is_silent();
    desk.tell("sub_before").is_silent();
}

#[test]
fn calls_that_are_told_of_alone_count_where_no_batch_is_told_of() {
    let desk = Desk::new("alone", "claude-code");
    desk.tell("prompt").is_silent();
    for _ in 0..8 {
        desk.tell("idle_alone");
    }
    assert!(desk.tell("before").stdout.contains("\"deny\""));
}

#[test]
fn a_failure_is_news_once() {
    let desk = Desk::new("failure", "claude-code");
    desk.tell("prompt").is_silent();
    for _ in 0..8 {
        desk.tell("failed_alone").is_silent_or_context();
    }
    let session = desk.ask(&["session", "show", "7d0c", "--json"]);
    let steps = session["turns"][0]["steps"].as_array().unwrap();
    assert_eq!(steps[0]["why"], "a new error");
    assert_eq!(steps[0]["calls"][0]["ok"], false);
    assert_eq!(session["turns"][0]["idleSteps"], 7);
}

#[test]
fn the_configuration_sets_how_far_the_ladder_goes() {
    let desk = Desk::new("warn", "claude-code")
        .set("ONWARD_LOOP_CONTROL__ON_STALL", "warn")
        .set("ONWARD_LOOP_CONTROL__PROGRESS_STALL_THRESHOLD", 2);
    desk.tell("idle").is_silent();
    let warned = desk.tell("idle").json();
    assert!(
        warned["systemMessage"]
            .as_str()
            .unwrap()
            .contains("2 steps in a row")
    );
    desk.tell("before").is_silent();

    let desk = Desk::new("nudge", "claude-code")
        .set("ONWARD_LOOP_CONTROL__ON_STALL", "nudge")
        .set("ONWARD_LOOP_CONTROL__PROGRESS_STALL_THRESHOLD", 2);
    let context = desk.idle(2).json();
    assert!(context["hookSpecificOutput"]["additionalContext"].is_string());
    desk.tell("before").is_silent();

    let desk = Desk::new("off", "claude-code").set("ONWARD_LOOP_CONTROL__ON_STALL", "off");
    for _ in 0..9 {
        desk.tell("idle").is_silent();
    }
    desk.tell("before").is_silent();
}

#[test]
fn a_limit_of_steps_is_kept() {
    let desk = Desk::new("limit", "claude-code").set("ONWARD_LOOP_CONTROL__MAX_STEPS_PER_TURN", 2);
    desk.tell("prompt").is_silent();
    desk.tell("news").is_silent();
    assert!(desk.tell("news").stdout.contains("has taken 2 steps"));
    assert!(desk.tell("before").stdout.contains("\"deny\""));
}

#[test]
fn cursor_s_run_of_another_agent_s_hooks_is_passed_over() {
    let desk = Desk::new("of-cursor", "claude-code");
    desk.tell("of_cursor").is_silent();
    assert!(!desk.folder.join("onward.db").exists());
}

impl crate::desk::Answer {
    /// Whatever was said was said to the model.
    #[track_caller]
    fn is_silent_or_context(&self) {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""));
        assert!(self.stdout.is_empty() || self.stdout.contains("additionalContext"));
    }
}
