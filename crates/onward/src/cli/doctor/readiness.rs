//! Reports a database that accepts no writes, and plans that no process sweeps. Lists nothing
//! without a problem. The write is that of `/readyz`: the time of the last check.

use std::time::Duration;

use onward_engine::{Address, Engine, Error, Obstacle, ObstacleKind};

use super::Check;

/// Time limit for a write.
const TIMEOUT: Duration = Duration::from_secs(5);

pub(super) async fn check(address: &Address, engine: &Engine) -> Result<Vec<Check>, Error> {
    let mut checks = Vec::new();
    let error = match tokio::time::timeout(TIMEOUT, engine.check_writable()).await {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some((error.to_string(), error.hint().to_owned())),
        Err(_) => Some((
            format!("no write completed within {} s", TIMEOUT.as_secs()),
            "check the locks and the free disk space of the server".to_owned(),
        )),
    };
    if let Some((message, hint)) = error {
        checks.push(Check::failed("writes", message, hint));
        for obstacle in engine.write_obstacles().await? {
            let Obstacle { kind, subject } = obstacle;
            let (message, hint) = match kind {
                ObstacleKind::TableLocked => (
                    format!("another session has locked the table `{subject}`"),
                    "find the session in `pg_locks`, and terminate it with `pg_terminate_backend`",
                ),
                ObstacleKind::StandbyMissing => (
                    format!("no synchronous standby of `{subject}` is connected"),
                    "start the standby, or change `synchronous_standby_names`",
                ),
            };
            checks.push(Check::failed("writes", message, hint));
        }
    }
    // An SQLite file is swept only while an agent or a server uses it.
    if address.is_server() && engine.sweep_has_no_leader().await? {
        let message = "plans are overdue: no process runs the sweep";
        let hint = "start `onward serve`, and check its log";
        checks.push(Check::failed("sweep", message, hint));
    }
    Ok(checks)
}
