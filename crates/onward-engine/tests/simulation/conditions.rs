//! Branch conditions with an equivalent Rust function each. `None` means that the condition cannot
//! be evaluated, which counts as false.

use onward_core::step::StepResult;
use serde_json::Value;

/// The variables of a condition.
pub(crate) struct ConditionInput<'a> {
    pub(crate) result: &'a StepResult,
    pub(crate) order: u32,
    pub(crate) step_type: &'static str,
    pub(crate) attempt: u32,
    pub(crate) progress: u32,
    pub(crate) completed: u32,
    pub(crate) failed: u32,
    pub(crate) pending: u32,
}

impl ConditionInput<'_> {
    fn field(&self, name: &str) -> Option<Value> {
        self.result.data.as_ref()?.parse()?.get(name).cloned()
    }

    fn confidence(&self, test: impl FnOnce(f64) -> bool) -> Option<bool> {
        self.result.confidence.map(test)
    }
}

type Evaluate = fn(&ConditionInput<'_>) -> Option<bool>;

pub(crate) const ALL: [(&str, Evaluate); 14] = [
    ("true", |_| Some(true)),
    ("1 > 2", |_| Some(false)),
    ("confidence >= 0.8", |input| {
        input.confidence(|value| value >= 0.8)
    }),
    ("confidence < 0.5", |input| {
        input.confidence(|value| value < 0.5)
    }),
    ("result.verdict === \"reject\"", |input| {
        input.field("verdict").map(|verdict| verdict == "reject")
    }),
    ("verdict !== \"ok\"", |input| {
        input.field("verdict").map(|verdict| verdict != "ok")
    }),
    ("result.sources.size() < 3", |input| {
        let sources = input.field("sources")?;
        Some(sources.as_array()?.len() < 3)
    }),
    ("resultSummary.contains(\"again\")", |input| {
        Some(input.result.summary.contains("again"))
    }),
    ("step.attempt > 1", |input| Some(input.attempt > 1)),
    ("step.type == \"search\" && step.order <= 3", |input| {
        Some(input.step_type == "search" && input.order <= 3)
    }),
    ("plan.completed >= 2", |input| Some(input.completed >= 2)),
    ("plan.pending == 0", |input| Some(input.pending == 0)),
    ("plan.progress >= 50", |input| Some(input.progress >= 50)),
    ("plan.failed > 0 || confidence > 0.9", |input| {
        match input.failed {
            0 => input.confidence(|value| value > 0.9),
            _ => Some(true),
        }
    }),
];

/// Texts that are not conditions.
pub(crate) const INVALID: [&str; 3] = ["confidence >=", "(true", "result..verdict"];

pub(crate) fn evaluate(condition: &str, input: &ConditionInput<'_>) -> Option<bool> {
    let condition = ALL.iter().find(|(source, _)| *source == condition);
    condition.expect("condition is in the list").1(input)
}
