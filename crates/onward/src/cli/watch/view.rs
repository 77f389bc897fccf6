//! The data of the screen, and the state of its navigation. Plans that need a person come first.

use onward_core::attention::Word;
use onward_core::session::SessionStatus;
use onward_core::{PlanId, Timestamp};
use onward_engine::list::{OpenReview, PlanQuery};
use onward_engine::{AttentionCount, Listed, SessionLine, StepLine, session};

use super::keys::Key;
use crate::cli::database::Database;
use crate::failure::Result;
use crate::output::format;

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
    pub(super) words: Vec<AttentionCount>,
    /// All open plans, sorted by their word, the longest in that state first.
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
        let now = engine.now();
        let mut view = Self {
            words: engine.count_attention(caller).await?,
            plans: Vec::new(),
            reviews: Vec::new(),
            sessions: engine.list_sessions(caller, MAX_ITEMS).await?,
            steps: Vec::new(),
            now,
        };
        let status = |line: &SessionLine| session::status(line, now).0;
        view.sessions
            .retain(|line| status(line) != SessionStatus::Ended);
        view.sessions.sort_by_key(status);
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
        view.plans
            .sort_by_key(|listed| (listed.attention.word, listed.attention.since));
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

    fn plan(&self, id: PlanId) -> Option<&Listed> {
        self.plans.iter().find(|listed| listed.sheet.head.id == id)
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
    /// Only plans that contain this text are displayed.
    pub(super) filter: String,
    pub(super) input: Input,
    /// The outcome of the last action, until the next key.
    pub(super) message: Option<String>,
}

/// The meaning of characters.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Input {
    /// Commands.
    #[default]
    Command,
    /// A part of the filter.
    Filter,
    /// `y` approves the review of this plan.
    Confirmation(PlanId),
}

/// The effect of a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    None,
    /// A plan was opened or closed.
    LoadSteps,
    /// Release the stuck steps of a plan.
    Release(PlanId),
    /// Approve the review of a plan.
    Approve(PlanId),
    /// Open the page of a plan in the browser.
    Browse(PlanId),
    Quit,
}

impl State {
    /// The plans that match the filter.
    pub(super) fn visible<'a>(&self, view: &'a View) -> Vec<&'a Listed> {
        let filter = self.filter.to_lowercase();
        let matches = |listed: &&Listed| {
            let sheet = &listed.sheet;
            filter.is_empty()
                || sheet.brief.name.to_lowercase().contains(&filter)
                || sheet.owner.person.to_lowercase().contains(&filter)
                || sheet.head.id.to_string().starts_with(&filter)
                || listed.attention.word.label().contains(&filter)
        };
        view.plans.iter().filter(matches).collect()
    }

    /// The index of the selected plan among the visible ones.
    pub(super) fn index(&self, view: &View) -> usize {
        let is = |listed: &&Listed| Some(listed.sheet.head.id) == self.selected;
        self.visible(view).iter().position(is).unwrap_or(0)
    }

    /// The opened plan, or the selected one.
    fn current(&self, view: &View) -> Option<PlanId> {
        let selected = || {
            let visible = self.visible(view);
            visible
                .get(self.index(view))
                .map(|listed| listed.sheet.head.id)
        };
        self.opened.or_else(selected)
    }

    pub(super) fn press(&mut self, key: Key, view: &View) -> Action {
        if key != Key::None {
            self.message = None;
        }
        match (&self.input, key) {
            (_, Key::Quit) => Action::Quit,
            (Input::Confirmation(plan), key) if key != Key::None => {
                let plan = *plan;
                self.input = Input::Command;
                if let Key::Char('y' | 'Y') = key {
                    Action::Approve(plan)
                } else {
                    Action::None
                }
            }
            (Input::Filter, Key::Char(char)) => {
                self.filter.push(char);
                Action::None
            }
            (Input::Filter, Key::Delete) => {
                self.filter.pop();
                Action::None
            }
            (Input::Filter, Key::Enter) => {
                self.input = Input::Command;
                Action::None
            }
            (Input::Filter, Key::Back) => {
                self.input = Input::Command;
                self.filter.clear();
                Action::None
            }
            (Input::Command, Key::Char(char)) => self.command(char, view),
            (_, key) => self.navigate(key, view),
        }
    }

    fn command(&mut self, char: char, view: &View) -> Action {
        let current = self.current(view);
        match (char, current) {
            ('q', _) => Action::Quit,
            ('j', _) => self.navigate(Key::Down, view),
            ('k', _) => self.navigate(Key::Up, view),
            ('/', _) => {
                self.opened = None;
                self.input = Input::Filter;
                Action::LoadSteps
            }
            ('o', Some(plan)) => Action::Browse(plan),
            ('r', Some(plan)) => {
                let word = view.plan(plan).map(|listed| listed.attention.word);
                if word == Some(Word::Stuck) {
                    return Action::Release(plan);
                }
                self.message = Some("no step of this plan is stuck".to_owned());
                Action::None
            }
            ('a', Some(plan)) => {
                match view.reviews.iter().find(|(open, _)| open.plan == plan) {
                    Some(_) => self.input = Input::Confirmation(plan),
                    None => self.message = Some("this plan has no pending review".to_owned()),
                }
                Action::None
            }
            _ => Action::None,
        }
    }

    fn navigate(&mut self, key: Key, view: &View) -> Action {
        let visible = self.visible(view);
        let last = match self.opened {
            Some(_) => view.steps.len(),
            None => visible.len(),
        };
        let last = last.saturating_sub(1);
        let at = match self.opened {
            Some(_) => self.offset.min(last),
            None => self.index(view),
        };
        let to = match key {
            Key::Quit | Key::None | Key::Char(_) => return Action::None,
            Key::Enter => return self.open(view),
            Key::Back | Key::Delete => return self.close(),
            Key::Up => at.saturating_sub(1),
            Key::Down => (at + 1).min(last),
            Key::PageUp => at.saturating_sub(PAGE_LINES),
            Key::PageDown => (at + PAGE_LINES).min(last),
            Key::First => 0,
            Key::Last => last,
        };
        match self.opened {
            Some(_) => self.offset = to,
            None => self.selected = visible.get(to).map(|listed| listed.sheet.head.id),
        }
        Action::None
    }

    /// Closes the steps, or clears the filter.
    fn close(&mut self) -> Action {
        if self.opened.take().is_some() {
            return Action::LoadSteps;
        }
        self.filter.clear();
        Action::None
    }

    fn open(&mut self, view: &View) -> Action {
        let plan = self.current(view);
        if self.opened.is_some() || plan.is_none() {
            return Action::None;
        }
        self.opened = plan;
        self.selected = plan;
        self.offset = 0;
        Action::LoadSteps
    }

    /// The question of the confirmation, if there is one.
    pub(super) fn question(&self, view: &View) -> Option<String> {
        let Input::Confirmation(plan) = self.input else {
            return None;
        };
        let mut reviews = view.reviews.iter();
        let (open, name) = reviews.find(|(open, _)| open.plan == plan)?;
        let text = format!(
            "approve step {} of {name} without reading it here? y/N",
            open.order
        );
        Some(format::sanitize_line(&text))
    }
}
