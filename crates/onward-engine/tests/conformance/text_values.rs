//! Text values round-trip unchanged, except that U+0000 becomes U+FFFD on both backends.

use std::borrow::Cow;
use std::time::Duration;

use onward_core::Role;
use onward_core::command::{ActionSpec, Modification, ModifyPlan};
use onward_core::event::Decision;
use onward_core::id::{ClaimToken, SessionId};
use onward_core::policy::{
    MAX_INSTRUCTIONS, MAX_NAME, MAX_QUESTION, MAX_REMARK, MAX_SUMMARY, MAX_TITLE,
};
use onward_core::step::StepState;
use onward_engine::Caller;
use onward_engine::request_log::CompletedRequest;
use onward_engine::step::{ProgressReport, ReviewDecision, ReviewRequest};
use onward_engine::submit::Submission;
use serde_json::{Value, json};

use crate::harness::Harness;
use crate::on_both_databases;
use crate::operations::{claimed_step, code, document, submission_for, submission_without_token};

/// A text with U+0000 as it is sent, and as it is stored.
const SENT: &str = "a\0b\0";
const STORED: &str = "a\u{FFFD}b\u{FFFD}";

fn sent() -> Option<String> {
    Some(SENT.to_owned())
}

/// Exports the plan and asserts that it contains no U+0000, escaped or not.
async fn export_without_nul(harness: &Harness, plan: onward_core::PlanId) -> Value {
    let document = document(&harness.engine, &harness.me, plan).await;
    let text = document.to_string();
    assert!(!text.contains('\0') && !text.contains("\\u0000"), "{text}");
    document
}

async fn replaces_nul_in_texts_of_a_plan(harness: &Harness) {
    let mut draft = harness.draft(2);
    draft.name = SENT.to_owned();
    draft.research_question = SENT.to_owned();
    draft.design_rationale = sent();
    draft.output_formatting_notes = sent();
    draft.session = Some(SessionId::new(SENT));
    draft.steps[0].title = sent();
    draft.steps[0].instructions = SENT.to_owned();
    let condition = format!("resultSummary == \"{SENT}\"");
    let mut more = harness.step(SENT);
    more.title = sent();
    let fail = ActionSpec::Fail { reason: sent() };
    draft.branches = vec![
        harness.branch(1, "false", ActionSpec::AddSteps(vec![more])),
        harness.branch(1, &condition, fail),
    ];
    let created = harness
        .engine
        .create_plan(&harness.me, draft.clone(), sent())
        .await
        .unwrap();
    let sheet = harness.status(created.created.plan).await.sheet;
    assert_eq!(sheet.brief.name, STORED);
    assert_eq!(sheet.brief.research_question, STORED);
    assert_eq!(sheet.brief.design_rationale.as_deref(), Some(STORED));
    assert_eq!(sheet.brief.output_formatting_notes.as_deref(), Some(STORED));
    let step = harness.claim(created.created.plan).await;
    assert_eq!(
        (step.title.as_deref(), step.instructions.as_str()),
        (Some(STORED), STORED)
    );
    let submitted = harness.complete(&step, SENT).await;
    assert_eq!(submitted.plan_status.as_str(), "failed", "{submitted:?}");
    export_without_nul(harness, created.created.plan).await;
    let again = harness
        .engine
        .create_plan(&harness.me, draft, sent())
        .await
        .unwrap();
    assert_eq!(again, created, "same idempotency key");
}

async fn replaces_nul_in_texts_and_keys_of_a_result(harness: &Harness) {
    let plan = harness.plan(1).await;
    let next = harness
        .engine
        .next_step(&harness.me, plan.id, Some(SessionId::new(SENT)), false)
        .await;
    let step = claimed_step(next.unwrap());
    let mut submission = submission_for(&step, SENT);
    submission.session = Some(SessionId::new(SENT));
    submission.result.data = Some(json!({ SENT: { SENT: [SENT, { SENT: SENT }] } }).into());
    submission.result.report = Some(json!({ SENT: SENT }).into());
    submission.result.formatting_notes = sent();
    let response = harness.submit(submission.clone()).await.unwrap();
    let document = export_without_nul(harness, plan.id).await;
    let stored = json!({ STORED: { STORED: [STORED, { STORED: STORED }] } });
    assert_eq!(document["steps"][0]["result"], stored);
    assert_eq!(document["steps"][0]["resultSummary"], STORED);
    assert_eq!(
        harness.submit(submission).await.unwrap(),
        response,
        "duplicate submission"
    );
}

async fn replaces_nul_in_progress_reviews_and_modifications(harness: &Harness) {
    let plan = harness.plan(4).await;
    let step = harness.claim(plan.id).await;
    let progress = ProgressReport {
        step: step.step,
        note: sent(),
        percent: None,
        token: None,
        session: Some(SessionId::new(SENT)),
    };
    harness
        .engine
        .report_progress(&harness.me, progress)
        .await
        .unwrap();
    let question = ReviewRequest {
        step: step.step,
        summary: SENT.to_owned(),
        questions: vec![SENT.to_owned()],
        scope: onward_core::step::ReviewScope::Plan,
        options: Default::default(),
        token: None,
        session: Some(SessionId::new(SENT)),
    };
    harness
        .engine
        .request_review(&harness.me, question)
        .await
        .unwrap();
    let open = harness.engine.open_reviews(&harness.me, 1).await.unwrap();
    assert_eq!(open[0].review.summary, STORED);
    assert_eq!(open[0].review.questions, [STORED]);
    let decided = harness
        .engine
        .decide_review(
            &harness.me,
            ReviewDecision::new(step.step, Decision::Modify, sent()),
        )
        .await;
    assert!(decided.unwrap().instructions.unwrap().ends_with(STORED));
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
            steps: vec![harness.step(SENT)],
            insert_after: None,
        },
        Modification::AddBranch {
            branch: harness.branch(3, "true", ActionSpec::Fail { reason: sent() }),
        },
    ] {
        let modified = harness.engine.modify_plan(
            &harness.me,
            plan.id,
            ModifyPlan {
                rationale: sent(),
                ..ModifyPlan::new(modification)
            },
        );
        modified.await.unwrap();
    }
    harness
        .engine
        .record_session_resume(&harness.me, plan.id, SessionId::new(SENT))
        .await
        .unwrap();
    harness
        .engine
        .record_session_resume(&harness.me, plan.id, SessionId::new(STORED))
        .await
        .unwrap();
    harness
        .engine
        .abandon_plan(&harness.me, plan.id, sent())
        .await
        .unwrap();
    export_without_nul(harness, plan.id).await;
}

async fn rejects_an_unknown_claim_token_with_nul(harness: &Harness) {
    let plan = harness.plan(2).await;
    let claimed = harness.claim(plan.id).await;
    for step in [claimed.step, plan.steps[1]] {
        let submission = Submission {
            token: Some(ClaimToken::new(SENT)),
            ..submission_without_token(step, "done")
        };
        assert_eq!(code(harness.submit(submission).await), "claim_superseded");
    }
    export_without_nul(harness, plan.id).await;
}

async fn replaces_nul_in_a_rejected_result(harness: &Harness) {
    let plan = harness.plan(2).await;
    harness.complete_steps(plan.id, 1).await;
    let mut late = submission_without_token(plan.steps[0], SENT);
    late.result.data = Some(json!({ SENT: SENT }).into());
    assert_eq!(code(harness.submit(late).await), "illegal_transition");
    let document = export_without_nul(harness, plan.id).await;
    let content = document["artifacts"][0]["content"].as_str().unwrap();
    assert!(content.contains(STORED), "{content}");
}

async fn replaces_nul_in_names_of_callers_and_tokens(harness: &Harness) {
    let created = harness
        .engine
        .create_token(&harness.me, SENT, Role::Owner, None)
        .await;
    let (secret, token) = created.unwrap();
    assert_eq!(token.name, STORED);
    let caller = harness.engine.authenticate(&secret).await.unwrap();
    assert_eq!(caller.name, format!("token:{STORED}"));
    let caller = Caller {
        name: SENT.to_owned(),
        ..caller
    };
    let plan = harness.create_for(&caller, harness.draft(1)).await;
    export_without_nul(harness, plan.id).await;
    harness.advance(Duration::from_millis(1));
    harness.engine.delete_plan(&caller, plan.id).await.unwrap();
    let log = harness.engine.tenant_log(&harness.me, 1).await.unwrap();
    assert_eq!(log[0].actor, STORED);
}

async fn replaces_nul_in_the_request_log(harness: &Harness) {
    let engine = harness.another_engine().await;
    let call = |text: &str| CompletedRequest {
        tool: text.to_owned(),
        session: Some(text.to_owned()),
        request: Cow::Owned(json!({ text: text })),
        response: Cow::Owned(json!([text])),
        duration: Duration::from_micros(1),
        is_error: false,
    };
    engine.log_request(&harness.me, call("plain"));
    harness.advance(Duration::from_millis(1));
    engine.log_request(&harness.me, call(SENT));
    engine.close().await;
    let calls = harness
        .engine
        .logged_requests(&harness.me, None, 9)
        .await
        .unwrap();
    let tools: Vec<&str> = calls.iter().map(|call| call.tool.as_str()).collect();
    assert_eq!(tools, [STORED, "plain"]);
    assert_eq!(calls[0].session.as_deref(), Some(STORED));
    assert_eq!(calls[0].request, json!({ STORED: STORED }));
    assert_eq!(calls[0].response, json!([STORED]));
}

async fn lookups_with_nul_find_nothing(harness: &Harness) {
    let unknown = harness.engine.operator(SENT, "me").await;
    assert!(
        matches!(unknown, Err(onward_engine::Error::NotFound { .. })),
        "{unknown:?}"
    );
    assert_eq!(
        code(harness.engine.find_plan(&harness.me, SENT).await),
        "plan_not_found"
    );
    assert_eq!(
        code(harness.engine.find_step(&harness.me, SENT).await),
        "step_not_found"
    );
    assert_eq!(
        code(harness.engine.authenticate(SENT).await),
        "unauthorized"
    );
    assert!(
        harness
            .engine
            .revoke_token(&harness.me, SENT)
            .await
            .is_err()
    );
}

async fn replaces_nul_in_an_imported_plan(harness: &Harness) {
    let plan = harness.plan(1).await;
    harness.complete_steps(plan.id, 1).await;
    let sent = document(&harness.engine, &harness.me, plan.id)
        .await
        .to_string();
    let with_nul = sent
        .replace("Tides", "Ti\\u0000des")
        .replace("\"done\"", "\"do\\u0000ne\"");
    assert_ne!(with_nul, sent);
    let document: Value = serde_json::from_str(&with_nul).unwrap();
    let other = harness.create_tenant("other").await;
    harness.engine.import(&other, &document).await.unwrap();
    let whole = harness.engine.full_plan(&other, plan.id).await.unwrap();
    assert_eq!(whole.plan.sheet.brief.name, "Ti\u{FFFD}des");
}

async fn stores_other_characters_unchanged(harness: &Harness) {
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
        let mut draft = harness.draft(2);
        draft.name = text.to_owned();
        draft.steps[0].title = Some(text.to_owned());
        draft.steps[0].instructions = text.to_owned();
        let plan = harness.create(draft).await;
        let step = harness.claim(plan.id).await;
        assert_eq!(
            (step.title.as_deref(), step.instructions.as_str()),
            (Some(text), text)
        );
        let mut submission = submission_for(&step, text);
        submission.result.data = Some(json!({ text: text }).into());
        harness.submit(submission).await.unwrap();
        let document = document(&harness.engine, &harness.me, plan.id).await;
        assert_eq!(document["plan"]["name"], text);
        assert_eq!(document["steps"][0]["result"], json!({ text: text }));
        assert_eq!(document["steps"][0]["resultSummary"], text);
    }
}

async fn distinguishes_empty_from_missing_texts(harness: &Harness) {
    let mut draft = harness.draft(1);
    draft.design_rationale = Some(String::new());
    draft.steps[0].title = Some(String::new());
    let plan = harness.create(draft).await;
    let sheet = harness.status(plan.id).await.sheet;
    assert_eq!(sheet.brief.design_rationale.as_deref(), Some(""));
    assert_eq!(sheet.brief.output_formatting_notes, None);
    let step = harness.claim(plan.id).await;
    assert_eq!(step.title.as_deref(), Some(""));
    let mut submission = submission_for(&step, "done");
    submission.result.formatting_notes = Some(String::new());
    submission.result.data = Some(json!({}).into());
    harness.submit(submission).await.unwrap();
    let done = harness.step_result(plan.id, 0).await;
    assert_eq!(done.formatting_notes.as_deref(), Some(""));
    assert_eq!((&done.data, &done.report), (&Some(json!({}).into()), &None));
    harness
        .engine
        .record_session_resume(&harness.me, plan.id, SessionId::new(""))
        .await
        .unwrap();
}

async fn accepts_texts_of_the_maximum_length(harness: &Harness) {
    let long = |length| "🌊".repeat(length);
    let mut draft = harness.draft(1);
    draft.name = long(MAX_NAME);
    draft.research_question = long(MAX_QUESTION);
    draft.design_rationale = Some(long(MAX_REMARK));
    draft.steps[0].title = Some(long(MAX_TITLE));
    draft.steps[0].instructions = long(MAX_INSTRUCTIONS);
    let plan = harness.create(draft).await;
    let step = harness.claim(plan.id).await;
    assert_eq!(step.instructions, long(MAX_INSTRUCTIONS));
    let mut submission = submission_for(&step, &long(MAX_SUMMARY));
    submission.result.formatting_notes = Some(long(MAX_REMARK));
    harness.submit(submission).await.unwrap();
    let status = harness.status(plan.id).await;
    assert_eq!(status.sheet.brief.name, long(MAX_NAME));
    let (_, step) = harness
        .engine
        .step(&harness.me, step.step)
        .await
        .expect("step exists");
    let StepState::Completed { result, .. } = step.state else {
        panic!("the step is completed")
    };
    assert_eq!(result.summary, long(MAX_SUMMARY));
}

on_both_databases![
    replaces_nul_in_texts_of_a_plan,
    replaces_nul_in_texts_and_keys_of_a_result,
    replaces_nul_in_progress_reviews_and_modifications,
    rejects_an_unknown_claim_token_with_nul,
    replaces_nul_in_a_rejected_result,
    replaces_nul_in_names_of_callers_and_tokens,
    replaces_nul_in_the_request_log,
    lookups_with_nul_find_nothing,
    replaces_nul_in_an_imported_plan,
    stores_other_characters_unchanged,
    distinguishes_empty_from_missing_texts,
    accepts_texts_of_the_maximum_length,
];
