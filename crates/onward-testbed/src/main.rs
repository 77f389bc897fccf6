//! A PostgreSQL to throw away: `cargo run -q -p onward-testbed` prints its address, and it is
//! gone when this program is: at the end of its input (Ctrl-D), at Ctrl-C, or killed.
//!
//! `script/test` uses it to have one server for all test binaries. With `ONWARD_TESTBED_AS_SHIPPED` in
//! the environment the server takes as much memory as it does by itself, for benchmarks; with
//! `ONWARD_TEST_PGVECTOR` and the flag `--pgvector` it is the one that has pgvector.

use std::io::{Read as _, Write as _};

use onward_testbed::{Cluster, PGVECTOR};

fn main() -> std::io::Result<()> {
    let wants_pgvector = std::env::args().any(|flag| flag == "--pgvector");
    let cluster = match wants_pgvector {
        true => Cluster::start_by(PGVECTOR),
        false => Some(Cluster::start()),
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
