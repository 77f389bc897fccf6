//! The names that a condition can reference, with their values.

/// The names that a condition can reference.
///
/// In addition to these five names, the top-level keys of `result` can be referenced directly,
/// except keys with one of the five names.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// `confidence`: the agent's confidence, or null.
    pub confidence: Option<f64>,
    /// `resultSummary`: the result's summary.
    pub result_summary: &'a str,
    /// `result`: the structured result, or null.
    pub result: Option<&'a serde_json::Value>,
    /// `step`: the completed step.
    pub step: StepScope<'a>,
    /// `plan`: the plan after that step.
    pub plan: PlanScope,
}

/// The value of `step`.
#[derive(Clone, Copy, Debug)]
pub struct StepScope<'a> {
    /// `step.order`, from 1.
    pub order: u32,
    /// `step.type`, such as `search`.
    pub step_type: &'a str,
    /// `step.attempt`, from 1.
    pub attempt: u32,
}

/// The value of `plan`.
#[derive(Clone, Copy, Debug)]
pub struct PlanScope {
    /// `plan.progress`, in percent.
    pub progress: u32,
    /// `plan.completed`: the number of completed steps.
    pub completed: u32,
    /// `plan.failed`: the number of failed steps.
    pub failed: u32,
    /// `plan.pending`: the number of pending steps.
    pub pending: u32,
}
