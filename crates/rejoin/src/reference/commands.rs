//! `docs/commands.md`: every command with its usage, arguments and examples.

use std::fmt::Write as _;

use clap::{Arg, Command};

use crate::cli;

const INTRO: &str = "\
The answer goes to stdout; the verdict line, notices and errors go to stderr. `rejoin COMMAND --help` prints the same text as
this page.

| names | meaning |
|---|---|
| CONV | a conversation: its id, its handle (`tmqx`, or a unique prefix of it), `last` (the one last used in this folder), or its key |
| MESSAGE | a message: `tmqx:4` is message 4 of `tmqx`; or its id |
| TURN | a turn: its id; a MESSAGE means the turn it belongs to, a CONV its last turn |

These options work with every command:

";

/// Returns the text of the page.
pub(super) fn page() -> String {
    let mut root = cli::command_line();
    root.build();
    let mut text = super::head("Commands") + INTRO;
    let global = |arg: &&Arg| arg.is_global_set() && arg.get_id() != "help";
    table(&mut text, root.get_arguments().filter(global));
    text.push_str("\nExit codes: [errors.md](errors.md).\n");
    let commands: Vec<&Command> = root.get_subcommands().filter(|c| is_shown(c)).collect();
    for command in commands {
        section(&mut text, command, "rejoin");
    }
    text
}

fn is_shown(command: &Command) -> bool {
    !command.is_hide_set() && command.get_name() != "help"
}

fn section(text: &mut String, command: &Command, parent: &str) {
    let name = format!("{parent} {}", command.get_name());
    let about = command.get_long_about().or_else(|| command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").trim();
    let level = if parent == "rejoin" { "##" } else { "###" };
    let _infallible = write!(
        text,
        "\n{level} {name}\n\n{}\n\n```\n{usage}\n```\n",
        about.trim()
    );
    let own: Vec<&Arg> = command
        .get_arguments()
        .filter(|arg| !arg.is_global_set() && !arg.is_hide_set() && arg.get_id() != "help")
        .collect();
    if !own.is_empty() {
        text.push('\n');
        table(text, own.into_iter());
    }
    if let Some(examples) = examples(command) {
        let _infallible = write!(text, "\n```console\n{examples}\n```\n");
    }
    for sub in command.get_subcommands().filter(|sub| is_shown(sub)) {
        section(text, sub, &name);
    }
}

/// Returns the examples of a command's help, one command per line.
fn examples(command: &Command) -> Option<String> {
    let after = command.get_after_help()?.to_string();
    let lines: Vec<&str> = after
        .lines()
        .filter(|line| line.starts_with("  "))
        .map(str::trim)
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn table<'a>(text: &mut String, args: impl Iterator<Item = &'a Arg>) {
    text.push_str("| argument | |\n|---|---|\n");
    for arg in args {
        let help = arg.get_long_help().or_else(|| arg.get_help());
        let mut help = help.map(ToString::to_string).unwrap_or_default();
        help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        let values: Vec<String> = arg
            .get_possible_values()
            .iter()
            .filter(|value| !value.is_hide_set() && takes_value(arg))
            .map(|value| format!("`{}`", value.get_name()))
            .collect();
        if !values.is_empty() {
            let _infallible = write!(help, " ({})", values.join(", "));
        }
        let cell = |text: &str| text.replace('|', "\\|");
        let _infallible = writeln!(text, "| `{}` | {} |", cell(&form(arg)), cell(&help));
    }
}

fn takes_value(arg: &Arg) -> bool {
    arg.get_action().takes_values()
}

/// Returns an argument as a user types it: `-m, --model MODEL`.
fn form(arg: &Arg) -> String {
    let names: Vec<&str> = arg
        .get_value_names()
        .unwrap_or_default()
        .iter()
        .map(clap::builder::Str::as_str)
        .collect();
    let values = names.join(" ");
    if arg.is_positional() {
        return values;
    }
    let short = arg.get_short().map(|short| format!("-{short}"));
    let long = arg.get_long().map(|long| format!("--{long}"));
    let flags: Vec<String> = short.into_iter().chain(long).collect();
    let mut form = flags.join(", ");
    if takes_value(arg) && !values.is_empty() {
        let _infallible = write!(form, " {values}");
    }
    form
}
