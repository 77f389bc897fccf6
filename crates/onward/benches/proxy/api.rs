//! A stub API that reads a request and returns a fixed response immediately.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

const COMPLETE: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
    content-length: 2\r\n\r\n{}";
const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
    transfer-encoding: chunked\r\n\r\n\
    f\r\ndata: {\"a\":1}\n\n\r\n0\r\n\r\n";

/// Starts the API and returns its address.
pub(crate) fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("port bound");
    let address = listener
        .local_addr()
        .expect("socket has an address")
        .to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream));
        }
    });
    address
}

/// Serves one connection until the client closes it.
fn serve(mut stream: TcpStream) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut received = Vec::new();
    let mut buffer = vec![0; 1 << 18];
    loop {
        let (end, streams) = loop {
            if let Some(found) = request(&received) {
                break found;
            }
            let read = stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
            received.extend_from_slice(buffer.get(..read)?);
        };
        received.drain(..end);
        let response = if streams { STREAM } else { COMPLETE };
        stream.write_all(response.as_bytes()).ok()?;
    }
}

/// The length of a complete request and whether it requests a stream. `None` if it is incomplete.
fn request(received: &[u8]) -> Option<(usize, bool)> {
    let head = received.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(received.get(..head)?).ok()?;
    let length = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_length = name.eq_ignore_ascii_case("content-length");
        value.trim().parse::<usize>().ok().filter(|_| is_length)
    })?;
    let body = received.get(head..head + length)?;
    // `conversation.rs` writes the flag at the end of the body.
    Some((head + length, body.ends_with(b"\"stream\":true}")))
}

/// Whether a response is complete.
pub(crate) fn is_complete(response: &[u8]) -> bool {
    let Some(head) = response.windows(4).position(|four| four == b"\r\n\r\n") else {
        return false;
    };
    let (head, body) = response.split_at(head + 4);
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    if head.contains("transfer-encoding: chunked") {
        body.ends_with(b"0\r\n\r\n")
    } else {
        body.ends_with(b"{}")
    }
}
