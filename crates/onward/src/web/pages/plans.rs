//! `/plans`: all plans, most recent change first, with the number of plans by status, filters and
//! pagination. Without plans: how to connect an agent.

use askama::Template;
use onward_core::role::Permission;
use onward_core::{PlanId, PlanStatus, Timestamp};
use onward_engine::list::PlanQuery;
use onward_engine::{Listed, PlanCount, PlanCursor};
use serde_json::json;

use super::format::{Badge, RelativeTime, one_line, status_label};
use super::layout::{Layout, Section, render};
use super::settings::{Snippet, snippets};
use super::{FormPost, PageResult, Visit, redirect};
use crate::output::format;
use crate::tools;
use crate::web::problem::Problem;

const PAGE_SIZE: u32 = 20;

#[derive(Template)]
#[template(path = "plans.html")]
struct Plans {
    layout: Layout,
    cards: Vec<Card>,
    choices: Vec<Choice>,
    query: String,
    status: String,
    rows: Vec<Row>,
    next: Option<String>,
    is_later: bool,
    /// Displayed instead of the list if there are no plans.
    first_run: Option<FirstRun>,
}

struct Card {
    name: &'static str,
    number: String,
    link: Option<&'static str>,
    class: &'static str,
}

struct Choice {
    value: &'static str,
    name: String,
    selected: bool,
}

struct Row {
    link: String,
    name: String,
    question: String,
    badge: Badge,
    is_stalled: bool,
    progress: u32,
    done: u32,
    total: u32,
    updated: RelativeTime,
}

struct FirstRun {
    snippets: Vec<Snippet>,
    sample_denied: Option<String>,
}

pub(super) async fn show(visit: Visit) -> PageResult {
    let engine = &visit.site.engine;
    let status = visit.fields.get("status").unwrap_or_default().to_owned();
    let text = visit.fields.get("q").map(str::to_owned);
    let after = visit.fields.get("after").and_then(cursor);
    let counts = visit.site.plan_counts.count(engine, &visit.caller).await?;
    let query = PlanQuery {
        limit: PAGE_SIZE,
        after,
        finished: status != "active",
        status: status.parse().ok(),
        text: text.clone(),
    };
    let page = engine.list_plans(&visit.caller, query).await?;
    let now = engine.now();
    let next = page.next.map(|next| {
        let mut query = vec![format!(
            "after={}.{}",
            next.updated_at.as_millis(),
            next.plan
        )];
        for (name, value) in [("status", Some(status.as_str())), ("q", text.as_deref())] {
            let value = value.filter(|value| !value.is_empty());
            let value = value.and_then(|value| askama::filters::urlencode_strict(value).ok());
            query.extend(value.map(|value| format!("{name}={value}")));
        }
        format!("/plans?{}", query.join("&"))
    });
    let is_empty = page.plans.is_empty() && counts.iter().all(|count| count.plans == 0);
    render(&Plans {
        layout: visit.layout("Plans", Section::Plans).await?,
        cards: cards(&counts),
        choices: choices(&status),
        query: text.unwrap_or_default(),
        status,
        rows: page.plans.iter().map(|plan| row(plan, now)).collect(),
        next,
        is_later: after.is_some(),
        first_run: is_empty.then(|| FirstRun {
            snippets: snippets(&visit),
            sample_denied: visit.denial(Permission::CreatePlan),
        }),
    })
}

fn cursor(text: &str) -> Option<PlanCursor> {
    let (at, plan) = text.split_once('.')?;
    Some(PlanCursor {
        updated_at: Timestamp::from_millis(at.parse().ok()?),
        plan: plan.parse::<PlanId>().ok()?,
    })
}

fn cards(counts: &[PlanCount]) -> Vec<Card> {
    let count = |matches: &dyn Fn(PlanStatus) -> bool| -> u64 {
        let counts = counts.iter().filter(|count| matches(count.status));
        counts.map(|count| count.plans).sum()
    };
    // A zero is not highlighted.
    let card = |name, link, class, matches: &dyn Fn(PlanStatus) -> bool| Card {
        name,
        number: count(matches).to_string(),
        link: Some(link),
        class: if count(matches) == 0 { "" } else { class },
    };
    let (plans, steps) = counts.iter().fold((0, 0), |(plans, steps), count| {
        (plans + count.plans, steps + count.steps)
    });
    vec![
        card("Active", "/plans?status=active", "", &|status| {
            !status.is_terminal()
        }),
        card("Stuck", "/plans?status=stalled", "stalled", &|status| {
            status == PlanStatus::Stalled
        }),
        card(
            "Awaiting review",
            "/plans?status=awaiting_review",
            "awaiting_review",
            &|status| status == PlanStatus::AwaitingReview,
        ),
        card(
            "Completed",
            "/plans?status=completed",
            "completed",
            &|status| status == PlanStatus::Completed,
        ),
        card("Failed", "/plans?status=failed", "failed", &|status| {
            status == PlanStatus::Failed
        }),
        Card {
            name: "Steps per plan",
            number: average(plans, steps),
            link: None,
            class: "",
        },
    ]
}

/// The average number of steps per plan, with one decimal.
fn average(plans: u64, steps: u64) -> String {
    let Some(tenths) = steps.saturating_mul(10).checked_div(plans) else {
        return "–".to_owned();
    };
    format!("{}.{}", tenths / 10, tenths % 10)
}

fn choices(selected: &str) -> Vec<Choice> {
    let mut choices = vec![
        Choice {
            value: "",
            name: "any status".to_owned(),
            selected: selected.is_empty(),
        },
        Choice {
            value: "active",
            name: "active".to_owned(),
            selected: selected == "active",
        },
    ];
    choices.extend(PlanStatus::ALL.map(|status| Choice {
        value: status.as_str(),
        name: status_label(status.as_str()),
        selected: selected == status.as_str(),
    }));
    choices
}

fn row(listed: &Listed, now: Timestamp) -> Row {
    let (sheet, head) = (&listed.sheet, &listed.sheet.head);
    Row {
        link: format!("/plans/{}", head.id),
        name: format::sanitize_line(&sheet.brief.name),
        question: one_line(&sheet.brief.research_question, 160),
        badge: Badge::plan(head.status()),
        is_stalled: listed.stalled && head.status() != PlanStatus::Stalled,
        progress: head.counts.progress(),
        done: head.counts.completed.saturating_add(head.counts.skipped),
        total: head.counts.total(),
        updated: RelativeTime::new(sheet.updated_at, now),
    }
}

/// Creates a sample plan.
pub(super) async fn sample(post: FormPost) -> PageResult {
    let visit = post.visit;
    let plan = json!({
        "name": "Sample: heat pump for an old house",
        "researchQuestion": "Which heat pump fits a house built in 1965 with radiators, and what does it cost over 20 years?",
        "steps": [
            { "stepType": "search", "title": "Find tests", "instructions": "Find three independent tests of heat pumps in existing houses." },
            { "stepType": "extract", "title": "Collect data", "instructions": "Collect efficiency, noise and price from each test.", "dependsOn": [1] },
            { "stepType": "analyze", "title": "Compare costs", "instructions": "Calculate the costs over 20 years for each candidate.", "dependsOn": [2] },
            { "stepType": "checkpoint", "title": "Select candidates", "instructions": "Ask the user which candidates to examine further.", "dependsOn": [3] },
            { "stepType": "synthesize", "title": "Recommend", "instructions": "Write a one-page recommendation.", "dependsOn": [4] },
        ],
    });
    let Some(tool) = tools::find("create_research_plan") else {
        return Err(Problem::route_not_found("/plans/sample").into());
    };
    let created = tools::call(&visit.site.tool_context, &visit.caller, tool, plan).await;
    let created = created.map_err(Problem::from)?;
    let id = created.get("planId").and_then(serde_json::Value::as_str);
    Ok(redirect(&format!("/plans/{}", id.unwrap_or_default())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_has_one_decimal() {
        assert_eq!(average(0, 0), "–");
        assert_eq!(average(4, 10), "2.5");
        assert_eq!(average(3, 10), "3.3");
    }

    #[test]
    fn parses_cursors_and_ignores_invalid_ones() {
        let id = "00000000-0000-7000-8000-000000000001";
        let read = cursor(&format!("12.{id}")).unwrap();
        assert_eq!(read.updated_at.as_millis(), 12);
        assert_eq!(read.plan.to_string(), id);
        for wrong in ["", "12", "12.x", "x.y"] {
            assert_eq!(cursor(wrong), None, "{wrong}");
        }
    }
}
