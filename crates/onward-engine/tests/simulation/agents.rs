//! Random requests of agents, reviewers and the sweeper.
//!
//! The choices depend on the model, as those of an agent depend on a plan's status, so that most
//! requests are valid. Some are not: missing, superseded or invented tokens, repeated submissions,
//! and invalid modifications.

mod modifications;
mod plans;
mod step_requests;

use std::sync::Arc;

use onward_core::event::ProgressSource;
use onward_core::id::{ClaimToken, SessionId};
use onward_core::{PlanId, PlanStatus, StepId, StepStatus};
use onward_engine::next_step::{AssignedStep, NextStep};
use onward_engine::submit::Submission;
use onward_testbed::Rng;

use crate::model::{Model, Plan, Step};
use crate::request::{Operation, Request};
use crate::response::{PlanKey, Response};

/// Maximum number of plans per seed.
const MAX_PLANS: usize = 4;

/// All agents of a run.
#[derive(Debug)]
pub(crate) struct Agents {
    pub(crate) rng: Rng,
    pub(crate) tenants: [Arc<str>; 2],
    agents: Vec<Agent>,
    created_plans: usize,
    /// Creation requests with an idempotency key.
    keyed_plans: Vec<(onward_core::command::CreatePlan, String)>,
    /// A stall deadline has just been reached, which makes a sweep more likely.
    pub(crate) at_deadline: bool,
    /// The only plan for requests, in a race.
    target: Option<PlanKey>,
}

#[derive(Debug)]
struct Agent {
    name: String,
    session: Option<SessionId>,
    active_claims: Vec<(Arc<str>, StepId, ClaimToken)>,
    past_claims: Vec<(Arc<str>, StepId, ClaimToken)>,
    submissions: Vec<(Arc<str>, Submission)>,
}

#[derive(Debug, Clone, Copy)]
enum Choice {
    Create,
    Next,
    Submit,
    Resubmit,
    Progress,
    RecordActivity,
    RequestReview,
    Decide,
    Modify,
    Resume,
    Abandon,
    ResumeSession,
    Delete,
    CopyToTenant,
    Sweep,
}

impl Agents {
    pub(crate) fn new(mut rng: Rng, tenants: [Arc<str>; 2]) -> Self {
        let agents = rng.between(1, 6);
        let agent = |number: u64| Agent {
            name: format!("agent{number}"),
            session: (number != 2).then(|| SessionId::new(format!("session{number}"))),
            active_claims: Vec::new(),
            past_claims: Vec::new(),
            submissions: Vec::new(),
        };
        Self {
            rng,
            tenants,
            agents: (1..=agents).map(agent).collect(),
            created_plans: 0,
            keyed_plans: Vec::new(),
            at_deadline: false,
            target: None,
        }
    }

    /// The next request and the index of its agent.
    pub(crate) fn next_request(&mut self, model: &Model) -> (usize, Request) {
        let agent = self.rng.index(self.agents.len());
        if self.rng.percent(2) {
            // The agent crashes. Its successor treats all claims as past ones.
            let crashed = &mut self.agents[agent];
            crashed.past_claims.append(&mut crashed.active_claims);
        }
        let Some(key) = self.pick_plan(model) else {
            return (agent, self.create(agent));
        };
        if self.rng.percent(1) {
            return (agent, self.request_for_unknown_plan(agent));
        }
        let plan = &model.plans[&key];
        let awaits_review = plan.count(StepStatus::AwaitingInput) > 0;
        let stalled = plan.status == PlanStatus::Stalled;
        let untargeted = u64::from(self.target.is_none());
        let creation_weight = untargeted * u64::from(self.created_plans < MAX_PLANS) * 4;
        let deletion_weight = u64::from(self.rng.percent(40));
        let choice = self.rng.weighted(&[
            (creation_weight, Choice::Create),
            (if self.at_deadline { 80 } else { 36 }, Choice::Next),
            (28, Choice::Submit),
            (7, Choice::Resubmit),
            (if stalled { 45 } else { 10 }, Choice::Progress),
            (5, Choice::RecordActivity),
            (11, Choice::RequestReview),
            (if awaits_review { 45 } else { 1 }, Choice::Decide),
            (20, Choice::Modify),
            (if stalled { 40 } else { 1 }, Choice::Resume),
            (1, Choice::Abandon),
            (3, Choice::ResumeSession),
            (deletion_weight, Choice::Delete),
            (untargeted * 2, Choice::CopyToTenant),
            (if self.at_deadline { 400 } else { 9 }, Choice::Sweep),
        ]);
        let (tenant, id) = key;
        let operation = match choice {
            Choice::Create => return (agent, self.create(agent)),
            Choice::Resubmit => match self.resubmission(agent) {
                Some((tenant, operation)) => {
                    return (agent, self.request(agent, &tenant, operation));
                }
                None => self.submit(agent, &tenant, plan),
            },
            Choice::Next => Operation::Next {
                plan: id,
                session: self.agents[agent].session.clone(),
                include_stalled: self.rng.percent(if self.at_deadline { 70 } else { 30 }),
            },
            Choice::Submit => self.submit(agent, &tenant, plan),
            Choice::Progress => self.progress(agent, &tenant, plan),
            Choice::RecordActivity => {
                let (step, _) = self.pick_claim(agent, &tenant, plan);
                let source = if self.rng.percent(50) {
                    ProgressSource::Written
                } else {
                    ProgressSource::Seen
                };
                Operation::RecordActivity(step, source, self.agents[agent].session.clone())
            }
            Choice::RequestReview => self.review_request(agent, &tenant, plan),
            Choice::Decide => self.decide(plan),
            Choice::Modify => {
                let modification = self.modification(plan);
                Operation::Modify {
                    plan: id,
                    modification,
                    resume: self.rng.percent(30),
                }
            }
            Choice::Resume => Operation::Resume(id),
            Choice::Abandon => Operation::Abandon(
                id,
                self.rng.percent(50).then(|| "no longer needed".to_owned()),
            ),
            Choice::ResumeSession => {
                let number = self.rng.between(1, 8);
                Operation::ResumeSession(id, SessionId::new(format!("session{number}")))
            }
            Choice::Delete => Operation::Delete(id),
            Choice::CopyToTenant => {
                let to = self.rng.index(2);
                Operation::CopyToTenant(id, Arc::clone(&self.tenants[to]))
            }
            Choice::Sweep => Operation::Sweep {
                new_watcher: self.rng.percent(15),
            },
        };
        (agent, self.request(agent, &tenant, operation))
    }

    fn request(&self, agent: usize, tenant: &Arc<str>, operation: Operation) -> Request {
        Request {
            tenant: Arc::clone(tenant),
            author: self.agents[agent].name.clone(),
            operation,
        }
    }

    /// A request for a plan id that does not exist.
    fn request_for_unknown_plan(&mut self, agent: usize) -> Request {
        let plan = PlanId::from_u128(self.rng.id());
        let operation = match self.rng.below(4) {
            0 => Operation::Next {
                plan,
                session: None,
                include_stalled: true,
            },
            1 => Operation::Resume(plan),
            2 => Operation::Delete(plan),
            _ => Operation::ResumeSession(plan, SessionId::new("unknown")),
        };
        let tenant = Arc::clone(&self.tenants[0]);
        self.request(agent, &tenant, operation)
    }

    /// Picks a plan, usually one in progress. `None` requests a new plan.
    fn pick_plan(&mut self, model: &Model) -> Option<PlanKey> {
        if self.target.is_some() {
            return self.target.clone();
        }
        let open = |(_, plan): &(&PlanKey, &Plan)| !plan.has_ended();
        let open: Vec<PlanKey> = model
            .plans
            .iter()
            .filter(open)
            .map(|(key, _)| key.clone())
            .collect();
        let all: Vec<PlanKey> = model.plans.keys().cloned().collect();
        if !self.rng.percent(12) && !open.is_empty() {
            return self.rng.pick(&open).cloned();
        }
        if open.is_empty() && self.created_plans < MAX_PLANS && !self.rng.percent(20) {
            return None;
        }
        self.rng.pick(&all).cloned()
    }

    /// A claim of the agent, or any step of the plan; the token may be wrong.
    fn pick_claim(
        &mut self,
        agent: usize,
        tenant: &Arc<str>,
        plan: &Plan,
    ) -> (StepId, Option<ClaimToken>) {
        let in_plan = |(owner, step, _): &&(Arc<str>, StepId, ClaimToken)| {
            owner == tenant && plan.index_of(*step).is_some()
        };
        let rng = &mut self.rng;
        let active_claims: Vec<_> = self.agents[agent]
            .active_claims
            .iter()
            .filter(in_plan)
            .cloned()
            .collect();
        let past_claims: Vec<_> = self.agents[agent]
            .past_claims
            .iter()
            .filter(in_plan)
            .cloned()
            .collect();
        let (step, token) = match (rng.pick(&active_claims), rng.pick(&past_claims)) {
            (Some((_, step, token)), _) if rng.percent(75) => (*step, Some(token.clone())),
            (_, Some((_, step, token))) if rng.percent(60) => (*step, Some(token.clone())),
            _ if rng.percent(3) => (StepId::from_u128(rng.id()), None),
            _ => {
                let ids = |filter: &dyn Fn(&&Step) -> bool| -> Vec<StepId> {
                    plan.steps.iter().filter(filter).map(Step::id).collect()
                };
                let in_progress = ids(&|step| step.status == StepStatus::InProgress);
                let step = match rng.pick(&in_progress) {
                    Some(step) if rng.percent(60) => Some(*step),
                    _ => rng.pick(&ids(&|_| true)).copied(),
                };
                (step.unwrap_or(StepId::from_u128(rng.id())), None)
            }
        };
        let token = match rng.below(100) {
            0..78 => token,
            78..90 => None,
            _ => Some(ClaimToken::new(format!("invented {}", rng.below(3)))),
        };
        (step, token)
    }

    /// Updates the agent's claims.
    pub(crate) fn record_response(&mut self, agent: usize, request: &Request, response: &Response) {
        let agent = &mut self.agents[agent];
        let next = match response {
            Response::Next(next) => Some(next.as_ref()),
            Response::Submitted(submitted) => submitted.next_step.as_ref(),
            _ => None,
        };
        if let (Response::Submitted(_) | Response::Rejected(..), Operation::Submit(submission)) =
            (response, &request.operation)
        {
            let (done, active_claims) = std::mem::take(&mut agent.active_claims)
                .into_iter()
                .partition(|(_, step, _)| *step == submission.step);
            agent.active_claims = active_claims;
            agent.past_claims.extend::<Vec<_>>(done);
        }
        if let Some(NextStep::Started(assigned)) = next {
            let AssignedStep { step, token, .. } = assigned.as_ref();
            agent
                .active_claims
                .push((Arc::clone(&request.tenant), *step, token.clone()));
        }
    }

    /// Directs all further requests to one plan.
    pub(crate) fn target_one_plan(&mut self, model: &Model) {
        let open = model.plans.iter().filter(|(_, plan)| !plan.has_ended());
        let open: Vec<PlanKey> = open.map(|(key, _)| key.clone()).collect();
        self.target = self.rng.pick(&open).or(model.plans.keys().next()).cloned();
    }

    pub(crate) fn clear_target(&mut self) {
        self.target = None;
    }
}
