//! Starts the proxy in a temporary directory, sends requests to it, and runs other commands.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use reqwest::{Client, Method, Response, StatusCode};
use serde_json::Value;

use crate::upstream::Upstream;

/// The deadline of every wait in a test.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// A directory with a configuration and a database, in which the binary runs.
pub(crate) struct TestDir {
    pub(crate) path: PathBuf,
    pub(crate) database: String,
    config: String,
}

impl TestDir {
    /// Creates an empty directory with an SQLite database.
    pub(crate) fn new(test: &str) -> Self {
        // For the HTTP client. An error means that another test has installed it.
        drop(rustls::crypto::ring::default_provider().install_default());
        let name = format!("proxy-{test}-{}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        drop(std::fs::remove_dir_all(&path));
        std::fs::create_dir_all(&path).expect("directory created");
        Self {
            path,
            database: "onward.db".to_owned(),
            config: String::new(),
        }
    }

    /// Uses another database.
    pub(crate) fn with_database(mut self, database: String) -> Self {
        self.database = database;
        self
    }

    /// Adds lines to the configuration.
    pub(crate) fn with_config(mut self, lines: &str) -> Self {
        self.config.push_str(lines);
        self.config.push('\n');
        self
    }

    fn command(&self, arguments: &[&str]) -> Command {
        std::fs::write(self.path.join("onward.toml"), &self.config).expect("configuration written");
        let mut command = Command::new(env!("CARGO_BIN_EXE_onward"));
        command
            .args(arguments)
            .current_dir(&self.path)
            .env_clear()
            .env("HOME", &self.path)
            .env("USER", "ann")
            .env("ONWARD_LOG", "debug")
            .env("ONWARD_DATABASE", &self.database)
            .stdin(Stdio::null());
        command
    }

    /// Runs a command on the same database.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("binary started")
    }

    /// Runs a command, which must succeed, and parses its JSON output.
    pub(crate) fn run_json(&self, arguments: &[&str]) -> Value {
        let output = self.run(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {stderr}");
        serde_json::from_slice(&output.stdout).expect("JSON output")
    }

    /// Starts the proxy for an upstream API.
    pub(crate) fn start_proxy(self, upstream: &Upstream) -> TestServer {
        self.start_proxy_to(&upstream.url)
    }

    pub(crate) fn start_proxy_to(self, upstream: &str) -> TestServer {
        let stderr = File::options()
            .create(true)
            .append(true)
            .open(self.path.join("stderr"))
            .expect("log file opened");
        let mut child = self
            .command(&["proxy", "--bind", "127.0.0.1:0", "--upstream", upstream])
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .expect("binary started");
        let mut lines = BufReader::new(child.stdout.take().expect("standard output is piped"));
        let mut line = String::new();
        lines.read_line(&mut line).expect("standard output read");
        let Some(url) = line.trim_end().split("http://").nth(1) else {
            let status = child.wait();
            panic!("the proxy did not start ({status:?}): {}", self.log());
        };
        TestServer {
            url: format!("http://{url}"),
            line: line.clone(),
            child,
            client: client(),
            dir: Some(self),
        }
    }

    /// The standard error of the proxy so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.path.join("stderr")).unwrap_or_default()
    }

    /// The turns of a session, from `onward session show`.
    pub(crate) fn turns(&self, session: &str) -> Vec<Value> {
        let view = self.run_json(&["--json", "session", "show", session]);
        view["turns"].as_array().expect("turns is a list").clone()
    }

    /// The calls of a session, from `onward session show`.
    pub(crate) fn calls(&self, session: &str) -> Vec<Value> {
        let view = self.run_json(&["--json", "session", "show", session]);
        view["calls"].as_array().expect("calls is a list").clone()
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        // Anything left over is in the target directory.
        drop(std::fs::remove_dir_all(&self.path));
    }
}

/// A running proxy.
pub(crate) struct TestServer {
    pub(crate) url: String,
    /// The line printed when the proxy was ready.
    pub(crate) line: String,
    child: Child,
    pub(crate) client: Client,
    dir: Option<TestDir>,
}

/// A complete response.
#[derive(Debug)]
pub(crate) struct ClientResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl ClientResponse {
    pub(crate) async fn read(response: Response) -> Self {
        Self {
            status: response.status(),
            headers: response.headers().clone(),
            body: response.bytes().await.expect("body received").to_vec(),
        }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl TestServer {
    pub(crate) fn dir(&self) -> &TestDir {
        self.dir.as_ref().expect("proxy is running")
    }

    /// Sends a body without further headers.
    pub(crate) async fn send(&self, path: &str, body: impl Into<reqwest::Body>) -> ClientResponse {
        self.send_with(path, &[], body).await
    }

    pub(crate) async fn send_with(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<reqwest::Body>,
    ) -> ClientResponse {
        let mut request = self
            .client
            .request(Method::POST, format!("{}{path}", self.url))
            .header("content-type", "application/json")
            .body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        ClientResponse::read(request.send().await.expect("response received")).await
    }

    /// Stops the proxy with SIGTERM, so that it writes all queued events.
    pub(crate) fn stop(mut self) -> TestDir {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(sent.expect("kill started").success());
        let ended = self.child.wait().expect("proxy exited");
        assert!(ended.success(), "{ended:?}");
        self.dir.take().expect("proxy is running")
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

pub(crate) fn client() -> Client {
    let client = Client::builder()
        .timeout(TIMEOUT)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .build();
    client.expect("HTTP client created")
}
