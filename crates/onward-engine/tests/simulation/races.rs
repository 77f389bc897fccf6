//! Concurrent requests on two engines with one database. Some sequential order of the requests must
//! explain all responses and the rows. If a store fault occurs, a request without a response may or
//! may not have been executed.

use onward_core::Event;
use onward_engine::environment::Environment;
use onward_engine::step::OpenedReview;

use crate::faults::NEVER;
use crate::model::Model;
use crate::request::{Operation, Request};
use crate::response::Response;
use crate::rows::Rows;
use crate::scenario::Scenario;

/// The agent, its request and the response.
type Sent = (usize, Request, Response);

impl Scenario<'_> {
    pub(crate) async fn race(&mut self) -> Result<(), String> {
        self.agents.clear_target();
        let (agent, first) = self.agents.next_request(&self.model);
        if self.rng.percent(40) || self.model.plans.is_empty() {
            return self.execute(agent, &first).await;
        }
        let requests = self.concurrent_requests();
        // A sweep commits once per plan, so its outcome after a fault is not all or nothing.
        let sweeps = requests.iter().any(|(_, request)| is_sweep(request));
        if !sweeps && self.rng.percent(25) {
            self.harness.faults.fail_after(self.rng.order_below(20));
        }
        let mut running = Vec::new();
        for (agent, request) in requests {
            // Concurrent requests on one engine can share a commit.
            let engine = self.rng.pick(&self.harness.engines).cloned();
            let engine = engine.expect("harness has an engine");
            let mut watcher = self.watcher;
            running.push(tokio::spawn(async move {
                let response = request.send(&engine, &mut watcher).await;
                (agent, request, response, watcher)
            }));
        }
        let mut sent: Vec<Sent> = Vec::new();
        for task in running {
            let joined = task.await;
            let (agent, request, response, watcher) =
                joined.map_err(|error| format!("a request panicked: {error}"))?;
            if is_sweep(&request) {
                self.watcher = watcher;
            }
            self.log(&request, &response);
            sent.push((agent, request, response));
        }
        self.harness.faults.fail_after(NEVER);
        let rows = Rows::read(self.harness.engine(), &self.agents.tenants).await?;
        let mut mismatches = Vec::new();
        let Some(model) = self.find_order(&self.model, &sent, &rows, &mut mismatches) else {
            let count = sent.len();
            let mismatches = mismatches.join("\n");
            return Err(format!(
                "no order of the last {count} requests explains the result:\n{mismatches}"
            ));
        };
        self.model = model;
        for (agent, request, response) in &sent {
            self.agents.record_response(*agent, request, response);
            if matches!(response, Response::Unavailable(_)) {
                // The retry returns the artifact of a late result for a deleted plan, which is not
                // in the rows read above.
                let retry = request.retry(&mut self.rng);
                self.execute(*agent, &retry).await?;
            }
        }
        Ok(())
    }

    /// Two to four requests for one plan, with at most one sweep.
    fn concurrent_requests(&mut self) -> Vec<(usize, Request)> {
        self.agents.target_one_plan(&self.model);
        let count = self.rng.index(3) + 2;
        let mut requests: Vec<(usize, Request)> = Vec::new();
        while requests.len() < count {
            let (agent, request) = self.agents.next_request(&self.model);
            if !(is_sweep(&request) && requests.iter().any(|(_, other)| is_sweep(other))) {
                requests.push((agent, request));
            }
        }
        requests
    }

    /// Searches an order that explains the responses and the rows. Returns the model after it.
    fn find_order(
        &self,
        model: &Model,
        remaining: &[Sent],
        rows: &Rows,
        mismatches: &mut Vec<String>,
    ) -> Option<Model> {
        if remaining.is_empty() {
            let mut after = model.clone();
            return match rows.check(&mut after) {
                Ok(()) => Some(after),
                Err(mismatch) => {
                    mismatches.push(mismatch);
                    None
                }
            };
        }
        for index in 0..remaining.len() {
            let (_, request, response) = &remaining[index];
            let mut rest = remaining.to_vec();
            rest.remove(index);
            let mut after = model.clone();
            if let Response::Unavailable(_) = response {
                let stored = response_from_rows(request, rows);
                after.apply(request, self.harness.environment.now(), stored.as_ref());
                let executed = self.find_order(&after, &rest, rows, mismatches);
                let found = executed.or_else(|| self.find_order(model, &rest, rows, mismatches));
                if found.is_some() {
                    return found;
                }
                continue;
            }
            let expected = after.apply(request, self.harness.environment.now(), Some(response));
            if expected != *response {
                let depth = remaining.len();
                mismatches.push(format!(
                    "{depth} remaining, {request}\n  response: {response:?}\n  expected: {expected:?}"
                ));
                continue;
            }
            let found = self.find_order(&after, &rest, rows, mismatches);
            if found.is_some() {
                return found;
            }
        }
        None
    }
}

/// The response to a review request that failed, taken from the rows.
fn response_from_rows(request: &Request, rows: &Rows) -> Option<Response> {
    let Operation::RequestReview(review_request) = &request.operation else {
        return None;
    };
    let opened = rows.0.iter().flat_map(|((tenant, plan), stored)| {
        let own = stored
            .events
            .iter()
            .filter(move |_| *tenant == request.tenant);
        own.filter_map(|entry| match &entry.event {
            Event::UserReviewed { step, review, .. } if *step == review_request.step => {
                Some(OpenedReview {
                    review: *review,
                    step: *step,
                    plan: *plan,
                    plan_status: stored.plan.sheet.head.status(),
                })
            }
            _ => None,
        })
    });
    opened.last().map(Response::ReviewRequested)
}

fn is_sweep(request: &Request) -> bool {
    matches!(request.operation, Operation::Sweep { .. })
}
