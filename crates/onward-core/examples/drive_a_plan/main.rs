//! A whole plan, driven in memory: `cargo run -p onward-core --example drive_a_plan`.
//!
//! Two agents and a person work on it. One agent falls silent over a step, the other takes the step
//! over, and what the first one brings too late is refused, but kept. Every change goes the same way:
//! `decide` answers a command with events or a refusal, `Plan::apply_all` makes the change. That loop
//! is [`Desk`], in `desk.rs`, for whoever wants to copy it; here is the story.
//!
//! Times are made up and ids counted, so the output is the same every time, and a test compares it
//! with `drive_a_plan.txt`.

mod desk;

use std::error::Error;
use std::io::Write;
use std::sync::Arc;

use onward_core::command::{
    ActionSpec, BranchSpec, CreatePlan, DecideReview, HandleStalls, ReportProgress, RequestReview,
    ResumeSession, StartNext, StepRef, StepSpec, SubmitResult,
};
use onward_core::event::{Decision, Sign};
use onward_core::id::{BranchId, ClaimToken, PlanId, ReviewId, SessionId, StepId};
use onward_core::step::StepResult;
use onward_core::{Command, Plan, Step, StepStatus, StepType, Timestamp};

use desk::{Desk, handed_out};

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
                step(4, StepType::Critique, "Look for what is wrong", &[3]),
                step(5, StepType::Synthesize, "Write the answer", &[4]),
            ],
        )
    }
}

/// Sends the commands of the story, and prints a line about each.
struct Teller<'o, O> {
    desk: Desk,
    out: &'o mut O,
}

/// A step in an agent's hands, with what proves it.
type Hold = (StepId, ClaimToken);
type Told<T> = Result<T, Box<dyn Error>>;

impl<O: Write> Teller<'_, O> {
    fn line(&mut self, at: Timestamp, who: &str, does: &str) -> Told<()> {
        let (time, status) = (clock(at), self.desk.plan.head().status().as_str());
        let steps: String = self.desk.plan.steps().iter().map(cell).collect();
        let line = format!("{time}  {who:<5}  {does:<38}  {status:<15}{steps}");
        Ok(writeln!(self.out, "{}", line.trim_end())?)
    }

    fn send(&mut self, at: Timestamp, who: &str, does: &str, what: Command) -> Told<()> {
        let answer = self.desk.send(&what, at)?;
        self.line(at, who, does)?;
        if let Err(why) = answer {
            let kept = what.late_result().map_or("", |_| ", but kept");
            writeln!(self.out, "{:14}refused as {}{kept}", "", why.code())?;
        }
        Ok(())
    }

    fn asks(&mut self, at: Timestamp, who: &str, include_stalled: bool) -> Told<Hold> {
        let command = Command::StartNext(StartNext {
            token: fresh_token(who, at),
            session: Some(SessionId::new(who)),
            include_stalled,
        });
        let events = self.desk.send(&command, at)??;
        let step = handed_out(&self.desk.plan, &events).ok_or("no step was free")?;
        let claim = step.claim().ok_or("nobody holds the step")?;
        let hold = (step.id(), claim.token.clone());
        let stalled = if include_stalled { "stalled " } else { "" };
        let does = format!("asks for a {stalled}step: gets {}", step.order);
        self.line(at, who, &does)?;
        Ok(hold)
    }

    fn submits(&mut self, at: Timestamp, who: &str, hold: &Hold, confidence: f64) -> Told<()> {
        let does = format!("submits a result, confidence {confidence}");
        let summary = format!("What {who} found until {}", clock(at));
        let command = Command::SubmitResult(SubmitResult {
            step: hold.0,
            result: Arc::new(StepResult {
                confidence: Some(confidence),
                ..StepResult::of_summary(summary)
            }),
            token: Some(hold.1.clone()),
            fresh_token: fresh_token(who, at),
            session: Some(SessionId::new(who)),
        });
        self.send(at, who, &does, command)
    }

    fn asks_kim(&mut self, at: Timestamp, who: &str, hold: &Hold, summary: &str) -> Told<()> {
        let command = Command::RequestReview(RequestReview {
            step: hold.0,
            review: ReviewId::from_u128(self.desk.trail.len() as u128),
            summary: summary.to_owned(),
            questions: vec!["May it stand like this?".to_owned()],
            token: Some(hold.1.clone()),
            session: Some(SessionId::new(who)),
        });
        self.send(at, who, &format!("asks kim: {summary}"), command)
    }

    fn kim(&mut self, at: Timestamp, hold: &Hold, decision: Decision, says: &str) -> Told<()> {
        let command = Command::DecideReview(DecideReview {
            step: hold.0,
            decision,
            feedback: Some(says.to_owned()),
        });
        let does = format!("answers {}: {says}", decision.as_str());
        self.send(at, "kim", &does, command)
    }
}

/// Tells the whole story.
pub(crate) fn run(out: &mut impl Write) -> Told<()> {
    let desk = Desk::open(&cold_batteries(), at(9, 0))?;
    prologue(&desk.plan, out)?;
    let mut story = Teller { desk, out };
    story.line(at(9, 0), "ada", "makes the plan")?;
    let search = story.asks(at(9, 1), "ada", false)?;
    let report = Command::ReportProgress(ReportProgress {
        step: search.0,
        sign: Sign::Reported,
        note: Some("14 of 22 papers read".to_owned()),
        percent: Some(60.0),
        token: Some(search.1.clone()),
        session: Some(SessionId::new("ada")),
    });
    story.send(at(9, 5), "ada", "reports: 14 of 22 papers read", report)?;
    story.submits(at(9, 12), "ada", &search, 0.9)?;
    let table = story.asks(at(9, 13), "ada", false)?;

    // Ada falls silent. Nobody has to poll: the plan itself says when it could stall.
    let limit_at = story.desk.plan.next_stall_at(at(9, 13), None);
    let now = limit_at.ok_or("nobody works on it")?.next();
    let sweep = Command::HandleStalls(HandleStalls::default());
    story.send(now, "sweep", "finds ada silent for over 30 minutes", sweep)?;
    let session = SessionId::new("ben");
    let resume = Command::ResumeSession(ResumeSession { session });
    story.send(at(9, 50), "ben", "takes the plan up", resume)?;
    let taken_over = story.asks(at(9, 50), "ben", true)?;
    story.submits(at(9, 55), "ada", &table, 0.7)?;
    story.submits(at(10, 2), "ben", &taken_over, 0.7)?;

    let critique = story.asks(at(10, 3), "ben", false)?;
    story.submits(at(10, 10), "ben", &critique, 0.95)?;
    let outlier = story.asks(at(10, 11), "ben", false)?;
    story.asks_kim(at(10, 20), "ben", &outlier, "I left row 7 out")?;
    // However long a person thinks, nothing stalls.
    story.kim(at(11, 40), &outlier, Decision::Modify, "keep it, say why")?;
    let again = story.asks(at(11, 41), "ben", false)?;
    assert_eq!(again, outlier, "the same step under the same claim");
    story.asks_kim(at(11, 46), "ben", &again, "row 7 is in, explained")?;
    story.kim(at(11, 50), &again, Decision::Approve, "thank you")?;
    let answer = story.asks(at(11, 51), "ben", false)?;
    story.submits(at(11, 58), "ben", &answer, 0.85)?;
    epilogue(&story.desk, out)
}

/// The plan, before anything happens.
fn prologue(plan: &Plan, out: &mut impl Write) -> Told<()> {
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

/// The trail, and the proof that it is the plan.
fn epilogue(desk: &Desk, out: &mut impl Write) -> Told<()> {
    writeln!(
        out,
        "\nseq  time   event             action              step"
    )?;
    for (seq, entry) in (1..).zip(&desk.trail) {
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
    let replayed = Plan::replay(desk.trail.iter().map(|entry| (&entry.event, entry.at)))?;
    assert_eq!(replayed, desk.plan);
    writeln!(out, "\nThe trail, replayed, gives the same plan.")?;
    for (artifact, late) in &desk.kept {
        let summary = &late.content.summary;
        writeln!(out, "Kept beside it, as artifact {artifact}: {summary:?}.")?;
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

/// A time on the day of the story.
fn at(hour: i64, minute: i64) -> Timestamp {
    Timestamp::from_millis(1_785_196_800_000 + (hour * 60 + minute) * 60_000)
}

fn clock(at: Timestamp) -> String {
    at.to_string().chars().skip(11).take(5).collect()
}

/// Unguessable, in a real program.
fn fresh_token(who: &str, at: Timestamp) -> ClaimToken {
    ClaimToken::new(format!("{who} at {at}"))
}

#[allow(clippy::disallowed_methods, reason = "an example prints its story")]
fn main() -> Told<()> {
    run(&mut std::io::stdout())
}
