//! What is in a bundle, to look at it: taken into a store that is gone with the command.

use std::path::Path;

use rejoin_hub::ImportWish;

use crate::app::App;
use crate::cli::{folder_text, refused_import};
use crate::failure::{Failure, Result};
use crate::output::Output;

pub(crate) struct Glance {
    pub(crate) app: App,
    /// The conversation in it.
    pub(crate) id: String,
    _store: tempfile::TempDir,
}

impl Glance {
    /// The file is only read. What a turn that was killed has left beside it is not in it yet.
    pub(crate) async fn at(out: Output, config: Option<&Path>, file: &Path) -> Result<Self> {
        let failed = |e: std::io::Error| Failure::unavailable(format!("no store can be made: {e}"));
        let store = tempfile::tempdir().map_err(failed)?;
        let app = App::open_private(out, config, store.path().join("store")).await?;
        let opened = fs_err::File::open(file);
        let opened = opened.map_err(|e| {
            Failure::not_found(format!("the bundle cannot be read: {e}"))
                .try_this("rejoin send --bundle FILE \"…\"")
        })?;
        let mut opened = opened.into_parts().0;
        let wish = ImportWish::into_folder(folder_text(&app.here)?);
        let view = app.hub().import(&mut opened, &wish).await;
        let view = view.map_err(|error| refused_import(error, &file.display().to_string()))?;
        let mut beside = file.as_os_str().to_owned();
        beside.push(".rejoin");
        if Path::new(&beside).exists() {
            out.note("a turn of it runs, or was interrupted: what it said is not in the file yet");
        }
        Ok(Self {
            app,
            id: view.conversation_id.to_string(),
            _store: store,
        })
    }

    /// What is meant if nothing was named, or only the last one.
    pub(crate) fn named(&self, name: &str) -> String {
        if name == "last" {
            self.id.clone()
        } else {
            name.to_owned()
        }
    }
}
