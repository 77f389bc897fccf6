//! A PostgreSQL server that is started after `onward serve`.

use std::time::{Duration, Instant};

use onward_testbed::{Cluster, TIMEOUT};

use crate::program;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn becomes_ready_once_the_database_is_available() {
    let cluster = Cluster::start();
    let program = program("late").with_database(cluster.database());
    cluster.stop();
    let server = program.serve();
    server.get("/healthz").await.expect_success();
    server
        .get("/readyz")
        .await
        .expect_problem(503, "unavailable");
    server
        .get("/api/v1/plans")
        .await
        .expect_problem(503, "unavailable");
    cluster.restart();
    let deadline = Instant::now() + TIMEOUT;
    while !server.get("/readyz").await.status.is_success() {
        assert!(Instant::now() < deadline, "{}", server.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    server.get("/api/v1/plans").await.expect_success();
}
