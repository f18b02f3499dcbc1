//! `rejoin export --envelope`

use std::io::{BufWriter, Write};

use rejoin_store::{Conversation, Manifest, ManifestFile};

use super::ExportArgs;
use crate::app::App;
use crate::output::format::count;
use crate::portable::{AtomicFile, EnvelopeWriter};
use rejoin_errors::{CommandError, Result};

/// The newest session of an agent, as it was saved.
pub(super) async fn run(
    app: &App,
    conversation: &Conversation,
    handle: &str,
    args: &ExportArgs,
) -> Result<u8> {
    let agent = args.agent.as_deref().unwrap_or(conversation.agent.as_str());
    let manifest = newest(app, conversation, agent).await?;
    let main = manifest
        .as_ref()
        .and_then(|manifest| manifest.files.first());
    let (Some(manifest), Some(main)) = (&manifest, main) else {
        let text = format!("no session of {agent} is saved for {handle}; nothing was written");
        return Err(CommandError::not_found(text).try_this(format!("rejoin show {handle}")));
    };
    app.runner.travels(agent, &manifest.session)?;
    let failed =
        |e: std::io::Error| CommandError::unavailable(format!("it cannot be written: {e}"));
    match &args.output {
        Some(file) => {
            let mut whole = AtomicFile::begin(file).map_err(failed)?;
            write(app, manifest, main, &mut whole).await?;
            whole.keep().map_err(failed)?;
        }
        None => {
            let mut out = BufWriter::new(std::io::stdout());
            write(app, manifest, main, &mut out).await?;
            out.flush().map_err(failed)?;
        }
    }
    let beside = manifest.files.len() as u64 - 1;
    if beside > 0 {
        let files = count(beside, "file");
        app.out.note(&format!(
            "{files} beside the session do not fit into an envelope"
        ));
    }
    Ok(0)
}

async fn newest(app: &App, c: &Conversation, agent: &str) -> Result<Option<Manifest>> {
    let mut read = app.hub().store.read().await?;
    let all = read.snapshots().of(c.id).await?;
    let mut its = all
        .into_iter()
        .filter(|s| s.agent.as_str() == agent && !s.open);
    Ok(its.find_map(|snapshot| snapshot.manifest().ok()))
}

async fn write(
    app: &App,
    manifest: &Manifest,
    main: &ManifestFile,
    to: &mut (dyn Write + Send),
) -> Result<()> {
    let failed =
        |e: std::io::Error| CommandError::unavailable(format!("it cannot be written: {e}"));
    let mut envelope = EnvelopeWriter::begin(to, &manifest.session).map_err(failed)?;
    let fetched = app.hub().keeper().fetch(main, &mut envelope).await;
    fetched.map_err(|lost| {
        let text = format!("its session cannot be read: {lost}");
        CommandError::new(rejoin_errors::codes::BAD_ARCHIVE, text).try_this("rejoin doctor")
    })?;
    envelope.end().map_err(failed)
}
