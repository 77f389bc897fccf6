//! Reports whether semantic search on PostgreSQL uses a pgvector index or scans all chunks. Neither
//! fails the check; a hint names what an administrator can do.

use onward_engine::{Engine, Error, MANY, VectorExtension};

use super::Check;
use crate::output::format;

const MEANING: &str = "meaning";

/// The check; `None` for SQLite, which always scans.
pub(super) async fn check(engine: &Engine) -> Result<Option<Check>, Error> {
    Ok(engine
        .vector_extension()
        .await?
        .map(|found| describe(&found)))
}

fn describe(found: &VectorExtension) -> Check {
    let scan = "semantic search scans all chunks";
    let (message, hint) = match found {
        VectorExtension::Used { version, indexes } => {
            let indexes = format::count(*indexes, "index", "indexes");
            let message =
                format!("pgvector {version}: {indexes}, for tenants with {MANY} chunks or more");
            (message, None)
        }
        VectorExtension::Available { version } => {
            let message = format!("{scan}: pgvector {version} is not enabled in this database");
            let hint =
                "for tenants with many chunks, run `CREATE EXTENSION vector` as an administrator";
            (message, Some(hint))
        }
        VectorExtension::TooOld { version, newer } => {
            let message = format!("{scan}: pgvector {version} is too old, 0.8 is required");
            let hint = match newer {
                Some(_) => "run `ALTER EXTENSION vector UPDATE` as an administrator",
                None => {
                    "install a newer pgvector on the server, then run `ALTER EXTENSION vector UPDATE` as \
                     an administrator"
                }
            };
            (message, Some(hint))
        }
        VectorExtension::Missing => {
            let message = format!("{scan}: pgvector 0.8 or newer is not installed on the server");
            (message, None)
        }
    };
    Check {
        hint: hint.map(str::to_owned),
        ..Check::passed(MEANING, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_version_and_the_statement_to_run_and_never_fails() {
        let version = || "0.8.5".to_owned();
        let old = |newer| VectorExtension::TooOld {
            version: version(),
            newer,
        };
        let create = Some("`CREATE EXTENSION vector`");
        let update = Some("`ALTER EXTENSION vector UPDATE`");
        for (found, statement) in [
            (
                VectorExtension::Used {
                    version: version(),
                    indexes: 1,
                },
                None,
            ),
            (VectorExtension::Available { version: version() }, create),
            (old(Some("0.8.6".to_owned())), update),
            (old(None), update),
            (VectorExtension::Missing, None),
        ] {
            let check = describe(&found);
            assert!(check.ok, "{found:?}");
            if found != VectorExtension::Missing {
                assert!(check.message.contains(&version()), "{}", check.message);
            }
            match (statement, check.hint) {
                (Some(statement), Some(hint)) => assert!(hint.contains(statement), "{hint}"),
                (None, None) => {}
                (statement, hint) => panic!("expected {statement:?}, got {hint:?}"),
            }
        }
    }
}
