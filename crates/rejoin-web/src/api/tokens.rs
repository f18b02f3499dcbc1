//! Handlers for tokens, for callers that may create them.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use rejoin_core::PermissionMode;
use rejoin_hub::{LimitedPart, NewTokenView, TokenRequest, TokenView, fields};
use rejoin_store::TokenScope;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::send::idempotency_key;
use crate::extract::Body;
use crate::guard::Caller;
use crate::problem::{Refusal, Result};
use crate::state::App;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TokenBody {
    name: String,
    /// `read`, `send` or `admin`; default: `send`. `runner` is reserved for runners on other machines and refused.
    scope: Option<String>,
    /// Namespace of the token; none: the caller's own.
    namespace: Option<String>,
    /// In seconds from now; none: never.
    expires_in_s: Option<u32>,
    /// The most it may ask an agent to do: `read-only`, `ask`, `edit` or `full`, and no more than the caller
    /// may; none: the daemon's `[serve] max_permission`, or the caller's ceiling if that is lower.
    max_permission: Option<String>,
}

/// Create a token; its text is shown only once
#[utoipa::path(
    post, path = "/api/tokens", operation_id = "createToken", tag = "tokens",
    params(("Idempotency-Key" = Option<String>, Header)),
    request_body = TokenBody,
    responses(
        (status = 201, description = "It was made", body = NewTokenView),
    )
)]
pub(super) async fn create(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    Body(body): Body<TokenBody>,
) -> Result<(StatusCode, Json<NewTokenView>)> {
    may_give_out(&caller)?;
    let key = idempotency_key(&headers)?;
    let scope = body.scope.as_deref().unwrap_or("send");
    let asked = body
        .max_permission
        .as_deref()
        .map(fields::permission)
        .transpose()?;
    if let Some(asked) = asked {
        app.hub(&caller).may(LimitedPart::Token, asked)?;
    }
    let lower = |own: &PermissionMode| app.options.max_permission.exceeds(*own);
    let request = TokenRequest {
        name: body.name,
        scope: scope.parse().map_err(Refusal::usage)?,
        namespace: body
            .namespace
            .unwrap_or_else(|| caller.namespace.to_string()),
        expires_in: body.expires_in_s.map(|s| i64::from(s) * 1_000_000),
        max_permission: asked.or(caller.ceiling.filter(lower)),
        secret: key.map(|key| app.secrets.of(&caller.name, &key)),
    };
    let made = app.runner.hub.create_token(&request).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Tokens {
    tokens: Vec<TokenView>,
}

/// List tokens, without their secrets
#[utoipa::path(
    get, path = "/api/tokens", operation_id = "listTokens", tag = "tokens",
    responses(
        (status = 200, body = Tokens),
    )
)]
pub(super) async fn list(State(app): State<App>, caller: Caller) -> Result<Json<Tokens>> {
    may_give_out(&caller)?;
    let tokens = app.runner.hub.token_views().await?;
    Ok(Json(Tokens { tokens }))
}

/// Revoke a token
#[utoipa::path(
    delete, path = "/api/tokens/{name}", operation_id = "revokeToken", tag = "tokens",
    params(("name" = String, Path)),
    responses(
        (status = 204, description = "It is not good any more"),
    )
)]
pub(super) async fn revoke(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<StatusCode> {
    may_give_out(&caller)?;
    app.runner.hub.revoke_token(&name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Checks that the caller may create tokens. A caller that is limited to a namespace must not
/// create tokens for others.
fn may_give_out(caller: &Caller) -> Result<()> {
    caller.must(TokenScope::Admin)?;
    if caller.namespace.is_empty() {
        return Ok(());
    }
    Err(Refusal::forbidden(
        "tokens are given out in the namespace without a name only",
    ))
}
