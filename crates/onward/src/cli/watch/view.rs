//! What the screen shows, and where on it somebody is. What has stopped stands on top.

use onward_core::{PlanId, PlanStatus, Timestamp};
use onward_engine::list::{OpenReview, PlanQuery};
use onward_engine::{Listed, PlanCount, SessionLine, StepLine};

use super::keys::Key;
use crate::cli::database::Database;
use crate::failure::Result;

/// How many plans are looked at at once.
const PIECE: u32 = 500;
/// How many steps of a plan are shown.
const STEPS: u32 = 10_000;
/// How many reviews and sessions are shown.
const FEW: u32 = 20;
/// How many lines a page is.
const PAGE: usize = 10;

/// What is going on.
pub(super) struct View {
    pub(super) counts: Vec<PlanCount>,
    /// Every open plan, those that have stopped first.
    pub(super) plans: Vec<Listed>,
    pub(super) reviews: Vec<(OpenReview, String)>,
    /// Sessions that have not ended.
    pub(super) sessions: Vec<SessionLine>,
    /// The steps of the plan that is opened.
    pub(super) steps: Vec<StepLine>,
    pub(super) now: Timestamp,
}

impl View {
    pub(super) async fn look(database: &Database) -> Result<Self> {
        let Database { engine, caller, .. } = database;
        let mut view = Self {
            counts: engine.count_plans(caller).await?,
            plans: Vec::new(),
            reviews: Vec::new(),
            sessions: engine.list_sessions(caller, FEW).await?,
            steps: Vec::new(),
            now: engine.now(),
        };
        view.sessions.retain(|line| line.session.ended_at.is_none());
        let mut behind = None;
        loop {
            let query = PlanQuery {
                limit: PIECE,
                behind,
                ..PlanQuery::default()
            };
            let page = engine.list_plans(caller, query).await?;
            view.plans.extend(page.plans);
            behind = page.next;
            if behind.is_none() {
                break;
            }
        }
        view.plans.sort_by_key(rank);
        for review in engine.open_reviews(caller, FEW).await? {
            let plan = view.plans.iter();
            let mut plan = plan.filter(|listed| listed.sheet.head.id == review.plan);
            let name = plan.next().map(|listed| listed.sheet.brief.name.clone());
            view.reviews.push((review, name.unwrap_or_default()));
        }
        Ok(view)
    }

    /// The steps of a plan; none where none is opened, or where it is gone.
    pub(super) async fn steps_of(
        database: &Database,
        plan: Option<PlanId>,
    ) -> Result<Vec<StepLine>> {
        let Database { engine, caller, .. } = database;
        let Some(plan) = plan else {
            return Ok(Vec::new());
        };
        match engine.list_steps(caller, plan, None, 0, STEPS).await {
            Ok(page) => Ok(page.steps),
            Err(onward_engine::Error::PlanNotFound(_)) => Ok(Vec::new()),
            Err(why) => Err(why.into()),
        }
    }
}

/// What has stopped first, then what waits for somebody, then the rest; each as it was listed.
fn rank(listed: &Listed) -> u8 {
    let stopped = listed.stalled;
    match listed.sheet.head.status() {
        PlanStatus::Stalled => 0,
        PlanStatus::AwaitingReview | PlanStatus::Executing | PlanStatus::Planning if stopped => 0,
        PlanStatus::AwaitingReview => 1,
        PlanStatus::Executing => 2,
        PlanStatus::Planning => 3,
        PlanStatus::Completed | PlanStatus::Failed => 4,
    }
}

/// Where somebody is.
#[derive(Default)]
pub(super) struct State {
    /// The plan that is chosen: it stays chosen when the list moves under it.
    pub(super) chosen: Option<PlanId>,
    /// The plan whose steps are shown.
    pub(super) opened: Option<PlanId>,
    /// The first line of steps that is shown.
    pub(super) scrolled: usize,
}

/// What a key leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Stay,
    /// Another plan was opened, or closed.
    Look,
    End,
}

impl State {
    /// The place of the plan that is chosen, in the list.
    pub(super) fn place(&self, view: &View) -> usize {
        let is = |listed: &Listed| Some(listed.sheet.head.id) == self.chosen;
        view.plans.iter().position(is).unwrap_or(0)
    }

    pub(super) fn press(&mut self, key: Key, view: &View) -> Next {
        let last = match self.opened {
            Some(_) => view.steps.len(),
            None => view.plans.len(),
        };
        let last = last.saturating_sub(1);
        let at = match self.opened {
            Some(_) => self.scrolled.min(last),
            None => self.place(view),
        };
        let to = match key {
            Key::Quit => return Next::End,
            Key::None => return Next::Stay,
            Key::Enter => return self.open(view),
            Key::Back => {
                let was = self.opened.take();
                return if was.is_some() {
                    Next::Look
                } else {
                    Next::Stay
                };
            }
            Key::Up => at.saturating_sub(1),
            Key::Down => (at + 1).min(last),
            Key::PageUp => at.saturating_sub(PAGE),
            Key::PageDown => (at + PAGE).min(last),
            Key::First => 0,
            Key::Last => last,
        };
        match self.opened {
            Some(_) => self.scrolled = to,
            None => self.chosen = view.plans.get(to).map(|listed| listed.sheet.head.id),
        }
        Next::Stay
    }

    fn open(&mut self, view: &View) -> Next {
        let plan = view.plans.get(self.place(view));
        if self.opened.is_some() || plan.is_none() {
            return Next::Stay;
        }
        self.opened = plan.map(|listed| listed.sheet.head.id);
        self.chosen = self.opened;
        self.scrolled = 0;
        Next::Look
    }
}
