//! Budgets, counted in the audit trail.

use std::collections::BTreeSet;

use onward_core::budget::{Budget, BudgetState, Exhausted, Limit, Used};
use onward_core::{Code, PlanStatus, StepStatus, Timestamp};

use super::{Context, Model, Plan};
use crate::response::PlanKey;

impl Plan {
    pub(crate) fn budget_state(&self) -> Option<BudgetState> {
        let claims = || {
            let entries = self.audit_trail.iter();
            entries.filter(|entry| entry.name == "step_started")
        };
        let steps: BTreeSet<_> = claims().filter_map(|entry| entry.step).collect();
        Some(BudgetState {
            limits: self.budget?,
            used: Used {
                steps: steps.len() as u64,
                attempts: claims().count() as u64,
                first_claim_at: claims().map(|entry| entry.at).next(),
                // The agents report no tokens.
                tokens: None,
            },
            exhausted: self.exhausted,
        })
    }

    /// The exhausted limit, whether or not it is recorded.
    pub(crate) fn exhausted(&self, now: Timestamp) -> Option<Exhausted> {
        let BudgetState { limits, used, .. } = self.budget_state()?;
        let since = used.first_claim_at.map_or(0, |first| {
            u64::try_from(now.since(first).as_millis()).expect("duration fits u64")
        });
        let amounts = [
            (Limit::Steps, limits.max_steps, used.steps),
            (Limit::Attempts, limits.max_attempts, used.attempts),
            (Limit::Duration, limits.max_duration_ms, since),
        ];
        let reached = amounts.into_iter().find_map(|(limit, max, used)| {
            let max = max.filter(|max| used >= *max)?;
            Some(Exhausted { limit, max, used })
        });
        self.exhausted.or(reached)
    }

    /// The exhausted limit that prevents the assignment of a pending step.
    pub(crate) fn denied_by_budget(&self, now: Timestamp) -> Option<Exhausted> {
        let assigns = !self.has_ended() && self.status != PlanStatus::AwaitingReview;
        let has_pending = assigns && self.count(StepStatus::Pending) > 0;
        self.exhausted(now).filter(|_| has_pending)
    }

    /// Whether only a higher budget lets the plan continue.
    pub(crate) fn is_stopped_by_budget(&self, now: Timestamp) -> bool {
        self.count(StepStatus::InProgress) == 0 && self.denied_by_budget(now).is_some()
    }

    /// Records an exhausted limit, and marks a plan that cannot continue.
    pub(crate) fn check_budget(&mut self, is_denied: bool, ctx: &Context<'_>) {
        let Some(exhausted) = self.exhausted(ctx.now).filter(|_| !self.has_ended()) else {
            return;
        };
        let is_stopped = self.is_stopped_by_budget(ctx.now);
        let is_found = is_denied || is_stopped || exhausted.limit == Limit::Duration;
        if is_found && self.exhausted.is_none() {
            self.exhausted = Some(exhausted);
            self.record("budget_exhausted", None, None, ctx);
        }
        if is_stopped && self.status == PlanStatus::Executing {
            self.status = PlanStatus::Stalled;
            self.marked_at = Some(ctx.now);
            self.record("plan_stalled", None, None, ctx);
        }
    }

    pub(crate) fn set_budget(
        &mut self,
        budget: Option<Budget>,
        by_person: bool,
        ctx: &Context<'_>,
    ) -> Result<(), Code> {
        if self.has_ended() {
            return Err(Code::PlanNotModifiable);
        }
        let old = self.budget.unwrap_or_default();
        let new = budget.unwrap_or_default();
        let is_raised = Limit::ALL.iter().any(|limit| {
            let allowed = |budget: Budget| budget.max(*limit).unwrap_or(u64::MAX);
            allowed(new) > allowed(old)
        });
        if is_raised && !by_person {
            return Err(Code::Forbidden);
        }
        let waited = self.status == PlanStatus::Stalled && self.is_stopped_by_budget(ctx.now);
        self.budget = budget;
        self.exhausted = None;
        self.record("plan_modified", Some("set_budget"), None, ctx);
        if waited && self.exhausted(ctx.now).is_none() {
            self.resume("budget", ctx);
        }
        Ok(())
    }
}

impl Model {
    /// The earliest end of a duration and its plan: the last instant before the sweep records it.
    pub(crate) fn first_expiry(&self) -> Option<(Timestamp, PlanKey)> {
        let all = self.plans.iter().filter_map(|(key, plan)| {
            let budget = plan.budget_state().filter(|_| !plan.has_ended())?;
            let max = budget.limits.max_duration_ms?;
            let first = budget.used.first_claim_at?.as_millis();
            let last = first + i64::try_from(max).expect("limit fits i64") - 1;
            let last = plan.exhausted.is_none().then_some(last)?;
            Some((Timestamp::from_millis(last), key.clone()))
        });
        all.min()
    }
}
