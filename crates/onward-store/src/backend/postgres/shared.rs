//! A connection that transitions of several tenants use at the same time.
//!
//! Each of their round trips is a whole transaction under its own tenant, so the connection has neither
//! settings nor an open transaction between two of them. A transition that needs a longer transaction
//! takes a separate connection; few of them do at the same time, so that they leave most connections of
//! the pool to others.

use std::sync::{Arc, PoisonError};

use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};

use super::error;
use super::pipeline::Usable;
use super::pool::{Checkout, PooledClient};
use super::server::Postgres;
use crate::error::Error;

/// A connection that several transitions use at the same time.
pub(crate) struct Shared {
    client: OnceCell<Checkout>,
    usable: Usable,
    /// Permits for separate connections.
    own: Arc<Semaphore>,
}

/// The connection that a transaction uses.
#[expect(
    clippy::large_enum_variant,
    reason = "most transactions use the large variant, and a box would cost them an allocation"
)]
pub(super) enum Client {
    Own {
        client: Checkout,
        /// Held until the connection is returned.
        _permit: Option<OwnedSemaphorePermit>,
    },
    Shared(Arc<Shared>),
}

impl Shared {
    /// A shared connection, and at most this many others.
    pub(super) fn new(own: usize) -> Self {
        Self {
            client: OnceCell::new(),
            usable: Usable::new(true),
            own: Arc::new(Semaphore::new(own)),
        }
    }

    /// The shared connection, if it is wanted and usable, otherwise another one.
    pub(super) async fn client(
        this: &Arc<Self>,
        postgres: &Postgres,
        is_sharing: bool,
    ) -> Result<Client, Error> {
        if is_sharing && this.is_usable() {
            this.client.get_or_try_init(|| postgres.acquire()).await?;
            return Ok(Client::Shared(Arc::clone(this)));
        }
        let permit = Arc::clone(&this.own).acquire_owned().await;
        let permit = permit.map_err(|_| error::outcome_unknown("the connection is closed"))?;
        Ok(Client::Own {
            client: postgres.acquire().await?,
            _permit: Some(permit),
        })
    }

    /// Whether it was not lost, and no transaction was sent in part.
    fn is_usable(&self) -> bool {
        *self.usable.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if !self.is_usable()
            && let Some(client) = self.client.take()
        {
            client.close();
        }
    }
}

impl Client {
    pub(super) fn own(client: Checkout) -> Self {
        Self::Own {
            client,
            _permit: None,
        }
    }

    pub(super) fn as_own(&mut self) -> Option<&mut PooledClient> {
        match self {
            Self::Own { client, .. } => Some(client),
            Self::Shared(_) => None,
        }
    }

    /// The connection, and, if others use it as well, whether they still can.
    pub(super) fn get(&self) -> Option<(&PooledClient, Option<&Usable>)> {
        match self {
            Self::Own { client, .. } => Some((client, None)),
            Self::Shared(shared) => Some((shared.client.get()?, Some(&shared.usable))),
        }
    }

    /// Closes the connection after a transaction that did not end. On a shared connection, it ends
    /// without its caller, unless the connection is lost.
    pub(super) fn close(self, is_lost: bool) {
        match self {
            Self::Own { client, .. } => client.close(),
            Self::Shared(shared) if is_lost => {
                *shared.usable.lock().unwrap_or_else(PoisonError::into_inner) = false;
            }
            Self::Shared(_) => {}
        }
    }
}
