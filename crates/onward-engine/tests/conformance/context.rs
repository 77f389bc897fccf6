//! What an agent is told about a step: what came before it, the nearest first, within the characters
//! that it can take.

use onward_core::event::Decision;
use onward_core::{PlanId, StepId};
use onward_engine::context::{MAX_CHARS, STEP_CHARS, StepContext, StepTold};
use onward_engine::feedback::Opinion;
use onward_engine::step::Question;
use serde_json::{Value, json};

use crate::desk::Desk;
use crate::on_both_databases;
use crate::verbs::{Made, code, error, result, result_without_token};

/// The answer, as it goes over the wire.
fn on_the_wire(context: &StepContext) -> String {
    let results: Vec<Value> = context.results.iter().map(told).collect();
    let artifacts: Vec<Value> = context.artifacts.iter().map(excerpt).collect();
    let step = &context.step;
    let depends_on: Vec<String> = step.depends_on.iter().map(StepId::to_string).collect();
    let answer = json!({
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
    answer.to_string()
}

/// A step with its result, as it goes over the wire.
pub(crate) fn told(told: &StepTold) -> Value {
    json!({
        "stepId": told.step.id.to_string(),
        "stepOrder": told.step.order,
        "stepType": told.step.step_type.as_str(),
        "resultSummary": told.summary,
        "confidence": told.step.confidence,
        "result": told.data,
    })
}

/// The beginning of an artifact, as it goes over the wire.
pub(crate) fn excerpt(artifact: &onward_engine::Excerpt) -> Value {
    json!({
        "artifactId": artifact.id.to_string(),
        "title": artifact.title,
        "artifactType": artifact.kind,
        "excerpt": artifact.excerpt,
        "stepId": artifact.step.map(|step| step.to_string()),
    })
}

impl Desk {
    async fn about(&self, step: StepId, max_chars: impl Into<Option<usize>>) -> StepContext {
        let max_chars = max_chars.into();
        let context = self.engine.step_context(&self.me, step, max_chars).await;
        let context = context.expect("a step has a context");
        let (length, most) = (
            on_the_wire(&context).chars().count(),
            max_chars.unwrap_or(STEP_CHARS).max(700),
        );
        assert!(length <= most, "{length} characters are more than {most}");
        context
    }

    /// A plan of so many steps, the first of which are done; each said so many characters.
    pub(crate) async fn told_plan(&self, steps: u32, done: usize, characters: usize) -> Made {
        let plan = self.plan(steps).await;
        for number in 1..=done {
            let step = self.take(plan.id).await;
            let words = format!("{number} {}", "said ".repeat(characters / 5));
            self.hand_in(&step, &words).await;
        }
        plan
    }
}

/// The orders of the steps whose results are told, in the order in which they are.
fn orders(context: &StepContext) -> Vec<u32> {
    context.results.iter().map(|told| told.step.order).collect()
}

fn summary(context: &StepContext, order: u32) -> &str {
    let told = context.results.iter().find(|told| told.step.order == order);
    let summary = told.and_then(|told| told.summary.as_deref());
    summary.expect("the step is told")
}

async fn a_step_is_told_what_came_before_it_the_nearest_first(desk: &Desk) {
    let mut draft = desk.draft(6);
    draft.steps[4].depends_on = vec![1, 3];
    draft.steps[4].title = Some("the fifth".to_owned());
    let plan = desk.create(draft).await;
    desk.work_off(plan.id, 4).await;
    let fifth = plan.steps[4];
    let context = desk.about(fifth, None).await;
    assert_eq!(
        orders(&context),
        [3, 1, 4, 2],
        "what it waited for comes first"
    );
    assert!(!context.truncated);
    assert_eq!((context.step.id, context.step.order), (fifth, 5));
    assert_eq!(context.step.title.as_deref(), Some("the fifth"));
    assert_eq!(context.step.instructions, "5");
    assert_eq!(context.step.status.as_str(), "pending");
    assert_eq!(context.step.depends_on, [plan.steps[0], plan.steps[2]]);
    assert_eq!((context.plan, context.name.as_str()), (plan.id, "Tides"));
    assert_eq!(context.research_question, "Why twice a day?");
    assert_eq!(summary(&context, 3), "done");
    let first = desk.about(plan.steps[0], None).await;
    assert_eq!(orders(&first), [0; 0], "nothing came before the first");
    // What is done out of turn behind a step is no result before it.
    desk.work_off(plan.id, 2).await;
    assert_eq!(orders(&desk.about(plan.steps[2], None).await), [2, 1]);
}

async fn what_has_no_room_is_cut_from_the_far_end(desk: &Desk) {
    let plan = desk.told_plan(41, 40, 1_000).await;
    let context = desk.about(plan.steps[40], None).await;
    assert!(context.truncated);
    let told = orders(&context);
    let nearest: Vec<u32> = (1..=40).rev().take(told.len()).collect();
    assert_eq!(told, nearest, "without a gap");
    assert!((12..=18).contains(&told.len()), "{} of them", told.len());
    let all_but_last = &context.results[..told.len() - 1];
    for told in all_but_last {
        let words = told.summary.as_deref().unwrap();
        assert!(!words.ends_with('…'), "whole while there is room");
    }
    let more = desk.about(plan.steps[40], 100_000).await;
    assert!(!more.truncated);
    assert_eq!(orders(&more).len(), 40);
}

async fn what_a_step_waited_for_is_never_cut_before_the_rest(desk: &Desk) {
    let mut draft = desk.draft(31);
    draft.steps[30].depends_on = vec![2];
    let plan = desk.create(draft).await;
    for number in 1..=30 {
        let step = desk.take(plan.id).await;
        let mut submission = result(&step, &format!("{number} {}", "said ".repeat(200)));
        submission.result.data = Some(json!({ "of": number, "more": "data ".repeat(100) }));
        submission.result.confidence = Some(0.5);
        desk.submit(submission).await.unwrap();
    }
    let last = plan.steps[30];
    for max_chars in [3_000, 5_000, 8_000, 15_000, 20_000] {
        let context = desk.about(last, max_chars).await;
        assert!(context.truncated);
        let second = &context.results[0];
        assert_eq!(second.step.order, 2, "{max_chars}");
        assert!(summary(&context, 2).len() > 1_000, "all its words");
        assert_eq!(second.data.as_ref().unwrap()["of"], 2, "and its data");
        assert_eq!(second.step.confidence, Some(0.5));
        let others: Vec<u32> = orders(&context).split_off(1);
        let nearest: Vec<u32> = (3..=30).rev().take(others.len()).collect();
        assert_eq!(others, nearest);
    }
    // Where there is no room for anything else, there is still some for that.
    let context = desk.about(last, 900).await;
    assert_eq!(orders(&context), [2]);
    assert!(summary(&context, 2).starts_with("2 said"));
    assert!(summary(&context, 2).ends_with('…'));
    assert_eq!(context.results[0].data, None, "half of it would be no data");
    let all = desk.about(last, 200_000).await;
    assert!(!all.truncated);
    assert!(all.results.iter().all(|told| told.data.is_some()));
}

async fn any_number_of_characters_is_kept_to(desk: &Desk) {
    let mut draft = desk.draft(3);
    draft.research_question = "why? ".repeat(1_000);
    draft.steps[2].instructions = "do it \"well\"\n".repeat(2_000);
    draft.steps[2].depends_on = vec![1, 2];
    let plan = desk.create(draft).await;
    desk.work_off(plan.id, 2).await;
    for max_chars in [1, 100, 700, 1_000, 2_500, 9_999, 30_000, 35_000] {
        let context = desk.about(plan.steps[2], max_chars).await;
        let whole = context.step.instructions.len() == 26_000 && context.results.len() == 2;
        assert_eq!(
            context.truncated,
            max_chars < 35_000 || !whole,
            "{max_chars}"
        );
    }
    assert!(!desk.about(plan.steps[2], MAX_CHARS).await.truncated);
    for max_chars in [0, MAX_CHARS + 1] {
        let step = plan.steps[2];
        let refused = desk.engine.step_context(&desk.me, step, Some(max_chars));
        assert_eq!(code(refused.await), "invalid_input");
    }
    let unknown = StepId::from_u128(7);
    let refused = desk.engine.step_context(&desk.me, unknown, None).await;
    assert_eq!(code(refused), "step_not_found");
}

async fn what_is_cut_is_not_read(desk: &Desk) {
    let plan = desk.told_plan(41, 40, 1_000).await;
    let far = desk.literal(plan.steps[0]);
    desk.damage(&format!(
        "UPDATE steps SET result = 'no json' WHERE step_id = {far}"
    ));
    desk.about(plan.steps[40], None).await;
    let all = desk
        .engine
        .step_context(&desk.me, plan.steps[40], Some(100_000));
    let found = crate::corrupt::cell(all.await);
    assert_eq!((found.table, found.column), ("steps", "result"));
}

async fn ask(desk: &Desk, plan: PlanId, decision: Decision, feedback: Option<&str>) -> StepId {
    let step = desk.take(plan).await;
    let question = Question {
        step: step.step,
        summary: "Is it so?".to_owned(),
        questions: Vec::new(),
        token: None,
        session: None,
    };
    desk.engine
        .request_review(&desk.me, question)
        .await
        .unwrap();
    let feedback = feedback.map(str::to_owned);
    let decided = desk
        .engine
        .decide_review(&desk.me, step.step, decision, feedback);
    decided.await.unwrap();
    step.step
}

async fn what_people_said_is_told(desk: &Desk) {
    let plan = desk.plan(3).await;
    let approved = ask(desk, plan.id, Decision::Approve, Some("well done")).await;
    let changed = ask(desk, plan.id, Decision::Modify, Some("with sources")).await;
    for comment in ["too slow", "too long"] {
        let opinion = Opinion {
            plan: plan.id,
            rating: Some(2),
            comment: Some(comment.to_owned()),
            output: None,
        };
        desk.engine
            .submit_feedback(&desk.me, opinion)
            .await
            .unwrap();
        desk.advance(std::time::Duration::from_millis(1));
    }
    let feedback = async |step| desk.about(step, None).await.feedback;
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

async fn what_was_found_is_told_by_its_beginning(desk: &Desk) {
    let plan = desk.plan(3).await;
    desk.work_off(plan.id, 2).await;
    for (place, words) in [(0, "early"), (1, "late"), (0, "x")] {
        let words = words.repeat(300);
        let late = result_without_token(plan.steps[place], &words);
        error(desk.submit(late).await).kept().expect("it is kept");
        desk.advance(std::time::Duration::from_millis(1));
    }
    let context = desk.about(plan.steps[1], None).await;
    let steps: Vec<Option<StepId>> = context.artifacts.iter().map(|it| it.step).collect();
    let [first, second] = [0, 1].map(|place| Some(plan.steps[place]));
    assert_eq!(
        steps,
        [second, first, first],
        "its own first, then the newest"
    );
    let own = &context.artifacts[0];
    assert_eq!(own.kind, "late_result");
    assert_eq!((own.excerpt.chars().count(), own.goes_on), (500, true));
    assert!(own.excerpt.contains("latelate"));
    let short = &context.artifacts[1];
    assert!(short.excerpt.contains("xxx") && !short.goes_on);
    assert!(!context.truncated, "an excerpt is one by its nature");
    assert!(desk.about(plan.steps[1], 1_000).await.truncated);
}

on_both_databases![
    a_step_is_told_what_came_before_it_the_nearest_first,
    what_has_no_room_is_cut_from_the_far_end,
    what_a_step_waited_for_is_never_cut_before_the_rest,
    any_number_of_characters_is_kept_to,
    what_is_cut_is_not_read,
    what_people_said_is_told,
    what_was_found_is_told_by_its_beginning,
];
