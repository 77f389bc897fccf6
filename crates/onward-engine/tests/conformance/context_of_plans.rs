//! What a session is told that takes a plan up: where the work stands, what came out, who left what
//! behind, and what to call next.

use std::time::Duration;

use onward_core::command::Modification;
use onward_core::event::Decision;
use onward_core::id::SessionId;
use onward_core::{PlanId, Role};
use onward_engine::context::{MAX_CHARS, PLAN_CHARS, PlanContext};
use onward_engine::step::Question;
use serde_json::{Value, json};

use crate::context::{excerpt, told};
use crate::desk::Desk;
use crate::on_both_databases;
use crate::verbs::{code, error, result_without_token};

/// The answer, as it goes over the wire.
fn on_the_wire(context: &PlanContext) -> String {
    let (head, brief) = (&context.sheet.head, &context.sheet.brief);
    let steps: Vec<Value> = context
        .steps
        .iter()
        .map(|step| {
            let mut shown = told(step);
            shown["title"] = step.step.title.clone().into();
            shown["status"] = step.step.status.as_str().into();
            shown["attempt"] = step.step.attempt.into();
            shown["reason"] = step.step.failure.as_ref().map(ToString::to_string).into();
            shown
        })
        .collect();
    let interrupted: Vec<Value> = context
        .interrupted
        .iter()
        .map(|working| {
            json!({
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
                "stepId": entry.step.map(|step| step.to_string()),
                "actor": entry.actor,
                "sessionId": entry.session.as_ref().map(SessionId::as_str),
                "details": entry.details,
            })
        })
        .collect();
    let review = context.review.as_ref().map(|(step, review)| {
        json!({
            "reviewId": review.id.to_string(),
            "stepId": step.to_string(),
            "summary": review.summary,
            "questions": review.questions,
            "requestedAt": review.requested_at.to_string(),
        })
    });
    let counts = &head.counts;
    let answer = json!({
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
        "artifacts": context.artifacts.iter().map(excerpt).collect::<Vec<_>>(),
        "outputs": [],
        "review": review,
        "interruptedSteps": interrupted,
        "recentEvents": recent,
        "truncated": context.truncated,
        "next": context.next,
    });
    answer.to_string()
}

impl Desk {
    async fn overview(
        &self,
        plan: PlanId,
        session: Option<&str>,
        max_chars: impl Into<Option<usize>>,
    ) -> PlanContext {
        let max_chars = max_chars.into();
        let session = session.map(SessionId::new);
        let read = self.engine.plan_context(&self.me, plan, session, max_chars);
        let context = read.await.expect("a plan has a context");
        let (length, most) = (
            on_the_wire(&context).chars().count(),
            max_chars.unwrap_or(PLAN_CHARS).max(1_200),
        );
        assert!(length <= most, "{length} characters are more than {most}");
        context
    }

    async fn take_as(&self, plan: PlanId, session: &str) {
        let session = Some(SessionId::new(session));
        let next = self.engine.next_step(&self.me, plan, session, false).await;
        crate::verbs::handed(next.unwrap());
    }
}

fn orders(context: &PlanContext) -> Vec<u32> {
    context.steps.iter().map(|told| told.step.order).collect()
}

async fn a_session_is_told_all_of_a_small_plan(desk: &Desk) {
    let plan = desk.plan(5).await;
    desk.work_off(plan.id, 2).await;
    let fail = Modification::FailStep {
        step: plan.steps[3],
        reason: Some("no boat".to_owned()),
    };
    desk.modify(plan.id, fail).await.unwrap();
    let late = result_without_token(plan.steps[0], "late");
    error(desk.submit(late).await);
    let context = desk.overview(plan.id, None, None).await;
    assert!(!context.truncated);
    assert_eq!(context.sheet.brief.name, "Tides");
    assert_eq!(orders(&context), [1, 2, 3, 4, 5], "in their order");
    let statuses: Vec<&str> = context
        .steps
        .iter()
        .map(|told| told.step.status.as_str())
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
    assert_eq!(events.first(), Some(&(1, "plan_modified")));
    assert_eq!(events.last(), Some(&(8, "late_result_kept")));
    let started = &context.recent[1];
    assert_eq!(started.name, "step_started");
    let details = started.details.as_ref().expect("they are short");
    assert_eq!(details["to"], "in_progress");
    assert_eq!(details.get("claimToken"), None, "it is nobody else's");
}

async fn that_a_session_takes_a_plan_up_is_noted_once(desk: &Desk) {
    let plan = desk.plan(2).await;
    desk.take_as(plan.id, "first").await;
    let noted = async || desk.trail_behind(plan.id, 2).await;
    desk.overview(plan.id, None, None).await;
    desk.overview(plan.id, Some("first"), None).await;
    assert_eq!(noted().await, [""; 0], "who works on it does not resume it");
    let told = desk.overview(plan.id, Some("second"), None).await;
    let last = told.recent.last().unwrap();
    assert_eq!(last.name, "session_resumed", "and is told so");
    for session in ["second", "first", "second"] {
        desk.overview(plan.id, Some(session), None).await;
    }
    assert_eq!(noted().await, ["session_resumed"]);
    let viewer = desk.role(Role::Viewer);
    let session = Some(SessionId::new("third"));
    let read = desk.engine.plan_context(&viewer, plan.id, session, None);
    read.await.expect("who may read may read");
    assert_eq!(noted().await, ["session_resumed"], "and takes nothing up");
    desk.engine
        .abandon_plan(&desk.me, plan.id, None)
        .await
        .unwrap();
    desk.overview(plan.id, Some("fourth"), None).await;
    assert_eq!(noted().await, ["session_resumed", "plan_failed"]);
}

async fn steps_that_others_left_behind_are_named_with_their_age(desk: &Desk) {
    let mut draft = desk.draft(4);
    draft.steps[1].stall_threshold = Some(Duration::from_secs(1));
    let plan = desk.create(draft).await;
    for session in ["mine", "theirs"] {
        desk.take_as(plan.id, session).await;
    }
    desk.take(plan.id).await;
    desk.advance(Duration::from_secs(1) + Duration::from_millis(1));
    let context = desk.overview(plan.id, Some("mine"), None).await;
    let left: Vec<(u32, u128, bool, Option<&str>)> = context
        .interrupted
        .iter()
        .map(|it| {
            let session = it.session.as_ref().map(SessionId::as_str);
            (it.order, it.elapsed.as_millis(), it.stalled, session)
        })
        .collect();
    assert_eq!(
        left,
        [(2, 1_001, true, Some("theirs")), (3, 1_001, false, None)]
    );
    let nobodys = desk.overview(plan.id, None, None).await;
    assert_eq!(
        nobodys.interrupted.len(),
        3,
        "who has no name has none of them"
    );
    desk.engine
        .abandon_plan(&desk.me, plan.id, None)
        .await
        .unwrap();
    let over = desk.overview(plan.id, None, None).await;
    assert_eq!(
        over.interrupted,
        [],
        "of a plan that is over nothing is left"
    );
    assert!(!over.truncated);
}

async fn it_is_told_what_to_call_next(desk: &Desk) {
    let mut draft = desk.draft(2);
    draft.stall_threshold = Some(Duration::from_secs(1));
    let plan = desk.create(draft).await.id;
    let next = async |session| desk.overview(plan, session, None).await.next;
    assert_eq!(next(None).await, "`get_next_step` hands out step 1");
    desk.take_as(plan, "mine").await;
    let own = next(Some("mine")).await;
    assert!(
        own.contains("step 1") && own.contains("`submit_step_result`"),
        "{own}"
    );
    assert_eq!(
        next(Some("another")).await,
        "`get_next_step` hands out step 2"
    );
    desk.take_as(plan, "theirs").await;
    let busy = next(Some("another")).await;
    assert!(busy.contains("`get_plan_status`"), "{busy}");
    desk.advance(Duration::from_secs(2));
    let stalled = next(Some("another")).await;
    assert!(
        stalled.contains("`includeStalled`") && stalled.contains("step 1"),
        "{stalled}"
    );
    let step = desk.take_over(plan).await;
    let question = Question {
        step: step.step,
        summary: "Is it so?".to_owned(),
        questions: vec!["Or so?".to_owned()],
        token: None,
        session: None,
    };
    desk.engine
        .request_review(&desk.me, question)
        .await
        .unwrap();
    let context = desk.overview(plan, None, None).await;
    let (asked, review) = context.review.expect("a person is asked");
    assert_eq!((asked, review.summary.as_str()), (step.step, "Is it so?"));
    assert_eq!(review.questions, ["Or so?"]);
    let words = context.next;
    assert!(
        words.contains("step 1") && words.contains("`submit_user_decision`"),
        "{words}"
    );
    let decided = desk
        .engine
        .decide_review(&desk.me, step.step, Decision::Approve, None);
    decided.await.unwrap();
    let last = desk.take_over(plan).await;
    desk.hand_in(&last, "done").await;
    let over = next(None).await;
    assert!(
        over.contains("complete") && over.contains("`get_next_step`"),
        "{over}"
    );
    let failed = desk.plan(1).await.id;
    desk.engine
        .abandon_plan(&desk.me, failed, None)
        .await
        .unwrap();
    let over = desk.overview(failed, None, None).await.next;
    assert!(over.contains("`create_research_plan`"), "{over}");
}

async fn of_a_long_plan_it_is_told_what_is_next_to_the_work(desk: &Desk) {
    let plan = desk.plan(1_000).await;
    let (id, words) = (desk.literal(plan.id), "said ".repeat(150));
    desk.damage(&format!(
        "UPDATE steps SET status = 'completed', claim_token = 'x', started_at = 1, ended_at = 1, \
         ended_commit = 1, result_summary = '{words}', \
         result = CASE WHEN step_order < 700 THEN 'no json' ELSE '{{\"of\":1}}' END \
         WHERE plan_id = {id} AND step_order <= 800"
    ));
    let context = desk.overview(plan.id, None, None).await;
    assert!(context.truncated);
    assert_eq!(context.next, "`get_next_step` hands out step 801");
    let told = orders(&context);
    let (first, last) = (told[0], told[told.len() - 1]);
    assert!(first > 700 && last < 900, "{first} to {last}");
    let whole: Vec<u32> = (first..=last).collect();
    assert_eq!(told, whole, "without a gap");
    assert!(first < 780 && last > 820, "{first} to {last}");
    let omitted = 1_000 - u32::try_from(told.len()).unwrap();
    assert_eq!(context.steps_omitted, omitted);
    let summed = |order: u32| {
        let told = context.steps.iter().find(|told| told.step.order == order);
        told.and_then(|told| told.summary.as_ref()).is_some()
    };
    assert!(
        summed(800) && summed(790) && !summed(first),
        "the nearest first"
    );
    // All of it would be read, were there room.
    let all = desk
        .engine
        .plan_context(&desk.me, plan.id, None, Some(MAX_CHARS));
    let found = crate::corrupt::cell(all.await);
    assert_eq!((found.table, found.column), ("steps", "result"));
    let step = desk
        .engine
        .step_context(&desk.me, plan.steps[900], None)
        .await;
    let step = step.unwrap();
    assert_eq!(step.results[0].step.order, 800);
}

async fn any_number_of_characters_is_kept_to(desk: &Desk) {
    let mut draft = desk.draft(30);
    draft.research_question = "why? ".repeat(1_000);
    draft.design_rationale = Some("since ".repeat(1_000));
    draft.output_formatting_notes = Some("in verse ".repeat(1_000));
    let plan = desk.create(draft).await;
    for _ in 0..20 {
        let step = desk.take(plan.id).await;
        let mut submission = crate::verbs::result(&step, &"said \"so\"\n".repeat(30));
        submission.result.data = Some(json!({ "data": "x".repeat(300) }));
        desk.submit(submission).await.unwrap();
    }
    let asks = desk.take(plan.id).await;
    let question = Question {
        step: asks.step,
        summary: "Is it so? ".repeat(500),
        questions: vec!["Or so? ".repeat(500); 10],
        token: None,
        session: None,
    };
    desk.engine
        .request_review(&desk.me, question)
        .await
        .unwrap();
    for max_chars in [1, 1_000, 2_000, 5_000, 10_000, 20_000, 40_000] {
        let context = desk.overview(plan.id, None, max_chars).await;
        assert!(context.truncated, "{max_chars}");
        assert!(context.review.is_some());
    }
    let all = desk.overview(plan.id, None, 200_000).await;
    assert!(!all.truncated);
    assert!(all.steps[..20].iter().all(|told| told.data.is_some()));
    for max_chars in [0, MAX_CHARS + 1] {
        let refused = desk
            .engine
            .plan_context(&desk.me, plan.id, None, Some(max_chars))
            .await;
        assert_eq!(code(refused), "invalid_input");
    }
    let nowhere = PlanId::from_u128(7);
    for session in [None, Some(SessionId::new("s"))] {
        let refused = desk.engine.plan_context(&desk.me, nowhere, session, None);
        assert_eq!(code(refused.await), "plan_not_found");
    }
}

on_both_databases![
    a_session_is_told_all_of_a_small_plan,
    that_a_session_takes_a_plan_up_is_noted_once,
    steps_that_others_left_behind_are_named_with_their_age,
    it_is_told_what_to_call_next,
    of_a_long_plan_it_is_told_what_is_next_to_the_work,
    any_number_of_characters_is_kept_to,
];
