//! Handlers for questions that wait for a person.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use rejoin_core::{AnswerRequest, Choice, QuestionId};
use rejoin_hub::{Error, InboxDocument, MessageRequest, Target, TurnView};
use serde::Deserialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

use super::find;
use super::send::{Sending, Waiting, idempotency_key};
use crate::extract::Body;
use crate::guard::Caller;
use crate::problem::{Problem, Refusal, Result};
use crate::state::App;

/// List pending questions, oldest first
#[utoipa::path(get, path = "/api/inbox", operation_id = "inbox", tag = "questions", responses((status = 200, body = InboxDocument)))]
pub(super) async fn list(State(app): State<App>, caller: Caller) -> Result<Json<InboxDocument>> {
    Ok(Json(app.hub(&caller).inbox().await?))
}

/// `decision` for an approval, `answers` for a question: each by its id, with the labels that are chosen.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AnswerBody {
    /// The question; none: the only pending one.
    question_id: Option<QuestionId>,
    decision: Option<Choice>,
    /// For the agent, with a denial.
    message: Option<String>,
    answers: Option<BTreeMap<String, Vec<String>>>,
    /// Name of the person who answers. Believed of callers on the socket; for others the name of their token counts.
    by: Option<String>,
}

/// Answer a question of a turn; the first answer counts
///
/// If the agent is gone that asked, the answer becomes a new message, and this is its turn.
#[utoipa::path(
    post, path = "/api/turns/{id}/answer", operation_id = "answerTurn", tag = "questions",
    params(("id" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    request_body = AnswerBody,
    responses(
        (status = 200, description = "It was answered so", body = TurnView),
        (status = 202, description = "It was accepted as a new message", body = TurnView),
        (status = 409, description = "Somebody else was faster", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn answer(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    Body(body): Body<AnswerBody>,
) -> Result<Response> {
    let hub = app.hub(&caller);
    let turn = find::turn(&hub, &id).await?;
    let answer = AnswerRequest {
        question_id: body.question_id,
        decision: body.decision,
        message: body.message,
        answers: body.answers,
        by: body
            .by
            .filter(|_| caller.local)
            .unwrap_or_else(|| caller.name.to_string()),
        client_key: idempotency_key(&headers)?,
    };
    match hub.answer(turn.id, &answer).await {
        Ok(shown) => {
            app.runner.wake.send_modify(|n| *n += 1);
            app.queue.take(turn.conversation);
            Ok(Json(hub.turn_view(shown).await?).into_response())
        }
        Err(Error::QuestionGone {
            conversation,
            text,
            answer,
        }) => {
            let found = find::conversation(&hub, &conversation.to_string()).await?;
            let sending = Sending {
                app: &app,
                caller: &caller,
                hub: &hub,
                headers: &headers,
                waiting: Waiting::default(),
            };
            let request = MessageRequest {
                text,
                confirm: true,
                answers: Some(answer),
                ..MessageRequest::default()
            };
            let target = Target::Conversation(conversation);
            sending.send(request, target, Some(&found)).await
        }
        Err(error) => Err(Refusal::from(error)),
    }
}
