//! What a test works at: an engine on a database, a world, a tenant. How tests are run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use onward_core::{Role, Timestamp};
use onward_engine::engine::Settings;
use onward_engine::list::PlanQuery;
use onward_engine::session::Heard;
use onward_engine::{Caller, Engine, Faults};
use tokio::runtime::{Builder, Runtime};

use crate::place::{Company, Kind, Place};
use crate::world::{Simulated, hash};

/// One for all tests: a connection lives as long as the runtime that it was made in.
pub(crate) static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let threads = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    threads.expect("threads can be started")
});

/// An engine, with the world that it is in.
struct Opened {
    engine: Engine,
    world: Arc<Simulated>,
    faults: Faults,
}

/// Engines on the shared database of the server that no test has at the moment: to open one takes
/// longer than most tests.
static IDLE: Mutex<Vec<Opened>> = Mutex::new(Vec::new());

impl Opened {
    async fn on(place: &Place, seed: &str) -> Self {
        let world = Arc::new(Simulated::of(seed));
        let faults = Faults::armed();
        let opened = Engine::open(&place.address(), settings(&world, &faults)).await;
        Self {
            engine: opened.expect("it opens"),
            world,
            faults,
        }
    }

    /// One that was used before, in a world that begins anew.
    fn again(seed: &str) -> Option<Self> {
        let opened = IDLE.lock().expect("no test panics here").pop()?;
        opened.world.begin_anew(seed);
        opened.faults.strike_after(u32::MAX);
        Some(opened)
    }
}

/// A test's own part of the world.
pub(crate) struct Desk {
    pub(crate) engine: Engine,
    /// The owner of the test's own tenant.
    pub(crate) me: Caller,
    pub(crate) world: Arc<Simulated>,
    pub(crate) place: Place,
    pub(crate) faults: Faults,
    name: String,
    tenants: Mutex<Vec<Caller>>,
    damaged: AtomicBool,
}

/// Runs a test, and then checks what it has left behind.
pub(crate) fn run(kind: Kind, company: Company, name: &'static str, test: impl AsyncFn(&Desk)) {
    RUNTIME.block_on(async {
        // The same dice on both databases: the same calls give the same ids.
        let seed = name
            .replace("::sqlite::", "::")
            .replace("::postgres::", "::");
        let place = Place::find(kind, company);
        let again = match (kind, company) {
            (Kind::Postgres, Company::Shared) => Opened::again(&seed),
            (Kind::Sqlite, _) | (Kind::Postgres, Company::Alone) => None,
        };
        let opened = match again {
            Some(opened) => opened,
            None => Opened::on(&place, &seed).await,
        };
        let desk = Desk::begin(place, opened, name).await;
        test(&desk).await;
        desk.close(company).await;
    });
}

impl Desk {
    /// A desk whose dice fall as the seed says.
    pub(crate) async fn seeded(kind: Kind, company: Company, name: &str, seed: &str) -> Self {
        let tenant = format!("{name} {seed}");
        let place = Place::find(kind, company);
        let opened = Opened::on(&place, seed).await;
        Self::begin(place, opened, &tenant).await
    }

    async fn begin(place: Place, opened: Opened, name: &str) -> Self {
        let Opened {
            engine,
            world,
            faults,
        } = opened;
        let tenant = tenant_name(name, "own");
        engine
            .create_tenant(&tenant)
            .await
            .expect("a tenant can be made");
        let me = engine.operator(&tenant, "me").await.expect("it is there");
        Self {
            engine,
            tenants: Mutex::new(vec![me.clone()]),
            me,
            world,
            place,
            faults,
            name: name.to_owned(),
            damaged: AtomicBool::new(false),
        }
    }

    pub(crate) async fn close(self, company: Company) {
        let tenants = self.tenants.lock().expect("no test panics here").clone();
        for tenant in &tenants {
            if !self.damaged.load(Ordering::SeqCst) {
                let checked = self.engine.verify(tenant).await.expect("it can be checked");
                assert_eq!(checked.faults, [], "what is stored does not fit its trail");
            }
            if company == Company::Alone {
                self.abandon_all(tenant).await;
            }
        }
        if self.place.kind() == Kind::Postgres && company == Company::Shared {
            IDLE.lock().expect("no test panics here").push(Opened {
                engine: self.engine,
                world: self.world,
                faults: self.faults,
            });
        } else {
            self.engine.close().await;
        }
        self.place.give_back(company);
    }

    async fn abandon_all(&self, tenant: &Caller) {
        let query = PlanQuery {
            limit: 10_000,
            ..PlanQuery::default()
        };
        let open = self
            .engine
            .list_plans(tenant, query)
            .await
            .expect("they can be listed");
        for plan in open.plans {
            let id = plan.sheet.head.id;
            let abandoned = self.engine.abandon_plan(tenant, id, None).await;
            abandoned.expect("an open plan can be abandoned");
        }
        let sessions = self.engine.list_sessions(tenant, 10_000).await;
        for line in sessions.expect("they can be listed") {
            let heard = Heard {
                session: line.session.id,
                agent: line.session.agent,
                ..Heard::default()
            };
            let ended = self.engine.end_session(tenant, heard).await;
            ended.expect("a session can be ended");
        }
    }

    /// Another engine on the same database, in the same world: another process, as far as it knows.
    pub(crate) async fn another_engine(&self) -> Engine {
        let settings = settings(&self.world, &Faults::default());
        let opened = Engine::open(&self.place.address(), settings).await;
        opened.expect("it opens a second time")
    }

    /// The owner of another tenant.
    pub(crate) async fn tenant(&self, suffix: &str) -> Caller {
        let tenant = tenant_name(&self.name, suffix);
        self.engine
            .create_tenant(&tenant)
            .await
            .expect("a tenant can be made");
        let owner = self
            .engine
            .operator(&tenant, "owner")
            .await
            .expect("it is there");
        self.tenants
            .lock()
            .expect("no test panics here")
            .push(owner.clone());
        owner
    }

    /// Somebody of the test's own tenant in another role.
    pub(crate) fn role(&self, role: Role) -> Caller {
        Caller {
            role,
            name: format!("some {role}"),
            ..self.me.clone()
        }
    }

    /// The rows are wrong from now on, on purpose.
    pub(crate) fn damage(&self, statements: &str) -> String {
        self.damaged.store(true, Ordering::SeqCst);
        self.sql(statements).expect("rows can be damaged")
    }

    /// Runs statements past the store. Rows by line, columns by `|`.
    pub(crate) fn sql(&self, statements: &str) -> Result<String, String> {
        self.place.sql(statements)
    }

    /// An id as this database writes it in a statement.
    pub(crate) fn literal(&self, id: impl ToString) -> String {
        let id = id.to_string();
        match self.place.kind() {
            Kind::Sqlite => format!("X'{}'", id.replace('-', "")),
            Kind::Postgres => format!("'{id}'"),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.engine.now()
    }

    pub(crate) fn advance(&self, span: Duration) {
        self.world.advance(span);
    }
}

fn settings(world: &Arc<Simulated>, faults: &Faults) -> Settings {
    Settings {
        world: Arc::<Simulated>::clone(world),
        faults: faults.clone(),
        keep_schema: false,
        in_place: false,
    }
}

/// Short, and another one for every test.
fn tenant_name(test: &str, suffix: &str) -> String {
    format!("t{:016x}-{suffix}", hash(test))
}
