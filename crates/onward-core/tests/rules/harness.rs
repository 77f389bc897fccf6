//! Test harness: one plan in memory with a manual clock and the audit trail, and shortcuts for
//! common commands. Ids are sequential: the step created at order 3 has the id 3.

use std::sync::Arc;
use std::time::Duration;

use onward_core::command::{
    AbandonPlan, ActionSpec, BranchSpec, CreatePlan, DecideReview, HandleStalls, Modification,
    ModifyPlan, ReportProgress, RequestReview, ResumeSession, Reviewer, StartNext, StepSpec,
    SubmitResult,
};
use onward_core::event::{Decision, ProgressSource};
use onward_core::id::{BranchId, ClaimToken, PlanId, ReviewId, SessionId, StepId};
use onward_core::plan::Origin;
use onward_core::step::{Claim, ReviewScope, StepResult};
use onward_core::{
    Code, Command, Event, Plan, PlanStatus, Refusal, StepStatus, StepType, Timestamp, decide,
};

pub(crate) const MINUTE: Duration = Duration::from_secs(60);

pub(crate) struct Harness {
    pub(crate) plan: Plan,
    pub(crate) audit_trail: Vec<(Event, Timestamp)>,
    pub(crate) now: Timestamp,
    tokens: u32,
}

/// Creates a plan with `n` steps and no other settings.
pub(crate) fn create_plan(n: u32) -> CreatePlan {
    CreatePlan::new(
        PlanId::from_u128(1),
        "test plan",
        "test question",
        (1..=n).map(spec).collect(),
    )
}

/// Captures a plan with `n` steps.
pub(crate) fn captured_plan(n: u32) -> CreatePlan {
    CreatePlan {
        origin: Origin::Agent,
        ..create_plan(n)
    }
}

/// A step with this id.
pub(crate) fn spec(n: u32) -> StepSpec {
    StepSpec::new(id(n), StepType::Custom, format!("do {n}"))
}

pub(crate) fn id(n: u32) -> StepId {
    StepId::from_u128(u128::from(n))
}

pub(crate) fn session(name: &str) -> SessionId {
    SessionId::new(name)
}

/// A branch after the step at order `after`, with the id `n`.
pub(crate) fn branch(n: u32, after: u32, condition: &str, action: ActionSpec) -> BranchSpec {
    BranchSpec {
        id: BranchId::from_u128(u128::from(n)),
        after_order: after,
        condition: condition.to_owned(),
        action,
    }
}

pub(crate) fn result(summary: &str) -> Arc<StepResult> {
    Arc::new(StepResult::from_summary(summary))
}

impl Harness {
    /// A new plan with `n` steps.
    pub(crate) fn with_steps(n: u32) -> Self {
        Self::new(create_plan(n))
    }

    /// A new plan from this command.
    pub(crate) fn new(command: CreatePlan) -> Self {
        let now = Timestamp::from_millis(1_800_000_000_000);
        let events = onward_core::decide::create::decide(&command).expect("valid plan");
        let audit_trail: Vec<(Event, Timestamp)> =
            events.into_iter().map(|event| (event, now)).collect();
        let plan = Plan::replay(audit_trail.iter().map(|(event, at)| (event, *at)))
            .expect("valid audit trail");
        Self {
            plan,
            audit_trail,
            now,
            tokens: 0,
        }
    }

    pub(crate) fn advance(&mut self, span: Duration) {
        self.now = self.now.checked_add(span).expect("timestamp in range");
    }

    pub(crate) fn execute(&mut self, command: &Command) -> Result<Vec<Event>, Refusal> {
        let events = decide(&self.plan, command, self.now)?;
        self.plan
            .apply_all(&events, self.now)
            .expect("decided events apply");
        self.audit_trail
            .extend(events.iter().map(|event| (event.clone(), self.now)));
        let replayed = Plan::replay(self.audit_trail.iter().map(|(event, at)| (event, *at)));
        assert_eq!(
            replayed.as_ref(),
            Ok(&self.plan),
            "replay gives the same plan"
        );
        Ok(events)
    }

    /// Executes an accepted command and returns the names of its events.
    pub(crate) fn run(&mut self, command: &Command) -> Vec<&'static str> {
        let events = self
            .execute(command)
            .unwrap_or_else(|refusal| panic!("rejected: {refusal}"));
        events.iter().map(Event::name).collect()
    }

    /// Executes a rejected command and checks that nothing changes.
    pub(crate) fn expect_rejection(&mut self, command: &Command) -> Refusal {
        let before = self.plan.clone();
        let refusal = self.execute(command).expect_err("command is rejected");
        assert_eq!(self.plan, before);
        refusal
    }

    /// The code of a rejected command.
    pub(crate) fn rejection_code(&mut self, command: &Command) -> Code {
        self.expect_rejection(command).code()
    }

    pub(crate) fn next_token(&mut self) -> ClaimToken {
        self.tokens += 1;
        ClaimToken::new(format!("token {}", self.tokens))
    }

    pub(crate) fn start_next(&mut self, session: Option<&str>, include_stalled: bool) -> Command {
        Command::StartNext(StartNext {
            token: self.next_token(),
            session: session.map(SessionId::new),
            include_stalled,
            labels: None,
        })
    }

    /// Claims the next step. Returns its order and the claim.
    pub(crate) fn claim_next(&mut self) -> Option<(u32, Claim)> {
        self.claim_next_for(None, false)
    }

    pub(crate) fn claim_next_for(
        &mut self,
        session: Option<&str>,
        include_stalled: bool,
    ) -> Option<(u32, Claim)> {
        let command = self.start_next(session, include_stalled);
        let events = self.execute(&command).expect("claiming is never rejected");
        let step = onward_core::decide::start_next::assigned_step(&events)?;
        let step = self.plan.step(step)?;
        Some((step.order, step.claim()?.clone()))
    }

    pub(crate) fn submit(&self, step: u32, token: Option<&ClaimToken>) -> Command {
        self.submit_result(step, token, &result("test result"))
    }

    pub(crate) fn submit_result(
        &self,
        step: u32,
        token: Option<&ClaimToken>,
        result: &Arc<StepResult>,
    ) -> Command {
        Command::SubmitResult(SubmitResult {
            step: id(step),
            result: Arc::clone(result),
            token: token.cloned(),
            fresh_token: ClaimToken::new(format!("fresh token {step}")),
            review: ReviewId::from_u128(u128::from(step) + 100),
            session: None,
        })
    }

    pub(crate) fn report(&self, step: u32, token: Option<&ClaimToken>) -> Command {
        self.report_activity(step, ProgressSource::Reported, token)
    }

    pub(crate) fn report_activity(
        &self,
        step: u32,
        source: ProgressSource,
        token: Option<&ClaimToken>,
    ) -> Command {
        Command::ReportProgress(ReportProgress {
            step: id(step),
            source,
            note: None,
            percent: None,
            token: token.cloned(),
            session: None,
        })
    }

    pub(crate) fn request_review(&self, step: u32, token: Option<&ClaimToken>) -> Command {
        Command::RequestReview(RequestReview {
            step: id(step),
            review: ReviewId::from_u128(u128::from(step)),
            summary: format!("summary of step {step}"),
            questions: vec!["test question".to_owned()],
            scope: ReviewScope::Plan,
            options: Default::default(),
            token: token.cloned(),
            session: None,
        })
    }

    /// A review request of scope `step`.
    pub(crate) fn request_step_review(&self, step: u32, token: Option<&ClaimToken>) -> Command {
        match self.request_review(step, token) {
            Command::RequestReview(request) => Command::RequestReview(RequestReview {
                scope: ReviewScope::Step,
                ..request
            }),
            other => other,
        }
    }

    pub(crate) fn status(&self) -> PlanStatus {
        self.plan.head().status()
    }

    /// The statuses of the steps, sorted by order.
    pub(crate) fn step_statuses(&self) -> Vec<StepStatus> {
        self.plan
            .steps()
            .iter()
            .map(onward_core::Step::status)
            .collect()
    }

    /// The ids of the steps, sorted by order.
    pub(crate) fn step_ids(&self) -> Vec<StepId> {
        self.plan
            .steps()
            .iter()
            .map(onward_core::Step::id)
            .collect()
    }

    /// Claims the next step.
    pub(crate) fn started(mut self) -> Self {
        self.claim_next().expect("a step can be claimed");
        self
    }

    /// Claims the next step and moves the plan to `awaiting_review` with step 1.
    pub(crate) fn in_review(self) -> Self {
        let mut harness = self.started();
        let command = harness.request_review(1, None);
        harness.run(&command);
        harness
    }

    /// Claims step 1 and moves the plan to `stalled`.
    pub(crate) fn stalled(self) -> Self {
        let mut harness = self.started();
        harness.advance(31 * MINUTE);
        assert_eq!(harness.run(&sweep()), ["plan_stalled"]);
        harness
    }

    /// Moves the plan to `failed`.
    pub(crate) fn abandoned(mut self) -> Self {
        self.run(&abandon());
        self
    }
}

pub(crate) fn sweep() -> Command {
    Command::HandleStalls(HandleStalls::default())
}

pub(crate) fn abandon() -> Command {
    Command::AbandonPlan(AbandonPlan {
        reason: Some("test reason".to_owned()),
    })
}

pub(crate) fn decision(step: u32, decision: Decision, feedback: Option<&str>) -> Command {
    Command::DecideReview(DecideReview {
        step: id(step),
        decision,
        review: None,
        reviewer: Reviewer::Person,
        feedback: feedback.map(str::to_owned),
        answers: Default::default(),
        token: None,
        session: None,
    })
}

pub(crate) fn modify(modification: Modification) -> Command {
    Command::ModifyPlan(ModifyPlan::new(modification))
}

/// The decision or modification, with a claim token.
pub(crate) fn with_token(command: Command, token: Option<&ClaimToken>) -> Command {
    let token = token.cloned();
    match command {
        Command::DecideReview(command) => Command::from(DecideReview { token, ..command }),
        Command::ModifyPlan(command) => Command::from(ModifyPlan { token, ..command }),
        other => panic!("no token in {other:?}"),
    }
}

pub(crate) fn resume_session(name: &str) -> Command {
    Command::ResumeSession(ResumeSession {
        session: session(name),
    })
}
