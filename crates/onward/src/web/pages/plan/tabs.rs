//! What stands on the tabs of a plan. Only the one that is looked at is read.

use onward_core::branch::{Action, Branch};
use onward_core::event::ReviewAction;
use onward_core::{Event, StepId, Timestamp};
use onward_engine::status::Status;
use onward_engine::trail::Shown;
use onward_engine::{Extraction, StepLine, ToolCall};
use serde_json::Value;

use super::{Link, ended_at, name_of};
use crate::output::words;
use crate::web::pages::prose::{self, Prose};
use crate::web::pages::show::{Badge, When, gist, text};
use crate::web::pages::timeline::{self, Timeline};
use crate::web::pages::{Failed, Fields, Visit};

/// How many steps, and entries of the trail, a window holds.
const SHOWN: u32 = 50;
/// How many steps stand before the one that is worked on.
const BEFORE: u32 = 10;
/// How many artifacts are shown.
const ARTIFACTS: u32 = 100;
/// Among so many of the last calls those of the plan are looked for.
const CALLS: u32 = 500;
/// How much of a text is shown.
const LONGEST: usize = 4_000;

/// Which tab.
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
    pub(super) fn of(fields: &Fields) -> Self {
        let asked = fields.get("tab").unwrap_or_default();
        let found = TABS.iter().find(|(_, word, _)| *word == asked);
        found.map_or(Tab::Steps, |(tab, _, _)| *tab)
    }

    pub(super) fn links(self) -> Vec<Link> {
        let link = |(tab, word, name): &(Tab, &'static str, &'static str)| Link {
            name,
            word,
            chosen: *tab == self,
        };
        TABS.iter().map(link).collect()
    }
}

/// The one that is looked at.
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
    /// Behind which order the window begins.
    pub(super) behind: u32,
    /// Whether each step is shown with buttons that move it.
    pub(super) arranges: bool,
}

pub(super) struct StepRow {
    pub(super) id: String,
    pub(super) order: u32,
    pub(super) name: String,
    pub(super) kind: &'static str,
    pub(super) badge: Badge,
    pub(super) attempt: u32,
    pub(super) session: String,
    pub(super) started: Option<When>,
    pub(super) took: String,
    pub(super) outcome: String,
}

pub(super) struct BranchRow {
    pub(super) after: String,
    pub(super) condition: String,
    pub(super) action: String,
}

pub(super) struct ReviewRow {
    pub(super) at: When,
    pub(super) who: String,
    pub(super) what: String,
    pub(super) text: Option<Prose>,
    pub(super) questions: Vec<Prose>,
}

pub(super) struct ArtifactRow {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) kind: String,
    pub(super) at: When,
    pub(super) excerpt: String,
}

pub(super) struct ExtractionRow {
    pub(super) id: String,
    pub(super) artifact: Option<String>,
    pub(super) at: When,
    pub(super) model: String,
    pub(super) who: String,
    pub(super) issues: Vec<(String, String)>,
    pub(super) data: String,
    pub(super) schema: String,
}

pub(super) struct OutputRow {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) version: u32,
    pub(super) media_type: String,
    pub(super) at: When,
    pub(super) excerpt: String,
}

pub(super) struct Audit {
    pub(super) rows: Vec<AuditRow>,
    pub(super) names: Vec<(&'static str, bool)>,
    pub(super) chosen: String,
    pub(super) next: Option<u64>,
    pub(super) is_later: bool,
}

pub(super) struct AuditRow {
    pub(super) seq: u64,
    pub(super) at: When,
    pub(super) name: &'static str,
    pub(super) who: String,
    pub(super) session: String,
    pub(super) details: String,
}

pub(super) struct CallRow {
    pub(super) at: When,
    pub(super) tool: String,
    pub(super) who: String,
    pub(super) took: String,
    pub(super) is_error: bool,
    pub(super) request: String,
    pub(super) response: String,
}

/// Reads the tab that is looked at.
pub(super) async fn read(visit: &Visit, tab: Tab, status: &Status) -> Result<Tabs, Failed> {
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

async fn steps(visit: &Visit, status: &Status) -> Result<Steps, Failed> {
    let (engine, head) = (&visit.site.engine, &status.sheet.head);
    let total = head.counts.total();
    // Between two steps it is the one that comes next, as far as the counts tell.
    let counts = &head.counts;
    let ended = counts.completed + counts.skipped + counts.failed;
    let at_work = match (&status.current, ended_at(&head.state)) {
        (Some(current), _) => current.order,
        (None, None) => ended.saturating_add(1),
        (None, Some(_)) => 0,
    };
    let usual = match total > SHOWN {
        true => at_work.saturating_sub(BEFORE + 1),
        false => 0,
    };
    let behind = visit.fields.parsed("behind").unwrap_or(usual);
    let page = engine.list_steps(&visit.caller, head.id, None, behind, SHOWN);
    let page = page.await?;
    let arranges = visit.fields.get("arrange").is_some();
    let now = engine.now();
    // Whoever arranges steps looks at nothing else.
    let timeline = match arranges {
        true => None,
        false => {
            let recent = engine.recent(&visit.caller, head.id, timeline::LOOKED_AT);
            // A plan that has ended has nothing that goes on.
            let until = ended_at(&head.state).unwrap_or(now);
            timeline::draw(&page.steps, &recent.await?, status.sheet.created_at, until)
        }
    };
    Ok(Steps {
        timeline,
        rows: page.steps.iter().map(|line| step(line, now)).collect(),
        earlier: (behind > 0).then(|| behind.saturating_sub(SHOWN)),
        later: page.next,
        total,
        behind,
        arranges,
    })
}

fn step(line: &StepLine, now: Timestamp) -> StepRow {
    let stalled = line.stalls_at.is_some_and(|at| at < now);
    let took = line.started_at.map(|started_at| {
        let until = line.ended_at.unwrap_or(now);
        words::span(until.since(started_at))
    });
    let failure = line.failure.as_ref().map(ToString::to_string);
    let outcome = line.result_summary.as_deref().map(prose::plain);
    StepRow {
        id: line.id.to_string(),
        order: line.order,
        name: name_of(line),
        kind: line.step_type.as_str(),
        badge: match stalled && line.ended_at.is_none() {
            true => Badge::stalled(),
            false => Badge::step(line.status),
        },
        attempt: line.attempt,
        session: line
            .session
            .as_ref()
            .map_or_else(String::new, |id| gist(id.as_str(), 40)),
        started: line.started_at.map(|at| When::new(at, now)),
        took: took.unwrap_or_default(),
        outcome: gist(&outcome.or(failure).unwrap_or_default(), 200),
    }
}

async fn branches(visit: &Visit, status: &Status) -> Result<Vec<BranchRow>, Failed> {
    let engine = &visit.site.engine;
    let (branches, lines) = engine.branches(&visit.caller, status.sheet.head.id).await?;
    let name = |id: StepId| {
        let line = lines.iter().find(|line| line.id == id);
        line.map_or("a step that is gone".to_owned(), |line| {
            format!("step {}: {}", line.order, name_of(line))
        })
    };
    let row = |branch: &Branch| BranchRow {
        after: name(branch.after),
        condition: text(branch.condition.source(), LONGEST),
        action: match &branch.action {
            Action::Continue => "go on as usual".to_owned(),
            Action::SkipTo { target } => format!("skip to {}", name(*target)),
            Action::AddSteps { steps } => {
                let number = u64::try_from(steps.len()).unwrap_or(u64::MAX);
                format!("add {}", words::count(number, "step", "steps"))
            }
            Action::Fail { reason } => match reason {
                Some(reason) => format!("fail the plan: {}", gist(reason, 300)),
                None => "fail the plan".to_owned(),
            },
        },
    };
    Ok(branches.iter().map(row).collect())
}

async fn reviews(visit: &Visit, status: &Status) -> Result<Vec<ReviewRow>, Failed> {
    let engine = &visit.site.engine;
    let named = Some("user_reviewed".to_owned());
    let plan = status.sheet.head.id;
    let entries = engine
        .trail_back(&visit.caller, plan, None, named, SHOWN)
        .await?;
    let now = engine.now();
    Ok(entries
        .iter()
        .filter_map(|shown| review(shown, now))
        .collect())
}

fn review(shown: &Shown, now: Timestamp) -> Option<ReviewRow> {
    let Event::UserReviewed { action, .. } = &shown.entry.event else {
        return None;
    };
    let (what, said, questions) = match action {
        ReviewAction::Requested {
            summary, questions, ..
        } => ("asked".to_owned(), summary.clone(), questions.clone()),
        ReviewAction::Decided { decision, feedback } => (
            format!("decided: {decision}"),
            feedback.clone().unwrap_or_default(),
            Vec::new(),
        ),
    };
    Some(ReviewRow {
        at: When::new(shown.entry.at, now),
        who: gist(&shown.entry.author.name, 60),
        what,
        text: (!said.is_empty()).then(|| Prose::of(&said, LONGEST)),
        questions: questions
            .iter()
            .map(|one| Prose::of(one, LONGEST))
            .collect(),
    })
}

async fn artifacts(visit: &Visit, status: &Status) -> Result<Vec<ArtifactRow>, Failed> {
    let engine = &visit.site.engine;
    let plan = status.sheet.head.id;
    let found = engine.artifacts(&visit.caller, plan, ARTIFACTS).await?;
    let now = engine.now();
    let row = |artifact: onward_engine::Excerpt| ArtifactRow {
        id: artifact.id.to_string(),
        title: gist(&artifact.title, 200),
        kind: gist(&artifact.kind, 40),
        at: When::new(artifact.created_at, now),
        excerpt: excerpt(&artifact.excerpt, artifact.goes_on),
    };
    Ok(found.into_iter().map(row).collect())
}

async fn extractions(visit: &Visit, status: &Status) -> Result<Vec<ExtractionRow>, Failed> {
    let engine = &visit.site.engine;
    let plan = status.sheet.head.id;
    let found = engine.extractions(&visit.caller, plan, ARTIFACTS).await?;
    let now = engine.now();
    let row = |extraction: &Extraction| ExtractionRow {
        id: extraction.id.to_string(),
        artifact: extraction.artifact.map(|id| id.to_string()),
        at: When::new(extraction.created_at, now),
        model: gist(&extraction.model, 60),
        who: gist(&extraction.actor, 60),
        issues: extraction
            .issues
            .iter()
            .map(|issue| (gist(&issue.path, 100), gist(&issue.message, 300)))
            .collect(),
        data: data(&extraction.data),
        schema: data(&extraction.schema),
    };
    Ok(found.iter().rev().map(row).collect())
}

async fn outputs(visit: &Visit, status: &Status) -> Result<Vec<OutputRow>, Failed> {
    let engine = &visit.site.engine;
    let plan = status.sheet.head.id;
    let found = engine.outputs(&visit.caller, plan, ARTIFACTS).await?;
    let now = engine.now();
    let row = |output: onward_engine::OutputExcerpt| OutputRow {
        id: output.id.to_string(),
        title: gist(&output.title, 200),
        version: output.version,
        media_type: gist(&output.media_type, 100),
        at: When::new(output.created_at, now),
        excerpt: excerpt(&output.excerpt, output.goes_on),
    };
    Ok(found.into_iter().map(row).collect())
}

async fn audit(visit: &Visit, status: &Status) -> Result<Audit, Failed> {
    let engine = &visit.site.engine;
    let chosen = visit.fields.get("event").unwrap_or_default().to_owned();
    let from: Option<u64> = visit.fields.parsed("from");
    let name = (!chosen.is_empty()).then(|| chosen.clone());
    let plan = status.sheet.head.id;
    let more = SHOWN.saturating_add(1);
    let mut entries = engine
        .trail_back(&visit.caller, plan, from, name, more)
        .await?;
    let now = engine.now();
    let shown = usize::try_from(SHOWN).unwrap_or(usize::MAX);
    let next = entries.get(shown).map(|shown| shown.entry.seq);
    entries.truncate(shown);
    let row = |shown: &Shown| AuditRow {
        seq: shown.entry.seq,
        at: When::new(shown.entry.at, now),
        name: shown.name,
        who: gist(&shown.entry.author.name, 60),
        session: shown
            .entry
            .author
            .session
            .as_ref()
            .map_or_else(String::new, |id| gist(id.as_str(), 40)),
        details: data(&shown.details),
    };
    Ok(Audit {
        rows: entries.iter().map(row).collect(),
        names: Event::NAMES
            .iter()
            .map(|name| (*name, *name == chosen))
            .collect(),
        chosen,
        next,
        is_later: from.is_some(),
    })
}

async fn calls(visit: &Visit, status: &Status) -> Result<Vec<CallRow>, Failed> {
    let engine = &visit.site.engine;
    let plan = status.sheet.head.id.to_string();
    let calls = engine.calls(&visit.caller, CALLS).await?;
    let now = engine.now();
    let names = |said: &Value| said.get("planId").and_then(Value::as_str) == Some(plan.as_str());
    let own = |call: &&ToolCall| names(&call.request) || names(&call.response);
    let row = |call: &ToolCall| CallRow {
        at: When::new(call.at, now),
        tool: gist(&call.tool, 60),
        who: gist(&call.actor, 60),
        took: words::span(std::time::Duration::from_micros(call.duration_us)),
        is_error: call.is_error,
        request: data(&call.request),
        response: data(&call.response),
    };
    Ok(calls.iter().filter(own).map(row).collect())
}

/// The words at the beginning of a text.
fn excerpt(beginning: &str, goes_on: bool) -> String {
    let words = words::line(&prose::plain(beginning));
    match goes_on {
        true => format!("{words} …"),
        false => words,
    }
}

/// Data for people, as far as it is of a length that people read.
fn data(value: &Value) -> String {
    text(&words::pretty_json(value), LONGEST)
}
