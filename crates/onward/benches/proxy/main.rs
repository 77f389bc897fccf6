//! Latency added by the proxy, compared with a direct connection to the same API in the same run
//! (`cargo bench -p onward --bench proxy`, or `bench/proxy`).
//!
//! The API is a thread of this program that responds immediately. Requests resemble those of an
//! agent in the middle of a long turn: 200 kB of conversation, with one more step each time. Direct
//! and proxied requests alternate, so that other load affects both equally. The proxy's CPU time
//! per request is reported as well, because it depends less on other load. `cargo test --benches`
//! runs one round of each and measures nothing.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark prints its results and fails if its files are missing"
)]

mod api;
mod conversation;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use conversation::Conversation;
use onward_testbed::Program;

/// Number of requests of each kind.
const ROUNDS: usize = 400;
/// Length of a conversation, in bytes.
const CONVERSATION_BYTES: usize = 200_000;

/// CPU time of a process so far, in system ticks of 10 ms.
fn ticks(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let spent = fields.split_whitespace().skip(11).take(2);
    spent.filter_map(|field| field.parse::<u64>().ok()).sum()
}

/// A persistent connection, as agents use.
struct Connection {
    stream: TcpStream,
    host: String,
}

/// Time to the first and to the last byte of a response.
#[derive(Clone, Copy)]
struct Latency {
    first: Duration,
    last: Duration,
}

impl Connection {
    fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).expect("connected");
        stream.set_nodelay(true).expect("socket option set");
        Self {
            stream,
            host: address.to_owned(),
        }
    }

    fn post(&mut self, path: &str, session: &str, body: &str) -> Latency {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
             x-session-id: {session}\r\ncontent-length: {}\r\n\r\n",
            self.host,
            body.len()
        );
        let started = Instant::now();
        self.stream
            .write_all(head.as_bytes())
            .expect("request sent");
        self.stream
            .write_all(body.as_bytes())
            .expect("request sent");
        let mut buffer = vec![0; 1 << 16];
        let mut response = Vec::new();
        let mut first = None;
        while !api::is_complete(&response) {
            let read = self.stream.read(&mut buffer).expect("response received");
            assert!(read > 0, "connection closed");
            first.get_or_insert_with(|| started.elapsed());
            response.extend_from_slice(buffer.get(..read).unwrap_or_default());
        }
        assert!(response.starts_with(b"HTTP/1.1 200"), "unexpected status");
        let last = started.elapsed();
        Latency {
            first: first.unwrap_or(last),
            last,
        }
    }
}

fn main() {
    let bench = std::env::args().any(|argument| argument == "--bench");
    let rounds = if bench { ROUNDS } else { 1 };
    let upstream = api::start();
    let proxy = Program::new(env!("CARGO_BIN_EXE_onward"), "bench-proxy");
    let proxy = proxy.proxy(&format!("http://{upstream}"));
    let mut direct = Connection::open(&upstream);
    let mut proxied = Connection::open(proxy.url.trim_start_matches("http://"));
    if bench {
        println!(
            "{:<34} {:>8} {:>8} {:>8} {:>8} {:>8}",
            "200 kB request, ms", "p50", "p99", "1st p50", "1st p99", "cpu"
        );
    }
    for (api, path) in conversation::APIS {
        for streams in [false, true] {
            let mut conversation = Conversation::new(api, streams, CONVERSATION_BYTES);
            let session = format!("{api}-{streams}");
            let mut latencies: [Vec<Latency>; 2] = Default::default();
            let before = ticks(proxy.id());
            for round in 0..rounds {
                let body = conversation.next();
                // The order alternates as well.
                for index in [round % 2, 1 - round % 2] {
                    let (connection, list) = match index {
                        0 => (&mut direct, &mut latencies[0]),
                        _ => (&mut proxied, &mut latencies[1]),
                    };
                    list.push(connection.post(path, &session, &body));
                }
            }
            if bench {
                let ticks = ticks(proxy.id()) - before;
                report(api, streams, &latencies, ticks);
            }
        }
    }
}

fn report(api: &str, streams: bool, latencies: &[Vec<Latency>; 2], ticks: u64) {
    let kind = if streams { "streamed" } else { "complete" };
    let at = |list: &[Latency], of: fn(&Latency) -> Duration, percent: usize| {
        let mut list: Vec<Duration> = list.iter().map(of).collect();
        list.sort();
        let latency = list.get((list.len() * percent / 100).min(list.len() - 1));
        latency.map_or(0.0, |latency| latency.as_secs_f64() * 1_000.0)
    };
    let row = |list: &[Latency]| {
        [
            at(list, |latency| latency.last, 50),
            at(list, |latency| latency.last, 99),
            at(list, |latency| latency.first, 50),
            at(list, |latency| latency.first, 99),
        ]
    };
    let [direct, proxied] = [row(&latencies[0]), row(&latencies[1])];
    let line = |name: &str, row: [f64; 4]| {
        let [p50, p99, first, first_p99] = row;
        print!("{name:<34} {p50:>8.2} {p99:>8.2} {first:>8.2} {first_p99:>8.2}");
    };
    line(&format!("{api}, {kind}: direct"), direct);
    println!();
    line(&format!("{api}, {kind}: proxied"), proxied);
    let rounds = u32::try_from(latencies[1].len()).unwrap_or(u32::MAX);
    let ticks = u32::try_from(ticks).unwrap_or(u32::MAX);
    println!(" {:>8.2}", f64::from(ticks) * 10.0 / f64::from(rounds));
    let mut added = proxied;
    for (added, direct) in added.iter_mut().zip(direct) {
        *added -= direct;
    }
    line("  added", added);
    println!();
}
