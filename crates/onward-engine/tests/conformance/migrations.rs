//! Opening a database: whoever is first makes its schema, once; what is newer is refused; what is
//! there already is not touched.

use std::process::Command;
use std::sync::Arc;

use onward_core::PlanId;
use onward_core::turn::LoopControl;
use onward_engine::engine::Settings;
use onward_engine::session::{Fingerprint, Heard};
use onward_engine::{Address, Caller, Engine, Error};
use onward_store::schema;

use crate::desk::{Desk, RUNTIME};
use crate::on_both_databases;
use crate::place::{Kind, Place};
use crate::world::Simulated;

/// What tells this program, started anew, to open a database and do nothing else.
const OPENS: &str = "ONWARD_CONFORMANCE_OPENS";

fn settings(keep_schema: bool) -> Settings {
    Settings {
        world: Arc::new(Simulated::of("migrations")),
        keep_schema,
        ..Settings::default()
    }
}

async fn open(address: &Address) -> Result<Engine, Error> {
    Engine::open(address, settings(false)).await
}

/// Everything that the schema is, and what the tables hold.
fn everything(place: &Place) -> String {
    let statements = match place.kind() {
        Kind::Sqlite => {
            "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name; \
             PRAGMA user_version; SELECT * FROM tenants; SELECT * FROM plans; SELECT * FROM events"
        }
        Kind::Postgres => {
            "SELECT table_name, column_name, data_type, is_nullable FROM \
             information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2; \
             SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1; \
             SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint ORDER BY 1; \
             SELECT * FROM onward_schema; SELECT * FROM tenants; SELECT * FROM plans; \
             SELECT * FROM events"
        }
    };
    place.sql(statements).expect("it can be read")
}

/// Whether there is any table in it.
fn is_empty(place: &Place) -> bool {
    let tables = match place.kind() {
        Kind::Sqlite => "SELECT count(*) FROM sqlite_master",
        Kind::Postgres => "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'",
    };
    place.sql(tables).as_deref() == Ok("0")
}

async fn many_who_open_a_new_database_at_once_make_its_schema_once(desk: &Desk) {
    let place = Place::fresh(desk.place.kind());
    let address = place.address();
    let opening: Vec<_> = (0..8)
        .map(|_| {
            let address = address.clone();
            tokio::spawn(async move { open(&address).await })
        })
        .collect();
    for opened in opening {
        let engine = opened.await.unwrap().expect("each of them opens it");
        assert_eq!(engine.tenants().await.unwrap().len(), 1);
        engine.close().await;
    }
    let (found, known) = schema(&address).await.unwrap();
    assert_eq!(found, known);
}

async fn processes_that_open_a_new_database_at_once_make_its_schema_once(desk: &Desk) {
    let place = Place::fresh(desk.place.kind());
    let address = match place.address() {
        Address::File(path) => path.display().to_string(),
        Address::Server(url) => url,
    };
    let processes: Vec<_> = (0..4)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "migrations::opens_what_the_environment_names"])
                .env(OPENS, &address)
                .stdout(std::process::Stdio::piped())
                .spawn()
                .expect("this program can be started")
        })
        .collect();
    for process in processes {
        let ended = process.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stdout).into_owned();
        assert!(
            ended.status.success() && said.contains("1 passed"),
            "{said}"
        );
    }
    let count = place.sql("SELECT count(*) FROM tenants");
    assert_eq!(count.as_deref(), Ok("1"));
}

/// The other half of the test above. By itself it opens nothing.
#[test]
fn opens_what_the_environment_names() {
    let Ok(address) = std::env::var(OPENS) else {
        return;
    };
    RUNTIME.block_on(async {
        let address = Address::parse(&address).unwrap();
        let engine = open(&address).await.expect("it opens");
        engine.close().await;
    });
}

async fn opening_again_changes_nothing(desk: &Desk) {
    desk.plan(2).await;
    let before = everything(&desk.place);
    desk.another_engine().await.close().await;
    let kept = Engine::open(&desk.place.address(), settings(true)).await;
    kept.expect("its schema is as it should be").close().await;
    assert_eq!(everything(&desk.place), before);
}

async fn a_newer_schema_is_refused_with_both_versions_and_not_touched(desk: &Desk) {
    let place = Place::fresh(desk.place.kind());
    let address = place.address();
    open(&address).await.unwrap().close().await;
    let (_, known) = schema(&address).await.unwrap();
    place
        .sql(match place.kind() {
            Kind::Sqlite => "PRAGMA user_version = 999",
            Kind::Postgres => "INSERT INTO onward_schema VALUES (999)",
        })
        .unwrap();
    let before = everything(&place);
    for keep in [false, true] {
        let Err(why) = Engine::open(&address, settings(keep)).await else {
            panic!("it is too new")
        };
        let said = why.to_string();
        assert!(
            said.contains("999") && said.contains(&known.to_string()),
            "{said}"
        );
        assert!(matches!(
            why,
            Error::Store(onward_store::Error::Newer { .. })
        ));
    }
    assert_eq!(schema(&address).await.unwrap(), (999, known));
    assert_eq!(everything(&place), before);
}

async fn an_older_schema_is_refused_where_it_must_be_kept(desk: &Desk) {
    let place = Place::fresh(desk.place.kind());
    let address = place.address();
    let (found, known) = schema(&address).await.unwrap();
    assert_eq!(found, 0);
    let Err(why) = Engine::open(&address, settings(true)).await else {
        panic!("it is too old")
    };
    let expected = matches!(
        why,
        Error::Store(onward_store::Error::Older { found: 0, known: needs }) if needs == known
    );
    assert!(expected, "{why}");
    assert!(is_empty(&place), "nothing was made");
    open(&address).await.unwrap().close().await;
    assert_eq!(schema(&address).await.unwrap(), (known, known));
}

/// The first schema as it was made, before there was a second.
pub(crate) fn make_the_first(place: &Place) {
    let (folder, before, after) = match place.kind() {
        Kind::Sqlite => ("sqlite", "", "PRAGMA user_version = 1"),
        Kind::Postgres => (
            "postgres",
            "CREATE TABLE onward_schema (version bigint PRIMARY KEY);",
            "INSERT INTO onward_schema VALUES (1)",
        ),
    };
    let store = concat!(env!("CARGO_MANIFEST_DIR"), "/../onward-store/migrations");
    let schema = std::fs::read_to_string(format!("{store}/{folder}/0001_plans.sql")).unwrap();
    let tenant = "INSERT INTO tenants VALUES ('early', 0, 1)";
    let made = place.sql(&format!("{before}\n{schema}\n{tenant};\n{after}"));
    made.expect("the first schema can be made");
}

async fn an_older_schema_is_brought_up_to_date_with_all_that_it_holds(desk: &Desk) {
    let place = Place::fresh(desk.place.kind());
    make_the_first(&place);
    let address = place.address();
    let (_, known) = schema(&address).await.unwrap();
    assert_eq!(schema(&address).await.unwrap(), (1, known));
    let engine = open(&address).await.unwrap();
    assert_eq!(schema(&address).await.unwrap(), (known, known));
    let names: Vec<String> = engine
        .tenants()
        .await
        .unwrap()
        .iter()
        .map(|tenant| tenant.name.to_string())
        .collect();
    assert_eq!(names, ["early", "local"]);
    engine.close().await;
    let anew = Place::fresh(desk.place.kind());
    open(&anew.address()).await.unwrap().close().await;
    for place in [&place, &anew] {
        place.sql("DELETE FROM tenants").unwrap();
    }
    let (brought, made) = (everything(&place), everything(&anew));
    assert_eq!(brought, made, "it is the schema that a new database has");
}

async fn a_database_is_there_with_all_of_it_after_the_last_engine_is_gone(desk: &Desk) {
    let place = Place::fresh(desk.place.kind());
    let address = place.address();
    let me = Caller::local("me");
    let engine = open(&address).await.unwrap();
    let steps = vec![onward_core::command::StepSpec::new(
        engine.fresh_step(),
        onward_core::StepType::Custom,
        "do",
    )];
    let id: PlanId = engine.fresh_plan();
    let draft = onward_core::command::CreatePlan::new(id, "kept", "Is it?", steps);
    engine.create_plan(&me, draft, None).await.unwrap();
    engine.close().await;
    let engine = open(&address).await.unwrap();
    assert_eq!(engine.sheet(&me, id).await.unwrap().brief.name, "kept");
    assert_eq!(engine.verify(&me).await.unwrap().faults, []);
    engine.close().await;
}

async fn an_address_that_names_no_database_is_refused_in_words(desk: &Desk) {
    let folder = crate::place::Folder::make();
    let address = match desk.place.kind() {
        Kind::Sqlite => {
            let file = folder.path().join("letter.txt");
            std::fs::write(&file, "Dear Sir or Madam, ".repeat(100)).unwrap();
            Address::File(file)
        }
        Kind::Postgres => Address::Server("postgres://nobody@127.0.0.1:1/none".to_owned()),
    };
    let Err(why) = open(&address).await else {
        panic!("there is no database")
    };
    assert_eq!(why.code().as_str(), "unavailable");
    assert!(!why.hint().is_empty());
}

async fn whoever_writes_in_place_and_whoever_has_a_thread_take_turns(desk: &Desk) {
    let place = Place::fresh(desk.place.kind());
    let address = place.address();
    let in_place = Settings {
        in_place: true,
        ..settings(false)
    };
    let here = Engine::open(&address, in_place).await.unwrap();
    let there = open(&address).await.unwrap();
    let me = Caller::local("user:ann".to_owned());
    let heard = Heard {
        session: "one".to_owned(),
        agent: "claude-code".to_owned(),
        ..Heard::default()
    };
    let begin = async |engine: &Engine| {
        let (print, control) = (Fingerprint::None, LoopControl::default());
        engine.begin_turn(&me, heard.clone(), print, control).await
    };
    for number in [1, 3, 5] {
        assert_eq!(begin(&here).await.unwrap(), number);
        assert_eq!(begin(&there).await.unwrap(), number + 1);
    }
    here.clone().close().await;
    if place.kind() == Kind::Sqlite {
        let refused = begin(&here).await.unwrap_err().to_string();
        assert!(refused.contains("the writer has stopped"), "{refused}");
    }
    let view = there.show_session(&me, "one", 99, 99).await.unwrap();
    assert_eq!(view.turns.len(), 6);
    there.close().await;
}

on_both_databases![
    whoever_writes_in_place_and_whoever_has_a_thread_take_turns,
    many_who_open_a_new_database_at_once_make_its_schema_once,
    processes_that_open_a_new_database_at_once_make_its_schema_once,
    a_newer_schema_is_refused_with_both_versions_and_not_touched,
    an_older_schema_is_refused_where_it_must_be_kept,
    an_older_schema_is_brought_up_to_date_with_all_that_it_holds,
    a_database_is_there_with_all_of_it_after_the_last_engine_is_gone,
    an_address_that_names_no_database_is_refused_in_words,
];

/// Others would change what is compared.
mod alone {
    use super::opening_again_changes_nothing;
    crate::on_both_databases![alone: opening_again_changes_nothing];
}
