//! The floor: one transition per call, written to a copy of the server's database without its logic.
//! It runs in turn with the calls, so that other load on the machine affects both equally. The server
//! is suspended meanwhile, so its background work slows down only its own calls.

use std::path::Path;
use std::time::Instant;

use onward_testbed::bench::{JobSource as _, SameRows, Samples, Transition, cpu, execute, open};
use rustix::process::{Pid, Signal, kill_process};

/// A copy of a database, and the transactions of its plans.
pub(crate) struct Floor {
    server: Pid,
    file: rusqlite::Connection,
    transactions: Box<dyn Iterator<Item = Vec<Transition>>>,
    pub(crate) samples: Samples,
}

impl Floor {
    /// Copies a database with new plans.
    pub(crate) fn copy(database: &Path, server: u32) -> Self {
        let copy = database.with_extension("floor.db");
        drop(std::fs::remove_file(&copy));
        let original = rusqlite::Connection::open(database).expect("database opened");
        let to = copy.to_str().expect("path is UTF-8");
        execute(&original, "VACUUM INTO ?1", [to]);
        let file = open(&copy);
        let mode = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
        let mode = file.pragma_update_and_check(None, "journal_mode", "wal", mode);
        assert_eq!(mode.as_deref(), Ok("wal"));
        let server = i32::try_from(server).ok().and_then(Pid::from_raw);
        Self {
            server: server.expect("valid process id"),
            file,
            transactions: Box::new(SameRows::load(&copy, 1, false).jobs(0)),
            samples: Samples::default(),
        }
    }

    /// Writes this many transactions.
    pub(crate) fn run(&mut self, transactions: usize) {
        kill_process(self.server, Signal::STOP).expect("server suspended");
        let (began, cpu_before) = (Instant::now(), cpu(std::process::id()));
        for _ in 0..transactions {
            let transitions = self.transactions.next().expect("enough plans");
            let started = Instant::now();
            execute(&self.file, "BEGIN IMMEDIATE", ());
            SameRows::write(&self.file, &transitions);
            execute(&self.file, "COMMIT", ());
            self.samples.latencies.push(started.elapsed());
        }
        self.samples.elapsed += began.elapsed();
        self.samples.cpu += cpu(std::process::id()).saturating_sub(cpu_before);
        kill_process(self.server, Signal::CONT).expect("server continued");
    }
}
