//! Schema migrations: the first process to open a database creates its schema, a newer schema is
//! rejected, and existing data is unchanged.

use std::process::Command;
use std::sync::Arc;

use onward_core::PlanId;
use onward_core::turn::LoopControl;
use onward_engine::engine::Settings;
use onward_engine::session::{Fingerprint, HookSource};
use onward_engine::{Address, Caller, Engine, Error};
use onward_store::schema;
use onward_testbed::{Backend, TestDir};

use crate::database::{RUNTIME, TestDatabase};
use crate::environment::SimulatedEnvironment;
use crate::harness::Harness;
use crate::on_both_databases;

/// Environment variable with the address of the database that a child process opens.
const OPEN_ADDRESS: &str = "ONWARD_CONFORMANCE_DATABASE";

fn settings(keep_schema: bool) -> Settings {
    Settings {
        environment: Arc::new(SimulatedEnvironment::new("migrations")),
        keep_schema,
        ..Settings::default()
    }
}

async fn open(address: &Address) -> Result<Engine, Error> {
    Engine::open(address, settings(false)).await
}

/// The whole schema and the rows of the main tables.
fn dump(database: &TestDatabase) -> String {
    let statements = match database.backend() {
        Backend::Sqlite => {
            "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name; \
             PRAGMA user_version; SELECT * FROM tenants; SELECT * FROM plans; SELECT * FROM events"
        }
        Backend::Postgres => {
            "SELECT table_name, column_name, data_type, is_nullable FROM \
             information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2; \
             SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1; \
             SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint ORDER BY 1; \
             SELECT * FROM onward_schema; SELECT * FROM tenants ORDER BY 1; \
             SELECT * FROM plans ORDER BY 1, 2; SELECT * FROM events ORDER BY 1, 2, 3"
        }
    };
    database.sql(statements).expect("schema was read")
}

/// Whether the database has no tables.
fn is_empty(database: &TestDatabase) -> bool {
    let tables = match database.backend() {
        Backend::Sqlite => "SELECT count(*) FROM sqlite_master",
        Backend::Postgres => "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'",
    };
    database.sql(tables).as_deref() == Ok("0")
}

async fn concurrent_tasks_create_the_schema_once(harness: &Harness) {
    let database = TestDatabase::create(harness.database.backend());
    let address = database.address();
    let opening: Vec<_> = (0..8)
        .map(|_| {
            let address = address.clone();
            tokio::spawn(async move { open(&address).await })
        })
        .collect();
    for opened in opening {
        let engine = opened.await.unwrap().expect("database was opened");
        assert_eq!(engine.tenants().await.unwrap().len(), 1);
        engine.close().await;
    }
    let (found, latest) = schema(&address).await.unwrap();
    assert_eq!(found, latest);
}

async fn concurrent_processes_create_the_schema_once(harness: &Harness) {
    let database = TestDatabase::create(harness.database.backend());
    let address = match database.address() {
        Address::File(path) => path.display().to_string(),
        Address::Server(url) => url,
    };
    let processes: Vec<_> = (0..4)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args([
                    "--exact",
                    "migrations::opens_the_database_of_the_parent_process",
                ])
                .env(OPEN_ADDRESS, &address)
                .stdout(std::process::Stdio::piped())
                .spawn()
                .expect("child process was started")
        })
        .collect();
    for process in processes {
        let exited = process.wait_with_output().unwrap();
        let stdout = String::from_utf8_lossy(&exited.stdout).into_owned();
        assert!(
            exited.status.success() && stdout.contains("1 passed"),
            "{stdout}"
        );
    }
    let count = database.sql("SELECT count(*) FROM tenants");
    assert_eq!(count.as_deref(), Ok("1"));
}

/// The child process of the test above. Does nothing unless the environment variable is set.
#[test]
fn opens_the_database_of_the_parent_process() {
    let Ok(address) = std::env::var(OPEN_ADDRESS) else {
        return;
    };
    RUNTIME.block_on(async {
        let address = Address::parse(&address).unwrap();
        let engine = open(&address).await.expect("database was opened");
        engine.close().await;
    });
}

async fn reopening_a_database_changes_nothing(harness: &Harness) {
    harness.plan(2).await;
    let before = dump(&harness.database);
    harness.another_engine().await.close().await;
    let opened = Engine::open(&harness.database.address(), settings(true)).await;
    opened.expect("schema is current").close().await;
    assert_eq!(dump(&harness.database), before);
}

async fn rejects_a_newer_schema_without_changes(harness: &Harness) {
    let database = TestDatabase::create(harness.database.backend());
    let address = database.address();
    open(&address).await.unwrap().close().await;
    let (_, latest) = schema(&address).await.unwrap();
    database
        .sql(match database.backend() {
            Backend::Sqlite => "PRAGMA user_version = 999",
            Backend::Postgres => "INSERT INTO onward_schema VALUES (999)",
        })
        .unwrap();
    let before = dump(&database);
    for keep_schema in [false, true] {
        let Err(err) = Engine::open(&address, settings(keep_schema)).await else {
            panic!("newer schema was accepted")
        };
        let expected = matches!(
            err,
            Error::Store(onward_store::Error::Newer { found: 999, known }) if known == latest
        );
        assert!(expected, "{err}");
    }
    assert_eq!(schema(&address).await.unwrap(), (999, latest));
    assert_eq!(dump(&database), before);
}

async fn rejects_an_older_schema_when_migrations_are_disabled(harness: &Harness) {
    let database = TestDatabase::create(harness.database.backend());
    let address = database.address();
    let (found, latest) = schema(&address).await.unwrap();
    assert_eq!(found, 0);
    let Err(err) = Engine::open(&address, settings(true)).await else {
        panic!("older schema was accepted")
    };
    let expected = matches!(
        err,
        Error::Store(onward_store::Error::Older { found: 0, known }) if known == latest
    );
    assert!(expected, "{err}");
    assert!(is_empty(&database), "tables were created");
    open(&address).await.unwrap().close().await;
    assert_eq!(schema(&address).await.unwrap(), (latest, latest));
}

async fn data_persists_after_the_last_engine_is_closed(harness: &Harness) {
    let database = TestDatabase::create(harness.database.backend());
    let address = database.address();
    let me = Caller::local("me");
    let engine = open(&address).await.unwrap();
    let steps = vec![onward_core::command::StepSpec::new(
        engine.new_step_id(),
        onward_core::StepType::Custom,
        "do",
    )];
    let id: PlanId = engine.new_plan_id();
    let draft = onward_core::command::CreatePlan::new(id, "kept", "Persisted?", steps);
    engine.create_plan(&me, draft, None).await.unwrap();
    engine.close().await;
    let engine = open(&address).await.unwrap();
    assert_eq!(engine.sheet(&me, id).await.unwrap().brief.name, "kept");
    assert_eq!(engine.verify(&me).await.unwrap().inconsistencies, []);
    engine.close().await;
}

async fn rejects_an_address_that_is_not_a_database(harness: &Harness) {
    let dir = TestDir::new("conformance");
    let address = match harness.database.backend() {
        Backend::Sqlite => {
            let file = dir.path().join("letter.txt");
            std::fs::write(&file, "Dear Sir or Madam, ".repeat(100)).unwrap();
            Address::File(file)
        }
        Backend::Postgres => Address::Server("postgres://user@127.0.0.1:1/none".to_owned()),
    };
    let Err(err) = open(&address).await else {
        panic!("address was accepted")
    };
    assert_eq!(err.code().as_str(), "unavailable");
    assert!(!err.hint().is_empty());
}

async fn in_place_writers_and_writer_threads_alternate(harness: &Harness) {
    let database = TestDatabase::create(harness.database.backend());
    let address = database.address();
    let in_place = Settings {
        in_place: true,
        ..settings(false)
    };
    let in_place = Engine::open(&address, in_place).await.unwrap();
    let threaded = open(&address).await.unwrap();
    let me = Caller::local("user:ann".to_owned());
    let source = HookSource {
        session: "one".to_owned(),
        agent: "claude-code".to_owned(),
        ..HookSource::default()
    };
    let begin = async |engine: &Engine| {
        let (fingerprint, control) = (Fingerprint::Unavailable, LoopControl::default());
        engine
            .begin_turn(&me, source.clone(), fingerprint, control)
            .await
    };
    for number in [1, 3, 5] {
        assert_eq!(begin(&in_place).await.unwrap().number, number);
        assert_eq!(begin(&threaded).await.unwrap().number, number + 1);
    }
    in_place.clone().close().await;
    if database.backend() == Backend::Sqlite {
        let err = begin(&in_place).await.unwrap_err();
        assert_eq!(err.code().as_str(), "unavailable", "{err}");
    }
    let view = threaded.show_session(&me, "one", 99, 99).await.unwrap();
    assert_eq!(view.turns.len(), 6);
    threaded.close().await;
}

on_both_databases![
    in_place_writers_and_writer_threads_alternate,
    concurrent_tasks_create_the_schema_once,
    concurrent_processes_create_the_schema_once,
    rejects_a_newer_schema_without_changes,
    rejects_an_older_schema_when_migrations_are_disabled,
    data_persists_after_the_last_engine_is_closed,
    rejects_an_address_that_is_not_a_database,
];

/// Other tests would change the compared rows.
mod exclusive {
    use super::reopening_a_database_changes_nothing;
    crate::on_both_databases![exclusive: reopening_a_database_changes_nothing];
}
