//! An agent that works on one plan, or on the plans of a project, until they end. It claims steps with separate calls or with the
//! submission of a result.

use std::time::Duration;

use onward_core::PlanId;
use onward_engine::list::PlanQuery;
use onward_engine::next_step::{AssignedStep, NextStep, Worker};
use onward_engine::submit::{Submission, SubmitResponse};
use onward_engine::{Caller, Engine};
use onward_testbed::Rng;

use crate::agents::history::{Call, Claim, RecordSink, Response, digest};
use crate::agents::plans;
use crate::agents::recorder::Recorder;
use crate::agents::responses::{assigned_step, claim_response, repeated_response};

/// Delay before the next request when no step is ready.
const PAUSE: Duration = Duration::from_millis(3);

pub struct Racer {
    engine: Engine,
    caller: Caller,
    rng: Rng,
    recorder: Recorder,
    results: u64,
}

impl Racer {
    pub fn new(engine: &Engine, name: String, rng: Rng, sink: &RecordSink) -> Self {
        Self {
            engine: engine.clone(),
            caller: Caller::local(name.clone()),
            rng,
            recorder: Recorder::new(name, sink),
            results: 0,
        }
    }

    pub async fn work_on(mut self, plan: PlanId) {
        let mut assigned: Option<AssignedStep> = None;
        loop {
            let next = match assigned.take() {
                Some(assigned) => self.submit(&assigned).await,
                None => {
                    let request = self.engine.next_step(&self.caller, plan, None, false);
                    let response = |next: &NextStep| claim_response(plan, next);
                    self.recorder
                        .call(Call::Next, plan, "", request, response)
                        .await
                }
            };
            match next {
                Some(NextStep::Complete(_) | NextStep::Failed { .. }) => return,
                Some(NextStep::Started(next)) => assigned = Some(*next),
                Some(NextStep::BudgetExhausted { .. }) => return,
                Some(NextStep::NoPendingSteps { .. } | NextStep::AwaitingReview { .. }) => {
                    tokio::time::sleep(PAUSE).await;
                }
                None => {}
            }
        }
    }

    /// Works on the plans of a project until none is open.
    pub async fn work_in(mut self, project: &str) {
        let mut assigned: Option<AssignedStep> = None;
        loop {
            let next = match assigned.take() {
                Some(assigned) => self.submit(&assigned).await,
                None => {
                    let worker = Worker::default();
                    let request = self
                        .engine
                        .next_step_of_project(&self.caller, project, worker);
                    let no_plan = PlanId::from_u128(0);
                    let response = |next: &NextStep| {
                        let plan = assigned_step(next).map_or(no_plan, |assigned| assigned.plan);
                        claim_response(plan, next)
                    };
                    self.recorder
                        .call(Call::Next, no_plan, "", request, response)
                        .await
                }
            };
            if let Some(NextStep::Started(next)) = next {
                assigned = Some(*next);
            } else if self.has_ended(project).await {
                return;
            } else {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    async fn has_ended(&self, project: &str) -> bool {
        let query = PlanQuery {
            limit: 1,
            project_key: Some(project.to_owned()),
            ..PlanQuery::default()
        };
        let open = self.engine.list_plans(&self.caller, query).await;
        open.is_ok_and(|open| open.plans.is_empty())
    }

    async fn submit(&mut self, assigned: &AssignedStep) -> Option<NextStep> {
        self.results += 1;
        let text = format!("result {} of {}", self.results, self.recorder.agent);
        let submission = Submission {
            step: assigned.step,
            result: plans::result(&mut self.rng, &text),
            token: Some(assigned.token.clone()),
            session: None,
            claim_next: self.rng.percent(60),
        };
        let digest = digest(&submission.result);
        let call = Call::Submit {
            digest: digest.clone(),
            claim_next: submission.claim_next,
        };
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
        let request = self.engine.submit(&self.caller, submission.clone());
        let plan = assigned.plan;
        let first = self
            .recorder
            .call(call.clone(), plan, &text, request, response);
        let first = first.await?;
        // Without an assigned step in the first response, the repeated call requests the next step
        // again and may get a different response.
        let repeatable = first
            .next_step
            .as_ref()
            .is_none_or(|next| assigned_step(next).is_some());
        if repeatable && self.rng.percent(10) {
            let response = |second: &SubmitResponse| repeated_response(&first, second);
            let request = self.engine.submit(&self.caller, submission);
            self.recorder
                .call(call, plan, &text, request, response)
                .await;
        }
        first.next_step
    }
}
