//! Accept loop: a bounded number of connections, of which one address has at most a quarter, each
//! with a timeout for request headers and for reading a response.
//!
//! Connections over the limit get a 429 response. On shutdown the server accepts no more
//! connections and finishes running requests.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tower::ServiceExt;

use super::address::{Address, AddressPool, Peer};
use super::write_deadline::WriteDeadline;

/// Time limit for request headers.
const HEADER_TIMEOUT: Duration = Duration::from_secs(15);
/// Delay after a failed `accept`, for example when the process has too many open files.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);
/// The raw response to connections over the limit.
const TOO_MANY_CONNECTIONS: &str = "HTTP/1.1 429 Too Many Requests\r\n\
    content-type: application/problem+json\r\n\
    retry-after: 1\r\n\
    connection: close\r\n\
    content-length: 191\r\n\r\n\
    {\"type\":\"urn:onward:problem:rate_limited\",\"title\":\"Too many requests\",\
    \"status\":429,\"detail\":\"too many open connections\",\"code\":\"rate_limited\",\
    \"hint\":\"retry in 1 s; the request had no effect\"}";

/// Serves connections until `stop` is set, then waits for running requests.
pub(crate) async fn listen(
    listener: TcpListener,
    site: Router,
    max_connections: usize,
    write_pause: Duration,
    mut stop: watch::Receiver<bool>,
) {
    let permits = Arc::new(Semaphore::new(max_connections.min(Semaphore::MAX_PERMITS)));
    let by_address = AddressPool::new(max_connections);
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => break,
            // Reap finished connections.
            Some(_) = connections.join_next() => continue,
        };
        let (stream, peer) = match accepted {
            Ok((stream, peer)) => (stream, Peer(peer.ip())),
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                continue;
            }
        };
        // A reverse proxy on this machine has the connections of all clients.
        let slot = (!peer.0.is_loopback()).then(|| by_address.acquire(Address::new(peer.0)));
        match (Arc::clone(&permits).try_acquire_owned(), slot) {
            (Ok(permit), slot @ (None | Some(Some(_)))) => {
                let (site, stop) = (site.clone(), stop.clone());
                connections.spawn(async move {
                    serve(stream, peer, site, write_pause, stop).await;
                    drop((permit, slot));
                });
            }
            (Ok(_) | Err(_), _) => {
                connections.spawn(reject(stream));
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn serve(
    stream: TcpStream,
    peer: Peer,
    site: Router,
    write_pause: Duration,
    mut stop: watch::Receiver<bool>,
) {
    // Without this, a response in two segments waits for the peer's delayed ACK.
    let _ = stream.set_nodelay(true);
    let service = TowerToHyperService::new(
        site.map_request(move |request: hyper::Request<hyper::body::Incoming>| {
            let mut request: Request = request.map(axum::body::Body::new);
            request.extensions_mut().insert(peer);
            request
        })
        .map_err(|never: Infallible| match never {}),
    );
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(
            TokioIo::new(WriteDeadline::new(stream, write_pause)),
            service,
        );
    let mut connection = std::pin::pin!(connection);
    let stopped = tokio::select! {
        ended = connection.as_mut() => Err(ended),
        _ = stop.wait_for(|stop| *stop) => Ok(()),
    };
    let ended = match stopped {
        Ok(()) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        Err(ended) => ended,
    };
    if let Err(error) = ended {
        // Usually the client disconnected.
        tracing::debug!(%error, "connection closed with an error");
    }
}

async fn reject(mut stream: TcpStream) {
    let write = tokio::time::timeout(HEADER_TIMEOUT, async {
        stream.write_all(TOO_MANY_CONNECTIONS.as_bytes()).await?;
        stream.shutdown().await
    });
    drop(write.await);
}

#[cfg(test)]
mod tests {
    use super::TOO_MANY_CONNECTIONS;

    #[test]
    fn the_raw_response_has_a_correct_content_length() {
        let (head, body) = TOO_MANY_CONNECTIONS
            .split_once("\r\n\r\n")
            .expect("response has headers and a body");
        let length = head.split("content-length: ").nth(1);
        let length = length.expect("response has a content length");
        assert_eq!(length.parse(), Ok(body.len()));
        assert!(serde_json::from_str::<serde_json::Value>(body).is_ok());
    }
}
