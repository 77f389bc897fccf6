//! `/plans`: all plans, newest change first, with how many are where; filtered by status, searched by
//! words, a page at a time. Where there are none yet, how to connect an agent.

use askama::Template;
use onward_core::role::Permission;
use onward_core::{PlanId, PlanStatus, Timestamp};
use onward_engine::list::PlanQuery;
use onward_engine::{Listed, PlanCount, PlanCursor};
use serde_json::json;

use super::frame::{Frame, Section, render};
use super::settings::{Snippet, snippets};
use super::show::{Badge, When, gist};
use super::{Failed, Page, Posted, Visit, to};
use crate::output::words;
use crate::tools;
use crate::web::problem::Problem;

/// How many plans a page holds.
const SHOWN: u32 = 20;

#[derive(Template)]
#[template(path = "plans.html")]
struct Plans {
    frame: Frame,
    cards: Vec<Card>,
    choices: Vec<Choice>,
    words: String,
    chosen: String,
    rows: Vec<Row>,
    next: Option<String>,
    is_later: bool,
    /// How to begin, where there is nothing yet.
    begin: Option<Begin>,
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
    chosen: bool,
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
    updated: When,
}

struct Begin {
    snippets: Vec<Snippet>,
    why_no_sample: Option<String>,
}

pub(super) async fn show(visit: Visit) -> Page {
    let engine = &visit.site.engine;
    let chosen = visit.fields.get("status").unwrap_or_default().to_owned();
    let text = visit.fields.get("q").map(str::to_owned);
    let behind = visit.fields.get("behind").and_then(cursor);
    let counts = visit.site.tallies.count(engine, &visit.caller).await?;
    let query = PlanQuery {
        limit: SHOWN,
        behind,
        finished: chosen != "active",
        status: chosen.parse().ok(),
        text: text.clone(),
    };
    let page = engine.list_plans(&visit.caller, query).await?;
    let now = engine.now();
    let next = page.next.map(|next| {
        let mut query = vec![format!(
            "behind={}.{}",
            next.updated_at.as_millis(),
            next.plan
        )];
        for (name, value) in [("status", Some(chosen.as_str())), ("q", text.as_deref())] {
            let value = value.filter(|value| !value.is_empty());
            let value = value.and_then(|value| askama::filters::urlencode_strict(value).ok());
            query.extend(value.map(|value| format!("{name}={value}")));
        }
        format!("/plans?{}", query.join("&"))
    });
    let is_empty = page.plans.is_empty() && counts.iter().all(|count| count.plans == 0);
    render(&Plans {
        frame: visit.frame("Plans", Section::Plans).await?,
        cards: cards(&counts),
        choices: choices(&chosen),
        words: text.unwrap_or_default(),
        chosen,
        rows: page.plans.iter().map(|plan| row(plan, now)).collect(),
        next,
        is_later: behind.is_some(),
        begin: is_empty.then(|| Begin {
            snippets: snippets(&visit),
            why_no_sample: visit.why_not(Permission::CreatePlan),
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
    let of = |wanted: &dyn Fn(PlanStatus) -> bool| -> u64 {
        let counts = counts.iter().filter(|count| wanted(count.status));
        counts.map(|count| count.plans).sum()
    };
    // What is not there needs no colour.
    let card = |name, link, class, wanted: &dyn Fn(PlanStatus) -> bool| Card {
        name,
        number: of(wanted).to_string(),
        link: Some(link),
        class: if of(wanted) == 0 { "" } else { class },
    };
    let (plans, steps) = counts.iter().fold((0, 0), |(plans, steps), count| {
        (plans + count.plans, steps + count.steps)
    });
    vec![
        card("Active", "/plans?status=active", "", &|status| {
            !status.is_terminal()
        }),
        card("Stalled", "/plans?status=stalled", "stalled", &|status| {
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

/// So many steps for each plan, to a tenth.
fn average(plans: u64, steps: u64) -> String {
    let Some(tenths) = steps.saturating_mul(10).checked_div(plans) else {
        return "–".to_owned();
    };
    format!("{}.{}", tenths / 10, tenths % 10)
}

fn choices(chosen: &str) -> Vec<Choice> {
    let mut choices = vec![
        Choice {
            value: "",
            name: "any status".to_owned(),
            chosen: chosen.is_empty(),
        },
        Choice {
            value: "active",
            name: "active".to_owned(),
            chosen: chosen == "active",
        },
    ];
    choices.extend(PlanStatus::ALL.map(|status| Choice {
        value: status.as_str(),
        name: status.as_str().replace('_', " "),
        chosen: chosen == status.as_str(),
    }));
    choices
}

fn row(listed: &Listed, now: Timestamp) -> Row {
    let (sheet, head) = (&listed.sheet, &listed.sheet.head);
    Row {
        link: format!("/plans/{}", head.id),
        name: words::line(&sheet.brief.name),
        question: gist(&sheet.brief.research_question, 160),
        badge: Badge::plan(head.status()),
        is_stalled: listed.stalled && head.status() != PlanStatus::Stalled,
        progress: head.counts.progress(),
        done: head.counts.completed.saturating_add(head.counts.skipped),
        total: head.counts.total(),
        updated: When::new(sheet.updated_at, now),
    }
}

/// Makes a plan to look at.
pub(super) async fn sample(posted: Posted) -> Page {
    let visit = posted.visit;
    let plan = json!({
        "name": "Sample: which heat pump for an old house?",
        "researchQuestion": "Which heat pump fits a house of 1965 with radiators, and what does it cost over 20 years?",
        "steps": [
            { "stepType": "search", "title": "Find tests", "instructions": "Find three independent tests of heat pumps in existing houses." },
            { "stepType": "extract", "title": "Collect figures", "instructions": "Collect efficiency, noise and price from each test.", "dependsOn": [1] },
            { "stepType": "analyze", "title": "Costs over 20 years", "instructions": "Work out the costs over 20 years for each candidate.", "dependsOn": [2] },
            { "stepType": "checkpoint", "title": "Ask which matter", "instructions": "Ask a person which of the candidates are worth a closer look.", "dependsOn": [3] },
            { "stepType": "synthesize", "title": "Recommend", "instructions": "Write a recommendation of one page.", "dependsOn": [4] },
        ],
    });
    let Some(tool) = tools::find("create_research_plan") else {
        return Err(missing());
    };
    let made = tools::call(&visit.site.desk, &visit.caller, tool, plan).await;
    let made = made.map_err(Problem::from)?;
    let id = made.get("planId").and_then(serde_json::Value::as_str);
    Ok(to(&format!("/plans/{}", id.unwrap_or_default())))
}

fn missing() -> Failed {
    Problem::nowhere("/plans/sample").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_is_to_a_tenth_and_of_nothing_it_is_none() {
        assert_eq!(average(0, 0), "–");
        assert_eq!(average(4, 10), "2.5");
        assert_eq!(average(3, 10), "3.3");
    }

    #[test]
    fn a_page_begins_where_the_address_says_or_at_the_front() {
        let id = "00000000-0000-7000-8000-000000000001";
        let read = cursor(&format!("12.{id}")).unwrap();
        assert_eq!(read.updated_at.as_millis(), 12);
        assert_eq!(read.plan.to_string(), id);
        for wrong in ["", "12", "12.x", "x.y"] {
            assert_eq!(cursor(wrong), None, "{wrong}");
        }
    }
}
