//! The shim as an executable of its own, for tests: `rejoin-shim shim FOLDER`, as in the real
//! executable.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let (Some(verb), Some(folder)) = (args.next(), args.next()) else {
        return ExitCode::from(2);
    };
    if verb != "shim" {
        return ExitCode::from(2);
    }
    let code = rejoin_runner::shim::main(Path::new(&folder));
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
