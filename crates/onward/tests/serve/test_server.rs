//! Starts the real binary as a server in a temporary directory, and sends requests to it. Shared
//! with the dashboard tests in `tests/pages`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use onward_core::{Role, Timestamp};
use onward_engine::engine::Settings;
use onward_engine::environment::Environment;
use onward_engine::machine::SystemEnvironment;
use onward_engine::{Address, Engine};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde_json::Value;

/// The directory, database and configuration of a server. [`TestServer::serve`] starts it.
pub(crate) struct TestServer {
    pub(crate) dir: PathBuf,
    database: String,
    config: String,
    environment: Vec<(String, String)>,
}

impl TestServer {
    /// An empty directory, with SQLite as the database.
    pub(crate) fn new(test: &str) -> Self {
        // The HTTP client needs a provider. This fails if another test has installed it.
        drop(rustls::crypto::ring::default_provider().install_default());
        let name = format!("serve-{test}-{}", std::process::id());
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        drop(std::fs::remove_dir_all(&dir));
        std::fs::create_dir_all(&dir).expect("directory created");
        Self {
            dir,
            database: "onward.db".to_owned(),
            config: String::new(),
            environment: Vec::new(),
        }
    }

    pub(crate) fn with_database(mut self, database: String) -> Self {
        self.database = database;
        self
    }

    /// Appends lines to `onward.toml`.
    pub(crate) fn with_config(mut self, lines: &str) -> Self {
        self.config.push_str(lines);
        self.config.push('\n');
        self
    }

    /// Sets an environment variable.
    pub(crate) fn with_env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    fn command(&self, arguments: &[&str]) -> Command {
        std::fs::write(self.dir.join("onward.toml"), &self.config).expect("configuration written");
        let mut command = Command::new(env!("CARGO_BIN_EXE_onward"));
        command
            .args(arguments)
            .current_dir(&self.dir)
            .env_clear()
            .env("HOME", &self.dir)
            .env("USER", "ann")
            .env("ONWARD_DATABASE", &self.database)
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::null());
        command
    }

    /// Runs a command on the same database, and kills it after [`TIMEOUT`].
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(arguments);
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let child = child.expect("binary started");
        let pid = child.id().to_string();
        let (exited, exit) = std::sync::mpsc::channel::<()>();
        let watchdog = std::thread::spawn(move || {
            if exit.recv_timeout(TIMEOUT) == Err(RecvTimeoutError::Timeout) {
                drop(Command::new("kill").args(["-KILL", &pid]).status());
            }
        });
        let output = child.wait_with_output().expect("process exited");
        drop(exited);
        watchdog.join().expect("watchdog exited");
        output
    }

    /// Runs a command that must succeed. Returns its standard output.
    pub(crate) fn run_ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {stderr}");
        String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned()
    }

    /// Creates a token, and its tenant if it does not exist.
    pub(crate) fn token(&self, tenant: &str, name: &str, role: &str) -> String {
        if tenant != "local" {
            // Fails if the tenant exists.
            drop(self.run(&["tenant", "create", tenant]));
        }
        self.run_ok(&[
            "--tenant", tenant, "token", "create", "--name", name, "--role", role,
        ])
    }

    /// Creates a token that has expired.
    pub(crate) async fn expired_token(&self) -> String {
        struct Yesterday;
        impl Environment for Yesterday {
            fn now(&self) -> Timestamp {
                Timestamp::from_millis(SystemEnvironment.now().as_millis() - 24 * 60 * 60 * 1000)
            }
            fn fill_random(&self, bytes: &mut [u8]) {
                SystemEnvironment.fill_random(bytes);
            }
        }
        let address = if self.database.contains("://") {
            Address::Server(self.database.clone())
        } else {
            Address::File(self.dir.join(&self.database))
        };
        let settings = Settings {
            environment: Arc::new(Yesterday),
            ..Settings::default()
        };
        let engine = Engine::open(&address, settings)
            .await
            .expect("database opened");
        let owner = engine
            .operator("local", "test")
            .await
            .expect("tenant exists");
        let until = engine.now().checked_add(Duration::from_secs(60));
        let created = engine.create_token(&owner, "old", Role::Owner, until).await;
        let (secret, _) = created.expect("token created");
        engine.close().await;
        secret
    }

    /// Starts the server on a free port.
    pub(crate) fn serve(self) -> RunningServer {
        self.serve_with(&["serve", "--bind", "127.0.0.1:0"])
    }

    /// Starts the server with these arguments.
    pub(crate) fn serve_with(self, arguments: &[&str]) -> RunningServer {
        let stderr = File::create(self.dir.join("stderr")).expect("file created");
        let mut child = self
            .command(arguments)
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .expect("binary started");
        let mut lines = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut line = String::new();
        lines.read_line(&mut line).expect("stdout is readable");
        let url = line.trim_end().split("http://").nth(1);
        let Some(url) = url else {
            let status = child.wait();
            panic!("server did not start ({status:?}): {}", self.stderr());
        };
        let url = format!("http://{}", url.trim_end_matches(['"', '}']));
        RunningServer {
            url,
            ready_line: line,
            child,
            client: client(),
            setup: self,
        }
    }

    /// The standard error output of the server so far.
    pub(crate) fn stderr(&self) -> String {
        std::fs::read_to_string(self.dir.join("stderr")).unwrap_or_default()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        // Leftovers stay in the build directory.
        drop(std::fs::remove_dir_all(&self.dir));
    }
}

/// A running server. It is killed on drop.
pub(crate) struct RunningServer {
    pub(crate) url: String,
    /// The line on standard output that reports the address.
    pub(crate) ready_line: String,
    child: Child,
    pub(crate) client: Client,
    pub(crate) setup: TestServer,
}

/// A response with its body.
#[derive(Debug, PartialEq)]
pub(crate) struct ApiResponse {
    pub(crate) status: StatusCode,
    pub(crate) content_type: String,
    pub(crate) challenge: String,
    pub(crate) text: String,
}

impl ApiResponse {
    pub(crate) async fn read(response: Response) -> Self {
        let header = |name: &str| {
            let value = response.headers().get(name);
            value.map_or(String::new(), |value| value.to_str().unwrap().to_owned())
        };
        Self {
            status: response.status(),
            content_type: header("content-type"),
            challenge: header("www-authenticate"),
            text: response.text().await.expect("body received"),
        }
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Asserts that this is a complete problem document with this status and code.
    #[track_caller]
    pub(crate) fn expect_problem(&self, status: u16, code: &str) -> Value {
        let json = self.json();
        assert_eq!(self.status.as_u16(), status, "{self:?}");
        assert_eq!(self.content_type, "application/problem+json", "{self:?}");
        assert_eq!(json["code"], code, "{self:?}");
        assert_eq!(json["status"], status, "{self:?}");
        assert_eq!(json["type"], format!("urn:onward:problem:{code}"));
        for field in ["title", "detail", "hint"] {
            assert!(json[field].as_str().is_some_and(|text| !text.is_empty()));
        }
        json
    }

    /// Asserts success. Returns the JSON body.
    #[track_caller]
    pub(crate) fn expect_success(&self) -> Value {
        assert!(self.status.is_success(), "{self:?}");
        self.json()
    }
}

impl RunningServer {
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    pub(crate) async fn get(&self, path: &str) -> ApiResponse {
        send(self.request(Method::GET, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> ApiResponse {
        send(self.request(Method::POST, path).json(&body)).await
    }

    pub(crate) async fn get_as(&self, token: &str, path: &str) -> ApiResponse {
        send(self.request(Method::GET, path).bearer_auth(token)).await
    }

    pub(crate) async fn post_as(&self, token: &str, path: &str, body: Value) -> ApiResponse {
        send(
            self.request(Method::POST, path)
                .bearer_auth(token)
                .json(&body),
        )
        .await
    }

    /// Kills the server and returns its setup, to start another server.
    pub(crate) fn into_setup(mut self) -> TestServer {
        let empty = TestServer {
            dir: PathBuf::new(),
            database: String::new(),
            config: String::new(),
            environment: Vec::new(),
        };
        std::mem::replace(&mut self.setup, empty)
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([name, &pid]).status();
        assert!(sent.expect("`kill` started").success());
    }

    /// Waits until the server exits.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(status) = self.child.try_wait().expect("process is a child") {
                return status;
            }
            assert!(
                Instant::now() < deadline,
                "server still runs: {}",
                self.setup.stderr()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The limit for every wait in these tests.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

fn client() -> Client {
    let client = Client::builder().timeout(TIMEOUT).build();
    client.expect("client created")
}

pub(crate) async fn send(request: RequestBuilder) -> ApiResponse {
    let response = request.send().await.expect("response received");
    ApiResponse::read(response).await
}
