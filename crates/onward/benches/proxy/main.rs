//! What the proxy adds to a request: beside a direct connection to the same API, in the same run
//! (`cargo bench -p onward --bench proxy`, or `bench/proxy`).
//!
//! The API is a thread of this program that reads a request and answers at once, so all that is measured
//! is the way. Requests are what an agent sends in the middle of a long turn: 200 kB of conversation, one
//! step more each time. Direct and proxied ones take turns, so that what else the machine does falls on
//! both alike; the processor's time of the proxy for each request stands beside it, which a busy machine
//! does not stretch as it does the clock's. `cargo test --benches` does one round of each and measures nothing.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a bench prints what it found, and cannot go on without its files"
)]

mod api;
mod talk;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use talk::Talk;

/// How often each is asked.
const ROUNDS: usize = 400;
/// How long a conversation is.
const LENGTH: usize = 200_000;

/// The proxy, on a database of its own.
struct Proxy {
    child: Child,
    address: String,
    folder: PathBuf,
}

impl Proxy {
    fn start(upstream: &str) -> Self {
        let name = format!("onward-bench-proxy-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        let mut child = Command::new(env!("CARGO_BIN_EXE_onward"))
            .args(["proxy", "--bind", "127.0.0.1:0", "--upstream", upstream])
            .current_dir(&folder)
            .env("ONWARD_DATABASE", folder.join("onward.db"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("it is piped"))
            .read_line(&mut line)
            .expect("it is ready");
        let address = line.trim_end().rsplit("http://").next();
        let address = address.expect("an address").to_owned();
        Self {
            child,
            address,
            folder,
        }
    }
}

impl Proxy {
    /// The processor's time that it has taken so far, in the system's ticks of 10 ms.
    fn ticks(&self) -> u64 {
        let path = format!("/proc/{}/stat", self.child.id());
        let stat = std::fs::read_to_string(path).unwrap_or_default();
        let fields = stat.rsplit(')').next().unwrap_or_default();
        let spent = fields.split_whitespace().skip(11).take(2);
        spent.filter_map(|field| field.parse::<u64>().ok()).sum()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // What stays behind is in the system's folder for temporary things.
        drop(self.child.kill());
        drop(self.child.wait());
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

/// A connection that is kept, as agents keep theirs.
struct Connection {
    stream: TcpStream,
    host: String,
}

/// How long it took until the first byte of an answer came, and the last.
#[derive(Clone, Copy)]
struct Took {
    first: Duration,
    last: Duration,
}

impl Connection {
    fn to(address: &str) -> Self {
        let stream = TcpStream::connect(address).expect("it answers");
        stream.set_nodelay(true).expect("a socket");
        Self {
            stream,
            host: address.to_owned(),
        }
    }

    fn ask(&mut self, path: &str, session: &str, body: &str) -> Took {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
             x-session-id: {session}\r\ncontent-length: {}\r\n\r\n",
            self.host,
            body.len()
        );
        let started = Instant::now();
        self.stream.write_all(head.as_bytes()).expect("it is sent");
        self.stream.write_all(body.as_bytes()).expect("it is sent");
        let mut buffer = vec![0; 1 << 16];
        let mut answer = Vec::new();
        let mut first = None;
        while !api::is_whole(&answer) {
            let read = self.stream.read(&mut buffer).expect("it answers");
            assert!(read > 0, "it hangs up");
            first.get_or_insert_with(|| started.elapsed());
            answer.extend_from_slice(buffer.get(..read).unwrap_or_default());
        }
        assert!(answer.starts_with(b"HTTP/1.1 200"), "it is answered");
        let last = started.elapsed();
        Took {
            first: first.unwrap_or(last),
            last,
        }
    }
}

fn main() {
    let bench = std::env::args().any(|argument| argument == "--bench");
    let rounds = if bench { ROUNDS } else { 1 };
    let upstream = api::start();
    let proxy = Proxy::start(&format!("http://{upstream}"));
    let mut direct = Connection::to(&upstream);
    let mut proxied = Connection::to(&proxy.address);
    if bench {
        println!(
            "{:<34} {:>8} {:>8} {:>8} {:>8} {:>8}",
            "a request of 200 kB, ms", "p50", "p99", "1st p50", "1st p99", "cpu"
        );
    }
    for (api, path) in talk::APIS {
        for streams in [false, true] {
            let mut talk = Talk::new(api, streams, LENGTH);
            let session = format!("{api}-{streams}");
            let mut took: [Vec<Took>; 2] = Default::default();
            let before = proxy.ticks();
            for round in 0..rounds {
                let body = talk.next();
                // Whoever comes first takes turns, too.
                for place in [round % 2, 1 - round % 2] {
                    let (connection, list) = match place {
                        0 => (&mut direct, &mut took[0]),
                        _ => (&mut proxied, &mut took[1]),
                    };
                    list.push(connection.ask(path, &session, &body));
                }
            }
            if bench {
                let ticks = proxy.ticks() - before;
                report(api, streams, &took, ticks);
            }
        }
    }
}

fn report(api: &str, streams: bool, took: &[Vec<Took>; 2], ticks: u64) {
    let kind = if streams { "streamed" } else { "whole" };
    let at = |list: &[Took], of: fn(&Took) -> Duration, share: usize| {
        let mut list: Vec<Duration> = list.iter().map(of).collect();
        list.sort();
        let took = list.get((list.len() * share / 100).min(list.len() - 1));
        took.map_or(0.0, |took| took.as_secs_f64() * 1_000.0)
    };
    let row = |list: &[Took]| {
        [
            at(list, |took| took.last, 50),
            at(list, |took| took.last, 99),
            at(list, |took| took.first, 50),
            at(list, |took| took.first, 99),
        ]
    };
    let [direct, proxied] = [row(&took[0]), row(&took[1])];
    let line = |name: &str, row: [f64; 4]| {
        let [p50, p99, first, slow] = row;
        print!("{name:<34} {p50:>8.2} {p99:>8.2} {first:>8.2} {slow:>8.2}");
    };
    line(&format!("{api}, {kind}: direct"), direct);
    println!();
    line(&format!("{api}, {kind}: proxied"), proxied);
    let rounds = u32::try_from(took[1].len()).unwrap_or(u32::MAX);
    let ticks = u32::try_from(ticks).unwrap_or(u32::MAX);
    println!(" {:>8.2}", f64::from(ticks) * 10.0 / f64::from(rounds));
    let mut added = proxied;
    for (added, direct) in added.iter_mut().zip(direct) {
        *added -= direct;
    }
    line("  added", added);
    println!();
}
