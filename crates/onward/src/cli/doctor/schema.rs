//! Compares the schema with the one that the migrations create: row security and privileges, tables,
//! columns, indexes, constraints, triggers and functions. Lists nothing without a difference.

use onward_engine::Engine;

use super::Check;
use super::findings::Findings;
use crate::failure::Failure;

const SCHEMA: &str = "schema";
const HINT: &str = "undo the change, or copy the data into a new database with `onward move`; the \
                    schema is in `crates/onward-store/migrations` of the source";

pub(super) async fn check(engine: &Engine) -> Vec<Check> {
    match engine.schema_deviations().await {
        Ok(deviations) => {
            let mut findings = Findings::new(SCHEMA, HINT);
            for deviation in deviations {
                findings.add(None, &deviation.to_string());
            }
            findings.into_checks()
        }
        // Such as a table that another session has locked: the other checks may explain it.
        Err(error) => {
            let failure = Failure::from(error);
            let message = format!("not compared: {}", failure.message);
            vec![Check::failed(SCHEMA, message, failure.hint)]
        }
    }
}
