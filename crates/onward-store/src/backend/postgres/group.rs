//! Batching of transitions of concurrent callers into one statement.
//!
//! A transition is sent immediately if few others are in flight; otherwise it is queued and sent in
//! a batch (`meeting`). One statement that changes four plans costs the server half as much as four
//! statements, and needs one fsync. The guarantees are listed at [`Groups`].

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
use crate::query::Query;
use crate::statement::Statement;
use crate::value::Value;
use meeting::{Meeting, Member};

/// Statements allowed in a batched transition, in the order in which they are sent, with the
/// maximum number of each.
const ROWS: [(Query, usize); 5] = [
    (Query::PlanMove, 1),
    (Query::StepAdvance, 2),
    (Query::EventInsert, 3),
    (Query::DueSooner, 1),
    (Query::DueClear, 1),
];

/// A full batch fits into one statement.
const _: () = {
    let [(_, plans), (_, steps), (_, events), (_, sooner), (_, clear)] = ROWS;
    assert!(meeting::MEMBERS * (plans + steps + events + sooner + clear) <= shape::TOGETHER);
};

/// Number of batchers above which idle ones are removed.
const MEETINGS: usize = 256;

/// The batchers of this process, one per tenant. Guarantees, tested in `tests/groups.rs`:
///
/// - A batch is written as a whole or not at all.
/// - If the server rejects a batch for any reason, each member is sent alone and gets its own
///   result.
/// - If the connection is lost, or none is available, all members get that error.
/// - A separate task sends the batch, so a caller that is dropped does not affect other members.
/// - A batch waits at most 20 ms for a plan that another transaction has locked.
/// - A transition is queued for at most `company` (20 ms).
pub(super) struct Groups {
    connections: usize,
    company: Duration,
    meetings: Mutex<Meetings>,
}

type Meetings = HashMap<Arc<str>, Meeting>;

/// Result of a batched transition.
enum Answer {
    Committed,
    /// Nothing was written, because of this transition or another member, or nothing was sent: send
    /// it alone.
    Alone(Vec<Statement>),
    Failed(Error),
}

/// How a transition is sent.
enum Way {
    Alone(Journey, Vec<Statement>),
    /// Queued for a batch, under this number.
    Together(u64, oneshot::Receiver<Answer>),
}

/// The plan of a transition, if the transition can be batched.
pub(super) fn joins(statements: &[Statement]) -> Option<Uuid> {
    let plan = match statements.first() {
        Some(first) if first.query == Query::PlanMove => first.params.get(1),
        Some(_) | None => None,
    };
    let Some(Value::Id(plan)) = plan else {
        return None;
    };
    let count = |query: Query| statements.iter().filter(|one| one.query == query).count();
    let common: usize = ROWS.iter().map(|(query, _)| count(*query)).sum();
    let is_common = common == statements.len();
    let fits = ROWS.iter().all(|(query, most)| count(*query) <= *most);
    // Statements about one row must keep their order.
    let once_due = count(Query::DueSooner) + count(Query::DueClear) <= 1;
    (is_common && fits && once_due).then_some(*plan)
}

/// Commits a transition of a plan, alone or in a batch. Returns its statements if nothing was
/// written and the caller must send them alone.
pub(super) async fn commit(
    connection: &mut Connection,
    plan: Uuid,
    statements: Vec<Statement>,
) -> Result<Option<Vec<Statement>>, Error> {
    let (postgres, tenant) = (connection.postgres().clone(), connection.tenant().clone());
    let (number, mut answer) = match enter(&postgres, &tenant, plan, statements) {
        Way::Alone(journey, statements) => {
            let statements: Vec<_> = statements.iter().collect();
            let sent = connection.send_and_commit(&statements).await;
            drop(journey);
            return sent.map(|()| None);
        }
        Way::Together(number, answer) => (number, answer),
    };
    // Other callers can use the connection while this one is queued.
    connection.rest();
    let answer = match timeout(postgres.0.limits.company, &mut answer).await {
        Ok(answer) => answer,
        Err(_) => {
            // Slow messages no longer count as in flight, so the queued transitions may be ready to
            // be sent.
            depart(&postgres, &tenant);
            match postgres
                .0
                .groups
                .at(&tenant, |meeting| meeting.give_up(number))
            {
                Some(member) => return Ok(Some(member.statements)),
                None => answer.await,
            }
        }
    };
    match answer {
        Ok(Answer::Committed) => Ok(None),
        Ok(Answer::Alone(statements)) => Ok(Some(statements)),
        Ok(Answer::Failed(why)) => Err(why),
        Err(_) => Err(error::unanswered("the task that sent it has ended")),
    }
}

impl Groups {
    /// `connections` is the size of the pool, `company` the maximum time in the queue.
    pub(super) fn new(connections: usize, company: Duration) -> Self {
        Self {
            connections,
            company,
            meetings: Mutex::default(),
        }
    }

    /// Runs `act` on the batcher of a tenant.
    fn at<A>(&self, tenant: &Arc<str>, act: impl FnOnce(&mut Meeting) -> A) -> A {
        // A panic while adding or removing a member leaves the map valid.
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

/// Decides whether a transition is sent alone or queued.
fn enter(postgres: &Postgres, tenant: &Arc<str>, plan: Uuid, statements: Vec<Statement>) -> Way {
    let now = Instant::now();
    let way = postgres.0.groups.at(tenant, |meeting| {
        let rival = meeting.take(plan);
        let alone = match rival.is_some() || meeting.is_changing(plan) {
            // One of the two will fail the version check; no third transition should be rejected
            // with it.
            true => Some(meeting.send_apart(plan)),
            false => meeting.send_one(plan, now),
        };
        // A dropped caller needs no result.
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

/// A message in flight. When it completes, queued transitions may be ready to be sent.
pub(super) struct Journey {
    postgres: Postgres,
    tenant: Arc<str>,
    /// Its number, until it has completed.
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

    /// A message that is never sent: transitions are queued until it is dropped.
    #[cfg(test)]
    pub(super) fn nowhere(postgres: &Postgres, tenant: &Arc<str>) -> Self {
        let leave = |meeting: &mut Meeting| meeting.leave(vec![Uuid::nil()], Instant::now());
        Self::new(postgres, tenant, postgres.0.groups.at(tenant, leave))
    }

    /// Marks the message as completed, before its callers get their results and return with the
    /// next transition: they must not be counted twice.
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

/// Sends the batches that are ready.
fn depart(postgres: &Postgres, tenant: &Arc<str>) {
    // Without a runtime there are no callers.
    let Ok(runtime) = Handle::try_current() else {
        return;
    };
    let next = |meeting: &mut Meeting| meeting.next(Instant::now());
    while let Some((number, group)) = postgres.0.groups.at(tenant, next) {
        let journey = Journey::new(postgres, tenant, number);
        runtime.spawn(send(journey, group));
    }
}

/// Sends a batch, and returns the result to each member.
async fn send(mut journey: Journey, group: Vec<Member>) {
    let Journey {
        postgres, tenant, ..
    } = &journey;
    let mut connection = Connection::new(postgres.clone(), Arc::clone(tenant), Kind::Together);
    let blanks = blanks(&group);
    let sent = match connection.take().await {
        Ok(()) => connection.send_and_commit(&in_order(&group, &blanks)).await,
        Err(why) => Err(why),
    };
    // No connection, or an unknown outcome: sending the members alone would not help.
    let for_all = !connection.is_there() || connection.is_lost();
    connection.roll_back();
    drop(connection);
    journey.end();
    for member in group {
        let answer = match &sent {
            Ok(()) => Answer::Committed,
            Err(why) if for_all => Answer::Failed(why.clone()),
            Err(_) => Answer::Alone(member.statements),
        };
        // A dropped caller needs no result.
        drop(member.answer.send(answer));
    }
    drop(journey);
}

/// Padding rows without a plan, which fill each kind of statement up to a multiple of the number of
/// members. Each number of rows is a separate statement text, which every connection has to
/// prepare.
fn blanks(group: &[Member]) -> Vec<Statement> {
    let mut blanks = Vec::new();
    for (query, _) in ROWS {
        let mut rows = rows(group, query);
        let Some(first) = rows.next() else { continue };
        let missing = group.len() - 1 - rows.count() % group.len();
        let mut blank = first.clone();
        blank
            .params
            .iter_mut()
            .skip(1)
            .for_each(|param| *param = Value::Null);
        blanks.extend(std::iter::repeat_n(blank, missing));
    }
    blanks
}

/// The statements of all members with the padding, grouped by kind.
fn in_order<'s>(group: &'s [Member], blanks: &'s [Statement]) -> Vec<&'s Statement> {
    let mut statements = Vec::with_capacity(shape::TOGETHER);
    for (query, _) in ROWS {
        statements.extend(rows(group, query));
        statements.extend(blanks.iter().filter(|blank| blank.query == query));
    }
    statements
}

fn rows(group: &[Member], query: Query) -> impl Iterator<Item = &Statement> {
    let all = group.iter().flat_map(|member| &member.statements);
    all.filter(move |one| one.query == query)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(query: Query) -> Statement {
        let plan = Value::Id(Uuid::nil());
        Statement::without_tenant(query, vec![Value::Text("a".into()), plan, Value::Int(1)])
    }

    fn transition(queries: &[Query]) -> Vec<Statement> {
        queries.iter().map(|query| statement(*query)).collect()
    }

    #[test]
    fn batches_only_transitions_of_the_common_form() {
        let joins = |queries: &[Query]| joins(&transition(queries)).is_some();
        let first = [Query::PlanMove, Query::StepAdvance, Query::EventInsert];
        assert!(joins(&first));
        assert!(joins(
            &[&first[..], &[Query::EventInsert, Query::DueSooner]].concat()
        ));
        assert!(joins(&[&first[..], &[Query::DueClear]].concat()));
        for more in [
            &[Query::StepUpdate][..],
            &[Query::PlanMove],
            &[Query::StepAdvance, Query::StepAdvance],
            &[Query::DueSooner, Query::DueClear],
        ] {
            assert!(!joins(&[&first[..], more].concat()), "{more:?}");
        }
        assert!(!joins(&[]));
        assert!(
            !joins(&[Query::EventInsert, Query::PlanMove]),
            "the plan is not first"
        );
    }

    #[test]
    fn pads_batches_of_one_size_to_the_same_statement() {
        let names = |transitions: [&[Query]; 2]| {
            let members = transitions.map(|names| Member {
                plan: Uuid::nil(),
                statements: transition(names),
                answer: oneshot::channel().0,
            });
            let blanks = blanks(&members);
            let all = in_order(&members, &blanks);
            all.iter().map(|one| one.query).collect::<Vec<_>>()
        };
        let next = [
            Query::PlanMove,
            Query::StepAdvance,
            Query::StepAdvance,
            Query::EventInsert,
            Query::EventInsert,
        ];
        let first = [Query::PlanMove, Query::StepAdvance, Query::EventInsert];
        let expected = [
            [Query::PlanMove; 2].as_slice(),
            &[Query::StepAdvance; 4],
            &[Query::EventInsert; 4],
        ];
        assert_eq!(names([&next, &next]), expected.concat());
        assert_eq!(names([&next, &first]), expected.concat());
        let ends = [
            Query::PlanMove,
            Query::StepAdvance,
            Query::EventInsert,
            Query::DueClear,
        ];
        assert_eq!(names([&first, &ends])[6..], [Query::DueClear; 2]);
    }
}
