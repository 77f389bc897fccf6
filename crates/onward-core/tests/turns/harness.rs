//! Builders for agent steps, and a detector that observes them.

use onward_core::Timestamp;
use onward_core::turn::{
    Call, ExternalChange, Observation, Parts, Progress, ProgressDetector, Rule, TreeChange,
    TurnPolicy, Verdict,
};
use serde_json::{Value, json};

/// One step with its calls and their results.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    calls: Vec<(String, Value, Option<bool>, String)>,
    external: ExternalChange,
    tree: Option<TreeChange>,
    at: Option<Timestamp>,
    background: bool,
}

/// A successful tool call without an external change.
pub(crate) fn tool(name: &str, input: Value, output: &str) -> Step {
    Step {
        calls: vec![(name.to_owned(), input, Some(true), output.to_owned())],
        external: ExternalChange::Unchanged,
        tree: None,
        at: None,
        background: false,
    }
}

/// A successful shell command without an external change.
pub(crate) fn shell(command: &str, output: &str) -> Step {
    tool("Bash", json!({ "command": command }), output)
}

/// A file read.
pub(crate) fn read(path: &str, output: &str) -> Step {
    tool("Read", json!({ "file_path": path }), output)
}

/// A step without calls: the agent's answer.
pub(crate) fn answer() -> Step {
    Step {
        calls: Vec::new(),
        ..shell("", "")
    }
}

impl Step {
    pub(crate) fn failed(mut self) -> Self {
        for call in &mut self.calls {
            call.2 = Some(false);
        }
        self
    }

    pub(crate) fn unflagged(mut self) -> Self {
        for call in &mut self.calls {
            call.2 = None;
        }
        self
    }

    pub(crate) fn external(mut self, external: ExternalChange) -> Self {
        self.external = external;
        self
    }

    pub(crate) fn changed(self) -> Self {
        self.external(ExternalChange::Changed)
    }

    /// The step changes the tree from one state to another.
    pub(crate) fn tree(mut self, before: &str, after: &str) -> Self {
        self.external = ExternalChange::compare(Some(&before), Some(&after));
        self.tree = Some(TreeChange::new(before, after));
        self
    }

    pub(crate) fn and(mut self, other: Step) -> Self {
        self.calls.extend(other.calls);
        self
    }

    pub(crate) fn at(mut self, second: i64) -> Self {
        self.at = Some(Timestamp::from_millis(second * 1000));
        self
    }

    /// The step while the caller reports a running background task.
    pub(crate) fn with_task_at(self, second: i64) -> Self {
        let mut step = self.at(second);
        step.background = true;
        step
    }

    pub(crate) fn without_time(mut self) -> Self {
        self.at = None;
        self
    }
}

/// A detector under test.
pub(crate) struct Harness {
    pub(crate) detector: ProgressDetector,
}

impl Harness {
    pub(crate) fn plain() -> Self {
        Harness::with_policy(TurnPolicy::plain())
    }

    pub(crate) fn default() -> Self {
        Harness::with_policy(TurnPolicy::default())
    }

    /// The default rule with some parts switched off.
    pub(crate) fn with_parts(switch: impl Fn(&mut Parts)) -> Self {
        let mut parts = Parts::ALL;
        switch(&mut parts);
        Harness::with_policy(TurnPolicy {
            rule: Rule::Default(parts),
            ..TurnPolicy::default()
        })
    }

    pub(crate) fn with_policy(policy: TurnPolicy) -> Self {
        Harness {
            detector: ProgressDetector::new(policy),
        }
    }

    pub(crate) fn observe(&mut self, step: &Step) -> Verdict {
        let calls: Vec<Call<'_>> = step
            .calls
            .iter()
            .map(|(tool, input, ok, output)| Call {
                tool,
                input,
                ok: *ok,
                output,
            })
            .collect();
        self.detector.observe(&Observation {
            calls: &calls,
            external: step.external,
            tree: step.tree,
            at: step.at,
            background: step.background,
        })
    }

    /// Observes a step and returns its progress, if it made any.
    pub(crate) fn progress(&mut self, step: &Step) -> Option<Progress> {
        match self.observe(step) {
            Verdict::Progress { reason } => Some(reason),
            Verdict::Idle { .. }
            | Verdict::Stalled { .. }
            | Verdict::Unjudged { .. }
            | Verdict::Ended => None,
        }
    }

    /// Observes a step and returns the increase of the idle count in halves; `None` for progress.
    pub(crate) fn idle_halves(&mut self, step: &Step) -> Option<u32> {
        let before = self.detector.state().idle_halves;
        match self.observe(step) {
            Verdict::Progress { .. } => None,
            Verdict::Idle { .. } | Verdict::Stalled { .. } | Verdict::Unjudged { .. } => {
                Some(self.detector.state().idle_halves - before)
            }
            Verdict::Ended => Some(0),
        }
    }

    /// Observes steps until the turn is stalled, and returns their number.
    pub(crate) fn stalls_after(&mut self, steps: impl Iterator<Item = Step>) -> Option<usize> {
        let mut steps = (1..).zip(steps);
        steps
            .find(|(_, step)| matches!(self.observe(step), Verdict::Stalled { .. }))
            .map(|(number, _)| number)
    }
}

/// A sentence of more than 60 characters, different for each number.
pub(crate) fn sentence(nth: usize) -> String {
    let word: String = format!("{nth:04}")
        .bytes()
        .map(|digit| char::from(b'a' + (digit - b'0')))
        .collect();
    format!("The {word} report explains why the tide comes in twice each day and night.")
}
