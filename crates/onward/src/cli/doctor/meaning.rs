//! Which way a search by meaning goes on a PostgreSQL: by an index, where the server has pgvector, or by
//! looking at every chunk. Neither is a fault; what an administrator could do is a hint.

use onward_engine::{Engine, Error, MANY, Pgvector};

use super::Check;
use crate::output::words;

const MEANING: &str = "meaning";

/// Nothing for a file, in which there is one way.
pub(super) async fn look(engine: &Engine) -> Result<Option<Check>, Error> {
    Ok(engine.pgvector().await?.map(|found| judge(&found)))
}

fn judge(found: &Pgvector) -> Check {
    let all = "searches look at every chunk";
    let (message, hint) = match found {
        Pgvector::Used { version, indexes } => {
            let there = words::count(*indexes, "index is", "indexes are");
            let who = format!("tenants with {MANY} chunks or more");
            let message =
                format!("pgvector {version}: {who} are searched by an index; {there} there");
            (message, None)
        }
        Pgvector::Available { version } => {
            let message = format!("{all}: pgvector {version} is not created in this database");
            let hint = "where tenants have many chunks, let an administrator run `CREATE EXTENSION vector`";
            (message, Some(hint))
        }
        Pgvector::TooOld { version, newer } => {
            let message = format!("{all}: pgvector {version} is too old, 0.8 is needed");
            let hint = match newer {
                Some(_) => "let an administrator run `ALTER EXTENSION vector UPDATE`",
                None => {
                    "let an administrator install a newer one on the server, and run `ALTER EXTENSION \
                     vector UPDATE`"
                }
            };
            (message, Some(hint))
        }
        Pgvector::Missing => {
            let message = format!("{all}: the server has no pgvector of version 0.8 or newer");
            (message, None)
        }
    };
    Check {
        hint: hint.map(str::to_owned),
        ..Check::good(MEANING, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_is_named_and_none_is_a_fault() {
        let version = || "0.8.5".to_owned();
        let old = |newer| Pgvector::TooOld {
            version: "0.6.2".to_owned(),
            newer,
        };
        for (found, said, hinted) in [
            (
                Pgvector::Used {
                    version: version(),
                    indexes: 1,
                },
                "1 index is there",
                None,
            ),
            (
                Pgvector::Available { version: version() },
                "0.8.5 is not created",
                Some("`CREATE EXTENSION vector`"),
            ),
            (
                old(Some(version())),
                "0.6.2 is too old",
                Some("run `ALTER EXTENSION"),
            ),
            (old(None), "0.6.2 is too old", Some("install a newer one")),
            (Pgvector::Missing, "the server has no pgvector", None),
        ] {
            let check = judge(&found);
            assert!(check.ok, "{found:?}");
            assert!(check.message.contains(said), "{}", check.message);
            let hint = check.hint.as_deref();
            let fits = hinted.map_or(hint.is_none(), |part| {
                hint.is_some_and(|hint| hint.contains(part))
            });
            assert!(fits, "{found:?}: {hint:?}");
        }
    }
}
