//! A minimal HTTP client for benchmarks: one persistent connection, one request at a time.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

/// A persistent connection.
#[derive(Debug)]
pub struct Connection {
    stream: BufReader<TcpStream>,
    /// The value of the `Host` header.
    pub host: String,
}

impl Connection {
    /// Connects to a server.
    pub fn open(url: &str) -> Self {
        let host = url.trim_start_matches("http://").to_owned();
        let stream = TcpStream::connect(&host).expect("connected");
        stream.set_nodelay(true).expect("socket option set");
        Self {
            stream: BufReader::new(stream),
            host,
        }
    }

    /// Sends a request: its line, further headers that each end with CRLF, and its body.
    pub fn send(&mut self, line: &str, headers: &str, body: &str) {
        let request = format!(
            "{line} HTTP/1.1\r\nHost: {}\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            self.host,
            body.len(),
        );
        let sent = self.stream.get_mut().write_all(request.as_bytes());
        sent.expect("request sent");
    }

    /// Reads the head of a response, in lower case.
    pub fn read_head(&mut self) -> String {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            self.read_line(&mut head);
        }
        head.to_lowercase()
    }

    /// Appends a line.
    pub fn read_line(&mut self, text: &mut String) {
        let read = self.stream.read_line(text).expect("line read");
        assert!(read > 0, "connection closed: {text}");
    }

    /// Reads a response with a `Content-Length`: its head and its body.
    pub fn read_response(&mut self) -> (String, Vec<u8>) {
        let head = self.read_head();
        let length = head.split("content-length: ").nth(1);
        let length = length.and_then(|rest| rest.split("\r\n").next()?.parse().ok());
        let mut body = vec![0; length.unwrap_or_else(|| panic!("no `Content-Length`: {head}"))];
        self.stream.read_exact(&mut body).expect("body read");
        (head, body)
    }
}
