//! An API that reads a request and answers at once, always the same.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

const WHOLE: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
    content-length: 2\r\n\r\n{}";
const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
    transfer-encoding: chunked\r\n\r\n\
    f\r\ndata: {\"a\":1}\n\n\r\n0\r\n\r\n";

/// Starts it, and says where it is.
pub(crate) fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream));
        }
    });
    address
}

/// Answers one request after the other, until nobody asks any more.
fn serve(mut stream: TcpStream) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut held = Vec::new();
    let mut buffer = vec![0; 1 << 18];
    loop {
        let (end, streams) = loop {
            if let Some(found) = request(&held) {
                break found;
            }
            let read = stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
            held.extend_from_slice(buffer.get(..read)?);
        };
        held.drain(..end);
        let answer = if streams { STREAM } else { WHOLE };
        stream.write_all(answer.as_bytes()).ok()?;
    }
}

/// Where a request ends that has come as a whole, and whether it asks for a stream.
fn request(held: &[u8]) -> Option<(usize, bool)> {
    let head = held.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(held.get(..head)?).ok()?;
    let length = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let named = name.eq_ignore_ascii_case("content-length");
        value.trim().parse::<usize>().ok().filter(|_| named)
    })?;
    let body = held.get(head..head + length)?;
    // The flag stands at the end of what `talk.rs` writes.
    Some((head + length, body.ends_with(b"\"stream\":true}")))
}

/// Whether an answer has come as a whole.
pub(crate) fn is_whole(answer: &[u8]) -> bool {
    let Some(head) = answer.windows(4).position(|four| four == b"\r\n\r\n") else {
        return false;
    };
    let (head, body) = answer.split_at(head + 4);
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    match head.contains("transfer-encoding: chunked") {
        true => body.ends_with(b"0\r\n\r\n"),
        false => body.ends_with(b"{}"),
    }
}
