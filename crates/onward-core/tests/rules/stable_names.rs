//! Names in the API, the database and the audit trail. They are a contract, so this file repeats
//! them.

use std::sync::Arc;

use onward_core::branch::{Action, Effect, NoEffect};
use onward_core::budget::{Exhausted, Limit, Used};
use onward_core::command::{RequestReview, StepSpec};
use onward_core::event::{
    Change, DecidedBy, Decision, ProgressSource, RequeueReason, ResumedBy, ReviewAction,
};
use onward_core::id::{
    ArtifactId, BranchId, ClaimToken, InvalidId, PlanId, ReviewId, SessionId, SkillExecutionId,
    StepId,
};
use onward_core::plan::{PlanCause, PlanFailure};
use onward_core::policy::OnStall;
use onward_core::role::Permission;
use onward_core::routing::Routing;
use onward_core::step::{Claim, FailReason, SkipCause, StepCause, StepResult};
use onward_core::{Code, Command, Event, PlanStatus, Role, StepStatus, StepType};

use crate::harness::{Harness, branch, id, spec};

/// The names of the values, separated by spaces.
fn names<T: Copy>(all: &[T], name: fn(T) -> &'static str) -> String {
    all.iter()
        .map(|value| name(*value))
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn statuses_types_policies_decisions_roles_and_codes_have_stable_names() {
    assert_eq!(
        names(&PlanStatus::ALL, PlanStatus::as_str),
        "planning executing awaiting_review stalled completed failed"
    );
    assert_eq!(
        names(&StepStatus::ALL, StepStatus::as_str),
        "pending in_progress awaiting_input completed skipped failed"
    );
    assert_eq!(
        names(&StepType::ALL, StepType::as_str),
        "search extract analyze critique synthesize checkpoint custom"
    );
    assert_eq!(
        names(&OnStall::ALL, OnStall::as_str),
        "mark requeue fail ignore"
    );
    assert_eq!(
        names(&Decision::ALL, Decision::as_str),
        "approve reject modify skip"
    );
    assert_eq!(
        names(&Role::ALL, Role::as_str),
        "owner admin member agent viewer"
    );
    assert_eq!(
        names(&Code::ALL, Code::as_str),
        "invalid_input invalid_condition invalid_dependency INVALID_STEP_REFERENCE plan_not_found \
         step_not_found illegal_transition plan_not_modifiable plan_is_terminal step_not_removable \
         incomplete_step_list claim_superseded dependencies_open feedback_required limit_exceeded \
         budget_exhausted unauthorized forbidden rate_limited conflict unavailable not_configured"
    );
}

#[test]
fn names_parse_to_their_values() {
    for kind in StepType::ALL {
        assert_eq!(kind.to_string().parse(), Ok(kind));
    }
    for policy in OnStall::ALL {
        assert_eq!(policy.to_string().parse(), Ok(policy));
    }
    for decision in Decision::ALL {
        assert_eq!(decision.to_string().parse(), Ok(decision));
    }
    let unknown = "maybe".parse::<Decision>().unwrap_err();
    assert_eq!(unknown.value, "maybe");
    assert_eq!(unknown.expected, "`approve`, `reject`, `modify`, `skip`");
}

#[test]
fn every_event_has_a_stable_name_and_action() {
    let (step, review) = (id(1), ReviewId::from_u128(1));
    let claim = Claim {
        attempt: 1,
        token: ClaimToken::new("t"),
        session: None,
    };
    let result = Arc::new(StepResult::from_summary("done"));
    let from = StepStatus::InProgress;
    let modified = |change| Event::PlanModified {
        change,
        rationale: None,
    };
    let taken = |effect| Event::BranchTaken {
        branch: BranchId::from_u128(1),
        step,
        effect,
    };
    let reviewed = |action| Event::UserReviewed {
        step,
        review,
        action,
    };
    let decided = |decision| {
        reviewed(ReviewAction::Decided {
            decision,
            feedback: None,
            answers: None,
            by: DecidedBy::Reviewer,
        })
    };
    let progressed = |source| {
        let (note, percent, session) = (None, None, None);
        Event::StepProgressed {
            step,
            source,
            note,
            percent,
            session,
        }
    };
    let requeued = |reason| Event::StepRequeued {
        step,
        attempt: 2,
        reason,
    };
    let execution = SkillExecutionId::from_u128(1);
    let skill = "research".to_owned();
    let new_branch = {
        let mut command = crate::harness::create_plan(1);
        command.branches.push(branch(
            1,
            1,
            "true",
            onward_core::command::ActionSpec::Continue,
        ));
        Harness::new(command).plan.branches_after(step)[0].clone()
    };
    let requested = ReviewAction::Requested {
        summary: "?".to_owned(),
        questions: vec![],
        session: None,
        scope: onward_core::step::ReviewScope::Plan,
        options: Default::default(),
        by: None,
        result: None,
    };
    let events = [
        (
            modified(Change::StepsAdded {
                after: 0,
                steps: Arc::new([]),
            }),
            "plan_modified add_steps",
        ),
        (
            modified(Change::StepRemoved { step }),
            "plan_modified remove_step",
        ),
        (
            modified(Change::StepsReordered {
                steps: Arc::new([]),
            }),
            "plan_modified reorder_steps",
        ),
        (
            modified(Change::InstructionsUpdated {
                step,
                instructions: String::new(),
            }),
            "plan_modified update_step_instructions",
        ),
        (
            modified(Change::StepRenamed {
                step,
                title: String::new(),
                instructions: String::new(),
            }),
            "plan_modified rename_step",
        ),
        (
            modified(Change::StepUpdated {
                step: Arc::new(
                    Harness::with_steps(1)
                        .plan
                        .step(step)
                        .expect("step exists")
                        .spec
                        .clone(),
                ),
            }),
            "plan_modified update_step",
        ),
        (
            modified(Change::PlanUpdated {
                routing: Routing::default(),
            }),
            "plan_modified update_plan",
        ),
        (
            modified(Change::BudgetSet {
                budget: None,
                used: Used::default(),
            }),
            "plan_modified set_budget",
        ),
        (
            modified(Change::StepFailed { step }),
            "plan_modified fail_step",
        ),
        (
            modified(Change::StepSkipped { step }),
            "plan_modified skip_step",
        ),
        (
            modified(Change::StepRequeued { step }),
            "plan_modified requeue_step",
        ),
        (
            modified(Change::BranchAdded { branch: new_branch }),
            "plan_modified add_branch",
        ),
        (
            modified(Change::StepRedone {
                step,
                reason: String::new(),
                successors: Arc::new([]),
            }),
            "plan_modified redo_step",
        ),
        (Event::StepStarted { step, claim }, "step_started"),
        (
            Event::StepCompleted {
                step,
                from,
                result,
                verdicts: vec![],
                session: None,
            },
            "step_completed",
        ),
        (
            Event::StepFailed {
                step,
                from,
                reason: FailReason::Stalled,
            },
            "step_failed",
        ),
        (
            Event::StepSkipped {
                step,
                from,
                by: SkipCause::Review(review),
            },
            "step_skipped",
        ),
        (requeued(RequeueReason::Manual), "step_requeued by_hand"),
        (requeued(RequeueReason::Stalled), "step_requeued stalled"),
        (
            requeued(RequeueReason::TakenOver),
            "step_requeued taken_over",
        ),
        (requeued(RequeueReason::Approved), "step_requeued approved"),
        (
            progressed(ProgressSource::Reported),
            "step_progressed reported",
        ),
        (
            progressed(ProgressSource::Written),
            "step_progressed written",
        ),
        (progressed(ProgressSource::Seen), "step_progressed seen"),
        (
            Event::FeedbackDelivered {
                step,
                session: None,
            },
            "step_progressed feedback_delivered",
        ),
        (taken(Effect::Continued), "branch_taken continue"),
        (
            taken(Effect::Skipped {
                target: step,
                steps: vec![],
            }),
            "branch_taken skip_to",
        ),
        (
            taken(Effect::Added {
                steps: Arc::new([]),
            }),
            "branch_taken add_steps",
        ),
        (
            taken(Effect::FailedPlan { reason: None }),
            "branch_taken fail",
        ),
        (
            taken(Effect::Nothing {
                reason: NoEffect::TargetMissing,
            }),
            "branch_taken skip_to",
        ),
        (reviewed(requested), "user_reviewed review_requested"),
        (decided(Decision::Approve), "user_reviewed approve"),
        (decided(Decision::Reject), "user_reviewed reject"),
        (decided(Decision::Modify), "user_reviewed modify"),
        (decided(Decision::Skip), "user_reviewed skip"),
        (
            Event::StepOrphaned {
                step,
                session: None,
            },
            "step_orphaned",
        ),
        (
            Event::SessionResumed {
                session: SessionId::new("s"),
            },
            "session_resumed",
        ),
        (
            Event::SkillStarted {
                execution,
                skill: skill.clone(),
            },
            "skill_started",
        ),
        (
            Event::SkillCompleted {
                execution,
                skill,
                error: None,
            },
            "skill_completed",
        ),
        (
            Event::BudgetExhausted {
                exhausted: Exhausted {
                    limit: Limit::Steps,
                    max: 1,
                    used: 1,
                },
            },
            "budget_exhausted",
        ),
        (Event::PlanStalled { stalls: vec![] }, "plan_stalled"),
        (
            Event::PlanResumed {
                by: ResumedBy::NextStep,
            },
            "plan_resumed next_step",
        ),
        (
            Event::PlanResumed {
                by: ResumedBy::LateResult,
            },
            "plan_resumed late_result",
        ),
        (
            Event::PlanResumed {
                by: ResumedBy::Progress,
            },
            "plan_resumed progress",
        ),
        (
            Event::PlanResumed {
                by: ResumedBy::User,
            },
            "plan_resumed person",
        ),
        (
            Event::PlanResumed {
                by: ResumedBy::Review,
            },
            "plan_resumed review",
        ),
        (Event::PlanCompleted, "plan_completed"),
        (
            Event::PlanFailed {
                from: PlanStatus::Executing,
                reason: PlanFailure::Branch(None),
            },
            "plan_failed",
        ),
        (
            Event::PlanStatusChanged {
                from: PlanStatus::Planning,
                to: PlanStatus::Executing,
            },
            "plan_status_changed",
        ),
        (
            Event::LateResultKept {
                step,
                artifact: ArtifactId::from_u128(1),
                rejection: Code::ClaimSuperseded,
                attempt: None,
            },
            "late_result_kept",
        ),
    ];
    for (event, expected) in events {
        let names = [Some(event.name()), event.action()];
        assert_eq!(
            names.into_iter().flatten().collect::<Vec<_>>().join(" "),
            expected
        );
    }
}

#[test]
fn branch_actions_have_stable_names() {
    let actions = [
        (Action::Continue, "continue"),
        (Action::SkipTo { target: id(1) }, "skip_to"),
        (
            Action::AddSteps {
                steps: Arc::new([]),
            },
            "add_steps",
        ),
        (Action::Fail { reason: None }, "fail"),
    ];
    for (action, name) in actions {
        assert_eq!(action.to_string(), name);
    }
}

#[test]
fn a_reason_displays_the_given_text_or_a_default() {
    let given = || Some("too slow".to_owned());
    for reason in [
        PlanFailure::Branch(given()),
        PlanFailure::Rejected(given()),
        PlanFailure::Abandoned(given()),
    ] {
        assert_eq!(reason.to_string(), "too slow");
    }
    for reason in [FailReason::Manual(given()), FailReason::Rejected(given())] {
        assert_eq!(reason.to_string(), "too slow");
    }
    let defaults = [
        PlanFailure::Branch(None).to_string(),
        PlanFailure::Rejected(None).to_string(),
        PlanFailure::Abandoned(None).to_string(),
        FailReason::Manual(None).to_string(),
        FailReason::AttemptsExhausted.to_string(),
        FailReason::Rejected(None).to_string(),
        FailReason::Stalled.to_string(),
    ];
    assert!(are_distinct(defaults.iter().map(String::as_str)));
}

fn are_distinct<'a>(texts: impl IntoIterator<Item = &'a str>) -> bool {
    let mut seen = std::collections::BTreeSet::new();
    texts
        .into_iter()
        .all(|text| !text.is_empty() && seen.insert(text))
}

#[test]
fn permissions_and_causes_have_distinct_names() {
    assert!(are_distinct(Permission::ALL.map(Permission::as_str)));
    assert!(are_distinct(PlanCause::ALL.map(PlanCause::as_str)));
    assert!(are_distinct(StepCause::ALL.map(StepCause::as_str)));
}

#[test]
fn ids_parse_from_their_display_text() {
    let plan = PlanId::from_u128(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);
    assert_eq!(plan.to_string(), "01234567-89ab-cdef-0123-456789abcdef");
    assert_eq!(plan.to_string().parse(), Ok(plan));
    assert_eq!(PlanId::new(*plan.as_uuid()), plan);
    assert_eq!(
        format!("{:?}", id(7)),
        "StepId(00000000-0000-0000-0000-000000000007)"
    );
    assert_eq!(
        "seven".parse::<StepId>(),
        Err(InvalidId("seven".to_owned()))
    );
}

#[test]
fn sessions_and_tokens_keep_their_text() {
    assert_eq!(SessionId::new("monday").as_str(), "monday");
    assert_eq!(SessionId::new("monday").to_string(), "monday");
    assert_eq!(ClaimToken::new("secret").as_str(), "secret");
    assert_eq!(format!("{:?}", ClaimToken::new("secret")), "ClaimToken(…)");
}

#[test]
fn a_late_review_request_keeps_its_questions() {
    let command = Command::from(RequestReview {
        step: id(1),
        review: ReviewId::from_u128(1),
        summary: "test summary".to_owned(),
        questions: vec!["test question".to_owned()],
        scope: onward_core::step::ReviewScope::Plan,
        options: Default::default(),
        token: None,
        session: None,
    });
    let kept = command.late_result().unwrap();
    assert_eq!(kept.content.summary, "test summary");
    assert_eq!(
        kept.content.data,
        Some(serde_json::json!({ "questions": ["test question"] })).map(Into::into)
    );
}

#[test]
fn a_new_step_spec_has_only_the_required_fields() {
    let plain: StepSpec = spec(1);
    assert_eq!(
        (plain.id, plain.step_type, plain.instructions.as_str()),
        (id(1), StepType::Custom, "do 1")
    );
    assert_eq!(
        (plain.max_attempts, plain.stall_threshold, plain.title),
        (None, None, None)
    );
}
