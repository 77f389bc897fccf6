//! Sequential ids.

use onward_core::id::{ArtifactId, BranchId, ClaimToken, ReviewId, SkillExecutionId, StepId};

/// Sequential ids.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct IdSource(u128);

impl IdSource {
    fn next(&mut self) -> u128 {
        self.0 += 1;
        self.0
    }

    pub(crate) fn step(&mut self) -> StepId {
        StepId::from_u128(self.next())
    }

    pub(crate) fn branch(&mut self) -> BranchId {
        BranchId::from_u128(self.next())
    }

    pub(crate) fn review(&mut self) -> ReviewId {
        ReviewId::from_u128(self.next())
    }

    pub(crate) fn artifact(&mut self) -> ArtifactId {
        ArtifactId::from_u128(self.next())
    }

    pub(crate) fn execution(&mut self) -> SkillExecutionId {
        SkillExecutionId::from_u128(self.next())
    }

    pub(crate) fn token(&mut self) -> ClaimToken {
        ClaimToken::new(format!("token {}", self.next()))
    }
}
