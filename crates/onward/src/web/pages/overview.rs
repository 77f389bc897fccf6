//! `/`: what needs a person, in one list; the health of the server; the activity of 48 hours; the
//! plans that agents work on, and those that ended last.

mod chart;

use std::collections::HashMap;

use askama::Template;
use onward_core::attention::{Attention, Word};
use onward_core::role::Permission;
use onward_core::session::{SessionStatus, SubagentStatus};
use onward_core::{PlanId, PlanStatus, Timestamp};
use onward_engine::list::{OpenReview, PlanQuery};
use onward_engine::{AttentionCount, Delivery, OpenPlan, SessionLine, StepLine, session};

use super::agent_name::{agent_name, directory, person};
use super::format::{Age, Clock, RelativeTime, one_line};
use super::layout::{Layout, Section, render};
use super::plan::{note_text, prompt, step_name, steps_text};
use super::settings::{Snippet, snippets};
use super::tag::Tag;
use super::unfinished::UnfinishedLists;
use super::who::Who;
use super::{PageError, PageResult, Visit};
use crate::output::status::word_mark;
use crate::output::{budget, format};
use chart::{Chart, HOURS};

/// Maximum number of rows of each kind in the list of items that need a person.
const MAX_ROWS: usize = 25;
const MAX_WORKING: usize = 8;
const MAX_FINISHED: usize = 6;
const MAX_SESSIONS: u32 = 100;
const MAX_REVIEWS: u32 = 200;
const HOUR_MS: i64 = 3_600_000;

#[derive(Template)]
#[template(path = "overview.html")]
struct Overview {
    layout: Layout,
    health: Health,
    tiles: Vec<Tile>,
    rows: Vec<Row>,
    /// Number of items that need a person.
    needed: usize,
    chart: Chart,
    lists: UnfinishedLists,
    working: Vec<Working>,
    finished: Vec<Finished>,
    /// Displayed instead of the lists if there are no plans, and collapsed below them otherwise.
    first_run: FirstRun,
}

/// How to connect an agent.
pub(super) struct FirstRun {
    pub(super) has_plans: bool,
    pub(super) snippets: Vec<Snippet>,
    pub(super) may_create: bool,
    /// The agent that was active last. The instructions are collapsed if there is one.
    pub(super) agent: Option<(String, RelativeTime)>,
}

struct Health {
    up: Age,
    is_watching: bool,
    /// The last check for stuck steps, if this server checks.
    checked: Option<RelativeTime>,
    /// The webhook, and its last delivery.
    alerts: Option<(String, Option<Clock>)>,
    /// The agent whose hooks were active last.
    hooks: Option<(String, RelativeTime)>,
}

struct Tile {
    class: &'static str,
    number: u64,
    label: &'static str,
    detail: Option<(&'static str, Age)>,
    text: Option<String>,
    link: &'static str,
}

/// An item that needs a person.
struct Row {
    tag: Tag,
    name: String,
    link: String,
    detail: String,
    since: Age,
    clock: Clock,
    action: Action,
}

enum Action {
    /// Releases the stuck steps of a plan: its id, and the label.
    Release(String, String),
    Link(String, &'static str),
    /// An id, and the text to copy.
    Copy(String, String),
}

impl Row {
    /// The row for a reader, who can only open the item.
    fn read_only(self) -> Self {
        let link = match self.action {
            Action::Link(link, _) => link,
            Action::Release(..) | Action::Copy(..) => self.link.clone(),
        };
        let action = Action::Link(link, "Open");
        Self { action, ..self }
    }
}

struct Working {
    name: String,
    link: String,
    detail: String,
    done: u32,
    total: u32,
    updated: RelativeTime,
}

struct Finished {
    name: String,
    link: String,
    tag: Tag,
    who: String,
    ended: RelativeTime,
    output: Option<(String, String)>,
}

/// The tag of a plan.
pub(super) fn plan_tag(word: Word) -> Tag {
    let (symbol, _) = word_mark(word);
    Tag::new(word.as_str(), symbol, word.label())
}

impl FirstRun {
    pub(super) async fn load(visit: &Visit, has_plans: bool) -> Result<Self, PageError> {
        Ok(Self {
            has_plans,
            snippets: snippets(visit),
            may_create: visit.denial(Permission::CreatePlan).is_none(),
            agent: last_agent(visit).await?,
        })
    }
}

/// The agent whose hooks were active last.
async fn last_agent(visit: &Visit) -> Result<Option<(String, RelativeTime)>, PageError> {
    let engine = &visit.site.engine;
    let agents = engine.agents_seen(&visit.caller).await?;
    let last = agents.into_iter().max_by_key(|(_, at)| *at);
    Ok(last.map(|(agent, at)| (agent_name(&agent), RelativeTime::new(at, engine.now()))))
}

/// The numbers of ended plans, possibly a few seconds old.
pub(super) async fn counts(visit: &Visit) -> Result<Vec<AttentionCount>, PageError> {
    let engine = &visit.site.engine;
    let count = engine.count_attention(&visit.caller);
    let cache = &visit.site.attention_counts;
    Ok(cache.get(&visit.caller.tenant, count).await?)
}

/// Whether there are ended or archived plans.
pub(super) async fn has_other_plans(visit: &Visit) -> Result<bool, PageError> {
    let has_ended = counts(visit).await?.iter().any(|count| count.plans > 0);
    Ok(has_ended || visit.site.engine.count_archived(&visit.caller).await? > 0)
}

pub(super) async fn show(visit: Visit) -> PageResult {
    let engine = &visit.site.engine;
    let now = engine.now();
    let plans = engine.open_plans(&visit.caller).await?;
    let is_empty = plans.is_empty() && !has_other_plans(&visit).await?;
    let sessions = engine.list_sessions(&visit.caller, MAX_SESSIONS).await?;
    let reviews = engine.open_reviews(&visit.caller, MAX_REVIEWS).await?;
    let finished = finished(&visit, now).await?;
    let listed = plans
        .iter()
        .filter(|(_, attention)| matches!(attention.word, Word::Stuck | Word::Working));
    let listed: Vec<PlanId> = listed
        .take(4 * MAX_ROWS)
        .map(|(plan, _)| plan.head.id)
        .collect();
    let steps = engine.open_steps(&visit.caller, listed).await?;
    let queue = Queue {
        plans: &plans,
        sessions: &sessions,
        reviews: &reviews,
        steps: &steps,
        now,
    };
    let mut rows = queue.rows();
    if visit.denial(Permission::Intervene).is_some() {
        rows = rows.into_iter().map(Row::read_only).collect();
    }
    let since = Timestamp::from_millis(now.as_millis() - HOURS * HOUR_MS);
    let hours = engine.events_by_hour(&visit.caller, since);
    let hours = visit
        .site
        .hour_counts
        .get(&visit.caller.tenant, hours)
        .await?;
    render(&Overview {
        layout: visit.layout("Overview", Section::Overview).await?,
        health: health(&visit, now).await?,
        tiles: queue.tiles(&finished),
        needed: queue.needed(),
        rows,
        chart: Chart::new(&hours, now),
        lists: UnfinishedLists::new(&visit, plans.iter(), "overview", now),
        working: queue.working(),
        finished: finished.shown,
        first_run: FirstRun::load(&visit, !is_empty).await?,
    })
}

async fn health(visit: &Visit, now: Timestamp) -> Result<Health, PageError> {
    let engine = &visit.site.engine;
    let mut alerts = None;
    if let Some((webhook, _)) = &visit.site.settings.webhook {
        let notices = engine.notifications(&visit.caller, 50).await?;
        let sent = notices
            .iter()
            .find(|notice| notice.delivery == Delivery::Sent);
        let sent = sent.and_then(|notice| notice.ended_at);
        alerts = Some((one_line(webhook, 60), sent.map(|at| Clock::new(at, now))));
    }
    Ok(Health {
        up: Age::new(visit.site.started_at, now),
        is_watching: !engine.sweep_has_no_leader().await?,
        checked: engine.last_sweep_at().map(|at| RelativeTime::new(at, now)),
        alerts,
        hooks: last_agent(visit).await?,
    })
}

/// The plans that ended last, and the numbers of the last seven days.
struct Ended {
    shown: Vec<Finished>,
    done: u64,
    done_with_failures: u64,
    failed: u64,
}

async fn finished(visit: &Visit, now: Timestamp) -> Result<Ended, PageError> {
    let engine = &visit.site.engine;
    let week = Timestamp::from_millis(now.as_millis() - 7 * 24 * HOUR_MS);
    let (mut ended, mut shown) = (Vec::new(), Vec::new());
    for status in [PlanStatus::Completed, PlanStatus::Failed] {
        let query = PlanQuery {
            limit: 200,
            status: Some(status),
            ..PlanQuery::default()
        };
        ended.extend(engine.list_plans(&visit.caller, query).await?.plans);
    }
    ended.sort_by_key(|listed| std::cmp::Reverse(listed.attention.since));
    let recent = || ended.iter().filter(|listed| listed.attention.since >= week);
    let of_word = |word: Word| {
        let count = recent().filter(|listed| listed.attention.word == word);
        u64::try_from(count.count()).unwrap_or(u64::MAX)
    };
    let [done, done_with_failures, failed] =
        [Word::Done, Word::DoneWithFailures, Word::Failed].map(of_word);
    for listed in ended.iter().take(MAX_FINISHED) {
        let id = listed.sheet.head.id;
        let outputs = engine.outputs(&visit.caller, id, 1).await?;
        let output = outputs.first().map(|output| {
            let name = format!("{} v{}", one_line(&output.title, 40), output.version);
            (format!("/outputs/{}", output.id), name)
        });
        shown.push(Finished {
            name: one_line(&listed.sheet.brief.name, 100),
            link: format!("/plans/{id}"),
            tag: plan_tag(listed.attention.word),
            who: Who::new(&listed.sheet.owner).person,
            ended: RelativeTime::new(listed.attention.since, now),
            output,
        });
    }
    Ok(Ended {
        shown,
        done,
        done_with_failures,
        failed,
    })
}

/// What the lists are made of.
struct Queue<'a> {
    plans: &'a [(OpenPlan, Attention)],
    sessions: &'a [SessionLine],
    reviews: &'a [OpenReview],
    steps: &'a HashMap<PlanId, Vec<StepLine>>,
    now: Timestamp,
}

impl Queue<'_> {
    fn of_word(&self, word: Word) -> impl Iterator<Item = &(OpenPlan, Attention)> {
        let of_word = move |(_, attention): &&(OpenPlan, Attention)| attention.word == word;
        self.plans.iter().filter(of_word)
    }

    fn troubled(&self) -> Vec<(&SessionLine, SessionStatus, Timestamp)> {
        let status = |line| {
            let (status, since) = session::status(line, self.now);
            (line, status, since)
        };
        let all = self.sessions.iter().map(status);
        let mut troubled: Vec<_> = all.filter(|(_, status, _)| status.is_trouble()).collect();
        troubled.sort_by_key(|(_, status, since)| (*status, *since));
        troubled
    }

    fn needed(&self) -> usize {
        let plans = self
            .plans
            .iter()
            .filter(|(_, attention)| attention.word.needs_person());
        plans.count() + self.troubled().len()
    }

    fn row(
        &self,
        tag: Tag,
        plan: &OpenPlan,
        since: Timestamp,
        detail: String,
        action: Action,
    ) -> Row {
        let who = Who::new(&plan.owner).short();
        Row {
            tag,
            name: one_line(&plan.name, 100),
            link: format!("/plans/{}", plan.head.id),
            detail: format!("{who} · {detail}"),
            since: Age::new(since, self.now),
            clock: Clock::new(since, self.now),
            action,
        }
    }

    /// The items that need a person: by kind, the oldest first.
    fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for (plan, attention) in self.of_word(Word::Stuck).take(MAX_ROWS) {
            rows.push(self.stuck(plan, attention.since));
        }
        for (line, status, since) in self.troubled().into_iter().take(MAX_ROWS) {
            rows.push(self.session(line, status, since));
        }
        for (plan, attention) in self.of_word(Word::NeedsYou).take(MAX_ROWS) {
            rows.push(self.review(plan, attention.since));
        }
        for word in [Word::Blocked, Word::NoAgent] {
            for (plan, attention) in self.of_word(word).take(MAX_ROWS) {
                let counts = &plan.head.counts;
                let mut detail = match counts.completed + counts.skipped + counts.failed {
                    0 => format!(
                        "never started: {}",
                        format::count(counts.total(), "step", "steps")
                    ),
                    _ => format!(
                        "{} left",
                        format::count(counts.pending, "step is", "steps are")
                    ),
                };
                if counts.failed > 0 {
                    detail = format!("{detail}, {} failed", counts.failed);
                }
                let id = plan.head.id.to_string();
                let action = if word == Word::Blocked {
                    Action::Link(format!("/plans/{id}"), "Retry or cancel")
                } else {
                    Action::Copy(format!("prompt-{}", format::short_id(&id)), prompt(&id))
                };
                rows.push(self.row(plan_tag(word), plan, attention.since, detail, action));
            }
        }
        rows
    }

    fn stuck(&self, plan: &OpenPlan, since: Timestamp) -> Row {
        if let Some(exhausted) = plan.head.stopped_by_budget(self.now) {
            let detail = format!("budget: {}", budget::exhausted_text(&exhausted));
            let link = format!("/plans/{}?tab=about#budget", plan.head.id);
            let action = Action::Link(link, "Raise budget…");
            return self.row(plan_tag(Word::Stuck), plan, since, detail, action);
        }
        let lines = self.steps.get(&plan.head.id).map_or(&[][..], Vec::as_slice);
        let stuck = lines.iter().filter(|line| line.is_stalled(self.now));
        let stuck: Vec<&StepLine> = stuck.collect();
        let orders: Vec<u32> = stuck.iter().map(|line| line.order).collect();
        let detail = match stuck.as_slice() {
            [one] => format!("step {}, {}", one.order, step_name(one)),
            _ => steps_text(&orders),
        };
        let label = match orders.len() {
            0 | 1 => "Release step".to_owned(),
            many => format!("Release {many} steps"),
        };
        let action = Action::Release(plan.head.id.to_string(), label);
        self.row(plan_tag(Word::Stuck), plan, since, detail, action)
    }

    fn review(&self, plan: &OpenPlan, since: Timestamp) -> Row {
        let open = self
            .reviews
            .iter()
            .find(|review| review.plan == plan.head.id);
        let detail = open.map_or(
            "a step waits for your decision".to_owned(),
            |open| match open.review.asked().collect::<Vec<_>>().as_slice() {
                [] => format!("step {} waits for your decision", open.order),
                [one] => format!("step {} asks: “{}”", open.order, one_line(one, 100)),
                [first, more @ ..] => {
                    let many = 1 + more.len();
                    format!(
                        "step {} asks {many} questions: “{}”",
                        open.order,
                        one_line(first, 90)
                    )
                }
            },
        );
        let link = open.map(|open| format!("/reviews/{}", open.id));
        let link = link.unwrap_or("/inbox".to_owned());
        let mut tag = plan_tag(Word::NeedsYou);
        tag.label = "review";
        self.row(tag, plan, since, detail, Action::Link(link, "Decide"))
    }

    fn session(&self, line: &SessionLine, status: SessionStatus, since: Timestamp) -> Row {
        let session = &line.session;
        let place = session.directory.as_deref().map(directory);
        let who = session.actor.as_deref().map(person);
        let agent = agent_name(&session.agent);
        let mut detail = match who {
            Some(who) => format!("{who} · {agent}"),
            None => agent,
        };
        if status == SessionStatus::StaleSubagent {
            let subagents = session::subagents(line, self.now);
            let stale = subagents.iter();
            let stale = stale.filter(|one| one.status == SubagentStatus::Stale);
            let (stale, all) = (stale.count(), subagents.len());
            detail = format!("{detail} · {stale} of {all} subagents stale");
        }
        if let Some(prompt) = &session.prompt {
            detail = format!("{detail} · “{}”", one_line(prompt, 80));
        }
        let link = format!(
            "/sessions/{}",
            askama::filters::urlencode_strict(&session.id)
                .map(|id| id.to_string())
                .unwrap_or_default()
        );
        Row {
            tag: Tag::session(status),
            name: place.map_or("Session".to_owned(), |place| format!("Session in {place}")),
            link: link.clone(),
            detail,
            since: Age::new(since, self.now),
            clock: Clock::new(since, self.now),
            action: Action::Link(link, "Open session"),
        }
    }

    fn tiles(&self, ended: &Ended) -> Vec<Tile> {
        let tile = |word: Word, label: &'static str, link: &'static str| {
            let mut of_word = self.of_word(word);
            let oldest = of_word.next().map(|(_, attention)| attention.since);
            let number = self.of_word(word).count();
            Tile {
                class: if number == 0 { "" } else { word.as_str() },
                number: u64::try_from(number).unwrap_or(u64::MAX),
                label,
                detail: oldest.map(|since| ("oldest", Age::new(since, self.now))),
                text: None,
                link,
            }
        };
        let troubled = self.troubled();
        let oldest = troubled.iter().map(|(_, _, since)| *since).min();
        let steps: u32 = self
            .of_word(Word::Working)
            .map(|(plan, _)| plan.head.counts.in_progress)
            .sum();
        vec![
            tile(Word::Stuck, "stuck", "/plans?state=stuck"),
            tile(Word::NeedsYou, "need you", "/plans?state=needs_you"),
            tile(Word::NoAgent, "no agent", "/plans?state=no_agent"),
            Tile {
                detail: None,
                text: Some(format!(
                    "{} in progress",
                    format::count(steps, "step", "steps")
                )),
                ..tile(Word::Working, "working", "/plans?state=working")
            },
            Tile {
                class: if troubled.is_empty() { "" } else { "stuck" },
                number: u64::try_from(troubled.len()).unwrap_or(u64::MAX),
                label: "sessions in trouble",
                detail: oldest.map(|since| ("oldest", Age::new(since, self.now))),
                text: None,
                link: "/sessions",
            },
            Tile {
                class: if ended.done == 0 { "" } else { "done" },
                number: ended.done,
                label: "done, 7 days",
                detail: None,
                text: Some(match ended.done_with_failures {
                    0 => format!("{} failed", ended.failed),
                    some => format!("{some} done with failures, {} failed", ended.failed),
                }),
                link: "/plans?state=done",
            },
        ]
    }

    fn working(&self) -> Vec<Working> {
        let mut plans: Vec<_> = self.of_word(Word::Working).collect();
        plans.sort_by_key(|(plan, _)| std::cmp::Reverse(plan.acted_at));
        let working = |(plan, attention): &(OpenPlan, Attention)| {
            let lines = self.steps.get(&plan.head.id).map_or(&[][..], Vec::as_slice);
            let orders: Vec<u32> = lines.iter().map(|line| line.order).collect();
            let mut detail = Who::new(&plan.owner).short();
            match lines {
                [] => detail = format!("{detail} · between steps"),
                [one] => detail = format!("{detail} · step {}, {}", one.order, step_name(one)),
                _ => detail = format!("{detail} · {}", steps_text(&orders)),
            }
            let notes = lines.iter().filter_map(|line| line.note.as_ref());
            if let Some(note) = notes.max_by_key(|note| note.at) {
                detail = format!("{detail} · {}", note_text(note));
            }
            let counts = &plan.head.counts;
            Working {
                name: one_line(&plan.name, 100),
                link: format!("/plans/{}", plan.head.id),
                detail,
                done: counts.completed + counts.skipped,
                total: counts.total(),
                updated: RelativeTime::new(attention.since, self.now),
            }
        };
        plans.into_iter().take(MAX_WORKING).map(working).collect()
    }
}
