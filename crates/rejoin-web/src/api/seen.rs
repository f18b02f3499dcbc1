//! Handler that marks messages as seen, for all devices of a user.

use axum::Json;
use axum::extract::{Path, State};
use rejoin_hub::ConversationView;
use serde::Deserialize;
use utoipa::ToSchema;

use super::find;
use crate::extract::Body;
use crate::guard::Caller;
use crate::problem::Result;
use crate::state::App;

/// Position of the newest message that was seen; 0: none was.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SeenBody {
    seq: i64,
}

/// Mark the messages of a conversation up to a position as seen
#[utoipa::path(
    put, path = "/api/conversations/{id}/seen", operation_id = "markSeen", tag = "conversations",
    params(("id" = String, Path, description = "Id, handle or key")),
    request_body = SeenBody,
    responses(
        (status = 200, body = ConversationView),
    )
)]
pub(super) async fn mark(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Body(body): Body<SeenBody>,
) -> Result<Json<ConversationView>> {
    let hub = app.hub(&caller);
    let found = find::conversation(&hub, &id).await?;
    let now = hub.mark_seen(found.id, body.seq).await?;
    app.runner.wake.send_modify(|n| *n += 1);
    Ok(Json(hub.conversation_view(&now).await?))
}
