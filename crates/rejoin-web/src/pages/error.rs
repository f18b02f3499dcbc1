//! Refusals as pages: one sentence, and the next step.

use askama::Template;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use rejoin_errors::CommandError;

use super::Pages;
use super::client::encoded;
use super::frame::{self, Frame, Place};
use crate::guard::Caller;
use crate::problem::Refusal;
use crate::state::App;

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage {
    f: Frame,
    status: u16,
    title: String,
    text: String,
    command: String,
    step: String,
    refresh: bool,
}

/// True if the request comes from a browser that shows pages.
pub(crate) fn wants_page(headers: &HeaderMap, uri: &Uri) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|a| a.to_str().ok());
    let path = uri.path();
    let programs = ["/api/", "/openapi.json", "/healthz", "/readyz", "/metrics"];
    accept.is_some_and(|accept| accept.contains("text/html"))
        && !programs.iter().any(|program| path.starts_with(program))
}

/// Answers a request of a browser that the guard has refused.
pub(crate) fn of_guard(
    app: &App,
    method: &Method,
    headers: &HeaderMap,
    uri: &Uri,
    refusal: Refusal,
) -> Response {
    if refusal.code() != "unauthorized" {
        return show(Frame::outside(app, headers), &Failure::from(refusal));
    }
    let back = uri.path_and_query().map_or("/", |p| p.as_str());
    if *method != Method::GET || back == "/" {
        return frame::go("/sign-in");
    }
    frame::go(&format!("/sign-in?next={}", encoded(back)))
}

/// Answers with a page in the place of a handler's failure.
pub(super) async fn framed(State(pages): State<Pages>, request: Request, next: Next) -> Response {
    let (headers, caller) = (
        request.headers().clone(),
        request.extensions().get::<Caller>().cloned(),
    );
    let mut response = next.run(request).await;
    let Some(failure) = response.extensions_mut().remove::<Failure>() else {
        return response;
    };
    let f = match &caller {
        Some(caller) => Frame::of(&pages.app, caller, &headers, Place::Elsewhere).await,
        None => Frame::outside(&pages.app, &headers),
    };
    show(f, &failure)
}

/// Answers a browser under an address that does not exist.
pub(crate) fn unknown() -> Response {
    Failure {
        status: StatusCode::NOT_FOUND,
        detail: "There is no such page".into(),
        next: None,
    }
    .into_response()
}

fn show(f: Frame, failure: &Failure) -> Response {
    let status = failure.status;
    let text = capital(&failure.detail);
    let next = failure.next.clone().unwrap_or_default();
    // A request of the API is no step for a person.
    let request = ["GET ", "POST "]
        .iter()
        .any(|method| next.starts_with(method));
    let is_command = next.starts_with("rejoin ");
    let page = ErrorPage {
        title: title(status).into(),
        status: status.as_u16(),
        text,
        command: if is_command {
            next.clone()
        } else {
            String::new()
        },
        step: if is_command || request {
            String::new()
        } else {
            next
        },
        refresh: status == StatusCode::SERVICE_UNAVAILABLE,
        f,
    };
    frame::page(&page.f, status, &page)
}

/// Returns the sentence with a capital letter.
pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

fn title(status: StatusCode) -> &'static str {
    match status.as_u16() {
        400 => "This request is not complete",
        403 => "Not allowed",
        404 => "Not found",
        409 => "Not possible now",
        429 => "Too many requests",
        503 => "The store cannot be used",
        _ => "This failed",
    }
}

/// Failure of a handler, which becomes a page.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub(super) status: StatusCode,
    pub(super) detail: String,
    pub(super) next: Option<String>,
}

pub(super) type Result<T = Response, E = Failure> = std::result::Result<T, E>;

impl<E: Into<CommandError>> From<E> for Failure {
    fn from(error: E) -> Self {
        let error = error.into();
        Self {
            status: StatusCode::from_u16(error.status())
                .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            detail: error.message,
            next: error.next,
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::from(refusal.0)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}
