//! Texts come back as they were sent, but for U+0000, which becomes U+FFFD on both databases alike.

use std::time::Duration;

use onward_core::Role;
use onward_core::command::{ActionSpec, Modification};
use onward_core::event::Decision;
use onward_core::id::{ClaimToken, SessionId};
use onward_core::policy::{
    MAX_INSTRUCTIONS, MAX_NAME, MAX_QUESTION, MAX_REMARK, MAX_SUMMARY, MAX_TITLE,
};
use onward_engine::Caller;
use onward_engine::calls::Answered;
use onward_engine::step::{Progress, Question};
use onward_engine::submit::Submission;
use serde_json::{Value, json};

use crate::desk::Desk;
use crate::on_both_databases;
use crate::verbs::{code, document, handed, result, result_without_token};

/// With U+0000 in it, as it is sent and as it is kept.
const SENT: &str = "a\0b\0";
const KEPT: &str = "a\u{FFFD}b\u{FFFD}";

fn sent() -> Option<String> {
    Some(SENT.to_owned())
}

/// Neither U+0000 itself nor the way in which JSON writes it is anywhere in this plan.
async fn is_clean(desk: &Desk, plan: onward_core::PlanId) -> Value {
    let document = document(&desk.engine, &desk.me, plan).await;
    let text = document.to_string();
    assert!(!text.contains('\0') && !text.contains("\\u0000"), "{text}");
    document
}

async fn a_plan_s_texts_hold_no_nul(desk: &Desk) {
    let mut draft = desk.draft(2);
    draft.name = SENT.to_owned();
    draft.research_question = SENT.to_owned();
    draft.design_rationale = sent();
    draft.output_formatting_notes = sent();
    draft.session = Some(SessionId::new(SENT));
    draft.steps[0].title = sent();
    draft.steps[0].instructions = SENT.to_owned();
    let condition = format!("resultSummary == \"{SENT}\"");
    let mut more = desk.step(SENT);
    more.title = sent();
    let fail = ActionSpec::Fail { reason: sent() };
    draft.branches = vec![
        desk.branch(1, "false", ActionSpec::AddSteps(vec![more])),
        desk.branch(1, &condition, fail),
    ];
    let created = desk
        .engine
        .create_plan(&desk.me, draft.clone(), sent())
        .await
        .unwrap();
    let sheet = desk.status(created.created.plan).await.sheet;
    assert_eq!(sheet.brief.name, KEPT);
    assert_eq!(sheet.brief.research_question, KEPT);
    assert_eq!(sheet.brief.design_rationale.as_deref(), Some(KEPT));
    assert_eq!(sheet.brief.output_formatting_notes.as_deref(), Some(KEPT));
    let step = desk.take(created.created.plan).await;
    assert_eq!(
        (step.title.as_deref(), step.instructions.as_str()),
        (Some(KEPT), KEPT)
    );
    let submitted = desk.hand_in(&step, SENT).await;
    assert_eq!(submitted.plan_status.as_str(), "failed", "{submitted:?}");
    is_clean(desk, created.created.plan).await;
    let again = desk
        .engine
        .create_plan(&desk.me, draft, sent())
        .await
        .unwrap();
    assert_eq!(again, created, "the key is the same one");
}

async fn a_result_s_texts_and_keys_hold_no_nul(desk: &Desk) {
    let plan = desk.plan(1).await;
    let next = desk
        .engine
        .next_step(&desk.me, plan.id, Some(SessionId::new(SENT)), false)
        .await;
    let step = handed(next.unwrap());
    let mut submission = result(&step, SENT);
    submission.session = Some(SessionId::new(SENT));
    submission.result.data = Some(json!({ SENT: { SENT: [SENT, { SENT: SENT }] } }));
    submission.result.report = Some(json!({ SENT: SENT }));
    submission.result.formatting_notes = sent();
    let answer = desk.submit(submission.clone()).await.unwrap();
    let document = is_clean(desk, plan.id).await;
    let kept = json!({ KEPT: { KEPT: [KEPT, { KEPT: KEPT }] } });
    assert_eq!(document["steps"][0]["result"], kept);
    assert_eq!(document["steps"][0]["resultSummary"], KEPT);
    assert_eq!(
        desk.submit(submission).await.unwrap(),
        answer,
        "it is the same one again"
    );
}

async fn what_is_said_along_the_way_holds_no_nul(desk: &Desk) {
    let plan = desk.plan(4).await;
    let step = desk.take(plan.id).await;
    let progress = Progress {
        step: step.step,
        note: sent(),
        percent: None,
        token: None,
        session: Some(SessionId::new(SENT)),
    };
    desk.engine
        .report_progress(&desk.me, progress)
        .await
        .unwrap();
    let question = Question {
        step: step.step,
        summary: SENT.to_owned(),
        questions: vec![SENT.to_owned()],
        token: None,
        session: Some(SessionId::new(SENT)),
    };
    desk.engine
        .request_review(&desk.me, question)
        .await
        .unwrap();
    let open = desk.engine.open_reviews(&desk.me, 1).await.unwrap();
    assert_eq!(open[0].review.summary, KEPT);
    assert_eq!(open[0].review.questions, [KEPT]);
    let decided = desk
        .engine
        .decide_review(&desk.me, step.step, Decision::Modify, sent())
        .await;
    assert!(decided.unwrap().instructions.unwrap().ends_with(KEPT));
    for modification in [
        Modification::FailStep {
            step: plan.steps[1],
            reason: sent(),
        },
        Modification::UpdateInstructions {
            step: plan.steps[2],
            instructions: SENT.to_owned(),
        },
        Modification::AddSteps {
            steps: vec![desk.step(SENT)],
            insert_after: None,
        },
        Modification::AddBranch {
            branch: desk.branch(3, "true", ActionSpec::Fail { reason: sent() }),
        },
    ] {
        let modified = desk
            .engine
            .modify_plan(&desk.me, plan.id, modification, sent(), false);
        modified.await.unwrap();
    }
    desk.engine
        .take_up(&desk.me, plan.id, SessionId::new(SENT))
        .await
        .unwrap();
    desk.engine
        .take_up(&desk.me, plan.id, SessionId::new(KEPT))
        .await
        .unwrap();
    desk.engine
        .abandon_plan(&desk.me, plan.id, sent())
        .await
        .unwrap();
    is_clean(desk, plan.id).await;
}

async fn a_token_that_an_agent_made_up_holds_no_nul(desk: &Desk) {
    let plan = desk.plan(2).await;
    let made_up = |step, token| Submission {
        token: Some(ClaimToken::new(token)),
        ..result_without_token(step, "words")
    };
    // Nobody has the step, so whoever hands in a result has it, under the token that came along.
    desk.submit(made_up(plan.steps[0], SENT)).await.unwrap();
    let step = desk.take(plan.id).await;
    assert_eq!(
        code(desk.submit(made_up(step.step, SENT)).await),
        "claim_superseded"
    );
    is_clean(desk, plan.id).await;
}

async fn a_refused_result_is_kept_without_nul(desk: &Desk) {
    let plan = desk.plan(2).await;
    desk.work_off(plan.id, 1).await;
    let mut late = result_without_token(plan.steps[0], SENT);
    late.result.data = Some(json!({ SENT: SENT }));
    assert_eq!(code(desk.submit(late).await), "illegal_transition");
    let document = is_clean(desk, plan.id).await;
    let content = document["artifacts"][0]["content"].as_str().unwrap();
    assert!(content.contains(KEPT), "{content}");
}

async fn a_caller_s_name_and_a_token_s_name_hold_no_nul(desk: &Desk) {
    let made = desk
        .engine
        .create_token(&desk.me, SENT, Role::Owner, None)
        .await;
    let (secret, token) = made.unwrap();
    assert_eq!(token.name, KEPT);
    let caller = desk.engine.authenticate(&secret).await.unwrap();
    assert_eq!(caller.name, format!("token:{KEPT}"));
    let caller = Caller {
        name: SENT.to_owned(),
        ..caller
    };
    let plan = desk.create_for(&caller, desk.draft(1)).await;
    is_clean(desk, plan.id).await;
    desk.advance(Duration::from_millis(1));
    desk.engine.delete_plan(&caller, plan.id).await.unwrap();
    let log = desk.engine.tenant_log(&desk.me, 1).await.unwrap();
    assert_eq!(log[0].actor, KEPT);
}

async fn a_logged_call_holds_no_nul_and_loses_no_other(desk: &Desk) {
    let engine = desk.another_engine().await;
    let call = |text: &str| Answered {
        tool: text.to_owned(),
        session: Some(text.to_owned()),
        request: json!({ text: text }),
        response: json!([text]),
        took: Duration::from_micros(1),
        is_error: false,
    };
    engine.log_call(&desk.me, call("plain"));
    desk.advance(Duration::from_millis(1));
    engine.log_call(&desk.me, call(SENT));
    engine.close().await;
    let calls = desk.engine.calls(&desk.me, 9).await.unwrap();
    let tools: Vec<&str> = calls.iter().map(|call| call.tool.as_str()).collect();
    assert_eq!(tools, [KEPT, "plain"]);
    assert_eq!(calls[0].session.as_deref(), Some(KEPT));
    assert_eq!(calls[0].request, json!({ KEPT: KEPT }));
    assert_eq!(calls[0].response, json!([KEPT]));
}

async fn names_with_nul_find_nothing(desk: &Desk) {
    let unknown = desk.engine.operator(SENT, "me").await;
    assert!(
        matches!(unknown, Err(onward_engine::Error::NotFound { .. })),
        "{unknown:?}"
    );
    assert_eq!(
        code(desk.engine.find_plan(&desk.me, SENT).await),
        "plan_not_found"
    );
    assert_eq!(
        code(desk.engine.find_step(&desk.me, SENT).await),
        "step_not_found"
    );
    assert_eq!(code(desk.engine.authenticate(SENT).await), "unauthorized");
    assert!(desk.engine.revoke_token(&desk.me, SENT).await.is_err());
}

async fn an_imported_plan_holds_no_nul(desk: &Desk) {
    let plan = desk.plan(1).await;
    desk.work_off(plan.id, 1).await;
    let sent = document(&desk.engine, &desk.me, plan.id).await.to_string();
    let with_nul = sent
        .replace("Tides", "Ti\\u0000des")
        .replace("\"done\"", "\"do\\u0000ne\"");
    assert_ne!(with_nul, sent);
    let document: Value = serde_json::from_str(&with_nul).unwrap();
    let other = desk.tenant("other").await;
    desk.engine.import(&other, &document).await.unwrap();
    let whole = desk.engine.whole_plan(&other, plan.id).await.unwrap();
    assert_eq!(whole.plan.sheet.brief.name, "Ti\u{FFFD}des");
}

async fn other_characters_are_kept_as_they_are(desk: &Desk) {
    let texts = [
        "\u{202E}dlrow\u{202C} \u{2066}x\u{2069}",
        "\u{1}\u{7}\u{8}\u{1B}[31m\u{7F}\u{85}\u{9F}",
        "x\r\n\t\u{B}\u{C}\u{2028}\u{2029}",
        "👩‍👩‍👧‍👦 𝕏 🇩🇪 \u{10FFFF}",
        "\u{FEFF}\u{FFFD}\u{FFFE}\u{E000}",
        "Robert'); DROP TABLE plans; --",
        "back\\slash \"quotes\" 'single' $1 {step} %s ?1",
        " leading and trailing ",
    ];
    for text in texts {
        let mut draft = desk.draft(2);
        draft.name = text.to_owned();
        draft.steps[0].title = Some(text.to_owned());
        draft.steps[0].instructions = text.to_owned();
        let plan = desk.create(draft).await;
        let step = desk.take(plan.id).await;
        assert_eq!(
            (step.title.as_deref(), step.instructions.as_str()),
            (Some(text), text)
        );
        let mut submission = result(&step, text);
        submission.result.data = Some(json!({ text: text }));
        desk.submit(submission).await.unwrap();
        let document = document(&desk.engine, &desk.me, plan.id).await;
        assert_eq!(document["plan"]["name"], text);
        assert_eq!(document["steps"][0]["result"], json!({ text: text }));
        assert_eq!(document["steps"][0]["resultSummary"], text);
    }
}

async fn an_empty_text_is_not_a_missing_one(desk: &Desk) {
    let mut draft = desk.draft(1);
    draft.design_rationale = Some(String::new());
    draft.steps[0].title = Some(String::new());
    let plan = desk.create(draft).await;
    let sheet = desk.status(plan.id).await.sheet;
    assert_eq!(sheet.brief.design_rationale.as_deref(), Some(""));
    assert_eq!(sheet.brief.output_formatting_notes, None);
    let step = desk.take(plan.id).await;
    assert_eq!(step.title.as_deref(), Some(""));
    let mut submission = result(&step, "done");
    submission.result.formatting_notes = Some(String::new());
    submission.result.data = Some(json!({}));
    desk.submit(submission).await.unwrap();
    let done = desk.result_of(plan.id, 0).await;
    assert_eq!(done.formatting_notes.as_deref(), Some(""));
    assert_eq!((&done.data, &done.report), (&Some(json!({})), &None));
    desk.engine
        .take_up(&desk.me, plan.id, SessionId::new(""))
        .await
        .unwrap();
}

async fn texts_of_the_greatest_length_fit(desk: &Desk) {
    let long = |length| "🌊".repeat(length);
    let mut draft = desk.draft(1);
    draft.name = long(MAX_NAME);
    draft.research_question = long(MAX_QUESTION);
    draft.design_rationale = Some(long(MAX_REMARK));
    draft.steps[0].title = Some(long(MAX_TITLE));
    draft.steps[0].instructions = long(MAX_INSTRUCTIONS);
    let plan = desk.create(draft).await;
    let step = desk.take(plan.id).await;
    assert_eq!(step.instructions, long(MAX_INSTRUCTIONS));
    let mut submission = result(&step, &long(MAX_SUMMARY));
    submission.result.formatting_notes = Some(long(MAX_REMARK));
    desk.submit(submission).await.unwrap();
    let status = desk.status(plan.id).await;
    assert_eq!(status.sheet.brief.name, long(MAX_NAME));
    assert_eq!(status.completed[0].result_summary, Some(long(MAX_SUMMARY)));
}

on_both_databases![
    a_plan_s_texts_hold_no_nul,
    a_result_s_texts_and_keys_hold_no_nul,
    what_is_said_along_the_way_holds_no_nul,
    a_token_that_an_agent_made_up_holds_no_nul,
    a_refused_result_is_kept_without_nul,
    a_caller_s_name_and_a_token_s_name_hold_no_nul,
    a_logged_call_holds_no_nul_and_loses_no_other,
    names_with_nul_find_nothing,
    an_imported_plan_holds_no_nul,
    other_characters_are_kept_as_they_are,
    an_empty_text_is_not_a_missing_one,
    texts_of_the_greatest_length_fit,
];
