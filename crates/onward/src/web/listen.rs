//! The connections: taken in, answered, and at the end let go.
//!
//! Every connection has a time in which its request must have arrived, so that one that says nothing
//! is not kept; there are so many at most, and one more is told to come back. When the server stops,
//! nothing more is taken in, what is being answered is answered, and then the connection is closed.

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

/// How long the head of a request may take to arrive.
const HEAD: Duration = Duration::from_secs(15);
/// After an error in taking one in, such as too many open files, the next is not tried at once.
const PAUSE: Duration = Duration::from_millis(50);
/// What one connection too many is told. It is written as it is: nobody parsed its request.
const FULL: &str = "HTTP/1.1 503 Service Unavailable\r\n\
    content-type: application/problem+json\r\n\
    retry-after: 1\r\n\
    connection: close\r\n\
    content-length: 212\r\n\r\n\
    {\"type\":\"urn:onward:problem:unavailable\",\"title\":\"Not available at the moment\",\
    \"status\":503,\"detail\":\"too many connections are open\",\"code\":\"unavailable\",\
    \"hint\":\"wait a second, then call again; nothing was done\"}";

/// Answers until it is told to stop, and then until what runs is answered.
pub(crate) async fn listen(
    listener: TcpListener,
    site: Router,
    most: usize,
    mut stop: watch::Receiver<bool>,
) {
    let places = Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
    let mut open = JoinSet::new();
    loop {
        let taken = tokio::select! {
            taken = listener.accept() => taken,
            _ = stop.wait_for(|stop| *stop) => break,
            // What has ended is let go of at once, not at the end.
            Some(_) = open.join_next() => continue,
        };
        let stream = match taken {
            Ok((stream, _)) => stream,
            Err(why) => {
                tracing::warn!(%why, "a connection cannot be taken in");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        match Arc::clone(&places).try_acquire_owned() {
            Ok(place) => {
                let (site, stop) = (site.clone(), stop.clone());
                open.spawn(async move {
                    answer(stream, site, stop).await;
                    drop(place);
                });
            }
            Err(_) => {
                open.spawn(refuse(stream));
            }
        }
    }
    drop(listener);
    while open.join_next().await.is_some() {}
}

async fn answer(stream: TcpStream, site: Router, mut stop: watch::Receiver<bool>) {
    // Without this, an answer in two pieces waits for the other side's delayed acknowledgement.
    let _ = stream.set_nodelay(true);
    let service = TowerToHyperService::new(
        site.map_request(|request: hyper::Request<hyper::body::Incoming>| {
            let request: Request = request.map(axum::body::Body::new);
            request
        })
        .map_err(|never: Infallible| match never {}),
    );
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .serve_connection(TokioIo::new(stream), service);
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
    if let Err(why) = ended {
        // Somebody who hangs up in the middle is everyday life.
        tracing::debug!(%why, "a connection broke off");
    }
}

async fn refuse(mut stream: TcpStream) {
    let told = tokio::time::timeout(HEAD, async {
        stream.write_all(FULL.as_bytes()).await?;
        stream.shutdown().await
    });
    // Whoever does not wait for the answer does not need it.
    drop(told.await);
}

#[cfg(test)]
mod tests {
    use super::FULL;

    #[test]
    fn the_refusal_of_one_too_many_is_as_long_as_it_says() {
        let (head, body) = FULL.split_once("\r\n\r\n").expect("a head and a body");
        let said = head.split("content-length: ").nth(1).expect("a length");
        assert_eq!(said.parse(), Ok(body.len()));
        assert!(serde_json::from_str::<serde_json::Value>(body).is_ok());
    }
}
