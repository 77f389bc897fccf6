//! The gates of a step and the evidence of its result, on the pages of the step and of its review.

use onward_core::step::{Evidence, EvidenceKind, Gates, ReviewBy};

use super::format::multiline;
use crate::output::format;

const MAX_CHARS: usize = 20_000;

/// The gates of a step.
#[derive(Default)]
pub(super) struct GatesView {
    pub(super) criteria: Vec<String>,
    pub(super) schema: Option<String>,
    pub(super) reviewer: Option<&'static str>,
}

impl GatesView {
    pub(super) fn new(gates: Option<&Gates>) -> Self {
        let Some(gates) = gates else {
            return Self::default();
        };
        let criteria = gates.acceptance_criteria.iter();
        let schema = gates.result_schema.as_ref();
        Self {
            criteria: criteria.map(|text| multiline(text, MAX_CHARS)).collect(),
            schema: schema
                .map(|schema| multiline(&format::pretty_json(&schema.parse()), MAX_CHARS)),
            reviewer: gates.review_by.map(reviewer),
        }
    }
}

/// Who reviews a result.
pub(super) fn reviewer(by: ReviewBy) -> &'static str {
    match by {
        ReviewBy::Person => "a person",
        ReviewBy::OtherSession => "a person or another session",
    }
}

/// One entry of evidence.
pub(super) struct EvidenceRow {
    pub(super) criterion: String,
    pub(super) kind: &'static str,
    pub(super) value: String,
    /// The value, if it can be opened.
    pub(super) link: Option<String>,
    pub(super) outcome: String,
}

impl EvidenceRow {
    pub(super) fn list(evidence: &[Evidence]) -> Vec<Self> {
        evidence.iter().map(Self::new).collect()
    }

    fn new(evidence: &Evidence) -> Self {
        let is_address =
            evidence.value.starts_with("https://") || evidence.value.starts_with("http://");
        Self {
            criterion: multiline(&evidence.criterion, MAX_CHARS),
            kind: match evidence.kind {
                EvidenceKind::PullRequest => "pull request",
                EvidenceKind::Command
                | EvidenceKind::Test
                | EvidenceKind::Commit
                | EvidenceKind::File
                | EvidenceKind::Url
                | EvidenceKind::Note => evidence.kind.as_str(),
            },
            value: multiline(&evidence.value, MAX_CHARS),
            link: is_address.then(|| evidence.value.clone()),
            outcome: multiline(&evidence.outcome, MAX_CHARS),
        }
    }
}
