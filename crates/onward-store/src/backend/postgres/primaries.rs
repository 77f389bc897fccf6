//! Which hosts of an address accept writes.
//!
//! After a network split or a failover, a former primary may accept writes again. A process that
//! starts asks all hosts at the same time, and fails if several servers accept writes, unless one of
//! them has a higher timeline: every promotion starts a new one, so that server is the primary. Hosts
//! with a lower timeline are then refused (`Generation`). Several hosts may lead to one server, for
//! example through poolers.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;

use super::address::{Address, LongLivedConnection};
use super::generation::{Generation, first_row};
use super::{error, pooler};
use crate::error::Error;
use crate::host::{HostRole, HostState, Hosts};

/// How long a process that starts waits for the responses of all hosts. A host that is silent for
/// longer is not compared.
const START: Duration = Duration::from_millis(500);

/// The same for `onward doctor`.
const DOCTOR: Duration = Duration::from_secs(3);

/// What the server is, and when it started: with that, hosts that lead to one server are recognized.
const SERVER: &str = "SELECT pg_is_in_recovery() AS standby, \
    current_setting('transaction_read_only')::bool AS read_only, pg_postmaster_start_time() AS started";

/// A server that accepts writes.
struct Primary {
    host: String,
    started: String,
    generation: Option<Generation>,
}

/// Opens the first connection to a database. Fails if it is not known which server is the primary.
pub(super) async fn open(address: &Address) -> Result<LongLivedConnection, Error> {
    if address.hosts.count() == 1 {
        return pooler::open(address).await;
    }
    let (opened, asked) = tokio::join!(pooler::open(address), ask(address, START));
    let primaries = primaries(&asked);
    if primaries.len() < 2 {
        return opened;
    }
    let Some(newest) = newest(&primaries) else {
        let name = |primary: &&Primary| format!("`{}`{}", primary.host, timeline(primary));
        let names: Vec<String> = primaries.iter().map(name).collect();
        return Err(error::several_primaries(
            &address.shown,
            &names.join(" and "),
        ));
    };
    // The connection may be to a former primary.
    address.hosts.saw(newest);
    drop(opened);
    pooler::open(address).await
}

/// The state of all hosts.
pub(super) async fn inspect(address: &Address) -> Hosts {
    let asked = ask(address, DOCTOR).await;
    let several_primaries = primaries(&asked).len() > 1;
    let states = asked.into_iter().map(|(host, asked)| HostState {
        host,
        role: match asked {
            Ok(Asked::Primary(Primary { generation, .. })) => HostRole::Primary {
                timeline: generation.map(|generation| generation.timeline),
            },
            Ok(Asked::Standby) => HostRole::Standby,
            Ok(Asked::ReadOnly) => HostRole::ReadOnly,
            Err(why) => HostRole::Unavailable(why),
        },
    });
    Hosts {
        states: states.collect(),
        several_primaries,
    }
}

enum Asked {
    Primary(Primary),
    Standby,
    ReadOnly,
}

type Answers = Vec<(String, Result<Asked, Error>)>;

/// Asks all hosts at the same time.
async fn ask(address: &Address, limit: Duration) -> Answers {
    let names = address.hosts.names();
    let mut asking = JoinSet::new();
    for (place, name) in names.iter().cloned().enumerate() {
        let address = address.clone();
        asking.spawn(async move {
            let asked = timeout(limit, ask_one(&address, place, &name)).await;
            (place, asked)
        });
    }
    let mut answers: Answers = names
        .into_iter()
        .map(|name| {
            let silent = error::unreachable(&name);
            (name, Err(silent))
        })
        .collect();
    while let Some(asked) = asking.join_next().await {
        if let Ok((place, Ok(asked))) = asked
            && let Some((_, answer)) = answers.get_mut(place)
        {
            *answer = asked;
        }
    }
    answers
}

async fn ask_one(address: &Address, place: usize, host: &str) -> Result<Asked, Error> {
    let client = address.open_host(place).await?;
    let failed = |why| error::of_statement(why, "host");
    let row = first_row(&client, SERVER).await.map_err(failed)?;
    let row = row.ok_or_else(|| error::unreachable(host))?;
    if row.get("standby") == Some("t") {
        return Ok(Asked::Standby);
    }
    if row.get("read_only") == Some("t") {
        return Ok(Asked::ReadOnly);
    }
    Ok(Asked::Primary(Primary {
        host: host.to_owned(),
        started: row.get("started").unwrap_or_default().to_owned(),
        generation: Generation::read(&client).await,
    }))
}

/// The different servers that accept writes.
fn primaries(answers: &Answers) -> Vec<&Primary> {
    let mut primaries: Vec<&Primary> = Vec::new();
    for (_, answer) in answers {
        let Ok(Asked::Primary(primary)) = answer else {
            continue;
        };
        let is_same = |other: &&Primary| {
            (&other.started, &other.generation) == (&primary.started, &primary.generation)
        };
        if !primaries.iter().any(is_same) {
            primaries.push(primary);
        }
    }
    primaries
}

/// The generation that all others precede.
fn newest(primaries: &[&Primary]) -> Option<Generation> {
    let generations: Option<Vec<&Generation>> = primaries
        .iter()
        .map(|primary| primary.generation.as_ref())
        .collect();
    let generations = generations?;
    let newest = *generations.iter().max_by_key(|one| one.timeline)?;
    let before = generations.iter().filter(|one| one.is_before(newest));
    (before.count() + 1 == generations.len()).then(|| newest.clone())
}

fn timeline(primary: &Primary) -> String {
    let generation = primary.generation.as_ref();
    generation.map_or_else(String::new, |one| format!(" (timeline {})", one.timeline))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn primary(started: &str, generation: Option<(&str, u32)>) -> Primary {
        Primary {
            host: "h".to_owned(),
            started: started.to_owned(),
            generation: generation.map(|(cluster, timeline)| Generation {
                cluster: cluster.to_owned(),
                timeline,
            }),
        }
    }

    #[test]
    fn the_newest_timeline_of_one_cluster_is_the_primary() {
        let newest = |servers: &[Primary]| {
            let servers: Vec<&Primary> = servers.iter().collect();
            newest(&servers).map(|one| one.timeline)
        };
        let of_a = |timeline| primary("1", Some(("a", timeline)));
        assert_eq!(newest(&[of_a(1), of_a(3), of_a(2)]), Some(3));
        assert_eq!(newest(&[of_a(2), of_a(2)]), None);
        assert_eq!(newest(&[of_a(1), primary("2", Some(("b", 2)))]), None);
        assert_eq!(newest(&[of_a(1), primary("2", None)]), None);
    }

    #[test]
    fn hosts_that_lead_to_one_server_are_one_primary() {
        let asked = |started, timeline| {
            let primary = primary(started, Some(("a", timeline)));
            ("h".to_owned(), Ok(Asked::Primary(primary)))
        };
        let silent = ("h".to_owned(), Err(error::unreachable("h")));
        let standby = ("h".to_owned(), Ok(Asked::Standby));
        let answers = vec![asked("1", 1), asked("1", 1), silent, standby];
        assert_eq!(primaries(&answers).len(), 1);
        let answers = vec![asked("1", 1), asked("2", 1), asked("1", 2)];
        assert_eq!(primaries(&answers).len(), 3);
    }
}
