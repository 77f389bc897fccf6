//! Mirrors an agent's own plan or task list into a plan of its project.
//!
//! The core compares the list with the plan (`capture` in the core); this module finds the plan,
//! executes the edits in one transaction, and stores the list with the session, because some agents
//! report one task at a time, and so are the steps that the session wrote: it changes no others. A
//! refused edit is skipped: the plan belongs to its users, too.

use onward_core::capture::{
    CAPTURED_SUMMARY, CapturePolicy, CapturedStep, Diff, Edit, Mode, Outline, TaskList, TaskReport,
    TaskStatus, continues_plan, diff, names_plan, outline, rewrites_plan,
};
use onward_core::command::{
    CreatePlan, Modification, ModifyPlan, StartStep, StepSpec, SubmitResult,
};
use onward_core::id::{PlanId, ReviewId, SessionId};
use onward_core::next_check::Due;
use onward_core::plan::Origin;
use onward_core::policy::MAX_QUESTION;
use onward_core::role::Permission;
use onward_core::secret;
use onward_core::step::StepResult;
use onward_core::{Command, StepId, StepStatus, Timestamp};
use onward_store::{Captured, Plans, Session, Sessions, Steps, Tx, Which};
use std::sync::Arc;

use crate::agent::observed::HookSource;
use crate::caller::Caller;
use crate::engine::Engine;
use crate::environment::IdGenerator;
use crate::error::Error;
use crate::plan::create;
use crate::run::{CommandContext, CommandOutcome, Target, run};
use crate::sanitize;

/// Maximum number of steps of a captured plan that are compared. Users may add steps.
const MAX_STEPS: u32 = 1_000;
/// Maximum number of a project's open plans that are compared with a new list.
const MAX_PLANS: u32 = 10;
/// Maximum number of steps in progress that are checked for another plan.
const MAX_HELD: u32 = 20;
/// Maximum characters of a captured plan's name.
const MAX_PLAN_NAME: usize = 80;
/// The rationale of modifications.
const RATIONALE: &str = "mirrors the agent's task list";

impl Engine {
    /// Mirrors a report of an agent about its own plan. Returns the plan, if there is one.
    pub async fn capture_tasks(
        &self,
        caller: &Caller,
        source: HookSource,
        mut report: TaskReport,
        policy: CapturePolicy,
    ) -> Result<Option<PlanId>, Error> {
        caller.allow(Permission::Record)?;
        caller.allow(Permission::CreatePlan)?;
        caller.allow(Permission::Work)?;
        if policy.mode == Mode::Off || source.is_subagent() {
            return Ok(None);
        }
        let source = source.sanitized()?;
        sanitize_report(&mut report);
        let ctx = self.session_context(caller, &source.session);
        let (ids, owner) = (self.ids.clone(), caller.origin());
        let captured = self.store.write(&caller.tenant, move |tx| {
            let (source, report, ctx) = (source.clone(), report.clone(), ctx.clone());
            let (ids, owner) = (ids.clone(), owner.clone());
            Box::pin(async move {
                let Some(session) = Sessions(tx).hold_session(&source.session).await? else {
                    return Ok((None, None));
                };
                if session.switched_off {
                    return Ok((None, None));
                }
                let capture = Capture {
                    source: &source,
                    session: &session,
                    policy,
                    owner: &owner,
                    ctx: &ctx,
                    ids: &ids,
                };
                capture.apply(tx, &report).await
            })
        });
        let (plan, due) = captured.await?;
        if let Some(due) = due {
            self.sweep_waker.wake_by(due);
        }
        Ok(plan)
    }
}

fn sanitize_report(report: &mut TaskReport) {
    match report {
        TaskReport::TakenUp(_) => {}
        TaskReport::Approved(text) => sanitize::text(text),
        TaskReport::List(tasks) => {
            for task in tasks {
                sanitize::text(&mut task.title);
                sanitize::optional_text(&mut task.details);
            }
        }
        TaskReport::Created(task) => {
            sanitize::text(&mut task.title);
            sanitize::optional_text(&mut task.details);
        }
        TaskReport::Changed(change) => {
            sanitize::text(&mut change.key);
            sanitize::optional_text(&mut change.title);
            sanitize::optional_text(&mut change.details);
        }
    }
}

/// A report that is being applied.
struct Capture<'a> {
    source: &'a HookSource,
    session: &'a Session,
    policy: CapturePolicy,
    /// The agent behind the request, as its plans store it.
    owner: &'a onward_store::RequestOrigin,
    ctx: &'a CommandContext,
    ids: &'a IdGenerator,
}

type Applied = (Option<PlanId>, Option<Due>);

impl Capture<'_> {
    async fn apply(&self, tx: &mut Tx, report: &TaskReport) -> Result<Applied, Error> {
        let id = self.source.session.as_str();
        let prompt = self.session.prompt.clone();
        let mut state = Sessions(tx).captured(id).await?.unwrap_or_default();
        let turn = Sessions(tx).session_and_turn(id, "").await?;
        let turn = turn
            .and_then(|(_, turn)| turn)
            .map_or(0, |turn| turn.number);
        let applied = match report {
            TaskReport::Approved(text) => self.approve(tx, &mut state, text, prompt, turn).await?,
            TaskReport::TakenUp(plan) => {
                state.taken_up = Some(*plan);
                Sessions(tx).keep_captured(id, &state)?;
                return Ok((state.plan, None));
            }
            TaskReport::List(_) | TaskReport::Created(_) | TaskReport::Changed(_) => {
                let mut list = TaskList {
                    tasks: std::mem::take(&mut state.tasks),
                };
                let changed = list.apply(report);
                state.tasks = list.tasks;
                // An agent clears its list when it is done; the plan is durable.
                if !changed || state.tasks.is_empty() {
                    Sessions(tx).keep_captured(id, &state)?;
                    return Ok((state.plan, None));
                }
                let is_partial = matches!(report, TaskReport::Created(_));
                self.synchronise(tx, &mut state, prompt, turn, is_partial)
                    .await?
            }
        };
        state.turn = turn;
        let surplus = state.own.len().saturating_sub(MAX_STEPS as usize);
        state.own.drain(..surplus);
        Sessions(tx).keep_captured(id, &state)?;
        Ok(applied)
    }

    /// An approved plan becomes a plan. If it was revised, the plan follows.
    async fn approve(
        &self,
        tx: &mut Tx,
        state: &mut Captured,
        text: &str,
        prompt: Option<String>,
        turn: u32,
    ) -> Result<Applied, Error> {
        let Outline { name, mut tasks } = outline(text);
        let name = name.or(prompt).unwrap_or_else(|| self.default_name());
        if tasks.is_empty() {
            tasks.extend(onward_core::capture::Task::new(&name, TaskStatus::Pending));
        }
        let current = match state.plan {
            Some(plan) => {
                let steps = self.open_steps(tx, state, plan).await?;
                steps.map(|steps| (plan, steps))
            }
            None => None,
        };
        let revised = current.filter(|(_, steps)| {
            (state.is_approved && state.turn == turn) || rewrites_plan(steps, &tasks)
        });
        state.is_approved = true;
        state.is_listed = false;
        if let Some((plan, steps)) = revised {
            let changes = diff(&steps, &tasks, || self.new_step());
            let due = self.execute(tx, state, plan, changes.edits, None).await?;
            return Ok((Some(plan), due));
        }
        let specs = tasks
            .iter()
            .map(|task| task.spec(self.new_step()))
            .collect();
        let plan = self.create(tx, state, &name, text, specs).await?;
        Ok((Some(plan), None))
    }

    /// Makes the plan of the session equal to the list, or finds or creates one.
    async fn synchronise(
        &self,
        tx: &mut Tx,
        state: &mut Captured,
        prompt: Option<String>,
        turn: u32,
        is_partial: bool,
    ) -> Result<Applied, Error> {
        let is_long = state.tasks.len() >= usize::try_from(self.policy.min_tasks).unwrap_or(0);
        let mut had_plan = false;
        if let Some(plan) = state.plan {
            match self.open_steps(tx, state, plan).await? {
                Some(_) if !state.is_listed && !is_long => return Ok((Some(plan), None)),
                Some(steps) if self.continues(state, &steps, turn) => {
                    return self.follow(tx, state, plan, &steps).await;
                }
                Some(steps) => {
                    // Another task of the user: the old plan stays open, and is not kept alive.
                    let held = steps.iter().filter(|step| step.is_own && step.is_held);
                    let release = held.map(|step| Edit::Release(step.id)).collect();
                    self.execute(tx, state, plan, release, None).await?;
                }
                None => had_plan = true,
            }
            state.plan = None;
            state.is_approved = false;
            state.is_listed = false;
        }
        // An agent that reports one task at a time has not yet reported what the list is about.
        if is_partial && !is_long {
            return Ok((None, None));
        }
        let works = self.works_on_a_plan(tx).await?;
        let taken_up = state.taken_up.take().filter(|_| !works);
        if let Some((plan, steps)) = self
            .find_plan(tx, state, taken_up, prompt.as_deref())
            .await?
        {
            return self.follow(tx, state, plan, &steps).await;
        }
        if had_plan {
            // These tasks belong to the plan that has ended.
            state
                .tasks
                .retain(|task| task.status != TaskStatus::Completed);
        }
        let is_open = |status: TaskStatus| status != TaskStatus::Completed;
        let is_long = state.tasks.len() >= usize::try_from(self.policy.min_tasks).unwrap_or(0);
        let creates = self.policy.mode == Mode::On
            && is_long
            && state.tasks.iter().any(|task| is_open(task.status))
            && !works;
        if !creates {
            return Ok((None, None));
        }
        let name = prompt.clone().unwrap_or_else(|| self.default_name());
        let specs = state.tasks.iter().map(|task| task.spec(self.new_step()));
        let specs: Vec<StepSpec> = specs.collect();
        let steps: Vec<CapturedStep> = specs.iter().map(captured_step).collect();
        let question = prompt.unwrap_or_else(|| name.clone());
        let plan = self.create(tx, state, &name, &question, specs).await?;
        for (task, step) in state.tasks.iter_mut().zip(&steps) {
            task.step = Some(step.id);
        }
        let Diff { edits, .. } = diff(&steps, &state.tasks, || self.new_step());
        state.is_listed = true;
        let due = self.execute(tx, state, plan, edits, Some(1)).await?;
        Ok((Some(plan), due))
    }

    /// Whether the list is about the plan of the session: it was rewritten within the turn, it
    /// replaces the steps of an approved plan that was not started, or they have tasks in common.
    fn continues(&self, state: &Captured, steps: &[CapturedStep], turn: u32) -> bool {
        let is_unstarted = steps.iter().all(|step| !step.status.is_terminal());
        state.turn == turn
            || (state.is_approved && is_unstarted)
            || rewrites_plan(steps, &state.tasks)
    }

    async fn follow(
        &self,
        tx: &mut Tx,
        state: &mut Captured,
        plan: PlanId,
        steps: &[CapturedStep],
    ) -> Result<Applied, Error> {
        let changes = diff(steps, &state.tasks, || self.new_step());
        for (task, step) in state.tasks.iter_mut().zip(changes.steps) {
            task.step = Some(step);
        }
        state.plan = Some(plan);
        state.is_listed = true;
        self.link(tx, plan);
        let due = self.execute(tx, state, plan, changes.edits, None).await?;
        Ok((Some(plan), due))
    }

    /// The captured plan that the session continues: an agent continues in a new session, or another
    /// agent does. The session has taken it up with a tool, the user's prompt names it, or the list
    /// is about its open steps.
    async fn find_plan(
        &self,
        tx: &mut Tx,
        state: &Captured,
        taken_up: Option<PlanId>,
        prompt: Option<&str>,
    ) -> Result<Option<(PlanId, Vec<CapturedStep>)>, Error> {
        let mut plans: Vec<PlanId> = taken_up.into_iter().collect();
        if let Some(project) = self.source.project() {
            // A list that continues an archived plan brings it back.
            let open = Sessions(tx)
                .plans_of_directory(project, Timestamp::MIN, MAX_PLANS)
                .await?;
            plans.extend(open.iter().map(|(plan, _)| *plan));
        }
        let mut found: Vec<(PlanId, Vec<CapturedStep>)> = Vec::new();
        for plan in plans {
            let Some(sheet) = Plans(tx).sheet(plan).await? else {
                continue;
            };
            if sheet.head.origin != Origin::Agent {
                continue;
            }
            let Some(steps) = self.open_steps(tx, state, plan).await? else {
                continue;
            };
            let is_named = |prompt: &str| names_plan(prompt, plan, &sheet.brief.name);
            if taken_up == Some(plan) || prompt.is_some_and(is_named) {
                return Ok(Some((plan, steps)));
            }
            found.push((plan, steps));
        }
        let titles = found.iter().map(|(_, steps)| titles(steps));
        let titles: Vec<Vec<String>> = titles.collect();
        let continued = found.iter().enumerate().find(|(index, (_, steps))| {
            let others: Vec<Vec<String>> = (titles.iter().enumerate())
                .filter(|(other, _)| other != index)
                .map(|(_, titles)| titles.clone())
                .collect();
            continues_plan(steps, &state.tasks, &others)
        });
        Ok(continued.map(|(_, found)| found.clone()))
    }

    /// Whether the session works on a plan that is not its own list. The list is then about the
    /// details of its step.
    async fn works_on_a_plan(&self, tx: &mut Tx) -> Result<bool, Error> {
        let held = Steps(tx).held_by(&self.source.session, MAX_HELD).await?;
        if !held.is_empty() {
            return Ok(true);
        }
        let seen: Vec<_> = self.session.claims.iter().map(|claim| claim.step).collect();
        if seen.is_empty() {
            return Ok(false);
        }
        let lines = Steps(tx).lines_of(&seen).await?;
        Ok(lines
            .iter()
            .any(|line| line.status == StepStatus::InProgress))
    }

    /// The steps of a plan. `None` if it has ended or does not exist.
    async fn open_steps(
        &self,
        tx: &mut Tx,
        state: &Captured,
        plan: PlanId,
    ) -> Result<Option<Vec<CapturedStep>>, Error> {
        let sheet = Plans(tx).sheet(plan).await?;
        if sheet.is_none_or(|sheet| sheet.head.status().is_terminal()) {
            return Ok(None);
        }
        let lines = Steps(tx).step_lines(plan, Which::All, 0, MAX_STEPS).await?;
        let is_held = |session: Option<SessionId>| {
            session.is_some_and(|session| session.as_str() == self.source.session)
        };
        let steps = lines.into_iter().map(|line| CapturedStep {
            id: line.id,
            is_own: state.own.contains(&line.id),
            is_abandoned: line.status == StepStatus::InProgress
                && (line.orphaned_at.is_some() || line.is_stalled(self.ctx.now)),
            title: line.title.unwrap_or_default(),
            status: line.status,
            is_held: line.status == StepStatus::InProgress && is_held(line.session),
        });
        Ok(Some(steps.collect()))
    }

    async fn create(
        &self,
        tx: &mut Tx,
        state: &mut Captured,
        name: &str,
        question: &str,
        steps: Vec<StepSpec>,
    ) -> Result<PlanId, Error> {
        let id = PlanId::new(self.ids.random_id());
        state.plan = Some(id);
        state.own.extend(steps.iter().map(|step| step.id));
        let question: String = question.chars().take(MAX_QUESTION).collect();
        let command = CreatePlan {
            session: Some(SessionId::new(self.source.session.clone())),
            origin: Origin::Agent,
            ..CreatePlan::new(id, secret::preview(name, MAX_PLAN_NAME), question, steps)
        };
        create::create(tx, &command, self.owner.clone(), self.ctx).await?;
        self.link(tx, id);
        Ok(id)
    }

    fn link(&self, tx: &mut Tx, plan: PlanId) {
        if let Some(project) = self.source.project() {
            Sessions(tx).link_directory(project, plan, self.ctx.now);
        }
    }

    /// Executes edits. `commit` is the first event of the transaction if it created the plan.
    async fn execute(
        &self,
        tx: &mut Tx,
        state: &mut Captured,
        plan: PlanId,
        edits: Vec<Edit>,
        mut commit: Option<u64>,
    ) -> Result<Option<Due>, Error> {
        let mut due = None;
        for edit in edits {
            if let Edit::Add(steps) = &edit {
                state.own.extend(steps.iter().map(|step| step.id));
            }
            let (target, command) = self.command(plan, edit);
            let outcome = run(tx, target, &command, self.ctx, commit).await?;
            if let CommandOutcome::Applied(applied) = outcome {
                if !applied.events.is_empty() {
                    commit.get_or_insert(applied.commit_seq);
                }
                due = Some(applied.due);
            }
        }
        Ok(due)
    }

    fn command(&self, plan: PlanId, edit: Edit) -> (Target, Command) {
        let session = Some(SessionId::new(self.source.session.clone()));
        let modify = |modification| {
            let command = ModifyPlan {
                rationale: Some(RATIONALE.to_owned()),
                resume: true,
                ..ModifyPlan::new(modification)
            };
            (Target::Plan(plan), Command::from(command))
        };
        match edit {
            Edit::Rename {
                step,
                title,
                instructions,
            } => modify(Modification::RenameStep {
                step,
                title,
                instructions,
            }),
            Edit::Add(steps) => modify(Modification::AddSteps {
                steps,
                insert_after: None,
            }),
            Edit::Release(step) => modify(Modification::RequeueStep { step }),
            Edit::Remove(step) => modify(Modification::RemoveStep { step }),
            Edit::Reorder(steps) => modify(Modification::ReorderSteps { steps }),
            Edit::Complete(step) => {
                let command = SubmitResult {
                    step,
                    result: Arc::new(StepResult::from_summary(CAPTURED_SUMMARY.to_owned())),
                    token: None,
                    fresh_token: self.ids.claim_token(),
                    review: ReviewId::new(self.ids.random_id()),
                    session,
                };
                (Target::Step(step), command.into())
            }
            Edit::Start(step) => {
                let token = self.ids.claim_token();
                let command = StartStep {
                    step,
                    token,
                    session,
                };
                (Target::Step(step), command.into())
            }
        }
    }

    fn new_step(&self) -> StepId {
        StepId::new(self.ids.step_id())
    }

    fn default_name(&self) -> String {
        format!("Task list of {}", self.source.agent)
    }
}

fn captured_step(spec: &StepSpec) -> CapturedStep {
    CapturedStep {
        id: spec.id,
        title: spec.title.clone().unwrap_or_default(),
        status: StepStatus::Pending,
        is_own: true,
        is_held: false,
        is_abandoned: false,
    }
}

fn titles(steps: &[CapturedStep]) -> Vec<String> {
    steps.iter().map(|step| step.title.clone()).collect()
}
