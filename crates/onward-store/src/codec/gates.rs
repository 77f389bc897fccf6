//! Mirrors of evidence and of a result under review.

use std::sync::Arc;

use onward_core::Json;
use onward_core::step::{Evidence, EvidenceKind, StepResult};
use serde::{Deserialize, Serialize};

use super::part::each;
use super::scalar::{Text, optional};

/// Mirror of an entry of evidence. Keys are in alphabetical order, here and below.
#[derive(Serialize, Deserialize)]
pub(crate) struct EvidenceJson<T> {
    criterion: T,
    kind: Text<EvidenceKind>,
    outcome: T,
    value: T,
}

impl<'e> From<&'e Evidence> for EvidenceJson<&'e str> {
    fn from(evidence: &'e Evidence) -> Self {
        Self {
            criterion: &evidence.criterion,
            kind: Text(evidence.kind),
            outcome: &evidence.outcome,
            value: &evidence.value,
        }
    }
}

impl From<EvidenceJson<String>> for Evidence {
    fn from(json: EvidenceJson<String>) -> Self {
        Self {
            criterion: json.criterion,
            kind: json.kind.0,
            value: json.value,
            outcome: json.outcome,
        }
    }
}

/// The mirror of a list of evidence, if it is not empty.
pub(crate) fn evidence(list: &[Evidence]) -> Option<Vec<EvidenceJson<&str>>> {
    (!list.is_empty()).then(|| each(list))
}

/// Mirror of a result under review.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
pub(crate) struct ResultJson<T> {
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    confidence: Option<f64>,
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    evidence: Option<Vec<EvidenceJson<T>>>,
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    output_formatting_notes: Option<T>,
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    result: Option<Json>,
    #[serde(default, with = "optional", skip_serializing_if = "Option::is_none")]
    step_execution_report: Option<Json>,
    summary: T,
}

impl<'e> From<&'e StepResult> for ResultJson<&'e str> {
    fn from(result: &'e StepResult) -> Self {
        Self {
            confidence: result.confidence,
            evidence: evidence(&result.evidence),
            output_formatting_notes: result.formatting_notes.as_deref(),
            result: result.data.clone(),
            step_execution_report: result.report.clone(),
            summary: &result.summary,
        }
    }
}

impl From<ResultJson<String>> for Arc<StepResult> {
    fn from(json: ResultJson<String>) -> Self {
        Arc::new(StepResult {
            summary: json.summary,
            data: json.result,
            confidence: json.confidence,
            report: json.step_execution_report,
            formatting_notes: json.output_formatting_notes,
            evidence: each(json.evidence.unwrap_or_default()),
        })
    }
}
