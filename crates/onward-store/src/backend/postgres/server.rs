//! A database on a PostgreSQL server: its pool, its limits, and operations outside of transactions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::broadcast;

use super::address::{APPLICATION, Address};
use super::batch_queue::Batchers;
use super::leader::Leadership;
use super::listen::{self, Outbox};
use super::node_state::NodeStates;
use super::pool::{Checkout, Limits, Pool};
use super::session::Session;
use super::{catalog, distribute, error, migrate, near_index, pooler, primaries, shards};
use crate::backend::{Connections, Leader};
use crate::change::Changed;
use crate::distribution::Distribution;
use crate::error::Error;
use crate::host::Hosts;
use crate::schema_check::SchemaDeviation;
use crate::vector_index::{Indexed, Many, VectorExtension};

/// A database on a PostgreSQL server. Clones share it.
#[derive(Clone)]
pub(crate) struct Postgres(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) address: Address,
    pub(super) pool: Arc<Pool>,
    pub(super) limits: Limits,
    pub(super) outbox: Arc<Outbox>,
    watchers: broadcast::Sender<Changed>,
    /// Batches the transitions of concurrent callers; `None` if batching is disabled.
    pub(super) batchers: Option<Arc<Batchers>>,
    /// Whether the tables are distributed over several nodes.
    pub(super) distributed: bool,
    pub(super) nodes: NodeStates,
    /// Whether a pooler has assigned another server process to a session since the last check.
    suspects_pooler: AtomicBool,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.outbox.close();
    }
}

impl Postgres {
    /// The connections of the pool.
    pub(crate) fn connections(&self) -> Connections {
        self.0.pool.connections()
    }

    /// Connects to the database, and migrates its schema or rejects it.
    pub(crate) async fn connect(
        url: &str,
        connections: Option<usize>,
        migrates: bool,
        batching: bool,
        watchers: broadcast::Sender<Changed>,
    ) -> Result<Self, Error> {
        let limits = Limits::new(connections);
        Self::within(limits, url, migrates, batching, watchers).await
    }

    /// Connects with these limits.
    pub(super) async fn within(
        limits: Limits,
        url: &str,
        migrates: bool,
        batching: bool,
        watchers: broadcast::Sender<Changed>,
    ) -> Result<Self, Error> {
        let address = Address::parse(url)?;
        let standing = primaries::open(&address).await?;
        let schemas = migrate::check_server(&standing.client, &address.shown).await?;
        migrate::migrate(&standing.client, &address, &schemas, migrates).await?;
        let distributed = distribute::is_distributed(&standing.client).await?;
        let session = Session::for_transactions(&address.given, &schemas, distributed);
        let pool = Arc::new(Pool::new(&address, session, limits)?);
        let outbox = listen::start(address.clone(), standing, watchers.clone()).await?;
        // A batch has padding rows, which a distributed database does not support.
        let batchers = (batching && !distributed)
            .then(|| Arc::new(Batchers::new(limits.connections, limits.max_wait)));
        Ok(Self(Arc::new(Inner {
            address,
            pool,
            limits,
            outbox,
            watchers,
            batchers,
            distributed,
            nodes: NodeStates::default(),
            suspects_pooler: AtomicBool::new(false),
        })))
    }

    /// Records that a pooler assigned another server process to a session.
    pub(super) fn suspect_pooler(&self) {
        self.0.suspects_pooler.store(true, Ordering::Relaxed);
    }

    /// Fails if a pooler has changed to a mode that is not supported. Asks it only after a session
    /// lost its server process.
    pub(crate) async fn check_pooler(&self) -> Result<(), Error> {
        if self.0.suspects_pooler.swap(false, Ordering::Relaxed)
            && let Err(why) = pooler::open(&self.0.address).await
        {
            self.suspect_pooler();
            return Err(why);
        }
        Ok(())
    }

    /// Schema version of the database, and the version that this program requires.
    pub(crate) async fn schema(url: &str) -> Result<(i64, i64), Error> {
        let address = Address::parse(url)?;
        let standing = primaries::open(&address).await?;
        migrate::check_server(&standing.client, &address.shown).await?;
        Ok((migrate::version(&standing.client).await?, migrate::VERSION))
    }

    /// The state of all hosts of an address.
    pub(crate) async fn hosts(url: &str) -> Result<Hosts, Error> {
        Ok(primaries::inspect(&Address::parse(url)?).await)
    }

    /// Takes a connection from the pool.
    pub(super) async fn acquire(&self) -> Result<Checkout, Error> {
        self.0.pool.get().await
    }

    /// Notifies the subscribers in this process and the other servers.
    pub(crate) fn publish(&self, changed: Vec<Changed>) {
        for changed in &changed {
            // There may be no subscriber.
            drop(self.0.watchers.send(changed.clone()));
        }
        self.0.outbox.put(changed);
    }

    /// Waits until no other server is the leader, and becomes the leader.
    pub(crate) async fn lead(&self, duty: &'static str) -> Result<Box<dyn Leader>, Error> {
        let leadership = Box::pin(Leadership::acquire(&self.0.pool, duty)).await?;
        Ok(Box::new(leadership))
    }

    /// Whether a server is the leader.
    pub(crate) async fn has_leader(&self, duty: &'static str) -> Result<bool, Error> {
        Leadership::is_held(&self.0.pool, duty).await
    }

    /// Builds and drops sign-bit indexes.
    pub(crate) async fn index_signs(&self, many: &[Many]) -> Result<Indexed, Error> {
        // An index over the rows of one tenant would be created on all nodes.
        if self.0.distributed {
            return Ok(Indexed::default());
        }
        near_index::maintain(&self.0.address, many).await
    }

    /// Distributes the tables over the nodes of a Citus cluster; returns the number of tables that
    /// were not distributed before.
    pub(crate) async fn distribute(url: &str) -> Result<u64, Error> {
        distribute::distribute(&Address::parse(url)?).await
    }

    /// The nodes and their tenants; `None` if the database is not distributed.
    pub(crate) async fn distribution(&self) -> Result<Option<Distribution>, Error> {
        distribute::inspect(&self.0.address).await
    }

    /// Differences between the schema and the one that the migrations create.
    pub(crate) async fn schema_deviations(&self) -> Result<Vec<SchemaDeviation>, Error> {
        let connection = self.0.address.open_long_lived().await?;
        let client = &connection.client;
        let mut deviations = catalog::deviations(client).await?;
        if distribute::is_distributed(client).await? {
            deviations.extend(shards::deviations(client, &catalog::expected()).await?);
        }
        Ok(deviations)
    }

    /// Versions of the programs that are connected to the database, sorted.
    pub(crate) async fn versions(&self) -> Result<Vec<String>, Error> {
        const CONNECTED: &str = "SELECT DISTINCT substr(application_name, length($1) + 1) \
            FROM pg_stat_activity \
            WHERE datname = current_database() AND starts_with(application_name, $1) ORDER BY 1";
        let failed = |why: tokio_postgres::Error| error::of_statement(why, "versions");
        let connection = self.0.address.open_long_lived().await?;
        let rows = connection
            .client
            .query(CONNECTED, &[&APPLICATION])
            .await
            .map_err(failed)?;
        rows.iter()
            .map(|row| row.try_get(0).map_err(failed))
            .collect()
    }

    /// State of pgvector on the server.
    pub(crate) async fn vector_extension(&self) -> Result<VectorExtension, Error> {
        near_index::inspect(&self.0.address).await
    }
}
