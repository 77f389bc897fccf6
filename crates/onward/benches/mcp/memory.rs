//! How much memory stays: at rest, after work, and with a thousand clients that listen.

use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::agent::{Agent, Ask};
use crate::drive::{self, How};
use crate::http::Server;

const STREAMS: usize = 1_000;

pub(crate) fn measure(folder: &Path) {
    let file = folder.join("memory.db");
    let mut agent = Agent::start(&file);
    agent.call("ping", json!({}));
    println!("onward mcp at rest: {:.1} MB", resident(agent.id()));
    work(&mut agent);
    println!(
        "onward mcp after 2 s of work: {:.1} MB",
        resident(agent.id())
    );
    drop(agent);
    let server = Server::start(&file);
    let mut client = server.connect();
    client.call("ping", json!({}));
    println!("onward serve at rest: {:.1} MB", resident(server.id()));
    let mut listening = Vec::with_capacity(STREAMS);
    for _ in 0..STREAMS {
        let mut one = server.connect();
        one.listen();
        listening.push(one);
    }
    println!(
        "onward serve with {STREAMS} open streams: {:.1} MB",
        resident(server.id())
    );
    work(&mut client);
    println!(
        "onward serve with {STREAMS} open streams, after 2 s of work that all hear of: {:.1} MB",
        resident(server.id())
    );
}

fn work(client: &mut impl Ask) {
    let plans = drive::made(client, 1_000);
    drive::steps(client, plans, How::Plain, Duration::from_secs(2));
}

/// What a process holds in memory, in megabytes, where the system says so.
fn resident(process: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"));
    let status = status.expect("a system that tells");
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    kilobytes.expect("a number") / 1024.0
}
