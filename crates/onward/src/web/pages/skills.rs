//! `/skills`: what agents' skills did: how they went on the whole, and each execution, the last one
//! first, filtered by status and by skill. `/skills/{id}` is one of them.

use askama::Template;
use axum::extract::Path;
use onward_core::Timestamp;
use onward_core::id::SkillExecutionId;
use onward_core::skill::{SkillExecution, SkillState, SkillStatus};
use onward_engine::skill::{SkillFigures, SkillQuery};
use onward_engine::{Error, SkillCursor};

use super::frame::{Frame, Section, render};
use super::show::{Badge, When, gist, text};
use super::{Page, Visit};
use crate::output::words;

/// How many executions a page holds.
const SHOWN: u32 = 20;
/// How much of a text is shown.
const LONGEST: usize = 20_000;

#[derive(Template)]
#[template(path = "skills.html")]
struct Skills {
    frame: Frame,
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
    chosen: bool,
}

struct Row {
    link: String,
    name: String,
    same: String,
    badge: Badge,
    plan: Option<String>,
    session: String,
    started: When,
    took: String,
    error: String,
}

#[derive(Template)]
#[template(path = "skill.html")]
struct Skill {
    frame: Frame,
    row: Row,
    id: String,
    updated: When,
    ended: Option<When>,
    error: Option<String>,
    metadata: Option<String>,
}

pub(super) async fn show(visit: Visit) -> Page {
    let engine = &visit.site.engine;
    let status: Option<SkillStatus> = visit.fields.parsed("status");
    let skill = visit.fields.get("skill").map(str::to_owned);
    let behind = visit.fields.get("behind").and_then(cursor);
    let query = SkillQuery {
        limit: SHOWN,
        behind,
        status,
        skill: skill.clone(),
    };
    let page = engine.list_skills(&visit.caller, query).await?;
    let figures = engine.count_skills(&visit.caller).await?;
    let now = engine.now();
    let next = page.next.map(|next| {
        let (at, id) = (next.started_at.as_millis(), next.execution);
        let mut query = vec![format!("behind={at}.{id}")];
        let status = status.map(SkillStatus::as_str);
        for (name, value) in [("status", status), ("skill", skill.as_deref())] {
            query.extend(value.and_then(|value| field(name, value)));
        }
        format!("/skills?{}", query.join("&"))
    });
    render(&Skills {
        frame: visit.frame("Skills", Section::Skills).await?,
        cards: cards(&figures),
        choices: SkillStatus::ALL
            .map(|one| Choice {
                value: one.as_str(),
                chosen: status == Some(one),
            })
            .into(),
        is_filtered: status.is_some() || skill.is_some() || behind.is_some(),
        skill: skill.unwrap_or_default(),
        rows: page.executions.iter().map(|one| row(one, now)).collect(),
        next,
        is_empty: figures.total == 0,
    })
}

pub(super) async fn show_one(visit: Visit, Path(id): Path<String>) -> Page {
    let engine = &visit.site.engine;
    let missing = || Error::NotFound {
        what: "skill execution",
        name: id.clone(),
    };
    let execution: SkillExecutionId = id.parse().map_err(|_| missing())?;
    let execution = engine.skill_execution(&visit.caller, execution).await?;
    let now = engine.now();
    let mut error = None;
    if let SkillState::Failed { error: said, .. } = &execution.state {
        error = said.as_deref().map(|said| text(said, LONGEST));
    }
    let metadata = serde_json::Value::Object(execution.metadata.clone());
    let is_known = !execution.metadata.is_empty();
    render(&Skill {
        frame: visit.frame(&execution.skill, Section::Skills).await?,
        row: row(&execution, now),
        id: execution.id.to_string(),
        updated: When::new(execution.updated_at, now),
        ended: execution.ended_at().map(|at| When::new(at, now)),
        error,
        metadata: is_known.then(|| text(&words::pretty_json(&metadata), LONGEST)),
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

fn cards(figures: &SkillFigures) -> Vec<Card> {
    let card = |name, number: String, link, class| Card {
        name,
        number,
        link,
        class,
    };
    let none = || "–".to_owned();
    let rate = figures.completion_rate();
    vec![
        card("Executions", figures.total.to_string(), Some("/skills"), ""),
        card(
            "Completion rate",
            rate.map_or_else(none, |rate| format!("{rate}%")),
            Some("/skills?status=completed"),
            // What is not there needs no colour.
            if rate.is_none() { "" } else { "completed" },
        ),
        card(
            "Average duration",
            figures.average.map_or_else(none, words::span),
            None,
            "",
        ),
        card(
            "Failed in 24 h",
            figures.failed_lately.to_string(),
            Some("/skills?status=failed"),
            if figures.failed_lately == 0 {
                ""
            } else {
                "failed"
            },
        ),
    ]
}

fn row(execution: &SkillExecution, now: Timestamp) -> Row {
    let mut error = String::new();
    if let SkillState::Failed { error: said, .. } = &execution.state {
        error = gist(said.as_deref().unwrap_or_default(), 160);
    }
    let session = execution.session.as_ref();
    let same = field("skill", &execution.skill).unwrap_or_default();
    Row {
        link: format!("/skills/{}", execution.id),
        name: gist(&execution.skill, 100),
        same: format!("/skills?{same}"),
        badge: Badge::skill(execution.status()),
        plan: execution.plan.map(|plan| format!("/plans/{plan}")),
        session: session.map_or_else(String::new, |id| gist(id.as_str(), 40)),
        started: When::new(execution.started_at, now),
        took: execution.duration().map_or_else(String::new, words::span),
        error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_begins_where_the_address_says_or_at_the_front() {
        let id = "00000000-0000-7000-8000-000000000001";
        let read = cursor(&format!("12.{id}")).unwrap();
        assert_eq!(read.started_at.as_millis(), 12);
        assert_eq!(read.execution.to_string(), id);
        for wrong in ["", "12", "12.x", "x.y"] {
            assert_eq!(cursor(wrong), None, "{wrong}");
        }
    }
}
