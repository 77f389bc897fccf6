//! Every call of the engine that is made for somebody, in one table: what it needs permission for, and
//! how to make it about given ids. `roles.rs` makes them in every role, `tenants.rs` with the ids of
//! another tenant.

use std::fmt::Debug;
use std::pin::Pin;

use onward_core::command::{CreatePlan, Modification, ReportSkill, StepSpec};
use onward_core::event::{Decision, Sign};
use onward_core::id::{SessionId, SkillExecutionId};
use onward_core::role::Permission;
use onward_core::skill::SkillStatus;
use onward_core::turn::LoopControl;
use onward_core::{Code, PlanId, Role, StepId, StepType, Timestamp};
use onward_engine::feedback::Opinion;
use onward_engine::ledger::{Asked, Begins, Change, NewCall, Said};
use onward_engine::list::PlanQuery;
use onward_engine::search::Wanted;
use onward_engine::session::{Fingerprint, Heard, SeenStep};
use onward_engine::skill::SkillQuery;
use onward_engine::step::{Progress, Question};
use onward_engine::{CallKey, Caller, Engine, Error};

use crate::research::{deliverable, finding};
use crate::verbs::result_without_token;

/// What a call is about.
#[derive(Debug, Clone)]
pub(crate) struct Ids {
    pub(crate) plan: PlanId,
    pub(crate) step: StepId,
    /// The id of a token.
    pub(crate) token: String,
    /// A skill's execution.
    pub(crate) skill: SkillExecutionId,
    /// An agent's session.
    pub(crate) session: String,
}

/// What came of a call: its answer as text.
pub(crate) type Answer = Pin<Box<dyn Future<Output = Result<String, Error>> + Send>>;

/// One call.
pub(crate) struct Call {
    pub(crate) name: &'static str,
    pub(crate) needs: &'static [Permission],
    pub(crate) make: fn(Engine, Caller, Ids) -> Answer,
}

fn shown<T: Debug>(answer: Result<T, Error>) -> Result<String, Error> {
    answer.map(|answer| format!("{answer:?}"))
}

macro_rules! call {
    ($name:literal, [$($needs:ident),+], |$engine:ident, $caller:ident, $ids:ident| $call:expr) => {
        Call {
            name: $name,
            needs: &[$(Permission::$needs),+],
            #[allow(unused_variables, reason = "not every call is about an id")]
            make: |$engine, $caller, $ids| Box::pin(async move { shown($call.await) }),
        }
    };
}

fn session() -> Option<SessionId> {
    Some(SessionId::new("session"))
}

fn progress(step: StepId) -> Progress {
    Progress {
        step,
        note: None,
        percent: None,
        token: None,
        session: session(),
    }
}

fn question(step: StepId) -> Question {
    Question {
        step,
        summary: "Is it so?".to_owned(),
        questions: Vec::new(),
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

fn words() -> Wanted {
    Wanted {
        query: "words theirs".to_owned(),
        ..Wanted::default()
    }
}

fn opinion(plan: PlanId) -> Opinion {
    Opinion {
        plan,
        rating: Some(1),
        comment: None,
        output: None,
    }
}

fn heard() -> Heard {
    Heard {
        session: "session".to_owned(),
        agent: "claude-code".to_owned(),
        ..Heard::default()
    }
}

fn nothing_seen() -> SeenStep {
    SeenStep {
        calls: Vec::new(),
        whole: true,
        fingerprint: Fingerprint::None,
        plans: Vec::new(),
    }
}

fn draft(engine: &Engine) -> CreatePlan {
    let steps = vec![StepSpec::new(engine.fresh_step(), StepType::Custom, "do")];
    CreatePlan::new(engine.fresh_plan(), "name", "question", steps)
}

fn everything() -> PlanQuery {
    PlanQuery {
        limit: 100,
        finished: true,
        ..PlanQuery::default()
    }
}

/// Calls that make something, under ids of their own or those of a document.
pub(crate) fn makers() -> Vec<Call> {
    vec![
        call!("create_plan", [CreatePlan], |e, c, ids| e.create_plan(
            &c,
            draft(&e),
            None
        )),
        call!("note_sign_in", [Read], |e, c, ids| e.note_sign_in(&c)),
        call!("log_skill without a plan", [Work], |e, c, ids| {
            e.log_skill(&c, None, report(SkillStatus::Started, None))
        }),
        call!("store_research", [Work], |e, c, ids| {
            e.store_research(&c, finding("Found", "words"))
        }),
        call!("keep_unread", [Work], |e, c, ids| {
            let (step, work) = (ids.step.to_string(), serde_json::json!({ "note": "words" }));
            async move { e.keep_unread(&c, &step, work, Code::InvalidInput).await }
        }),
        call!("begin_session", [Record], |e, c, ids| e.begin_session(
            &c,
            heard(),
            true
        )),
        call!("begin_turn", [Record], |e, c, ids| {
            let control = LoopControl::default();
            e.begin_turn(&c, heard(), Fingerprint::None, control)
        }),
        call!("observe_step", [Record], |e, c, ids| {
            let control = LoopControl::default();
            e.observe_step(&c, heard(), nothing_seen(), control)
        }),
        call!("before_call", [Record], |e, c, ids| {
            let control = LoopControl::default();
            e.before_call(&c, heard(), None, true, control)
        }),
        call!("gate_call", [Record], |e, c, ids| {
            let control = LoopControl::default();
            e.gate_call(&c, heard(), some_call(), true, control)
        }),
        call!("record_call", [Record], |e, c, ids| {
            e.record_call(&c, heard(), None, some_call(), Begins::Running)
        }),
        call!("call_asked", [Record], |e, c, ids| {
            let asked = Asked {
                id: None,
                tool: "Bash".to_owned(),
                input: serde_json::Value::Null,
            };
            e.call_asked(&c, heard(), asked, Said::Nothing)
        }),
        call!("settle_calls", [Record], |e, c, ids| e.settle_calls(
            &c,
            heard(),
            Vec::new()
        )),
        call!("tell_interrupted", [Record], |e, c, ids| async move {
            e.tell_interrupted(&c, &heard()).await
        }),
        call!("end_turn", [Record], |e, c, ids| e.end_turn(&c, heard())),
        call!("end_session", [Record], |e, c, ids| e
            .end_session(&c, heard())),
        call!("import", [CreatePlan], |e, c, ids| e
            .import(&c, &serde_json::Value::Null)),
        call!("create_token", [ManageTokens], |e, c, ids| {
            e.create_token(&c, "a token", Role::Viewer, None)
        }),
        call!(
            "create_token of an owner",
            [ManageTokens, ManageTenant],
            |e, c, ids| { e.create_token(&c, "a token", Role::Owner, None) }
        ),
    ]
}

/// Calls about something that must be there.
pub(crate) fn changes() -> Vec<Call> {
    vec![
        call!("next_step", [Work], |e, c, ids| e.next_step(
            &c,
            ids.plan,
            session(),
            true
        )),
        call!("submit", [Work], |e, c, ids| {
            e.submit(&c, result_without_token(ids.step, "words"))
        }),
        call!("report_progress", [Work], |e, c, ids| {
            e.report_progress(&c, progress(ids.step))
        }),
        call!("notice", [Record], |e, c, ids| {
            e.notice(&c, ids.step, Sign::Written, session())
        }),
        call!("request_review", [Work], |e, c, ids| e
            .request_review(&c, question(ids.step))),
        call!("decide_review", [DecideReview], |e, c, ids| {
            e.decide_review(&c, ids.step, Decision::Skip, None)
        }),
        call!("modify_plan", [Work], |e, c, ids| {
            let fail = Modification::FailStep {
                step: ids.step,
                reason: None,
            };
            e.modify_plan(&c, ids.plan, fail, None, false)
        }),
        call!("modify_plan with resume", [Work, Intervene], |e, c, ids| {
            let fail = Modification::FailStep {
                step: ids.step,
                reason: None,
            };
            e.modify_plan(&c, ids.plan, fail, None, true)
        }),
        call!("move_step", [Work, Intervene], |e, c, ids| {
            e.move_step(&c, ids.plan, ids.step, 1)
        }),
        call!("resume_plan", [Intervene], |e, c, ids| e
            .resume_plan(&c, ids.plan)),
        call!("abandon_plan", [AbandonPlan], |e, c, ids| e
            .abandon_plan(&c, ids.plan, None)),
        call!("take_up", [Work], |e, c, ids| {
            e.take_up(&c, ids.plan, SessionId::new("another"))
        }),
        call!("log_skill with a plan", [Work], |e, c, ids| {
            e.log_skill(&c, None, report(SkillStatus::Started, Some(ids.plan)))
        }),
        call!("skill_execution", [Read], |e, c, ids| e
            .skill_execution(&c, ids.skill)),
        call!("log_skill of an execution", [Work], |e, c, ids| {
            e.log_skill(&c, Some(ids.skill), report(SkillStatus::Completed, None))
        }),
        call!("store_research with a plan", [Work], |e, c, ids| {
            let mut found = finding("Found", "words");
            found.plan = Some(ids.plan);
            e.store_research(&c, found)
        }),
        call!("store_research with a step", [Work], |e, c, ids| {
            let mut found = finding("Found", "words");
            found.step = Some(ids.step);
            e.store_research(&c, found)
        }),
        call!("store_output", [Work], |e, c, ids| {
            e.store_output(&c, deliverable(ids.plan, "Answer", "words"))
        }),
        call!("submit_feedback", [Work], |e, c, ids| e
            .submit_feedback(&c, opinion(ids.plan))),
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
        call!("close_call", [Intervene], |e, c, ids| {
            e.close_call(&c, first_call(&ids.session))
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
    NewCall::seen(None, "Bash".to_owned(), serde_json::Value::Null, None)
}

/// Calls that read something which must be there.
pub(crate) fn reads() -> Vec<Call> {
    vec![
        call!("peek", [Read], |e, c, ids| e.peek(&c, ids.plan)),
        call!("status", [Read], |e, c, ids| e.status(&c, ids.plan, None)),
        call!("list_steps", [Read], |e, c, ids| e
            .list_steps(&c, ids.plan, None, 0, 9)),
        call!("sheet", [Read], |e, c, ids| e.sheet(&c, ids.plan)),
        call!("trail", [Read], |e, c, ids| e.trail(&c, ids.plan, 0, 9)),
        call!("whole_plan", [Read], |e, c, ids| e.whole_plan(&c, ids.plan)),
        call!("export", [Read], |e, c, ids| e.export(&c, ids.plan)),
        call!("step_context", [Read], |e, c, ids| e
            .step_context(&c, ids.step, None)),
        call!("plan_context", [Read], |e, c, ids| {
            e.plan_context(&c, ids.plan, None, None)
        }),
        call!("plan_context of a session", [Read], |e, c, ids| {
            e.plan_context(&c, ids.plan, session(), None)
        }),
        call!("search of a plan", [Read], |e, c, ids| {
            let wanted = Wanted {
                plan: Some(ids.plan),
                ..words()
            };
            e.search(&c, wanted)
        }),
        call!("search_both of a plan", [Read], |e, c, ids| {
            let wanted = Wanted {
                plan: Some(ids.plan),
                ..words()
            };
            e.search_both(&c, wanted)
        }),
        call!("outputs", [Read], |e, c, ids| e.outputs(&c, ids.plan, 9)),
        call!("extractions", [Read], |e, c, ids| e
            .extractions(&c, ids.plan, 9)),
        call!("step", [Read], |e, c, ids| e.step(&c, ids.step)),
        call!("branches", [Read], |e, c, ids| e.branches(&c, ids.plan)),
        call!("artifacts", [Read], |e, c, ids| e
            .artifacts(&c, ids.plan, 9)),
        call!("recent", [Read], |e, c, ids| e.recent(&c, ids.plan, 9)),
        call!("trail_back", [Read], |e, c, ids| e
            .trail_back(&c, ids.plan, None, None, 9)),
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

/// Calls that read whatever is there.
pub(crate) fn lists() -> Vec<Call> {
    vec![
        call!("list_plans", [Read], |e, c, ids| e
            .list_plans(&c, everything())),
        call!("count_plans", [Read], |e, c, ids| e.count_plans(&c)),
        call!("list_skills", [Read], |e, c, ids| {
            e.list_skills(&c, SkillQuery::default())
        }),
        call!("count_skills", [Read], |e, c, ids| e.count_skills(&c)),
        call!("search", [Read], |e, c, ids| e.search(&c, words())),
        call!("search_health", [Read], |e, c, ids| e.search_health(&c)),
        call!("open_reviews", [Read], |e, c, ids| e.open_reviews(&c, 9)),
        call!("verify", [Read], |e, c, ids| e.verify(&c)),
        call!("verify_plan", [Read], |e, c, ids| e
            .verify_plan(&c, ids.plan)),
        call!("tokens", [ManageTokens], |e, c, ids| e.tokens(&c)),
        call!("members", [ManageMembers], |e, c, ids| e.members(&c)),
        call!("tenant_log", [Read], |e, c, ids| e.tenant_log(&c, 9)),
        call!("calls", [Read], |e, c, ids| e.calls(&c, 9)),
        call!("list_sessions", [Read], |e, c, ids| e.list_sessions(&c, 9)),
        call!("sessions_changed", [Read], |e, c, ids| e.sessions_changed(
            &c,
            Timestamp::MIN,
            9
        )),
    ]
}
