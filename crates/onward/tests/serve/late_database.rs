//! A PostgreSQL server that is started after `onward serve`.

use std::time::{Duration, Instant};

use onward_testbed::{Cluster, TIMEOUT};

use crate::program;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn becomes_ready_once_the_database_is_available() {
    let cluster = Cluster::start();
    let database = cluster.database();
    let program = program("late").with_database(database.clone());
    cluster.stop();
    let server = program.serve();
    server.get("/healthz").await.expect_success();
    server
        .get("/readyz")
        .await
        .expect_problem(503, "unavailable");
    let unavailable = server.get("/api/v1/plans").await;
    unavailable.expect_problem(503, "unavailable");
    assert_eq!(unavailable.header("retry-after"), "1");
    // The log contains the address of the database, and the response does not.
    let place = database
        .rsplit_once('@')
        .map_or(&*database, |(_, place)| place);
    assert!(server.log().contains(place), "{}", server.log());
    for secret in place.split('/').chain(["postgres"]) {
        assert!(!unavailable.text().contains(secret), "{secret}");
    }
    cluster.restart();
    let deadline = Instant::now() + TIMEOUT;
    while !server.get("/readyz").await.status.is_success() {
        assert!(Instant::now() < deadline, "{}", server.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    server.get("/api/v1/plans").await.expect_success();
}
