//! Reads a bundle through a temporary store, which is gone with the command.

use std::path::Path;

use rejoin_hub::ImportOptions;

use crate::app::{App, Invocation};
use crate::cli::{folder_text, refused_import};
use rejoin_errors::{CommandError, Result};

pub(crate) struct BundleReader {
    pub(crate) app: App,
    /// The conversation in it.
    pub(crate) id: String,
    _store: tempfile::TempDir,
}

impl BundleReader {
    /// The file is only read. What a turn that was killed has left beside it is not in it yet.
    pub(crate) async fn at(invocation: &Invocation, file: &Path) -> Result<Self> {
        let failed =
            |e: std::io::Error| CommandError::unavailable(format!("no store can be made: {e}"));
        let store = tempfile::tempdir().map_err(failed)?;
        let app = App::open_private(invocation, store.path().join("store")).await?;
        let opened = fs_err::File::open(file);
        let opened = opened.map_err(|e| {
            CommandError::not_found(format!("the bundle cannot be read: {e}"))
                .try_this("rejoin send --bundle FILE \"…\"")
        })?;
        let mut opened = opened.into_parts().0;
        let wish = ImportOptions::into_folder(folder_text(&app.here)?);
        let view = app.hub().import(&mut opened, &wish).await;
        let view = view.map_err(|error| refused_import(error, &file.display().to_string()))?;
        let mut beside = file.as_os_str().to_owned();
        beside.push(".rejoin");
        if Path::new(&beside).exists() {
            invocation
                .out
                .note("a turn of it runs, or was interrupted: what it said is not in the file yet");
        }
        Ok(Self {
            app,
            id: view.conversation_id.to_string(),
            _store: store,
        })
    }

    /// The conversation's name, if the command names none or only the last one.
    pub(crate) fn named(&self, name: &str) -> String {
        if name == "last" {
            self.id.clone()
        } else {
            name.to_owned()
        }
    }
}
