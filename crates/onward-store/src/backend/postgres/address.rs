//! Address of a server, and connections to it with a limit on every wait.
//!
//! Pooled connections serve transactions, and the server cancels their long statements. A
//! long-lived connection (`LongLivedConnection`) waits without a timeout (for notifications, for the leader
//! lock, for a migration by another server), and only a network failure ends it.
//!
//! An address is displayed without its password, even if it cannot be parsed.

use std::net::IpAddr;
use std::time::Duration;

use deadpool_postgres::Connect;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{AsyncMessage, Client, Config, NoTls, Notification, Socket};

use super::error;
use super::tls::{self, Tls};
use crate::error::Error;

/// Maximum time to connect.
pub(super) const CONNECT: Duration = Duration::from_secs(5);

/// Options for transactions. The server cancels long lock waits, long statements and idle
/// transactions. JIT compilation costs more than any of these queries takes.
const LIMITS: &str = "-c lock_timeout=10s -c statement_timeout=30s \
    -c idle_in_transaction_session_timeout=60s -c jit=off";

/// A statement is planned once per connection, independently of its parameters and without
/// sequential scans: a plan made for a small table would still be used when the table is large.
const GENERIC_PLANS: &str = "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off";

/// Citus selects the node by the value of the tenant, which a generic plan does not contain. It
/// forwards `SET LOCAL` to the nodes of a transaction.
const ON_CITUS: &str = "-c plan_cache_mode=force_custom_plan -c citus.propagate_set_commands=local";

/// Name of a connection: this prefix and the version of the program, unless the address has another
/// name.
pub(super) const APPLICATION: &str = "onward ";

/// The role that is subject to row security, regardless of the login.
const ROLE: &str = "onward_tenant";

/// Options for long-lived connections, which wait without a timeout. A server detects a
/// disconnected client within half a minute, and releases its leader lock. Unsupported old servers
/// accept all options too, so that the version check can run.
const PATIENCE: &str = "-c lock_timeout=0 -c statement_timeout=0 -c tcp_keepalives_idle=15 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3";

/// Location of a server, and how to connect to it.
#[derive(Clone)]
pub(super) struct Address {
    /// Without a password.
    pub(super) shown: String,
    config: Config,
    tls: Tls,
}

/// A long-lived connection.
pub(super) struct LongLivedConnection {
    pub(super) client: Client,
    /// Notifications; ends with the connection.
    pub(super) notifications: mpsc::UnboundedReceiver<Notification>,
}

impl Address {
    /// Parses an address.
    pub(super) fn parse(url: &str) -> Result<Self, Error> {
        let shown = displayed(url);
        let (url, wish) = tls::wish(url);
        let mut config: Config = url
            .parse()
            .map_err(|why: tokio_postgres::Error| error::address(&shown, error::in_full(&why)))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(error::address(&shown, "the address has no host"));
        }
        if config.get_application_name().is_none() {
            config.application_name(format!("{APPLICATION}{}", env!("CARGO_PKG_VERSION")));
        }
        config
            .connect_timeout(CONNECT)
            .tcp_user_timeout(Duration::from_secs(30))
            .keepalives(true)
            .keepalives_idle(Duration::from_secs(15))
            .keepalives_interval(Duration::from_secs(5))
            .keepalives_retries(3);
        let encrypted = match config.get_ssl_mode() {
            SslMode::Disable => false,
            SslMode::Require => true,
            SslMode::Prefer | _ => wish.is_strict() || !is_local(&config),
        };
        // If TLS is required and the server has none, connecting fails: there is no fallback to
        // plain text.
        config.ssl_mode(if encrypted {
            SslMode::Require
        } else {
            SslMode::Disable
        });
        let tls = if encrypted {
            tls::trusting(&wish, &shown)?
        } else {
            Tls::None
        };
        Ok(Self { shown, config, tls })
    }

    /// Configuration of connections for transactions. `schemas` is the search path of the login:
    /// `"$user"` in it would be another schema for the role of a transaction.
    pub(super) fn for_transactions(&self, schemas: &str, distributed: bool) -> Config {
        let schemas = schemas.replace('\\', "\\\\").replace(' ', "\\ ");
        let planning = if distributed { ON_CITUS } else { GENERIC_PLANS };
        let mut config = self.config_with(&format!("{LIMITS} {planning}"));
        let options = config.get_options().unwrap_or_default();
        let options = format!("{options} -c role={ROLE} -c search_path={schemas}");
        config.options(options);
        config
    }

    /// Opens a long-lived connection.
    pub(super) async fn open_long_lived(&self) -> Result<LongLivedConnection, Error> {
        let (sender, notifications) = mpsc::unbounded_channel();
        let config = self.config_with(PATIENCE);
        let connecting = async {
            match &self.tls {
                Tls::None => open(&config, NoTls, Some(sender)).await,
                Tls::Rustls(tls) => open(&config, tls.clone(), Some(sender)).await,
            }
        };
        match tokio::time::timeout(CONNECT, connecting).await {
            Ok(Ok((client, _))) => Ok(LongLivedConnection {
                client,
                notifications,
            }),
            Ok(Err(why)) => Err(error::of_connection(&why, &self.shown)),
            Err(_) => Err(error::unreachable(&self.shown)),
        }
    }

    fn config_with(&self, options: &str) -> Config {
        let mut config = self.config.clone();
        // Options of the address come last, and take precedence.
        let given = self.config.get_options().unwrap_or_default();
        config.options(format!("{options} {given}").trim_end());
        config
    }
}

impl Connect for Address {
    fn connect(
        &self,
        config: &Config,
    ) -> std::pin::Pin<
        Box<
            dyn Future<Output = Result<(Client, JoinHandle<()>), tokio_postgres::Error>>
                + Send
                + '_,
        >,
    > {
        let config = config.clone();
        Box::pin(async move {
            match &self.tls {
                Tls::None => open(&config, NoTls, None).await,
                Tls::Rustls(tls) => open(&config, tls.clone(), None).await,
            }
        })
    }
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
        ] {
            let why = Address::parse(url).err().unwrap();
            assert!(matches!(why, Error::Address { .. }), "{why}");
            let why = why.to_string();
            assert!(!why.contains("secret"), "{why}");
        }
    }

    #[test]
    fn requires_tls_for_remote_servers() {
        let mode = |url| Address::parse(url).unwrap().config.get_ssl_mode();
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

    #[test]
    fn options_of_the_address_take_precedence() {
        let address = Address::parse("postgres://db/onward?sslmode=disable&options=-c%20jit%3Don");
        let config = address.unwrap().for_transactions("\"a b\",\"c\\d\"", false);
        let options = config.get_options().unwrap();
        assert!(
            options.ends_with(r#"-c enable_seqscan=off -c jit=on -c role=onward_tenant -c search_path="a\ b","c\\d""#),
            "{options}"
        );
    }
}
