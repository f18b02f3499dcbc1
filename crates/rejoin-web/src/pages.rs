//! The dashboard: pages for browsers, rendered from the API. Every page works without script; script adds live
//! updates and keys.

mod assets;
mod chain;
mod change;
mod client;
mod compose;
mod conversation;
mod error;
mod form;
mod format;
mod frame;
mod html;
mod inbox;
mod list;
mod markdown;
mod question;
mod session;
mod settings;
mod thread;
mod tools;
mod turn;

use std::sync::Arc;

use axum::routing::{get, post};
use axum::{Router, middleware};

use crate::state::App;

pub(crate) use error::{of_guard, unknown, wants_page};
pub(crate) use form::same;
pub(crate) use session::caller;

/// State of the handlers: the daemon, and its API without authentication, for requests that have passed it.
#[derive(Clone)]
pub(crate) struct Pages(Arc<Inner>);

pub(crate) struct Inner {
    app: App,
    api: Router,
}

impl std::ops::Deref for Pages {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

/// True for pages and files that need no session: signing in, and files without data.
pub(crate) fn is_open(path: &str) -> bool {
    path == "/sign-in" || path.starts_with("/pair/") || path.starts_with("/assets/")
}

/// True for forms that a session may send whatever its scope is.
pub(crate) fn is_own(path: &str) -> bool {
    ["/sign-out", "/sign-out-everywhere", "/theme"].contains(&path)
}

/// Adds the pages to the routes of the API.
pub(crate) fn mount(app: &App, api: Router) -> Router {
    let pages = Pages(Arc::new(Inner {
        app: Arc::clone(app),
        api: api.clone(),
    }));
    let framed = middleware::from_fn_with_state(pages.clone(), error::framed);
    let fallbacks = api.merge(routes(pages));
    fallbacks
        .fallback(crate::api::unknown)
        .method_not_allowed_fallback(crate::api::not_so)
        .layer(framed)
}

/// Returns the routes of all pages. A new page is a handler and a line.
fn routes(pages: Pages) -> Router {
    Router::new()
        .route("/", get(list::show))
        .route("/new", get(compose::new).post(compose::start))
        .route("/c/{name}", get(conversation::show))
        .route("/c/{name}/send", post(compose::send))
        .route("/c/{name}/m/{n}", get(conversation::message))
        .route(
            "/c/{name}/m/{n}/edit",
            get(change::edit_form).post(change::edit),
        )
        .route(
            "/c/{name}/m/{n}/retry",
            get(change::retry_form).post(change::retry),
        )
        .route(
            "/c/{name}/m/{n}/fork",
            get(change::fork_form).post(change::fork),
        )
        .route(
            "/c/{name}/m/{n}/remove",
            get(change::remove_form).post(change::remove),
        )
        .route("/c/{name}/undo", post(change::undo))
        .route(
            "/c/{name}/settings",
            get(change::settings_form).post(change::settings),
        )
        .route(
            "/c/{name}/delete",
            get(change::delete_form).post(change::delete),
        )
        .route("/c/{name}/t/{id}", get(turn::show))
        .route("/c/{name}/t/{id}/stop", post(compose::stop))
        .route("/inbox", get(inbox::show))
        .route("/inbox/{turn}", post(inbox::answer))
        .route("/settings", get(settings::show))
        .route(
            "/settings/tokens",
            get(settings::tokens).post(settings::create_token),
        )
        .route("/settings/tokens/revoke", post(settings::revoke_token))
        .route(
            "/settings/sessions",
            get(settings::sessions).post(settings::end_session),
        )
        .route("/more", get(settings::more))
        .route("/keys", get(settings::keys))
        .route("/theme", post(session::theme))
        .route("/sign-in", get(session::show).post(session::sign_in))
        .route("/pair/{code}", get(session::pair))
        .route("/sign-out", post(session::sign_out))
        .route("/sign-out-everywhere", post(session::sign_out_everywhere))
        .route("/assets/{hash}/{name}", get(assets::serve))
        .layer(middleware::from_fn(form::checked))
        .with_state(pages)
}
