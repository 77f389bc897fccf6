//! A server in a folder of its own, and the ways to ask it.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use onward_core::{Role, Timestamp};
use onward_engine::engine::Settings;
use onward_engine::world::{System, World};
use onward_engine::{Address, Engine};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde_json::Value;

/// Where a server will stand.
pub(crate) struct House {
    pub(crate) folder: PathBuf,
    database: String,
    config: String,
    variables: Vec<(String, String)>,
}

impl House {
    /// An empty folder, with a file as its database.
    pub(crate) fn new(test: &str) -> Self {
        // For the client that asks; that another test was first is as good.
        drop(rustls::crypto::ring::default_provider().install_default());
        let name = format!("serve-{test}-{}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        drop(std::fs::remove_dir_all(&folder));
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        Self {
            folder,
            database: "onward.db".to_owned(),
            config: String::new(),
            variables: Vec::new(),
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

    /// With this in its environment.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
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
            .env("ONWARD_DATABASE", &self.database)
            .envs(self.variables.iter().cloned())
            .stdin(Stdio::null());
        command
    }

    /// Runs another command on the same database. One that does not end is ended.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(arguments);
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let child = child.expect("the binary runs");
        let pid = child.id().to_string();
        let (ended, end) = std::sync::mpsc::channel::<()>();
        let watch = std::thread::spawn(move || {
            if end.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                drop(Command::new("kill").args(["-KILL", &pid]).status());
            }
        });
        let output = child.wait_with_output().expect("it can be waited for");
        drop(ended);
        watch.join().expect("it ends");
        output
    }

    /// What a command prints that must be done.
    pub(crate) fn prints(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {told}");
        String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned()
    }

    /// A token of a tenant, which is made where there is none.
    pub(crate) fn token(&self, tenant: &str, name: &str, role: &str) -> String {
        if tenant != "local" {
            // It may be there already.
            drop(self.run(&["tenant", "create", tenant]));
        }
        self.prints(&[
            "--tenant", tenant, "token", "create", "--name", name, "--role", role,
        ])
    }

    /// A token that was good an hour ago.
    pub(crate) async fn expired_token(&self) -> String {
        struct Yesterday;
        impl World for Yesterday {
            fn now(&self) -> Timestamp {
                Timestamp::from_millis(System.now().as_millis() - 24 * 60 * 60 * 1000)
            }
            fn dice(&self, bytes: &mut [u8]) {
                System.dice(bytes);
            }
        }
        let address = match self.database.contains("://") {
            true => Address::Server(self.database.clone()),
            false => Address::File(self.folder.join(&self.database)),
        };
        let settings = Settings {
            world: Arc::new(Yesterday),
            ..Settings::default()
        };
        let engine = Engine::open(&address, settings).await.expect("it opens");
        let owner = engine.operator("local", "test").await.expect("it is there");
        let until = engine.now().checked_add(Duration::from_secs(60));
        let made = engine.create_token(&owner, "old", Role::Owner, until).await;
        let (secret, _) = made.expect("it is made");
        engine.close().await;
        secret
    }

    /// Starts the server on a free port.
    pub(crate) fn serve(self) -> Server {
        self.serve_with(&["serve", "--bind", "127.0.0.1:0"])
    }

    /// Starts the server as it is said.
    pub(crate) fn serve_with(self, arguments: &[&str]) -> Server {
        let told = File::create(self.folder.join("stderr")).expect("a file can be made");
        let mut child = self
            .command(arguments)
            .stdout(Stdio::piped())
            .stderr(told)
            .spawn()
            .expect("the binary runs");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut line = String::new();
        lines.read_line(&mut line).expect("it can be read");
        let url = line.trim_end().split("http://").nth(1);
        let Some(url) = url else {
            let status = child.wait();
            panic!("it is not ready ({status:?}): {}", self.told());
        };
        let url = format!("http://{}", url.trim_end_matches(['"', '}']));
        Server {
            url,
            line,
            child,
            client: client(),
            house: self,
        }
    }

    /// What it told on standard error so far.
    pub(crate) fn told(&self) -> String {
        std::fs::read_to_string(self.folder.join("stderr")).unwrap_or_default()
    }
}

impl Drop for House {
    fn drop(&mut self) {
        // What stays behind is in the build's own folder.
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

/// A server that answers.
pub(crate) struct Server {
    pub(crate) url: String,
    /// The line that it printed when it was ready.
    pub(crate) line: String,
    child: Child,
    pub(crate) client: Client,
    pub(crate) house: House,
}

/// An answer, read.
#[derive(Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) kind: String,
    pub(crate) challenge: String,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) async fn of(response: Response) -> Self {
        let header = |name: &str| {
            let value = response.headers().get(name);
            value.map_or(String::new(), |value| value.to_str().unwrap().to_owned())
        };
        Self {
            status: response.status(),
            kind: header("content-type"),
            challenge: header("www-authenticate"),
            text: response.text().await.expect("it can be read"),
        }
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|why| panic!("{why}: {self:?}"))
    }

    /// It is a problem of this status and code, in the form that problems have.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16, code: &str) -> Value {
        let json = self.json();
        assert_eq!(self.status.as_u16(), status, "{self:?}");
        assert_eq!(self.kind, "application/problem+json", "{self:?}");
        assert_eq!(json["code"], code, "{self:?}");
        assert_eq!(json["status"], status, "{self:?}");
        assert_eq!(json["type"], format!("urn:onward:problem:{code}"));
        for field in ["title", "detail", "hint"] {
            assert!(json[field].as_str().is_some_and(|text| !text.is_empty()));
        }
        json
    }

    /// It was done.
    #[track_caller]
    pub(crate) fn done(&self) -> Value {
        assert!(self.status.is_success(), "{self:?}");
        self.json()
    }
}

impl Server {
    pub(crate) fn ask(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        send(self.ask(Method::GET, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        send(self.ask(Method::POST, path).json(&body)).await
    }

    /// Asks with a token.
    pub(crate) async fn get_as(&self, token: &str, path: &str) -> Answer {
        send(self.ask(Method::GET, path).bearer_auth(token)).await
    }

    pub(crate) async fn post_as(&self, token: &str, path: &str, body: Value) -> Answer {
        send(self.ask(Method::POST, path).bearer_auth(token).json(&body)).await
    }

    /// The house that it stood in, for another server.
    pub(crate) fn leave(mut self) -> House {
        let nowhere = House {
            folder: PathBuf::new(),
            database: String::new(),
            config: String::new(),
            variables: Vec::new(),
        };
        std::mem::replace(&mut self.house, nowhere)
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([name, &pid]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// Waits for its end.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        self.child.wait().expect("it can be waited for")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Longer than anything takes; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(60);

fn client() -> Client {
    let client = Client::builder().timeout(PATIENCE).build();
    client.expect("a client")
}

pub(crate) async fn send(request: RequestBuilder) -> Answer {
    let response = request.send().await.expect("it answers");
    Answer::of(response).await
}
