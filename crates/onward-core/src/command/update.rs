//! New values for an existing step or plan.

use std::time::Duration;

use super::StepRef;
use crate::json::Json;
use crate::policy::OnDependencyFailure;
use crate::step::{ReviewBy, StepType};

/// New values for the definition of a step. Omitted values stay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepUpdate {
    /// The kind of work.
    pub step_type: Option<StepType>,
    /// The title. An empty text removes it.
    pub title: Option<String>,
    /// The instructions.
    pub instructions: Option<String>,
    /// All steps that must be terminal before this one can be claimed.
    pub depends_on: Option<Vec<StepRef>>,
    /// The stall threshold. `Some(None)` removes it, here and below.
    pub stall_threshold: Option<Option<Duration>>,
    /// The JSON Schema of the result's data.
    pub result_schema: Option<Option<Json>>,
    /// The acceptance criteria. An empty list removes them.
    pub acceptance_criteria: Option<Vec<String>>,
    /// Who reviews the result.
    pub review_by: Option<Option<ReviewBy>>,
    /// The labels. An empty list removes them.
    pub labels: Option<Vec<String>>,
    /// The priority.
    pub priority: Option<u8>,
    /// Whether the step waits for dependencies that have failed. Only a person changes it.
    pub on_dependency_failure: Option<OnDependencyFailure>,
}

/// New values for a plan. Omitted values stay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanUpdate {
    /// The project. An empty text removes it.
    pub project_key: Option<String>,
    /// The labels. An empty list removes them.
    pub labels: Option<Vec<String>>,
    /// The priority.
    pub priority: Option<u8>,
}
