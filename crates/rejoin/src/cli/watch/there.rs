//! The same through a daemon.

use super::{CancelArgs, LEFT, WaitArgs, Waits, WatchArgs, ended, kept_ended, withdrawn};
use crate::at::At;
use crate::cli::outcome::{Reported, interrupted, report_view};
use crate::cli::there::{Following, Interrupt};
use crate::failure::{Failure, Result};
use crate::remote::{Ask, Remote};

pub(super) async fn watch(at: At<'_>, remote: &Remote, args: &WatchArgs) -> Result<u8> {
    let turn = at.turn(&args.turn).await?;
    let following = Following {
        stream: args.stream,
        interrupt: Interrupt::Leaves,
        waits: Waits::On,
    };
    let rest = following.to_its_rest(remote, turn, interrupted()).await?;
    match rest.left {
        Some(code) => {
            remote.out.note(LEFT);
            Ok(code)
        }
        None => Ok(report_view(
            remote.out,
            &rest.turn,
            Reported::of(args.stream),
            None,
        )),
    }
}

pub(super) async fn wait(at: At<'_>, remote: &Remote, args: &WaitArgs) -> Result<u8> {
    let turn = at.turn(&args.turn).await?;
    let following = Following {
        stream: false,
        interrupt: Interrupt::Leaves,
        waits: Waits::Return,
    };
    let rest = following.to_its_rest(remote, turn, interrupted()).await?;
    Ok(match rest.left {
        Some(code) => code,
        None => report_view(remote.out, &rest.turn, Reported::Not, None),
    })
}

pub(super) async fn cancel(at: At<'_>, remote: &Remote, args: &CancelArgs) -> Result<u8> {
    let turn = at.turn(&args.turn).await?;
    if turn.ended() && turn.leftovers.is_empty() {
        return Err(ended(&turn.status, &args.turn));
    }
    let id = turn.turn_id.to_string();
    let ask = Ask::post(&["api", "turns", &id, "cancel"]);
    let now = remote.ask(ask).await?;
    if turn.ended() {
        kept_ended(remote.out, &now);
    } else if Failure::held_back(&now).is_some() {
        withdrawn(remote.out, turn.turn_id);
    } else {
        report_view(remote.out, &now, Reported::Not, None);
    }
    Ok(0)
}
