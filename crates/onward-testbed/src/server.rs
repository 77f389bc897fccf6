//! A running HTTP server of the binary, and responses to requests.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use reqwest::header::HeaderMap;
use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::Value;

use crate::program::LOG;
use crate::{Program, TIMEOUT};

/// A running `onward serve` or `onward proxy`. It is killed on drop.
#[derive(Debug)]
pub struct Server {
    /// `http://address:port`.
    pub url: String,
    /// The line on standard output that reports the address.
    pub ready_line: String,
    /// A client that follows no redirects.
    pub client: Client,
    process: Process,
    program: Option<Program>,
}

#[derive(Debug)]
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Program {
    /// Starts a command that serves HTTP, and waits until it prints its address.
    pub fn start(self, arguments: &[&str]) -> Server {
        Server::start(self, arguments)
    }

    /// Starts `onward serve` on a free port.
    pub fn serve(self) -> Server {
        self.start(&["serve", "--bind", "127.0.0.1:0"])
    }

    /// Starts `onward proxy` on a free port.
    pub fn proxy(self, upstream: &str) -> Server {
        self.start(&["proxy", "--bind", "127.0.0.1:0", "--upstream", upstream])
    }
}

impl Server {
    fn start(program: Program, arguments: &[&str]) -> Self {
        let stderr = File::options()
            .create(true)
            .append(true)
            .open(program.dir.join(LOG));
        let mut child = program
            .command(arguments)
            .stdout(Stdio::piped())
            .stderr(stderr.expect("log file opened"))
            .spawn()
            .expect("binary started");
        let mut lines = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut ready_line = String::new();
        lines.read_line(&mut ready_line).expect("stdout read");
        let Some(address) = ready_line.trim_end().split("http://").nth(1) else {
            let status = child.wait();
            panic!("server did not start ({status:?}): {}", program.log());
        };
        Self {
            url: format!("http://{}", address.trim_end_matches(['"', '}'])),
            ready_line,
            client: client(),
            process: Process(child),
            program: Some(program),
        }
    }

    /// The program that runs, to run other commands on the same database.
    pub fn program(&self) -> &Program {
        self.program.as_ref().expect("server is running")
    }

    /// The standard error output so far.
    pub fn log(&self) -> String {
        self.program().log()
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.process.0.id()
    }

    /// A request to this server.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    /// Sends a `GET` request without a token.
    pub async fn get(&self, path: &str) -> Response {
        send(self.request(Method::GET, path)).await
    }

    /// Sends a `POST` request without a token.
    pub async fn post(&self, path: &str, body: Value) -> Response {
        send(self.request(Method::POST, path).json(&body)).await
    }

    /// Sends a `GET` request with a token.
    pub async fn get_as(&self, token: &str, path: &str) -> Response {
        send(self.request(Method::GET, path).bearer_auth(token)).await
    }

    /// Sends a `POST` request with a token.
    pub async fn post_as(&self, token: &str, path: &str, body: Value) -> Response {
        let request = self.request(Method::POST, path).bearer_auth(token);
        send(request.json(&body)).await
    }

    /// Sends a `POST` request with a raw JSON body.
    pub async fn send(&self, path: &str, body: impl Into<reqwest::Body>) -> Response {
        self.send_with(path, &[], body).await
    }

    /// Like [`send`](Self::send), with further headers.
    pub async fn send_with(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<reqwest::Body>,
    ) -> Response {
        let request = self.request(Method::POST, path).body(body);
        let request = request.header("content-type", "application/json");
        let add =
            |request: RequestBuilder, (name, value): &(&str, &str)| request.header(*name, *value);
        send(headers.iter().fold(request, add)).await
    }

    /// Sends a signal such as `-TERM`.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([name, &self.id().to_string()])
            .status();
        assert!(sent.expect("`kill` started").success());
    }

    /// Waits until the server exits.
    pub fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(status) = self.process.0.try_wait().expect("process is a child") {
                return status;
            }
            assert!(
                Instant::now() < deadline,
                "server still runs: {}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Stops the server with SIGTERM, so that it writes everything that is queued. Returns the
    /// program, to inspect its database or to start it again.
    pub fn stop(mut self) -> Program {
        self.signal("-TERM");
        let status = self.wait();
        assert!(status.success(), "{status:?}: {}", self.log());
        self.program.take().expect("server is running")
    }

    /// Kills the server and returns the program, to start another server.
    pub fn kill(mut self) -> Program {
        self.program.take().expect("server is running")
    }
}

/// An HTTP client that follows no redirects.
pub fn client() -> Client {
    // Fails if another test has installed it.
    drop(rustls::crypto::ring::default_provider().install_default());
    let client = Client::builder()
        .timeout(TIMEOUT)
        .no_proxy()
        .redirect(Policy::none())
        .build();
    client.expect("HTTP client created")
}

/// Sends a request and reads the response.
pub async fn send(request: RequestBuilder) -> Response {
    Response::read(request.send().await.expect("response received")).await
}

/// A complete response.
#[derive(Debug, PartialEq, Eq)]
pub struct Response {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// Reads the body. Omits the time, so that equal responses can be compared.
    pub async fn read(response: reqwest::Response) -> Self {
        let mut headers = response.headers().clone();
        headers.remove(reqwest::header::DATE);
        Self {
            status: response.status(),
            headers,
            body: response.bytes().await.expect("body received").to_vec(),
        }
    }

    /// A header; empty if it is missing.
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().expect("header is text"))
    }

    /// The body as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("body is UTF-8")
    }

    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {} {}", self.status, self.text()))
    }

    /// Asserts success. Returns the JSON body.
    #[track_caller]
    pub fn expect_success(&self) -> Value {
        assert!(self.status.is_success(), "{}: {}", self.status, self.text());
        self.json()
    }

    /// Asserts that this is a complete problem document with this status and code.
    #[track_caller]
    pub fn expect_problem(&self, status: u16, code: &str) -> Value {
        let json = self.json();
        assert_eq!(self.status.as_u16(), status, "{json}");
        assert_eq!(
            self.header("content-type"),
            "application/problem+json",
            "{json}"
        );
        assert_eq!(json["code"], code, "{json}");
        assert_eq!(json["status"], status, "{json}");
        assert_eq!(json["type"], format!("urn:onward:problem:{code}"));
        for field in ["title", "detail", "hint"] {
            assert!(json[field].as_str().is_some_and(|text| !text.is_empty()));
        }
        json
    }
}
