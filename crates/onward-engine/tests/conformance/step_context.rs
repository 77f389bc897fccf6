//! Step context: prior results, dependencies and nearest steps first, within a character budget.

use onward_core::event::Decision;
use onward_core::{PlanId, StepId};
use onward_engine::context::{DEFAULT_CHARS, MAX_CHARS, StepContext, StepWithResult};
use onward_engine::feedback::NewFeedback;
use onward_engine::step::{ReviewDecision, ReviewRequest};
use serde_json::{Value, json};

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{CreatedPlan, code, error, submission_for, submission_without_token};

/// The response as the JSON that clients receive, to measure its length.
fn to_json(context: &StepContext) -> String {
    let results: Vec<Value> = context.results.iter().map(step_json).collect();
    let artifacts: Vec<Value> = context.artifacts.iter().map(excerpt_json).collect();
    let step = &context.step;
    let depends_on: Vec<String> = step.depends_on.iter().map(StepId::to_string).collect();
    let response = json!({
        "step": {
            "stepId": step.id.to_string(),
            "stepOrder": step.order,
            "stepType": step.step_type.as_str(),
            "title": step.title,
            "status": step.status.as_str(),
            "attempt": step.attempt,
            "instructions": step.instructions,
            "dependsOn": depends_on,
        },
        "plan": {
            "planId": context.plan.to_string(),
            "name": context.name,
            "researchQuestion": context.research_question,
        },
        "priorResults": results,
        "artifacts": artifacts,
        "feedback": context.feedback,
        "truncated": context.truncated,
    });
    response.to_string()
}

pub(crate) fn step_json(included: &StepWithResult) -> Value {
    json!({
        "stepId": included.step.id.to_string(),
        "stepOrder": included.step.order,
        "stepType": included.step.step_type.as_str(),
        "resultSummary": included.summary,
        "confidence": included.step.confidence,
        "result": included.data,
    })
}

pub(crate) fn excerpt_json(artifact: &onward_engine::Excerpt) -> Value {
    json!({
        "artifactId": artifact.id.to_string(),
        "title": artifact.title,
        "artifactType": artifact.kind,
        "excerpt": artifact.excerpt,
        "stepId": artifact.step.map(|step| step.to_string()),
    })
}

impl Harness {
    /// Reads a step's context and asserts that it fits into the budget.
    async fn step_context(&self, step: StepId, max_chars: impl Into<Option<usize>>) -> StepContext {
        let max_chars = max_chars.into();
        let context = self.engine.step_context(&self.me, step, max_chars).await;
        let context = context.expect("context was read");
        let (length, limit) = (
            to_json(&context).chars().count(),
            max_chars.unwrap_or(DEFAULT_CHARS).max(700),
        );
        assert!(length <= limit, "{length} characters exceed {limit}");
        context
    }

    /// A plan whose first `done` steps are completed, each with a summary of about `chars`
    /// characters.
    async fn plan_with_results(&self, steps: u32, done: usize, chars: usize) -> CreatedPlan {
        let plan = self.plan(steps).await;
        for number in 1..=done {
            let step = self.claim(plan.id).await;
            let summary = format!("{number} {}", "text ".repeat(chars / 5));
            self.complete(&step, &summary).await;
        }
        plan
    }
}

/// The orders of the steps whose results are included, in response order.
fn orders(context: &StepContext) -> Vec<u32> {
    let results = context.results.iter();
    results.map(|included| included.step.order).collect()
}

fn summary(context: &StepContext, order: u32) -> &str {
    let mut results = context.results.iter();
    let included = results.find(|included| included.step.order == order);
    let summary = included.and_then(|included| included.summary.as_deref());
    summary.expect("step is included")
}

async fn includes_prior_results_with_dependencies_and_nearest_steps_first(harness: &Harness) {
    let mut draft = harness.draft(6);
    draft.steps[4].depends_on = vec![1, 3];
    draft.steps[4].title = Some("the fifth".to_owned());
    let plan = harness.create(draft).await;
    harness.complete_steps(plan.id, 4).await;
    let fifth = plan.steps[4];
    let context = harness.step_context(fifth, None).await;
    assert_eq!(orders(&context), [3, 1, 4, 2], "dependencies come first");
    assert!(!context.truncated);
    assert_eq!((context.step.id, context.step.order), (fifth, 5));
    assert_eq!(context.step.title.as_deref(), Some("the fifth"));
    assert_eq!(context.step.instructions, "5");
    assert_eq!(context.step.status.as_str(), "pending");
    assert_eq!(context.step.depends_on, [plan.steps[0], plan.steps[2]]);
    assert_eq!((context.plan, context.name.as_str()), (plan.id, "Tides"));
    assert_eq!(context.research_question, "Why twice a day?");
    assert_eq!(summary(&context, 3), "done");
    let first = harness.step_context(plan.steps[0], None).await;
    assert_eq!(
        orders(&first),
        [0; 0],
        "the first step has no prior results"
    );
    // A later step that is already completed is not a prior result.
    harness.complete_steps(plan.id, 2).await;
    assert_eq!(
        orders(&harness.step_context(plan.steps[2], None).await),
        [2, 1]
    );
}

async fn omits_the_farthest_results_when_the_budget_is_used_up(harness: &Harness) {
    let plan = harness.plan_with_results(41, 40, 1_000).await;
    let context = harness.step_context(plan.steps[40], 20_000).await;
    assert!(context.truncated);
    let included = orders(&context);
    let nearest: Vec<u32> = (1..=40).rev().take(included.len()).collect();
    assert_eq!(included, nearest, "without a gap");
    let count = included.len();
    assert!((12..=18).contains(&count), "{count} results");
    for result in &context.results[..count - 1] {
        let summary = result.summary.as_deref().unwrap();
        assert!(!summary.ends_with('…'), "only the last is truncated");
    }
    let more = harness.step_context(plan.steps[40], MAX_CHARS).await;
    assert!(orders(&more).len() > 2 * count - 4);
}

async fn never_omits_a_dependency_before_other_results(harness: &Harness) {
    let mut draft = harness.draft(31);
    draft.steps[30].depends_on = vec![2];
    let plan = harness.create(draft).await;
    for number in 1..=30 {
        let step = harness.claim(plan.id).await;
        let mut submission = submission_for(&step, &format!("{number} {}", "text ".repeat(200)));
        submission.result.data = Some(json!({ "of": number, "more": "data ".repeat(100) }).into());
        submission.result.confidence = Some(0.5);
        harness.submit(submission).await.unwrap();
    }
    let last = plan.steps[30];
    for max_chars in [3_000, 5_000, 8_000, 15_000, 20_000] {
        let context = harness.step_context(last, max_chars).await;
        assert!(context.truncated);
        let second = &context.results[0];
        assert_eq!(second.step.order, 2, "{max_chars}");
        assert!(summary(&context, 2).len() > 1_000, "full summary");
        assert_eq!(
            second.data.as_ref().unwrap().parse().unwrap()["of"],
            2,
            "result data"
        );
        assert_eq!(second.step.confidence, Some(0.5));
        let others: Vec<u32> = orders(&context).split_off(1);
        let nearest: Vec<u32> = (3..=30).rev().take(others.len()).collect();
        assert_eq!(others, nearest);
    }
    // The smallest budget still includes the dependency.
    let context = harness.step_context(last, 1_100).await;
    assert_eq!(orders(&context), [2]);
    assert!(summary(&context, 2).starts_with("2 text"));
    assert!(summary(&context, 2).ends_with('…'));
    assert_eq!(context.results[0].data, None, "JSON is not truncated");
}

async fn respects_any_character_budget(harness: &Harness) {
    let mut draft = harness.draft(3);
    draft.research_question = "why? ".repeat(1_000);
    draft.steps[2].instructions = "do it \"well\"\n".repeat(2_000);
    draft.steps[2].depends_on = vec![1, 2];
    let plan = harness.create(draft).await;
    harness.complete_steps(plan.id, 2).await;
    for max_chars in [1, 100, 700, 1_000, 2_500, 9_999, 30_000, 35_000] {
        let context = harness.step_context(plan.steps[2], max_chars).await;
        let whole = context.step.instructions.len() == 26_000 && context.results.len() == 2;
        assert_eq!(
            context.truncated,
            max_chars < 35_000 || !whole,
            "{max_chars}"
        );
    }
    assert!(
        !harness
            .step_context(plan.steps[2], MAX_CHARS)
            .await
            .truncated
    );
    for max_chars in [0, MAX_CHARS + 1] {
        let step = plan.steps[2];
        let rejected = harness
            .engine
            .step_context(&harness.me, step, Some(max_chars));
        assert_eq!(code(rejected.await), "invalid_input");
    }
    let unknown = StepId::from_u128(7);
    let rejected = harness
        .engine
        .step_context(&harness.me, unknown, None)
        .await;
    assert_eq!(code(rejected), "step_not_found");
}

async fn does_not_read_omitted_results(harness: &Harness) {
    let plan = harness.plan_with_results(41, 40, 500).await;
    let far = harness.id_literal(plan.steps[0]);
    harness.corrupt(&format!(
        "UPDATE steps SET result = 'not json' WHERE step_id = {far}"
    ));
    harness.step_context(plan.steps[40], None).await;
    let all = harness
        .engine
        .step_context(&harness.me, plan.steps[40], Some(MAX_CHARS));
    let found = crate::corrupt::corrupt_cell(all.await);
    assert_eq!((found.table, found.column), ("steps", "result"));
}

/// Claims the next step, requests a review and decides it.
async fn review_next_step(
    harness: &Harness,
    plan: PlanId,
    decision: Decision,
    feedback: Option<&str>,
) -> StepId {
    let step = harness.claim(plan).await;
    let question = ReviewRequest {
        step: step.step,
        summary: "Is this correct?".to_owned(),
        questions: Vec::new(),
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
    let feedback = feedback.map(str::to_owned);
    let decided = harness.engine.decide_review(
        &harness.me,
        ReviewDecision::new(step.step, decision, feedback),
    );
    decided.await.unwrap();
    step.step
}

async fn includes_review_and_plan_feedback(harness: &Harness) {
    let plan = harness.plan(3).await;
    let approved = review_next_step(harness, plan.id, Decision::Approve, Some("well done")).await;
    let changed = review_next_step(harness, plan.id, Decision::Modify, Some("with sources")).await;
    for comment in ["too slow", "too long"] {
        let opinion = NewFeedback {
            plan: plan.id,
            rating: Some(2),
            comment: Some(comment.to_owned()),
            output: None,
        };
        harness
            .engine
            .submit_feedback(&harness.me, opinion)
            .await
            .unwrap();
        harness.advance(std::time::Duration::from_millis(1));
    }
    let feedback = async |step| harness.step_context(step, None).await.feedback;
    assert_eq!(
        feedback(approved).await,
        ["well done", "too long", "too slow"]
    );
    assert_eq!(
        feedback(changed).await,
        ["with sources", "too long", "too slow"]
    );
    assert_eq!(feedback(plan.steps[2]).await, ["too long", "too slow"]);
}

async fn includes_artifact_excerpts(harness: &Harness) {
    let plan = harness.plan(3).await;
    harness.complete_steps(plan.id, 2).await;
    for (index, summary) in [(0, "early"), (1, "late"), (0, "x")] {
        let summary = summary.repeat(300);
        let late = submission_without_token(plan.steps[index], &summary);
        error(harness.submit(late).await)
            .kept()
            .expect("late result is stored");
        harness.advance(std::time::Duration::from_millis(1));
    }
    let context = harness.step_context(plan.steps[1], MAX_CHARS).await;
    let steps: Vec<Option<StepId>> = context
        .artifacts
        .iter()
        .map(|artifact| artifact.step)
        .collect();
    let [first, second] = [0, 1].map(|index| Some(plan.steps[index]));
    assert_eq!(
        steps,
        [second, first, first],
        "artifacts of the step first, then the newest"
    );
    let own = &context.artifacts[0];
    assert_eq!(own.kind, "late_result");
    assert_eq!((own.excerpt.chars().count(), own.is_truncated), (500, true));
    assert!(own.excerpt.contains("latelate"));
    let short = &context.artifacts[1];
    assert!(short.excerpt.contains("xxx") && !short.is_truncated);
    assert!(context.truncated, "an excerpt is cut");
    assert!(harness.step_context(plan.steps[1], 1_000).await.truncated);
}

on_both_databases![
    includes_prior_results_with_dependencies_and_nearest_steps_first,
    omits_the_farthest_results_when_the_budget_is_used_up,
    never_omits_a_dependency_before_other_results,
    respects_any_character_budget,
    does_not_read_omitted_results,
    includes_review_and_plan_feedback,
    includes_artifact_excerpts,
];
