//! A table of all engine calls that take a caller: the required permissions and a function that
//! makes the call with given ids. `roles.rs` makes each call in every role; `tenants.rs` makes each
//! call with the ids of another tenant.

use std::fmt::Debug;
use std::fs::File;
use std::pin::Pin;
use std::sync::Arc;

use onward_core::capture::{CapturePolicy, TaskReport};
use onward_core::command::{CreatePlan, ForkPlan, Modification, ModifyPlan, ReportSkill, StepSpec};
use onward_core::event::{Decision, ProgressSource};
use onward_core::id::{ArtifactId, OutputId, ReviewId, SessionId, SkillExecutionId};
use onward_core::role::Permission;
use onward_core::skill::SkillStatus;
use onward_core::turn::LoopControl;
use onward_core::{Code, PlanId, Role, StepId, StepType, Timestamp};
use onward_engine::audit::ALL_TIMES;
use onward_engine::feedback::NewFeedback;
use onward_engine::list::PlanQuery;
use onward_engine::search::SearchRequest;
use onward_engine::session::{Fingerprint, HookSource, ObservedStep, StepReport};
use onward_engine::skill::SkillQuery;
use onward_engine::step::{ProgressReport, ReviewDecision, ReviewRequest};
use onward_engine::tool_calls::{Approval, CallRef, Change, InitialState, NewCall};
use onward_engine::{CallKey, Caller, Engine, Error, TextId};
use onward_testbed::TestDir;

use crate::operations::submission_without_token;
use crate::research::{deliverable, finding};

/// The ids that a call refers to.
#[derive(Debug, Clone)]
pub(crate) struct Ids {
    pub(crate) plan: PlanId,
    pub(crate) step: StepId,
    pub(crate) token: String,
    pub(crate) skill: SkillExecutionId,
    pub(crate) session: String,
    pub(crate) artifact: ArtifactId,
    pub(crate) output: OutputId,
}

/// A call in progress; returns the response as text.
pub(crate) type CallFuture = Pin<Box<dyn Future<Output = Result<String, Error>> + Send>>;

pub(crate) struct Call {
    pub(crate) name: &'static str,
    pub(crate) permissions: &'static [Permission],
    pub(crate) make: fn(Engine, Caller, Ids) -> CallFuture,
}

fn describe<T: Debug>(result: Result<T, Error>) -> Result<String, Error> {
    result.map(|response| format!("{response:?}"))
}

macro_rules! call {
    ($name:literal, [$($needed:ident),+], |$engine:ident, $caller:ident, $ids:ident| $call:expr) => {
        Call {
            name: $name,
            permissions: &[$(Permission::$needed),+],
            #[allow(unused_variables, reason = "not every call takes an id")]
            make: |$engine, $caller, $ids| Box::pin(async move { describe($call.await) }),
        }
    };
}

fn session() -> Option<SessionId> {
    Some(SessionId::new("session"))
}

fn progress(step: StepId) -> ProgressReport {
    ProgressReport {
        step,
        note: None,
        percent: None,
        token: None,
        session: session(),
    }
}

fn question(step: StepId) -> ReviewRequest {
    ReviewRequest {
        step,
        summary: "Is this correct?".to_owned(),
        questions: Vec::new(),
        scope: onward_core::step::ReviewScope::Plan,
        options: Default::default(),
        token: None,
        session: session(),
    }
}

fn report(status: SkillStatus, plan: Option<PlanId>) -> ReportSkill {
    ReportSkill {
        skill: "survey".to_owned(),
        status,
        session: session(),
        plan,
        metadata: serde_json::Map::new(),
        error: None,
    }
}

fn search_query() -> SearchRequest {
    SearchRequest {
        query: "text theirs".to_owned(),
        ..SearchRequest::default()
    }
}

fn opinion(plan: PlanId) -> NewFeedback {
    NewFeedback {
        plan,
        rating: Some(1),
        comment: None,
        output: None,
    }
}

fn source() -> HookSource {
    HookSource {
        session: "session".to_owned(),
        agent: "claude-code".to_owned(),
        ..HookSource::default()
    }
}

fn empty_step() -> ObservedStep {
    ObservedStep {
        calls: Vec::new(),
        report: StepReport::Batch,
        fingerprint: Fingerprint::Unavailable,
        plans: Vec::new(),
        claims: Vec::new(),
        judged: None,
    }
}

fn draft(engine: &Engine) -> CreatePlan {
    let steps = vec![StepSpec::new(engine.new_step_id(), StepType::Custom, "do")];
    CreatePlan::new(engine.new_plan_id(), "name", "question", steps)
}

fn all_plans() -> PlanQuery {
    PlanQuery {
        limit: 100,
        finished: true,
        ..PlanQuery::default()
    }
}

/// Calls that create something; they do not refer to existing objects.
pub(crate) fn create_calls() -> Vec<Call> {
    vec![
        call!("set_agents_decide_reviews", [ManageTenant], |e, c, ids| e
            .set_agents_decide_reviews(&c, false)),
        call!("create_plan", [CreatePlan], |e, c, ids| e.create_plan(
            &c,
            draft(&e),
            None
        )),
        call!("record_sign_in", [Read], |e, c, ids| e.record_sign_in(&c)),
        call!("sign_out", [Read], |e, c, ids| {
            e.sign_out(&c, "key", Timestamp::from_millis(1))
        }),
        call!("log_skill without a plan", [Work], |e, c, ids| {
            e.log_skill(&c, None, report(SkillStatus::Started, None))
        }),
        call!("store_research", [Work], |e, c, ids| {
            e.store_research(&c, finding("Found", "text"))
        }),
        call!("store_unparsed_result", [Work], |e, c, ids| {
            let (step, work) = (ids.step.to_string(), serde_json::json!({ "note": "text" }));
            async move {
                e.store_unparsed_result(&c, &step, None, work, Code::InvalidInput)
                    .await
            }
        }),
        call!("begin_session", [Record], |e, c, ids| e.begin_session(
            &c,
            source(),
            Some("startup")
        )),
        call!("project_state", [Read], |e, c, ids| async move {
            e.project_state(&c, "/work").await
        }),
        call!("record_compaction", [Record], |e, c, ids| e
            .record_compaction(&c, source())),
        call!("remind_of_claims", [Record], |e, c, ids| e
            .remind_of_claims(&c, source())),
        call!("capture_tasks", [Record, CreatePlan, Work], |e, c, ids| {
            let policy = CapturePolicy::default();
            e.capture_tasks(&c, source(), TaskReport::List(Vec::new()), policy)
        }),
        call!("begin_turn", [Record], |e, c, ids| {
            let control = LoopControl::default();
            e.begin_turn(&c, source(), Fingerprint::Unavailable, control)
        }),
        call!("observe_step", [Record], |e, c, ids| {
            let control = LoopControl::default();
            e.observe_step(&c, source(), empty_step(), control)
        }),
        call!("admit_call", [Record], |e, c, ids| {
            let control = LoopControl::default();
            e.admit_call(&c, source(), some_call(), true, control)
        }),
        call!("record_call", [Record], |e, c, ids| {
            e.record_call(&c, source(), None, some_call(), InitialState::Running)
        }),
        call!("record_approval", [Record], |e, c, ids| {
            let request = CallRef {
                id: None,
                tool: "Bash".to_owned(),
                input: serde_json::Value::Null,
            };
            e.record_approval(&c, source(), request, Approval::Pending)
        }),
        call!("record_results", [Record], |e, c, ids| e.record_results(
            &c,
            source(),
            Vec::new()
        )),
        call!("take_interrupted_calls", [Record], |e, c, ids| async move {
            e.take_interrupted_calls(&c, &source()).await
        }),
        call!("end_turn", [Record], |e, c, ids| e.end_turn(&c, source())),
        call!("end_session", [Record], |e, c, ids| e
            .end_session(&c, source())),
        call!("import", [CreatePlan], |e, c, ids| e
            .import(&c, &serde_json::Value::Null)),
        call!("create_token", [ManageTokens], |e, c, ids| {
            e.create_token(&c, "a token", Role::Viewer, None)
        }),
        call!(
            "create_token for an owner",
            [ManageTokens, ManageTenant],
            |e, c, ids| { e.create_token(&c, "a token", Role::Owner, None) }
        ),
    ]
}

/// Calls that require an existing object; most of them modify it.
pub(crate) fn update_calls() -> Vec<Call> {
    vec![
        call!("next_step", [Work], |e, c, ids| e.next_step(
            &c,
            ids.plan,
            session(),
            true
        )),
        call!("submit", [Work], |e, c, ids| {
            e.submit(&c, submission_without_token(ids.step, "text"))
        }),
        call!("report_progress", [Work], |e, c, ids| {
            e.report_progress(&c, progress(ids.step))
        }),
        call!("record_activity", [Record], |e, c, ids| {
            e.record_activity(&c, ids.step, ProgressSource::Written, session())
        }),
        call!("request_review", [Work], |e, c, ids| e
            .request_review(&c, question(ids.step))),
        call!("decide_review", [DecideReview], |e, c, ids| {
            e.decide_review(&c, ReviewDecision::new(ids.step, Decision::Skip, None))
        }),
        call!(
            "decide_review with edits",
            [DecideReview, Work, Intervene],
            |e, c, ids| {
                let step = ids.step;
                let decision = ReviewDecision {
                    edits: vec![Modification::RemoveStep { step }],
                    ..ReviewDecision::new(step, Decision::Approve, None)
                };
                e.decide_review(&c, decision)
            }
        ),
        call!("fork_plan", [Read, CreatePlan], |e, c, ids| {
            let fork = ForkPlan {
                plan: e.new_plan_id(),
                from_order: 1,
                name: None,
                research_question: None,
                design_rationale: None,
                session: None,
                approval: None,
            };
            e.fork_plan(&c, ids.plan, fork, None)
        }),
        call!("modify_plan", [Work], |e, c, ids| {
            let fail = Modification::FailStep {
                step: ids.step,
                reason: None,
            };
            e.modify_plan(&c, ids.plan, ModifyPlan::new(fail))
        }),
        call!("modify_plan with resume", [Work, Intervene], |e, c, ids| {
            let fail = Modification::FailStep {
                step: ids.step,
                reason: None,
            };
            e.modify_plan(
                &c,
                ids.plan,
                ModifyPlan {
                    resume: true,
                    ..ModifyPlan::new(fail)
                },
            )
        }),
        call!("move_step", [Work, Intervene], |e, c, ids| {
            e.move_step(&c, ids.plan, ids.step, 1)
        }),
        call!("resume_plan", [Intervene], |e, c, ids| e
            .resume_plan(&c, ids.plan)),
        call!("abandon_plan", [AbandonPlan], |e, c, ids| e
            .abandon_plan(&c, ids.plan, None)),
        call!("record_session_resume", [Work], |e, c, ids| {
            e.record_session_resume(&c, ids.plan, SessionId::new("another"))
        }),
        call!("log_skill with a plan", [Work], |e, c, ids| {
            e.log_skill(&c, None, report(SkillStatus::Started, Some(ids.plan)))
        }),
        call!("skill_execution", [Read], |e, c, ids| e
            .skill_execution(&c, ids.skill)),
        call!("log_skill for an execution", [Work], |e, c, ids| {
            e.log_skill(&c, Some(ids.skill), report(SkillStatus::Completed, None))
        }),
        call!("store_research with a plan", [Work], |e, c, ids| {
            let mut found = finding("Found", "text");
            found.plan = Some(ids.plan);
            e.store_research(&c, found)
        }),
        call!("store_research with a step", [Work], |e, c, ids| {
            let mut found = finding("Found", "text");
            found.step = Some(ids.step);
            e.store_research(&c, found)
        }),
        call!("store_output", [Work], |e, c, ids| {
            e.store_output(&c, deliverable(ids.plan, "Answer", "text"))
        }),
        call!("submit_feedback", [Work], |e, c, ids| e
            .submit_feedback(&c, opinion(ids.plan))),
        call!("create_task", [Work], |e, c, ids| async move {
            let state = serde_json::json!({});
            e.create_task(&c, "get_next_step", Some(ids.plan), state)
                .await
        }),
        call!("delete_plan", [DeletePlan], |e, c, ids| e
            .delete_plan(&c, ids.plan)),
        call!("switch_session", [Intervene], |e, c, ids| {
            async move { e.switch_session(&c, &ids.session, true).await }
        }),
        call!("recover_session", [Record], |e, c, ids| {
            async move { e.recover_session(&c, &ids.session).await }
        }),
        call!("change_call", [Record], |e, c, ids| {
            e.change_call(&c, first_call(&ids.session), Change::Progress)
        }),
        call!("interrupt_call", [Intervene], |e, c, ids| {
            e.interrupt_call(&c, first_call(&ids.session))
        }),
        call!("revoke_token", [ManageTokens], |e, c, ids| e
            .revoke_token(&c, &ids.token)),
    ]
}

fn first_call(session: &str) -> CallKey {
    CallKey {
        session: session.to_owned(),
        agent: String::new(),
        turn: 1,
        position: 1,
    }
}

fn some_call() -> NewCall {
    NewCall::from_hook(None, "Bash".to_owned(), serde_json::Value::Null, None)
}

/// Calls that read an existing object.
pub(crate) fn read_calls() -> Vec<Call> {
    vec![
        call!("peek", [Read], |e, c, ids| e.peek(&c, ids.plan)),
        call!("status", [Read], |e, c, ids| e.status(&c, ids.plan, None)),
        call!("list_steps", [Read], |e, c, ids| e
            .list_steps(&c, ids.plan, None, 0, 9)),
        call!("sheet", [Read], |e, c, ids| e.sheet(&c, ids.plan)),
        call!("review_state", [Read], |e, c, ids| e.review_state(
            &c,
            ids.step,
            ReviewId::from_u128(1)
        )),
        call!("audit_trail", [Read], |e, c, ids| e
            .audit_trail(&c, ids.plan, 0, 9)),
        call!("full_plan", [Read], |e, c, ids| e.full_plan(&c, ids.plan)),
        call!("export", [Read], |e, c, ids| e.export(&c, ids.plan)),
        call!("step_context", [Read], |e, c, ids| e
            .step_context(&c, ids.step, None)),
        call!("plan_context", [Read], |e, c, ids| {
            e.plan_context(&c, ids.plan, None, None)
        }),
        call!("plan_context for a session", [Read], |e, c, ids| {
            e.plan_context(&c, ids.plan, session(), None)
        }),
        call!("search in a plan", [Read], |e, c, ids| {
            let request = SearchRequest {
                plan: Some(ids.plan),
                ..search_query()
            };
            e.search(&c, request)
        }),
        call!("search_all_candidates in a plan", [Read], |e, c, ids| {
            let request = SearchRequest {
                plan: Some(ids.plan),
                ..search_query()
            };
            e.search_all_candidates(&c, request)
        }),
        call!("outputs", [Read], |e, c, ids| e.outputs(&c, ids.plan, 9)),
        call!("extractions", [Read], |e, c, ids| e
            .extractions(&c, ids.plan, 9)),
        call!("read_text of an artifact", [Read], |e, c, ids| {
            e.read_text(&c, TextId::Artifact(ids.artifact), 0, 9)
        }),
        call!("read_text of an output", [Read], |e, c, ids| {
            e.read_text(&c, TextId::Output(ids.output), 0, 9)
        }),
        call!("step", [Read], |e, c, ids| e.step(&c, ids.step)),
        call!("branches", [Read], |e, c, ids| e.branches(&c, ids.plan)),
        call!("artifacts", [Read], |e, c, ids| e
            .artifacts(&c, ids.plan, 9)),
        call!("recent_events", [Read], |e, c, ids| e
            .recent_events(&c, ids.plan, 9)),
        call!("audit_trail_backwards", [Read], |e, c, ids| e
            .audit_trail_backwards(&c, ids.plan, None, None, 9, 1_000)),
        call!("audit_page", [Read], |e, c, ids| e
            .audit_page(&c, ids.plan, ALL_TIMES, 0, 9, 1_000)),
        call!("audit_between", [Read], |e, c, ids| e.audit_between(
            &c,
            ALL_TIMES,
            Some((ids.plan, 1)),
            9,
            None
        )),
        call!("full_plan_within", [Read], |e, c, ids| e
            .full_plan_within(&c, ids.plan, 1_000_000)),
        call!("export_to", [Read], |e, c, ids| {
            let directory = TestDir::new("export");
            let file = File::create(directory.join("plan.json"));
            let file = Arc::new(file.expect("file created"));
            async move { e.export_to(&c, ids.plan, file).await }
        }),
        call!("find_plan", [Read], |e, c, ids| {
            let id = ids.plan.to_string();
            async move { e.find_plan(&c, &id).await }
        }),
        call!("find_step", [Read], |e, c, ids| {
            let id = ids.step.to_string();
            async move { e.find_step(&c, &id).await }
        }),
        call!("find_session", [Read], |e, c, ids| {
            async move { e.find_session(&c, &ids.session).await }
        }),
        call!("session_health", [Read], |e, c, ids| {
            async move { e.session_health(&c, &ids.session).await }
        }),
        call!("show_session", [Read], |e, c, ids| {
            async move { e.show_session(&c, &ids.session, 9, 9).await }
        }),
    ]
}

/// Calls that list or count objects; they succeed if there are none.
pub(crate) fn list_calls() -> Vec<Call> {
    vec![
        call!("list_plans", [Read], |e, c, ids| e
            .list_plans(&c, all_plans())),
        call!("stored_bytes", [Read], |e, c, ids| e.stored_bytes(&c)),
        call!("count_plans", [Read], |e, c, ids| e.count_plans(&c)),
        call!("count_archived", [Read], |e, c, ids| e.count_archived(&c)),
        call!("projects", [Read], |e, c, ids| e.projects(&c, 9)),
        call!("journal", [Read], |e, c, ids| async move {
            e.journal(&c, "/work", None, 9).await
        }),
        call!("list_skills", [Read], |e, c, ids| {
            e.list_skills(&c, SkillQuery::default())
        }),
        call!("count_skills", [Read], |e, c, ids| e.count_skills(&c)),
        call!("search", [Read], |e, c, ids| e.search(&c, search_query())),
        call!("search_health", [Read], |e, c, ids| e.search_health(&c)),
        call!("open_reviews", [Read], |e, c, ids| e.open_reviews(&c, 9)),
        call!("verify", [Read], |e, c, ids| e.verify(&c)),
        call!("verify_plan", [Read], |e, c, ids| e
            .verify_plan(&c, ids.plan)),
        call!("tokens", [ManageTokens], |e, c, ids| e.tokens(&c)),
        call!("members", [ManageMembers], |e, c, ids| e.members(&c)),
        call!("tenant_log", [Read], |e, c, ids| e.tenant_log(&c, 9)),
        call!("tenant", [Read], |e, c, ids| e.tenant(&c)),
        call!("logged_requests", [Read], |e, c, ids| e
            .logged_requests(&c, None, 9)),
        call!("feedback", [Read], |e, c, ids| e.feedback(&c, ids.plan, 9)),
        call!("step_history", [Read], |e, c, ids| e
            .step_history(&c, ids.plan, ids.step)),
        call!("output_versions", [Read], |e, c, ids| e
            .output_versions(&c, ids.plan, "Theirs", 9)),
        call!("review_decision", [Read], |e, c, ids| e
            .review_decision(&c, ReviewId::from_u128(7))),
        call!("tested_values", [Read], |e, c, ids| e
            .tested_values(&c, &[])),
        call!("list_sessions", [Read], |e, c, ids| e.list_sessions(&c, 9)),
        call!("sessions_changed", [Read], |e, c, ids| e.sessions_changed(
            &c,
            Timestamp::MIN,
            9
        )),
    ]
}
