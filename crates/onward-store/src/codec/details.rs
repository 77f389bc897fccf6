//! Mirror of the details of all events. Every key has the same type in each event that contains it.
//!
//! `T` is a borrowed text for encoding and an owned one for decoding; `V` is a JSON value.
//! `encode.rs` and `decode.rs` convert between the mirror and events.

use std::borrow::Cow;

use onward_core::id::{ArtifactId, BranchId, ReviewId, SkillExecutionId};
use onward_core::policy::OnDependencyFailure;
use onward_core::step::{OnDeadline, ReviewBy, ReviewScope};
use onward_core::{PlanId, StepId, Timestamp};
use serde::{Deserialize, Serialize};

use super::budget::{BudgetJson, ExhaustedJson, UsedJson};
use super::gates::EvidenceJson;
use super::part::{
    BranchJson, ForkedFromJson, NewStepJson, NoEffectJson, StallJson, SuccessorJson, VerdictJson,
};
use super::review::FieldJson;
use super::scalar::{Millis, Priority, Text, optional};

macro_rules! optional_fields {
    ($(#[$attribute:meta])* struct $name:ident { $($field:ident: $type:ty,)+ }) => {
        $(#[$attribute])*
        #[derive(Serialize, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        #[serde(bound(
            serialize = "T: Serialize, V: Serialize",
            deserialize = "T: Deserialize<'de> + Default, V: Deserialize<'de>"
        ))]
        pub(super) struct $name<'e, T, V> {
            $(
                #[serde(with = "optional", skip_serializing_if = "Option::is_none")]
                pub(super) $field: Option<$type>,
            )+
        }

        // Not derived: a derived implementation would require that `T` and `V` have a default.
        impl<T, V> Default for $name<'_, T, V> {
            fn default() -> Self {
                Self { $($field: None,)+ }
            }
        }
    };
}

optional_fields! {
    /// Fields are in the order of their keys in a stored text: the alphabetical order.
    struct Details {
        action: T,
        answers: V,
        artifact_id: Text<ArtifactId>,
        assignee: T,
        attempt: u32,
        branch: BranchJson<T>,
        branch_id: Text<BranchId>,
        branches: Vec<VerdictJson<T>>,
        branching_conditions: Vec<BranchJson<T>>,
        budget: BudgetJson,
        by: T,
        claim_token: T,
        confidence: f64,
        due_at: Text<Timestamp>,
        error_message: T,
        evidence: Vec<EvidenceJson<T>>,
        execution_id: Text<SkillExecutionId>,
        exhausted: ExhaustedJson,
        feedback: T,
        fields: Vec<FieldJson<T>>,
        forked_from: ForkedFromJson,
        from: T,
        insert_after_order: u32,
        instructions: T,
        kind: T,
        labels: Vec<T>,
        name: T,
        no_effect: NoEffectJson,
        note: T,
        on_deadline: Text<OnDeadline>,
        on_dependency_failure: Text<OnDependencyFailure>,
        on_stall: T,
        origin: T,
        output_formatting_notes: T,
        percent: f64,
        plan_design_rationale: T,
        plan_id: Text<PlanId>,
        priority: Priority,
        project_key: T,
        questions: Vec<T>,
        rationale: T,
        reason: Cow<'e, str>,
        recipient: T,
        refused: T,
        research_question: T,
        result: V,
        result_summary: T,
        review_by: Text<ReviewBy>,
        review_id: Text<ReviewId>,
        scope: Text<ReviewScope>,
        session_id: T,
        skill_name: T,
        skipped_step_ids: Vec<Text<StepId>>,
        stall_threshold_ms: Millis,
        stalls: Vec<StallJson>,
        step: NewStepJson<T>,
        step_execution_report: V,
        step_ids: Vec<Text<StepId>>,
        steps: Vec<NewStepJson<T>>,
        successors: Vec<SuccessorJson<T>>,
        summary: T,
        target_step_id: Text<StepId>,
        title: T,
        to: T,
        used: UsedJson,
    }
}
