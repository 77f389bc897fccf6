//! The data of the screen, and the state of its navigation. Stuck plans come first.

use onward_core::{PlanId, PlanStatus, Timestamp};
use onward_engine::list::{OpenReview, PlanQuery};
use onward_engine::{Listed, PlanCount, SessionLine, StepLine};

use super::keys::Key;
use crate::cli::database::Database;
use crate::failure::Result;

/// Plans per query.
const PAGE_SIZE: u32 = 500;
/// Steps of the opened plan.
const MAX_STEPS: u32 = 10_000;
/// Reviews and sessions.
const MAX_ITEMS: u32 = 20;
/// Lines per PageUp or PageDown.
const PAGE_LINES: usize = 10;

/// The data of the screen.
pub(super) struct View {
    pub(super) counts: Vec<PlanCount>,
    /// All open plans, stuck ones first.
    pub(super) plans: Vec<Listed>,
    pub(super) reviews: Vec<(OpenReview, String)>,
    /// Sessions that have not ended.
    pub(super) sessions: Vec<SessionLine>,
    /// The steps of the opened plan.
    pub(super) steps: Vec<StepLine>,
    pub(super) now: Timestamp,
}

impl View {
    pub(super) async fn read(database: &Database) -> Result<Self> {
        let Database { engine, caller, .. } = database;
        let mut view = Self {
            counts: engine.count_plans(caller).await?,
            plans: Vec::new(),
            reviews: Vec::new(),
            sessions: engine.list_sessions(caller, MAX_ITEMS).await?,
            steps: Vec::new(),
            now: engine.now(),
        };
        view.sessions.retain(|line| line.session.ended_at.is_none());
        let mut cursor = None;
        loop {
            let query = PlanQuery {
                limit: PAGE_SIZE,
                after: cursor,
                ..PlanQuery::default()
            };
            let page = engine.list_plans(caller, query).await?;
            view.plans.extend(page.plans);
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        view.plans.sort_by_key(rank);
        for review in engine.open_reviews(caller, MAX_ITEMS).await? {
            let plan = view.plans.iter();
            let mut plan = plan.filter(|listed| listed.sheet.head.id == review.plan);
            let name = plan.next().map(|listed| listed.sheet.brief.name.clone());
            view.reviews.push((review, name.unwrap_or_default()));
        }
        Ok(view)
    }

    /// The steps of the opened plan; empty if none is opened or it was deleted.
    pub(super) async fn read_steps(
        database: &Database,
        plan: Option<PlanId>,
    ) -> Result<Vec<StepLine>> {
        let Database { engine, caller, .. } = database;
        let Some(plan) = plan else {
            return Ok(Vec::new());
        };
        match engine.list_steps(caller, plan, None, 0, MAX_STEPS).await {
            Ok(page) => Ok(page.steps),
            Err(onward_engine::Error::PlanNotFound(_)) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }
}

/// The sort key: stuck plans, then pending reviews, then the others; the sort is stable.
fn rank(listed: &Listed) -> u8 {
    let stuck = listed.stalled;
    match listed.sheet.head.status() {
        PlanStatus::Stalled => 0,
        PlanStatus::AwaitingReview | PlanStatus::Executing | PlanStatus::Planning if stuck => 0,
        PlanStatus::AwaitingReview => 1,
        PlanStatus::Executing => 2,
        PlanStatus::Planning => 3,
        PlanStatus::Completed | PlanStatus::Failed => 4,
    }
}

/// The state of the navigation.
#[derive(Default)]
pub(super) struct State {
    /// The selected plan, which stays selected when the order of the list changes.
    pub(super) selected: Option<PlanId>,
    /// The plan whose steps are displayed.
    pub(super) opened: Option<PlanId>,
    /// The index of the first displayed step.
    pub(super) offset: usize,
}

/// The effect of a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    None,
    /// A plan was opened or closed.
    LoadSteps,
    Quit,
}

impl State {
    /// The index of the selected plan.
    pub(super) fn index(&self, view: &View) -> usize {
        let is = |listed: &Listed| Some(listed.sheet.head.id) == self.selected;
        view.plans.iter().position(is).unwrap_or(0)
    }

    pub(super) fn press(&mut self, key: Key, view: &View) -> Action {
        let last = match self.opened {
            Some(_) => view.steps.len(),
            None => view.plans.len(),
        };
        let last = last.saturating_sub(1);
        let at = match self.opened {
            Some(_) => self.offset.min(last),
            None => self.index(view),
        };
        let to = match key {
            Key::Quit => return Action::Quit,
            Key::None => return Action::None,
            Key::Enter => return self.open(view),
            Key::Back => {
                let was = self.opened.take();
                return if was.is_some() {
                    Action::LoadSteps
                } else {
                    Action::None
                };
            }
            Key::Up => at.saturating_sub(1),
            Key::Down => (at + 1).min(last),
            Key::PageUp => at.saturating_sub(PAGE_LINES),
            Key::PageDown => (at + PAGE_LINES).min(last),
            Key::First => 0,
            Key::Last => last,
        };
        match self.opened {
            Some(_) => self.offset = to,
            None => self.selected = view.plans.get(to).map(|listed| listed.sheet.head.id),
        }
        Action::None
    }

    fn open(&mut self, view: &View) -> Action {
        let plan = view.plans.get(self.index(view));
        if self.opened.is_some() || plan.is_none() {
            return Action::None;
        }
        self.opened = plan.map(|listed| listed.sheet.head.id);
        self.selected = self.opened;
        self.offset = 0;
        Action::LoadSteps
    }
}
