//! The process of a tool call in progress.

use std::process::{Child, Command};

/// A process that does nothing. It is killed on drop.
#[derive(Debug)]
pub struct ToolProcess(Child);

impl ToolProcess {
    /// Starts the process.
    pub fn start() -> Self {
        let child = Command::new("sleep").arg("600").spawn();
        Self(child.expect("process started"))
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Kills the process with SIGKILL.
    pub fn kill(&mut self) {
        self.0.kill().expect("process killed");
        self.0.wait().expect("process exited");
    }
}

impl Drop for ToolProcess {
    fn drop(&mut self) {
        // Fails if the process has exited.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
