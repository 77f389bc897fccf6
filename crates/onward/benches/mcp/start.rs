//! Time from the start of `onward mcp` on an existing database to its first tool result.

use std::path::Path;
use std::time::Instant;

use onward_testbed::bench::Samples;
use serde_json::json;

use crate::drive;
use crate::stdio::{Client, StdioClient};

const STARTS: usize = 50;

pub(crate) fn measure(folder: &Path) {
    let file = folder.join("start.db");
    drive::create_plans(&mut StdioClient::start(&file), 100);
    let mut samples = Samples::default();
    for _ in 0..STARTS {
        let began = Instant::now();
        let mut client = StdioClient::start(&file);
        client.call("list_active_plans", json!({ "limit": 1 }));
        samples.latencies.push(began.elapsed());
    }
    println!(
        "start to first tool result: p50 {:.1} ms, max {:.1} ms, {STARTS} starts",
        samples.quantile(0.5).as_secs_f64() * 1e3,
        samples.quantile(1.0).as_secs_f64() * 1e3,
    );
}
