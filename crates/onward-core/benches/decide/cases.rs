//! The benchmark cases, for plans of any size.
//!
//! A case has the same command and the same events at every size; only the number of unrelated
//! steps differs. [`whole_list`] contains the commands whose cost depends on the number of steps.

use std::rc::Rc;
use std::sync::Arc;

use onward_core::command::{
    ActionSpec, BranchSpec, CreatePlan, DecideReview, HandleStalls, Modification, ModifyPlan,
    ReportProgress, RequestReview, ResumeSession, StartNext, StepRef, StepSpec, SubmitResult,
};
use onward_core::event::{Decision, ProgressSource};
use onward_core::id::{BranchId, ClaimToken, PlanId, ReviewId, SessionId, StepId};
use onward_core::step::StepResult;
use onward_core::{Command, Plan, StepType, Timestamp, decide};

/// A plan, the commands and the expected events.
pub(crate) struct Case {
    /// The name in the report.
    pub(crate) name: &'static str,
    /// The nominal number of steps in the plan.
    pub(crate) size: u32,
    /// Shared by cases with the same initial plan.
    pub(crate) plan: Rc<Plan>,
    /// Each command is decided on the same plan; events are not applied.
    pub(crate) commands: Vec<Command>,
    pub(crate) now: Timestamp,
    /// The names of the expected events, without consecutive duplicates.
    pub(crate) events: &'static [&'static str],
}

/// The step in progress in [`started_plan`].
const IN_PROGRESS: u32 = 2;

/// Commands on one step or a few steps.
pub(crate) fn few_steps(size: u32) -> Vec<Case> {
    let plain = Rc::new(started_plan(size, |_| Vec::new(), &[]));
    let in_review = {
        let mut plan = started_plan(size, |_| Vec::new(), &[]);
        execute(&mut plan, &request_review(), minute(1));
        Rc::new(plan)
    };
    let nearly_done = Rc::new(nearly_done(size));
    let chain = Rc::new(started_plan(size, |order| vec![order - 1], &[]));
    let on_working = |order| {
        if order > IN_PROGRESS {
            vec![IN_PROGRESS]
        } else {
            Vec::new()
        }
    };
    let depended_on = Rc::new(started_plan(size, on_working, &[]));
    let with_branch = |size, action| Rc::new(started_plan(size, |_| Vec::new(), &[action]));
    // A plan has at most 10,000 steps, so cases that add one start with one less.
    let smaller = Rc::new(started_plan(size - 1, |_| Vec::new(), &[]));
    let one_more = || ActionSpec::AddSteps(vec![spec(size + 1)]);

    let case = |name, plan: &Rc<Plan>, command, events| Case {
        name,
        size,
        plan: Rc::clone(plan),
        commands: vec![command],
        now: minute(2),
        events,
    };
    let started: &[&str] = &["step_started"];
    let completed: &[&str] = &["step_completed"];
    let modified: &[&str] = &["plan_modified"];
    vec![
        case("StartNext", &plain, start_next(false), started),
        case(
            "StartNext, near the end of the plan",
            &nearly_done,
            start_next(false),
            started,
        ),
        case(
            "StartNext, all others depend on a step",
            &depended_on,
            start_next(false),
            &[],
        ),
        Case {
            now: minute(45),
            ..case(
                "StartNext, taking over a stalled step",
                &plain,
                start_next(true),
                &["step_requeued", "step_started"],
            )
        },
        case("SubmitResult", &plain, submit(0.5), completed),
        case(
            "SubmitResult, the next step depends on it",
            &chain,
            submit(0.5),
            completed,
        ),
        case(
            "SubmitResult, all others depend on it",
            &depended_on,
            submit(0.5),
            completed,
        ),
        case(
            "SubmitResult, a false branch",
            &with_branch(size, ActionSpec::Continue),
            submit(0.5),
            completed,
        ),
        case(
            "SubmitResult, a skip_to to the end, not taken",
            &with_branch(size, ActionSpec::SkipTo(StepRef::Order(size))),
            submit(0.5),
            completed,
        ),
        case(
            "SubmitResult, a taken add_steps",
            &with_branch(size - 1, one_more()),
            submit(0.9),
            &["step_completed", "branch_taken"],
        ),
        case(
            "ReportProgress",
            &plain,
            report_progress(),
            &["step_progressed"],
        ),
        case(
            "RequestReview",
            &plain,
            request_review(),
            &["user_reviewed", "plan_status_changed"],
        ),
        case(
            "DecideReview, approve",
            &in_review,
            Command::DecideReview(DecideReview {
                step: id(IN_PROGRESS),
                decision: Decision::Approve,
                review: None,
                reviewer: onward_core::command::Reviewer::Person,
                feedback: None,
                answers: Default::default(),
                token: None,
                session: None,
            }),
            &["user_reviewed", "plan_status_changed", "step_completed"],
        ),
        case(
            "ModifyPlan, fail_step",
            &plain,
            modify(Modification::FailStep {
                step: id(size),
                reason: None,
            }),
            &["plan_modified", "step_failed"],
        ),
        case(
            "ModifyPlan, requeue_step",
            &plain,
            modify(Modification::RequeueStep {
                step: id(IN_PROGRESS),
            }),
            &["plan_modified", "step_requeued"],
        ),
        case(
            "ModifyPlan, update_step_instructions",
            &plain,
            update_instructions(size / 2),
            modified,
        ),
        Case {
            // Ten steps across the plan, so that caches of the last step do not help.
            commands: (1..=10)
                .map(|tenth| update_instructions(size / 10 * tenth))
                .collect(),
            ..case(
                "  the same, another step each time",
                &plain,
                update_instructions(1),
                modified,
            )
        },
        case(
            "ModifyPlan, add_steps at the end",
            &smaller,
            add_steps(size, None),
            modified,
        ),
        case(
            "ModifyPlan, add_steps at the front",
            &smaller,
            add_steps(size, Some(0)),
            modified,
        ),
        case(
            "ModifyPlan, remove_step of the last",
            &plain,
            modify(Modification::RemoveStep { step: id(size) }),
            modified,
        ),
        case(
            "ModifyPlan, add_branch with a skip_to to the end",
            &plain,
            modify(Modification::AddBranch {
                branch: branch(IN_PROGRESS, ActionSpec::SkipTo(StepRef::Order(size))),
            }),
            modified,
        ),
        Case {
            now: minute(45),
            ..case(
                "HandleStalls, one step in progress",
                &plain,
                Command::HandleStalls(HandleStalls::default()),
                &["plan_stalled"],
            )
        },
        case(
            "ResumeSession",
            &plain,
            Command::ResumeSession(ResumeSession {
                session: SessionId::new("another"),
            }),
            &["session_resumed"],
        ),
    ]
}

/// Commands on all steps.
pub(crate) fn whole_list(size: u32) -> Vec<Case> {
    let plain = Rc::new(started_plan(size, |_| Vec::new(), &[]));
    let skip = ActionSpec::SkipTo(StepRef::Order(size));
    let skipping = Rc::new(started_plan(size, |_| Vec::new(), &[skip]));
    let on_working = |order| {
        if order > IN_PROGRESS {
            vec![IN_PROGRESS]
        } else {
            Vec::new()
        }
    };
    let mut exhausted = started_plan(size, on_working, &[]);
    execute(&mut exhausted, &start_next(true), minute(45));
    execute(&mut exhausted, &start_next(true), minute(90));
    let mut all_started = started_plan(size, |_| Vec::new(), &[]);
    for _ in IN_PROGRESS..size {
        execute(&mut all_started, &start_next(false), minute(0));
    }
    let case = |name, plan, command, now, events| Case {
        name,
        size,
        plan,
        commands: vec![command],
        now,
        events,
    };
    vec![
        case(
            "ModifyPlan, reorder_steps",
            plain,
            modify(Modification::ReorderSteps {
                steps: (1..=size).rev().map(id).collect(),
            }),
            minute(2),
            &["plan_modified"],
        ),
        case(
            "SubmitResult, a skip_to to the end, taken",
            skipping,
            submit(0.9),
            minute(2),
            &["step_completed", "branch_taken", "step_skipped"],
        ),
        case(
            "StartNext, failing a step that all depend on",
            Rc::new(exhausted),
            start_next(true),
            minute(135),
            &["step_failed"],
        ),
        case(
            "HandleStalls, all steps in progress, none stalled",
            Rc::new(all_started),
            Command::HandleStalls(HandleStalls::default()),
            minute(2),
            &[],
        ),
    ]
}

/// Step 1 is completed, step 2 in progress, the rest pending. The branches are after step 2.
fn started_plan(size: u32, depends_on: impl Fn(u32) -> Vec<u32>, branches: &[ActionSpec]) -> Plan {
    let steps = (1..=size).map(|order| StepSpec {
        depends_on: if order == 1 {
            Vec::new()
        } else {
            depends_on(order)
        },
        ..spec(order)
    });
    let command = CreatePlan {
        branches: branches
            .iter()
            .map(|action| branch(IN_PROGRESS, action.clone()))
            .collect(),
        ..CreatePlan::new(PlanId::from_u128(1), "Bench", "How long?", steps.collect())
    };
    let events = decide::create::decide(&command).expect("the plan is valid");
    let events = events.iter().map(|event| (event, minute(0)));
    let mut plan = Plan::replay(events).expect("decided events can be applied");
    execute(&mut plan, &submit_for(1, 0.5, None), minute(0));
    execute(&mut plan, &start_next(false), minute(0));
    plan
}

/// All but the last two are completed.
fn nearly_done(size: u32) -> Plan {
    let mut plan = started_plan(size, |_| Vec::new(), &[]);
    for order in IN_PROGRESS..=size - 2 {
        execute(&mut plan, &submit_for(order, 0.5, None), minute(0));
    }
    plan
}

fn execute(plan: &mut Plan, command: &Command, at: Timestamp) {
    let events = decide(plan, command, at).expect("the setup command is accepted");
    plan.apply_all(&events, at)
        .expect("decided events can be applied");
}

fn minute(minutes: i64) -> Timestamp {
    Timestamp::from_millis(1_785_229_200_000 + minutes * 60_000)
}

/// Scattered like random ids, so that adjacent steps are not adjacent in an index.
fn id(order: u32) -> StepId {
    StepId::from_u128(u128::from(order).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
}

fn spec(order: u32) -> StepSpec {
    StepSpec::new(id(order), StepType::Custom, "Carry out this step.")
}

fn branch(after_order: u32, action: ActionSpec) -> BranchSpec {
    BranchSpec {
        id: BranchId::from_u128(1),
        after_order,
        condition: "confidence >= 0.8".to_owned(),
        action,
    }
}

fn token() -> ClaimToken {
    ClaimToken::new("0123456789abcdef")
}

fn session() -> Option<SessionId> {
    Some(SessionId::new("bench"))
}

fn start_next(include_stalled: bool) -> Command {
    Command::StartNext(StartNext {
        token: token(),
        session: session(),
        include_stalled,
        labels: None,
    })
}

fn submit(confidence: f64) -> Command {
    submit_for(IN_PROGRESS, confidence, Some(token()))
}

/// Without a token, a step that is not claimed is claimed implicitly.
fn submit_for(order: u32, confidence: f64, token: Option<ClaimToken>) -> Command {
    Command::SubmitResult(SubmitResult {
        step: id(order),
        result: Arc::new(StepResult {
            data: Some(serde_json::json!({ "sources": 12, "verdict": "good" }).into()),
            confidence: Some(confidence),
            ..StepResult::from_summary("The result.")
        }),
        token,
        fresh_token: self::token(),
        review: ReviewId::from_u128(1),
        session: session(),
    })
}

fn report_progress() -> Command {
    Command::ReportProgress(ReportProgress {
        step: id(IN_PROGRESS),
        source: ProgressSource::Reported,
        note: Some("half done".to_owned()),
        percent: Some(50.0),
        token: Some(token()),
        session: session(),
    })
}

fn request_review() -> Command {
    Command::RequestReview(RequestReview {
        step: id(IN_PROGRESS),
        review: ReviewId::from_u128(1),
        summary: "The proposed result.".to_owned(),
        questions: vec!["Is this acceptable?".to_owned()],
        scope: onward_core::step::ReviewScope::Plan,
        options: Default::default(),
        token: Some(token()),
        session: session(),
    })
}

fn modify(modification: Modification) -> Command {
    Command::ModifyPlan(ModifyPlan {
        modification,
        rationale: None,
        resume: false,
        token: None,
        session: None,
    })
}

fn update_instructions(order: u32) -> Command {
    modify(Modification::UpdateInstructions {
        step: id(order),
        instructions: "Carry out this step differently.".to_owned(),
    })
}

fn add_steps(size: u32, insert_after: Option<u32>) -> Command {
    modify(Modification::AddSteps {
        steps: vec![spec(size + 1)],
        insert_after,
    })
}
