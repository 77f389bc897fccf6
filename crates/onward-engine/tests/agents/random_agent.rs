//! An agent that uses every operation at random: creates and modifies plans, claims steps, takes
//! over stalled ones, reports progress, requests and decides reviews, and submits results, some of
//! them late or twice. Each call and its response are recorded.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use onward_core::PlanId;
use onward_core::command::{ActionSpec, BranchSpec, Modification, ModifyPlan, StepRef, StepUpdate};
use onward_core::event::Decision;
use onward_core::id::ClaimToken;
use onward_core::step::{Deadline, OnDeadline, ReviewOptions};
use onward_engine::create::NewPlan;
use onward_engine::list::PlanQuery;
use onward_engine::next_step::{AssignedStep, NextStep};
use onward_engine::step::{ProgressReport, ReviewDecision, ReviewRequest};
use onward_engine::submit::{Submission, SubmitResponse};
use onward_engine::{Caller, Engine};
use onward_testbed::Rng;

use crate::agents::history::{Call, Claim, RecordSink, Response, digest};
use crate::agents::plans;
use crate::agents::recorder::Recorder;
use crate::agents::responses::{assigned_step, claim_response, repeated_response};

/// Plans in progress, shared by the agents of one process.
pub type OpenPlans = Arc<Mutex<Vec<PlanId>>>;

/// Number of plans to keep open.
const OPEN_PLANS: usize = 3;

/// Delay after a round without an assigned step.
const PAUSE: Duration = Duration::from_millis(2);

pub struct RandomAgent {
    engine: Engine,
    caller: Caller,
    rng: Rng,
    recorder: Recorder,
    open: OpenPlans,
    /// Number of generated texts. Each text is unique.
    texts: u64,
    /// A released claim for which the agent still submits a result.
    late: Option<(PlanId, Claim)>,
}

/// Whether a round assigned a step.
enum Round {
    Worked,
    Idle,
}

impl RandomAgent {
    pub fn new(
        engine: &Engine,
        name: String,
        rng: Rng,
        sink: &RecordSink,
        open: &OpenPlans,
    ) -> Self {
        Self {
            engine: engine.clone(),
            caller: Caller::local(name.clone()),
            rng,
            recorder: Recorder::new(name, sink),
            open: Arc::clone(open),
            texts: 0,
            late: None,
        }
    }

    /// Works until the task is aborted.
    pub async fn work(mut self) {
        loop {
            if let Round::Idle = self.run_round().await {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    fn text(&mut self, kind: &str) -> String {
        self.texts += 1;
        format!("{kind} {} of {}", self.texts, self.caller.name)
    }

    async fn run_round(&mut self) -> Round {
        let Some(plan) = self.pick_plan().await else {
            return Round::Idle;
        };
        if self.rng.percent(6) {
            self.modify_randomly(plan).await;
        }
        let (engine, caller) = (self.engine.clone(), self.caller.clone());
        let stalled = self.rng.percent(50);
        let request = engine.next_step(&caller, plan, None, stalled);
        let next = self
            .recorder
            .call(Call::Next, plan, "", request, |next| {
                claim_response(plan, next)
            })
            .await;
        let mut round = Round::Idle;
        let mut next = next;
        while let Some(NextStep::Started(assigned)) = next {
            round = Round::Worked;
            next = self.work_on(*assigned).await;
        }
        if let Some(next) = next {
            self.handle_no_step(plan, next).await;
        }
        round
    }

    /// Picks an open plan, or creates one if there are too few.
    async fn pick_plan(&mut self) -> Option<PlanId> {
        let open = self
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if open.len() >= OPEN_PLANS && !self.rng.percent(2) {
            return self.rng.pick(&open).copied();
        }
        let query = PlanQuery {
            limit: 20,
            ..PlanQuery::default()
        };
        // If the list fails, the creation below records the failure.
        let listed: Vec<PlanId> = match self.engine.list_plans(&self.caller, query).await {
            Ok(page) => page.plans.iter().map(|plan| plan.sheet.head.id).collect(),
            Err(_) => Vec::new(),
        };
        let enough = listed.len() >= OPEN_PLANS;
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = listed.clone();
        if enough {
            return self.rng.pick(&listed).copied();
        }
        let name = self.text("plan");
        let command = plans::stalling(&self.engine, &mut self.rng, &name);
        let (engine, caller, plan) = (self.engine.clone(), self.caller.clone(), command.plan);
        let key = self.rng.percent(50).then(|| name.clone());
        let repeat = key.is_some() && self.rng.percent(30);
        let request = engine.create_plan(&caller, command.clone(), key.clone());
        let response = |new_plan: &NewPlan| Response::Created {
            plan,
            digest: digest(&*new_plan.created),
        };
        let new_plan = self
            .recorder
            .call(Call::Create, plan, "", request, response)
            .await?;
        if repeat {
            let request = engine.create_plan(&caller, command, key);
            let response = |second: &NewPlan| repeated_response(&new_plan, second);
            self.recorder
                .call(Call::Create, plan, "", request, response)
                .await;
        }
        self.open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(plan);
        Some(plan)
    }

    /// Works on an assigned step. Returns the next step if the submission requested it.
    async fn work_on(&mut self, assigned: AssignedStep) -> Option<NextStep> {
        let claim = Claim::from(&assigned);
        if self.rng.percent(25) {
            self.report(&assigned).await;
        }
        match self.rng.below(100) {
            0..10 => {
                self.request_review(&assigned).await;
                None
            }
            10..17 => {
                self.requeue(&assigned).await;
                self.late = Some((assigned.plan, claim));
                None
            }
            // Abandoned, as by an agent that crashed. Another agent takes the step over when it
            // stalls.
            17..21 => None,
            _ => {
                let token = self.rng.percent(80).then(|| assigned.token.clone());
                let next = self.submit(assigned.plan, &claim, token).await;
                if let Some((plan, lost)) = self.late.take() {
                    let token = Some(ClaimToken::new(lost.token.clone()));
                    self.submit(plan, &lost, token).await;
                }
                next
            }
        }
    }

    async fn submit(
        &mut self,
        plan: PlanId,
        claim: &Claim,
        token: Option<ClaimToken>,
    ) -> Option<NextStep> {
        let text = self.text("result");
        let submission = Submission {
            step: claim.step,
            result: plans::result(&mut self.rng, &text),
            token,
            session: None,
            claim_next: self.rng.percent(60),
        };
        let digest = digest(&submission.result);
        let call = Call::Submit {
            digest: digest.clone(),
            claim_next: submission.claim_next,
        };
        let (engine, caller) = (self.engine.clone(), self.caller.clone());
        let request = engine.submit(&caller, submission.clone());
        let response = |done: &SubmitResponse| Response::Completed {
            plan: done.plan,
            step: done.step,
            digest,
            next: done
                .next_step
                .as_ref()
                .and_then(assigned_step)
                .map(Claim::from),
        };
        let first = self
            .recorder
            .call(call.clone(), plan, &text, request, response)
            .await?;
        // Without an assigned step in the first response, the repeated call requests the next step
        // again and may get a different response.
        let repeatable = first
            .next_step
            .as_ref()
            .is_none_or(|next| assigned_step(next).is_some());
        if submission.token.is_some() && repeatable && self.rng.percent(15) {
            let request = engine.submit(&caller, submission);
            let response = |second: &SubmitResponse| repeated_response(&first, second);
            self.recorder
                .call(call, plan, &text, request, response)
                .await;
        }
        first.next_step
    }

    async fn report(&mut self, assigned: &AssignedStep) {
        let (plan, step, note) = (assigned.plan, assigned.step, self.text("note"));
        let progress = ProgressReport {
            step,
            note: Some(note.clone()),
            percent: Some(50.0),
            token: Some(assigned.token.clone()),
            session: None,
        };
        let (engine, caller) = (self.engine.clone(), self.caller.clone());
        let request = engine.report_progress(&caller, progress);
        let response = |_: &_| Response::ProgressRecorded {
            plan,
            step,
            note: note.clone(),
        };
        self.recorder
            .call(Call::Progress, plan, &note, request, response)
            .await;
    }

    async fn request_review(&mut self, assigned: &AssignedStep) {
        let (plan, step, summary) = (assigned.plan, assigned.step, self.text("question"));
        let review = ReviewRequest {
            step,
            summary: summary.clone(),
            questions: vec!["Is this correct?".to_owned()],
            scope: onward_core::step::ReviewScope::Plan,
            options: self.review_options(),
            token: Some(assigned.token.clone()),
            session: None,
        };
        let (engine, caller) = (self.engine.clone(), self.caller.clone());
        let request = engine.request_review(&caller, review);
        let response = |opened: &onward_engine::step::OpenedReview| Response::ReviewRequested {
            plan,
            step,
            review: opened.review.to_string(),
        };
        if self
            .recorder
            .call(Call::Review, plan, &summary, request, response)
            .await
            .is_some()
        {
            self.decide(plan, step).await;
        }
    }

    /// Sometimes a deadline, at which the sweeper decides if this process is killed before.
    fn review_options(&mut self) -> ReviewOptions {
        let at = self.engine.now().checked_add(Duration::from_millis(50));
        let action = self.rng.pick(&OnDeadline::ALL).copied();
        let deadline = at.zip(action).filter(|_| self.rng.percent(40));
        ReviewOptions {
            deadline: deadline.map(|(at, action)| Deadline { at, action }),
            ..ReviewOptions::default()
        }
    }

    /// Decides a review in place of the reviewer.
    async fn decide(&mut self, plan: PlanId, step: onward_core::StepId) {
        let decision = match self.rng.below(20) {
            0 => Decision::Reject,
            1..8 => Decision::Modify,
            8..14 => Decision::Skip,
            _ => Decision::Approve,
        };
        let feedback = self.text("feedback");
        let (engine, caller) = (self.engine.clone(), self.caller.clone());
        let request = engine.decide_review(
            &caller,
            ReviewDecision::new(step, decision, Some(feedback.clone())),
        );
        let response = |_: &_| Response::ReviewDecided {
            plan,
            step,
            feedback: feedback.clone(),
        };
        self.recorder
            .call(Call::Decide, plan, "", request, response)
            .await;
    }

    async fn requeue(&mut self, assigned: &AssignedStep) {
        let modification = Modification::RequeueStep {
            step: assigned.step,
        };
        self.modify(assigned.plan, modification).await;
    }

    async fn modify(&mut self, plan: PlanId, modification: Modification) {
        let (engine, caller) = (self.engine.clone(), self.caller.clone());
        let request = engine.modify_plan(&caller, plan, ModifyPlan::new(modification));
        let response = |modified: &onward_engine::modify::Modified| Response::Modified {
            plan,
            seq: modified.head.seq,
        };
        self.recorder
            .call(Call::Modify, plan, "", request, response)
            .await;
    }

    async fn modify_randomly(&mut self, plan: PlanId) {
        let page = self
            .engine
            .list_steps(&self.caller, plan, None, 0, 100)
            .await;
        let Ok(page) = page else { return };
        let ids: Vec<_> = page.steps.iter().map(|step| step.id).collect();
        let Some(step) = self.rng.pick(&ids).copied() else {
            return;
        };
        let modification = match self.rng.below(7) {
            5 => Modification::UpdateStep {
                step,
                update: StepUpdate {
                    depends_on: Some(
                        self.rng
                            .pick(&ids)
                            .map(|id| StepRef::Id(*id))
                            .into_iter()
                            .collect(),
                    ),
                    ..StepUpdate::default()
                },
            },
            0 => Modification::AddSteps {
                steps: vec![plans::step(&self.engine, "One more.")],
                insert_after: Some(u32::try_from(ids.len()).unwrap_or(0) / 2),
            },
            1 => Modification::RemoveStep { step },
            2 => Modification::ReorderSteps {
                steps: ids.into_iter().rev().collect(),
            },
            3 => Modification::UpdateInstructions {
                step,
                instructions: self.text("instruction"),
            },
            4 => Modification::FailStep { step, reason: None },
            _ => Modification::AddBranch {
                branch: BranchSpec {
                    id: self.engine.new_branch_id(),
                    after_order: 1,
                    condition: "confidence > 0.9".to_owned(),
                    action: ActionSpec::AddSteps(vec![plans::step(&self.engine, "Added.")]),
                },
            },
        };
        self.modify(plan, modification).await;
    }

    /// No step was assigned: drops a plan that has ended, decides a pending review, and removes an
    /// exhausted budget.
    async fn handle_no_step(&mut self, plan: PlanId, next: NextStep) {
        match next {
            NextStep::Complete(_) | NextStep::Failed { .. } => {
                let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
                open.retain(|other| *other != plan);
            }
            NextStep::AwaitingReview { step, .. } => self.decide(plan, step).await,
            NextStep::BudgetExhausted { .. } => {
                let (budget, by_person) = (None, true);
                self.modify(plan, Modification::SetBudget { budget, by_person })
                    .await;
            }
            NextStep::NoPendingSteps { .. } | NextStep::Started(_) => {}
        }
    }
}
