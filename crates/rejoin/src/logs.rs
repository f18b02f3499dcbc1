//! Logs of a daemon for its operator: on stderr, in lines for people or for programs. Never message text, and no
//! secret.

use std::io::IsTerminal as _;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// As the configuration has it.
#[derive(Debug, Clone)]
pub(crate) struct Logs {
    pub(crate) level: Option<String>,
    pub(crate) format: String,
}

impl Logs {
    /// From now on. `usual`: how much, where nothing is said.
    pub(crate) fn write(&self, usual: LevelFilter) {
        let level = match self.level.as_deref() {
            None => usual,
            Some("error") => LevelFilter::ERROR,
            Some("warn") => LevelFilter::WARN,
            Some("info") => LevelFilter::INFO,
            Some("debug") => LevelFilter::DEBUG,
            Some(_) => LevelFilter::OFF,
        };
        if level == LevelFilter::OFF {
            return;
        }
        // What others write may hold more than we know of.
        let ours = Targets::new()
            .with_target("rejoin", level)
            .with_default(level.min(LevelFilter::ERROR));
        // Without a reader nothing is to be said about that either: there is nowhere to say it.
        let lines = tracing_subscriber::fmt::layer()
            .with_writer(std::io::stderr)
            .log_internal_errors(false);
        let layer = if self.format == "json" {
            lines.json().flatten_event(true).with_filter(ours).boxed()
        } else {
            let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            lines
                .with_ansi(colours)
                .with_target(false)
                .with_filter(ours)
                .boxed()
        };
        drop(tracing_subscriber::registry().with(layer).try_init());
    }
}
