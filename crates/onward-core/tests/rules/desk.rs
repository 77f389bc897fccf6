//! A desk with one plan on it: a clock that the test sets, the trail so far, and short words for what
//! agents and people do. Ids count up: step 3 of a plan has the id 3.

use std::sync::Arc;
use std::time::Duration;

use onward_core::command::{
    AbandonPlan, ActionSpec, BranchSpec, CreatePlan, DecideReview, HandleStalls, Modification,
    ModifyPlan, ReportProgress, RequestReview, ResumeSession, StartNext, StepSpec, SubmitResult,
};
use onward_core::event::{Decision, Sign};
use onward_core::id::{BranchId, ClaimToken, PlanId, ReviewId, SessionId, StepId};
use onward_core::step::{Claim, StepResult};
use onward_core::{
    Code, Command, Event, Plan, PlanStatus, Refusal, StepStatus, StepType, Timestamp, decide,
};

pub(crate) const MINUTE: Duration = Duration::from_secs(60);

pub(crate) struct Desk {
    pub(crate) plan: Plan,
    pub(crate) trail: Vec<(Event, Timestamp)>,
    pub(crate) now: Timestamp,
    fresh: u32,
}

/// A plan of `n` steps with nothing said about them.
pub(crate) fn plan_of(n: u32) -> CreatePlan {
    CreatePlan::new(
        PlanId::from_u128(1),
        "a plan",
        "what is it?",
        (1..=n).map(spec).collect(),
    )
}

/// The step with this number.
pub(crate) fn spec(n: u32) -> StepSpec {
    StepSpec::new(id(n), StepType::Custom, format!("do {n}"))
}

pub(crate) fn id(n: u32) -> StepId {
    StepId::from_u128(u128::from(n))
}

pub(crate) fn session(name: &str) -> SessionId {
    SessionId::new(name)
}

/// A branch after a step; the number is its id.
pub(crate) fn branch(n: u32, after: u32, condition: &str, action: ActionSpec) -> BranchSpec {
    BranchSpec {
        id: BranchId::from_u128(u128::from(n)),
        after_order: after,
        condition: condition.to_owned(),
        action,
    }
}

pub(crate) fn result(summary: &str) -> Arc<StepResult> {
    Arc::new(StepResult::of_summary(summary))
}

impl Desk {
    /// A plan of `n` steps, just made.
    pub(crate) fn with(n: u32) -> Self {
        Self::of(plan_of(n))
    }

    /// This plan, just made.
    pub(crate) fn of(command: CreatePlan) -> Self {
        let now = Timestamp::from_millis(1_800_000_000_000);
        let events = onward_core::decide::create::decide(&command).expect("the plan can be");
        let trail: Vec<(Event, Timestamp)> = events.into_iter().map(|event| (event, now)).collect();
        let plan = Plan::replay(trail.iter().map(|(event, at)| (event, *at))).expect("it begins");
        Self {
            plan,
            trail,
            now,
            fresh: 0,
        }
    }

    pub(crate) fn wait(&mut self, span: Duration) {
        self.now = self.now.checked_add(span).expect("within time");
    }

    pub(crate) fn try_to(&mut self, command: &Command) -> Result<Vec<Event>, Refusal> {
        let events = decide(&self.plan, command, self.now)?;
        self.plan
            .apply_all(&events, self.now)
            .expect("what was decided fits");
        self.trail
            .extend(events.iter().map(|event| (event.clone(), self.now)));
        let again = Plan::replay(self.trail.iter().map(|(event, at)| (event, *at)));
        assert_eq!(again.as_ref(), Ok(&self.plan), "the trail is the plan");
        Ok(events)
    }

    /// Does it, and names the events.
    pub(crate) fn does(&mut self, command: &Command) -> Vec<&'static str> {
        let events = self
            .try_to(command)
            .unwrap_or_else(|refusal| panic!("refused: {refusal}"));
        events.iter().map(Event::name).collect()
    }

    /// Is refused, and nothing changes.
    pub(crate) fn refuses(&mut self, command: &Command) -> Refusal {
        let before = self.plan.clone();
        let refusal = self.try_to(command).expect_err("should be refused");
        assert_eq!(self.plan, before);
        refusal
    }

    pub(crate) fn code(&mut self, command: &Command) -> Code {
        self.refuses(command).code()
    }

    pub(crate) fn fresh_token(&mut self) -> ClaimToken {
        self.fresh += 1;
        ClaimToken::new(format!("token {}", self.fresh))
    }

    pub(crate) fn start_next(&mut self, session: Option<&str>, include_stalled: bool) -> Command {
        Command::StartNext(StartNext {
            token: self.fresh_token(),
            session: session.map(SessionId::new),
            include_stalled,
        })
    }

    /// Asks for the next step; its order and claim, where there is one.
    pub(crate) fn next(&mut self) -> Option<(u32, Claim)> {
        self.next_for(None, false)
    }

    pub(crate) fn next_for(
        &mut self,
        session: Option<&str>,
        include_stalled: bool,
    ) -> Option<(u32, Claim)> {
        let command = self.start_next(session, include_stalled);
        let events = self.try_to(&command).expect("asking is never refused");
        let step = onward_core::decide::start_next::handed_out(&events)?;
        let step = self.plan.step(step)?;
        Some((step.order, step.claim()?.clone()))
    }

    pub(crate) fn submit(&self, step: u32, token: Option<&ClaimToken>) -> Command {
        self.submit_result(step, token, &result("found it"))
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
            fresh_token: ClaimToken::new(format!("fresh {step}")),
            session: None,
        })
    }

    pub(crate) fn report(&self, step: u32, token: Option<&ClaimToken>) -> Command {
        self.sign(step, Sign::Reported, token)
    }

    pub(crate) fn sign(&self, step: u32, sign: Sign, token: Option<&ClaimToken>) -> Command {
        Command::ReportProgress(ReportProgress {
            step: id(step),
            sign,
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
            summary: format!("step {step} is ready"),
            questions: vec!["good enough?".to_owned()],
            token: token.cloned(),
            session: None,
        })
    }

    pub(crate) fn status(&self) -> PlanStatus {
        self.plan.head().status()
    }

    /// The statuses of the steps, in their order.
    pub(crate) fn steps(&self) -> Vec<StepStatus> {
        self.plan
            .steps()
            .iter()
            .map(onward_core::Step::status)
            .collect()
    }

    /// The numbers of the steps, in their order.
    pub(crate) fn order(&self) -> Vec<StepId> {
        self.plan
            .steps()
            .iter()
            .map(onward_core::Step::id)
            .collect()
    }

    /// Takes the next step on, so that it is in progress.
    pub(crate) fn started(mut self) -> Self {
        self.next().expect("there is a step");
        self
    }

    /// Puts the plan into `awaiting_review`, with step 1.
    pub(crate) fn in_review(self) -> Self {
        let mut desk = self.started();
        let command = desk.request_review(1, None);
        desk.does(&command);
        desk
    }

    /// Puts the plan into `stalled`, for step 1.
    pub(crate) fn stalled(self) -> Self {
        let mut desk = self.started();
        desk.wait(31 * MINUTE);
        assert_eq!(desk.does(&sweep()), ["plan_stalled"]);
        desk
    }

    /// Puts the plan into `failed`.
    pub(crate) fn abandoned(mut self) -> Self {
        self.does(&abandon());
        self
    }
}

pub(crate) fn sweep() -> Command {
    Command::HandleStalls(HandleStalls::default())
}

pub(crate) fn abandon() -> Command {
    Command::AbandonPlan(AbandonPlan {
        reason: Some("changed my mind".to_owned()),
    })
}

pub(crate) fn decision(step: u32, decision: Decision, feedback: Option<&str>) -> Command {
    Command::DecideReview(DecideReview {
        step: id(step),
        decision,
        feedback: feedback.map(str::to_owned),
    })
}

pub(crate) fn modify(modification: Modification) -> Command {
    Command::ModifyPlan(ModifyPlan {
        modification,
        rationale: None,
        resume: false,
    })
}

pub(crate) fn resume_session(name: &str) -> Command {
    Command::ResumeSession(ResumeSession {
        session: session(name),
    })
}
