//! Acceptance criteria and evidence as Markdown, for the terminal and for exports.

use onward_core::step::Evidence;

/// A numbered list.
pub(crate) fn numbered(criteria: &[String]) -> String {
    let lines = (1..)
        .zip(criteria)
        .map(|(number, text)| format!("{number}. {text}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// One entry per line: the criterion, and what shows that it is met.
pub(crate) fn evidence_list(evidence: &[Evidence]) -> String {
    let lines = evidence.iter().map(|entry| {
        let kind = entry.kind.as_str().replace('_', " ");
        format!(
            "- {}: {kind} `{}`, {}",
            entry.criterion,
            entry.value.replace('`', "'"),
            entry.outcome
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}
