//! Events of all variants, with arbitrary content in each field.
//!
//! `content.rs` generates the content; the table in `kinds.rs` checks that no variant is missing.
//! Strategies are boxed, because nested ones exceed the stack of a test.

use std::sync::Arc;
use std::time::Duration;

use onward_core::branch::{Action, Branch, BranchVerdict, Effect, NoEffect};
use onward_core::budget::{Budget, Exhausted, Limit, Used};
use onward_core::condition::Condition;
use onward_core::event::{
    Change, Created, DecidedBy, Decision, ProgressSource, RequeueReason, ResumedBy, ReviewAction,
    Successor,
};
use onward_core::id::{ArtifactId, ClaimToken, PlanId, SessionId};
use onward_core::plan::{Brief, ForkedFrom, Origin, PlanFailure};
use onward_core::policy::{OnDependencyFailure, OnStall};
use onward_core::routing::Routing;
use onward_core::stall::Stall;
use onward_core::step::{
    Claim, Deadline, Evidence, EvidenceKind, FailReason, FieldKind, FieldOption, Gates, NewStep,
    OnDeadline, ReviewBy, ReviewField, ReviewOptions, ReviewScope, SkipCause, StepResult, StepType,
};
use onward_core::{Code, Event, Json, PlanStatus, StepStatus, Timestamp};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use crate::content::{branch_ids, executions, json, number, review_ids, sessions, step_ids, text};

/// Any event.
pub(crate) fn events() -> BoxedStrategy<Event> {
    prop_oneof![
        4 => (changes(), option::of(text()))
            .prop_map(|(change, rationale)| Event::PlanModified { change, rationale }),
        8 => step_events(),
        3 => (branch_ids(), step_ids(), effects())
            .prop_map(|(branch, step, effect)| Event::BranchTaken { branch, step, effect }),
        3 => (step_ids(), review_ids(), review_actions())
            .prop_map(|(step, review, action)| Event::UserReviewed { step, review, action }),
        4 => plan_events(),
    ]
    .boxed()
}

fn spans() -> impl Strategy<Value = Option<Duration>> {
    option::of(prop_oneof![0..100_u64, any::<u64>()].prop_map(Duration::from_millis))
}

fn statuses() -> impl Strategy<Value = StepStatus> {
    select(&StepStatus::ALL[..])
}

fn new_steps() -> BoxedStrategy<NewStep> {
    let about = (select(&StepType::ALL[..]), option::of(text()), text());
    let limits = (spans(), any::<u32>());
    (
        step_ids(),
        about,
        vec(step_ids(), 0..3),
        limits,
        gates(),
        option::of(step_ids()),
        (
            vec(text(), 0..3),
            0..=9_u8,
            select(&OnDependencyFailure::ALL[..]),
        ),
    )
        .prop_map(
            |(id, about, depends_on, limits, gates, supersedes, queue)| {
                let (step_type, title, instructions) = about;
                let (stall_threshold, max_attempts) = limits;
                NewStep {
                    id,
                    step_type,
                    title,
                    instructions,
                    depends_on,
                    stall_threshold,
                    max_attempts,
                    gates,
                    supersedes,
                    labels: queue.0,
                    priority: queue.1,
                    on_dependency_failure: queue.2,
                }
            },
        )
        .boxed()
}

fn gates() -> BoxedStrategy<Option<Arc<Gates>>> {
    let review_by = option::of(select(&ReviewBy::ALL[..]));
    (option::of(json()), vec(text(), 0..3), review_by)
        .prop_map(|(schema, acceptance_criteria, review_by)| {
            let gates = Gates {
                result_schema: schema.map(Into::into),
                acceptance_criteria,
                review_by,
            };
            (!gates.is_empty()).then(|| Arc::new(gates))
        })
        .boxed()
}

fn evidence() -> BoxedStrategy<Vec<Evidence>> {
    let kinds = select(&EvidenceKind::ALL[..]);
    let one =
        (text(), kinds, text(), text()).prop_map(|(criterion, kind, value, outcome)| Evidence {
            criterion,
            kind,
            value,
            outcome,
        });
    vec(one, 0..3).boxed()
}

fn added() -> BoxedStrategy<Arc<[NewStep]>> {
    vec(new_steps(), 0..3).prop_map(Arc::from).boxed()
}

fn conditions() -> BoxedStrategy<Condition> {
    let sources = [
        "confidence >= 0.8",
        "result.verdict === \"re\\\"ject\"",
        "resultSummary.contains('🧭')  // why",
        "result.tags.exists(t, t == 'a') || step.attempt > 1",
        "resultSummary.matches('^a+$')",
    ];
    select(sources.to_vec())
        .prop_map(|source| Condition::parse(source).expect("valid condition"))
        .boxed()
}

pub(crate) fn actions() -> BoxedStrategy<Action> {
    prop_oneof![
        Just(Action::Continue),
        step_ids().prop_map(|target| Action::SkipTo { target }),
        added().prop_map(|steps| Action::AddSteps { steps }),
        option::of(text()).prop_map(|reason| Action::Fail { reason }),
    ]
    .boxed()
}

fn branches() -> BoxedStrategy<Branch> {
    (branch_ids(), step_ids(), conditions(), actions())
        .prop_map(|(id, after, condition, action)| Branch {
            id,
            after,
            condition,
            action,
        })
        .boxed()
}

fn created() -> BoxedStrategy<Created> {
    let notes = (option::of(text()), option::of(text()));
    let brief = (text(), text(), notes, option::of(sources())).prop_map(
        |(name, research_question, notes, forked_from)| Brief {
            name,
            research_question,
            design_rationale: notes.0,
            output_formatting_notes: notes.1,
            forked_from,
        },
    );
    let origins = select(&Origin::ALL[..]);
    let list = (vec(new_steps(), 0..3), vec(branches(), 0..3));
    let policy = (spans(), select(&OnStall::ALL[..]));
    let settings = (
        routings(),
        option::of(budgets()),
        select(&OnDependencyFailure::ALL[..]),
    );
    (
        (any::<u128>(), origins),
        brief,
        list,
        policy,
        sessions(),
        settings,
    )
        .prop_map(
            |(
                (plan, origin),
                brief,
                (steps, branches),
                (stall_threshold, on_stall),
                session,
                settings,
            )| {
                let (routing, budget, on_dependency_failure) = settings;
                Created {
                    plan: PlanId::from_u128(plan),
                    origin,
                    brief,
                    steps,
                    branches,
                    stall_threshold,
                    on_stall,
                    on_dependency_failure,
                    session,
                    routing,
                    budget,
                }
            },
        )
        .boxed()
}

fn routings() -> BoxedStrategy<Routing> {
    (option::of(text()), vec(text(), 0..3), 0..=9_u8)
        .prop_map(|(project_key, labels, priority)| Routing {
            project_key,
            labels,
            priority,
        })
        .boxed()
}

fn budgets() -> BoxedStrategy<Budget> {
    let limit = || option::of(any::<u64>());
    (limit(), limit(), limit(), limit())
        .prop_map(
            |(max_steps, max_attempts, max_duration_ms, max_tokens)| Budget {
                max_steps,
                max_attempts,
                max_duration_ms,
                max_tokens,
            },
        )
        .boxed()
}

fn instants() -> BoxedStrategy<Timestamp> {
    let instants = Timestamp::MIN.as_millis()..=Timestamp::MAX.as_millis();
    instants.prop_map(Timestamp::from_millis).boxed()
}

fn uses() -> BoxedStrategy<Used> {
    let tokens = option::of(any::<u64>());
    (any::<u64>(), any::<u64>(), option::of(instants()), tokens)
        .prop_map(|(steps, attempts, first_claim_at, tokens)| Used {
            steps,
            attempts,
            first_claim_at,
            tokens,
        })
        .boxed()
}

fn exhausted() -> BoxedStrategy<Exhausted> {
    (select(&Limit::ALL[..]), any::<u64>(), any::<u64>())
        .prop_map(|(limit, max, used)| Exhausted { limit, max, used })
        .boxed()
}

fn sources() -> BoxedStrategy<ForkedFrom> {
    (any::<u128>(), any::<u32>())
        .prop_map(|(plan, step_order)| ForkedFrom {
            plan: PlanId::from_u128(plan),
            step_order,
        })
        .boxed()
}

fn successors() -> BoxedStrategy<Successor> {
    (
        new_steps(),
        any::<u32>(),
        statuses(),
        vec(branch_ids(), 0..3),
    )
        .prop_map(|(step, order, from, branches)| Successor {
            step,
            order,
            from,
            branches,
        })
        .boxed()
}

fn changes() -> BoxedStrategy<Change> {
    prop_oneof![
        created().prop_map(|plan| Change::Created(Box::new(plan))),
        (any::<u32>(), added()).prop_map(|(after, steps)| Change::StepsAdded { after, steps }),
        step_ids().prop_map(|step| Change::StepRemoved { step }),
        vec(step_ids(), 0..4).prop_map(|steps| Change::StepsReordered {
            steps: steps.into()
        }),
        (step_ids(), text())
            .prop_map(|(step, instructions)| Change::InstructionsUpdated { step, instructions }),
        (step_ids(), text(), text()).prop_map(|(step, title, instructions)| Change::StepRenamed {
            step,
            title,
            instructions
        }),
        new_steps().prop_map(|step| Change::StepUpdated {
            step: Arc::new(step)
        }),
        routings().prop_map(|routing| Change::PlanUpdated { routing }),
        (option::of(budgets()), uses())
            .prop_map(|(budget, used)| Change::BudgetSet { budget, used }),
        step_ids().prop_map(|step| Change::StepFailed { step }),
        step_ids().prop_map(|step| Change::StepSkipped { step }),
        step_ids().prop_map(|step| Change::StepRequeued { step }),
        branches().prop_map(|branch| Change::BranchAdded { branch }),
        (step_ids(), text(), vec(successors(), 0..3)).prop_map(|(step, reason, successors)| {
            Change::StepRedone {
                step,
                reason,
                successors: successors.into(),
            }
        }),
    ]
    .boxed()
}

fn results() -> BoxedStrategy<StepResult> {
    let words = (text(), option::of(text()));
    (
        words,
        option::of(json()),
        option::of(number()),
        option::of(json()),
        evidence(),
    )
        .prop_map(
            |((summary, formatting_notes), data, confidence, report, evidence)| StepResult {
                summary,
                data: data.map(Into::into),
                confidence,
                report: report.map(Into::into),
                formatting_notes,
                evidence,
            },
        )
        .boxed()
}

fn verdicts() -> BoxedStrategy<Vec<BranchVerdict>> {
    let one = (branch_ids(), text(), any::<bool>(), option::of(text()));
    vec(
        one.prop_map(|(branch, condition, matched, error)| BranchVerdict {
            branch,
            condition,
            matched,
            error,
        }),
        0..3,
    )
    .boxed()
}

fn fail_reasons() -> BoxedStrategy<FailReason> {
    prop_oneof![
        2 => option::of(text()).prop_map(FailReason::Manual),
        1 => Just(FailReason::Stalled),
        1 => Just(FailReason::AttemptsExhausted),
        2 => option::of(text()).prop_map(FailReason::Rejected),
    ]
    .boxed()
}

fn skip_causes() -> BoxedStrategy<SkipCause> {
    prop_oneof![
        branch_ids().prop_map(SkipCause::Branch),
        review_ids().prop_map(SkipCause::Review),
        Just(SkipCause::Person),
    ]
    .boxed()
}

fn step_events() -> BoxedStrategy<Event> {
    let claim = (any::<u32>(), text(), sessions()).prop_map(|(attempt, token, session)| Claim {
        attempt,
        token: ClaimToken::new(token),
        session,
    });
    let requeues = RequeueReason::ALL;
    let sources = [
        ProgressSource::Reported,
        ProgressSource::Written,
        ProgressSource::Seen,
    ];
    let progress = (
        select(sources.to_vec()),
        option::of(text()),
        option::of(number()),
    );
    prop_oneof![
        (step_ids(), claim).prop_map(|(step, claim)| Event::StepStarted { step, claim }),
        (step_ids(), statuses(), results(), verdicts(), sessions()).prop_map(
            |(step, from, result, verdicts, session)| Event::StepCompleted {
                step,
                from,
                result: Arc::new(result),
                verdicts,
                session,
            }
        ),
        (step_ids(), statuses(), fail_reasons())
            .prop_map(|(step, from, reason)| Event::StepFailed { step, from, reason }),
        (step_ids(), sessions()).prop_map(|(step, session)| Event::StepOrphaned { step, session }),
        (step_ids(), statuses(), skip_causes()).prop_map(|(step, from, by)| Event::StepSkipped {
            step,
            from,
            by
        }),
        (step_ids(), any::<u32>(), select(requeues.to_vec())).prop_map(
            |(step, attempt, reason)| {
                Event::StepRequeued {
                    step,
                    attempt,
                    reason,
                }
            }
        ),
        (step_ids(), progress, sessions()).prop_map(|(step, (source, note, percent), session)| {
            Event::StepProgressed {
                step,
                source,
                note,
                percent,
                session,
            }
        }),
        (step_ids(), sessions())
            .prop_map(|(step, session)| Event::FeedbackDelivered { step, session }),
        (
            step_ids(),
            any::<u128>(),
            select(&Code::ALL[..]),
            any::<Option<u32>>()
        )
            .prop_map(
                |(step, artifact, rejection, attempt)| Event::LateResultKept {
                    step,
                    artifact: ArtifactId::from_u128(artifact),
                    rejection,
                    attempt,
                }
            ),
    ]
    .boxed()
}

fn effects() -> BoxedStrategy<Effect> {
    let none = [
        NoEffect::TargetMissing,
        NoEffect::TargetNotPending,
        NoEffect::TargetNotAfter,
        NoEffect::PlanFull,
    ];
    prop_oneof![
        1 => Just(Effect::Continued),
        1 => (step_ids(), vec(step_ids(), 0..4))
            .prop_map(|(target, steps)| Effect::Skipped { target, steps }),
        1 => added().prop_map(|steps| Effect::Added { steps }),
        1 => option::of(text()).prop_map(|reason| Effect::FailedPlan { reason }),
        3 => select(none.to_vec()).prop_map(|reason| Effect::Nothing { reason }),
    ]
    .boxed()
}

fn review_actions() -> BoxedStrategy<ReviewAction> {
    prop_oneof![
        1 => requests(),
        3 => (select(&Decision::ALL[..]), option::of(text()), option::of(answers()), decided_by())
            .prop_map(|(decision, feedback, answers, by)| ReviewAction::Decided {
                decision,
                feedback,
                answers,
                by,
            }),
    ]
    .boxed()
}

fn decided_by() -> BoxedStrategy<DecidedBy> {
    prop_oneof![
        Just(DecidedBy::Reviewer),
        Just(DecidedBy::Policy),
        text().prop_map(|recipient| DecidedBy::Link { recipient }),
    ]
    .boxed()
}

fn answers() -> BoxedStrategy<Json> {
    text()
        .prop_map(|text| serde_json::json!({ "note": text, "colours": ["red"] }).into())
        .boxed()
}

fn fields() -> BoxedStrategy<ReviewField> {
    let choices = (text(), option::of(text()));
    let choices = choices.prop_map(|(value, title)| FieldOption { value, title });
    let kinds = select(&FieldKind::ALL[..]);
    let default = option::of(text().prop_map(|text| serde_json::json!(text).into()));
    (
        text(),
        option::of(text()),
        kinds,
        vec(choices, 0..3),
        default,
    )
        .prop_map(|(name, title, kind, options, default)| ReviewField {
            name,
            title,
            kind,
            options,
            default,
        })
        .boxed()
}

fn requests() -> BoxedStrategy<ReviewAction> {
    let scope = select(&ReviewScope::ALL[..]);
    let by = option::of(select(&ReviewBy::ALL[..]));
    let subject = (text(), option::of(results().prop_map(Arc::new)));
    let instants = Timestamp::MIN.as_millis()..=Timestamp::MAX.as_millis();
    let deadlines = (instants, select(&OnDeadline::ALL[..])).prop_map(|(at, action)| Deadline {
        at: Timestamp::from_millis(at),
        action,
    });
    let options = (
        vec(fields(), 0..3),
        option::of(deadlines),
        option::of(text()),
    );
    let options = options.prop_map(|(fields, deadline, assignee)| ReviewOptions {
        fields,
        deadline,
        assignee,
    });
    let questions = (vec(text(), 0..3), options);
    (subject, questions, sessions(), scope, by)
        .prop_map(
            |((summary, result), (questions, options), session, scope, by)| {
                let of_result = result.as_ref().map(|result| result.summary.clone());
                ReviewAction::Requested {
                    summary: of_result.unwrap_or(summary),
                    questions,
                    session,
                    scope,
                    by,
                    result,
                    options,
                }
            },
        )
        .boxed()
}

fn plan_events() -> BoxedStrategy<Event> {
    let stalls = (step_ids(), any::<u32>(), instants()).prop_map(|(step, attempt, since)| Stall {
        step,
        attempt,
        since,
    });
    let resumed_by = ResumedBy::ALL;
    let statuses = || select(PlanStatus::ALL.to_vec());
    let failures = prop_oneof![
        option::of(text()).prop_map(PlanFailure::Branch),
        option::of(text()).prop_map(PlanFailure::Rejected),
        option::of(text()).prop_map(PlanFailure::Abandoned),
    ];
    prop_oneof![
        1 => text().prop_map(|id| Event::SessionResumed { session: SessionId::new(id) }),
        1 => (executions(), text())
            .prop_map(|(execution, skill)| Event::SkillStarted { execution, skill }),
        2 => (executions(), text(), option::of(text())).prop_map(|(execution, skill, error)| {
            Event::SkillCompleted { execution, skill, error }
        }),
        1 => exhausted().prop_map(|exhausted| Event::BudgetExhausted { exhausted }),
        1 => vec(stalls, 0..4).prop_map(|stalls| Event::PlanStalled { stalls }),
        2 => select(resumed_by.to_vec()).prop_map(|by| Event::PlanResumed { by }),
        1 => Just(Event::PlanCompleted),
        3 => (statuses(), failures).prop_map(|(from, reason)| Event::PlanFailed { from, reason }),
        1 => (statuses(), statuses())
            .prop_map(|(from, to)| Event::PlanStatusChanged { from, to }),
    ]
    .boxed()
}
