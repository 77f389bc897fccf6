//! How often the disk is synced. A server counts for itself; on a file `bench/syncs` lets the system
//! count, around a program that drives a given number of steps and does nothing else.

use std::path::PathBuf;

use onward_engine::{Address, Engine};

use crate::drive;

const FILE: &str = "ONWARD_BENCH_SYNCS_FILE";

pub(crate) fn is_asked() -> bool {
    std::env::var_os(FILE).is_some()
}

/// Makes plans of ten steps in the file that the environment names, and drives some of them:
/// `PLANS DRIVEN`, and `claim-next` where both calls are one.
pub(crate) fn drive() {
    let file = PathBuf::from(std::env::var_os(FILE).expect("a file"));
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize| -> usize { words[place].parse().expect("a number of plans") };
    let (plans, driven) = (number(0), number(1));
    let fused = words.iter().any(|word| word == "claim-next");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let address = Address::File(file);
        let engine = Engine::open(&address, Default::default());
        let engine = engine.await.expect("an engine");
        let made = drive::made(&engine, plans, 10).await;
        made.lock().expect("the plans").truncate(driven);
        drive::all_of(&engine, made, fused).await;
        // Not closed: that copies the log back, which is no part of a step.
        std::process::exit(0);
    });
}

/// How often the server has synced its log since it was started.
pub(crate) async fn of_server(url: &str) -> i64 {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls)
        .await
        .expect("a server");
    tokio::spawn(connection);
    let counted = client
        .query_one("SELECT wal_sync FROM pg_stat_wal", &[])
        .await;
    counted.expect("a count").get(0)
}
