//! The words: what stands on the wire, in the database and in the audit trail. They are a contract,
//! so they are written down a second time here.

use std::sync::Arc;

use onward_core::branch::{Action, Effect, NoEffect};
use onward_core::command::{RequestReview, StepSpec};
use onward_core::event::{Change, Decision, RequeueReason, ResumedBy, ReviewAction, Sign};
use onward_core::id::{
    ArtifactId, BranchId, ClaimToken, NotAnId, PlanId, ReviewId, SessionId, SkillExecutionId,
    StepId,
};
use onward_core::plan::{PlanCause, PlanFailure};
use onward_core::policy::OnStall;
use onward_core::role::Permission;
use onward_core::step::{Claim, FailReason, SkipCause, StepCause, StepResult};
use onward_core::{Code, Command, Event, PlanStatus, Role, StepStatus, StepType};

use crate::desk::{Desk, branch, id, spec};

/// The word of each value, in the order of the list.
fn words<T: Copy>(all: &[T], word: fn(T) -> &'static str) -> String {
    all.iter()
        .map(|value| word(*value))
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn states_types_policies_roles_and_decisions_have_their_words() {
    assert_eq!(
        words(&PlanStatus::ALL, PlanStatus::as_str),
        "planning executing awaiting_review stalled completed failed"
    );
    assert_eq!(
        words(&StepStatus::ALL, StepStatus::as_str),
        "pending in_progress awaiting_input completed skipped failed"
    );
    assert_eq!(
        words(&StepType::ALL, StepType::as_str),
        "search extract analyze critique synthesize checkpoint custom"
    );
    assert_eq!(
        words(&OnStall::ALL, OnStall::as_str),
        "mark requeue fail ignore"
    );
    assert_eq!(
        words(&Decision::ALL, Decision::as_str),
        "approve reject modify skip"
    );
    assert_eq!(
        words(&Role::ALL, Role::as_str),
        "owner admin member agent viewer"
    );
    assert_eq!(
        words(&Code::ALL, Code::as_str),
        "invalid_input invalid_condition invalid_dependency INVALID_STEP_REFERENCE plan_not_found \
         step_not_found illegal_transition plan_not_modifiable plan_is_terminal step_not_removable \
         incomplete_step_list claim_superseded feedback_required limit_exceeded unauthorized \
         forbidden rate_limited conflict unavailable not_configured"
    );
}

#[test]
fn a_word_reads_back_as_what_it_stands_for() {
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
    assert_eq!(
        unknown.to_string(),
        "`maybe` is none of `approve`, `reject`, `modify`, `skip`"
    );
}

#[test]
fn every_event_has_its_name_and_action() {
    let (step, review) = (id(1), ReviewId::from_u128(1));
    let claim = Claim {
        attempt: 1,
        token: ClaimToken::new("t"),
        session: None,
    };
    let result = Arc::new(StepResult::of_summary("done"));
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
        })
    };
    let signed = |sign| {
        let (note, percent, session) = (None, None, None);
        Event::StepProgressed {
            step,
            sign,
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
        let mut command = crate::desk::plan_of(1);
        command.branches.push(branch(
            1,
            1,
            "true",
            onward_core::command::ActionSpec::Continue,
        ));
        Desk::of(command).plan.branches_after(step)[0].clone()
    };
    let asked = ReviewAction::Requested {
        summary: "?".to_owned(),
        questions: vec![],
        session: None,
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
            modified(Change::StepFailed { step }),
            "plan_modified fail_step",
        ),
        (
            modified(Change::StepRequeued { step }),
            "plan_modified requeue_step",
        ),
        (
            modified(Change::BranchAdded { branch: new_branch }),
            "plan_modified add_branch",
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
        (requeued(RequeueReason::ByHand), "step_requeued by_hand"),
        (requeued(RequeueReason::Stalled), "step_requeued stalled"),
        (
            requeued(RequeueReason::TakenOver),
            "step_requeued taken_over",
        ),
        (signed(Sign::Reported), "step_progressed reported"),
        (signed(Sign::Written), "step_progressed written"),
        (signed(Sign::Seen), "step_progressed seen"),
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
                why: NoEffect::TargetGone,
            }),
            "branch_taken skip_to",
        ),
        (reviewed(asked), "user_reviewed review_requested"),
        (decided(Decision::Approve), "user_reviewed approve"),
        (decided(Decision::Reject), "user_reviewed reject"),
        (decided(Decision::Modify), "user_reviewed modify"),
        (decided(Decision::Skip), "user_reviewed skip"),
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
                by: ResumedBy::Person,
            },
            "plan_resumed person",
        ),
        (Event::PlanCompleted, "plan_completed"),
        (
            Event::PlanFailed {
                reason: PlanFailure::Branch(None),
            },
            "plan_failed",
        ),
        (
            Event::LateResultKept {
                step,
                artifact: ArtifactId::from_u128(1),
                refused: Code::ClaimSuperseded,
            },
            "late_result_kept",
        ),
    ];
    for (event, expected) in events {
        let words = [Some(event.name()), event.action()];
        assert_eq!(
            words.into_iter().flatten().collect::<Vec<_>>().join(" "),
            expected
        );
    }
}

#[test]
fn a_branch_has_the_word_of_its_action() {
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
    for (action, word) in actions {
        assert_eq!(action.to_string(), word);
    }
}

#[test]
fn reasons_are_what_somebody_said_or_a_sentence_of_ours() {
    let said = || Some("too slow".to_owned());
    for reason in [
        PlanFailure::Branch(said()),
        PlanFailure::Rejected(said()),
        PlanFailure::Abandoned(said()),
    ] {
        assert_eq!(reason.to_string(), "too slow");
    }
    for reason in [FailReason::ByHand(said()), FailReason::Rejected(said())] {
        assert_eq!(reason.to_string(), "too slow");
    }
    assert_eq!(
        PlanFailure::Branch(None).to_string(),
        "a branch failed the plan"
    );
    assert_eq!(
        PlanFailure::Rejected(None).to_string(),
        "rejected in review"
    );
    assert_eq!(PlanFailure::Abandoned(None).to_string(), "abandoned");
    assert_eq!(FailReason::ByHand(None).to_string(), "failed by hand");
    assert_eq!(FailReason::AttemptsUsedUp.to_string(), "attempts used up");
    assert_eq!(FailReason::Rejected(None).to_string(), "rejected");
    assert_eq!(
        NoEffect::PlanFull.to_string(),
        "the plan would hold more steps than a plan may"
    );
}

#[test]
fn permissions_and_causes_are_told_apart_by_their_words() {
    let distinct = |words: Vec<&'static str>| {
        let set: std::collections::BTreeSet<_> = words.iter().collect();
        set.len() == words.len() && words.iter().all(|word| !word.is_empty())
    };
    assert!(distinct(Permission::ALL.map(Permission::as_str).to_vec()));
    assert!(distinct(PlanCause::ALL.map(PlanCause::as_str).to_vec()));
    assert!(distinct(StepCause::ALL.map(StepCause::as_str).to_vec()));
}

#[test]
fn an_id_reads_back_what_it_shows_and_nothing_else_is_one() {
    let plan = PlanId::from_u128(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);
    assert_eq!(plan.to_string(), "01234567-89ab-cdef-0123-456789abcdef");
    assert_eq!(plan.to_string().parse(), Ok(plan));
    assert_eq!(PlanId::new(*plan.as_uuid()), plan);
    assert_eq!(
        format!("{:?}", id(7)),
        "StepId(00000000-0000-0000-0000-000000000007)"
    );
    assert_eq!("seven".parse::<StepId>(), Err(NotAnId("seven".to_owned())));
}

#[test]
fn a_session_and_a_token_are_the_text_that_they_were_given() {
    assert_eq!(SessionId::new("monday").as_str(), "monday");
    assert_eq!(SessionId::new("monday").to_string(), "monday");
    assert_eq!(ClaimToken::new("secret").as_str(), "secret");
    assert_eq!(format!("{:?}", ClaimToken::new("secret")), "ClaimToken(…)");
}

#[test]
fn of_a_refused_review_the_questions_are_kept_too() {
    let command = Command::from(RequestReview {
        step: id(1),
        review: ReviewId::from_u128(1),
        summary: "look".to_owned(),
        questions: vec!["good?".to_owned()],
        token: None,
        session: None,
    });
    let kept = command.late_result().unwrap();
    assert_eq!(kept.content.summary, "look");
    assert_eq!(
        kept.content.data,
        Some(serde_json::json!({ "questions": ["good?"] }))
    );
}

#[test]
fn a_step_is_described_by_its_instructions_alone() {
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
