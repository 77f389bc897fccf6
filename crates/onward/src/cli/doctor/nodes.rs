//! Reports whether the database is distributed over several nodes, and the number of tenants on each.

use onward_engine::{Address, Distribution, Engine, Error, NodeDown};

use super::Check;
use crate::output::format;

const NODES: &str = "nodes";

/// The check; `None` if the database is not on a server.
pub(super) async fn check(address: &Address, engine: &Engine) -> Result<Option<Check>, Error> {
    if !address.is_server() {
        return Ok(None);
    }
    Ok(Some(match engine.distribution().await? {
        None => Check::passed(NODES, "not distributed"),
        Some(found) => describe(&found),
    }))
}

/// A failed check for each node that does not respond, if others do.
pub(super) async fn check_outage(engine: &Engine) -> Result<Vec<Check>, Error> {
    let report = engine.partial_outage().await?;
    let down = report.map_or_else(Vec::new, |report| report.down);
    let down = down.into_iter().map(|NodeDown { id, name, why }| {
        Check::failed(
            NODES,
            format!("node {id} (`{name}`) does not respond: {why}"),
            "start the node, and run `onward doctor` again for the other checks; the tenants on the other \
             nodes can work",
        )
    });
    Ok(down.collect())
}

fn describe(found: &Distribution) -> Check {
    let Distribution { nodes, missing } = found;
    let nodes: Vec<String> = nodes
        .iter()
        .map(|(node, tenants)| format!("{node}: {}", format::count(*tenants, "tenant", "tenants")))
        .collect();
    let message = format!("distributed by tenant; {}", nodes.join(", "));
    if missing.is_empty() {
        return Check::passed(NODES, message);
    }
    let message = format!("{message}; not distributed: {}", missing.join(", "));
    Check::failed(
        NODES,
        message,
        "stop all servers, and run `onward migrate --distribute`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_the_tenants_of_each_node_and_fails_if_a_table_is_missing() {
        let mut found = Distribution {
            nodes: vec![("a:1".to_owned(), 1), ("b:2".to_owned(), 7)],
            missing: vec![],
        };
        let check = describe(&found);
        assert_eq!(
            check.message,
            "distributed by tenant; a:1: 1 tenant, b:2: 7 tenants"
        );
        assert!(check.ok);
        found.missing.push("due".to_owned());
        let check = describe(&found);
        assert!(!check.ok && check.message.ends_with("not distributed: due"));
    }
}
