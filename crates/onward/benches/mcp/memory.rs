//! Resident memory: idle, after work, and with a thousand subscribed clients.

use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::drive::{self, Mode};
use crate::http::{self, HttpClient};
use crate::stdio::{Client, StdioClient};

const STREAMS: usize = 1_000;

pub(crate) fn measure(folder: &Path) {
    let file = folder.join("memory.db");
    let mut stdio = StdioClient::start(&file);
    stdio.call("ping", json!({}));
    println!("onward mcp, idle: {:.1} MB", resident(stdio.id()));
    work(&mut stdio);
    println!(
        "onward mcp, after 2 s of work: {:.1} MB",
        resident(stdio.id())
    );
    drop(stdio);
    let server = http::start(&file);
    let mut client = HttpClient::connect(&server);
    client.call("ping", json!({}));
    println!("onward serve, idle: {:.1} MB", resident(server.id()));
    let mut streams = Vec::with_capacity(STREAMS);
    for _ in 0..STREAMS {
        let mut stream = HttpClient::connect(&server);
        stream.subscribe();
        streams.push(stream);
    }
    println!(
        "onward serve, {STREAMS} open streams: {:.1} MB",
        resident(server.id())
    );
    work(&mut client);
    println!(
        "onward serve, {STREAMS} open streams, after 2 s of work with notifications: {:.1} MB",
        resident(server.id())
    );
}

fn work(client: &mut impl Client) {
    let plans = drive::create_plans(client, 1_000);
    drive::run_steps(client, plans, Mode::TwoCalls, Duration::from_secs(2));
}

/// Resident memory of a process, in megabytes.
fn resident(process: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"));
    let status = status.expect("`/proc` is available");
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    kilobytes.expect("`VmRSS` is a number") / 1024.0
}
