//! The trail: what it is called, and that a broken one is noticed.

use onward_core::apply::Misfit;
use onward_core::command::{KeepLateResult, LogSkill, SkillPhase};
use onward_core::id::{ArtifactId, ClaimToken, SkillExecutionId};
use onward_core::step::{Claim, StepMisfit};
use onward_core::{Code, Command, Event, Plan, PlanStatus, StepStatus};

use crate::desk::{Desk, id};

#[test]
fn a_skill_and_a_late_result_are_noted_even_after_the_end() {
    let mut desk = Desk::with(1).abandoned();
    let skill = |phase| {
        let execution = SkillExecutionId::from_u128(1);
        Command::LogSkill(LogSkill {
            execution,
            skill: "research".to_owned(),
            phase,
        })
    };
    assert_eq!(desk.does(&skill(SkillPhase::Started)), ["skill_started"]);
    assert_eq!(
        desk.does(&skill(SkillPhase::Completed)),
        ["skill_completed"]
    );
    assert_eq!(
        desk.does(&skill(SkillPhase::Failed { error: None })),
        ["skill_completed"]
    );
    let kept = KeepLateResult {
        step: id(1),
        artifact: ArtifactId::from_u128(5),
        refused: Code::PlanIsTerminal,
    };
    assert_eq!(
        desk.does(&Command::KeepLateResult(kept)),
        ["late_result_kept"]
    );
    assert_eq!(desk.status(), PlanStatus::Failed);
    assert_eq!(desk.plan.head().seq, 6);
}

#[test]
fn a_trail_begins_with_the_plan() {
    let desk = Desk::with(1).started();
    let replay = |trail: &[(Event, onward_core::Timestamp)]| {
        Plan::replay(trail.iter().map(|(event, at)| (event, *at)))
    };
    assert_eq!(replay(&desk.trail), Ok(desk.plan.clone()));
    assert_eq!(replay(&desk.trail[1..]).unwrap_err().why, Misfit::Created);
    assert_eq!(replay(&[]).unwrap_err().why, Misfit::Created);
    let twice = [desk.trail[0].clone(), desk.trail[0].clone()];
    assert_eq!(replay(&twice).unwrap_err().why, Misfit::Created);
}

#[test]
fn a_broken_trail_is_noticed_and_nothing_is_half_applied() {
    let desk = Desk::with(2).started();
    let claim = Claim {
        attempt: 1,
        token: ClaimToken::new("x"),
        session: None,
    };
    let broken = [
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
            by: onward_core::event::ResumedBy::Person,
        },
        Event::StepRequeued {
            step: id(2),
            attempt: 2,
            reason: onward_core::event::RequeueReason::ByHand,
        },
    ];
    for event in broken {
        let mut plan = desk.plan.clone();
        let error = plan.apply(&event, desk.now).unwrap_err();
        assert_eq!(error.event, event.name());
        assert_eq!(plan, desk.plan, "{error}");
    }
    let mut plan = desk.plan.clone();
    let wrong_from = Event::StepFailed {
        step: id(1),
        from: StepStatus::Pending,
        reason: onward_core::step::FailReason::Stalled,
    };
    let error = plan.apply(&wrong_from, desk.now).unwrap_err();
    let misfit = StepMisfit::From {
        said: StepStatus::Pending,
        is: StepStatus::InProgress,
    };
    assert_eq!(error.why, Misfit::Step(misfit));
    assert_eq!(
        error.to_string(),
        "`step_failed` does not fit: the step is `in_progress`, not `pending`"
    );
}

#[test]
fn a_trail_that_ends_a_plan_too_early_or_takes_a_needed_step_out_is_noticed() {
    use onward_core::event::Change;
    let mut command = crate::desk::plan_of(3);
    command.steps[2].depends_on = vec![2];
    let desk = Desk::of(command).started();
    let removed = |step| Event::PlanModified {
        change: Change::StepRemoved { step },
        rationale: None,
    };
    for event in [Event::PlanCompleted, removed(id(1)), removed(id(2))] {
        let mut plan = desk.plan.clone();
        assert!(plan.apply(&event, desk.now).is_err());
        assert_eq!(plan, desk.plan);
    }
}

#[test]
fn a_plan_that_is_over_says_so() {
    let desk = Desk::with(1).abandoned();
    let event = Event::SessionResumed {
        session: crate::desk::session("late"),
    };
    let error = desk.plan.clone().apply(&event, desk.now).unwrap_err();
    let expected = "`session_resumed` does not fit: a plan that is `failed` takes no more changes";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_trail_whose_list_would_not_be_whole_is_noticed() {
    use onward_core::event::Change;
    let desk = Desk::with(2);
    let spec = desk.plan.step(id(1)).unwrap().spec.clone();
    let fresh = |n| onward_core::step::NewStep {
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
    let broken = [
        added(3, vec![fresh(8)]),
        added(0, vec![fresh(1)]),
        added(0, vec![fresh(8), fresh(8)]),
        reordered(&[1]),
        reordered(&[1, 1]),
        reordered(&[1, 2, 2]),
        reordered(&[1, 3]),
        reordered(&[1, 2, 3]),
    ];
    for change in broken {
        let mut plan = desk.plan.clone();
        let event = Event::PlanModified {
            change,
            rationale: None,
        };
        assert_eq!(
            plan.apply(&event, desk.now).unwrap_err().why,
            Misfit::List,
            "{event:?}"
        );
        assert_eq!(plan, desk.plan);
    }
}
