//! Gates of a step: what a submitted result must contain, and who must review it.
//!
//! `decide/gates.rs` checks a definition and a submission.

use std::fmt;
use std::str::FromStr;

use super::ReviewBy;
use crate::json::Json;
use crate::policy::{UnknownVariant, parse_variant};

/// The gates of a step. Most steps have none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gates {
    /// The JSON Schema of the result's data.
    pub result_schema: Option<Json>,
    /// Sentences that the evidence of the result must answer.
    pub acceptance_criteria: Vec<String>,
    /// Who reviews a submitted result. Without a reviewer, the result completes the step.
    pub review_by: Option<ReviewBy>,
}

impl Gates {
    /// Whether there is no gate.
    pub fn is_empty(&self) -> bool {
        let Self {
            result_schema,
            acceptance_criteria,
            review_by,
        } = self;
        result_schema.is_none() && acceptance_criteria.is_empty() && review_by.is_none()
    }

    /// The criterion with this text, or with this number, from 1.
    pub fn criterion(&self, reference: &str) -> Option<&str> {
        let reference = reference.trim();
        let mut criteria = self.acceptance_criteria.iter();
        let by_text = criteria.find(|criterion| criterion.trim() == reference);
        let by_number = || {
            let index = reference.parse::<usize>().ok()?.checked_sub(1)?;
            self.acceptance_criteria.get(index)
        };
        by_text.or_else(by_number).map(String::as_str)
    }
}

/// Evidence that a result meets a criterion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// The criterion. A submission may send its number instead of its text.
    pub criterion: String,
    /// The kind of evidence.
    pub kind: EvidenceKind,
    /// What a reader can check: a command, a commit, a path, an address.
    pub value: String,
    /// What the check showed.
    pub outcome: String,
}

/// The kind of evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EvidenceKind {
    /// A command that was run.
    Command,
    /// A test.
    Test,
    /// A commit.
    Commit,
    /// A pull request.
    PullRequest,
    /// A file.
    File,
    /// An address.
    Url,
    /// A text.
    Note,
}

impl EvidenceKind {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::Command,
        Self::Test,
        Self::Commit,
        Self::PullRequest,
        Self::File,
        Self::Url,
        Self::Note,
    ];

    /// The value in the API and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            EvidenceKind::Command => "command",
            EvidenceKind::Test => "test",
            EvidenceKind::Commit => "commit",
            EvidenceKind::PullRequest => "pull_request",
            EvidenceKind::File => "file",
            EvidenceKind::Url => "url",
            EvidenceKind::Note => "note",
        }
    }
}

impl fmt::Display for EvidenceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for EvidenceKind {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Self, UnknownVariant> {
        parse_variant(text, &Self::ALL, Self::as_str)
    }
}
