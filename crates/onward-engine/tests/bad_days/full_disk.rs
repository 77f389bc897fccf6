//! There is no more room. A worker is held to a largest size of its files, which the system enforces for
//! everybody: a write beyond it fails, as it does on a full disk. Then the limit is lifted, and the
//! same worker must go on.

use std::process::Command;
use std::time::Duration;

use onward_engine::Caller;

use crate::dice::{Dice, seed};
use crate::history::{Line, Told, What};
use crate::place::{Kind, Place};
use crate::process::{Orders, Process};
use crate::{are_unavailable, in_time, plans, promises};

/// The largest size of a file, in KiB: room for the schema and some work.
const ROOM: &str = "1500";
const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn a_full_disk_loses_nothing_and_work_goes_on_when_there_is_room() {
    let place = Place::new(Kind::Sqlite);
    let mut worker = Process::start_through(
        limited(),
        &Orders {
            name: "w".to_owned(),
            database: place.written(),
            seed: seed(),
            agents: 4,
            task: String::new(),
        },
    );
    if !worker.wait_until(LIMIT, |lines| troubles(lines) > 20) {
        panic!("the disk is not full:\n{}", worker.kill().complaints);
    }
    are_unavailable(worker.so_far());
    if has_room(worker.id()) {
        let before = worker.so_far().len();
        let goes_on = worker.wait_until(LIMIT, |lines| works(&lines[before..]) > 50);
        assert!(
            goes_on,
            "there is room, and nobody works:\n{}",
            worker.kill().complaints
        );
    } else {
        println!("skipped: `prlimit` cannot give the worker its room back");
    }
    let lines = worker.kill().lines;
    println!(
        "{} calls acknowledged, {} times no room",
        works(&lines),
        troubles(&lines)
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        let (engine, caller) = (place.open().await, Caller::local("checker"));
        promises::check(&engine, &caller, &lines).await;
        let command = plans::branching(&engine, &mut Dice::new(1), "afterwards", 5);
        let made = in_time(engine.create_plan(&caller, command, None)).await;
        let plan = made.unwrap().created.plan;
        let next = in_time(engine.next_step(&caller, plan, None, false)).await;
        next.expect("there is room");
    });
}

/// This program, whose files may not grow for ever. The signal that would end it is ignored, so that
/// the write fails instead.
fn limited() -> Command {
    let program = std::env::current_exe().expect("this program has a path");
    let mut command = Command::new("bash");
    let script = format!("trap '' XFSZ; ulimit -S -f {ROOM}; exec \"$0\" \"$@\"");
    command.arg("-c").arg(script).arg(program);
    command
}

/// Whether the limit could be lifted for a process that runs.
fn has_room(process: u32) -> bool {
    let lifted = Command::new("prlimit")
        .args(["--pid", &process.to_string(), "--fsize=unlimited"])
        .status();
    lifted.is_ok_and(|status| status.success())
}

fn troubles(lines: &[Line]) -> usize {
    let trouble = |line: &&Line| matches!(line.what, What::Told(Told::Trouble { .. }));
    lines.iter().filter(trouble).count()
}

/// Calls that changed something.
fn works(lines: &[Line]) -> usize {
    let done = |line: &&Line| {
        !matches!(
            line.what,
            What::Ready | What::Asks(_) | What::Told(Told::Trouble { .. } | Told::Nothing { .. })
        )
    };
    lines.iter().filter(done).count()
}
