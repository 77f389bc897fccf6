//! `/plans`: all plans, with filters by state, owner, agent, directory, project, label, activity and words
//! (`plans/selection.rs`), sorting, pagination, and actions on selected plans. Without plans: how
//! to connect an agent.

mod selection;

use std::cmp::Reverse;

use askama::Template;
use onward_core::attention::{Attention, Word};
use onward_core::role::Permission;
use onward_core::{Counts, PlanId, PlanStatus, Timestamp};
use onward_engine::list::{Archived, PlanQuery};
use onward_engine::{Listed, OpenPlan, Owner, PlanCursor};
use serde_json::json;

use super::format::{Age, RelativeTime, one_line};
use super::layout::{Layout, Section, render};
use super::overview::{FirstRun, counts, plan_tag};
use super::tag::Tag;
use super::timeline::Percent;
use super::unfinished::UnfinishedLists;
use super::who::Who;
use super::{FormPost, PageError, PageResult, Visit, redirect};
use crate::output::format;
use crate::tools;
use crate::web::problem::Problem;
use selection::{ARCHIVED, Menu, Order, Selection};

const PAGE_SIZE: usize = 50;
/// Pages of ended plans that are searched for one outcome.
const MAX_SEARCHED: usize = 20;
/// Number of plans that are sorted by another order than their last activity, and per query.
const MAX_SORTED: usize = 2_000;
const SORTED_PAGE: u32 = 500;

#[derive(Template)]
#[template(path = "plans.html")]
struct Plans {
    layout: Layout,
    outcome: Option<String>,
    filters: Vec<Filter>,
    menus: Vec<Menu>,
    selection: Selection,
    order: &'static str,
    rows: Vec<Row>,
    lists: UnfinishedLists,
    /// Number of plans in the list, if only the state is filtered.
    total: Option<u64>,
    next: Option<String>,
    /// Whether only the plans with the most recent activity are sorted.
    is_partial: bool,
    may_change: bool,
    may_create: bool,
    /// Displayed instead of the list if there are no plans.
    first_run: FirstRun,
}

struct Filter {
    value: &'static str,
    name: &'static str,
    link: String,
    count: Option<u64>,
    selected: bool,
}

/// A page of rows, and the start of the next one.
#[derive(Default)]
struct Page {
    rows: Vec<Row>,
    next: Option<String>,
    is_partial: bool,
}

struct Row {
    id: String,
    link: String,
    name: String,
    question: Option<String>,
    tag: Tag,
    strip: Vec<(&'static str, Percent, Percent)>,
    done: u32,
    total: u32,
    who: String,
    place: Option<String>,
    since: Age,
    acted: RelativeTime,
    archived: bool,
}

pub(super) async fn show(visit: Visit) -> PageResult {
    let engine = &visit.site.engine;
    let selection = Selection::from_fields(&visit.fields);
    let now = engine.now();
    let open = engine.open_plans(&visit.caller).await?;
    let counts = counts(&visit).await?;
    let archived = engine.count_archived(&visit.caller).await?;
    let is_empty = open.is_empty() && archived == 0 && counts.iter().all(|count| count.plans == 0);
    let page = if selection.is_open_list() {
        open_rows(&visit, &open, &selection, now)
    } else if selection.order() == Order::Activity {
        listed_rows(&visit, &selection, now).await?
    } else {
        sorted_rows(&visit, &selection, now).await?
    };
    let owners = open
        .iter()
        .map(|(plan, _)| (&plan.owner, &plan.head.routing));
    let filters = filters(&selection, &open, &counts, archived);
    let of_state = |filter: &&Filter| {
        // Unfinished and archived lists are not in the list of all plans.
        let is_listed = filter.count.is_some()
            && ![Word::UnfinishedList.as_str(), ARCHIVED].contains(&filter.value);
        filter.selected || (is_listed && selection.state.is_empty())
    };
    let total = filters
        .iter()
        .filter(of_state)
        .filter_map(|filter| filter.count);
    let total = selection.is_only_state().then(|| total.sum());
    let lists = if selection.omits_lists() && visit.fields.get("after").is_none() {
        let matching = open.iter().filter(|(plan, _)| {
            selection.matches(&plan.owner, &plan.head.routing, plan.acted_at, now)
        });
        UnfinishedLists::new(&visit, matching, "plans", now)
    } else {
        UnfinishedLists::none()
    };
    render(&Plans {
        lists,
        layout: visit.layout("Plans", Section::Plans).await?,
        outcome: outcome(&visit),
        filters,
        total,
        menus: selection.menus(owners),
        order: selection.order().label(),
        rows: page.rows,
        next: page.next.map(|after| selection.link("after", &after)),
        is_partial: page.is_partial,
        may_change: visit.denial(Permission::Intervene).is_none(),
        may_create: visit.denial(Permission::CreatePlan).is_none(),
        first_run: FirstRun::load(&visit, !is_empty).await?,
        selection,
    })
}

/// Plans that have not ended.
fn open_rows(
    visit: &Visit,
    open: &[(OpenPlan, Attention)],
    selection: &Selection,
    now: Timestamp,
) -> Page {
    let is_wanted = |(plan, attention): &&(OpenPlan, Attention)| {
        let word = selection.word();
        let routing = &plan.head.routing;
        let is_other = attention.word != Word::UnfinishedList;
        word.map_or(is_other, |word| attention.word == word)
            && selection.matches(&plan.owner, routing, plan.acted_at, now)
    };
    let mut found: Vec<&(OpenPlan, Attention)> = open.iter().filter(is_wanted).collect();
    match selection.order() {
        // The order of the engine.
        Order::Since => {}
        Order::Activity => found.sort_by_key(|(plan, _)| Reverse(plan.acted_at)),
        Order::Name => found.sort_by_cached_key(|(plan, _)| plan.name.to_lowercase()),
    }
    let row = |(plan, attention): &&(OpenPlan, Attention)| {
        row(
            plan.head.id,
            &plan.name,
            None,
            &plan.owner,
            *attention,
            &plan.head.counts,
            (plan.acted_at, now),
        )
    };
    page_at(visit, &found, row)
}

/// The page of a list in memory at the offset in the query.
fn page_at<T>(visit: &Visit, all: &[T], row: impl Fn(&T) -> Row) -> Page {
    let skipped: usize = visit.fields.parsed("after").unwrap_or(0);
    let rest = all.get(skipped..).unwrap_or_default();
    let has_more = rest.len() > PAGE_SIZE;
    Page {
        rows: rest.iter().take(PAGE_SIZE).map(row).collect(),
        next: has_more.then(|| (skipped + PAGE_SIZE).to_string()),
        is_partial: false,
    }
}

/// The query for plans of all states, or ended ones, most recent activity first.
fn plan_query(selection: &Selection, limit: u32, after: Option<PlanCursor>) -> PlanQuery {
    PlanQuery {
        limit,
        after,
        finished: selection.state != "active",
        status: match selection.word() {
            Some(Word::Done | Word::DoneWithFailures) => Some(PlanStatus::Completed),
            Some(Word::Failed | Word::Cancelled) => Some(PlanStatus::Failed),
            Some(_) | None => None,
        },
        text: selection.text().map(str::to_owned),
        project_key: Some(selection.project.clone()).filter(|key| !key.is_empty()),
        archived: if selection.state == ARCHIVED {
            Archived::Only
        } else {
            Archived::Without
        },
        unfinished_lists: selection.omits_lists().then_some(false),
        ..PlanQuery::default()
    }
}

fn is_listed(selection: &Selection, listed: &Listed, now: Timestamp) -> bool {
    let (word, sheet) = (selection.word(), &listed.sheet);
    word.is_none_or(|word| listed.attention.word == word)
        && selection.matches(&sheet.owner, &sheet.head.routing, sheet.acted_at, now)
}

/// Plans of all states, or ended ones, most recent activity first.
async fn listed_rows(
    visit: &Visit,
    selection: &Selection,
    now: Timestamp,
) -> Result<Page, PageError> {
    let mut after = visit.fields.get("after").and_then(cursor);
    let mut rows = Vec::new();
    let mut next = None;
    for _ in 0..MAX_SEARCHED {
        let query = plan_query(selection, u32::try_from(PAGE_SIZE).unwrap_or(50), after);
        let page = visit.site.engine.list_plans(&visit.caller, query).await?;
        for (index, listed) in page.plans.iter().enumerate() {
            if rows.len() == PAGE_SIZE {
                let last = index
                    .checked_sub(1)
                    .and_then(|last| page.cursor_after(last));
                return Ok(Page {
                    rows,
                    next: last.or(after).as_ref().map(format_cursor),
                    is_partial: false,
                });
            }
            if is_listed(selection, listed, now) {
                rows.push(listed_row(listed, now));
            }
        }
        next = page.next;
        after = page.next;
        if after.is_none() || rows.len() == PAGE_SIZE {
            break;
        }
    }
    Ok(Page {
        rows,
        next: next.as_ref().map(format_cursor),
        is_partial: false,
    })
}

/// The same plans in another order. Only those with the most recent actions are sorted.
async fn sorted_rows(
    visit: &Visit,
    selection: &Selection,
    now: Timestamp,
) -> Result<Page, PageError> {
    let (mut found, mut after, mut read) = (Vec::new(), None, 0);
    loop {
        let query = plan_query(selection, SORTED_PAGE, after);
        let page = visit.site.engine.list_plans(&visit.caller, query).await?;
        read += page.plans.len();
        let plans = page.plans.into_iter();
        found.extend(plans.filter(|listed| is_listed(selection, listed, now)));
        after = page.next;
        if after.is_none() || read >= MAX_SORTED {
            break;
        }
    }
    match selection.order() {
        Order::Since => found.sort_by_key(|listed| listed.attention.since),
        Order::Activity => {}
        Order::Name => found.sort_by_cached_key(|listed| listed.sheet.brief.name.to_lowercase()),
    }
    Ok(Page {
        is_partial: after.is_some(),
        ..page_at(visit, &found, |listed| listed_row(listed, now))
    })
}

fn listed_row(listed: &Listed, now: Timestamp) -> Row {
    let sheet = &listed.sheet;
    let question = one_line(&sheet.brief.research_question, 300);
    let times = (sheet.acted_at, now);
    Row {
        archived: listed.archived,
        ..row(
            sheet.head.id,
            &sheet.brief.name,
            Some(question),
            &sheet.owner,
            listed.attention,
            &sheet.head.counts,
            times,
        )
    }
}

fn row(
    id: PlanId,
    name: &str,
    question: Option<String>,
    owner: &Owner,
    attention: Attention,
    counts: &Counts,
    (acted_at, now): (Timestamp, Timestamp),
) -> Row {
    let who = Who::new(owner);
    let name = format::sanitize_line(name);
    Row {
        id: id.to_string(),
        link: format!("/plans/{id}"),
        question: question.filter(|question| !question.starts_with(&name)),
        name,
        tag: plan_tag(attention.word),
        strip: strip(counts, attention.word),
        done: counts.completed.saturating_add(counts.skipped),
        total: counts.total(),
        who: who.short(),
        place: who.directory,
        since: Age::new(attention.since, now),
        acted: RelativeTime::new(acted_at, now),
        archived: false,
    }
}

/// The states of the steps in proportion to their number.
fn strip(counts: &Counts, word: Word) -> Vec<(&'static str, Percent, Percent)> {
    let total = u64::from(counts.total()).max(1);
    let in_progress = if word == Word::Stuck {
        "stuck"
    } else if word.is_ended() || word == Word::UnfinishedList {
        // No agent works on it any more.
        "skipped"
    } else {
        "working"
    };
    let parts = [
        ("done", counts.completed),
        ("skipped", counts.skipped),
        ("failed", counts.failed),
        ("needs_you", counts.awaiting_input),
        (in_progress, counts.in_progress),
        ("queued", counts.pending),
    ];
    let mut start = 0;
    let mut strip = Vec::new();
    for (class, count) in parts.into_iter().filter(|(_, count)| *count > 0) {
        let end = start + u64::from(count);
        let (x, until) = (start * 1_000 / total, end * 1_000 / total);
        strip.push((class, Percent(x), Percent(until - x)));
        start = end;
    }
    strip
}

fn outcome(visit: &Visit) -> Option<String> {
    let count: u64 = visit.fields.parsed("count").unwrap_or(0);
    Some(match visit.fields.get("done")? {
        "many_released" => {
            let steps = format::count(count, "step is", "steps are");
            format!(
                "{steps} back in the queue. For plans without an agent, copy the prompt on their page and send it to one."
            )
        }
        "many_cancelled" => {
            let plans = format::count(count, "plan was", "plans were");
            format!(
                "{plans} cancelled. Their steps can no longer be claimed; existing results are kept."
            )
        }
        "none_selected" => "No plan was selected.".to_owned(),
        _ => return None,
    })
}

fn filters(
    selection: &Selection,
    open: &[(OpenPlan, Attention)],
    counts: &[onward_engine::AttentionCount],
    archived: u64,
) -> Vec<Filter> {
    let of_word = |word: Word| {
        if word.is_ended() {
            let found = counts.iter().find(|count| count.word == word);
            found.map_or(0, |count| count.plans)
        } else {
            let found = open.iter().filter(|(_, attention)| attention.word == word);
            u64::try_from(found.count()).unwrap_or(u64::MAX)
        }
    };
    let filter = |value: &'static str, name, count| Filter {
        value,
        name,
        link: selection.link("state", value),
        count,
        selected: value == selection.state,
    };
    let mut filters = vec![filter("", "All", None)];
    filters.extend(Word::ALL.map(|word| filter(word.as_str(), word.label(), Some(of_word(word)))));
    filters.push(filter(ARCHIVED, "archived", Some(archived)));
    // Rare words only if there are such plans.
    filters.retain(|filter| {
        let rare = [
            "blocked",
            "not_started",
            "unfinished_list",
            "done_with_failures",
            "cancelled",
            ARCHIVED,
        ];
        let is_rare = rare.contains(&filter.value);
        !is_rare || filter.selected || filter.count != Some(0)
    });
    filters
}

fn cursor(text: &str) -> Option<PlanCursor> {
    let (at, plan) = text.split_once('.')?;
    Some(PlanCursor {
        acted_at: Timestamp::from_millis(at.parse().ok()?),
        plan: plan.parse::<PlanId>().ok()?,
    })
}

fn format_cursor(cursor: &PlanCursor) -> String {
    format!("{}.{}", cursor.acted_at.as_millis(), cursor.plan)
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
    fn the_strip_has_the_states_in_proportion() {
        let counts = Counts {
            completed: 1,
            in_progress: 1,
            pending: 2,
            ..Counts::default()
        };
        let parts = strip(&counts, Word::Stuck);
        let parts: Vec<_> = parts
            .iter()
            .map(|(class, x, width)| (*class, x.0, width.0))
            .collect();
        assert_eq!(
            parts,
            [("done", 0, 250), ("stuck", 250, 250), ("queued", 500, 500)]
        );
    }

    #[test]
    fn parses_cursors_and_ignores_invalid_ones() {
        let id = "00000000-0000-7000-8000-000000000001";
        let read = cursor(&format!("12.{id}")).unwrap();
        assert_eq!(read.acted_at.as_millis(), 12);
        assert_eq!(read.plan.to_string(), id);
        for wrong in ["", "12", "12.x", "x.y"] {
            assert_eq!(cursor(wrong), None, "{wrong}");
        }
    }
}
