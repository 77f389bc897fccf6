//! Steps as an agent makes them, and a detector that watches them.

use onward_core::Timestamp;
use onward_core::turn::{
    Call, Observation, Outside, Parts, Progress, ProgressDetector, Rule, TurnPolicy, Verdict,
};
use serde_json::{Value, json};

/// One step, with what its calls showed.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    calls: Vec<(String, Value, Option<bool>, String)>,
    outside: Outside,
    at: Option<Timestamp>,
    background: bool,
}

/// A call of a tool that succeeded and left the world outside as it was.
pub(crate) fn tool(name: &str, input: Value, output: &str) -> Step {
    Step {
        calls: vec![(name.to_owned(), input, Some(true), output.to_owned())],
        outside: Outside::Same,
        at: None,
        background: false,
    }
}

/// A shell command that succeeded and left the world outside as it was.
pub(crate) fn shell(command: &str, output: &str) -> Step {
    tool("Bash", json!({ "command": command }), output)
}

/// A file that was read.
pub(crate) fn read(path: &str, output: &str) -> Step {
    tool("Read", json!({ "file_path": path }), output)
}

/// A step without calls: the answer.
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

    pub(crate) fn outside(mut self, outside: Outside) -> Self {
        self.outside = outside;
        self
    }

    pub(crate) fn changed(self) -> Self {
        self.outside(Outside::Changed)
    }

    pub(crate) fn and(mut self, other: Step) -> Self {
        self.calls.extend(other.calls);
        self
    }

    pub(crate) fn at(mut self, second: i64) -> Self {
        self.at = Some(Timestamp::from_millis(second * 1000));
        self
    }

    /// At a time when somebody knows that a task runs in the background.
    pub(crate) fn waiting_at(self, second: i64) -> Self {
        let mut step = self.at(second);
        step.background = true;
        step
    }

    pub(crate) fn without_a_clock(mut self) -> Self {
        self.at = None;
        self
    }
}

/// A detector, and the steps that it is shown.
pub(crate) struct Desk {
    pub(crate) detector: ProgressDetector,
}

impl Desk {
    pub(crate) fn plain() -> Self {
        Desk::with(TurnPolicy::plain())
    }

    pub(crate) fn default() -> Self {
        Desk::with(TurnPolicy::default())
    }

    /// The default rule with some of its parts switched.
    pub(crate) fn parts(switch: impl Fn(&mut Parts)) -> Self {
        let mut parts = Parts::ALL;
        switch(&mut parts);
        Desk::with(TurnPolicy {
            rule: Rule::Default(parts),
            ..TurnPolicy::default()
        })
    }

    pub(crate) fn with(policy: TurnPolicy) -> Self {
        Desk {
            detector: ProgressDetector::new(policy),
        }
    }

    pub(crate) fn see(&mut self, step: &Step) -> Verdict {
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
            outside: step.outside,
            at: step.at,
            background: step.background,
        })
    }

    /// Sees a step, and says why it got anywhere, if it did.
    pub(crate) fn why(&mut self, step: &Step) -> Option<Progress> {
        match self.see(step) {
            Verdict::Progress { why } => Some(why),
            Verdict::Idle { .. }
            | Verdict::Stalled { .. }
            | Verdict::Unjudged { .. }
            | Verdict::Ended => None,
        }
    }

    /// Sees a step, and says by how many halves of an idle step the count grew. `None`: progress.
    pub(crate) fn halves(&mut self, step: &Step) -> Option<u32> {
        let before = self.detector.state().idle_halves;
        match self.see(step) {
            Verdict::Progress { .. } => None,
            Verdict::Idle { .. } | Verdict::Stalled { .. } | Verdict::Unjudged { .. } => {
                Some(self.detector.state().idle_halves - before)
            }
            Verdict::Ended => Some(0),
        }
    }

    /// Sees steps until it says that the turn is stalled; says after how many that was.
    pub(crate) fn stalls_after(&mut self, steps: impl Iterator<Item = Step>) -> Option<usize> {
        let mut steps = (1..).zip(steps);
        steps
            .find(|(_, step)| matches!(self.see(step), Verdict::Stalled { .. }))
            .map(|(number, _)| number)
    }
}

/// A sentence of more than sixty characters that differs from every other one in its words.
pub(crate) fn sentence(nth: usize) -> String {
    let word: String = format!("{nth:04}")
        .bytes()
        .map(|digit| char::from(b'a' + (digit - b'0')))
        .collect();
    format!("The {word} report says that the tide comes in twice, and why it is so.")
}
