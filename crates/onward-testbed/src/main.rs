//! Starts a temporary PostgreSQL server: `cargo run -q -p onward-testbed` prints its URL. The
//! server is removed when this program ends: at the end of its input (Ctrl-D), on Ctrl-C, or when
//! killed.
//!
//! `script/test` uses it to share one server among all test binaries. With
//! `ONWARD_TESTBED_AS_SHIPPED` the server has PostgreSQL's default memory settings, for benchmarks.
//! With the flag `--pgvector` it uses the PostgreSQL in `ONWARD_TEST_PGVECTOR`.

use std::io::{Read as _, Write as _};

use onward_testbed::{Cluster, PGVECTOR};

fn main() -> std::io::Result<()> {
    let wants_pgvector = std::env::args().any(|flag| flag == "--pgvector");
    let cluster = if wants_pgvector {
        Cluster::start_from_env(PGVECTOR)
    } else {
        Some(Cluster::start())
    };
    let Some(cluster) = cluster else {
        return Err(std::io::ErrorKind::NotFound.into());
    };
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{}", cluster.url("postgres"))?;
    stdout.flush()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
