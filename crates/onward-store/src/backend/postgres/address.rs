//! The address of a server, and connections to it with limits on every wait.
//!
//! Two kinds of connection are made. Those of the pool serve transactions, and the server ends what
//! takes too long on them. A standing one waits on purpose: for changes, for the leadership, for a
//! migration of somebody else; nothing on it is ended by a clock but a dead network.
//!
//! An address is shown without its password, also where it is so wrong that it cannot be read.

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

/// Connecting takes at most this long.
pub(super) const CONNECT: Duration = Duration::from_secs(5);

/// For transactions: the server ends a wait for a lock, a statement, and a transaction that nobody
/// goes on with. Compiling a query costs more than any of ours takes. A statement is planned once per
/// connection, whatever it is given, and never to read a whole table: a plan that was made while a
/// table was small would still be in use when it is large.
const LIMITS: &str = "-c lock_timeout=10s -c statement_timeout=30s \
    -c idle_in_transaction_session_timeout=60s -c jit=off \
    -c plan_cache_mode=force_generic_plan -c enable_seqscan=off";

/// Whom row security binds, whoever has logged in.
const ROLE: &str = "onward_tenant";

/// For standing connections: waiting is what they are for. A server whose client has lost its
/// network notices within half a minute, and passes the leadership on. Nothing here that a server
/// does not know which is too old: it must get to say so.
const PATIENCE: &str = "-c lock_timeout=0 -c statement_timeout=0 -c tcp_keepalives_idle=15 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3";

/// Where a server is, and how to speak to it.
#[derive(Clone)]
pub(super) struct Address {
    /// Without a password.
    pub(super) shown: String,
    config: Config,
    tls: Tls,
}

/// A connection that stays.
pub(super) struct Standing {
    pub(super) client: Client,
    /// Ends when the connection does.
    pub(super) heard: mpsc::UnboundedReceiver<Notification>,
}

impl Address {
    /// Reads an address.
    pub(super) fn parse(url: &str) -> Result<Self, Error> {
        let shown = shown(url);
        let (url, wish) = tls::wish(url);
        let mut config: Config = url
            .parse()
            .map_err(|why: tokio_postgres::Error| error::address(&shown, error::in_full(&why)))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(error::address(&shown, "it names no host"));
        }
        if config.get_application_name().is_none() {
            config.application_name("onward");
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
        // A server that has no TLS where it is wanted is an error, and not spoken to in the clear.
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

    /// How connections for transactions are made. They look for tables in these schemas, whoever
    /// the search path calls the user: a transaction takes another role than the login's.
    pub(super) fn for_transactions(&self, schemas: &str) -> Config {
        let schemas = schemas.replace('\\', "\\\\").replace(' ', "\\ ");
        let mut config = self.config_with(LIMITS);
        let options = config.get_options().unwrap_or_default();
        let options = format!("{options} -c role={ROLE} -c search_path={schemas}");
        config.options(options);
        config
    }

    /// A connection that waits.
    pub(super) async fn stand(&self) -> Result<Standing, Error> {
        let (sender, heard) = mpsc::unbounded_channel();
        let config = self.config_with(PATIENCE);
        let connecting = async {
            match &self.tls {
                Tls::None => open(&config, NoTls, Some(sender)).await,
                Tls::Rustls(tls) => open(&config, tls.clone(), Some(sender)).await,
            }
        };
        match tokio::time::timeout(CONNECT, connecting).await {
            Ok(Ok((client, _))) => Ok(Standing { client, heard }),
            Ok(Err(why)) => Err(error::connecting(&why, &self.shown)),
            Err(_) => Err(error::unreachable(&self.shown)),
        }
    }

    fn config_with(&self, options: &str) -> Config {
        let mut config = self.config.clone();
        // What the address asks for comes last, and so wins.
        let asked = self.config.get_options().unwrap_or_default();
        config.options(format!("{options} {asked}").trim_end());
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

/// Connects, and starts the task that reads and writes for the connection. It ends with the client,
/// or when the connection is lost.
async fn open<T>(
    config: &Config,
    tls: T,
    heard: Option<mpsc::UnboundedSender<Notification>>,
) -> Result<(Client, JoinHandle<()>), tokio_postgres::Error>
where
    T: MakeTlsConnect<Socket>,
    T::Stream: Send + 'static,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    let (client, mut connection) = config.connect(tls).await?;
    let driving = tokio::spawn(async move {
        // An error ends the connection, and whoever uses it next is told.
        while let Some(Ok(message)) =
            std::future::poll_fn(|context| connection.poll_message(context)).await
        {
            if let (AsyncMessage::Notification(notification), Some(heard)) = (message, &heard) {
                // Whoever listened may have gone.
                drop(heard.send(notification));
            }
        }
    });
    Ok((client, driving))
}

/// Whether nothing of it leaves this machine.
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

/// The address without its password and its options.
fn shown(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", url));
    // A password may hold any of `/?@` where somebody forgot to write it as `%40`: whatever stands
    // before the last `@` could be one, and so could anything after a `:` that is no port.
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

/// Whether it is a port, with a database after it or another host.
fn is_port(text: &str) -> bool {
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    digits > 0 && matches!(text.as_bytes().get(digits), None | Some(b'/' | b','))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_a_password() {
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
            assert_eq!(shown(url), expected);
        }
    }

    #[test]
    fn a_wrong_address_says_why_and_keeps_the_secret() {
        for url in [
            "postgres://me:secret@db:port/onward",
            "postgres://me:secret@db/onward?colour=blue",
            "postgres:///onward?password=secret",
        ] {
            let why = Address::parse(url).err().unwrap().to_string();
            assert!(!why.contains("secret"), "{why}");
            assert!(why.contains("names no database"), "{why}");
        }
    }

    #[test]
    fn what_leaves_the_machine_is_encrypted() {
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
    fn options_of_the_address_win() {
        let address = Address::parse("postgres://db/onward?sslmode=disable&options=-c%20jit%3Don");
        let config = address.unwrap().for_transactions("\"a b\",\"c\\d\"");
        let options = config.get_options().unwrap();
        assert!(
            options.ends_with(r#"-c enable_seqscan=off -c jit=on -c role=onward_tenant -c search_path="a\ b","c\\d""#),
            "{options}"
        );
    }
}
