//! Address of a server, and connections to it with a limit on every wait.
//!
//! Pooled connections serve transactions, and the server cancels their long statements. A
//! long-lived connection (`LongLivedConnection`) waits without a timeout (for notifications, for a
//! migration by another server), and only a network failure ends it.
//!
//! An address is displayed without its password, even if it cannot be parsed.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{AsyncMessage, Client, Config, NoTls, Notification, Socket};
use uuid::Uuid;

use super::error;
use super::generation::Generation;
use super::hosts::{self, Hosts};
use super::session::{self, MARK, Session, Setting};
use super::tls::{self, Tls, TlsOptions};
use crate::error::Error;

/// Name of a connection: this prefix and the version of the program, unless the address has another
/// name.
pub(super) const APPLICATION: &str = "onward ";

/// The form of an address.
const FORM: &str = "use `postgres://user@host:port/database`, and percent-encode special characters of the password";

/// A random id, which identifies this process or one of its connections.
pub(super) fn random_id() -> String {
    use std::hash::{BuildHasher, RandomState};
    // Seeded randomly by the standard library; not a secret.
    let half = || u128::from(RandomState::new().hash_one(std::process::id()));
    Uuid::from_u128(half() << 64 | half()).to_string()
}

/// Location of a server, and how to connect to it.
#[derive(Clone)]
pub(super) struct Address {
    /// Without a password.
    pub(super) shown: String,
    pub(super) hosts: Hosts,
    /// The settings in the options of the address.
    pub(super) given: Vec<Setting>,
    tls: Tls,
    /// Whether a pooler rejected startup options, so that none are sent.
    rejects_options: Arc<AtomicBool>,
}

/// A long-lived connection.
pub(super) struct LongLivedConnection {
    pub(super) client: Client,
    /// Notifications; ends with the connection.
    pub(super) notifications: mpsc::UnboundedReceiver<Notification>,
    /// The server process, if a pooler is in between.
    pub(super) process: Option<i32>,
}

/// A new connection.
pub(super) struct Opened {
    pub(super) client: Client,
    pub(super) driving: JoinHandle<()>,
    /// The server process, if a pooler is in between.
    pub(super) process: Option<i32>,
}

impl Address {
    /// Parses an address.
    pub(super) fn parse(url: &str) -> Result<Self, Error> {
        let shown = displayed(url);
        let (url, tls_options) = TlsOptions::take(url);
        let (url, attrs) = hosts::take_session_attrs(&url);
        let mut config: Config = url.parse().map_err(|why: tokio_postgres::Error| {
            error::address(&shown, error::in_full(&why), FORM).caused_by(why)
        })?;
        if config.get_application_name().is_none() {
            config.application_name(format!("{APPLICATION}{}", env!("CARGO_PKG_VERSION")));
        }
        let given = config.get_options().unwrap_or_default();
        let Some(given) = session::parse_options(given) else {
            let why = "its `options` must have the form `-c name=value`";
            let hint = "encode it for a URL: `options=-c%20name%3Dvalue`";
            return Err(error::address(&shown, why, hint));
        };
        let encrypted = match config.get_ssl_mode() {
            SslMode::Disable => false,
            SslMode::Require => true,
            SslMode::Prefer | _ => tls_options.requires_verification() || !is_local(&config),
        };
        // If TLS is required and the server has none, connecting fails: there is no fallback to
        // plain text.
        config.ssl_mode(if encrypted {
            SslMode::Require
        } else {
            SslMode::Disable
        });
        let is_one = config.get_hosts().len().max(config.get_hostaddrs().len()) <= 1;
        detect_silence(&mut config, is_one);
        let hosts = Hosts::new(&config, attrs.as_deref(), &shown)?;
        let tls = if encrypted {
            tls::trusting(&tls_options, &shown)?
        } else {
            Tls::None
        };
        Ok(Self {
            shown,
            hosts,
            given,
            tls,
            rejects_options: Arc::default(),
        })
    }

    /// Opens a long-lived connection.
    pub(super) async fn open_long_lived(&self) -> Result<LongLivedConnection, Error> {
        let (sender, notifications) = mpsc::unbounded_channel();
        let opened = self
            .open(&Session::long_lived(&self.given), Some(sender))
            .await?;
        Ok(LongLivedConnection {
            client: opened.client,
            notifications,
            process: opened.process,
        })
    }

    /// Opens a connection, and applies and verifies the settings of its session.
    pub(super) async fn open(
        &self,
        session: &Session,
        notifications: Option<mpsc::UnboundedSender<Notification>>,
    ) -> Result<Opened, Error> {
        let mut attempts = self.hosts.attempts(&self.shown);
        while let Some((host, limit)) = attempts.next().await {
            let opening = self.open_session(host, session, notifications.clone());
            match timeout(limit, opening).await {
                Ok(Ok(opened)) => {
                    attempts.succeeded();
                    return Ok(opened);
                }
                Ok(Err(why)) => attempts.failed(why),
                Err(_) => attempts.failed(error::unreachable(&self.shown)),
            }
        }
        Err(attempts.into_error())
    }

    async fn open_session(
        &self,
        host: Config,
        session: &Session,
        notifications: Option<mpsc::UnboundedSender<Notification>>,
    ) -> Result<Opened, Error> {
        let (client, driving, mark) = self.open_at(host, notifications).await?;
        let accepted = self.hosts.accepted;
        let started = session.start(&client, mark.as_deref(), accepted, &self.shown);
        let process = started.await?;
        if self.hosts.count() > 1
            && let Some(generation) = Generation::read(&client).await
            && self.hosts.is_former(generation)
        {
            return Err(error::former_primary(&self.shown));
        }
        Ok(Opened {
            client,
            driving,
            process,
        })
    }

    /// Connects to a host that is not selected, to ask it.
    pub(super) async fn open_host(&self, place: usize) -> Result<Client, Error> {
        let addresses = self.hosts.addresses(place).await;
        let addresses = addresses.map_err(|why| error::unresolved(&self.shown, why))?;
        let mut failure = error::unreachable(&self.shown);
        for address in addresses {
            match self.open_at(address, None).await {
                Ok((client, ..)) => return Ok(client),
                Err(why) => failure = why,
            }
        }
        Err(failure)
    }

    /// Connects to a host, with the startup option [`MARK`] unless a pooler rejects it.
    async fn open_at(
        &self,
        host: Config,
        notifications: Option<mpsc::UnboundedSender<Notification>>,
    ) -> Result<(Client, JoinHandle<()>, Option<String>), Error> {
        let failed = |why| {
            if self.tls.has_failed(&why) {
                error::tls(why, &self.shown)
            } else {
                error::of_connection(why, &self.shown)
            }
        };
        if !self.rejects_options.load(Ordering::Relaxed) {
            let mark = random_id();
            let mut marked = host.clone();
            marked.options(format!("-c {MARK}={mark}"));
            match self.connect(&marked, notifications.clone()).await {
                Ok((client, driving)) => return Ok((client, driving, Some(mark))),
                Err(why) if error::rejects_options(&why) => {
                    self.rejects_options.store(true, Ordering::Relaxed);
                }
                Err(why) => return Err(failed(why)),
            }
        }
        let (client, driving) = self.connect(&host, notifications).await.map_err(failed)?;
        Ok((client, driving, None))
    }

    async fn connect(
        &self,
        host: &Config,
        notifications: Option<mpsc::UnboundedSender<Notification>>,
    ) -> Result<(Client, JoinHandle<()>), tokio_postgres::Error> {
        match &self.tls {
            Tls::None => open(host, NoTls, notifications).await,
            Tls::Rustls(tls) => open(host, tls.clone(), notifications).await,
        }
    }
}

/// Sets how long the operating system waits for a host that does not acknowledge packets. If there
/// is another host to use, that is a few seconds.
fn detect_silence(config: &mut Config, is_only_host: bool) {
    let (silence, idle, interval) = if is_only_host { (30, 15, 5) } else { (4, 2, 1) };
    config
        .tcp_user_timeout(Duration::from_secs(silence))
        .keepalives(true)
        .keepalives_idle(Duration::from_secs(idle))
        .keepalives_interval(Duration::from_secs(interval))
        .keepalives_retries(3);
}

/// Connects, and spawns the task that drives the connection. The task ends with the client, or when
/// the connection is lost.
async fn open<T>(
    config: &Config,
    tls: T,
    notifications: Option<mpsc::UnboundedSender<Notification>>,
) -> Result<(Client, JoinHandle<()>), tokio_postgres::Error>
where
    T: MakeTlsConnect<Socket>,
    T::Stream: Send + 'static,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    let (client, mut connection) = config.connect(tls).await?;
    let driving = tokio::spawn(async move {
        // An error ends the connection, and the next call on it fails.
        while let Some(Ok(message)) =
            std::future::poll_fn(|context| connection.poll_message(context)).await
        {
            if let (AsyncMessage::Notification(notification), Some(notifications)) =
                (message, &notifications)
            {
                // The receiver may have been dropped.
                drop(notifications.send(notification));
            }
        }
    });
    Ok((client, driving))
}

/// Whether all traffic stays on this machine.
fn is_local(config: &Config) -> bool {
    let by_address = config.get_hostaddrs();
    if !by_address.is_empty() {
        return by_address.iter().all(IpAddr::is_loopback);
    }
    config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    })
}

/// The address without its password and options.
pub(crate) fn displayed(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", url));
    // A password may contain `/`, `?` or `@` without percent-encoding: everything before the last
    // `@` may be part of it, and so may everything after a `:` that is not a port.
    let (user, place) = match rest.rsplit_once('@') {
        Some((user, place)) => (user.split(':').next(), place),
        None => (None, rest),
    };
    let place = place.split('?').next().unwrap_or_default();
    let place = match place.split_once(':') {
        Some((host, port)) if !place.starts_with('[') && !is_port(port) => host,
        Some(_) | None => place,
    };
    match user {
        Some(user) => format!("{scheme}://{user}@{place}"),
        None => format!("{scheme}://{place}"),
    }
}

/// Whether it is a port, optionally followed by a database or another host.
fn is_port(text: &str) -> bool {
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    digits > 0 && matches!(text.as_bytes().get(digits), None | Some(b'/' | b','))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displays_an_address_without_its_password() {
        for (url, expected) in [
            (
                "postgres://me:secret@db:5432/onward",
                "postgres://me@db:5432/onward",
            ),
            (
                "postgres://me:se@cr/e?t@db/onward",
                "postgres://me@db/onward",
            ),
            (
                "postgres://me@db/onward?password=secret",
                "postgres://me@db/onward",
            ),
            (
                "postgresql://db,other:5433/onward",
                "postgresql://db,other:5433/onward",
            ),
            (
                "postgres://[::1]:5432/onward",
                "postgres://[::1]:5432/onward",
            ),
            ("postgres://me:secret", "postgres://me"),
            (
                "postgres://%2Frun%2Fpostgresql/onward",
                "postgres://%2Frun%2Fpostgresql/onward",
            ),
        ] {
            assert_eq!(displayed(url), expected);
        }
    }

    #[test]
    fn rejects_an_invalid_address_without_revealing_its_password() {
        for url in [
            "postgres://me:secret@db:port/onward",
            "postgres://me:secret@db/onward?colour=blue",
            "postgres:///onward?password=secret",
            "postgres://me:secret@db/onward?options=-N%205",
            "postgres://me:secret@db,other/onward?target_session_attrs=prefer-standby",
        ] {
            let why = Address::parse(url).err().unwrap();
            assert!(matches!(why, Error::Address { .. }), "{why}");
            let why = why.to_string();
            assert!(!why.contains("secret"), "{why}");
        }
    }

    #[test]
    fn requires_tls_for_remote_servers() {
        let mode = |url| {
            let tls = Address::parse(url).unwrap().tls;
            if matches!(tls, Tls::None) {
                SslMode::Disable
            } else {
                SslMode::Require
            }
        };
        assert_eq!(mode("postgres://db/onward"), SslMode::Require);
        assert_eq!(
            mode("postgres://db/onward?sslmode=prefer"),
            SslMode::Require
        );
        assert_eq!(
            mode("postgres://db/onward?sslmode=disable"),
            SslMode::Disable
        );
        assert_eq!(mode("postgres://localhost/onward"), SslMode::Disable);
        assert_eq!(mode("postgres://127.0.0.1/onward"), SslMode::Disable);
        assert_eq!(mode("postgres://[::1]/onward"), SslMode::Disable);
        assert_eq!(mode("postgres://localhost,db/onward"), SslMode::Require);
        assert_eq!(
            mode("postgres://localhost/onward?sslmode=require"),
            SslMode::Require
        );
        assert_eq!(
            mode("postgres://localhost/onward?sslmode=verify-full"),
            SslMode::Require
        );
        assert_eq!(
            mode("postgres:///onward?host=/run/postgresql"),
            SslMode::Disable
        );
    }
}
