//! Shorthand for the engine calls that most tests make. A call that is expected to succeed panics
//! on an error.

use std::sync::Arc;

use onward_core::command::{
    ActionSpec, BranchSpec, CreatePlan, Modification, ModifyPlan, StepSpec,
};
use onward_core::id::BranchId;
use onward_core::step::{StepResult, StepState};
use onward_core::{Code, PlanId, PlanStatus, Refusal, StepId, StepType};
use onward_engine::modify::Modified;
use onward_engine::next_step::{AssignedStep, NextStep};
use onward_engine::status::Status;
use onward_engine::step::{OpenedReview, ReviewRequest};
use onward_engine::submit::{Submission, SubmitResponse};
use onward_engine::{Caller, Engine, Error};

use crate::harness::Harness;

/// The ids of a created plan.
#[derive(Debug, Clone)]
pub(crate) struct CreatedPlan {
    pub(crate) id: PlanId,
    pub(crate) steps: Vec<StepId>,
    pub(crate) branches: Vec<BranchId>,
}

impl Harness {
    /// Steps with the instructions `1`, `2`, and so on.
    pub(crate) fn steps(&self, count: u32) -> Vec<StepSpec> {
        (1..=count)
            .map(|number| self.step(&number.to_string()))
            .collect()
    }

    pub(crate) fn step(&self, instructions: &str) -> StepSpec {
        StepSpec::new(self.engine.new_step_id(), StepType::Search, instructions)
    }

    /// The command that creates a plan with this many steps.
    pub(crate) fn draft(&self, steps: u32) -> CreatePlan {
        let id = self.engine.new_plan_id();
        CreatePlan::new(id, "Tides", "Why twice a day?", self.steps(steps))
    }

    pub(crate) fn branch(&self, after: u32, condition: &str, action: ActionSpec) -> BranchSpec {
        BranchSpec {
            id: self.engine.new_branch_id(),
            after_order: after,
            condition: condition.to_owned(),
            action,
        }
    }

    pub(crate) async fn create(&self, draft: CreatePlan) -> CreatedPlan {
        self.create_for(&self.me, draft).await
    }

    pub(crate) async fn create_for(&self, caller: &Caller, draft: CreatePlan) -> CreatedPlan {
        let created = self.engine.create_plan(caller, draft, None).await;
        let created = created.expect("plan was created").created;
        CreatedPlan {
            id: created.plan,
            steps: created.steps.iter().map(|step| step.id).collect(),
            branches: created.branches.iter().map(|branch| branch.id).collect(),
        }
    }

    /// Creates a plan with this many steps.
    pub(crate) async fn plan(&self, steps: u32) -> CreatedPlan {
        self.create(self.draft(steps)).await
    }

    pub(crate) async fn plan_with_branches(
        &self,
        steps: u32,
        branches: Vec<BranchSpec>,
    ) -> CreatedPlan {
        let mut draft = self.draft(steps);
        draft.branches = branches;
        self.create(draft).await
    }

    pub(crate) async fn next_step(&self, plan: PlanId) -> NextStep {
        let next = self.engine.next_step(&self.me, plan, None, false).await;
        next.expect("next step was requested")
    }

    /// Claims the next step.
    pub(crate) async fn claim(&self, plan: PlanId) -> AssignedStep {
        claimed_step(self.next_step(plan).await)
    }

    /// Claims a pending step or takes over a stalled one.
    pub(crate) async fn take_over(&self, plan: PlanId) -> AssignedStep {
        let next = self.engine.next_step(&self.me, plan, None, true).await;
        claimed_step(next.expect("next step was requested"))
    }

    pub(crate) async fn submit(&self, submission: Submission) -> Result<SubmitResponse, Error> {
        self.engine.submit(&self.me, submission).await
    }

    /// Submits a result for a claimed step.
    pub(crate) async fn complete(&self, step: &AssignedStep, summary: &str) -> SubmitResponse {
        self.submit(submission_for(step, summary))
            .await
            .expect("result was accepted")
    }

    /// Requests a review of a claimed step.
    pub(crate) async fn request_review(&self, step: &AssignedStep) -> Result<OpenedReview, Error> {
        let question = ReviewRequest {
            step: step.step,
            summary: "so?".to_owned(),
            questions: Vec::new(),
            scope: onward_core::step::ReviewScope::Plan,
            options: Default::default(),
            token: None,
            session: None,
        };
        self.engine.request_review(&self.me, question).await
    }

    /// Claims and completes this many steps.
    pub(crate) async fn complete_steps(&self, plan: PlanId, steps: usize) {
        for _ in 0..steps {
            let step = self.claim(plan).await;
            self.complete(&step, "done").await;
        }
    }

    pub(crate) async fn modify(
        &self,
        plan: PlanId,
        modification: Modification,
    ) -> Result<Modified, Error> {
        self.engine
            .modify_plan(&self.me, plan, ModifyPlan::new(modification))
            .await
    }

    pub(crate) async fn status(&self, plan: PlanId) -> Status {
        let status = self.engine.status(&self.me, plan, None).await;
        status.expect("plan status was read")
    }

    pub(crate) async fn plan_status(&self, plan: PlanId) -> PlanStatus {
        self.status(plan).await.sheet.head.status()
    }

    /// The status of each step, in order. Also asserts that the orders are gapless.
    pub(crate) async fn step_statuses(&self, plan: PlanId) -> Vec<&'static str> {
        let page = self
            .engine
            .list_steps(&self.me, plan, None, 0, 20_000)
            .await;
        let steps = page.expect("steps were listed").steps;
        for (step, order) in steps.iter().zip(1u32..) {
            assert_eq!(step.order, order, "step orders have a gap");
        }
        steps.iter().map(|step| step.status.as_str()).collect()
    }

    /// The stored result of a step, by its index in the plan.
    pub(crate) async fn step_result(&self, plan: PlanId, index: usize) -> Arc<StepResult> {
        let whole = self.engine.full_plan(&self.me, plan).await;
        let state = whole.expect("plan was read").plan.steps[index]
            .state
            .clone();
        let StepState::Completed { result, .. } = state else {
            panic!("step has no result: {state:?}")
        };
        result
    }

    /// The ids of the steps, in order.
    pub(crate) async fn step_ids(&self, plan: PlanId) -> Vec<StepId> {
        self.step_statuses(plan).await;
        let page = self
            .engine
            .list_steps(&self.me, plan, None, 0, 20_000)
            .await;
        let steps = page.expect("steps were listed").steps;
        steps.iter().map(|step| step.id).collect()
    }

    /// The audit trail as event names and actions, for example `step_requeued stalled`.
    pub(crate) async fn audit_trail(&self, plan: PlanId) -> Vec<String> {
        let events = self.engine.audit_trail(&self.me, plan, 0, 100_000).await;
        let describe = |entry: &onward_engine::audit::AuditEntry| match entry.entry.event.action() {
            Some(action) => format!("{} {action}", entry.name),
            None => entry.name.to_owned(),
        };
        events
            .expect("audit trail was read")
            .iter()
            .map(describe)
            .collect()
    }

    /// The audit trail without its first `entries` events.
    pub(crate) async fn audit_trail_after(&self, plan: PlanId, entries: usize) -> Vec<String> {
        self.audit_trail(plan).await.split_off(entries)
    }
}

/// The step of a `Started` response.
pub(crate) fn claimed_step(next: NextStep) -> AssignedStep {
    match next {
        NextStep::Started(step) => *step,
        other @ (NextStep::Complete(_)
        | NextStep::Failed { .. }
        | NextStep::AwaitingReview { .. }
        | NextStep::BudgetExhausted { .. }
        | NextStep::NoPendingSteps { .. }) => panic!("no step was claimed: {other:?}"),
    }
}

/// A result for a claimed step, with its claim token.
pub(crate) fn submission_for(step: &AssignedStep, summary: &str) -> Submission {
    Submission {
        token: Some(step.token.clone()),
        ..submission_without_token(step.step, summary)
    }
}

pub(crate) fn submission_without_token(step: StepId, summary: &str) -> Submission {
    Submission {
        step,
        result: StepResult::from_summary(summary),
        token: None,
        session: None,
        claim_next: false,
    }
}

/// The error of a call that must fail.
pub(crate) fn error<T: std::fmt::Debug>(result: Result<T, Error>) -> Error {
    result.expect_err("call must be rejected")
}

/// The error code of a call that must fail.
pub(crate) fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> &'static str {
    Code::as_str(error(result).code())
}

/// The refusal of a call that a rule must reject.
pub(crate) fn refusal<T: std::fmt::Debug>(result: Result<T, Error>) -> Refusal {
    let err = error(result);
    let Error::Rejected { refusal, .. } = err else {
        panic!("not rejected by a rule: {err}")
    };
    refusal
}

/// The path of the first issue of a call that must be rejected with `invalid_input`.
pub(crate) fn invalid_path<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    let refusal = refusal(result);
    let Refusal::InvalidInput(mut issues) = refusal else {
        panic!("rejected for another reason: {refusal}")
    };
    issues.remove(0).path
}

/// Exports, deletes and imports a plan, which does not change it.
pub(crate) async fn assert_reimported(harness: &Harness, plan: PlanId) {
    let (engine, me) = (&harness.engine, &harness.me);
    let before = document(engine, me, plan).await;
    engine.delete_plan(me, plan).await.unwrap();
    engine.import(me, &before).await.unwrap();
    assert_eq!(document(engine, me, plan).await, before);
}

/// The exported plan without `exportedAt`.
pub(crate) async fn document(engine: &Engine, caller: &Caller, plan: PlanId) -> serde_json::Value {
    let exported = engine.export(caller, plan).await;
    let mut document = exported.expect("plan was exported");
    let object = document.as_object_mut().expect("document is an object");
    object.remove("exportedAt").expect("`exportedAt` is set");
    document
}
