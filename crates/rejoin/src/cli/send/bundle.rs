//! Runs a turn of a conversation that is stored in a bundle file.

use super::{SendArgs, UNSAVED, piped, prompt, report_turn, run_turn};
use crate::app::Invocation;
use crate::portable::Bundle;
use rejoin_errors::{CommandError, Result};

/// Runs a turn of a conversation in a bundle file.
pub(super) async fn send(on: &Invocation, args: &SendArgs) -> Result<u8> {
    let (out, mut args) = (on.out, args.clone());
    let text = prompt(args.turn.prompt.as_deref())?;
    args.turn.piped = piped(out, args.turn.prompt.as_deref())?;
    let file = args.bundle.clone().unwrap_or_default();
    let bundle = Bundle::open(on, &file, args.turn.if_busy, args.turn.permission).await?;
    let ended = match name_conversation(&bundle, &mut args).await {
        Ok(()) => run_turn(&bundle.app, &args, text, &|_, _| ()).await,
        Err(failure) => Err(failure),
    };
    let ended = match ended {
        Ok(ended) => ended,
        Err(failure) => {
            // Changes before the failure are written even so.
            if let Err(unwritten) = bundle.put_back().await {
                out.note(&unwritten.message);
            }
            return Err(failure);
        }
    };
    // The report reads the answer from the store, which is removed with the bundle.
    let (bundle, unwritten) = bundle.put_back_and_tell(ended.turn).await;
    let code = report_turn(bundle.app(), &args, &ended).await;
    bundle.go().await;
    let Some(unwritten) = unwritten else {
        return code;
    };
    out.note(&format!("error: {}", unwritten.message));
    out.note(&format!(
        "  try: {}",
        unwritten.next.as_deref().unwrap_or_default()
    ));
    match (code?, unwritten.exit) {
        // The answer was given, although it could not be saved.
        (0, 6) => Ok(0),
        (0 | UNSAVED, exit) if exit != 6 => Ok(exit),
        (code, _) => Ok(code),
    }
}

/// Sets the conversation of the bundle, and the current folder, as those of the message.
async fn name_conversation(bundle: &Bundle, args: &mut SendArgs) -> Result<()> {
    let Some(id) = bundle.conversation else {
        return Ok(());
    };
    let found = bundle
        .app
        .hub()
        .store
        .read()
        .await?
        .conversations()
        .get(id)
        .await?;
    let Some(conversation) = found else {
        return Ok(());
    };
    if let (Some(wanted), Some(key)) = (&args.key, &conversation.key)
        && wanted != key
    {
        let text = format!("the bundle holds the conversation `{key}`, not `{wanted}`");
        return Err(CommandError::conflict(text + "; nothing was sent")
            .try_this(format!("rejoin send -k {key} --bundle …")));
    }
    args.key = None;
    args.conversation = Some(id.to_string());
    // The folder in the bundle may be one of another machine.
    let here = &bundle.app.here;
    args.turn.workdir.get_or_insert_with(|| here.clone());
    Ok(())
}
