//! Comparison of the shards of a distributed database with the schema that the migrations create: row
//! security, policies and the privileges of the role of a transaction, on every node.

use std::collections::BTreeMap;

use tokio_postgres::{Client, Error as Driver};

use super::catalog::ACCESS;
use super::error;
use crate::error::Error;
use crate::schema_check::{Object, SchemaDeviation, SchemaDifference};

/// A command for all nodes.
const RUN: &str = "SELECT nodename || ':' || nodeport, success, coalesce(result, '') \
    FROM run_command_on_all_nodes($1) JOIN pg_dist_node USING (nodeid) ORDER BY 1";

/// Number of shards on a node, by kind, name and definition of an object.
type Counts = BTreeMap<(String, String), BTreeMap<String, u64>>;

/// The differences of all nodes.
pub(super) async fn deviations(
    client: &Client,
    expected: &[Object],
) -> Result<Vec<SchemaDeviation>, Error> {
    let failed = |why: Driver| error::of_statement(why, "comparison of shards");
    let schema = "SELECT quote_literal(current_schema())";
    let schema = client.query_one(schema, &[]).await.map_err(failed)?;
    let schema: String = schema.try_get(0).map_err(failed)?;
    let command = format!(
        "WITH tables AS (SELECT pg_class.oid, logical.relname::text AS name, pg_class.relowner, \
         pg_class.relrowsecurity, pg_class.relforcerowsecurity FROM pg_dist_shard \
         JOIN pg_class AS logical ON logical.oid = logicalrelid \
         JOIN pg_class ON pg_class.oid = to_regclass(shard_name(logicalrelid, shardid)) \
         WHERE logical.relnamespace = {schema}::regnamespace), \
         objects (kind, name, definition) AS ({ACCESS}), \
         counted AS (SELECT kind, name, definition, count(*) AS shards FROM objects GROUP BY 1, 2, 3) \
         SELECT string_agg(concat_ws(E'\\t', kind, name, shards, definition), E'\\n') FROM counted"
    );
    let rows = client.query(RUN, &[&command]).await.map_err(failed)?;
    let mut deviations = Vec::new();
    for row in rows {
        let cells = || Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?));
        let (node, success, result): (String, bool, String) = cells().map_err(failed)?;
        if !success {
            return Err(Error::unavailable(
                format_args!("node `{node}`: {result}"),
                "check that the node is running and accepts the login of Onward from the coordinator",
            ));
        }
        deviations.extend(of_node(&node, &counts(&result), expected));
    }
    Ok(deviations)
}

fn counts(result: &str) -> Counts {
    let mut counts = Counts::new();
    for line in result.lines() {
        let mut cells = line.splitn(4, '\t').map(str::to_owned);
        let mut next = || cells.next().unwrap_or_default();
        let (key, shards, definition) = ((next(), next()), next(), next());
        let of_object = counts.entry(key).or_default();
        of_object.insert(definition, shards.parse().unwrap_or_default());
    }
    counts
}

fn of_node(node: &str, counts: &Counts, expected: &[Object]) -> Vec<SchemaDeviation> {
    let deviation = |kind: &str, name: &str, difference| SchemaDeviation {
        kind: kind.to_owned(),
        name: format!("{name} on {node}"),
        difference,
    };
    let mut deviations = Vec::new();
    for Object {
        kind,
        name,
        definition,
    } in expected
    {
        let table = match kind.as_str() {
            "row security" => name,
            "policy" => name.split('.').next().unwrap_or_default(),
            "privileges" => name.rsplit(' ').next().unwrap_or_default(),
            _ => continue,
        };
        // Each shard has one of these objects.
        let all = counts.get(&("row security".to_owned(), table.to_owned()));
        let all: u64 = all.map_or(0, |shards| shards.values().sum());
        let found = counts.get(&(kind.clone(), name.clone()));
        let correct = found.and_then(|found| found.get(definition));
        if correct.copied().unwrap_or_default() == all {
            continue;
        }
        let other = found.and_then(|found| found.keys().find(|other| *other != definition));
        let difference = match other {
            Some(other) => SchemaDifference::Changed {
                found: other.clone(),
                expected: definition.clone(),
            },
            None => SchemaDifference::Missing,
        };
        deviations.push(deviation(kind, name, difference));
    }
    for (kind, name) in counts.keys().filter(|(kind, _)| kind == "policy") {
        let is_known = |object: &Object| (&object.kind, &object.name) == (kind, name);
        if !expected.iter().any(is_known) {
            deviations.push(deviation(kind, name, SchemaDifference::Unexpected));
        }
    }
    deviations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema_check::tests::object;

    #[test]
    fn reports_a_node_on_which_one_shard_differs() {
        let expected = [
            object("row security", "plans", "enabled"),
            object("policy", "plans.own", "x"),
            object("privileges", "r on plans", "SELECT"),
            object("row security", "onward_schema", "disabled"),
            object("index", "plans_pkey", "x"),
        ];
        let found = |lines: &[&str]| {
            let deviations = of_node("n:1", &counts(&lines.join("\n")), &expected);
            let names = deviations.into_iter().map(|one| one.name);
            names.collect::<Vec<_>>()
        };
        let secure = "row security\tplans\t2\tenabled";
        let policy = "policy\tplans.own\t2\tx";
        let privileges = "privileges\tr on plans\t2\tSELECT";
        assert!(found(&[secure, policy, privileges]).is_empty());
        assert!(found(&[]).is_empty(), "a node without shards");
        let insecure = [
            "row security\tplans\t1\tenabled",
            "row security\tplans\t1\tdisabled",
        ];
        let found_insecure = found(&[insecure[0], insecure[1], policy, privileges]);
        assert_eq!(found_insecure, ["plans on n:1"]);
        let one_policy = "policy\tplans.own\t1\tx";
        assert_eq!(
            found(&[secure, one_policy, privileges]),
            ["plans.own on n:1"]
        );
        let leak = "policy\tplans.leak\t1\tx";
        let found_leak = found(&[secure, policy, privileges, leak]);
        assert_eq!(found_leak, ["plans.leak on n:1"]);
    }
}
