//! Conversations that are set to ask before they are continued (`continue=ask`).

use std::io::{BufRead, IsTerminal};

use crate::output::Output;
use rejoin_errors::{CommandError, Result, codes};

/// Runs `send`. Where the conversation asks first and the user did not confirm, the user is asked and `send`
/// runs once more with the answer; without a terminal the refusal stands.
pub(crate) async fn or_ask<T>(
    out: Output,
    confirmed: bool,
    mut send: impl AsyncFnMut(bool) -> Result<T>,
) -> Result<T> {
    let refused = match send(confirmed).await {
        Err(failure) if failure.code == codes::CONFIRM.word => failure,
        other => return other,
    };
    let terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if out.json || !terminal || !yes(out, &refused) {
        return Err(refused);
    }
    send(true).await
}

fn yes(out: Output, refused: &CommandError) -> bool {
    let (asks, _) = refused.message.split_once(';').unwrap_or_default();
    out.note(&format!("{asks}; continue it? [y/N] "));
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}
