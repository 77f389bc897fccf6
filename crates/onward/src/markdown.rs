//! A plan for people, in Markdown: what was asked, how far it is, what came out.
//!
//! Whatever agents wrote stands either in one escaped line or in a fence that is longer than any
//! fence inside, so that no text can end its place in the document, open a heading or hide a link.

use std::collections::HashMap;
use std::fmt::Write;

use onward_core::event::ReviewAction;
use onward_core::plan::PlanState;
use onward_core::step::{Step, StepState};
use onward_core::{Event, StepId};
use onward_engine::transfer::Whole;
use onward_engine::{Artifact, Entry, Extraction, Output};

use crate::output::words;

/// Text up to this length, without line breaks, stands in a line of its own.
const SHORT: usize = 300;
/// How much of an artifact is shown.
const EXCERPT: usize = 4_000;

/// A question to a person, or their answer.
type Asked<'a> = (&'a Entry, &'a ReviewAction);

/// The document.
pub(crate) fn plan(whole: &Whole) -> String {
    let sheet = &whole.plan.sheet;
    let (head, brief) = (&sheet.head, &sheet.brief);
    let mut text = format!("# {}\n\n", escaped(&brief.name));
    text.push_str(&block(&brief.research_question));
    let mut standing = format!("`{}`", head.status());
    match &head.state {
        PlanState::Completed { ended_at } => {
            let _ = write!(standing, " on {}", words::instant(*ended_at));
        }
        PlanState::Failed { reason, ended_at } => {
            let on = words::instant(*ended_at);
            let _ = write!(standing, " on {on}: {}", escaped(&reason.to_string()));
        }
        PlanState::Planning
        | PlanState::Executing
        | PlanState::AwaitingReview { .. }
        | PlanState::Stalled { .. } => {}
    }
    let counts = &head.counts;
    let _ = writeln!(text, "- Status: {standing}");
    let done = counts.completed.saturating_add(counts.skipped);
    let steps = words::count(counts.total(), "step", "steps");
    let _ = write!(
        text,
        "- Progress: {}%, {done} of {steps} done",
        counts.progress()
    );
    if counts.failed > 0 {
        let _ = write!(text, ", {} failed", counts.failed);
    }
    text.push('\n');
    let _ = writeln!(text, "- Created: {}", words::instant(sheet.created_at));
    let _ = writeln!(text, "- Changed: {}", words::instant(sheet.updated_at));
    let _ = writeln!(text, "- Plan: `{}`\n", head.id);
    for (name, said) in [
        ("Why it is designed like this", &brief.design_rationale),
        ("How the output should look", &brief.output_formatting_notes),
    ] {
        if let Some(said) = said {
            let _ = write!(text, "## {name}\n\n{}", block(said));
        }
    }
    text.push_str("## Steps\n\n");
    let reviews = reviews(&whole.trail);
    for one in &whole.plan.steps {
        let about = reviews.get(&one.id()).map_or(&[][..], Vec::as_slice);
        step(one, about, &mut text);
    }
    branches(whole, &mut text);
    if !whole.artifacts.is_empty() {
        text.push_str("## Artifacts\n\n");
        for one in &whole.artifacts {
            artifact(one, &mut text);
        }
    }
    if !whole.extractions.is_empty() {
        text.push_str("## Extractions\n\n");
        for one in &whole.extractions {
            extraction(one, &mut text);
        }
    }
    if !whole.outputs.is_empty() {
        text.push_str("## Outputs\n\n");
        for one in &whole.outputs {
            output(one, &mut text);
        }
    }
    let end = text.trim_end().len();
    text.truncate(end);
    text.push('\n');
    text
}

fn step(step: &Step, reviews: &[Asked<'_>], text: &mut String) {
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
            let _ = write!(line, ", {}", words::instant(*ended_at));
            if let Some(confidence) = result.confidence {
                let _ = write!(line, ", confidence {confidence}");
            }
        }
        StepState::Skipped { ended_at, .. } => {
            let _ = write!(line, ", {}", words::instant(*ended_at));
        }
        StepState::Failed {
            reason, ended_at, ..
        } => {
            let why = escaped(&reason.to_string());
            let _ = write!(line, ", {}: {why}", words::instant(*ended_at));
        }
        StepState::Pending { .. } | StepState::InProgress(_) | StepState::AwaitingInput { .. } => {}
    }
    let _ = writeln!(text, "{line}\n");
    let _ = write!(text, "**To do**\n\n{}", block(&spec.instructions));
    if let StepState::Completed { result, .. } = &step.state {
        let _ = write!(text, "**Result**\n\n{}", block(&result.summary));
        if let Some(data) = &result.data {
            text.push_str(&fenced(&words::pretty_json(data), "json"));
        }
    }
    for (entry, action) in reviews {
        review(entry, action, text);
    }
}

/// What was asked and answered about each step, in the order in which it was.
fn reviews(trail: &[Entry]) -> HashMap<StepId, Vec<Asked<'_>>> {
    let mut reviews: HashMap<StepId, Vec<Asked<'_>>> = HashMap::new();
    for entry in trail {
        if let Event::UserReviewed { step, action, .. } = &entry.event {
            reviews.entry(*step).or_default().push((entry, action));
        }
    }
    reviews
}

fn review(entry: &Entry, action: &ReviewAction, text: &mut String) {
    let (at, who) = (words::instant(entry.at), escaped(&entry.author.name));
    match action {
        ReviewAction::Requested {
            summary, questions, ..
        } => {
            let _ = write!(text, "**Review asked**, {at}, {who}\n\n{}", block(summary));
            for question in questions {
                let _ = writeln!(text, "- {}", escaped(question));
            }
            if !questions.is_empty() {
                text.push('\n');
            }
        }
        ReviewAction::Decided { decision, feedback } => {
            let _ = writeln!(text, "**Review decided**: `{decision}`, {at}, {who}\n");
            if let Some(feedback) = feedback {
                text.push_str(&block(feedback));
            }
        }
    }
}

fn branches(whole: &Whole, text: &mut String) {
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
        let after = after.map_or("a step that is gone".to_owned(), |step| {
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
        words::instant(artifact.created_at)
    );
    if let Some(url) = &artifact.source_url {
        let _ = write!(text, ", {}", code(url));
    }
    text.push_str("\n\n");
    beginning(&artifact.content, text);
}

fn extraction(extraction: &Extraction, text: &mut String) {
    let valid = match extraction.is_valid() {
        true => "valid",
        false => "not valid",
    };
    let at = words::instant(extraction.created_at);
    let _ = writeln!(text, "{valid}, by {}, {at}\n", code(&extraction.model));
    for issue in &extraction.issues {
        let _ = writeln!(text, "- {}: {}", code(&issue.path), escaped(&issue.message));
    }
    if !extraction.is_valid() {
        text.push('\n');
    }
    text.push_str(&fenced(&words::pretty_json(&extraction.data), "json"));
}

fn output(output: &Output, text: &mut String) {
    let _ = writeln!(text, "### {}\n", escaped(&output.title));
    let at = words::instant(output.created_at);
    let (version, kind) = (output.version, escaped(&output.media_type));
    let _ = writeln!(text, "version {version}, {kind}, {at}\n");
    beginning(&output.content, text);
}

/// A text, or as much of it as people read.
fn beginning(content: &str, text: &mut String) {
    let length = content.chars().count();
    if length <= EXCERPT {
        text.push_str(&fenced(content, "text"));
        return;
    }
    let excerpt: String = content.chars().take(EXCERPT).collect();
    text.push_str(&fenced(&excerpt, "text"));
    let _ = writeln!(
        text,
        "The first {EXCERPT} of {length} characters; the JSON export has all.\n"
    );
}

/// A text of its own: a line where it is short, or else a fence.
fn block(text: &str) -> String {
    let text = text.trim();
    if text.contains('\n') || text.chars().count() > SHORT {
        fenced(text, "text")
    } else {
        format!("{}\n\n", escaped(text))
    }
}

/// A fence that nothing inside can end.
fn fenced(text: &str, language: &str) -> String {
    let text = words::lines(text);
    let fence = "`".repeat((longest_run(&text) + 1).max(3));
    format!("{fence}{language}\n{text}\n{fence}\n\n")
}

/// A span of code that nothing inside can end.
fn code(text: &str) -> String {
    let text = words::line(text);
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

/// One line in which nothing means anything to Markdown.
fn escaped(text: &str) -> String {
    let line = words::line(text);
    let mut safe = String::with_capacity(line.len());
    for (place, char) in line.char_indices() {
        // A list or a heading begins only at the beginning, an ordered list after its number.
        let begins = matches!(char, '+' | '-' | '=') && place == 0;
        let ordered = matches!(char, '.' | ')')
            && line.get(..place).is_some_and(|before| {
                !before.is_empty() && before.bytes().all(|byte| byte.is_ascii_digit())
            });
        let special = matches!(
            char,
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '~' | '&' | '$' | '!'
        );
        if special || begins || ordered {
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
    fn a_fence_is_longer_than_any_inside() {
        let text = fenced("a\n````\nb\n```", "text");
        assert!(text.starts_with("`````text\n"), "{text}");
        assert!(text.trim_end().ends_with("\n`````"), "{text}");
    }

    #[test]
    fn no_line_means_anything_to_markdown() {
        assert_eq!(
            escaped("# a <b> [c](d) *e*"),
            "\\# a \\<b\\> \\[c\\](d) \\*e\\*"
        );
        assert_eq!(escaped("- a\n# b"), "\\- a \\# b");
        assert_eq!(escaped("12. a 3. b"), "12\\. a 3. b");
        assert_eq!(escaped("&amp; \\"), "\\&amp; \\\\");
    }

    #[test]
    fn code_is_not_ended_by_what_it_holds() {
        assert_eq!(code("a"), "`a`");
        assert_eq!(code("a ` b"), "``a ` b``");
        assert_eq!(code("`"), "`` ` ``");
    }
}
