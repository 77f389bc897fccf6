//! A skill that is linked to the plan began or ended. It changes nothing about the plan, so it fits
//! every status: a skill usually ends after its plan did.

use crate::command::{LogSkill, SkillPhase};
use crate::event::Event;

/// What is noted.
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
