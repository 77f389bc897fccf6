//! Mirrors an agent's own plan or task list into a plan of its project.
//!
//! The core compares the list with the plan (`capture` in the core); this module finds the plan,
//! executes the edits in one transaction, and stores the list with the session, because some agents
//! report one task at a time. A refused edit is skipped: the plan belongs to its users, too.

use onward_core::capture::{
    CapturePolicy, CapturedStep, Diff, Edit, Mode, Outline, TaskList, TaskReport, TaskStatus,
    common_tasks, diff, outline,
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
use onward_core::step::{StepResult, StepType};
use onward_core::{Command, StepStatus, Timestamp};
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
/// The summary of a step that the agent has marked as completed.
const COMPLETED: &str = "Marked as completed in the agent's task list.";
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
            TaskReport::Approved(text) => self.approve(tx, &mut state, text, prompt).await?,
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
                self.synchronise(tx, &mut state, prompt, turn).await?
            }
        };
        state.turn = turn;
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
    ) -> Result<Applied, Error> {
        let Outline { name, mut tasks } = outline(text);
        let name = name.or(prompt).unwrap_or_else(|| self.default_name());
        if tasks.is_empty() {
            tasks.extend(onward_core::capture::Task::new(&name, TaskStatus::Pending));
        }
        let current = match state.plan {
            Some(plan) => self.open_steps(tx, plan).await?.map(|steps| (plan, steps)),
            None => None,
        };
        let revised = current.filter(|(_, steps)| common_tasks(steps, &tasks) > 0);
        state.is_approved = true;
        state.is_listed = false;
        if let Some((plan, steps)) = revised {
            let changes = diff(&steps, &tasks, || self.new_step());
            let due = self.execute(tx, plan, changes.edits, None).await?;
            return Ok((Some(plan), due));
        }
        let specs = tasks.iter().map(|task| self.spec(task)).collect();
        let plan = self.create(tx, &name, text, specs).await?;
        state.plan = Some(plan);
        Ok((Some(plan), None))
    }

    /// Makes the plan of the session equal to the list, or finds or creates one.
    async fn synchronise(
        &self,
        tx: &mut Tx,
        state: &mut Captured,
        prompt: Option<String>,
        turn: u32,
    ) -> Result<Applied, Error> {
        let is_long = state.tasks.len() >= usize::try_from(self.policy.min_tasks).unwrap_or(0);
        let mut had_plan = false;
        if let Some(plan) = state.plan {
            match self.open_steps(tx, plan).await? {
                Some(_) if !state.is_listed && !is_long => return Ok((Some(plan), None)),
                Some(steps) if self.continues(state, &steps, turn) => {
                    return self.follow(tx, state, plan, &steps).await;
                }
                Some(steps) => {
                    // Another task of the user: the old plan stays open, and is not kept alive.
                    let held = steps.iter().filter(|step| step.is_held);
                    let release = held.map(|step| Edit::Release(step.id)).collect();
                    self.execute(tx, plan, release, None).await?;
                }
                None => had_plan = true,
            }
            state.plan = None;
            state.is_approved = false;
            state.is_listed = false;
        }
        if let Some((plan, steps)) = self.find_plan(tx, state).await? {
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
            && !self.works_on_a_plan(tx).await?;
        if !creates {
            return Ok((None, None));
        }
        let name = prompt.clone().unwrap_or_else(|| self.default_name());
        let specs: Vec<StepSpec> = state.tasks.iter().map(|task| self.spec(task)).collect();
        let steps: Vec<CapturedStep> = specs.iter().map(captured_step).collect();
        let question = prompt.unwrap_or_else(|| name.clone());
        let plan = self.create(tx, &name, &question, specs).await?;
        state.plan = Some(plan);
        for (task, step) in state.tasks.iter_mut().zip(&steps) {
            task.step = Some(step.id);
        }
        let Diff { edits, .. } = diff(&steps, &state.tasks, || self.new_step());
        state.is_listed = true;
        let due = self.execute(tx, plan, edits, Some(1)).await?;
        Ok((Some(plan), due))
    }

    /// Whether the list is about the plan: they have a task in common, the list was rewritten
    /// within the turn, or it replaces the steps of an approved plan that was not started.
    fn continues(&self, state: &Captured, steps: &[CapturedStep], turn: u32) -> bool {
        let is_unstarted = steps.iter().all(|step| !step.status.is_terminal());
        state.turn == turn
            || (state.is_approved && is_unstarted)
            || common_tasks(steps, &state.tasks) > 0
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
        let due = self.execute(tx, plan, changes.edits, None).await?;
        Ok((Some(plan), due))
    }

    /// A captured plan of the project whose open steps are at least half of the list, or the
    /// reverse: an agent continues in a new session, or another agent does.
    async fn find_plan(
        &self,
        tx: &mut Tx,
        state: &Captured,
    ) -> Result<Option<(PlanId, Vec<CapturedStep>)>, Error> {
        let Some(project) = self.source.project() else {
            return Ok(None);
        };
        // A list that continues an archived plan brings it back.
        let plans = Sessions(tx)
            .plans_of_directory(project, Timestamp::MIN, MAX_PLANS)
            .await?;
        for (plan, _) in plans {
            let sheet = Plans(tx).sheet(plan).await?;
            if !sheet.is_some_and(|sheet| sheet.head.origin == Origin::Agent) {
                continue;
            }
            let Some(steps) = self.open_steps(tx, plan).await? else {
                continue;
            };
            let open: Vec<CapturedStep> = steps
                .iter()
                .filter(|step| !step.status.is_terminal())
                .cloned()
                .collect();
            let common = common_tasks(&open, &state.tasks);
            if common > 0 && 2 * common >= open.len().min(state.tasks.len()) {
                return Ok(Some((plan, steps)));
            }
        }
        Ok(None)
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
            title: line.title.unwrap_or_default(),
            status: line.status,
            is_held: line.status == StepStatus::InProgress && is_held(line.session),
        });
        Ok(Some(steps.collect()))
    }

    async fn create(
        &self,
        tx: &mut Tx,
        name: &str,
        question: &str,
        steps: Vec<StepSpec>,
    ) -> Result<PlanId, Error> {
        let id = PlanId::new(self.ids.random_id());
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
        plan: PlanId,
        edits: Vec<Edit>,
        mut commit: Option<u64>,
    ) -> Result<Option<Due>, Error> {
        let mut due = None;
        for edit in edits {
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
                    result: Arc::new(StepResult::from_summary(COMPLETED.to_owned())),
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

    fn new_step(&self) -> onward_core::StepId {
        onward_core::StepId::new(self.ids.step_id())
    }

    fn spec(&self, task: &onward_core::capture::Task) -> StepSpec {
        StepSpec {
            title: Some(task.title.clone()),
            ..StepSpec::new(self.new_step(), StepType::Custom, task.instructions())
        }
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
        is_held: false,
    }
}
