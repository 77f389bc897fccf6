//! What tests do all the time, in few words. Whatever must go well here fails the test where it does
//! not.

use std::sync::Arc;

use onward_core::command::{ActionSpec, BranchSpec, CreatePlan, Modification, StepSpec};
use onward_core::id::BranchId;
use onward_core::step::{StepResult, StepState};
use onward_core::{Code, PlanId, PlanStatus, Refusal, StepId, StepType};
use onward_engine::modify::Modified;
use onward_engine::next::{Handed, Next};
use onward_engine::status::Status;
use onward_engine::step::{Asked, Question};
use onward_engine::submit::{Submission, Submitted};
use onward_engine::{Caller, Engine, Error};

use crate::desk::Desk;

/// A plan that was made.
#[derive(Debug, Clone)]
pub(crate) struct Made {
    pub(crate) id: PlanId,
    pub(crate) steps: Vec<StepId>,
    pub(crate) branches: Vec<BranchId>,
}

impl Desk {
    /// Steps that are to do `1`, `2`, ….
    pub(crate) fn steps(&self, count: u32) -> Vec<StepSpec> {
        (1..=count)
            .map(|number| self.step(&number.to_string()))
            .collect()
    }

    pub(crate) fn step(&self, instructions: &str) -> StepSpec {
        StepSpec::new(self.engine.fresh_step(), StepType::Search, instructions)
    }

    /// A plan with so many steps, not yet made.
    pub(crate) fn draft(&self, steps: u32) -> CreatePlan {
        let id = self.engine.fresh_plan();
        CreatePlan::new(id, "Tides", "Why twice a day?", self.steps(steps))
    }

    pub(crate) fn branch(&self, after: u32, condition: &str, action: ActionSpec) -> BranchSpec {
        BranchSpec {
            id: self.engine.fresh_branch(),
            after_order: after,
            condition: condition.to_owned(),
            action,
        }
    }

    pub(crate) async fn create(&self, draft: CreatePlan) -> Made {
        self.create_for(&self.me, draft).await
    }

    pub(crate) async fn create_for(&self, caller: &Caller, draft: CreatePlan) -> Made {
        let created = self.engine.create_plan(caller, draft, None).await;
        let created = created.expect("the plan can be made").created;
        Made {
            id: created.plan,
            steps: created.steps.iter().map(|step| step.id).collect(),
            branches: created.branches.iter().map(|branch| branch.id).collect(),
        }
    }

    /// A plan with so many steps.
    pub(crate) async fn plan(&self, steps: u32) -> Made {
        self.create(self.draft(steps)).await
    }

    /// A plan with so many steps and these branches.
    pub(crate) async fn branching(&self, steps: u32, branches: Vec<BranchSpec>) -> Made {
        let mut draft = self.draft(steps);
        draft.branches = branches;
        self.create(draft).await
    }

    pub(crate) async fn ask(&self, plan: PlanId) -> Next {
        let next = self.engine.next_step(&self.me, plan, None, false).await;
        next.expect("a next step can be asked for")
    }

    /// Takes the next step on.
    pub(crate) async fn take(&self, plan: PlanId) -> Handed {
        handed(self.ask(plan).await)
    }

    /// Takes a step on, or over from somebody who is silent.
    pub(crate) async fn take_over(&self, plan: PlanId) -> Handed {
        let next = self.engine.next_step(&self.me, plan, None, true).await;
        handed(next.expect("a next step can be asked for"))
    }

    pub(crate) async fn submit(&self, submission: Submission) -> Result<Submitted, Error> {
        self.engine.submit(&self.me, submission).await
    }

    /// Hands a result in for a step that was taken on.
    pub(crate) async fn hand_in(&self, step: &Handed, words: &str) -> Submitted {
        self.submit(result(step, words))
            .await
            .expect("the result is accepted")
    }

    /// Asks a person about a step that was taken on.
    pub(crate) async fn ask_a_person(&self, step: &Handed) -> Result<Asked, Error> {
        let question = Question {
            step: step.step,
            summary: "so?".to_owned(),
            questions: Vec::new(),
            token: None,
            session: None,
        };
        self.engine.request_review(&self.me, question).await
    }

    /// Takes so many steps on and hands in a result for each.
    pub(crate) async fn work_off(&self, plan: PlanId, steps: usize) {
        for _ in 0..steps {
            let step = self.take(plan).await;
            self.hand_in(&step, "done").await;
        }
    }

    pub(crate) async fn modify(
        &self,
        plan: PlanId,
        modification: Modification,
    ) -> Result<Modified, Error> {
        self.engine
            .modify_plan(&self.me, plan, modification, None, false)
            .await
    }

    pub(crate) async fn status(&self, plan: PlanId) -> Status {
        let status = self.engine.status(&self.me, plan, None).await;
        status.expect("its status can be read")
    }

    pub(crate) async fn plan_status(&self, plan: PlanId) -> PlanStatus {
        self.status(plan).await.sheet.head.status()
    }

    /// The status of each step, in order. Orders are gapless, whoever looks.
    pub(crate) async fn statuses(&self, plan: PlanId) -> Vec<&'static str> {
        let page = self
            .engine
            .list_steps(&self.me, plan, None, 0, 20_000)
            .await;
        let steps = page.expect("steps can be listed").steps;
        for (step, order) in steps.iter().zip(1u32..) {
            assert_eq!(step.order, order, "orders are gapless");
        }
        steps.iter().map(|step| step.status.as_str()).collect()
    }

    /// The result of a plan's step, as its row holds it.
    pub(crate) async fn result_of(&self, plan: PlanId, place: usize) -> Arc<StepResult> {
        let whole = self.engine.whole_plan(&self.me, plan).await;
        let state = whole.expect("the plan can be read").plan.steps[place]
            .state
            .clone();
        let StepState::Completed { result, .. } = state else {
            panic!("the step has no result: {state:?}")
        };
        result
    }

    /// The ids of the steps, in order.
    pub(crate) async fn order(&self, plan: PlanId) -> Vec<StepId> {
        self.statuses(plan).await;
        let page = self
            .engine
            .list_steps(&self.me, plan, None, 0, 20_000)
            .await;
        let steps = page.expect("steps can be listed").steps;
        steps.iter().map(|step| step.id).collect()
    }

    /// The trail, as words: `step_requeued stalled`.
    pub(crate) async fn trail(&self, plan: PlanId) -> Vec<String> {
        let trail = self.engine.trail(&self.me, plan, 0, 100_000).await;
        let word = |entry: &onward_engine::trail::Shown| match entry.entry.event.action() {
            Some(action) => format!("{} {action}", entry.name),
            None => entry.name.to_owned(),
        };
        trail
            .expect("the trail can be read")
            .iter()
            .map(word)
            .collect()
    }

    /// The trail behind the first so many entries.
    pub(crate) async fn trail_behind(&self, plan: PlanId, entries: usize) -> Vec<String> {
        self.trail(plan).await.split_off(entries)
    }
}

/// The step that was handed out.
pub(crate) fn handed(next: Next) -> Handed {
    match next {
        Next::Started(handed) => *handed,
        other @ (Next::Complete(_)
        | Next::Failed { .. }
        | Next::AwaitingReview { .. }
        | Next::NoPendingSteps { .. }) => panic!("no step was handed out: {other:?}"),
    }
}

/// A result for a step, under its claim.
pub(crate) fn result(step: &Handed, words: &str) -> Submission {
    Submission {
        token: Some(step.token.clone()),
        ..result_without_token(step.step, words)
    }
}

pub(crate) fn result_without_token(step: StepId, words: &str) -> Submission {
    Submission {
        step,
        result: StepResult::of_summary(words),
        token: None,
        session: None,
        claim_next: false,
    }
}

/// The error of a call that must not go well.
pub(crate) fn error<T: std::fmt::Debug>(answer: Result<T, Error>) -> Error {
    answer.expect_err("it must be refused")
}

/// The word for why a call was refused.
pub(crate) fn code<T: std::fmt::Debug>(answer: Result<T, Error>) -> &'static str {
    Code::as_str(error(answer).code())
}

/// The rule that forbids a call.
pub(crate) fn refusal<T: std::fmt::Debug>(answer: Result<T, Error>) -> Refusal {
    let why = error(answer);
    let Error::Refused { refusal, .. } = why else {
        panic!("refused by no rule: {why}")
    };
    refusal
}

/// The plan as a document, without the moment at which that was made.
pub(crate) async fn document(engine: &Engine, caller: &Caller, plan: PlanId) -> serde_json::Value {
    let exported = engine.export(caller, plan).await;
    let mut document = exported.expect("a plan can be exported");
    let object = document.as_object_mut().expect("a document is an object");
    object
        .remove("exportedAt")
        .expect("it says when it was made");
    document
}
