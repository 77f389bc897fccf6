//! The agents, and the people beside them: what they ask next, by chance.
//!
//! They look at the model as an agent looks at a plan's status, so most of what they ask makes sense,
//! and some of it does not: they forget tokens, come back with old ones, make some up, say things
//! twice, and change plans in ways that cannot be.

mod changes;
mod plans;
mod words;

use std::sync::Arc;

use onward_core::event::Sign;
use onward_core::id::{ClaimToken, SessionId};
use onward_core::{PlanId, PlanStatus, StepId, StepStatus};
use onward_engine::next::{Handed, Next};
use onward_engine::submit::Submission;

use crate::ask::{Ask, What};
use crate::dice::Dice;
use crate::model::{Model, Plan, Step};
use crate::said::{Key, Said};

/// How many plans a run begins at most.
const MOST_PLANS: usize = 4;

/// All of them.
#[derive(Debug)]
pub(crate) struct Crowd {
    pub(crate) dice: Dice,
    pub(crate) tenants: [Arc<str>; 2],
    agents: Vec<Agent>,
    /// Plans that were begun, and under which keys.
    begun: usize,
    keyed: Vec<(onward_core::command::CreatePlan, String)>,
    /// Something may just have stalled: the sweep is near.
    pub(crate) on_the_brink: bool,
    /// In a race, all ask about one plan.
    only: Option<Key>,
}

#[derive(Debug)]
struct Agent {
    name: String,
    session: Option<SessionId>,
    held: Vec<(Arc<str>, StepId, ClaimToken)>,
    past: Vec<(Arc<str>, StepId, ClaimToken)>,
    sent: Vec<(Arc<str>, Submission)>,
}

#[derive(Debug, Clone, Copy)]
enum Wish {
    Create,
    Next,
    Submit,
    SubmitAgain,
    Progress,
    Notice,
    Question,
    Decide,
    Modify,
    Resume,
    Abandon,
    TakeUp,
    Delete,
    Move,
    Sweep,
}

impl Crowd {
    pub(crate) fn new(mut dice: Dice, tenants: [Arc<str>; 2]) -> Self {
        let agents = dice.between(1, 6);
        let agent = |number: u64| Agent {
            name: format!("agent{number}"),
            session: (number != 2).then(|| SessionId::new(format!("session{number}"))),
            held: Vec::new(),
            past: Vec::new(),
            sent: Vec::new(),
        };
        Self {
            dice,
            tenants,
            agents: (1..=agents).map(agent).collect(),
            begun: 0,
            keyed: Vec::new(),
            on_the_brink: false,
            only: None,
        }
    }

    /// What somebody asks next, and which agent it is.
    pub(crate) fn wish(&mut self, model: &Model) -> (usize, Ask) {
        let agent = self.dice.place(self.agents.len());
        if self.dice.percent(2) {
            // It dies. Who takes its place knows only what it finds in the old one's notes.
            let gone = &mut self.agents[agent];
            gone.past.append(&mut gone.held);
        }
        let Some(key) = self.some_plan(model) else {
            return (agent, self.create(agent));
        };
        if self.dice.percent(1) {
            return (agent, self.nowhere(agent));
        }
        let plan = &model.plans[&key];
        let awaits = plan.status == PlanStatus::AwaitingReview;
        let stalled = plan.status == PlanStatus::Stalled;
        let far = u64::from(self.only.is_none());
        let begins = far * u64::from(self.begun < MOST_PLANS) * 4;
        let deletes = u64::from(self.dice.percent(40));
        let wish = self.dice.weighed(&[
            (begins, Wish::Create),
            (if self.on_the_brink { 80 } else { 36 }, Wish::Next),
            (28, Wish::Submit),
            (7, Wish::SubmitAgain),
            (if stalled { 45 } else { 10 }, Wish::Progress),
            (5, Wish::Notice),
            (11, Wish::Question),
            (if awaits { 45 } else { 1 }, Wish::Decide),
            (20, Wish::Modify),
            (if stalled { 25 } else { 1 }, Wish::Resume),
            (1, Wish::Abandon),
            (3, Wish::TakeUp),
            (deletes, Wish::Delete),
            (far * 2, Wish::Move),
            (if self.on_the_brink { 200 } else { 9 }, Wish::Sweep),
        ]);
        let (tenant, id) = key;
        let what = match wish {
            Wish::Create => return (agent, self.create(agent)),
            Wish::SubmitAgain => match self.again(agent) {
                Some((tenant, what)) => return (agent, self.ask(agent, &tenant, what)),
                None => self.submit(agent, &tenant, plan),
            },
            Wish::Next => What::Next {
                plan: id,
                session: self.agents[agent].session.clone(),
                include_stalled: self.dice.percent(if self.on_the_brink { 70 } else { 30 }),
            },
            Wish::Submit => self.submit(agent, &tenant, plan),
            Wish::Progress => self.progress(agent, &tenant, plan),
            Wish::Notice => {
                let (step, _) = self.some_claim(agent, &tenant, plan);
                let sign = match self.dice.percent(50) {
                    true => Sign::Written,
                    false => Sign::Seen,
                };
                What::Notice(step, sign, self.agents[agent].session.clone())
            }
            Wish::Question => self.question(agent, &tenant, plan),
            Wish::Decide => self.decide(plan),
            Wish::Modify => {
                let modification = self.modification(plan);
                What::Modify {
                    plan: id,
                    modification,
                    resume: self.dice.percent(30),
                }
            }
            Wish::Resume => What::Resume(id),
            Wish::Abandon => What::Abandon(id, self.dice.percent(50).then(|| "enough".to_owned())),
            Wish::TakeUp => {
                let number = self.dice.between(1, 8);
                What::TakeUp(id, SessionId::new(format!("session{number}")))
            }
            Wish::Delete => What::Delete(id),
            Wish::Move => {
                let to = self.dice.place(2);
                What::Move(id, Arc::clone(&self.tenants[to]))
            }
            Wish::Sweep => What::Sweep {
                fresh: self.dice.percent(15),
            },
        };
        (agent, self.ask(agent, &tenant, what))
    }

    fn ask(&self, agent: usize, tenant: &Arc<str>, what: What) -> Ask {
        Ask {
            tenant: Arc::clone(tenant),
            who: self.agents[agent].name.clone(),
            what,
        }
    }

    /// Something about a plan that was never there.
    fn nowhere(&mut self, agent: usize) -> Ask {
        let plan = PlanId::from_u128(self.dice.id());
        let what = match self.dice.below(4) {
            0 => What::Next {
                plan,
                session: None,
                include_stalled: true,
            },
            1 => What::Resume(plan),
            2 => What::Delete(plan),
            _ => What::TakeUp(plan, SessionId::new("nobody")),
        };
        let tenant = Arc::clone(&self.tenants[0]);
        self.ask(agent, &tenant, what)
    }

    /// Mostly one that is not over.
    fn some_plan(&mut self, model: &Model) -> Option<Key> {
        if self.only.is_some() {
            return self.only.clone();
        }
        let open = |(_, plan): &(&Key, &Plan)| !plan.is_over();
        let open: Vec<Key> = model
            .plans
            .iter()
            .filter(open)
            .map(|(key, _)| key.clone())
            .collect();
        let all: Vec<Key> = model.plans.keys().cloned().collect();
        let pool = match self.dice.percent(12) || open.is_empty() {
            true if open.is_empty() && self.begun < MOST_PLANS && !self.dice.percent(20) => {
                return None;
            }
            true => all,
            false => open,
        };
        self.dice.pick(&pool).cloned()
    }

    /// A claim that the agent has; or a step of the plan, with a token that may fit or not.
    fn some_claim(
        &mut self,
        agent: usize,
        tenant: &Arc<str>,
        plan: &Plan,
    ) -> (StepId, Option<ClaimToken>) {
        let here = |(of, step, _): &&(Arc<str>, StepId, ClaimToken)| {
            of == tenant && plan.place(*step).is_some()
        };
        let dice = &mut self.dice;
        let held: Vec<_> = self.agents[agent]
            .held
            .iter()
            .filter(here)
            .cloned()
            .collect();
        let past: Vec<_> = self.agents[agent]
            .past
            .iter()
            .filter(here)
            .cloned()
            .collect();
        let (step, token) = match (dice.pick(&held), dice.pick(&past)) {
            (Some((_, step, token)), _) if dice.percent(75) => (*step, Some(token.clone())),
            (_, Some((_, step, token))) if dice.percent(60) => (*step, Some(token.clone())),
            _ if dice.percent(3) => (StepId::from_u128(dice.id()), None),
            _ => {
                let of = |fits: &dyn Fn(&&Step) -> bool| -> Vec<StepId> {
                    plan.steps.iter().filter(fits).map(Step::id).collect()
                };
                let working = of(&|step| step.status == StepStatus::InProgress);
                let step = match dice.pick(&working) {
                    Some(step) if dice.percent(60) => Some(*step),
                    _ => dice.pick(&of(&|_| true)).copied(),
                };
                (step.unwrap_or(StepId::from_u128(dice.id())), None)
            }
        };
        let token = match dice.below(100) {
            0..78 => token,
            78..90 => None,
            _ => Some(ClaimToken::new(format!("made up {}", dice.below(3)))),
        };
        (step, token)
    }

    /// An agent remembers what it was given.
    pub(crate) fn hear(&mut self, agent: usize, ask: &Ask, said: &Said) {
        let agent = &mut self.agents[agent];
        let next = match said {
            Said::Next(next) => Some(next.as_ref()),
            Said::Submitted(submitted) => submitted.next_step.as_ref(),
            _ => None,
        };
        if let (Said::Submitted(_) | Said::Refused(..), What::Submit(submission)) =
            (said, &ask.what)
        {
            let (done, held) = std::mem::take(&mut agent.held)
                .into_iter()
                .partition(|(_, step, _)| *step == submission.step);
            agent.held = held;
            agent.past.extend::<Vec<_>>(done);
        }
        if let Some(Next::Started(handed)) = next {
            let Handed { step, token, .. } = handed.as_ref();
            agent
                .held
                .push((Arc::clone(&ask.tenant), *step, token.clone()));
        }
    }

    /// From here on, everything is about one plan.
    pub(crate) fn keep_to_a_plan(&mut self, model: &Model) {
        let open = model.plans.iter().filter(|(_, plan)| !plan.is_over());
        let open: Vec<Key> = open.map(|(key, _)| key.clone()).collect();
        self.only = self.dice.pick(&open).or(model.plans.keys().next()).cloned();
    }

    /// And no longer.
    pub(crate) fn leave_the_plan(&mut self) {
        self.only = None;
    }
}
