//! A handful of conditions whose truth is easily said without a language: each stands beside a
//! function that answers the same. `None`: it cannot be evaluated, and counts as false.

use onward_core::step::StepResult;
use serde_json::Value;

/// What a condition sees.
pub(crate) struct Seen<'a> {
    pub(crate) result: &'a StepResult,
    pub(crate) order: u32,
    pub(crate) step_type: &'static str,
    pub(crate) attempt: u32,
    pub(crate) progress: u32,
    pub(crate) completed: u32,
    pub(crate) failed: u32,
    pub(crate) pending: u32,
}

impl Seen<'_> {
    fn field(&self, name: &str) -> Option<&Value> {
        self.result.data.as_ref()?.get(name)
    }

    fn sure(&self, test: impl FnOnce(f64) -> bool) -> Option<bool> {
        self.result.confidence.map(test)
    }
}

type Truth = fn(&Seen<'_>) -> Option<bool>;

/// The conditions that there are.
pub(crate) const ALL: [(&str, Truth); 14] = [
    ("true", |_| Some(true)),
    ("1 > 2", |_| Some(false)),
    ("confidence >= 0.8", |seen| seen.sure(|sure| sure >= 0.8)),
    ("confidence < 0.5", |seen| seen.sure(|sure| sure < 0.5)),
    ("result.verdict === \"reject\"", |seen| {
        seen.field("verdict").map(|verdict| verdict == "reject")
    }),
    ("verdict !== \"ok\"", |seen| {
        seen.field("verdict").map(|verdict| verdict != "ok")
    }),
    ("result.sources.size() < 3", |seen| {
        let sources = seen.field("sources").and_then(Value::as_array);
        sources.map(|sources| sources.len() < 3)
    }),
    ("resultSummary.contains(\"again\")", |seen| {
        Some(seen.result.summary.contains("again"))
    }),
    ("step.attempt > 1", |seen| Some(seen.attempt > 1)),
    ("step.type == \"search\" && step.order <= 3", |seen| {
        Some(seen.step_type == "search" && seen.order <= 3)
    }),
    ("plan.completed >= 2", |seen| Some(seen.completed >= 2)),
    ("plan.pending == 0", |seen| Some(seen.pending == 0)),
    ("plan.progress >= 50", |seen| Some(seen.progress >= 50)),
    ("plan.failed > 0 || confidence > 0.9", |seen| {
        match seen.failed {
            0 => seen.sure(|sure| sure > 0.9),
            _ => Some(true),
        }
    }),
];

/// What is no condition.
pub(crate) const NONE: [&str; 3] = ["confidence >=", "(true", "result..verdict"];

/// Whether it is true.
pub(crate) fn truth(condition: &str, seen: &Seen<'_>) -> Option<bool> {
    let known = ALL.iter().find(|(source, _)| *source == condition);
    known.expect("it is one of ours").1(seen)
}
