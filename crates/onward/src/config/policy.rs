//! The policies that tables of the configuration define.

use std::time::Duration;

use onward_core::call::{CallTimeouts, agent};
use onward_core::capture::CapturePolicy;
use onward_core::turn::{self, Parts, Rule, TurnPolicy};
use onward_engine::retention;

use super::keys::{Calls, Capture, LoopControl, Notify, Retention, Watch};
use super::values::{ProgressRule, display_origin};

impl Retention {
    /// Days for which the request log is kept; `None` keeps it forever.
    pub(crate) fn tool_calls_days(&self) -> Option<u32> {
        Some(self.tool_calls_days).filter(|days| *days > 0)
    }

    pub(crate) fn policy(&self) -> retention::Retention {
        let duration = |days: u32| Duration::from_secs(u64::from(days) * 24 * 60 * 60);
        retention::Retention {
            finished_plans: self.finished_plans_days.map(duration),
            tool_calls: self.tool_calls_days().map(duration),
            sessions: self.sessions_days.map(duration),
        }
    }
}

impl Calls {
    /// The timeouts of calls of any agent.
    pub(crate) fn timeouts(&self) -> CallTimeouts {
        CallTimeouts {
            default: Some(Duration::from_millis(self.default_timeout_ms)),
            grace: Some(Duration::from_millis(self.grace_ms)),
            rules: self.tool_timeouts_ms.clone(),
            variables: Vec::new(),
        }
    }

    /// The timeouts of calls of the agent that started this process, with those in its environment.
    pub(crate) fn timeouts_with_environment(&self) -> CallTimeouts {
        let variable = |name: &str| Some((name.to_owned(), std::env::var(name).ok()?));
        CallTimeouts {
            variables: agent::variables().filter_map(variable).collect(),
            ..self.timeouts()
        }
    }
}

impl Capture {
    pub(crate) fn policy(&self) -> CapturePolicy {
        CapturePolicy {
            mode: self.plans,
            min_tasks: self.min_tasks,
        }
    }

    /// How long after its last activity an unfinished list is archived.
    pub(crate) fn archive_after(&self) -> Duration {
        Duration::from_secs(24 * 60 * 60 * u64::from(self.archive_after_days))
    }
}

impl Watch {
    /// How long a plan with a ready step may be without agent activity.
    pub(crate) fn no_agent_after(&self) -> Duration {
        Duration::from_secs(60 * u64::from(self.no_agent_after_minutes))
    }
}

impl LoopControl {
    /// The policy for the detector and the escalation.
    pub(crate) fn control(&self) -> turn::LoopControl {
        turn::LoopControl {
            turn: TurnPolicy {
                stall_threshold: self.progress_stall_threshold,
                min_info_gain_length: self.progress_min_info_gain_length,
                stall_wait: Duration::from_secs(60 * u64::from(self.stall_wait_minutes)),
                rule: match self.progress_rule {
                    ProgressRule::Default => Rule::Default(self.parts()),
                    ProgressRule::Plain => Rule::Plain,
                },
            },
            max_steps: self.max_steps_per_turn,
            on_stall: self.on_stall,
            on_text_loop: self.on_text_loop,
        }
    }

    /// The parts of the rule that are not switched off. The names were validated.
    fn parts(&self) -> Parts {
        let mut parts = Parts::ALL;
        for name in &self.progress_without {
            parts.switch_off(name);
        }
        parts
    }
}

impl Notify {
    pub(crate) fn display_webhook(&self) -> Option<String> {
        self.webhook.as_deref().map(display_origin)
    }

    /// The secret that signs decision links, if they are enabled.
    pub(crate) fn link_secret(&self) -> Option<&str> {
        let secret = self.secret.as_deref();
        secret.filter(|_| self.webhook.is_some() && self.link_valid_hours > 0)
    }
}
