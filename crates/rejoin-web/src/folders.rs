//! Working folders: which are there, and which a caller may use.

use std::path::Path;

use rejoin_runner::failure::Failure;
use rejoin_runner::folder;

use crate::guard::Caller;
use crate::problem::{Refusal, Result};
use crate::state::App;

/// The folder as it is stored, if it may be used.
pub(crate) fn allowed(app: &App, caller: &Caller, dir: &str) -> Result<String> {
    if !Path::new(dir).is_absolute() {
        return Err(Refusal::usage(format!(
            "the working folder `{}` is not an absolute path",
            shown(dir)
        )));
    }
    let looked = folder::look(Path::new(dir)).map_err(|e| Failure::folder(&shown(dir), &e))?;
    within(app, caller, &looked.path)?;
    Ok(looked.path)
}

/// Is this one, which is stored already, beneath a root?
pub(crate) fn within(app: &App, caller: &Caller, real: &str) -> Result<()> {
    let roots = &app.options.roots;
    // Whoever has the socket has a shell.
    if caller.local || roots.is_empty() {
        return Ok(());
    }
    let beneath = |root: &std::path::PathBuf| {
        fs_err::canonicalize(root).is_ok_and(|root| Path::new(real).starts_with(root))
    };
    if roots.iter().any(beneath) {
        return Ok(());
    }
    Err(
        Refusal::forbidden("the working folder is not beneath one that this daemon allows")
            .try_this("[serve] roots in the configuration"),
    )
}

fn shown(dir: &str) -> String {
    dir.chars().filter(|c| !c.is_control()).take(200).collect()
}
