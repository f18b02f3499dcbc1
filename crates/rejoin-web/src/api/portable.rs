//! Handlers that export a conversation as an archive or a document, and import archives.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use rejoin_core::PermissionMode;
use rejoin_errors::{CommandError, codes};
use rejoin_hub::{Document, DocumentForm, ImportOptions, ImportResult, ImportView, fields};
use rejoin_store::{Generation, SnapshotSelection, TokenScope};
use serde::Deserialize;
use utoipa::IntoParams;

use super::find;
use crate::extract::Params;
use crate::folders;
use crate::guard::Caller;
use crate::problem::{Refusal, Result};
use crate::state::App;

/// Largest archive that is taken, in bytes.
const ARCHIVE: u64 = 1 << 30;
/// Time within which an archive must arrive.
const ARRIVES_WITHIN: Duration = Duration::from_mins(10);
/// Size of a piece of an answer in bytes.
const PIECE: usize = 256 << 10;

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Exporting {
    /// `archive` (default), `markdown` or `json`.
    format: Option<String>,
    /// Leave secrets in a document. An archive always contains everything.
    #[serde(default)]
    keep_secrets: bool,
}

/// Export a conversation
///
/// An archive can be imported elsewhere; it contains messages, turns, sessions and snapshots, and needs a token that may
/// send. A document contains the messages; keys and passwords of known forms are removed from it, and counted at its end.
#[utoipa::path(
    get, path = "/api/conversations/{id}/export", operation_id = "exportConversation", tag = "conversations",
    params(("id" = String, Path, description = "Id, handle or key"), Exporting),
    responses(
        (status = 200, description = "The file", content(
            (Vec<u8> = "application/octet-stream"), (String = "text/markdown"), (Object = "application/json"),
        )),
    )
)]
pub(super) async fn export(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Params(exporting): Params<Exporting>,
) -> Result<Response> {
    let hub = app.hub(&caller);
    let found = find::conversation(&hub, &id).await?;
    let handle = hub.conversation_view(&found).await?.handle;
    let (form, kind, ending) = match exporting.format.as_deref().unwrap_or("archive") {
        "archive" => {
            caller.must(TokenScope::Send)?;
            let unwritten = |e: std::io::Error| {
                CommandError::unavailable(format!("the archive cannot be written: {e}"))
            };
            let mut file = tempfile::tempfile_in(&app.runner.config.home).map_err(unwritten)?;
            let all = SnapshotSelection::All;
            hub.export(found.id, Generation::default(), all, &mut file)
                .await?;
            file.seek(SeekFrom::Start(0)).map_err(unwritten)?;
            let pieces = stream::unfold(file, |mut file| async move {
                let piece = piece(&mut file);
                match &piece {
                    Ok(bytes) if bytes.is_empty() => None,
                    Ok(_) | Err(_) => Some((piece, file)),
                }
            });
            let kind = "application/octet-stream";
            return Ok(attached(kind, &handle, "rejoin", Body::from_stream(pieces)));
        }
        "markdown" => (DocumentForm::Markdown, "text/markdown; charset=utf-8", "md"),
        "json" => (DocumentForm::Json, "application/json", "json"),
        _ => return Err(Refusal::usage("format is archive, markdown or json")),
    };
    if exporting.keep_secrets {
        caller.must(TokenScope::Send)?;
    }
    let document = Document::new(&hub, &found, form, !exporting.keep_secrets);
    let pieces = stream::unfold(Some(document), |document| async move {
        let mut document = document?;
        match document.next().await {
            Ok(piece) => Some((Ok(Bytes::from(piece?)), Some(document))),
            // The answer has begun: it can only be cut.
            Err(error) => Some((Err(std::io::Error::other(error.to_string())), None)),
        }
    });
    Ok(attached(kind, &handle, ending, Body::from_stream(pieces)))
}

fn piece(file: &mut File) -> std::io::Result<Bytes> {
    let mut bytes = vec![0; PIECE];
    let read = file.read(&mut bytes)?;
    bytes.truncate(read);
    Ok(bytes.into())
}

fn attached(kind: &'static str, handle: &str, ending: &str, body: Body) -> Response {
    let name = format!("attachment; filename=\"{handle}.{ending}\"");
    let headers = [
        (header::CONTENT_TYPE, kind.to_owned()),
        (header::CONTENT_DISPOSITION, name),
    ];
    (headers, body).into_response()
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Importing {
    /// Import as a new conversation with new ids.
    #[serde(default)]
    as_copy: bool,
    /// Key of the new conversation.
    key: Option<String>,
    /// Working folder; none: the daemon's own choice.
    workdir: Option<String>,
    /// `read-only`, `edit`, `full` or `ask`; none: as in the archive, but at most what is configured, and never
    /// `full`.
    permission: Option<String>,
}

/// Import an archive: the body is the file
///
/// If the conversation exists already, only new messages are added. If both have new messages, nothing changes.
#[utoipa::path(
    post, path = "/api/import", operation_id = "importConversation", tag = "conversations",
    params(Importing),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 201, description = "The conversation is here now", body = ImportView),
        (status = 200, description = "It was here already", body = ImportView),
    )
)]
pub(super) async fn import(
    State(app): State<App>,
    caller: Caller,
    Params(importing): Params<Importing>,
    request: Request,
) -> Result<(StatusCode, Json<ImportView>)> {
    let hub = app.hub(&caller);
    let here = app.defaults.here.to_string_lossy();
    let workdir = importing.workdir.as_deref().unwrap_or(&here);
    let permission = importing.permission.as_deref();
    let most = app.defaults.permission.unwrap_or_default();
    let most = most.at_most(PermissionMode::Edit);
    let options = ImportOptions {
        as_copy: importing.as_copy,
        key: importing.key.as_deref().map(fields::key).transpose()?,
        workdir: folders::allowed(&app, &caller, workdir)?,
        permission: permission.map(fields::permission).transpose()?,
        most: caller.ceiling.map_or(most, |ceiling| most.at_most(ceiling)),
    };
    if let Some(mode) = options.permission {
        hub.may(rejoin_hub::LimitedPart::Turn, mode)?;
    }
    let arriving = arrived(&app, request);
    let mut file = tokio::time::timeout(ARRIVES_WITHIN, arriving)
        .await
        .unwrap_or_else(|_| Err(Refusal::usage("the archive did not come in time")))?;
    let view = hub.import(&mut file, &options).await?;
    app.runner.wake.send_modify(|n| *n += 1);
    let status = match view.outcome {
        ImportResult::Imported | ImportResult::Copied => StatusCode::CREATED,
        ImportResult::TakenOver | ImportResult::Same | ImportResult::Behind => StatusCode::OK,
    };
    Ok((status, Json(view)))
}

/// Writes the body to a file without a name.
async fn arrived(app: &App, request: Request) -> Result<File> {
    let unwritten = |e: std::io::Error| {
        Refusal(CommandError::unavailable(format!(
            "the archive cannot be stored: {e}; nothing was imported"
        )))
    };
    let mut file = tempfile::tempfile_in(&app.runner.config.home).map_err(unwritten)?;
    let mut pieces = request.into_body().into_data_stream();
    let mut length = 0;
    while let Some(piece) = pieces.next().await {
        let unread = |_| Refusal::usage("the body of the request cannot be read");
        let piece = piece.map_err(unread)?;
        length += piece.len() as u64;
        if length > ARCHIVE {
            let text =
                "an archive may have 1 GiB at most; use rejoin import on the daemon's machine";
            return Err(Refusal(CommandError::new(codes::TOO_LARGE, text)));
        }
        file.write_all(&piece).map_err(unwritten)?;
    }
    file.seek(SeekFrom::Start(0)).map_err(unwritten)?;
    Ok(file)
}
