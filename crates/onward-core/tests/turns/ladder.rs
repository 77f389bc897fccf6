//! The ladder: what a verdict leads to, and how far it goes.

use onward_core::turn::ladder::{Gate, Held, REFUSAL_OPENING, Rung, Standing};
use onward_core::turn::ladder::{for_person, last_words, nudge, refusal, reminder};
use onward_core::turn::{
    Evidence, LoopControl, Nothing, OnStall, Outside, Progress, TurnPolicy, Verdict,
};

fn control(on_stall: OnStall) -> LoopControl {
    LoopControl {
        on_stall,
        ..LoopControl::default()
    }
}

fn idle(steps: u32) -> Verdict {
    match steps < 8 {
        true => Verdict::Idle {
            steps,
            threshold: 8,
        },
        false => Verdict::Stalled {
            steps,
            evidence: Vec::new(),
        },
    }
}

fn progress() -> Verdict {
    Verdict::Progress {
        why: Progress::Changed,
    }
}

/// What each of so many idle steps in a row leads to.
fn climb(control: &LoopControl, standing: &mut Standing, steps: u32) -> Vec<Rung> {
    (1..=steps)
        .map(|steps| control.after_step(standing, &idle(steps)))
        .collect()
}

#[test]
fn the_nudge_comes_at_half_the_threshold_and_the_reminder_at_it_each_once() {
    use Rung::{Ground, Nudge, Reminder};
    let control = control(OnStall::TextOnly);
    let mut standing = Standing::default();
    let rungs = climb(&control, &mut standing, 10);
    let expected = [
        Ground, Ground, Ground, Nudge, Ground, Ground, Ground, Reminder, Ground, Ground,
    ];
    assert_eq!(rungs, expected);
    assert_eq!(standing.held, Some(Held::Stalled));
    assert_eq!((standing.steps, standing.idle_steps), (10, 10));
}

#[test]
fn progress_opens_everything_again_and_the_next_nudge_comes_anew() {
    let control = control(OnStall::TextOnly);
    let mut standing = Standing::default();
    climb(&control, &mut standing, 8);
    assert!(control.is_closed(&standing));
    assert_eq!(control.after_step(&mut standing, &progress()), Rung::Ground);
    assert!(!control.is_closed(&standing));
    let rungs = climb(&control, &mut standing, 4);
    assert_eq!(rungs.last(), Some(&Rung::Nudge));
}

#[test]
fn calls_are_refused_once_it_is_stalled_and_the_third_refusal_stops_the_turn() {
    let control = control(OnStall::TextOnly);
    let mut standing = Standing::default();
    climb(&control, &mut standing, 7);
    assert_eq!(control.before_call(&mut standing), Gate::Open);
    control.after_step(&mut standing, &idle(8));
    let gates: Vec<Gate> = (0..5).map(|_| control.before_call(&mut standing)).collect();
    use Gate::{Refused, Stopped};
    assert_eq!(gates, [Refused, Refused, Stopped, Stopped, Stopped]);
    assert_eq!(standing.refusals, 5);
    assert_eq!(standing.steps, 8, "a refused call is no step");
}

#[test]
fn the_ladder_goes_as_far_as_its_owner_lets_it() {
    for (on_stall, at_half, at_threshold, gate) in [
        (OnStall::Nudge, Rung::Nudge, Rung::Reminder, Gate::Open),
        (OnStall::Warn, Rung::Ground, Rung::Warning, Gate::Open),
        (OnStall::Off, Rung::Ground, Rung::Ground, Gate::Open),
    ] {
        let control = control(on_stall);
        let mut standing = Standing::default();
        let rungs = climb(&control, &mut standing, 8);
        assert_eq!((rungs[3], rungs[7]), (at_half, at_threshold), "{on_stall}");
        assert_eq!(control.before_call(&mut standing), gate, "{on_stall}");
        assert_eq!(standing.refusals, 0, "{on_stall}");
    }
}

#[test]
fn a_limit_of_steps_ends_in_text_whatever_the_steps_brought() {
    let control = LoopControl {
        max_steps: 3,
        ..LoopControl::default()
    };
    let mut standing = Standing::default();
    let rungs: Vec<Rung> = (0..4)
        .map(|_| control.after_step(&mut standing, &progress()))
        .collect();
    use Rung::{Ground, Reminder};
    assert_eq!(rungs, [Ground, Ground, Reminder, Ground]);
    assert_eq!(standing.held, Some(Held::MaxSteps));
    assert_eq!(control.before_call(&mut standing), Gate::Refused);
    assert!(reminder(&standing, Outside::Same, &[]).starts_with("This turn has taken 4 steps"));
}

#[test]
fn a_late_fingerprint_changes_nothing_and_the_end_forgets_everything() {
    let control = control(OnStall::TextOnly);
    let mut standing = Standing::default();
    climb(&control, &mut standing, 8);
    let held = standing.held;
    control.after_step(&mut standing, &Verdict::Unjudged { steps: 8 });
    assert_eq!(standing.held, held);
    control.after_step(&mut standing, &Verdict::Ended);
    assert_eq!(standing, Standing::default());
}

#[test]
fn a_threshold_of_one_has_no_room_for_a_nudge() {
    let control = LoopControl {
        turn: TurnPolicy {
            stall_threshold: 1,
            ..TurnPolicy::default()
        },
        ..LoopControl::default()
    };
    let mut standing = Standing::default();
    let stalled = Verdict::Stalled {
        steps: 1,
        evidence: Vec::new(),
    };
    assert_eq!(control.after_step(&mut standing, &stalled), Rung::Reminder);
}

#[test]
fn what_is_said_names_what_was_seen() {
    let standing = Standing {
        idle_steps: 8,
        held: Some(Held::Stalled),
        ..Standing::default()
    };
    let call = |step| Evidence {
        step,
        tool: "Bash".to_owned(),
        input: "true".to_owned(),
        output: String::new(),
        why: Nothing::NoOp,
    };
    let evidence: Vec<Evidence> = (1..=5).map(call).collect();
    assert_eq!(
        nudge(&standing, Outside::Same),
        "In the last 8 steps no file changed and nothing new was learned."
    );
    assert_eq!(
        reminder(&standing, Outside::Unknown, &evidence),
        "In the last 8 steps nothing new was learned (step 3: Bash `true`: it does nothing; \
         step 4: Bash `true`: it does nothing; step 5: Bash `true`: it does nothing). What helps \
         now is an answer in text: what is known, what was tried, and what is needed to go on. \
         After it tools work again."
    );
    let refused = refusal(&standing, &evidence);
    assert!(refused.starts_with(&format!("{REFUSAL_OPENING}: in the last 8 steps")));
    assert!(for_person(&standing).contains("8 steps in a row"));
    assert_eq!(
        last_words(&standing),
        "I am stopping here: in the last 8 steps nothing new was learned, and no answer came \
         without another tool call."
    );
    let spent = Standing {
        steps: 30,
        held: Some(Held::MaxSteps),
        ..standing
    };
    assert!(last_words(&spent).contains("this turn has taken 30 steps, as many as it may, and no"));
}

#[test]
fn words_are_read_back() {
    for on_stall in OnStall::ALL {
        assert_eq!(on_stall.as_str().parse(), Ok(on_stall));
    }
    for held in Held::ALL {
        assert_eq!(held.as_str().parse(), Ok(held));
    }
    let why = "sing".parse::<OnStall>().unwrap_err().to_string();
    assert!(why.contains("`text_only`"), "{why}");
}
