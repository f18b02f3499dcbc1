//! Would the same process be started again?

use rejoin_hub::TurnRequest;

use crate::config::RunnerConfig;
use crate::look::Looked;
use crate::process::SELF;

/// Stands for everything that a process is started with, but for its session and its prompt.
pub(crate) fn alike(config: &RunnerConfig, looked: &Looked, request: &TurnRequest) -> String {
    let mut hash = blake3::Hasher::new();
    let mut add = |part: &dyn std::fmt::Debug| {
        hash.update(format!("{part:?}\n").as_bytes());
    };
    // What another build makes of the rest may be another call.
    let me = fs_err::metadata(SELF).ok();
    add(&me.map(|me| (me.len(), me.modified().ok())));
    add(&looked.binary.identity);
    // Another one at the same place is another one.
    let folder = &looked.folder;
    add(&(&folder.path, folder.device, folder.inode));
    add(&looked.home);
    add(&looked.settings.args);
    add(&looked.env);
    add(&request.model);
    add(&request.envelope);
    add(&request.raw);
    add(&(config.asks, config.defer_after));
    add(&looked.wall);
    hash.finalize().to_hex().to_string()
}
