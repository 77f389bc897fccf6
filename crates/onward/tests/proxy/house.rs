//! A proxy in a folder of its own, and the ways to ask it.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use reqwest::{Client, Method, Response, StatusCode};
use serde_json::Value;

use crate::upstream::Upstream;

/// Longer than anything takes; a test that waits this long has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Where a proxy will stand.
pub(crate) struct House {
    pub(crate) folder: PathBuf,
    pub(crate) database: String,
    config: String,
}

impl House {
    /// An empty folder, with a file as its database.
    pub(crate) fn new(test: &str) -> Self {
        // For the client that asks; that another test was first is as good.
        drop(rustls::crypto::ring::default_provider().install_default());
        let name = format!("proxy-{test}-{}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        drop(std::fs::remove_dir_all(&folder));
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        Self {
            folder,
            database: "onward.db".to_owned(),
            config: String::new(),
        }
    }

    /// The same, on another database.
    pub(crate) fn on(mut self, database: String) -> Self {
        self.database = database;
        self
    }

    /// With these lines in its configuration.
    pub(crate) fn configured(mut self, lines: &str) -> Self {
        self.config.push_str(lines);
        self.config.push('\n');
        self
    }

    fn command(&self, arguments: &[&str]) -> Command {
        std::fs::write(self.folder.join("onward.toml"), &self.config).expect("it can be written");
        let mut command = Command::new(env!("CARGO_BIN_EXE_onward"));
        command
            .args(arguments)
            .current_dir(&self.folder)
            .env_clear()
            .env("HOME", &self.folder)
            .env("USER", "ann")
            .env("ONWARD_LOG", "debug")
            .env("ONWARD_DATABASE", &self.database)
            .stdin(Stdio::null());
        command
    }

    /// Runs another command on the same database.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the binary runs")
    }

    /// What a command prints as JSON that must be done.
    pub(crate) fn prints(&self, arguments: &[&str]) -> Value {
        let output = self.run(arguments);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {told}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// Starts the proxy in front of an API.
    pub(crate) fn proxy(self, upstream: &Upstream) -> Proxy {
        self.proxy_to(&upstream.url)
    }

    pub(crate) fn proxy_to(self, upstream: &str) -> Proxy {
        let told = File::options()
            .create(true)
            .append(true)
            .open(self.folder.join("stderr"))
            .expect("a file can be made");
        let mut child = self
            .command(&["proxy", "--bind", "127.0.0.1:0", "--upstream", upstream])
            .stdout(Stdio::piped())
            .stderr(told)
            .spawn()
            .expect("the binary runs");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut line = String::new();
        lines.read_line(&mut line).expect("it can be read");
        let Some(url) = line.trim_end().split("http://").nth(1) else {
            let status = child.wait();
            panic!("it is not ready ({status:?}): {}", self.told());
        };
        Proxy {
            url: format!("http://{url}"),
            line: line.clone(),
            child,
            client: client(),
            house: Some(self),
        }
    }

    /// What it told on standard error so far.
    pub(crate) fn told(&self) -> String {
        std::fs::read_to_string(self.folder.join("stderr")).unwrap_or_default()
    }

    /// The turns of a session, as `onward session show` prints them.
    pub(crate) fn turns(&self, session: &str) -> Vec<Value> {
        let shown = self.prints(&["--json", "session", "show", session]);
        shown["turns"].as_array().expect("turns").clone()
    }

    /// Its calls.
    pub(crate) fn calls(&self, session: &str) -> Vec<Value> {
        let shown = self.prints(&["--json", "session", "show", session]);
        shown["calls"].as_array().expect("calls").clone()
    }
}

impl Drop for House {
    fn drop(&mut self) {
        // What stays behind is in the build's own folder.
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

/// A proxy that answers.
pub(crate) struct Proxy {
    pub(crate) url: String,
    /// The line that it printed when it was ready.
    pub(crate) line: String,
    child: Child,
    pub(crate) client: Client,
    house: Option<House>,
}

/// An answer, read.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) async fn of(response: Response) -> Self {
        Self {
            status: response.status(),
            headers: response.headers().clone(),
            body: response.bytes().await.expect("it can be read").to_vec(),
        }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|why| panic!("{why}: {self:?}"))
    }
}

impl Proxy {
    pub(crate) fn house(&self) -> &House {
        self.house.as_ref().expect("a house")
    }

    /// Sends a body as it is.
    pub(crate) async fn send(&self, path: &str, body: impl Into<reqwest::Body>) -> Answer {
        self.send_with(path, &[], body).await
    }

    pub(crate) async fn send_with(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<reqwest::Body>,
    ) -> Answer {
        let mut request = self
            .client
            .request(Method::POST, format!("{}{path}", self.url))
            .header("content-type", "application/json")
            .body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Answer::of(request.send().await.expect("it answers")).await
    }

    /// Ends it as a system does, so that everything is written.
    pub(crate) fn stop(mut self) -> House {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(sent.expect("kill runs").success());
        let ended = self.child.wait().expect("it can be waited for");
        assert!(ended.success(), "{ended:?}");
        self.house.take().expect("a house")
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

pub(crate) fn client() -> Client {
    let client = Client::builder()
        .timeout(PATIENCE)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .build();
    client.expect("a client")
}
