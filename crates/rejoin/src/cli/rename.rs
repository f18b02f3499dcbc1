//! `rejoin rename`

use clap::Args;
use rejoin_hub::{Doing, Wish};

use super::change::handle;
use crate::app::App;
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

pub(crate) async fn run(app: &App, args: &RenameArgs) -> Result<u8> {
    let title = one_line(&args.title)?;
    let found = app.hub().find(&args.conversation, &app.folders()).await?;
    let id = found.conversation.id;
    let wish = [Wish::Title(title.clone())];
    app.hub().set(id, "rename", &wish, Doing::Now).await?;
    if app.out.json {
        let done = serde_json::json!({"conversation_id": id, "title": title});
        app.out.json(&done);
    } else {
        let name = handle(app, &found.conversation).await?;
        app.out.text(&format!("{name} is now called: {title}"));
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
