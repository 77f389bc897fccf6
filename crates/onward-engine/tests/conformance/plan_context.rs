//! Plan context for a session that resumes a plan: step states, results, interrupted steps and the
//! next call.

use std::time::Duration;

use onward_core::command::Modification;
use onward_core::event::Decision;
use onward_core::id::SessionId;
use onward_core::step::{FieldKind, FieldOption, ReviewField, ReviewOptions};
use onward_core::{Json, PlanId, Role};
use onward_engine::context::{DEFAULT_CHARS, MAX_CHARS, Part, PlanContext};
use onward_engine::step::{ProgressReport, ReviewDecision, ReviewRequest};
use serde_json::{Value, json};

use crate::branches::skip_to;
use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{code, error, submission_without_token};
use crate::step_context::{excerpt_json, step_json};

/// The response as the JSON that clients receive, to measure its length.
fn to_json(context: &PlanContext) -> String {
    let (head, brief) = (&context.sheet.head, &context.sheet.brief);
    let steps: Vec<Value> = context
        .steps
        .iter()
        .map(|step| {
            let mut json = step_json(step);
            json["title"] = step.step.title.clone().into();
            json["status"] = step.step.status.as_str().into();
            json["attempt"] = step.step.attempt.into();
            json["reason"] = step.step.failure.as_ref().map(ToString::to_string).into();
            json
        })
        .collect();
    let interrupted: Vec<Value> = context
        .interrupted
        .iter()
        .map(|interrupted| {
            let working = &interrupted.in_progress;
            let focus = interrupted.focus.as_ref();
            json!({
                "instructions": focus.map(|focus| focus.instructions.clone()),
                "stepId": working.step.to_string(),
                "stepOrder": working.order,
                "elapsedMs": working.elapsed.as_millis() as u64,
                "stalled": working.stalled,
                "sessionId": working.session.as_ref().map(SessionId::as_str),
            })
        })
        .collect();
    let recent: Vec<Value> = context
        .recent
        .iter()
        .map(|entry| {
            json!({
                "seq": entry.seq,
                "at": entry.at.to_string(),
                "eventType": entry.name,
                "stepOrder": entry.order,
                "detail": entry.detail,
            })
        })
        .collect();
    let review = context.review.as_ref().map(|(step, review)| {
        json!({
            "reviewId": review.id.to_string(),
            "stepId": step.to_string(),
            "summary": review.summary,
            "questions": review.questions,
            "fields": review.options.fields.iter().map(field_json).collect::<Vec<_>>(),
            "requestedAt": review.requested_at.to_string(),
        })
    });
    let counts = &head.counts;
    let response = json!({
        "plan": {
            "planId": head.id.to_string(),
            "name": brief.name,
            "researchQuestion": brief.research_question,
            "planDesignRationale": brief.design_rationale,
            "outputFormattingNotes": brief.output_formatting_notes,
            "status": head.status().as_str(),
            "progress": counts.progress(),
            "totalSteps": counts.total(),
            "counts": {
                "pending": counts.pending, "inProgress": counts.in_progress,
                "awaitingInput": counts.awaiting_input, "completed": counts.completed,
                "skipped": counts.skipped, "failed": counts.failed,
            },
            "createdAt": context.sheet.created_at.to_string(),
            "updatedAt": context.sheet.updated_at.to_string(),
        },
        "steps": steps,
        "stepsOmitted": context.steps_omitted,
        "artifacts": context.artifacts.iter().map(excerpt_json).collect::<Vec<_>>(),
        "outputs": [],
        "review": review,
        "interruptedSteps": interrupted,
        "recentEvents": recent,
        "heldSteps": context.own.iter().map(|own| {
            json!({ "instructions": own.focus.instructions, "claimToken": own.token.as_str() })
        }).collect::<Vec<_>>(),
        "instructions": context.next_steps.iter().map(|step| &step.instructions).collect::<Vec<_>>(),
        "notes": context.notes.iter().map(|note| &note.note).collect::<Vec<_>>(),
        "feedback": context.feedback.iter().map(|entry| &entry.text).collect::<Vec<_>>(),
        "truncated": context.truncated,
        "next": context.next,
    });
    response.to_string()
}

fn field_json(field: &ReviewField) -> Value {
    let options = field.options.iter();
    let options = options.map(|option| json!({ "value": option.value, "title": option.title }));
    json!({
        "name": field.name,
        "type": field.kind.as_str(),
        "title": field.title,
        "options": options.collect::<Vec<_>>(),
        "default": field.default.as_ref().and_then(Json::parse),
    })
}

/// Typed questions that exceed most budgets.
fn long_fields() -> Vec<ReviewField> {
    let option = |number: usize| FieldOption {
        value: format!("{number} \"{}\"", "x".repeat(90)),
        title: Some("y".repeat(100)),
    };
    let field = |number: usize| ReviewField {
        name: format!("field{number}"),
        title: Some("Which? ".repeat(20)),
        kind: FieldKind::Choice,
        options: (0..50).map(option).collect(),
        default: Some(json!(option(1).value).into()),
    };
    (0..20).map(field).collect()
}

impl Harness {
    /// Reads a plan's context and asserts that it fits into the budget.
    async fn plan_context(
        &self,
        plan: PlanId,
        session: Option<&str>,
        max_chars: impl Into<Option<usize>>,
    ) -> PlanContext {
        let max_chars = max_chars.into();
        let session = session.map(SessionId::new);
        let read = self.engine.plan_context(&self.me, plan, session, max_chars);
        let context = read.await.expect("context was read");
        let (length, limit) = (
            to_json(&context).chars().count(),
            max_chars.unwrap_or(DEFAULT_CHARS).max(1_400),
        );
        assert!(length <= limit, "{length} characters exceed {limit}");
        context
    }

    async fn claim_in_session(&self, plan: PlanId, session: &str) {
        let session = Some(SessionId::new(session));
        let next = self.engine.next_step(&self.me, plan, session, false).await;
        crate::operations::claimed_step(next.unwrap());
    }
}

fn orders(context: &PlanContext) -> Vec<u32> {
    let steps = context.steps.iter();
    steps.map(|included| included.step.order).collect()
}

async fn includes_all_steps_of_a_small_plan(harness: &Harness) {
    let plan = harness.plan(5).await;
    harness.complete_steps(plan.id, 2).await;
    let fail = Modification::FailStep {
        step: plan.steps[3],
        reason: Some("no boat".to_owned()),
    };
    harness.modify(plan.id, fail).await.unwrap();
    let late = submission_without_token(plan.steps[0], "late");
    error(harness.submit(late).await);
    let context = harness.plan_context(plan.id, None, None).await;
    assert!(!context.truncated);
    assert_eq!(context.sheet.brief.name, "Tides");
    assert_eq!(orders(&context), [1, 2, 3, 4, 5], "in order");
    let statuses: Vec<&str> = context
        .steps
        .iter()
        .map(|included| included.step.status.as_str())
        .collect();
    let expected = ["completed", "completed", "pending", "failed", "pending"];
    assert_eq!(statuses, expected);
    assert_eq!(context.steps[1].summary.as_deref(), Some("done"));
    assert_eq!(context.steps[2].summary, None);
    let failure = context.steps[3].step.failure.as_ref().unwrap();
    assert_eq!(failure.to_string(), "no boat");
    assert_eq!(context.artifacts.len(), 1);
    assert_eq!((context.steps_omitted, context.review), (0, None));
    let events: Vec<(u64, &str)> = context
        .recent
        .iter()
        .map(|entry| (entry.seq, entry.name.as_str()))
        .collect();
    let expected = [
        (7, "plan_modified"),
        (8, "step_failed"),
        (9, "late_result_kept"),
    ];
    assert_eq!(events, expected, "claims and completions are not listed");
    assert_eq!(context.recent[1].order, Some(4));
    assert_eq!(context.recent[1].detail.as_deref(), Some("no boat"));
}

async fn records_that_a_session_resumes_a_plan_once(harness: &Harness) {
    let plan = harness.plan(2).await;
    harness.claim_in_session(plan.id, "first").await;
    let recorded = async || harness.audit_trail_after(plan.id, 3).await;
    harness.plan_context(plan.id, None, None).await;
    harness.plan_context(plan.id, Some("first"), None).await;
    assert_eq!(
        recorded().await,
        [""; 0],
        "the working session does not resume"
    );
    for session in ["second", "second", "first", "second"] {
        harness.plan_context(plan.id, Some(session), None).await;
    }
    assert_eq!(recorded().await, ["session_resumed"]);
    let viewer = harness.caller_with_role(Role::Viewer);
    let session = Some(SessionId::new("third"));
    let read = harness.engine.plan_context(&viewer, plan.id, session, None);
    read.await.expect("a viewer may read the context");
    assert_eq!(
        recorded().await,
        ["session_resumed"],
        "a viewer does not resume"
    );
    harness
        .engine
        .abandon_plan(&harness.me, plan.id, None)
        .await
        .unwrap();
    harness.plan_context(plan.id, Some("fourth"), None).await;
    assert_eq!(recorded().await, ["session_resumed", "plan_failed"]);
}

async fn lists_interrupted_steps_of_other_sessions_with_their_elapsed_time(harness: &Harness) {
    let mut draft = harness.draft(4);
    draft.steps[1].stall_threshold = Some(Duration::from_secs(1));
    let plan = harness.create(draft).await;
    for session in ["mine", "theirs"] {
        harness.claim_in_session(plan.id, session).await;
    }
    harness.claim(plan.id).await;
    harness.advance(Duration::from_secs(1) + Duration::from_millis(1));
    let context = harness.plan_context(plan.id, Some("mine"), None).await;
    let interrupted: Vec<(u32, u128, bool, Option<&str>)> = context
        .interrupted
        .iter()
        .map(|step| {
            let step = &step.in_progress;
            let session = step.session.as_ref().map(SessionId::as_str);
            (step.order, step.elapsed.as_millis(), step.stalled, session)
        })
        .collect();
    assert_eq!(
        interrupted,
        [(2, 1_001, true, Some("theirs")), (3, 1_001, false, None)]
    );
    let no_session = harness.plan_context(plan.id, None, None).await;
    assert_eq!(
        no_session.interrupted.len(),
        3,
        "without a session id no step is the caller's"
    );
    harness
        .engine
        .abandon_plan(&harness.me, plan.id, None)
        .await
        .unwrap();
    let failed = harness.plan_context(plan.id, None, None).await;
    assert_eq!(
        failed.interrupted,
        [],
        "a terminal plan has no interrupted steps"
    );
    assert!(!failed.truncated);
}

/// Asserts that the text names these tools, parameters and step numbers.
fn assert_contains(text: &str, names: &[&str]) {
    for name in names {
        assert!(text.contains(name), "{name} is not in: {text}");
    }
}

async fn names_the_next_tool_to_call(harness: &Harness) {
    let mut draft = harness.draft(2);
    draft.stall_threshold = Some(Duration::from_secs(1));
    let plan = harness.create(draft).await.id;
    let next = async |session| harness.plan_context(plan, session, None).await.next;
    assert_contains(&next(None).await, &["`get_next_step`", "step 1"]);
    harness.claim_in_session(plan, "mine").await;
    assert_contains(
        &next(Some("mine")).await,
        &["`submit_step_result`", "step 1"],
    );
    assert_contains(&next(Some("another")).await, &["`get_next_step`", "step 2"]);
    harness.claim_in_session(plan, "theirs").await;
    assert_contains(
        &next(Some("another")).await,
        &["`get_next_step`", "`waitMs"],
    );
    harness.advance(Duration::from_secs(2));
    let stalled = next(Some("another")).await;
    assert_contains(&stalled, &["`includeStalled`", "step 1"]);
    let step = harness.take_over(plan).await;
    let question = ReviewRequest {
        step: step.step,
        summary: "Is this correct?".to_owned(),
        questions: vec!["Any objections?".to_owned()],
        scope: onward_core::step::ReviewScope::Plan,
        options: Default::default(),
        token: None,
        session: None,
    };
    harness
        .engine
        .request_review(&harness.me, question)
        .await
        .unwrap();
    let context = harness.plan_context(plan, None, None).await;
    let (reviewed, review) = context.review.expect("review is pending");
    assert_eq!(reviewed, step.step);
    assert_eq!(review.summary, "Is this correct?");
    assert_eq!(review.questions, ["Any objections?"]);
    assert_contains(&context.next, &["`submit_user_decision`", "step 1"]);
    let decided = harness.engine.decide_review(
        &harness.me,
        ReviewDecision::new(step.step, Decision::Approve, None),
    );
    decided.await.unwrap();
    let last = harness.take_over(plan).await;
    harness.complete(&last, "done").await;
    assert_contains(&next(None).await, &["`get_next_step`"]);
    let failed = harness.plan(1).await.id;
    harness
        .engine
        .abandon_plan(&harness.me, failed, None)
        .await
        .unwrap();
    let next = harness.plan_context(failed, None, None).await.next;
    assert_contains(&next, &["`create_research_plan`"]);
}

async fn includes_the_steps_near_the_current_one_of_a_long_plan(harness: &Harness) {
    let plan = harness.plan(1_000).await;
    let (id, summary) = (harness.id_literal(plan.id), "text ".repeat(150));
    harness.corrupt(&format!(
        "UPDATE steps SET status = 'completed', claim_token = 'x', started_at = 1, ended_at = 1, \
         ended_commit = 1, result_summary = '{summary}', \
         result = CASE WHEN step_order < 700 THEN 'not json' ELSE '{{\"of\":1}}' END \
         WHERE plan_id = {id} AND step_order <= 800"
    ));
    let context = harness.plan_context(plan.id, None, MAX_CHARS).await;
    assert!(context.truncated);
    assert_contains(&context.next, &["`get_next_step`", "step 801"]);
    let included = orders(&context);
    let (first, last) = (included[0], included[included.len() - 1]);
    assert!(first > 700 && last < 900, "{first} to {last}");
    let gapless: Vec<u32> = (first..=last).collect();
    assert_eq!(included, gapless);
    assert!(first < 780 && last > 820, "{first} to {last}");
    let omitted = 1_000 - u32::try_from(included.len()).unwrap();
    assert_eq!(context.steps_omitted, omitted);
    let has_summary = |order: u32| {
        let mut steps = context.steps.iter();
        let step = steps.find(|included| included.step.order == order);
        step.is_some_and(|included| included.summary.is_some())
    };
    assert!(
        has_summary(800) && has_summary(790) && !has_summary(first),
        "nearest steps first"
    );
    let step = harness
        .engine
        .step_context(&harness.me, plan.steps[900], None)
        .await;
    let step = step.unwrap();
    assert_eq!(step.results[0].step.order, 800);
}

async fn respects_any_character_budget(harness: &Harness) {
    let mut draft = harness.draft(30);
    draft.research_question = "why? ".repeat(1_000);
    draft.design_rationale = Some("since ".repeat(1_000));
    draft.output_formatting_notes = Some("in verse ".repeat(1_000));
    let plan = harness.create(draft).await;
    for _ in 0..20 {
        let step = harness.claim(plan.id).await;
        let mut submission =
            crate::operations::submission_for(&step, &"a \"quoted\" line\n".repeat(20));
        submission.result.data = Some(json!({ "data": "x".repeat(300) }).into());
        harness.submit(submission).await.unwrap();
    }
    let under_review = harness.claim(plan.id).await;
    let question = ReviewRequest {
        step: under_review.step,
        summary: "Is this correct? ".repeat(300),
        questions: vec!["Or not? ".repeat(450); 10],
        scope: onward_core::step::ReviewScope::Plan,
        options: ReviewOptions {
            fields: long_fields(),
            ..ReviewOptions::default()
        },
        token: None,
        session: None,
    };
    harness
        .engine
        .request_review(&harness.me, question)
        .await
        .unwrap();
    for max_chars in [1, 1_000, 2_000, 5_000, 10_000, 20_000, 40_000] {
        let context = harness.plan_context(plan.id, None, max_chars).await;
        assert!(context.truncated, "{max_chars}");
        let (_, review) = context.review.unwrap();
        assert!(review.options.fields.len() < 20, "{max_chars}");
    }
    for max_chars in [0, MAX_CHARS + 1] {
        let rejected = harness
            .engine
            .plan_context(&harness.me, plan.id, None, Some(max_chars))
            .await;
        assert_eq!(code(rejected), "invalid_input");
    }
    let missing = PlanId::from_u128(7);
    for session in [None, Some(SessionId::new("s"))] {
        let rejected = harness
            .engine
            .plan_context(&harness.me, missing, session, None);
        assert_eq!(code(rejected.await), "plan_not_found");
    }
}

async fn returns_held_steps_only_to_their_session(harness: &Harness) {
    let plan = harness.plan(3).await;
    harness.claim_in_session(plan.id, "mine").await;
    let context = harness.plan_context(plan.id, Some("mine"), None).await;
    let own: Vec<(u32, u32)> = context
        .own
        .iter()
        .map(|own| (own.order, own.attempt))
        .collect();
    assert_eq!(own, [(1, 1)]);
    let (_, step) = harness
        .engine
        .step(&harness.me, plan.steps[0])
        .await
        .unwrap();
    assert_eq!(context.own[0].token, step.claim().unwrap().token);
    assert_eq!(context.own[0].focus.instructions, step.spec.instructions);
    assert_eq!(context.interrupted, []);
    for session in [Some("theirs"), None] {
        let context = harness.plan_context(plan.id, session, None).await;
        assert_eq!(context.own, []);
        let focus = context.interrupted[0].focus.as_ref().unwrap();
        assert_eq!(focus.instructions, step.spec.instructions);
    }
    let viewer = harness.caller_with_role(Role::Viewer);
    let session = Some(SessionId::new("mine"));
    let read = harness.engine.plan_context(&viewer, plan.id, session, None);
    assert_eq!(read.await.unwrap().own, [], "a viewer gets no claim tokens");
}

async fn includes_instructions_branches_notes_and_feedback(harness: &Harness) {
    let branches = vec![harness.branch(2, "result.verdict == 'no'", skip_to(5))];
    let plan = harness.plan_with_branches(6, branches).await;
    let first = harness.claim(plan.id).await;
    let report = ProgressReport {
        step: first.step,
        note: Some("half of it".to_owned()),
        percent: None,
        token: None,
        session: None,
    };
    harness
        .engine
        .report_progress(&harness.me, report)
        .await
        .unwrap();
    harness.request_review(&first).await.unwrap();
    let feedback = Some("Cite the year.".to_owned());
    let review = ReviewDecision::new(first.step, Decision::Approve, feedback);
    let decided = harness.engine.decide_review(&harness.me, review);
    decided.await.unwrap();
    let context = harness.plan_context(plan.id, None, None).await;
    let next: Vec<_> = context.next_steps.iter().map(|step| step.id).collect();
    assert_eq!(next, plan.steps[1..4]);
    let branch = &context.next_steps[0].branches[0];
    assert_eq!(branch.branch.condition.source(), "result.verdict == 'no'");
    assert_eq!(branch.target, Some(5));
    assert_eq!(context.notes[0].note, "half of it");
    assert_eq!(context.notes[0].order, Some(1));
    assert_eq!(context.feedback[0].text, "Cite the year.");
    assert_eq!(context.feedback[0].decision, Some(Decision::Approve));
    assert!(!context.truncated);
}

async fn returns_a_long_text_in_pages(harness: &Harness) {
    let mut draft = harness.draft(1);
    let instructions = "ä\"quoted\" line\n".repeat(6_000);
    draft.steps[0].instructions.clone_from(&instructions);
    let plan = harness.create(draft).await;
    let (mut read, mut offset) = (String::new(), Some(0));
    while let Some(from) = offset {
        let page = harness.engine.step_text(
            &harness.me,
            plan.id,
            plan.steps[0],
            Part::Instructions,
            from,
            Some(MAX_CHARS),
        );
        let page = page.await.unwrap();
        assert_eq!(page.total, instructions.chars().count());
        let json = Value::from(page.content.clone()).to_string();
        assert!(json.chars().count() <= MAX_CHARS);
        read.push_str(&page.content);
        offset = page.next;
    }
    assert_eq!(read, instructions);
    let other = harness.plan(1).await;
    let page = harness.engine.step_text(
        &harness.me,
        other.id,
        plan.steps[0],
        Part::Instructions,
        0,
        None,
    );
    assert_eq!(code(page.await), "step_not_found");
}

on_both_databases![
    includes_all_steps_of_a_small_plan,
    records_that_a_session_resumes_a_plan_once,
    lists_interrupted_steps_of_other_sessions_with_their_elapsed_time,
    names_the_next_tool_to_call,
    includes_the_steps_near_the_current_one_of_a_long_plan,
    respects_any_character_budget,
    returns_held_steps_only_to_their_session,
    includes_instructions_branches_notes_and_feedback,
    returns_a_long_text_in_pages,
];
