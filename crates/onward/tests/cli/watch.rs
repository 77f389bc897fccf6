//! `onward watch`: in a pipe, as JSON, and on a real terminal, which it leaves as it found it.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::scene::Scene;

/// Longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn command(scene: &Scene, program: &str) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(&scene.folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", scene.folder.join("home"))
        .env("TERM", "xterm-256color")
        .env("ONWARD_DATABASE", &scene.database)
        .env("ONWARD", env!("CARGO_BIN_EXE_onward"));
    command
}

/// Whatever comes, piece by piece, from a thread that reads.
fn pieces(mut from: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(length @ 1..) = from.read(&mut piece) {
            if sender.send(piece[..length].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Ends the process, if it has not ended.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn signal(pid: &str, name: &str) {
    let sent = Command::new("kill").args([name, pid.trim()]).status();
    assert!(sent.expect("kill runs").success());
}

/// Abandons a plan from another process: the executing one, by its name.
fn abandon(scene: &Scene, plan: &str) {
    let done = command(scene, env!("CARGO_BIN_EXE_onward"))
        .args(["plan", "abandon", plan, "--reason", "no wind"])
        .output()
        .expect("it runs");
    assert!(done.status.success(), "{done:?}");
}

fn open_plan(scene: &Scene) -> String {
    let listed = command(scene, env!("CARGO_BIN_EXE_onward"))
        .args(["--json", "plan", "list"])
        .output()
        .expect("it runs");
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    let id = listed["plans"][0]["planId"].as_str();
    id.expect("there is an open plan").to_owned()
}

#[test]
fn as_json_every_change_is_one_line() {
    prints_changes(Scene::empty("watch-json").with_plans());
}

#[test]
fn as_json_every_change_is_one_line_on_postgresql() {
    let database = onward_testbed::Cluster::shared().database();
    prints_changes(
        Scene::empty("watch-json-postgres")
            .on(database)
            .with_plans(),
    );
}

fn prints_changes(scene: Scene) {
    let child = command(&scene, env!("CARGO_BIN_EXE_onward"))
        .args(["--json", "watch"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn();
    let mut running = Running(child.expect("it runs"));
    let lines = BufReader::new(running.0.stdout.take().expect("it is piped")).lines();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            drop(sender.send(line));
        }
    });
    let next = || -> serde_json::Value {
        let line = receiver.recv_timeout(PATIENCE).expect("a line comes");
        serde_json::from_str(&line).expect("JSON")
    };
    let failed = |said: &serde_json::Value| said["plans"]["failed"].as_u64().expect("a count");
    let first = next();
    abandon(&scene, &open_plan(&scene));
    let second = next();
    assert_eq!(failed(&second), failed(&first) + 1);
    signal(&running.0.id().to_string(), "-TERM");
    assert_eq!(running.0.wait().expect("it ends").code(), Some(0));
    assert!(receiver.recv().is_err(), "nothing changed in between");
}

#[test]
fn in_a_pipe_it_prints_a_status_without_colour_and_ends_with_its_reader() {
    let scene = Scene::empty("watch-pipe").with_plans();
    let child = command(&scene, env!("CARGO_BIN_EXE_onward"))
        .arg("watch")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn();
    let mut running = Running(child.expect("it runs"));
    let mut said = BufReader::new(running.0.stdout.take().expect("it is piped"));
    let mut first = String::new();
    said.read_line(&mut first).expect("it prints");
    assert!(first.contains(" plans, "), "{first}");
    assert!(!first.contains('\u{1b}'), "{first:?}");
    drop(said);
    // Nobody reads any more: the next change is told to nobody.
    abandon(&scene, &open_plan(&scene));
    assert_eq!(running.0.wait().expect("it ends").code(), Some(0));
}

/// A terminal with a shell in it that runs `onward watch`, and says how it left things.
struct Screen {
    running: Running,
    keys: ChildStdin,
    shown: Receiver<Vec<u8>>,
    text: String,
}

impl Screen {
    fn open(scene: &Scene) -> Self {
        // The settings of the terminal, before and after; and the process, so that it can be told.
        let shell = "stty cols 100 rows 30; stty -g > before; \
            sh -c 'echo $$ > pid; exec \"$ONWARD\" watch'; echo \"code $?\" > code; \
            stty -g > after; echo over";
        let child = command(scene, "script")
            .args(["-qefc", shell, "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut running = Running(child.expect("there is `script`"));
        let keys = running.0.stdin.take().expect("it is piped");
        let shown = pieces(running.0.stdout.take().expect("it is piped"));
        Self {
            running,
            keys,
            shown,
            text: String::new(),
        }
    }

    /// Waits until this was drawn since the last time that something was waited for.
    fn shows(&mut self, word: &str) {
        let end = Instant::now() + PATIENCE;
        while !self.text.contains(word) {
            let left = end.saturating_duration_since(Instant::now());
            match self.shown.recv_timeout(left) {
                Ok(piece) => self.text.push_str(&String::from_utf8_lossy(&piece)),
                Err(_) => panic!("`{word}` is never drawn: {:?}", self.text),
            }
        }
        let at = self.text.find(word).expect("it is there");
        self.text.drain(..at + word.len());
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("it is typed");
        self.keys.flush().expect("it is typed");
    }

    /// It has ended, with this code, and the terminal is as it was.
    fn ends(mut self, scene: &Scene, code: i32) {
        // Back from the screen of its own, and the cursor is there.
        self.shows("\u{1b}[?1049l");
        self.shows("over");
        let said = |name: &str| std::fs::read_to_string(scene.folder.join(name)).expect("said");
        assert_eq!(said("code").trim(), format!("code {code}"));
        assert_eq!(said("after"), said("before"), "the terminal is as it was");
        assert!(self.running.0.wait().expect("it ends").success());
    }
}

#[test]
fn on_a_terminal_it_follows_and_leaves_the_terminal_as_it_was() {
    let scene = Scene::empty("watch-screen").with_plans();
    let mut screen = Screen::open(&scene);
    screen.shows("\u{1b}[?1049h");
    screen.shows("stalled");
    screen.shows("choose");
    // Another process changes something.
    abandon(&scene, &open_plan(&scene));
    screen.shows("failed");
    // Only what differs is drawn: these words stand where others stood.
    screen.press("\u{1b}[B\r");
    screen.shows("Tides:");
    screen.press("\u{1b}[D");
    screen.shows("741185b2");
    screen.press("q");
    screen.ends(&scene, 0);
}

#[test]
fn however_it_is_ended_the_terminal_is_as_it_was() {
    for (number, end) in ["ctrl-c", "-TERM", "-INT", "-HUP"].iter().enumerate() {
        let scene = Scene::empty(&format!("watch-end-{number}")).with_plans();
        let mut screen = Screen::open(&scene);
        screen.shows("choose");
        match *end {
            "ctrl-c" => screen.press("\u{3}"),
            name => {
                let pid = std::fs::read_to_string(scene.folder.join("pid")).expect("a pid");
                signal(&pid, name);
            }
        }
        screen.ends(&scene, 0);
    }
}
