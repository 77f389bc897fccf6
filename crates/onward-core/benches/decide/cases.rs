//! The situations in which a command is decided, for a plan of any size.
//!
//! At every size the same thing happens: the same command, the same events. What differs is only how
//! many steps there are that the command is not about. [`whole_list`] holds the commands that are about
//! as many steps as there are; nobody should expect those to cost the same.

use std::rc::Rc;
use std::sync::Arc;

use onward_core::command::{
    ActionSpec, BranchSpec, CreatePlan, DecideReview, HandleStalls, Modification, ModifyPlan,
    ReportProgress, RequestReview, ResumeSession, StartNext, StepRef, StepSpec, SubmitResult,
};
use onward_core::event::{Decision, Sign};
use onward_core::id::{BranchId, ClaimToken, PlanId, ReviewId, SessionId, StepId};
use onward_core::step::StepResult;
use onward_core::{Command, Plan, StepType, Timestamp, decide};

/// A plan, what is asked of it, and what must come of it.
pub(crate) struct Case {
    /// What is asked, in words.
    pub(crate) name: &'static str,
    /// How many steps the plan has, as far as the comparison goes.
    pub(crate) size: u32,
    /// Shared by the cases that begin in the same situation.
    pub(crate) plan: Rc<Plan>,
    /// Asked one after the other, each on the same plan: nothing is applied.
    pub(crate) commands: Vec<Command>,
    pub(crate) now: Timestamp,
    /// The names of the events, without repetition.
    pub(crate) events: &'static [&'static str],
}

/// The step in progress in [`under_way`].
const WORKING: u32 = 2;

/// Commands that are about one step, or a few.
pub(crate) fn few_steps(size: u32) -> Vec<Case> {
    let plain = Rc::new(under_way(size, |_| Vec::new(), &[]));
    let in_review = {
        let mut plan = under_way(size, |_| Vec::new(), &[]);
        act(&mut plan, &request_review(), minute(1));
        Rc::new(plan)
    };
    let nearly_done = Rc::new(nearly_done(size));
    let chain = Rc::new(under_way(size, |order| vec![order - 1], &[]));
    let waiting = |order| {
        if order > WORKING {
            vec![WORKING]
        } else {
            Vec::new()
        }
    };
    let awaited = Rc::new(under_way(size, waiting, &[]));
    let with_branch = |size, action| Rc::new(under_way(size, |_| Vec::new(), &[action]));
    // A plan may hold 10,000 steps and no more, so what adds one begins with one less.
    let smaller = Rc::new(under_way(size - 1, |_| Vec::new(), &[]));
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
            "StartNext, all others wait for a step",
            &awaited,
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
            "SubmitResult, the next step waits for it",
            &chain,
            submit(0.5),
            completed,
        ),
        case(
            "SubmitResult, all others wait for it",
            &awaited,
            submit(0.5),
            completed,
        ),
        case(
            "SubmitResult, a branch that is false",
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
            "SubmitResult, an add_steps that is taken",
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
            &["user_reviewed"],
        ),
        case(
            "DecideReview, approve",
            &in_review,
            Command::DecideReview(DecideReview {
                step: id(WORKING),
                decision: Decision::Approve,
                feedback: None,
            }),
            &["user_reviewed", "step_completed"],
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
            modify(Modification::RequeueStep { step: id(WORKING) }),
            &["plan_modified", "step_requeued"],
        ),
        case(
            "ModifyPlan, update_step_instructions",
            &plain,
            update_instructions(size / 2),
            modified,
        ),
        Case {
            // Ten of them, spread over the plan, so that none is found where the last one was.
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
                branch: branch(WORKING, ActionSpec::SkipTo(StepRef::Order(size))),
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

/// Commands that are about as many steps as there are.
pub(crate) fn whole_list(size: u32) -> Vec<Case> {
    let plain = Rc::new(under_way(size, |_| Vec::new(), &[]));
    let skip = ActionSpec::SkipTo(StepRef::Order(size));
    let skipping = Rc::new(under_way(size, |_| Vec::new(), &[skip]));
    let waiting = |order| {
        if order > WORKING {
            vec![WORKING]
        } else {
            Vec::new()
        }
    };
    let mut used_up = under_way(size, waiting, &[]);
    act(&mut used_up, &start_next(true), minute(45));
    act(&mut used_up, &start_next(true), minute(90));
    let mut busy = under_way(size, |_| Vec::new(), &[]);
    for _ in WORKING..size {
        act(&mut busy, &start_next(false), minute(0));
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
            "StartNext, giving up a step that all wait for",
            Rc::new(used_up),
            start_next(true),
            minute(135),
            &["step_failed", "step_started"],
        ),
        case(
            "HandleStalls, all steps in progress and alive",
            Rc::new(busy),
            Command::HandleStalls(HandleStalls::default()),
            minute(2),
            &[],
        ),
    ]
}

/// Step 1 is completed, step 2 in progress, the rest pending. The branches stand after step 2.
fn under_way(size: u32, depends_on: impl Fn(u32) -> Vec<u32>, branches: &[ActionSpec]) -> Plan {
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
            .map(|action| branch(WORKING, action.clone()))
            .collect(),
        ..CreatePlan::new(PlanId::from_u128(1), "Bench", "How long?", steps.collect())
    };
    let events = decide::create::decide(&command).expect("the plan can be made");
    let trail = events.iter().map(|event| (event, minute(0)));
    let mut plan = Plan::replay(trail).expect("what was decided can be applied");
    act(&mut plan, &submit_for(1, 0.5), minute(0));
    act(&mut plan, &start_next(false), minute(0));
    plan
}

/// All but the last two are completed.
fn nearly_done(size: u32) -> Plan {
    let mut plan = under_way(size, |_| Vec::new(), &[]);
    for order in WORKING..=size - 2 {
        act(&mut plan, &submit_for(order, 0.5), minute(0));
    }
    plan
}

fn act(plan: &mut Plan, command: &Command, at: Timestamp) {
    let events = decide(plan, command, at).expect("the situation can be brought about");
    plan.apply_all(&events, at)
        .expect("what was decided can be applied");
}

fn minute(minutes: i64) -> Timestamp {
    Timestamp::from_millis(1_785_229_200_000 + minutes * 60_000)
}

/// Scattered as real ids are, so that neighbours in the plan are none in an index.
fn id(order: u32) -> StepId {
    StepId::from_u128(u128::from(order).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
}

fn spec(order: u32) -> StepSpec {
    StepSpec::new(id(order), StepType::Custom, "Do what this step is about.")
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
    })
}

fn submit(confidence: f64) -> Command {
    submit_for(WORKING, confidence)
}

fn submit_for(order: u32, confidence: f64) -> Command {
    Command::SubmitResult(SubmitResult {
        step: id(order),
        result: Arc::new(StepResult {
            data: Some(serde_json::json!({ "sources": 12, "verdict": "good" })),
            confidence: Some(confidence),
            ..StepResult::of_summary("What came out of it.")
        }),
        token: Some(token()),
        fresh_token: token(),
        session: session(),
    })
}

fn report_progress() -> Command {
    Command::ReportProgress(ReportProgress {
        step: id(WORKING),
        sign: Sign::Reported,
        note: Some("half of it is done".to_owned()),
        percent: Some(50.0),
        token: Some(token()),
        session: session(),
    })
}

fn request_review() -> Command {
    Command::RequestReview(RequestReview {
        step: id(WORKING),
        review: ReviewId::from_u128(1),
        summary: "This is what it would be.".to_owned(),
        questions: vec!["May it stand like this?".to_owned()],
        token: Some(token()),
        session: session(),
    })
}

fn modify(modification: Modification) -> Command {
    Command::ModifyPlan(ModifyPlan {
        modification,
        rationale: None,
        resume: false,
    })
}

fn update_instructions(order: u32) -> Command {
    modify(Modification::UpdateInstructions {
        step: id(order),
        instructions: "Do it in another way.".to_owned(),
    })
}

fn add_steps(size: u32, insert_after: Option<u32>) -> Command {
    modify(Modification::AddSteps {
        steps: vec![spec(size + 1)],
        insert_after,
    })
}
