//! `/jump?q=`: plans, steps, sessions, outputs and pages that match a text, best first. The palette
//! of `onward.js` displays the same list in a dialog. Without a text: the most recent plans, and pages.
//!
//! A query such as `5fa2/6` selects a step by the beginning of its plan's id and its number.

use askama::Template;
use onward_engine::list::PlanQuery;

use super::agent_name::{agent_name, directory};
use super::format::one_line;
use super::layout::{Layout, Section, render};
use super::plan::step_name;
use super::sessions::session_url;
use super::{PageError, PageResult, Visit};

/// Maximum number of results.
const MAX_RESULTS: usize = 8;
/// Maximum number of plans among them.
const MAX_PLANS: u32 = 5;
/// Number of recent sessions and outputs that are searched.
const MAX_RECENT: u32 = 100;

/// The pages, with other words for them.
const PAGES: [(&str, &str, &str); 12] = [
    ("Overview", "/", "home needs you"),
    ("Plans", "/plans", "list"),
    ("Inbox", "/inbox", "reviews decide stuck"),
    ("Sessions", "/sessions", "agents looping dead calls"),
    ("Library", "/library", "search outputs artifacts"),
    ("Skill runs", "/library/skills", "skills library"),
    ("Connect", "/settings", "settings install agent hooks"),
    ("Access", "/settings/access", "settings tokens members"),
    (
        "Alerts",
        "/settings/alerts",
        "settings notifications webhook keys",
    ),
    (
        "Limits",
        "/settings/limits",
        "settings thresholds retention",
    ),
    (
        "About",
        "/settings/about",
        "settings version index clock doctor",
    ),
    ("Stuck plans", "/plans?state=stuck", "stalled"),
];

#[derive(Template)]
#[template(path = "jump.html")]
struct Jump {
    layout: Layout,
    query: String,
    results: Vec<Target>,
}

struct Target {
    link: String,
    kind: &'static str,
    name: String,
    detail: String,
}

pub(super) async fn show(visit: Visit) -> PageResult {
    let query = visit.fields.get("q").unwrap_or_default().to_owned();
    let mut pages = pages(&query);
    let mut results = Vec::new();
    if query.is_empty() {
        results.extend(plans(&visit, "").await?);
    } else {
        // A page matches by its own name; everything else is more specific.
        results.extend(pages.drain(..pages.len().min(1)));
        results.extend(steps(&visit, &query).await?);
        results.extend(plans(&visit, &query).await?);
        results.extend(sessions(&visit, &query).await?);
        results.extend(outputs(&visit, &query).await?);
    }
    results.extend(pages);
    results.truncate(MAX_RESULTS);
    render(&Jump {
        layout: visit.layout("Jump", Section::None).await?,
        query,
        results,
    })
}

/// Whether a text contains all words.
fn matches(text: &str, query: &str) -> bool {
    let text = text.to_lowercase();
    let query = query.to_lowercase();
    query.split_whitespace().all(|word| text.contains(word))
}

fn pages(query: &str) -> Vec<Target> {
    let found = PAGES
        .iter()
        .filter(|(name, _, words)| matches(&format!("{name} {words}"), query));
    let mut found: Vec<&(&str, &str, &str)> = found.collect();
    found.sort_by_key(|(name, ..)| !matches(name, query));
    let target = |(name, link, _): &(&str, &str, &str)| Target {
        link: (*link).to_owned(),
        kind: "page",
        name: (*name).to_owned(),
        detail: String::new(),
    };
    found.into_iter().map(target).collect()
}

/// The plans that match, or the most recent ones without a query.
async fn plans(visit: &Visit, query: &str) -> Result<Vec<Target>, PageError> {
    let engine = &visit.site.engine;
    let mut found = Vec::new();
    if let Ok(plan) = engine.find_plan(&visit.caller, query).await {
        let sheet = engine.sheet(&visit.caller, plan).await?;
        found.push((plan, sheet.brief.name));
    }
    let text = PlanQuery {
        limit: MAX_PLANS,
        finished: true,
        text: (!query.is_empty()).then(|| query.to_owned()),
        ..PlanQuery::default()
    };
    let page = engine.list_plans(&visit.caller, text).await?;
    for listed in page.plans {
        let plan = listed.sheet.head.id;
        if found.iter().all(|(other, _)| *other != plan) {
            found.push((plan, listed.sheet.brief.name));
        }
    }
    let target = |(plan, name): (onward_core::PlanId, String)| Target {
        link: format!("/plans/{plan}"),
        kind: "plan",
        name: one_line(&name, 100),
        detail: crate::output::format::short_id(plan),
    };
    Ok(found.into_iter().map(target).collect())
}

/// The step of a query such as `5fa2/6`.
async fn steps(visit: &Visit, query: &str) -> Result<Vec<Target>, PageError> {
    let engine = &visit.site.engine;
    let Some((plan, order)) = query.split_once('/') else {
        return Ok(Vec::new());
    };
    let (Ok(plan), Ok(order)) = (
        engine.find_plan(&visit.caller, plan.trim()).await,
        order.trim().parse::<u32>(),
    ) else {
        return Ok(Vec::new());
    };
    let page = engine
        .list_steps(&visit.caller, plan, None, order.saturating_sub(1), 1)
        .await?;
    let sheet = engine.sheet(&visit.caller, plan).await?;
    let found = page.steps.iter().filter(|step| step.order == order);
    let target = |step: &onward_engine::StepLine| Target {
        link: format!("/plans/{plan}/steps/{}", step.id),
        kind: "step",
        name: format!("Step {order}: {}", step_name(step)),
        detail: one_line(&sheet.brief.name, 60),
    };
    Ok(found.map(target).collect())
}

async fn sessions(visit: &Visit, query: &str) -> Result<Vec<Target>, PageError> {
    let engine = &visit.site.engine;
    let lines = engine.list_sessions(&visit.caller, MAX_RECENT).await?;
    let found = lines.iter().map(|line| &line.session).filter(|session| {
        let place = session.directory.as_deref().unwrap_or_default();
        let prompt = session.prompt.as_deref().unwrap_or_default();
        session.id.starts_with(query) || matches(&format!("{place} {prompt}"), query)
    });
    let target = |session: &onward_engine::Session| {
        let place = session.directory.as_deref().map(directory);
        let id = one_line(&session.id, 60);
        Target {
            link: session_url(&session.id),
            kind: "session",
            name: session
                .prompt
                .as_deref()
                .map_or(id, |text| one_line(text, 80)),
            detail: match place {
                Some(place) => format!("{} in {place}", agent_name(&session.agent)),
                None => agent_name(&session.agent),
            },
        }
    };
    Ok(found.map(target).take(3).collect())
}

async fn outputs(visit: &Visit, query: &str) -> Result<Vec<Target>, PageError> {
    let engine = &visit.site.engine;
    let outputs = engine.latest_outputs(&visit.caller, MAX_RECENT).await?;
    let found = outputs
        .iter()
        .filter(|(_, output)| matches(&output.title, query));
    let target = |(_, output): &(onward_core::PlanId, onward_engine::OutputExcerpt)| Target {
        link: format!("/outputs/{}", output.id),
        kind: "output",
        name: one_line(&output.title, 100),
        detail: format!("version {}", output.version),
    };
    Ok(found.map(target).take(3).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_found_by_its_name_before_its_words() {
        let found = |query: &str| -> Vec<String> {
            pages(query).into_iter().map(|page| page.name).collect()
        };
        assert_eq!(found("").len(), PAGES.len());
        assert_eq!(found("in").first().map(String::as_str), Some("Inbox"));
        assert_eq!(found("webhook"), ["Alerts"]);
        assert!(found("no such page").is_empty());
    }
}
