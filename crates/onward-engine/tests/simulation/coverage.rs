//! What the agents must have met, taken over all seeds of a run: who never comes to a corner says
//! nothing about it.

use std::collections::BTreeMap;

use crate::model::Model;
use crate::said::Said;

/// Every refusal of the rules, and every kind of entry in a trail.
const CORNERS: [&str; 47] = [
    "refused INVALID_STEP_REFERENCE",
    "refused claim_superseded",
    "refused conflict",
    "refused feedback_required",
    "refused illegal_transition",
    "refused incomplete_step_list",
    "refused invalid_condition",
    "refused invalid_dependency",
    "refused invalid_input",
    "refused plan_is_terminal",
    "refused plan_not_found",
    "refused plan_not_modifiable",
    "refused step_not_found",
    "refused step_not_removable",
    "branch_taken add_steps",
    "branch_taken continue",
    "branch_taken fail",
    "branch_taken skip_to",
    "late_result_kept",
    "plan_completed",
    "plan_failed",
    "plan_modified add_branch",
    "plan_modified add_steps",
    "plan_modified fail_step",
    "plan_modified remove_step",
    "plan_modified reorder_steps",
    "plan_modified requeue_step",
    "plan_modified update_step_instructions",
    "plan_resumed late_result",
    "plan_resumed next_step",
    "plan_resumed person",
    "plan_resumed progress",
    "plan_stalled",
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
    "user_reviewed modify",
    "user_reviewed reject",
    "user_reviewed skip",
];

/// What was met, and how often.
#[derive(Debug, Default)]
pub(crate) struct Coverage(BTreeMap<String, u64>);

impl Coverage {
    pub(crate) fn hear(&mut self, said: &Said) {
        if let Said::Refused(code, _) = said {
            *self.0.entry(format!("refused {code}")).or_default() += 1;
        }
    }

    /// What happened to the plans that there are.
    pub(crate) fn read(&mut self, model: &Model) {
        for entry in model.plans.values().flat_map(|plan| &plan.trail) {
            let action = entry.action.map(|action| format!(" {action}"));
            let name = format!("{}{}", entry.name, action.unwrap_or_default());
            *self.0.entry(name).or_default() += 1;
        }
    }

    /// What was met elsewhere, too.
    pub(crate) fn add(&mut self, other: &Coverage) {
        for (what, often) in &other.0 {
            *self.0.entry(what.clone()).or_default() += often;
        }
    }

    /// What was never met.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        let corners = CORNERS.into_iter();
        corners
            .filter(|corner| !self.0.contains_key(*corner))
            .collect()
    }
}
