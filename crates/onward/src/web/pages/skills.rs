//! `/library/skills`: statistics and runs of agents' skills, most recent first, filtered by status and
//! skill. `/library/skills/{id}`: one run.

use askama::Template;
use axum::extract::Path;
use onward_core::Timestamp;
use onward_core::id::SkillExecutionId;
use onward_core::skill::{SkillExecution, SkillState, SkillStatus};
use onward_engine::skill::{SkillQuery, SkillStats};
use onward_engine::{Error, ObjectKind, SkillCursor};

use super::format::{Badge, RelativeTime, ShortId, multiline, one_line};
use super::layout::{Layout, Section, render};
use super::sessions::session_url;
use super::{PageResult, Visit};
use crate::output::format;

const PAGE_SIZE: u32 = 20;
const MAX_CHARS: usize = 20_000;

#[derive(Template)]
#[template(path = "skills.html")]
struct Skills {
    layout: Layout,
    cards: Vec<Card>,
    choices: Vec<Choice>,
    skill: String,
    is_filtered: bool,
    rows: Vec<Row>,
    next: Option<String>,
    is_empty: bool,
}

struct Card {
    name: &'static str,
    number: String,
    link: Option<&'static str>,
    class: &'static str,
}

struct Choice {
    value: &'static str,
    selected: bool,
}

struct Row {
    link: String,
    name: String,
    /// URL of all runs of the same skill.
    same_skill: String,
    badge: Badge,
    plan: Option<String>,
    session: Option<ShortId>,
    started: RelativeTime,
    duration: String,
    error: String,
}

#[derive(Template)]
#[template(path = "skill.html")]
struct Skill {
    layout: Layout,
    row: Row,
    id: ShortId,
    updated: RelativeTime,
    ended: Option<RelativeTime>,
    error: Option<String>,
    metadata: Option<String>,
}

pub(super) async fn show(visit: Visit) -> PageResult {
    let engine = &visit.site.engine;
    let status: Option<SkillStatus> = visit.fields.parsed("status");
    let skill = visit.fields.get("skill").map(str::to_owned);
    let after = visit.fields.get("after").and_then(cursor);
    let query = SkillQuery {
        limit: PAGE_SIZE,
        after,
        status,
        skill: skill.clone(),
    };
    let page = engine.list_skills(&visit.caller, query).await?;
    let figures = engine.count_skills(&visit.caller).await?;
    let now = engine.now();
    let next = page.next.map(|next| {
        let (at, id) = (next.started_at.as_millis(), next.execution);
        let mut query = vec![format!("after={at}.{id}")];
        let status = status.map(SkillStatus::as_str);
        for (name, value) in [("status", status), ("skill", skill.as_deref())] {
            query.extend(value.and_then(|value| field(name, value)));
        }
        format!("/library/skills?{}", query.join("&"))
    });
    render(&Skills {
        layout: visit.layout("Skills", Section::Library).await?,
        cards: cards(&figures),
        choices: SkillStatus::ALL
            .map(|choice| Choice {
                value: choice.as_str(),
                selected: status == Some(choice),
            })
            .into(),
        is_filtered: status.is_some() || skill.is_some() || after.is_some(),
        skill: skill.unwrap_or_default(),
        rows: page.executions.iter().map(|run| row(run, now)).collect(),
        next,
        is_empty: figures.total == 0,
    })
}

pub(super) async fn show_one(visit: Visit, Path(id): Path<String>) -> PageResult {
    let engine = &visit.site.engine;
    let missing = || Error::NotFound {
        kind: ObjectKind::SkillRun,
        name: id.clone(),
    };
    let execution: SkillExecutionId = id.parse().map_err(|_| missing())?;
    let execution = engine.skill_execution(&visit.caller, execution).await?;
    let now = engine.now();
    let mut error = None;
    if let SkillState::Failed { error: message, .. } = &execution.state {
        error = message
            .as_deref()
            .map(|message| multiline(message, MAX_CHARS));
    }
    let metadata = serde_json::Value::Object(execution.metadata.clone());
    let has_metadata = !execution.metadata.is_empty();
    render(&Skill {
        layout: visit.layout(&execution.skill, Section::Library).await?,
        row: row(&execution, now),
        id: ShortId::new(execution.id),
        updated: RelativeTime::new(execution.updated_at, now),
        ended: execution.ended_at().map(|at| RelativeTime::new(at, now)),
        error,
        metadata: has_metadata.then(|| multiline(&format::pretty_json(&metadata), MAX_CHARS)),
    })
}

fn field(name: &str, value: &str) -> Option<String> {
    let value = askama::filters::urlencode_strict(value).ok()?;
    Some(format!("{name}={value}"))
}

fn cursor(text: &str) -> Option<SkillCursor> {
    let (at, execution) = text.split_once('.')?;
    Some(SkillCursor {
        started_at: Timestamp::from_millis(at.parse().ok()?),
        execution: execution.parse().ok()?,
    })
}

fn cards(figures: &SkillStats) -> Vec<Card> {
    let card = |name, number: String, link, class| Card {
        name,
        number,
        link,
        class,
    };
    let none = || "–".to_owned();
    let rate = figures.completion_rate();
    vec![
        card(
            "Runs",
            figures.total.to_string(),
            Some("/library/skills"),
            "",
        ),
        card(
            "Completion rate",
            rate.map_or_else(none, |rate| format!("{rate}%")),
            Some("/library/skills?status=completed"),
            // Not highlighted without data.
            if rate.is_none() { "" } else { "completed" },
        ),
        card(
            "Average duration",
            figures.average.map_or_else(none, format::duration),
            None,
            "",
        ),
        card(
            "Failed in 24 h",
            figures.failed_recently.to_string(),
            Some("/library/skills?status=failed"),
            if figures.failed_recently == 0 {
                ""
            } else {
                "failed"
            },
        ),
    ]
}

fn row(execution: &SkillExecution, now: Timestamp) -> Row {
    let mut error = String::new();
    if let SkillState::Failed { error: message, .. } = &execution.state {
        error = one_line(message.as_deref().unwrap_or_default(), 160);
    }
    let session = execution.session.as_ref();
    let same_skill = field("skill", &execution.skill).unwrap_or_default();
    Row {
        link: format!("/library/skills/{}", execution.id),
        name: one_line(&execution.skill, 100),
        same_skill: format!("/library/skills?{same_skill}"),
        badge: Badge::skill(execution.status()),
        plan: execution.plan.map(|plan| format!("/plans/{plan}")),
        session: session.map(|id| {
            let link = session_url(id.as_str());
            ShortId::new(id.as_str()).linked(link)
        }),
        started: RelativeTime::new(execution.started_at, now),
        duration: execution
            .duration()
            .map_or_else(String::new, format::duration),
        error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_cursors_and_ignores_invalid_ones() {
        let id = "00000000-0000-7000-8000-000000000001";
        let read = cursor(&format!("12.{id}")).unwrap();
        assert_eq!(read.started_at.as_millis(), 12);
        assert_eq!(read.execution.to_string(), id);
        for wrong in ["", "12", "12.x", "x.y"] {
            assert_eq!(cursor(wrong), None, "{wrong}");
        }
    }
}
