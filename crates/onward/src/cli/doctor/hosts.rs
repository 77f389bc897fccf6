//! Reports the hosts of a PostgreSQL address with several hosts. Fails if different servers accept
//! writes. A host that does not respond is only listed.

use onward_engine::{Address, HostRole, HostState, Hosts, hosts};

use super::Check;
use crate::failure::Failure;

const HOSTS: &str = "hosts";

/// The check; `None` for a single host or an SQLite file.
pub(super) async fn check(address: &Address) -> Option<Check> {
    match hosts(address).await {
        Ok(found) => found
            .filter(|found| found.states.len() > 1)
            .map(|found| describe(&found)),
        Err(error) => {
            let failure = Failure::from(onward_engine::Error::Store(error));
            Some(Check::failed(HOSTS, failure.message, failure.hint))
        }
    }
}

fn describe(found: &Hosts) -> Check {
    let Hosts {
        states,
        several_primaries,
    } = found;
    let state = |HostState { host, role }: &HostState| match role {
        HostRole::Primary {
            timeline: Some(timeline),
        } => format!("{host}: primary, timeline {timeline}"),
        HostRole::Primary { timeline: None } => format!("{host}: primary"),
        HostRole::Standby => format!("{host}: standby"),
        HostRole::ReadOnly => format!("{host}: read-only"),
        HostRole::Unavailable(error) => format!("{host}: {error}"),
    };
    let states: Vec<String> = states.iter().map(state).collect();
    let states = states.join("; ");
    if *several_primaries {
        let message = format!("several servers accept writes: {states}");
        let hint = "stop all of these servers except the primary, which has the highest timeline, and \
                    rebuild the others as standbys; they may contain plans that the primary does not have";
        Check::failed(HOSTS, message, hint)
    } else {
        Check::passed(HOSTS, states)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fails_only_if_several_servers_accept_writes() {
        let primary = |host: &str, timeline| HostState {
            host: host.to_owned(),
            role: HostRole::Primary {
                timeline: Some(timeline),
            },
        };
        let standby = HostState {
            host: "b:2".to_owned(),
            role: HostRole::Standby,
        };
        let check = describe(&Hosts {
            states: vec![primary("a:1", 3), standby],
            several_primaries: false,
        });
        assert!(check.ok && check.message == "a:1: primary, timeline 3; b:2: standby");
        let check = describe(&Hosts {
            states: vec![primary("a:1", 3), primary("b:2", 4)],
            several_primaries: true,
        });
        assert!(!check.ok && check.hint.is_some(), "{}", check.message);
    }
}
