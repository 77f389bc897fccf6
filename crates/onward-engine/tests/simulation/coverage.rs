//! Coverage of a run: the default seeds together must reach every error code of the rules and every
//! kind of audit entry.

use std::collections::BTreeMap;

use crate::model::Model;
use crate::response::Response;

/// A decision of the sweep at the deadline of a review.
const BY_POLICY: &str = "user_reviewed by policy";

const REQUIRED: [&str; 58] = [
    "rejected INVALID_STEP_REFERENCE",
    "rejected budget_exhausted",
    "rejected claim_superseded",
    "rejected conflict",
    "rejected dependencies_open",
    "rejected feedback_required",
    "rejected forbidden",
    "rejected illegal_transition",
    "rejected incomplete_step_list",
    "rejected invalid_condition",
    "rejected invalid_dependency",
    "rejected invalid_input",
    "rejected plan_is_terminal",
    "rejected plan_not_found",
    "rejected plan_not_modifiable",
    "rejected step_not_found",
    "rejected step_not_removable",
    "branch_taken add_steps",
    "branch_taken continue",
    "branch_taken fail",
    "branch_taken skip_to",
    "budget_exhausted",
    "late_result_kept",
    "plan_completed",
    "plan_failed",
    "plan_modified add_branch",
    "plan_modified add_steps",
    "plan_modified fail_step",
    "plan_modified redo_step",
    "plan_modified remove_step",
    "plan_modified reorder_steps",
    "plan_modified requeue_step",
    "plan_modified set_budget",
    "plan_modified update_plan",
    "plan_modified update_step",
    "plan_modified update_step_instructions",
    "plan_resumed budget",
    "plan_resumed late_result",
    "plan_resumed next_step",
    "plan_resumed person",
    "plan_resumed progress",
    "plan_stalled",
    "plan_status_changed",
    "session_resumed",
    "step_failed",
    "step_progressed feedback_delivered",
    "step_progressed reported",
    "step_progressed seen",
    "step_progressed written",
    "step_requeued by_hand",
    "step_requeued stalled",
    "step_requeued taken_over",
    "step_skipped",
    "user_reviewed approve",
    BY_POLICY,
    "user_reviewed modify",
    "user_reviewed reject",
    "user_reviewed skip",
];

/// Number of occurrences of each case.
#[derive(Debug, Default)]
pub(crate) struct Coverage(BTreeMap<String, u64>);

impl Coverage {
    pub(crate) fn record_response(&mut self, response: &Response) {
        if let Response::Rejected(code, _) = response {
            *self.0.entry(format!("rejected {code}")).or_default() += 1;
        }
    }

    pub(crate) fn record_events(&mut self, model: &Model) {
        for entry in model.plans.values().flat_map(|plan| &plan.audit_trail) {
            let action = entry.action.map(|action| format!(" {action}"));
            let name = format!("{}{}", entry.name, action.unwrap_or_default());
            *self.0.entry(name).or_default() += 1;
            if entry.name == "user_reviewed" && entry.author == "sweep" {
                *self.0.entry(BY_POLICY.to_owned()).or_default() += 1;
            }
        }
    }

    pub(crate) fn add(&mut self, other: &Coverage) {
        for (case, count) in &other.0 {
            *self.0.entry(case.clone()).or_default() += count;
        }
    }

    /// Required cases that did not occur.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        let required = REQUIRED.into_iter();
        required
            .filter(|case| !self.0.contains_key(*case))
            .collect()
    }
}
