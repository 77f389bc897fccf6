//! The tabs of a plan page besides the steps: activity in sentences, and files. Only the selected
//! tab is loaded.

use std::collections::HashSet;
use std::time::Duration;

use onward_core::event::ReviewAction;
use onward_core::{Event, StepId, Timestamp};
use onward_engine::audit::AuditEntry;
use onward_engine::status::Status;
use onward_engine::{Extraction, ToolCall};
use serde_json::{Value, json};

use super::TabLink;
use crate::output::format;
use crate::output::trail::{self, Trail};
use crate::web::pages::agent_name::person;
use crate::web::pages::format::{Clock, RelativeTime, multiline, one_line};
use crate::web::pages::markdown_html::{self, MarkdownHtml};
use crate::web::pages::text::{self, Body, VersionLink};
use crate::web::pages::{Fields, PageError, Visit};

/// Number of events per page.
const PAGE_SIZE: u32 = 100;
/// Bytes of the events of a page.
const PAGE_BYTES: u64 = 256 * 1024;
/// Maximum number of artifacts, extractions or outputs.
const MAX_FILES: u32 = 100;
/// Number of tool calls that are searched for calls of this plan, per page.
const MAX_CALLS: u32 = 1_000;
const MAX_CHARS: usize = 4_000;
/// Columns of a sentence.
const MAX_SENTENCE: usize = 300;

/// A tab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tab {
    Steps,
    Activity,
    Files,
    About,
}

impl Tab {
    /// The selected tab. Addresses of earlier versions lead to the tab with the same content.
    pub(super) fn from_fields(fields: &Fields) -> Self {
        match fields.get("tab").unwrap_or_default() {
            "activity" | "audit" | "reviews" | "calls" => Tab::Activity,
            "files" | "outputs" | "artifacts" | "extractions" => Tab::Files,
            "about" | "branches" => Tab::About,
            _ => Tab::Steps,
        }
    }
}

/// The tabs of a plan page.
pub(super) struct Tabs {
    pub(super) links: Vec<TabLink>,
    /// Whether the plan has an output.
    pub(super) has_output: bool,
    /// The content of the selected tab.
    pub(super) activity: Option<Activity>,
    pub(super) files: Option<Files>,
}

/// The activity of a plan.
pub(super) struct Activity {
    pub(super) rows: Vec<ActivityRow>,
    pub(super) filters: Vec<(&'static str, &'static str, bool)>,
    pub(super) selected: &'static str,
    pub(super) next: Option<u64>,
    pub(super) is_later: bool,
}

/// An entry of the audit trail, or a tool call.
pub(super) struct ActivityRow {
    /// The fragment of its address.
    pub(super) anchor: String,
    pub(super) at: Clock,
    pub(super) author: String,
    /// Whether it concerns the same step in the same minute as the entry above it.
    pub(super) is_continued: bool,
    /// Whether the entry above it in the group has the same author.
    pub(super) is_same_author: bool,
    pub(super) sentence: String,
    pub(super) is_failure: bool,
    /// The text and the questions of a review.
    pub(super) review: Option<(MarkdownHtml, Vec<MarkdownHtml>)>,
    /// What `details` shows.
    pub(super) name: String,
    pub(super) details: String,
}

/// The files of a plan.
pub(super) struct Files {
    /// The selected output, or the newest one if the plan has ended.
    pub(super) shown: Option<ShownOutput>,
    pub(super) outputs: Vec<OutputRow>,
    pub(super) artifacts: Vec<ArtifactRow>,
    pub(super) extractions: Vec<ExtractionRow>,
}

/// An output with its text.
pub(super) struct ShownOutput {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) version: u32,
    pub(super) versions: Vec<VersionLink>,
    pub(super) body: Body,
}

pub(super) struct ArtifactRow {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) kind: String,
    pub(super) at: RelativeTime,
    pub(super) excerpt: String,
}

pub(super) struct ExtractionRow {
    pub(super) id: String,
    pub(super) artifact: Option<String>,
    pub(super) at: RelativeTime,
    pub(super) model: String,
    pub(super) actor: String,
    pub(super) issues: Vec<(String, String)>,
    pub(super) data: String,
    pub(super) schema: String,
}

pub(super) struct OutputRow {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) version: u32,
    pub(super) media_type: String,
    pub(super) at: RelativeTime,
    pub(super) excerpt: String,
}

/// Loads the selected tab, and the numbers of items of all tabs.
pub(super) async fn load(visit: &Visit, tab: Tab, status: &Status) -> Result<Tabs, PageError> {
    let engine = &visit.site.engine;
    let head = &status.sheet.head;
    let outputs = engine.outputs(&visit.caller, head.id, MAX_FILES).await?;
    let artifacts = engine.artifacts(&visit.caller, head.id, MAX_FILES).await?;
    let files = outputs.len() + artifacts.len();
    let all = activity(visit, status, "", None).await?;
    let more = if all.next.is_some() { "+" } else { "" };
    let entries = format!("{}{more}", all.rows.len());
    let link = |link, name, slug, count| TabLink {
        name,
        slug,
        count,
        selected: link == tab,
    };
    let steps = head.counts.total().to_string();
    let asked = match visit.fields.get("tab") {
        Some("calls") => "calls",
        Some(_) | None => visit.fields.get("who").unwrap_or_default(),
    };
    let from = visit.fields.parsed("from");
    Ok(Tabs {
        links: vec![
            link(Tab::Steps, "Steps", "steps", Some(steps)),
            link(Tab::Activity, "Activity", "activity", Some(entries)),
            link(Tab::Files, "Files", "files", Some(files.to_string())),
            link(Tab::About, "About", "about", None),
        ],
        has_output: !outputs.is_empty(),
        activity: match tab {
            Tab::Activity if asked.is_empty() && from.is_none() => Some(all),
            Tab::Activity => Some(activity(visit, status, asked, from).await?),
            Tab::Steps | Tab::Files | Tab::About => None,
        },
        files: match tab {
            Tab::Files => Some(self::files(visit, status).await?),
            Tab::Steps | Tab::Activity | Tab::About => None,
        },
    })
}

/// The filters of the activity: value, label.
const FILTERS: [(&str, &str); 6] = [
    ("", "All"),
    ("people", "People"),
    ("agents", "Agents"),
    ("onward", "Onward"),
    ("failures", "Failures"),
    ("calls", "Tool calls"),
];

/// The author of the changes that Onward makes.
const ONWARD: &str = "sweep";

/// Whether an entry of the audit trail matches a filter.
fn matches(filter: &str, entry: &AuditEntry) -> bool {
    let (author, event) = (&entry.entry.author, &entry.entry.event);
    let by_onward = author.name == ONWARD;
    let by_agent = !by_onward && (author.session.is_some() || is_agents(event));
    match filter {
        "people" => !by_onward && !by_agent,
        "agents" => by_agent,
        "onward" => by_onward,
        "failures" => is_failure(event),
        "calls" => false,
        _ => true,
    }
}

/// Whether only agents cause the event.
fn is_agents(event: &Event) -> bool {
    let is_decision = matches!(
        event,
        Event::UserReviewed {
            action: ReviewAction::Decided { .. },
            ..
        }
    );
    event.is_agent_activity() && !is_decision
}

fn is_failure(event: &Event) -> bool {
    matches!(
        event,
        Event::StepFailed { .. }
            | Event::PlanFailed { .. }
            | Event::PlanStalled { .. }
            | Event::BudgetExhausted { .. }
            | Event::LateResultKept { .. }
    )
}

/// The entries that match a filter, from an event of the audit trail on.
async fn activity(
    visit: &Visit,
    status: &Status,
    filter: &str,
    from: Option<u64>,
) -> Result<Activity, PageError> {
    let engine = &visit.site.engine;
    let plan = status.sheet.head.id;
    let selected = FILTERS.iter().find(|(value, _)| *value == filter);
    let selected = selected.map_or("", |(value, _)| *value);
    let filters = FILTERS
        .map(|(value, label)| (value, label, value == selected))
        .to_vec();
    let (entries, next) = engine
        .audit_trail_backwards(&visit.caller, plan, from, None, PAGE_SIZE, PAGE_BYTES)
        .await?;
    let names = engine.step_states(&visit.caller, plan).await?;
    let mut trail = Trail::new(names.iter().map(|mark| (mark.id, mark.order, None)));
    let now = engine.now();
    let mut items = Vec::new();
    // Sentences refer to earlier events.
    for entry in entries.iter().rev() {
        let sentence = trail.sentence(&entry.entry.event, entry.entry.at);
        let sentence = sentence.filter(|_| matches(selected, entry));
        items.extend(sentence.map(|sentence| Item {
            at: entry.entry.at,
            step: entry.entry.event.step(),
            row: row(entry, &sentence, now),
        }));
    }
    if ["", "agents", "failures", "calls"].contains(&selected) {
        // The calls during this page of the audit trail.
        let first = entries.first().filter(|_| from.is_some());
        let last = entries.last().filter(|_| next.is_some());
        let times = last.map_or(status.sheet.created_at, |last| last.entry.at)
            ..=first.map_or(Timestamp::MAX, |first| first.entry.at);
        let calls = engine.logged_requests(&visit.caller, Some(times), MAX_CALLS);
        let mut calls = calls.await?;
        let plan = plan.to_string();
        let steps: HashSet<StepId> = names.iter().map(|mark| mark.id).collect();
        calls.retain(|call| {
            let names_plan =
                |value: &Value| value.get("planId").and_then(Value::as_str) == Some(&plan);
            let of_step = step_of(call).is_some_and(|step| steps.contains(&step));
            of_step || names_plan(&call.request) || names_plan(&call.response)
        });
        let calls = calls.iter().filter(|call| match selected {
            "failures" => call.is_error,
            "calls" => true,
            _ => !is_recorded(call, &entries),
        });
        items.extend(calls.map(|call| call_item(call, now)));
    }
    items.sort_by_key(|item| item.at);
    let mut rows: Vec<ActivityRow> = Vec::new();
    let mut above = None;
    for Item { at, step, mut row } in items.into_iter().rev() {
        let group = Some((step, at.as_millis() / 60_000));
        row.is_continued = above == group;
        let last = rows.last().filter(|_| row.is_continued);
        row.is_same_author = last.is_some_and(|last| last.author == row.author);
        above = group;
        rows.push(row);
    }
    Ok(Activity {
        rows,
        filters,
        selected,
        next,
        is_later: from.is_some(),
    })
}

/// An entry of the list, with what it is sorted and grouped by.
struct Item {
    at: Timestamp,
    step: Option<StepId>,
    row: ActivityRow,
}

/// Whether the audit trail contains an entry that the call has probably written: the sentence of
/// that entry describes the call.
fn is_recorded(call: &ToolCall, entries: &[AuditEntry]) -> bool {
    let millis = i64::try_from(call.duration_us / 1_000).unwrap_or(i64::MAX);
    let began = call.at.as_millis().saturating_sub(millis).saturating_sub(1);
    let during = began..=call.at.as_millis();
    let is_own = |entry: &&AuditEntry| entry.entry.author.name == call.actor;
    let mut own = entries.iter().filter(is_own);
    !call.is_error && own.any(|entry| during.contains(&entry.entry.at.as_millis()))
}

/// The step that a call names.
fn step_of(call: &ToolCall) -> Option<StepId> {
    call.request.get("stepId")?.as_str()?.parse().ok()
}

fn call_item(call: &ToolCall, now: Timestamp) -> Item {
    let duration = format::duration(Duration::from_micros(call.duration_us));
    let message = call.response.pointer("/error/message");
    let sentence = if call.is_error {
        let message = message.and_then(Value::as_str).unwrap_or_default();
        format!("call of {} failed: {message}", call.tool)
    } else {
        format!("called {} ({duration})", call.tool)
    };
    Item {
        at: call.at,
        step: step_of(call),
        row: ActivityRow {
            anchor: format!("call-{}", call.id),
            at: Clock::new(call.at, now),
            author: one_line(&trail::author(&call.actor, call.session.as_deref()), 60),
            is_continued: false,
            is_same_author: false,
            sentence: one_line(&sentence, MAX_SENTENCE),
            is_failure: call.is_error,
            review: None,
            name: one_line(&call.tool, 60),
            details: json(&json!({
                "request": call.request,
                "response": call.response,
                "duration": duration,
            })),
        },
    }
}

fn row(entry: &AuditEntry, sentence: &str, now: Timestamp) -> ActivityRow {
    let author = &entry.entry.author;
    let session = author.session.as_ref().map(|id| id.as_str());
    let review = if let Event::UserReviewed {
        action: ReviewAction::Requested {
            summary, questions, ..
        },
        ..
    } = &entry.entry.event
    {
        Some((
            MarkdownHtml::render(summary, MAX_CHARS),
            questions
                .iter()
                .map(|text| MarkdownHtml::render(text, MAX_CHARS))
                .collect(),
        ))
    } else {
        None
    };
    ActivityRow {
        anchor: format!("event-{}", entry.entry.seq),
        at: Clock::new(entry.entry.at, now),
        author: one_line(&trail::author(&author.name, session), 60),
        is_continued: false,
        is_same_author: false,
        sentence: one_line(&markdown_html::plain_text(sentence), MAX_SENTENCE),
        is_failure: is_failure(&entry.entry.event),
        review,
        name: format!("{} #{}", entry.name, entry.entry.seq),
        details: json(&entry.details.parse()),
    }
}

async fn files(visit: &Visit, status: &Status) -> Result<Files, PageError> {
    let engine = &visit.site.engine;
    let plan = status.sheet.head.id;
    let now = engine.now();
    let outputs = engine.outputs(&visit.caller, plan, MAX_FILES).await?;
    let shown = shown_output(visit, status, &outputs).await?;
    let output = |output: onward_engine::OutputExcerpt| OutputRow {
        id: output.id.to_string(),
        title: one_line(&output.title, 200),
        version: output.version,
        media_type: one_line(&output.media_type, 100),
        at: RelativeTime::new(output.created_at, now),
        excerpt: excerpt(&output.excerpt, output.is_truncated),
    };
    let artifact = |artifact: onward_engine::Excerpt| ArtifactRow {
        id: artifact.id.to_string(),
        title: one_line(&artifact.title, 200),
        kind: one_line(&artifact.kind, 40),
        at: RelativeTime::new(artifact.created_at, now),
        excerpt: excerpt(&artifact.excerpt, artifact.is_truncated),
    };
    let extraction = |extraction: &Extraction| ExtractionRow {
        id: extraction.id.to_string(),
        artifact: extraction.artifact.map(|id| id.to_string()),
        at: RelativeTime::new(extraction.created_at, now),
        model: one_line(&extraction.model, 60),
        actor: person(&extraction.actor),
        issues: extraction
            .issues
            .iter()
            .map(|issue| (one_line(&issue.path, 100), one_line(&issue.message, 300)))
            .collect(),
        data: json(&extraction.data),
        schema: json(&extraction.schema),
    };
    let artifacts = engine.artifacts(&visit.caller, plan, MAX_FILES).await?;
    let extractions = engine.extractions(&visit.caller, plan, MAX_FILES).await?;
    Ok(Files {
        shown,
        outputs: outputs.into_iter().map(output).collect(),
        artifacts: artifacts.into_iter().map(artifact).collect(),
        extractions: extractions.iter().rev().map(extraction).collect(),
    })
}

/// The output in the query field `output`, in any version, or the newest one if the plan has ended.
async fn shown_output(
    visit: &Visit,
    status: &Status,
    outputs: &[onward_engine::OutputExcerpt],
) -> Result<Option<ShownOutput>, PageError> {
    let engine = &visit.site.engine;
    let head = &status.sheet.head;
    let newest = || outputs.first().filter(|_| head.ended_at().is_some());
    let selected = visit.fields.parsed("output");
    let Some(id) = selected.or_else(|| newest().map(|newest| newest.id)) else {
        return Ok(None);
    };
    let found = match engine.output(&visit.caller, id).await {
        Ok(output) => Some(output).filter(|output| output.plan == head.id),
        Err(onward_engine::Error::NotFound { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let Some(output) = found else {
        return Ok(None);
    };
    Ok(Some(ShownOutput {
        id: output.id.to_string(),
        title: one_line(&output.title, 200),
        version: output.version,
        versions: text::versions(visit, &output).await?,
        body: Body::of_output(visit, &output),
    }))
}

/// The start of a Markdown text, as plain text.
fn excerpt(start: &str, is_truncated: bool) -> String {
    let text = format::sanitize_line(&markdown_html::plain_text(start));
    if is_truncated {
        format!("{text} …")
    } else {
        text
    }
}

/// Pretty-printed JSON, truncated.
fn json(value: &impl serde::Serialize) -> String {
    multiline(&format::pretty_json(value), MAX_CHARS)
}
