//! `/journal`: what the agents did in a project, by day: the completed steps of all its plans.

use askama::Template;
use onward_core::{StepId, Timestamp};
use onward_engine::JournalCursor;

use super::agent_name::directory;
use super::format::RelativeTime;
use super::layout::{Layout, Section, render};
use super::{PageResult, Visit};
use crate::output::format;
use crate::output::journal::{Day, days};
use crate::output::time::Zone;

/// Steps per page.
const PAGE_SIZE: u32 = 100;
/// Maximum number of projects in the menu.
const MAX_PROJECTS: u32 = 30;

#[derive(Template)]
#[template(path = "journal.html")]
struct Journal {
    layout: Layout,
    /// The path of the project. `None` if there is none.
    project: Option<String>,
    projects: Vec<Project>,
    days: Vec<(String, Day)>,
    next: Option<String>,
    is_first: bool,
}

struct Project {
    name: String,
    path: String,
    link: String,
    acted: RelativeTime,
    is_selected: bool,
}

pub(super) async fn show(visit: Visit) -> PageResult {
    let engine = &visit.site.engine;
    let now = engine.now();
    let known = engine.projects(&visit.caller, MAX_PROJECTS).await?;
    let requested = visit
        .fields
        .get("directory")
        .filter(|path| !path.is_empty());
    let project = requested.or(known.first().map(|(path, _)| path.as_str()));
    let project = project.map(str::to_owned);
    let after = visit.fields.get("after").and_then(cursor);
    let page = match &project {
        Some(project) => {
            let page = engine.journal(&visit.caller, project, after, PAGE_SIZE);
            Some(page.await?)
        }
        None => None,
    };
    let entries = page.as_ref().map_or(&[][..], |page| &page.entries);
    let zone = Zone::local();
    let days = days(entries, zone);
    let next = page.as_ref().and_then(|page| page.next);
    let next = next.zip(project.as_ref()).map(|(next, project)| {
        let after = format!("{}.{}", next.ended_at.as_millis(), next.step);
        format!("{}&after={after}", link(project))
    });
    let projects = known.iter().map(|(path, seen_at)| Project {
        name: directory(path),
        path: format::sanitize_line(path),
        link: link(path),
        acted: RelativeTime::new(*seen_at, now),
        is_selected: project.as_ref() == Some(path),
    });
    render(&Journal {
        layout: visit.layout("Journal", Section::Plans).await?,
        projects: projects.collect(),
        project: project.map(|path| format::sanitize_line(&path)),
        days: days
            .into_iter()
            .map(|day| (zone.day(day.at), day))
            .collect(),
        next,
        is_first: after.is_none(),
    })
}

/// The address of the journal of a project.
fn link(path: &str) -> String {
    let path = askama::filters::urlencode_strict(path);
    format!(
        "/journal?directory={}",
        path.map(|path| path.to_string()).unwrap_or_default()
    )
}

fn cursor(text: &str) -> Option<JournalCursor> {
    let (at, step) = text.split_once('.')?;
    Some(JournalCursor {
        ended_at: Timestamp::from_millis(at.parse().ok()?),
        step: step.parse::<StepId>().ok()?,
    })
}
