//! The audit trail: events after the end of a plan, and rejection of inconsistent trails.

use onward_core::apply::{ApplyErrorKind, StepApplyError};
use onward_core::command::{KeepLateResult, LogSkill, SkillPhase};
use onward_core::event::Decision;
use onward_core::id::{ArtifactId, ClaimToken, SkillExecutionId};
use onward_core::plan::PlanFailure;
use onward_core::step::Claim;
use onward_core::{Code, Command, Event, Plan, PlanStatus, StepStatus};

use crate::harness::{Harness, MINUTE, decision, id, sweep};

#[test]
fn records_skills_and_late_results_of_a_terminal_plan() {
    let mut harness = Harness::with_steps(1).abandoned();
    let skill = |phase| {
        let execution = SkillExecutionId::from_u128(1);
        Command::LogSkill(LogSkill {
            execution,
            skill: "research".to_owned(),
            phase,
        })
    };
    assert_eq!(harness.run(&skill(SkillPhase::Started)), ["skill_started"]);
    assert_eq!(
        harness.run(&skill(SkillPhase::Completed)),
        ["skill_completed"]
    );
    assert_eq!(
        harness.run(&skill(SkillPhase::Failed { error: None })),
        ["skill_completed"]
    );
    let kept = KeepLateResult {
        step: id(1),
        artifact: ArtifactId::from_u128(5),
        rejection: Code::PlanIsTerminal,
        attempt: None,
    };
    assert_eq!(
        harness.run(&Command::KeepLateResult(kept)),
        ["late_result_kept"]
    );
    assert_eq!(harness.status(), PlanStatus::Failed);
    assert_eq!(harness.plan.head().seq, 6);
}

/// The plan's status changes in the audit trail: previous and new status.
fn status_changes(harness: &Harness) -> Vec<(PlanStatus, PlanStatus)> {
    use PlanStatus::{Completed, Executing, Failed, Stalled};
    let change = |(event, _): &(Event, _)| match event {
        Event::PlanStatusChanged { from, to } => Some((*from, *to)),
        Event::PlanStalled { .. } => Some((Executing, Stalled)),
        Event::PlanResumed { .. } => Some((Stalled, Executing)),
        Event::PlanCompleted => Some((Executing, Completed)),
        Event::PlanFailed { from, .. } => Some((*from, Failed)),
        _ => None,
    };
    harness.audit_trail.iter().filter_map(change).collect()
}

#[test]
fn records_every_change_of_the_plan_status_with_from_and_to() {
    use PlanStatus::{AwaitingReview, Completed, Executing, Failed, Planning, Stalled};
    let mut harness = Harness::with_steps(2).in_review();
    harness.run(&decision(1, Decision::Modify, Some("shorter")));
    harness.advance(31 * MINUTE);
    harness.run(&sweep());
    for step in [1, 2] {
        let submit = harness.submit(step, None);
        harness.run(&submit);
    }
    assert_eq!(
        status_changes(&harness),
        [
            (Planning, Executing),
            (Executing, AwaitingReview),
            (AwaitingReview, Executing),
            (Executing, Stalled),
            (Stalled, Executing),
            (Executing, Completed),
        ]
    );
    let abandoned = |harness: Harness| status_changes(&harness.abandoned()).last().copied();
    let steps = || Harness::with_steps(2);
    assert_eq!(abandoned(steps()), Some((Planning, Failed)));
    assert_eq!(abandoned(steps().started()), Some((Executing, Failed)));
    assert_eq!(
        abandoned(steps().in_review()),
        Some((AwaitingReview, Failed))
    );
    assert_eq!(abandoned(steps().stalled()), Some((Stalled, Failed)));
}

#[test]
fn rejects_a_status_change_that_did_not_happen() {
    use PlanStatus::{AwaitingReview, Executing, Failed, Planning, Stalled};
    let harness = Harness::with_steps(2).started();
    let reason = PlanFailure::Abandoned(None);
    let invalid = [
        Event::PlanStatusChanged {
            from: Executing,
            to: AwaitingReview,
        },
        Event::PlanStatusChanged {
            from: Stalled,
            to: Executing,
        },
        Event::PlanStatusChanged {
            from: Executing,
            to: Failed,
        },
        Event::PlanFailed {
            from: Planning,
            reason,
        },
    ];
    for event in invalid {
        let mut plan = harness.plan.clone();
        let error = plan.apply(&event, harness.now).unwrap_err();
        assert_eq!(error.event, event.name());
        assert_eq!(plan, harness.plan);
    }
}

#[test]
fn rejects_a_trail_without_exactly_one_creation_at_its_start() {
    let harness = Harness::with_steps(1).started();
    let replay = |trail: &[(Event, onward_core::Timestamp)]| {
        Plan::replay(trail.iter().map(|(event, at)| (event, *at)))
    };
    assert_eq!(replay(&harness.audit_trail), Ok(harness.plan.clone()));
    assert_eq!(
        replay(&harness.audit_trail[1..]).unwrap_err().kind,
        ApplyErrorKind::MisplacedCreation
    );
    assert_eq!(
        replay(&[]).unwrap_err().kind,
        ApplyErrorKind::MisplacedCreation
    );
    let twice = [
        harness.audit_trail[0].clone(),
        harness.audit_trail[0].clone(),
    ];
    assert_eq!(
        replay(&twice).unwrap_err().kind,
        ApplyErrorKind::MisplacedCreation
    );
}

#[test]
fn an_event_that_cannot_be_applied_changes_nothing() {
    let harness = Harness::with_steps(2).started();
    let claim = Claim {
        attempt: 1,
        token: ClaimToken::new("x"),
        session: None,
    };
    let invalid = [
        Event::StepStarted {
            step: id(1),
            claim: claim.clone(),
        },
        Event::StepStarted {
            step: id(9),
            claim: claim.clone(),
        },
        Event::StepStarted {
            step: id(2),
            claim: Claim {
                attempt: 2,
                ..claim
            },
        },
        Event::PlanResumed {
            by: onward_core::event::ResumedBy::User,
        },
        Event::StepRequeued {
            step: id(2),
            attempt: 2,
            reason: onward_core::event::RequeueReason::Manual,
        },
    ];
    for event in invalid {
        let mut plan = harness.plan.clone();
        let error = plan.apply(&event, harness.now).unwrap_err();
        assert_eq!(error.event, event.name());
        assert_eq!(plan, harness.plan, "{error}");
    }
    let mut plan = harness.plan.clone();
    let wrong_from = Event::StepFailed {
        step: id(1),
        from: StepStatus::Pending,
        reason: onward_core::step::FailReason::Stalled,
    };
    let error = plan.apply(&wrong_from, harness.now).unwrap_err();
    let expected = StepApplyError::WrongStatus {
        expected: StepStatus::Pending,
        actual: StepStatus::InProgress,
    };
    assert_eq!(error.kind, ApplyErrorKind::Step(expected));
}

#[test]
fn rejects_an_early_completion_and_the_removal_of_a_referenced_step() {
    use onward_core::event::Change;
    let mut command = crate::harness::create_plan(3);
    command.steps[2].depends_on = vec![2];
    let harness = Harness::new(command).started();
    let removed = |step| Event::PlanModified {
        change: Change::StepRemoved { step },
        rationale: None,
    };
    for event in [Event::PlanCompleted, removed(id(1)), removed(id(2))] {
        let mut plan = harness.plan.clone();
        assert!(plan.apply(&event, harness.now).is_err());
        assert_eq!(plan, harness.plan);
    }
}

#[test]
fn rejects_events_on_a_terminal_plan() {
    let harness = Harness::with_steps(1).abandoned();
    let event = Event::SessionResumed {
        session: crate::harness::session("late"),
    };
    let error = harness.plan.clone().apply(&event, harness.now).unwrap_err();
    assert_eq!(error.event, "session_resumed");
    let ApplyErrorKind::Plan(illegal) = error.kind else {
        panic!("{error:?}")
    };
    assert_eq!(illegal.from, PlanStatus::Failed);
}

#[test]
fn rejects_an_invalid_step_list() {
    use onward_core::event::Change;
    let harness = Harness::with_steps(2);
    let spec = harness.plan.step(id(1)).unwrap().spec.clone();
    let new_step = |n| onward_core::step::NewStep {
        id: id(n),
        ..spec.clone()
    };
    let added = |after, steps: Vec<_>| Change::StepsAdded {
        after,
        steps: steps.into(),
    };
    let reordered = |steps: &[u32]| Change::StepsReordered {
        steps: steps.iter().copied().map(id).collect(),
    };
    let invalid = [
        added(3, vec![new_step(8)]),
        added(0, vec![new_step(1)]),
        added(0, vec![new_step(8), new_step(8)]),
        reordered(&[1]),
        reordered(&[1, 1]),
        reordered(&[1, 2, 2]),
        reordered(&[1, 3]),
        reordered(&[1, 2, 3]),
    ];
    for change in invalid {
        let mut plan = harness.plan.clone();
        let event = Event::PlanModified {
            change,
            rationale: None,
        };
        assert_eq!(
            plan.apply(&event, harness.now).unwrap_err().kind,
            ApplyErrorKind::InvalidStepList,
            "{event:?}"
        );
        assert_eq!(plan, harness.plan);
    }
}
