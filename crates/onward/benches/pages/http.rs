//! The measured server and a minimal client: one persistent connection, one request at a time.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use onward_engine::Address;

/// A running `onward serve` with rate limits effectively disabled.
pub(crate) struct Server {
    child: Child,
    address: String,
}

impl Server {
    pub(crate) fn start(database: &Address) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onward"));
        match database {
            Address::File(path) => command.arg("--database").arg(path),
            Address::Server(url) => command.arg("--database").arg(url),
        };
        let mut child = command
            .args(["serve", "--bind", "127.0.0.1:0"])
            .env("ONWARD_LIMITS__TOKEN_CALLS_PER_SECOND", "1000000")
            .env("ONWARD_LIMITS__TENANT_CALLS_PER_SECOND", "1000000")
            .stdout(Stdio::piped())
            .spawn()
            .expect("server started");
        let mut ready = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("stdout is piped"));
        output
            .read_line(&mut ready)
            .expect("server printed its address");
        let address = ready
            .trim()
            .rsplit_once("http://")
            .expect("line contains an address")
            .1;
        Self {
            address: address.to_owned(),
            child,
        }
    }

    pub(crate) fn connect(&self) -> Client {
        let stream = TcpStream::connect(&self.address).expect("connected");
        stream.set_nodelay(true).expect("socket option set");
        Client {
            output: BufReader::new(stream.try_clone().expect("socket cloned")),
            stream,
            address: self.address.clone(),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A persistent connection.
pub(crate) struct Client {
    stream: TcpStream,
    output: BufReader<TcpStream>,
    address: String,
}

impl Client {
    /// Requests a page. Returns the time until the last byte, and the size.
    pub(crate) fn get(&mut self, path: &str) -> (Duration, usize) {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nAccept: text/html\r\n\r\n",
            self.address
        );
        let began = Instant::now();
        let sent = self.stream.write_all(request.as_bytes());
        sent.expect("request sent");
        let mut headers = String::new();
        while !headers.ends_with("\r\n\r\n") {
            let read = self
                .output
                .read_line(&mut headers)
                .expect("header line read");
            assert!(read > 0, "connection closed: {headers}");
        }
        let headers = headers.to_lowercase();
        assert!(headers.starts_with("http/1.1 200"), "{path}: {headers}");
        let length = headers.split("content-length: ").nth(1);
        let length = length.and_then(|rest| rest.split("\r\n").next()?.parse().ok());
        let mut body = vec![0; length.unwrap_or_else(|| panic!("no `Content-Length`: {headers}"))];
        self.output.read_exact(&mut body).expect("body read");
        (began.elapsed(), body.len())
    }
}
