//! The rows that a command changes, the next check by the sweep, and the queue of the project.

use std::time::Duration;

use onward_core::command::{KeepLateResult, Modification, PlanUpdate};
use onward_core::event::Decision;
use onward_core::id::ArtifactId;
use onward_core::next_check::Due;
use onward_core::transition::{QueueChange, StepAfter, Transition};
use onward_core::{Code, Command, DEFAULT_STALL_THRESHOLD, StepId, Timestamp};

use crate::harness::{
    Harness, MINUTE, abandon, captured_plan, create_plan, decision, id, modify, resume_session,
    spec, sweep,
};

/// Executes a command and returns its effect on all steps.
fn transition(harness: &mut Harness, command: &Command) -> Transition {
    transition_with(harness, command, Duration::MAX)
}

fn transition_with(
    harness: &mut Harness,
    command: &Command,
    no_agent_after: Duration,
) -> Transition {
    let (head, steps) = (harness.plan.head().clone(), harness.plan.steps().to_vec());
    let events = harness.execute(command).unwrap();
    let transition = Transition::new(head, steps, &events, harness.now, no_agent_after).unwrap();
    assert_eq!(&transition.head, harness.plan.head());
    transition
}

fn changed(transition: &Transition) -> Vec<StepId> {
    let changed = transition.changed.iter();
    changed.map(|after| after.step.id()).collect()
}

/// The only changed step.
fn changed_step(transition: &Transition) -> &StepAfter {
    let [after] = &*transition.changed else {
        panic!("{:?} changed", changed(transition));
    };
    after
}

fn stalls_at(harness: &Harness) -> Timestamp {
    harness.now.checked_add(DEFAULT_STALL_THRESHOLD).unwrap()
}

#[test]
fn a_claim_changes_its_step_and_schedules_a_check_after_its_threshold() {
    let mut harness = Harness::with_steps(2);
    let command = harness.start_next(None, false);
    let claimed = transition(&mut harness, &command);
    let after = changed_step(&claimed);
    let at = stalls_at(&harness);
    assert_eq!((after.step.id(), after.stalls_at), (id(1), Some(at)));
    assert!(after.advanced && !after.redefined);
    assert_eq!(claimed.due, Due::By(at.next()));
    assert_eq!(claimed.unchanged, harness.plan.steps()[1..]);
}

#[test]
fn the_thresholds_of_the_step_and_the_plan_determine_the_next_check() {
    let mut plan = create_plan(2);
    plan.stall_threshold = Some(5 * MINUTE);
    plan.steps[0].stall_threshold = Some(MINUTE);
    let mut harness = Harness::new(plan);
    for threshold in [MINUTE, 5 * MINUTE] {
        let command = harness.start_next(None, false);
        let claimed = transition(&mut harness, &command);
        let at = harness.now.checked_add(threshold).unwrap();
        assert_eq!(changed_step(&claimed).stalls_at, Some(at));
        assert_eq!(claimed.due, Due::By(at.next()));
        let order = changed_step(&claimed).step.order;
        harness.run(&harness.submit(order, None));
    }
}

#[test]
fn a_result_changes_its_step_and_keeps_the_scheduled_check() {
    let mut harness = Harness::with_steps(2).started();
    let command = harness.submit(1, None);
    let completed = transition(&mut harness, &command);
    let after = changed_step(&completed);
    assert_eq!((after.step.id(), after.stalls_at), (id(1), None));
    assert!(after.advanced && !after.redefined);
    assert_eq!(completed.due, Due::Unchanged);
}

#[test]
fn a_repeated_result_changes_nothing_even_in_a_completed_plan() {
    let mut harness = Harness::with_steps(1).started();
    let command = harness.submit(1, None);
    assert_eq!(transition(&mut harness, &command).due, Due::Never);
    let repeated = transition(&mut harness, &command);
    assert_eq!((changed(&repeated), repeated.due), (vec![], Due::Unchanged));
}

#[test]
fn a_step_with_more_than_a_claim_and_a_result_is_written_completely() {
    let mut harness = Harness::with_steps(1).started();
    for command in [harness.report(1, None), harness.submit(1, None)] {
        assert!(!changed_step(&transition(&mut harness, &command)).advanced);
    }
    let mut harness = Harness::with_steps(1).started();
    let requeue = modify(Modification::RequeueStep { step: id(1) });
    assert!(!changed_step(&transition(&mut harness, &requeue)).advanced);
    let command = harness.start_next(None, false);
    assert!(changed_step(&transition(&mut harness, &command)).advanced);
}

#[test]
fn a_review_that_returns_the_step_changes_its_instructions_and_schedules_a_check_now() {
    let mut harness = Harness::with_steps(1).started();
    let command = harness.request_review(1, None);
    let requested = transition(&mut harness, &command);
    assert_eq!(changed_step(&requested).stalls_at, None);
    assert!(!changed_step(&requested).redefined);
    assert_eq!(requested.due, Due::Unchanged);

    harness.advance(MINUTE);
    let returned = transition(
        &mut harness,
        &decision(1, Decision::Modify, Some("shorter")),
    );
    let after = changed_step(&returned);
    assert_eq!(after.stalls_at, Some(stalls_at(&harness)));
    assert!(after.redefined && !after.advanced);
    assert_eq!(returned.due, Due::By(harness.now));
}

#[test]
fn new_instructions_change_only_their_step() {
    let mut harness = Harness::with_steps(2);
    let update = modify(Modification::UpdateInstructions {
        step: id(2),
        instructions: "new".to_owned(),
    });
    let updated = transition(&mut harness, &update);
    assert_eq!(changed(&updated), [id(2)]);
    assert!(changed_step(&updated).redefined);
    assert_eq!(updated.due, Due::Unchanged);
}

#[test]
fn a_stall_mark_changes_the_stalled_steps_only() {
    let mut harness = Harness::with_steps(3).started();
    harness.advance(31 * MINUTE);
    let marked = transition(&mut harness, &sweep());
    assert_eq!(changed(&marked), [id(1)]);
    assert!(!changed_step(&marked).advanced);
}

#[test]
fn a_resumed_plan_is_checked_immediately() {
    let mut harness = Harness::with_steps(1).stalled();
    let resumed = transition(&mut harness, &Command::ResumePlan);
    assert_eq!(
        (changed(&resumed), resumed.due),
        (vec![], Due::By(harness.now))
    );
}

#[test]
fn a_terminal_plan_is_never_checked() {
    let mut harness = Harness::with_steps(2).started();
    let abandoned = transition(&mut harness, &abandon());
    assert_eq!((changed(&abandoned), abandoned.due), (vec![], Due::Never));
}

#[test]
fn a_plan_without_a_claimed_step_is_checked_once_it_has_no_agent() {
    let mut harness = Harness::with_steps(3).started();
    let submit = harness.submit(1, None);
    let completed = transition_with(&mut harness, &submit, MINUTE);
    let at = harness.now.checked_add(MINUTE).unwrap();
    assert_eq!(completed.due, Due::By(at.next()));
    let claim = harness.start_next(None, false);
    let claimed = transition_with(&mut harness, &claim, MINUTE);
    assert_eq!(claimed.due, Due::By(stalls_at(&harness).next()));
}

#[test]
fn a_captured_plan_is_never_due_for_inactivity() {
    let mut harness = Harness::new(captured_plan(3));
    let claim = harness.start_next(None, false);
    let claimed = transition_with(&mut harness, &claim, MINUTE);
    assert_eq!(claimed.due, Due::Unchanged);
    let submit = harness.submit(1, None);
    let completed = transition_with(&mut harness, &submit, MINUTE);
    assert_eq!(completed.due, Due::Unchanged);
}

#[test]
fn an_input_is_superseded_by_the_next_one_and_by_the_result_of_its_attempt() {
    let keep = |artifact, attempt| {
        Command::KeepLateResult(KeepLateResult {
            step: id(1),
            artifact: ArtifactId::from_u128(artifact),
            rejection: Code::InvalidInput,
            attempt: Some(attempt),
        })
    };
    let mut harness = Harness::with_steps(1).started();
    let superseded = |harness: &mut Harness, command: &Command| {
        let superseded = transition(harness, command).superseded.into_iter();
        superseded
            .map(|input| input.as_uuid().as_u128())
            .collect::<Vec<_>>()
    };
    assert_eq!(superseded(&mut harness, &keep(1, 1)), []);
    assert_eq!(superseded(&mut harness, &keep(2, 1)), [1]);
    let report = harness.report(1, None);
    assert_eq!(superseded(&mut harness, &report), []);
    // The input of an attempt stays after a takeover.
    harness.advance(31 * MINUTE);
    let takeover = harness.start_next(None, true);
    assert_eq!(superseded(&mut harness, &takeover), []);
    assert_eq!(superseded(&mut harness, &keep(3, 2)), []);
    let submit = harness.submit(1, None);
    assert_eq!(superseded(&mut harness, &submit), [3]);
}

#[test]
fn an_event_about_the_plan_changes_no_step() {
    let mut harness = Harness::with_steps(1).started();
    for command in [
        resume_session("second"),
        modify(Modification::ReorderSteps { steps: vec![id(1)] }),
    ] {
        let transition = transition(&mut harness, &command);
        assert_eq!(
            (changed(&transition), transition.due),
            (vec![], Due::Unchanged)
        );
    }
}

#[test]
fn a_command_changes_the_queue_if_steps_join_or_leave_it() {
    let mut plan = create_plan(2);
    plan.routing.project_key = Some("site".to_owned());
    let mut harness = Harness::new(plan);
    let add = modify(Modification::AddSteps {
        steps: vec![spec(3)],
        insert_after: None,
    });
    let update = PlanUpdate {
        priority: Some(9),
        ..PlanUpdate::default()
    };
    let update = modify(Modification::UpdatePlan { update });
    let claim = harness.start_next(None, false);
    let request = harness.request_review(1, None);
    let returned = decision(1, Decision::Modify, Some("shorter"));
    for (command, expected) in [
        (claim, QueueChange::Unchanged),
        (add, QueueChange::Enqueue),
        (update, QueueChange::Enqueue),
        (request, QueueChange::Dequeue),
        (returned, QueueChange::Enqueue),
        (abandon(), QueueChange::Dequeue),
    ] {
        let queue = transition(&mut harness, &command).queue;
        assert_eq!(queue, expected, "{command:?}");
    }
}

#[test]
fn rejects_events_that_do_not_match_the_loaded_steps() {
    let mut harness = Harness::with_steps(1).started();
    let (head, steps) = (harness.plan.head().clone(), harness.plan.steps().to_vec());
    let command = harness.submit(1, None);
    let events = harness.execute(&command).unwrap();
    let completed = harness.plan.steps().to_vec();
    assert!(Transition::new(head.clone(), steps, &events, harness.now, MINUTE).is_ok());
    let error = Transition::new(head, completed, &events, harness.now, MINUTE).unwrap_err();
    assert_eq!(error.event, "step_completed");
}
