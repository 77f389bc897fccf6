//! The test harness: an engine on a test database, a simulated environment and a tenant; and the
//! function that runs a test.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use onward_core::{Role, Timestamp};
use onward_engine::engine::Settings;
use onward_engine::list::PlanQuery;
use onward_engine::session::HookSource;
use onward_engine::{Caller, Engine, Faults, SyncMode};
use onward_testbed::Backend;

use crate::database::{Isolation, RUNTIME, TestDatabase};
use crate::environment::{SimulatedEnvironment, fnv1a};

struct OpenEngine {
    engine: Engine,
    environment: Arc<SimulatedEnvironment>,
    faults: Faults,
}

/// Engines on the shared PostgreSQL database that no test is using. Opening one takes longer than
/// most tests.
static IDLE: Mutex<Vec<OpenEngine>> = Mutex::new(Vec::new());

impl OpenEngine {
    async fn open(database: &TestDatabase, seed: &str) -> Self {
        let environment = Arc::new(SimulatedEnvironment::new(seed));
        let faults = Faults::armed();
        let opened = Engine::open(&database.address(), settings(&environment, &faults)).await;
        Self {
            engine: opened.expect("engine was opened"),
            environment,
            faults,
        }
    }

    /// Takes an idle engine and resets its environment.
    fn reuse(seed: &str) -> Option<Self> {
        let opened = IDLE.lock().expect("lock is not poisoned").pop()?;
        opened.environment.reset(seed);
        opened.faults.fail_after(u32::MAX);
        Some(opened)
    }
}

pub(crate) struct Harness {
    pub(crate) engine: Engine,
    /// The owner of the test's tenant.
    pub(crate) me: Caller,
    pub(crate) environment: Arc<SimulatedEnvironment>,
    pub(crate) database: TestDatabase,
    pub(crate) faults: Faults,
    name: String,
    tenants: Mutex<Vec<Caller>>,
    corrupted: AtomicBool,
}

/// Runs a test, then verifies that its audit trails replay to its rows.
pub(crate) fn run(
    backend: Backend,
    isolation: Isolation,
    name: &'static str,
    test: impl AsyncFn(&Harness),
) {
    RUNTIME.block_on(async {
        // The same seed on both backends: the same calls produce the same ids.
        let seed = name
            .replace("::sqlite::", "::")
            .replace("::postgres::", "::");
        let database = TestDatabase::acquire(backend, isolation);
        let idle = match (backend, isolation) {
            (Backend::Postgres, Isolation::Shared) => OpenEngine::reuse(&seed),
            (Backend::Sqlite, _) | (Backend::Postgres, Isolation::Exclusive) => None,
        };
        let opened = match idle {
            Some(opened) => opened,
            None => OpenEngine::open(&database, &seed).await,
        };
        let harness = Harness::start(database, opened, name).await;
        test(&harness).await;
        harness.close(isolation).await;
    });
}

impl Harness {
    /// A harness with this random seed.
    pub(crate) async fn with_seed(
        backend: Backend,
        isolation: Isolation,
        name: &str,
        seed: &str,
    ) -> Self {
        let tenant = format!("{name} {seed}");
        let database = TestDatabase::acquire(backend, isolation);
        let opened = OpenEngine::open(&database, seed).await;
        Self::start(database, opened, &tenant).await
    }

    async fn start(database: TestDatabase, opened: OpenEngine, name: &str) -> Self {
        let OpenEngine {
            engine,
            environment,
            faults,
        } = opened;
        let tenant = tenant_name(name, "own");
        engine
            .create_tenant(&tenant)
            .await
            .expect("tenant was created");
        let me = engine.operator(&tenant, "me").await.expect("tenant exists");
        Self {
            engine,
            tenants: Mutex::new(vec![me.clone()]),
            me,
            environment,
            database,
            faults,
            name: name.to_owned(),
            corrupted: AtomicBool::new(false),
        }
    }

    pub(crate) async fn close(self, isolation: Isolation) {
        let tenants = self.tenants.lock().expect("lock is not poisoned").clone();
        for tenant in &tenants {
            if !self.corrupted.load(Ordering::SeqCst) {
                let checked = self.engine.verify(tenant).await.expect("verify ran");
                assert_eq!(
                    checked.inconsistencies,
                    [],
                    "audit trail does not replay to rows"
                );
            }
            if isolation == Isolation::Exclusive {
                self.end_plans_and_sessions(tenant).await;
            }
        }
        if self.database.backend() == Backend::Postgres && isolation == Isolation::Shared {
            IDLE.lock().expect("lock is not poisoned").push(OpenEngine {
                engine: self.engine,
                environment: self.environment,
                faults: self.faults,
            });
        } else {
            self.engine.close().await;
        }
        self.database.release(isolation);
    }

    /// Leaves nothing that the sweep of the next test on this database would act on.
    async fn end_plans_and_sessions(&self, tenant: &Caller) {
        let query = PlanQuery {
            limit: 10_000,
            ..PlanQuery::default()
        };
        let open = self
            .engine
            .list_plans(tenant, query)
            .await
            .expect("plans were listed");
        for plan in open.plans {
            let id = plan.sheet.head.id;
            let abandoned = self.engine.abandon_plan(tenant, id, None).await;
            abandoned.expect("open plan was abandoned");
        }
        let sessions = self.engine.list_sessions(tenant, 10_000).await;
        for line in sessions.expect("sessions were listed") {
            let source = HookSource {
                session: line.session.id,
                agent: line.session.agent,
                ..HookSource::default()
            };
            let ended = self.engine.end_session(tenant, source).await;
            ended.expect("session was ended");
        }
    }

    /// Opens a second engine on the same database and environment, as another process would.
    pub(crate) async fn another_engine(&self) -> Engine {
        let settings = settings(&self.environment, &Faults::default());
        let opened = Engine::open(&self.database.address(), settings).await;
        opened.expect("second engine was opened")
    }

    /// Creates another tenant and returns its owner.
    pub(crate) async fn create_tenant(&self, suffix: &str) -> Caller {
        let tenant = tenant_name(&self.name, suffix);
        self.engine
            .create_tenant(&tenant)
            .await
            .expect("tenant was created");
        let owner = self
            .engine
            .operator(&tenant, "owner")
            .await
            .expect("tenant exists");
        self.tenants
            .lock()
            .expect("lock is not poisoned")
            .push(owner.clone());
        owner
    }

    /// A caller of the test's tenant with this role.
    pub(crate) fn caller_with_role(&self, role: Role) -> Caller {
        Caller {
            role,
            name: format!("some {role}"),
            ..self.me.clone()
        }
    }

    /// Runs SQL that corrupts rows, and skips the integrity check at the end of the test.
    pub(crate) fn corrupt(&self, statements: &str) -> String {
        self.corrupted.store(true, Ordering::SeqCst);
        self.sql(statements).expect("rows were corrupted")
    }

    /// Runs SQL directly on the database; see [`TestDatabase::sql`].
    pub(crate) fn sql(&self, statements: &str) -> Result<String, String> {
        self.database.sql(statements)
    }

    /// The SQL literal of an id on this backend.
    pub(crate) fn id_literal(&self, id: impl ToString) -> String {
        let id = id.to_string();
        match self.database.backend() {
            Backend::Sqlite => format!("X'{}'", id.replace('-', "")),
            Backend::Postgres => format!("'{id}'"),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.engine.now()
    }

    pub(crate) fn advance(&self, span: Duration) {
        self.environment.advance(span);
    }
}

fn store_options() -> Vec<String> {
    let options = std::env::var("ONWARD_TEST_STORE").unwrap_or_default();
    let options = options.split(',').filter(|option| !option.is_empty());
    options.map(str::to_owned).collect()
}

/// Whether the plan cache is used, for tests that count its reads.
pub(crate) fn uses_plan_cache() -> bool {
    !store_options().iter().any(|option| option == "no-cache")
}

/// The settings of a test. `ONWARD_TEST_STORE` selects other options of the store, separated by
/// commas: `no-cache`, `no-batching`, `sync-commit`.
fn settings(environment: &Arc<SimulatedEnvironment>, faults: &Faults) -> Settings {
    let mut settings = Settings {
        environment: Arc::<SimulatedEnvironment>::clone(environment),
        faults: faults.clone(),
        ..Settings::default()
    };
    for option in store_options() {
        match option.as_str() {
            "no-cache" => settings.plan_cache = false,
            "no-batching" => settings.batching = false,
            "sync-commit" => settings.sync = SyncMode::BeforeCommit,
            other => panic!("unknown option `{other}` in ONWARD_TEST_STORE"),
        }
    }
    settings
}

/// A short name, unique per test.
fn tenant_name(test: &str, suffix: &str) -> String {
    format!("t{:016x}-{suffix}", fnv1a(test))
}
