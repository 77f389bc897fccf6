//! A whole plan in memory: `cargo run -p onward-core --example drive_a_plan`.
//!
//! Two agents and a reviewer work on a plan. One agent stalls, the other takes over its step, and
//! the late result of the first agent is rejected but stored. Every change follows the same loop:
//! `decide` returns events or a refusal, and `Plan::apply_all` applies the events. The loop is
//! [`PlanDriver`] in `plan_driver.rs`, ready to copy; this file is the scenario.
//!
//! Times and ids are fixed, so the output is deterministic, and a test compares it with
//! `drive_a_plan.txt`.

mod plan_driver;

use std::error::Error;
use std::io::Write;
use std::sync::Arc;

use onward_core::command::{
    ActionSpec, BranchSpec, CreatePlan, DecideReview, HandleStalls, ReportProgress, RequestReview,
    ResumeSession, StartNext, StepRef, StepSpec, SubmitResult,
};
use onward_core::event::{Decision, ProgressSource};
use onward_core::id::{BranchId, ClaimToken, PlanId, ReviewId, SessionId, StepId};
use onward_core::step::StepResult;
use onward_core::{Command, Plan, Step, StepStatus, StepType, Timestamp};

use plan_driver::{PlanDriver, assigned_step};

fn cold_batteries() -> CreatePlan {
    let step = |id, step_type, title: &str, depends_on: &[u32]| StepSpec {
        title: Some(title.to_owned()),
        depends_on: depends_on.to_vec(),
        ..StepSpec::new(StepId::from_u128(id), step_type, format!("{title}."))
    };
    let if_sure = |id, after_order, action| BranchSpec {
        id: BranchId::from_u128(id),
        after_order,
        condition: "confidence >= 0.8".to_owned(),
        action,
    };
    let explain = step(6, StepType::Analyze, "Explain the outlier", &[4]);
    CreatePlan {
        branches: vec![
            if_sure(1, 1, ActionSpec::SkipTo(StepRef::Order(3))),
            if_sure(2, 4, ActionSpec::AddSteps(vec![explain])),
        ],
        session: Some(SessionId::new("ada")),
        ..CreatePlan::new(
            PlanId::from_u128(1),
            "Cold batteries",
            "Which chemistry keeps most of its charge at -20 degrees?",
            vec![
                step(1, StepType::Search, "Find measured discharge curves", &[]),
                step(2, StepType::Search, "Widen the search to patents", &[]),
                step(3, StepType::Extract, "Put the figures in a table", &[1]),
                step(4, StepType::Critique, "Check the table for errors", &[3]),
                step(5, StepType::Synthesize, "Write the answer", &[4]),
            ],
        )
    }
}

/// Sends the commands of the scenario and prints a line about each.
struct Scenario<'o, O> {
    driver: PlanDriver,
    out: &'o mut O,
}

/// A claimed step with its token.
type ClaimedStep = (StepId, ClaimToken);
type Result<T> = std::result::Result<T, Box<dyn Error>>;

impl<O: Write> Scenario<'_, O> {
    fn line(&mut self, at: Timestamp, who: &str, action: &str) -> Result<()> {
        let (time, status) = (clock(at), self.driver.plan.head().status().as_str());
        let steps: String = self.driver.plan.steps().iter().map(cell).collect();
        let line = format!("{time}  {who:<5}  {action:<38}  {status:<15}{steps}");
        Ok(writeln!(self.out, "{}", line.trim_end())?)
    }

    fn send(&mut self, at: Timestamp, who: &str, action: &str, command: Command) -> Result<()> {
        let outcome = self.driver.send(&command, at)?;
        self.line(at, who, action)?;
        if let Err(refusal) = outcome {
            let stored = command.late_result().map_or("", |_| ", result stored");
            writeln!(self.out, "{:14}rejected: {}{stored}", "", refusal.code())?;
        }
        Ok(())
    }

    fn claim(&mut self, at: Timestamp, who: &str, include_stalled: bool) -> Result<ClaimedStep> {
        let command = Command::StartNext(StartNext {
            token: fresh_token(who, at),
            session: Some(SessionId::new(who)),
            include_stalled,
            labels: None,
        });
        let events = self.driver.send(&command, at)??;
        let step = assigned_step(&self.driver.plan, &events).ok_or("no step was assigned")?;
        let claim = step.claim().ok_or("the step has no claim")?;
        let claimed = (step.id(), claim.token.clone());
        let stalled = if include_stalled { "stalled " } else { "" };
        let action = format!("requests a {stalled}step: gets {}", step.order);
        self.line(at, who, &action)?;
        Ok(claimed)
    }

    fn submit(
        &mut self,
        at: Timestamp,
        who: &str,
        claimed: &ClaimedStep,
        confidence: f64,
    ) -> Result<()> {
        let action = format!("submits a result, confidence {confidence}");
        let summary = format!("Findings of {who} at {}", clock(at));
        let command = Command::SubmitResult(SubmitResult {
            step: claimed.0,
            result: Arc::new(StepResult {
                confidence: Some(confidence),
                ..StepResult::from_summary(summary)
            }),
            token: Some(claimed.1.clone()),
            fresh_token: fresh_token(who, at),
            review: ReviewId::from_u128(1),
            session: Some(SessionId::new(who)),
        });
        self.send(at, who, &action, command)
    }

    fn request_review(
        &mut self,
        at: Timestamp,
        who: &str,
        claimed: &ClaimedStep,
        summary: &str,
    ) -> Result<()> {
        let command = Command::RequestReview(RequestReview {
            step: claimed.0,
            review: ReviewId::from_u128(self.driver.audit_trail.len() as u128),
            summary: summary.to_owned(),
            questions: vec!["Is this acceptable?".to_owned()],
            scope: onward_core::step::ReviewScope::Plan,
            options: Default::default(),
            token: Some(claimed.1.clone()),
            session: Some(SessionId::new(who)),
        });
        self.send(at, who, &format!("requests a review: {summary}"), command)
    }

    fn decide(
        &mut self,
        at: Timestamp,
        claimed: &ClaimedStep,
        decision: Decision,
        feedback: &str,
    ) -> Result<()> {
        let command = Command::DecideReview(DecideReview {
            step: claimed.0,
            decision,
            review: None,
            reviewer: onward_core::command::Reviewer::Person,
            feedback: Some(feedback.to_owned()),
            answers: Default::default(),
            token: None,
            session: None,
        });
        let action = format!("decides {}: {feedback}", decision.as_str());
        self.send(at, "kim", &action, command)
    }
}

/// Runs the scenario.
pub(crate) fn run(out: &mut impl Write) -> Result<()> {
    let driver = PlanDriver::create(&cold_batteries(), at(9, 0))?;
    print_plan(&driver.plan, out)?;
    let mut scenario = Scenario { driver, out };
    scenario.line(at(9, 0), "ada", "creates the plan")?;
    let search = scenario.claim(at(9, 1), "ada", false)?;
    let report = Command::ReportProgress(ReportProgress {
        step: search.0,
        source: ProgressSource::Reported,
        note: Some("14 of 22 papers read".to_owned()),
        percent: Some(60.0),
        token: Some(search.1.clone()),
        session: Some(SessionId::new("ada")),
    });
    scenario.send(at(9, 5), "ada", "reports: 14 of 22 papers read", report)?;
    scenario.submit(at(9, 12), "ada", &search, 0.9)?;
    let table = scenario.claim(at(9, 13), "ada", false)?;

    // Ada stops. No polling is needed: the plan computes when it can stall.
    let limit_at = scenario.driver.plan.next_stall_at(at(9, 13), None);
    let now = limit_at.ok_or("no step is in progress")?.next();
    let sweep = Command::HandleStalls(HandleStalls::default());
    scenario.send(now, "sweep", "detects 30 minutes of inactivity", sweep)?;
    let session = SessionId::new("ben");
    let resume = Command::ResumeSession(ResumeSession { session });
    scenario.send(at(9, 50), "ben", "continues the plan", resume)?;
    let taken_over = scenario.claim(at(9, 50), "ben", true)?;
    scenario.submit(at(9, 55), "ada", &table, 0.7)?;
    scenario.submit(at(10, 2), "ben", &taken_over, 0.7)?;

    let critique = scenario.claim(at(10, 3), "ben", false)?;
    scenario.submit(at(10, 10), "ben", &critique, 0.95)?;
    let outlier = scenario.claim(at(10, 11), "ben", false)?;
    scenario.request_review(at(10, 20), "ben", &outlier, "row 7 is left out")?;
    // A step does not stall during a review, however long it takes.
    scenario.decide(
        at(11, 40),
        &outlier,
        Decision::Modify,
        "keep and explain it",
    )?;
    let again = scenario.claim(at(11, 41), "ben", false)?;
    assert_eq!(again, outlier, "the same step under the same claim");
    scenario.request_review(at(11, 46), "ben", &again, "row 7 is explained")?;
    scenario.decide(at(11, 50), &again, Decision::Approve, "thank you")?;
    let answer = scenario.claim(at(11, 51), "ben", false)?;
    scenario.submit(at(11, 58), "ben", &answer, 0.85)?;
    print_audit_trail(&scenario.driver, out)
}

/// Prints the initial plan.
fn print_plan(plan: &Plan, out: &mut impl Write) -> Result<()> {
    let brief = plan.brief();
    writeln!(out, "{}: {}\n", brief.name, brief.research_question)?;
    for Step { order, spec, .. } in plan.steps() {
        let (kind, title) = (spec.step_type.as_str(), spec.title.as_deref().unwrap_or(""));
        let mut line = format!("  {order}  {kind:<10}  {title}");
        for needed in spec.depends_on.iter().filter_map(|id| plan.step(*id)) {
            line = format!("{line:<46}  after {}", needed.order);
        }
        for branch in plan.branches_after(spec.id) {
            let condition = branch.condition.source();
            line = format!("{line:<57}  {} if {condition}", branch.action);
        }
        writeln!(out, "{line}")?;
    }
    let orders: String = (1..=6).map(|order| format!("{order:>4} ")).collect();
    writeln!(out, "\n{:54}{:<15}{}", "", "plan", orders.trim_end())?;
    Ok(())
}

/// Prints the audit trail, and checks that replaying it gives the plan.
fn print_audit_trail(driver: &PlanDriver, out: &mut impl Write) -> Result<()> {
    writeln!(
        out,
        "\nseq  time   event             action              step"
    )?;
    for (seq, entry) in (1..).zip(&driver.audit_trail) {
        let (time, name) = (clock(entry.at), entry.event.name());
        let action = entry.event.action().unwrap_or("-");
        let order = entry
            .order
            .map_or("-".to_owned(), |order| order.to_string());
        writeln!(
            out,
            "{seq:>3}  {time}  {name:<16}  {action:<18}  {order:>4}"
        )?;
    }
    let replayed = Plan::replay(
        driver
            .audit_trail
            .iter()
            .map(|entry| (&entry.event, entry.at)),
    )?;
    assert_eq!(replayed, driver.plan);
    writeln!(out, "\nReplaying the audit trail gives the same plan.")?;
    for (artifact, late) in &driver.late_results {
        let summary = &late.content.summary;
        writeln!(
            out,
            "Late result, stored as artifact {artifact}: {summary:?}."
        )?;
    }
    Ok(())
}

fn cell(step: &Step) -> String {
    match step.status() {
        StepStatus::Pending => "   . ".to_owned(),
        StepStatus::InProgress => format!(" try{}", step.attempt()),
        StepStatus::AwaitingInput => " wait".to_owned(),
        StepStatus::Completed => " done".to_owned(),
        StepStatus::Skipped => " skip".to_owned(),
        StepStatus::Failed => " fail".to_owned(),
    }
}

/// A time on the day of the scenario.
fn at(hour: i64, minute: i64) -> Timestamp {
    Timestamp::from_millis(1_785_196_800_000 + (hour * 60 + minute) * 60_000)
}

fn clock(at: Timestamp) -> String {
    at.to_string().chars().skip(11).take(5).collect()
}

/// A real program uses a random token.
fn fresh_token(who: &str, at: Timestamp) -> ClaimToken {
    ClaimToken::new(format!("{who} at {at}"))
}

#[allow(clippy::disallowed_methods, reason = "an example prints its output")]
fn main() -> Result<()> {
    run(&mut std::io::stdout())
}
