//! A PostgreSQL to throw away: `cargo run -q -p onward-testbed` prints its address, and it is
//! gone when this program is: at the end of its input (Ctrl-D), at Ctrl-C, or killed.
//!
//! `script/test` uses it to have one server for all test binaries. With `ONWARD_TESTBED_AS_SHIPPED` in
//! the environment the server takes as much memory as it does by itself, for benchmarks.

use std::io::{Read as _, Write as _};

use onward_testbed::Cluster;

fn main() -> std::io::Result<()> {
    let cluster = Cluster::start();
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{}", cluster.url("postgres"))?;
    stdout.flush()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
