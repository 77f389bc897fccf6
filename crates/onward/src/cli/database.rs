//! Opening the configured database, and the caller of the command.
//!
//! A missing SQLite file is an error: a mistyped path would look like lost data. If no path is
//! configured, the file is missing before the first plan; commands that read then use an empty
//! database in a temporary directory. Only commands that store data in a new installation create
//! the file, with [`Database::open_or_create`].

use std::sync::Arc;
use std::time::Duration;

use onward_core::Timestamp;
use onward_engine::caller::LOCAL;
use onward_engine::engine::Settings;
use onward_engine::{Address, Caller, Engine, Error, store};
use tokio::time::timeout;

use super::Context;
use super::temporary::TempDir;
use crate::config::Source;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::model::embeddings::EmbeddingClient;

/// How long a server that starts waits for PostgreSQL.
const START: Duration = Duration::from_secs(1);

/// An open database.
pub(super) struct Database {
    pub(super) engine: Engine,
    pub(super) caller: Caller,
    /// The time of the command.
    pub(super) now: Timestamp,
}

impl Database {
    /// Opens the existing database for the configured tenant; before the first plan, an empty one.
    pub(super) async fn open(cx: &Context) -> Result<Self> {
        Self::new(cx, open_existing(cx).await?).await
    }

    /// Opens the database for the configured tenant, and creates a missing SQLite file.
    pub(super) async fn open_or_create(cx: &Context) -> Result<Self> {
        Self::new(cx, open(cx).await?).await
    }

    /// Opens the database for a server, which also starts while PostgreSQL is unavailable: calls fail
    /// until it is available.
    pub(super) async fn open_for_server(cx: &Context) -> Result<Self> {
        let tenant = &cx.config.top.tenant;
        let settings = Settings {
            start_unavailable: Some(tenant.as_str().into()),
            ..settings(cx)
        };
        let engine = open_with(cx, settings).await?;
        engine.announce_version();
        let unavailable =
            |failure: &Failure| failure.exit == Exit::Unavailable && cx.config.database.is_server();
        let opened = if cx.config.database.is_server() {
            timeout(START, Self::new(cx, engine.clone()))
                .await
                .unwrap_or_else(|_| Err(not_connected().into()))
        } else {
            Self::new(cx, engine.clone()).await
        };
        match opened {
            Err(failure) if unavailable(&failure) => {
                cx.output.warn(&format!(
                    "{}; calls fail until the database is available",
                    failure.message
                ));
                Ok(Self {
                    now: engine.now(),
                    caller: engine.assumed_operator(tenant, &user())?,
                    engine,
                })
            }
            opened => opened,
        }
    }

    /// Opens the database for a command with few queries and its own deadline, without extra
    /// threads.
    pub(super) async fn open_in_place(cx: &Context) -> Result<Self> {
        let settings = Settings {
            in_place: true,
            ..settings(cx)
        };
        Self::new(cx, open_with(cx, settings).await?).await
    }

    async fn new(cx: &Context, engine: Engine) -> Result<Self> {
        let caller = caller(&engine, &cx.config.top.tenant).await?;
        cx.output.detail(&format!(
            "tenant: {} ({})",
            caller.tenant,
            cx.config.settings.source("tenant")
        ));
        Ok(Self {
            now: engine.now(),
            engine,
            caller,
        })
    }
}

fn not_connected() -> Error {
    let why = "the server has not responded yet";
    Error::Store(store::Error::unavailable(why, "retry the call"))
}

/// Opens the database without a tenant, for the operator.
pub(super) async fn open(cx: &Context) -> Result<Engine> {
    open_with(cx, settings(cx)).await
}

/// The configured settings of the engine.
pub(super) fn settings(cx: &Context) -> Settings {
    Settings {
        connections: Some(cx.config.top.database_connections),
        sync: cx.config.top.database_sync,
        ..Settings::default()
    }
}

/// Opens the existing database without a tenant; before the first plan, an empty one.
pub(super) async fn open_existing(cx: &Context) -> Result<Engine> {
    if exists(cx) || !matches!(cx.config.settings.source("database"), Source::Default) {
        must_exist(cx)?;
        return open(cx).await;
    }
    let directory = TempDir::create("empty")?;
    let address = Address::File(directory.path.join("onward.db"));
    cx.empty.replace(Some(directory));
    open_at(cx, &address, settings(cx)).await
}

async fn open_with(cx: &Context, settings: Settings) -> Result<Engine> {
    open_at(cx, &cx.config.database, settings).await
}

async fn open_at(cx: &Context, address: &Address, settings: Settings) -> Result<Engine> {
    cx.output.detail(&format!(
        "database: {} ({})",
        address,
        cx.config.settings.source("database")
    ));
    let mut engine = Engine::open(address, settings)
        .await?
        .with_call_timeouts(cx.config.calls.timeouts())
        .with_no_agent_after(cx.config.watch.no_agent_after())
        .with_archive_after(cx.config.capture.archive_after());
    if let Some(embeddings) = &cx.config.embeddings {
        engine = engine.with_embedder(Arc::new(EmbeddingClient::new(embeddings)));
    }
    cx.opened.replace(Some(engine.clone()));
    Ok(engine)
}

/// The caller: the local user, or the operator for another tenant.
async fn caller(engine: &Engine, tenant: &str) -> Result<Caller> {
    if tenant == LOCAL {
        return Ok(Caller::local(user()));
    }
    Ok(engine.operator(tenant, &user()).await?)
}

/// The name of the local user in the audit trail.
pub(super) fn user() -> String {
    let name = ["USER", "LOGNAME", "USERNAME"].iter().find_map(|variable| {
        let name = std::env::var(variable).ok()?;
        (!name.is_empty()).then_some(name)
    });
    name.map_or_else(|| "user".to_owned(), |name| format!("user:{name}"))
}

/// Whether the database is a server, or a SQLite file that exists.
pub(super) fn exists(cx: &Context) -> bool {
    match &cx.config.database {
        Address::File(path) => path.exists(),
        Address::Server(_) => true,
    }
}

/// Fails if the SQLite file does not exist.
pub(super) fn must_exist(cx: &Context) -> Result<()> {
    match &cx.config.database {
        Address::File(path) if !path.exists() => Err(Failure::new(
            Exit::NotFound,
            onward_core::Code::Unavailable,
            format!("no database at `{}`", path.display()),
            "check the path; `onward serve` or an agent creates a new database",
        )),
        Address::File(_) | Address::Server(_) => Ok(()),
    }
}
