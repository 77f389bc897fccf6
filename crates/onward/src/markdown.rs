//! Markdown export of a plan: question, progress, steps, reviews, artifacts and outputs.
//!
//! Text from agents is written as one escaped line, or in a fence that is longer than all fences
//! inside it. It therefore cannot end its block, add a heading or hide a link.

use std::collections::HashMap;
use std::fmt::Write;

use onward_core::event::{DecidedBy, Decision, ReviewAction};
use onward_core::plan::PlanState;
use onward_core::step::{Step, StepState};
use onward_core::{Event, StepId};
use onward_engine::transfer::FullPlan;
use onward_engine::{Artifact, Entry, Extraction, Output};

use crate::output::evidence::{evidence_list, numbered};
use crate::output::format;

/// Longer text, and text with line breaks, is written in a fence.
const MAX_LINE_CHARS: usize = 300;
/// Maximum characters of an artifact or output.
const MAX_CONTENT_CHARS: usize = 4_000;

/// A review request or decision.
type Review<'a> = (&'a Entry, &'a ReviewAction);

/// The Markdown document of a plan.
pub(crate) fn plan(whole: &FullPlan) -> String {
    let sheet = &whole.plan.sheet;
    let (head, brief) = (&sheet.head, &sheet.brief);
    let mut text = format!("# {}\n\n", escaped(&brief.name));
    text.push_str(&block(&brief.research_question));
    let mut status = format!("`{}`", head.status());
    match &head.state {
        PlanState::Completed { ended_at } => {
            let _ = write!(status, " on {}", format::timestamp(*ended_at));
        }
        PlanState::Failed { reason, ended_at } => {
            let on = format::timestamp(*ended_at);
            let _ = write!(status, " on {on}: {}", escaped(&reason.to_string()));
        }
        PlanState::Planning
        | PlanState::Executing
        | PlanState::AwaitingReview { .. }
        | PlanState::Stalled { .. } => {}
    }
    let counts = &head.counts;
    let _ = writeln!(text, "- Status: {status}");
    let done = counts.completed.saturating_add(counts.skipped);
    let steps = format::count(counts.total(), "step", "steps");
    let _ = write!(
        text,
        "- Progress: {}%, {done} of {steps} done",
        counts.progress()
    );
    if counts.failed > 0 {
        let _ = write!(text, ", {} failed", counts.failed);
    }
    text.push('\n');
    let _ = writeln!(text, "- Created: {}", format::timestamp(sheet.created_at));
    let _ = writeln!(
        text,
        "- Last change: {}",
        format::timestamp(sheet.updated_at)
    );
    let _ = writeln!(text, "- Plan: `{}`\n", head.id);
    for (name, note) in [
        ("Design rationale", &brief.design_rationale),
        ("Output format", &brief.output_formatting_notes),
    ] {
        if let Some(note) = note {
            let _ = write!(text, "## {name}\n\n{}", block(note));
        }
    }
    text.push_str("## Steps\n\n");
    let reviews = reviews(&whole.events);
    for plan_step in &whole.plan.steps {
        let reviews = reviews.get(&plan_step.id()).map_or(&[][..], Vec::as_slice);
        step(plan_step, reviews, &mut text);
    }
    branches(whole, &mut text);
    if !whole.artifacts.is_empty() {
        text.push_str("## Artifacts\n\n");
        for stored in &whole.artifacts {
            artifact(stored, &mut text);
        }
    }
    if !whole.extractions.is_empty() {
        text.push_str("## Extractions\n\n");
        for stored in &whole.extractions {
            extraction(stored, &mut text);
        }
    }
    if !whole.outputs.is_empty() {
        text.push_str("## Outputs\n\n");
        for stored in &whole.outputs {
            output(stored, &mut text);
        }
    }
    let end = text.trim_end().len();
    text.truncate(end);
    text.push('\n');
    text
}

fn step(step: &Step, reviews: &[Review<'_>], text: &mut String) {
    let spec = &step.spec;
    let title = spec
        .title
        .as_deref()
        .map_or(String::new(), |title| format!(": {}", escaped(title)));
    let _ = writeln!(
        text,
        "### {}. {}{title}\n",
        step.order,
        spec.step_type.as_str()
    );
    let mut line = format!("`{}`", step.status());
    if step.attempt() > 1 {
        let _ = write!(line, ", attempt {}", step.attempt());
    }
    match &step.state {
        StepState::Completed {
            ended_at, result, ..
        } => {
            let _ = write!(line, ", {}", format::timestamp(*ended_at));
            if let Some(confidence) = result.confidence {
                let _ = write!(line, ", confidence {confidence}");
            }
        }
        StepState::Skipped { ended_at, .. } => {
            let _ = write!(line, ", {}", format::timestamp(*ended_at));
        }
        StepState::Failed {
            reason, ended_at, ..
        } => {
            let reason = escaped(&reason.to_string());
            let _ = write!(line, ", {}: {reason}", format::timestamp(*ended_at));
        }
        StepState::Pending { .. } | StepState::InProgress(_) | StepState::AwaitingInput { .. } => {}
    }
    let _ = writeln!(text, "{line}\n");
    let _ = write!(text, "**Instructions**\n\n{}", block(&spec.instructions));
    if let Some(gates) = spec.gates.as_deref() {
        if !gates.acceptance_criteria.is_empty() {
            let criteria = block(&numbered(&gates.acceptance_criteria));
            let _ = write!(text, "**Acceptance criteria**\n\n{criteria}");
        }
        if let Some(schema) = &gates.result_schema {
            let schema = fenced(&format::pretty_json(&schema.parse()), "json");
            let _ = write!(text, "**Result schema**\n\n{schema}");
        }
        if let Some(by) = gates.review_by {
            let _ = writeln!(text, "**Review required**: `{by}`\n");
        }
    }
    if let StepState::Completed { result, .. } = &step.state {
        let _ = write!(text, "**Result**\n\n{}", block(&result.summary));
        if !result.evidence.is_empty() {
            let evidence = block(&evidence_list(&result.evidence));
            let _ = write!(text, "**Evidence**\n\n{evidence}");
        }
        if let Some(data) = &result.data {
            text.push_str(&fenced(&format::pretty_json(&data.parse()), "json"));
        }
        if let Some(report) = &result.report {
            let report = fenced(&format::pretty_json(&report.parse()), "json");
            let _ = write!(text, "**Execution report**\n\n{report}");
        }
    }
    for (entry, action) in reviews {
        review(entry, action, text);
    }
}

/// Review requests and decisions of each step, in order.
fn reviews(events: &[Entry]) -> HashMap<StepId, Vec<Review<'_>>> {
    let mut reviews: HashMap<StepId, Vec<Review<'_>>> = HashMap::new();
    for entry in events {
        if let Event::UserReviewed { step, action, .. } = &entry.event {
            reviews.entry(*step).or_default().push((entry, action));
        }
    }
    reviews
}

fn review(entry: &Entry, action: &ReviewAction, text: &mut String) {
    let (at, actor) = (format::timestamp(entry.at), escaped(&entry.author.name));
    match action {
        ReviewAction::Requested {
            summary, questions, ..
        } => {
            let _ = write!(
                text,
                "**Review requested**, {at}, {actor}\n\n{}",
                block(summary)
            );
            for question in questions {
                let _ = writeln!(text, "- {}", escaped(question));
            }
            if !questions.is_empty() {
                text.push('\n');
            }
        }
        ReviewAction::Decided {
            decision,
            feedback,
            answers,
            by,
        } => {
            let by = match by {
                DecidedBy::Reviewer => "",
                DecidedBy::Policy => " by policy",
                DecidedBy::Link { .. } => " with a decision link",
            };
            let _ = writeln!(text, "**Decision**: `{decision}`{by}, {at}, {actor}\n");
            // The feedback of requested changes contains the answers.
            if let Some(answers) = answers.as_ref().filter(|_| *decision != Decision::Modify) {
                let _ = writeln!(text, "Answers: {}\n", escaped(answers.as_str()));
            }
            if let Some(feedback) = feedback {
                text.push_str(&block(feedback));
            }
        }
    }
}

fn branches(whole: &FullPlan, text: &mut String) {
    if whole.plan.branches.is_empty() {
        return;
    }
    text.push_str("## Branches\n\n");
    for branch in &whole.plan.branches {
        let after = whole
            .plan
            .steps
            .iter()
            .find(|step| step.id() == branch.after);
        let after = after.map_or("a deleted step".to_owned(), |step| {
            format!("step {}", step.order)
        });
        let condition = code(branch.condition.source());
        let _ = writeln!(text, "- After {after}, `{}` if {condition}", branch.action);
    }
    text.push('\n');
}

fn artifact(artifact: &Artifact, text: &mut String) {
    let _ = writeln!(text, "### {}\n", escaped(&artifact.title));
    let _ = write!(
        text,
        "{}, {}",
        escaped(&artifact.kind),
        format::timestamp(artifact.created_at)
    );
    if let Some(url) = &artifact.source_url {
        let _ = write!(text, ", {}", code(url));
    }
    text.push_str("\n\n");
    content(&artifact.content, text);
}

fn extraction(extraction: &Extraction, text: &mut String) {
    let valid = if extraction.is_valid() {
        "valid"
    } else {
        "invalid"
    };
    let at = format::timestamp(extraction.created_at);
    let _ = writeln!(text, "{valid}, by {}, {at}\n", code(&extraction.model));
    for issue in &extraction.issues {
        let _ = writeln!(text, "- {}: {}", code(&issue.path), escaped(&issue.message));
    }
    if !extraction.is_valid() {
        text.push('\n');
    }
    text.push_str(&fenced(&format::pretty_json(&extraction.data), "json"));
}

fn output(output: &Output, text: &mut String) {
    let _ = writeln!(text, "### {}\n", escaped(&output.title));
    let at = format::timestamp(output.created_at);
    let (version, kind) = (output.version, escaped(&output.media_type));
    let _ = writeln!(text, "version {version}, {kind}, {at}\n");
    content(&output.content, text);
}

/// Stored content, truncated.
fn content(content: &str, text: &mut String) {
    let length = content.chars().count();
    if length <= MAX_CONTENT_CHARS {
        text.push_str(&fenced(content, "text"));
        return;
    }
    let excerpt: String = content.chars().take(MAX_CONTENT_CHARS).collect();
    text.push_str(&fenced(&excerpt, "text"));
    let _ = writeln!(
        text,
        "First {MAX_CONTENT_CHARS} of {length} characters; see the JSON export for the rest.\n"
    );
}

/// A paragraph: one line if the text is short, otherwise a fence.
fn block(text: &str) -> String {
    let text = text.trim();
    if text.contains('\n') || text.chars().count() > MAX_LINE_CHARS {
        fenced(text, "text")
    } else {
        format!("{}\n\n", escaped(text))
    }
}

/// A fenced block. The fence is longer than all backtick runs inside.
fn fenced(text: &str, language: &str) -> String {
    let text = format::sanitize(text);
    let fence = "`".repeat((longest_run(&text) + 1).max(3));
    format!("{fence}{language}\n{text}\n{fence}\n\n")
}

/// A code span. Its delimiter is longer than all backtick runs inside.
fn code(text: &str) -> String {
    let text = format::sanitize_line(text);
    let ticks = "`".repeat(longest_run(&text) + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') || text.is_empty() {
        " "
    } else {
        ""
    };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

fn longest_run(text: &str) -> usize {
    let mut longest = 0;
    let mut run = 0;
    for char in text.chars() {
        run = if char == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// One line with all Markdown syntax escaped.
fn escaped(text: &str) -> String {
    let line = format::sanitize_line(text);
    let mut safe = String::with_capacity(line.len());
    for (index, char) in line.char_indices() {
        // These start a list or heading at the start of a line; an ordered list has a number first.
        let starts_block = matches!(char, '+' | '-' | '=') && index == 0;
        let ordered = matches!(char, '.' | ')')
            && line.get(..index).is_some_and(|before| {
                !before.is_empty() && before.bytes().all(|byte| byte.is_ascii_digit())
            });
        let special = matches!(
            char,
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '~' | '&' | '$' | '!'
        );
        if special || starts_block || ordered {
            safe.push('\\');
        }
        safe.push(char);
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_are_longer_than_backticks_inside() {
        let text = fenced("a\n````\nb\n```", "text");
        assert!(text.starts_with("`````text\n"), "{text}");
        assert!(text.trim_end().ends_with("\n`````"), "{text}");
    }

    #[test]
    fn escapes_markdown_syntax() {
        assert_eq!(
            escaped("# a <b> [c](d) *e*"),
            "\\# a \\<b\\> \\[c\\](d) \\*e\\*"
        );
        assert_eq!(escaped("- a\n# b"), "\\- a \\# b");
        assert_eq!(escaped("12. a 3. b"), "12\\. a 3. b");
        assert_eq!(escaped("&amp; \\"), "\\&amp; \\\\");
    }

    #[test]
    fn code_spans_are_longer_than_backticks_inside() {
        assert_eq!(code("a"), "`a`");
        assert_eq!(code("a ` b"), "``a ` b``");
        assert_eq!(code("`"), "`` ` ``");
    }
}
