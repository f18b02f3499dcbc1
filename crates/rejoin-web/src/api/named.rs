//! Handlers for commands that run on another machine: resolve a name, search messages, describe the
//! daemon and the caller.

use axum::Json;
use axum::extract::State;
use rejoin_hub::{HitsView, NameKind, NamedView, SearchQuery};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::extract::Params;
use crate::guard::Caller;
use crate::problem::{Refusal, Result};
use crate::state::App;

/// Default number of search results.
const HITS: i64 = 20;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Naming {
    /// Id, handle or the beginning of one, key, `last`, each also with the number of a message: `tmqx:4`.
    name: String,
    /// Kind of the object: `conversation`, `message`, `said` or `turn`.
    #[param(inline)]
    want: NameKind,
    /// Folder in which `last` looks first; none: everywhere.
    folder: Option<String>,
    /// Folder in which `last` looks next.
    checkout: Option<String>,
}

/// Find a conversation, message or turn by name
#[utoipa::path(
    get, path = "/api/find", operation_id = "find", tag = "conversations",
    params(Naming),
    responses(
        (status = 200, body = NamedView),
    )
)]
pub(super) async fn find(
    State(app): State<App>,
    caller: Caller,
    Params(naming): Params<Naming>,
) -> Result<Json<NamedView>> {
    if naming.name.contains('\0') {
        return Err(Refusal::usage("a name contains no NUL character"));
    }
    let folders: Vec<String> = naming.folder.into_iter().chain(naming.checkout).collect();
    let hub = app.hub(&caller);
    let named = hub.named(&naming.name, naming.want, &folders).await?;
    if naming.want != NameKind::Said {
        return Ok(Json(named));
    }
    // The last message may have been added to a session outside rejoin.
    let id = named.conversation.id;
    app.runner.take_in_before_change(id).await?;
    Ok(Json(hub.named(&naming.name, naming.want, &folders).await?))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Searching {
    /// Words, each the beginning of one; in quotes a phrase.
    q: String,
    /// Only what this agent answered.
    agent: Option<String>,
    /// Only in conversations of this folder.
    workdir: Option<String>,
    /// How many; 20 if nothing is said, 1000 at most.
    limit: Option<i64>,
}

/// Search the messages, best match first
#[utoipa::path(
    get, path = "/api/search", operation_id = "search", tag = "conversations",
    params(Searching),
    responses(
        (status = 200, body = HitsView),
    )
)]
pub(super) async fn search(
    State(app): State<App>,
    caller: Caller,
    Params(searching): Params<Searching>,
) -> Result<Json<HitsView>> {
    let query = SearchQuery {
        words: searching.q,
        agent: searching.agent,
        workdir: searching.workdir,
        limit: searching.limit.unwrap_or(HITS),
    };
    Ok(Json(app.hub(&caller).search(&query).await?))
}

/// Which daemon this is, and who the caller is to it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HubView {
    version: &'static str,
    machine: String,
    /// The name of the caller's token.
    name: String,
    /// Rights of the token: `read`, `send` or `admin`.
    scope: String,
    namespace: String,
    /// The most the caller may ask an agent to do; none: anything.
    max_permission: Option<String>,
    /// Working folder of a conversation for which no folder is named.
    workdir: String,
    /// Stands for the store: two daemons on one have the same.
    store: String,
}

/// Show the daemon's version, and the caller's rights
#[utoipa::path(
    get, path = "/api/hub", operation_id = "aboutHub", tag = "status",
    responses(
        (status = 200, body = HubView),
    )
)]
pub(super) async fn hub(State(app): State<App>, caller: Caller) -> Json<HubView> {
    Json(HubView {
        version: env!("CARGO_PKG_VERSION"),
        machine: app.runner.hub.machine.clone(),
        name: caller.name.to_string(),
        scope: caller.scope.to_string(),
        namespace: caller.namespace.to_string(),
        max_permission: caller.ceiling.map(|mode| mode.to_string()),
        workdir: app.defaults.here.to_string_lossy().into_owned(),
        store: app.options.store.clone(),
    })
}
