//! `onward watch` in a pipe, with `--json`, and on a terminal, whose settings it must restore.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::fixture::Fixture;

const TIMEOUT: Duration = Duration::from_secs(60);

fn command(fixture: &Fixture, program: &str) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(fixture.dir.path())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", fixture.dir.join("home"))
        .env("TERM", "xterm-256color")
        .env("ONWARD_DATABASE", &fixture.database)
        .env("ONWARD", env!("CARGO_BIN_EXE_onward"));
    command
}

/// The chunks that a stream produces, read on a thread.
fn chunks(mut from: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut chunk = [0; 4096];
        while let Ok(length @ 1..) = from.read(&mut chunk) {
            if sender.send(chunk[..length].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}

/// A process that is killed on drop.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn signal(pid: &str, name: &str) {
    let sent = Command::new("kill").args([name, pid.trim()]).status();
    assert!(sent.expect("`kill` runs").success());
}

/// Abandons a plan from another process.
fn abandon(fixture: &Fixture, plan: &str) {
    let done = command(fixture, env!("CARGO_BIN_EXE_onward"))
        .args(["plan", "abandon", plan, "--reason", "no wind"])
        .output()
        .expect("the binary starts");
    assert!(done.status.success(), "{done:?}");
}

fn open_plan(fixture: &Fixture) -> String {
    let listed = command(fixture, env!("CARGO_BIN_EXE_onward"))
        .args(["--json", "plan", "list"])
        .output()
        .expect("the binary starts");
    let listed: serde_json::Value =
        serde_json::from_slice(&listed.stdout).expect("the list is JSON");
    let id = listed["plans"][0]["planId"].as_str();
    id.expect("the fixture has an open plan").to_owned()
}

#[test]
fn prints_one_line_of_json_per_change() {
    prints_changes(Fixture::empty("watch-json").with_plans());
}

#[test]
fn prints_one_line_of_json_per_change_on_postgres() {
    let database = onward_testbed::Cluster::shared().database();
    prints_changes(
        Fixture::empty("watch-json-postgres")
            .on(database)
            .with_plans(),
    );
}

fn prints_changes(fixture: Fixture) {
    let child = command(&fixture, env!("CARGO_BIN_EXE_onward"))
        .args(["--json", "watch"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn();
    let mut running = Running(child.expect("the binary starts"));
    let lines = BufReader::new(running.0.stdout.take().expect("the stream is piped")).lines();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            drop(sender.send(line));
        }
    });
    let next = || -> serde_json::Value {
        let line = receiver
            .recv_timeout(TIMEOUT)
            .expect("a line before the timeout");
        serde_json::from_str(&line).expect("the line is JSON")
    };
    let failed = |status: &serde_json::Value| status["plans"]["failed"].as_u64().expect("a count");
    let first = next();
    abandon(&fixture, &open_plan(&fixture));
    let second = next();
    assert_eq!(failed(&second), failed(&first) + 1);
    signal(&running.0.id().to_string(), "-TERM");
    assert_eq!(running.0.wait().expect("the process exits").code(), Some(0));
    assert!(receiver.recv().is_err(), "no line without a change");
}

#[test]
fn prints_the_status_in_a_pipe_until_the_reader_closes_it() {
    let fixture = Fixture::empty("watch-pipe").with_plans();
    let child = command(&fixture, env!("CARGO_BIN_EXE_onward"))
        .arg("watch")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn();
    let mut running = Running(child.expect("the binary starts"));
    let mut output = BufReader::new(running.0.stdout.take().expect("the stream is piped"));
    let mut first = String::new();
    output.read_line(&mut first).expect("the status is printed");
    assert!(first.starts_with("Onward "), "{first}");
    assert!(!first.contains('\u{1b}'), "{first:?}");
    drop(output);
    // The next write fails, which ends the command.
    abandon(&fixture, &open_plan(&fixture));
    assert_eq!(running.0.wait().expect("the process exits").code(), Some(0));
}

/// A terminal with a shell that runs `onward watch`, and records the exit code and the settings.
struct Screen {
    running: Running,
    keys: ChildStdin,
    output: Receiver<Vec<u8>>,
    text: String,
}

impl Screen {
    fn open(fixture: &Fixture) -> Self {
        // `before` and `after` are the settings of the terminal, `pid` is the process to signal.
        let shell = "stty cols 100 rows 30; stty -g > before; \
            sh -c 'echo $$ > pid; exec \"$ONWARD\" watch'; echo \"code $?\" > code; \
            stty -g > after; echo over";
        let child = command(fixture, "script")
            .args(["-qefc", shell, "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut running = Running(child.expect("`script` is installed"));
        let keys = running.0.stdin.take().expect("the stream is piped");
        let output = chunks(running.0.stdout.take().expect("the stream is piped"));
        Self {
            running,
            keys,
            output,
            text: String::new(),
        }
    }

    /// Waits for a text that is drawn after the previous one.
    fn wait_for(&mut self, text: &str) {
        let end = Instant::now() + TIMEOUT;
        while !self.text.contains(text) {
            let left = end.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(chunk) => self.text.push_str(&String::from_utf8_lossy(&chunk)),
                Err(_) => panic!("`{text}` is not drawn: {:?}", self.text),
            }
        }
        let at = self.text.find(text).expect("the text was found");
        self.text.drain(..at + text.len());
    }

    fn press(&mut self, keys: &str) {
        self.keys
            .write_all(keys.as_bytes())
            .expect("the terminal accepts input");
        self.keys.flush().expect("the terminal accepts input");
    }

    /// Checks that the command exits with a code and restores the terminal.
    fn check_exit(mut self, fixture: &Fixture, code: i32) {
        // The alternate screen is closed.
        self.wait_for("\u{1b}[?1049l");
        self.wait_for("over");
        let read = |name: &str| {
            std::fs::read_to_string(fixture.dir.join(name)).expect("the shell wrote the file")
        };
        assert_eq!(read("code").trim(), format!("code {code}"));
        assert_eq!(
            read("after"),
            read("before"),
            "the settings of the terminal"
        );
        assert!(self.running.0.wait().expect("the process exits").success());
    }
}

#[test]
fn follows_changes_on_a_terminal_and_restores_it() {
    let fixture = Fixture::empty("watch-screen").with_plans();
    let mut screen = Screen::open(&fixture);
    screen.wait_for("\u{1b}[?1049h");
    screen.wait_for("stuck");
    screen.wait_for("select");
    // Another process changes something.
    abandon(&fixture, &open_plan(&fixture));
    screen.wait_for("cancelled");
    // Only changed cells are drawn, so wait for texts that are new on the screen.
    screen.press("\u{1b}[B\r");
    screen.wait_for("Tides:");
    screen.press("\u{1b}[D");
    screen.wait_for("741185b2");
    screen.press("q");
    screen.check_exit(&fixture, 0);
}

#[test]
fn releases_a_stuck_step_and_approves_a_review() {
    let fixture = Fixture::empty("watch-actions").with_plans();
    let mut screen = Screen::open(&fixture);
    screen.wait_for("Comets");
    // The stuck plan is the first one.
    screen.press("r");
    screen.wait_for("released 1 step");
    screen.press("/boats\ra");
    screen.wait_for("approve step 1");
    screen.press("y");
    screen.wait_for("approved step 1");
    screen.press("q");
    screen.check_exit(&fixture, 0);
    let steps = |plan: &str| {
        let run = command(&fixture, env!("CARGO_BIN_EXE_onward"))
            .args(["--json", "step", "show", plan])
            .output()
            .expect("the binary starts");
        let step: serde_json::Value =
            serde_json::from_slice(&run.stdout).expect("the step is JSON");
        step["status"].as_str().expect("a status").to_owned()
    };
    assert_eq!(steps("comets/1"), "pending");
    assert_eq!(steps("boats/1"), "completed");
}

#[test]
fn restores_the_terminal_after_every_kind_of_exit() {
    for (number, end) in ["ctrl-c", "-TERM", "-INT", "-HUP"].iter().enumerate() {
        let fixture = Fixture::empty(&format!("watch-end-{number}")).with_plans();
        let mut screen = Screen::open(&fixture);
        screen.wait_for("select");
        match *end {
            "ctrl-c" => screen.press("\u{3}"),
            name => {
                let pid = std::fs::read_to_string(fixture.dir.join("pid"))
                    .expect("the shell wrote the file");
                signal(&pid, name);
            }
        }
        screen.check_exit(&fixture, 0);
    }
}
