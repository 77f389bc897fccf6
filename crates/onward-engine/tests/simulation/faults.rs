//! Store faults. A failed request is stored completely or not at all, and a retry is safe.

use onward_core::Code;

use crate::model::Model;
use crate::request::{Operation, Request};
use crate::response::Response;
use crate::rows::{self, Rows};
use crate::scenario::Scenario;

/// Number of operations that no request reaches.
pub(crate) const NEVER: u32 = u32::MAX;

impl Scenario<'_> {
    pub(crate) async fn execute_with_fault(&mut self) -> Result<(), String> {
        let (agent, request) = self.agents.next_request(&self.model);
        if self.rng.percent(60) {
            return self.execute(agent, &request).await;
        }
        self.harness.faults.fail_after(self.rng.order_below(12));
        let response = request.send(self.harness.engine(), &mut self.watcher).await;
        self.harness.faults.fail_after(NEVER);
        self.log(&request, &response);
        if !matches!(response, Response::Unavailable(_)) {
            return self.check_response(agent, &request, &response);
        }
        let unknown = self.resolve_outcome(&request).await?;
        if unknown || self.rng.percent(70) {
            let retry = request.retry(&mut self.rng);
            self.execute(agent, &retry).await?;
        }
        Ok(())
    }

    /// Determines from the rows whether the request was executed. Returns true if this is unknown.
    async fn resolve_outcome(&mut self, request: &Request) -> Result<bool, String> {
        let mut after = self.model.clone();
        let expected = after.apply(request, self.now(), None);
        let rows = Rows::read(self.harness.engine(), &self.agents.tenants).await?;
        let applied = adopt_stored_plans(&mut self.model, after, &rows).map_err(|error| {
            format!("the rows match neither the state before nor after the request:\n{error}")
        })?;
        if let Operation::Sweep { .. } = request.operation {
            self.model.watcher = applied.watcher;
        }
        rows.check(&mut self.model)?;
        // The artifact of a late result for a deleted plan is not in these rows.
        Ok(matches!(
            expected,
            Response::Rejected(Code::StepNotFound, Some(_))
        ))
    }
}

/// Sets each plan to its state before or after the request, whichever matches the rows.
fn adopt_stored_plans(before: &mut Model, after: Model, rows: &Rows) -> Result<Model, String> {
    let mut keys: Vec<_> = before
        .plans
        .keys()
        .chain(after.plans.keys())
        .cloned()
        .collect();
    keys.sort();
    keys.dedup();
    let mut executed = false;
    for key in keys {
        let row = rows.0.get(&key);
        let (mut old, mut new) = (
            before.plans.get(&key).cloned(),
            after.plans.get(&key).cloned(),
        );
        let matches = |plan: &mut Option<_>| match (plan, row) {
            (None, None) => Ok(()),
            (Some(plan), Some(row)) => rows::check(plan, row),
            (None, Some(_)) => Err("the plan exists".to_owned()),
            (Some(_), None) => Err("the plan does not exist".to_owned()),
        };
        let Err(not_before) = matches(&mut old) else {
            continue;
        };
        matches(&mut new)
            .map_err(|not_after| format!("before: {not_before}\nafter: {not_after}"))?;
        executed = true;
        match new {
            Some(plan) => before.plans.insert(key, plan),
            None => before.plans.remove(&key),
        };
    }
    if executed {
        before.copy_keys_and_artifacts(&after);
    }
    Ok(after)
}
