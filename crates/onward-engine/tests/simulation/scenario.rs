//! The run of one seed: its agents, its model, and the checks of responses and state.

use std::sync::Arc;
use std::time::Duration;

use onward_core::command::{Modification, StepUpdate};
use onward_core::policy::OnDependencyFailure;
use onward_core::watcher::Watcher;
use onward_core::{StepStatus, Timestamp};
use onward_engine::environment::Environment;
use onward_testbed::Rng;

use crate::agents::Agents;
use crate::coverage::Coverage;
use crate::harness::Harness;
use crate::model::{Model, Plan};
use crate::reads;
use crate::request::{Operation, Request, caller};
use crate::response::Response;
use crate::rows::Rows;

/// Number of recent requests in a failure message.
const LOG_ENTRIES: usize = 120;

/// Maximum length of each.
const MAX_ENTRY_CHARS: usize = 1_500;

pub(crate) struct Scenario<'h> {
    pub(crate) harness: &'h Harness,
    pub(crate) rng: Rng,
    pub(crate) agents: Agents,
    pub(crate) model: Model,
    pub(crate) watcher: Watcher,
    pub(crate) coverage: Coverage,
    /// Requests and responses as text.
    log: Vec<String>,
}

impl<'h> Scenario<'h> {
    pub(crate) async fn open(harness: &'h Harness, seed: u64) -> Result<Self, String> {
        harness.environment.reset(seed);
        let tenants = ["first", "second"].map(|name| Arc::from(format!("{name}-{seed}")));
        for tenant in &tenants {
            let created = harness.engine().create_tenant(tenant).await;
            created.map_err(|error| format!("cannot create a tenant: {error}"))?;
        }
        let rng = Rng::new(seed);
        let mut model = Model::default();
        let watcher = harness.engine().watcher();
        model.watcher.start(harness.environment.now());
        Ok(Self {
            harness,
            agents: Agents::new(Rng::new(seed ^ 0xA6E7), tenants),
            rng,
            model,
            watcher,
            coverage: Coverage::default(),
            log: Vec::new(),
        })
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.harness.environment.now()
    }

    /// The most recent requests and responses.
    pub(crate) fn recent_log(&self) -> String {
        let from = self.log.len().saturating_sub(LOG_ENTRIES);
        self.log[from..].join("\n")
    }

    pub(crate) fn log(&mut self, request: &Request, response: &Response) {
        self.coverage.record_response(response);
        let (now, number) = (self.now(), self.log.len() + 1);
        let line = format!("{number}. {now} {request}\n      → {response:?}");
        self.log.push(line.chars().take(MAX_ENTRY_CHARS).collect());
    }

    /// Advances the clock: usually a little, sometimes exactly to a stall deadline, sometimes back.
    pub(crate) fn advance_clock(&mut self) {
        let environment = &self.harness.environment;
        let now = environment.now();
        self.agents.at_deadline = false;
        let span = match self.rng.below(100) {
            0..45 => self.rng.below(1_500),
            45..60 => self.rng.below(60_000),
            60..66 => self.rng.below(40 * 60_000),
            66..84 => return self.advance_to_deadline(),
            84..87 => self.rng.below(3 * 86_400_000),
            87..89 => {
                self.model.watcher.set_back(now);
                let back = i64::try_from(self.rng.below(5_000)).unwrap_or(0);
                environment.set(Timestamp::from_millis(now.as_millis() - back));
                return;
            }
            _ => 0,
        };
        environment.advance(Duration::from_millis(span));
    }

    /// Advances the clock exactly to a deadline of a stall or a review, or one millisecond past it.
    fn advance_to_deadline(&mut self) {
        let now = self.now();
        let steps = self.model.plans.values().flat_map(|plan| {
            let steps = plan.steps.iter();
            steps.filter_map(|step| step.active_until(plan.threshold))
        });
        let first = self.model.first_stall().map(|(at, _)| at);
        let decision = self.model.first_decision().map(|(at, _)| at);
        let expiry = self.model.first_expiry().map(|(at, _)| at);
        let others = decision.into_iter().chain(expiry);
        let mut deadlines: Vec<Timestamp> = steps.chain(first).chain(others).collect();
        deadlines.retain(|at| *at >= now);
        deadlines.sort();
        // Only the nearest ones: a far jump would pass all others.
        deadlines.truncate(3);
        let preferred = first.filter(|at| *at >= now && self.rng.percent(65));
        if let Some(at) = preferred.or(self.rng.pick(&deadlines).copied()) {
            let past = Duration::from_millis(self.rng.below(2));
            self.harness.environment.set(at);
            self.harness.environment.advance(past);
            self.agents.at_deadline = true;
        }
    }

    /// Sends a request and compares the response with the model's.
    pub(crate) async fn execute(&mut self, agent: usize, request: &Request) -> Result<(), String> {
        let engine = &self.harness.engines[self.rng.index(self.harness.engines.len())];
        let response = request.send(engine, &mut self.watcher).await;
        self.log(request, &response);
        self.check_response(agent, request, &response)
    }

    pub(crate) fn check_response(
        &mut self,
        agent: usize,
        request: &Request,
        response: &Response,
    ) -> Result<(), String> {
        let expected = self.model.apply(request, self.now(), Some(response));
        if *response != expected {
            return Err(format!(
                "response:\n  {response:?}\nexpected:\n  {expected:?}"
            ));
        }
        self.agents.record_response(agent, request, response);
        self.check_next_wakeup(response)
    }

    /// The sweeper must not sleep past the next deadline.
    fn check_next_wakeup(&self, response: &Response) -> Result<(), String> {
        let Response::Swept { next_at, .. } = response else {
            return Ok(());
        };
        if self.now() <= self.model.watcher.catches_up_at {
            return Ok(());
        }
        let first = self.model.first_stall().into_iter();
        let first = first.chain(self.model.first_decision());
        let first = first.chain(self.model.first_expiry()).min();
        match (first, next_at) {
            (Some((last, key)), None) => Err(format!(
                "the sweeper has no next wakeup, but {key:?} is due after {last}"
            )),
            (Some((last, key)), Some(next_at)) if *next_at > last.next() => Err(format!(
                "the sweeper sleeps until {next_at}, but {key:?} is due after {last}"
            )),
            _ => Ok(()),
        }
    }

    /// Compares the rows, and sometimes the read operations, with the model.
    pub(crate) async fn check_state(&mut self) -> Result<(), String> {
        let engine = self.harness.engine();
        // The model takes generated values, such as claim tokens, from the rows.
        let rows = Rows::read(engine, &self.agents.tenants).await?;
        rows.check(&mut self.model)?;
        if self.rng.percent(25) {
            for (key, plan) in &self.model.plans {
                reads::check_plan(engine, key, plan).await?;
            }
            for tenant in &self.agents.tenants {
                reads::check_lists(engine, tenant, &self.model).await?;
            }
        }
        Ok(())
    }

    /// Completes the open plans, checks the state and the integrity of the database, and deletes
    /// all plans.
    pub(crate) async fn finish(&mut self) -> Result<(), String> {
        self.check_state().await?;
        self.complete_open_plans().await?;
        self.check_state().await?;
        let engine = self.harness.engine();
        for tenant in &self.agents.tenants {
            let checked = engine.verify(&caller(tenant, "doctor")).await;
            let checked = checked.map_err(|error| format!("verify failed: {error}"))?;
            if !checked.inconsistencies.is_empty() {
                return Err(format!("{:#?}", checked.inconsistencies));
            }
        }
        self.coverage.record_events(&self.model);
        let keys: Vec<_> = self.model.plans.keys().cloned().collect();
        for (tenant, plan) in keys {
            let deleted = engine.delete_plan(&caller(&tenant, "cleaner"), plan).await;
            deleted.map_err(|error| format!("cannot delete plan {plan}: {error}"))?;
        }
        Ok(())
    }

    /// Claims, submits and approves until every open plan has ended.
    async fn complete_open_plans(&mut self) -> Result<(), String> {
        let keys: Vec<_> = self.model.plans.keys().cloned().collect();
        for (tenant, id) in keys {
            for attempt in 0.. {
                let plan = &self.model.plans[&(Arc::clone(&tenant), id)];
                if plan.has_ended() || plan.steps.is_empty() {
                    break;
                }
                if attempt > 400 {
                    return Err(format!("plan {id} does not end"));
                }
                let operation = self.agents.completing_operation(plan);
                self.harness
                    .environment
                    .advance(Duration::from_secs(self.rng.below(90)));
                let request = Request {
                    tenant: Arc::clone(&tenant),
                    author: "closer".to_owned(),
                    operation,
                };
                self.execute(0, &request).await?;
            }
        }
        Ok(())
    }
}

impl Agents {
    /// The next operation towards the completion of a plan.
    fn completing_operation(&mut self, plan: &Plan) -> Operation {
        let first_with = |status| {
            let mut steps = plan.steps.iter();
            steps
                .find(|step| step.status == status)
                .map(|step| step.id())
        };
        if let Some(step) = first_with(StepStatus::AwaitingInput) {
            return Operation::Decide {
                step,
                decision: onward_core::event::Decision::Approve,
                feedback: None,
                by_link: false,
            };
        }
        match first_with(StepStatus::InProgress) {
            Some(step) => self.result_for(plan, step),
            None if plan.exhausted.is_some() => Operation::Modify {
                plan: plan.id,
                modification: Modification::SetBudget {
                    budget: None,
                    by_person: true,
                },
                resume: false,
            },
            None => match plan.steps.iter().find(|step| plan.waits_for_failed(step)) {
                Some(step) => Operation::Modify {
                    plan: plan.id,
                    modification: Modification::UpdateStep {
                        step: step.id(),
                        update: StepUpdate {
                            on_dependency_failure: Some(OnDependencyFailure::Continue),
                            ..StepUpdate::default()
                        },
                    },
                    resume: true,
                },
                None => Operation::Next {
                    plan: plan.id,
                    session: None,
                    include_stalled: true,
                },
            },
        }
    }
}
