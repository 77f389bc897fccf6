//! Records the start or end of a linked skill execution. The plan does not change, so the command
//! is allowed in every status: a skill usually ends after its plan.

use crate::command::{LogSkill, SkillPhase};
use crate::event::Event;

/// The event to record.
pub fn decide(command: &LogSkill) -> Vec<Event> {
    let (execution, skill) = (command.execution, command.skill.clone());
    vec![match &command.phase {
        SkillPhase::Started => Event::SkillStarted { execution, skill },
        SkillPhase::Completed => Event::SkillCompleted {
            execution,
            skill,
            error: None,
        },
        SkillPhase::Failed { error } => Event::SkillCompleted {
            execution,
            skill,
            error: Some(error.clone().unwrap_or_else(|| "failed".to_owned())),
        },
    }]
}
