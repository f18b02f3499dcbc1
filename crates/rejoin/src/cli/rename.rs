//! `rejoin rename`

use clap::Args;
use rejoin_hub::{Doing, Want, Wish};

use crate::at::At;
use crate::failure::{Failure, Result};

/// Give a conversation another title
#[derive(Debug, Args)]
pub(crate) struct RenameArgs {
    /// Conversation: handle, id, key, or `last`
    #[arg(value_name = "CONV")]
    conversation: String,
    /// Its new title
    #[arg(value_name = "TITLE")]
    title: String,
}

pub(crate) async fn run(at: At<'_>, args: &RenameArgs) -> Result<u8> {
    let title = one_line(&args.title)?;
    let found = at.named(&args.conversation, Want::Conversation).await?;
    let id = found.conversation.id;
    let wish = [Wish::Title(title.clone())];
    at.set(id, &wish, Doing::Now).await?;
    let out = at.out();
    if out.json {
        let done = serde_json::json!({"conversation_id": id, "title": title});
        out.json(&done);
    } else {
        let name = &found.conversation.handle;
        out.text(&format!("{name} is now called: {title}"));
    }
    Ok(0)
}

/// A title is one line.
pub(super) fn one_line(text: &str) -> Result<String> {
    let title = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if title.is_empty() || title.chars().any(char::is_control) || title.len() > 1000 {
        return Err(Failure::usage("a title has 1 to 1000 characters")
            .try_this("rejoin rename CONV \"a title\""));
    }
    Ok(title)
}
