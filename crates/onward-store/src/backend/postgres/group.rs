//! Transitions of several callers as one statement.
//!
//! A transition that meets few others is sent by whoever makes it, at once. Where several are on their way
//! already it waits, until there are enough to go together or one of those is back: a statement that changes
//! four plans costs a server half of what four statements do, and is one sync.
//!
//! Nobody's fate hangs on another's. A group is one statement, so it is written as a whole or not at all;
//! where the server refuses it, for whatever reason, each of its members goes alone. Only where the
//! connection is lost do all hear of it. A group is sent by a task of its own, so no member that goes away
//! takes the others along. It waits for nobody who holds one of its plans for longer than a moment, and
//! nobody waits for longer than that to go with others.

mod meeting;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::timeout;
use uuid::Uuid;

use super::connection::{Connection, Kind};
use super::{Postgres, error, shape};
use crate::error::Error;
use crate::tx::Statement;
use crate::value::Value;
use meeting::{Meeting, Member};

/// The statements that a transition in a group may have, in the order in which they stand there, and how many
/// of each: what it says about its plan, and rows that no other plan has.
const ROWS: [(&str, usize); 5] = [
    ("plan_move", 1),
    ("step_advance", 2),
    ("event_insert", 3),
    ("due_sooner", 1),
    ("due_clear", 1),
];

/// All that fits into a group is one statement.
const _: () = {
    let [(_, plans), (_, steps), (_, events), (_, sooner), (_, clear)] = ROWS;
    assert!(meeting::MEMBERS * (plans + steps + events + sooner + clear) <= shape::TOGETHER);
};

/// Where there are so many, those that are over are forgotten.
const MEETINGS: usize = 256;

/// Where the transitions of this process meet, those of each tenant by themselves.
pub(super) struct Groups {
    connections: usize,
    company: Duration,
    meetings: Mutex<Meetings>,
}

type Meetings = HashMap<Arc<str>, Meeting>;

/// What became of a transition in a group.
enum Answer {
    Committed,
    /// Nothing was written, because of this one or of another, or nothing was sent: it is better off alone.
    Alone(Vec<Statement>),
    Failed(Error),
}

/// How a transition goes.
enum Way {
    Alone(Journey, Vec<Statement>),
    /// With others, under this number.
    Together(u64, oneshot::Receiver<Answer>),
}

/// The plan of a transition, where it can go with others.
pub(super) fn joins(statements: &[Statement]) -> Option<Uuid> {
    let plan = match statements.first() {
        Some(first) if first.name == "plan_move" => first.params.get(1),
        Some(_) | None => None,
    };
    let Some(Value::Id(plan)) = plan else {
        return None;
    };
    let count = |name: &str| statements.iter().filter(|one| one.name == name).count();
    let common: usize = ROWS.iter().map(|(name, _)| count(name)).sum();
    let is_common = common == statements.len();
    let fits = ROWS.iter().all(|(name, most)| count(name) <= *most);
    // What is said about one row must stay in its order.
    let once_due = count("due_sooner") + count("due_clear") <= 1;
    (is_common && fits && once_due).then_some(*plan)
}

/// Commits a transition of a plan, by itself or together with others; gives it back where it was not written, and
/// should be by itself.
pub(super) async fn commit(
    connection: &mut Connection,
    plan: Uuid,
    statements: Vec<Statement>,
) -> Result<Option<Vec<Statement>>, Error> {
    let (postgres, tenant) = (connection.postgres().clone(), connection.tenant().clone());
    let (number, mut answer) = match enter(&postgres, &tenant, plan, statements) {
        Way::Alone(journey, statements) => {
            let statements: Vec<_> = statements.iter().collect();
            let sent = connection.commit(&statements).await;
            drop(journey);
            return sent.map(|()| None);
        }
        Way::Together(number, answer) => (number, answer),
    };
    // What it was asked on is of use to others meanwhile.
    connection.rest();
    let answer = match timeout(postgres.0.limits.company, &mut answer).await {
        Ok(answer) => answer,
        Err(_) => {
            // Who took so long is not waited for any more, so it may be time for those that wait together.
            depart(&postgres, &tenant);
            let groups = &postgres.0.groups;
            match groups.at(&tenant, |meeting| meeting.give_up(number)) {
                Some(member) => return Ok(Some(member.statements)),
                None => answer.await,
            }
        }
    };
    match answer {
        Ok(Answer::Committed) => Ok(None),
        Ok(Answer::Alone(statements)) => Ok(Some(statements)),
        Ok(Answer::Failed(why)) => Err(why),
        Err(_) => Err(error::unanswered("whoever sent it has ended")),
    }
}

impl Groups {
    /// For a process that keeps so many connections, and where nobody waits longer than this for others.
    pub(super) fn new(connections: usize, company: Duration) -> Self {
        Self {
            connections,
            company,
            meetings: Mutex::default(),
        }
    }

    /// Does something at the meeting of a tenant.
    fn at<A>(&self, tenant: &Arc<str>, act: impl FnOnce(&mut Meeting) -> A) -> A {
        // Whoever panicked was adding one or taking some out: it is whole.
        let mut meetings = self.meetings.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(meeting) = meetings.get_mut(tenant) {
            return act(meeting);
        }
        if meetings.len() >= MEETINGS {
            meetings.retain(|_, meeting| !meeting.is_over());
        }
        let meeting = meetings.entry(Arc::clone(tenant));
        act(meeting.or_insert_with(|| Meeting::new(self.connections, self.company)))
    }

    #[cfg(test)]
    pub(super) fn waiting(&self, tenant: &Arc<str>) -> usize {
        self.at(tenant, |meeting| meeting.waiting())
    }
}

fn enter(postgres: &Postgres, tenant: &Arc<str>, plan: Uuid, statements: Vec<Statement>) -> Way {
    let now = Instant::now();
    let way = postgres.0.groups.at(tenant, |meeting| {
        let rival = meeting.take(plan);
        let alone = match rival.is_some() || meeting.is_changing(plan) {
            // One of the two will have lost, and no third one should hear of it.
            true => Some(meeting.send_apart(plan)),
            false => meeting.send_one(plan, now),
        };
        // Whoever has gone away needs no answer.
        drop(rival.map(|rival| rival.answer.send(Answer::Alone(rival.statements))));
        if let Some(number) = alone {
            return Way::Alone(Journey::new(postgres, tenant, number), statements);
        }
        let (answer, receiver) = oneshot::channel();
        let member = Member {
            plan,
            statements,
            answer,
        };
        Way::Together(meeting.add(member, now), receiver)
    });
    if let Way::Together(..) = way {
        depart(postgres, tenant);
    }
    way
}

/// A message that is on its way. When it is back, it may be time for others.
pub(super) struct Journey {
    postgres: Postgres,
    tenant: Arc<str>,
    /// Its number, until it is back.
    number: Option<u64>,
}

impl Journey {
    fn new(postgres: &Postgres, tenant: &Arc<str>, number: u64) -> Self {
        Self {
            postgres: postgres.clone(),
            tenant: Arc::clone(tenant),
            number: Some(number),
        }
    }

    /// One that goes nowhere: whoever comes meanwhile waits.
    #[cfg(test)]
    pub(super) fn nowhere(postgres: &Postgres, tenant: &Arc<str>) -> Self {
        let leave = |meeting: &mut Meeting| meeting.leave(vec![Uuid::nil()], Instant::now());
        Self::new(postgres, tenant, postgres.0.groups.at(tenant, leave))
    }

    /// It is back. Whoever is answered from now on is not taken for two.
    fn end(&mut self) {
        if let Some(number) = self.number.take() {
            let groups = &self.postgres.0.groups;
            groups.at(&self.tenant, |meeting| meeting.is_back(number));
        }
    }
}

impl Drop for Journey {
    fn drop(&mut self) {
        self.end();
        depart(&self.postgres, &self.tenant);
    }
}

/// Sends off whoever it is time for.
fn depart(postgres: &Postgres, tenant: &Arc<str>) {
    // Without a runtime nobody waits any more.
    let Ok(runtime) = Handle::try_current() else {
        return;
    };
    let next = |meeting: &mut Meeting| meeting.next(Instant::now());
    while let Some((number, group)) = postgres.0.groups.at(tenant, next) {
        let journey = Journey::new(postgres, tenant, number);
        runtime.spawn(send(journey, group));
    }
}

/// Sends a group, and tells its members.
async fn send(mut journey: Journey, group: Vec<Member>) {
    let Journey {
        postgres, tenant, ..
    } = &journey;
    let mut connection = Connection::new(postgres.clone(), Arc::clone(tenant), Kind::Together);
    let blanks = blanks(&group);
    let sent = match connection.take().await {
        Ok(()) => connection.commit(&in_order(&group, &blanks)).await,
        Err(why) => Err(why),
    };
    // None of them would fare better alone.
    let for_all = !connection.is_there() || connection.is_lost();
    connection.rollback();
    drop(connection);
    journey.end();
    for member in group {
        let answer = match &sent {
            Ok(()) => Answer::Committed,
            Err(why) if for_all => Answer::Failed(why.clone()),
            Err(_) => Answer::Alone(member.statements),
        };
        // Whoever has gone away needs none.
        drop(member.answer.send(answer));
    }
    drop(journey);
}

/// Rows of no plan, as many of each kind as are missing to a multiple of the members: each number of rows is a
/// text of its own, which every connection has to learn.
fn blanks(group: &[Member]) -> Vec<Statement> {
    let mut blanks = Vec::new();
    for (name, _) in ROWS {
        let mut rows = rows(group, name);
        let Some(first) = rows.next() else { continue };
        let missing = group.len() - 1 - rows.count() % group.len();
        let tenant = first.params.iter().take(1).cloned();
        let nothing = std::iter::repeat_n(Value::Null, first.params.len().saturating_sub(1));
        let blank = Statement {
            name: first.name,
            params: tenant.chain(nothing).collect(),
            touches: first.touches,
        };
        blanks.extend(std::iter::repeat_n(blank, missing));
    }
    blanks
}

/// The statements of all, those of one kind together.
fn in_order<'s>(group: &'s [Member], blanks: &'s [Statement]) -> Vec<&'s Statement> {
    let mut statements = Vec::with_capacity(shape::TOGETHER);
    for (name, _) in ROWS {
        statements.extend(rows(group, name));
        statements.extend(blanks.iter().filter(|blank| blank.name == name));
    }
    statements
}

fn rows<'s>(group: &'s [Member], name: &'static str) -> impl Iterator<Item = &'s Statement> {
    let all = group.iter().flat_map(|member| &member.statements);
    all.filter(move |one| one.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(name: &'static str) -> Statement {
        let plan = Value::Id(Uuid::nil());
        Statement::outside(name, vec![Value::Text("a".into()), plan, Value::Int(1)])
    }

    fn transition(names: &[&'static str]) -> Vec<Statement> {
        names.iter().map(|name| statement(name)).collect()
    }

    #[test]
    fn a_transition_joins_unless_it_has_more_to_say_than_most() {
        let joins = |names: &[&'static str]| joins(&transition(names)).is_some();
        let first = ["plan_move", "step_advance", "event_insert"];
        assert!(joins(&first));
        assert!(joins(
            &[&first[..], &["event_insert", "due_sooner"]].concat()
        ));
        assert!(joins(&[&first[..], &["due_clear"]].concat()));
        for more in [
            &["step_update"][..],
            &["plan_move"],
            &["step_advance", "step_advance"],
            &["due_sooner", "due_clear"],
        ] {
            assert!(!joins(&[&first[..], more].concat()), "{more:?}");
        }
        assert!(!joins(&[]));
        assert!(!joins(&["event_insert", "plan_move"]), "of which plan?");
    }

    #[test]
    fn groups_of_one_size_are_few_texts() {
        let names = |transitions: [&[&'static str]; 2]| {
            let members = transitions.map(|names| Member {
                plan: Uuid::nil(),
                statements: transition(names),
                answer: oneshot::channel().0,
            });
            let blanks = blanks(&members);
            let all = in_order(&members, &blanks);
            all.iter().map(|one| one.name).collect::<Vec<_>>()
        };
        let next = [
            "plan_move",
            "step_advance",
            "step_advance",
            "event_insert",
            "event_insert",
        ];
        let first = ["plan_move", "step_advance", "event_insert"];
        let expected = [
            ["plan_move"; 2].as_slice(),
            &["step_advance"; 4],
            &["event_insert"; 4],
        ];
        assert_eq!(names([&next, &next]), expected.concat());
        assert_eq!(names([&next, &first]), expected.concat());
        let ends = ["plan_move", "step_advance", "event_insert", "due_clear"];
        assert_eq!(names([&first, &ends])[6..], ["due_clear"; 2]);
    }
}
