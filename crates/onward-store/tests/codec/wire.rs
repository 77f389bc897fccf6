//! The exact JSON of events, as readers of the audit trail get it. A change here affects every
//! program that reads an audit trail, and every audit trail that is already stored.

use std::sync::Arc;
use std::time::Duration;

use onward_core::branch::{Action, Branch, BranchVerdict, Effect, NoEffect};
use onward_core::budget::{Budget, Exhausted, Limit, Used};
use onward_core::condition::Condition;
use onward_core::event::{Change, Created, RequeueReason, ReviewAction, Successor};
use onward_core::id::{BranchId, ClaimToken, PlanId, ReviewId, SessionId};
use onward_core::plan::{Brief, ForkedFrom, Origin, PlanFailure};
use onward_core::policy::{OnDependencyFailure, OnStall};
use onward_core::routing::Routing;
use onward_core::stall::Stall;
use onward_core::step::{
    Claim, Evidence, EvidenceKind, FailReason, Gates, NewStep, ReviewBy, ReviewScope, SkipCause,
    StepResult, StepType,
};
use onward_core::{Event, PlanStatus, StepId, StepStatus, Timestamp};
use onward_store::codec::{encode, encode_action};
use serde_json::{Value, json};

const STEP: StepId = StepId::from_u128(1);
const OTHER: StepId = StepId::from_u128(2);
const BRANCH: BranchId = BranchId::from_u128(3);
const REVIEW: ReviewId = ReviewId::from_u128(4);

fn encodes_as(event: &Event, name: &str, details: &Value) {
    let encoded = encode(event);
    assert_eq!(encoded.name, name);
    let found = encoded.details.parse().expect("JSON");
    assert_eq!(&found, details, "\n{found:#}\n");
}

fn session() -> Option<SessionId> {
    Some(SessionId::new("s-1"))
}

fn evidence() -> Evidence {
    Evidence {
        criterion: "It is deep.".to_owned(),
        kind: EvidenceKind::PullRequest,
        value: "https://example.org/pull/1".to_owned(),
        outcome: "merged".to_owned(),
    }
}

fn evidence_json() -> Value {
    json!({
        "criterion": "It is deep.",
        "kind": "pull_request",
        "value": "https://example.org/pull/1",
        "outcome": "merged",
    })
}

fn new_step() -> NewStep {
    NewStep {
        id: OTHER,
        step_type: StepType::Analyze,
        title: Some("Dig".to_owned()),
        instructions: "Dig deeper.".to_owned(),
        depends_on: vec![STEP],
        stall_threshold: Some(Duration::from_secs(90)),
        max_attempts: 3,
        gates: Some(Arc::new(Gates {
            result_schema: Some(json!({ "type": "object" }).into()),
            acceptance_criteria: vec!["It is deep.".to_owned()],
            review_by: Some(ReviewBy::OtherSession),
        })),
        supersedes: None,
        labels: vec!["gpu".to_owned()],
        priority: 7,
        on_dependency_failure: OnDependencyFailure::Continue,
    }
}

fn new_step_json() -> Value {
    json!({
        "stepId": "00000000-0000-0000-0000-000000000002",
        "stepType": "analyze",
        "title": "Dig",
        "instructions": "Dig deeper.",
        "dependsOn": ["00000000-0000-0000-0000-000000000001"],
        "stallThresholdMs": 90_000,
        "maxAttempts": 3,
        "resultSchema": { "type": "object" },
        "acceptanceCriteria": ["It is deep."],
        "reviewBy": "other_session",
        "labels": ["gpu"],
        "priority": 7,
        "onDependencyFailure": "continue",
    })
}

#[test]
fn a_created_plan_has_the_keys_of_the_call_that_created_it() {
    let created = Created {
        plan: PlanId::from_u128(9),
        origin: Origin::default(),
        brief: Brief {
            name: "Tides".to_owned(),
            research_question: "Why two a day?".to_owned(),
            design_rationale: Some("Sources first.".to_owned()),
            output_formatting_notes: Some("One page.".to_owned()),
            forked_from: Some(ForkedFrom {
                plan: PlanId::from_u128(8),
                step_order: 4,
            }),
        },
        steps: vec![new_step()],
        branches: vec![Branch {
            id: BRANCH,
            after: STEP,
            condition: Condition::parse("confidence >= 0.8").expect("valid condition"),
            action: Action::SkipTo { target: OTHER },
        }],
        stall_threshold: Some(Duration::from_millis(1_800_000)),
        on_stall: OnStall::Requeue,
        on_dependency_failure: OnDependencyFailure::Continue,
        session: session(),
        routing: Routing {
            project_key: Some("site".to_owned()),
            labels: vec!["urgent".to_owned()],
            priority: 9,
        },
        budget: Some(Budget {
            max_steps: Some(40),
            max_tokens: Some(2_000_000),
            ..Budget::default()
        }),
    };
    let event = Event::PlanModified {
        change: Change::Created(Box::new(created)),
        rationale: None,
    };
    let details = json!({
        "action": "created",
        "planId": "00000000-0000-0000-0000-000000000009",
        "name": "Tides",
        "researchQuestion": "Why two a day?",
        "planDesignRationale": "Sources first.",
        "outputFormattingNotes": "One page.",
        "forkedFrom": {
            "planId": "00000000-0000-0000-0000-000000000008",
            "stepOrder": 4,
        },
        "steps": [new_step_json()],
        "branchingConditions": [{
            "branchId": "00000000-0000-0000-0000-000000000003",
            "afterStepId": "00000000-0000-0000-0000-000000000001",
            "conditionExpression": "confidence >= 0.8",
            "ifTrueAction": "skip_to",
            "actionParams": { "targetStepId": "00000000-0000-0000-0000-000000000002" },
        }],
        "stallThresholdMs": 1_800_000,
        "onStall": "requeue",
        "onDependencyFailure": "continue",
        "sessionId": "s-1",
        "projectKey": "site",
        "labels": ["urgent"],
        "priority": 9,
        "budget": { "maxSteps": 40, "maxTokens": 2_000_000 },
    });
    encodes_as(&event, "plan_modified", &details);
}

#[test]
fn a_redone_step_has_its_successors() {
    let event = Event::PlanModified {
        change: Change::StepRedone {
            step: STEP,
            reason: "Wrong source.".to_owned(),
            successors: Arc::from([Successor {
                step: NewStep {
                    supersedes: Some(STEP),
                    depends_on: Vec::new(),
                    ..new_step()
                },
                order: 1,
                from: StepStatus::Completed,
                branches: vec![BRANCH],
            }]),
        },
        rationale: None,
    };
    let mut step = new_step_json();
    step["dependsOn"] = json!([]);
    step["supersedes"] = json!("00000000-0000-0000-0000-000000000001");
    let details = json!({
        "action": "redo_step",
        "reason": "Wrong source.",
        "successors": [{
            "branchIds": ["00000000-0000-0000-0000-000000000003"],
            "from": "completed",
            "order": 1,
            "step": step,
        }],
    });
    encodes_as(&event, "plan_modified", &details);
}

#[test]
fn an_updated_plan_has_its_routing() {
    let event = Event::PlanModified {
        change: Change::PlanUpdated {
            routing: Routing {
                labels: vec!["urgent".to_owned()],
                ..Routing::default()
            },
        },
        rationale: None,
    };
    let details = json!({ "action": "update_plan", "labels": ["urgent"] });
    encodes_as(&event, "plan_modified", &details);
}

#[test]
fn a_budget_has_its_limits_and_its_use() {
    let event = Event::PlanModified {
        change: Change::BudgetSet {
            budget: Some(Budget {
                max_attempts: Some(9),
                max_duration_ms: Some(60_000),
                ..Budget::default()
            }),
            used: Used {
                steps: 2,
                attempts: 3,
                first_claim_at: Some(Timestamp::from_millis(0)),
                tokens: None,
            },
        },
        rationale: None,
    };
    let details = json!({
        "action": "set_budget",
        "budget": { "maxAttempts": 9, "maxDurationMs": 60_000 },
        "used": { "attempts": 3, "firstClaimAt": "1970-01-01T00:00:00.000Z", "steps": 2 },
    });
    encodes_as(&event, "plan_modified", &details);
    let event = Event::BudgetExhausted {
        exhausted: Exhausted {
            limit: Limit::Duration,
            max: 60_000,
            used: 61_000,
        },
    };
    let exhausted = json!({ "limit": "maxDurationMs", "max": 60_000, "used": 61_000 });
    encodes_as(
        &event,
        "budget_exhausted",
        &json!({ "exhausted": exhausted }),
    );
}

#[test]
fn an_updated_step_has_its_definition() {
    let event = Event::PlanModified {
        change: Change::StepUpdated {
            step: Arc::new(new_step()),
        },
        rationale: None,
    };
    let details = json!({ "action": "update_step", "step": new_step_json() });
    encodes_as(&event, "plan_modified", &details);
}

#[test]
fn added_steps_have_a_position_and_a_rationale() {
    let event = Event::PlanModified {
        change: Change::StepsAdded {
            after: 1,
            steps: Arc::from([new_step()]),
        },
        rationale: Some("One source contradicts.".to_owned()),
    };
    let details = json!({
        "action": "add_steps",
        "rationale": "One source contradicts.",
        "insertAfterOrder": 1,
        "steps": [new_step_json()],
    });
    encodes_as(&event, "plan_modified", &details);
}

#[test]
fn a_claim_has_a_session_and_an_attempt() {
    let claim = Claim {
        attempt: 2,
        token: ClaimToken::new("t-1"),
        session: session(),
    };
    let details = json!({
        "from": "pending",
        "to": "in_progress",
        "attempt": 2,
        "claimToken": "t-1",
        "sessionId": "s-1",
    });
    encodes_as(
        &Event::StepStarted { step: STEP, claim },
        "step_started",
        &details,
    );
}

#[test]
fn a_result_includes_the_verdicts_of_its_branches() {
    let event = Event::StepCompleted {
        step: STEP,
        from: StepStatus::InProgress,
        result: Arc::new(StepResult {
            summary: "The Moon, twice.".to_owned(),
            data: Some(json!({ "sources": [1, 2.5, null] }).into()),
            confidence: Some(0.9),
            report: Some(json!({ "toolCalls": 4 }).into()),
            formatting_notes: Some("As a list.".to_owned()),
            evidence: vec![evidence()],
        }),
        verdicts: vec![BranchVerdict {
            branch: BRANCH,
            condition: "result.x > 1".to_owned(),
            matched: false,
            error: Some("no such key: `x`".to_owned()),
        }],
        session: session(),
    };
    let details = json!({
        "from": "in_progress",
        "to": "completed",
        "resultSummary": "The Moon, twice.",
        "result": { "sources": [1, 2.5, null] },
        "confidence": 0.9,
        "stepExecutionReport": { "toolCalls": 4 },
        "outputFormattingNotes": "As a list.",
        "evidence": [evidence_json()],
        "branches": [{
            "branchId": "00000000-0000-0000-0000-000000000003",
            "conditionExpression": "result.x > 1",
            "matched": false,
            "error": "no such key: `x`",
        }],
        "sessionId": "s-1",
    });
    encodes_as(&event, "step_completed", &details);
}

#[test]
fn a_failed_skipped_or_requeued_step_has_a_reason() {
    let failed = |reason| Event::StepFailed {
        step: STEP,
        from: StepStatus::InProgress,
        reason,
    };
    let (from, to) = ("in_progress", "failed");
    for (reason, details) in [
        (
            FailReason::Manual(Some("no such site".to_owned())),
            json!({ "from": from, "to": to, "kind": "by_hand", "reason": "no such site" }),
        ),
        (
            FailReason::Manual(None),
            json!({ "from": from, "to": to, "kind": "by_hand" }),
        ),
        (
            FailReason::Stalled,
            json!({ "from": from, "to": to, "kind": "stalled", "reason": FailReason::Stalled.to_string() }),
        ),
        (
            FailReason::AttemptsExhausted,
            json!({ "from": from, "to": to, "kind": "attempts_used_up", "reason": FailReason::AttemptsExhausted.to_string() }),
        ),
    ] {
        encodes_as(&failed(reason), "step_failed", &details);
    }
    let skipped = Event::StepSkipped {
        step: STEP,
        from: StepStatus::Pending,
        by: SkipCause::Branch(BRANCH),
    };
    let details = json!({
        "from": "pending",
        "to": "skipped",
        "by": "branch",
        "branchId": "00000000-0000-0000-0000-000000000003",
    });
    encodes_as(&skipped, "step_skipped", &details);
    let requeued = Event::StepRequeued {
        step: STEP,
        attempt: 2,
        reason: RequeueReason::TakenOver,
    };
    let details =
        json!({ "action": "taken_over", "from": "in_progress", "to": "pending", "attempt": 2 });
    encodes_as(&requeued, "step_requeued", &details);
}

#[test]
fn a_branch_without_effect_has_a_reason() {
    let event = Event::BranchTaken {
        branch: BRANCH,
        step: STEP,
        effect: Effect::Nothing {
            reason: NoEffect::TargetMissing,
        },
    };
    let details = json!({
        "action": "skip_to",
        "branchId": "00000000-0000-0000-0000-000000000003",
        "noEffect": "target_gone",
        "reason": NoEffect::TargetMissing.to_string(),
    });
    encodes_as(&event, "branch_taken", &details);
    assert_eq!(encode_action(&Action::Continue), json!({}));
}

#[test]
fn a_review_request_contains_the_status_change() {
    let event = Event::UserReviewed {
        step: STEP,
        review: REVIEW,
        action: ReviewAction::Requested {
            summary: "Is this enough?".to_owned(),
            questions: vec!["Which year?".to_owned()],
            session: None,
            scope: ReviewScope::Plan,
            options: Default::default(),
            by: None,
            result: None,
        },
    };
    let details = json!({
        "action": "review_requested",
        "reviewId": "00000000-0000-0000-0000-000000000004",
        "from": "in_progress",
        "to": "awaiting_input",
        "summary": "Is this enough?",
        "questions": ["Which year?"],
    });
    encodes_as(&event, "user_reviewed", &details);
}

#[test]
fn a_result_under_review_has_the_keys_of_a_result() {
    let event = Event::UserReviewed {
        step: STEP,
        review: REVIEW,
        action: ReviewAction::Requested {
            summary: "Done.".to_owned(),
            questions: Vec::new(),
            session: session(),
            scope: ReviewScope::Step,
            options: Default::default(),
            by: Some(ReviewBy::Person),
            result: Some(Arc::new(StepResult {
                evidence: vec![evidence()],
                ..StepResult::from_summary("Done.")
            })),
        },
    };
    let details = json!({
        "action": "review_requested",
        "reviewId": "00000000-0000-0000-0000-000000000004",
        "reviewBy": "person",
        "scope": "step",
        "sessionId": "s-1",
        "from": "in_progress",
        "to": "awaiting_input",
        "resultSummary": "Done.",
        "evidence": [evidence_json()],
        "questions": [],
    });
    encodes_as(&event, "user_reviewed", &details);
}

#[test]
fn a_stalled_plan_lists_its_stalls_and_a_failed_one_has_a_reason() {
    let stalled = Event::PlanStalled {
        stalls: vec![Stall {
            step: STEP,
            attempt: 1,
            since: Timestamp::from_millis(1_500),
        }],
    };
    let details = json!({
        "from": "executing",
        "to": "stalled",
        "stalls": [{
            "stepId": "00000000-0000-0000-0000-000000000001",
            "attempt": 1,
            "since": "1970-01-01T00:00:01.500Z",
        }],
    });
    encodes_as(&stalled, "plan_stalled", &details);
    let failed = Event::PlanFailed {
        from: PlanStatus::Planning,
        reason: PlanFailure::Abandoned(Some("bought it".to_owned())),
    };
    let details = json!({
        "from": "planning",
        "to": "failed",
        "kind": "abandoned",
        "reason": "bought it",
    });
    encodes_as(&failed, "plan_failed", &details);
    let changed = Event::PlanStatusChanged {
        from: PlanStatus::AwaitingReview,
        to: PlanStatus::Executing,
    };
    let details = json!({ "from": "awaiting_review", "to": "executing" });
    encodes_as(&changed, "plan_status_changed", &details);
    let completed = json!({ "from": "executing", "to": "completed" });
    encodes_as(&Event::PlanCompleted, "plan_completed", &completed);
}
