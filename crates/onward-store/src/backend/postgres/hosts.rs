//! The hosts of an address: in which order they are tried, for how long, and which are accepted.
//!
//! Each host has its own time limit for the whole attempt, from the first packet to the checked
//! session, so a silent host delays the next one by no more than that limit. The host that
//! responded last is tried first, so only the first connection after a failure pays for it. A former
//! primary is refused (`primaries`).

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, LoadBalanceHosts};

use super::error;
use super::generation::Generation;
use super::options::take_options;
use crate::error::Error;

/// Time limit of an attempt to connect to the only host, and to each of several.
pub(super) const CONNECT: Duration = Duration::from_secs(5);
const CONNECT_TO_EACH: Duration = Duration::from_secs(2);

/// The form of an address with several hosts.
const LIST: &str = "use `postgres://user@host1:port,host2:port/database`";

/// The option that selects the hosts to accept. The driver does not support all of its values.
const SESSION_ATTRS: &str = "target_session_attrs";

/// The servers to accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Accepted {
    Any,
    /// Those that accept writes.
    ReadWrite,
    /// Those that are not standbys.
    Primary,
}

impl Accepted {
    /// Why a server is not accepted.
    pub(super) fn refusal(self, is_standby: bool, is_read_only: bool) -> Option<&'static str> {
        match self {
            Accepted::Any => None,
            Accepted::Primary | Accepted::ReadWrite if is_standby => Some("a standby"),
            Accepted::ReadWrite if is_read_only => Some("read-only"),
            Accepted::Primary | Accepted::ReadWrite => None,
        }
    }
}

/// The hosts of an address.
#[derive(Debug, Clone)]
pub(super) struct Hosts {
    /// One configuration per host.
    each: Vec<Config>,
    /// Time limit per host, if the address has one.
    limit: Option<Duration>,
    random_order: bool,
    pub(super) accepted: Accepted,
    /// The host that responded last.
    last: Arc<AtomicUsize>,
    /// The newest known generation of a primary.
    newest: Arc<Mutex<Option<Generation>>>,
}

/// Removes the option that selects the hosts to accept from an address, and returns its value.
pub(super) fn take_session_attrs(url: &str) -> (String, Option<String>) {
    let mut attrs = None;
    let url = take_options(url, |name, value| {
        let is_attrs = name == SESSION_ATTRS;
        if is_attrs {
            attrs = Some(value.to_owned());
        }
        is_attrs
    });
    (url, attrs)
}

impl Hosts {
    /// The hosts of a configuration. Onward writes, so of several hosts one that accepts writes is
    /// selected, unless `attrs` states otherwise.
    pub(super) fn new(config: &Config, attrs: Option<&str>, shown: &str) -> Result<Self, Error> {
        let (hosts, addresses) = (config.get_hosts(), config.get_hostaddrs());
        let count = hosts.len().max(addresses.len());
        let ports = config.get_ports();
        if count == 0 {
            return Err(error::address(shown, "the address has no host", LIST));
        }
        if !hosts.is_empty() && !addresses.is_empty() && hosts.len() != addresses.len() {
            let why = "`host` and `hostaddr` must have the same number of entries";
            return Err(error::address(shown, why, LIST));
        }
        if ports.len() > 1 && ports.len() != count {
            return Err(error::address(
                shown,
                "the number of ports must match the number of hosts",
                LIST,
            ));
        }
        let accepted = match attrs {
            None if count > 1 => Accepted::ReadWrite,
            None | Some("any") => Accepted::Any,
            Some("read-write") => Accepted::ReadWrite,
            Some("primary") => Accepted::Primary,
            Some(other) => {
                let why = format!(
                    "`{SESSION_ATTRS}={other}` is not supported, because Onward writes to the database"
                );
                let hint = "use `read-write`, `primary` or `any`, or omit it";
                return Err(error::address(shown, why, hint));
            }
        };
        let each = (0..count).map(|place| {
            let port = ports.get(place).or(ports.first()).copied();
            one_host(config, hosts.get(place), addresses.get(place), port)
        });
        Ok(Self {
            each: each.collect(),
            limit: config.get_connect_timeout().copied(),
            random_order: config.get_load_balance_hosts() == LoadBalanceHosts::Random,
            accepted,
            last: Arc::default(),
            newest: Arc::default(),
        })
    }

    pub(super) fn count(&self) -> usize {
        self.each.len()
    }

    /// Name and port of each host.
    pub(super) fn names(&self) -> Vec<String> {
        let name = |host: &Config| {
            let name = match (host.get_hosts().first(), host.get_hostaddrs().first()) {
                (Some(Host::Tcp(name)), _) => name.clone(),
                #[cfg(unix)]
                (Some(Host::Unix(path)), _) => path.display().to_string(),
                (None, Some(address)) => address.to_string(),
                (None, None) => String::new(),
            };
            let port = host.get_ports().first().copied().unwrap_or(5432);
            format!("{name}:{port}")
        };
        self.each.iter().map(name).collect()
    }

    /// The addresses of one host.
    pub(super) async fn addresses(&self, place: usize) -> std::io::Result<Vec<Config>> {
        match self.each.get(place) {
            Some(host) => resolve(host).await,
            None => Ok(Vec::new()),
        }
    }

    /// Records the generation of a primary.
    pub(super) fn saw(&self, generation: Generation) {
        *self.newest() = Some(generation);
    }

    /// Whether a server is a former primary. Records a newer generation.
    pub(super) fn is_former(&self, generation: Generation) -> bool {
        let mut newest = self.newest();
        let is_former = newest
            .as_ref()
            .is_some_and(|newest| generation.is_before(newest));
        if !is_former {
            *newest = Some(generation);
        }
        is_former
    }

    fn newest(&self) -> MutexGuard<'_, Option<Generation>> {
        // A panic leaves the value valid.
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The attempts of one connection.
    pub(super) fn attempts<'h>(&'h self, shown: &'h str) -> Attempts<'h> {
        Attempts {
            hosts: self,
            shown,
            places: self.order().into(),
            place: 0,
            addresses: VecDeque::new(),
            failure: None,
        }
    }

    /// The places of the hosts, in the order in which they are tried.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.each.len()).collect();
        if self.random_order {
            use std::hash::{BuildHasher as _, RandomState};
            let random = RandomState::new();
            order.sort_by_key(|place| random.hash_one(place));
        } else {
            order.rotate_left(self.last.load(Ordering::Relaxed) % self.each.len().max(1));
        }
        order
    }
}

/// The attempts to open one connection, host by host.
pub(super) struct Attempts<'h> {
    hosts: &'h Hosts,
    shown: &'h str,
    /// The places of the hosts that were not tried yet.
    places: VecDeque<usize>,
    /// The place of the current host, and its other addresses.
    place: usize,
    addresses: VecDeque<(Config, Duration)>,
    failure: Option<Error>,
}

impl Attempts<'_> {
    /// The next configuration to try, and its time limit.
    pub(super) async fn next(&mut self) -> Option<(Config, Duration)> {
        loop {
            if let Some(next) = self.addresses.pop_front() {
                return Some(next);
            }
            self.place = self.places.pop_front()?;
            let Some(host) = self.hosts.each.get(self.place) else {
                continue;
            };
            match timeout(CONNECT, resolve(host)).await {
                Ok(Ok(addresses)) => {
                    let is_only = self.hosts.each.len() == 1 && addresses.len() == 1;
                    let default = if is_only { CONNECT } else { CONNECT_TO_EACH };
                    let limit = self.hosts.limit.unwrap_or(default);
                    self.addresses = addresses.into_iter().map(|one| (one, limit)).collect();
                }
                Ok(Err(why)) => self.failed(error::unresolved(self.shown, why)),
                Err(_) => self.failed(error::unreachable(self.shown)),
            }
        }
    }

    /// Records that the last configuration worked.
    pub(super) fn succeeded(&self) {
        self.hosts.last.store(self.place, Ordering::Relaxed);
    }

    /// Records the error of the last configuration.
    pub(super) fn failed(&mut self, why: Error) {
        let is_permanent = matches!(why, Error::Address { .. });
        let may_end = matches!(self.failure, Some(Error::Unavailable { .. }));
        // A transient error of one host is more useful than a permanent error of another.
        if !(is_permanent && may_end) {
            self.failure = Some(why);
        }
    }

    /// The error to report after the last attempt.
    pub(super) fn into_error(self) -> Error {
        let shown = self.shown;
        self.failure.unwrap_or_else(|| error::unreachable(shown))
    }
}

/// One configuration per address of a host.
async fn resolve(host: &Config) -> std::io::Result<Vec<Config>> {
    let name = match (host.get_hosts().first(), host.get_hostaddrs()) {
        (Some(Host::Tcp(name)), []) => name,
        (Some(_) | None, _) => return Ok(vec![host.clone()]),
    };
    let port = host.get_ports().first().copied().unwrap_or(5432);
    let addresses = tokio::net::lookup_host((name.as_str(), port)).await?;
    let mut candidates: Vec<Config> = Vec::new();
    for address in addresses {
        let known = |one: &Config| one.get_hostaddrs().contains(&address.ip());
        if !candidates.iter().any(known) {
            let mut candidate = host.clone();
            candidate.hostaddr(address.ip());
            candidates.push(candidate);
        }
    }
    Ok(candidates)
}

/// The configuration for one host. The driver's configuration cannot remove hosts.
fn one_host(
    config: &Config,
    host: Option<&Host>,
    address: Option<&IpAddr>,
    port: Option<u16>,
) -> Config {
    let mut one = Config::new();
    match host {
        Some(Host::Tcp(name)) => drop(one.host(name)),
        #[cfg(unix)]
        Some(Host::Unix(path)) => drop(one.host_path(path)),
        None => {}
    }
    if let Some(address) = address {
        one.hostaddr(*address);
    }
    one.port(port.unwrap_or(5432));
    if let Some(user) = config.get_user() {
        one.user(user);
    }
    if let Some(password) = config.get_password() {
        one.password(password);
    }
    if let Some(name) = config.get_dbname() {
        one.dbname(name);
    }
    if let Some(name) = config.get_application_name() {
        one.application_name(name);
    }
    if let Some(timeout) = config.get_tcp_user_timeout() {
        one.tcp_user_timeout(*timeout);
    }
    if let Some(interval) = config.get_keepalives_interval() {
        one.keepalives_interval(interval);
    }
    if let Some(retries) = config.get_keepalives_retries() {
        one.keepalives_retries(retries);
    }
    one.keepalives(config.get_keepalives())
        .keepalives_idle(config.get_keepalives_idle())
        .ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .channel_binding(config.get_channel_binding());
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(url: &str) -> Result<Hosts, Error> {
        let (url, attrs) = take_session_attrs(url);
        let config: Config = url.parse().unwrap();
        Hosts::new(&config, attrs.as_deref(), "shown")
    }

    #[test]
    fn selects_a_writable_host_of_several_unless_the_address_states_otherwise() {
        let accepted = |url: &str| hosts(url).unwrap().accepted;
        assert_eq!(accepted("postgres://a/n"), Accepted::Any);
        assert_eq!(accepted("postgres://a,b/n"), Accepted::ReadWrite);
        let with = |attrs| format!("postgres://a,b/n?{SESSION_ATTRS}={attrs}&user=me");
        assert_eq!(accepted(&with("any")), Accepted::Any);
        assert_eq!(accepted(&with("read-write")), Accepted::ReadWrite);
        assert_eq!(accepted(&with("primary")), Accepted::Primary);
        for attrs in ["prefer-standby", "standby", "read-only", "blue"] {
            let refused = hosts(&with(attrs)).unwrap_err();
            assert!(matches!(refused, Error::Address { .. }), "{attrs}");
        }
        assert_eq!(Accepted::Primary.refusal(false, true), None);
        assert!(Accepted::ReadWrite.refusal(false, true).is_some());
        assert!(Accepted::Primary.refusal(true, true).is_some());
    }

    #[test]
    fn gives_each_host_its_own_port() {
        let each = hosts("postgres://me:pass@a:1,b:2/n?connect_timeout=3").unwrap();
        assert_eq!(each.limit, Some(Duration::from_secs(3)));
        let ports = each.each.iter().map(|host| host.get_ports()[0]);
        assert_eq!(ports.collect::<Vec<_>>(), [1, 2]);
        let second = &each.each[1];
        assert_eq!(second.get_hosts(), [Host::Tcp("b".to_owned())]);
        assert_eq!(second.get_password(), Some(b"pass".as_slice()));
        assert_eq!(second.get_dbname(), Some("n"));
    }

    #[tokio::test]
    async fn tries_the_host_that_responded_last_first() {
        let hosts = hosts("postgres://127.0.0.1:1,127.0.0.1:2/n").unwrap();
        let mut tried = Vec::new();
        for _ in 0..2 {
            let mut attempts = hosts.attempts("shown");
            while let Some((host, limit)) = attempts.next().await {
                assert_eq!(limit, CONNECT_TO_EACH);
                let port = host.get_ports()[0];
                tried.push(port);
                if port == 2 {
                    attempts.succeeded();
                    break;
                }
                attempts.failed(error::unreachable("shown"));
            }
        }
        assert_eq!(tried, [1, 2, 2]);
    }

    #[test]
    fn tries_random_hosts_first_if_the_load_is_balanced() {
        let hosts =
            hosts("postgres://127.0.0.1:1,127.0.0.1:2/n?load_balance_hosts=random").unwrap();
        let first: std::collections::BTreeSet<usize> = (0..64).map(|_| hosts.order()[0]).collect();
        assert_eq!(first.len(), 2);
    }
}
