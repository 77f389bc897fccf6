//! The `onward` binary. The program is in `lib.rs`.

use std::process::ExitCode;

fn main() -> ExitCode {
    onward::run()
}
