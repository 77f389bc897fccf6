//! From the start of `onward mcp` on a database that exists to its first answer.

use std::path::Path;
use std::time::Instant;

use serde_json::json;

use crate::agent::{Agent, Ask};
use crate::drive;
use crate::report::Timed;

const STARTS: usize = 50;

pub(crate) fn measure(folder: &Path) {
    let file = folder.join("start.db");
    drive::made(&mut Agent::start(&file), 100);
    let mut timed = Timed::default();
    for _ in 0..STARTS {
        let began = Instant::now();
        let mut agent = Agent::start(&file);
        agent.call("list_active_plans", json!({ "limit": 1 }));
        timed.each.push(began.elapsed());
    }
    println!(
        "from start to the first answer of a tool: p50 {:.1} ms, at most {:.1} ms, of {STARTS}",
        timed.quantile(0.5).as_secs_f64() * 1e3,
        timed.quantile(1.0).as_secs_f64() * 1e3,
    );
}
