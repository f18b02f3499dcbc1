//! The `rejoin` command.

fn main() -> std::process::ExitCode {
    rejoin::main()
}
