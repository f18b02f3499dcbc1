//! `rejoin pair`

use clap::Args;
use qrcodegen::{QrCode, QrCodeEcc};

use crate::cli::command::{Help, Run, Task};
use crate::hub_client::HubClient;
use rejoin_errors::{CommandError, Result};

/// Sentence beside every link.
pub(super) const ONCE: &str = "the link signs in one browser, within ten minutes";

/// Print a link, with a QR code, that signs in one browser to the dashboard
///
/// The link works once, within ten minutes. The session has the rights of the caller.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin pair                  a link for a phone or another browser\n  rejoin pair --open           open the dashboard here\n  rejoin pair --sign-out-all   end the sessions of all browsers\n\nThe phone must reach the daemon: [serve] listen, public_url"
)]
pub(crate) struct PairArgs {
    /// Open the link in a browser of this machine
    #[arg(long, conflicts_with = "sign_out_all")]
    open: bool,
    /// Sign out all browsers, and void unused links
    #[arg(long)]
    sign_out_all: bool,
}

impl Run for PairArgs {
    const NAME: &'static str = "pair";
    const HELP: Help = Help::SetUp("pair a browser");

    fn task(self) -> Task {
        Task::hub(self, pair).by_daemon()
    }
}

async fn pair(hub: HubClient<'_>, args: &PairArgs) -> Result<u8> {
    let out = hub.out();
    if args.sign_out_all {
        hub.end_browser_sessions().await?;
        if out.json {
            out.json(&serde_json::json!({"signed_out": true}));
        } else {
            out.text("all browsers are signed out");
        }
        return Ok(0);
    }
    let link = hub.pair().await?;
    if args.open {
        open(&link.url)?;
        out.note("the dashboard opens in your browser");
        return Ok(0);
    }
    if out.json {
        out.json(&link);
        return Ok(0);
    }
    out.note(ONCE);
    if out.screen()
        && let Ok(code) = QrCode::encode_text(&link.url, QrCodeEcc::Low)
    {
        out.text(&drawn(&code));
    }
    // Last: the code fills a screen of 24 rows.
    out.text(&link.url);
    Ok(0)
}

/// Opens a sign-in link in the browser of the user.
pub(super) fn open(url: &str) -> Result<()> {
    // The page signs in by itself if the address says that a person wants it.
    let address = format!("{url}#open");
    let openers: &[&str] = if cfg!(target_os = "macos") {
        &["open"]
    } else {
        &["xdg-open", "wslview", "sensible-browser"]
    };
    let opened = openers
        .iter()
        .any(|program| rejoin_runner::process::open_address(program, &address).is_ok());
    if opened {
        return Ok(());
    }
    Err(
        CommandError::not_found("no program on this machine opens a browser")
            .try_this("rejoin pair"),
    )
}

/// Draws a code with two rows to a line, dark on light on any terminal.
fn drawn(code: &QrCode) -> String {
    let size = code.size();
    let mut lines = vec![];
    for y in (-2..size + 2).step_by(2) {
        let letter = |x| match (code.get_module(x, y), code.get_module(x, y + 1)) {
            (true, true) => ' ',
            (true, false) => '▄',
            (false, true) => '▀',
            (false, false) => '█',
        };
        lines.push((-2..size + 2).map(letter).collect::<String>());
    }
    lines.join("\n")
}
