//! The database that the configuration names, open, and who asks.
//!
//! A file is made where there is none, by whichever command comes first; those that would make no
//! sense on an empty database say so instead, with [`must_exist`].

use std::sync::Arc;

use onward_core::Timestamp;
use onward_engine::caller::LOCAL;
use onward_engine::engine::Settings;
use onward_engine::{Address, Caller, Engine};

use super::Context;
use crate::config::{Setting, shown};
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::model::embeddings::Endpoint;

/// An open database.
pub(super) struct Database {
    pub(super) engine: Engine,
    /// Who asks.
    pub(super) caller: Caller,
    /// The instant of the command.
    pub(super) now: Timestamp,
}

impl Database {
    /// Opens it, for the tenant that the configuration names.
    pub(super) async fn open(cx: &Context) -> Result<Self> {
        Self::of(cx, open(cx).await?).await
    }

    /// The same for a command that asks once, and is ended by somebody where it takes too long.
    pub(super) async fn open_in_place(cx: &Context) -> Result<Self> {
        let settings = Settings {
            in_place: true,
            ..Settings::default()
        };
        Self::of(cx, open_as(cx, settings).await?).await
    }

    async fn of(cx: &Context, engine: Engine) -> Result<Self> {
        let caller = caller(&engine, &cx.config.tenant).await?;
        cx.output.detail(&format!(
            "tenant: {} ({})",
            caller.tenant, cx.config.tenant.from
        ));
        Ok(Self {
            now: engine.now(),
            engine,
            caller,
        })
    }
}

/// Opens it for whoever runs it, without a tenant.
pub(super) async fn open(cx: &Context) -> Result<Engine> {
    open_as(cx, Settings::default()).await
}

async fn open_as(cx: &Context, settings: Settings) -> Result<Engine> {
    let Setting { value, from } = &cx.config.database;
    cx.output
        .detail(&format!("database: {} ({from})", shown(value)));
    let mut engine = Engine::open(value, settings).await?;
    if let Some(endpoint) = Endpoint::of(&cx.config.embeddings) {
        engine = engine.with_embedder(Arc::new(endpoint));
    }
    cx.opened.replace(Some(engine.clone()));
    Ok(engine)
}

/// Who asks: the user of this machine, or, for another tenant, whoever runs the server.
async fn caller(engine: &Engine, tenant: &Setting<String>) -> Result<Caller> {
    if tenant.value == LOCAL {
        return Ok(Caller::local(user()));
    }
    Ok(engine.operator(&tenant.value, &user()).await?)
}

/// The user of this machine, as the audit trail names them.
fn user() -> String {
    let name = ["USER", "LOGNAME", "USERNAME"].iter().find_map(|variable| {
        let name = std::env::var(variable).ok()?;
        (!name.is_empty()).then_some(name)
    });
    name.map_or_else(|| "user".to_owned(), |name| format!("user:{name}"))
}

/// Refuses to go on where the file is not there.
pub(super) fn must_exist(cx: &Context) -> Result<()> {
    match &cx.config.database.value {
        Address::File(path) if !path.exists() => Err(Failure::new(
            Exit::NotFound,
            onward_core::Code::Unavailable,
            format!("there is no database `{}`", path.display()),
            "name another one with `--database`; `onward config` shows where this one comes from",
        )),
        Address::File(_) | Address::Server(_) => Ok(()),
    }
}
