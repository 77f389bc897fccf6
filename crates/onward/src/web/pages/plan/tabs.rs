//! The tabs of a plan page. Only the selected tab is loaded.

use onward_core::branch::{Action, Branch};
use onward_core::event::ReviewAction;
use onward_core::{Event, StepId, Timestamp};
use onward_engine::audit::AuditEntry;
use onward_engine::status::Status;
use onward_engine::{Extraction, StepLine, ToolCall};
use serde_json::Value;

use super::{TabLink, step_name};
use crate::output::format;
use crate::web::pages::format::{Badge, RelativeTime, multiline, one_line};
use crate::web::pages::markdown_html::{self, MarkdownHtml};
use crate::web::pages::timeline::{self, Timeline};
use crate::web::pages::{Fields, PageError, Visit};

/// Number of steps or events per page.
const PAGE_SIZE: u32 = 50;
/// Bytes of the events of a page.
const PAGE_BYTES: u64 = 256 * 1024;
/// Number of steps before the current one on the first page.
const STEPS_BEFORE_CURRENT: u32 = 10;
/// Maximum number of artifacts, extractions or outputs.
const MAX_ARTIFACTS: u32 = 100;
/// Number of recent tool calls that are searched for calls of this plan.
const MAX_CALLS: u32 = 500;
const MAX_CHARS: usize = 4_000;

/// A tab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tab {
    Steps,
    Branches,
    Reviews,
    Artifacts,
    Extractions,
    Outputs,
    Audit,
    Calls,
}

const TABS: [(Tab, &str, &str); 8] = [
    (Tab::Steps, "steps", "Steps"),
    (Tab::Branches, "branches", "Branches"),
    (Tab::Reviews, "reviews", "Reviews"),
    (Tab::Artifacts, "artifacts", "Artifacts"),
    (Tab::Extractions, "extractions", "Extractions"),
    (Tab::Outputs, "outputs", "Outputs"),
    (Tab::Audit, "audit", "Audit"),
    (Tab::Calls, "calls", "Tool calls"),
];

impl Tab {
    pub(super) fn from_fields(fields: &Fields) -> Self {
        let selected = fields.get("tab").unwrap_or_default();
        let found = TABS.iter().find(|(_, slug, _)| *slug == selected);
        found.map_or(Tab::Steps, |(tab, _, _)| *tab)
    }

    pub(super) fn links(self) -> Vec<TabLink> {
        let link = |(tab, slug, name): &(Tab, &'static str, &'static str)| TabLink {
            name,
            slug,
            selected: *tab == self,
        };
        TABS.iter().map(link).collect()
    }
}

/// The content of the selected tab; all other tabs are empty.
#[derive(Default)]
pub(super) struct Tabs {
    pub(super) steps: Option<Steps>,
    pub(super) branches: Option<Vec<BranchRow>>,
    pub(super) reviews: Option<Vec<ReviewRow>>,
    pub(super) artifacts: Option<Vec<ArtifactRow>>,
    pub(super) extractions: Option<Vec<ExtractionRow>>,
    pub(super) outputs: Option<Vec<OutputRow>>,
    pub(super) audit: Option<Audit>,
    pub(super) calls: Option<Vec<CallRow>>,
}

pub(super) struct Steps {
    pub(super) timeline: Option<Timeline>,
    pub(super) rows: Vec<StepRow>,
    pub(super) earlier: Option<u32>,
    pub(super) later: Option<u32>,
    pub(super) total: u32,
    /// The rows start after this step number.
    pub(super) after: u32,
    /// Whether buttons to move steps are displayed.
    pub(super) reordering: bool,
}

pub(super) struct StepRow {
    pub(super) id: String,
    pub(super) order: u32,
    pub(super) name: String,
    pub(super) kind: &'static str,
    pub(super) badge: Badge,
    pub(super) attempt: u32,
    pub(super) session: String,
    pub(super) started: Option<RelativeTime>,
    pub(super) duration: String,
    pub(super) outcome: String,
}

pub(super) struct BranchRow {
    pub(super) after: String,
    pub(super) condition: String,
    pub(super) action: String,
}

pub(super) struct ReviewRow {
    pub(super) at: RelativeTime,
    pub(super) actor: String,
    pub(super) action: String,
    pub(super) text: Option<MarkdownHtml>,
    pub(super) questions: Vec<MarkdownHtml>,
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

pub(super) struct Audit {
    pub(super) rows: Vec<AuditRow>,
    pub(super) names: Vec<(&'static str, bool)>,
    pub(super) selected: String,
    pub(super) next: Option<u64>,
    pub(super) is_later: bool,
}

pub(super) struct AuditRow {
    pub(super) seq: u64,
    pub(super) at: RelativeTime,
    pub(super) name: &'static str,
    pub(super) actor: String,
    pub(super) session: String,
    pub(super) details: String,
}

pub(super) struct CallRow {
    pub(super) at: RelativeTime,
    pub(super) tool: String,
    pub(super) actor: String,
    pub(super) duration: String,
    pub(super) is_error: bool,
    pub(super) request: String,
    pub(super) response: String,
}

/// Loads the selected tab.
pub(super) async fn load(visit: &Visit, tab: Tab, status: &Status) -> Result<Tabs, PageError> {
    let mut tabs = Tabs::default();
    match tab {
        Tab::Steps => tabs.steps = Some(steps(visit, status).await?),
        Tab::Branches => tabs.branches = Some(branches(visit, status).await?),
        Tab::Reviews => tabs.reviews = Some(reviews(visit, status).await?),
        Tab::Artifacts => tabs.artifacts = Some(artifacts(visit, status).await?),
        Tab::Extractions => tabs.extractions = Some(extractions(visit, status).await?),
        Tab::Outputs => tabs.outputs = Some(outputs(visit, status).await?),
        Tab::Audit => tabs.audit = Some(audit(visit, status).await?),
        Tab::Calls => tabs.calls = Some(calls(visit, status).await?),
    }
    Ok(tabs)
}

async fn steps(visit: &Visit, status: &Status) -> Result<Steps, PageError> {
    let (engine, head) = (&visit.site.engine, &status.sheet.head);
    let total = head.counts.total();
    // Between two steps, the number of finished steps approximates the current step.
    let counts = &head.counts;
    let ended = counts.completed + counts.skipped + counts.failed;
    let current = match (&status.current, head.ended_at()) {
        (Some(current), _) => current.order,
        (None, None) => ended.saturating_add(1),
        (None, Some(_)) => 0,
    };
    let default_after = if total > PAGE_SIZE {
        current.saturating_sub(STEPS_BEFORE_CURRENT + 1)
    } else {
        0
    };
    let after = visit.fields.parsed("after").unwrap_or(default_after);
    let page = engine.list_steps(&visit.caller, head.id, None, after, PAGE_SIZE);
    let page = page.await?;
    let reordering = visit.fields.get("reorder").is_some();
    let now = engine.now();
    let timeline = if reordering {
        None
    } else {
        let recent = engine.recent_events(&visit.caller, head.id, timeline::MAX_EVENTS);
        // The timeline of a finished plan ends with the plan.
        let until = head.ended_at().unwrap_or(now);
        timeline::draw(&page.steps, &recent.await?, status.sheet.created_at, until)
    };
    Ok(Steps {
        timeline,
        rows: page.steps.iter().map(|line| step(line, now)).collect(),
        earlier: (after > 0).then(|| after.saturating_sub(PAGE_SIZE)),
        later: page.next,
        total,
        after,
        reordering,
    })
}

fn step(line: &StepLine, now: Timestamp) -> StepRow {
    let stalled = line.stalls_at.is_some_and(|at| at < now);
    let duration = line.started_at.map(|started_at| {
        let until = line.ended_at.unwrap_or(now);
        format::duration(until.since(started_at))
    });
    let failure = line.failure.as_ref().map(ToString::to_string);
    let outcome = line.result_summary.as_deref();
    let outcome = outcome.map(markdown_html::plain_text);
    StepRow {
        id: line.id.to_string(),
        order: line.order,
        name: step_name(line),
        kind: line.step_type.as_str(),
        badge: if stalled && line.ended_at.is_none() {
            Badge::stalled()
        } else {
            Badge::step(line.status)
        },
        attempt: line.attempt,
        session: line
            .session
            .as_ref()
            .map_or_else(String::new, |id| one_line(id.as_str(), 40)),
        started: line.started_at.map(|at| RelativeTime::new(at, now)),
        duration: duration.unwrap_or_default(),
        outcome: one_line(&outcome.or(failure).unwrap_or_default(), 200),
    }
}

async fn branches(visit: &Visit, status: &Status) -> Result<Vec<BranchRow>, PageError> {
    let engine = &visit.site.engine;
    let (branches, lines) = engine.branches(&visit.caller, status.sheet.head.id).await?;
    let name = |id: StepId| {
        let line = lines.iter().find(|line| line.id == id);
        line.map_or("a deleted step".to_owned(), |line| {
            format!("step {}: {}", line.order, step_name(line))
        })
    };
    let row = |branch: &Branch| BranchRow {
        after: name(branch.after),
        condition: multiline(branch.condition.source(), MAX_CHARS),
        action: match &branch.action {
            Action::Continue => "continue".to_owned(),
            Action::SkipTo { target } => format!("skip to {}", name(*target)),
            Action::AddSteps { steps } => {
                let number = u64::try_from(steps.len()).unwrap_or(u64::MAX);
                format!("add {}", format::count(number, "step", "steps"))
            }
            Action::Fail { reason } => match reason {
                Some(reason) => format!("fail the plan: {}", one_line(reason, 300)),
                None => "fail the plan".to_owned(),
            },
        },
    };
    Ok(branches.iter().map(row).collect())
}

async fn reviews(visit: &Visit, status: &Status) -> Result<Vec<ReviewRow>, PageError> {
    let engine = &visit.site.engine;
    let name = Some("user_reviewed".to_owned());
    let plan = status.sheet.head.id;
    let (entries, _) = engine
        .audit_trail_backwards(&visit.caller, plan, None, name, PAGE_SIZE, PAGE_BYTES)
        .await?;
    let now = engine.now();
    Ok(entries
        .iter()
        .filter_map(|event| review(event, now))
        .collect())
}

fn review(event: &AuditEntry, now: Timestamp) -> Option<ReviewRow> {
    let Event::UserReviewed { action, .. } = &event.entry.event else {
        return None;
    };
    let (action, text, questions) = match action {
        ReviewAction::Requested {
            summary, questions, ..
        } => (
            "Review requested".to_owned(),
            summary.clone(),
            questions.clone(),
        ),
        ReviewAction::Decided { decision, feedback } => (
            format!("Decision: {decision}"),
            feedback.clone().unwrap_or_default(),
            Vec::new(),
        ),
    };
    Some(ReviewRow {
        at: RelativeTime::new(event.entry.at, now),
        actor: one_line(&event.entry.author.name, 60),
        action,
        text: (!text.is_empty()).then(|| MarkdownHtml::render(&text, MAX_CHARS)),
        questions: questions
            .iter()
            .map(|question| MarkdownHtml::render(question, MAX_CHARS))
            .collect(),
    })
}

async fn artifacts(visit: &Visit, status: &Status) -> Result<Vec<ArtifactRow>, PageError> {
    let engine = &visit.site.engine;
    let plan = status.sheet.head.id;
    let found = engine.artifacts(&visit.caller, plan, MAX_ARTIFACTS).await?;
    let now = engine.now();
    let row = |artifact: onward_engine::Excerpt| ArtifactRow {
        id: artifact.id.to_string(),
        title: one_line(&artifact.title, 200),
        kind: one_line(&artifact.kind, 40),
        at: RelativeTime::new(artifact.created_at, now),
        excerpt: excerpt(&artifact.excerpt, artifact.is_truncated),
    };
    Ok(found.into_iter().map(row).collect())
}

async fn extractions(visit: &Visit, status: &Status) -> Result<Vec<ExtractionRow>, PageError> {
    let engine = &visit.site.engine;
    let plan = status.sheet.head.id;
    let found = engine
        .extractions(&visit.caller, plan, MAX_ARTIFACTS)
        .await?;
    let now = engine.now();
    let row = |extraction: &Extraction| ExtractionRow {
        id: extraction.id.to_string(),
        artifact: extraction.artifact.map(|id| id.to_string()),
        at: RelativeTime::new(extraction.created_at, now),
        model: one_line(&extraction.model, 60),
        actor: one_line(&extraction.actor, 60),
        issues: extraction
            .issues
            .iter()
            .map(|issue| (one_line(&issue.path, 100), one_line(&issue.message, 300)))
            .collect(),
        data: json(&extraction.data),
        schema: json(&extraction.schema),
    };
    Ok(found.iter().rev().map(row).collect())
}

async fn outputs(visit: &Visit, status: &Status) -> Result<Vec<OutputRow>, PageError> {
    let engine = &visit.site.engine;
    let plan = status.sheet.head.id;
    let found = engine.outputs(&visit.caller, plan, MAX_ARTIFACTS).await?;
    let now = engine.now();
    let row = |output: onward_engine::OutputExcerpt| OutputRow {
        id: output.id.to_string(),
        title: one_line(&output.title, 200),
        version: output.version,
        media_type: one_line(&output.media_type, 100),
        at: RelativeTime::new(output.created_at, now),
        excerpt: excerpt(&output.excerpt, output.is_truncated),
    };
    Ok(found.into_iter().map(row).collect())
}

async fn audit(visit: &Visit, status: &Status) -> Result<Audit, PageError> {
    let engine = &visit.site.engine;
    let selected = visit.fields.get("event").unwrap_or_default().to_owned();
    let from: Option<u64> = visit.fields.parsed("from");
    let name = (!selected.is_empty()).then(|| selected.clone());
    let plan = status.sheet.head.id;
    let (entries, next) = engine
        .audit_trail_backwards(&visit.caller, plan, from, name, PAGE_SIZE, PAGE_BYTES)
        .await?;
    let now = engine.now();
    let row = |event: &AuditEntry| AuditRow {
        seq: event.entry.seq,
        at: RelativeTime::new(event.entry.at, now),
        name: event.name,
        actor: one_line(&event.entry.author.name, 60),
        session: event
            .entry
            .author
            .session
            .as_ref()
            .map_or_else(String::new, |id| one_line(id.as_str(), 40)),
        details: json(&event.details.parse()),
    };
    Ok(Audit {
        rows: entries.iter().map(row).collect(),
        names: Event::NAMES
            .iter()
            .map(|name| (*name, *name == selected))
            .collect(),
        selected,
        next,
        is_later: from.is_some(),
    })
}

async fn calls(visit: &Visit, status: &Status) -> Result<Vec<CallRow>, PageError> {
    let engine = &visit.site.engine;
    let plan = status.sheet.head.id.to_string();
    let calls = engine.logged_requests(&visit.caller, MAX_CALLS).await?;
    let now = engine.now();
    let names_plan =
        |value: &Value| value.get("planId").and_then(Value::as_str) == Some(plan.as_str());
    let is_own = |call: &&ToolCall| names_plan(&call.request) || names_plan(&call.response);
    let row = |call: &ToolCall| CallRow {
        at: RelativeTime::new(call.at, now),
        tool: one_line(&call.tool, 60),
        actor: one_line(&call.actor, 60),
        duration: format::duration(std::time::Duration::from_micros(call.duration_us)),
        is_error: call.is_error,
        request: json(&call.request),
        response: json(&call.response),
    };
    Ok(calls.iter().filter(is_own).map(row).collect())
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
